/*
 * test_sch_link_trace - Mahimahi's opportunities to the picosecond, rate series, refused files
 *
 * The cases (a) to (f) of S4 and closed forms: a line carries 1500 bytes of several packets, what
 * it does not carry is lost, the file repeats after its last time.
 */
#include "tests/unit/fake_qdisc.h"

#include <math.h>

extern const struct gw_plugin gw_qdisc_link_trace;

static const char *trace_text;           /* what open_data finds under every name              */

static FILE *open_text(const struct gw_host *h, const char *study_dir, const char *shelf,
                       const char *name, char *path, size_t path_bytes, struct gw_error *err)
{
    FILE *f = tmpfile();

    (void)h, (void)study_dir, (void)err;
    CU_ASSERT_FATAL(f != NULL);
    CU_ASSERT_STRING_EQUAL(shelf, "traces");
    snprintf(path, path_bytes, "%s", name);
    fputs(trace_text, f);
    rewind(f);
    return f;
}

static enum gw_status start(struct fake *f, const char *text, const char *words)
{
    char line[256], *word[16], *save = NULL;
    struct gw_tc_args a = { .word = word, .host = &f->host };

    memset(f, 0, sizeof *f);
    trace_text = text;
    f->ops = gw_qdisc_link_trace.ops;
    f->host = (struct gw_host){ .host_bytes = sizeof f->host, .alloc = fake_alloc,
        .resize = realloc, .release = free, .qdisc_drop = fake_drop, .open_data = open_text };
    f->wake_ps = GW_NEVER;
    CU_ASSERT_FATAL(f->ops->conf_bytes <= sizeof f->conf);
    f->q = (struct gw_qdisc){ .ops = f->ops, .host = &f->host, .net = f, .tree = f,
        .conf = f->conf, .priv = calloc(1, f->ops->priv_bytes), .mtu_bytes = 1514 };
    CU_ASSERT_FATAL(f->q.priv != NULL);
    snprintf(line, sizeof line, "file t.trace %s", words);
    for (char *w = strtok_r(line, " ", &save); w; w = strtok_r(NULL, " ", &save))
        word[a.count++] = w;
    word[a.count] = NULL;
    if (f->ops->tc_parse(&a, f->conf, &f->q.given, &f->err) != GW_OK)
        return f->err.code;
    return f->ops->init(&f->q, &f->err);
}

static char advice[2048];

static void hear(void *ctx, const char *sentence)
{
    size_t n = strlen(advice);

    (void)ctx;
    snprintf(advice + n, sizeof advice - n, "%s\n", sentence);
}

static const char *advise(struct fake *f)
{
    advice[0] = 0;
    f->ops->advise(&f->q, hear, NULL);
    return advice;
}

/* @per_ms lines for each of @ms milliseconds. */
static char *even_text(uint32_t ms, uint32_t per_ms)
{
    char *text = malloc(ms * per_ms * 8 + 1);
    size_t n = 0;

    CU_ASSERT_FATAL(text != NULL);
    for (uint32_t t = 1; t <= ms; t++)
        for (uint32_t i = 0; i < per_ms; i++)
            n += (size_t)sprintf(text + n, "%u\n", t);
    return text;
}

#define FRAGMENT "0\n0\n0\n0\n1\n1\n1\n1\n1\n2\n2\n3\n3\n3\n7\n7\n7\n7\n8\n8\n131\n131\n131\n"

static void test_mean(void)
{
    char *twelve = even_text(12, 1), *thirty = even_text(4, 30), *sixty = even_text(4, 60);
    const struct { const char *name, *text, *want; } rows[] = {
        { "(a)", twelve, "12 lines of 1500 bytes in 12 ms, mean rate 12 Mbit/s" },
        { "(b)", thirty, "120 lines of 1500 bytes in 4 ms, mean rate 360 Mbit/s" },
        { "(b) with 60", sixty, "mean rate 720 Mbit/s" },
        { "(d)", FRAGMENT, "23 lines of 1500 bytes in 131 ms, mean rate 2.10687 Mbit/s" },
        { "last line without end", "5\n10",
          "2 lines of 1500 bytes in 10 ms, mean rate 2.4 Mbit/s" },
    };

    for (size_t i = 0; i < GW_ARRAY_LEN(rows); i++) {
        struct fake f;

        CHECK_ROW(start(&f, rows[i].text, "") == GW_OK, "%s: %s", rows[i].name, f.err.text);
        CHECK_ROW(strstr(advise(&f), rows[i].want), "%s: %s", rows[i].name, advice);
        CU_ASSERT_PTR_NULL(strstr(advice, "rate 0"));
        f.q.rate_bps = 1000000;
        CU_ASSERT_PTR_NOT_NULL(strstr(advise(&f), "give it rate 0"));
        fake_end(&f);
    }
    free(twelve);
    free(thirty);
    free(sixty);
}

static void test_refused(void)
{
    static const struct { const char *name, *text, *words, *want; } rows[] = {
        { "(c) only zeros", "0\n0\n0\n", "", "t.trace:3: the last time is 0" },
        { "(e) decreasing", "0\n5\n7\n6\n9\n", "", "t.trace:4: the time is less" },
        { "(f) empty line", "1\n2\n\n3\n", "", "t.trace:3: the line is empty" },
        { "(f) at the end", "1\n2\n\n", "", "t.trace:3: the line is empty" },
        { "blanks only", "1\n  \n", "", "t.trace:2: the line is empty" },
        { "no lines", "", "", "t.trace: the file is empty" },
        { "words", "1\nx\n", "", "t.trace:2: a whole number" },
        { "negative", "-1\n", "", "t.trace:1: a whole number" },
        { "fraction", "1.5\n", "", "t.trace:1: a whole number" },
        { "two numbers", "1 2\n", "", "t.trace:1: a whole number" },
        { "too large", "99999999999999999999\n", "", "t.trace:1: a whole number" },
        { "series: times equal", "0 1\n0 2\n", "format series",
          "t.trace:2: the time is not after" },
        { "series: one line", "0 1\n", "format series", "t.trace:1: a series needs two lines" },
        { "series: nothing", "0 0\n1 0\n2 5\n", "format series", "t.trace:3: no rate is above 0" },
        { "series: negative", "0 -1\n1 1\n", "format series", "t.trace:1: a time from 0" },
        { "series: no rate", "0\n1 1\n", "format series", "t.trace:1: a time in seconds" },
        { "series: empty line", "0 1\n\n1 1\n", "format series", "t.trace:2: the line is empty" },
        { "series: names later", "0 1\ntime_s,rate_bps\n", "format series", "t.trace:2: a time" },
        { "a wrong word", "1\n", "bogus 1", "What is \"bogus\"" },
        { "a wrong format", "1\n", "format mm", "mahimahi or series" },
        { "no value", "1\n", "limit", "Command line is not complete" },
    };

    for (size_t i = 0; i < GW_ARRAY_LEN(rows); i++) {
        struct fake f;

        CHECK_ROW(start(&f, rows[i].text, rows[i].words) != GW_OK &&
                  strstr(f.err.text, rows[i].want),
                  "%s: %s", rows[i].name, f.err.text);
        fake_end(&f);
    }
}

/* Frames of 14 + 1500 bytes leave one a line; smaller ones share a line; larger ones take two. */
static void test_lines(void)
{
    static const struct {
        const char *text;
        uint32_t size, count;
        uint32_t left_ms[8];
    } rows[] = {
        { "1\n2\n3\n4\n", 1514, 4, { 1, 2, 3, 4 } },
        { "1\n2\n3\n4\n", 514, 7, { 1, 1, 1, 2, 2, 2, 3 } },
        { "1\n2\n3\n4\n", 1014, 4, { 1, 2, 2, 3 } },         /* 1000: 1.5 in a line            */
        { "1\n2\n3\n4\n", 3014, 3, { 2, 4, 6 } },
        { "1\n2\n3\n4\n", 1515, 2, { 2, 3 } },               /* a byte too many                */
        { "0\n0\n7\n", 1514, 8, { 0, 0, 7, 7, 7, 14, 14, 14 } },
        { "5\n5\n5\n", 1514, 7, { 5, 5, 5, 10, 10, 10, 15 } },
    };

    for (size_t i = 0; i < GW_ARRAY_LEN(rows); i++) {
        struct fake_gen g[] = { { .size = rows[i].size, .count = rows[i].count,
                                  .burst = rows[i].count }, { .count = 0 } };
        struct fake f;

        CU_ASSERT_FATAL(start(&f, rows[i].text, "") == GW_OK);
        fake_run(&f, g);
        fake_check(&f);
        for (uint32_t k = 0; k < rows[i].count; k++)
            CHECK_ROW(f.fate[k].left_ps == rows[i].left_ms[k] * GW_PS_PER_MS,
                      "row %zu, frame %u: left at %.3f ms instead of %u", i, k,
                      (double)f.fate[k].left_ps / 1e9, rows[i].left_ms[k]);
        fake_end(&f);
    }
}

/* Opportunities that find no packet are lost; one at the very time of arrival is not. */
static void test_lost(void)
{
    static const struct { uint64_t at_us; uint64_t left_us; } rows[] = {
        { 0, 1000 }, { 1000, 1000 }, { 1001, 2000 }, { 2500, 10000 }, { 10000, 10000 },
        { 10001, 11000 }, { 12001, 20000 }, { 10000000500, 10000001000 },
        { 10000000000, 10000000000 }, { 9999999999, 10000000000 },
    };

    for (size_t i = 0; i < GW_ARRAY_LEN(rows); i++) {
        struct fake_gen g[] = { { .size = 1514, .start_ns = rows[i].at_us * 1000, .count = 1 },
                                { .count = 0 } };
        struct fake f;

        CU_ASSERT_FATAL(start(&f, "1\n2\n10\n", "") == GW_OK);
        fake_run(&f, g);
        CHECK_ROW(f.fate[0].left_ps == rows[i].left_us * GW_PS_PER_US, "at %llu us: left at %.3f "
                  "us instead of %llu", (unsigned long long)rows[i].at_us,
                  (double)f.fate[0].left_ps / 1e6, (unsigned long long)rows[i].left_us);
        fake_end(&f);
    }
}

/* Overload for ten passes: what comes through is the mean rate exactly. */
static void test_throughput(void)
{
    struct fake_gen g[] = { { .size = 1514, .interval_ns = 1000000, .count = 1400 },
                            { .count = 0 } };
    uint64_t in_ten = 0;
    struct fake f;

    CU_ASSERT_FATAL(start(&f, FRAGMENT, "limit 5000") == GW_OK);
    fake_run(&f, g);
    fake_check(&f);
    CU_ASSERT_EQUAL(f.dropped, 0);
    for (uint64_t i = 0; i < f.frames; i++)
        in_ten += f.fate[i].left_ps > 131 * 3 * GW_PS_PER_MS &&
                  f.fate[i].left_ps <= 131 * 8 * GW_PS_PER_MS;
    CU_ASSERT_EQUAL(in_ten, 5 * 23);
    fake_end(&f);
}

static void test_limit(void)
{
    struct fake_gen g[] = { { .size = 1514, .count = 20, .burst = 20 }, { .count = 0 } };
    struct fake_out x;
    struct fake f;

    CU_ASSERT_FATAL(start(&f, "1\n2\n3\n", "limit 5") == GW_OK);
    fake_run(&f, g);
    fake_check(&f);
    CU_ASSERT_EQUAL(f.left, 5);
    CU_ASSERT_EQUAL(f.q.drops[GW_DROP_QUEUE_FULL], 15);
    x = (struct fake_out){ .o = { .str = fake_str, .u64 = fake_u64, .real = fake_real } };
    x.o.priv = &x;
    f.ops->tc_show(&f.q, &x.o);
    CU_ASSERT_STRING_EQUAL(x.text, "file t.trace format mahimahi limit 5p mean_rate 12000000bit ");
    fake_end(&f);
}

/* A series: frames of 1000 bytes at 8, then 0, then 16 Mbit/s; repeats after 4 s. */
static void test_series(void)
{
    static const char *const texts[] = {
        "0\t8\n1\t0\n2\t16\n4\t99\n", "100.0 8\n101.0 0\n102.0 16\n104.0 1\n",
        "time_s,rate_kbps\n7,8000\n8,0\n9,16000\n11,5\n",
        "time_s,rate_bps\n0,8e6\n1,0\n2,16e6\n4,0\n",
    };

    for (size_t i = 0; i < GW_ARRAY_LEN(texts); i++) {
        struct fake_gen g[] = { { .size = 1000, .count = 6000, .burst = 6000 }, { .count = 0 } };
        uint64_t wrong = 0;
        struct fake f;

        CHECK_ROW(start(&f, texts[i], "format series limit 9999") == GW_OK, "%s", f.err.text);
        CHECK_ROW(strstr(advise(&f), "3 rates over 4.000 s, mean rate 10 Mbit/s"), "%s", advice);
        fake_run(&f, g);
        for (uint64_t k = 1; k <= 6000; k++) {
            uint64_t ms = k <= 1000 ? k : k <= 5000 ? 0 : 4000 + k - 5000;
            uint64_t want = ms ? ms * GW_PS_PER_MS :
                            2 * GW_PS_PER_S + (k - 1000) * GW_PS_PER_MS / 2;

            wrong += f.fate[k - 1].left_ps != want;
        }
        CHECK_ROW(!wrong, "text %zu: %llu frames left at other times", i,
                  (unsigned long long)wrong);
        fake_end(&f);
    }
}

/* A frame that spans a change of the rate, and one after an idle time. */
static void test_series_span(void)
{
    struct fake_gen g[] = { { .size = 1000, .start_ns = 999500000, .count = 1 },
                            { .size = 1000, .start_ns = 8500000000, .count = 1 },
                            { .count = 0 } };
    struct fake f;

    CU_ASSERT_FATAL(start(&f, "0 8\n1 0\n2 16\n4 1\n", "format series") == GW_OK);
    fake_run(&f, g);
    CU_ASSERT_EQUAL(f.fate[0].left_ps, 2 * GW_PS_PER_S + 250 * GW_PS_PER_US);
    CU_ASSERT_EQUAL(f.fate[1].left_ps, 8501 * GW_PS_PER_MS);
    fake_end(&f);
}

static const struct gw_case cases[] = {
    { "mean rate: S4 (a), (b), (d)", test_mean },
    { "refused files: S4 (c), (e), (f)", test_refused },
    { "packets in lines", test_lines },
    { "unused lines are lost", test_lost },
    { "throughput", test_throughput },
    { "limit and show", test_limit },
    { "rate series", test_series },
    { "a frame across rates", test_series_span },
    { NULL, NULL },
};
const struct gw_suite suite_sch_link_trace = { "sch_link_trace", cases };
