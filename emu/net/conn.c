/*
 * conn - flows: packets and their slab, streams between ranks, borders of messages
 *
 * A message is split over the streams of its pair of ranks; each span is a share. The transport
 * sees bytes, this file keeps the borders: rx_deliver moves the in-order point and finishes shares
 * at the receiver, tx_acked lets the sender go on. Streams between two ranks of a job persist over
 * messages, as NCCL's and MPI's do; a message with new_conn gets a fresh one that is closed behind
 * it. Fluid transports get whole messages and a path.
 *
 * Memory of flows is recycled by kind and never returned before the end, because the engine may
 * hold events that refer to timers inside it.
 */
#include <stdlib.h>

#include "emu/net/prog.h"

#define SLAB_PKTS 1024u
#define EXT_CHUNK 1024u
#define CHUNK_CONNS 16u
#define AHEAD_FROM_BYTES (1u << 20)       /* of flows: more than the nearer caches hold          */
#define AHEAD_BYTES 448u                  /* of a half's private part                           */
#define PATH_MAX_LINKS 64u
#define FIRST_PORT 29500u                 /* PyTorch's rendezvous port: what filters expect     */

/* ---- memory ------------------------------------------------------------------------------- */

void *net_chunks_keep(struct net_chunks *c, void *p)
{
    if (p && c->count == c->cap) {
        uint32_t cap = c->cap ? c->cap * 2 : 64;
        void **v = realloc(c->chunk, cap * sizeof *v);

        if (!v) {
            free(p);
            return NULL;
        }
        c->chunk = v;
        c->cap = cap;
    }
    if (p)
        c->chunk[c->count++] = p;
    return p;
}

void net_chunks_free(struct net_chunks *c)
{
    for (uint32_t i = 0; i < c->count; i++)
        free(c->chunk[i]);
    free(c->chunk);
}

/* ---- packets ------------------------------------------------------------------------------ */

static struct gw_pkt *slab_grow(struct net *n)
{
    struct gw_pkt *chunk;

    chunk = net_chunks_keep(&n->slabs, aligned_alloc(64, SLAB_PKTS * sizeof *chunk));
    if (!chunk)
        return NULL;
    for (uint32_t i = 0; i < SLAB_PKTS; i++) {
        chunk[i].next = n->pkt_free;
        n->pkt_free = &chunk[i];
    }
    return n->pkt_free;
}

struct gw_pkt *net_pkt_alloc(void *net)
{
    struct net *n = net;
    struct gw_pkt *p = n->pkt_free;

    if (GW_UNLIKELY(!p)) {
        p = slab_grow(n);
        if (!p) {
            net_fail(n, GW_NOMEM, "out of memory for packets; use smaller windows or fewer flows");
            return NULL;
        }
    }
    n->pkt_free = p->next;
    memset(p, 0, sizeof *p);
    p->ext = GW_NONE;
    n->live_pkts++;
    return p;
}

/* An extension: the flipped bits, then what the transport keeps there. */
static size_t ext_stride(const struct net *n)
{
    return sizeof(struct gw_flips) + n->ext_bytes;
}

static struct gw_flips *ext_at(const struct net *n, const struct gw_pkt *p)
{
    return (struct gw_flips *)(void *)(n->ext_chunk[p->ext / EXT_CHUNK] +
                                       (size_t)(p->ext % EXT_CHUNK) * ext_stride(n));
}

void *net_ext_get(void *net, const struct gw_pkt *p)
{
    return p->ext == GW_NONE ? NULL : ext_at(net, p) + 1;
}

static void *ext_alloc(void *net, struct gw_pkt *p)
{
    struct net *n = net;
    struct gw_flips *e;

    if (p->ext != GW_NONE)
        return net_ext_get(n, p);
    if (n->ext_free != GW_NONE) {
        p->ext = n->ext_free;
        e = ext_at(n, p);
        memcpy(&n->ext_free, e, sizeof n->ext_free);
    } else {
        if (n->ext_next == n->ext_chunks * EXT_CHUNK) {
            uint8_t **c = realloc(n->ext_chunk, (n->ext_chunks + 1) * sizeof *c);

            if (!c)
                return NULL;
            n->ext_chunk = c;
            c[n->ext_chunks] = malloc(EXT_CHUNK * ext_stride(n));
            if (!c[n->ext_chunks])
                return NULL;
            n->ext_chunks++;
        }
        p->ext = n->ext_next++;
        e = ext_at(n, p);
    }
    e->count = 0;
    return memset(e + 1, 0, n->ext_bytes);
}

void net_pkt_free(void *net, struct gw_pkt *p)
{
    struct net *n = net;

    if (GW_UNLIKELY(p->ext != GW_NONE)) {
        memcpy(ext_at(n, p), &n->ext_free, sizeof n->ext_free);
        n->ext_free = p->ext;
    }
    p->next = n->pkt_free;
    n->pkt_free = p;
    n->live_pkts--;
}

const struct gw_flips *net_flips(const struct net *n, const struct gw_pkt *p)
{
    return p->flags & GW_PKT_CORRUPT && p->ext != GW_NONE ? ext_at(n, p) : NULL;
}

static void pkt_flip(void *net, struct gw_pkt *p, uint32_t bit)
{
    struct net *n = net;
    struct gw_flips *x;
    uint32_t i = 0;

    if (!ext_alloc(n, p)) {
        net_fail(n, GW_NOMEM, "out of memory for corrupted packets");
        return;
    }
    x = ext_at(n, p);
    while (i < x->count && x->bit[i] != bit)
        i++;
    if (i < x->count)
        x->bit[i] = x->bit[--x->count];
    else if (x->count < GW_FLIPS)
        x->bit[x->count++] = bit;
    p->flags = (uint8_t)(x->count ? p->flags | GW_PKT_CORRUPT : p->flags & ~GW_PKT_CORRUPT);
}

/* A corrupted packet is as good as new to its receiver if only the Ethernet source address is wrong:
 * no check sum of IP or of the transport covers it, and nobody looks at it. */
static bool taken_for_good(struct net *n, struct gw_pkt *p)
{
    const struct gw_flips *x = net_flips(n, p);

    for (uint32_t i = 0; x && i < x->count; i++)
        if (x->bit[i] < 8 * 6 || x->bit[i] >= 8 * 12)
            return false;
    if (x)
        ext_at(n, p)->count = 0;
    p->flags &= (uint8_t)~GW_PKT_CORRUPT;
    return x != NULL;
}

/* ---- paths -------------------------------------------------------------------------------- */

uint32_t net_path(struct net *n, uint32_t src, uint32_t dst, uint32_t hash, uint32_t *path,
                  uint32_t cap)
{
    uint32_t len = 0, at = src;

    while (at != dst && len < cap) {
        uint32_t out = net_next(n, at, dst, hash);

        if (out == GW_NONE)
            break;
        path[len++] = out;
        at = n->port[out].to;
    }
    return len;
}

/* ---- flows -------------------------------------------------------------------------------- */

static size_t padded(size_t b, size_t to)
{
    return (b + to - 1) & ~(to - 1);
}

static bool knows_messages(const struct net_transport *tp)
{
    return tp->ops->tx_message || tp->ops->rx_expect;
}

static void fetch(const char *p, size_t bytes)
{
    for (size_t i = 0; i < bytes; i += 64)
        __builtin_prefetch(p + i, 1);
}

/* @p is about to come: the half that it is for is fetched. Where its parts lie is but a guess. */
static void flow_ahead(void *net, uint32_t node, struct gw_pkt *p, uint64_t at_ps)
{
    const struct net *n = net;
    const char *c;

    (void)at_ps;
    if (p->dst != node || p->flow >= n->conn_count)
        return;
    c = (const char *)n->conn[p->flow];
    if (!c)
        return;
    if (!(p->flags & GW_PKT_REVERSE)) {
        fetch(c + offsetof(struct net_conn, rx), offsetof(struct net_conn, unacked) -
                                                 offsetof(struct net_conn, rx));
        fetch(c + n->rx_at, gw_min(n->cc_at - n->rx_at, AHEAD_BYTES));
        return;
    }
    fetch(c, offsetof(struct net_conn, rx));
    fetch(c + n->tx_at, gw_min(n->rx_at - n->tx_at, AHEAD_BYTES));
    fetch(c + n->cc_at, n->conn_bytes - n->cc_at);
}

/* Many flows at once: less is lost between them. */
static bool conns_grow(struct net *n, struct net_transport *tp, size_t all)
{
    char *chunk;

    chunk = net_chunks_keep(&n->conn_chunks, aligned_alloc(64, CHUNK_CONNS * all));
    if (!chunk)
        return false;
    for (uint32_t i = CHUNK_CONNS; i--;) {
        struct net_conn *c = (struct net_conn *)(void *)(chunk + i * all);

        c->next_free = tp->conn_free;
        tp->conn_free = c;
    }
    if (n->conn_chunks.count * CHUNK_CONNS * all > AHEAD_FROM_BYTES)
        gw_engine_set_ahead(n->engine, flow_ahead);
    return true;
}

static struct net_conn *conn_memory(struct net *n, struct net_transport *tp)
{
    size_t tx = padded(sizeof(struct net_conn), 64), rx = tx + padded(tp->ops->tx_bytes, 16);
    size_t cc = rx + padded(tp->ops->rx_bytes, 16), all = cc;
    struct net_conn *c;

    if (tp->cc)
        all += padded(((const struct gw_cc_ops *)tp->cc->ops)->priv_bytes, 16);
    if (knows_messages(tp))
        all += sizeof(struct gw_timer);
    all = padded(all, 64);
    if (!tp->conn_free && !conns_grow(n, tp, all))
        return NULL;
    c = tp->conn_free;
    tp->conn_free = c->next_free;
    n->tx_at = (uint32_t)tx;
    n->rx_at = (uint32_t)rx;
    n->cc_at = (uint32_t)cc;
    n->conn_bytes = (uint32_t)all;
    memset(c, 0, all);
    c->tx.priv = (char *)c + tx;
    c->rx.priv = (char *)c + rx;
    c->tx.cc.priv = (char *)c + cc;
    if (knows_messages(tp))
        c->expect = (struct gw_timer *)(void *)((char *)c + all - sizeof *c->expect);
    return c;
}

/* Facts of the path for the ideal FCT; the path itself goes to the records. */
static void conn_path(struct net *n, struct net_conn *c)
{
    uint32_t path[PATH_MAX_LINKS];
    uint32_t len = net_path(n, c->tx.src, c->tx.dst, c->hash_fwd, path, PATH_MAX_LINKS);
    uint64_t min = 0;
    uint32_t mtu = UINT32_MAX;

    c->ideal_delay_ps = 0;
    for (uint32_t i = 0; i < len; i++) {
        const struct net_port *o = &n->port[path[i]];
        const struct gw_graph_link *l = &n->graph->link[path[i] / 2];

        c->ideal_delay_ps += o->delay_ps;
        if (o->rate_bps) {
            c->ideal_hops_ps_per_byte += 8 * GW_PS_PER_S / o->rate_bps;
            if (!min || o->rate_bps < min) {
                min = o->rate_bps;
                c->narrowest = path[i];
                c->ideal_framing = o->framing_bytes;
            }
        }
        if (l->mtu_bytes < mtu)
            mtu = l->mtu_bytes;
        if (n->sink && n->conf.flow_records)
            n->sink->ops->path(n->sink, &(struct gw_rec_path){ c->tx.flow, i, path[i] });
    }
    c->ideal_rate_bps = min;
    if (min)
        c->ideal_hops_ps_per_byte -= 8 * GW_PS_PER_S / min;
    c->out_fwd = len ? path[0] : 0;
    c->tx.mtu_bytes = c->rx.mtu_bytes = mtu;
    c->out_rev = net_next(n, c->tx.dst, c->tx.src, c->hash_rev);
}

/* Of a full frame on the idle path and an ACK that takes no time to send. */
static uint64_t base_rtt(const struct net_conn *c)
{
    uint64_t frame = c->tx.mtu_bytes + GW_ETH_BYTES, rtt = 2 * c->ideal_delay_ps;

    if (c->ideal_rate_bps)
        rtt += gw_mul_div(frame + c->ideal_framing, 8 * GW_PS_PER_S, c->ideal_rate_bps);
    return rtt + frame * c->ideal_hops_ps_per_byte;
}

static void expect_fire(void *owner, uint64_t now_ps);

/* The open log of the flows of a job, if there is one. */
static const struct net_trace *trace_of(const struct net *n, uint32_t job)
{
    const struct net_trace *t = n->traces;

    while (t && (t->job != job || !t->file))
        t = t->next;
    return t;
}

/* What the transport's flows share at host @node; *failed: out of memory. */
static void *host_shared(struct net *n, struct net_transport *tp, uint32_t node, bool *failed)
{
    if (!tp->ops->shared_bytes)
        return NULL;
    if (!tp->shared)
        tp->shared = calloc(n->nodes, sizeof *tp->shared);
    if (tp->shared && !tp->shared[node])
        tp->shared[node] = calloc(1, tp->ops->shared_bytes);
    *failed |= !tp->shared || !tp->shared[node];
    return tp->shared ? tp->shared[node] : NULL;
}

static struct net_conn *conn_open(struct net *n, struct net_transport *tp, uint32_t src,
                                  uint32_t dst, uint32_t job, uint32_t src_rank,
                                  uint32_t dst_rank, uint8_t priority)
{
    struct net_conn *c;
    uint32_t flow = n->conn_count;
    struct gw_error err = { 0 };
    uint64_t now = gw_engine_now(n->engine), seed;
    bool failed = false;
    char text[1024];

    if (n->conn_count == n->conn_cap) {
        uint32_t cap = n->conn_cap ? n->conn_cap * 2 : 256;
        struct net_conn **v = realloc(n->conn, cap * sizeof *v);

        if (!v)
            goto nomem;
        n->conn = v;
        n->conn_cap = cap;
    }
    c = conn_memory(n, tp);
    if (!c)
        goto nomem;
    n->conn[n->conn_count++] = c;
    c->tp = tp;
    c->job = job;
    c->src_rank = src_rank;
    c->dst_rank = dst_rank;
    c->tx.ops = c->rx.ops = tp->ops;
    c->tx.host = c->rx.host = n->host;
    c->tx.net = c->rx.net = n;
    c->tx.conf = c->rx.conf = tp->conf;
    c->tx.flow = c->rx.flow = flow;
    c->tx.src = c->rx.src = src;
    c->tx.dst = c->rx.dst = dst;
    c->tx.comp = src;
    c->rx.comp = dst;
    if (c->expect)
        *c->expect = (struct gw_timer){ .fire = expect_fire, .owner = c, .comp = dst };
    c->tx.priority = priority;
    c->tx.traced = trace_of(n, job) != NULL;
    seed = gw_mix64(n->conf.seed ^ gw_mix64((uint64_t)flow << 32 | src) ^ dst);
    c->hash_fwd = (uint32_t)seed;
    c->hash_rev = (uint32_t)(seed >> 32);
    c->spray = 1;
    c->sprayed = n->conf.route == NET_SPRAY || tp->ops->sprays;
    c->addr.src_ip = UINT32_C(0x0a000000) + src + 1;
    c->addr.dst_ip = UINT32_C(0x0a000000) + dst + 1;
    c->addr.dst_port = (uint16_t)FIRST_PORT;
    c->addr.src_port = (uint16_t)(32768 + flow % 28232);
    if (flow >= 28232)                     /* more flows than ephemeral ports: other servers'  */
        c->addr.dst_port = (uint16_t)(FIRST_PORT + flow / 28232);
    c->tx.shared = host_shared(n, tp, src, &failed);
    c->rx.shared = host_shared(n, tp, dst, &failed);
    if (failed)
        goto nomem;
    conn_path(n, c);
    c->tx.base_rtt_ps = c->rx.base_rtt_ps = base_rtt(c);
    c->tx.nic_rate_bps = n->port[c->out_fwd].rate_bps;
    c->rx.nic_rate_bps = n->port[c->out_rev ^ 1].rate_bps;
    if (tp->cc) {
        c->tx.cc.ops = tp->cc->ops;
        c->tx.cc.conf = tp->cc_conf;
        c->tx.cc.host = n->host;
        c->tx.cc.net = n;
        c->tx.cc.comp = src;
        c->tx.cc.tx = &c->tx;
        c->tx.cc.nic_rate_bps = c->tx.nic_rate_bps;
        c->tx.cc.base_rtt_ps = c->tx.base_rtt_ps;
        gw_rng_open(&c->tx.cc.rng, n->conf.seed ^ seed, "flow/cc");
    }
    if (tp->ops->tx_init(&c->tx, now, &err) != GW_OK)
        goto refused;
    if (tp->ops->rx_init(&c->rx, now, &err) != GW_OK) {
        if (c->tx.cc.ops)
            c->tx.cc.ops->fini(&c->tx.cc);
        tp->ops->tx_fini(&c->tx);
        goto refused;
    }
    c->open = true;
    return c;

refused:
    n->conn[flow] = NULL;                  /* it has no halves that could be ended             */
    snprintf(text, sizeof text, "flow %u from %.200s to %.200s: transport %s: %.500s", flow,
             n->graph->node[src].name, n->graph->node[dst].name, tp->entry->plugin->name,
             err.text);
    net_fail(n, err.code, text);
    return NULL;
nomem:
    net_fail(n, GW_NOMEM, "out of memory for flows; use fewer flows or streams");
    return NULL;
}

static void conn_fini(struct net_conn *c)
{
    if (c->tx.cc.ops)
        c->tx.cc.ops->fini(&c->tx.cc);
    c->tp->ops->tx_fini(&c->tx);
    c->tp->ops->rx_fini(&c->rx);
}

/* Captures and packet logs may show late packets of a flow that is over. */
static void conn_keep(struct net *n, struct net_conn *c)
{
    if (n->kept_cap < n->conn_cap) {
        struct net_conn **v = realloc(n->kept, n->conn_cap * sizeof *v);

        if (!v) {
            net_fail(n, GW_NOMEM, "out of memory for flows that captures show; capture less");
            return;
        }
        memset(v + n->kept_cap, 0, (n->conn_cap - n->kept_cap) * sizeof *v);
        n->kept = v;
        n->kept_cap = n->conn_cap;
    }
    n->kept[c->tx.flow] = c;
}

const struct net_conn *net_conn_shown(const struct net *n, const struct gw_pkt *p)
{
    if (p->flags & GW_PKT_FRAME)
        return NULL;
    if (n->conn[p->flow] || p->flow >= n->kept_cap)
        return n->conn[p->flow];
    return n->kept[p->flow];
}

/* Ends a closed flow, unless somebody may still ask for it: that one stays as it is to the end. */
static void conn_retire(struct net *n, struct net_conn *c)
{
    if (c->waiting || c->head)
        return;
    conn_fini(c);
    if (c->expect)
        gw_engine_timer_stop(n->engine, c->expect);
    n->conn[c->tx.flow] = NULL;            /* late packets find nobody                         */
    if (n->keep_conns) {
        conn_keep(n, c);
        return;
    }
    c->next_free = c->tp->conn_free;
    c->tp->conn_free = c;
}

static void tx_closed(struct gw_tx *tx, uint64_t now_ps)
{
    struct net *n = tx->net;
    struct net_conn *c = GW_CONTAINER(tx, struct net_conn, tx);

    (void)now_ps;
    c->open = false;
    if (c->one_shot && !--n->closing_conns && rt_idle(n->rt))
        gw_engine_stop(n->engine);
    conn_retire(n, c);
}

static struct net_share *share_new(struct net *n)
{
    struct net_share *s = n->share_free;

    if (s)
        n->share_free = s->next;
    else
        s = malloc(sizeof *s);
    if (s)
        memset(s, 0, sizeof *s);
    return s;
}

/* The oldest share is done with. */
static void share_over(struct net *n, struct net_conn *c)
{
    struct net_share *s = c->head;

    c->head = s->next;
    if (c->head)
        c->tag = c->head->tag;
    else
        c->tail = NULL;
    s->next = n->share_free;
    n->share_free = s;
}

/*
 * Completion time alone on the path, never more than what is possible: all bytes over the narrowest
 * link, then the last frame over the others. Streams of the same message that take that link too
 * share it evenly; one that is done before its siblings may then be faster than this.
 */
static uint64_t ideal_fct(const struct net_conn *c, uint64_t bytes, uint32_t streams)
{
    uint64_t frames = 0, wire, one, last, t;
    uint32_t sharing = c->ideal_sharing < streams ? c->ideal_sharing : streams;

    if (!c->ideal_rate_bps)
        return c->ideal_delay_ps;
    if (c->sprayed)                        /* no one path: no bound is claimed                 */
        return 0;
    wire = c->tp->ops->wire_bytes(c->tp->conf, bytes, c->tx.mtu_bytes, &frames);
    one = frames > 1 ? wire / frames + 1 : wire;
    last = frames > 1 && wire > (frames - 1) * (c->tx.mtu_bytes + GW_ETH_BYTES) ?
           wire - (frames - 1) * (c->tx.mtu_bytes + GW_ETH_BYTES) : one;
    if (last > one)
        last = one;
    t = gw_mul_div((wire + frames * c->ideal_framing) * (sharing ? sharing : 1),
                   8 * GW_PS_PER_S, c->ideal_rate_bps);
    return t + last * c->ideal_hops_ps_per_byte + c->ideal_delay_ps;
}

static void record_flow(struct net *n, const struct net_conn *c, const struct net_share *s,
                        uint64_t end_ps, uint64_t delivered)
{
    const struct net_msg *m = s->msg;
    struct gw_rec_flow r = {
        .flow = s->id, .conn = c->tx.flow, .message = m->id, .job = c->job,
        .iteration = m->iteration, .collective = m->collective,
        .src_rank = m->src_rank, .dst_rank = m->dst_rank,
        .src_node = c->tx.src, .dst_node = c->tx.dst,
        .bytes = s->bytes, .delivered_bytes = delivered, .start_ps = s->start_ps,
        .end_ps = end_ps, .ideal_ps = ideal_fct(c, s->bytes, s->streams),
        .retrans_bytes = c->tx.stats.retrans_bytes - s->retrans_bytes,
        .retrans_pkts = c->tx.stats.retrans_pkts - s->retrans_pkts,
        .timeouts = c->tx.stats.timeouts - s->timeouts,
        .dropped_pkts = c->dropped_pkts - s->dropped,
    };

    if (n->sink && n->sink->ops->flow(n->sink, &r) != GW_OK)
        net_fail(n, GW_IO, "the records could not be written");
}

static void rx_deliver(struct gw_rx *rx, uint64_t total, uint64_t now_ps)
{
    struct net *n = rx->net;
    struct net_conn *c = GW_CONTAINER(rx, struct net_conn, rx);
    struct net_share *s = c->undelivered;

    c->delivered = total;
    while (s && s->end <= total) {
        struct net_msg *m = s->msg;

        n->flow_delivered_bytes += s->bytes;
        record_flow(n, c, s, now_ps, s->bytes);
        s = s->next;
        c->undelivered = s;
        if (--m->shares_left == 0)
            rt_msg_delivered(n, m, now_ps);
    }
}

/* ---- messages that may end with holes ----------------------------------------------------- */

/* Shares that both ends are done with are forgotten; they may end in any order. */
static void shares_release(struct net *n, struct net_conn *c, uint64_t now_ps)
{
    while (c->head && c->head->acked && c->head->delivered)
        share_over(n, c);
    if (!c->head && !c->open)              /* not now: the transport is still at work in it    */
        gw_engine_timer_set(n->engine, c->expect, now_ps);
}

static void whole_acked(struct net *n, struct net_conn *c, uint64_t total, uint64_t now_ps)
{
    while (c->unacked && c->unacked->end <= total) {
        struct net_share *s = c->unacked;
        struct net_msg *m = s->msg;

        c->unacked = s->next;
        s->acked = true;
        if (--m->acks_left == 0)
            rt_msg_acked(n, m, now_ps);
    }
    shares_release(n, c, now_ps);
}

static void record_loss(struct net *n, const struct net_msg *m, const struct gw_received *a)
{
    struct gw_rec_loss r = { m->id, m->job_index, m->iteration, *a };

    if (n->sink && n->sink->ops->loss(n->sink, &r) != GW_OK)
        net_fail(n, GW_IO, "the records could not be written");
}

static void rx_message(struct gw_rx *rx, uint64_t start, const struct gw_received *a,
                       uint64_t now_ps)
{
    struct net *n = rx->net;
    struct net_conn *c = GW_CONTAINER(rx, struct net_conn, rx);
    struct net_share *s = c->undelivered;
    struct net_msg *m;

    while (s && (s->delivered || s->end - s->bytes != start))
        s = s->next;
    if (!s)
        return;                            /* it was reported before                           */
    m = s->msg;
    s->delivered = true;
    while (c->undelivered && c->undelivered->delivered)
        c->undelivered = c->undelivered->next;
    n->flow_delivered_bytes += s->bytes - a->missing_bytes;
    record_flow(n, c, s, now_ps, s->bytes - a->missing_bytes);
    if (a->missing_bytes)
        record_loss(n, m, a);
    if (!rt_msg_holes(n, m))
        return;
    m->holes->arrival = *a;
    if (--m->shares_left == 0)
        rt_msg_delivered(n, m, now_ps);
    shares_release(n, c, now_ps);
}

/* Tells the receiver of each message just before its first packet can be there. */
static void expect_fire(void *owner, uint64_t now_ps)
{
    struct net_conn *c = owner;
    struct net *n = c->rx.net;
    uint64_t ahead = c->ideal_delay_ps && !c->sprayed ? c->ideal_delay_ps - 1 : 0;

    for (struct net_share *s = c->undelivered; s; s = s->next) {
        if (s->told || s->delivered)
            continue;
        if (s->start_ps + ahead > now_ps) {
            gw_engine_timer_set(n->engine, c->expect, s->start_ps + ahead);
            return;
        }
        s->told = true;
        c->rx.ops->rx_expect(&c->rx, s->end - s->bytes, s->end, s->start_ps, now_ps);
    }
    if (!c->open && !c->head)
        conn_retire(n, c);
}

/* A new share of a transport that knows messages. */
static void announce(struct net_conn *c, struct net_share *s, uint64_t now_ps)
{
    const struct gw_transport_ops *ops = c->tx.ops;
    struct net *n = c->tx.net;

    if (!c->unacked)
        c->unacked = s;
    if (ops->rx_expect && !c->ideal_rate_bps && !c->ideal_delay_ps)
        expect_fire(c, now_ps);            /* its first packet comes at this very instant       */
    else if (ops->rx_expect && !c->expect->armed)
        gw_engine_timer_set(n->engine, c->expect,
                            now_ps + (c->sprayed || !c->ideal_delay_ps ? 0
                                                                       : c->ideal_delay_ps - 1));
    ops->tx_message(&c->tx, s->end - s->bytes, s->end, now_ps);
}

static void tx_acked(struct gw_tx *tx, uint64_t total, uint64_t now_ps)
{
    struct net *n = tx->net;
    struct net_conn *c = GW_CONTAINER(tx, struct net_conn, tx);

    c->acked = total;
    if (GW_UNLIKELY(tx->ops->tx_message != NULL)) {
        whole_acked(n, c, total, now_ps);
        return;
    }
    while (c->head && c->head->end <= total && c->head != c->undelivered) {
        struct net_msg *m = c->head->msg;

        share_over(n, c);
        if (--m->acks_left == 0)
            rt_msg_acked(n, m, now_ps);
    }
}

static bool conn_write(struct net *n, struct net_conn *c, struct net_msg *m, uint64_t bytes,
                       uint32_t streams, uint64_t now_ps)
{
    struct net_share *s = share_new(n);

    if (!s) {
        net_fail(n, GW_NOMEM, "out of memory for messages");
        return false;
    }
    s->msg = m;
    s->bytes = bytes;
    s->streams = streams;
    s->start_ps = now_ps;
    s->id = m->flow_id++;
    s->retrans_bytes = c->tx.stats.retrans_bytes;
    s->retrans_pkts = c->tx.stats.retrans_pkts;
    s->timeouts = c->tx.stats.timeouts;
    s->dropped = c->dropped_pkts;
    s->end = c->tx.written_bytes + bytes;
    s->tag = m->layer << 8 | (m->cls & 0xff);
    if (c->tail) {
        c->tail->next = s;
    } else {
        c->head = s;
        c->tag = s->tag;
    }
    c->tail = s;
    if (!c->undelivered)
        c->undelivered = s;
    n->flows++;
    n->flow_bytes += bytes;
    c->tx.written_bytes += bytes;
    if (GW_UNLIKELY(c->tx.ops->tx_message != NULL))
        announce(c, s, now_ps);
    return true;
}

/* How many of @conn share each one's narrowest link. */
static void count_sharing(struct net_conn **conn, uint32_t streams)
{
    for (uint32_t i = 0; i < streams; i++) {
        conn[i]->ideal_sharing = 0;
        for (uint32_t k = 0; k < streams; k++)
            conn[i]->ideal_sharing += conn[k]->narrowest == conn[i]->narrowest;
    }
}

/* ---- pairs of ranks ----------------------------------------------------------------------- */

static uint32_t pair_hash(uint32_t job, uint32_t src, uint32_t dst)
{
    return (uint32_t)gw_mix64((uint64_t)src << 32 ^ dst ^ (uint64_t)job << 20);
}

static bool pairs_grow(struct net *n)
{
    uint32_t slots = n->pair_slots ? n->pair_slots * 2 : 1024;
    struct net_pair **t = calloc(slots, sizeof *t);

    if (!t)
        return false;
    for (uint32_t i = 0; i < n->pair_slots; i++) {
        struct net_pair *p = n->pair[i], *next;

        for (; p; p = next) {
            uint32_t b = pair_hash(p->job, p->src_rank, p->dst_rank) & (slots - 1);

            next = p->next;
            p->next = t[b];
            t[b] = p;
        }
    }
    free(n->pair);
    n->pair = t;
    n->pair_slots = slots;
    return true;
}

static bool pair_fill(struct net *n, struct net_pair *p, struct net_transport *tp, uint32_t src,
                      uint32_t dst, uint8_t priority)
{
    if (tp->ops->level == GW_TP_FLUID) {
        uint32_t path[PATH_MAX_LINKS];
        uint32_t hash = (uint32_t)gw_mix64(n->conf.seed ^ gw_mix64((uint64_t)src << 32 | dst));

        p->path_len = net_path(n, src, dst, hash, path, PATH_MAX_LINKS);
        p->path = malloc((p->path_len ? p->path_len : 1) * sizeof *p->path);
        if (!p->path)
            return false;
        memcpy(p->path, path, p->path_len * sizeof *path);
        p->conn_id = UINT32_C(0x80000000) + n->pair_count;
        for (uint32_t i = 0; i < p->path_len; i++) {
            const struct net_port *o = &n->port[path[i]];

            p->latency_ps += o->delay_ps;
            if (o->rate_bps && (!p->min_rate_bps || o->rate_bps < p->min_rate_bps))
                p->min_rate_bps = o->rate_bps;
            if (n->sink && n->conf.flow_records)
                n->sink->ops->path(n->sink, &(struct gw_rec_path){ p->conn_id, i, path[i] });
        }
        return true;
    }
    p->streams = tp->streams;
    p->conn = calloc(p->streams, sizeof *p->conn);
    if (!p->conn)
        return false;
    for (uint32_t i = 0; i < p->streams; i++) {
        p->conn[i] = conn_open(n, tp, src, dst, p->job, p->src_rank, p->dst_rank, priority);
        if (!p->conn[i])
            return false;
    }
    count_sharing(p->conn, p->streams);
    return true;
}

static struct net_pair *pair_get(struct net *n, const struct net_msg *m, struct net_transport *tp,
                                 uint32_t job, uint32_t src, uint32_t dst)
{
    uint32_t h = pair_hash(job, m->src_rank, m->dst_rank);
    struct net_pair *p;

    if (n->pair_slots)
        for (p = n->pair[h & (n->pair_slots - 1)]; p; p = p->next)
            if (p->job == job && p->src_rank == m->src_rank && p->dst_rank == m->dst_rank)
                return p;
    if (n->pair_count >= n->pair_slots && !pairs_grow(n))
        goto nomem;
    p = calloc(1, sizeof *p);
    if (!p)
        goto nomem;
    p->job = job;
    p->src_rank = m->src_rank;
    p->dst_rank = m->dst_rank;
    p->next = n->pair[h & (n->pair_slots - 1)];
    n->pair[h & (n->pair_slots - 1)] = p;
    n->pair_count++;
    if (pair_fill(n, p, tp, src, dst, m->priority))
        return p;
nomem:
    net_fail(n, GW_NOMEM, "out of memory for connections between ranks");
    return NULL;
}

/* ---- messages ----------------------------------------------------------------------------- */

/* A fluid or local message has arrived as a whole. */
static void finish_whole(void *owner, uint64_t now_ps)
{
    struct net_msg *m = owner;
    struct net *n = m->net;

    m->acks_left = 0;
    rt_msg_delivered(n, m, now_ps);
    rt_msg_acked(n, m, now_ps);
}

static void record_fluid(struct net *n, const struct net_msg *m, uint64_t end_ps)
{
    const struct net_pair *p = m->pair;
    struct gw_rec_flow r = {
        .flow = m->flow_id, .conn = p->conn_id, .message = m->id, .job = m->job_index,
        .iteration = m->iteration, .collective = m->collective, .src_rank = m->src_rank,
        .dst_rank = m->dst_rank, .src_node = m->src_node, .dst_node = m->dst_node,
        .bytes = m->bytes,
        .delivered_bytes = end_ps == GW_NEVER ? 0 : m->bytes, .start_ps = m->start_ps,
        .end_ps = end_ps,
        .ideal_ps = p->latency_ps + (p->min_rate_bps ?
                    gw_mul_div(m->bytes, 8 * GW_PS_PER_S, p->min_rate_bps) : 0),
    };

    if (n->sink && n->sink->ops->flow(n->sink, &r) != GW_OK)
        net_fail(n, GW_IO, "the records could not be written");
}


static void fluid_begin(struct net_msg *m, uint64_t now_ps)
{
    m->start_ps = now_ps;
    m->tp->ops->fluid_start(m->tp->fluid, &m->whole->fluid, now_ps);
}

/* Messages between two ranks go one after the other, as on a connection; one with a connection of
 * its own shares the links with all others. */
static void pair_next(const struct net_msg *done, uint64_t now_ps)
{
    struct net_pair *p = done->pair;
    struct net_msg *m;

    if (done->new_conn)
        return;
    m = p->queue;
    p->busy = m != NULL;
    if (!m)
        return;
    p->queue = m->whole->behind;
    fluid_begin(m, now_ps);
}

static void fluid_done(struct gw_fluid *f, struct gw_fluid_flow *x, uint64_t now_ps)
{
    struct net *n = f->net;
    struct net_whole *w = GW_CONTAINER(x, struct net_whole, fluid);
    struct net_msg *m = w->msg;
    uint64_t end = now_ps + x->latency_ps;

    for (uint32_t i = 0; i < x->path_len; i++)
        n->port[x->path[i]].fluid_bytes += x->bytes;
    n->flow_delivered_bytes += m->bytes;
    *w->fluid_at = w->fluid_next;
    if (w->fluid_next)
        w->fluid_next->whole->fluid_at = w->fluid_at;
    record_fluid(n, m, end);
    pair_next(m, now_ps);
    if (!x->latency_ps) {
        finish_whole(m, now_ps);
        return;
    }
    gw_engine_timer_set(n->engine, &w->timer, end);
}

static void send_fluid(struct net *n, struct net_msg *m, uint64_t now_ps)
{
    struct net_pair *p = m->pair;
    struct net_whole *w = m->whole;

    w->fluid.bytes = m->bytes;
    w->fluid.path = p->path;
    w->fluid.path_len = p->path_len;
    w->fluid.latency_ps = p->latency_ps;
    w->fluid.fluid = w + 1;
    m->shares_left = m->acks_left = 1;
    n->flows++;
    n->flow_bytes += m->bytes;
    w->fluid_next = n->fluid_open;
    w->fluid_at = &n->fluid_open;
    if (w->fluid_next)
        w->fluid_next->whole->fluid_at = &w->fluid_next;
    n->fluid_open = m;
    if (!m->new_conn && p->busy) {
        w->behind = NULL;
        if (p->queue)
            p->queue_tail->whole->behind = m;
        else
            p->queue = m;
        p->queue_tail = m;
        return;
    }
    p->busy = p->busy || !m->new_conn;
    fluid_begin(m, now_ps);
}

static void send_packets(struct net *n, struct net_msg *m, struct net_conn **conn,
                         uint32_t streams, uint64_t now_ps)
{
    uint64_t rest = m->bytes, at_least = 16384;

    if (m->bytes < streams * at_least)     /* short messages use fewer streams                 */
        streams = m->bytes < at_least ? 1 : (uint32_t)(m->bytes / at_least);
    m->shares_left = m->acks_left = streams;
    for (uint32_t i = 0; i < streams; i++) {
        uint64_t part = rest / (streams - i);

        rest -= part;
        if (!conn_write(n, conn[i], m, part, streams, now_ps))
            return;
    }
    for (uint32_t i = 0; i < streams; i++)
        conn[i]->tx.ops->tx_write(&conn[i]->tx, now_ps);
}

static void send_one_shot(struct net *n, struct net_msg *m, uint64_t now_ps)
{
    uint32_t streams = m->tp->streams;
    struct net_conn *conn[64];

    for (uint32_t i = 0; i < streams; i++) {
        conn[i] = conn_open(n, m->tp, m->src_node, m->dst_node, m->job_index, m->src_rank,
                            m->dst_rank, m->priority);
        if (!conn[i])
            return;
        conn[i]->one_shot = true;
        n->closing_conns++;
        conn[i]->tx.closing = true;
    }
    count_sharing(conn, streams);
    send_packets(n, m, conn, streams, now_ps);
    for (uint32_t i = 0; i < streams; i++)
        if (!conn[i]->head)                /* nothing of it: not used for so short a message   */
            conn[i]->tx.ops->tx_write(&conn[i]->tx, now_ps);
}

void net_send(struct net *n, struct net_msg *m, uint64_t now_ps)
{
    bool local = m->src_node == m->dst_node || !m->bytes;

    m->start_ps = now_ps;
    if (local || m->tp->ops->level == GW_TP_FLUID) {
        if (!rt_msg_whole(n, m))
            return;
        m->whole->timer = (struct gw_timer){ .fire = finish_whole, .owner = m,
                                             .comp = m->dst_node };
    }
    if (local) {                           /* inside a host: no link, no time; or a signal     */
        n->local_bytes += m->bytes;
        gw_engine_timer_set(n->engine, &m->whole->timer, now_ps);
        return;
    }
    if (m->tp->ops->level == GW_TP_PACKET && m->new_conn) {
        send_one_shot(n, m, now_ps);
        return;
    }
    m->pair = pair_get(n, m, m->tp, m->job_index, m->src_node, m->dst_node);
    if (!m->pair)
        return;
    if (m->tp->ops->level == GW_TP_FLUID)
        send_fluid(n, m, now_ps);
    else
        send_packets(n, m, m->pair->conn, m->pair->streams, now_ps);
}

/* Flows that have not ended, at the end of the run. */
void net_record_open_flows(struct net *n)
{
    for (struct net_msg *m = n->fluid_open; m; m = m->whole->fluid_next)
        record_fluid(n, m, GW_NEVER);
    for (uint32_t i = 0; i < n->conn_count; i++) {
        struct net_conn *c = n->conn[i];
        struct net_share *s = c ? c->undelivered : NULL;

        for (; s; s = s->next) {
            uint64_t begin = s->end - s->bytes;

            if (s->delivered)
                continue;
            n->flow_delivered_bytes += c->delivered > begin ? c->delivered - begin : 0;
            record_flow(n, c, s, GW_NEVER, c->delivered > begin ? c->delivered - begin : 0);
        }
    }
}

/* ---- packets in and out of hosts ---------------------------------------------------------- */

static void frame_receive(struct net *n, struct gw_pkt *p)
{
    n->frames_received++;
    n->pkts_delivered++;
    net_pkt_free(n, p);
}

void net_host_receive(struct net *n, struct gw_pkt *p, uint64_t now_ps)
{
    struct net_conn *c;

    if (GW_UNLIKELY(p->flags & (GW_PKT_FRAME | GW_PKT_CORRUPT))) {
        if (p->flags & GW_PKT_FRAME) {
            frame_receive(n, p);
            return;
        }
        if (!taken_for_good(n, p)) {
            net_drop(n, &n->port[p->in_port], p, GW_DROP_CORRUPT);
            return;
        }
    }
    n->pkts_delivered++;
    c = n->conn[p->flow];
    if (GW_UNLIKELY(!c)) {
        net_pkt_free(n, p);
        return;
    }
    if (p->flags & GW_PKT_REVERSE)
        c->tx.ops->tx_packet(&c->tx, p, now_ps);
    else
        c->rx.ops->rx_packet(&c->rx, p, now_ps);
}

static inline uint32_t reversed8(uint32_t v)
{
    v = (v & 0x0f) << 4 | (v & 0xf0) >> 4;
    v = (v & 0x33) << 2 | (v & 0xcc) >> 2;
    return (v & 0x55) << 1 | (v & 0xaa) >> 1;
}

/*
 * Each packet of a sprayed flow has its own hash. With `route: spray` the switches of the first tier
 * read its first byte and those of the second its second one: packets in a row take the ways in
 * turn, and in every 256 of them each way comes up alike, in an order that changes.
 */
static inline uint32_t spray_hash(struct net_conn *c)
{
    uint32_t i = c->spray++, turn = net_mix32(c->hash_fwd + (i >> 8));
    uint32_t first = reversed8(i & 255), second = reversed8(((i >> 4) | (i << 4)) & 255);

    return (first << 24 | second << 16 | (net_mix32(turn + i) & 0xffff)) ^ (turn & 0xffff0000u);
}

/* Several messages lie in the stream: the tag of the one that byte @at belongs to. */
static uint32_t tag_at(const struct net_conn *c, uint64_t at)
{
    const struct net_share *s = c->head;

    while (s->next && s->end <= at)
        s = s->next;
    return s->tag;
}

static void emit_tx(struct gw_tx *tx, struct gw_pkt *p, uint64_t now_ps)
{
    struct net *n = tx->net;
    struct net_conn *c = GW_CONTAINER(tx, struct net_conn, tx);

    p->flow = tx->flow;
    p->src = tx->src;
    p->dst = tx->dst;
    p->priority = tx->priority;
    p->dscp = tx->dscp;
    p->tag = GW_UNLIKELY(c->head != c->tail) ? tag_at(c, tx->at_bytes) : c->tag;
    p->hash = c->hash_fwd;
    if (GW_UNLIKELY(c->sprayed))
        p->hash = spray_hash(c);
    net_port_send(n, &n->port[c->out_fwd], p, now_ps);
}

static void emit_rx(struct gw_rx *rx, struct gw_pkt *p, uint64_t now_ps)
{
    struct net *n = rx->net;
    struct net_conn *c = GW_CONTAINER(rx, struct net_conn, rx);

    p->flow = rx->flow;
    p->src = rx->dst;
    p->dst = rx->src;
    p->flags |= GW_PKT_REVERSE;
    p->hash = c->hash_rev;
    if (GW_UNLIKELY(c->sprayed))
        p->hash = spray_hash(c);
    net_port_send(n, &n->port[c->out_rev], p, now_ps);
}

static struct gw_pkt *pkt_copy(void *net, const struct gw_pkt *p)
{
    struct net *n = net;
    struct gw_pkt *d = net_pkt_alloc(n);

    if (!d)
        return NULL;
    *d = *p;
    d->next = NULL;
    d->ext = GW_NONE;
    if (p->ext != GW_NONE) {
        if (!ext_alloc(n, d)) {
            net_pkt_free(n, d);
            return NULL;
        }
        memcpy(ext_at(n, d), ext_at(n, p), ext_stride(n));
    }
    if (GW_UNLIKELY(n->logs))
        net_log_copy(n, p, d);
    return d;
}

/* The last segment is the super-packet itself. A transport that is over says no header. */
static struct gw_pkt *pkt_segment(void *net, struct gw_pkt *p, uint32_t i)
{
    struct net *n = net;
    const struct net_conn *c = n->conn[p->flow];
    uint32_t last = p->seg_count - 1u, rest = p->len_bytes - last * p->seg_bytes;
    struct gw_pkt *s = i == last ? p : pkt_copy(n, p);

    if (!s)
        return NULL;
    if (c && c->tp->ops->segment)
        c->tp->ops->segment(s, i);
    s->len_bytes = s->sched_bytes = i == last ? rest : p->seg_bytes;
    s->seg_bytes = s->seg_count = 0;
    return s;
}

static void timer_set(void *net, struct gw_timer *t, uint64_t at_ps)
{
    gw_engine_timer_set(((struct net *)net)->engine, t, at_ps);
}

static void timer_stop(void *net, struct gw_timer *t)
{
    gw_engine_timer_stop(((struct net *)net)->engine, t);
}

bool net_pkt_facts(const struct net_conn *c, const struct gw_pkt *p, struct gw_pkt_facts *facts)
{
    *facts = (struct gw_pkt_facts){ .number = UINT64_MAX };
    if (c && c->tp->ops->describe)
        c->tp->ops->describe(p, facts);
    return facts->what != 0;
}

static bool pkt_facts(void *net, const struct gw_pkt *p, struct gw_pkt_facts *facts)
{
    const struct net *n = net;

    return net_pkt_facts(p->flags & GW_PKT_FRAME ? NULL : n->conn[p->flow], p, facts);
}

static void trace(struct gw_tx *tx, const char *line, uint64_t now_ps)
{
    struct net *n = tx->net;
    struct net_conn *c = GW_CONTAINER(tx, struct net_conn, tx);
    const struct net_trace *t = trace_of(n, c->job);

    fprintf(t->file, "%llu,%u,%s\n", (unsigned long long)now_ps, tx->flow, line);
}

void net_host_functions(struct gw_host *h)
{
    h->pkt_alloc = net_pkt_alloc;
    h->pkt_free = net_pkt_free;
    h->ext_alloc = ext_alloc;
    h->ext_get = net_ext_get;
    h->timer_set = timer_set;
    h->timer_stop = timer_stop;
    h->pkt_copy = pkt_copy;
    h->pkt_segment = pkt_segment;
    h->pkt_flip = pkt_flip;
    gw_tree_host(h);
    h->nic_room = net_nic_room;
    h->emit_tx = emit_tx;
    h->emit_rx = emit_rx;
    h->rx_deliver = rx_deliver;
    h->rx_message = rx_message;
    h->tx_acked = tx_acked;
    h->tx_closed = tx_closed;
    h->fluid_done = fluid_done;
    h->pkt_facts = pkt_facts;
    h->trace = trace;
}

/* ---- transports --------------------------------------------------------------------------- */

/* Where the option stands in the configuration that was read; NULL: the plugin has none so named. */
static const void *option_at(const struct net_transport *tp, const char *name)
{
    const struct gw_plugin *p = tp->entry->plugin;

    for (uint32_t i = 0; i < p->param_count; i++)
        if (!strcmp(p->params[i].name, name))
            return (const char *)tp->conf + p->params[i].offset;
    return NULL;
}

static bool switched_on(const struct net_transport *tp, const char *name)
{
    const bool *on = option_at(tp, name);

    return on && *on;
}

/* Both the transport's rows and its congestion control's are read from one map: each skips the
 * other's keys. */
static enum gw_status read_conf(struct net_transport *tp, struct gw_value *v, const char *what,
                                struct gw_error *err)
{
    const struct gw_plugin *a = tp->entry->plugin, *b = tp->cc ? tp->cc->plugin : NULL;
    const char *skip_a[GW_GIVEN_MAX + 2] = { "kind" }, *skip_b[GW_GIVEN_MAX + 2] = { "kind" };

    for (uint32_t i = 0; b && i < b->param_count; i++)
        skip_a[i + 1] = b->params[i].name;
    for (uint32_t i = 0; i < a->param_count; i++)
        skip_b[i + 1] = a->params[i].name;
    if (a->params && gw_params_read(a->params, a->param_count, tp->conf, v, skip_a, what, NULL,
                                    err) != GW_OK)
        return err->code;
    if (b && b->params)
        return gw_params_read(b->params, b->param_count, tp->cc_conf, v, skip_b, what, NULL, err);
    return GW_OK;
}

static enum gw_status transport_cc(struct net *n, struct net_transport *tp, struct gw_value *v,
                                   const char *where, struct gw_error *err)
{
    const struct gw_entry *e = tp->entry;
    const struct gw_value *given = gw_value_get(v, "cc");
    const char *name = NULL;
    char at[256];

    for (uint32_t i = 0; i < e->plugin->param_count; i++)
        if (!strcmp(e->plugin->params[i].name, "cc"))
            name = given && given->text ? given->text : e->plugin->params[i].def;
    if (!name || !*name)
        return GW_OK;
    tp->cc = gw_registry_find(n->registry, GW_KIND_CC, name,
                              given ? gw_value_where(given, at, sizeof at) : where, err);
    if (!tp->cc)
        return err->code;
    if (((const struct gw_cc_ops *)tp->cc->ops)->telemetry)
        n->telemetry = true;
    tp->cc_conf = calloc(1, ((const struct gw_cc_ops *)tp->cc->ops)->conf_bytes + 1);
    return tp->cc_conf ? GW_OK : gw_fail(err, GW_NOMEM, "out of memory for the transport");
}

static enum gw_status fluid_new(struct net *n, struct net_transport *tp, struct gw_error *err)
{
    struct gw_fluid *f = calloc(1, sizeof *f);

    if (!f)
        return gw_fail(err, GW_NOMEM, "out of memory for the transport");
    tp->fluid = f;
    f->ops = tp->ops;
    f->host = n->host;
    f->net = n;
    f->conf = tp->conf;
    f->link_count = n->ports;
    f->link_rate_bps = n->link_rate_bps;
    f->comp = n->nodes + n->ports + n->fluid_count++;
    f->priv = calloc(1, tp->ops->fluid_bytes + 1);
    if (!f->priv)
        return gw_fail(err, GW_NOMEM, "out of memory for the transport");
    return tp->ops->fluid_init(f, err);
}

static enum gw_status check_mtu(const struct net_transport *tp, uint32_t mtu_bytes,
                                const char *where, struct gw_error *err)
{
    struct gw_error inner = { 0 };

    if (!tp->ops->check || tp->ops->level != GW_TP_PACKET ||
        tp->ops->check(tp->conf, tp->cc ? tp->cc->ops : NULL, mtu_bytes, &inner) == GW_OK)
        return GW_OK;
    return gw_fail(err, inner.code, "%s: transport %s: %s", where, tp->entry->plugin->name,
                   inner.text);
}

enum gw_status net_transport_fits(const struct net *n, const struct net_transport *tp,
                                  const uint32_t *path, uint32_t len, struct gw_error *err)
{
    const struct gw_graph_link *narrow = NULL;
    char where[300];

    for (uint32_t i = 0; i < len; i++)
        if (!narrow || n->graph->link[path[i] / 2].mtu_bytes < narrow->mtu_bytes)
            narrow = &n->graph->link[path[i] / 2];
    if (!narrow)
        return GW_OK;
    snprintf(where, sizeof where, "link %.250s", narrow->name);
    return check_mtu(tp, narrow->mtu_bytes, where, err);
}

/* What no way of this network could carry, and what is wrong on any. */
static enum gw_status transport_check(const struct net *n, const struct net_transport *tp,
                                      const char *where, struct gw_error *err)
{
    uint32_t mtu_bytes = n->graph->link_count ? 0 : 1500;

    for (uint32_t i = 0; i < n->graph->link_count; i++)
        if (n->graph->link[i].mtu_bytes > mtu_bytes)
            mtu_bytes = n->graph->link[i].mtu_bytes;
    return check_mtu(tp, mtu_bytes, where, err);
}

struct net_transport *net_add_transport(struct net *n, struct gw_value *v, struct gw_error *err)
{
    struct net_transport *tp = calloc(1, sizeof *tp);
    const uint32_t *streams;
    const uint64_t *flush_ps;
    struct gw_value *kind = gw_value_get(v, "kind");
    char where[256] = "transport", what[300];

    if (!tp) {
        gw_fail(err, GW_NOMEM, "out of memory for the transport");
        return NULL;
    }
    tp->next = n->transports;
    n->transports = tp;
    if (v)
        gw_value_where(kind ? kind : v, where, sizeof where);
    tp->entry = gw_registry_find(n->registry, GW_KIND_TRANSPORT,
                                 kind && kind->text ? kind->text : "tcp", where, err);
    if (!tp->entry)
        return NULL;
    tp->ops = tp->entry->ops;
    tp->conf = calloc(1, tp->ops->conf_bytes + 1);
    snprintf(what, sizeof what, "transport %s", tp->entry->plugin->name);
    if (!tp->conf) {
        gw_fail(err, GW_NOMEM, "out of memory for the transport");
        return NULL;
    }
    if (transport_cc(n, tp, v, where, err) != GW_OK || read_conf(tp, v, what, err) != GW_OK)
        return NULL;
    streams = option_at(tp, "streams");
    tp->streams = tp->ops->level == GW_TP_PACKET && streams ? *streams : 1;
    if (tp->streams < 1 || tp->streams > 64) {
        gw_fail(err, GW_PARAM, "%s: streams = %u: 1 to 64 are allowed", where, tp->streams);
        return NULL;
    }
    tp->supers = tp->ops->segment && switched_on(tp, "offload");
    flush_ps = option_at(tp, "gro_flush_timeout");
    tp->merges_instants = switched_on(tp, "gro") && !(flush_ps && *flush_ps);
    n->supers |= tp->supers;
    if (tp->ops->ext_bytes > n->ext_bytes)
        n->ext_bytes = tp->ops->ext_bytes;
    if (tp->ops->level == GW_TP_FLUID && fluid_new(n, tp, err) != GW_OK)
        return NULL;
    return transport_check(n, tp, where, err) == GW_OK ? tp : NULL;
}

/* ---- the end ------------------------------------------------------------------------------ */

void net_conn_free_all(struct net *n)
{
    for (uint32_t i = 0; i < n->conn_count; i++) {
        struct net_conn *c = n->conn[i];

        if (!c)
            continue;
        conn_fini(c);
        while (c->head) {
            struct net_share *s = c->head;

            c->head = s->next;
            free(s);
        }
    }
    net_chunks_free(&n->conn_chunks);
    while (n->share_free) {
        struct net_share *s = n->share_free;

        n->share_free = s->next;
        free(s);
    }
    for (uint32_t i = 0; i < n->pair_slots; i++)
        while (n->pair[i]) {
            struct net_pair *p = n->pair[i];

            n->pair[i] = p->next;
            free(p->conn);
            free(p->path);
            free(p);
        }
    free(n->pair);
    free(n->conn);
    free(n->kept);
    while (n->transports) {
        struct net_transport *tp = n->transports;

        n->transports = tp->next;
        if (tp->fluid) {
            if (tp->ops->fluid_fini)
                tp->ops->fluid_fini(tp->fluid);
            free(tp->fluid->priv);
            free(tp->fluid);
        }
        for (uint32_t i = 0; tp->shared && i < n->nodes; i++)
            free(tp->shared[i]);
        free(tp->shared);
        free(tp->conf);
        free(tp->cc_conf);
        free(tp);
    }
}
