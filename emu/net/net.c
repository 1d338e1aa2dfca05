/*
 * net - puts a network together from a graph, and takes its books at the end
 *
 * Everything here runs before the first packet or behind the last one: ports with their limits and
 * modes, disciplines, channels, captures, records, and the check that for every link sent =
 * delivered + lost + in flight.
 *
 * Default queues: a switch port that nobody configured is a tail-drop FIFO of
 * max(150 kB, rate x 80 us, rate x 2 x delay of its link) bytes: 1 MB at 100 Gbit/s, two
 * bandwidth-delay products on long links. A host's own NIC never drops; it pushes back. A host that
 * forwards for others (a site of a wide-area graph) has a router's ports.
 */
#include <math.h>
#include <stdlib.h>

#include "emu/net/prog.h"
#include "emu/net/way.h"
#include "emu/tc/keep.h"

#define AUTO_MIN_BYTES 150000u
#define AUTO_TIME_PS (80 * GW_PS_PER_US)
#define NIC_QUEUE_PS (100 * GW_PS_PER_US)
#define NIC_QUEUE_BYTES 32768u

void net_fail(struct net *n, enum gw_status code, const char *text)
{
    n->failed = true;
    gw_fail(&n->error, code, "%s", text);
    gw_engine_stop(n->engine);
}

uint64_t net_auto_limit(uint64_t rate_bps, uint64_t delay_ps)
{
    uint64_t a = gw_mul_div(rate_bps, AUTO_TIME_PS, 8 * GW_PS_PER_S);
    uint64_t b = gw_mul_div(rate_bps, 2 * delay_ps, 8 * GW_PS_PER_S);

    if (b > a)
        a = b;
    return a > AUTO_MIN_BYTES ? a : AUTO_MIN_BYTES;
}

static void port_init(struct net *n, uint32_t id)
{
    struct net_port *o = &n->port[id];
    const struct gw_graph_link *l = &n->graph->link[id / 2];
    const struct gw_graph_dir *d = &l->dir[id & 1];

    o->net = n;
    o->id = id;
    o->from = id & 1 ? l->b : l->a;
    o->to = id & 1 ? l->a : l->b;
    o->rate_bps = d->rate_bps;
    o->delay_ps = d->delay_ps;
    o->framing_bytes = l->framing_bytes;
    if (d->rate_bps && 8 * GW_PS_PER_S % d->rate_bps == 0)
        o->ps_per_byte = 8 * GW_PS_PER_S / d->rate_bps;
    o->limit_pkts = o->limit_bytes = UINT64_MAX;
    o->is_nic = n->graph->node[o->from].kind == GW_NODE_HOST && !n->graph->node[o->from].transit;
    n->link_rate_bps[id] = d->rate_bps;
    net_port_timer_init(o);
}

static bool net_tables(struct net *n)
{
    const struct gw_graph *g = n->graph;

    n->nodes = g->node_count;
    n->ports = 2 * g->link_count;
    n->port = aligned_alloc(64, (n->ports + 1) * sizeof *n->port);
    n->port_flags = calloc(n->ports + 1, 1);
    n->arrivals = calloc(n->ports + 1, sizeof *n->arrivals);
    n->link_rate_bps = calloc(n->ports + 1, sizeof *n->link_rate_bps);
    n->salt = calloc(n->nodes, sizeof *n->salt);
    n->down = calloc(n->nodes, sizeof *n->down);
    n->host_index = calloc(n->nodes, sizeof *n->host_index);
    n->host_node = calloc(n->nodes, sizeof *n->host_node);
    n->dmod_div = calloc(n->nodes, sizeof *n->dmod_div);
    n->spray_shift = calloc(n->nodes, 1);
    if (!n->port || !n->port_flags || !n->arrivals || !n->link_rate_bps || !n->salt ||
        !n->down || !n->host_index || !n->host_node || !n->dmod_div || !n->spray_shift)
        return false;
    memset(n->port, 0, n->ports * sizeof *n->port);
    return true;
}

/* Divisor for the destination-modulo mode: up-going choices of the tiers below multiply. */
static void dmod_divisors(struct net *n)
{
    uint32_t width[16] = { 0 };

    for (uint32_t v = 0; v < n->nodes; v++) {
        uint32_t t = n->graph->node[v].tier;

        if (t >= GW_ARRAY_LEN(width))
            continue;
        for (uint32_t leaf = 0; leaf < n->routes->leaf_count; leaf++) {
            uint32_t c = n->routes->row[(size_t)leaf * n->nodes + v].count;

            if (c > width[t])
                width[t] = c;
        }
    }
    for (uint32_t v = 0; v < n->nodes; v++) {
        uint32_t t = n->graph->node[v].tier, div = 1;

        for (uint32_t i = 0; i < t && i < GW_ARRAY_LEN(width); i++)
            div *= width[i] ? width[i] : 1;
        n->dmod_div[v] = t < GW_ARRAY_LEN(width) ? div : 1;
    }
}

static void net_nodes(struct net *n)
{
    struct gw_rng rng;

    gw_rng_open(&rng, n->conf.seed, "net/salt");
    for (uint32_t v = 0; v < n->nodes; v++) {
        char name[512];
        uint32_t leaf = n->routes->leaf_of[v];

        snprintf(name, sizeof name, "switch/%s/salt", n->graph->node[v].name);
        gw_rng_open(&rng, n->conf.seed, name);
        n->salt[v] = n->conf.polarised ? 0 : gw_rng_u32(&rng);
        if (n->graph->node[v].kind == GW_NODE_HOST) {
            n->host_index[v] = n->host_count;
            n->host_node[n->host_count++] = v;
        }
        if (n->graph->node[v].tier > 0 && n->graph->node[v].tier != GW_NONE)
            n->tiers = true;
        n->spray_shift[v] = 8 * (n->graph->node[v].tier & 3);
        n->down[v] = GW_NONE;
        if (leaf != GW_NONE && n->routes->leaf_node[leaf] != v &&
            n->routes->adj.first[v + 1] > n->routes->adj.first[v])
            n->down[v] = n->routes->adj.out[n->routes->adj.first[v]] ^ 1;
    }
}

static void tree_drop(void *port, struct gw_pkt *p, enum gw_drop_reason why)
{
    struct net_port *o = port;

    if (o->pfc)
        net_pfc_release(o, p, gw_engine_now(o->net->engine));
    net_drop(o->net, o, p, why);
}

/* Protocol and ports as the transport's own headers have them. */
static void transport_fields(struct net *n, const struct gw_pkt *p, struct gw_pkt_fields *f)
{
    const struct net_conn *c = n->dry ? NULL : n->conn[p->flow];
    const struct net_transport *tp = c ? c->tp : n->dry_tp;
    const struct gw_flow_addr first = { .src_port = NET_SRC_PORT, .dst_port = NET_DST_PORT };
    uint8_t head[GW_L4_MAX];

    if (!tp || !tp->ops->encode)
        return;
    if (p->seg_count > 1)                           /* one header, as in a capture             */
        f->ip_bytes -= (uint16_t)((p->seg_count - 1u) * tp->ops->header_bytes);
    tp->ops->encode(p, c ? net_ext_get(n, p) : NULL, c ? &c->addr : &first, head, &f->ip_proto);
    f->src_port = (uint16_t)(head[0] << 8 | head[1]);
    f->dst_port = (uint16_t)(head[2] << 8 | head[3]);
}

/* What stands in the real packet, for filters. */
static void tree_fields(void *port, const struct gw_pkt *p, struct gw_pkt_fields *f)
{
    f->src_ip = UINT32_C(0x0a000000) + p->src + 1;
    f->dst_ip = UINT32_C(0x0a000000) + p->dst + 1;
    f->tos = (uint8_t)(p->dscp << 2 | p->ecn);
    f->ip_bytes = (uint16_t)(p->len_bytes > GW_ETH_BYTES ? p->len_bytes - GW_ETH_BYTES : 0);
    if (p->flags & GW_PKT_FRAME) {
        f->ip_proto = 17;
        f->src_port = (uint16_t)(GW_FRAME_SRC_PORT + p->flow);
        f->dst_port = GW_FRAME_DST_PORT;
    } else {
        transport_fields(((struct net_port *)port)->net, p, f);
    }
}

static enum gw_status port_tree(struct net *n, uint32_t id, struct gw_error *err)
{
    struct net_port *o = &n->port[id];
    char dev[256];
    struct gw_tree_conf c = {
        .registry = n->registry, .dev = gw_graph_dev_name(n->graph, id, dev, sizeof dev),
        .net = n, .comp = o->from, .rate_bps = o->rate_bps,
        .mtu_bytes = n->graph->link[id / 2].mtu_bytes + GW_ETH_BYTES, .txqueuelen = 1000,
        .auto_limit_bytes = net_auto_limit(o->rate_bps, o->delay_ps), .seed = n->conf.seed,
        .data_dir = n->conf.data_dir, .ctx = o, .drop = tree_drop, .kick = net_port_kick,
        .fields = tree_fields,
    };

    o->tree = gw_tree_new(&c, err);
    return o->tree ? GW_OK : err->code;
}

struct net *net_new(struct gw_registry *r, struct gw_graph *g, struct gw_topology *t,
                    struct gw_routes *routes, const struct net_conf *c, struct gw_error *err)
{
    struct net *n = calloc(1, sizeof *n);

    if (!n)
        goto nomem;
    n->registry = r;
    n->host = gw_registry_host(r);
    n->graph = g;
    n->topology = t;
    n->routes = routes;
    n->conf = *c;
    n->ext_free = GW_NONE;
    n->engine = gw_engine_new(c->seed, c->events_per_us, net_deliver, n);
    if (!n->engine || !net_tables(n))
        goto nomem;
    for (uint32_t i = 0; i < n->ports; i++)
        port_init(n, i);
    for (uint32_t i = 0; i < n->ports; i++)
        if (port_tree(n, i, err) != GW_OK) {
            net_free(n);
            return NULL;
        }
    net_nodes(n);
    if (c->route == NET_DMOD)
        dmod_divisors(n);
    else
        for (uint32_t v = 0; v < n->nodes; v++)
            n->dmod_div[v] = 1;
    return n;

nomem:
    net_free(n);
    gw_fail(err, GW_NOMEM, "out of memory for the network");
    return NULL;
}

static void channel_free(struct gw_channel *c)
{
    if (!c)
        return;
    if (c->ops->fini)
        c->ops->fini(c);
    free(c->priv);
    free(c->conf);
    free(c);
}

void net_free(struct net *n)
{
    if (!n)
        return;
    net_conn_free_all(n);
    net_ways_free(n);
    for (struct net_trace *t = n->traces; t; t = n->traces) {
        n->traces = t->next;
        if (t->file)
            fclose(t->file);
        free(t->path);
        free(t);
    }
    free(n->log_map.at);
    for (uint32_t i = 0; n->port && i < n->ports; i++) {
        struct net_port *o = &n->port[i];

        gw_tree_free(o->tree);
        channel_free(o->channel);
        free(o->wait);
        if (o->log) {
            free(o->log->row);
            free(o->log->path);
            free(o->log);
        }
    }
    for (uint32_t i = 0; i < n->ext_chunks; i++)
        free(n->ext_chunk[i]);
    net_chunks_free(&n->slabs);
    free(n->ext_chunk);
    free(n->port);
    free(n->buffer);
    free(n->pfc);
    free(n->port_flags);
    free(n->arrivals);
    free(n->link_rate_bps);
    free(n->salt);
    free(n->down);
    free(n->host_index);
    free(n->host_node);
    free(n->dmod_div);
    free(n->spray_shift);
    gw_engine_free(n->engine);
    free(n);
}

/* ---- disciplines and channels ------------------------------------------------------------- */

/* A FIFO by bytes, for ports that nobody configured and that must run queued. */
static enum gw_status default_fifo(struct net *n, uint32_t id, struct gw_error *err)
{
    struct net_port *o = &n->port[id];
    struct gw_qdisc *q = gw_tree_make(o->tree, "bfifo", "default queue", err);
    char limit[32], *word[] = { "limit", limit, NULL };
    struct gw_tc_args a = { .word = word, .count = 2, .host = n->host };

    if (!q)
        return err->code;
    snprintf(limit, sizeof limit, "%llu", o->limit_bytes > 4294967295u ? 4294967295ull :
             (unsigned long long)o->limit_bytes);
    if (gw_tree_parse(q, &a, q->conf, &q->given, err) != GW_OK ||
        gw_tree_init(o->tree, q, err) != GW_OK)
        return err->code;
    q->hidden = true;
    return gw_tree_graft(o->tree, q, GW_TC_ROOT, 0, err);
}

bool net_dev_names(const struct net *n, const char *name, uint32_t id)
{
    struct gw_error quiet = { 0 };
    uint32_t dev;

    if (!strcmp(name, "switches"))
        return !n->port[id].is_nic;
    return gw_graph_find_dev(n->graph, name, "", &dev, &quiet) == GW_OK && dev == id;
}

enum gw_status net_default_queue(struct net *n, uint32_t id, struct gw_error *err)
{
    struct net_port *o = &n->port[id];

    if (o->tree->root || o->mode != PORT_QUEUED)
        return GW_OK;
    o->limit_bytes = o->is_nic || !o->rate_bps || o->buffer ? UINT64_MAX
                                                            : net_auto_limit(o->rate_bps, o->delay_ps);
    o->user_qdisc = false;
    return default_fifo(n, id, err);
}

enum gw_status net_set_channel(struct net *n, uint32_t id, const char *kind, struct gw_value *v,
                               double loss, struct gw_error *err)
{
    static const char *const skip[] = { "kind", NULL };
    char where[512] = "loss", text[64], dev[256], name[300];
    const struct gw_entry *e;
    const struct gw_channel_ops *ops;
    struct gw_channel *c;

    if (v)
        gw_value_where(v, where, sizeof where);
    e = gw_registry_find(n->registry, GW_KIND_CHANNEL, kind, where, err);
    if (!e)
        return err->code;
    ops = e->ops;
    c = calloc(1, sizeof *c);
    if (!c)
        return gw_fail(err, GW_NOMEM, "out of memory for a channel");
    c->ops = ops;
    c->host = n->host;
    c->net = n;
    c->priv = calloc(1, ops->priv_bytes + 1);
    c->conf = calloc(1, ops->conf_bytes + 1);
    gw_graph_dev_name(n->graph, id, dev, sizeof dev);
    snprintf(name, sizeof name, "link/%s/channel", dev);
    gw_rng_open(&c->rng, n->conf.seed, name);
    snprintf(text, sizeof text, "%.17g%%", loss * 100);
    if (!c->priv || !c->conf) {
        gw_fail(err, GW_NOMEM, "out of memory for a channel");
    } else if (v) {
        gw_params_read(e->plugin->params, e->plugin->param_count, c->conf, v, skip, kind,
                       &c->given, err);
    } else {
        const struct gw_plugin *p = e->plugin;

        for (uint32_t i = 0; i < p->param_count; i++)
            if (!strcmp(p->params[i].name, "loss"))
                gw_param_set(&p->params[i], c->conf, text, where, err);
    }
    if (err->code == GW_OK && ops->init && ops->init(c, err) != GW_OK) {
        struct gw_error why = *err;          /* it knows no place in the study                 */

        err->code = GW_OK;
        gw_fail(err, why.code, "%s: %s", where, why.text);
    }
    if (err->code != GW_OK) {
        channel_free(c);
        return err->code;
    }
    channel_free(n->port[id].channel);
    n->port[id].channel = c;
    return GW_OK;
}

enum gw_status net_set_buffer(struct net *n, uint32_t node, uint64_t size_bytes, double alpha,
                              struct gw_error *err)
{
    if (!n->buffer)
        n->buffer = calloc(n->nodes, sizeof *n->buffer);
    if (!n->buffer)
        return gw_fail(err, GW_NOMEM, "out of memory for switch buffers");
    n->buffer[node] = (struct net_buffer){ .size_bytes = size_bytes, .alpha = alpha };
    for (uint32_t i = 0; i < n->ports; i++)
        if (n->port[i].from == node)
            n->port[i].buffer = &n->buffer[node];
    return GW_OK;
}

/* ---- captures and logs -------------------------------------------------------------------- */

void net_add_capture(struct net *n, uint32_t id, struct gw_capture *c)
{
    n->port[id].cap_tx = c;
    n->port[id ^ 1].cap_rx = c;
    n->keep_conns = true;
}

enum gw_status net_add_log(struct net *n, uint32_t id, const char *path, struct gw_error *err)
{
    struct net_log *l = calloc(1, sizeof *l);

    if (l)
        l->path = strdup(path);
    if (!l || !l->path) {
        free(l);
        return gw_fail(err, GW_NOMEM, "out of memory for a packet log");
    }
    n->port[id].log = l;
    n->logs++;
    n->keep_conns = true;
    return GW_OK;
}

enum gw_status net_open_trace(struct net_trace *t, const char *path, const char *columns,
                              struct gw_error *err)
{
    free(t->path);
    t->path = strdup(path);
    t->file = t->path ? fopen(path, "wx") : NULL;
    if (!t->file)
        return gw_fail(err, GW_IO, "%s: cannot be created: %m; the log of flows needs a new file "
                       "in a directory that can be written", path);
    fprintf(t->file, "at_ps,conn,%s\n", columns);
    return GW_OK;
}

struct net_trace *net_add_trace(struct net *n, uint32_t job, struct gw_error *err)
{
    struct net_trace *t = calloc(1, sizeof *t), **at = &n->traces;

    if (!t) {
        gw_fail(err, GW_NOMEM, "out of memory for a log of flows");
        return NULL;
    }
    t->job = job;
    while (*at)
        at = &(*at)->next;
    *at = t;
    return t;
}

static enum gw_status write_traces(struct net *n, struct gw_error *err)
{
    for (struct net_trace *t = n->traces; t; t = t->next) {
        FILE *f = t->file;

        t->file = NULL;
        if (f && (ferror(f) | fclose(f)))
            return gw_fail(err, GW_IO, "%s: writing failed: %m; free some disk space", t->path);
    }
    return GW_OK;
}

/* Why the packet was lost, as in the records; empty: it was not. */
static const char *lost_key(uint8_t why)
{
    static const char *const key[] = {
#define LOST_KEY(name, key, text) key,
        GW_DROP_MAP(LOST_KEY)
#undef LOST_KEY
    };

    return why < GW_ARRAY_LEN(key) ? key[why] : "";
}

static const char *what_key(uint8_t what)
{
    return !what ? "frame" : what == NET_LOG_OTHER ? "other" : what & GW_WHAT_OPEN ? "open"
           : what & GW_WHAT_DATA ? "data" : what & GW_WHAT_CLOSE ? "close" : "ack";
}

enum gw_status net_write_logs(struct net *n, struct gw_error *err)
{
    if (write_traces(n, err) != GW_OK)
        return err->code;
    for (uint32_t i = 0; i < n->ports; i++) {
        struct net_log *l = n->port[i].log;
        FILE *f;

        if (!l)
            continue;
        f = fopen(l->path, "wx");
        if (!f)
            return gw_fail(err, GW_IO, "%s: cannot be created: %m; the packet log needs a new "
                           "file in a directory that can be written", l->path);
        fputs("job,flow,seq,size_bytes,sent_ps,received_ps,ce,flips,lost,what\n", f);
        for (uint64_t k = 0; k < l->count; k++) {
            const struct net_log_row *r = &l->row[k];

            fprintf(f, "%u,%u,%llu,%u,%llu,", r->job, r->flow, (unsigned long long)r->seq,
                    r->size_bytes, (unsigned long long)r->sent_ps);
            if (r->received_ps != GW_NEVER)
                fprintf(f, "%llu", (unsigned long long)r->received_ps);
            fprintf(f, ",%u,%u,%s,%s\n", r->ce, r->flips, lost_key(r->lost), what_key(r->what));
        }
        if (ferror(f) | fclose(f))
            return gw_fail(err, GW_IO, "%s: writing failed: %m; free some disk space", l->path);
    }
    return GW_OK;
}

/* ---- ready -------------------------------------------------------------------------------- */

static void nic_limits(struct net *n, struct net_port *o)
{
    uint64_t frame = n->graph->link[o->id / 2].mtu_bytes + GW_ETH_BYTES + o->framing_bytes;
    uint64_t bytes = gw_mul_div(o->rate_bps, NIC_QUEUE_PS, 8 * GW_PS_PER_S);

    if (bytes > NIC_QUEUE_BYTES)
        bytes = NIC_QUEUE_BYTES;
    if (bytes < 4 * frame)
        bytes = 4 * frame;
    o->room_ps = o->rate_bps ? gw_mul_div(bytes, 8 * GW_PS_PER_S, o->rate_bps) : GW_NEVER;
    o->room_low_ps = o->room_ps / 2;
}

/* May turns be found in hindsight? Events of a host have no place in the order of its ports'. */
static bool in_hindsight(const struct net *n, const struct net_port *o)
{
    if (o->mode != PORT_QUEUED || n->graph->node[o->from].kind == GW_NODE_HOST || !o->rate_bps ||
        !o->delay_ps || o->cap_tx || o->changes || o->buffer || o->pfc || o->channel)
        return false;
    for (const struct gw_qdisc *q = o->tree->all; q; q = q->sibling)
        if (!q->ops->in_hindsight)
            return false;
    return true;
}

enum gw_status net_ready(struct net *n, struct gw_error *err)
{
    uint64_t horizon = gw_engine_horizon_ps(n->engine);

    if (n->supers && n->pfc)
        return gw_fail(err, GW_PARAM, "pfc: its headroom is for frames; super-packets of a transport "
                       "with `offload: yes` would not fit, and switches have none");
    n->far_ps = horizon / 4;
    for (uint32_t i = 0; i < n->ports; i++) {
        struct net_port *o = &n->port[i];
        struct gw_qdisc *root = o->tree->root;
        bool fifo = !root || (root->ops->fifo_limits && !o->tree->stab.set &&
                              root->ops->fifo_limits(root, &o->limit_pkts, &o->limit_bytes));

        o->user_qdisc = root != NULL;
        if (!root && !o->is_nic && o->rate_bps)
            o->limit_bytes = net_auto_limit(o->rate_bps, o->delay_ps);
        if ((o->buffer || o->pfc) && !root)         /* the memory is the limit                  */
            o->limit_bytes = UINT64_MAX;
        if (!fifo || o->cap_tx || o->changes || o->buffer || o->pfc ||
            (n->telemetry && !o->is_nic) || (n->supers && o->framing_bytes)) {
            o->mode = PORT_QUEUED;
            if (!root && default_fifo(n, i, err) != GW_OK)
                return err->code;
        }
        nic_limits(n, o);
        o->hindsight = in_hindsight(n, o);
        if (o->pfc)
            o->flags |= PORT_PFC;
        if (o->delay_ps >= horizon / 2 && !o->pfc && !(o->channel && o->channel->ops->reorders))
            o->flags |= PORT_LONG;
        if (o->cap_rx)
            o->flags |= PORT_RX_CAP;
        if (o->log)
            o->flags |= PORT_LOG;
        n->port_flags[i] = o->flags;
        if (o->channel)
            o->flags |= PORT_CHANNEL;
    }
    return GW_OK;
}

/* ---- records ------------------------------------------------------------------------------ */

static uint64_t port_marks(const struct net_port *o)
{
    uint64_t marks = 0;

    for (const struct gw_qdisc *q = o->tree->all; q; q = q->sibling)
        marks += q->marked_pkts;
    return marks;
}

static void take_samples(void *owner, uint64_t now_ps)
{
    struct net *n = owner;

    for (uint32_t i = 0; i < n->ports; i++) {
        struct net_port *o = &n->port[i];
        struct gw_rec_link_sample s = { .at_ps = now_ps, .link = i };
        uint64_t sent, marks, drops = 0;

        net_port_queue(o, now_ps, &s.queue_bytes, &s.queue_pkts);
        marks = port_marks(o);
        sent = o->sent_bytes - (o->mode == PORT_ARITHMETIC ? s.queue_bytes : 0);
        for (int k = 0; k < GW_DROP_COUNT; k++)
            drops += o->drops[k];
        s.sent_bytes = sent - o->sample_bytes;
        s.drops = drops - o->sample_drops;
        s.marked_pkts = marks - o->sample_marks;
        o->sample_bytes = sent;
        o->sample_drops = drops;
        o->sample_marks = marks;
        if ((s.sent_bytes || s.drops || s.queue_bytes) && n->sink)
            n->sink->ops->link_sample(n->sink, &s);
    }
    if (!rt_idle(n->rt) || n->live_pkts)
        gw_engine_timer_set(n->engine, &n->sample_timer, now_ps + n->conf.link_sample_ps);
}

void net_start_records(struct net *n, struct gw_sink *s)
{
    n->sink = s;
    for (uint32_t v = 0; v < n->nodes; v++)
        s->ops->node(s, &(struct gw_rec_node){ v, n->graph->node[v].name,
                                               n->graph->node[v].kind == GW_NODE_HOST });
    for (uint32_t i = 0; i < n->ports; i++) {
        const struct net_port *o = &n->port[i];
        char dev[512], dir[1024];

        gw_graph_dev_name(n->graph, i, dev, sizeof dev);
        snprintf(dir, sizeof dir, "%s->%s", n->graph->node[o->from].name,
                 n->graph->node[o->to].name);
        s->ops->link(s, &(struct gw_rec_link){ i, dev, dir, o->from, o->to, o->rate_bps,
                                               o->delay_ps });
    }
    net_pfc_start(n);
    if (n->conf.link_sample_ps) {
        n->sample_timer = (struct gw_timer){ .fire = take_samples, .owner = n,
                                             .comp = n->nodes + n->ports + n->fluid_count };
        gw_engine_timer_set(n->engine, &n->sample_timer, n->conf.link_sample_ps);
    }
}

static void record_stats(struct net *n, uint32_t id, const char *owner, const void *priv,
                         const struct gw_stat *stats, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        uint64_t v;

        memcpy(&v, (const char *)priv + stats[i].offset, sizeof v);
        n->sink->ops->stat(n->sink, &(struct gw_rec_stat){ id, owner, stats[i].name, v });
    }
}

static void record_value(struct net *n, uint32_t id, const char *owner, const char *name,
                         uint64_t value)
{
    if (value)
        n->sink->ops->stat(n->sink, &(struct gw_rec_stat){ id, owner, name, value });
}

/* Classes whose books are not simply those of the discipline below them. */
static void record_classes(struct net *n, uint32_t id, const struct gw_qdisc *q)
{
    struct gw_qdisc *own = (struct gw_qdisc *)(uintptr_t)q;

    if (!q->ops->class_walk)
        return;
    for (struct gw_qclass *c = q->ops->class_walk(own, NULL); c;
         c = q->ops->class_walk(own, c)) {
        bool mine = c->books == GW_BOOKS_OWN;
        char owner[128];

        if (c->books == GW_BOOKS_NONE || (!mine && !c->child))
            continue;
        snprintf(owner, sizeof owner, "class:%s:%x:%x", q->kind, c->id >> 16, c->id & 0xffff);
        record_value(n, id, owner, "sent_bytes", mine ? c->sent_bytes : c->child->sent_bytes);
        record_value(n, id, owner, "sent_pkts", mine ? c->sent_pkts : c->child->sent_pkts);
        record_value(n, id, owner, "dropped_pkts",
                     mine ? c->dropped_pkts : c->child->dropped_pkts);
        record_value(n, id, owner, "overlimits", mine ? c->overlimits : c->child->overlimits);
    }
}

/* What `tc -s` would show of @q at the end of the run. */
static void record_qdisc(struct net *n, uint32_t id, const struct gw_qdisc *q, const char *what)
{
    char owner[128];

    if (q->hidden)
        return;
    snprintf(owner, sizeof owner, "%s:%s:%x:", what, q->kind, q->handle >> 16);
    record_value(n, id, owner, "sent_bytes", q->sent_bytes);
    record_value(n, id, owner, "sent_pkts", q->sent_pkts);
    record_value(n, id, owner, "dropped_pkts", q->dropped_pkts);
    record_value(n, id, owner, "overlimits", q->overlimits);
    record_value(n, id, owner, "requeues", q->requeues);
    record_value(n, id, owner, "marked_pkts", q->marked_pkts);
    record_value(n, id, owner, "backlog_bytes", q->backlog_bytes);
    record_value(n, id, owner, "backlog_pkts", q->backlog_pkts);
    record_stats(n, id, owner, q->priv, q->ops->stats, q->ops->stat_count);
    if (q->listed && strcmp(what, "removed"))
        record_classes(n, id, q);
}

static void record_pfc(struct net *n, uint32_t id, const struct net_pfc *f)
{
    record_value(n, id, "pfc", "pauses", f->pauses);
    record_value(n, id, "pfc", "held_max_bytes", f->held_max_bytes);
    record_value(n, id, "pfc", "limit_bytes", f->limit_bytes);
    record_value(n, id, "pfc", "pause_frames_in", f->frames_in);
    record_value(n, id, "pfc", "pause_frames_out", f->frames_out);
    record_value(n, id, "pfc", "paused_ps", f->paused_ps);
    record_value(n, id, "pfc", "storms", f->storms);
    record_value(n, id, "pfc", "deadlocked", n->pfc_deadlock && f->stuck);
}

static uint64_t in_flight(const struct net *n, uint32_t id)
{
    const struct net_port *o = &n->port[id];

    return o->sent_pkts + o->duplicated_pkts - o->lost_pkts - n->arrivals[id].pkts +
           (o->mode == PORT_QUEUED && o->tree->root ? o->tree->root->backlog_pkts : 0) +
           (o->pfc ? o->pfc->other.count + o->pfc->control.count : 0);
}

struct tc_record {
    struct net *n;
    uint32_t    id;
};

static void record_tc(void *ctx, const struct gw_tc_kept *k)
{
    const struct tc_record *r = ctx;

    r->n->sink->ops->tc(r->n->sink, &(struct gw_rec_tc){ r->id, k->order, k->object, k->kind,
                        k->handle, k->parent, k->forms, k->text });
}

/* Packets that the device was given: all but those that its channel lost were sent, dropped, sent
 * back, or are still there. */
static uint64_t arrived(const struct net_port *o, uint64_t sent_pkts, uint64_t waiting)
{
    uint64_t drops = 0;

    for (int i = 0; i < GW_DROP_COUNT; i++)
        drops += o->drops[i];
    return sent_pkts + waiting + drops + o->returned_pkts - o->lost_pkts;
}

static uint64_t held_ns(const struct net_port *o)
{
    uint64_t sum = 0;

    for (const struct gw_qdisc *q = o->tree->all; q; q = q->sibling)
        sum += q->held_ns;
    for (const struct gw_qdisc *q = o->tree->dead; q; q = q->sibling)
        sum += q->held_ns;
    return sum;
}

void net_finish_records(struct net *n)
{
    net_record_open_flows(n);
    net_all_books(n, gw_engine_now(n->engine));
    for (uint32_t i = 0; i < n->ports; i++) {
        struct net_port *o = &n->port[i];
        uint64_t now = gw_engine_now(n->engine), bytes, pkts, waiting;

        /* By arithmetic, what waits has been counted as sent already. */
        net_port_queue(o, now, &bytes, &pkts);
        waiting = pkts;
        if (o->mode == PORT_QUEUED)
            bytes = pkts = 0;
        struct gw_rec_link_total t = {
            .link = i, .sent_pkts = o->sent_pkts - pkts, .sent_bytes = o->sent_bytes - bytes,
            .wire_bytes = o->sent_bytes - bytes + (o->sent_pkts - pkts) * o->framing_bytes +
                          o->cut_bytes,
            .delivered_pkts = n->arrivals[i].pkts, .delivered_bytes = n->arrivals[i].bytes,
            .in_flight_pkts = in_flight(n, i),
            .busy_ps = o->busy_ps - (o->free_ps > now ? o->free_ps - now : 0),
            .wait_sum_ps_hi = (uint64_t)(o->wait_sum_ps >> 64),
            .wait_sum_ps = (uint64_t)o->wait_sum_ps, .wait_max_ps = o->wait_max_ps,
            .queue_max_bytes = o->queue_max_bytes, .queue_max_pkts = o->queue_max_pkts,
            .marked_pkts = port_marks(o),
            .fluid_bytes = o->fluid_bytes, .drops = o->drops,
            .arrived_pkts = arrived(o, o->sent_pkts - pkts, waiting), .held_ns = held_ns(o),
        };

        if (n->sink->ops->link_total(n->sink, &t) != GW_OK)
            net_fail(n, GW_IO, "the records could not be written");
        for (const struct gw_qdisc *q = o->tree->all; q; q = q->sibling)
            record_qdisc(n, i, q, "qdisc");
        for (const struct gw_qdisc *q = o->tree->dead; q; q = q->sibling)
            record_qdisc(n, i, q, "removed");
        if (o->pfc)
            record_pfc(n, i, o->pfc);
        if (!gw_tc_keep(o->tree, record_tc, &(struct tc_record){ n, i }))
            net_fail(n, GW_NOMEM, "out of memory for what tc prints");
        if (o->channel)
            record_stats(n, i, "channel", o->channel->priv, o->channel->ops->stats,
                         o->channel->ops->stat_count);
    }
}

enum gw_status net_check_books(struct net *n, struct gw_error *err)
{
    uint64_t flying = 0;

    for (uint32_t i = 0; i < n->ports; i++) {
        const struct net_port *o = &n->port[i];
        char dev[256];

        if (o->sent_pkts + o->duplicated_pkts < o->lost_pkts + n->arrivals[i].pkts)
            return gw_fail(err, GW_BUG, "%s: more packets arrived than were sent (%llu sent, %llu "
                           "delivered, %llu lost); this is a fault of gradwire",
                           gw_graph_dev_name(n->graph, i, dev, sizeof dev),
                           (unsigned long long)o->sent_pkts,
                           (unsigned long long)n->arrivals[i].pkts,
                           (unsigned long long)o->lost_pkts);
        flying += in_flight(n, i);
    }
    if (flying != n->live_pkts)
        return gw_fail(err, GW_BUG, "%llu packets are in flight by the links' books, %llu exist; "
                       "this is a fault of gradwire", (unsigned long long)flying,
                       (unsigned long long)n->live_pkts);
    return GW_OK;
}
