/*
 * test_collective.c - bytes per pair, closed forms and matching of the collective algorithms
 *
 * Played on the fake host: NICs without delay, no reduction cost unless a row says so.
 */
#include "fake_job.h"

#include <gradwire/alg/collective.h>

/* Every collective: all sends are matched, everything ends, each rank sends what it must. */
struct form {
    const char *name, *algorithm, *op;
    uint32_t n;
    uint64_t bytes;
    const char *more;            /* further keys                                               */
    uint64_t sent[4];            /* by the first four ranks, in all                            */
    uint64_t time_bytes;         /* bytes that pass one after the other until the end; 0: any  */
};

static const struct form form[] = {
    { "8 ranks, 1 GiB: 2 S (N-1)/N", "ring", "all-reduce", 8, 1073741824, "",
      { 1879048192, 1879048192, 1879048192, 1879048192 }, 1879048192 },
    { "2 ranks", "ring", "all-reduce", 2, 1000, "", { 1000, 1000 }, 1000 },
    { "more than 4 GiB", "ring", "all-reduce", 4, UINT64_C(17179869188), "",
      { UINT64_C(25769803782), UINT64_C(25769803782), UINT64_C(25769803782),
        UINT64_C(25769803782) }, UINT64_C(25769803782) },
    { "7 bytes on 3 ranks: chunks 3 2 2", "ring", "all-reduce", 3, 7, "", { 9, 10, 9 }, 0 },
    { "fewer bytes than ranks: chunks 1 1 0 0", "ring", "all-reduce", 4, 2, "", { 2, 3, 4, 3 }, 0 },
    { "one byte", "ring", "all-reduce", 4, 1, "", { 1, 2, 2, 1 }, 0 },
    { "compression 4", "ring", "all-reduce", 4, 4000, ", compression: 4",
      { 1500, 1500, 1500, 1500 }, 1500 },
    { "compression rounds each chunk up", "ring", "all-reduce", 2, 10, ", compression: 3",
      { 4, 4 }, 4 },
    { "S6: half of the result each", "ring", "all-gather", 2, UINT64_C(6467616768), "",
      { UINT64_C(3233808384), UINT64_C(3233808384) }, UINT64_C(3233808384) },
    { "S6: half of the input each", "ring", "reduce-scatter", 2, UINT64_C(12935233536), "",
      { UINT64_C(6467616768), UINT64_C(6467616768) }, UINT64_C(6467616768) },
    { "all-gather on 4", "ring", "all-gather", 4, 400, "", { 300, 300, 300, 300 }, 300 },
    { "reduce-scatter on 4", "ring", "reduce-scatter", 4, 400, "", { 300, 300, 300, 300 },
      300 },
    { "a chain in 4 chunks: S (1 + (N-2)/N)", "ring", "broadcast", 4, 400, "", { 400, 400, 400, 0 },
      600 },
    { "a chain with fewer bytes than ranks", "ring", "broadcast", 4, 3, "", { 3, 3, 3, 0 }, 5 },
    { "direct messages", "ring", "all-to-all", 4, 400, "", { 300, 300, 300, 300 }, 300 },
    { "direct messages of 2 1 1 bytes", "ring", "all-to-all", 3, 4, "", { 2, 3, 3 }, 0 },
    { "shards on all: 2 S (N-1)/N", "ps", "all-reduce", 4, 4000, "", { 6000, 6000, 6000, 6000 },
      6000 },
    { "shards of 3 2 2", "ps", "all-reduce", 3, 7, "", { 10, 9, 9 }, 0 },
    { "shards of 1 0 0 0", "ps", "all-reduce", 4, 1, "", { 3, 1, 1, 1 }, 4 },
    { "one server answers N-1 workers", "ps-single", "all-reduce", 4, 4000, "",
      { 12000, 4000, 4000, 4000 }, 16000 },
};

static struct fake_job *open_form(const struct form *f)
{
    char text[300];

    snprintf(text, sizeof text, "{traffic: collective, algorithm: %s, op: %s, bytes: %llu%s}",
             f->algorithm, f->op, (unsigned long long)f->bytes, f->more);
    return fake_must(text, f->n, 0);
}

static void bytes_per_rank(void)
{
    for (size_t i = 0; i < GW_ARRAY_LEN(form); i++) {
        struct fake_job *f = open_form(&form[i]);

        for (uint32_t r = 0; r < form[i].n && r < 4; r++) {
            uint64_t sent = 0;

            for (uint32_t d = 0; d < form[i].n; d++)
                sent += fake_bytes(f, r, d);
            CHECK_ROW(sent == form[i].sent[r], "%s %s: rank %u sends %llu, want %llu",
                      form[i].algorithm, form[i].name, r, (unsigned long long)sent,
                      (unsigned long long)form[i].sent[r]);
        }
        fake_close(f);
    }
}

static void closed_forms(void)
{
    const uint64_t rate_bps = 8000000000;            /* a byte lasts a nanosecond               */

    for (size_t i = 0; i < GW_ARRAY_LEN(form); i++) {
        struct fake_job *f = open_form(&form[i]);
        uint64_t end_ps = fake_play(f, rate_bps);
        uint64_t want   = form[i].time_bytes * 1000;

        CHECK_ROW(end_ps != GW_NEVER, "%s %s: something never ends, or a message has no mate",
                  form[i].algorithm, form[i].name);
        CHECK_ROW(!want || end_ps == want, "%s %s: ends at %llu ps, want %llu",
                  form[i].algorithm, form[i].name, (unsigned long long)end_ps,
                  (unsigned long long)want);
        fake_close(f);
    }
}

/* In a ring only neighbours talk. */
static void ring_pairs(void)
{
    struct fake_job *f = fake_must("{traffic: collective, op: all-reduce, bytes: 1000}", 5, 0);

    for (uint32_t s = 0; s < 5; s++)
        for (uint32_t d = 0; d < 5; d++) {
            uint64_t got = fake_bytes(f, s, d), want = d == (s + 1) % 5 ? 1600 : 0;

            CHECK_ROW(got == want, "ring pair %u-%u: got %llu, want %llu", s, d,
                      (unsigned long long)got, (unsigned long long)want);
        }
    fake_close(f);
}

/* N-1 additions of S/N bytes at the cost of the table, and overhead before every send. */
static void reduction_and_overhead(void)
{
    static const struct {
        const char *keys;
        uint64_t want_ps;
    } row[] = {
        { "", 6000000 },                                              /* 6 x 1000 B at 1 ns    */
        { ", reduce_cost: a6", 6000000 + 3 * UINT64_C(10000000) },    /* 10 us each            */
        { ", message_overhead: 2us", 6000000 + 6 * UINT64_C(2000000) },
        { ", algorithm: ps, reduce_cost: a6", 6000000 + 3 * UINT64_C(10000000) - 2000000 },
    };

    for (size_t i = 0; i < GW_ARRAY_LEN(row); i++) {
        char text[200];
        struct fake_job *f;
        uint64_t end_ps;

        snprintf(text, sizeof text, "{traffic: collective, op: all-reduce, bytes: 4000%s}",
                 row[i].keys);
        f      = fake_must(text, 4, 0);
        end_ps = fake_play(f, 8000000000);
        /* ps: the first push is added while the two others are still on the wire. */
        CHECK_ROW(end_ps == row[i].want_ps, "%s: ends at %llu ps, want %llu", row[i].keys,
                  (unsigned long long)end_ps, (unsigned long long)row[i].want_ps);
        fake_close(f);
    }
}

/* Subgroups that differ, in sequence; a rank that takes part in nothing passes. */
static void groups(void)
{
    struct fake_job *f = fake_must(
        "{traffic: collective, iterations: 2, run: ["
        "{op: all-gather, bytes: 400, groups: [[h0, h2], [h1, h3]]},"
        "{op: all-reduce, bytes: 100, groups: [[h3, h1]]},"
        "{op: all-gather, bytes: 40, groups: [[h0, h2]]}]}", 6, 0);
    uint64_t end_ps;

    CHECK_ROW(f->job.ranks == 4, "ranks: got %u, want the 4 that are named", f->job.ranks);
    CU_ASSERT_FATAL(f->job.ranks == 4);
    CU_ASSERT(f->node[0] == FAKE_NODE && f->node[1] == FAKE_NODE + 2);
    CU_ASSERT(fake_bytes(f, 0, 1) == 2 * (200 + 20));
    CU_ASSERT(fake_bytes(f, 2, 3) == 2 * (200 + 100));
    CU_ASSERT(fake_bytes(f, 0, 2) == 0);
    end_ps = fake_play(f, 8000000000);
    CHECK_ROW(end_ps == 2 * UINT64_C(300000), "ends at %llu ps, want 600000",
              (unsigned long long)end_ps);
    /* Numbers go up by the four instances of an iteration; equal groups share a communicator. */
    CU_ASSERT(fake_mark_ps(f, 0, GW_MARK_COLL_END, 0, 1) == 200000);
    CU_ASSERT(fake_mark_ps(f, 0, GW_MARK_COLL_END, 0, 4) == 220000);
    CU_ASSERT(fake_mark_ps(f, 2, GW_MARK_COLL_END, 1, 4 + 3) == 600000);
    CU_ASSERT(fake_mark_ps(f, 2, GW_MARK_COLL_END, 0, 1) == GW_NEVER);
    for (uint32_t i = 0; i < f->ops; i++)
        if (f->op[i].op.mark == GW_MARK_COLL_BEGIN) {
            uint32_t want = (f->op[i].op.collective - 1) % 4;

            want = want == 3 ? 1 : want + 1;
            CHECK_ROW(f->op[i].op.comm == want, "collective %u: communicator %u, want %u",
                      f->op[i].op.collective, f->op[i].op.comm, want);
        }
    fake_close(f);
}

static void helpers(void)
{
    static const struct gw_cost_row row[] = { { 1e6, 1e-5 }, { 2e6, 3e-5 }, { 4e6, 5e-5 } };
    const struct gw_cost_table t = { row, 3 };
    static const struct {
        const char *name;
        uint64_t bytes, want_ps;
    } cost[] = {
        { "nothing", 0, 0 },
        { "flat below the first row", 1, 10000000 },
        { "the first row", 1000000, 10000000 },
        { "half way", 1500000, 20000000 },
        { "the last row", 4000000, 50000000 },
        { "the last slope beyond it", 6000000, 70000000 },
    };
    struct gw_coll c = { .compression = 3 };

    for (size_t i = 0; i < GW_ARRAY_LEN(cost); i++) {
        uint64_t got = gw_cost_ps(&t, cost[i].bytes);

        CHECK_ROW(got == cost[i].want_ps, "%s: got %llu ps, want %llu", cost[i].name,
                  (unsigned long long)got, (unsigned long long)cost[i].want_ps);
    }
    CU_ASSERT(gw_cost_ps(NULL, 1000) == 0);
    for (uint32_t n = 1; n < 20; n++)
        for (uint64_t s = 0; s < 50; s++) {
            uint64_t sum = 0;

            for (uint32_t i = 0; i < n; i++)
                sum += gw_coll_chunk(s, n, i);
            CHECK_ROW(sum == s, "%llu bytes over %u chunks: they add up to %llu",
                      (unsigned long long)s, n, (unsigned long long)sum);
        }
    CU_ASSERT(gw_coll_chunk(UINT64_C(4294967297), 2, 0) == UINT64_C(2147483649));
    CU_ASSERT(gw_coll_wire(&c, 9) == 3 && gw_coll_wire(&c, 10) == 4 && gw_coll_wire(&c, 1) == 1);
    CU_ASSERT(gw_coll_wire(&c, UINT64_C(30000000000000001)) == UINT64_C(10000000000000001));
}

static void refusals(void)
{
    static const struct {
        const char *text, *want;
    } row[] = {
        { "{traffic: collective, bytes: 10}", "needs op and bytes" },
        { "{traffic: collective, op: all-reduce}", "needs op and bytes" },
        { "{traffic: collective, op: gather, bytes: 1}", "no operation \"gather\"" },
        { "{traffic: collective, op: broadcast, algorithm: ps, bytes: 1}", "ps has no broadcast" },
        { "{traffic: collective, op: all-reduce, algorithm: rong, bytes: 1}", "ring" },
        { "{traffic: collective, op: all-reduce, bytes: 1, groups: [[h0]]}", "at least 2 hosts" },
        { "{traffic: collective, op: all-reduce, bytes: 1, groups: [[h0, h9]]}",
          "no host called \"h9\"" },
        { "{traffic: collective, op: all-reduce, bytes: 1, groups: [[h0, h1], [h1, h2]]}",
          "stands twice" },
        { "{traffic: collective, op: all-reduce, bytes: 1, groups: [h0, h1]}", "list of hosts" },
        { "{traffic: collective, run: []}", "list of steps" },
        { "{traffic: collective, run: [{op: all-reduce, bytes: 1, gruops: all}]}", "groups" },
        { "{traffic: collective, op: all-reduce, bytes: 1, compression: 0.5}", "compression" },
        { "{traffic: collective, op: all-reduce, bytes: 1, reduce_cost: nowhere}", "nowhere" },
    };

    for (size_t i = 0; i < GW_ARRAY_LEN(row); i++) {
        struct fake_job *f = fake_open(row[i].text, 4, 0);

        CHECK_ROW(f->err.code != GW_OK && strstr(f->err.text, row[i].want),
                  "%s: says \"%s\", want \"%s\"", row[i].text, f->err.text, row[i].want);
        fake_close(f);
    }
}

static const struct gw_case cases[] = {
    { "bytes per rank", bytes_per_rank },
    { "closed forms", closed_forms },
    { "ring pairs", ring_pairs },
    { "reduction and overhead", reduction_and_overhead },
    { "groups", groups },
    { "chunks, wire bytes, cost table", helpers },
    { "refusals", refusals },
    { NULL, NULL },
};

const struct gw_suite suite_collective = { "collective", cases };
