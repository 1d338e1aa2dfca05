/*
 * alg/segments.h - what transports share that cut a stream of bytes into numbered packets
 *
 * Sizes of packets, the fields of their headers in network order, and the timeout of those that
 * measure every packet's round trip (RFC 6298 without its first sample: the idle path's is known).
 */
#ifndef GRADWIRE_ALG_SEGMENTS_H
#define GRADWIRE_ALG_SEGMENTS_H

#include <gradwire/packet.h>
#include <gradwire/transport.h>

/* ---- sizes -------------------------------------------------------------------------------- */

/* Payload of a full packet: what the MTU leaves beside headers of @head_bytes, the Ethernet one
 * among them, and no more than @asked_bytes (0: no matter). 0: nothing fits. */
static inline uint32_t gw_seg_payload(uint64_t asked_bytes, uint32_t head_bytes,
                                      uint32_t mtu_bytes)
{
    uint32_t head = head_bytes - GW_ETH_BYTES;
    uint32_t mss = mtu_bytes > head ? mtu_bytes - head : 0;

    return asked_bytes && asked_bytes < mss ? (uint32_t)asked_bytes : mss;
}

/* Bytes that @payload takes in packets of @mss bytes and @head_bytes of headers each; how many go
 * to *frames, unless that is NULL. */
static inline uint64_t gw_seg_wire_bytes(uint64_t payload, uint32_t mss, uint32_t head_bytes,
                                         uint64_t *frames)
{
    uint64_t n = mss ? payload / mss + (payload % mss != 0) : 0;

    if (frames)
        *frames = n;
    return payload + n * head_bytes;
}

/* ---- headers ------------------------------------------------------------------------------ */

/* Both return the end. */
static inline uint8_t *gw_put16(uint8_t *b, uint32_t v)
{
    b[0] = (uint8_t)(v >> 8);
    b[1] = (uint8_t)v;
    return b + 2;
}

static inline uint8_t *gw_put32(uint8_t *b, uint32_t v)
{
    return gw_put16(gw_put16(b, v >> 16), v & 0xffff);
}

/* A UDP header of @p, which travels between the ports of its flow; the checksum is the host's. */
static inline uint8_t *gw_put_udp(const struct gw_pkt *p, const struct gw_flow_addr *a, uint8_t *b)
{
    bool reverse = p->flags & GW_PKT_REVERSE;

    b = gw_put16(b, reverse ? a->dst_port : a->src_port);
    b = gw_put16(b, reverse ? a->src_port : a->dst_port);
    b = gw_put16(b, p->len_bytes - GW_ETH_BYTES - 20);
    return gw_put16(b, 0);
}

/* ---- round trips -------------------------------------------------------------------------- */

struct gw_rtt {
    uint64_t smooth_ps, var_ps;
    uint32_t backoff;            /* the timeout is doubled as often                            */
};

static inline void gw_rtt_init(struct gw_rtt *r, uint64_t base_rtt_ps)
{
    *r = (struct gw_rtt){ .smooth_ps = base_rtt_ps, .var_ps = base_rtt_ps / 2 };
}

static inline void gw_rtt_sample(struct gw_rtt *r, uint64_t rtt_ps)
{
    uint64_t dev = rtt_ps > r->smooth_ps ? rtt_ps - r->smooth_ps : r->smooth_ps - rtt_ps;

    r->var_ps += dev / 4 - r->var_ps / 4;
    r->smooth_ps += rtt_ps / 8 - r->smooth_ps / 8;
}

static inline uint64_t gw_rtt_timeout(const struct gw_rtt *r, uint64_t min_ps)
{
    uint64_t rto = r->smooth_ps + 4 * r->var_ps;

    return (rto > min_ps ? rto : min_ps) << r->backoff;
}

#endif
