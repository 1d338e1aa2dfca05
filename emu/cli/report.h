/*
 * report.h - what the analyses say about a run's directory
 */
#ifndef GW_CLI_REPORT_H
#define GW_CLI_REPORT_H

#include "emu/core/registry.h"
#include "emu/core/table.h"

struct gw_report {
    struct gw_tables *tables;
    bool complete;               /* false: the run was cut off                                 */
};

/* Runs every registered analysis, with default options, over the record in @dir. */
enum gw_status gw_report_read(struct gw_report *r, struct gw_registry *registry, const char *dir,
                              struct gw_error *err);
/* The tables as text for people. */
enum gw_status gw_report_text(const struct gw_report *r, FILE *f, struct gw_error *err);
/* Each job's iteration time, the critical link, the correlations of the first job, a line each;
 * nothing if the tables do not hold them. */
void gw_report_short(const struct gw_report *r, FILE *f);
void gw_report_free(struct gw_report *r);

#endif
