/*
 * packet.h - the packet: 64 public bytes and 32 that belong to the transport
 *
 * A packet is never a byte string: real headers are made only when it is captured or leaves the
 * machine. len_bytes is the Ethernet frame without FCS, what queue disciplines, tc counters and
 * captures count. Packets come from the network's slab; plugins never allocate or free memory for
 * them but ask the host (gw_host.pkt_alloc, gw_host.pkt_free).
 *
 * A super-packet (seg_count above 1) is several segments of a transport that travel as one, as Linux
 * hands them to a device with segmentation offload. Its length is that of all their frames, as
 * qdisc_pkt_len counts; a capture shows it with one header, as the kernel does. Who must take it
 * apart asks the host (gw_host.pkt_segment, gw_host.qdisc_segments).
 */
#ifndef GRADWIRE_PACKET_H
#define GRADWIRE_PACKET_H

#include <gradwire/base.h>

enum gw_ecn { GW_ECN_NOT_ECT = 0, GW_ECN_ECT1 = 1, GW_ECN_ECT0 = 2, GW_ECN_CE = 3 };

enum gw_pkt_flag {
    GW_PKT_REVERSE = 1,      /* travels from the flow's receiver to its sender (an ACK)        */
    GW_PKT_TRIMMED = 2,      /* payload cut off by a queue; orig_len_bytes has the old length. With
                                GW_PKT_REVERSE: a header that comes back to its sender          */
    GW_PKT_FRAME   = 4,      /* a numbered test frame of `traffic: frames`; no transport       */
    GW_PKT_CORRUPT = 8,      /* bits were flipped on the way (gw_host.pkt_flip); receivers discard
                                it if a check sum sees them                                    */
    GW_PKT_RETRANS = 16,     /* a retransmission, for the books                                */
    GW_PKT_COPY    = 32,     /* a duplicate that netem made: not duplicated again              */
    GW_PKT_TRIMMABLE = 128,  /* its transport makes use of the header if the payload is cut off */
    GW_PKT_INT     = 64,     /* its extension holds a gw_telemetry that every port appends to  */
    GW_PKT_PAUSE   = GW_PKT_FRAME | GW_PKT_RETRANS,   /* both: a pause frame: quanta, priority */
};

/* In-band telemetry: what each port saw when the packet left it (HPCC, SIGCOMM 2019, section 3). */
#define GW_TELEMETRY_HOPS 8u
struct gw_telemetry_hop {
    uint64_t now_ps;
    uint64_t tx_bytes;             /* ever sent by the port, with framing                       */
    uint64_t queue_bytes;          /* left behind                                               */
    uint64_t rate_bps;
};
struct gw_telemetry {
    uint32_t count;
    struct gw_telemetry_hop hop[GW_TELEMETRY_HOPS];
};

/* The bits of a corrupted packet that are not as they were sent; in the network's slab. */
#define GW_FLIPS 15u
struct gw_flips {
    uint32_t count;                /* at most GW_FLIPS: a frame is not damaged further          */
    uint32_t bit[GW_FLIPS];        /* 8 * byte of the frame + n: 1 << n of that byte; beyond the
                                      frame: its check sum                                      */
};

/* UDP ports of test frames, which belong to no flow: source, to which the frame's flow is added, and
 * destination (discard). In captures and for filters. */
#define GW_FRAME_SRC_PORT 10000u
#define GW_FRAME_DST_PORT 9u

struct gw_pkt {
    struct gw_pkt *next;           /* queue link, used by whoever holds the packet             */
    uint64_t       stamp_ps;       /* when it entered the queue; in flight: when it arrives    */
    uint32_t       len_bytes;      /* Ethernet frame without FCS                               */
    uint32_t       sched_bytes;    /* length that disciplines count: len_bytes, or by `stab`;
                                      set by the port before the tree sees the packet          */
    uint32_t       flow;           /* flow index in the network; of a frame: the user's number */
    uint32_t       src, dst;       /* node indices of the two hosts                            */
    uint32_t       hash;           /* entropy for ECMP and flow queues; from the flow          */
    uint32_t       in_port;        /* port it came in by, for buffer accounting and pauses     */
    uint32_t       ext;            /* extension index in its own slab, GW_NONE: none           */
    uint32_t       priority;       /* skb->priority: 0..15, or a class id (major << 16 | minor)*/
    uint32_t       tag;            /* training tags of the message: layer << 8 | class         */
    uint16_t       orig_len_bytes; /* length before trimming, else 0                           */
    uint16_t       seg_bytes;      /* super-packet: frame of each segment but the last, else 0 */
    uint8_t        seg_count;      /* super-packet: number of segments, else 0 or 1            */
    uint8_t        ecn;            /* enum gw_ecn                                              */
    uint8_t        dscp;           /* 0..63                                                    */
    uint8_t        flags;          /* enum gw_pkt_flag                                         */
    uint64_t       tp[4];          /* the transport's header, its own layout, 32 bytes         */
};
_Static_assert(offsetof(struct gw_pkt, tp) == 64, "the public head is one cache line");
_Static_assert(sizeof(struct gw_pkt) == 96, "bytes per live packet are the lever beyond L2");

static inline bool gw_pkt_is_pause(const struct gw_pkt *p)
{
    return (p->flags & GW_PKT_PAUSE) == GW_PKT_PAUSE;
}

/* A plain queue of packets, for qdiscs; zero-initialised is empty. */
struct gw_pktq {
    struct gw_pkt *head, *tail;
    uint32_t       count;
    uint64_t       bytes;          /* of sched_bytes                                           */
};

static inline void gw_pktq_push(struct gw_pktq *q, struct gw_pkt *p)
{
    p->next = NULL;
    if (q->tail)
        q->tail->next = p;
    else
        q->head = p;
    q->tail = p;
    q->count++;
    q->bytes += p->sched_bytes;
}

static inline void gw_pktq_push_head(struct gw_pktq *q, struct gw_pkt *p)
{
    p->next = q->head;
    q->head = p;
    if (!q->tail)
        q->tail = p;
    q->count++;
    q->bytes += p->sched_bytes;
}

static inline struct gw_pkt *gw_pktq_pop(struct gw_pktq *q)
{
    struct gw_pkt *p = q->head;

    if (!p)
        return NULL;
    q->head = p->next;
    if (!q->head)
        q->tail = NULL;
    q->count--;
    q->bytes -= p->sched_bytes;
    p->next = NULL;
    return p;
}

#endif
