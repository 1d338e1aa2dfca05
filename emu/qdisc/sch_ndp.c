/*
 * sch_ndp - a short queue that trims packets to their headers instead of dropping them
 *
 * The switch of NDP: a few full packets may wait; one more has its payload cut off, and its header
 * goes on in a queue of its own, so that the receiver learns at once what was lost. By a coin's fall
 * the arriving packet or the last of those that wait is trimmed, which breaks phase effects. Headers
 * and other short packets (acknowledgements, pulls) are served first, but after `ratio` of them in a
 * row one full packet gets its turn. Both queues are bounded; headers of trimmed packets beyond go
 * back to their senders (`return: no` drops them, as other short packets are). Only
 * packets whose transport can do with a header are trimmed (GW_PKT_TRIMMABLE); others are dropped.
 * This is gradwire's own; tc has no word for it. Handley et al., "Re-architecting datacenter
 * networks and stacks for low latency and high performance", SIGCOMM 2017, section 3.1; the same
 * trimming is part of Ultra Ethernet 1.0. With `mark` below `limit` it marks, too, as UEC wants.
 */
#include <gradwire/gradwire.h>

struct ndp_conf {
    uint32_t limit, ratio, mark_min, mark_max;   /* packets                                     */
    uint64_t header_bytes, trim_bytes, small_bytes;
    bool     give_back;
};

struct ndp {
    struct gw_pktq data, header;
    uint32_t row;                    /* headers sent since the last full packet                 */
    uint64_t trimmed, header_drops, returned;
};

static enum gw_status ndp_init(struct gw_qdisc *q, struct gw_error *err)
{
    const struct ndp_conf *c = q->conf;

    if (c->trim_bytes > c->small_bytes)
        return gw_fail(err, GW_PARAM, "ndp: trim %llu is above small %llu; small at least trim is "
                       "right", (unsigned long long)c->trim_bytes,
                       (unsigned long long)c->small_bytes);
    if (c->mark_max && c->mark_min > c->mark_max)
        return gw_fail(err, GW_PARAM, "ndp: mark_min %u is above mark_max %u; at most mark_max is "
                       "right", c->mark_min, c->mark_max);
    return GW_OK;
}

static void ndp_mark(struct gw_qdisc *q, struct gw_pkt *p)
{
    const struct ndp_conf *c = q->conf;
    const struct ndp *s = q->priv;
    uint32_t depth = s->data.count;

    if (!c->mark_max || depth < c->mark_min || p->ecn == GW_ECN_NOT_ECT)
        return;
    if (depth >= c->mark_max ||
        gw_rng_u32(&q->rng) < (uint64_t)(depth - c->mark_min + 1) * UINT32_MAX /
                                  (c->mark_max - c->mark_min + 1))
        gw_qdisc_mark(q, p);
}

/* Puts the arriving packet in the place of the last one that waits; @p is then that one. */
static void ndp_swap_tail(struct ndp *s, struct gw_pkt *p)
{
    struct gw_pkt *tail = s->data.tail, t = *tail, *next = p->next;

    *tail = *p;
    tail->next = t.next;
    *p = t;
    p->next = next;
}

static enum gw_verdict ndp_header(struct gw_qdisc *q, struct gw_pkt *p)
{
    const struct ndp_conf *c = q->conf;
    struct ndp *s = q->priv;

    if (s->header.bytes + p->sched_bytes > c->header_bytes) {
        bool back = c->give_back && (p->flags & (GW_PKT_TRIMMED | GW_PKT_REVERSE)) == GW_PKT_TRIMMED;

        s->returned += back;
        s->header_drops += !back;
        q->drop_reason = back ? GW_DROP_RETURNED : GW_DROP_QUEUE_FULL;
        return GW_Q_DROPPED;
    }
    gw_pktq_push(&s->header, p);
    return GW_Q_QUEUED;
}

static enum gw_verdict ndp_enqueue(struct gw_qdisc *q, struct gw_pkt *p, uint64_t now_ps)
{
    const struct ndp_conf *c = q->conf;
    struct ndp *s = q->priv;

    (void)now_ps;
    if (p->sched_bytes <= c->small_bytes)
        return ndp_header(q, p);
    if (GW_LIKELY(s->data.count < c->limit)) {
        ndp_mark(q, p);
        gw_pktq_push(&s->data, p);
        return GW_Q_QUEUED;
    }
    if (!(p->flags & GW_PKT_TRIMMABLE)) {
        q->drop_reason = GW_DROP_QUEUE_FULL;
        return GW_Q_DROPPED;
    }
    if (s->data.tail && s->data.tail->sched_bytes == p->sched_bytes &&
        s->data.tail->flags & GW_PKT_TRIMMABLE && gw_rng_u32(&q->rng) >> 31)
        ndp_swap_tail(s, p);
    p->orig_len_bytes = (uint16_t)p->len_bytes;
    p->flags |= GW_PKT_TRIMMED;
    p->len_bytes = p->sched_bytes = (uint32_t)c->trim_bytes;
    s->trimmed++;
    return ndp_header(q, p) == GW_Q_QUEUED ? GW_Q_TRIMMED : GW_Q_DROPPED;
}

static struct gw_pkt *ndp_dequeue(struct gw_qdisc *q, uint64_t now_ps)
{
    const struct ndp_conf *c = q->conf;
    struct ndp *s = q->priv;

    (void)now_ps;
    if (s->header.head && (!s->data.head || s->row < c->ratio)) {
        s->row++;
        return gw_pktq_pop(&s->header);
    }
    s->row = 0;
    return gw_pktq_pop(&s->data);
}

static void ndp_reset(struct gw_qdisc *q, uint64_t now_ps)
{
    struct ndp *s = q->priv;
    struct gw_pkt *p;

    (void)now_ps;
    while ((p = gw_pktq_pop(&s->data)) || (p = gw_pktq_pop(&s->header)))
        q->host->qdisc_drop(q, p, GW_DROP_PURGED);
}

static const struct gw_stat ndp_stats[] = {
    { "trimmed", offsetof(struct ndp, trimmed), "packets cut to their headers" },
    { "header_drops", offsetof(struct ndp, header_drops), "short packets that found no room" },
    { "returned", offsetof(struct ndp, returned), "headers without room that went back" },
};

static const struct gw_qdisc_ops ndp_ops = {
    .priv_bytes    = sizeof(struct ndp),
    .conf_bytes    = sizeof(struct ndp_conf),
    .init          = ndp_init,
    .enqueue       = ndp_enqueue,
    .dequeue       = ndp_dequeue,
    .reset         = ndp_reset,
    .in_hindsight  = true,
    .not_in_kernel = true,
    .stats         = ndp_stats, .stat_count = GW_ARRAY_LEN(ndp_stats),
};

static const struct gw_param ndp_params[] = {
    { "limit", GW_P_U32, offsetof(struct ndp_conf, limit), "8", "1", "1000000",
      "Full packets that may wait; one more is trimmed." },
    { "headers", GW_P_BYTES, offsetof(struct ndp_conf, header_bytes), "64KiB", "64", NULL,
      "Bytes of short packets that may wait." },
    { "ratio", GW_P_U32, offsetof(struct ndp_conf, ratio), "10", "1", "1000000",
      "Short packets that go before a full one that waits." },
    { "trim", GW_P_BYTES, offsetof(struct ndp_conf, trim_bytes), "64", "14", "9000",
      "Length of a trimmed packet." },
    { "small", GW_P_BYTES, offsetof(struct ndp_conf, small_bytes), "128", "14", "9000",
      "Packets up to this length count as short." },
    { "return", GW_P_BOOL, offsetof(struct ndp_conf, give_back), "yes", NULL, NULL,
      "Headers of trimmed packets that find no room go back to their senders; no: they are lost." },
    { "mark_min", GW_P_U32, offsetof(struct ndp_conf, mark_min), "0", "0", "1000000",
      "Full packets that wait when marking begins, by chance." },
    { "mark_max", GW_P_U32, offsetof(struct ndp_conf, mark_max), "0", "0", "1000000",
      "Full packets that wait when every ECT packet is marked; 0: no marking." },
};

GW_PLUGIN(gw_qdisc_ndp) = {
    GW_PLUGIN_HEAD(GW_KIND_QDISC, ndp_ops),
    .name    = "ndp",
    .summary = "A short queue of full packets; those beyond are trimmed to their headers.",
    .params  = ndp_params, .param_count = GW_ARRAY_LEN(ndp_params),
    .source  = "Handley et al., SIGCOMM 2017",
};
