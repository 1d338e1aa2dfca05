/*
 * test_expect - expressions of `expect:`, and the names that a record answers to
 */
#include "emu/core/expect.h"
#include "tests/unit/make_record.h"

/* a = 2, b = 0.5, two-1:a.x = 7, "New York.n" = 3, zero = 0 */
static bool names(void *ctx, const char *name, double *value)
{
    static const struct { const char *name; double value; } row[] = {
        { "a", 2 }, { "b", 0.5 }, { "two-1:a.x", 7 }, { "New York.n", 3 }, { "zero", 0 },
    };

    (void)ctx;
    for (size_t i = 0; i < GW_ARRAY_LEN(row); i++) {
        if (!strcmp(row[i].name, name)) {
            *value = row[i].value;
            return true;
        }
    }
    return false;
}

static void test_values(void)
{
    static const struct { const char *text; bool holds; double found; } rows[] = {
        { "a == 2", true, 2 },
        { "a != 2", false, 2 },
        { "a<3", true, 2 },
        { "a <= 2", true, 2 },
        { "a > 2", false, 2 },
        { "a >= 2", true, 2 },
        { "a in 2..3", true, 2 },
        { "a in 1..2", true, 2 },
        { "a in 2.1..3", false, 2 },
        { "b in 0.4..0.6", true, 0.5 },
        { "a in b*2 .. b * 6", true, 2 },
        { "1 + 2 * 3 == 7", true, 7 },
        { "(1 + 2) * 3 == 9", true, 9 },
        { "8 - 2 - 1 == 5", true, 5 },
        { "8 / 2 / 2 == 2", true, 2 },
        { "-a == -2", true, -2 },
        { "a - -a == 4", true, 4 },
        { "a / b == 4", true, 4 },
        { "1e-3 < 2.5E+2", true, 0.001 },
        { "two-1:a.x == 7", true, 7 },
        { "two-1:a.x - a == 5", true, 5 },
        { "\"New York\".n == 3", true, 3 },
        { "  a\t== 2  ", true, 2 },
        { "zero == 0", true, 0 },
    };

    for (size_t i = 0; i < GW_ARRAY_LEN(rows); i++) {
        struct gw_error err = { 0 };
        bool holds = !rows[i].holds;
        double found = -1;
        enum gw_status code = gw_expect_eval(rows[i].text, names, NULL, &holds, &found, &err);

        CHECK_ROW(code == GW_OK, "`%s`: %s", rows[i].text, err.text);
        CHECK_ROW(holds == rows[i].holds && near(found, rows[i].found, 1e-12),
                  "`%s`: got %d with %g, want %d with %g", rows[i].text, holds, found,
                  rows[i].holds, rows[i].found);
    }
}

static void test_errors(void)
{
    static const struct { const char *text; enum gw_status code; const char *says; } rows[] = {
        { "", GW_SYNTAX, "column 1" },
        { "a", GW_SYNTAX, "column 2" },
        { "a = 2", GW_SYNTAX, "column 3" },
        { "a == ", GW_SYNTAX, "column 6" },
        { "a == 2 3", GW_SYNTAX, "column 8 of `a == 2 3`: the expectation should end" },
        { "a in 2", GW_SYNTAX, "\"..\"" },
        { "a in 3..2", GW_RANGE, "lower bound" },
        { "(a == 2", GW_SYNTAX, "\")\"" },
        { "a < 20ms", GW_SYNTAX, "column 7" },
        { "c == 1", GW_PARAM, "column 1 of `c == 1`: c has no value" },
        { "1 == 1 + nosuch.name", GW_PARAM, "column 10" },
        { "a / zero > 1", GW_RANGE, "division by zero" },
        { "\"a == 1", GW_SYNTAX, "quote" },
        { "a.. == 2", GW_SYNTAX, "column 2" },
        { "inf < 2", GW_PARAM, "inf has no value" },
        { "((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((1 == 1", GW_SYNTAX,
          "64 levels" },
    };

    for (size_t i = 0; i < GW_ARRAY_LEN(rows); i++) {
        struct gw_error err = { 0 };
        bool holds = true;
        enum gw_status code = gw_expect_eval(rows[i].text, names, NULL, &holds, NULL, &err);

        CHECK_ROW(code == rows[i].code && !holds, "`%s`: code %d, want %d", rows[i].text, code,
                  rows[i].code);
        CHECK_ROW(strstr(err.text, rows[i].says) != NULL, "`%s`: '%s' lacks '%s'", rows[i].text,
                  err.text, rows[i].says);
    }
}

static void test_form_only(void)
{
    struct gw_error err = { 0 };

    CU_ASSERT(gw_expect_check("whatever.name / other in 0.1..2", &err) == GW_OK);
    CU_ASSERT(gw_expect_check("whatever.name ~ 2", &err) == GW_SYNTAX);
    CHECK_ROW(strstr(err.text, "column 15") != NULL, "%s", err.text);
}

static bool is_wan(void *ctx, const char *name)
{
    (void)ctx;
    return !strcmp(name, "wan:a") || !strcmp(name, "New.York-x:b");
}

static void test_names(void)
{
    static const struct { const char *text, *says; } rows[] = {
        { "iterations.mean_s in 0.9..1.1", NULL },
        { "flows.in.h0.fct_s / flows.in.h1.fct_s < 2 + jobs.a.count", NULL },
        { "links.wan:a.drops.loss / links.wan:a.sent_pkts < drops.loss", NULL },
        { "links.\"New.York\"-x:b.bytes == packets.hops", NULL },
        { "links.wan:a.drops + sim_s > 0", NULL },
        { "links.wan.bytes > 0", "column 1 of `links.wan.bytes > 0`: no end of a link is called"
                                 " \"wan\"" },
        { "1 == 1 + links.wan:b.drops.loss", "column 10 of `1 == 1 + links.wan:b.drops.loss`: no "
                                             "end of a link is called \"wan:b\"" },
        { "links.bytes > 0", "is called \"\"" },
        { "link.wan:a.bytes > 0", "link.wan:a.bytes is no name that a run answers to" },
        { "flows. > 0", "flows is no name" },
        { "mean_s < 1", "mean_s is no name" },
        { "sim_s <", "column 8" },
    };

    for (size_t i = 0; i < GW_ARRAY_LEN(rows); i++) {
        struct gw_error err = { 0 };
        enum gw_status code = gw_expect_names(rows[i].text, is_wan, NULL, &err);

        CHECK_ROW(rows[i].says ? code != GW_OK && strstr(err.text, rows[i].says) : code == GW_OK,
                  "`%s`: \"%s\"", rows[i].text, err.text);
    }
}

/* ---- names of a record -------------------------------------------------------------------- */

static void make_record(struct scratch *s)
{
    uint64_t drops[GW_DROP_COUNT] = { [GW_DROP_QUEUE_FULL] = 2, [GW_DROP_AQM] = 1,
                                      [GW_DROP_LOSS] = 5, [GW_DROP_NO_ROUTE] = 7 };
    struct gw_rec_link_total t = {
        .link = 0, .sent_pkts = 100, .sent_bytes = 10000, .wire_bytes = 12400,
        .delivered_pkts = 95, .delivered_bytes = 9500, .wait_sum_ps = 100 * UINT64_C(2000000),
        .wait_max_ps = 50000000, .queue_max_bytes = 4000, .queue_max_pkts = 40, .marked_pkts = 3,
        .fluid_bytes = 100, .drops = drops,
    };
    struct gw_rec_flow f;

    add_node(s, 0, "h0", true);
    add_node(s, 1, "h.1", true);
    add_link(s, 0, "wan:a", 0, 1, 1000000);        /* 0.2 s at 1 Mbit/s: 25,000 bytes */
    add_job(s, 0, "in.x", 2);
    CU_ASSERT(s->sink->ops->link_total(s->sink, &t) == GW_OK);
    CU_ASSERT(s->sink->ops->meta(s->sink, "sim_s", "0.200000000000", false) == GW_OK);
    for (uint64_t i = 0; i < 5; i++) {
        f = flow_row(i + 1, i + 1, 0, 0, 10 * (double)(i + 1));
        add_flow(s, &f);
    }
    f = flow_row(6, 6, 0, 5, -1);
    f.src_node = 1;
    add_flow(s, &f);
    f = flow_row(7, 7, 0, 5, 20);
    f.src_node = 1;
    add_flow(s, &f);
    for (uint32_t i = 0; i < 4; i++) {
        add_iteration(s, i, 0, i * 10, i * 10 + 9, 0);
        add_iteration(s, i, 1, i * 10, i * 10 + 10 + (i == 3), 0);
    }
}

static void test_lookup(void)
{
    static const struct { const char *name; double want; } rows[] = {
        { "iterations.count", 4 },
        { "iterations.mean_s", 0.01025 },
        { "iterations.p50_s", 0.01 },
        { "iterations.p99_s", 0.01097 },              /* 10, 10, 10, 11 at position 2.97 */
        { "iterations.max_s", 0.011 },
        { "jobs.in.x.mean_s", 0.01025 },
        { "jobs.in.x.ranks", 2 },
        { "jobs.in.x.bytes", 7000 },
        { "flows.count", 7 },
        { "flows.finished", 6 },
        { "flows.bytes", 7000 },
        { "flows.delivered_bytes", 6400 },
        { "flows.fct_p50_s", 0.025 },                 /* 10 15 20 30 40 50 ms */
        { "flows.fct_p99_s", 0.0495 },
        { "flows.fct_max_s", 0.05 },
        { "flows.in.x.h0.fct_s", 0.01 },
        { "flows.in.x.h0.bytes", 1000 },
        { "flows.in.x.h.1.delivered_bytes", 400 },
        { "packets.hops", 95 },
        { "packets.delivered", 95 },
        { "packets.dropped", 15 },
        { "drops.queue", 3 },
        { "drops.loss", 5 },
        { "drops.other", 7 },
        { "links.wan:a.bytes", 10100 },
        { "links.wan:a.utilisation", 0.5 },
        { "links.wan:a.mean_wait_s", 2e-6 },
        { "links.wan:a.max_wait_s", 50e-6 },
        { "links.wan:a.drops", 15 },
        { "links.wan:a.drops.loss", 5 },
        { "links.wan:a.drops.link_down", 0 },
        { "links.wan:a.marked", 3 },
        { "links.wan:a.sent_pkts", 100 },
        { "links.wan:a.delivered_pkts", 95 },
        { "links.wan:a.queue_max_pkts", 40 },
        { "sim_s", 0.2 },
    };
    static const char *const missing[] = {
        "", "iterations", "iterations.", "iterations.nosuch", "flows.", "flows.in.x.h0.nosuch",
        "flows.in.x.h9.fct_s", "flows.in.x.h.1.fct_s", "links.wan:b.bytes", "links.bytes",
        "jobs.no.mean_s",
        "drops.rain", "links.wan:a.", ".", "flows.drop table flow;.x.fct_s",
    };
    struct scratch s;
    struct sqlite3 *db;

    scratch_begin(&s, GW_REC_ALL);
    make_record(&s);
    db = scratch_open(&s, true);
    for (size_t i = 0; i < GW_ARRAY_LEN(rows); i++) {
        double got = -1;
        bool found = gw_record_lookup(db, rows[i].name, &got);

        CHECK_ROW(found && near(got, rows[i].want, 1e-12), "%s: %d, got %.17g, want %.17g",
                  rows[i].name, found, got, rows[i].want);
    }
    for (size_t i = 0; i < GW_ARRAY_LEN(missing); i++) {
        double got = -1;

        CHECK_ROW(!gw_record_lookup(db, missing[i], &got), "%s: got %g", missing[i], got);
    }
    scratch_end(&s, db);
}

static void test_lookup_summary(void)
{
    struct scratch s;
    struct sqlite3 *db;
    double got = -1;

    scratch_begin(&s, GW_REC_SUMMARY);
    make_record(&s);
    db = scratch_open(&s, true);
    CU_ASSERT(gw_record_lookup(db, "flows.fct_p50_s", &got));
    CHECK_ROW(near(got, 0.020, 0.01), "p50 of the sketch: %g", got);
    CU_ASSERT(gw_record_lookup(db, "flows.fct_max_s", &got));
    CHECK_ROW(got == 0.05, "maximum: %g", got);
    scratch_end(&s, db);
}

static const struct gw_case cases[] = {
    { "values", test_values },
    { "errors say where", test_errors },
    { "form alone", test_form_only },
    { "names without a run", test_names },
    { "names of a record", test_lookup },
    { "names without rows", test_lookup_summary },
    { NULL, NULL },
};

extern const struct gw_suite suite_expect;
const struct gw_suite suite_expect = { "expect", cases };
