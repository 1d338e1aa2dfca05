/*
 * topo_leaf_spine - a two-stage Clos network
 *
 * Hosts h0.. hang off leaves leaf0.., every leaf has one link to every spine spine0... Between
 * hosts of different leaves there are as many equal paths as spines. Host i sits on leaf
 * i / hosts. The fabric is oversubscribed by hosts * link.rate / (spines * fabric.rate).
 * Alizadeh et al., "CONGA", SIGCOMM 2014, section 2 describes the kind.
 * Left out: several links between a leaf and a spine; write these in place with `graph:`.
 */
#include <gradwire/gradwire.h>

struct leaf_spine_conf {
    uint32_t leaves, spines, hosts;      /* hosts per leaf                                     */
    struct gw_link_conf link, fabric;
    uint64_t mtu_bytes, framing_bytes;
};

#define FABRIC_RATE_BIT (UINT64_C(1) << 8)       /* row "fabric.rate" in leaf_spine_params     */
#define FABRIC_DELAY_BIT (UINT64_C(1) << 9)
#define NODES_MAX 4000000u

static enum gw_status add_nodes(struct gw_topology *t, const char *prefix, uint32_t count,
                                enum gw_node_kind kind, uint32_t tier, struct gw_error *err)
{
    uint32_t i;
    char name[24];

    for (i = 0; i < count; i++) {
        snprintf(name, sizeof name, "%s%u", prefix, i);
        if (t->host->graph_node(t->graph, name, kind, tier) == GW_NONE)
            return gw_fail(err, GW_NOMEM, "leaf-spine: out of memory for node %s", name);
    }
    return GW_OK;
}

/* Nodes: hosts, leaves, spines. Links: hosts' in order, then leaf by leaf to all spines. */
static enum gw_status leaf_spine_build(struct gw_topology *t, struct gw_error *err)
{
    const struct leaf_spine_conf *c = t->conf;
    struct gw_link_spec edge = gw_link_spec_of(&c->link, c->mtu_bytes, c->framing_bytes);
    struct gw_link_spec up = gw_link_spec_of(&c->fabric, c->mtu_bytes, c->framing_bytes);
    uint64_t hosts = (uint64_t)c->leaves * c->hosts;
    uint32_t n = (uint32_t)hosts, i;
    char where[512];

    if (hosts > NODES_MAX || (uint64_t)c->leaves * c->spines > NODES_MAX)
        return gw_fail(err, GW_PARAM, "%s: leaf-spine with %u leaves, %u spines and %u hosts a "
                       "leaf; at most %u hosts and as many links between switches are right",
                       t->host->value_where(t->value, where, sizeof where), c->leaves, c->spines,
                       c->hosts, NODES_MAX);
    if (!(t->given & FABRIC_RATE_BIT))
        up.rate_bps = c->link.rate_bps;
    if (!(t->given & FABRIC_DELAY_BIT))
        up.delay_ps = c->link.delay_ps;
    if (add_nodes(t, "h", n, GW_NODE_HOST, 0, err) != GW_OK ||
        add_nodes(t, "leaf", c->leaves, GW_NODE_SWITCH, 0, err) != GW_OK ||
        add_nodes(t, "spine", c->spines, GW_NODE_SWITCH, 1, err) != GW_OK)
        return GW_NOMEM;
    for (i = 0; i < n; i++) {
        if (t->host->graph_link(t->graph, i, n + i / c->hosts, &edge) == GW_NONE)
            return gw_fail(err, GW_NOMEM, "leaf-spine: out of memory for the link of host %u", i);
    }
    for (i = 0; i < c->leaves * c->spines; i++) {
        if (t->host->graph_link(t->graph, n + i / c->spines, n + c->leaves + i % c->spines,
                                &up) == GW_NONE)
            return gw_fail(err, GW_NOMEM, "leaf-spine: out of memory for fabric link %u", i);
    }
    return GW_OK;
}

/* Leaf: ports 0 .. hosts-1 down, then one per spine. Spine: port l to leaf l. */
static struct gw_ports leaf_spine_next_ports(const struct gw_topology *t, uint32_t node,
                                             uint32_t dst)
{
    const struct leaf_spine_conf *c = t->conf;
    uint32_t n = c->leaves * c->hosts, leaf;

    if (node == dst || dst >= n)
        return (struct gw_ports){ 0, 0 };
    if (node < n)
        return (struct gw_ports){ .first = 0, .count = 1 };
    leaf = dst / c->hosts;
    if (node >= n + c->leaves)
        return (struct gw_ports){ .first = leaf, .count = 1 };
    if (node - n == leaf)
        return (struct gw_ports){ .first = dst % c->hosts, .count = 1 };
    return (struct gw_ports){ .first = c->hosts, .count = c->spines };
}

static const struct gw_topology_ops leaf_spine_ops = {
    .conf_bytes = sizeof(struct leaf_spine_conf),
    .build      = leaf_spine_build,
    .next_ports = leaf_spine_next_ports,
};

static const struct gw_param leaf_spine_params[] = {
    { "leaves", GW_P_U32, offsetof(struct leaf_spine_conf, leaves), "4", "1", "100000",
      "Leaf switches, leaf0 and up." },
    { "spines", GW_P_U32, offsetof(struct leaf_spine_conf, spines), "2", "1", "100000",
      "Spine switches, spine0 and up." },
    { "hosts", GW_P_U32, offsetof(struct leaf_spine_conf, hosts), "8", "1", "100000",
      "Hosts on each leaf; h0 and up over all leaves." },
    GW_LINK_PARAMS("link.", leaf_spine_conf, link, "100gbit", "1us"),
    GW_LINK_PARAMS("fabric.", leaf_spine_conf, fabric, "", ""),
    GW_FRAME_PARAMS(leaf_spine_conf, "24"),
};
_Static_assert(GW_ARRAY_LEN(leaf_spine_params) == 15, "FABRIC_RATE_BIT counts rows");

GW_PLUGIN(gw_topology_leaf_spine) = {
    GW_PLUGIN_HEAD(GW_KIND_TOPOLOGY, leaf_spine_ops),
    .name    = "leaf-spine",
    .summary = "Leaves with hosts, each linked to every spine; fabric links are like host links "
               "unless fabric says otherwise.",
    .params  = leaf_spine_params, .param_count = GW_ARRAY_LEN(leaf_spine_params),
};
