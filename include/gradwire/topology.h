/*
 * topology.h - the contract of topologies: a graph of nodes and links
 *
 * A topology plugin fills a struct gw_graph through the builder calls of gw_host (graph_node,
 * graph_link) and speaks of nodes and links, never of flows. Parallel links keep their own ids;
 * names are unique (the builder makes a repeated name unique by adding "#2", "#3" ... and keeps
 * the label). A link is two directions, 0: a->b and 1: b->a.
 */
#ifndef GRADWIRE_TOPOLOGY_H
#define GRADWIRE_TOPOLOGY_H

#include <gradwire/param.h>

enum gw_node_kind { GW_NODE_HOST, GW_NODE_SWITCH };

struct gw_graph_node {
    char     *name;              /* unique; owner: the graph                                   */
    char     *label;             /* as the source had it                                       */
    enum gw_node_kind kind;
    uint32_t  tier;              /* switches: 0 nearest to hosts; GW_NONE: no tiers            */
    double    lat_deg, lon_deg;  /* NAN: unknown                                               */
    bool      transit;           /* may forward for others; default: switches only             */
};

struct gw_graph_dir {            /* one direction of a link                                    */
    uint64_t rate_bps;           /* 0: infinitely fast                                         */
    uint64_t delay_ps;           /* propagation                                                */
    double   loss;               /* Bernoulli loss 0..1, 0: none                               */
    const struct gw_value *channel; /* other loss or delay model: map with `kind`; NULL: none  */
    const struct gw_value *qdisc;   /* map with `kind`; NULL: the default                      */
};

struct gw_graph_link {
    char     *name;              /* unique; its ends are NAME:A and NAME:B by the node names   */
    uint32_t  a, b;              /* node indices                                               */
    struct gw_graph_dir dir[2];  /* 0: a->b, 1: b->a                                           */
    uint32_t  mtu_bytes;         /* IP MTU, default 1500                                       */
    uint32_t  framing_bytes;     /* added to len_bytes on the wire, default GW_FRAMING_BYTES   */
    double    weight;            /* routing metric; 1: hops                                    */
    bool      rate_is_default;   /* the source had no speed                                    */
    bool      delay_is_default;  /* the source had no length                                   */
    const char *end_name[2];     /* "a","b" style device ends: default the two node names;
                                    owner: the graph                                           */
};

struct gw_graph {
    const struct gw_host *host;
    struct gw_graph_node *node;
    struct gw_graph_link *link;
    uint32_t node_count, link_count;
    uint32_t node_cap, link_cap;
    char   **note;               /* things that `check` says aloud (missing speeds ...)        */
    uint32_t note_count;
    void    *names;              /* builder's index, private                                   */
};

/* What the builder takes for a link; zero-initialise, then fill. Directions equal unless set. */
struct gw_link_spec {
    const char *name;            /* NULL: "A-B"                                                */
    uint64_t rate_bps, delay_ps;
    double   loss;
    uint32_t mtu_bytes;          /* 0: 1500                                                    */
    uint32_t framing_bytes;      /* used if framing_set                                        */
    bool     framing_set;
    double   weight;             /* 0: 1                                                       */
    const char *end_name[2];     /* NULL: the node names                                       */
    const struct gw_value *channel, *qdisc;
};

/*
 * Options that every generator has for a kind of link: a map `link: {rate, delay, loss, channel,
 * qdisc}`. A conf struct holds a struct gw_link_conf per kind, the rows come from GW_LINK_PARAMS,
 * and gw_link_spec_of() makes the builder's form of it.
 */
struct gw_link_conf {
    uint64_t rate_bps, delay_ps;
    double   loss;
    const struct gw_value *channel, *qdisc;
};

#define GW_RATE_MAX "100tbit"
#define GW_DELAY_MAX "1000s"

#define GW_LINK_PARAMS(prefix, conf, member, rate, delay)                                     \
    { prefix "rate", GW_P_RATE, offsetof(struct conf, member.rate_bps), rate, "0",            \
      GW_RATE_MAX, "Rate of each direction; 0: infinitely fast." },                           \
    { prefix "delay", GW_P_TIME, offsetof(struct conf, member.delay_ps), delay, "0",          \
      GW_DELAY_MAX, "Propagation delay, one way." },                                          \
    { prefix "loss", GW_P_FRACTION, offsetof(struct conf, member.loss), "0%", "0%", "100%",   \
      "Packets lost at random, each direction for itself." },                                 \
    { prefix "channel", GW_P_VALUE, offsetof(struct conf, member.channel), "", NULL, NULL,    \
      "Another loss or delay model: a map with its `kind` and options." },                    \
    { prefix "qdisc", GW_P_VALUE, offsetof(struct conf, member.qdisc), "", NULL, NULL,        \
      "Queue discipline at both ends: a map with its `kind` and options." }

/* MTU and framing, which hold for all links of a generator; both fields are uint64_t. */
#define GW_FRAME_PARAMS(conf, framing)                                                        \
    { "mtu", GW_P_BYTES, offsetof(struct conf, mtu_bytes), "1500", "68", "65535",             \
      "Largest IP packet on the links." },                                                    \
    { "framing", GW_P_BYTES, offsetof(struct conf, framing_bytes), framing, "0", "1024",      \
      "Bytes that each frame takes on the wire beyond its length (FCS, preamble, gap)." }

static inline struct gw_link_spec gw_link_spec_of(const struct gw_link_conf *c,
                                                  uint64_t mtu_bytes, uint64_t framing_bytes)
{
    struct gw_link_spec s;

    memset(&s, 0, sizeof s);
    s.rate_bps      = c->rate_bps;
    s.delay_ps      = c->delay_ps;
    s.loss          = c->loss;
    s.channel       = c->channel;
    s.qdisc         = c->qdisc;
    s.mtu_bytes     = (uint32_t)mtu_bytes;
    s.framing_bytes = (uint32_t)framing_bytes;
    s.framing_set   = true;
    return s;
}

/* One port choice: ports of a node are numbered in the order in which its links were added. */
struct gw_ports {
    uint32_t first, count;       /* `count` neighbouring ports from `first`; count 0: ask rows */
};

struct gw_topology {             /* what build() gets                                          */
    const struct gw_host *host;
    struct gw_graph *graph;
    const void *conf;            /* conf_bytes, filled from the rows                           */
    struct gw_value *value;      /* the whole `topology:` map                                  */
    uint64_t    given;           /* rows that the user gave                                    */
    const char *study_dir;       /* relative files are looked up here                          */
    void       *priv;            /* priv_bytes, zeroed; lives as long as the network           */
};

struct gw_topology_ops {
    size_t conf_bytes, priv_bytes;
    enum gw_status (*build)(struct gw_topology *t, struct gw_error *err);
    /* Optional: routes by arithmetic. Ports of @node that lead to @dst. */
    struct gw_ports (*next_ports)(const struct gw_topology *t, uint32_t node, uint32_t dst);
    void (*fini)(struct gw_topology *t);
    const char *const *skip;     /* keys that build() reads from value itself                  */
    void (*spare[8])(void);
};

#endif
