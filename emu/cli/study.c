/*
 * study - the one place where topology, transport, jobs, captures and records join
 *
 * gw_study_open() reads everything, builds the network and collects every problem it meets instead
 * of stopping at the first; gw_study_run() opens captures and records, plays, takes the books.
 */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include <jansson.h>
#include <math.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/utsname.h>

#include "emu/cli/explain.h"
#include "emu/cli/rehearse.h"
#include "emu/cli/study.h"
#include "emu/core/doc.h"
#include "emu/core/expect.h"
#include "emu/core/record.h"
#include "emu/core/table.h"
#include "emu/net/prog.h"
#include "emu/tc/cmd.h"

#ifndef PACKAGE_VERSION
#define PACKAGE_VERSION "0"
#endif

#define PROGRESS_EVENTS UINT64_C(2000000)

struct study_event;

struct study_capture {
    struct study_capture *next;
    uint32_t    dev;               /* directed link                                            */
    char       *filter;            /* node names replaced by addresses                         */
    uint64_t    snap, count;
    char        where[256];
    struct gw_capture *open;
};

struct text_list {
    char **item;
    size_t count;
};

struct gw_study {
    struct gw_registry *registry;
    struct gw_doc  *doc;
    struct gw_value *root;
    char           *dir;           /* of the study file                                        */
    char           *path;
    char            name[128];
    struct text_list problem, warning, output, expect;
    struct gw_topo  topo;
    bool            topo_open;
    struct gw_routes *routes;
    struct net     *net;
    struct rt      *rt;
    struct net_conf conf;
    struct gw_record_conf record;
    struct net_transport *transport;
    struct study_capture *captures;
    struct study_event *events;
    FILE           *events_out;    /* tc-events.jsonl, while the run is on                     */
    uint64_t        until_ps;
    struct gw_clock *clock;
    double          setup_s;
    uint32_t        job_count;
};

/* ---- lists of sentences ------------------------------------------------------------------- */

static void add_text(struct text_list *l, const char *text)
{
    char **v = realloc(l->item, (l->count + 1) * sizeof *v);

    if (!v)
        return;
    l->item = v;
    v[l->count] = strdup(text);
    if (v[l->count])
        l->count++;
}

static bool has_text(const struct text_list *l, const char *text)
{
    for (size_t i = 0; i < l->count; i++)
        if (!strcmp(l->item[i], text))
            return true;
    return false;
}

static void free_texts(struct text_list *l)
{
    for (size_t i = 0; i < l->count; i++)
        free(l->item[i]);
    free(l->item);
}

static const char *text_at(const struct text_list *l, size_t i)
{
    return i < l->count ? l->item[i] : NULL;
}

/* Files a failure away as a problem, so that the reading can go on. True if there was none. */
static bool settle(struct gw_study *s, struct gw_error *err)
{
    if (err->code == GW_OK)
        return true;
    add_text(&s->problem, err->text);
    memset(err, 0, sizeof *err);
    return false;
}

/* A warning is given once. */
static void warn(void *ctx, const char *sentence)
{
    struct text_list *l = &((struct gw_study *)ctx)->warning;

    if (!has_text(l, sentence))
        add_text(l, sentence);
}

static enum gw_status want_kind(const struct gw_value *v, enum gw_value_kind kind,
                                const char *what, struct gw_error *err)
{
    static const char *const name[] = { "a single value", "a list", "a map" };
    char where[512];

    if (v->kind == kind)
        return GW_OK;
    return gw_fail(err, GW_SYNTAX, "%s: `%s` is %s; it has to be %s",
                   gw_value_where(v, where, sizeof where), what, name[v->kind], name[kind]);
}

/* ---- top-level scalars -------------------------------------------------------------------- */

struct top_conf {
    uint32_t    schema;
    const char *name;
    uint64_t    seed;
    uint64_t    until_ps;
    struct gw_value *buffer, *pfc;
    struct gw_value *topology, *links, *route, *tc, *qdisc, *transport, *jobs, *events, *capture,
        *log, *records, *expect;
};

static const struct gw_param top_rows[] = {
    { "schema", GW_P_U32, offsetof(struct top_conf, schema), "1", "1", "1",
      "Version of the study file's form." },
    { "name", GW_P_STRING, offsetof(struct top_conf, name), "", NULL, NULL, "Name of the study." },
    { "seed", GW_P_U64, offsetof(struct top_conf, seed), "1", NULL, NULL,
      "Seed of all random streams." },
    { "until", GW_P_TIME, offsetof(struct top_conf, until_ps), "0", NULL, NULL,
      "Simulated time at which the run ends; 0: when all work is done." },
    { "topology", GW_P_VALUE, offsetof(struct top_conf, topology), NULL, NULL, NULL,
      "The network: {kind: star, ...}, {file: x.gml} or {graph: {...}}." },
    { "links", GW_P_VALUE, offsetof(struct top_conf, links), "", NULL, NULL,
      "Links by name with what is special about them." },
    { "route", GW_P_VALUE, offsetof(struct top_conf, route), "", NULL, NULL,
      "ecmp, spray or dmod, or a map: {mode, hash: salted|polarised, metric: hops|delay|weight}." },
    { "buffer", GW_P_VALUE, offsetof(struct top_conf, buffer), "", NULL, NULL,
      "Packet memory that the ports of a switch share: {size: 16MB, alpha: 1, switches: [..]}." },
    { "pfc", GW_P_VALUE, offsetof(struct top_conf, pfc), "", NULL, NULL,
      "Priority flow control of switches: {priority: 3, xoff: 100kB, switches: [..]}." },
    { "tc", GW_P_VALUE, offsetof(struct top_conf, tc), "", NULL, NULL, "tc(8) lines." },
    { "qdisc", GW_P_VALUE, offsetof(struct top_conf, qdisc), "", NULL, NULL,
      "Disciplines: list of {dev, kind, options}." },
    { "transport", GW_P_VALUE, offsetof(struct top_conf, transport), "", NULL, NULL,
      "Transport of jobs that name none." },
    { "jobs", GW_P_VALUE, offsetof(struct top_conf, jobs), NULL, NULL, NULL, "List of jobs, each {name, traffic, ...}." },
    { "events", GW_P_VALUE, offsetof(struct top_conf, events), "", NULL, NULL, "List of timed changes: {at, tc}." },
    { "capture", GW_P_VALUE, offsetof(struct top_conf, capture), "", NULL, NULL, "List of captures: {dev, filter, snap, count}." },
    { "log", GW_P_VALUE, offsetof(struct top_conf, log), "", NULL, NULL,
      "List of logs: {dev, kind: packets} or {job, kind: flows}." },
    { "records", GW_P_VALUE, offsetof(struct top_conf, records), "", NULL, NULL,
      "What is recorded: {flows: all|sample|summary, links: 10ms}." },
    { "expect", GW_P_VALUE, offsetof(struct top_conf, expect), "", NULL, NULL, "List of expressions that must hold, e.g. \"drops.queue == 0\"." },
};

struct route_conf {
    uint32_t mode, hash, metric;
};

static const struct gw_param route_rows[] = {
    { "mode", GW_P_CHOICE, offsetof(struct route_conf, mode), "ecmp", "ecmp|spray|dmod", NULL,
      "Choice among equal paths: hash of the flow, of the packet, or destination modulo." },
    { "hash", GW_P_CHOICE, offsetof(struct route_conf, hash), "salted", "salted|polarised", NULL,
      "Whether each switch hashes differently." },
    { "metric", GW_P_CHOICE, offsetof(struct route_conf, metric), "hops", "hops|delay|weight",
      NULL, "What a shortest path is." },
};

struct buffer_conf {
    uint64_t size_bytes;
    double   alpha;
    struct gw_value *switches;
};

static const struct gw_param buffer_rows[] = {
    { "size", GW_P_BYTES, offsetof(struct buffer_conf, size_bytes), NULL, "1", "1TB",
      "Bytes of memory of one switch." },
    { "alpha", GW_P_F64, offsetof(struct buffer_conf, alpha), "1", "0.001", "1000",
      "A port may hold at most alpha times what is free (dynamic thresholds)." },
    { "switches", GW_P_VALUE, offsetof(struct buffer_conf, switches), "", NULL, NULL,
      "Switches that have it, by name; all if not given." },
};

#define LINKS_LEAST_PS GW_PS_PER_US    /* a sample a link and microsecond fills disks fast enough */
struct pfc_conf {
    struct net_pfc_conf net;
    struct gw_value *switches;
};

static const struct gw_param pfc_rows[] = {
    { "priority", GW_P_U32, offsetof(struct pfc_conf, net.priority), "3", "0", "7",
      "The lossless priority; all others are dropped when their queue is full." },
    { "xoff", GW_P_BYTES, offsetof(struct pfc_conf, net.xoff_bytes), "0", "0", "1TB",
      "Bytes of one link in a switch at which it is paused; 0: its rate x 40us, at least 64 kB." },
    { "xon", GW_P_BYTES, offsetof(struct pfc_conf, net.xon_bytes), "0", "0", "1TB",
      "Bytes at which it may go on; 0: xoff less two full frames." },
    { "headroom", GW_P_BYTES, offsetof(struct pfc_conf, net.headroom_bytes), "0", "0", "1TB",
      "Bytes beyond xoff that a link may still fill; 0: what rate, delay, frames of both "
      "directions, pause frame and response need; fewer are refused." },
    { "response", GW_P_TIME, offsetof(struct pfc_conf, net.response_ps), "600ns", "0", "1s",
      "How long a port takes to obey a pause frame." },
    { "watchdog", GW_P_TIME, offsetof(struct pfc_conf, net.watchdog_ps), "100ms", "0", "1000s",
      "A port paused for so long without a break is a pause storm, a circle of them a deadlock, "
      "which ends the run; 0: nobody looks." },
    { "switches", GW_P_VALUE, offsetof(struct pfc_conf, switches), "", NULL, NULL,
      "Switches that have it, by name; all if not given." },
};

struct records_conf {
    uint32_t flows;
    uint64_t links_ps;
    bool     packets;
};

static const struct gw_param records_rows[] = {
    { "flows", GW_P_CHOICE, offsetof(struct records_conf, flows), "all", "all|sample|summary",
      NULL, "Every flow, one in a hundred, or quantile sketches only." },
    { "links", GW_P_TIME, offsetof(struct records_conf, links_ps), "0", NULL, NULL,
      "Interval of link samples, at least 1us; 0: none." },
    { "packets", GW_P_BOOL, offsetof(struct records_conf, packets), "off", NULL, NULL,
      "Packet logs are asked for under `log:`." },
};

/* ---- topology and routes ------------------------------------------------------------------ */

static double event_density(const struct gw_graph *g)
{
    double d = 0;

    for (uint32_t i = 0; i < g->link_count; i++)
        for (int k = 0; k < 2; k++) {
            double r = (double)g->link[i].dir[k].rate_bps;

            d += (r > 0 ? r : 1e9) / (8.0 * g->link[i].mtu_bytes) * 1e-6;
        }
    return d;
}

static enum gw_status read_route(struct gw_study *s, struct gw_value *v, enum gw_metric *metric,
                                 struct gw_error *err)
{
    struct route_conf c;
    char where[512];

    if (v && v->kind == GW_V_SCALAR) {
        if (gw_params_read(route_rows, GW_ARRAY_LEN(route_rows), &c, NULL, NULL, "route", NULL,
                           err) != GW_OK ||
            gw_param_set(&route_rows[0], &c, v->text, gw_value_where(v, where, sizeof where), err)
                != GW_OK)
            return err->code;
    } else if (gw_params_read(route_rows, GW_ARRAY_LEN(route_rows), &c, v, NULL, "route", NULL,
                              err) != GW_OK) {
        return err->code;
    }
    s->conf.route = (enum net_route_mode)c.mode;
    s->conf.polarised = c.hash == 1;
    *metric = (enum gw_metric)c.metric;
    return GW_OK;
}

static const char *const qdisc_skip[] = { "kind", "dev", NULL };

static enum gw_status link_extras(struct gw_study *s, struct gw_error *err)
{
    const struct gw_graph *g = s->topo.graph;

    for (uint32_t i = 0; i < 2 * g->link_count; i++) {
        const struct gw_graph_dir *d = &g->link[i / 2].dir[i & 1];
        struct gw_value *v = (struct gw_value *)(uintptr_t)d->channel;
        struct gw_value *kind;
        char where[512];

        if (v && d->loss > 0)
            return gw_fail(err, GW_PARAM, "%s: the link has `loss: %g`, too, and one of both is all "
                           "that it can have; write `loss: 0` beside the channel, or the loss into "
                           "it", gw_value_where(v, where, sizeof where), d->loss);
        if (v) {
            kind = gw_value_get(v, "kind");
            if (!kind || !kind->text)
                return gw_fail(err, GW_PARAM, "%s: a channel needs `kind:`, e.g. {kind: "
                               "bernoulli, loss: 0.1%%}", gw_value_where(v, where, sizeof where));
            if (net_set_channel(s->net, i, kind->text, v, 0, err) != GW_OK)
                return err->code;
        } else if (d->loss > 0 &&
                   net_set_channel(s->net, i, "bernoulli", NULL, d->loss, err) != GW_OK) {
            return err->code;
        }
        if (d->qdisc && gw_tree_set_root(s->net->port[i].tree,
                                         (struct gw_value *)(uintptr_t)d->qdisc, qdisc_skip, err)
            != GW_OK)
            return err->code;
    }
    return GW_OK;
}

static bool open_network(struct gw_study *s, struct top_conf *c, struct gw_error *err)
{
    enum gw_metric metric = GW_METRIC_HOPS;

    read_route(s, c->route, &metric, err);
    settle(s, err);
    if (gw_topo_open(&s->topo, s->registry, c->topology, s->dir, err) != GW_OK)
        return settle(s, err);
    s->topo_open = true;
    if (c->links && gw_graph_override(s->topo.graph, c->links, err) != GW_OK)
        return settle(s, err);
    for (uint32_t i = 0; i < s->topo.graph->note_count; i++)
        warn(s, s->topo.graph->note[i]);
    if (s->topo.hosts < 1) {
        gw_fail(err, GW_PARAM, "%s: the topology has no hosts; at least one is needed",
                gw_value_where(c->topology, (char[512]){ 0 }, 512));
        return settle(s, err);
    }
    s->routes = gw_routes_new(s->topo.graph, metric, err);
    if (!s->routes)
        return settle(s, err);
    s->conf.events_per_us = event_density(s->topo.graph);
    s->conf.data_dir = s->dir;
    s->net = net_new(s->registry, s->topo.graph, &s->topo.topology, s->routes, &s->conf, err);
    if (!s->net)
        return settle(s, err);
    s->net->radix = s->topo.radix;
    s->rt = rt_new(s->net);
    if (!s->rt) {
        gw_fail(err, GW_NOMEM, "out of memory");
        return settle(s, err);
    }
    return true;
}

/* ---- disciplines: tc lines and the list `qdisc:` ------------------------------------------- */

struct tc_place {
    struct gw_study *study;
    uint32_t         dev;          /* the last device that was asked for                       */
};

static struct gw_tree *tc_device(void *ctx, const char *name, struct gw_error *err)
{
    struct tc_place *p = ctx;

    p->dev = GW_NONE;
    if (gw_graph_find_dev(p->study->topo.graph, name, "", &p->dev, err) != GW_OK)
        return NULL;
    return p->study->net->port[p->dev].tree;
}

static struct gw_tree *tc_device_at(void *ctx, size_t i)
{
    struct tc_place *p = ctx;

    return i < p->study->net->ports ? p->study->net->port[i].tree : NULL;
}

struct gw_tree *gw_study_tree(struct gw_study *s, const char *dev, struct gw_error *err)
{
    struct tc_place p = { s, GW_NONE };

    return s->net ? tc_device(&p, dev, err) : NULL;
}

struct gw_tree *gw_study_tree_at(struct gw_study *s, size_t i)
{
    struct tc_place p = { s, GW_NONE };

    return s->net ? tc_device_at(&p, i) : NULL;
}

/* What a line came to. */
struct tc_answer {
    uint32_t dev;                  /* the device that it named last, GW_NONE: none             */
    int      rc;
    bool     empty;                /* it holds no command                                      */
    bool     shows;                /* it only asks                                             */
    struct gw_error said;
};

/* Runs one line; what it prints goes to @out (NULL: nowhere). GW_NOMEM is the only failure. */
static enum gw_status tc_run_line(struct gw_study *s, const char *line, uint64_t now_ps, FILE *out,
                                  struct tc_answer *a, struct gw_error *err)
{
    struct tc_place place = { s, GW_NONE };
    struct gw_tc_ctx c = { .ctx = &place, .device = tc_device, .device_at = tc_device_at,
                           .now_ps = now_ps, .out = out };
    uint32_t count = 0;
    char **word = gw_tc_split(line, &count), **first = word;

    memset(a, 0, sizeof *a);
    if (!word)
        return gw_fail(err, GW_NOMEM, "out of memory for a tc line");
    if (count && !strcmp(word[0], "tc")) {
        first++;
        count--;
    }
    a->empty = gw_tc_empty(first, count);
    a->shows = gw_tc_shows(first, count);
    if (a->shows)
        net_all_books(s->net, now_ps);
    a->rc = gw_tc_run(&c, first, count, &a->said);
    a->dev = place.dev;
    free(word[0]);
    free(word);
    return GW_OK;
}

static enum gw_status tc_refused(const struct tc_answer *a, const char *line, const char *where,
                                 struct gw_error *err)
{
    return gw_fail(err, GW_PARAM, "%s: `%s`: %s (tc's exit code %d)", where, line,
                   a->said.code ? a->said.text : "refused", a->rc);
}

/* tc itself prints how it is used; a study has nobody to read that. */
static enum gw_status tc_says_nothing(const struct gw_study *s, const char *line,
                                      const char *where, struct gw_error *err)
{
    char dev[512] = "wan:a";

    if (s->topo.graph->link_count)
        gw_graph_dev_name(s->topo.graph, 0, dev, sizeof dev);
    return gw_fail(err, GW_SYNTAX, "%s: tc: \"%s\" holds no command; write one, such as \"qdisc add "
                   "dev %s root netem delay 10ms\", or leave the line out", where, line, dev);
}

static void tc_shows_nobody(struct gw_study *s, const char *line, const char *where)
{
    char text[1024];

    snprintf(text, sizeof text, "%s: `%s` changes nothing, and what it shows is printed nowhere; "
             "ask `gradwire tc --study FILE`, or under `events:`", where, line);
    add_text(&s->warning, text);
}

static enum gw_status tc_line(struct gw_study *s, const char *line, const char *where,
                              struct gw_error *err)
{
    struct tc_answer a;

    if (tc_run_line(s, line, 0, NULL, &a, err) != GW_OK)
        return err->code;
    if (a.empty)
        return tc_says_nothing(s, line, where, err);
    if (a.rc)
        return tc_refused(&a, line, where, err);
    if (a.shows)
        tc_shows_nobody(s, line, where);
    return GW_OK;
}

static void read_tc(struct gw_study *s, struct gw_value *v, struct gw_error *err)
{
    char where[512];

    if (!v || (want_kind(v, GW_V_LIST, "tc", err), !settle(s, err)))
        return;
    for (struct gw_value *e = v->child; e; e = e->next) {
        e->used = true;
        if (want_kind(e, GW_V_SCALAR, "an entry of tc", err) == GW_OK)
            tc_line(s, e->text, gw_value_where(e, where, sizeof where), err);
        settle(s, err);
    }
}

/* The discipline of @v on every port that is no host's own. */
static void switch_qdiscs(struct gw_study *s, struct gw_value *v, const char *where,
                          struct gw_error *err)
{
    char dev[512];
    bool any = false;

    for (uint32_t i = 0; i < s->net->ports && err->code == GW_OK; i++) {
        if (!net_dev_names(s->net, "switches", i))
            continue;
        any = true;
        gw_tree_set_root(s->net->port[i].tree, v, qdisc_skip, err);
    }
    if (!any)
        gw_fail(err, GW_PARAM, "%s: there is no switch in this topology; name one end of a link, "
                "such as \"%s\"", where, gw_graph_dev_name(s->topo.graph, 0, dev, sizeof dev));
}

/* The entry of the list @v before @e that names @dev, too; NULL: there is none. */
static const struct gw_value *earlier_entry(const struct gw_value *v, const struct gw_value *e,
                                            const char *dev)
{
    for (struct gw_value *x = v->child; x && x != e; x = x->next) {
        const struct gw_value *d = x->kind == GW_V_MAP ? gw_value_get(x, "dev") : NULL;

        if (d && d->text && !strcmp(d->text, dev))
            return d;
    }
    return NULL;
}

static void read_qdiscs(struct gw_study *s, struct gw_value *v, struct gw_error *err)
{
    if (!v || (want_kind(v, GW_V_LIST, "qdisc", err), !settle(s, err)))
        return;
    for (struct gw_value *e = v->child; e; e = e->next) {
        struct gw_value *d;
        char where[512], before[512];
        uint32_t dev;

        e->used = true;
        if (want_kind(e, GW_V_MAP, "an entry of qdisc", err) == GW_OK) {
            d = gw_value_get(e, "dev");
            gw_value_where(d ? d : e, where, sizeof where);
            if (!d || !d->text)
                gw_fail(err, GW_PARAM, "%s: an entry of `qdisc:` needs `dev:`, one end of a link "
                        "such as \"wan:a\", or `switches`", where);
            else if (!strcmp(d->text, "switches"))
                switch_qdiscs(s, e, where, err);
            else if (earlier_entry(v, e, d->text))
                gw_fail(err, GW_PARAM, "%s: %s has its discipline at %s; one entry a device, trees "
                        "are built by lines under `tc:`", where, d->text,
                        gw_value_where(earlier_entry(v, e, d->text), before, sizeof before));
            else if (gw_graph_find_dev(s->topo.graph, d->text, where, &dev, err) == GW_OK)
                gw_tree_set_root(s->net->port[dev].tree, e, qdisc_skip, err);
        }
        settle(s, err);
    }
}

/* ---- jobs --------------------------------------------------------------------------------- */

struct job_conf {
    const char *name, *traffic;
    struct gw_value *ranks, *stragglers, *transport;
    uint32_t iterations;
    uint64_t start_ps;
    double   jitter, overlap_slowdown;
};

static const struct gw_param job_rows[] = {
    { "name", GW_P_STRING, offsetof(struct job_conf, name), "", NULL, NULL, "Name of the job." },
    { "traffic", GW_P_STRING, offsetof(struct job_conf, traffic), NULL, NULL, NULL,
      "Traffic plugin, see `gradwire list traffic`." },
    { "ranks", GW_P_VALUE, offsetof(struct job_conf, ranks), "", NULL, NULL,
      "all, a number of hosts, or a list of hosts in rank order." },
    { "iterations", GW_P_U32, offsetof(struct job_conf, iterations), "1", "1", "100000000",
      "How many iterations." },
    { "start", GW_P_TIME, offsetof(struct job_conf, start_ps), "0", NULL, NULL,
      "When the job starts." },
    { "jitter", GW_P_FRACTION, offsetof(struct job_conf, jitter), "0", NULL, NULL,
      "Coefficient of variation of compute times (lognormal, mean 1)." },
    { "stragglers", GW_P_VALUE, offsetof(struct job_conf, stragglers), "", NULL, NULL,
      "Map of rank to the factor by which it computes slower." },
    { "overlap_slowdown", GW_P_F64, offsetof(struct job_conf, overlap_slowdown), "1", "1", "100",
      "Factor by which compute slows down while messages of the rank move." },
    { "transport", GW_P_VALUE, offsetof(struct job_conf, transport), "", NULL, NULL,
      "Transport of this job alone." },
};

static void warn_ranks(struct gw_study *s, const struct gw_value *v, uint32_t node)
{
    char where[512], text[1024];

    snprintf(text, sizeof text, "%s: ranks: host %s stands twice; messages between its ranks never "
             "see a link", gw_value_where(v, where, sizeof where),
             s->topo.graph->node[node].name);
    add_text(&s->warning, text);
}

static enum gw_status rank_list(struct gw_study *s, struct gw_value *v, uint32_t **node,
                                uint32_t *count, struct gw_error *err)
{
    struct net *n = s->net;
    char where[512];
    uint64_t want = 0;

    gw_value_where(v, where, sizeof where);
    if (v->kind == GW_V_MAP)
        return want_kind(v, GW_V_LIST, "ranks", err);
    *node = malloc((n->host_count + 1) * sizeof **node);
    if (!*node)
        return gw_fail(err, GW_NOMEM, "out of memory for ranks");
    if (v->kind == GW_V_SCALAR) {
        struct gw_error e = { 0 };

        if (!strcmp(v->text, "all"))
            want = n->host_count;
        else if (gw_parse_u64(v->text, &want, &e) != GW_OK || !want || want > n->host_count)
            return gw_fail(err, GW_PARAM, "%s: ranks = %s: `all`, a list of hosts, or a number "
                           "from 1 to %u (the hosts that there are)", where, v->text,
                           n->host_count);
        memcpy(*node, n->host_node, want * sizeof **node);
        *count = (uint32_t)want;
        return GW_OK;
    }
    *count = 0;
    for (struct gw_value *e = v->child; e; e = e->next) {
        uint32_t x, *more;

        e->used = true;
        gw_value_where(e, where, sizeof where);
        if (want_kind(e, GW_V_SCALAR, "an entry of ranks", err) != GW_OK)
            return err->code;
        x = gw_graph_find_node(s->topo.graph, e->text);
        if (x == GW_NONE || s->topo.graph->node[x].kind != GW_NODE_HOST)
            return gw_fail(err, GW_PARAM, "%s: ranks: \"%s\" is no host; the hosts are %s ... %s",
                           where, e->text, s->topo.graph->node[n->host_node[0]].name,
                           s->topo.graph->node[n->host_node[n->host_count - 1]].name);
        more = realloc(*node, (*count + 1) * sizeof *more);
        if (!more)
            return gw_fail(err, GW_NOMEM, "out of memory for ranks");
        *node = more;
        (*node)[(*count)++] = x;
    }
    for (uint32_t i = 1; i < *count; i++)
        for (uint32_t k = 0; k < i && err->code == GW_OK; k++)
            if ((*node)[i] == (*node)[k])
                warn_ranks(s, v, (*node)[i]);
    if (!*count)
        return gw_fail(err, GW_PARAM, "%s: ranks: the list is empty; name at least one host",
                       where);
    return GW_OK;
}

static enum gw_status straggler_map(struct gw_value *v, uint32_t ranks, double **slow,
                                    uint32_t *count, struct gw_error *err)
{
    if (want_kind(v, GW_V_MAP, "stragglers", err) != GW_OK)
        return err->code;
    for (struct gw_value *e = v->child; e; e = e->next) {
        char where[512];
        uint64_t rank;
        double f, *more;

        e->used = true;
        gw_value_where(e, where, sizeof where);
        if (gw_parse_u64(e->key, &rank, NULL) != GW_OK || rank >= (ranks ? ranks : 1u << 24))
            return gw_fail(err, GW_PARAM, "%s: stragglers: rank %s; ranks are 0 to %u", where,
                           e->key, ranks ? ranks - 1 : (1u << 24) - 1);
        if (!e->text || gw_parse_f64(e->text, &f, NULL) != GW_OK || !(f > 0 && f < 1e6))
            return gw_fail(err, GW_PARAM, "%s: stragglers: factor %s; a positive number such as "
                           "1.5 is expected", where, e->text ? e->text : "(not a number)");
        if (rank >= *count) {
            more = realloc(*slow, (rank + 1) * sizeof *more);
            if (!more)
                return gw_fail(err, GW_NOMEM, "out of memory for stragglers");
            *slow = more;
            while (*count <= rank)
                more[(*count)++] = 1;
        }
        (*slow)[rank] = f;
    }
    return GW_OK;
}

static const char *const job_skip[] = { "name", "traffic", "ranks", "iterations", "start",
                                        "jitter", "stragglers", "overlap_slowdown", "transport",
                                        NULL };

/* The keys that a traffic plugin reads, so that the host's own reading does not refuse them. */
static void plugin_keys(struct gw_study *s, const char *traffic, const char **skip, size_t cap,
                        char (*store)[64])
{
    const struct gw_entry *e = gw_registry_find(s->registry, GW_KIND_TRAFFIC, traffic, NULL,
                                                &(struct gw_error){ 0 });
    const struct gw_traffic_ops *ops = e ? e->ops : NULL;
    size_t k = 0;

    for (uint32_t i = 0; e && i < e->plugin->param_count && k + 1 < cap; i++) {
        snprintf(store[k], sizeof *store, "%s", e->plugin->params[i].name);
        store[k][strcspn(store[k], ".")] = 0;       /* "fuse.bytes" stands under `fuse:`       */
        skip[k] = store[k];
        k++;
    }
    for (size_t i = 0; ops && ops->skip && ops->skip[i] && k + 1 < cap; i++)
        skip[k++] = ops->skip[i];
    skip[k] = NULL;
}

static enum gw_status read_job(struct gw_study *s, struct gw_value *v, struct gw_error *err)
{
    struct job_conf c;
    struct rt_job_conf rc = { 0 };
    struct gw_value *t = gw_value_get(v, "traffic");
    const struct gw_entry *e;
    const char *skip[2 * GW_GIVEN_MAX], *all[3 * GW_GIVEN_MAX];
    char store[2 * GW_GIVEN_MAX][64];
    uint32_t *node = NULL;
    double *slow = NULL;
    char where[512], name[32], at[512];
    size_t k = 0;

    gw_value_where(v, where, sizeof where);
    if (!t || !t->text)
        return gw_fail(err, GW_PARAM, "%s: a job needs `traffic:`, one of `gradwire list traffic`",
                       where);
    e = gw_registry_find(s->registry, GW_KIND_TRAFFIC, t->text,
                         gw_value_where(t, at, sizeof at), err);
    if (!e)
        return err->code;
    plugin_keys(s, t->text, skip, GW_ARRAY_LEN(skip), store);
    if (gw_params_read(job_rows, GW_ARRAY_LEN(job_rows), &c, v, skip, "job", NULL, err) != GW_OK)
        return err->code;
    for (size_t i = 0; job_skip[i]; i++) {
        bool own = false;

        for (size_t x = 0; skip[x]; x++)
            own = own || !strcmp(skip[x], job_skip[i]);
        if (!own)
            all[k++] = job_skip[i];
    }
    for (size_t i = 0; ((const struct gw_traffic_ops *)e->ops)->skip &&
                       ((const struct gw_traffic_ops *)e->ops)->skip[i]; i++)
        all[k++] = ((const struct gw_traffic_ops *)e->ops)->skip[i];
    all[k] = NULL;
    snprintf(name, sizeof name, "job%u", s->job_count);
    rc.name = c.name && *c.name ? c.name : name;
    rc.traffic = c.traffic;
    rc.value = v;
    rc.iterations = c.iterations;
    rc.start_ps = c.start_ps;
    rc.jitter = c.jitter;
    rc.overlap_slowdown = c.overlap_slowdown;
    rc.study_dir = s->dir;
    rc.where = where;
    rc.transport = c.transport ? net_add_transport(s->net, c.transport, err) : s->transport;
    if (!rc.transport)
        return err->code ? err->code : GW_PARAM;
    if (c.ranks)
        rank_list(s, c.ranks, &node, &rc.ranks, err);
    else if (!((const struct gw_traffic_ops *)e->ops)->sets_ranks) {
        rc.ranks = s->net->host_count;
        node = malloc((rc.ranks + 1) * sizeof *node);
        if (node)
            memcpy(node, s->net->host_node, rc.ranks * sizeof *node);
    }
    rc.node = node;
    if (err->code == GW_OK && c.stragglers)
        straggler_map(c.stragglers, rc.ranks, &slow, &rc.slow_count, err);
    rc.slow = slow;
    if (err->code == GW_OK)
        rt_add_job(s->rt, &rc, all, err);
    free(node);
    free(slow);
    return err->code;
}

static void read_jobs(struct gw_study *s, struct gw_value *v, struct gw_error *err)
{
    struct gw_value *seen;

    if (want_kind(v, GW_V_LIST, "jobs", err), !settle(s, err))
        return;
    for (struct gw_value *e = v->child; e; e = e->next) {
        struct gw_value *name;
        char where[512];

        e->used = true;
        if (want_kind(e, GW_V_MAP, "an entry of jobs", err) == GW_OK) {
            name = gw_value_get(e, "name");
            for (seen = v->child; name && name->text && seen != e; seen = seen->next) {
                struct gw_value *o = gw_value_get(seen, "name");

                if (o && o->text && !strcmp(o->text, name->text))
                    gw_fail(err, GW_PARAM, "%s: job name \"%s\" stands twice; names of jobs must "
                            "differ", gw_value_where(name, where, sizeof where), name->text);
            }
            if (err->code == GW_OK)
                read_job(s, e, err);
        }
        settle(s, err);
        s->job_count++;
    }
    if (!s->job_count) {
        gw_fail(err, GW_PARAM, "%s: `jobs:` is empty; a study needs at least one job",
                gw_value_where(v, (char[512]){ 0 }, 512));
        settle(s, err);
    }
}

/* ---- captures and logs -------------------------------------------------------------------- */

struct capture_conf {
    const char *dev, *filter;
    uint64_t    snap, count;
};

static const struct gw_param capture_rows[] = {
    { "dev", GW_P_STRING, offsetof(struct capture_conf, dev), NULL, NULL, NULL,
      "One end of a link (wan:a), or a link for both." },
    { "filter", GW_P_STRING, offsetof(struct capture_conf, filter), "", NULL, NULL,
      "pcap filter." },
    { "snap", GW_P_BYTES, offsetof(struct capture_conf, snap), "0", NULL, "262144",
      "Bytes kept of a packet; 0: all." },
    { "count", GW_P_U64, offsetof(struct capture_conf, count), "0", NULL, NULL,
      "The file ends behind this many packets; 0: no end." },
};

/* Node names behind host, src and dst become the addresses that the packets carry. */
static char *filter_addresses(const struct gw_study *s, const char *filter)
{
    static const char *const before[] = { "host", "src", "dst", "or", "and", "not", "||", "&&" };
    size_t room = strlen(filter) * 16 + 64, at = 0;
    char *out = malloc(room), last[64] = "";

    while (out && *filter) {
        size_t n = strcspn(filter, " \t()"), k = 0;
        uint32_t v = GW_NONE;
        char word[256];

        if (!n) {
            out[at++] = *filter++;
            continue;
        }
        snprintf(word, sizeof word, "%.*s", (int)(n < 255 ? n : 255), filter);
        while (k < GW_ARRAY_LEN(before) && strcmp(last, before[k]))
            k++;
        if (k < GW_ARRAY_LEN(before) && strcmp(word, "host") && strcmp(word, "port"))
            v = gw_graph_find_node(s->topo.graph, word);
        if (v != GW_NONE)
            at += (size_t)snprintf(out + at, room - at, "10.%u.%u.%u", (v + 1) >> 16 & 255,
                                   (v + 1) >> 8 & 255, (v + 1) & 255);
        else
            at += (size_t)snprintf(out + at, room - at, "%.*s", (int)n, filter);
        snprintf(last, sizeof last, "%.*s", (int)sizeof last - 1, word);
        filter += n;
    }
    if (out)
        out[at] = 0;
    return out;
}

/* --pcap takes the place of what the study says about the device; the study itself may not repeat
 * one. */
static void remove_capture(struct gw_study *s, uint32_t dev, const char *where,
                           struct gw_error *err)
{
    struct study_capture **at = &s->captures, *old;

    while (*at && (*at)->dev != dev)
        at = &(*at)->next;
    old = *at;
    if (!old)
        return;
    if (strcmp(where, "--pcap")) {
        gw_fail(err, GW_PARAM, "%s: the device is captured already at %s; one capture a device is "
                "enough", where, old->where);
        return;
    }
    *at = old->next;
    free(old->filter);
    free(old);
}

static enum gw_status add_capture(struct gw_study *s, const char *dev, const char *filter,
                                  uint64_t snap, uint64_t count, const char *where,
                                  struct gw_error *err)
{
    uint32_t link = gw_graph_find_link(s->topo.graph, dev), first, last;

    if (link != GW_NONE) {
        first = 2 * link;
        last = first + 1;
    } else if (gw_graph_find_dev(s->topo.graph, dev, where, &first, err) == GW_OK) {
        last = first;
    } else {
        return err->code;
    }
    for (uint32_t d = first; d <= last; d++) {
        struct study_capture *c = calloc(1, sizeof *c);

        if (!c)
            return gw_fail(err, GW_NOMEM, "out of memory for a capture");
        for (struct study_capture *o = s->captures; o; o = o->next)
            if (o->dev == d && strcmp(o->where, "--pcap") == 0) {
                free(c->filter);
                free(c);
                return gw_fail(err, GW_PARAM, "%s: %s is captured twice; one capture a device is "
                               "enough", where, dev);
            }
        remove_capture(s, d, where, err);
        if (err->code != GW_OK) {
            free(c);
            return err->code;
        }
        c->dev = d;
        c->filter = filter && *filter ? filter_addresses(s, filter) : NULL;
        c->snap = snap;
        c->count = count;
        snprintf(c->where, sizeof c->where, "%s", where);
        c->next = s->captures;
        s->captures = c;
    }
    return GW_OK;
}

static void read_captures(struct gw_study *s, struct gw_value *v, struct gw_error *err)
{
    if (!v || (want_kind(v, GW_V_LIST, "capture", err), !settle(s, err)))
        return;
    for (struct gw_value *e = v->child; e; e = e->next) {
        struct capture_conf c;
        char where[256];

        e->used = true;
        gw_value_where(e, where, sizeof where);
        if (want_kind(e, GW_V_MAP, "an entry of capture", err) == GW_OK &&
            gw_params_read(capture_rows, GW_ARRAY_LEN(capture_rows), &c, e, NULL, "capture", NULL,
                           err) == GW_OK)
            add_capture(s, c.dev, c.filter, c.snap, c.count, where, err);
        settle(s, err);
    }
}

static void pcap_options(struct gw_study *s, const char *const *pcap, struct gw_error *err)
{
    for (; pcap && *pcap; pcap++) {
        char *dev = strdup(*pcap), *comma = dev ? strchr(dev, ',') : NULL;

        if (comma)
            *comma = 0;
        if (dev)
            add_capture(s, dev, comma ? strchr(*pcap, ',') + 1 : NULL, 0, 0, "--pcap", err);
        free(dev);
        settle(s, err);
    }
}

/* Compiles filters into the null device, so that `check` sees what is wrong with them. */
static void check_filters(struct gw_study *s, struct gw_error *err)
{
    for (struct study_capture *c = s->captures; c; c = c->next) {
        if (c->filter)
            gw_capture_check_filter(c->filter, c->where, err);
        settle(s, err);
    }
}

struct log_conf {
    const char *dev, *job;
    uint32_t    kind;
};

static const struct gw_param log_rows[] = {
    { "dev", GW_P_STRING, offsetof(struct log_conf, dev), "", NULL, NULL,
      "packets: one end of a link." },
    { "job", GW_P_STRING, offsetof(struct log_conf, job), "", NULL, NULL,
      "flows: the job whose flows are followed." },
    { "kind", GW_P_CHOICE, offsetof(struct log_conf, kind), "packets", "packets|flows", NULL,
      "packets: a row per packet of a device; flows: a row per packet that a sender of the job "
      "sends or gets, with the state of its transport behind it." },
};

static void log_device(struct gw_study *s, const char *name, const char *where,
                       struct gw_error *err)
{
    uint32_t dev;

    if (!name || !*name)
        gw_fail(err, GW_PARAM, "%s: a log of packets needs `dev:`, one end of a link", where);
    else if (gw_graph_find_dev(s->topo.graph, name, where, &dev, err) != GW_OK)
        return;
    else if (s->net->port[dev].log)
        gw_fail(err, GW_PARAM, "%s: %s is logged twice; one log a device is enough", where, name);
    else
        net_add_log(s->net, dev, "", err);
}

static void log_flows(struct gw_study *s, const char *name, const char *where,
                      struct gw_error *err)
{
    uint32_t job = name ? rt_job_number(s->rt, name) : GW_NONE;
    struct net_trace *t = s->net->traces;

    while (t && t->job != job)
        t = t->next;
    if (!name)
        gw_fail(err, GW_PARAM, "%s: a log of flows needs `job:`, the name of a job", where);
    else if (job == GW_NONE)
        gw_fail(err, GW_PARAM, "%s: job: \"%s\" is no job of this study; a log of flows needs the "
                "name of one", where, name);
    else if (t)
        gw_fail(err, GW_PARAM, "%s: the flows of job %s are logged twice; one log is enough",
                where, name);
    else if (!rt_job_transport(s->rt, job)->ops->trace_columns)
        gw_fail(err, GW_PARAM, "%s: the transport of job %s, %s, has nothing to log; tcp has",
                where, name, rt_job_transport(s->rt, job)->entry->plugin->name);
    else
        net_add_trace(s->net, job, err);
}

static void read_logs(struct gw_study *s, struct gw_value *v, struct gw_error *err)
{
    if (!v || (want_kind(v, GW_V_LIST, "log", err), !settle(s, err)))
        return;
    for (struct gw_value *e = v->child; e; e = e->next) {
        struct log_conf c;
        char where[512];

        e->used = true;
        gw_value_where(e, where, sizeof where);
        if (want_kind(e, GW_V_MAP, "an entry of log", err) == GW_OK &&
            gw_params_read(log_rows, GW_ARRAY_LEN(log_rows), &c, e, NULL, "log", NULL, err)
                == GW_OK) {
            if (c.kind)
                log_flows(s, c.job, where, err);
            else
                log_device(s, c.dev, where, err);
        }
        settle(s, err);
    }
}

/* ---- the rest ----------------------------------------------------------------------------- */

static void read_records(struct gw_study *s, struct gw_value *v, struct gw_error *err)
{
    struct records_conf c = { 0 };
    char where[512], text[48];

    if (gw_params_read(records_rows, GW_ARRAY_LEN(records_rows), &c, v, NULL, "records", NULL,
                       err) != GW_OK) {
        settle(s, err);
        return;
    }
    if (c.links_ps && c.links_ps < LINKS_LEAST_PS) {
        gw_fail(err, GW_PARAM, "%s: records: links = %s: at least 1us between two samples, or 0 for "
                "none", gw_value_where(v, where, sizeof where),
                gw_format_time(c.links_ps, text, sizeof text));
        settle(s, err);
    }
    if (c.packets) {
        gw_fail(err, GW_PARAM, "%s: records: packets = on: packets are logged per device; write "
                "`log: [{dev: \"LINK:END\", kind: packets}]`",
                gw_value_where(v, where, sizeof where));
        settle(s, err);
    }
    s->record.flows = (enum gw_flow_records)c.flows;
    s->record.sample_seed = s->conf.seed;
    s->conf.flow_records = c.flows == GW_REC_ALL;
    s->conf.link_sample_ps = c.links_ps;
}

static bool known_device(void *ctx, const char *dev)
{
    const struct gw_study *s = ctx;
    uint32_t d;

    return gw_graph_find_dev(s->topo.graph, dev, "", &d, &(struct gw_error){ 0 }) == GW_OK;
}

static void read_expect(struct gw_study *s, struct gw_value *v, struct gw_error *err)
{
    if (!v || (want_kind(v, GW_V_LIST, "expect", err), !settle(s, err)))
        return;
    for (struct gw_value *e = v->child; e; e = e->next) {
        char where[512];
        struct gw_error inner = { 0 };

        e->used = true;
        if (want_kind(e, GW_V_SCALAR, "an entry of expect", err) == GW_OK) {
            add_text(&s->expect, e->text);
            if (gw_expect_check(e->text, &inner) != GW_OK ||
                gw_expect_names(e->text, known_device, s, &inner) != GW_OK)
                gw_fail(err, GW_SYNTAX, "%s: %s", gw_value_where(e, where, sizeof where),
                        inner.text);
        }
        settle(s, err);
    }
}

/* ---- events ------------------------------------------------------------------------------- */

struct study_event {
    struct study_event *next;
    struct gw_study *study;
    struct gw_timer  timer;
    const char *tc;                /* NULL: it could not be read                               */
    char        where[256];
};

struct event_conf {
    uint64_t    at_ps;
    const char *tc;
};

static const struct gw_param event_rows[] = {
    { "at", GW_P_TIME, offsetof(struct event_conf, at_ps), NULL, NULL, NULL,
      "Simulated time." },
    { "tc", GW_P_STRING, offsetof(struct event_conf, tc), NULL, NULL, NULL, "A tc(8) line." },
};

/* One object of tc-events.jsonl, in the form of `gradwire tc --script`. */
static void event_write(FILE *f, const struct study_event *e, uint64_t now_ps,
                        const struct tc_answer *a, const char *text)
{
    json_t *o = json_pack("{s:f, s:s, s:i, s:s, s:s}", "at_s", (double)now_ps * 1e-12, "cmd",
                          e->tc, "rc", a->rc, "stdout", text ? text : "", "stderr",
                          a->rc ? a->said.text : "");

    if (!f || !o) {
        json_decref(o);
        return;
    }
    json_dumpf(o, f, JSON_COMPACT | JSON_REAL_PRECISION(15));
    fputc('\n', f);
    json_decref(o);
}

static void event_fire(void *owner, uint64_t now_ps)
{
    struct study_event *e = owner;
    struct gw_study *s = e->study;
    struct gw_error err = { 0 };
    struct tc_answer a;
    char *text = NULL;
    size_t n = 0;
    FILE *out = open_memstream(&text, &n);

    if (!out)
        gw_fail(&err, GW_NOMEM, "out of memory for a tc line");
    else
        tc_run_line(s, e->tc, now_ps, out, &a, &err);
    if (out)
        fclose(out);
    if (err.code == GW_OK) {
        event_write(s->events_out, e, now_ps, &a, text);
        if (a.rc)
            tc_refused(&a, e->tc, e->where, &err);
        else if (!a.shows && a.dev != GW_NONE && net_default_queue(s->net, a.dev, &err) == GW_OK)
            net_port_kick(&s->net->port[a.dev], now_ps);
    }
    if (err.code != GW_OK)
        net_fail(s->net, err.code, err.text);
    free(text);
}

/* The device of a line that changes something, the word behind dev, never runs by arithmetic. What
 * is wrong with the words is told by the rehearsal. */
static enum gw_status event_device(struct gw_study *s, struct study_event *e,
                                   struct gw_error *err)
{
    uint32_t count = 0, dev, tc;
    char **word = gw_tc_split(e->tc, &count);

    if (!word)
        return gw_fail(err, GW_NOMEM, "out of memory for a tc line");
    tc = count && !strcmp(word[0], "tc");
    if (gw_tc_empty(word + tc, count - tc)) {
        tc_says_nothing(s, e->tc, e->where, err);
        e->tc = NULL;
    } else if (!gw_tc_shows(word + tc, count - tc)) {
        for (uint32_t i = 0; i + 1 < count; i++)
            if (!strcmp(word[i], "dev") && gw_graph_find_dev(s->topo.graph, word[i + 1], "", &dev,
                                                             &(struct gw_error){ 0 }) == GW_OK)
                s->net->port[dev].changes = true;
    }
    free(word[0]);
    free(word);
    return err->code;
}

static enum gw_status buffer_switch(struct gw_study *s, const struct buffer_conf *c,
                                    const struct gw_value *v, struct gw_error *err)
{
    uint32_t node = v->text ? gw_graph_find_node(s->topo.graph, v->text) : GW_NONE;
    char where[512];

    if (node == GW_NONE || s->topo.graph->node[node].kind != GW_NODE_SWITCH)
        return gw_fail(err, GW_PARAM, "%s: buffer: \"%s\" is no switch of this topology",
                       gw_value_where(v, where, sizeof where), v->text ? v->text : "(no name)");
    return net_set_buffer(s->net, node, c->size_bytes, c->alpha, err);
}

static void read_buffer(struct gw_study *s, struct gw_value *v, struct gw_error *err)
{
    struct buffer_conf c;

    if (!v)
        return;
    if (gw_params_read(buffer_rows, GW_ARRAY_LEN(buffer_rows), &c, v, NULL, "buffer", NULL, err)
        == GW_OK && c.switches && want_kind(c.switches, GW_V_LIST, "switches", err) == GW_OK) {
        for (struct gw_value *e = c.switches->child; e && err->code == GW_OK; e = e->next) {
            e->used = true;
            buffer_switch(s, &c, e, err);
        }
    } else if (err->code == GW_OK) {
        for (uint32_t i = 0; i < s->net->nodes && err->code == GW_OK; i++)
            if (s->topo.graph->node[i].kind == GW_NODE_SWITCH)
                net_set_buffer(s->net, i, c.size_bytes, c.alpha, err);
    }
    settle(s, err);
}

static bool pfc_switch(struct gw_study *s, const struct gw_value *v, bool *node,
                       struct gw_error *err)
{
    uint32_t i = v->text ? gw_graph_find_node(s->topo.graph, v->text) : GW_NONE;
    char where[512];

    if (i == GW_NONE || s->topo.graph->node[i].kind != GW_NODE_SWITCH) {
        gw_fail(err, GW_PARAM, "%s: pfc: \"%s\" is no switch of this topology",
                gw_value_where(v, where, sizeof where), v->text ? v->text : "(no name)");
        return false;
    }
    node[i] = true;
    return true;
}

static void read_pfc(struct gw_study *s, struct gw_value *v, struct gw_error *err)
{
    bool *node = v ? calloc(s->net->nodes + 1, sizeof *node) : NULL;
    struct pfc_conf c;
    char where[512];

    if (!v)
        return;
    if (!node)
        gw_fail(err, GW_NOMEM, "out of memory for flow control");
    else if (gw_params_read(pfc_rows, GW_ARRAY_LEN(pfc_rows), &c, v, NULL, "pfc", NULL, err)
             == GW_OK && (!c.switches || want_kind(c.switches, GW_V_LIST, "switches", err)
                                             == GW_OK)) {
        for (uint32_t i = 0; !c.switches && i < s->net->nodes; i++)
            node[i] = s->topo.graph->node[i].kind == GW_NODE_SWITCH;
        for (struct gw_value *e = c.switches ? c.switches->child : NULL; e; e = e->next) {
            e->used = true;
            if (!pfc_switch(s, e, node, err))
                break;
        }
        if (err->code == GW_OK)
            net_set_pfc(s->net, &c.net, node, gw_value_where(v, where, sizeof where), err);
    }
    free(node);
    settle(s, err);
}

static void read_events(struct gw_study *s, struct gw_value *v, struct gw_error *err)
{
    if (!v || (want_kind(v, GW_V_LIST, "events", err), !settle(s, err)))
        return;
    for (struct gw_value *x = v->child; x; x = x->next) {
        struct event_conf c;
        struct study_event *e = calloc(1, sizeof *e);

        x->used = true;
        if (!e) {
            gw_fail(err, GW_NOMEM, "out of memory for events");
        } else {
            struct study_event **tail = &s->events;

            while (*tail)
                tail = &(*tail)->next;
            *tail = e;                              /* at one instant, the list's order decides */
            e->study = s;
            gw_value_where(x, e->where, sizeof e->where);
            if (want_kind(x, GW_V_MAP, "an entry of events", err) == GW_OK &&
                gw_params_read(event_rows, GW_ARRAY_LEN(event_rows), &c, x, NULL, "event", NULL,
                               err) == GW_OK) {
                e->tc = c.tc;
                e->timer = (struct gw_timer){ .fire = event_fire, .owner = e,
                                              .comp = s->net->nodes, .due_ps = c.at_ps };
                event_device(s, e, err);
            }
        }
        settle(s, err);
    }
}

static void hear_problem(void *ctx, const char *sentence)
{
    add_text(&((struct gw_study *)ctx)->problem, sentence);
}

/* Tries the timed lines in their order; tells those that the run will not come to. */
static void rehearse(struct gw_study *s, struct gw_value *qdisc, struct gw_value *tc,
                     struct gw_error *err)
{
    struct rehearse r = { .net = s->net, .qdisc = qdisc, .tc = tc, .skip = qdisc_skip,
                          .problem = hear_problem, .warning = warn, .ctx = s };
    struct rehearse_line *line;
    char text[600], at[64], until[64];

    for (struct study_event *e = s->events; e; e = e->next)
        r.count++;
    line = calloc(r.count + 1, sizeof *line);
    if (!line) {
        gw_fail(err, GW_NOMEM, "out of memory for events");
        return;
    }
    r.count = 0;
    for (struct study_event *e = s->events; e; e = e->next)
        if (e->tc)
            line[r.count++] = (struct rehearse_line){ e->timer.due_ps, e->tc, e->where };
    for (size_t i = 1; i < r.count; i++)             /* few, and in order as a rule: stable    */
        for (size_t k = i; k && line[k - 1].at_ps > line[k].at_ps; k--) {
            struct rehearse_line x = line[k];

            line[k] = line[k - 1];
            line[k - 1] = x;
        }
    r.line = line;
    rehearse_events(&r, err);
    for (size_t i = 0; i < r.count; i++)
        if (s->until_ps && line[i].at_ps > s->until_ps) {
            snprintf(text, sizeof text, "%s: the run ends at %s (until) and never comes to the "
                     "line of %s", line[i].where, gw_format_time(s->until_ps, until, sizeof until),
                     gw_format_time(line[i].at_ps, at, sizeof at));
            warn(s, text);
        }
    free(line);
}

static void arm_events(struct gw_study *s)
{
    for (struct study_event *e = s->events; e; e = e->next)
        gw_engine_timer_set(s->net->engine, &e->timer, e->timer.due_ps);
}

const struct gw_param *gw_study_rows(const char *section, size_t *count)
{
    static const struct {
        const char *name;
        const struct gw_param *rows;
        size_t count;
    } part[] = {
        { "study", top_rows, GW_ARRAY_LEN(top_rows) },
        { "route", route_rows, GW_ARRAY_LEN(route_rows) },
        { "records", records_rows, GW_ARRAY_LEN(records_rows) },
        { "buffer", buffer_rows, GW_ARRAY_LEN(buffer_rows) },
        { "pfc", pfc_rows, GW_ARRAY_LEN(pfc_rows) },
        { "job", job_rows, GW_ARRAY_LEN(job_rows) },
        { "capture", capture_rows, GW_ARRAY_LEN(capture_rows) },
        { "log", log_rows, GW_ARRAY_LEN(log_rows) },
        { "event", event_rows, GW_ARRAY_LEN(event_rows) },
    };

    for (size_t i = 0; i < GW_ARRAY_LEN(part); i++)
        if (!strcmp(part[i].name, section)) {
            *count = part[i].count;
            return part[i].rows;
        }
    return NULL;
}

static struct explain_conf explain_of(const struct gw_study *s)
{
    struct explain_conf c = { .name = s->name, .net = s->net, .rt = s->rt,
                              .streams = s->transport ? s->transport->streams : 1,
                              .jobs = s->job_count, .first_event_ps = GW_NEVER };
    const struct gw_cc_ops *cc = s->transport && s->transport->cc ? s->transport->cc->ops : NULL;

    c.loss_based = cc && cc->loss_based;

    for (const struct study_event *e = s->events; e; e = e->next) {
        c.events++;
        c.first_event_ps = gw_min(c.first_event_ps, e->timer.due_ps);
    }
    return c;
}

struct channel_words {
    struct gw_study *study;
    const char *dev;
};

static void warn_channel(void *ctx, const char *sentence)
{
    const struct channel_words *w = ctx;
    char text[1400];

    snprintf(text, sizeof text, "%s: channel: %s", w->dev, sentence);
    add_text(&w->study->warning, text);
}

static void suspicious_channel(struct gw_study *s, uint32_t i)
{
    const struct gw_graph_link *l = &s->topo.graph->link[i / 2];
    const struct net_port *o = &s->net->port[i];
    const struct gw_channel *c = o->channel;
    struct gw_channel_link link = { o->rate_bps, o->delay_ps, l->mtu_bytes + GW_ETH_BYTES,
                                    o->framing_bytes };
    char dev[512], text[1024];
    double p;

    gw_graph_dev_name(s->topo.graph, i, dev, sizeof dev);
    if (c->ops->advise)
        c->ops->advise(c, &link, warn_channel, &(struct channel_words){ s, dev });
    p = c->ops->mean_loss ? c->ops->mean_loss(c, link.frame_bytes) : 0;
    if (p >= 0.1) {
        snprintf(text, sizeof text, "%s: %.3g %% of the packets are lost; reliable transports "
                 "will crawl", dev, p * 100);
        add_text(&s->warning, text);
    }
}

/* Does every frame that comes to a host take time on its link? */
static bool frames_take_time(const struct net *n)
{
    bool all = true;

    for (uint32_t i = 0; i < n->ports; i++)
        all &= n->port[i ^ 1].rate_bps || !n->port[i].is_nic;
    return all;
}

/* What segmentation and receive offload make of the rest of the study. */
static void suspicious_offloads(struct gw_study *s)
{
    const struct net *n = s->net;
    const struct net_transport *supers = n->transports, *merges = n->transports;
    bool counts = false;

    for (uint32_t i = 0; i < n->ports; i++)
        counts |= n->port[i].channel || n->port[i].tree->root;
    while (supers && !supers->supers)
        supers = supers->next;
    while (merges && !merges->merges_instants)
        merges = merges->next;
    if (supers && counts)
        warn(s, "offload: yes: links and disciplines lose, mark and count super-packets of up to 64 "
             "KiB; one loss is dozens of segments, and limits in packets hold as many times more");
    if (merges && frames_take_time(n))
        warn(s, "gro: yes merges nothing here: no two frames come to a host in one instant; "
             "gro_flush_timeout says how long it waits for the next one, e.g. 20us");
}

/* Is there a switch, and are all disciplines of switches plain FIFOs? */
static bool plain_switches(const struct net *n)
{
    bool any = false;

    for (uint32_t i = 0; i < n->ports; i++) {
        const struct gw_qdisc *root = n->port[i].tree->root;
        uint64_t pkts, bytes;

        if (n->graph->node[n->port[i].from].kind == GW_NODE_HOST)
            continue;
        if (root && !root->ops->fifo_limits(root, &pkts, &bytes))
            return false;
        any = true;
    }
    return any;
}

static void suspicious_transports(struct gw_study *s)
{
    char text[512];

    if (s->problem.count || !plain_switches(s->net))
        return;
    for (const struct net_transport *t = s->net->transports; t; t = t->next) {
        const struct gw_cc_ops *cc = t->cc ? t->cc->ops : NULL;

        if (t->ops->fifo_advice) {
            snprintf(text, sizeof text, "transport %s: %s", t->entry->plugin->name,
                     t->ops->fifo_advice);
            warn(s, text);
        }
        if (cc && cc->fifo_advice) {
            snprintf(text, sizeof text, "transport %s, cc %s: %s", t->entry->plugin->name,
                     t->cc->plugin->name, cc->fifo_advice);
            warn(s, text);
        }
    }
}

static void suspicious(struct gw_study *s)
{
    suspicious_offloads(s);
    suspicious_transports(s);
    for (uint32_t i = 0; i < s->net->ports; i++) {
        gw_tree_advise(s->net->port[i].tree, warn, s);
        if (s->net->port[i].channel)
            suspicious_channel(s, i);
    }
}

static char *dir_of(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash ? strndup(path, slash == path ? 1 : (size_t)(slash - path)) : strdup(".");
}

static void read_study(struct gw_study *s, const struct gw_study_conf *c, struct gw_error *err)
{
    struct top_conf top;

    if (gw_params_read(top_rows, GW_ARRAY_LEN(top_rows), &top, s->root, NULL, "study", NULL, err)
        != GW_OK) {
        settle(s, err);
        return;
    }
    if (!gw_value_get(s->root, "schema"))
        add_text(&s->warning, "the study does not say `schema: 1`; later versions may read it "
                 "differently");
    if (top.name && *top.name)
        snprintf(s->name, sizeof s->name, "%s", top.name);
    s->conf.seed = c->seed_given ? c->seed : top.seed;
    s->until_ps = s->conf.until_ps = top.until_ps;
    read_records(s, top.records, err);
    if (!open_network(s, &top, err))
        return;
    read_buffer(s, top.buffer, err);
    read_pfc(s, top.pfc, err);             /* ahead of disciplines: what `limit auto` means    */
    link_extras(s, err);
    settle(s, err);
    read_qdiscs(s, top.qdisc, err);
    read_tc(s, top.tc, err);
    read_events(s, top.events, err);
    rehearse(s, top.qdisc, top.tc, err);
    settle(s, err);
    s->transport = net_add_transport(s->net, top.transport, err);
    if (settle(s, err))
        read_jobs(s, top.jobs, err);
    read_captures(s, top.capture, err);
    pcap_options(s, c->pcap, err);
    check_filters(s, err);
    read_logs(s, top.log, err);
    read_expect(s, top.expect, err);
    if (!s->problem.count)                 /* else parts were not read and look unused         */
        gw_doc_unused(s->root, NULL, err);
    settle(s, err);
    suspicious(s);
}

struct gw_study *gw_study_open(struct gw_registry *r, const struct gw_study_conf *c,
                               struct gw_error *err)
{
    struct gw_study *s = calloc(1, sizeof *s);
    struct gw_host *h = gw_registry_host(r);
    double t0 = gw_clock_cpu_s();

    if (!s) {
        gw_fail(err, GW_NOMEM, "out of memory");
        return NULL;
    }
    gw_graph_host(h);
    net_host_functions(h);
    rt_host_functions(h);
    s->registry = r;
    s->dir = dir_of(c->path);
    s->path = strdup(c->path);
    snprintf(s->name, sizeof s->name, "study");
    s->doc = gw_doc_load(c->path, err);
    for (const char *const *a = c->set; s->doc && a && *a; a++) {
        gw_doc_set(s->doc, *a, err);
        settle(s, err);
    }
    if (!s->doc || !s->dir || !s->path) {
        gw_study_free(s);
        return NULL;
    }
    s->root = gw_doc_root(s->doc);
    if (c->real_clock)
        s->clock = gw_clock_real();
    if (!s->problem.count)
        read_study(s, c, err);
    s->setup_s = gw_clock_cpu_s() - t0;
    return s;
}

void gw_study_free(struct gw_study *s)
{
    if (!s)
        return;
    while (s->captures) {
        struct study_capture *c = s->captures;

        s->captures = c->next;
        if (c->open)
            gw_capture_close(c->open, NULL, &(struct gw_error){ 0 });
        free(c->filter);
        free(c);
    }
    while (s->events) {
        struct study_event *e = s->events;

        s->events = e->next;
        free(e);
    }
    rt_free(s->rt);
    net_free(s->net);
    gw_routes_free(s->routes);
    if (s->topo_open)
        gw_topo_close(&s->topo);
    gw_doc_free(s->doc);
    if (s->clock)
        gw_clock_free(s->clock);
    free_texts(&s->problem);
    free_texts(&s->warning);
    free_texts(&s->output);
    free_texts(&s->expect);
    free(s->dir);
    free(s->path);
    free(s);
}

const char *gw_study_problem(const struct gw_study *s, size_t i)
{
    return text_at(&s->problem, i);
}

const char *gw_study_warning(const struct gw_study *s, size_t i)
{
    return text_at(&s->warning, i);
}

const char *gw_study_name(const struct gw_study *s)
{
    return s->name;
}

const char *gw_study_expect(const struct gw_study *s, size_t i)
{
    return text_at(&s->expect, i);
}

const char *gw_study_output(const struct gw_study *s, size_t i)
{
    return text_at(&s->output, i);
}

/* ---- run ---------------------------------------------------------------------------------- */

/*
 * The path of an output for @name, noted among the outputs. What does not belong into a file's name
 * becomes '-'; where another output has got that name ("p q" and "p-q"), it becomes %XX, as '-' does.
 */
static char *output_of(struct gw_study *s, const char *dir, const char *prefix, const char *name,
                       const char *suffix, char *buf, size_t n)
{
    for (int spelt = 0; spelt < 2; spelt++) {
        size_t at = (size_t)snprintf(buf, n, "%s/%s", dir, prefix);

        for (const char *p = name; *p && at + 16 < n; p++)
            if (spelt && strchr(":/ \t#%-", *p))
                at += (size_t)snprintf(buf + at, n - at, "%%%02X", (unsigned char)*p);
            else
                buf[at++] = strchr(":/ \t#", *p) ? '-' : *p;
        snprintf(buf + at, n - at, "%s", suffix);
        if (!has_text(&s->output, buf))
            break;
    }
    add_text(&s->output, buf);
    return buf;
}

static enum gw_status open_outputs(struct gw_study *s, const char *dir, struct gw_error *err)
{
    char path[4096], dev[512];

    for (struct study_capture *c = s->captures; c; c = c->next) {
        struct gw_capture_conf cc = {
            .path = output_of(s, dir, "", gw_graph_dev_name(s->topo.graph, c->dev, dev,
                              sizeof dev), ".pcap", path, sizeof path),
            .filter = c->filter, .snap_bytes = (uint32_t)c->snap, .max_packets = c->count,
        };

        c->open = gw_capture_open(&cc, c->where, err);
        if (!c->open)
            return err->code;
        net_add_capture(s->net, c->dev, c->open);
    }
    if (s->events) {
        snprintf(path, sizeof path, "%s/tc-events.jsonl", dir);
        s->events_out = fopen(path, "wx");
        if (!s->events_out)
            return gw_fail(err, GW_IO, "%s: cannot be created: %m", path);
        add_text(&s->output, path);
    }
    for (uint32_t i = 0; i < s->net->ports; i++) {
        struct net_log *l = s->net->port[i].log;

        if (!l)
            continue;
        free(l->path);
        l->path = strdup(output_of(s, dir, "packets-", gw_graph_dev_name(s->topo.graph, i, dev,
                                   sizeof dev), ".csv", path, sizeof path));
    }
    for (struct net_trace *t = s->net->traces; t; t = t->next) {
        output_of(s, dir, "flows-", rt_job_name(s->rt, t->job), ".csv", path, sizeof path);
        if (net_open_trace(t, path, rt_job_transport(s->rt, t->job)->ops->trace_columns, err)
            != GW_OK)
            return err->code;
    }
    return GW_OK;
}

/*
 * Defaults of @rows that the map @v lacks are written into it, so that the saved study says all that
 * was in force. Rows "a.b" go into the map under a; where that key is a scalar (fuse: off) they do
 * not apply.
 */
static void add_defaults(struct gw_doc *d, struct gw_value *v, const struct gw_param *rows,
                         uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        const char *dot = strchr(rows[i].name, '.');
        struct gw_value *map = v, *at;
        char key[64];
        bool nested = false;

        if (!rows[i].def || !*rows[i].def)
            continue;
        snprintf(key, sizeof key, "%.*s", (int)strcspn(rows[i].name, "."), rows[i].name);
        for (uint32_t k = 0; !dot && k < count; k++)
            nested = nested || (!strncmp(rows[k].name, key, strlen(key)) &&
                                rows[k].name[strlen(key)] == '.');
        at = gw_value_get(v, key);
        if (nested || (!dot && at) || (dot && at && at->kind != GW_V_MAP))
            continue;
        if (dot) {
            map = at ? at : gw_doc_scalar(d, v, key, NULL);
            if (!map || gw_value_get(map, dot + 1))
                continue;
        }
        gw_doc_scalar(d, map, dot ? dot + 1 : rows[i].name, rows[i].def);
    }
}

static void plugin_defaults(struct gw_study *s, struct gw_value *v, enum gw_kind kind,
                            const char *name)
{
    const struct gw_entry *e = gw_registry_find(s->registry, kind, name, NULL,
                                                &(struct gw_error){ 0 });

    if (e && v && v->kind == GW_V_MAP)
        add_defaults(s->doc, v, e->plugin->params, e->plugin->param_count);
}

static void transport_defaults(struct gw_study *s, struct gw_value *v)
{
    const struct gw_value *kind = gw_value_get(v, "kind"), *cc;

    if (!v || v->kind != GW_V_MAP)
        return;
    if (!kind)
        kind = gw_doc_scalar(s->doc, v, "kind", "tcp");
    plugin_defaults(s, v, GW_KIND_TRANSPORT, kind ? kind->text : "tcp");
    cc = gw_value_get(v, "cc");
    if (cc && cc->text)
        plugin_defaults(s, v, GW_KIND_CC, cc->text);
}

static void effective(struct gw_study *s)
{
    struct gw_value *t = gw_value_get(s->root, "topology"), *j = gw_value_get(s->root, "jobs");
    struct gw_value *v;
    char text[32];

    snprintf(text, sizeof text, "%llu", (unsigned long long)s->conf.seed);
    gw_doc_scalar(s->doc, s->root, "seed", text);
    add_defaults(s->doc, s->root, top_rows, GW_ARRAY_LEN(top_rows));
    if (s->topo.plugin && t->kind == GW_V_MAP)
        add_defaults(s->doc, t, s->topo.plugin->params, s->topo.plugin->param_count);
    v = gw_value_get(s->root, "transport");
    if (!v)
        v = gw_doc_scalar(s->doc, s->root, "transport", NULL);
    transport_defaults(s, v);
    for (v = j ? j->child : NULL; v; v = v->next) {
        const struct gw_value *traffic = gw_value_get(v, "traffic");

        if (!traffic || !traffic->text)
            continue;
        add_defaults(s->doc, v, job_rows, GW_ARRAY_LEN(job_rows));
        plugin_defaults(s, v, GW_KIND_TRAFFIC, traffic->text);
        transport_defaults(s, gw_value_get(v, "transport"));
    }
}

/* The warnings, which must not depend on where the study lies. */
static void record_notes(struct gw_study *s, struct gw_sink *sink)
{
    size_t n = strlen(s->path);
    const char *slash = strrchr(s->path, '/'), *text, *hit;
    char short_text[1024];

    for (size_t i = 0; (text = text_at(&s->warning, i)); i++) {
        hit = slash ? strstr(text, s->path) : NULL;
        if (hit) {
            snprintf(short_text, sizeof short_text, "%.*s%s%s", (int)(hit - text), text, slash + 1,
                     hit + n);
            text = short_text;
        }
        sink->ops->note(sink, text);
    }
}

static enum gw_status save_effective(struct gw_study *s, const char *dir, struct gw_sink *sink,
                                     struct gw_error *err)
{
    char *text, path[4096], hex[65], seed[32];
    struct utsname u;
    FILE *f;

    effective(s);
    text = gw_doc_dump(s->root);
    snprintf(seed, sizeof seed, "%llu", (unsigned long long)s->conf.seed);
    snprintf(path, sizeof path, "%s/study.yaml", dir);
    f = text ? fopen(path, "wx") : NULL;
    if (!f || fputs(text, f) < 0 || fclose(f) != 0) {
        free(text);
        return gw_fail(err, GW_IO, "%s: cannot be written: %m; the output directory needs room "
                       "and write permission", path);
    }
    sink->ops->meta(sink, "study", text, false);
    for (size_t i = 0; i < s->output.count; i++) {
        char key[32];
        const char *slash = strrchr(s->output.item[i], '/');

        snprintf(key, sizeof key, "output.%zu", i);
        sink->ops->meta(sink, key, slash ? slash + 1 : s->output.item[i], false);
    }
    sink->ops->meta(sink, "name", s->name, false);
    sink->ops->meta(sink, "seed", seed, false);
    sink->ops->meta(sink, "version", PACKAGE_VERSION, false);
    sink->ops->meta(sink, "time_base", "simulated picoseconds since the start of the study; "
                    "captures count from 1970-01-01 00:00:00", false);
    record_notes(s, sink);
    if (gw_file_digest(s->path, hex, &(struct gw_error){ 0 }) == GW_OK)
        sink->ops->meta(sink, "study_sha256", hex, true);
    if (!uname(&u)) {
        sink->ops->meta(sink, "system", u.sysname, true);
        sink->ops->meta(sink, "release", u.release, true);
        sink->ops->meta(sink, "machine", u.machine, true);
    }
    free(text);
    return GW_OK;
}

struct progress_state {
    gw_progress_fn fn;
    void    *ctx;
    double   wall0, last_wall;
    uint64_t last_events;
};

static bool report(struct gw_study *s, struct progress_state *p)
{
    double now = gw_clock_wall_s();
    uint64_t events = gw_engine_events(s->net->engine);
    struct gw_progress g = {
        .sim_s = (double)gw_engine_now(s->net->engine) * 1e-12,
        .until_s = (double)s->until_ps * 1e-12,
        .wall_s = now - p->wall0,
        .done = rt_done_share(s->rt),
    };

    g.event_rate = now > p->last_wall ? (double)(events - p->last_events) / (now - p->last_wall)
                                      : 0;
    p->last_wall = now;
    p->last_events = events;
    return p->fn ? p->fn(p->ctx, &g) : true;
}

static enum gw_status play(struct gw_study *s, gw_progress_fn fn, void *ctx, bool *stopped,
                           struct gw_error *err)
{
    struct progress_state p = { fn, ctx, gw_clock_wall_s(), gw_clock_wall_s(), 0 };
    uint64_t until = s->until_ps ? s->until_ps : GW_NEVER - 1;
    bool more = true;

    *stopped = false;
    while (more && !*stopped) {
        uint64_t chunk = s->clock ? 100 : PROGRESS_EVENTS;

        if (gw_engine_run(s->net->engine, until, chunk, &more, err) != GW_OK)
            return err->code;
        if (s->net->failed)
            return gw_fail(err, s->net->error.code, "%s", s->net->error.text);
        if (rt_idle(s->rt))
            break;
        if (more)
            *stopped = !report(s, &p);
    }
    if (s->until_ps && !*stopped && !rt_idle(s->rt))
        gw_engine_advance(s->net->engine, s->until_ps);
    return GW_OK;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/* The smallest value that at least the share @q of the values does not exceed. */
static double quantile(const double *sorted, size_t n, double q)
{
    size_t k = (size_t)ceil(q * (double)n);

    return n ? sorted[k ? k - 1 : 0] : NAN;
}

static void fill_result(struct gw_study *s, struct gw_study_result *r)
{
    struct net *n = s->net;
    struct rusage ru;
    size_t count;
    double *t = rt_iteration_times(s->rt, &count), sum = 0;

    for (size_t i = 0; t && i < count; i++)
        sum += t[i];
    if (t)
        qsort(t, count, sizeof *t, by_value);
    r->iterations.count = count;
    r->iterations.mean_s = count ? sum / (double)count : NAN;
    r->iterations.p50_s = t ? quantile(t, count, 0.5) : NAN;
    r->iterations.p99_s = t ? quantile(t, count, 0.99) : NAN;
    free(t);
    r->flows.count = n->flows;
    r->flows.bytes = n->flow_bytes;
    r->flows.delivered_bytes = n->flow_delivered_bytes;
    r->packets.hops = n->hops;
    r->packets.delivered = n->pkts_delivered;
    r->packets.dropped = n->pkts_dropped;
    for (int i = 0; i < GW_DROP_COUNT; i++) {
        if (i == GW_DROP_LOSS || i == GW_DROP_CORRUPT)
            r->drops.loss += n->drops[i];
        else if (i == GW_DROP_QUEUE_FULL || i == GW_DROP_AQM || i == GW_DROP_FLOW_LIMIT ||
                 i == GW_DROP_TOO_BIG || i == GW_DROP_SHARED_BUFFER)
            r->drops.queue += n->drops[i];
        else
            r->drops.other += n->drops[i];
    }
    r->events = gw_engine_events(n->engine);
    r->sim_s = (double)gw_engine_now(n->engine) * 1e-12;
    r->seed = s->conf.seed;
    r->setup_s = s->setup_s;
    getrusage(RUSAGE_SELF, &ru);
    r->peak_rss_bytes = (uint64_t)ru.ru_maxrss * 1024;
}

static void host_facts(struct gw_study *s, struct gw_sink *sink, const struct gw_study_result *r)
{
    char text[64];

    snprintf(text, sizeof text, "%.6f", r->wall_s);
    sink->ops->meta(sink, "wall_s", text, true);
    snprintf(text, sizeof text, "%.6f", r->cpu_s);
    sink->ops->meta(sink, "cpu_s", text, true);
    snprintf(text, sizeof text, "%llu", (unsigned long long)r->peak_rss_bytes);
    sink->ops->meta(sink, "peak_rss_bytes", text, true);
    if (s->clock) {
        snprintf(text, sizeof text, "%.9f", (double)s->clock->late_max_ps * 1e-12);
        sink->ops->meta(sink, "late_max_s", text, true);
        snprintf(text, sizeof text, "%.9f", s->clock->waits ?
                 (double)s->clock->late_sum_ps / (double)s->clock->waits * 1e-12 : 0);
        sink->ops->meta(sink, "late_mean_s", text, true);
    }
}

static void result_meta(struct gw_sink *sink, const struct gw_study_result *r)
{
    char text[64];
    const struct { const char *key; uint64_t v; } row[] = {
        { "hops", r->packets.hops }, { "packets_delivered", r->packets.delivered },
        { "packets_dropped", r->packets.dropped }, { "events", r->events },
    };

    for (size_t i = 0; i < GW_ARRAY_LEN(row); i++) {
        snprintf(text, sizeof text, "%llu", (unsigned long long)row[i].v);
        sink->ops->meta(sink, row[i].key, text, false);
    }
    snprintf(text, sizeof text, "%.12f", r->sim_s);
    sink->ops->meta(sink, "sim_s", text, false);
}

static enum gw_status close_captures(struct gw_study *s, struct gw_error *err)
{
    for (struct study_capture *c = s->captures; c; c = c->next) {
        if (c->open)
            gw_capture_close(c->open, NULL, err);
        c->open = NULL;
    }
    return err->code;
}

static void close_events(struct gw_study *s, struct gw_error *err)
{
    FILE *f = s->events_out;

    s->events_out = NULL;
    if (f && (ferror(f) | fclose(f)))
        gw_fail(err, GW_IO, "tc-events.jsonl: writing failed: %m; free some disk space");
}

/* Completion times come out of the record: it alone knows them all. */
static void flow_times(const char *dir, struct gw_study_result *r)
{
    bool complete;
    struct sqlite3 *db = gw_record_open(dir, &complete, &(struct gw_error){ 0 });

    r->flows.fct_p50_s = r->flows.fct_p99_s = NAN;
    if (!db)
        return;
    gw_record_lookup(db, "flows.fct_p50_s", &r->flows.fct_p50_s);
    gw_record_lookup(db, "flows.fct_p99_s", &r->flows.fct_p99_s);
    sqlite3_close(db);
}

enum gw_status gw_study_run(struct gw_study *s, const char *dir, gw_progress_fn progress,
                            void *ctx, struct gw_study_result *res, struct gw_error *err)
{
    struct gw_sink *sink;
    char path[4096], waits[8192];
    double wall = gw_clock_wall_s(), cpu = gw_clock_cpu_s();
    bool stopped = false, complete;
    struct gw_error late = { 0 };

    memset(res, 0, sizeof *res);
    if (s->problem.count)
        return gw_fail(err, GW_PARAM, "%s", s->problem.item[0]);
    snprintf(path, sizeof path, "%s/records.sqlite", dir);
    sink = gw_record_create(path, &s->record, err);
    if (!sink)
        return err->code;
    if (open_outputs(s, dir, err) != GW_OK || net_ready(s->net, err) != GW_OK ||
        save_effective(s, dir, sink, err) != GW_OK)
        goto out;
    net_start_records(s->net, sink);
    rt_start_records(s->rt, sink);
    gw_engine_set_clock(s->net->engine, s->clock);
    arm_events(s);
    if (rt_start(s->rt, err) != GW_OK || play(s, progress, ctx, &stopped, err) != GW_OK)
        goto out;
    net_finish_records(s->net);
    fill_result(s, res);
    res->cpu_s = gw_clock_cpu_s() - cpu;
    res->wall_s = gw_clock_wall_s() - wall;
    res->unfinished = stopped || (!rt_idle(s->rt) && !s->until_ps);
    res->until_reached = s->until_ps && !rt_idle(s->rt);
    result_meta(sink, res);
    host_facts(s, sink, res);
    if (net_check_books(s->net, err) != GW_OK || net_write_logs(s->net, err) != GW_OK)
        goto out;
    if (res->unfinished && !stopped) {
        rt_wait_graph(s->rt, waits, sizeof waits, 32);
        gw_fail(err, GW_STALL, "work is left and nothing can happen any more at simulated %.6f s; "
                "who waits for what:\n%s", res->sim_s, waits);
    }
out:
    close_captures(s, &late);
    close_events(s, &late);
    complete = err->code == GW_OK && late.code == GW_OK && !stopped;
    sink->ops->finish(sink, complete, &late);
    if (late.code != GW_OK && (err->code == GW_OK || err->code == GW_IO))
        *err = late;                                /* the sink knows which file and why       */
    s->net->sink = NULL;
    flow_times(dir, res);
    return err->code;
}

void gw_study_doubts(struct gw_study *s)
{
    struct explain_conf c = explain_of(s);
    struct gw_error err = { GW_OK, "" };

    if (s->rt && !s->problem.count) {
        explain_doubts(&c, warn, s, &err);
        settle(s, &err);
    }
}

enum gw_status gw_study_explain(struct gw_study *s, FILE *out, struct gw_error *err)
{
    struct explain_conf c = explain_of(s);

    if (s->problem.count)
        return gw_fail(err, GW_PARAM, "%s", s->problem.item[0]);
    return explain_study(&c, out, err);
}
