/*
 * an_iteration - how long the iterations of each job take, and what that time goes into
 *
 * The time of iteration i is E(i) - E(i-1), E being the latest end over the job's ranks (see
 * gradwire/alg/iterations.h); mean, median and 99th percentile are over the iterations that all
 * ranks ended. The split is an average over ranks and iterations of each rank's own iteration, from
 * its start to its end: computing; idle while a message or a reduction of this rank was going
 * (exposed communication); idle with nothing under way, because others were late (waiting).
 * Left out: warm-up is not cut off; the first iteration counts like every other.
 */
#include <gradwire/alg/iterations.h>
#include <gradwire/gradwire.h>

struct job_times {                   /* one job, while its iterations are gone through          */
    uint32_t job;
    uint32_t unfinished;             /* iterations that some rank did not end                   */
    uint32_t ranks;                  /* of the first iteration                                  */
    uint64_t rank_iterations;        /* rows in the sums below                                  */
    double   rank_ps, compute_ps, exposed_ps, wait_ps;
    struct gw_samples time_s;
};

/* ---- state -------------------------------------------------------------------------------- */

static bool job_add(struct job_times *j, const struct gw_iteration_time *x)
{
    if (!x->whole) {
        j->unfinished++;
        return true;
    }
    j->rank_iterations += x->ranks;
    j->rank_ps += (double)x->rank_ps;
    j->compute_ps += (double)x->compute_ps;
    j->exposed_ps += (double)x->exposed_ps;
    j->wait_ps += (double)x->wait_ps;
    return gw_samples_add(&j->time_s, gw_ps_to_s(x->time_ps));
}

static const char *job_name(sqlite3_stmt *names, uint32_t job)
{
    sqlite3_reset(names);
    sqlite3_bind_int64(names, 1, job);
    return sqlite3_step(names) == SQLITE_ROW ? (const char *)sqlite3_column_text(names, 0) : NULL;
}

static enum gw_status job_row(struct gw_analysis *a, struct gw_table *t, sqlite3_stmt *names,
                              struct job_times *j)
{
    double n = (double)j->rank_iterations * 1e12;
    struct gw_cell row[13];

    gw_samples_sort(&j->time_s);
    row[0] = gw_cell_text(job_name(names, j->job));
    row[1] = gw_cell_int((int64_t)j->time_s.n);
    row[2] = gw_cell_int(j->unfinished);
    row[3] = gw_cell_int(j->ranks);
    row[4] = gw_cell_real(gw_samples_mean(&j->time_s));
    row[5] = gw_cell_real(gw_samples_quantile(&j->time_s, 0.5));
    row[6] = gw_cell_real(gw_samples_quantile(&j->time_s, 0.99));
    row[7] = gw_cell_real(j->compute_ps / n);
    row[8] = gw_cell_real(j->exposed_ps / n);
    row[9] = gw_cell_real(j->wait_ps / n);
    row[10] = gw_cell_real(j->compute_ps / j->rank_ps);
    row[11] = gw_cell_real(j->exposed_ps / j->rank_ps);
    row[12] = gw_cell_real(j->wait_ps / j->rank_ps);
    return a->host->table_row(t, row);
}

/* ---- callbacks ---------------------------------------------------------------------------- */

static enum gw_status fill(struct gw_analysis *a, struct gw_table *t, sqlite3_stmt *names,
                           const struct gw_iteration_times *all)
{
    enum gw_status code = GW_OK;
    size_t i = 0;

    while (i < all->n && code == GW_OK) {
        struct job_times j = { .job = all->v[i].job, .ranks = all->v[i].ranks };
        bool ok = true;

        for (; ok && i < all->n && all->v[i].job == j.job; i++)
            ok = job_add(&j, &all->v[i]);
        code = ok ? job_row(a, t, names, &j) : GW_NOMEM;
        free(j.time_s.v);
    }
    return code;
}

static enum gw_status iteration_run(struct gw_analysis *a, struct gw_error *err)
{
    static const char *const columns[] = {
        "job", "iterations", "unfinished", "ranks", "mean_s", "p50_s", "p99_s", "compute_s",
        "exposed_s", "wait_s", "compute_share", "exposed_share", "wait_share",
    };
    struct gw_iteration_times all = { 0 };
    struct gw_table *t;
    sqlite3_stmt *names;
    enum gw_status code = gw_iteration_times_read(a->db, &all, err);

    if (code != GW_OK)
        goto out_times;
    t = a->host->table_new(a, "iteration", "Iteration time, and what a rank's iteration goes into",
                           columns, GW_ARRAY_LEN(columns));
    if (!t) {
        code = gw_fail(err, GW_NOMEM, "analysis iteration: out of memory");
        goto out_times;
    }
    names = gw_db_query(a->db, "SELECT name FROM job WHERE job = ?", err);
    code = names ? fill(a, t, names, &all) : GW_IO;
    if (code == GW_NOMEM)
        gw_fail(err, code, "analysis iteration: out of memory");
    sqlite3_finalize(names);

out_times:
    free(all.v);
    return code;
}

static const struct gw_analysis_ops iteration_ops = {
    .run = iteration_run,
};

GW_PLUGIN(gw_analysis_iteration) = {
    GW_PLUGIN_HEAD(GW_KIND_ANALYSIS, iteration_ops),
    .name    = "iteration",
    .summary = "Iteration time per job, split into compute, exposed communication and waiting.",
    .flags   = GW_ANALYSIS_PLACE(1),
};
