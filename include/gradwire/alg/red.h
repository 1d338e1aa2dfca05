/*
 * alg/red.h - Random Early Detection: the average, the decision, and tc's derivation of constants
 *
 * Integer RED as Linux 6.1 computes it: the average is a fixed-point number with its point at Wlog;
 * between min and max the count since the last mark is compared with a random number that is drawn
 * anew only at a mark, so that gaps are uniform on 1..1/p, not geometric, and the long-run rate is
 * about twice p (Floyd, Jacobson, "Random early detection gateways", ToN 1993, method 2).
 * The constants come from what the user says the way iproute2 6.1 derives them, in floating point,
 * with its oddities: the idle table is built in units of 64 ns but read with microseconds, and a
 * probability of 1 or more wraps and is replaced by a power of two.
 * Used by red, gred, choke and sfq. Left out: nothing that a packet can notice.
 */
#ifndef GRADWIRE_ALG_RED_H
#define GRADWIRE_ALG_RED_H

#include <gradwire/plugin.h>

enum { GW_RED_ECN = 1, GW_RED_HARDDROP = 2, GW_RED_ADAPTATIVE = 4, GW_RED_NODROP = 8 };
enum { GW_RED_STAB = 256 };

/* What the user said, in tc's units; min and max in bytes or (choke) packets. */
struct gw_red_words {
    uint32_t limit, min, max;
    uint32_t burst, avpkt;
    uint32_t rate;               /* bytes/s                                                    */
    uint32_t flags;
    double   probability;
};

/* What tc sends to the kernel. */
struct gw_red_conf {
    uint32_t limit, min, max;
    uint32_t max_p;              /* of 2^32; 0: from plog                                      */
    uint32_t flags;
    uint8_t  wlog, plog, scell_log;
    uint8_t  stab[GW_RED_STAB];
};

/* Constants and state of one average. */
struct gw_red {
    uint32_t min, max;           /* << wlog                                                    */
    uint32_t delta;              /* max - min, at least 1                                      */
    uint32_t max_p, step;        /* step: max_p / delta, at least 1                            */
    uint32_t target_min, target_max;
    uint32_t scell_max;
    uint8_t  scell_log, wlog, plog;
    uint8_t  stab[GW_RED_STAB];
    int32_t  count;              /* packets since the last mark, -1: none seen                 */
    uint32_t draw;               /* the random number in force                                 */
    uint64_t avg;                /* << wlog                                                    */
    uint64_t idle_ns;            /* since when, if idle                                        */
    bool     idle;
};

enum gw_red_verdict { GW_RED_PASS, GW_RED_PROB, GW_RED_HARD };

/* ---- tc's derivation ---------------------------------------------------------------------- */

/* Smallest Wlog with burst + 1 - min/avpkt <= (1 - (1-W)^burst) / W; -1: none. */
static inline int gw_red_wlog(uint32_t min, uint32_t burst, uint32_t avpkt)
{
    double w = 0.5, a = (double)burst + 1 - (double)min / avpkt;

    for (int wlog = 1; wlog < 32; wlog++, w /= 2)
        if (a <= (1 - pow(1 - w, burst)) / w)
            return wlog;
    return -1;
}

/* max_P / (max - min) as a power of two; -1: there is none. */
static inline int gw_red_plog(uint32_t min, uint32_t max, double p)
{
    int32_t range = (int32_t)(max - min);

    if (!range)
        return 0;
    if (range < 0)
        return -1;
    p /= range;
    for (int i = 0; i < 32; i++, p *= 2)
        if (p > 1.0)
            return i;
    return -1;
}

/* A double in a byte, as x86 cuts it: by way of an int. */
static inline uint8_t gw_red_byte(double v)
{
    return v > -2147483649.0 && v < 2147483648.0 ? (uint8_t)(int32_t)v : 0;
}

/* A double in 32 bits, as x86-64 cuts it: by way of 64 of them. */
static inline uint32_t gw_red_u32(double v)
{
    return v < 9223372036854775808.0 ? (uint32_t)(uint64_t)v : 0;
}

/*
 * stab[t >> Scell_log] = -log2-like damping for idle time t; returns Scell_log. tc divides by
 * 1 << Scell_log, an int that is negative at 31, so that its search ends there at the latest.
 */
static inline int gw_red_idle_table(int wlog, uint32_t avpkt, uint32_t rate, uint8_t *stab)
{
    double us = 1e6 * ((double)avpkt / rate);
    double ticks = gw_red_u32(gw_red_u32(us) * 15.625);
    double lw = -log(1.0 - 1.0 / (1u << wlog)) / ticks, longest = 31 / lw;
    int clog = 0;

    while (clog < 31 && !(longest / (double)(1u << clog) < 512))
        clog++;
    stab[0] = 0;
    for (uint32_t i = 1; i < GW_RED_STAB - 1; i++) {
        stab[i] = gw_red_byte((double)(int32_t)(i << clog) * lw);
        if (stab[i] > 31)
            stab[i] = 31;
    }
    stab[GW_RED_STAB - 1] = 31;
    return clog;
}

/*
 * gw_red_derive() - what tc sends for what the user said
 *
 * @unit is the size of one unit of min and max in bytes (1, or avpkt for choke); the three values
 * must be complete. @idle: with the table of idle times (sfq has none).
 */
static inline enum gw_status gw_red_derive(const char *kind, const struct gw_red_words *w,
                                           uint32_t unit, bool idle, struct gw_red_conf *c,
                                           struct gw_error *err)
{
    uint32_t min = w->min * unit, max = w->max * unit;
    double p32 = w->probability * 4294967296.0;
    int v;

    if (!w->avpkt)
        return gw_fail(err, GW_SYNTAX, "%s: \"avpkt\" is 0; the mean size of a packet in bytes, "
                       "such as 1000, is right", kind);
    if ((double)w->burst + 1 - (double)min / w->avpkt < 1.0)
        return gw_fail(err, GW_SYNTAX, "%s: burst %u is too small ? Try burst %u", kind, w->burst,
                       1 + min / w->avpkt);
    v = gw_red_wlog(min, w->burst, w->avpkt);
    if (v < 0)
        return gw_fail(err, GW_SYNTAX, "%s: burst %u is too large to find a weight for the "
                       "average; about (2 min + max) / (3 avpkt) is right", kind, w->burst);
    c->wlog = (uint8_t)v;
    v = gw_red_plog(min, max, w->probability);
    if (v < 0)
        return gw_fail(err, GW_SYNTAX, "%s: probability %g does not fit min %u and max %u; a "
                       "fraction above 0, such as 0.02, and min below max are right", kind,
                       w->probability, w->min, w->max);
    c->plog = (uint8_t)v;
    c->scell_log = 0;
    memset(c->stab, 0, sizeof c->stab);
    if (idle)
        c->scell_log = (uint8_t)gw_red_idle_table(c->wlog, w->avpkt, w->rate, c->stab);
    c->limit = w->limit;
    c->min = w->min;
    c->max = w->max;
    c->flags = w->flags;
    c->max_p = p32 < 9e18 ? (uint32_t)(uint64_t)p32 : 0;
    return GW_OK;
}

/* ---- the kernel's part -------------------------------------------------------------------- */

static inline uint32_t gw_red_bits(uint32_t v)
{
    return v ? 32 - (uint32_t)__builtin_clz(v) : 0;
}

/* The kernel refuses thresholds that overflow its fixed point. */
static inline enum gw_status gw_red_check(const char *kind, const struct gw_red_conf *c,
                                          struct gw_error *err)
{
    bool bad = gw_red_bits(c->min) + c->wlog >= 32 || gw_red_bits(c->max) + c->wlog >= 32 ||
               c->scell_log >= 32 || c->max < c->min;

    for (size_t i = 0; i < GW_RED_STAB; i++)
        bad |= c->stab[i] >= 32;
    if (bad)
        return gw_fail(err, GW_PARAM, "%s: min %u and max %u with a weight of 1/2^%u of the "
                       "average do not fit in 32 bits; smaller ones or a smaller burst are "
                       "right", kind, c->min, c->max, c->wlog);
    return GW_OK;
}

/* Forgets the average, as a change of constants does. */
static inline void gw_red_forget(struct gw_red *r)
{
    r->avg = 0;
    r->count = -1;
}

/* Takes the constants of @c; the average is forgotten. */
static inline void gw_red_set(struct gw_red *r, const struct gw_red_conf *c)
{
    uint32_t delta = c->max > c->min ? c->max - c->min : 1;

    r->min = c->min << c->wlog;
    r->max = c->max << c->wlog;
    r->wlog = c->wlog;
    r->plog = c->plog;
    r->delta = delta;
    r->max_p = c->max_p ? c->max_p : (c->plog < 32 ? UINT32_MAX >> c->plog : UINT32_MAX) * delta;
    r->step = r->max_p / delta ? r->max_p / delta : 1;
    r->target_min = c->min + 2 * (delta / 5);
    r->target_max = c->min + 3 * (delta / 5);
    r->scell_log = c->scell_log;
    r->scell_max = UINT32_C(255) << c->scell_log;
    memcpy(r->stab, c->stab, sizeof r->stab);
    gw_red_forget(r);
}

/* What the average has decayed to since the queue became empty. */
static inline uint64_t gw_red_idle_avg(const struct gw_red *r, uint64_t now_ns)
{
    uint64_t us = (now_ns - r->idle_ns) / 1000;
    uint32_t shift;

    if (us > r->scell_max)
        us = r->scell_max;
    shift = r->stab[(us >> r->scell_log) & (GW_RED_STAB - 1)];
    if (shift)
        return r->avg >> shift;
    us = (r->avg * us) >> r->scell_log;
    return us < r->avg >> 1 ? r->avg - us : r->avg >> 1;
}

static inline uint64_t gw_red_busy_avg(const struct gw_red *r, uint64_t backlog)
{
    return r->avg + (backlog - (r->avg >> r->wlog));
}

/* The average at an arrival that finds @backlog waiting; ends an idle period. */
static inline void gw_red_arrive(struct gw_red *r, uint64_t backlog, uint64_t now_ns)
{
    r->avg = r->idle ? gw_red_idle_avg(r, now_ns) : gw_red_busy_avg(r, backlog);
    r->idle = false;
}

static inline void gw_red_empty(struct gw_red *r, uint64_t now_ns)
{
    if (!r->idle)
        r->idle_ns = now_ns;
    r->idle = true;
}

static inline uint32_t gw_red_draw(const struct gw_red *r, struct gw_rng *rng)
{
    return gw_rng_u32(rng) / r->step;
}

/* Between the thresholds: is this packet the one? Counts it and draws when needed. */
static inline bool gw_red_between(struct gw_red *r, uint64_t avg, struct gw_rng *rng)
{
    if (!++r->count) {
        r->draw = gw_red_draw(r, rng);
        return false;
    }
    if (((avg - r->min) >> r->wlog) * (uint32_t)r->count < r->draw)
        return false;
    r->count = 0;
    r->draw = gw_red_draw(r, rng);
    return true;
}

/* The decision for the average @avg (r->avg, or with others' added). */
static inline enum gw_red_verdict gw_red_decide(struct gw_red *r, uint64_t avg, struct gw_rng *rng)
{
    if (avg < r->min) {
        r->count = -1;
        return GW_RED_PASS;
    }
    if (avg >= r->max) {
        r->count = -1;
        return GW_RED_HARD;
    }
    return gw_red_between(r, avg, rng) ? GW_RED_PROB : GW_RED_PASS;
}

/* Adaptive RED, every half second (Floyd, Gummadi, Shenker 2001). */
static inline void gw_red_adapt(struct gw_red *r, uint64_t now_ns)
{
    const uint32_t percent = UINT32_C(42949673);     /* of 2^32, rounded                       */
    uint64_t avg = (r->idle ? gw_red_idle_avg(r, now_ns) : r->avg) >> r->wlog;

    if (avg > r->target_max && r->max_p <= 50 * percent)
        r->max_p += r->max_p / 4 < percent ? r->max_p / 4 : percent;
    else if (avg < r->target_min && r->max_p >= percent)
        r->max_p = r->max_p / 10 * 9;
    r->step = (uint32_t)(((uint64_t)r->max_p + r->delta / 2) / r->delta);
    r->step += !r->step;
}

/* ---- showing ------------------------------------------------------------------------------ */

static inline void gw_red_show_flags(uint32_t flags, struct gw_tc_out *o)
{
    o->flag(o, "ecn", "ecn ", flags & GW_RED_ECN);
    o->flag(o, "harddrop", "harddrop ", flags & GW_RED_HARDDROP);
    o->flag(o, "adaptive", "adaptive ", flags & GW_RED_ADAPTATIVE);
    o->flag(o, "nodrop", "nodrop ", flags & GW_RED_NODROP);
}

static inline void gw_red_show_size(struct gw_tc_out *o, const char *key, const char *fmt,
                                    uint64_t v)
{
    char buf[64];

    o->u64(o, key, NULL, v);
    o->str(o, NULL, fmt, o->size(o, v, buf));
}

/* `-d`: ewma, probability, Scell_log. */
static inline void gw_red_show_details(const struct gw_red *r, const char *scell_fmt,
                                       struct gw_tc_out *o)
{
    if (!o->details)
        return;
    o->u64(o, "ewma", "ewma %llu ", r->wlog);
    if (r->max_p)
        o->real(o, "probability", "probability %g ", r->max_p / 4294967296.0);
    else
        o->u64(o, "Plog", "Plog %llu ", r->plog);
    o->u64(o, "Scell_log", scell_fmt, r->scell_log);
}

#endif
