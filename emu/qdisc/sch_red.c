/*
 * sch_red - Random Early Detection before a queue
 *
 * What Linux's red does: at each arrival an average of the backlog in bytes is updated with weight
 * 2^-Wlog; above max every packet is dropped, between min and max one in a while, uniformly spaced
 * (see alg/red.h; the long-run rate is about twice the probability that the words promise). With
 * ecn ECT packets are marked instead, above max too unless harddrop is said; nodrop lets packets
 * that can't be marked pass. adaptative (or adaptive) moves the probability every half second. The
 * queue itself is a bfifo of `limit` bytes under class X:1, or what is grafted there; `change`
 * makes a new, empty bfifo, as the kernel does. tc derives the weight, the probability and the
 * table of idle times from burst, avpkt and bandwidth: the same is done here. A probability is a
 * fraction; a % sign is ignored by tc. Follows net/sched/sch_red.c of Linux 6.1 and tc/q_red.c of
 * iproute2 6.1. Approximated: the half seconds of adaptative begin with the first packet, not with
 * the discipline. Left out: qevents.
 */
#include <gradwire/alg/classes.h>
#include <gradwire/alg/red.h>
#include <gradwire/alg/tcwords.h>

#define ADAPT_NS UINT64_C(500000000)
#define ADAPT_MAX 400u               /* half seconds after which an idle queue changes no more  */

struct red {
    struct gw_red  red;
    struct gw_qclass cls;            /* X:1                                                     */
    uint32_t limit, flags;
    uint64_t adapt_ns;               /* next adaptation, 0: not begun                           */
    uint64_t prob_drop, prob_mark, forced_drop, forced_mark, pdrop;
};

/* ---- the queue behind it ------------------------------------------------------------------ */

static enum gw_status limit_fifo(struct gw_qdisc *fifo, uint32_t limit, struct gw_error *err)
{
    const struct gw_param *row = fifo->rows;

    if (!fifo->ops->change || !fifo->row_count || strcmp(row->name, "limit") ||
        row->type != GW_P_BYTES)
        return gw_fail(err, GW_BUG, "red: bfifo has no limit in bytes");
    *(uint64_t *)(void *)((char *)fifo->conf + row->offset) = limit;
    fifo->given |= 1;
    return fifo->ops->change(fifo, fifo->conf, 1, 0, err);
}

static struct gw_qdisc *new_fifo(struct gw_qdisc *q, uint32_t limit, struct gw_error *err)
{
    struct gw_qdisc *fifo = q->host->qdisc_new(q, "bfifo", q->handle | 1, err);

    if (fifo && limit_fifo(fifo, limit, err) != GW_OK) {
        q->host->qdisc_free(fifo);
        return NULL;
    }
    return fifo;
}

/* ---- callbacks ---------------------------------------------------------------------------- */

static enum gw_status red_check(const struct gw_red_conf *c, struct gw_error *err)
{
    if ((c->flags & GW_RED_NODROP) && !(c->flags & GW_RED_ECN))
        return gw_fail(err, GW_PARAM, "red: nodrop mode is only meaningful with ecn");
    return gw_red_check("red", c, err);
}

static void red_apply(struct gw_qdisc *q, const struct gw_red_conf *c)
{
    struct red *s = q->priv;

    s->limit = c->limit;
    s->flags = c->flags;
    s->adapt_ns = 0;
    gw_red_set(&s->red, c);
}

static enum gw_status red_init(struct gw_qdisc *q, struct gw_error *err)
{
    const struct gw_red_conf *c = q->conf;
    struct red *s = q->priv;

    if (!c->limit)
        return gw_fail(err, GW_PARAM, "red: needs at least limit and avpkt, e.g. `red limit 400000 "
                       "avpkt 1000 bandwidth 10mbit`");
    if (red_check(c, err) != GW_OK)
        return err->code;
    s->cls.id = q->handle | 1;
    s->cls.books = GW_BOOKS_NONE;
    s->cls.child = new_fifo(q, c->limit, err);
    if (!s->cls.child)
        return err->code;
    red_apply(q, c);
    return GW_OK;
}

static void red_fini(struct gw_qdisc *q)
{
    struct red *s = q->priv;

    q->host->qdisc_free(s->cls.child);
}

static void red_adapt_until(struct red *s, uint64_t now_ns)
{
    if (!(s->flags & GW_RED_ADAPTATIVE))
        return;
    if (!s->adapt_ns)
        s->adapt_ns = now_ns + ADAPT_NS;
    for (uint32_t n = 0; s->adapt_ns <= now_ns && n < ADAPT_MAX; n++) {
        gw_red_adapt(&s->red, s->adapt_ns);
        s->adapt_ns += ADAPT_NS;
    }
    if (s->adapt_ns <= now_ns)
        s->adapt_ns += ((now_ns - s->adapt_ns) / ADAPT_NS + 1) * ADAPT_NS;
}

/* True: the packet goes on, marked or not. */
static bool red_congested(struct gw_qdisc *q, struct gw_pkt *p, bool may_mark, uint64_t *drops,
                          uint64_t *marks)
{
    struct red *s = q->priv;

    q->overlimits++;
    if (may_mark && gw_qdisc_mark(q, p)) {
        ++*marks;
        return true;
    }
    if (may_mark && (s->flags & GW_RED_NODROP))
        return true;
    ++*drops;
    q->drop_reason = GW_DROP_AQM;
    return false;
}

static bool red_admit(struct gw_qdisc *q, struct gw_pkt *p, uint64_t now_ns)
{
    struct red *s = q->priv;
    bool ecn = s->flags & GW_RED_ECN, hard = s->flags & GW_RED_HARDDROP;

    gw_red_arrive(&s->red, q->backlog_bytes, now_ns);
    switch (gw_red_decide(&s->red, s->red.avg, &q->rng)) {
    case GW_RED_PROB:
        return red_congested(q, p, ecn, &s->prob_drop, &s->prob_mark);
    case GW_RED_HARD:
        return red_congested(q, p, ecn && !hard, &s->forced_drop, &s->forced_mark);
    default:
        return true;
    }
}

static enum gw_verdict red_enqueue(struct gw_qdisc *q, struct gw_pkt *p, uint64_t now_ps)
{
    struct red *s = q->priv;
    uint64_t now_ns = now_ps / GW_PS_PER_NS;
    enum gw_verdict v;

    red_adapt_until(s, now_ns);
    if (!red_admit(q, p, now_ns))
        return GW_Q_DROPPED;
    v = q->host->qdisc_enqueue(s->cls.child, p, now_ps);
    s->pdrop += v == GW_Q_DROPPED;
    return v;
}

/* Idle begins when there is nothing to give; at the root the port does not come back to ask. */
static struct gw_pkt *red_dequeue(struct gw_qdisc *q, uint64_t now_ps)
{
    struct red *s = q->priv;
    uint64_t now_ns = now_ps / GW_PS_PER_NS;
    struct gw_pkt *p;

    red_adapt_until(s, now_ns);
    p = q->host->qdisc_dequeue(s->cls.child, now_ps);
    if (!p || (!q->up && q->backlog_pkts <= 1))
        gw_red_empty(&s->red, now_ns);
    return p;
}

/* A parent that peeks never has us find the queue empty: then no idle time begins (tbf). */
static struct gw_pkt *red_peek(struct gw_qdisc *q, uint64_t now_ps)
{
    return q->host->qdisc_peek(((struct red *)q->priv)->cls.child, now_ps);
}

static uint64_t red_next_ps(struct gw_qdisc *q, uint64_t now_ps)
{
    struct red *s = q->priv;

    return gw_child_next_ps(s->cls.child, now_ps);
}

static enum gw_status red_change(struct gw_qdisc *q, const void *conf, uint64_t given,
                                 uint64_t now_ps, struct gw_error *err)
{
    const struct gw_red_conf *c = conf;
    struct red *s = q->priv;
    struct gw_qdisc *fifo;

    (void)given;
    if (red_check(c, err) != GW_OK)
        return err->code;
    fifo = new_fifo(q, c->limit, err);
    if (!fifo)
        return err->code;
    gw_child_reset(s->cls.child, now_ps);
    q->host->qdisc_free(s->cls.child);
    s->cls.child = fifo;
    red_apply(q, c);
    s->red.idle = false;
    gw_red_empty(&s->red, now_ps / GW_PS_PER_NS);
    return GW_OK;
}

static void red_reset(struct gw_qdisc *q, uint64_t now_ps)
{
    struct red *s = q->priv;

    gw_child_reset(s->cls.child, now_ps);
    gw_red_forget(&s->red);
    s->red.idle = false;
}

/* ---- classes: the kernel takes any minor for the one class -------------------------------- */

static struct gw_qclass *red_class_find(struct gw_qdisc *q, uint32_t classid)
{
    struct red *s = q->priv;

    return classid >> 16 == q->handle >> 16 ? &s->cls : NULL;
}

static struct gw_qclass *red_class_walk(struct gw_qdisc *q, struct gw_qclass *after)
{
    struct red *s = q->priv;

    s->cls.id = q->handle | 1;
    return after ? NULL : &s->cls;
}

static enum gw_status red_graft(struct gw_qdisc *q, uint32_t classid, struct gw_qdisc *child,
                                struct gw_qdisc **old, struct gw_error *err)
{
    struct red *s = q->priv;

    (void)classid;
    (void)err;
    *old = s->cls.child;
    s->cls.child = child;
    return GW_OK;
}

/* ---- tc's words --------------------------------------------------------------------------- */

static enum gw_status red_tc_parse(const struct gw_tc_args *a, void *conf, uint64_t *given,
                                   struct gw_error *err)
{
    static const struct gw_tcword words[] = {
#define AT(field) offsetof(struct gw_red_words, field)
        { "limit", GW_TCW_SIZE, AT(limit), 0, 0, "a size like 400000" },
        { "min", GW_TCW_SIZE, AT(min), 0, 0, "a size like 30000" },
        { "max", GW_TCW_SIZE, AT(max), 0, 0, "a size like 90000" },
        { "burst", GW_TCW_U32, AT(burst), 0, 0, "a count of packets" },
        { "avpkt", GW_TCW_SIZE, AT(avpkt), 0, 0, "a size like 1000" },
        { "probability", GW_TCW_DOUBLE, AT(probability), 0, 0, "a fraction like 0.02" },
        { "bandwidth", GW_TCW_RATE_DEV, AT(rate), 0, 0, "a rate like 10mbit" },
        { "ecn", GW_TCW_OR, AT(flags), GW_RED_ECN, 0, NULL },
        { "harddrop", GW_TCW_OR, AT(flags), GW_RED_HARDDROP, 0, NULL },
        { "nodrop", GW_TCW_OR, AT(flags), GW_RED_NODROP, 0, NULL },
        { "adaptative", GW_TCW_OR, AT(flags), GW_RED_ADAPTATIVE, 0, NULL },
        { "adaptive", GW_TCW_OR, AT(flags), GW_RED_ADAPTATIVE, 0, NULL },
#undef AT
    };
    struct gw_red_words w = { .probability = 0.02 };

    if (gw_tcwords_read("red", words, GW_ARRAY_LEN(words), a, 0, &w, given, err) != GW_OK)
        return err->code;
    if (!w.limit || !w.avpkt)
        return gw_tc_missing(err, a, w.limit ? "avpkt" : "limit",
                             "RED: Required parameter (limit, avpkt) is missing");
    if (!w.max)
        w.max = w.min ? w.min * 3 : w.limit / 4;
    if (!w.min)
        w.min = w.max / 3;
    if (!w.burst)
        w.burst = (2 * w.min + w.max) / (3 * w.avpkt);
    if (!w.rate)
        w.rate = 1250000;
    return gw_red_derive("red", &w, 1, true, conf, err);
}

static void red_tc_show(const struct gw_qdisc *q, struct gw_tc_out *o)
{
    const struct red *s = q->priv;

    gw_red_show_size(o, "limit", "limit %s ", s->limit);
    gw_red_show_size(o, "min", "min %s ", s->red.min >> s->red.wlog);
    gw_red_show_size(o, "max", "max %s ", s->red.max >> s->red.wlog);
    gw_red_show_flags(s->flags, o);
    gw_red_show_details(&s->red, "Scell_log %llu", o);
}

static void red_tc_show_stats(const struct gw_qdisc *q, struct gw_tc_out *o)
{
    const struct red *s = q->priv;

    o->u64(o, "marked", "  marked %llu ", s->prob_mark + s->forced_mark);
    o->u64(o, "early", "early %llu ", s->prob_drop + s->forced_drop);
    o->u64(o, "pdrop", "pdrop %llu ", s->pdrop);
    o->u64(o, "other", "other %llu ", 0);
}

static void red_advise(const struct gw_qdisc *q, void (*say)(void *ctx, const char *sentence),
                       void *ctx)
{
    const struct gw_red_conf *c = q->conf;
    const struct red *s = q->priv;
    char text[256];

    if (!c->max_p) {
        snprintf(text, sizeof text, "probability is a fraction below 1 (a %% sign is ignored): the "
                 "one given does not fit, %.4g is in force at max", s->red.max_p / 4294967296.0);
        say(ctx, text);
    }
    if (c->max > c->limit) {
        snprintf(text, sizeof text, "max %u is above limit %u: the queue overflows before all "
                 "packets are dropped early", c->max, c->limit);
        say(ctx, text);
    }
}

static const struct gw_stat red_stats[] = {
    { "prob_drop", offsetof(struct red, prob_drop), "packets dropped between min and max" },
    { "prob_mark", offsetof(struct red, prob_mark), "packets marked between min and max" },
    { "forced_drop", offsetof(struct red, forced_drop), "packets dropped above max" },
    { "forced_mark", offsetof(struct red, forced_mark), "packets marked above max" },
    { "pdrop", offsetof(struct red, pdrop), "packets that the queue behind refused" },
};

static const struct gw_qdisc_ops red_ops = {
    .priv_bytes    = sizeof(struct red),
    .conf_bytes    = sizeof(struct gw_red_conf),
    .init          = red_init,
    .fini          = red_fini,
    .enqueue       = red_enqueue,
    .dequeue       = red_dequeue,
    .peek          = red_peek,
    .next_ps       = red_next_ps,
    .change        = red_change,
    .reset         = red_reset,
    .class_find    = red_class_find,
    .class_walk    = red_class_walk,
    .graft         = red_graft,
    .tc_parse      = red_tc_parse,
    .tc_show       = red_tc_show,
    .tc_show_stats = red_tc_show_stats,
    .advise        = red_advise,
    .in_hindsight  = true,
    .stats         = red_stats, .stat_count = GW_ARRAY_LEN(red_stats),
};

static const struct gw_param red_params[] = {
    { "limit", GW_P_WORDS, 0, "", NULL, NULL, "Bytes that may wait; must be given." },
    { "min", GW_P_WORDS, 0, "", NULL, NULL, "Average in bytes where drops begin; a third of max." },
    { "max", GW_P_WORDS, 0, "", NULL, NULL,
      "Average in bytes above which all are dropped; a quarter of limit, or 3 min." },
    { "avpkt", GW_P_WORDS, 0, "", NULL, NULL, "Mean size of a packet in bytes; must be given." },
    { "burst", GW_P_WORDS, 0, "", NULL, NULL,
      "Packets that may come at once; (2 min + max) / (3 avpkt)." },
    { "probability", GW_P_WORDS, 0, "0.02", NULL, NULL, "Share of packets dropped at max." },
    { "bandwidth", GW_P_WORDS, 0, "10mbit", NULL, NULL, "Speed of the link, for idle times." },
    { "ecn", GW_P_WORDS, 0, "no", NULL, NULL, "Marks ECT packets instead of dropping them." },
    { "harddrop", GW_P_WORDS, 0, "no", NULL, NULL, "Drops above max even with ecn." },
    { "nodrop", GW_P_WORDS, 0, "no", NULL, NULL,
      "With ecn: packets that can't be marked are not dropped early." },
    { "adaptative", GW_P_WORDS, 0, "no", NULL, NULL,
      "Adapts the probability every half second; adaptive is the same." },
};

GW_PLUGIN(gw_qdisc_red) = {
    GW_PLUGIN_HEAD(GW_KIND_QDISC, red_ops),
    .name    = "red",
    .summary = "Random early drops or marks by an average of the backlog.",
    .params  = red_params, .param_count = GW_ARRAY_LEN(red_params),
    .source  = "Linux 6.1 net/sched/sch_red.c; Floyd, Jacobson, ToN 1993",
};
