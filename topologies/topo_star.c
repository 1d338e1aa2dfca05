/*
 * topo_star - hosts around one switch
 *
 * The plainest network that can have incast: every host has one link to the switch, named like
 * "h0-s0", with the devices "h0-s0:h0" (the host's NIC) and "h0-s0:s0" (the switch's port).
 * Left out: a limit of the switch's own fabric; ports share nothing but what a discipline says.
 */
#include <gradwire/gradwire.h>

struct star_conf {
    uint32_t hosts;
    struct gw_link_conf link;
    uint64_t mtu_bytes, framing_bytes;
};

static enum gw_status star_build(struct gw_topology *t, struct gw_error *err)
{
    const struct star_conf *c = t->conf;
    struct gw_link_spec spec = gw_link_spec_of(&c->link, c->mtu_bytes, c->framing_bytes);
    uint32_t i, hub;
    char name[16];

    for (i = 0; i < c->hosts; i++) {
        snprintf(name, sizeof name, "h%u", i);
        if (t->host->graph_node(t->graph, name, GW_NODE_HOST, 0) != i)
            return gw_fail(err, GW_NOMEM, "star: out of memory for host %s", name);
    }
    hub = t->host->graph_node(t->graph, "s0", GW_NODE_SWITCH, 0);
    if (hub == GW_NONE)
        return gw_fail(err, GW_NOMEM, "star: out of memory for the switch");
    for (i = 0; i < c->hosts; i++) {
        if (t->host->graph_link(t->graph, i, hub, &spec) == GW_NONE)
            return gw_fail(err, GW_NOMEM, "star: out of memory for the link of host %u", i);
    }
    return GW_OK;
}

/* Hosts are nodes 0 .. n-1 and have one port; port i of the switch leads to host i. */
static struct gw_ports star_next_ports(const struct gw_topology *t, uint32_t node, uint32_t dst)
{
    const struct star_conf *c = t->conf;

    if (node == dst || dst >= c->hosts)
        return (struct gw_ports){ 0, 0 };
    return (struct gw_ports){ .first = node == c->hosts ? dst : 0, .count = 1 };
}

static const struct gw_topology_ops star_ops = {
    .conf_bytes = sizeof(struct star_conf),
    .build      = star_build,
    .next_ports = star_next_ports,
};

static const struct gw_param star_params[] = {
    { "hosts", GW_P_U32, offsetof(struct star_conf, hosts), "8", "1", "1000000",
      "Number of hosts, h0 and up." },
    GW_LINK_PARAMS("link.", star_conf, link, "10gbit", "1us"),
    GW_FRAME_PARAMS(star_conf, "24"),
};

GW_PLUGIN(gw_topology_star) = {
    GW_PLUGIN_HEAD(GW_KIND_TOPOLOGY, star_ops),
    .name    = "star",
    .summary = "Hosts around one switch.",
    .params  = star_params, .param_count = GW_ARRAY_LEN(star_params),
};
