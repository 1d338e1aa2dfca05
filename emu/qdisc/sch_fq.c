/*
 * sch_fq - a queue per flow, served in turn, each paced to a rate
 *
 * What Linux's fq does: every flow has a FIFO of at most `flow_limit` packets and a credit in
 * bytes; new flows are served before old ones, a flow whose credit is used up gets `quantum` more
 * and goes to the end. With `maxrate` a flow sends its whole credit (initial_quantum at first)
 * unpaced, then waits max(length, quantum) / maxrate, so it leaves in bursts of a quantum; at or
 * below low_rate_threshold every packet is paced. Being late is made up for by at most half the
 * delay, a delay is at most 1 s. Throttled flows stand in a heap by time; the kernel's timer rings
 * timer_slack late, so does next_ps(). Packets of priority 7 go first. A flow that has been idle
 * for refill_delay starts with at least quantum of credit again. Follows net/sched/sch_fq.c of
 * Linux 6.1 and tc/q_fq.c of iproute2 6.1. Different: a flow is the flow of the network in one
 * direction (the kernel's socket), so orphan_mask is taken and not used; flow states come from a
 * table of 2 x buckets, when it is used up a flow without packets gives its state away (`gc`), and
 * if all are busy the packet goes with priority 7 (`alloc_errors`), as in the kernel when memory
 * is out; refill_delay is not rounded to the kernel's clock. Left out: departure times and pacing
 * rates set by transports, hence horizon has no effect.
 */
#include <gradwire/gradwire.h>
#include <gradwire/alg/quantum.h>
#include <gradwire/alg/tcwords.h>

#define NS_PER_S UINT64_C(1000000000)
#define NO_FLOW UINT32_MAX
enum { BUCKETS_LOG_MAX = 18, PRIO_CONTROL = 7, DRY_STEPS = 32 };

enum {
    GIVEN_LIMIT = 1, GIVEN_FLOW_LIMIT = 2, GIVEN_QUANTUM = 4, GIVEN_INITIAL = 8, GIVEN_MAXRATE = 16,
    GIVEN_LOW = 32, GIVEN_REFILL = 64, GIVEN_ORPHAN = 128, GIVEN_CE = 256, GIVEN_SLACK = 512,
    GIVEN_HORIZON = 1024, GIVEN_HORIZON_DROP = 2048, GIVEN_PACING = 4096,
};

struct fq_conf {
    uint32_t limit, flow_limit;                  /* packets                                    */
    uint32_t buckets;                            /* 0: not given                               */
    uint32_t quantum, initial_quantum;           /* bytes                                      */
    uint32_t maxrate, low_rate, defrate;         /* bytes/s                                    */
    uint32_t refill_us, ce_us, horizon_us;
    uint32_t slack_ns, orphan_mask;
    uint32_t pacing, horizon_drop;
};

enum flow_place { FLOW_FREE, FLOW_IDLE, FLOW_NEW, FLOW_OLD, FLOW_THROTTLED };

struct fq_flow {
    struct gw_pktq queue;
    uint64_t key;                                /* flow and direction                         */
    uint64_t next_ns;                            /* before which no packet leaves              */
    uint64_t idle_ns;                            /* since when, if idle                        */
    uint64_t order;                              /* of throttling: equal times keep it         */
    int64_t  credit;                             /* bytes                                      */
    uint32_t chain;                              /* next of the same bucket                    */
    uint32_t next, prev;                         /* on its list                                */
    uint32_t heap;                               /* place in the heap                          */
    uint8_t  place;                              /* enum flow_place                            */
};

struct flow_list {
    uint32_t first, last;
};

struct fq {
    struct fq_flow *flow;
    uint32_t *bucket, *heap;
    uint32_t  pool, log;                         /* flows in the table; buckets: 2^log         */
    uint32_t  heap_count;
    struct flow_list free, idle, news, old;
    struct gw_pktq high;
    struct fq_conf c;                            /* in force                                   */
    uint64_t  delayed_ns;                        /* least next_ns of the throttled, GW_NEVER   */
    uint64_t  latency_ns;                        /* mean lateness of unthrottling              */
    uint64_t  now_ns, order;
    uint64_t  flows, inactive, throttled, gc, highprio, ce_mark, flows_plimit, too_long, no_memory;
};

/* ---- lists of flows ----------------------------------------------------------------------- */

static void list_push(struct fq *s, struct flow_list *l, uint32_t i, enum flow_place place)
{
    struct fq_flow *f = &s->flow[i];

    f->place = (uint8_t)place;
    f->next = NO_FLOW;
    f->prev = l->last;
    if (l->last == NO_FLOW)
        l->first = i;
    else
        s->flow[l->last].next = i;
    l->last = i;
}

static void list_take(struct fq *s, struct flow_list *l, uint32_t i)
{
    struct fq_flow *f = &s->flow[i];

    if (f->prev == NO_FLOW)
        l->first = f->next;
    else
        s->flow[f->prev].next = f->next;
    if (f->next == NO_FLOW)
        l->last = f->prev;
    else
        s->flow[f->next].prev = f->prev;
}

/* ---- throttled flows: a binary heap by (time, order) -------------------------------------- */

static bool sooner(const struct fq_flow *a, const struct fq_flow *b)
{
    return a->next_ns != b->next_ns ? a->next_ns < b->next_ns : a->order < b->order;
}

static void heap_put(struct fq *s, uint32_t at, uint32_t i)
{
    s->heap[at] = i;
    s->flow[i].heap = at;
}

static void heap_up(struct fq *s, uint32_t at, uint32_t i)
{
    while (at && sooner(&s->flow[i], &s->flow[s->heap[(at - 1) / 2]])) {
        heap_put(s, at, s->heap[(at - 1) / 2]);
        at = (at - 1) / 2;
    }
    heap_put(s, at, i);
}

static void heap_pop(struct fq *s)
{
    uint32_t last = s->heap[--s->heap_count], at = 0;

    for (;;) {
        uint32_t kid = 2 * at + 1;

        if (kid >= s->heap_count)
            break;
        if (kid + 1 < s->heap_count && sooner(&s->flow[s->heap[kid + 1]], &s->flow[s->heap[kid]]))
            kid++;
        if (!sooner(&s->flow[s->heap[kid]], &s->flow[last]))
            break;
        heap_put(s, at, s->heap[kid]);
        at = kid;
    }
    if (s->heap_count)
        heap_put(s, at, last);
}

static void throttle(struct fq *s, uint32_t i)
{
    struct fq_flow *f = &s->flow[i];

    f->place = FLOW_THROTTLED;
    f->order = s->order++;
    heap_up(s, s->heap_count++, i);
    s->throttled++;
    if (s->delayed_ns > f->next_ns)
        s->delayed_ns = f->next_ns;
}

/* Flows whose time has come join the old ones. */
static void unthrottle(struct fq *s, uint64_t now_ns)
{
    if (s->delayed_ns > now_ns)
        return;
    s->latency_ns -= s->latency_ns >> 3;
    s->latency_ns += (now_ns - s->delayed_ns) >> 3;
    s->delayed_ns = GW_NEVER;
    while (s->heap_count) {
        uint32_t i = s->heap[0];

        if (s->flow[i].next_ns > now_ns) {
            s->delayed_ns = s->flow[i].next_ns;
            return;
        }
        heap_pop(s);
        list_push(s, &s->old, i, FLOW_OLD);
    }
}

/* ---- the table of flows ------------------------------------------------------------------- */

static uint32_t *bucket_of(const struct fq *s, uint64_t key)
{
    return &s->bucket[gw_mix64(key) >> (64 - s->log)];
}

static void unchain(struct fq *s, uint32_t i)
{
    uint32_t *at = bucket_of(s, s->flow[i].key);

    while (*at != i)
        at = &s->flow[*at].chain;
    *at = s->flow[i].chain;
}

/* A flow on @l that has nothing waiting, among the first few. */
static uint32_t dry_flow(const struct fq *s, const struct flow_list *l)
{
    uint32_t i = l->first;

    for (uint32_t n = 0; n < DRY_STEPS && i != NO_FLOW; n++, i = s->flow[i].next)
        if (!s->flow[i].queue.count)
            return i;
    return NO_FLOW;
}

/* The state of another flow: the one idle for longest, else one that is in turn without packets. */
static uint32_t flow_take_over(struct fq *s)
{
    struct flow_list *const from[] = { &s->idle, &s->old, &s->news };

    for (size_t k = 0; k < GW_ARRAY_LEN(from); k++) {
        uint32_t i = dry_flow(s, from[k]);

        if (i == NO_FLOW)
            continue;
        list_take(s, from[k], i);
        unchain(s, i);
        s->inactive += from[k] != &s->idle;
        s->gc++;
        return i;
    }
    s->no_memory++;
    return NO_FLOW;
}

/* A state for a new flow, idle; NO_FLOW: all are in use. */
static uint32_t flow_new(struct fq *s, uint64_t key)
{
    uint32_t i = s->free.first;
    struct fq_flow *f;

    if (i != NO_FLOW) {
        list_take(s, &s->free, i);
        s->flows++;
        s->inactive++;
    } else if ((i = flow_take_over(s)) == NO_FLOW) {
        return NO_FLOW;
    }
    f = &s->flow[i];
    memset(f, 0, sizeof *f);
    f->key = key;
    f->credit = s->c.initial_quantum;
    f->idle_ns = s->now_ns;
    f->chain = *bucket_of(s, key);
    *bucket_of(s, key) = i;
    list_push(s, &s->idle, i, FLOW_IDLE);
    return i;
}

static uint32_t flow_of(struct fq *s, const struct gw_pkt *p)
{
    uint64_t key = (uint64_t)p->flow << 1 | !!(p->flags & GW_PKT_REVERSE);

    for (uint32_t i = *bucket_of(s, key); i != NO_FLOW; i = s->flow[i].chain)
        if (s->flow[i].key == key)
            return i;
    return flow_new(s, key);
}

static void fq_clear(struct fq *s)
{
    const struct flow_list none = { NO_FLOW, NO_FLOW };

    s->free = s->idle = s->news = s->old = none;
    for (uint32_t i = 0; i < 1u << s->log; i++)
        s->bucket[i] = NO_FLOW;
    for (uint32_t i = 0; i < s->pool; i++)
        list_push(s, &s->free, i, FLOW_FREE);
    s->heap_count = 0;
    s->delayed_ns = GW_NEVER;
    s->flows = s->inactive = 0;
}

/* Tables for 2^log buckets; the flows that are there move along. */
static enum gw_status fq_resize(struct gw_qdisc *q, uint32_t log, struct gw_error *err)
{
    const struct gw_host *h = q->host;
    struct fq *s = q->priv;
    uint32_t pool = 2u << log > s->pool ? 2u << log : s->pool;
    uint32_t *bucket = h->alloc(sizeof *bucket << log), *heap;
    struct fq_flow *flow;

    heap = bucket ? h->alloc(pool * sizeof *heap) : NULL;
    flow = heap ? h->alloc(pool * sizeof *flow) : NULL;
    if (!flow) {
        h->release(bucket);
        h->release(heap);
        return gw_fail(err, GW_NOMEM, "out of memory for %u flows of fq", pool);
    }
    if (s->pool) {
        memcpy(heap, s->heap, s->heap_count * sizeof *heap);
        memcpy(flow, s->flow, s->pool * sizeof *flow);
    }
    h->release(s->bucket);
    h->release(s->heap);
    h->release(s->flow);
    s->bucket = bucket;
    s->heap = heap;
    s->flow = flow;
    s->log = log;
    for (uint32_t i = 0; i < 1u << log; i++)
        s->bucket[i] = NO_FLOW;
    for (uint32_t i = 0; i < s->pool; i++)
        if (flow[i].place != FLOW_FREE) {
            flow[i].chain = *bucket_of(s, flow[i].key);
            *bucket_of(s, flow[i].key) = i;
        }
    for (uint32_t i = s->pool; s->pool && i < pool; i++)
        list_push(s, &s->free, i, FLOW_FREE);
    if (!s->pool) {
        s->pool = pool;
        fq_clear(s);
    }
    s->pool = pool;
    return GW_OK;
}

/* ---- options ------------------------------------------------------------------------------ */

static uint32_t log_of(uint32_t n)
{
    uint32_t log = 0;

    for (n--; n; n >>= 1)
        log++;
    return log;
}

static enum gw_status fq_check(const struct fq_conf *c, uint64_t given, struct gw_error *err)
{
    if (c->buckets && (log_of(c->buckets) < 1 || log_of(c->buckets) > BUCKETS_LOG_MAX))
        return gw_fail(err, GW_PARAM, "fq: buckets is %u; 2 to %d is right", c->buckets,
                       1 << BUCKETS_LOG_MAX);
    if ((given & GIVEN_QUANTUM) && (!c->quantum || c->quantum > GW_QUANTUM_MAX))
        return gw_fail(err, GW_PARAM, "fq: invalid quantum %u; 1 to %u bytes are right", c->quantum,
                       GW_QUANTUM_MAX);
    if ((given & GIVEN_INITIAL) && c->initial_quantum > INT32_MAX)
        return gw_fail(err, GW_PARAM, "fq: initial_quantum is %u; at most %d bytes are right",
                       c->initial_quantum, INT32_MAX);
    return GW_OK;
}

static void fq_apply(struct fq *s, const struct fq_conf *c, uint64_t given)
{
    if (given & GIVEN_LIMIT)
        s->c.limit = c->limit;
    if (given & GIVEN_FLOW_LIMIT)
        s->c.flow_limit = c->flow_limit;
    if (given & GIVEN_QUANTUM)
        s->c.quantum = c->quantum;
    if (given & GIVEN_INITIAL)
        s->c.initial_quantum = c->initial_quantum;
    if (given & GIVEN_MAXRATE)
        s->c.maxrate = c->maxrate;
    if (given & GIVEN_LOW)
        s->c.low_rate = c->low_rate;
    if (given & GIVEN_REFILL)
        s->c.refill_us = c->refill_us;
    if (given & GIVEN_ORPHAN)
        s->c.orphan_mask = c->orphan_mask;
    if (given & GIVEN_CE)
        s->c.ce_us = c->ce_us;
    if (given & GIVEN_SLACK)
        s->c.slack_ns = c->slack_ns;
    if (given & GIVEN_HORIZON)
        s->c.horizon_us = c->horizon_us;
    if (given & GIVEN_HORIZON_DROP)
        s->c.horizon_drop = c->horizon_drop;
    if (given & GIVEN_PACING)
        s->c.pacing = c->pacing;
}

/* ---- callbacks ---------------------------------------------------------------------------- */

static enum gw_status fq_init(struct gw_qdisc *q, struct gw_error *err)
{
    const struct fq_conf *c = q->conf;
    struct fq *s = q->priv;

    if (fq_check(c, q->given, err) != GW_OK)
        return err->code;
    s->c = (struct fq_conf){
        .limit = 10000, .flow_limit = 100, .quantum = 2 * q->mtu_bytes,
        .initial_quantum = 10 * q->mtu_bytes, .maxrate = UINT32_MAX, .low_rate = 550000 / 8,
        .refill_us = 40000, .ce_us = UINT32_MAX, .horizon_us = 10000000, .slack_ns = 10000,
        .orphan_mask = 1023, .pacing = 1, .horizon_drop = 1,
    };
    fq_apply(s, c, q->given);
    return fq_resize(q, c->buckets ? log_of(c->buckets) : 10, err);
}

static void fq_fini(struct gw_qdisc *q)
{
    struct fq *s = q->priv;

    q->host->release(s->bucket);
    q->host->release(s->heap);
    q->host->release(s->flow);
}

/* A flow that was idle becomes new; after a long pause it has credit again. */
static void wake(struct fq *s, uint32_t i)
{
    struct fq_flow *f = &s->flow[i];

    list_take(s, &s->idle, i);
    list_push(s, &s->news, i, FLOW_NEW);
    if (s->now_ns > f->idle_ns + s->c.refill_us * UINT64_C(1000) && f->credit < s->c.quantum)
        f->credit = s->c.quantum;
    s->inactive--;
}

static enum gw_verdict fq_enqueue(struct gw_qdisc *q, struct gw_pkt *p, uint64_t now_ps)
{
    struct fq *s = q->priv;
    uint32_t i = NO_FLOW;

    if (q->backlog_pkts >= s->c.limit) {
        q->drop_reason = GW_DROP_QUEUE_FULL;
        return GW_Q_DROPPED;
    }
    s->now_ns = now_ps / GW_PS_PER_NS;
    p->stamp_ps = now_ps;
    if ((p->priority & 15) != PRIO_CONTROL)
        i = flow_of(s, p);
    if (i == NO_FLOW) {
        gw_pktq_push(&s->high, p);
        s->highprio++;
        return GW_Q_QUEUED;
    }
    if (s->flow[i].queue.count >= s->c.flow_limit) {
        s->flows_plimit++;
        q->drop_reason = GW_DROP_FLOW_LIMIT;
        return GW_Q_DROPPED;
    }
    if (s->flow[i].place == FLOW_IDLE)
        wake(s, i);
    gw_pktq_push(&s->flow[i].queue, p);
    return GW_Q_QUEUED;
}

/* After @p of @f has left: when may the next one? */
static void pace(struct fq *s, struct fq_flow *f, const struct gw_pkt *p, uint64_t now_ns)
{
    uint64_t bytes = p->sched_bytes, ns, late;

    f->credit -= p->sched_bytes;
    if (!s->c.pacing)
        return;
    if (s->c.maxrate <= s->c.low_rate) {
        f->credit = 0;
    } else {
        if (bytes < s->c.quantum)
            bytes = s->c.quantum;
        if (f->credit > 0)
            return;
    }
    if (s->c.maxrate == UINT32_MAX)
        return;
    ns = bytes * NS_PER_S;
    if (s->c.maxrate)
        ns /= s->c.maxrate;
    if (ns > NS_PER_S) {
        ns = NS_PER_S;
        s->too_long++;
    }
    if (f->next_ns) {
        late = now_ns - f->next_ns;
        ns -= late < ns / 2 ? late : ns / 2;
    }
    f->next_ns = now_ns + ns;
}

static void fq_mark(struct gw_qdisc *q, struct fq *s, struct gw_pkt *p, uint64_t due_ns)
{
    uint64_t limit = s->c.ce_us * UINT64_C(1000);

    if (s->now_ns - due_ns <= limit)
        return;
    s->ce_mark++;
    gw_qdisc_mark(q, p);
}

/* The flow at the head of @l, which is @i, has nothing left. */
static void run_dry(struct fq *s, struct flow_list *l, uint32_t i)
{
    list_take(s, l, i);
    if (l == &s->news && s->old.first != NO_FLOW) {
        list_push(s, &s->old, i, FLOW_OLD);
        return;
    }
    list_push(s, &s->idle, i, FLOW_IDLE);
    s->flow[i].idle_ns = s->now_ns;
    s->inactive++;
}

/* The packet of the flow whose turn it is, NULL: the flow went elsewhere, ask again. */
static struct gw_pkt *fq_serve(struct gw_qdisc *q, struct fq *s, struct flow_list *l)
{
    uint32_t i = l->first;
    struct fq_flow *f = &s->flow[i];
    struct gw_pkt *p = f->queue.head;
    uint64_t due_ns;

    if (f->credit <= 0) {
        f->credit += s->c.quantum;
        list_take(s, l, i);
        list_push(s, &s->old, i, FLOW_OLD);
        return NULL;
    }
    if (!p) {
        run_dry(s, l, i);
        return NULL;
    }
    due_ns = p->stamp_ps / GW_PS_PER_NS;
    if (due_ns < f->next_ns)
        due_ns = f->next_ns;
    if (s->now_ns < due_ns) {
        list_take(s, l, i);
        f->next_ns = due_ns;
        throttle(s, i);
        return NULL;
    }
    fq_mark(q, s, p, due_ns);
    gw_pktq_pop(&f->queue);
    pace(s, f, p, s->now_ns);
    return p;
}

static struct gw_pkt *fq_dequeue(struct gw_qdisc *q, uint64_t now_ps)
{
    struct fq *s = q->priv;
    struct gw_pkt *p = gw_pktq_pop(&s->high);

    if (p || !q->backlog_pkts)
        return p;
    s->now_ns = now_ps / GW_PS_PER_NS;
    unthrottle(s, s->now_ns);
    while (!p) {
        struct flow_list *l = s->news.first != NO_FLOW ? &s->news : &s->old;

        if (l->first == NO_FLOW)
            return NULL;
        p = fq_serve(q, s, l);
    }
    return p;
}

static uint64_t fq_next_ps(struct gw_qdisc *q, uint64_t now_ps)
{
    struct fq *s = q->priv;

    (void)now_ps;
    return s->delayed_ns == GW_NEVER ? GW_NEVER : (s->delayed_ns + s->c.slack_ns) * GW_PS_PER_NS;
}

static enum gw_status fq_change(struct gw_qdisc *q, const void *conf, uint64_t given,
                                uint64_t now_ps, struct gw_error *err)
{
    const struct fq_conf *c = conf;
    struct fq *s = q->priv;
    struct gw_pkt *p;

    if (fq_check(c, given, err) != GW_OK)
        return err->code;
    if (c->buckets && log_of(c->buckets) != s->log &&
        fq_resize(q, log_of(c->buckets), err) != GW_OK)
        return err->code;
    fq_apply(s, c, given);
    while (q->backlog_pkts > s->c.limit && (p = fq_dequeue(q, now_ps)))
        q->host->qdisc_drop(q, p, GW_DROP_QUEUE_FULL);
    return GW_OK;
}

static void fq_reset(struct gw_qdisc *q, uint64_t now_ps)
{
    struct fq *s = q->priv;
    struct gw_pkt *p;

    (void)now_ps;
    while ((p = gw_pktq_pop(&s->high)))
        q->host->qdisc_drop(q, p, GW_DROP_PURGED);
    for (uint32_t i = 0; i < s->pool; i++)
        while ((p = gw_pktq_pop(&s->flow[i].queue)))
            q->host->qdisc_drop(q, p, GW_DROP_PURGED);
    fq_clear(s);
}

/* ---- tc's words --------------------------------------------------------------------------- */

static enum gw_status fq_tc_parse(const struct gw_tc_args *a, void *conf, uint64_t *given,
                                  struct gw_error *err)
{
    static const struct gw_tcword words[] = {
#define AT(field) offsetof(struct fq_conf, field)
        { "limit", GW_TCW_U32, AT(limit), 0, GIVEN_LIMIT, "a count of packets" },
        { "flow_limit", GW_TCW_U32, AT(flow_limit), 0, GIVEN_FLOW_LIMIT, "a count of packets" },
        { "buckets", GW_TCW_U32, AT(buckets), 0, 0, "a count up to 262144" },
        { "maxrate", GW_TCW_RATE_DEV, AT(maxrate), 0, GIVEN_MAXRATE,
          "a rate below 34.36gbit, or a share of the device's speed if it has one" },
        { "low_rate_threshold", GW_TCW_RATE, AT(low_rate), 0, GIVEN_LOW, "a rate like 550kbit" },
        { "ce_threshold", GW_TCW_TIME, AT(ce_us), 0, GIVEN_CE, "a time like 4ms" },
        { "timer_slack", GW_TCW_NS, AT(slack_ns), 0, GIVEN_SLACK, "a time below 4.29s" },
        { "defrate", GW_TCW_RATE_DEV, AT(defrate), 0, 0, "a rate; the kernel ignores it" },
        { "quantum", GW_TCW_U32, AT(quantum), 0, GIVEN_QUANTUM, "a count of bytes" },
        { "initial_quantum", GW_TCW_U32, AT(initial_quantum), 0, GIVEN_INITIAL,
          "a count of bytes" },
        { "orphan_mask", GW_TCW_U32, AT(orphan_mask), 0, GIVEN_ORPHAN, "a number" },
        { "refill_delay", GW_TCW_TIME, AT(refill_us), 0, GIVEN_REFILL, "a time like 40ms" },
        { "horizon", GW_TCW_TIME, AT(horizon_us), 0, GIVEN_HORIZON, "a time like 10s" },
        { "horizon_drop", GW_TCW_SET, AT(horizon_drop), 1, GIVEN_HORIZON_DROP, NULL },
        { "horizon_cap", GW_TCW_SET, AT(horizon_drop), 0, GIVEN_HORIZON_DROP, NULL },
        { "pacing", GW_TCW_SET, AT(pacing), 1, GIVEN_PACING, NULL },
        { "nopacing", GW_TCW_SET, AT(pacing), 0, GIVEN_PACING, NULL },
#undef AT
    };

    return gw_tcwords_read("fq", words, GW_ARRAY_LEN(words), a, 0, conf, given, err);
}

static void show_size(struct gw_tc_out *o, const char *key, const char *fmt, uint64_t v)
{
    char buf[64];

    o->u64(o, key, NULL, v);
    o->str(o, NULL, fmt, o->size(o, v, buf));
}

static void show_rate(struct gw_tc_out *o, const char *key, const char *fmt, uint64_t v)
{
    char buf[64];

    o->u64(o, key, NULL, v);
    o->str(o, NULL, fmt, o->rate(o, v, buf));
}

static void show_us(struct gw_tc_out *o, const char *key, const char *fmt, uint32_t us)
{
    char buf[64];

    o->u64(o, key, NULL, us);
    o->str(o, NULL, fmt, o->time(o, us, buf));
}

static void show_ns(struct gw_tc_out *o, const char *key, const char *fmt, uint64_t ns)
{
    char buf[64];

    o->u64(o, key, NULL, ns);
    o->str(o, NULL, fmt, o->time64(o, (int64_t)ns, buf));
}

static void fq_tc_show(const struct gw_qdisc *q, struct gw_tc_out *o)
{
    const struct fq *s = q->priv;
    const struct fq_conf *c = &s->c;

    o->u64(o, "limit", "limit %llup ", c->limit);
    o->u64(o, "flow_limit", "flow_limit %llup ", c->flow_limit);
    o->u64(o, "buckets", "buckets %llu ", 1u << s->log);
    o->u64(o, "orphan_mask", "orphan_mask %llu ", c->orphan_mask);
    if (!c->pacing) {
        o->flag(o, "pacing", NULL, false);
        o->str(o, NULL, "%s ", "nopacing");
    }
    show_size(o, "quantum", "quantum %s ", c->quantum);
    show_size(o, "initial_quantum", "initial_quantum %s ", c->initial_quantum);
    if (c->maxrate != UINT32_MAX)
        show_rate(o, "maxrate", "maxrate %s ", c->maxrate);
    if (c->low_rate)
        show_rate(o, "low_rate_threshold", "low_rate_threshold %s ", c->low_rate);
    show_us(o, "refill_delay", "refill_delay %s ", c->refill_us);
    if (c->ce_us != UINT32_MAX)
        show_us(o, "ce_threshold", "ce_threshold %s ", c->ce_us);
    show_ns(o, "timer_slack", "timer_slack %s ", c->slack_ns);
    show_us(o, "horizon", "horizon %s ", c->horizon_us);
    if (c->horizon_drop)
        o->null(o, "horizon_drop", "horizon_drop ");
    else
        o->null(o, "horizon_cap", "horizon_cap ");
}

static void fq_tc_show_stats(const struct gw_qdisc *q, struct gw_tc_out *o)
{
    const struct fq *s = q->priv;

    o->u64(o, "flows", "  flows %llu", s->flows);
    o->u64(o, "inactive", " (inactive %llu", s->inactive);
    o->u64(o, "throttled", " throttled %llu)", s->heap_count);
    if (s->delayed_ns != GW_NEVER && s->delayed_ns + s->c.slack_ns > s->now_ns)
        show_ns(o, "next_packet_delay", " next_packet_delay %s",
                s->delayed_ns + s->c.slack_ns - s->now_ns);
    o->newline(o);
    o->u64(o, "gc", "gc %llu", s->gc);
    o->u64(o, "highprio", " highprio %llu", s->highprio);
    o->u64(o, "throttled", " throttled %llu", s->throttled);
    if (s->latency_ns)
        show_ns(o, "latency", " latency %s", s->latency_ns);
    if (s->ce_mark)
        o->u64(o, "ce_mark", " ce_mark %llu", s->ce_mark);
    if (s->flows_plimit)
        o->u64(o, "flows_plimit", " flows_plimit %llu", s->flows_plimit);
    if (!s->too_long && !s->no_memory)
        return;
    o->newline(o);
    o->u64(o, "pkts_too_long", "pkts_too_long %llu", s->too_long);
    o->u64(o, "alloc_errors", " alloc_errors %llu", s->no_memory);
}

static void fq_advise(const struct gw_qdisc *q, void (*say)(void *ctx, const char *sentence),
                      void *ctx)
{
    const struct fq *s = q->priv;
    char text[256];

    if (s->c.maxrate == UINT32_MAX || (s->c.pacing && s->c.maxrate <= s->c.low_rate))
        return;
    if (!s->c.pacing) {
        snprintf(text, sizeof text, "maxrate %.6g Mbit/s has no effect with nopacing: a flow sends as "
                 "fast as the link takes it", s->c.maxrate * 8e-6);
        say(ctx, text);
        return;
    }
    snprintf(text, sizeof text, "maxrate paces bursts: a flow sends %u bytes at once at first and "
             "%u bytes at a time from then on", s->c.initial_quantum, s->c.quantum);
    say(ctx, text);
}

static void fq_outline(const struct gw_qdisc *q, uint32_t classid, uint32_t len_bytes,
                       struct gw_outline *o)
{
    const struct fq *s = q->priv;

    (void)classid;
    (void)len_bytes;
    if (s->c.pacing && s->c.maxrate && s->c.maxrate != UINT32_MAX)
        o->flow_rate_bps = (uint64_t)s->c.maxrate * 8;
}

static const struct gw_stat fq_stats[] = {
    { "flows", offsetof(struct fq, flows), "flows known" },
    { "throttled", offsetof(struct fq, throttled), "times a flow had to wait for its time" },
    { "highprio", offsetof(struct fq, highprio), "packets of priority 7" },
    { "flows_plimit", offsetof(struct fq, flows_plimit), "packets above their flow's limit" },
    { "ce_mark", offsetof(struct fq, ce_mark), "packets later than ce_threshold" },
    { "pkts_too_long", offsetof(struct fq, too_long), "waits cut to 1 s" },
    { "alloc_errors", offsetof(struct fq, no_memory), "packets without a flow state" },
};

static const struct gw_qdisc_ops fq_ops = {
    .priv_bytes    = sizeof(struct fq),
    .conf_bytes    = sizeof(struct fq_conf),
    .init          = fq_init,
    .fini          = fq_fini,
    .enqueue       = fq_enqueue,
    .dequeue       = fq_dequeue,
    .next_ps       = fq_next_ps,
    .change        = fq_change,
    .reset         = fq_reset,
    .tc_parse      = fq_tc_parse,
    .tc_show       = fq_tc_show,
    .tc_show_stats = fq_tc_show_stats,
    .advise        = fq_advise,
    .outline       = fq_outline,
    .stats         = fq_stats, .stat_count = GW_ARRAY_LEN(fq_stats),
};

static const struct gw_param fq_params[] = {
    { "limit", GW_P_WORDS, 0, "10000", NULL, NULL, "Packets that may wait in all flows." },
    { "flow_limit", GW_P_WORDS, 0, "100", NULL, NULL, "Packets of one flow that may wait." },
    { "quantum", GW_P_WORDS, 0, "3028", NULL, NULL, "Bytes a flow may send in a turn." },
    { "initial_quantum", GW_P_WORDS, 0, "15140", NULL, NULL, "Bytes a new flow may send first." },
    { "maxrate", GW_P_WORDS, 0, "", NULL, NULL, "Rate to which each flow is paced." },
    { "low_rate_threshold", GW_P_WORDS, 0, "550kbit", NULL, NULL,
      "Rate up to which every packet is paced." },
    { "buckets", GW_P_WORDS, 0, "1024", NULL, NULL, "Size of the flow table: half the flows." },
    { "orphan_mask", GW_P_WORDS, 0, "1023", NULL, NULL, "Taken and shown; has no effect here." },
    { "pacing", GW_P_WORDS, 0, "yes", NULL, NULL, "Paces flows; nopacing." },
    { "refill_delay", GW_P_WORDS, 0, "40ms", NULL, NULL, "Pause that refills a flow's credit." },
    { "timer_slack", GW_P_WORDS, 0, "10us", NULL, NULL, "How late the kernel's timer rings." },
    { "ce_threshold", GW_P_WORDS, 0, "", NULL, NULL, "Marks ECT packets that leave later." },
    { "horizon", GW_P_WORDS, 0, "10s", NULL, NULL, "Taken and shown; has no effect here." },
    { "horizon_drop", GW_P_WORDS, 0, "yes", NULL, NULL, "Taken and shown; horizon_cap." },
    { "defrate", GW_P_WORDS, 0, "", NULL, NULL, "Taken; the kernel ignores it." },
};

GW_PLUGIN(gw_qdisc_fq) = {
    GW_PLUGIN_HEAD(GW_KIND_QDISC, fq_ops),
    .name    = "fq",
    .summary = "A queue per flow, served in turn, paced to a rate.",
    .params  = fq_params, .param_count = GW_ARRAY_LEN(fq_params),
    .source  = "Linux 6.1 net/sched/sch_fq.c",
};
