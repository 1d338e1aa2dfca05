/*
 * tp_tcp - TCP, one byte stream from a host to a host
 *
 * What it imitates: the TCP of Linux 6.1 as its packets show it. Three-way handshake with options,
 * slow start from 10 segments by acknowledged bytes (RFC 5681, RFC 6928), timestamps (RFC 7323),
 * SACK (RFC 2018) with a scoreboard by RACK's rule (RFC 8985): what was sent before something that
 * has arrived is lost, at once after three SACKed segments, else a quarter RTT later; lost
 * retransmissions and a lost end of the stream are found by the same rule. Proportional rate
 * reduction (RFC 6937), tail loss probe, RTO by RFC 6298 with Linux's floor of 200 ms on the
 * variance term, F-RTO (RFC 5682), undo of spurious cuts by timestamps (RFC 3522) and D-SACKs (RFC
 * 3708), which also widen RACK's window, NewReno without SACK (RFC 6582, duplicates counted as
 * SACKs), classic ECN (RFC 3168) and exact echoes (RFC 8257), delivery rates for who asks
 * (tcp_rate.c), pacing in bursts of a millisecond, window validation and slow start after idle,
 * delayed ACKs with 16 quick ones, FIN exchange. Who gets no answer gives up as Linux does: after 6
 * repeated SYNs, and when nothing has been acknowledged since a first timeout for the time that 15
 * retries from 200 ms take (924.6 s). The flow then stays unfinished.
 *
 * How it counts: positions are 64-bit stream offsets; the wire has their low 32 bits above an
 * initial number made from the flow. The FIN is one byte of that space behind the stream. Windows
 * are bytes, in which a short last segment counts as a whole one where they grow. In order and
 * without loss no list is touched. A data packet carries the picosecond at
 * which it left and its ACK brings that back: RFC 7323's echo with an exact clock, of the segment
 * that caused the ACK; the header written for captures has the kernel's milliseconds and its rule
 * (the last segment in order). Retransmissions are thus never ambiguous. When other segments left
 * follows from the pauses of the sender, of which it remembers the longest: round trips are of the
 * oldest segment that an ACK is for, those of repairs in milliseconds. The ACK is the data packet
 * turned round.
 *
 * The receiver has a prompt reader. Its window is half of its buffer, which starts at 128 KiB and
 * is sized anew once a round trip for what came in it and as much growth again; while the window
 * grows each segment is acknowledged. Behind a gap the first ACKs go at once, later ones are held
 * back for a millisecond, but not so long that blocks would be forgotten. What comes twice is told
 * (RFC 2883). Behind a pause ACKs are quick again. Timers come with the kernel's tick. With `tso`
 * the stream is cut into super-segments, whose borders follow from how the application fills the
 * socket's buffers; without, segments leave one by one as soon as the window lets them. They are cut
 * into segments at the device, as without offloads; with `offload` they cross the network whole, as
 * super-packets (packet.h), and are resent in pieces as long as the window and the rate allow. With
 * `gro` what comes back to back is merged again by the rules of tcp_gro_receive(), each flow in a
 * receive queue of its own, by an interrupt per frame and gro_flush_timeout; a merged packet gets one
 * ACK, but for its PSH a super-packet is merged with nothing behind it.
 *
 * Left out: data in both directions, Nagle (senders of messages switch it off), urgent data, zero
 * windows, RST, interrupts that wait for more frames, merging by routers, super-packets of more than
 * 255 segments, the growth of the delay of ACKs behind a pause, the ACK that Linux sends before a FIN of
 * its own, and the loss of the final ACK of a closed flow, which is repeated a few times and then given
 * up.
 */
#include <gradwire/plugin.h>
#include <gradwire/alg/segments.h>
#include <gradwire/alg/seqset.h>

#define TCP_L3_BYTES (GW_ETH_BYTES + 20u + 20u)    /* Ethernet, IPv4, TCP without options */
#define TCP_TS_BYTES 12u
#define TCP_RTO_FIRST_PS GW_PS_PER_S
#define TCP_RTO_FALLBACK_PS (3 * GW_PS_PER_S)      /* the handshake gave no sample (RFC 6298 5.7) */
#define TCP_RTO_MAX_PS (120 * GW_PS_PER_S)
#define TCP_RTO_BASE_PS (200 * GW_PS_PER_MS)       /* what the kernel counts `retries` by         */
#define TCP_TIMER_MIN_PS (2 * GW_PS_PER_MS)        /* the kernel's least timeout of probes */
#define TCP_WINDOW_FIRST 65535u
#define TCP_WINDOW_MAX (UINT64_C(65535) << 14)
#define TCP_QUICK_ACKS 16u
#define TCP_GROW_LEAST 128u                        /* payload that lets the window grow           */
#define TCP_HELD_MAX 44u                           /* SACKs that may be held back                 */
#define TCP_HELD_PS GW_PS_PER_MS
#define TCP_HELD_SLACK_PS (100 * GW_PS_PER_US)
#define TCP_RCVBUF_FIRST UINT64_C(131072)
#define TCP_DUP_THRESH 3u
#define TCP_DUP_THRESH_MAX 300u
#define TCP_REO_KEEP 16u                           /* recoveries that keep a longer window        */
#define TCP_TRIES_MAX 5u                          /* repetitions of SYN/ACK or FIN by a timer     */
#define TCP_BLOCKS_MAX 4u
#define TCP_BURST_MAX UINT64_C(65536)              /* payload of the longest super-segment        */
#define TCP_SUPER_SEGS 255u                        /* that one super-packet can say               */
#define TCP_GRO_MAX 65536u                         /* IP packet that merging does not reach       */
#define TCP_SLOW_PACE_BPS 1200000u                 /* below it segments leave one by one          */
#define TCP_UNPACED_SEGS 10u
#define TCP_BUFFER_BYTES UINT64_C(1280)            /* memory of a socket's buffer beside its data */
#define TCP_BUFFER_MAX 65215u                      /* payload of the longest one                  */
#define TCP_SEG_MEMORY UINT64_C(4352)              /* what the kernel plans for a segment to send */
#define TCP_SNDBUF_FIRST (20 * TCP_SEG_MEMORY)
#define TCP_RUNS_MAX 6u
#define TCP_NO_PUSH 0x7fffffffu
#define TCP_MARKS 16u
#define TCP_PAUSE_PS (250 * GW_PS_PER_US)

enum tcp_bit {                   /* as on the wire                                             */
    TCP_FIN = 0x01, TCP_SYN = 0x02, TCP_PSH = 0x08, TCP_ACK = 0x10, TCP_ECE = 0x40, TCP_CWR = 0x80
};

enum tcp_opt {
    TCP_HAS_TS = 1, TCP_HAS_SACK = 2, TCP_PAST_FIN = 4,
    TCP_EXACT_ECN = 8            /* the sender wants each mark echoed (RFC 8257)               */
};

enum tcp_ecn_peer { TCP_PEER_SAME, TCP_PEER_CLASSIC, TCP_PEER_OFF };

/* The transport's 32 bytes of a packet. */
struct tcp_hdr {
    uint64_t seq;                /* data: offset of the first byte; ACK: next one expected     */
    uint64_t ts_ps;              /* data: when it left; ACK: that of the segment that caused it */
    uint32_t len;                /* data: payload bytes; ACK: TSecr in ms                      */
    uint32_t window;             /* ACK: bytes offered from seq on; data: TSecr in ms;
                                    SYN: window | MSS << 16                                    */
    uint32_t tsval_ms;           /* ACK: its own TSval                                         */
    uint8_t  flags;              /* enum tcp_bit                                               */
    uint8_t  blocks;             /* SACK blocks in the extension                               */
    uint8_t  wscale;
    uint8_t  opts;               /* enum tcp_opt                                               */
};
_Static_assert(sizeof(struct tcp_hdr) <= sizeof(((struct gw_pkt *)0)->tp), "32 bytes per packet");

struct tcp_ext {
    uint64_t block[TCP_BLOCKS_MAX][2];   /* [start, end) in stream offsets, newest first       */
};

struct tcp_conf {
    const char *cc;              /* read by the host                                           */
    uint32_t    streams;         /* read by the host                                           */
    uint32_t    initial_window;  /* segments                                                   */
    uint64_t    mss_bytes;       /* 0: from the MTU                                            */
    uint64_t    window_bytes;    /* receive window at most, 0: what the wire can say           */
    uint64_t    sndbuf_bytes, rcvbuf_bytes;        /* memory of the sockets at most            */
    uint64_t    tick_ps;         /* of the kernel's timers; 0: exact                           */
    uint64_t    rto_min_ps;
    uint64_t    delayed_ack_ps;  /* 0: every segment                                           */
    uint32_t    syn_retries, retries;              /* 0: for ever                              */
    uint32_t    ecn_peer;                          /* enum tcp_ecn_peer                        */
    bool        sack, timestamps, syn, ecn, tlp, pacing, dsack, compress, tso, idle_restart, frto;
    bool        offload;         /* super-segments cross the network whole                     */
    bool        gro;
    uint64_t    gro_flush_ps;    /* how long merged segments may wait for more                 */
};

enum tcp_phase { TCP_CLOSED, TCP_SYN_SENT, TCP_OPEN, TCP_DONE, TCP_GIVEN_UP };
enum tcp_state { TCP_CA_OPEN, TCP_CA_CWR, TCP_CA_RECOVERY, TCP_CA_LOSS };

/* Of a node of the scoreboard, which covers [una, top); above top all is as first sent. */
enum tcp_range { TCP_HOLE, TCP_LOST, TCP_RESENT, TCP_SACKED, TCP_RANGE_COUNT };

/* What was known when segments left; all that leave at one time share it. */
struct tcp_sent {
    uint64_t ts_ps;
    uint64_t delivered_bytes, delivered_ps;       /* by then, and when that was acknowledged    */
    uint64_t first_ps;           /* when the newest of what was acknowledged by then had left   */
    bool     app_limited;
};

/* Entries in the order of leaving. */
struct tcp_ring {
    uint32_t head, count, cap;   /* cap: a power of two, or 0                                  */
    void    *entry;
};

/* Delivery rates, after Linux's tcp_rate.c; kept only for who asks for samples. */
struct tcp_rate {
    uint64_t delivered_ps, first_ps;
    uint64_t app_limited_bytes;  /* samples count as limited until so much is delivered; 0: no  */
    uint64_t written_bytes;      /* end of the stream as last seen                              */
    struct tcp_ring sent;        /* of struct tcp_sent                                         */
};

/* Sockets' buffers between two borders: the unsent part of the stream is cut into buffers that end
 * `size_bytes` apart, the last at `end`. */
struct tcp_run {
    uint64_t end;
    uint32_t size_bytes;
    uint32_t past_push : 31;     /* bytes of the last one behind its push, TCP_NO_PUSH: none   */
    uint32_t mixed : 1;          /* buffers of more kinds than there is room for                */
};

/* What begins at `start` left at `ts_ps`, behind a pause; what ends there at `before_ps`. */
struct tcp_mark {
    uint64_t start, ts_ps, before_ps;
};

/* From the begin of a segment to the end of one. */
struct tcp_span {
    uint64_t start, end;         /* start GW_NEVER: nothing                                    */
};

/* When what begins at `start` left; a run ends where the next one begins. */
struct tcp_left {
    uint64_t start, ts_ps;
};

/* When all that is out was first sent. Super-packets are few: their flows know it exactly. */
struct tcp_log {
    struct tcp_ring left;        /* of struct tcp_left, times ascend                           */
};

/* What is known of [una, top). Flows that have not lost anything share an empty one. */
struct tcp_board {
    struct gw_seqset set;
    struct gw_seq_queue queue[TCP_SACKED];        /* by state; LOST in the order to be resent  */
};

/* What has come behind a gap. Receivers that had none share an empty one. */
struct tcp_gaps {
    struct gw_seqset set;
    uint64_t block[TCP_BLOCKS_MAX][2];            /* of the next ACK, newest first             */
};

#define TCP_EMPTY_SET { .free = GW_SEQ_NIL, .head = GW_SEQ_NIL, .tail = GW_SEQ_NIL, \
                        .finger = { GW_SEQ_NIL, GW_SEQ_NIL, GW_SEQ_NIL } }
_Static_assert(GW_SEQ_FINGERS == 3, "TCP_EMPTY_SET names three fingers");
_Static_assert(TCP_SACKED == 3, "tcp_no_board names three queues");

static const struct tcp_board tcp_no_board = {
    TCP_EMPTY_SET,
    { { GW_SEQ_NIL, GW_SEQ_NIL }, { GW_SEQ_NIL, GW_SEQ_NIL }, { GW_SEQ_NIL, GW_SEQ_NIL } },
};
static const struct tcp_gaps tcp_no_gaps = { .set = TCP_EMPTY_SET };

struct tcp_tx {
    /* What every ACK and every segment touches. */
    uint64_t una, nxt;           /* [una, nxt) is out                                          */
    uint64_t wnd_end;            /* the receiver's limit                                       */
    uint64_t sacked_bytes, lost_bytes;
    uint64_t delivered_bytes;
    uint64_t srtt8_ps;           /* 8 srtt; 0: no sample yet                                   */
    uint64_t mdev4_ps, mdev_max4_ps, rttvar4_ps;       /* 4 mdev                               */
    uint64_t min_rtt_ps, rtt_seq;
    uint64_t rto_ps, pto_ps;     /* timeout without backoff; 2 srtt + 2 ms                     */
    uint64_t rto_due_ps, tlp_due_ps, reo_due_ps;
    uint64_t armed_ps;           /* when the timer will come up, GW_NEVER: not                 */
    uint64_t max_out, usage_end; /* window validation: most out in this window, its end        */
    uint64_t used_bytes, used_ps;
    uint64_t last_sent_ps;       /* a new segment                                              */
    uint64_t head_sent_ps;       /* lower bound for when the segment at una was last sent      */
    const struct tcp_conf *conf;
    uint32_t ts_recent_ms, mss;
    uint32_t hdr_bytes;          /* of a data segment                                          */
    uint32_t last_len;           /* of the last new segment, in stream space                   */
    uint8_t  phase, state;
    uint8_t  opts, wscale;
    bool     careful;            /* next ACK takes the long road                               */
    bool     limited;            /* the window held the last output back                       */
    bool     ecn, cwr;           /* negotiated; say CWR with the next new segment              */
    bool     every_ack;          /* the congestion control wants to see each                   */
    bool     extras;             /* rates, pacing, super-packets: more to do per ACK and segment */
    bool     push;               /* the next segment ends a super-segment of several           */
    bool     blocked;            /* the application waits for room                             */
    uint32_t timeouts;           /* in a row                                                   */
    uint64_t top;                /* end of the scoreboard                                      */
    uint64_t rack_ts_ps, rack_rtt_ps, rack_end;   /* newest sent of what has arrived           */
    uint64_t tlp_high;           /* nxt when a probe left, GW_NEVER: none                      */
    uint64_t prr_out;

    /* Super-segments: the socket's buffers and what is cut from them. */
    uint64_t copied;             /* end of what the application has got rid of                 */
    uint64_t buffer_end;         /* of the buffer that begins at nxt                           */
    uint64_t window_seen;        /* largest window ever offered                                */
    uint64_t pushed, psh;        /* end of what the application has pushed, of what left so    */
    uint64_t touched_ps;         /* anything was sent                                          */
    uint64_t most_cwnd;          /* window for which `most` was computed                       */
    uint32_t most;               /* bytes of the longest super-segment                         */
    uint32_t run_count;
    struct tcp_run run[TCP_RUNS_MAX];
    uint64_t sndbuf_bytes;       /* memory that the socket may take now                        */
    uint64_t ticked_ps, syn_span_ps;              /* due time that stands on a tick; SYN's wait */
    uint32_t syn_tries;

    /* Loss. */
    uint32_t mark_next, mark_una;                 /* marks so far; the first one behind una    */
    struct tcp_mark *mark;       /* ring of the last pauses; NULL: there were none             */
    struct tcp_log *log;         /* of flows with super-packets, instead of marks; else NULL   */
    struct tcp_board *board;     /* may be tcp_no_board                                        */
    uint64_t high_seq;           /* nxt when the episode began                                 */
    uint64_t fack;               /* highest end ever SACKed                                    */
    uint64_t prior_cwnd, prr_delivered;
    uint64_t undo_cwnd, undo_ssthresh, first_resent_ps;        /* windows 0: not to be undone */
    uint64_t undo_una;           /* una when the episode began                                 */
    uint64_t reo_next;           /* the reordering window may change behind this               */
    uint64_t lost_total;         /* bytes ever marked lost                                     */
    uint64_t silent_ps;          /* when the first of the timeouts was                         */
    uint32_t dup_thresh;         /* duplicate ACKs that tell of a loss, without SACK           */
    int32_t  undo_resent;        /* segments resent and not told to be superfluous, -1: none yet */
    uint32_t dsacks;             /* segments told to have come twice                           */
    uint8_t  reo_steps, reo_keep;                 /* quarters of the RTT; recoveries to keep them */
    bool     undo, tlp_resent, reordered, relost;
    bool     frto, frto_new;     /* the timeout may be spurious; send new data with this ACK   */
    bool     ack_orig, ack_sacks, ack_dsack, ack_probe;        /* what this ACK told            */
    bool     ack_resent;         /* it acknowledged something that had been sent again         */
    uint64_t ack_left_ps;        /* when the last of what it told left                         */
    struct tcp_span ack_new, ack_sacked;          /* what it was the first to acknowledge, to SACK,
                                                     of what was sent once                     */

    uint32_t burst_bytes;        /* payload that left since the pace was last advanced         */
    struct tcp_rate *rate;       /* NULL: nobody asked                                         */
    struct gw_timer timer, pace;
};

/* Segments that have come and are merged before TCP sees them, as in a card's receive queue. */
struct tcp_gro {
    struct gw_pkt first;         /* of them, with the payload of all; it is a packet no longer */
    uint64_t due_ps;             /* when TCP gets it                                           */
    uint64_t age;                /* tick in which it came                                      */
    uint32_t mss;                /* its payload, which the others may not exceed               */
    bool     held;
};

struct tcp_rx {
    uint64_t nxt;                /* next byte expected, the FIN counted                        */
    uint64_t acked;              /* what the last ACK said                                     */
    uint64_t fin;                /* offset of the FIN, GW_NEVER: not seen                      */
    uint64_t due_ps;             /* of the delayed ACK, valid if nxt > acked                   */
    uint64_t armed_ps, again_ps; /* timer; when to repeat SYN/ACK or FIN, GW_NEVER: not        */
    uint64_t ts_ps;              /* of the last segment                                        */
    uint64_t ts_recent_ps;       /* of the last segment in order                               */
    uint32_t seg_bytes;          /* largest payload seen                                       */
    uint32_t seg_memory;         /* what the kernel counts for one                             */
    uint32_t quick;              /* ACKs to send at once                                       */
    uint32_t mss;                /* what it asks for                                           */
    uint32_t echo_ms;            /* timestamp echo that was the last sample                    */
    uint32_t block_count;
    uint8_t  opts, wscale;
    bool     careful, ecn, ece, syn_wait, closed;
    bool     begun;              /* data in order has come                                     */
    struct tcp_gaps *gaps;       /* may be tcp_no_gaps                                         */
    struct tcp_gro *gro;         /* NULL: each segment as it comes                             */
    const struct tcp_conf *conf;

    /* The window: memory, and how it grows. */
    uint64_t window_max;
    uint64_t wnd_end;            /* offered up to here                                         */
    uint64_t rcvbuf_bytes;       /* memory that the socket may take now                        */
    uint64_t clamp_bytes, ssthresh_bytes;         /* window at most; grows towards it          */
    uint64_t rtt8_ps;            /* 8 times the round trip, as the receiver can tell; 0: none  */
    uint64_t rtt_end;            /* of a sample by windows                                     */
    uint64_t tune_ps;            /* begin of this round                                        */
    uint64_t ooo_bytes;
    uint64_t rtt_begin_ps, syn_rtt_ps;            /* of the sample; of the handshake, 0: none  */
    uint64_t tune_seq, tune_bytes;                /* begin of this round; bytes of the last    */

    /* ACKs of what is out of order, some of them held back. */
    uint64_t dup_nxt;            /* nxt when dup_count was 0                                   */
    uint64_t held_due_ps;        /* when they must go, valid if held                           */
    uint32_t dup_count, held;
    uint64_t dsack[2];           /* what came twice, for the next ACK; empty: nothing          */
    uint32_t tries;
    struct gw_timer timer;
};

static inline struct tcp_hdr *tcp_hdr(struct gw_pkt *p)
{
    return (struct tcp_hdr *)(void *)p->tp;
}

/* The kernel's timestamp clock: milliseconds, never 0. */
static inline uint32_t tcp_clock_ms(uint64_t ps)
{
    return (uint32_t)(ps / GW_PS_PER_MS) + 1;
}

static uint32_t tcp_opt_bytes(uint8_t opts)
{
    return opts & TCP_HAS_TS ? TCP_TS_BYTES : 0;
}

static uint32_t tcp_syn_bytes(uint8_t opts)
{
    uint32_t n = 4 + 4;                                    /* MSS; NOP and window scale          */

    if (opts & TCP_HAS_TS)
        return n + 12;                                     /* SACK-permitted fits into its pads  */
    return opts & TCP_HAS_SACK ? n + 4 : n;
}

/* Payload of a full segment on a path with this MTU, 0: no room. */
static uint32_t tcp_mss_of(uint32_t mtu_bytes, const struct tcp_conf *c, uint64_t asked_bytes)
{
    return gw_seg_payload(asked_bytes, TCP_L3_BYTES + (c->timestamps ? TCP_TS_BYTES : 0),
                          mtu_bytes);
}

static uint32_t tcp_mss(const struct tcp_conf *c, uint32_t mtu_bytes)
{
    return tcp_mss_of(mtu_bytes, c, c->mss_bytes);
}

static uint8_t tcp_opts(const struct tcp_conf *c)
{
    return (c->timestamps ? TCP_HAS_TS : 0) | (c->sack ? TCP_HAS_SACK : 0);
}

static uint64_t tcp_window_max(const struct tcp_conf *c)
{
    return c->window_bytes ? gw_min(c->window_bytes, TCP_WINDOW_MAX) : TCP_WINDOW_MAX;
}

/* The window of a SYN: half the first buffer in whole segments. */
static uint64_t tcp_first_window(const struct tcp_conf *c, uint32_t mss)
{
    uint64_t most = gw_min(gw_min(TCP_RCVBUF_FIRST, c->rcvbuf_bytes) / 2, tcp_window_max(c));

    if (most > mss && mss)
        most -= most % mss;
    return gw_min(most, TCP_WINDOW_FIRST);
}

/* Fits the largest window that may ever be offered. */
static uint8_t tcp_wscale(const struct tcp_conf *c)
{
    uint64_t most = c->window_bytes ? tcp_window_max(c)
                                    : gw_min(gw_max(c->rcvbuf_bytes, 65535), TCP_WINDOW_MAX);
    uint8_t s = 0;

    while (s < 14 && most >> s > 65535)
        s++;
    return s;
}

/* When a kernel timer comes that is set at @now for @ps: its wheel has steps of a tick, of 8 above
 * 63 ticks, of 64 above 504 and so on, and none comes early. */
static uint64_t tcp_tick(const struct tcp_conf *c, uint64_t now, uint64_t ps)
{
    uint64_t tick = c->tick_ps, ticks, at, shift = 0;

    if (!tick || ps > UINT64_MAX / 2)
        return gw_later(now, ps);
    ticks = (ps + tick - 1) / tick;
    at = now / tick + ticks;
    for (uint64_t level = 63; ticks >= level && shift < 24; level <<= 3)
        shift += 3;
    at = ((at >> shift) + 1) << shift;
    return at < GW_NEVER / tick ? at * tick : GW_NEVER - 1;
}

/* ---- the sender: what is out ----------------------------------------------------------------- */

static inline uint64_t tcp_in_flight(const struct tcp_tx *t)
{
    return t->nxt - t->una - t->sacked_bytes - t->lost_bytes;
}

/* End of the stream in sequence space: the FIN is one byte. */
static inline uint64_t tcp_end(const struct gw_tx *tx, const struct tcp_tx *t)
{
    return tx->written_bytes + (tx->closing && t->conf->syn);
}

static inline bool tcp_slow_start(const struct gw_cc *cc)
{
    return cc->cwnd_bytes < cc->ssthresh_bytes;
}

/* Did the window hold the sender back? As tcp_is_cwnd_limited(). */
static inline bool tcp_cwnd_limited(const struct gw_tx *tx, const struct tcp_tx *t)
{
    return t->limited || (tcp_slow_start(&tx->cc) && tx->cc.cwnd_bytes < 2 * t->max_out);
}

/* A threshold that keeps what the window has shown to be there (tcp_current_ssthresh()). */
static uint64_t tcp_known_ssthresh(const struct gw_cc *cc)
{
    uint64_t segs = cc->cwnd_bytes / cc->mss_bytes;

    return gw_max(cc->ssthresh_bytes, (segs / 2 + segs / 4) * cc->mss_bytes);
}

/* Segments that an ACK of @bytes is for: the last one may be short. */
static inline uint32_t tcp_acked_segs(const struct tcp_tx *t, uint64_t bytes)
{
    return bytes <= t->mss ? bytes != 0 : (uint32_t)((bytes + t->mss - 1) / t->mss);
}

static uint64_t tcp_rto_now(const struct tcp_tx *t)
{
    uint64_t rto = t->rto_ps;

    for (uint32_t i = 0; i < t->timeouts && rto < TCP_RTO_MAX_PS; i++)
        rto *= 2;
    return gw_min(rto, TCP_RTO_MAX_PS);
}

/* How long @retries last, by doubling from 200 ms, as tcp_model_timeout() counts. */
static uint64_t tcp_patience(uint32_t retries)
{
    uint64_t rto = TCP_RTO_BASE_PS, all = 0;

    for (uint32_t i = 0; i <= retries; i++) {
        all += rto;
        rto = gw_min(rto * 2, TCP_RTO_MAX_PS);
    }
    return all;
}

/* One timer for all: it is set only to come earlier; one that comes too early sets itself again. */
static inline void tcp_arm(struct gw_tx *tx, struct tcp_tx *t)
{
    uint64_t due = gw_min(gw_min(t->rto_due_ps, t->tlp_due_ps), t->reo_due_ps);

    if (GW_UNLIKELY(due < t->armed_ps)) {
        t->armed_ps = due;
        tx->host->timer_set(tx->net, &t->timer, due);
    }
}

/* When to send a tail loss probe, if one may be sent in this state. */
static inline void tcp_set_probe(struct tcp_tx *t, uint64_t now)
{
    uint64_t pto = t->pto_ps;

    t->tlp_due_ps = GW_NEVER;
    if (!t->conf->tlp || t->una == t->nxt || t->state > TCP_CA_CWR || t->sacked_bytes ||
        t->lost_bytes || t->tlp_high != GW_NEVER || !(t->opts & TCP_HAS_SACK) || !t->srtt8_ps)
        return;
    if (t->nxt - t->una <= t->last_len)
        pto += t->conf->rto_min_ps - TCP_TIMER_MIN_PS;
    t->tlp_due_ps = gw_min(gw_later(now, pto), t->rto_due_ps);
}

/* RFC 6298 with Linux's mean deviation: its fall is slow, its floor is rto_min. @rtt_ps is of the
 * oldest segment that the ACK is for, @last_ps of the newest. */
static void tcp_rtt_sample(struct tcp_tx *t, uint64_t rtt_ps, uint64_t last_ps)
{
    uint64_t floor_ps = t->conf->rto_min_ps;
    int64_t m;

    rtt_ps = gw_min(rtt_ps, UINT64_C(1) << 60);           /* 13 days: eight of them fit         */
    m = (int64_t)rtt_ps;

    if (GW_UNLIKELY(!t->srtt8_ps)) {
        t->srtt8_ps = rtt_ps * 8;
        t->mdev4_ps = rtt_ps * 2;
        t->rttvar4_ps = t->mdev_max4_ps = gw_max(t->mdev4_ps, floor_ps);
        t->rtt_seq = t->nxt;
    } else {
        m -= (int64_t)(t->srtt8_ps >> 3);
        t->srtt8_ps += (uint64_t)m;
        if (m < 0) {
            m = -m - (int64_t)(t->mdev4_ps >> 2);
            if (m > 0)
                m >>= 3;
        } else {
            m -= (int64_t)(t->mdev4_ps >> 2);
        }
        t->mdev4_ps += (uint64_t)m;
        if (t->mdev4_ps > t->mdev_max4_ps) {
            t->mdev_max4_ps = t->mdev4_ps;
            t->rttvar4_ps = gw_max(t->rttvar4_ps, t->mdev_max4_ps);
        }
        if (t->una > t->rtt_seq) {
            if (t->mdev_max4_ps < t->rttvar4_ps)
                t->rttvar4_ps -= (t->rttvar4_ps - t->mdev_max4_ps) >> 2;
            t->rtt_seq = t->nxt;
            t->mdev_max4_ps = floor_ps;
        }
    }
    if (last_ps < t->min_rtt_ps)
        t->min_rtt_ps = last_ps;
    t->rto_ps = gw_min((t->srtt8_ps >> 3) + t->rttvar4_ps, TCP_RTO_MAX_PS);
    t->pto_ps = (t->srtt8_ps >> 2) + TCP_TIMER_MIN_PS;
}

/* ---- the sender: its log --------------------------------------------------------------------- */

/* A packet sent or received, and what the kernel's TCP_INFO would say behind it. Windows and counts
 * in segments, ssthresh -1: none yet. */
static const char tcp_trace_columns[] =
    "dir,flags,offset,bytes,ack,sack,window_bytes,ecn,cwnd,ssthresh,state,unacked,sacked,lost,"
    "retrans,srtt_us,rto_us,pacing_bps";

static uint64_t tcp_queued_bytes(const struct tcp_tx *t, enum tcp_range state)
{
    uint64_t bytes = 0;
    const struct gw_seq_node *n;

    for (uint32_t i = t->board->queue[state].head; i != GW_SEQ_NIL; i = n->qnext) {
        n = &t->board->set.node[i];
        bytes += n->end - n->start;
    }
    return bytes;
}

static const char *tcp_state_name(const struct tcp_tx *t)
{
    static const char *const name[] = { "open", "cwr", "recovery", "loss" };

    return t->state == TCP_CA_OPEN && t->sacked_bytes ? "disorder" : name[t->state];
}

static void tcp_trace_flags(uint8_t flags, char *out)
{
    static const char letter[] = "FSRPA.EC";

    for (uint32_t i = 0; i < 8; i++)
        if (flags & 1u << i)
            *out++ = letter[i];
    *out = 0;
}

static void tcp_trace_blocks(const struct tcp_hdr *h, const struct tcp_ext *x, char *out, size_t n)
{
    size_t at = 0;

    *out = 0;
    for (uint32_t i = 0; x && i < h->blocks && at < n; i++)
        at += (size_t)snprintf(out + at, n - at, "%s%llu-%llu", i ? " " : "",
                               (unsigned long long)x->block[i][0],
                               (unsigned long long)x->block[i][1]);
}

static uint64_t tcp_segs(const struct tcp_tx *t, uint64_t bytes)
{
    return (bytes + t->mss - 1) / t->mss;
}

static void tcp_trace(struct gw_tx *tx, const struct tcp_tx *t, const struct gw_pkt *p,
                      uint64_t now)
{
    const struct tcp_hdr *h = (const struct tcp_hdr *)(const void *)p->tp;
    bool in = p->flags & GW_PKT_REVERSE;
    const struct gw_cc *cc = &tx->cc;
    uint64_t again = tcp_queued_bytes(t, TCP_RESENT);
    char flags[9], blocks[200], ssthresh[24] = "-1", line[480];

    tcp_trace_flags(h->flags, flags);
    tcp_trace_blocks(h, in && h->blocks ? tx->host->ext_get(tx->net, p) : NULL, blocks,
                     sizeof blocks);
    if (cc->ssthresh_bytes != UINT64_MAX)
        snprintf(ssthresh, sizeof ssthresh, "%llu",
                 (unsigned long long)tcp_segs(t, cc->ssthresh_bytes));
    snprintf(line, sizeof line, "%s,%s,%llu,%u,%llu,%s,%u,%u,%llu,%s,%s,%llu,%llu,%llu,%llu,%llu,"
             "%llu,%llu", in ? "in" : "out", flags, in ? 0 : (unsigned long long)h->seq,
             in ? 0 : h->len, in ? (unsigned long long)h->seq : 0, blocks,
             in ? h->flags & TCP_SYN ? h->window & 0xffff : h->window : TCP_WINDOW_FIRST, p->ecn,
             (unsigned long long)tcp_segs(t, cc->cwnd_bytes), ssthresh, tcp_state_name(t),
             (unsigned long long)tcp_segs(t, t->nxt - t->una),
             (unsigned long long)tcp_segs(t, t->sacked_bytes),
             (unsigned long long)tcp_segs(t, t->lost_bytes + again),
             (unsigned long long)tcp_segs(t, again),
             (unsigned long long)(t->srtt8_ps / 8 / GW_PS_PER_US),
             (unsigned long long)(tcp_rto_now(t) / GW_PS_PER_US),
             (unsigned long long)cc->pacing_bps);
    tx->host->trace(tx, line, now);
}

/* ---- the sender: the scoreboard -------------------------------------------------------------- */

/* Room for @n nodes more, in a scoreboard of its own. False: out of memory. */
static bool tcp_board_room(const struct gw_tx *tx, struct tcp_tx *t, uint32_t n)
{
    if (t->board == &tcp_no_board) {
        struct tcp_board *b = tx->host->resize(NULL, sizeof *b);

        if (!b)
            return false;
        *b = tcp_no_board;
        t->board = b;
    }
    return gw_seqset_reserve(&t->board->set, n, tx->host->resize);
}

/* [s, e) is acknowledged or SACKed for the first time. */
static void tcp_span_add(struct tcp_span *p, uint64_t s, uint64_t e)
{
    if (s >= e)
        return;
    if (p->start == GW_NEVER)
        p->start = s;
    p->end = e;
}

/* Takes node @i out of the queue of its state and out of the counters. */
static void tcp_board_unqueue(struct tcp_tx *t, uint32_t i)
{
    struct gw_seq_node *n = &t->board->set.node[i];

    if (n->state == TCP_SACKED)
        t->sacked_bytes -= n->end - n->start;
    else
        gw_seq_queue_remove(&t->board->set, &t->board->queue[n->state], i);
    if (n->state == TCP_LOST)
        t->lost_bytes -= n->end - n->start;
}

/* Gives node @i a state behind @after in that state's queue (GW_SEQ_NIL: first). */
static void tcp_board_queue(struct tcp_tx *t, uint32_t i, enum tcp_range state, uint32_t after)
{
    struct gw_seq_node *n = &t->board->set.node[i];

    n->state = (uint8_t)state;
    if (state == TCP_SACKED) {
        t->sacked_bytes += n->end - n->start;
        return;
    }
    gw_seq_queue_insert(&t->board->set, &t->board->queue[state], after, i);
    if (state == TCP_LOST) {
        t->lost_bytes += n->end - n->start;
        t->lost_total += n->end - n->start;
    }
}

/* Cuts node @i at @x; both halves stay neighbours in their queue. */
static uint32_t tcp_board_split(struct tcp_tx *t, uint32_t i, uint64_t x)
{
    uint32_t j = gw_seqset_split(&t->board->set, i, x);

    if (t->board->set.node[i].state != TCP_SACKED)
        gw_seq_queue_insert(&t->board->set, &t->board->queue[t->board->set.node[i].state], i, j);
    return j;
}

/* Zeroed memory that only some flows need; NULL with a sentence. */
static void *tcp_extra(const struct gw_host *host, size_t bytes, uint32_t flow, struct gw_error *err)
{
    void *p = host->alloc(bytes);

    if (!p)
        gw_fail(err, GW_NOMEM, "out of memory for flow %u", flow);
    return p;
}

static bool tcp_ring_grow(const struct gw_host *host, struct tcp_ring *r, size_t entry_bytes)
{
    uint32_t cap = r->cap ? 2 * r->cap : 16;
    char *v = host->resize(r->entry, cap * entry_bytes);

    if (!v && !r->cap)
        return false;
    if (!v) {
        r->head++;
        r->count--;
        return true;
    }
    if (r->cap) {                                  /* the wrapped part goes behind the rest     */
        r->head &= r->cap - 1;
        memcpy(v + r->cap * entry_bytes, v, r->head * entry_bytes);
    }
    r->cap = cap;
    r->entry = v;
    return true;
}

/* Room for one more; out of memory the oldest is forgotten, and false if there is none. */
static inline bool tcp_ring_room(const struct gw_host *host, struct tcp_ring *r, size_t entry_bytes)
{
    return GW_LIKELY(r->count < r->cap) || tcp_ring_grow(host, r, entry_bytes);
}

static inline void tcp_ring_drop(struct tcp_ring *r)
{
    r->head++;
    r->count--;
}

static struct tcp_left *tcp_log_entry(const struct tcp_log *g, uint32_t i)
{
    return &((struct tcp_left *)g->left.entry)[(g->left.head + i) & (g->left.cap - 1)];
}

/* When the byte at @at was first sent; 0: that is forgotten. */
static uint64_t tcp_log_when(const struct tcp_log *g, uint64_t at)
{
    uint32_t low = 0, high = g->left.count;

    while (low < high) {
        uint32_t mid = (low + high) / 2;

        if (tcp_log_entry(g, mid)->start <= at)
            low = mid + 1;
        else
            high = mid;
    }
    return low ? tcp_log_entry(g, low - 1)->ts_ps : 0;
}

/* End of what had left before @ts, if that is above @end; the newest entry has not. */
static uint64_t tcp_log_before(const struct tcp_log *g, uint64_t ts, uint64_t end)
{
    uint64_t at = end;

    for (uint32_t i = g->left.count; i-- && tcp_log_entry(g, i)->ts_ps >= ts;)
        at = tcp_log_entry(g, i)->start;
    return gw_max(at, end);
}

/* When what begins at @start first left, at the latest; @ts: when what caused the ACK did. The pauses
 * behind it are looked at from the last one back. */
static uint64_t tcp_left_by(const struct tcp_tx *t, uint64_t start, uint64_t ts)
{
    ts = gw_min(ts, t->last_sent_ps);
    if (t->log) {
        uint64_t when = tcp_log_when(t->log, start);

        return when ? gw_min(ts, when) : ts;
    }
    for (uint32_t i = 1; t->mark && i <= TCP_MARKS; i++) {
        const struct tcp_mark *m = &t->mark[(t->mark_next - i) % TCP_MARKS];

        if (m->start <= start)
            break;
        ts = gw_min(ts, m->before_ps);
    }
    return ts;
}

/* Was what ends at @end sent again by a probe, which the scoreboard does not know? */
static bool tcp_probed(const struct tcp_tx *t, uint64_t end)
{
    return t->tlp_resent && t->tlp_high != GW_NEVER && end == t->tlp_high;
}

/* The bytes of node @i have arrived by a packet sent at @ts: did something overtake them? */
static void tcp_board_arrived(struct gw_tx *tx, struct tcp_tx *t, uint32_t i, uint64_t ts)
{
    const struct gw_seq_node *n = &t->board->set.node[i];

    if (n->state == TCP_SACKED)
        return;
    t->ack_left_ps = n->resent ? gw_min(n->stamp_ps, ts) : tcp_left_by(t, n->end - 1, ts);
    t->ack_orig |= !n->resent && n->end <= t->high_seq;
    if (n->end > t->fack)
        return;
    if (!n->resent || (n->state == TCP_RESENT && ts < n->stamp_ps && ts < t->first_resent_ps)) {
        t->reordered = true;
        if (n->state == TCP_RESENT)
            tx->stats.spurious++;
    }
}

/* Joins SACKED node @i with SACKED neighbours; returns the node that is left. */
static uint32_t tcp_board_join(struct tcp_tx *t, uint32_t i)
{
    struct gw_seqset *b = &t->board->set;
    uint32_t prev = b->node[i].prev, next = b->node[i].next;

    if (prev != GW_SEQ_NIL && b->node[prev].state == TCP_SACKED) {
        b->node[prev].end = b->node[i].end;
        gw_seqset_remove(b, i);
        i = prev;
    }
    if (next != GW_SEQ_NIL && b->node[next].state == TCP_SACKED) {
        b->node[i].end = b->node[next].end;
        gw_seqset_remove(b, next);
    }
    return i;
}

/* [s, e) above the scoreboard has arrived: a hole before it, if any, and it. */
static void tcp_board_extend(struct tcp_tx *t, uint64_t s, uint64_t e, uint64_t ts)
{
    struct gw_seqset *b = &t->board->set;
    uint32_t i;

    if (s > t->top) {
        i = gw_seqset_insert(b, b->tail, t->top, s);
        b->node[i].stamp_ps = tcp_left_by(t, s - 1, ts);
        tcp_board_queue(t, i, TCP_HOLE, t->board->queue[TCP_HOLE].tail);
    }
    i = gw_seqset_insert(b, b->tail, s, e);
    tcp_board_queue(t, i, TCP_SACKED, GW_SEQ_NIL);
    t->top = e;
    tcp_board_join(t, i);
}

/* A SACK block. Out of memory it is ignored: the cumulative ACK or the timeout repairs that. */
static void tcp_board_sack(struct gw_tx *tx, struct tcp_tx *t, uint64_t s, uint64_t e, uint64_t ts)
{
    struct gw_seqset *b;
    uint32_t i;

    s = gw_max(s, t->una);
    e = gw_min(e, t->nxt);
    if (s >= e || !tcp_board_room(tx, t, 4))
        return;
    b = &t->board->set;
    if (e > t->fack)
        t->fack = e;
    i = s < t->top ? gw_seqset_find(b, s) : GW_SEQ_NIL;
    while (i != GW_SEQ_NIL && b->node[i].start < e) {
        if (b->node[i].state != TCP_SACKED) {
            if (b->node[i].start < s)
                i = tcp_board_split(t, i, s);
            if (b->node[i].end > e)
                tcp_board_split(t, i, e);
            tcp_board_arrived(tx, t, i, ts);
            if (!b->node[i].resent)
                tcp_span_add(&t->ack_sacked, b->node[i].start, b->node[i].end);
            t->delivered_bytes += b->node[i].end - b->node[i].start;
            t->ack_sacks = true;
            tcp_board_unqueue(t, i);
            tcp_board_queue(t, i, TCP_SACKED, GW_SEQ_NIL);
            i = tcp_board_join(t, i);
        }
        gw_seqset_touch(b, i);
        i = b->node[i].next;
    }
    if (e > t->top) {
        t->delivered_bytes += e - gw_max(s, t->top);
        t->ack_sacks = true;
        tcp_span_add(&t->ack_sacked, gw_max(s, t->top),
                     tcp_probed(t, e) ? e - gw_min(t->last_len, e) : e);
        t->ack_left_ps = tcp_probed(t, e) ? ts : tcp_left_by(t, e - 1, ts);
        tcp_board_extend(t, gw_max(s, t->top), e, ts);
        gw_seqset_touch(b, b->tail);
    }
}

/* Without SACK: duplicates stand for segments, and not for more than are out besides what is lost;
 * more of them tell of reordering (tcp_check_reno_reordering()). The scoreboard has no gaps then.
 * @acked: bytes that an ACK has just taken from what was out. */
static void tcp_dup_limit(struct tcp_tx *t, uint64_t acked)
{
    uint64_t out = t->nxt - t->una, lost = t->top - t->una - tcp_queued_bytes(t, TCP_HOLE);

    lost = gw_min(gw_max(lost, t->mss), out);
    if (t->sacked_bytes + lost <= out)
        return;
    t->sacked_bytes = out - lost;
    t->dup_thresh = (uint32_t)gw_min(tcp_segs(t, out + acked), TCP_DUP_THRESH_MAX);
}

/* The cumulative ACK moves to @ack. */
static void tcp_board_advance(struct gw_tx *tx, struct tcp_tx *t, uint64_t ack, uint64_t ts)
{
    struct gw_seqset *b = &t->board->set;
    uint64_t known = 0, sacked = t->sacked_bytes, was = t->una;
    uint32_t i;

    t->ack_resent = tcp_probed(t, gw_min(ack, t->tlp_high));
    while ((i = b->head) != GW_SEQ_NIL && b->node[i].end <= ack) {
        tcp_board_arrived(tx, t, i, ts);
        t->ack_resent |= b->node[i].resent;
        if (b->node[i].state == TCP_SACKED)
            known += b->node[i].end - b->node[i].start;
        else if (!b->node[i].resent)
            tcp_span_add(&t->ack_new, b->node[i].start, b->node[i].end);
        tcp_board_unqueue(t, i);
        gw_seqset_remove(b, i);
    }
    if (i != GW_SEQ_NIL && b->node[i].start < ack) {
        uint64_t part = ack - b->node[i].start;

        t->ack_orig |= !b->node[i].resent && b->node[i].state != TCP_SACKED && ack <= t->high_seq;
        t->ack_resent |= b->node[i].resent;
        if (b->node[i].state != TCP_SACKED)
            t->ack_left_ps = b->node[i].resent ? gw_min(b->node[i].stamp_ps, ts)
                                               : tcp_left_by(t, ack - 1, ts);
        if (!b->node[i].resent && b->node[i].state != TCP_SACKED)
            tcp_span_add(&t->ack_new, b->node[i].start, ack);
        if (b->node[i].state == TCP_SACKED) {
            t->sacked_bytes -= part;
            known += part;
        } else if (b->node[i].state == TCP_LOST) {
            t->lost_bytes -= part;
        }
        b->node[i].start = ack;
    }
    if (ack > gw_max(t->top, t->una)) {
        tcp_span_add(&t->ack_new, gw_max(t->top, t->una), ack);
        t->ack_left_ps = tcp_probed(t, ack) ? ts : tcp_left_by(t, ack - 1, ts);
    }
    if (!(t->opts & TCP_HAS_SACK)) {               /* duplicate ACKs stood for segments */
        uint64_t drop = ack - t->una > t->mss ? ack - t->una - t->mss : 0;

        t->sacked_bytes = sacked - gw_min(sacked, drop);
        known = sacked - t->sacked_bytes;
        t->ack_orig &= !t->ack_resent;
    }
    t->delivered_bytes += ack - t->una - gw_min(known, ack - t->una);
    t->una = ack;
    t->top = gw_max(t->top, ack);
    if (!(t->opts & TCP_HAS_SACK))
        tcp_dup_limit(t, ack - was);
}

/* Timeout: everything that has not arrived is lost. */
static void tcp_board_all_lost(struct gw_tx *tx, struct tcp_tx *t)
{
    struct gw_seqset *b;
    uint32_t last = GW_SEQ_NIL;

    if (!(t->opts & TCP_HAS_SACK))
        t->sacked_bytes = 0;
    if (t->top < t->nxt && tcp_board_room(tx, t, 1)) {
        uint32_t i = gw_seqset_insert(&t->board->set, t->board->set.tail, t->top, t->nxt);

        tcp_board_queue(t, i, TCP_HOLE, t->board->queue[TCP_HOLE].tail);
        t->top = t->nxt;
    }
    b = &t->board->set;
    for (uint32_t i = b->head; i != GW_SEQ_NIL; i = b->node[i].next) {
        if (b->node[i].state == TCP_SACKED)
            continue;
        tcp_board_unqueue(t, i);
        tcp_board_queue(t, i, TCP_LOST, last);
        last = i;
    }
}

/* Without SACK: the segment at una is lost. */
static void tcp_board_head_lost(struct gw_tx *tx, struct tcp_tx *t)
{
    struct gw_seqset *b = &t->board->set;
    uint32_t i = b->head;

    if ((i != GW_SEQ_NIL && b->node[i].state != TCP_HOLE) || !tcp_board_room(tx, t, 1))
        return;
    b = &t->board->set;
    if (i == GW_SEQ_NIL) {
        i = gw_seqset_insert(b, GW_SEQ_NIL, t->una, gw_min(t->una + t->mss, t->nxt));
        t->top = gw_max(t->top, b->node[i].end);
    } else {                                       /* left over from an undone timeout          */
        if (b->node[i].end > t->una + t->mss)
            tcp_board_split(t, i, t->una + t->mss);
        tcp_board_unqueue(t, i);
    }
    tcp_board_queue(t, i, TCP_LOST, GW_SEQ_NIL);
    tcp_dup_limit(t, 0);
}

/* ---- the sender: RACK ------------------------------------------------------------------------ */

/* How long something overtaken may still be on its way. */
static uint64_t tcp_reo_wnd(const struct tcp_tx *t)
{
    if (!t->reordered && (t->state >= TCP_CA_RECOVERY ||
                          t->sacked_bytes > (uint64_t)(TCP_DUP_THRESH - 1) * t->mss))
        return 0;
    return gw_min(t->min_rtt_ps / 4 * t->reo_steps, t->srtt8_ps / 8);
}

/* New segments that left before the newest arrival, above all that is SACKed, become a hole too:
 * all of them, or those in front of a pause. */
static void tcp_rack_tail(struct gw_tx *tx, struct tcp_tx *t)
{
    struct gw_seqset *b;
    uint64_t end = t->top;
    uint32_t i;

    for (i = 0; t->mark && i < TCP_MARKS && t->last_sent_ps >= t->rack_ts_ps; i++)
        if (t->mark[i].start > end && t->mark[i].before_ps < t->rack_ts_ps)
            end = t->mark[i].start;
    if (t->last_sent_ps < t->rack_ts_ps)
        end = t->nxt;
    else if (t->log)
        end = tcp_log_before(t->log, t->rack_ts_ps, end);
    if (end <= t->top || !tcp_board_room(tx, t, 1))
        return;
    b = &t->board->set;
    i = gw_seqset_insert(b, b->tail, t->top, end);
    b->node[i].stamp_ps = tcp_left_by(t, end - 1, t->rack_ts_ps);
    tcp_board_queue(t, i, TCP_HOLE, t->board->queue[TCP_HOLE].tail);
    t->top = end;
}

/* Was @n, a hole or sent again, sent before the newest arrival? */
static bool tcp_node_overtaken(const struct tcp_tx *t, const struct gw_seq_node *n)
{
    return n->stamp_ps < t->rack_ts_ps ||
           (n->stamp_ps == t->rack_ts_ps && (n->state == TCP_HOLE || n->end < t->rack_end));
}

/* The reordering timer is set for the last one of @state that was overtaken; the first one was. */
static void tcp_reo_wait(struct tcp_tx *t, enum tcp_range state, uint64_t grace)
{
    const struct gw_seq_node *node = t->board->set.node;
    uint32_t first = t->board->queue[state].head, i = t->board->queue[state].tail;
    uint64_t due;

    while (i != first && !tcp_node_overtaken(t, &node[i]))
        i = node[i].qprev;
    due = gw_later(gw_max(node[first].stamp_ps, node[i].stamp_ps), grace + TCP_TIMER_MIN_PS);
    t->reo_due_ps = t->reo_due_ps == GW_NEVER ? due : gw_max(t->reo_due_ps, due);
}

/* Marks what was sent before the newest arrival as lost once its time is up, in the order of
 * sending; the reordering timer is for the rest. */
static void tcp_rack(struct gw_tx *tx, struct tcp_tx *t, uint64_t now)
{
    struct gw_seqset *b;
    uint64_t grace = t->rack_rtt_ps + tcp_reo_wnd(t);
    uint32_t i, front = GW_SEQ_NIL;

    t->reo_due_ps = GW_NEVER;
    if (t->top < t->nxt)
        tcp_rack_tail(tx, t);            /* may bring a scoreboard of its own                  */
    b = &t->board->set;
    while ((i = t->board->queue[TCP_HOLE].head) != GW_SEQ_NIL) {
        if (!tcp_node_overtaken(t, &b->node[i]))
            break;
        if (b->node[i].stamp_ps + grace > now) {
            tcp_reo_wait(t, TCP_HOLE, grace);
            break;
        }
        tcp_board_unqueue(t, i);
        tcp_board_queue(t, i, TCP_LOST, t->board->queue[TCP_LOST].tail);
    }
    while ((i = t->board->queue[TCP_RESENT].head) != GW_SEQ_NIL) {
        const struct gw_seq_node *n = &b->node[i];

        if (!tcp_node_overtaken(t, n))
            break;
        if (n->stamp_ps + grace > now) {
            tcp_reo_wait(t, TCP_RESENT, grace);
            break;
        }
        tcp_board_unqueue(t, i);
        tcp_board_queue(t, i, TCP_LOST, front);
        front = i;
        t->relost = true;
    }
}

/* ---- the sender: delivery rates ------------------------------------------------------------- */

static struct tcp_sent *tcp_rate_at(const struct tcp_rate *r, uint32_t i)
{
    return &((struct tcp_sent *)r->sent.entry)[(r->sent.head + i) & (r->sent.cap - 1)];
}

/* A segment leaves now. */
static void tcp_rate_sent(struct gw_tx *tx, struct tcp_tx *t, uint32_t bytes, uint64_t now)
{
    const struct gw_cc_ops *ops = tx->cc.ops;
    struct tcp_rate *r = t->rate;

    if (ops->on_sent)
        ops->on_sent(&tx->cc, bytes, tcp_in_flight(t), r && r->app_limited_bytes, now);
    if (!r)
        return;
    if (t->nxt == t->una)
        r->first_ps = r->delivered_ps = now;
    if (r->sent.count && tcp_rate_at(r, r->sent.count - 1)->ts_ps == now)
        r->sent.count--;
    if (!tcp_ring_room(tx->host, &r->sent, sizeof(struct tcp_sent)))
        return;
    *tcp_rate_at(r, r->sent.count++) = (struct tcp_sent){
        .ts_ps = now, .delivered_bytes = t->delivered_bytes, .delivered_ps = r->delivered_ps,
        .first_ps = r->first_ps, .app_limited = r->app_limited_bytes != 0,
    };
}

static const struct tcp_sent *tcp_rate_find(const struct tcp_rate *r, uint64_t ts)
{
    uint32_t low = 0, high = r->sent.count;

    while (low < high) {
        uint32_t mid = (low + high) / 2;

        if (tcp_rate_at(r, mid)->ts_ps < ts)
            low = mid + 1;
        else
            high = mid;
    }
    return low < r->sent.count && tcp_rate_at(r, low)->ts_ps == ts ? tcp_rate_at(r, low) : NULL;
}

/* The kernel's clock of rates. */
static uint64_t tcp_whole_us(uint64_t ps)
{
    return ps - ps % GW_PS_PER_US;
}

/* The sample of an ACK caused by a segment that left at @ts; delivered_bytes is up to date. The
 * interval is the longer of the times of sending and of acknowledging what was delivered in it. */
static void tcp_rate_acked(struct tcp_tx *t, struct gw_cc_ack *a, uint64_t ts, uint64_t now)
{
    struct tcp_rate *r = t->rate;
    const struct tcp_sent *s;
    uint64_t send, ack;

    if (t->delivered_bytes > r->app_limited_bytes)
        r->app_limited_bytes = 0;
    if (!a->acked_bytes)
        return;
    r->delivered_ps = now;
    s = tcp_rate_find(r, ts);
    if (s) {
        r->first_ps = ts;
        send = tcp_whole_us(ts) - tcp_whole_us(s->first_ps);
        ack = tcp_whole_us(now) - tcp_whole_us(s->delivered_ps);
        a->sample_prior_bytes = s->delivered_bytes;
        a->sample_app_limited = s->app_limited;
        a->sample_ps = gw_max(send, ack);
        if (a->sample_ps < tcp_whole_us(t->min_rtt_ps))
            a->sample_ps = 0;                      /* nonsense, of a retransmission             */
        if (a->sample_ps)
            a->rate_bps = gw_mul_div((t->delivered_bytes - s->delivered_bytes) * 8, GW_PS_PER_S,
                                     a->sample_ps);
    }
    while (r->sent.count && tcp_rate_at(r, 0)->ts_ps < t->head_sent_ps)
        tcp_ring_drop(&r->sent);
}

/* More was written: if nothing was waiting, what leaves next was held back by the application. */
static void tcp_rate_written(const struct gw_tx *tx, struct tcp_tx *t)
{
    struct tcp_rate *r = t->rate;
    uint64_t out = tcp_in_flight(t);

    if (t->nxt + t->mss > r->written_bytes && !t->lost_bytes && out < tx->cc.cwnd_bytes)
        r->app_limited_bytes = gw_max(t->delivered_bytes + out, 1);
    r->written_bytes = tx->written_bytes;
}

/* ---- the sender: congestion states ----------------------------------------------------------- */

static void tcp_cc_ack(const struct gw_tx *tx, const struct tcp_tx *t, struct gw_cc_ack *a,
                       uint64_t now)
{
    *a = (struct gw_cc_ack){
        .now_ps = now, .in_flight_bytes = tcp_in_flight(t), .srtt_ps = t->srtt8_ps >> 3,
        .min_rtt_ps = t->min_rtt_ps, .delivered_bytes = t->delivered_bytes, .snd_una = t->una,
        .snd_nxt = t->nxt, .cwnd_limited = tcp_cwnd_limited(tx, t),
        .app_limited = t->nxt == tx->written_bytes,
        .in_recovery = t->state == TCP_CA_CWR || t->state == TCP_CA_RECOVERY,
    };
}

/* An episode begins: what an undo of it would restore, and when it may come. */
static void tcp_begin_undo(struct gw_tx *tx, struct tcp_tx *t, bool restore)
{
    t->undo_cwnd = restore ? tx->cc.cwnd_bytes : 0;
    t->undo_ssthresh = restore ? tcp_known_ssthresh(&tx->cc) : 0;
    t->undo_una = t->una;
    t->undo_resent = (int32_t)(tcp_queued_bytes(t, TCP_RESENT) / t->mss) +
                     (t->tlp_high != GW_NEVER && t->tlp_resent);
    if (!t->undo_resent)
        t->undo_resent = -1;
    t->undo = true;
}

/* Starts a reduction by PRR, and remembers what an undo would restore. */
static void tcp_enter_reduction(struct gw_tx *tx, struct tcp_tx *t, enum tcp_state state,
                                const struct gw_cc_ack *ack)
{
    bool fresh = t->state != TCP_CA_CWR && t->state != TCP_CA_RECOVERY;

    t->undo = false;
    if (state == TCP_CA_RECOVERY)
        tcp_begin_undo(tx, t, fresh && !ack->ece);
    if ((t->state == TCP_CA_OPEN || t->state == TCP_CA_CWR) &&
        t->board->queue[TCP_RESENT].head == GW_SEQ_NIL) /* else the last episode's still counts */
        t->first_resent_ps = GW_NEVER;
    if (fresh) {
        t->prior_cwnd = tx->cc.cwnd_bytes;
        t->prr_delivered = t->prr_out = 0;
        t->tlp_high = GW_NEVER;
        tx->cc.ops->on_loss(&tx->cc, ack, state == TCP_CA_CWR);
    }
    t->high_seq = t->nxt;
    t->state = (uint8_t)state;
    if (state == TCP_CA_RECOVERY)
        tx->stats.recoveries++;
    else
        t->cwr = true;
}

static void tcp_exit_recovery(struct gw_tx *tx, struct tcp_tx *t, uint64_t now)
{
    if ((t->state == TCP_CA_CWR || (t->state == TCP_CA_RECOVERY && t->undo)) &&
        tx->cc.ssthresh_bytes != UINT64_MAX && !tx->cc.ops->owns_window)
        tx->cc.cwnd_bytes = tx->cc.ssthresh_bytes;
    t->state = TCP_CA_OPEN;
    if (tx->cc.ops->on_exit_recovery)
        tx->cc.ops->on_exit_recovery(&tx->cc, now);
}

/* Takes back what was marked lost. */
static void tcp_board_none_lost(struct tcp_tx *t)
{
    struct gw_seqset *b = &t->board->set;
    uint32_t i;

    while ((i = b->tail) != GW_SEQ_NIL && b->node[i].state == TCP_LOST) {
        t->top = b->node[i].start;
        tcp_board_unqueue(t, i);
        gw_seqset_remove(b, i);
    }
    while ((i = t->board->queue[TCP_LOST].head) != GW_SEQ_NIL ||
           (i = t->board->queue[TCP_RESENT].head) != GW_SEQ_NIL) {
        if (b->node[i].state == TCP_LOST)
            b->node[i].stamp_ps = t->rack_ts_ps;
        tcp_board_unqueue(t, i);
        tcp_board_queue(t, i, TCP_HOLE, t->board->queue[TCP_HOLE].tail);
    }
}

/* Is the episode over? Without SACK only when something above its end is acknowledged, or the
 * duplicates that retransmissions in vain cause would begin another one (RFC 6582 section 4). */
static bool tcp_over(const struct tcp_tx *t)
{
    return t->una > t->high_seq || (t->una == t->high_seq && t->opts & TCP_HAS_SACK);
}

/* The cut was for nothing: restores the window; @unmark: nothing is lost; @hold: the state stays. */
static void tcp_undo(struct gw_tx *tx, struct tcp_tx *t, bool unmark, bool hold, uint64_t now)
{
    if (!tx->cc.ops->owns_window) {
        tx->cc.cwnd_bytes = gw_max(tx->cc.cwnd_bytes, t->undo_cwnd);
        tx->cc.ssthresh_bytes = gw_max(tx->cc.ssthresh_bytes, t->undo_ssthresh);
    }
    if (unmark)
        tcp_board_none_lost(t);
    if (!hold)
        t->state = TCP_CA_OPEN;
    t->undo = t->frto = false;
    t->timeouts = 0;
    tx->stats.spurious++;
    if (tx->cc.ops->on_undo)
        tx->cc.ops->on_undo(&tx->cc, now);
}

/* Proportional rate reduction in whole segments (RFC 6937 as in tcp_cwnd_reduction()). */
static void tcp_prr(struct gw_tx *tx, struct tcp_tx *t, uint64_t delivered, bool clean)
{
    uint64_t out = tcp_in_flight(t), ssthresh = tx->cc.ssthresh_bytes, mss = t->mss, may;

    if (!delivered || tx->cc.ops->owns_window)
        return;
    t->prr_delivered += delivered;
    if (out > ssthresh) {
        may = gw_mul_div(ssthresh, t->prr_delivered, t->prior_cwnd) + mss - 1;
        may -= may % mss;
        may = may > t->prr_out ? may - t->prr_out : 0;
    } else {
        may = t->prr_delivered > t->prr_out ? t->prr_delivered - t->prr_out : 0;
        may = gw_max(may, delivered) + (clean ? mss : 0);
        may = gw_min(may, ssthresh - out);
    }
    if (!t->prr_out)
        may = gw_max(may, mss);
    tx->cc.cwnd_bytes = gw_max(out + may, mss);
}

/* The retransmission timeout. */
static void tcp_enter_loss(struct gw_tx *tx, struct tcp_tx *t, uint64_t now)
{
    bool cut = t->state == TCP_CA_OPEN || t->una >= t->high_seq ||
               (t->state == TCP_CA_LOSS && !t->timeouts);
    bool anew = t->state < TCP_CA_RECOVERY || t->timeouts;
    uint64_t ssthresh = tx->cc.ssthresh_bytes;
    struct gw_cc_ack ack;

    tcp_cc_ack(tx, t, &ack, now);
    if (cut) {
        t->first_resent_ps = GW_NEVER;
        tcp_begin_undo(tx, t, true);
    }
    tx->cc.ops->on_timeout(&tx->cc, &ack);
    if (!cut)
        tx->cc.ssthresh_bytes = ssthresh;
    tcp_board_all_lost(tx, t);
    tx->cc.cwnd_bytes = tcp_in_flight(t) + t->mss;
    t->state = TCP_CA_LOSS;
    t->high_seq = t->nxt;
    t->tlp_high = GW_NEVER;
    t->reordered = false;
    t->frto = anew && t->conf->frto;
    t->timeouts++;
    tx->stats.timeouts++;
}

/* Linux's tcp_cwnd_validate(): remembers how much of the window is used, a short segment as one. */
static inline void tcp_validate(struct gw_tx *tx, struct tcp_tx *t, bool limited, uint64_t now)
{
    uint64_t out = t->nxt - t->una + t->mss - gw_min(t->last_len, t->mss), used;

    if (t->una >= t->usage_end || limited || (!t->limited && out > t->max_out)) {
        t->limited = limited;
        t->max_out = out;
        t->usage_end = t->nxt;
    }
    if (tcp_cwnd_limited(tx, t)) {
        t->used_bytes = 0;
        t->used_ps = now;
        return;
    }
    t->used_bytes = gw_max(t->used_bytes, out);
    if (now - t->used_ps < t->rto_ps || tx->cc.ops->owns_window || !t->conf->idle_restart)
        return;
    /* Not limited for a whole timeout: what is not used is not known to be there. */
    used = gw_max(t->used_bytes, (uint64_t)tx->cc.initial_window * t->mss);
    if (t->state == TCP_CA_OPEN && !t->blocked && used < tx->cc.cwnd_bytes) {
        tx->cc.ssthresh_bytes = tcp_known_ssthresh(&tx->cc);
        used = (tx->cc.cwnd_bytes + used) / 2;
        tx->cc.cwnd_bytes = used - used % t->mss;
    }
    t->used_bytes = 0;
    t->used_ps = now;
}

/* ---- the sender: output ---------------------------------------------------------------------- */

/* Something new leaves. Out of memory the oldest is forgotten. */
static void tcp_log_note(struct gw_tx *tx, const struct tcp_tx *t, uint64_t now)
{
    struct tcp_log *g = t->log;

    if (g->left.count && tcp_log_entry(g, g->left.count - 1)->ts_ps == now)
        return;
    while (g->left.count > 1 && tcp_log_entry(g, 1)->start <= t->una)
        tcp_ring_drop(&g->left);
    if (!tcp_ring_room(tx->host, &g->left, sizeof(struct tcp_left)))
        return;
    *tcp_log_entry(g, g->left.count++) = (struct tcp_left){ t->nxt, now };
}

/* @p carries more than a segment: it is pushed, and its length is that of all their frames
 * (qdisc_pkt_len_init()). */
static void tcp_make_super(struct gw_tx *tx, struct tcp_tx *t, struct gw_pkt *p)
{
    struct tcp_hdr *h = tcp_hdr(p);
    uint32_t segs = (h->len + t->mss - 1) / t->mss;

    h->flags |= TCP_PSH;
    p->seg_bytes = (uint16_t)(t->hdr_bytes + t->mss);
    p->seg_count = (uint8_t)segs;
    p->len_bytes += (segs - 1) * t->hdr_bytes;
    tx->stats.sent_pkts += segs - 1;
    if (p->flags & GW_PKT_RETRANS)
        tx->stats.retrans_pkts += segs - 1;
    else
        t->last_len -= (segs - 1) * t->mss;
}

/* What few flows need of each packet that leaves. */
static void tcp_sent_extras(struct gw_tx *tx, struct tcp_tx *t, struct gw_pkt *p, uint64_t now)
{
    uint32_t len = tcp_hdr(p)->len;

    if (t->log && !(p->flags & GW_PKT_RETRANS))
        tcp_log_note(tx, t, now);
    if (len > t->mss)
        tcp_make_super(tx, t, p);
    t->burst_bytes += len;
    tcp_rate_sent(tx, t, len, now);
}

/* Sends [seq, seq + n) of the stream space. False: no packet was to be had. */
static inline bool tcp_send(struct gw_tx *tx, struct tcp_tx *t, uint64_t seq, uint32_t n,
                            bool again, uint64_t now)
{
    struct gw_pkt *p = tx->host->pkt_alloc(tx->net);
    struct tcp_hdr *h;
    uint32_t len = n;
    uint8_t flags = TCP_ACK;

    if (GW_UNLIKELY(!p))
        return false;
    if (t->push)
        flags |= TCP_PSH;
    if (seq + n >= tx->written_bytes) {
        flags |= TCP_PSH;
        if (seq + n > tx->written_bytes) {
            len--;
            flags = len ? TCP_ACK | TCP_PSH | TCP_FIN : TCP_ACK | TCP_FIN;
        }
    }
    t->touched_ps = now;
    h = tcp_hdr(p);
    h->seq = seq;
    h->ts_ps = now;
    h->len = len;
    h->window = t->ts_recent_ms;
    h->wscale = t->wscale;
    h->opts = t->opts;
    if (GW_UNLIKELY(t->ecn)) {
        bool fresh = !again && len;                 /* others are ECN-capable only with dctcp  */

        p->ecn = fresh || t->opts & TCP_EXACT_ECN ? GW_ECN_ECT0 : GW_ECN_NOT_ECT;
        if (fresh && t->cwr)
            flags |= TCP_CWR;
        t->cwr &= !fresh;
    }
    h->flags = flags;
    p->len_bytes = t->hdr_bytes + len;
    tx->stats.sent_pkts++;
    tx->stats.sent_bytes += len;
    if (GW_UNLIKELY(again)) {
        p->flags |= GW_PKT_RETRANS;
        tx->stats.retrans_pkts++;
        tx->stats.retrans_bytes += len;
    }
    if (GW_UNLIKELY(t->extras))
        tcp_sent_extras(tx, t, p, now);
    if (GW_UNLIKELY(tx->traced))
        tcp_trace(tx, t, p, now);
    tx->at_bytes = seq;
    tx->host->emit_tx(tx, p, now);
    return true;
}

/* ---- the sender: pace ------------------------------------------------------------------------ */

/* Segments that leave at once at @rate_bps: a millisecond of it and, over short paths, a share of
 * 64 KiB more, at least two (tcp_tso_autosize()). */
static uint32_t tcp_burst_segs(const struct gw_tx *tx, const struct tcp_tx *t, uint64_t rate_bps)
{
    uint64_t bytes = rate_bps / 8 >> 10, shift = t->min_rtt_ps / GW_PS_PER_US >> 9;
    uint64_t least = tx->cc.ops->paces && rate_bps < TCP_SLOW_PACE_BPS ? 1 : 2;

    if (shift < 32)
        bytes += TCP_BURST_MAX >> shift;
    return (uint32_t)gw_max(gw_min(bytes, TCP_BURST_MAX) / t->mss, least);
}

/* How many segments may leave now; 0: the pace says later, and a timer is set. */
static uint32_t tcp_pace_open(struct gw_tx *tx, struct tcp_tx *t, uint64_t now)
{
    if (now < tx->cc.next_send_ps) {
        tx->host->timer_set(tx->net, &t->pace, tx->cc.next_send_ps);
        return 0;
    }
    return tcp_burst_segs(tx, t, tx->cc.pacing_bps);
}

/* A burst has left: the next one waits until its payload is through at the pace. A burst that left
 * late may make up for it by half of that. The first ten segments do not wait. */
static void tcp_pace_close(struct gw_tx *tx, struct tcp_tx *t, uint64_t now)
{
    uint64_t at = gw_max(tx->cc.next_send_ps, now), late = at - tx->cc.next_send_ps, ps;

    if (tx->cc.pacing_bps && t->burst_bytes && tx->stats.sent_pkts >= TCP_UNPACED_SEGS) {
        ps = gw_mul_div((uint64_t)t->burst_bytes * 8, GW_PS_PER_S, tx->cc.pacing_bps);
        tx->cc.next_send_ps = gw_later(at, ps - gw_min(ps / 2, late));
    }
    t->burst_bytes = 0;
}

/* The rate of who does not set one: above the window's own, more so in slow start. 0: unknown. */
static uint64_t tcp_window_rate(const struct gw_tx *tx, const struct tcp_tx *t)
{
    uint64_t bytes = gw_max(tx->cc.cwnd_bytes, t->nxt - t->una);
    uint32_t percent = tx->cc.cwnd_bytes < tx->cc.ssthresh_bytes / 2 ? 200 : 120;

    return t->srtt8_ps ? gw_mul_div(bytes * 8 * percent / 100, 8 * GW_PS_PER_S, t->srtt8_ps) : 0;
}

/* Behind an ACK of a flow that is paced or measured. */
static void tcp_ack_extras(struct gw_tx *tx, struct tcp_tx *t)
{
    if (t->conf->pacing && !tx->cc.ops->paces && t->srtt8_ps)
        tx->cc.pacing_bps = tcp_window_rate(tx, t);
    if (t->rate && tx->cc.low_rate)
        t->rate->app_limited_bytes = gw_max(t->delivered_bytes + tcp_in_flight(t), 1);
}

/* ---- the sender: windows -------------------------------------------------------------------- */

/* Segments of the packet [seq, seq + n) of the stream space. */
static inline uint32_t tcp_pkt_segs(const struct gw_tx *tx, const struct tcp_tx *t, uint64_t seq,
                                    uint32_t n)
{
    if (GW_LIKELY(n <= t->mss))
        return 1;
    return (n - (seq + n > tx->written_bytes) + t->mss - 1) / t->mss;
}

/* How many of the @bytes from @seq on one segment takes: a FIN rides on the last one. */
static inline uint32_t tcp_seg_len(const struct gw_tx *tx, const struct tcp_tx *t, uint64_t seq,
                                   uint64_t bytes)
{
    if (GW_UNLIKELY(bytes == (uint64_t)t->mss + 1 && seq + bytes > tx->written_bytes))
        return t->mss + 1;
    return (uint32_t)gw_min(bytes, t->mss);
}

/* The next lost range goes out again: the first @n bytes of it become a node of their own. */
static bool tcp_resend(struct gw_tx *tx, struct tcp_tx *t, uint32_t n, uint64_t now)
{
    struct gw_seqset *b = &t->board->set;
    uint32_t i = t->board->queue[TCP_LOST].head, last = t->board->queue[TCP_RESENT].tail;
    uint64_t seq = b->node[i].start;

    if (!gw_seqset_reserve(b, 1, tx->host->resize) || !tcp_send(tx, t, seq, n, true, now))
        return false;
    if (seq + n < b->node[i].end)
        tcp_board_split(t, i, seq + n);
    tcp_board_unqueue(t, i);
    b->node[i].stamp_ps = now;
    b->node[i].resent = true;
    tcp_board_queue(t, i, TCP_RESENT, last);
    t->first_resent_ps = gw_min(t->first_resent_ps, now);
    t->undo_resent = (t->undo_resent < 0 ? 0 : t->undo_resent) +
                     (int32_t)tcp_pkt_segs(tx, t, seq, n);
    if (seq == t->una) {
        t->head_sent_ps = now;
        t->rto_due_ps = gw_later(now, tcp_rto_now(t));
    }
    return true;
}

/* The first pause behind una, NULL: none. */
static const struct tcp_mark *tcp_next_pause(struct tcp_tx *t)
{
    uint32_t i = t->mark_una;

    if (t->mark_next - i > TCP_MARKS)
        i = t->mark_next - TCP_MARKS;
    while (i != t->mark_next && t->mark[i % TCP_MARKS].start <= t->una)
        i++;
    t->mark_una = i;
    return i != t->mark_next ? &t->mark[i % TCP_MARKS] : NULL;
}

/* When the segment at una left, to TCP_PAUSE_PS, as far as the last pauses tell. */
static uint64_t tcp_head_sent(struct tcp_tx *t)
{
    uint64_t at = t->head_sent_ps;

    if (GW_UNLIKELY(t->log != NULL))
        return gw_max(at, tcp_log_when(t->log, t->una));
    if (!t->mark)
        return at;
    tcp_next_pause(t);
    if (t->mark_una && t->mark_next - t->mark_una < TCP_MARKS)
        at = gw_max(at, t->mark[(t->mark_una - 1) % TCP_MARKS].ts_ps);
    return at;
}

/* Of the pauses behind una, which are as many as there is room for, and one of @ps the shortest is
 * forgotten. False: that is the new one. */
static bool tcp_forget_pause(struct tcp_tx *t, uint64_t ps)
{
    uint32_t shortest = t->mark_next;

    for (uint32_t i = t->mark_una; i != t->mark_next; i++) {
        const struct tcp_mark *m = &t->mark[i % TCP_MARKS];

        if (m->ts_ps - m->before_ps <= ps) {
            ps = m->ts_ps - m->before_ps;
            shortest = i;
        }
    }
    if (shortest == t->mark_next)
        return false;
    t->mark_next--;
    for (uint32_t i = shortest; i != t->mark_next; i++)
        t->mark[i % TCP_MARKS] = t->mark[(i + 1) % TCP_MARKS];
    return true;
}

/* A new segment leaves after a pause; the first of all is none. Out of memory it is forgotten. */
static void tcp_note_pause(struct gw_tx *tx, struct tcp_tx *t, uint64_t now)
{
    if (!t->nxt)
        return;
    if (!t->mark) {
        t->mark = tx->host->resize(NULL, TCP_MARKS * sizeof *t->mark);
        if (!t->mark)
            return;
        memset(t->mark, 0, TCP_MARKS * sizeof *t->mark);
    }
    tcp_next_pause(t);
    if (t->mark_next - t->mark_una < TCP_MARKS || tcp_forget_pause(t, now - t->last_sent_ps))
        t->mark[t->mark_next++ % TCP_MARKS] = (struct tcp_mark){ t->nxt, now, t->last_sent_ps };
}

static bool tcp_send_new(struct gw_tx *tx, struct tcp_tx *t, uint32_t n, uint64_t now)
{
    if (now - t->last_sent_ps > TCP_PAUSE_PS)
        tcp_note_pause(tx, t, now);
    t->last_sent_ps = now;
    t->last_len = n;
    if (GW_UNLIKELY(!tcp_send(tx, t, t->nxt, n, false, now)))
        return false;
    if (t->nxt == t->una) {
        t->head_sent_ps = now;
        t->rto_due_ps = gw_later(now, tcp_rto_now(t));
    }
    t->nxt += n;
    return true;
}

/* Slow start after idle (RFC 5681 4.1): the window halves for each timeout of silence. */
static void tcp_idle_restart(struct gw_tx *tx, struct tcp_tx *t, uint64_t now)
{
    uint64_t idle = now - t->touched_ps, left = idle, first;
    struct gw_cc *cc = &tx->cc;

    if (t->touched_ps && cc->ops->on_idle_restart)
        cc->ops->on_idle_restart(cc, idle, t->rto_ps);
    if (!t->touched_ps || idle <= t->rto_ps || cc->ops->owns_window || !t->conf->idle_restart)
        return;
    cc->ssthresh_bytes = tcp_known_ssthresh(cc);
    first = gw_min((uint64_t)cc->initial_window * t->mss, cc->cwnd_bytes);
    while (left > t->rto_ps && cc->cwnd_bytes > first) {
        left -= t->rto_ps;
        cc->cwnd_bytes = cc->cwnd_bytes / 2 - cc->cwnd_bytes / 2 % t->mss;
    }
    cc->cwnd_bytes = gw_max(cc->cwnd_bytes, first);
    t->used_bytes = 0;
    t->used_ps = now;
}

/* Should a super-segment that the windows keep short wait for more window? Only if the ACK that
 * brings it is due within a millisecond and something was sent in the last one
 * (tcp_tso_should_defer()). */
static bool tcp_defer(const struct gw_tx *tx, struct tcp_tx *t, uint64_t wnd, uint64_t cong,
                      bool *limited, uint64_t now)
{
    uint64_t buffer = t->buffer_end - t->nxt, least = gw_min(wnd, cong);
    uint64_t srtt = t->srtt8_ps >> 3;
    bool last = t->buffer_end == t->copied;

    if (t->state >= TCP_CA_RECOVERY || least >= t->most || t->una == t->nxt ||
        now - t->touched_ps > GW_PS_PER_MS || (!last && least >= buffer) ||
        3 * least >= gw_min(t->wnd_end - t->una, tx->cc.cwnd_bytes) ||
        tcp_head_sent(t) + srtt > now + gw_min(srtt / 2, GW_PS_PER_MS))
        return false;
    if (least > buffer)
        return t->buffer_end <= tx->written_bytes;
    *limited |= cong < wnd;
    return true;
}

/* How long a super-segment may be now. */
static inline void tcp_set_most(const struct gw_tx *tx, struct tcp_tx *t)
{
    if (GW_LIKELY(t->most_cwnd == tx->cc.cwnd_bytes) && !tx->cc.pacing_bps)
        return;
    t->most_cwnd = tx->cc.cwnd_bytes;
    t->most = t->mss * tcp_burst_segs(tx, t, tx->cc.pacing_bps ? tx->cc.pacing_bps
                                                               : tcp_window_rate(tx, t));
    if (GW_UNLIKELY(t->conf->offload))
        t->most = (uint32_t)gw_min(t->most, TCP_SUPER_SEGS * t->mss);
}

/* Bytes of new data that may leave as one super-segment, @at_once or when it is worth it; 0: none,
 * *limited: for the window. */
static uint64_t tcp_open_burst(struct gw_tx *tx, struct tcp_tx *t, bool at_once, bool *limited,
                               uint64_t now)
{
    uint64_t mss = t->mss, out = tcp_in_flight(t), cwnd = tx->cc.cwnd_bytes, cong, n;
    uint64_t wnd = t->wnd_end > t->nxt ? t->wnd_end - t->nxt : 0, buffer = t->buffer_end - t->nxt;

    if (!buffer)
        return 0;
    if (out + gw_min(buffer, mss) > cwnd && t->nxt < tx->written_bytes) {
        *limited = true;                                /* a FIN alone passes (tcp_cwnd_test())  */
        return 0;
    }
    if (GW_UNLIKELY(gw_min(buffer, mss) > wnd))         /* small pieces only if nothing is out */
        return out ? 0 : wnd;
    if (buffer <= mss + 1 || !t->conf->tso)
        return tcp_seg_len(tx, t, t->nxt, buffer);
    cong = cwnd - out;
    tcp_set_most(tx, t);
    if (!at_once && tcp_defer(tx, t, wnd, cong, limited, now))
        return 0;
    n = gw_min(gw_min(gw_min(gw_max(cwnd / 2, mss), cong), t->most), wnd);
    return buffer - (t->nxt + buffer > tx->written_bytes) <= n ? buffer : n - n % t->mss;
}

/* [.., end) of the buffers is sent: the next one. */
static void tcp_next_buffer(struct tcp_tx *t)
{
    if (t->run_count && t->nxt >= t->run[0].end)
        memmove(t->run, t->run + 1, --t->run_count * sizeof t->run[0]);
    t->buffer_end = t->run_count ? gw_min(t->nxt + t->run[0].size_bytes, t->run[0].end) : t->nxt;
}

/* Of the next lost range what may go again; 0: none, or the window is full. */
static uint32_t tcp_lost_len(const struct gw_tx *tx, struct tcp_tx *t, bool *limited)
{
    const struct gw_seq_node *lost = &t->board->set.node[t->board->queue[TCP_LOST].head];
    uint64_t all = lost->end - lost->start, n = tcp_seg_len(tx, t, lost->start, all), most;

    if (tcp_in_flight(t) + n > tx->cc.cwnd_bytes) {
        *limited = true;
        return 0;
    }
    if (GW_LIKELY(!t->conf->offload) || n == all)
        return (uint32_t)n;
    tcp_set_most(tx, t);
    most = gw_min(tx->cc.cwnd_bytes - tcp_in_flight(t), t->most);
    if (all - (lost->end > tx->written_bytes) <= most)
        return (uint32_t)all;
    return (uint32_t)gw_max(n, most - most % t->mss);
}

/* Do the next @n bytes end a buffer that is pushed? */
static bool tcp_ends_push(struct tcp_tx *t, uint32_t n)
{
    const struct tcp_run *r = &t->run[0];
    uint64_t end = t->nxt + n;

    if (!t->run_count || end != t->buffer_end)
        return false;
    if (end == r->end && r->past_push != TCP_NO_PUSH)
        t->psh = end - r->past_push;
    else if (r->mixed && end > t->psh + t->window_seen / 2)
        t->psh = end;
    else
        return false;
    return true;
}

/* Nothing can leave behind the next @n bytes until an ACK comes: the receiver is not to wait. */
static bool tcp_last_of_flight(const struct gw_tx *tx, const struct tcp_tx *t, uint32_t n)
{
    return tcp_in_flight(t) + n + t->mss > tx->cc.cwnd_bytes || t->nxt + n + t->mss > t->wnd_end;
}

/* Sends what the windows, the pace and the NIC allow of what is in the socket, or @one super-segment
 * of it, which does not wait for more. True if something left and the window still had room behind
 * it at some time. */
static bool tcp_xmit(struct gw_tx *tx, struct tcp_tx *t, bool one, bool *any, uint64_t now)
{
    uint64_t room = 0, before = t->nxt, left = 0, whole = 0;
    bool limited = false, again, paced = tx->cc.pacing_bps != 0, roomy = false;
    uint32_t n, burst = 0;

    *any = false;
    while (true) {
        again = t->lost_bytes && !t->frto_new;
        if (!again && !left)
            whole = left = one && *any ? 0 : tcp_open_burst(tx, t, one, &limited, now);
        n = again ? tcp_lost_len(tx, t, &limited) :
            t->conf->offload ? (uint32_t)left : tcp_seg_len(tx, t, t->nxt, left);
        if (!n)
            break;
        if (GW_UNLIKELY(paced) && !burst && !(burst = tcp_pace_open(tx, t, now)))
            break;
        if (!room && !(room = tx->host->nic_room(tx, now)))
            break;
        t->push = !again && left == n && (tcp_ends_push(t, n) || whole > n ||
                                          (*any && !t->conf->tso && tcp_last_of_flight(tx, t, n)));
        if (!(again ? tcp_resend(tx, t, n, now) : tcp_send_new(tx, t, n, now)))
            break;
        t->prr_out += GW_LIKELY(n <= t->mss) ? t->mss : (n - 2 + t->mss) / t->mss * t->mss;
        left -= again ? 0 : n;
        room -= gw_min(room, n + t->hdr_bytes);
        *any = true;
        if (t->nxt == t->buffer_end)
            tcp_next_buffer(t);
        if (!left)
            roomy |= tcp_in_flight(t) + t->mss <= tx->cc.cwnd_bytes;
        if (GW_UNLIKELY(paced) && (--burst == 0 || again || t->conf->offload)) {
            tcp_pace_close(tx, t, now);
            burst = 0;
        }
    }
    t->push = false;
    if (GW_UNLIKELY(paced))
        tcp_pace_close(tx, t, now);
    if (*any || limited) {
        limited |= tcp_in_flight(t) + t->mss > tx->cc.cwnd_bytes;
        tcp_validate(tx, t, limited, now);
    }
    if (t->nxt != before)
        tcp_set_probe(t, now);
    return roomy;
}

/* ---- the sender: its socket ------------------------------------------------------------------ */

/* Memory that the socket takes: each super-segment has its own buffer. */
static uint64_t tcp_socket_bytes(const struct tcp_tx *t)
{
    uint64_t buffers = (t->nxt - t->una) / (t->most ? t->most : t->mss) + 1, at = t->nxt;

    for (uint32_t i = 0; i < t->run_count; i++) {
        buffers += (t->run[i].end - at + t->run[i].size_bytes - 1) / t->run[i].size_bytes;
        at = t->run[i].end;
    }
    return t->copied - t->una + buffers * TCP_BUFFER_BYTES;
}

/* Bytes that one buffer is filled up to: half the largest window, whole segments. */
static uint64_t tcp_buffer_goal(const struct tcp_tx *t)
{
    uint64_t goal = gw_min(TCP_BUFFER_MAX, t->window_seen / 2);

    return goal < t->mss ? t->mss : goal - goal % t->mss;
}

/* A buffer of @bytes more behind the others; many runs are forgotten as borders, not as bytes. */
static void tcp_add_buffer(struct tcp_tx *t, uint64_t bytes)
{
    struct tcp_run *last = t->run_count ? &t->run[t->run_count - 1] : NULL;

    t->copied += bytes;
    if (last && last->size_bytes == bytes && last->past_push == TCP_NO_PUSH) {
        last->end = t->copied;
    } else if (t->run_count == TCP_RUNS_MAX) {
        last->end = t->copied;
        last->mixed = 1;
        last->past_push = TCP_NO_PUSH;
    } else {
        t->run[t->run_count++] = (struct tcp_run){ t->copied, (uint32_t)bytes, TCP_NO_PUSH, 0 };
    }
    if (t->buffer_end == t->nxt)
        t->buffer_end = t->copied;
}

/* The end of the last buffer goes out with PSH, if there is one that is not sent yet. */
static void tcp_push_last(struct tcp_tx *t)
{
    if (!t->run_count)
        return;
    t->pushed = t->copied;
    t->run[t->run_count - 1].past_push = 0;
}

/* The last buffer is full: it is pushed when half a window has come since the last push. */
static bool tcp_push_full(struct tcp_tx *t)
{
    if (t->copied <= t->pushed + t->window_seen / 2)
        return false;
    tcp_push_last(t);
    return true;
}

/* Fills the last buffer up to @goal, if it is not sent yet; @push: what it is pushed for remains. */
static void tcp_fill_last(struct tcp_tx *t, uint64_t goal, uint64_t end, bool push)
{
    struct tcp_run *last = t->run_count ? &t->run[t->run_count - 1] : NULL;
    uint64_t start, size, past;

    if (!last || t->copied >= end)
        return;
    start = gw_max(t->nxt, last->end - last->size_bytes);
    if (t->run_count > 1)
        start = gw_max(start, last[-1].end);
    if (start >= last->end || last->end - start >= goal)
        return;
    size = gw_min(goal, end - start);
    past = push && last->past_push != TCP_NO_PUSH ? start + size - last->end + last->past_push
                                                  : TCP_NO_PUSH;
    last->past_push = TCP_NO_PUSH;
    last->end = start;
    if (start <= t->nxt || (t->run_count > 1 && last[-1].end == start))
        t->run_count--;
    t->copied = start;
    if (t->nxt == start)
        t->buffer_end = start;
    tcp_add_buffer(t, size);
    t->run[t->run_count - 1].past_push = (uint32_t)gw_min(past, TCP_NO_PUSH) & TCP_NO_PUSH;
}

/* The application writes until the socket is full, sending as it goes (tcp_sendmsg_locked()). */
static void tcp_write_more(struct gw_tx *tx, struct tcp_tx *t, uint64_t end, uint64_t now)
{
    bool any = true, more = t->blocked;
    uint64_t goal;

    for (; any && t->copied < end; more = true) {
        goal = tcp_buffer_goal(t);
        tcp_fill_last(t, goal, end, more);
        if (t->nxt == t->copied && tcp_socket_bytes(t) < t->sndbuf_bytes)
            tcp_add_buffer(t, gw_min(goal, end - t->copied));
        if (t->buffer_end != t->copied)
            break;                                 /* the last one is not the next to be sent   */
        if (t->copied == end)
            break;
        tcp_xmit(tx, t, !tcp_push_full(t), &any, now);
    }
    goal = tcp_buffer_goal(t);
    for (; t->copied < end && tcp_socket_bytes(t) < t->sndbuf_bytes; tcp_push_full(t))
        tcp_add_buffer(t, gw_min(goal, end - t->copied));
    t->blocked = t->copied < end;                  /* else it has written all                    */
    tcp_push_last(t);
    tcp_xmit(tx, t, false, &any, now);
}

/* Is there room again for who waits? A third must be free; the buffer grows with the window while
 * the window is not full (tcp_new_space()). */
static bool tcp_room_came(const struct gw_tx *tx, struct tcp_tx *t, bool roomy)
{
    uint64_t want, segs;

    if (roomy || tcp_in_flight(t) + t->mss <= tx->cc.cwnd_bytes) {
        segs = gw_max(tx->cc.cwnd_bytes / t->mss, 10);
        want = gw_min(2 * TCP_SEG_MEMORY * segs, t->conf->sndbuf_bytes);
        t->sndbuf_bytes = gw_max(t->sndbuf_bytes, want);
    }
    return 3 * tcp_socket_bytes(t) <= 2 * t->sndbuf_bytes;
}

/* All is written and the application closes: the FIN rides on what is not sent yet, else it goes
 * alone (tcp_send_fin()). */
static void tcp_write_fin(struct gw_tx *tx, struct tcp_tx *t, uint64_t now)
{
    bool any;

    tcp_fill_last(t, UINT64_MAX, tx->written_bytes + 1, true);
    if (t->copied == tx->written_bytes)
        tcp_add_buffer(t, 1);
    tcp_xmit(tx, t, false, &any, now);
}

static void tcp_output(struct gw_tx *tx, struct tcp_tx *t, uint64_t now)
{
    bool any, roomy;

    if (t->phase != TCP_OPEN)
        return;
    roomy = tcp_xmit(tx, t, false, &any, now);
    if (GW_UNLIKELY(t->frto_new)) {                     /* nothing new left: repair after all  */
        t->frto_new = false;
        t->frto = t->nxt > t->high_seq;
        if (!t->frto)
            tcp_xmit(tx, t, false, &any, now);
    }
    if (t->copied < tx->written_bytes && (!t->blocked || tcp_room_came(tx, t, roomy)))
        tcp_write_more(tx, t, tx->written_bytes, now);
    if (GW_UNLIKELY(tx->closing) && t->copied == tx->written_bytes && t->conf->syn)
        tcp_write_fin(tx, t, now);
    tcp_arm(tx, t);
}

/* A control segment without payload: SYN, or an ACK of the receiver's SYN or FIN. */
static void tcp_send_control(struct gw_tx *tx, struct tcp_tx *t, uint8_t flags, uint64_t now)
{
    struct gw_pkt *p = tx->host->pkt_alloc(tx->net);
    struct tcp_hdr *h;

    if (!p)
        return;
    h = tcp_hdr(p);
    h->seq = t->nxt;
    h->ts_ps = now;
    h->window = t->ts_recent_ms;
    h->flags = flags;
    h->wscale = t->wscale;
    h->opts = t->opts;
    p->len_bytes = t->hdr_bytes;
    if (t->opts & TCP_EXACT_ECN)
        p->ecn = GW_ECN_ECT0;
    if (flags & TCP_SYN) {
        h->window = (uint32_t)tcp_first_window(t->conf, tx->mtu_bytes - 40) |
                    (uint32_t)gw_min(tx->mtu_bytes - 40, 65535) << 16;
        p->len_bytes = TCP_L3_BYTES + tcp_syn_bytes(t->opts);
    } else if (t->phase == TCP_DONE) {
        h->opts |= TCP_PAST_FIN;
    }
    if (GW_UNLIKELY(tx->traced))
        tcp_trace(tx, t, p, now);
    tx->at_bytes = h->seq;
    tx->host->emit_tx(tx, p, now);
}

static void tcp_send_syn(struct gw_tx *tx, struct tcp_tx *t, uint64_t now)
{
    t->syn_span_ps = gw_min(TCP_RTO_FIRST_PS << gw_min(t->syn_tries, 7), TCP_RTO_MAX_PS);
    t->rto_due_ps = gw_later(now, t->syn_span_ps);
    t->syn_tries++;
    tcp_send_control(tx, t, TCP_SYN | (t->conf->ecn || t->opts & TCP_EXACT_ECN ?
                                       TCP_ECE | TCP_CWR : 0), now);
    tcp_arm(tx, t);
}

/* Tail loss probe: a new segment if there is one, else the last one again. */
static void tcp_probe(struct gw_tx *tx, struct tcp_tx *t, uint64_t now)
{
    uint32_t n = tcp_seg_len(tx, t, t->nxt, t->buffer_end - t->nxt);
    bool sent;

    t->tlp_resent = !n || t->nxt + n > t->wnd_end;
    if (t->tlp_resent) {
        n = (uint32_t)gw_min(t->last_len, t->nxt - t->una);
        sent = tcp_send(tx, t, t->nxt - n, n, true, now);
        if (t->nxt - n == t->una)
            t->head_sent_ps = now;
    } else {
        sent = tcp_send_new(tx, t, n, now);
        if (t->nxt == t->buffer_end)
            tcp_next_buffer(t);
    }
    if (sent) {
        t->tlp_high = t->nxt;
        t->careful = true;
    }
    t->tlp_due_ps = GW_NEVER;
    t->rto_due_ps = sent ? gw_later(now, tcp_rto_now(t))
                         : gw_max(gw_later(tcp_head_sent(t), tcp_rto_now(t)),
                                  gw_later(now, GW_PS_PER_MS));
}

/* ---- the sender: ACKs ------------------------------------------------------------------------ */

/* An ACK at or above the end of a probe tells whether the probe repaired a loss. */
static void tcp_probe_acked(struct gw_tx *tx, struct tcp_tx *t, uint64_t ack, bool progress,
                            uint64_t now)
{
    struct gw_cc_ack a;

    if (ack < t->tlp_high)
        return;
    if (!t->tlp_resent || t->ack_probe || (ack == t->tlp_high && !progress)) {
        t->tlp_high = GW_NEVER;
    } else if (ack > t->tlp_high) {
        t->tlp_high = GW_NEVER;
        if (t->state != TCP_CA_OPEN)
            return;
        tcp_cc_ack(tx, t, &a, now);
        tx->cc.ops->on_loss(&tx->cc, &a, false);
        if (!tx->cc.ops->owns_window)
            tx->cc.cwnd_bytes = tx->cc.ssthresh_bytes;
    }
}

/* Was the ACK caused by something sent before the first retransmission of the episode? */
static bool tcp_delayed(const struct tcp_tx *t, uint64_t ts)
{
    return t->first_resent_ps != GW_NEVER && ts < t->first_resent_ps;
}

/* Was all that was resent in the episode superfluous? */
static bool tcp_may_undo(const struct tcp_tx *t, uint64_t ts)
{
    return t->undo && (!t->undo_resent || tcp_delayed(t, ts));
}

/* D-SACKs for all that was resent. */
static void tcp_undo_dsack(struct gw_tx *tx, struct tcp_tx *t, uint64_t now)
{
    if (!t->undo || t->undo_resent)
        return;
    t->reo_keep = (uint8_t)gw_min(t->reo_keep + 1u, TCP_REO_KEEP);
    tcp_undo(tx, t, false, false, now);
}

/* Something acknowledged was overtaken; una was @was before. Without SACK no later loss is believed
 * before as many duplicates as might have overtaken it (tcp_check_sack_reordering()). */
static void tcp_overtaken(struct tcp_tx *t, uint64_t was)
{
    uint64_t segs = tcp_segs(t, (t->sacked_bytes ? t->nxt : t->una) - was);

    t->reordered = true;
    if (!(t->opts & TCP_HAS_SACK))
        t->dup_thresh = (uint32_t)gw_max(t->dup_thresh, gw_min(segs, TCP_DUP_THRESH_MAX));
}

/* In recovery (tcp_fastretrans_alert()); una was @was before this ACK. */
static void tcp_process_recovery(struct gw_tx *tx, struct tcp_tx *t, uint64_t ts, uint64_t was,
                                 uint64_t now)
{
    bool done = t->una >= t->high_seq, advanced = t->una > was;

    if (done && tcp_may_undo(t, ts)) {
        t->reordered |= tcp_delayed(t, ts);
        tcp_undo(tx, t, false, !tcp_over(t), now);
    } else if (done && tcp_over(t)) {
        t->reo_keep -= t->reo_keep != 0;
        tcp_exit_recovery(tx, t, now);
    } else if (!done && advanced && t->undo && tcp_delayed(t, ts)) {
        tcp_overtaken(t, was);
        if (t->board->queue[TCP_RESENT].head == GW_SEQ_NIL)
            tcp_undo(tx, t, true, false, now);
    } else if (t->opts & TCP_HAS_SACK) {
        tcp_undo_dsack(tx, t, now);
    } else if (!done && advanced) {
        tcp_board_head_lost(tx, t);                /* a partial ACK                             */
    }
}

/* Behind a timeout (tcp_process_loss()). F-RTO (RFC 5682): the ACK of the first segment sent again
 * lets two new ones go; what is acknowledged next tells whether anything was lost at all. */
static void tcp_process_loss(struct gw_tx *tx, struct tcp_tx *t, uint64_t ts, bool advanced,
                             uint64_t now)
{
    bool done = t->una >= t->high_seq, in_vain = advanced && tcp_may_undo(t, ts);

    if (in_vain || (t->frto && t->ack_orig)) {
        t->reordered |= tcp_delayed(t, ts);
        tcp_undo(tx, t, true, !(t->opts & TCP_HAS_SACK) && (in_vain || !tcp_over(t)), now);
        return;
    }
    if (t->frto && t->nxt > t->high_seq) {
        t->frto = !t->ack_sacks && advanced;
    } else if (t->frto && advanced && !done) {
        t->high_seq = t->nxt;
        t->frto = t->frto_new = t->buffer_end > t->nxt && t->wnd_end > t->nxt;
        return;
    }
    if (tcp_over(t))
        tcp_exit_recovery(tx, t, now);
}

/* Has the episode ended with this ACK? una was @was before it. */
static void tcp_try_exit(struct gw_tx *tx, struct tcp_tx *t, uint64_t ts, uint64_t was,
                         uint64_t now)
{
    bool advanced = t->una > was;

    if (t->state == TCP_CA_LOSS)
        tcp_process_loss(tx, t, ts, advanced, now);
    else if (t->state == TCP_CA_RECOVERY)
        tcp_process_recovery(tx, t, ts, was, now);
    else if (t->state == TCP_CA_CWR && t->una > t->high_seq)
        tcp_exit_recovery(tx, t, now);
    else if (t->state == TCP_CA_OPEN && t->ack_dsack)
        tcp_undo_dsack(tx, t, now);
    if (!(t->opts & TCP_HAS_SACK) && advanced &&
        (t->state != TCP_CA_RECOVERY || t->una >= t->high_seq))
        t->sacked_bytes = 0;
}

/* Is anything known to be lost and not repaired yet? What was resent counts, too: behind the end of
 * an episode it begins the next one. */
static bool tcp_any_lost(const struct tcp_tx *t)
{
    return t->lost_bytes ||
           (t->opts & TCP_HAS_SACK && t->board->queue[TCP_RESENT].head != GW_SEQ_NIL);
}

/* Finds losses and moves between the states (tcp_fastretrans_alert()). */
static void tcp_react(struct gw_tx *tx, struct tcp_tx *t, const struct gw_cc_ack *ack, uint64_t now)
{
    t->relost = false;
    if (t->opts & TCP_HAS_SACK)
        tcp_rack(tx, t, now);
    else if (t->state <= TCP_CA_CWR && tcp_segs(t, t->sacked_bytes) >= t->dup_thresh)
        tcp_board_head_lost(tx, t);
    if (t->state <= TCP_CA_CWR ? tcp_any_lost(t) : t->state == TCP_CA_LOSS && t->relost)
        tcp_enter_reduction(tx, t, TCP_CA_RECOVERY, ack);
    else if (ack->ece && t->state == TCP_CA_OPEN)
        tcp_enter_reduction(tx, t, TCP_CA_CWR, ack);
}

/* Does the first block tell of something that came twice (RFC 2883)? Retransmissions of the episode
 * that are told of were superfluous; behind reordering RACK waits longer, a step a round trip. */
static bool tcp_read_dsack(struct gw_tx *tx, struct tcp_tx *t, const struct tcp_ext *x,
                           const struct tcp_hdr *h)
{
    uint64_t s = x->block[0][0], e = x->block[0][1], segs = gw_max(tcp_segs(t, e - s), 1);

    if (s >= h->seq && (h->blocks < 2 || e > x->block[1][1] || s < x->block[1][0]))
        return false;
    t->dsacks += (uint32_t)segs;
    if (t->dsacks > tx->stats.retrans_pkts)             /* the network doubles packets         */
        return true;
    t->ack_dsack = true;
    t->ack_probe = t->tlp_high == e && segs == 1;
    if (t->reordered && !t->ack_probe && t->una >= t->reo_next) {
        t->reo_steps += t->reo_steps != UINT8_MAX;
        t->reo_keep = TCP_REO_KEEP;
        t->reo_next = t->nxt;
    }
    if (t->undo && t->undo_resent > 0 && e > t->undo_una)
        t->undo_resent -= (int32_t)gw_min(segs, (uint64_t)t->undo_resent);
    return true;
}

/* The SACK blocks from the lowest on: what one ACK tells did not overtake itself. */
static void tcp_read_blocks(struct gw_tx *tx, struct tcp_tx *t, const struct tcp_ext *x,
                            const struct tcp_hdr *h)
{
    uint32_t first = tcp_read_dsack(tx, t, x, h);
    uint64_t from = 0;

    for (uint32_t n = h->blocks; n; n--) {
        uint32_t low = TCP_BLOCKS_MAX;

        for (uint32_t i = first; i < h->blocks && i < TCP_BLOCKS_MAX; i++)
            if (x->block[i][1] > from &&
                (low == TCP_BLOCKS_MAX || x->block[i][1] < x->block[low][1]))
                low = i;
        if (low == TCP_BLOCKS_MAX)
            return;
        tcp_board_sack(tx, t, x->block[low][0], x->block[low][1], h->ts_ps);
        from = x->block[low][1];
    }
}

/* A duplicate ACK, which stands for a segment that has come. Behind a timeout only new ones can have
 * (RFC 5682), and behind the end of an episode none counts before its last ACK (tcp_over()). */
static void tcp_count_dup(struct tcp_tx *t)
{
    uint64_t sacked = t->sacked_bytes;

    if (t->state > TCP_CA_CWR &&
        (t->una >= t->high_seq || (t->state == TCP_CA_LOSS && t->nxt <= t->high_seq)))
        return;
    t->sacked_bytes += t->mss;
    tcp_dup_limit(t, 0);
    t->delivered_bytes += t->sacked_bytes - gw_min(sacked, t->sacked_bytes);
}

/* Reads the SACK blocks, or counts duplicates where there are none. */
static void tcp_read_sack(struct gw_tx *tx, struct tcp_tx *t, struct gw_pkt *p, bool advanced)
{
    const struct tcp_hdr *h = tcp_hdr(p);
    const struct tcp_ext *x = h->blocks ? tx->host->ext_get(tx->net, p) : NULL;

    if (t->opts & TCP_HAS_SACK) {
        if (x)
            tcp_read_blocks(tx, t, x, h);
    } else if (!advanced && h->seq == t->una && t->nxt > t->una &&
               h->seq + h->window <= t->wnd_end) {
        tcp_count_dup(t);
    }
}

/* What every ACK brings: the receiver's limit, an RTT sample, the next timeouts. */
static inline void tcp_ack_basics(struct tcp_tx *t, const struct tcp_hdr *h, bool advanced,
                                  uint64_t now)
{
    t->ts_recent_ms = h->tsval_ms;
    if (h->seq + h->window > t->wnd_end)
        t->wnd_end = h->seq + h->window;
    if (h->window > t->window_seen)
        t->window_seen = h->window;
    if (advanced) {
        t->timeouts = 0;
        t->head_sent_ps = h->ts_ps;
        t->rto_due_ps = t->una == t->nxt ? GW_NEVER : gw_later(now, t->rto_ps);
    }
}

/* The samples of an ACK (tcp_clean_rtx_queue()): what was sent once counts, the oldest of it for the
 * timeout, the newest for the least; else the echo of a timestamp in its milliseconds. Returns the
 * newest one, 0: there is none. */
static uint64_t tcp_ack_rtt(struct tcp_tx *t, const struct tcp_hdr *h, bool advanced, uint64_t now)
{
    uint64_t first = GW_NEVER, last = GW_NEVER;

    if (t->ack_new.start != GW_NEVER && !t->ack_resent) {
        first = now - tcp_left_by(t, t->ack_new.start, h->ts_ps);
        last = now - tcp_left_by(t, t->ack_new.end - 1, h->ts_ps);
    }
    if (t->ack_sacked.start != GW_NEVER) {
        last = now - tcp_left_by(t, t->ack_sacked.end - 1, h->ts_ps);
        if (first == GW_NEVER)
            first = now - tcp_left_by(t, t->ack_sacked.start, h->ts_ps);
    }
    if (first == GW_NEVER && advanced && t->opts & TCP_HAS_TS && h->len)
        first = last = gw_max(tcp_clock_ms(now) - h->len, 1) * GW_PS_PER_MS;
    if (first == GW_NEVER)
        return 0;
    last = gw_max(last, 1);
    tcp_rtt_sample(t, gw_max(first, 1), last);
    return last;
}

/* The long road: anything but an ACK that advances in a flow where nothing is missing. */
static void tcp_ack_slow(struct gw_tx *tx, struct tcp_tx *t, struct gw_pkt *p, uint64_t now)
{
    const struct tcp_hdr *h = tcp_hdr(p);
    uint64_t ack = h->seq, ts = h->ts_ps, delivered = t->delivered_bytes, lost = t->lost_total;
    uint64_t flight = tcp_in_flight(t), was = t->una, gain, rtt = 0, left;
    bool advanced = ack > was;
    struct gw_cc_ack a;

    if (ack > t->nxt)
        return;
    t->ack_new.start = t->ack_sacked.start = t->ack_left_ps = GW_NEVER;
    t->ack_orig = t->ack_sacks = t->ack_dsack = t->ack_probe = false;
    if (!t->reo_keep)
        t->reo_steps = 1;
    if (advanced)
        tcp_board_advance(tx, t, ack, ts);
    left = t->ack_left_ps;
    tcp_read_sack(tx, t, p, advanced);
    left = gw_min(left != GW_NEVER ? left : t->ack_left_ps, ts);
    gain = t->delivered_bytes - delivered;
    if (gain) {
        if (ts > t->rack_ts_ps || (ts == t->rack_ts_ps && ack > t->rack_end)) {
            const struct tcp_ext *x = h->blocks && !advanced ? tx->host->ext_get(tx->net, p) : NULL;

            t->rack_ts_ps = ts;
            t->rack_end = x ? x->block[0][1] : ack;
        }
        t->rack_rtt_ps = now - left;               /* of what it acknowledged last, SACKs before */
        rtt = tcp_ack_rtt(t, h, advanced, now);
    }
    tcp_ack_basics(t, h, advanced, now);
    if (gain && !advanced && ts < t->head_sent_ps && t->opts & TCP_HAS_SACK)
        t->rto_due_ps = gw_later(now, tcp_rto_now(t));
    if (t->tlp_high != GW_NEVER)
        tcp_probe_acked(tx, t, ack, gain != 0, now);
    tcp_cc_ack(tx, t, &a, now);
    a.in_flight_bytes = flight;
    a.acked_pkts = tcp_acked_segs(t, gain);
    a.acked_bytes = (uint64_t)a.acked_pkts * t->mss;
    a.rtt_ps = rtt;
    a.ece = t->ecn && h->flags & TCP_ECE;
    if (a.ece) {
        tx->stats.ce_in++;
        a.ce_bytes = t->opts & TCP_EXACT_ECN ? a.acked_bytes : 0;
        tx->stats.ce_bytes += t->opts & TCP_EXACT_ECN ? gain : 0;
    }
    if (rtt && tx->cc.ops->on_sample) {
        tx->cc.ops->on_sample(&tx->cc, &a);
        a.rtt_ps = 0;
    }
    tcp_try_exit(tx, t, ts, was, now);
    tcp_react(tx, t, &a, now);
    a.in_recovery = t->state == TCP_CA_CWR || t->state == TCP_CA_RECOVERY;
    if (a.in_recovery)
        tcp_prr(tx, t, a.acked_bytes, advanced && t->lost_total == lost);
    if (t->every_ack) {
        a.state = t->state;
        a.lost_bytes = t->lost_total - lost;
        a.in_flight_after_bytes = tcp_in_flight(t);
    }
    if (t->rate)
        tcp_rate_acked(t, &a, ts, now);
    if (gain ? advanced || a.in_recovery || t->every_ack : a.lost_bytes && t->every_ack)
        tx->cc.ops->on_ack(&tx->cc, &a);
    if (t->extras)
        tcp_ack_extras(tx, t);
    tcp_set_probe(t, now);
    t->careful = t->state != TCP_CA_OPEN || t->board->set.count || t->sacked_bytes ||
                 t->tlp_high != GW_NEVER;
}

/* The short road: in order, nothing missing, nothing marked. */
static inline void tcp_ack_fast(struct gw_tx *tx, struct tcp_tx *t, const struct tcp_hdr *h,
                                uint64_t now)
{
    uint64_t gain = h->seq - t->una, rtt = gw_max(now - h->ts_ps, 1), oldest = rtt;
    struct gw_cc_ack a;

    if (gain > t->mss && t->mark_una != t->mark_next) {
        const struct tcp_mark *m = tcp_next_pause(t);

        if (m && m->before_ps < h->ts_ps)
            oldest = now - m->before_ps;
    }
    tcp_cc_ack(tx, t, &a, now);
    a.acked_pkts = tcp_acked_segs(t, gain);
    a.acked_bytes = (uint64_t)a.acked_pkts * t->mss;
    a.rtt_ps = rtt;
    a.snd_una = t->una = t->top = h->seq;
    a.delivered_bytes = t->delivered_bytes += gain;
    t->rack_ts_ps = h->ts_ps;
    t->rack_rtt_ps = now - h->ts_ps;
    t->rack_end = h->seq;
    tcp_rtt_sample(t, oldest, rtt);
    a.srtt_ps = t->srtt8_ps >> 3;
    a.min_rtt_ps = t->min_rtt_ps;
    tcp_ack_basics(t, h, true, now);
    if (GW_UNLIKELY(t->every_ack)) {
        a.in_flight_after_bytes = tcp_in_flight(t);
        if (t->rate)
            tcp_rate_acked(t, &a, h->ts_ps, now);
    }
    tx->cc.ops->on_ack(&tx->cc, &a);
    if (GW_UNLIKELY(t->extras))
        tcp_ack_extras(tx, t);
    tcp_set_probe(t, now);
}

static void tcp_established(struct gw_tx *tx, struct tcp_tx *t, uint64_t now)
{
    t->phase = TCP_OPEN;
    t->rto_due_ps = GW_NEVER;
    t->used_ps = now;
    if (!t->srtt8_ps)
        t->rto_ps = t->conf->syn && t->syn_tries > 1 ? TCP_RTO_FALLBACK_PS : TCP_RTO_FIRST_PS;
    if (t->syn_tries > 2)
        tx->cc.cwnd_bytes = t->mss;
    if (t->extras)
        tcp_ack_extras(tx, t);
}

/* SYN/ACK. */
static void tcp_tx_syn_ack(struct gw_tx *tx, struct tcp_tx *t, const struct tcp_hdr *h,
                           uint64_t now)
{
    if (t->phase == TCP_SYN_SENT) {
        t->opts &= h->opts;
        t->ecn = h->flags & TCP_ECE;               /* never without having been asked           */
        tx->cc.ecn_refused = !t->ecn;
        t->ts_recent_ms = h->tsval_ms;
        t->wnd_end = t->window_seen = h->window & 0xffff;
        /* Without timestamps the answer to a repeated SYN is no sample (Karn). */
        if (t->syn_tries == 1 || t->opts & TCP_HAS_TS)
            tcp_rtt_sample(t, gw_max(now - h->ts_ps, 1), gw_max(now - h->ts_ps, 1));
        tcp_established(tx, t, now);
    }
    tcp_send_control(tx, t, TCP_ACK, now);
}

/* All is done: the host may free both halves inside tx_closed, so nothing comes after it. */
static bool tcp_try_close(struct gw_tx *tx, struct tcp_tx *t, bool fin, uint64_t now)
{
    if (t->phase == TCP_DONE) {
        if (fin)
            tcp_send_control(tx, t, TCP_ACK, now);
        return false;
    }
    if (!tx->closing || t->una < tcp_end(tx, t) || (t->conf->syn && !fin))
        return false;
    t->phase = TCP_DONE;
    t->rto_due_ps = t->tlp_due_ps = t->reo_due_ps = GW_NEVER;
    if (fin)
        tcp_send_control(tx, t, TCP_ACK, now);
    tx->host->tx_closed(tx, now);
    return true;
}

static void tcp_tx_packet(struct gw_tx *tx, struct gw_pkt *p, uint64_t now)
{
    struct tcp_tx *t = tx->priv;
    struct tcp_hdr *h = tcp_hdr(p);
    uint64_t una = t->una;
    bool fin = h->flags & TCP_FIN;

    if (GW_UNLIKELY(p->flags & (GW_PKT_CORRUPT | GW_PKT_TRIMMED) || t->phase == TCP_GIVEN_UP)) {
        tx->host->pkt_free(tx->net, p);
        return;
    }
    tx->stats.acks_in++;
    if (GW_LIKELY(h->flags == TCP_ACK && !h->blocks && !t->careful && h->seq > una &&
                  h->seq <= t->nxt))
        tcp_ack_fast(tx, t, h, now);
    else if (h->flags & TCP_SYN)
        tcp_tx_syn_ack(tx, t, h, now);
    else if (t->phase == TCP_OPEN)
        tcp_ack_slow(tx, t, p, now);
    if (GW_UNLIKELY(tx->traced))
        tcp_trace(tx, t, p, now);
    tx->host->pkt_free(tx->net, p);
    if (t->una != una)
        tx->host->tx_acked(tx, gw_min(t->una, tx->written_bytes), now);
    if (GW_UNLIKELY(tx->closing) && tcp_try_close(tx, t, fin, now))
        return;
    tcp_output(tx, t, now);
}

static void tcp_tx_write(struct gw_tx *tx, uint64_t now)
{
    struct tcp_tx *t = tx->priv;

    if (t->rate)
        tcp_rate_written(tx, t);
    if (tx->closing && t->phase == TCP_CLOSED && !tx->written_bytes) {
        t->phase = TCP_DONE;
        tx->host->tx_closed(tx, now);
        return;
    }
    if (tx->closing && !t->conf->syn && t->phase != TCP_DONE && tcp_try_close(tx, t, false, now))
        return;
    if (t->phase == TCP_CLOSED && !t->conf->syn) {
        tcp_established(tx, t, now);
    } else if (t->phase == TCP_CLOSED) {
        t->phase = TCP_SYN_SENT;
        tcp_send_syn(tx, t, now);
    } else if (t->phase == TCP_OPEN && t->una == t->nxt) {
        tcp_idle_restart(tx, t, now);
    }
    tcp_output(tx, t, now);
}

static void tcp_tx_room(struct gw_tx *tx, uint64_t now)
{
    tcp_output(tx, tx->priv, now);
}

static void tcp_pace_fire(void *owner, uint64_t now)
{
    struct gw_tx *tx = owner;

    tcp_output(tx, tx->priv, now);
}

/* The reordering timer: time is up for what was overtaken. */
static void tcp_reo_fire(struct gw_tx *tx, struct tcp_tx *t, uint64_t now)
{
    uint64_t lost = t->lost_total;
    struct gw_cc_ack a;

    tcp_rack(tx, t, now);
    if (t->lost_total == lost)
        return;
    if (t->state <= TCP_CA_CWR) {
        tcp_cc_ack(tx, t, &a, now);
        tcp_enter_reduction(tx, t, TCP_CA_RECOVERY, &a);
        tcp_prr(tx, t, t->mss, false);
    }
    t->careful = true;
}

/* Nothing comes back: no more timers, the flow stays as it is. */
static void tcp_give_up(struct tcp_tx *t)
{
    t->phase = TCP_GIVEN_UP;
    t->rto_due_ps = t->tlp_due_ps = t->reo_due_ps = GW_NEVER;
}

static void tcp_syn_timeout(struct gw_tx *tx, struct tcp_tx *t, uint64_t now)
{
    tx->stats.timeouts++;
    if (t->conf->syn_retries && t->syn_tries > t->conf->syn_retries)
        tcp_give_up(t);
    else
        tcp_send_syn(tx, t, now);
}

static void tcp_timeout(struct gw_tx *tx, struct tcp_tx *t, uint64_t now)
{
    if (!t->timeouts) {
        t->silent_ps = now;
    } else if (t->conf->retries && now - t->silent_ps >= tcp_patience(t->conf->retries)) {
        tx->stats.timeouts++;
        tcp_give_up(t);
        return;
    }
    tcp_enter_loss(tx, t, now);
    t->tlp_due_ps = t->reo_due_ps = GW_NEVER;
    t->rto_due_ps = gw_later(now, tcp_rto_now(t));
    t->careful = true;
}

/* What is due comes with the kernel's tick. Due times are kept exactly, since most are moved before
 * they come; the first that comes is rounded up here. */
static bool tcp_wait_tick(struct tcp_tx *t, uint64_t now)
{
    uint64_t *due = &t->rto_due_ps, span = t->phase == TCP_OPEN ? tcp_rto_now(t) : t->syn_span_ps;

    if (t->tlp_due_ps < *due) {
        due = &t->tlp_due_ps;
        span = t->pto_ps;
    }
    if (t->reo_due_ps < *due) {
        due = &t->reo_due_ps;
        span = t->min_rtt_ps / 4;
    }
    if (!t->conf->tick_ps || *due > now || *due == t->ticked_ps)
        return false;
    *due = t->ticked_ps = tcp_tick(t->conf, *due - gw_min(*due, span), gw_min(*due, span));
    return *due > now;
}

/* True: a timer was due. One that was moved since it was set does nothing: what waits for more window
 * goes on waiting. */
static bool tcp_timers(struct gw_tx *tx, struct tcp_tx *t, uint64_t now)
{
    if (t->phase == TCP_SYN_SENT && t->rto_due_ps <= now)
        tcp_syn_timeout(tx, t, now);
    else if (t->phase != TCP_OPEN || t->una == t->nxt)
        return false;
    else if (t->reo_due_ps <= now)
        tcp_reo_fire(tx, t, now);
    else if (t->tlp_due_ps <= now)
        tcp_probe(tx, t, now);
    else if (t->rto_due_ps <= now)
        tcp_timeout(tx, t, now);
    else
        return false;
    return true;
}

static void tcp_tx_fire(void *owner, uint64_t now)
{
    struct gw_tx *tx = owner;
    struct tcp_tx *t = tx->priv;

    t->armed_ps = GW_NEVER;
    if (!tcp_wait_tick(t, now) && tcp_timers(tx, t, now))
        tcp_output(tx, t, now);
    tcp_arm(tx, t);
}

static enum gw_status tcp_check(const void *conf, const struct gw_cc_ops *cc, uint32_t mtu_bytes,
                                struct gw_error *err)
{
    const struct tcp_conf *c = conf;

    if (c->offload && !c->tso)
        return gw_fail(err, GW_PARAM, "`offload: yes` needs super-segments, and `tso: no` makes none");
    if (!tcp_mss(conf, mtu_bytes))
        return gw_fail(err, GW_RANGE, "an MTU of %u bytes has no room for TCP's headers; at least 53 "
                       "are needed", mtu_bytes);
    if (!cc)
        return gw_fail(err, GW_PARAM, "`cc` is empty; tcp needs a congestion control, and cubic is "
                       "the usual one");
    return GW_OK;
}

static enum gw_status tcp_tx_init(struct gw_tx *tx, uint64_t now, struct gw_error *err)
{
    struct tcp_tx *t = tx->priv;
    struct gw_cc *cc = &tx->cc;

    t->conf = tx->conf;
    if (tcp_check(t->conf, cc->ops, tx->mtu_bytes, err) != GW_OK)
        return err->code;
    t->mss = tcp_mss(t->conf, tx->mtu_bytes);
    t->opts = tcp_opts(t->conf);
    t->wscale = tcp_wscale(t->conf);
    t->hdr_bytes = TCP_L3_BYTES + tcp_opt_bytes(t->opts);
    t->min_rtt_ps = t->armed_ps = t->tlp_high = t->first_resent_ps = GW_NEVER;
    t->rto_due_ps = t->tlp_due_ps = t->reo_due_ps = GW_NEVER;
    t->rto_ps = TCP_RTO_FIRST_PS;
    t->reo_steps = 1;
    t->dup_thresh = TCP_DUP_THRESH;
    t->wnd_end = t->window_seen = TCP_WINDOW_FIRST;
    t->sndbuf_bytes = gw_min(TCP_SNDBUF_FIRST, t->conf->sndbuf_bytes);
    if (cc->ops->ecn == GW_CC_ECN_EXACT && (t->conf->syn || t->conf->ecn_peer == TCP_PEER_SAME))
        t->opts |= TCP_EXACT_ECN;
    if (!t->conf->syn) {                           /* as if agreed before                        */
        t->ecn = t->opts & TCP_EXACT_ECN || (t->conf->ecn && t->conf->ecn_peer != TCP_PEER_OFF);
        cc->ecn_refused = !t->ecn;
    }
    t->every_ack = cc->ops->samples || cc->ops->ecn == GW_CC_ECN_EXACT;
    t->extras = cc->ops->samples || cc->ops->paces || t->conf->pacing || t->conf->offload;
    t->board = (struct tcp_board *)(uintptr_t)&tcp_no_board;      /* is not written to         */
    t->timer.fire = tcp_tx_fire;
    t->pace.fire = tcp_pace_fire;
    t->timer.owner = t->pace.owner = tx;
    t->timer.comp = t->pace.comp = tx->comp;
    cc->mss_bytes = t->mss;
    cc->tick_ps = t->conf->tick_ps;
    cc->initial_window = t->conf->initial_window;
    cc->cwnd_bytes = (uint64_t)t->mss * t->conf->initial_window;
    cc->ssthresh_bytes = UINT64_MAX;
    if (cc->ops->samples && !(t->rate = tcp_extra(tx->host, sizeof *t->rate, tx->flow, err)))
        return err->code;
    if (t->conf->offload && !(t->log = tcp_extra(tx->host, sizeof *t->log, tx->flow, err)))
        return err->code;
    if (cc->ops->init)
        cc->ops->init(cc, now);
    return GW_OK;
}

static void tcp_tx_fini(struct gw_tx *tx)
{
    struct tcp_tx *t = tx->priv;

    tx->host->timer_stop(tx->net, &t->timer);
    tx->host->timer_stop(tx->net, &t->pace);
    if (t->board != &tcp_no_board) {
        gw_seqset_fini(&t->board->set, tx->host->release);
        tx->host->release(t->board);
    }
    if (t->mark)
        tx->host->release(t->mark);
    if (t->log) {
        tx->host->release(t->log->left.entry);
        tx->host->release(t->log);
    }
    if (t->rate) {
        tx->host->release(t->rate->sent.entry);
        tx->host->release(t->rate);
    }
}

/* ---- the receiver ---------------------------------------------------------------------------- */

/* Memory that a segment of @len bytes takes in the socket, as a frame of a network card does. */
static uint32_t tcp_seg_memory(uint32_t len)
{
    uint32_t need = len + TCP_L3_BYTES + TCP_TS_BYTES + 64 + 320, piece = 512;

    while (piece < need && piece < UINT32_C(1) << 30)
        piece <<= 1;
    return piece + 256;
}

/* Memory of a packet of @len bytes: merged segments keep theirs, a super-packet is its sender's
 * buffer. */
static uint64_t tcp_rx_memory(const struct tcp_rx *r, uint32_t len)
{
    if (len <= r->seg_bytes)
        return tcp_seg_memory(len);
    if (r->gro)
        return (uint64_t)((len + r->seg_bytes - 1) / r->seg_bytes) * r->seg_memory;
    return len + TCP_BUFFER_BYTES;
}

/* Half of the memory that is left is offered. */
static uint64_t tcp_rx_space(const struct tcp_rx *r, uint64_t more)
{
    uint64_t used = more;

    if (r->ooo_bytes && r->seg_bytes)
        used += r->ooo_bytes / r->seg_bytes * r->seg_memory;
    return used < r->rcvbuf_bytes ? (r->rcvbuf_bytes - used) / 2 : 0;
}

/* The window from nxt on; its right edge never goes back. */
static inline uint32_t tcp_window(struct tcp_rx *r)
{
    uint64_t unit = (UINT64_C(1) << r->wscale) - 1;
    uint64_t free = gw_min(r->ooo_bytes ? tcp_rx_space(r, 0) : r->rcvbuf_bytes / 2,
                           r->ssthresh_bytes);
    uint64_t had = r->wnd_end > r->nxt ? r->wnd_end - r->nxt : 0;
    uint64_t window = gw_min((gw_max(free, had) + unit) & ~unit, r->window_max);

    r->wnd_end = r->nxt + window;
    return (uint32_t)window;
}

/* A segment of more memory than data lets the window grow less (__tcp_grow_window()). */
static bool tcp_may_grow(const struct tcp_rx *r, uint32_t len)
{
    uint64_t memory = tcp_rx_memory(r, len) / 2, window = r->conf->rcvbuf_bytes / 4;

    if (memory <= len)
        return true;
    for (memory /= 2; r->ssthresh_bytes <= window; memory /= 2, window /= 2)
        if (memory <= len)
            return true;
    return false;
}

/* Data has come: the window may grow by two segments, and growth is told at once. */
static inline void tcp_rx_grow(struct tcp_rx *r, uint32_t len, bool in_order)
{
    uint64_t most;

    if (r->ssthresh_bytes >= r->clamp_bytes || len < TCP_GROW_LEAST)
        return;
    most = gw_min(r->clamp_bytes, tcp_rx_space(r, !in_order ? 0 : len <= r->seg_bytes ?
                                                  r->seg_memory : tcp_rx_memory(r, len)));
    if (most <= r->ssthresh_bytes || !tcp_may_grow(r, len))
        return;
    r->ssthresh_bytes += gw_min(most - r->ssthresh_bytes, 2 * gw_max(r->mss, len));
    r->quick |= 1;
}

static void tcp_rx_rtt(struct tcp_rx *r, uint64_t ps, bool by_window)
{
    if (!r->rtt8_ps || 8 * ps < r->rtt8_ps)
        r->rtt8_ps = 8 * ps;
    else if (!by_window)
        r->rtt8_ps += ps - (r->rtt8_ps >> 3);
}

/* Samples of the round trip: by the echo of a timestamp, and by the time that a window takes. */
static inline void tcp_rx_measure(struct tcp_rx *r, const struct tcp_hdr *h, uint64_t now)
{
    if (r->opts & TCP_HAS_TS && h->window != r->echo_ms) {
        r->echo_ms = h->window;
        if (h->len >= r->seg_bytes && h->window)
            tcp_rx_rtt(r, gw_max(tcp_clock_ms(now) - h->window, 1) * GW_PS_PER_MS, false);
    }
    if (r->nxt < r->rtt_end)
        return;
    if (r->rtt_end)
        tcp_rx_rtt(r, gw_max(now - r->rtt_begin_ps, GW_PS_PER_US), true);
    r->rtt_end = gw_max(r->wnd_end, r->nxt + 1);
    r->rtt_begin_ps = now;
}

/* The reader has taken everything: once a round trip the buffer is sized for what came in it, and
 * for twice as much growth (tcp_rcv_space_adjust()). */
static void tcp_rx_tune(struct tcp_rx *r, uint64_t upto, uint64_t now)
{
    uint64_t copied = upto - r->tune_seq, win, memory = r->mss + 320 + 576, most;

    if (copied > r->tune_bytes) {
        win = 2 * copied + 16 * (uint64_t)r->mss;
        win += 2 * gw_mul_div(win, copied - r->tune_bytes, r->tune_bytes);
        while (memory / 2 < r->mss)
            memory += 128;
        most = gw_min(gw_mul_div(win / r->mss, memory, 1), r->conf->rcvbuf_bytes);
        if (most > r->rcvbuf_bytes) {
            r->rcvbuf_bytes = most;
            r->clamp_bytes = gw_min(most / 2, r->window_max);
        }
        r->tune_bytes = copied;
    }
    r->tune_seq = upto;
    r->tune_ps = now;
}

/* It reads segment by segment: [.., @upto) is the first one. */
static inline void tcp_rx_read(struct tcp_rx *r, uint64_t upto, uint64_t now)
{
    if (GW_UNLIKELY(now - r->tune_ps >= r->rtt8_ps >> 3) && r->rtt8_ps)
        tcp_rx_tune(r, upto, now);
}

/* The connection exists from now on. */
static void tcp_rx_begin(struct tcp_rx *r, uint64_t now)
{
    r->clamp_bytes = r->rcvbuf_bytes / 2;
    if (r->clamp_bytes > 2u * r->mss)
        r->clamp_bytes = gw_max(2u * r->mss, r->clamp_bytes - r->mss);
    r->clamp_bytes = gw_min(r->clamp_bytes, r->window_max);
    r->ssthresh_bytes = gw_min(r->ssthresh_bytes, r->clamp_bytes);
    r->tune_bytes = gw_max(gw_min(r->ssthresh_bytes, 10 * (uint64_t)r->mss), 1);
    r->tune_ps = now;
}

static void tcp_rx_arm(struct gw_rx *rx, struct tcp_rx *r)
{
    uint64_t due = r->nxt > r->acked ? gw_min(r->due_ps, r->again_ps) : r->again_ps;

    if (GW_UNLIKELY(r->held))
        due = gw_min(due, r->held_due_ps);
    if (GW_UNLIKELY(r->gro != NULL))
        due = gw_min(due, r->gro->due_ps);
    if (due < r->armed_ps) {
        r->armed_ps = due;
        rx->host->timer_set(rx->net, &r->timer, due);
    }
}

/* SACK blocks need an extension; without one the ACK goes without them. */
static void tcp_put_blocks(struct gw_rx *rx, struct tcp_rx *r, struct gw_pkt *p)
{
    struct tcp_hdr *h = tcp_hdr(p);
    struct tcp_ext *x = rx->host->ext_get(rx->net, p);
    uint32_t n = 0, most = r->opts & TCP_HAS_TS ? 3 : 4;

    if (!x)
        x = rx->host->ext_alloc(rx->net, p);
    if (!x)
        return;
    if (r->dsack[0] < r->dsack[1])                      /* RFC 2883: first, what came twice    */
        memcpy(x->block[n++], r->dsack, sizeof r->dsack);
    for (uint32_t i = 0; i < r->block_count && n < most; i++)
        memcpy(x->block[n++], r->gaps->block[i], sizeof r->gaps->block[i]);
    r->dsack[0] = r->dsack[1] = 0;
    h->blocks = (uint8_t)n;
    p->len_bytes += 4 + 8 * n;
}

/* Turns @p round into an ACK of all that is there. */
static inline void tcp_send_ack(struct gw_rx *rx, struct tcp_rx *r, struct gw_pkt *p, uint64_t now)
{
    struct tcp_hdr *h = tcp_hdr(p);

    h->seq = r->acked = r->nxt;
    r->held = 0;
    h->ts_ps = r->ts_ps;
    h->len = tcp_clock_ms(r->ts_recent_ps);
    h->window = tcp_window(r);
    h->tsval_ms = tcp_clock_ms(now);
    h->flags = TCP_ACK;
    h->blocks = 0;
    h->wscale = r->wscale;
    h->opts = r->opts;
    p->len_bytes = TCP_L3_BYTES + tcp_opt_bytes(r->opts);
    p->orig_len_bytes = p->seg_bytes = 0;
    p->seg_count = 0;
    p->flags = GW_PKT_REVERSE;
    p->ecn = r->opts & TCP_EXACT_ECN && r->ecn ? GW_ECN_ECT0 : GW_ECN_NOT_ECT;
    if (GW_UNLIKELY(r->careful)) {
        if (r->ece)
            h->flags |= TCP_ECE;
        if (r->nxt > r->fin)
            h->flags |= TCP_FIN;
        if (r->block_count || r->dsack[0] < r->dsack[1])
            tcp_put_blocks(rx, r, p);
    }
    rx->host->emit_rx(rx, p, now);
}

static void tcp_send_syn_ack(struct gw_rx *rx, struct tcp_rx *r, struct gw_pkt *p, uint64_t now)
{
    struct tcp_hdr *h = tcp_hdr(p);

    memset(h, 0, sizeof *h);
    h->ts_ps = r->ts_ps;
    h->len = tcp_clock_ms(r->ts_ps);
    h->window = (uint32_t)gw_min(r->ssthresh_bytes, 65535) |
                (uint32_t)gw_min(rx->mtu_bytes - 40, 65535) << 16;
    r->wnd_end = gw_min(r->ssthresh_bytes, 65535);
    h->tsval_ms = tcp_clock_ms(now);
    h->flags = TCP_SYN | TCP_ACK | (r->ecn ? TCP_ECE : 0);
    h->wscale = r->wscale;
    h->opts = r->opts;
    r->rtt_begin_ps = now;
    p->len_bytes = TCP_L3_BYTES + tcp_syn_bytes(r->opts);
    p->flags = GW_PKT_REVERSE;
    p->ecn = GW_ECN_NOT_ECT;
    rx->host->emit_rx(rx, p, now);
}

/* A later ACK or SYN/ACK has no packet to turn round. */
static void tcp_rx_due(struct gw_rx *rx, struct tcp_rx *r, uint64_t now)
{
    bool again = r->again_ps <= now;
    struct gw_pkt *p;

    r->armed_ps = GW_NEVER;
    if (again) {
        r->tries++;
        r->again_ps = gw_later(now, gw_min(TCP_RTO_FIRST_PS << gw_min(r->tries, 7),
                                           TCP_RTO_MAX_PS));
        if (r->tries > TCP_TRIES_MAX)
            r->again_ps = GW_NEVER;
    }
    if (again || (r->nxt > r->acked && r->due_ps <= now) ||
        (r->held && r->held_due_ps <= now)) {
        p = rx->host->pkt_alloc(rx->net);
        if (p && r->syn_wait)
            tcp_send_syn_ack(rx, r, p, now);
        else if (p)
            tcp_send_ack(rx, r, p, now);
    }
    tcp_rx_arm(rx, r);
}

static void tcp_rx_syn(struct gw_rx *rx, struct tcp_rx *r, struct gw_pkt *p, uint64_t now)
{
    const struct tcp_hdr *h = tcp_hdr(p);

    r->opts &= h->opts;
    /* A SYN that is ECN-capable itself asks for exact echoes: nothing less is granted. */
    r->ecn = h->flags & TCP_ECE && h->flags & TCP_CWR && r->conf->ecn_peer != TCP_PEER_OFF &&
             (h->opts & TCP_EXACT_ECN ? r->opts & TCP_EXACT_ECN : r->conf->ecn);
    r->ts_ps = r->ts_recent_ps = h->ts_ps;
    r->syn_wait = r->careful = true;
    r->again_ps = gw_later(now, gw_min(TCP_RTO_FIRST_PS << gw_min(r->tries, 7),
                                       TCP_RTO_MAX_PS));
    tcp_send_syn_ack(rx, r, p, now);
    tcp_rx_arm(rx, r);
}

/* A block that is not one of the newest two is to come first: what is held back must go before, or
 * the sender would never hear of the others (tcp_sack_new_ofo_skb()). */
static void tcp_rx_release(struct gw_rx *rx, struct tcp_rx *r, uint64_t s, uint64_t e, uint64_t now)
{
    struct gw_pkt *p;
    uint32_t i = 0;

    while (i < r->block_count && (e < r->gaps->block[i][0] || s > r->gaps->block[i][1]))
        i++;
    if (i < 2 || !r->held)
        return;
    p = rx->host->pkt_alloc(rx->net);
    if (p)
        tcp_send_ack(rx, r, p, now);
}

/* Remembers [s, e) as the newest block, those it swallowed forgotten (RFC 2018 section 4). */
static void tcp_note_block(struct tcp_rx *r, uint64_t s, uint64_t e)
{
    uint32_t max = TCP_BLOCKS_MAX, n = 1;
    uint64_t old[TCP_BLOCKS_MAX][2];

    memcpy(old, r->gaps->block, sizeof old);
    r->gaps->block[0][0] = s;
    r->gaps->block[0][1] = e;
    for (uint32_t i = 0; i < r->block_count && n < max; i++) {
        if (old[i][0] >= s && old[i][1] <= e)
            continue;
        r->gaps->block[n][0] = old[i][0];
        r->gaps->block[n++][1] = old[i][1];
    }
    r->block_count = n;
}

/* Blocks that the cumulative ACK has passed are forgotten. */
static void tcp_drop_blocks(struct tcp_rx *r)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < r->block_count; i++) {
        if (r->gaps->block[i][1] <= r->nxt)
            continue;
        r->gaps->block[n][0] = r->gaps->block[i][0];
        r->gaps->block[n++][1] = r->gaps->block[i][1];
    }
    r->block_count = n;
}

/* [s, e) is out of order: counts it, and notes what of it is there already. */
static void tcp_rx_overlap(struct tcp_rx *r, uint64_t s, uint64_t e)
{
    struct gw_seqset *o = &r->gaps->set;
    uint64_t fresh = e - s;

    for (uint32_t i = gw_seqset_find(o, s); i != GW_SEQ_NIL && o->node[i].start < e;
         i = o->node[i].next) {
        uint64_t from = gw_max(s, o->node[i].start), to = gw_min(e, o->node[i].end);

        fresh -= to - from;
        if (r->conf->dsack && r->opts & TCP_HAS_SACK && r->dsack[0] >= r->dsack[1]) {
            r->dsack[0] = from;
            r->dsack[1] = to;
        }
    }
    r->ooo_bytes += fresh;
}

/* Room for a range more, in a set of its own. False: out of memory. */
static bool tcp_rx_room(const struct gw_rx *rx, struct tcp_rx *r)
{
    if (r->gaps == &tcp_no_gaps) {
        struct tcp_gaps *g = rx->host->resize(NULL, sizeof *g);

        if (!g)
            return false;
        *g = tcp_no_gaps;
        r->gaps = g;
    }
    return gw_seqset_reserve(&r->gaps->set, 1, rx->host->resize);
}

/* [s, e) has come: moves nxt or keeps it for later. Out of memory it counts as lost. */
static void tcp_reassemble(struct gw_rx *rx, struct tcp_rx *r, uint64_t s, uint64_t e,
                           uint64_t now)
{
    struct gw_seqset *o = &r->gaps->set;
    uint32_t i;

    if (s > r->nxt) {
        if (!tcp_rx_room(rx, r))
            return;
        o = &r->gaps->set;
        tcp_rx_release(rx, r, s, e, now);
        tcp_rx_overlap(r, s, e);
        i = gw_seqset_add(o, s, e);
        if (r->opts & TCP_HAS_SACK)
            tcp_note_block(r, o->node[i].start, o->node[i].end);
        return;
    }
    if (e > r->nxt)
        r->nxt = e;
    while ((i = o->head) != GW_SEQ_NIL && o->node[i].start <= r->nxt) {
        r->nxt = gw_max(r->nxt, o->node[i].end);
        r->ooo_bytes -= o->node[i].end - o->node[i].start;
        gw_seqset_remove(o, i);
    }
    tcp_drop_blocks(r);
}

/* More ACKs at once: for half a window, at most @most (tcp_incr_quickack()). */
static void tcp_rx_quick(struct tcp_rx *r, uint32_t most)
{
    uint64_t window = r->wnd_end > r->nxt ? r->wnd_end - r->nxt : 0;
    uint64_t segs = r->seg_bytes ? window / (2 * r->seg_bytes) : 0;

    r->quick = (uint32_t)gw_max(r->quick, gw_min(segs ? segs : 2, most));
}

/* Each change between marked and not marked is told at once, and what was held back before it goes
 * first, so that the sender can count marked bytes (RFC 8257 3.2). */
static void tcp_rx_exact(struct gw_rx *rx, struct tcp_rx *r, bool marked, bool cwr, uint64_t now)
{
    r->opts |= TCP_EXACT_ECN;
    if (marked != r->ece) {
        struct gw_pkt *p = r->nxt > r->acked ? rx->host->pkt_alloc(rx->net) : NULL;

        if (p)
            tcp_send_ack(rx, r, p, now);
        r->ece = marked;
        cwr = true;
    }
    if (cwr)
        r->quick = (uint32_t)gw_max(r->quick, 1);
}

/* Classic ECN: echo from a mark until the sender says that it has reacted. */
static void tcp_rx_ecn(struct gw_rx *rx, struct tcp_rx *r, const struct gw_pkt *p, uint64_t now)
{
    const struct tcp_hdr *h = (const struct tcp_hdr *)(const void *)p->tp;
    uint8_t flags = h->flags;

    if (!r->ecn)
        return;
    if (h->opts & TCP_EXACT_ECN) {
        if (h->len)
            tcp_rx_exact(rx, r, p->ecn == GW_ECN_CE, flags & TCP_CWR, now);
        return;
    }
    if (flags & TCP_CWR)
        r->ece = false;
    if (p->ecn == GW_ECN_CE) {
        if (!r->ece)
            r->quick = gw_max(r->quick, 2);
        r->ece = true;
    }
}

/* Something that is there already has come again: an ACK at once, which says so, and then no more
 * delays for a while. */
static void tcp_rx_again(struct gw_rx *rx, struct tcp_rx *r, struct gw_pkt *p, uint64_t now)
{
    const struct tcp_hdr *h = (const struct tcp_hdr *)(const void *)p->tp;

    tcp_rx_quick(r, TCP_QUICK_ACKS);
    if (r->conf->dsack && r->opts & TCP_HAS_SACK && h->len) {
        r->dsack[0] = h->seq;
        r->dsack[1] = h->seq + h->len;
    }
    r->careful = true;
    tcp_send_ack(rx, r, p, now);
}

/* More out of order behind a gap: the first three ACKs go at once, then one for many. True: this
 * one is held back (RFC 8985's reason to compress less early is the sender's). */
static bool tcp_rx_hold(struct tcp_rx *r, uint64_t now)
{
    uint64_t rtt = r->syn_rtt_ps ? gw_min(r->rtt8_ps / 8, r->syn_rtt_ps) : r->rtt8_ps / 8;
    uint64_t wait = gw_min(TCP_HELD_PS, rtt / 20);

    if (!(r->opts & TCP_HAS_SACK) || !r->conf->compress || r->held >= TCP_HELD_MAX)
        return false;
    if (r->dup_nxt != r->nxt) {
        r->dup_nxt = r->nxt;
        r->dup_count = 0;
    }
    if (r->dup_count < TCP_DUP_THRESH) {
        r->dup_count++;
        return false;
    }
    if (!r->held++) {
        r->held_due_ps = gw_later(now, wait + TCP_HELD_SLACK_PS);
        if (r->due_ps > now)                       /* an older delay's timer still runs         */
            r->held_due_ps = gw_min(r->held_due_ps, r->due_ps);
    }
    return true;
}

/* Is the ACK of a segment that brought something held back, and for how long? */
static bool tcp_rx_wait(struct tcp_rx *r, uint8_t flags, bool at_once, bool in_order, uint64_t now)
{
    if (at_once || r->quick || r->nxt - r->acked > r->seg_bytes || !r->conf->delayed_ack_ps)
        return false;
    if (r->gaps->set.count)
        return tcp_rx_hold(r, now);
    if (in_order && flags & TCP_PSH)
        return false;
    r->due_ps = tcp_tick(r->conf, now, r->conf->delayed_ack_ps);
    return true;
}

/* Data that left at @ts: behind a pause longer than a timeout the sender starts anew, and is helped
 * by quick ACKs (tcp_event_data_recv()). */
static inline void tcp_rx_sent(struct tcp_rx *r, uint64_t ts)
{
    uint64_t rtt = r->syn_rtt_ps;

    if (GW_UNLIKELY(ts > r->ts_ps + TCP_RTO_BASE_PS) &&
        ts - r->ts_ps > rtt + gw_max(2 * rtt, r->conf->rto_min_ps))
        tcp_rx_quick(r, TCP_QUICK_ACKS);
    r->ts_ps = ts;
}

static void tcp_rx_seg(struct tcp_rx *r, const struct gw_pkt *p, uint32_t len)
{
    if (GW_UNLIKELY(len > r->seg_bytes)) {
        if (p->seg_count > 1)
            len = p->seg_bytes - TCP_L3_BYTES - tcp_opt_bytes(r->opts);
        r->seg_bytes = len;
        r->seg_memory = tcp_seg_memory(len);
    }
}

/* The handshake's ACK or data with it, and the last ACK, end the repetition of what they answer. */
static void tcp_rx_answered(struct tcp_rx *r, const struct tcp_hdr *h, uint64_t now)
{
    if (r->syn_wait) {
        r->syn_wait = false;
        r->again_ps = GW_NEVER;
        r->tries = 0;
        r->syn_rtt_ps = now - r->rtt_begin_ps;
        tcp_rx_begin(r, now);
    }
    if (h->opts & TCP_PAST_FIN) {
        r->closed = true;
        r->again_ps = GW_NEVER;
    }
}

/* Everything but the next segment of an undisturbed stream. */
static void tcp_rx_slow(struct gw_rx *rx, struct tcp_rx *r, struct gw_pkt *p, uint64_t now)
{
    const struct tcp_hdr *h = tcp_hdr(p);
    uint64_t before = r->nxt, end = h->seq + h->len + !!(h->flags & TCP_FIN);
    bool fin = h->flags & TCP_FIN, gap = r->gaps->set.count;

    if (h->flags & TCP_SYN && !r->nxt) {
        tcp_rx_syn(rx, r, p, now);
        return;
    }
    if (h->flags & TCP_SYN)                              /* an old duplicate */
        end = h->seq;
    tcp_rx_answered(r, h, now);
    tcp_rx_ecn(rx, r, p, now);
    if (end == h->seq) {                                 /* a pure ACK */
        r->careful = r->gro || r->gaps->set.count || r->ece || r->fin != GW_NEVER || !r->begun;
        rx->host->pkt_free(rx->net, p);
        return;
    }
    if (fin)
        r->fin = h->seq + h->len;
    if (h->seq <= r->nxt && end >= r->acked)             /* what is all old is not looked at   */
        r->ts_recent_ps = h->ts_ps;
    if (r->nxt > r->fin && r->again_ps == GW_NEVER && !r->closed)
        r->again_ps = gw_later(now, TCP_RTO_FIRST_PS);
    if (end <= r->nxt) {
        r->ts_ps = h->ts_ps;
        tcp_rx_again(rx, r, p, now);
        tcp_rx_arm(rx, r);
        return;
    }
    tcp_rx_seg(r, p, h->len);
    tcp_rx_measure(r, h, now);
    if (h->seq < r->nxt && r->conf->dsack && r->opts & TCP_HAS_SACK) {
        r->dsack[0] = h->seq;
        r->dsack[1] = r->nxt;
    }
    if (!r->begun && h->seq <= r->nxt) {
        r->begun = true;
        tcp_rx_quick(r, TCP_QUICK_ACKS);
    }
    tcp_reassemble(rx, r, h->seq, end, now);
    tcp_rx_sent(r, h->ts_ps);
    if (r->opts & TCP_HAS_SACK || r->nxt != before)
        tcp_rx_grow(r, h->len, r->nxt != before);
    if (r->nxt > r->fin && r->again_ps == GW_NEVER && !r->closed)
        r->again_ps = gw_later(now, TCP_RTO_FIRST_PS);
    r->careful = r->gro || r->gaps->set.count || r->ece || r->fin != GW_NEVER ||
                 r->dsack[0] < r->dsack[1] || !r->begun;
    if (tcp_rx_wait(r, h->flags, fin || (gap && !r->gaps->set.count), r->nxt != before, now)) {
        rx->host->pkt_free(rx->net, p);
    } else {
        r->quick -= r->quick != 0;
        tcp_send_ack(rx, r, p, now);
    }
    tcp_rx_arm(rx, r);
    if (r->nxt != before) {
        tcp_rx_read(r, end, now);
        rx->host->rx_deliver(rx, gw_min(r->nxt, r->fin), now);
    }
}

/* ---- the receiver: merging ------------------------------------------------------------------- */

static void tcp_gro_flush(struct gw_rx *rx, struct tcp_rx *r, uint64_t now)
{
    struct gw_pkt *p = r->gro->held ? rx->host->pkt_alloc(rx->net) : NULL;

    r->gro->held = false;
    r->gro->due_ps = GW_NEVER;
    if (!p)
        return;
    *p = r->gro->first;
    tcp_rx_slow(rx, r, p, now);
}

static void tcp_rx_fire(void *owner, uint64_t now)
{
    struct gw_rx *rx = owner;
    struct tcp_rx *r = rx->priv;

    if (r->gro && r->gro->due_ps <= now)
        tcp_gro_flush(rx, r, now);
    tcp_rx_due(rx, r, now);
}

/* Payload of a packet's segments. */
static uint32_t tcp_gso_bytes(const struct gw_pkt *p)
{
    const struct tcp_hdr *h = (const struct tcp_hdr *)(const void *)p->tp;

    return p->seg_count > 1 ? p->seg_bytes - TCP_L3_BYTES - tcp_opt_bytes(h->opts) : h->len;
}

/* Nothing is merged behind a packet that is pushed or closes, nor behind a short segment. */
static bool tcp_gro_ends(const struct gw_pkt *p, uint32_t mss)
{
    const struct tcp_hdr *h = (const struct tcp_hdr *)(const void *)p->tp;

    return h->flags & (TCP_SYN | TCP_FIN | TCP_PSH) || h->len % mss;
}

/* Does @p continue what is held? The same header but for its position, at most 64 KiB in all. */
static bool tcp_gro_fits(const struct tcp_gro *g, const struct gw_pkt *p)
{
    const struct tcp_hdr *h = (const struct tcp_hdr *)(const void *)p->tp;
    const struct tcp_hdr *f = (const struct tcp_hdr *)(const void *)g->first.tp;
    uint32_t head = TCP_L3_BYTES - GW_ETH_BYTES + tcp_opt_bytes(f->opts);

    if (h->seq != f->seq + f->len || !h->len || tcp_gso_bytes(p) > g->mss ||
        (p->seg_count > 1 && tcp_gso_bytes(p) < g->mss) ||
        head + f->len + h->len >= TCP_GRO_MAX)
        return false;
    if (h->flags & TCP_CWR || (h->flags ^ f->flags) & ~(TCP_CWR | TCP_FIN | TCP_PSH) ||
        h->opts != f->opts || p->ecn != g->first.ecn)
        return false;
    return !(h->opts & TCP_HAS_TS) || (h->window == f->window &&
                                       tcp_clock_ms(h->ts_ps) == tcp_clock_ms(f->ts_ps));
}

static void tcp_gro_merge(struct tcp_gro *g, const struct gw_pkt *p)
{
    const struct tcp_hdr *h = (const struct tcp_hdr *)(const void *)p->tp;
    struct tcp_hdr *f = tcp_hdr(&g->first);

    f->len += h->len;
    f->flags |= h->flags & (TCP_FIN | TCP_PSH);
    f->ts_ps = h->ts_ps;
    g->first.seg_bytes = (uint16_t)(TCP_L3_BYTES + tcp_opt_bytes(f->opts) + g->mss);
    g->first.seg_count = 2;                        /* or more: nobody asks any longer           */
}

static uint64_t tcp_gro_age(const struct tcp_rx *r, uint64_t now)
{
    return now / (r->conf->tick_ps ? r->conf->tick_ps : GW_PS_PER_MS);
}

/* A poll ends with each instant; what is held may wait for the next ones, but not beyond its tick
 * (napi_complete_done()). */
static void tcp_gro_wait(struct gw_rx *rx, struct tcp_rx *r, uint64_t now)
{
    if (r->conf->gro_flush_ps && r->gro->age != tcp_gro_age(r, now)) {
        tcp_gro_flush(rx, r, now);
    } else {
        r->gro->due_ps = gw_later(now, gw_max(r->conf->gro_flush_ps, 1));
        tcp_rx_arm(rx, r);
    }
}

/* A packet comes from the network: merged, held, or given to TCP (tcp_gro_receive()). */
static void tcp_gro_receive(struct gw_rx *rx, struct tcp_rx *r, struct gw_pkt *p, uint64_t now)
{
    struct tcp_gro *g = r->gro;

    if (g->held && tcp_gro_fits(g, p)) {
        bool ends = tcp_gro_ends(p, g->mss);

        tcp_gro_merge(g, p);
        rx->host->pkt_free(rx->net, p);
        if (ends)
            tcp_gro_flush(rx, r, now);
    } else {
        tcp_gro_flush(rx, r, now);
        g->mss = tcp_gso_bytes(p);
        if (!g->mss || tcp_gro_ends(p, g->mss)) {
            tcp_rx_slow(rx, r, p, now);
        } else {
            g->first = *p;
            g->first.ext = GW_NONE;
            g->held = true;
            g->age = tcp_gro_age(r, now);
            rx->host->pkt_free(rx->net, p);
        }
    }
    if (g->held)
        tcp_gro_wait(rx, r, now);
}

static void tcp_rx_packet(struct gw_rx *rx, struct gw_pkt *p, uint64_t now)
{
    struct tcp_rx *r = rx->priv;
    const struct tcp_hdr *h = tcp_hdr(p);
    uint64_t total;

    if (GW_UNLIKELY(p->flags & (GW_PKT_CORRUPT | GW_PKT_TRIMMED))) {
        rx->host->pkt_free(rx->net, p);
        return;
    }
    if (GW_UNLIKELY(h->seq != r->nxt || r->careful || p->ecn == GW_ECN_CE || !h->len ||
                    h->flags & (TCP_SYN | TCP_FIN | TCP_CWR))) {
        if (r->gro)                                    /* which keeps it careful               */
            tcp_gro_receive(rx, r, p, now);
        else
            tcp_rx_slow(rx, r, p, now);
        return;
    }
    r->nxt += h->len;
    tcp_rx_sent(r, h->ts_ps);
    r->ts_recent_ps = h->ts_ps;
    tcp_rx_seg(r, p, h->len);
    tcp_rx_measure(r, h, now);
    tcp_rx_grow(r, h->len, true);
    total = r->nxt;
    if (total - r->acked > r->seg_bytes || h->flags & TCP_PSH || r->quick ||
        !r->conf->delayed_ack_ps) {
        r->quick -= r->quick != 0;
        tcp_send_ack(rx, r, p, now);
    } else {
        r->due_ps = tcp_tick(r->conf, now, r->conf->delayed_ack_ps);
        rx->host->pkt_free(rx->net, p);
        tcp_rx_arm(rx, r);
    }
    tcp_rx_read(r, total, now);
    rx->host->rx_deliver(rx, total, now);
}

static enum gw_status tcp_rx_init(struct gw_rx *rx, uint64_t now, struct gw_error *err)
{
    struct tcp_rx *r = rx->priv;

    r->conf = rx->conf;
    r->fin = r->armed_ps = r->again_ps = GW_NEVER;
    r->careful = true;
    r->opts = tcp_opts(r->conf);
    r->wscale = tcp_wscale(r->conf);
    r->window_max = gw_min(tcp_window_max(r->conf), UINT64_C(65535) << r->wscale);
    r->mss = tcp_mss_of(rx->mtu_bytes, r->conf, 0);
    r->rcvbuf_bytes = gw_min(TCP_RCVBUF_FIRST, r->conf->rcvbuf_bytes);
    r->ssthresh_bytes = tcp_first_window(r->conf, r->mss);
    if (!r->conf->syn) {
        r->wnd_end = TCP_WINDOW_FIRST;
        tcp_rx_begin(r, now);
    }
    if (r->conf->syn && r->conf->ecn_peer == TCP_PEER_SAME)
        r->opts |= TCP_EXACT_ECN;                  /* until the SYN says otherwise              */
    r->ecn = !r->conf->syn && r->conf->ecn_peer != TCP_PEER_OFF;
    r->gaps = (struct tcp_gaps *)(uintptr_t)&tcp_no_gaps;         /* is not written to         */
    r->timer.fire = tcp_rx_fire;
    r->timer.owner = rx;
    r->timer.comp = rx->comp;
    if (!r->conf->gro)
        return GW_OK;
    r->gro = tcp_extra(rx->host, sizeof *r->gro, rx->flow, err);
    if (!r->gro)
        return err->code;
    r->gro->due_ps = GW_NEVER;
    return GW_OK;
}

static void tcp_rx_fini(struct gw_rx *rx)
{
    struct tcp_rx *r = rx->priv;

    rx->host->timer_stop(rx->net, &r->timer);
    if (r->gro)
        rx->host->release(r->gro);
    if (r->gaps != &tcp_no_gaps) {
        gw_seqset_fini(&r->gaps->set, rx->host->release);
        rx->host->release(r->gaps);
    }
}

/* ---- headers --------------------------------------------------------------------------------- */

/* Initial sequence number of one direction of a flow. */
static uint32_t tcp_isn(uint32_t flow, bool reverse)
{
    return (uint32_t)gw_mix64(((uint64_t)flow << 1 | reverse) + UINT64_C(0x9e3779b97f4a7c15));
}

/* Options in Linux's order; returns the end. */
static uint8_t *tcp_put_options(const struct gw_pkt *p, const struct tcp_hdr *h,
                                const struct tcp_ext *x, uint8_t *b)
{
    bool reverse = p->flags & GW_PKT_REVERSE;
    uint32_t tsval = reverse ? h->tsval_ms : tcp_clock_ms(h->ts_ps);
    uint32_t tsecr = reverse ? h->len : h->flags & TCP_SYN ? 0 : h->window;

    if (h->flags & TCP_SYN) {
        b = gw_put32(b, 0x02040000u | h->window >> 16);
        if (h->opts & TCP_HAS_SACK)
            b = gw_put16(b, 0x0402);
        else if (h->opts & TCP_HAS_TS)
            b = gw_put16(b, 0x0101);
        if (h->opts & TCP_HAS_SACK && !(h->opts & TCP_HAS_TS))
            b = gw_put16(b, 0x0101);
    } else if (h->opts & TCP_HAS_TS) {
        b = gw_put16(b, 0x0101);
    }
    if (h->opts & TCP_HAS_TS)
        b = gw_put32(gw_put32(gw_put16(b, 0x080a), tsval), tsecr);
    if (h->flags & TCP_SYN)
        b = gw_put32(b, 0x01030300u | h->wscale);
    if (h->blocks && x) {
        uint32_t base = tcp_isn(p->flow, false) + 1;

        b = gw_put32(b, 0x01010500u | (2u + 8u * h->blocks));
        for (uint32_t i = 0; i < h->blocks; i++)
            b = gw_put32(gw_put32(b, base + (uint32_t)x->block[i][0]),
                         base + (uint32_t)x->block[i][1]);
    }
    return b;
}

static uint32_t tcp_encode(const struct gw_pkt *p, const void *ext, const struct gw_flow_addr *a,
                           uint8_t *buf, uint8_t *ip_proto)
{
    const struct tcp_hdr *h = (const struct tcp_hdr *)(const void *)p->tp;
    bool reverse = p->flags & GW_PKT_REVERSE, syn = h->flags & TCP_SYN;
    uint32_t own = tcp_isn(p->flow, reverse) + !syn, peer = tcp_isn(p->flow, !reverse) + 1;
    uint32_t window = (reverse ? h->window : TCP_WINDOW_FIRST) >> h->wscale;
    uint8_t *end = tcp_put_options(p, h, ext, buf + 20);

    if (syn)
        window = h->window & 0xffff;
    if (!reverse)
        own += (uint32_t)h->seq;
    if (reverse && !syn)
        peer += (uint32_t)h->seq;
    if (!reverse && h->opts & TCP_PAST_FIN)
        peer++;
    gw_put16(buf, reverse ? a->dst_port : a->src_port);    /* @a is the flow's, not the packet's */
    gw_put16(buf + 2, reverse ? a->src_port : a->dst_port);
    gw_put32(buf + 4, own);
    gw_put32(buf + 8, h->flags & TCP_ACK ? peer : 0);
    buf[12] = (uint8_t)((end - buf) / 4 << 4);
    buf[13] = h->flags;
    gw_put16(buf + 14, window > 65535 ? 65535 : window);
    gw_put16(buf + 16, 0);
    gw_put16(buf + 18, 0);
    *ip_proto = 6;
    return (uint32_t)(end - buf);
}

static void tcp_describe(const struct gw_pkt *p, struct gw_pkt_facts *f)
{
    const struct tcp_hdr *h = (const struct tcp_hdr *)(const void *)p->tp;
    bool reverse = p->flags & GW_PKT_REVERSE, syn = h->flags & TCP_SYN;

    f->offset = h->seq;
    f->bytes = reverse || syn ? 0 : h->len;
    f->what = (uint8_t)((syn ? GW_WHAT_OPEN : 0) | (f->bytes ? GW_WHAT_DATA : 0) |
                        (h->flags & TCP_FIN ? GW_WHAT_CLOSE : 0) |
                        (!syn && !f->bytes ? GW_WHAT_ACK : 0));
}

/* Segment @i of a super-packet (tcp_gso_segment()). */
static void tcp_segment(struct gw_pkt *p, uint32_t i)
{
    struct tcp_hdr *h = tcp_hdr(p);
    uint32_t mss = p->seg_bytes - TCP_L3_BYTES - tcp_opt_bytes(h->opts);

    h->seq += (uint64_t)i * mss;
    h->len = (uint32_t)gw_min(h->len - i * mss, mss);
    if (i)
        h->flags &= (uint8_t)~TCP_CWR;
    if (i + 1 < p->seg_count)
        h->flags &= (uint8_t)~(TCP_FIN | TCP_PSH);
}

/* Data segments alone: neither handshake nor ACKs nor a FIN of its own. */
static uint64_t tcp_wire_bytes(const void *conf, uint64_t payload, uint32_t mtu_bytes,
                               uint64_t *frames)
{
    const struct tcp_conf *c = conf;

    return gw_seg_wire_bytes(payload, tcp_mss(c, mtu_bytes),
                             TCP_L3_BYTES + tcp_opt_bytes(tcp_opts(c)), frames);
}

static const struct gw_transport_ops tcp_ops = {
    .level        = GW_TP_PACKET,
    .conf_bytes   = sizeof(struct tcp_conf),
    .tx_bytes     = sizeof(struct tcp_tx),
    .rx_bytes     = sizeof(struct tcp_rx),
    .header_bytes = TCP_L3_BYTES + TCP_TS_BYTES,
    .tx_init      = tcp_tx_init,
    .rx_init      = tcp_rx_init,
    .tx_fini      = tcp_tx_fini,
    .rx_fini      = tcp_rx_fini,
    .tx_write     = tcp_tx_write,
    .tx_packet    = tcp_tx_packet,
    .rx_packet    = tcp_rx_packet,
    .tx_room      = tcp_tx_room,
    .encode       = tcp_encode,
    .wire_bytes   = tcp_wire_bytes,
    .ext_bytes    = sizeof(struct tcp_ext),
    .describe     = tcp_describe,
    .trace_columns = tcp_trace_columns,
    .segment      = tcp_segment,
    .check        = tcp_check,
};

static const struct gw_param tcp_params[] = {
    { "cc", GW_P_STRING, offsetof(struct tcp_conf, cc), "cubic", NULL, NULL,
      "Congestion control, a plugin's name; its own options stand beside this one." },
    { "streams", GW_P_U32, offsetof(struct tcp_conf, streams), "1", "1", "1024",
      "Connections that carry each message between two ranks, a share each." },
    { "mss", GW_P_BYTES, offsetof(struct tcp_conf, mss_bytes), "0", "0", "65483",
      "Payload of a full segment; 0: the path's MTU less 40 bytes and 12 for timestamps." },
    { "initial_window", GW_P_U32, offsetof(struct tcp_conf, initial_window), "10", "1", "100000",
      "Congestion window at the start, in segments." },
    { "window", GW_P_BYTES, offsetof(struct tcp_conf, window_bytes), "0", "0", NULL,
      "Receive window at most; 0: as much as window scaling can say (1 GiB)." },
    { "rcvbuf", GW_P_BYTES, offsetof(struct tcp_conf, rcvbuf_bytes), "256MiB", "4KiB", "2GiB",
      "Memory of the receiving socket at most; the window, half of it, starts at 64 KiB and grows "
      "with what comes in a round trip. Linux's tcp_rmem: 6MiB." },
    { "sndbuf", GW_P_BYTES, offsetof(struct tcp_conf, sndbuf_bytes), "256MiB", "16KiB", "1TB",
      "Memory of the sending socket at most; it grows with the window. Linux's tcp_wmem: 4MiB." },
    { "rto_min", GW_P_TIME, offsetof(struct tcp_conf, rto_min_ps), "200ms", "1us", "60s",
      "Least value of the variance term of the retransmission timeout." },
    { "syn_retries", GW_P_U32, offsetof(struct tcp_conf, syn_retries), "6", "0", "127",
      "How often a SYN is repeated before the flow is given up; 0: for ever." },
    { "retries", GW_P_U32, offsetof(struct tcp_conf, retries), "15", "0", "1000",
      "The flow is given up when nothing was acknowledged for as long as this many timeouts, "
      "doubling from 200 ms, last (15: 924.6 s); 0: for ever." },
    { "delayed_ack", GW_P_TIME, offsetof(struct tcp_conf, delayed_ack_ps), "40ms", "0", "1s",
      "How long the ACK of a single segment waits for a second one; 0: no waiting." },
    { "tick", GW_P_TIME, offsetof(struct tcp_conf, tick_ps), "1ms", "0", "100ms",
      "The kernel's timer tick: timeouts, probes and delayed ACKs come late by one, by 8 above 63 "
      "ms, by 64 above 504 ms, and cubic grows once per tick; 0: exact." },
    { "tso", GW_P_BOOL, offsetof(struct tcp_conf, tso), "yes", NULL, NULL,
      "Cut the stream into super-segments as Linux does, with or without a card's help: a "
      "millisecond of the rate, at least two segments that leave in one instant, the last one "
      "pushed; short ones wait for more window. no: one by one, as formulas have it." },
    { "offload", GW_P_BOOL, offsetof(struct tcp_conf, offload), "no", NULL, NULL,
      "Super-segments cross links and queues whole, as between veth devices: one packet of up to 64 "
      "KiB, which disciplines count, delay and lose as one, of the length of all its frames; it is "
      "acknowledged at once. Needs tso." },
    { "gro", GW_P_BOOL, offsetof(struct tcp_conf, gro), "no", NULL, NULL,
      "Segments that come back to back are merged before the receiver sees them, and get one ACK: in "
      "order, with the same timestamps and mark, up to 64 KiB or the first one that is short or "
      "pushed. Back to back: in one instant, or by gro_flush_timeout." },
    { "gro_flush_timeout", GW_P_TIME, offsetof(struct tcp_conf, gro_flush_ps), "0", "0", "1s",
      "With gro, how long merged segments wait for another one; each one that comes starts it anew, "
      "but none waits beyond its tick, as with Linux's word of that name." },
    { "frto", GW_P_BOOL, offsetof(struct tcp_conf, frto), "yes", NULL, NULL,
      "Find out whether a timeout was spurious by sending new data behind it (RFC 5682)." },
    { "idle_restart", GW_P_BOOL, offsetof(struct tcp_conf, idle_restart), "yes", NULL, NULL,
      "The window falls when it was not used for a timeout; no: as with Linux's "
      "tcp_slow_start_after_idle=0." },
    { "dsack", GW_P_BOOL, offsetof(struct tcp_conf, dsack), "yes", NULL, NULL,
      "Tell what came twice (RFC 2883)." },
    { "compress", GW_P_BOOL, offsetof(struct tcp_conf, compress), "yes", NULL, NULL,
      "Hold back selective ACKs behind the third for a millisecond or 5 % of the round trip." },
    { "sack", GW_P_BOOL, offsetof(struct tcp_conf, sack), "yes", NULL, NULL,
      "Selective acknowledgements; without them NewReno's recovery." },
    { "timestamps", GW_P_BOOL, offsetof(struct tcp_conf, timestamps), "yes", NULL, NULL,
      "Timestamps in every segment (12 bytes)." },
    { "syn", GW_P_BOOL, offsetof(struct tcp_conf, syn), "yes", NULL, NULL,
      "Open with a handshake and close with FIN; no: flows exist from the start." },
    { "ecn", GW_P_BOOL, offsetof(struct tcp_conf, ecn), "off", NULL, NULL,
      "Explicit congestion notification (RFC 3168)." },
    { "ecn_peer", GW_P_CHOICE, offsetof(struct tcp_conf, ecn_peer), "same", "same|classic|off",
      NULL, "What the receiver makes of ECN: what the sender's congestion control asks; RFC 3168 "
      "alone, so that it refuses dctcp, which then runs as reno; or nothing." },
    { "pacing", GW_P_BOOL, offsetof(struct tcp_conf, pacing), "no", NULL, NULL,
      "Spread segments over the round trip, as Linux with fq at the sender does: at 200 % of the "
      "window per round trip in slow start, else 120 %; bbr paces in any case." },
    { "tlp", GW_P_BOOL, offsetof(struct tcp_conf, tlp), "yes", NULL, NULL,
      "Tail loss probe." },
};

GW_PLUGIN(gw_transport_tcp) = {
    GW_PLUGIN_HEAD(GW_KIND_TRANSPORT, tcp_ops),
    .name    = "tcp",
    .summary = "TCP with SACK, RACK, PRR and timestamps, as Linux 6.1 sends it.",
    .params  = tcp_params, .param_count = GW_ARRAY_LEN(tcp_params),
    .source  = "RFC 5681, 6298, 6582, 6937, 7323, 8985, 9438; Linux 6.1 net/ipv4",
};
