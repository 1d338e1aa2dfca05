/*
 * an_iteration - how long the iterations of each job take, and what that time goes into
 *
 * The time of iteration i is E(i) - E(i-1), E being the latest end over the job's ranks (see
 * gradwire/alg/iterations.h); mean, median and 99th percentile are over the iterations that all
 * ranks ended. The split is an average over ranks and iterations and adds up to the mean iteration
 * time: computing; idle while a message or a reduction of this rank was going (exposed
 * communication); the rest, in which nothing of the rank was under way because others were late
 * (waiting). To the waiting belongs the time before a rank begins the iteration, and that between
 * its own end and the iteration's.
 *
 * A job whose flows began but none of whose ranks ended anything has its row, too. `unfinished`
 * counts the iterations of the job that not every rank ended, those that never began included.
 * Left out: warm-up is not cut off; the first iteration counts like every other.
 */
#include <gradwire/alg/iterations.h>
#include <gradwire/gradwire.h>

struct job_times {                   /* one job, while its iterations are gone through          */
    uint32_t unfinished;             /* iterations that some rank did not end                   */
    uint32_t ranks;                  /* of the job; where that is unknown, of the first one     */
    uint64_t rank_iterations;        /* rows in the sums below                                  */
    double   time_ps;                /* iteration time, for each rank                           */
    double   compute_ps, exposed_ps;
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
    j->time_ps += (double)x->time_ps * x->ranks;
    j->compute_ps += (double)x->compute_ps;
    j->exposed_ps += (double)x->exposed_ps;
    return gw_samples_add(&j->time_s, gw_ps_to_s(x->time_ps));
}

static enum gw_status job_row(struct gw_analysis *a, struct gw_table *t, sqlite3_stmt *jobs,
                              struct job_times *j)
{
    double n = (double)j->rank_iterations * 1e12, wait_ps = j->time_ps - j->compute_ps -
                                                            j->exposed_ps;
    int64_t all = sqlite3_column_int64(jobs, 2);         /* 0: not recorded */
    struct gw_cell row[13];

    gw_samples_sort(&j->time_s);
    row[0] = gw_cell_text((const char *)sqlite3_column_text(jobs, 1));
    row[1] = gw_cell_int((int64_t)j->time_s.n);
    row[2] = gw_cell_int(all > (int64_t)j->time_s.n ? all - (int64_t)j->time_s.n
                                                    : j->unfinished);
    row[3] = gw_cell_int(j->ranks);
    row[4] = gw_cell_real(gw_samples_mean(&j->time_s));
    row[5] = gw_cell_real(gw_samples_quantile(&j->time_s, 0.5));
    row[6] = gw_cell_real(gw_samples_quantile(&j->time_s, 0.99));
    row[7] = gw_cell_real(j->compute_ps / n);
    row[8] = gw_cell_real(j->exposed_ps / n);
    row[9] = gw_cell_real(wait_ps / n);
    row[10] = gw_cell_real(j->compute_ps / j->time_ps);
    row[11] = gw_cell_real(j->exposed_ps / j->time_ps);
    row[12] = gw_cell_real(wait_ps / j->time_ps);
    return a->host->table_row(t, row);
}

/* ---- callbacks ---------------------------------------------------------------------------- */

/* Gathers the iterations from *i on that belong to the job that @jobs stands on; its row. */
static enum gw_status one_job(struct gw_analysis *a, struct gw_table *t, sqlite3_stmt *jobs,
                              const struct gw_iteration_times *all, size_t *i)
{
    struct job_times j = { .ranks = (uint32_t)sqlite3_column_int64(jobs, 3) };
    uint32_t job = (uint32_t)sqlite3_column_int64(jobs, 0);
    enum gw_status code;
    bool ok = true;

    if (!j.ranks && *i < all->n)
        j.ranks = all->v[*i].ranks;
    for (; ok && *i < all->n && all->v[*i].job == job; ++*i)
        ok = job_add(&j, &all->v[*i]);
    code = ok ? job_row(a, t, jobs, &j) : GW_NOMEM;
    free(j.time_s.v);
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
    sqlite3_stmt *jobs;
    size_t at = 0;
    enum gw_status code = gw_iteration_times_read(a->db, &all, err);

    if (code != GW_OK)
        goto out_times;
    t = a->host->table_new(a, "iteration", "Iteration time, and what a rank's iteration goes into",
                           columns, GW_ARRAY_LEN(columns));
    if (!t) {
        code = gw_fail(err, GW_NOMEM, "analysis iteration: out of memory");
        goto out_times;
    }
    jobs = gw_db_query(a->db, "SELECT x.job, j.name, j.iterations, j.ranks FROM"
                       " (SELECT job FROM iteration UNION SELECT job FROM flow_summary) x"
                       " LEFT JOIN job j USING(job) ORDER BY x.job", err);
    code = jobs ? a->host->table_note(t, "wait: nothing of the rank is under way, it waits for "
                                      "others; with compute and exposed it makes up the mean "
                                      "iteration time") : GW_IO;
    while (code == GW_OK && sqlite3_step(jobs) == SQLITE_ROW)
        code = one_job(a, t, jobs, &all, &at);
    if (code == GW_NOMEM)
        gw_fail(err, code, "analysis iteration: out of memory");
    sqlite3_finalize(jobs);

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
