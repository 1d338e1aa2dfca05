/*
 * outdir.h - the directory that a run writes into
 */
#ifndef GW_CLI_OUTDIR_H
#define GW_CLI_OUTDIR_H

#include <gradwire/base.h>
#include <limits.h>

struct gw_outdir {
    char   path[PATH_MAX];
    bool   made;                 /* by us: may be taken away again                              */
    char   previous[PATH_MAX];   /* where the replaced output waits; empty: nowhere            */
    char **other;                /* names that stood beside it                                 */
    size_t others;
};

/*
 * gw_outdir_open() - an empty directory that can be written
 *
 * @given NULL: a new one in the working directory, named after @study: NAME-1, NAME-2 ... the first
 * that is free. Else @given, which must not exist or be empty (what a run left that could not begin
 * does not count); with @force it may also be an earlier run's output, which is put aside. Refused
 * if that would take away @study_path, the study to run. Each open that succeeds needs one keep or
 * abandon.
 */
enum gw_status gw_outdir_open(struct gw_outdir *d, const char *given, const char *study,
                              const char *study_path, bool force, struct gw_error *err);
/* The run has written its output: the replaced one goes for good. */
void gw_outdir_keep(struct gw_outdir *d);
/* The run has failed: the replaced output comes back. @refused: the study could not be run, and what
 * was written for it goes, with the directory if it is ours; else only an empty one does. */
void gw_outdir_abandon(struct gw_outdir *d, bool refused);

#endif
