/*
 * sch_pfifo_head_drop - first in, first out, limited in packets; a full queue drops its oldest
 *
 * What Linux's pfifo_head_drop does: a packet that finds `limit` packets waiting is taken, and the
 * oldest one is dropped for it, so that what leaves is as fresh as can be. Without `limit` the
 * limit is the device's txqueuelen (1000). `change` without a limit keeps the old one; a smaller
 * new limit drops nothing that waits already, so a full queue then stays as long as it is.
 * Follows net/sched/sch_fifo.c of Linux 6.1, with the one difference that a limit of 0 drops what
 * comes, as kernels since 2025 do (6.1 went wrong there).
 */
#include <gradwire/gradwire.h>

struct head_drop_conf {
    uint32_t limit;              /* packets                                                    */
};

struct head_drop {
    struct gw_pktq queue;
    uint64_t       limit;        /* packets                                                    */
};

static enum gw_status head_drop_init(struct gw_qdisc *q, struct gw_error *err)
{
    const struct head_drop_conf *conf = q->conf;
    struct head_drop *f = q->priv;

    (void)err;
    f->limit = q->given & 1 ? conf->limit : q->txqueuelen;
    return GW_OK;
}

static enum gw_verdict head_drop_enqueue(struct gw_qdisc *q, struct gw_pkt *p, uint64_t now_ps)
{
    struct head_drop *f = q->priv;
    struct gw_pkt *old = NULL;

    (void)now_ps;
    if (!f->limit) {
        q->drop_reason = GW_DROP_QUEUE_FULL;
        return GW_Q_DROPPED;
    }
    if (f->queue.count >= f->limit)
        old = gw_pktq_pop(&f->queue);
    gw_pktq_push(&f->queue, p);
    if (old)
        q->host->qdisc_drop(q, old, GW_DROP_QUEUE_FULL);
    return GW_Q_QUEUED;
}

static struct gw_pkt *head_drop_dequeue(struct gw_qdisc *q, uint64_t now_ps)
{
    struct head_drop *f = q->priv;

    (void)now_ps;
    return gw_pktq_pop(&f->queue);
}

/* The parent only looks: the one that it has seen may still be the oldest that is dropped. */
static struct gw_pkt *head_drop_peek(struct gw_qdisc *q, uint64_t now_ps)
{
    (void)now_ps;
    return ((struct head_drop *)q->priv)->queue.head;
}

static enum gw_status head_drop_change(struct gw_qdisc *q, const void *conf, uint64_t given,
                                       uint64_t now_ps, struct gw_error *err)
{
    struct head_drop *f = q->priv;

    (void)now_ps;
    (void)err;
    if (given & 1)
        f->limit = ((const struct head_drop_conf *)conf)->limit;
    return GW_OK;
}

static void head_drop_reset(struct gw_qdisc *q, uint64_t now_ps)
{
    struct head_drop *f = q->priv;
    struct gw_pkt *p;

    (void)now_ps;
    while ((p = gw_pktq_pop(&f->queue)))
        q->host->qdisc_drop(q, p, GW_DROP_PURGED);
}

static enum gw_status head_drop_tc_parse(const struct gw_tc_args *a, void *conf, uint64_t *given,
                                         struct gw_error *err)
{
    struct head_drop_conf *c = conf;

    for (uint32_t i = 0; i < a->count; i++) {
        if (strcmp(a->word[i], "limit"))
            return gw_tc_what(err, "pfifo_head_drop", a->word[i]);
        if (++i == a->count)
            return gw_tc_incomplete(err, "limit");
        if (!gw_tc_size(a->word[i], &c->limit))
            return gw_tc_illegal(err, "limit", a->word[i], "a number of packets such as 1000");
        *given |= 1;
    }
    return GW_OK;
}

static void head_drop_tc_show(const struct gw_qdisc *q, struct gw_tc_out *o)
{
    const struct head_drop *f = q->priv;

    o->u64(o, "limit", "limit %llup", f->limit);
}

static const struct gw_qdisc_ops head_drop_ops = {
    .priv_bytes = sizeof(struct head_drop),
    .conf_bytes = sizeof(struct head_drop_conf),
    .init       = head_drop_init,
    .enqueue    = head_drop_enqueue,
    .dequeue    = head_drop_dequeue,
    .peek       = head_drop_peek,
    .change     = head_drop_change,
    .reset      = head_drop_reset,
    .tc_parse   = head_drop_tc_parse,
    .tc_show    = head_drop_tc_show,
    .in_hindsight = true,
};

static const struct gw_param head_drop_params[] = {
    { "limit", GW_P_U32, offsetof(struct head_drop_conf, limit), "", "0", NULL,
      "Packets that may wait; not given: the device's txqueuelen." },
};

GW_PLUGIN(gw_qdisc_pfifo_head_drop) = {
    GW_PLUGIN_HEAD(GW_KIND_QDISC, head_drop_ops),
    .name    = "pfifo_head_drop",
    .summary = "First in, first out, limited in packets; drops the oldest when full.",
    .params  = head_drop_params, .param_count = GW_ARRAY_LEN(head_drop_params),
    .source  = "Linux 6.1 net/sched/sch_fifo.c",
};
