/*
 * stat.h - tests of random models at the 0.001 level: z, chi square, runs of hidden Markov chains
 *
 * A row of a table fails once in a thousand seeds; seeds are fixed, so a failure is a change.
 */
#ifndef GW_TESTS_STAT_H
#define GW_TESTS_STAT_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#define STAT_Z 3.291                           /* two-sided                                    */

enum { STAT_BATCH = 5000, STAT_RUNS = 64, STAT_STATES = 4 };

/* What chi square with @degrees does not exceed (Wilson and Hilferty 1931; within 0.3 % from 3 on,
 * and never less than the true value's 0.998). */
static inline double stat_chi_bound(uint32_t degrees)
{
    double a = 2.0 / 9 / degrees, x = 1 - a + 3.0902 * sqrt(a);

    return degrees == 1 ? 10.83 : degrees == 2 ? 13.82 : degrees * x * x * x;
}

/* Chi square of @n counts that should be equal; n - 1 degrees. */
static inline double stat_chi_equal(const uint64_t *count, uint32_t n)
{
    double sum = 0, chi = 0;

    for (uint32_t i = 0; i < n; i++)
        sum += (double)count[i];
    for (uint32_t i = 0; i < n; i++)
        chi += ((double)count[i] - sum / n) * ((double)count[i] - sum / n) * n / sum;
    return chi;
}

/* ---- means of values that may be correlated ----------------------------------------------- */

/* Batches are longer than any memory of the models, so their means are independent. */
struct stat_mean {
    double   sum, batch, batches, batch_sum, batch_square;
    uint64_t n;
};

static inline void stat_add(struct stat_mean *m, double x)
{
    m->sum += x;
    m->batch += x;
    if (++m->n % STAT_BATCH)
        return;
    m->batches++;
    m->batch_sum += m->batch / STAT_BATCH;
    m->batch_square += m->batch / STAT_BATCH * m->batch / STAT_BATCH;
    m->batch = 0;
}

/* z against @want; @var is the least variance of a value (independent ones have it). */
static inline double stat_z(const struct stat_mean *m, double want, double var)
{
    double mean = m->batch_sum / m->batches;
    double seen = (m->batch_square / m->batches - mean * mean) / (m->batches - 1);
    double least = var / m->batches / STAT_BATCH;

    if (fabs(mean - want) < 1e-12)
        return 0;
    return (mean - want) / sqrt(fmax(fmax(seen, least), 1e-30));
}

/* ---- runs --------------------------------------------------------------------------------- */

struct stat_runs {
    uint64_t length[STAT_RUNS];                /* runs of 1, 2, ... events; the last: and more */
    uint64_t runs, events, now;
    double   square;                           /* of their lengths, summed                     */
};

static inline void stat_run(struct stat_runs *r, int event)
{
    if (event) {
        r->events++;
        r->now++;
    } else if (r->now) {
        r->runs++;
        r->square += (double)r->now * (double)r->now;
        r->length[r->now < STAT_RUNS ? r->now - 1 : STAT_RUNS - 1]++;
        r->now = 0;
    }
}

/* z of the mean length against @want; *mean gets it. */
static inline double stat_run_z(const struct stat_runs *r, double want, double *mean)
{
    double n = (double)r->runs, var;

    *mean = (double)(r->events - r->now) / n;
    var = r->square / n - *mean * *mean;
    return fabs(*mean - want) < 1e-12 ? 0 : (*mean - want) / sqrt(fmax(var, 1e-12) / n);
}

/* Chi square against the shares @p of lengths 1, 2, ...; cells of less than 5 runs go together. */
static inline double stat_runs_chi(const struct stat_runs *r, const double p[STAT_RUNS],
                                   uint32_t *degrees)
{
    double left = (double)r->runs, seen = (double)r->runs, chi = 0;

    *degrees = 0;
    for (uint32_t k = 0; k < STAT_RUNS - 1; k++) {
        double want = p[k] * (double)r->runs, got = (double)r->length[k];

        if (want < 5 || left - want < 5)
            break;
        chi += (got - want) * (got - want) / want;
        left -= want;
        seen -= got;
        ++*degrees;
    }
    return *degrees ? chi + (seen - left) * (seen - left) / left : 0;
}

/* Chi square of two samples of runs; cells of less than 10 go together. */
static inline double stat_runs_same(const struct stat_runs *a, const struct stat_runs *b,
                                    uint32_t *degrees)
{
    double na = (double)a->runs, nb = (double)b->runs, la = na, lb = nb, chi = 0;

    *degrees = 0;
    for (uint32_t k = 0; k < STAT_RUNS && la + lb > 0; k++) {
        double x = (double)a->length[k], y = (double)b->length[k], d;

        if (x + y < 10 || la + lb - x - y < 10) {
            x = la;
            y = lb;
        } else {
            ++*degrees;
        }
        d = x * sqrt(nb / na) - y * sqrt(na / nb);
        chi += d * d / (x + y);
        la -= x;
        lb -= y;
    }
    return chi;
}

/* A hidden Markov chain: from state i to j with move[i][j], losing a packet with lose[i][j]. */
struct stat_chain {
    uint32_t states;
    double   move[STAT_STATES][STAT_STATES], lose[STAT_STATES][STAT_STATES];
};

/* One step from @x to @y: the weight of what is lost (@lost) or passed. */
static inline void stat_step(const struct stat_chain *c, const double *x, double *y, int lost)
{
    memset(y, 0, STAT_STATES * sizeof *y);
    for (uint32_t i = 0; i < c->states; i++)
        for (uint32_t j = 0; j < c->states; j++) {
            double l = c->lose[i][j];

            y[j] += x[i] * c->move[i][j] * (lost ? l : 1 - l);
        }
}

static inline double stat_weight(const double *x)
{
    double sum = 0;

    for (uint32_t i = 0; i < STAT_STATES; i++)
        sum += x[i];
    return sum;
}

/* Long-run share of losses; shares of runs of 1, 2, ... to @p (may be NULL), their mean to @mean. */
static inline double stat_chain_runs(const struct stat_chain *c, double p[STAT_RUNS], double *mean)
{
    double x[STAT_STATES] = { 1 }, y[STAT_STATES], z[STAT_STATES], share, starts, left;

    for (uint32_t n = 0; n < 100000; n++) {
        stat_step(c, x, y, 0);
        stat_step(c, x, z, 1);
        for (uint32_t i = 0; i < STAT_STATES; i++)
            x[i] = y[i] + z[i];
    }
    share = stat_weight(z);
    stat_step(c, y, z, 1);                     /* passed, then lost: a run begins              */
    starts = stat_weight(z);
    if (mean)
        *mean = share / starts;
    left = 1;
    for (uint32_t k = 0; p && k < STAT_RUNS; k++) {
        memcpy(x, z, sizeof x);
        stat_step(c, x, y, 0);
        stat_step(c, x, z, 1);
        p[k] = k < STAT_RUNS - 1 ? stat_weight(y) / starts : left;
        left -= p[k];
    }
    return share;
}

#endif
