/*
 * test_topology.c - the topology plugins: counts of nodes, links and paths; files of all kinds
 *
 * GRADWIRE_SHARED names a folder whose data/wan-* are all loaded too; without it (and without
 * ../shared beside the source) that one test says that it was skipped.
 */
#include "suite.h"

#include "emu/core/doc.h"
#include "emu/core/registry.h"
#include "emu/net/graph.h"

#include <dirent.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

/* ---- a topology from text ----------------------------------------------------------------- */

struct built {
    struct gw_registry *reg;
    struct gw_doc *doc;
    struct gw_topo topo;
    struct gw_error err;
};

/* @dir: where files are looked up. False: b->err says why. */
static bool build(struct built *b, const char *yaml, const char *dir)
{
    memset(b, 0, sizeof *b);
    b->reg = gw_registry_new(false, &b->err);
    CU_ASSERT_FATAL(b->reg != NULL);
    gw_graph_host(gw_registry_host(b->reg));
    b->doc = gw_doc_parse(yaml, strlen(yaml), "t.yaml", &b->err);
    if (!b->doc)
        return false;
    return gw_topo_open(&b->topo, b->reg, gw_doc_root(b->doc), dir, &b->err) == GW_OK;
}

static void done(struct built *b)
{
    gw_topo_close(&b->topo);
    gw_doc_free(b->doc);
    gw_registry_free(b->reg);
}

/* Shortest paths from @node to @dst, counted along the rows. */
static uint64_t count_paths(const struct gw_graph *g, const struct gw_routes *r, uint32_t node,
                            uint32_t dst)
{
    uint32_t count, i;
    const uint32_t *d = gw_routes_next(r, node, dst, &count);
    uint64_t paths = 0;

    if (node == dst)
        return 1;
    for (i = 0; i < count; i++) {
        const struct gw_graph_link *l = &g->link[d[i] / 2];

        paths += count_paths(g, r, d[i] % 2 ? l->a : l->b, dst);
    }
    return paths;
}

static uint32_t degree(const struct gw_routes *r, uint32_t v)
{
    return r->adj.first[v + 1] - r->adj.first[v];
}

/* ---- generators --------------------------------------------------------------------------- */

struct shape_row {
    const char *yaml;
    uint32_t hosts, nodes, links;
    const char *from, *to;
    uint64_t paths;
};

static const struct shape_row shapes[] = {
    { "{kind: star, hosts: 3}", 3, 4, 3, "h0", "h2", 1 },
    { "{kind: star, hosts: 1}", 1, 2, 1, "h0", "h0", 1 },
    { "{kind: pair}", 2, 2, 1, "a", "b", 1 },
    { "{kind: dumbbell, hosts: 5}", 10, 12, 11, "l0", "r4", 1 },
    { "{kind: two-site, hosts: 4}", 8, 14, 8 + 2 + 2 + 1, "a0", "b3", 1 },
    { "{kind: two-site, hosts: 64}", 128, 128 + 4 + 4 + 2, 128 + 8 + 4 + 1, "a0", "b63", 4 },
    { "{kind: two-site, hosts: 6, leaves: 3, spines: 2}", 12, 24, 12 + 12 + 4 + 1, "a0", "a5", 2 },
    { "{kind: leaf-spine, leaves: 4, spines: 3, hosts: 2}", 8, 15, 20, "h0", "h7", 3 },
    { "{kind: leaf-spine, leaves: 1, spines: 1, hosts: 2}", 2, 4, 3, "h0", "h1", 1 },
    { "{kind: fat-tree, k: 2}", 2, 2 + 5, 6, "h0", "h1", 1 },
    { "{kind: fat-tree, k: 4}", 16, 16 + 20, 48, "h0", "h15", 4 },
    { "{kind: fat-tree, k: 6}", 54, 54 + 45, 162, "h0", "h53", 9 },
    { "{kind: fat-tree, k: 8}", 128, 128 + 80, 384, "h0", "h127", 16 },
    { "{kind: fat-tree, k: 8}", 128, 128 + 80, 384, "h0", "h15", 4 },
    { "{kind: fat-tree, k: 8}", 128, 128 + 80, 384, "h0", "h3", 1 },
    { "{graph: {nodes: [s, r1, r2, d], links: [{ends: [s, r1], rate: 0}, {name: m, ends: [r1, r2], "
      "rate: 100mbit, delay: 10ms, framing: 0}, {ends: [r2, d], rate: 0}]}}", 2, 4, 3, "s", "d",
      1 },
};

/* The arithmetic routes of @b say what the searched rows say, port by port. */
static bool same_ports(const struct built *b, const struct gw_routes *r)
{
    const struct gw_graph *g = b->topo.graph;
    uint32_t v, dst, count, i;

    for (v = 0; b->topo.ops->next_ports && v < g->node_count; v++) {
        for (dst = 0; dst < g->node_count; dst++) {
            const uint32_t *d;
            struct gw_ports p;

            if (g->node[dst].kind != GW_NODE_HOST)
                continue;
            d = gw_routes_next(r, v, dst, &count);
            p = b->topo.ops->next_ports(&b->topo.topology, v, dst);
            if (p.count != count)
                return false;
            for (i = 0; i < count; i++) {
                if (r->adj.out[r->adj.first[v] + p.first + i] != d[i])
                    return false;
            }
        }
    }
    return true;
}

static void counts(void)
{
    size_t i;

    for (i = 0; i < GW_ARRAY_LEN(shapes); i++) {
        const struct shape_row *w = &shapes[i];
        struct gw_routes *r;
        struct built b;
        uint64_t paths;

        if (!build(&b, w->yaml, ".")) {
            CHECK_ROW(false, "%s: %s", w->yaml, b.err.text);
            done(&b);
            continue;
        }
        CHECK_ROW(b.topo.hosts == w->hosts && b.topo.graph->node_count == w->nodes &&
                  b.topo.graph->link_count == w->links,
                  "%s: got %u hosts, %u nodes, %u links, want %u, %u, %u", w->yaml, b.topo.hosts,
                  b.topo.graph->node_count, b.topo.graph->link_count, w->hosts, w->nodes,
                  w->links);
        r = gw_routes_new(b.topo.graph, GW_METRIC_HOPS, &b.err);
        CU_ASSERT_FATAL(r != NULL);
        paths = count_paths(b.topo.graph, r, gw_graph_find_node(b.topo.graph, w->from),
                            gw_graph_find_node(b.topo.graph, w->to));
        CHECK_ROW(paths == w->paths, "%s: %s to %s: got %llu paths, want %llu", w->yaml, w->from,
                  w->to, (unsigned long long)paths, (unsigned long long)w->paths);
        CHECK_ROW(same_ports(&b, r), "%s: arithmetic and search differ", w->yaml);
        gw_routes_free(r);
        done(&b);
    }
}

static void fat_tree_degrees(void)
{
    struct gw_routes *r;
    struct built b;
    uint32_t v;

    CU_ASSERT_FATAL(build(&b, "{kind: fat-tree, k: 6, link: {rate: 100gbit, delay: 1us}, mtu: "
                              "1500}", "."));
    CU_ASSERT_EQUAL(b.topo.radix, 6);
    r = gw_routes_new(b.topo.graph, GW_METRIC_HOPS, NULL);
    CU_ASSERT_FATAL(r != NULL);
    for (v = 0; v < b.topo.graph->node_count; v++)
        CHECK_ROW(degree(r, v) == (b.topo.graph->node[v].kind == GW_NODE_HOST ? 1 : 6),
                  "node %s has %u ports", b.topo.graph->node[v].name, degree(r, v));
    CU_ASSERT_EQUAL(b.topo.graph->node[gw_graph_find_node(b.topo.graph, "p2e1")].tier, 0);
    CU_ASSERT_EQUAL(b.topo.graph->node[gw_graph_find_node(b.topo.graph, "p2a1")].tier, 1);
    CU_ASSERT_EQUAL(b.topo.graph->node[gw_graph_find_node(b.topo.graph, "c8")].tier, 2);
    gw_routes_free(r);
    done(&b);
}

/* Values that options put on links. */
static void link_values(void)
{
    static const struct {
        const char *yaml, *dev;
        uint64_t rate_bps, delay_ps;
        double loss;
        uint32_t mtu, framing;
    } row[] = {
        { "{kind: star, link: {rate: 25gbit, delay: 2us}, mtu: 9000}", "h0-s0:s0", 25000000000,
          2000000, 0, 9000, 24 },
        { "{kind: pair}", "v:b", 0, 0, 0, 1500, 0 },
        { "{kind: pair, rate: 10mbit, loss: 5%, framing: 24}", "v:a", 10000000, 0, 0.05, 1500,
          24 },
        { "{kind: dumbbell, bottleneck: {rate: 2gbit, delay: 20ms, loss: 0.1%}}", "bottleneck:b",
          2000000000, 20 * GW_PS_PER_MS, 0.001, 1500, 24 },
        { "{kind: two-site, hosts: 4, nic: {rate: 25gbit, delay: 1us}, wan: {rate: 10gbit, delay: "
          "20ms, loss: 0.01%}}", "wan:a", 10000000000, 20 * GW_PS_PER_MS, 0.0001, 1500, 24 },
        { "{kind: two-site, hosts: 4, nic: {rate: 25gbit, delay: 1us}, wan: {rate: 10gbit, delay: "
          "20ms, loss: 0.01%}}", "a-leaf0-a-spine0:a-leaf0", 100000000000, 1000000, 0, 1500, 24 },
        { "{kind: two-site, hosts: 2, nic: {rate: 1gbit}, wan: {rate: 100gbit}}",
          "b-spine0-b-border:b-border", 100000000000, 1000000, 0, 1500, 24 },
        { "{kind: leaf-spine, link: {rate: 40gbit, delay: 3us}, fabric: {delay: 1us}}",
          "leaf0-spine1:spine1", 40000000000, 1000000, 0, 1500, 24 },
        { "{kind: star, links: {h1-s0: {rate: 1gbit, delay: 7ms}}}", "h1-s0:h1", 1000000000,
          7 * GW_PS_PER_MS, 0, 1500, 24 },
        { "{rate: 1gbit, mtu: 4000, graph: {nodes: [a, b], links: [{name: m, ends: [a, b]}]}}",
          "m:a", 1000000000, 0, 0, 4000, 24 },
        { "{graph: {nodes: [a, b], links: [{name: m, ends: [a, b], rate: 0, framing: 0, loss: 2%, "
          "delay: 3ms}]}}", "m:b", 0, 3 * GW_PS_PER_MS, 0.02, 1500, 0 },
    };
    size_t i;

    for (i = 0; i < GW_ARRAY_LEN(row); i++) {
        const struct gw_graph_link *l;
        const struct gw_graph_dir *d;
        struct built b;
        uint32_t dir = 0;

        if (!build(&b, row[i].yaml, ".") ||
            gw_graph_find_dev(b.topo.graph, row[i].dev, "t", &dir, &b.err) != GW_OK) {
            CHECK_ROW(false, "%s: %s", row[i].yaml, b.err.text);
            done(&b);
            continue;
        }
        l = &b.topo.graph->link[dir / 2];
        d = &l->dir[dir % 2];
        CHECK_ROW(d->rate_bps == row[i].rate_bps && d->delay_ps == row[i].delay_ps &&
                  d->loss > row[i].loss - 1e-12 && d->loss < row[i].loss + 1e-12 &&
                  l->mtu_bytes == row[i].mtu && l->framing_bytes == row[i].framing,
                  "%s: %s: got %llu bit/s, %llu ps, %g, mtu %u, framing %u", row[i].yaml,
                  row[i].dev, (unsigned long long)d->rate_bps, (unsigned long long)d->delay_ps,
                  d->loss, l->mtu_bytes, l->framing_bytes);
        done(&b);
    }
}

/* What is refused, and what the sentence says. */
static void refused(void)
{
    static const struct { const char *yaml, *says; } row[] = {
        { "{kind: star, hosts: 0}", "hosts" },
        { "{kind: star, host: 3}", "hosts" },
        { "{kind: sta, hosts: 3}", "star" },
        { "{kind: star, link: {rate: 10}}", "rate" },
        { "{kind: star, link: {rate: -5gbit}}", "rate" },
        { "{kind: star, links: {h9-s0: {rate: 1gbit}}}", "no link \"h9-s0\"" },
        { "{kind: fat-tree, k: 5}", "even number" },
        { "{kind: two-site, hosts: 2, leaves: 3}", "at most one leaf a host" },
        { "{hosts: 3}", "nothing to build" },
        { "[]", "map" },
        { "{file: nowhere.gml}", "nowhere.gml" },
        { "{graph: {nodes: [a, b], links: [{ends: [a, c], rate: 0}]}}", "no node \"c\"" },
        { "{graph: {nodes: [a, b], links: [{ends: [a, a], rate: 0}]}}", "joins two nodes" },
        { "{graph: {nodes: [a, b], links: [{ends: [a], rate: 0}]}}", "two nodes" },
        { "{graph: {nodes: [a, b], links: [{ends: [a, b]}]}}", "no rate" },
        { "{graph: {nodes: [a, a]}}", "second time" },
        { "{graph: {nodes: []}}", "nodes" },
        { "{graph: {nodes: [a, b], link: []}}", "links" },
        { "{graph: {nodes: [{name: a, kind: hots}]}}", "host" },
        { "{graph: {nodes: [{name: a, kind: switch}, {name: b, kind: switch}]}}", "no hosts" },
        { "{graph: {nodes: [a, b]}, hosts: [c]}", "no node \"c\"" },
        { "{graph: {nodes: [a, b], links: [{name: l, ends: [a, b], rate: 0}, {name: l, ends: [b, "
          "a], rate: 0}]}}", "stands before" },
    };
    size_t i;

    for (i = 0; i < GW_ARRAY_LEN(row); i++) {
        struct built b;
        bool taken = build(&b, row[i].yaml, ".");

        CHECK_ROW(!taken, "%s: taken", row[i].yaml);
        CHECK_ROW(strstr(b.err.text, row[i].says) != NULL, "%s: got \"%s\", want \"%s\" in it",
                  row[i].yaml, b.err.text, row[i].says);
        done(&b);
    }
}

/* A node that no link reaches is allowed and said. */
static void lonely_nodes(void)
{
    struct built b;

    CHECK_ROW(build(&b, "{graph: {nodes: [a, b, c, d], links: [{ends: [a, c], rate: 0}]}}", ".") &&
                  b.topo.graph->note_count == 1 &&
                  !strcmp(b.topo.graph->note[0], "graph: nodes that no link reaches: b d"),
              "got \"%s\"%s", b.topo.graph && b.topo.graph->note_count ? b.topo.graph->note[0] : "",
              b.err.text);
    done(&b);
    CHECK_ROW(build(&b, "{graph: {nodes: [a]}}", ".") && !b.topo.graph->note_count, "%s",
              b.err.text);
    done(&b);
}

/* Which nodes of a graph in place are hosts ('h', 'H' if they forward) or switches ('s'). */
static void kinds_in_place(void)
{
    static const struct { const char *graph, *want; } row[] = {
        { "nodes: [a, b, c], links: [{ends: [a, b]}, {ends: [b, c]}]", "hsh" },
        { "nodes: [a, b, c], links: [{ends: [a, b]}, {ends: [b, c]}, {ends: [c, a]}]", "HHH" },
        { "nodes: [a, b, c], links: [{ends: [a, b]}, {ends: [b, c]}], hosts: all", "HHH" },
        { "nodes: [a, b, c], links: [{ends: [a, b]}, {ends: [b, c]}], hosts: [a, b]", "HHs" },
        { "nodes: [{name: a, kind: host}, b, {name: c, kind: host}], links: [{ends: [a, b]}, "
          "{ends: [b, c]}, {ends: [c, a]}]", "hsh" },
        { "nodes: [{name: a, kind: host, transit: yes}, b], links: [{ends: [a, b]}]", "Hs" },
        { "nodes: [a, b], links: [{ends: [a, b]}, {ends: [a, b]}]", "HH" },
        { "nodes: [{name: s, kind: switch}, a, b], links: [{ends: [a, s]}, {ends: [b, s]}]",
          "shh" },
    };
    size_t i;
    uint32_t v;

    for (i = 0; i < GW_ARRAY_LEN(row); i++) {
        char yaml[512], got[16] = "";
        struct built b;

        snprintf(yaml, sizeof yaml, "{rate: 1gbit, graph: {%s}}", row[i].graph);
        if (build(&b, yaml, ".")) {
            for (v = 0; v < b.topo.graph->node_count; v++) {
                const struct gw_graph_node *n = &b.topo.graph->node[v];

                got[v] = n->kind == GW_NODE_SWITCH ? 's' : n->transit ? 'H' : 'h';
            }
        }
        CHECK_ROW(!strcmp(got, row[i].want), "%s: got %s %s, want %s", row[i].graph, got,
                  b.err.text, row[i].want);
        done(&b);
    }
}

/* ---- files -------------------------------------------------------------------------------- */

/* Builds from @text written to a file of its own with ending @ext; @more: options after file. */
static bool build_file(struct built *b, const char *text, size_t len, const char *ext,
                       const char *more)
{
    char path[64], yaml[256];
    FILE *f;
    int fd;
    bool ok;

    snprintf(path, sizeof path, "/tmp/gw-topo-XXXXXX%s", ext);
    fd = mkstemps(path, (int)strlen(ext));
    f  = fd < 0 ? NULL : fdopen(fd, "w");
    CU_ASSERT_FATAL(f != NULL);
    CU_ASSERT_EQUAL(fwrite(text, 1, len, f), len);
    fclose(f);
    snprintf(yaml, sizeof yaml, "{file: %s%s}", path, more);
    ok = build(b, yaml, ".");
    unlink(path);
    return ok;
}

#define GML(body) "graph [\n" body "]\n"
#define N(id, rest) "node [ id " #id " " rest " ]\n"
#define E(a, b, rest) "edge [ source " #a " target " #b " " rest " ]\n"
#define NN N(0, "label \"A\"") N(1, "label \"B\"")
#define XML(keys, body) "<?xml version=\"1.0\"?><graphml " \
    "xmlns=\"http://graphml.graphdrawing.org/xmlns\">" keys "<graph edgedefault=\"undirected\">" \
    body "</graph></graphml>"

struct file_row {
    const char *what, *ext, *text;
    uint32_t nodes, links;
    const char *dev;                     /* link 0's second... any device, or NULL             */
    uint64_t rate_bps, delay_ps;
    const char *note;                    /* a note that must contain this; NULL: no note       */
};

static const struct file_row files[] = {
    { "parallel links", ".gml", GML(NN E(0, 1, "rate \"1 Gbit\" delay \"1 ms\"")
      E(0, 1, "rate \"2 Gbit\" delay \"1 ms\"") E(1, 0, "rate \"3 Gbit\" delay \"1 ms\"")),
      2, 3, "A-B#2:A", 2000000000, GW_PS_PER_MS, NULL },
    { "repeated labels", ".gml", GML(N(0, "label \"None\"") N(1, "label \"None\"")
      N(2, "label \"None\"") E(0, 1, "") E(1, 2, "")), 3, 2, "None#2-None#3:None#3", 10000000000,
      GW_PS_PER_MS, "label stands before: 2;" },
    { "no labels", ".gml", GML(N(7, "") N(9, "") E(7, 9, "")), 2, 1, "n7-n9:n9", 10000000000,
      GW_PS_PER_MS, "1 of 1 links have no speed and take rate: 10gbit: n7-n9" },
    { "attribute type integer", ".graphml", XML("<key attr.name=\"LinkSpeedRaw\" attr.type="
      "\"integer\" for=\"edge\" id=\"d0\"/>", "<node id=\"x\"/><node id=\"y\"/><edge source=\"x\" "
      "target=\"y\"><data key=\"d0\">2500000000</data></edge>"), 2, 1, "x-y:x", 2500000000,
      GW_PS_PER_MS, "have neither delay nor length" },
    { "attribute type 'integer' in single quotes", ".xml", XML("<key attr.name='LinkSpeedRaw' "
      "attr.type='integer' for='edge' id='d0'/>", "<node id=\"x\"/><node id=\"y\"/><edge "
      "source=\"x\" target=\"y\"><data key=\"d0\">7</data></edge>"), 2, 1, "x-y:x", 7,
      GW_PS_PER_MS, "have neither" },
    { "hyperedge", ".gml", GML(NN N(2, "hyperedge 1") E(0, 2, "LinkLabel \"34/45 Mbit/s\"")
      E(1, 2, "dist 1000")), 3, 2, "B-n2:B", 10000000000, 5 * GW_PS_PER_MS, "no speed" },
    { "two parts", ".gml", GML(NN N(2, "label \"C\"") N(3, "label \"D\"") E(0, 1, "")
      E(2, 3, "")), 4, 2, "C-D:C", 10000000000, GW_PS_PER_MS, "in 2 parts" },
    { "loop to itself", ".gml", GML(NN E(0, 0, "") E(0, 1, "")), 2, 1, "A-B:A", 10000000000,
      GW_PS_PER_MS, "join a node with itself: 1" },
    { "speed and units", ".gml", GML(NN E(0, 1, "LinkSpeed \"2.5\" LinkSpeedUnits \"G\" LinkLabel "
      "\"10 Gbps\" delay \"10 us\"")), 2, 1, "A-B:B", 2500000000, 10 * GW_PS_PER_US, NULL },
    { "raw before the rest", ".gml", GML(NN E(0, 1, "LinkSpeed \"1\" LinkSpeedUnits \"G\" "
      "LinkSpeedRaw 155000000.0 delay \"0\"")), 2, 1, "A-B:B", 155000000, 0, NULL },
    { "OC-192", ".gml", GML(NN E(0, 1, "LinkType \"OC-192\" LinkLabel \"10 Gbps\" delay \"0\"")),
      2, 1, "A-B:B", 9953280000, 0, NULL },
    { "fibre says nothing, the label does", ".gml", GML(NN E(0, 1, "LinkType \"Fiber\" LinkLabel "
      "\"Lit Fibre (10 Gbps)\" delay \"0\"")), 2, 1, "A-B:B", 10000000000, 0, NULL },
    { "STM-64x2", ".gml", GML(NN E(0, 1, "LinkLabel \"STM-64x2\" delay \"0\"")), 2, 1, "A-B:B",
      19906560000, 0, NULL },
    { "OC3 and below/STM1", ".gml", GML(NN E(0, 1, "LinkLabel \"OC3 and below/STM1\" delay \"0\"")),
      2, 1, "A-B:B", 155520000, 0, NULL },
    { "range", ".gml", GML(NN E(0, 1, "LinkLabel \"1-20Gbps\" delay \"0\"")), 2, 1, "A-B:B",
      20000000000, 0, NULL },
    { "below", ".gml", GML(NN E(0, 1, "LinkLabel \"< 100 Mb/s\" delay \"0\"")), 2, 1, "A-B:B",
      100000000, 0, NULL },
    { "DS-3", ".gml", GML(NN E(0, 1, "LinkType \"DS-3\" LinkLabel \"45 Mbps DS-3\" delay \"0\"")),
      2, 1, "A-B:B", 44736000, 0, NULL },
    { "gigabit Ethernet", ".gml", GML(NN E(0, 1, "LinkLabel \"1GE Primary Link\" delay \"0\"")),
      2, 1, "A-B:B", 1000000000, 0, NULL },
    { "names of cables say nothing", ".gml", GML(NN E(0, 1, "LinkLabel \"SeaMeWe-3\" delay \"0\"")),
      2, 1, "A-B:B", 10000000000, 0, "no speed" },
    { "a year says nothing", ".gml", GML(NN E(0, 1, "LinkLabel \"Completion 2007-2008\" delay "
      "\"0\"")), 2, 1, "A-B:B", 10000000000, 0, "no speed" },
    { "great circle of a quarter meridian", ".gml", GML(N(0, "label \"A\" Latitude 0.0 Longitude "
      "10.0") N(1, "label \"B\" Latitude 90.0 Longitude 50.0") E(0, 1, "rate \"1Gbps\"")), 2, 1,
      "A-B:A", 1000000000, UINT64_C(50037786105), NULL },
    { "coordinates at one end only", ".gml", GML(N(0, "label \"A\" Latitude 0.0 Longitude 10.0")
      N(1, "label \"B\"") E(0, 1, "rate \"1Gbps\"")), 2, 1, "A-B:A", 1000000000, GW_PS_PER_MS,
      "1 of 1 links have neither delay nor length and take delay: 1ms: A-B" },
    { "length before coordinates", ".gml", GML(N(0, "label \"A\" lat 0.0 lon 10.0")
      N(1, "label \"B\" lat 9 lon 9") E(0, 1, "rate \"1Gbps\" dist 200.5")), 2, 1, "A-B:A",
      1000000000, UINT64_C(1002500000), NULL },
    { "Shadow", ".gml", "graph [ directed 0\n"
      N(0, "host_bandwidth_up \"100 Mbit\" host_bandwidth_down \"10 Mbit\"")
      N(1, "host_bandwidth_up \"20 Mbit\" host_bandwidth_down \"50 Mbit\"")
      E(0, 0, "latency \"1 ms\" packet_loss 0.0") E(0, 1, "latency \"10 ms\" packet_loss 0.25") "]",
      2, 1, "n0-n1:n1", 10000000, 10 * GW_PS_PER_MS, "with itself" },
    { "Shadow, the other way", ".gml", "graph [ directed 0\n"
      N(0, "host_bandwidth_up \"100 Mbit\" host_bandwidth_down \"10 Mbit\"")
      N(1, "host_bandwidth_up \"20 Mbit\" host_bandwidth_down \"50 Mbit\"")
      E(0, 1, "latency \"10 ms\"") "]", 2, 1, "n0-n1:n0", 50000000, 10 * GW_PS_PER_MS, NULL },
    { "directed pairs", ".gml", "graph [ directed 1\n" NN E(0, 1, "rate \"1Gbps\" delay \"1ms\"")
      E(1, 0, "rate \"2Gbps\" delay \"3ms\"") E(0, 1, "rate \"4Gbps\" delay \"1ms\"") "]", 2, 2,
      "A-B:B", 2000000000, 3 * GW_PS_PER_MS,
      "one link each: 1; edges without a partner, links in both directions: 1" },
    { "character references", ".gml", GML(N(0, "label \"M&#225;laga\"") N(1, "label \"\xff\x01\"")
      E(0, 1, "rate \"0\" delay \"0\"")), 2, 1, "M\xc3\xa1laga-??:??", 0, 0, NULL },
    { "byte-order mark and comment", ".gml", "\xef\xbb\xbf# [ not a list\n" GML(NN E(0, 1,
      "rate \"8 Mbit/s\" delay \"0\"")), 2, 1, "A-B:A", 8000000, 0, NULL },
    { "two graphs in GraphML, prefixed", ".graphml",
      "<g:graphml xmlns:g=\"http://graphml.graphdrawing.org/xmlns\">"
      "<g:key id=\"r\" for=\"edge\" attr.name=\"rate\" attr.type=\"string\"/>"
      "<g:key id=\"d\" for=\"edge\" attr.name=\"delay\" attr.type=\"string\"/>"
      "<g:graph edgedefault=\"undirected\"><g:node id=\"A\"/><g:node id=\"B\"/>"
      "<g:edge source=\"A\" target=\"B\"><g:data key=\"r\">0</g:data><g:data key=\"d\">0</g:data>"
      "</g:edge></g:graph><g:graph edgedefault=\"undirected\"><g:node id=\"C\"/></g:graph>"
      "</g:graphml>", 2, 1, "A-B:A", 0, 0, "the file holds 2 graphs; only the first is read" },
    { "None is no name of a link", ".gml", GML(NN E(0, 1, "label \"None\" rate \"0\" delay "
      "\"0\"")), 2, 1, "A-B:A", 0, 0, NULL },
    { "named link", ".gml", GML(NN E(0, 1, "label \"wan\" rate \"1 GB/s\" delay \"0\"")), 2, 1,
      "wan:A", 8000000000, 0, NULL },
};

static bool has_note(const struct gw_graph *g, const char *want)
{
    uint32_t i;

    for (i = 0; want && i < g->note_count; i++) {
        if (strstr(g->note[i], want))
            return true;
    }
    return !want && !g->note_count;
}

static void small_files(void)
{
    size_t i;

    for (i = 0; i < GW_ARRAY_LEN(files); i++) {
        const struct file_row *w = &files[i];
        const struct gw_graph_dir *d;
        struct built b;
        uint32_t dir = 0;

        if (!build_file(&b, w->text, strlen(w->text), w->ext, "") ||
            gw_graph_find_dev(b.topo.graph, w->dev, "t", &dir, &b.err) != GW_OK) {
            CHECK_ROW(false, "%s: %s", w->what, b.err.text);
            done(&b);
            continue;
        }
        d = &b.topo.graph->link[dir / 2].dir[dir % 2];
        CHECK_ROW(b.topo.graph->node_count == w->nodes && b.topo.graph->link_count == w->links,
                  "%s: got %u nodes, %u links, want %u, %u", w->what, b.topo.graph->node_count,
                  b.topo.graph->link_count, w->nodes, w->links);
        CHECK_ROW(d->rate_bps == w->rate_bps, "%s: got %llu bit/s, want %llu", w->what,
                  (unsigned long long)d->rate_bps, (unsigned long long)w->rate_bps);
        CHECK_ROW(d->delay_ps == w->delay_ps, "%s: got %llu ps, want %llu", w->what,
                  (unsigned long long)d->delay_ps, (unsigned long long)w->delay_ps);
        CHECK_ROW(has_note(b.topo.graph, w->note), "%s: want note \"%s\", got \"%s\"", w->what,
                  w->note ? w->note : "", b.topo.graph->note_count ? b.topo.graph->note[0] : "");
        done(&b);
    }
}

/* Files that must be refused, with what the sentence says; most name the file and a line. */
static void bad_files(void)
{
    static const struct { const char *what, *ext, *text; size_t len; const char *says; } row[] = {
        { "empty", ".gml", "", 0, "empty" },
        { "blank", ".gml", " \n\n", 0, "empty" },
        { "binary", ".gml", "graph\0[", 7, "zero byte at offset 5" },
        { "no graph", ".gml", "hello world\n", 0, "GML" },
        { "cut off", ".gml", "graph [\n  node [\n id 0 label \"A\"", 0, ":2: the file ends" },
        { "cut off in a string", ".gml", "graph [\n  node [\n id 0 label \"A", 0,
          ":3: the file ends inside the string" },
        { "closed twice", ".gml", "graph [\n]\n]\n", 0, ":3: a ]" },
        { "no nodes", ".gml", "graph [ ]", 0, "no nodes" },
        { "edge to nowhere", ".gml", GML(NN E(0, 5, "")), 0, "GML" },
        { "id is no number", ".gml", "graph [ node [ id \"x\" ] ]", 0, "GML" },
        { "huge id", ".gml", "graph [ node [ id 99999999999999999999999 ] ]", 0, "GML" },
        { "the same id twice", ".gml", GML(N(0, "") N(0, "")), 0, "GML" },
        { "bare rate", ".gml", GML(NN E(0, 1, "rate 10")), 0, "rate is \"10\"; a number with" },
        { "rate without sense", ".gml", GML(NN E(0, 1, "bandwidth \"fast\"")), 0, "\"fast\"" },
        { "bare delay", ".gml", GML(NN E(0, 1, "delay 10")), 0, "delay is \"10\"" },
        { "huge speed", ".gml", GML(NN E(0, 1, "LinkSpeedRaw 1e300")), 0, "100tbit" },
        { "negative length", ".gml", GML(NN E(0, 1, "dist -5.0")), 0, "length in km" },
        { "loss above 1", ".gml", GML(NN E(0, 1, "packet_loss 1.5")), 0, "from 0 to 1" },
        { "loss without %", ".gml", GML(NN E(0, 1, "loss \"5\"")), 0, "0% to 100%" },
        { "mtu", ".gml", GML(NN E(0, 1, "mtu 10")), 0, "from 68 to 65535" },
        { "no XML", ".graphml", "<graphml><graph>", 0, "GraphML" },
        { "two graphs", ".gml", "graph [\n node [ id 0 ] ]\ngraph [ node [ id 0 ] ]", 0,
          ":3: a second graph begins here, the first in line 1" },
        { "undeclared node", ".graphml", "<graphml xmlns=\"http://graphml.graphdrawing.org/xmlns\">"
          "<graph edgedefault=\"undirected\"><!-- <node id=\"z\"/> --><node id=\"a\"/>"
          "<node id=\"b\"/><edge source=\"a\" target=\"z\"/></graph></graphml>", 0,
          "edges end at 3 nodes and the file has 2 <node> elements" },
        { "hyperedge", ".graphml", "<graphml xmlns=\"http://graphml.graphdrawing.org/xmlns\">\n"
          "<graph edgedefault=\"undirected\"><node id=\"a\"/>\n<hyperedge><endpoint node=\"a\"/>"
          "</hyperedge></graph></graphml>", 0, ":3: a <hyperedge>" },
        { "entities", ".graphml", "<?xml version=\"1.0\"?><!DOCTYPE x [<!ENTITY a \"b\">]>"
          "<graphml/>", 0, "entities" },
        { "XML of another kind", ".graphml", "<?xml version=\"1.0\"?><html><body/></html>", 0,
          "without a <graphml>" },
    };
    size_t i;

    for (i = 0; i < GW_ARRAY_LEN(row); i++) {
        size_t len = row[i].len ? row[i].len : strlen(row[i].text);
        struct built b;
        bool taken = build_file(&b, row[i].text, len, row[i].ext, "");

        CHECK_ROW(!taken, "%s: taken", row[i].what);
        CHECK_ROW(strstr(b.err.text, row[i].says) && strstr(b.err.text, "gw-topo-"),
                  "%s: got \"%s\", want \"%s\" in it", row[i].what, b.err.text, row[i].says);
        done(&b);
    }
}

static void deep_lists_are_refused(void)
{
    enum { DEEP = 100000 };
    char *text = malloc(DEEP * 3 + 8);
    struct built b;
    size_t i, n;

    CU_ASSERT_FATAL(text != NULL);
    for (i = n = 0; i < DEEP; i++, n += 3)
        memcpy(text + n, "a [", 3);
    CU_ASSERT_FALSE(build_file(&b, text, n, ".gml", ""));
    CU_ASSERT_PTR_NOT_NULL(strstr(b.err.text, "nested"));
    done(&b);
    free(text);
}

/* Accelerators in two servers: NVLink inside, one switch outside; they do not forward. */
static void kinds_in_files(void)
{
    static const char text[] = GML(
        N(0, "label \"g0\" kind \"gpu\"") N(1, "label \"g1\" kind \"gpu\"")
        N(2, "label \"g2\" kind \"gpu\"") N(3, "label \"g3\" kind \"gpu\"")
        N(4, "label \"s\" kind \"switch\"")
        E(0, 1, "label \"nv0\" rate \"2880 Gbit\" delay \"1 us\"")
        E(2, 3, "label \"nv1\" rate \"2880 Gbit\" delay \"1 us\"")
        E(0, 4, "rate \"100 Gbit\" delay \"1 us\"") E(1, 4, "rate \"100 Gbit\" delay \"1 us\"")
        E(2, 4, "rate \"100 Gbit\" delay \"1 us\""));
    struct gw_routes *r;
    struct gw_graph *g;
    struct built b;
    uint32_t count;

    CU_ASSERT_FATAL(build_file(&b, text, strlen(text), ".gml", ""));
    g = b.topo.graph;
    CU_ASSERT_EQUAL(b.topo.hosts, 4);
    CU_ASSERT_FALSE(g->node[0].transit);
    r = gw_routes_new(g, GW_METRIC_HOPS, NULL);
    CU_ASSERT_FATAL(r != NULL);
    CU_ASSERT_EQUAL(gw_routes_next(r, 0, 1, &count)[0], 0);    /* over nv0                     */
    CU_ASSERT_EQUAL(count, 1);
    /* g3 hangs on g2 alone: no way from g0, for g2 does not forward. */
    CU_ASSERT_EQUAL(gw_routes_check(g, r, 0, 3, "t", &b.err), GW_ROUTE);
    CU_ASSERT_PTR_NOT_NULL(strstr(b.err.text, "do not forward"));
    CU_ASSERT_EQUAL(gw_routes_check(g, r, 0, 2, "t", NULL), GW_OK);
    gw_routes_free(r);
    done(&b);
}

static void hosts_of_files(void)
{
    static const char text[] = GML(NN N(2, "label \"C\"") E(0, 1, "") E(1, 2, ""));
    static const struct { const char *more; uint32_t hosts; const char *says; } row[] = {
        { "", 3, NULL }, { ", hosts: all", 3, NULL }, { ", hosts: [A, C]", 2, NULL },
        { ", hosts: [A, Z]", 0, "no node \"Z\"" }, { ", hosts: some", 0, "all" },
    };
    size_t i;

    for (i = 0; i < GW_ARRAY_LEN(row); i++) {
        struct built b;
        bool ok = build_file(&b, text, strlen(text), ".gml", row[i].more);

        CHECK_ROW(ok == !row[i].says && b.topo.hosts == row[i].hosts, "%s: got %u hosts, \"%s\"",
                  row[i].more, b.topo.hosts, b.err.text);
        CHECK_ROW(!row[i].says || strstr(b.err.text, row[i].says), "%s: got \"%s\"", row[i].more,
                  b.err.text);
        done(&b);
    }
}

static void installed_graphs(void)
{
    static const struct { const char *file; uint32_t nodes, links; } row[] = {
        { "abilene.gml", 11, 14 }, { "nsfnet.gml", 13, 15 }, { "geant2012.graphml", 40, 61 },
    };
    size_t i;
    uint32_t l;

    for (i = 0; i < GW_ARRAY_LEN(row); i++) {
        char yaml[64];
        struct built b;

        snprintf(yaml, sizeof yaml, "{file: %s}", row[i].file);
        if (!build(&b, yaml, GW_TEST_SRCDIR "/topologies/graphs")) {
            CHECK_ROW(false, "%s: %s", row[i].file, b.err.text);
        } else {
            CHECK_ROW(b.topo.graph->node_count == row[i].nodes &&
                      b.topo.graph->link_count == row[i].links &&
                      b.topo.hosts == row[i].nodes, "%s: got %u nodes, %u links, %u hosts",
                      row[i].file, b.topo.graph->node_count, b.topo.graph->link_count,
                      b.topo.hosts);
            for (l = 0; i == 0 && l < b.topo.graph->link_count; l++)
                CU_ASSERT_EQUAL(b.topo.graph->link[l].dir[0].rate_bps, 9953280000);
        }
        done(&b);
    }
}

/* Loads every GML and GraphML file of @dir; adds to the counts. */
static void load_folder(const char *dir, uint32_t *loaded, uint32_t *seen)
{
    DIR *d = opendir(dir);
    struct dirent *e;

    while (d && (e = readdir(d))) {
        const char *dot = strrchr(e->d_name, '.');
        char yaml[512];
        struct built b;

        if (!dot || (strcmp(dot, ".gml") && strcmp(dot, ".graphml")))
            continue;
        snprintf(yaml, sizeof yaml, "{file: \"%s\"}", e->d_name);
        ++*seen;
        if (build(&b, yaml, dir)) {
            struct gw_routes *r = gw_routes_new(b.topo.graph, GW_METRIC_DELAY, &b.err);

            *loaded += r != NULL;
            CHECK_ROW(r != NULL, "%s: %s", e->d_name, b.err.text);
            gw_routes_free(r);
        } else {
            CHECK_ROW(false, "%s/%s: %s", dir, e->d_name, b.err.text);
        }
        done(&b);
    }
    if (d)
        closedir(d);
}

static void shared_folders(void)
{
    static const char *const folder[] = { "wan-topology-zoo", "wan-sndlib", "wan-backbone" };
    const char *shared = getenv("GRADWIRE_SHARED");
    uint32_t loaded = 0, seen = 0;
    size_t i;

    for (i = 0; i < GW_ARRAY_LEN(folder); i++) {
        char dir[512];

        snprintf(dir, sizeof dir, "%s/data/%s", shared ? shared : GW_TEST_SRCDIR "/../shared",
                 folder[i]);
        load_folder(dir, &loaded, &seen);
    }
    if (!seen)
        fprintf(stderr, "skipped: the folders of wide-area graphs are not here "
                        "(GRADWIRE_SHARED names their place)\n");
    CHECK_ROW(loaded == seen, "%u of %u files load", loaded, seen);
    CU_ASSERT_TRUE(loaded == seen);
}

/* Airtel's kind: 16 nodes, 37 links of which 11 lie beside another. */
static void many_parallel(void)
{
    char text[8192];
    struct built b;
    uint32_t i, j, extra = 0;
    size_t at;

    at = (size_t)snprintf(text, sizeof text, "graph [\n");
    for (i = 0; i < 16; i++)
        at += (size_t)snprintf(text + at, sizeof text - at, "node [ id %u ]\n", i);
    for (i = 0; i < 26; i++)
        at += (size_t)snprintf(text + at, sizeof text - at, "edge [ source %u target %u ]\n",
                               i % 16, (i + 1 + i / 16) % 16);
    for (i = 0; i < 11; i++)
        at += (size_t)snprintf(text + at, sizeof text - at, "edge [ source %u target %u ]\n",
                               (i + 1) % 16, i % 16);
    at += (size_t)snprintf(text + at, sizeof text - at, "]\n");
    CU_ASSERT_FATAL(build_file(&b, text, at, ".gml", ""));
    CU_ASSERT_EQUAL(b.topo.graph->node_count, 16);
    CU_ASSERT_EQUAL(b.topo.graph->link_count, 37);
    for (i = 0; i < b.topo.graph->link_count; i++) {
        for (j = 0; j < i; j++) {
            const struct gw_graph_link *p = &b.topo.graph->link[i], *q = &b.topo.graph->link[j];

            if ((p->a == q->a && p->b == q->b) || (p->a == q->b && p->b == q->a)) {
                extra++;
                break;
            }
        }
    }
    CU_ASSERT_EQUAL(extra, 11);
    done(&b);
}

/* Topology and routes of 1,024 hosts: 0.05 s of CPU is the aim; ten times that fails. */
static void fat_tree_16_is_quick(void)
{
    struct gw_routes *r;
    struct built b;
    clock_t begin = clock();
    double s;

    CU_ASSERT_FATAL(build(&b, "{kind: fat-tree, k: 16}", "."));
    r = gw_routes_new(b.topo.graph, GW_METRIC_HOPS, NULL);
    s = (double)(clock() - begin) / CLOCKS_PER_SEC;
    CU_ASSERT_FATAL(r != NULL);
    CU_ASSERT_EQUAL(r->leaf_count, 128);
    CU_ASSERT_EQUAL(b.topo.hosts, 1024);
    CHECK_ROW(s < 0.5, "took %.3f s of CPU", s);
    if (getenv("GW_TEST_TIMES"))
        fprintf(stderr, "fat-tree k=16: %.4f s of CPU, %u links in the pool\n", s, r->pool_count);
    gw_routes_free(r);
    done(&b);
}

static const struct gw_case cases[] = {
    { "counts of nodes, links, paths", counts },
    { "ports of a fat tree", fat_tree_degrees },
    { "values of links", link_values },
    { "refused", refused },
    { "nodes without links", lonely_nodes },
    { "kinds in place", kinds_in_place },
    { "small files", small_files },
    { "bad files", bad_files },
    { "deep lists are refused", deep_lists_are_refused },
    { "kinds in files", kinds_in_files },
    { "hosts of files", hosts_of_files },
    { "many parallel links", many_parallel },
    { "installed graphs", installed_graphs },
    { "shared folders", shared_folders },
    { "fat tree of 1,024 hosts", fat_tree_16_is_quick },
    { NULL, NULL },
};

extern const struct gw_suite suite_topology;
const struct gw_suite suite_topology = { "topology", cases };
