/*
 * ch_ber - independent bit errors, so that long packets are lost more often than short ones
 *
 * Every bit of a frame is wrong with probability `ber`, independently; a frame with any wrong bit
 * fails its check sum: lost with probability 1 - (1 - ber)^bits, where bits counts the frame and
 * `overhead` bytes more (4: the FCS). The receiving interface throws it away, so it counts as
 * loss; with `deliver: yes` it arrives with its wrong bits instead. One draw per packet, and one
 * more for each bit that is delivered wrong (the first fifteen of a frame). Left out: errors in
 * bursts, forward error correction.
 */
#include <gradwire/gradwire.h>
#include <gradwire/alg/chance.h>

struct ber_conf {
    double   ber;
    uint64_t overhead_bytes;
    bool     deliver;
};

struct ber {
    struct gw_chance chance;     /* of a frame of @len_bytes, the length met last              */
    uint32_t len_bytes;
    struct ber_conf c;
};

static double frame_error(const struct ber_conf *c, uint32_t len_bytes)
{
    double bits = 8.0 * ((double)len_bytes + (double)c->overhead_bytes);

    return c->ber >= 1 ? 1 : -expm1(bits * log1p(-c->ber));
}

static enum gw_status ber_load(struct ber *s, const struct ber_conf *c, struct gw_error *err)
{
    if (!(c->ber >= 0 && c->ber <= 1))
        return gw_fail(err, GW_PARAM, "ber: ber: %g; a probability from 0 to 1, such as 1e-9, is "
                       "right", c->ber);
    s->c = *c;
    s->len_bytes = 0;
    s->chance = gw_chance_of(frame_error(c, 0));
    return GW_OK;
}

static enum gw_status ber_init(struct gw_channel *c, struct gw_error *err)
{
    return ber_load(c->priv, c->conf, err);
}

/* Flips the wrong bits of a frame that has one: the distance to the next is geometric, and the first
 * lies within the frame. */
static void flip(struct gw_channel *c, const struct ber *s, struct gw_pkt *p)
{
    double good = log1p(-s->c.ber), any = frame_error(&s->c, p->len_bytes);
    double bits = 8.0 * ((double)p->len_bytes + (double)s->c.overhead_bytes);
    double at = floor(log1p(-any * gw_rng_unit(&c->rng)) / good);

    if (at >= bits)                        /* by rounding                                      */
        at = bits - 1;
    for (uint32_t k = 0; k < GW_FLIPS && at < bits; k++) {
        c->host->pkt_flip(c->net, p, (uint32_t)at);
        at += 1 + floor(log1p(-gw_rng_unit(&c->rng)) / good);
    }
}

static uint32_t ber_transit(struct gw_channel *c, struct gw_pkt *p, uint64_t sent_ps,
                            uint64_t *extra_ps)
{
    struct ber *s = c->priv;

    (void)sent_ps;
    (void)extra_ps;
    if (p->len_bytes != s->len_bytes) {
        s->len_bytes = p->len_bytes;
        s->chance = gw_chance_of(frame_error(&s->c, p->len_bytes));
    }
    if (!gw_chance_hit(&s->chance, &c->rng))
        return GW_FATE_PASS;
    if (!s->c.deliver)
        return GW_FATE_LOSS;
    flip(c, s, p);
    return GW_FATE_CORRUPT;
}

static double ber_mean_loss(const struct gw_channel *c, uint32_t len_bytes)
{
    const struct ber *s = c->priv;

    return frame_error(&s->c, len_bytes);
}

static enum gw_status ber_change(struct gw_channel *c, const void *conf, uint64_t given,
                                 uint64_t now_ps, struct gw_error *err)
{
    const struct ber_conf *n = conf;
    struct ber *s = c->priv;
    struct ber_conf all = s->c;

    (void)now_ps;
    if (given & 1)
        all.ber = n->ber;
    if (given & 2)
        all.overhead_bytes = n->overhead_bytes;
    if (given & 4)
        all.deliver = n->deliver;
    return ber_load(s, &all, err);
}

static void ber_advise(const struct gw_channel *c, const struct gw_channel_link *l,
                       void (*say)(void *ctx, const char *sentence), void *ctx)
{
    const struct ber *s = c->priv;
    char text[256];

    if (s->c.ber <= 0)
        return;
    snprintf(text, sizeof text, "ber %g %s %.4g%% of the frames of %u bytes and %.4g%% of those of "
             "64 bytes", s->c.ber, s->c.deliver ? "spoils" : "loses",
             100 * frame_error(&s->c, l->frame_bytes), l->frame_bytes,
             100 * frame_error(&s->c, 64));
    say(ctx, text);
}

static const struct gw_channel_ops ber_ops = {
    .priv_bytes = sizeof(struct ber),
    .conf_bytes = sizeof(struct ber_conf),
    .init       = ber_init,
    .transit    = ber_transit,
    .mean_loss  = ber_mean_loss,
    .advise     = ber_advise,
    .change     = ber_change,
};

static const struct gw_param ber_params[] = {
    { "ber", GW_P_F64, offsetof(struct ber_conf, ber), NULL, "0", "1",
      "Probability that a bit is wrong, e.g. 1e-9." },
    { "overhead", GW_P_BYTES, offsetof(struct ber_conf, overhead_bytes), "4", "0", "1024",
      "Bytes at risk beyond the frame's length; 4: its check sum." },
    { "deliver", GW_P_BOOL, offsetof(struct ber_conf, deliver), "no", NULL, NULL,
      "yes: a wrong frame arrives with its wrong bits; no: the receiving interface drops it." },
};

GW_PLUGIN(gw_channel_ber) = {
    GW_PLUGIN_HEAD(GW_KIND_CHANNEL, ber_ops),
    .name    = "ber",
    .summary = "Independent bit errors: the loss of a frame grows with its length.",
    .params  = ber_params, .param_count = GW_ARRAY_LEN(ber_params),
};
