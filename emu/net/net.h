/*
 * net.h - the network: ports, switches, hosts, flows, and the programs that run on them
 *
 * Private to emu/net and the command. A component of the engine is a node (its index) or, as a
 * sender only, a directed link (node count + link index). Fluid transports have components behind
 * all of these.
 */
#ifndef GW_NET_NET_H
#define GW_NET_NET_H

#include "emu/core/engine.h"
#include "emu/core/registry.h"
#include "emu/io/capture.h"
#include "emu/net/graph.h"
#include "emu/tc/tree.h"

struct net;
struct net_conn;

/* TCP ports: of the first flow; a dry run has no others. */
enum { NET_SRC_PORT = 32768, NET_DST_PORT = 29500 };

enum net_route_mode { NET_ECMP, NET_SPRAY, NET_DMOD };

/* ---- ports -------------------------------------------------------------------------------- */

/*
 * A port runs by arithmetic while its discipline is a plain FIFO that nothing can pause or
 * reshape: the departure is worked out when the packet is queued, one event a packet-hop. With
 * any other discipline, or a capture on its end, it runs queued: the discipline holds the packet
 * and a timer ends each serialisation. If nobody can tell the difference, no timer does: whose turn
 * it was is found in hindsight, when the next packet is queued or an earlier one arrives.
 */
enum net_port_mode { PORT_ARITHMETIC, PORT_QUEUED };

/*
 * A switch's packet memory, shared by its ports with dynamic thresholds (Choudhury and Hahne, ToN
 * 1998): a port may hold at most alpha x (what is free).
 */
struct net_buffer {
    uint64_t size_bytes, used_bytes, used_max_bytes;
    double   alpha;
};

/* Priority flow control, see pfc.c. */
struct net_pfc_conf {
    uint32_t priority;
    uint64_t xoff_bytes, xon_bytes, headroom_bytes;      /* 0: from rate, delay and MTU         */
    uint64_t response_ps, watchdog_ps;
};

struct net_pfc {                  /* of a directed link                                         */
    /* Its sender's port. */
    uint64_t until_ps;            /* the lossless lane is paused                                */
    uint64_t since_ps;            /* when that began                                            */
    uint64_t paused_ps;           /* in all, pauses that were ended by the peer                 */
    struct gw_pktq other, control;       /* priorities that are not lossless; pause frames      */
    uint64_t other_limit_bytes;
    uint64_t frames_in, frames_out, storms;
    bool     other_turn, pulling, stuck;
    /* Its receiver, if that is a switch with flow control. */
    bool     watched, told;       /* told: a pause holds                                        */
    uint64_t held_bytes, held_max_bytes;
    uint64_t xoff_bytes, xon_bytes, limit_bytes;
    uint64_t pauses;
    struct gw_timer refresh;
};

enum net_port_flag {              /* kept apart from the port, in one byte an arrival looks at  */
    PORT_LONG    = 1,             /* in-flight packets stand in the port's FIFO                 */
    PORT_RX_CAP  = 2,             /* a capture at the far end                                   */
    PORT_LOG     = 4,             /* packet log                                                 */
    PORT_PFC     = 8,             /* pause frames may arrive                                    */
    PORT_FAR     = 16,            /* as PORT_LONG, as long as the FIFO is not empty             */
    PORT_CHANNEL = 32,            /* losses or delays behind it; nothing an arrival looks at    */
    PORT_BEHIND  = 64,            /* as PORT_FAR; turns of those that wait are found at arrivals */
};

/* The first three cache lines are what a packet touches by arithmetic, the third only if it waits. */
struct __attribute__((aligned(64))) net_port {
    uint64_t free_ps;             /* when the transmitter has sent all that it took so far      */
    uint64_t ps_per_byte;         /* exact, or 0: use gw_tx_ps with the carry                   */
    uint64_t delay_ps;
    uint64_t sent_pkts, sent_bytes, busy_ps;
    uint32_t id, to;              /* directed link, receiving node                              */
    uint32_t count;               /* packets handed to the engine: the sender's own count       */
    uint32_t framing_bytes;
    /* who waits, arithmetic mode */
    uint8_t  mode, flags;
    bool     busy;                /* queued mode: serialising                                   */
    bool     is_nic;              /* a host's own: never drops unless the user put a qdisc there*/
    bool     user_qdisc;          /* the study put something there                              */
    bool     changes;             /* timed events change it: never by arithmetic                */
    bool     hindsight;           /* queued mode, without a timer                               */
    uint32_t from;                /* sending node                                               */
    uint32_t wait_head, wait_count, wait_cap;
    uint32_t *wait;               /* ring of their lengths; they leave one behind the other     */
    uint64_t wait_ps;             /* when the first of them begins to be serialised             */
    uint64_t wait_bytes;
    uint64_t limit_pkts, limit_bytes;
    /* books of waiting */
    unsigned __int128 wait_sum_ps;
    uint64_t wait_max_ps, queue_max_bytes, queue_max_pkts;
    uint64_t carry, wait_carry;   /* of the transmitter; as it was before the first that waits  */
    uint64_t rate_bps;            /* 0: infinitely fast                                         */
    /* queued mode */
    struct gw_tree *tree;         /* always there; its root may be absent (default queue)       */
    struct gw_channel *channel;
    struct net_buffer *buffer;    /* the switch's shared memory, NULL: none                     */
    struct net_pfc *pfc;          /* flow control: can be paused, or sends pauses; NULL: neither */
    struct gw_capture *cap_tx, *cap_rx;
    struct net_log *log;
    struct net *net;
    struct gw_timer timer;        /* queued: end of serialisation or next_ps; NIC: room again   */
    struct net_conn *room_head, *room_tail, *serving;    /* flows that wait for room            */
    uint64_t room_ps, room_low_ps;
    uint64_t buffer_bytes;        /* of the shared memory, held by this port                    */
    /* other books */
    uint64_t cut_bytes;           /* framing of the further frames of super-packets              */
    uint64_t lost_pkts;           /* by the channel; in drops too                               */
    uint64_t returned_pkts;       /* went back to their senders: no drops                       */
    uint64_t lost_bytes;
    uint64_t duplicated_pkts, fluid_bytes;
    uint64_t drops[GW_DROP_COUNT];
    uint64_t sample_bytes, sample_drops, sample_marks;   /* counters at the last sample         */
};
_Static_assert(offsetof(struct net_port, mode) == 64 && offsetof(struct net_port, tree) == 192,
               "a port's hot lines");

/* Memory that is given back all at once. */
struct net_chunks {
    void   **chunk;
    uint32_t count, cap;
};

/* ---- flows -------------------------------------------------------------------------------- */

struct net_share {                /* one message's span of one stream                           */
    struct net_share *next;
    struct net_msg   *msg;
    uint64_t end;                 /* stream offset behind its last byte                         */
    uint64_t bytes, start_ps;
    uint64_t id;                  /* of the flow record                                         */
    uint64_t retrans_bytes, retrans_pkts, timeouts, dropped;  /* counters when it began         */
    uint32_t tag;                 /* of its packets: layer << 8 | class                         */
    uint32_t streams;             /* how many carry the message                                 */
    bool     told, delivered, acked;   /* of messages that may end with holes                   */
};

struct net_transport {            /* a transport with its configuration                         */
    const struct gw_entry *entry;
    const struct gw_transport_ops *ops;
    void    *conf;
    const struct gw_entry *cc;
    void    *cc_conf;
    uint32_t streams;
    bool     supers;              /* its packets may be super-packets                           */
    bool     merges_instants;     /* receivers merge what arrives in one instant, nothing else  */
    void   **shared;              /* per node: ops->shared_bytes, NULL: none yet                */
    struct gw_fluid *fluid;
    struct net_conn *conn_free;   /* recycled, never returned: timers may point in              */
    struct net_transport *next;
};

struct net_conn {                 /* a flow: both halves and the borders of its messages        */
    struct gw_tx tx;              /* private parts follow the struct                            */
    /* of the sender */
    struct net_share *head, *tail;
    struct net_transport *tp;
    uint64_t acked;
    uint32_t out_fwd, hash_fwd;   /* first directed link                                        */
    uint32_t spray;
    uint32_t tag;                 /* of the message that is under way, the last one if none is  */
    uint32_t grant;               /* packets left in this turn at the NIC                       */
    struct net_conn *room_next;
    bool     waiting;             /* in the NIC's list                                          */
    bool     one_shot, open, sprayed;
    uint32_t job;
    /* of the receiver */
    struct gw_rx rx;
    struct net_share *undelivered;
    uint64_t delivered;
    uint32_t out_rev, hash_rev;
    /* seldom touched */
    struct net_share *unacked;    /* of messages that may end with holes                        */
    struct net_conn *next_free;
    struct gw_timer *expect;      /* tells the receiver what is coming; later: frees the flow.
                                     Behind all else, NULL: the transport knows no messages     */
    uint64_t dropped_pkts;
    uint32_t src_rank, dst_rank;
    struct gw_flow_addr addr;
    uint32_t ideal_framing;       /* of the narrowest link                                      */
    uint64_t ideal_rate_bps, ideal_delay_ps, ideal_hops_ps_per_byte;
    uint32_t narrowest;           /* directed link with the least rate on the path              */
    uint32_t ideal_sharing;       /* streams of its pair that share its narrowest link          */
};

struct net_msg {
    uint64_t id;
    struct net *net;
    struct net_transport *tp;
    struct rt_job *job;
    uint32_t src_rank, dst_rank, comm, tag, layer, cls, iteration, collective;
    uint8_t  priority;
    uint8_t  refs;                /* until it is both received and acknowledged                 */
    bool     new_conn, arrived;
    uint64_t bytes, post_ps, start_ps, end_ps;
    uint64_t cause_msg, cause_ps;
    uint32_t shares_left, acks_left;
    struct rt_op *send_op, *recv_op;
    struct net_msg *next;         /* matching table, free list                                  */
    struct net_whole *whole;      /* NULL: it goes in packets                                   */
    struct net_holes *holes;      /* NULL: none are known                                       */
    uint32_t job_index, src_node, dst_node;
    uint64_t flow_id;
    struct net_pair *pair;
};

struct net_whole {                /* a message that moves as one: fluid, inside a host, or empty */
    struct net_whole *next_free;
    struct net_msg *msg;
    struct net_msg *fluid_next, **fluid_at;  /* all fluid messages that have not ended           */
    struct net_msg *behind;       /* next one of its pair's queue                               */
    struct gw_timer timer;        /* fluid latency, local delivery                              */
    struct gw_fluid_flow fluid;   /* its private part follows the struct                        */
};

struct net_holes {                /* how a message ended that may have some                     */
    struct net_holes *next_free;
    struct gw_received arrival;
    uint64_t *bitmap;             /* own copy, while no receive is posted                       */
};

struct net_pair {                 /* persistent streams between two ranks of a job              */
    struct net_pair *next;
    uint32_t job, src_rank, dst_rank;
    uint32_t streams, path_len;
    struct net_conn **conn;       /* packet level                                               */
    uint32_t *path;               /* fluid level                                                */
    uint32_t conn_id;
    uint64_t latency_ps, min_rate_bps;
    struct net_msg *queue, *queue_tail;  /* fluid: sent one after the other                     */
    bool     busy;                /* fluid: one is under way                                    */
};

#define NET_LOG_OTHER 255u        /* what: of a transport, but neither data nor ACK             */
struct net_log_row {              /* a packet's, or a copy's                                    */
    uint64_t sent_ps, received_ps;
    uint64_t seq;                 /* a frame's or packet's number, else a byte of the stream    */
    uint32_t job, flow, size_bytes;
    uint8_t  ce, flips;
    uint8_t  lost;                /* enum gw_drop_reason; GW_DROP_COUNT: it was not             */
    uint8_t  what;                /* or of enum gw_pkt_what; 0: a test frame                    */
};

struct net_log_map {              /* packets of transports -> places of their rows              */
    struct net_log_place {
        const struct gw_pkt *pkt; /* NULL: free                                                 */
        uint64_t place;           /* 0 if free                                                  */
    } *at;
    uint32_t cap, used;           /* cap: a power of two, or 0                                  */
};

struct net_trace {                /* lines of all senders of a job                              */
    uint32_t job;
    char    *path;
    FILE    *file;                /* NULL: not open                                             */
    struct net_trace *next;
};

struct net_log {
    struct net_log_row *row;
    uint64_t count, cap;
    char    *path;
};

/* ---- the network -------------------------------------------------------------------------- */

struct net_conf {
    uint64_t seed;
    enum net_route_mode route;
    bool     polarised;           /* the same hash in every switch                              */
    double   events_per_us;
    uint64_t link_sample_ps;      /* 0: no link samples                                         */
    bool     flow_records;
    const char *data_dir;         /* of the study: user tables are looked up there              */
    uint64_t until_ps;            /* end of the run, 0: when all is done                        */
};

struct net {
    struct gw_engine *engine;
    struct gw_registry *registry;
    struct gw_host *host;         /* the registry's table                                       */
    struct gw_graph *graph;
    struct gw_routes *routes;
    struct gw_topology *topology;
    struct gw_sink *sink;
    struct net_conf conf;
    uint32_t nodes, ports;
    struct net_port *port;        /* per directed link                                          */
    struct net_buffer *buffer;    /* per node; size 0: none. NULL: no switch has one            */
    uint8_t  *port_flags;
    struct net_arrivals {         /* per directed link, by arrival                              */
        uint64_t pkts, bytes;     /* delivered                                                  */
        struct gw_pkt *head, *tail;   /* on the way: PORT_LONG, PORT_FAR, PORT_BEHIND           */
    } *arrivals;
    uint64_t far_ps;              /* a longer queue's packets wait in that FIFO                 */
    uint32_t *salt;               /* per node                                                   */
    uint32_t *nic;                /* per node: only out link, or GW_NONE: ask the routes        */
    uint32_t *down;               /* per node: directed link from its leaf switch to it         */
    uint32_t *host_index;         /* node -> number among hosts                                 */
    uint32_t *host_node;          /* the reverse                                                */
    uint32_t  host_count;
    uint32_t *dmod_div;           /* per node: divisor of the destination's number              */
    bool      tiers;              /* switches stand in tiers                                    */
    uint8_t  *spray_shift;        /* per node: which bits of a sprayed packet's hash choose     */
    struct net_conn **conn;       /* by flow index                                              */
    uint32_t conn_count, conn_cap;
    struct net_conn **kept;       /* as conn, of flows that are over; up to kept_cap            */
    uint32_t kept_cap;
    struct net_chunks conn_chunks; /* memory of flows                                           */
    uint32_t tx_at, rx_at, cc_at, conn_bytes;     /* private parts, of the newest flow's kind     */
    struct net_transport *transports;
    uint32_t logs;                /* packet logs                                                */
    struct net_log_map log_map;
    uint32_t fluid_count;
    uint64_t *link_rate_bps;
    /* slabs */
    struct gw_pkt *pkt_free;
    struct net_chunks slabs;
    uint8_t **ext_chunk;
    uint32_t ext_chunks, ext_free, ext_next;
    size_t   ext_bytes;
    struct net_share *share_free;
    struct net_msg *fluid_open;   /* fluid messages that have not ended                         */
    struct net_pair **pair;       /* hash table                                                 */
    uint32_t pair_slots, pair_count;
    uint64_t live_pkts;
    uint64_t closing_conns;       /* one-shot flows that are not closed yet                     */
    uint32_t radix;               /* k of a fat tree, else 0                                    */
    struct net_pfc_conf pfc_conf;
    struct net_pfc *pfc;          /* per directed link; NULL: no flow control                   */
    struct gw_timer pfc_watch;
    uint64_t pfc_storms;
    bool     pfc_deadlock;
    bool     telemetry;           /* some packets collect it: switch ports run queued           */
    bool     supers;              /* some transport sends super-packets                         */
    /* books */
    uint64_t hops, pkts_delivered, pkts_dropped;
    uint64_t frames_sent, frames_received;
    uint64_t drops[GW_DROP_COUNT];
    uint64_t flows, flow_bytes, flow_delivered_bytes;
    uint64_t local_bytes;         /* stayed inside a host                                       */
    struct gw_timer sample_timer;
    struct net_port_ways *ways;   /* way.c, per directed link; NULL: none was asked for         */
    bool     dry;                 /* no packets, no flows: fields of a packet are its messages' */
    const struct net_transport *dry_tp;   /* of the message that is looked at, then             */
    struct rt *rt;
    struct net_trace *traces;
    bool     keep_conns;          /* captures need the addresses of closed flows               */
    bool     failed;              /* out of memory or a broken sink, text in error              */
    struct gw_error error;
};

struct net *net_new(struct gw_registry *r, struct gw_graph *g, struct gw_topology *t,
                    struct gw_routes *routes, const struct net_conf *c, struct gw_error *err);
void net_free(struct net *n);
enum gw_status net_set_channel(struct net *n, uint32_t id, const char *kind, struct gw_value *v,
                               double loss, struct gw_error *err);
/* Gives switch @node a shared memory; its ports then run queued. */
enum gw_status net_set_buffer(struct net *n, uint32_t node, uint64_t size_bytes, double alpha,
                              struct gw_error *err);
/* Where tc has left a port without a discipline, its default queue comes back. */
enum gw_status net_default_queue(struct net *n, uint32_t id, struct gw_error *err);
/* Captures and logs make their ports run queued; call before the run. */
void net_add_capture(struct net *n, uint32_t id, struct gw_capture *c);
enum gw_status net_add_log(struct net *n, uint32_t id, const char *path, struct gw_error *err);
enum gw_status net_write_logs(struct net *n, struct gw_error *err);
/* The senders of job number @job write a line per packet, once the trace is open; NULL with a
 * sentence if that is not possible. */
struct net_trace *net_add_trace(struct net *n, uint32_t job, struct gw_error *err);
enum gw_status net_open_trace(struct net_trace *t, const char *path, const char *columns,
                              struct gw_error *err);
/* Decides modes, limits and long links; call once, after the above. */
enum gw_status net_ready(struct net *n, struct gw_error *err);
void net_start_records(struct net *n, struct gw_sink *s);
void net_finish_records(struct net *n);
/* sent = delivered + dropped + in flight, for every link. */
enum gw_status net_check_books(struct net *n, struct gw_error *err);
void net_fail(struct net *n, enum gw_status code, const char *text);
void net_deliver(void *net, uint32_t node, struct gw_pkt *p, uint64_t now_ps);

/* Flow control on the switches with @node[v]; call after buffers, before disciplines. */
enum gw_status net_set_pfc(struct net *n, const struct net_pfc_conf *c, const bool *node,
                           const char *where, struct gw_error *err);
uint64_t net_auto_limit(uint64_t rate_bps, uint64_t delay_ps);
/* What `dev: @name` of an entry of `qdisc:` names: directed link @id, or with `switches` each whose
 * port is no host's own. */
bool net_dev_names(const struct net *n, const char *name, uint32_t id);

/* pfc.c */
uint64_t net_pfc_headroom(const struct net *n, uint32_t link);    /* bytes; the link's receiver */
void net_pfc_send(struct net_port *o, struct gw_pkt *p, uint64_t now_ps);
void net_pfc_wake(struct net_port *o, uint64_t now_ps);
void net_pfc_release(struct net_port *o, const struct gw_pkt *p, uint64_t now_ps);
void net_pfc_receive(struct net *n, uint32_t in, struct gw_pkt *p, uint64_t now_ps);
void net_pfc_start(struct net *n);

/* port.c */
void net_port_transmit(struct net_port *o, struct gw_pkt *p, uint64_t later_ps, uint64_t now_ps);
void net_port_note_queue(struct net_port *o, uint64_t bytes, uint64_t pkts);
void net_port_send(struct net *n, struct net_port *o, struct gw_pkt *p, uint64_t now_ps);
void net_buffer_sync(struct net_port *o);
void net_port_kick(void *port, uint64_t now_ps);
void net_port_room(struct net_port *o, uint64_t now_ps);
/* Before anybody reads the counters of disciplines: those that run by arithmetic get theirs. */
void net_all_books(struct net *n, uint64_t now_ps);
void net_port_queue(struct net_port *o, uint64_t now_ps, uint64_t *bytes, uint64_t *pkts);
void net_drop(struct net *n, struct net_port *o, struct gw_pkt *p, enum gw_drop_reason why);
/* What the disciplines of @o did not take: dropped, or sent back to where it is from. */
void net_refuse(struct net *n, struct net_port *o, struct gw_pkt *p, enum gw_drop_reason why,
                uint64_t now_ps);
uint64_t net_nic_room(struct gw_tx *tx, uint64_t now_ps);
void net_port_timer_init(struct net_port *o);
/* A copy of what is on a logged link gets a row of its own. */
void net_log_copy(struct net *n, const struct gw_pkt *p, struct gw_pkt *copy);
/* What the transport of @c, which may be NULL, says of its packet @p; false: nothing. */
bool net_pkt_facts(const struct net_conn *c, const struct gw_pkt *p, struct gw_pkt_facts *facts);

/* conn.c */
/* Keeps @p, which may be NULL, until net_chunks_free(); returns it, NULL (and @p is freed): out of
 * memory. */
void *net_chunks_keep(struct net_chunks *c, void *p);
void net_chunks_free(struct net_chunks *c);
struct gw_pkt *net_pkt_alloc(void *net);
void net_pkt_free(void *net, struct gw_pkt *p);
void *net_ext_get(void *net, const struct gw_pkt *p);
/* The flipped bits of a packet with GW_PKT_CORRUPT, else NULL. */
const struct gw_flips *net_flips(const struct net *n, const struct gw_pkt *p);
void net_host_functions(struct gw_host *h);        /* fills what emu/net answers               */
struct net_transport *net_add_transport(struct net *n, struct gw_value *v, struct gw_error *err);
/* Can flows of @tp take the path? The sentence names the link with the smallest MTU. */
enum gw_status net_transport_fits(const struct net *n, const struct net_transport *tp,
                                  const uint32_t *path, uint32_t len, struct gw_error *err);
/* Whose packet it is, even if that flow is over and captures or logs show its packets; NULL: not known. */
const struct net_conn *net_conn_shown(const struct net *n, const struct gw_pkt *p);
void net_host_receive(struct net *n, struct gw_pkt *p, uint64_t now_ps);
/* Starts the transfer of @m between the nodes of its ranks. */
void net_send(struct net *n, struct net_msg *m, uint64_t now_ps);
void net_record_open_flows(struct net *n);
/* Walks the route as a packet with @hash would; @path may hold @cap links. Returns the length. */
uint32_t net_path(struct net *n, uint32_t src, uint32_t dst, uint32_t hash, uint32_t *path,
                  uint32_t cap);
uint32_t net_next(const struct net *n, uint32_t node, uint32_t dst, uint32_t hash);
void net_conn_free_all(struct net *n);

/* prog.c: what the network tells the programs, and memory beside messages; NULL: none was left */
struct net_whole *rt_msg_whole(struct net *n, struct net_msg *m);
struct net_holes *rt_msg_holes(struct net *n, struct net_msg *m);
void rt_msg_delivered(struct net *n, struct net_msg *m, uint64_t now_ps);
void rt_msg_acked(struct net *n, struct net_msg *m, uint64_t now_ps);

static inline uint32_t net_mix32(uint32_t a)
{
    a ^= a >> 16;
    a *= UINT32_C(0x7feb352d);
    a ^= a >> 15;
    a *= UINT32_C(0x846ca68b);
    return a ^ (a >> 16);
}

#endif
