/*
 * tp_rocev2 - RDMA over UDP: RoCEv2 reliable connections
 *
 * What it imitates: a queue pair of the InfiniBand architecture (reliable connection, IBA 1.3
 * chapter 9) over UDP port 4791 (annex A17), as network cards carry it out. Each message is an RDMA
 * WRITE (or WRITE with immediate, or SEND) cut into packets of the path MTU: first, middle, last,
 * or only. Packets are numbered (24 bits on the wire, 64 here). The sender asks for an
 * acknowledgement every `ack_every` packets, with the last one of a message, and whenever it will
 * have to stop. Messages follow each other without waiting.
 *
 * Recovery, go-back-n: the responder throws away what is out of order and says so once per gap (NAK
 * sequence error); the requester starts again from there. A lost NAK, ACK or tail costs a local ACK
 * timeout, which does the same. Duplicates are acknowledged again. Recovery, selective: what Mittal
 * et al. ("Revisiting network support for RDMA", SIGCOMM 2018, IRN) propose: out of order packets
 * are kept, each is answered with a NACK that names it, the sender sends what is missing below the
 * highest one that has come, each packet once per recovery, and then goes on with new ones; at most
 * one bandwidth-delay product is out (`window`). A timeout sends the first missing packet and then,
 * as ACKs come, twice as many as they confirm, unless the first ACK shows that the timeout was
 * wrong. Timeouts are not doubled, as in the specification.
 *
 * Congestion: packets are ECN-capable; the responder sends a congestion notification packet for a
 * marked one, at most one each `cnp_interval` (Zhu et al., SIGCOMM 2015). The reaction is the
 * congestion control's: rate (pacing_bps, by the wire's bytes), window, or both. An ACK brings back
 * the departure time of the packet that caused it, where a card keeps a table: round trip times are
 * exact and unambiguous. With a congestion control that wants telemetry, data packets collect it
 * hop by hop and ACKs return it; it takes 44 bytes behind the payload.
 *
 * Left out: connection set-up (out of band), READ and atomics, receiver-not-ready NAKs (buffers are
 * there), end-to-end credits, reordering tolerance, adaptive timeouts of cards. `retries` without
 * an answer break a queue pair in reality; 0 stands for going on for ever.
 */
#include <gradwire/plugin.h>
#include <gradwire/alg/icrc.h>
#include <gradwire/alg/segments.h>
#include <gradwire/alg/seqset.h>

#define ROCE_PORT 4791u
#define ROCE_IP_BYTES (20u + 8u + 12u + GW_ICRC_BYTES)   /* IPv4, UDP, BTH, ICRC                  */
#define ROCE_BASE_BYTES (GW_ETH_BYTES + ROCE_IP_BYTES)
#define ROCE_RETH_BYTES 16u
#define ROCE_IMM_BYTES 4u
#define ROCE_AETH_BYTES 4u
#define ROCE_CNP_BYTES 16u
#define ROCE_SACK_BYTES 4u
#define ROCE_INT_BYTES 44u               /* HPCC: 2 and five hops of 8 bytes, padded              */
#define ROCE_MTU_MAX 4096u
#define ROCE_PSN_WINDOW (UINT64_C(1) << 23)
#define ROCE_MESSAGE_MAX (UINT64_C(1) << 30)
#define ROCE_TIMEOUT_PS UINT64_C(67108864000)     /* 4.096 us x 2^14                              */
#define ROCE_RTO_HIGH_PS (320 * GW_PS_PER_US)     /* IRN's two timeouts                           */
#define ROCE_RTO_LOW_PS (100 * GW_PS_PER_US)
#define ROCE_RTO_LOW_PKTS 3u

enum roce_op {                   /* BTH opcodes of reliable connections, and the CNP's          */
    ROCE_SEND_FIRST = 0x00, ROCE_SEND_MIDDLE, ROCE_SEND_LAST, ROCE_SEND_LAST_IMM, ROCE_SEND_ONLY,
    ROCE_SEND_ONLY_IMM, ROCE_WRITE_FIRST, ROCE_WRITE_MIDDLE, ROCE_WRITE_LAST, ROCE_WRITE_LAST_IMM,
    ROCE_WRITE_ONLY, ROCE_WRITE_ONLY_IMM, ROCE_ACK = 0x11, ROCE_CNP = 0x81
};

enum roce_verb { ROCE_VERB_WRITE, ROCE_VERB_WRITE_IMM, ROCE_VERB_SEND };

enum roce_bit {
    ROCE_ACK_REQ = 1, ROCE_FIRST = 2, ROCE_LAST = 4, ROCE_NAK = 8, ROCE_SACK = 16, ROCE_INT = 32
};

/* The transport's 32 bytes of a packet. */
struct roce_hdr {
    uint64_t index;              /* data: its number; ACK: the next one expected               */
    uint64_t ts_ps;              /* data: when it left; ACK: that of the packet that caused it */
    uint64_t offset;             /* data: of its payload; NAK with ROCE_SACK: who came          */
    uint32_t length;             /* data: of the message; ACK: messages done                   */
    uint16_t bytes;              /* payload                                                    */
    uint8_t  op;                 /* enum roce_op                                               */
    uint8_t  bits;               /* enum roce_bit                                              */
};
_Static_assert(sizeof(struct roce_hdr) == sizeof(((struct gw_pkt *)0)->tp), "32 bytes per packet");

struct roce_conf {
    const char *cc;              /* read by the host                                           */
    uint32_t streams;            /* read by the host                                           */
    uint64_t mtu_bytes;          /* payload of a full packet; 0: from the path                 */
    uint32_t verb;               /* enum roce_verb                                             */
    uint32_t selective;          /* recovery                                                   */
    uint32_t ack_every;          /* packets                                                    */
    uint32_t retries;            /* 0: for ever                                                */
    uint64_t window_bytes;       /* 0: none, or a BDP if selective                             */
    uint64_t timeout_ps;         /* 0: by recovery                                             */
    uint64_t cnp_interval_ps;
    uint32_t priority, cnp_priority, dscp, cnp_dscp;
    bool     ecn;
};

struct roce_wqe {                /* a message, or a gigabyte of a longer one                   */
    uint64_t start, end;         /* of the stream                                              */
    uint64_t first;              /* number of its first packet                                 */
};

struct roce_tx {
    uint64_t una, nxt;           /* packets [una, nxt) are out                                 */
    uint64_t end;                /* packets that there are                                     */
    uint64_t sent;               /* packets ever sent: below it everything is a retransmission */
    uint64_t una_off, nxt_off;   /* the same as stream offsets                                 */
    uint64_t window_bytes;
    uint64_t pace_ps;            /* no packet before                                           */
    uint64_t due_ps;             /* of the timeout, GW_NEVER: nothing is out                   */
    uint64_t armed_ps;           /* when the timer will come up, GW_NEVER: not                 */
    uint64_t srtt_ps, min_rtt_ps;
    uint64_t delivered_bytes;
    struct roce_wqe *wqe;        /* ring of those not yet acknowledged                         */
    uint32_t wqe_head, wqe_count, wqe_cap;
    uint32_t wqe_nxt;            /* of nxt, counted from the head                              */
    uint32_t mtu;                /* payload of a full packet                                   */
    uint32_t base_bytes;         /* headers of a middle packet, telemetry included             */
    uint32_t since_ack;          /* packets since the last request for an ACK                  */
    uint32_t in_a_row;           /* timeouts                                                   */
    bool     limited;            /* the window held the last output back                       */
    bool     broken, closed;
    /* Recovery. */
    uint64_t recover;            /* end of the episode; una >= recover: none                   */
    uint64_t resend, high;       /* selective: next to look at; what is missing below is lost  */
    uint64_t timeout_ps, timeout_una;   /* selective: when the last timeout was; 0: over        */
    struct gw_seqset sacked;     /* numbers                                                    */
    struct gw_timer timer, pace;
    const struct roce_conf *conf;
};

struct roce_rx {
    uint64_t nxt, nxt_off;       /* next packet expected, its offset                           */
    uint64_t cnp_ps;             /* no CNP before                                              */
    uint32_t messages;           /* done, modulo 2^32                                          */
    bool     nak_sent;           /* for the gap at nxt                                         */
    struct gw_seqset ooo, ooo_off;       /* selective: numbers and stream ranges               */
    const struct roce_conf *conf;
};

static inline struct roce_hdr *roce_hdr(struct gw_pkt *p)
{
    return (struct roce_hdr *)(void *)p->tp;
}

static inline uint32_t roce_pad(uint32_t bytes)
{
    return -bytes & 3;
}

/* Bytes of extended headers of a data packet. */
static inline uint32_t roce_extra(const struct roce_conf *c, uint8_t bits)
{
    uint32_t n = bits & ROCE_FIRST && c->verb != ROCE_VERB_SEND ? ROCE_RETH_BYTES : 0;

    return bits & ROCE_LAST && c->verb == ROCE_VERB_WRITE_IMM ? n + ROCE_IMM_BYTES : n;
}

/* Payload of a full packet: the largest of 256, 512 .. 4096 that the path's IP MTU holds. */
static uint32_t roce_mtu(const struct roce_conf *c, uint32_t ip_mtu, uint32_t more)
{
    uint32_t head = ROCE_IP_BYTES + ROCE_RETH_BYTES + ROCE_IMM_BYTES + more;
    uint32_t fits = ip_mtu > head ? (ip_mtu - head) & ~3u : 0, mtu = ROCE_MTU_MAX;

    if (c->mtu_bytes)
        return (uint32_t)gw_min(c->mtu_bytes & ~UINT64_C(3), fits);
    while (mtu > 256 && mtu > fits)
        mtu /= 2;
    return mtu > fits ? fits : mtu;
}

static inline uint64_t roce_packets(uint64_t bytes, uint32_t mtu)
{
    return (bytes + mtu - 1) / mtu;
}

/* ---- the requester: messages ----------------------------------------------------------------- */

static inline struct roce_wqe *roce_wqe(const struct roce_tx *t, uint32_t i)
{
    return &t->wqe[(t->wqe_head + i) & (t->wqe_cap - 1)];
}

static bool roce_wqe_grow(struct gw_tx *tx, struct roce_tx *t)
{
    uint32_t cap = t->wqe_cap ? t->wqe_cap * 2 : 4;
    struct roce_wqe *w = tx->host->alloc(cap * sizeof *w);

    if (!w)
        return false;
    for (uint32_t i = 0; i < t->wqe_count; i++)
        w[i] = *roce_wqe(t, i);
    if (t->wqe)
        tx->host->release(t->wqe);
    t->wqe = w;
    t->wqe_cap = cap;
    t->wqe_head = 0;
    return true;
}

/* What was written since the last call is one message. */
static bool roce_post(struct gw_tx *tx, struct roce_tx *t)
{
    uint64_t at = t->wqe_count ? roce_wqe(t, t->wqe_count - 1)->end : t->una_off;

    while (at < tx->written_bytes) {
        uint64_t n = gw_min(tx->written_bytes - at, ROCE_MESSAGE_MAX);

        if (t->wqe_count == t->wqe_cap && !roce_wqe_grow(tx, t))
            return false;
        *roce_wqe(t, t->wqe_count++) = (struct roce_wqe){ at, at + n, t->end };
        t->end += roce_packets(n, t->mtu);
        at += n;
    }
    return true;
}

/* The message of packet @index, which is not yet acknowledged; counted from the head. */
static uint32_t roce_find(const struct roce_tx *t, uint64_t index)
{
    uint32_t low = 0, high = t->wqe_count;

    while (high - low > 1) {
        uint32_t mid = low + (high - low) / 2;

        if (roce_wqe(t, mid)->first <= index)
            low = mid;
        else
            high = mid;
    }
    return low;
}

static inline uint64_t roce_offset(const struct roce_tx *t, const struct roce_wqe *w,
                                   uint64_t index)
{
    return gw_min(w->start + (index - w->first) * t->mtu, w->end);
}

/* Sends from @index on again, or for the first time. */
static void roce_go_to(struct roce_tx *t, uint64_t index)
{
    t->nxt = index;
    t->wqe_nxt = index < t->end ? roce_find(t, index) : t->wqe_count;
    t->nxt_off = t->wqe_nxt < t->wqe_count ? roce_offset(t, roce_wqe(t, t->wqe_nxt), index)
                 : t->wqe_count ? roce_wqe(t, t->wqe_count - 1)->end : t->una_off;
}

/* ---- the requester: output ------------------------------------------------------------------- */

static void roce_arm(struct gw_tx *tx, struct roce_tx *t)
{
    if (GW_UNLIKELY(t->due_ps < t->armed_ps)) {
        t->armed_ps = t->due_ps;
        tx->host->timer_set(tx->net, &t->timer, t->due_ps);
    }
}

static uint64_t roce_timeout(const struct gw_tx *tx, const struct roce_tx *t)
{
    uint64_t ps = t->conf->timeout_ps;

    if (ps)
        return ps;
    if (!t->conf->selective)
        return gw_max(ROCE_TIMEOUT_PS, 4 * tx->cc.base_rtt_ps);
    ps = t->nxt - t->una <= ROCE_RTO_LOW_PKTS ? ROCE_RTO_LOW_PS : ROCE_RTO_HIGH_PS;
    return gw_max(ps, 3 * tx->cc.base_rtt_ps);
}

static uint8_t roce_opcode(const struct roce_conf *c, uint8_t bits)
{
    uint8_t op = c->verb == ROCE_VERB_SEND ? ROCE_SEND_FIRST : ROCE_WRITE_FIRST;

    if ((bits & (ROCE_FIRST | ROCE_LAST)) == ROCE_FIRST)
        return op;
    if (!(bits & ROCE_LAST))
        return (uint8_t)(op + 1);
    op = (uint8_t)(op + (bits & ROCE_FIRST ? 4 : 2));
    return c->verb == ROCE_VERB_WRITE_IMM ? (uint8_t)(op + 1) : op;
}

/* Packet @index of @w leaves. False: no packet was to be had. @ask: for an ACK. */
static bool roce_send(struct gw_tx *tx, struct roce_tx *t, const struct roce_wqe *w,
                      uint64_t index, bool ask, uint64_t now)
{
    struct gw_pkt *p = tx->host->pkt_alloc(tx->net);
    uint64_t off = roce_offset(t, w, index);
    uint32_t n = (uint32_t)gw_min(w->end - off, t->mtu);
    uint8_t bits = 0;
    struct roce_hdr *h;

    if (GW_UNLIKELY(!p))
        return false;
    if (GW_UNLIKELY(tx->cc.ops->telemetry)) {
        if (!tx->host->ext_alloc(tx->net, p)) {
            tx->host->pkt_free(tx->net, p);
            return false;
        }
        p->flags |= GW_PKT_INT;
        bits |= ROCE_INT;
    }
    if (index == w->first)
        bits |= ROCE_FIRST;
    if (off + n == w->end)
        bits |= ROCE_LAST;
    if (++t->since_ack >= t->conf->ack_every || ask || bits & ROCE_LAST) {
        bits |= ROCE_ACK_REQ;
        t->since_ack = 0;
    }
    h = roce_hdr(p);
    *h = (struct roce_hdr){ .index = index, .ts_ps = now, .offset = off,
                            .length = (uint32_t)(w->end - w->start), .bytes = (uint16_t)n,
                            .op = roce_opcode(t->conf, bits), .bits = bits };
    p->ecn = t->conf->ecn ? GW_ECN_ECT0 : GW_ECN_NOT_ECT;
    p->len_bytes = t->base_bytes + roce_extra(t->conf, bits) + n + roce_pad(n);
    tx->stats.sent_pkts++;
    tx->stats.sent_bytes += n;
    if (index < t->sent) {
        p->flags |= GW_PKT_RETRANS;
        tx->stats.retrans_pkts++;
        tx->stats.retrans_bytes += n;
    } else {
        t->sent = index + 1;
    }
    if (tx->cc.pacing_bps && (!tx->cc.nic_rate_bps || tx->cc.pacing_bps < tx->cc.nic_rate_bps))
        t->pace_ps = gw_later(gw_max(t->pace_ps, now),
                              gw_mul_div((uint64_t)(p->len_bytes + GW_FRAMING_BYTES) * 8,
                                         GW_PS_PER_S, tx->cc.pacing_bps));
    if (t->due_ps == GW_NEVER)
        t->due_ps = gw_later(now, roce_timeout(tx, t));
    tx->cc.ops->on_sent(&tx->cc, n, t->nxt_off - t->una_off, false, now);
    tx->at_bytes = off;
    tx->host->emit_tx(tx, p, now);
    return true;
}

/* Selective: the next packet that is known to be missing, or GW_NEVER. */
static uint64_t roce_missing(struct roce_tx *t)
{
    uint64_t i = gw_max(t->resend, t->una);
    uint32_t k = gw_seqset_find(&t->sacked, i);

    if (k != GW_SEQ_NIL && t->sacked.node[k].start <= i) {
        i = t->sacked.node[k].end;
        gw_seqset_touch(&t->sacked, k);
    }
    t->resend = i;
    return i < gw_min(t->high, t->nxt) ? i : GW_NEVER;
}

static inline bool roce_window_holds(const struct gw_tx *tx, const struct roce_tx *t, uint64_t n)
{
    uint64_t out = t->nxt_off - t->una_off;

    return out && out + n > gw_min(t->window_bytes, tx->cc.cwnd_bytes);
}

static bool roce_send_next(struct gw_tx *tx, struct roce_tx *t, uint64_t now)
{
    const struct roce_wqe *w = roce_wqe(t, t->wqe_nxt);
    uint64_t n = gw_min(w->end - t->nxt_off, t->mtu);
    bool full = t->nxt_off + n - t->una_off + t->mtu >
                gw_min(t->window_bytes, tx->cc.cwnd_bytes);

    t->nxt_off += n;
    if (!roce_send(tx, t, w, t->nxt, full || t->nxt == t->una, now)) {
        t->nxt_off -= n;
        return false;
    }
    t->nxt++;
    if (t->nxt_off == w->end)
        t->wqe_nxt++;
    return true;
}

/* Sends what the window, the pace and the NIC allow; what is missing first. */
static void roce_output(struct gw_tx *tx, struct roce_tx *t, uint64_t now)
{
    uint64_t room = 0;

    t->limited = false;
    while (!t->broken) {
        uint64_t again = t->high > t->una ? roce_missing(t) : GW_NEVER;

        if (again == GW_NEVER) {
            if (t->nxt == t->end)
                break;
            if (roce_window_holds(tx, t, t->mtu) || t->nxt - t->una >= ROCE_PSN_WINDOW) {
                t->limited = true;
                break;
            }
        }
        if (now < t->pace_ps && tx->cc.pacing_bps) {
            tx->host->timer_set(tx->net, &t->pace, t->pace_ps);
            break;
        }
        if (!room && !(room = tx->host->nic_room(tx, now)))
            break;
        if (again == GW_NEVER ? !roce_send_next(tx, t, now)
                              : !roce_send(tx, t, roce_wqe(t, roce_find(t, again)), again, true,
                                           now))
            break;
        if (again != GW_NEVER)
            t->resend = again + 1;
        room -= gw_min(room, t->mtu + t->base_bytes);
    }
    roce_arm(tx, t);
}

static void roce_pace_fire(void *owner, uint64_t now)
{
    struct gw_tx *tx = owner;

    roce_output(tx, tx->priv, now);
}

static void roce_wake(struct gw_cc *cc, uint64_t now)
{
    struct gw_tx *tx = cc->tx;

    roce_output(tx, tx->priv, now);
}

static void roce_tx_room(struct gw_tx *tx, uint64_t now)
{
    roce_output(tx, tx->priv, now);
}

/* All is done: nothing of the flow may be touched afterwards. */
static void roce_try_close(struct gw_tx *tx, struct roce_tx *t, uint64_t now)
{
    if (!tx->closing || t->closed || t->una_off != tx->written_bytes)
        return;
    t->closed = true;
    t->due_ps = GW_NEVER;
    tx->host->timer_stop(tx->net, &t->timer);
    t->armed_ps = GW_NEVER;
    tx->host->tx_closed(tx, now);
}

static void roce_tx_write(struct gw_tx *tx, uint64_t now)
{
    struct roce_tx *t = tx->priv;

    if (!roce_post(tx, t))
        return;                              /* out of memory: the next write tries again        */
    roce_output(tx, t, now);
    roce_try_close(tx, t, now);
}

/* ---- the requester: answers ------------------------------------------------------------------ */

static void roce_cc_ack(const struct gw_tx *tx, const struct roce_tx *t, struct gw_cc_ack *a,
                        uint64_t now)
{
    *a = (struct gw_cc_ack){
        .now_ps = now, .in_flight_bytes = t->nxt_off - t->una_off, .srtt_ps = t->srtt_ps,
        .min_rtt_ps = t->min_rtt_ps, .delivered_bytes = t->delivered_bytes,
        .snd_una = t->una_off, .snd_nxt = t->nxt_off, .cwnd_limited = t->limited,
        .app_limited = t->nxt_off == tx->written_bytes, .in_recovery = t->una < t->recover,
        .state = t->una < t->recover ? GW_CC_RECOVERY : GW_CC_OPEN,
    };
}

/* Packets before @index have arrived. Returns the bytes gained. */
static uint64_t roce_advance(struct gw_tx *tx, struct roce_tx *t, uint64_t index, uint64_t now)
{
    uint64_t before = t->una_off;
    uint32_t k;

    t->una = index;
    while (t->wqe_count) {
        const struct roce_wqe *w = roce_wqe(t, 0);

        if (w->first + roce_packets(w->end - w->start, t->mtu) > index) {
            t->una_off = roce_offset(t, w, index);
            break;
        }
        t->una_off = w->end;
        t->wqe_head = (t->wqe_head + 1) & (t->wqe_cap - 1);
        t->wqe_count--;
        t->wqe_nxt -= t->wqe_nxt != 0;
    }
    if (t->nxt < index)
        roce_go_to(t, index);
    while ((k = t->sacked.head) != GW_SEQ_NIL && t->sacked.node[k].end <= index)
        gw_seqset_remove(&t->sacked, k);
    if (k != GW_SEQ_NIL && t->sacked.node[k].start < index)
        t->sacked.node[k].start = index;
    t->in_a_row = 0;
    t->due_ps = t->una == t->nxt && t->una == t->sent ? GW_NEVER
                                                      : gw_later(now, roce_timeout(tx, t));
    t->delivered_bytes += t->una_off - before;
    return t->una_off - before;
}

/* An episode of recovery begins, once per window. */
static void roce_lost(struct gw_tx *tx, struct roce_tx *t, bool timeout, uint64_t now)
{
    struct gw_cc_ack a;

    if (t->una >= t->recover || timeout) {
        roce_cc_ack(tx, t, &a, now);
        if (timeout) {
            tx->cc.ops->on_timeout(&tx->cc, &a);
        } else {
            tx->stats.recoveries++;
            tx->cc.ops->on_loss(&tx->cc, &a, false);
        }
        if (tx->cc.ssthresh_bytes != UINT64_MAX)
            tx->cc.cwnd_bytes = gw_min(tx->cc.cwnd_bytes, tx->cc.ssthresh_bytes);
        t->recover = gw_max(t->nxt, t->sent);
        t->resend = t->una;
    }
}

static void roce_sacked(struct gw_tx *tx, struct roce_tx *t, uint64_t index)
{
    if (index < t->una || index >= t->nxt ||
        !gw_seqset_reserve(&t->sacked, 1, tx->host->resize))
        return;                              /* out of memory: the timeout repairs that           */
    gw_seqset_add(&t->sacked, index, index + 1);
    t->high = gw_max(t->high, index + 1);
}

/* Selective, after a timeout: was it wrong, or how much of what was out is taken for lost now? */
static void roce_after_timeout(struct gw_tx *tx, struct roce_tx *t, uint64_t ts_ps)
{
    if (ts_ps < t->timeout_ps) {
        tx->stats.spurious++;
        t->timeout_ps = 0;
        t->resend = t->una;
        t->high = t->sacked.count ? t->sacked.node[t->sacked.tail].end : t->una;
        t->recover = t->sacked.count ? t->recover : t->una;
        return;
    }
    t->high = gw_max(t->high, gw_min(t->recover, t->una + 2 * (t->una - t->timeout_una)));
    if (t->una >= t->recover)
        t->timeout_ps = 0;
}

static void roce_rtt(struct roce_tx *t, uint64_t rtt_ps)
{
    t->srtt_ps = t->srtt_ps ? t->srtt_ps - t->srtt_ps / 8 + rtt_ps / 8 : rtt_ps;
    if (!t->min_rtt_ps || rtt_ps < t->min_rtt_ps)
        t->min_rtt_ps = rtt_ps;
}

static void roce_negative(struct gw_tx *tx, struct roce_tx *t, const struct roce_hdr *h,
                          uint64_t now)
{
    tx->cc.ops->on_nack(&tx->cc, now);
    if (h->bits & ROCE_SACK)
        roce_sacked(tx, t, h->offset);
    roce_lost(tx, t, false, now);
    if (!t->conf->selective && h->index == t->una && t->nxt > t->una)
        roce_go_to(t, t->una);
}

static void roce_answer(struct gw_tx *tx, struct roce_tx *t, struct gw_pkt *p, uint64_t now)
{
    const struct roce_hdr *h = roce_hdr(p);
    uint64_t gain = 0, before = t->nxt_off - t->una_off, una = t->una;
    uint64_t rtt = now > h->ts_ps ? now - h->ts_ps : 1;
    struct gw_cc_ack a;

    if (h->index < t->una || h->index > t->sent || t->broken)
        return;
    tx->stats.acks_in++;
    if (h->index > t->una)
        gain = roce_advance(tx, t, h->index, now);
    roce_rtt(t, rtt);
    if (t->timeout_ps && t->una > una)
        roce_after_timeout(tx, t, h->ts_ps);
    if (GW_UNLIKELY(h->bits & ROCE_NAK))
        roce_negative(tx, t, h, now);
    roce_cc_ack(tx, t, &a, now);
    a.in_flight_after_bytes = a.in_flight_bytes;
    a.in_flight_bytes = before;
    a.acked_bytes = gain;
    a.acked_pkts = (uint32_t)(t->una - una);
    a.rtt_ps = rtt;
    if (h->bits & ROCE_INT)
        a.telemetry = tx->host->ext_get(tx->net, p);
    tx->cc.ops->on_ack(&tx->cc, &a);
}

static void roce_tx_packet(struct gw_tx *tx, struct gw_pkt *p, uint64_t now)
{
    struct roce_tx *t = tx->priv;
    uint64_t una = t->una;
    const struct roce_hdr *h = roce_hdr(p);

    if (GW_LIKELY(h->op == ROCE_ACK)) {
        roce_answer(tx, t, p, now);
    } else if (h->op == ROCE_CNP) {
        tx->stats.ce_in++;
        tx->cc.ops->on_cnp(&tx->cc, now);
    }
    tx->host->pkt_free(tx->net, p);
    roce_output(tx, t, now);
    if (t->una != una)
        tx->host->tx_acked(tx, t->una_off, now);
    roce_try_close(tx, t, now);
}

/* The local ACK timeout. */
static void roce_timed_out(struct gw_tx *tx, struct roce_tx *t, uint64_t now)
{
    tx->stats.timeouts++;
    if (t->conf->retries && ++t->in_a_row > t->conf->retries) {
        t->broken = true;
        t->due_ps = GW_NEVER;
        return;
    }
    roce_lost(tx, t, true, now);
    if (t->conf->selective) {
        t->high = gw_max(t->high, t->una + 1);
        t->timeout_ps = now;
        t->timeout_una = t->una;
    } else {
        roce_go_to(t, t->una);
    }
    t->due_ps = gw_later(gw_max(now, t->pace_ps), roce_timeout(tx, t));   /* not while it waits */
}

static void roce_fire(void *owner, uint64_t now)
{
    struct gw_tx *tx = owner;
    struct roce_tx *t = tx->priv;

    t->armed_ps = GW_NEVER;
    if (t->due_ps <= now)
        roce_timed_out(tx, t, now);
    roce_output(tx, t, now);
}

/* ---- the requester: beginning and end -------------------------------------------------------- */

static void roce_cc_init(struct gw_tx *tx, struct roce_tx *t, uint64_t now)
{
    struct gw_cc *cc = &tx->cc;

    cc->mss_bytes = t->mtu;
    cc->initial_window = 10;
    cc->cwnd_bytes = 10 * (uint64_t)t->mtu;
    cc->ssthresh_bytes = UINT64_MAX;
    cc->wake = roce_wake;
    cc->ops->init(cc, now);
}

/* Bytes of each packet that carry the hops' telemetry. */
static uint32_t roce_int_bytes(const struct gw_cc_ops *cc)
{
    return cc && cc->telemetry ? ROCE_INT_BYTES : 0;
}

static enum gw_status roce_check(const void *conf, const struct gw_cc_ops *cc, uint32_t mtu_bytes,
                                 struct gw_error *err)
{
    uint32_t more = roce_int_bytes(cc);

    if (!cc)
        return gw_fail(err, GW_PARAM, "`cc` is empty; say none for no control");
    if (roce_mtu(conf, mtu_bytes, more) >= 4)
        return GW_OK;
    return gw_fail(err, GW_PARAM, "an IP MTU of %u bytes leaves no room for payload; allowed are %u "
                   "and more", mtu_bytes,
                   ROCE_IP_BYTES + ROCE_RETH_BYTES + ROCE_IMM_BYTES + more + 4);
}

static enum gw_status roce_tx_init(struct gw_tx *tx, uint64_t now, struct gw_error *err)
{
    struct roce_tx *t = tx->priv;
    const struct roce_conf *c = tx->conf;
    uint32_t more = roce_int_bytes(tx->cc.ops);
    uint64_t bdp = gw_mul_div(tx->cc.nic_rate_bps, tx->cc.base_rtt_ps, 8 * GW_PS_PER_S);

    if (roce_check(c, tx->cc.ops, tx->mtu_bytes, err) != GW_OK)
        return err->code;
    t->conf = c;
    t->mtu = roce_mtu(c, tx->mtu_bytes, more);
    t->base_bytes = ROCE_BASE_BYTES + more;
    t->window_bytes = c->window_bytes ? c->window_bytes
                      : c->selective && tx->cc.nic_rate_bps ? bdp + 3 * (uint64_t)t->mtu
                      : UINT64_MAX;
    t->due_ps = t->armed_ps = GW_NEVER;
    gw_seqset_init(&t->sacked);
    tx->priority = (uint8_t)c->priority;
    tx->dscp = (uint8_t)c->dscp;
    t->timer = (struct gw_timer){ .fire = roce_fire, .owner = tx, .comp = tx->comp };
    t->pace = (struct gw_timer){ .fire = roce_pace_fire, .owner = tx, .comp = tx->comp };
    roce_cc_init(tx, t, now);
    return GW_OK;
}

static void roce_tx_fini(struct gw_tx *tx)
{
    struct roce_tx *t = tx->priv;

    tx->host->timer_stop(tx->net, &t->timer);
    tx->host->timer_stop(tx->net, &t->pace);
    gw_seqset_fini(&t->sacked, tx->host->release);
    if (t->wqe)
        tx->host->release(t->wqe);
    t->wqe = NULL;
}

/* ---- the responder --------------------------------------------------------------------------- */

/* Turns @p round as an answer to itself. */
static void roce_reply(struct gw_rx *rx, struct roce_rx *r, struct gw_pkt *p, uint8_t bits,
                       uint64_t now)
{
    struct roce_hdr *h = roce_hdr(p);
    uint8_t telemetry = h->bits & ROCE_INT;

    h->offset = bits & ROCE_SACK ? h->index : r->nxt_off;
    h->index = r->nxt;
    h->length = r->messages;
    h->bytes = 0;
    h->op = ROCE_ACK;
    h->bits = bits | telemetry;
    p->len_bytes = ROCE_BASE_BYTES + ROCE_AETH_BYTES + (bits & ROCE_SACK ? ROCE_SACK_BYTES : 0) +
                   (telemetry ? ROCE_INT_BYTES : 0);
    p->flags = GW_PKT_REVERSE;
    p->ecn = GW_ECN_NOT_ECT;
    rx->host->emit_rx(rx, p, now);
}

/* A marked packet: notifies the sender, unless that has been done lately. */
static void roce_notify(struct gw_rx *rx, struct roce_rx *r, uint64_t now)
{
    struct gw_pkt *p;

    if (now < r->cnp_ps || !(p = rx->host->pkt_alloc(rx->net)))
        return;
    r->cnp_ps = gw_later(now, r->conf->cnp_interval_ps);
    roce_hdr(p)->op = ROCE_CNP;
    p->len_bytes = ROCE_BASE_BYTES + ROCE_CNP_BYTES;
    p->flags = GW_PKT_REVERSE;
    p->ecn = GW_ECN_ECT0;
    p->priority = r->conf->cnp_priority;
    p->dscp = (uint8_t)r->conf->cnp_dscp;
    rx->host->emit_rx(rx, p, now);
}

/* Selective: [index] has come early. False: out of memory, it counts as lost. */
static bool roce_keep(struct gw_rx *rx, struct roce_rx *r, const struct roce_hdr *h)
{
    if (!gw_seqset_reserve(&r->ooo, 1, rx->host->resize) ||
        !gw_seqset_reserve(&r->ooo_off, 1, rx->host->resize))
        return false;
    gw_seqset_add(&r->ooo, h->index, h->index + 1);
    gw_seqset_add(&r->ooo_off, h->offset, h->offset + h->bytes);
    return true;
}

/* Takes the first range of @s off if it begins at or before @at; returns where it ends. */
static uint64_t roce_join(struct gw_seqset *s, uint64_t at)
{
    uint32_t i;

    while ((i = s->head) != GW_SEQ_NIL && s->node[i].start <= at) {
        at = gw_max(at, s->node[i].end);
        gw_seqset_remove(s, i);
    }
    return at;
}

/* Not the next one. */
static void roce_rx_slow(struct gw_rx *rx, struct roce_rx *r, struct gw_pkt *p, uint64_t now)
{
    const struct roce_hdr *h = roce_hdr(p);

    if (h->index < r->nxt && h->bits & ROCE_ACK_REQ) {
        roce_reply(rx, r, p, 0, now);
    } else if (h->index > r->nxt && r->conf->selective && roce_keep(rx, r, h)) {
        roce_reply(rx, r, p, ROCE_NAK | ROCE_SACK, now);
    } else if (h->index > r->nxt && !r->nak_sent) {
        r->nak_sent = true;
        roce_reply(rx, r, p, ROCE_NAK, now);
    } else {
        rx->host->pkt_free(rx->net, p);
    }
}

static void roce_rx_packet(struct gw_rx *rx, struct gw_pkt *p, uint64_t now)
{
    struct roce_rx *r = rx->priv;
    const struct roce_hdr *h = roce_hdr(p);
    bool ask = h->bits & ROCE_ACK_REQ;

    if (GW_UNLIKELY(p->flags & (GW_PKT_CORRUPT | GW_PKT_TRIMMED))) {
        rx->host->pkt_free(rx->net, p);
        return;
    }
    if (GW_UNLIKELY(p->ecn == GW_ECN_CE))
        roce_notify(rx, r, now);
    if (GW_UNLIKELY(h->index != r->nxt)) {
        roce_rx_slow(rx, r, p, now);
        return;
    }
    r->nxt++;
    r->nxt_off += h->bytes;
    r->nak_sent = false;
    r->messages += h->bits & ROCE_LAST ? 1 : 0;
    if (GW_UNLIKELY(r->ooo.count)) {
        r->nxt = roce_join(&r->ooo, r->nxt);
        r->nxt_off = roce_join(&r->ooo_off, r->nxt_off);
        ask = true;
    }
    if (ask)
        roce_reply(rx, r, p, 0, now);
    else
        rx->host->pkt_free(rx->net, p);
    rx->host->rx_deliver(rx, r->nxt_off, now);
}

static enum gw_status roce_rx_init(struct gw_rx *rx, uint64_t now, struct gw_error *err)
{
    struct roce_rx *r = rx->priv;

    (void)now;
    (void)err;
    r->conf = rx->conf;
    gw_seqset_init(&r->ooo);
    gw_seqset_init(&r->ooo_off);
    return GW_OK;
}

static void roce_rx_fini(struct gw_rx *rx)
{
    struct roce_rx *r = rx->priv;

    gw_seqset_fini(&r->ooo, rx->host->release);
    gw_seqset_fini(&r->ooo_off, rx->host->release);
}

/* ---- headers --------------------------------------------------------------------------------- */

/* First packet sequence number of a flow. */
static uint32_t roce_psn(uint32_t flow, uint64_t index)
{
    return (uint32_t)(gw_mix64(flow + UINT64_C(0x9e3779b97f4a7c15)) + index) & 0xffffff;
}

/* Queue pair that a packet goes to: the requester's is even, the responder's odd. */
static uint32_t roce_qp(uint32_t flow, bool reverse)
{
    return (0x118 + 2 * flow + !reverse) & 0xffffff;
}

/* What makes this flow's packets take its own way among equal ones (annex A17: 49152 and up). */
static uint32_t roce_src_port(uint32_t flow)
{
    return 0xc000 | (gw_mix64(flow + UINT64_C(0x5851f42d4c957f2d)) & 0x3fff);
}

static uint8_t *roce_put_bth(const struct gw_pkt *p, const struct roce_hdr *h, uint8_t *b)
{
    bool cnp = h->op == ROCE_CNP, data = !(p->flags & GW_PKT_REVERSE);
    /* An ACK names the last packet that it covers, a NAK the one that is missing. */
    uint64_t index = data || h->bits & ROCE_NAK ? h->index : h->index - 1;

    *b++ = h->op;
    *b++ = (uint8_t)(data ? roce_pad(h->bytes) << 4 : 0);
    b = gw_put16(b, 0xffff);
    b = gw_put32(b, (cnp ? UINT32_C(1) << 30 : 0) | roce_qp(p->flow, !data));
    return gw_put32(b, cnp ? 0 : (data && h->bits & ROCE_ACK_REQ ? UINT32_C(1) << 31 : 0) |
                                   roce_psn(p->flow, index));
}

static uint32_t roce_encode(const struct gw_pkt *p, const void *ext, const struct gw_flow_addr *a,
                            uint8_t *buf, uint8_t *ip_proto)
{
    const struct roce_hdr *h = (const struct roce_hdr *)(const void *)p->tp;
    uint8_t *b = buf;

    (void)ext;
    (void)a;
    b = gw_put16(gw_put16(b, roce_src_port(p->flow)), ROCE_PORT);
    b = gw_put32(b, 0);                                  /* length: the host's; no checksum   */
    b = roce_put_bth(p, h, b);
    if (h->op == ROCE_ACK) {
        b = gw_put32(b, (h->bits & ROCE_NAK ? UINT32_C(0x60) : UINT32_C(0x1f)) << 24 |
                          (h->length & 0xffffff));
        if (h->bits & ROCE_SACK)
            b = gw_put32(b, roce_psn(p->flow, h->offset));
    } else if (h->op == ROCE_CNP) {
        memset(b, 0, ROCE_CNP_BYTES);
        b += ROCE_CNP_BYTES;
    }
    if (h->op == ROCE_WRITE_FIRST || h->op == ROCE_WRITE_ONLY || h->op == ROCE_WRITE_ONLY_IMM) {
        uint64_t va = UINT64_C(0x7f0000000000) + h->offset;

        b = gw_put32(gw_put32(b, (uint32_t)(va >> 32)), (uint32_t)va);
        b = gw_put32(b, 0x1000 + p->flow);               /* R_Key                             */
        b = gw_put32(b, h->length);
    }
    if (h->op == ROCE_WRITE_LAST_IMM || h->op == ROCE_WRITE_ONLY_IMM)
        b = gw_put32(b, (uint32_t)h->offset);
    *ip_proto = 17;
    return (uint32_t)(b - buf);
}

static uint32_t roce_trailer(const struct gw_pkt *p, const uint8_t *frame, uint32_t used,
                             uint32_t len, uint8_t *end)
{
    (void)p;
    return gw_icrc(frame, used, len, end) ? GW_ICRC_BYTES : 0;
}

static void roce_describe(const struct gw_pkt *p, struct gw_pkt_facts *f)
{
    const struct roce_hdr *h = (const struct roce_hdr *)(const void *)p->tp;

    if (!(p->flags & GW_PKT_REVERSE))
        *f = (struct gw_pkt_facts){ h->offset, h->bytes, GW_WHAT_DATA, h->index };
    else if (h->op == ROCE_ACK)
        f->what = GW_WHAT_ACK;
}

/* Data packets of one message alone. */
static uint64_t roce_wire_bytes(const void *conf, uint64_t payload, uint32_t mtu_bytes,
                                uint64_t *frames)
{
    const struct roce_conf *c = conf;
    uint32_t mtu = roce_mtu(c, mtu_bytes, 0);
    uint64_t n = mtu ? roce_packets(payload, mtu) : 0;

    if (frames)
        *frames = n;
    return payload + n * ROCE_BASE_BYTES + (n ? roce_extra(c, ROCE_FIRST | ROCE_LAST) : 0);
}

static const struct gw_transport_ops roce_ops = {
    .level        = GW_TP_PACKET,
    .conf_bytes   = sizeof(struct roce_conf),
    .tx_bytes     = sizeof(struct roce_tx),
    .rx_bytes     = sizeof(struct roce_rx),
    .header_bytes = ROCE_BASE_BYTES,
    .tx_init      = roce_tx_init,
    .rx_init      = roce_rx_init,
    .tx_fini      = roce_tx_fini,
    .rx_fini      = roce_rx_fini,
    .tx_write     = roce_tx_write,
    .tx_packet    = roce_tx_packet,
    .rx_packet    = roce_rx_packet,
    .tx_room      = roce_tx_room,
    .encode       = roce_encode,
    .wire_bytes   = roce_wire_bytes,
    .describe     = roce_describe,
    .ext_bytes    = sizeof(struct gw_telemetry),
    .trailer      = roce_trailer,
    .check        = roce_check,
};

static const struct gw_param roce_params[] = {
    { "cc", GW_P_STRING, offsetof(struct roce_conf, cc), "dcqcn", NULL, NULL,
      "Congestion control, a plugin's name (none: no control); its own options stand beside." },
    { "streams", GW_P_U32, offsetof(struct roce_conf, streams), "1", "1", "1024",
      "Queue pairs that carry each message between two ranks, a share each." },
    { "mtu", GW_P_BYTES, offsetof(struct roce_conf, mtu_bytes), "0", "0", "4096",
      "Payload of a full packet; 0: the largest of 256, 512 .. 4096 that the path's IP MTU holds." },
    { "verb", GW_P_CHOICE, offsetof(struct roce_conf, verb), "write", "write|write-imm|send", NULL,
      "What a message is: RDMA WRITE, WRITE with immediate, or SEND." },
    { "recovery", GW_P_CHOICE, offsetof(struct roce_conf, selective), "go-back-n",
      "go-back-n|selective", NULL,
      "What a loss costs: everything behind it, or itself (as IRN does)." },
    { "ack_every", GW_P_U32, offsetof(struct roce_conf, ack_every), "1", "1", "1000000",
      "Packets between two requests for an ACK; the last one of a message always asks." },
    { "window", GW_P_BYTES, offsetof(struct roce_conf, window_bytes), "0", "0", NULL,
      "Bytes of a queue pair that may be out; 0: any with go-back-n, one bandwidth-delay product "
      "of the idle path with selective." },
    { "timeout", GW_P_TIME, offsetof(struct roce_conf, timeout_ps), "0", "0", "10000s",
      "Local ACK timeout, 4.096us x 2^n as verbs count; 0: 67.1ms (14) with go-back-n, 320us (up "
      "to 3 packets out: 100us) with selective, but at least 4 or 3 round trips." },
    { "retries", GW_P_U32, offsetof(struct roce_conf, retries), "0", "0", "1000000",
      "Timeouts in a row after which the queue pair breaks and its flow stays unfinished (verbs: "
      "at most 7); 0: it never breaks." },
    { "priority", GW_P_U32, offsetof(struct roce_conf, priority), "3", "0", "7",
      "802.1p priority of data and ACKs." },
    { "dscp", GW_P_U32, offsetof(struct roce_conf, dscp), "26", "0", "63",
      "DSCP of data and ACKs." },
    { "ecn", GW_P_BOOL, offsetof(struct roce_conf, ecn), "yes", NULL, NULL,
      "Packets are ECN-capable." },
    { "cnp_interval", GW_P_TIME, offsetof(struct roce_conf, cnp_interval_ps), "50us", "0", "1s",
      "Least time between two congestion notification packets of a queue pair." },
    { "cnp_priority", GW_P_U32, offsetof(struct roce_conf, cnp_priority), "6", "0", "7",
      "802.1p priority of congestion notification packets." },
    { "cnp_dscp", GW_P_U32, offsetof(struct roce_conf, cnp_dscp), "48", "0", "63",
      "DSCP of congestion notification packets." },
};

GW_PLUGIN(gw_transport_rocev2) = {
    GW_PLUGIN_HEAD(GW_KIND_TRANSPORT, roce_ops),
    .name    = "rocev2",
    .summary = "RDMA over UDP: RoCEv2 reliable connections, go-back-N or selective repeat.",
    .params  = roce_params, .param_count = GW_ARRAY_LEN(roce_params),
    .source  = "IBA 1.3 chapter 9 and annex A17; Mittal et al., SIGCOMM 2018",
};
