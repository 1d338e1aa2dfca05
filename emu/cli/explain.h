/*
 * explain.h - what a study will do before it runs
 */
#ifndef GW_CLI_EXPLAIN_H
#define GW_CLI_EXPLAIN_H

#include "emu/net/prog.h"

struct explain_conf {
    const char *name;            /* of the study                                               */
    struct net *net;
    struct rt  *rt;
    uint32_t    streams;         /* of the study's transport                                   */
    bool        loss_based;      /* its window follows losses                                  */
    uint32_t    jobs;
    uint32_t    events;          /* timed changes                                              */
    uint64_t    first_event_ps;
};

/* Text about steps, bytes, the bounding link or shaper, bounds and effective figures; dry run. */
enum gw_status explain_study(const struct explain_conf *c, FILE *out, struct gw_error *err);
/* What will hardly be meant, a sentence each: test frames that come faster than a device lets them
 * through, devices that lose everything. By the beginning of a dry run, after which nothing runs. */
enum gw_status explain_doubts(const struct explain_conf *c,
                              void (*say)(void *ctx, const char *sentence), void *ctx,
                              struct gw_error *err);

#endif
