/*
 * sch_pfifo_fast - Linux's default discipline: three FIFOs, chosen by priority
 *
 * A packet's priority, taken modulo 16, selects a band by the fixed map 1 2 2 2 1 2 0 0 1 1 1 1 1 1
 * 1 1; band 0 is served first, then 1, then 2, also below a parent that waits with a packet in
 * view. Each band holds txqueuelen packets and drops what comes beyond. There are no options and no
 * classes; filters do not reach it.
 * Follows net/sched/sch_generic.c of Linux 6.1. Left out: the lock-free rings, which let packets of
 * several processors overtake each other.
 */
#include <gradwire/gradwire.h>

enum { FAST_BANDS = 3 };

struct fast {
    struct gw_pktq band[FAST_BANDS];
};

static const uint8_t fast_map[16] = { 1, 2, 2, 2, 1, 2, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1 };

static enum gw_status fast_init(struct gw_qdisc *q, struct gw_error *err)
{
    if (!q->txqueuelen)
        return gw_fail(err, GW_PARAM, "pfifo_fast: the device's txqueuelen is 0; it must be at "
                       "least 1 packet");
    return GW_OK;
}

static enum gw_verdict fast_enqueue(struct gw_qdisc *q, struct gw_pkt *p, uint64_t now_ps)
{
    struct fast *f = q->priv;
    struct gw_pktq *b = &f->band[fast_map[p->priority & 15]];

    (void)now_ps;
    if (b->count >= q->txqueuelen) {
        q->drop_reason = GW_DROP_QUEUE_FULL;
        return GW_Q_DROPPED;
    }
    gw_pktq_push(b, p);
    return GW_Q_QUEUED;
}

static struct gw_pkt *fast_dequeue(struct gw_qdisc *q, uint64_t now_ps)
{
    struct fast *f = q->priv;
    struct gw_pkt *p = NULL;

    (void)now_ps;
    for (int i = 0; i < FAST_BANDS && !p; i++)
        p = gw_pktq_pop(&f->band[i]);
    return p;
}

static struct gw_pkt *fast_peek(struct gw_qdisc *q, uint64_t now_ps)
{
    struct fast *f = q->priv;
    struct gw_pkt *p = NULL;

    (void)now_ps;
    for (int i = 0; i < FAST_BANDS && !p; i++)
        p = f->band[i].head;
    return p;
}

/* There is nothing to change, so a line without words succeeds, as in the kernel. */
static enum gw_status fast_change(struct gw_qdisc *q, const void *conf, uint64_t given,
                                  uint64_t now_ps, struct gw_error *err)
{
    (void)q, (void)conf, (void)given, (void)now_ps, (void)err;
    return GW_OK;
}

static void fast_reset(struct gw_qdisc *q, uint64_t now_ps)
{
    struct gw_pkt *p;

    while ((p = fast_dequeue(q, now_ps)))
        q->host->qdisc_drop(q, p, GW_DROP_PURGED);
}

static enum gw_status fast_tc_parse(const struct gw_tc_args *a, void *conf, uint64_t *given,
                                    struct gw_error *err)
{
    (void)conf;
    (void)given;
    if (a->count)                        /* tc ends with 255 here, as for a line cut short     */
        return gw_fail(err, GW_INCOMPLETE, "qdisc 'pfifo_fast' does not support option parsing; "
                       "\"%s\" should be left out", a->word[0]);
    return GW_OK;
}

static void fast_tc_show(const struct gw_qdisc *q, struct gw_tc_out *o)
{
    (void)q;
    o->u64(o, "bands", "bands %llu ", FAST_BANDS);
    if (o->json)
        o->open(o, "priomap", true);
    else
        o->str(o, NULL, "%s", "priomap");
    for (int i = 0; i < 16; i++)
        o->u64(o, "", " %llu", fast_map[i]);
    if (o->json)
        o->close(o, true);
    o->flag(o, "multiqueue", NULL, false);
}

static const struct gw_qdisc_ops fast_ops = {
    .priv_bytes = sizeof(struct fast),
    .init       = fast_init,
    .enqueue    = fast_enqueue,
    .dequeue    = fast_dequeue,
    .peek       = fast_peek,
    .change     = fast_change,
    .reset      = fast_reset,
    .tc_parse   = fast_tc_parse,
    .tc_show    = fast_tc_show,
    .in_hindsight = true,
};

GW_PLUGIN(gw_qdisc_pfifo_fast) = {
    GW_PLUGIN_HEAD(GW_KIND_QDISC, fast_ops),
    .name    = "pfifo_fast",
    .summary = "Three FIFOs of txqueuelen packets each, chosen by priority; Linux's default.",
    .source  = "Linux 6.1 net/sched/sch_generic.c",
};
