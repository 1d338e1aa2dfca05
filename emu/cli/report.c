/*
 * report - opens a run's record and lets every analysis speak
 */
#include "emu/cli/report.h"

#include "emu/core/analyze.h"
#include "emu/core/record.h"

#include <errno.h>
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

void gw_report_free(struct gw_report *r)
{
    if (r->tables)
        gw_tables_free(r->tables);
    r->tables = NULL;
}
