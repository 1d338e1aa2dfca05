/*
 * qdisc.h - the contract of queue disciplines
 *
 * Ownership: enqueue() takes the packet whatever it answers: GW_Q_DROPPED means that the host frees
 * it (and counts it under q->drop_reason). dequeue() gives the packet away. A packet that a
 * discipline throws out later (head drop, AQM) goes back through gw_host.qdisc_drop(). A plugin
 * never frees. No call may block, allocate or read a clock; time is handed in.
 *
 * Books: the host keeps backlog, sent, dropped and marked from the verdicts, so no plugin can get
 * them wrong. A discipline's own counters go into its private struct and are shown by stat rows.
 *
 * Trees: a classful discipline has classes, each with a child discipline (a pfifo unless grafted);
 * it calls child disciplines through gw_host.qdisc_enqueue()/qdisc_dequeue(), which keep the
 * children's books. The tree's root is what the port calls.
 */
#ifndef GRADWIRE_QDISC_H
#define GRADWIRE_QDISC_H

#include <gradwire/packet.h>
#include <gradwire/engine.h>
#include <gradwire/rng.h>
#include <gradwire/param.h>

enum gw_verdict {
    GW_Q_QUEUED,          /* the discipline holds it                                           */
    GW_Q_DROPPED,         /* host frees it; q->drop_reason says why                            */
    GW_Q_TRIMMED,         /* held, but len_bytes was cut (flags has GW_PKT_TRIMMED)            */
};

/* Why packets are lost. Queue-full is kept apart from configured loss everywhere. */
#define GW_DROP_MAP(X)                                                      \
    X(QUEUE_FULL, "queue_full", "the queue had no room")                    \
    X(AQM,        "aqm",        "the discipline dropped it early")          \
    X(FLOW_LIMIT, "flow_limit", "the flow's own share was full")            \
    X(UNCLASSIFIED, "unclassified", "no class took it")                     \
    X(TOO_BIG,    "too_big",    "larger than the discipline can ever send") \
    X(LOSS,       "loss",       "configured loss of the channel")           \
    X(CORRUPT,    "corrupt",    "a flipped bit, thrown away by the receiver") \
    X(LINK_DOWN,  "link_down",  "the link was down")                        \
    X(NO_ROUTE,   "no_route",   "the switch knows no way")                  \
    X(SHARED_BUFFER, "shared_buffer", "the switch's memory had no room")
enum gw_drop_reason {
#define GW_DROP_ENUM(name, key, text) GW_DROP_##name,
    GW_DROP_MAP(GW_DROP_ENUM)
#undef GW_DROP_ENUM
    GW_DROP_COUNT
};

struct gw_qdisc;

/* A class of a classful discipline. Owner: the discipline. */
struct gw_qclass {
    uint32_t         id;         /* major << 16 | minor                                        */
    struct gw_qdisc *child;      /* host-owned                                                 */
    struct gw_qclass *next;
};

struct gw_qdisc_ops {
    size_t priv_bytes;           /* host allocates, zeroed                                     */
    size_t conf_bytes;           /* host allocates; filled from the option rows                */

    /* Reads q->conf; may allocate with gw_host.alloc. Link facts are in q->rate_bps etc. */
    enum gw_status (*init)(struct gw_qdisc *q, struct gw_error *err);
    void (*fini)(struct gw_qdisc *q);
    enum gw_verdict (*enqueue)(struct gw_qdisc *q, struct gw_pkt *p, uint64_t now_ps);
    /* NULL: nothing may leave now; then next_ps() says when, GW_NEVER: only after an enqueue. */
    struct gw_pkt *(*dequeue)(struct gw_qdisc *q, uint64_t now_ps);
    /* Optional: work-conserving disciplines leave it out. */
    uint64_t (*next_ps)(struct gw_qdisc *q, uint64_t now_ps);
    /* Optional: `tc qdisc change`. @given has bit i for each row in @conf that the line named;
     * on failure nothing may have changed. NULL: the discipline refuses a change. */
    enum gw_status (*change)(struct gw_qdisc *q, const void *conf, uint64_t given,
                             uint64_t now_ps, struct gw_error *err);
    /* Optional: throws everything out through gw_host.qdisc_drop (link down, delete). */
    void (*reset)(struct gw_qdisc *q, uint64_t now_ps);
    /* Optional: a plain tail-drop FIFO says its limits (UINT64_MAX: none); a port that nothing
     * pauses may then run it by arithmetic, without calling it for every packet. */
    bool (*fifo_limits)(const struct gw_qdisc *q, uint64_t *pkts, uint64_t *bytes);

    /* Classful disciplines only, else NULL. class_conf is read by class rows of the descriptor. */
    size_t class_conf_bytes;
    const struct gw_param *class_params;
    uint32_t class_param_count;
    enum gw_status (*class_change)(struct gw_qdisc *q, uint32_t classid, uint32_t parent,
                                   const void *conf, uint64_t given, struct gw_error *err);
    enum gw_status (*class_delete)(struct gw_qdisc *q, uint32_t classid, struct gw_error *err);
    struct gw_qclass *(*class_find)(struct gw_qdisc *q, uint32_t classid);
    struct gw_qclass *(*class_walk)(struct gw_qdisc *q, struct gw_qclass *after);
    enum gw_status (*graft)(struct gw_qdisc *q, uint32_t classid, struct gw_qdisc *child,
                            struct gw_qdisc **old, struct gw_error *err);

    /* The discipline's own counters, shown by `tc -s` and kept in the records. */
    const struct gw_stat *stats;
    uint32_t stat_count;
    void (*spare[8])(void);
};

/* A counter in a private struct: uint64_t at @offset. */
struct gw_stat {
    const char *name;
    size_t      offset;
    const char *help;
};

struct gw_qdisc {
    const struct gw_qdisc_ops *ops;
    const struct gw_host      *host;
    void     *port;              /* opaque: for host calls                                     */
    void     *priv;              /* priv_bytes                                                 */
    void     *conf;              /* conf_bytes                                                 */
    uint64_t  given;             /* rows that the user gave                                    */
    uint32_t  handle, parent;    /* tc's numbers                                               */
    uint32_t  txqueuelen;        /* of the device: 1000 unless set                             */
    uint32_t  mtu_bytes;         /* largest frame without FCS on the link                      */
    uint64_t  rate_bps;          /* of the link, 0: infinitely fast                            */
    uint64_t  auto_limit_bytes;  /* what `limit auto` means here                               */
    struct gw_rng rng;           /* its own stream                                             */
    enum gw_drop_reason drop_reason;  /* set by enqueue() before GW_Q_DROPPED; host resets it
                                         to GW_DROP_QUEUE_FULL before each call                */
    /* Books, written by the host only. */
    uint64_t  backlog_bytes, backlog_pkts;
    uint64_t  sent_bytes, sent_pkts;
    uint64_t  dropped_pkts, dropped_bytes, overlimits, requeues, marked_pkts;
    uint64_t  drops[GW_DROP_COUNT];
};

/* Sets CE on an ECT packet and counts it. False: the packet cannot carry a mark. */
static inline bool gw_qdisc_mark(struct gw_qdisc *q, struct gw_pkt *p)
{
    if (p->ecn == GW_ECN_NOT_ECT)
        return false;
    p->ecn = GW_ECN_CE;
    q->marked_pkts++;
    return true;
}

#endif
