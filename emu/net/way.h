/*
 * way.h - what the disciplines and the channel of a device do on purpose to packets that take it
 */
#ifndef GW_NET_WAY_H
#define GW_NET_WAY_H

#include "emu/net/net.h"

enum { NET_WAY_STEPS = 8 };

/* A discipline, or one of its classes, that says something. Owner: the network. */
struct net_step {
    struct net_step *next;
    const struct gw_qdisc *q;
    uint32_t  classid;           /* 0: no class                                                */
    struct gw_outline o;
    uint64_t  bytes;             /* the user's: traffic that takes it                          */
    double    load_bps;
};

/* From the root down to a leaf. */
struct net_way {
    struct net_way *next;
    struct net_step *step[NET_WAY_STEPS];
    uint32_t  steps;
    uint64_t  rate_bps;          /* the least of the link and of all steps; 0: no limit        */
    uint64_t  flow_rate_bps;     /* the least of a single flow; 0: no limit                    */
    double    delay_s;           /* of steps and channel; the link's own is not in it          */
    double    loss;              /* of steps and channel                                       */
};

/* The way that a packet like @p takes at port @id, full frames assumed; NULL: out of memory. */
struct net_way *net_way(struct net *n, uint32_t id, const struct gw_pkt *p);
/* All ways that were asked for at port @id, and their steps. */
struct net_way *net_ways(const struct net *n, uint32_t id);
struct net_step *net_steps(const struct net *n, uint32_t id);
void net_ways_free(struct net *n);

struct net_dry_path {
    double   delay_s, pass;      /* pass: share of full frames that come through               */
    uint64_t rate_bps;           /* 0: no limit                                                */
};
/* The path @link for packets like @p of so many flows, if nobody else is there. */
struct net_dry_path net_dry_path(struct net *n, const uint32_t *link, uint32_t count,
                                 const struct gw_pkt *p, uint32_t flows);

#endif
