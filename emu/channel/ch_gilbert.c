/*
 * ch_gilbert - bursts of loss with a mean loss and a mean burst length that are the ones asked for
 *
 * The Gilbert-Elliott model said by its results: a chain of two states moves once per packet, from
 * bad to good with probability 1/burst, from good to bad so often that the long-run loss is `loss`.
 * With the defaults every packet in the bad state is lost and none in the good one: bursts are
 * geometric with mean `burst` packets. With `bad` below 100 % or `good` above 0 %, `burst` is the
 * mean stay in the bad state and `loss` still the mean of all. The chain starts in its long-run
 * share of the bad state, so the first packet's chance is `loss` too. One draw for the state and
 * one for the loss per packet. netem's gemodel takes the chain's probabilities instead.
 * After Gilbert (1960) and Elliott (1963). Left out: loss that depends on time or length.
 */
#include <gradwire/gradwire.h>
#include <gradwire/alg/chance.h>

struct gilbert_conf {
    double loss, burst, bad, good;
};

struct gilbert {
    struct gw_chance enter, leave, lose[2];          /* lose: in good, in bad                  */
    double loss;
    bool   begun, in_bad;
    double bad_share;
};

static enum gw_status gilbert_load(struct gilbert *g, const struct gilbert_conf *c,
                                   struct gw_error *err)
{
    double share, enter, leave = 1 / c->burst;

    if (!(c->bad > c->good))
        return gw_fail(err, GW_PARAM, "gilbert: bad: %g%% is not above good: %g%%; the loss in the "
                       "bad state must be the greater", c->bad * 100, c->good * 100);
    if (!(c->loss >= c->good && c->loss <= c->bad))
        return gw_fail(err, GW_PARAM, "gilbert: loss: %g%% lies outside the losses of the two "
                       "states; %g%% to %g%% are possible", c->loss * 100, c->good * 100,
                       c->bad * 100);
    share = (c->loss - c->good) / (c->bad - c->good);
    enter = share < 1 ? leave * share / (1 - share) : 1;
    if (share < 1 && enter > 1)
        return gw_fail(err, GW_PARAM, "gilbert: a loss of %g%% is not possible with bursts of %g "
                       "packets, for good stretches would be shorter than one packet; make burst "
                       "at least %.4g", c->loss * 100, c->burst, share / (1 - share));
    g->enter = gw_chance_of(enter);
    g->leave = gw_chance_of(share < 1 ? leave : 0);
    g->lose[0] = gw_chance_of(c->good);
    g->lose[1] = gw_chance_of(c->bad);
    g->loss = c->loss;
    g->bad_share = share;
    return GW_OK;
}

static enum gw_status gilbert_init(struct gw_channel *c, struct gw_error *err)
{
    return gilbert_load(c->priv, c->conf, err);
}

static uint32_t gilbert_transit(struct gw_channel *c, struct gw_pkt *p, uint64_t sent_ps,
                                uint64_t *extra_ps)
{
    struct gilbert *g = c->priv;

    (void)p;
    (void)sent_ps;
    (void)extra_ps;
    if (!g->begun) {
        struct gw_chance first = gw_chance_of(g->bad_share);

        g->in_bad = gw_chance_hit(&first, &c->rng);
        g->begun = true;
    } else if (gw_chance_hit(g->in_bad ? &g->leave : &g->enter, &c->rng)) {
        g->in_bad = !g->in_bad;
    }
    return gw_chance_hit(&g->lose[g->in_bad], &c->rng) ? GW_FATE_LOSS : GW_FATE_PASS;
}

static double gilbert_mean_loss(const struct gw_channel *c, uint32_t len_bytes)
{
    const struct gilbert *g = c->priv;

    (void)len_bytes;
    return g->loss;
}

/* What is not named stays; the state of the chain stays, too. */
static enum gw_status gilbert_change(struct gw_channel *c, const void *conf, uint64_t given,
                                     uint64_t now_ps, struct gw_error *err)
{
    const struct gilbert_conf *n = conf;
    struct gilbert_conf all = *(const struct gilbert_conf *)c->conf;

    (void)now_ps;
    if (given & 1)
        all.loss = n->loss;
    if (given & 2)
        all.burst = n->burst;
    if (given & 4)
        all.bad = n->bad;
    if (given & 8)
        all.good = n->good;
    if (gilbert_load(c->priv, &all, err) != GW_OK)
        return GW_PARAM;
    *(struct gilbert_conf *)c->conf = all;
    return GW_OK;
}

/* With losses below 100 % in the bad state, or some in the good one, runs of lost packets are not the
 * stays in the bad state. */
static void gilbert_advise(const struct gw_channel *c, const struct gw_channel_link *l,
                           void (*say)(void *ctx, const char *sentence), void *ctx)
{
    const struct gilbert_conf *k = c->conf;
    const struct gilbert *g = c->priv;
    double bad = g->bad_share, leave = bad < 1 ? 1 / k->burst : 0;
    double enter = bad < 1 ? leave * bad / (1 - bad) : 1, ends;
    char text[256];

    (void)l;
    if (k->loss <= 0 || (k->bad >= 1 && k->good <= 0))
        return;
    ends = (1 - bad) * k->good * (1 - enter * k->bad - (1 - enter) * k->good) +
           bad * k->bad * (1 - leave * k->good - (1 - leave) * k->bad);
    if (ends <= 0)
        return;
    snprintf(text, sizeof text, "burst %g is the mean stay in the bad state; %.4g%% of the packets "
             "are lost, %.4g in a row on average", k->burst, 100 * k->loss, k->loss / ends);
    say(ctx, text);
}

static const struct gw_channel_ops gilbert_ops = {
    .priv_bytes = sizeof(struct gilbert),
    .conf_bytes = sizeof(struct gilbert_conf),
    .init       = gilbert_init,
    .transit    = gilbert_transit,
    .mean_loss  = gilbert_mean_loss,
    .advise     = gilbert_advise,
    .change     = gilbert_change,
};

static const struct gw_param gilbert_params[] = {
    { "loss", GW_P_FRACTION, offsetof(struct gilbert_conf, loss), NULL, "0%", "100%",
      "Mean share of packets that are lost." },
    { "burst", GW_P_F64, offsetof(struct gilbert_conf, burst), NULL, "1", "1e12",
      "Mean length of a burst of losses in packets." },
    { "bad", GW_P_FRACTION, offsetof(struct gilbert_conf, bad), "100%", "0%", "100%",
      "Loss in the bad state; below 100 %, burst is the mean stay there." },
    { "good", GW_P_FRACTION, offsetof(struct gilbert_conf, good), "0%", "0%", "100%",
      "Loss in the good state." },
};

GW_PLUGIN(gw_channel_gilbert) = {
    GW_PLUGIN_HEAD(GW_KIND_CHANNEL, gilbert_ops),
    .name    = "gilbert",
    .summary = "Bursty loss (Gilbert-Elliott) said by its mean loss and mean burst length.",
    .params  = gilbert_params, .param_count = GW_ARRAY_LEN(gilbert_params),
    .source  = "Gilbert 1960, Elliott 1963",
};
