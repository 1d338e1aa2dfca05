/*
 * tp_udp - messages over datagrams: plain, with bounded loss, with forward error correction
 *
 * Three transports that need not deliver everything. A message is cut into datagrams of one MTU;
 * the receiver keeps a bitmap of what came, and says it with the end of the message to the program
 * and to the records. Its receive is known to the receiver (a program posts it), so that even a
 * message of which nothing arrives has an end.
 *
 * `datagram` sends each packet once, at a fixed rate or as fast as the NIC takes it; nothing comes
 * back. A message is over when all is there, when a fence has come (small packets behind the last
 * one, `fence` copies), at `deadline` after the send, or when nothing has come for `quiet`: a timer
 * or a fence, as in Weintraub, Banner and Orda, "Distributed Training under Packet Loss" (2025,
 * arXiv 2507.07114). The grain of a loss is a packet or the whole message.
 *
 * `bounded-loss` ends a message when `share` of its bytes are there. The sender ends each message
 * by a poll; the receiver answers with the ranges that it needs to reach the share, which are sent
 * again, or that it is content. A lost poll, report or last word costs a timeout: 3 RTT, doubling.
 * With a share of 100 % it is reliable; with a deadline it ends with what is there by then.
 *
 * `fec` sends n - k parity packets behind each k packets of data. Reed-Solomon recovers a block
 * when any k of its n packets have come; XOR has one parity packet for each n - k-th packet of data
 * (interleaved) and recovers one loss in each such group. Only the arithmetic of counts is played.
 * Its cost is time: a multiply-and-add pass over one packet takes payload / `coding` and coder and
 * decoder do one pass after the other. Reed-Solomon makes k (n - k) passes a block to encode and k
 * for each packet that it recovers, XOR k to encode and the size of the group to recover. The coder
 * begins when the message is posted; parity waits for it. Blocks without loss cost no decoding.
 *
 * Headers are UDP and 16 bytes of our own: kind, number of message, index, length.
 *
 * Left out: congestion control (the rate is the user's), path MTU discovery, retransmission in
 * `fec`, encryption, reassembly of packets that a network has duplicated (a copy is ignored).
 */
#include <gradwire/plugin.h>
#include <gradwire/alg/segments.h>

#define UDP_OWN_BYTES  16u
#define UDP_HEAD_BYTES (GW_ETH_BYTES + 20u + 8u + UDP_OWN_BYTES)
#define UDP_RANGES     128u              /* in one report                                      */
#define UDP_REPORTS    64u               /* answers to one poll                                */
#define UDP_BACKOFF    6u                /* doublings of the timeout at most                   */
#define UDP_PARITY_MAX 32u

enum udp_mode { UDP_PLAIN, UDP_BOUNDED, UDP_FEC };
enum udp_kind { UDP_DATA, UDP_PARITY, UDP_FENCE, UDP_REPORT, UDP_DONE };
enum udp_grain { UDP_GRAIN_PACKET, UDP_GRAIN_MESSAGE };
enum udp_code { UDP_XOR, UDP_RS };

/* The transport's 32 bytes of a packet. */
struct udp_hdr {
    uint64_t start;              /* stream offset of its message                               */
    uint64_t stamp_ps;           /* poll: when it left; report and last word: of that poll     */
    uint32_t number;             /* of its message on the flow                                 */
    uint32_t index;              /* of the packet; parity: of the block; report: ranges in it  */
    uint16_t len;                /* payload                                                    */
    uint8_t  kind;               /* enum udp_kind                                              */
    uint8_t  parity;             /* which one of its block                                     */
    uint32_t packet;             /* data: its number on the flow, low half                      */
};
_Static_assert(sizeof(struct udp_hdr) <= sizeof(((struct gw_pkt *)0)->tp), "32 bytes per packet");

struct udp_range {
    uint32_t first, count;       /* packets                                                    */
};

struct udp_ext {
    struct udp_range range[UDP_RANGES];
};

struct udp_conf {
    uint64_t rate_bps;           /* of frames with framing left out; 0: as the NIC takes them  */
    uint64_t deadline_ps;        /* after the send; 0: none                                    */
    uint64_t payload_bytes;      /* of a packet, 0: what the MTU leaves                        */
    uint64_t settle_ps, quiet_ps, rto_min_ps;
    uint64_t coding_bps;         /* of one pass; 0: costs nothing                              */
    double   share;
    uint32_t fence, grain, code, k, n;
};

struct udp_out {                 /* a message at the sender                                    */
    uint64_t start, end, post_ps;
    uint64_t coder_ps;           /* when the coder begins with it                              */
    uint64_t report_ps;          /* poll that the newest report answers                        */
    uint32_t packet;             /* number of its first on the flow, low half                  */
    uint32_t packets, next;      /* next: first packet that was never sent                     */
    uint32_t parity;             /* parity packets sent of the block at hand                   */
    uint32_t fences;             /* still to be sent                                           */
    bool     sent, done;
};

struct udp_repair {
    uint32_t number;
    struct udp_range range;
};

struct udp_tx {
    const struct udp_conf *conf;
    enum udp_mode mode;
    uint32_t mss;
    struct udp_out *out;         /* ring by number                                             */
    uint32_t room;
    uint32_t first, cur, end;    /* oldest that is not done, the one being sent, behind last   */
    uint32_t packet;             /* number of the next message's first packet, low half        */
    struct udp_repair *repair;   /* ring                                                       */
    uint32_t repair_room, repair_at, repairs;
    uint64_t coder_free_ps;
    uint64_t srtt_ps, poll_due_ps, pace_ps;
    uint32_t backoff;
    bool     busy, again, closed;
    bool     owed;               /* a message that is all out may owe a fence                  */
    struct gw_timer pace, poll;
};

struct udp_block {               /* of a message under FEC, at the receiver                    */
    uint32_t have, parity;       /* data packets there; bitmap of parity packets there         */
};

struct udp_in {                  /* a message at the receiver                                  */
    struct udp_in *next;
    uint64_t start, end, sent_ps, told_ps;
    uint64_t got_bytes;
    uint64_t close_ps;           /* the fence came: over by then; GW_NEVER: no fence           */
    uint64_t ready_ps;           /* when the decoder has done what it got                      */
    uint32_t packets, got;
    uint64_t *bitmap;
    struct udp_block *block;
    uint32_t words, blocks;      /* room for                                                   */
};

struct udp_rx {
    const struct udp_conf *conf;
    enum udp_mode mode;
    uint32_t mss;
    struct udp_in *open, **tail, *idle;
    uint64_t told;               /* end of the last message that the host told of              */
    uint64_t last_ps;            /* when something came last                                   */
    uint64_t decoder_free_ps;
    struct gw_timer timer;
};

static inline struct udp_hdr *udp_hdr(struct gw_pkt *p)
{
    return (struct udp_hdr *)(void *)p->tp;
}

static uint32_t udp_mss(const struct udp_conf *c, uint32_t mtu_bytes)
{
    uint32_t mss = gw_seg_payload(c->payload_bytes, UDP_HEAD_BYTES, mtu_bytes);

    return mss < UINT16_MAX ? mss : UINT16_MAX;
}

static uint32_t udp_packets(uint64_t bytes, uint32_t mss)
{
    return (uint32_t)(bytes / mss + (bytes % mss != 0));
}

/* Payload of packet @i of a message of @bytes. */
static inline uint32_t udp_len(uint64_t bytes, uint32_t mss, uint32_t i)
{
    uint64_t at = (uint64_t)i * mss;

    return bytes - at < mss ? (uint32_t)(bytes - at) : mss;
}

/* Time of @passes passes over one packet of @mss bytes. */
static uint64_t udp_passes_ps(const struct udp_conf *c, uint32_t mss, uint64_t passes)
{
    return c->coding_bps ? gw_mul_div(passes * mss * 8, GW_PS_PER_S, c->coding_bps) : 0;
}

/* When all is lost that has not come by then; GW_NEVER: no deadline. */
static uint64_t udp_deadline(const struct udp_conf *c, uint64_t sent_ps)
{
    return c->deadline_ps ? gw_later(sent_ps, c->deadline_ps) : GW_NEVER;
}

/* ---- the sender ------------------------------------------------------------------------------ */

static struct udp_out *udp_out(const struct udp_tx *t, uint32_t number)
{
    return &t->out[number & (t->room - 1)];
}

static bool udp_out_room(struct gw_tx *tx, struct udp_tx *t)
{
    uint32_t room = t->room ? t->room * 2 : 8;
    struct udp_out *v;

    if (t->end - t->first < t->room)
        return true;
    v = tx->host->alloc(room * sizeof *v);
    if (!v)
        return false;
    for (uint32_t i = t->first; i != t->end; i++)
        v[i & (room - 1)] = *udp_out(t, i);
    tx->host->release(t->out);
    t->out = v;
    t->room = room;
    return true;
}

/* Out of memory a message stays unsent; the run then ends as stalled or by the receiver's timer. */
static void udp_tx_message(struct gw_tx *tx, uint64_t start, uint64_t end, uint64_t now)
{
    struct udp_tx *t = tx->priv;
    const struct udp_conf *c = t->conf;
    struct udp_out *o;

    if (!udp_out_room(tx, t))
        return;
    o = udp_out(t, t->end++);
    *o = (struct udp_out){ .start = start, .end = end, .post_ps = now,
                           .packet = t->packet,
                           .packets = udp_packets(end - start, t->mss),
                           .fences = t->mode == UDP_BOUNDED ? 1 : c->fence };
    t->packet += o->packets;
    if (t->mode == UDP_FEC) {
        uint64_t blocks = (o->packets + c->k - 1) / c->k;
        uint64_t passes = c->code == UDP_RS ? (uint64_t)c->k * (c->n - c->k) : c->k;

        o->coder_ps = gw_max(t->coder_free_ps, now);
        t->coder_free_ps = gw_later(o->coder_ps, blocks * udp_passes_ps(c, t->mss, passes));
    }
}

static uint64_t udp_rto(const struct udp_tx *t)
{
    uint64_t rto = gw_max(t->conf->rto_min_ps, 3 * t->srtt_ps);

    return rto << t->backoff;
}

/* Sets the poll timer for the oldest message, if it is all out. */
static void udp_arm_poll(struct gw_tx *tx, struct udp_tx *t)
{
    uint64_t due = GW_NEVER;

    if (t->mode != UDP_BOUNDED || t->first == t->end)
        return;
    if (udp_out(t, t->first)->sent)
        due = t->poll_due_ps;
    due = gw_min(due, udp_deadline(t->conf, udp_out(t, t->first)->post_ps));
    if (due != GW_NEVER)
        tx->host->timer_set(tx->net, &t->poll, due);
}

static void udp_emit(struct gw_tx *tx, struct udp_tx *t, struct gw_pkt *p, uint64_t now)
{
    tx->stats.sent_pkts++;
    tx->stats.sent_bytes += udp_hdr(p)->len;
    if (t->conf->rate_bps)
        t->pace_ps = gw_later(gw_max(t->pace_ps, now),
                              gw_mul_div((uint64_t)p->len_bytes * 8, GW_PS_PER_S,
                                         t->conf->rate_bps));
    tx->at_bytes = udp_hdr(p)->start;
    tx->host->emit_tx(tx, p, now);
}

static struct gw_pkt *udp_packet(struct gw_tx *tx, const struct udp_out *o, uint32_t number,
                                 enum udp_kind kind, uint32_t index, uint32_t len)
{
    struct gw_pkt *p = tx->host->pkt_alloc(tx->net);
    struct udp_hdr *h;

    if (!p)
        return NULL;
    h = udp_hdr(p);
    h->start = o->start;
    h->number = number;
    h->index = index;
    h->len = (uint16_t)len;
    h->kind = (uint8_t)kind;
    h->packet = o->packet + index;
    p->len_bytes = UDP_HEAD_BYTES + len;
    return p;
}

/* One packet again that the receiver asked for. */
static bool udp_send_repair(struct gw_tx *tx, struct udp_tx *t, uint64_t now)
{
    struct udp_repair *r = &t->repair[t->repair_at & (t->repair_room - 1)];
    struct udp_out *o = udp_out(t, r->number);
    struct gw_pkt *p;

    if (r->number - t->first >= t->end - t->first || o->done || r->range.first >= o->packets ||
        !r->range.count) {
        t->repair_at++;
        t->repairs--;
        return true;
    }
    p = udp_packet(tx, o, r->number, UDP_DATA, r->range.first,
                   udp_len(o->end - o->start, t->mss, r->range.first));
    if (!p)
        return false;
    p->flags |= GW_PKT_RETRANS;
    tx->stats.retrans_pkts++;
    tx->stats.retrans_bytes += udp_hdr(p)->len;
    r->range.first++;
    if (!--r->range.count) {
        uint32_t number = r->number;

        t->repair_at++;
        t->repairs--;
        if (!t->repairs || t->repair[t->repair_at & (t->repair_room - 1)].number != number)
            o->fences = t->owed = true;             /* and is it enough now?                   */
    }
    udp_emit(tx, t, p, now);
    return true;
}

static bool udp_send_fence(struct gw_tx *tx, struct udp_tx *t, uint32_t number, uint64_t now)
{
    struct udp_out *o = udp_out(t, number);
    struct gw_pkt *p = udp_packet(tx, o, number, UDP_FENCE, o->packets, 0);

    if (!p)
        return false;
    udp_hdr(p)->stamp_ps = now;
    o->fences--;
    if (t->mode == UDP_BOUNDED)
        t->poll_due_ps = gw_later(now, udp_rto(t));
    udp_emit(tx, t, p, now);
    return true;
}

/* Parity that is due behind the data sent so far; *wait_ps: when the coder has it. */
static bool udp_parity_due(const struct udp_tx *t, const struct udp_out *o, uint64_t now,
                           uint64_t *wait_ps)
{
    const struct udp_conf *c = t->conf;
    uint64_t passes = c->code == UDP_RS ? (uint64_t)c->k * (c->n - c->k) : c->k;
    uint32_t block;

    if (t->mode != UDP_FEC || !o->next || (o->next % c->k && o->next < o->packets) ||
        o->parity == c->n - c->k)
        return false;
    block = (o->next - 1) / c->k;
    *wait_ps = gw_later(o->coder_ps, (block + 1) * udp_passes_ps(c, t->mss, passes));
    if (*wait_ps <= now)
        *wait_ps = 0;
    return true;
}

/* The next packet of the message at hand. False: nothing can be sent now. */
static bool udp_send_current(struct gw_tx *tx, struct udp_tx *t, uint64_t now)
{
    struct udp_out *o = udp_out(t, t->cur);
    struct gw_pkt *p;
    uint64_t wait_ps = 0;

    if (udp_parity_due(t, o, now, &wait_ps)) {
        if (wait_ps) {
            tx->host->timer_set(tx->net, &t->pace, wait_ps);
            return false;
        }
        p = udp_packet(tx, o, t->cur, UDP_PARITY, (o->next - 1) / t->conf->k, t->mss);
        if (!p)
            return false;
        udp_hdr(p)->parity = (uint8_t)o->parity++;
        udp_emit(tx, t, p, now);
    } else if (o->next < o->packets) {
        p = udp_packet(tx, o, t->cur, UDP_DATA, o->next,
                       udp_len(o->end - o->start, t->mss, o->next));
        if (!p)
            return false;
        if (t->mode == UDP_FEC && o->next % t->conf->k == 0)
            o->parity = 0;
        o->next++;
        udp_emit(tx, t, p, now);
    } else if (o->fences) {
        return udp_send_fence(tx, t, t->cur, now);
    }
    return true;
}

/* Is a message all out, or too late to be? */
static bool udp_all_sent(const struct udp_tx *t, const struct udp_out *o, uint64_t now)
{
    uint64_t wait_ps;

    return now >= udp_deadline(t->conf, o->post_ps) ||
           (o->next == o->packets && !o->fences && !udp_parity_due(t, o, now, &wait_ps));
}

/* Messages that are over leave in order. False: the flow is closed, nothing may be touched. */
static bool udp_advance(struct gw_tx *tx, struct udp_tx *t, uint64_t now)
{
    uint64_t total = 0;

    while (t->cur != t->end && udp_all_sent(t, udp_out(t, t->cur), now)) {
        struct udp_out *o = udp_out(t, t->cur++);

        o->sent = true;
        if (t->mode != UDP_BOUNDED)
            o->done = true;
    }
    for (; t->first != t->end; t->first++) {
        struct udp_out *o = udp_out(t, t->first);

        if (!o->done && now >= udp_deadline(t->conf, o->post_ps))
            o->done = true;
        if (!o->done || t->first == t->cur)
            break;
        total = o->end;
    }
    if (total)
        tx->host->tx_acked(tx, total, now);
    if (!tx->closing || t->closed || t->first != t->end)
        return !t->closed;
    t->closed = true;
    tx->host->tx_closed(tx, now);
    return false;
}

/* The next of the fences that repairs have earned. */
static bool udp_owed_fence(struct udp_tx *t, uint32_t *number)
{
    if (!t->owed)
        return false;
    for (uint32_t i = t->first; i != t->cur; i++)
        if (!udp_out(t, i)->done && udp_out(t, i)->fences) {
            *number = i;
            return true;
        }
    t->owed = false;
    return false;
}

/* Sends one packet, repairs first. False: nothing to send, or not now. */
static bool udp_step(struct gw_tx *tx, struct udp_tx *t, uint64_t now)
{
    uint32_t number;
    bool owed = !t->repairs && udp_owed_fence(t, &number);

    if (!t->repairs && !owed && t->cur == t->end)
        return false;
    if (t->conf->rate_bps && now < t->pace_ps) {
        tx->host->timer_set(tx->net, &t->pace, t->pace_ps);
        return false;
    }
    if (!tx->host->nic_room(tx, now))
        return false;
    if (t->repairs)
        return udp_send_repair(tx, t, now);
    return owed ? udp_send_fence(tx, t, number, now) : udp_send_current(tx, t, now);
}

/* Sends what may go now. What the host starts meanwhile is sent by the outermost call. */
static void udp_output(struct gw_tx *tx, struct udp_tx *t, uint64_t now)
{
    if (t->busy) {
        t->again = true;
        return;
    }
    t->busy = true;
    do {
        t->again = false;
        if (!udp_advance(tx, t, now))
            return;
    } while (udp_step(tx, t, now) || t->again);
    t->busy = false;
    udp_arm_poll(tx, t);
}

static void udp_tx_write(struct gw_tx *tx, uint64_t now)
{
    udp_output(tx, tx->priv, now);
}

static void udp_pace_fire(void *owner, uint64_t now)
{
    struct gw_tx *tx = owner;

    udp_output(tx, tx->priv, now);
}

/* Nobody has answered: asks about the oldest message once more. */
static void udp_poll_fire(void *owner, uint64_t now)
{
    struct gw_tx *tx = owner;
    struct udp_tx *t = tx->priv;

    if (t->first != t->end && udp_out(t, t->first)->sent && now >= t->poll_due_ps) {
        if (!t->repairs) {
            udp_out(t, t->first)->fences = t->owed = true;
            tx->stats.timeouts++;
            t->backoff += t->backoff < UDP_BACKOFF;
        }
        t->poll_due_ps = gw_later(now, udp_rto(t));
    }
    udp_output(tx, t, now);
}

static bool udp_repair_room(struct gw_tx *tx, struct udp_tx *t, uint32_t more)
{
    uint32_t room = t->repair_room ? t->repair_room : 64;
    struct udp_repair *v;

    if (t->repairs + more <= t->repair_room)
        return true;
    while (room < t->repairs + more)
        room *= 2;
    v = tx->host->alloc(room * sizeof *v);
    if (!v)
        return false;
    for (uint32_t i = 0; i < t->repairs; i++)
        v[(t->repair_at + i) & (room - 1)] =
            t->repair[(t->repair_at + i) & (t->repair_room - 1)];
    tx->host->release(t->repair);
    t->repair = v;
    t->repair_room = room;
    return true;
}

/* A report: what it lists goes out again; an answer to an older poll is too late. */
static void udp_read_report(struct gw_tx *tx, struct udp_tx *t, struct udp_out *o,
                            struct gw_pkt *p)
{
    const struct udp_hdr *h = udp_hdr(p);
    const struct udp_ext *x = tx->host->ext_get(tx->net, p);

    if (!x || h->index > UDP_RANGES || h->stamp_ps < o->report_ps ||
        !udp_repair_room(tx, t, h->index))
        return;
    o->report_ps = h->stamp_ps;
    for (uint32_t i = 0; i < h->index; i++)
        t->repair[(t->repair_at + t->repairs++) & (t->repair_room - 1)] =
            (struct udp_repair){ h->number, x->range[i] };
}

static void udp_tx_packet(struct gw_tx *tx, struct gw_pkt *p, uint64_t now)
{
    struct udp_tx *t = tx->priv;
    const struct udp_hdr *h = udp_hdr(p);
    struct udp_out *o;

    if (t->mode == UDP_BOUNDED && h->number - t->first < t->end - t->first &&
        !(p->flags & (GW_PKT_CORRUPT | GW_PKT_TRIMMED))) {
        uint64_t rtt = now - gw_min(h->stamp_ps, now);

        o = udp_out(t, h->number);
        tx->stats.acks_in++;
        t->srtt_ps = t->srtt_ps ? t->srtt_ps - t->srtt_ps / 8 + rtt / 8 : rtt;
        t->backoff = 0;
        t->poll_due_ps = gw_later(now, udp_rto(t));
        if (h->kind == UDP_DONE)
            o->done = o->sent = true;
        else if (h->kind == UDP_REPORT && !o->done)
            udp_read_report(tx, t, o, p);
        if (o->done && h->number == t->cur)
            t->cur++;
    }
    tx->host->pkt_free(tx->net, p);
    udp_output(tx, t, now);
}

static enum gw_status udp_check(const void *conf, const struct gw_cc_ops *cc, uint32_t mtu_bytes,
                                struct gw_error *err)
{
    (void)cc;
    if (udp_mss(conf, mtu_bytes))
        return GW_OK;
    return gw_fail(err, GW_RANGE, "an MTU of %u bytes has no room for headers of %u; a larger one is "
                   "right", mtu_bytes, UDP_HEAD_BYTES - GW_ETH_BYTES);
}

static enum gw_status fec_check(const void *conf, const struct gw_cc_ops *cc, uint32_t mtu_bytes,
                                struct gw_error *err)
{
    const struct udp_conf *c = conf;

    if (c->n <= c->k || c->n - c->k > UDP_PARITY_MAX)
        return gw_fail(err, GW_PARAM, "n = %u with k = %u; n = %u to %u is right", c->n, c->k,
                       c->k + 1, c->k + UDP_PARITY_MAX);
    return udp_check(conf, cc, mtu_bytes, err);
}

static enum gw_status udp_tx_init(struct gw_tx *tx, enum udp_mode mode, struct gw_error *err)
{
    struct udp_tx *t = tx->priv;
    const struct udp_conf *c = tx->conf;

    t->conf = c;
    t->mode = mode;
    if ((mode == UDP_FEC ? fec_check : udp_check)(c, NULL, tx->mtu_bytes, err) != GW_OK)
        return err->code;
    t->mss = udp_mss(c, tx->mtu_bytes);
    t->srtt_ps = tx->base_rtt_ps;
    t->poll_due_ps = GW_NEVER;
    t->pace = (struct gw_timer){ .fire = udp_pace_fire, .owner = tx, .comp = tx->comp };
    t->poll = (struct gw_timer){ .fire = udp_poll_fire, .owner = tx, .comp = tx->comp };
    return GW_OK;
}

static void udp_tx_fini(struct gw_tx *tx)
{
    struct udp_tx *t = tx->priv;

    tx->host->timer_stop(tx->net, &t->pace);
    tx->host->timer_stop(tx->net, &t->poll);
    tx->host->release(t->out);
    tx->host->release(t->repair);
    t->out = NULL;
    t->repair = NULL;
}

/* ---- the receiver ---------------------------------------------------------------------------- */

static struct udp_in *udp_find(struct udp_rx *r, uint64_t start)
{
    struct udp_in *in = r->open;

    while (in && in->start != start)
        in = in->next;
    return in;
}

static void udp_unlink(struct udp_rx *r, struct udp_in *in)
{
    struct udp_in **at = &r->open;

    while (*at != in)
        at = &(*at)->next;
    *at = in->next;
    if (!*at)
        r->tail = at;
}

/* Bytes that must be there for the message to be over. */
static uint64_t udp_enough(const struct udp_rx *r, const struct udp_in *in)
{
    uint64_t bytes = in->end - in->start, less;

    if (r->mode != UDP_BOUNDED || r->conf->share >= 1)
        return bytes;
    less = (uint64_t)((double)bytes * (1 - r->conf->share));
    return bytes - gw_min(less, bytes);
}

static uint64_t udp_due(const struct udp_rx *r, const struct udp_in *in)
{
    uint64_t due = gw_min(in->close_ps, udp_deadline(r->conf, in->sent_ps));

    if (in->got == in->packets)                     /* the decoder is still at it              */
        due = gw_min(due, in->ready_ps);
    if (r->mode != UDP_BOUNDED && in == r->open)
        due = gw_min(due, gw_later(gw_max(in->told_ps, r->last_ps), r->conf->quiet_ps));
    return due;
}

static void udp_rx_arm(struct gw_rx *rx, struct udp_rx *r)
{
    uint64_t due = GW_NEVER;

    for (const struct udp_in *in = r->open; in; in = in->next)
        due = gw_min(due, udp_due(r, in));
    if (due != GW_NEVER)
        rx->host->timer_set(rx->net, &r->timer, due);
}

/* The message is over: says what came of it. */
static void udp_finish(struct gw_rx *rx, struct udp_rx *r, struct udp_in *in, uint64_t now)
{
    static const uint64_t nothing = 0;
    struct gw_received a = {
        .bytes = in->end - in->start, .grains = in->packets, .grain_bytes = r->mss,
        .missing_grains = in->packets - in->got,
    };

    a.missing_bytes = a.bytes - in->got_bytes;
    if (a.missing_bytes && r->conf->grain == UDP_GRAIN_MESSAGE) {
        a.missing_bytes = a.grain_bytes = a.bytes;
        a.grains = a.missing_grains = 1;
        a.bitmap = &nothing;
    } else if (a.missing_bytes) {
        a.bitmap = in->bitmap;
    }
    udp_unlink(r, in);
    rx->host->rx_message(rx, in->start, &a, now);
    in->next = r->idle;
    r->idle = in;
}

static void udp_rx_fire(void *owner, uint64_t now)
{
    struct gw_rx *rx = owner;
    struct udp_rx *r = rx->priv;
    struct udp_in *in = r->open;

    while (in) {
        if (udp_due(r, in) <= now) {
            udp_finish(rx, r, in, now);
            in = r->open;                           /* the list may have changed               */
        } else {
            in = in->next;
        }
    }
    udp_rx_arm(rx, r);
}

static bool udp_in_room(struct gw_rx *rx, struct udp_rx *r, struct udp_in *in)
{
    uint32_t words = (in->packets + 63) / 64;
    uint32_t blocks = r->mode == UDP_FEC ? (in->packets + r->conf->k - 1) / r->conf->k : 0;

    if (words > in->words) {
        uint64_t *v = rx->host->resize(in->bitmap, words * sizeof *v);

        if (!v)
            return false;
        in->bitmap = v;
        in->words = words;
    }
    if (blocks > in->blocks) {
        struct udp_block *v = rx->host->resize(in->block, blocks * sizeof *v);

        if (!v)
            return false;
        in->block = v;
        in->blocks = blocks;
    }
    memset(in->bitmap, 0, words * sizeof *in->bitmap);
    if (blocks)
        memset(in->block, 0, blocks * sizeof *in->block);
    return true;
}

/* The program expects a message. Out of memory it never ends, and the run stalls. */
static void udp_rx_expect(struct gw_rx *rx, uint64_t start, uint64_t end, uint64_t sent_ps,
                          uint64_t now)
{
    struct udp_rx *r = rx->priv;
    struct udp_in *in = r->idle ? r->idle : rx->host->alloc(sizeof *in);
    struct udp_in *next = r->idle ? r->idle->next : NULL;
    uint64_t *bitmap;
    struct udp_block *block;
    uint32_t words, blocks;

    r->told = end;
    if (!in)
        return;
    r->idle = next;
    bitmap = in->bitmap;
    block = in->block;
    words = in->words;
    blocks = in->blocks;
    *in = (struct udp_in){ .start = start, .end = end, .sent_ps = sent_ps, .told_ps = now,
                           .close_ps = GW_NEVER, .bitmap = bitmap, .block = block,
                           .words = words, .blocks = blocks,
                           .packets = udp_packets(end - start, r->mss) };
    if (!udp_in_room(rx, r, in)) {
        in->next = r->idle;
        r->idle = in;
        return;
    }
    *r->tail = in;
    r->tail = &in->next;
    udp_rx_arm(rx, r);
}

static inline bool udp_has(const struct udp_in *in, uint32_t i)
{
    return in->bitmap[i / 64] >> (i % 64) & 1;
}

/* Packet @i is there, by itself or recovered. */
static void udp_take(struct udp_rx *r, struct udp_in *in, uint32_t i)
{
    if (i >= in->packets || udp_has(in, i))
        return;
    in->bitmap[i / 64] |= UINT64_C(1) << (i % 64);
    in->got++;
    in->got_bytes += udp_len(in->end - in->start, r->mss, i);
    if (r->mode == UDP_FEC)
        in->block[i / r->conf->k].have++;
}

/* The decoder works off @passes more. */
static void udp_decode(struct udp_rx *r, struct udp_in *in, uint64_t passes, uint64_t now)
{
    in->ready_ps = r->decoder_free_ps =
        gw_later(gw_max(r->decoder_free_ps, now), udp_passes_ps(r->conf, r->mss, passes));
}

/* Recovers what block @b allows. */
static void udp_recover(struct udp_rx *r, struct udp_in *in, uint32_t b, uint64_t now)
{
    const struct udp_conf *c = r->conf;
    struct udp_block *k = &in->block[b];
    uint32_t first = b * c->k, groups = c->n - c->k;
    uint32_t size = (uint32_t)gw_min(c->k, in->packets - first), lost = size - k->have;

    if (!lost || !k->parity)
        return;
    if (c->code == UDP_RS) {
        if (lost > (uint32_t)__builtin_popcount(k->parity))
            return;
        udp_decode(r, in, (uint64_t)lost * c->k, now);
        for (uint32_t i = 0; i < size; i++)
            udp_take(r, in, first + i);
        return;
    }
    for (uint32_t g = 0; g < groups && g < size; g++) {
        uint32_t hole = GW_NONE, members = 0, holes = 0;

        if (!(k->parity >> g & 1))
            continue;
        for (uint32_t i = g; i < size; i += groups, members++)
            if (!udp_has(in, first + i)) {
                hole = first + i;
                holes++;
            }
        if (holes != 1)
            continue;
        udp_decode(r, in, members, now);
        udp_take(r, in, hole);
    }
}

/* Turns @p round into a report that begins at packet *at; what is asked for is taken off *need. */
static void udp_report(struct gw_rx *rx, const struct udp_rx *r, const struct udp_in *in,
                       struct gw_pkt *p, uint32_t *at, uint64_t *need, uint64_t now)
{
    struct udp_hdr *h = udp_hdr(p);
    struct udp_ext *x = rx->host->ext_alloc(rx->net, p);
    uint32_t n = 0;

    if (!x) {
        rx->host->pkt_free(rx->net, p);
        *at = in->packets;
        return;
    }
    for (; *need && *at < in->packets; ++*at) {
        struct udp_range *last = n ? &x->range[n - 1] : NULL;

        if (udp_has(in, *at))
            continue;
        if (last && last->first + last->count == *at)
            last->count++;
        else if (n < UDP_RANGES)
            x->range[n++] = (struct udp_range){ *at, 1 };
        else
            break;
        *need -= gw_min(*need, udp_len(in->end - in->start, r->mss, *at));
    }
    h->kind = UDP_REPORT;
    h->index = n;
    h->len = (uint16_t)(n * sizeof *x->range);
    p->len_bytes = UDP_HEAD_BYTES + h->len;
    p->flags = GW_PKT_REVERSE;
    p->ecn = GW_ECN_NOT_ECT;
    rx->host->emit_rx(rx, p, now);
}

/* Answers a poll: what is needed still, in as many reports as that takes. */
static void udp_answer(struct gw_rx *rx, struct udp_rx *r, struct udp_in *in, struct gw_pkt *p,
                       uint64_t now)
{
    struct udp_hdr poll = *udp_hdr(p);
    uint64_t need = udp_enough(r, in) - in->got_bytes;
    uint32_t at = 0;

    for (uint32_t i = 0; p && i < UDP_REPORTS && need && at < in->packets; i++) {
        *udp_hdr(p) = poll;
        udp_report(rx, r, in, p, &at, &need, now);
        p = need && at < in->packets ? rx->host->pkt_alloc(rx->net) : NULL;
    }
    if (p)
        rx->host->pkt_free(rx->net, p);
}

/* Turns @p round: the receiver is content with the message. */
static void udp_send_done(struct gw_rx *rx, struct gw_pkt *p, uint64_t now)
{
    struct udp_hdr *h = udp_hdr(p);

    if (h->kind != UDP_FENCE)
        h->stamp_ps = now - gw_min(rx->base_rtt_ps, now);
    h->kind = UDP_DONE;
    h->len = 0;
    p->len_bytes = UDP_HEAD_BYTES;
    p->flags = GW_PKT_REVERSE;
    p->ecn = GW_ECN_NOT_ECT;
    rx->host->emit_rx(rx, p, now);
}

/* Bounded loss: ends the message when enough is there. */
static void udp_rx_bounded(struct gw_rx *rx, struct udp_rx *r, struct udp_in *in, struct gw_pkt *p,
                           uint64_t now)
{
    if (in->got_bytes >= udp_enough(r, in)) {
        udp_send_done(rx, p, now);
        udp_finish(rx, r, in, now);
    } else if (udp_hdr(p)->kind == UDP_FENCE) {
        udp_answer(rx, r, in, p, now);
    } else {
        rx->host->pkt_free(rx->net, p);
    }
}

/* Datagrams and FEC: ends the message when all is there or a fence has come. */
static void udp_rx_once(struct gw_rx *rx, struct udp_rx *r, struct udp_in *in, struct gw_pkt *p,
                        uint64_t now)
{
    bool fence = udp_hdr(p)->kind == UDP_FENCE;

    rx->host->pkt_free(rx->net, p);
    if (fence && in->close_ps == GW_NEVER)
        in->close_ps = gw_max(gw_later(now, r->conf->settle_ps), in->ready_ps);
    if (udp_due(r, in) <= now)
        udp_finish(rx, r, in, now);
    else if (fence || in->got == in->packets)
        udp_rx_arm(rx, r);
}

static void udp_rx_packet(struct gw_rx *rx, struct gw_pkt *p, uint64_t now)
{
    struct udp_rx *r = rx->priv;
    const struct udp_hdr *h = udp_hdr(p);
    struct udp_in *in;

    if (GW_UNLIKELY(p->flags & (GW_PKT_CORRUPT | GW_PKT_TRIMMED))) {
        rx->host->pkt_free(rx->net, p);
        return;
    }
    r->last_ps = now;
    in = udp_find(r, h->start);
    if (GW_UNLIKELY(!in)) {                         /* over: the sender may not know            */
        if (r->mode == UDP_BOUNDED && h->start < r->told && h->kind == UDP_FENCE)
            udp_send_done(rx, p, now);
        else
            rx->host->pkt_free(rx->net, p);
        return;
    }
    if (h->kind == UDP_DATA) {
        udp_take(r, in, h->index);
        if (r->mode == UDP_FEC && h->index < in->packets)
            udp_recover(r, in, h->index / r->conf->k, now);
    } else if (h->kind == UDP_PARITY && r->mode == UDP_FEC && h->parity < UDP_PARITY_MAX &&
               (uint64_t)h->index * r->conf->k < in->packets) {
        in->block[h->index].parity |= 1u << h->parity;
        udp_recover(r, in, h->index, now);
    }
    if (r->mode == UDP_BOUNDED)
        udp_rx_bounded(rx, r, in, p, now);
    else
        udp_rx_once(rx, r, in, p, now);
}

static enum gw_status udp_rx_init(struct gw_rx *rx, enum udp_mode mode)
{
    struct udp_rx *r = rx->priv;

    r->conf = rx->conf;
    r->mode = mode;
    r->mss = udp_mss(r->conf, rx->mtu_bytes);
    r->tail = &r->open;
    r->timer = (struct gw_timer){ .fire = udp_rx_fire, .owner = rx, .comp = rx->comp };
    return GW_OK;
}

static void udp_free_list(struct gw_rx *rx, struct udp_in *in)
{
    while (in) {
        struct udp_in *next = in->next;

        rx->host->release(in->bitmap);
        rx->host->release(in->block);
        rx->host->release(in);
        in = next;
    }
}

static void udp_rx_fini(struct gw_rx *rx)
{
    struct udp_rx *r = rx->priv;

    rx->host->timer_stop(rx->net, &r->timer);
    udp_free_list(rx, r->open);
    udp_free_list(rx, r->idle);
    r->open = r->idle = NULL;
}

/* ---- headers --------------------------------------------------------------------------------- */

static uint32_t udp_encode(const struct gw_pkt *p, const void *ext, const struct gw_flow_addr *a,
                           uint8_t *buf, uint8_t *ip_proto)
{
    const struct udp_hdr *h = (const struct udp_hdr *)(const void *)p->tp;
    uint8_t *b = buf;

    (void)ext;
    b = gw_put_udp(p, a, b);
    *b++ = h->kind;
    *b++ = h->parity;
    b = gw_put16(b, h->len);
    b = gw_put32(b, h->number);
    b = gw_put32(b, h->index);
    b = gw_put32(b, (uint32_t)h->start);
    *ip_proto = 17;
    return (uint32_t)(b - buf);
}

static void udp_describe(const struct gw_pkt *p, struct gw_pkt_facts *f)
{
    const struct udp_hdr *h = (const struct udp_hdr *)(const void *)p->tp;

    if (h->kind == UDP_DATA)
        *f = (struct gw_pkt_facts){ 0, h->len, GW_WHAT_DATA, h->packet };
    else if (p->flags & GW_PKT_REVERSE)
        f->what = GW_WHAT_ACK;
    else if (h->kind == UDP_FENCE)
        f->what = GW_WHAT_CLOSE;
}

static uint64_t udp_wire_bytes(const void *conf, uint64_t payload, uint32_t mtu_bytes,
                               uint64_t *frames)
{
    return gw_seg_wire_bytes(payload, udp_mss(conf, mtu_bytes), UDP_HEAD_BYTES, frames);
}

/* ---- the three of them ----------------------------------------------------------------------- */

#define UDP_OPS                                                                                \
    .level = GW_TP_PACKET, .conf_bytes = sizeof(struct udp_conf),                              \
    .tx_bytes = sizeof(struct udp_tx), .rx_bytes = sizeof(struct udp_rx),                      \
    .header_bytes = UDP_HEAD_BYTES, .tx_fini = udp_tx_fini, .rx_fini = udp_rx_fini,            \
    .tx_write = udp_tx_write, .tx_packet = udp_tx_packet, .rx_packet = udp_rx_packet,          \
    .tx_room = udp_tx_write, .encode = udp_encode, .describe = udp_describe,                   \
    .ext_bytes = sizeof(struct udp_ext), .tx_message = udp_tx_message,                         \
    .rx_expect = udp_rx_expect

#define UDP_ROW_RATE                                                                           \
    { "rate", GW_P_RATE, offsetof(struct udp_conf, rate_bps), "0", "0", NULL,                  \
      "Rate at which a flow's frames leave, headers included; 0: as fast as the NIC takes them." }
#define UDP_ROW_DEADLINE                                                                       \
    { "deadline", GW_P_TIME, offsetof(struct udp_conf, deadline_ps), "0", "0", NULL,           \
      "A message is over at this time after its send, whatever has come; 0: no deadline." }
#define UDP_ROW_PAYLOAD                                                                        \
    { "payload", GW_P_BYTES, offsetof(struct udp_conf, payload_bytes), "0", "0", "65475",      \
      "Payload of a full packet; 0: the path's MTU less 44 bytes." }
#define UDP_ROWS_END                                                                           \
    { "fence", GW_P_U32, offsetof(struct udp_conf, fence), "2", "0", "16",                     \
      "Small packets behind a message that end it when one arrives; 0: none." },               \
    { "settle", GW_P_TIME, offsetof(struct udp_conf, settle_ps), "0", "0", "1h",               \
      "How long after a fence packets may still come, where paths reorder." },                 \
    { "quiet", GW_P_TIME, offsetof(struct udp_conf, quiet_ps), "100ms", "1ns", "1h",           \
      "The oldest message is over when nothing of its flow has come for so long." },           \
    { "grain", GW_P_CHOICE, offsetof(struct udp_conf, grain), "packet", "packet|message", NULL, \
      "What is lost at once: a packet, or the whole message if any of its packets is." }

static enum gw_status datagram_tx_init(struct gw_tx *tx, uint64_t now, struct gw_error *err)
{
    (void)now;
    return udp_tx_init(tx, UDP_PLAIN, err);
}

static enum gw_status datagram_rx_init(struct gw_rx *rx, uint64_t now, struct gw_error *err)
{
    (void)now;
    (void)err;
    return udp_rx_init(rx, UDP_PLAIN);
}

static const struct gw_transport_ops datagram_ops = {
    UDP_OPS, .tx_init = datagram_tx_init, .rx_init = datagram_rx_init,
    .wire_bytes = udp_wire_bytes, .check = udp_check,
};

static const struct gw_param datagram_params[] = {
    UDP_ROW_RATE, UDP_ROW_DEADLINE, UDP_ROW_PAYLOAD, UDP_ROWS_END,
};

GW_PLUGIN(gw_transport_datagram) = {
    GW_PLUGIN_HEAD(GW_KIND_TRANSPORT, datagram_ops),
    .name    = "datagram",
    .summary = "Datagrams sent once, paced; a message ends at a fence or a deadline, holes told.",
    .params  = datagram_params, .param_count = GW_ARRAY_LEN(datagram_params),
    .source  = "Weintraub, Banner, Orda, 2025 (arXiv 2507.07114)",
};

#ifndef GW_PLUGIN_SHARED             /* a shared object holds one plugin: the first */

static enum gw_status bounded_tx_init(struct gw_tx *tx, uint64_t now, struct gw_error *err)
{
    (void)now;
    return udp_tx_init(tx, UDP_BOUNDED, err);
}

static enum gw_status bounded_rx_init(struct gw_rx *rx, uint64_t now, struct gw_error *err)
{
    (void)now;
    (void)err;
    return udp_rx_init(rx, UDP_BOUNDED);
}

static const struct gw_transport_ops bounded_ops = {
    UDP_OPS, .tx_init = bounded_tx_init, .rx_init = bounded_rx_init,
    .wire_bytes = udp_wire_bytes, .check = udp_check,
};

static const struct gw_param bounded_params[] = {
    { "share", GW_P_FRACTION, offsetof(struct udp_conf, share), "99%", "0", "100%",
      "A message is over when this share of its bytes is there; 100%: a reliable transport." },
    UDP_ROW_RATE, UDP_ROW_DEADLINE, UDP_ROW_PAYLOAD,
    { "rto_min", GW_P_TIME, offsetof(struct udp_conf, rto_min_ps), "1ms", "1us", "60s",
      "Least time before an unanswered poll is repeated; else 3 RTT." },
};

GW_PLUGIN(gw_transport_bounded_loss) = {
    GW_PLUGIN_HEAD(GW_KIND_TRANSPORT, bounded_ops),
    .name    = "bounded-loss",
    .summary = "Datagrams repaired until a share of the message has arrived, or its deadline.",
    .params  = bounded_params, .param_count = GW_ARRAY_LEN(bounded_params),
};

static enum gw_status fec_tx_init(struct gw_tx *tx, uint64_t now, struct gw_error *err)
{
    (void)now;
    return udp_tx_init(tx, UDP_FEC, err);
}

static enum gw_status fec_rx_init(struct gw_rx *rx, uint64_t now, struct gw_error *err)
{
    (void)now;
    (void)err;
    return udp_rx_init(rx, UDP_FEC);
}

/* With the parity packets; the last block's are as many as a full one's. */
static uint64_t fec_wire_bytes(const void *conf, uint64_t payload, uint32_t mtu_bytes,
                               uint64_t *frames)
{
    const struct udp_conf *c = conf;
    uint64_t n, data = udp_wire_bytes(conf, payload, mtu_bytes, &n);
    uint64_t parity = (n + c->k - 1) / c->k * (c->n - c->k);

    if (frames)
        *frames = n + parity;
    return data + parity * (UDP_HEAD_BYTES + udp_mss(c, mtu_bytes));
}

static const struct gw_transport_ops fec_ops = {
    UDP_OPS, .tx_init = fec_tx_init, .rx_init = fec_rx_init, .wire_bytes = fec_wire_bytes,
    .check = fec_check,
};

static const struct gw_param fec_params[] = {
    { "code", GW_P_CHOICE, offsetof(struct udp_conf, code), "rs", "xor|rs", NULL,
      "Reed-Solomon recovers any n - k losses of a block, xor one in each of n - k groups." },
    { "k", GW_P_U32, offsetof(struct udp_conf, k), "10", "1", "255", "Data packets of a block." },
    { "n", GW_P_U32, offsetof(struct udp_conf, n), "12", "2", "287",
      "Packets of a block with its parity: k + 1 to k + 32." },
    { "coding", GW_P_RATE, offsetof(struct udp_conf, coding_bps), "80gbit", "0", NULL,
      "Speed of one multiply-and-add pass over a packet, at both ends; 0: coding costs no time." },
    UDP_ROW_RATE, UDP_ROW_DEADLINE, UDP_ROW_PAYLOAD, UDP_ROWS_END,
};

GW_PLUGIN(gw_transport_fec) = {
    GW_PLUGIN_HEAD(GW_KIND_TRANSPORT, fec_ops),
    .name    = "fec",
    .summary = "Datagrams with forward error correction: XOR or Reed-Solomon, k of n, by counts.",
    .params  = fec_params, .param_count = GW_ARRAY_LEN(fec_params),
};
#endif
