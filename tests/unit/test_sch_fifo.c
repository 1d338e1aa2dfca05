/*
 * test_sch_fifo - pfifo and bfifo by themselves: limits, order, change, reset; then all FIFOs by
 * the words of tc, with priorities and with a parent that looks at the head
 */
#include "tests/unit/tc_bench.h"

#include <gradwire/gradwire.h>

extern const struct gw_plugin gw_qdisc_pfifo, gw_qdisc_bfifo, gw_qdisc_pfifo_head_drop,
                              gw_qdisc_pfifo_fast;

enum { PKTS = 32 };

static uint32_t dropped;                /* by reset, told by the host table below              */

static void count_drop(struct gw_qdisc *q, struct gw_pkt *p, enum gw_drop_reason why)
{
    (void)q, (void)p;
    dropped += why == GW_DROP_PURGED;
}

static const struct gw_host host = { .host_bytes = sizeof host, .qdisc_drop = count_drop };

struct fixture {
    struct gw_qdisc q;
    const struct gw_qdisc_ops *ops;
    struct gw_pkt pkt[PKTS];
    uint64_t conf[8], priv[64];
};

/* A discipline whose user said "limit @limit" (NULL: nothing). */
static enum gw_status start(struct fixture *f, const struct gw_plugin *p, const char *limit)
{
    struct gw_error err = { GW_OK, "" };

    memset(f, 0, sizeof *f);
    f->ops = p->ops;
    CU_ASSERT_FATAL(f->ops->priv_bytes <= sizeof f->priv && f->ops->conf_bytes <= sizeof f->conf);
    f->q = (struct gw_qdisc){ .ops = p->ops, .host = &host, .priv = f->priv, .conf = f->conf,
                              .txqueuelen = 1000, .mtu_bytes = 1514,
                              .auto_limit_bytes = 15141 };
    for (uint32_t i = 0; i < PKTS; i++) {
        f->pkt[i].len_bytes = f->pkt[i].sched_bytes = 100;
        f->pkt[i].flow = i;
    }
    if (limit) {
        if (gw_param_set(&p->params[0], f->conf, limit, NULL, &err))
            return err.code;
        f->q.given = 1;
    }
    return f->ops->init(&f->q, &err);
}

static uint32_t fill(struct fixture *f, uint32_t n)
{
    uint32_t taken = 0;

    for (uint32_t i = 0; i < n; i++) {
        f->q.drop_reason = GW_DROP_COUNT;
        if (f->ops->enqueue(&f->q, &f->pkt[i], 0) == GW_Q_QUEUED)
            taken++;
        else
            CU_ASSERT_EQUAL(f->q.drop_reason, GW_DROP_QUEUE_FULL);
    }
    return taken;
}

static void test_limits(void)
{
    static const struct { bool bytes; const char *limit; uint64_t pkts, size; } rows[] = {
        { false, NULL, 1000, UINT64_MAX }, { false, "10", 10, UINT64_MAX },
        { false, "0", 0, UINT64_MAX }, { false, "auto", 11, UINT64_MAX },
        { true, NULL, UINT64_MAX, 1514000 }, { true, "3000", UINT64_MAX, 3000 },
        { true, "64KiB", UINT64_MAX, 65536 }, { true, "0", UINT64_MAX, 0 },
        { true, "auto", UINT64_MAX, 15141 }, { true, "8GiB", UINT64_MAX, UINT64_C(8589934592) },
    };

    for (size_t i = 0; i < GW_ARRAY_LEN(rows); i++) {
        uint64_t pkts = 0, size = 0;
        struct fixture f;

        CU_ASSERT_EQUAL(start(&f, rows[i].bytes ? &gw_qdisc_bfifo : &gw_qdisc_pfifo,
                              rows[i].limit), GW_OK);
        CU_ASSERT(f.ops->fifo_limits(&f.q, &pkts, &size));
        CHECK_ROW(pkts == rows[i].pkts && size == rows[i].size, "row %zu: got %llu %llu", i,
                  (unsigned long long)pkts, (unsigned long long)size);
    }
}

/* n packets of 100 bytes offered: how many are taken; then they leave in order. */
static void test_taken(void)
{
    static const struct { bool bytes; const char *limit; uint32_t offered, taken; } rows[] = {
        { false, "3", 5, 3 }, { false, "0", 5, 0 }, { false, "5", 5, 5 }, { false, NULL, 20, 20 },
        { true, "250", 5, 2 }, { true, "300", 5, 3 }, { true, "299", 5, 2 }, { true, "99", 5, 0 },
        { true, "100", 5, 1 }, { true, NULL, 20, 20 },
    };

    for (size_t i = 0; i < GW_ARRAY_LEN(rows); i++) {
        struct fixture f;
        uint32_t got;

        CU_ASSERT_EQUAL(start(&f, rows[i].bytes ? &gw_qdisc_bfifo : &gw_qdisc_pfifo,
                              rows[i].limit), GW_OK);
        got = fill(&f, rows[i].offered);
        CHECK_ROW(got == rows[i].taken, "row %zu: got %u want %u", i, got, rows[i].taken);
        for (uint32_t k = 0; k < got; k++) {
            struct gw_pkt *p = f.ops->dequeue(&f.q, 0);

            CHECK_ROW(p && p->flow == k && !p->next, "row %zu: packet %u is out of order", i, k);
        }
        CU_ASSERT_PTR_NULL(f.ops->dequeue(&f.q, 0));
    }
}

/* A short packet still fits where a long one did not: bfifo looks at each packet, and at what the
 * size table made of its length. */
static void test_bytes_mixed(void)
{
    struct fixture f;

    CU_ASSERT_EQUAL(start(&f, &gw_qdisc_bfifo, "250"), GW_OK);
    f.pkt[1].sched_bytes = 151;
    f.pkt[2].len_bytes = 1500;
    f.pkt[2].sched_bytes = 150;
    CU_ASSERT_EQUAL(f.ops->enqueue(&f.q, &f.pkt[0], 0), GW_Q_QUEUED);
    CU_ASSERT_EQUAL(f.ops->enqueue(&f.q, &f.pkt[1], 0), GW_Q_DROPPED);
    CU_ASSERT_EQUAL(f.ops->enqueue(&f.q, &f.pkt[2], 0), GW_Q_QUEUED);
    CU_ASSERT_PTR_EQUAL(f.ops->dequeue(&f.q, 0), &f.pkt[0]);
    CU_ASSERT_PTR_EQUAL(f.ops->dequeue(&f.q, 0), &f.pkt[2]);
}

static uint64_t limit_of(const struct fixture *f)
{
    uint64_t pkts, size;

    f->ops->fifo_limits(&f->q, &pkts, &size);
    return pkts == UINT64_MAX ? size : pkts;
}

/* change without a limit keeps the old one; a smaller limit drops nothing that waits. */
static void test_change(void)
{
    static const struct gw_plugin *const kinds[] = { &gw_qdisc_pfifo, &gw_qdisc_bfifo };
    static const char *const first[] = { "5", "500" }, *const second[] = { "2", "200" };

    for (int i = 0; i < 2; i++) {
        uint64_t conf[8] = { 0 }, old;
        struct fixture f;

        CU_ASSERT_EQUAL(start(&f, kinds[i], first[i]), GW_OK);
        CU_ASSERT_EQUAL(fill(&f, 5), 5);
        old = limit_of(&f);
        CU_ASSERT_EQUAL(f.ops->change(&f.q, conf, 0, 0, NULL), GW_OK);
        CU_ASSERT_EQUAL(limit_of(&f), old);
        CU_ASSERT_EQUAL(gw_param_set(&kinds[i]->params[0], conf, second[i], NULL, NULL), GW_OK);
        CU_ASSERT_EQUAL(f.ops->change(&f.q, conf, 1, 0, NULL), GW_OK);
        CU_ASSERT_EQUAL(limit_of(&f), i ? 200 : 2);
        for (int k = 0; k < 4; k++)
            CU_ASSERT_PTR_NOT_NULL(f.ops->dequeue(&f.q, 0));
        CU_ASSERT_EQUAL(f.ops->enqueue(&f.q, &f.pkt[5], 0), GW_Q_QUEUED);
        CU_ASSERT_EQUAL(f.ops->enqueue(&f.q, &f.pkt[6], 0), GW_Q_DROPPED);
    }
}

static void test_reset(void)
{
    static const struct gw_plugin *const kinds[] = { &gw_qdisc_pfifo, &gw_qdisc_bfifo };

    for (int i = 0; i < 2; i++) {
        struct fixture f;

        CU_ASSERT_EQUAL(start(&f, kinds[i], NULL), GW_OK);
        CU_ASSERT_EQUAL(fill(&f, 7), 7);
        dropped = 0;
        f.ops->reset(&f.q, 0);
        CU_ASSERT_EQUAL(dropped, 7);
        CU_ASSERT_PTR_NULL(f.ops->dequeue(&f.q, 0));
        CU_ASSERT_EQUAL(fill(&f, 1), 1);
    }
}

/* Bad limits never reach the discipline. */
static void test_bad_limit(void)
{
    static const struct { const struct gw_plugin *p; const char *limit; } rows[] = {
        { &gw_qdisc_pfifo, "-1" }, { &gw_qdisc_pfifo, "10KiB" }, { &gw_qdisc_pfifo, "1.5" },
        { &gw_qdisc_pfifo, "4294967296" }, { &gw_qdisc_bfifo, "10ms" }, { &gw_qdisc_bfifo, "-5" },
        { &gw_qdisc_bfifo, "Auto" },
    };

    for (size_t i = 0; i < GW_ARRAY_LEN(rows); i++) {
        struct fixture f;

        CHECK_ROW(start(&f, rows[i].p, rows[i].limit) == GW_PARAM, "row %zu was taken", i);
    }
}

/* A parent that looks leaves the packet in its place: it counts in the limit, head drop takes it
 * first, and a better one goes before it. */
static void test_peeked(void)
{
    struct fixture f;

    CU_ASSERT_EQUAL(start(&f, &gw_qdisc_pfifo, "3"), GW_OK);
    CU_ASSERT_PTR_NULL(f.ops->peek(&f.q, 0));
    CU_ASSERT_EQUAL(fill(&f, 3), 3);
    CU_ASSERT_PTR_EQUAL(f.ops->peek(&f.q, 0), &f.pkt[0]);
    CU_ASSERT_EQUAL(f.ops->enqueue(&f.q, &f.pkt[3], 0), GW_Q_DROPPED);
    CU_ASSERT_EQUAL(start(&f, &gw_qdisc_bfifo, "300"), GW_OK);
    CU_ASSERT_EQUAL(fill(&f, 3), 3);
    CU_ASSERT_PTR_EQUAL(f.ops->peek(&f.q, 0), &f.pkt[0]);
    CU_ASSERT_EQUAL(f.ops->enqueue(&f.q, &f.pkt[3], 0), GW_Q_DROPPED);
    CU_ASSERT_EQUAL(start(&f, &gw_qdisc_pfifo_head_drop, "3"), GW_OK);
    CU_ASSERT_EQUAL(fill(&f, 3), 3);
    CU_ASSERT_PTR_EQUAL(f.ops->peek(&f.q, 0), &f.pkt[0]);
    CU_ASSERT_EQUAL(f.ops->enqueue(&f.q, &f.pkt[3], 0), GW_Q_QUEUED);
    CU_ASSERT_PTR_EQUAL(f.ops->dequeue(&f.q, 0), &f.pkt[1]);
    CU_ASSERT_EQUAL(start(&f, &gw_qdisc_pfifo_fast, NULL), GW_OK);
    CU_ASSERT_EQUAL(fill(&f, 2), 2);
    CU_ASSERT_PTR_EQUAL(f.ops->peek(&f.q, 0), &f.pkt[0]);
    f.pkt[2].priority = 6;
    CU_ASSERT_EQUAL(f.ops->enqueue(&f.q, &f.pkt[2], 0), GW_Q_QUEUED);
    CU_ASSERT_PTR_EQUAL(f.ops->dequeue(&f.q, 0), &f.pkt[2]);
}

/* Lines, exit codes of tc 6.1, and what it shows afterwards. */
static void test_words(void)
{
    static const struct { const char *line; int rc; const char *show; } rows[] = {
        { "pfifo", 0, "limit 1000p" }, { "pfifo limit 10k", 0, "limit 10240p" },
        { "pfifo limit 0", 0, "limit 0p" }, { "pfifo limit 1.5k", 0, "limit 1536p" },
        { "pfifo limit", 255, NULL }, { "pfifo lim 5", 1, NULL }, { "pfifo limit 5x", 1, NULL },
        { "pfifo limit -1", 1, NULL }, { "pfifo limit 4gb", 1, NULL },
        { "bfifo", 0, "limit 1514000b" }, { "bfifo limit 10kb", 0, "limit 10Kb" },
        { "bfifo limit 3mbit", 0, "limit 384Kb" }, { "bfifo limit", 255, NULL },
        { "bfifo limit 64KiB", 1, NULL }, { "bfifo limit 5 6", 1, NULL },
        { "pfifo_head_drop", 0, "limit 1000p" }, { "pfifo_head_drop limit 7", 0, "limit 7p" },
        { "pfifo_head_drop limit", 255, NULL }, { "pfifo_head_drop x", 1, NULL },
        { "pfifo_fast", 0, "bands 3 priomap 1 2 2 2 1 2 0 0 1 1 1 1 1 1 1 1" },
        { "pfifo_fast bands 3", 255, NULL },
    };

    for (size_t i = 0; i < GW_ARRAY_LEN(rows); i++) {
        char line[128];
        struct bench b;
        int rc;

        bench_open(&b);
        snprintf(line, sizeof line, "qdisc add dev v0 root %s", rows[i].line);
        rc = bench_tc_at(&b, 0, line);
        CHECK_ROW(rc == rows[i].rc, "tc %s: exit code %d, want %d: %s", line, rc, rows[i].rc,
                  b.err.text);
        CHECK_ROW(!rc == !b.err.text[0], "tc %s: %d, sentence \"%s\"", line, rc, b.err.text);
        bench_tc(&b, "qdisc show dev v0");
        CHECK_ROW(!rows[i].show || strstr(b.text, rows[i].show), "tc %s: shows %s", line, b.text);
        bench_close(&b);
    }
}

/* A full head-drop queue behind a shaper: the freshest leave. */
static void test_head_drop(void)
{
    struct bench b;

    bench_open(&b);
    bench_tc(&b, "qdisc add dev v0 root handle 1: htb default 1");
    bench_tc(&b, "class add dev v0 parent 1: classid 1:1 htb rate 8mbit burst 1000 cburst 1000");
    bench_tc(&b, "qdisc add dev v0 parent 1:1 pfifo_head_drop limit 3");
    bench_gen(&b, 0, 1000, 1, 0, 10, 0, 10);
    bench_play(&b, GW_NEVER);
    for (uint32_t i = 0; i < 10; i++)
        CHECK_ROW((b.frame[i].out_ps != GW_NEVER) == (i < 2 || i > 6), "frame %u of 10", i);
    bench_check_books(&b, "pfifo_head_drop");
    bench_close(&b);
}

/* Three bands of txqueuelen packets each; a class id counts by its last four bits. */
static void test_fast(void)
{
    static const struct { uint32_t priority; int band; } rows[] = {
        { 0, 1 }, { 1, 2 }, { 4, 1 }, { 6, 0 }, { 7, 0 }, { 8, 1 }, { 15, 1 }, { 0x10006, 0 },
        { 0x10003, 2 } };
    static struct bench b;
    uint32_t n = GW_ARRAY_LEN(rows);
    int last = 0;

    bench_open(&b);
    bench_tc(&b, "qdisc add dev v0 root pfifo_fast");
    for (uint32_t i = 0; i < n; i++)
        bench_add(&b, 0, 100, (uint32_t)rows[i].band, rows[i].priority);
    for (uint32_t i = 0; i < 1001; i++)
        bench_add(&b, 1, 100, 3, 1);
    bench_ready(&b);
    for (uint32_t i = 0; i < b.frames; i++)
        bench_offer(&b, i);
    CU_ASSERT_EQUAL(b.lost, 3);                /* 1003 came for band 2                         */
    for (uint32_t i = 0; i < n; i++) {
        struct gw_pkt *p = gw_tree_dequeue(b.tree, 0);

        CU_ASSERT_PTR_NOT_NULL_FATAL(p);
        CHECK_ROW((int)p->flow >= last, "band %u left after band %d", p->flow, last);
        last = (int)p->flow;
    }
    bench_close(&b);
}

static const struct gw_case cases[] = {
    { "limits", test_limits },
    { "what is taken, and order", test_taken },
    { "bytes of mixed sizes", test_bytes_mixed },
    { "change", test_change },
    { "reset", test_reset },
    { "refused limits", test_bad_limit },
    { "a head that was looked at", test_peeked },
    { "words", test_words },
    { "head drop", test_head_drop },
    { "bands by priority", test_fast },
    { NULL, NULL },
};
const struct gw_suite suite_sch_fifo = { "sch_fifo", cases };
