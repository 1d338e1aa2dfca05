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

/* Ports: port i of node v is its i-th link in order of addition. Compressed rows. */
struct gw_adj {
    uint32_t *first;             /* node_count + 1                                             */
    uint32_t *out;               /* directed link that leaves by the port                      */
};

enum gw_metric { GW_METRIC_HOPS, GW_METRIC_DELAY, GW_METRIC_WEIGHT };

/*
 * Routes: for a node and the leaf of a destination, the equal-cost directed links. A leaf is the
 * single neighbour of a one-link host, else the host itself; searched once per leaf with igraph.
 * rows[leaf * node_count + node] -> list of out dirlinks in `pool`.
 */
struct gw_routes {
    struct gw_adj adj;
    uint32_t *leaf_of;           /* node -> leaf index, GW_NONE for switches                   */
    uint32_t *leaf_node;         /* leaf index -> node                                         */
    uint32_t  leaf_count;
    struct gw_route_row { uint32_t first; uint32_t count; } *row;
    uint32_t *pool;              /* shared lists (equal lists are stored once)                 */
    uint32_t  pool_count;
    uint32_t *component;         /* connected component of each node                           */
};

GW_API struct gw_routes *gw_routes_new(const struct gw_graph *g, enum gw_metric metric,
                                       struct gw_error *err);
GW_API void gw_routes_free(struct gw_routes *r);
/* GW_ROUTE with a sentence naming both components (a member and size of each) if there is no way.
 */
GW_API enum gw_status gw_routes_check(const struct gw_graph *g, const struct gw_routes *r,
                                      uint32_t src, uint32_t dst, const char *where,
                                      struct gw_error *err);

#endif
