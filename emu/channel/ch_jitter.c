/*
 * ch_jitter - random extra delay that keeps packets in order
 *
 * Each packet gets an extra delay drawn independently, with mean `delay` and standard deviation
 * `jitter`: uniform, normal, lognormal or Pareto (of the first kind, its shape from the two).
 * A packet never arrives before one that was sent earlier: its arrival is moved to the latest
 * arrival so far, as in a queue. Behind a large delay packets so bunch, and at high rates the mean
 * of what packets see is above `delay`; advise() says by how much. With `reorder: yes` delays are as drawn and packets
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

/* ---- what keeping the order makes of the mean -------------------------------------------------- */

/*
 * Packets every gap with delays D, drawn independently: one arrives max(D_0, D_1 - gap, D_2 - 2 gap,
 * ...) after it was sent, where D_k belongs to the k-th before it. So the delay is at most x with
 * probability F(x) F(x + gap) F(x + 2 gap) ..., and its mean is the integral of 1 minus that. The
 * logarithms of the first TERMS factors are summed, those of the rest integrated (by then the
 * distribution is smooth on the scale of a gap).
 */
enum { TERMS = 48, GRID = 3000 };

/* - ln F(x) */
static double hazard(const struct jitter *s, double x)
{
    double above;                /* 1 - F(x)                                                   */

    switch (s->shape) {
    case UNIFORM:
        above = s->b > 0 ? (s->a + sqrt(3) * s->b - x) / (2 * sqrt(3) * s->b) : x < s->a;
        break;
    case NORMAL:
        above = erfc((x - s->a) / s->b / sqrt(2)) / 2;
        break;
    case LOGNORMAL:
        above = x > 0 ? erfc((log(x) - s->a) / s->b / sqrt(2)) / 2 : 1;
        break;
    default:
        above = x > s->a ? pow(s->a / x, s->b) : 1;
        break;
    }
    return above >= 1 ? INFINITY : above <= 0 ? 0 : -log1p(-above);
}

/* A delay beyond which almost nothing lies. */
static double far_out(const struct jitter *s)
{
    switch (s->shape) {
    case UNIFORM:   return s->a + sqrt(3) * s->b;
    case NORMAL:    return s->a + 9 * s->b;
    case LOGNORMAL: return exp(s->a + 9 * s->b);
    default:        return s->a * pow(1e15, 1 / (s->b - 1));
    }
}

/* A delay below which nothing, or almost nothing, lies. */
static double near_by(const struct jitter *s, double high)
{
    double low = s->shape == UNIFORM ? s->a - sqrt(3) * s->b :
                 s->shape == NORMAL ? s->a - 9 * s->b :
                 s->shape == LOGNORMAL ? exp(s->a - 9 * s->b) : s->a;

    return low > high * 1e-4 ? low : high * 1e-4;
}

/* Points from @low to @high that grow by a factor, and the integral of the hazard from each on. */
static void tail_of(const struct jitter *s, double low, double high, double *x, double *tail)
{
    double step = pow(high / low, 1.0 / GRID);

    x[GRID] = high;
    tail[GRID] = s->shape == PARETO ? high * hazard(s, high) / (s->b - 1) : 0;
    for (int i = GRID - 1; i >= 0; i--) {
        double here, there = hazard(s, x[i + 1]);

        x[i] = i ? x[i + 1] / step : low;
        here = hazard(s, x[i]);
        tail[i] = tail[i + 1] + (isinf(here) ? INFINITY : (here + there) / 2 * (x[i + 1] - x[i]));
    }
}

/* The integral of the hazard from @at on, between the points. */
static double tail_at(const double *x, const double *tail, double at)
{
    double u = log(at / x[0]) / log(x[GRID] / x[0]) * GRID, part;
    int i = u <= 0 ? 0 : u >= GRID ? GRID : (int)u;

    if (i >= GRID)
        return 0;
    part = u - i < 0 ? 0 : u - i;
    return isinf(tail[i]) ? tail[i] : tail[i] * (1 - part) + tail[i + 1] * part;
}

/* - ln of the product of F(x + k gap) over all k. */
static double hazards(const struct jitter *s, double at, double gap, const double *x,
                      const double *tail)
{
    double sum = 0, last = at + TERMS * gap, rest = hazard(s, last);

    for (int k = 0; k < TERMS && !isinf(sum); k++)
        sum += hazard(s, at + k * gap);
    return rest > 0 ? sum + rest / 2 + tail_at(x, tail, last) / gap : sum;
}

static double jitter_mean_delay(const struct gw_channel *c, uint64_t gap_ps)
{
    const struct jitter_conf *conf = c->conf;
    const struct jitter *s = c->priv;
    double mean = (double)conf->delay_ps, gap = (double)gap_ps, high, sum;
    double x[GRID + 1], tail[GRID + 1], here, before;

    if (s->reorder || !conf->jitter_ps || gap_ps == GW_NEVER || !gap_ps)
        return mean * 1e-12;
    high = far_out(s);
    tail_of(s, near_by(s, high), high, x, tail);
    sum = x[0];
    before = 1;
    for (int i = 0; i <= GRID; i++) {
        here = -expm1(-hazards(s, x[i], gap, x, tail));
        if (i)
            sum += (here + before) / 2 * (x[i] - x[i - 1]);
        before = here;
    }
    if (s->shape == PARETO)          /* beyond, 1 - exp(-h) is h and falls as x^(1-b) / gap      */
        sum += high * before / (s->b > 2 ? s->b - 2 : 1e-3);
    return (sum > mean ? sum : mean) * 1e-12;
}

static const char *time_text(double s, char *buf, size_t n)
{
    double scale = s >= 1 ? 1 : s >= 1e-3 ? 1e3 : s >= 1e-6 ? 1e6 : 1e9;

    snprintf(buf, n, "%.4g%s", s * scale,
             scale < 10 ? "s" : scale < 1e4 ? "ms" : scale < 1e7 ? "us" : "ns");
    return buf;
}

static void jitter_advise(const struct gw_channel *c, const struct gw_channel_link *l,
                          void (*say)(void *ctx, const char *sentence), void *ctx)
{
    const struct jitter_conf *conf = c->conf;
    const struct jitter *s = c->priv;
    uint64_t bytes = (uint64_t)l->frame_bytes + l->framing_bytes;
    uint64_t gap = l->rate_bps ? gw_mul_div(bytes, 8 * GW_PS_PER_S, l->rate_bps) : 0;
    double asked = (double)conf->delay_ps * 1e-12;
    char a[32], b[32], m[32], text[512], busy[160] = "";

    if (s->reorder || !conf->jitter_ps)
        return;
    if (gap)
        snprintf(busy, sizeof busy, "full packets back to back are delayed by %s on average, ",
                 time_text(jitter_mean_delay(c, gap), b, sizeof b));
    snprintf(text, sizeof text, "packets keep their order, so one waits for those before it: %s"
             "packets every 1ms by %s, only those far apart by the %s asked for; `reorder: yes` "
             "keeps that mean and lets packets overtake", busy,
             time_text(jitter_mean_delay(c, GW_PS_PER_MS), m, sizeof m),
             time_text(asked, a, sizeof a));
    say(ctx, text);
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
    .mean_delay = jitter_mean_delay,
    .advise     = jitter_advise,
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
