/*
 * topo.c - from the map `topology:` of a study to a built graph
 *
 * The one place that calls a topology plugin: finds it, reads its option rows, lets it build, and
 * applies `links:` on top. `topology: {file: x.gml}` and `topology: {graph: {...}}` need no kind.
 */
#include "emu/core/registry.h"
#include "emu/net/graph.h"

#include <stdlib.h>

#define SKIP_MAX 32

static const char *topo_kind(struct gw_value *v, const char **where_key)
{
    struct gw_value *kind = gw_value_get(v, "kind");

    *where_key = "kind";
    if (kind && kind->kind == GW_V_SCALAR)
        return kind->text;
    if (kind)
        return NULL;
    *where_key = "file";
    if (gw_value_get(v, "file"))
        return "file";
    *where_key = "graph";
    return gw_value_get(v, "graph") ? "graph" : NULL;
}

/* The plugin for @v into @t, or a sentence. */
static enum gw_status topo_find(struct gw_topo *t, struct gw_registry *r, struct gw_value *v,
                                struct gw_error *err)
{
    const struct gw_entry *e;
    const char *key, *kind;
    char where[512], head[640];

    gw_value_where(v, where, sizeof where);
    if (v->kind != GW_V_MAP)
        return gw_fail(err, GW_PARAM, "%s: topology wants a map such as {kind: star, hosts: 4}",
                       where);
    kind = topo_kind(v, &key);
    if (!kind)
        return gw_fail(err, GW_PARAM, "%s: topology says nothing to build; one of `kind: star`, "
                       "`file: x.gml`, `graph: {nodes: [...], links: [...]}` is right", where);
    snprintf(head, sizeof head, "%s: topology", gw_value_where(gw_value_get(v, key), where,
                                                               sizeof where));
    e = gw_registry_find(r, GW_KIND_TOPOLOGY, kind, head, err);
    if (!e)
        return err ? err->code : GW_PARAM;
    t->plugin = e->plugin;
    t->ops    = e->ops;
    return GW_OK;
}

static enum gw_status topo_read(struct gw_topo *t, struct gw_error *err)
{
    const char *skip[SKIP_MAX + 3] = { "kind", "links" };
    char what[128];
    size_t n = 2, i;

    for (i = 0; t->ops->skip && t->ops->skip[i] && n < SKIP_MAX + 2; i++)
        skip[n++] = t->ops->skip[i];
    snprintf(what, sizeof what, "topology %s", t->plugin->name);
    return gw_params_read(t->plugin->params, t->plugin->param_count, t->conf, t->topology.value,
                          skip, what, &t->topology.given, err);
}

/* The option `k` is the radix wherever a topology has one. */
static uint32_t topo_radix(const struct gw_topo *t)
{
    const struct gw_param *p = t->plugin->params;
    uint32_t i;

    for (i = 0; i < t->plugin->param_count; i++) {
        if (!strcmp(p[i].name, "k") && p[i].type == GW_P_U32)
            return *(const uint32_t *)((const char *)t->conf + p[i].offset);
    }
    return 0;
}

static enum gw_status topo_build(struct gw_topo *t, struct gw_error *err)
{
    struct gw_value *v = t->topology.value;
    struct gw_error inner = { 0 };
    enum gw_status st;
    char where[512];
    uint32_t i;

    st = t->ops->build(&t->topology, &inner);
    gw_value_where(v, where, sizeof where);
    /* Plugins take the builder's refusals for a lack of memory; it knows better. */
    if (gw_graph_problem(t->graph) && (inner.code == GW_OK || inner.code == GW_NOMEM))
        return gw_fail(err, st == GW_OK ? GW_PARAM : st, "%s: topology %s: %s", where,
                       t->plugin->name, gw_graph_problem(t->graph));
    if (st != GW_OK && inner.code != GW_OK)
        return gw_fail(err, st, "%s", inner.text);
    if (st != GW_OK)
        return gw_fail(err, st, "%s: topology %s could not be built", where, t->plugin->name);
    for (i = 0; i < t->graph->node_count; i++)
        t->hosts += t->graph->node[i].kind == GW_NODE_HOST;
    t->radix = topo_radix(t);
    if (!t->hosts)
        return gw_fail(err, GW_PARAM, "%s: topology %s has no hosts, so nothing can be sent",
                       where, t->plugin->name);
    return gw_graph_override(t->graph, gw_value_get(v, "links"), err);
}

enum gw_status gw_topo_open(struct gw_topo *t, struct gw_registry *r, struct gw_value *v,
                            const char *study_dir, struct gw_error *err)
{
    const struct gw_host *h = gw_registry_host(r);
    enum gw_status st;

    memset(t, 0, sizeof *t);
    st = topo_find(t, r, v, err);
    if (st != GW_OK)
        return st;
    t->graph          = gw_graph_new(h);
    t->conf           = calloc(1, t->ops->conf_bytes + 1);
    t->topology.priv  = calloc(1, t->ops->priv_bytes + 1);
    t->topology.host  = h;
    t->topology.graph = t->graph;
    t->topology.conf  = t->conf;
    t->topology.value = v;
    t->topology.study_dir = study_dir;
    if (!t->graph || !t->conf || !t->topology.priv)
        st = gw_fail(err, GW_NOMEM, "out of memory for the topology");
    if (st == GW_OK)
        st = topo_read(t, err);
    if (st == GW_OK)
        st = topo_build(t, err);
    if (st != GW_OK)
        gw_topo_close(t);
    return st;
}

void gw_topo_close(struct gw_topo *t)
{
    if (t->ops && t->ops->fini && t->topology.priv)
        t->ops->fini(&t->topology);
    gw_graph_free(t->graph);
    free(t->conf);
    free(t->topology.priv);
    memset(t, 0, sizeof *t);
}
