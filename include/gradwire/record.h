/*
 * record.h - the rows that a run leaves behind, and the sink that takes them
 *
 * One key set joins everything: job, iteration, collective, message, flow, link, rank. Times are
 * simulated picoseconds since the start of the study; GW_NEVER: did not happen. The SQLite schema
 * is documented in emu/core/schema.md; the sink is a contract, so that others can be added.
 * Strings are copied by the sink before it returns.
 */
#ifndef GRADWIRE_RECORD_H
#define GRADWIRE_RECORD_H

#include <gradwire/base.h>

struct gw_rec_node {
    uint32_t    node;
    const char *name;
    bool        is_host;
};

struct gw_rec_link {             /* one direction of a link; totals come at the end            */
    uint32_t    link;            /* directed link: 2 * link index + direction                  */
    const char *name;            /* device it leaves by: "wan:a"                               */
    const char *direction;       /* "a->b" with node names                                     */
    uint32_t    from_node, to_node;
    uint64_t    rate_bps, delay_ps;
};

struct gw_rec_link_total {
    uint32_t link;
    uint64_t sent_pkts, sent_bytes;         /* serialised, frames without FCS                  */
    uint64_t wire_bytes;                    /* with framing                                    */
    uint64_t delivered_pkts, delivered_bytes;
    uint64_t in_flight_pkts;                /* at the end: queued or on the wire               */
    uint64_t busy_ps;                       /* time that the transmitter was busy              */
    uint64_t wait_sum_ps_hi, wait_sum_ps;   /* queueing without service, 128 bits              */
    uint64_t wait_max_ps;
    uint64_t queue_max_bytes, queue_max_pkts;
    uint64_t marked_pkts;
    uint64_t fluid_bytes;                   /* carried by fluid transports                     */
    const uint64_t *drops;                  /* GW_DROP_COUNT entries, in GW_DROP_MAP order     */
    uint64_t arrived_pkts;                  /* given to the device: sent, dropped or waiting   */
    uint64_t held_ns;                       /* time on purpose (netem): not in wait_sum        */
};

struct gw_rec_link_sample {
    uint64_t at_ps;
    uint32_t link;
    uint64_t sent_bytes, drops, marked_pkts; /* since the last sample                          */
    uint64_t queue_bytes, queue_pkts;        /* now                                            */
};

struct gw_rec_job {
    uint32_t    job;
    const char *name, *traffic;
    uint32_t    ranks, iterations;
};

struct gw_rec_rank {
    uint32_t job, rank, node;
};

struct gw_rec_flow {             /* one message's share in one stream, or a fluid transfer     */
    uint64_t flow;               /* row id, ascending                                          */
    uint32_t conn;               /* connection: key of paths                                   */
    uint64_t message;
    uint32_t job, iteration, collective;    /* iteration, collective: GW_NONE, 0 if none       */
    uint32_t src_rank, dst_rank, src_node, dst_node;
    uint64_t bytes, delivered_bytes;  /* ended with fewer: the rest is missing for good        */
    uint64_t start_ps, end_ps;   /* posted; last byte at the receiver, GW_NEVER: unfinished    */
    uint64_t ideal_ps;           /* FCT alone on the path: wire bytes at the least rate, delays*/
    uint64_t retrans_bytes, retrans_pkts, dropped_pkts, timeouts;
};

struct gw_rec_path {             /* links of a connection, from its source                     */
    uint32_t conn, hop, link;
};

struct gw_rec_message {
    uint64_t message;            /* row id, ascending                                          */
    uint32_t job, iteration, collective, comm, tag, layer, cls;
    uint32_t src_rank, dst_rank;
    uint64_t bytes;
    uint64_t post_ps;            /* the send was ready (its dependencies had ended)            */
    uint64_t start_ps;           /* its first byte was given to the transport                  */
    uint64_t end_ps;             /* last byte at the receiver                                  */
    uint64_t cause_message;      /* message whose arrival was the last thing the send waited
                                    for, walking back over local operations; 0: none (compute) */
    uint64_t cause_wait_ps;      /* local time (compute, reduction, queue) between that arrival
                                    and post_ps                                                */
};

/* What came of a message that may end with holes. A grain is what is lost at once. */
struct gw_received {
    uint64_t bytes, missing_bytes;
    uint32_t grains, missing_grains;
    uint64_t grain_bytes;        /* the last grain may be shorter                              */
    const uint64_t *bitmap;      /* bit i % 64 of word i / 64: grain i is there; NULL: all are */
};

struct gw_rec_loss {             /* a message that ended with holes                            */
    uint64_t message;
    uint32_t job, iteration;
    struct gw_received arrival;
};

struct gw_rec_collective {
    uint32_t job, collective, iteration, rank, layer;
    const char *name;
    uint64_t bytes;
    uint64_t start_ps, end_ps;
};

struct gw_rec_iteration {        /* one iteration on one rank                                  */
    uint32_t job, iteration, rank;
    uint64_t start_ps, end_ps;
    uint64_t compute_ps;         /* accelerator busy                                           */
    uint64_t exposed_ps;         /* idle while a message of this rank or a reduction was going */
    uint64_t wait_ps;            /* idle with nothing under way: others were late              */
    uint64_t last_message;       /* the last message that its end waited for, 0: none          */
};

struct gw_rec_stat {             /* a discipline's or channel's own counter, at the end        */
    uint32_t    link;
    const char *owner;           /* "qdisc:red", "channel:bernoulli"                           */
    const char *name;
    uint64_t    value;
};

/* What `tc` prints at the end of one discipline or class in some of its forms. */
struct gw_rec_tc {
    uint32_t    link, order;     /* order: place among the link's disciplines and classes      */
    const char *object, *kind;   /* "qdisc" or "class"                                         */
    uint32_t    handle, parent;  /* tc's numbers, major << 16 | minor; parent of the root: -1  */
    uint32_t    forms;           /* bit i: of -s (1) + -d (2) + -j (4)                         */
    const char *text;            /* of a qdisc: behind kind and handle                         */
};

struct gw_sink;

/* All calls return GW_OK or GW_IO; the first failure sticks and is told by finish(). */
struct gw_sink_ops {
    enum gw_status (*node)(struct gw_sink *s, const struct gw_rec_node *r);
    enum gw_status (*link)(struct gw_sink *s, const struct gw_rec_link *r);
    enum gw_status (*link_total)(struct gw_sink *s, const struct gw_rec_link_total *r);
    enum gw_status (*link_sample)(struct gw_sink *s, const struct gw_rec_link_sample *r);
    enum gw_status (*job)(struct gw_sink *s, const struct gw_rec_job *r);
    enum gw_status (*rank)(struct gw_sink *s, const struct gw_rec_rank *r);
    enum gw_status (*flow)(struct gw_sink *s, const struct gw_rec_flow *r);
    enum gw_status (*path)(struct gw_sink *s, const struct gw_rec_path *r);
    enum gw_status (*message)(struct gw_sink *s, const struct gw_rec_message *r);
    enum gw_status (*collective)(struct gw_sink *s, const struct gw_rec_collective *r);
    enum gw_status (*iteration)(struct gw_sink *s, const struct gw_rec_iteration *r);
    enum gw_status (*stat)(struct gw_sink *s, const struct gw_rec_stat *r);
    /* Key-value facts. @machine: measured on this machine (table host, not in the digest). */
    enum gw_status (*meta)(struct gw_sink *s, const char *key, const char *value, bool machine);
    /* Marks the record complete and closes it; the sink is gone afterwards. */
    enum gw_status (*finish)(struct gw_sink *s, bool complete, struct gw_error *err);
    enum gw_status (*loss)(struct gw_sink *s, const struct gw_rec_loss *r);
    /* What `check` says of the study, one sentence each, without folders in names of files. */
    enum gw_status (*note)(struct gw_sink *s, const char *text);
    enum gw_status (*tc)(struct gw_sink *s, const struct gw_rec_tc *r);
    void (*spare[5])(void);
};

struct gw_sink {
    const struct gw_sink_ops *ops;
};

#endif
