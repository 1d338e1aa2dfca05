/*
 * analyze.h - runs every registered analysis over one record
 */
#ifndef GW_CORE_ANALYZE_H
#define GW_CORE_ANALYZE_H

#include "emu/core/registry.h"
#include "emu/core/table.h"

struct sqlite3;

/*
 * gw_analyze() - all analyses of @r over the record @db, their tables into @out
 *
 * Order: by the place that a descriptor gives (GW_ANALYSIS_PLACE), then by name; those without a
 * place come last. @complete: what gw_record_open() said. Every analysis is run with the defaults
 * of its option rows. The first failure ends it; tables made so far stay in @out.
 */
GW_API enum gw_status gw_analyze(struct gw_registry *r, struct sqlite3 *db, bool complete,
                                 struct gw_tables *out, struct gw_error *err);

#endif
