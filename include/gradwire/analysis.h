/*
 * analysis.h - the contract of analyses: read records, say something
 *
 * An analysis sees records only (an SQLite file with the schema of emu/core/schema.md), so it works
 * the same on a simulated run, a replay, and on captures that someone else made. It answers with
 * named tables; the caller prints them as text, JSON or CSV. Column names carry units.
 */
#ifndef GRADWIRE_ANALYSIS_H
#define GRADWIRE_ANALYSIS_H

#include <gradwire/param.h>

struct sqlite3;

enum gw_cell_kind { GW_CELL_NULL, GW_CELL_INT, GW_CELL_REAL, GW_CELL_TEXT };

struct gw_cell {
    enum gw_cell_kind kind;
    int64_t     i;
    double      r;
    const char *t;               /* copied by the table                                        */
};

struct gw_table;                 /* host-owned */

struct gw_analysis {
    const struct gw_host *host;
    struct sqlite3 *db;          /* opened read-only                                           */
    const void     *conf;
    bool            complete;    /* false: the run was cut off                                 */
    void           *out;         /* opaque                                                     */
};

struct gw_analysis_ops {
    size_t conf_bytes;
    enum gw_status (*run)(struct gw_analysis *a, struct gw_error *err);
    void (*spare[8])(void);
};

static inline struct gw_cell gw_cell_null(void)
{
    struct gw_cell c = { GW_CELL_NULL, 0, 0, NULL };

    return c;
}

static inline struct gw_cell gw_cell_int(int64_t v)
{
    struct gw_cell c = { GW_CELL_INT, v, 0, NULL };

    return c;
}

/* A number that is not finite is printed as one that is not there. */
static inline struct gw_cell gw_cell_real(double v)
{
    struct gw_cell c = { GW_CELL_REAL, 0, v, NULL };

    return c;
}

/* NULL is a cell without a value. */
static inline struct gw_cell gw_cell_text(const char *v)
{
    struct gw_cell c = { v ? GW_CELL_TEXT : GW_CELL_NULL, 0, 0, v };

    return c;
}

/* In a descriptor's flags: its tables' place in the report, 1 first; without one they come last. */
#define GW_ANALYSIS_PLACE(n)        ((uint32_t)(n) & 0xffu)
#define GW_ANALYSIS_PLACE_OF(flags) ((flags) & 0xffu)

#endif
