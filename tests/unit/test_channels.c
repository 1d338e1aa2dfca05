/*
 * test_channels - gilbert, correlated, ber, outage, jitter, trace: statistics of two million packets
 * at the 0.001 level with fixed seeds against closed forms, exact times, refused options and files
 */
#include "tests/unit/stat.h"
#include "tests/unit/suite.h"

#include "emu/core/doc.h"

#include <gradwire/gradwire.h>

#include <math.h>
#include <stdlib.h>

extern const struct gw_plugin gw_channel_gilbert, gw_channel_correlated, gw_channel_ber;
extern const struct gw_plugin gw_channel_outage, gw_channel_jitter, gw_channel_trace;

enum { MANY = 2000000, BER_BITS = 8 * 200 };
static const double Z = STAT_Z;

/* What pkt_flip heard. */
static struct {
    uint64_t flips, packets, bit[BER_BITS];
    uint32_t last;               /* bit of the packet under way, GW_NONE: none yet             */
    bool     disorder;           /* a packet's bits did not come in order                      */
} flipped;

static const char *csv_text;             /* what open_data finds under every name              */
static char csv_dir[512];

static FILE *open_text(const struct gw_host *h, const char *study_dir, const char *shelf,
                       const char *name, char *path, size_t path_bytes, struct gw_error *err)
{
    FILE *f = tmpfile();

    (void)h, (void)shelf, (void)err;
    CU_ASSERT_FATAL(f != NULL);
    snprintf(csv_dir, sizeof csv_dir, "%s", study_dir);
    snprintf(path, path_bytes, "%s", name);
    fputs(csv_text, f);
    rewind(f);
    return f;
}

static void *zeroed(size_t n)
{
    return calloc(1, n);
}

static void note_flip(void *net, struct gw_pkt *p, uint32_t bit)
{
    (void)net, (void)p;
    flipped.packets += flipped.last == GW_NONE;
    flipped.disorder |= flipped.last != GW_NONE && bit <= flipped.last;
    flipped.last = bit;
    flipped.flips++;
    if (bit < BER_BITS)
        flipped.bit[bit]++;
}

static const struct gw_host host = {
    .host_bytes = sizeof host, .alloc = zeroed, .resize = realloc, .release = free,
    .value_get = gw_value_get, .value_where = gw_value_where, .params_read = gw_params_read,
    .open_data = open_text, .pkt_flip = note_flip,
};

struct fixture {
    struct gw_channel c;
    const struct gw_channel_ops *ops;
    const struct gw_plugin *plugin;
    struct gw_doc *doc;
    struct gw_error err;
    uint64_t conf[32];
};

/* A channel from what would stand in a study, e.g. "{loss: 1%, burst: 4}". */
static enum gw_status start(struct fixture *f, const struct gw_plugin *p, const char *yaml,
                            uint64_t seed)
{
    char text[512];

    memset(f, 0, sizeof *f);
    f->plugin = p;
    f->ops = p->ops;
    snprintf(text, sizeof text, "c: %s\n", yaml);
    CU_ASSERT_FATAL(gw_params_check(p->params, p->param_count, p->name, &f->err) == GW_OK);
    f->doc = gw_doc_parse(text, strlen(text), "some/where/study.yaml", &f->err);
    CU_ASSERT_FATAL(f->doc != NULL);
    CU_ASSERT_FATAL(f->ops->conf_bytes <= sizeof f->conf);
    f->c = (struct gw_channel){ .ops = f->ops, .host = &host, .conf = f->conf,
                                .priv = calloc(1, f->ops->priv_bytes) };
    CU_ASSERT_FATAL(f->c.priv != NULL);
    gw_rng_open(&f->c.rng, seed, "link/wan:a/channel");
    if (gw_params_read(p->params, p->param_count, f->conf,
                       gw_value_get(gw_doc_root(f->doc), "c"), NULL, p->name, &f->c.given,
                       &f->err) == GW_OK && f->ops->init(&f->c, &f->err) == GW_OK)
        CU_ASSERT_EQUAL(gw_doc_unused(gw_doc_root(f->doc), NULL, &f->err), GW_OK);
    return f->err.code;
}

static void end(struct fixture *f)
{
    if (f->ops->fini)
        f->ops->fini(&f->c);
    free(f->c.priv);
    gw_doc_free(f->doc);
}

static uint32_t pass(struct fixture *f, uint32_t len, uint64_t at_ps, uint64_t *extra_ps)
{
    struct gw_pkt p = { .len_bytes = len, .ecn = GW_ECN_ECT0 }, copy = p;
    uint32_t fate;

    *extra_ps = 0;
    fate = f->ops->transit(&f->c, &p, at_ps, extra_ps);
    if (memcmp(&p, &copy, sizeof p) || (fate == GW_FATE_LOSS && *extra_ps))
        CU_FAIL("a packet was changed, or a lost one delayed");
    return fate;
}

/* ---- bursts ------------------------------------------------------------------------------- */

/* Loses MANY packets by @yaml; holds the share and the runs to the chain @c. */
static void check_chain(const struct gw_plugin *p, const char *yaml, uint64_t seed, double loss,
                        double burst, const struct stat_chain *c)
{
    double shares[STAT_RUNS], mean, share = stat_chain_runs(c, shares, &mean), chi, z, run;
    struct stat_runs runs = { 0 };
    struct stat_mean m = { 0 };
    struct fixture f;
    uint32_t degrees;

    CU_ASSERT_FATAL(start(&f, p, yaml, seed) == GW_OK);
    CU_ASSERT(f.ops->mean_loss(&f.c, 64) == loss && f.ops->mean_loss(&f.c, 1514) == loss);
    CHECK_ROW(fabs(share / loss - 1) < 1e-6, "%s: the chain loses %.8f", yaml, share);
    CHECK_ROW(burst <= 0 || fabs(mean / burst - 1) < 1e-6, "%s: the chain's bursts are %.8f", yaml,
              mean);
    for (uint32_t i = 0; i < MANY; i++) {
        uint64_t extra;
        int lost = pass(&f, 1514, i * UINT64_C(1000), &extra) == GW_FATE_LOSS;

        stat_add(&m, lost);
        stat_run(&runs, lost);
    }
    z = stat_z(&m, loss, loss * (1 - loss) / 4);
    CHECK_ROW(fabs(z) < Z, "%s: loss %.6f, z %.2f", yaml, m.sum / MANY, z);
    z = stat_run_z(&runs, mean, &run);
    CHECK_ROW(fabs(z) < Z, "%s: mean burst %.4f, z %.2f", yaml, run, z);
    chi = stat_runs_chi(&runs, shares, &degrees);
    CHECK_ROW(degrees && chi < stat_chi_bound(degrees), "%s: bursts: chi square %.1f of %u", yaml,
              chi, degrees);
    end(&f);
}

/* Two states, 0 good and 1 bad; every packet is lost with @bad or @good. */
static struct stat_chain two_states(double enter, double leave, double good, double bad)
{
    return (struct stat_chain){ 2, { { 1 - enter, enter }, { leave, 1 - leave } },
                                { { good, good }, { bad, bad } } };
}

static void test_gilbert(void)
{
    static const struct { const char *yaml; double loss, burst, bad, good; } rows[] = {
        { "{loss: 1%, burst: 4}", 0.01, 4, 1, 0 },
        { "{loss: 0.3%, burst: 17}", 0.003, 17, 1, 0 },
        { "{loss: 20%, burst: 2.5}", 0.2, 2.5, 1, 0 },
        { "{loss: 60%, burst: 8}", 0.6, 8, 1, 0 },
        { "{loss: 5%, burst: 1.0526315789473684}", 0.05, 1.0526315789473684, 1, 0 },
        /* burst is the stay in the bad state; in both states packets may be lost */
        { "{loss: 3%, burst: 12, bad: 40%, good: 0.5%}", 0.03, 12, 0.4, 0.005 },
        { "{loss: 10%, burst: 30, bad: 25%}", 0.1, 30, 0.25, 0 },
        { "{loss: 2.2%, burst: 6, bad: 85%, good: 0.1%}", 0.022, 6, 0.85, 0.001 },
    };

    for (size_t i = 0; i < GW_ARRAY_LEN(rows); i++) {
        double share = (rows[i].loss - rows[i].good) / (rows[i].bad - rows[i].good);
        double leave = 1 / rows[i].burst, enter = leave * share / (1 - share);
        struct stat_chain c = two_states(enter, leave, rows[i].good, rows[i].bad);

        check_chain(&gw_channel_gilbert, rows[i].yaml, 5 + i, rows[i].loss,
                    rows[i].bad < 1 ? 0 : rows[i].burst, &c);
    }
}

static void test_correlated(void)
{
    static const struct { const char *yaml; double loss, rho; } rows[] = {
        { "{loss: 10%, correlation: 25%}", 0.1, 0.25 },
        { "{loss: 5%, correlation: 90%}", 0.05, 0.9 },
        { "{loss: 0.7%, correlation: 60%}", 0.007, 0.6 },
        { "{loss: 70%, correlation: 33%}", 0.7, 0.33 },
        { "{loss: 2%, correlation: 0%}", 0.02, 0 },
    };

    for (size_t i = 0; i < GW_ARRAY_LEN(rows); i++) {
        double p = rows[i].loss, again = p + rows[i].rho * (1 - p);
        struct stat_chain c = two_states(p * (1 - rows[i].rho), 1 - again, 0, 1);

        check_chain(&gw_channel_correlated, rows[i].yaml, 50 + i, p, 1 / (1 - again), &c);
    }
}

/* The first packet's chance is the mean, over many seeds. */
static void test_begin(void)
{
    uint32_t gilbert = 0, correlated = 0;
    enum { SEEDS = 4000 };
    double bound = Z * sqrt(SEEDS * 0.2 * 0.8);

    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        struct fixture f, g;
        uint64_t extra;

        CU_ASSERT_FATAL(start(&f, &gw_channel_gilbert, "{loss: 20%, burst: 50}", seed) == GW_OK);
        CU_ASSERT_FATAL(start(&g, &gw_channel_correlated, "{loss: 20%, correlation: 95%}", seed) ==
                        GW_OK);
        gilbert += pass(&f, 100, 0, &extra) == GW_FATE_LOSS;
        correlated += pass(&g, 100, 0, &extra) == GW_FATE_LOSS;
        end(&f);
        end(&g);
    }
    CHECK_ROW(fabs(gilbert - SEEDS * 0.2) < bound, "gilbert: %u of %d", gilbert, SEEDS);
    CHECK_ROW(fabs(correlated - SEEDS * 0.2) < bound, "correlated: %u of %d", correlated, SEEDS);
}

static void test_ends(void)
{
    static const struct { const struct gw_plugin *p; const char *yaml; bool all; } rows[] = {
        { &gw_channel_gilbert, "{loss: 0, burst: 3}", false },
        { &gw_channel_gilbert, "{loss: 100%, burst: 3}", true },
        { &gw_channel_correlated, "{loss: 0, correlation: 50%}", false },
        { &gw_channel_correlated, "{loss: 100%, correlation: 50%}", true },
        { &gw_channel_ber, "{ber: 0}", false },
        { &gw_channel_ber, "{ber: 1}", true },
    };

    for (size_t i = 0; i < GW_ARRAY_LEN(rows); i++) {
        struct fixture f;
        uint32_t lost = 0;
        uint64_t extra;

        CU_ASSERT_FATAL(start(&f, rows[i].p, rows[i].yaml, 1) == GW_OK);
        for (uint32_t n = 0; n < 50000; n++)
            lost += pass(&f, 1500, n, &extra) == GW_FATE_LOSS;
        CHECK_ROW(lost == (rows[i].all ? 50000 : 0), "%s %s: %u lost", rows[i].p->name,
                  rows[i].yaml, lost);
        CU_ASSERT(f.ops->mean_loss(&f.c, 1500) == (rows[i].all ? 1 : 0));
        end(&f);
    }
}

/* ---- bit errors --------------------------------------------------------------------------- */

/* Each of the BER_BITS bits of each packet was flipped with probability @ber, those of the check sum
 * behind the frame, too. */
static void check_flips(const char *yaml, double ber, uint32_t packets)
{
    double want = ber * MANY * BER_BITS, chi = 0;

    CHECK_ROW(flipped.packets == (want > 0 ? packets : 0) && !flipped.disorder, "%s: %llu packets "
              "were flipped of %u", yaml, (unsigned long long)flipped.packets, packets);
    if (want <= 0)
        return;
    CHECK_ROW(fabs((double)flipped.flips - want) < Z * sqrt(want), "%s: %llu flips", yaml,
              (unsigned long long)flipped.flips);
    chi = stat_chi_equal(flipped.bit, BER_BITS);
    CHECK_ROW(chi < stat_chi_bound(BER_BITS - 1), "%s: places: chi square %.1f", yaml, chi);
}

static void test_ber(void)
{
    static const struct { const char *yaml; double ber, over; uint32_t len, fate; } rows[] = {
        { "{ber: 1e-5}", 1e-5, 4, 1514, GW_FATE_LOSS },
        { "{ber: 1e-5}", 1e-5, 4, 60, GW_FATE_LOSS },
        { "{ber: 3e-7}", 3e-7, 4, 9014, GW_FATE_LOSS },
        { "{ber: 2e-4, overhead: 0, deliver: yes}", 2e-4, 0, 200, GW_FATE_CORRUPT },
        { "{ber: 7e-5, overhead: 4, deliver: yes}", 7e-5, 4, 196, GW_FATE_CORRUPT },
        { "{ber: 1e-6, overhead: 38}", 1e-6, 38, 1514, GW_FATE_LOSS },
    };

    for (size_t i = 0; i < GW_ARRAY_LEN(rows); i++) {
        double p = 1 - pow(1 - rows[i].ber, 8 * (rows[i].len + rows[i].over));
        uint32_t hit = 0, other = 0;
        struct fixture f;

        memset(&flipped, 0, sizeof flipped);
        CU_ASSERT_FATAL(start(&f, &gw_channel_ber, rows[i].yaml, 70 + i) == GW_OK);
        CHECK_ROW(fabs(f.ops->mean_loss(&f.c, rows[i].len) / p - 1) < 1e-6, "%s: mean loss %g",
                  rows[i].yaml, f.ops->mean_loss(&f.c, rows[i].len));
        for (uint32_t n = 0; n < MANY; n++) {
            uint64_t extra;
            uint32_t fate;

            flipped.last = GW_NONE;
            fate = pass(&f, rows[i].len, n, &extra);
            hit += fate == rows[i].fate;
            other += fate && fate != rows[i].fate;
        }
        CHECK_ROW(!other && fabs(hit - MANY * p) < Z * sqrt(MANY * p * (1 - p)), "%s, %u bytes: "
                  "%u hit, expected %.0f", rows[i].yaml, rows[i].len, hit, MANY * p);
        check_flips(rows[i].yaml, rows[i].fate == GW_FATE_CORRUPT ? rows[i].ber : 0, hit);
        end(&f);
    }
}

/* Lengths may alternate: each has its own chance. */
static void test_ber_lengths(void)
{
    uint32_t lost[2] = { 0 };
    struct fixture f;
    double p[2];

    CU_ASSERT_FATAL(start(&f, &gw_channel_ber, "{ber: 2e-5}", 7) == GW_OK);
    for (uint32_t n = 0; n < MANY; n++) {
        uint64_t extra;

        lost[n & 1] += pass(&f, n & 1 ? 1514 : 60, n, &extra) == GW_FATE_LOSS;
    }
    for (int k = 0; k < 2; k++) {
        p[k] = f.ops->mean_loss(&f.c, k ? 1514 : 60);
        CHECK_ROW(fabs(lost[k] - MANY / 2 * p[k]) < Z * sqrt(MANY / 2 * p[k] * (1 - p[k])),
                  "length %d: %u lost", k, lost[k]);
    }
    end(&f);
}

/* ---- outages ------------------------------------------------------------------------------ */

#define THREE "{windows: [{at: 9s, for: 1s}, {at: 1s, for: 1s}, {at: 1500ms, for: 1s}]}"

static void test_outage(void)
{
    static const struct { const char *yaml; uint64_t at_us; bool lost; } rows[] = {
        { "{windows: [{at: 5s, for: 200ms}]}", 4999999, false },
        { "{windows: [{at: 5s, for: 200ms}]}", 5000000, true },
        { "{windows: [{at: 5s, for: 200ms}]}", 5199999, true },
        { "{windows: [{at: 5s, for: 200ms}]}", 5200000, false },
        { THREE, 2400000, true },
        { THREE, 2500000, false },
        { THREE, 9500000, true },
        { THREE, 500000, false },
        { "{windows: [{at: 1s, for: 9s}, {at: 2s, for: 1s}]}", 8000000, true },
        { "{every: 10s, for: 100ms}", 0, true },
        { "{every: 10s, for: 100ms}", 100000, false },
        { "{every: 10s, for: 100ms}", 990099999, true },
        { "{every: 10s, for: 100ms, start: 3s}", 0, false },
        { "{every: 10s, for: 100ms, start: 3s}", 3000000, true },
        { "{every: 10s, for: 100ms, start: 3s}", 13100000, false },
        { "{every: 10s, for: 100ms, windows: [{at: 55s, for: 1s}]}", 55500000, true },
        { "{every: 10s, for: 100ms, windows: [{at: 55s, for: 1s}]}", 50050000, true },
        { "{windows: []}", 0, false },
    };

    for (size_t i = 0; i < GW_ARRAY_LEN(rows); i++) {
        struct fixture f;
        uint64_t extra;

        CHECK_ROW(start(&f, &gw_channel_outage, rows[i].yaml, 1) == GW_OK, "%s", f.err.text);
        CHECK_ROW((pass(&f, 100, rows[i].at_us * GW_PS_PER_US, &extra) == GW_FATE_LOSS) ==
                  rows[i].lost, "%s at %llu us", rows[i].yaml, (unsigned long long)rows[i].at_us);
        CU_ASSERT(f.ops->mean_loss(&f.c, 9) == (strstr(rows[i].yaml, "every") ? 0.01 : 0));
        CU_ASSERT_EQUAL(f.c.rng.counter, 0);
        end(&f);
    }
}

/* ---- jitter ------------------------------------------------------------------------------- */

static double normal_cdf(double x)
{
    return erfc(-x / sqrt(2)) / 2;
}

/* Of an extra delay of mean 10 and standard deviation @d (in ms). */
static double jitter_cdf(const char *shape, double d, double x)
{
    double s = sqrt(log1p(d * d / 100)), a = 1 + sqrt(1 + 100 / (d * d)), least = 10 * (a - 1) / a;

    if (!strcmp(shape, "uniform"))
        return fmin(1, fmax(0, (x - 10) / (2 * sqrt(3) * d) + 0.5));
    if (!strcmp(shape, "normal"))
        return normal_cdf((x - 10) / d);
    if (!strcmp(shape, "lognormal"))
        return x > 0 ? normal_cdf((log(x / 10) + s * s / 2) / s) : 0;
    return x > least ? 1 - pow(least / x, a) : 0;
}

/* Chi square over cells of equal probability. A normal delay below 0 is 0: one more cell. */
static void test_jitter_shapes(void)
{
    static const struct { const char *shape; double d; } rows[] = {
        { "uniform", 2 }, { "uniform", 5.77 }, { "normal", 3 }, { "normal", 0.4 },
        { "lognormal", 3 }, { "lognormal", 20 }, { "pareto", 3 }, { "pareto", 14 },
    };

    for (size_t i = 0; i < GW_ARRAY_LEN(rows); i++) {
        enum { CELLS = 1000 };
        static uint64_t cell[CELLS];
        double none = jitter_cdf(rows[i].shape, rows[i].d, 0), chi, z;
        uint64_t zero = 0, extra;
        struct fixture f;
        char yaml[128];

        memset(cell, 0, sizeof cell);
        snprintf(yaml, sizeof yaml, "{delay: 10ms, jitter: %gms, distribution: %s, reorder: yes}",
                 rows[i].d, rows[i].shape);
        CHECK_ROW(start(&f, &gw_channel_jitter, yaml, 90 + i) == GW_OK, "%s", f.err.text);
        for (uint32_t n = 0; n < MANY; n++) {
            double u;

            CU_ASSERT_FATAL(pass(&f, 100, n, &extra) == GW_FATE_PASS);
            u = (jitter_cdf(rows[i].shape, rows[i].d, (double)extra / 1e9) - none) / (1 - none);
            if (extra)
                cell[u >= 1 ? CELLS - 1 : (uint32_t)(u * CELLS)]++;
            else
                zero++;
        }
        z = ((double)zero - none * MANY) / sqrt(fmax(none * MANY, 1e-9));
        CHECK_ROW(fabs(z) < Z, "%s: %llu at 0", yaml, (unsigned long long)zero);
        chi = stat_chi_equal(cell, CELLS);
        CHECK_ROW(chi < stat_chi_bound(CELLS - 1), "%s: chi square %.1f", yaml, chi);
        CU_ASSERT(f.ops->mean_loss(&f.c, 100) == 0);
        end(&f);
    }
}

/* In order: the arrivals are the running maximum of the same draws; with reorder some overtake. */
static void test_jitter_order(void)
{
    uint64_t latest = 0, overtakes = 0, moved = 0;
    struct fixture a, b;

    CU_ASSERT_FATAL(start(&a, &gw_channel_jitter, "{delay: 5ms, jitter: 1ms, reorder: yes}", 4) ==
                    GW_OK);
    CU_ASSERT_FATAL(start(&b, &gw_channel_jitter, "{delay: 5ms, jitter: 1ms}", 4) == GW_OK);
    CU_ASSERT(a.ops->reorders);
    for (uint32_t n = 0; n < 100000; n++) {
        uint64_t at = n * 300 * GW_PS_PER_US, x, y;

        pass(&a, 100, at, &x);
        pass(&b, 100, at, &y);
        overtakes += at + x < latest;
        if (at + x > latest)
            latest = at + x;
        moved += y != x;
        if (at + y != latest)
            CU_FAIL("an arrival is not the running maximum");
    }
    CU_ASSERT(overtakes > 10000 && overtakes == moved);
    end(&a);
    end(&b);
}

/* The mean that keeping the order makes, against what packets at even gaps see. */
static void test_jitter_ordered_mean(void)
{
    static const struct { const char *options; uint64_t gap_us; double within; } rows[] = {
        { "jitter: 2ms, distribution: normal", 1000, 0.004 },
        { "jitter: 2ms, distribution: normal", 20, 0.004 },
        { "jitter: 3ms, distribution: uniform", 100, 0.004 },
        { "jitter: 3ms, distribution: lognormal", 300, 0.01 },
        { "jitter: 2ms, distribution: pareto", 500, 0.02 },
        { "jitter: 3ms, distribution: normal", 100000, 0.004 },
        { "jitter: 0", 10, 1e-9 },
    };

    for (size_t i = 0; i < GW_ARRAY_LEN(rows); i++) {
        enum { PACKETS = 400000, FIRST = 2000 };
        uint64_t gap = rows[i].gap_us * GW_PS_PER_US, extra;
        double sum = 0, got, want;
        struct fixture f;
        char yaml[160];

        snprintf(yaml, sizeof yaml, "{delay: 10ms, %s}", rows[i].options);
        CHECK_ROW(start(&f, &gw_channel_jitter, yaml, 300 + i) == GW_OK, "%s", f.err.text);
        for (uint32_t n = 0; n < PACKETS; n++) {
            pass(&f, 100, n * gap, &extra);
            sum += n < FIRST ? 0 : (double)extra * 1e-12;
        }
        got = sum / (PACKETS - FIRST);
        want = f.ops->mean_delay(&f.c, gap);
        CHECK_ROW(fabs(got / want - 1) < rows[i].within, "%s every %lluus: mean %g, computed %g",
                  yaml, (unsigned long long)rows[i].gap_us, got, want);
        CHECK_ROW(fabs(f.ops->mean_delay(&f.c, GW_NEVER) - 0.01) < 1e-12, "%s far apart", yaml);
        end(&f);
    }
}

static void hear(void *ctx, const char *sentence)
{
    snprintf(ctx, 600, "%s", sentence);
}

/* What channels say of themselves on a link of 100 Mbit/s; NULL: nothing. */
static void test_advice(void)
{
    static const struct gw_channel_link link = { 100000000, GW_PS_PER_MS, 1514, 24 };
    static const struct { const struct gw_plugin *p; const char *yaml, *says; } rows[] = {
        { &gw_channel_ber, "{ber: 1e-6}", "loses 1.207% of the frames of 1514 bytes and 0.05439% of" },
        { &gw_channel_ber, "{ber: 1e-6, deliver: yes}", "spoils 1.207%" },
        { &gw_channel_ber, "{ber: 0}", NULL },
        { &gw_channel_gilbert, "{loss: 1%, burst: 4}", NULL },
        { &gw_channel_gilbert, "{loss: 1%, burst: 4, bad: 50%}", "1% of the packets are lost, 1.6 in" },
        { &gw_channel_correlated, "{loss: 10%, correlation: 25%}", NULL },
        { &gw_channel_outage, "{every: 10s, for: 100ms}", "take 1% of the time" },
        { &gw_channel_outage, "{windows: [{at: 1s, for: 1s}, {at: 5s, for: 500ms}]}",
          "2 outages, 1.5 s in all, the last until 5.5 s" },
        { &gw_channel_jitter, "{delay: 5ms, jitter: 1ms}", "packets every 1ms by 5.227ms" },
        { &gw_channel_jitter, "{delay: 5ms, jitter: 1ms}", "back to back are delayed by 6.12ms" },
        { &gw_channel_jitter, "{delay: 5ms, jitter: 1ms, reorder: yes}", NULL },
        { &gw_channel_jitter, "{delay: 5ms, jitter: 0}", NULL },
    };

    for (size_t i = 0; i < GW_ARRAY_LEN(rows); i++) {
        char text[600] = "";
        struct fixture f;

        CHECK_ROW(start(&f, rows[i].p, rows[i].yaml, 1) == GW_OK, "%s", f.err.text);
        if (f.ops->advise)
            f.ops->advise(&f.c, &link, hear, text);
        CHECK_ROW(rows[i].says ? strstr(text, rows[i].says) != NULL : !*text, "%s %s: says \"%s\"",
                  rows[i].p->name, rows[i].yaml, text);
        end(&f);
    }
    csv_text = "time_s,loss,delay_ms\n0,0,10\n1,0.5,20\n4,0,0\n";
    struct fixture f;
    char text[600] = "";

    CU_ASSERT_FATAL(start(&f, &gw_channel_trace, "{file: x.csv}", 1) == GW_OK);
    f.ops->advise(&f.c, &link, hear, text);
    CHECK_ROW(strstr(text, "2 rows over 4 s, then again from the first: mean loss 37.5%, mean delay "
                     "17.5 ms"), "trace: says \"%s\"", text);
    end(&f);
}

static void test_jitter_none(void)
{
    static const char *const rows[] = { "uniform", "normal", "lognormal", "pareto" };

    for (size_t i = 0; i < GW_ARRAY_LEN(rows); i++) {
        struct fixture f;
        char yaml[128];
        uint64_t extra;

        snprintf(yaml, sizeof yaml, "{delay: 7ms, jitter: 0, distribution: %s}", rows[i]);
        CU_ASSERT_FATAL(start(&f, &gw_channel_jitter, yaml, 1) == GW_OK);
        pass(&f, 100, 5, &extra);
        CHECK_ROW(extra == 7 * GW_PS_PER_MS, "%s: %llu", rows[i], (unsigned long long)extra);
        end(&f);
    }
}

/* ---- traces ------------------------------------------------------------------------------- */

#define SERIES "time_s,loss,delay_ms\n0,0,10\n1,100%,\n2,0,4\n3,0,30\n5,0,1\n"

static void test_trace(void)
{
    static const struct { const char *yaml; uint64_t at_ms; bool lost; uint64_t extra_us; }
    rows[] = {
        { "{file: x.csv}", 0, false, 10000 },      { "{file: x.csv}", 999, false, 10000 },
        { "{file: x.csv}", 1000, true, 0 },        { "{file: x.csv}", 1999, true, 0 },
        { "{file: x.csv}", 2000, false, 4000 },    { "{file: x.csv}", 4999, false, 30000 },
        { "{file: x.csv}", 5000, false, 10000 },   { "{file: x.csv}", 6500, true, 0 },
        { "{file: x.csv}", 5003000, false, 30000 },
        { "{file: x.csv, repeat: no}", 5000, false, 1000 },
        { "{file: x.csv, repeat: no}", 5000000, false, 1000 },
    };

    csv_text = SERIES;
    for (size_t i = 0; i < GW_ARRAY_LEN(rows); i++) {
        struct fixture f;
        uint64_t extra;
        bool lost;

        CHECK_ROW(start(&f, &gw_channel_trace, rows[i].yaml, 1) == GW_OK, "%s", f.err.text);
        CU_ASSERT_STRING_EQUAL(csv_dir, "some/where/");
        lost = pass(&f, 100, rows[i].at_ms * GW_PS_PER_MS, &extra) == GW_FATE_LOSS;
        CHECK_ROW(lost == rows[i].lost && extra == rows[i].extra_us * GW_PS_PER_US, "%s at %llu "
                  "ms: lost %d, extra %.3f ms", rows[i].yaml, (unsigned long long)rows[i].at_ms,
                  lost, (double)extra / 1e9);
        CU_ASSERT(f.ops->mean_loss(&f.c, 9) == (strstr(rows[i].yaml, "no") ? 0 : 0.2));
        end(&f);
    }
}

/* A row that loses everything leaves no delay behind; packets wait when the delay falls. */
static void test_trace_order(void)
{
    struct fixture f, g;
    uint64_t extra;

    csv_text = "time_ms,delay_us,loss_percent\n0,500,0\n1,-,100\n2,200,0\n3,0,0\n";
    CU_ASSERT_FATAL(start(&f, &gw_channel_trace, "{file: x.csv, repeat: no}", 1) == GW_OK);
    CU_ASSERT_FATAL(start(&g, &gw_channel_trace, "{file: x.csv, repeat: no, reorder: yes}", 1) ==
                    GW_OK);
    pass(&f, 9, 1999999 * UINT64_C(1000) / 2, &extra);          /* in row 0, 500 us             */
    CU_ASSERT_EQUAL(extra, 500 * GW_PS_PER_US);
    CU_ASSERT_EQUAL(pass(&f, 9, 1500 * GW_PS_PER_US, &extra), GW_FATE_LOSS);
    pass(&f, 9, 2999 * GW_PS_PER_US, &extra);
    CU_ASSERT_EQUAL(extra, 200 * GW_PS_PER_US);
    pass(&f, 9, 3000 * GW_PS_PER_US, &extra);                   /* behind it: 199 us            */
    CU_ASSERT_EQUAL(extra, 199 * GW_PS_PER_US);
    pass(&g, 9, 2999 * GW_PS_PER_US, &extra);
    pass(&g, 9, 3000 * GW_PS_PER_US, &extra);
    CU_ASSERT_EQUAL(extra, 0);
    end(&f);
    end(&g);
}

/* Loss by the row in force: 2 %, then 12 %. */
static void test_trace_share(void)
{
    uint32_t lost[2] = { 0, 0 };
    struct fixture f;

    csv_text = "time_s,loss_percent\n0,2\n1,12\n2,0\n";
    CU_ASSERT_FATAL(start(&f, &gw_channel_trace, "{file: x.csv}", 31) == GW_OK);
    for (uint32_t n = 0; n < MANY; n++) {
        uint64_t at = n * 10 * GW_PS_PER_US, extra;

        lost[at / GW_PS_PER_S % 2] += pass(&f, 9, at, &extra) == GW_FATE_LOSS;
    }
    for (int k = 0; k < 2; k++) {
        double p = k ? 0.12 : 0.02;

        CHECK_ROW(fabs(lost[k] - MANY / 2 * p) < Z * sqrt(MANY / 2 * p * (1 - p)),
                  "row %d: %u lost", k, lost[k]);
    }
    CU_ASSERT(fabs(f.ops->mean_loss(&f.c, 9) - 0.07) < 1e-12);
    end(&f);
}

static void test_trace_refused(void)
{
    static const struct { const char *text, *want; } rows[] = {
        { "", "x.csv:" },                          { "time_s\n0\n", "x.csv:1: the first line" },
        { "loss\n0\n", "x.csv:1: the first line" }, { "0,1\n", "x.csv:1: column \"0\"" },
        { "time_s,time_ms,loss\n", "x.csv:1: column \"time_ms\"" },
        { "time_s,loss\n", "no rows" },            { "time_s,loss\n0,1.5\n", "x.csv:2: loss" },
        { "time_s,loss\n0,-1\n", "x.csv:2: loss" }, { "time_s,loss\n0,\n", "x.csv:2: loss" },
        { "time_s,loss\n0,nan\n", "x.csv:2: loss" },
        { "time_s,loss\n0,0\n0,0\n", "x.csv:3: the time is not after" },
        { "time_s,loss\n2,0\n1,0\n", "x.csv:3: the time is not after" },
        { "time_s,loss\n0,0\n\n1,0\n", "x.csv:3: the line is empty" },
        { "time_s,loss\n0\n", "x.csv:2: the row has fewer" },
        { "time_s,loss\n0,0,0\n", "x.csv:2: the row has more" },
        { "time_s,delay_ms\n0,\n", "x.csv:2: a delay is missing" },
        { "time_s,delay_ms\n0,-5\n", "x.csv:2: delay_ms" },
        { "time_s,loss,delay_ms\n0,99%,\n", "x.csv:2: a delay is missing" },
    };

    for (size_t i = 0; i < GW_ARRAY_LEN(rows); i++) {
        struct fixture f;

        csv_text = rows[i].text;
        CHECK_ROW(start(&f, &gw_channel_trace, "{file: x.csv}", 1) != GW_OK &&
                  strstr(f.err.text, rows[i].want), "\"%s\": %s", rows[i].text, f.err.text);
        end(&f);
    }
}

/* ---- options ------------------------------------------------------------------------------ */

static void test_refused(void)
{
    static const struct { const struct gw_plugin *p; const char *yaml; } rows[] = {
        { &gw_channel_gilbert, "{loss: 60%, burst: 1.2}" }, { &gw_channel_gilbert, "{loss: 1%}" },
        { &gw_channel_gilbert, "{burst: 4}" },
        { &gw_channel_gilbert, "{loss: 1%, burst: 0.5}" },
        { &gw_channel_gilbert, "{loss: 30%, burst: 4, bad: 20%}" },
        { &gw_channel_gilbert, "{loss: 1%, burst: 4, good: 2%}" },
        { &gw_channel_gilbert, "{loss: 1%, burst: 4, bad: 2%, good: 2%}" },
        { &gw_channel_correlated, "{loss: 1%, correlation: 100%}" },
        { &gw_channel_correlated, "{loss: 101%, correlation: 10%}" },
        { &gw_channel_ber, "{ber: 1.5}" },          { &gw_channel_ber, "{ber: -1}" },
        { &gw_channel_ber, "{}" },                  { &gw_channel_outage, "{}" },
        { &gw_channel_outage, "{every: 10s}" },     { &gw_channel_outage, "{for: 1s}" },
        { &gw_channel_outage, "{every: 1s, for: 1s}" }, { &gw_channel_outage, "{windows: 5s}" },
        { &gw_channel_outage, "{windows: [5s]}" },  { &gw_channel_outage, "{windows: [{at: 5s}]}" },
        { &gw_channel_outage, "{windows: [{at: 5s, for: 1s}, {at: 5, for: 1s}]}" },
        { &gw_channel_outage, "{windows: [{at: 5s, for: 1s, x: 1}]}" },
        { &gw_channel_jitter, "{delay: 1ms, jitter: 1ms, distribution: uniform}" },
        { &gw_channel_jitter, "{delay: 2ms, jitter: 1ms}" },
        { &gw_channel_jitter, "{delay: 0, jitter: 1ms, distribution: pareto}" },
        { &gw_channel_jitter, "{delay: 5ms, jitter: 1ms, distribution: cauchy}" },
        { &gw_channel_trace, "{}" },                { &gw_channel_trace, "{file: [a, b]}" },
    };

    for (size_t i = 0; i < GW_ARRAY_LEN(rows); i++) {
        struct fixture f;

        CHECK_ROW(start(&f, rows[i].p, rows[i].yaml, 1) == GW_PARAM && *f.err.text, "%s %s: taken",
                  rows[i].p->name, rows[i].yaml);
        end(&f);
    }
}

/* What the line does not name stays; a refused change changes nothing. */
static void test_change(void)
{
    static const struct { const struct gw_plugin *p; const char *yaml; uint32_t row;
                          const char *good, *bad; double after; } rows[] = {
        { &gw_channel_gilbert, "{loss: 5%, burst: 4}", 0, "9%", "95%", 0.09 },
        { &gw_channel_correlated, "{loss: 5%, correlation: 50%}", 0, "9%", NULL, 0.09 },
        { &gw_channel_correlated, "{loss: 5%, correlation: 50%}", 1, "20%", "100%", 0.05 },
        { &gw_channel_ber, "{ber: 1e-6}", 1, "10", NULL, 8.799961e-4 },
    };

    for (size_t i = 0; i < GW_ARRAY_LEN(rows); i++) {
        const struct gw_param *row = &rows[i].p->params[rows[i].row];
        uint64_t conf[32] = { 0 };
        struct fixture f;

        CU_ASSERT_FATAL(start(&f, rows[i].p, rows[i].yaml, 1) == GW_OK);
        CU_ASSERT_EQUAL(gw_param_set(row, conf, rows[i].good, NULL, NULL), GW_OK);
        CU_ASSERT_EQUAL(f.ops->change(&f.c, conf, UINT64_C(1) << rows[i].row, 0, &f.err), GW_OK);
        CHECK_ROW(fabs(f.ops->mean_loss(&f.c, 100) - rows[i].after) < 1e-6, "%s: %g",
                  rows[i].p->name, f.ops->mean_loss(&f.c, 100));
        if (rows[i].bad) {
            CU_ASSERT_EQUAL(gw_param_set(row, conf, rows[i].bad, NULL, NULL), GW_OK);
            CU_ASSERT_EQUAL(f.ops->change(&f.c, conf, UINT64_C(1) << rows[i].row, 0, &f.err),
                            GW_PARAM);
            CHECK_ROW(fabs(f.ops->mean_loss(&f.c, 100) - rows[i].after) < 1e-6, "%s: %g",
                      rows[i].p->name, f.ops->mean_loss(&f.c, 100));
        }
        end(&f);
    }
}

static const struct gw_case cases[] = {
    { "gilbert", test_gilbert },
    { "correlated", test_correlated },
    { "begin in the long run's share", test_begin },
    { "0 and 100 %", test_ends },
    { "bit errors", test_ber },
    { "bit errors, lengths mixed", test_ber_lengths },
    { "outages", test_outage },
    { "jitter: distributions", test_jitter_shapes },
    { "jitter: order", test_jitter_order },
    { "jitter: mean in order", test_jitter_ordered_mean },
    { "jitter: none", test_jitter_none },
    { "advice", test_advice },
    { "trace", test_trace },
    { "trace: order, lost rows", test_trace_order },
    { "trace: share", test_trace_share },
    { "trace: refused files", test_trace_refused },
    { "refused options", test_refused },
    { "change", test_change },
    { NULL, NULL },
};
const struct gw_suite suite_channels = { "channels", cases };
