/*
 * prog.h - the runtime of programs: operations, dependencies, matching, iterations
 */
#ifndef GW_NET_PROG_H
#define GW_NET_PROG_H

#include "emu/net/net.h"

struct rt;
struct rt_op;
struct rt_rank;

struct rt_job_conf {              /* the keys of a job that the host reads itself               */
    const char *name, *traffic;
    struct gw_value *value;       /* the job map                                                */
    const uint32_t *node;         /* node of each rank, NULL: the plugin sets them              */
    uint32_t ranks, iterations;
    uint64_t start_ps;
    double   jitter;              /* coefficient of variation of compute times (lognormal)      */
    const double *slow;           /* per rank: straggler factor; NULL: 1                        */
    uint32_t slow_count;
    double   overlap_slowdown;    /* compute runs this many times slower while messages move    */
    const char *study_dir;
    struct net_transport *transport;
    const char *where;            /* "file:line:col"                                            */
};

struct rt *rt_new(struct net *n);
void rt_free(struct rt *rt);
void rt_host_functions(struct gw_host *h);
/* Reads the plugin's rows, checks, makes the programs; starts nothing. */
enum gw_status rt_add_job(struct rt *rt, const struct rt_job_conf *c, const char *const *skip,
                          struct gw_error *err);
/* Asks every program for its first operations and arms the start. */
enum gw_status rt_start(struct rt *rt, struct gw_error *err);
/* Jobs by name and number; GW_NONE: there is none of that name. */
uint32_t rt_job_number(const struct rt *rt, const char *name);
const char *rt_job_name(const struct rt *rt, uint32_t job);
const struct net_transport *rt_job_transport(const struct rt *rt, uint32_t job);
bool rt_idle(const struct rt *rt);        /* all programs have ended                            */
double rt_done_share(const struct rt *rt);
void rt_start_records(struct rt *rt, struct gw_sink *s);
/* Who waits for what, one line a rank (at most @max lines), into @buf. */
void rt_wait_graph(const struct rt *rt, char *buf, size_t n, unsigned max);
/* Durations of all finished iterations, for the result; caller frees. */
double *rt_iteration_times(const struct rt *rt, size_t *count);
/* Offered rate of all frame sources on their paths, framing included, bit/s per directed link; of
 * the disciplines there, without framing, in load_bps of net_steps(). */
void rt_frame_load(const struct rt *rt, double *load_bps);

/* A dry run: messages only, alpha-beta times on an ideal network. Calls @msg, if
 * it is not NULL, for each. Ends after @max_events events at the latest. */
struct rt_dry_msg {
    uint32_t job, src_node, dst_node, src_rank, dst_rank, iteration, collective;
    uint64_t bytes;
    const uint32_t *path;         /* directed links                                             */
    uint32_t path_len;
    const struct gw_pkt *pkt;     /* as its packets look                                        */
};
enum gw_status rt_dry_run(struct rt *rt, void (*msg)(void *, const struct rt_dry_msg *), void *ctx,
                          uint64_t max_events, double *time_s, struct gw_error *err);

#endif
