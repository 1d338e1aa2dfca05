/*
 * ch_correlated - loss that depends on the packet before, and whose mean is the mean asked for
 *
 * A chain of two states, lost and passed: after a lost packet the next is lost with probability
 * loss + correlation x (1 - loss), after one that passed with loss x (1 - correlation). So the
 * long-run loss is `loss`, and the correlation of the fates of neighbours is `correlation` (of
 * packets n apart correlation^n); bursts are geometric with mean 1 / ((1-loss)(1-correlation)).
 * This is what the words of netem's `loss 10% 25%` promise; netem itself loses 1.75 % there. One
 * draw per packet. Left out: negative correlation.
 */
#include <gradwire/gradwire.h>
#include <gradwire/alg/chance.h>

struct correlated_conf {
    double loss, correlation;
};

struct correlated {
    struct gw_chance next[2];    /* after one that passed, after a lost one                    */
    struct gw_chance first;
    double loss;
    bool   begun, lost;
};

static enum gw_status correlated_load(struct correlated *s, const struct correlated_conf *c,
                                      struct gw_error *err)
{
    if (!(c->loss >= 0 && c->loss <= 1))
        return gw_fail(err, GW_PARAM, "correlated: loss: allowed 0%% to 100%%");
    if (!(c->correlation >= 0 && c->correlation < 1))
        return gw_fail(err, GW_PARAM, "correlated: correlation: %g%%; 0%% up to but without 100%% "
                       "are possible, for at 100%% the first fate would hold for ever",
                       c->correlation * 100);
    s->loss = c->loss;
    s->first = gw_chance_of(c->loss);
    s->next[0] = gw_chance_of(c->loss < 1 ? c->loss * (1 - c->correlation) : 1);
    s->next[1] = gw_chance_of(c->loss > 0 ? c->loss + c->correlation * (1 - c->loss) : 0);
    return GW_OK;
}

static enum gw_status correlated_init(struct gw_channel *c, struct gw_error *err)
{
    return correlated_load(c->priv, c->conf, err);
}

static uint32_t correlated_transit(struct gw_channel *c, struct gw_pkt *p, uint64_t sent_ps,
                                   uint64_t *extra_ps)
{
    struct correlated *s = c->priv;

    (void)p;
    (void)sent_ps;
    (void)extra_ps;
    s->lost = gw_chance_hit(s->begun ? &s->next[s->lost] : &s->first, &c->rng);
    s->begun = true;
    return s->lost ? GW_FATE_LOSS : GW_FATE_PASS;
}

static double correlated_mean_loss(const struct gw_channel *c, uint32_t len_bytes)
{
    const struct correlated *s = c->priv;

    (void)len_bytes;
    return s->loss;
}

static enum gw_status correlated_change(struct gw_channel *c, const void *conf, uint64_t given,
                                        uint64_t now_ps, struct gw_error *err)
{
    const struct correlated_conf *n = conf;
    struct correlated_conf all = *(const struct correlated_conf *)c->conf;

    (void)now_ps;
    if (given & 1)
        all.loss = n->loss;
    if (given & 2)
        all.correlation = n->correlation;
    if (correlated_load(c->priv, &all, err) != GW_OK)
        return GW_PARAM;
    *(struct correlated_conf *)c->conf = all;
    return GW_OK;
}

static const struct gw_channel_ops correlated_ops = {
    .priv_bytes = sizeof(struct correlated),
    .conf_bytes = sizeof(struct correlated_conf),
    .init       = correlated_init,
    .transit    = correlated_transit,
    .mean_loss  = correlated_mean_loss,
    .change     = correlated_change,
};

static const struct gw_param correlated_params[] = {
    { "loss", GW_P_FRACTION, offsetof(struct correlated_conf, loss), NULL, "0%", "100%",
      "Mean share of packets that are lost." },
    { "correlation", GW_P_FRACTION, offsetof(struct correlated_conf, correlation), NULL, "0%",
      "100%", "Correlation of a packet's fate with that of the packet before; below 100%." },
};

GW_PLUGIN(gw_channel_correlated) = {
    GW_PLUGIN_HEAD(GW_KIND_CHANNEL, correlated_ops),
    .name    = "correlated",
    .summary = "Correlated loss whose mean is the mean asked for.",
    .params  = correlated_params, .param_count = GW_ARRAY_LEN(correlated_params),
};
