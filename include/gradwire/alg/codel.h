/*
 * alg/codel.h - CoDel, to the packet as Linux 6.1 drops
 *
 * Nichols, Jacobson, "Controlling queue delay", ACM Queue 2012, in the kernel's arithmetic: times
 * in units of 1024 ns, 32 bits wide; 1/sqrt(count) is a 16-bit number improved by one Newton step
 * at each drop, so that the first gaps differ from interval/sqrt(count) by several per cent, as
 * the kernel's do. Used by codel and fq_codel. Left out: the station of wireless drivers.
 */
#ifndef GRADWIRE_ALG_CODEL_H
#define GRADWIRE_ALG_CODEL_H

#include <gradwire/plugin.h>

enum { GW_CODEL_SHIFT = 10 };
#define GW_CODEL_NEVER UINT32_C(0x7fffffff)     /* a threshold that no sojourn passes           */

struct gw_codel_parms {
    uint32_t target, interval, ce_threshold;    /* units of 1024 ns                             */
    uint32_t mtu;                               /* bytes; a backlog up to this is no queue      */
    uint8_t  ce_selector, ce_mask;              /* of the TOS byte; mask 0: every packet        */
    bool     ecn;
};

struct gw_codel {
    uint32_t count, lastcount;
    uint32_t first_above, drop_next, ldelay;    /* units of 1024 ns                             */
    uint16_t inv_sqrt;                          /* 1/sqrt(count) of 2^16                        */
    bool     dropping;
};

struct gw_codel_stats {
    uint64_t maxpacket, ecn_mark, ce_mark;
};

/* The queue under control. */
struct gw_codel_queue {
    struct gw_qdisc *q;
    void            *ctx;
    uint64_t        *backlog_bytes;             /* what waits, without the packet popped last   */
    struct gw_pkt *(*pop)(void *ctx);
};

static inline uint32_t gw_codel_time(uint64_t ps)
{
    return (uint32_t)(ps / GW_PS_PER_NS >> GW_CODEL_SHIFT);
}

static inline uint32_t gw_codel_from_us(uint32_t us)
{
    return (uint32_t)((uint64_t)us * 1000 >> GW_CODEL_SHIFT);
}

static inline uint32_t gw_codel_to_us(uint32_t t)
{
    return (uint32_t)(((uint64_t)t << GW_CODEL_SHIFT) / 1000);
}

static inline bool gw_codel_after(uint32_t a, uint32_t b)
{
    return (int32_t)(a - b) > 0;
}

static inline bool gw_codel_before(uint32_t a, uint32_t b)
{
    return (int32_t)(a - b) < 0;
}

static inline void gw_codel_defaults(struct gw_codel_parms *c, uint32_t mtu)
{
    memset(c, 0, sizeof *c);
    c->target = gw_codel_from_us(5000);
    c->interval = gw_codel_from_us(100000);
    c->ce_threshold = GW_CODEL_NEVER;
    c->mtu = mtu;
}

static inline void gw_codel_newton(struct gw_codel *v)
{
    uint32_t inv = (uint32_t)v->inv_sqrt << 16;
    uint32_t inv2 = (uint32_t)(((uint64_t)inv * inv) >> 32);
    uint64_t val = (UINT64_C(3) << 32) - (uint64_t)v->count * inv2;

    val >>= 2;
    val = (val * inv) >> 31;
    v->inv_sqrt = (uint16_t)(val >> 16);
}

/* @t + interval / sqrt(count) */
static inline uint32_t gw_codel_next(uint32_t t, const struct gw_codel_parms *c,
                                     const struct gw_codel *v)
{
    return t + (uint32_t)(((uint64_t)c->interval * ((uint32_t)v->inv_sqrt << 16)) >> 32);
}

static inline bool gw_codel_judge(const struct gw_pkt *p, const struct gw_codel_parms *c,
                                  struct gw_codel *v, struct gw_codel_stats *s, uint64_t backlog,
                                  uint32_t now)
{
    if (!p) {
        v->first_above = 0;
        return false;
    }
    v->ldelay = now - gw_codel_time(p->stamp_ps);
    if (p->sched_bytes > s->maxpacket)
        s->maxpacket = p->sched_bytes;
    if (gw_codel_before(v->ldelay, c->target) || backlog <= c->mtu) {
        v->first_above = 0;
        return false;
    }
    if (!v->first_above) {
        v->first_above = now + c->interval;
        return false;
    }
    return gw_codel_after(now, v->first_above);
}

static inline bool gw_codel_mark(struct gw_qdisc *q, const struct gw_codel_parms *c,
                                 struct gw_codel_stats *s, struct gw_pkt *p)
{
    if (!c->ecn || !gw_qdisc_mark(q, p))
        return false;
    s->ecn_mark++;
    return true;
}

static inline struct gw_pkt *gw_codel_drop(const struct gw_codel_queue *cq, struct gw_pkt *p)
{
    cq->q->host->qdisc_drop(cq->q, p, GW_DROP_AQM);
    return cq->pop(cq->ctx);
}

/* In the dropping state: drops or marks until the schedule or the queue is content. */
static inline struct gw_pkt *gw_codel_go_on(const struct gw_codel_queue *cq, struct gw_pkt *p,
                                            const struct gw_codel_parms *c, struct gw_codel *v,
                                            struct gw_codel_stats *s, uint32_t now)
{
    while (v->dropping && !gw_codel_before(now, v->drop_next)) {
        v->count++;
        gw_codel_newton(v);
        if (gw_codel_mark(cq->q, c, s, p)) {
            v->drop_next = gw_codel_next(v->drop_next, c, v);
            return p;
        }
        p = gw_codel_drop(cq, p);
        if (!gw_codel_judge(p, c, v, s, *cq->backlog_bytes, now))
            v->dropping = false;
        else
            v->drop_next = gw_codel_next(v->drop_next, c, v);
    }
    return p;
}

/*
 * Enters the dropping state with one drop (or mark). A flow that fq_codel thinned has a count before
 * its first time here: the kernel then takes its zeroed drop_next for a time, which is long ago on a
 * machine that was started more than 16 intervals and less than 36 minutes ago. So it is here.
 */
static inline struct gw_pkt *gw_codel_enter(const struct gw_codel_queue *cq, struct gw_pkt *p,
                                            const struct gw_codel_parms *c, struct gw_codel *v,
                                            struct gw_codel_stats *s, uint32_t now)
{
    uint32_t delta;

    if (!gw_codel_mark(cq->q, c, s, p)) {
        p = gw_codel_drop(cq, p);
        gw_codel_judge(p, c, v, s, *cq->backlog_bytes, now);
    }
    v->dropping = true;
    delta = v->count - v->lastcount;
    if (v->lastcount && delta > 1 && gw_codel_before(now - v->drop_next, 16 * c->interval)) {
        v->count = delta;
        gw_codel_newton(v);
    } else {
        v->count = 1;
        v->inv_sqrt = UINT16_MAX;
    }
    v->lastcount = v->count;
    v->drop_next = gw_codel_next(now, c, v);
    return p;
}

static inline void gw_codel_ce(struct gw_qdisc *q, const struct gw_codel_parms *c,
                               const struct gw_codel *v, struct gw_codel_stats *s,
                               struct gw_pkt *p)
{
    uint8_t tos = (uint8_t)(p->dscp << 2 | p->ecn);

    if (!gw_codel_after(v->ldelay, c->ce_threshold) ||
        (c->ce_mask && (tos & c->ce_mask) != c->ce_selector))
        return;
    if (gw_qdisc_mark(q, p))
        s->ce_mark++;
}

/*
 * gw_codel_dequeue() - the next packet that may leave, NULL: none is left
 *
 * Packets on the way are thrown out through gw_host.qdisc_drop. stamp_ps of a packet is when it
 * entered the queue.
 */
static inline struct gw_pkt *gw_codel_dequeue(const struct gw_codel_queue *cq,
                                              const struct gw_codel_parms *c, struct gw_codel *v,
                                              struct gw_codel_stats *s, uint64_t now_ps)
{
    struct gw_pkt *p = cq->pop(cq->ctx);
    uint32_t now = gw_codel_time(now_ps);
    bool drop;

    if (!p) {
        v->dropping = false;
        return NULL;
    }
    drop = gw_codel_judge(p, c, v, s, *cq->backlog_bytes, now);
    if (v->dropping && !drop)
        v->dropping = false;
    else if (v->dropping)
        p = gw_codel_go_on(cq, p, c, v, s, now);
    else if (drop)
        p = gw_codel_enter(cq, p, c, v, s, now);
    if (p)
        gw_codel_ce(cq->q, c, v, s, p);
    return p;
}

/* "target 5ms ": text by time units, JSON microseconds. */
static inline void gw_codel_show_time(struct gw_tc_out *o, const char *key, const char *fmt,
                                      uint32_t t)
{
    char buf[64];
    uint32_t us = gw_codel_to_us(t);

    o->u64(o, key, NULL, us);
    o->str(o, NULL, fmt, o->time(o, us, buf));
}

#endif
