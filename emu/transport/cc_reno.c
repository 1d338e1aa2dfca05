/*
 * cc_reno - NewReno congestion control
 *
 * Slow start and additive increase, multiplicative decrease by one half (RFC 5681). What RFC 6582
 * adds, staying in recovery over partial ACKs, is the transport's. As in Linux (tcp_cong.c, 6.1):
 * slow start counts acknowledged bytes, so delayed ACKs do not slow it down; the window grows in
 * whole segments, and only when it, not the application, held the sender back. ssthresh after a
 * loss is half of the *window*, not of what is in flight, at least two segments.
 * Left out: limited slow start (RFC 3742), HyStart. Pacing is the transport's.
 */
#include <gradwire/plugin.h>
#include <gradwire/alg/reno.h>

struct reno_priv {
    uint64_t credit_bytes;        /* acked since the window last grew, in congestion avoidance   */
};

static void reno_init(struct gw_cc *cc, uint64_t now_ps)
{
    struct reno_priv *r = cc->priv;

    (void)now_ps;
    r->credit_bytes = 0;
}

static void reno_on_ack(struct gw_cc *cc, const struct gw_cc_ack *ack)
{
    struct reno_priv *r = cc->priv;

    if (!ack->in_recovery && ack->cwnd_limited)
        gw_reno_grow(cc, &r->credit_bytes, ack->acked_bytes);
}

static void reno_on_loss(struct gw_cc *cc, const struct gw_cc_ack *ack, bool is_ecn)
{
    struct reno_priv *r = cc->priv;

    (void)ack;
    (void)is_ecn;
    r->credit_bytes = 0;
    cc->ssthresh_bytes = gw_reno_half(cc);
}

static void reno_on_timeout(struct gw_cc *cc, const struct gw_cc_ack *ack)
{
    reno_on_loss(cc, ack, false);
}

static const struct gw_cc_ops reno_ops = {
    .priv_bytes = sizeof(struct reno_priv),
    .init       = reno_init,
    .on_ack     = reno_on_ack,
    .on_loss    = reno_on_loss,
    .on_timeout = reno_on_timeout,
    .loss_based = true,
};

GW_PLUGIN(gw_cc_newreno) = {
    GW_PLUGIN_HEAD(GW_KIND_CC, reno_ops),
    .name    = "newreno",
    .summary = "Slow start, one segment per round trip, half on loss.",
    .source  = "RFC 5681, RFC 6582; Linux 6.1 tcp_cong.c",
};

#ifndef GW_PLUGIN_SHARED
GW_PLUGIN(gw_cc_reno) = {
    GW_PLUGIN_HEAD(GW_KIND_CC, reno_ops),
    .name    = "reno",
    .summary = "The same as newreno, by the name that Linux gives it.",
    .source  = "RFC 5681, RFC 6582; Linux 6.1 tcp_cong.c",
};
#endif
