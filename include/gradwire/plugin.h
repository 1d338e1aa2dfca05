/*
 * plugin.h - the one door for plugins: the descriptor, and what the host offers
 *
 * A plugin is a data descriptor; reading it runs nothing. Built in, it is a named object listed in
 * a local.mk; loaded, it is the one exported symbol gw_plugin_v1 of a shared object compiled with
 * -DGW_PLUGIN_SHARED. Both pass through gw_registry_add(), which checks the ABI before any code of
 * the plugin runs, copies the ops by the smaller size and fills missing optional callbacks.
 * Plugins never link libgradwire: what they need beyond the inline functions of these headers they
 * call through struct gw_host, which reaches them in every object of a contract.
 */
#ifndef GRADWIRE_PLUGIN_H
#define GRADWIRE_PLUGIN_H

#include <gradwire/analysis.h>
#include <gradwire/channel.h>
#include <gradwire/qdisc.h>
#include <gradwire/record.h>
#include <gradwire/tc.h>
#include <gradwire/topology.h>
#include <gradwire/traffic.h>
#include <gradwire/transport.h>

#define GW_ABI_MAJOR 2u
#define GW_ABI_MINOR 0u
#define GW_PLUGIN_MAGIC UINT32_C(0x67775031)      /* "gwP1" */

enum gw_kind {
    GW_KIND_QDISC, GW_KIND_CHANNEL, GW_KIND_TRANSPORT, GW_KIND_CC, GW_KIND_TOPOLOGY,
    GW_KIND_TRAFFIC, GW_KIND_COLLECTIVE, GW_KIND_ANALYSIS, GW_KIND_COUNT
};

struct gw_plugin {
    uint32_t magic;              /* GW_PLUGIN_MAGIC                                            */
    uint16_t abi_major, abi_minor;
    uint32_t plugin_bytes;       /* sizeof(struct gw_plugin) it was built with                 */
    uint32_t ops_bytes;          /* size of its ops struct                                     */
    uint32_t kind;               /* enum gw_kind                                               */
    const void *ops;
    const char *name;            /* "codel": what studies say                                  */
    const char *summary;         /* one sentence                                               */
    const struct gw_param *params;
    uint32_t param_count;
    uint32_t flags;
    const char *source;          /* paper, RFC or kernel version that it follows; may be NULL  */
    void    *spare[4];
};

#define GW_PLUGIN_HEAD(k, o)                                                           \
    .magic = GW_PLUGIN_MAGIC, .abi_major = GW_ABI_MAJOR, .abi_minor = GW_ABI_MINOR,    \
    .plugin_bytes = sizeof(struct gw_plugin), .ops_bytes = sizeof(o), .kind = (k), .ops = &(o)

#ifdef GW_PLUGIN_SHARED
#define GW_PLUGIN(symbol)                                                              \
    extern const struct gw_plugin gw_plugin_v1;                                        \
    GW_API const struct gw_plugin gw_plugin_v1
#else
#define GW_PLUGIN(symbol)                                                              \
    extern const struct gw_plugin symbol;                                              \
    const struct gw_plugin symbol
#endif

/*
 * The host's functions. `net` is the opaque pointer of the contract's object. Appended to only;
 * host_bytes says how long the table is.
 */
struct gw_host {
    uint32_t host_bytes;
    uint16_t abi_major, abi_minor;

    /* Memory, outside the packet path. alloc returns zeroed memory or NULL. */
    void *(*alloc)(size_t bytes);
    void *(*resize)(void *p, size_t bytes);
    void  (*release)(void *p);

    /* Values, options, random streams: as in param.h and rng.h. */
    void (*rng_open)(struct gw_rng *r, uint64_t seed, const char *name);
    struct gw_value *(*value_get)(struct gw_value *v, const char *key);
    const char *(*value_where)(const struct gw_value *v, char *buf, size_t n);
    enum gw_status (*params_read)(const struct gw_param *rows, size_t count, void *conf,
                                  struct gw_value *v, const char *const *skip, const char *what,
                                  uint64_t *given, struct gw_error *err);
    /* Text of scalar @v as one type, as in param.h; @out as the row's field would be. The
     * sentence begins with the value's position. */
    enum gw_status (*value_read)(const struct gw_value *v, enum gw_param_type type, void *out,
                                 struct gw_error *err);

    /* The plugin @name of @kind: its ops (full length) or NULL with a did-you-mean sentence that
     * starts with @where (may be NULL). */
    const void *(*find)(const struct gw_host *h, enum gw_kind kind, const char *name,
                        const char *where, struct gw_error *err);
    void *registry;

    /* Opens a data file: first relative to @study_dir, then in the folder @shelf ("models",
     * "graphs") of the installed data, with and without ".csv". The path that was taken goes to
     * @path. NULL with a sentence naming what was tried. Close with fclose. */
    FILE *(*open_data)(const struct gw_host *h, const char *study_dir, const char *shelf,
                       const char *name, char *path, size_t path_bytes, struct gw_error *err);

    /* Packets and time. */
    struct gw_pkt *(*pkt_alloc)(void *net);                /* zeroed head and tp; ext GW_NONE   */
    void  (*pkt_free)(void *net, struct gw_pkt *p);        /* with its extension                */
    void *(*ext_alloc)(void *net, struct gw_pkt *p);       /* the transport's ext_bytes, zeroed */
    void *(*ext_get)(void *net, const struct gw_pkt *p);   /* NULL: none                        */
    void  (*timer_set)(void *net, struct gw_timer *t, uint64_t at_ps);
    void  (*timer_stop)(void *net, struct gw_timer *t);

    /* Queue disciplines. enqueue and dequeue keep the child's books; peek shows the head and leaves
     * it in place. qdisc_drop: a packet that @q held is thrown out (also lowers the backlog of all
     * parents). qdisc_again: puts a packet into the root of @q's tree (netem's duplicates). */
    void (*qdisc_drop)(struct gw_qdisc *q, struct gw_pkt *p, enum gw_drop_reason why);
    enum gw_verdict (*qdisc_enqueue)(struct gw_qdisc *child, struct gw_pkt *p, uint64_t now_ps);
    struct gw_pkt *(*qdisc_dequeue)(struct gw_qdisc *child, uint64_t now_ps);
    struct gw_pkt *(*qdisc_peek)(struct gw_qdisc *child, uint64_t now_ps);
    void (*qdisc_again)(struct gw_qdisc *q, struct gw_pkt *p, uint64_t now_ps);
    /* A child with its defaults, not shown by tc (a class's first queue). */
    struct gw_qdisc *(*qdisc_new)(struct gw_qdisc *parent, const char *kind, uint32_t classid,
                                  struct gw_error *err);
    void (*qdisc_free)(struct gw_qdisc *q);
    /* Class that the filters attached to @q itself choose; 0: none matched. */
    uint32_t (*classify)(struct gw_qdisc *q, const struct gw_pkt *p);
    /* The port should ask dequeue again now (a timer inside a discipline has freed something). */
    void (*qdisc_kick)(struct gw_qdisc *q, uint64_t now_ps);
    /* A copy with its own extension; NULL when out of memory. */
    struct gw_pkt *(*pkt_copy)(void *net, const struct gw_pkt *p);

    /* Transports. emit_* hand the packet to the host's NIC; len_bytes, ecn, tp and flags are the
     * transport's to set, the rest is the host's. */
    uint64_t (*nic_room)(struct gw_tx *tx, uint64_t now_ps); /* bytes it may emit now; 0: wait  */
    void (*emit_tx)(struct gw_tx *tx, struct gw_pkt *p, uint64_t now_ps);
    void (*emit_rx)(struct gw_rx *rx, struct gw_pkt *p, uint64_t now_ps);
    void (*rx_deliver)(struct gw_rx *rx, uint64_t in_order_bytes, uint64_t now_ps); /* total    */
    void (*tx_acked)(struct gw_tx *tx, uint64_t acked_bytes, uint64_t now_ps);      /* total    */
    void (*tx_closed)(struct gw_tx *tx, uint64_t now_ps);  /* both halves may be freed          */
    void (*fluid_done)(struct gw_fluid *f, struct gw_fluid_flow *x, uint64_t now_ps);
    void (*fluid_rate)(struct gw_fluid *f, uint32_t dirlink, uint64_t rate_bps);

    /* Topologies. Both return the index, or GW_NONE when out of memory or with a sentence. */
    uint32_t (*graph_node)(struct gw_graph *g, const char *name, enum gw_node_kind kind,
                           uint32_t tier);
    uint32_t (*graph_link)(struct gw_graph *g, uint32_t a, uint32_t b,
                           const struct gw_link_spec *spec);
    void (*graph_note)(struct gw_graph *g, const char *text);

    /* Traffic. op_add: the operation starts when all @after have ended (already ended ones and 0
     * are fine). Returns 0 when out of memory; the run then ends with GW_NOMEM. */
    gw_op_id (*op_add)(struct gw_program *p, const struct gw_op *op, const gw_op_id *after,
                       uint32_t after_count);
    void (*op_watch)(struct gw_program *p, gw_op_id op);
    enum gw_status (*frame_source)(struct gw_program *p, const struct gw_frame_source *f,
                                   struct gw_error *err);
    enum gw_status (*job_set_ranks)(struct gw_job *job, const uint32_t *node, uint32_t count,
                                    struct gw_error *err);
    uint32_t (*node_by_name)(struct gw_job *job, const char *name);   /* hosts; GW_NONE         */
    uint32_t (*host_count)(struct gw_job *job);                       /* hosts of the topology  */
    uint32_t (*host_node)(struct gw_job *job, uint32_t i);            /* i-th host's node       */
    uint32_t (*topo_radix)(struct gw_job *job);   /* k of a fat tree, else 0                    */

    /* Analyses. */
    struct gw_table *(*table_new)(struct gw_analysis *a, const char *name, const char *title,
                                  const char *const *columns, uint32_t count);
    enum gw_status (*table_row)(struct gw_table *t, const struct gw_cell *cells);
    /* A line of text that people see under the table: what its columns mean. Replaces another. */
    enum gw_status (*table_note)(struct gw_table *t, const char *text);

    /* Flips bit @bit of the frame (as in gw_flips; flipped twice it is as it was) and sets or clears
     * GW_PKT_CORRUPT. A copy has its original's flips. */
    void (*pkt_flip)(void *net, struct gw_pkt *p, uint32_t bit);

    /* Transports with tx_message: the message that begins at stream offset @start is over; what has
     * not come by now never will. @a and its bitmap are read during the call only. */
    void (*rx_message)(struct gw_rx *rx, uint64_t start, const struct gw_received *a,
                       uint64_t now_ps);

    /* What packet @p of a flow is; false: its transport does not say. */
    bool (*pkt_facts)(void *net, const struct gw_pkt *p, struct gw_pkt_facts *facts);
    /* A line of a traced sender, in the order of ops.trace_columns. */
    void (*trace)(struct gw_tx *tx, const char *line, uint64_t now_ps);

    /* Class that the filters attached at @at choose, which is @q's handle or one of its classes (htb's
     * inner ones); 0: none matched, or there are none. */
    uint32_t (*classify_at)(struct gw_qdisc *q, uint32_t at, const struct gw_pkt *p);
    /* Are there filters at @q or at one of its classes? */
    bool (*has_filters)(const struct gw_qdisc *q);

    /* In job_init, behind job_set_ranks: can rank @from send these frames? No frame that a link of the
     * way would not take, none beyond the end of time. @where goes in front of the sentence. */
    enum gw_status (*frame_check)(struct gw_job *job, uint32_t from,
                                  const struct gw_frame_source *f, const char *where,
                                  struct gw_error *err);

    /* Segment @i of super-packet @p, from 0 on, as a packet of its own; the last one is @p itself.
     * NULL: out of memory. */
    struct gw_pkt *(*pkt_segment)(void *net, struct gw_pkt *p, uint32_t i);
    /* For enqueue() of @q, which was given super-packet @p: takes it apart, lets @q have each segment
     * by @each, and keeps the books of @q and of all above it. The answer is enqueue()'s. */
    enum gw_verdict (*qdisc_segments)(struct gw_qdisc *q, struct gw_pkt *p, uint64_t now_ps,
                                      enum gw_verdict (*each)(struct gw_qdisc *q, struct gw_pkt *p,
                                                              uint32_t i, uint64_t now_ps));

    void (*spare[22])(void);
};

#endif
