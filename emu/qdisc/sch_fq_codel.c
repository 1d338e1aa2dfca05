/*
 * sch_fq_codel - flow queues by hash, served in turn, each under CoDel
 *
 * What Linux's fq_codel does: a packet goes to one of `flows` queues by a hash of its flow (mixed
 * with a number from the discipline's own random stream), or by a filter or a priority that names a
 * queue. New flows are served before old ones; each has a deficit of `quantum` bytes a turn; a new
 * flow that runs empty passes once through the old list. CoDel judges each flow's wait, but asks
 * whether the *whole* discipline holds more than one MTU. Over `limit` packets or `memory_limit`
 * bytes, the flow with most bytes loses up to half of its backlog, at most `drop_batch` packets,
 * from its head. ecn is on unless noecn is said. `flows` can't be changed, as in the kernel.
 * Follows net/sched/sch_fq_codel.c of Linux 6.1; RFC 8290. Approximated: memory counts what the
 * kernel would have allocated for a packet, see alg/truesize.h. Left out: showing the flows as
 * classes.
 */
#include <gradwire/alg/codel.h>
#include <gradwire/alg/quantum.h>
#include <gradwire/alg/tcwords.h>
#include <gradwire/alg/truesize.h>

enum { GIVEN_CE = 1, GIVEN_ECN = 2, GIVEN_MEMORY = 4, GIVEN_SELECTOR = 8 };
enum { FLOWS_MAX = 65536 };

struct fq_codel_conf {
    uint32_t limit, flows, quantum, drop_batch;  /* 0: not given                               */
    uint32_t target, interval;                   /* us; 0: not given                           */
    uint32_t ce_threshold;                       /* us                                         */
    uint32_t memory_limit;                       /* bytes                                      */
    uint32_t ecn;
    uint8_t  ce_selector, ce_mask;
};

struct fq_codel_flow {
    struct gw_pkt *head, *tail;
    uint32_t next;               /* on a list of flows, GW_NONE: last                          */
    int32_t  deficit;
    struct gw_codel vars;
    bool     listed;
};
_Static_assert(sizeof(struct fq_codel_flow) <= 64, "one cache line per flow");

struct flow_list {
    uint32_t first, last;        /* GW_NONE: empty                                             */
    uint32_t count;
};

struct fq_codel {
    struct fq_codel_flow *flow;
    uint64_t *backlog;           /* bytes of each flow                                         */
    uint32_t  flows, quantum, drop_batch, limit;
    uint64_t  memory_limit, memory;
    uint64_t  bytes;             /* held, without a packet popped                              */
    uint64_t  perturbation;
    struct flow_list new_flows, old_flows;
    struct gw_codel_parms parms;
    struct gw_codel_stats stats;
    uint64_t drop_overlimit, drop_overmemory, new_flow_count;
    uint32_t current;            /* flow that CoDel looks at                                   */
};

/* ---- flows -------------------------------------------------------------------------------- */

static void list_push(struct fq_codel *s, struct flow_list *l, uint32_t f)
{
    s->flow[f].next = GW_NONE;
    if (l->count++)
        s->flow[l->last].next = f;
    else
        l->first = f;
    l->last = f;
}

static void list_pop(struct fq_codel *s, struct flow_list *l)
{
    l->first = s->flow[l->first].next;
    l->count--;
}

/* The flow of @p; GW_NONE: a filter sends it nowhere. */
static uint32_t fq_codel_classify(struct gw_qdisc *q, const struct fq_codel *s,
                                  const struct gw_pkt *p)
{
    uint32_t minor = p->priority & 0xffff, class;

    if (q->handle && (p->priority & 0xffff0000) == q->handle && minor && minor <= s->flows)
        return minor - 1;
    class = q->host->classify ? q->host->classify(q, p) : 0;
    if (class) {
        minor = class & 0xffff;
        return minor && minor <= s->flows ? minor - 1 : GW_NONE;
    }
    return (uint32_t)(((gw_mix64(p->hash ^ s->perturbation) >> 32) * s->flows) >> 32);
}

static struct gw_pkt *flow_pop(struct fq_codel *s, uint32_t i)
{
    struct fq_codel_flow *f = &s->flow[i];
    struct gw_pkt *p = f->head;

    if (!p)
        return NULL;
    f->head = p->next;
    p->next = NULL;
    s->backlog[i] -= p->sched_bytes;
    s->bytes -= p->sched_bytes;
    s->memory -= gw_truesize(p);
    return p;
}

static void flow_push(struct fq_codel *s, uint32_t i, struct gw_pkt *p)
{
    struct fq_codel_flow *f = &s->flow[i];

    p->next = NULL;
    if (f->head)
        f->tail->next = p;
    else
        f->head = p;
    f->tail = p;
    s->backlog[i] += p->sched_bytes;
    s->bytes += p->sched_bytes;
    s->memory += gw_truesize(p);
}

static struct gw_pkt *fq_codel_pop(void *ctx)
{
    struct fq_codel *s = ctx;

    return flow_pop(s, s->current);
}

/* Throws out up to half of the fattest flow, from its head; returns the count. */
static uint32_t fq_codel_thin(struct gw_qdisc *q, struct fq_codel *s)
{
    uint64_t most = 0, len = 0;
    uint32_t fat = 0, n = 0;

    for (uint32_t i = 0; i < s->flows; i++)
        if (s->backlog[i] > most) {
            most = s->backlog[i];
            fat = i;
        }
    do {
        struct gw_pkt *p = flow_pop(s, fat);

        if (!p)
            break;
        len += p->sched_bytes;
        n++;
        q->host->qdisc_drop(q, p, GW_DROP_QUEUE_FULL);
    } while (n < s->drop_batch && len < most / 2);
    s->flow[fat].vars.count += n;
    return n;
}

/* ---- callbacks ---------------------------------------------------------------------------- */

static enum gw_status fq_codel_check(const struct fq_codel_conf *c, struct gw_error *err)
{
    if (c->flows > FLOWS_MAX)
        return gw_fail(err, GW_PARAM, "fq_codel: flows is %u; 1 to %d is right", c->flows,
                       FLOWS_MAX);
    if (c->quantum > GW_QUANTUM_MAX)
        return gw_fail(err, GW_PARAM, "fq_codel: quantum is %u; %u to %u bytes are right",
                       c->quantum, GW_QUANTUM_MIN, GW_QUANTUM_MAX);
    return GW_OK;
}

static void fq_codel_apply(struct fq_codel *s, const struct fq_codel_conf *c, uint64_t given)
{
    if (c->target)
        s->parms.target = gw_codel_from_us(c->target);
    if (c->interval)
        s->parms.interval = gw_codel_from_us(c->interval);
    if ((given & GIVEN_CE) && c->ce_threshold != UINT32_MAX)
        s->parms.ce_threshold = gw_codel_from_us(c->ce_threshold);
    if (given & GIVEN_SELECTOR) {
        s->parms.ce_selector = c->ce_selector;
        s->parms.ce_mask = c->ce_mask;
    }
    if (given & GIVEN_ECN)
        s->parms.ecn = c->ecn;
    if (c->limit)
        s->limit = c->limit;
    if (c->quantum)
        s->quantum = gw_quantum_within(c->quantum);
    if (c->drop_batch)
        s->drop_batch = c->drop_batch;
    if ((given & GIVEN_MEMORY) && c->memory_limit != UINT32_MAX)
        s->memory_limit = c->memory_limit < UINT32_C(1) << 31 ? c->memory_limit :
                                                                 UINT32_C(1) << 31;
}

static void fq_codel_fini(struct gw_qdisc *q)
{
    struct fq_codel *s = q->priv;

    q->host->release(s->flow);
    q->host->release(s->backlog);
}

static enum gw_status fq_codel_init(struct gw_qdisc *q, struct gw_error *err)
{
    const struct fq_codel_conf *c = q->conf;
    struct fq_codel *s = q->priv;

    if (fq_codel_check(c, err) != GW_OK)
        return err->code;
    s->limit = 10240;
    s->flows = c->flows ? c->flows : 1024;
    s->quantum = q->mtu_bytes;
    s->drop_batch = 64;
    s->memory_limit = 32 << 20;
    gw_codel_defaults(&s->parms, q->mtu_bytes);
    s->parms.ecn = true;
    fq_codel_apply(s, c, q->given);
    s->flow = q->host->alloc(s->flows * sizeof *s->flow);
    s->backlog = q->host->alloc(s->flows * sizeof *s->backlog);
    if (!s->flow || !s->backlog) {
        fq_codel_fini(q);
        return gw_fail(err, GW_NOMEM, "out of memory for %u flows of fq_codel", s->flows);
    }
    if (q->rng.refill)
        s->perturbation = gw_rng_u64(&q->rng);
    return GW_OK;
}

static enum gw_verdict fq_codel_enqueue(struct gw_qdisc *q, struct gw_pkt *p, uint64_t now_ps)
{
    struct fq_codel *s = q->priv;
    uint32_t i = fq_codel_classify(q, s, p), dropped;
    bool over_memory;

    if (i == GW_NONE) {
        q->drop_reason = GW_DROP_UNCLASSIFIED;
        return GW_Q_DROPPED;
    }
    p->stamp_ps = now_ps;
    flow_push(s, i, p);
    if (!s->flow[i].listed) {
        s->flow[i].listed = true;
        list_push(s, &s->new_flows, i);
        s->new_flow_count++;
        s->flow[i].deficit = (int32_t)s->quantum;
    }
    over_memory = s->memory > s->memory_limit;
    if (q->backlog_pkts + 1 <= s->limit && !over_memory)
        return GW_Q_QUEUED;
    dropped = fq_codel_thin(q, s);
    s->drop_overlimit += dropped;
    if (over_memory)
        s->drop_overmemory += dropped;
    return GW_Q_QUEUED;
}

static struct gw_pkt *fq_codel_dequeue(struct gw_qdisc *q, uint64_t now_ps)
{
    struct fq_codel *s = q->priv;
    struct gw_codel_queue cq = { q, s, &s->bytes, fq_codel_pop };

    for (;;) {
        struct flow_list *l = s->new_flows.count ? &s->new_flows : &s->old_flows;
        struct fq_codel_flow *f;
        struct gw_pkt *p;

        if (!l->count)
            return NULL;
        s->current = l->first;
        f = &s->flow[s->current];
        if (f->deficit <= 0) {
            f->deficit += (int32_t)s->quantum;
            list_pop(s, l);
            list_push(s, &s->old_flows, s->current);
            continue;
        }
        p = gw_codel_dequeue(&cq, &s->parms, &f->vars, &s->stats, now_ps);
        if (p) {
            f->deficit -= (int32_t)p->sched_bytes;
            return p;
        }
        list_pop(s, l);
        if (l == &s->new_flows && s->old_flows.count)
            list_push(s, &s->old_flows, s->current);
        else
            f->listed = false;
    }
}

static enum gw_status fq_codel_change(struct gw_qdisc *q, const void *conf, uint64_t given,
                                      uint64_t now_ps, struct gw_error *err)
{
    const struct fq_codel_conf *c = conf;
    struct fq_codel *s = q->priv;

    if (c->flows)
        return gw_fail(err, GW_PARAM, "fq_codel: flows can't be changed while it runs; delete the "
                       "discipline and add it anew");
    if (fq_codel_check(c, err) != GW_OK)
        return err->code;
    fq_codel_apply(s, c, given);
    while (s->bytes && (q->backlog_pkts > s->limit || s->memory > s->memory_limit)) {
        struct gw_pkt *p = fq_codel_dequeue(q, now_ps);

        if (p)
            q->host->qdisc_drop(q, p, GW_DROP_QUEUE_FULL);
    }
    return GW_OK;
}

static void fq_codel_reset(struct gw_qdisc *q, uint64_t now_ps)
{
    struct fq_codel *s = q->priv;
    struct gw_pkt *p;

    (void)now_ps;
    for (uint32_t i = 0; i < s->flows; i++) {
        while ((p = flow_pop(s, i)))
            q->host->qdisc_drop(q, p, GW_DROP_PURGED);
        memset(&s->flow[i], 0, sizeof s->flow[i]);
    }
    memset(&s->new_flows, 0, sizeof s->new_flows);
    memset(&s->old_flows, 0, sizeof s->old_flows);
}

/* ---- tc's words --------------------------------------------------------------------------- */

/* "0x1/0x3": value and mask of the TOS byte. */
static enum gw_status read_selector(const char *word, struct fq_codel_conf *c,
                                    struct gw_error *err)
{
    const char *slash = strchr(word, '/');
    char value[16];
    uint32_t v, m;

    if (!slash)
        return gw_fail(err, GW_SYNTAX, "Missing mask for \"ce_threshold_selector\": \"%s\"; "
                       "VALUE/MASK is right", word);
    snprintf(value, sizeof value, "%.*s", (int)(slash - word), word);
    if (!gw_tc_u32(value, &v) || v > 255 || !gw_tc_u32(slash + 1, &m) || m > 255)
        return gw_tc_illegal(err, "ce_threshold_selector", word, "VALUE/MASK, both 0 to 255");
    c->ce_selector = (uint8_t)v;
    c->ce_mask = (uint8_t)m;
    return GW_OK;
}

static enum gw_status read_plain(const struct gw_tc_args *a, uint32_t from, uint32_t to,
                                 struct fq_codel_conf *c, uint64_t *given, struct gw_error *err)
{
    static const struct gw_tcword words[] = {
        { "limit", GW_TCW_U32, offsetof(struct fq_codel_conf, limit), 0, 0, "a count of packets" },
        { "flows", GW_TCW_U32, offsetof(struct fq_codel_conf, flows), 0, 0, "a count of flows" },
        { "quantum", GW_TCW_U32, offsetof(struct fq_codel_conf, quantum), 0, 0,
          "a count of bytes" },
        { "target", GW_TCW_TIME, offsetof(struct fq_codel_conf, target), 0, 0, "a time like 5ms" },
        { "ce_threshold", GW_TCW_TIME, offsetof(struct fq_codel_conf, ce_threshold), 0, GIVEN_CE,
          "a time like 1ms" },
        { "memory_limit", GW_TCW_SIZE, offsetof(struct fq_codel_conf, memory_limit), 0,
          GIVEN_MEMORY, "a size like 32mb" },
        { "interval", GW_TCW_TIME, offsetof(struct fq_codel_conf, interval), 0, 0,
          "a time like 100ms" },
        { "drop_batch", GW_TCW_U32, offsetof(struct fq_codel_conf, drop_batch), 0, 0,
          "a count of packets" },
        { "ecn", GW_TCW_SET, offsetof(struct fq_codel_conf, ecn), 1, GIVEN_ECN, NULL },
        { "noecn", GW_TCW_SET, offsetof(struct fq_codel_conf, ecn), 0, GIVEN_ECN, NULL },
    };
    struct gw_tc_args part = *a;

    part.count = to;
    return gw_tcwords_read("fq_codel", words, GW_ARRAY_LEN(words), &part, from, c, given, err);
}

static enum gw_status fq_codel_tc_parse(const struct gw_tc_args *a, void *conf, uint64_t *given,
                                        struct gw_error *err)
{
    static const struct gw_tcword_unsent unsent[] = {
        { "limit", offsetof(struct fq_codel_conf, limit), "10240" },
        { "flows", offsetof(struct fq_codel_conf, flows), "1024" },
        { "quantum", offsetof(struct fq_codel_conf, quantum), "a full frame" },
        { "target", offsetof(struct fq_codel_conf, target), "5ms" },
        { "interval", offsetof(struct fq_codel_conf, interval), "100ms" },
        { "drop_batch", offsetof(struct fq_codel_conf, drop_batch), "64" },
    };
    struct fq_codel_conf *c = conf;
    uint32_t from = 0;

    for (uint32_t i = 0; i < a->count; i++) {
        if (strcmp(a->word[i], "ce_threshold_selector"))
            continue;
        if (read_plain(a, from, i, c, given, err) != GW_OK)
            return err->code;
        if (i + 1 == a->count)
            return gw_tc_incomplete(err, "ce_threshold_selector");
        if (read_selector(a->word[++i], c, err) != GW_OK)
            return err->code;
        *given |= GIVEN_SELECTOR;
        from = i + 1;
    }
    if (read_plain(a, from, a->count, c, given, err) != GW_OK)
        return err->code;
    gw_tcwords_unsent(unsent, GW_ARRAY_LEN(unsent), a, conf);
    if (c->quantum)
        gw_quantum_note(a, c->quantum);
    return GW_OK;
}

static void fq_codel_show_ce(const struct gw_codel_parms *c, struct gw_tc_out *o)
{
    char text[40];

    if (c->ce_threshold == GW_CODEL_NEVER)
        return;
    gw_codel_show_time(o, "ce_threshold", "ce_threshold %s ", c->ce_threshold);
    if (!c->ce_mask)
        return;
    o->u64(o, "ce_threshold_selector", NULL, c->ce_selector);
    o->u64(o, "ce_threshold_mask", NULL, c->ce_mask);
    snprintf(text, sizeof text, "%#x/%#x", c->ce_selector, c->ce_mask);
    o->str(o, NULL, "ce_threshold_selector %s ", text);
}

static void fq_codel_tc_show(const struct gw_qdisc *q, struct gw_tc_out *o)
{
    const struct fq_codel *s = q->priv;
    char buf[64];

    o->u64(o, "limit", "limit %llup ", s->limit);
    o->u64(o, "flows", "flows %llu ", s->flows);
    o->u64(o, "quantum", "quantum %llu ", s->quantum);
    gw_codel_show_time(o, "target", "target %s ", s->parms.target);
    fq_codel_show_ce(&s->parms, o);
    gw_codel_show_time(o, "interval", "interval %s ", s->parms.interval);
    o->u64(o, "memory_limit", NULL, s->memory_limit);
    o->str(o, NULL, "memory_limit %s ", o->size(o, s->memory_limit, buf));
    if (s->parms.ecn)
        o->flag(o, "ecn", "ecn ", true);
    o->u64(o, "drop_batch", "drop_batch %llu ", s->drop_batch);
}

static void fq_codel_tc_show_stats(const struct gw_qdisc *q, struct gw_tc_out *o)
{
    const struct fq_codel *s = q->priv;

    o->u64(o, "maxpacket", "  maxpacket %llu", s->stats.maxpacket);
    o->u64(o, "drop_overlimit", " drop_overlimit %llu", s->drop_overlimit);
    o->u64(o, "new_flow_count", " new_flow_count %llu", s->new_flow_count);
    o->u64(o, "ecn_mark", " ecn_mark %llu", s->stats.ecn_mark);
    if (s->stats.ce_mark)
        o->u64(o, "ce_mark", " ce_mark %llu", s->stats.ce_mark);
    if (s->memory)
        o->u64(o, "memory_used", " memory_used %llu", s->memory);
    if (s->drop_overmemory)
        o->u64(o, "drop_overmemory", " drop_overmemory %llu", s->drop_overmemory);
    o->newline(o);
    o->u64(o, "new_flows_len", "new_flows_len %llu", s->new_flows.count);
    o->u64(o, "old_flows_len", " old_flows_len %llu", s->old_flows.count);
}

static const struct gw_stat fq_codel_stats[] = {
    { "ecn_mark", offsetof(struct fq_codel, stats.ecn_mark), "packets marked, not dropped" },
    { "ce_mark", offsetof(struct fq_codel, stats.ce_mark), "packets marked above ce_threshold" },
    { "drop_overlimit", offsetof(struct fq_codel, drop_overlimit), "packets dropped when full" },
    { "drop_overmemory", offsetof(struct fq_codel, drop_overmemory), "of these by memory_limit" },
    { "new_flow_count", offsetof(struct fq_codel, new_flow_count), "times a flow became new" },
};

static const struct gw_qdisc_ops fq_codel_ops = {
    .priv_bytes    = sizeof(struct fq_codel),
    .conf_bytes    = sizeof(struct fq_codel_conf),
    .init          = fq_codel_init,
    .fini          = fq_codel_fini,
    .enqueue       = fq_codel_enqueue,
    .dequeue       = fq_codel_dequeue,
    .change        = fq_codel_change,
    .reset         = fq_codel_reset,
    .tc_parse      = fq_codel_tc_parse,
    .tc_show       = fq_codel_tc_show,
    .tc_show_stats = fq_codel_tc_show_stats,
    .stats         = fq_codel_stats, .stat_count = GW_ARRAY_LEN(fq_codel_stats),
};

static const struct gw_param fq_codel_params[] = {
    { "limit", GW_P_WORDS, 0, "10240", NULL, NULL, "Packets that may wait in all flows." },
    { "flows", GW_P_WORDS, 0, "1024", NULL, NULL, "Queues that flows are hashed to, up to 65536." },
    { "quantum", GW_P_WORDS, 0, "1514", NULL, NULL, "Bytes a flow may send in a turn." },
    { "target", GW_P_WORDS, 0, "5ms", NULL, NULL, "Wait that is still good." },
    { "interval", GW_P_WORDS, 0, "100ms", NULL, NULL,
      "How long the wait may exceed target before the first drop." },
    { "memory_limit", GW_P_WORDS, 0, "32mb", NULL, NULL,
      "Memory that a kernel would use for the packets." },
    { "ecn", GW_P_WORDS, 0, "yes", NULL, NULL, "Marks ECT packets instead of dropping; noecn." },
    { "ce_threshold", GW_P_WORDS, 0, "", NULL, NULL, "Marks every ECT packet that waited longer." },
    { "ce_threshold_selector", GW_P_WORDS, 0, "", NULL, NULL,
      "VALUE/MASK of the TOS byte that ce_threshold looks at." },
    { "drop_batch", GW_P_WORDS, 0, "64", NULL, NULL, "Packets dropped at once when it is full." },
};

GW_PLUGIN(gw_qdisc_fq_codel) = {
    GW_PLUGIN_HEAD(GW_KIND_QDISC, fq_codel_ops),
    .name    = "fq_codel",
    .summary = "Fair queues by flow hash, each under CoDel.",
    .params  = fq_codel_params, .param_count = GW_ARRAY_LEN(fq_codel_params),
    .source  = "Linux 6.1 net/sched/sch_fq_codel.c; RFC 8290",
};
