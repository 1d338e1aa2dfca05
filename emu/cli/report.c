/*
 * report - opens a run's record and lets every analysis speak
 */
#include "emu/cli/report.h"

#include "emu/core/analyze.h"
#include "emu/core/record.h"

#include <errno.h>
#include <math.h>
#include <sqlite3.h>

enum gw_status gw_report_read(struct gw_report *r, struct gw_registry *registry, const char *dir,
                              struct gw_error *err)
{
    struct sqlite3 *db = gw_record_open(dir, &r->complete, err);
    enum gw_status  st;

    r->tables = NULL;
    if (!db)
        return err->code;
    r->tables = gw_tables_new();
    st = r->tables ? gw_analyze(registry, db, r->complete, r->tables, err)
                   : gw_fail(err, GW_NOMEM, "out of memory");
    sqlite3_close(db);
    if (st != GW_OK)
        gw_report_free(r);
    return st;
}

enum gw_status gw_report_text(const struct gw_report *r, FILE *f, struct gw_error *err)
{
    if (gw_tables_text(r->tables, f) == GW_OK)
        return GW_OK;
    return gw_fail(err, GW_IO, "standard output: %s; what was printed is not whole",
                   strerror(errno));
}

static double real_cell(const struct gw_report *r, const char *table, size_t row,
                        const char *column)
{
    const struct gw_cell *c = gw_tables_cell(r->tables, table, row, column);

    if (!c || (c->kind != GW_CELL_REAL && c->kind != GW_CELL_INT))
        return NAN;
    return c->kind == GW_CELL_REAL ? c->r : (double)c->i;
}

static const char *text_cell(const struct gw_report *r, const char *table, size_t row,
                             const char *column)
{
    const struct gw_cell *c = gw_tables_cell(r->tables, table, row, column);

    return c && c->kind == GW_CELL_TEXT ? c->t : NULL;
}

/* "mean FCT 0.93 (0.85 to 0.97)" for each row of the first job that has a coefficient. */
static void short_correlation(const struct gw_report *r, FILE *f)
{
    const char *job = text_cell(r, "correlation", 0, "job"), *name, *why = NULL;
    bool        any = false;

    if (!job)
        return;
    fputs("correlation     of iteration time with ", f);
    for (size_t i = 0; (name = text_cell(r, "correlation", i, "job")) && !strcmp(name, job); i++) {
        double low, pearson = real_cell(r, "correlation", i, "pearson");

        if (!isfinite(pearson))
            continue;
        low = real_cell(r, "correlation", i, "pearson_low");
        fprintf(f, "%s%s %.2f", any ? ", " : "", text_cell(r, "correlation", i, "against"),
                pearson);
        if (isfinite(low) && fabs(pearson) < 0.995)      /* else it reads 1.00 (1.00 to 1.00) */
            fprintf(f, " (%.2f to %.2f)", low, real_cell(r, "correlation", i, "pearson_high"));
        else if (!isfinite(low) && !why)
            why = text_cell(r, "correlation", i, "no_interval_because");
        any = true;
    }
    if (any && why)
        fprintf(f, "; no interval: %s", why);
    why = text_cell(r, "correlation", 0, "undefined_because");
    if (!any)
        fprintf(f, "FCT undefined: %s", why ? why : "no value");
    fputc('\n', f);
}

/* Seconds with a unit that fits, four digits. */
static const char *seconds(double s, char buf[32])
{
    static const struct { double least, scale; const char *unit; } row[] = {
        { 1, 1, "s" }, { 1e-3, 1e3, "ms" }, { 1e-6, 1e6, "us" }, { 0, 1e9, "ns" },
    };
    size_t i = 0;

    while (s < row[i].least)
        i++;
    if (isfinite(s))
        snprintf(buf, 32, "%.4g %s", s * row[i].scale, row[i].unit);
    else
        snprintf(buf, 32, "-");
    return buf;
}

/* "mean 14 s, p50 13.9 s, p99 16 s of 20 iterations", for each job. */
static void short_iterations(const struct gw_report *r, FILE *f)
{
    bool many = text_cell(r, "iteration", 1, "job") != NULL;
    char a[32], b[32], c[32];

    for (size_t i = 0; gw_tables_cell(r->tables, "iteration", i, "iterations"); i++) {
        double n = real_cell(r, "iteration", i, "iterations");
        double left = real_cell(r, "iteration", i, "unfinished");
        const char *job = text_cell(r, "iteration", i, "job");

        fputs("iteration time  ", f);
        if (many && job)
            fprintf(f, "%s: ", job);
        if (n > 0)
            fprintf(f, "mean %s, p50 %s, p99 %s of %.0f iteration%s",
                    seconds(real_cell(r, "iteration", i, "mean_s"), a),
                    seconds(real_cell(r, "iteration", i, "p50_s"), b),
                    seconds(real_cell(r, "iteration", i, "p99_s"), c), n, n > 1 ? "s" : "");
        if (left > 0)
            fprintf(f, "%s%.0f unfinished", n > 0 ? ", " : "", left);
        fputc('\n', f);
    }
}

/* The link on which the chains spent most time. */
static void short_link(const struct gw_report *r, FILE *f)
{
    const char *link  = text_cell(r, "critical_links", 0, "link");
    double      share = real_cell(r, "critical_links", 0, "time_share");
    double      times = real_cell(r, "critical_links", 0, "iterations");
    char        a[32];

    if (!link || !isfinite(share))
        return;
    fprintf(f, "critical link   %s: messages of critical chains spent %s on it, %.0f %% of the "
            "iteration time; it held the critical flow of %.0f iteration%s\n", link,
            seconds(real_cell(r, "critical_links", 0, "chain_transfer_s"), a), 100 * share, times,
            times < 1.5 && times > 0.5 ? "" : "s");
}

void gw_report_short(const struct gw_report *r, FILE *f)
{
    short_iterations(r, f);
    short_link(r, f);
    short_correlation(r, f);
}

void gw_report_free(struct gw_report *r)
{
    if (r->tables)
        gw_tables_free(r->tables);
    r->tables = NULL;
}
