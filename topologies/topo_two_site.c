/*
 * topo_two_site - two leaf-spine sites joined by one wide-area link
 *
 * Training across two data centres: hosts a0.. at site a, b0.. at site b; in each site leaves
 * (a-leaf0..), spines (a-spine0..) and a border router (a-border) that every spine is linked to;
 * between the border routers the link `wan` with the ends a and b, so "wan:a" is the queue that
 * traffic from site a to site b meets. Path: NIC, leaf, spine, border, wan, and down again.
 *
 * What is not said is chosen so that only the NICs and the wan link can be short: one leaf for up
 * to 32 hosts, one spine for one leaf, else two, and fabric links as fast as a leaf's hosts
 * together over the spines, never slower than a NIC or the wan link.
 * Left out: several border routers or wan links; `graph:` or a file takes these.
 */
#include <gradwire/gradwire.h>

struct two_site_conf {
    uint32_t hosts, leaves, spines;      /* per site; leaves, spines 0: chosen                 */
    struct gw_link_conf nic, fabric, wan;
    uint64_t mtu_bytes, framing_bytes;
};

#define FABRIC_RATE_BIT (UINT64_C(1) << 8)       /* row "fabric.rate" in two_site_params       */
#define HOSTS_PER_LEAF 32u

struct two_site_plan {           /* what is chosen, and the first node of each kind by site    */
    uint32_t leaves, spines, per_leaf;
    uint32_t host[2], leaf[2], spine[2], border[2];
    struct gw_link_spec nic, fabric, wan;
};

static uint64_t fabric_rate(const struct two_site_conf *c, const struct two_site_plan *p)
{
    uint64_t rate;

    if (!c->nic.rate_bps || !c->wan.rate_bps)
        return 0;
    rate = gw_mul_div(c->nic.rate_bps, p->per_leaf, p->spines);
    if (rate < c->nic.rate_bps)
        rate = c->nic.rate_bps;
    return rate < c->wan.rate_bps ? c->wan.rate_bps : rate;
}

static enum gw_status two_site_plan(const struct gw_topology *t, struct two_site_plan *p,
                                    struct gw_error *err)
{
    const struct two_site_conf *c = t->conf;
    char where[512];

    memset(p, 0, sizeof *p);
    p->leaves = c->leaves ? c->leaves : (c->hosts + HOSTS_PER_LEAF - 1) / HOSTS_PER_LEAF;
    p->spines = c->spines ? c->spines : p->leaves > 1 ? 2 : 1;
    if (p->leaves > c->hosts) {
        struct gw_value *v = t->host->value_get(t->value, "leaves");

        return gw_fail(err, GW_PARAM, "%s: two-site: %u leaves for %u hosts a site; at most one "
                       "leaf a host is right", t->host->value_where(v ? v : t->value, where,
                       sizeof where), p->leaves, c->hosts);
    }
    p->per_leaf = (c->hosts + p->leaves - 1) / p->leaves;
    p->nic      = gw_link_spec_of(&c->nic, c->mtu_bytes, c->framing_bytes);
    p->fabric   = gw_link_spec_of(&c->fabric, c->mtu_bytes, c->framing_bytes);
    p->wan      = gw_link_spec_of(&c->wan, c->mtu_bytes, c->framing_bytes);
    if (!(t->given & FABRIC_RATE_BIT))
        p->fabric.rate_bps = fabric_rate(c, p);
    p->wan.name        = "wan";
    p->wan.end_name[0] = "a";
    p->wan.end_name[1] = "b";
    return GW_OK;
}

/* @count nodes named by site, @infix and number; *first gets the index of the first. */
static bool add_nodes(struct gw_topology *t, int site, const char *infix, uint32_t count,
                      enum gw_node_kind kind, uint32_t tier, uint32_t *first)
{
    uint32_t i, v;
    char name[32];

    for (i = 0; i < count; i++) {
        snprintf(name, sizeof name, "%c%s%u", 'a' + site, infix, i);
        v = t->host->graph_node(t->graph, name, kind, tier);
        if (v == GW_NONE)
            return false;
        if (!i)
            *first = v;
    }
    return true;
}

static bool two_site_nodes(struct gw_topology *t, struct two_site_plan *p)
{
    const struct two_site_conf *c = t->conf;
    int s;

    for (s = 0; s < 2; s++) {
        if (!add_nodes(t, s, "", c->hosts, GW_NODE_HOST, 0, &p->host[s]))
            return false;
    }
    for (s = 0; s < 2; s++) {
        p->border[s] = GW_NONE;
        if (!add_nodes(t, s, "-leaf", p->leaves, GW_NODE_SWITCH, 0, &p->leaf[s]) ||
            !add_nodes(t, s, "-spine", p->spines, GW_NODE_SWITCH, 1, &p->spine[s]))
            return false;
        p->border[s] = t->host->graph_node(t->graph, s ? "b-border" : "a-border", GW_NODE_SWITCH,
                                           2);
        if (p->border[s] == GW_NONE)
            return false;
    }
    return true;
}

static bool site_links(struct gw_topology *t, const struct two_site_plan *p, int s)
{
    const struct two_site_conf *c = t->conf;
    const struct gw_host *h = t->host;
    uint32_t i;

    for (i = 0; i < c->hosts; i++) {
        uint32_t leaf = p->leaf[s] + (uint32_t)((uint64_t)i * p->leaves / c->hosts);

        if (h->graph_link(t->graph, p->host[s] + i, leaf, &p->nic) == GW_NONE)
            return false;
    }
    for (i = 0; i < p->leaves * p->spines; i++) {
        if (h->graph_link(t->graph, p->leaf[s] + i / p->spines, p->spine[s] + i % p->spines,
                          &p->fabric) == GW_NONE)
            return false;
    }
    for (i = 0; i < p->spines; i++) {
        if (h->graph_link(t->graph, p->spine[s] + i, p->border[s], &p->fabric) == GW_NONE)
            return false;
    }
    return true;
}

static enum gw_status two_site_build(struct gw_topology *t, struct gw_error *err)
{
    struct two_site_plan p;
    enum gw_status st = two_site_plan(t, &p, err);

    if (st != GW_OK)
        return st;
    if (!two_site_nodes(t, &p) || !site_links(t, &p, 0) || !site_links(t, &p, 1) ||
        t->host->graph_link(t->graph, p.border[0], p.border[1], &p.wan) == GW_NONE)
        return gw_fail(err, GW_NOMEM, "two-site: out of memory for the graph");
    return GW_OK;
}

static const struct gw_topology_ops two_site_ops = {
    .conf_bytes = sizeof(struct two_site_conf),
    .build      = two_site_build,
};

static const struct gw_param two_site_params[] = {
    { "hosts", GW_P_U32, offsetof(struct two_site_conf, hosts), "4", "1", "100000",
      "Hosts at each site, a0 and up, b0 and up." },
    { "leaves", GW_P_U32, offsetof(struct two_site_conf, leaves), "0", "0", "1000",
      "Leaf switches at each site; 0: one for every 32 hosts." },
    { "spines", GW_P_U32, offsetof(struct two_site_conf, spines), "0", "0", "1000",
      "Spine switches at each site; 0: one for one leaf, else two." },
    GW_LINK_PARAMS("nic.", two_site_conf, nic, "25gbit", "1us"),
    GW_LINK_PARAMS("fabric.", two_site_conf, fabric, "", "1us"),
    GW_LINK_PARAMS("wan.", two_site_conf, wan, "10gbit", "20ms"),
    GW_FRAME_PARAMS(two_site_conf, "24"),
};
_Static_assert(GW_ARRAY_LEN(two_site_params) == 20, "FABRIC_RATE_BIT counts rows");

GW_PLUGIN(gw_topology_two_site) = {
    GW_PLUGIN_HEAD(GW_KIND_TOPOLOGY, two_site_ops),
    .name    = "two-site",
    .summary = "Two leaf-spine sites joined by one wide-area link; the fabric is wide enough "
               "unless fabric says otherwise.",
    .params  = two_site_params, .param_count = GW_ARRAY_LEN(two_site_params),
};
