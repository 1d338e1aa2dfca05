/*
 * explain - what a study will do before it runs: steps, bytes, the bounding link, bounds
 *
 * From a dry run of its jobs, in which every message has its path to itself. Links count with what
 * their disciplines and channels leave of them: the least rate on the way of the traffic through the
 * tree, the delays added on purpose, the shares lost. The state before the first timed event holds.
 */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include <math.h>
#include <stdlib.h>

#include "emu/cli/explain.h"
#include "emu/core/table.h"
#include "emu/net/way.h"

#define PAIR_NODES 2048u
#define DOUBT_EVENTS 1000000u      /* of a dry run for doubts: a fraction of a second          */

struct explain {
    const struct explain_conf *c;
    uint64_t *link_bytes;          /* per directed link                                        */
    double   *pair_s;              /* per pair of nodes: seconds at the rate that loss allows  */
    uint32_t *steps;               /* per collective: messages that rank 0 of job 0 sends      */
    uint32_t  steps_cap;
    uint64_t  messages, bytes, local_bytes, largest, collective_bytes;
    uint32_t  iterations;          /* of the job with the most                                 */
    double    loss_s;              /* the longest pair                                         */
    uint32_t  loss_src, loss_dst;
    double    loss_rate_bps;
    bool      dead;                /* a message whose full packets are all lost                */
};

/* ---- messages ----------------------------------------------------------------------------- */

/*
 * What loss leaves of a rate: a loss-based control keeps about sqrt(1.5 / p) segments a round trip
 * (Mathis et al. 1997; RFC 9438 keeps CUBIC at least there), for each stream. 0: no less than the
 * path has anyway.
 */
static double loss_rate(struct explain *x, const struct rt_dry_msg *m)
{
    struct net *net = x->c->net;
    struct gw_pkt back_pkt = *m->pkt;
    uint32_t back[64], k = net_path(net, m->dst_node, m->src_node, 1, back, 64);
    struct net_dry_path there = net_dry_path(net, m->path, m->path_len, m->pkt, x->c->streams);
    struct net_dry_path again;
    double rtt_s, p;

    back_pkt.src = m->pkt->dst;
    back_pkt.dst = m->pkt->src;
    back_pkt.flags |= GW_PKT_REVERSE;
    again = net_dry_path(net, back, k, &back_pkt, x->c->streams);
    rtt_s = there.delay_s + again.delay_s;
    p = 1 - there.pass;
    if (p >= 1) {
        x->dead = true;
        return 0;
    }
    if (p > 0 && rtt_s > 0) {
        double r = x->c->streams * 1448 * 8 * sqrt(1.5 / p) / rtt_s;

        if (!there.rate_bps || r < (double)there.rate_bps)
            return r;
    }
    return 0;
}

static void count_steps(struct explain *x, const struct rt_dry_msg *m)
{
    if (m->job || m->src_rank || !m->collective || m->collective > 10000000)
        return;
    if (m->collective >= x->steps_cap) {
        uint32_t cap = 2 * m->collective + 64;
        uint32_t *v = realloc(x->steps, cap * sizeof *v);

        if (!v)
            return;
        memset(v + x->steps_cap, 0, (cap - x->steps_cap) * sizeof *v);
        x->steps = v;
        x->steps_cap = cap;
    }
    x->steps[m->collective]++;
    x->collective_bytes += m->bytes;
}

/* The message's bytes on every link of its path and every discipline on its way there. */
static void load_path(struct explain *x, const struct rt_dry_msg *m)
{
    struct net *net = x->c->net;

    for (uint32_t i = 0; i < m->path_len; i++) {
        uint32_t id = m->path[i];
        struct net_way *w = net->port[id].tree->root || net->port[id].channel
                            ? net_way(net, id, m->pkt) : NULL;

        x->link_bytes[id] += m->bytes;
        for (uint32_t k = 0; w && k < w->steps; k++)
            w->step[k]->bytes += m->bytes;
    }
}

static void count_msg(void *ctx, const struct rt_dry_msg *m)
{
    struct explain *x = ctx;
    double rate;

    x->messages++;
    x->bytes += m->bytes;
    if (m->bytes > x->largest)
        x->largest = m->bytes;
    if (m->iteration != GW_NONE && m->iteration >= x->iterations)
        x->iterations = m->iteration + 1;
    count_steps(x, m);
    if (m->src_node == m->dst_node) {
        x->local_bytes += m->bytes;
        return;
    }
    load_path(x, m);
    rate = x->pair_s ? loss_rate(x, m) : 0;
    if (rate > 0 && x->c->loss_based) {
        double *t = &x->pair_s[(size_t)m->src_node * x->c->net->nodes + m->dst_node];

        *t += (double)m->bytes * 8 / rate;
        if (*t > x->loss_s) {
            x->loss_s = *t;
            x->loss_src = m->src_node;
            x->loss_dst = m->dst_node;
            x->loss_rate_bps = rate;
        }
    }
}

/* ---- words -------------------------------------------------------------------------------- */

static const char *time_text(double s, char *buf, size_t n)
{
    double scale = s >= 1 ? 1 : s >= 1e-3 ? 1e3 : s >= 1e-6 ? 1e6 : 1e9;

    snprintf(buf, n, "%.4g %s", s * scale,
             scale < 10 ? "s" : scale < 1e4 ? "ms" : scale < 1e7 ? "us" : "ns");
    return buf;
}

/* "tbf 8001:", "htb 1: class 1:10" */
static const char *step_text(const struct net_step *s, char *buf, size_t n)
{
    int used = snprintf(buf, n, "%s %x:", s->q->kind, s->q->handle >> 16);

    if (s->classid && s->q->ops->class_of)
        snprintf(buf + used, n - (size_t)used, " class %x:%x", s->classid >> 16,
                 s->classid & 0xffff);
    return buf;
}

/* ---- the bounding link ---------------------------------------------------------------------- */

struct bound {
    double s;                      /* time that the bytes take                                 */
    uint32_t id;
    const struct net_step *step;   /* NULL: the link itself                                    */
    uint64_t bytes, rate_bps;
};

static void bound_take(struct bound *b, uint32_t id, const struct net_step *step, uint64_t bytes,
                       uint64_t rate_bps)
{
    double s = rate_bps ? (double)bytes * 8 / (double)rate_bps : 0;

    if (s > b->s)
        *b = (struct bound){ s, id, step, bytes, rate_bps };
}

static struct bound bounding(const struct explain *x)
{
    const struct net *net = x->c->net;
    struct bound b = { .id = GW_NONE };

    for (uint32_t i = 0; i < net->ports; i++) {
        bound_take(&b, i, NULL, x->link_bytes[i], net->port[i].rate_bps);
        for (const struct net_step *s = net_steps(net, i); s; s = s->next)
            bound_take(&b, i, s, s->bytes, s->o.rate_bps);
    }
    return b;
}

static void print_bound(const struct explain *x, uint32_t it, FILE *out)
{
    const struct net *net = x->c->net;
    struct bound b = bounding(x);
    char dev[512], by[128], a[64], r[64];

    if (b.id == GW_NONE)
        return;
    fprintf(out, "bounding link   %s", gw_graph_dev_name(net->graph, b.id, dev, sizeof dev));
    if (b.step)
        fprintf(out, ", shaped by %s,", step_text(b.step, by, sizeof by));
    fprintf(out, " carries %s of payload an iteration: %.6g s at %s\n",
            gw_text_bytes((double)b.bytes / it, a, sizeof a), b.s / it,
            gw_text_rate((double)b.rate_bps, r, sizeof r));
}

/* ---- effective figures ---------------------------------------------------------------------- */

/* Asks for the way of packets that nothing distinguishes, at devices that no message took. */
static void plain_way(struct net *net, uint32_t id)
{
    const struct net_port *o = &net->port[id];
    struct gw_pkt p = { .len_bytes = net->graph->link[id / 2].mtu_bytes + GW_ETH_BYTES,
                        .flags = GW_PKT_FRAME, .src = o->from, .dst = o->to };

    if (!net_ways(net, id) && (o->tree->root || o->channel))
        net_way(net, id, &p);
}

/* Who says the least rate; NULL: the link itself. */
static const struct net_step *narrowest(const struct net_way *w)
{
    for (uint32_t i = 0; i < w->steps; i++)
        if (w->step[i]->o.rate_bps && w->step[i]->o.rate_bps == w->rate_bps)
            return w->step[i];
    return NULL;
}

/* "wan:a", or "wan:a (htb 1: class 1:10)" where a device has several ways. */
static const char *place_text(const struct net *net, uint32_t id, const struct net_way *w,
                              char *buf, size_t n)
{
    char dev[512], step[128] = "";

    gw_graph_dev_name(net->graph, id, dev, sizeof dev);
    for (uint32_t i = 0; net_ways(net, id)->next && i < w->steps; i++)
        if (w->step[i]->q->ops->class_of)
            step_text(w->step[i], step, sizeof step);
    if (*step)
        snprintf(buf, n, "%s (%s)", dev, step);
    else
        snprintf(buf, n, "%s", dev);
    return buf;
}

static void print_way(const struct net *net, uint32_t id, const struct net_way *w, FILE *out)
{
    const struct net_port *o = &net->port[id];
    const struct net_step *least = narrowest(w);
    char at[700], by[128], a[64], b[64];
    double ceiling = 0;

    place_text(net, id, w, at, sizeof at);
    for (uint32_t i = 0; i < w->steps; i++)
        if (w->step[i]->o.pkts_per_s > 0 &&
            (ceiling <= 0 || w->step[i]->o.pkts_per_s < ceiling))
            ceiling = w->step[i]->o.pkts_per_s;
    if (least)
        fprintf(out, "effective rate  %s: %s by %s%s%s\n", at,
                gw_text_rate((double)w->rate_bps, a, sizeof a), step_text(least, by, sizeof by),
                o->rate_bps ? ", on a link of " : "",
                o->rate_bps ? gw_text_rate((double)o->rate_bps, b, sizeof b) : "");
    for (uint32_t i = 0; i < w->steps; i++)
        if (w->step[i]->o.flow_rate_bps)
            fprintf(out, "effective rate  %s: %s a flow by %s\n", at,
                    gw_text_rate((double)w->step[i]->o.flow_rate_bps, a, sizeof a),
                    step_text(w->step[i], by, sizeof by));
    if (w->delay_s > 0)
        fprintf(out, "effective delay %s: %s on average, and %s of the link\n", at,
                time_text(w->delay_s, a, sizeof a),
                time_text((double)o->delay_ps * 1e-12, b, sizeof b));
    if (ceiling > 0 && (!w->rate_bps || ceiling * 8 * 1514 <= (double)w->rate_bps * 1.001))
        fprintf(out, "effective limit %s: at most %.4g packets/s, because of what may be held\n", at,
                ceiling);
    if (w->loss > 0 || (o->channel && o->channel->ops->mean_loss))
        fprintf(out, "effective loss  %s: %.6g %% of full packets\n", at, 100 * w->loss);
}

static void print_ways(const struct explain *x, FILE *out)
{
    struct net *net = x->c->net;

    for (uint32_t i = 0; i < net->ports; i++) {
        plain_way(net, i);
        for (const struct net_way *w = net_ways(net, i); w; w = w->next)
            print_way(net, i, w, out);
    }
}

/* ---- test frames -------------------------------------------------------------------------- */

/* Calls @say for every link and discipline that frames load, with its share of the rate. */
static void frames(const struct explain_conf *c, double least_share,
                   void (*say)(void *ctx, const char *dev, double bps, double share,
                               const struct net_step *by), void *ctx)
{
    double *load = calloc(c->net->ports + 1, sizeof *load);
    char dev[512];

    if (!load)
        return;
    rt_frame_load(c->rt, load);
    for (uint32_t i = 0; i < c->net->ports; i++) {
        double rate = (double)c->net->port[i].rate_bps;

        gw_graph_dev_name(c->net->graph, i, dev, sizeof dev);
        if (load[i] > 0 && rate > 0 && load[i] / rate > least_share)
            say(ctx, dev, load[i], load[i] / rate, NULL);
        for (const struct net_step *s = net_steps(c->net, i); s; s = s->next)
            if (s->load_bps > 0 && s->o.rate_bps &&
                s->load_bps / (double)s->o.rate_bps > least_share)
                say(ctx, dev, s->load_bps, s->load_bps / (double)s->o.rate_bps, s);
    }
    free(load);
}

static void print_load(void *ctx, const char *dev, double bps, double share,
                       const struct net_step *by)
{
    char text[128];

    fprintf(ctx, "frames          %s: offered %.4g Mbit/s, %.4g %% of %s%s\n", dev, bps * 1e-6,
            100 * share, by ? "what passes " : "the link",
            by ? step_text(by, text, sizeof text) : "");
}

struct overload {
    void (*say)(void *ctx, const char *sentence);
    void *ctx;
};

static void say_load(void *ctx, const char *dev, double bps, double share,
                     const struct net_step *by)
{
    const struct overload *o = ctx;
    char text[1024], step[128];

    snprintf(text, sizeof text, "%s: test frames offer %.4g Mbit/s, %.4g %% of %s%s; its queue will "
             "grow or drop", dev, bps * 1e-6, 100 * share, by ? "what passes " : "the link",
             by ? step_text(by, step, sizeof step) : "");
    o->say(o->ctx, text);
}

static void say_dead(const struct net *net, uint32_t id, const struct net_way *w,
                     void (*say)(void *ctx, const char *sentence), void *ctx)
{
    char text[1024], at[700];

    snprintf(text, sizeof text, "%s: every full packet is lost there",
             place_text(net, id, w, at, sizeof at));
    say(ctx, text);
}

enum gw_status explain_doubts(const struct explain_conf *c,
                              void (*say)(void *ctx, const char *sentence), void *ctx,
                              struct gw_error *err)
{
    double t;

    if (net_ready(c->net, err) != GW_OK ||
        rt_dry_run(c->rt, NULL, NULL, DOUBT_EVENTS, &t, err) != GW_OK)
        return err->code;
    frames(c, 1, say_load, &(struct overload){ say, ctx });
    for (uint32_t i = 0; i < c->net->ports; i++) {
        plain_way(c->net, i);
        for (const struct net_way *w = net_ways(c->net, i); w; w = w->next)
            if (w->loss >= 1)
                say_dead(c->net, i, w, say, ctx);
    }
    return GW_OK;
}

/* ---- all of it ---------------------------------------------------------------------------- */

static void print_all(const struct explain *x, FILE *out, double t)
{
    const struct explain_conf *c = x->c;
    const struct gw_graph *g = c->net->graph;
    uint32_t colls = 0, steps = 0, it = x->iterations ? x->iterations : 1;
    char a[64], b[64];

    for (uint32_t i = 0; i < x->steps_cap; i++) {
        colls += x->steps[i] != 0;
        steps += x->steps[i];
    }
    fprintf(out, "study           %s: %u nodes, %u hosts, %u links, %u jobs, %u iterations\n",
            c->name, g->node_count, c->net->host_count, g->link_count, c->jobs, it);
    fprintf(out, "messages        %.6g an iteration, together %s, the largest %s\n",
            (double)x->messages / it, gw_text_bytes((double)x->bytes / it, a, sizeof a),
            gw_text_bytes((double)x->largest, b, sizeof b));
    if (colls)
        fprintf(out, "steps           %.4g collectives an iteration, of %.4g steps each on rank 0; "
                "a step carries %s on average\n", (double)colls / it, (double)steps / colls,
                gw_text_bytes((double)x->collective_bytes / steps, a, sizeof a));
    if (x->local_bytes)
        fprintf(out, "inside hosts    %s an iteration never see a link\n",
                gw_text_bytes((double)x->local_bytes / it, a, sizeof a));
    print_bound(x, it, out);
    if (x->dead)
        fputs("loss bound      never: full packets of some messages are all lost on their way\n", out);
    else if (x->loss_s > 0)
        fprintf(out, "loss bound      %.6g s an iteration from %s to %s: %u streams at sqrt(1.5/p) "
                "segments a round trip make %.4g Mbit/s\n", x->loss_s / it,
                g->node[x->loss_src].name, g->node[x->loss_dst].name, c->streams,
                x->loss_rate_bps * 1e-6);
    if (c->events)
        fprintf(out, "timed changes   %u from %.6g s on (events:); what is said here holds before\n",
                c->events, (double)c->first_event_ps * 1e-12);
    fprintf(out, "alpha-beta      %.6g s an iteration if every message had its path to itself, "
            "compute included\n", t / it);
}

enum gw_status explain_study(const struct explain_conf *c, FILE *out, struct gw_error *err)
{
    struct explain x = { .c = c };
    double t = 0;

    x.link_bytes = calloc(c->net->ports + 1, sizeof *x.link_bytes);
    if (c->net->nodes <= PAIR_NODES)
        x.pair_s = calloc((size_t)c->net->nodes * c->net->nodes, sizeof *x.pair_s);
    if (!x.link_bytes)
        gw_fail(err, GW_NOMEM, "out of memory");
    else if (net_ready(c->net, err) == GW_OK &&
             rt_dry_run(c->rt, count_msg, &x, UINT64_MAX, &t, err) == GW_OK) {
        print_all(&x, out, t);
        frames(c, 0, print_load, out);
        print_ways(&x, out);
    }
    free(x.link_bytes);
    free(x.pair_s);
    free(x.steps);
    return err->code;
}
