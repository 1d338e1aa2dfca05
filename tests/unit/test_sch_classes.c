/*
 * test_sch_classes - prio, drr, ets and spq_dwrr: who is served when; and all classful disciplines
 * under programs of random operations
 *
 * The random programs set up a tree, offer frames to its classes, let time pass, change, add,
 * delete and graft classes in between, and look at the books after every step: all that was offered
 * has left, was dropped or waits; nobody overtakes within a class; a work-conserving tree never keeps a
 * frame that could leave; nothing remains when time has run out.
 */
#include "tests/unit/tc_bench.h"

/* ---- who is served when ------------------------------------------------------------------- */

struct order_row {
    const char *name, *tc[4];
    const char *in;              /* a letter a frame, all at time 0; see letters               */
    const char *out;             /* the order in which they leave; - : dropped                 */
};

/* What a letter stands for: a priority, a length, a DSCP. */
static const struct { char letter; uint32_t priority, size, dscp; } letters[] = {
    { '0', 0, 1000, 0 }, { '1', 1, 1000, 0 }, { '2', 2, 1000, 0 }, { '6', 6, 1000, 0 },
    { '7', 7, 1000, 0 }, { 'a', 0x10001, 1000, 0 }, { 'b', 0x10002, 1000, 0 },
    { 'c', 0x10003, 1000, 0 }, { 'd', 0x10004, 1000, 0 }, { 'A', 0x10001, 500, 0 },
    { 'B', 0x10002, 500, 0 }, { 'x', 0x20001, 1000, 0 }, { 'y', 0x10000, 1000, 0 },
    { 'z', 0x10099, 1000, 0 }, { 'E', 0, 1000, 46 }, { 'L', 0, 1000, 8 },
};

static const struct order_row orders[] = {
    { "prio: bands of the default map", { "qdisc add dev v0 root handle 1: prio" }, "2060126",
      "6600212" },
    { "prio: class ids choose the band, unknown ones the map's first",
      { "qdisc add dev v0 root handle 1: prio" }, "czbaxy", "azbxyc" },
    { "prio: a map of its own",
      { "qdisc add dev v0 root handle 1: prio bands 2 priomap 0 1 0 0 0 0 0 0 1 0 0 0 0 0 0 0" },
      "1201", "2011" },
    { "prio: a child drops on its own account",
      { "qdisc add dev v0 root handle 1: prio", "qdisc add dev v0 parent 1:1 pfifo limit 1" },
      "0666", "60" },
    { "drr: turns of a quantum",
      { "qdisc add dev v0 root handle 1: drr",
        "class add dev v0 parent 1: classid 1:1 drr quantum 1000",
        "class add dev v0 parent 1: classid 1:2 drr quantum 2000" }, "aaabbbbb", "abbabbab" },
    { "drr: by bytes, not by frames",
      { "qdisc add dev v0 root handle 1: drr",
        "class add dev v0 parent 1: classid 1:1 drr quantum 1000",
        "class add dev v0 parent 1: classid 1:2 drr quantum 1000" }, "aaBBBBBB", "aBBaBBBB" },
    { "drr: a small quantum adds up",
      { "qdisc add dev v0 root handle 1: drr",
        "class add dev v0 parent 1: classid 1:1 drr quantum 300",
        "class add dev v0 parent 1: classid 1:2 drr quantum 1200" }, "aabbbb", "bbbaba" },
    { "drr: what no class takes is dropped",
      { "qdisc add dev v0 root handle 1: drr",
        "class add dev v0 parent 1: classid 1:1 drr" }, "0ab6xyza", "aa" },
    { "ets: strict bands first, then turns",
      { "qdisc add dev v0 root handle 1: ets strict 1 quanta 1000 2000" }, "bccbcbaa", "aabccbcb" },
    { "ets: bands that nothing names share with full frames",
      { "qdisc add dev v0 root handle 1: ets bands 2" }, "aaabbb", "abaabb" },
    { "ets: the map's rest goes to the last band",
      { "qdisc add dev v0 root handle 1: ets strict 3 priomap 2 0" }, "01267", "10267" },
    { "spq_dwrr: higher priorities to earlier classes",
      { "qdisc add dev v0 root handle 1: spq_dwrr strict 8" }, "012670", "762100" },
    { "spq_dwrr: by class selector",
      { "qdisc add dev v0 root handle 1: spq_dwrr strict 8 by dscp" }, "7LE", "EL7" },
    { "spq_dwrr: a limit for each class",
      { "qdisc add dev v0 root handle 1: spq_dwrr strict 2 limit 2000" }, "aaaabbb", "aabb" },
    { "spq_dwrr: a strict class above shares of 1 to 3",
      { "qdisc add dev v0 root handle 1: spq_dwrr strict 1 quanta 1000 3000" }, "bbbccccccaab",
      "aabcccbcccbb" },
    { "htb: the direct queue goes first",
      { "qdisc add dev v0 root handle 1: htb default 2 direct_qlen 2",
        "class add dev v0 parent 1: classid 1:1 htb rate 1gbit burst 1mb cburst 1mb prio 1",
        "class add dev v0 parent 1: classid 1:2 htb rate 1gbit burst 1mb cburst 1mb prio 0" },
      "a0byyya", "yy0baa" },
};

static void letter_frame(struct bench *b, char letter)
{
    size_t k = 0;

    while (k < GW_ARRAY_LEN(letters) && letters[k].letter != letter)
        k++;
    CU_ASSERT_FATAL(k < GW_ARRAY_LEN(letters));
    bench_add(b, 0, letters[k].size, (uint32_t)k, letters[k].priority);
}

/* All frames are offered before any may leave. */
static void run_order(const struct order_row *r)
{
    char out[64] = "";
    size_t n = 0;
    struct gw_pkt *p;
    struct bench b;

    bench_open(&b);
    for (size_t i = 0; i < GW_ARRAY_LEN(r->tc) && r->tc[i]; i++)
        bench_tc(&b, r->tc[i]);
    for (const char *s = r->in; *s; s++)
        letter_frame(&b, *s);
    b.pkt = calloc(b.frames, sizeof *b.pkt);
    CU_ASSERT_PTR_NOT_NULL_FATAL(b.pkt);
    for (uint32_t i = 0; i < b.frames; i++) {
        b.pkt[i].len_bytes = b.frame[i].size;
        b.pkt[i].priority = b.frame[i].priority;
        b.pkt[i].dscp = (uint8_t)letters[b.frame[i].gen].dscp;
        bench_offer(&b, i);
    }
    while ((p = gw_tree_dequeue(b.tree, 0)) && n + 1 < sizeof out)
        out[n++] = letters[b.frame[p - b.pkt].gen].letter;
    CHECK_ROW(!strcmp(out, r->out), "%s: \"%s\" left as \"%s\", want \"%s\"", r->name, r->in, out,
              r->out);
    CU_ASSERT_EQUAL(b.tree->root->backlog_pkts, 0);
    CU_ASSERT_EQUAL(b.lost + n, strlen(r->in));
    bench_close(&b);
}

static void test_order(void)
{
    for (size_t i = 0; i < GW_ARRAY_LEN(orders); i++)
        run_order(&orders[i]);
}

/* Behind a shaper of 10 Mbit/s, frames of different sizes: bytes in the ratio of the quanta. */
static void test_ratio(void)
{
    static const struct { const char *tc[3]; uint32_t size[2]; double ratio; } rows[] = {
        { { "qdisc add dev v0 parent 1:1 handle 2: drr",
            "class add dev v0 parent 2: classid 2:1 drr quantum 1500",
            "class add dev v0 parent 2: classid 2:2 drr quantum 4500" }, { 1500, 200 }, 3 },
        { { "qdisc add dev v0 parent 1:1 handle 2: drr",
            "class add dev v0 parent 2: classid 2:1 drr quantum 300",
            "class add dev v0 parent 2: classid 2:2 drr quantum 100" }, { 64, 1514 }, 1.0 / 3 },
        { { "qdisc add dev v0 parent 1:1 handle 2: ets quanta 2000 7000" }, { 900, 1400 }, 3.5 },
        { { "qdisc add dev v0 parent 1:1 handle 2: spq_dwrr quanta 5000 1000" }, { 100, 1000 },
          0.2 },
    };

    for (size_t i = 0; i < GW_ARRAY_LEN(rows); i++) {
        double bytes[2] = { 0, 0 }, ratio;
        struct bench b;

        bench_open(&b);
        bench_tc(&b, "qdisc add dev v0 root handle 1: htb default 1");
        bench_tc(&b, "class add dev v0 parent 1: classid 1:1 htb rate 10mbit");
        for (size_t k = 0; k < 3 && rows[i].tc[k]; k++)
            bench_tc(&b, rows[i].tc[k]);
        for (uint32_t g = 0; g < 2; g++)
            bench_gen(&b, g, rows[i].size[g], rows[i].size[g] * UINT64_C(500), 0,
                      5000000 / rows[i].size[g], 0x20001 + g, 1);
        bench_play(&b, UINT64_C(2000000000));
        for (uint32_t k = 0; k < b.frames; k++)
            if (b.frame[k].out_ps != GW_NEVER && b.frame[k].out_ps > GW_PS_PER_S / 10)
                bytes[b.frame[k].gen] += b.frame[k].size;
        ratio = bytes[1] / bytes[0];
        CHECK_ROW(ratio > 0.99 * rows[i].ratio && ratio < 1.01 * rows[i].ratio, "%s: bytes in the "
                  "ratio of %.4f, want %.4f", rows[i].tc[0], ratio, rows[i].ratio);
        CU_ASSERT_EQUAL(b.disorder, 0);
        bench_close(&b);
    }
}

/* ---- words -------------------------------------------------------------------------------- */

static void test_words(void)
{
    static const struct { const char *line; int rc; const char *show; } rows[] = {
        { "prio bands 2", 2, NULL }, { "prio bands 4 priomap 0 0 4", 1, NULL },
        { "prio bands x", 1, NULL }, { "prio bands", 255, NULL }, { "prio bands 17", 2, NULL },
        { "prio priomap 1 priomap", 1, NULL }, { "prio x", 1, NULL },
        { "prio multiqueue", 0, "bands 3 priomap 1 2 2 2 1 2 0 0 1 1 1 1 1 1 1 1" },
        { "drr", 0, "drr 8001: root" }, { "drr x", 1, NULL },
        { "ets", 1, NULL }, { "ets bands 2 strict 3", 1, NULL }, { "ets strict", 255, NULL },
        { "ets quanta", 255, NULL }, { "ets quanta 0", 1, NULL }, { "ets quanta x", 1, NULL },
        { "ets quanta 1k", 1, NULL }, { "ets quanta 0x400", 1, NULL },
        { "ets quanta 1 300 9999999", 0, "quanta 256 300 1048576 priomap 2" },
        { "ets strict 3 priomap 1 2 3", 1, NULL }, { "ets strict 3 priomap 300", 1, NULL },
        { "ets strict 3 strict 4", 1, NULL }, { "ets strict 3 foo", 1, NULL },
        { "ets strict 300", 1, NULL }, { "ets bands 17", 1, NULL },
        { "ets bands 3 priomap 0 1 2 0 1 2 0 1 2 0 1 2 0 1 2 0 1", 1, NULL },
        { "ets bands 8 priomap 7 6 5 4 3 2 1 0", 0, "bands 8 quanta 1514 1514 1514 1514 1514 1514 "
          "1514 1514 priomap 7 6 5 4 3 2 1 0 7 7 7 7 7 7 7 7" },
        { "ets strict 8 priomap 7 6 5 4 3 2 1 0", 0,
          "bands 8 strict 8 priomap 7 6 5 4 3 2 1 0 7 7 7 7 7 7 7 7" },
        { "spq_dwrr", 0, "bands 8 strict 0 quanta 1514" },
        { "spq_dwrr strict 2 quanta 3000 limit 100kb by dscp", 0, "bands 3 strict 2 quanta 3000 "
          "limit 100Kb by dscp priomap 2 1 0 0 0 0 0 0 0 0 0 0 0 0 0 0" },
        { "spq_dwrr strict 17", 1, NULL }, { "spq_dwrr by colour", 1, NULL },
        { "spq_dwrr bands 2 strict 2 quanta 1", 1, NULL }, { "spq_dwrr limit", 255, NULL },
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

static void test_ets_class(void)
{
    static const struct { const char *line; int rc; } rows[] = {
        { "class change dev v0 classid 1:2 ets quantum 2650", 0 },
        { "class change dev v0 classid 1:1 ets quantum 2650", 2 },
        { "class add dev v0 parent 1: classid 1:9 ets quantum 2650", 2 },
        { "class del dev v0 classid 1:2", 2 },
        { "class change dev v0 classid 1:2 ets quantum 0", 1 },
        { "class change dev v0 classid 1:2 ets quantum 3k", 1 },
        { "qdisc change dev v0 root handle 1: ets strict 1 quanta 500", 0 },
        { "qdisc change dev v0 root handle 1: ets", 1 },
    };
    struct bench b;

    bench_open(&b);
    bench_tc(&b, "qdisc add dev v0 root handle 1: ets strict 1 bands 3");
    for (size_t i = 0; i < GW_ARRAY_LEN(rows); i++) {
        int rc = bench_tc_at(&b, 0, rows[i].line);

        CHECK_ROW(rc == rows[i].rc, "tc %s: exit code %d, want %d: %s", rows[i].line, rc,
                  rows[i].rc, b.err.text);
        if (!i) {
            bench_tc(&b, "qdisc show dev v0");
            CU_ASSERT_PTR_NOT_NULL(strstr(b.text, "bands 3 strict 1 quanta 2650 1514 priomap 2"));
            bench_tc(&b, "class show dev v0");
            CU_ASSERT_PTR_NOT_NULL(strstr(b.text, "class ets 1:2 root quantum 2650 \n"));
        }
    }
    bench_tc(&b, "qdisc show dev v0");
    CU_ASSERT_PTR_NOT_NULL(strstr(b.text, "bands 2 strict 1 quanta 500 priomap 1"));
    bench_close(&b);
}

/* ---- random programs ---------------------------------------------------------------------- */

struct program {
    const char *name, *setup[8];
    const char *step[10];        /* lines that may come at any time, whatever they answer      */
    uint32_t priority[4];        /* of the frames                                              */
    bool     conserving;         /* a frame may always leave                                   */
};

static const struct program programs[] = {
    { "prio", { "qdisc add dev v0 root handle 1: prio" },
      { "qdisc change dev v0 root handle 1: prio bands 2 priomap 0 1 0 1 0 0 0 0 0 0 0 0 0 0 0 0",
        "qdisc change dev v0 root handle 1: prio bands 16", "qdisc change dev v0 root prio",
        "qdisc add dev v0 parent 1:2 pfifo limit 3", "qdisc replace dev v0 parent 1:2 bfifo",
        "qdisc add dev v0 parent 1:3 handle 5: sfq limit 8", "qdisc del dev v0 parent 1:3" },
      { 0, 6, 2, 0x10001 }, true },
    { "drr", { "qdisc add dev v0 root handle 1: drr",
               "class add dev v0 parent 1: classid 1:1 drr quantum 700",
               "class add dev v0 parent 1: classid 1:2 drr quantum 1514" },
      { "class add dev v0 parent 1: classid 1:3 drr quantum 100", "class del dev v0 classid 1:3",
        "class change dev v0 classid 1:1 drr quantum 3000", "class del dev v0 classid 1:1",
        "class add dev v0 parent 1: classid 1:1 drr quantum 60",
        "qdisc add dev v0 parent 1:2 handle 5: codel limit 9", "qdisc del dev v0 parent 1:2" },
      { 0x10001, 0x10002, 0x10003, 0x10002 }, true },
    { "ets", { "qdisc add dev v0 root handle 1: ets strict 1 quanta 100 2000 3000" },
      { "qdisc change dev v0 root handle 1: ets strict 2 quanta 5000 1",
        "qdisc change dev v0 root handle 1: ets quanta 1000 1000 1000",
        "qdisc change dev v0 root handle 1: ets bands 16 strict 0",
        "class change dev v0 classid 1:3 ets quantum 10",
        "qdisc add dev v0 parent 1:3 handle 5: fq_codel limit 10 flows 4",
        "qdisc del dev v0 parent 1:3" },
      { 0x10001, 0x10002, 0x10003, 5 }, true },
    { "spq_dwrr", { "qdisc add dev v0 root handle 1: spq_dwrr strict 1 quanta 700 1500 limit 9kb" },
      { "qdisc change dev v0 root handle 1: spq_dwrr bands 3 limit 3kb",
        "qdisc change dev v0 root handle 1: spq_dwrr strict 2 quanta 9000",
        "qdisc add dev v0 parent 1:2 handle 5: pfifo_head_drop limit 2",
        "qdisc del dev v0 parent 1:2" },
      { 0, 1, 2, 0x10001 }, true },
    { "tbf", { "qdisc add dev v0 root handle 1: tbf rate 80mbit burst 3000 limit 9000" },
      { "qdisc change dev v0 root handle 1: tbf rate 10mbit burst 1600 limit 5000",
        "qdisc change dev v0 root handle 1: tbf rate 90mbit burst 9000 limit 50000 peakrate "
        "100mbit mtu 1600", "qdisc add dev v0 parent 1:1 handle 5: pfifo_head_drop limit 3",
        "qdisc del dev v0 parent 1:1", "qdisc replace dev v0 parent 1:1 handle 6: drr",
        "qdisc replace dev v0 parent 1:1 handle 7: prio" },
      { 0, 1, 2, 3 }, false },
    { "htb", { "qdisc add dev v0 root handle 1: htb default 11",
               "class add dev v0 parent 1: classid 1:1 htb rate 80mbit burst 1600 cburst 1600",
               "class add dev v0 parent 1:1 classid 1:10 htb rate 30mbit ceil 80mbit prio 1",
               "class add dev v0 parent 1:1 classid 1:11 htb rate 30mbit ceil 60mbit quantum 500",
               "class add dev v0 parent 1:1 classid 1:12 htb rate 10mbit ceil 80mbit prio 2" },
      { "class add dev v0 parent 1:12 classid 1:20 htb rate 5mbit ceil 80mbit",
        "class add dev v0 parent 1:12 classid 1:21 htb rate 5mbit ceil 80mbit prio 3",
        "class del dev v0 classid 1:20", "class del dev v0 classid 1:21",
        "class change dev v0 classid 1:10 htb rate 1mbit ceil 2mbit prio 0",
        "class change dev v0 classid 1:10 htb rate 30mbit ceil 80mbit prio 5",
        "class del dev v0 classid 1:11", "qdisc add dev v0 parent 1:10 handle 5: tbf rate 20mbit "
        "burst 3000 limit 6000", "qdisc del dev v0 parent 1:10",
        "class add dev v0 parent 1:1 classid 1:11 htb rate 1gbit prio 7" },
      { 0x10010, 0x10011, 0x10012, 0x10020 }, false },
    { "htb over netem over prio",
      { "qdisc add dev v0 root handle 1: htb default 1",
        "class add dev v0 parent 1: classid 1:1 htb rate 40mbit",
        "class add dev v0 parent 1: classid 1:2 htb rate 40mbit",
        "qdisc add dev v0 parent 1:1 handle 10: netem delay 1ms limit 20",
        "qdisc add dev v0 parent 1:2 handle 20: prio",
        "qdisc add dev v0 parent 20:1 handle 30: tbf rate 5mbit burst 2000 limit 8000" },
      { "qdisc change dev v0 parent 1:1 handle 10: netem delay 100us limit 9",
        "qdisc del dev v0 parent 20:1", "qdisc add dev v0 parent 20:1 handle 30: tbf rate 9mbit "
        "burst 2000 limit 8000", "class del dev v0 classid 1:2",
        "class add dev v0 parent 1: classid 1:2 htb rate 10mbit" },
      { 0x10001, 0x10002, 6, 0x10002 }, false },
};

static uint32_t dice(uint64_t *state)
{
    *state = *state * UINT64_C(6364136223846793005) + 1442695040888963407;
    return (uint32_t)(*state >> 33);
}

static void random_frames(struct bench *b, const struct program *p, uint64_t *seed)
{
    uint64_t at = 0;

    for (uint32_t i = 0; i < 4000; i++) {
        uint32_t g = dice(seed) % 4;

        at += dice(seed) % 8 ? dice(seed) % 120000 : 0;
        if (!(dice(seed) % 200))
            at += 5000000;
        bench_add(b, at, 60 + dice(seed) % 1455, g, p->priority[g]);
    }
}

/* In a work-conserving tree, what still waits after a frame has been refused is a mistake. */
static void check_conserving(struct bench *b, const struct program *p)
{
    const struct gw_qdisc *q = b->tree->root;

    CHECK_ROW(!p->conserving || !q->backlog_pkts, "%s: %llu packets wait though any might leave",
              p->name, (unsigned long long)q->backlog_pkts);
}

static void run_program(const struct program *p, uint64_t seed)
{
    uint32_t lines = 0, sent;
    struct bench b;

    bench_open(&b);
    for (size_t i = 0; i < GW_ARRAY_LEN(p->setup) && p->setup[i]; i++)
        bench_tc(&b, p->setup[i]);
    while (lines < GW_ARRAY_LEN(p->step) && p->step[lines])
        lines++;
    random_frames(&b, p, &seed);
    bench_ready(&b);
    while (b.played < b.frames) {
        uint32_t n = 1 + dice(&seed) % 40;
        uint64_t now = b.frame[b.played].at_ps;

        while (n-- && b.played < b.frames) {   /* held back, so that queues fill               */
            now = b.frame[b.played].at_ps;
            bench_offer(&b, b.played++);
        }
        if (!(dice(&seed) % 4)) {
            sent = b.sent;
            bench_tc_at(&b, now / 1000, p->step[dice(&seed) % lines]);
            CU_ASSERT_EQUAL(b.sent, sent);
            bench_check_books(&b, p->name);
        }
        bench_drain(&b, now);
        check_conserving(&b, p);
        bench_wait(&b, now, b.played < b.frames ? b.frame[b.played].at_ps : GW_NEVER);
        bench_check_books(&b, p->name);
    }
    CHECK_ROW(!b.tree->root->backlog_pkts, "%s: %llu packets wait for ever", p->name,
              (unsigned long long)b.tree->root->backlog_pkts);
    CHECK_ROW(b.sent > 100, "%s: only %u frames left", p->name, b.sent);
    bench_close(&b);
}

static void test_programs(void)
{
    for (size_t i = 0; i < GW_ARRAY_LEN(programs); i++)
        for (uint64_t seed = 1; seed <= 4; seed++)
            run_program(&programs[i], 1000 * i + seed);
}

/* Order within a class that nobody changes meanwhile. */
static void test_no_overtaking(void)
{
    for (size_t i = 0; i < GW_ARRAY_LEN(programs); i++) {
        uint64_t seed = 77 + i;
        struct bench b;

        bench_open(&b);
        for (size_t k = 0; k < GW_ARRAY_LEN(programs[i].setup) && programs[i].setup[k]; k++)
            bench_tc(&b, programs[i].setup[k]);
        random_frames(&b, &programs[i], &seed);
        bench_play(&b, GW_NEVER);
        CHECK_ROW(!b.disorder, "%s: %u frames were overtaken", programs[i].name, b.disorder);
        CU_ASSERT_EQUAL(b.tree->root->backlog_pkts, 0);
        bench_check_books(&b, programs[i].name);
        bench_close(&b);
    }
}

static const struct gw_case cases[] = {
    { "who is served when", test_order },
    { "shares by quanta", test_ratio },
    { "words", test_words },
    { "classes of ets", test_ets_class },
    { "random programs", test_programs },
    { "no overtaking", test_no_overtaking },
    { NULL, NULL },
};
const struct gw_suite suite_sch_classes = { "sch_classes", cases };
