/*
 * an_fct - flow completion times of each job, and slowdown against the ideal
 *
 * The completion time of a flow runs from its posting to the arrival of its last byte; its ideal is
 * the time it would take alone on its path, and slowdown the quotient of the two. Flows that did
 * not end are counted and have no time. Quantiles are exact, from the rows (definition in
 * gradwire/alg/iterations.h), if the record keeps all flows and they are at most EXACT_MAX; else
 * they come from the sketches that every record holds and are within 1 %. Column `from` says which.
 */
#include <gradwire/alg/iterations.h>
#include <gradwire/gradwire.h>

#define EXACT_MAX 20000000          /* 320 MB of samples                                       */

struct job_flows {
    struct gw_samples fct_s, slowdown;
};

struct flows {
    bool exact;
    struct job_flows *job;
    size_t jobs;
};

/* ---- exact: from the rows ----------------------------------------------------------------- */

static bool count_jobs(struct gw_analysis *a, struct flows *f, struct gw_error *err)
{
    sqlite3_stmt *st = gw_db_query(a->db, "SELECT ifnull(max(job), -1) + 1, sum(flows) <= ?1 AND"
                                   " (SELECT value = 'all' FROM run WHERE key = 'records.flows')"
                                   " FROM flow_summary", err);

    if (!st)
        return false;
    sqlite3_bind_int64(st, 1, EXACT_MAX);
    if (sqlite3_step(st) == SQLITE_ROW) {
        f->jobs = (size_t)sqlite3_column_int64(st, 0);
        f->exact = sqlite3_column_int(st, 1);
    }
    sqlite3_finalize(st);
    f->job = calloc(f->jobs ? f->jobs : 1, sizeof *f->job);
    if (!f->job)
        gw_fail(err, GW_NOMEM, "analysis fct: out of memory");
    return f->job != NULL;
}

static enum gw_status read_rows(struct gw_analysis *a, struct flows *f, struct gw_error *err)
{
    sqlite3_stmt *st = gw_db_query(a->db, "SELECT job, end_ps - start_ps, ideal_ps FROM flow"
                                   " WHERE end_ps IS NOT NULL AND job IS NOT NULL", err);
    bool ok = true;
    int rc = SQLITE_DONE;

    if (!st)
        return GW_IO;
    while (ok && (rc = sqlite3_step(st)) == SQLITE_ROW) {
        size_t job = (size_t)sqlite3_column_int64(st, 0);
        double fct = gw_ps_to_s(sqlite3_column_int64(st, 1));
        double ideal = gw_ps_to_s(sqlite3_column_int64(st, 2));

        if (job >= f->jobs)
            continue;
        ok = gw_samples_add(&f->job[job].fct_s, fct) &&
             (ideal <= 0 || gw_samples_add(&f->job[job].slowdown, fct / ideal));
    }
    if (!ok)
        gw_fail(err, GW_NOMEM, "analysis fct: out of memory");
    for (size_t j = 0; ok && j < f->jobs; j++) {
        gw_samples_sort(&f->job[j].fct_s);
        gw_samples_sort(&f->job[j].slowdown);
    }
    return gw_db_done(st, rc, err) == GW_OK && ok ? GW_OK : ok ? GW_IO : GW_NOMEM;
}

/* ---- sketches ----------------------------------------------------------------------------- */

/* The middle of the bucket in which quantile @f of @job lies, times @scale; NAN: empty. */
static double sketch_quantile(sqlite3_stmt *st, int64_t job, const char *metric, double f,
                              double scale)
{
    double all = 0, seen = 0, value = NAN;

    for (int pass = 0; pass < 2; pass++) {
        sqlite3_reset(st);
        sqlite3_bind_int64(st, 1, job);
        sqlite3_bind_text(st, 2, metric, -1, SQLITE_STATIC);
        while (sqlite3_step(st) == SQLITE_ROW) {
            double n = sqlite3_column_double(st, 2);

            if (!pass) {
                all += n;
                continue;
            }
            seen += n;
            value = (sqlite3_column_double(st, 0) + sqlite3_column_double(st, 1)) / 2 * scale;
            if (seen > (all - 1) * f)
                break;
        }
    }
    return value;
}

static double sketch_mean(sqlite3_stmt *st, int64_t job, const char *metric, double scale)
{
    double all = 0, sum = 0;

    sqlite3_reset(st);
    sqlite3_bind_int64(st, 1, job);
    sqlite3_bind_text(st, 2, metric, -1, SQLITE_STATIC);
    while (sqlite3_step(st) == SQLITE_ROW) {
        double n = sqlite3_column_double(st, 2);

        all += n;
        sum += n * (sqlite3_column_double(st, 0) + sqlite3_column_double(st, 1)) / 2 * scale;
    }
    return sum / all;
}

/* ---- callbacks ---------------------------------------------------------------------------- */

static void put_quantiles(struct gw_cell *row, const struct flows *f, sqlite3_stmt *sketch,
                          int64_t job)
{
    static const double at[] = { 0.5, 0.95, 0.99 };
    const struct job_flows *j = &f->job[job];

    for (size_t i = 0; i < GW_ARRAY_LEN(at); i++) {
        row[i] = gw_cell_real(f->exact ? gw_samples_quantile(&j->fct_s, at[i])
                              : sketch_quantile(sketch, job, "fct_ps", at[i], 1e-12));
        row[5 + i] = gw_cell_real(f->exact ? gw_samples_quantile(&j->slowdown, at[i])
                                  : sketch_quantile(sketch, job, "slowdown_ppm", at[i], 1e-6));
    }
    row[4] = gw_cell_real(f->exact ? gw_samples_mean(&j->slowdown)
                          : sketch_mean(sketch, job, "slowdown_ppm", 1e-6));
}

/* One row for each job; @st steps through flow_summary. */
static enum gw_status fill(struct gw_analysis *a, struct gw_table *t, const struct flows *f,
                           sqlite3_stmt *st, sqlite3_stmt *sketch)
{
    struct gw_cell row[16];
    enum gw_status code = GW_OK;

    while (code == GW_OK && sqlite3_step(st) == SQLITE_ROW) {
        int64_t job = sqlite3_column_int64(st, 0);

        row[0] = gw_cell_text((const char *)sqlite3_column_text(st, 1));
        for (int c = 1; c <= 3; c++)                 /* flows, finished, bytes */
            row[c] = gw_cell_int(sqlite3_column_int64(st, c + 1));
        row[4] = gw_cell_real(sqlite3_column_type(st, 5) == SQLITE_NULL ? (double)NAN
                              : sqlite3_column_double(st, 5) / 1e12);
        put_quantiles(row + 5, f, sketch, job);      /* 5 to 7, and 9 to 12 */
        row[8] = gw_cell_real(sqlite3_column_type(st, 6) == SQLITE_NULL ? (double)NAN
                              : gw_ps_to_s(sqlite3_column_int64(st, 6)));
        row[13] = gw_cell_int(sqlite3_column_int64(st, 7));
        row[14] = gw_cell_int(sqlite3_column_int64(st, 8));
        row[15] = gw_cell_text(f->exact ? "rows" : "sketch");
        code = a->host->table_row(t, row);
    }
    return code;
}

static enum gw_status fct_table(struct gw_analysis *a, const struct flows *f, struct gw_error *err)
{
    static const char *const columns[] = {
        "job", "flows", "finished", "size_bytes", "mean_s", "p50_s", "p95_s", "p99_s", "max_s",
        "slowdown_mean", "slowdown_p50", "slowdown_p95", "slowdown_p99", "retrans_pkts",
        "timeouts", "from",
    };
    struct gw_table *t = a->host->table_new(a, "fct", "Flow completion time, and slowdown against "
                                            "the flow alone on its path", columns,
                                            GW_ARRAY_LEN(columns));
    sqlite3_stmt *st, *sketch;
    enum gw_status code = GW_IO;

    if (!t)
        return gw_fail(err, GW_NOMEM, "analysis fct: out of memory");
    st = gw_db_query(a->db, "SELECT s.job, ifnull(j.name, s.job), flows, finished, bytes,"
                     " fct_mean_ps, fct_max_ps, retrans_pkts, timeouts FROM flow_summary s"
                     " LEFT JOIN job j USING(job) ORDER BY s.job", err);
    sketch = gw_db_query(a->db, "SELECT low, high, flows FROM flow_sketch WHERE job = ? AND"
                         " metric = ? ORDER BY low", err);
    if (st && sketch && (code = fill(a, t, f, st, sketch)) != GW_OK)
        gw_fail(err, code, "analysis fct: out of memory");
    sqlite3_finalize(st);
    sqlite3_finalize(sketch);
    return code;
}

static enum gw_status fct_run(struct gw_analysis *a, struct gw_error *err)
{
    struct flows f = { 0 };
    enum gw_status code = GW_IO;

    if (count_jobs(a, &f, err)) {
        code = f.exact ? read_rows(a, &f, err) : GW_OK;
        if (code == GW_OK)
            code = fct_table(a, &f, err);
    }
    for (size_t j = 0; f.job && j < f.jobs; j++) {
        free(f.job[j].fct_s.v);
        free(f.job[j].slowdown.v);
    }
    free(f.job);
    return code;
}

static const struct gw_analysis_ops fct_ops = {
    .run = fct_run,
};

GW_PLUGIN(gw_analysis_fct) = {
    GW_PLUGIN_HEAD(GW_KIND_ANALYSIS, fct_ops),
    .name    = "fct",
    .summary = "Flow completion times per job: mean, p50, p95, p99, slowdown against ideal.",
    .flags   = GW_ANALYSIS_PLACE(2),
};
