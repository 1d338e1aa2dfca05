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
    const char *job = text_cell(r, "correlation", 0, "job"), *name, *why;
    bool        any = false;

    if (!job)
        return;
    fputs("correlation     of iteration time with ", f);
    for (size_t i = 0; (name = text_cell(r, "correlation", i, "job")) && !strcmp(name, job); i++) {
        double pearson = real_cell(r, "correlation", i, "pearson");

        if (!isfinite(pearson))
            continue;
        fprintf(f, "%s%s %.2f (%.2f to %.2f)", any ? ", " : "",
                text_cell(r, "correlation", i, "against"), pearson,
                real_cell(r, "correlation", i, "pearson_low"),
                real_cell(r, "correlation", i, "pearson_high"));
        any = true;
    }
    why = text_cell(r, "correlation", 0, "undefined_because");
    if (!any)
        fprintf(f, "FCT undefined: %s", why ? why : "no value");
    fputc('\n', f);
}

void gw_report_short(const struct gw_report *r, FILE *f)
{
    const char *link  = text_cell(r, "critical_links", 0, "link");
    double      times = real_cell(r, "critical_links", 0, "iterations");
    double      share = real_cell(r, "critical_links", 0, "iterations_share");

    if (link && isfinite(times))
        fprintf(f, "critical link   %s: narrowest link of the critical flow in %.0f iteration%s, "
                "%.0f %%\n", link, times, times < 1.5 && times > 0.5 ? "" : "s", 100 * share);
    short_correlation(r, f);
}

void gw_report_free(struct gw_report *r)
{
    if (r->tables)
        gw_tables_free(r->tables);
    r->tables = NULL;
}
