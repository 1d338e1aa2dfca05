/*
 * sch_fq_pie - PIE in each of many flow queues, served by deficit round robin
 *
 * After the manual page of tc-fq_pie (iproute2 6.1) and RFC 8290 with RFC 8033, and held to Linux
 * 6.1.192 in words, turns and limit (traces.sh); its drops were not compared with a kernel's, since
 * Debian's user-mode kernel has no fq_pie. A packet goes to one of `flows`
 * queues by its hash (or by a filter or priority naming class 1..flows of this discipline). Each
 * queue has its own PIE (gradwire/alg/pie.h): its own probability, delay and burst allowance.
 * Queues that become busy stand in the list of new ones with a deficit of `quantum`; a queue whose
 * deficit is used up gets another quantum and goes to the end of the old ones; a new queue that is
 * found empty goes once through the old ones. Over `limit` packets in all, the arriving packet is
 * dropped; over memory_limit the packet is only counted (overmemory), as the kernel does.
 * tupdate is rounded up to ticks of 10 ms (see pie). Left out: the kernel's secret hash seed; here
 * it comes from the study's seed.
 */
#include <gradwire/gradwire.h>
#include <gradwire/alg/pie.h>
#include <gradwire/alg/quantum.h>
#include <gradwire/alg/truesize.h>

enum { FQ_PIE_FLOWS = 256, FQ_PIE_QUANTUM = 512, FQ_PIE_MEMORY = 1024, FQ_PIE_ECN_PROB = 2048 };

struct fq_pie_conf {
    struct gw_pie_conf pie;
    uint32_t flows, quantum, memory_limit, ecn_prob;
};

struct flow {
    struct gw_pktq queue;
    struct flow   *next;         /* in its list                                                */
    struct gw_pie  pie;
    int64_t        deficit;
    bool           listed;
    bool           resting;      /* updates change nothing                                     */
};

struct flow_list {
    struct flow *head, *tail;
    uint64_t     count;
};

struct fq_pie {
    struct flow *flow;
    struct flow_list new_flows, old_flows;
    struct gw_pie_params params;
    struct gw_timer timer;
    uint64_t updated_ps;
    uint64_t limit, packets;
    uint32_t flows, quantum, memory_limit, ecn_prob, perturb;
    uint64_t memory_used;
    uint64_t packets_in, overlimit, overmemory, dropped, ecn_mark, new_flow_count;
};

static void list_add(struct flow_list *l, struct flow *f)
{
    f->next = NULL;
    if (l->tail)
        l->tail->next = f;
    else
        l->head = f;
    l->tail = f;
    l->count++;
}

static struct flow *list_take(struct flow_list *l)
{
    struct flow *f = l->head;

    l->head = f->next;
    if (!l->head)
        l->tail = NULL;
    l->count--;
    return f;
}

static void fq_pie_fire(void *owner, uint64_t now_ps)
{
    struct gw_qdisc *q = owner;
    struct fq_pie *s = q->priv;
    bool busy = false;

    s->updated_ps = now_ps;
    for (uint32_t i = 0; i < s->flows; i++) {
        struct flow *f = &s->flow[i];

        if (f->resting)
            continue;
        gw_pie_update(&f->pie, &s->params, f->queue.bytes);
        f->resting = gw_pie_idle(&f->pie, f->queue.bytes);
        busy = busy || !f->resting;
    }
    if (busy)
        q->host->timer_set(q->net, &s->timer,
                           gw_pie_next_update(now_ps, s->params.tupdate_us, now_ps));
}

static enum gw_status fq_pie_set(struct gw_qdisc *q, const struct fq_pie_conf *c, uint64_t given,
                                 struct gw_error *err)
{
    struct fq_pie *s = q->priv;

    if (given & FQ_PIE_FLOWS && s->flow)
        return gw_fail(err, GW_PARAM, "fq_pie: the number of flows cannot be changed; make the "
                       "discipline anew");
    if (given & FQ_PIE_QUANTUM && c->quantum > GW_QUANTUM_MAX)
        return gw_fail(err, GW_PARAM, "fq_pie: quantum: %u, an integer out of range; allowed 1 to "
                       "%u", c->quantum, GW_QUANTUM_MAX);
    if (given & FQ_PIE_FLOWS && c->flows > 65536)
        return gw_fail(err, GW_PARAM, "fq_pie: flows: %u; allowed 1 to 65536", c->flows);
    gw_pie_params_set(&s->params, &c->pie, given);
    if (given & GW_PIE_LIMIT)
        s->limit = c->pie.limit;
    if (given & FQ_PIE_FLOWS)
        s->flows = c->flows;
    if (given & FQ_PIE_QUANTUM)
        s->quantum = gw_quantum_within(c->quantum);
    if (given & FQ_PIE_MEMORY)
        s->memory_limit = c->memory_limit;
    if (given & FQ_PIE_ECN_PROB)
        s->ecn_prob = c->ecn_prob;
    return GW_OK;
}

static enum gw_status fq_pie_init(struct gw_qdisc *q, struct gw_error *err)
{
    uint32_t frame = q->mtu_bytes ? q->mtu_bytes : 1514;
    struct fq_pie *s = q->priv;

    gw_pie_params_init(&s->params, frame);
    s->limit = 10240;
    s->flows = 1024;
    s->quantum = frame;
    s->memory_limit = UINT32_C(32) << 20;
    s->ecn_prob = 10;
    if (fq_pie_set(q, q->conf, q->given, err) != GW_OK)
        return err->code;
    s->flow = q->host->alloc(s->flows * sizeof *s->flow);
    if (!s->flow)
        return gw_fail(err, GW_NOMEM, "out of memory for the flows of fq_pie");
    for (uint32_t i = 0; i < s->flows; i++) {
        gw_pie_rest(&s->flow[i].pie);
        s->flow[i].resting = true;
    }
    s->perturb = q->rng.refill ? gw_rng_u32(&q->rng) : 0;
    s->timer = (struct gw_timer){ .fire = fq_pie_fire, .owner = q, .comp = q->comp };
    return GW_OK;
}

static void fq_pie_fini(struct gw_qdisc *q)
{
    struct fq_pie *s = q->priv;

    if (q->net)
        q->host->timer_stop(q->net, &s->timer);
    if (s->flow)
        q->host->release(s->flow);
}

/* A class of this discipline named by priority or filter, else the hash. */
static struct flow *fq_pie_flow(struct gw_qdisc *q, struct fq_pie *s, const struct gw_pkt *p)
{
    uint32_t id = p->priority, x;

    if ((id & 0xffff0000) != q->handle || !(id & 0xffff) || (id & 0xffff) > s->flows)
        id = q->host->classify ? q->host->classify(q, p) : 0;
    if (id & 0xffff && (id & 0xffff) <= s->flows)
        return &s->flow[(id & 0xffff) - 1];
    x = (uint32_t)gw_mix64(p->hash ^ (uint64_t)s->perturb << 32);
    return &s->flow[(uint64_t)x * s->flows >> 32];
}

static enum gw_verdict fq_pie_refuse(struct gw_qdisc *q, struct flow *f,
                                     enum gw_drop_reason why)
{
    struct fq_pie *s = q->priv;

    s->dropped++;
    f->pie.accu_prob = 0;
    q->drop_reason = why;
    return GW_Q_DROPPED;
}

static enum gw_verdict fq_pie_enqueue(struct gw_qdisc *q, struct gw_pkt *p, uint64_t now_ps)
{
    struct fq_pie *s = q->priv;
    struct flow *f = fq_pie_flow(q, s, p);
    uint32_t size = gw_truesize(p);

    if (!s->timer.armed && q->net)
        q->host->timer_set(q->net, &s->timer, gw_pie_next_update(s->updated_ps,
                                                                 s->params.tupdate_us, now_ps));
    if (q->backlog_pkts >= s->limit) {
        s->overlimit++;
        return fq_pie_refuse(q, f, GW_DROP_QUEUE_FULL);
    }
    if (s->memory_used > (uint64_t)s->memory_limit + size)
        s->overmemory++;
    if (gw_pie_drop_early(&f->pie, &s->params, f->queue.bytes, p->len_bytes, &q->rng)) {
        if (!s->params.ecn || f->pie.prob > GW_PIE_MAX_PROB / 100 * s->ecn_prob ||
            !gw_qdisc_mark(q, p))
            return fq_pie_refuse(q, f, GW_DROP_AQM);
        s->ecn_mark++;
    }
    s->packets_in++;
    s->packets++;
    s->memory_used += size;
    gw_pktq_push(&f->queue, p);
    f->resting = false;
    if (!f->listed) {
        f->listed = true;
        f->deficit = s->quantum;
        list_add(&s->new_flows, f);
        s->new_flow_count++;
    }
    return GW_Q_QUEUED;
}

/* The flow whose turn it is; empty ones leave the round. */
static struct flow *fq_pie_turn(struct fq_pie *s)
{
    for (;;) {
        struct flow_list *l = s->new_flows.head ? &s->new_flows : &s->old_flows;
        struct flow *f = l->head;

        if (!f)
            return NULL;
        if (f->deficit <= 0) {
            f->deficit += s->quantum;
            list_add(&s->old_flows, list_take(l));
        } else if (f->queue.head) {
            return f;
        } else if (l == &s->new_flows && s->old_flows.head) {
            list_add(&s->old_flows, list_take(l));
        } else {
            list_take(l)->listed = false;
        }
    }
}

static struct gw_pkt *fq_pie_dequeue(struct gw_qdisc *q, uint64_t now_ps)
{
    struct fq_pie *s = q->priv;
    struct flow *f = fq_pie_turn(s);
    struct gw_pkt *p;

    if (!f)
        return NULL;
    p = gw_pktq_pop(&f->queue);
    f->deficit -= p->sched_bytes;
    s->packets--;
    s->memory_used -= gw_truesize(p);
    gw_pie_departed(&f->pie, &s->params, now_ps, p->stamp_ps, f->queue.bytes, p->len_bytes);
    return p;
}

static void fq_pie_throw_out(struct gw_qdisc *q, struct flow *f, enum gw_drop_reason why)
{
    struct fq_pie *s = q->priv;
    struct gw_pkt *p = gw_pktq_pop(&f->queue);

    s->packets--;
    s->memory_used -= gw_truesize(p);
    q->host->qdisc_drop(q, p, why);
}

static enum gw_status fq_pie_change(struct gw_qdisc *q, const void *conf, uint64_t given,
                                    uint64_t now_ps, struct gw_error *err)
{
    struct fq_pie *s = q->priv;

    (void)now_ps;
    if (fq_pie_set(q, conf, given, err) != GW_OK)
        return err->code;
    while (s->packets && q->backlog_pkts > s->limit)
        fq_pie_throw_out(q, fq_pie_turn(s), GW_DROP_QUEUE_FULL);
    return GW_OK;
}

static void fq_pie_reset(struct gw_qdisc *q, uint64_t now_ps)
{
    struct fq_pie *s = q->priv;

    (void)now_ps;
    for (uint32_t i = 0; i < s->flows; i++) {
        while (s->flow[i].queue.head)
            fq_pie_throw_out(q, &s->flow[i], GW_DROP_PURGED);
        gw_pie_rest(&s->flow[i].pie);
        s->flow[i].listed = false;
    }
    memset(&s->new_flows, 0, sizeof s->new_flows);
    memset(&s->old_flows, 0, sizeof s->old_flows);
}

/* The words that pie does not have. */
static enum gw_status fq_pie_word(const struct gw_tc_args *a, const char *w, const char *v,
                                  struct fq_pie_conf *c, uint64_t *given, struct gw_error *err)
{
    bool quantum = !strcmp(w, "quantum");
    uint32_t *to = quantum ? &c->quantum : &c->memory_limit;

    if (!strcmp(w, "flows"))
        return gw_pie_number(a, w, v, &c->flows, false, UINT32_MAX, FQ_PIE_FLOWS, "1024", given,
                             err);
    if (!strcmp(w, "ecn_prob"))
        return gw_pie_number(a, w, v, &c->ecn_prob, false, 99, FQ_PIE_ECN_PROB, "10", given, err);
    if (!gw_tc_size(v, to))
        return gw_tc_illegal(err, w, v, "a size such as 1514 or 32mb");
    if (*to)
        *given |= quantum ? FQ_PIE_QUANTUM : FQ_PIE_MEMORY;
    else
        gw_tc_unsent(a, w, v, quantum ? "a full frame" : "32mb");
    if (quantum && *to)
        gw_quantum_note(a, *to);
    return GW_OK;
}

static enum gw_status fq_pie_parse(const struct gw_tc_args *a, void *conf, uint64_t *given,
                                   struct gw_error *err)
{
    static const char *const own[] = { "flows", "ecn_prob", "quantum", "memory_limit" };
    struct fq_pie_conf *c = conf;

    for (uint32_t i = 0; i < a->count; i++) {
        const char *w = a->word[i];
        bool taken, mine = false;

        if (gw_pie_word(a, &i, &c->pie, given, &taken, err) != GW_OK)
            return err->code;
        for (size_t k = 0; k < GW_ARRAY_LEN(own) && !taken; k++)
            mine = mine || !strcmp(w, own[k]);
        if (!taken && !mine)
            return gw_tc_what(err, "fq_pie", w);
        if (mine && ++i == a->count)
            return gw_tc_incomplete(err, w);
        if (mine && fq_pie_word(a, w, a->word[i], c, given, err) != GW_OK)
            return err->code;
    }
    return GW_OK;
}

static void fq_pie_show_size(struct gw_tc_out *o, const char *key, const char *fmt, uint32_t v)
{
    char buf[64];

    o->u64(o, key, NULL, v);
    o->str(o, NULL, fmt, o->size(o, v, buf));
}

static void fq_pie_show(const struct gw_qdisc *q, struct gw_tc_out *o)
{
    const struct fq_pie *s = q->priv;

    o->u64(o, "limit", "limit %llup ", s->limit);
    o->u64(o, "flows", "flows %llu ", s->flows);
    gw_pie_show_time(o, "target", "target %s ", gw_pie_target_us(&s->params));
    gw_pie_show_time(o, "tupdate", "tupdate %s ", s->params.tupdate_us);
    o->u64(o, "alpha", "alpha %llu ", s->params.alpha);
    o->u64(o, "beta", "beta %llu ", s->params.beta);
    fq_pie_show_size(o, "quantum", "quantum %s ", s->quantum);
    fq_pie_show_size(o, "memory_limit", "memory_limit %s ", s->memory_limit);
    o->u64(o, "ecn_prob", "ecn_prob %llu ", s->ecn_prob);
    gw_pie_show_flags(&s->params, o);
}

static void fq_pie_show_stats(const struct gw_qdisc *q, struct gw_tc_out *o)
{
    const struct fq_pie *s = q->priv;

    o->u64(o, "pkts_in", "  pkts_in %llu", s->packets_in);
    o->u64(o, "overlimit", " overlimit %llu", s->overlimit);
    o->u64(o, "overmemory", " overmemory %llu", s->overmemory);
    o->u64(o, "dropped", " dropped %llu", s->dropped);
    o->u64(o, "ecn_mark", " ecn_mark %llu", s->ecn_mark);
    o->newline(o);
    o->u64(o, "new_flow_count", "new_flow_count %llu", s->new_flow_count);
    o->u64(o, "new_flows_len", " new_flows_len %llu", s->new_flows.count);
    o->u64(o, "old_flows_len", " old_flows_len %llu", s->old_flows.count);
    o->u64(o, "memory_used", " memory_used %llu", s->memory_used);
}

static const struct gw_stat fq_pie_stats[] = {
    { "pkts_in", offsetof(struct fq_pie, packets_in), "Packets taken." },
    { "overlimit", offsetof(struct fq_pie, overlimit), "Dropped because `limit` packets waited." },
    { "overmemory", offsetof(struct fq_pie, overmemory), "Met more memory than memory_limit." },
    { "dropped", offsetof(struct fq_pie, dropped), "Dropped in all." },
    { "ecn_mark", offsetof(struct fq_pie, ecn_mark), "Marked instead of dropped." },
    { "new_flow_count", offsetof(struct fq_pie, new_flow_count), "Queues that became busy." },
};

static const struct gw_qdisc_ops fq_pie_ops = {
    .priv_bytes    = sizeof(struct fq_pie),
    .conf_bytes    = sizeof(struct fq_pie_conf),
    .init          = fq_pie_init,
    .fini          = fq_pie_fini,
    .enqueue       = fq_pie_enqueue,
    .dequeue       = fq_pie_dequeue,
    .change        = fq_pie_change,
    .reset         = fq_pie_reset,
    .stats         = fq_pie_stats,
    .stat_count    = GW_ARRAY_LEN(fq_pie_stats),
    .tc_parse      = fq_pie_parse,
    .tc_show       = fq_pie_show,
    .tc_show_stats = fq_pie_show_stats,
};

static const struct gw_param fq_pie_params[] = {
    { "limit", GW_P_WORDS, 0, "10240", NULL, NULL, "Packets that may wait in all." },
    { "flows", GW_P_WORDS, 0, "1024", NULL, NULL,
      "Queues; 1 to 65536, cannot be changed later." },
    { "target", GW_P_WORDS, 0, "15ms", NULL, NULL, "Delay that each queue aims at." },
    { "tupdate", GW_P_WORDS, 0, "15ms", NULL, NULL,
      "Time between updates; rounded up to ticks of 10 ms (HZ=100), so the default is 20ms and "
      "is shown so." },
    { "alpha", GW_P_WORDS, 0, "2", NULL, NULL,
      "Weight of the distance from the target, in sixteenths a second; 0 to 32, 0 keeps." },
    { "beta", GW_P_WORDS, 0, "20", NULL, NULL,
      "Weight of the delay's trend, in sixteenths a second; 0 to 32, 0 keeps." },
    { "quantum", GW_P_WORDS, 0, "1514b", NULL, NULL,
      "Bytes that a queue may send in a round; without the word, a full frame." },
    { "memory_limit", GW_P_WORDS, 0, "32Mb", NULL, NULL,
      "Memory of all packets; over it packets are counted as overmemory, but taken." },
    { "ecn_prob", GW_P_WORDS, 0, "10", NULL, NULL,
      "Probability in % up to which packets are marked instead of dropped." },
    { "ecn", GW_P_WORDS, 0, "noecn", NULL, NULL,
      "Marks packets that can be marked; noecn: drops." },
    { "bytemode", GW_P_WORDS, 0, "nobytemode", NULL, NULL,
      "Small packets are dropped less, in proportion to length / MTU; nobytemode: all alike." },
    { "dq_rate_estimator", GW_P_WORDS, 0, "no_dq_rate_estimator", NULL, NULL,
      "Delay from backlog and measured rate; no_dq_rate_estimator: from time stamps." },
};

GW_PLUGIN(gw_qdisc_fq_pie) = {
    GW_PLUGIN_HEAD(GW_KIND_QDISC, fq_pie_ops),
    .name    = "fq_pie",
    .summary = "PIE in each of many flow queues. By the manual page and the RFCs; not in Debian's "
               "user-mode kernel.",
    .params  = fq_pie_params, .param_count = GW_ARRAY_LEN(fq_pie_params),
    .source  = "tc-fq_pie(8) of iproute2 6.1; Linux 6.1 net/sched/sch_fq_pie.c; RFC 8033; RFC 8290",
};
