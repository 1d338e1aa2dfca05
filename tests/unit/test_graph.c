/*
 * test_graph.c - builder, names, devices, overrides, routes
 */
#include "suite.h"

#include "emu/core/doc.h"
#include "emu/core/registry.h"
#include "emu/net/graph.h"

#include <stdlib.h>

struct fixture {
    struct gw_host host;
    struct gw_graph *g;
};

static void open_graph(struct fixture *f)
{
    memset(f, 0, sizeof *f);
    gw_graph_host(&f->host);
    f->g = gw_graph_new(&f->host);
    CU_ASSERT_FATAL(f->g != NULL);
}

/* Nodes by letter: upper case switches, lower case hosts; n0 is the first. */
static void add_nodes(struct fixture *f, const char *letters)
{
    char name[2] = "";

    for (; *letters; letters++) {
        name[0] = *letters;
        f->host.graph_node(f->g, name, *letters >= 'a' ? GW_NODE_HOST : GW_NODE_SWITCH, 0);
    }
}

/* "aS" joins a and S; @delay_us by link may be NULL. */
static void add_links(struct fixture *f, const char *const *pairs, const uint64_t *delay_ps)
{
    size_t i;

    for (i = 0; pairs[i]; i++) {
        char a[2] = { pairs[i][0] }, b[2] = { pairs[i][1] };
        struct gw_link_spec s = { .rate_bps = 1000000000, .delay_ps = delay_ps ? delay_ps[i] : 0 };

        f->host.graph_link(f->g, gw_graph_find_node(f->g, a), gw_graph_find_node(f->g, b), &s);
    }
}

/* The routes from @from to @to as device names "a-S:a a-T:a". */
static const char *route_text(const struct fixture *f, const struct gw_routes *r, const char *from,
                              const char *to, char *buf, size_t n)
{
    uint32_t count, i;
    const uint32_t *d = gw_routes_next(r, gw_graph_find_node(f->g, from),
                                       gw_graph_find_node(f->g, to), &count);
    char dev[64];
    size_t at = 0;

    buf[0] = '\0';
    for (i = 0; i < count; i++)
        at += (size_t)snprintf(buf + at, n - at, "%s%s", i ? " " : "",
                               gw_graph_dev_name(f->g, d[i], dev, sizeof dev));
    return buf;
}

static void names_are_unique(void)
{
    static const struct { const char *given, *want; } row[] = {
        { "None", "None" }, { "None", "None#2" }, { "None#3", "None#3" }, { "None", "None#4" },
        { "", "n4" }, { "n4", "n4#2" }, { "None#2", "None#2#2" },
    };
    struct fixture f;
    uint32_t i;

    open_graph(&f);
    for (i = 0; i < GW_ARRAY_LEN(row); i++) {
        f.host.graph_node(f.g, row[i].given, GW_NODE_SWITCH, 0);
        CHECK_ROW(!strcmp(f.g->node[i].name, row[i].want), "node %u \"%s\": got %s, want %s", i,
                  row[i].given, f.g->node[i].name, row[i].want);
        CHECK_ROW(gw_graph_find_node(f.g, row[i].want) == i, "%s is not found", row[i].want);
    }
    CU_ASSERT_STRING_EQUAL(f.g->node[1].label, "None");
    gw_graph_free(f.g);
}

/* A hundred thousand nodes of one label: linear, or this test never ends. */
static void many_equal_names(void)
{
    struct fixture f;
    uint32_t i;

    open_graph(&f);
    for (i = 0; i < 100000; i++)
        f.host.graph_node(f.g, "x", GW_NODE_SWITCH, 0);
    CU_ASSERT_STRING_EQUAL(f.g->node[99999].name, "x#100000");
    CU_ASSERT_EQUAL(gw_graph_find_node(f.g, "x#50000"), 49999);
    gw_graph_free(f.g);
}

static void parallel_links_stay(void)
{
    static const char *const pairs[] = { "AB", "AB", "BA", NULL };
    struct fixture f;
    char buf[64];

    open_graph(&f);
    add_nodes(&f, "AB");
    add_links(&f, pairs, NULL);
    CU_ASSERT_EQUAL(f.g->link_count, 3);
    CU_ASSERT_STRING_EQUAL(f.g->link[1].name, "A-B#2");
    CU_ASSERT_STRING_EQUAL(gw_graph_dev_name(f.g, 3, buf, sizeof buf), "A-B#2:B");
    CU_ASSERT_STRING_EQUAL(gw_graph_dev_name(f.g, 4, buf, sizeof buf), "B-A:B");
    gw_graph_free(f.g);
}

static void builder_refuses(void)
{
    static const struct { const char *what; uint32_t a, b; double loss, weight; } row[] = {
        { "itself", 0, 0, 0, 1 }, { "no such node", 0, 7, 0, 1 }, { "loss 2", 0, 1, 2, 1 },
        { "negative weight", 0, 1, 0, -1 },
    };
    size_t i;

    for (i = 0; i < GW_ARRAY_LEN(row); i++) {
        struct gw_link_spec s = { .name = "l", .loss = row[i].loss, .weight = row[i].weight };
        struct fixture f;
        uint32_t added;

        open_graph(&f);
        add_nodes(&f, "ab");
        added = f.host.graph_link(f.g, row[i].a, row[i].b, &s);
        CHECK_ROW(added == GW_NONE, "%s: taken", row[i].what);
        CHECK_ROW(gw_graph_problem(f.g) && f.g->link_count == 0, "%s: no sentence", row[i].what);
        gw_graph_free(f.g);
    }
}

/* Refused at once, with the numbers, instead of minutes of work. */
static void too_large(void)
{
    struct gw_link_spec s = { .rate_bps = 1 };
    struct gw_error err = { 0 };
    struct gw_routes *r;
    struct fixture f;
    uint32_t i;

    open_graph(&f);
    add_nodes(&f, "ab");
    f.g->node_count = 4000000;
    CU_ASSERT(f.host.graph_node(f.g, "c", GW_NODE_HOST, 0) == GW_NONE);
    f.g->node_count = 2;
    CHECK_ROW(gw_graph_problem(f.g) && strstr(gw_graph_problem(f.g), "more than 4000000 nodes"),
              "got \"%s\"", gw_graph_problem(f.g));
    gw_graph_free(f.g);

    open_graph(&f);
    add_nodes(&f, "ab");
    f.g->link_count = 16000000;
    CU_ASSERT(f.host.graph_link(f.g, 0, 1, &s) == GW_NONE);
    f.g->link_count = 0;
    CHECK_ROW(gw_graph_problem(f.g) &&
                  strstr(gw_graph_problem(f.g), "more than 16000000 links among 2 nodes"), "got \"%s\"", gw_graph_problem(f.g));
    gw_graph_free(f.g);

    open_graph(&f);                              /* a ring of hosts: each is a leaf of its own */
    for (i = 0; i < 15812; i++)
        f.host.graph_node(f.g, NULL, GW_NODE_HOST, 0);
    for (i = 0; i < 15812; i++)
        f.host.graph_link(f.g, i, (i + 1) % 15812, &s);
    r = gw_routes_new(f.g, GW_METRIC_HOPS, &err);
    CHECK_ROW(!r && err.code == GW_RANGE &&
                  strstr(err.text, "routes of 15812 nodes towards 15812 leaves take 2.0 GB"),
              "got \"%s\"", err.text);
    gw_routes_free(r);
    gw_graph_free(f.g);
}

static void devices(void)
{
    static const struct { const char *dev; uint32_t want; const char *says; } row[] = {
        { "wan:a", 0, NULL },        { "wan:b", 1, NULL },
        { "x:y:A", 2, NULL },        { "x:y:B", 3, NULL },
        { "wan", GW_NONE, "wan:a or wan:b" },
        { "wan:c", GW_NONE, "did you mean wan:" },
        { "wam:a", GW_NONE, "did you mean wan:a" },
        { "completely else", GW_NONE, "LINK:END" },
        { "", GW_NONE, "no device" },
    };
    struct gw_link_spec wan = { .name = "wan", .end_name = { "a", "b" } };
    struct gw_link_spec odd = { .name = "x:y" };
    struct fixture f;
    size_t i;

    open_graph(&f);
    add_nodes(&f, "AB");
    f.host.graph_link(f.g, 0, 1, &wan);
    f.host.graph_link(f.g, 0, 1, &odd);
    for (i = 0; i < GW_ARRAY_LEN(row); i++) {
        struct gw_error err = { 0 };
        uint32_t got;

        gw_graph_find_dev(f.g, row[i].dev, "study.yaml:3:5", &got, &err);
        CHECK_ROW(got == row[i].want, "%s: got %u, want %u", row[i].dev, got, row[i].want);
        CHECK_ROW(!row[i].says || (strstr(err.text, row[i].says) &&
                                   !strncmp(err.text, "study.yaml:3:5: ", 16)),
                  "%s: got \"%s\", want \"%s\" in it", row[i].dev, err.text, row[i].says);
    }
    gw_graph_free(f.g);
}

static void overrides(void)
{
    static const struct { const char *yaml, *says; } row[] = {
        { "wan: {rate: 1gbit, delay: 5ms, loss: 1%, mtu: 9000, framing: 0, weight: 3}", NULL },
        { "wan:b: {rate: 2gbit}", NULL },
        { "wam: {rate: 1gbit}", "did you mean wan" },
        { "wan: {rte: 1gbit}", "rate" },
        { "wan: 5", "map" },
        { "wan:a: {mtu: 9000}", "belong to the link wan" },
        { "wan: {rate: 5}", "links.yaml:1:7: links.wan: rate" },
    };
    size_t i;

    for (i = 0; i < GW_ARRAY_LEN(row); i++) {
        struct gw_link_spec wan = { .name = "wan", .end_name = { "a", "b" }, .rate_bps = 7 };
        struct gw_error err = { 0 };
        struct fixture f;
        struct gw_doc *d = gw_doc_parse(row[i].yaml, strlen(row[i].yaml), "links.yaml", &err);

        CU_ASSERT_FATAL(d != NULL);
        open_graph(&f);
        add_nodes(&f, "AB");
        f.host.graph_link(f.g, 0, 1, &wan);
        gw_graph_override(f.g, gw_doc_root(d), &err);
        CHECK_ROW((err.code == GW_OK) == !row[i].says && strstr(err.text, row[i].says ? row[i].says
                  : ""), "%s: got \"%s\"", row[i].yaml, err.text);
        if (i == 0) {
            CU_ASSERT_EQUAL(f.g->link[0].dir[1].rate_bps, 1000000000);
            CU_ASSERT_EQUAL(f.g->link[0].dir[0].delay_ps, 5 * GW_PS_PER_MS);
            CU_ASSERT_DOUBLE_EQUAL(f.g->link[0].dir[0].loss, 0.01, 1e-12);
            CU_ASSERT_EQUAL(f.g->link[0].mtu_bytes, 9000);
            CU_ASSERT_EQUAL(f.g->link[0].framing_bytes, 0);
            CU_ASSERT_DOUBLE_EQUAL(f.g->link[0].weight, 3, 0);
        }
        if (i == 1) {
            CU_ASSERT_EQUAL(f.g->link[0].dir[0].rate_bps, 7);
            CU_ASSERT_EQUAL(f.g->link[0].dir[1].rate_bps, 2000000000);
        }
        gw_graph_free(f.g);
        gw_doc_free(d);
    }
}

struct route_row {
    const char *what, *nodes;
    const char *pairs[10];
    uint64_t delay_ps[10];
    enum gw_metric metric;
    const char *from, *to, *want;
};

static void routes(void)
{
    static const struct route_row row[] = {
        { "two switches in between, equal", "abSTUV", { "aS", "ST", "SU", "TV", "UV", "Vb" },
          { 0 }, GW_METRIC_HOPS, "S", "b", "S-T:S S-U:S" },
        { "delay prefers one", "abSTUV", { "aS", "ST", "SU", "TV", "UV", "Vb" },
          { 1, 2, 1, 2, 2, 1 }, GW_METRIC_DELAY, "S", "b", "S-U:S" },
        { "delay ties exactly", "abSTUV", { "aS", "ST", "SU", "TV", "UV", "Vb" },
          { 1, 333333333333, 111111111111, 111111111111, 333333333333, 1 }, GW_METRIC_DELAY, "S",
          "b", "S-T:S S-U:S" },
        { "one picosecond decides", "abSTUV", { "aS", "ST", "SU", "TV", "UV", "Vb" },
          { 1, 333333333333, 111111111111, 111111111112, 333333333333, 1 }, GW_METRIC_DELAY, "S",
          "b", "S-U:S" },
        { "no delay makes no loop", "abSTU", { "aS", "ST", "SU", "TU", "Tb" }, { 0 },
          GW_METRIC_DELAY, "U", "b", "T-U:U" },
        { "a host does not forward", "abcST", { "aS", "ab", "bc", "ST", "Tc" }, { 0 },
          GW_METRIC_HOPS, "a", "c", "a-S:a" },
        { "a link between hosts is used by them", "abST", { "aS", "ab", "ST", "Tb" }, { 0 },
          GW_METRIC_HOPS, "a", "b", "a-b:a" },
        { "parallel links are two ways", "abST", { "aS", "ST", "ST", "Tb" }, { 0 },
          GW_METRIC_HOPS, "S", "b", "S-T:S S-T#2:S" },
        { "last link from the leaf", "abS", { "aS", "Sb" }, { 0 }, GW_METRIC_HOPS, "S", "b",
          "S-b:S" },
        { "pair", "ab", { "ab" }, { 0 }, GW_METRIC_HOPS, "b", "a", "a-b:b" },
        { "two-homed host, both ways", "abST", { "aS", "bS", "bT", "ST", "aT" }, { 0 },
          GW_METRIC_HOPS, "a", "b", "a-S:a a-T:a" },
        { "no way", "abcdST", { "aS", "bS", "cT", "dT" }, { 0 }, GW_METRIC_HOPS, "a", "d", "" },
        { "to itself", "abS", { "aS", "Sb" }, { 0 }, GW_METRIC_HOPS, "a", "a", "" },
    };
    size_t i;

    for (i = 0; i < GW_ARRAY_LEN(row); i++) {
        struct gw_error err = { 0 };
        struct gw_routes *r;
        struct fixture f;
        char buf[256];

        open_graph(&f);
        add_nodes(&f, row[i].nodes);
        add_links(&f, row[i].pairs, row[i].delay_ps);
        r = gw_routes_new(f.g, row[i].metric, &err);
        CU_ASSERT_FATAL(r != NULL);
        route_text(&f, r, row[i].from, row[i].to, buf, sizeof buf);
        CHECK_ROW(!strcmp(buf, row[i].want), "%s: got \"%s\", want \"%s\"", row[i].what, buf,
                  row[i].want);
        gw_routes_free(r);
        gw_graph_free(f.g);
    }
}

static void weights_tie(void)
{
    struct fixture f;
    struct gw_routes *r;
    char buf[64];
    static const char *const pairs[] = { "aS", "ST", "SU", "TV", "UV", "Vb", NULL };
    static const double weight[] = { 1, 0.1, 0.3, 0.3, 0.1, 1 };
    size_t i;

    open_graph(&f);
    add_nodes(&f, "abSTUV");
    add_links(&f, pairs, NULL);
    for (i = 0; i < 6; i++)
        f.g->link[i].weight = weight[i];
    r = gw_routes_new(f.g, GW_METRIC_WEIGHT, NULL);
    CU_ASSERT_FATAL(r != NULL);
    CU_ASSERT_STRING_EQUAL(route_text(&f, r, "S", "b", buf, sizeof buf), "S-T:S S-U:S");
    gw_routes_free(r);
    f.g->link[1].weight = 0.100001;
    r = gw_routes_new(f.g, GW_METRIC_WEIGHT, NULL);
    CU_ASSERT_FATAL(r != NULL);
    CU_ASSERT_STRING_EQUAL(route_text(&f, r, "S", "b", buf, sizeof buf), "S-U:S");
    gw_routes_free(r);
    gw_graph_free(f.g);
}

static void unreachable_names_both_parts(void)
{
    static const char *const apart[] = { "aS", "bS", "cT", "dT", NULL };
    static const char *const behind[] = { "ab", "bc", NULL };
    struct gw_error err = { 0 };
    struct gw_routes *r;
    struct fixture f;

    open_graph(&f);
    add_nodes(&f, "abcdST");
    add_links(&f, apart, NULL);
    r = gw_routes_new(f.g, GW_METRIC_HOPS, NULL);
    CU_ASSERT_FATAL(r != NULL);
    CU_ASSERT_EQUAL(gw_routes_check(f.g, r, 0, 1, "x", &err), GW_OK);
    CU_ASSERT_EQUAL(gw_routes_check(f.g, r, 0, 3, "x:1:2", &err), GW_ROUTE);
    CHECK_ROW(strstr(err.text, "3 nodes (a, b, S)") && strstr(err.text, "3 nodes (d, c, T)"),
              "got \"%s\"", err.text);
    memset(&err, 0, sizeof err);
    CU_ASSERT_EQUAL(gw_routes_check(f.g, r, 0, 4, "x:1:2", &err), GW_ROUTE);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "S is a switch"));
    gw_routes_free(r);
    gw_graph_free(f.g);

    memset(&err, 0, sizeof err);
    open_graph(&f);
    add_nodes(&f, "abc");
    add_links(&f, behind, NULL);
    r = gw_routes_new(f.g, GW_METRIC_HOPS, NULL);
    CU_ASSERT_FATAL(r != NULL);
    CU_ASSERT_EQUAL(gw_routes_check(f.g, r, 0, 2, "x:1:2", &err), GW_ROUTE);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "do not forward"));
    gw_routes_free(r);
    gw_graph_free(f.g);
}

static void too_long_to_compare(void)
{
    static const char *const pairs[] = { "aS", "ST", "TU", "Ub", NULL };
    static const uint64_t delay_ps[] = { 1, 5000000000000000, 5000000000000000, 1 };
    struct gw_error err = { 0 };
    struct fixture f;

    open_graph(&f);
    add_nodes(&f, "abSTU");
    add_links(&f, pairs, delay_ps);
    CU_ASSERT_PTR_NULL(gw_routes_new(f.g, GW_METRIC_DELAY, &err));
    CU_ASSERT_EQUAL(err.code, GW_RANGE);
    gw_graph_free(f.g);
}

static const struct gw_case cases[] = {
    { "names are unique", names_are_unique },
    { "many equal names", many_equal_names },
    { "parallel links stay", parallel_links_stay },
    { "the builder refuses", builder_refuses },
    { "too large graphs are refused", too_large },
    { "devices", devices },
    { "overrides", overrides },
    { "routes", routes },
    { "weights tie", weights_tie },
    { "unreachable names both parts", unreachable_names_both_parts },
    { "too long to compare", too_long_to_compare },
    { NULL, NULL },
};

extern const struct gw_suite suite_graph;
const struct gw_suite suite_graph = { "graph", cases };
