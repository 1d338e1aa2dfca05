/*
 * pfc - priority flow control (IEEE 802.1Qbb): pause frames, headroom, and a watchdog
 *
 * One priority is lossless. A switch counts what it holds of it by the link that it came in by; at
 * xoff it sends a pause frame back, at xon one that ends the pause. Pause frames are packets: they
 * wait for the frame that is on the wire, take their time, can be captured and lost. They hold for
 * 65535 quanta of 512 bit times and are repeated at half of that while the reason lasts, so a lost
 * one costs that time and never a hang. The peer obeys after `response`.
 *
 * Headroom is what may still come after xoff was crossed: the frame that crossed it, what the link
 * carries while the pause frame waits for a full frame of the reverse direction, is sent, flies,
 * and is obeyed, while the last frames fly back; and the frame that the peer had begun.
 *
 * A port that can be paused, or that sends pause frames, has its discipline (qdisc, tc) for the
 * lossless priority; all others share a tail-drop FIFO of the default size. The two take turns by
 * packets; pause frames go before both. The lossless lane has no limit of its own: the ingress
 * counters are the limit.
 *
 * The watchdog looks at ports that have been paused without a break for its interval while packets
 * waited: a pause storm, counted. If such ports wait for each other in a circle, that is a deadlock
 * (a cyclic buffer dependency) and the run ends with the links' names.
 * Left out: several lossless priorities, thresholds that follow the free memory, dropping by the
 * watchdog.
 */
#include <stdlib.h>

#include "emu/net/net.h"
#include "emu/net/prog.h"

#define PAUSE_BYTES 60u                   /* Ethernet frame without FCS                          */
#define PAUSE_QUANTA 65535u
#define QUANTUM_BITS 512u
#define XOFF_TIME_PS (40 * GW_PS_PER_US)
#define XOFF_MIN_BYTES 64000u

static uint32_t frame_bytes(const struct net *n, uint32_t link)
{
    return n->graph->link[link / 2].mtu_bytes + GW_ETH_BYTES;
}

static uint64_t pause_ps(const struct net_port *o, uint64_t quanta)
{
    return gw_mul_div(quanta * QUANTUM_BITS, GW_PS_PER_S, o->rate_bps);
}

uint64_t net_pfc_headroom(const struct net *n, uint32_t link)
{
    const struct net_port *o = &n->port[link], *back = &n->port[link ^ 1];
    uint64_t frame = frame_bytes(n, link), bits = (frame_bytes(n, link ^ 1) + back->framing_bytes +
                                                  PAUSE_BYTES + back->framing_bytes) * 8u;
    uint64_t ps = gw_mul_div(bits, GW_PS_PER_S, back->rate_bps) + 1 + back->delay_ps +
                  n->pfc_conf.response_ps + o->delay_ps;

    return frame + gw_mul_div(ps, o->rate_bps, 8 * GW_PS_PER_S) + 1 + frame + o->framing_bytes;
}

/* ---- setting up --------------------------------------------------------------------------- */

static enum gw_status link_limits(struct net *n, uint32_t link, const char *where,
                                  struct gw_error *err)
{
    const struct net_pfc_conf *c = &n->pfc_conf;
    const struct net_port *o = &n->port[link];
    struct net_pfc *f = &n->pfc[link];
    uint64_t need, frame = frame_bytes(n, link);
    char dev[256], rate[48], delay[48], response[48];

    gw_graph_dev_name(n->graph, link, dev, sizeof dev);
    if (!o->rate_bps || !n->port[link ^ 1].rate_bps)
        return gw_fail(err, GW_PARAM, "%s: pfc: %s has no rate; links that are paused need one",
                       where, dev);
    need = net_pfc_headroom(n, link);
    if (c->headroom_bytes && c->headroom_bytes < need)
        return gw_fail(err, GW_PARAM, "%s: pfc: headroom %llu is too short for %s: %s, a delay of "
                       "%s, frames of %llu bytes and a response of %s need at least %llu", where,
                       (unsigned long long)c->headroom_bytes, dev,
                       gw_format_rate(o->rate_bps, rate, sizeof rate),
                       gw_format_time(o->delay_ps, delay, sizeof delay),
                       (unsigned long long)frame,
                       gw_format_time(c->response_ps, response, sizeof response),
                       (unsigned long long)need);
    f->xoff_bytes = c->xoff_bytes;
    if (!f->xoff_bytes)
        f->xoff_bytes = gw_mul_div(o->rate_bps, XOFF_TIME_PS, 8 * GW_PS_PER_S);
    if (!c->xoff_bytes && f->xoff_bytes < XOFF_MIN_BYTES)
        f->xoff_bytes = XOFF_MIN_BYTES;
    f->xon_bytes = c->xon_bytes;
    if (!f->xon_bytes)
        f->xon_bytes = f->xoff_bytes > 2 * frame ? f->xoff_bytes - 2 * frame : 0;
    if (f->xon_bytes >= f->xoff_bytes)
        return gw_fail(err, GW_PARAM, "%s: pfc: xon %llu is not below xoff %llu", where,
                       (unsigned long long)f->xon_bytes, (unsigned long long)f->xoff_bytes);
    f->limit_bytes = f->xoff_bytes + (c->headroom_bytes ? c->headroom_bytes : need);
    return GW_OK;
}

static void refresh(void *owner, uint64_t now_ps);

/* The links into @node are watched, those out of it can carry pause frames. */
static enum gw_status switch_on(struct net *n, uint32_t node, const char *where,
                                struct gw_error *err)
{
    uint64_t all = 0;

    for (uint32_t i = 0; i < n->ports; i++) {
        struct net_pfc *f = &n->pfc[i];

        if (n->port[i].to != node)
            continue;
        if (link_limits(n, i, where, err) != GW_OK)
            return err->code;
        f->watched = true;
        f->refresh = (struct gw_timer){ .fire = refresh, .owner = &n->port[i], .comp = node };
        n->port[i].pfc = f;
        n->port[i ^ 1].pfc = &n->pfc[i ^ 1];
        all += f->limit_bytes;
    }
    for (uint32_t i = 0; i < n->ports; i++)
        if (n->port[i].from == node) {
            n->port[i].tree->conf.auto_limit_bytes = all;
            if (n->port[i].buffer && n->port[i].buffer->size_bytes < all)
                return gw_fail(err, GW_PARAM, "%s: pfc: the memory of %s, %llu bytes, is less than "
                               "xoff and headroom of its links, %llu", where,
                               n->graph->node[node].name,
                               (unsigned long long)n->port[i].buffer->size_bytes,
                               (unsigned long long)all);
        }
    return GW_OK;
}

enum gw_status net_set_pfc(struct net *n, const struct net_pfc_conf *c, const bool *node,
                           const char *where, struct gw_error *err)
{
    n->pfc = calloc(n->ports + 1, sizeof *n->pfc);
    if (!n->pfc)
        return gw_fail(err, GW_NOMEM, "out of memory for flow control");
    n->pfc_conf = *c;
    for (uint32_t i = 0; i < n->ports; i++) {
        n->pfc[i].other_limit_bytes = n->port[i].is_nic ? UINT64_MAX
                                      : net_auto_limit(n->port[i].rate_bps, n->port[i].delay_ps);
        n->pfc[i].since_ps = GW_NEVER;
    }
    for (uint32_t v = 0; v < n->nodes; v++)
        if (node[v] && switch_on(n, v, where, err) != GW_OK)
            return err->code;
    return GW_OK;
}

/* ---- pause frames ------------------------------------------------------------------------- */

/* Tells the sender of watched link @o; a frame that still waits is corrected instead. */
static void tell(struct net *n, struct net_port *o, uint64_t quanta, uint64_t now_ps)
{
    struct net_port *back = &n->port[o->id ^ 1];
    struct gw_pkt *p = back->pfc->control.head;

    o->pfc->told = quanta != 0;
    if (quanta)
        gw_engine_timer_set(n->engine, &o->pfc->refresh, now_ps + pause_ps(o, quanta) / 2);
    else
        gw_engine_timer_stop(n->engine, &o->pfc->refresh);
    if (p) {
        p->tp[0] = quanta;
        return;
    }
    p = net_pkt_alloc(n);
    if (!p)
        return;
    p->flags = GW_PKT_PAUSE;
    p->len_bytes = p->sched_bytes = PAUSE_BYTES;
    p->src = o->to;
    p->dst = o->from;
    p->stamp_ps = now_ps;
    p->tp[0] = quanta;
    p->tp[1] = n->pfc_conf.priority;
    gw_pktq_push(&back->pfc->control, p);
    net_pfc_wake(back, now_ps);
}

/* Half of the pause is over and the reason is still there. */
static void refresh(void *owner, uint64_t now_ps)
{
    struct net_port *o = owner;

    if (o->pfc->told)
        tell(o->net, o, PAUSE_QUANTA, now_ps);
}

/* A pause frame has arrived by link @in: the port of the other direction obeys. */
void net_pfc_receive(struct net *n, uint32_t in, struct gw_pkt *p, uint64_t now_ps)
{
    struct net_port *o = &n->port[in ^ 1];
    struct net_pfc *f = o->pfc;
    uint64_t quanta = p->tp[0];
    bool corrupt = p->flags & GW_PKT_CORRUPT;

    if (corrupt) {
        net_drop(n, &n->port[in], p, GW_DROP_CORRUPT);
        return;
    }
    n->pkts_delivered++;
    net_pkt_free(n, p);
    if (!f)
        return;
    f->frames_in++;
    if (quanta && f->until_ps <= now_ps)
        f->since_ps = now_ps;
    if (!quanta && f->until_ps > now_ps)
        f->paused_ps += now_ps - f->since_ps;
    f->until_ps = quanta ? now_ps + pause_ps(o, quanta) : now_ps;
    net_pfc_wake(o, now_ps);
}

/* ---- what a switch holds ------------------------------------------------------------------ */

static struct net_port *watched(struct net_port *o, const struct gw_pkt *p)
{
    struct net *n = o->net;
    struct net_port *in = p->in_port < n->ports ? &n->port[p->in_port] : NULL;

    if (!in || in->to != o->from || !in->pfc || !in->pfc->watched ||
        p->priority != n->pfc_conf.priority)
        return NULL;
    return in;
}

/* @p has left the lossless lane of @o. */
void net_pfc_release(struct net_port *o, const struct gw_pkt *p, uint64_t now_ps)
{
    struct net_port *in = watched(o, p);
    uint32_t len = p->flags & GW_PKT_TRIMMED ? p->orig_len_bytes : p->len_bytes;

    if (!in)
        return;
    in->pfc->held_bytes -= in->pfc->held_bytes < len ? in->pfc->held_bytes : len;
    if (in->pfc->told && in->pfc->held_bytes <= in->pfc->xon_bytes)
        tell(o->net, in, 0, now_ps);
}

static void hold(struct net *n, struct net_port *in, uint32_t len, uint64_t now_ps)
{
    struct net_pfc *f = in->pfc;

    f->held_bytes += len;
    if (f->held_bytes > f->held_max_bytes)
        f->held_max_bytes = f->held_bytes;
    if (!f->told && f->held_bytes >= f->xoff_bytes) {
        f->pauses++;
        tell(n, in, PAUSE_QUANTA, now_ps);
    }
}

static void send_lossless(struct net *n, struct net_port *o, struct gw_pkt *p, uint64_t now_ps)
{
    struct net_port *in = watched(o, p);
    struct gw_qdisc *root = o->tree->root;

    if (!root) {
        net_drop(n, o, p, GW_DROP_LINK_DOWN);
        return;
    }
    if ((in && in->pfc->held_bytes + p->len_bytes > in->pfc->limit_bytes) ||
        (o->buffer && o->buffer->used_bytes + p->len_bytes > o->buffer->size_bytes)) {
        net_drop(n, o, p, GW_DROP_SHARED_BUFFER);
        return;
    }
    if (in)
        hold(n, in, p->len_bytes, now_ps);
    if (gw_tree_enqueue(o->tree, p, now_ps) == GW_Q_DROPPED) {
        net_pfc_release(o, p, now_ps);
        net_refuse(n, o, p, root->drop_reason, now_ps);
    } else {
        net_port_note_queue(o, root->backlog_bytes, root->backlog_pkts);
    }
    net_buffer_sync(o);
}

void net_pfc_send(struct net_port *o, struct gw_pkt *p, uint64_t now_ps)
{
    struct net *n = o->net;
    struct net_pfc *f = o->pfc;

    if (p->priority == n->pfc_conf.priority) {
        send_lossless(n, o, p, now_ps);
    } else if (f->other.bytes + p->len_bytes > f->other_limit_bytes) {
        net_drop(n, o, p, GW_DROP_QUEUE_FULL);
        return;
    } else {
        p->stamp_ps = now_ps;
        p->sched_bytes = p->len_bytes;
        gw_pktq_push(&f->other, p);
    }
    net_pfc_wake(o, now_ps);
}

/* ---- out to the wire ---------------------------------------------------------------------- */

static bool paused(const struct net_port *o, uint64_t now_ps)
{
    return o->pfc->until_ps > now_ps;
}

static struct gw_pkt *lane(struct net_port *o, bool other, uint64_t now_ps)
{
    struct gw_pkt *p;

    if (other)
        return gw_pktq_pop(&o->pfc->other);
    if (paused(o, now_ps) || !o->tree->root || !o->tree->root->backlog_pkts)
        return NULL;
    p = gw_tree_dequeue(o->tree, now_ps);
    if (p)
        net_pfc_release(o, p, now_ps);
    return p;
}

static struct gw_pkt *next_packet(struct net_port *o, uint64_t now_ps)
{
    struct net_pfc *f = o->pfc;
    struct gw_pkt *p = gw_pktq_pop(&f->control);

    if (p) {
        f->frames_out++;
        return p;
    }
    p = lane(o, f->other_turn, now_ps);
    if (!p)
        p = lane(o, !f->other_turn, now_ps);
    else
        f->other_turn = !f->other_turn;
    return p;
}

/* When to look again: the end of the frame on the wire, of a pause, or what the tree says. */
static void arm(struct net *n, struct net_port *o, uint64_t now_ps)
{
    const struct gw_qdisc *root = o->tree->root;
    uint64_t at = GW_NEVER;

    if (!o->pfc->control.count && !o->pfc->other.count && !(root && root->backlog_pkts))
        return;
    if (o->busy)
        at = o->free_ps;
    else if (paused(o, now_ps))
        at = o->pfc->until_ps;
    else if (root)
        at = gw_tree_next_ps(o->tree, now_ps);
    if (at != GW_NEVER)
        gw_engine_timer_set(n->engine, &o->timer, at);
}

void net_pfc_wake(struct net_port *o, uint64_t now_ps)
{
    struct net *n = o->net;
    struct gw_pkt *p;

    if (o->pfc->pulling)
        return;                                     /* the outer call goes on                  */
    o->pfc->pulling = true;
    if (o->busy && now_ps >= o->free_ps)
        o->busy = false;
    while (!o->busy && (p = next_packet(o, now_ps)))
        net_port_transmit(o, p, gw_pkt_is_pause(p) ? n->pfc_conf.response_ps : 0, now_ps);
    net_buffer_sync(o);
    o->pfc->pulling = false;
    arm(n, o, now_ps);
    if (o->is_nic && o->room_head)
        net_port_room(o, now_ps);
}

/* ---- the watchdog ------------------------------------------------------------------------- */

static bool stuck(const struct net_port *o)
{
    return o->pfc && o->pfc->stuck;
}

/* Follows the ports that wait for each other from @id; true: they close a circle, told in @text.
 * @first: the port that closes it, GW_NONE once all of the circle is told. */
static bool circle(const struct net *n, uint32_t id, uint8_t *seen, uint32_t *first, char *text,
                   size_t size)
{
    char dev[256];

    seen[id] = 1;
    for (uint32_t q = 0; q < n->ports; q++) {
        size_t used;

        if (n->port[q].from != n->port[id].to || !stuck(&n->port[q]) || seen[q] == 2)
            continue;
        if (seen[q] == 1)
            *first = q;
        else if (!circle(n, q, seen, first, text, size))
            continue;
        used = strlen(text);
        if (*first != GW_NONE)
            snprintf(text + used, size - used, "%s%s", used ? ", " : "",
                     gw_graph_dev_name(n->graph, id, dev, sizeof dev));
        if (*first == id)
            *first = GW_NONE;
        return true;
    }
    seen[id] = 2;
    return false;
}

static void look_for_deadlock(struct net *n)
{
    uint8_t *seen = calloc(n->ports + 1, 1);
    char text[512] = "", line[900];
    uint32_t first = GW_NONE;

    for (uint32_t i = 0; seen && i < n->ports; i++)
        if (stuck(&n->port[i]) && !seen[i] && circle(n, i, seen, &first, text, sizeof text)) {
            snprintf(line, sizeof line, "deadlock: these ports have been paused for %g s, each by "
                     "the next: %s; routes without a cycle of buffers, or no pfc, would go on",
                     (double)n->pfc_conf.watchdog_ps * 1e-12, text);
            n->pfc_deadlock = true;
            net_fail(n, GW_STALL, line);
            break;
        }
    free(seen);
}

static void watch(void *owner, uint64_t now_ps)
{
    struct net *n = owner;
    bool any = false;

    for (uint32_t i = 0; i < n->ports; i++) {
        struct net_port *o = &n->port[i];
        struct net_pfc *f = o->pfc;
        bool now;

        if (!f)
            continue;
        now = paused(o, now_ps) && o->tree->root && o->tree->root->backlog_pkts &&
              now_ps - f->since_ps >= n->pfc_conf.watchdog_ps;
        if (now && !f->stuck) {
            f->storms++;
            n->pfc_storms++;
        }
        f->stuck = now;
        any |= now;
    }
    if (any)
        look_for_deadlock(n);
    if (!n->failed && (!rt_idle(n->rt) || n->live_pkts))
        gw_engine_timer_set(n->engine, &n->pfc_watch, now_ps + n->pfc_conf.watchdog_ps);
}

void net_pfc_start(struct net *n)
{
    if (!n->pfc || !n->pfc_conf.watchdog_ps)
        return;
    n->pfc_watch = (struct gw_timer){ .fire = watch, .owner = n,
                                      .comp = n->nodes + n->ports + n->fluid_count };
    gw_engine_timer_set(n->engine, &n->pfc_watch, n->pfc_conf.watchdog_ps);
}
