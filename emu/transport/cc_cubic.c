/*
 * cc_cubic - CUBIC congestion control as Linux has it
 *
 * The window follows W(t) = C (t - K)^3 + Wmax after a loss (RFC 9438), or an estimate of what
 * AIMD(0.53, 0.7) would have if that is more (the reno-friendly region). Integer arithmetic of
 * Linux 6.1's tcp_cubic.c: windows in segments, time in 1/1024 s, beta in 1/1024 (717), C in
 * 1/1024 (410), at most one segment per two acked, at most 5 % a round trip while no loss has been
 * seen, fast convergence. The estimate stays at 0.53 also above Wmax, as in the kernel; RFC 9438
 * would then go on with 1.
 *
 * The kernel reads its time from a tick (tcp's `tick`, 1 ms as with HZ=1000; Debian's 250 is 4ms)
 * and computes growth at most once per tick, which slows windows of less than a few ms down; so here.
 *
 * HyStart (Ha and Rhee, "Taming the elephants", 2011) ends slow start at 16 segments or more: by
 * ACK train (ACKs at most 2 ms apart that span more than (min RTT + up to 1 ms) / 2, the whole of
 * it if the sender paces) or by delay (the round's smallest of 8 samples above min RTT + min RTT/8
 * clamped to 4..16 ms). Once per connection, again only after a timeout. `hystart: plusplus` is
 * RFC 9406 instead: delay alone, judged against the round before, leads to five rounds that grow
 * four times slower (conservative slow start) and end early when the delay turns out to have been
 * jitter.
 * Left out: the last 0.2 % of the kernel's cube root, which is a table's.
 */
#include <gradwire/plugin.h>

#define CUBIC_HZ 1024u                     /* units of time in a second                          */
#define CUBIC_ONE 1024u                    /* fractions are in 1/1024                            */
#define HYSTART_LOW_SEGS 16u
#define HYSTART_SAMPLES 8u
#define HYSTART_ACK_GAP_PS (2 * GW_PS_PER_MS)
#define HYSTART_DELAY_MIN_PS (4 * GW_PS_PER_MS)
#define HYSTART_DELAY_MAX_PS (16 * GW_PS_PER_MS)
#define HYSTART_AGGREGATE_BYTES UINT64_C(262144)  /* 4 super-segments of 64 KiB                  */
#define CSS_DIVISOR 4u                     /* RFC 9406, section 4.3                              */
#define CSS_ROUNDS 5u
#define CSS_BURST_SEGS 8u                  /* growth by one ACK at most, unless paced            */

struct cubic_conf {
    double beta;
    double c;
    uint32_t hystart;             /* HYSTART_*                                                    */
    bool   fast_convergence, friendly;
};

enum { HYSTART_YES, HYSTART_NO, HYSTART_PLUSPLUS };

struct cubic_priv {
    uint64_t epoch_ps;            /* tick when this growth began; valid if in_epoch               */
    uint64_t updated_ps;          /* tick when cnt was last computed                             */
    uint64_t min_rtt_ps;
    uint64_t credit_bytes;        /* acked since the window last grew                             */
    uint64_t friendly_bytes;      /* acked since the friendly estimate last grew                  */
    uint64_t round_ps, last_ack_ps, round_end, round_rtt_ps;    /* HyStart's round                */
    uint64_t k;                   /* 1/1024 s from the epoch to the origin                        */
    uint32_t cnt;                 /* segments acked per segment of growth                         */
    uint32_t last_cwnd;           /* segments, when cnt was computed                              */
    uint32_t wmax, origin;        /* segments                                                    */
    uint32_t friendly_cwnd;       /* segments of the reno-friendly estimate                       */
    uint32_t beta, c;             /* in 1/1024                                                   */
    uint32_t friendly_scale;      /* 8 (1 + beta) / (3 (1 - beta))                                */
    uint32_t samples;
    /* HyStart++ */
    uint64_t last_round_rtt_ps;
    uint64_t css_rtt_ps;          /* smallest RTT when conservative slow start began, 0: not in it */
    uint64_t css_credit_bytes;    /* acked and not yet grown by                                   */
    uint32_t css_rounds;
    bool     in_epoch, found, round_open;
};

/* The integer cube root, rounded down. */
static uint64_t cubic_root(uint64_t x)
{
    uint64_t r = 0;

    for (int shift = 63; shift >= 0; shift -= 3) {
        uint64_t step;

        r <<= 1;
        step = 3 * r * (r + 1) + 1;
        if ((x >> shift) >= step) {
            x -= step << shift;
            r++;
        }
    }
    return r;
}

static void cubic_forget(struct cubic_priv *q)
{
    q->in_epoch = q->found = q->round_open = false;
    q->wmax = q->origin = q->last_cwnd = 0;
    q->cnt = 0;
    q->k = q->credit_bytes = q->friendly_bytes = 0;
    q->friendly_cwnd = 0;
    q->min_rtt_ps = 0;
    q->css_rtt_ps = q->css_credit_bytes = 0;
}

static void cubic_init(struct gw_cc *cc, uint64_t now_ps)
{
    const struct cubic_conf *conf = cc->conf;
    struct cubic_priv *q = cc->priv;

    (void)now_ps;
    cubic_forget(q);
    q->beta = (uint32_t)(conf->beta * CUBIC_ONE + 0.5);
    q->c = (uint32_t)(conf->c * CUBIC_ONE + 0.5);
    q->friendly_scale = 8 * (CUBIC_ONE + q->beta) / 3 / (CUBIC_ONE - q->beta);
}

/* ---- HyStart ------------------------------------------------------------------------------- */

/* What aggregation in the sender may add to an ACK train: four super-segments at twice the rate. */
static uint64_t hystart_slack_ps(const struct gw_cc *cc, const struct gw_cc_ack *ack)
{
    uint64_t ps = gw_mul_div(HYSTART_AGGREGATE_BYTES, ack->srtt_ps, 2 * cc->cwnd_bytes);

    return ps < GW_PS_PER_MS ? ps : GW_PS_PER_MS;
}

static bool hystart_train(struct gw_cc *cc, struct cubic_priv *q, const struct gw_cc_ack *ack)
{
    uint64_t limit;

    if (ack->now_ps - q->last_ack_ps > HYSTART_ACK_GAP_PS)
        return false;
    q->last_ack_ps = ack->now_ps;
    limit = q->min_rtt_ps + hystart_slack_ps(cc, ack);
    if (!cc->pacing_bps)
        limit /= 2;
    return ack->now_ps - q->round_ps > limit;
}

static bool hystart_delay(struct cubic_priv *q, uint64_t rtt_ps)
{
    uint64_t extra = q->min_rtt_ps / 8;

    if (rtt_ps < q->round_rtt_ps)
        q->round_rtt_ps = rtt_ps;
    if (q->samples < HYSTART_SAMPLES) {
        q->samples++;
        return false;
    }
    extra = extra < HYSTART_DELAY_MIN_PS ? HYSTART_DELAY_MIN_PS : extra;
    extra = extra > HYSTART_DELAY_MAX_PS ? HYSTART_DELAY_MAX_PS : extra;
    return q->round_rtt_ps > q->min_rtt_ps + extra;
}

static void hystart_round(struct cubic_priv *q, const struct gw_cc_ack *ack)
{
    q->last_round_rtt_ps = q->round_open ? q->round_rtt_ps : UINT64_MAX;
    q->round_open = true;
    q->round_ps = q->last_ack_ps = ack->now_ps;
    q->round_end = ack->snd_nxt;
    q->round_rtt_ps = UINT64_MAX;
    q->samples = 0;
}

static void hystart_end(struct gw_cc *cc, struct cubic_priv *q)
{
    q->found = true;
    q->css_rtt_ps = 0;
    cc->ssthresh_bytes = cc->cwnd_bytes;
}

/* Rounds are counted below 16 segments too. */
static void hystart_update(struct gw_cc *cc, struct cubic_priv *q, const struct gw_cc_ack *ack)
{
    if (!q->round_open || ack->snd_una > q->round_end)
        hystart_round(q, ack);
    if (cc->cwnd_bytes < (uint64_t)HYSTART_LOW_SEGS * cc->mss_bytes)
        return;
    if (hystart_train(cc, q, ack) || hystart_delay(q, ack->rtt_ps))
        hystart_end(cc, q);
}

/* RFC 9406, section 4.2. */
static void hystart_plusplus(struct gw_cc *cc, struct cubic_priv *q, const struct gw_cc_ack *ack)
{
    uint64_t extra;

    if (!q->round_open || ack->snd_una > q->round_end) {
        if (q->css_rtt_ps && ++q->css_rounds >= CSS_ROUNDS) {
            hystart_end(cc, q);
            return;
        }
        hystart_round(q, ack);
    }
    if (ack->rtt_ps < q->round_rtt_ps)
        q->round_rtt_ps = ack->rtt_ps;
    if (++q->samples < HYSTART_SAMPLES || q->last_round_rtt_ps == UINT64_MAX)
        return;
    if (q->css_rtt_ps) {
        if (q->round_rtt_ps < q->css_rtt_ps)     /* it was jitter                                */
            q->css_rtt_ps = 0;
        return;
    }
    extra = q->last_round_rtt_ps / 8;
    extra = extra < HYSTART_DELAY_MIN_PS ? HYSTART_DELAY_MIN_PS : extra;
    extra = extra > HYSTART_DELAY_MAX_PS ? HYSTART_DELAY_MAX_PS : extra;
    if (q->round_rtt_ps >= q->last_round_rtt_ps + extra) {
        q->css_rtt_ps = q->round_rtt_ps;
        q->css_rounds = 0;
    }
}

/* A round-trip sample: its minimum, and the end of slow start. */
static void cubic_sample(struct gw_cc *cc, struct cubic_priv *q, const struct gw_cc_ack *ack)
{
    const struct cubic_conf *conf = cc->conf;

    if (q->in_epoch && ack->now_ps < q->epoch_ps + GW_PS_PER_S)
        return;                                  /* samples right after recovery mislead         */
    if (!q->min_rtt_ps || ack->rtt_ps < q->min_rtt_ps)
        q->min_rtt_ps = ack->rtt_ps;
    if (q->found || conf->hystart == HYSTART_NO || cc->cwnd_bytes >= cc->ssthresh_bytes)
        return;
    if (conf->hystart == HYSTART_PLUSPLUS)
        hystart_plusplus(cc, q, ack);
    else
        hystart_update(cc, q, ack);
}

/* ---- growth -------------------------------------------------------------------------------- */

static void cubic_start_epoch(struct cubic_priv *q, uint32_t cwnd, uint64_t tick_ps)
{
    q->in_epoch = true;
    q->epoch_ps = tick_ps;
    q->friendly_bytes = 0;
    q->friendly_cwnd = cwnd;
    if (q->wmax <= cwnd) {
        q->k = 0;
        q->origin = cwnd;
    } else {
        /* K = cbrt((Wmax - cwnd) / C) in 1/1024 s */
        q->k = cubic_root((UINT64_C(1) << 40) / q->c * (q->wmax - cwnd));
        q->origin = q->wmax;
    }
}

/* The window that the cubic function wants one minimum RTT, in whole ticks, from now; segments. */
static uint64_t cubic_target(const struct cubic_priv *q, uint64_t tick_ps, uint64_t now_ps)
{
    uint64_t since_ps = now_ps > q->epoch_ps ? now_ps - q->epoch_ps : 0;
    uint64_t ahead_ps = (q->min_rtt_ps + tick_ps - 1) / tick_ps * tick_ps;
    uint64_t t = gw_mul_div(since_ps + ahead_ps, CUBIC_HZ, GW_PS_PER_S);
    uint64_t d = t < q->k ? q->k - t : t - q->k;
    uint64_t delta = gw_mul_div(q->c * d, d * d, UINT64_C(1) << 40);

    if (t >= q->k)
        return q->origin + delta;
    return delta < q->origin ? q->origin - delta : 0;
}

/* Never slower than AIMD(0.53, 0.7) would be: grows its estimate, and cnt if that is ahead. */
static void cubic_befriend(struct cubic_priv *q, uint32_t cwnd, uint32_t mss)
{
    uint64_t step = (uint64_t)((cwnd * q->friendly_scale) >> 3) * mss, ahead;

    while (q->friendly_bytes > step) {
        q->friendly_bytes -= step;
        q->friendly_cwnd++;
    }
    if (q->friendly_cwnd > cwnd) {
        ahead = cwnd / (q->friendly_cwnd - cwnd);
        if (q->cnt > ahead)
            q->cnt = (uint32_t)ahead;
    }
}

static void cubic_update(struct gw_cc *cc, struct cubic_priv *q, uint64_t acked_bytes,
                         uint64_t now_ps)
{
    const struct cubic_conf *conf = cc->conf;
    uint32_t cwnd = (uint32_t)(cc->cwnd_bytes / cc->mss_bytes);
    uint64_t step_ps = cc->tick_ps ? cc->tick_ps : 1, target;

    q->friendly_bytes += acked_bytes;
    if (cwnd == q->last_cwnd && now_ps - q->updated_ps <= GW_PS_PER_S / 32)
        return;
    if (!q->in_epoch || now_ps - q->updated_ps >= step_ps) {
        uint64_t tick_ps = now_ps - now_ps % step_ps;

        if (!q->in_epoch) {
            cubic_start_epoch(q, cwnd, tick_ps);
            q->friendly_bytes = acked_bytes;
        }
        q->last_cwnd = cwnd;
        q->updated_ps = tick_ps;
        target = cubic_target(q, step_ps, tick_ps);
        q->cnt = target > cwnd ? (uint32_t)(cwnd / (target - cwnd)) : 100 * cwnd;
        if (!q->wmax && q->cnt > 20)
            q->cnt = 20;
    }
    if (conf->friendly)
        cubic_befriend(q, cwnd, cc->mss_bytes);
    if (q->cnt < 2)
        q->cnt = 2;
}

/* What conservative slow start grows by for @acked: a quarter, in whole segments. */
static uint64_t css_slow(const struct gw_cc *cc, struct cubic_priv *q, uint64_t acked)
{
    uint64_t most = (uint64_t)CSS_BURST_SEGS * cc->mss_bytes, grow;

    q->css_credit_bytes += acked > most && !cc->pacing_bps ? most : acked;
    grow = q->css_credit_bytes / CSS_DIVISOR;
    grow -= grow % cc->mss_bytes;
    q->css_credit_bytes -= grow * CSS_DIVISOR;
    return grow;
}

static void cubic_on_sample(struct gw_cc *cc, const struct gw_cc_ack *ack)
{
    cubic_sample(cc, cc->priv, ack);
}

static void cubic_on_ack(struct gw_cc *cc, const struct gw_cc_ack *ack)
{
    struct cubic_priv *q = cc->priv;
    uint64_t acked = ack->acked_bytes, room, need;

    if (ack->rtt_ps)
        cubic_sample(cc, q, ack);
    if (ack->in_recovery || !ack->cwnd_limited)
        return;
    if (cc->cwnd_bytes < cc->ssthresh_bytes) {
        if (q->css_rtt_ps)
            acked = css_slow(cc, q, acked);
        room = cc->ssthresh_bytes - cc->cwnd_bytes;
        room = room < acked ? room : acked;
        cc->cwnd_bytes += room;
        acked -= room;
        if (!acked)
            return;
    }
    cubic_update(cc, q, acked, ack->now_ps);
    need = (uint64_t)q->cnt * cc->mss_bytes;
    if (q->credit_bytes >= need) {               /* gathered at a larger cnt: apply it gently    */
        q->credit_bytes = 0;
        cc->cwnd_bytes += cc->mss_bytes;
    }
    q->credit_bytes += acked;
    while (q->credit_bytes >= need) {
        q->credit_bytes -= need;
        cc->cwnd_bytes += cc->mss_bytes;
    }
}

static void cubic_on_loss(struct gw_cc *cc, const struct gw_cc_ack *ack, bool is_ecn)
{
    const struct cubic_conf *conf = cc->conf;
    struct cubic_priv *q = cc->priv;
    uint32_t cwnd = (uint32_t)(cc->cwnd_bytes / cc->mss_bytes), next;

    (void)ack;
    (void)is_ecn;
    q->in_epoch = false;
    q->credit_bytes = 0;
    if (conf->fast_convergence && cwnd < q->wmax)
        q->wmax = (uint32_t)((uint64_t)cwnd * (CUBIC_ONE + q->beta) / (2 * CUBIC_ONE));
    else
        q->wmax = cwnd;
    next = (uint32_t)((uint64_t)cwnd * q->beta / CUBIC_ONE);
    cc->ssthresh_bytes = (uint64_t)(next < 2 ? 2 : next) * cc->mss_bytes;
}

static void cubic_on_timeout(struct gw_cc *cc, const struct gw_cc_ack *ack)
{
    cubic_on_loss(cc, ack, false);
    cubic_forget(cc->priv);
    hystart_round(cc->priv, ack);
}

/* Time without anything to send does not count as time since the loss. */
static void cubic_on_idle_restart(struct gw_cc *cc, uint64_t idle_ps, uint64_t rto_ps)
{
    struct cubic_priv *q = cc->priv;

    (void)rto_ps;
    if (q->in_epoch)
        q->epoch_ps += idle_ps;
}

static const struct gw_cc_ops cubic_ops = {
    .priv_bytes      = sizeof(struct cubic_priv),
    .conf_bytes      = sizeof(struct cubic_conf),
    .init            = cubic_init,
    .on_ack          = cubic_on_ack,
    .on_sample       = cubic_on_sample,
    .on_loss         = cubic_on_loss,
    .on_timeout      = cubic_on_timeout,
    .on_idle_restart = cubic_on_idle_restart,
    .loss_based      = true,
};

static const struct gw_param cubic_params[] = {
    { "hystart", GW_P_CHOICE, offsetof(struct cubic_conf, hystart), "yes", "yes|no|plusplus", NULL,
      "Leave slow start by ACK train or delay before the first loss; plusplus: RFC 9406." },
    { "beta", GW_P_F64, offsetof(struct cubic_conf, beta), "0.7", "0.1", "0.95",
      "What is left of the window after a loss." },
    { "c", GW_P_F64, offsetof(struct cubic_conf, c), "0.4", "0.01", "10",
      "How fast the window comes back, in segments per second cubed." },
    { "fast_convergence", GW_P_BOOL, offsetof(struct cubic_conf, fast_convergence), "yes", NULL,
      NULL, "Aim lower when the window did not come back to the last maximum." },
    { "friendly", GW_P_BOOL, offsetof(struct cubic_conf, friendly), "yes", NULL, NULL,
      "Never grow slower than a reno flow of the same loss rate." },
};

GW_PLUGIN(gw_cc_cubic) = {
    GW_PLUGIN_HEAD(GW_KIND_CC, cubic_ops),
    .name    = "cubic",
    .summary = "The window follows a cubic function of the time since the last loss.",
    .params  = cubic_params, .param_count = GW_ARRAY_LEN(cubic_params),
    .source  = "RFC 9438, RFC 9406; Linux 6.1 tcp_cubic.c",
};
