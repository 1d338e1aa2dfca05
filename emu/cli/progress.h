/*
 * progress.h - where a long run stands, for people who wait
 */
#ifndef GW_CLI_PROGRESS_H
#define GW_CLI_PROGRESS_H

#include "emu/cli/study.h"

#include <signal.h>

struct gw_progress_view {
    FILE  *out;                  /* standard error                                             */
    bool   terminal, quiet;
    bool   line_open;            /* a status line stands without line end                      */
    double next_s;               /* wall time of the next line                                 */
    double sim_s;                /* last seen                                                  */
    const volatile sig_atomic_t *stop;   /* set by a signal: end the run                       */
};

void gw_progress_begin(struct gw_progress_view *v, FILE *out, bool quiet,
                       const volatile sig_atomic_t *stop);
/* A gw_progress_fn; @ctx is the view. */
bool gw_progress_show(void *ctx, const struct gw_progress *p);
/* Takes the status line away. */
void gw_progress_end(struct gw_progress_view *v);

#endif
