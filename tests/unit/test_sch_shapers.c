/*
 * test_sch_shapers - tbf and htb against recorded kernels, closed forms and their own recurrences
 *
 * The traces tests/data/tc/{tbf,htb,pfifo_head_drop}*.csv were recorded by this project from Linux
 * 6.1 in virtual time: frames with the time they were sent and received, good to a microsecond. The
 * shares are from the same kernel (behaviour.json). Departures of tbf are also compared, to the
 * nanosecond, with a plain recurrence at rates, bursts and sizes that no trace has.
 */
#include "tests/unit/tc_bench.h"

/* ---- traces ------------------------------------------------------------------------------- */

struct trace_row {
    const char *file;
    const char *tc[4];
    uint32_t frames;
    uint64_t overlimits, sent_bytes;           /* of the root; 0: not compared                 */
};

static const struct trace_row traces[] = {
    { "tbf_basic", { "qdisc add dev v0 root handle 1: tbf rate 1mbit burst 5000 limit 20000" },
      150, 197, 60780 },
    { "tbf_sizes", { "qdisc add dev v0 root handle 1: tbf rate 1mbit burst 3000 limit 100000" },
      50, 33, 39044 },
    { "tbf_toobig", { "qdisc add dev v0 root handle 1: tbf rate 1mbit burst 1200 limit 100000" },
      50, 37, 29960 },
    { "tbf_stab", { "qdisc add dev v0 root handle 1: stab overhead 24 mpu 84 tbf rate 1mbit burst "
                    "3000 limit 100000" }, 50, 35, 40256 },
    { "htb_direct", { "qdisc add dev v0 root handle 1: htb",
                      "class add dev v0 parent 1: classid 1:10 htb rate 1mbit" }, 100, 0, 100000 },
    { "pfifo_head_drop_10",
      { "qdisc add dev v0 root handle 1: htb default 1",
        "class add dev v0 parent 1: classid 1:1 htb rate 8mbit ceil 8mbit burst 1600 cburst 1600",
        "qdisc add dev v0 parent 1:1 handle 10: pfifo_head_drop limit 10" }, 400, 329, 336316 },
};

static void read_trace(struct bench *b, const char *name)
{
    char path[512], line[256];
    long long seq, gen, size, sent, came;
    FILE *f;

    snprintf(path, sizeof path, "%s/tests/data/tc/%s.csv", GW_TEST_SRCDIR, name);
    f = fopen(path, "r");
    CU_ASSERT_PTR_NOT_NULL_FATAL(f);
    CU_ASSERT_PTR_NOT_NULL_FATAL(fgets(line, sizeof line, f));
    while (fgets(line, sizeof line, f)) {
        CU_ASSERT_EQUAL_FATAL(sscanf(line, "%lld,%lld,%lld,%lld,%lld", &seq, &gen, &size, &sent,
                                     &came), 5);
        bench_add(b, (uint64_t)sent, (uint32_t)size, (uint32_t)seq, 0);
        b->frame[b->frames - 1].want_ns = came;
    }
    fclose(f);
}

/* A fate is a time within a microsecond, or the loss. */
static bool same_fate(const struct bench_frame *f)
{
    int64_t out = (int64_t)(f->out_ps / GW_PS_PER_NS);

    if (f->want_ns < 0)
        return f->out_ps == GW_NEVER && f->dropped;
    return f->out_ps != GW_NEVER && out - f->want_ns <= 1000 && f->want_ns - out <= 1000;
}

static void test_traces(void)
{
    for (size_t i = 0; i < GW_ARRAY_LEN(traces); i++) {
        const struct trace_row *t = &traces[i];
        const struct gw_qdisc *q;
        struct bench b;

        bench_open(&b);
        for (size_t k = 0; k < GW_ARRAY_LEN(t->tc) && t->tc[k]; k++)
            bench_tc(&b, t->tc[k]);
        read_trace(&b, t->file);
        CU_ASSERT_EQUAL(b.frames, t->frames);
        bench_play(&b, GW_NEVER);
        for (uint32_t k = 0; k < b.frames; k++)
            CHECK_ROW(same_fate(&b.frame[k]), "%s: frame %u: got %lld ns, the kernel %lld",
                      t->file, k, b.frame[k].out_ps == GW_NEVER ? -1 :
                      (long long)(b.frame[k].out_ps / GW_PS_PER_NS),
                      (long long)b.frame[k].want_ns);
        q = b.tree->root;
        CHECK_ROW(q->sent_bytes == t->sent_bytes, "%s: %llu bytes, the kernel %llu", t->file,
                  (unsigned long long)q->sent_bytes, (unsigned long long)t->sent_bytes);
        CHECK_ROW(q->overlimits == t->overlimits, "%s: overlimits %llu, the kernel %llu", t->file,
                  (unsigned long long)q->overlimits, (unsigned long long)t->overlimits);
        bench_check_books(&b, t->file);
        bench_close(&b);
    }
}

/* ---- tbf: a plain recurrence -------------------------------------------------------------- */

struct tbf_row {
    const char *words;
    uint64_t rate, peak;                       /* bytes/s                                      */
    uint32_t burst, mtu, limit, overhead, mpu;
    bool     atm;
};

static const struct tbf_row tbf_rows[] = {
    { "rate 10mbit burst 16kb limit 200kb", 1250000, 0, 16384, 0, 204800, 0, 0, false },
    { "rate 999kbit burst 1600 limit 5000", 124875, 0, 1600, 0, 5000, 0, 0, false },
    { "rate 123456789bit burst 32kb latency 1ms", 15432098, 0, 32768, 0, 48200, 0, 0, false },
    { "rate 40gbit burst 100kb limit 1mb", 5000000000, 0, 102400, 0, 1048576, 0, 0, false },
    { "rate 100gbit burst 1mb limit 1mb", 12500000000, 0, 1048576, 0, 1048576, 0, 0, false },
    { "rate 2mbit burst 9000 limit 60000 overhead 24 mpu 84", 250000, 0, 9000, 0, 60000, 24, 84,
      false },
    { "rate 3mbit burst 5000 limit 50000 linklayer atm overhead 10", 375000, 0, 5000, 0, 50000, 10,
      0, true },
    { "rate 1mbit burst 20000 limit 90000 peakrate 3mbit mtu 1600", 125000, 375000, 20000, 1600,
      90000, 0, 0, false },
    { "rate 8bit burst 2000 limit 3000", 1, 0, 2000, 0, 3000, 0, 0, false },
};

/* floor(bytes * 10^9 / rate), which the kernel's multiplication may miss by a nanosecond. */
static int64_t tbf_cost(const struct tbf_row *r, uint64_t rate, uint32_t len)
{
    uint64_t n = len + r->overhead;

    n = n < r->mpu ? r->mpu : n;
    if (r->atm)
        n = (n + 47) / 48 * 53;
    return (int64_t)gw_mul_div(n, 1000000000, rate);
}

struct tbf_model {
    int64_t depth, pdepth, tokens, ptokens, at;
};

/* When a frame that heads the queue at @now_ns leaves; pays for it. */
static int64_t tbf_model_next(struct tbf_model *m, const struct tbf_row *r, int64_t now_ns,
                              uint32_t len)
{
    int64_t cost = tbf_cost(r, r->rate, len), pcost = r->peak ? tbf_cost(r, r->peak, len) : 0;
    int64_t need = cost - m->tokens, pneed = pcost - m->ptokens, go;

    need = need > pneed ? need : pneed;
    go = m->at + need > now_ns ? m->at + need : now_ns;
    m->tokens += go - m->at;
    m->ptokens += go - m->at;
    m->tokens = (m->tokens > m->depth ? m->depth : m->tokens) - cost;
    m->ptokens = (m->ptokens > m->pdepth ? m->pdepth : m->ptokens) - pcost;
    m->at = go;
    return go;
}

static uint32_t dice(uint64_t *state)
{
    *state = *state * UINT64_C(6364136223846793005) + 1442695040888963407;
    return (uint32_t)(*state >> 33);
}

/* @count frames of mixed sizes, at about 1.2 times the rate, in runs with pauses. */
static void mixed_frames(struct bench *b, uint64_t rate, uint32_t count, uint64_t seed)
{
    uint64_t at = 1000;

    for (uint32_t i = 0; i < count; i++) {
        uint32_t size = 60 + dice(&seed) % 1455;

        bench_add(b, at++, size, 0, 0);
        if (dice(&seed) % 4)
            at += gw_mul_div(size * UINT64_C(8) / 7, 1000000000, rate);
        if (!(dice(&seed) % 50))
            at += gw_mul_div(20000, 1000000000, rate);
    }
}

static void tbf_against_model(const struct tbf_row *r, uint32_t count)
{
    struct tbf_model m = { .depth = tbf_cost(r, r->rate, r->burst) };
    uint32_t max = r->peak && r->mtu < r->burst ? r->mtu : r->burst, head = 0;
    uint64_t backlog = 0, slack;
    int64_t free_at = 0, worst = 0;
    char line[256];
    struct bench b;

    bench_open(&b);
    snprintf(line, sizeof line, "qdisc add dev v0 root tbf %s", r->words);
    bench_tc(&b, line);
    mixed_frames(&b, r->rate, count, 7 + r->rate);
    bench_play(&b, GW_NEVER);
    m.pdepth = r->peak ? tbf_cost(r, r->peak, r->mtu) : 0;
    m.tokens = m.depth;
    m.ptokens = m.pdepth;
    for (uint32_t i = 0; i < b.frames; i++) {
        struct bench_frame *f = &b.frame[i];
        bool fits;

        for (; head < i && (b.frame[head].dropped || b.frame[head].out_ps < f->at_ps); head++)
            backlog -= b.frame[head].dropped ? 0 : b.frame[head].size;
        fits = f->size <= max && backlog + f->size <= r->limit;
        CHECK_ROW(fits == (f->out_ps != GW_NEVER), "tbf %s: frame %u of %u bytes behind %llu: %s",
                  r->words, i, f->size, (unsigned long long)backlog, fits ? "lost" : "sent");
        if (f->out_ps == GW_NEVER)
            continue;
        backlog += f->size;
        free_at = tbf_model_next(&m, r, free_at > (int64_t)(f->at_ps / 1000) ? free_at :
                                 (int64_t)(f->at_ps / 1000), f->size);
        if (llabs(free_at - (int64_t)(f->out_ps / 1000)) > worst)
            worst = llabs(free_at - (int64_t)(f->out_ps / 1000));
    }
    /* The multiplier has 31 bits or more: a frame costs at most 1 ns and 2^-31 of itself less. */
    slack = count * (2 + ((uint64_t)tbf_cost(r, r->rate, 1600) >> 31));
    CHECK_ROW((uint64_t)worst <= slack, "tbf %s: %lld ns off after %u frames, %llu allowed",
              r->words, (long long)worst, count, (unsigned long long)slack);
    bench_check_books(&b, r->words);
    bench_close(&b);
}

static void test_tbf_model(void)
{
    for (size_t i = 0; i < GW_ARRAY_LEN(tbf_rows); i++)
        tbf_against_model(&tbf_rows[i], 3000);
}

/* A burst of 20 frames of 1000 bytes at 8 Mbit/s (1 ms each) with a bucket of @burst bytes. */
static void test_tbf_burst(void)
{
    static const struct { uint32_t burst, at_once; } rows[] = {
        { 1000, 1 }, { 1999, 1 }, { 2000, 2 }, { 5000, 5 }, { 20000, 20 } };

    for (size_t i = 0; i < GW_ARRAY_LEN(rows); i++) {
        char line[128];
        struct bench b;

        bench_open(&b);
        snprintf(line, sizeof line, "qdisc add dev v0 root tbf rate 8mbit burst %u limit 100000",
                 rows[i].burst);
        bench_tc(&b, line);
        bench_gen(&b, 0, 1000, 1, 5, 20, 0, 20);
        bench_play(&b, GW_NEVER);
        for (uint32_t k = 0; k < 20; k++) {
            long long spare = (long long)(k + 1) * 1000 - rows[i].burst;
            uint64_t want = 5000 + (spare > 0 ? (uint64_t)spare * 1000000 : 0);

            CHECK_ROW(b.frame[k].out_ps == want && (want == 5000) == (k < rows[i].at_once),
                      "burst %u: frame %u left at %llu ps, want %llu", rows[i].burst, k,
                      (unsigned long long)b.frame[k].out_ps, (unsigned long long)want);
        }
        bench_close(&b);
    }
}

/* change: what waits stays, the bucket is full again, the inner limit is the new one. */
static void test_tbf_change(void)
{
    struct bench b;

    bench_open(&b);
    bench_tc(&b, "qdisc add dev v0 root handle 1: tbf rate 8mbit burst 1000 limit 10000");
    bench_gen(&b, 0, 1000, 1, 0, 9, 0, 9);
    bench_gen(&b, 0, 1000, BENCH_MS, 5500001, 3, 0, 1);
    bench_play(&b, 5500000);
    CU_ASSERT_EQUAL(b.sent, 6);
    CU_ASSERT_EQUAL(bench_tc_at(&b, 5500000, "qdisc change dev v0 root handle 1: tbf rate 4mbit "
                                "burst 2000 limit 3000"), 0);
    bench_play(&b, GW_NEVER);
    CU_ASSERT_EQUAL(b.frame[6].out_ps, UINT64_C(5500001000));
    CU_ASSERT_EQUAL(b.frame[7].out_ps, UINT64_C(5500001000));
    CU_ASSERT_EQUAL(b.frame[8].out_ps, UINT64_C(7500001000));
    CU_ASSERT(b.frame[9].dropped);             /* came while three were waiting                */
    CU_ASSERT_EQUAL(b.frame[10].out_ps, UINT64_C(9500001000));
    CU_ASSERT_EQUAL(b.frame[11].out_ps, UINT64_C(11500001000));
    CU_ASSERT_EQUAL(bench_tc_at(&b, 0, "qdisc change dev v0 root handle 1: tbf rate 4mbit burst "
                                "2000 limit 3000 peakrate 3mbit mtu 1600"), 2);
    bench_check_books(&b, "tbf change");
    bench_close(&b);
}

/* A child in the place of the bfifo: the inner limit is then the child's. */
static void test_tbf_child(void)
{
    struct bench b;

    bench_open(&b);
    bench_tc(&b, "qdisc add dev v0 root handle 1: tbf rate 8mbit burst 1000 limit 2000");
    bench_tc(&b, "qdisc add dev v0 parent 1:1 handle 10: pfifo limit 5");
    bench_gen(&b, 0, 1000, 1, 0, 9, 0, 9);
    bench_play(&b, GW_NEVER);
    CU_ASSERT_EQUAL(b.sent, 6);                /* one at once, five that waited                */
    CU_ASSERT_EQUAL(bench_tc_at(&b, 0, "qdisc change dev v0 handle 1: root tbf rate 8mbit burst "
                                "1000 limit 3"), 0);
    bench_tc(&b, "qdisc show dev v0");
    CU_ASSERT_PTR_NOT_NULL(strstr(b.text, "qdisc pfifo 10: parent 1:1 limit 3p"));
    bench_check_books(&b, "tbf child");
    bench_close(&b);
}

/* ---- htb: shares that the kernel gave ----------------------------------------------------- */

struct share_gen {
    uint32_t size, priority, count, received;   /* received by the kernel                      */
    uint64_t interval_ns;
    double   mbit;                              /* between 10 and 100 % of the time of sending */
};

struct share_row {
    const char *name, *tc[7];
    struct share_gen gen[3];
    uint64_t overlimits;
};

static const struct share_row shares[] = {
    { "prio_strict",
      { "qdisc add dev v0 root handle 1: htb default 1",
        "class add dev v0 parent 1: classid 1:1 htb rate 8mbit ceil 8mbit burst 1600 cburst 1600",
        "qdisc add dev v0 parent 1:1 handle 10: prio" },
      { { 1000, 6, 1000, 1000, 2000000, 3.99955 }, { 1000, 0, 1000, 1000, 2000000, 3.99955 },
        { 1000, 2, 1000, 1000, 2000000, 0.0 } }, 2999 },
    { "htb_both_full",
      { "qdisc add dev v0 root handle 1: htb default 20",
        "class add dev v0 parent 1: classid 1:1 htb rate 8mbit burst 1600 cburst 1600",
        "class add dev v0 parent 1:1 classid 1:10 htb rate 6mbit ceil 8mbit burst 1600 cburst 1600",
        "class add dev v0 parent 1:1 classid 1:20 htb rate 2mbit ceil 8mbit burst 1600 cburst "
        "1600" },
      { { 1000, 65552, 6000, 4602, 800000, 6.001 }, { 1000, 65568, 6000, 2202, 800000, 2.00033 } },
      668 },
    { "htb_equal_prio_borrow",
      { "qdisc add dev v0 root handle 1: htb default 20",
        "class add dev v0 parent 1: classid 1:1 htb rate 8mbit burst 1600 cburst 1600",
        "class add dev v0 parent 1:1 classid 1:10 htb rate 2mbit ceil 8mbit burst 1600 cburst 1600 "
        "quantum 3000",
        "class add dev v0 parent 1:1 classid 1:20 htb rate 2mbit ceil 8mbit burst 1600 cburst 1600 "
        "quantum 1500" },
      { { 1000, 65552, 6000, 3801, 800000, 4.66744 },
        { 1000, 65568, 6000, 3001, 800000, 3.33389 } },
      5169 },
    { "drr_1_1_sizes",
      { "qdisc add dev v0 root handle 1: htb default 1",
        "class add dev v0 parent 1: classid 1:1 htb rate 8mbit ceil 8mbit burst 1600 cburst 1600",
        "qdisc add dev v0 parent 1:1 handle 10: drr",
        "class add dev v0 parent 10: classid 10:1 drr quantum 1514",
        "qdisc add dev v0 parent 10:1 handle 100: pfifo limit 50",
        "class add dev v0 parent 10: classid 10:2 drr quantum 1514",
        "qdisc add dev v0 parent 10:2 handle 101: pfifo limit 50" },
      { { 1500, 0x100001, 6000, 2051, 1000000, 4.00017 },
        { 300, 0x100002, 24000, 10051, 250000, 3.99928 } }, 12101 },
};

static double gen_mbit(const struct bench *b, uint32_t gen, const struct share_gen *g)
{
    double span = (double)g->interval_ns * g->count, bits = 0;

    for (uint32_t i = 0; i < b->frames; i++) {
        double out = (double)b->frame[i].out_ps / 1000;

        if (b->frame[i].gen == gen && b->frame[i].out_ps != GW_NEVER && out >= span / 10 &&
            out <= span)
            bits += 8.0 * b->frame[i].size;
    }
    return bits / (0.9 * span) * 1000;
}

static uint32_t gen_received(const struct bench *b, uint32_t gen)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < b->frames; i++)
        n += b->frame[i].gen == gen && b->frame[i].out_ps != GW_NEVER;
    return n;
}

static void test_shares(void)
{
    for (size_t i = 0; i < GW_ARRAY_LEN(shares); i++) {
        const struct share_row *r = &shares[i];
        struct bench b;

        bench_open(&b);
        for (size_t k = 0; k < GW_ARRAY_LEN(r->tc) && r->tc[k]; k++)
            bench_tc(&b, r->tc[k]);
        for (uint32_t g = 0; g < 3 && r->gen[g].count; g++)
            bench_gen(&b, g, r->gen[g].size, r->gen[g].interval_ns, 0, r->gen[g].count,
                      r->gen[g].priority, 1);
        bench_play(&b, GW_NEVER);
        for (uint32_t g = 0; g < 3 && r->gen[g].count; g++) {
            double mbit = gen_mbit(&b, g, &r->gen[g]), off = mbit - r->gen[g].mbit;
            int missing = (int)gen_received(&b, g) - (int)r->gen[g].received;

            CHECK_ROW(off <= 0.01 * r->gen[g].mbit && off >= -0.01 * r->gen[g].mbit,
                      "%s: generator %u: %.4f Mbit/s, the kernel %.4f", r->name, g, mbit,
                      r->gen[g].mbit);
            CHECK_ROW(missing >= -2 && missing <= 2, "%s: generator %u: %d frames more than the "
                      "kernel's %u", r->name, g, missing, r->gen[g].received);
        }
        CHECK_ROW(b.tree->root->overlimits + 3 >= r->overlimits &&
                  b.tree->root->overlimits <= r->overlimits + 3, "%s: overlimits %llu, the kernel "
                  "%llu", r->name, (unsigned long long)b.tree->root->overlimits,
                  (unsigned long long)r->overlimits);
        CU_ASSERT_EQUAL(b.disorder, 0);
        bench_check_books(&b, r->name);
        bench_close(&b);
    }
}

/* ---- htb: closed forms -------------------------------------------------------------------- */

/* A class sends the frames that begin while its tokens are not below 0: here those that start
 * within the burst, then one each time the tokens reach 0 again. */
static void test_htb_burst(void)
{
    static const struct { uint32_t burst, at_once; } rows[] = {
        { 1600, 2 }, { 999, 1 }, { 2000, 3 }, { 5000, 6 }, { 5500, 6 } };

    for (size_t i = 0; i < GW_ARRAY_LEN(rows); i++) {
        char line[160];
        struct bench b;

        bench_open(&b);
        bench_tc(&b, "qdisc add dev v0 root handle 1: htb default 1");
        snprintf(line, sizeof line, "class add dev v0 parent 1: classid 1:1 htb rate 8mbit burst "
                 "%u cburst 100000", rows[i].burst);
        bench_tc(&b, line);
        bench_gen(&b, 0, 1000, 1, 5, 20, 0, 20);
        bench_play(&b, GW_NEVER);
        for (uint32_t k = 0; k < 20; k++) {
            /* Bucket of whole us, in ticks of 64 ns, both cut. */
            long long depth = (long long)(rows[i].burst * 15.625) * 64;
            long long wait = (long long)k * 1000000 - depth;
            uint64_t want = 5000 + (wait > 0 ? (uint64_t)wait * 1000 : 0);

            CHECK_ROW(b.frame[k].out_ps == want && (want == 5000) == (k < rows[i].at_once),
                      "burst %u: frame %u left at %llu ps, want %llu", rows[i].burst, k,
                      (unsigned long long)b.frame[k].out_ps, (unsigned long long)want);
        }
        bench_close(&b);
    }
}

/* Offered 4 times the rate on a tree of three levels: what each leaf gets, in Mbit/s. */
struct tree_row {
    const char *name, *tc[7];
    uint32_t priority[3];
    double   offered[3], mbit[3];
};

#define HTB_TOP "class add dev v0 parent 1: classid 1:1 htb rate 10mbit burst 1600 cburst 1600"
static const struct tree_row trees[] = {
    { "priority 0 takes all that may be borrowed",
      { HTB_TOP, "class add dev v0 parent 1:1 classid 1:10 htb rate 2mbit ceil 10mbit prio 0",
        "class add dev v0 parent 1:1 classid 1:20 htb rate 3mbit ceil 10mbit prio 1" },
      { 0x10010, 0x10020 }, { 20, 20 }, { 7, 3 } },
    { "what one leaves the others borrow",
      { HTB_TOP, "class add dev v0 parent 1:1 classid 1:10 htb rate 6mbit ceil 10mbit",
        "class add dev v0 parent 1:1 classid 1:20 htb rate 4mbit ceil 10mbit" },
      { 0x10010, 0x10020 }, { 1, 20 }, { 1, 9 } },
    { "ceil bounds what is borrowed",
      { HTB_TOP, "class add dev v0 parent 1:1 classid 1:10 htb rate 2mbit ceil 5mbit" },
      { 0x10010 }, { 20 }, { 5 } },
    { "no parent, no loan",
      { "class add dev v0 parent 1: classid 1:10 htb rate 2mbit ceil 5mbit" },
      { 0x10010 }, { 20 }, { 2 } },
    { "loans go through two levels",
      { HTB_TOP, "class add dev v0 parent 1:1 classid 1:2 htb rate 6mbit ceil 10mbit",
        "class add dev v0 parent 1:1 classid 1:3 htb rate 4mbit ceil 10mbit",
        "class add dev v0 parent 1:2 classid 1:20 htb rate 3mbit ceil 10mbit",
        "class add dev v0 parent 1:2 classid 1:21 htb rate 3mbit ceil 10mbit",
        "class add dev v0 parent 1:3 classid 1:30 htb rate 4mbit ceil 10mbit" },
      { 0x10020, 0x10021, 0x10030 }, { 1, 20, 20 }, { 1, 5, 4 } },
    { "equal quanta share a loan by half",
      { HTB_TOP, "class add dev v0 parent 1:1 classid 1:10 htb rate 1mbit ceil 10mbit quantum 1500",
        "class add dev v0 parent 1:1 classid 1:20 htb rate 3mbit ceil 10mbit quantum 1500" },
      { 0x10010, 0x10020 }, { 20, 20 }, { 4, 6 } },
    { "the default is hexadecimal; what no class takes goes first",
      { HTB_TOP, "class add dev v0 parent 1:1 classid 1:20 htb rate 3mbit ceil 10mbit" },
      { 7, 0x10000 }, { 20, 2 }, { 10, 2 } },
};

static void test_htb_trees(void)
{
    for (size_t i = 0; i < GW_ARRAY_LEN(trees); i++) {
        const struct tree_row *r = &trees[i];
        struct bench b;

        bench_open(&b);
        bench_tc(&b, "qdisc add dev v0 root handle 1: htb default 20");
        for (size_t k = 0; k < GW_ARRAY_LEN(r->tc) && r->tc[k]; k++)
            bench_tc(&b, r->tc[k]);
        for (uint32_t g = 0; g < 3 && r->priority[g]; g++)
            bench_gen(&b, g, 1000, (uint64_t)(8e6 / r->offered[g]), 0,
                      (uint32_t)(2000 * r->offered[g] / 8), r->priority[g], 1);
        bench_play(&b, UINT64_C(2000000000));
        for (uint32_t g = 0; g < 3 && r->priority[g]; g++) {
            struct share_gen s = { .interval_ns = 1000000, .count = 2000 };
            double mbit = gen_mbit(&b, g, &s);

            CHECK_ROW(mbit > 0.99 * r->mbit[g] && mbit < 1.01 * r->mbit[g], "%s: leaf %u gets "
                      "%.3f Mbit/s, want %.3f", r->name, g, mbit, r->mbit[g]);
        }
        CU_ASSERT_EQUAL(b.disorder, 0);
        bench_check_books(&b, r->name);
        bench_close(&b);
    }
}

/* After an hour of silence the bucket is full, not fuller; after 60 s of debt no more is owed. */
static void test_htb_long_silence(void)
{
    struct bench b;

    bench_open(&b);
    bench_tc(&b, "qdisc add dev v0 root handle 1: htb default 1");
    bench_tc(&b, "class add dev v0 parent 1: classid 1:1 htb rate 8kbit burst 2000 cburst 2000");
    bench_gen(&b, 0, 1000, 1, 0, 5, 0, 5);
    bench_gen(&b, 0, 1000, 1, UINT64_C(3600000000000), 5, 0, 5);
    bench_gen(&b, 0, 1000000, 1, UINT64_C(7200000000000), 1, 0, 1);
    bench_gen(&b, 0, 1000, 1, UINT64_C(7200000000001), 1, 0, 1);
    bench_play(&b, GW_NEVER);
    for (uint32_t k = 0; k < 5; k++) {
        uint64_t want = k < 3 ? 0 : (k - 2) * UINT64_C(1000000000000);

        CU_ASSERT_EQUAL(b.frame[k].out_ps, want);
        CU_ASSERT_EQUAL(b.frame[5 + k].out_ps, want + UINT64_C(3600000000000000));
    }
    CU_ASSERT_EQUAL(b.frame[11].out_ps, UINT64_C(7200000000000000) + UINT64_C(59999999999000));
    bench_close(&b);
}

/* Classes that come, change and go while frames wait. */
static void test_htb_classes(void)
{
    static const struct { const char *line; int rc; } rows[] = {
        { "class add dev v0 parent 1: classid 1:10 htb rate 1mbit", 2 },
        { "class add dev v0 parent 1:10 classid 1:11 htb rate 1mbit", 0 },
        { "qdisc add dev v0 parent 1:10 pfifo", 2 },
        { "class del dev v0 classid 1:10", 2 },
        { "class change dev v0 classid 1:11 htb rate 2mbit ceil 3mbit prio 3", 0 },
        { "qdisc add dev v0 parent 1:11 handle 5: bfifo", 0 },
        { "class del dev v0 classid 1:11", 0 },
        { "class del dev v0 classid 1:11", 2 },
        { "qdisc add dev v0 parent 1:10 pfifo", 0 },
        { "class add dev v0 parent 1: classid 2:1 htb rate 1mbit", 2 },
        { "class add dev v0 parent 1: classid 1:12 htb rate 0", 1 },
        { "class add dev v0 parent 1: classid 1:12 htb ceil 1mbit", 1 },
        { "class add dev v0 parent 1: classid 1:12 htb rate 1mbit rate 1mbit", 1 },
        { "class add dev v0 parent 1: classid 1:12 htb rate 1mbit burst 3k/3", 1 },
        { "class add dev v0 parent 1: classid 1:12 htb rate 1mbit mpu 70000", 1 },
        { "class add dev v0 parent 1: classid 1:12 htb rate", 255 },
        { "qdisc change dev v0 root handle 1: htb default 20", 2 },
        { "class del dev v0 classid 1:10", 0 },
    };
    struct bench b;

    bench_open(&b);
    bench_tc(&b, "qdisc add dev v0 root handle 1: htb default 10");
    bench_tc(&b, "class add dev v0 parent 1: classid 1:10 htb rate 8kbit");
    bench_gen(&b, 0, 1000, 1, 0, 10, 0, 10);
    bench_gen(&b, 0, 1000, 1, 2000, 4, 0, 4);
    bench_play(&b, 1000);
    CU_ASSERT_EQUAL(b.sent, 2);
    for (size_t i = 0; i < GW_ARRAY_LEN(rows); i++) {
        int rc = bench_tc_at(&b, 1000, rows[i].line);

        CHECK_ROW(rc == rows[i].rc, "tc %s: exit code %d, want %d: %s", rows[i].line, rc,
                  rows[i].rc, b.err.text);
        CHECK_ROW(!rc == !b.err.text[0], "tc %s: %d without a sentence", rows[i].line, rc);
    }
    CU_ASSERT_EQUAL(b.lost, 8);                /* what waited in 1:10 when it got a child      */
    bench_play(&b, GW_NEVER);
    CU_ASSERT_EQUAL(b.sent, 6);                /* without a default class: the direct queue    */
    bench_check_books(&b, "htb classes");
    bench_close(&b);
}

/* At most eight levels. */
static void test_htb_depth(void)
{
    char line[128];
    struct bench b;

    bench_open(&b);
    bench_tc(&b, "qdisc add dev v0 root handle 1: htb default 8");
    for (int i = 1; i <= 9; i++) {
        int rc;

        snprintf(line, sizeof line, "class add dev v0 parent 1:%x classid 1:%x htb rate 8mbit",
                 i - 1, i);
        rc = bench_tc_at(&b, 0, line);
        CHECK_ROW(rc == (i > 8 ? 2 : 0), "level %d: exit code %d", i, rc);
    }
    bench_gen(&b, 0, 1000, 1, 0, 10, 0, 10);
    bench_play(&b, GW_NEVER);
    CU_ASSERT_EQUAL(b.sent, 10);
    bench_close(&b);
}

/* The class's text and counters, as recorded from tc 6.1 on a running kernel. */
static void test_htb_show(void)
{
    static const struct { const char *opt, *want; } rows[] = {
        { "", "class htb 1:1 root rate 10Gbit overhead 4 ceil 10Gbit linklayer atm burst 13750b "
              "cburst 0b \n" },
        { "", "class htb 1:20 parent 1:1 prio 2 rate 6Mbit ceil 1Mbit burst 1599b cburst 3Kb \n" },
        { "-d ", "class htb 1:1 root rate 10Gbit overhead 4 ceil 10Gbit linklayer atm burst "
                 "13750b/1 mpu 64b cburst 0b/1 mpu 64b level 7 \n" },
        { "-d ", "class htb 1:10 parent 1:1 prio 0 quantum 37500 rate 3Mbit ceil 3Mbit linklayer "
                 "ethernet burst 1599b/1 mpu 0b cburst 1599b/1 mpu 0b level 0 \n" },
        { "-d ", "class htb 1:30 root prio 7 quantum -1 rate 8bit ceil 8bit linklayer ethernet "
                 "burst 225b/1 mpu 0b cburst 225b/1 mpu 0b level 0 \n" },
        { "-s ", " lended: 0 borrowed: 0 giants: 0\n tokens: 187 ctokens: 15\n" },
        { "-s ", " lended: 0 borrowed: 0 giants: 0\n tokens: 33328 ctokens: 25000\n" },
        { "-s ", " lended: 0 borrowed: 0 giants: 0\n tokens: 33328 ctokens: 384000\n" },
    };
    char line[64];
    struct bench b;

    bench_open(&b);
    bench_tc(&b, "qdisc add dev v0 root handle 1: htb default 20");
    bench_tc(&b, "class add dev v0 parent 1: classid 1:1 htb rate 10gbit burst 15k mpu 64 overhead "
                 "4 linklayer atm");
    bench_tc(&b, "class add dev v0 parent 1:1 classid 1:10 htb rate 6mbit ceil 8mbit prio 9 "
                 "quantum 0");
    bench_tc(&b, "class add dev v0 parent 1:1 classid 1:20 htb rate 6mbit ceil 1mbit cburst 3k pri "
                 "2");
    bench_tc(&b, "class add dev v0 parent 1: classid 1:30 htb rate 8bit prio 7 quantum 4294967295");
    bench_tc(&b, "class change dev v0 classid 1:10 htb rate 3mbit");
    for (size_t i = 0; i < GW_ARRAY_LEN(rows); i++) {
        snprintf(line, sizeof line, "%sclass show dev v0", rows[i].opt);
        bench_tc(&b, line);
        CHECK_ROW(strstr(b.text, rows[i].want), "tc %s: \"%s\" is not in:\n%s", line, rows[i].want,
                  b.text);
    }
    bench_close(&b);
}

/* Lines and what tc 6.1 shows behind "qdisc KIND HANDLE: root refcnt 2 ", recorded likewise. */
static void test_tbf_show(void)
{
    static const struct { const char *opt, *words, *want; } rows[] = {
        { "", "rate 1mbit burst 10kb latency 50ms", "rate 1Mbit burst 10Kb lat 50ms \n" },
        { "-d ", "rate 1mbit burst 10kb latency 50ms",
          "rate 1Mbit burst 10Kb/1 mpu 0b lat 50ms linklayer ethernet \n" },
        { "-d ", "rate 1mbit burst 10kb latency 50ms linklayer ad",
          "rate 1Mbit burst 11342b/1 mpu 0b lat 41.2ms linklayer atm \n" },
        { "-d ", "rate 40gbit burst 10mb latency 50ms",
          "rate 40Gbit burst 10Mb/1 mpu 0b lat 50ms linklayer ethernet \n" },
        { "-d ", "rate 1mbit burst 10kb limit 5kb",
          "rate 1Mbit burst 10Kb/1 mpu 0b limit 5Kb linklayer ethernet \n" },
        { "-d -r ", "rate 1mbit burst 10kb latency 50ms", "rate 1Mbit burst 10Kb/1 mpu 0b "
          "[00138800] lat 50ms limit 16490b linklayer ethernet \n" },
        { "", "rate 8bit burst 10kb latency 5ms", "rate 8bit burst 69b lat 1.58e+03s \n" },
    };

    for (size_t i = 0; i < GW_ARRAY_LEN(rows); i++) {
        char line[256];
        struct bench b;

        bench_open(&b);
        snprintf(line, sizeof line, "qdisc add dev v0 root tbf %s", rows[i].words);
        bench_tc(&b, line);
        snprintf(line, sizeof line, "%sqdisc show dev v0", rows[i].opt);
        bench_tc(&b, line);
        CHECK_ROW(strstr(b.text, rows[i].want), "tbf %s: got %swant %s", rows[i].words, b.text,
                  rows[i].want);
        bench_close(&b);
    }
}

static const struct gw_case cases[] = {
    { "recorded traces", test_traces },
    { "tbf against its recurrence", test_tbf_model },
    { "tbf: what leaves at once", test_tbf_burst },
    { "tbf: change", test_tbf_change },
    { "tbf: another child", test_tbf_child },
    { "tbf: show", test_tbf_show },
    { "recorded shares", test_shares },
    { "htb: what leaves at once", test_htb_burst },
    { "htb: loans", test_htb_trees },
    { "htb: sixty seconds", test_htb_long_silence },
    { "htb: classes come and go", test_htb_classes },
    { "htb: depth", test_htb_depth },
    { "htb: show", test_htb_show },
    { NULL, NULL },
};
const struct gw_suite suite_sch_shapers = { "sch_shapers", cases };
