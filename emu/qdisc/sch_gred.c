/*
 * sch_gred - up to 16 RED averages over one FIFO
 *
 * What Linux's gred does: `gred setup vqs N default D` makes the discipline; `change` lines then
 * set up virtual queues, each with RED constants of its own. All packets stand in one FIFO; each
 * counts for its virtual queue, whose average (plus, with grio, the averages of queues of better
 * priority) decides about it. With grio and two queues of equal priority, all share one average of
 * the whole backlog (WRED mode). Packets of a queue that is not set up go to the default one, or
 * pass if that is missing, too. The kernel takes the queue's number from skb->tc_index, which
 * classifiers set; here it is the low four bits of the packet's priority. Follows
 * net/sched/sch_gred.c of Linux 6.1 and tc/q_gred.c of iproute2 6.1. Left out: offloading.
 */
#include <gradwire/alg/red.h>
#include <gradwire/alg/tcwords.h>

enum { VQS_MAX = 16, PRIO_DEFAULT = VQS_MAX / 2 };

struct gred_conf {
    uint32_t setup;                  /* else a virtual queue                                    */
    uint32_t vqs, def, grio, flags;
    uint32_t limit;                  /* bytes of the whole; 0: not given                        */
    struct gw_red_conf red;          /* of the virtual queue                                    */
    uint32_t vq, prio;
};

struct gred_vq {
    struct gw_red red;
    bool     used;
    uint8_t  prio;
    uint32_t limit, flags;
    uint64_t backlog, packets, bytes;
    uint64_t prob_drop, prob_mark, forced_drop, forced_mark, pdrop;
};

struct gred {
    struct gw_pktq queue;
    struct gred_vq vq[VQS_MAX];
    uint32_t vqs, def, flags;
    uint64_t limit;
    bool     rio, wred;
    uint64_t wred_avg, wred_idle_ns; /* the one average of WRED mode                            */
    bool     wred_idle;
};

/* ---- virtual queues ----------------------------------------------------------------------- */

/* The virtual queue of @p, or the default one; NULL: neither is set up. */
static struct gred_vq *vq_of(struct gred *s, const struct gw_pkt *p)
{
    uint32_t i = p->priority & (VQS_MAX - 1);

    if (i < s->vqs && s->vq[i].used)
        return &s->vq[i];
    return s->vq[s->def].used ? &s->vq[s->def] : NULL;
}

static bool equal_prios(const struct gred *s)
{
    for (uint32_t i = 0; i < s->vqs; i++)
        for (uint32_t k = i + 1; k < s->vqs; k++)
            if (s->vq[i].used && s->vq[k].used && s->vq[i].prio == s->vq[k].prio)
                return true;
    return false;
}

static uint64_t vq_backlog(const struct gw_qdisc *q, const struct gred *s, const struct gred_vq *v)
{
    return s->wred ? q->backlog_bytes : v->backlog;
}

/* Averages of all queues that come before @v and are busy. */
static uint64_t better_avg(const struct gred *s, const struct gred_vq *v)
{
    uint64_t sum = 0;

    if (s->wred || !s->rio)
        return 0;
    for (uint32_t i = 0; i < s->vqs; i++)
        if (s->vq[i].used && s->vq[i].prio < v->prio && !s->vq[i].red.idle)
            sum += s->vq[i].red.avg;
    return sum;
}

static void wred_load(const struct gred *s, struct gred_vq *v)
{
    if (!s->wred)
        return;
    v->red.avg = s->wred_avg;
    v->red.idle = s->wred_idle;
    v->red.idle_ns = s->wred_idle_ns;
}

static void wred_store(struct gred *s, const struct gred_vq *v)
{
    if (!s->wred)
        return;
    s->wred_avg = v->red.avg;
    s->wred_idle = v->red.idle;
}

static bool congested(struct gw_qdisc *q, struct gw_pkt *p, bool may_mark, uint64_t *drops,
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

static bool gred_admit(struct gw_qdisc *q, struct gred_vq *v, struct gw_pkt *p, uint64_t now_ns)
{
    struct gred *s = q->priv;
    bool ecn = v->flags & GW_RED_ECN, hard = v->flags & GW_RED_HARDDROP;
    uint64_t better = better_avg(s, v);

    v->packets++;
    v->bytes += p->sched_bytes;
    wred_load(s, v);
    gw_red_arrive(&v->red, vq_backlog(q, s, v), now_ns);
    wred_store(s, v);
    switch (gw_red_decide(&v->red, v->red.avg + better, &q->rng)) {
    case GW_RED_PROB:
        return congested(q, p, ecn, &v->prob_drop, &v->prob_mark);
    case GW_RED_HARD:
        return congested(q, p, ecn && !hard, &v->forced_drop, &v->forced_mark);
    default:
        return true;
    }
}

/* ---- setting up --------------------------------------------------------------------------- */

static bool vq_flags_used(const struct gred *s)
{
    if (s->flags)
        return false;
    for (uint32_t i = 0; i < VQS_MAX; i++)
        if (s->vq[i].used && s->vq[i].flags)
            return true;
    return false;
}

static enum gw_status gred_setup(struct gred *s, const struct gred_conf *c, struct gw_error *err)
{
    bool changed = s->flags != c->flags;

    if (!c->vqs || c->vqs > VQS_MAX)
        return gw_fail(err, GW_PARAM, "gred: %u virtual queues; 1 to %d are right", c->vqs,
                       VQS_MAX);
    if (c->def >= c->vqs)
        return gw_fail(err, GW_PARAM, "gred: default virtual queue %u above virtual queue count %u",
                       c->def, c->vqs);
    if (c->flags && vq_flags_used(s))
        return gw_fail(err, GW_PARAM, "gred: can't set per-Qdisc RED flags when per-virtual queue "
                       "flags are used");
    s->vqs = c->vqs;
    s->def = c->def;
    s->flags = c->flags;
    s->rio = c->grio;
    s->wred = s->rio && equal_prios(s);
    if (c->limit)
        s->limit = c->limit;
    for (uint32_t i = 0; changed && i < s->vqs; i++)
        if (s->vq[i].used)
            s->vq[i].flags = s->flags;
    for (uint32_t i = s->vqs; i < VQS_MAX; i++)
        memset(&s->vq[i], 0, sizeof s->vq[i]);
    return GW_OK;
}

static enum gw_status gred_set_vq(struct gred *s, const struct gred_conf *c, struct gw_error *err)
{
    struct gred_vq *v;
    uint32_t def_prio;

    if (c->vq >= s->vqs)
        return gw_fail(err, GW_PARAM, "gred: virtual queue index %u above virtual queue count %u",
                       c->vq, s->vqs);
    if (s->flags && s->flags != c->red.flags)
        return gw_fail(err, GW_PARAM, "gred: can't change per-virtual queue RED flags when "
                       "per-Qdisc flags are used");
    if (gw_red_check("gred", &c->red, err) != GW_OK)
        return err->code;
    v = &s->vq[c->vq];
    def_prio = s->vq[s->def].used ? s->vq[s->def].prio : PRIO_DEFAULT;
    v->used = true;
    v->prio = (uint8_t)(!s->rio ? PRIO_DEFAULT : c->prio ? c->prio : def_prio);
    v->limit = c->red.limit > s->limit ? (uint32_t)s->limit : c->red.limit;
    v->flags = c->red.flags;
    if (!v->backlog)
        v->red.idle = false;
    gw_red_set(&v->red, &c->red);
    s->wred = s->rio && equal_prios(s);
    return GW_OK;
}

/* ---- callbacks ---------------------------------------------------------------------------- */

static enum gw_status gred_init(struct gw_qdisc *q, struct gw_error *err)
{
    const struct gred_conf *c = q->conf;
    struct gred *s = q->priv;

    if (!c->setup)
        return gw_fail(err, GW_PARAM, "gred: virtual queue configuration can't be specified at "
                       "initialization time; `gred setup vqs 4 default 2` first is right");
    s->limit = (uint64_t)q->txqueuelen * q->mtu_bytes;
    return gred_setup(s, c, err);
}

static enum gw_verdict gred_enqueue(struct gw_qdisc *q, struct gw_pkt *p, uint64_t now_ps)
{
    struct gred *s = q->priv;
    struct gred_vq *v = vq_of(s, p);

    if (!v && q->backlog_bytes + p->sched_bytes <= s->limit) {
        gw_pktq_push(&s->queue, p);
        return GW_Q_QUEUED;
    }
    if (v && !gred_admit(q, v, p, now_ps / GW_PS_PER_NS)) {
        q->drop_reason = GW_DROP_AQM;
        return GW_Q_DROPPED;
    }
    if (v && vq_backlog(q, s, v) + p->sched_bytes <= v->limit) {
        v->backlog += p->sched_bytes;
        gw_pktq_push(&s->queue, p);
        return GW_Q_QUEUED;
    }
    if (v)
        v->pdrop++;
    q->drop_reason = GW_DROP_QUEUE_FULL;
    return GW_Q_DROPPED;
}

/* What a change of the set of queues has moved is not counted below 0. */
static void gred_uncount(struct gw_qdisc *q, const struct gw_pkt *p, uint64_t now_ps)
{
    struct gred *s = q->priv;
    struct gred_vq *v = vq_of(s, p);
    uint64_t now_ns = now_ps / GW_PS_PER_NS;

    if (!v)
        return;
    v->backlog -= v->backlog < p->sched_bytes ? v->backlog : p->sched_bytes;
    if (!s->wred && !v->backlog)
        gw_red_empty(&v->red, now_ns);
    if (s->wred && !s->queue.count) {
        s->wred_idle_ns = now_ns;
        s->wred_idle = true;
    }
}

static struct gw_pkt *gred_dequeue(struct gw_qdisc *q, uint64_t now_ps)
{
    struct gred *s = q->priv;
    struct gw_pkt *p = gw_pktq_pop(&s->queue);

    if (p)
        gred_uncount(q, p, now_ps);
    return p;
}

static struct gw_pkt *gred_peek(struct gw_qdisc *q, uint64_t now_ps)
{
    (void)now_ps;
    return ((struct gred *)q->priv)->queue.head;
}

static enum gw_status gred_change(struct gw_qdisc *q, const void *conf, uint64_t given,
                                  uint64_t now_ps, struct gw_error *err)
{
    const struct gred_conf *c = conf;

    (void)given;
    (void)now_ps;
    return c->setup ? gred_setup(q->priv, c, err) : gred_set_vq(q->priv, c, err);
}

static void gred_reset(struct gw_qdisc *q, uint64_t now_ps)
{
    struct gred *s = q->priv;
    struct gw_pkt *p;

    (void)now_ps;
    while ((p = gw_pktq_pop(&s->queue)))
        q->host->qdisc_drop(q, p, GW_DROP_PURGED);
    for (uint32_t i = 0; i < s->vqs; i++) {
        gw_red_forget(&s->vq[i].red);
        s->vq[i].red.idle = false;
        s->vq[i].backlog = 0;
    }
}

/* ---- tc's words --------------------------------------------------------------------------- */

static enum gw_status parse_setup(const struct gw_tc_args *a, struct gred_conf *c, uint64_t *given,
                                  struct gw_error *err)
{
    static const struct gw_tcword words[] = {
#define AT(field) offsetof(struct gred_conf, field)
        { "vqs", GW_TCW_U32, AT(vqs), 0, 1, "a count up to 16" },
        { "DPs", GW_TCW_U32, AT(vqs), 0, 1, "a count up to 16" },
        { "default", GW_TCW_U32, AT(def), 0, 2, "the number of a virtual queue" },
        { "grio", GW_TCW_SET, AT(grio), 1, 0, NULL },
        { "limit", GW_TCW_SIZE, AT(limit), 0, 0, "a size like 60kb" },
        { "ecn", GW_TCW_OR, AT(flags), GW_RED_ECN, 0, NULL },
        { "harddrop", GW_TCW_OR, AT(flags), GW_RED_HARDDROP, 0, NULL },
#undef AT
    };
    struct gw_tc_args before = *a;                   /* of a `default` without vqs             */
    bool vqs = false;

    c->setup = 1;
    if (a->create)
        *a->create = true;                           /* tc's request then says NLM_F_CREATE    */
    for (uint32_t i = 1; i < before.count; i++) {
        vqs |= !strcmp(a->word[i], "vqs") || !strcmp(a->word[i], "DPs");
        if (!strcmp(a->word[i], "default") && !vqs)
            before.count = i;
    }
    if (gw_tcwords_read("gred", words, GW_ARRAY_LEN(words), &before, 1, c, given, err) != GW_OK)
        return err->code;
    if (before.count < a->count)
        return gw_fail(err, GW_SYNTAX, "gred: \"default\" must be defined after \"vqs\"");
    if (c->vqs > VQS_MAX)
        return gw_fail(err, GW_SYNTAX, "GRED: only %d VQs are currently supported, not %u", VQS_MAX,
                       c->vqs);
    if ((*given & 3) != 3 || !c->vqs)
        return gw_tc_missing(err, a, "vqs", "gred: Illegal gred setup parameters; `gred setup vqs "
                             "NUMBER default VQ` is right");
    if (c->def >= c->vqs)
        return gw_fail(err, GW_SYNTAX, "gred: \"default\" must be less than \"vqs\": %u and %u",
                       c->def, c->vqs);
    return GW_OK;
}

struct vq_words {
    struct gw_red_words red;
    uint32_t vq;
    int32_t  prio;
};

static enum gw_status parse_vq(const struct gw_tc_args *a, struct gred_conf *c, uint64_t *given,
                               struct gw_error *err)
{
    static const struct gw_tcword words[] = {
#define AT(field) offsetof(struct vq_words, field)
        { "limit", GW_TCW_SIZE, AT(red.limit), 0, 0, "a size like 60kb" },
        { "min", GW_TCW_SIZE, AT(red.min), 0, 0, "a size like 15kb" },
        { "max", GW_TCW_SIZE, AT(red.max), 0, 0, "a size like 45kb" },
        { "vq", GW_TCW_U32, AT(vq), 0, 0, "a number up to 15" },
        { "DP", GW_TCW_U32, AT(vq), 0, 0, "a number up to 15" },
        { "burst", GW_TCW_U32, AT(red.burst), 0, 0, "a count of packets" },
        { "avpkt", GW_TCW_SIZE, AT(red.avpkt), 0, 0, "a size like 1000" },
        { "probability", GW_TCW_DOUBLE, AT(red.probability), 0, 0, "a fraction like 0.02" },
        { "prio", GW_TCW_I32, AT(prio), 0, 0, "a number up to 255, the lower the better" },
        { "bandwidth", GW_TCW_RATE_DEV, AT(red.rate), 0, 0, "a rate like 10mbit" },
        { "ecn", GW_TCW_OR, AT(red.flags), GW_RED_ECN, 0, NULL },
        { "harddrop", GW_TCW_OR, AT(red.flags), GW_RED_HARDDROP, 0, NULL },
#undef AT
    };
    struct vq_words w = { .red.probability = 0.02, .vq = VQS_MAX };

    for (uint32_t i = 1; i < a->count; i++)
        if (!strcmp(a->word[i], "setup"))
            return gw_fail(err, GW_SYNTAX, "gred: Illegal \"setup\"; it stands first");
    if (gw_tcwords_read("gred", words, GW_ARRAY_LEN(words), a, 0, &w, given, err) != GW_OK)
        return err->code;
    if (w.vq > VQS_MAX)
        return gw_fail(err, GW_SYNTAX, "GRED: only %d VQs are currently supported; vq %u is none of "
                       "them", VQS_MAX, w.vq);
    if (w.vq == VQS_MAX || !w.red.limit || !w.red.min || !w.red.max || !w.red.avpkt)
        return gw_tc_missing(err, a, w.vq == VQS_MAX ? "vq" : !w.red.limit ? "limit" :
                             !w.red.min ? "min" : !w.red.max ? "max" : "avpkt",
                             "gred: Required parameter (vq, limit, min, max, avpkt) is missing");
    if (!w.red.burst)
        w.red.burst = (2 * w.red.min + w.red.max) / (3 * w.red.avpkt);
    if (!w.red.rate)
        w.red.rate = 1250000;
    c->vq = w.vq;
    c->prio = (uint8_t)w.prio;
    return gw_red_derive("gred", &w.red, 1, true, &c->red, err);
}

static enum gw_status gred_tc_parse(const struct gw_tc_args *a, void *conf, uint64_t *given,
                                    struct gw_error *err)
{
    if (!a->count)
        return gw_fail(err, GW_SYNTAX, "gred: `gred setup vqs NUMBER default VQ [grio] [limit "
                       "BYTES] [ecn] [harddrop]` is right");
    return (strcmp(a->word[0], "setup") ? parse_vq : parse_setup)(a, conf, given, err);
}

static void show_vq_stats(const struct gw_qdisc *q, const struct gred_vq *v, struct gw_tc_out *o)
{
    const struct gred *s = q->priv;
    uint64_t avg = s->wred ? s->wred_avg : v->red.avg;

    o->newline(o);
    gw_red_show_size(o, "qave", "Queue size: average %s ", avg >> v->red.wlog);
    gw_red_show_size(o, "backlog", "current %s ", vq_backlog(q, s, v));
    o->newline(o);
    o->u64(o, "forced_drop", "Dropped packets: forced %llu ", v->forced_drop);
    o->u64(o, "prob_drop", "early %llu ", v->prob_drop);
    o->u64(o, "pdrop", "pdrop %llu ", v->pdrop);
    o->u64(o, "other", "other %llu ", 0);
    o->newline(o);
    o->u64(o, "forced_mark", "Marked packets: forced %llu ", v->forced_mark);
    o->u64(o, "prob_mark", "early %llu ", v->prob_mark);
    o->newline(o);
    o->u64(o, "packets", "Total packets: %llu ", v->packets);
    gw_red_show_size(o, "bytes", "(%s) ", v->bytes);
}

static void show_vq(const struct gw_qdisc *q, uint32_t i, struct gw_tc_out *o)
{
    const struct gred_vq *v = &((const struct gred *)q->priv)->vq[i];

    o->open(o, NULL, false);
    o->u64(o, "vq", "\n vq %llu ", i);
    o->u64(o, "prio", "prio %llu ", v->prio);
    gw_red_show_size(o, "limit", "limit %s ", v->limit);
    gw_red_show_size(o, "min", "min %s ", v->red.min >> v->red.wlog);
    gw_red_show_size(o, "max", "max %s ", v->red.max >> v->red.wlog);
    gw_red_show_flags(v->flags, o);
    gw_red_show_details(&v->red, "Scell_log %llu ", o);
    if (o->stats)
        show_vq_stats(q, v, o);
    o->close(o, false);
}

static void gred_tc_show(const struct gw_qdisc *q, struct gw_tc_out *o)
{
    const struct gred *s = q->priv;

    o->u64(o, "dp_cnt", "vqs %llu ", s->vqs);
    o->u64(o, "dp_default", "default %llu ", s->def);
    o->flag(o, "grio", "grio ", s->rio);
    gw_red_show_size(o, "limit", "limit %s ", s->limit);
    gw_red_show_flags(s->flags, o);
    o->open(o, "vqs", true);
    for (uint32_t i = 0; i < s->vqs; i++)
        if (s->vq[i].used)
            show_vq(q, i, o);
    o->close(o, true);
}

static const struct gw_qdisc_ops gred_ops = {
    .priv_bytes = sizeof(struct gred),
    .conf_bytes = sizeof(struct gred_conf),
    .init       = gred_init,
    .enqueue    = gred_enqueue,
    .dequeue    = gred_dequeue,
    .peek       = gred_peek,
    .change     = gred_change,
    .reset      = gred_reset,
    .tc_parse   = gred_tc_parse,
    .tc_show    = gred_tc_show,
};

static const struct gw_param gred_params[] = {
    { "setup", GW_P_WORDS, 0, "", NULL, NULL,
      "Stands first: setup vqs N default VQ [grio] [limit BYTES] [ecn] [harddrop]." },
    { "vqs", GW_P_WORDS, 0, "", NULL, NULL, "Setup: number of virtual queues; DPs is the same." },
    { "default", GW_P_WORDS, 0, "", NULL, NULL, "Setup: virtual queue of all other packets." },
    { "grio", GW_P_WORDS, 0, "no", NULL, NULL, "Setup: priorities among virtual queues." },
    { "limit", GW_P_WORDS, 0, "", NULL, NULL, "Bytes of the whole, or of a virtual queue." },
    { "vq", GW_P_WORDS, 0, "", NULL, NULL,
      "Change: virtual queue that the line is about; DP is the same." },
    { "prio", GW_P_WORDS, 0, "8", NULL, NULL, "Change, with grio: its priority, lower is better." },
    { "min", GW_P_WORDS, 0, "", NULL, NULL, "Change: average in bytes where drops begin." },
    { "max", GW_P_WORDS, 0, "", NULL, NULL, "Change: average above which all are dropped." },
    { "avpkt", GW_P_WORDS, 0, "", NULL, NULL, "Change: mean size of a packet in bytes." },
    { "burst", GW_P_WORDS, 0, "", NULL, NULL, "Change: packets that may come at once." },
    { "probability", GW_P_WORDS, 0, "0.02", NULL, NULL, "Change: share dropped at max." },
    { "bandwidth", GW_P_WORDS, 0, "10mbit", NULL, NULL, "Change: speed of the link." },
    { "ecn", GW_P_WORDS, 0, "no", NULL, NULL, "Marks ECT packets instead of dropping them." },
    { "harddrop", GW_P_WORDS, 0, "no", NULL, NULL, "Drops above max even with ecn." },
};

GW_PLUGIN(gw_qdisc_gred) = {
    GW_PLUGIN_HEAD(GW_KIND_QDISC, gred_ops),
    .name    = "gred",
    .summary = "Several RED averages over one FIFO, by the packets' priority.",
    .params  = gred_params, .param_count = GW_ARRAY_LEN(gred_params),
    .source  = "Linux 6.1 net/sched/sch_gred.c",
};
