/*
 * cc_swift - Swift: a window by delay against a target
 *
 * Kumar et al. ("Swift: Delay is simple and effective for congestion control in the datacenter",
 * SIGCOMM 2020), the fabric window. While the round trip time is below the target, the window (in
 * packets) grows by ai a round trip; above it, at most once a round trip, it shrinks by beta x
 * (delay - target) / delay, at most by max_mdf. The target is a base plus a part for small windows,
 * fs_range at fs_min packets falling with 1/sqrt(window) to nothing at fs_max (flow scaling), so
 * that many flows may share a queue. Windows below one packet are paced at RTT / window. A timeout
 * halves the window, five in a row make it the least one.
 *
 * The paper's target counts hops by TTL; here it is at least 1.25 round trips of the idle path, for
 * a host knows that path. A window below one packet is paced by a round trip of at most eight such
 * targets: what is longer was no fabric's, or the echo of an earlier try's timestamp, and at 1/0.001 of it
 * no packet would go for hours. Left out: the end host's window and its delay (hosts take no time).
 */
#include <gradwire/plugin.h>

#define SWIFT_RETX_RESET 5u
#define SWIFT_WINDOW_MIN 0.001
#define SWIFT_PACE_TARGETS 8u
#define SWIFT_WINDOW_MAX 1e9

struct swift_conf {
    double   ai, beta, max_mdf, fs_min, fs_max;
    uint64_t base_target_ps, fs_range_ps;
};

struct swift_priv {
    double   window;              /* packets                                                    */
    double   fs_alpha, fs_beta;   /* ps: extra target is alpha / sqrt(window) + beta            */
    uint64_t base_ps, rtt_ps;
    uint64_t last_decrease_ps;
    uint32_t timeouts;            /* in a row                                                   */
};

/* Newton's method: plugins have no libm. */
static double swift_sqrt(double x)
{
    double r = x > 1 ? x : 1;

    for (int i = 0; i < 60 && r * r > x * (1 + 1e-12); i++)
        r = (r + x / r) / 2;
    return r;
}

static void swift_set(struct gw_cc *cc, struct swift_priv *s)
{
    uint64_t rtt = s->rtt_ps ? s->rtt_ps : GW_PS_PER_US;

    if (s->window < SWIFT_WINDOW_MIN)
        s->window = SWIFT_WINDOW_MIN;
    if (s->window > SWIFT_WINDOW_MAX)
        s->window = SWIFT_WINDOW_MAX;
    cc->pacing_bps = 0;
    if (s->window >= 1) {
        cc->cwnd_bytes = (uint64_t)(s->window * cc->mss_bytes);
        return;
    }
    if (rtt > SWIFT_PACE_TARGETS * s->base_ps)
        rtt = SWIFT_PACE_TARGETS * s->base_ps;
    cc->cwnd_bytes = cc->mss_bytes;
    cc->pacing_bps = (uint64_t)(s->window * cc->mss_bytes * 8 * (double)GW_PS_PER_S /
                                (double)rtt) + 1;
}

static void swift_init(struct gw_cc *cc, uint64_t now_ps)
{
    const struct swift_conf *c = cc->conf;
    struct swift_priv *s = cc->priv;
    double low = 1 / swift_sqrt(c->fs_min), high = 1 / swift_sqrt(c->fs_max);

    (void)now_ps;
    s->fs_alpha = low > high ? (double)c->fs_range_ps / (low - high) : 0;
    s->fs_beta = -s->fs_alpha * high;
    s->base_ps = cc->base_rtt_ps + cc->base_rtt_ps / 4;
    if (s->base_ps < c->base_target_ps)
        s->base_ps = c->base_target_ps;
    s->rtt_ps = cc->base_rtt_ps;
    s->window = cc->mss_bytes ? (double)gw_mul_div(cc->nic_rate_bps, cc->base_rtt_ps, 8) /
                                (double)GW_PS_PER_S / cc->mss_bytes : 1;
    if (s->window < cc->initial_window)
        s->window = cc->initial_window;
    swift_set(cc, s);
}

static double swift_target(const struct swift_conf *c, const struct swift_priv *s)
{
    double extra = s->fs_alpha / swift_sqrt(s->window) + s->fs_beta;

    if (extra < 0)
        extra = 0;
    if (extra > (double)c->fs_range_ps)
        extra = (double)c->fs_range_ps;
    return (double)s->base_ps + extra;
}

static void swift_decrease(struct gw_cc *cc, struct swift_priv *s, double factor, uint64_t now_ps)
{
    const struct swift_conf *c = cc->conf;

    if (now_ps - s->last_decrease_ps < s->rtt_ps)
        return;
    s->window *= factor > 1 - c->max_mdf ? factor : 1 - c->max_mdf;
    s->last_decrease_ps = now_ps;
}

static void swift_on_ack(struct gw_cc *cc, const struct gw_cc_ack *ack)
{
    const struct swift_conf *c = cc->conf;
    struct swift_priv *s = cc->priv;
    double delay = (double)ack->rtt_ps, target = swift_target(c, s);

    if (!ack->rtt_ps)
        return;
    s->timeouts = 0;
    s->rtt_ps = s->rtt_ps - s->rtt_ps / 8 + ack->rtt_ps / 8;
    if (delay < target)
        s->window += s->window >= 1 ? c->ai * ack->acked_pkts / s->window
                                    : c->ai * ack->acked_pkts;
    else
        swift_decrease(cc, s, 1 - c->beta * (delay - target) / delay, ack->now_ps);
    swift_set(cc, s);
}

static void swift_on_loss(struct gw_cc *cc, const struct gw_cc_ack *ack, bool is_ecn)
{
    if (is_ecn)
        return;
    swift_decrease(cc, cc->priv, 0, ack->now_ps);
    swift_set(cc, cc->priv);
}

static void swift_on_timeout(struct gw_cc *cc, const struct gw_cc_ack *ack)
{
    struct swift_priv *s = cc->priv;

    if (++s->timeouts >= SWIFT_RETX_RESET)
        s->window = SWIFT_WINDOW_MIN;
    else
        swift_decrease(cc, s, 0, ack->now_ps);
    swift_set(cc, s);
}

static const struct gw_cc_ops swift_ops = {
    .priv_bytes = sizeof(struct swift_priv),
    .conf_bytes = sizeof(struct swift_conf),
    .init       = swift_init,
    .on_ack     = swift_on_ack,
    .on_loss    = swift_on_loss,
    .on_timeout = swift_on_timeout,
    .paces      = true,
};

static const struct gw_param swift_params[] = {
    { "ai", GW_P_F64, offsetof(struct swift_conf, ai), "1", "0.000001", "1000",
      "Packets that the window grows in a round trip." },
    { "beta", GW_P_F64, offsetof(struct swift_conf, beta), "0.8", "0.001", "1",
      "Factor of decrease." },
    { "max_mdf", GW_P_F64, offsetof(struct swift_conf, max_mdf), "0.5", "0.01", "0.99",
      "Largest decrease in a round trip." },
    { "base_target", GW_P_TIME, offsetof(struct swift_conf, base_target_ps), "25us", "1ns", "100s",
      "Target of the round trip time of large windows; at least 1.25 idle round trips." },
    { "fs_range", GW_P_TIME, offsetof(struct swift_conf, fs_range_ps), "125us", "0", "100s",
      "How much the target grows for the smallest windows." },
    { "fs_min", GW_P_F64, offsetof(struct swift_conf, fs_min), "0.1", "0.001", "1000",
      "Window in packets at which all of fs_range is added." },
    { "fs_max", GW_P_F64, offsetof(struct swift_conf, fs_max), "100", "0.001", "1000000",
      "Window in packets from which nothing is." },
};

GW_PLUGIN(gw_cc_swift) = {
    GW_PLUGIN_HEAD(GW_KIND_CC, swift_ops),
    .name    = "swift",
    .summary = "Window by the round trip time against a target that scales with flows.",
    .params  = swift_params, .param_count = GW_ARRAY_LEN(swift_params),
    .source  = "Kumar et al., SIGCOMM 2020",
};
