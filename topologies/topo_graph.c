/*
 * topo_graph - a graph written in place
 *
 *     topology:
 *       graph:
 *         nodes: [s, r1, r2, d]
 *         links:
 *           - {name: m, ends: [r1, r2], rate: 100mbit, delay: 10ms, framing: 0}
 *
 * A node is a name or a map {name, kind: host|switch, transit: yes|no}. Which nodes are hosts, in
 * this order: those with a kind; those in `hosts: [...]` (or `hosts: all`), the rest are switches;
 * else the nodes with a single link; and if these are fewer than two, all nodes, each then a host
 * that also forwards for others. A node of `kind: host` does not forward; one named in `hosts:`
 * does, for it stands for a site. A link needs its ends and a rate (0: infinitely fast), or
 * `rate:` beside `graph:` gives one for all. Two links between the same nodes are two links.
 */
#include <gradwire/gradwire.h>

struct graph_conf {
    const struct gw_value *nodes, *links, *hosts, *outer_hosts;
    struct gw_link_conf link;            /* what a link has that does not say                  */
    uint64_t mtu_bytes, framing_bytes;
};

struct node_conf {
    const char *name;
    uint32_t kind;                       /* KIND_*                                             */
    bool     transit;
};

struct link_conf {
    const char *name;
    const struct gw_value *ends;
    struct gw_link_conf link;
    uint64_t mtu_bytes, framing_bytes;
    double   weight;
};

enum { KIND_AUTO, KIND_HOST, KIND_SWITCH };
enum { NODE_ROW_TRANSIT = 2 };           /* numbers of rows                                    */
enum { LINK_ROW_RATE = 2, LINK_ROW_DELAY, LINK_ROW_LOSS, LINK_ROW_CHANNEL, LINK_ROW_QDISC,
       LINK_ROW_MTU, LINK_ROW_FRAMING };
enum { OUTER_ROW_RATE = 4 };

#define BIT(row) (UINT64_C(1) << (row))

static const struct gw_param node_params[] = {
    { "name", GW_P_STRING, offsetof(struct node_conf, name), NULL, NULL, NULL, "Its name." },
    { "kind", GW_P_CHOICE, offsetof(struct node_conf, kind), "auto", "auto|host|switch", NULL,
      "host: ranks live here, nothing is forwarded; switch: forwards." },
    { "transit", GW_P_BOOL, offsetof(struct node_conf, transit), "no", NULL, NULL,
      "Forwards for others; default: switches do, hosts do not." },
};

static const struct gw_param link_params[] = {
    { "name", GW_P_STRING, offsetof(struct link_conf, name), "", NULL, NULL,
      "Its name; default: its ends, A-B." },
    { "ends", GW_P_VALUE, offsetof(struct link_conf, ends), NULL, NULL, NULL,
      "The two nodes that it joins." },
    GW_LINK_PARAMS("", link_conf, link, "", ""),
    { "mtu", GW_P_BYTES, offsetof(struct link_conf, mtu_bytes), "", "68", "65535",
      "Largest IP packet." },
    { "framing", GW_P_BYTES, offsetof(struct link_conf, framing_bytes), "", "0", "1024",
      "Bytes that each frame takes on the wire beyond its length." },
    { "weight", GW_P_F64, offsetof(struct link_conf, weight), "1", "0.000001", "1000000000",
      "Cost in the routing metric `weight`." },
};

/* What build() keeps by node. */
struct graph_work {
    struct gw_topology *t;
    const struct graph_conf *c;
    uint8_t  *kind;                      /* KIND_* as written                                  */
    uint8_t  *transit;                   /* 0: not said, 1: no, 2: yes                         */
    uint32_t *degree;
    uint32_t  hosts_said;                /* nodes of kind host                                 */
};

/* ---- nodes -------------------------------------------------------------------------------- */

static uint32_t find_node(const struct gw_graph *g, const char *name)
{
    uint32_t i;

    for (i = 0; i < g->node_count; i++) {
        if (!strcmp(g->node[i].name, name))
            return i;
    }
    return GW_NONE;
}

/* The names of the graph for a sentence: "s, r1, r2 ..." */
static const char *some_names(const struct gw_graph *g, char *buf, size_t n)
{
    uint32_t i;
    size_t at = 0;

    buf[0] = '\0';
    for (i = 0; i < g->node_count && i < 8 && at + 2 < n; i++)
        at += (size_t)snprintf(buf + at, n - at, "%s%.30s", i ? ", " : "", g->node[i].name);
    if (i < g->node_count && at + 5 < n)
        snprintf(buf + at, n - at, " ...");
    return buf;
}

static enum gw_status no_node(const struct gw_topology *t, const struct gw_value *v,
                              struct gw_error *err)
{
    char where[512], names[300];

    return gw_fail(err, GW_PARAM, "%s: there is no node \"%.60s\"; the nodes are %s",
                   t->host->value_where(v, where, sizeof where),
                   v->kind == GW_V_SCALAR ? v->text : "(not a name)",
                   some_names(t->graph, names, sizeof names));
}

static enum gw_status read_node(const struct gw_topology *t, struct gw_value *v,
                                struct node_conf *n, uint64_t *given, struct gw_error *err)
{
    char where[512];

    memset(n, 0, sizeof *n);
    *given = 0;
    v->used = true;
    if (v->kind == GW_V_SCALAR)
        n->name = v->text;
    else if (v->kind != GW_V_MAP)
        return gw_fail(err, GW_PARAM, "%s: a node is a name or a map such as {name: s1, kind: "
                       "switch}", t->host->value_where(v, where, sizeof where));
    else if (t->host->params_read(node_params, GW_ARRAY_LEN(node_params), n, v, NULL,
                                  "topology graph: node", given, err) != GW_OK)
        return GW_PARAM;
    if (!n->name || !*n->name)
        return gw_fail(err, GW_PARAM, "%s: a node without a name",
                       t->host->value_where(v, where, sizeof where));
    if (find_node(t->graph, n->name) != GW_NONE)
        return gw_fail(err, GW_PARAM, "%s: node \"%.60s\" stands here a second time; each node "
                       "is named once", t->host->value_where(v, where, sizeof where), n->name);
    return GW_OK;
}

static enum gw_status add_nodes(struct graph_work *w, struct gw_error *err)
{
    struct gw_topology *t = w->t;
    struct gw_value *v;
    struct node_conf n;
    uint64_t given;
    uint32_t i = 0;

    for (v = w->c->nodes->child; v; v = v->next, i++) {
        enum gw_status st = read_node(t, v, &n, &given, err);

        if (st != GW_OK)
            return st;
        if (t->host->graph_node(t->graph, n.name, n.kind == KIND_HOST ? GW_NODE_HOST
                                                                       : GW_NODE_SWITCH,
                                GW_NONE) != i)
            return gw_fail(err, GW_NOMEM, "graph: out of memory for node %.60s", n.name);
        w->kind[i]     = (uint8_t)n.kind;
        w->transit[i]  = given & BIT(NODE_ROW_TRANSIT) ? 1 + n.transit : 0;
        w->hosts_said += n.kind == KIND_HOST;
    }
    return GW_OK;
}

/* ---- links -------------------------------------------------------------------------------- */

static enum gw_status link_ends(const struct gw_topology *t, const struct gw_value *ends,
                                uint32_t end[2], struct gw_error *err)
{
    struct gw_value *v;
    char where[512];
    int i = 0;

    t->host->value_where(ends, where, sizeof where);
    if (ends->kind != GW_V_LIST || !ends->child || !ends->child->next ||
        ends->child->next->next)
        return gw_fail(err, GW_PARAM, "%s: ends wants two nodes, such as [r1, r2]", where);
    for (v = ends->child; v; v = v->next, i++) {
        v->used = true;
        end[i]  = v->kind == GW_V_SCALAR ? find_node(t->graph, v->text) : GW_NONE;
        if (end[i] == GW_NONE)
            return no_node(t, v, err);
    }
    if (end[0] == end[1])
        return gw_fail(err, GW_PARAM, "%s: both ends are \"%.60s\"; a link joins two nodes",
                       where, t->graph->node[end[0]].name);
    return GW_OK;
}

/* What the link leaves open comes from beside `graph:`. */
static enum gw_status link_defaults(const struct graph_work *w, const struct gw_value *v,
                                    struct link_conf *l, uint64_t given, struct gw_error *err)
{
    const struct graph_conf *c = w->c;
    char where[512];

    if (!(given & BIT(LINK_ROW_RATE)) && !(w->t->given & BIT(OUTER_ROW_RATE)))
        return gw_fail(err, GW_PARAM, "%s: the link has no rate; rate: 10gbit, or rate: 0 for "
                       "infinitely fast, is right",
                       w->t->host->value_where(v, where, sizeof where));
    if (!(given & BIT(LINK_ROW_RATE)))
        l->link.rate_bps = c->link.rate_bps;
    if (!(given & BIT(LINK_ROW_DELAY)))
        l->link.delay_ps = c->link.delay_ps;
    if (!(given & BIT(LINK_ROW_LOSS)))
        l->link.loss = c->link.loss;
    if (!(given & BIT(LINK_ROW_CHANNEL)))
        l->link.channel = c->link.channel;
    if (!(given & BIT(LINK_ROW_QDISC)))
        l->link.qdisc = c->link.qdisc;
    if (!(given & BIT(LINK_ROW_MTU)))
        l->mtu_bytes = c->mtu_bytes;
    if (!(given & BIT(LINK_ROW_FRAMING)))
        l->framing_bytes = c->framing_bytes;
    return GW_OK;
}

static bool link_name_taken(const struct gw_graph *g, const char *name)
{
    uint32_t i;

    for (i = 0; i < g->link_count; i++) {
        if (!strcmp(g->link[i].name, name))
            return true;
    }
    return false;
}

static enum gw_status add_link(struct graph_work *w, struct gw_value *v, struct gw_error *err)
{
    struct gw_topology *t = w->t;
    struct gw_link_spec spec;
    struct link_conf l;
    uint64_t given = 0;
    uint32_t end[2];
    char where[512];

    t->host->value_where(v, where, sizeof where);
    v->used = true;
    memset(&l, 0, sizeof l);
    if (v->kind != GW_V_MAP)
        return gw_fail(err, GW_PARAM, "%s: a link is a map such as {ends: [r1, r2], rate: "
                       "10gbit, delay: 5ms}", where);
    if (t->host->params_read(link_params, GW_ARRAY_LEN(link_params), &l, v, NULL,
                             "topology graph: link", &given, err) != GW_OK ||
        link_ends(t, l.ends, end, err) != GW_OK || link_defaults(w, v, &l, given, err) != GW_OK)
        return GW_PARAM;
    if (l.name && link_name_taken(t->graph, l.name))
        return gw_fail(err, GW_PARAM, "%s: a link \"%.60s\" stands before; another name, or "
                       "none, is right", where, l.name);
    spec = gw_link_spec_of(&l.link, l.mtu_bytes, l.framing_bytes);
    spec.name   = l.name;
    spec.weight = l.weight;
    if (t->host->graph_link(t->graph, end[0], end[1], &spec) == GW_NONE)
        return gw_fail(err, GW_NOMEM, "graph: out of memory for the links");
    w->degree[end[0]]++;
    w->degree[end[1]]++;
    return GW_OK;
}

/* ---- which nodes are hosts ---------------------------------------------------------------- */

static void make_host(struct gw_graph_node *n, bool transit)
{
    n->kind    = GW_NODE_HOST;
    n->tier    = GW_NONE;
    n->transit = transit;
}

/* `hosts: all` or a list of names. */
static enum gw_status listed_hosts(struct graph_work *w, const struct gw_value *hosts,
                                   struct gw_error *err)
{
    struct gw_graph *g = w->t->graph;
    struct gw_value *v;
    char where[512];
    uint32_t i;

    if (hosts->kind == GW_V_SCALAR && !strcmp(hosts->text, "all")) {
        for (i = 0; i < g->node_count; i++) {
            if (w->kind[i] != KIND_SWITCH)
                make_host(&g->node[i], w->kind[i] != KIND_HOST);
        }
        return GW_OK;
    }
    if (hosts->kind != GW_V_LIST)
        return gw_fail(err, GW_PARAM, "%s: hosts wants `all` or a list of nodes",
                       w->t->host->value_where(hosts, where, sizeof where));
    for (v = hosts->child; v; v = v->next) {
        v->used = true;
        i = v->kind == GW_V_SCALAR ? find_node(g, v->text) : GW_NONE;
        if (i == GW_NONE)
            return no_node(w->t, v, err);
        if (w->kind[i] == KIND_SWITCH)
            return gw_fail(err, GW_PARAM, "%s: node \"%.60s\" is listed as a host and has kind "
                           "switch", w->t->host->value_where(v, where, sizeof where), v->text);
        make_host(&g->node[i], w->kind[i] != KIND_HOST);
    }
    return GW_OK;
}

/* Nodes with one link; all, if these are fewer than two. */
static void guessed_hosts(struct graph_work *w)
{
    struct gw_graph *g = w->t->graph;
    uint32_t i, ends = 0;

    for (i = 0; i < g->node_count; i++)
        ends += w->kind[i] == KIND_AUTO && w->degree[i] == 1;
    for (i = 0; i < g->node_count; i++) {
        if (w->kind[i] == KIND_AUTO && (ends < 2 || w->degree[i] == 1))
            make_host(&g->node[i], ends < 2);
    }
}

static enum gw_status choose_hosts(struct graph_work *w, struct gw_error *err)
{
    const struct gw_value *hosts = w->c->hosts ? w->c->hosts : w->c->outer_hosts;
    enum gw_status st = GW_OK;
    uint32_t i;

    if (hosts)
        st = listed_hosts(w, hosts, err);
    else if (!w->hosts_said)
        guessed_hosts(w);
    for (i = 0; i < w->t->graph->node_count; i++) {
        if (w->transit[i])
            w->t->graph->node[i].transit = w->transit[i] == 2;
    }
    return st;
}

/* Says which nodes no link reaches: most likely one was forgotten. */
static void note_lonely(const struct graph_work *w)
{
    const struct gw_graph *g = w->t->graph;
    char text[400] = "graph: nodes that no link reaches:";
    size_t at = strlen(text), left = 0;
    uint32_t i;

    for (i = 0; g->node_count > 1 && i < g->node_count; i++) {
        if (w->degree[i])
            continue;
        if (at + strlen(g->node[i].name) + 40 < sizeof text)
            at += (size_t)snprintf(text + at, sizeof text - at, " %s", g->node[i].name);
        else
            left++;
    }
    if (left)
        at += (size_t)snprintf(text + at, sizeof text - at, " and %zu more", left);
    if (text[at - 1] != ':')
        w->t->host->graph_note(w->t->graph, text);
}

/* ---- build -------------------------------------------------------------------------------- */

static enum gw_status check_lists(const struct gw_topology *t, struct gw_error *err)
{
    const struct graph_conf *c = t->conf;
    char where[512];

    if (c->nodes->kind != GW_V_LIST || !c->nodes->child)
        return gw_fail(err, GW_PARAM, "%s: graph.nodes wants a list of nodes, such as [a, b, c]",
                       t->host->value_where(c->nodes, where, sizeof where));
    if (c->links && c->links->kind != GW_V_LIST)
        return gw_fail(err, GW_PARAM, "%s: graph.links wants a list of links, such as [{ends: "
                       "[a, b], rate: 10gbit}]",
                       t->host->value_where(c->links, where, sizeof where));
    return GW_OK;
}

static enum gw_status graph_build(struct gw_topology *t, struct gw_error *err)
{
    struct graph_work w = { .t = t, .c = t->conf };
    enum gw_status st = check_lists(t, err);
    struct gw_value *v;
    size_t count = 0;

    if (st != GW_OK)
        return st;
    for (v = w.c->nodes->child; v; v = v->next)
        count++;
    w.kind    = t->host->alloc(count);
    w.transit = t->host->alloc(count);
    w.degree  = t->host->alloc(count * sizeof *w.degree);
    if (!w.kind || !w.transit || !w.degree)
        st = gw_fail(err, GW_NOMEM, "graph: out of memory");
    if (st == GW_OK)
        st = add_nodes(&w, err);
    for (v = w.c->links ? w.c->links->child : NULL; st == GW_OK && v; v = v->next)
        st = add_link(&w, v, err);
    if (st == GW_OK)
        st = choose_hosts(&w, err);
    if (st == GW_OK)
        note_lonely(&w);
    t->host->release(w.kind);
    t->host->release(w.transit);
    t->host->release(w.degree);
    return st;
}

static const struct gw_topology_ops graph_ops = {
    .conf_bytes = sizeof(struct graph_conf),
    .build      = graph_build,
};

static const struct gw_param graph_params[] = {
    { "graph.nodes", GW_P_VALUE, offsetof(struct graph_conf, nodes), NULL, NULL, NULL,
      "List of nodes: names, or maps {name, kind, transit}." },
    { "graph.links", GW_P_VALUE, offsetof(struct graph_conf, links), "", NULL, NULL,
      "List of links: maps {name, ends, rate, delay, loss, framing, mtu, weight, qdisc, channel}."
    },
    { "graph.hosts", GW_P_VALUE, offsetof(struct graph_conf, hosts), "", NULL, NULL,
      "Nodes that are hosts: a list, or all." },
    { "hosts", GW_P_VALUE, offsetof(struct graph_conf, outer_hosts), "", NULL, NULL,
      "The same, beside graph." },
    GW_LINK_PARAMS("", graph_conf, link, "", "0"),
    GW_FRAME_PARAMS(graph_conf, "24"),
};

GW_PLUGIN(gw_topology_graph) = {
    GW_PLUGIN_HEAD(GW_KIND_TOPOLOGY, graph_ops),
    .name    = "graph",
    .summary = "Nodes and links written in place.",
    .params  = graph_params, .param_count = GW_ARRAY_LEN(graph_params),
};
