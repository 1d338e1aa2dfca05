/*
 * topo_pair - two hosts and one link
 *
 * For looking at a queue discipline or a channel alone: hosts a and b, one link `v`, devices
 * "v:a" and "v:b". By default the link has no rate of its own, no delay and no framing, so that
 * nothing but what is put on it shapes the traffic and closed forms hold to the byte.
 */
#include <gradwire/gradwire.h>

struct pair_conf {
    struct gw_link_conf link;
    uint64_t mtu_bytes, framing_bytes;
};

static enum gw_status pair_build(struct gw_topology *t, struct gw_error *err)
{
    const struct pair_conf *c = t->conf;
    struct gw_link_spec spec = gw_link_spec_of(&c->link, c->mtu_bytes, c->framing_bytes);
    uint32_t a, b;

    spec.name = "v";
    a = t->host->graph_node(t->graph, "a", GW_NODE_HOST, 0);
    b = t->host->graph_node(t->graph, "b", GW_NODE_HOST, 0);
    if (a == GW_NONE || b == GW_NONE || t->host->graph_link(t->graph, a, b, &spec) == GW_NONE)
        return gw_fail(err, GW_NOMEM, "pair: out of memory");
    return GW_OK;
}

static struct gw_ports pair_next_ports(const struct gw_topology *t, uint32_t node, uint32_t dst)
{
    (void)t;
    return (struct gw_ports){ .first = 0, .count = node != dst };
}

static const struct gw_topology_ops pair_ops = {
    .conf_bytes = sizeof(struct pair_conf),
    .build      = pair_build,
    .next_ports = pair_next_ports,
};

static const struct gw_param pair_params[] = {
    GW_LINK_PARAMS("", pair_conf, link, "0", "0"),
    GW_FRAME_PARAMS(pair_conf, "0"),
};

GW_PLUGIN(gw_topology_pair) = {
    GW_PLUGIN_HEAD(GW_KIND_TOPOLOGY, pair_ops),
    .name    = "pair",
    .summary = "Two hosts a and b and one link v.",
    .params  = pair_params, .param_count = GW_ARRAY_LEN(pair_params),
};
