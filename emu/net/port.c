/*
 * port - one direction of a link: queue, serialisation, propagation, channel; and forwarding
 *
 * The packet path. By arithmetic: start = max(now, free), free = start + transmission time,
 * arrival = free + delay, one event. Packets that have not begun are kept in a small ring (start,
 * length), so that limits and queue lengths are exactly those of a queued FIFO: the packet that is
 * being serialised does not count. Queued: the discipline holds the packets, the port's timer ends
 * each serialisation. Long links (delay beyond the wheel) and, by arithmetic, ports with a queue that
 * reaches beyond it keep their packets in a FIFO with one pending event.
 *
 * Queued in hindsight: the end of a serialisation is no event. What the discipline gave to the packets
 * that wait is asked when it can first matter, with the times at which it would have been asked: before
 * a packet is queued, before somebody reads the books, and when one that left arrives. As long as
 * packets wait, one that left is on its way, since links with no delay are not run so. Events of that
 * very instant see what they would have seen: the order of equal times is the engine's.
 *
 * Left out here: pauses, circuits and rate changes while running (the discipline contract and the
 * modes are prepared for them).
 */
#include <stdlib.h>

#include "emu/net/net.h"

/* ---- packet log --------------------------------------------------------------------------- */

/*
 * Between the two ends of a logged link a packet has the place of its row: port + 1 in the upper bits,
 * the row's number in the lower ones, 0 elsewhere. A test frame carries it in tp[2], where others have
 * their transport's header; theirs stands in a hash table by the packet's address, linear probing.
 */
#define LOG_PORT_SHIFT 40

static uint32_t log_slot(const struct net_log_map *m, const struct gw_pkt *p)
{
    uint32_t i = (uint32_t)gw_mix64((uintptr_t)p) & (m->cap - 1);

    while (m->at[i].pkt && m->at[i].pkt != p)
        i = (i + 1) & (m->cap - 1);
    return i;
}

static bool log_map_grow(struct net_log_map *m)
{
    struct net_log_map old = *m;

    if (m->cap && m->used < m->cap / 2)
        return true;
    m->cap = old.cap ? 2 * old.cap : 1024;
    m->at = calloc(m->cap, sizeof *m->at);
    if (!m->at) {
        *m = old;
        return false;
    }
    for (uint32_t i = 0; i < old.cap; i++)
        if (old.at[i].pkt)
            m->at[log_slot(m, old.at[i].pkt)] = old.at[i];
    free(old.at);
    return true;
}

static bool log_map_set(struct net_log_map *m, const struct gw_pkt *p, uint64_t place)
{
    uint32_t i;

    if (!log_map_grow(m))
        return false;
    i = log_slot(m, p);
    m->used += !m->at[i].pkt;
    m->at[i] = (struct net_log_place){ p, place };
    return true;
}

/* Takes @p out; those behind it move up, so that each stays reachable from its own slot. */
static void log_map_clear(struct net_log_map *m, const struct gw_pkt *p)
{
    uint32_t mask = m->cap - 1, hole = m->cap ? log_slot(m, p) : 0;

    if (!m->cap || !m->at[hole].pkt)
        return;
    m->used--;
    for (uint32_t i = (hole + 1) & mask; m->at[i].pkt; i = (i + 1) & mask) {
        uint32_t home = (uint32_t)gw_mix64((uintptr_t)m->at[i].pkt) & mask;

        if (((i - home) & mask) < ((i - hole) & mask))
            continue;
        m->at[hole] = m->at[i];
        hole = i;
    }
    m->at[hole] = (struct net_log_place){ 0 };
}

/* 0: @p is not between the ends of a logged link. */
static uint64_t log_place(const struct net *n, const struct gw_pkt *p)
{
    if (gw_pkt_is_pause(p))
        return 0;
    if (p->flags & GW_PKT_FRAME)
        return p->tp[2];
    return n->log_map.used ? n->log_map.at[log_slot(&n->log_map, p)].place : 0;
}

static bool log_set_place(struct net *n, struct gw_pkt *p, uint64_t place)
{
    if (!(p->flags & GW_PKT_FRAME))
        return log_map_set(&n->log_map, p, place);
    p->tp[2] = place;
    return true;
}

static void log_forget(struct net *n, struct gw_pkt *p)
{
    if (p->flags & GW_PKT_FRAME)
        p->tp[2] = 0;
    else
        log_map_clear(&n->log_map, p);
}

static struct net_log_row *log_row(struct net *n, const struct gw_pkt *p)
{
    uint64_t place = log_place(n, p);

    if (!place)
        return NULL;
    return &n->port[(place >> LOG_PORT_SHIFT) - 1].log->
               row[place & ((UINT64_C(1) << LOG_PORT_SHIFT) - 1)];
}

/* Whose packet it is, and which one. */
static void log_identity(struct net *n, const struct gw_pkt *p, struct net_log_row *r)
{
    const struct net_conn *c;
    struct gw_pkt_facts f;

    if (p->flags & GW_PKT_FRAME) {
        r->job = (uint32_t)(p->tp[1] >> 32);
        r->flow = (uint32_t)p->tp[1];
        r->seq = p->tp[0];
        return;
    }
    c = net_conn_shown(n, p);
    r->job = c ? c->job : GW_NONE;
    r->flow = p->flow;
    net_pkt_facts(c, p, &f);
    r->seq = f.number != UINT64_MAX ? f.number : f.offset;
    r->what = f.what ? f.what : NET_LOG_OTHER;
}

static bool log_room(struct net_log *l)
{
    uint64_t cap = l->cap ? l->cap * 2 : 1024;
    struct net_log_row *r;

    if (l->count < l->cap)
        return true;
    r = realloc(l->row, cap * sizeof *r);
    if (!r)
        return false;
    l->row = r;
    l->cap = cap;
    return true;
}

static void log_add(struct net *n, struct net_port *o, struct gw_pkt *p, uint64_t sent_ps)
{
    struct net_log *l = o->log;
    struct net_log_row *r;

    if (gw_pkt_is_pause(p))
        return;
    log_forget(n, p);
    if (!log_room(l) ||
        !log_set_place(n, p, (uint64_t)(o->id + 1) << LOG_PORT_SHIFT | l->count)) {
        net_fail(n, GW_NOMEM, "out of memory in the packet log; log fewer packets");
        return;
    }
    r = &l->row[l->count++];
    *r = (struct net_log_row){ .sent_ps = sent_ps, .received_ps = GW_NEVER, .lost = GW_DROP_COUNT,
                               .size_bytes = p->len_bytes };
    log_identity(n, p, r);
}

void net_log_copy(struct net *n, const struct gw_pkt *p, struct gw_pkt *copy)
{
    uint64_t place = log_place(n, p);
    const struct net_log_row *r = log_row(n, p);

    if (r)
        log_add(n, &n->port[(place >> LOG_PORT_SHIFT) - 1], copy, r->sent_ps);
}

static void log_lost(struct net *n, struct gw_pkt *p, enum gw_drop_reason why)
{
    struct net_log_row *r = log_row(n, p);

    if (!r)
        return;
    r->lost = (uint8_t)why;
    log_forget(n, p);
}

static void log_receive(struct net *n, struct gw_pkt *p, uint64_t now_ps)
{
    struct net_log_row *r = log_row(n, p);

    if (!r)
        return;
    r->received_ps = now_ps;
    r->ce = p->ecn == GW_ECN_CE;
    r->flips = (uint8_t)(net_flips(n, p) ? net_flips(n, p)->count : 0);
    log_forget(n, p);
}

/* ---- books -------------------------------------------------------------------------------- */

void net_drop(struct net *n, struct net_port *o, struct gw_pkt *p, enum gw_drop_reason why)
{
    if (why == GW_DROP_RETURNED)                    /* where nothing can go back from           */
        why = GW_DROP_QUEUE_FULL;
    if (o)
        o->drops[why]++;
    n->drops[why]++;
    n->pkts_dropped++;
    if (GW_UNLIKELY(n->logs))
        log_lost(n, p, why);
    if (!(p->flags & GW_PKT_FRAME) && n->conn[p->flow])
        n->conn[p->flow]->dropped_pkts++;
    net_pkt_free(n, p);
}

void net_refuse(struct net *n, struct net_port *o, struct gw_pkt *p, enum gw_drop_reason why,
                uint64_t now_ps)
{
    uint32_t out, node = p->src;

    if (GW_LIKELY(why != GW_DROP_RETURNED) || o->from == node || p->flags & GW_PKT_REVERSE) {
        net_drop(n, o, p, why);
        return;
    }
    o->returned_pkts++;
    if (GW_UNLIKELY(n->logs))
        log_lost(n, p, why);
    p->src = p->dst;
    p->dst = node;
    p->flags |= GW_PKT_REVERSE;
    out = net_next(n, o->from, node, p->hash);
    if (GW_UNLIKELY(out == GW_NONE))
        net_drop(n, NULL, p, GW_DROP_NO_ROUTE);
    else
        net_port_send(n, &n->port[out], p, now_ps);
}

static void note_wait(struct net_port *o, uint64_t wait)
{
    o->wait_sum_ps += wait;
    if (wait > o->wait_max_ps)
        o->wait_max_ps = wait;
}

static void note_queue(struct net_port *o, uint64_t bytes, uint64_t pkts)
{
    if (bytes > o->queue_max_bytes)
        o->queue_max_bytes = bytes;
    if (pkts > o->queue_max_pkts)
        o->queue_max_pkts = pkts;
}

/* The time that a packet takes on the wire. */
static inline uint64_t transmission(const struct net_port *o, uint32_t len_bytes, uint64_t *carry)
{
    uint32_t wire = len_bytes + o->framing_bytes;

    if (GW_LIKELY(o->ps_per_byte))
        return wire * o->ps_per_byte;
    return o->rate_bps ? gw_tx_ps(wire, o->rate_bps, carry) : 0;
}

static inline uint64_t serialise(struct net_port *o, const struct gw_pkt *p, uint32_t wire_bytes)
{
    o->sent_pkts++;
    o->sent_bytes += p->len_bytes;
    return transmission(o, wire_bytes, &o->carry);
}

/* A device cuts a super-packet: each of its frames has a preamble and a gap. Only for ports that are
 * queued, as all are that have framing where super-packets may come. */
static inline uint32_t wire_bytes(struct net_port *o, const struct gw_pkt *p)
{
    uint32_t more;

    if (GW_LIKELY(p->seg_count < 2))
        return p->len_bytes;
    more = (p->seg_count - 1u) * o->framing_bytes;
    o->cut_bytes += more;
    return p->len_bytes + more;
}

/* ---- out to the wire ---------------------------------------------------------------------- */

static inline void fly(struct net *n, struct net_port *o, struct gw_pkt *p, uint64_t arrive_ps,
                       bool in_order)
{
    p->stamp_ps = arrive_ps;
    p->in_port = o->id;
    if (GW_UNLIKELY(o->flags & (PORT_LONG | PORT_FAR | PORT_BEHIND)) && in_order) {
        struct net_arrivals *a = &n->arrivals[o->id];

        p->next = NULL;
        if (a->tail) {
            a->tail->next = p;
            a->tail = p;
            return;
        }
        a->head = a->tail = p;
    }
    gw_engine_post(n->engine, arrive_ps, o->to, n->nodes + o->id, o->count++, p);
}

/* The next packet of the FIFO becomes the pending event; the one behind it is fetched meanwhile. */
static inline void fly_next(struct net *n, struct net_port *o, uint32_t in, struct gw_pkt *arrived)
{
    struct net_arrivals *a = &n->arrivals[in];
    struct gw_pkt *p = arrived->next;

    if (a->head != arrived)
        return;                                     /* it was sent out of order, or before     */
    a->head = p;
    if (!p) {
        a->tail = NULL;
        o->flags &= (uint8_t)~(PORT_FAR | PORT_BEHIND);
        n->port_flags[in] &= (uint8_t)~(PORT_FAR | PORT_BEHIND);
        return;
    }
    __builtin_prefetch(p->next);
    __builtin_prefetch((char *)p->next + offsetof(struct gw_pkt, tp) - 1);
    gw_engine_post(n->engine, p->stamp_ps, o->to, n->nodes + in, o->count++, p);
}

static void through_channel(struct net *n, struct net_port *o, struct gw_pkt *p, uint64_t sent_ps)
{
    struct gw_channel *c = o->channel;
    uint64_t extra = 0, arrive;
    uint32_t fate = c->ops->transit(c, p, sent_ps, &extra);

    c->seen_pkts++;
    if (fate & GW_FATE_DUPLICATE) {
        struct gw_pkt *d = n->host->pkt_copy(n, p);

        if (d) {
            c->duplicated_pkts++;
            o->duplicated_pkts++;
            fly(n, o, d, sent_ps + o->delay_ps + extra, !c->ops->reorders);
        }
    }
    if (fate & GW_FATE_LOSS) {
        c->lost_pkts++;
        o->lost_pkts++;
        o->lost_bytes += p->len_bytes;
        net_drop(n, o, p, GW_DROP_LOSS);
        return;
    }
    if (fate & GW_FATE_CORRUPT) {
        c->corrupt_pkts++;
        if (!(p->flags & GW_PKT_CORRUPT))
            n->host->pkt_flip(n, p, gw_rng_below(&c->rng, 8 * p->len_bytes));
    }
    arrive = sent_ps + o->delay_ps + extra;
    fly(n, o, p, arrive, !c->ops->reorders);
}

static inline void leave(struct net *n, struct net_port *o, struct gw_pkt *p, uint64_t sent_ps)
{
    if (GW_UNLIKELY(o->flags & PORT_CHANNEL))
        through_channel(n, o, p, sent_ps);
    else
        fly(n, o, p, sent_ps + o->delay_ps, true);
}

/* ---- arithmetic mode ---------------------------------------------------------------------- */

/* Those that have begun by now leave the ring. */
static void settle(struct net_port *o, uint64_t now_ps)
{
    while (o->wait_count && o->wait_ps <= now_ps) {
        uint32_t len = o->wait[o->wait_head];

        o->wait_ps += transmission(o, len, &o->wait_carry);
        o->wait_bytes -= len;
        o->wait_head = (o->wait_head + 1) & (o->wait_cap - 1);
        o->wait_count--;
    }
}

static bool wait_grow(struct net_port *o)
{
    uint32_t cap = o->wait_cap ? o->wait_cap * 2 : 16;
    uint32_t *w = malloc(cap * sizeof *w);

    if (!w)
        return false;
    for (uint32_t i = 0; i < o->wait_count; i++)
        w[i] = o->wait[(o->wait_head + i) & (o->wait_cap - 1)];
    free(o->wait);
    o->wait = w;
    o->wait_cap = cap;
    o->wait_head = 0;
    return true;
}

/* A packet that begins when all others have been sent. */
static inline bool wait_push(struct net_port *o, uint32_t len_bytes)
{
    if (GW_UNLIKELY(o->wait_count == o->wait_cap) && !wait_grow(o))
        return false;
    if (!o->wait_count) {
        o->wait_ps = o->free_ps;
        o->wait_carry = o->carry;
    }
    o->wait[(o->wait_head + o->wait_count++) & (o->wait_cap - 1)] = len_bytes;
    o->wait_bytes += len_bytes;
    return true;
}

/* The transmitter is busy: waits, or is dropped (false). */
static bool queue_up(struct net *n, struct net_port *o, struct gw_pkt *p, uint64_t now_ps)
{
    settle(o, now_ps);
    if (o->wait_count >= o->limit_pkts || o->wait_bytes + p->len_bytes > o->limit_bytes) {
        net_drop(n, o, p, GW_DROP_QUEUE_FULL);
        return false;
    }
    if (!wait_push(o, p->len_bytes)) {
        net_fail(n, GW_NOMEM, "out of memory in a queue; give it a limit");
        net_drop(n, o, p, GW_DROP_QUEUE_FULL);
        return false;
    }
    note_queue(o, o->wait_bytes, o->wait_count);
    note_wait(o, o->free_ps - now_ps);
    if (o->free_ps - now_ps > n->far_ps && !(o->flags & PORT_CHANNEL)) {
        o->flags |= PORT_FAR;
        n->port_flags[o->id] |= PORT_FAR;
    }
    return true;
}

static inline void send_arithmetic(struct net *n, struct net_port *o, struct gw_pkt *p,
                                   uint64_t now_ps)
{
    uint64_t start = now_ps, tx;

    if (GW_UNLIKELY(p->len_bytes > o->limit_bytes || !o->limit_pkts)) {
        net_drop(n, o, p, GW_DROP_QUEUE_FULL);      /* as Linux: too short even when idle      */
        return;
    }
    if (o->free_ps > now_ps) {
        if (!queue_up(n, o, p, now_ps))
            return;
        start = o->free_ps;
    } else if (o->wait_count) {
        o->wait_count = 0;
        o->wait_bytes = 0;
        o->carry = 0;
    } else if (o->free_ps < now_ps) {
        o->carry = 0;
    }
    tx = serialise(o, p, p->len_bytes);
    o->busy_ps += tx;
    o->free_ps = start + tx;
    leave(n, o, p, o->free_ps);
}

/* ---- queued mode -------------------------------------------------------------------------- */

/* What a switch writes into a packet that collects telemetry, when it leaves. */
static void append_telemetry(struct net *n, const struct net_port *o, struct gw_pkt *p,
                             uint64_t now_ps)
{
    const struct net_conn *c = n->conn[p->flow];
    char *ext = net_ext_get(n, p);
    struct gw_telemetry *t;

    if (!ext || o->is_nic || !c)                    /* the flow may be over                     */
        return;
    t = (struct gw_telemetry *)(void *)(ext + c->tp->ops->telemetry_offset);
    if (t->count < GW_TELEMETRY_HOPS)
        t->hop[t->count++] = (struct gw_telemetry_hop){
            .now_ps = now_ps, .tx_bytes = o->sent_bytes + o->sent_pkts * o->framing_bytes,
            .queue_bytes = o->tree->root ? o->tree->root->backlog_bytes : 0,
            .rate_bps = o->rate_bps };
}

/* Captures, serialises and sends off from @start_ps on; @later_ps longer on its way. */
static inline void transmit(struct net *n, struct net_port *o, struct gw_pkt *p, uint64_t later_ps,
                            uint64_t start_ps)
{
    uint64_t tx;

    note_wait(o, start_ps > p->stamp_ps ? start_ps - p->stamp_ps : 0);
    if (o->free_ps != start_ps)
        o->carry = 0;
    if (o->cap_tx) {
        const struct net_conn *c = net_conn_shown(n, p);

        gw_capture_packet(o->cap_tx, p, c ? c->tx.ops : NULL, net_ext_get(n, p),
                          c ? &c->addr : NULL, net_flips(n, p), start_ps);
    }
    tx = serialise(o, p, wire_bytes(o, p));
    if (GW_UNLIKELY(p->flags & GW_PKT_INT))
        append_telemetry(n, o, p, start_ps);
    o->busy_ps += tx;
    o->free_ps = start_ps + tx;
    o->busy |= tx != 0;
    leave(n, o, p, o->free_ps + later_ps);
}

static void pull(struct net *n, struct net_port *o, uint64_t now_ps)
{
    while (!o->busy) {
        struct gw_pkt *p = gw_tree_dequeue(o->tree, now_ps);

        if (!p) {
            uint64_t at = gw_tree_next_ps(o->tree, now_ps);

            if (at != GW_NEVER)
                gw_engine_timer_set(n->engine, &o->timer, at);
            break;
        }
        transmit(n, o, p, 0, now_ps);
    }
    if (o->busy && o->tree->root->backlog_pkts)     /* nobody waits: no event marks the end    */
        gw_engine_timer_set(n->engine, &o->timer, o->free_ps);
    net_buffer_sync(o);
    if (o->is_nic && o->room_head)
        net_port_room(o, now_ps);
}

/* The turn that came at @at_ps. False: there was nothing to send. */
static inline bool take_turn(struct net *n, struct net_port *o, uint64_t at_ps)
{
    struct gw_pkt *p = gw_tree_dequeue(o->tree, at_ps);

    if (p)
        transmit(n, o, p, 0, at_ps);
    return p != NULL;
}

/* In hindsight: all turns that came before the event that runs now. */
static void catch_up(struct net *n, struct net_port *o, uint64_t now_ps)
{
    while (o->free_ps <= now_ps && o->tree->root->backlog_pkts &&
           gw_engine_over(n->engine, o->free_ps, o->from) && take_turn(n, o, o->free_ps))
        ;
}

/* Nobody else waited, or may be about to begin: goes at once. */
static void begin_or_wait(struct net *n, struct net_port *o, bool alone, uint64_t now_ps)
{
    if (alone && o->free_ps <= now_ps)
        take_turn(n, o, now_ps);
    if (o->tree->root->backlog_pkts && !(o->flags & PORT_BEHIND)) {
        o->flags |= PORT_BEHIND;
        n->port_flags[o->id] |= PORT_BEHIND;
    }
}

static void send_in_hindsight(struct net *n, struct net_port *o, struct gw_pkt *p, uint64_t now_ps)
{
    struct gw_qdisc *root = o->tree->root;
    bool alone;

    catch_up(n, o, now_ps);
    alone = !root->backlog_pkts;
    if (gw_tree_enqueue(o->tree, p, now_ps) == GW_Q_DROPPED)
        net_refuse(n, o, p, root->drop_reason, now_ps);
    else
        note_queue(o, root->backlog_bytes, root->backlog_pkts);
    begin_or_wait(n, o, alone, now_ps);
}

/* For ports with flow control. */
void net_port_transmit(struct net_port *o, struct gw_pkt *p, uint64_t later_ps, uint64_t now_ps)
{
    transmit(o->net, o, p, later_ps, now_ps);
}

void net_port_note_queue(struct net_port *o, uint64_t bytes, uint64_t pkts)
{
    note_queue(o, bytes, pkts);
}

/* A packet may be ready: sends it, or sees to it that the end of serialisation will. */
static inline void wake(struct net *n, struct net_port *o, uint64_t now_ps)
{
    if (GW_UNLIKELY(o->pfc != NULL)) {
        net_pfc_wake(o, now_ps);
        return;
    }
    if (o->busy && !o->timer.armed) {
        if (now_ps < o->free_ps) {
            if (o->tree->root->backlog_pkts)
                gw_engine_timer_set(n->engine, &o->timer, o->free_ps);
            return;
        }
        o->busy = false;
    }
    if (!o->busy)
        pull(n, o, now_ps);
}

/* Something changed inside the tree. */
void net_port_kick(void *port, uint64_t now_ps)
{
    struct net_port *o = port;

    if (o->hindsight)                               /* its disciplines change nothing unasked  */
        return;
    net_buffer_sync(o);
    if (o->tree->root)
        wake(o->net, o, now_ps);
}

static void port_timer(void *owner, uint64_t now_ps)
{
    struct net_port *o = owner;

    if (o->mode == PORT_QUEUED) {
        if (o->tree->root)                          /* it may have been set for an earlier time */
            wake(o->net, o, now_ps);
    } else {
        net_port_room(o, now_ps);
    }
}

/* What the port holds of the shared memory is its backlog; the books follow every change. */
void net_buffer_sync(struct net_port *o)
{
    struct net_buffer *b = o->buffer;
    uint64_t held = (o->tree->root ? o->tree->root->backlog_bytes : 0) +
                    (o->pfc ? o->pfc->other.bytes : 0);

    if (!b)
        return;
    b->used_bytes += held - o->buffer_bytes;
    o->buffer_bytes = held;
    if (b->used_bytes > b->used_max_bytes)
        b->used_max_bytes = b->used_bytes;
}

/* Is there room for @len bytes more under the port's threshold of now? */
static bool buffer_admits(const struct net_port *o, uint32_t len)
{
    const struct net_buffer *b = o->buffer;
    uint64_t rest = b->size_bytes - b->used_bytes;

    return len <= rest && (double)(o->buffer_bytes + len) <= b->alpha * (double)rest;
}

static void send_queued(struct net *n, struct net_port *o, struct gw_pkt *p, uint64_t now_ps)
{
    struct gw_qdisc *root = o->tree->root;
    enum gw_verdict v;

    if (GW_UNLIKELY(o->pfc != NULL)) {
        net_pfc_send(o, p, now_ps);
        return;
    }
    if (GW_UNLIKELY(!root)) {                       /* deleted while running: noqueue          */
        net_drop(n, o, p, GW_DROP_LINK_DOWN);
        return;
    }
    if (o->buffer && !buffer_admits(o, p->len_bytes)) {
        net_drop(n, o, p, GW_DROP_SHARED_BUFFER);
        return;
    }
    v = gw_tree_enqueue(o->tree, p, now_ps);
    if (v != GW_Q_DROPPED)
        note_queue(o, root->backlog_bytes, root->backlog_pkts);
    net_buffer_sync(o);
    if (v == GW_Q_DROPPED)
        net_refuse(n, o, p, root->drop_reason, now_ps);
    wake(n, o, now_ps);
}

void net_port_send(struct net *n, struct net_port *o, struct gw_pkt *p, uint64_t now_ps)
{
    if (GW_UNLIKELY(o->flags & PORT_LOG))
        log_add(n, o, p, now_ps);
    if (GW_LIKELY(o->mode == PORT_ARITHMETIC))
        send_arithmetic(n, o, p, now_ps);
    else if (o->hindsight)
        send_in_hindsight(n, o, p, now_ps);
    else
        send_queued(n, o, p, now_ps);
}

/* The books of a FIFO that runs by arithmetic, and is never called, are the port's. */
static void port_books(struct net_port *o, uint64_t now_ps)
{
    struct gw_qdisc *q = o->tree->root;
    uint64_t bytes, pkts;

    net_port_queue(o, now_ps, &bytes, &pkts);
    if (o->mode != PORT_ARITHMETIC || !q)
        return;
    q->sent_pkts = o->sent_pkts - pkts;
    q->sent_bytes = o->sent_bytes - bytes;
    q->backlog_pkts = pkts;
    q->backlog_bytes = bytes;
    q->dropped_pkts = q->drops[GW_DROP_QUEUE_FULL] = o->drops[GW_DROP_QUEUE_FULL];
}

void net_all_books(struct net *n, uint64_t now_ps)
{
    for (uint32_t i = 0; i < n->ports; i++)
        port_books(&n->port[i], now_ps);
}

void net_port_queue(struct net_port *o, uint64_t now_ps, uint64_t *bytes, uint64_t *pkts)
{
    if (o->hindsight)
        catch_up(o->net, o, now_ps);
    if (o->mode == PORT_QUEUED) {
        *bytes = o->tree->root ? o->tree->root->backlog_bytes : 0;
        *pkts = o->tree->root ? o->tree->root->backlog_pkts : 0;
        *bytes += o->pfc ? o->pfc->other.bytes : 0;
        *pkts += o->pfc ? o->pfc->other.count : 0;
        return;
    }
    settle(o, now_ps);
    *bytes = o->wait_bytes;
    *pkts = o->wait_count;
}

/* ---- room at a host's NIC ----------------------------------------------------------------- */

static uint64_t backlog_ps(const struct net_port *o, uint64_t now_ps)
{
    if (o->mode == PORT_QUEUED)
        return o->rate_bps && o->tree->root ?
               gw_mul_div(o->tree->root->backlog_bytes + (o->pfc ? o->pfc->other.bytes : 0),
                          8 * GW_PS_PER_S, o->rate_bps) : 0;
    return o->free_ps > now_ps ? o->free_ps - now_ps : 0;
}

/* Serves the flows that wait for room, in turn, until the queue is full again. */
void net_port_room(struct net_port *o, uint64_t now_ps)
{
    if (o->serving)
        return;                                     /* the outer call goes on                  */
    while (o->room_head && backlog_ps(o, now_ps) < o->room_ps) {
        struct net_conn *c = o->room_head;

        o->room_head = c->room_next;
        if (!o->room_head)
            o->room_tail = NULL;
        c->waiting = false;
        c->grant = 4;
        o->serving = c;
        c->tx.ops->tx_room(&c->tx, now_ps);
        o->serving = NULL;
    }
    if (o->room_head && o->mode == PORT_ARITHMETIC)
        gw_engine_timer_set(o->net->engine, &o->timer,
                            o->free_ps > o->room_low_ps ? o->free_ps - o->room_low_ps : now_ps);
}

static uint64_t wait_for_room(struct net_port *o, struct net_conn *c, uint64_t now_ps)
{
    if (!c->waiting) {
        c->waiting = true;
        c->room_next = NULL;
        if (o->room_tail)
            o->room_tail->room_next = c;
        else
            o->room_head = c;
        o->room_tail = c;
        if (o->mode == PORT_ARITHMETIC && !o->serving && !o->timer.armed)
            gw_engine_timer_set(o->net->engine, &o->timer,
                                o->free_ps > now_ps + o->room_low_ps ?
                                o->free_ps - o->room_low_ps : now_ps);
    }
    return 0;
}

uint64_t net_nic_room(struct gw_tx *tx, uint64_t now_ps)
{
    struct net *n = tx->net;
    struct net_conn *c = GW_CONTAINER(tx, struct net_conn, tx);
    struct net_port *o = &n->port[c->out_fwd];

    if (!o->rate_bps || o->user_qdisc || !o->is_nic)
        return UINT64_MAX;
    if (o->room_head || c->waiting) {               /* others wait: keep the turn              */
        if (o->serving != c || !c->grant)
            return wait_for_room(o, c, now_ps);
        c->grant--;
    }
    if (backlog_ps(o, now_ps) >= o->room_ps)
        return wait_for_room(o, c, now_ps);
    return tx->mtu_bytes;
}

void net_port_timer_init(struct net_port *o)
{
    o->timer = (struct gw_timer){ .fire = port_timer, .owner = o, .comp = o->from };
}

/* ---- arrivals ----------------------------------------------------------------------------- */

uint32_t net_next(const struct net *n, uint32_t node, uint32_t dst, uint32_t hash)
{
    const struct gw_routes *r = n->routes;
    uint32_t leaf = r->leaf_of[dst];
    const struct gw_route_row *row;

    if (r->leaf_node[leaf] == node)
        return n->down[dst];
    row = &r->row[(size_t)leaf * n->nodes + node];
    if (row->count == 1)
        return r->pool[row->first];
    if (!row->count)
        return GW_NONE;
    if (n->conf.route == NET_DMOD)
        return r->pool[row->first + n->host_index[dst] / n->dmod_div[node] % row->count];
    if (n->conf.route == NET_SPRAY && n->tiers)     /* see spray_hash()                        */
        hash = hash << n->spray_shift[node] | hash >> (31 & -n->spray_shift[node]);
    else
        hash = net_mix32(hash ^ n->salt[node]);
    return r->pool[row->first + (uint32_t)(((uint64_t)hash * row->count) >> 32)];
}

static void arrive_observed(struct net *n, struct net_port *o, struct gw_pkt *p, uint64_t now_ps)
{
    if (o->cap_rx) {
        const struct net_conn *c = net_conn_shown(n, p);

        gw_capture_packet(o->cap_rx, p, c ? c->tx.ops : NULL, net_ext_get(n, p),
                          c ? &c->addr : NULL, net_flips(n, p), now_ps);
    }
    if (o->log)
        log_receive(n, p, now_ps);
}

void net_deliver(void *net, uint32_t node, struct gw_pkt *p, uint64_t now_ps)
{
    struct net *n = net;
    uint32_t in = p->in_port, out;

    n->hops++;
    n->arrivals[in].pkts++;
    n->arrivals[in].bytes += p->len_bytes;
    if (GW_UNLIKELY(n->port_flags[in])) {
        uint8_t flags = n->port_flags[in];

        if (flags & PORT_BEHIND)
            catch_up(n, &n->port[in], now_ps);
        if (flags & (PORT_LONG | PORT_FAR | PORT_BEHIND))
            fly_next(n, &n->port[in], in, p);
        if (flags & (PORT_RX_CAP | PORT_LOG))
            arrive_observed(n, &n->port[in], p, now_ps);
        if (gw_pkt_is_pause(p)) {
            net_pfc_receive(n, in, p, now_ps);
            return;
        }
    }
    if (p->dst == node) {
        net_host_receive(n, p, now_ps);
        return;
    }
    out = net_next(n, node, p->dst, p->hash);
    if (GW_UNLIKELY(out == GW_NONE)) {
        net_drop(n, NULL, p, GW_DROP_NO_ROUTE);
        return;
    }
    net_port_send(n, &n->port[out], p, now_ps);
}
