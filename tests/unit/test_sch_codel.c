/*
 * test_sch_codel - codel and fq_codel: the kernel's drop sequence, marks, flows, words
 */
#include "tests/unit/tc_trace.h"

#include <gradwire/alg/codel.h>

extern const struct gw_plugin gw_qdisc_codel, gw_qdisc_fq_codel;

#define HTB_8MBIT UINT64_C(1000000), 1600

/* 8 Mbit/s offered 10 % too much: each frame's fate and time as on the kernel. */
static void test_codel_trace(void)
{
    static const struct fake_gen gen[] = { { .size = 1013, .interval_ns = 917000, .count = 12000 },
                                           { .count = 0 } };
    uint64_t seq = 0, drops = 0, differ = 0;
    char path[512];
    struct fake f;
    long want;
    FILE *in;

    CU_ASSERT_EQUAL_FATAL(fake_start(&f, &gw_qdisc_codel, "", 1), GW_OK);
    fake_bucket(&f, HTB_8MBIT);
    fake_run(&f, gen);
    fake_check(&f);
    CU_ASSERT_EQUAL(f.dropped, 1102);
    snprintf(path, sizeof path, "%s/tests/data/tc/codel_o10_us.txt", GW_TEST_SRCDIR);
    in = fopen(path, "r");
    CU_ASSERT_FATAL(in != NULL);
    while (fscanf(in, "%ld", &want) == 1) {
        const struct fake_fate *x = &f.fate[seq++];
        long got = x->dropped ? -1 : (long)(x->left_ps / GW_PS_PER_US);
        bool same = (got < 0) == (want < 0) && labs(got - want) <= 1;

        drops += want < 0;
        differ += !same;
        CHECK_ROW(same || drops > 200, "frame %lu: got %ld us want %ld", (unsigned long)seq - 1,
                  got, want);
    }
    fclose(in);
    CU_ASSERT_EQUAL(seq, 4000);
    CU_ASSERT(differ * 500 <= seq);
    fake_end(&f);
}

/* The statistics of the same run, as `tc -s -j` printed them. */
static void test_codel_stats(void)
{
    static const struct fake_gen gen[] = { { .size = 1013, .interval_ns = 917000, .count = 12000 },
                                           { .count = 0 } };
    struct fake_out x;
    struct fake f;

    CU_ASSERT_EQUAL_FATAL(fake_start(&f, &gw_qdisc_codel, "", 1), GW_OK);
    fake_bucket(&f, HTB_8MBIT);
    fake_run(&f, gen);
    fake_show(&f, &x, true, true);
    CHECK_ROW(strstr(x.text, "count=139 lastcount=28 ldelay=3397") == x.text, "got %s", x.text);
    CU_ASSERT_PTR_NOT_NULL(strstr(x.text, "drop_next=0 maxpacket=1013 ecn_mark=0 "));
    fake_end(&f);
}

/* ecn marks on CoDel's schedule, ce_threshold marks from 2 ms on: frame 38 is the first. */
static void test_codel_ce(void)
{
    static const struct fake_gen gen[] = {
        { .size = 1013, .interval_ns = 917000, .count = 4000, .ecn = GW_ECN_ECT0 },
        { .count = 0 } };
    struct fake_out x;
    struct fake f;

    CU_ASSERT_EQUAL_FATAL(fake_start(&f, &gw_qdisc_codel, "ecn ce_threshold 2ms", 1), GW_OK);
    fake_bucket(&f, HTB_8MBIT);
    fake_run(&f, gen);
    fake_check(&f);
    CU_ASSERT_EQUAL(f.dropped, 0);
    for (uint64_t i = 0; i < f.frames; i++)
        CHECK_ROW(f.fate[i].ce == (i >= 38), "frame %lu: ce is %d", (unsigned long)i, f.fate[i].ce);
    fake_show(&f, &x, true, true);
    CHECK_ROW(strstr(x.text, "count=410 lastcount=1 ldelay=38230") == x.text, "got %s", x.text);
    CU_ASSERT_PTR_NOT_NULL(strstr(x.text, "ecn_mark=410 drop_overlimit=0 ce_mark=3962"));
    fake_end(&f);
}

struct words_row {
    const char *words, *change;
    enum gw_status status;
    const char *json, *text;
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
            if (got != GW_OK)
                f.err.code = GW_OK;                  /* the old setting is still there         */
        }
        CHECK_ROW(got == r[i].status, "%s %s / %s: got %d: %s", p->name, r[i].words,
                  r[i].change ? r[i].change : "", got, f.err.text);
        if (r[i].json) {
            fake_show(&f, &x, true, false);
            CHECK_ROW(!strcmp(x.text, r[i].json), "%s %s: got %s", p->name, r[i].words, x.text);
        }
        if (r[i].text) {
            fake_show(&f, &x, false, false);
            CHECK_ROW(!strcmp(x.text, r[i].text), "%s %s: got %s", p->name, r[i].words, x.text);
        }
        fake_end(&f);
    }
}

/* What tc 6.1 on Linux 6.1 takes, refuses and shows. */
static void test_codel_words(void)
{
    static const struct words_row rows[] = {
        { "", NULL, GW_OK, "limit=1000 target=4999 interval=99999 ",
          "limit 1000p target 4999us interval 99999us " },
        { "interval 200ms", NULL, GW_OK, "limit=1000 target=4999 interval=199999 ", NULL },
        { "ce_threshold 1ms", NULL, GW_OK,
          "limit=1000 target=4999 ce_threshold=999 interval=99999 ",
          "limit 1000p target 4999us ce_threshold 999us interval 99999us " },
        { "target 0", NULL, GW_OK, "limit=1000 target=4999 interval=99999 ", NULL },
        { "limit 0", NULL, GW_OK, "limit=1000 target=4999 interval=99999 ", NULL },
        { "target 5", NULL, GW_OK, "limit=1000 target=4 interval=99999 ", NULL },
        { "target 0.5", NULL, GW_OK, "limit=1000 target=4999 interval=99999 ", NULL },
        { "ce_threshold 0", NULL, GW_OK,
          "limit=1000 target=4999 ce_threshold=0 interval=99999 ", NULL },
        { "noecn ecn", NULL, GW_OK, "limit=1000 target=4999 interval=99999 ecn=true ",
          "limit 1000p target 4999us interval 99999us ecn " },
        { "target 5us interval 1ms limit 10 ecn ce_threshold 100", NULL, GW_OK,
          "limit=10 target=4 ce_threshold=99 interval=999 ecn=true ", NULL },
        { "target 4000s", NULL, GW_OK, "limit=1000 target=4000000000 interval=99999 ", NULL },
        { "limit 100 target 20ms", "interval 50ms", GW_OK,
          "limit=100 target=19999 interval=49999 ", NULL },
        { "ecn ce_threshold 1ms", "noecn", GW_OK,
          "limit=1000 target=4999 ce_threshold=999 interval=99999 ", NULL },
        { "ecn ce_threshold 1ms", "", GW_OK,
          "limit=1000 target=4999 ce_threshold=999 interval=99999 ecn=true ", NULL },
        { "target 5m", NULL, GW_SYNTAX, NULL, NULL }, { "limit 5x", NULL, GW_SYNTAX, NULL, NULL },
        { "interval", NULL, GW_INCOMPLETE, NULL, NULL },
        { "limit -1", NULL, GW_SYNTAX, NULL, NULL }, { "bogus", NULL, GW_SYNTAX, NULL, NULL },
    };

    check_words(&gw_qdisc_codel, rows, GW_ARRAY_LEN(rows));
}

#define FQC "limit=10240 flows=1024 quantum=1514 target=4999 "
static void test_fq_codel_words(void)
{
    static const struct words_row rows[] = {
        { "", NULL, GW_OK, FQC "interval=99999 memory_limit=33554432 ecn=true drop_batch=64 ",
          "limit 10240p flows 1024 quantum 1514 target 4999us interval 99999us memory_limit "
          "33554432b ecn drop_batch 64 " },
        { "flows 0 quantum 0 drop_batch 0 limit 0", NULL, GW_OK,
          FQC "interval=99999 memory_limit=33554432 ecn=true drop_batch=64 ", NULL },
        { "quantum 100 flows 16", NULL, GW_OK, "limit=10240 flows=16 quantum=256 target=4999 "
          "interval=99999 memory_limit=33554432 ecn=true drop_batch=64 ", NULL },
        { "memory_limit 64k limit 100 target 1ms interval 20ms noecn", NULL, GW_OK,
          "limit=100 flows=1024 quantum=1514 target=999 interval=19999 memory_limit=65536 "
          "drop_batch=64 ", NULL },
        { "memory_limit 3g", NULL, GW_OK,
          FQC "interval=99999 memory_limit=2147483648 ecn=true drop_batch=64 ", NULL },
        { "ce_threshold 1ms ce_threshold_selector 0x1/0x3", NULL, GW_OK, FQC "ce_threshold=999 "
          "ce_threshold_selector=1 ce_threshold_mask=3 interval=99999 memory_limit=33554432 "
          "ecn=true drop_batch=64 ", "limit 10240p flows 1024 quantum 1514 target 4999us "
          "ce_threshold 999us ce_threshold_selector 0x1/0x3 interval 99999us memory_limit "
          "33554432b ecn drop_batch 64 " },
        { "flows 100 limit 5 noecn ce_threshold 2ms", "target 1ms", GW_OK, "limit=5 flows=100 "
          "quantum=1514 target=999 ce_threshold=1999 interval=99999 memory_limit=33554432 "
          "drop_batch=64 ", NULL },
        { "flows 100", "flows 100", GW_PARAM, "limit=10240 flows=100 quantum=1514 target=4999 "
          "interval=99999 memory_limit=33554432 ecn=true drop_batch=64 ", NULL },
        { "flows 65537", NULL, GW_PARAM, NULL, NULL },
        { "quantum 2000000", NULL, GW_PARAM, NULL, NULL },
        { "ce_threshold_selector 1", NULL, GW_SYNTAX, NULL, NULL },
        { "ce_threshold_selector 300/2", NULL, GW_SYNTAX, NULL, NULL },
        { "ce_threshold_selector", NULL, GW_INCOMPLETE, NULL, NULL },
        { "bogus", NULL, GW_SYNTAX, NULL, NULL },
        { "memory_limit 5x", NULL, GW_SYNTAX, NULL, NULL },
    };

    check_words(&gw_qdisc_fq_codel, rows, GW_ARRAY_LEN(rows));
}

/*
 * How often CoDel drops again: it goes on where it was only if it was so a short while ago. A count
 * that fq_codel raised before the first time is no such memory, at whatever time a run begins.
 */
static void test_codel_again(void)
{
    static const struct { uint32_t count, lastcount, drop_next, now, want; } rows[] = {
        { 0, 0, 0, 5000, 1 },
        { 7, 0, 0, 5000, 1 },                    /* thinned out, never in the dropping state      */
        { 7, 0, 0, 5000000, 1 },
        { 9, 1, 100000, 120000, 8 },
        { 9, 1, 100000, 100000 + 16 * 97656, 1 },
        { 2, 1, 100000, 120000, 1 },
    };
    struct gw_codel_parms c;
    struct gw_codel_stats stats = { 0 };
    uint64_t backlog = 9000;
    struct fake f;

    CU_ASSERT_EQUAL_FATAL(fake_start(&f, &gw_qdisc_codel, "", 1), GW_OK);
    gw_codel_defaults(&c, 1514);
    c.ecn = true;
    for (size_t i = 0; i < GW_ARRAY_LEN(rows); i++) {
        struct gw_codel v = { .count = rows[i].count, .lastcount = rows[i].lastcount,
                              .drop_next = rows[i].drop_next, .inv_sqrt = 30000 };
        struct gw_codel_queue cq = { &f.q, NULL, &backlog, NULL };
        struct gw_pkt p = { .ecn = GW_ECN_ECT0 };

        gw_codel_enter(&cq, &p, &c, &v, &stats, rows[i].now);
        CHECK_ROW(v.count == rows[i].want, "row %zu: got count %u want %u", i, v.count,
                  rows[i].want);
    }
    fake_end(&f);
}

/* Over the limit the tail goes; change drops what is too much; reset empties. */
static void test_codel_limit(void)
{
    static const struct fake_gen gen[] = { { .size = 100, .count = 9 }, { .count = 0 } };
    struct fake f;

    CU_ASSERT_EQUAL_FATAL(fake_start(&f, &gw_qdisc_codel, "limit 5", 1), GW_OK);
    fake_frames(&f, 9);
    for (uint32_t i = 0; i < 9; i++)
        fake_send(&f, i, gen, 0, i);
    CU_ASSERT_EQUAL(f.q.drops[GW_DROP_QUEUE_FULL], 4);
    CU_ASSERT(!f.fate[4].dropped && f.fate[5].dropped);
    CU_ASSERT_EQUAL(fake_change(&f, "limit 3"), GW_OK);
    CU_ASSERT(f.fate[0].dropped && f.fate[1].dropped && !f.fate[2].dropped);
    CU_ASSERT_EQUAL(f.q.backlog_pkts, 3);
    f.ops->reset(&f.q, 0);
    CU_ASSERT_EQUAL(f.q.backlog_pkts, 0);
    CU_ASSERT_PTR_NULL(f.ops->dequeue(&f.q, 0));
    fake_check(&f);
    fake_end(&f);
}

struct flow_sum {
    uint64_t sent, got;
    double   delay_ms;
    bool     in_order;
};

static void sum_up(const struct fake *f, struct flow_sum *s, uint32_t gens)
{
    uint64_t last[16] = { 0 };

    for (uint32_t g = 0; g < gens; g++)
        s[g] = (struct flow_sum){ .in_order = true };
    for (uint64_t i = 0; i < f->frames; i++) {
        const struct fake_fate *x = &f->fate[i];
        struct flow_sum *t = &s[x->gen];

        t->sent++;
        if (x->left_ps == GW_NEVER)
            continue;
        t->got++;
        t->delay_ms += (double)(x->left_ps - x->sent_ps) / 1e9;
        t->in_order &= x->left_ps >= last[x->gen];
        last[x->gen] = x->left_ps;
    }
    for (uint32_t g = 0; g < gens; g++)
        s[g].delay_ms /= s[g].got ? (double)s[g].got : 1;
}

static bool near(double got, double want, double share)
{
    return got >= want * (1 - share) && got <= want * (1 + share);
}

/* Three flows at 8 Mbit/s: one too fast, one with half, one small; figures of the kernel. */
static void test_fq_codel_flows(void)
{
    static const struct fake_gen gen[] = {
        { .flow = 0, .size = 1000, .interval_ns = 800000, .count = 6000 },
        { .flow = 1, .size = 1000, .interval_ns = 2000000, .count = 2400 },
        { .flow = 2, .size = 200, .interval_ns = 20000000, .count = 240 }, { .count = 0 } };
    static const struct { uint64_t got; double delay_ms; } want[] = {
        { 4708, 1837.02 }, { 2378, 5.38822 }, { 240, 0.597527 } };

    for (uint64_t seed = 1; seed <= 3; seed++) {
        struct flow_sum s[3];
        struct fake f;

        CU_ASSERT_EQUAL_FATAL(fake_start(&f, &gw_qdisc_fq_codel, "noecn", seed), GW_OK);
        fake_bucket(&f, HTB_8MBIT);
        fake_run(&f, gen);
        fake_check(&f);
        sum_up(&f, s, 3);
        for (int g = 0; g < 3; g++)
            CHECK_ROW(near((double)s[g].got, (double)want[g].got, 0.005) && s[g].in_order &&
                      near(s[g].delay_ms, want[g].delay_ms, 0.02),
                      "seed %lu flow %d: got %lu frames, %g ms", (unsigned long)seed, g,
                      (unsigned long)s[g].got, s[g].delay_ms);
        fake_end(&f);
    }
}

/* Full: the fattest flow loses its oldest packets, at most drop_batch and half its bytes. */
static void test_fq_codel_full(void)
{
    static const struct { const char *words; uint32_t fat, slim, last, lost; } rows[] = {
        { "limit 20", 18, 2, 1, 10 },             /* half of 19 kB                               */
        { "limit 20 drop_batch 3", 18, 2, 1, 3 },
        { "limit 20 drop_batch 1", 18, 2, 1, 1 },
        { "memory_limit 46080", 16, 4, 1, 9 },    /* 20 packets of 2304 bytes                   */
    };

    for (size_t r = 0; r < GW_ARRAY_LEN(rows); r++) {
        struct fake_gen g = { .size = 1000 };
        uint32_t n = rows[r].fat + rows[r].slim + rows[r].last, lost = 0;
        struct fake f;

        CU_ASSERT_EQUAL_FATAL(fake_start(&f, &gw_qdisc_fq_codel, rows[r].words, 7), GW_OK);
        fake_frames(&f, n);
        for (uint32_t i = 0; i < n; i++) {
            g.flow = i >= rows[r].fat && i < n - rows[r].last;
            fake_send(&f, i, &g, g.flow, i);
        }
        while (lost < n && f.fate[lost].dropped)
            lost++;
        CHECK_ROW(lost == rows[r].lost && f.dropped == lost,
                  "%s: lost %u of %lu", rows[r].words, lost, (unsigned long)f.dropped);
        f.ops->reset(&f.q, 0);
        fake_check(&f);
        fake_end(&f);
    }
}

/* A priority or a filter names the flow; a filter beyond the flows drops. */
static void test_fq_codel_classify(void)
{
    struct fake_gen g = { .size = 1000 };
    struct gw_pkt *first;
    struct fake f;

    CU_ASSERT_EQUAL_FATAL(fake_start(&f, &gw_qdisc_fq_codel, "flows 4", 3), GW_OK);
    fake_frames(&f, 5);
    g.priority = 0x10002;
    fake_send(&f, 0, &g, 0, 0);
    fake_send(&f, 1, &g, 0, 1);
    fake_send(&f, 2, &g, 0, 2);
    g.priority = 0x10003;
    fake_send(&f, 3, &g, 0, 3);
    g.priority = 0;
    f.classid = 0x10005;
    fake_send(&f, 4, &g, 0, 4);
    CU_ASSERT_EQUAL(f.q.drops[GW_DROP_UNCLASSIFIED], 1);
    first = f.ops->dequeue(&f.q, 0);
    CU_ASSERT(first && first->tp[0] == 0);
    first = f.ops->dequeue(&f.q, 0);
    CU_ASSERT(first && first->tp[0] == 1);        /* deficit 514: one more, overdrawn           */
    first = f.ops->dequeue(&f.q, 0);
    CU_ASSERT(first && first->tp[0] == 3);        /* the new flow before the old one            */
    fake_end(&f);
}

/* The first gaps of the dropping state: Newton's steps, not interval / sqrt(n). */
static void test_codel_newton(void)
{
    struct gw_codel v = { .count = 1, .inv_sqrt = UINT16_MAX };

    for (uint32_t n = 2; n <= 400; n++) {
        double exact = 65536.0 / sqrt(n), off;

        v.count = n;
        gw_codel_newton(&v);
        off = fabs(v.inv_sqrt - exact) / exact;
        CHECK_ROW(off < (n < 3 ? 0.3 : n < 8 ? 0.15 : 0.02), "count %u: got %u want about %g", n,
                  v.inv_sqrt, exact);
    }
    v = (struct gw_codel){ .count = 2, .inv_sqrt = UINT16_MAX };
    gw_codel_newton(&v);
    CU_ASSERT_EQUAL(v.inv_sqrt, 32769);           /* (3 - 2) / 2: 0.5 where sqrt says 0.707     */
}

static const struct gw_case cases[] = {
    { "codel: the kernel's fates and times", test_codel_trace },
    { "codel: statistics", test_codel_stats },
    { "codel: ecn and ce_threshold", test_codel_ce },
    { "codel: words", test_codel_words },
    { "codel: limit, change, reset", test_codel_limit },
    { "codel: again", test_codel_again },
    { "codel: Newton", test_codel_newton },
    { "fq_codel: words", test_fq_codel_words },
    { "fq_codel: three flows", test_fq_codel_flows },
    { "fq_codel: full", test_fq_codel_full },
    { "fq_codel: who goes where", test_fq_codel_classify },
    { NULL, NULL },
};
const struct gw_suite suite_sch_codel = { "sch_codel", cases };
