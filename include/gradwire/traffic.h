/*
 * traffic.h - the contract of traffic patterns and collectives: programs of ranks
 *
 * A job gives each rank a program. The plugin is asked for it iteration by iteration (next()) and
 * adds operations with gw_host.op_add: compute, delay, send, recv and marks, each with the
 * operations that it waits for. A program is one per rank and sees only its rank, the study, its
 * messages and its named stream, so that the same code can run in one process per rank; what must
 * agree job-wide is derived from the study and the seed in job_init(). Traffic speaks of ranks and
 * bytes, never of switches. Calls never block.
 *
 * Matching of send and recv: (job, communicator, source rank, destination rank, tag, order).
 */
#ifndef GRADWIRE_TRAFFIC_H
#define GRADWIRE_TRAFFIC_H

#include <gradwire/record.h>
#include <gradwire/param.h>
#include <gradwire/rng.h>

typedef uint64_t gw_op_id;       /* per program, ascending from 1; 0: none                     */

enum gw_op_kind {
    GW_OP_COMPUTE,   /* occupies resource for duration_ps (at speed 1), FIFO per resource      */
    GW_OP_DELAY,     /* ends duration_ps after it became ready; occupies nothing               */
    GW_OP_SEND,      /* bytes to rank peer; ends when the transport has them acknowledged      */
    GW_OP_RECV,      /* bytes from rank peer; ends when all has arrived that ever will         */
    GW_OP_MARK,      /* takes no time; ends when its dependencies have                         */
};

enum gw_op_resource {
    GW_RES_COMPUTE = 0,   /* the accelerator: its busy time is the iteration's compute time    */
    GW_RES_COMM    = 1,   /* the communication engine: reductions                              */
    GW_RES_SERVER  = 2,   /* a parameter server's CPU                                          */
    GW_RES_COUNT   = 4
};

enum gw_op_mark {         /* what a GW_OP_MARK says to the records                             */
    GW_MARK_NONE = 0,
    GW_MARK_ITER_BEGIN, GW_MARK_ITER_END,     /* of op.iteration on this rank                  */
    GW_MARK_COLL_BEGIN, GW_MARK_COLL_END,     /* of op.collective on this rank                 */
};

enum gw_op_class {        /* what the bytes or the work are for; shown in records              */
    GW_CLASS_OTHER, GW_CLASS_FORWARD, GW_CLASS_BACKWARD, GW_CLASS_UPDATE, GW_CLASS_REDUCE,
    GW_CLASS_GRADIENT, GW_CLASS_PARAMETER, GW_CLASS_ACTIVATION, GW_CLASS_BACKGROUND,
};

enum gw_op_flag {
    GW_OP_NEW_CONN = 1,   /* send: a fresh connection for this message, closed behind it       */
    GW_OP_JITTER   = 2,   /* compute: the job's jitter and straggler factors apply             */
};

struct gw_op {
    enum gw_op_kind kind;
    uint8_t  resource;    /* enum gw_op_resource, compute                                      */
    uint8_t  mark;        /* enum gw_op_mark                                                   */
    uint8_t  cls;         /* enum gw_op_class                                                  */
    uint8_t  priority;    /* 0 most urgent; send queue and packets                             */
    uint8_t  flags;       /* enum gw_op_flag                                                   */
    uint16_t layer;
    uint32_t iteration;   /* from 0                                                            */
    uint32_t collective;  /* job-wide instance number from 1; 0: none                          */
    uint32_t comm;        /* communicator id                                                   */
    uint32_t peer;        /* rank in the job                                                   */
    uint32_t tag;
    uint64_t bytes;       /* send, recv; for COLL marks: size of the collective                */
    uint64_t duration_ps; /* compute, delay                                                    */
    const char *name;     /* COLL marks: "all-reduce ring"; static string or NULL              */
};

struct gw_job;
struct gw_program;

struct gw_traffic_ops {
    size_t conf_bytes;
    size_t job_bytes;            /* job-wide state, read-only after job_init                   */
    size_t rank_bytes;           /* per program                                                */
    /* Checks the configuration against job->ranks; prepares shared state in job->priv. */
    enum gw_status (*job_init)(struct gw_job *job, struct gw_error *err);
    void (*job_fini)(struct gw_job *job);
    enum gw_status (*rank_init)(struct gw_program *p, struct gw_error *err);
    void (*rank_fini)(struct gw_program *p);
    /* Adds the operations of iteration @iteration. Called in order, from 0 to
     * job->iterations - 1, well before they are needed. */
    enum gw_status (*next)(struct gw_program *p, uint32_t iteration, struct gw_error *err);
    /* Reactive agents only, else NULL: an operation that was added with op_watch ended. */
    void (*on_complete)(struct gw_program *p, gw_op_id op, uint64_t now_ps);
    const char *const *skip;     /* keys that job_init reads from job->value itself            */
    bool sets_ranks;             /* ranks come from the plugin's own keys (from, to ...) via
                                    gw_host.job_set_ranks, `ranks:` is then optional           */
    /* Optional: what came of the message of a watched receive, just before on_complete, if the
     * transport may end messages with holes; @a and its bitmap are read during the call only. */
    void (*on_received)(struct gw_program *p, gw_op_id op, const struct gw_received *a,
                        uint64_t now_ps);
    void (*spare[7])(void);
};

struct gw_job {                  /* host-owned                                                 */
    const struct gw_traffic_ops *ops;
    const struct gw_host *host;
    void       *rt;              /* opaque: runtime                                            */
    const char *name;
    uint32_t    index;
    uint32_t    ranks;           /* number of ranks                                            */
    const uint32_t *node;        /* node index of each rank; only for the host's use           */
    uint32_t    iterations;
    uint64_t    start_ps;
    const void *conf;
    void       *priv;            /* job_bytes, zeroed                                          */
    struct gw_value *value;      /* the whole job map                                          */
    uint64_t    given;
    uint64_t    seed;
    const char *study_dir;
};

struct gw_program {              /* host-owned, one per rank                                   */
    struct gw_job *job;
    void      *rt;               /* opaque: runtime                                            */
    uint32_t   rank;
    void      *priv;             /* rank_bytes, zeroed                                         */
    struct gw_rng rng;           /* "job/NAME/rank/R"                                          */
};

/* ---- collectives -------------------------------------------------------------------------- */

enum gw_coll_op { GW_COLL_ALL_REDUCE, GW_COLL_ALL_GATHER, GW_COLL_REDUCE_SCATTER,
                  GW_COLL_BROADCAST, GW_COLL_ALL_TO_ALL, GW_COLL_OP_COUNT };

/* Bytes to seconds: linear in between, flat below the first row, the last slope beyond the last. */
struct gw_cost_table {
    const struct gw_cost_row { double bytes, seconds; } *row;
    uint32_t count;
};

struct gw_coll {                 /* one instance on one rank                                   */
    struct gw_program *program;
    enum gw_coll_op op;
    const uint32_t *member;      /* job ranks of the communicator, in ring order               */
    uint32_t size, me;           /* number of members, my position                             */
    uint32_t comm;               /* communicator id                                            */
    uint32_t collective;         /* instance number; messages carry it as tag base             */
    uint32_t iteration;
    uint16_t layer;
    uint8_t  priority;
    uint64_t bytes;              /* size of the full vector (all-gather: of the result)        */
    double   compression;        /* wire bytes = bytes / compression; 1: none                  */
    const struct gw_cost_table *reduce; /* cost of adding a vector of n bytes, NULL: free      */
    gw_op_id after;              /* starts when this has ended (0: at once)                    */
    uint64_t message_overhead_ps;/* fixed cost before each send on GW_RES_COMM, 0: none        */
};

struct gw_collective_ops {
    uint32_t supports;           /* bit per enum gw_coll_op                                    */
    /* Adds this rank's part; *done is an operation that ends when the rank has its result. */
    enum gw_status (*emit)(const struct gw_coll *c, gw_op_id *done, struct gw_error *err);
    void (*spare[8])(void);
};

/* ---- test frames -------------------------------------------------------------------------- */

struct gw_frame_source {         /* numbered frames of `traffic: frames`, from program's rank  */
    uint32_t to;                 /* rank                                                       */
    uint32_t flow;               /* the user's flow number                                     */
    uint32_t size_bytes;         /* Ethernet frame without FCS                                 */
    uint64_t interval_ps;        /* mean                                                       */
    uint64_t start_ps;           /* after the job's start                                      */
    uint64_t count;              /* frames                                                     */
    uint32_t burst;              /* frames per arrival, at one instant                         */
    uint32_t priority;           /* 0..15, or a class id (major << 16 | minor), as SO_PRIORITY */
    uint8_t  ecn, dscp;
    bool     poisson;            /* exponential intervals, else constant                       */
};

#endif
