/*
 * sch_codel - one FIFO under CoDel
 *
 * What Linux's codel does: packets are dropped (or, with ecn, marked) from the head when they have
 * waited longer than `target` for at least one `interval`, at a rate that grows with the square
 * root of the count of drops; the drop sequence is the kernel's own, see alg/codel.h. A packet
 * that finds `limit` packets is dropped at the tail. `ce_threshold` marks every packet that has
 * waited longer, whatever CoDel thinks. Times are held in units of 1024 ns: 5ms is shown as 5ms and
 * is 4999 us in JSON, as in the kernel. A value of 0 for limit, target or interval means "not
 * given", as in tc. `change` keeps what is not named.
 * Follows net/sched/sch_codel.c and include/net/codel_impl.h of Linux 6.1; RFC 8289. Left out:
 * nothing that a packet can notice. The wait begins when the packet enters this discipline, so
 * stamp_ps is written again here for a codel below a netem.
 */
#include <gradwire/alg/codel.h>
#include <gradwire/alg/tcwords.h>

enum { GIVEN_CE = 1, GIVEN_ECN = 2 };

struct codel_conf {
    uint32_t limit;              /* packets; 0: not given                                      */
    uint32_t target, interval;   /* us; 0: not given                                           */
    uint32_t ce_threshold;       /* us                                                         */
    uint32_t ecn;
};

struct codel {
    struct gw_pktq queue;
    uint32_t limit;              /* packets                                                    */
    struct gw_codel_parms parms;
    struct gw_codel vars;
    struct gw_codel_stats stats;
    uint64_t drop_overlimit;
    uint64_t now_ps;             /* of the last dequeue, for drop_next in the statistics       */
};

static struct gw_pkt *codel_pop(void *ctx)
{
    struct codel *s = ctx;

    return gw_pktq_pop(&s->queue);
}

static void codel_apply(struct codel *s, const struct codel_conf *c, uint64_t given)
{
    if (c->limit)
        s->limit = c->limit;
    if (c->target)
        s->parms.target = gw_codel_from_us(c->target);
    if (c->interval)
        s->parms.interval = gw_codel_from_us(c->interval);
    if ((given & GIVEN_CE) && c->ce_threshold != UINT32_MAX)
        s->parms.ce_threshold = gw_codel_from_us(c->ce_threshold);
    if (given & GIVEN_ECN)
        s->parms.ecn = c->ecn;
}

static enum gw_status codel_init(struct gw_qdisc *q, struct gw_error *err)
{
    struct codel *s = q->priv;

    (void)err;
    s->limit = 1000;
    gw_codel_defaults(&s->parms, q->mtu_bytes);
    codel_apply(s, q->conf, q->given);
    return GW_OK;
}

static enum gw_verdict codel_enqueue(struct gw_qdisc *q, struct gw_pkt *p, uint64_t now_ps)
{
    struct codel *s = q->priv;

    if (q->backlog_pkts >= s->limit) {
        s->drop_overlimit++;
        q->drop_reason = GW_DROP_QUEUE_FULL;
        return GW_Q_DROPPED;
    }
    p->stamp_ps = now_ps;
    gw_pktq_push(&s->queue, p);
    return GW_Q_QUEUED;
}

static struct gw_pkt *codel_dequeue(struct gw_qdisc *q, uint64_t now_ps)
{
    struct codel *s = q->priv;
    struct gw_codel_queue cq = { q, s, &s->queue.bytes, codel_pop };

    s->now_ps = now_ps;
    return gw_codel_dequeue(&cq, &s->parms, &s->vars, &s->stats, now_ps);
}

static enum gw_status codel_change(struct gw_qdisc *q, const void *conf, uint64_t given,
                                   uint64_t now_ps, struct gw_error *err)
{
    struct codel *s = q->priv;

    (void)now_ps;
    (void)err;
    codel_apply(s, conf, given);
    while (s->queue.count && q->backlog_pkts > s->limit)
        q->host->qdisc_drop(q, gw_pktq_pop(&s->queue), GW_DROP_QUEUE_FULL);
    return GW_OK;
}

static void codel_reset(struct gw_qdisc *q, uint64_t now_ps)
{
    struct codel *s = q->priv;
    struct gw_pkt *p;

    (void)now_ps;
    while ((p = gw_pktq_pop(&s->queue)))
        q->host->qdisc_drop(q, p, GW_DROP_PURGED);
    memset(&s->vars, 0, sizeof s->vars);
}

static enum gw_status codel_tc_parse(const struct gw_tc_args *a, void *conf, uint64_t *given,
                                     struct gw_error *err)
{
    static const struct gw_tcword words[] = {
        { "limit", GW_TCW_U32, offsetof(struct codel_conf, limit), 0, 0, "a count of packets" },
        { "target", GW_TCW_TIME, offsetof(struct codel_conf, target), 0, 0, "a time like 5ms" },
        { "interval", GW_TCW_TIME, offsetof(struct codel_conf, interval), 0, 0,
          "a time like 100ms" },
        { "ce_threshold", GW_TCW_TIME, offsetof(struct codel_conf, ce_threshold), 0, GIVEN_CE,
          "a time like 1ms" },
        { "ecn", GW_TCW_SET, offsetof(struct codel_conf, ecn), 1, GIVEN_ECN, NULL },
        { "noecn", GW_TCW_SET, offsetof(struct codel_conf, ecn), 0, GIVEN_ECN, NULL },
    };

    static const struct gw_tcword_unsent unsent[] = {
        { "limit", offsetof(struct codel_conf, limit), "1000" },
        { "target", offsetof(struct codel_conf, target), "5ms" },
        { "interval", offsetof(struct codel_conf, interval), "100ms" },
    };

    if (gw_tcwords_read("codel", words, GW_ARRAY_LEN(words), a, 0, conf, given, err) != GW_OK)
        return err->code;
    gw_tcwords_unsent(unsent, GW_ARRAY_LEN(unsent), a, conf);
    return GW_OK;
}

static void codel_tc_show(const struct gw_qdisc *q, struct gw_tc_out *o)
{
    const struct codel *s = q->priv;

    o->u64(o, "limit", "limit %llup ", s->limit);
    gw_codel_show_time(o, "target", "target %s ", s->parms.target);
    if (s->parms.ce_threshold != GW_CODEL_NEVER)
        gw_codel_show_time(o, "ce_threshold", "ce_threshold %s ", s->parms.ce_threshold);
    gw_codel_show_time(o, "interval", "interval %s ", s->parms.interval);
    if (s->parms.ecn)
        o->flag(o, "ecn", "ecn ", true);
}

/* How long until the next drop; behind the schedule: a negative time. */
static void codel_show_drop_next(const struct codel *s, struct gw_tc_out *o)
{
    int32_t ahead = s->vars.dropping ? (int32_t)(s->vars.drop_next - gw_codel_time(s->now_ps)) : 0;
    uint32_t us = gw_codel_to_us((uint32_t)(ahead < 0 ? -ahead : ahead));
    char buf[64];

    o->i64(o, "drop_next", NULL, ahead < 0 ? -(int64_t)us : (int64_t)us);
    o->str(o, NULL, ahead < 0 ? " drop_next -%s" : " drop_next %s", o->time(o, us, buf));
}

static void codel_tc_show_stats(const struct gw_qdisc *q, struct gw_tc_out *o)
{
    const struct codel *s = q->priv;

    o->u64(o, "count", "  count %llu", s->vars.count);
    o->u64(o, "lastcount", " lastcount %llu", s->vars.lastcount);
    gw_codel_show_time(o, "ldelay", " ldelay %s", s->vars.ldelay);
    if (s->vars.dropping)
        o->flag(o, "dropping", " dropping", true);
    codel_show_drop_next(s, o);
    o->newline(o);
    o->u64(o, "maxpacket", "maxpacket %llu", s->stats.maxpacket);
    o->u64(o, "ecn_mark", " ecn_mark %llu", s->stats.ecn_mark);
    o->u64(o, "drop_overlimit", " drop_overlimit %llu", s->drop_overlimit);
    if (s->stats.ce_mark)
        o->u64(o, "ce_mark", " ce_mark %llu", s->stats.ce_mark);
}

static const struct gw_stat codel_stats[] = {
    { "ecn_mark", offsetof(struct codel, stats.ecn_mark), "packets marked instead of dropped" },
    { "ce_mark", offsetof(struct codel, stats.ce_mark), "packets marked above ce_threshold" },
    { "drop_overlimit", offsetof(struct codel, drop_overlimit), "packets that found it full" },
    { "maxpacket", offsetof(struct codel, stats.maxpacket), "largest packet seen, in bytes" },
};

static const struct gw_qdisc_ops codel_ops = {
    .priv_bytes    = sizeof(struct codel),
    .conf_bytes    = sizeof(struct codel_conf),
    .init          = codel_init,
    .enqueue       = codel_enqueue,
    .dequeue       = codel_dequeue,
    .change        = codel_change,
    .reset         = codel_reset,
    .tc_parse      = codel_tc_parse,
    .tc_show       = codel_tc_show,
    .tc_show_stats = codel_tc_show_stats,
    .stats         = codel_stats, .stat_count = GW_ARRAY_LEN(codel_stats),
};

static const struct gw_param codel_params[] = {
    { "limit", GW_P_WORDS, 0, "1000", NULL, NULL, "Packets that may wait." },
    { "target", GW_P_WORDS, 0, "5ms", NULL, NULL, "Wait that is still good." },
    { "interval", GW_P_WORDS, 0, "100ms", NULL, NULL,
      "How long the wait may exceed target before the first drop." },
    { "ecn", GW_P_WORDS, 0, "no", NULL, NULL, "Marks ECT packets instead of dropping; noecn." },
    { "ce_threshold", GW_P_WORDS, 0, "", NULL, NULL, "Marks every ECT packet that waited longer." },
};

GW_PLUGIN(gw_qdisc_codel) = {
    GW_PLUGIN_HEAD(GW_KIND_QDISC, codel_ops),
    .name    = "codel",
    .summary = "A FIFO that drops at the head to keep the wait near a target.",
    .params  = codel_params, .param_count = GW_ARRAY_LEN(codel_params),
    .source  = "Linux 6.1 net/sched/sch_codel.c; RFC 8289",
};
