/*
 * ch_jitter - random extra delay that keeps packets in order
 *
 * Each packet gets an extra delay drawn independently, with mean `delay` and standard deviation
 * `jitter`: uniform, normal, lognormal or Pareto (of the first kind, its shape from the two).
 * A packet never arrives before one that was sent earlier: its arrival is moved to the latest
 * arrival so far, as in a queue. Behind a large delay packets so bunch, and at high rates the mean
 * of what packets see is above `delay`. With `reorder: yes` delays are as drawn and packets
 * overtake each other (what netem does). Uniform and normal must not reach below 0: `delay` at
 * least 1.7321 x jitter, or 3 x jitter (the 0.13 % below 0 of a normal one at the least become 0).
 * Left out: correlation of delays.
 */
#include <gradwire/gradwire.h>

enum shape { UNIFORM, NORMAL, LOGNORMAL, PARETO };

struct jitter_conf {
    uint64_t delay_ps, jitter_ps;
    uint32_t shape;
    bool     reorder;
};

struct jitter {
    double   a, b;               /* of the shape                                               */
    uint32_t shape;
    bool     reorder;
    uint64_t latest_ps;          /* latest arrival so far, without the link's own delay        */
};

static enum gw_status jitter_load(struct jitter *s, const struct jitter_conf *c,
                                  struct gw_error *err)
{
    double m = (double)c->delay_ps, d = (double)c->jitter_ps, share = d > 0 ? m / d : 0;

    if (c->shape == UNIFORM && m < d * sqrt(3) * (1 - 1e-12))
        return gw_fail(err, GW_PARAM, "jitter: a uniform delay would be below 0; delay must be at "
                       "least 1.7321 x jitter");
    if (c->shape == NORMAL && m < 3 * d)
        return gw_fail(err, GW_PARAM, "jitter: a normal delay would be below 0 too often; delay "
                       "must be at least 3 x jitter, or distribution: lognormal");
    if (c->shape >= LOGNORMAL && d > 0 && !(m > 0))
        return gw_fail(err, GW_PARAM, "jitter: delay must be above 0 for a lognormal or pareto "
                       "distribution");
    s->shape = d > 0 ? c->shape : UNIFORM;
    s->reorder = c->reorder;
    if (s->shape == LOGNORMAL) {
        s->b = sqrt(log1p(1 / (share * share)));
        s->a = log(m) - s->b * s->b / 2;
    } else if (s->shape == PARETO) {
        s->b = 1 + sqrt(1 + share * share);
        s->a = m * (s->b - 1) / s->b;
    } else {
        s->a = m;
        s->b = d;
    }
    return GW_OK;
}

static enum gw_status jitter_init(struct gw_channel *c, struct gw_error *err)
{
    return jitter_load(c->priv, c->conf, err);
}

static uint64_t draw(const struct jitter *s, struct gw_rng *r)
{
    double x;

    switch (s->shape) {
    case UNIFORM:   x = s->a + s->b * sqrt(3) * (2 * gw_rng_unit(r) - 1); break;
    case NORMAL:    x = s->a + s->b * gw_rng_normal(r);                  break;
    case LOGNORMAL: x = exp(s->a + s->b * gw_rng_normal(r));             break;
    default:        x = s->a * exp(gw_rng_exp(r) / s->b);                break;
    }
    return x <= 0 ? 0 : x >= 9e18 ? UINT64_C(9000000000000000000) : (uint64_t)(x + 0.5);
}

static uint32_t jitter_transit(struct gw_channel *c, struct gw_pkt *p, uint64_t sent_ps,
                               uint64_t *extra_ps)
{
    struct jitter *s = c->priv;
    uint64_t arrive = sent_ps + draw(s, &c->rng);

    (void)p;
    if (!s->reorder && arrive < s->latest_ps)
        arrive = s->latest_ps;
    if (arrive > s->latest_ps)
        s->latest_ps = arrive;
    *extra_ps = arrive - sent_ps;
    return GW_FATE_PASS;
}

static double jitter_mean_loss(const struct gw_channel *c, uint32_t len_bytes)
{
    (void)c;
    (void)len_bytes;
    return 0;
}

static enum gw_status jitter_change(struct gw_channel *c, const void *conf, uint64_t given,
                                    uint64_t now_ps, struct gw_error *err)
{
    const struct jitter_conf *n = conf;
    struct jitter_conf all = *(const struct jitter_conf *)c->conf;

    (void)now_ps;
    if (given & 1)
        all.delay_ps = n->delay_ps;
    if (given & 2)
        all.jitter_ps = n->jitter_ps;
    if (given & 4)
        all.shape = n->shape;
    if (given & 8)
        all.reorder = n->reorder;
    if (jitter_load(c->priv, &all, err) != GW_OK)
        return GW_PARAM;
    *(struct jitter_conf *)c->conf = all;
    return GW_OK;
}

static const struct gw_channel_ops jitter_ops = {
    .priv_bytes = sizeof(struct jitter),
    .conf_bytes = sizeof(struct jitter_conf),
    .init       = jitter_init,
    .transit    = jitter_transit,
    .mean_loss  = jitter_mean_loss,
    .change     = jitter_change,
    .reorders   = true,          /* order is kept here, by the running maximum                 */
};

static const struct gw_param jitter_params[] = {
    { "delay", GW_P_TIME, offsetof(struct jitter_conf, delay_ps), NULL, "0", "1h",
      "Mean of the extra delay." },
    { "jitter", GW_P_TIME, offsetof(struct jitter_conf, jitter_ps), NULL, "0", "1h",
      "Standard deviation of the extra delay." },
    { "distribution", GW_P_CHOICE, offsetof(struct jitter_conf, shape), "normal",
      "uniform|normal|lognormal|pareto", NULL, "Shape of the extra delay." },
    { "reorder", GW_P_BOOL, offsetof(struct jitter_conf, reorder), "no", NULL, NULL,
      "yes: packets may overtake; no: a packet waits for those sent before it." },
};

GW_PLUGIN(gw_channel_jitter) = {
    GW_PLUGIN_HEAD(GW_KIND_CHANNEL, jitter_ops),
    .name    = "jitter",
    .summary = "Random extra delay that keeps packets in order, unless asked to reorder.",
    .params  = jitter_params, .param_count = GW_ARRAY_LEN(jitter_params),
};
