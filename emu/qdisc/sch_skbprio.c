/*
 * sch_skbprio - one queue per priority, the lowest pays when the room is used up
 *
 * What Linux's skbprio does: the packet's priority (at most 63) chooses one of 64 queues, which
 * share `limit` packets. The highest queue that holds something is served first. A packet that
 * finds the limit reached is dropped if no lower queue holds anything; else it is taken in and the
 * last packet of the lowest queue is dropped. Classes 1 to 40 (hexadecimal) stand for the queues
 * and are only there to be looked at.
 * Follows net/sched/sch_skbprio.c of Linux 6.1 (Nishanth Devarajan and others, 2018). A queue is
 * linked one way only, so that a drop at its tail walks it; limits are small. Left out: nothing
 * that a packet can notice.
 */
#include <gradwire/gradwire.h>

enum { SKBPRIO_QUEUES = 64 };

struct skbprio_conf {
    uint32_t limit;              /* packets                                                    */
};

struct skbprio {
    struct gw_pktq   queue[SKBPRIO_QUEUES];
    uint32_t         limit;
    struct gw_qclass cls[SKBPRIO_QUEUES];
};

static enum gw_status skbprio_init(struct gw_qdisc *q, struct gw_error *err)
{
    struct skbprio *s = q->priv;
    const struct skbprio_conf *c = q->conf;

    (void)err;
    s->limit = q->given & 1 ? c->limit : SKBPRIO_QUEUES;
    for (uint32_t i = 0; i < SKBPRIO_QUEUES; i++) {
        s->cls[i].id = q->handle | (i + 1);
        s->cls[i].next = i + 1 < SKBPRIO_QUEUES ? &s->cls[i + 1] : NULL;
    }
    return GW_OK;
}

static void skbprio_drop_tail(struct gw_qdisc *q, struct gw_pktq *queue)
{
    struct gw_pkt *last = queue->head, *before = NULL;

    while (last->next) {
        before = last;
        last = last->next;
    }
    if (before)
        before->next = NULL;
    else
        queue->head = NULL;
    queue->tail = before;
    queue->count--;
    queue->bytes -= last->sched_bytes;
    q->overlimits++;
    q->host->qdisc_drop(q, last, GW_DROP_QUEUE_FULL);
}

static enum gw_verdict skbprio_enqueue(struct gw_qdisc *q, struct gw_pkt *p, uint64_t now_ps)
{
    struct skbprio *s = q->priv;
    uint32_t prio = p->priority < SKBPRIO_QUEUES ? p->priority : SKBPRIO_QUEUES - 1, low = 0;
    bool full = q->backlog_pkts >= s->limit;

    (void)now_ps;
    if (full) {
        while (low < prio && !s->queue[low].count)
            low++;
        if (low == prio) {
            q->overlimits++;
            q->drop_reason = GW_DROP_QUEUE_FULL;
            return GW_Q_DROPPED;
        }
    }
    gw_pktq_push(&s->queue[prio], p);
    if (full)
        skbprio_drop_tail(q, &s->queue[low]);
    return GW_Q_QUEUED;
}

static struct gw_pkt *skbprio_dequeue(struct gw_qdisc *q, uint64_t now_ps)
{
    struct skbprio *s = q->priv;

    (void)now_ps;
    for (uint32_t i = SKBPRIO_QUEUES; q->backlog_pkts && i-- > 0;)
        if (s->queue[i].count)
            return gw_pktq_pop(&s->queue[i]);
    return NULL;
}

static enum gw_status skbprio_change(struct gw_qdisc *q, const void *conf, uint64_t given,
                                     uint64_t now_ps, struct gw_error *err)
{
    struct skbprio *s = q->priv;

    (void)now_ps;
    (void)err;
    if (given & 1)
        s->limit = ((const struct skbprio_conf *)conf)->limit;
    return GW_OK;
}

static void skbprio_reset(struct gw_qdisc *q, uint64_t now_ps)
{
    struct gw_pkt *p;

    while ((p = skbprio_dequeue(q, now_ps)))
        q->host->qdisc_drop(q, p, GW_DROP_PURGED);
}

static struct gw_qclass *skbprio_class_find(struct gw_qdisc *q, uint32_t classid)
{
    struct skbprio *s = q->priv;
    uint32_t minor = classid & 0xffff;

    return minor && minor <= SKBPRIO_QUEUES ? &s->cls[minor - 1] : NULL;
}

static struct gw_qclass *skbprio_class_walk(struct gw_qdisc *q, struct gw_qclass *after)
{
    struct skbprio *s = q->priv;

    return after ? after->next : &s->cls[0];
}

static enum gw_status skbprio_graft(struct gw_qdisc *q, uint32_t classid, struct gw_qdisc *child,
                                    struct gw_qdisc **old, struct gw_error *err)
{
    (void)q, (void)child, (void)old;
    return gw_fail(err, GW_PARAM, "RTNETLINK answers: Operation not supported: class %x:%x of "
                   "skbprio takes no discipline", classid >> 16, classid & 0xffff);
}

static enum gw_status skbprio_tc_parse(const struct gw_tc_args *a, void *conf, uint64_t *given,
                                       struct gw_error *err)
{
    struct skbprio_conf *c = conf;

    for (uint32_t i = 0; i < a->count; i++) {
        if (strcmp(a->word[i], "limit"))
            return gw_tc_what(err, "skbprio", a->word[i]);
        if (++i == a->count)
            return gw_tc_incomplete(err, "limit");
        if (!gw_tc_size(a->word[i], &c->limit))
            return gw_tc_illegal(err, "limit", a->word[i], "a number of packets such as 64");
        *given |= 1;
    }
    return GW_OK;
}

static void skbprio_tc_show(const struct gw_qdisc *q, struct gw_tc_out *o)
{
    o->u64(o, "limit", "limit %llu ", ((const struct skbprio *)q->priv)->limit);
}

static const struct gw_qdisc_ops skbprio_ops = {
    .priv_bytes = sizeof(struct skbprio),
    .conf_bytes = sizeof(struct skbprio_conf),
    .init       = skbprio_init,
    .enqueue    = skbprio_enqueue,
    .dequeue    = skbprio_dequeue,
    .change     = skbprio_change,
    .reset      = skbprio_reset,
    .class_find = skbprio_class_find,
    .class_walk = skbprio_class_walk,
    .graft      = skbprio_graft,
    .tc_parse   = skbprio_tc_parse,
    .tc_show    = skbprio_tc_show,
    .in_hindsight = true,
};

static const struct gw_param skbprio_params[] = {
    { "limit", GW_P_WORDS, 0, "64", NULL, NULL, "PACKETS: how many all queues hold together." },
};

GW_PLUGIN(gw_qdisc_skbprio) = {
    GW_PLUGIN_HEAD(GW_KIND_QDISC, skbprio_ops),
    .name    = "skbprio",
    .summary = "One queue per priority; when full, the lowest priority loses its last packet.",
    .params  = skbprio_params, .param_count = GW_ARRAY_LEN(skbprio_params),
    .source  = "Linux 6.1 net/sched/sch_skbprio.c",
};
