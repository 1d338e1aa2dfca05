/*
 * topo_dumbbell - two groups of hosts and one shared link between them
 *
 * The standard picture of congestion-control studies (Floyd, RFC 5166, section 3.1): hosts l0.. on
 * switch s0, hosts r0.. on switch s1, and the link `bottleneck` with the ends a (at s0) and b (at
 * s1), so "bottleneck:a" is the queue that left-to-right traffic meets.
 * Left out: different delays per host; `links: {l0-s0: {delay: 5ms}}` sets them.
 */
#include <gradwire/gradwire.h>

struct dumbbell_conf {
    uint32_t hosts;              /* per side                                                   */
    struct gw_link_conf link, bottleneck;
    uint64_t mtu_bytes, framing_bytes;
};

static enum gw_status side_nodes(struct gw_topology *t, char letter, uint32_t count,
                                 struct gw_error *err)
{
    uint32_t i;
    char name[16];

    for (i = 0; i < count; i++) {
        snprintf(name, sizeof name, "%c%u", letter, i);
        if (t->host->graph_node(t->graph, name, GW_NODE_HOST, 0) == GW_NONE)
            return gw_fail(err, GW_NOMEM, "dumbbell: out of memory for host %s", name);
    }
    return GW_OK;
}

/* Nodes: left hosts, right hosts, s0, s1. Links: left hosts', right hosts', the bottleneck. */
static enum gw_status dumbbell_build(struct gw_topology *t, struct gw_error *err)
{
    const struct dumbbell_conf *c = t->conf;
    struct gw_link_spec edge = gw_link_spec_of(&c->link, c->mtu_bytes, c->framing_bytes);
    struct gw_link_spec neck = gw_link_spec_of(&c->bottleneck, c->mtu_bytes, c->framing_bytes);
    uint32_t i, s0, s1;

    if (side_nodes(t, 'l', c->hosts, err) != GW_OK || side_nodes(t, 'r', c->hosts, err) != GW_OK)
        return GW_NOMEM;
    s0 = t->host->graph_node(t->graph, "s0", GW_NODE_SWITCH, 0);
    s1 = t->host->graph_node(t->graph, "s1", GW_NODE_SWITCH, 0);
    if (s0 == GW_NONE || s1 == GW_NONE)
        return gw_fail(err, GW_NOMEM, "dumbbell: out of memory for the switches");
    for (i = 0; i < 2 * c->hosts; i++) {
        if (t->host->graph_link(t->graph, i, i < c->hosts ? s0 : s1, &edge) == GW_NONE)
            return gw_fail(err, GW_NOMEM, "dumbbell: out of memory for link %u", i);
    }
    neck.name        = "bottleneck";
    neck.end_name[0] = "a";
    neck.end_name[1] = "b";
    if (t->host->graph_link(t->graph, s0, s1, &neck) == GW_NONE)
        return gw_fail(err, GW_NOMEM, "dumbbell: out of memory for the bottleneck");
    return GW_OK;
}

/* Port i of a switch leads to its i-th host, port `hosts` over the bottleneck. */
static struct gw_ports dumbbell_next_ports(const struct gw_topology *t, uint32_t node,
                                           uint32_t dst)
{
    uint32_t n = ((const struct dumbbell_conf *)t->conf)->hosts, side;

    if (node == dst || dst >= 2 * n)
        return (struct gw_ports){ 0, 0 };
    if (node < 2 * n)
        return (struct gw_ports){ .first = 0, .count = 1 };
    side = node - 2 * n;
    return (struct gw_ports){ .first = dst / n == side ? dst % n : n, .count = 1 };
}

static const struct gw_topology_ops dumbbell_ops = {
    .conf_bytes = sizeof(struct dumbbell_conf),
    .build      = dumbbell_build,
    .next_ports = dumbbell_next_ports,
};

static const struct gw_param dumbbell_params[] = {
    { "hosts", GW_P_U32, offsetof(struct dumbbell_conf, hosts), "4", "1", "500000",
      "Hosts on each side, l0 and up, r0 and up." },
    GW_LINK_PARAMS("link.", dumbbell_conf, link, "10gbit", "1us"),
    GW_LINK_PARAMS("bottleneck.", dumbbell_conf, bottleneck, "1gbit", "10ms"),
    GW_FRAME_PARAMS(dumbbell_conf, "24"),
};

GW_PLUGIN(gw_topology_dumbbell) = {
    GW_PLUGIN_HEAD(GW_KIND_TOPOLOGY, dumbbell_ops),
    .name    = "dumbbell",
    .summary = "Two groups of hosts that share one link.",
    .params  = dumbbell_params, .param_count = GW_ARRAY_LEN(dumbbell_params),
    .source  = "RFC 5166, section 3.1",
};
