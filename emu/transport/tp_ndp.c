/*
 * tp_ndp - receiver-driven transport over trimming switches
 *
 * NDP: a sender pushes its first window at line rate without asking; from then on the receiver
 * decides. Every data packet is acknowledged at once; one that arrives as a bare header (switches
 * cut payloads instead of dropping packets, discipline `ndp`) is answered by a NACK, and its sender
 * keeps it ready. The receiver has one queue of pulls for all its flows, served in turn and paced so
 * that the data it asks for fills its link exactly; a pull lets its sender send one packet more,
 * what was trimmed first. Packets are numbered and sprayed over all paths (with `route: spray`
 * evenly), so order means nothing to loss. Handley et al., "Re-architecting datacenter networks and
 * stacks for low latency and high performance", SIGCOMM 2017; EQDS (NSDI 2022) takes over the
 * pacing of pulls and the sender's announcement of how many it wants.
 *
 * How pulls are counted: a flow's pulls carry a running number, and so do its ACKs and NACKs, so a
 * lost pull is made good by whatever comes next. Each data packet says up to which number the sender
 * wants pulls for what it has; the receiver adds one for each packet that came trimmed. A message
 * that is posted while nothing is out is pushed anew, up to a window.
 *
 * A header that finds no room in a switch comes back to its sender, which keeps the packet ready for
 * the next pull; where no pull and no other answer is to come it sends again at once.
 *
 * Nothing hangs: while anything is out or waits for pulls a timer runs. When it ends, packets that
 * were sent a timeout ago and not answered are lost; if nothing is, one packet goes without being
 * asked for, which brings back pulls. The timeout doubles while nothing comes back.
 *
 * Headers in captures are UDP and 20 bytes of our own, for NDP has no registered format.
 *
 * Left out: path penalties, incast priorities of pulls, a connection set-up (the
 * first window needs none), FIN.
 */
#include <gradwire/plugin.h>
#include <gradwire/alg/pktwin.h>
#include <gradwire/alg/segments.h>

#define NDP_OWN_BYTES   20u
#define NDP_HEAD_BYTES  (GW_ETH_BYTES + 20u + 8u + NDP_OWN_BYTES)
#define NDP_CTRL_BYTES  64u              /* ACK, NACK, PULL: the least Ethernet frame           */
#define NDP_BACKOFF_MAX 8u

enum ndp_kind { NDP_DATA, NDP_ACK, NDP_NACK, NDP_PULL };

/* The transport's 32 bytes of a packet. */
struct ndp_hdr {
    uint64_t stamp_ps;           /* data: when it left; its ACK or NACK brings that back        */
    uint64_t cum;                /* ACK, NACK, PULL: all numbers below have come                */
    uint32_t number;             /* of the data packet, low half                                */
    uint32_t pulls;              /* data: last pull that is wanted; else: pulls sent so far     */
    uint16_t len;                /* payload                                                     */
    uint8_t  kind;               /* enum ndp_kind                                               */
};
_Static_assert(sizeof(struct ndp_hdr) <= sizeof(((struct gw_pkt *)0)->tp), "32 bytes per packet");

struct ndp_conf {
    uint32_t window;             /* packets pushed, 0: what fills the path and 8 more           */
    uint64_t payload_bytes;      /* 0: what the MTU leaves                                      */
    uint64_t rto_min_ps;
    double   pull_share;         /* of the receiver's link that pulls ask for                   */
};

struct ndp_tx {
    struct gw_pw_tx win;
    uint64_t pulls;              /* highest number of a pull, widened                           */
    uint64_t due;                /* pulls at least that NACKs have promised                     */
    struct gw_rtt rtt;
    uint64_t progress_ps;        /* when something came back last                               */
    uint32_t credit;             /* packets that may go                                         */
    uint32_t window, mss;
    bool     busy, again, closed;
    struct gw_timer timer;
    const struct ndp_conf *conf;
};

struct ndp_rx {
    struct gw_pw_rx win;
    uint64_t pulls;              /* sent                                                        */
    uint64_t wanted;             /* to be sent in all                                           */
    struct gw_rx *next;          /* in the host's queue of flows that want pulls                */
    bool     queued;
    uint32_t frame_bytes;        /* of a full data packet, framing included                     */
    const struct ndp_conf *conf;
};

struct ndp_host {                /* shared by all receiving halves at a host                    */
    struct gw_rx *head, *tail;
    uint64_t next_ps;            /* no pull before                                              */
    struct gw_timer timer;
};

static inline struct ndp_hdr *ndp_hdr(struct gw_pkt *p)
{
    return (struct ndp_hdr *)(void *)p->tp;
}

static uint32_t ndp_mss(const struct ndp_conf *c, uint32_t mtu_bytes)
{
    return gw_seg_payload(c->payload_bytes, NDP_HEAD_BYTES, mtu_bytes);
}

/* ---- the sender ------------------------------------------------------------------------------ */

static uint64_t ndp_rto(const struct ndp_tx *t)
{
    return gw_rtt_timeout(&t->rtt, t->conf->rto_min_ps);
}

/* Packets that were never sent. */
static inline uint64_t ndp_unsent(const struct gw_tx *tx, const struct ndp_tx *t)
{
    return (tx->written_bytes - t->win.seq + t->mss - 1) / t->mss;
}

static inline bool ndp_idle(const struct gw_tx *tx, const struct ndp_tx *t)
{
    return t->win.una == t->win.nxt && t->win.seq == tx->written_bytes;
}

/* One timer; it may come early and then sets itself again. */
static inline void ndp_arm(struct gw_tx *tx, struct ndp_tx *t)
{
    if (GW_UNLIKELY(!t->timer.armed) && !ndp_idle(tx, t))
        tx->host->timer_set(tx->net, &t->timer, gw_later(t->progress_ps, ndp_rto(t)));
}

/* Sends the next packet: what is lost first. False: there is none, or no packet was to be had. */
static bool ndp_send(struct gw_tx *tx, struct ndp_tx *t, uint64_t now)
{
    struct gw_pw_pkt *k;
    struct ndp_hdr *h;
    struct gw_pkt *p;
    uint64_t number;

    if (GW_UNLIKELY(!gw_pw_reserve(&t->win, tx->host->resize)))
        return false;
    p = tx->host->pkt_alloc(tx->net);
    if (GW_UNLIKELY(!p))
        return false;
    k = gw_pw_again(&t->win, now, &number);
    if (!k) {
        uint64_t left = tx->written_bytes - t->win.seq;

        number = t->win.nxt;
        k = gw_pw_new(&t->win, left < t->mss ? (uint32_t)left : t->mss, now);
    } else {
        p->flags = GW_PKT_RETRANS;
        tx->stats.retrans_pkts++;
        tx->stats.retrans_bytes += k->len;
    }
    tx->stats.sent_pkts++;
    tx->stats.sent_bytes += k->len;
    t->credit -= t->credit != 0;
    h = ndp_hdr(p);
    h->stamp_ps = now;
    h->number = (uint32_t)number;
    h->pulls = (uint32_t)t->pulls;
    if (ndp_unsent(tx, t) + t->win.lost_pkts > t->credit)
        h->pulls += (uint32_t)(ndp_unsent(tx, t) + t->win.lost_pkts - t->credit);
    h->len = (uint16_t)k->len;
    h->kind = NDP_DATA;
    p->flags |= GW_PKT_TRIMMABLE;
    p->len_bytes = NDP_HEAD_BYTES + k->len;
    tx->at_bytes = k->seq;
    tx->host->emit_tx(tx, p, now);
    return true;
}

/* Sends what credit and NIC allow. A pull may overtake the NACK that it is for: unused credit is
 * kept. */
static inline void ndp_output(struct gw_tx *tx, struct ndp_tx *t, uint64_t now)
{
    while (t->credit && (t->win.lost_pkts || t->win.seq != tx->written_bytes) &&
           tx->host->nic_room(tx, now) && ndp_send(tx, t, now))
        ;
    ndp_arm(tx, t);
}

static bool ndp_try_close(struct gw_tx *tx, struct ndp_tx *t, uint64_t now)
{
    if (!tx->closing || t->closed || !ndp_idle(tx, t))
        return false;
    t->closed = true;
    tx->host->timer_stop(tx->net, &t->timer);
    tx->host->tx_closed(tx, now);
    return true;
}

static void ndp_tx_write(struct gw_tx *tx, uint64_t now)
{
    struct ndp_tx *t = tx->priv;
    uint32_t out;

    if (ndp_try_close(tx, t, now))
        return;
    if (!t->timer.armed)
        t->progress_ps = now;
    if (t->win.una == t->win.nxt)
        t->credit = 0;                              /* of pulls for what came otherwise         */
    out = t->win.out_pkts + t->credit;
    if (out < t->window && !t->win.lost_pkts)
        t->credit += t->window - out;
    ndp_output(tx, t, now);
}

static void ndp_tx_room(struct gw_tx *tx, uint64_t now)
{
    ndp_output(tx, tx->priv, now);
}

/* A header has come back. */
static void ndp_returned(struct gw_tx *tx, struct ndp_tx *t, const struct ndp_hdr *h, uint64_t now)
{
    uint64_t number = gw_pw_number(t->win.una, h->number);

    if (!gw_pw_sent_at(&t->win, number, h->stamp_ps) || !gw_pw_lose(&t->win, number))
        return;
    t->progress_ps = now;
    if (!t->win.out_pkts && !t->credit && t->due <= t->pulls)
        t->credit = 1;
    ndp_output(tx, t, now);
}

static void ndp_tx_packet(struct gw_tx *tx, struct gw_pkt *p, uint64_t now)
{
    struct ndp_tx *t = tx->priv;
    const struct ndp_hdr *h = ndp_hdr(p);
    uint64_t pulls = gw_pw_number(t->pulls, h->pulls), number, acked = t->win.una;

    if (GW_UNLIKELY(p->flags & (GW_PKT_CORRUPT | GW_PKT_TRIMMED))) {
        struct ndp_hdr back = *h;
        bool good = !(p->flags & GW_PKT_CORRUPT);

        tx->host->pkt_free(tx->net, p);
        if (good)
            ndp_returned(tx, t, &back, now);
        return;
    }
    t->progress_ps = now;
    t->rtt.backoff = 0;
    if (pulls > t->pulls) {
        t->credit += (uint32_t)(pulls - t->pulls);
        t->pulls = pulls;
    }
    gw_pw_ack_below(&t->win, h->cum);
    if (h->kind != NDP_PULL) {
        number = gw_pw_number(t->win.una, h->number);
        tx->stats.acks_in++;
        if (h->kind == NDP_ACK)
            gw_pw_ack(&t->win, number);
        else if (gw_pw_sent_at(&t->win, number, h->stamp_ps)) {
            gw_pw_lose(&t->win, number);
            t->due = gw_max(t->due, t->pulls) + 1;
        }
        gw_rtt_sample(&t->rtt, now - h->stamp_ps);
    }
    tx->host->pkt_free(tx->net, p);
    if (t->win.una != acked) {
        tx->host->tx_acked(tx, gw_pw_acked_to(&t->win), now);
        if (GW_UNLIKELY(tx->closing) && ndp_try_close(tx, t, now))
            return;
    }
    ndp_output(tx, t, now);
}

static void ndp_tx_fire(void *owner, uint64_t now)
{
    struct gw_tx *tx = owner;
    struct ndp_tx *t = tx->priv;
    uint64_t rto = ndp_rto(t);
    uint32_t lost;

    if (ndp_idle(tx, t))
        return;
    lost = now >= rto ? gw_pw_expire(&t->win, now - rto) : 0;
    if (lost || now >= gw_later(t->progress_ps, rto)) {
        tx->stats.timeouts++;
        if (now >= gw_later(t->progress_ps, rto)) {   /* silence: ask for an answer            */
            t->rtt.backoff += t->rtt.backoff < NDP_BACKOFF_MAX;
            t->progress_ps = now;
            lost = 1;
        }
        if (t->credit < lost)
            t->credit = lost < t->window ? lost : t->window;
        ndp_output(tx, t, now);
    }
    tx->host->timer_set(tx->net, &t->timer, gw_later(now, ndp_rto(t) / 2));
}

/* Packets that fill the path, and what the last switch's queue takes. */
static uint32_t ndp_first_window(const struct gw_tx *tx, uint32_t mss)
{
    uint64_t wire = mss + NDP_HEAD_BYTES + GW_FRAMING_BYTES, fill;

    if (!tx->nic_rate_bps)
        return 64;
    fill = gw_mul_div(tx->base_rtt_ps, tx->nic_rate_bps, 8 * GW_PS_PER_S) / wire + 1;
    return fill > 100000 ? 100000 : (uint32_t)fill + 8;
}

static enum gw_status ndp_tx_init(struct gw_tx *tx, uint64_t now, struct gw_error *err)
{
    struct ndp_tx *t = tx->priv;

    t->conf = tx->conf;
    t->mss = ndp_mss(t->conf, tx->mtu_bytes);
    if (!t->mss || t->mss > UINT16_MAX)
        return gw_fail(err, GW_RANGE, "flow %u: an MTU of %u bytes does not fit NDP; %u to 65535 "
                       "is right", tx->flow, tx->mtu_bytes, NDP_HEAD_BYTES - GW_ETH_BYTES + 1);
    t->window = t->conf->window ? t->conf->window : ndp_first_window(tx, t->mss);
    gw_rtt_init(&t->rtt, tx->base_rtt_ps);
    t->progress_ps = now;
    t->timer = (struct gw_timer){ .fire = ndp_tx_fire, .owner = tx, .comp = tx->comp };
    return GW_OK;
}

static void ndp_tx_fini(struct gw_tx *tx)
{
    struct ndp_tx *t = tx->priv;

    tx->host->timer_stop(tx->net, &t->timer);
    tx->host->release(t->win.ring);
    t->win.ring = NULL;
}

/* ---- the receiver ---------------------------------------------------------------------------- */

static void ndp_emit(struct gw_rx *rx, struct ndp_rx *r, struct gw_pkt *p, enum ndp_kind kind,
                     uint64_t now)
{
    struct ndp_hdr *h = ndp_hdr(p);

    h->kind = (uint8_t)kind;
    h->cum = r->win.cum;
    h->pulls = (uint32_t)r->pulls;
    p->len_bytes = NDP_CTRL_BYTES;
    p->orig_len_bytes = 0;
    p->flags = GW_PKT_REVERSE;
    p->ecn = GW_ECN_NOT_ECT;
    rx->host->emit_rx(rx, p, now);
}

/* @rx waits behind the others at its host for its next pull. */
static void ndp_line_up(struct ndp_host *s, struct gw_rx *rx, struct ndp_rx *r)
{
    r->queued = true;
    r->next = NULL;
    if (s->tail)
        ((struct ndp_rx *)s->tail->priv)->next = rx;
    else
        s->head = rx;
    s->tail = rx;
}

/* One pull of the flow whose turn it is; the queue is not empty. */
static void ndp_pull(struct ndp_host *s, uint64_t now)
{
    struct gw_rx *rx = s->head;
    struct ndp_rx *r = rx->priv;
    struct gw_pkt *p = rx->host->pkt_alloc(rx->net);
    uint64_t gap = 0;

    s->head = r->next;
    if (!s->head)
        s->tail = NULL;
    r->queued = false;
    if (!p)
        return;
    if (rx->nic_rate_bps)
        gap = (uint64_t)((double)r->frame_bytes * 8e12 /
                         ((double)rx->nic_rate_bps * r->conf->pull_share));
    s->next_ps = gw_later(s->next_ps > now ? s->next_ps : now, gap);
    r->pulls++;
    if (r->pulls < r->wanted)
        ndp_line_up(s, rx, r);
    ndp_emit(rx, r, p, NDP_PULL, now);
}

static void ndp_serve(struct ndp_host *s, struct gw_rx *rx, uint64_t now)
{
    while (s->head && s->next_ps <= now)
        ndp_pull(s, now);
    if (s->head && !s->timer.armed)
        rx->host->timer_set(rx->net, &s->timer, s->next_ps);
}

static void ndp_host_fire(void *owner, uint64_t now)
{
    struct ndp_host *s = owner;

    if (s->head)
        ndp_serve(s, s->head, now);
}

/* The flow may want pulls: it stands in the host's queue once. */
static inline void ndp_want(struct gw_rx *rx, struct ndp_rx *r, uint64_t now)
{
    struct ndp_host *s = rx->shared;

    if (r->queued || r->pulls >= r->wanted)
        return;
    ndp_line_up(s, rx, r);
    ndp_serve(s, rx, now);
}

static void ndp_rx_packet(struct gw_rx *rx, struct gw_pkt *p, uint64_t now)
{
    struct ndp_rx *r = rx->priv;
    const struct ndp_hdr *h = ndp_hdr(p);
    uint64_t number = gw_pw_number(r->win.cum, h->number), bytes = r->win.bytes;
    uint64_t wanted = gw_pw_number(r->pulls, h->pulls);
    bool trimmed = p->flags & GW_PKT_TRIMMED;

    if (GW_UNLIKELY(p->flags & GW_PKT_CORRUPT)) {
        rx->host->pkt_free(rx->net, p);
        return;
    }
    if (trimmed && number >= r->win.cum)
        r->wanted = (r->wanted > r->pulls ? r->wanted : r->pulls) + 1;
    if (wanted > r->wanted)
        r->wanted = wanted;
    if (!trimmed)
        gw_pw_rx_take(&r->win, number, h->len, rx->host->resize);
    ndp_emit(rx, r, p, trimmed && number >= r->win.cum ? NDP_NACK : NDP_ACK, now);
    ndp_want(rx, r, now);
    if (r->win.bytes != bytes)
        rx->host->rx_deliver(rx, r->win.bytes, now);
}

static enum gw_status ndp_rx_init(struct gw_rx *rx, uint64_t now, struct gw_error *err)
{
    struct ndp_rx *r = rx->priv;
    struct ndp_host *s = rx->shared;

    (void)now;
    (void)err;
    r->conf = rx->conf;
    r->frame_bytes = ndp_mss(r->conf, rx->mtu_bytes) + NDP_HEAD_BYTES + GW_FRAMING_BYTES;
    if (!s->timer.fire)
        s->timer = (struct gw_timer){ .fire = ndp_host_fire, .owner = s, .comp = rx->comp };
    return GW_OK;
}

/* The half may stand in the host's queue. */
static void ndp_rx_fini(struct gw_rx *rx)
{
    struct ndp_rx *r = rx->priv;
    struct ndp_host *s = rx->shared;
    struct gw_rx *before = NULL;

    for (struct gw_rx *x = s->head; r->queued && x; x = ((struct ndp_rx *)x->priv)->next) {
        if (x == rx) {
            if (before)
                ((struct ndp_rx *)before->priv)->next = r->next;
            else
                s->head = r->next;
            if (s->tail == rx)
                s->tail = before;
            break;
        }
        before = x;
    }
    r->queued = false;
    rx->host->release(r->win.ring);
    r->win.ring = NULL;
}

/* ---- headers --------------------------------------------------------------------------------- */

static uint32_t ndp_encode(const struct gw_pkt *p, const void *ext, const struct gw_flow_addr *a,
                           uint8_t *buf, uint8_t *ip_proto)
{
    const struct ndp_hdr *h = (const struct ndp_hdr *)(const void *)p->tp;
    uint8_t *b = buf;

    (void)ext;
    b = gw_put_udp(p, a, b);
    *b++ = h->kind;
    *b++ = p->flags & GW_PKT_TRIMMED ? 1 : 0;
    b = gw_put16(b, h->len);
    b = gw_put32(b, h->number);
    b = gw_put32(b, h->pulls);
    b = gw_put32(b, (uint32_t)h->cum);
    b = gw_put32(b, (uint32_t)(h->stamp_ps / GW_PS_PER_NS));
    *ip_proto = 17;
    return (uint32_t)(b - buf);
}

static void ndp_describe(const struct gw_pkt *p, struct gw_pkt_facts *f)
{
    const struct ndp_hdr *h = (const struct ndp_hdr *)(const void *)p->tp;

    gw_pkt_numbered(f, h->kind == NDP_DATA, h->number, h->len);
}

static uint64_t ndp_wire_bytes(const void *conf, uint64_t payload, uint32_t mtu_bytes,
                               uint64_t *frames)
{
    return gw_seg_wire_bytes(payload, ndp_mss(conf, mtu_bytes), NDP_HEAD_BYTES, frames);
}

static const struct gw_transport_ops ndp_ops = {
    .level        = GW_TP_PACKET,
    .conf_bytes   = sizeof(struct ndp_conf),
    .tx_bytes     = sizeof(struct ndp_tx),
    .rx_bytes     = sizeof(struct ndp_rx),
    .shared_bytes = sizeof(struct ndp_host),
    .header_bytes = NDP_HEAD_BYTES,
    .sprays       = true,
    .tx_init      = ndp_tx_init,
    .rx_init      = ndp_rx_init,
    .tx_fini      = ndp_tx_fini,
    .rx_fini      = ndp_rx_fini,
    .tx_write     = ndp_tx_write,
    .tx_packet    = ndp_tx_packet,
    .rx_packet    = ndp_rx_packet,
    .tx_room      = ndp_tx_room,
    .encode       = ndp_encode,
    .wire_bytes   = ndp_wire_bytes,
    .describe     = ndp_describe,
    .fifo_advice  = "nothing in the network trims packets, so each loss is a timeout: "
                    "`qdisc: [{dev: switches, kind: ndp}]` does",
};

static const struct gw_param ndp_params[] = {
    { "window", GW_P_U32, offsetof(struct ndp_conf, window), "0", "0", "100000",
      "Packets pushed before the first pull; 0: those that fill the path, and 8." },
    { "payload", GW_P_BYTES, offsetof(struct ndp_conf, payload_bytes), "0", "0", "65487",
      "Payload of a full packet; 0: the path's MTU less 48 bytes." },
    { "rto_min", GW_P_TIME, offsetof(struct ndp_conf, rto_min_ps), "1ms", "1us", "60s",
      "Least time until a packet without an answer is lost." },
    { "pull_rate", GW_P_FRACTION, offsetof(struct ndp_conf, pull_share), "100%", "1%", "100%",
      "Share of the receiver's link that the data of its pulls may fill." },
};

GW_PLUGIN(gw_transport_ndp) = {
    GW_PLUGIN_HEAD(GW_KIND_TRANSPORT, ndp_ops),
    .name    = "ndp",
    .summary = "Receiver-driven: a first window pushed, then pulls; trimmed packets, sprayed.",
    .params  = ndp_params, .param_count = GW_ARRAY_LEN(ndp_params),
    .source  = "Handley et al., SIGCOMM 2017",
};
