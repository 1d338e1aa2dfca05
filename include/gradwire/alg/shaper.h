/*
 * alg/shaper.h - token buckets as net/sched counts them, and their words as tc reads them
 *
 * Shared by tbf and htb. The kernel turns lengths into nanoseconds by a multiplication and a shift
 * (psched_ratecfg_precompute, psched_l2t_ns of Linux 6.1), which is below the exact quotient by up
 * to one nanosecond; this is kept, because departures follow from it. tc of iproute2 6.1 sends
 * buckets of htb as ticks of 64 ns that it computes from whole microseconds, and shows all buckets
 * by way of such ticks; conversions of doubles that do not fit follow the machine that it runs on
 * (64-bit integers, cut to 32 bits).
 */
#ifndef GRADWIRE_ALG_SHAPER_H
#define GRADWIRE_ALG_SHAPER_H

#include <gradwire/tc.h>

#define GW_TICK_SHIFT 6                   /* a tick of the packet schedulers is 64 ns          */
#define GW_TICKS_PER_US 15.625
#define GW_NS_PER_S INT64_C(1000000000)

/* A rate and how lengths count against it. Written by gw_ratecfg_set(). */
struct gw_ratecfg {
    uint64_t rate_bytes_s;
    uint32_t mult;
    uint16_t overhead, mpu;
    uint8_t  shift;
    bool     atm;                         /* 53 bytes for each 48 begun                        */
};

static inline void gw_ratecfg_set(struct gw_ratecfg *r, uint64_t rate_bytes_s, uint16_t overhead,
                                  uint16_t mpu, bool atm)
{
    uint64_t factor = (uint64_t)GW_NS_PER_S;

    *r = (struct gw_ratecfg){ .rate_bytes_s = rate_bytes_s, .mult = 1, .overhead = overhead,
                              .mpu = mpu, .atm = atm };
    if (!rate_bytes_s)
        return;
    for (;;) {
        r->mult = (uint32_t)(factor / rate_bytes_s);
        if (r->mult & (UINT32_C(1) << 31) || factor & (UINT64_C(1) << 63))
            break;
        factor <<= 1;
        r->shift++;
    }
}

/* Nanoseconds that @len bytes take. */
static inline int64_t gw_ratecfg_ns(const struct gw_ratecfg *r, uint32_t len)
{
    uint64_t bytes = (uint64_t)len + r->overhead;

    if (bytes < r->mpu)
        bytes = r->mpu;
    if (r->atm)
        bytes = (bytes + 47) / 48 * 53;
    return (int64_t)(bytes * r->mult >> r->shift);
}

/* Bits of frames of @len bytes that get through in a second; 0: no rate. */
static inline uint64_t gw_ratecfg_bps(const struct gw_ratecfg *r, uint32_t len)
{
    int64_t ns = gw_ratecfg_ns(r, len);

    return !r->rate_bytes_s ? 0 : ns > 0 ? gw_mul_div(len, UINT64_C(8000000000), (uint64_t)ns)
                                         : r->rate_bytes_s * 8;
}

/* What a conversion of @v to an unsigned int gives in tc: modulo 2^32, 0 if it is far too large. */
static inline uint32_t gw_tc_cut(double v)
{
    return v > -0x1p63 && v < 0x1p63 ? (uint32_t)(uint64_t)(int64_t)v : 0;
}

static inline uint32_t gw_tc_ticks(uint64_t rate_bytes_s, uint32_t bytes)
{
    return gw_tc_cut(gw_tc_cut(1e6 * ((double)bytes / (double)rate_bytes_s)) * GW_TICKS_PER_US);
}

static inline uint32_t gw_tc_ticks_us(uint32_t ticks)
{
    return gw_tc_cut(ticks / GW_TICKS_PER_US);
}

static inline uint32_t gw_tc_ticks_bytes(uint64_t rate_bytes_s, uint32_t ticks)
{
    return gw_tc_cut((double)rate_bytes_s * gw_tc_ticks_us(ticks) / 1e6);
}

/* A count to @base, at most @max; what follows the digits is an error. */
static inline bool gw_tc_count(const char *s, int base, uint32_t max, uint32_t *v)
{
    char *end;
    unsigned long long n;

    if (!*s)
        return false;
    n = strtoull(s, &end, base);
    if (end == s || *end || n > max)
        return false;
    *v = (uint32_t)n;
    return true;
}

/* Bytes with an optional "/CELL" behind, a power of two that nothing depends on any more. */
static inline bool gw_tc_size_cell(const char *s, uint32_t *bytes)
{
    const char *slash = strchr(s, '/');
    size_t n = slash ? (size_t)(slash - s) : strlen(s);
    char text[64];
    uint32_t cell;

    if (n >= sizeof text)
        return false;
    memcpy(text, s, n);
    text[n] = 0;
    if (!gw_tc_size(text, bytes))
        return false;
    return !slash || (gw_tc_count(slash + 1, 0, UINT32_C(1) << 30, &cell) && cell &&
                      !(cell & (cell - 1)));
}

static inline bool gw_tc_linklayer(const char *s, bool *atm)
{
    *atm = gw_tc_matches(s, "atm") || gw_tc_matches(s, "adsl");
    return *atm || gw_tc_matches(s, "ethernet");
}

/* Rate in bytes per second. */
static inline bool gw_tc_rate_bytes(const struct gw_tc_args *a, const char *s, uint64_t *bytes_s)
{
    uint64_t bps;

    if (!gw_tc_rate_bps(s, a->dev_rate_bps, &bps))
        return false;
    *bytes_s = bps / 8;
    return true;
}

/* A number of bytes: bare in JSON, in tc's spelling in text. */
static inline void gw_tc_show_size(struct gw_tc_out *o, const char *key, const char *fmt,
                                   uint64_t bytes)
{
    char buf[64];

    if (key)
        o->u64(o, key, NULL, bytes);
    if (fmt)
        o->str(o, NULL, fmt, o->size(o, bytes, buf));
}

static inline void gw_tc_show_rate(struct gw_tc_out *o, const char *key, const char *fmt,
                                   uint64_t bytes_s)
{
    char buf[64];

    if (key)
        o->u64(o, key, NULL, bytes_s);
    if (fmt)
        o->str(o, NULL, fmt, o->rate(o, bytes_s, buf));
}

#endif
