/*
 * sch_sfq - stochastic fairness: short queues by hash, served in turn
 *
 * What Linux's sfq does: a flow's hash picks one of `divisor` buckets, a bucket in use has a slot.
 * Slots are served in turn; a new one goes to the end of the round with an allotment of `quantum`
 * bytes, is served while its allotment is above 0 (so it may overdraw), and gets quantum more when
 * it comes round again. When `limit` packets are exceeded, the slot with most packets loses its
 * newest (with headdrop its oldest). A slot takes at most `depth` packets, there are at most
 * `flows` slots; limit is cut to depth x flows. `perturb` seconds after seconds the hash gets a
 * new secret and all packets are hashed again. With `redflowlimit` and its companions each slot
 * has a RED average. sfq refuses `change`, as in the kernel. Follows net/sched/sch_sfq.c of Linux
 * 6.1 and tc/q_sfq.c of iproute2 6.1; McKenney, INFOCOM 1990. Approximated: the seconds of perturb
 * begin with the first packet. Left out: slots shown as classes.
 */
#include <gradwire/alg/red.h>
#include <gradwire/alg/tcwords.h>

enum {
    DEPTH_MAX = 127, FLOWS_DEFAULT = 128, FLOWS_MAX = 0x10000 - DEPTH_MAX - 1, DIVISOR_MAX = 65536,
    PERTURB_MAX = 21474836,          /* seconds that fit in the kernel's clock of 100 Hz        */
    CLOCK_S_MAX = 9000000,           /* twice this fits in picoseconds                          */
};
#define NO_SLOT UINT32_MAX

struct sfq_conf {
    uint32_t quantum, limit, divisor, flows, depth;    /* 0: not given                          */
    int32_t  perturb;                                  /* seconds                               */
    uint32_t headdrop;
    struct gw_red_conf red;                            /* min 0: no RED                         */
};

struct sfq_slot {
    struct gw_pktq queue;
    uint32_t next;                   /* in the round                                            */
    uint32_t up, down;               /* neighbours among slots of the same length               */
    uint32_t bucket;
    int64_t  allot;
    uint64_t avg;                    /* RED                                                     */
    int32_t  red_count;
    uint32_t red_draw;
};

struct sfq {
    struct sfq_slot *slot;
    uint32_t *bucket;                /* slot of a hash value, or NO_SLOT                        */
    uint32_t  by_len[DEPTH_MAX + 1]; /* first slot of each length, NO_SLOT: none                */
    uint32_t  longest;
    uint32_t  tail;                  /* slot whose next is served next, NO_SLOT: none           */
    uint32_t  limit, depth, flows, divisor, quantum;
    uint32_t  count;                 /* packets held                                            */
    uint64_t  secret;
    uint32_t  perturb_s;             /* seconds, 0: never                                       */
    uint64_t  perturb_ps, perturb_at_ps;
    bool      headdrop, red_on;
    uint32_t  red_flags;
    struct gw_red red;               /* constants; the state moves with the slots               */
    uint64_t  prob_drop, prob_mark, prob_mark_head, forced_drop, forced_mark, forced_mark_head;
};

/* ---- slots by length ---------------------------------------------------------------------- */

static void len_link(struct sfq *s, uint32_t x)
{
    uint32_t len = s->slot[x].queue.count, first = s->by_len[len];

    s->slot[x].up = NO_SLOT;
    s->slot[x].down = first;
    if (first != NO_SLOT)
        s->slot[first].up = x;
    s->by_len[len] = x;
    if (len > s->longest)
        s->longest = len;
}

static void len_unlink(struct sfq *s, uint32_t x)
{
    struct sfq_slot *t = &s->slot[x];

    if (t->up == NO_SLOT)
        s->by_len[t->queue.count] = t->down;
    else
        s->slot[t->up].down = t->down;
    if (t->down != NO_SLOT)
        s->slot[t->down].up = t->up;
    if (s->longest == t->queue.count && s->by_len[t->queue.count] == NO_SLOT && s->longest)
        s->longest--;
}

static void slot_push(struct sfq *s, uint32_t x, struct gw_pkt *p)
{
    len_unlink(s, x);
    gw_pktq_push(&s->slot[x].queue, p);
    len_link(s, x);
    s->count++;
}

static struct gw_pkt *slot_pop(struct sfq *s, uint32_t x)
{
    struct gw_pkt *p;

    len_unlink(s, x);
    p = gw_pktq_pop(&s->slot[x].queue);
    len_link(s, x);
    s->count--;
    return p;
}

/* The newest; at most `depth` links are walked. */
static struct gw_pkt *slot_pop_tail(struct sfq *s, uint32_t x)
{
    struct gw_pktq *f = &s->slot[x].queue;
    struct gw_pkt *p = f->tail, *before = f->head;

    if (f->head == p)
        return slot_pop(s, x);
    while (before->next != p)
        before = before->next;
    len_unlink(s, x);
    before->next = NULL;
    f->tail = before;
    f->count--;
    f->bytes -= p->sched_bytes;
    len_link(s, x);
    s->count--;
    return p;
}

/* ---- flows -------------------------------------------------------------------------------- */

/* The bucket of @p; NO_SLOT: a filter sends it nowhere. */
static uint32_t sfq_classify(struct gw_qdisc *q, const struct sfq *s, const struct gw_pkt *p)
{
    uint32_t minor = p->priority & 0xffff, class;

    if (q->handle && (p->priority & 0xffff0000) == q->handle && minor && minor <= s->divisor)
        return minor - 1;
    class = q->host->classify ? q->host->classify(q, p) : 0;
    if (class) {
        minor = class & 0xffff;
        return minor && minor <= s->divisor ? minor - 1 : NO_SLOT;
    }
    return (uint32_t)gw_mix64(p->hash ^ s->secret) & (s->divisor - 1);
}

/* The slot of @bucket, a free one if it has none; NO_SLOT: all are in use. */
static uint32_t slot_of(struct sfq *s, uint32_t bucket)
{
    uint32_t x = s->bucket[bucket];

    if (x != NO_SLOT)
        return x;
    x = s->by_len[0];
    if (x == NO_SLOT)
        return x;
    s->bucket[bucket] = x;
    s->slot[x].bucket = bucket;
    s->slot[x].avg = 0;
    s->slot[x].red_count = -1;
    return x;
}

/* A slot that got its first packet goes to the end of the round. */
static void round_join(struct sfq *s, uint32_t x)
{
    if (s->slot[x].queue.count != 1)
        return;
    if (s->tail == NO_SLOT) {
        s->slot[x].next = x;
    } else {
        s->slot[x].next = s->slot[s->tail].next;
        s->slot[s->tail].next = x;
    }
    s->tail = x;
    s->slot[x].allot = s->quantum;
}

/* The slot behind the tail leaves the round. */
static void round_leave(struct sfq *s, uint32_t x)
{
    s->bucket[s->slot[x].bucket] = NO_SLOT;
    if (s->slot[x].next == x)
        s->tail = NO_SLOT;
    else
        s->slot[s->tail].next = s->slot[x].next;
}

static void drop_longest(struct gw_qdisc *q, struct sfq *s)
{
    uint32_t x;

    if (!s->longest)
        return;
    x = s->longest > 1 ? s->by_len[s->longest] : s->slot[s->tail].next;
    if (s->longest == 1)
        round_leave(s, x);
    q->host->qdisc_drop(q, s->headdrop ? slot_pop(s, x) : slot_pop_tail(s, x),
                        GW_DROP_QUEUE_FULL);
}

/* ---- RED per slot ------------------------------------------------------------------------- */

static bool sfq_mark(struct gw_qdisc *q, struct sfq_slot *t, struct gw_pkt *p, uint64_t *marks,
                     uint64_t *head_marks)
{
    struct sfq *s = q->priv;

    if (s->headdrop && gw_qdisc_mark(q, t->queue.head)) {
        ++*head_marks;
        return true;
    }
    if (!gw_qdisc_mark(q, p))
        return false;
    ++*marks;
    return true;
}

/* True: @p (or the head in its place) must go. */
static bool sfq_red_drops(struct gw_qdisc *q, struct sfq_slot *t, struct gw_pkt *p)
{
    struct sfq *s = q->priv;
    bool ecn = s->red_flags & GW_RED_ECN, hard = s->red_flags & GW_RED_HARDDROP;
    enum gw_red_verdict v;

    s->red.avg = t->avg;
    s->red.count = t->red_count;
    s->red.draw = t->red_draw;
    t->avg = gw_red_busy_avg(&s->red, t->queue.bytes);
    v = gw_red_decide(&s->red, t->avg, &q->rng);
    t->red_count = s->red.count;
    t->red_draw = s->red.draw;
    if (v == GW_RED_PASS)
        return false;
    q->overlimits++;
    if (v == GW_RED_PROB) {
        if (ecn && sfq_mark(q, t, p, &s->prob_mark, &s->prob_mark_head))
            return false;
        s->prob_drop++;
    } else {
        if (ecn && !hard && sfq_mark(q, t, p, &s->forced_mark, &s->forced_mark_head))
            return false;
        s->forced_drop++;
    }
    return true;
}

/* ---- the hash's secret -------------------------------------------------------------------- */

/* Puts @p where the new secret says. */
static void rehash_one(struct gw_qdisc *q, struct sfq *s, struct gw_pkt *p)
{
    uint32_t x = slot_of(s, (uint32_t)gw_mix64(p->hash ^ s->secret) & (s->divisor - 1));

    if (x == NO_SLOT || s->slot[x].queue.count >= s->depth) {
        q->host->qdisc_drop(q, p, GW_DROP_FLOW_LIMIT);
        return;
    }
    if (s->red_on) {
        s->red.avg = s->slot[x].avg;
        s->slot[x].avg = gw_red_busy_avg(&s->red, s->slot[x].queue.bytes);
    }
    slot_push(s, x, p);
    round_join(s, x);
}

static void rehash(struct gw_qdisc *q, struct sfq *s)
{
    struct gw_pktq all = { 0 };
    struct gw_pkt *p;

    for (uint32_t x = 0; x < s->flows; x++) {
        if (!s->slot[x].queue.count)
            continue;
        s->bucket[s->slot[x].bucket] = NO_SLOT;
        while (s->slot[x].queue.count)
            gw_pktq_push(&all, slot_pop(s, x));
    }
    s->tail = NO_SLOT;
    while ((p = gw_pktq_pop(&all)))
        rehash_one(q, s, p);
}

static void perturb_until(struct gw_qdisc *q, struct sfq *s, uint64_t now_ps)
{
    if (!s->perturb_ps)
        return;
    if (!s->perturb_at_ps)
        s->perturb_at_ps = now_ps + s->perturb_ps;
    if (now_ps < s->perturb_at_ps)
        return;
    s->perturb_at_ps += ((now_ps - s->perturb_at_ps) / s->perturb_ps + 1) * s->perturb_ps;
    s->secret = gw_rng_u64(&q->rng);
    if (s->count)
        rehash(q, s);
}

/* ---- callbacks ---------------------------------------------------------------------------- */

static enum gw_status sfq_check(const struct sfq_conf *c, struct gw_error *err)
{
    if (c->divisor > DIVISOR_MAX || (c->divisor & (c->divisor - 1)))
        return gw_fail(err, GW_PARAM, "sfq: divisor is %u; a power of two up to %d is right",
                       c->divisor, DIVISOR_MAX);
    if (c->quantum > INT32_MAX)
        return gw_fail(err, GW_PARAM, "sfq: invalid quantum %u; at most 2147483647 bytes are right",
                       c->quantum);
    if (c->perturb < 0 || c->perturb > PERTURB_MAX)
        return gw_fail(err, GW_PARAM, "sfq: invalid perturb period %d; 0 to %d seconds are right",
                       c->perturb, PERTURB_MAX);
    return gw_red_check("sfq", &c->red, err);
}

static uint32_t least(uint64_t a, uint64_t b)
{
    return (uint32_t)(a < b ? a : b);
}

static enum gw_status sfq_apply(struct sfq *s, const struct sfq_conf *c, struct gw_error *err)
{
    if (c->quantum)
        s->quantum = c->quantum;
    if (c->flows)
        s->flows = least(c->flows, FLOWS_MAX);
    if (c->divisor) {
        s->divisor = c->divisor;
        s->flows = least(s->flows, s->divisor);
    }
    if (c->depth)
        s->depth = least(c->depth, DEPTH_MAX);
    if (c->limit) {
        s->limit = least(c->limit, (uint64_t)s->depth * s->flows);
        s->flows = least(s->flows, s->limit);
    }
    if (s->limit == 1)
        return gw_fail(err, GW_PARAM, "sfq: invalid limit 1 (limit is at most depth x flows); at "
                       "least 2 packets are right");
    s->perturb_s = (uint32_t)c->perturb;
    s->perturb_ps = least(s->perturb_s, CLOCK_S_MAX) * GW_PS_PER_S;
    s->headdrop = c->headdrop;
    s->red_flags = c->red.flags;
    s->red_on = c->red.min != 0;
    if (s->red_on)
        gw_red_set(&s->red, &c->red);
    return GW_OK;
}

static void sfq_fini(struct gw_qdisc *q)
{
    struct sfq *s = q->priv;

    q->host->release(s->slot);
    q->host->release(s->bucket);
}

static void sfq_clear(struct sfq *s)
{
    for (uint32_t i = 0; i < s->divisor; i++)
        s->bucket[i] = NO_SLOT;
    for (uint32_t i = 0; i <= DEPTH_MAX; i++)
        s->by_len[i] = NO_SLOT;
    s->longest = 0;
    s->tail = NO_SLOT;
    for (uint32_t x = 0; x < s->flows; x++)
        len_link(s, x);
}

static enum gw_status sfq_init(struct gw_qdisc *q, struct gw_error *err)
{
    const struct sfq_conf *c = q->conf;
    struct sfq *s = q->priv;

    s->limit = s->depth = DEPTH_MAX;
    s->flows = FLOWS_DEFAULT;
    s->divisor = 1024;
    s->quantum = q->mtu_bytes;
    if (sfq_check(c, err) != GW_OK || sfq_apply(s, c, err) != GW_OK)
        return err->code;
    s->slot = q->host->alloc(s->flows * sizeof *s->slot);
    s->bucket = q->host->alloc(s->divisor * sizeof *s->bucket);
    if (!s->slot || !s->bucket) {
        sfq_fini(q);
        return gw_fail(err, GW_NOMEM, "out of memory for %u flows of sfq", s->flows);
    }
    if (q->rng.refill)
        s->secret = gw_rng_u64(&q->rng);
    sfq_clear(s);
    return GW_OK;
}

/* A full slot: the newcomer goes, or with headdrop the oldest in its place. */
static enum gw_verdict slot_full(struct gw_qdisc *q, struct sfq *s, uint32_t x, struct gw_pkt *p,
                                 enum gw_drop_reason why)
{
    if (!s->headdrop) {
        q->drop_reason = why;
        return GW_Q_DROPPED;
    }
    q->host->qdisc_drop(q, slot_pop(s, x), why);
    slot_push(s, x, p);
    return GW_Q_QUEUED;
}

static enum gw_verdict sfq_enqueue(struct gw_qdisc *q, struct gw_pkt *p, uint64_t now_ps)
{
    struct sfq *s = q->priv;
    uint32_t bucket, x;

    perturb_until(q, s, now_ps);
    bucket = sfq_classify(q, s, p);
    if (bucket == NO_SLOT) {
        q->drop_reason = GW_DROP_UNCLASSIFIED;
        return GW_Q_DROPPED;
    }
    x = slot_of(s, bucket);
    if (x == NO_SLOT) {
        q->drop_reason = GW_DROP_QUEUE_FULL;
        return GW_Q_DROPPED;
    }
    if (s->slot[x].queue.count) {
        if (s->red_on && sfq_red_drops(q, &s->slot[x], p))
            return slot_full(q, s, x, p, GW_DROP_AQM);
        if (s->slot[x].queue.count >= s->depth)
            return slot_full(q, s, x, p, GW_DROP_FLOW_LIMIT);
    }
    slot_push(s, x, p);
    round_join(s, x);
    if (q->backlog_pkts + 1 > s->limit)
        drop_longest(q, s);
    return GW_Q_QUEUED;
}

static struct gw_pkt *sfq_dequeue(struct gw_qdisc *q, uint64_t now_ps)
{
    struct sfq *s = q->priv;
    struct gw_pkt *p;
    uint32_t x;

    perturb_until(q, s, now_ps);
    if (s->tail == NO_SLOT)
        return NULL;
    for (;;) {
        x = s->slot[s->tail].next;
        if (s->slot[x].allot > 0)
            break;
        s->slot[x].allot += s->quantum;
        s->tail = x;
    }
    p = slot_pop(s, x);
    if (s->slot[x].queue.count)
        s->slot[x].allot -= p->sched_bytes;
    else
        round_leave(s, x);
    return p;
}

static void sfq_reset(struct gw_qdisc *q, uint64_t now_ps)
{
    struct sfq *s = q->priv;

    (void)now_ps;
    for (uint32_t x = 0; x < s->flows; x++)
        while (s->slot[x].queue.count)
            q->host->qdisc_drop(q, slot_pop(s, x), GW_DROP_PURGED);
    sfq_clear(s);
}

/* ---- tc's words --------------------------------------------------------------------------- */

enum { GIVEN_RED = 1, GIVEN_LIMIT = 2, GIVEN_ANY = 4 };

struct sfq_words {
    struct sfq_conf conf;
    struct gw_red_words red;
};

static enum gw_status sfq_red_words(const struct gw_tc_args *a, struct gw_red_words *w,
                                    struct gw_red_conf *c, struct gw_error *err)
{
    if (!w->limit)
        return gw_tc_missing(err, a, "redflowlimit",
                             "sfq: Required parameter (redflowlimit) is missing");
    if (!w->avpkt)
        return gw_tc_illegal(err, "avpkt", "0", "a size like 1000");
    if (!w->max)
        w->max = w->limit / 4;
    if (!w->min)
        w->min = w->max / 3;
    if (!w->burst)
        w->burst = (2 * w->min + w->max) / (3 * w->avpkt);
    if (w->max > w->limit)
        return gw_fail(err, GW_SYNTAX, "sfq: \"max\" is larger than \"limit\": %u and %u bytes",
                       w->max, w->limit);
    if (w->min >= w->max)
        return gw_fail(err, GW_SYNTAX, "sfq: \"min\" is not smaller than \"max\": %u and %u bytes",
                       w->min, w->max);
    return gw_red_derive("sfq", w, 1, false, c, err);
}

static enum gw_status sfq_tc_parse(const struct gw_tc_args *a, void *conf, uint64_t *given,
                                   struct gw_error *err)
{
    static const struct gw_tcword words[] = {
#define AT(field) offsetof(struct sfq_words, field)
        { "quantum", GW_TCW_SIZE, AT(conf.quantum), 0, 0, "a size like 1514" },
        { "perturb", GW_TCW_I32, AT(conf.perturb), 0, 0, "a count of seconds" },
        { "limit", GW_TCW_U32, AT(conf.limit), 0, GIVEN_LIMIT, "a count of packets above 1" },
        { "divisor", GW_TCW_U32, AT(conf.divisor), 0, 0, "a power of two" },
        { "flows", GW_TCW_U32, AT(conf.flows), 0, 0, "a count of flows" },
        { "depth", GW_TCW_U32, AT(conf.depth), 0, 0, "a count of packets up to 127" },
        { "headdrop", GW_TCW_SET, AT(conf.headdrop), 1, 0, NULL },
        { "redflowlimit", GW_TCW_U32, AT(red.limit), 0, GIVEN_RED, "a count of bytes" },
        { "min", GW_TCW_U32, AT(red.min), 0, GIVEN_RED, "a count of bytes" },
        { "max", GW_TCW_U32, AT(red.max), 0, GIVEN_RED, "a count of bytes" },
        { "burst", GW_TCW_U32, AT(red.burst), 0, GIVEN_RED, "a count of packets" },
        { "avpkt", GW_TCW_SIZE, AT(red.avpkt), 0, GIVEN_RED, "a size like 1000" },
        { "probability", GW_TCW_DOUBLE, AT(red.probability), 0, GIVEN_RED,
          "a fraction like 0.02" },
        { "ecn", GW_TCW_OR, AT(red.flags), GW_RED_ECN, GIVEN_RED, NULL },
        { "harddrop", GW_TCW_OR, AT(red.flags), GW_RED_HARDDROP, GIVEN_RED, NULL },
#undef AT
    };
    struct sfq_words w = { .red.probability = 0.02, .red.avpkt = 1000 };

    if (gw_tcwords_read("sfq", words, GW_ARRAY_LEN(words), a, 0, &w, given, err) != GW_OK)
        return err->code;
    if ((*given & GIVEN_LIMIT) && w.conf.limit < 2)
        return gw_fail(err, GW_SYNTAX, "sfq: Illegal \"limit\" %u, must be > 1", w.conf.limit);
    if ((*given & GIVEN_RED) && sfq_red_words(a, &w.red, &w.conf.red, err) != GW_OK)
        return err->code;
    *(struct sfq_conf *)conf = w.conf;
    if (a->count)
        *given |= GIVEN_ANY;
    return GW_OK;
}

/* tc sends no options for a line without words: that changes nothing and is no error. */
static enum gw_status sfq_change(struct gw_qdisc *q, const void *conf, uint64_t given,
                                 uint64_t now_ps, struct gw_error *err)
{
    (void)q;
    (void)conf;
    (void)now_ps;
    if (given)
        return gw_fail(err, GW_PARAM, "Change operation not supported by specified qdisc: sfq");
    return GW_OK;
}

static void sfq_show_red(const struct sfq *s, struct gw_tc_out *o)
{
    o->u64(o, "ewma", "ewma %llu ", s->red.wlog);
    gw_red_show_size(o, "min", "min %s ", s->red.min >> s->red.wlog);
    gw_red_show_size(o, "max", "max %s ", s->red.max >> s->red.wlog);
    o->real(o, "probability", "probability %g ", s->red.max_p / 4294967296.0);
    gw_red_show_flags(s->red_flags, o);
    if (!o->stats)
        return;
    o->newline(o);
    o->u64(o, "prob_mark", "prob_mark %llu", s->prob_mark);
    o->u64(o, "prob_mark_head", " prob_mark_head %llu", s->prob_mark_head);
    o->u64(o, "prob_drop", " prob_drop %llu", s->prob_drop);
    o->newline(o);
    o->u64(o, "forced_mark", "forced_mark %llu", s->forced_mark);
    o->u64(o, "forced_mark_head", " forced_mark_head %llu", s->forced_mark_head);
    o->u64(o, "forced_drop", " forced_drop %llu", s->forced_drop);
}

static void sfq_tc_show(const struct gw_qdisc *q, struct gw_tc_out *o)
{
    const struct sfq *s = q->priv;

    o->u64(o, "limit", "limit %llup ", s->limit);
    gw_red_show_size(o, "quantum", "quantum %s ", s->quantum);
    o->u64(o, "depth", "depth %llu ", s->depth);
    if (s->headdrop)
        o->flag(o, "headdrop", "headdrop ", true);
    if (o->details)
        o->u64(o, "flows", "flows %llu ", s->flows);
    o->u64(o, "divisor", "divisor %llu ", s->divisor);
    if (s->perturb_s)
        o->u64(o, "perturb", "perturb %llusec ", s->perturb_s);
    if (s->red_on)
        sfq_show_red(s, o);
}

static const struct gw_stat sfq_stats[] = {
    { "prob_drop", offsetof(struct sfq, prob_drop), "packets dropped by RED by chance" },
    { "prob_mark", offsetof(struct sfq, prob_mark), "packets marked by RED by chance" },
    { "forced_drop", offsetof(struct sfq, forced_drop), "packets dropped by RED above max" },
    { "forced_mark", offsetof(struct sfq, forced_mark), "packets marked by RED above max" },
};

/* tc prints nothing behind the common statistics. */
static void sfq_tc_show_stats(const struct gw_qdisc *q, struct gw_tc_out *o)
{
    (void)q;
    (void)o;
}

static const struct gw_qdisc_ops sfq_ops = {
    .priv_bytes    = sizeof(struct sfq),
    .conf_bytes    = sizeof(struct sfq_conf),
    .init          = sfq_init,
    .fini          = sfq_fini,
    .enqueue       = sfq_enqueue,
    .dequeue       = sfq_dequeue,
    .change        = sfq_change,
    .reset         = sfq_reset,
    .tc_parse      = sfq_tc_parse,
    .tc_show       = sfq_tc_show,
    .tc_show_stats = sfq_tc_show_stats,
    .stats         = sfq_stats, .stat_count = GW_ARRAY_LEN(sfq_stats),
};

static const struct gw_param sfq_params[] = {
    { "limit", GW_P_WORDS, 0, "127", NULL, NULL, "Packets that may wait, at most depth x flows." },
    { "quantum", GW_P_WORDS, 0, "1514", NULL, NULL, "Bytes a flow may send in a turn." },
    { "perturb", GW_P_WORDS, 0, "0", NULL, NULL, "Seconds after which flows are hashed anew." },
    { "divisor", GW_P_WORDS, 0, "1024", NULL, NULL, "Values of the hash, a power of two." },
    { "flows", GW_P_WORDS, 0, "128", NULL, NULL, "Flows that may wait at the same time." },
    { "depth", GW_P_WORDS, 0, "127", NULL, NULL, "Packets that a flow may have waiting." },
    { "headdrop", GW_P_WORDS, 0, "no", NULL, NULL, "Drops a flow's oldest packet, not its last." },
    { "redflowlimit", GW_P_WORDS, 0, "", NULL, NULL, "Bytes of a flow; turns on RED per flow." },
    { "min", GW_P_WORDS, 0, "", NULL, NULL, "RED: average of a flow where drops begin; max / 3." },
    { "max", GW_P_WORDS, 0, "", NULL, NULL,
      "RED: average above which all are dropped; redflowlimit / 4." },
    { "burst", GW_P_WORDS, 0, "", NULL, NULL,
      "RED: packets that may come at once; (2 min + max) / (3 avpkt)." },
    { "avpkt", GW_P_WORDS, 0, "1000", NULL, NULL, "RED: mean size of a packet in bytes." },
    { "probability", GW_P_WORDS, 0, "0.02", NULL, NULL, "RED: share of packets dropped at max." },
    { "ecn", GW_P_WORDS, 0, "no", NULL, NULL, "RED: marks ECT packets instead of dropping." },
    { "harddrop", GW_P_WORDS, 0, "no", NULL, NULL, "RED: drops above max even with ecn." },
};

GW_PLUGIN(gw_qdisc_sfq) = {
    GW_PLUGIN_HEAD(GW_KIND_QDISC, sfq_ops),
    .name    = "sfq",
    .summary = "Fair short queues by flow hash.",
    .params  = sfq_params, .param_count = GW_ARRAY_LEN(sfq_params),
    .source  = "Linux 6.1 net/sched/sch_sfq.c; McKenney, INFOCOM 1990",
};
