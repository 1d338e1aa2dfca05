/*
 * table.h - named result tables: what analyses answer, printed as text, JSON or CSV
 */
#ifndef GW_CORE_TABLE_H
#define GW_CORE_TABLE_H

#include <gradwire/gradwire.h>

struct gw_tables;

GW_API struct gw_tables *gw_tables_new(void);
GW_API void gw_tables_free(struct gw_tables *t);
GW_API void gw_table_host(struct gw_host *h);       /* fills table_new, table_row, table_note   */
/* For people: tables without rows are left out. */
GW_API enum gw_status gw_tables_text(const struct gw_tables *t, FILE *f);
GW_API enum gw_status gw_tables_json(const struct gw_tables *t, FILE *f);
/* One NAME.csv a table into the existing or new directory @dir; nothing is written over. */
GW_API enum gw_status gw_tables_csv(const struct gw_tables *t, const char *dir, bool force,
                                    struct gw_error *err);

/* Four digits and the unit that fits, as in tables: "1.25 MB", "94.3 Mbit/s". Return @buf. */
GW_API const char *gw_text_bytes(double bytes, char *buf, size_t n);
GW_API const char *gw_text_rate(double bps, char *buf, size_t n);

/* The cell of column @column in row @row of table @table, for expectations; NULL if none. */
GW_API const struct gw_cell *gw_tables_cell(const struct gw_tables *t, const char *table,
                                            size_t row, const char *column);
#endif
