/*
 * sch_pie - PIE: a queue that drops at random so that packets wait for about `target`
 *
 * What Linux's pie does, integer for integer (gradwire/alg/pie.h): a packet that finds `limit`
 * packets is dropped; else it is dropped, or with `ecn` marked while the probability is at most
 * 10 %, by the drop probability, which is updated every `tupdate` from the delay of the packet that
 * left last. `change` keeps what the line does not name (0 counts as not named) and throws out what
 * a smaller limit leaves no room for.
 *
 * tupdate is rounded up to ticks of 10 ms, as on the kernel that was recorded (HZ=100): the default
 * of 15 ms is 20 ms, and is shown so. Updates happen at 500 ms and every tupdate from there, in the
 * time of the run; the kernel counts from the moment at which the discipline is made.
 * Follows net/sched/sch_pie.c of Linux 6.1 and q_pie.c of iproute2 6.1. Left out: nothing that a
 * packet can notice.
 */
#include <gradwire/gradwire.h>
#include <gradwire/alg/pie.h>

struct pie {
    struct gw_pktq queue;
    struct gw_pie_params params;
    struct gw_pie  state;
    struct gw_timer timer;
    uint64_t updated_ps;         /* last update, 0: none yet                                   */
    uint64_t limit;              /* packets                                                    */
    uint64_t packets_in, overlimit, dropped, maxq, ecn_mark;
};

static void pie_fire(void *owner, uint64_t now_ps)
{
    struct gw_qdisc *q = owner;
    struct pie *s = q->priv;

    s->updated_ps = now_ps;
    gw_pie_update(&s->state, &s->params, q->backlog_bytes);
    if (!gw_pie_idle(&s->state, q->backlog_bytes))
        q->host->timer_set(q->net, &s->timer,
                           gw_pie_next_update(now_ps, s->params.tupdate_us, now_ps));
}

static enum gw_status pie_init(struct gw_qdisc *q, struct gw_error *err)
{
    const struct gw_pie_conf *c = q->conf;
    struct pie *s = q->priv;

    (void)err;
    gw_pie_params_init(&s->params, q->mtu_bytes ? q->mtu_bytes : 1514);
    gw_pie_params_set(&s->params, c, q->given);
    gw_pie_rest(&s->state);
    s->limit = q->given & GW_PIE_LIMIT ? c->limit : 1000;
    s->timer = (struct gw_timer){ .fire = pie_fire, .owner = q, .comp = q->comp };
    return GW_OK;
}

static void pie_fini(struct gw_qdisc *q)
{
    struct pie *s = q->priv;

    if (q->net)
        q->host->timer_stop(q->net, &s->timer);
}

static enum gw_verdict pie_refuse(struct gw_qdisc *q, struct pie *s, enum gw_drop_reason why)
{
    s->dropped++;
    s->state.accu_prob = 0;
    q->drop_reason = why;
    return GW_Q_DROPPED;
}

static enum gw_verdict pie_enqueue(struct gw_qdisc *q, struct gw_pkt *p, uint64_t now_ps)
{
    struct pie *s = q->priv;

    if (!s->timer.armed && q->net)
        q->host->timer_set(q->net, &s->timer, gw_pie_next_update(s->updated_ps,
                                                                 s->params.tupdate_us, now_ps));
    if (q->backlog_pkts >= s->limit) {
        s->overlimit++;
        return pie_refuse(q, s, GW_DROP_QUEUE_FULL);
    }
    if (gw_pie_drop_early(&s->state, &s->params, q->backlog_bytes, p->len_bytes, &q->rng)) {
        if (!s->params.ecn || s->state.prob > GW_PIE_MAX_PROB / 10 || !gw_qdisc_mark(q, p))
            return pie_refuse(q, s, GW_DROP_AQM);
        s->ecn_mark++;
    }
    s->packets_in++;
    if (q->backlog_pkts > s->maxq)
        s->maxq = q->backlog_pkts;
    gw_pktq_push(&s->queue, p);
    return GW_Q_QUEUED;
}

static struct gw_pkt *pie_dequeue(struct gw_qdisc *q, uint64_t now_ps)
{
    struct pie *s = q->priv;
    struct gw_pkt *p = gw_pktq_pop(&s->queue);

    if (p)
        gw_pie_departed(&s->state, &s->params, now_ps, p->stamp_ps, s->queue.bytes, p->len_bytes);
    return p;
}

static enum gw_status pie_change(struct gw_qdisc *q, const void *conf, uint64_t given,
                                 uint64_t now_ps, struct gw_error *err)
{
    const struct gw_pie_conf *c = conf;
    struct pie *s = q->priv;

    (void)now_ps;
    (void)err;
    gw_pie_params_set(&s->params, c, given);
    if (given & GW_PIE_LIMIT)
        s->limit = c->limit;
    while (s->queue.count && q->backlog_pkts > s->limit)
        q->host->qdisc_drop(q, gw_pktq_pop(&s->queue), GW_DROP_QUEUE_FULL);
    return GW_OK;
}

static void pie_reset(struct gw_qdisc *q, uint64_t now_ps)
{
    struct pie *s = q->priv;
    struct gw_pkt *p;

    (void)now_ps;
    while ((p = gw_pktq_pop(&s->queue)))
        q->host->qdisc_drop(q, p, GW_DROP_PURGED);
    gw_pie_rest(&s->state);
}

static enum gw_status pie_parse(const struct gw_tc_args *a, void *conf, uint64_t *given,
                                struct gw_error *err)
{
    for (uint32_t i = 0; i < a->count; i++) {
        bool taken;

        if (gw_pie_word(a, &i, conf, given, &taken, err) != GW_OK)
            return err->code;
        if (!taken)
            return gw_tc_what(err, "pie", a->word[i]);
    }
    return GW_OK;
}

static void pie_show(const struct gw_qdisc *q, struct gw_tc_out *o)
{
    const struct pie *s = q->priv;

    o->u64(o, "limit", "limit %llup ", s->limit);
    gw_pie_show_time(o, "target", "target %s ", gw_pie_target_us(&s->params));
    gw_pie_show_time(o, "tupdate", "tupdate %s ", s->params.tupdate_us);
    o->u64(o, "alpha", "alpha %llu ", s->params.alpha);
    o->u64(o, "beta", "beta %llu ", s->params.beta);
    gw_pie_show_flags(&s->params, o);
}

static void pie_show_stats(const struct gw_qdisc *q, struct gw_tc_out *o)
{
    const struct pie *s = q->priv;
    uint32_t delay_us = (uint32_t)(s->state.qdelay << 6) / 1000;
    char buf[64];

    o->real(o, "prob", "  prob %lg", (double)(s->state.prob << 8) / (double)UINT64_MAX);
    o->u64(o, "delay", NULL, delay_us);
    o->str(o, NULL, " delay %s", o->time(o, delay_us, buf));
    if (s->params.estimator)
        o->u64(o, "avg_dq_rate", " avg_dq_rate %llu",
               s->state.avg_dq_rate * GW_PIE_TICKS_PER_S >> 8);
    o->newline(o);
    o->u64(o, "pkts_in", "pkts_in %llu", s->packets_in);
    o->u64(o, "overlimit", " overlimit %llu", s->overlimit);
    o->u64(o, "dropped", " dropped %llu", s->dropped);
    o->u64(o, "maxq", " maxq %llu", s->maxq);
    o->u64(o, "ecn_mark", " ecn_mark %llu", s->ecn_mark);
}

static const struct gw_stat pie_stats[] = {
    { "pkts_in", offsetof(struct pie, packets_in), "Packets taken." },
    { "overlimit", offsetof(struct pie, overlimit), "Dropped because `limit` packets waited." },
    { "dropped", offsetof(struct pie, dropped), "Dropped in all." },
    { "maxq", offsetof(struct pie, maxq), "Longest queue that a packet met." },
    { "ecn_mark", offsetof(struct pie, ecn_mark), "Marked instead of dropped." },
};

static const struct gw_qdisc_ops pie_ops = {
    .priv_bytes    = sizeof(struct pie),
    .conf_bytes    = sizeof(struct gw_pie_conf),
    .init          = pie_init,
    .fini          = pie_fini,
    .enqueue       = pie_enqueue,
    .dequeue       = pie_dequeue,
    .change        = pie_change,
    .reset         = pie_reset,
    .stats         = pie_stats,
    .stat_count    = GW_ARRAY_LEN(pie_stats),
    .tc_parse      = pie_parse,
    .tc_show       = pie_show,
    .tc_show_stats = pie_show_stats,
};

static const struct gw_param pie_params[] = {
    { "limit", GW_P_WORDS, 0, "1000", NULL, NULL, "Packets that may wait." },
    { "target", GW_P_WORDS, 0, "15ms", NULL, NULL, "Delay that is aimed at." },
    { "tupdate", GW_P_WORDS, 0, "15ms", NULL, NULL,
      "Time between updates; rounded up to ticks of 10 ms as by the kernel that was recorded "
      "(HZ=100), so the default is 20ms and is shown so." },
    { "alpha", GW_P_WORDS, 0, "2", NULL, NULL,
      "Weight of the distance from the target, in sixteenths a second; 0 to 32, 0 keeps." },
    { "beta", GW_P_WORDS, 0, "20", NULL, NULL,
      "Weight of the delay's trend, in sixteenths a second; 0 to 32, 0 keeps." },
    { "ecn", GW_P_WORDS, 0, "noecn", NULL, NULL,
      "Marks packets that can be marked while the probability is at most 10 %; noecn: drops." },
    { "bytemode", GW_P_WORDS, 0, "nobytemode", NULL, NULL,
      "Small packets are dropped less, in proportion to length / MTU; nobytemode: all alike." },
    { "dq_rate_estimator", GW_P_WORDS, 0, "no_dq_rate_estimator", NULL, NULL,
      "Delay from backlog and measured rate instead of from time stamps; "
      "no_dq_rate_estimator: from time stamps." },
};

GW_PLUGIN(gw_qdisc_pie) = {
    GW_PLUGIN_HEAD(GW_KIND_QDISC, pie_ops),
    .name    = "pie",
    .summary = "PIE: random early drop that holds the queueing delay at a target.",
    .params  = pie_params, .param_count = GW_ARRAY_LEN(pie_params),
    .source  = "RFC 8033; Linux 6.1 net/sched/sch_pie.c",
};
