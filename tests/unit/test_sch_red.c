/*
 * test_sch_red - red, gred, choke and ecn_threshold: rates and delays of the kernel, gaps, words
 */
#include "tests/unit/fake_qdisc.h"

#include <gradwire/alg/red.h>

extern const struct gw_plugin gw_qdisc_red, gw_qdisc_gred, gw_qdisc_choke, gw_qdisc_ecn_threshold;

#define HTB_8MBIT UINT64_C(1000000), 1600
#define RED_WORDS "limit 200000 min 20000 max 60000 avpkt 1000 burst 34 bandwidth 8mbit " \
                  "probability 0.1"

struct sum {
    uint64_t sent, got, ce;
    double   delay_ms;
};

static void sum_up(const struct fake *f, uint32_t gen, struct sum *s)
{
    *s = (struct sum){ 0 };
    for (uint64_t i = 0; i < f->frames; i++) {
        const struct fake_fate *x = &f->fate[i];

        if (x->gen != gen)
            continue;
        s->sent++;
        if (x->left_ps == GW_NEVER)
            continue;
        s->got++;
        s->ce += x->ce;
        s->delay_ms += (double)(x->left_ps - x->sent_ps) / 1e9;
    }
    s->delay_ms /= s->got ? (double)s->got : 1;
}

static double loss(const struct sum *s)
{
    return 1 - (double)s->got / (double)s->sent;
}

static bool near(double got, double want, double share)
{
    return got >= want * (1 - share) && got <= want * (1 + share);
}

/* Overload of 2 to 20 %: all of it is dropped, and the delay settles where the kernel's did. */
static void test_red_rates(void)
{
    static const struct { uint64_t interval_ns; double loss, delay_ms; } rows[] = {
        { 980000, 0.0188, 24.5 }, { 950000, 0.0492, 30.37 }, { 920000, 0.0792, 37.4 },
        { 800000, 0.2, 59.5 },
    };

    for (size_t r = 0; r < GW_ARRAY_LEN(rows); r++)
        for (uint64_t seed = 1; seed <= 3; seed++) {
            struct fake_gen gen[] = {
                { .size = 1000, .interval_ns = rows[r].interval_ns, .count = 40000 },
                { .count = 0 } };
            struct fake f;
            struct sum s;

            CU_ASSERT_EQUAL_FATAL(fake_start(&f, &gw_qdisc_red, RED_WORDS, seed), GW_OK);
            fake_bucket(&f, HTB_8MBIT);
            fake_run(&f, gen);
            fake_check(&f);
            sum_up(&f, 0, &s);
            CHECK_ROW(fabs(loss(&s) - rows[r].loss) < 0.005 &&
                      near(s.delay_ms, rows[r].delay_ms, 0.05), "every %lu ns, seed %lu: lost %g, "
                      "delay %g ms", (unsigned long)rows[r].interval_ns, (unsigned long)seed,
                      loss(&s), s.delay_ms);
            CU_ASSERT_EQUAL(f.q.overlimits, f.dropped);
            CU_ASSERT_EQUAL(f.q.drops[GW_DROP_AQM], f.dropped);
            fake_end(&f);
        }
}

/* ecn and a sender that does not listen: only limit drops; harddrop brings drops back. */
static void test_red_ecn(void)
{
    static const struct fake_gen ect[] = {
        { .size = 1000, .interval_ns = 920000, .count = 40000, .ecn = GW_ECN_ECT0 },
        { .count = 0 } };
    static const struct fake_gen plain[] = {
        { .size = 1000, .interval_ns = 920000, .count = 40000 }, { .count = 0 } };
    static const struct {
        const char *words;
        const struct fake_gen *gen;
        double lost, ce, delay_ms;
    } rows[] = {
        { RED_WORDS " ecn", ect, 0.074975, 0.906, 192.698 },
        { RED_WORDS " ecn", plain, 0.0792, 0, 37.4 },
        { RED_WORDS " ecn nodrop", plain, 0.074975, 0, 192.698 },
        { RED_WORDS " ecn harddrop", ect, 0.0792, -1, 59.4 },
    };

    for (size_t r = 0; r < GW_ARRAY_LEN(rows); r++) {
        struct fake f;
        struct sum s;

        CU_ASSERT_EQUAL_FATAL(fake_start(&f, &gw_qdisc_red, rows[r].words, 5), GW_OK);
        fake_bucket(&f, HTB_8MBIT);
        fake_run(&f, rows[r].gen);
        fake_check(&f);
        sum_up(&f, 0, &s);
        CHECK_ROW(fabs(loss(&s) - rows[r].lost) < 0.005 &&
                  near(s.delay_ms, rows[r].delay_ms, 0.05) &&
                  (rows[r].ce < 0 || fabs((double)s.ce / 40000 - rows[r].ce) < 0.005),
                  "row %zu: lost %g, marked %g, delay %g ms", r, loss(&s), (double)s.ce / 40000,
                  s.delay_ms);
        CU_ASSERT_EQUAL(f.q.marked_pkts, rows[r].ce ? f.q.marked_pkts : 0);
        fake_end(&f);
    }
}

/* At a constant average gaps are uniform on 1..1/p: chi-square over ten classes, and the bounds. */
static void test_red_gaps(void)
{
    struct gw_red_conf c = { .min = 20000, .max = 60000, .wlog = 5,
                             .max_p = (uint32_t)(0.1 * 4294967296.0) };
    enum { GAPS = 40000, CLASSES = 10 };
    uint32_t seen[CLASSES] = { 0 }, gap = 0, n = 0;
    double chi = 0, total = 0;
    struct gw_rng rng;
    struct gw_red r = { 0 };

    gw_rng_open(&rng, 11, "gaps");
    gw_red_set(&r, &c);
    while (n < GAPS) {                            /* p = 0.1 * 1/10: 1/p is 100                  */
        gap++;
        if (gw_red_decide(&r, UINT64_C(24000) << 5, &rng) != GW_RED_PROB)
            continue;
        if (n) {
            CHECK_ROW(gap >= 1 && gap <= 101, "gap of %u", gap);
            seen[gap > 100 ? CLASSES - 1 : (gap - 1) / 10]++;
            total += gap;
        }
        n++;
        gap = 0;
    }
    for (int i = 0; i < CLASSES; i++)
        chi += pow(seen[i] - (GAPS - 1) / 10.0, 2) / ((GAPS - 1) / 10.0);
    CHECK_ROW(chi < 27.9, "chi-square %g with 9 degrees", chi);           /* 0.1 %               */
    CHECK_ROW(near(total / (GAPS - 1), 50.5, 0.01), "mean gap %g", total / (GAPS - 1));
}

/* The average: weight, decay while idle by table and by the linear piece. */
static void test_red_average(void)
{
    struct gw_red_conf c = { .min = 1000, .max = 3000, .wlog = 3, .scell_log = 10,
                             .max_p = 1 << 28 };
    struct gw_red r = { 0 };
    double exact = 0;

    for (int i = 0; i < GW_RED_STAB; i++)
        c.stab[i] = (uint8_t)(i / 8 > 31 ? 31 : i / 8);
    gw_red_set(&r, &c);
    for (int i = 0; i < 60; i++) {
        gw_red_arrive(&r, 800, 0);
        exact += (800 - exact) / 8;
        CHECK_ROW(fabs((double)r.avg / 8 - exact) < 2, "step %d: got %g want %g", i,
                  (double)r.avg / 8, exact);
    }
    gw_red_empty(&r, 0);
    CU_ASSERT_EQUAL(gw_red_idle_avg(&r, 100000), r.avg - (r.avg * 100 >> 10));   /* 100 us     */
    CU_ASSERT_EQUAL(gw_red_idle_avg(&r, 900000), r.avg >> 1);
    CU_ASSERT_EQUAL(gw_red_idle_avg(&r, 8192000 + 1000), r.avg >> 1);            /* table: 1   */
    CU_ASSERT_EQUAL(gw_red_idle_avg(&r, UINT64_C(10000000000)), r.avg >> 31);
    gw_red_empty(&r, 5000000);                                                   /* idle since 0 */
    CU_ASSERT_EQUAL(r.idle_ns, 0);
    gw_red_arrive(&r, 0, 8192000 + 1000);
    CU_ASSERT(!r.idle);
}

/* adaptative: max_P rises by a quarter up to 1 % a step, falls to nine tenths, within bounds. */
static void test_red_adapt(void)
{
    struct gw_red_conf c = { .min = 1000, .max = 6000, .wlog = 3, .max_p = 4294967296.0 * 0.02 };
    struct gw_red r = { 0 };

    gw_red_set(&r, &c);
    CU_ASSERT(r.target_min == 3000 && r.target_max == 4000);
    r.avg = 5000 << 3;
    gw_red_adapt(&r, 0);
    CU_ASSERT_EQUAL(r.max_p, c.max_p + c.max_p / 4);
    for (int i = 0; i < 100; i++)
        gw_red_adapt(&r, 0);
    CU_ASSERT(near(r.max_p / 4294967296.0, 0.505, 0.015));
    r.avg = 3500 << 3;
    gw_red_adapt(&r, 0);
    CU_ASSERT(near(r.max_p / 4294967296.0, 0.505, 0.015));
    r.avg = 2000 << 3;
    for (int i = 0; i < 100; i++)
        gw_red_adapt(&r, 0);
    CU_ASSERT(near(r.max_p / 4294967296.0, 0.0095, 0.06));
}

/* With adaptative an overload of 8 % settles between the targets (36 to 44 kB), not at 37.4 ms. */
static void test_red_adaptive_run(void)
{
    static const struct fake_gen gen[] = { { .size = 1000, .interval_ns = 800000, .count = 100000 },
                                           { .count = 0 } };
    struct fake f;
    struct sum s;

    CU_ASSERT_EQUAL_FATAL(fake_start(&f, &gw_qdisc_red, RED_WORDS " adaptative", 2), GW_OK);
    fake_bucket(&f, HTB_8MBIT);
    fake_run(&f, gen);
    fake_check(&f);
    sum_up(&f, 0, &s);
    CHECK_ROW(s.delay_ms > 36 && s.delay_ms < 46 && fabs(loss(&s) - 0.2) < 0.005,
              "lost %g, delay %g ms", loss(&s), s.delay_ms);
    fake_end(&f);
}

/* A fast flow meets itself more often than a slow one. */
static void test_choke_rates(void)
{
    static const struct fake_gen gen[] = {
        { .flow = 0, .size = 1000, .interval_ns = 1000000, .count = 20000 },
        { .flow = 1, .size = 1000, .interval_ns = 5000000, .start_ns = 100000, .count = 4000 },
        { .count = 0 } };

    for (uint64_t seed = 1; seed <= 3; seed++) {
        struct fake_out x;
        struct fake f;
        struct sum a, b;

        CU_ASSERT_EQUAL_FATAL(fake_start(&f, &gw_qdisc_choke, "limit 200 min 20 max 60 avpkt 1000 "
                                         "burst 34 bandwidth 8mbit probability 0.1", seed), GW_OK);
        fake_bucket(&f, HTB_8MBIT);
        fake_run(&f, gen);
        fake_check(&f);
        sum_up(&f, 0, &a);
        sum_up(&f, 1, &b);
        CHECK_ROW(fabs(loss(&a) - 0.1879) < 0.012 && fabs(loss(&b) - 0.0555) < 0.02 &&
                  near(a.delay_ms, 18.5178, 0.1) && near(b.delay_ms, 19.0073, 0.1) &&
                  fabs((double)f.dropped / 24000 - 3980 / 24000.0) < 0.005,
                  "seed %lu: lost %g and %g, delay %g and %g ms", (unsigned long)seed, loss(&a),
                  loss(&b), a.delay_ms, b.delay_ms);
        fake_show(&f, &x, true, true);
        CU_ASSERT_PTR_NOT_NULL(strstr(x.text, "pdrop=0 other=0 matched="));
        fake_end(&f);
    }
}

/* Holes: packets leave in order although some in the middle were dropped; change moves them. */
static void test_choke_ring(void)
{
    struct fake_gen g = { .size = 1000 };
    struct gw_pkt *p;
    uint64_t last = 0, n = 0;
    struct fake f;

    CU_ASSERT_EQUAL_FATAL(fake_start(&f, &gw_qdisc_choke, "limit 100 min 5 max 40 avpkt 1000 burst "
                                     "9 bandwidth 8mbit probability 0.5", 9), GW_OK);
    fake_frames(&f, 3000);
    for (uint32_t i = 0; i < 3000; i++) {
        g.flow = i % 3;
        f.now_ps = i * UINT64_C(1000000);
        fake_send(&f, i, &g, 0, i);
        if (i % 4 != 3 && (p = f.ops->dequeue(&f.q, f.now_ps))) {
            CU_ASSERT(p->tp[0] >= last);
            last = p->tp[0];
            f.fate[last].left_ps = f.now_ps;
            f.left++;
            f.q.backlog_bytes -= 1000;
            f.q.backlog_pkts--;
            f.q.sent_pkts++;
        }
        if (i == 1500)
            CU_ASSERT_EQUAL(fake_change(&f, "limit 40 bandwidth 8mbit"), GW_OK);
    }
    CU_ASSERT(f.q.backlog_pkts <= 40 && f.dropped > 100);
    fake_check(&f);
    while ((p = f.ops->dequeue(&f.q, f.now_ps))) {
        CU_ASSERT(p->tp[0] > last);
        last = p->tp[0];
        n++;
    }
    CU_ASSERT_EQUAL(n, f.q.backlog_pkts);
    fake_end(&f);
}

/* ---- words -------------------------------------------------------------------------------- */

struct words_row {
    const char *words, *change;
    enum gw_status status;
    const char *json;
};

static void check_words(const struct gw_plugin *p, const struct words_row *r, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        enum gw_status got;
        struct fake_out x;
        struct fake f;

        got = fake_start(&f, p, r[i].words, 1);
        if (got == GW_OK && r[i].change) {
            got = fake_change(&f, r[i].change);
            f.err.code = GW_OK;                      /* what was there is still there          */
        }
        CHECK_ROW(got == r[i].status, "%s %s / %s: got %d: %s", p->name, r[i].words,
                  r[i].change ? r[i].change : "", got, f.err.text);
        if (r[i].json) {
            fake_show(&f, &x, true, false);
            CHECK_ROW(!strcmp(x.text, r[i].json), "%s %s: got %s", p->name, r[i].words, x.text);
        }
        fake_end(&f);
    }
}

#define NO_FLAGS "ecn=false harddrop=false adaptive=false nodrop=false "

static void test_red_words(void)
{
    static const struct words_row rows[] = {
        { "limit 400000 avpkt 1000 bandwidth 10mbit", NULL, GW_OK,
          "limit=400000 min=33333 max=100000 " NO_FLAGS },
        { "limit 400000 min 30000 avpkt 1000", NULL, GW_OK,
          "limit=400000 min=30000 max=90000 " NO_FLAGS },
        { "limit 400000 max 30000 avpkt 1000", NULL, GW_OK,
          "limit=400000 min=10000 max=30000 " NO_FLAGS },
        { "limit 400000 min 30000 max 30000 avpkt 1000 burst 55 bandwidth 10mbit", NULL, GW_OK,
          "limit=400000 min=30000 max=30000 " NO_FLAGS },
        { "limit 400000 avpkt 1000 adaptative harddrop", NULL, GW_OK, "limit=400000 min=33333 "
          "max=100000 ecn=false harddrop=true adaptive=true nodrop=false " },
        { "limit 400000 avpkt 1000 ecn nodrop", "limit 200000 avpkt 1000 bandwidth 5mbit", GW_OK,
          "limit=200000 min=16666 max=50000 " NO_FLAGS },
        { "limit 400000 avpkt 1000 nodrop ecn", "limit 400000 avpkt 1000 nodrop", GW_PARAM,
          "limit=400000 min=33333 max=100000 ecn=true harddrop=false adaptive=false nodrop=true " },
        { "limit 400000 avpkt 1000", "ecn", GW_SYNTAX,
          "limit=400000 min=33333 max=100000 " NO_FLAGS },
        { "limit 400000 avpkt 1000 nodrop", NULL, GW_PARAM, NULL },
        { "", NULL, GW_SYNTAX, NULL }, { "limit 0 avpkt 1000", NULL, GW_SYNTAX, NULL },
        { "limit 400000 avpkt 0", NULL, GW_SYNTAX, NULL },
        { "limit 400000 avpkt", NULL, GW_INCOMPLETE, NULL },
        { "limit 400000x avpkt 1000", NULL, GW_SYNTAX, NULL },
        { "limit 400000 avpkt 1000 burst 5", NULL, GW_SYNTAX, NULL },
        { "limit 400000 avpkt 100000", NULL, GW_SYNTAX, NULL },
        { "limit 400000 avpkt 1000 burst 1000000", NULL, GW_SYNTAX, NULL },
        { "limit 400000 min 90000 max 30000 burst 100 avpkt 1000", NULL, GW_SYNTAX, NULL },
        { "limit 400000 avpkt 1000 probability 0", NULL, GW_SYNTAX, NULL },
        { "limit 400000 avpkt 1000 probability abc", NULL, GW_SYNTAX, NULL },
        { "limit 400000 avpkt 1000 bandwidth 50%", NULL, GW_SYNTAX, NULL },
        { "limit 4000000000 min 3000000000 max 3900000000 burst 4000000 avpkt 1000", NULL,
          GW_SYNTAX, NULL },
        { "bogus", NULL, GW_SYNTAX, NULL },
    };

    check_words(&gw_qdisc_red, rows, GW_ARRAY_LEN(rows));
}

/* tc's constants: ewma, probability and Scell_log as `tc -d` showed them. */
static void test_red_constants(void)
{
    static const struct { const struct gw_plugin *p; const char *words, *details; } rows[] = {
        { &gw_qdisc_red, "limit 400000 avpkt 1000 burst 55 min 30000 max 90000",
          "ewma=5 probability=0.0199999998 Scell_log=15 " },
        { &gw_qdisc_red, "limit 400000 avpkt 1000 burst 55 min 30000 max 90000 probability 50",
          "ewma=5 probability=0.29686103 Scell_log=15 " },
        { &gw_qdisc_red, "limit 400000 avpkt 1000 burst 55 min 30000 max 90000 bandwidth 1kbit",
          "ewma=5 probability=0.0199999998 Scell_log=28 " },
        { &gw_qdisc_red, "limit 400000 avpkt 10 burst 5500 min 30000 max 90000 bandwidth 34gbit",
          "ewma=12 probability=0.0199999998 Scell_log=0 " },
        { &gw_qdisc_red, "limit 400000 max 30000 avpkt 1000",
          "ewma=3 probability=0.0199999998 Scell_log=13 " },
        { &gw_qdisc_choke, "limit 1000 bandwidth 10mbit",
          "ewma=6 probability=0.0199999998 Scell_log=16 " },
        { &gw_qdisc_choke, "limit 100 bandwidth 1mbit",
          "ewma=3 probability=0.0199999998 Scell_log=16 " },
    };

    for (size_t i = 0; i < GW_ARRAY_LEN(rows); i++) {
        struct fake_out x;
        struct fake f;
        char *d;

        CU_ASSERT_EQUAL_FATAL(fake_start(&f, rows[i].p, rows[i].words, 1), GW_OK);
        fake_show(&f, &x, true, false);
        x.o.details = true;
        f.ops->tc_show(&f.q, &x.o);
        d = strstr(x.text, "ewma");
        CHECK_ROW(d && !strcmp(d, rows[i].details), "%s: got %s", rows[i].words, d ? d : x.text);
        fake_end(&f);
    }
}

static void test_choke_words(void)
{
    static const struct words_row rows[] = {
        { "limit 1000 min 100 max 300 avpkt 900 burst 110 bandwidth 10mbit ecn probability 0.05",
          NULL, GW_OK,
          "limit=1000 min=100 max=300 ecn=true harddrop=false adaptive=false nodrop=false " },
        { "limit 1000 bandwidth 10mbit", "limit 100 bandwidth 1mbit", GW_OK,
          "limit=100 min=8 max=25 " NO_FLAGS },
        { "", NULL, GW_SYNTAX, NULL }, { "limit 100", NULL, GW_SYNTAX, NULL },
        { "bandwidth 10mbit", NULL, GW_SYNTAX, NULL },
        { "limit 1000 bandwidth 10mbit harddrop", NULL, GW_SYNTAX, NULL },
        { "limit 3 bandwidth 10mbit", NULL, GW_SYNTAX, NULL },
        { "limit 1k bandwidth 10mbit", NULL, GW_SYNTAX, NULL },
        { "limit 1000 bandwidth 40gbit", NULL, GW_SYNTAX, NULL },
        { "limit 100 bandwidth 10mbit min 50 max 200", NULL, GW_SYNTAX, NULL },
        { "limit 100 bandwidth 10mbit burst 1", NULL, GW_SYNTAX, NULL },
        { "limit 100 bandwidth 10mbit avpkt 0", NULL, GW_SYNTAX, NULL },
        { "limit 200000 bandwidth 10mbit", NULL, GW_PARAM, NULL },
    };

    check_words(&gw_qdisc_choke, rows, GW_ARRAY_LEN(rows));
}

#define VQ "limit 60KB min 15K max 45K burst 20 avpkt 1000 bandwidth 10mbit "
#define GRED(grio, flags) "dp_cnt=4 dp_default=2 grio=" grio " limit=1514000 " flags "vqs["
#define VQ1(prio, flags) "{vq=1 prio=" prio " limit=61440 min=15360 max=46080 " flags "}]"

static void test_gred_words(void)
{
    static const struct words_row rows[] = {
        { "setup DPs 4 default 2 grio", NULL, GW_OK, GRED("true", NO_FLAGS) "]" },
        { "setup vqs 4 default 1 limit 100000 ecn harddrop", NULL, GW_OK, "dp_cnt=4 dp_default=1 "
          "grio=false limit=100000 ecn=true harddrop=true adaptive=false nodrop=false vqs[]" },
        { "setup DPs 4 default 1 limit 0", NULL, GW_OK,
          "dp_cnt=4 dp_default=1 grio=false limit=1514000 " NO_FLAGS "vqs[]" },
        { "setup DPs 4 default 2", VQ "DP 1 probability 0.02 prio 2", GW_OK,
          GRED("false", NO_FLAGS) VQ1("8", NO_FLAGS) },
        { "setup DPs 4 default 2 grio", VQ "vq 1 prio 2", GW_OK,
          GRED("true", NO_FLAGS) VQ1("2", NO_FLAGS) },
        { "setup DPs 4 default 2 grio", VQ "vq 1 prio 300", GW_OK,
          GRED("true", NO_FLAGS) VQ1("44", NO_FLAGS) },
        { "setup DPs 4 default 2", VQ "vq 1 ecn", GW_OK, GRED("false", NO_FLAGS)
          VQ1("8", "ecn=true harddrop=false adaptive=false nodrop=false ") },
        { "setup DPs 4 default 2", "setup DPs 2 default 1", GW_OK,
          "dp_cnt=2 dp_default=1 grio=false limit=1514000 " NO_FLAGS "vqs[]" },
        { "setup DPs 4 default 2 ecn", VQ "vq 1", GW_PARAM, NULL },
        { "setup DPs 4 default 2 ecn", VQ "vq 1 harddrop", GW_PARAM, NULL },
        { "setup DPs 4 default 2", VQ "vq 7", GW_PARAM, GRED("false", NO_FLAGS) "]" },
        { "setup DPs 4 default 2", VQ "vq 17", GW_SYNTAX, NULL },
        { "setup DPs 4 default 2", "limit 60KB", GW_SYNTAX, NULL },
        { "setup DPs 4 default 2", "limit 60KB setup DPs 4 default 1", GW_SYNTAX, NULL },
        { "setup DPs 4 default 2", "limit 60KB min 45K max 15K avpkt 1000 vq 1", GW_SYNTAX, NULL },
        { VQ "vq 1", NULL, GW_PARAM, NULL }, { "", NULL, GW_SYNTAX, NULL },
        { "setup DPs 20 default 1", NULL, GW_SYNTAX, NULL },
        { "setup DPs 4", NULL, GW_SYNTAX, NULL },
        { "setup default 1 DPs 4", NULL, GW_SYNTAX, NULL },
        { "setup DPs 4 default 4", NULL, GW_SYNTAX, NULL },
        { "setup DPs 0 default 0", NULL, GW_SYNTAX, NULL },
        { "setup bogus", NULL, GW_SYNTAX, NULL },
    };

    check_words(&gw_qdisc_gred, rows, GW_ARRAY_LEN(rows));
}

/* Two virtual queues: the one with an overload drops, the other does not; the rest passes. */
static void test_gred_queues(void)
{
    static const struct { const char *setup, *second; double loss0, loss1; } rows[] = {
        { "setup DPs 4 default 3", "vq 1", 0.2, 0 },
        { "setup DPs 4 default 3 grio", "vq 1 prio 8", 0.17, 0.17 },      /* WRED: one average   */
    };

    for (size_t r = 0; r < GW_ARRAY_LEN(rows); r++) {
        static const struct fake_gen gen[] = {
            { .flow = 0, .size = 1000, .interval_ns = 1000000, .count = 20000, .priority = 0 },
            { .flow = 1, .size = 100, .interval_ns = 5000000, .count = 4000, .priority = 1 },
            { .flow = 2, .size = 1000, .interval_ns = 5000000, .count = 4000, .priority = 2 },
            { .count = 0 } };
        struct fake f;
        struct sum a, b, c;
        char words[200];

        CU_ASSERT_EQUAL_FATAL(fake_start(&f, &gw_qdisc_gred, rows[r].setup, 3), GW_OK);
        CU_ASSERT_EQUAL(fake_change(&f, "limit 200000 min 20000 max 60000 burst 34 avpkt 1000 "
                                    "bandwidth 8mbit vq 0 probability 0.2 prio 8"), GW_OK);
        snprintf(words, sizeof words, "limit 200000 min 20000 max 60000 burst 34 avpkt 1000 "
                 "bandwidth 8mbit probability 0.2 %s", rows[r].second);
        CU_ASSERT_EQUAL(fake_change(&f, words), GW_OK);
        fake_bucket(&f, HTB_8MBIT);
        fake_run(&f, gen);
        fake_check(&f);
        sum_up(&f, 0, &a);
        sum_up(&f, 1, &b);
        sum_up(&f, 2, &c);
        CU_ASSERT_EQUAL(c.got, 4000);             /* neither set up nor a default: passes       */
        CHECK_ROW(fabs(loss(&a) - 0.22) < 0.03 && (rows[r].loss1 > 0 ? loss(&b) > 0.1 : b.got ==
                  4000), "%s: lost %g and %g", rows[r].setup, loss(&a), loss(&b));
        fake_end(&f);
    }
}

/* ---- ecn_threshold ------------------------------------------------------------------------ */

static enum gw_status start_ecn(struct fake *f, const char *const *set, uint64_t given)
{
    struct gw_error err = { GW_OK, "" };

    memset(f, 0, sizeof *f);
    f->ops = gw_qdisc_ecn_threshold.ops;
    f->host = (struct gw_host){ .host_bytes = sizeof f->host, .qdisc_drop = fake_drop };
    f->wake_ps = GW_NEVER;
    f->q = (struct gw_qdisc){ .ops = f->ops, .host = &f->host, .tree = f, .conf = f->conf,
        .mtu_bytes = 1514, .auto_limit_bytes = 100000, .priv = calloc(1, f->ops->priv_bytes) };
    gw_rng_open(&f->q.rng, 4, "ecn");
    CU_ASSERT_FATAL(!gw_params_read(gw_qdisc_ecn_threshold.params, 4, f->conf, NULL, NULL, "t",
                                    NULL, &err));
    for (int i = 0; i < 4; i++)
        if (set[i])
            CU_ASSERT_FATAL(!gw_param_set(&gw_qdisc_ecn_threshold.params[i], f->conf, set[i], NULL,
                                          &err));
    f->q.given = given;
    return f->ops->init(&f->q, &f->err);
}

/* Frames of 1000 bytes into a queue that does not move: depth before frame i is 1000 i. */
static void test_ecn_step(void)
{
    static const struct { const char *set[4]; uint32_t first, lost; } rows[] = {
        { { "10kB", "10kB", NULL, "50kB" }, 11, 50 }, { { "0", "0", NULL, "50kB" }, 1, 50 },
        { { "9999", "9999", NULL, NULL }, 10, 100 }, { { "100kB", "100kB", NULL, "20kB" }, 20, 20 },
    };

    for (size_t r = 0; r < GW_ARRAY_LEN(rows); r++) {
        struct fake f;

        CU_ASSERT_EQUAL_FATAL(start_ecn(&f, rows[r].set, 0), GW_OK);
        fake_frames(&f, 120);
        for (uint32_t i = 0; i < 120; i++) {
            struct fake_gen g = { .size = 1000, .ecn = i % 2 ? GW_ECN_ECT0 : GW_ECN_ECT1 };

            fake_send(&f, i, &g, 0, i);
        }
        fake_drain(&f);
        for (uint32_t i = 0; i < 120; i++)
            CHECK_ROW(f.fate[i].dropped == (i >= rows[r].lost) &&
                      (f.fate[i].dropped || f.fate[i].ce == (i >= rows[r].first)),
                      "row %zu frame %u: dropped %d ce %d", r, i, f.fate[i].dropped, f.fate[i].ce);
        fake_check(&f);
        fake_end(&f);
    }
}

/* Between kmin and kmax the share of marks rises linearly to pmax; unmarkable packets pass. */
static void test_ecn_slope(void)
{
    static const char *const set[] = { "10kB", "50kB", "80%", "100kB" };
    static const uint32_t depth[] = { 10, 20, 30, 40, 50 };
    enum { TRIES = 4000 };
    struct fake f;

    for (size_t d = 0; d < GW_ARRAY_LEN(depth); d++) {
        double p = 0.8 * (depth[d] - 10) / 40.0, sd = sqrt(TRIES * p * (1 - p));
        struct fake_gen g = { .size = 1000 };
        uint32_t marked = 0;

        CU_ASSERT_EQUAL_FATAL(start_ecn(&f, set, 0), GW_OK);
        fake_frames(&f, depth[d] + TRIES);
        for (uint32_t i = 0; i < depth[d]; i++) {
            fake_send(&f, i, &g, 0, i);
            CU_ASSERT_EQUAL(f.pkt[i].ecn, GW_ECN_NOT_ECT);
        }
        g.ecn = GW_ECN_ECT0;
        for (uint32_t i = depth[d]; i < depth[d] + TRIES; i++) {
            fake_send(&f, i, &g, 0, i);
            marked += f.pkt[i].ecn == GW_ECN_CE;
            CU_ASSERT_PTR_NOT_NULL(f.ops->dequeue(&f.q, 0));
        }
        CHECK_ROW(fabs(marked - p * TRIES) <= 4 * sd + 1, "at %u kB: %u of %d marked, want %g",
                  depth[d], marked, TRIES, p * TRIES);
        fake_end(&f);
    }
}

static void test_ecn_options(void)
{
    static const char *const bad[] = { "50kB", "10kB", NULL, NULL };
    static const char *const good[] = { "10kB", "50kB", NULL, "80kB" };
    struct { uint64_t kmin, kmax, limit; double pmax; } conf = { .kmin = 60000, .limit = 3000 };
    struct gw_error err = { GW_OK, "" };
    struct fake f;

    CU_ASSERT_EQUAL(start_ecn(&f, bad, 3), GW_PARAM);
    fake_end(&f);
    CU_ASSERT_EQUAL(start_ecn(&f, good, 3), GW_OK);
    CU_ASSERT_EQUAL(f.ops->change(&f.q, &conf, 1, 0, &err), GW_PARAM);        /* kmin > kmax    */
    CU_ASSERT_EQUAL(f.ops->change(&f.q, &conf, 8, 0, NULL), GW_OK);           /* only limit     */
    fake_frames(&f, 4);
    for (uint32_t i = 0; i < 4; i++) {
        struct fake_gen g = { .size = 1000, .ecn = GW_ECN_ECT0 };

        fake_send(&f, i, &g, 0, i);
    }
    CU_ASSERT_EQUAL(f.q.drops[GW_DROP_QUEUE_FULL], 1);
    CU_ASSERT_EQUAL(f.q.marked_pkts, 0);
    CU_ASSERT(f.ops->not_in_kernel);
    fake_end(&f);
}

static const struct gw_case cases[] = {
    { "red: rates and delays", test_red_rates },
    { "red: ecn, nodrop, harddrop", test_red_ecn },
    { "red: gaps are uniform", test_red_gaps },
    { "red: the average", test_red_average },
    { "red: adaptation", test_red_adapt },
    { "red: adaptative in a run", test_red_adaptive_run },
    { "red: words", test_red_words },
    { "red, choke: tc's constants", test_red_constants },
    { "choke: rates and delays", test_choke_rates },
    { "choke: the ring", test_choke_ring },
    { "choke: words", test_choke_words },
    { "gred: words", test_gred_words },
    { "gred: virtual queues", test_gred_queues },
    { "ecn_threshold: step", test_ecn_step },
    { "ecn_threshold: slope", test_ecn_slope },
    { "ecn_threshold: options", test_ecn_options },
    { NULL, NULL },
};
const struct gw_suite suite_sch_red = { "sch_red", cases };
