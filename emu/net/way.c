/*
 * way - what the disciplines and the channel of a device do on purpose to packets that take it
 *
 * For explain and check, before the run: a packet with the addresses, priority and tags of real
 * traffic is led through the tree, asking each discipline for the class it would choose, and each
 * step says its rate, delay and loss in the long run. Steps and ways are made once and kept, since
 * some say what costs a numerical integration. What queues do by themselves (AQM, waiting) is not
 * in it; rates of classes are ceilings, shares among classes are not worked out.
 */
#include "emu/net/way.h"

#include <stdlib.h>

struct net_port_ways {
    struct net_way  *way;
    struct net_step *step;
    bool   channel_known;
    double channel_delay_s, channel_loss;
};

static struct net_port_ways *ways_of(struct net *n, uint32_t id)
{
    if (!n->ways)
        n->ways = calloc(n->ports + 1, sizeof *n->ways);
    return n->ways ? &n->ways[id] : NULL;
}

static uint32_t frame_bytes(const struct net *n, uint32_t id)
{
    return n->graph->link[id / 2].mtu_bytes + GW_ETH_BYTES;
}

/* Rates of disciplines count what `stab` makes of a frame; here they count the frame. */
static void in_frames(struct gw_outline *o, uint32_t len_bytes, uint32_t counted_bytes)
{
    if (len_bytes == counted_bytes)
        return;
    o->rate_bps = gw_mul_div(o->rate_bps, len_bytes, counted_bytes);
    o->flow_rate_bps = gw_mul_div(o->flow_rate_bps, len_bytes, counted_bytes);
}

/* What may be held at most is a rate, too. */
static void hold(struct gw_outline *o, uint32_t len_bytes)
{
    double bps = o->pkts_per_s * len_bytes * 8;

    if (bps >= 1 && bps < 1e18 && (!o->rate_bps || bps < (double)o->rate_bps))
        o->rate_bps = (uint64_t)bps;
}

static struct net_step *step_of(struct net *n, uint32_t id, const struct gw_qdisc *q,
                                uint32_t classid)
{
    struct net_step **at = &n->ways[id].step;
    uint32_t len = frame_bytes(n, id), counted = gw_tree_length(n->port[id].tree, len);
    uint64_t pkts, bytes;

    while (*at && ((*at)->q != q || (*at)->classid != classid))
        at = &(*at)->next;
    if (*at)
        return *at;
    *at = calloc(1, sizeof **at);
    if (!*at)
        return NULL;
    (*at)->q = q;
    (*at)->classid = classid;
    if (q->ops->outline)
        q->ops->outline(q, classid, counted, &(*at)->o);
    in_frames(&(*at)->o, len, counted);
    if (q->ops->fifo_limits && q->ops->fifo_limits(q, &pkts, &bytes) && (!pkts || bytes < counted))
        (*at)->o.loss = 1;
    hold(&(*at)->o, len);
    return *at;
}

/* The class that the packet goes to; the only one where there is no choice. */
static uint32_t class_of(struct gw_qdisc *q, const struct gw_pkt *p)
{
    struct gw_qclass *first;

    if (q->ops->class_of)
        return q->ops->class_of(q, p);
    first = q->ops->class_walk ? q->ops->class_walk(q, NULL) : NULL;
    return first && !q->ops->class_walk(q, first) ? first->id : 0;
}

static bool walk(struct net *n, uint32_t id, const struct gw_pkt *p, struct net_way *w)
{
    struct gw_qdisc *q = n->port[id].tree->root;

    while (q && w->steps < NET_WAY_STEPS) {
        uint32_t classid = class_of(q, p);
        struct net_step *s = step_of(n, id, q, classid);
        struct gw_qclass *c = classid && q->ops->class_find ? q->ops->class_find(q, classid) : NULL;

        if (!s)
            return false;
        w->step[w->steps++] = s;
        q = c ? c->child : NULL;
    }
    return true;
}

/* The channel at the device's busiest: full frames one behind the other at @rate_bps. */
static void channel(struct net *n, uint32_t id, uint64_t rate_bps)
{
    const struct net_port *o = &n->port[id];
    struct net_port_ways *v = &n->ways[id];
    uint64_t bytes = frame_bytes(n, id) + o->framing_bytes;
    uint64_t gap = rate_bps ? gw_mul_div(bytes, 8 * GW_PS_PER_S, rate_bps) : GW_NEVER;

    if (v->channel_known || !o->channel)
        return;
    v->channel_known = true;
    if (o->channel->ops->mean_loss)
        v->channel_loss = o->channel->ops->mean_loss(o->channel, frame_bytes(n, id));
    if (o->channel->ops->mean_delay)
        v->channel_delay_s = o->channel->ops->mean_delay(o->channel, gap);
}

static void add_up(struct net *n, uint32_t id, struct net_way *w)
{
    double pass = 1;

    w->rate_bps = n->port[id].rate_bps;
    for (uint32_t i = 0; i < w->steps; i++) {
        const struct gw_outline *o = &w->step[i]->o;

        if (o->rate_bps && (!w->rate_bps || o->rate_bps < w->rate_bps))
            w->rate_bps = o->rate_bps;
        if (o->flow_rate_bps && (!w->flow_rate_bps || o->flow_rate_bps < w->flow_rate_bps))
            w->flow_rate_bps = o->flow_rate_bps;
        w->delay_s += o->delay_s;
        pass *= 1 - o->loss;
    }
    channel(n, id, w->rate_bps);
    w->delay_s += n->ways[id].channel_delay_s;
    w->loss = 1 - pass * (1 - n->ways[id].channel_loss);
}

struct net_way *net_way(struct net *n, uint32_t id, const struct gw_pkt *p)
{
    struct net_port_ways *v = ways_of(n, id);
    struct net_way w = { 0 }, **at;

    if (!v || !walk(n, id, p, &w))
        return NULL;
    for (at = &v->way; *at; at = &(*at)->next)
        if ((*at)->steps == w.steps &&
            !memcmp((*at)->step, w.step, w.steps * sizeof *w.step))
            return *at;
    *at = malloc(sizeof **at);
    if (!*at)
        return NULL;
    add_up(n, id, &w);
    **at = w;
    return *at;
}

struct net_way *net_ways(const struct net *n, uint32_t id)
{
    return n->ways ? n->ways[id].way : NULL;
}

struct net_step *net_steps(const struct net *n, uint32_t id)
{
    return n->ways ? n->ways[id].step : NULL;
}

struct net_dry_path net_dry_path(struct net *n, const uint32_t *link, uint32_t count,
                                 const struct gw_pkt *p, uint32_t flows)
{
    struct net_dry_path d = { .pass = 1 };

    for (uint32_t i = 0; i < count; i++) {
        const struct net_port *o = &n->port[link[i]];
        const struct net_way *w = o->tree->root || o->channel ? net_way(n, link[i], p) : NULL;
        uint64_t rate = w ? w->rate_bps : o->rate_bps;

        d.delay_s += (double)o->delay_ps * 1e-12 + (w ? w->delay_s : 0);
        d.pass *= w ? 1 - w->loss : 1;
        if (w && w->flow_rate_bps && (!rate || w->flow_rate_bps * flows < rate))
            rate = w->flow_rate_bps * flows;
        if (rate && (!d.rate_bps || rate < d.rate_bps))
            d.rate_bps = rate;
    }
    return d;
}

void net_ways_free(struct net *n)
{
    for (uint32_t i = 0; n->ways && i < n->ports; i++) {
        while (n->ways[i].way) {
            struct net_way *w = n->ways[i].way;

            n->ways[i].way = w->next;
            free(w);
        }
        while (n->ways[i].step) {
            struct net_step *s = n->ways[i].step;

            n->ways[i].step = s->next;
            free(s);
        }
    }
    free(n->ways);
    n->ways = NULL;
}
