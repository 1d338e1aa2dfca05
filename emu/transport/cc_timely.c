/*
 * cc_timely - TIMELY: rates by the gradient of round trip times
 *
 * Algorithm 1 of Mittal et al. ("TIMELY", SIGCOMM 2015). Once per `segment` bytes acknowledged the
 * newest round trip time is looked at: below t_low the rate grows by rate_step, above t_high it is
 * cut by beta (1 - t_high / RTT), between them a falling or level RTT (smoothed difference over the
 * least RTT) lets it grow, by five steps after five such in a row, and a rising one cuts it by beta
 * x gradient (a gradient above 1 counts as 1). Starts at the card's speed. The thresholds are the paper's, made for a least RTT of
 * 20 us.
 * Left out: bursts of a whole segment at the card's speed (packets are paced one by one).
 */
#include <gradwire/plugin.h>

#define TIMELY_LINE_BPS UINT64_C(400000000000)     /* of a card that is infinitely fast          */
#define TIMELY_HAI_AFTER 5u

struct timely_conf {
    double   alpha, beta;
    uint64_t step_bps, min_bps, t_low_ps, t_high_ps, min_rtt_ps, segment_bytes;
};

struct timely_priv {
    uint64_t acked_bytes;         /* of the segment under way                                   */
    uint64_t last_rtt_ps;         /* 0: none yet                                                */
    double   diff_ps, rate_bps, line_bps;
    uint32_t falls;               /* in a row                                                   */
};

static void timely_set(struct gw_cc *cc, struct timely_priv *t)
{
    const struct timely_conf *c = cc->conf;

    if (t->rate_bps < (double)c->min_bps)
        t->rate_bps = (double)c->min_bps;
    if (t->rate_bps > t->line_bps)
        t->rate_bps = t->line_bps;
    cc->pacing_bps = (uint64_t)t->rate_bps;
}

static void timely_init(struct gw_cc *cc, uint64_t now_ps)
{
    struct timely_priv *t = cc->priv;

    (void)now_ps;
    t->line_bps = (double)(cc->nic_rate_bps ? cc->nic_rate_bps : TIMELY_LINE_BPS);
    t->rate_bps = t->line_bps;
    cc->cwnd_bytes = UINT64_MAX / 4;
    timely_set(cc, t);
}

static void timely_update(struct gw_cc *cc, struct timely_priv *t, uint64_t rtt_ps)
{
    const struct timely_conf *c = cc->conf;
    double rtt = (double)rtt_ps, gradient;
    double least = (double)(c->min_rtt_ps ? c->min_rtt_ps : cc->base_rtt_ps);

    t->diff_ps = (1 - c->alpha) * t->diff_ps + c->alpha * (rtt - (double)t->last_rtt_ps);
    gradient = t->diff_ps / (least > 0 ? least : 1);
    if (rtt < (double)c->t_low_ps) {
        t->rate_bps += (double)c->step_bps;
        t->falls = 0;
    } else if (rtt > (double)c->t_high_ps) {
        t->rate_bps *= 1 - c->beta * (1 - (double)c->t_high_ps / rtt);
        t->falls = 0;
    } else if (gradient <= 0) {
        t->falls++;
        t->rate_bps += (double)c->step_bps * (t->falls >= TIMELY_HAI_AFTER ? 5 : 1);
    } else {
        t->falls = 0;
        t->rate_bps *= 1 - c->beta * (gradient < 1 ? gradient : 1);
    }
    timely_set(cc, t);
}

static void timely_on_ack(struct gw_cc *cc, const struct gw_cc_ack *ack)
{
    const struct timely_conf *c = cc->conf;
    struct timely_priv *t = cc->priv;

    t->acked_bytes += ack->acked_bytes;
    if (!ack->rtt_ps || t->acked_bytes < c->segment_bytes)
        return;
    t->acked_bytes = 0;
    if (t->last_rtt_ps)
        timely_update(cc, t, ack->rtt_ps);
    t->last_rtt_ps = ack->rtt_ps;
}

static void timely_on_loss(struct gw_cc *cc, const struct gw_cc_ack *ack, bool is_ecn)
{
    (void)cc;                                       /* delay alone counts                        */
    (void)ack;
    (void)is_ecn;
}

static void timely_on_timeout(struct gw_cc *cc, const struct gw_cc_ack *ack)
{
    (void)cc;
    (void)ack;
}

static const struct gw_cc_ops timely_ops = {
    .priv_bytes = sizeof(struct timely_priv),
    .conf_bytes = sizeof(struct timely_conf),
    .init       = timely_init,
    .on_ack     = timely_on_ack,
    .on_loss    = timely_on_loss,
    .on_timeout = timely_on_timeout,
    .paces      = true,
    .paced_at_start = true,
};

static const struct gw_param timely_params[] = {
    { "alpha", GW_P_F64, offsetof(struct timely_conf, alpha), "0.875", "0.001", "1",
      "Weight of the newest difference of round trip times." },
    { "beta", GW_P_F64, offsetof(struct timely_conf, beta), "0.8", "0.001", "1",
      "Factor of decrease." },
    { "rate_step", GW_P_RATE, offsetof(struct timely_conf, step_bps), "10mbit", "1bit", NULL,
      "Additive increase." },
    { "rate_min", GW_P_RATE, offsetof(struct timely_conf, min_bps), "100mbit", "1kbit", NULL,
      "No rate is below this." },
    { "t_low", GW_P_TIME, offsetof(struct timely_conf, t_low_ps), "50us", "0", "100s",
      "Round trip time below which the rate always grows." },
    { "t_high", GW_P_TIME, offsetof(struct timely_conf, t_high_ps), "500us", "1ns", "100s",
      "Round trip time above which it always falls." },
    { "min_rtt", GW_P_TIME, offsetof(struct timely_conf, min_rtt_ps), "20us", "0", "100s",
      "What the gradient is divided by; 0: the round trip of the idle path." },
    { "segment", GW_P_BYTES, offsetof(struct timely_conf, segment_bytes), "16kB", "1", "1GB",
      "Bytes acknowledged between two updates." },
};

GW_PLUGIN(gw_cc_timely) = {
    GW_PLUGIN_HEAD(GW_KIND_CC, timely_ops),
    .name    = "timely",
    .summary = "Rate by the gradient of round trip times.",
    .params  = timely_params, .param_count = GW_ARRAY_LEN(timely_params),
    .source  = "Mittal et al., SIGCOMM 2015",
};
