/*
 * test_analysis - the analyses over small records whose answers are known
 */
#include "emu/core/expect.h"
#include "emu/core/table.h"
#include "tests/unit/make_record.h"

#include <gradwire/gradwire.h>

extern const struct gw_plugin gw_analysis_iteration, gw_analysis_fct, gw_analysis_critical,
    gw_analysis_correlation, gw_analysis_links;

/* Finishes the record and runs one analysis over it. */
static struct gw_tables *run_on(struct scratch *s, const struct gw_plugin *p, bool complete,
                                struct sqlite3 **db)
{
    const struct gw_analysis_ops *ops = p->ops;
    struct gw_host host;
    struct gw_analysis a = { .host = &host, .complete = complete, .out = gw_tables_new() };
    enum gw_status code;

    memset(&host, 0, sizeof host);
    gw_table_host(&host);
    *db = scratch_open(s, complete);
    a.db = *db;
    code = ops->run(&a, &s->err);
    CHECK_ROW(code == GW_OK, "%s: %s", p->name, s->err.text);
    return a.out;
}

/* A cell that should hold @want; text NULL: a number, 1e300: NULL. */
struct expected {
    const char *table;
    size_t      row;
    const char *column;
    double      want;
    const char *text;
};

static void check_cells(const struct gw_tables *t, const struct expected *e, size_t n)
{
    for (size_t i = 0; i < n; i++, e++) {
        const struct gw_cell *c = gw_tables_cell(t, e->table, e->row, e->column);
        double got = !c || c->kind == GW_CELL_NULL ? 1e300 : c->kind == GW_CELL_INT ? (double)c->i
                                                                                    : c->r;

        CHECK_ROW(c != NULL, "%s row %zu has no %s", e->table, e->row, e->column);
        if (!c)
            continue;
        if (e->text)
            CHECK_ROW(c->kind == GW_CELL_TEXT && !strcmp(c->t, e->text), "%s row %zu %s: got %s, "
                      "want %s", e->table, e->row, e->column,
                      c->kind == GW_CELL_TEXT ? c->t : "no text", e->text);
        else
            CHECK_ROW(near(got, e->want, 1e-9), "%s row %zu %s: got %.15g, want %.15g", e->table,
                      e->row, e->column, got, e->want);
    }
}

static size_t rows_of(const struct gw_tables *t, const char *table, const char *column)
{
    size_t n = 0;

    while (gw_tables_cell(t, table, n, column))
        n++;
    return n;
}

/* ---- iteration ---------------------------------------------------------------------------- */

static void test_iteration(void)
{
    /* E: 12 23 33 43 ms from a start at 2 ms: times 10 11 10 10; the fifth lacks rank 1 */
    static const struct expected want[] = {
        { "iteration", 0, "job", 0, "train" },
        { "iteration", 0, "iterations", 4, NULL },
        { "iteration", 0, "unfinished", 1, NULL },
        { "iteration", 0, "ranks", 2, NULL },
        { "iteration", 0, "mean_s", 0.01025, NULL },
        { "iteration", 0, "p50_s", 0.010, NULL },
        { "iteration", 0, "p99_s", 0.01097, NULL },
        { "iteration", 0, "compute_s", 0.005, NULL },
        { "iteration", 0, "exposed_s", 0.0025, NULL },
        { "iteration", 0, "wait_s", 0.00275, NULL },           /* the rest of 10.25 ms */
        { "iteration", 0, "compute_share", 0.5 / 1.025, NULL },
        { "iteration", 0, "wait_share", 0.275 / 1.025, NULL },
    };
    static const double end_ms[] = { 12, 23, 33, 43 };
    struct scratch s;
    struct sqlite3 *db;
    struct gw_tables *t;

    scratch_begin(&s, GW_REC_ALL);
    add_job(&s, 0, "train", 2);
    for (uint32_t i = 0; i < 4; i++) {
        add_iteration(&s, i, 0, end_ms[i] - 10, end_ms[i], 0);
        add_iteration(&s, i, 1, end_ms[i] - 10, end_ms[i], 0);
    }
    add_iteration(&s, 4, 0, 43, 60, 0);
    t = run_on(&s, &gw_analysis_iteration, false, &db);
    check_cells(t, want, GW_ARRAY_LEN(want));
    CU_ASSERT(rows_of(t, "iteration", "job") == 1);
    gw_tables_free(t);
    scratch_end(&s, db);
}

/* Rank 1 begins late and ends early: 2 + 4 ms of the 10 are waiting beside a quarter of its 4. */
static void test_iteration_split(void)
{
    static const struct expected want[] = {
        { "iteration", 0, "mean_s", 0.010, NULL },
        { "iteration", 0, "compute_s", 0.0035, NULL },         /* (5 + 2) / 2 */
        { "iteration", 0, "exposed_s", 0.00175, NULL },
        { "iteration", 0, "wait_s", 0.00475, NULL },           /* (2.5 + 1 + 6) / 2 */
    };
    struct scratch s;
    struct sqlite3 *db;
    struct gw_tables *t;

    scratch_begin(&s, GW_REC_ALL);
    add_job(&s, 0, "train", 2);
    add_iteration(&s, 0, 0, 5, 15, 0);
    add_iteration(&s, 0, 1, 7, 11, 0);
    t = run_on(&s, &gw_analysis_iteration, true, &db);
    check_cells(t, want, GW_ARRAY_LEN(want));
    gw_tables_free(t);
    scratch_end(&s, db);
}

/* Two of four ranks ended the one iteration of `half`; `none` has an open flow and nothing else. */
static void test_iteration_unfinished(void)
{
    static const struct expected want[] = {
        { "iteration", 0, "job", 0, "half" },
        { "iteration", 0, "iterations", 0, NULL },
        { "iteration", 0, "unfinished", 1, NULL },
        { "iteration", 0, "ranks", 4, NULL },
        { "iteration", 0, "mean_s", 1e300, NULL },
        { "iteration", 1, "job", 0, "none" },
        { "iteration", 1, "unfinished", 1, NULL },
        { "iteration", 1, "ranks", 3, NULL },
    };
    struct gw_rec_flow f = flow_row(1, 1, 0, 0, -1);
    struct scratch s;
    struct sqlite3 *db;
    struct gw_tables *t;
    double value = -1;

    scratch_begin(&s, GW_REC_ALL);
    add_job(&s, 0, "half", 4);
    add_job(&s, 1, "none", 3);
    add_iteration(&s, 0, 0, 0, 1, 0);
    add_iteration(&s, 0, 1, 0, 1, 0);
    f.job = 1;
    add_flow(&s, &f);
    t = run_on(&s, &gw_analysis_iteration, true, &db);
    check_cells(t, want, GW_ARRAY_LEN(want));
    CU_ASSERT(rows_of(t, "iteration", "job") == 2);
    CU_ASSERT(gw_record_lookup(db, "iterations.count", &value) && value == 0);
    gw_tables_free(t);
    scratch_end(&s, db);
}

/* A training job beside a pattern: the headline is the one that runs collectives. */
static void test_iteration_headline(void)
{
    struct gw_rec_collective c = { .job = 1, .collective = 1, .name = "all-reduce ring",
                                   .end_ps = 5 };
    static const struct { bool collective; double count, mean_s; } rows[] = {
        { false, 2, 0.011 }, { true, 1, 0.020 },
    };

    for (size_t i = 0; i < GW_ARRAY_LEN(rows); i++) {
        struct scratch s;
        struct sqlite3 *db;
        double count = -1, mean_s = -1, own_s = -1;

        scratch_begin(&s, GW_REC_ALL);
        add_job(&s, 0, "background", 1);
        add_job(&s, 1, "train", 1);
        add_iteration(&s, 0, 0, 0, 2, 0);
        CU_ASSERT(s.sink->ops->iteration(s.sink, &(struct gw_rec_iteration){
            .job = 1, .end_ps = UINT64_C(20000000000) }) == GW_OK);
        if (rows[i].collective)
            CU_ASSERT(s.sink->ops->collective(s.sink, &c) == GW_OK);
        db = scratch_open(&s, true);
        CU_ASSERT(gw_record_lookup(db, "iterations.count", &count));
        CU_ASSERT(gw_record_lookup(db, "iterations.mean_s", &mean_s));
        CU_ASSERT(gw_record_lookup(db, "jobs.background.mean_s", &own_s));
        CHECK_ROW(count == rows[i].count && near(mean_s, rows[i].mean_s, 1e-9) &&
                  near(own_s, 0.002, 1e-9), "got %g of %g s, background %g s", count, mean_s,
                  own_s);
        scratch_end(&s, db);
    }
}

/* ---- fct ---------------------------------------------------------------------------------- */

static void fct_of(enum gw_flow_records mode, struct gw_tables **t, struct sqlite3 **db,
                   struct scratch *s)
{
    scratch_begin(s, mode);
    add_job(s, 0, "x", 2);
    for (uint64_t i = 0; i <= 100; i++) {                 /* 10 ... 110 ms, ideal 1 ms */
        struct gw_rec_flow f = flow_row(i + 1, i + 1, 0, 5, 15 + (double)i);

        f.timeouts = i == 7 ? 2 : 0;
        add_flow(s, &f);
    }
    for (uint64_t i = 0; i < 3; i++) {
        struct gw_rec_flow f = flow_row(200 + i, 200 + i, 0, 5, -1);

        add_flow(s, &f);
    }
    *t = run_on(s, &gw_analysis_fct, true, db);
}

static void test_fct(void)
{
    static const struct expected want[] = {
        { "fct", 0, "job", 0, "x" },
        { "fct", 0, "flows", 104, NULL },
        { "fct", 0, "finished", 101, NULL },
        { "fct", 0, "size_bytes", 104000, NULL },
        { "fct", 0, "mean_s", 0.060, NULL },
        { "fct", 0, "p50_s", 0.060, NULL },
        { "fct", 0, "p95_s", 0.105, NULL },
        { "fct", 0, "p99_s", 0.109, NULL },
        { "fct", 0, "max_s", 0.110, NULL },
        { "fct", 0, "slowdown_mean", 60, NULL },
        { "fct", 0, "slowdown_p50", 60, NULL },
        { "fct", 0, "slowdown_p99", 109, NULL },
        { "fct", 0, "timeouts", 2, NULL },
        { "fct", 0, "from", 0, "rows" },
    };
    static const char *const rough[] = { "p50_s", "p95_s", "p99_s", "slowdown_mean",
                                         "slowdown_p50", "slowdown_p95", "slowdown_p99" };
    struct gw_tables *exact, *sketch;
    struct sqlite3 *db[2];
    struct scratch s[2];

    fct_of(GW_REC_ALL, &exact, &db[0], &s[0]);
    check_cells(exact, want, GW_ARRAY_LEN(want));
    fct_of(GW_REC_SUMMARY, &sketch, &db[1], &s[1]);
    check_cells(sketch, want, 5);                /* counts and mean are exact there too */
    for (size_t i = 0; i < GW_ARRAY_LEN(rough); i++) {
        double a = gw_tables_cell(exact, "fct", 0, rough[i])->r;
        double b = gw_tables_cell(sketch, "fct", 0, rough[i])->r;

        CHECK_ROW(near(b, a, 0.01), "%s: sketch %g, rows %g", rough[i], b, a);
    }
    for (int i = 0; i < 2; i++) {
        gw_tables_free(i ? sketch : exact);
        scratch_end(&s[i], db[i]);
    }
}

/* ---- critical ----------------------------------------------------------------------------- */

/* Three ranks in a row; only s-h1 is slow. Iteration 0 waits for 1 <- 2 <- 3, iteration 1 for 4. */
static void chain_record(struct scratch *s)
{
    static const struct { const char *name; uint32_t from, to; uint64_t gbit; uint64_t wire; }
    links[] = {
        { "h0-s", 0, 3, 10, 500 }, { "s-h1", 3, 1, 1, 500 },  { "h1-s", 1, 3, 10, 500 },
        { "s-h2", 3, 2, 10, 500 }, { "h2-s", 2, 3, 10, 400 }, { "s-h0", 3, 0, 10, 900 },
    };
    static const struct { uint64_t flow, message; uint32_t iteration; double start, end;
                          uint32_t hop[2]; } flows[] = {
        { 10, 1, 0, 1, 3, { 0, 1 } },
        { 20, 2, 0, 3.5, 6, { 2, 3 } },
        { 31, 3, 0, 6, 8, { 4, 5 } },
        { 32, 3, 0, 6, 9, { 4, 5 } },
        { 40, 4, 1, 10, 16, { 0, 1 } },
    };
    static const char *const hosts[] = { "h0", "h1", "h2", "s" };

    for (uint32_t i = 0; i < 4; i++)
        add_node(s, i, hosts[i], i < 3);
    for (uint32_t i = 0; i < GW_ARRAY_LEN(links); i++) {
        struct gw_rec_link_total t = { .link = i, .sent_pkts = 1, .wire_bytes = links[i].wire,
                                       .wait_sum_ps = i == 3 ? 20 : 10 };

        add_link(s, i, links[i].name, links[i].from, links[i].to, links[i].gbit * 1000000000);
        CU_ASSERT(s->sink->ops->link_total(s->sink, &t) == GW_OK);
    }
    add_job(s, 0, "ring", 3);
    for (size_t i = 0; i < GW_ARRAY_LEN(flows); i++) {
        struct gw_rec_flow f = flow_row(flows[i].flow, flows[i].message, flows[i].iteration,
                                        flows[i].start, flows[i].end);

        add_flow(s, &f);
        add_path(s, f.conn, 0, flows[i].hop[0]);
        add_path(s, f.conn, 1, flows[i].hop[1]);
    }
    add_message(s, 1, 0, 0, 1, 1, 3, 0, 1);
    add_message(s, 2, 0, 1, 2, 3.5, 6, 1, 0.5);
    add_message(s, 3, 0, 2, 0, 6, 9, 2, 0);
    add_message(s, 4, 1, 0, 1, 10, 16, 3, 1);
    add_iteration(s, 0, 0, 0, 10, 3);
    add_iteration(s, 0, 1, 0, 7, 0);
    add_iteration(s, 0, 2, 0, 8, 2);
    add_iteration(s, 1, 0, 10, 16, 0);
    add_iteration(s, 1, 1, 7, 17, 4);
    add_iteration(s, 1, 2, 8, 17, 0);          /* as late as rank 1: the lower rank counts */
    add_iteration(s, 2, 0, 16, 30, 4);         /* not ended by the others */
}

static void test_critical(void)
{
    static const struct expected want[] = {
        { "critical", 0, "job", 0, "ring" },
        { "critical", 0, "iteration", 0, NULL },
        { "critical", 0, "time_s", 0.010, NULL },
        { "critical", 0, "last_rank", 0, "0 h0" },
        { "critical", 0, "from_rank", 0, "2 h2" },
        { "critical", 0, "to_rank", 0, "0 h0" },
        { "critical", 0, "message", 3, NULL },
        { "critical", 0, "flow", 32, NULL },
        { "critical", 0, "link", 0, "s-h0" },
        { "critical", 0, "fct_s", 0.003, NULL },
        { "critical", 0, "slowdown", 3, NULL },
        { "critical_chains", 0, "messages", 3, NULL },
        { "critical_chains", 0, "transfer_s", 0.0075, NULL },
        { "critical_chains", 0, "local_s", 0.0015, NULL },
        { "critical_chains", 0, "link", 0, "s-h0" },           /* 2, 2.5 and 3 ms */
        { "critical_chains", 0, "on_link_s", 0.003, NULL },
        { "critical_chains", 0, "on_link_share", 0.3, NULL },
        { "critical_chains", 0, "from_rank", 0, "2 h2" },
        { "critical_chains", 0, "on_pair_s", 0.003, NULL },
        { "critical_chains", 1, "link", 0, "s-h1" },
        { "critical_chains", 1, "on_link_s", 0.006, NULL },
        { "critical", 1, "time_s", 0.007, NULL },
        { "critical", 1, "last_rank", 0, "1 h1" },
        { "critical", 1, "flow", 40, NULL },
        { "critical", 1, "link", 0, "s-h1" },
        { "critical_chains", 1, "messages", 1, NULL },
        { "critical_links", 0, "link", 0, "s-h1" },
        { "critical_links", 0, "iterations", 1, NULL },
        { "critical_links", 0, "iterations_share", 0.5, NULL },
        { "critical_links", 0, "chain_messages", 2, NULL },
        { "critical_links", 0, "chain_transfer_s", 0.008, NULL },
        { "critical_links", 0, "time_share", 8 / 17.0, NULL },
        { "critical_links", 1, "link", 0, "s-h0" },
        { "critical_links", 1, "iterations", 1, NULL },
        { "critical_links", 2, "link", 0, "s-h2" },         /* equal rate and load: longer wait */
        { "critical_links", 2, "iterations", 0, NULL },
        { "critical_pairs", 0, "from_rank", 0, "0 h0" },
        { "critical_pairs", 0, "to_rank", 0, "1 h1" },
        { "critical_pairs", 0, "chain_messages", 2, NULL },
        { "critical_pairs", 1, "from_rank", 0, "2 h2" },
        { "critical_pairs", 1, "iterations_share", 0.5, NULL },
        { "critical_pairs", 2, "iterations", 0, NULL },
    };
    struct scratch s;
    struct sqlite3 *db;
    struct gw_tables *t;

    scratch_begin(&s, GW_REC_ALL);
    chain_record(&s);
    t = run_on(&s, &gw_analysis_critical, true, &db);
    check_cells(t, want, GW_ARRAY_LEN(want));
    CU_ASSERT(rows_of(t, "critical", "job") == 2);
    CU_ASSERT(rows_of(t, "critical_chains", "link") == 2);
    CU_ASSERT(rows_of(t, "critical_links", "link") == 3);
    CU_ASSERT(rows_of(t, "critical_pairs", "job") == 3);
    gw_tables_free(t);
    scratch_end(&s, db);
}

/* The last flow is on a fast link; most of the chain's time went over the slow one before. */
static void test_critical_order(void)
{
    static const struct expected want[] = {
        { "critical", 0, "link", 0, "fast" },
        { "critical_links", 0, "link", 0, "slow" },
        { "critical_links", 0, "iterations", 0, NULL },
        { "critical_links", 0, "time_share", 0.8, NULL },
        { "critical_links", 1, "link", 0, "fast" },
        { "critical_links", 1, "iterations", 1, NULL },
        { "critical_pairs", 0, "from_rank", 0, "0" },
        { "critical_pairs", 1, "iterations", 1, NULL },
    };
    struct gw_rec_flow f[2] = { flow_row(1, 1, 0, 0, 8), flow_row(2, 2, 0, 8, 9) };
    struct scratch s;
    struct sqlite3 *db;
    struct gw_tables *t;

    scratch_begin(&s, GW_REC_ALL);
    add_link(&s, 0, "slow", 0, 1, 1000);
    add_link(&s, 1, "fast", 1, 0, 1000);
    add_job(&s, 0, "two", 2);
    for (uint32_t i = 0; i < 2; i++) {
        add_flow(&s, &f[i]);
        add_path(&s, f[i].conn, 0, i);
    }
    add_message(&s, 1, 0, 0, 1, 0, 8, 0, 0);
    add_message(&s, 2, 0, 1, 0, 8, 9, 1, 0);
    add_iteration(&s, 0, 0, 0, 10, 2);
    add_iteration(&s, 0, 1, 0, 8, 1);
    t = run_on(&s, &gw_analysis_critical, true, &db);
    check_cells(t, want, GW_ARRAY_LEN(want));
    gw_tables_free(t);
    scratch_end(&s, db);
}

/* Without rows for flows and messages the iterations are listed, with empty cells. */
static void test_critical_summary(void)
{
    static const struct expected want[] = {
        { "critical", 0, "last_rank", 0, "0 h0" },
        { "critical", 0, "flow", 1e300, NULL },
        { "critical", 1, "time_s", 0.007, NULL },
    };
    struct scratch s;
    struct sqlite3 *db;
    struct gw_tables *t;

    scratch_begin(&s, GW_REC_SUMMARY);
    chain_record(&s);
    t = run_on(&s, &gw_analysis_critical, true, &db);
    check_cells(t, want, GW_ARRAY_LEN(want));
    CU_ASSERT(rows_of(t, "critical_links", "link") == 0);
    gw_tables_free(t);
    scratch_end(&s, db);
}

/* ---- correlation -------------------------------------------------------------------------- */

/* One rank; iteration i takes y[i], has a flow of a[i] and a critical one of b[i], all in ms. */
static void correlation_record(struct scratch *s, size_t n, const double *y, const double *a,
                               const double *b)
{
    double at = 0;

    add_job(s, 0, "corr", 1);
    for (size_t i = 0; i < n; i++) {
        uint64_t id = 2 * i + 1;
        struct gw_rec_flow f = flow_row(id, id, (uint32_t)i, at, at + a[i]);

        add_flow(s, &f);
        f = flow_row(id + 1, id + 1, (uint32_t)i, at, at + b[i]);
        add_flow(s, &f);
        add_message(s, id + 1, (uint32_t)i, 0, 0, at, at + b[i], 0, 0);
        add_iteration(s, (uint32_t)i, 0, at, at + y[i], id + 1);
        at += y[i];
    }
}

static const double iteration_ms[] = { 10, 12, 11, 15, 14, 20, 13, 18, 17, 19, 16, 25 };
static const double other_ms[] = { 3, 4, 4, 5, 7, 6, 6, 7, 7, 7, 7, 9 };   /* no two means tie */
static const double critical_ms[] = { 5, 8, 6, 9, 6, 14, 9, 10, 11, 12, 9, 13 };
static const double same_ms[] = { 5, 5, 5, 5, 5, 5, 5, 5 };

static void test_correlation(void)
{
    /* by an independent program: textbook formulas with mid-ranks (b has ties) */
    static const struct expected want[] = {
        { "correlation", 0, "n", 12, NULL },
        { "correlation", 3, "n", 12, NULL },
        { "correlation", 2, "against", 0, "critical flow's FCT" },
        { "correlation", 3, "against", 0, "critical chain" },
        { "correlation", 0, "pearson", 0.951946026190429, NULL },
        { "correlation", 0, "pearson_low", 0.833290451750202, NULL },
        { "correlation", 0, "pearson_high", 0.986758448448362, NULL },
        { "correlation", 0, "spearman", 0.972027972027972, NULL },
        { "correlation", 0, "spearman_low", 0.870476921391107, NULL },
        { "correlation", 0, "spearman_high", 0.994205754040371, NULL },
        { "correlation", 1, "pearson", 0.904714950523795, NULL },
        { "correlation", 1, "pearson_low", 0.68807256119918, NULL },
        { "correlation", 1, "pearson_high", 0.973275183508749, NULL },
        { "correlation", 1, "spearman", 0.951048951048951, NULL },
        { "correlation", 1, "spearman_low", 0.783873177356576, NULL },
        { "correlation", 1, "spearman_high", 0.98966233726467, NULL },
        { "correlation", 2, "pearson", 0.887424658955096, NULL },
        { "correlation", 2, "pearson_low", 0.638922954646274, NULL },
        { "correlation", 2, "pearson_high", 0.968218149290267, NULL },
        { "correlation", 2, "spearman", 0.941835562564866, NULL },
        { "correlation", 2, "spearman_low", 0.748313923719607, NULL },
        { "correlation", 2, "spearman_high", 0.987612544193642, NULL },
        { "correlation", 3, "pearson", 0.887424658955096, NULL },
        { "correlation", 3, "pearson_low", 0.638922954646274, NULL },
        { "correlation", 3, "pearson_high", 0.968218149290267, NULL },
        { "correlation", 3, "spearman", 0.941835562564866, NULL },
        { "correlation", 3, "spearman_low", 0.748313923719607, NULL },
        { "correlation", 3, "spearman_high", 0.987612544193642, NULL },
        { "correlation", 2, "undefined_because", 1e300, NULL },
        { "correlation", 2, "no_interval_because", 1e300, NULL },
    };
    struct scratch s;
    struct sqlite3 *db;
    struct gw_tables *t;

    scratch_begin(&s, GW_REC_ALL);
    correlation_record(&s, 12, iteration_ms, other_ms, critical_ms);
    t = run_on(&s, &gw_analysis_correlation, true, &db);
    check_cells(t, want, GW_ARRAY_LEN(want));
    CU_ASSERT(rows_of(t, "correlation", "n") == 4);
    gw_tables_free(t);
    scratch_end(&s, db);
}

static void test_correlation_undefined(void)
{
    static const struct { size_t n; const double *y, *b; enum gw_flow_records mode;
                          const char *why; } rows[] = {
        { 3, iteration_ms, critical_ms, GW_REC_ALL, "fewer than 4 iterations" },
        { 8, same_ms, critical_ms, GW_REC_ALL, "iteration time does not vary" },
        { 8, iteration_ms, same_ms, GW_REC_ALL, "completion time does not vary" },
        { 8, iteration_ms, critical_ms, GW_REC_SUMMARY, "fewer than 4 iterations" },
    };

    for (size_t i = 0; i < GW_ARRAY_LEN(rows); i++) {
        struct expected want[] = {
            { "correlation", 2, "undefined_because", 0, rows[i].why },
            { "correlation", 2, "pearson", 1e300, NULL },
            { "correlation", 2, "spearman_high", 1e300, NULL },
        };
        struct scratch s;
        struct sqlite3 *db;
        struct gw_tables *t;

        scratch_begin(&s, rows[i].mode);
        correlation_record(&s, rows[i].n, rows[i].y, other_ms, rows[i].b);
        t = run_on(&s, &gw_analysis_correlation, true, &db);
        check_cells(t, want, GW_ARRAY_LEN(want));
        gw_tables_free(t);
        scratch_end(&s, db);
    }
}

/* A perfect line has no room for error; an interval that is a point is not printed. */
static void test_correlation_perfect(void)
{
    static const struct expected want[] = {
        { "correlation", 2, "pearson", 1, NULL },
        { "correlation", 2, "spearman", 1, NULL },
        { "correlation", 3, "pearson", 1, NULL },
        { "correlation", 2, "pearson_low", 1e300, NULL },
        { "correlation", 2, "spearman_high", 1e300, NULL },
        { "correlation", 2, "no_interval_because", 0, "the points lie on a line" },
        { "correlation", 0, "no_interval_because", 1e300, NULL },
    };
    struct scratch s;
    struct sqlite3 *db;
    struct gw_tables *t;

    scratch_begin(&s, GW_REC_ALL);
    correlation_record(&s, 12, iteration_ms, other_ms, iteration_ms);
    t = run_on(&s, &gw_analysis_correlation, true, &db);
    check_cells(t, want, GW_ARRAY_LEN(want));
    gw_tables_free(t);
    scratch_end(&s, db);
}

/* Too few points for an interval, enough for a coefficient. */
static void test_correlation_short(void)
{
    static const struct expected want[] = {
        { "correlation", 2, "n", 9, NULL },
        { "correlation", 2, "pearson", 0.899261208127733, NULL },
        { "correlation", 2, "pearson_low", 1e300, NULL },
        { "correlation", 2, "spearman_low", 1e300, NULL },
        { "correlation", 2, "no_interval_because", 0, "fewer than 10 iterations" },
        { "correlation", 2, "undefined_because", 1e300, NULL },
    };
    struct scratch s;
    struct sqlite3 *db;
    struct gw_tables *t;

    scratch_begin(&s, GW_REC_ALL);
    correlation_record(&s, 9, iteration_ms, other_ms, critical_ms);
    t = run_on(&s, &gw_analysis_correlation, true, &db);
    check_cells(t, want, GW_ARRAY_LEN(want));
    gw_tables_free(t);
    scratch_end(&s, db);
}

/* ---- links -------------------------------------------------------------------------------- */

static void links_record(struct scratch *s, bool totals, bool samples)
{
    uint64_t drops[GW_DROP_COUNT] = { [GW_DROP_QUEUE_FULL] = 2, [GW_DROP_LOSS] = 5 };
    struct gw_rec_link_total busy = {
        .link = 1, .sent_pkts = 100, .sent_bytes = 10000, .wire_bytes = 12400,
        .wait_sum_ps = 100 * UINT64_C(2000000), .wait_max_ps = 50000000, .queue_max_bytes = 4000,
        .queue_max_pkts = 40, .marked_pkts = 3, .fluid_bytes = 100, .drops = drops,
        .arrived_pkts = 125, .held_ns = 100 * 7000,
    };
    struct gw_rec_link_total idle = { .link = 0 };
    struct gw_rec_flow f = flow_row(9, 9, 0, 0, 200);

    add_link(s, 0, "x:a", 0, 1, 1000000);
    add_link(s, 1, "y:a", 1, 0, 1000000);
    add_link(s, 2, "free:a", 1, 0, 0);
    add_flow(s, &f);
    add_path(s, 9, 0, 1);
    for (uint64_t i = 1; samples && i <= 2; i++) {
        struct gw_rec_link_sample r = { .at_ps = i * 100000000000, .link = 1, .sent_bytes = 2500,
                                        .drops = i, .marked_pkts = 1, .queue_bytes = i * 100,
                                        .queue_pkts = i };

        CU_ASSERT(s->sink->ops->link_sample(s->sink, &r) == GW_OK);
    }
    if (totals) {
        CU_ASSERT(s->sink->ops->link_total(s->sink, &busy) == GW_OK);
        CU_ASSERT(s->sink->ops->link_total(s->sink, &idle) == GW_OK);
    }
}

static void test_links(void)
{
    static const struct expected totals[] = {
        { "links", 0, "link", 0, "y:a" },
        { "links", 0, "sent_bytes", 10100, NULL },
        { "links", 0, "wire_bytes", 12500, NULL },
        { "links", 0, "utilisation", 0.5, NULL },        /* 12,500 of 25,000 bytes in 0.2 s */
        { "links", 0, "mean_wait_s", 2e-6, NULL },
        { "links", 0, "max_wait_s", 50e-6, NULL },
        { "links", 0, "mean_held_s", 7e-6, NULL },
        { "links", 0, "queue_max_bytes", 4000, NULL },
        { "links", 0, "dropped_pkts", 7, NULL },
        { "links", 0, "marked_pkts", 3, NULL },
        { "links", 0, "from", 0, "totals" },
        { "links", 1, "utilisation", 0, NULL },
        { "links", 1, "mean_wait_s", 1e300, NULL },
        { "drops", 0, "reason", 0, "loss" },
        { "drops", 0, "pkts", 5, NULL },
        { "drops", 0, "pkts_share", 0.04, NULL },         /* 5 of the 125 that came */
        { "drops", 1, "reason", 0, "queue_full" },
    };
    static const struct expected samples[] = {
        { "links", 0, "link", 0, "y:a" },
        { "links", 0, "sent_bytes", 5000, NULL },
        { "links", 0, "utilisation", 0.2, NULL },
        { "links", 0, "mean_wait_s", 1e300, NULL },
        { "links", 0, "queue_max_bytes", 200, NULL },
        { "links", 0, "dropped_pkts", 3, NULL },
        { "links", 0, "from", 0, "samples" },
        { "links", 1, "sent_bytes", 0, NULL },
    };
    static const struct expected flows[] = {
        { "links", 0, "link", 0, "y:a" },
        { "links", 0, "sent_bytes", 1000, NULL },
        { "links", 0, "utilisation", 0.04, NULL },
        { "links", 0, "dropped_pkts", 1e300, NULL },
        { "links", 0, "from", 0, "flows" },
    };
    static const struct { bool totals, samples; const struct expected *want; size_t n; } rows[] = {
        { true, true, totals, GW_ARRAY_LEN(totals) },
        { false, true, samples, GW_ARRAY_LEN(samples) },
        { false, false, flows, GW_ARRAY_LEN(flows) },
    };

    for (size_t i = 0; i < GW_ARRAY_LEN(rows); i++) {
        struct scratch s;
        struct sqlite3 *db;
        struct gw_tables *t;

        scratch_begin(&s, GW_REC_ALL);
        links_record(&s, rows[i].totals, rows[i].samples);
        t = run_on(&s, &gw_analysis_links, rows[i].totals, &db);
        check_cells(t, rows[i].want, rows[i].n);
        gw_tables_free(t);
        scratch_end(&s, db);
    }
}

/* ---- nothing ------------------------------------------------------------------------------ */

/* A run killed right after its start: no analysis may fail. */
static void test_empty(void)
{
    static const struct gw_plugin *const all[] = {
        &gw_analysis_iteration, &gw_analysis_fct, &gw_analysis_critical, &gw_analysis_correlation,
        &gw_analysis_links,
    };

    for (size_t i = 0; i < GW_ARRAY_LEN(all); i++) {
        struct scratch s;
        struct sqlite3 *db;
        struct gw_tables *t;

        scratch_begin(&s, GW_REC_ALL);
        t = run_on(&s, all[i], false, &db);
        CU_ASSERT(gw_tables_cell(t, all[i]->name, 0, "job") == NULL);
        gw_tables_free(t);
        scratch_end(&s, db);
    }
}

static const struct gw_case cases[] = {
    { "iteration time", test_iteration },
    { "the split adds up to the iteration time", test_iteration_split },
    { "iterations that not all ranks ended", test_iteration_unfinished },
    { "iterations of the headline", test_iteration_headline },
    { "completion time", test_fct },
    { "critical flow over a chain of three ranks", test_critical },
    { "links by the time of chains", test_critical_order },
    { "critical flow without rows", test_critical_summary },
    { "correlation", test_correlation },
    { "correlation that is undefined", test_correlation_undefined },
    { "correlation on a line", test_correlation_perfect },
    { "correlation of few iterations", test_correlation_short },
    { "links from totals, samples, flows", test_links },
    { "an empty record", test_empty },
    { NULL, NULL },
};

extern const struct gw_suite suite_analysis;
const struct gw_suite suite_analysis = { "analysis", cases };
