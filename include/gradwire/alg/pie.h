/*
 * pie.h - the PIE controller: drop probability from queueing delay
 *
 * After RFC 8033 as Linux 6.1 does it (net/sched/sch_pie.c), integer for integer: times in ticks of
 * 64 ns, probabilities in units of 2^-56, gains alpha and beta in sixteenths per second. The
 * probability is recomputed every tupdate from the delay of the packet that left last (or, with
 * dq_rate_estimator, from backlog / measured rate); arriving packets are dropped by it, spread out
 * through the accumulated probability (never below 0.85, always from 8.5). For a first burst of
 * 150 ms of sending nothing is dropped.
 *
 * tupdate runs on a clock of 100 ticks a second (GW_PIE_HZ), rounded up, as on the kernel that this
 * project measured: 15 ms become 20 ms. On a kernel with 250 ticks they become 16 ms.
 */
#ifndef GRADWIRE_ALG_PIE_H
#define GRADWIRE_ALG_PIE_H

#include <gradwire/plugin.h>

#define GW_PIE_HZ 100u
#define GW_PIE_JIFFY_US (1000000u / GW_PIE_HZ)
#define GW_PIE_MAX_PROB (UINT64_MAX >> 8)
#define GW_PIE_TICKS_PER_S UINT64_C(15625000)
#define GW_PIE_BURST_TICKS (150u * 15625u)            /* 150 ms                                */
#define GW_PIE_FIRST_PS (500 * GW_PS_PER_MS)          /* the first update                      */
#define GW_PIE_RATE_BYTES 16384u                      /* a measurement of the departure rate   */
#define GW_PIE_UNSET UINT64_MAX

enum { GW_PIE_LIMIT = 1, GW_PIE_TARGET = 2, GW_PIE_TUPDATE = 4, GW_PIE_ALPHA = 8,
       GW_PIE_BETA = 16, GW_PIE_ECN = 32, GW_PIE_BYTEMODE = 64, GW_PIE_ESTIMATOR = 128 };

struct gw_pie_conf {
    uint32_t limit;              /* packets                                                    */
    uint32_t target_us, tupdate_us, alpha, beta;
    bool     ecn, bytemode, estimator;
};

struct gw_pie_params {
    uint32_t target;             /* ticks                                                      */
    uint32_t tupdate_us;         /* whole jiffies                                              */
    uint32_t alpha, beta;        /* sixteenths a second                                        */
    uint32_t mtu;
    bool     ecn, bytemode, estimator;
};

struct gw_pie {
    uint64_t prob, accu_prob;
    uint64_t qdelay, qdelay_old; /* ticks                                                      */
    uint64_t dq_tstamp;          /* GW_PIE_UNSET: none                                         */
    uint64_t dq_count;           /* GW_PIE_UNSET: no measurement under way                     */
    uint32_t avg_dq_rate;        /* bytes per tick << 8                                        */
    uint32_t burst_time;         /* ticks left of the burst allowance                          */
};

static inline uint64_t gw_pie_ticks(uint64_t ps)
{
    return ps / 64000;
}

static inline void gw_pie_params_init(struct gw_pie_params *p, uint32_t mtu)
{
    *p = (struct gw_pie_params){ .target = 15u * 15625u, .tupdate_us = 2 * GW_PIE_JIFFY_US,
                                 .alpha = 2, .beta = 20, .mtu = mtu };
}

/* What a tc line named, by the bits of @given, into @p. */
static inline void gw_pie_params_set(struct gw_pie_params *p, const struct gw_pie_conf *c,
                                     uint64_t given)
{
    if (given & GW_PIE_TARGET)
        p->target = (uint32_t)((uint64_t)c->target_us * 1000 >> 6);
    if (given & GW_PIE_TUPDATE)
        p->tupdate_us = (uint32_t)(((uint64_t)c->tupdate_us + GW_PIE_JIFFY_US - 1) /
                                   GW_PIE_JIFFY_US) * GW_PIE_JIFFY_US;
    if (given & GW_PIE_ALPHA)
        p->alpha = c->alpha;
    if (given & GW_PIE_BETA)
        p->beta = c->beta;
    if (given & GW_PIE_ECN)
        p->ecn = c->ecn;
    if (given & GW_PIE_BYTEMODE)
        p->bytemode = c->bytemode;
    if (given & GW_PIE_ESTIMATOR)
        p->estimator = c->estimator;
}

static inline uint32_t gw_pie_target_us(const struct gw_pie_params *p)
{
    return (uint32_t)(p->target << 6) / 1000;         /* wraps above 4.29 s, as the kernel's   */
}

/* The state of a queue that has rested: the burst allowance is whole again. */
static inline void gw_pie_rest(struct gw_pie *v)
{
    v->burst_time = GW_PIE_BURST_TICKS;
    v->dq_tstamp = GW_PIE_UNSET;
    v->dq_count = GW_PIE_UNSET;
    v->accu_prob = 0;
    v->avg_dq_rate = 0;
}

/* Whether a packet of @len_bytes that meets @backlog_bytes is to be dropped (or marked). */
static inline bool gw_pie_drop_early(struct gw_pie *v, const struct gw_pie_params *p,
                                     uint64_t backlog_bytes, uint32_t len_bytes,
                                     struct gw_rng *rng)
{
    uint64_t prob = v->prob;

    if (v->burst_time)
        return false;
    if (v->qdelay < p->target / 2 && prob < GW_PIE_MAX_PROB / 5)
        return false;
    if (backlog_bytes < 2ull * p->mtu)
        return false;
    if (p->bytemode && len_bytes <= p->mtu)
        prob = len_bytes * (prob / p->mtu);
    v->accu_prob = prob ? v->accu_prob + prob : 0;
    if (v->accu_prob < GW_PIE_MAX_PROB / 100 * 85)
        return false;
    if (v->accu_prob >= GW_PIE_MAX_PROB / 2 * 17)
        return true;
    if (gw_rng_u64(rng) >> 8 >= prob)
        return false;
    v->accu_prob = 0;
    return true;
}

static inline void gw_pie_spend_burst(struct gw_pie *v, uint32_t ticks)
{
    v->burst_time = v->burst_time > ticks ? v->burst_time - ticks : 0;
}

/* The departure rate, over stretches of 16 KiB while at least that much waits. */
static inline void gw_pie_measure(struct gw_pie *v, uint64_t now, uint64_t backlog_bytes,
                                  uint32_t len_bytes)
{
    uint32_t took, rate;

    if (backlog_bytes >= GW_PIE_RATE_BYTES && v->dq_count == GW_PIE_UNSET) {
        v->dq_tstamp = now;
        v->dq_count = 0;
    }
    if (v->dq_count == GW_PIE_UNSET)
        return;
    v->dq_count += len_bytes;
    if (v->dq_count < GW_PIE_RATE_BYTES)
        return;
    took = (uint32_t)(now - v->dq_tstamp);
    if (!took)
        return;
    rate = (uint32_t)(v->dq_count << 8) / took;
    v->avg_dq_rate = v->avg_dq_rate ? v->avg_dq_rate - (v->avg_dq_rate >> 3) + (rate >> 3) : rate;
    v->dq_count = backlog_bytes < GW_PIE_RATE_BYTES ? GW_PIE_UNSET : 0;
    if (!v->dq_count)
        v->dq_tstamp = now;
    gw_pie_spend_burst(v, took);
}

/* A packet that came at @came_ps has left, @backlog_bytes are behind it. */
static inline void gw_pie_departed(struct gw_pie *v, const struct gw_pie_params *p,
                                   uint64_t now_ps, uint64_t came_ps, uint64_t backlog_bytes,
                                   uint32_t len_bytes)
{
    uint64_t now = gw_pie_ticks(now_ps);
    uint32_t since = 0;

    if (p->estimator) {
        gw_pie_measure(v, now, backlog_bytes, len_bytes);
        return;
    }
    v->qdelay = backlog_bytes ? now - gw_pie_ticks(came_ps) : 0;
    if (v->dq_tstamp != GW_PIE_UNSET)
        since = (uint32_t)(now - v->dq_tstamp);
    v->dq_tstamp = now;
    gw_pie_spend_burst(v, since);
}

/* Gains at the present probability: halved below 10 %, then a quarter for each further decade. */
static inline void gw_pie_gains(const struct gw_pie *v, const struct gw_pie_params *p,
                                uint64_t *alpha, uint64_t *beta)
{
    uint64_t unit = GW_PIE_MAX_PROB / GW_PIE_TICKS_PER_S;

    *alpha = p->alpha * unit >> 4;
    *beta = p->beta * unit >> 4;
    if (v->prob >= GW_PIE_MAX_PROB / 10)
        return;
    *alpha >>= 1;
    *beta >>= 1;
    for (uint32_t power = 100; power <= 1000000 && v->prob < GW_PIE_MAX_PROB / power;
         power *= 10) {
        *alpha >>= 2;
        *beta >>= 2;
    }
}

/* Adds @delta to the probability; true if it ran over the top of the arithmetic. */
static inline bool gw_pie_step(struct gw_pie *v, int64_t delta)
{
    uint64_t old = v->prob;

    v->prob += (uint64_t)delta;
    if (delta > 0 && v->prob < old) {
        v->prob = GW_PIE_MAX_PROB;
        return true;
    }
    if (delta <= 0 && v->prob > old)
        v->prob = 0;
    return false;
}

/* The periodic update. */
static inline void gw_pie_update(struct gw_pie *v, const struct gw_pie_params *p,
                                 uint64_t backlog_bytes)
{
    uint64_t qdelay = v->qdelay, old = v->qdelay_old, alpha, beta;
    const int64_t two_percent = (int64_t)(GW_PIE_MAX_PROB / 50);
    bool decay;
    int64_t delta;

    if (p->estimator) {
        old = v->qdelay_old = v->qdelay;
        qdelay = v->avg_dq_rate ? (backlog_bytes << 8) / v->avg_dq_rate : 0;
    }
    decay = qdelay || !backlog_bytes;
    gw_pie_gains(v, p, &alpha, &beta);
    delta = (int64_t)(alpha * (qdelay - p->target) + beta * (qdelay - old));
    if (delta > two_percent && v->prob >= GW_PIE_MAX_PROB / 10)
        delta = (int64_t)(GW_PIE_MAX_PROB / 100 * 2);
    if (qdelay > 250 * 15625u)
        delta += two_percent;
    if (gw_pie_step(v, delta))
        decay = false;
    if (!qdelay && !old && decay)
        v->prob -= v->prob / 64;
    v->qdelay = qdelay;
    if (qdelay < p->target / 2 && v->qdelay_old < p->target / 2 && !v->prob &&
        (!p->estimator || v->avg_dq_rate))
        gw_pie_rest(v);
    if (!p->estimator)
        v->qdelay_old = qdelay;
}

/* Nothing waits and further updates change nothing. */
static inline bool gw_pie_idle(const struct gw_pie *v, uint64_t backlog_bytes)
{
    return !backlog_bytes && !v->prob && !v->qdelay && !v->qdelay_old;
}

/*
 * The clock of the updates: the first 500 ms after time 0, then every tupdate. It stands still
 * while the queue rests, so that a run can end, and goes on in its old phase.
 */
static inline uint64_t gw_pie_next_update(uint64_t last_ps, uint32_t tupdate_us, uint64_t now_ps)
{
    uint64_t step = tupdate_us * GW_PS_PER_US, next = last_ps ? last_ps + step : GW_PIE_FIRST_PS;

    return next > now_ps ? next : next + ((now_ps - next) / step + 1) * step;
}

/* ---- words that pie and fq_pie share ------------------------------------------------------ */

/* A flag `word`, or with the prefix `no` or `no_`. */
static inline bool gw_pie_flag(const char *w, const char *name, const char *no, bool *value)
{
    size_t n = strlen(no);
    bool yes = !strcmp(w, name);

    if (!yes && (strncmp(w, no, n) || strcmp(w + n, name)))
        return false;
    *value = yes;
    return true;
}

/* Reads one number of a pair "name value" and its bit; 0 is not sent and so changes nothing. */
static inline enum gw_status gw_pie_number(const struct gw_tc_args *a, const char *name,
                                           const char *w, uint32_t *v, bool time, uint32_t most,
                                           uint64_t bit, const char *by_default, uint64_t *given,
                                           struct gw_error *err)
{
    if (!(time ? gw_tc_time(a, name, w, v) : gw_tc_u32(w, v)) || *v > most)
        return gw_tc_illegal(err, name, w, time ? "a time such as 15ms" : most == 32 ?
                             "a whole number from 0 to 32" : "a whole number");
    if (*v)
        *given |= bit;
    else
        gw_tc_unsent(a, name, w, by_default);
    return GW_OK;
}

/*
 * Takes the word at @i if it is one of PIE's (@taken says so); the words of `pie` in iproute2 6.1:
 * limit, target, tupdate, alpha, beta, [no]ecn, [no]bytemode, [no_]dq_rate_estimator.
 */
static inline enum gw_status gw_pie_word(const struct gw_tc_args *a, uint32_t *i,
                                         struct gw_pie_conf *c, uint64_t *given, bool *taken,
                                         struct gw_error *err)
{
    const struct { const char *name; uint32_t *v; bool time; uint32_t most; uint64_t bit;
                   const char *def; } n[] = {
        { "limit", &c->limit, false, UINT32_MAX, GW_PIE_LIMIT, "its own limit" },
        { "target", &c->target_us, true, UINT32_MAX, GW_PIE_TARGET, "15ms" },
        { "tupdate", &c->tupdate_us, true, UINT32_MAX, GW_PIE_TUPDATE, "15ms" },
        { "alpha", &c->alpha, false, 32, GW_PIE_ALPHA, "2" },
        { "beta", &c->beta, false, 32, GW_PIE_BETA, "20" },
    };
    const struct { const char *name, *no; bool *v; uint64_t bit; } f[] = {
        { "ecn", "no", &c->ecn, GW_PIE_ECN },
        { "bytemode", "no", &c->bytemode, GW_PIE_BYTEMODE },
        { "dq_rate_estimator", "no_", &c->estimator, GW_PIE_ESTIMATOR },
    };
    const char *w = a->word[*i];

    *taken = true;
    for (size_t k = 0; k < GW_ARRAY_LEN(n); k++)
        if (!strcmp(w, n[k].name)) {
            if (++*i >= a->count)
                return gw_tc_incomplete(err, w);
            return gw_pie_number(a, n[k].name, a->word[*i], n[k].v, n[k].time, n[k].most,
                                 n[k].bit, n[k].def, given, err);
        }
    for (size_t k = 0; k < GW_ARRAY_LEN(f); k++)
        if (gw_pie_flag(w, f[k].name, f[k].no, f[k].v)) {
            *given |= f[k].bit;
            return GW_OK;
        }
    *taken = false;
    return GW_OK;
}

static inline void gw_pie_show_time(struct gw_tc_out *o, const char *key, const char *fmt,
                                    uint32_t us)
{
    char buf[64];

    o->u64(o, key, NULL, us);
    o->str(o, NULL, fmt, o->time(o, us, buf));
}

static inline void gw_pie_show_flags(const struct gw_pie_params *p, struct gw_tc_out *o)
{
    if (p->ecn)
        o->flag(o, "ecn", "ecn ", true);
    if (p->bytemode)
        o->flag(o, "bytemode", "bytemode ", true);
    if (p->estimator)
        o->flag(o, "dq_rate_estimator", "dq_rate_estimator ", true);
}

#endif
