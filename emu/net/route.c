/*
 * route.c - equal-cost routes, one search per destination leaf
 *
 * Paths are never enumerated. All hosts behind one switch share that switch's routes, so there is
 * one search per *leaf* (see graph.h), backwards over the links, by igraph: breadth-first if all
 * links cost the same, else Dijkstra. A node's equal-cost links towards a leaf are then those whose
 * cost and the far end's distance add up to the smallest sum. Equal lists are stored once.
 *
 * Only nodes with `transit` carry traffic of others. A node without it (a host) can be the first
 * or the last of a path, so a server whose accelerators have links among each other and to a
 * switch is not a detour for its neighbours.
 *
 * Costs are whole numbers, so that equal means equal: 1 per hop; picoseconds, of which a link has
 * at least one (else links of no delay could form a loop of no cost); millionths of the weight.
 * igraph computes in doubles, exact up to 2^53; a longer path is an error, never a rounding.
 *
 * igraph keeps its error handler per process and is not thread-safe as Debian builds it: routes
 * are made by one thread at a time. The handler is restored.
 */
#include "emu/net/graph.h"

#include <assert.h>
#include <igraph/igraph.h>
#include <math.h>
#include <stdlib.h>

#define ROWS_MAX     UINT64_C(250000000)   /* of routes, 2 GB                                   */
#define BATCH_LEAVES  32u                /* searches per call: bounds the distance matrix      */
#define EXACT_MAX     9007199254740992.0 /* 2^53                                               */
#define WEIGHT_UNIT   1e6

/* What the making of routes needs; freed at its end. */
struct route_maker {
    const struct gw_graph *g;
    struct gw_routes *r;
    uint64_t *cost;                      /* per directed link                                  */
    bool      uniform;                   /* all costs equal: count hops                        */
    double   *dist;                      /* per node, to the leaf at hand                      */
    uint32_t *list;                      /* scratch: a list of directed links                  */
    uint32_t *bucket;                    /* hash of lists: row number + 1 in `known`           */
    struct gw_route_row *known;
    uint32_t  known_count, known_cap, bucket_cap, pool_cap;
};

static uint32_t dir_from(const struct gw_graph *g, uint32_t d)
{
    return d % 2 ? g->link[d / 2].b : g->link[d / 2].a;
}

static uint32_t dir_to(const struct gw_graph *g, uint32_t d)
{
    return d % 2 ? g->link[d / 2].a : g->link[d / 2].b;
}

/* ---- ports, leaves, costs ----------------------------------------------------------------- */

static bool make_adj(const struct gw_graph *g, struct gw_adj *adj)
{
    uint32_t i, *at;

    adj->first = calloc((size_t)g->node_count + 1, sizeof *adj->first);
    adj->out   = calloc((size_t)g->link_count * 2 + 1, sizeof *adj->out);
    at         = calloc((size_t)g->node_count + 1, sizeof *at);
    if (!adj->first || !adj->out || !at) {
        free(at);
        return false;
    }
    for (i = 0; i < 2 * g->link_count; i++)
        adj->first[dir_from(g, i) + 1]++;
    for (i = 0; i < g->node_count; i++)
        adj->first[i + 1] += adj->first[i];
    memcpy(at, adj->first, ((size_t)g->node_count + 1) * sizeof *at);
    for (i = 0; i < 2 * g->link_count; i++)
        adj->out[at[dir_from(g, i)]++] = i;
    free(at);
    return true;
}

/* The node whose routes lead to host @v, and the link that is left from there. */
static uint32_t leaf_node_of(const struct gw_graph *g, const struct gw_adj *adj, uint32_t v,
                             uint32_t *last)
{
    uint32_t d, near;

    *last = GW_NONE;
    if (adj->first[v + 1] - adj->first[v] != 1)
        return v;
    d    = adj->out[adj->first[v]];
    near = dir_to(g, d);
    if (!g->node[near].transit)
        return v;
    *last = d ^ 1;
    return near;
}

static bool make_leaves(const struct gw_graph *g, struct gw_routes *r)
{
    uint32_t *index, v, near;

    r->leaf_of   = malloc(((size_t)g->node_count + 1) * sizeof *r->leaf_of);
    r->leaf_node = malloc(((size_t)g->node_count + 1) * sizeof *r->leaf_node);
    r->last      = malloc(((size_t)g->node_count + 1) * sizeof *r->last);
    index        = malloc(((size_t)g->node_count + 1) * sizeof *index);
    if (!r->leaf_of || !r->leaf_node || !r->last || !index) {
        free(index);
        return false;
    }
    for (v = 0; v < g->node_count; v++)
        index[v] = r->leaf_of[v] = r->last[v] = GW_NONE;
    for (v = 0; v < g->node_count; v++) {
        if (g->node[v].kind != GW_NODE_HOST)
            continue;
        near = leaf_node_of(g, &r->adj, v, &r->last[v]);
        if (index[near] == GW_NONE) {
            index[near] = r->leaf_count;
            r->leaf_node[r->leaf_count++] = near;
        }
        r->leaf_of[v] = index[near];
    }
    free(index);
    return true;
}

static uint64_t dir_cost(const struct gw_graph *g, uint32_t d, enum gw_metric metric)
{
    const struct gw_graph_link *l = &g->link[d / 2];
    double w = l->weight * WEIGHT_UNIT;

    switch (metric) {
    case GW_METRIC_DELAY:
        return l->dir[d % 2].delay_ps ? l->dir[d % 2].delay_ps : 1;
    case GW_METRIC_WEIGHT:
        return w >= 1.5 ? (uint64_t)llround(w) : 1;
    case GW_METRIC_HOPS:
        break;
    }
    return 1;
}

static bool make_costs(struct route_maker *m, enum gw_metric metric)
{
    uint32_t d, count = 2 * m->g->link_count;

    m->cost = malloc(((size_t)count + 1) * sizeof *m->cost);
    if (!m->cost)
        return false;
    m->uniform = true;
    for (d = 0; d < count; d++) {
        m->cost[d] = dir_cost(m->g, d, metric);
        m->uniform = m->uniform && m->cost[d] == m->cost[0];
    }
    for (d = 0; m->uniform && d < count; d++)
        m->cost[d] = 1;
    return true;
}

/* ---- igraph ------------------------------------------------------------------------------- */

/*
 * The graph as igraph sees it. @forwarding: only links out of nodes that forward, which is what a
 * search backwards from a leaf may use; their costs go to @weights. Else all links, one arc each.
 */
static enum gw_status make_igraph(const struct route_maker *m, bool forwarding, igraph_t *out,
                                  igraph_vector_t *weights)
{
    const struct gw_graph *g = m->g;
    igraph_vector_int_t ends;
    igraph_integer_t n = 0;
    uint32_t d;
    int failed;

    if (igraph_vector_int_init(&ends, (igraph_integer_t)g->link_count * 4) != IGRAPH_SUCCESS)
        return GW_NOMEM;
    if (igraph_vector_init(weights, (igraph_integer_t)g->link_count * 2) != IGRAPH_SUCCESS) {
        igraph_vector_int_destroy(&ends);
        return GW_NOMEM;
    }
    for (d = 0; d < 2 * g->link_count; d++) {
        if (forwarding ? !g->node[dir_from(g, d)].transit : d % 2)
            continue;
        VECTOR(ends)[2 * n]     = dir_from(g, d);
        VECTOR(ends)[2 * n + 1] = dir_to(g, d);
        VECTOR(*weights)[n]     = (double)m->cost[d];
        n++;
    }
    failed = igraph_vector_int_resize(&ends, 2 * n) != IGRAPH_SUCCESS ||
             igraph_vector_resize(weights, n) != IGRAPH_SUCCESS ||
             igraph_create(out, &ends, g->node_count, IGRAPH_DIRECTED) != IGRAPH_SUCCESS;
    igraph_vector_int_destroy(&ends);
    if (failed)
        igraph_vector_destroy(weights);
    return failed ? GW_NOMEM : GW_OK;
}

static enum gw_status make_components(struct route_maker *m)
{
    uint32_t v, n = m->g->node_count;
    igraph_vector_int_t member;
    igraph_vector_t weights;
    enum gw_status st = GW_OK;
    igraph_t ig;

    m->r->component = malloc(((size_t)n + 1) * sizeof *m->r->component);
    if (!m->r->component || make_igraph(m, false, &ig, &weights) != GW_OK)
        return GW_NOMEM;
    if (igraph_vector_int_init(&member, 0) != IGRAPH_SUCCESS) {
        st = GW_NOMEM;
        goto out_graph;
    }
    if (igraph_connected_components(&ig, &member, NULL, NULL, IGRAPH_WEAK) != IGRAPH_SUCCESS)
        st = GW_NOMEM;
    for (v = 0; st == GW_OK && v < n; v++)
        m->r->component[v] = (uint32_t)VECTOR(member)[v];
    igraph_vector_int_destroy(&member);
out_graph:
    igraph_vector_destroy(&weights);
    igraph_destroy(&ig);
    return st;
}

/* ---- rows --------------------------------------------------------------------------------- */

static uint32_t list_hash(const uint32_t *list, uint32_t count)
{
    uint64_t h = count;
    uint32_t i;

    for (i = 0; i < count; i++)
        h = (h ^ list[i]) * UINT64_C(0x9e3779b97f4a7c15);
    return (uint32_t)gw_mix64(h);
}

static bool grow_known(struct route_maker *m)
{
    uint32_t cap = m->known_cap ? m->known_cap * 2 : 256, i, at;
    struct gw_route_row *known;
    uint32_t *bucket;

    known = realloc(m->known, cap * sizeof *known);
    if (!known)
        return false;
    m->known     = known;
    m->known_cap = cap;
    bucket = calloc((size_t)cap * 2, sizeof *bucket);
    if (!bucket)
        return false;
    for (i = 0; i < m->known_count; i++) {
        at = list_hash(m->r->pool + known[i].first, known[i].count) & (cap * 2 - 1);
        while (bucket[at])
            at = (at + 1) & (cap * 2 - 1);
        bucket[at] = i + 1;
    }
    free(m->bucket);
    m->bucket     = bucket;
    m->bucket_cap = cap * 2;
    return true;
}

static bool pool_append(struct route_maker *m, const uint32_t *list, uint32_t count)
{
    struct gw_routes *r = m->r;
    uint32_t *pool;

    if (count > m->pool_cap - r->pool_count) {
        uint32_t cap = m->pool_cap * 2 + count;

        pool = realloc(r->pool, cap * sizeof *pool);
        if (!pool)
            return false;
        r->pool     = pool;
        m->pool_cap = cap;
    }
    memcpy(r->pool + r->pool_count, list, count * sizeof *list);
    r->pool_count += count;
    return true;
}

/*
 * The row of @list: found or stored. The pool begins with every directed link by its number, so a
 * list of one needs no search.
 */
static bool intern(struct route_maker *m, const uint32_t *list, uint32_t count,
                   struct gw_route_row *row)
{
    uint32_t at;

    if (count <= 1) {
        *row = (struct gw_route_row){ .first = count ? list[0] : 0, .count = count };
        return true;
    }
    if (m->known_count >= m->known_cap && !grow_known(m))
        return false;
    for (at = list_hash(list, count) & (m->bucket_cap - 1); m->bucket[at];
         at = (at + 1) & (m->bucket_cap - 1)) {
        const struct gw_route_row *k = &m->known[m->bucket[at] - 1];

        if (k->count == count && !memcmp(m->r->pool + k->first, list, count * sizeof *list)) {
            *row = *k;
            return true;
        }
    }
    *row = (struct gw_route_row){ .first = m->r->pool_count, .count = count };
    if (!pool_append(m, list, count))
        return false;
    m->known[m->known_count++] = *row;
    m->bucket[at] = m->known_count;
    return true;
}

/* Fills m->list with the equal-cost links from @v to @leaf; returns how many. */
static uint32_t best_links(struct route_maker *m, uint32_t v, uint32_t leaf)
{
    const struct gw_adj *adj = &m->r->adj;
    double best = INFINITY;
    uint32_t i, count = 0;

    for (i = adj->first[v]; i < adj->first[v + 1]; i++) {
        uint32_t d = adj->out[i], w = dir_to(m->g, d);
        double sum;

        if (w != leaf && !m->g->node[w].transit)
            continue;
        sum = m->dist[w] + (double)m->cost[d];
        if (isinf(sum) || sum > best)
            continue;
        if (sum < best)
            count = 0;
        best = sum;
        m->list[count++] = d;
    }
    return count;
}

static enum gw_status leaf_rows(struct route_maker *m, uint32_t leaf, struct gw_error *err)
{
    struct gw_route_row *row = m->r->row + (size_t)leaf * m->g->node_count;
    uint32_t target = m->r->leaf_node[leaf], v;

    for (v = 0; v < m->g->node_count; v++) {
        if (!isinf(m->dist[v]) && m->dist[v] >= EXACT_MAX)
            return gw_fail(err, GW_RANGE, "the way from %s to %s costs %g, more than can be "
                           "compared exactly (%g); smaller delays or weights are right",
                           m->g->node[v].name, m->g->node[target].name, m->dist[v], EXACT_MAX);
        if (!intern(m, m->list, v == target ? 0 : best_links(m, v, target), &row[v]))
            return GW_NOMEM;
    }
    return GW_OK;
}

/* Searches for the leaves [first, first + count) and their rows. */
static enum gw_status leaf_batch(struct route_maker *m, const igraph_t *ig,
                                 const igraph_vector_t *weights, uint32_t first, uint32_t count,
                                 igraph_matrix_t *dist, struct gw_error *err)
{
    igraph_vector_int_t from;
    enum gw_status st = GW_OK;
    igraph_error_t e;
    uint32_t i, v;

    if (igraph_vector_int_init(&from, count) != IGRAPH_SUCCESS)
        return GW_NOMEM;
    for (i = 0; i < count; i++)
        VECTOR(from)[i] = m->r->leaf_node[first + i];
    if (m->uniform)
        e = igraph_distances(ig, dist, igraph_vss_vector(&from), igraph_vss_all(), IGRAPH_IN);
    else
        e = igraph_distances_dijkstra(ig, dist, igraph_vss_vector(&from), igraph_vss_all(),
                                      weights, IGRAPH_IN);
    igraph_vector_int_destroy(&from);
    if (e != IGRAPH_SUCCESS)
        return GW_NOMEM;
    for (i = 0; st == GW_OK && i < count; i++) {
        for (v = 0; v < m->g->node_count; v++)
            m->dist[v] = MATRIX(*dist, i, v);
        st = leaf_rows(m, first + i, err);
    }
    return st;
}

static enum gw_status make_rows(struct route_maker *m, struct gw_error *err)
{
    struct gw_routes *r = m->r;
    uint32_t n = m->g->node_count, d, first;
    enum gw_status st = GW_OK;
    igraph_vector_t weights;
    igraph_matrix_t dist;
    igraph_t ig;

    if ((uint64_t)r->leaf_count * n > ROWS_MAX)
        return gw_fail(err, GW_RANGE, "the routes of %u nodes towards %u leaves take %.1f GB, "
                       "allowed up to %.1f; fewer hosts or leaf switches are right (a host with one link "
                       "shares its switch's routes)", n, r->leaf_count,
                       (double)r->leaf_count * n * sizeof *r->row / 1e9,
                       (double)ROWS_MAX * sizeof *r->row / 1e9);
    r->row      = calloc((size_t)r->leaf_count * n + 1, sizeof *r->row);
    m->pool_cap = 2 * m->g->link_count + 64;
    r->pool     = malloc(m->pool_cap * sizeof *r->pool);
    m->dist     = malloc(((size_t)n + 1) * sizeof *m->dist);
    m->list     = malloc(((size_t)2 * m->g->link_count + 1) * sizeof *m->list);
    if (!r->row || !r->pool || !m->dist || !m->list)
        return GW_NOMEM;
    for (d = 0; d < 2 * m->g->link_count; d++)
        r->pool[r->pool_count++] = d;
    if (make_igraph(m, true, &ig, &weights) != GW_OK)
        return GW_NOMEM;
    if (igraph_matrix_init(&dist, 0, 0) != IGRAPH_SUCCESS) {
        st = GW_NOMEM;
        goto out_graph;
    }
    for (first = 0; st == GW_OK && first < r->leaf_count; first += BATCH_LEAVES)
        st = leaf_batch(m, &ig, &weights, first,
                        r->leaf_count - first < BATCH_LEAVES ? r->leaf_count - first
                                                             : BATCH_LEAVES, &dist, err);
    igraph_matrix_destroy(&dist);
out_graph:
    igraph_vector_destroy(&weights);
    igraph_destroy(&ig);
    return st;
}

/* ---- the public part ---------------------------------------------------------------------- */

struct gw_routes *gw_routes_new(const struct gw_graph *g, enum gw_metric metric,
                                struct gw_error *err)
{
    struct route_maker m = { .g = g };
    igraph_error_handler_t *old;
    enum gw_status st = GW_NOMEM;

    m.r = calloc(1, sizeof *m.r);
    if (!m.r) {
        gw_fail(err, GW_NOMEM, "out of memory for the routes");
        return NULL;
    }
    m.r->node_count = g->node_count;
    old = igraph_set_error_handler(igraph_error_handler_ignore);
    if (make_adj(g, &m.r->adj) && make_leaves(g, m.r) && make_costs(&m, metric))
        st = make_components(&m);
    if (st == GW_OK)
        st = make_rows(&m, err);
    igraph_set_error_handler(old);
    free(m.cost);
    free(m.dist);
    free(m.list);
    free(m.bucket);
    free(m.known);
    if (st == GW_OK)
        return m.r;
    gw_fail(err, st, "out of memory for the routes of %u nodes", g->node_count);
    gw_routes_free(m.r);
    return NULL;
}

void gw_routes_free(struct gw_routes *r)
{
    if (!r)
        return;
    free(r->adj.first);
    free(r->adj.out);
    free(r->leaf_of);
    free(r->leaf_node);
    free(r->last);
    free(r->row);
    free(r->pool);
    free(r->component);
    free(r);
}

/* "the 5 nodes around X (A, B, C ...)" */
static const char *part_text(const struct gw_graph *g, const struct gw_routes *r, uint32_t v,
                             char *buf, size_t n)
{
    uint32_t size = 0, shown = 0, i;
    char members[160] = "";

    for (i = 0; i < g->node_count; i++) {
        size_t len = strlen(members);

        if (r->component[i] != r->component[v])
            continue;
        size++;
        if (i == v || shown == 3)
            continue;
        snprintf(members + len, sizeof members - len, "%s%.40s", shown ? ", " : "",
                 g->node[i].name);
        shown++;
    }
    if (size == 1)
        snprintf(buf, n, "%.60s alone", g->node[v].name);
    else
        snprintf(buf, n, "%u nodes (%.60s, %s%s)", size, g->node[v].name, members,
                 size > 4 ? " ..." : "");
    return buf;
}

enum gw_status gw_routes_check(const struct gw_graph *g, const struct gw_routes *r, uint32_t src,
                               uint32_t dst, const char *where, struct gw_error *err)
{
    const char *head = where ? where : "route";
    char a[256], b[256];
    uint32_t count;

    assert(src < g->node_count && dst < g->node_count);
    if (src == dst)
        return GW_OK;
    if (r->leaf_of[dst] == GW_NONE)
        return gw_fail(err, GW_ROUTE, "%s: %.60s is a switch; traffic goes from host to host",
                       head, g->node[dst].name);
    gw_routes_next(r, src, dst, &count);
    if (count)
        return GW_OK;
    if (r->component[src] == r->component[dst])
        return gw_fail(err, GW_ROUTE, "%s: there is no way from %.60s to %.60s: all ways lead "
                       "through hosts, which do not forward; `transit: yes` on a node lets it",
                       head, g->node[src].name, g->node[dst].name);
    return gw_fail(err, GW_ROUTE, "%s: there is no way from %.60s to %.60s: the topology is in "
                   "parts, %s and %s, that no link joins", head, g->node[src].name,
                   g->node[dst].name, part_text(g, r, src, a, sizeof a),
                   part_text(g, r, dst, b, sizeof b));
}
