/*
 * sch_choke - RED that compares an arrival with a random packet of the queue
 *
 * What Linux's choke does: when the average number of packets is above min, one queued packet is
 * picked at random (three tries at holes, then the head); if it belongs to the arrival's flow, both
 * are dropped, counted once as `matched`. Else RED decides, in packets. Unresponsive flows meet
 * themselves often and pay for it.
 * Follows net/sched/sch_choke.c of Linux 6.1 and tc/q_choke.c of iproute2 6.1; Pan, Prabhakar,
 * Psounis, INFOCOM 2000. A flow is the pair of hosts, the flow number and the direction, where the
 * kernel compares addresses and ports. Holes that fill the ring are closed, where the kernel's tail
 * would run into its head.
 */
#include <gradwire/alg/red.h>
#include <gradwire/alg/tcwords.h>

enum { QUEUE_MAX = 128 * 1024 - 1 };

struct choke {
    struct gw_red   red;
    struct gw_pkt **tab;             /* ring with holes                                         */
    uint32_t mask, head, tail;       /* size - 1; head == tail: empty                           */
    uint32_t limit, flags;
    uint64_t prob_drop, prob_mark, forced_drop, forced_mark, pdrop, matched;
};

/* ---- the ring ----------------------------------------------------------------------------- */

static void skip_head_holes(struct choke *s)
{
    do
        s->head = (s->head + 1) & s->mask;
    while (s->head != s->tail && !s->tab[s->head]);
}

static void skip_tail_holes(struct choke *s)
{
    do
        s->tail = (s->tail - 1) & s->mask;
    while (s->head != s->tail && !s->tab[s->tail]);
}

static struct gw_pkt *take(struct choke *s, uint32_t i)
{
    struct gw_pkt *p = s->tab[i];

    s->tab[i] = NULL;
    if (i == s->head)
        skip_head_holes(s);
    if (i == s->tail)
        skip_tail_holes(s);
    return p;
}

static uint32_t pick(struct gw_qdisc *q, const struct choke *s)
{
    uint32_t len = (s->tail - s->head) & s->mask;

    for (int tries = 0; tries < 3; tries++) {
        uint32_t i = (s->head + gw_rng_below(&q->rng, len)) & s->mask;

        if (s->tab[i])
            return i;
    }
    return s->head;
}

/* Packets move up to the head, in order. */
static void close_holes(struct choke *s)
{
    uint32_t to = s->head;

    for (uint32_t i = s->head; i != s->tail; i = (i + 1) & s->mask) {
        struct gw_pkt *p = s->tab[i];

        s->tab[i] = NULL;
        if (p) {
            s->tab[to] = p;
            to = (to + 1) & s->mask;
        }
    }
    s->tail = to;
}

static bool same_flow(const struct gw_pkt *a, const struct gw_pkt *b)
{
    return a->flow == b->flow && a->src == b->src && a->dst == b->dst &&
           !((a->flags ^ b->flags) & GW_PKT_REVERSE);
}

static uint32_t ring_mask(uint32_t limit)
{
    uint32_t size = 1;

    while (size < limit + 1)
        size *= 2;
    return size - 1;
}

/* A ring for @limit packets; what waits moves over, what does not fit is dropped. */
static enum gw_status ring_resize(struct gw_qdisc *q, uint32_t limit, struct gw_error *err)
{
    struct choke *s = q->priv;
    uint32_t mask = ring_mask(limit), tail = 0;
    struct gw_pkt **tab;

    if (s->tab && mask == s->mask)
        return GW_OK;
    tab = q->host->alloc((mask + (size_t)1) * sizeof *tab);
    if (!tab)
        return gw_fail(err, GW_NOMEM, "out of memory for %u packets of choke", limit);
    while (s->head != s->tail) {
        struct gw_pkt *p = s->tab[s->head];

        s->head = (s->head + 1) & s->mask;
        if (p && tail < mask)
            tab[tail++] = p;
        else if (p)
            q->host->qdisc_drop(q, p, GW_DROP_QUEUE_FULL);
    }
    q->host->release(s->tab);
    s->tab = tab;
    s->mask = mask;
    s->head = 0;
    s->tail = tail;
    return GW_OK;
}

/* ---- callbacks ---------------------------------------------------------------------------- */

static enum gw_status choke_apply(struct gw_qdisc *q, const struct gw_red_conf *c,
                                  struct gw_error *err)
{
    struct choke *s = q->priv;

    if (!c->limit)
        return gw_fail(err, GW_PARAM, "choke: needs limit and bandwidth, e.g. `choke limit 1000 "
                       "bandwidth 10mbit`");
    if (gw_red_check("choke", c, err) != GW_OK)
        return err->code;
    if (c->limit > QUEUE_MAX)
        return gw_fail(err, GW_PARAM, "choke: limit is %u packets; at most %d are right", c->limit,
                       QUEUE_MAX);
    if (ring_resize(q, c->limit, err) != GW_OK)
        return err->code;
    s->limit = c->limit;
    s->flags = c->flags;
    gw_red_set(&s->red, c);
    return GW_OK;
}

static enum gw_status choke_init(struct gw_qdisc *q, struct gw_error *err)
{
    return choke_apply(q, q->conf, err);
}

static void choke_fini(struct gw_qdisc *q)
{
    struct choke *s = q->priv;

    q->host->release(s->tab);
}

/* Marks if allowed, else counts a drop; true: the packet goes on. */
static bool choke_congested(struct gw_qdisc *q, struct gw_pkt *p, bool may_mark, uint64_t *drops,
                            uint64_t *marks)
{
    q->overlimits++;
    if (may_mark && gw_qdisc_mark(q, p)) {
        ++*marks;
        return true;
    }
    ++*drops;
    return false;
}

/* The average is above min: true if the packet may go on. */
static bool choke_judge(struct gw_qdisc *q, struct gw_pkt *p)
{
    struct choke *s = q->priv;
    bool ecn = s->flags & GW_RED_ECN, hard = s->flags & GW_RED_HARDDROP;

    if (s->head != s->tail) {
        uint32_t i = pick(q, s);

        if (same_flow(s->tab[i], p)) {
            s->matched++;
            q->host->qdisc_drop(q, take(s, i), GW_DROP_AQM);
            return false;
        }
    }
    if (s->red.avg > s->red.max) {
        s->red.count = -1;
        return choke_congested(q, p, ecn && !hard, &s->forced_drop, &s->forced_mark);
    }
    if (gw_red_between(&s->red, s->red.avg, &q->rng))
        return choke_congested(q, p, ecn, &s->prob_drop, &s->prob_mark);
    return true;
}

static enum gw_verdict choke_enqueue(struct gw_qdisc *q, struct gw_pkt *p, uint64_t now_ps)
{
    struct choke *s = q->priv;

    gw_red_arrive(&s->red, q->backlog_pkts, now_ps / GW_PS_PER_NS);
    if (s->red.avg <= s->red.min) {
        s->red.count = -1;
    } else if (!choke_judge(q, p)) {
        q->drop_reason = GW_DROP_AQM;
        return GW_Q_DROPPED;
    }
    if (q->backlog_pkts >= s->limit) {
        s->pdrop++;
        q->drop_reason = GW_DROP_QUEUE_FULL;
        return GW_Q_DROPPED;
    }
    if (((s->tail + 1) & s->mask) == s->head)
        close_holes(s);
    s->tab[s->tail] = p;
    s->tail = (s->tail + 1) & s->mask;
    return GW_Q_QUEUED;
}

static struct gw_pkt *choke_dequeue(struct gw_qdisc *q, uint64_t now_ps)
{
    struct choke *s = q->priv;
    struct gw_pkt *p = NULL;

    if (s->head != s->tail)
        p = take(s, s->head);
    if (!p || (!q->up && s->head == s->tail))
        gw_red_empty(&s->red, now_ps / GW_PS_PER_NS);
    return p;
}

static struct gw_pkt *choke_peek(struct gw_qdisc *q, uint64_t now_ps)
{
    const struct choke *s = q->priv;

    (void)now_ps;
    return s->head != s->tail ? s->tab[s->head] : NULL;
}

static enum gw_status choke_change(struct gw_qdisc *q, const void *conf, uint64_t given,
                                   uint64_t now_ps, struct gw_error *err)
{
    struct choke *s = q->priv;

    (void)given;
    (void)now_ps;
    if (choke_apply(q, conf, err) != GW_OK)
        return err->code;
    if (s->head == s->tail)
        s->red.idle = false;
    return GW_OK;
}

static void choke_reset(struct gw_qdisc *q, uint64_t now_ps)
{
    struct choke *s = q->priv;

    (void)now_ps;
    while (s->head != s->tail)
        q->host->qdisc_drop(q, take(s, s->head), GW_DROP_PURGED);
    gw_red_forget(&s->red);
    s->red.idle = false;
}

/* ---- tc's words --------------------------------------------------------------------------- */

static enum gw_status choke_tc_parse(const struct gw_tc_args *a, void *conf, uint64_t *given,
                                     struct gw_error *err)
{
    static const struct gw_tcword words[] = {
#define AT(field) offsetof(struct gw_red_words, field)
        { "limit", GW_TCW_U32, AT(limit), 0, 0, "a count of packets" },
        { "bandwidth", GW_TCW_RATE_DEV, AT(rate), 0, 0, "a rate like 10mbit" },
        { "ecn", GW_TCW_OR, AT(flags), GW_RED_ECN, 0, NULL },
        { "min", GW_TCW_U32, AT(min), 0, 0, "a count of packets" },
        { "max", GW_TCW_U32, AT(max), 0, 0, "a count of packets" },
        { "burst", GW_TCW_U32, AT(burst), 0, 0, "a count of packets" },
        { "avpkt", GW_TCW_SIZE, AT(avpkt), 0, 0, "a size like 1000" },
        { "probability", GW_TCW_DOUBLE, AT(probability), 0, 0, "a fraction like 0.02" },
#undef AT
    };
    struct gw_red_words w = { .probability = 0.02, .avpkt = 1000 };

    if (gw_tcwords_read("choke", words, GW_ARRAY_LEN(words), a, 0, &w, given, err) != GW_OK)
        return err->code;
    if (!w.rate || !w.limit)
        return gw_tc_missing(err, a, w.limit ? "bandwidth" : "limit",
                             "choke: Required parameter (bandwidth, limit) is missing");
    if (!w.max)
        w.max = w.limit / 4;
    if (!w.min)
        w.min = w.max / 3;
    if (!w.burst)
        w.burst = (2 * w.min + w.max) / 3;
    if (w.max > w.limit)
        return gw_fail(err, GW_SYNTAX, "choke: \"max\" is larger than \"limit\": %u and %u packets",
                       w.max, w.limit);
    if (w.min >= w.max)
        return gw_fail(err, GW_SYNTAX, "choke: \"min\" is not smaller than \"max\": %u and %u "
                       "packets", w.min, w.max);
    return gw_red_derive("choke", &w, w.avpkt, true, conf, err);
}

static void choke_tc_show(const struct gw_qdisc *q, struct gw_tc_out *o)
{
    const struct choke *s = q->priv;

    o->u64(o, "limit", "limit %llup ", s->limit);
    o->u64(o, "min", "min %llup ", s->red.min >> s->red.wlog);
    o->u64(o, "max", "max %llup ", s->red.max >> s->red.wlog);
    gw_red_show_flags(s->flags, o);
    gw_red_show_details(&s->red, "Scell_log %llu", o);
}

static void choke_tc_show_stats(const struct gw_qdisc *q, struct gw_tc_out *o)
{
    const struct choke *s = q->priv;

    o->u64(o, "marked", "  marked %llu", s->prob_mark + s->forced_mark);
    o->u64(o, "early", " early %llu", s->prob_drop + s->forced_drop);
    o->u64(o, "pdrop", " pdrop %llu", s->pdrop);
    o->u64(o, "other", " other %llu", 0);
    o->u64(o, "matched", " matched %llu", s->matched);
}

static const struct gw_stat choke_stats[] = {
    { "matched", offsetof(struct choke, matched), "pairs dropped because they were of one flow" },
    { "prob_drop", offsetof(struct choke, prob_drop), "packets dropped between min and max" },
    { "prob_mark", offsetof(struct choke, prob_mark), "packets marked between min and max" },
    { "forced_drop", offsetof(struct choke, forced_drop), "packets dropped above max" },
    { "forced_mark", offsetof(struct choke, forced_mark), "packets marked above max" },
    { "pdrop", offsetof(struct choke, pdrop), "packets that found limit packets" },
};

static const struct gw_qdisc_ops choke_ops = {
    .priv_bytes    = sizeof(struct choke),
    .conf_bytes    = sizeof(struct gw_red_conf),
    .init          = choke_init,
    .fini          = choke_fini,
    .enqueue       = choke_enqueue,
    .dequeue       = choke_dequeue,
    .peek          = choke_peek,
    .change        = choke_change,
    .reset         = choke_reset,
    .tc_parse      = choke_tc_parse,
    .tc_show       = choke_tc_show,
    .tc_show_stats = choke_tc_show_stats,
    .stats         = choke_stats, .stat_count = GW_ARRAY_LEN(choke_stats),
};

static const struct gw_param choke_params[] = {
    { "limit", GW_P_WORDS, 0, "", NULL, NULL, "Packets that may wait; must be given." },
    { "bandwidth", GW_P_WORDS, 0, "", NULL, NULL, "Speed of the link; must be given." },
    { "min", GW_P_WORDS, 0, "", NULL, NULL, "Average in packets where it begins; max / 3." },
    { "max", GW_P_WORDS, 0, "", NULL, NULL,
      "Average in packets above which all are dropped; limit / 4." },
    { "burst", GW_P_WORDS, 0, "", NULL, NULL, "Packets that may come at once; (2 min + max) / 3." },
    { "avpkt", GW_P_WORDS, 0, "1000", NULL, NULL, "Mean size of a packet in bytes." },
    { "probability", GW_P_WORDS, 0, "0.02", NULL, NULL, "Share of packets dropped at max." },
    { "ecn", GW_P_WORDS, 0, "no", NULL, NULL, "Marks ECT packets instead of dropping them." },
};

GW_PLUGIN(gw_qdisc_choke) = {
    GW_PLUGIN_HEAD(GW_KIND_QDISC, choke_ops),
    .name    = "choke",
    .summary = "RED that drops arrivals which meet a packet of their own flow.",
    .params  = choke_params, .param_count = GW_ARRAY_LEN(choke_params),
    .source  = "Linux 6.1 net/sched/sch_choke.c; Pan, Prabhakar, Psounis, INFOCOM 2000",
};
