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
    GW_Q_DROPPED,         /* host frees it; q->drop_reason says why. GW_DROP_RETURNED: a header
                             with GW_PKT_TRIMMED that a switch sends back to where it is from  */
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
    X(SHARED_BUFFER, "shared_buffer", "the switch's memory had no room")    \
    X(PURGED,     "purged",     "its discipline or class was taken out, replaced or changed") \
    X(RETURNED,   "returned",   "not lost: its header goes back to its sender")
enum gw_drop_reason {
#define GW_DROP_ENUM(name, key, text) GW_DROP_##name,
    GW_DROP_MAP(GW_DROP_ENUM)
#undef GW_DROP_ENUM
    GW_DROP_COUNT
};

struct gw_qdisc;

/* Whose books `tc -s class show` prints for a class. */
enum gw_class_books {
    GW_BOOKS_CHILD,              /* its child's                                                */
    GW_BOOKS_OWN,                /* the class's own: htb, whose inner classes have no child    */
    GW_BOOKS_NONE,               /* none: the kernel's tbf, netem, red ... count nothing       */
};

/* A class of a classful discipline. Owner: the discipline. */
struct gw_qclass {
    uint32_t         id;         /* major << 16 | minor                                        */
    struct gw_qdisc *child;      /* host-owned; NULL: an inner class                           */
    struct gw_qclass *next;
    enum gw_class_books books;
    uint64_t sent_bytes, sent_pkts, dropped_pkts, overlimits;  /* GW_BOOKS_OWN                 */
};

struct gw_tc_out;

/* What a discipline does to its traffic on purpose, in the long run; 0: nothing of the kind. */
struct gw_outline {
    uint64_t rate_bps;           /* what it lets through at most, in bits of frames            */
    double   delay_s;            /* mean time that it adds                                     */
    double   loss;               /* share of the frames that it loses                          */
    double   pkts_per_s;         /* ceiling because of a limit on what it holds                */
    uint64_t flow_rate_bps;      /* what a single flow gets at most                            */
};

/* The words behind a discipline's (or class's) name in a tc line, NULL-terminated. */
struct gw_tc_args {
    char *const *word;
    uint32_t     count;
    bool         change;         /* `change` (or `replace` of what is there)                   */
    bool         is_class;
    uint64_t     dev_rate_bps;   /* speed of the device, 0: it has none (rates in %)           */
    const struct gw_host *host;
    const char  *data_dir;       /* where user tables are looked up                            */
    bool        *create;         /* the parser may set it: made even if the verb is `change`  */
    char        *note;           /* for gw_tc_note(): sentences, a line each; NULL: nobody asks */
    size_t       note_bytes;
};

struct gw_qdisc_ops {
    size_t priv_bytes;           /* host allocates, zeroed                                     */
    size_t conf_bytes;           /* host allocates; filled from the option rows                */

    /* Reads q->conf and q->given; may allocate with gw_host.alloc. Link facts: q->rate_bps ... */
    enum gw_status (*init)(struct gw_qdisc *q, struct gw_error *err);
    void (*fini)(struct gw_qdisc *q);
    enum gw_verdict (*enqueue)(struct gw_qdisc *q, struct gw_pkt *p, uint64_t now_ps);
    /* NULL: nothing may leave now; then next_ps() says when, GW_NEVER: only after an enqueue. */
    struct gw_pkt *(*dequeue)(struct gw_qdisc *q, uint64_t now_ps);
    /* Optional: work-conserving disciplines leave it out. Asked after a dequeue that gave NULL. A
     * classful discipline answers the least of its own time and its children's next_ps. */
    uint64_t (*next_ps)(struct gw_qdisc *q, uint64_t now_ps);
    /* Optional: `tc qdisc change`. @given has bit i for each row in @conf that the line named;
     * on failure nothing may have changed. The host stores @conf into q->conf afterwards only if
     * the discipline has not done so itself. NULL: the discipline refuses a change. */
    enum gw_status (*change)(struct gw_qdisc *q, const void *conf, uint64_t given,
                             uint64_t now_ps, struct gw_error *err);
    /* Optional: throws everything out through gw_host.qdisc_drop, as GW_DROP_PURGED. */
    void (*reset)(struct gw_qdisc *q, uint64_t now_ps);
    /* Optional: a plain tail-drop FIFO says its limits (UINT64_MAX: none); a port that nothing
     * pauses may then run it by arithmetic, without calling it for every packet. */
    bool (*fifo_limits)(const struct gw_qdisc *q, uint64_t *pkts, uint64_t *bytes);

    /* Classful disciplines only, else NULL. */
    size_t class_conf_bytes;
    const struct gw_param *class_params;
    uint32_t class_param_count;
    /* Adds (@find_only false, class absent) or changes class @classid; 0: the discipline chooses.
     * NULL: the discipline's classes are fixed (prio) or it is not known to tc. */
    enum gw_status (*class_change)(struct gw_qdisc *q, uint32_t classid, uint32_t parent,
                                   const void *conf, uint64_t given, uint64_t now_ps,
                                   struct gw_error *err);
    enum gw_status (*class_delete)(struct gw_qdisc *q, uint32_t classid, uint64_t now_ps,
                                   struct gw_error *err);
    struct gw_qclass *(*class_find)(struct gw_qdisc *q, uint32_t classid);
    struct gw_qclass *(*class_walk)(struct gw_qdisc *q, struct gw_qclass *after);
    /* Puts @child (never NULL) under @classid; *old is what hung there; the host frees it. */
    enum gw_status (*graft)(struct gw_qdisc *q, uint32_t classid, struct gw_qdisc *child,
                            struct gw_qdisc **old, struct gw_error *err);
    /* Optional: the child under @cl has become empty by a drop inside it. */
    void (*child_empty)(struct gw_qdisc *q, struct gw_qclass *cl);

    /* The discipline's own counters, shown by `tc -s` and kept in the records. */
    const struct gw_stat *stats;
    uint32_t stat_count;

    /* tc's words. NULL: by the option rows (word = row name; a BOOL row is a flag `x` / `nox`),
     * with tc's units. GW_SYNTAX: tc itself refuses (exit 1), GW_INCOMPLETE: the line ends too
     * early (255). What init() and change() refuse is the kernel's refusal (exit 2). */
    enum gw_status (*tc_parse)(const struct gw_tc_args *a, void *conf, uint64_t *given,
                               struct gw_error *err);
    enum gw_status (*tc_class_parse)(const struct gw_tc_args *a, void *conf, uint64_t *given,
                                     struct gw_error *err);
    /* What `tc qdisc show` says behind the common part; NULL: all rows in order. */
    void (*tc_show)(const struct gw_qdisc *q, struct gw_tc_out *o);
    void (*tc_show_class)(const struct gw_qdisc *q, const struct gw_qclass *cl,
                          struct gw_tc_out *o);
    /* xstats of `tc -s`; NULL: the counters of `stats`, if any. */
    void (*tc_show_stats)(const struct gw_qdisc *q, struct gw_tc_out *o);
    void (*tc_show_class_stats)(const struct gw_qdisc *q, const struct gw_qclass *cl,
                                struct gw_tc_out *o);
    /* Optional: what is suspicious or differs from what the words promise, one sentence each, with
     * the effective figure; for check, explain and tc. */
    void (*advise)(const struct gw_qdisc *q, void (*say)(void *ctx, const char *sentence),
                   void *ctx);
    bool not_in_kernel;          /* gradwire's own: tc has no word for it                      */
    /* Optional: what `tc class show` names as the class's parent: a class id, or GW_TC_ROOT. NULL:
     * GW_TC_ROOT if classes can be added, else the discipline itself. */
    uint32_t (*class_parent)(const struct gw_qdisc *q, const struct gw_qclass *cl);
    /* What dequeue() gives and does depends on its own state and the time it is handed, and nobody
     * outside notices it: no packet is dropped there, no timer set, and it waits for time only where a
     * discipline below it does. The port may then ask later than at the time it hands in, which saves
     * an event; the order of all calls stays that of their times. */
    bool in_hindsight;
    /* Optional: the packet that dequeue would give now, left in its place, so that a better one that
     * comes in the meantime may still go first; nothing else changes. NULL: a parent that peeks has
     * the packet taken out, and it goes next whatever comes. As in the kernel, whose disciplines
     * are of the one kind or the other. */
    struct gw_pkt *(*peek)(struct gw_qdisc *q, uint64_t now_ps);
    /* Optional, for explain: the class that @p would go to, 0: none (dropped, or sent past the
     * classes). NULL: the only class, if there is one alone. Changes nothing. */
    uint32_t (*class_of)(struct gw_qdisc *q, const struct gw_pkt *p);
    /* Optional, for explain: what happens on purpose and in the long run to frames of @len_bytes in
     * class @classid (0: no class). Writes only what it has to say; @o comes zeroed. */
    void (*outline)(const struct gw_qdisc *q, uint32_t classid, uint32_t len_bytes,
                    struct gw_outline *o);
    void (*spare[3])(void);
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
    const char *kind;            /* the plugin's name                                          */
    const struct gw_param *rows; /* and its option rows                                        */
    uint32_t  row_count;
    void     *net;               /* opaque: first argument of packet and timer calls; NULL on a
                                    scratch device, where no packet ever flows                 */
    void     *tree;              /* opaque: the device's tree                                  */
    struct gw_qdisc *up;         /* parent in the tree, NULL: root                             */
    struct gw_qdisc *sibling;    /* host's list                                                */
    void     *priv;              /* priv_bytes                                                 */
    void     *conf;              /* conf_bytes                                                 */
    uint64_t  given;             /* rows that the user gave                                    */
    uint32_t  handle, parent;    /* tc's numbers: major << 16; parent class id, GW_TC_ROOT     */
    uint32_t  comp;              /* component for timers                                       */
    uint32_t  txqueuelen;        /* of the device: 1000 unless set                             */
    uint32_t  mtu_bytes;         /* largest frame without FCS on the link: 1514                */
    uint64_t  rate_bps;          /* of the link, 0: infinitely fast or not known               */
    uint64_t  auto_limit_bytes;  /* what `limit auto` means here                               */
    struct gw_rng rng;           /* its own stream                                             */
    enum gw_drop_reason drop_reason;  /* set by enqueue() before GW_Q_DROPPED; host resets it
                                         to GW_DROP_QUEUE_FULL before each call                */
    struct gw_pkt *peeked;       /* taken out by qdisc_peek, still counted in the backlog;
                                    never where ops->peek is there                             */
    bool      hidden;            /* made by the parent itself (default pfifo): not shown       */
    bool      busy, listed;      /* host's                                                     */
    /* Books, written by the host only (but overlimits and requeues, the discipline's to count);
     * lengths are sched_bytes. */
    uint64_t  backlog_bytes, backlog_pkts;
    uint64_t  sent_bytes, sent_pkts;
    uint64_t  dropped_pkts, dropped_bytes, overlimits, requeues, marked_pkts;
    uint64_t  drops[GW_DROP_COUNT];
    uint64_t  held_ns;           /* the discipline's to count: time that packets were held on
                                    purpose; it moves their stamp_ps on by as much             */
    struct gw_qdisc *before;     /* host's list, the other way                                 */
    uint32_t  below;             /* host's: listed disciplines whose `up` this is              */
    struct gw_qdisc *same_slot;  /* host's: next in its hash of handles                        */
    char     *note;              /* host's: what the parser noted of the words in force        */
};

#define GW_TC_ROOT UINT32_MAX    /* TC_H_ROOT                                                  */

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
