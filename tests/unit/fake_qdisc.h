/*
 * fake_qdisc.h - a discipline alone: a host that keeps its books, timers, and frames to send
 *
 * The device has no rate unless `rate_bps` is set: then a packet is asked for when the one before
 * has been sent. With `tb_rate` it stands below a token bucket, as below one class of htb: a packet
 * may leave while the tokens are not below 0. Frames are numbered; `fate` says when each left
 * (GW_NEVER: lost) and whether it was marked. Time runs through fake_run() and stops when nothing is
 * left to do. Children (pfifo, bfifo) are made as in a tree.
 */
#ifndef GW_TESTS_FAKE_QDISC_H
#define GW_TESTS_FAKE_QDISC_H

#include "tests/unit/suite.h"

#include <gradwire/gradwire.h>

#include <stdlib.h>

enum { FAKE_TIMERS = 8, FAKE_WORDS = 64 };

/* -g flow:size:interval:start:count[:ecn[:prio[:burst[:dscp]]]] */
struct fake_gen {
    uint32_t flow, size, ecn, priority, burst, dscp, src, dst;
    uint64_t interval_ns, start_ns, count;
};

struct fake_fate {
    uint64_t sent_ps, left_ps;       /* left_ps GW_NEVER: dropped or still inside              */
    uint32_t gen, seq;
    bool     ce, dropped;
};

struct fake {
    struct gw_host  host;
    struct gw_qdisc q;
    const struct gw_qdisc_ops *ops;
    uint64_t conf[160];
    struct gw_timer *timer[FAKE_TIMERS];
    uint32_t timers;
    uint64_t now_ps, rate_bps, free_ps, wake_ps;
    struct fake_fate *fate;
    struct gw_pkt *pkt;
    uint64_t frames, dropped, left, order_errors;
    uint32_t classid;                /* what classify answers                                  */
    struct gw_error err;
    uint64_t tb_rate, tb_at_ns;      /* bytes/s; when the tokens were counted                  */
    int64_t  tb_depth_ns, tb_tokens_ns;
};

extern const struct gw_plugin gw_qdisc_pfifo, gw_qdisc_bfifo;

static inline struct fake *fake_of(struct gw_qdisc *q)
{
    return q->tree;
}

static inline void *fake_alloc(size_t n)
{
    return calloc(1, n);
}

static inline void fake_timer_set(void *net, struct gw_timer *t, uint64_t at_ps)
{
    struct fake *f = net;

    t->due_ps = at_ps;
    if (t->armed)
        return;
    t->armed = true;
    CU_ASSERT_FATAL(f->timers < FAKE_TIMERS);
    f->timer[f->timers++] = t;
}

static inline void fake_timer_stop(void *net, struct gw_timer *t)
{
    struct fake *f = net;

    t->armed = false;
    for (uint32_t i = 0; i < f->timers; i++)
        if (f->timer[i] == t)
            f->timer[i--] = f->timer[--f->timers];
}

static inline void fake_lost(struct fake *f, struct gw_pkt *p)
{
    struct fake_fate *x = &f->fate[p->tp[0]];

    CU_ASSERT(!x->dropped && x->left_ps == GW_NEVER);
    x->dropped = true;
    f->dropped++;
}

static inline void fake_drop(struct gw_qdisc *q, struct gw_pkt *p, enum gw_drop_reason why)
{
    q->dropped_bytes += p->sched_bytes;
    q->drops[why]++;
    for (struct gw_qdisc *u = q; u; u = u->up) {
        u->backlog_bytes -= p->sched_bytes;
        u->backlog_pkts--;
        u->dropped_pkts++;
    }
    fake_lost(fake_of(q), p);
}

static inline enum gw_verdict fake_child_enqueue(struct gw_qdisc *c, struct gw_pkt *p,
                                                 uint64_t now_ps)
{
    uint32_t len = p->sched_bytes;

    c->drop_reason = GW_DROP_QUEUE_FULL;
    if (c->ops->enqueue(c, p, now_ps) == GW_Q_DROPPED) {
        c->dropped_pkts++;
        c->dropped_bytes += len;
        c->drops[c->drop_reason]++;
        c->up->drop_reason = c->drop_reason;
        return GW_Q_DROPPED;
    }
    c->backlog_bytes += len;
    c->backlog_pkts++;
    return GW_Q_QUEUED;
}

static inline struct gw_pkt *fake_child_dequeue(struct gw_qdisc *c, uint64_t now_ps)
{
    struct gw_pkt *p = c->ops->dequeue(c, now_ps);

    if (p) {
        c->backlog_bytes -= p->sched_bytes;
        c->backlog_pkts--;
        c->sent_pkts++;
        c->sent_bytes += p->sched_bytes;
    }
    return p;
}

static inline void fake_child_free(struct gw_qdisc *c)
{
    if (!c)
        return;
    if (c->ops->fini)
        c->ops->fini(c);
    free(c->priv);
    free(c->conf);
    free(c);
}

static inline struct gw_qdisc *fake_child_new(struct gw_qdisc *up, const char *kind,
                                              uint32_t classid, struct gw_error *err)
{
    const struct gw_plugin *p = strcmp(kind, "bfifo") ? &gw_qdisc_pfifo : &gw_qdisc_bfifo;
    const struct gw_qdisc_ops *ops = p->ops;
    struct gw_qdisc *c = calloc(1, sizeof *c);

    CU_ASSERT_FATAL(c != NULL);
    *c = *up;
    c->ops = ops;
    c->kind = p->name;
    c->rows = p->params;
    c->row_count = p->param_count;
    c->up = up;
    c->parent = classid;
    c->given = c->handle = 0;
    c->hidden = true;
    c->backlog_bytes = c->backlog_pkts = c->sent_bytes = c->sent_pkts = 0;
    c->priv = calloc(1, ops->priv_bytes);
    c->conf = calloc(1, ops->conf_bytes);
    CU_ASSERT_FATAL(c->priv && c->conf && ops->init(c, err) == GW_OK);
    return c;
}

static inline uint32_t fake_classify(struct gw_qdisc *q, const struct gw_pkt *p)
{
    (void)p;
    return fake_of(q)->classid;
}

/* Splits @words at blanks and makes the discipline; its rows are used if it has no tc_parse. */
static inline enum gw_status fake_parse(struct fake *f, const char *words, uint64_t *given,
                                        void *conf)
{
    char text[1024], *word[FAKE_WORDS + 1], *save = NULL;
    struct gw_tc_args a = { .word = word, .host = &f->host, .data_dir = NULL };

    f->err = (struct gw_error){ GW_OK, "" };
    snprintf(text, sizeof text, "%s", words);
    for (char *w = strtok_r(text, " ", &save); w && a.count < FAKE_WORDS;
         w = strtok_r(NULL, " ", &save))
        word[a.count++] = w;
    word[a.count] = NULL;
    return f->ops->tc_parse(&a, conf, given, &f->err);
}

static inline enum gw_status fake_start(struct fake *f, const struct gw_plugin *p,
                                        const char *words, uint64_t seed)
{
    memset(f, 0, sizeof *f);
    f->ops = p->ops;
    f->host = (struct gw_host){ .host_bytes = sizeof f->host, .alloc = fake_alloc,
        .release = free, .qdisc_drop = fake_drop, .timer_set = fake_timer_set,
        .timer_stop = fake_timer_stop, .classify = fake_classify,
        .qdisc_enqueue = fake_child_enqueue, .qdisc_dequeue = fake_child_dequeue,
        .qdisc_new = fake_child_new, .qdisc_free = fake_child_free };
    CU_ASSERT_FATAL(f->ops->conf_bytes <= sizeof f->conf);
    f->wake_ps = GW_NEVER;
    f->q = (struct gw_qdisc){ .ops = f->ops, .host = &f->host, .kind = p->name, .net = f,
        .tree = f, .conf = f->conf, .rows = p->params, .row_count = p->param_count,
        .handle = 0x10000, .parent = GW_TC_ROOT, .txqueuelen = 1000, .mtu_bytes = 1514,
        .priv = calloc(1, f->ops->priv_bytes) };
    CU_ASSERT_FATAL(f->q.priv != NULL);
    gw_rng_open(&f->q.rng, seed, "link/v:a/qdisc");
    if (fake_parse(f, words, &f->q.given, f->conf) != GW_OK)
        return f->err.code;
    return f->ops->init(&f->q, &f->err);
}

static inline enum gw_status fake_change(struct fake *f, const char *words)
{
    uint64_t conf[GW_ARRAY_LEN(f->conf)] = { 0 }, given = 0;

    if (fake_parse(f, words, &given, conf) != GW_OK)
        return f->err.code;
    return f->ops->change(&f->q, conf, given, f->now_ps, &f->err);
}

static inline void fake_end(struct fake *f)
{
    if (f->ops && f->ops->fini && f->err.code == GW_OK)
        f->ops->fini(&f->q);
    free(f->q.priv);
    free(f->fate);
    free(f->pkt);
    memset(f, 0, sizeof *f);
}

static inline void fake_frames(struct fake *f, uint64_t n)
{
    free(f->fate);
    free(f->pkt);
    f->fate = calloc(n, sizeof *f->fate);
    f->pkt = calloc(n, sizeof *f->pkt);
    CU_ASSERT_FATAL(f->fate && f->pkt);
    f->frames = n;
}

/* A token bucket of @burst_bytes in front, full. */
static inline void fake_bucket(struct fake *f, uint64_t bytes_per_s, uint64_t burst_bytes)
{
    f->tb_rate = bytes_per_s;
    f->tb_depth_ns = f->tb_tokens_ns = (int64_t)(burst_bytes * 1000000000u / bytes_per_s);
}

static inline int64_t fake_tokens(const struct fake *f)
{
    int64_t t = f->tb_tokens_ns + (int64_t)(f->now_ps / 1000 - f->tb_at_ns);

    return t < f->tb_depth_ns ? t : f->tb_depth_ns;
}

static inline void fake_pay(struct fake *f, uint64_t bytes)
{
    f->tb_tokens_ns = fake_tokens(f) - (int64_t)(bytes * 1000000000u / f->tb_rate);
    f->tb_at_ns = f->now_ps / 1000;
    if (f->tb_tokens_ns < 0)
        f->free_ps = (f->tb_at_ns + (uint64_t)-f->tb_tokens_ns) * 1000;
}

static inline void fake_drain(struct fake *f)
{
    struct gw_pkt *p;

    f->wake_ps = GW_NEVER;
    while (f->free_ps <= f->now_ps && (!f->tb_rate || f->q.backlog_pkts) &&
           (p = f->ops->dequeue(&f->q, f->now_ps))) {
        struct fake_fate *x = &f->fate[p->tp[0]];

        CU_ASSERT(x->left_ps == GW_NEVER && !x->dropped);
        x->left_ps = f->now_ps;
        x->ce = p->ecn == GW_ECN_CE;
        f->left++;
        f->q.backlog_bytes -= p->sched_bytes;
        f->q.backlog_pkts--;
        f->q.sent_pkts++;
        f->q.sent_bytes += p->sched_bytes;
        if (f->rate_bps)
            f->free_ps = f->now_ps + gw_mul_div(p->len_bytes * 8ull, GW_PS_PER_S, f->rate_bps);
        if (f->tb_rate)
            fake_pay(f, p->sched_bytes);
    }
    if (f->free_ps > f->now_ps)
        f->wake_ps = f->free_ps;
    else if (f->q.backlog_pkts && f->ops->next_ps)
        f->wake_ps = f->ops->next_ps(&f->q, f->now_ps);
    if (!f->q.backlog_pkts)
        f->wake_ps = GW_NEVER;
    CU_ASSERT(f->wake_ps > f->now_ps);
}

static inline void fake_send(struct fake *f, uint64_t index, const struct fake_gen *g,
                             uint32_t gen, uint32_t seq)
{
    struct gw_pkt *p = &f->pkt[index];
    uint32_t len;

    f->fate[index] = (struct fake_fate){ .sent_ps = f->now_ps, .left_ps = GW_NEVER, .gen = gen,
                                         .seq = seq };
    *p = (struct gw_pkt){ .stamp_ps = f->now_ps, .len_bytes = g->size, .sched_bytes = g->size,
        .flow = g->flow, .src = g->src, .dst = g->dst, .ext = GW_NONE, .flags = GW_PKT_FRAME,
        .hash = (uint32_t)gw_mix64(g->flow * 2654435761u + g->src), .priority = g->priority,
        .ecn = (uint8_t)g->ecn, .dscp = (uint8_t)g->dscp, .tp = { index } };
    len = p->sched_bytes;
    f->q.drop_reason = GW_DROP_QUEUE_FULL;
    if (f->ops->enqueue(&f->q, p, f->now_ps) == GW_Q_DROPPED) {
        f->q.dropped_pkts++;
        f->q.dropped_bytes += len;
        f->q.drops[f->q.drop_reason]++;
        fake_lost(f, p);
        return;
    }
    f->q.backlog_bytes += len;
    f->q.backlog_pkts++;
}

static inline struct gw_timer *fake_first_timer(struct fake *f)
{
    struct gw_timer *t = NULL;

    for (uint32_t i = 0; i < f->timers; i++)
        if (!t || f->timer[i]->due_ps < t->due_ps)
            t = f->timer[i];
    return t;
}

/* Sends all frames of @gen (NULL-terminated by count 0) and runs until nothing waits. */
static inline void fake_run(struct fake *f, const struct fake_gen *gen)
{
    uint64_t total = 0, index = 0, sent[16] = { 0 };
    uint32_t gens = 0;

    for (; gen[gens].count; gens++)
        total += gen[gens].count;
    CU_ASSERT_FATAL(gens <= 16);
    fake_frames(f, total);
    for (;;) {
        struct gw_timer *t = fake_first_timer(f);
        uint64_t next = GW_NEVER, timer = t ? t->due_ps : GW_NEVER;
        uint32_t who = 0;

        for (uint32_t i = 0; i < gens; i++) {
            uint64_t burst = gen[i].burst ? gen[i].burst : 1;
            uint64_t at = (gen[i].start_ns + sent[i] / burst * gen[i].interval_ns) * 1000;

            if (sent[i] < gen[i].count && at < next) {
                next = at;
                who = i;
            }
        }
        if (next == GW_NEVER && timer == GW_NEVER && f->wake_ps == GW_NEVER)
            return;
        if (timer <= next && timer <= f->wake_ps) {
            f->now_ps = timer;
            fake_timer_stop(f, t);
            t->fire(t->owner, timer);
        } else if (next <= f->wake_ps) {
            f->now_ps = next;
            fake_send(f, index, &gen[who], who, (uint32_t)sent[who]);
            index++;
            sent[who]++;
        } else {
            f->now_ps = f->wake_ps;
        }
        fake_drain(f);
    }
}

/* What every run must satisfy: all frames are accounted for, and the books with them. */
static inline void fake_check(const struct fake *f)
{
    CU_ASSERT_EQUAL(f->left + f->dropped + f->q.backlog_pkts, f->frames);
    CU_ASSERT_EQUAL(f->q.sent_pkts, f->left);
    CU_ASSERT_EQUAL(f->q.dropped_pkts, f->dropped);
    if (!f->q.backlog_pkts)
        CU_ASSERT_EQUAL(f->q.backlog_bytes, 0);
}

/* ---- what tc would show, as text "key=value ..." in JSON's order --------------------------- */

struct fake_out {
    struct gw_tc_out o;
    char   text[8192];
    size_t used;
};

static inline void fake_put(struct gw_tc_out *o, const char *fmt, ...) GW_PRINTF(2, 3);
static inline void fake_put(struct gw_tc_out *o, const char *fmt, ...)
{
    struct fake_out *x = o->priv;
    va_list ap;

    va_start(ap, fmt);
    x->used += (size_t)vsnprintf(x->text + x->used, sizeof x->text - x->used, fmt, ap);
    va_end(ap);
    CU_ASSERT_FATAL(x->used < sizeof x->text);
}

#define FAKE_OUT(name, type, spec)                                                          \
    static inline void name(struct gw_tc_out *o, const char *key, const char *fmt, type v)  \
    {                                                                                       \
        struct fake_out *x = o->priv;                                                       \
                                                                                            \
        if (o->json && key)                                                                 \
            fake_put(o, "%s=" spec " ", key, v);                                            \
        else if (!o->json && fmt)                                                           \
            x->used += (size_t)snprintf(x->text + x->used, sizeof x->text - x->used, fmt, v); \
    }
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
FAKE_OUT(fake_u64, unsigned long long, "%llu")
FAKE_OUT(fake_i64, long long, "%lld")
FAKE_OUT(fake_real, double, "%.9g")
FAKE_OUT(fake_str, const char *, "%s")
#pragma GCC diagnostic pop

static inline void fake_flag(struct gw_tc_out *o, const char *key, const char *fmt, bool v)
{
    if (o->json && key)
        fake_put(o, "%s=%s ", key, v ? "true" : "false");
    else if (!o->json && fmt && v)
        fake_put(o, "%s", fmt);
}

static inline void fake_null(struct gw_tc_out *o, const char *key, const char *fmt)
{
    if (o->json && key)
        fake_put(o, "%s=null ", key);
    else if (!o->json && fmt)
        fake_put(o, "%s", fmt);
}

static inline void fake_open(struct gw_tc_out *o, const char *key, bool array)
{
    if (o->json)
        fake_put(o, "%s%s", key ? key : "", array ? "[" : "{");
}

static inline void fake_close(struct gw_tc_out *o, bool array)
{
    if (o->json)
        fake_put(o, "%s", array ? "]" : "}");
}

static inline void fake_newline(struct gw_tc_out *o)
{
    if (!o->json)
        fake_put(o, "\n  ");
}

static inline const char *fake_rate(const struct gw_tc_out *o, uint64_t bytes_per_s, char *buf)
{
    (void)o;
    snprintf(buf, 64, "%lluBps", (unsigned long long)bytes_per_s);
    return buf;
}

static inline const char *fake_time(const struct gw_tc_out *o, uint32_t us, char *buf)
{
    (void)o;
    snprintf(buf, 64, "%uus", us);
    return buf;
}

static inline const char *fake_time64(const struct gw_tc_out *o, int64_t ns, char *buf)
{
    (void)o;
    snprintf(buf, 64, "%lldns", (long long)ns);
    return buf;
}

static inline const char *fake_size(const struct gw_tc_out *o, uint64_t bytes, char *buf)
{
    (void)o;
    snprintf(buf, 64, "%llub", (unsigned long long)bytes);
    return buf;
}

static inline const char *fake_show(struct fake *f, struct fake_out *x, bool json, bool stats)
{
    *x = (struct fake_out){ .o = { .json = json, .u64 = fake_u64, .i64 = fake_i64,
        .real = fake_real, .str = fake_str, .flag = fake_flag, .null = fake_null,
        .open = fake_open, .close = fake_close, .newline = fake_newline, .rate = fake_rate,
        .time = fake_time, .time64 = fake_time64, .size = fake_size } };
    x->o.priv = x;
    if (stats)
        f->ops->tc_show_stats(&f->q, &x->o);
    else
        f->ops->tc_show(&f->q, &x->o);
    return x->text;
}

#endif
