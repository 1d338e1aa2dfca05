/*
 * test_sch_fq - fq and sfq: traces of the kernel, shares, pacing, limits, words
 */
#include "tests/unit/tc_trace.h"

extern const struct gw_plugin gw_qdisc_fq, gw_qdisc_sfq;

#define HTB_8MBIT UINT64_C(1000000), 1600

/* Two flows at 2 and 0.8 Mbit/s paced to 1 Mbit/s each: every fate and time as on the kernel. */
static void test_fq_trace(void)
{
    struct fake_out x;
    struct trace t;
    struct fake f;

    trace_read(&t, "fq_maxrate.csv");
    CU_ASSERT_EQUAL(t.count, 500);
    CU_ASSERT_EQUAL_FATAL(fake_start(&f, &gw_qdisc_fq, "maxrate 1mbit", 1), GW_OK);
    trace_replay(&f, &t, 0);
    fake_check(&f);
    CU_ASSERT_EQUAL(trace_differs(&f, &t, true), 0);
    CU_ASSERT_EQUAL(f.q.drops[GW_DROP_FLOW_LIMIT], 45);
    fake_show(&f, &x, true, true);
    CHECK_ROW(!strcmp(x.text, "flows=2 inactive=1 throttled=0 gc=0 highprio=0 throttled=107 "
                      "latency=10000 flows_plimit=45 "), "got %s", x.text);
    free(t.row);
    fake_end(&f);
}

static void test_sfq_trace(void)
{
    static const struct fake_gen gen[] = { { .size = 1013, .interval_ns = 811000, .count = 1000 },
                                           { .count = 0 } };
    struct trace t;
    struct fake f;

    trace_read(&t, "sfq_limit.csv");
    CU_ASSERT_EQUAL(t.count, 1000);
    CU_ASSERT_EQUAL_FATAL(fake_start(&f, &gw_qdisc_sfq, "limit 20", 1), GW_OK);
    fake_bucket(&f, HTB_8MBIT);
    fake_run(&f, gen);
    fake_check(&f);
    CU_ASSERT_EQUAL(trace_differs(&f, &t, true), 0);
    CU_ASSERT_EQUAL(f.dropped, 178);
    free(t.row);
    fake_end(&f);
}

static uint64_t bytes_until(const struct fake *f, uint32_t gen, uint64_t until_ps)
{
    uint64_t n = 0;

    for (uint64_t i = 0; i < f->frames; i++)
        if (f->fate[i].gen == gen && f->fate[i].left_ps < until_ps)
            n += f->pkt[i].len_bytes;
    return n;
}

static bool in_order(const struct fake *f, uint32_t gens)
{
    uint64_t last[16] = { 0 };

    for (uint64_t i = 0; i < f->frames; i++) {
        const struct fake_fate *x = &f->fate[i];

        if (x->left_ps == GW_NEVER || x->gen >= gens)
            continue;
        if (x->left_ps < last[x->gen])
            return false;
        last[x->gen] = x->left_ps;
    }
    return true;
}

/* Long and short frames of two flows get the same rate, whatever the quantum. */
static void test_sfq_shares(void)
{
    static const struct fake_gen gen[] = {
        { .flow = 0, .size = 1000, .interval_ns = 500000, .count = 8000 },
        { .flow = 1, .size = 300, .interval_ns = 500000, .count = 8000 }, { .count = 0 } };
    static const struct { const char *words; uint64_t got0, got1; } rows[] = {
        { "quantum 3000 limit 127", 2069, 6726 }, { "limit 127", 0, 0 }, { "headdrop", 0, 0 },
        { "quantum 300 depth 100 limit 300 flows 4", 0, 0 },
    };

    for (size_t r = 0; r < GW_ARRAY_LEN(rows); r++) {
        uint64_t a, b, got[2] = { 0 };
        struct fake f;

        CU_ASSERT_EQUAL_FATAL(fake_start(&f, &gw_qdisc_sfq, rows[r].words, 3), GW_OK);
        fake_bucket(&f, HTB_8MBIT);
        fake_run(&f, gen);
        fake_check(&f);
        a = bytes_until(&f, 0, 4 * GW_PS_PER_S);
        b = bytes_until(&f, 1, 4 * GW_PS_PER_S);
        CHECK_ROW(fabs((double)a / (double)(a + b) - 0.5) < 0.01, "%s: %lu and %lu bytes",
                  rows[r].words, (unsigned long)a, (unsigned long)b);
        for (uint64_t i = 0; i < f.frames; i++)
            got[f.fate[i].gen] += f.fate[i].left_ps != GW_NEVER;
        if (rows[r].got0)
            CHECK_ROW(labs((long)got[0] - (long)rows[r].got0) <= 20 &&
                      labs((long)got[1] - (long)rows[r].got1) <= 60, "%s: %lu and %lu frames",
                      rows[r].words, (unsigned long)got[0], (unsigned long)got[1]);
        CU_ASSERT(in_order(&f, 2));
        fake_end(&f);
    }
}

/* Full: the longest slot loses its newest, with headdrop its oldest; a slot takes depth packets. */
static void test_sfq_full(void)
{
    static const struct { const char *words; uint32_t lost[3]; } rows[] = {
        { "limit 6", { 4, 5, 99 } },              /* the newest of flow 0 when 6, 7 came        */
        { "limit 6 headdrop", { 0, 1, 99 } },
        { "limit 100 depth 3", { 3, 4, 5 } },
        { "limit 100 depth 3 headdrop", { 0, 1, 2 } },
    };

    for (size_t r = 0; r < GW_ARRAY_LEN(rows); r++) {
        struct fake_gen g = { .size = 500 };
        uint32_t n = 0;
        struct fake f;

        CU_ASSERT_EQUAL_FATAL(fake_start(&f, &gw_qdisc_sfq, rows[r].words, 3), GW_OK);
        fake_frames(&f, 8);
        for (uint32_t i = 0; i < 8; i++) {
            g.flow = i >= 6;
            fake_send(&f, i, &g, 0, i);
        }
        for (uint32_t i = 0; i < 8; i++)
            if (f.fate[i].dropped)
                CHECK_ROW(n < 3 && rows[r].lost[n++] == i, "%s: lost %u", rows[r].words, i);
        CHECK_ROW(f.dropped == n && n >= 2, "%s: lost %u", rows[r].words, n);
        f.ops->reset(&f.q, 0);
        CU_ASSERT_EQUAL(f.q.backlog_pkts, 0);
        fake_check(&f);
        fake_end(&f);
    }
}

/* Many flows through few slots, with perturbation and RED: nothing is lost from the books. */
static void test_sfq_books(void)
{
    static const char *const words[] = {
        "perturb 1 limit 60 flows 16 divisor 64", "perturb 1 flows 3 depth 5 limit 15 headdrop",
        "redflowlimit 100000 min 3000 max 9000 burst 5 probability 0.3 ecn",
        "redflowlimit 100000 min 3000 max 9000 burst 5 probability 0.3 headdrop ecn perturb 2",
        "redflowlimit 100000 min 3000 max 9000 burst 5 probability 0.3 harddrop ecn",
        "limit 2 divisor 1",
    };

    for (size_t w = 0; w < GW_ARRAY_LEN(words); w++) {
        struct fake_gen gen[13] = { { 0 } };
        struct fake f;

        for (uint32_t i = 0; i < 12; i++)
            gen[i] = (struct fake_gen){ .flow = i, .size = 400 + 50 * i, .count = 1500,
                .interval_ns = 5000000 + 100000 * i, .start_ns = 7 * i, .burst = 1 + i % 4,
                .ecn = i % 3 };
        CU_ASSERT_EQUAL_FATAL(fake_start(&f, &gw_qdisc_sfq, words[w], w), GW_OK);
        fake_bucket(&f, HTB_8MBIT);
        fake_run(&f, gen);
        fake_check(&f);
        CU_ASSERT_EQUAL(f.left + f.dropped, f.frames);
        CHECK_ROW(f.dropped > 100 && f.left > 4000, "%s: %lu left", words[w],
                  (unsigned long)f.left);
        CU_ASSERT(strstr(words[w], "perturb") || in_order(&f, 12));
        CU_ASSERT(!strstr(words[w], "ecn") || f.q.marked_pkts > 0);
        fake_end(&f);
    }
}

/* ---- fq ----------------------------------------------------------------------------------- */

/* At or below low_rate_threshold packets leave one by one, above it in bursts of a quantum. */
static void test_fq_pacing(void)
{
    static const struct { const char *words; uint32_t size; uint64_t at_us[6]; } rows[] = {
        { "maxrate 400kbit timer_slack 0", 1000, { 0, 20000, 40000, 60000, 80000, 100000 } },
        { "maxrate 400kbit timer_slack 0", 500, { 0, 10000, 20000, 30000, 40000, 50000 } },
        { "maxrate 8mbit timer_slack 0 initial_quantum 2000 quantum 2000", 1000,
          { 0, 0, 2000, 2000, 4000, 4000 } },
        { "maxrate 8mbit timer_slack 0 initial_quantum 4000 quantum 1000", 1000,
          { 0, 0, 0, 0, 1000, 2000 } },
        { "maxrate 8mbit nopacing", 1000, { 0, 0, 0, 0, 0, 0 } },
        { "maxrate 8kbit low_rate_threshold 0 initial_quantum 1 quantum 1 timer_slack 0", 2000,
          { 0, 1000000, 2000000, 3000000, 4000000, 5000000 } },      /* a wait is 1 s at most   */
    };

    for (size_t r = 0; r < GW_ARRAY_LEN(rows); r++) {
        struct fake_gen gen[] = { { .size = rows[r].size, .count = 6, .burst = 6 },
                                  { .count = 0 } };
        struct fake f;

        CU_ASSERT_EQUAL_FATAL(fake_start(&f, &gw_qdisc_fq, rows[r].words, 1), GW_OK);
        fake_run(&f, gen);
        for (int i = 0; i < 6; i++)
            CHECK_ROW(f.fate[i].left_ps == rows[r].at_us[i] * GW_PS_PER_US,
                      "%s, frame %d: left at %lu us want %lu", rows[r].words, i,
                      (unsigned long)(f.fate[i].left_ps / GW_PS_PER_US),
                      (unsigned long)rows[r].at_us[i]);
        fake_check(&f);
        fake_end(&f);
    }
}

/* Behind a slow link flows share it by bytes; priority 7 overtakes all. */
static void test_fq_shares(void)
{
    static const struct fake_gen gen[] = {
        { .flow = 0, .size = 1500, .interval_ns = 100000, .count = 20000 },
        { .flow = 1, .size = 200, .interval_ns = 100000, .count = 20000 },
        { .flow = 2, .size = 700, .interval_ns = 100000, .count = 20000 },
        { .flow = 3, .size = 100, .interval_ns = 50000000, .count = 40, .priority = 7 },
        { .count = 0 } };
    uint64_t sum = 0, part[3];
    struct fake f;

    CU_ASSERT_EQUAL_FATAL(fake_start(&f, &gw_qdisc_fq, "flow_limit 50", 1), GW_OK);
    f.rate_bps = 8000000;
    fake_run(&f, gen);
    fake_check(&f);
    for (uint32_t g = 0; g < 3; g++) {
        part[g] = bytes_until(&f, g, 2 * GW_PS_PER_S);
        sum += part[g];
    }
    for (uint32_t g = 0; g < 3; g++)
        CHECK_ROW(fabs((double)part[g] / (double)sum - 1 / 3.0) < 0.01, "flow %u: %lu of %lu", g,
                  (unsigned long)part[g], (unsigned long)sum);
    for (uint64_t i = 0; i < f.frames; i++)
        if (f.fate[i].gen == 3)
            CU_ASSERT(f.fate[i].left_ps - f.fate[i].sent_ps <= 1500 * GW_PS_PER_US);
    CU_ASSERT(in_order(&f, 4));
    fake_end(&f);
}

/* More flows than the table has: idle states are taken over; if all wait, the packet goes first. */
static void test_fq_table(void)
{
    struct fake_gen g = { .size = 1000 };
    uint32_t seen = 0, last = 0;
    struct fake_out x;
    struct gw_pkt *p;
    struct fake f;

    CU_ASSERT_EQUAL_FATAL(fake_start(&f, &gw_qdisc_fq, "buckets 4 maxrate 1mbit initial_quantum 1",
                                     1), GW_OK);
    fake_frames(&f, 60);
    for (uint32_t i = 0; i < 20; i++) {           /* one after the other: all find a state       */
        g.flow = i;
        f.now_ps += 100 * GW_PS_PER_MS;
        fake_send(&f, i, &g, 0, i);
        fake_drain(&f);
        f.now_ps += 50 * GW_PS_PER_MS;
        CU_ASSERT_PTR_NULL(f.ops->dequeue(&f.q, f.now_ps));
    }
    CU_ASSERT_EQUAL(f.left, 20);
    f.now_ps += GW_PS_PER_S;
    for (uint32_t i = 20; i < 40; i++) {          /* together: 8 states, 12 packets without      */
        g.flow = i;
        fake_send(&f, i, &g, 0, i);
    }
    fake_show(&f, &x, true, true);
    CHECK_ROW(strstr(x.text, "alloc_errors=12") != NULL && strstr(x.text, "flows=8 inactive=0") ==
              x.text, "got %s", x.text);
    while ((p = f.ops->dequeue(&f.q, f.now_ps))) {
        CU_ASSERT(seen < 12 ? p->tp[0] >= 28 : p->tp[0] < 28 && p->tp[0] >= last);
        seen++;
        last = seen > 12 ? (uint32_t)p->tp[0] : 0;
        f.fate[p->tp[0]].left_ps = f.now_ps;
        f.q.backlog_pkts--;
        f.q.backlog_bytes -= 1000;
    }
    CU_ASSERT_EQUAL(seen, 20);
    CU_ASSERT_EQUAL(fake_change(&f, "buckets 64"), GW_OK);
    for (uint32_t i = 40; i < 60; i++) {
        g.flow = i;
        fake_send(&f, i, &g, 0, i);
    }
    fake_show(&f, &x, true, true);
    CHECK_ROW(strstr(x.text, "alloc_errors=12") != NULL, "got %s", x.text);
    f.ops->reset(&f.q, f.now_ps);
    CU_ASSERT_EQUAL(f.q.backlog_pkts, 0);
    fake_end(&f);
}

/* Both directions of a flow are two flows. */
static void test_fq_directions(void)
{
    struct fake_gen g = { .size = 1000 };
    struct fake f;

    CU_ASSERT_EQUAL_FATAL(fake_start(&f, &gw_qdisc_fq, "flow_limit 2", 1), GW_OK);
    fake_frames(&f, 4);
    for (uint32_t i = 0; i < 3; i++)
        fake_send(&f, i, &g, 0, i);
    CU_ASSERT_EQUAL(f.dropped, 1);
    f.pkt[3] = f.pkt[0];
    f.pkt[3].flags |= GW_PKT_REVERSE;
    CU_ASSERT_EQUAL(f.ops->enqueue(&f.q, &f.pkt[3], 0), GW_Q_QUEUED);
    fake_end(&f);
}

/* Many throttled flows wake in the order of their times, equal ones in that of throttling. */
static void test_fq_heap(void)
{
    struct fake_gen gen[14] = { { 0 } };
    struct fake f;

    for (uint32_t i = 0; i < 13; i++)
        gen[i] = (struct fake_gen){ .flow = i * 17 + 3, .size = 200 + 97 * (i * 5 % 13),
                                    .interval_ns = 1000000, .count = 300, .start_ns = 1000 * i };
    CU_ASSERT_EQUAL_FATAL(fake_start(&f, &gw_qdisc_fq, "maxrate 500kbit flow_limit 1000", 1),
                          GW_OK);
    fake_run(&f, gen);
    fake_check(&f);
    CU_ASSERT_EQUAL(f.left, 13 * 300);
    CU_ASSERT(in_order(&f, 13));
    for (uint32_t g = 0; g < 13; g++) {           /* each flow at its own 62500 bytes/s          */
        uint64_t first = GW_NEVER, last = 0, want = 299ull * gen[g].size * 16;

        for (uint64_t i = 0; i < f.frames; i++)
            if (f.fate[i].gen == g) {
                first = f.fate[i].left_ps < first ? f.fate[i].left_ps : first;
                last = f.fate[i].left_ps > last ? f.fate[i].left_ps : last;
            }
        CHECK_ROW(fabs((double)(last - first) / 1e6 - (double)want) < 25, "flow %u: %lu us want "
                  "%lu", g, (unsigned long)((last - first) / 1000000), (unsigned long)want);
    }
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

#define SFQ(limit, more) "limit=" limit " quantum=1514 depth=127 " more
#define RED_OFF "ecn=false harddrop=false adaptive=false nodrop=false "

static void test_sfq_words(void)
{
    static const struct words_row rows[] = {
        { "", NULL, GW_OK, SFQ("127", "divisor=1024 ") },
        { "flows 32", NULL, GW_OK, SFQ("127", "divisor=1024 ") },
        { "limit 100000", NULL, GW_OK, SFQ("16256", "divisor=1024 ") },
        { "flows 100000 limit 100000000", NULL, GW_OK, SFQ("8306816", "divisor=1024 ") },
        { "divisor 64 flows 1000 limit 100000", NULL, GW_OK, SFQ("8128", "divisor=64 ") },
        { "headdrop", NULL, GW_OK, SFQ("127", "headdrop=true divisor=1024 ") },
        { "limit 64 perturb 10 quantum 3000 divisor 512 flows 32 depth 32", NULL, GW_OK,
          "limit=64 quantum=3000 depth=32 divisor=512 perturb=10 " },
        { "quantum 0 depth 200 perturb 0", NULL, GW_OK, SFQ("127", "divisor=1024 ") },
        { "flows 2 depth 1 limit 10", NULL, GW_OK, "limit=2 quantum=1514 depth=1 divisor=1024 " },
        { "redflowlimit 100000", NULL, GW_OK, SFQ("127", "divisor=1024 ewma=3 min=8333 max=25000 "
          "probability=0.0199999998 " RED_OFF) },
        { "redflowlimit 100000 min 8000 max 60000 probability 0.2 ecn headdrop", NULL, GW_OK,
          SFQ("127", "headdrop=true divisor=1024 ewma=6 min=8000 max=60000 probability=0.2 "
          "ecn=true harddrop=false adaptive=false nodrop=false ") },
        { "limit 1", NULL, GW_SYNTAX, NULL }, { "limit 0", NULL, GW_SYNTAX, NULL },
        { "divisor 1000", NULL, GW_PARAM, NULL }, { "divisor 131072", NULL, GW_PARAM, NULL },
        { "quantum 4000000000", NULL, GW_PARAM, NULL }, { "perturb -5", NULL, GW_PARAM, NULL },
        { "perturb 21474836", NULL, GW_OK, SFQ("127", "divisor=1024 perturb=21474836 ") },
        { "perturb 21474837", NULL, GW_PARAM, NULL },
        { "perturb 3000000000", NULL, GW_SYNTAX, NULL },
        { "flows 1 depth 1 limit 10", NULL, GW_PARAM, NULL },
        { "min 8000", NULL, GW_SYNTAX, NULL }, { "ecn", NULL, GW_SYNTAX, NULL },
        { "redflowlimit 100k", NULL, GW_SYNTAX, NULL },
        { "redflowlimit 100000 min 8000 max 600000", NULL, GW_SYNTAX, NULL },
        { "redflowlimit 100000 min 8000 max 8000", NULL, GW_SYNTAX, NULL },
        { "redflowlimit 100000 min 8000 max 60000 burst 2", NULL, GW_SYNTAX, NULL },
        { "redflowlimit 100000 avpkt 0", NULL, GW_SYNTAX, NULL },
        { "redflowlimit 10000000 min 1000000 max 9000000 avpkt 100 burst 400000", NULL, GW_PARAM,
          NULL },
        { "limit", NULL, GW_INCOMPLETE, NULL }, { "bogus", NULL, GW_SYNTAX, NULL },
    };
    struct fake f;

    check_words(&gw_qdisc_sfq, rows, GW_ARRAY_LEN(rows));
    /* Nothing of sfq can be changed; a line without words asks for nothing, and is right. */
    CU_ASSERT_EQUAL_FATAL(fake_start(&f, &gw_qdisc_sfq, "", 1), GW_OK);
    CU_ASSERT_EQUAL(fake_change(&f, ""), GW_OK);
    CU_ASSERT_EQUAL(fake_change(&f, "limit 100"), GW_PARAM);
    f.err.code = GW_OK;
    fake_end(&f);
}

#define FQ_HEAD "limit=10000 flow_limit=100 buckets=1024 orphan_mask=1023 "
#define FQ_Q "quantum=3028 initial_quantum=15140 "
#define FQ_TAIL "refill_delay=40000 timer_slack=10000 horizon=10000000 horizon_drop=null "

static void test_fq_words(void)
{
    static const struct words_row rows[] = {
        { "", NULL, GW_OK, FQ_HEAD FQ_Q "low_rate_threshold=68750 " FQ_TAIL },
        { "flow_limit 10 limit 0", NULL, GW_OK, "limit=0 flow_limit=10 buckets=1024 "
          "orphan_mask=1023 " FQ_Q "low_rate_threshold=68750 " FQ_TAIL },
        { "nopacing", NULL, GW_OK,
          FQ_HEAD "pacing=false " FQ_Q "low_rate_threshold=68750 " FQ_TAIL },
        { "buckets 100 orphan_mask 0x10", NULL, GW_OK, "limit=10000 flow_limit=100 buckets=128 "
          "orphan_mask=16 " FQ_Q "low_rate_threshold=68750 " FQ_TAIL },
        { "buckets 0", NULL, GW_OK, FQ_HEAD FQ_Q "low_rate_threshold=68750 " FQ_TAIL },
        { "maxrate 1mbit defrate 500kbit low_rate_threshold 0", NULL, GW_OK,
          FQ_HEAD FQ_Q "maxrate=125000 " FQ_TAIL },
        { "maxrate 34gbit", NULL, GW_OK,
          FQ_HEAD FQ_Q "maxrate=4250000000 low_rate_threshold=68750 " FQ_TAIL },
        { "maxrate 34359738360bit", NULL, GW_OK, FQ_HEAD FQ_Q "low_rate_threshold=68750 " FQ_TAIL },
        { "ce_threshold 4ms pacing", NULL, GW_OK, FQ_HEAD FQ_Q "low_rate_threshold=68750 "
          "refill_delay=40000 ce_threshold=4000 timer_slack=10000 horizon=10000000 "
          "horizon_drop=null " },
        { "timer_slack 5us horizon 0 horizon_cap", NULL, GW_OK, FQ_HEAD FQ_Q
          "low_rate_threshold=68750 refill_delay=40000 timer_slack=5000 horizon=0 "
          "horizon_cap=null " },
        { "refill_delay 10ms timer_slack 5", NULL, GW_OK, FQ_HEAD FQ_Q "low_rate_threshold=68750 "
          "refill_delay=10000 timer_slack=5 horizon=10000000 horizon_drop=null " },
        { "quantum 1048576 initial_quantum 0", NULL, GW_OK, FQ_HEAD "quantum=1048576 "
          "initial_quantum=0 low_rate_threshold=68750 " FQ_TAIL },
        { "maxrate 1mbit limit 5 horizon 3s horizon_cap nopacing", "flow_limit 3 buckets 2048",
          GW_OK, "limit=5 flow_limit=3 buckets=2048 orphan_mask=1023 pacing=false " FQ_Q
          "maxrate=125000 low_rate_threshold=68750 refill_delay=40000 timer_slack=10000 "
          "horizon=3000000 horizon_cap=null " },
        { "limit 5", "quantum 0", GW_PARAM, "limit=5 flow_limit=100 buckets=1024 orphan_mask=1023 "
          FQ_Q "low_rate_threshold=68750 " FQ_TAIL },
        { "maxrate 50%", NULL, GW_SYNTAX, NULL }, { "maxrate 40gbit", NULL, GW_SYNTAX, NULL },
        { "low_rate_threshold 50%", NULL, GW_SYNTAX, NULL },
        { "quantum 0", NULL, GW_PARAM, NULL }, { "quantum 2000000", NULL, GW_PARAM, NULL },
        { "quantum 1k", NULL, GW_SYNTAX, NULL },
        { "initial_quantum 4294967295", NULL, GW_PARAM, NULL },
        { "buckets 1", NULL, GW_PARAM, NULL }, { "buckets 262145", NULL, GW_PARAM, NULL },
        { "timer_slack 5s", NULL, GW_SYNTAX, NULL }, { "timer_slack -5", NULL, GW_SYNTAX, NULL },
        { "limit", NULL, GW_INCOMPLETE, NULL }, { "bogus", NULL, GW_SYNTAX, NULL },
    };

    check_words(&gw_qdisc_fq, rows, GW_ARRAY_LEN(rows));
}

static const struct gw_case cases[] = {
    { "fq: the kernel's fates and times", test_fq_trace },
    { "fq: pacing", test_fq_pacing },
    { "fq: shares and priority", test_fq_shares },
    { "fq: the table of flows", test_fq_table },
    { "fq: directions", test_fq_directions },
    { "fq: the heap", test_fq_heap },
    { "fq: words", test_fq_words },
    { "sfq: the kernel's fates and times", test_sfq_trace },
    { "sfq: shares", test_sfq_shares },
    { "sfq: full", test_sfq_full },
    { "sfq: books", test_sfq_books },
    { "sfq: words", test_sfq_words },
    { NULL, NULL },
};
const struct gw_suite suite_sch_fq = { "sch_fq", cases };
