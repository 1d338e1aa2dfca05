/*
 * cc_dcqcn - the reaction point of DCQCN
 *
 * A flow starts at the speed of its card. A congestion notification packet cuts its rate by alpha/2
 * (Zhu et al., "Congestion control for large-scale RDMA deployments", SIGCOMM 2015, section 4.1),
 * remembers the rate before as the target, and raises alpha; alpha falls each `alpha_timer` without
 * one. A timer and a counter of bytes then count stages: for the first `stages` of both the rate
 * goes half way to the target (fast recovery), when one of them is past these the target grows by
 * rate_ai, when both are by rate_hai. At the card's speed the limiter goes away. Defaults are the
 * paper's (its table of parameters; rate_hai as in the authors' simulator).
 *
 * The other two thirds of DCQCN stand elsewhere: marking in the switch (qdisc ecn_threshold, say
 * kmin 5KB kmax 200KB pmax 1%), notification in the receiver (rocev2, cnp_interval).
 * Left out: what cards do on NAKs and timeouts (nothing here), rate steps of hardware limiters.
 */
#include <gradwire/plugin.h>

#define DCQCN_LINE_BPS UINT64_C(400000000000)      /* of a card that is infinitely fast          */

struct dcqcn_conf {
    double   gain;
    uint64_t alpha_timer_ps, rate_timer_ps, byte_counter;
    uint64_t ai_bps, hai_bps, min_bps;
    uint32_t stages;
};

struct dcqcn_priv {
    double   alpha;
    uint64_t alpha_ps;            /* when alpha last changed                                    */
    uint64_t line_bps, rate_bps, target_bps;
    uint64_t bytes;               /* since the last stage of the counter                        */
    uint32_t timer_stage, byte_stage;
    bool     limited;
    struct gw_timer timer;
};

static void dcqcn_set(struct gw_cc *cc, struct dcqcn_priv *d)
{
    const struct dcqcn_conf *c = cc->conf;
    uint64_t least = c->min_bps < d->line_bps ? c->min_bps : d->line_bps;

    if (d->rate_bps < least)
        d->rate_bps = least;
    if (d->rate_bps > d->line_bps)
        d->rate_bps = d->line_bps;
    cc->pacing_bps = d->limited ? d->rate_bps : 0;
}

/* A stage of the timer or of the counter is over. */
static void dcqcn_increase(struct gw_cc *cc, struct dcqcn_priv *d)
{
    const struct dcqcn_conf *c = cc->conf;
    uint32_t more = d->timer_stage > d->byte_stage ? d->timer_stage : d->byte_stage;
    uint32_t less = d->timer_stage > d->byte_stage ? d->byte_stage : d->timer_stage;

    if (less >= c->stages)
        d->target_bps += c->hai_bps;
    else if (more >= c->stages)
        d->target_bps += c->ai_bps;
    if (d->target_bps > d->line_bps)
        d->target_bps = d->line_bps;
    d->rate_bps = (d->rate_bps + d->target_bps + 1) / 2;
    if (d->rate_bps + d->line_bps / 1024 >= d->line_bps) {
        d->limited = false;
        d->rate_bps = d->line_bps;
        cc->host->timer_stop(cc->net, &d->timer);
    }
    dcqcn_set(cc, d);
}

static void dcqcn_timer(void *owner, uint64_t now_ps)
{
    struct gw_cc *cc = owner;
    const struct dcqcn_conf *c = cc->conf;
    struct dcqcn_priv *d = cc->priv;

    if (!d->limited)
        return;
    d->timer_stage++;
    cc->host->timer_set(cc->net, &d->timer, now_ps + c->rate_timer_ps);
    dcqcn_increase(cc, d);
}

static void dcqcn_init(struct gw_cc *cc, uint64_t now_ps)
{
    struct dcqcn_priv *d = cc->priv;

    d->alpha = 1;
    d->alpha_ps = now_ps;
    d->line_bps = cc->nic_rate_bps ? cc->nic_rate_bps : DCQCN_LINE_BPS;
    d->rate_bps = d->target_bps = d->line_bps;
    d->timer = (struct gw_timer){ .fire = dcqcn_timer, .owner = cc, .comp = cc->comp };
    cc->cwnd_bytes = UINT64_MAX / 4;
    cc->pacing_bps = 0;
}

static void dcqcn_fini(struct gw_cc *cc)
{
    struct dcqcn_priv *d = cc->priv;

    if (d->timer.fire)
        cc->host->timer_stop(cc->net, &d->timer);
}

/* Each alpha_timer since the last change has taken its part; no timer is needed for that. */
static void dcqcn_decay(const struct dcqcn_conf *c, struct dcqcn_priv *d, uint64_t now_ps)
{
    uint64_t n = (now_ps - d->alpha_ps) / c->alpha_timer_ps;

    d->alpha_ps += n * c->alpha_timer_ps;
    for (; n && d->alpha > 1e-12; n--)
        d->alpha *= 1 - c->gain;
}

static void dcqcn_on_cnp(struct gw_cc *cc, uint64_t now_ps)
{
    const struct dcqcn_conf *c = cc->conf;
    struct dcqcn_priv *d = cc->priv;

    dcqcn_decay(c, d, now_ps);
    d->limited = true;
    d->target_bps = d->rate_bps;
    d->rate_bps -= (uint64_t)((double)d->rate_bps * d->alpha / 2);
    d->alpha = (1 - c->gain) * d->alpha + c->gain;
    d->alpha_ps = now_ps;
    d->timer_stage = d->byte_stage = 0;
    d->bytes = 0;
    cc->host->timer_set(cc->net, &d->timer, now_ps + c->rate_timer_ps);
    dcqcn_set(cc, d);
}

static void dcqcn_on_sent(struct gw_cc *cc, uint64_t bytes, uint64_t in_flight_bytes,
                          bool app_limited, uint64_t now_ps)
{
    const struct dcqcn_conf *c = cc->conf;
    struct dcqcn_priv *d = cc->priv;

    (void)in_flight_bytes;
    (void)app_limited;
    (void)now_ps;
    if (!d->limited)
        return;
    d->bytes += bytes;
    if (d->bytes < c->byte_counter)
        return;
    d->bytes = 0;
    d->byte_stage++;
    dcqcn_increase(cc, d);
}

static void dcqcn_on_ack(struct gw_cc *cc, const struct gw_cc_ack *ack)
{
    (void)cc;
    (void)ack;
}

static void dcqcn_on_loss(struct gw_cc *cc, const struct gw_cc_ack *ack, bool is_ecn)
{
    if (is_ecn)
        dcqcn_on_cnp(cc, ack->now_ps);
}

static void dcqcn_on_timeout(struct gw_cc *cc, const struct gw_cc_ack *ack)
{
    (void)cc;
    (void)ack;
}

static const struct gw_cc_ops dcqcn_ops = {
    .priv_bytes = sizeof(struct dcqcn_priv),
    .conf_bytes = sizeof(struct dcqcn_conf),
    .init       = dcqcn_init,
    .on_ack     = dcqcn_on_ack,
    .on_loss    = dcqcn_on_loss,
    .on_timeout = dcqcn_on_timeout,
    .fifo_advice = "nothing in the network marks packets, without which it never slows down: "
                   "`qdisc: [{dev: switches, kind: ecn_threshold}]` does",
    .on_cnp     = dcqcn_on_cnp,
    .on_sent    = dcqcn_on_sent,
    .fini       = dcqcn_fini,
    .paces      = true,
    .paced_at_start = true,
};

static const struct gw_param dcqcn_params[] = {
    { "gain", GW_P_F64, offsetof(struct dcqcn_conf, gain), "0.00390625", "0.000001", "1",
      "g: how fast alpha follows the marks." },
    { "alpha_timer", GW_P_TIME, offsetof(struct dcqcn_conf, alpha_timer_ps), "55us", "1us", "1s",
      "alpha falls by g of itself each time this passes without a notification." },
    { "rate_timer", GW_P_TIME, offsetof(struct dcqcn_conf, rate_timer_ps), "55us", "1us", "1s",
      "Time of a stage of the timer." },
    { "byte_counter", GW_P_BYTES, offsetof(struct dcqcn_conf, byte_counter), "10MB", "1", NULL,
      "Bytes of a stage of the counter." },
    { "stages", GW_P_U32, offsetof(struct dcqcn_conf, stages), "5", "1", "1000",
      "F: stages of fast recovery." },
    { "rate_ai", GW_P_RATE, offsetof(struct dcqcn_conf, ai_bps), "40mbit", "1bit", NULL,
      "Additive increase of the target rate." },
    { "rate_hai", GW_P_RATE, offsetof(struct dcqcn_conf, hai_bps), "200mbit", "1bit", NULL,
      "Increase when both timer and counter are past the stages." },
    { "rate_min", GW_P_RATE, offsetof(struct dcqcn_conf, min_bps), "10mbit", "1kbit", NULL,
      "No rate is below this." },
};

GW_PLUGIN(gw_cc_dcqcn) = {
    GW_PLUGIN_HEAD(GW_KIND_CC, dcqcn_ops),
    .name    = "dcqcn",
    .summary = "Rate control of RoCE cards by congestion notification packets.",
    .params  = dcqcn_params, .param_count = GW_ARRAY_LEN(dcqcn_params),
    .source  = "Zhu et al., SIGCOMM 2015",
};
