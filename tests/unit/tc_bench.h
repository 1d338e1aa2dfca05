/*
 * tc_bench.h - a whole tree of disciplines at a device without a rate, set up by tc lines
 *
 * As the device v0 of the recorded cases: what the tree lets go is gone at once, so that only the
 * disciplines shape. Frames are given in advance, sorted by time; bench_play() offers each at its
 * time, asks for what may leave, and wakes the tree when it wants to be woken. Then `out_ps` of a
 * frame says when it left, GW_NEVER: it was dropped or waits still.
 */
#ifndef GW_TESTS_TC_BENCH_H
#define GW_TESTS_TC_BENCH_H

#include "tests/unit/suite.h"

#include "emu/tc/cmd.h"

#include <stdlib.h>

#define BENCH_MS UINT64_C(1000000)             /* in ns                                        */

struct bench_frame {
    uint64_t at_ps, out_ps;
    uint32_t size, gen, priority;
    bool     dropped;
    int64_t  want_ns;                          /* when a kernel let it go; -1: lost there      */
};

struct bench {
    struct gw_registry *reg;
    struct gw_tree     *tree;
    struct bench_frame *frame;
    struct gw_pkt      *pkt;                   /* one for each frame                           */
    uint32_t frames, room;
    uint32_t played;                           /* frames that were offered                     */
    uint32_t sent, lost;
    uint32_t last_seen[64];                    /* highest frame that left, by generator        */
    uint32_t disorder;                         /* frames that left before an older one of gen  */
    char     text[16384];                      /* what the last tc line printed                */
    struct gw_error err;
};

static inline struct gw_tree *bench_device(void *ctx, const char *name, struct gw_error *err)
{
    struct bench *b = ctx;

    if (!strcmp(name, "v0"))
        return b->tree;
    gw_fail(err, GW_PARAM, "the only device is v0");
    return NULL;
}

static inline struct gw_tree *bench_device_at(void *ctx, size_t i)
{
    return i ? NULL : ((struct bench *)ctx)->tree;
}

static inline void bench_drop(void *ctx, struct gw_pkt *p, enum gw_drop_reason why)
{
    struct bench *b = ctx;

    (void)why;
    b->frame[p - b->pkt].dropped = true;
    b->lost++;
}

static inline void bench_open(struct bench *b)
{
    memset(b, 0, sizeof *b);
    b->reg = gw_registry_new(false, &b->err);
    CU_ASSERT_PTR_NOT_NULL_FATAL(b->reg);
    b->tree = gw_tree_new(&(struct gw_tree_conf){ .registry = b->reg, .dev = "v0", .net = b,
                          .mtu_bytes = 1514, .txqueuelen = 1000, .seed = 1, .ctx = b,
                          .drop = bench_drop }, &b->err);
    CU_ASSERT_PTR_NOT_NULL_FATAL(b->tree);
}

static inline void bench_close(struct bench *b)
{
    gw_tree_free(b->tree);
    gw_registry_free(b->reg);
    free(b->frame);
    free(b->pkt);
}

/* One line of tc without the word tc, at @now_ns; answers its exit code. */
static inline int bench_tc_at(struct bench *b, uint64_t now_ns, const char *line)
{
    uint32_t n;
    char **word = gw_tc_split(line, &n);
    FILE *f = fmemopen(b->text, sizeof b->text, "w");
    int rc;

    memset(&b->err, 0, sizeof b->err);
    rc = gw_tc_run(&(struct gw_tc_ctx){ .ctx = b, .device = bench_device,
                   .device_at = bench_device_at, .now_ps = now_ns * GW_PS_PER_NS, .out = f }, word,
                   n, &b->err);
    fclose(f);
    free(word[0]);
    free(word);
    return rc;
}

static inline void bench_tc(struct bench *b, const char *line)
{
    int rc = bench_tc_at(b, 0, line);

    CHECK_ROW(!rc, "tc %s: exit code %d: %s", line, rc, b->err.text);
}

static inline void bench_add(struct bench *b, uint64_t at_ns, uint32_t size, uint32_t gen,
                      uint32_t priority)
{
    if (b->frames == b->room) {
        b->room = b->room ? 2 * b->room : 1024;
        b->frame = realloc(b->frame, b->room * sizeof *b->frame);
        CU_ASSERT_PTR_NOT_NULL_FATAL(b->frame);
    }
    b->frame[b->frames++] = (struct bench_frame){ at_ns * GW_PS_PER_NS, GW_NEVER, size, gen,
                                                  priority, false, -1 };
}

/* @count frames, @burst at an instant, every @interval_ns from @start_ns on. */
static inline void bench_gen(struct bench *b, uint32_t gen, uint32_t size, uint64_t interval_ns,
                             uint64_t start_ns, uint32_t count, uint32_t priority, uint32_t burst)
{
    for (uint32_t i = 0; i < count; i++)
        bench_add(b, start_ns + i / burst * interval_ns, size, gen, priority);
}

static inline int bench_order(const void *a, const void *b)
{
    const struct bench_frame *x = a, *y = b;

    if (x->at_ps != y->at_ps)
        return x->at_ps < y->at_ps ? -1 : 1;
    return x->gen < y->gen ? -1 : x->gen > y->gen;
}

/* Makes a packet for each frame; to be called once, when all frames are there. */
static inline void bench_ready(struct bench *b)
{
    qsort(b->frame, b->frames, sizeof *b->frame, bench_order);
    b->pkt = calloc(b->frames + 1, sizeof *b->pkt);
    CU_ASSERT_PTR_NOT_NULL_FATAL(b->pkt);
    for (uint32_t i = 0; i < b->frames; i++) {
        b->pkt[i].len_bytes = b->frame[i].size;
        b->pkt[i].flow = b->frame[i].gen;
        b->pkt[i].hash = b->frame[i].gen;
        b->pkt[i].priority = b->frame[i].priority;
    }
}

static inline void bench_drain(struct bench *b, uint64_t now_ps)
{
    struct gw_pkt *p;

    while ((p = gw_tree_dequeue(b->tree, now_ps))) {
        uint32_t i = (uint32_t)(p - b->pkt), g = b->frame[i].gen % 64;

        b->frame[i].out_ps = now_ps;
        b->sent++;
        b->disorder += i < b->last_seen[g];
        b->last_seen[g] = i;
    }
}

/* Lets the tree do what is due before @until_ps. */
static inline void bench_wait(struct bench *b, uint64_t from_ps, uint64_t until_ps)
{
    uint64_t at;

    while ((at = gw_tree_next_ps(b->tree, from_ps)) < until_ps) {
        CHECK_ROW(at > from_ps, "the tree wants to be woken at %llu ps, which is %llu ps now",
                  (unsigned long long)at, (unsigned long long)from_ps);
        if (at <= from_ps)
            return;
        from_ps = at;
        bench_drain(b, at);
    }
}

static inline void bench_offer(struct bench *b, uint32_t i)
{
    if (gw_tree_enqueue(b->tree, &b->pkt[i], b->frame[i].at_ps) == GW_Q_DROPPED) {
        b->frame[i].dropped = true;
        b->lost++;
    }
}

/* Plays frames up to @until_ns (GW_NEVER: all, until nothing is left to do). */
static inline void bench_play(struct bench *b, uint64_t until_ns)
{
    uint64_t until = until_ns == GW_NEVER ? GW_NEVER : until_ns * GW_PS_PER_NS, now = 0;

    if (!b->pkt)
        bench_ready(b);
    while (b->played < b->frames && b->frame[b->played].at_ps < until) {
        now = b->frame[b->played].at_ps;
        bench_offer(b, b->played++);           /* as a kernel: every arrival asks              */
        bench_drain(b, now);
        if (b->played < b->frames && b->frame[b->played].at_ps == now)
            continue;
        bench_wait(b, now, b->played < b->frames && b->frame[b->played].at_ps < until ?
                   b->frame[b->played].at_ps : until);
    }
}

/* Books: all that was offered has left, was dropped or waits; and the root knows it. */
static inline void bench_check_books(struct bench *b, const char *what)
{
    const struct gw_qdisc *q = b->tree->root;

    CHECK_ROW(b->played == b->sent + b->lost + q->backlog_pkts, "%s: %u offered, %u sent, %u lost, "
              "%llu wait", what, b->played, b->sent, b->lost,
              (unsigned long long)q->backlog_pkts);
    CHECK_ROW(q->sent_pkts == b->sent && q->dropped_pkts == b->lost, "%s: the books say %llu sent, "
              "%llu dropped; it was %u and %u", what, (unsigned long long)q->sent_pkts,
              (unsigned long long)q->dropped_pkts, b->sent, b->lost);
    for (const struct gw_qdisc *x = b->tree->all; x; x = x->sibling)
        CHECK_ROW(x->backlog_pkts || !x->backlog_bytes, "%s: %s %x: holds no packet but %llu bytes",
                  what, x->kind, x->handle >> 16, (unsigned long long)x->backlog_bytes);
}

#endif
