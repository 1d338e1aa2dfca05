/*
 * cc_dctcp - DCTCP congestion control
 *
 * Reacts to how much is marked, not to whether (RFC 8257; Alizadeh et al., "Data Center TCP",
 * SIGCOMM 2010): alpha is a moving average of the share of marked bytes per window, and a window
 * with marks is cut by alpha / 2. As in Linux 6.1's tcp_dctcp.c alpha is counted in 1/1024, starts
 * at 1, so that the first mark halves, and falls by 1/16 a window; a window ends when the first
 * segment sent behind the last end is acknowledged, and the marks of that very ACK belong to the
 * next one. Loss and timeouts halve. Growth is reno's.
 *
 * It needs the same at the other end: its SYN is ECN-capable itself, a receiver of another kind
 * then refuses ECN (`ecn_peer: classic`), and the flow runs as reno.
 * Left out: a loss behind a mark in the same window does not cut again.
 */
#include <gradwire/plugin.h>
#include <gradwire/alg/reno.h>

#define DCTCP_ONE 1024u

struct dctcp_conf {
    double   alpha;
    uint32_t shift_g;
};

struct dctcp_priv {
    uint64_t credit_bytes;         /* acked since the window last grew                           */
    uint64_t window_end;           /* stream offset behind this observation window               */
    uint64_t acked_bytes, ce_bytes;   /* in it                                                   */
    uint64_t una;
    uint32_t alpha;                /* in 1/1024                                                  */
};

static void dctcp_init(struct gw_cc *cc, uint64_t now_ps)
{
    const struct dctcp_conf *conf = cc->conf;
    struct dctcp_priv *d = cc->priv;

    (void)now_ps;
    *d = (struct dctcp_priv){ .alpha = (uint32_t)(conf->alpha * DCTCP_ONE + 0.5) };
}

/* At the end of a window: alpha = (1 - g) alpha + g F. Once per ACK, before its own bytes. */
static void dctcp_update_alpha(struct gw_cc *cc, struct dctcp_priv *d, const struct gw_cc_ack *a)
{
    const struct dctcp_conf *conf = cc->conf;
    uint32_t fall = d->alpha >> conf->shift_g;
    uint64_t rise;

    if (a->snd_una < d->window_end)
        return;
    d->alpha -= fall ? fall : d->alpha;
    if (d->ce_bytes) {
        rise = (d->ce_bytes << 10 >> conf->shift_g) / (d->acked_bytes ? d->acked_bytes : 1);
        d->alpha = d->alpha + rise > DCTCP_ONE ? DCTCP_ONE : d->alpha + (uint32_t)rise;
    }
    d->acked_bytes = d->ce_bytes = 0;
    d->window_end = a->snd_nxt;
}

static void dctcp_on_ack(struct gw_cc *cc, const struct gw_cc_ack *a)
{
    struct dctcp_priv *d = cc->priv;
    bool advanced = a->snd_una > d->una;

    if (!cc->ecn_refused)
        dctcp_update_alpha(cc, d, a);
    d->acked_bytes += a->acked_bytes;
    d->ce_bytes += a->ce_bytes;
    d->una = a->snd_una;
    if (advanced && !a->in_recovery && a->cwnd_limited)
        gw_reno_grow(cc, &d->credit_bytes, a->acked_bytes);
}

static void dctcp_on_loss(struct gw_cc *cc, const struct gw_cc_ack *a, bool is_ecn)
{
    struct dctcp_priv *d = cc->priv;
    uint64_t segs = cc->cwnd_bytes / cc->mss_bytes;

    d->credit_bytes = 0;
    if (!is_ecn || cc->ecn_refused) {
        cc->ssthresh_bytes = gw_reno_half(cc);
        return;
    }
    dctcp_update_alpha(cc, d, a);
    segs -= segs * d->alpha / (2 * DCTCP_ONE);
    cc->ssthresh_bytes = (segs < 2 ? 2 : segs) * cc->mss_bytes;
}

static void dctcp_on_timeout(struct gw_cc *cc, const struct gw_cc_ack *a)
{
    dctcp_on_loss(cc, a, false);
}

static const struct gw_cc_ops dctcp_ops = {
    .priv_bytes = sizeof(struct dctcp_priv),
    .conf_bytes = sizeof(struct dctcp_conf),
    .init       = dctcp_init,
    .on_ack     = dctcp_on_ack,
    .on_loss    = dctcp_on_loss,
    .on_timeout = dctcp_on_timeout,
    .loss_based = true,
    .fifo_advice = "nothing in the network marks packets, without which it is reno: "
                   "`qdisc: [{dev: switches, kind: ecn_threshold}]` does",
    .ecn        = GW_CC_ECN_EXACT,
};

static const struct gw_param dctcp_params[] = {
    { "alpha", GW_P_FRACTION, offsetof(struct dctcp_conf, alpha), "100%", "0", "100%",
      "The share of marks assumed at the start; 100%: the first mark halves the window." },
    { "shift_g", GW_P_U32, offsetof(struct dctcp_conf, shift_g), "4", "0", "10",
      "The last window's share weighs 1 / 2^shift_g in the average." },
};

GW_PLUGIN(gw_cc_dctcp) = {
    GW_PLUGIN_HEAD(GW_KIND_CC, dctcp_ops),
    .name    = "dctcp",
    .summary = "Cuts the window by half the share of bytes that switches marked.",
    .params  = dctcp_params, .param_count = GW_ARRAY_LEN(dctcp_params),
    .source  = "RFC 8257; Alizadeh et al., SIGCOMM 2010; Linux 6.1 tcp_dctcp.c",
};
