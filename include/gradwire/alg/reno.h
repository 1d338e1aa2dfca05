/*
 * alg/reno.h - growth and halving of a window as reno does it (RFC 5681, Linux's tcp_cong.c)
 *
 * Slow start counts acknowledged bytes, so delayed ACKs do not slow it down; above ssthresh the
 * window grows by a segment for each window acknowledged, in whole segments.
 */
#ifndef GRADWIRE_ALG_RENO_H
#define GRADWIRE_ALG_RENO_H

#include <gradwire/transport.h>

/* Half the window in whole segments, at least two. */
static inline uint64_t gw_reno_half(const struct gw_cc *cc)
{
    uint64_t half = cc->cwnd_bytes / 2;

    half -= half % cc->mss_bytes;
    return half < 2u * cc->mss_bytes ? 2u * cc->mss_bytes : half;
}

/* @acked more bytes have arrived; *credit: acked since the window last grew. */
static inline void gw_reno_grow(struct gw_cc *cc, uint64_t *credit_bytes, uint64_t acked)
{
    if (cc->cwnd_bytes < cc->ssthresh_bytes) {
        uint64_t room = cc->ssthresh_bytes - cc->cwnd_bytes;
        uint64_t used = acked < room ? acked : room;

        cc->cwnd_bytes += used;
        acked -= used;
    }
    if (!acked)
        return;
    if (*credit_bytes >= cc->cwnd_bytes) {       /* gathered at a larger window: apply it gently */
        *credit_bytes = 0;
        cc->cwnd_bytes += cc->mss_bytes;
    }
    *credit_bytes += acked;
    if (*credit_bytes >= cc->cwnd_bytes) {
        *credit_bytes -= cc->cwnd_bytes;
        cc->cwnd_bytes += cc->mss_bytes;
    }
}

#endif
