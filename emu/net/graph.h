/*
 * graph.h - the graph under a network: builder, unique names, routes
 */
#ifndef GW_NET_GRAPH_H
#define GW_NET_GRAPH_H

#include <gradwire/gradwire.h>

GW_API struct gw_graph *gw_graph_new(const struct gw_host *host);
GW_API void gw_graph_free(struct gw_graph *g);
GW_API void gw_graph_host(struct gw_host *h);           /* fills graph_node, graph_link, note   */
GW_API uint32_t gw_graph_find_node(const struct gw_graph *g, const char *name); /* GW_NONE      */
GW_API uint32_t gw_graph_find_link(const struct gw_graph *g, const char *name);
/* "wan:a" -> directed link 2*link+dir whose sender is that end. A bare link or unknown name is
 * refused with a sentence (both ends, or did-you-mean) that starts with @where. */
GW_API enum gw_status gw_graph_find_dev(const struct gw_graph *g, const char *dev,
                                        const char *where, uint32_t *dirlink,
                                        struct gw_error *err);
/* Device name of directed link @dirlink: "wan:a". */
GW_API const char *gw_graph_dev_name(const struct gw_graph *g, uint32_t dirlink, char *buf,
                                     size_t n);

/* What the builder refused first (a link to itself, a node that is not there); NULL: nothing. */
GW_API const char *gw_graph_problem(const struct gw_graph *g);
/*
 * Applies the map `links: {NAME: {rate, delay, loss, channel, qdisc, mtu, framing, weight}}` to the
 * built graph. NAME is a link, for both directions, or a device ("wan:a") for the direction that
 * leaves that end (then without mtu, framing and weight). @links may be NULL.
 */
GW_API enum gw_status gw_graph_override(struct gw_graph *g, struct gw_value *links,
                                        struct gw_error *err);

/*
 * A topology made from the map `topology:` of a study: plugin found (`kind:`, or `file:` and
 * `graph:` alone), options read, graph built, `links:` applied. Owns the graph and the plugin's
 * conf and priv; @v must outlive it.
 */
struct gw_registry;
struct gw_topo {
    struct gw_topology topology;         /* what the plugin's callbacks get                   */
    const struct gw_topology_ops *ops;
    const struct gw_plugin *plugin;
    struct gw_graph *graph;
    uint32_t hosts;                      /* how many nodes are hosts                          */
    uint32_t radix;                      /* its option k (of a fat tree), 0: it has none      */
    void *conf;
};

GW_API enum gw_status gw_topo_open(struct gw_topo *t, struct gw_registry *r, struct gw_value *v,
                                   const char *study_dir, struct gw_error *err);
GW_API void gw_topo_close(struct gw_topo *t);

/* Ports: port i of node v is its i-th link in order of addition. Compressed rows. */
struct gw_adj {
    uint32_t *first;             /* node_count + 1                                             */
    uint32_t *out;               /* directed link that leaves by the port                      */
};

enum gw_metric { GW_METRIC_HOPS, GW_METRIC_DELAY, GW_METRIC_WEIGHT };

/*
 * Routes: for a node and the leaf of a destination, the equal-cost directed links, in order of
 * ports. A leaf is the single neighbour of a one-link host if that neighbour forwards, else the
 * host itself; searched once per leaf with igraph. At the leaf itself the row is empty: what is
 * left is the destination's one link, last[dst].
 * row[leaf * node_count + node] -> list of out dirlinks in `pool`.
 */
struct gw_routes {
    struct gw_adj adj;
    uint32_t *leaf_of;           /* node -> leaf index, GW_NONE for switches                   */
    uint32_t *leaf_node;         /* leaf index -> node                                         */
    uint32_t *last;              /* node -> directed link from its leaf to it, GW_NONE: itself */
    uint32_t  node_count;
    uint32_t  leaf_count;
    struct gw_route_row { uint32_t first; uint32_t count; } *row;
    uint32_t *pool;              /* shared lists (equal lists are stored once)                 */
    uint32_t  pool_count;
    uint32_t *component;         /* connected component of each node                           */
};

GW_API struct gw_routes *gw_routes_new(const struct gw_graph *g, enum gw_metric metric,
                                       struct gw_error *err);
GW_API void gw_routes_free(struct gw_routes *r);

/* The equal-cost directed links from @node towards host @dst; *count 0: no way, or it is @dst. */
static inline const uint32_t *gw_routes_next(const struct gw_routes *r, uint32_t node,
                                             uint32_t dst, uint32_t *count)
{
    uint32_t leaf = r->leaf_of[dst];
    const struct gw_route_row *row;

    *count = 0;
    if (leaf == GW_NONE || node == dst)
        return NULL;
    if (r->leaf_node[leaf] == node) {
        *count = 1;
        return &r->last[dst];
    }
    row    = &r->row[(size_t)leaf * r->node_count + node];
    *count = row->count;
    return r->pool + row->first;
}

/* GW_ROUTE with a sentence naming both components (a member and size of each) if there is no way.
 */
GW_API enum gw_status gw_routes_check(const struct gw_graph *g, const struct gw_routes *r,
                                      uint32_t src, uint32_t dst, const char *where,
                                      struct gw_error *err);

#endif
