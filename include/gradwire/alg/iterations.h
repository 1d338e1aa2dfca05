/*
 * iterations.h - iteration times out of a record, and the samples and quantiles that go with them
 *
 * Shared by the analyses and the expectations, so that both mean the same.
 *
 * The time of iteration i of a job is E(i) - E(i-1), E(i) being the latest end of iteration i over
 * the job's ranks and E(-1) the earliest start of the first one: the pace at which the whole job
 * moves on, waiting and overlap included, so that the times of a job add up to its length. An
 * iteration counts only if all of the job's ranks have ended it (a run that was cut off leaves
 * others behind); where the record does not know the job, if as many ranks have as ended the first
 * one. Should iteration i-1 be missing, the earliest start of i takes the place of E(i-1).
 *
 * Quantiles are linear between order statistics: of n sorted samples, quantile f lies at position
 * (n - 1) f counted from 0 (Hyndman and Fan's definition 7, GSL's, R's default).
 */
#ifndef GRADWIRE_ALG_ITERATIONS_H
#define GRADWIRE_ALG_ITERATIONS_H

#include <gradwire/base.h>
#include <gsl/gsl_sort.h>
#include <gsl/gsl_statistics_double.h>
#include <math.h>
#include <sqlite3.h>
#include <stdlib.h>

/* ---- samples ------------------------------------------------------------------------------ */

struct gw_samples {              /* zeroed: empty; free v                                      */
    double *v;
    size_t  n, room;
};

static inline bool gw_samples_add(struct gw_samples *s, double v)
{
    if (s->n == s->room) {
        size_t room = s->room ? 2 * s->room : 64;
        double *more = (double *)realloc(s->v, room * sizeof *more);

        if (!more)
            return false;
        s->v = more;
        s->room = room;
    }
    s->v[s->n++] = v;
    return true;
}

static inline void gw_samples_sort(struct gw_samples *s)
{
    if (s->n)
        gsl_sort(s->v, 1, s->n);
}

/* Of sorted samples; NAN if there are none. */
static inline double gw_samples_quantile(const struct gw_samples *s, double f)
{
    return s->n ? gsl_stats_quantile_from_sorted_data(s->v, 1, s->n, f) : (double)NAN;
}

static inline double gw_samples_mean(const struct gw_samples *s)
{
    return s->n ? gsl_stats_mean(s->v, 1, s->n) : (double)NAN;
}

/* ---- reading ------------------------------------------------------------------------------ */

/* The sentence for what SQLite last said about @db. */
static inline enum gw_status gw_db_fail(struct sqlite3 *db, struct gw_error *err)
{
    const char *file = sqlite3_db_filename(db, "main");

    return gw_fail(err, GW_IO, "%s: cannot be read: %s", file && *file ? file : "record",
                   sqlite3_errmsg(db));
}

/* Compiles @sql; NULL: failed, with the sentence. */
static inline sqlite3_stmt *gw_db_query(struct sqlite3 *db, const char *sql, struct gw_error *err)
{
    sqlite3_stmt *st = NULL;

    if (sqlite3_prepare_v2(db, sql, -1, &st, NULL) != SQLITE_OK)
        gw_db_fail(db, err);
    return st;
}

/* Ends a loop over sqlite3_step(), whose last answer was @rc. */
static inline enum gw_status gw_db_done(sqlite3_stmt *st, int rc, struct gw_error *err)
{
    struct sqlite3 *db = sqlite3_db_handle(st);
    enum gw_status code = rc == SQLITE_DONE || rc == SQLITE_ROW ? GW_OK : gw_db_fail(db, err);

    sqlite3_finalize(st);
    return code;
}

/*
 * The length of the run in ps, as an SQL expression; NULL if nothing is known. What the run itself
 * says (run.sim_s), else the latest time that stands in any row: records of runs that were cut off
 * have no more.
 */
#define GW_SQL_DURATION_PS                                                              \
    "ifnull((SELECT CAST(round(value * 1e12) AS INTEGER) FROM run WHERE key = 'sim_s')," \
    " (SELECT max(t) FROM (SELECT max(end_ps) AS t FROM flow UNION ALL"                 \
    " SELECT max(end_ps) FROM message UNION ALL SELECT max(end_ps) FROM iteration"      \
    " UNION ALL SELECT max(at_ps) FROM link_sample)))"

static inline double gw_ps_to_s(int64_t ps)
{
    return (double)ps / 1e12;
}

/* Times of a record that somebody has changed may be anything: they stop at the ends. */
static inline int64_t gw_ps_add(int64_t a, int64_t b)
{
    int64_t sum;

    return __builtin_add_overflow(a, b, &sum) ? (b < 0 ? INT64_MIN : INT64_MAX) : sum;
}

static inline int64_t gw_ps_sub(int64_t a, int64_t b)
{
    int64_t rest;

    return __builtin_sub_overflow(a, b, &rest) ? (b < 0 ? INT64_MAX : INT64_MIN) : rest;
}

/* ---- iterations --------------------------------------------------------------------------- */

struct gw_iteration_time {
    uint32_t job, iteration;
    uint32_t ranks;              /* that ended it                                              */
    uint32_t unended;            /* ranks with a row but no end                                */
    uint32_t job_ranks;          /* of the job; 0: not recorded                                */
    bool     whole;              /* all of the job's ranks have ended it                       */
    int64_t  start_ps, end_ps;   /* earliest start, latest end                                 */
    int64_t  time_ps;            /* E(i) - E(i-1); only if whole                               */
    int64_t  rank_ps;            /* sum over ranks of end - start                              */
    int64_t  compute_ps, exposed_ps, wait_ps; /* sums over ranks                               */
    uint32_t last_rank;          /* the rank that ended last; the lowest of equals             */
    uint64_t last_message;       /* what its end waited for last, 0: none                      */
};

struct gw_iteration_times {      /* by job, then iteration; zeroed: empty; free v              */
    struct gw_iteration_time *v;
    size_t n, room;
};

/* The entry of (@job, @iteration), which is the last one or new; NULL: out of memory. */
static inline struct gw_iteration_time *
gw_iteration_times_at(struct gw_iteration_times *t, uint32_t job, uint32_t iteration)
{
    struct gw_iteration_time *x = t->n ? &t->v[t->n - 1] : NULL;

    if (x && x->job == job && x->iteration == iteration)
        return x;
    if (t->n == t->room) {
        size_t room = t->room ? 2 * t->room : 64;
        struct gw_iteration_time *more =
            (struct gw_iteration_time *)realloc(t->v, room * sizeof *more);

        if (!more)
            return NULL;
        t->v = more;
        t->room = room;
    }
    x = &t->v[t->n++];
    memset(x, 0, sizeof *x);
    x->job = job;
    x->iteration = iteration;
    x->start_ps = INT64_MAX;
    return x;
}

/* Adds one rank's row: job, iteration, rank, start, end, compute, exposed, wait, last message,
 * ranks of the job. */
static inline void gw_iteration_time_row(struct gw_iteration_time *x, sqlite3_stmt *st)
{
    int64_t start = sqlite3_column_int64(st, 3), end = sqlite3_column_int64(st, 4);

    x->start_ps = start < x->start_ps ? start : x->start_ps;
    x->job_ranks = (uint32_t)sqlite3_column_int64(st, 9);
    if (sqlite3_column_type(st, 4) == SQLITE_NULL) {
        x->unended++;
        return;
    }
    if (!x->ranks++ || end > x->end_ps) {
        x->end_ps = end;
        x->last_rank = (uint32_t)sqlite3_column_int64(st, 2);
        x->last_message = (uint64_t)sqlite3_column_int64(st, 8);
    }
    x->rank_ps = gw_ps_add(x->rank_ps, gw_ps_sub(end, start));
    x->compute_ps = gw_ps_add(x->compute_ps, sqlite3_column_int64(st, 5));
    x->exposed_ps = gw_ps_add(x->exposed_ps, sqlite3_column_int64(st, 6));
    x->wait_ps = gw_ps_add(x->wait_ps, sqlite3_column_int64(st, 7));
}

/* Fills whole and time_ps once all rows are in. */
static inline void gw_iteration_times_close(struct gw_iteration_times *t)
{
    uint32_t ranks = 0;

    for (size_t i = 0; i < t->n; i++) {
        struct gw_iteration_time *x = &t->v[i];
        const struct gw_iteration_time *before = i && x[-1].job == x->job ? x - 1 : NULL;

        if (!before)
            ranks = x->job_ranks ? x->job_ranks : x->ranks;
        x->whole = x->ranks && !x->unended && x->ranks >= ranks;
        x->time_ps = gw_ps_sub(x->end_ps, before && before->whole &&
                               before->iteration + 1 == x->iteration ? before->end_ps
                               : x->start_ps);
    }
}

static inline enum gw_status gw_iteration_times_read(struct sqlite3 *db,
                                                     struct gw_iteration_times *t,
                                                     struct gw_error *err)
{
    sqlite3_stmt *st = gw_db_query(db, "SELECT i.job, i.iteration, i.rank, i.start_ps, i.end_ps,"
                                   " i.compute_ps, i.exposed_ps, i.wait_ps, i.last_message, j.ranks"
                                   " FROM iteration i LEFT JOIN job j USING(job)"
                                   " ORDER BY i.job, i.iteration, i.rank", err);
    struct gw_iteration_time *x;
    int rc;

    if (!st)
        return GW_IO;
    while ((rc = sqlite3_step(st)) == SQLITE_ROW) {
        x = gw_iteration_times_at(t, (uint32_t)sqlite3_column_int64(st, 0),
                                  (uint32_t)sqlite3_column_int64(st, 1));
        if (!x) {
            sqlite3_finalize(st);
            return gw_fail(err, GW_NOMEM, "out of memory for iteration times");
        }
        gw_iteration_time_row(x, st);
    }
    gw_iteration_times_close(t);
    return gw_db_done(st, rc, err);
}

#endif
