/*
 * prog - runs the programs of ranks: operations, dependencies, matching, iterations
 *
 * An operation is added with the operations that it waits for; when the last of them ends it is
 * ready. Ready operations are worked off from a list, never by recursion. Compute is a resource
 * with a FIFO and a speed: it slows down while messages of the rank move (overlap_slowdown).
 * Sends and receives are matched by (job, communicator, source, destination, tag) in order of
 * posting; a send begins at once (eager), whether or not its receive is posted.
 *
 * Every operation carries the last message that it waited for, walking back over local work; that
 * is what makes critical flows visible in the records.
 *
 * Time of a rank is split without gaps: compute (accelerator busy), exposed (idle while a message
 * of this rank or a reduction is under way), wait (idle with nothing under way).
 *
 * Left out: preemption of messages, a dry run with per-message costs.
 */
#include <math.h>
#include <stdlib.h>

#include "emu/net/prog.h"
#include "emu/net/way.h"

enum op_state { OP_WAITING, OP_READY, OP_RUNNING, OP_DONE };

struct rt_edge {
    struct rt_edge *next;
    struct rt_op   *to;
};

struct rt_op {
    struct gw_op    op;
    struct rt_rank *rank;
    gw_op_id        id;
    uint32_t        waits;
    uint8_t         state;
    bool            watched;
    struct rt_edge *dependents, **dependents_tail;
    struct rt_op   *next;          /* ready list, resource queue, matching table               */
    uint64_t        ready_ps;
    uint64_t        cause_msg, cause_ps;
    struct rt_delay *delay;        /* NULL: it is none                                         */
};

struct rt_delay {
    struct rt_delay *next_free;
    struct gw_timer timer;
};

struct rt_resource {
    struct rt_op *head, *tail;     /* head runs                                                */
    struct gw_timer timer;
    double   left_ps;              /* work left of the running one, at speed 1                 */
    double   speed;
    uint64_t since_ps;
    uint64_t cause_msg, cause_ps;  /* of the last one that ended                               */
};

struct rt_rank {
    struct gw_program program;
    struct rt_job *job;
    struct rt    *rt;
    uint32_t node;
    uint64_t global;               /* number among all ranks of all jobs, from 1               */
    struct rt_op **window;         /* operations by id - base; NULL: ended                     */
    uint64_t base, next_id;
    uint32_t window_cap, window_first;
    uint64_t open_ops;
    uint64_t messages, flows;      /* counters for ids                                         */
    uint32_t next_iteration;
    bool     ended;
    struct rt_resource res[GW_RES_COUNT];
    struct gw_timer start;
    /* the split of time */
    uint64_t since_ps, compute_ps, exposed_ps, wait_ps, iter_begin_ps;
    uint32_t comm_active, other_busy;
    struct gw_rng jitter;
};

struct rt_coll {                   /* begun collectives of a rank, few at a time               */
    struct rt_coll *next;
    struct rt_rank *rank;
    uint32_t collective;
    uint64_t begin_ps;
};

struct rt_frames {                 /* a frame source                                           */
    struct rt_frames *next;
    struct rt_rank *rank;
    struct gw_frame_source f;
    struct gw_timer timer;
    struct gw_rng   rng;
    uint64_t sent, arrival;
    double   at_ps;
    uint64_t start_ps;
    uint32_t src, dst, out;
};

struct rt_job {
    struct gw_job  job;
    struct rt     *rt;
    struct rt_job *next;
    struct rt_rank *rank;
    struct net_transport *transport;
    uint32_t *node;
    void     *conf;
    double    jitter, overlap_slowdown;
    double   *slow;
    char     *name, *where;
    const struct gw_entry *entry;
    struct rt_coll *colls;
    uint64_t *iter_end;            /* per iteration: latest end, GW_NEVER if not all ended     */
    uint64_t *iter_begin;          /* earliest begin                                           */
    uint32_t *iter_ranks;          /* ranks that have ended it                                 */
    uint64_t  iters_done;
};

struct rt {
    struct net    *net;
    struct rt_job *jobs;           /* in order of addition                                     */
    uint32_t       job_count;
    uint64_t       rank_count, ranks_ended;
    struct rt_op  *ready, **ready_tail;
    bool           working;
    struct rt_op  *op_free;
    struct rt_edge *edge_free;
    struct rt_delay *delay_free;
    struct net_msg *msg_free;
    struct net_holes *holes_free;
    struct net_whole *whole_free;
    size_t         whole_bytes;    /* with the fluid flow's private part                       */
    struct net_chunks chunks;      /* memory of ops, edges and messages                        */
    struct net_msg **sends;        /* matching table: posted sends, by key                     */
    struct rt_op  **recvs;
    uint32_t       slots, pending;
    struct rt_frames *frames;
    uint64_t       frame_count, frames_done;
    uint64_t       posted_bytes, done_bytes, iterations, iterations_done;
    uint64_t       messages;
    struct gw_sink *sink;
    bool           dry;
    void         (*dry_msg)(void *, const struct rt_dry_msg *);
    void          *dry_ctx;
};

/* ---- memory ------------------------------------------------------------------------------- */

static void *chunk_new(struct rt *rt, size_t bytes)
{
    return net_chunks_keep(&rt->chunks, calloc(1, bytes));
}

#define FILL_FREE_LIST(type, list, link, n)                                     \
    do {                                                                        \
        type *c_ = chunk_new(rt, (n) * sizeof(type));                           \
                                                                                \
        for (uint32_t i_ = 0; c_ && i_ < (n); i_++) {                           \
            c_[i_].link = rt->list;                                             \
            rt->list = &c_[i_];                                                 \
        }                                                                       \
    } while (0)

static struct rt_op *op_new(struct rt *rt)
{
    struct rt_op *o;

    if (!rt->op_free)
        FILL_FREE_LIST(struct rt_op, op_free, next, 256u);
    o = rt->op_free;
    if (!o)
        return NULL;
    rt->op_free = o->next;
    memset(o, 0, sizeof *o);
    o->dependents_tail = &o->dependents;
    return o;
}

static struct net_msg *msg_new(struct rt *rt)
{
    struct net_msg *m;

    if (!rt->msg_free)
        FILL_FREE_LIST(struct net_msg, msg_free, next, 64u);
    m = rt->msg_free;
    if (!m)
        return NULL;
    rt->msg_free = m->next;
    memset(m, 0, sizeof *m);
    return m;
}

static void nomem(struct rt *rt)
{
    net_fail(rt->net, GW_NOMEM, "out of memory for operations of programs; use fewer ranks, "
             "iterations or a larger fusion buffer");
}

struct net_whole *rt_msg_whole(struct net *n, struct net_msg *m)
{
    struct rt *rt = n->rt;
    struct net_whole *w;

    if (!rt->whole_free) {
        char *c = chunk_new(rt, 64 * rt->whole_bytes);

        for (uint32_t i = 0; c && i < 64; i++) {
            w = (struct net_whole *)(void *)(c + i * rt->whole_bytes);
            w->next_free = rt->whole_free;
            rt->whole_free = w;
        }
    }
    w = rt->whole_free;
    if (!w) {
        nomem(rt);
        return NULL;
    }
    rt->whole_free = w->next_free;
    memset(w, 0, rt->whole_bytes);
    w->msg = m;
    return m->whole = w;
}

struct net_holes *rt_msg_holes(struct net *n, struct net_msg *m)
{
    struct rt *rt = n->rt;
    struct net_holes *h;

    if (!rt->holes_free)
        FILL_FREE_LIST(struct net_holes, holes_free, next_free, 64u);
    h = rt->holes_free;
    if (!h) {
        nomem(rt);
        return NULL;
    }
    rt->holes_free = h->next_free;
    memset(h, 0, sizeof *h);
    return m->holes = h;
}

/* ---- the split of a rank's time ----------------------------------------------------------- */

static void account(struct rt_rank *r, uint64_t now_ps)
{
    uint64_t dt = now_ps - r->since_ps;

    r->since_ps = now_ps;
    if (r->res[GW_RES_COMPUTE].head)
        r->compute_ps += dt;
    else if (r->comm_active || r->other_busy)
        r->exposed_ps += dt;
    else
        r->wait_ps += dt;
}

/* ---- resources ---------------------------------------------------------------------------- */

static void op_ready(struct rt *rt, struct rt_op *o)
{
    o->state = OP_READY;
    o->next = NULL;
    *rt->ready_tail = o;
    rt->ready_tail = &o->next;
}

static double compute_speed(const struct rt_rank *r)
{
    return r->comm_active ? 1.0 / r->job->overlap_slowdown : 1.0;
}

static void resource_arm(struct rt_rank *r, struct rt_resource *res, uint64_t now_ps)
{
    double t = res->left_ps / res->speed;

    gw_engine_timer_set(r->rt->net->engine, &res->timer,
                        now_ps + (uint64_t)llround(t < 0 ? 0 : t));
}

/* The speed has changed: what is left of the running operation takes another time. */
static void compute_retime(struct rt_rank *r, uint64_t now_ps)
{
    struct rt_resource *res = &r->res[GW_RES_COMPUTE];
    double speed;

    if (r->job->overlap_slowdown == 1.0)
        return;
    speed = compute_speed(r);
    if (!res->head || speed == res->speed)
        return;
    res->left_ps -= (double)(now_ps - res->since_ps) * res->speed;
    res->since_ps = now_ps;
    res->speed = speed;
    resource_arm(r, res, now_ps);
}

static double op_work(struct rt_op *o)
{
    struct rt_rank *r = o->rank;
    double d = (double)o->op.duration_ps;

    if (!(o->op.flags & GW_OP_JITTER))
        return d;
    if (r->job->slow)
        d *= r->job->slow[r->program.rank];
    if (r->job->jitter > 0) {
        double s2 = log1p(r->job->jitter * r->job->jitter);

        d *= exp(sqrt(s2) * gw_rng_normal(&r->jitter) - s2 / 2);
    }
    return d;
}

static void resource_begin(struct rt_rank *r, struct rt_resource *res, uint64_t now_ps)
{
    struct rt_op *o = res->head;
    bool main = res == &r->res[GW_RES_COMPUTE];

    o->state = OP_RUNNING;
    if (o->ready_ps < now_ps && res->cause_ps > o->cause_ps) {
        o->cause_msg = res->cause_msg;              /* it was held up by the one before it     */
        o->cause_ps = res->cause_ps;
    }
    res->left_ps = op_work(o);
    res->speed = main ? compute_speed(r) : 1.0;
    res->since_ps = now_ps;
    resource_arm(r, res, now_ps);
}

static void resource_push(struct rt_op *o, uint64_t now_ps)
{
    struct rt_rank *r = o->rank;
    struct rt_resource *res = &r->res[o->op.resource];

    o->next = NULL;
    if (res->head) {
        res->tail->next = o;
        res->tail = o;
        return;
    }
    account(r, now_ps);
    res->head = res->tail = o;
    if (o->op.resource != GW_RES_COMPUTE)
        r->other_busy++;
    resource_begin(r, res, now_ps);
}

static void op_end(struct rt_op *o, uint64_t now_ps);
static void work_off(struct rt *rt, uint64_t now_ps);

static void resource_fire(void *owner, uint64_t now_ps)
{
    struct rt_resource *res = owner;
    struct rt_op *o = res->head;
    struct rt_rank *r = o->rank;

    account(r, now_ps);
    res->head = o->next;
    res->cause_msg = o->cause_msg;
    res->cause_ps = o->cause_ps;
    if (res->head)
        resource_begin(r, res, now_ps);
    else if (o->op.resource != GW_RES_COMPUTE)
        r->other_busy--;
    op_end(o, now_ps);
    work_off(r->rt, now_ps);
}

/* ---- matching ----------------------------------------------------------------------------- */

static uint32_t key_hash(uint32_t job, uint32_t comm, uint32_t src, uint32_t dst, uint32_t tag)
{
    return (uint32_t)gw_mix64(gw_mix64((uint64_t)src << 32 | dst) ^
                              ((uint64_t)tag << 32 | (comm << 8 ^ job)));
}

static uint32_t msg_key(const struct net_msg *m)
{
    return key_hash(m->job_index, m->comm, m->src_rank, m->dst_rank, m->tag);
}

static uint32_t recv_key(const struct rt_op *o)
{
    return key_hash(o->rank->job->job.index, o->op.comm, o->op.peer, o->rank->program.rank,
                    o->op.tag);
}

static bool matches(const struct net_msg *m, const struct rt_op *o)
{
    return m->job == o->rank->job && m->comm == o->op.comm && m->src_rank == o->op.peer &&
           m->dst_rank == o->rank->program.rank && m->tag == o->op.tag;
}

static bool table_grow(struct rt *rt)
{
    uint32_t slots = rt->slots ? rt->slots * 2 : 1024;
    struct net_msg **s = calloc(slots, sizeof *s);
    struct rt_op **v = calloc(slots, sizeof *v);

    if (!s || !v) {
        free(s);
        free(v);
        return false;
    }
    for (uint32_t i = 0; i < rt->slots; i++) {     /* append, so that the order is kept        */
        struct net_msg *m = rt->sends[i], *mn;
        struct rt_op *o = rt->recvs[i], *on;

        for (; m; m = mn) {
            struct net_msg **at = &s[msg_key(m) & (slots - 1)];

            mn = m->next;
            m->next = NULL;
            while (*at)
                at = &(*at)->next;
            *at = m;
        }
        for (; o; o = on) {
            struct rt_op **at = &v[recv_key(o) & (slots - 1)];

            on = o->next;
            o->next = NULL;
            while (*at)
                at = &(*at)->next;
            *at = o;
        }
    }
    free(rt->sends);
    free(rt->recvs);
    rt->sends = s;
    rt->recvs = v;
    rt->slots = slots;
    return true;
}

static bool table_room(struct rt *rt)
{
    if (rt->pending >= rt->slots && !table_grow(rt)) {
        nomem(rt);
        return false;
    }
    rt->pending++;
    return true;
}

static void fail_size(struct rt *rt, const struct net_msg *m, const struct rt_op *o)
{
    char text[512];

    snprintf(text, sizeof text, "job %s: rank %u sends %llu bytes to rank %u (tag %u), which "
             "expects %llu; both ends of a message must agree", m->job->job.name, m->src_rank,
             (unsigned long long)m->bytes, m->dst_rank, m->tag, (unsigned long long)o->op.bytes);
    net_fail(rt->net, GW_PARAM, text);
}

static void match_send(struct rt *rt, struct net_msg *m)
{
    struct rt_op **at = &rt->recvs[rt->slots ? msg_key(m) & (rt->slots - 1) : 0];
    struct net_msg **tail;

    for (; rt->slots && *at; at = &(*at)->next)
        if (matches(m, *at)) {
            struct rt_op *o = *at;

            *at = o->next;
            rt->pending--;
            if (o->op.bytes != m->bytes)
                fail_size(rt, m, o);
            m->recv_op = o;
            return;
        }
    if (!table_room(rt))
        return;
    m->next = NULL;
    tail = &rt->sends[msg_key(m) & (rt->slots - 1)];
    while (*tail)
        tail = &(*tail)->next;
    *tail = m;
}

/* The receive is over; what it waited for last was the message, if that came after the post. */
static void recv_end(struct rt_op *o, const struct net_msg *m, uint64_t now_ps)
{
    if (m->end_ps > o->ready_ps || !o->cause_msg) {
        o->cause_msg = m->id;
        o->cause_ps = m->end_ps;
    }
    op_end(o, now_ps);
}

/* What came of a message that may have holes goes to the program that watches the receive. */
static void tell_arrival(struct rt_op *o, const struct net_msg *m, uint64_t now_ps)
{
    const struct gw_traffic_ops *ops = o->rank->job->job.ops;

    if (o->watched && ops->on_received && m->holes && m->holes->arrival.bytes)
        ops->on_received(&o->rank->program, o->id, &m->holes->arrival, now_ps);
}

/* Nobody has asked for the message yet: the bitmap is kept. */
static void keep_arrival(struct net_msg *m)
{
    struct net_holes *h = m->holes;
    size_t bytes;

    if (!h || !h->arrival.bitmap)
        return;
    bytes = ((size_t)h->arrival.grains + 63) / 64 * 8;
    h->bitmap = m->job->job.ops->on_received ? malloc(bytes) : NULL;
    if (h->bitmap)
        memcpy(h->bitmap, h->arrival.bitmap, bytes);
    h->arrival.bitmap = h->bitmap;
}

static void msg_unref(struct rt *rt, struct net_msg *m)
{
    if (--m->refs)
        return;
    if (m->holes) {
        free(m->holes->bitmap);
        m->holes->next_free = rt->holes_free;
        rt->holes_free = m->holes;
    }
    if (m->whole) {
        m->whole->next_free = rt->whole_free;
        rt->whole_free = m->whole;
    }
    m->next = rt->msg_free;
    rt->msg_free = m;
}

static void match_recv(struct rt *rt, struct rt_op *o, uint64_t now_ps)
{
    struct net_msg **at = &rt->sends[rt->slots ? recv_key(o) & (rt->slots - 1) : 0];
    struct rt_op **tail;

    for (; rt->slots && *at; at = &(*at)->next)
        if (matches(*at, o)) {
            struct net_msg *m = *at;

            *at = m->next;
            rt->pending--;
            if (o->op.bytes != m->bytes)
                fail_size(rt, m, o);
            if (m->arrived) {
                tell_arrival(o, m, now_ps);
                recv_end(o, m, now_ps);
                msg_unref(rt, m);
            } else {
                m->recv_op = o;
            }
            return;
        }
    if (!table_room(rt))
        return;
    o->next = NULL;
    tail = &rt->recvs[recv_key(o) & (rt->slots - 1)];
    while (*tail)
        tail = &(*tail)->next;
    *tail = o;
}

/* ---- operations --------------------------------------------------------------------------- */

static struct rt_op **window_at(struct rt_rank *r, gw_op_id id)
{
    if (id < r->base || id >= r->next_id)
        return NULL;
    return &r->window[(r->window_first + (id - r->base)) & (r->window_cap - 1)];
}

/* The window is a ring over ids; ended operations at its beginning are forgotten. */
static bool window_push(struct rt_rank *r, struct rt_op *o)
{
    uint64_t live = r->next_id - r->base;

    if (live == r->window_cap) {
        uint32_t cap = r->window_cap ? r->window_cap * 2 : 64;
        struct rt_op **w = calloc(cap, sizeof *w);

        if (!w)
            return false;
        for (uint64_t i = 0; i < live; i++)
            w[i] = r->window[(r->window_first + i) & (r->window_cap - 1)];
        free(r->window);
        r->window = w;
        r->window_cap = cap;
        r->window_first = 0;
    }
    o->id = r->next_id++;
    r->window[(r->window_first + live) & (r->window_cap - 1)] = o;
    return true;
}

static gw_op_id op_add(struct gw_program *p, const struct gw_op *op, const gw_op_id *after,
                       uint32_t after_count)
{
    struct rt_rank *r = GW_CONTAINER(p, struct rt_rank, program);
    struct rt *rt = r->rt;
    struct rt_op *o = op_new(rt);

    if (!o)
        goto nomem;
    o->op = *op;
    o->rank = r;
    if (!window_push(r, o))
        goto nomem;
    r->open_ops++;
    for (uint32_t i = 0; i < after_count; i++) {
        struct rt_op **at = after[i] && after[i] != o->id ? window_at(r, after[i]) : NULL;
        struct rt_edge *e;

        if (!at || !*at)
            continue;                               /* it has ended                            */
        if (!rt->edge_free)
            FILL_FREE_LIST(struct rt_edge, edge_free, next, 512u);
        e = rt->edge_free;
        if (!e)
            goto nomem;
        rt->edge_free = e->next;
        e->next = NULL;
        e->to = o;
        *(*at)->dependents_tail = e;
        (*at)->dependents_tail = &e->next;
        o->waits++;
    }
    if (!o->waits)
        op_ready(rt, o);
    return o->id;
nomem:
    nomem(rt);
    return 0;
}

static void op_watch(struct gw_program *p, gw_op_id id)
{
    struct rt_rank *r = GW_CONTAINER(p, struct rt_rank, program);
    struct rt_op **at = window_at(r, id);

    if (at && *at)
        (*at)->watched = true;
}

static void op_end(struct rt_op *o, uint64_t now_ps)
{
    struct rt_rank *r = o->rank;
    struct rt *rt = r->rt;

    o->state = OP_DONE;
    while (o->dependents) {
        struct rt_edge *e = o->dependents;
        struct rt_op *d = e->to;

        o->dependents = e->next;
        if (o->cause_ps >= d->cause_ps && o->cause_msg) {
            d->cause_msg = o->cause_msg;
            d->cause_ps = o->cause_ps;
        }
        if (--d->waits == 0)
            op_ready(rt, d);
        e->next = rt->edge_free;
        rt->edge_free = e;
    }
    *window_at(r, o->id) = NULL;
    while (r->base < r->next_id && !r->window[r->window_first]) {
        r->base++;
        r->window_first = (r->window_first + 1) & (r->window_cap - 1);
    }
    r->open_ops--;
    if (o->watched && r->job->job.ops->on_complete)
        r->job->job.ops->on_complete(&r->program, o->id, now_ps);
    o->next = rt->op_free;
    rt->op_free = o;
}

static void delay_fire(void *owner, uint64_t now_ps)
{
    struct rt_op *o = owner;
    struct rt *rt = o->rank->rt;

    o->delay->next_free = rt->delay_free;
    rt->delay_free = o->delay;
    op_end(o, now_ps);
    work_off(rt, now_ps);
}

static void start_delay(struct rt_op *o, uint64_t now_ps)
{
    struct rt *rt = o->rank->rt;

    if (!rt->delay_free)
        FILL_FREE_LIST(struct rt_delay, delay_free, next_free, 64u);
    o->delay = rt->delay_free;
    if (!o->delay) {
        nomem(rt);
        return;
    }
    rt->delay_free = o->delay->next_free;
    o->delay->timer = (struct gw_timer){ .fire = delay_fire, .owner = o, .comp = o->rank->node };
    gw_engine_timer_set(rt->net->engine, &o->delay->timer, gw_later(now_ps, o->op.duration_ps));
}

/* ---- messages ----------------------------------------------------------------------------- */

static void comm_begin(struct rt_rank *r, uint64_t now_ps)
{
    account(r, now_ps);
    r->comm_active++;
    compute_retime(r, now_ps);
}

static void comm_end(struct rt_rank *r, uint64_t now_ps)
{
    account(r, now_ps);
    r->comm_active--;
    compute_retime(r, now_ps);
}

static void dry_fire(void *owner, uint64_t now_ps)
{
    struct net_msg *m = owner;

    rt_msg_delivered(m->net, m, now_ps);
    rt_msg_acked(m->net, m, now_ps);
}

/* Alpha-beta on the path alone, with what disciplines and channels leave of it. */
static void send_dry(struct rt *rt, struct net_msg *m, uint64_t now_ps)
{
    uint32_t path[64], len;
    struct gw_pkt p = { .src = m->src_node, .dst = m->dst_node, .len_bytes = 1514,
                        .priority = m->priority, .tag = m->layer << 8 | (m->cls & 0xff) };
    struct net_dry_path d;
    struct gw_error err = { 0 };
    uint64_t delay;

    len = m->src_node == m->dst_node || !m->bytes ? 0 :
          net_path(rt->net, m->src_node, m->dst_node, (uint32_t)m->id, path, 64);
    if (len && net_transport_fits(rt->net, m->tp, path, len, &err) != GW_OK) {
        net_fail(rt->net, err.code, err.text);
        return;
    }
    rt->net->dry_tp = m->tp;
    d = net_dry_path(rt->net, path, len, &p, m->tp->streams);
    delay = (uint64_t)(d.delay_s * 1e12 + 0.5);
    if (d.rate_bps)
        delay += gw_mul_div(m->bytes, 8 * GW_PS_PER_S, d.rate_bps);
    if (m->bytes && rt->dry_msg)
        rt->dry_msg(rt->dry_ctx, &(struct rt_dry_msg){ m->job_index, m->src_node, m->dst_node,
                m->src_rank, m->dst_rank, m->iteration, m->collective, m->bytes, path, len, &p });
    m->start_ps = now_ps;
    if (!rt_msg_whole(rt->net, m))
        return;
    m->whole->timer = (struct gw_timer){ .fire = dry_fire, .owner = m, .comp = m->dst_node };
    gw_engine_timer_set(rt->net->engine, &m->whole->timer, now_ps + delay);
}

static void start_send(struct rt_op *o, uint64_t now_ps)
{
    struct rt_rank *r = o->rank;
    struct rt_job *j = r->job;
    struct rt *rt = r->rt;
    struct net_msg *m;

    if (o->op.peer >= j->job.ranks) {
        char text[256];

        snprintf(text, sizeof text, "job %s: rank %u sends to rank %u; ranks are 0 to %u",
                 j->job.name, r->program.rank, o->op.peer, j->job.ranks - 1);
        net_fail(rt->net, GW_PARAM, text);
        return;
    }
    m = msg_new(rt);
    if (!m) {
        nomem(rt);
        return;
    }
    m->net = rt->net;
    m->tp = j->transport;
    m->job = j;
    m->job_index = j->job.index;
    m->id = r->global << 40 | ++r->messages;
    m->flow_id = r->global << 40 | (r->flows + 1);
    r->flows += j->transport->streams;
    m->src_rank = r->program.rank;
    m->dst_rank = o->op.peer;
    m->src_node = r->node;
    m->dst_node = j->rank[o->op.peer].node;
    m->comm = o->op.comm;
    m->tag = o->op.tag;
    m->layer = o->op.layer;
    m->cls = o->op.cls;
    m->iteration = o->op.iteration;
    m->collective = o->op.collective;
    m->priority = o->op.priority;
    m->new_conn = o->op.flags & GW_OP_NEW_CONN;
    m->bytes = o->op.bytes;
    m->post_ps = now_ps;
    m->cause_msg = o->cause_msg;
    m->cause_ps = o->cause_ps;
    m->send_op = o;
    m->refs = 2;
    rt->messages++;
    rt->posted_bytes += m->bytes;
    o->state = OP_RUNNING;
    match_send(rt, m);
    comm_begin(r, now_ps);
    comm_begin(&j->rank[m->dst_rank], now_ps);
    if (rt->dry)
        send_dry(rt, m, now_ps);
    else
        net_send(rt->net, m, now_ps);
}

void rt_msg_delivered(struct net *n, struct net_msg *m, uint64_t now_ps)
{
    struct rt *rt = n->rt;
    struct rt_job *j = m->job;

    m->end_ps = now_ps;
    m->arrived = true;
    rt->done_bytes += m->bytes;
    comm_end(&j->rank[m->src_rank], now_ps);
    comm_end(&j->rank[m->dst_rank], now_ps);
    if (rt->sink && rt->sink->ops->message(rt->sink, &(struct gw_rec_message){
            .message = m->id, .job = m->job_index, .iteration = m->iteration,
            .collective = m->collective, .comm = m->comm, .tag = m->tag, .layer = m->layer,
            .cls = m->cls, .src_rank = m->src_rank, .dst_rank = m->dst_rank, .bytes = m->bytes,
            .post_ps = m->post_ps, .start_ps = m->start_ps, .end_ps = now_ps,
            .cause_message = m->cause_msg, .cause_wait_ps = m->post_ps - m->cause_ps }) != GW_OK)
        net_fail(n, GW_IO, "the records could not be written");
    if (m->recv_op) {
        struct rt_op *o = m->recv_op;

        m->recv_op = NULL;
        tell_arrival(o, m, now_ps);
        recv_end(o, m, now_ps);
        msg_unref(rt, m);
        work_off(rt, now_ps);
        return;
    }
    keep_arrival(m);
}

void rt_msg_acked(struct net *n, struct net_msg *m, uint64_t now_ps)
{
    struct rt_op *o = m->send_op;

    m->send_op = NULL;
    if (m->arrived && (m->end_ps > o->cause_ps || !o->cause_msg)) {
        o->cause_msg = m->id;                       /* what waits for it waits for the message */
        o->cause_ps = m->end_ps;
    }
    op_end(o, now_ps);
    msg_unref(n->rt, m);
    work_off(n->rt, now_ps);
}

/* ---- marks -------------------------------------------------------------------------------- */

static void pull_iteration(struct rt_rank *r)
{
    struct rt_job *j = r->job;
    struct gw_error err = { 0 };

    if (r->next_iteration >= j->job.iterations)
        return;
    if (j->job.ops->next(&r->program, r->next_iteration++, &err) != GW_OK)
        net_fail(r->rt->net, err.code, err.text);
}

static void iteration_ended(struct rt_op *o, uint64_t now_ps)
{
    struct rt_rank *r = o->rank;
    struct rt_job *j = r->job;
    struct rt *rt = r->rt;
    uint32_t i = o->op.iteration;

    account(r, now_ps);
    if (rt->sink && rt->sink->ops->iteration(rt->sink, &(struct gw_rec_iteration){
            .job = j->job.index, .iteration = i, .rank = r->program.rank,
            .start_ps = r->iter_begin_ps, .end_ps = now_ps, .compute_ps = r->compute_ps,
            .exposed_ps = r->exposed_ps, .wait_ps = r->wait_ps,
            .last_message = o->cause_msg }) != GW_OK)
        net_fail(rt->net, GW_IO, "the records could not be written");
    if (i < j->job.iterations) {
        if (r->iter_begin_ps < j->iter_begin[i])
            j->iter_begin[i] = r->iter_begin_ps;
        if (now_ps > j->iter_end[i])
            j->iter_end[i] = now_ps;
        if (++j->iter_ranks[i] == j->job.ranks)
            j->iters_done++;
    }
    rt->iterations_done++;
    r->compute_ps = r->exposed_ps = r->wait_ps = 0;
    r->iter_begin_ps = now_ps;
    if (r->next_iteration >= j->job.iterations && !r->ended) {
        r->ended = true;
        rt->ranks_ended++;
    }
    pull_iteration(r);
}

static void mark(struct rt_op *o, uint64_t now_ps)
{
    struct rt_rank *r = o->rank;
    struct rt_job *j = r->job;
    struct rt_coll *c, **at;

    switch (o->op.mark) {
    case GW_MARK_ITER_BEGIN:
        account(r, now_ps);
        r->compute_ps = r->exposed_ps = r->wait_ps = 0;
        r->iter_begin_ps = now_ps;
        break;
    case GW_MARK_ITER_END:
        iteration_ended(o, now_ps);
        break;
    case GW_MARK_COLL_BEGIN:
        c = malloc(sizeof *c);
        if (!c) {
            nomem(r->rt);
            break;
        }
        *c = (struct rt_coll){ j->colls, r, o->op.collective, now_ps };
        j->colls = c;
        break;
    case GW_MARK_COLL_END:
        for (at = &j->colls; *at; at = &(*at)->next)
            if ((*at)->rank == r && (*at)->collective == o->op.collective)
                break;
        c = *at;
        if (!c)
            break;
        *at = c->next;
        if (r->rt->sink)
            r->rt->sink->ops->collective(r->rt->sink, &(struct gw_rec_collective){
                j->job.index, c->collective, o->op.iteration, r->program.rank, o->op.layer,
                o->op.name ? o->op.name : "collective", o->op.bytes, c->begin_ps, now_ps });
        free(c);
        break;
    }
}

/* ---- the list of ready operations ---------------------------------------------------------- */

static void start_op(struct rt_op *o, uint64_t now_ps)
{
    struct rt *rt = o->rank->rt;

    o->ready_ps = now_ps;
    switch (o->op.kind) {
    case GW_OP_COMPUTE:
        if (o->op.resource >= GW_RES_COUNT)
            o->op.resource = GW_RES_COMPUTE;
        resource_push(o, now_ps);
        break;
    case GW_OP_DELAY:
        o->state = OP_RUNNING;
        start_delay(o, now_ps);
        break;
    case GW_OP_SEND:
        start_send(o, now_ps);
        break;
    case GW_OP_RECV:
        o->state = OP_RUNNING;
        match_recv(rt, o, now_ps);
        break;
    case GW_OP_MARK:
        mark(o, now_ps);
        op_end(o, now_ps);
        break;
    }
}

static void work_off(struct rt *rt, uint64_t now_ps)
{
    if (rt->working)
        return;
    rt->working = true;
    while (rt->ready && !rt->net->failed) {
        struct rt_op *o = rt->ready;

        rt->ready = o->next;
        if (!rt->ready)
            rt->ready_tail = &rt->ready;
        start_op(o, now_ps);
    }
    rt->working = false;
    if (rt_idle(rt))
        gw_engine_stop(rt->net->engine);
}

/* ---- frames ------------------------------------------------------------------------------- */

static void frame_arrival(struct rt_frames *s, uint64_t now_ps)
{
    struct net *n = s->rank->rt->net;

    for (uint32_t b = 0; b < s->f.burst && s->sent < s->f.count; b++) {
        struct gw_pkt *p = net_pkt_alloc(n);

        if (!p)
            return;
        p->flags = GW_PKT_FRAME;
        p->flow = s->f.flow;
        p->src = s->src;
        p->dst = s->dst;
        p->len_bytes = s->f.size_bytes;
        p->ecn = s->f.ecn;
        p->priority = s->f.priority;
        p->dscp = s->f.dscp;
        p->hash = net_mix32(s->f.flow * UINT32_C(0x9e3779b9) + s->src);
        p->tp[0] = s->sent++;
        p->tp[1] = (uint64_t)s->rank->job->job.index << 32 | s->f.flow;
        n->frames_sent++;
        net_port_send(n, &n->port[s->out], p, now_ps);
    }
}

/* When the next frame comes; GW_NEVER: beyond what a clock holds. */
static uint64_t next_arrival(struct rt_frames *s)
{
    uint64_t after;

    if (s->f.poisson) {
        s->at_ps += (double)s->f.interval_ps * gw_rng_exp(&s->rng);
        after = s->at_ps < 1.8e19 ? (uint64_t)s->at_ps : GW_NEVER;
    } else {
        after = gw_mul_div(s->arrival, s->f.interval_ps, 1);
    }
    return after > GW_NEVER - s->start_ps ? GW_NEVER : s->start_ps + after;
}

static void frame_fire(void *owner, uint64_t now_ps)
{
    struct rt_frames *s = owner;
    struct rt *rt = s->rank->rt;
    uint64_t next;

    if (rt->dry) {
        rt->frames_done++;
        return;
    }
    frame_arrival(s, now_ps);
    if (s->sent >= s->f.count) {
        rt->frames_done++;
        return;
    }
    s->arrival++;
    next = next_arrival(s);
    if (next >= GW_NEVER - 1 && rt->net->conf.until_ps)
        return;                                     /* the run ends before that                */
    if (next >= GW_NEVER - 1) {
        char text[256];

        snprintf(text, sizeof text, "job %s: frame %llu of flow %u lies beyond 213 days of simulated "
                 "time; lower count or interval", s->rank->job->job.name,
                 (unsigned long long)s->sent, s->f.flow);
        net_fail(rt->net, GW_RANGE, text);
        return;
    }
    gw_engine_timer_set(rt->net->engine, &s->timer, next);
}

static uint64_t frames_begin(const struct gw_job *job, const struct gw_frame_source *f)
{
    return job->start_ps > GW_NEVER - f->start_ps ? GW_NEVER - 1 : job->start_ps + f->start_ps;
}

/* The last arrival, by mean intervals, has to come within time, unless the run ends before. */
static enum gw_status frames_in_time(const struct net *n, const struct gw_job *job,
                                     const struct gw_frame_source *f, const char *where,
                                     struct gw_error *err)
{
    uint64_t last = f->count ? (f->count - 1) / (f->burst ? f->burst : 1) : 0;
    uint64_t span = gw_mul_div(last, f->interval_ps, 1), start = frames_begin(job, f);

    if (n->conf.until_ps || span < GW_NEVER - 1 - start)
        return GW_OK;
    return gw_fail(err, GW_RANGE, "%s: the last of %llu frames would come %.3g days after the first, "
                   "at %.3g s, and time ends with day 213; lower count or interval, or say `until:`",
                   where, (unsigned long long)f->count,
                   (double)last * (double)f->interval_ps / 8.64e16, (double)start * 1e-12);
}

/* A frame that no link of its path would take is refused before the run. */
static enum gw_status frame_check(struct gw_job *job, uint32_t from,
                                  const struct gw_frame_source *f, const char *where,
                                  struct gw_error *err)
{
    struct net *n = ((struct rt *)job->rt)->net;
    uint32_t path[64], len = from < job->ranks && f->to < job->ranks ?
                             net_path(n, job->node[from], job->node[f->to], 0, path, 64) : 0;

    for (uint32_t i = 0; i < len; i++) {
        const struct gw_graph_link *l = &n->graph->link[path[i] / 2];

        if (f->size_bytes > l->mtu_bytes + GW_ETH_BYTES)
            return gw_fail(err, GW_PARAM, "%s: frames of %u bytes do not fit link %s, whose mtu is "
                           "%u (frames of %u bytes); use a smaller size or a larger mtu",
                           where, f->size_bytes, l->name, l->mtu_bytes,
                           l->mtu_bytes + GW_ETH_BYTES);
    }
    return frames_in_time(n, job, f, where, err);
}

static enum gw_status frame_source(struct gw_program *p, const struct gw_frame_source *f,
                                   struct gw_error *err)
{
    struct rt_rank *r = GW_CONTAINER(p, struct rt_rank, program);
    struct rt *rt = r->rt;
    struct rt_frames *s = calloc(1, sizeof *s);
    char name[400];

    if (!s)
        return gw_fail(err, GW_NOMEM, "out of memory for a frame source");
    s->next = rt->frames;
    rt->frames = s;
    s->rank = r;
    s->f = *f;
    if (!s->f.burst)
        s->f.burst = 1;
    s->src = r->node;
    s->dst = r->job->rank[f->to].node;
    s->out = net_next(rt->net, s->src, s->dst, 0);
    s->start_ps = frames_begin(&r->job->job, f);
    snprintf(name, sizeof name, "job/%s/rank/%u/frames/%u/%llu", r->job->job.name,
             p->rank, f->flow, (unsigned long long)rt->frame_count);
    gw_rng_open(&s->rng, rt->net->conf.seed, name);
    s->timer = (struct gw_timer){ .fire = frame_fire, .owner = s, .comp = s->src };
    rt->frame_count++;
    if (s->out == GW_NONE || s->src == s->dst || !f->count) {
        rt->frames_done++;
        if (f->count)
            return gw_fail(err, GW_ROUTE, "job %s: frames need two hosts with a path between "
                           "them; rank %u and rank %u have none", r->job->job.name, p->rank,
                           f->to);
        return GW_OK;
    }
    gw_engine_timer_set(rt->net->engine, &s->timer, s->start_ps);
    return frame_check(&r->job->job, p->rank, f, r->job->where, err);
}

void rt_frame_load(const struct rt *rt, double *load_bps)
{
    for (uint32_t i = 0; i < rt->net->ports; i++)
        for (struct net_step *s = net_steps(rt->net, i); s; s = s->next)
            s->load_bps = 0;
    for (const struct rt_frames *s = rt->frames; s; s = s->next) {
        struct gw_pkt p = { .src = s->src, .dst = s->dst, .len_bytes = s->f.size_bytes,
                            .priority = s->f.priority, .dscp = s->f.dscp, .ecn = s->f.ecn,
                            .flow = s->f.flow, .flags = GW_PKT_FRAME };
        double per_s = s->f.interval_ps ? s->f.burst * 8e12 / (double)s->f.interval_ps : 0;
        uint32_t path[64], n;

        if (!s->f.interval_ps || s->f.count < 2)
            continue;
        n = net_path(rt->net, s->src, s->dst, net_mix32(s->f.flow * UINT32_C(0x9e3779b9) + s->src),
                     path, 64);
        for (uint32_t i = 0; i < n; i++) {
            const struct net_port *o = &rt->net->port[path[i]];
            struct net_way *w = o->tree->root ? net_way(rt->net, path[i], &p) : NULL;

            load_bps[path[i]] += (double)(s->f.size_bytes + o->framing_bytes) * per_s;
            for (uint32_t k = 0; w && k < w->steps; k++)
                w->step[k]->load_bps += s->f.size_bytes * per_s;
        }
    }
}

/* ---- jobs --------------------------------------------------------------------------------- */

static enum gw_status set_ranks(struct rt_job *j, const uint32_t *node, uint32_t count,
                                struct gw_error *err)
{
    uint32_t *v = malloc((count + 1) * sizeof *v);

    if (!v)
        return gw_fail(err, GW_NOMEM, "out of memory for the ranks of job %s", j->job.name);
    memcpy(v, node, count * sizeof *v);
    free(j->node);
    j->node = v;
    j->job.node = v;
    j->job.ranks = count;
    return GW_OK;
}

static enum gw_status job_set_ranks(struct gw_job *job, const uint32_t *node, uint32_t count,
                                    struct gw_error *err)
{
    return set_ranks(GW_CONTAINER(job, struct rt_job, job), node, count, err);
}

static uint32_t node_by_name(struct gw_job *job, const char *name)
{
    struct rt *rt = job->rt;
    uint32_t v = gw_graph_find_node(rt->net->graph, name);

    return v != GW_NONE && rt->net->graph->node[v].kind == GW_NODE_HOST ? v : GW_NONE;
}

static uint32_t host_count(struct gw_job *job)
{
    return ((struct rt *)job->rt)->net->host_count;
}

static uint32_t host_node(struct gw_job *job, uint32_t i)
{
    struct net *n = ((struct rt *)job->rt)->net;

    return i < n->host_count ? n->host_node[i] : GW_NONE;
}

static uint32_t topo_radix(struct gw_job *job)
{
    return ((struct rt *)job->rt)->net->radix;
}

void rt_host_functions(struct gw_host *h)
{
    h->op_add = op_add;
    h->op_watch = op_watch;
    h->frame_source = frame_source;
    h->frame_check = frame_check;
    h->job_set_ranks = job_set_ranks;
    h->node_by_name = node_by_name;
    h->host_count = host_count;
    h->host_node = host_node;
    h->topo_radix = topo_radix;
}

struct rt *rt_new(struct net *n)
{
    struct rt *rt = calloc(1, sizeof *rt);

    if (!rt)
        return NULL;
    rt->net = n;
    n->rt = rt;
    rt->ready_tail = &rt->ready;
    return rt;
}

static void rank_start(void *owner, uint64_t now_ps)
{
    struct rt_rank *r = owner;

    r->since_ps = r->iter_begin_ps = now_ps;
    pull_iteration(r);
    if (!r->open_ops && !r->ended && r->next_iteration >= r->job->job.iterations) {
        r->ended = true;                            /* nothing to do for this rank             */
        r->rt->ranks_ended++;
    }
    work_off(r->rt, now_ps);
}

static enum gw_status make_ranks(struct rt *rt, struct rt_job *j, struct gw_error *err)
{
    j->rank = calloc(j->job.ranks + 1, sizeof *j->rank);
    j->iter_begin = malloc((j->job.iterations + 1) * sizeof *j->iter_begin);
    j->iter_end = calloc(j->job.iterations + 1, sizeof *j->iter_end);
    j->iter_ranks = calloc(j->job.iterations + 1, sizeof *j->iter_ranks);
    if (!j->rank || !j->iter_begin || !j->iter_end || !j->iter_ranks)
        return gw_fail(err, GW_NOMEM, "out of memory for the ranks of job %s", j->job.name);
    memset(j->iter_begin, 0xff, (j->job.iterations + 1) * sizeof *j->iter_begin);
    for (uint32_t i = 0; i < j->job.ranks; i++) {
        struct rt_rank *r = &j->rank[i];
        char name[400];

        r->rt = rt;
        r->job = j;
        r->node = j->job.node[i];
        r->global = ++rt->rank_count;
        r->base = r->next_id = 1;
        r->program.job = &j->job;
        r->program.rt = rt;
        r->program.rank = i;
        r->program.priv = calloc(1, j->job.ops->rank_bytes + 1);
        if (!r->program.priv)
            return gw_fail(err, GW_NOMEM, "out of memory for the ranks of job %s", j->job.name);
        snprintf(name, sizeof name, "job/%s/rank/%u", j->job.name, i);
        gw_rng_open(&r->program.rng, rt->net->conf.seed, name);
        snprintf(name, sizeof name, "job/%s/rank/%u/jitter", j->job.name, i);
        gw_rng_open(&r->jitter, rt->net->conf.seed, name);
        r->start = (struct gw_timer){ .fire = rank_start, .owner = r, .comp = r->node };
        for (int k = 0; k < GW_RES_COUNT; k++)
            r->res[k].timer = (struct gw_timer){ .fire = resource_fire, .owner = &r->res[k],
                                                 .comp = r->node };
        if (j->job.ops->rank_init && j->job.ops->rank_init(&r->program, err) != GW_OK)
            return err->code;
    }
    rt->iterations += (uint64_t)j->job.ranks * j->job.iterations;
    return GW_OK;
}

static enum gw_status check_paths(struct rt *rt, struct rt_job *j, struct gw_error *err)
{
    for (uint32_t i = 1; i < j->job.ranks; i++)
        if (gw_routes_check(rt->net->graph, rt->net->routes, j->job.node[0], j->job.node[i],
                            j->where, err) != GW_OK ||
            gw_routes_check(rt->net->graph, rt->net->routes, j->job.node[i], j->job.node[0],
                            j->where, err) != GW_OK)
            return err->code;
    return GW_OK;
}

static const struct rt_job *job_at(const struct rt *rt, uint32_t number)
{
    const struct rt_job *j = rt->jobs;

    while (j->job.index != number)
        j = j->next;
    return j;
}

uint32_t rt_job_number(const struct rt *rt, const char *name)
{
    for (const struct rt_job *j = rt->jobs; j; j = j->next)
        if (!strcmp(j->name, name))
            return j->job.index;
    return GW_NONE;
}

const char *rt_job_name(const struct rt *rt, uint32_t job)
{
    return job_at(rt, job)->name;
}

const struct net_transport *rt_job_transport(const struct rt *rt, uint32_t job)
{
    return job_at(rt, job)->transport;
}

enum gw_status rt_add_job(struct rt *rt, const struct rt_job_conf *c, const char *const *skip,
                          struct gw_error *err)
{
    struct rt_job *j = calloc(1, sizeof *j), **at = &rt->jobs;
    const struct gw_plugin *p;
    char what[300];

    if (!j)
        goto nomem;
    while (*at)
        at = &(*at)->next;
    *at = j;
    j->rt = rt;
    j->name = strdup(c->name);
    j->where = strdup(c->where);
    j->jitter = c->jitter;
    j->overlap_slowdown = c->overlap_slowdown > 0 ? c->overlap_slowdown : 1;
    j->transport = c->transport;
    j->entry = gw_registry_find(rt->net->registry, GW_KIND_TRAFFIC, c->traffic, c->where, err);
    if (!j->name || !j->where)
        goto nomem;
    if (!j->entry)
        return err->code;
    p = j->entry->plugin;
    j->job.ops = j->entry->ops;
    j->job.host = rt->net->host;
    j->job.rt = rt;
    j->job.name = j->name;
    j->job.index = rt->job_count++;
    j->job.iterations = c->iterations;
    j->job.start_ps = c->start_ps;
    j->job.value = c->value;
    j->job.seed = rt->net->conf.seed;
    j->job.study_dir = c->study_dir;
    j->conf = calloc(1, j->job.ops->conf_bytes + 1);
    j->job.conf = j->conf;
    j->job.priv = calloc(1, j->job.ops->job_bytes + 1);
    if (!j->conf || !j->job.priv)
        goto nomem;
    snprintf(what, sizeof what, "traffic %s", p->name);
    if (c->node && set_ranks(j, c->node, c->ranks, err) != GW_OK)
        return err->code;
    if (gw_params_read(p->params, p->param_count, j->conf, c->value, skip, what, &j->job.given,
                       err) != GW_OK)
        return err->code;
    if (j->job.ops->job_init && j->job.ops->job_init(&j->job, err) != GW_OK)
        return err->code;
    if (!j->job.ranks)
        return gw_fail(err, GW_PARAM, "%s: job %s has no ranks; give `ranks: all` or a list of "
                       "hosts", c->where, c->name);
    if (c->slow) {
        j->slow = malloc(j->job.ranks * sizeof *j->slow);
        if (!j->slow)
            goto nomem;
        for (uint32_t i = 0; i < j->job.ranks; i++)
            j->slow[i] = i < c->slow_count ? c->slow[i] : 1;
    }
    if (check_paths(rt, j, err) != GW_OK)
        return err->code;
    return make_ranks(rt, j, err);
nomem:
    return gw_fail(err, GW_NOMEM, "out of memory for job %s", c->name);
}

enum gw_status rt_start(struct rt *rt, struct gw_error *err)
{
    size_t priv = 0;

    for (struct net_transport *t = rt->net->transports; t; t = t->next)
        if (t->ops->level == GW_TP_FLUID && t->ops->fluid_flow_bytes > priv)
            priv = t->ops->fluid_flow_bytes;
    rt->whole_bytes = (sizeof(struct net_whole) + priv + 15) & ~(size_t)15;
    for (struct rt_job *j = rt->jobs; j; j = j->next)
        for (uint32_t i = 0; i < j->job.ranks; i++)
            gw_engine_timer_set(rt->net->engine, &j->rank[i].start, j->job.start_ps);
    if (rt->net->failed)
        return gw_fail(err, rt->net->error.code, "%s", rt->net->error.text);
    return GW_OK;
}

bool rt_idle(const struct rt *rt)
{
    return rt->ranks_ended == rt->rank_count && rt->frames_done == rt->frame_count &&
           !rt->net->closing_conns && (!rt->frame_count || !rt->net->live_pkts);
}

double rt_done_share(const struct rt *rt)
{
    double a = rt->iterations ? (double)rt->iterations_done / (double)rt->iterations : 1;
    uint64_t sent = 0, all = 0;

    if (rt->frame_count) {
        for (const struct rt_frames *s = rt->frames; s; s = s->next) {
            sent += s->sent;
            all += s->f.count;
        }
        return all ? (double)sent / (double)all : 1;
    }
    if (a == 0 && rt->posted_bytes)
        a = (double)rt->net->flow_delivered_bytes / (double)rt->posted_bytes /
            (rt->job_count == 1 ? rt->jobs->job.iterations : 1);
    return a;
}

void rt_start_records(struct rt *rt, struct gw_sink *s)
{
    rt->sink = s;
    for (struct rt_job *j = rt->jobs; j; j = j->next) {
        s->ops->job(s, &(struct gw_rec_job){ j->job.index, j->job.name, j->entry->plugin->name,
                                             j->job.ranks, j->job.iterations });
        for (uint32_t i = 0; i < j->job.ranks; i++)
            s->ops->rank(s, &(struct gw_rec_rank){ j->job.index, i, j->job.node[i] });
    }
}

void rt_free(struct rt *rt)
{
    if (!rt)
        return;
    while (rt->jobs) {
        struct rt_job *j = rt->jobs;

        rt->jobs = j->next;
        for (uint32_t i = 0; j->rank && i < j->job.ranks; i++) {
            if (j->rank[i].program.priv && j->job.ops->rank_fini)
                j->job.ops->rank_fini(&j->rank[i].program);
            free(j->rank[i].program.priv);
            free(j->rank[i].window);
        }
        if (j->job.priv && j->job.ops->job_fini)
            j->job.ops->job_fini(&j->job);
        while (j->colls) {
            struct rt_coll *c = j->colls;

            j->colls = c->next;
            free(c);
        }
        free(j->rank);
        free(j->node);
        free(j->conf);
        free(j->job.priv);
        free(j->slow);
        free(j->name);
        free(j->where);
        free(j->iter_begin);
        free(j->iter_end);
        free(j->iter_ranks);
        free(j);
    }
    while (rt->frames) {
        struct rt_frames *s = rt->frames;

        rt->frames = s->next;
        free(s);
    }
    net_chunks_free(&rt->chunks);
    free(rt->sends);
    free(rt->recvs);
    free(rt);
}

/* ---- results ------------------------------------------------------------------------------ */

/*
 * One figure an iteration and job: the latest end minus the latest end of the iteration before
 * (for the first: minus the earliest begin), so that the figures add up to the job's time.
 */
double *rt_iteration_times(const struct rt *rt, size_t *count)
{
    size_t all = 0, k = 0;
    double *t;

    for (const struct rt_job *j = rt->jobs; j; j = j->next)
        all += j->job.iterations;
    t = malloc((all + 1) * sizeof *t);
    for (const struct rt_job *j = rt->jobs; t && j; j = j->next) {
        uint64_t before = GW_NEVER;

        for (uint32_t i = 0; i < j->job.iterations && j->iter_ranks; i++) {
            if (j->iter_ranks[i] != j->job.ranks)
                break;
            if (before == GW_NEVER)
                before = j->iter_begin[i];
            t[k++] = (double)(j->iter_end[i] - before) * 1e-12;
            before = j->iter_end[i];
        }
    }
    *count = k;
    return t;
}

static const char *const op_kind_name[] = { "compute", "delay", "send", "recv", "mark" };

void rt_wait_graph(const struct rt *rt, char *buf, size_t n, unsigned max)
{
    size_t at = 0;
    unsigned lines = 0;

    buf[0] = 0;
    for (const struct rt_job *j = rt->jobs; j; j = j->next)
        for (uint32_t i = 0; i < j->job.ranks && lines < max; i++) {
            struct rt_rank *r = &j->rank[i];
            const struct rt_op *first = NULL;

            for (gw_op_id id = r->base; id < r->next_id && !first; id++) {
                struct rt_op **w = window_at(r, id);

                if (*w && ((*w)->state == OP_RUNNING || (*w)->state == OP_READY))
                    first = *w;
            }
            if (!r->open_ops || at + 160 > n)
                continue;
            if (first)
                at += (size_t)snprintf(buf + at, n - at, "  job %s rank %u: %s %llu bytes %s rank "
                    "%u (iteration %u, tag %u)\n", j->job.name, i, op_kind_name[first->op.kind],
                    (unsigned long long)first->op.bytes,
                    first->op.kind == GW_OP_SEND ? "to" : "from", first->op.peer,
                    first->op.iteration, first->op.tag);
            else
                at += (size_t)snprintf(buf + at, n - at, "  job %s rank %u: %llu operations wait "
                    "for each other (a loop in the dependencies)\n", j->job.name, i,
                    (unsigned long long)r->open_ops);
            lines++;
        }
}

enum gw_status rt_dry_run(struct rt *rt, void (*msg)(void *, const struct rt_dry_msg *), void *ctx,
                          uint64_t max_events, double *time_s, struct gw_error *err)
{
    bool more;
    enum gw_status s;

    rt->dry = rt->net->dry = true;
    rt->dry_msg = msg;
    rt->dry_ctx = ctx;
    s = rt_start(rt, err);
    if (s == GW_OK)
        s = gw_engine_run(rt->net->engine, GW_NEVER, max_events, &more, err);
    *time_s = (double)gw_engine_now(rt->net->engine) * 1e-12;
    if (s == GW_OK && rt->net->failed)
        return gw_fail(err, rt->net->error.code, "%s", rt->net->error.text);
    return s;
}
