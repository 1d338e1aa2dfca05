/*
 * outdir.h - the directory that a run writes into
 */
#ifndef GW_CLI_OUTDIR_H
#define GW_CLI_OUTDIR_H

#include <gradwire/base.h>
#include <limits.h>

struct gw_outdir {
    char path[PATH_MAX];
    bool made;                   /* by us: may be taken away again while it is empty           */
};

/*
 * gw_outdir_open() - an empty directory that can be written
 *
 * @given NULL: a new one in the working directory, named after @study: NAME-1, NAME-2 ... the first
 * that is free. Else @given, which must not exist or be empty; with @force it may also be an
 * earlier run's output (it holds records.sqlite), of which only gradwire's own files are removed.
 */
enum gw_status gw_outdir_open(struct gw_outdir *d, const char *given, const char *study,
                              bool force, struct gw_error *err);
/* Removes the directory if we made it and nothing stands in it. */
void gw_outdir_abandon(const struct gw_outdir *d);

#endif
