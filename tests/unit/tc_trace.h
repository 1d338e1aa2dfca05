/*
 * tc_trace.h - frames recorded on a real kernel, sent again through a discipline
 *
 * tests/data/tc/ holds traces that this project recorded from Linux 6.1 in virtual time:
 * seq,gen,size,t_send_ns,t_recv_ns,ce with t_recv -1 for a frame that never came. The recorder's
 * clock is good to about a microsecond.
 */
#ifndef GW_TESTS_TC_TRACE_H
#define GW_TESTS_TC_TRACE_H

#include "tests/unit/fake_qdisc.h"

struct trace_row {
    uint32_t gen, size;
    uint64_t sent_ns;
    int64_t  left_ns;                /* -1: never came                                         */
    bool     ce;
};

struct trace {
    struct trace_row *row;
    uint64_t count;
};

/* The row of frame @seq; makes room. Rows stand in the file as the frames came out. */
static inline struct trace_row *trace_row(struct trace *t, uint64_t seq)
{
    if (seq >= t->count) {
        t->row = realloc(t->row, (seq + 1) * sizeof *t->row);
        CU_ASSERT_FATAL(t->row != NULL);
        memset(t->row + t->count, 0, (seq + 1 - t->count) * sizeof *t->row);
        t->count = seq + 1;
    }
    return &t->row[seq];
}

static inline void trace_read(struct trace *t, const char *name)
{
    char path[512], line[128];
    FILE *in;

    *t = (struct trace){ NULL, 0 };
    snprintf(path, sizeof path, "%s/tests/data/tc/%s", GW_TEST_SRCDIR, name);
    in = fopen(path, "r");
    CU_ASSERT_FATAL(in != NULL);
    while (fgets(line, sizeof line, in)) {
        unsigned long long seq, sent;
        struct trace_row r = { 0 };
        long long left;
        int ce;

        if (sscanf(line, "%llu,%u,%u,%llu,%lld,%d", &seq, &r.gen, &r.size, &sent, &left, &ce) != 6)
            continue;
        r.sent_ns = sent;
        r.left_ns = left;
        r.ce = ce;
        *trace_row(t, seq) = r;
    }
    fclose(in);
    CU_ASSERT_FATAL(t->count > 0);
}

/* Sends the frames when they were sent; their flow is the generator, @ecn the field of IP. */
static inline void trace_replay(struct fake *f, const struct trace *t, uint32_t ecn)
{
    uint64_t i = 0;

    fake_frames(f, t->count);
    while (i < t->count || f->wake_ps != GW_NEVER) {
        uint64_t next = i < t->count ? t->row[i].sent_ns * 1000 : GW_NEVER;

        if (next <= f->wake_ps) {
            struct fake_gen g = { .flow = t->row[i].gen, .size = t->row[i].size, .ecn = ecn };

            f->now_ps = next;
            fake_send(f, i, &g, t->row[i].gen, (uint32_t)i);
            i++;
        } else {
            f->now_ps = f->wake_ps;
        }
        fake_drain(f);
    }
}

/* How many fates differ: lost or not, marked or not, or left more than 1 us off. */
static inline uint64_t trace_differs(const struct fake *f, const struct trace *t, bool times)
{
    uint64_t n = 0;

    for (uint64_t i = 0; i < t->count; i++) {
        const struct fake_fate *x = &f->fate[i];
        const struct trace_row *r = &t->row[i];
        bool lost = x->left_ps == GW_NEVER;
        int64_t off = lost ? 0 : (int64_t)(x->left_ps / 1000) - r->left_ns;

        if (lost != (r->left_ns < 0) || x->ce != r->ce || (times && !lost && (off < -1000 ||
                                                                              off > 1000)))
            n++;
    }
    return n;
}

#endif
