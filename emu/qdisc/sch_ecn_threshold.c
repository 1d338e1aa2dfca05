/*
 * sch_ecn_threshold - a FIFO that marks by its instantaneous depth, as switches do
 *
 * The marking of data-centre switches: an ECT packet that finds at most kmin bytes waiting passes;
 * above kmax it leaves with CE; between the two it is marked with a probability that rises linearly
 * from 0 to pmax. kmin = kmax is the step of DCTCP. Packets that can't carry a mark are only
 * dropped when the queue holds limit bytes. No average, no clock. This is gradwire's own; tc has
 * no word for it (the nearest is `red` with min = max and burst 1). Alizadeh et al., "Data Center
 * TCP", SIGCOMM 2010; Zhu et al., "DCQCN", SIGCOMM 2015. Left out: memory shared between ports,
 * which is the switch's.
 */
#include <gradwire/gradwire.h>

struct ecn_conf {
    uint64_t kmin, kmax, limit;      /* bytes; limit UINT64_MAX: auto                           */
    double   pmax;
};

struct ecn {
    struct gw_pktq queue;
    uint64_t kmin, kmax, limit;
    uint64_t pmax;                   /* of 2^32                                                 */
    uint64_t marked_between, marked_above;
};

enum { ROW_KMIN, ROW_KMAX, ROW_PMAX, ROW_LIMIT };

static enum gw_status ecn_check(const struct ecn_conf *c, struct gw_error *err)
{
    if (c->kmin > c->kmax)
        return gw_fail(err, GW_PARAM, "ecn_threshold: kmin %llu is above kmax %llu; kmin at most "
                       "kmax is right", (unsigned long long)c->kmin, (unsigned long long)c->kmax);
    return GW_OK;
}

static void ecn_apply(struct gw_qdisc *q, const struct ecn_conf *c)
{
    uint64_t frame = q->mtu_bytes ? q->mtu_bytes : 1514;
    struct ecn *s = q->priv;

    s->kmin = c->kmin;
    s->kmax = c->kmax;
    s->pmax = (uint64_t)(c->pmax * 4294967296.0);
    s->limit = c->limit != UINT64_MAX ? c->limit :
               q->auto_limit_bytes > frame ? q->auto_limit_bytes : frame;
}

static enum gw_status ecn_init(struct gw_qdisc *q, struct gw_error *err)
{
    if (ecn_check(q->conf, err) != GW_OK)
        return err->code;
    ecn_apply(q, q->conf);
    return GW_OK;
}

static void ecn_mark(struct gw_qdisc *q, struct gw_pkt *p)
{
    struct ecn *s = q->priv;
    uint64_t depth = s->queue.bytes;

    if (depth <= s->kmin || p->ecn == GW_ECN_NOT_ECT)
        return;
    if (depth > s->kmax)
        s->marked_above += gw_qdisc_mark(q, p);
    else if (gw_rng_u32(&q->rng) < gw_mul_div(s->pmax, depth - s->kmin, s->kmax - s->kmin))
        s->marked_between += gw_qdisc_mark(q, p);
}

static enum gw_verdict ecn_enqueue(struct gw_qdisc *q, struct gw_pkt *p, uint64_t now_ps)
{
    struct ecn *s = q->priv;

    (void)now_ps;
    if (s->queue.bytes + p->sched_bytes > s->limit) {
        q->drop_reason = GW_DROP_QUEUE_FULL;
        return GW_Q_DROPPED;
    }
    ecn_mark(q, p);
    gw_pktq_push(&s->queue, p);
    return GW_Q_QUEUED;
}

static struct gw_pkt *ecn_dequeue(struct gw_qdisc *q, uint64_t now_ps)
{
    struct ecn *s = q->priv;

    (void)now_ps;
    return gw_pktq_pop(&s->queue);
}

static struct gw_pkt *ecn_peek(struct gw_qdisc *q, uint64_t now_ps)
{
    (void)now_ps;
    return ((struct ecn *)q->priv)->queue.head;
}

/* What is not named keeps its value; a smaller limit drops nothing that waits already. */
static enum gw_status ecn_change(struct gw_qdisc *q, const void *conf, uint64_t given,
                                 uint64_t now_ps, struct gw_error *err)
{
    const struct ecn_conf *c = conf;
    struct ecn_conf merged = *(const struct ecn_conf *)q->conf;

    (void)now_ps;
    if (given & 1 << ROW_KMIN)
        merged.kmin = c->kmin;
    if (given & 1 << ROW_KMAX)
        merged.kmax = c->kmax;
    if (given & 1 << ROW_PMAX)
        merged.pmax = c->pmax;
    if (given & 1 << ROW_LIMIT)
        merged.limit = c->limit;
    if (ecn_check(&merged, err) != GW_OK)
        return err->code;
    memcpy(q->conf, &merged, sizeof merged);
    ecn_apply(q, &merged);
    return GW_OK;
}

static void ecn_reset(struct gw_qdisc *q, uint64_t now_ps)
{
    struct ecn *s = q->priv;
    struct gw_pkt *p;

    (void)now_ps;
    while ((p = gw_pktq_pop(&s->queue)))
        q->host->qdisc_drop(q, p, GW_DROP_PURGED);
}

static void ecn_advise(const struct gw_qdisc *q, void (*say)(void *ctx, const char *sentence),
                       void *ctx)
{
    const struct ecn *s = q->priv;
    char text[200];

    if (s->kmax < s->limit)
        return;
    snprintf(text, sizeof text, "kmax %llu is not below limit %llu: the queue overflows before all "
             "packets are marked", (unsigned long long)s->kmax, (unsigned long long)s->limit);
    say(ctx, text);
}

static const struct gw_stat ecn_stats[] = {
    { "marked_between", offsetof(struct ecn, marked_between), "packets marked by chance" },
    { "marked_above", offsetof(struct ecn, marked_above), "packets marked above kmax" },
};

static const struct gw_qdisc_ops ecn_ops = {
    .priv_bytes    = sizeof(struct ecn),
    .conf_bytes    = sizeof(struct ecn_conf),
    .init          = ecn_init,
    .enqueue       = ecn_enqueue,
    .dequeue       = ecn_dequeue,
    .peek          = ecn_peek,
    .change        = ecn_change,
    .reset         = ecn_reset,
    .advise        = ecn_advise,
    .not_in_kernel = true,
    .in_hindsight  = true,
    .stats         = ecn_stats, .stat_count = GW_ARRAY_LEN(ecn_stats),
};

static const struct gw_param ecn_params[] = {
    { "kmin", GW_P_BYTES, offsetof(struct ecn_conf, kmin), "100kB", "0", NULL,
      "Bytes up to which nothing is marked." },
    { "kmax", GW_P_BYTES, offsetof(struct ecn_conf, kmax), "100kB", "0", NULL,
      "Bytes above which every ECT packet is marked; equal to kmin: a step." },
    { "pmax", GW_P_FRACTION, offsetof(struct ecn_conf, pmax), "100%", "0", "100%",
      "Share of ECT packets that are marked just below kmax." },
    { "limit", GW_P_BYTES, offsetof(struct ecn_conf, limit), "auto", "0", "auto",
      "Bytes that may wait; auto: from rate x delay." },
};

GW_PLUGIN(gw_qdisc_ecn_threshold) = {
    GW_PLUGIN_HEAD(GW_KIND_QDISC, ecn_ops),
    .name    = "ecn_threshold",
    .summary = "A FIFO with ECN marking by queue depth, as in switches.",
    .params  = ecn_params, .param_count = GW_ARRAY_LEN(ecn_params),
    .source  = "Alizadeh et al., SIGCOMM 2010; Zhu et al., SIGCOMM 2015",
};
