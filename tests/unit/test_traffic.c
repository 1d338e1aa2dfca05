/*
 * test_traffic.c - data-parallel training and plain patterns, on the fake host
 *
 * The scaling factors are those of PAPERS.md A6, from messages that the fake host really plays.
 */
#include "fake_job.h"

#include <math.h>
#include <unistd.h>

/* ---- data-parallel: fusion ---------------------------------------------------------------- */

struct tmp_table {
    char path[64];
};

/* A layer table in a file of its own. */
static void table_open(struct tmp_table *t, const char *rows)
{
    FILE *f;
    int   fd;

    strcpy(t->path, "/tmp/gw-layers-XXXXXX");
    fd = mkstemp(t->path);
    CU_ASSERT_FATAL(fd >= 0);
    f = fdopen(fd, "w");
    CU_ASSERT_FATAL(f != NULL);
    fprintf(f, "# a test\nname,param_bytes,forward_s,backward_s,activation_bytes\n%s", rows);
    fclose(f);
}

static struct fake_job *train(const char *model, const char *keys, uint32_t ranks)
{
    char text[400];

    snprintf(text, sizeof text, "{traffic: data-parallel, model: %s%s}", model, keys);
    return fake_must(text, ranks, 0);
}

/* Sizes of the collectives that rank 0 begins, in order, as text. */
static void flush_sizes(const struct fake_job *f, char *buf, size_t n)
{
    size_t at = 0;

    buf[0] = 0;
    for (uint32_t i = 0; i < f->ops && at + 24 < n; i++)
        if (f->op[i].rank == 0 && f->op[i].op.mark == GW_MARK_COLL_BEGIN)
            at += (size_t)snprintf(buf + at, n - at, "%s%llu", at ? " " : "",
                                   (unsigned long long)f->op[i].op.bytes);
}

static void fusion_rule(void)
{
    /* In backward order: 1 B at 2 ms, 2 B at 4 ms, nothing at 5 ms, 4 B at 6 ms, 100 MB at 7 ms,
     * 8 B at 8 ms, then 1 ms without gradient. */
    static const char rows[] = "a,0,0.001,0.001,0\n\"b, the last\",8,0,0.001,0\n"
                               "c,100000000,0,0.001,0\nd,4,0,0.001,0\ne,0,0,0.001,0\n"
                               "f,2,0,0.002,0\ng,1,0.001,0.002,7\n";
    static const struct {
        const char *keys, *want;
    } row[] = {
        { "", "7 100000000 8" },
        { ", fuse: {wait: 4ms}", "3 100000004 8" },
        { ", fuse: {wait: 2ms}", "1 2 4 100000000 8" },
        { ", fuse: {wait: 1s}", "100000007 8" },
        { ", fuse: {wait: 1s, bytes: 1GB}", "100000015" },
        { ", fuse: {wait: 1s, bytes: 3}", "3 4 100000000 8" },
        { ", fuse: off", "1 2 4 100000000 8" },
        { ", compute_scale: 2", "3 100000004 8" },
        { ", compute_scale: 3", "1 2 4 100000000 8" },
    };
    struct tmp_table t;

    table_open(&t, rows);
    for (size_t i = 0; i < GW_ARRAY_LEN(row); i++) {
        struct fake_job *f = train(t.path, row[i].keys, 2);
        char got[200];

        flush_sizes(f, got, sizeof got);
        CHECK_ROW(!strcmp(got, row[i].want), "flushes with \"%s\": got %s, want %s", row[i].keys,
                  got, row[i].want);
        fake_close(f);
    }
    unlink(t.path);
}

static void installed_models(void)
{
    static const struct {
        const char *model;
        uint32_t flushes;        /* A6 for the fused tables                                    */
        uint64_t bytes;
        uint64_t compute_ps;     /* forward and backward                                       */
    } row[] = {
        { "resnet50-v100-a6", 12, 102220000, UINT64_C(128100000000) },
        { "resnet101-v100-a6", 20, 178200000, UINT64_C(192000000000) },
        { "vgg16-v100-a6", 15, 553460500, UINT64_C(194500000000) },
        { "resnet50", 0, 102228128, UINT64_C(462381000000) },
        { "vgg16", 0, 553430176, UINT64_C(690507000000) },
        { "alexnet", 0, 244403360, UINT64_C(721223000000) },
        { "gnmt", 0, 775063808, UINT64_C(89416000000) },
        { "resnet50-astra", 0, 102011648, UINT64_C(1095314000) },
    };

    for (size_t i = 0; i < GW_ARRAY_LEN(row); i++) {
        struct fake_job *f = train(row[i].model, "", 2);
        uint64_t bytes = 0, compute_ps = 0;
        uint32_t n = fake_marks(f, 0, GW_MARK_COLL_BEGIN);

        for (uint32_t k = 0; k < f->ops; k++) {
            if (f->op[k].rank == 0 && f->op[k].op.mark == GW_MARK_COLL_BEGIN)
                bytes += f->op[k].op.bytes;
            if (f->op[k].rank == 0 && f->op[k].op.kind == GW_OP_COMPUTE &&
                f->op[k].op.resource == GW_RES_COMPUTE)
                compute_ps += f->op[k].op.duration_ps;
        }
        CHECK_ROW(!row[i].flushes || n == row[i].flushes, "%s: %u flushes, want %u", row[i].model,
                  n, row[i].flushes);
        CHECK_ROW(bytes == row[i].bytes, "%s: %llu bytes, want %llu", row[i].model,
                  (unsigned long long)bytes, (unsigned long long)row[i].bytes);
        CHECK_ROW(compute_ps == row[i].compute_ps, "%s: computes %llu ps, want %llu", row[i].model,
                  (unsigned long long)compute_ps, (unsigned long long)row[i].compute_ps);
        fake_close(f);
    }
}

/* ---- data-parallel: time ------------------------------------------------------------------ */

static void scaling_factors(void)
{
    static const struct {
        const char *model;
        uint32_t n;
        double   gbit, compression, want;
        double   step_s;
    } row[] = {
        { "resnet50-v100-a6", 16, 1,   1,  .080, .1281 },
        { "resnet50-v100-a6", 16, 2.5, 1,  .187, .1281 },
        { "resnet50-v100-a6", 16, 10,  1,  .572, .1281 },
        { "resnet50-v100-a6", 16, 25,  1,  .970, .1281 },
        { "resnet50-v100-a6", 16, 100, 1,  .999, .1281 },
        { "resnet50-v100-a6", 64, 5,   1,  .322, .1281 },
        { "resnet50-v100-a6", 64, 10,  2,  .817, .1281 },
        { "resnet50-v100-a6", 64, 10,  5,  .994, .1281 },
        { "vgg16-v100-a6",    16, 10,  1,  .212, .1945 },
        { "vgg16-v100-a6",    16, 40,  1,  .659, .1945 },
        { "vgg16-v100-a6",    16, 100, 1,  .999, .1945 },
        { "vgg16-v100-a6",    64, 25,  1,  .439, .1945 },
        { "vgg16-v100-a6",    64, 10,  2,  .367, .1945 },
    };

    for (size_t i = 0; i < GW_ARRAY_LEN(row); i++) {
        char keys[80];
        struct fake_job *f;
        uint64_t end_ps;
        double   got;

        snprintf(keys, sizeof keys, ", compression: %g", row[i].compression);
        f      = train(row[i].model, keys, row[i].n);
        end_ps = fake_play(f, (uint64_t)(row[i].gbit * 1e9));
        got    = row[i].step_s / ((double)end_ps * 1e-12);
        CHECK_ROW(end_ps != GW_NEVER && fabs(got - row[i].want) <= .002,
                  "%s, %u ranks, %g gbit/s, compression %g: got %.4f, want %.3f", row[i].model,
                  row[i].n, row[i].gbit, row[i].compression, got, row[i].want);
        fake_close(f);
    }
}

/* One layer of 8000 bytes, forward 1 us, backward 2 us, on 2 ranks at 8 gbit/s: 8 us of ring. */
static void iterations(void)
{
    static const struct {
        const char *keys;
        uint64_t want_ps;        /* of one iteration                                           */
    } row[] = {
        { ", reduce_cost: none", 3000000 + 8000000 },
        { ", reduce_cost: a6", 3000000 + 8000000 + 10000000 },
        { ", reduce_cost: none, update: 5us", 3000000 + 8000000 + 5000000 },
        { ", reduce_cost: none, compression: 8", 3000000 + 1000000 },
        { ", reduce_cost: none, compute_scale: 0", 8000000 },
        { ", reduce_cost: none, message_overhead: 1us", 3000000 + 8000000 + 2 * 1000000 },
        { ", reduce_cost: none, collective: ps", 3000000 + 8000000 },
        { ", reduce_cost: none, collective: ps-single", 3000000 + 16000000 },
    };
    struct tmp_table t;

    table_open(&t, "only,8000,1e-6,2e-6,0\n");
    for (size_t i = 0; i < GW_ARRAY_LEN(row); i++) {
        char keys[120];
        struct fake_job *f;

        snprintf(keys, sizeof keys, "%s, iterations: 3", row[i].keys);
        f = train(t.path, keys, 2);
        CU_ASSERT_FATAL(fake_play(f, 8000000000) != GW_NEVER);
        for (uint32_t k = 0; k < 3; k++) {
            uint64_t begin = fake_mark_ps(f, 1, GW_MARK_ITER_BEGIN, k, 0);
            uint64_t end   = fake_mark_ps(f, 1, GW_MARK_ITER_END, k, 0);

            CHECK_ROW(begin == k * row[i].want_ps && end == (k + 1) * row[i].want_ps,
                      "iteration %u with \"%s\": %llu to %llu ps, want %llu each", k, row[i].keys,
                      (unsigned long long)begin, (unsigned long long)end,
                      (unsigned long long)row[i].want_ps);
            CU_ASSERT(fake_mark_ps(f, 0, GW_MARK_COLL_BEGIN, k, 1 + k) != GW_NEVER);
        }
        fake_close(f);
    }
    unlink(t.path);
}

/* Two flushes of 8000 bytes at 2 us and 4 us of the backward pass; the engine is FIFO. */
static void overlap(void)
{
    static const struct {
        const char *keys;
        uint64_t begin_ps[2], end_ps;
    } row[] = {
        { "", { 3000000, 11000000 }, 19000000 },
        { ", overlap: no", { 5000000, 13000000 }, 21000000 },
        { ", compression: 8", { 3000000, 5000000 }, 6000000 },
    };
    struct tmp_table t;

    table_open(&t, "one,8000,1e-6,2e-6,0\ntwo,8000,0,2e-6,0\n");
    for (size_t i = 0; i < GW_ARRAY_LEN(row); i++) {
        char keys[120];
        struct fake_job *f;
        uint64_t end_ps;

        snprintf(keys, sizeof keys, ", fuse: off, reduce_cost: none%s", row[i].keys);
        f      = train(t.path, keys, 2);
        end_ps = fake_play(f, 8000000000);
        for (uint32_t k = 0; k < 2; k++)
            CHECK_ROW(fake_mark_ps(f, 0, GW_MARK_COLL_BEGIN, 0, 1 + k) == row[i].begin_ps[k],
                      "\"%s\": collective %u begins at %llu ps, want %llu", row[i].keys, k,
                      (unsigned long long)fake_mark_ps(f, 0, GW_MARK_COLL_BEGIN, 0, 1 + k),
                      (unsigned long long)row[i].begin_ps[k]);
        CHECK_ROW(end_ps == row[i].end_ps, "\"%s\": ends at %llu ps, want %llu", row[i].keys,
                  (unsigned long long)end_ps, (unsigned long long)row[i].end_ps);
        fake_close(f);
    }
    unlink(t.path);
}

/* A slow rank holds everybody up by its own delay, and only jittered operations may be slowed. */
static void straggler(void)
{
    struct tmp_table t;
    struct fake_job *f;
    uint64_t end_ps;

    table_open(&t, "only,8000,1e-6,2e-6,0\n");
    f = train(t.path, ", reduce_cost: a6", 4);
    for (uint32_t i = 0; i < f->ops; i++) {
        struct gw_op *op = &f->op[i].op;
        bool compute = op->kind == GW_OP_COMPUTE && op->resource == GW_RES_COMPUTE;

        CU_ASSERT(!!(op->flags & GW_OP_JITTER) == compute);
        if (compute && f->op[i].rank == 2)
            op->duration_ps *= 10;
    }
    end_ps = fake_play(f, 8000000000);
    /* 30 us of compute, then 6 steps of 2000 bytes and 3 additions of 10 us. */
    CHECK_ROW(end_ps == 30000000 + 12000000 + 30000000, "ends at %llu ps, want 72000000",
              (unsigned long long)end_ps);
    fake_close(f);
    unlink(t.path);
}

/* ---- patterns ----------------------------------------------------------------------------- */

struct pattern {
    const char *text;
    uint32_t hosts, radix, ranks;
    const char *want;            /* "src>dst:bytes" of every pair, hosts by number             */
};

static void pair_bytes(const struct fake_job *f, char *buf, size_t n)
{
    size_t at = 0;

    buf[0] = 0;
    for (uint32_t s = 0; s < f->job.ranks; s++)
        for (uint32_t d = 0; d < f->job.ranks && at + 40 < n; d++) {
            uint64_t b = fake_bytes(f, s, d);

            if (b)
                at += (size_t)snprintf(buf + at, n - at, "%s%u>%u:%llu", at ? " " : "",
                                       f->node[s] - FAKE_NODE, f->node[d] - FAKE_NODE,
                                       (unsigned long long)b);
        }
}

static void patterns(void)
{
    static const struct pattern row[] = {
        { "{traffic: permutation, bytes: 5}", 5, 0, 5, "0>2:5 1>3:5 2>4:5 3>0:5 4>1:5" },
        { "{traffic: permutation, bytes: 5, step: 4}", 5, 0, 5, "0>4:5 1>0:5 2>1:5 3>2:5 4>3:5" },
        { "{traffic: permutation, bytes: 1kB}", 2, 2, 2, "0>1:1000 1>0:1000" },
        { "{traffic: permutation, bytes: 1}", 16, 4, 16,
          "0>10:1 1>11:1 2>12:1 3>13:1 4>14:1 5>15:1 6>0:1 7>1:1 8>2:1 9>3:1 10>4:1 11>5:1 "
          "12>6:1 13>7:1 14>8:1 15>9:1" },
        { "{traffic: all-to-all, bytes: 7}", 3, 0, 3, "0>1:7 0>2:7 1>0:7 1>2:7 2>0:7 2>1:7" },
        { "{traffic: incast, to: h1, bytes: 9}", 4, 0, 4, "0>1:9 2>1:9 3>1:9" },
        { "{traffic: incast, to: h3, from: [h2, h0], bytes: 9}", 4, 0, 3, "2>3:9 0>3:9" },
        { "{traffic: incast, to: h3, from: h0, bytes: 9}", 4, 0, 2, "0>3:9" },
        { "{traffic: incast, ranks: all, to: h3, from: all, bytes: 9, iterations: 2}", 4, 0, 4,
          "0>3:18 1>3:18 2>3:18" },
        { "{traffic: flows, flows: [{from: h3, to: h1, bytes: 10MB}, "
          "{from: h3, to: h1, bytes: 5, start: 2ms}, {from: h0, to: h3, bytes: 1, start: 0}]}",
          4, 0, 3, "3>1:10000005 0>3:1" },
    };

    for (size_t i = 0; i < GW_ARRAY_LEN(row); i++) {
        struct fake_job *f = fake_must(row[i].text, row[i].hosts, row[i].radix);
        char got[600];

        CU_ASSERT_FATAL(f->err.code == GW_OK);
        pair_bytes(f, got, sizeof got);
        CHECK_ROW(!strcmp(got, row[i].want), "%s: got %s, want %s", row[i].text, got, row[i].want);
        CHECK_ROW(f->job.ranks == row[i].ranks, "%s: %u ranks, want %u", row[i].text, f->job.ranks,
                  row[i].ranks);
        for (uint32_t r = 0; r < f->job.ranks; r++)
            CU_ASSERT(fake_marks(f, r, GW_MARK_ITER_END) == f->job.iterations);
        for (uint32_t k = 0; k < f->ops; k++)
            CU_ASSERT(f->op[k].op.kind != GW_OP_SEND || !f->op[k].op.bytes ||
                      f->op[k].op.flags == GW_OP_NEW_CONN);
        CHECK_ROW(fake_play(f, 8000000000) != GW_NEVER, "%s: does not end", row[i].text);
        fake_close(f);
    }
}

/*
 * No rank begins an iteration before all have ended the one before, however unequal their work, so
 * that an incast stays one; the messages that see to it have no bytes.
 */
static void iterations_together(void)
{
    static const struct { const char *text; uint32_t hosts; uint64_t iteration_ps; } row[] = {
        { "{traffic: incast, to: h0, bytes: 1000, iterations: 20}", 5, 1000000 },
        { "{traffic: incast, to: h3, from: [h1, h2], bytes: 500, iterations: 20}", 5, 500000 },
        { "{traffic: flows, iterations: 20, flows: [{from: h1, to: h0, bytes: 1000}, "
          "{from: h2, to: h0, bytes: 9000}, {from: h3, to: h4, bytes: 1, start: 7us}]}", 5,
          9000000 },
        { "{traffic: permutation, bytes: 1000, iterations: 20}", 4, 1000000 },
        { "{traffic: all-to-all, bytes: 1000, iterations: 20}", 4, 3000000 },
        { "{traffic: collective, iterations: 20, run: [{op: all-to-all, bytes: 4000, "
          "groups: [[h0, h1]]}, {op: all-to-all, bytes: 8000, groups: [[h2, h3]]}]}", 4, 4000000 },
    };

    for (size_t i = 0; i < GW_ARRAY_LEN(row); i++) {
        struct fake_job *f = fake_must(row[i].text, row[i].hosts, 0);
        uint64_t end_ps = fake_play(f, 8000000000);

        CHECK_ROW(end_ps == 20 * row[i].iteration_ps, "%s: ends at %llu ps, want %llu",
                  row[i].text, (unsigned long long)end_ps,
                  (unsigned long long)(20 * row[i].iteration_ps));
        for (uint32_t k = 0; k < 20; k++)
            for (uint32_t r = 0; r < f->job.ranks; r++) {
                uint64_t begin = fake_mark_ps(f, r, GW_MARK_ITER_BEGIN, k, 0);

                CHECK_ROW(begin == k * row[i].iteration_ps, "%s: rank %u begins iteration %u at "
                          "%llu ps", row[i].text, r, k, (unsigned long long)begin);
            }
        fake_close(f);
    }
}

/* Starts are counted from the begin of each iteration. */
static void flow_starts(void)
{
    struct fake_job *f = fake_must("{traffic: flows, iterations: 2, flows: ["
                                   "{from: h0, to: h1, bytes: 1000, start: 5us}, "
                                   "{from: h2, to: h1, bytes: 1000, start: 1us}]}", 3, 0);
    uint64_t end_ps = fake_play(f, 8000000000);

    CHECK_ROW(end_ps == 2 * 6000000, "ends at %llu ps, want 12000000", (unsigned long long)end_ps);
    CU_ASSERT(fake_mark_ps(f, 1, GW_MARK_ITER_END, 0, 0) == 6000000);
    CU_ASSERT(fake_mark_ps(f, 2, GW_MARK_ITER_END, 0, 0) == 2000000);
    fake_close(f);
}

static void flow_files(void)
{
    static const struct {
        const char *file, *want; /* pairs, or part of the sentence                             */
        bool bad;
    } row[] = {
        { "h0,h1,10MB,5ms\nh1,h0,7,0\n", "0>1:10000000 1>0:7", false },
        { "from,to,bytes,start\nh0,h1,10,5ms\n", "0>1:10", false },
        { "# flows\n\nfrom,to,bytes\nh0,h1,10\n  h1 , h2 , 1KiB \n", "0>1:10 1>2:1024", false },
        { "bytes,start,to,from\n10,,h1,h0\n", "0>1:10", false },
        { "\"h0\",\"h1\",3\n", "0>1:3", false },
        { "h0,h1\n", ":1: a flow is", true },
        { "from,to,bytes,start\nh0,h1,ten,0\n", ":2:", true },
        { "h0,h1,10,5\n", "unit", true },
        { "h0,h9,10,0\n", "no host called \"h9\"", true },
        { "h0,h0,10,0\n", "to itself", true },
        { "h0,h1,0,0\n", "at least 1", true },
        { "h0,h1,1,0,1,extra\n", ":1: a flow is", true },
        { "# nothing\n", "empty", true },
    };

    for (size_t i = 0; i < GW_ARRAY_LEN(row); i++) {
        char path[] = "/tmp/gw-flows-XXXXXX", text[120], got[200];
        int  fd = mkstemp(path);
        struct fake_job *f;

        CU_ASSERT_FATAL(fd >= 0 && write(fd, row[i].file, strlen(row[i].file)) >= 0);
        close(fd);
        snprintf(text, sizeof text, "{traffic: flows, file: %s}", path);
        f = fake_open(text, 4, 0);
        if (row[i].bad) {
            CHECK_ROW(f->err.code != GW_OK && strstr(f->err.text, row[i].want),
                      "%s: says \"%s\", want \"%s\"", row[i].file, f->err.text, row[i].want);
        } else {
            CHECK_ROW(f->err.code == GW_OK, "%s: %s", row[i].file, f->err.text);
            pair_bytes(f, got, sizeof got);
            CHECK_ROW(!strcmp(got, row[i].want), "%s: got %s, want %s", row[i].file, got,
                      row[i].want);
        }
        fake_close(f);
        unlink(path);
    }
}

static void frames(void)
{
    struct fake_job *f = fake_must(
        "{traffic: frames, from: h2, to: h0, arrivals: poisson, generators: ["
        "{flow: 3, size: 1000, interval: 4ms, start: 1s, count: 100, ecn: 2, priority: 5, "
        "dscp: 46, burst: 2, arrivals: constant}, "
        "{size: 1250, rate: 10gbit, load: 80%, count: 7}]}", 3, 0);
    const struct gw_frame_source *s = f->frames;

    CU_ASSERT_FATAL(f->frame_count == 2);
    CU_ASSERT(f->job.ranks == 2 && f->node[0] == FAKE_NODE + 2 && f->node[1] == FAKE_NODE);
    CU_ASSERT(s[0].to == 1 && s[0].flow == 3 && s[0].size_bytes == 1000 && s[0].count == 100);
    CU_ASSERT(s[0].interval_ps == 4 * GW_PS_PER_MS && s[0].start_ps == GW_PS_PER_S);
    CU_ASSERT(s[0].ecn == 2 && s[0].priority == 5 && s[0].dscp == 46 && s[0].burst == 2);
    CU_ASSERT(!s[0].poisson && s[1].poisson);
    CHECK_ROW(s[1].interval_ps == 1250000, "1250 bytes at 8 gbit/s: each %llu ps, want 1250000",
              (unsigned long long)s[1].interval_ps);
    CU_ASSERT(s[1].burst == 1 && s[1].count == 7 && s[1].start_ps == 0);
    fake_close(f);
    f = fake_must("{traffic: frames, from: h0, to: h1, size: 64, interval: 1us, count: 5}", 3, 0);
    CU_ASSERT(f->frame_count == 1 && f->frames[0].interval_ps == GW_PS_PER_US);
    CU_ASSERT(f->frames[0].burst == 1);
    fake_close(f);
    f = fake_must("{traffic: frames, from: h0, to: h1, start: 2s, generators: ["
                  "{size: 64, rate: 512kbit, burst: 2, start: 1s, count: 5}]}", 3, 0);
    CHECK_ROW(f->frames[0].interval_ps == 2 * GW_PS_PER_MS, "2 x 64 bytes at 512 kbit/s: %llu ps, "
              "want 2 ms", (unsigned long long)f->frames[0].interval_ps);
    CU_ASSERT(f->frames[0].start_ps == 3 * GW_PS_PER_S);
    fake_close(f);
}

static void refusals(void)
{
    static const struct {
        const char *text, *want;
    } row[] = {
        { "{traffic: permutation}", "bytes" },
        { "{traffic: permutation, bytes: 0}", "bytes" },
        { "{traffic: permutation, bytes: 1, step: 8}", "step is 8" },
        { "{traffic: incast, to: h9, bytes: 1}", "no host called \"h9\"" },
        { "{traffic: incast, to: h0, from: [h0], bytes: 1}", "receiver itself" },
        { "{traffic: incast, to: h0, from: [h1, h1], bytes: 1}", "twice" },
        { "{traffic: incast, to: h0, from: [], bytes: 1}", "nobody sends" },
        { "{traffic: flows}", "give one of them" },
        { "{traffic: flows, flows: []}", "empty" },
        { "{traffic: flows, flows: [{from: h0, to: h1}]}", "lacks `bytes`" },
        { "{traffic: flows, flows: [{from: h0, to: h1, bytes: 1, size: 2}]}", "no key `size`" },
        { "{traffic: flows, flows: [h0]}", "a flow is a map" },
        { "{traffic: frames, from: h0, to: h1, size: 64, count: 1}", "`interval`, the time between two, or `rate`" },
        { "{traffic: frames, from: h0, to: h1, size: 64, interval: 1us, load: 80%, count: 1}",
          "`interval` and `load` both" },
        { "{traffic: frames, from: h0, to: h1, size: 64, interval: 1us, rate: 1gbit, count: 1}",
          "`interval` and `rate` both" },
        { "{traffic: frames, from: h0, to: h1, generators: [{size: 64, interval: 1us, load: 100%, "
          "count: 1}]}", "`interval` and `load` both" },
        { "{traffic: frames, from: h0, to: h1, size: 64, rate: 1gbit, load: 0%, count: 1}",
          "interval of inf s" },
        { "{traffic: frames, from: h0, to: h1, size: 64, rate: 1gbit, burst: 0, count: 1}", "burst" },
        { "{traffic: frames, from: h0, to: h1, size: 64, interval: 1us}", "count is 0" },
        { "{traffic: frames, from: h0, to: h1, size: 10, interval: 1us, count: 1}", "at least 42" },
        { "{traffic: frames, from: h0, to: h0, size: 64, interval: 1us, count: 1}", "itself" },
        { "{traffic: frames, from: h0, to: h1, size: 64, generators: [{size: 64}]}", "not both" },
        { "{traffic: frames, from: h0, to: h1, size: 64, interval: 1us, count: 1, iterations: 2}",
          "no iterations" },
        { "{traffic: data-parallel}", "model" },
        { "{traffic: data-parallel, model: no-such-model}", "no-such-model" },
        { "{traffic: data-parallel, model: resnet50, collective: ringg}", "ring" },
        { "{traffic: data-parallel, model: resnet50, fuse: maybe}", "fuse" },
        { "{traffic: data-parallel, model: resnet50, fuse: {wait: 5}}", "unit" },
        { "{traffic: data-parallel, model: resnet50, fuse: {byte: 5}}", "bytes" },
        { "{traffic: data-parallel, model: resnet50, iterations: 4000000000}", "2^32" },
        { "{traffic: data-parallel, model: resnet50, compute_scale: 1000000, "
          "reduce_cost: gone}", "gone" },
    };

    for (size_t i = 0; i < GW_ARRAY_LEN(row); i++) {
        struct fake_job *f = fake_open(row[i].text, 4, 0);

        CHECK_ROW(f->err.code != GW_OK && strstr(f->err.text, row[i].want),
                  "%s: says \"%s\", want \"%s\"", row[i].text, f->err.text, row[i].want);
        fake_close(f);
    }
}

static void bad_tables(void)
{
    static const struct {
        const char *rows, *want;
    } row[] = {
        { "", "no rows" },
        { "a,1,0,0\n", ":3: a layer has 5 fields" },
        { "a,1,0,0,0,0\n", ":3: a layer has 5 fields" },
        { "a,1,0,0,0\nb,-1,0,0,0\n", ":4: param_bytes is \"-1\"" },
        { "a,1.5,0,0,0\n", ":3: param_bytes" },
        { "a,1,nan,0,0\n", ":3: forward_s" },
        { "a,1,0,1e9,0\n", ":3: backward_s" },
        { "a,1,0,0,99999999999999999999\n", ":3: activation_bytes" },
        { ",1,0,0,0\n", ":3: the layer has no name" },
        { "a,9000000000000000000,0,0,0\nb,9000000000000000000,0,0,0\n", "2^63" },
        { "a,1,0,9e6,0\nb,1,0,9e6,0\n", "at most 1e7 s" },
    };

    for (size_t i = 0; i < GW_ARRAY_LEN(row); i++) {
        struct tmp_table t;
        struct fake_job *f;
        char text[200];

        table_open(&t, row[i].rows);
        snprintf(text, sizeof text, "{traffic: data-parallel, model: %s, fuse: {bytes: 9100000TB, "
                 "wait: 1h}}", t.path);
        f = fake_open(text, 2, 0);
        CHECK_ROW(f->err.code != GW_OK && strstr(f->err.text, row[i].want),
                  "%s: says \"%s\", want \"%s\"", row[i].rows, f->err.text, row[i].want);
        fake_close(f);
        unlink(t.path);
    }
}

static const struct gw_case cases[] = {
    { "fusion rule", fusion_rule },
    { "installed models", installed_models },
    { "scaling factors of A6", scaling_factors },
    { "iterations", iterations },
    { "iterations that begin together", iterations_together },
    { "overlap", overlap },
    { "straggler", straggler },
    { "patterns", patterns },
    { "starts of flows", flow_starts },
    { "files of flows", flow_files },
    { "frames", frames },
    { "refusals", refusals },
    { "bad tables", bad_tables },
    { NULL, NULL },
};

const struct gw_suite suite_traffic = { "traffic", cases };
