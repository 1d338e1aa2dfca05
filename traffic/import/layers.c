/*
 * layers - layer tables: other tools' formats in, our CSV in and out
 *
 * PipeDream: the text graph of its profiler. Vertices "nodeN -- description --
 * forward_compute_time=.., backward_compute_time=.., activation_size=.., parameter_size=..", edges
 * "<tab>nodeA -- nodeB"; times in ms per mini-batch, sizes in bytes, a list [a; b] of activations
 * is added up. Rows come out in topological order, among free vertices the lowest number first. The
 * vertex "Input" is kept as it was measured: its forward time is the loading of data, which
 * PipeDream's own planner sets to 0.
 *
 * ASTRA-sim 1.0: a parallelism word (with "key: value" pairs for some), the number of layers, then
 * rows of 12 fields: name, dependency, then compute time, collective and size of the forward pass,
 * of input gradients and of weight gradients, and the update time; ns and bytes. LIBRA's tables
 * lack the two header lines. param_bytes is the size of the weight gradients' all-reduce (or
 * reduce-scatter, as sharded optimizers have), activation_bytes the size of the forward collective.
 * SimAI's text is the same with suffixes on collectives; headers of that kind that promise more
 * rows than there are exist upstream and are accepted, with a remark in the source line.
 * Collectives are the tables' own; what they were meant for (tensor or expert groups) is left out.
 *
 * AIOB ("train_iter: .." then per operator time_gpu_max/min/avg in us) is SimAI's input of compute
 * times; it becomes a table of forward times without gradients.
 */
#include <stdlib.h>

#include <gradwire/alg/layertable.h>
#include <gradwire/convert.h>

struct reader {
    FILE       *f;
    const char *path;
    char       *line;            /* the current one, without its end                           */
    size_t      room;
    uint32_t    no;              /* its number                                                 */
    struct gw_layers *out;
    uint32_t    cap;
    uint32_t    dropped;         /* collectives of an ASTRA-sim file that have no column       */
    uint64_t    dropped_bytes;
    bool        again;           /* the current line was not used: next_line gives it again    */
    struct gw_error  *err;
};

/* ---- lines and rows ----------------------------------------------------------------------- */

/* The next line that is not blank, with its leading blanks; NULL at the end or after a failure. */
static char *next_line(struct reader *r)
{
    enum gw_status st = GW_OK;
    size_t n;

    if (r->again) {
        r->again = false;
        return r->line;
    }
    while (gw_text_line(r->f, r->path, &r->line, &r->room, &r->no, &st, r->err)) {
        n = strlen(r->line);
        while (n && isspace((unsigned char)r->line[n - 1]))
            r->line[--n] = '\0';
        if (!gw_line_blank(r->line))
            return r->line;
    }
    return NULL;
}

static enum gw_status failed(const struct reader *r)
{
    return r->err->code;
}

/* Appends a row; the name is copied. */
static enum gw_status add_layer(struct reader *r, const char *name, const struct gw_layer *values)
{
    struct gw_layers *l = r->out;

    if (l->count == r->cap) {
        uint32_t         cap  = r->cap ? r->cap * 2 : 64;
        struct gw_layer *more = realloc(l->layer, (size_t)cap * sizeof *more);

        if (!more)
            return gw_fail(r->err, GW_NOMEM, "%s: out of memory", r->path);
        l->layer = more;
        r->cap   = cap;
    }
    if (l->count == GW_LAYER_MAX)
        return gw_fail(r->err, GW_SYNTAX, "%s:%u: more than %u layers", r->path, r->no,
                       GW_LAYER_MAX);
    l->layer[l->count]      = *values;
    l->layer[l->count].name = strdup(name);
    if (!l->layer[l->count].name)
        return gw_fail(r->err, GW_NOMEM, "%s: out of memory", r->path);
    l->count++;
    return GW_OK;
}

static enum gw_status set_source(struct reader *r, const char *text)
{
    free(r->out->source);
    r->out->source = strdup(text);
    return r->out->source ? GW_OK : gw_fail(r->err, GW_NOMEM, "%s: out of memory", r->path);
}

/* A time in units of 10^@exponent s; shifting the text keeps 0.196 ms at exactly 0.000196 s. */
static enum gw_status read_time(struct reader *r, const char *text, const char *what, int exponent,
                                double *s)
{
    char shifted[80];
    bool ok = gw_num_f64(text, s);       /* *s is set only then                                */

    if (ok && strlen(text) < 64 && !strpbrk(text, "eE")) {
        snprintf(shifted, sizeof shifted, "%se%d", text, exponent);
        ok = gw_num_f64(shifted, s);
    } else if (ok) {
        *s *= pow(10, exponent);
    }
    if (!ok || *s < 0 || *s > GW_LAYER_S_MAX)
        return gw_fail(r->err, GW_SYNTAX, "%s:%u: %s is \"%.60s\"; a time from 0 to 1e7 s is "
                       "expected", r->path, r->no, what, text);
    return GW_OK;
}

static enum gw_status read_bytes(struct reader *r, const char *text, const char *what, uint64_t *n)
{
    if (!gw_num_bytes(text, n) || *n > INT64_MAX)
        return gw_fail(r->err, GW_SYNTAX, "%s:%u: %s is \"%.60s\"; a whole number of bytes from 0 "
                       "to 2^63-1 is expected", r->path, r->no, what, text);
    return GW_OK;
}

/* ---- our CSV ------------------------------------------------------------------------------ */

static enum gw_status read_csv(struct reader *r)
{
    char *line = next_line(r);

    if (!line || !gw_layer_header(line))
        return gw_fail(r->err, GW_SYNTAX, "%s:%u: a layer table begins with %s", r->path, r->no,
                       GW_LAYER_HEADER);
    while ((line = next_line(r))) {
        struct gw_layer_row row;
        struct gw_layer     layer;

        if (gw_layer_row_read(line, r->path, r->no, &row, r->err) != GW_OK)
            return failed(r);
        layer = (struct gw_layer){ NULL, row.param_bytes, row.forward_s, row.backward_s,
                                   row.activation_bytes };
        if (add_layer(r, row.name, &layer) != GW_OK)
            return failed(r);
    }
    return failed(r);
}

/* ---- PipeDream ---------------------------------------------------------------------------- */

struct vertex {
    uint32_t number;             /* N of nodeN                                                 */
    uint32_t layer;              /* row, in order of the file                                  */
    uint32_t line;
    uint32_t inputs;             /* edges into it that are not done                            */
    uint32_t first_edge, edges;  /* its edges out, in struct edge                              */
};

struct edge {
    uint32_t from, to;           /* node numbers; later vertex indices                         */
    uint32_t line;
};

struct graph {
    struct vertex *vertex;
    struct edge   *edge;
    uint32_t       vertices, edges, vertex_cap, edge_cap;
};

/* "nodeN" at *s; moves *s behind it. */
static bool node_number(const char **s, uint32_t *n)
{
    uint64_t x = 0;

    if (strncmp(*s, "node", 4) || !isdigit((unsigned char)(*s)[4]))
        return false;
    for (*s += 4; isdigit((unsigned char)**s); (*s)++) {
        x = x * 10 + (uint64_t)(**s - '0');
        if (x > UINT32_MAX)
            return false;
    }
    *n = (uint32_t)x;
    return true;
}

/* The text behind "key=" up to the next comma outside brackets, copied to @buf. */
static enum gw_status attribute(struct reader *r, const char *attrs, const char *key, char *buf,
                                size_t room)
{
    const char *at = strstr(attrs, key);
    size_t n;

    if (!at || at[strlen(key)] != '=')
        return gw_fail(r->err, GW_SYNTAX, "%s:%u: the vertex lacks %s=", r->path, r->no, key);
    at += strlen(key) + 1;
    n   = *at == '[' ? strcspn(at, "]") + 1 : strcspn(at, ", ");
    if (n >= room || strlen(at) < n)
        return gw_fail(r->err, GW_SYNTAX, "%s:%u: %s=%.40s.. is not a number", r->path, r->no, key,
                       at);
    memcpy(buf, at, n);
    buf[n] = '\0';
    return GW_OK;
}

/* A size, or a list [a; b] of sizes that are added up. */
static enum gw_status read_sizes(struct reader *r, char *text, uint64_t *sum)
{
    char *save = NULL;

    *sum = 0;
    if (*text != '[')
        return read_bytes(r, text, "activation_size", sum);
    text[strlen(text) - 1] = '\0';
    for (char *t = strtok_r(text + 1, "; ", &save); t; t = strtok_r(NULL, "; ", &save)) {
        uint64_t n;

        if (read_bytes(r, t, "activation_size", &n) != GW_OK)
            return failed(r);
        *sum += n;
        if (*sum > INT64_MAX)
            return gw_fail(r->err, GW_SYNTAX, "%s:%u: the activations add up to more than 2^63 "
                           "bytes", r->path, r->no);
    }
    return GW_OK;
}

/* Room for one more element in *@at. */
static enum gw_status make_room(struct reader *r, void *at, uint32_t count, uint32_t *cap,
                                size_t size)
{
    void   **array = at, *more;
    uint32_t want  = *cap ? *cap * 2 : 64;

    if (count < *cap)
        return GW_OK;
    if (want > 4 * GW_LAYER_MAX)
        return gw_fail(r->err, GW_SYNTAX, "%s:%u: more than %u vertices or edges", r->path, r->no,
                       *cap);
    more = realloc(*array, (size_t)want * size);
    if (!more)
        return gw_fail(r->err, GW_NOMEM, "%s: out of memory", r->path);
    *array = more;
    *cap   = want;
    return GW_OK;
}

/* "nodeN -- description -- attributes" */
static enum gw_status read_vertex(struct reader *r, struct graph *g, const char *line)
{
    const char *s = line, *desc, *attrs;
    struct gw_layer layer = { 0 };
    struct vertex   v = { .layer = r->out->count, .line = r->no };
    char name[128], text[512];
    int  length;

    if (!node_number(&s, &v.number) || strncmp(s, " -- ", 4) || !(attrs = strstr(s + 4, " -- ")))
        return gw_fail(r->err, GW_SYNTAX, "%s:%u: a vertex is \"nodeN -- description -- "
                       "forward_compute_time=.., ..\"", r->path, r->no);
    desc   = s + 4;
    length = (int)strcspn(desc, "( ");
    snprintf(name, sizeof name, "node%u %.*s", v.number, length < 100 ? length : 100, desc);
    if (attribute(r, attrs, "forward_compute_time", text, sizeof text) != GW_OK ||
        read_time(r, text, "forward_compute_time", -3, &layer.forward_s) != GW_OK ||
        attribute(r, attrs, "backward_compute_time", text, sizeof text) != GW_OK ||
        read_time(r, text, "backward_compute_time", -3, &layer.backward_s) != GW_OK ||
        attribute(r, attrs, "activation_size", text, sizeof text) != GW_OK ||
        read_sizes(r, text, &layer.activation_bytes) != GW_OK ||
        attribute(r, attrs, "parameter_size", text, sizeof text) != GW_OK ||
        read_bytes(r, text, "parameter_size", &layer.param_bytes) != GW_OK ||
        make_room(r, &g->vertex, g->vertices, &g->vertex_cap, sizeof v) != GW_OK ||
        add_layer(r, name, &layer) != GW_OK)
        return failed(r);
    g->vertex[g->vertices++] = v;
    return GW_OK;
}

/* "<tab>nodeA -- nodeB" */
static enum gw_status read_edge(struct reader *r, struct graph *g, const char *line)
{
    const char *s = line + strspn(line, " \t");
    struct edge e = { .line = r->no };

    if (!node_number(&s, &e.from) || strncmp(s, " -- ", 4))
        goto bad;
    s += 4;
    if (!node_number(&s, &e.to) || *s)
        goto bad;
    if (make_room(r, &g->edge, g->edges, &g->edge_cap, sizeof e) != GW_OK)
        return failed(r);
    g->edge[g->edges++] = e;
    return GW_OK;

bad:
    return gw_fail(r->err, GW_SYNTAX, "%s:%u: an edge is \"<tab>nodeA -- nodeB\"", r->path, r->no);
}

static int by_number(const void *a, const void *b)
{
    const struct vertex *x = a, *y = b;

    if (x->number != y->number)
        return x->number < y->number ? -1 : 1;
    return x->line < y->line ? -1 : x->line > y->line;
}

static int by_from(const void *a, const void *b)
{
    const struct edge *x = a, *y = b;

    if (x->from != y->from)
        return x->from < y->from ? -1 : 1;
    return x->line < y->line ? -1 : x->line > y->line;
}

/* Index of the vertex numbered @n, GW_NONE: none. Vertices are sorted. */
static uint32_t find_vertex(const struct graph *g, uint32_t n)
{
    uint32_t lo = 0, hi = g->vertices;

    while (lo < hi) {
        uint32_t mid = lo + (hi - lo) / 2;

        if (g->vertex[mid].number < n)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo < g->vertices && g->vertex[lo].number == n ? lo : GW_NONE;
}

/* Sorts vertices and edges, replaces numbers by indices, counts inputs. */
static enum gw_status link_graph(struct reader *r, struct graph *g)
{
    qsort(g->vertex, g->vertices, sizeof *g->vertex, by_number);
    for (uint32_t i = 1; i < g->vertices; i++)
        if (g->vertex[i].number == g->vertex[i - 1].number)
            return gw_fail(r->err, GW_SYNTAX, "%s:%u: node%u stands in line %u already", r->path,
                           g->vertex[i].line, g->vertex[i].number, g->vertex[i - 1].line);
    for (uint32_t i = 0; i < g->edges; i++) {
        struct edge *e = &g->edge[i];
        uint32_t from = find_vertex(g, e->from), to = find_vertex(g, e->to);

        if (from == GW_NONE || to == GW_NONE)
            return gw_fail(r->err, GW_SYNTAX, "%s:%u: the edge names node%u, which is no vertex",
                           r->path, e->line, from == GW_NONE ? e->from : e->to);
        e->from = from;
        e->to   = to;
        g->vertex[to].inputs++;
    }
    if (g->edges)
        qsort(g->edge, g->edges, sizeof *g->edge, by_from);
    for (uint32_t i = 0; i < g->edges; i++)
        if (g->vertex[g->edge[i].from].edges++ == 0)
            g->vertex[g->edge[i].from].first_edge = i;
    return GW_OK;
}

/* A heap of vertex indices, the lowest on top. */
static void heap_push(uint32_t *heap, uint32_t *n, uint32_t x)
{
    uint32_t i = (*n)++;

    for (; i && heap[(i - 1) / 2] > x; i = (i - 1) / 2)
        heap[i] = heap[(i - 1) / 2];
    heap[i] = x;
}

static uint32_t heap_pop(uint32_t *heap, uint32_t *n)
{
    uint32_t top = heap[0], x = heap[--*n], i = 0;

    for (;;) {
        uint32_t child = 2 * i + 1;

        if (child >= *n)
            break;
        if (child + 1 < *n && heap[child + 1] < heap[child])
            child++;
        if (heap[child] >= x)
            break;
        heap[i] = heap[child];
        i = child;
    }
    heap[i] = x;
    return top;
}

/* Puts the rows into topological order (Kahn 1962). @layer and @heap: room for every vertex. */
static enum gw_status order_layers(struct reader *r, struct graph *g, struct gw_layer *layer,
                                   uint32_t *heap)
{
    uint32_t free_count = 0, done = 0;

    for (uint32_t i = 0; i < g->vertices; i++)
        if (!g->vertex[i].inputs)
            heap_push(heap, &free_count, i);
    while (free_count) {
        const struct vertex *v = &g->vertex[heap_pop(heap, &free_count)];

        layer[done++] = r->out->layer[v->layer];
        for (uint32_t k = 0; k < v->edges; k++) {
            uint32_t to = g->edge[v->first_edge + k].to;

            if (--g->vertex[to].inputs == 0)
                heap_push(heap, &free_count, to);
        }
    }
    for (uint32_t i = 0; i < g->vertices && done < g->vertices; i++)
        if (g->vertex[i].inputs)
            return gw_fail(r->err, GW_SYNTAX, "%s:%u: node%u is on a cycle or behind one; the "
                           "graph of a model has none", r->path, g->vertex[i].line,
                           g->vertex[i].number);
    memcpy(r->out->layer, layer, (size_t)done * sizeof *layer);
    return GW_OK;
}

static enum gw_status sort_layers(struct reader *r, struct graph *g)
{
    struct gw_layer *layer = malloc((size_t)g->vertices * sizeof *layer);
    uint32_t        *heap  = malloc((size_t)g->vertices * sizeof *heap);
    enum gw_status   st;

    if (!layer || !heap)
        st = gw_fail(r->err, GW_NOMEM, "%s: out of memory", r->path);
    else if ((st = link_graph(r, g)) == GW_OK)
        st = order_layers(r, g, layer, heap);
    free(layer);
    free(heap);
    return st;
}

static enum gw_status read_pipedream(struct reader *r)
{
    struct graph g = { 0 };
    char *line;

    while (failed(r) == GW_OK && (line = next_line(r))) {
        if (isspace((unsigned char)*line))
            read_edge(r, &g, line);
        else
            read_vertex(r, &g, line);
    }
    if (failed(r) == GW_OK && g.vertices)
        sort_layers(r, &g);
    free(g.vertex);
    free(g.edge);
    return failed(r) == GW_OK ? set_source(r, "PipeDream profile") : failed(r);
}

/* ---- ASTRA-sim and SimAI ------------------------------------------------------------------ */

#define ASTRA_FIELDS 12
#define ASTRA_WORDS  14              /* 12, one more in HybridCustomized, one to see too many    */

/* Splits @line in place at blanks; returns the number of words, at most @max. */
static uint32_t words(char *line, char **word, uint32_t max)
{
    uint32_t n    = 0;
    char    *save = NULL;

    for (char *w = strtok_r(line, " \t\r\n", &save); w && n < max; w = strtok_r(NULL, " \t\r\n",
                                                                                &save))
        word[n++] = w;
    return n;
}

/* A collective of the format: NONE, or one of these with a suffix (_EP, _DP_EP ...) or none. */
static bool astra_collective(const char *s, const char *kind)
{
    size_t n = strlen(kind);

    return !strncmp(s, kind, n) && (s[n] == '\0' || s[n] == '_');
}

static enum gw_status astra_check(struct reader *r, const char *s)
{
    static const char *const known[] = { "NONE", "ALLREDUCE", "ALLGATHER", "REDUCESCATTER",
                                         "ALLTOALL", "BROADCAST", "ALLREDUCEALLTOALL" };

    for (size_t i = 0; i < GW_ARRAY_LEN(known); i++)
        if (astra_collective(s, known[i]))
            return GW_OK;
    return gw_fail(r->err, GW_SYNTAX, "%s:%u: there is no collective \"%.60s\"; NONE, ALLREDUCE, "
                   "ALLGATHER, REDUCESCATTER, ALLTOALL and BROADCAST are known", r->path, r->no,
                   s);
}

/* True for a row of the table: 12 or 13 words, the second an integer, the third a number. */
static bool astra_is_row(char *const *w, uint32_t n)
{
    double x;

    return (n == ASTRA_FIELDS || n == ASTRA_FIELDS + 1) && gw_num_f64(w[1], &x) &&
           gw_num_f64(w[2], &x);
}

/* A collective @s of @bytes that the table cannot hold. */
static void astra_drop(struct reader *r, const char *s, uint64_t bytes)
{
    if (astra_collective(s, "NONE") || !bytes)
        return;
    r->dropped++;
    r->dropped_bytes = bytes > UINT64_MAX - r->dropped_bytes ? UINT64_MAX
                                                             : r->dropped_bytes + bytes;
}

static enum gw_status astra_row(struct reader *r, char *const *w, uint32_t n)
{
    struct gw_layer layer = { 0 };
    double   input_s, weight_s, update_s;
    uint64_t forward, input, weight;

    if (!astra_is_row(w, n))
        return gw_fail(r->err, GW_SYNTAX, "%s:%u: a layer has 12 fields: name, dependency, three "
                       "times \"ns collective bytes\", update ns; here are %u", r->path, r->no, n);
    if (read_time(r, w[2], "the forward time", -9, &layer.forward_s) != GW_OK ||
        astra_check(r, w[3]) != GW_OK ||
        read_bytes(r, w[4], "the forward size", &forward) != GW_OK ||
        read_time(r, w[5], "the input gradient's time", -9, &input_s) != GW_OK ||
        astra_check(r, w[6]) != GW_OK ||
        read_bytes(r, w[7], "the input gradient's size", &input) != GW_OK ||
        read_time(r, w[8], "the weight gradient's time", -9, &weight_s) != GW_OK ||
        astra_check(r, w[9]) != GW_OK ||
        read_bytes(r, w[10], "the weight gradient's size", &weight) != GW_OK ||
        read_time(r, w[11], "the update time", -9, &update_s) != GW_OK)
        return failed(r);
    /* Whole nanoseconds are added exactly. */
    layer.backward_s = (strtod(w[5], NULL) + strtod(w[8], NULL)) / 1e9;
    if (layer.backward_s > GW_LAYER_S_MAX)
        return gw_fail(r->err, GW_SYNTAX, "%s:%u: the backward pass takes more than 1e7 s", r->path,
                       r->no);
    if (astra_collective(w[9], "ALLREDUCE") || astra_collective(w[9], "REDUCESCATTER"))
        layer.param_bytes = weight;
    else
        astra_drop(r, w[9], weight);
    astra_drop(r, w[3], forward);
    astra_drop(r, w[6], input);
    if (!astra_collective(w[3], "NONE"))
        layer.activation_bytes = forward;
    return add_layer(r, w[0], &layer);
}

/* What the two header lines said. */
struct astra_head {
    char     kind[64];           /* "DATA"; empty: no header                                   */
    uint64_t layers;
    bool     simai;              /* has the key-value pairs of SimAI's generator               */
};

/* Reads the header; a table without one begins with a row, which is left for the caller. */
static enum gw_status astra_header(struct reader *r, struct astra_head *head)
{
    char *w[ASTRA_WORDS], *line = next_line(r), *copy;
    uint32_t n;
    bool row;

    if (!line)
        return gw_fail(r->err, GW_SYNTAX, "%s: the file is empty", r->path);
    head->simai = strstr(line, "checkpoints:") != NULL;
    copy = strdup(line);
    if (!copy)
        return gw_fail(r->err, GW_NOMEM, "%s: out of memory", r->path);
    n   = words(copy, w, ASTRA_WORDS);
    row = astra_is_row(w, n);
    snprintf(head->kind, sizeof head->kind, "%s", row ? "" : w[0]);
    free(copy);
    if (row) {
        r->again = true;
        return GW_OK;
    }
    if (strspn(head->kind, "ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz") !=
        strlen(head->kind))
        return gw_fail(r->err, GW_SYNTAX, "%s:%u: \"%.40s\" is no kind of parallelism; DATA, "
                       "MODEL, HYBRID_TRANSFORMER, MICRO or another word stands here",
                       r->path, r->no, head->kind);
    line = next_line(r);
    n    = line ? words(line, w, ASTRA_WORDS) : 0;
    if (n != 1 || !gw_num_bytes(w[0], &head->layers) || !head->layers ||
        head->layers > GW_LAYER_MAX)
        return failed(r) ? failed(r)
                         : gw_fail(r->err, GW_SYNTAX, "%s:%u: the second line is the number of "
                                   "layers, 1 to %u", r->path, r->no, GW_LAYER_MAX);
    return GW_OK;
}

static enum gw_status read_astra(struct reader *r, enum gw_layer_format format)
{
    struct astra_head head = { 0 };
    char     *line, *w[ASTRA_WORDS], note[160];
    bool      lenient;
    uint32_t  rows;

    if (astra_header(r, &head) != GW_OK)
        return failed(r);
    while ((line = next_line(r))) {
        if (*head.kind && r->out->count == head.layers)
            return gw_fail(r->err, GW_SYNTAX, "%s:%u: the header promises %u layers, this is one "
                           "more", r->path, r->no, (unsigned)head.layers);
        if (astra_row(r, w, words(line, w, ASTRA_WORDS)) != GW_OK)
            return failed(r);
    }
    if (failed(r) != GW_OK)
        return failed(r);
    if (r->dropped) {
        snprintf(note, sizeof note, "%u collectives of an iteration, %llu bytes together, are not "
                 "in the table, which holds gradients alone", r->dropped,
                 (unsigned long long)r->dropped_bytes);
        r->out->warning = strdup(note);
    }
    rows    = r->out->count;
    lenient = format == GW_LAYERS_SIMAI || (format == GW_LAYERS_AUTO && head.simai);
    if (*head.kind && rows < head.layers && (!lenient || !rows))
        return gw_fail(r->err, GW_SYNTAX, "%s:%u: the header promises %u layers, the file ends "
                       "after %u", r->path, r->no, (unsigned)head.layers, rows);
    snprintf(note, sizeof note, "%s table%s%s", head.simai ? "SimAI or ASTRA-sim" : "ASTRA-sim 1.0",
             *head.kind ? ", " : "", head.kind);
    if (*head.kind && rows < head.layers)
        snprintf(note + strlen(note), sizeof note - strlen(note),
                 "; the header promises %u layers, there are %u", (unsigned)head.layers, rows);
    return set_source(r, note);
}

/* "train_iter:10", then "name:" and indented "time_gpu_avg: 799" in us. */
static enum gw_status read_aiob(struct reader *r)
{
    char  name[128] = "", *line = next_line(r);      /* train_iter                             */
    double us;

    while (line && (line = next_line(r))) {
        char  *text  = gw_line_trim(line);
        size_t n     = strcspn(text, ":");
        char  *value = text + n + (text[n] == ':');

        if (text[n] != ':')
            return gw_fail(r->err, GW_SYNTAX, "%s:%u: \"name:\" or \"time_gpu_avg: us\" is "
                           "expected", r->path, r->no);
        text[n] = '\0';
        value   = gw_line_trim(value);
        if (!*value) {
            if (*name)
                return gw_fail(r->err, GW_SYNTAX, "%s:%u: operator %s has no time_gpu_avg", r->path,
                               r->no, name);
            snprintf(name, sizeof name, "%s", text);
        } else if (!strcmp(text, "time_gpu_avg")) {
            struct gw_layer layer = { 0 };

            if (!*name)
                return gw_fail(r->err, GW_SYNTAX, "%s:%u: there is no operator for this time",
                               r->path, r->no);
            if (read_time(r, value, text, -6, &layer.forward_s) != GW_OK ||
                add_layer(r, name, &layer) != GW_OK)
                return failed(r);
            *name = '\0';
        } else if (read_time(r, value, text, -6, &us) != GW_OK) {
            return failed(r);
        }
    }
    if (failed(r) == GW_OK && *name)
        return gw_fail(r->err, GW_SYNTAX, "%s:%u: operator %s has no time_gpu_avg", r->path, r->no,
                       name);
    if (failed(r) != GW_OK)
        return failed(r);
    return set_source(r, "AIOB operator times, forward only, no gradients");
}

/* ---- the door ----------------------------------------------------------------------------- */

/* The format by the first line that is not blank. */
static enum gw_layer_format guess(const char *line)
{
    if (gw_layer_header(line))
        return GW_LAYERS_CSV;
    if (!strncmp(line, "node", 4) && isdigit((unsigned char)line[4]))
        return GW_LAYERS_PIPEDREAM;
    return GW_LAYERS_AUTO;       /* ASTRA-sim, SimAI, or nothing that is known                 */
}

/* A first line of ASTRA-sim or SimAI: a row, or a word that names a parallelism. */
static bool astra_like(const char *line)
{
    char *w[ASTRA_WORDS], *copy = strdup(line);
    uint32_t n = copy ? words(copy, w, ASTRA_WORDS) : 0;
    bool like = n && (astra_is_row(w, n) ||
                      w[0][strspn(w[0], "ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz")]
                      == '\0');

    free(copy);
    return like;
}

/* Nothing computes and nothing is sent: such a table is of no use and hardly what was meant. */
static bool all_zero(const struct gw_layers *l)
{
    for (uint32_t i = 0; i < l->count; i++)
        if (l->layer[i].param_bytes || l->layer[i].forward_s > 0 || l->layer[i].backward_s > 0)
            return false;
    return true;
}

static enum gw_status read_any(struct reader *r, enum gw_layer_format format)
{
    const char *line = next_line(r);

    if (!line)
        return failed(r) ? failed(r)
                         : gw_fail(r->err, GW_SYNTAX, "%s: the file is empty; a layer table, a "
                                   "PipeDream, ASTRA-sim or SimAI file is expected", r->path);
    r->again = true;
    if (format == GW_LAYERS_AUTO)
        format = guess(line);
    if (format == GW_LAYERS_CSV)
        return read_csv(r);
    if (format == GW_LAYERS_PIPEDREAM)
        return read_pipedream(r);
    if (format != GW_LAYERS_ASTRA && !strncmp(line, "train_iter:", 11))
        return read_aiob(r);
    if (format == GW_LAYERS_AUTO && !astra_like(line))
        return gw_fail(r->err, GW_SYNTAX, "%s: the file is no layer table (CSV), PipeDream "
                       "profile, ASTRA-sim or SimAI text; --from NAME says what it is meant to be",
                       r->path);
    return read_astra(r, format);
}

struct gw_layers *gw_layers_read(FILE *f, const char *path, enum gw_layer_format format,
                                 struct gw_error *err)
{
    struct gw_error own = { GW_OK, "" };
    struct reader   r = { .f = f, .path = path, .err = &own };

    r.out = calloc(1, sizeof *r.out);
    if (!r.out)
        gw_fail(&own, GW_NOMEM, "%s: out of memory", path);
    else
        read_any(&r, format);
    if (own.code == GW_OK && !r.out->count)
        gw_fail(&own, GW_SYNTAX, "%s: there are no layers in the file", path);
    if (own.code == GW_OK && all_zero(r.out))
        gw_fail(&own, GW_SYNTAX, "%s: the times and gradients of all its layers are 0; a table "
                "that computes or sends something is needed%s%s", path,
                r.out->warning ? "; " : "", r.out->warning ? r.out->warning : "");
    free(r.line);
    if (own.code == GW_OK)
        return r.out;
    gw_fail(err, own.code, "%s", own.text);
    gw_layers_free(r.out);
    return NULL;
}

/* The shortest of the usual spellings that reads back to the same number. */
static void write_number(FILE *f, double x)
{
    char text[40];

    for (int digits = 15; digits <= 17; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, x);
        if (strtod(text, NULL) == x)
            break;
    }
    fputs(text, f);
}

/* A field, in quotes where commas, quotes, comments or blanks at its ends ask for them. */
static void write_field(FILE *f, const char *s)
{
    size_t n = strlen(s);

    if (n && !strpbrk(s, ",\"") && *s != '#' && !isspace((unsigned char)*s) &&
        !isspace((unsigned char)s[n - 1])) {
        fputs(s, f);
        return;
    }
    fputc('"', f);
    for (; *s; s++) {
        if (*s == '"')
            fputc('"', f);
        fputc(*s, f);
    }
    fputc('"', f);
}

enum gw_status gw_layers_write(const struct gw_layers *l, FILE *f, struct gw_error *err)
{
    if (l->source)
        fprintf(f, "# %s\n", l->source);
    fprintf(f, "%s\n", GW_LAYER_HEADER);
    for (uint32_t i = 0; i < l->count; i++) {
        const struct gw_layer *x = &l->layer[i];

        write_field(f, x->name);
        fprintf(f, ",%llu,", (unsigned long long)x->param_bytes);
        write_number(f, x->forward_s);
        fputc(',', f);
        write_number(f, x->backward_s);
        fprintf(f, ",%llu\n", (unsigned long long)x->activation_bytes);
    }
    if (fflush(f) || ferror(f))
        return gw_fail(err, GW_IO, "the layer table could not be written: the disk may be full");
    return GW_OK;
}

void gw_layers_free(struct gw_layers *l)
{
    if (!l)
        return;
    for (uint32_t i = 0; i < l->count; i++)
        free(l->layer[i].name);
    free(l->layer);
    free(l->source);
    free(l->warning);
    free(l);
}
