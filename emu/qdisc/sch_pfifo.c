/*
 * sch_pfifo - first in, first out, limited in packets
 *
 * What Linux's pfifo does: a packet that finds `limit` packets waiting is dropped, all others leave
 * in the order in which they came. Without `limit` the limit is the device's txqueuelen (1000).
 * `change` without a limit keeps the old one; a smaller new limit drops nothing that waits already.
 * The word auto sizes the queue from rate x delay of the link, in full frames. As in tc the limit
 * is written as a size: 10k is 10240 packets.
 * Follows net/sched/sch_fifo.c of Linux 6.1. Left out: nothing that a packet can notice.
 */
#include <gradwire/gradwire.h>

struct pfifo_conf {
    uint32_t limit;              /* packets; UINT32_MAX: auto                                  */
};

struct pfifo {
    struct gw_pktq queue;
    uint64_t       limit;        /* packets                                                    */
};

static uint64_t pfifo_limit(const struct gw_qdisc *q, const struct pfifo_conf *conf,
                            uint64_t given)
{
    uint64_t frame = q->mtu_bytes ? q->mtu_bytes : 1514;

    if (!(given & 1))
        return q->txqueuelen;
    if (conf->limit != UINT32_MAX)
        return conf->limit;
    return q->auto_limit_bytes > frame ? (q->auto_limit_bytes + frame - 1) / frame : 1;
}

static enum gw_status pfifo_init(struct gw_qdisc *q, struct gw_error *err)
{
    struct pfifo *f = q->priv;

    (void)err;
    f->limit = pfifo_limit(q, q->conf, q->given);
    return GW_OK;
}

static enum gw_verdict pfifo_enqueue(struct gw_qdisc *q, struct gw_pkt *p, uint64_t now_ps)
{
    struct pfifo *f = q->priv;

    (void)now_ps;
    if (f->queue.count >= f->limit) {
        q->drop_reason = GW_DROP_QUEUE_FULL;
        return GW_Q_DROPPED;
    }
    gw_pktq_push(&f->queue, p);
    return GW_Q_QUEUED;
}

static struct gw_pkt *pfifo_dequeue(struct gw_qdisc *q, uint64_t now_ps)
{
    struct pfifo *f = q->priv;

    (void)now_ps;
    return gw_pktq_pop(&f->queue);
}

static struct gw_pkt *pfifo_peek(struct gw_qdisc *q, uint64_t now_ps)
{
    (void)now_ps;
    return ((struct pfifo *)q->priv)->queue.head;
}

static enum gw_status pfifo_change(struct gw_qdisc *q, const void *conf, uint64_t given,
                                   uint64_t now_ps, struct gw_error *err)
{
    struct pfifo *f = q->priv;

    (void)now_ps;
    (void)err;
    if (given & 1)
        f->limit = pfifo_limit(q, conf, given);
    return GW_OK;
}

static void pfifo_reset(struct gw_qdisc *q, uint64_t now_ps)
{
    struct pfifo *f = q->priv;
    struct gw_pkt *p;

    (void)now_ps;
    while ((p = gw_pktq_pop(&f->queue)))
        q->host->qdisc_drop(q, p, GW_DROP_PURGED);
}

static bool pfifo_fifo_limits(const struct gw_qdisc *q, uint64_t *pkts, uint64_t *bytes)
{
    const struct pfifo *f = q->priv;

    *pkts = f->limit;
    *bytes = UINT64_MAX;
    return true;
}

static enum gw_status pfifo_tc_parse(const struct gw_tc_args *a, void *conf, uint64_t *given,
                                     struct gw_error *err)
{
    struct pfifo_conf *c = conf;

    for (uint32_t i = 0; i < a->count; i++) {
        if (strcmp(a->word[i], "limit"))
            return gw_tc_what(err, "pfifo", a->word[i]);
        if (++i == a->count)
            return gw_tc_incomplete(err, "limit");
        if (!strcmp(a->word[i], "auto"))
            c->limit = UINT32_MAX;
        else if (!gw_tc_size(a->word[i], &c->limit) || c->limit == UINT32_MAX)
            return gw_tc_illegal(err, "limit", a->word[i], "a number of packets such as 1000");
        *given |= 1;
    }
    return GW_OK;
}

static void pfifo_tc_show(const struct gw_qdisc *q, struct gw_tc_out *o)
{
    const struct pfifo *f = q->priv;

    o->u64(o, "limit", "limit %llup", f->limit);
}

static void pfifo_advise(const struct gw_qdisc *q, void (*say)(void *ctx, const char *sentence),
                         void *ctx)
{
    if (!((const struct pfifo *)q->priv)->limit)
        say(ctx, "limit 0: every frame is dropped, also on an idle link; 1 is the least that is a "
            "queue");
}

static const struct gw_qdisc_ops pfifo_ops = {
    .priv_bytes  = sizeof(struct pfifo),
    .conf_bytes  = sizeof(struct pfifo_conf),
    .init        = pfifo_init,
    .enqueue     = pfifo_enqueue,
    .dequeue     = pfifo_dequeue,
    .peek        = pfifo_peek,
    .change      = pfifo_change,
    .reset       = pfifo_reset,
    .fifo_limits = pfifo_fifo_limits,
    .tc_parse    = pfifo_tc_parse,
    .tc_show     = pfifo_tc_show,
    .in_hindsight = true,
    .advise      = pfifo_advise,
};

static const struct gw_param pfifo_params[] = {
    { "limit", GW_P_U32, offsetof(struct pfifo_conf, limit), "", "0", "auto",
      "Packets that may wait; auto: from rate x delay; not given: the device's txqueuelen." },
};

GW_PLUGIN(gw_qdisc_pfifo) = {
    GW_PLUGIN_HEAD(GW_KIND_QDISC, pfifo_ops),
    .name    = "pfifo",
    .summary = "First in, first out, limited in packets.",
    .params  = pfifo_params, .param_count = GW_ARRAY_LEN(pfifo_params),
    .source  = "Linux 6.1 net/sched/sch_fifo.c",
};
