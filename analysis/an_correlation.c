/*
 * an_correlation - does flow completion time say anything about iteration time?
 *
 * Over the iterations of a job that all ranks ended and that had finished flows: the iteration's
 * time (gradwire/alg/iterations.h) against (a) the mean completion time of its flows, (b) their
 * 99th percentile, (c) the completion time of its critical flow (the last-ending flow of the
 * message that the iteration's last rank waited for last; see the analysis `critical`), (d) the
 * time of all messages on the chain that led to it, together (gradwire/alg/chain.h).
 *
 * Pearson's r, and Spearman's rho with mid-ranks for ties. 95 % confidence intervals through
 * Fisher's z: atanh(r) +- 1.96 / sqrt(n - 3) for Pearson (Fisher 1921); for Spearman the variance
 * is (1 + rho^2 / 2) / (n - 3) (Bonett and Wright, Psychometrika 65, 2000). Both hold for many
 * points only: below 10 there is no interval, below 4 no coefficient either, but the reason; the
 * same where one of the two does not vary. At |r| = 1 the interval would be a point, which says
 * nothing.
 *
 * Left out: iterations are taken as independent, which those of one run are only roughly.
 */
#include <gradwire/alg/chain.h>
#include <gradwire/gradwire.h>

#define Z95   1.959963984540054      /* the 97.5 % point of the normal distribution            */
#define N_MIN 4u
#define N_INTERVAL 10u                /* points that an interval needs                          */
#define PERFECT (1 - 1e-9)

enum against { MEAN_FCT, P99_FCT, CRITICAL_FCT, CRITICAL_CHAIN, AGAINST_COUNT };

struct pairs {                       /* one comparison: x completion times, y iteration times   */
    struct gw_samples x, y;
};

struct job_pairs {
    uint32_t job;
    struct pairs against[AGAINST_COUNT];
};

/* ---- gathering ---------------------------------------------------------------------------- */

/* The flows of one iteration, while the rows go by. */
struct flows {
    uint32_t job, iteration;
    struct gw_samples fct_s;
    int64_t critical_end_ps, critical_fct_ps;    /* end 0: none so far                          */
    uint64_t last_message;
};

struct gather {
    struct gw_iteration_times times;
    double *chain_s;                 /* of times.v[i]: time of its chain's messages; NAN: none   */
    size_t at;                       /* in times.v: everything before is done                   */
    struct job_pairs *job;
    size_t jobs;
};

static bool pair_add(struct job_pairs *j, enum against which, double x, double y)
{
    return gw_samples_add(&j->against[which].x, x) && gw_samples_add(&j->against[which].y, y);
}

/* The entry of @job, which is the last one or new. */
static struct job_pairs *job_at(struct gather *g, uint32_t job)
{
    struct job_pairs *more;

    if (g->jobs && g->job[g->jobs - 1].job == job)
        return &g->job[g->jobs - 1];
    more = realloc(g->job, (g->jobs + 1) * sizeof *more);
    if (!more)
        return NULL;
    g->job = more;
    memset(&more[g->jobs], 0, sizeof *more);
    more[g->jobs].job = job;
    return &more[g->jobs++];
}

/* The iteration's times; NULL: not recorded. Both lists are in the same order. */
static const struct gw_iteration_time *time_of(struct gather *g, uint32_t job, uint32_t iteration)
{
    const struct gw_iteration_time *x;

    for (; g->at < g->times.n; g->at++) {
        x = &g->times.v[g->at];
        if (x->job == job && x->iteration == iteration)
            return x;
        if (x->job > job || (x->job == job && x->iteration > iteration))
            break;
    }
    return NULL;
}

/* Puts the points of one iteration, all of whose flows have been seen. */
static bool flows_close(struct gather *g, struct flows *f)
{
    const struct gw_iteration_time *x;
    struct job_pairs *j;
    double time_s;
    bool ok;

    if (!f->fct_s.n)                     /* nothing seen yet: the walk over times stays put */
        return true;
    x = time_of(g, f->job, f->iteration);
    if (!x || !x->whole)
        return true;
    j = job_at(g, f->job);
    time_s = gw_ps_to_s(x->time_ps);
    gw_samples_sort(&f->fct_s);
    ok = j && pair_add(j, MEAN_FCT, gw_samples_mean(&f->fct_s), time_s) &&
         pair_add(j, P99_FCT, gw_samples_quantile(&f->fct_s, 0.99), time_s);
    if (ok && f->critical_end_ps)
        ok = pair_add(j, CRITICAL_FCT, gw_ps_to_s(f->critical_fct_ps), time_s);
    if (ok && isfinite(g->chain_s[x - g->times.v]))
        ok = pair_add(j, CRITICAL_CHAIN, g->chain_s[x - g->times.v], time_s);
    return ok;
}

static void flows_open(struct gather *g, struct flows *f, uint32_t job, uint32_t iteration)
{
    const struct gw_iteration_time *x = time_of(g, job, iteration);

    f->job = job;
    f->iteration = iteration;
    f->fct_s.n = 0;
    f->critical_end_ps = 0;
    f->last_message = x ? x->last_message : 0;
}

static bool flow_add(struct flows *f, uint64_t message, int64_t start_ps, int64_t end_ps)
{
    if (message && message == f->last_message && end_ps > f->critical_end_ps) {
        f->critical_end_ps = end_ps;
        f->critical_fct_ps = end_ps - start_ps;
    }
    return gw_samples_add(&f->fct_s, gw_ps_to_s(end_ps - start_ps));
}

static bool flows_walk(struct gather *g, sqlite3_stmt *st, int *rc)
{
    struct flows f = { .job = GW_NONE, .iteration = GW_NONE };
    bool ok = true;

    while (ok && (*rc = sqlite3_step(st)) == SQLITE_ROW) {
        uint32_t job = (uint32_t)sqlite3_column_int64(st, 0);
        uint32_t iteration = (uint32_t)sqlite3_column_int64(st, 1);

        if (job != f.job || iteration != f.iteration) {
            ok = flows_close(g, &f);
            flows_open(g, &f, job, iteration);
        }
        ok = ok && flow_add(&f, (uint64_t)sqlite3_column_int64(st, 2),
                            sqlite3_column_int64(st, 3), sqlite3_column_int64(st, 4));
    }
    ok = ok && flows_close(g, &f);
    free(f.fct_s.v);
    return ok;
}

/* Fills chain_s. */
static enum gw_status chains_read(struct gather *g, struct gw_analysis *a, struct gw_error *err)
{
    sqlite3_stmt *st = gw_arrivals_query(a->db, err);
    struct gw_arrivals m = { 0 };
    bool ok;
    int rc;

    if (!st)
        return GW_IO;
    rc = sqlite3_step(st);
    g->chain_s = malloc((g->times.n + 1) * sizeof *g->chain_s);
    ok = g->chain_s != NULL;
    for (size_t i = 0; ok && i < g->times.n; i++) {
        const struct gw_arrival *r;
        int64_t sum_ps = 0;
        size_t n = 0;

        ok = gw_arrivals_read(&m, st, &rc, &g->times.v[i]);
        for (r = gw_chain_end(&m, &g->times.v[i]); ok && r && n < m.n; r = gw_chain_before(&m, r)) {
            sum_ps += r->end_ps - r->post_ps;
            n++;
        }
        g->chain_s[i] = n ? gw_ps_to_s(sum_ps) : (double)NAN;
    }
    free(m.v);
    if (ok)
        return gw_db_done(st, rc, err);
    sqlite3_finalize(st);
    return gw_fail(err, GW_NOMEM, "analysis correlation: out of memory");
}

static enum gw_status gather_read(struct gather *g, struct gw_analysis *a, struct gw_error *err)
{
    sqlite3_stmt *st;
    int rc = SQLITE_DONE;

    if (gw_iteration_times_read(a->db, &g->times, err) != GW_OK ||
        chains_read(g, a, err) != GW_OK)
        return err->code;
    st = gw_db_query(a->db, "SELECT job, iteration, message, start_ps, end_ps FROM flow"
                     " WHERE end_ps IS NOT NULL AND job IS NOT NULL AND iteration IS NOT NULL"
                     " ORDER BY job, iteration", err);
    if (!st)
        return GW_IO;
    if (!flows_walk(g, st, &rc)) {
        sqlite3_finalize(st);
        return gw_fail(err, GW_NOMEM, "analysis correlation: out of memory");
    }
    return gw_db_done(st, rc, err);
}

/* ---- statistics --------------------------------------------------------------------------- */

static bool varies(const struct gw_samples *s)
{
    double low, high;

    gsl_stats_minmax(&low, &high, s->v, 1, s->n);
    return low < high;
}

/* Why there is no coefficient; NULL: there is one. */
static const char *undefined(const struct pairs *p)
{
    if (p->x.n < N_MIN)
        return "fewer than 4 iterations";
    if (!varies(&p->y))
        return "iteration time does not vary";
    if (!varies(&p->x))
        return "completion time does not vary";
    return NULL;
}

/* Why there is no interval around the coefficients; NULL: there are two. */
static const char *no_interval(const struct pairs *p, double pearson, double spearman)
{
    if (p->x.n < N_INTERVAL)
        return "fewer than 10 iterations";
    if (fabs(pearson) > PERFECT)
        return "the points lie on a line";
    return fabs(spearman) > PERFECT ? "both are in the same order" : NULL;
}

/* r and its 95 % interval, if it has one; @spread multiplies Fisher's variance. */
static void put_coefficient(struct gw_cell *row, double r, double spread, size_t n)
{
    double half = Z95 * sqrt(spread / ((double)n - 3)), z;

    r = r > 1 ? 1 : r < -1 ? -1 : r;
    z = atanh(r);
    row[0] = gw_cell_real(r);
    if (n < N_INTERVAL || fabs(r) > PERFECT)
        return;
    row[1] = gw_cell_real(tanh(z - half));
    row[2] = gw_cell_real(tanh(z + half));
}

static enum gw_status pairs_row(struct gw_analysis *a, struct gw_table *t, const char *job,
                                const char *what, const struct pairs *p)
{
    const char *why = undefined(p);
    struct gw_cell row[11];
    double *work, r, rho;

    row[0] = gw_cell_text(job);
    row[1] = gw_cell_text(what);
    row[2] = gw_cell_int((int64_t)p->x.n);
    for (int c = 3; c < 9; c++)
        row[c] = gw_cell_null();
    row[9] = gw_cell_text(why);
    row[10] = gw_cell_null();
    if (why)
        return a->host->table_row(t, row);
    work = malloc(2 * p->x.n * sizeof *work);
    if (!work)
        return GW_NOMEM;
    r = gsl_stats_correlation(p->x.v, 1, p->y.v, 1, p->x.n);
    rho = gsl_stats_spearman(p->x.v, 1, p->y.v, 1, p->x.n, work);
    put_coefficient(row + 3, r, 1, p->x.n);
    put_coefficient(row + 6, rho, 1 + rho * rho / 2, p->x.n);
    row[10] = gw_cell_text(no_interval(p, r, rho));
    free(work);
    return a->host->table_row(t, row);
}

/* ---- callbacks ---------------------------------------------------------------------------- */

/* Every job that recorded iterations has its four rows, also with nothing to compare. */
static enum gw_status fill(struct gw_analysis *a, struct gw_table *t, const struct gather *g,
                           struct gw_error *err)
{
    static const char *const what[AGAINST_COUNT] = { "mean FCT", "p99 FCT", "critical flow's FCT",
                                                       "critical chain" };
    static const struct job_pairs none;
    sqlite3_stmt *st = gw_db_query(a->db, "SELECT DISTINCT i.job, ifnull(j.name, i.job) FROM"
                                   " iteration i LEFT JOIN job j USING(job) ORDER BY 1", err);
    enum gw_status code = GW_OK;
    size_t at = 0;

    if (!st)
        return GW_IO;
    while (code == GW_OK && sqlite3_step(st) == SQLITE_ROW) {
        uint32_t job = (uint32_t)sqlite3_column_int64(st, 0);
        const struct job_pairs *j = at < g->jobs && g->job[at].job == job ? &g->job[at++] : &none;

        for (int i = 0; i < AGAINST_COUNT && code == GW_OK; i++)
            code = pairs_row(a, t, (const char *)sqlite3_column_text(st, 1), what[i],
                             &j->against[i]);
    }
    sqlite3_finalize(st);
    return code == GW_OK ? GW_OK : gw_fail(err, code, "analysis correlation: out of memory");
}

static void gather_free(struct gather *g)
{
    for (size_t j = 0; j < g->jobs; j++) {
        for (int i = 0; i < AGAINST_COUNT; i++) {
            free(g->job[j].against[i].x.v);
            free(g->job[j].against[i].y.v);
        }
    }
    free(g->job);
    free(g->chain_s);
    free(g->times.v);
}

static enum gw_status correlation_run(struct gw_analysis *a, struct gw_error *err)
{
    static const char *const columns[] = {
        "job", "against", "n", "pearson", "pearson_low", "pearson_high", "spearman",
        "spearman_low", "spearman_high", "undefined_because", "no_interval_because",
    };
    struct gather g = { 0 };
    struct gw_table *t = a->host->table_new(a, "correlation", "Correlation of iteration time with "
                                            "flow completion time, 95 % confidence", columns,
                                            GW_ARRAY_LEN(columns));
    enum gw_status code;

    if (!t)
        return gw_fail(err, GW_NOMEM, "analysis correlation: out of memory");
    code = gather_read(&g, a, err);
    if (code == GW_OK)
        code = fill(a, t, &g, err);
    gather_free(&g);
    return code;
}

static const struct gw_analysis_ops correlation_ops = {
    .run = correlation_run,
};

GW_PLUGIN(gw_analysis_correlation) = {
    GW_PLUGIN_HEAD(GW_KIND_ANALYSIS, correlation_ops),
    .name    = "correlation",
    .summary = "Pearson and Spearman correlation of iteration time with flow completion times.",
    .flags   = GW_ANALYSIS_PLACE(4),
};
