/*
 * topo_fat_tree - the three-tier fat tree of k-port switches
 *
 * k pods of k/2 edge and k/2 aggregation switches, (k/2)^2 core switches, k^3/4 hosts h0.. in
 * order of pods; switches p0e0.. (tier 0), p0a0.. (tier 1), c0.. (tier 2); 3k^3/4 links, all alike.
 * Aggregation switch j of each pod is linked to cores j*k/2 .. j*k/2 + k/2-1. Hosts of different
 * pods have (k/2)^2 equal paths. Al-Fares, Loukissas, Vahdat, "A scalable, commodity data center
 * network architecture", SIGCOMM 2008, section 3.
 *
 * Ports: an edge switch has hosts on ports 0 .. k/2-1 and up ports behind them; an aggregation
 * switch edges, then cores; a core switch has pod p on port p. Up ports are neighbours, so a route
 * is one division.
 * Left out: the paper's two-level tables and addresses; oversubscription.
 */
#include <gradwire/gradwire.h>

struct fat_tree_conf {
    uint32_t k;
    struct gw_link_conf link;
    uint64_t mtu_bytes, framing_bytes;
};

struct fat_tree_priv {
    uint32_t half;               /* k/2                                                        */
    uint32_t hosts;              /* k^3/4: nodes 0 .. hosts-1                                  */
    uint32_t edge0, agg0, core0; /* first node of each tier; edge and agg in order of pods     */
};

static enum gw_status fat_tree_nodes(struct gw_topology *t, const struct fat_tree_priv *x,
                                     struct gw_error *err)
{
    uint32_t i, per_tier = x->agg0 - x->edge0, added = 0;
    char name[24];

    for (i = 0; i < x->hosts; i++) {
        snprintf(name, sizeof name, "h%u", i);
        added += t->host->graph_node(t->graph, name, GW_NODE_HOST, 0) != GW_NONE;
    }
    for (i = 0; i < 2 * per_tier; i++) {
        uint32_t j = i % per_tier;

        snprintf(name, sizeof name, "p%u%c%u", j / x->half, i < per_tier ? 'e' : 'a',
                 j % x->half);
        added += t->host->graph_node(t->graph, name, GW_NODE_SWITCH, i / per_tier) != GW_NONE;
    }
    for (i = 0; i < x->half * x->half; i++) {
        snprintf(name, sizeof name, "c%u", i);
        added += t->host->graph_node(t->graph, name, GW_NODE_SWITCH, 2) != GW_NONE;
    }
    if (added != x->core0 + x->half * x->half)
        return gw_fail(err, GW_NOMEM, "fat-tree: out of memory for %u nodes", added);
    return GW_OK;
}

/* Links of hosts, of edges to aggregation, of aggregation to cores: lower end first. */
static enum gw_status fat_tree_links(struct gw_topology *t, const struct fat_tree_priv *x,
                                     struct gw_error *err)
{
    const struct fat_tree_conf *c = t->conf;
    struct gw_link_spec spec = gw_link_spec_of(&c->link, c->mtu_bytes, c->framing_bytes);
    uint32_t i, added = 0;

    for (i = 0; i < x->hosts; i++)
        added += t->host->graph_link(t->graph, i, x->edge0 + i / x->half, &spec) != GW_NONE;
    for (i = 0; i < x->hosts; i++) {
        uint32_t edge = i / x->half, pod = edge / x->half;

        added += t->host->graph_link(t->graph, x->edge0 + edge,
                                     x->agg0 + pod * x->half + i % x->half, &spec) != GW_NONE;
    }
    for (i = 0; i < x->hosts; i++) {
        uint32_t agg = i / x->half, j = agg % x->half;

        added += t->host->graph_link(t->graph, x->agg0 + agg,
                                     x->core0 + j * x->half + i % x->half, &spec) != GW_NONE;
    }
    if (added != 3 * x->hosts)
        return gw_fail(err, GW_NOMEM, "fat-tree: out of memory for %u links", 3 * x->hosts);
    return GW_OK;
}

static enum gw_status fat_tree_build(struct gw_topology *t, struct gw_error *err)
{
    const struct fat_tree_conf *c = t->conf;
    struct fat_tree_priv *x = t->priv;
    enum gw_status st;
    char where[512];

    if (c->k % 2) {
        struct gw_value *k = t->host->value_get(t->value, "k");

        return gw_fail(err, GW_PARAM, "%s: fat-tree: k is %u; an even number of ports is right",
                       t->host->value_where(k ? k : t->value, where, sizeof where), c->k);
    }
    x->half  = c->k / 2;
    x->hosts = c->k * x->half * x->half;
    x->edge0 = x->hosts;
    x->agg0  = x->edge0 + c->k * x->half;
    x->core0 = x->agg0 + c->k * x->half;
    st = fat_tree_nodes(t, x, err);
    return st == GW_OK ? fat_tree_links(t, x, err) : st;
}

static struct gw_ports edge_ports(const struct fat_tree_priv *x, uint32_t edge, uint32_t dst)
{
    if (dst / x->half == edge)
        return (struct gw_ports){ .first = dst % x->half, .count = 1 };
    return (struct gw_ports){ .first = x->half, .count = x->half };
}

static struct gw_ports agg_ports(const struct fat_tree_priv *x, uint32_t agg, uint32_t dst)
{
    uint32_t edge = dst / x->half;

    if (edge / x->half == agg / x->half)
        return (struct gw_ports){ .first = edge % x->half, .count = 1 };
    return (struct gw_ports){ .first = x->half, .count = x->half };
}

static struct gw_ports fat_tree_next_ports(const struct gw_topology *t, uint32_t node,
                                           uint32_t dst)
{
    const struct fat_tree_priv *x = t->priv;

    if (node == dst || dst >= x->hosts)
        return (struct gw_ports){ 0, 0 };
    if (node < x->edge0)
        return (struct gw_ports){ .first = 0, .count = 1 };
    if (node < x->agg0)
        return edge_ports(x, node - x->edge0, dst);
    if (node < x->core0)
        return agg_ports(x, node - x->agg0, dst);
    return (struct gw_ports){ .first = dst / (x->half * x->half), .count = 1 };
}

static const struct gw_topology_ops fat_tree_ops = {
    .conf_bytes = sizeof(struct fat_tree_conf),
    .priv_bytes = sizeof(struct fat_tree_priv),
    .build      = fat_tree_build,
    .next_ports = fat_tree_next_ports,
};

static const struct gw_param fat_tree_params[] = {
    { "k", GW_P_U32, offsetof(struct fat_tree_conf, k), "4", "2", "128",
      "Ports of each switch, an even number; k^3/4 hosts." },
    GW_LINK_PARAMS("link.", fat_tree_conf, link, "100gbit", "1us"),
    GW_FRAME_PARAMS(fat_tree_conf, "24"),
};

GW_PLUGIN(gw_topology_fat_tree) = {
    GW_PLUGIN_HEAD(GW_KIND_TOPOLOGY, fat_tree_ops),
    .name    = "fat-tree",
    .summary = "The three-tier fat tree of switches with k ports.",
    .params  = fat_tree_params, .param_count = GW_ARRAY_LEN(fat_tree_params),
    .source  = "Al-Fares et al., SIGCOMM 2008",
};
