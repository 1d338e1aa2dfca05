/*
 * transport.h - the contract of transports and congestion controls
 *
 * A packet transport moves one byte stream from a source host to a destination host: a *flow* with
 * a sending half (struct gw_tx, touched only by events of the source host) and a receiving half
 * (struct gw_rx, only by events of the destination host). Messages are spans of the stream; the
 * host keeps their borders, the transport sees bytes. Several flows may carry one message
 * (`streams: 4`): the host splits it.
 *
 * A fluid transport (level GW_TP_FLUID) moves whole messages at rates that it shares out over the
 * links, without packets.
 *
 * A transport that may end a message with holes (datagrams, bounded loss) offers tx_message: it is
 * told the borders and says by gw_host.rx_message what came of each message, in any order; it calls
 * neither rx_deliver nor counts bytes in order. A message of it always takes one flow.
 *
 * Ownership: tx_packet() and rx_packet() take the packet and either emit it again (an ACK may reuse
 * the data packet) or free it with gw_host.pkt_free. Private state is allocated by the host, zeroed.
 */
#ifndef GRADWIRE_TRANSPORT_H
#define GRADWIRE_TRANSPORT_H

#include <gradwire/packet.h>
#include <gradwire/engine.h>
#include <gradwire/record.h>
#include <gradwire/rng.h>
#include <gradwire/param.h>

struct gw_tx;
struct gw_rx;

/* ---- congestion control ------------------------------------------------------------------- */

/* What an ACK brought; times in ps, amounts in bytes. */
struct gw_cc_ack {
    uint64_t now_ps;
    uint64_t acked_bytes;       /* newly cumulatively acked or sacked                          */
    uint64_t in_flight_bytes;   /* before this ACK                                             */
    uint64_t rtt_ps;            /* sample of this ACK, 0: none                                 */
    uint64_t srtt_ps, min_rtt_ps;
    uint64_t delivered_bytes;   /* since the flow began                                        */
    uint64_t rate_bps;          /* delivery rate sample, 0: none                               */
    uint64_t snd_una;           /* after the ACK: stream offset                                */
    uint64_t snd_nxt;
    uint32_t acked_pkts;
    bool     ece;               /* the ACK echoed a congestion mark                            */
    bool     cwnd_limited;      /* the window, not the application, held the sender back       */
    bool     app_limited;
    bool     in_recovery;
    bool     sample_app_limited;   /* the rate sample was taken while the application was slow   */
    uint8_t  state;                /* enum gw_cc_state                                           */
    uint64_t lost_bytes;           /* marked lost by this ACK                                    */
    uint64_t ce_bytes;             /* of acked_bytes: echoed as marked (exact echoes only)       */
    uint64_t in_flight_after_bytes;
    /* Rate sample of the newest packet acked: delivered_bytes when it left, and the time since
     * (the longer of the send and the ACK phase); 0: none. */
    uint64_t sample_prior_bytes, sample_ps;
    const struct gw_telemetry *telemetry;   /* what the hops wrote; NULL: nothing               */
};

enum gw_cc_state { GW_CC_OPEN, GW_CC_CWR, GW_CC_RECOVERY, GW_CC_LOSS };

/* What a congestion control asks of marks and of the receiver's echo. */
enum gw_cc_ecn {
    GW_CC_ECN_OPTION,           /* none, or RFC 3168 if the transport's option says so           */
    GW_CC_ECN_EXACT,            /* RFC 8257: ECT on all packets, each mark echoed exactly        */
};

struct gw_cc;

struct gw_cc_ops {
    size_t priv_bytes, conf_bytes;
    void (*init)(struct gw_cc *cc, uint64_t now_ps);
    void (*on_ack)(struct gw_cc *cc, const struct gw_cc_ack *ack);
    /* Loss found by duplicate ACKs/SACK or an ECN echo: once per window. Sets cc->ssthresh_bytes;
     * the transport itself steers cwnd during recovery and ends it at ssthresh. */
    void (*on_loss)(struct gw_cc *cc, const struct gw_cc_ack *ack, bool is_ecn);
    /* Retransmission timeout: sets ssthresh_bytes; the transport sets cwnd to one segment. */
    void (*on_timeout)(struct gw_cc *cc, const struct gw_cc_ack *ack);
    void (*on_exit_recovery)(struct gw_cc *cc, uint64_t now_ps);       /* optional            */
    void (*on_idle_restart)(struct gw_cc *cc, uint64_t idle_ps, uint64_t rto_ps); /* optional */
    void (*on_undo)(struct gw_cc *cc, uint64_t now_ps);                /* optional            */
    bool paces;                /* wants pacing_bps kept                                        */
    uint8_t ecn;               /* enum gw_cc_ecn                                               */
    bool telemetry;            /* wants the hops' queue lengths and byte counts (INT)          */
    bool paced_at_start;       /* paced before the first RTT sample too (rate-based)           */
    /* Optional: congestion notification packet (RoCE), or a negative acknowledgement. */
    void (*on_cnp)(struct gw_cc *cc, uint64_t now_ps);
    void (*on_nack)(struct gw_cc *cc, uint64_t now_ps);
    /* Optional, of who samples or paces: a segment leaves, so much was in flight before it. */
    void (*on_sent)(struct gw_cc *cc, uint64_t bytes, uint64_t in_flight_bytes, bool app_limited,
                    uint64_t now_ps);
    void (*fini)(struct gw_cc *cc);                 /* optional: stops its timers              */
    /* Wants rate samples; on_ack is then called for every ACK that brings something. */
    bool samples;
    /* Sets cwnd_bytes itself in every state: the transport neither reduces it in recovery nor
     * restores it afterwards, nor cuts it after idle time. A timeout still leaves one segment. */
    bool owns_window;
    /* Optional: an ACK with a sample that may end recovery, before it does, while cwnd_bytes is what
     * recovery has left; on_ack, if it is called for that ACK, then comes with rtt_ps 0. */
    void (*on_sample)(struct gw_cc *cc, const struct gw_cc_ack *ack);
    /* Loss halves its window or nearly so: what is lost with probability p leaves it about
     * sqrt(1.5 / p) segments a round trip. For what `explain` says. */
    bool loss_based;
    /* Optional: what it lacks where all switch ports are plain FIFOs, for a warning. */
    const char *fifo_advice;
    void (*spare[5])(void);
};

struct gw_cc {
    const struct gw_cc_ops *ops;
    void    *priv, *conf;
    uint64_t cwnd_bytes;        /* congestion window                                           */
    uint64_t ssthresh_bytes;    /* UINT64_MAX: none yet                                        */
    uint64_t pacing_bps;        /* 0: do not pace                                              */
    uint32_t mss_bytes;         /* payload of a full segment                                   */
    uint32_t initial_window;    /* segments                                                    */
    struct gw_rng rng;
    /* For timers of its own (struct gw_timer in priv) and for facts of the path. */
    const struct gw_host *host;
    void    *net;
    uint32_t comp;
    uint64_t nic_rate_bps;      /* of the source host's link, 0: infinitely fast               */
    uint64_t base_rtt_ps;       /* of a full segment and its ACK on the idle path              */
    uint64_t tick_ps;           /* of the clock of the host's kernel, 0: exact                 */
    /* Window or rate has grown outside an ACK: the transport goes on sending. Set by it. */
    void   (*wake)(struct gw_cc *cc, uint64_t now_ps);
    void    *tx;                /* struct gw_tx                                                */
    uint64_t next_send_ps;      /* by the pace, no segment before; written by the transport    */
    bool     ecn_refused;       /* the peer does not echo as ops->ecn asks; by the transport   */
    bool     low_rate;          /* set by the cc: what leaves now is slow on purpose, so that its
                                   samples count as limited by the application                 */
};

/* ---- packet transports -------------------------------------------------------------------- */

enum gw_tp_level { GW_TP_PACKET, GW_TP_FLUID };

struct gw_flow_stats {          /* written by the transport                                    */
    uint64_t sent_pkts, sent_bytes;          /* payload, retransmissions included              */
    uint64_t retrans_pkts, retrans_bytes;
    uint64_t timeouts, recoveries, spurious;
    uint64_t acks_in, ce_in;
    uint64_t ce_bytes;                       /* acked as marked (exact echoes)                */
};

struct gw_tx {
    const struct gw_transport_ops *ops;
    const struct gw_host *host;
    void    *net;               /* opaque: first argument of host calls                        */
    const void *conf;
    void    *priv;              /* tx_bytes                                                    */
    struct gw_cc cc;            /* ops NULL if the transport has none                          */
    struct gw_flow_stats stats;
    uint64_t written_bytes;     /* end of the stream so far; the host moves it, then tx_write  */
    uint32_t flow, src, dst;    /* indices of the flow and of the two hosts                    */
    uint32_t comp;              /* component of the source host, for timers                    */
    uint32_t mtu_bytes;         /* smallest IP MTU of the path                                 */
    uint8_t  priority, dscp;
    bool     closing;           /* nothing will be written any more                            */
    uint64_t base_rtt_ps;       /* of a full frame and its ACK on the idle path                */
    uint64_t nic_rate_bps;      /* of the source host's link, 0: infinitely fast               */
    bool     traced;            /* gw_host.trace wants a line per packet; host-written         */
    void    *shared;            /* shared_bytes, of all flows of the transport at this host    */
    uint64_t at_bytes;          /* set before emit_tx: stream offset of what the packet is for  */
};

struct gw_rx {
    const struct gw_transport_ops *ops;
    const struct gw_host *host;
    void    *net;
    const void *conf;
    void    *priv;              /* rx_bytes                                                    */
    uint32_t flow, src, dst;
    uint32_t comp;              /* component of the destination host                           */
    uint32_t mtu_bytes;
    uint64_t base_rtt_ps;       /* as the sender's                                             */
    uint64_t nic_rate_bps;      /* of the link into the destination host, 0: infinitely fast   */
    void    *shared;            /* as the sender's, of the destination host                    */
};

#define GW_TRAILER_MAX 16u
#define GW_L4_MAX 60u            /* bytes that encode() writes at most                          */

/* Addresses for real headers; host-written. Multi-byte fields in host order. */
struct gw_flow_addr {
    uint32_t src_ip, dst_ip;
    uint16_t src_port, dst_port;
};

/* ---- fluid transports --------------------------------------------------------------------- */

struct gw_fluid_flow {          /* one message under way; host-owned                           */
    uint64_t bytes;
    uint32_t path_len;
    const uint32_t *path;       /* directed link indices                                       */
    uint64_t latency_ps;        /* sum of delays, added by the host after the last bit         */
    void    *fluid;             /* fluid_flow_bytes of private state, zeroed                   */
};

struct gw_fluid {
    const struct gw_transport_ops *ops;
    const struct gw_host *host;
    void    *net;
    const void *conf;
    void    *priv;              /* fluid_bytes                                                 */
    uint32_t link_count;        /* directed links                                              */
    const uint64_t *link_rate_bps;  /* 0: infinitely fast                                      */
    uint32_t comp;              /* its component: sorts behind all others at equal times       */
};

/* What a packet is, seen from outside. Offsets count the flow's bytes from 0. */
enum gw_pkt_what {
    GW_WHAT_OPEN = 1,            /* asks for a connection or, reverse, grants it               */
    GW_WHAT_DATA = 2,            /* carries bytes of the stream                                */
    GW_WHAT_ACK = 4,             /* says what has come                                         */
    GW_WHAT_CLOSE = 8,           /* the stream ends                                            */
};

struct gw_pkt_facts {
    uint64_t offset;             /* data: of its first byte; ACK: next byte expected. Of who
                                    counts bytes                                               */
    uint32_t bytes;              /* payload                                                    */
    uint8_t  what;               /* or of enum gw_pkt_what; 0: nothing is known                */
    uint64_t number;             /* data: the packet's on its flow, from 0, the same each time it
                                    is sent; UINT64_MAX: the transport counts bytes            */
};

/* For describe() of who numbers packets: data, or an answer of any kind. */
static inline void gw_pkt_numbered(struct gw_pkt_facts *f, bool data, uint64_t number,
                                   uint32_t bytes)
{
    f->what = data ? GW_WHAT_DATA : GW_WHAT_ACK;
    if (data) {
        f->number = number;
        f->bytes = bytes;
    }
}

/* ---- ops ---------------------------------------------------------------------------------- */

struct gw_transport_ops {
    enum gw_tp_level level;
    size_t conf_bytes;
    size_t tx_bytes, rx_bytes;             /* packet level                                     */
    size_t fluid_bytes, fluid_flow_bytes;  /* fluid level                                      */
    uint32_t header_bytes;                 /* L2 to L4 headers of a data packet incl. Ethernet */

    enum gw_status (*tx_init)(struct gw_tx *tx, uint64_t now_ps, struct gw_error *err);
    enum gw_status (*rx_init)(struct gw_rx *rx, uint64_t now_ps, struct gw_error *err);
    void (*tx_fini)(struct gw_tx *tx);
    void (*rx_fini)(struct gw_rx *rx);
    /* tx->written_bytes has grown (or closing was set). */
    void (*tx_write)(struct gw_tx *tx, uint64_t now_ps);
    void (*tx_packet)(struct gw_tx *tx, struct gw_pkt *p, uint64_t now_ps);
    void (*rx_packet)(struct gw_rx *rx, struct gw_pkt *p, uint64_t now_ps);
    /* The NIC had no room for this flow when gw_host.nic_room was asked; now it has. */
    void (*tx_room)(struct gw_tx *tx, uint64_t now_ps);
    /* Writes the L4 header (with options, checksum field 0) of @p; returns its length, at most
     * GW_L4_MAX, and the IP protocol number. For captures, filters of tc, real networks. */
    uint32_t (*encode)(const struct gw_pkt *p, const void *ext, const struct gw_flow_addr *a,
                       uint8_t *buf, uint8_t *ip_proto);
    /* Bytes that @payload bytes take on the wire as frames without FCS, and how many frames. */
    uint64_t (*wire_bytes)(const void *conf, uint64_t payload, uint32_t mtu_bytes,
                           uint64_t *frames);
    size_t ext_bytes;                      /* of a packet extension, 0: none used              */
    /* Where in the extension a struct gw_telemetry stands, for packets with GW_PKT_INT. */
    size_t telemetry_offset;

    enum gw_status (*fluid_init)(struct gw_fluid *f, struct gw_error *err);
    void (*fluid_fini)(struct gw_fluid *f);
    void (*fluid_start)(struct gw_fluid *f, struct gw_fluid_flow *x, uint64_t now_ps);
    /* Optional, both levels: steady-state skipping. */
    bool (*freeze)(void *half);
    void (*skip)(void *half, uint64_t until_ps);

    /* Optional, packet level: messages may end with holes. [start, end) of the stream is one
     * message; comes before the tx_write that covers it. tx_acked then means that the sender is
     * done with the bytes, wherever they are. */
    void (*tx_message)(struct gw_tx *tx, uint64_t start, uint64_t end, uint64_t now_ps);
    /* With tx_message, optional: the receiver's program expects this message, sent at @sent_ps.
     * Told for each message, in their order and ahead of its packets, at no cost on the network;
     * it is the receive that a program has posted. Must not call rx_message itself. */
    void (*rx_expect)(struct gw_rx *rx, uint64_t start, uint64_t end, uint64_t sent_ps,
                      uint64_t now_ps);
    /* Optional: what @p is, for those who look at it on its way (scripted channels); @facts comes
     * with nothing known and number UINT64_MAX. */
    void (*describe)(const struct gw_pkt *p, struct gw_pkt_facts *facts);
    /* Optional: names of the columns, with commas between, of the lines that a traced sender hands
     * to gw_host.trace: one per packet sent or received, with its state behind it. */
    const char *trace_columns;
    /* Optional: writes what stands behind the payload (an invariant CRC) to @end, at most
     * GW_TRAILER_MAX bytes, and returns how many; they are part of len_bytes. @frame has @len bytes
     * from the Ethernet header on, all but the first @used zeros. Such a transport fills in its own
     * L4 checksum. */
    uint32_t (*trailer)(const struct gw_pkt *p, const uint8_t *frame, uint32_t used, uint32_t len,
                        uint8_t *end);
    /* State that all halves of flows at one host share (a receiver's pulls), zeroed; touched only
     * by events of that host. 0: none. It lives to the end of the run. */
    size_t shared_bytes;
    bool   sprays;              /* each packet takes its own way, whatever `route:` says       */
    /* Optional, packet level: can a flow be opened with this configuration and congestion control
     * (NULL: none) over a path whose smallest IP MTU is @mtu_bytes? For a refusal before the run; the
     * sentence comes without a place. */
    enum gw_status (*check)(const void *conf, const struct gw_cc_ops *cc, uint32_t mtu_bytes,
                            struct gw_error *err);
    /* Of who emits super-packets: makes the transport's header of @p that of segment @i; the rest of
     * @p is the host's and still says what the super-packet was. */
    void (*segment)(struct gw_pkt *p, uint32_t i);
    const char *fifo_advice;   /* optional: as a congestion control's                           */
    void (*spare[2])(void);
};

#endif
