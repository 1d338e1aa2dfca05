/*
 * cc_bbr - BBR congestion control, version 1, as Linux 6.1 has it
 *
 * A model of the path instead of a reaction to loss (Cardwell et al., "BBR: congestion-based
 * congestion control", ACM Queue 2016): the largest delivery rate of the last ten round trips, and
 * the smallest RTT of the last ten seconds. The pace is rate x gain less 1 %; the window is a
 * multiple of rate x RTT, and three bursts more.
 *
 *     STARTUP    both gains 2.89, until three rounds bring less than 25 % more rate
 *     DRAIN      pace 0.35, until what is in flight fits the path
 *     PROBE_BW   window gain 2; eight phases of about an RTT, pace 1.25, 0.75, then 1
 *     PROBE_RTT  when the smallest RTT is ten seconds old: four segments for 200 ms and a round
 *
 * From the kernel's tcp_bbr.c also: loss is no signal, but the first round of a recovery sends only
 * what was delivered, later ones at most twice that, and afterwards the window comes back; ACKs
 * that come in lumps widen the window (extra acked); two intervals of the same rate with 20 % loss
 * mean a policer, whose rate is then kept for 48 round trips; who restarts from idle paces at the
 * known rate. Windows are counted in segments and long times in the kernel's milliseconds.
 * Left out: the kernel's rounding of rates (here whole bits per second), BBR 2 and 3.
 */
#include <gradwire/plugin.h>

#define BBR_ONE 256u                       /* gains are in 1/256                                 */
#define BBR_HIGH_GAIN 739u                 /* 2 / ln 2                                           */
#define BBR_DRAIN_GAIN 88u
#define BBR_PHASES 8u
#define BBR_RATE_ROUNDS 10u
#define BBR_WINDOW_MIN 4u
#define BBR_WINDOW_FIRST 10u
#define BBR_FULL_GAIN 320u                 /* 1.25: a round that brings less found a limit       */
#define BBR_FULL_ROUNDS 3u
#define BBR_BURST_MAX 45u                  /* segments of 64 KiB                                 */
#define BBR_SLOW_BPS 1200000u              /* bursts of one segment below                        */
#define BBR_EXTRA_ROUNDS 5u
#define BBR_EXTRA_MAX_PS (100 * GW_PS_PER_MS)
#define BBR_EXTRA_RESET (1u << 20)
#define BBR_POLICER_ROUNDS 4u
#define BBR_POLICER_LOSS 50u               /* lost per 256 delivered                             */
#define BBR_POLICER_KEEP 48u
#define BBR_POLICER_DIFF_BPS 4000u

enum bbr_mode { BBR_STARTUP, BBR_DRAIN, BBR_PROBE_BW, BBR_PROBE_RTT };

struct bbr_conf {
    uint64_t min_rtt_window_ps, probe_rtt_ps;
};

/* Largest value of a sliding window in rounds, by three candidates (win_minmax). */
struct bbr_max {
    struct { uint64_t v; uint32_t round; } best[3];
};

struct bbr_priv {
    struct bbr_max rate;           /* bits per second                                            */
    uint64_t min_rtt_ps;           /* GW_NEVER: none yet                                         */
    uint64_t min_rtt_ms;           /* when it was seen                                           */
    uint64_t probe_done_ms;        /* end of PROBE_RTT; 0: still too much in flight              */
    uint64_t phase_ps;             /* begin of PROBE_BW's phase                                  */
    uint64_t round_bytes;          /* delivered when this round began                            */
    uint64_t full_bps;             /* rate when it last grew by 25 %                             */
    uint64_t epoch_ps;             /* extra acked: begin of the epoch                            */
    uint64_t epoch_segs;           /* acked in it                                                */
    uint32_t extra_segs[2];        /* largest of this and of the last window                     */
    uint32_t rounds, full_rounds, extra_rounds;
    uint32_t prior_segs;           /* window to come back to                                     */
    uint32_t phase;
    uint32_t pace_gain, window_gain;
    uint8_t  mode, state, extra_index;
    bool     round_start, full, conserve, idle_restart, probe_round_done, seen_rtt;

    /* Policers: long-term rate. */
    bool     lt_sampling, lt_use;
    uint32_t lt_rounds;
    uint64_t lt_bps;
    uint64_t lt_begin_ms, lt_delivered_bytes, lt_lost_bytes;
    uint64_t lost_bytes;           /* ever                                                       */
};

/* ---- small things --------------------------------------------------------------------------- */

static void bbr_max_reset(struct bbr_max *m, uint32_t round, uint64_t v)
{
    for (uint32_t i = 0; i < 3; i++) {
        m->best[i].v = v;
        m->best[i].round = round;
    }
}

static void bbr_max_shift(struct bbr_max *m, uint32_t round, uint64_t v)
{
    m->best[0] = m->best[1];
    m->best[1] = m->best[2];
    m->best[2].v = v;
    m->best[2].round = round;
}

static void bbr_max_add(struct bbr_max *m, uint32_t window, uint32_t round, uint64_t v)
{
    uint32_t age;

    if (v >= m->best[0].v || round - m->best[2].round > window) {
        bbr_max_reset(m, round, v);
        return;
    }
    for (uint32_t i = 1; i < 3; i++)
        if (v >= m->best[i].v)
            for (uint32_t k = i; k < 3; k++) {
                m->best[k].v = v;
                m->best[k].round = round;
            }
    age = round - m->best[0].round;
    if (age > window) {
        bbr_max_shift(m, round, v);
        if (round - m->best[0].round > window)
            bbr_max_shift(m, round, v);
    } else if (m->best[1].round == m->best[0].round && age > window / 4) {
        m->best[1].v = m->best[2].v = v;
        m->best[1].round = m->best[2].round = round;
    } else if (m->best[2].round == m->best[1].round && age > window / 2) {
        m->best[2].v = v;
        m->best[2].round = round;
    }
}

static uint64_t bbr_ms(uint64_t ps)
{
    return ps / GW_PS_PER_MS;
}

static uint32_t bbr_segs(const struct gw_cc *cc, uint64_t bytes)
{
    return (uint32_t)((bytes + cc->mss_bytes - 1) / cc->mss_bytes);
}

static uint32_t bbr_window(const struct gw_cc *cc)
{
    return (uint32_t)(cc->cwnd_bytes / cc->mss_bytes);
}

static void bbr_set(struct gw_cc *cc, uint32_t segs)
{
    cc->cwnd_bytes = (uint64_t)segs * cc->mss_bytes;
}

static uint32_t bbr_least(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

static uint32_t bbr_most(uint32_t a, uint32_t b)
{
    return a > b ? a : b;
}

/* The path's rate: measured, or a policer's. */
static uint64_t bbr_rate(const struct bbr_priv *b)
{
    return b->lt_use ? b->lt_bps : b->rate.best[0].v;
}

/* ---- the pace -------------------------------------------------------------------------------- */

static uint64_t bbr_pace_of(uint64_t bps, uint32_t gain)
{
    return gw_mul_div(bps, gain * 99u, BBR_ONE * 100u);
}

/* Before any rate is known: the window per round trip, or per millisecond. */
static void bbr_first_pace(struct gw_cc *cc, struct bbr_priv *b, uint64_t srtt_ps)
{
    b->seen_rtt = srtt_ps != 0;
    cc->pacing_bps = bbr_pace_of(gw_mul_div(cc->cwnd_bytes * 8, GW_PS_PER_S,
                                            srtt_ps ? srtt_ps : GW_PS_PER_MS), BBR_HIGH_GAIN);
}

static void bbr_set_pace(struct gw_cc *cc, struct bbr_priv *b, uint64_t bps, uint32_t gain)
{
    uint64_t pace = bbr_pace_of(bps, gain);

    if (b->full || pace > cc->pacing_bps)
        cc->pacing_bps = pace ? pace : 1;
}

/* ---- the window ------------------------------------------------------------------------------ */

/* Segments that a burst has at the present pace. */
static uint32_t bbr_burst(const struct gw_cc *cc)
{
    uint64_t segs = (cc->pacing_bps / 8 >> 10) / cc->mss_bytes;
    uint32_t least = cc->pacing_bps < BBR_SLOW_BPS ? 1 : 2;

    return segs > BBR_BURST_MAX ? BBR_BURST_MAX : bbr_most((uint32_t)segs, least);
}

/* rate x smallest RTT x gain, rounded up. */
static uint32_t bbr_bdp(const struct gw_cc *cc, const struct bbr_priv *b, uint64_t bps,
                        uint32_t gain)
{
    uint64_t bits, seg_bits = (uint64_t)cc->mss_bytes * 8 * BBR_ONE;

    if (b->min_rtt_ps == GW_NEVER)
        return BBR_WINDOW_FIRST;
    bits = gw_mul_div(bps, b->min_rtt_ps, GW_PS_PER_S) * gain;
    return (uint32_t)((bits + seg_bits - 1) / seg_bits);
}

/* Bursts at both ends need room as well; an even number spares delayed ACKs. */
static uint32_t bbr_with_bursts(const struct gw_cc *cc, const struct bbr_priv *b, uint32_t segs)
{
    segs = (segs + 3 * bbr_burst(cc) + 1) & ~1u;
    return b->mode == BBR_PROBE_BW && b->phase == 0 ? segs + 2 : segs;
}

static uint32_t bbr_inflight(const struct gw_cc *cc, const struct bbr_priv *b, uint32_t gain)
{
    return bbr_with_bursts(cc, b, bbr_bdp(cc, b, b->rate.best[0].v, gain));
}

/* What of @segs will still be under way when the pace lets the next burst go. */
static uint32_t bbr_at_next_send(const struct gw_cc *cc, const struct bbr_priv *b, uint32_t segs,
                                 uint64_t now_ps)
{
    uint64_t wait = cc->next_send_ps > now_ps ? cc->next_send_ps - now_ps : 0;
    uint64_t gone = gw_mul_div(bbr_rate(b), wait, GW_PS_PER_S) / (8 * cc->mss_bytes);

    if (b->pace_gain > BBR_ONE)
        segs += bbr_burst(cc);
    return gone >= segs ? 0 : segs - (uint32_t)gone;
}

static uint32_t bbr_extra(const struct gw_cc *cc, const struct bbr_priv *b)
{
    uint64_t most;

    if (!b->full)
        return 0;
    most = gw_mul_div(bbr_rate(b), BBR_EXTRA_MAX_PS, GW_PS_PER_S) / (8 * cc->mss_bytes);
    return bbr_least(bbr_most(b->extra_segs[0], b->extra_segs[1]),
                     most > UINT32_MAX ? UINT32_MAX : (uint32_t)most);
}

/* Remembers a window that was good. */
static void bbr_save(const struct gw_cc *cc, struct bbr_priv *b)
{
    if (b->state < GW_CC_RECOVERY && b->mode != BBR_PROBE_RTT)
        b->prior_segs = bbr_window(cc);
    else
        b->prior_segs = bbr_most(b->prior_segs, bbr_window(cc));
}

/* Recovery begins or ends, or goes on by what was delivered. True: that is the window. */
static bool bbr_recover(const struct gw_cc *cc, struct bbr_priv *b, const struct gw_cc_ack *a,
                        uint32_t *segs)
{
    uint32_t out = bbr_segs(cc, a->in_flight_after_bytes), lost = bbr_segs(cc, a->lost_bytes);

    if (lost)
        *segs = *segs > lost ? *segs - lost : 1;
    if (a->state == GW_CC_RECOVERY && b->state != GW_CC_RECOVERY) {
        b->conserve = true;
        b->round_bytes = a->delivered_bytes;
        *segs = out + a->acked_pkts;
    } else if (b->state >= GW_CC_RECOVERY && a->state < GW_CC_RECOVERY) {
        *segs = bbr_most(*segs, b->prior_segs);
        b->conserve = false;
    }
    b->state = a->state;
    if (b->conserve)
        *segs = bbr_most(*segs, out + a->acked_pkts);
    return b->conserve;
}

static void bbr_set_window(struct gw_cc *cc, struct bbr_priv *b, const struct gw_cc_ack *a)
{
    uint32_t segs = bbr_window(cc), target;

    if (a->acked_pkts && !bbr_recover(cc, b, a, &segs)) {
        target = bbr_bdp(cc, b, bbr_rate(b), b->window_gain) + bbr_extra(cc, b);
        target = bbr_with_bursts(cc, b, target);
        if (b->full)
            segs = bbr_least(segs + a->acked_pkts, target);
        else if (segs < target || a->delivered_bytes < BBR_WINDOW_FIRST * cc->mss_bytes)
            segs += a->acked_pkts;
        segs = bbr_most(segs, BBR_WINDOW_MIN);
    }
    bbr_set(cc, b->mode == BBR_PROBE_RTT ? bbr_least(segs, BBR_WINDOW_MIN) : segs);
}

/* ---- modes ----------------------------------------------------------------------------------- */

static void bbr_next_phase(struct bbr_priv *b, uint64_t now_ps)
{
    b->phase = (b->phase + 1) % BBR_PHASES;
    b->phase_ps = now_ps;
}

/* Any phase but the draining one comes first. */
static void bbr_probe_bw(struct gw_cc *cc, struct bbr_priv *b, uint64_t now_ps)
{
    b->mode = BBR_PROBE_BW;
    b->phase = BBR_PHASES - 1 - gw_rng_u32(&cc->rng) % (BBR_PHASES - 1);
    bbr_next_phase(b, now_ps);
}

/* Is the phase over: has it lasted an RTT, and reached what it was for? */
static bool bbr_phase_over(const struct gw_cc *cc, const struct bbr_priv *b,
                           const struct gw_cc_ack *a)
{
    bool rtt = a->now_ps - b->phase_ps > b->min_rtt_ps;
    uint32_t out;

    if (b->pace_gain == BBR_ONE)
        return rtt;
    out = bbr_at_next_send(cc, b, bbr_segs(cc, a->in_flight_bytes), a->now_ps);
    if (b->pace_gain > BBR_ONE)
        return rtt && (a->lost_bytes || out >= bbr_inflight(cc, b, b->pace_gain));
    return rtt || out <= bbr_inflight(cc, b, BBR_ONE);
}

static void bbr_check_full(struct bbr_priv *b, const struct gw_cc_ack *a)
{
    uint64_t rate = b->rate.best[0].v;

    if (b->full || !b->round_start || a->sample_app_limited)
        return;
    if (rate >= b->full_bps + b->full_bps * (BBR_FULL_GAIN - BBR_ONE) / BBR_ONE) {
        b->full_bps = rate;
        b->full_rounds = 0;
        return;
    }
    b->full = ++b->full_rounds >= BBR_FULL_ROUNDS;
}

static void bbr_check_drain(struct gw_cc *cc, struct bbr_priv *b, const struct gw_cc_ack *a)
{
    uint32_t fits;

    if (b->mode == BBR_STARTUP && b->full) {
        b->mode = BBR_DRAIN;
        cc->ssthresh_bytes = (uint64_t)bbr_inflight(cc, b, BBR_ONE) * cc->mss_bytes;
    }
    if (b->mode != BBR_DRAIN)
        return;
    fits = bbr_inflight(cc, b, BBR_ONE);
    if (bbr_at_next_send(cc, b, bbr_segs(cc, a->in_flight_after_bytes), a->now_ps) <= fits)
        bbr_probe_bw(cc, b, a->now_ps);
}

/* PROBE_RTT ends: the window comes back, and the mode that was before. */
static void bbr_probe_rtt_done(struct gw_cc *cc, struct bbr_priv *b, uint64_t now_ps)
{
    if (!b->probe_done_ms || bbr_ms(now_ps) <= b->probe_done_ms)
        return;
    b->min_rtt_ms = bbr_ms(now_ps);
    bbr_set(cc, bbr_most(bbr_window(cc), b->prior_segs));
    if (b->full)
        bbr_probe_bw(cc, b, now_ps);
    else
        b->mode = BBR_STARTUP;
}

static void bbr_probe_rtt(struct gw_cc *cc, struct bbr_priv *b, const struct gw_cc_ack *a)
{
    const struct bbr_conf *conf = cc->conf;

    if (!b->probe_done_ms) {
        if (a->in_flight_after_bytes > (uint64_t)BBR_WINDOW_MIN * cc->mss_bytes)
            return;
        b->probe_done_ms = bbr_ms(a->now_ps) + bbr_ms(conf->probe_rtt_ps);
        b->probe_round_done = false;
        b->round_bytes = a->delivered_bytes;
        return;
    }
    b->probe_round_done |= b->round_start;
    if (b->probe_round_done)
        bbr_probe_rtt_done(cc, b, a->now_ps);
}

static void bbr_update_min_rtt(struct gw_cc *cc, struct bbr_priv *b, const struct gw_cc_ack *a)
{
    const struct bbr_conf *conf = cc->conf;
    uint64_t now_ms = bbr_ms(a->now_ps);
    bool expired = now_ms > b->min_rtt_ms + bbr_ms(conf->min_rtt_window_ps);

    /* The ACK of less than a segment may have been delayed. */
    if (a->rtt_ps && (a->rtt_ps < b->min_rtt_ps ||
                      (expired && a->acked_bytes >= cc->mss_bytes))) {
        b->min_rtt_ps = a->rtt_ps;
        b->min_rtt_ms = now_ms;
    }
    if (conf->probe_rtt_ps && expired && !b->idle_restart && b->mode != BBR_PROBE_RTT) {
        b->mode = BBR_PROBE_RTT;
        bbr_save(cc, b);
        b->probe_done_ms = 0;
    }
    if (b->mode == BBR_PROBE_RTT) {
        bbr_probe_rtt(cc, b, a);
        cc->low_rate = true;
    } else {
        cc->low_rate = false;
    }
    if (a->sample_ps && a->delivered_bytes > a->sample_prior_bytes)
        b->idle_restart = false;
}

static void bbr_update_gains(struct bbr_priv *b)
{
    static const uint32_t cycle[BBR_PHASES] = {
        BBR_ONE * 5 / 4, BBR_ONE * 3 / 4, BBR_ONE, BBR_ONE, BBR_ONE, BBR_ONE, BBR_ONE, BBR_ONE,
    };

    switch ((enum bbr_mode)b->mode) {
    case BBR_STARTUP:
        b->pace_gain = b->window_gain = BBR_HIGH_GAIN;
        break;
    case BBR_DRAIN:
        b->pace_gain = BBR_DRAIN_GAIN;
        b->window_gain = BBR_HIGH_GAIN;
        break;
    case BBR_PROBE_BW:
        b->pace_gain = b->lt_use ? BBR_ONE : cycle[b->phase];
        b->window_gain = 2 * BBR_ONE;
        break;
    case BBR_PROBE_RTT:
        b->pace_gain = b->window_gain = BBR_ONE;
        break;
    }
}

/* ---- policers -------------------------------------------------------------------------------- */

static void bbr_lt_interval(struct bbr_priv *b, uint64_t delivered_bytes, uint64_t now_ps)
{
    b->lt_begin_ms = bbr_ms(now_ps);
    b->lt_delivered_bytes = delivered_bytes;
    b->lt_lost_bytes = b->lost_bytes;
    b->lt_rounds = 0;
}

static void bbr_lt_reset(struct bbr_priv *b, uint64_t delivered_bytes, uint64_t now_ps)
{
    b->lt_bps = 0;
    b->lt_use = b->lt_sampling = false;
    bbr_lt_interval(b, delivered_bytes, now_ps);
}

/* An interval that lost a fifth has ended: with the rate of the last one it is a policer's. */
static void bbr_lt_done(struct bbr_priv *b, uint64_t bps, uint64_t delivered_bytes,
                        uint64_t now_ps)
{
    uint64_t diff = bps > b->lt_bps ? bps - b->lt_bps : b->lt_bps - bps;

    if (b->lt_bps && (diff <= b->lt_bps / 8 || diff <= BBR_POLICER_DIFF_BPS)) {
        b->lt_bps = (bps + b->lt_bps) / 2;
        b->lt_use = true;
        b->pace_gain = BBR_ONE;
        b->lt_rounds = 0;
        return;
    }
    b->lt_bps = bps;
    bbr_lt_interval(b, delivered_bytes, now_ps);
}

static void bbr_lt_sample(struct gw_cc *cc, struct bbr_priv *b, const struct gw_cc_ack *a,
                          bool lost)
{
    uint64_t delivered, ms;

    if (b->lt_use) {
        if (b->mode == BBR_PROBE_BW && b->round_start && ++b->lt_rounds >= BBR_POLICER_KEEP) {
            bbr_lt_reset(b, a->delivered_bytes, a->now_ps);
            bbr_probe_bw(cc, b, a->now_ps);
        }
        return;
    }
    if (!b->lt_sampling) {                         /* the first loss: the tokens are used up     */
        if (!lost)
            return;
        bbr_lt_interval(b, a->delivered_bytes, a->now_ps);
        b->lt_sampling = true;
    }
    if (a->sample_app_limited) {
        bbr_lt_reset(b, a->delivered_bytes, a->now_ps);
        return;
    }
    b->lt_rounds += b->round_start;
    if (b->lt_rounds < BBR_POLICER_ROUNDS)
        return;
    if (b->lt_rounds > 4 * BBR_POLICER_ROUNDS) {
        bbr_lt_reset(b, a->delivered_bytes, a->now_ps);
        return;
    }
    delivered = a->delivered_bytes - b->lt_delivered_bytes;
    ms = bbr_ms(a->now_ps) - b->lt_begin_ms;
    if (!lost || !delivered || !ms ||
        (b->lost_bytes - b->lt_lost_bytes) * BBR_ONE < BBR_POLICER_LOSS * delivered)
        return;
    bbr_lt_done(b, gw_mul_div(delivered * 8, 1000, ms), a->delivered_bytes, a->now_ps);
}

/* ---- the model ------------------------------------------------------------------------------- */

static void bbr_update_rate(struct gw_cc *cc, struct bbr_priv *b, const struct gw_cc_ack *a)
{
    b->round_start = false;
    if (!a->sample_ps)
        return;
    if (a->sample_prior_bytes >= b->round_bytes) {
        b->round_bytes = a->delivered_bytes;
        b->rounds++;
        b->round_start = true;
        b->conserve = false;
    }
    bbr_lt_sample(cc, b, a, a->lost_bytes != 0);
    if (!a->sample_app_limited || a->rate_bps >= b->rate.best[0].v)
        bbr_max_add(&b->rate, BBR_RATE_ROUNDS, b->rounds, a->rate_bps);
}

/* How much more was acknowledged than the rate explains: lumps, for which the window must last. */
static void bbr_update_extra(struct gw_cc *cc, struct bbr_priv *b, const struct gw_cc_ack *a)
{
    uint64_t expected, extra;

    if (!a->acked_pkts || !a->sample_ps)
        return;
    if (b->round_start && ++b->extra_rounds >= BBR_EXTRA_ROUNDS) {
        b->extra_rounds = 0;
        b->extra_index ^= 1;
        b->extra_segs[b->extra_index] = 0;
    }
    expected = gw_mul_div(bbr_rate(b), a->now_ps - b->epoch_ps, GW_PS_PER_S) / (8 * cc->mss_bytes);
    if (b->epoch_segs <= expected || b->epoch_segs + a->acked_pkts >= BBR_EXTRA_RESET) {
        b->epoch_segs = expected = 0;
        b->epoch_ps = a->now_ps;
    }
    b->epoch_segs += a->acked_pkts;
    extra = b->epoch_segs - expected;
    if (extra > bbr_window(cc))
        extra = bbr_window(cc);
    b->extra_segs[b->extra_index] = bbr_most(b->extra_segs[b->extra_index], (uint32_t)extra);
}

static void bbr_on_ack(struct gw_cc *cc, const struct gw_cc_ack *a)
{
    struct bbr_priv *b = cc->priv;

    b->lost_bytes += a->lost_bytes;
    bbr_update_rate(cc, b, a);
    bbr_update_extra(cc, b, a);
    if (b->mode == BBR_PROBE_BW && bbr_phase_over(cc, b, a))
        bbr_next_phase(b, a->now_ps);
    bbr_check_full(b, a);
    bbr_check_drain(cc, b, a);
    bbr_update_min_rtt(cc, b, a);
    bbr_update_gains(b);
    if (!b->seen_rtt && a->srtt_ps)
        bbr_first_pace(cc, b, a->srtt_ps);
    bbr_set_pace(cc, b, bbr_rate(b), b->pace_gain);
    bbr_set_window(cc, b, a);
}

static void bbr_on_loss(struct gw_cc *cc, const struct gw_cc_ack *a, bool is_ecn)
{
    (void)a;
    (void)is_ecn;
    bbr_save(cc, cc->priv);
}

static void bbr_on_timeout(struct gw_cc *cc, const struct gw_cc_ack *a)
{
    struct bbr_priv *b = cc->priv;

    bbr_save(cc, b);
    b->state = GW_CC_LOSS;
    b->full_bps = 0;
    b->round_start = true;
    bbr_lt_sample(cc, b, a, true);
}

static void bbr_on_undo(struct gw_cc *cc, uint64_t now_ps)
{
    struct bbr_priv *b = cc->priv;

    b->full_bps = 0;
    b->full_rounds = 0;
    bbr_lt_reset(b, b->lt_delivered_bytes, now_ps);
}

/* From idle the pace is the known rate; more would only fill a queue. */
static void bbr_on_sent(struct gw_cc *cc, uint64_t bytes, uint64_t in_flight_bytes,
                        bool app_limited, uint64_t now_ps)
{
    struct bbr_priv *b = cc->priv;

    (void)bytes;
    if (in_flight_bytes || !app_limited)
        return;
    b->idle_restart = true;
    b->epoch_ps = now_ps;
    b->epoch_segs = 0;
    if (b->mode == BBR_PROBE_BW)
        bbr_set_pace(cc, b, bbr_rate(b), BBR_ONE);
    else if (b->mode == BBR_PROBE_RTT)
        bbr_probe_rtt_done(cc, b, now_ps);
}

static void bbr_init(struct gw_cc *cc, uint64_t now_ps)
{
    struct bbr_priv *b = cc->priv;

    memset(b, 0, sizeof *b);
    b->min_rtt_ps = GW_NEVER;
    b->min_rtt_ms = bbr_ms(now_ps);
    b->epoch_ps = now_ps;
    bbr_lt_reset(b, 0, now_ps);
    bbr_update_gains(b);
    bbr_first_pace(cc, b, 0);
}

static const struct gw_cc_ops bbr_ops = {
    .priv_bytes  = sizeof(struct bbr_priv),
    .conf_bytes  = sizeof(struct bbr_conf),
    .init        = bbr_init,
    .on_ack      = bbr_on_ack,
    .on_loss     = bbr_on_loss,
    .on_timeout  = bbr_on_timeout,
    .on_undo     = bbr_on_undo,
    .on_sent     = bbr_on_sent,
    .paces       = true,
    .samples     = true,
    .owns_window = true,
};

static const struct gw_param bbr_params[] = {
    { "min_rtt_window", GW_P_TIME, offsetof(struct bbr_conf, min_rtt_window_ps), "10s", "1ms",
      "1h", "How long the smallest round-trip time is believed." },
    { "probe_rtt", GW_P_TIME, offsetof(struct bbr_conf, probe_rtt_ps), "200ms", "0", "10s",
      "How long the flow then sends four segments a round trip to measure it anew; 0: never." },
};

GW_PLUGIN(gw_cc_bbr) = {
    GW_PLUGIN_HEAD(GW_KIND_CC, bbr_ops),
    .name    = "bbr",
    .summary = "Paces at the largest delivery rate seen; loss is no signal (version 1).",
    .params  = bbr_params, .param_count = GW_ARRAY_LEN(bbr_params),
    .source  = "Cardwell et al., ACM Queue 14(5), 2016; Linux 6.1 tcp_bbr.c",
};
