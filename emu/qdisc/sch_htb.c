/*
 * sch_htb - hierarchical token buckets: classes with a rate of their own, borrowing to a ceiling
 *
 * Every class has two buckets, counted in nanoseconds: tokens (rate, burst) and ctokens (ceil,
 * cburst). While ctokens are below 0 it cannot send; while tokens are below 0 it may borrow from
 * its parent; else it can send by itself. Buckets start full and may go below 0 by a whole frame,
 * so a class sends the frames that begin within its burst; it is woken when they reach 0 again.
 * Elapsed time counts for at most 60 s. A frame is charged to the level that it was borrowed at and
 * above; classes below that pay only ctokens.
 *
 * Whoever can send at a level stands in that level's row of its priority; whoever may borrow stands
 * in the feed of its parent. The lowest level that has anyone wins, there the lowest priority
 * number, and there the classes take turns by deficit round robin with their quantum (rate / r2q
 * bytes within 1000 and 200000 unless given). So what is borrowed is shared by quanta, not by
 * rates.
 *
 * A packet goes to the class whose id its priority is, else to the one that the filters choose,
 * else to the default (a hexadecimal minor), which must be a leaf; if there is none, or if the
 * class is X:0, it goes to the direct queue, which is not shaped and leaves first. Where the choice
 * is an inner class, the filters of that class go on.
 *
 * Follows net/sched/sch_htb.c of Linux 6.1 to the nanosecond (with its htb_hysteresis at 0) and
 * q_htb.c of iproute2 6.1 for the words. Left out: offload, rate estimators, the pause after two
 * jiffies of timer work; a negative rate is refused.
 */
#include <gradwire/gradwire.h>
#include <gradwire/alg/classes.h>
#include <gradwire/alg/shaper.h>

enum { HTB_DEPTH = 8, HTB_PRIOS = 8 };

#define HTB_MAX_WAIT_NS (60 * GW_NS_PER_S)
#define HTB_QUANTUM_MIN 1000u
#define HTB_QUANTUM_MAX 200000u
#define HTB_LOOKUPS 65535
#define HTB_SENTENCES 4u         /* classes that advise() speaks of one by one                 */

enum { HTB_GIVEN_DIRECT = 1 };

struct htb_conf {
    uint32_t r2q, defcls, direct_qlen;
    bool     offload;
};

struct htb_class_conf {
    uint64_t rate, ceil;         /* bytes per second                                           */
    uint32_t buffer, cbuffer;    /* ticks                                                      */
    uint32_t quantum, prio;
    uint16_t overhead, mpu;
    bool     atm;
};

enum htb_mode { HTB_CANT_SEND, HTB_MAY_BORROW, HTB_CAN_SEND };

struct htb_class;

/* Node of an ordered set: a treap, whose heap order comes from a hash of the class id. */
struct htb_node {
    struct htb_node  *up, *left, *right;
    struct htb_class *cl;
    int64_t  key;
    uint32_t heap;
    bool     in;
};

/* A row or a feed of one priority: classes by id, and the turn. */
struct htb_turn {
    struct htb_node *top;
    struct htb_node *ptr;        /* whose turn it is                                           */
    uint32_t last_id;            /* who it was when ptr had to be forgotten                    */
};

struct htb_class {
    struct gw_qclass  c;
    struct htb_class *parent;
    uint32_t children;
    int      level;              /* 0: a leaf                                                  */
    struct gw_ratecfg rate, ceil;
    int64_t  buffer, cbuffer;    /* depths, ns                                                 */
    int64_t  tokens, ctokens;    /* ns                                                         */
    int64_t  at_ns;              /* when they were last counted                                */
    uint32_t prio;
    int32_t  quantum;            /* bytes; below 0 (2^31 and above were given): a frame a turn */
    int      warn;               /* quantum was raised (-1) or lowered (1) into its range      */
    bool     listed;             /* among h->warned                                            */
    struct htb_class *older, *newer;  /* there                                                 */
    uint32_t lends, borrows;
    uint32_t active;             /* bit for each priority that has something below             */
    enum htb_mode mode;
    int64_t  deficit[HTB_DEPTH]; /* leaves                                                     */
    struct htb_turn feed[HTB_PRIOS];  /* inner classes                                         */
    struct htb_node node[HTB_PRIOS];  /* in a row, or in the parent's feed                     */
    struct htb_node wait;             /* in the level's queue of events                        */
};

struct htb_level {
    struct htb_node *wait;       /* by time                                                    */
    struct htb_turn  row[HTB_PRIOS];
    uint32_t mask;               /* rows that hold someone                                     */
    int64_t  event_ns;           /* not after the first event                                  */
};

struct htb {
    struct gw_class_hash hash;
    struct htb_class *warned;    /* the newest class that advise() speaks of                   */
    uint32_t warnings;           /* how many there are                                         */
    struct htb_level level[HTB_DEPTH];
    uint32_t r2q, defcls, direct_qlen;
    struct gw_pktq direct;
    uint64_t direct_pkts;
    int64_t  now_ns;             /* of the present dequeue                                     */
    int64_t  wake_ns;            /* first event after it, INT64_MAX: none                      */
    uint64_t child_ps;           /* when a child that let nothing go wants to be asked         */
};

static struct htb_class *htb_class(struct gw_qclass *c)
{
    return c ? GW_CONTAINER(c, struct htb_class, c) : NULL;
}

static struct htb_class *htb_find(struct htb *h, uint32_t classid)
{
    return htb_class(gw_class_find(&h->hash, classid));
}

/* ---- ordered sets ------------------------------------------------------------------------- */

static void node_init(struct htb_node *n, struct htb_class *cl)
{
    *n = (struct htb_node){ .cl = cl, .heap = (uint32_t)gw_mix64(cl->c.id) };
}

/* Puts @n in the place of its parent. */
static void node_lift(struct htb_node **top, struct htb_node *n)
{
    struct htb_node *p = n->up, *g = p->up;

    if (p->left == n) {
        p->left = n->right;
        if (p->left)
            p->left->up = p;
        n->right = p;
    } else {
        p->right = n->left;
        if (p->right)
            p->right->up = p;
        n->left = p;
    }
    p->up = n;
    n->up = g;
    if (!g)
        *top = n;
    else if (g->left == p)
        g->left = n;
    else
        g->right = n;
}

/* Behind all nodes of the same key. */
static void node_insert(struct htb_node **top, struct htb_node *n, int64_t key)
{
    struct htb_node **at = top, *up = NULL;

    while (*at) {
        up = *at;
        at = key >= up->key ? &up->right : &up->left;
    }
    n->key = key;
    n->left = n->right = NULL;
    n->up = up;
    n->in = true;
    *at = n;
    while (n->up && n->heap > n->up->heap)
        node_lift(top, n);
}

static void node_erase(struct htb_node **top, struct htb_node *n)
{
    struct htb_node *child;

    if (!n->in)
        return;
    while (n->left && n->right)
        node_lift(top, n->left->heap > n->right->heap ? n->left : n->right);
    child = n->left ? n->left : n->right;
    if (child)
        child->up = n->up;
    if (!n->up)
        *top = child;
    else if (n->up->left == n)
        n->up->left = child;
    else
        n->up->right = child;
    n->in = false;
}

static struct htb_node *node_first(struct htb_node *n)
{
    while (n && n->left)
        n = n->left;
    return n;
}

static struct htb_node *node_next(struct htb_node *n)
{
    if (n->right)
        return node_first(n->right);
    while (n->up && n->up->right == n)
        n = n->up;
    return n->up;
}

/* The first node whose key is @key or above. */
static struct htb_node *node_from(struct htb_node *n, int64_t key)
{
    struct htb_node *best = NULL;

    while (n) {
        if (key > n->key) {
            n = n->right;
        } else {
            best = n;
            n = n->left;
        }
    }
    return best;
}

static void turn_on(struct htb_node **ptr)
{
    if (*ptr)
        *ptr = node_next(*ptr);
}

/* ---- rows and feeds ----------------------------------------------------------------------- */

static void htb_row_add(struct htb *h, struct htb_class *cl, uint32_t mask)
{
    struct htb_level *l = &h->level[cl->level];

    l->mask |= mask;
    for (; mask; mask &= mask - 1) {
        int prio = __builtin_ctz(mask);

        node_insert(&l->row[prio].top, &cl->node[prio], cl->c.id);
    }
}

static void htb_row_remove(struct htb *h, struct htb_class *cl, uint32_t mask)
{
    struct htb_level *l = &h->level[cl->level];

    for (; mask; mask &= mask - 1) {
        int prio = __builtin_ctz(mask);
        struct htb_turn *t = &l->row[prio];

        if (t->ptr == &cl->node[prio])
            turn_on(&t->ptr);
        node_erase(&t->top, &cl->node[prio]);
        if (!t->top)
            l->mask &= ~(1u << prio);
    }
}

/* Makes known that @cl has something to send: upwards as long as it borrows, then in a row. */
static void htb_activate_prios(struct htb *h, struct htb_class *cl)
{
    struct htb_class *p = cl->parent;
    uint32_t mask = cl->active;

    while (cl->mode == HTB_MAY_BORROW && p && mask) {
        for (uint32_t m = mask; m; m &= m - 1) {
            int prio = __builtin_ctz(m);

            if (p->feed[prio].top)
                mask &= ~(1u << prio);            /* the parent is known already               */
            node_insert(&p->feed[prio].top, &cl->node[prio], cl->c.id);
        }
        p->active |= mask;
        cl = p;
        p = cl->parent;
    }
    if (cl->mode == HTB_CAN_SEND && mask)
        htb_row_add(h, cl, mask);
}

static void htb_deactivate_prios(struct htb *h, struct htb_class *cl)
{
    struct htb_class *p = cl->parent;
    uint32_t mask = cl->active;

    while (cl->mode == HTB_MAY_BORROW && p && mask) {
        uint32_t m = mask;

        for (mask = 0; m; m &= m - 1) {
            int prio = __builtin_ctz(m);
            struct htb_turn *t = &p->feed[prio];

            if (t->ptr == &cl->node[prio]) {
                t->last_id = cl->c.id;
                t->ptr = NULL;
            }
            node_erase(&t->top, &cl->node[prio]);
            if (!t->top)
                mask |= 1u << prio;
        }
        p->active &= ~mask;
        cl = p;
        p = cl->parent;
    }
    if (cl->mode == HTB_CAN_SEND && mask)
        htb_row_remove(h, cl, mask);
}

static void htb_activate(struct htb *h, struct htb_class *cl)
{
    if (cl->active)
        return;
    cl->active = 1u << cl->prio;
    htb_activate_prios(h, cl);
}

static void htb_deactivate(struct htb *h, struct htb_class *cl)
{
    if (!cl->active)
        return;
    htb_deactivate_prios(h, cl);
    cl->active = 0;
}

/* ---- tokens and events -------------------------------------------------------------------- */

/* Mode of @cl with *@diff more ns in both buckets; then *@diff is how long it stays so. */
static enum htb_mode htb_mode_at(const struct htb_class *cl, int64_t *diff)
{
    int64_t toks = cl->ctokens + *diff;

    if (toks < 0) {
        *diff = -toks;
        return HTB_CANT_SEND;
    }
    toks = cl->tokens + *diff;
    if (toks >= 0)
        return HTB_CAN_SEND;
    *diff = -toks;
    return HTB_MAY_BORROW;
}

static void htb_change_mode(struct gw_qdisc *q, struct htb_class *cl, int64_t *diff)
{
    struct htb *h = q->priv;
    enum htb_mode mode = htb_mode_at(cl, diff);

    if (mode == cl->mode)
        return;
    if (mode == HTB_CANT_SEND) {
        cl->c.overlimits++;
        q->overlimits++;
    }
    if (cl->active && cl->mode != HTB_CANT_SEND)
        htb_deactivate_prios(h, cl);
    cl->mode = mode;
    if (cl->active && mode != HTB_CANT_SEND)
        htb_activate_prios(h, cl);
}

static void htb_wait(struct htb *h, struct htb_class *cl, int64_t delay)
{
    struct htb_level *l = &h->level[cl->level];
    int64_t at = h->now_ns + (delay ? delay : 1);

    if (l->event_ns > at)
        l->event_ns = at;
    node_insert(&l->wait, &cl->wait, at);
}

static void htb_unwait(struct htb *h, struct htb_class *cl)
{
    node_erase(&h->level[cl->level].wait, &cl->wait);
}

static int64_t htb_elapsed(const struct htb *h, const struct htb_class *cl)
{
    int64_t diff = h->now_ns - cl->at_ns;

    return diff < HTB_MAX_WAIT_NS ? diff : HTB_MAX_WAIT_NS;
}

static int64_t htb_pay(int64_t tokens, int64_t diff, int64_t depth, int64_t cost)
{
    tokens += diff;
    if (tokens > depth)
        tokens = depth;
    tokens -= cost;
    return tokens <= -HTB_MAX_WAIT_NS ? 1 - HTB_MAX_WAIT_NS : tokens;
}

/* Charges @cl, which sent @len bytes that it had from @level, and all above it. */
static void htb_charge(struct gw_qdisc *q, struct htb_class *cl, int level, uint32_t len)
{
    struct htb *h = q->priv;

    for (; cl; cl = cl->parent) {
        int64_t diff = htb_elapsed(h, cl);
        enum htb_mode old = cl->mode;

        if (cl->level >= level) {
            cl->lends += cl->level == level;
            cl->tokens = htb_pay(cl->tokens, diff, cl->buffer, gw_ratecfg_ns(&cl->rate, len));
        } else {
            cl->borrows++;
            cl->tokens += diff;
        }
        cl->ctokens = htb_pay(cl->ctokens, diff, cl->cbuffer, gw_ratecfg_ns(&cl->ceil, len));
        cl->at_ns = h->now_ns;
        diff = 0;
        htb_change_mode(q, cl, &diff);
        if (old != cl->mode) {
            if (old != HTB_CAN_SEND)
                htb_unwait(h, cl);
            if (cl->mode != HTB_CAN_SEND)
                htb_wait(h, cl, diff);
        }
        if (cl->level) {
            cl->c.sent_pkts++;
            cl->c.sent_bytes += len;
        }
    }
}

/* Does what is due at @level; returns the time of the next event, INT64_MAX: none. */
static int64_t htb_events(struct gw_qdisc *q, int level)
{
    struct htb *h = q->priv;
    struct htb_node *n;

    while ((n = node_first(h->level[level].wait))) {
        struct htb_class *cl = n->cl;
        int64_t diff;

        if (n->key > h->now_ns)
            return n->key;
        htb_unwait(h, cl);
        diff = htb_elapsed(h, cl);
        htb_change_mode(q, cl, &diff);
        if (cl->mode != HTB_CAN_SEND)
            htb_wait(h, cl, diff);
    }
    return INT64_MAX;
}

/* ---- dequeue ------------------------------------------------------------------------------ */

/* The leaf whose turn it is in @row; the row must not be empty. */
static struct htb_class *htb_lookup(struct htb_turn *row, int prio)
{
    struct htb_turn *stack[HTB_DEPTH] = { row }, **sp = stack;

    for (int i = 0; i < HTB_LOOKUPS; i++) {
        struct htb_turn *t = *sp;
        struct htb_class *cl;

        if (!t->ptr && t->last_id)
            t->ptr = node_from(t->top, t->last_id);
        t->last_id = 0;
        if (!t->ptr) {                            /* at the right end: rewind and go up        */
            t->ptr = node_first(t->top);
            if (sp > stack) {
                sp--;
                turn_on(&(*sp)->ptr);
            } else if (!t->ptr) {
                return NULL;
            }
            continue;
        }
        cl = t->ptr->cl;
        if (!cl->level)
            return cl;
        *++sp = &cl->feed[prio];
    }
    return NULL;
}

static void htb_next_turn(struct htb *h, struct htb_class *cl, int prio, int level)
{
    turn_on(level ? &cl->parent->feed[prio].ptr : &h->level[0].row[prio].ptr);
}

static void htb_sent(struct gw_qdisc *q, struct htb_class *cl, int prio, int level, uint32_t len)
{
    struct htb *h = q->priv;

    cl->c.sent_pkts++;
    cl->c.sent_bytes += len;
    cl->deficit[level] -= len;
    if (cl->deficit[level] < 0) {
        cl->deficit[level] += cl->quantum;
        htb_next_turn(h, cl, prio, level);
    }
    if (!cl->c.child->backlog_pkts)
        htb_deactivate(h, cl);
    htb_charge(q, cl, level, len);
}

static struct gw_pkt *htb_dequeue_row(struct gw_qdisc *q, int prio, int level, uint64_t now_ps)
{
    struct htb *h = q->priv;
    struct htb_turn *row = &h->level[level].row[prio];
    struct htb_class *start = htb_lookup(row, prio), *cl = start;
    struct gw_pkt *p = NULL;

    while (cl) {
        struct gw_qdisc *child = cl->c.child;
        bool was_start = cl == start;
        uint64_t again;

        if (child->backlog_pkts) {
            p = q->host->qdisc_dequeue(child, now_ps);
            if (p)
                break;
        }
        if (!child->backlog_pkts) {               /* it dropped all that it had                */
            htb_deactivate(h, cl);
            if (!(h->level[level].mask & 1u << prio))
                return NULL;
            cl = htb_lookup(row, prio);
            if (was_start)
                start = cl;
            continue;
        }
        again = gw_child_next_ps(child, now_ps);
        if (again < h->child_ps)
            h->child_ps = again;
        htb_next_turn(h, cl, prio, level);
        cl = htb_lookup(row, prio);
        if (cl == start)
            return NULL;
    }
    if (p)
        htb_sent(q, cl, prio, level, p->sched_bytes);
    return p;
}

static struct gw_pkt *htb_dequeue(struct gw_qdisc *q, uint64_t now_ps)
{
    struct htb *h = q->priv;
    struct gw_pkt *p = gw_pktq_pop(&h->direct);

    h->wake_ns = INT64_MAX;
    h->child_ps = GW_NEVER;
    if (p || !q->backlog_pkts)
        return p;
    h->now_ns = (int64_t)(now_ps / GW_PS_PER_NS);
    for (int level = 0; level < HTB_DEPTH; level++) {
        struct htb_level *l = &h->level[level];
        uint32_t tried = 0, left;

        if (h->now_ns >= l->event_ns)
            l->event_ns = htb_events(q, level);
        if (h->wake_ns > l->event_ns)
            h->wake_ns = l->event_ns;
        while ((left = l->mask & ~tried)) {
            int prio = __builtin_ctz(left);

            tried |= 1u << prio;
            p = htb_dequeue_row(q, prio, level, now_ps);
            if (p)
                return p;
        }
    }
    return NULL;
}

static uint64_t htb_next_ps(struct gw_qdisc *q, uint64_t now_ps)
{
    struct htb *h = q->priv;
    uint64_t at = h->wake_ns == INT64_MAX ? GW_NEVER : (uint64_t)h->wake_ns * GW_PS_PER_NS;

    (void)now_ps;
    return at < h->child_ps ? at : h->child_ps;
}

/* ---- enqueue ------------------------------------------------------------------------------ */

/*
 * NULL: the direct queue. The filters of the discipline are asked, or those of the inner class that
 * the priority names; as long as they lead to an inner class, that one's are asked next.
 */
static struct htb_class *htb_classify(struct gw_qdisc *q, const struct gw_pkt *p)
{
    struct htb *h = q->priv;
    struct htb_class *cl;
    uint32_t id;

    if (q->handle && p->priority == q->handle)
        return NULL;
    cl = htb_find(h, p->priority);
    if (cl && !cl->level)
        return cl;
    id = cl ? q->host->classify_at(q, cl->c.id, p) : q->host->classify(q, p);
    for (int hops = 0; id && hops < HTB_DEPTH; hops++) {
        if (id == q->handle)
            return NULL;
        cl = htb_find(h, id);
        if (!cl || !cl->level)
            break;
        id = q->host->classify_at(q, id, p);
    }
    if (id && cl && !cl->level)
        return cl;
    cl = htb_find(h, (q->handle & 0xffff0000) | (h->defcls & 0xffff));
    return cl && !cl->level ? cl : NULL;
}

static enum gw_verdict htb_enqueue_direct(struct gw_qdisc *q, struct gw_pkt *p)
{
    struct htb *h = q->priv;

    if (h->direct.count >= h->direct_qlen) {
        q->drop_reason = GW_DROP_QUEUE_FULL;
        return GW_Q_DROPPED;
    }
    gw_pktq_push(&h->direct, p);
    h->direct_pkts++;
    return GW_Q_QUEUED;
}

static enum gw_verdict htb_enqueue(struct gw_qdisc *q, struct gw_pkt *p, uint64_t now_ps)
{
    struct htb_class *cl = htb_classify(q, p);
    uint64_t dropped;
    enum gw_verdict v;

    if (!cl)
        return htb_enqueue_direct(q, p);
    dropped = cl->c.child->dropped_pkts;
    v = gw_child_enqueue(q, cl->c.child, p, now_ps);
    if (cl->c.child->dropped_pkts != dropped)
        cl->c.dropped_pkts++;
    if (v != GW_Q_DROPPED)
        htb_activate(q->priv, cl);
    return v;
}

static void htb_child_empty(struct gw_qdisc *q, struct gw_qclass *c)
{
    htb_deactivate(q->priv, htb_class(c));
}

/* ---- the discipline ----------------------------------------------------------------------- */

static enum gw_status htb_init(struct gw_qdisc *q, struct gw_error *err)
{
    const struct htb_conf *c = q->conf;
    struct htb *h = q->priv;

    if (c->offload)
        return gw_fail(err, GW_PARAM, "htb: offload: hw-tc-offload is a feature of real devices; "
                       "leave the word out");
    h->r2q = !q->given ? 10 : (int32_t)c->r2q < 1 ? 1 : c->r2q;
    h->defcls = c->defcls;
    h->direct_qlen = q->given & HTB_GIVEN_DIRECT ? c->direct_qlen : q->txqueuelen;
    h->wake_ns = INT64_MAX;
    h->child_ps = GW_NEVER;
    for (int i = 0; i < HTB_DEPTH; i++)
        h->level[i].event_ns = INT64_MAX;
    return GW_OK;
}

static bool htb_ceil_is_less(const struct htb_class *cl)
{
    return cl->ceil.rate_bytes_s < cl->rate.rate_bytes_s;
}

/* The list holds @cl if @in and if its quantum was moved or its ceil is below its rate, so that
 * advise() need not look at all. */
static void htb_list_warned(struct htb *h, struct htb_class *cl, bool in)
{
    if (cl->listed) {
        if (cl->older)
            cl->older->newer = cl->newer;
        *(cl->newer ? &cl->newer->older : &h->warned) = cl->older;
        h->warnings--;
    }
    cl->listed = in && ((cl->warn && !cl->level) || htb_ceil_is_less(cl));
    if (!cl->listed)
        return;
    cl->older = h->warned;
    cl->newer = NULL;
    if (h->warned)
        h->warned->newer = cl;
    h->warned = cl;
    h->warnings++;
}

static void htb_free_class(struct gw_qdisc *q, struct htb_class *cl)
{
    htb_list_warned(q->priv, cl, false);
    if (cl->c.child)
        q->host->qdisc_free(cl->c.child);
    q->host->release(cl);
}

static void htb_fini(struct gw_qdisc *q)
{
    struct htb *h = q->priv;

    for (struct gw_qclass *c = gw_class_walk(&h->hash, NULL), *next; c; c = next) {
        next = gw_class_walk(&h->hash, c);
        htb_free_class(q, htb_class(c));
    }
    q->host->release(h->hash.bucket);
}

static void htb_reset_class(struct htb_class *cl, uint64_t now_ps)
{
    gw_child_reset(cl->c.child, now_ps);
    memset(cl->feed, 0, sizeof cl->feed);
    for (int i = 0; i < HTB_PRIOS; i++)
        node_init(&cl->node[i], cl);
    node_init(&cl->wait, cl);
    cl->active = 0;
    cl->mode = HTB_CAN_SEND;
}

static void htb_reset(struct gw_qdisc *q, uint64_t now_ps)
{
    struct htb *h = q->priv;
    struct gw_pkt *p;

    while ((p = gw_pktq_pop(&h->direct)))
        q->host->qdisc_drop(q, p, GW_DROP_PURGED);
    for (struct gw_qclass *c = gw_class_walk(&h->hash, NULL); c; c = gw_class_walk(&h->hash, c)) {
        gw_child_reset(c->child, now_ps);
        htb_deactivate(h, htb_class(c));
    }
    for (struct gw_qclass *c = gw_class_walk(&h->hash, NULL); c; c = gw_class_walk(&h->hash, c))
        htb_reset_class(htb_class(c), now_ps);
    memset(h->level, 0, sizeof h->level);
    for (int i = 0; i < HTB_DEPTH; i++)
        h->level[i].event_ns = INT64_MAX;
    h->wake_ns = INT64_MAX;
    h->child_ps = GW_NEVER;
}

/* ---- classes ------------------------------------------------------------------------------ */

static enum gw_status htb_class_check(struct gw_qdisc *q, const struct htb_class *cl,
                                      const struct htb_class *parent, uint32_t classid,
                                      const struct htb_class_conf *c, struct gw_error *err)
{
    if (!c->rate || !c->ceil)
        return gw_fail(err, GW_PARAM, "htb: class %x:%x needs a rate, e.g. rate 10mbit",
                       classid >> 16, classid & 0xffff);
    if (cl)
        return GW_OK;
    if (!classid || (classid ^ q->handle) & 0xffff0000)
        return gw_fail(err, GW_PARAM, "htb: %x:%x cannot be a class of %x:", classid >> 16,
                       classid & 0xffff, q->handle >> 16);
    if (parent && parent->parent && parent->parent->level < 2)
        return gw_fail(err, GW_PARAM, "htb: the tree is too deep for class %x:%x: at most %d "
                       "levels", classid >> 16, classid & 0xffff, HTB_DEPTH);
    return GW_OK;
}

/* @parent, a leaf so far, becomes an inner class; what waits in it is lost. */
static void htb_make_inner(struct gw_qdisc *q, struct htb_class *parent, uint64_t now_ps)
{
    struct htb *h = q->priv;

    gw_child_reset(parent->c.child, now_ps);
    htb_deactivate(h, parent);
    q->host->qdisc_free(parent->c.child);
    parent->c.child = NULL;
    if (parent->mode != HTB_CAN_SEND)
        htb_unwait(h, parent);
    parent->mode = HTB_CAN_SEND;
    parent->level = (parent->parent ? parent->parent->level : HTB_DEPTH) - 1;
    htb_list_warned(h, parent, true);
    memset(parent->feed, 0, sizeof parent->feed);
}

/* @cl, whose last child goes, becomes a leaf again, with @child and full buckets. */
static void htb_make_leaf(struct htb *h, struct htb_class *cl, struct gw_qdisc *child,
                          uint64_t now_ps)
{
    if (cl->mode != HTB_CAN_SEND)
        htb_unwait(h, cl);
    cl->level = 0;
    htb_list_warned(h, cl, true);
    memset(cl->feed, 0, sizeof cl->feed);
    memset(cl->deficit, 0, sizeof cl->deficit);
    cl->c.child = child;
    cl->tokens = cl->buffer;
    cl->ctokens = cl->cbuffer;
    cl->at_ns = (int64_t)(now_ps / GW_PS_PER_NS);
    cl->mode = HTB_CAN_SEND;
}

static struct htb_class *htb_add(struct gw_qdisc *q, uint32_t classid, struct htb_class *parent,
                                 const struct htb_class_conf *c, uint64_t now_ps,
                                 struct gw_error *err)
{
    struct htb *h = q->priv;
    struct htb_class *cl;

    if (!gw_class_hash_room(&h->hash, q->host) || !(cl = q->host->alloc(sizeof *cl))) {
        gw_fail(err, GW_NOMEM, "htb: no memory for class %x:%x", classid >> 16, classid & 0xffff);
        return NULL;
    }
    cl->c.id = classid;
    cl->c.books = GW_BOOKS_OWN;
    cl->c.child = q->host->qdisc_new(q, "pfifo", classid, err);
    if (!cl->c.child) {
        q->host->release(cl);
        return NULL;
    }
    if (parent && !parent->level)
        htb_make_inner(q, parent, now_ps);
    for (int i = 0; i < HTB_PRIOS; i++)
        node_init(&cl->node[i], cl);
    node_init(&cl->wait, cl);
    cl->parent = parent;
    cl->tokens = (int64_t)c->buffer << GW_TICK_SHIFT;
    cl->ctokens = (int64_t)c->cbuffer << GW_TICK_SHIFT;
    cl->at_ns = (int64_t)(now_ps / GW_PS_PER_NS);
    cl->mode = HTB_CAN_SEND;
    if (parent)
        parent->children++;
    gw_class_insert(&h->hash, &cl->c);
    gw_class_hash_grow(&h->hash, q->host);
    return cl;
}

static void htb_set_quantum(struct htb *h, struct htb_class *cl, const struct htb_class_conf *c)
{
    uint64_t quantum = cl->rate.rate_bytes_s / h->r2q;

    cl->warn = 0;
    if (c->quantum) {
        quantum = c->quantum;
    } else if (quantum < HTB_QUANTUM_MIN) {
        quantum = HTB_QUANTUM_MIN;
        cl->warn = -1;
    } else if (quantum > HTB_QUANTUM_MAX) {
        quantum = HTB_QUANTUM_MAX;
        cl->warn = 1;
    }
    cl->quantum = (int32_t)(uint32_t)quantum;
}

static enum gw_status htb_class_change(struct gw_qdisc *q, uint32_t classid, uint32_t parentid,
                                       const void *conf, uint64_t given, uint64_t now_ps,
                                       struct gw_error *err)
{
    const struct htb_class_conf *c = conf;
    struct htb *h = q->priv;
    struct htb_class *cl = htb_find(h, classid);
    struct htb_class *parent = parentid == GW_TC_ROOT ? NULL : htb_find(h, parentid);

    (void)given;
    if (htb_class_check(q, cl, parent, classid, c, err) != GW_OK)
        return err ? err->code : GW_PARAM;
    if (!cl && !(cl = htb_add(q, classid, parent, c, now_ps, err)))
        return err ? err->code : GW_NOMEM;
    gw_ratecfg_set(&cl->rate, c->rate, c->overhead, c->mpu, c->atm);
    gw_ratecfg_set(&cl->ceil, c->ceil, c->overhead, c->mpu, c->atm);
    if (!cl->level) {
        htb_set_quantum(h, cl, c);
        cl->prio = c->prio < HTB_PRIOS ? c->prio : HTB_PRIOS - 1;
    }
    cl->buffer = (int64_t)c->buffer << GW_TICK_SHIFT;
    cl->cbuffer = (int64_t)c->cbuffer << GW_TICK_SHIFT;
    htb_list_warned(h, cl, true);
    return GW_OK;
}

static enum gw_status htb_class_delete(struct gw_qdisc *q, uint32_t classid, uint64_t now_ps,
                                       struct gw_error *err)
{
    struct htb *h = q->priv;
    struct htb_class *cl = htb_find(h, classid);
    struct gw_qdisc *child = NULL;

    if (!cl)
        return gw_fail(err, GW_PARAM, "htb: there is no class %x:%x", classid >> 16,
                       classid & 0xffff);
    if (cl->children)
        return gw_fail(err, GW_PARAM, "HTB class in use: %x:%x has classes below it", classid >> 16,
                       classid & 0xffff);
    if (cl->parent && cl->parent->children == 1) {
        child = q->host->qdisc_new(q, "pfifo", cl->parent->c.id, err);
        if (!child)
            return err ? err->code : GW_NOMEM;
    }
    gw_child_reset(cl->c.child, now_ps);
    gw_class_remove(&h->hash, &cl->c);
    htb_deactivate(h, cl);
    if (cl->mode != HTB_CAN_SEND)
        htb_unwait(h, cl);
    if (cl->parent)
        cl->parent->children--;
    if (child)
        htb_make_leaf(h, cl->parent, child, now_ps);
    htb_free_class(q, cl);
    return GW_OK;
}

static struct gw_qclass *htb_class_find(struct gw_qdisc *q, uint32_t classid)
{
    return gw_class_find(&((struct htb *)q->priv)->hash, classid);
}

static struct gw_qclass *htb_class_walk(struct gw_qdisc *q, struct gw_qclass *after)
{
    return gw_class_walk(&((struct htb *)q->priv)->hash, after);
}

static uint32_t htb_class_parent(const struct gw_qdisc *q, const struct gw_qclass *c)
{
    const struct htb_class *cl = GW_CONTAINER(c, const struct htb_class, c);

    (void)q;
    return cl->parent ? cl->parent->c.id : GW_TC_ROOT;
}

static enum gw_status htb_graft(struct gw_qdisc *q, uint32_t classid, struct gw_qdisc *child,
                                struct gw_qdisc **old, struct gw_error *err)
{
    struct htb *h = q->priv;
    struct htb_class *cl = htb_find(h, classid);

    if (!cl || cl->level)
        return gw_fail(err, GW_PARAM, "htb: %x:%x is not a leaf class, so no discipline can hang "
                       "there", classid >> 16, classid & 0xffff);
    htb_deactivate(h, cl);
    *old = cl->c.child;
    cl->c.child = child;
    if (child->backlog_pkts)
        htb_activate(h, cl);
    return GW_OK;
}

/* ---- words -------------------------------------------------------------------------------- */

static enum gw_status htb_tc_parse(const struct gw_tc_args *a, void *conf, uint64_t *given,
                                   struct gw_error *err)
{
    static const struct { const char *name; int base; } word[] = {
        { "r2q", 10 }, { "default", 16 }, { "debug", 0 }, { "direct_qlen", 10 } };
    struct htb_conf *c = conf;
    uint32_t *to[] = { &c->r2q, &c->defcls, NULL, &c->direct_qlen };

    *c = (struct htb_conf){ .r2q = 10, .direct_qlen = UINT32_MAX };
    *given = UINT64_C(1) << 1;
    for (uint32_t i = 0; i < a->count; i++) {
        size_t k = 0;

        while (k < GW_ARRAY_LEN(word) && !gw_tc_matches(a->word[i], word[k].name))
            k++;
        if (k == GW_ARRAY_LEN(word)) {
            if (!gw_tc_matches(a->word[i], "offload"))
                return gw_tc_what(err, "htb", a->word[i]);
            c->offload = true;
            continue;
        }
        if (++i == a->count)
            return gw_tc_incomplete(err, word[k].name);
        if (to[k] && !gw_tc_count(a->word[i], word[k].base, UINT32_MAX, to[k]))
            return gw_tc_illegal(err, word[k].name, a->word[i], word[k].base == 16 ?
                               "a class's minor in hexadecimal, such as 20" : "a count");
    }
    if (c->direct_qlen != UINT32_MAX)
        *given |= HTB_GIVEN_DIRECT;
    return GW_OK;
}

struct htb_words {
    struct htb_class_conf *c;
    uint32_t burst, cburst, mtu; /* bytes                                                      */
    const struct gw_tc_args *a;
    struct gw_error *err;
};

static enum gw_status htb_rate(struct htb_words *w, const char *name, const char *v, uint64_t *to)
{
    if (*to)
        return gw_fail(w->err, GW_SYNTAX, "Double \"%s\" spec: it may stand once", name);
    return gw_tc_rate_bytes(w->a, v, to) ? GW_OK : gw_tc_illegal(w->err, name, v,
                                                               "a rate such as 10mbit");
}

static enum gw_status htb_count(struct htb_words *w, const char *name, const char *v, uint32_t max,
                                uint32_t *to)
{
    return gw_tc_count(v, 10, max, to) ? GW_OK : gw_tc_illegal(w->err, name, v,
                                                             "a decimal number");
}

static enum gw_status htb_short(struct htb_words *w, const char *name, const char *v, uint16_t *to)
{
    uint32_t n = 0;

    if (htb_count(w, name, v, UINT16_MAX, &n) != GW_OK)
        return GW_SYNTAX;
    *to = (uint16_t)n;
    return GW_OK;
}

static enum gw_status htb_burst(struct htb_words *w, const char *name, const char *v, uint32_t *to)
{
    return gw_tc_size_cell(v, to) ? GW_OK : gw_tc_illegal(w->err, name, v, "a size such as 15k");
}

static const char *const htb_class_words[] = { "prio", "mtu", "mpu", "overhead", "linklayer",
                                               "quantum", "burst", "cburst", NULL };

/* The word that @k stands for, NULL: none. Most may be abbreviated; the first match counts. */
static const char *htb_class_word(const char *k)
{
    for (size_t i = 0; htb_class_words[i]; i++)
        if (gw_tc_matches(k, htb_class_words[i]))
            return htb_class_words[i];
    if (!strcmp(k, "buffer") || !strcmp(k, "maxburst"))
        return "burst";
    if (!strcmp(k, "cbuffer") || !strcmp(k, "cmaxburst"))
        return "cburst";
    if (!strcmp(k, "ceil"))
        return "ceil";
    return strcmp(k, "rate") ? NULL : "rate";
}

static enum gw_status htb_class_value(struct htb_words *w, const char *k, const char *v)
{
    struct htb_class_conf *c = w->c;

    if (!strcmp(k, "prio"))
        return htb_count(w, k, v, UINT32_MAX, &c->prio);
    if (!strcmp(k, "mtu"))
        return htb_count(w, k, v, UINT32_MAX, &w->mtu);
    if (!strcmp(k, "quantum"))
        return htb_count(w, k, v, UINT32_MAX, &c->quantum);
    if (!strcmp(k, "mpu"))
        return htb_short(w, k, v, &c->mpu);
    if (!strcmp(k, "overhead"))
        return htb_short(w, k, v, &c->overhead);
    if (!strcmp(k, "burst"))
        return htb_burst(w, k, v, &w->burst);
    if (!strcmp(k, "cburst"))
        return htb_burst(w, k, v, &w->cburst);
    if (!strcmp(k, "rate"))
        return htb_rate(w, k, v, &c->rate);
    if (!strcmp(k, "ceil"))
        return htb_rate(w, k, v, &c->ceil);
    return gw_tc_linklayer(v, &c->atm) ? GW_OK : gw_tc_illegal(w->err, k, v,
                                                             "ethernet, atm or adsl");
}

/* What is not given; a burst is at least what a clock of 1 ns lets through, plus mtu. */
static void htb_class_defaults(struct htb_words *w)
{
    struct htb_class_conf *c = w->c;

    if (!c->ceil)
        c->ceil = c->rate;
    if (!w->burst)
        w->burst = (uint32_t)(c->rate / (uint64_t)GW_NS_PER_S + w->mtu);
    if (!w->cburst)
        w->cburst = (uint32_t)(c->ceil / (uint64_t)GW_NS_PER_S + w->mtu);
    c->buffer = gw_tc_ticks(c->rate, w->burst);
    c->cbuffer = gw_tc_ticks(c->ceil, w->cburst);
}

static enum gw_status htb_tc_class_parse(const struct gw_tc_args *a, void *conf, uint64_t *given,
                                         struct gw_error *err)
{
    struct htb_words w = { .c = conf, .mtu = 1600, .a = a, .err = err };

    *w.c = (struct htb_class_conf){ 0 };
    *given = 1;
    for (uint32_t i = 0; i < a->count; i += 2) {
        const char *k = htb_class_word(a->word[i]);

        if (!k)
            return gw_tc_what(err, "htb", a->word[i]);
        if (i + 1 == a->count)
            return gw_tc_incomplete(err, k);
        if (htb_class_value(&w, k, a->word[i + 1]) != GW_OK)
            return GW_SYNTAX;
    }
    if (!w.c->rate)
        return gw_tc_missing(err, a, "rate", "htb: \"rate\" is required");
    htb_class_defaults(&w);
    return GW_OK;
}

static void htb_tc_show(const struct gw_qdisc *q, struct gw_tc_out *o)
{
    const struct htb *h = q->priv;
    char hex[16];

    o->u64(o, "r2q", "r2q %llu", h->r2q);
    snprintf(hex, sizeof hex, "%#x", h->defcls);
    o->str(o, "default", " default %s", hex);
    o->u64(o, "direct_packets_stat", " direct_packets_stat %llu",
           h->direct_pkts & UINT32_MAX);
    if (o->details)
        o->str(o, "ver", " ver %s", "3.17");
    o->u64(o, "direct_qlen", " direct_qlen %llu", h->direct_qlen);
}

static void htb_show_bucket(struct gw_tc_out *o, const char *word, uint64_t bytes_s, int64_t depth,
                            uint16_t mpu)
{
    uint32_t bytes = gw_tc_ticks_bytes(bytes_s, (uint32_t)(depth >> GW_TICK_SHIFT));
    char fmt[32];

    snprintf(fmt, sizeof fmt, o->details ? "%s %%s/1 " : "%s %%s ", word);
    gw_tc_show_size(o, word, fmt, bytes);
    if (o->details)
        gw_tc_show_size(o, NULL, "mpu %s ", mpu);
}

static void htb_tc_show_class(const struct gw_qdisc *q, const struct gw_qclass *c,
                              struct gw_tc_out *o)
{
    const struct htb_class *cl = GW_CONTAINER(c, const struct htb_class, c);

    (void)q;
    if (!cl->level) {
        o->u64(o, "prio", "prio %llu ", cl->prio);
        if (o->details)
            o->i64(o, "quantum", "quantum %lld ", cl->quantum);
    }
    gw_tc_show_rate(o, "rate", "rate %s ", cl->rate.rate_bytes_s);
    if (cl->rate.overhead)
        o->u64(o, "overhead", "overhead %llu ", cl->rate.overhead);
    gw_tc_show_rate(o, "ceil", "ceil %s ", cl->ceil.rate_bytes_s);
    if (cl->rate.atm || o->details)
        o->str(o, "linklayer", "linklayer %s ", cl->rate.atm ? "atm" : "ethernet");
    htb_show_bucket(o, "burst", cl->rate.rate_bytes_s, cl->buffer, cl->rate.mpu);
    htb_show_bucket(o, "cburst", cl->ceil.rate_bytes_s, cl->cbuffer, cl->ceil.mpu);
    if (o->details)
        o->u64(o, "level", "level %llu ", (unsigned long long)cl->level);
    if (o->raw) {
        o->u64(o, NULL, "buffer [%08llx] ", (uint64_t)cl->buffer >> GW_TICK_SHIFT);
        o->u64(o, NULL, "cbuffer [%08llx] ", (uint64_t)cl->cbuffer >> GW_TICK_SHIFT);
    }
}

static long long htb_ticks(int64_t ns)
{
    ns >>= GW_TICK_SHIFT;
    return ns < INT32_MIN ? INT32_MIN : ns > INT32_MAX ? INT32_MAX : ns;
}

static void htb_tc_show_class_stats(const struct gw_qdisc *q, const struct gw_qclass *c,
                                    struct gw_tc_out *o)
{
    const struct htb_class *cl = GW_CONTAINER(c, const struct htb_class, c);

    (void)q;
    o->u64(o, "lended", " lended: %llu", cl->lends);
    o->u64(o, "borrowed", " borrowed: %llu", cl->borrows);
    o->u64(o, "giants", " giants: %llu\n", 0);
    o->i64(o, "tokens", " tokens: %lld", htb_ticks(cl->tokens));
    o->i64(o, "ctokens", " ctokens: %lld\n", htb_ticks(cl->ctokens));
}

static uint32_t htb_class_of(struct gw_qdisc *q, const struct gw_pkt *p)
{
    const struct htb_class *cl = htb_classify(q, p);

    return cl ? cl->c.id : 0;
}

/* What the class and all above it let through: the least ceil. */
static void htb_outline(const struct gw_qdisc *q, uint32_t classid, uint32_t len_bytes,
                        struct gw_outline *o)
{
    const struct htb_class *cl = classid ? htb_find(q->priv, classid) : NULL;

    for (; cl; cl = cl->parent) {
        uint64_t bps = gw_ratecfg_bps(&cl->ceil, len_bytes);

        if (bps && (!o->rate_bps || bps < o->rate_bps))
            o->rate_bps = bps;
    }
}

/* A sentence for each of a few classes, or one for the newest and the number of the others. */
static void htb_advise_classes(const struct htb *h, void (*say)(void *ctx, const char *sentence),
                              void *ctx)
{
    const struct htb_class *cl = h->warned;
    bool all = h->warnings <= HTB_SENTENCES;
    char text[320], more[80] = "";

    while (all && cl && cl->older)
        cl = cl->older;
    if (!all)
        snprintf(more, sizeof more, "; there is something to say of %u other classes, too", h->warnings - 1);
    for (; cl; cl = cl->newer) {
        if (htb_ceil_is_less(cl)) {
            snprintf(text, sizeof text, "ceil of class %x:%x is below its rate: it sends at most "
                     "%.6g Mbit/s, its ceil, and not %.6g%s", cl->c.id >> 16, cl->c.id & 0xffff,
                     (double)cl->ceil.rate_bytes_s * 8e-6, (double)cl->rate.rate_bytes_s * 8e-6,
                     more);
            say(ctx, text);
        }
        if (!cl->warn || cl->level)
            continue;
        snprintf(text, sizeof text, "quantum of class %x:%x is %s: rate / r2q would be %llu bytes, "
                 "%d are taken, so borrowed bandwidth is not shared by rates%s", cl->c.id >> 16,
                 cl->c.id & 0xffff, cl->warn < 0 ? "small" : "big",
                 (unsigned long long)(cl->rate.rate_bytes_s / h->r2q), cl->quantum, more);
        say(ctx, text);
    }
}

static void htb_advise(const struct gw_qdisc *q, void (*say)(void *ctx, const char *sentence),
                       void *ctx)
{
    const struct htb *h = q->priv;
    const struct htb_class *rest = htb_find(q->priv, (q->handle & 0xffff0000) |
                                                     (h->defcls & 0xffff));
    char text[256];

    if (q->net && (!rest || rest->level) && !q->host->has_filters(q)) {
        snprintf(text, sizeof text, "there is no filter, and default %#x is no leaf class: frames "
                 "whose priority is no class pass unshaped, ahead of all others", h->defcls);
        say(ctx, text);
    }
    htb_advise_classes(h, say, ctx);
}

static const struct gw_param htb_class_params[] = {
    { "rate", GW_P_WORDS, 0, "", NULL, NULL, "Rate of the class itself; must be given." },
    { "ceil", GW_P_WORDS, 0, "", NULL, NULL, "Rate with what it borrows; not given: rate." },
    { "burst", GW_P_WORDS, 0, "1600b", NULL, NULL,
      "Bytes at once at rate, also buffer or maxburst; default: mtu and what 1 ns lets through." },
    { "cburst", GW_P_WORDS, 0, "1600b", NULL, NULL,
      "Bytes at once at ceil, also cbuffer or cmaxburst." },
    { "prio", GW_P_WORDS, 0, "0", NULL, NULL, "Priority 0 to 7 of a leaf; lower is served first." },
    { "quantum", GW_P_WORDS, 0, "", NULL, NULL,
      "Bytes a leaf sends in its turn; not given: rate / r2q within 1000 and 200000." },
    { "mpu", GW_P_WORDS, 0, "0", NULL, NULL, "Shorter frames cost as much as this many bytes." },
    { "overhead", GW_P_WORDS, 0, "0", NULL, NULL, "Bytes that each frame costs in addition." },
    { "linklayer", GW_P_WORDS, 0, "ethernet", NULL, NULL,
      "ethernet, or atm (adsl): cells of 53 bytes for 48." },
    { "mtu", GW_P_WORDS, 0, "1600", NULL, NULL, "Counts in the default of burst and cburst." },
};

static const struct gw_qdisc_ops htb_ops = {
    .priv_bytes = sizeof(struct htb),
    .conf_bytes = sizeof(struct htb_conf),
    .init       = htb_init,
    .fini       = htb_fini,
    .enqueue    = htb_enqueue,
    .dequeue    = htb_dequeue,
    .next_ps    = htb_next_ps,
    .reset      = htb_reset,
    .class_conf_bytes  = sizeof(struct htb_class_conf),
    .class_params      = htb_class_params,
    .class_param_count = GW_ARRAY_LEN(htb_class_params),
    .class_change = htb_class_change,
    .class_delete = htb_class_delete,
    .class_find   = htb_class_find,
    .class_walk   = htb_class_walk,
    .class_parent = htb_class_parent,
    .graft        = htb_graft,
    .child_empty  = htb_child_empty,
    .tc_parse       = htb_tc_parse,
    .tc_class_parse = htb_tc_class_parse,
    .tc_show        = htb_tc_show,
    .tc_show_class  = htb_tc_show_class,
    .tc_show_class_stats = htb_tc_show_class_stats,
    .advise         = htb_advise,
    .class_of       = htb_class_of,
    .outline        = htb_outline,
};

static const struct gw_param htb_params[] = {
    { "default", GW_P_WORDS, 0, "0", NULL, NULL,
      "Minor of the class for what nothing else decides, HEXADECIMAL; 0: the direct queue." },
    { "r2q", GW_P_WORDS, 0, "10", NULL, NULL, "Quanta are rate / r2q." },
    { "direct_qlen", GW_P_WORDS, 0, "", NULL, NULL,
      "Packets in the direct queue; not given: txqueuelen." },
    { "debug", GW_P_WORDS, 0, "0", NULL, NULL, "Taken, and means nothing." },
};

GW_PLUGIN(gw_qdisc_htb) = {
    GW_PLUGIN_HEAD(GW_KIND_QDISC, htb_ops),
    .name    = "htb",
    .summary = "Hierarchical token buckets: classes with a rate that borrow up to a ceiling.",
    .params  = htb_params, .param_count = GW_ARRAY_LEN(htb_params),
    .source  = "Linux 6.1 net/sched/sch_htb.c",
};
