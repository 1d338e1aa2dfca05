/*
 * sch_bfifo - first in, first out, limited in bytes
 *
 * What Linux's bfifo does: a packet is taken if the bytes that wait and its own are together at
 * most `limit`, else dropped. Bytes are frames without FCS, or what `stab` makes of them. Without
 * `limit` the limit is txqueuelen full frames (1000 x 1514). `change` without a limit keeps the old
 * one; a smaller new limit drops nothing that waits already. In a study the word auto sizes the
 * queue from rate x delay of the link.
 * Follows net/sched/sch_fifo.c of Linux 6.1. Left out: the kernel's bound of 4 GiB on the limit.
 */
#include <gradwire/gradwire.h>
#include <gradwire/alg/shaper.h>

struct bfifo_conf {
    uint64_t limit_bytes;        /* UINT64_MAX: auto                                           */
};

struct bfifo {
    struct gw_pktq queue;
    uint64_t       limit_bytes;
};

static uint64_t bfifo_limit(const struct gw_qdisc *q, const struct bfifo_conf *conf,
                            uint64_t given)
{
    uint64_t frame = q->mtu_bytes ? q->mtu_bytes : 1514;

    if (!(given & 1))
        return q->txqueuelen * frame;
    if (conf->limit_bytes != UINT64_MAX)
        return conf->limit_bytes;
    return q->auto_limit_bytes > frame ? q->auto_limit_bytes : frame;
}

static enum gw_status bfifo_init(struct gw_qdisc *q, struct gw_error *err)
{
    struct bfifo *f = q->priv;

    (void)err;
    f->limit_bytes = bfifo_limit(q, q->conf, q->given);
    return GW_OK;
}

static enum gw_verdict bfifo_enqueue(struct gw_qdisc *q, struct gw_pkt *p, uint64_t now_ps)
{
    struct bfifo *f = q->priv;

    (void)now_ps;
    if (f->queue.bytes + p->sched_bytes > f->limit_bytes) {
        q->drop_reason = GW_DROP_QUEUE_FULL;
        return GW_Q_DROPPED;
    }
    gw_pktq_push(&f->queue, p);
    return GW_Q_QUEUED;
}

static struct gw_pkt *bfifo_dequeue(struct gw_qdisc *q, uint64_t now_ps)
{
    struct bfifo *f = q->priv;

    (void)now_ps;
    return gw_pktq_pop(&f->queue);
}

static struct gw_pkt *bfifo_peek(struct gw_qdisc *q, uint64_t now_ps)
{
    (void)now_ps;
    return ((struct bfifo *)q->priv)->queue.head;
}

static enum gw_status bfifo_change(struct gw_qdisc *q, const void *conf, uint64_t given,
                                   uint64_t now_ps, struct gw_error *err)
{
    struct bfifo *f = q->priv;

    (void)now_ps;
    (void)err;
    if (given & 1)
        f->limit_bytes = bfifo_limit(q, conf, given);
    return GW_OK;
}

static void bfifo_reset(struct gw_qdisc *q, uint64_t now_ps)
{
    struct bfifo *f = q->priv;
    struct gw_pkt *p;

    (void)now_ps;
    while ((p = gw_pktq_pop(&f->queue)))
        q->host->qdisc_drop(q, p, GW_DROP_PURGED);
}

static bool bfifo_fifo_limits(const struct gw_qdisc *q, uint64_t *pkts, uint64_t *bytes)
{
    const struct bfifo *f = q->priv;

    *pkts = UINT64_MAX;
    *bytes = f->limit_bytes;
    return true;
}

static void bfifo_tc_show(const struct gw_qdisc *q, struct gw_tc_out *o)
{
    const struct bfifo *f = q->priv;

    gw_tc_show_size(o, "limit", "limit %s", f->limit_bytes);
}

static void bfifo_advise(const struct gw_qdisc *q, void (*say)(void *ctx, const char *sentence),
                         void *ctx)
{
    const struct bfifo *f = q->priv;
    char text[160];

    if (f->limit_bytes >= q->mtu_bytes)
        return;
    snprintf(text, sizeof text, "limit %llu bytes: no full frame of %u bytes ever gets in; give at "
             "least as much", (unsigned long long)f->limit_bytes,
             q->mtu_bytes);
    say(ctx, text);
}

static const struct gw_qdisc_ops bfifo_ops = {
    .priv_bytes  = sizeof(struct bfifo),
    .conf_bytes  = sizeof(struct bfifo_conf),
    .init        = bfifo_init,
    .enqueue     = bfifo_enqueue,
    .dequeue     = bfifo_dequeue,
    .peek        = bfifo_peek,
    .change      = bfifo_change,
    .reset       = bfifo_reset,
    .fifo_limits = bfifo_fifo_limits,
    .tc_show     = bfifo_tc_show,
    .in_hindsight = true,
    .advise      = bfifo_advise,
};

static const struct gw_param bfifo_params[] = {
    { "limit", GW_P_BYTES, offsetof(struct bfifo_conf, limit_bytes), "", "0", "auto",
      "Bytes that may wait; auto: from rate x delay; not given: txqueuelen full frames." },
};

GW_PLUGIN(gw_qdisc_bfifo) = {
    GW_PLUGIN_HEAD(GW_KIND_QDISC, bfifo_ops),
    .name    = "bfifo",
    .summary = "First in, first out, limited in bytes.",
    .params  = bfifo_params, .param_count = GW_ARRAY_LEN(bfifo_params),
    .source  = "Linux 6.1 net/sched/sch_fifo.c",
};
