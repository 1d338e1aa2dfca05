/*
 * fuzz_topo_file - any bytes as a GML or GraphML file: a graph or a sentence, never a crash
 *
 * What loads is also searched for routes, so that odd graphs meet the whole road.
 */
#include "../../topologies/topo_file.c"

#include "emu/net/graph.h"

#include <assert.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void *fuzz_alloc(size_t bytes)
{
    return calloc(1, bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct gw_host host = { .alloc = fuzz_alloc, .resize = realloc, .release = free };
    struct file_conf conf = { .km_per_ms = 200, .mtu_bytes = 1500, .framing_bytes = 24,
                              .link = { .rate_bps = 1000000000, .delay_ps = GW_PS_PER_MS } };
    struct gw_topology t = { .host = &host, .conf = &conf };
    struct gw_error err = { 0 };
    char *text = malloc(size + 1);
    enum gw_status st;

    gw_graph_host(&host);
    t.graph = gw_graph_new(&host);
    assert(text && t.graph);
    memcpy(text, data, size);
    text[size] = '\0';
    st = load_text(&t, text, size, "fuzz", &err);
    assert((st == GW_OK) == !err.text[0]);
    if (st == GW_OK && t.graph->node_count < 200)
        gw_routes_free(gw_routes_new(t.graph, GW_METRIC_DELAY, NULL));
    gw_graph_free(t.graph);
    free(text);
    return 0;
}
