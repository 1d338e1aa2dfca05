/*
 * test_sch_cake - shaper, COBALT, tins, fair flows and hosts, overhead, memory, words
 *
 * tests/data/tc/cake_8m_1flow_lost.txt: which of 12000 frames of 1013 bytes, 811 us apart, a real
 * Linux 6.1 dropped at `cake bandwidth 8mbit besteffort flowblind`, recorded by this project in
 * virtual time; those that came left at multiples of 1013 us. Tables of tins, their targets and the
 * map of DSCPs are recorded from the same kernel and iproute2 6.1.
 */
#include "tests/unit/fake_qdisc.h"

#include <math.h>

extern const struct gw_plugin gw_qdisc_cake;

/* ---- the recorded run --------------------------------------------------------------------- */

static uint32_t read_lost(bool *lost, uint32_t count)
{
    char path[512];
    uint32_t n = 0, seq;
    FILE *in;

    snprintf(path, sizeof path, "%s/tests/data/tc/cake_8m_1flow_lost.txt", GW_TEST_SRCDIR);
    in = fopen(path, "r");
    CU_ASSERT_FATAL(in != NULL);
    for (; fscanf(in, "%u", &seq) == 1; n++) {
        CU_ASSERT_FATAL(seq < count);
        lost[seq] = true;
    }
    fclose(in);
    return n;
}

static void test_recorded(void)
{
    enum { N = 12000 };
    struct fake_gen g[] = { { .size = 1013, .interval_ns = 811000, .count = N }, { .count = 0 } };
    bool *lost = calloc(N, sizeof *lost);
    uint32_t recorded = read_lost(lost, N), differ = 0, first = N, late = 0, same = 0;
    uint64_t k = 0;
    struct fake f;

    CU_ASSERT_FATAL(fake_start(&f, &gw_qdisc_cake, "bandwidth 8mbit besteffort flowblind", 1) ==
                    GW_OK);
    fake_run(&f, g);
    fake_check(&f);
    for (uint32_t i = 0; i < N; i++) {
        bool gone = f.fate[i].left_ps == GW_NEVER;

        differ += gone != lost[i];
        if (gone != lost[i] && first == N)
            first = i;
        same += first == N && gone;
        late += !gone && f.fate[i].left_ps != k++ * 1013 * GW_PS_PER_US;
    }
    CU_ASSERT_EQUAL(f.dropped, recorded);
    CHECK_ROW(same >= 200 && differ <= N / 500, "%u fates differ from the kernel's, the first %u",
              differ, first);
    CHECK_ROW(!late, "%u frames left at other times", late);
    fake_end(&f);
    free(lost);
}

/* Recorded shares of 8 Mbit/s by three overloading flows in diffserv4. */
static void test_tin_shares(void)
{
    struct fake_gen g[] = {
        { .flow = 0, .size = 1000, .interval_ns = 800000, .count = 8000, .dscp = 46 },
        { .flow = 1, .size = 1000, .interval_ns = 800000, .count = 8000, .dscp = 0 },
        { .flow = 2, .size = 1000, .interval_ns = 800000, .count = 8000, .dscp = 8 },
        { .count = 0 },
    };
    static const double want[] = { 2.00025, 5.50069, 0.500062 };
    uint64_t end = UINT64_C(6400) * GW_PS_PER_MS;
    double bits[3] = { 0 };
    struct fake_out x;
    struct fake f;

    CU_ASSERT_FATAL(fake_start(&f, &gw_qdisc_cake, "bandwidth 8mbit diffserv4", 1) == GW_OK);
    fake_run(&f, g);
    fake_check(&f);
    for (uint64_t i = 0; i < f.frames; i++)
        if (f.fate[i].left_ps > end / 10 && f.fate[i].left_ps <= end)
            bits[f.fate[i].gen] += 8000;
    for (int i = 0; i < 3; i++) {
        double mbit = bits[i] / 5.76 / 1e6;

        CHECK_ROW(fabs(mbit / want[i] - 1) < 0.01, "flow %d: %.4f Mbit/s instead of %.4f", i, mbit,
                  want[i]);
    }
    fake_show(&f, &x, true, true);
    CU_ASSERT_PTR_NOT_NULL(strstr(x.text, "memory_used=4195584 memory_limit=4194304 "));
    CU_ASSERT_PTR_NOT_NULL(strstr(x.text, "avg_hdr_offset=14 "));
    fake_end(&f);
}

/* ---- the shaper and lengths --------------------------------------------------------------- */

/* Frames 1000 bytes long leave one after the other at the adjusted length's time. */
static void test_overhead(void)
{
    static const struct { const char *words; uint32_t size, adjusted; } rows[] = {
        { "", 1000, 1000 },                          { "raw overhead 5", 1000, 1005 },
        { "overhead 0", 1000, 986 },                 { "overhead 18", 1000, 1004 },
        { "overhead -20", 1000, 966 },               { "ethernet", 60, 84 },
        { "ethernet", 1000, 1024 },                  { "atm", 1000, 21 * 53 },
        { "conservative", 1000, (986 + 48 + 47) / 48 * 53 },
        { "pppoe-ptm", 1000, 1016 + 16 },            { "docsis mpu 256", 100, 256 },
        { "overhead 14 mpu 64 noatm", 40, 64 },      { "ether-vlan ether-vlan", 1000, 994 },
    };

    for (size_t i = 0; i < GW_ARRAY_LEN(rows); i++) {
        struct fake_gen g[] = { { .size = rows[i].size, .count = 5, .burst = 5 }, { .count = 0 } };
        uint64_t wrong = 0;
        char words[128];
        struct fake f;

        snprintf(words, sizeof words, "bandwidth 8mbit flowblind %s", rows[i].words);
        CU_ASSERT_FATAL(fake_start(&f, &gw_qdisc_cake, words, 1) == GW_OK);
        fake_run(&f, g);
        for (uint64_t k = 0; k < 5; k++)
            wrong += f.fate[k].left_ps != k * rows[i].adjusted * GW_PS_PER_US;
        CHECK_ROW(!wrong, "%s: second frame at %.3f us instead of %u", rows[i].words,
                  (double)f.fate[1].left_ps / 1e6, rows[i].adjusted);
        fake_end(&f);
    }
}

/* The shaper saves up nothing while it idles. */
static void test_idle(void)
{
    struct fake_gen g[] = { { .size = 1000, .count = 3, .burst = 3 },
                            { .size = 1000, .count = 3, .burst = 3, .start_ns = 50000000 },
                            { .count = 0 } };
    struct fake f;

    CU_ASSERT_FATAL(fake_start(&f, &gw_qdisc_cake, "bandwidth 8mbit", 1) == GW_OK);
    fake_run(&f, g);
    for (uint64_t i = 0; i < 6; i++)
        CU_ASSERT_EQUAL(f.fate[i].left_ps, (i / 3 * 50 + i % 3) * GW_PS_PER_MS);
    fake_end(&f);
}

/* ---- flows and hosts ---------------------------------------------------------------------- */

/* Bytes per flow of @f between @from and the end. */
static void share_of(const struct fake *f, const struct fake_gen *g, uint64_t from_ps,
                     double *bytes)
{
    for (uint64_t i = 0; i < f->frames; i++)
        if (f->fate[i].left_ps != GW_NEVER && f->fate[i].left_ps >= from_ps)
            bytes[f->fate[i].gen] += g[f->fate[i].gen].size;
}

/* Host 1 has three flows, host 2 one; each sends more than it gets. What each flow gets is a share
 * of the whole, in twelfths. */
static void test_hosts(void)
{
    static const struct { const char *words; double part[4]; } rows[] = {
        { "flows", { 3, 3, 3, 3 } },
        { "dual-srchost", { 2, 2, 2, 6 } },
        { "dual-dsthost", { 3, 3, 3, 3 } },
        { "triple-isolate", { 3, 3, 3, 3 } },    /* all go to one destination: four flows there */
        { "srchost", { 2, 2, 2, 6 } },
        { "dsthost", { 3, 3, 3, 3 } },
    };

    for (size_t i = 0; i < GW_ARRAY_LEN(rows); i++) {
        struct fake_gen g[5] = { { .count = 0 } };
        double bytes[4] = { 0 }, sum = 0;
        char words[128];
        struct fake f;

        for (uint32_t k = 0; k < 4; k++)
            g[k] = (struct fake_gen){ .flow = k, .size = 500, .interval_ns = 500000 + k,
                .start_ns = k * 1000, .count = 20000, .src = k < 3 ? 1 : 2, .dst = 9 };
        snprintf(words, sizeof words, "bandwidth 8mbit besteffort memlimit 256m %s", rows[i].words);
        CU_ASSERT_FATAL(fake_start(&f, &gw_qdisc_cake, words, 7) == GW_OK);
        fake_run(&f, g);
        fake_check(&f);
        for (uint64_t k = 0; k < f.frames; k++)
            if (f.fate[k].left_ps > 2 * GW_PS_PER_S && f.fate[k].left_ps < 10 * GW_PS_PER_S)
                bytes[f.fate[k].gen] += 500;
        for (int k = 0; k < 4; k++)
            sum += bytes[k];
        for (int k = 0; k < 4; k++)
            CHECK_ROW(fabs(bytes[k] / sum * 12 - rows[i].part[k]) < 0.12, "%s: flow %d got %.3f "
                      "twelfths instead of %g", rows[i].words, k, bytes[k] / sum * 12,
                      rows[i].part[k]);
        fake_end(&f);
    }
}

/* A thin flow overtakes the queue of a greedy one; each keeps its order; without collisions 100
 * flows have 100 queues. */
static void test_sparse(void)
{
    struct fake_gen g[] = {
        { .flow = 1, .size = 1000, .interval_ns = 800000, .count = 8000 },
        { .flow = 2, .size = 200, .interval_ns = 20000000, .count = 320 },
        { .count = 0 },
    };
    double worst = 0, bytes[2] = { 0 };
    uint64_t last[2] = { 0 };
    struct fake f;

    CU_ASSERT_FATAL(fake_start(&f, &gw_qdisc_cake, "bandwidth 8mbit", 3) == GW_OK);
    fake_run(&f, g);
    fake_check(&f);
    for (uint64_t i = 0; i < f.frames; i++) {
        const struct fake_fate *x = &f.fate[i];

        if (x->left_ps == GW_NEVER) {
            CU_ASSERT_EQUAL(x->gen, 0);
            continue;
        }
        CU_ASSERT(x->left_ps >= last[x->gen]);
        last[x->gen] = x->left_ps;
        if (x->gen == 1 && (double)(x->left_ps - x->sent_ps) / 1e9 > worst)
            worst = (double)(x->left_ps - x->sent_ps) / 1e9;
    }
    share_of(&f, g, 0, bytes);
    CU_ASSERT_EQUAL(bytes[1], 320 * 200);
    CHECK_ROW(worst < 2.3, "the thin flow waited %.2f ms", worst);
    fake_end(&f);
}

static void test_collisions(void)
{
    struct fake_gen g = { .size = 100 };
    struct fake_out x;
    struct fake f;

    CU_ASSERT_FATAL(fake_start(&f, &gw_qdisc_cake, "bandwidth 8mbit besteffort", 3) == GW_OK);
    fake_frames(&f, 400);
    for (uint32_t i = 0; i < 400; i++) {
        g.flow = i % 200;
        g.src = i % 200;
        fake_send(&f, i, &g, 0, i);
    }
    fake_show(&f, &x, true, true);
    CU_ASSERT_PTR_NOT_NULL(strstr(x.text, "way_misses=200 way_collisions=0 "));
    CU_ASSERT_PTR_NOT_NULL(strstr(x.text, "sent_packets=400 "));
    f.ops->reset(&f.q, 0);
    CU_ASSERT_EQUAL(f.q.backlog_pkts, 0);
    CU_ASSERT_EQUAL(f.dropped, 400);
    CU_ASSERT_PTR_NULL(f.ops->dequeue(&f.q, 0));
    fake_end(&f);
}

/* ---- tins --------------------------------------------------------------------------------- */

/* In which tin, in the order shown, a packet is counted. */
static int tin_taken(const char *words, uint32_t dscp, uint32_t priority, uint8_t *left_dscp)
{
    struct fake_gen g = { .size = 100, .dscp = dscp, .priority = priority };
    struct fake_out x;
    int tin = -1, i = 0;
    struct fake f;

    CU_ASSERT_FATAL(fake_start(&f, &gw_qdisc_cake, words, 1) == GW_OK);
    fake_frames(&f, 1);
    fake_send(&f, 0, &g, 0, 0);
    fake_show(&f, &x, true, true);
    for (const char *at = x.text; (at = strstr(at, "sent_packets=")); at++, i++)
        if (at[13] == '1')
            tin = tin == -1 ? i : 99;
    if (left_dscp)
        *left_dscp = f.pkt[0].dscp;
    fake_drain(&f);
    fake_end(&f);
    return tin;
}

static void test_dscp(void)
{
    static const char map8[] = "2012422212121212524242423232323262323232622262627222222272222222";
    static const char map4[] = "1011211101111111212121212121212131212121311131313111111131111111";
    static const char map3[] = "1011211101111111111111111111111111111111111121212111111121111111";

    for (uint32_t d = 0; d < 64; d++) {
        CHECK_ROW(tin_taken("diffserv8", d, 0, NULL) == map8[d] - '0', "diffserv8, DSCP %u", d);
        CHECK_ROW(tin_taken("diffserv4", d, 0, NULL) == map4[d] - '0', "diffserv4, DSCP %u", d);
        CHECK_ROW(tin_taken("diffserv3", d, 0, NULL) == map3[d] - '0', "diffserv3, DSCP %u", d);
        CHECK_ROW(tin_taken("precedence", d, 0, NULL) == (int)d / 8, "precedence, DSCP %u", d);
        CHECK_ROW(tin_taken("besteffort", d, 0, NULL) == 0, "besteffort, DSCP %u", d);
    }
}

static void test_tin_override(void)
{
    uint8_t dscp = 0;

    CU_ASSERT_EQUAL(tin_taken("diffserv4", 0, 0x10001, NULL), 0);
    CU_ASSERT_EQUAL(tin_taken("diffserv4", 0, 0x10004, NULL), 3);
    CU_ASSERT_EQUAL(tin_taken("diffserv4", 0, 0x10005, NULL), 1);   /* no such tin: by DSCP    */
    CU_ASSERT_EQUAL(tin_taken("diffserv4", 0, 0x20004, NULL), 1);   /* another's handle        */
    CU_ASSERT_EQUAL(tin_taken("diffserv4 wash", 46, 0, &dscp), 3);
    CU_ASSERT_EQUAL(dscp, 0);
    CU_ASSERT_EQUAL(tin_taken("diffserv4", 46, 0, &dscp), 3);
    CU_ASSERT_EQUAL(dscp, 46);
}

/* threshold, target, interval, quantum of each tin, as the kernel shows them. */
static void test_tin_table(void)
{
    static const struct { const char *words; uint64_t memory; uint64_t tin[8][4]; } rows[] = {
        { "bandwidth 10mbit", 4194304, { { 78125, 29068, 124068, 300 },
          { 1250000, 5000, 100000, 305 }, { 312500, 7267, 102267, 300 } } },
        { "bandwidth 10mbit diffserv4", 4194304, { { 78125, 29068, 124068, 300 },
          { 1250000, 5000, 100000, 305 }, { 625000, 5000, 100000, 300 },
          { 312500, 7267, 102267, 300 } } },
        { "bandwidth 1gbit precedence", 15503360, { { 125000000, 5000, 100000, 1514 },
          { 109375000, 5000, 100000, 1514 }, { 95703125, 5000, 100000, 1514 },
          { 83740234, 5000, 100000, 1514 }, { 73272704, 5000, 100000, 1514 },
          { 64113616, 5000, 100000, 1514 }, { 56099414, 5000, 100000, 1514 },
          { 49086987, 5000, 100000, 1514 } } },
        { "bandwidth 1mbit diffserv8", 4194304, { { 125000, 18168, 113168, 300 },
          { 109375, 20763, 115763, 300 }, { 95703, 23729, 118729, 300 },
          { 83740, 27119, 122119, 300 }, { 73272, 30994, 125994, 300 },
          { 64113, 35421, 130421, 300 }, { 56098, 40482, 135482, 300 },
          { 49085, 46266, 141266, 300 } } },
        { "bandwidth 100kbit diffserv4", 4194304, { { 781, 2907810, 5815620, 300 },
          { 12500, 181680, 363360, 300 }, { 6250, 363360, 726720, 300 },
          { 3125, 726720, 1453440, 300 } } },
        { "rtt 0 besteffort", 15503360, { { 0, 1, 100000, 1514 } } },
        { "rtt 1us besteffort", 15503360, { { 0, 1, 2, 1514 } } },
        { "rtt 4000s besteffort", 15503360, { { 0, 200000000, 4000000000, 1514 } } },
        { "bandwidth 1mbit rtt 1s", 4194304, { { 7812, 290706, 1240706, 300 },
          { 125000, 50000, 1000000, 300 }, { 31250, 72672, 1022672, 300 } } },
        { "bandwidth 100gbit", 15503360, { { 781250000, 5000, 100000, 1514 },
          { 12500000000, 5000, 100000, 1514 }, { 3125000000, 5000, 100000, 1514 } } },
        { "bandwidth 3mbit besteffort memlimit 32m", 33554432, { { 375000, 6055, 101055, 300 } } },
    };

    for (size_t i = 0; i < GW_ARRAY_LEN(rows); i++) {
        struct fake_out x;
        char want[256];
        const char *at;
        struct fake f;

        CU_ASSERT_FATAL(fake_start(&f, &gw_qdisc_cake, rows[i].words, 1) == GW_OK);
        at = fake_show(&f, &x, true, true);
        snprintf(want, sizeof want, "memory_limit=%llu ", (unsigned long long)rows[i].memory);
        CHECK_ROW(strstr(at, want), "%s: %s", rows[i].words, x.text);
        for (int t = 0; t < 8 && rows[i].tin[t][3]; t++) {
            unsigned long long v[4] = { 0 };

            at = strstr(at, "threshold_rate=");
            CU_ASSERT_FATAL(at != NULL);
            sscanf(at, "threshold_rate=%llu", &v[0]);
            sscanf(strstr(at, "target_us="), "target_us=%llu", &v[1]);
            sscanf(strstr(at, "interval_us="), "interval_us=%llu", &v[2]);
            sscanf(strstr(at, "flow_quantum="), "flow_quantum=%llu", &v[3]);
            for (int k = 0; k < 4; k++)
                CHECK_ROW(v[k] == rows[i].tin[t][k], "%s: tin %d, figure %d: %llu instead of %llu",
                          rows[i].words, t, k, v[k], (unsigned long long)rows[i].tin[t][k]);
            at++;
        }
        CHECK_ROW(!strstr(at, "threshold_rate="), "%s: more tins than expected", rows[i].words);
        fake_end(&f);
    }
}

/* Without a bandwidth, on a link with a rate, tins share by weight 1024 : 64 : 512 : 256. */
static void test_unlimited(void)
{
    struct fake_gen g[] = {
        { .flow = 0, .size = 1000, .interval_ns = 500000, .count = 12000, .dscp = 46 },
        { .flow = 1, .size = 1000, .interval_ns = 500000, .count = 12000, .dscp = 0 },
        { .flow = 2, .size = 1000, .interval_ns = 500000, .count = 12000, .dscp = 18 },
        { .count = 0 },
    };
    static const double want[] = { 256 / 1792., 1024 / 1792., 512 / 1792. };
    double bytes[3] = { 0 }, sum = 0;
    struct fake f;

    CU_ASSERT_FATAL(fake_start(&f, &gw_qdisc_cake, "diffserv4 memlimit 256m", 1) == GW_OK);
    f.rate_bps = 8000000;
    fake_run(&f, g);
    fake_check(&f);
    for (uint64_t i = 0; i < f.frames; i++)
        if (f.fate[i].left_ps > GW_PS_PER_S && f.fate[i].left_ps < 6 * GW_PS_PER_S)
            bytes[f.fate[i].gen] += 1;
    for (int i = 0; i < 3; i++)
        sum += bytes[i];
    for (int i = 0; i < 3; i++)
        CHECK_ROW(fabs(bytes[i] / sum - want[i]) < 0.01, "flow %d: share %.4f instead of %.4f", i,
                  bytes[i] / sum, want[i]);
    fake_end(&f);
}

/* ---- AQM and memory ----------------------------------------------------------------------- */

/* ECT packets are marked instead of dropped. */
static void test_ecn(void)
{
    struct fake_gen g[] = { { .size = 1000, .interval_ns = 970000, .count = 4000, .ecn = 2 },
                            { .count = 0 } };
    struct fake f;

    CU_ASSERT_FATAL(fake_start(&f, &gw_qdisc_cake, "bandwidth 8mbit", 1) == GW_OK);
    fake_run(&f, g);
    fake_check(&f);
    CU_ASSERT_EQUAL(f.dropped, 0);
    CU_ASSERT(f.q.marked_pkts > 20);
    fake_end(&f);
}

/* Over the memory limit the longest queue loses its head; the limit holds after each packet. */
static void test_memory(void)
{
    struct fake_gen g = { .size = 1000 };
    uint32_t kept[2] = { 0, 0 };
    struct fake f;

    CU_ASSERT_FATAL(fake_start(&f, &gw_qdisc_cake, "bandwidth 8mbit besteffort memlimit 69120", 1)
                    == GW_OK);                          /* 30 x 2304                           */
    fake_frames(&f, 110);
    f.now_ps = GW_PS_PER_MS;
    for (uint32_t i = 0; i < 110; i++) {
        g.flow = i >= 100;
        g.src = g.flow;
        fake_send(&f, i, &g, 0, i);
        CU_ASSERT(f.q.backlog_pkts <= 30);
    }
    CU_ASSERT_EQUAL(f.q.backlog_pkts, 30);
    for (uint32_t i = 0; i < 110; i++)
        kept[i >= 100] += !f.fate[i].dropped;
    CU_ASSERT_EQUAL(kept[1], 10);                       /* the short queue lost nothing        */
    CU_ASSERT_EQUAL(kept[0], 20);
    for (uint32_t i = 0; i < 80; i++)
        CU_ASSERT(f.fate[i].dropped);                   /* heads go first                      */
    CU_ASSERT_EQUAL(f.q.drops[GW_DROP_QUEUE_FULL], 80);
    fake_end(&f);
}

/* A limit below one packet: the arriving one itself is what goes. */
static void test_no_room(void)
{
    struct fake_gen g = { .size = 1000 };
    struct fake f;

    CU_ASSERT_FATAL(fake_start(&f, &gw_qdisc_cake, "memlimit 1000", 1) == GW_OK);
    fake_frames(&f, 3);
    for (uint32_t i = 0; i < 3; i++)
        fake_send(&f, i, &g, 0, i);
    CU_ASSERT_EQUAL(f.dropped, 3);
    CU_ASSERT_EQUAL(f.q.backlog_pkts, 0);
    CU_ASSERT_EQUAL(f.q.backlog_bytes, 0);
    fake_end(&f);
}

/* autorate-ingress: the shaper goes to 15/16 of the rate that arrives. */
static void test_autorate(void)
{
    struct fake_gen g[] = { { .size = 1000, .interval_ns = 2000000, .burst = 4, .count = 8000 },
                            { .count = 0 } };
    unsigned long long rate = 0;
    struct fake_out x;
    struct fake f;

    CU_ASSERT_FATAL(fake_start(&f, &gw_qdisc_cake, "autorate-ingress", 1) == GW_OK);
    fake_run(&f, g);
    fake_check(&f);
    sscanf(strstr(fake_show(&f, &x, true, true), "capacity_estimate="), "capacity_estimate=%llu",
           &rate);
    CHECK_ROW(fabs((double)rate / 2e6 - 1) < 0.02, "estimate %llu, 2000000 bytes/s come",
              rate);
    sscanf(fake_show(&f, &x, true, false), "bandwidth=%llu", &rate);
    CHECK_ROW(fabs((double)rate / 1.875e6 - 1) < 0.02, "bandwidth %llu instead of 1875000", rate);
    fake_end(&f);
}

/* A random program of operations: books add up, the backlog is what waits, all ends empty. */
static void test_random(void)
{
    static const char *const lines[] = { "bandwidth 5mbit", "unlimited", "diffserv8", "besteffort",
        "flows", "triple-isolate", "ingress", "egress", "atm overhead 10", "raw", "memlimit 100k",
        "memlimit 1m", "rtt 5ms" };
    struct gw_rng r;

    gw_rng_open(&r, 17, "cake program");
    for (int round = 0; round < 20; round++) {
        enum { N = 4000 };
        uint64_t waiting = 0, unbooked = 0;
        struct fake f;

        CU_ASSERT_FATAL(fake_start(&f, &gw_qdisc_cake, "bandwidth 20mbit memlimit 300k",
                                   (uint64_t)round) == GW_OK);
        fake_frames(&f, N);
        for (uint32_t i = 0; i < N; i++) {
            struct fake_gen g = { .flow = gw_rng_below(&r, 60), .size = 60 + gw_rng_below(&r, 1455),
                .src = gw_rng_below(&r, 6), .dst = gw_rng_below(&r, 6), .ecn = gw_rng_below(&r, 3),
                .dscp = gw_rng_below(&r, 64) };

            fake_send(&f, i, &g, 0, i);
            f.now_ps += gw_rng_below(&r, 700) * GW_PS_PER_US;
            if (gw_rng_below(&r, 4))
                fake_drain(&f);
            if (!gw_rng_below(&r, 50)) {
                unbooked -= f.dropped;
                CU_ASSERT_EQUAL(fake_change(&f, lines[gw_rng_below(&r, GW_ARRAY_LEN(lines))]),
                                GW_OK);
                unbooked += f.dropped;
            }
            if (!gw_rng_below(&r, 2000))
                f.ops->reset(&f.q, f.now_ps);
        }
        for (uint32_t i = 0; i < N; i++)
            waiting += f.fate[i].left_ps == GW_NEVER && !f.fate[i].dropped;
        CU_ASSERT_EQUAL(waiting, f.q.backlog_pkts);
        fake_drain(&f);
        while (f.wake_ps != GW_NEVER) {
            f.now_ps = f.wake_ps;
            fake_drain(&f);
        }
        CU_ASSERT_EQUAL(f.q.backlog_pkts, 0);
        f.q.dropped_pkts += unbooked;                /* by closed tins, see test_closed_tin    */
        fake_check(&f);
        fake_end(&f);
    }
}

/* What waits in a tin that a change takes away is gone, is `purged`, and is in no book of tc. */
static void test_closed_tin(void)
{
    struct fake_gen g = { .size = 1000, .dscp = 46 };
    struct fake f;

    CU_ASSERT_FATAL(fake_start(&f, &gw_qdisc_cake, "bandwidth 8mbit diffserv4", 3) == GW_OK);
    fake_frames(&f, 20);
    for (uint32_t i = 0; i < 20; i++) {
        g.dscp = i < 12 ? 46 : 0;
        fake_send(&f, i, &g, 0, i);
    }
    CU_ASSERT_EQUAL(fake_change(&f, "besteffort"), GW_OK);
    CU_ASSERT_EQUAL(f.q.backlog_pkts, 8);
    CU_ASSERT_EQUAL(f.q.backlog_bytes, 8000);
    CU_ASSERT_EQUAL(f.dropped, 12);
    CU_ASSERT_EQUAL(f.q.drops[GW_DROP_PURGED], 12);
    CU_ASSERT_EQUAL(f.q.dropped_pkts, 0);
    f.ops->reset(&f.q, 0);
    CU_ASSERT_EQUAL(f.q.drops[GW_DROP_PURGED], 20);
    CU_ASSERT_EQUAL(f.q.dropped_pkts, 8);
    fake_end(&f);
}

/* ---- words, as recorded from iproute2 6.1 -------------------------------------------------- */

static void test_words(void)
{
    static const struct { const char *words, *text; } rows[] = {
        { "", "bandwidth unlimited diffserv3 triple-isolate nonat nowash no-ack-filter split-gso "
          "rtt 100000us raw overhead 0 " },
        { "memlimit 1m", "bandwidth unlimited diffserv3 triple-isolate nonat nowash no-ack-filter "
          "split-gso rtt 100000us raw overhead 0 memlimit 1048576b " },
        { "fwmark 0xf0", "bandwidth unlimited diffserv3 triple-isolate nonat nowash no-ack-filter "
          "split-gso rtt 100000us raw overhead 0 fwmark 0xf0 " },
        { "bandwidth 1mbit diffserv8 wash nat", "bandwidth 125000Bps diffserv8 triple-isolate nat "
          "wash no-ack-filter split-gso rtt 100000us raw overhead 0 " },
        { "overhead -4 mpu 64 ptm", "bandwidth unlimited diffserv3 triple-isolate nonat nowash "
          "no-ack-filter split-gso rtt 100000us ptm overhead -4 mpu 64 " },
        { "ack-filter egress no-split-gso", "bandwidth unlimited diffserv3 triple-isolate nonat "
          "nowash ack-filter no-split-gso rtt 100000us raw overhead 0 " },
        { "ingress ack-filter-aggressive flowblind", "bandwidth unlimited diffserv3 flowblind "
          "nonat nowash ingress ack-filter-aggressive split-gso rtt 100000us raw overhead 0 " },
        { "autorate-ingress bandwidth 5mbit", "bandwidth 625000Bps diffserv3 triple-isolate nonat "
          "nowash no-ack-filter split-gso rtt 100000us raw overhead 0 " },
        { "bandwidth 5mbit autorate-ingress", "bandwidth 625000Bps autorate-ingress diffserv3 "
          "triple-isolate nonat nowash no-ack-filter split-gso rtt 100000us raw overhead 0 " },
        { "overhead 5 raw", "bandwidth unlimited diffserv3 triple-isolate nonat nowash "
          "no-ack-filter split-gso rtt 100000us raw overhead 0 " },
        { "raw overhead 5", "bandwidth unlimited diffserv3 triple-isolate nonat nowash "
          "no-ack-filter split-gso rtt 100000us raw overhead 5 " },
        { "bridged-ptm ether-vlan ether-vlan", "bandwidth unlimited diffserv3 triple-isolate nonat "
          "nowash no-ack-filter split-gso rtt 100000us ptm overhead 30 " },
        { "docsis", "bandwidth unlimited diffserv3 triple-isolate nonat nowash no-ack-filter "
          "split-gso rtt 100000us noatm overhead 18 mpu 64 " },
        { "conservative", "bandwidth unlimited diffserv3 triple-isolate nonat nowash no-ack-filter "
          "split-gso rtt 100000us atm overhead 48 " },
        { "diffserv lan rtt 5ms", "bandwidth unlimited diffserv4 triple-isolate nonat nowash "
          "no-ack-filter split-gso rtt 5000us raw overhead 0 " },
        { "via-ethernet memlimit 0 mpu 0 fwmark 0", "bandwidth unlimited diffserv3 triple-isolate "
          "nonat nowash no-ack-filter split-gso rtt 100000us raw overhead 0 " },
        { "interplanetary dual-srchost", "bandwidth unlimited diffserv3 dual-srchost nonat nowash "
          "no-ack-filter split-gso rtt 1000000000us raw overhead 0 " },
    };

    for (size_t i = 0; i < GW_ARRAY_LEN(rows); i++) {
        struct fake_out x;
        struct fake f;

        CU_ASSERT_FATAL(fake_start(&f, &gw_qdisc_cake, rows[i].words, 1) == GW_OK);
        CHECK_ROW(!strcmp(fake_show(&f, &x, false, false), rows[i].text), "%s: %s", rows[i].words,
                  x.text);
        fake_end(&f);
    }
}

static void test_json(void)
{
    struct fake_out x;
    struct fake f;

    CU_ASSERT_FATAL(fake_start(&f, &gw_qdisc_cake, "bandwidth 8mbit besteffort flowblind ethernet "
                               "fwmark 7", 1) == GW_OK);
    CU_ASSERT_STRING_EQUAL(fake_show(&f, &x, true, false), "bandwidth=1000000 diffserv=besteffort "
        "flowmode=flowblind nat=false wash=false ingress=false ack-filter=disabled split_gso=true "
        "rtt=100000 raw=false atm=noatm overhead=38 mpu=84 fwmark=0x7 ");
    fake_end(&f);
}

/* What a change keeps, line after line, as recorded. */
static void test_change(void)
{
    static const struct { const char *words, *text; } rows[] = {
        { "overhead 10", "bandwidth 1250000Bps diffserv4 triple-isolate nonat nowash no-ack-filter "
          "split-gso rtt 100000us noatm overhead 10 " },
        { "atm", "bandwidth 1250000Bps diffserv4 triple-isolate nonat nowash no-ack-filter "
          "split-gso rtt 100000us atm overhead 10 " },
        { "raw", "bandwidth 1250000Bps diffserv4 triple-isolate nonat nowash no-ack-filter "
          "split-gso rtt 100000us raw overhead 0 " },
        { "unlimited", "bandwidth unlimited diffserv4 triple-isolate nonat nowash no-ack-filter "
          "split-gso rtt 100000us raw overhead 0 " },
        { "besteffort ingress", "bandwidth unlimited besteffort triple-isolate nonat nowash "
          "ingress no-ack-filter split-gso rtt 100000us raw overhead 0 " },
        { "autorate-ingress", "bandwidth unlimited autorate-ingress besteffort triple-isolate "
          "nonat nowash ingress no-ack-filter split-gso rtt 100000us raw overhead 0 " },
        { "bandwidth 3mbit", "bandwidth 375000Bps besteffort triple-isolate nonat nowash ingress "
          "no-ack-filter split-gso rtt 100000us raw overhead 0 " },
        { "fwmark 7", "bandwidth 375000Bps besteffort triple-isolate nonat nowash ingress "
          "no-ack-filter split-gso rtt 100000us raw overhead 0 fwmark 0x7 " },
        { "fwmark 0 mpu 60", "bandwidth 375000Bps besteffort triple-isolate nonat nowash ingress "
          "no-ack-filter split-gso rtt 100000us raw overhead 0 mpu 60 fwmark 0x7 " },
        { "mpu 0 rtt 30ms", "bandwidth 375000Bps besteffort triple-isolate nonat nowash ingress "
          "no-ack-filter split-gso rtt 30000us raw overhead 0 mpu 60 fwmark 0x7 " },
    };
    struct fake f;

    CU_ASSERT_FATAL(fake_start(&f, &gw_qdisc_cake, "bandwidth 10mbit diffserv4", 1) == GW_OK);
    for (size_t i = 0; i < GW_ARRAY_LEN(rows); i++) {
        struct fake_out x;

        CU_ASSERT_EQUAL(fake_change(&f, rows[i].words), GW_OK);
        CHECK_ROW(!strcmp(fake_show(&f, &x, false, false), rows[i].text), "%s: %s", rows[i].words,
                  x.text);
    }
    fake_end(&f);
}

static void test_refused(void)
{
    static const struct { const char *words; enum gw_status want; } rows[] = {
        { "bandwidth abc", GW_SYNTAX }, { "bandwidth", GW_INCOMPLETE },
        { "bandwidth 10%", GW_SYNTAX },
        { "bogus", GW_SYNTAX }, { "target 5ms", GW_SYNTAX }, { "rtt abc", GW_SYNTAX },
        { "overhead -65", GW_SYNTAX }, { "overhead 257", GW_SYNTAX },
        { "overhead 0x10", GW_SYNTAX },
        { "overhead", GW_INCOMPLETE }, { "mpu 257", GW_SYNTAX }, { "mpu -1", GW_SYNTAX },
        { "memlimit abc", GW_SYNTAX }, { "fwmark abc", GW_SYNTAX }, { "fwmark", GW_INCOMPLETE },
        { "datacentre lan", GW_INCOMPLETE }, { "internet oceanic", GW_INCOMPLETE },
        { "help", GW_SYNTAX },
    };

    for (size_t i = 0; i < GW_ARRAY_LEN(rows); i++) {
        struct fake f;

        CHECK_ROW(fake_start(&f, &gw_qdisc_cake, rows[i].words, 1) == rows[i].want && *f.err.text,
                  "%s: %s", rows[i].words, f.err.text);
        fake_end(&f);
    }
}

static void test_stats_text(void)
{
    struct fake_out x;
    struct fake f;

    CU_ASSERT_FATAL(fake_start(&f, &gw_qdisc_cake, "bandwidth 10mbit diffserv4", 1) == GW_OK);
    fake_show(&f, &x, false, true);
    CHECK_ROW(strstr(x.text, " memory used: 0b of 4194304b\n capacity estimate: 1250000Bps\n"
              " min/max network layer size:        65535 /       0\n"
              " min/max overhead-adjusted size:    65535 /       0\n"
              " average network hdr offset:            0\n\n"
              "                   Bulk  Best Effort        Video        Voice\n"
              "  thresh       78125Bps   1250000Bps    625000Bps    312500Bps\n"
              "  target        29068us       5000us       5000us       7267us\n"), "%s", x.text);
    CHECK_ROW(strstr(x.text, "\n  sp_delay          0us          0us          0us          0us\n"
              "  backlog            0b           0b           0b           0b\n"
              "  pkts                0            0            0            0\n"
              "  bytes               0            0            0            0\n"
              "  way_inds            0            0            0            0\n"), "%s", x.text);
    CHECK_ROW(strstr(x.text, "\n  quantum           300          305          300          300\n"),
              "%s", x.text);
    fake_end(&f);
}

static const struct gw_case cases[] = {
    { "the recorded run", test_recorded },
    { "tins' shares, as recorded", test_tin_shares },
    { "overhead", test_overhead },
    { "idle shaper", test_idle },
    { "hosts and flows", test_hosts },
    { "thin flows", test_sparse },
    { "queues without collisions", test_collisions },
    { "DSCPs, as recorded", test_dscp },
    { "tin by priority, wash", test_tin_override },
    { "figures of tins, as recorded", test_tin_table },
    { "no bandwidth", test_unlimited },
    { "ecn", test_ecn },
    { "memory", test_memory },
    { "no room at all", test_no_room },
    { "autorate", test_autorate },
    { "random program", test_random },
    { "words, as recorded", test_words },
    { "JSON", test_json },
    { "change, as recorded", test_change },
    { "a tin that a change closes", test_closed_tin },
    { "refused words", test_refused },
    { "statistics as text", test_stats_text },
    { NULL, NULL },
};
const struct gw_suite suite_sch_cake = { "sch_cake", cases };
