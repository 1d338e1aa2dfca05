/*
 * rehearse.h - the timed tc lines of a study, tried before the run
 */
#ifndef GW_CLI_REHEARSE_H
#define GW_CLI_REHEARSE_H

#include "emu/net/net.h"

struct rehearse_line {
    uint64_t    at_ps;
    const char *tc, *where;      /* where: "file:line:col"                                     */
};

struct rehearse {
    struct net *net;             /* its trees are those that the run begins with               */
    struct gw_value *qdisc, *tc; /* lists of the study; NULL: it has none                      */
    const char *const *skip;     /* keys of a qdisc map that are no options                    */
    const struct rehearse_line *line;
    size_t count;                /* lines, in the order in which they will run                 */
    void (*problem)(void *ctx, const char *sentence);
    void (*warning)(void *ctx, const char *sentence);
    void *ctx;
};

/*
 * rehearse_events() - runs all lines on devices of their own, on which no packet flows
 *
 * A line that tc or the kernel would refuse is a problem, with its place, time and sentence; what a
 * line changes other than its words promise is a warning, said once. GW_NOMEM is the only failure.
 */
enum gw_status rehearse_events(const struct rehearse *r, struct gw_error *err);

#endif
