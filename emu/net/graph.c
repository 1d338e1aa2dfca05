/*
 * graph.c - the builder of the graph under a network
 *
 * A graph is two plain arrays, nodes and links, in order of addition; that order is the numbering
 * of everything above (hosts, ports, components of the engine). It is a multigraph: two links
 * between the same two nodes stay two, each with its own name. Names are unique because devices,
 * records and capture files are called by them; a repeated one gets "#2", "#3" ... and the label
 * keeps what the source said. Each kind of name has an open-addressing index, so that a graph of a
 * hundred thousand nodes with one and the same label is built in linear time.
 *
 * The builder has no way to hand a sentence to a plugin: it answers GW_NONE, keeps the first
 * sentence, and gw_graph_problem() says it.
 *
 * Left out: removing nodes or links. A link that is down stays in the graph.
 */
#include "emu/net/graph.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

#define NAME_BYTES_MAX 4096u             /* longer names are cut                               */
#define NODES_MAX      4000000u          /* what a machine of today holds with its ports       */
#define LINKS_MAX      16000000u
#define WEIGHT_MAX     1e9

/* ---- index of names ----------------------------------------------------------------------- */

struct name_slot {
    uint32_t index;                      /* item + 1; 0: free                                  */
    uint32_t hash;
    uint32_t next_suffix;                /* what a repetition gets: "#2" first                 */
};

struct name_index {
    struct name_slot *slot;
    uint32_t cap, used;                  /* cap is a power of two, or 0                        */
};

struct graph_names {
    struct name_index nodes, links;
    char problem[512];                   /* the first refusal                                  */
};

static uint32_t name_hash(const char *s)
{
    uint64_t h = UINT64_C(0xcbf29ce484222325);

    for (; *s; s++)
        h = (h ^ (unsigned char)*s) * UINT64_C(0x100000001b3);
    return (uint32_t)gw_mix64(h);
}

static const char *item_name(const struct gw_graph *g, bool link, uint32_t i)
{
    return link ? g->link[i].name : g->node[i].name;
}

static const struct name_index *index_of(const struct gw_graph *g, bool link)
{
    const struct graph_names *n = g->names;

    return link ? &n->links : &n->nodes;
}

static struct name_slot *name_find(const struct gw_graph *g, bool link, const char *name)
{
    const struct name_index *x = index_of(g, link);
    uint32_t hash = name_hash(name), i;

    if (!x->cap)
        return NULL;
    for (i = hash & (x->cap - 1); x->slot[i].index; i = (i + 1) & (x->cap - 1)) {
        if (x->slot[i].hash == hash && !strcmp(item_name(g, link, x->slot[i].index - 1), name))
            return &x->slot[i];
    }
    return NULL;
}

static void slot_put(struct name_index *x, struct name_slot s)
{
    uint32_t i = s.hash & (x->cap - 1);

    while (x->slot[i].index)
        i = (i + 1) & (x->cap - 1);
    x->slot[i] = s;
    x->used++;
}

/* Makes room for one more name. */
static bool name_reserve(struct name_index *x)
{
    struct name_index bigger = { 0 };
    uint32_t i;

    if (x->cap && x->used < x->cap / 2)
        return true;
    bigger.cap  = x->cap ? x->cap * 2 : 64;
    bigger.slot = calloc(bigger.cap, sizeof *bigger.slot);
    if (!bigger.slot)
        return false;
    for (i = 0; i < x->cap; i++) {
        if (x->slot[i].index)
            slot_put(&bigger, x->slot[i]);
    }
    free(x->slot);
    *x = bigger;
    return true;
}

/* @name, or "name#2" ... whatever is free. Allocated; NULL when out of memory. */
static char *name_unique(const struct gw_graph *g, bool link, const char *name)
{
    struct name_slot *taken = name_find(g, link, name);
    size_t bytes = strlen(name) + 16;
    char *s = malloc(bytes);

    if (!s)
        return NULL;
    snprintf(s, bytes, "%s", name);
    while (taken && name_find(g, link, s))
        snprintf(s, bytes, "%s#%u", name, taken->next_suffix++);
    return s;
}

/* A copy of at most NAME_BYTES_MAX bytes, not cut inside a UTF-8 sequence. */
static char *name_copy(const char *s)
{
    size_t n = strlen(s);
    char *c;

    if (n > NAME_BYTES_MAX) {
        n = NAME_BYTES_MAX;
        while (n && ((unsigned char)s[n] & 0xc0) == 0x80)
            n--;
    }
    c = malloc(n + 1);
    if (c) {
        memcpy(c, s, n);
        c[n] = '\0';
    }
    return c;
}

/* ---- builder ------------------------------------------------------------------------------ */

static uint32_t GW_PRINTF(2, 3) refuse(struct gw_graph *g, const char *fmt, ...)
{
    struct graph_names *n = g->names;
    va_list ap;

    if (!n->problem[0]) {
        va_start(ap, fmt);
        vsnprintf(n->problem, sizeof n->problem, fmt, ap);
        va_end(ap);
    }
    return GW_NONE;
}

/* Room for one more element in an array of the graph. */
static bool grow(void **array, uint32_t *cap, uint32_t count, size_t bytes)
{
    uint32_t n;
    void *a;

    if (count < *cap)
        return true;
    n = *cap ? *cap * 2 : 64;
    a = realloc(*array, n * bytes);
    if (!a)
        return false;
    *array = a;
    *cap   = n;
    return true;
}

static bool grow_nodes(struct gw_graph *g)
{
    void *a  = g->node;
    bool  ok = grow(&a, &g->node_cap, g->node_count, sizeof *g->node);

    g->node = a;
    return ok;
}

static bool grow_links(struct gw_graph *g)
{
    void *a  = g->link;
    bool  ok = grow(&a, &g->link_cap, g->link_count, sizeof *g->link);

    g->link = a;
    return ok;
}

static void name_add(struct name_index *x, const char *name, uint32_t index)
{
    slot_put(x, (struct name_slot){ .index = index + 1, .hash = name_hash(name),
                                    .next_suffix = 2 });
}

/* gw_host.graph_node: an empty name becomes "nI". */
static uint32_t graph_node(struct gw_graph *g, const char *name, enum gw_node_kind kind,
                           uint32_t tier)
{
    struct graph_names *names = g->names;
    struct gw_graph_node v = { .kind = kind, .tier = kind == GW_NODE_HOST ? GW_NONE : tier,
                               .lat_deg = NAN, .lon_deg = NAN,
                               .transit = kind == GW_NODE_SWITCH };
    char number[16];

    if (g->node_count >= NODES_MAX)
        return refuse(g, "more than %u nodes; a network may have up to %u nodes and %u links",
                      NODES_MAX, NODES_MAX, LINKS_MAX);
    if (!name || !*name) {
        snprintf(number, sizeof number, "n%u", g->node_count);
        name = number;
    }
    if (!grow_nodes(g) || !name_reserve(&names->nodes))
        return refuse(g, "out of memory for node %u", g->node_count);
    v.label = name_copy(name);
    v.name  = v.label ? name_unique(g, false, v.label) : NULL;
    if (!v.name) {
        free(v.label);
        return refuse(g, "out of memory for node %u", g->node_count);
    }
    g->node[g->node_count] = v;
    name_add(&names->nodes, v.name, g->node_count);
    return g->node_count++;
}

/* True if the builder takes @spec for a link between @a and @b. */
static bool spec_right(struct gw_graph *g, uint32_t a, uint32_t b, const struct gw_link_spec *s)
{
    const char *name = s->name ? s->name : "without a name";

    if (a >= g->node_count || b >= g->node_count) {
        refuse(g, "link %s: there is no node number %u, the graph has %u", name,
               a >= g->node_count ? a : b, g->node_count);
        return false;
    }
    if (a == b) {
        refuse(g, "link %s: both ends are %s; a link joins two nodes", name, g->node[a].name);
        return false;
    }
    if (!(s->loss >= 0 && s->loss <= 1)) {
        refuse(g, "link %s: loss %g; a share between 0 and 1 is right", name, s->loss);
        return false;
    }
    if (!(s->weight >= 0 && s->weight <= WEIGHT_MAX)) {
        refuse(g, "link %s: weight %g; above 0, at most %g is right", name, s->weight,
               WEIGHT_MAX);
        return false;
    }
    if (s->end_name[0] && s->end_name[1] && !strcmp(s->end_name[0], s->end_name[1])) {
        refuse(g, "link %s: both ends are called %s; devices need two names", name,
               s->end_name[0]);
        return false;
    }
    return true;
}

static char *link_default_name(const struct gw_graph *g, uint32_t a, uint32_t b)
{
    size_t bytes = strlen(g->node[a].name) + strlen(g->node[b].name) + 2;
    char *s = malloc(bytes);

    if (s)
        snprintf(s, bytes, "%s-%s", g->node[a].name, g->node[b].name);
    return s;
}

/* End names that are not the node's are copies of the graph's own. */
static bool link_ends(struct gw_graph *g, struct gw_graph_link *l, const struct gw_link_spec *s)
{
    uint32_t node[2] = { l->a, l->b };
    int i;

    for (i = 0; i < 2; i++) {
        const char *own = g->node[node[i]].name;

        l->end_name[i] = own;
        if (!s->end_name[i] || !strcmp(s->end_name[i], own))
            continue;
        l->end_name[i] = name_copy(s->end_name[i]);
        if (!l->end_name[i]) {
            l->end_name[i] = own;
            return false;
        }
    }
    return true;
}

static void link_release(struct gw_graph *g, struct gw_graph_link *l)
{
    if (l->end_name[0] != g->node[l->a].name)
        free((void *)(uintptr_t)l->end_name[0]);
    if (l->end_name[1] != g->node[l->b].name)
        free((void *)(uintptr_t)l->end_name[1]);
    free(l->name);
}

/* gw_host.graph_link */
static uint32_t graph_link(struct gw_graph *g, uint32_t a, uint32_t b,
                           const struct gw_link_spec *spec)
{
    struct graph_names *names = g->names;
    struct gw_graph_link l = { .a = a, .b = b };
    char *base;

    if (!spec_right(g, a, b, spec))
        return GW_NONE;
    if (g->link_count >= LINKS_MAX)
        return refuse(g, "more than %u links among %u nodes; a network may have up to %u nodes and "
                      "%u links", LINKS_MAX, g->node_count, NODES_MAX, LINKS_MAX);
    l.dir[0] = (struct gw_graph_dir){ .rate_bps = spec->rate_bps, .delay_ps = spec->delay_ps,
                                      .loss = spec->loss, .channel = spec->channel,
                                      .qdisc = spec->qdisc };
    l.dir[1]        = l.dir[0];
    l.mtu_bytes     = spec->mtu_bytes ? spec->mtu_bytes : 1500;
    l.framing_bytes = spec->framing_set ? spec->framing_bytes : GW_FRAMING_BYTES;
    l.weight        = spec->weight > 0 ? spec->weight : 1;
    if (!grow_links(g) || !name_reserve(&names->links))
        return refuse(g, "out of memory for link %u", g->link_count);
    base   = spec->name && *spec->name ? name_copy(spec->name) : link_default_name(g, a, b);
    l.name = base ? name_unique(g, true, base) : NULL;
    free(base);
    if (!l.name || !link_ends(g, &l, spec)) {
        if (l.name)
            link_release(g, &l);
        return refuse(g, "out of memory for link %u", g->link_count);
    }
    g->link[g->link_count] = l;
    name_add(&names->links, l.name, g->link_count);
    return g->link_count++;
}

/* gw_host.graph_note: a note that finds no memory is lost, and said so. */
static void graph_note(struct gw_graph *g, const char *text)
{
    char **note = realloc(g->note, (g->note_count + 1) * sizeof *note);

    if (!note) {
        refuse(g, "out of memory for the notes");
        return;
    }
    g->note = note;
    note[g->note_count] = strdup(text);
    if (note[g->note_count])
        g->note_count++;
    else
        refuse(g, "out of memory for the notes");
}

void gw_graph_host(struct gw_host *h)
{
    h->graph_node = graph_node;
    h->graph_link = graph_link;
    h->graph_note = graph_note;
}

struct gw_graph *gw_graph_new(const struct gw_host *host)
{
    struct gw_graph *g = calloc(1, sizeof *g);

    if (!g)
        return NULL;
    g->host  = host;
    g->names = calloc(1, sizeof(struct graph_names));
    if (!g->names) {
        free(g);
        return NULL;
    }
    return g;
}

void gw_graph_free(struct gw_graph *g)
{
    struct graph_names *names;
    uint32_t i;

    if (!g)
        return;
    names = g->names;
    for (i = 0; i < g->link_count; i++)
        link_release(g, &g->link[i]);
    for (i = 0; i < g->node_count; i++) {
        free(g->node[i].name);
        free(g->node[i].label);
    }
    for (i = 0; i < g->note_count; i++)
        free(g->note[i]);
    free(names->nodes.slot);
    free(names->links.slot);
    free(names);
    free(g->link);
    free(g->node);
    free(g->note);
    free(g);
}

const char *gw_graph_problem(const struct gw_graph *g)
{
    const struct graph_names *n = g->names;

    return n->problem[0] ? n->problem : NULL;
}

/* ---- looking up --------------------------------------------------------------------------- */

uint32_t gw_graph_find_node(const struct gw_graph *g, const char *name)
{
    const struct name_slot *s = name_find(g, false, name);

    return s ? s->index - 1 : GW_NONE;
}

uint32_t gw_graph_find_link(const struct gw_graph *g, const char *name)
{
    const struct name_slot *s = name_find(g, true, name);

    return s ? s->index - 1 : GW_NONE;
}

const char *gw_graph_dev_name(const struct gw_graph *g, uint32_t dirlink, char *buf, size_t n)
{
    const struct gw_graph_link *l = &g->link[dirlink / 2];

    snprintf(buf, n, "%s:%s", l->name, l->end_name[dirlink % 2]);
    return buf;
}

/* The directed link of "LINK:END", GW_NONE: there is none. Names may hold colons themselves. */
static uint32_t dev_lookup(const struct gw_graph *g, const char *dev)
{
    size_t n = strlen(dev);
    char *name = malloc(n + 1), *colon;
    uint32_t found = GW_NONE, link;
    int end;

    if (!name)
        return GW_NONE;
    for (colon = memcpy(name, dev, n + 1); found == GW_NONE && (colon = strchr(colon, ':'));
         colon++) {
        *colon = '\0';
        link   = gw_graph_find_link(g, name);
        for (end = 0; link != GW_NONE && end < 2; end++) {
            if (!strcmp(g->link[link].end_name[end], colon + 1))
                found = 2 * link + (uint32_t)end;
        }
        *colon = ':';
    }
    free(name);
    return found;
}

/*
 * The known name nearest to @word: of links, and of devices if @devs. Into @buf; false: none is
 * near.
 */
static bool near_name(const struct gw_graph *g, const char *word, bool devs, char *buf, size_t n)
{
    size_t i, count = devs ? (size_t)g->link_count * 3 : g->link_count;
    char **name = calloc(count + 1, sizeof *name), dev[2 * NAME_BYTES_MAX];
    const char *best = NULL;

    for (i = 0; name && i < count; i++) {
        if (i < g->link_count)
            name[i] = strdup(g->link[i].name);
        else
            name[i] = strdup(gw_graph_dev_name(g, (uint32_t)(i - g->link_count), dev,
                                               sizeof dev));
        if (!name[i])
            break;
    }
    if (name)
        best = gw_did_you_mean(word, (const char *const *)name);
    if (best)
        snprintf(buf, n, "%s", best);
    for (i = 0; name && i < count; i++)
        free(name[i]);
    free(name);
    return best != NULL;
}

enum gw_status gw_graph_find_dev(const struct gw_graph *g, const char *dev, const char *where,
                                 uint32_t *dirlink, struct gw_error *err)
{
    const char *head = where ? where : "device", *sep = *head ? ": " : "";
    char near[256], a[256], b[256];
    uint32_t link;

    *dirlink = dev_lookup(g, dev);
    if (*dirlink != GW_NONE)
        return GW_OK;
    link = gw_graph_find_link(g, dev);
    if (link != GW_NONE)
        return gw_fail(err, GW_PARAM, "%s%s\"%s\" is a link with two ends; name one: %s or %s",
                       head, sep, dev, gw_graph_dev_name(g, 2 * link, a, sizeof a),
                       gw_graph_dev_name(g, 2 * link + 1, b, sizeof b));
    if (near_name(g, dev, true, near, sizeof near))
        return gw_fail(err, GW_PARAM, "%s%sthere is no device \"%s\"; did you mean %s?", head,
                       sep, dev, near);
    if (!g->link_count)
        return gw_fail(err, GW_PARAM, "%s%sthere is no device \"%s\": the topology has no links",
                       head, sep, dev);
    return gw_fail(err, GW_PARAM, "%s%sthere is no device \"%s\"; a device is LINK:END, such as "
                   "%s", head, sep, dev, gw_graph_dev_name(g, 0, a, sizeof a));
}

/* ---- overrides ---------------------------------------------------------------------------- */

struct override_conf {
    struct gw_link_conf link;
    uint64_t mtu_bytes, framing_bytes;
    double   weight;
};

enum override_row {              /* order of the rows below                                    */
    OV_RATE, OV_DELAY, OV_LOSS, OV_CHANNEL, OV_QDISC, OV_MTU, OV_FRAMING, OV_WEIGHT
};

static const struct gw_param override_params[] = {
    GW_LINK_PARAMS("", override_conf, link, "", ""),
    GW_FRAME_PARAMS(override_conf, "24"),
    { "weight", GW_P_F64, offsetof(struct override_conf, weight), "1", "0.000001",
      "1000000000", "Cost in the routing metric `weight`." },
};

static bool given_row(uint64_t given, enum override_row row)
{
    return (given & UINT64_C(1) << row) != 0;
}

static void override_dir(struct gw_graph_dir *d, const struct override_conf *c, uint64_t given)
{
    if (given_row(given, OV_RATE))
        d->rate_bps = c->link.rate_bps;
    if (given_row(given, OV_DELAY))
        d->delay_ps = c->link.delay_ps;
    if (given_row(given, OV_LOSS))
        d->loss = c->link.loss;
    if (given_row(given, OV_CHANNEL))
        d->channel = c->link.channel;
    if (given_row(given, OV_QDISC))
        d->qdisc = c->link.qdisc;
}

static void override_link(struct gw_graph_link *l, const struct override_conf *c, uint64_t given)
{
    override_dir(&l->dir[0], c, given);
    override_dir(&l->dir[1], c, given);
    if (given_row(given, OV_MTU))
        l->mtu_bytes = (uint32_t)c->mtu_bytes;
    if (given_row(given, OV_FRAMING))
        l->framing_bytes = (uint32_t)c->framing_bytes;
    if (given_row(given, OV_WEIGHT))
        l->weight = c->weight;
    l->rate_is_default  = l->rate_is_default && !given_row(given, OV_RATE);
    l->delay_is_default = l->delay_is_default && !given_row(given, OV_DELAY);
}

static enum gw_status override_unknown(const struct gw_graph *g, const struct gw_value *v,
                                       struct gw_error *err)
{
    char where[512], near[256];

    gw_value_where(v, where, sizeof where);
    if (near_name(g, v->key, true, near, sizeof near))
        return gw_fail(err, GW_PARAM, "%s: there is no link \"%s\"; did you mean %s?", where,
                       v->key, near);
    return gw_fail(err, GW_PARAM, "%s: there is no link \"%s\"; the topology's %u links are "
                   "called such as %s", where, v->key, g->link_count,
                   g->link_count ? g->link[0].name : "nothing");
}

static enum gw_status override_one(struct gw_graph *g, struct gw_value *v, struct gw_error *err)
{
    struct override_conf c;
    uint32_t link = gw_graph_find_link(g, v->key), dir = GW_NONE;
    uint64_t given = 0;
    char where[512], what[320];

    v->used = true;
    if (link == GW_NONE)
        dir = dev_lookup(g, v->key);
    if (link == GW_NONE && dir == GW_NONE)
        return override_unknown(g, v, err);
    if (v->kind != GW_V_MAP)
        return gw_fail(err, GW_PARAM, "%s: links.%s wants a map such as {rate: 10gbit, delay: "
                       "5ms}", gw_value_where(v, where, sizeof where), v->key);
    memset(&c, 0, sizeof c);
    snprintf(what, sizeof what, "links.%s", v->key);
    if (gw_params_read(override_params, GW_ARRAY_LEN(override_params), &c, v, NULL, what, &given,
                       err) != GW_OK)
        return err ? err->code : GW_PARAM;
    if (link != GW_NONE) {
        override_link(&g->link[link], &c, given);
        return GW_OK;
    }
    if (given_row(given, OV_MTU) || given_row(given, OV_FRAMING) || given_row(given, OV_WEIGHT))
        return gw_fail(err, GW_PARAM, "%s: mtu, framing and weight belong to the link %s, not to "
                       "its end %s", gw_value_where(v, where, sizeof where),
                       g->link[dir / 2].name, v->key);
    override_dir(&g->link[dir / 2].dir[dir % 2], &c, given);
    return GW_OK;
}

enum gw_status gw_graph_override(struct gw_graph *g, struct gw_value *links, struct gw_error *err)
{
    struct gw_value *v;
    char where[512];

    if (!links)
        return GW_OK;
    links->used = true;
    if (links->kind != GW_V_MAP)
        return gw_fail(err, GW_PARAM, "%s: links wants a map of link names, each with a map such "
                       "as {rate: 10gbit}", gw_value_where(links, where, sizeof where));
    for (v = links->child; v; v = v->next) {
        enum gw_status st = override_one(g, v, err);

        if (st != GW_OK)
            return st;
    }
    return GW_OK;
}
