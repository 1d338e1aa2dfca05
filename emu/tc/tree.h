/*
 * tree.h - the tree of queue disciplines at one device, and its books
 *
 * A tree is what the port calls and what tc changes. It knows packets and disciplines, never the
 * network: drops, kicks and header fields go through the callbacks of struct gw_tree_conf. A tree
 * without a network (net NULL) is a scratch device: tc lines work, no packet flows.
 */
#ifndef GW_TC_TREE_H
#define GW_TC_TREE_H

#include "emu/core/registry.h"

struct gw_filter;                 /* filter.h */

/* Header fields that filters match; all as they would stand in the real packet, host order. */
struct gw_pkt_fields {
    uint32_t src_ip, dst_ip;
    uint16_t src_port, dst_port;
    uint16_t ip_bytes;            /* total length                                              */
    uint8_t  ip_proto, tos;       /* tos: DSCP and ECN                                         */
};

struct gw_tree_conf {
    struct gw_registry *registry;
    const char *dev;              /* name of the device                                        */
    void     *net;                /* first argument of packet and timer calls; NULL: scratch   */
    uint32_t  comp;               /* component for timers                                      */
    uint64_t  rate_bps;           /* of the link; 0: none                                      */
    uint32_t  mtu_bytes;          /* largest frame without FCS (1514)                          */
    uint32_t  txqueuelen;
    uint64_t  auto_limit_bytes;
    uint64_t  seed;
    const char *data_dir;         /* user tables are looked up here                            */
    void     *ctx;                /* of the callbacks below; each may be NULL                  */
    void (*drop)(void *ctx, struct gw_pkt *p, enum gw_drop_reason why);
    void (*kick)(void *ctx, uint64_t now_ps);
    void (*fields)(void *ctx, const struct gw_pkt *p, struct gw_pkt_fields *f);
};

/* A size table (`stab`): lengths that the tree sees. linklayer atm: 53 bytes for 48. */
struct gw_stab {
    bool     set, atm, ethernet;  /* ethernet: said so, for show                               */
    int32_t  overhead;
    uint32_t mpu, mtu, tsize;
};

struct gw_tree {
    struct gw_tree_conf conf;
    struct gw_host  *host;
    struct gw_qdisc *root;        /* NULL: noqueue                                             */
    struct gw_qdisc *all, *newest;    /* by sibling, newest last                               */
    struct gw_qdisc **slot;       /* hash of handles, chained by same_slot; NULL: empty         */
    uint32_t slots, hashed;       /* slots: a power of two                                      */
    struct gw_qdisc *dead;        /* taken out of a live tree; freed with it                   */
    struct gw_filter *filters;
    struct gw_stab   stab;        /* of the root                                               */
    uint32_t next_handle;         /* automatic: 8001: and up                                   */
    struct gw_qdisc *touched;     /* by the last command, or above what it took away            */
    bool     purging;             /* being emptied: what falls out is no loss of the link      */
    const char *ingress;          /* "ingress" or "clsact": shown, no packet passes it         */
    struct gw_tc_kept *kept;      /* shown instead of disciplines: keep.h                       */
    uint32_t kept_count;
};

GW_API struct gw_tree *gw_tree_new(const struct gw_tree_conf *c, struct gw_error *err);
GW_API void gw_tree_free(struct gw_tree *t);
/* Fills qdisc_* and classify of the host table. */
GW_API void gw_tree_host(struct gw_host *h);

/* A discipline with its defaults in conf, not initialised and not in the tree. */
GW_API struct gw_qdisc *gw_tree_make(struct gw_tree *t, const char *kind, const char *where,
                                     struct gw_error *err);
/* Runs init; on failure @q is freed. */
GW_API enum gw_status gw_tree_init(struct gw_tree *t, struct gw_qdisc *q, struct gw_error *err);
/* Hangs the initialised @q at the root (@parent GW_TC_ROOT) or under class @parent; what was there,
 * with all below it, is emptied and freed. */
GW_API enum gw_status gw_tree_graft(struct gw_tree *t, struct gw_qdisc *q, uint32_t parent,
                                    uint64_t now_ps, struct gw_error *err);
/* Takes @q out (a hidden pfifo takes its place under a class) and frees it with all below. */
GW_API void gw_tree_remove(struct gw_tree *t, struct gw_qdisc *q, uint64_t now_ps);
GW_API struct gw_qdisc *gw_tree_find(const struct gw_tree *t, uint32_t handle);
/* The discipline that owns class @classid (its major), NULL: none. */
GW_API struct gw_qdisc *gw_tree_owner(const struct gw_tree *t, uint32_t classid);
/* The child under class @classid of @owner; NULL: the class does not exist or has none. */
GW_API struct gw_qdisc *gw_tree_child(const struct gw_qdisc *owner, uint32_t classid);
GW_API uint32_t gw_tree_auto_handle(struct gw_tree *t);      /* major << 16; 0: none left      */

/* From option rows out of a file: kind + keys. For disciplines with tc_parse the keys are words. */
GW_API enum gw_status gw_tree_set_root(struct gw_tree *t, struct gw_value *map,
                                       const char *const *skip, struct gw_error *err);
/* Words of a tc line into conf of @kind's discipline, by tc_parse or by rows. */
GW_API enum gw_status gw_tree_parse(struct gw_qdisc *q, const struct gw_tc_args *a,
                                    void *conf, uint64_t *given, struct gw_error *err);

/* Length that the disciplines count for a frame of @len_bytes. */
GW_API uint32_t gw_tree_length(const struct gw_tree *t, uint32_t len_bytes);
/* The packet path. enqueue: sets sched_bytes and stamp_ps; GW_Q_DROPPED: the caller frees. */
GW_API enum gw_verdict gw_tree_enqueue(struct gw_tree *t, struct gw_pkt *p, uint64_t now_ps);
GW_API struct gw_pkt *gw_tree_dequeue(struct gw_tree *t, uint64_t now_ps);
GW_API uint64_t gw_tree_next_ps(struct gw_tree *t, uint64_t now_ps);

/* Calls @say for every discipline's advice, each sentence beginning with device and kind. */
GW_API void gw_tree_advise(const struct gw_tree *t, void (*say)(void *ctx, const char *sentence),
                           void *ctx);
/* The same for what the last command touched and the disciplines above it: however large the tree. */
GW_API void gw_tree_advise_touched(const struct gw_tree *t,
                                   void (*say)(void *ctx, const char *sentence), void *ctx);

#endif
