/*
 * ch_bernoulli - each packet is lost with the same probability, whatever came before
 *
 * One draw of 64 bits per packet, compared with an integer threshold, so that 0 and 100 % are exact
 * and the smallest loss is 2^-64. A draw is made for every packet, also at 0 and 100 %: a change of
 * the rate while running does not shift the dice, and with one seed the packets lost at a small
 * rate are lost at a larger one too. Loss does not depend on the length of the packet.
 * Left out: bursts (Gilbert-Elliott), bit errors.
 */
#include <gradwire/gradwire.h>

struct bernoulli_conf {
    double loss;                 /* 0..1                                                       */
};

struct bernoulli {
    uint64_t threshold;          /* draws below it lose                                        */
    bool     always;             /* 100 %: the threshold would be 2^64                         */
    double   loss;
};

static void bernoulli_load(struct bernoulli *b, double loss)
{
    b->loss = loss;
    b->always = loss >= 1;
    b->threshold = b->always ? 0 : (uint64_t)(loss * 0x1p64);    /* exact: a power of two */
}

static enum gw_status bernoulli_init(struct gw_channel *c, struct gw_error *err)
{
    const struct bernoulli_conf *conf = c->conf;

    if (!(conf->loss >= 0 && conf->loss <= 1))
        return gw_fail(err, GW_PARAM, "bernoulli: loss: allowed 0%% to 100%%");
    bernoulli_load(c->priv, conf->loss);
    return GW_OK;
}

static uint32_t bernoulli_transit(struct gw_channel *c, struct gw_pkt *p, uint64_t sent_ps,
                                  uint64_t *extra_ps)
{
    const struct bernoulli *b = c->priv;
    uint64_t draw = gw_rng_u64(&c->rng);

    (void)p;
    (void)sent_ps;
    (void)extra_ps;
    return draw < b->threshold || b->always ? GW_FATE_LOSS : GW_FATE_PASS;
}

static double bernoulli_mean_loss(const struct gw_channel *c, uint32_t len_bytes)
{
    const struct bernoulli *b = c->priv;

    (void)len_bytes;
    return b->loss;
}

static enum gw_status bernoulli_change(struct gw_channel *c, const void *conf, uint64_t given,
                                       uint64_t now_ps, struct gw_error *err)
{
    const struct bernoulli_conf *n = conf;

    (void)now_ps;
    if (!(given & 1))
        return GW_OK;
    if (!(n->loss >= 0 && n->loss <= 1))
        return gw_fail(err, GW_PARAM, "bernoulli: loss: allowed 0%% to 100%%");
    bernoulli_load(c->priv, n->loss);
    return GW_OK;
}

static const struct gw_channel_ops bernoulli_ops = {
    .priv_bytes = sizeof(struct bernoulli),
    .conf_bytes = sizeof(struct bernoulli_conf),
    .init       = bernoulli_init,
    .transit    = bernoulli_transit,
    .mean_loss  = bernoulli_mean_loss,
    .change     = bernoulli_change,
};

static const struct gw_param bernoulli_params[] = {
    { "loss", GW_P_FRACTION, offsetof(struct bernoulli_conf, loss), NULL, "0%", "100%",
      "Share of packets that are lost." },
};

GW_PLUGIN(gw_channel_bernoulli) = {
    GW_PLUGIN_HEAD(GW_KIND_CHANNEL, bernoulli_ops),
    .name    = "bernoulli",
    .summary = "Independent loss with one probability.",
    .params  = bernoulli_params, .param_count = GW_ARRAY_LEN(bernoulli_params),
};
