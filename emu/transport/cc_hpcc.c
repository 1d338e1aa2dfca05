/*
 * cc_hpcc - HPCC: high precision congestion control by in-band telemetry
 *
 * Algorithm 1 of Li et al. ("HPCC", SIGCOMM 2019). Every ACK brings what each switch port on the
 * way saw when the packet left it. Normalised bytes in flight of a hop are queue / (rate x T) +
 * throughput / rate; the largest is averaged over a round trip T (that of the idle path) and
 * compared with eta. Above it, or after max_stage steps, the window is the reference window over
 * (U / eta) plus w_ai; else the reference plus w_ai. The reference moves once a round trip, by the
 * first ACK of what was sent after the last move. The pace is window / T.
 *
 * w_ai is rate x T x (1 - eta) / flows, as in the paper's section 3.3. Telemetry takes 44 bytes of
 * each packet (the transport's). Left out: fixed-point arithmetic of cards, queue lengths in units
 * of 80 bytes, switches without telemetry (they are not seen).
 */
#include <gradwire/plugin.h>

#define HPCC_LINE_BPS UINT64_C(400000000000)       /* of a card that is infinitely fast          */

struct hpcc_conf {
    double   eta;
    uint32_t max_stage, flows;
    uint64_t w_ai_bytes;          /* 0: from flows                                              */
};

struct hpcc_priv {
    struct gw_telemetry last;
    double   u;                   /* U, averaged                                                */
    double   window, reference, w_ai, most;        /* bytes                                      */
    uint64_t t_ps;                /* T                                                          */
    uint64_t update_seq;          /* the reference moves when this is acknowledged              */
    uint32_t stage;
};

static void hpcc_set(struct gw_cc *cc, struct hpcc_priv *h)
{
    double bps;

    if (h->window > h->most)
        h->window = h->most;
    if (h->window < h->w_ai)
        h->window = h->w_ai;
    bps = h->window * 8 * (double)GW_PS_PER_S / (double)h->t_ps;
    cc->cwnd_bytes = h->window < cc->mss_bytes ? cc->mss_bytes : (uint64_t)h->window;
    cc->pacing_bps = bps < 1 ? 1 : (uint64_t)bps;
}

static void hpcc_init(struct gw_cc *cc, uint64_t now_ps)
{
    const struct hpcc_conf *c = cc->conf;
    struct hpcc_priv *h = cc->priv;
    uint64_t line = cc->nic_rate_bps ? cc->nic_rate_bps : HPCC_LINE_BPS;

    (void)now_ps;
    h->t_ps = cc->base_rtt_ps ? cc->base_rtt_ps : GW_PS_PER_US;
    h->most = (double)gw_mul_div(line, h->t_ps, 8) / (double)GW_PS_PER_S;
    if (h->most < cc->mss_bytes)
        h->most = cc->mss_bytes;
    h->w_ai = c->w_ai_bytes ? (double)c->w_ai_bytes : h->most * (1 - c->eta) / c->flows;
    h->window = h->reference = h->most;
    h->u = 1;
    hpcc_set(cc, h);
}

/* MeasureInflight(): the busiest hop since the last ACK, averaged. */
static void hpcc_measure(struct hpcc_priv *h, const struct gw_telemetry *t)
{
    double u = 0, tau = (double)h->t_ps;

    if (t->count != h->last.count || !t->count) {
        h->last = *t;                               /* the first one, or another way             */
        return;
    }
    for (uint32_t i = 0; i < t->count; i++) {
        const struct gw_telemetry_hop *n = &t->hop[i], *o = &h->last.hop[i];
        double dt = (double)n->now_ps - (double)o->now_ps, sent, least, hop;

        if (dt <= 0 || !n->rate_bps)
            continue;
        sent = (double)(n->tx_bytes - o->tx_bytes) * 8 * (double)GW_PS_PER_S / dt;
        least = (double)(n->queue_bytes < o->queue_bytes ? n->queue_bytes : o->queue_bytes);
        hop = (least * 8 * (double)GW_PS_PER_S / (double)h->t_ps + sent) / (double)n->rate_bps;
        if (hop > u) {
            u = hop;
            tau = dt;
        }
    }
    h->last = *t;
    if (tau > (double)h->t_ps)
        tau = (double)h->t_ps;
    tau /= (double)h->t_ps;
    h->u = (1 - tau) * h->u + tau * u;
}

/* ComputeWind() */
static void hpcc_window(const struct hpcc_conf *c, struct hpcc_priv *h, bool update)
{
    if (h->u >= c->eta || h->stage >= c->max_stage) {
        h->window = h->reference / (h->u / c->eta) + h->w_ai;
        if (update)
            h->stage = 0;
    } else {
        h->window = h->reference + h->w_ai;
        if (update)
            h->stage++;
    }
}

static void hpcc_on_ack(struct gw_cc *cc, const struct gw_cc_ack *ack)
{
    struct hpcc_priv *h = cc->priv;
    bool update = ack->snd_una > h->update_seq;

    if (!ack->telemetry)
        return;
    hpcc_measure(h, ack->telemetry);
    hpcc_window(cc->conf, h, update);
    hpcc_set(cc, h);
    if (update) {
        h->reference = h->window;
        h->update_seq = ack->snd_nxt;
    }
}

static void hpcc_on_loss(struct gw_cc *cc, const struct gw_cc_ack *ack, bool is_ecn)
{
    (void)cc;                                       /* the telemetry says what is needed         */
    (void)ack;
    (void)is_ecn;
}

static void hpcc_on_timeout(struct gw_cc *cc, const struct gw_cc_ack *ack)
{
    (void)cc;
    (void)ack;
}

static const struct gw_cc_ops hpcc_ops = {
    .priv_bytes = sizeof(struct hpcc_priv),
    .conf_bytes = sizeof(struct hpcc_conf),
    .init       = hpcc_init,
    .on_ack     = hpcc_on_ack,
    .on_loss    = hpcc_on_loss,
    .on_timeout = hpcc_on_timeout,
    .paces      = true,
    .telemetry  = true,
    .paced_at_start = true,
};

static const struct gw_param hpcc_params[] = {
    { "eta", GW_P_FRACTION, offsetof(struct hpcc_conf, eta), "95%", "50%", "99.9%",
      "Utilisation of links that is aimed at." },
    { "max_stage", GW_P_U32, offsetof(struct hpcc_conf, max_stage), "5", "0", "1000",
      "Round trips of additive increase before the rate is adjusted in any case." },
    { "hpcc_flows", GW_P_U32, offsetof(struct hpcc_conf, flows), "100", "1", "1000000",
      "Flows that a link should carry at once without a queue: w_ai is rate x T x (1 - eta) / N." },
    { "w_ai", GW_P_BYTES, offsetof(struct hpcc_conf, w_ai_bytes), "0", "0", "1GB",
      "Additive increase of the window; 0: from hpcc_flows." },
};

GW_PLUGIN(gw_cc_hpcc) = {
    GW_PLUGIN_HEAD(GW_KIND_CC, hpcc_ops),
    .name    = "hpcc",
    .summary = "Window and pace from what each switch on the way reports (telemetry).",
    .params  = hpcc_params, .param_count = GW_ARRAY_LEN(hpcc_params),
    .source  = "Li et al., SIGCOMM 2019",
};
