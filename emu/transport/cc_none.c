/*
 * cc_none - no congestion control
 *
 * A window of constant size, or none at all: what a lossless fabric does alone, and the fixed-window
 * oracle against which control is measured (goodput = window / round trip time until the link is
 * full). Losses and marks change nothing.
 * Left out: everything else.
 */
#include <gradwire/plugin.h>

struct none_conf {
    uint64_t fixed_window;        /* 0: none                                                   */
};

static void none_init(struct gw_cc *cc, uint64_t now_ps)
{
    const struct none_conf *c = cc->conf;

    (void)now_ps;
    cc->cwnd_bytes = c->fixed_window ? c->fixed_window : UINT64_MAX / 4;
}

static void none_on_ack(struct gw_cc *cc, const struct gw_cc_ack *ack)
{
    (void)cc;
    (void)ack;
}

/* The transport ends a recovery at ssthresh: the same window. */
static void none_on_loss(struct gw_cc *cc, const struct gw_cc_ack *ack, bool is_ecn)
{
    (void)ack;
    (void)is_ecn;
    none_init(cc, 0);
    cc->ssthresh_bytes = cc->cwnd_bytes;
}

static void none_on_timeout(struct gw_cc *cc, const struct gw_cc_ack *ack)
{
    none_on_loss(cc, ack, false);
}

static const struct gw_cc_ops none_ops = {
    .conf_bytes = sizeof(struct none_conf),
    .init       = none_init,
    .on_ack     = none_on_ack,
    .on_loss    = none_on_loss,
    .on_timeout = none_on_timeout,
};

static const struct gw_param none_params[] = {
    { "fixed_window", GW_P_BYTES, offsetof(struct none_conf, fixed_window), "0", "0", "1TB",
      "Bytes that may be out; 0: any number." },
};

GW_PLUGIN(gw_cc_none) = {
    GW_PLUGIN_HEAD(GW_KIND_CC, none_ops),
    .name    = "none",
    .summary = "No congestion control: a fixed window, or none.",
    .params  = none_params, .param_count = GW_ARRAY_LEN(none_params),
};
