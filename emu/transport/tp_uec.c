/*
 * tp_uec - transport of the Ultra Ethernet class: sprayed packets, a sender's window, trimming
 *
 * What it takes from public text (Ultra Ethernet Specification 1.0, 2025; Bonato et al., "SMaRTT-REPS:
 * Sender-based Marked Rapidly-adapting Trimmed & Timed Transport with Recycled Entropies", 2024,
 * arXiv 2404.01630): every packet has its own entropy and its own acknowledgement, which echoes its
 * ECN mark; a switch trims instead of dropping, and the receiver answers a bare header by a NACK, at
 * once; the sender's window (network signalled congestion control) follows marks and delay:
 *
 *   no mark, delay below target     rises by alpha (target - delay) / delay per byte acknowledged:
 *                                   the more the emptier the path
 *   no mark, delay above target     rises by one packet a round trip (fair increase)
 *   mark, delay below target        stays: the queue is on its way out
 *   mark, delay above target        falls by gamma (delay - target) / delay, at most once a round
 *                                   trip
 *   NACK                            falls by the trimmed packet; if within a round trip more is
 *                                   trimmed than arrives, the window becomes what arrived (quick
 *                                   adapt), once a round trip
 *
 * Delay is the round trip above that of the idle path, averaged over acknowledgements. The window
 * starts at `window` round trips' worth of bytes, as the specification's senders start at line rate.
 * Trimmed packets go out first. With credit (`credit: yes`, receiver-credit congestion control) the
 * receiver also shares its link out among its senders: each ACK grants what the sender may have under
 * way, the receiver's bandwidth-delay product over the flows that have something under way.
 *
 * Nothing hangs: while something is out a timer runs; packets without an answer for srtt + 4 rttvar
 * (at least `rto_min`, doubling in silence) are lost.
 *
 * Headers in captures are UDP and 16 bytes of our own, not UET's PDS and SES headers.
 *
 * Left out: ordered delivery modes and the semantic sublayer, entropies that are remembered as good
 * or bad (each packet takes the next way), inference of loss from gaps without trimming (the timer
 * finds it), packet delivery contexts and their set-up, encryption, link-level retry.
 */
#include <gradwire/plugin.h>
#include <gradwire/alg/pktwin.h>
#include <gradwire/alg/segments.h>

#define UEC_OWN_BYTES   16u
#define UEC_HEAD_BYTES  (GW_ETH_BYTES + 20u + 8u + UEC_OWN_BYTES)
#define UEC_CTRL_BYTES  64u
#define UEC_BACKOFF_MAX 8u

enum uec_kind { UEC_DATA, UEC_ACK, UEC_NACK };

struct uec_hdr {                 /* the transport's 32 bytes of a packet                        */
    uint64_t stamp_ps;           /* data: when it left; its answer brings that back             */
    uint64_t cum;                /* answer: all numbers below have come                         */
    uint32_t number;
    uint32_t grant;              /* answer: bytes that may be under way, 0: no word on it       */
    uint16_t len;                /* payload                                                     */
    uint8_t  kind;               /* enum uec_kind                                               */
    bool     ce;                 /* answer: the packet came marked                              */
};
_Static_assert(sizeof(struct uec_hdr) <= sizeof(((struct gw_pkt *)0)->tp), "32 bytes per packet");

struct uec_conf {
    uint64_t payload_bytes, rto_min_ps, target_ps;
    double   window, alpha, gamma;
    bool     credit;
};

struct uec_tx {
    struct gw_pw_tx win;
    uint64_t cwnd_bytes, cwnd_max, grant_bytes;
    uint64_t target_ps, delay_ps;        /* above the idle path; delay: average                 */
    struct gw_rtt rtt;
    uint64_t progress_ps;
    uint64_t cut_ps, adapt_ps;           /* no further cut, quick adapt before                  */
    uint64_t round_ps, round_acked, round_lost;
    uint32_t mss;
    double   carry;                      /* of increases, below a byte                          */
    bool     closed;
    struct gw_timer timer;
    const struct uec_conf *conf;
};

struct uec_rx {
    struct gw_pw_rx win;
    uint64_t last_ps;
    bool     active;                     /* counts among the host's                             */
    uint64_t bdp_bytes;
    struct gw_timer timer;               /* looks whether the flow has fallen silent            */
    const struct uec_conf *conf;
};

struct uec_host {                /* shared by all receiving halves at a host                    */
    uint32_t active;             /* flows that sent something lately                            */
};

static inline struct uec_hdr *uec_hdr(struct gw_pkt *p)
{
    return (struct uec_hdr *)(void *)p->tp;
}

static uint32_t uec_mss(const struct uec_conf *c, uint32_t mtu_bytes)
{
    return gw_seg_payload(c->payload_bytes, UEC_HEAD_BYTES, mtu_bytes);
}

/* ---- the sender ------------------------------------------------------------------------------ */

static uint64_t uec_rto(const struct uec_tx *t)
{
    return gw_rtt_timeout(&t->rtt, t->conf->rto_min_ps);
}

static uint64_t uec_window(const struct uec_tx *t)
{
    return t->grant_bytes && t->grant_bytes < t->cwnd_bytes ? t->grant_bytes : t->cwnd_bytes;
}

static bool uec_send(struct gw_tx *tx, struct uec_tx *t, uint64_t now)
{
    uint64_t number, left = tx->written_bytes - t->win.seq;
    struct gw_pw_pkt *k;
    struct gw_pkt *p;

    if (GW_UNLIKELY(!gw_pw_reserve(&t->win, tx->host->resize)) ||
        !(p = tx->host->pkt_alloc(tx->net)))
        return false;
    k = gw_pw_again(&t->win, now, &number);
    if (k) {
        p->flags = GW_PKT_RETRANS;
        tx->stats.retrans_pkts++;
        tx->stats.retrans_bytes += k->len;
    } else {
        number = t->win.nxt;
        k = gw_pw_new(&t->win, left < t->mss ? (uint32_t)left : t->mss, now);
    }
    tx->stats.sent_pkts++;
    tx->stats.sent_bytes += k->len;
    *uec_hdr(p) = (struct uec_hdr){ .stamp_ps = now, .number = (uint32_t)number,
                                    .len = (uint16_t)k->len, .kind = UEC_DATA };
    p->flags |= GW_PKT_TRIMMABLE;
    p->ecn = GW_ECN_ECT0;
    p->len_bytes = UEC_HEAD_BYTES + k->len;
    tx->at_bytes = k->seq;
    tx->host->emit_tx(tx, p, now);
    return true;
}

static void uec_output(struct gw_tx *tx, struct uec_tx *t, uint64_t now)
{
    while (t->win.lost_pkts || t->win.seq != tx->written_bytes) {
        if (t->win.out_pkts && t->win.out_bytes + t->mss > uec_window(t))
            break;
        if (!tx->host->nic_room(tx, now) || !uec_send(tx, t, now))
            break;
    }
    if (GW_UNLIKELY(!t->timer.armed) && t->win.out_pkts)
        tx->host->timer_set(tx->net, &t->timer, gw_later(now, uec_rto(t)));
}

static void uec_bound(struct uec_tx *t)
{
    if (t->cwnd_bytes < t->mss)
        t->cwnd_bytes = t->mss;
    if (t->cwnd_bytes > t->cwnd_max)
        t->cwnd_bytes = t->cwnd_max;
}

/* The four quadrants of mark and delay. */
static void uec_steer(struct uec_tx *t, uint32_t acked, bool ce, uint64_t delay, uint64_t now)
{
    double more = 0;

    t->delay_ps += delay / 8 - t->delay_ps / 8;
    if (!ce && delay < t->target_ps)
        more = t->conf->alpha * (double)acked * (double)(t->target_ps - delay) /
               (double)t->target_ps;
    else if (!ce)
        more = (double)acked * t->mss / (double)t->cwnd_bytes;
    else if (t->delay_ps > t->target_ps && now >= t->cut_ps) {
        double cut = t->conf->gamma * (double)(t->delay_ps - t->target_ps) / (double)t->delay_ps;

        t->cwnd_bytes -= (uint64_t)(cut * (double)t->cwnd_bytes);
        t->cut_ps = gw_later(now, t->rtt.smooth_ps);
    }
    t->carry += more;
    t->cwnd_bytes += (uint64_t)t->carry;
    t->carry -= (double)(uint64_t)t->carry;
    uec_bound(t);
}

/* A packet was trimmed; by much trimming the window becomes what has arrived. */
static void uec_trimmed(struct uec_tx *t, uint32_t bytes, uint64_t now)
{
    t->round_lost += bytes;
    t->cwnd_bytes -= bytes < t->cwnd_bytes ? bytes : t->cwnd_bytes;
    if (now >= gw_later(t->round_ps, t->rtt.smooth_ps) && t->round_lost > t->round_acked &&
        now >= t->adapt_ps) {
        t->cwnd_bytes = t->round_acked;
        t->adapt_ps = gw_later(now, t->rtt.smooth_ps);
    }
    uec_bound(t);
}

static void uec_round(struct uec_tx *t, uint64_t now)
{
    if (now < gw_later(t->round_ps, 2 * t->rtt.smooth_ps))
        return;
    t->round_ps = now;
    t->round_acked = t->round_lost = 0;
}

static bool uec_try_close(struct gw_tx *tx, struct uec_tx *t, uint64_t now)
{
    if (!tx->closing || t->closed || t->win.una != t->win.nxt || t->win.seq != tx->written_bytes)
        return false;
    t->closed = true;
    tx->host->timer_stop(tx->net, &t->timer);
    tx->host->tx_closed(tx, now);
    return true;
}

static void uec_tx_write(struct gw_tx *tx, uint64_t now)
{
    struct uec_tx *t = tx->priv;

    if (uec_try_close(tx, t, now))
        return;
    if (!t->win.out_pkts)
        t->progress_ps = now;
    uec_output(tx, t, now);
}

static void uec_tx_room(struct gw_tx *tx, uint64_t now)
{
    uec_output(tx, tx->priv, now);
}

/* Packet @number, sent at @stamp_ps, has lost its payload. */
static void uec_nacked(struct uec_tx *t, uint64_t number, uint64_t stamp_ps, uint64_t now)
{
    if (gw_pw_sent_at(&t->win, number, stamp_ps) && gw_pw_lose(&t->win, number))
        uec_trimmed(t, gw_pw_at(&t->win, number)->len, now);
}

static void uec_tx_packet(struct gw_tx *tx, struct gw_pkt *p, uint64_t now)
{
    struct uec_tx *t = tx->priv;
    const struct uec_hdr h = *uec_hdr(p);
    uint64_t number = gw_pw_number(t->win.una, h.number), una = t->win.una;
    uint64_t rtt = now - h.stamp_ps;
    bool good = !(p->flags & GW_PKT_CORRUPT), back = p->flags & GW_PKT_TRIMMED;
    uint32_t bytes;

    tx->host->pkt_free(tx->net, p);
    if (GW_UNLIKELY(!good))
        return;
    if (GW_UNLIKELY(back)) {                        /* its own header, from a switch            */
        t->progress_ps = now;
        uec_nacked(t, number, h.stamp_ps, now);
        uec_output(tx, t, now);
        return;
    }
    tx->stats.acks_in++;
    tx->stats.ce_in += h.ce;
    t->progress_ps = now;
    t->rtt.backoff = 0;
    gw_rtt_sample(&t->rtt, rtt);
    if (h.grant)
        t->grant_bytes = h.grant;
    uec_round(t, now);
    if (h.kind == UEC_NACK) {
        uec_nacked(t, number, h.stamp_ps, now);
    } else {
        bytes = gw_pw_ack(&t->win, number);
        t->round_acked += bytes;
        uec_steer(t, bytes, h.ce, rtt > tx->base_rtt_ps ? rtt - tx->base_rtt_ps : 0, now);
    }
    gw_pw_ack_below(&t->win, h.cum);
    if (t->win.una != una) {
        tx->host->tx_acked(tx, gw_pw_acked_to(&t->win), now);
        if (GW_UNLIKELY(tx->closing) && uec_try_close(tx, t, now))
            return;
    }
    uec_output(tx, t, now);
}

static void uec_tx_fire(void *owner, uint64_t now)
{
    struct gw_tx *tx = owner;
    struct uec_tx *t = tx->priv;
    uint64_t rto = uec_rto(t);

    if (!t->win.out_pkts && !t->win.lost_pkts)
        return;
    if (now >= rto && gw_pw_expire(&t->win, now - rto)) {
        tx->stats.timeouts++;
        if (now - t->progress_ps >= rto) {
            t->rtt.backoff += t->rtt.backoff < UEC_BACKOFF_MAX;
            t->cwnd_bytes = t->mss;                 /* nothing comes back                       */
        }
    }
    uec_output(tx, t, now);
    if (t->win.out_pkts || t->win.lost_pkts)
        tx->host->timer_set(tx->net, &t->timer, gw_later(now, uec_rto(t) / 2));
}

static enum gw_status uec_tx_init(struct gw_tx *tx, uint64_t now, struct gw_error *err)
{
    struct uec_tx *t = tx->priv;
    uint64_t bdp;

    t->conf = tx->conf;
    t->mss = uec_mss(t->conf, tx->mtu_bytes);
    if (!t->mss || t->mss > UINT16_MAX)
        return gw_fail(err, GW_RANGE, "flow %u: an MTU of %u bytes does not fit; %u to 65535 is "
                       "right", tx->flow, tx->mtu_bytes, UEC_HEAD_BYTES - GW_ETH_BYTES + 1);
    bdp = tx->nic_rate_bps ? gw_mul_div(tx->base_rtt_ps, tx->nic_rate_bps, 8 * GW_PS_PER_S)
                           : 64 * (uint64_t)t->mss;
    bdp = bdp < t->mss ? t->mss : bdp;
    t->cwnd_bytes = (uint64_t)(t->conf->window * (double)bdp) + t->mss;
    t->cwnd_max = 2 * bdp + 8 * (uint64_t)t->mss;
    if (t->cwnd_max < t->cwnd_bytes)
        t->cwnd_max = t->cwnd_bytes;
    t->target_ps = t->conf->target_ps ? t->conf->target_ps : tx->base_rtt_ps / 2 + 1;
    gw_rtt_init(&t->rtt, tx->base_rtt_ps);
    t->progress_ps = t->round_ps = now;
    t->timer = (struct gw_timer){ .fire = uec_tx_fire, .owner = tx, .comp = tx->comp };
    return GW_OK;
}

static void uec_tx_fini(struct gw_tx *tx)
{
    struct uec_tx *t = tx->priv;

    tx->host->timer_stop(tx->net, &t->timer);
    tx->host->release(t->win.ring);
    t->win.ring = NULL;
}

/* ---- the receiver ---------------------------------------------------------------------------- */

/* Bytes that the flow may have under way: its part of the link. */
static uint32_t uec_grant(struct gw_rx *rx, struct uec_rx *r, uint64_t now)
{
    struct uec_host *s = rx->shared;
    uint64_t part, least = 2 * (uint64_t)uec_mss(r->conf, rx->mtu_bytes);

    if (!r->conf->credit || !r->bdp_bytes)
        return 0;
    r->last_ps = now;
    if (!r->active) {
        r->active = true;
        s->active++;
        rx->host->timer_set(rx->net, &r->timer, gw_later(now, 4 * rx->base_rtt_ps + 1));
    }
    part = r->bdp_bytes / s->active;
    part = part < least ? least : part;
    return part < UINT32_MAX ? (uint32_t)part : UINT32_MAX;
}

static void uec_rx_fire(void *owner, uint64_t now)
{
    struct gw_rx *rx = owner;
    struct uec_rx *r = rx->priv;
    struct uec_host *s = rx->shared;
    uint64_t silent = gw_later(r->last_ps, 4 * rx->base_rtt_ps + 1);

    if (now < silent) {
        rx->host->timer_set(rx->net, &r->timer, silent);
        return;
    }
    r->active = false;
    s->active--;
}

static void uec_rx_packet(struct gw_rx *rx, struct gw_pkt *p, uint64_t now)
{
    struct uec_rx *r = rx->priv;
    struct uec_hdr *h = uec_hdr(p);
    uint64_t number = gw_pw_number(r->win.cum, h->number), bytes = r->win.bytes;
    bool trimmed = p->flags & GW_PKT_TRIMMED;

    if (GW_UNLIKELY(p->flags & GW_PKT_CORRUPT)) {
        rx->host->pkt_free(rx->net, p);
        return;
    }
    if (!trimmed)
        gw_pw_rx_take(&r->win, number, h->len, rx->host->resize);
    h->kind = trimmed && number >= r->win.cum ? UEC_NACK : UEC_ACK;
    h->ce = p->ecn == GW_ECN_CE;
    h->cum = r->win.cum;
    h->grant = uec_grant(rx, r, now);
    p->len_bytes = UEC_CTRL_BYTES;
    p->orig_len_bytes = 0;
    p->flags = GW_PKT_REVERSE;
    p->ecn = GW_ECN_NOT_ECT;
    rx->host->emit_rx(rx, p, now);
    if (r->win.bytes != bytes)
        rx->host->rx_deliver(rx, r->win.bytes, now);
}

static enum gw_status uec_rx_init(struct gw_rx *rx, uint64_t now, struct gw_error *err)
{
    struct uec_rx *r = rx->priv;

    (void)now;
    (void)err;
    r->conf = rx->conf;
    if (rx->nic_rate_bps)
        r->bdp_bytes = gw_mul_div(rx->base_rtt_ps, rx->nic_rate_bps, 8 * GW_PS_PER_S) +
                       2 * (uint64_t)uec_mss(r->conf, rx->mtu_bytes);
    r->timer = (struct gw_timer){ .fire = uec_rx_fire, .owner = rx, .comp = rx->comp };
    return GW_OK;
}

static void uec_rx_fini(struct gw_rx *rx)
{
    struct uec_rx *r = rx->priv;

    rx->host->timer_stop(rx->net, &r->timer);
    if (r->active)
        ((struct uec_host *)rx->shared)->active--;
    r->active = false;
    rx->host->release(r->win.ring);
    r->win.ring = NULL;
}

/* ---- headers --------------------------------------------------------------------------------- */

static uint32_t uec_encode(const struct gw_pkt *p, const void *ext, const struct gw_flow_addr *a,
                           uint8_t *buf, uint8_t *ip_proto)
{
    const struct uec_hdr *h = (const struct uec_hdr *)(const void *)p->tp;
    uint8_t *b = buf;

    (void)ext;
    b = gw_put_udp(p, a, b);
    *b++ = h->kind;
    *b++ = (uint8_t)(h->ce | (p->flags & GW_PKT_TRIMMED));
    b = gw_put16(b, h->len);
    b = gw_put32(b, h->number);
    b = gw_put32(b, (uint32_t)h->cum);
    b = gw_put32(b, h->grant);
    *ip_proto = 17;
    return (uint32_t)(b - buf);
}

static void uec_describe(const struct gw_pkt *p, struct gw_pkt_facts *f)
{
    const struct uec_hdr *h = (const struct uec_hdr *)(const void *)p->tp;

    gw_pkt_numbered(f, h->kind == UEC_DATA, h->number, h->len);
}

static uint64_t uec_wire_bytes(const void *conf, uint64_t payload, uint32_t mtu_bytes,
                               uint64_t *frames)
{
    return gw_seg_wire_bytes(payload, uec_mss(conf, mtu_bytes), UEC_HEAD_BYTES, frames);
}

static const struct gw_transport_ops uec_ops = {
    .level        = GW_TP_PACKET,
    .conf_bytes   = sizeof(struct uec_conf),
    .tx_bytes     = sizeof(struct uec_tx),
    .rx_bytes     = sizeof(struct uec_rx),
    .shared_bytes = sizeof(struct uec_host),
    .header_bytes = UEC_HEAD_BYTES,
    .sprays       = true,
    .tx_init      = uec_tx_init,
    .rx_init      = uec_rx_init,
    .tx_fini      = uec_tx_fini,
    .rx_fini      = uec_rx_fini,
    .tx_write     = uec_tx_write,
    .tx_packet    = uec_tx_packet,
    .rx_packet    = uec_rx_packet,
    .tx_room      = uec_tx_room,
    .encode       = uec_encode,
    .wire_bytes   = uec_wire_bytes,
    .describe     = uec_describe,
    .fifo_advice  = "nothing in the network trims packets, so each loss is a timeout: "
                    "`qdisc: [{dev: switches, kind: ndp}]` does",
};

static const struct gw_param uec_params[] = {
    { "window", GW_P_F64, offsetof(struct uec_conf, window), "1.25", "0", "100",
      "Window at the start, in bandwidth-delay products of the idle path." },
    { "target", GW_P_TIME, offsetof(struct uec_conf, target_ps), "0", "0", "1s",
      "Queueing delay that is aimed at; 0: half the round trip of the idle path." },
    { "alpha", GW_P_F64, offsetof(struct uec_conf, alpha), "0.25", "0", "10",
      "How fast the window rises on an empty path, per byte acknowledged." },
    { "gamma", GW_P_F64, offsetof(struct uec_conf, gamma), "0.8", "0", "1",
      "How far it falls when packets are marked and the delay is above its target." },
    { "credit", GW_P_BOOL, offsetof(struct uec_conf, credit), "no", NULL, NULL,
      "The receiver shares its link out among its senders." },
    { "payload", GW_P_BYTES, offsetof(struct uec_conf, payload_bytes), "0", "0", "65491",
      "Payload of a full packet; 0: the path's MTU less 44 bytes." },
    { "rto_min", GW_P_TIME, offsetof(struct uec_conf, rto_min_ps), "1ms", "1us", "60s",
      "Least time until a packet without an answer is lost." },
};

GW_PLUGIN(gw_transport_uec) = {
    GW_PLUGIN_HEAD(GW_KIND_TRANSPORT, uec_ops),
    .name    = "uec",
    .summary = "Ultra Ethernet class: sprayed, trimmed, the window by marks and delay.",
    .params  = uec_params, .param_count = GW_ARRAY_LEN(uec_params),
    .source  = "Ultra Ethernet Specification 1.0; Bonato et al., 2024 (arXiv 2404.01630)",
};
