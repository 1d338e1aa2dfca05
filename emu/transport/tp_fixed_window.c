/*
 * tp_fixed_window - packets under a window that never changes: an oracle for window-limited flows
 *
 * A flow may have `window` bytes under way; nothing else holds it back, neither loss nor delay. Each
 * packet is acknowledged by itself, with all that came before it in order. A packet is taken for
 * lost when one that was sent later has been acknowledged (paths keep order), else after a timeout
 * of srtt + 4 rttvar, at least `rto_min`, doubling while nothing comes back; it is sent again within
 * the same window. So goodput is window / RTT, the rate of the narrowest link at most, times 1 - p
 * under a loss of p; that makes it the oracle of other transports' windows, and the model of systems
 * that bound outstanding requests (parameter servers, RDMA reads). Reliable under any loss.
 *
 * Headers in captures are UDP and 12 bytes of our own: number, cumulative number, length, kind.
 *
 * Left out: congestion control, on purpose; connection set-up; delayed acknowledgements.
 */
#include <gradwire/plugin.h>
#include <gradwire/alg/pktwin.h>
#include <gradwire/alg/segments.h>

#define FW_OWN_BYTES   12u
#define FW_HEAD_BYTES  (GW_ETH_BYTES + 20u + 8u + FW_OWN_BYTES)
#define FW_BACKOFF_MAX 8u

struct fw_hdr {                  /* the transport's 32 bytes of a packet                        */
    uint64_t stamp_ps;           /* data: when it left; its ACK brings that back                */
    uint64_t cum;                /* ACK: all numbers below have come                            */
    uint32_t number;
    uint16_t len;                /* payload                                                     */
};
_Static_assert(sizeof(struct fw_hdr) <= sizeof(((struct gw_pkt *)0)->tp), "32 bytes per packet");

struct fw_conf {
    uint64_t window_bytes, payload_bytes, rto_min_ps;
};

struct fw_tx {
    struct gw_pw_tx win;
    struct gw_rtt rtt;
    uint64_t progress_ps;
    uint32_t mss;
    bool     closed;
    struct gw_timer timer;
    const struct fw_conf *conf;
};

struct fw_rx {
    struct gw_pw_rx win;
};

static inline struct fw_hdr *fw_hdr(struct gw_pkt *p)
{
    return (struct fw_hdr *)(void *)p->tp;
}

static uint32_t fw_mss(const struct fw_conf *c, uint32_t mtu_bytes)
{
    return gw_seg_payload(c->payload_bytes, FW_HEAD_BYTES, mtu_bytes);
}

/* ---- the sender ------------------------------------------------------------------------------ */

static uint64_t fw_rto(const struct fw_tx *t)
{
    return gw_rtt_timeout(&t->rtt, t->conf->rto_min_ps);
}

static bool fw_send(struct gw_tx *tx, struct fw_tx *t, uint64_t now)
{
    uint64_t number, left = tx->written_bytes - t->win.seq;
    struct gw_pw_pkt *k;
    struct gw_pkt *p;

    if (!gw_pw_reserve(&t->win, tx->host->resize) || !(p = tx->host->pkt_alloc(tx->net)))
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
    *fw_hdr(p) = (struct fw_hdr){ .stamp_ps = now, .number = (uint32_t)number,
                                  .len = (uint16_t)k->len };
    p->len_bytes = FW_HEAD_BYTES + k->len;
    tx->at_bytes = k->seq;
    tx->host->emit_tx(tx, p, now);
    return true;
}

/* The next packet's payload; 0: nothing to send. */
static uint64_t fw_next_len(const struct gw_tx *tx, const struct fw_tx *t)
{
    uint64_t left = tx->written_bytes - t->win.seq;

    if (t->win.lost_pkts)
        return gw_pw_at(&t->win, t->win.lost_head)->len;
    return left < t->mss ? left : t->mss;
}

/* Sends what window and NIC allow; one packet always fits. */
static void fw_output(struct gw_tx *tx, struct fw_tx *t, uint64_t now)
{
    uint64_t n;

    while ((n = fw_next_len(tx, t)) != 0 &&
           (t->win.out_bytes + n <= t->conf->window_bytes || !t->win.out_pkts) &&
           tx->host->nic_room(tx, now) && fw_send(tx, t, now))
        ;
    if (!t->timer.armed && t->win.out_pkts)
        tx->host->timer_set(tx->net, &t->timer, gw_later(now, fw_rto(t)));
}

static bool fw_try_close(struct gw_tx *tx, struct fw_tx *t, uint64_t now)
{
    if (!tx->closing || t->closed || t->win.una != t->win.nxt || t->win.seq != tx->written_bytes)
        return false;
    t->closed = true;
    tx->host->timer_stop(tx->net, &t->timer);
    tx->host->tx_closed(tx, now);
    return true;
}

static void fw_tx_write(struct gw_tx *tx, uint64_t now)
{
    struct fw_tx *t = tx->priv;

    if (fw_try_close(tx, t, now))
        return;
    if (!t->win.out_pkts)
        t->progress_ps = now;
    fw_output(tx, t, now);
}

static void fw_tx_room(struct gw_tx *tx, uint64_t now)
{
    fw_output(tx, tx->priv, now);
}

/* What was sent before @stamp_ps and is still out is lost: a later one has arrived. */
static void fw_overtaken(struct fw_tx *t, uint64_t number, uint64_t stamp_ps)
{
    if (number == t->win.una && !t->win.lost_pkts)
        return;
    for (uint64_t i = t->win.una; i < t->win.nxt; i++) {
        const struct gw_pw_pkt *k = gw_pw_at(&t->win, i);

        if (k->state == GW_PW_OUT && k->sent_ps < stamp_ps)
            gw_pw_lose(&t->win, i);
        if (i > number && !k->again)                /* never sent again, and after it           */
            break;
    }
}

static void fw_tx_packet(struct gw_tx *tx, struct gw_pkt *p, uint64_t now)
{
    struct fw_tx *t = tx->priv;
    const struct fw_hdr h = *fw_hdr(p);
    uint64_t number = gw_pw_number(t->win.una, h.number), una = t->win.una;
    bool good = !(p->flags & (GW_PKT_CORRUPT | GW_PKT_TRIMMED));

    tx->host->pkt_free(tx->net, p);
    if (!good)
        return;
    tx->stats.acks_in++;
    t->progress_ps = now;
    t->rtt.backoff = 0;
    gw_rtt_sample(&t->rtt, now - h.stamp_ps);
    fw_overtaken(t, number, h.stamp_ps);
    gw_pw_ack(&t->win, number);
    gw_pw_ack_below(&t->win, h.cum);
    if (t->win.una != una) {
        tx->host->tx_acked(tx, gw_pw_acked_to(&t->win), now);
        if (tx->closing && fw_try_close(tx, t, now))
            return;
    }
    fw_output(tx, t, now);
}

static void fw_tx_fire(void *owner, uint64_t now)
{
    struct gw_tx *tx = owner;
    struct fw_tx *t = tx->priv;
    uint64_t rto = fw_rto(t);

    if (!t->win.out_pkts)
        return;
    if (now >= rto && gw_pw_expire(&t->win, now - rto)) {
        tx->stats.timeouts++;
        if (now - t->progress_ps >= rto)
            t->rtt.backoff += t->rtt.backoff < FW_BACKOFF_MAX;
        fw_output(tx, t, now);
    }
    if (t->win.out_pkts)
        tx->host->timer_set(tx->net, &t->timer, gw_later(now, fw_rto(t) / 2));
}

static enum gw_status fw_tx_init(struct gw_tx *tx, uint64_t now, struct gw_error *err)
{
    struct fw_tx *t = tx->priv;

    t->conf = tx->conf;
    t->mss = fw_mss(t->conf, tx->mtu_bytes);
    if (!t->mss || t->mss > UINT16_MAX)
        return gw_fail(err, GW_RANGE, "flow %u: an MTU of %u bytes does not fit; %u to 65535 is "
                       "right", tx->flow, tx->mtu_bytes, FW_HEAD_BYTES - GW_ETH_BYTES + 1);
    gw_rtt_init(&t->rtt, tx->base_rtt_ps);
    t->progress_ps = now;
    t->timer = (struct gw_timer){ .fire = fw_tx_fire, .owner = tx, .comp = tx->comp };
    return GW_OK;
}

static void fw_tx_fini(struct gw_tx *tx)
{
    struct fw_tx *t = tx->priv;

    tx->host->timer_stop(tx->net, &t->timer);
    tx->host->release(t->win.ring);
    t->win.ring = NULL;
}

/* ---- the receiver ---------------------------------------------------------------------------- */

static void fw_rx_packet(struct gw_rx *rx, struct gw_pkt *p, uint64_t now)
{
    struct fw_rx *r = rx->priv;
    struct fw_hdr *h = fw_hdr(p);
    uint64_t bytes = r->win.bytes;

    if (p->flags & (GW_PKT_CORRUPT | GW_PKT_TRIMMED)) {
        rx->host->pkt_free(rx->net, p);
        return;
    }
    gw_pw_rx_take(&r->win, gw_pw_number(r->win.cum, h->number), h->len, rx->host->resize);
    h->cum = r->win.cum;
    p->len_bytes = FW_HEAD_BYTES;
    p->flags = GW_PKT_REVERSE;
    p->ecn = GW_ECN_NOT_ECT;
    rx->host->emit_rx(rx, p, now);
    if (r->win.bytes != bytes)
        rx->host->rx_deliver(rx, r->win.bytes, now);
}

static enum gw_status fw_rx_init(struct gw_rx *rx, uint64_t now, struct gw_error *err)
{
    (void)rx;
    (void)now;
    (void)err;
    return GW_OK;
}

static void fw_rx_fini(struct gw_rx *rx)
{
    struct fw_rx *r = rx->priv;

    rx->host->release(r->win.ring);
    r->win.ring = NULL;
}

/* ---- headers --------------------------------------------------------------------------------- */

static uint32_t fw_encode(const struct gw_pkt *p, const void *ext, const struct gw_flow_addr *a,
                          uint8_t *buf, uint8_t *ip_proto)
{
    const struct fw_hdr *h = (const struct fw_hdr *)(const void *)p->tp;
    uint8_t *b = buf;

    (void)ext;
    b = gw_put_udp(p, a, b);
    b = gw_put32(b, h->number);
    b = gw_put32(b, (uint32_t)h->cum);
    b = gw_put16(b, h->len);
    b = gw_put16(b, p->flags & GW_PKT_REVERSE);
    *ip_proto = 17;
    return (uint32_t)(b - buf);
}

static void fw_describe(const struct gw_pkt *p, struct gw_pkt_facts *f)
{
    const struct fw_hdr *h = (const struct fw_hdr *)(const void *)p->tp;

    gw_pkt_numbered(f, !(p->flags & GW_PKT_REVERSE), h->number, h->len);
}

static uint64_t fw_wire_bytes(const void *conf, uint64_t payload, uint32_t mtu_bytes,
                              uint64_t *frames)
{
    return gw_seg_wire_bytes(payload, fw_mss(conf, mtu_bytes), FW_HEAD_BYTES, frames);
}

static const struct gw_transport_ops fw_ops = {
    .level        = GW_TP_PACKET,
    .conf_bytes   = sizeof(struct fw_conf),
    .tx_bytes     = sizeof(struct fw_tx),
    .rx_bytes     = sizeof(struct fw_rx),
    .header_bytes = FW_HEAD_BYTES,
    .tx_init      = fw_tx_init,
    .rx_init      = fw_rx_init,
    .tx_fini      = fw_tx_fini,
    .rx_fini      = fw_rx_fini,
    .tx_write     = fw_tx_write,
    .tx_packet    = fw_tx_packet,
    .rx_packet    = fw_rx_packet,
    .tx_room      = fw_tx_room,
    .encode       = fw_encode,
    .wire_bytes   = fw_wire_bytes,
    .describe     = fw_describe,
};

static const struct gw_param fw_params[] = {
    { "window", GW_P_BYTES, offsetof(struct fw_conf, window_bytes), "64KiB", "1", NULL,
      "Payload that may be under way; one packet always may." },
    { "payload", GW_P_BYTES, offsetof(struct fw_conf, payload_bytes), "0", "0", "65495",
      "Payload of a full packet; 0: the path's MTU less 40 bytes." },
    { "rto_min", GW_P_TIME, offsetof(struct fw_conf, rto_min_ps), "1ms", "1us", "60s",
      "Least time until a packet without an answer is lost." },
};

GW_PLUGIN(gw_transport_fixed_window) = {
    GW_PLUGIN_HEAD(GW_KIND_TRANSPORT, fw_ops),
    .name    = "fixed-window",
    .summary = "Packets under a constant window, no congestion control: window / RTT.",
    .params  = fw_params, .param_count = GW_ARRAY_LEN(fw_params),
};
