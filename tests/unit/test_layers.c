/*
 * test_layers.c - readers of layer tables: what the four formats mean, and what is refused
 */
#include "suite.h"

#include <gradwire/convert.h>
#include <stdlib.h>

static struct gw_layers *read_text(const char *text, size_t n, enum gw_layer_format format,
                                   struct gw_error *err)
{
    char *copy = malloc(n + 1);
    struct gw_layers *l;
    FILE *f;

    memcpy(copy, text, n);
    f = fmemopen(copy, n + !n, "r");
    if (!n)
        fgetc(f);
    l = gw_layers_read(f, "x", format, err);
    fclose(f);
    free(copy);
    return l;
}

/* A whole table as "name param forward_ns backward_ns activation" joined by " | ". */
static void describe(const struct gw_layers *l, char *buf, size_t n)
{
    size_t at = 0;

    buf[0] = 0;
    for (uint32_t i = 0; i < l->count && at + 100 < n; i++)
        at += (size_t)snprintf(buf + at, n - at, "%s%s %llu %.0f %.0f %llu", i ? " | " : "",
                               l->layer[i].name, (unsigned long long)l->layer[i].param_bytes,
                               l->layer[i].forward_s * 1e9, l->layer[i].backward_s * 1e9,
                               (unsigned long long)l->layer[i].activation_bytes);
}

#define VERTEX(n, d, f, b, a, p)                                                             \
    "node" n " -- " d " -- forward_compute_time=" f ", backward_compute_time=" b             \
    ", activation_size=" a ", parameter_size=" p "\n"

static const struct {
    const char *name;
    enum gw_layer_format format;
    const char *text, *want;
} good[] = {
    { "our table", GW_LAYERS_AUTO,
      "# c\nname,param_bytes,forward_s,backward_s,activation_bytes\n# c\na,1,1e-9,2e-9,3\n\n"
      "\"b, \"\"q\"\"\",0,0,0.5e-6,0\r\n",
      "a 1 1 2 3 | b, \"q\" 0 0 500 0" },
    { "a byte order mark before it", GW_LAYERS_AUTO,
      "\xef\xbb\xbf" "name,param_bytes,forward_s,backward_s,activation_bytes\na,1,0,0,3\n",
      "a 1 0 0 3" },
    { "PipeDream, out of order, with a list of activations", GW_LAYERS_AUTO,
      VERTEX("10", "Linear(in_features=2, out_features=1)", "0.196", "1.5", "8.000", "12.000")
      VERTEX("2", "LSTM(2048, 1024)", "2.000", "3.000", "[6.0; 1.0; 1.0]", "7.0")
      VERTEX("1", "Input0", "0.000", "0.000", "0.0", "0.000")
      "\tnode1 -- node2\n\tnode2 -- node10",
      "node1 Input0 0 0 0 0 | node2 LSTM 7 2000000 3000000 8 | node10 Linear 12 196000 1500000 8" },
    { "PipeDream, edges against the numbers", GW_LAYERS_AUTO,
      VERTEX("1", "a", "1", "0", "0", "0") VERTEX("2", "b", "1", "0", "0", "0")
      VERTEX("3", "c", "1", "0", "0", "0")
      "\tnode3 -- node1\n\tnode1 -- node2\n\tnode3 -- node2\n",
      "node3 c 0 1000000 0 0 | node1 a 0 1000000 0 0 | node2 b 0 1000000 0 0" },
    { "ASTRA-sim with tabs behind the header", GW_LAYERS_AUTO,
      "HYBRID_DLRM\t4\t\t\r\n2\t\t\r\n"
      "Emb\t-1\t300\tALLTOALL\t98304\t301\tALLTOALL\t5\t302\tNONE\t0\t98\r\n"
      "MLP\t-1\t1280\tNONE\t7\t794\tNONE\t0\t896\tALLREDUCE\t13312\t13\r\n",
      "Emb 0 300 603 98304 | MLP 13312 1280 1690 0" },
    { "LIBRA, without a header", GW_LAYERS_AUTO,
      "conv1 -1 13003 NONE 0 12864 NONE 0 32291 ALLREDUCE 51005824 3229\n"
      "l -1 3456 NONE 0 3648 NONE 0 7488 NONE 0 0",
      "conv1 51005824 13003 45155 0 | l 0 3456 11136 0" },
    { "13 fields of HybridCustomized", GW_LAYERS_AUTO,
      "HybridCustomized\n1\nx -1 5 NONE 0 5 NONE 0 5 ALLREDUCE 10 5 DATA\n", "x 10 5 10 0" },
    { "a 4 GiB gradient", GW_LAYERS_AUTO,
      "DATA\n1\nx -1 0 NONE 0 0 NONE 0 0 ALLREDUCE 4294967297 0\n", "x 4294967297 0 0 0" },
    { "SimAI with suffixes", GW_LAYERS_AUTO,
      "HYBRID_TRANSFORMER_FWD_IN_BCKWD model_parallel_NPU_group: 2 ep: 16 checkpoints: 0\n3\n"
      "g\t-1\t1\tNONE\t0\t1\tNONE\t0\t1\tALLGATHER\t28\t100\n"
      "h\t-1\t1\tALLGATHER_DP_EP\t9\t1\tNONE\t0\t1\tREDUCESCATTER_DP_EP\t56\t100\n"
      "i\t-1\t1\tALLTOALL_EP\t8\t1\tNONE\t0\t1\tALLREDUCE_DP_EP\t7\t100\n",
      "g 0 1 2 0 | h 56 1 2 9 | i 7 1 2 8" },
    { "SimAI, the header promises more", GW_LAYERS_AUTO,
      "HYBRID_TRANSFORMER_FWD_IN_BCKWD checkpoints: 0\n839\n"
      "g -1 1 NONE 0 1 NONE 0 1 NONE 0 100\n", "g 0 1 2 0" },
    { "AIOB times", GW_LAYERS_AUTO,
      "train_iter:10\nEmb:\n    time_gpu_max: 857\n    time_gpu_min: 782\n    time_gpu_avg: 799\n"
      "norm:\n    time_gpu_avg: 70\n", "Emb 0 799000 0 0 | norm 0 70000 0 0" },
};

/* What a table of gradients leaves out of an ASTRA-sim file is told. */
static void left_out(void)
{
    static const struct { const char *text, *want; } row[] = {
        { "DATA\n1\nx -1 5 NONE 0 5 NONE 0 5 ALLREDUCE 10 5\n", "" },
        { "DATA\n1\nx -1 5 ALLREDUCE 0 5 NONE 9 5 ALLREDUCE 10 5\n", "" },
        { "MODEL\n2\nx -1 5 ALLREDUCE 3 5 ALLGATHER 4 5 ALLREDUCE 10 5\n"
          "y -1 5 NONE 0 5 NONE 0 5 ALLTOALL 5 5\n", "3 collectives of an iteration, 12 bytes" },
    };

    for (size_t i = 0; i < GW_ARRAY_LEN(row); i++) {
        struct gw_error err = { GW_OK, "" };
        struct gw_layers *l = read_text(row[i].text, strlen(row[i].text), GW_LAYERS_AUTO, &err);
        const char *got = l && l->warning ? l->warning : "";

        CHECK_ROW(l != NULL, "row %zu: %s", i, err.text);
        CHECK_ROW(!*row[i].want == !*got && !strncmp(got, row[i].want, strlen(row[i].want)),
                  "row %zu: got \"%s\", want \"%s\"", i, got, row[i].want);
        gw_layers_free(l);
    }
}

static void meanings(void)
{
    for (size_t i = 0; i < GW_ARRAY_LEN(good); i++) {
        struct gw_error err = { GW_OK, "" };
        struct gw_layers *l = read_text(good[i].text, strlen(good[i].text), good[i].format, &err);
        char got[600] = "";

        CHECK_ROW(l != NULL, "%s: %s", good[i].name, err.text);
        if (!l)
            continue;
        describe(l, got, sizeof got);
        CHECK_ROW(!strcmp(got, good[i].want), "%s: got %s, want %s", good[i].name, got,
                  good[i].want);
        gw_layers_free(l);
    }
}

/* Written and read again, everything is the same to the last bit. */
static void round_trip(void)
{
    for (size_t i = 0; i < GW_ARRAY_LEN(good); i++) {
        struct gw_layers *a = read_text(good[i].text, strlen(good[i].text), good[i].format, NULL);
        struct gw_layers *b;
        char  *text = NULL;
        size_t n    = 0;
        FILE  *f    = open_memstream(&text, &n);

        CU_ASSERT_FATAL(a != NULL && f != NULL);
        CU_ASSERT(gw_layers_write(a, f, NULL) == GW_OK);
        fclose(f);
        b = read_text(text, n, GW_LAYERS_CSV, NULL);
        CU_ASSERT_FATAL(b != NULL && b->count == a->count);
        for (uint32_t k = 0; k < a->count; k++)
            CHECK_ROW(!strcmp(a->layer[k].name, b->layer[k].name) &&
                      a->layer[k].param_bytes == b->layer[k].param_bytes &&
                      a->layer[k].forward_s == b->layer[k].forward_s &&
                      a->layer[k].backward_s == b->layer[k].backward_s &&
                      a->layer[k].activation_bytes == b->layer[k].activation_bytes,
                      "%s: row %u changes on its way through CSV: %s", good[i].name, k, text);
        gw_layers_free(a);
        gw_layers_free(b);
        free(text);
    }
}

/* Milliseconds become seconds without a stray last digit. */
static void decimals(void)
{
    static const char text[] = VERTEX("1", "a", "0.196", "2.946", "0", "0");
    struct gw_layers *l = read_text(text, strlen(text), GW_LAYERS_PIPEDREAM, NULL);

    CU_ASSERT_FATAL(l != NULL);
    CU_ASSERT(l->layer[0].forward_s == 0.000196 && l->layer[0].backward_s == 0.002946);
    gw_layers_free(l);
}

static void refusals(void)
{
    static const struct {
        const char *text, *want;
        enum gw_layer_format format;
    } row[] = {
        { "", "empty", GW_LAYERS_AUTO },
        { "# only\n\n", "empty", GW_LAYERS_AUTO },
        { "name,param_bytes,forward_s,backward_s,activation_bytes\n", "no layers", GW_LAYERS_AUTO },
        { "name,param_bytes,forward_s,backward_s,activation_bytes\na,1,2\n", "x:2: a layer has 5",
          GW_LAYERS_AUTO },
        { "name,param_bytes,forward_s,backward_s,activation_bytes\n\"a,1,0,0,0\n", "x:2:",
          GW_LAYERS_AUTO },
        { "name,param_bytes,forward_s,backward_s,activation_bytes\na,1,inf,0,0\n", "forward_s",
          GW_LAYERS_AUTO },
        { "DATA\n1\nx -1 5 NONE 0 5 NONE 0 5 NONE 0 5\n", "x:1: a layer table begins",
          GW_LAYERS_CSV },
        { "node1 -- a\n", "x:1: a vertex is", GW_LAYERS_AUTO },
        { "node1 -- a -- forward_compute_time=1\n", "x:1: the vertex lacks backward",
          GW_LAYERS_AUTO },
        { VERTEX("1", "a", "-1", "0", "0", "0"), "forward_compute_time is \"-1\"", GW_LAYERS_AUTO },
        { VERTEX("1", "a", "1", "0", "0", "0.5"), "parameter_size is \"0.5\"", GW_LAYERS_AUTO },
        { VERTEX("1", "a", "1", "0", "[1; 2", "0"), "activation_size", GW_LAYERS_AUTO },
        { VERTEX("1", "a", "1", "0", "0", "0") VERTEX("1", "b", "1", "0", "0", "0"),
          "x:2: node1 stands in line 1", GW_LAYERS_AUTO },
        { VERTEX("1", "a", "1", "0", "0", "0") "\tnode1 -- node2\n", "x:2: the edge names node2",
          GW_LAYERS_AUTO },
        { VERTEX("1", "a", "1", "0", "0", "0") "\tnode1 - node1\n", "x:2: an edge is",
          GW_LAYERS_AUTO },
        { VERTEX("1", "a", "1", "0", "0", "0") VERTEX("2", "b", "1", "0", "0", "0")
          "\tnode1 -- node2\n\tnode2 -- node1\n", "cycle", GW_LAYERS_AUTO },
        { "DATA\n", "the number of layers", GW_LAYERS_AUTO },
        { "DATA\n0\n", "the number of layers", GW_LAYERS_AUTO },
        { "DATA\n2\nx -1 5 NONE 0 5 NONE 0 5 NONE 0 5\n",
          "promises 2 layers, the file ends after 1",
          GW_LAYERS_AUTO },
        { "DATA\n1\nx -1 5 NONE 0 5 NONE 0 5 NONE 0 5\ny -1 5 NONE 0 5 NONE 0 5 NONE 0 5\n",
          "x:4: the header promises 1", GW_LAYERS_AUTO },
        { "DATA\n1\nx -1 5 NONE 0 5 NONE 0 5 NONE 0\n", "x:3: a layer has 12 fields",
          GW_LAYERS_AUTO },
        { "DATA\n1\nx -1 5 NONE 0 5 NUNE 0 5 NONE 0 5\n", "no collective \"NUNE\"",
          GW_LAYERS_AUTO },
        { "DATA\n1\nx -1 5 NONE 0 5 NONE -1 5 NONE 0 5\n", "input gradient's size",
          GW_LAYERS_AUTO },
        { "HYBRID_TRANSFORMER_FWD_IN_BCKWD checkpoints: 0\n2\nx -1 5 NONE 0 5 NONE 0 5 NONE 0 5\n",
          "promises 2", GW_LAYERS_ASTRA },
        { "{\"json\": 1}\n", "x: the file is no layer table (CSV), PipeDream", GW_LAYERS_AUTO },
        { "{\"json\": 1}\n", "x:1:", GW_LAYERS_ASTRA },
        { "DATA\n1\nx -1 0 ALLREDUCE 5 0 NONE 0 0 NONE 0 5\n",
          "gradients of all its layers are 0; a table that computes or sends something is needed; "
          "1 collectives", GW_LAYERS_AUTO },
        { "name,param_bytes,forward_s,backward_s,activation_bytes\na,0,0,0,9\n",
          "gradients of all its layers are 0", GW_LAYERS_AUTO },
        { "train_iter:10\nEmb:\n time_gpu_max: 1\n", "operator Emb has no time_gpu_avg",
          GW_LAYERS_AUTO },
        { "train_iter:10\n time_gpu_avg: 1\n", "no operator", GW_LAYERS_AUTO },
    };
    struct gw_error   err = { GW_OK, "" };
    struct gw_layers *l;

    for (size_t i = 0; i < GW_ARRAY_LEN(row); i++) {
        err = (struct gw_error){ GW_OK, "" };
        l   = read_text(row[i].text, strlen(row[i].text), row[i].format, &err);
        CHECK_ROW(!l && err.code == GW_SYNTAX && strstr(err.text, row[i].want),
                  "%s: says \"%s\", want \"%s\"", row[i].text, err.text, row[i].want);
        gw_layers_free(l);
    }
    err = (struct gw_error){ GW_OK, "" };
    l   = read_text("DATA\n1\nx\0y -1\n", 14, GW_LAYERS_AUTO, &err);
    CHECK_ROW(!l && strstr(err.text, "x:3: there is a zero byte"), "says \"%s\"", err.text);
}

static void write_failure(void)
{
    static const char text[] = "DATA\n1\nx -1 5 NONE 0 5 NONE 0 5 NONE 0 5\n";
    struct gw_layers *l = read_text(text, strlen(text), GW_LAYERS_AUTO, NULL);
    struct gw_error err = { GW_OK, "" };
    FILE *f = fopen("/dev/full", "w");

    CU_ASSERT_FATAL(l != NULL);
    if (f) {
        CU_ASSERT(gw_layers_write(l, f, &err) == GW_IO && err.code == GW_IO);
        fclose(f);
    }
    gw_layers_free(l);
}

static const struct gw_case cases[] = {
    { "what the formats mean", meanings },
    { "what a table leaves out", left_out },
    { "there and back", round_trip },
    { "decimals", decimals },
    { "refusals", refusals },
    { "a full disk", write_failure },
    { NULL, NULL },
};

const struct gw_suite suite_layers = { "layers", cases };
