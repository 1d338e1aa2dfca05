/*
 * test_sch_pie - pie and fq_pie: the controller by hand, the recorded run, words, invariants
 *
 * The recorded run (pie_o10: 25000 frames of 1000 bytes every 0.9 ms into 8 Mbit/s): 2486 lost,
 * longest queue 130, long-run loss the overload, mean delay of the second half 14.4 to 15.0 ms.
 */
#include "tests/unit/fake_qdisc.h"

#include <gradwire/alg/pie.h>

#include <math.h>

extern const struct gw_plugin gw_qdisc_pie, gw_qdisc_fq_pie;

/* ---- the controller ----------------------------------------------------------------------- */

static const uint64_t unit = GW_PIE_MAX_PROB / GW_PIE_TICKS_PER_S;

/* One update from a state, the new probability worked out by hand. */
static void test_update(void)
{
    const uint64_t alpha = 2 * unit >> 4, beta = 20 * unit >> 4, top = GW_PIE_MAX_PROB;
    const uint64_t ms = 15625;
    const struct {
        const char *name;
        uint64_t prob, qdelay, old, backlog, want;
    } rows[] = {
        { "from 0: gains / 2 / 4^5", 0, 20 * ms, 15 * ms, 1,
          (alpha >> 11) * (5 * ms) + (beta >> 11) * (5 * ms) },
        { "at 20 %: full gains", top / 5, 20 * ms, 18 * ms, 1,
          top / 5 + alpha * (5 * ms) + beta * (2 * ms) },
        { "at 5 %: halved", top / 20, 20 * ms, 20 * ms, 1, top / 20 + (alpha >> 1) * (5 * ms) },
        { "at 0.5 %: halved and / 4", top / 200, 20 * ms, 20 * ms, 1,
          top / 200 + (alpha >> 3) * (5 * ms) },
        { "capped at 2 % from 10 % up", top / 5, 200 * ms, 0, 1, top / 5 + top / 100 * 2 },
        { "2 % more above 250 ms", top / 20, 251 * ms, 251 * ms, 1,
          top / 20 + (alpha >> 1) * (236 * ms) + top / 50 },
        { "falls, not below 0", top / 1000, 0, 15 * ms, 1, 0 },
        { "empty twice: 63/64", top / 2, 0, 0, 0,
          (top / 2 - alpha * (15 * ms)) - (top / 2 - alpha * (15 * ms)) / 64 },
        { "0 delay with a backlog: no 63/64", top / 2, 0, 0, 1, top / 2 - alpha * (15 * ms) },
    };

    for (size_t i = 0; i < GW_ARRAY_LEN(rows); i++) {
        struct gw_pie_params p;
        struct gw_pie v = { .prob = rows[i].prob, .qdelay = rows[i].qdelay,
                            .qdelay_old = rows[i].old };

        gw_pie_params_init(&p, 1514);
        gw_pie_update(&v, &p, rows[i].backlog);
        CHECK_ROW(v.prob == rows[i].want, "%s: %.9g instead of %.9g", rows[i].name,
                  (double)v.prob / (double)top, (double)rows[i].want / (double)top);
    }
}

/* Drops at a fixed probability: their share, and the gaps that the accumulated one allows. */
static void test_share(void)
{
    static const double probs[] = { 0.011, 0.047, 0.13, 0.31 };

    for (size_t i = 0; i < GW_ARRAY_LEN(probs); i++) {
        enum { N = 2000000 };
        struct gw_pie_params p;
        struct gw_pie v = { .prob = (uint64_t)(probs[i] * (double)GW_PIE_MAX_PROB),
                            .qdelay = 40 * 15625 };
        uint32_t drops = 0, gap = 0, least = UINT32_MAX, most = 0;
        double start = ceil(0.85 / probs[i]), run = ceil(8.5 / probs[i]), mean = 0, alive = 1;
        double square = 0, rate, bound;
        struct gw_rng r;

        gw_pie_params_init(&p, 1514);
        gw_rng_open(&r, 41 + i, "pie");
        for (uint32_t n = 0; n < N; n++) {
            bool drop = gw_pie_drop_early(&v, &p, 100000, 1000, &r);

            gap++;
            if (!drop)
                continue;
            v.accu_prob = 0;
            least = gap < least ? gap : least;
            most = gap > most ? gap : most;
            gap = 0;
            drops++;
        }
        for (double k = start; k <= run; k++) {       /* gap k: first chance at `start`        */
            double q = k == run ? 1 : probs[i];

            mean += k * alive * q;
            square += k * k * alive * q;
            alive *= 1 - q;
        }
        rate = N / mean;
        bound = 3.29 * sqrt(N / mean * (square - mean * mean) / mean / mean) + 2;
        CHECK_ROW(fabs(drops - rate) < bound, "prob %g: %u drops, expected %.0f +- %.0f",
                  probs[i], drops, rate, bound);
        CHECK_ROW(least == (uint32_t)start && most <= (uint32_t)run, "prob %g: gaps %u to %u, "
                  "allowed %.0f to %.0f", probs[i], least, most, start, run);
    }
}

/* What keeps PIE from dropping. */
static void test_mercy(void)
{
    const uint64_t half = GW_PIE_MAX_PROB / 2, ms = 15625;
    const struct { const char *name; uint32_t burst; uint64_t prob, qdelay, backlog; bool drop; }
    rows[] = {
        { "burst allowance", 1, half, 90 * ms, 99999, false },
        { "short delay, low probability", 0, GW_PIE_MAX_PROB / 5 - 1, 7 * ms, 99999, false },
        { "short delay, 20 %", 0, GW_PIE_MAX_PROB / 5, 7 * ms, 99999, true },
        { "half the target", 0, GW_PIE_MAX_PROB / 8, 117187, 99999, true },
        { "less than two frames", 0, half, 90 * ms, 3027, false },
        { "two frames", 0, half, 90 * ms, 3028, true },
        { "probability 0", 0, 0, 90 * ms, 99999, false },
    };

    for (size_t i = 0; i < GW_ARRAY_LEN(rows); i++) {
        struct gw_pie_params p;
        struct gw_pie v = { .burst_time = rows[i].burst, .prob = rows[i].prob,
                            .qdelay = rows[i].qdelay };
        bool drop = false;
        struct gw_rng r;

        gw_pie_params_init(&p, 1514);
        gw_rng_open(&r, 1, "pie");
        for (int n = 0; n < 200; n++)
            drop = gw_pie_drop_early(&v, &p, rows[i].backlog, 1000, &r) || drop;
        CHECK_ROW(drop == rows[i].drop, "%s", rows[i].name);
    }
}

/* bytemode: a frame of a tenth of the MTU is dropped a tenth as often. */
static void test_bytemode(void)
{
    uint32_t drops[2] = { 0, 0 };

    for (int small = 0; small < 2; small++) {
        struct gw_pie_params p;
        struct gw_pie v = { .prob = GW_PIE_MAX_PROB / 5, .qdelay = 40 * 15625 };
        struct gw_rng r;

        gw_pie_params_init(&p, 1500);
        p.bytemode = true;
        gw_rng_open(&r, 9, "pie");
        for (int n = 0; n < 400000; n++)
            if (gw_pie_drop_early(&v, &p, 100000, small ? 150 : 1500, &r)) {
                v.accu_prob = 0;
                drops[small]++;
            }
    }
    CHECK_ROW(fabs((double)drops[1] / drops[0] - 0.1) < 0.01, "%u against %u", drops[1], drops[0]);
}

/* ---- runs --------------------------------------------------------------------------------- */

struct figures {
    double lost_late, delay_late;    /* of the second half                                     */
};

static struct figures second_half(const struct fake *f)
{
    struct figures x = { 0, 0 };
    uint64_t n = 0;

    for (uint64_t i = f->frames / 2; i < f->frames; i++) {
        if (f->fate[i].left_ps == GW_NEVER) {
            x.lost_late++;
        } else {
            x.delay_late += (double)(f->fate[i].left_ps - f->fate[i].sent_ps) / 1e9;
            n++;
        }
    }
    x.lost_late /= (double)(f->frames - f->frames / 2);
    x.delay_late /= (double)n;
    return x;
}

/* The recorded run and others like it: the loss is the overload, the delay near the target. */
static void test_overload(void)
{
    static const struct {
        const char *words;
        uint64_t interval_ns;
        double   loss, delay_ms;
    } rows[] = {
        { "", 900000, 0.1, 14.7 },
        { "", 800000, 0.2, 14.7 },
        { "target 30ms", 900000, 0.1, 29.5 },
        { "dq_rate_estimator", 900000, 0.1, 15 },
    };

    for (size_t i = 0; i < GW_ARRAY_LEN(rows); i++) {
        struct fake_gen g[] = { { .size = 1000, .interval_ns = rows[i].interval_ns,
                                  .count = 25000 }, { .count = 0 } };
        struct figures x;
        struct fake f;

        CU_ASSERT_FATAL(fake_start(&f, &gw_qdisc_pie, rows[i].words, 3) == GW_OK);
        f.rate_bps = 8000000;
        fake_run(&f, g);
        fake_check(&f);
        x = second_half(&f);
        CHECK_ROW(fabs(x.lost_late - rows[i].loss) < 0.005, "%s: loss %.4f instead of %.4f",
                  rows[i].words, x.lost_late, rows[i].loss);
        CHECK_ROW(fabs(x.delay_late / rows[i].delay_ms - 1) < 0.1, "%s: delay %.2f ms instead of "
                  "%.2f", rows[i].words, x.delay_late, rows[i].delay_ms);
        CU_ASSERT_EQUAL(f.timers, 0);                   /* the clock has come to rest          */
        if (!i)
            CHECK_ROW(f.dropped > 2420 && f.dropped < 2550, "%llu lost, 2486 were recorded",
                      (unsigned long long)f.dropped);
        fake_end(&f);
    }
}

/* With ecn, marks take the place of drops while the probability is at most 10 %. */
static void test_ecn(void)
{
    struct fake_gen g[] = { { .size = 1000, .interval_ns = 970000, .count = 25000, .ecn = 2 },
                            { .count = 0 } };
    uint64_t marks = 0;
    struct fake f;

    CU_ASSERT_FATAL(fake_start(&f, &gw_qdisc_pie, "ecn limit 5000", 3) == GW_OK);
    f.rate_bps = 8000000;
    fake_run(&f, g);
    fake_check(&f);
    for (uint64_t i = 0; i < f.frames; i++)
        marks += f.fate[i].ce;
    CU_ASSERT(marks > 300);
    CU_ASSERT_EQUAL(marks, f.q.marked_pkts);
    CU_ASSERT(f.dropped > 0);              /* marks do not slow these frames: above 10 % it drops */
    fake_end(&f);
}

static void test_limit(void)
{
    struct fake_gen g[] = { { .size = 500, .count = 40, .burst = 40 }, { .count = 0 } };
    struct fake f;

    CU_ASSERT_FATAL(fake_start(&f, &gw_qdisc_pie, "limit 7", 3) == GW_OK);
    f.rate_bps = 1000000;
    fake_run(&f, g);
    fake_check(&f);
    CU_ASSERT_EQUAL(f.left, 8);                         /* one at once, seven that waited      */
    CU_ASSERT_EQUAL(f.q.drops[GW_DROP_QUEUE_FULL], 32);
    fake_end(&f);
}

/* A smaller limit throws out what waits. */
static void test_change(void)
{
    static const char *const lines[] = { "limit 3", "target 1s noecn", "alpha 0 limit 0" };
    struct fake_out x;
    struct fake f;
    struct fake_gen g = { .size = 500 };

    CU_ASSERT_FATAL(fake_start(&f, &gw_qdisc_pie, "limit 10 ecn bytemode", 3) == GW_OK);
    fake_frames(&f, 10);
    for (uint32_t i = 0; i < 10; i++)
        fake_send(&f, i, &g, 0, i);
    for (size_t i = 0; i < GW_ARRAY_LEN(lines); i++)
        CU_ASSERT_EQUAL(fake_change(&f, lines[i]), GW_OK);
    CU_ASSERT_EQUAL(f.dropped, 7);
    CU_ASSERT_STRING_EQUAL(fake_show(&f, &x, true, false), "limit=3 target=1000000 tupdate=20000 "
                           "alpha=2 beta=20 bytemode=true ");
    f.ops->reset(&f.q, 0);
    CU_ASSERT_EQUAL(f.q.backlog_pkts, 0);
    CU_ASSERT_EQUAL(f.q.backlog_bytes, 0);
    fake_end(&f);
}

/* ---- words: as recorded from iproute2 6.1 on Linux 6.1 with HZ 100 ------------------------- */

static void test_words(void)
{
    static const struct { const char *words, *json; } rows[] = {
        { "", "limit=1000 target=15000 tupdate=20000 alpha=2 beta=20 " },
        { "limit 10 target 1us tupdate 1ms",
          "limit=10 target=0 tupdate=10000 alpha=2 beta=20 " },
        { "target 100ms tupdate 15ms", "limit=1000 target=100000 tupdate=20000 alpha=2 beta=20 " },
        { "tupdate 0", "limit=1000 target=15000 tupdate=20000 alpha=2 beta=20 " },
        { "limit 0 target 0", "limit=1000 target=15000 tupdate=20000 alpha=2 beta=20 " },
        { "tupdate 11ms bytemode noecn no_dq_rate_estimator",
          "limit=1000 target=15000 tupdate=20000 alpha=2 beta=20 bytemode=true " },
        { "alpha 32 beta 32", "limit=1000 target=15000 tupdate=20000 alpha=32 beta=32 " },
        { "alpha 0 beta 0", "limit=1000 target=15000 tupdate=20000 alpha=2 beta=20 " },
        { "target 300s", "limit=1000 target=3647256 tupdate=20000 alpha=2 beta=20 " },
        { "limit 4294967295", "limit=4294967295 target=15000 tupdate=20000 alpha=2 beta=20 " },
        { "bytemode ecn dq_rate_estimator", "limit=1000 target=15000 tupdate=20000 alpha=2 beta=20 "
          "ecn=true bytemode=true dq_rate_estimator=true " },
    };

    for (size_t i = 0; i < GW_ARRAY_LEN(rows); i++) {
        struct fake_out x;
        struct fake f;

        CU_ASSERT_FATAL(fake_start(&f, &gw_qdisc_pie, rows[i].words, 1) == GW_OK);
        CHECK_ROW(!strcmp(fake_show(&f, &x, true, false), rows[i].json), "%s: %s", rows[i].words,
                  x.text);
        fake_end(&f);
    }
}

static void test_refused(void)
{
    static const struct { const struct gw_plugin *p; const char *words; enum gw_status want; }
    rows[] = {
        { &gw_qdisc_pie, "alpha 33", GW_SYNTAX }, { &gw_qdisc_pie, "alpha -1", GW_SYNTAX },
        { &gw_qdisc_pie, "beta abc", GW_SYNTAX }, { &gw_qdisc_pie, "limit 10p", GW_SYNTAX },
        { &gw_qdisc_pie, "limit", GW_INCOMPLETE }, { &gw_qdisc_pie, "target", GW_INCOMPLETE },
        { &gw_qdisc_pie, "target abc", GW_SYNTAX }, { &gw_qdisc_pie, "bogus", GW_SYNTAX },
        { &gw_qdisc_pie, "nodq_rate_estimator", GW_SYNTAX },
        { &gw_qdisc_pie, "flows 3", GW_SYNTAX },
        { &gw_qdisc_fq_pie, "quantum 1048577", GW_PARAM },
        { &gw_qdisc_fq_pie, "flows 65537", GW_PARAM }, { &gw_qdisc_fq_pie, "flows", GW_INCOMPLETE },
        { &gw_qdisc_fq_pie, "ecn_prob 100", GW_SYNTAX },
        { &gw_qdisc_fq_pie, "quantum 1x", GW_SYNTAX }, { &gw_qdisc_fq_pie, "alpha 33", GW_SYNTAX },
    };

    for (size_t i = 0; i < GW_ARRAY_LEN(rows); i++) {
        struct fake f;

        CHECK_ROW(fake_start(&f, rows[i].p, rows[i].words, 1) == rows[i].want && *f.err.text,
                  "%s: %s", rows[i].words, f.err.text);
        fake_end(&f);
    }
}

static void test_stats_text(void)
{
    struct fake_out x;
    struct fake f;

    CU_ASSERT_FATAL(fake_start(&f, &gw_qdisc_pie, "", 1) == GW_OK);
    CU_ASSERT_STRING_EQUAL(fake_show(&f, &x, false, true), "  prob 0 delay 0us\n  pkts_in 0 "
                           "overlimit 0 dropped 0 maxq 0 ecn_mark 0");
    fake_end(&f);
    CU_ASSERT_FATAL(fake_start(&f, &gw_qdisc_pie, "dq_rate_estimator", 1) == GW_OK);
    CU_ASSERT_STRING_EQUAL(fake_show(&f, &x, true, true), "prob=0 delay=0 avg_dq_rate=0 pkts_in=0 "
                           "overlimit=0 dropped=0 maxq=0 ecn_mark=0 ");
    fake_end(&f);
}

/* ---- fq_pie ------------------------------------------------------------------------------- */

static void test_fq_show(void)
{
    struct fake_out x;
    struct fake f;

    CU_ASSERT_FATAL(fake_start(&f, &gw_qdisc_fq_pie, "flows 64 ecn ecn_prob 25", 1) == GW_OK);
    CU_ASSERT_STRING_EQUAL(fake_show(&f, &x, true, false), "limit=10240 flows=64 target=15000 "
        "tupdate=20000 alpha=2 beta=20 quantum=1514 memory_limit=33554432 ecn_prob=25 ecn=true ");
    CU_ASSERT_EQUAL(fake_change(&f, "flows 32"), GW_PARAM);
    CU_ASSERT_EQUAL(fake_change(&f, "quantum 300 limit 50"), GW_OK);
    CU_ASSERT_STRING_EQUAL(fake_show(&f, &x, false, false), "limit 50p flows 64 target 15000us "
        "tupdate 20000us alpha 2 beta 20 quantum 300b memory_limit 33554432b ecn_prob 25 ecn ");
    fake_end(&f);
}

/* Two greedy flows share alike whatever their packet sizes; a thin one loses nothing and waits
 * little; each flow keeps its order. */
static void test_fq_shares(void)
{
    struct fake_gen g[] = {
        { .flow = 1, .size = 1500, .interval_ns = 1500000, .count = 13000 },
        { .flow = 2, .size = 300, .interval_ns = 300000, .count = 65000 },
        { .flow = 3, .size = 200, .interval_ns = 20000000, .count = 975 },
        { .count = 0 },
    };
    uint64_t bytes[3] = { 0 }, lost[3] = { 0 }, last[3] = { 0 };
    double wait = 0;
    struct fake f;

    CU_ASSERT_FATAL(fake_start(&f, &gw_qdisc_fq_pie, "", 5) == GW_OK);
    f.rate_bps = 8000000;
    fake_run(&f, g);
    fake_check(&f);
    for (uint64_t i = 0; i < f.frames; i++) {
        const struct fake_fate *x = &f.fate[i];
        double ms = (double)(x->left_ps - x->sent_ps) / 1e9;

        if (x->left_ps == GW_NEVER) {
            lost[x->gen]++;
            continue;
        }
        CU_ASSERT(x->left_ps >= last[x->gen]);
        last[x->gen] = x->left_ps;
        if (x->sent_ps > 8 * GW_PS_PER_S && x->left_ps < 19 * GW_PS_PER_S)
            bytes[x->gen] += g[x->gen].size;
        if (x->gen == 2 && ms > wait)
            wait = ms;
    }
    CHECK_ROW(fabs((double)bytes[0] / (double)bytes[1] - 1) < 0.02, "%llu and %llu bytes",
              (unsigned long long)bytes[0], (unsigned long long)bytes[1]);
    CU_ASSERT_EQUAL(lost[2], 0);
    CHECK_ROW(wait < 5, "the thin flow waited %.2f ms", wait);
    CU_ASSERT_EQUAL(f.timers, 0);
    fake_end(&f);
}

/* A filter's class is the queue; with one queue for all, fq_pie is pie. */
static void test_fq_classify(void)
{
    struct fake_gen g[] = { { .flow = 1, .size = 1000, .interval_ns = 900000, .count = 25000 },
                            { .count = 0 } };
    struct figures x;
    struct fake f;

    CU_ASSERT_FATAL(fake_start(&f, &gw_qdisc_fq_pie, "flows 1", 3) == GW_OK);
    f.classid = 0x10001;
    f.rate_bps = 8000000;
    fake_run(&f, g);
    fake_check(&f);
    x = second_half(&f);
    CHECK_ROW(fabs(x.lost_late - 0.1) < 0.005, "loss %.4f", x.lost_late);
    CHECK_ROW(fabs(x.delay_late / 14.7 - 1) < 0.1, "delay %.2f ms", x.delay_late);
    fake_end(&f);
}

/* The limit holds in all; a smaller one throws out; reset empties. */
static void test_fq_limit(void)
{
    struct fake_gen g = { .size = 500 };
    struct fake f;

    CU_ASSERT_FATAL(fake_start(&f, &gw_qdisc_fq_pie, "limit 30", 3) == GW_OK);
    fake_frames(&f, 60);
    for (uint32_t i = 0; i < 60; i++) {
        g.flow = i % 7;
        fake_send(&f, i, &g, 0, i);
    }
    CU_ASSERT_EQUAL(f.q.backlog_pkts, 30);
    CU_ASSERT_EQUAL(fake_change(&f, "limit 11"), GW_OK);
    CU_ASSERT_EQUAL(f.q.backlog_pkts, 11);
    f.ops->reset(&f.q, 0);
    CU_ASSERT_EQUAL(f.q.backlog_pkts, 0);
    CU_ASSERT_PTR_NULL(f.ops->dequeue(&f.q, 0));
    fake_end(&f);
}

static const struct gw_case cases[] = {
    { "the update by hand", test_update },
    { "share and gaps of drops", test_share },
    { "what keeps it from dropping", test_mercy },
    { "bytemode", test_bytemode },
    { "overload, as recorded", test_overload },
    { "ecn", test_ecn },
    { "limit", test_limit },
    { "change", test_change },
    { "words, as recorded", test_words },
    { "refused words", test_refused },
    { "statistics", test_stats_text },
    { "fq_pie: show and change", test_fq_show },
    { "fq_pie: shares", test_fq_shares },
    { "fq_pie: a class from a filter", test_fq_classify },
    { "fq_pie: limit", test_fq_limit },
    { NULL, NULL },
};
const struct gw_suite suite_sch_pie = { "sch_pie", cases };
