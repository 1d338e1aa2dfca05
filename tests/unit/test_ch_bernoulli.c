/*
 * test_ch_bernoulli - loss rate, independence, exact ends (two million packets, bounds at the 0.001
 * level, fixed seeds)
 */
#include "tests/unit/stat.h"
#include "tests/unit/suite.h"

#include <gradwire/gradwire.h>

enum { MANY = 2000000 };

extern const struct gw_plugin gw_channel_bernoulli;

struct fixture {
    struct gw_channel c;
    const struct gw_channel_ops *ops;
    uint64_t conf[4], priv[16];
};

static enum gw_status start(struct fixture *f, const char *loss, uint64_t seed)
{
    struct gw_error err = { GW_OK, "" };

    memset(f, 0, sizeof *f);
    f->ops = gw_channel_bernoulli.ops;
    CU_ASSERT_FATAL(f->ops->priv_bytes <= sizeof f->priv && f->ops->conf_bytes <= sizeof f->conf);
    f->c = (struct gw_channel){ .ops = f->ops, .conf = f->conf, .priv = f->priv, .given = 1 };
    gw_rng_open(&f->c.rng, seed, "link/wan:a/channel");
    if (gw_param_set(&gw_channel_bernoulli.params[0], f->conf, loss, NULL, &err))
        return err.code;
    return f->ops->init(&f->c, &err);
}

static bool lost(struct fixture *f)
{
    struct gw_pkt p = { .len_bytes = 1514, .ecn = GW_ECN_ECT0 }, copy = p;
    uint64_t extra = 0;
    uint32_t fate = f->ops->transit(&f->c, &p, 0, &extra);

    if (extra || memcmp(&p, &copy, sizeof p) || (fate != GW_FATE_PASS && fate != GW_FATE_LOSS))
        CU_FAIL("a packet was changed or delayed");
    return fate == GW_FATE_LOSS;
}

static void test_rate(void)
{
    static const struct { const char *loss; double p; } rows[] = {
        { "0.01%", 0.0001 }, { "1%", 0.01 }, { "13%", 0.13 }, { "50%", 0.5 }, { "99.9%", 0.999 },
    };

    for (size_t i = 0; i < GW_ARRAY_LEN(rows); i++) {
        double want = rows[i].p * MANY, bound = STAT_Z * sqrt(want * (1 - rows[i].p));
        uint32_t count = 0;
        struct fixture f;

        CU_ASSERT_EQUAL(start(&f, rows[i].loss, 11), GW_OK);
        CU_ASSERT(f.ops->mean_loss(&f.c, 1514) == rows[i].p);
        for (uint32_t k = 0; k < MANY; k++)
            count += lost(&f);
        CHECK_ROW(fabs(count - want) < bound, "%s: lost %u, expected %.0f +- %.0f", rows[i].loss,
                  count, want, bound);
    }
}

static void test_ends(void)
{
    struct fixture none, all;
    uint32_t n = 0, m = 0;

    CU_ASSERT_EQUAL(start(&none, "0", 1), GW_OK);
    CU_ASSERT_EQUAL(start(&all, "100%", 1), GW_OK);
    for (int i = 0; i < 200000; i++) {
        n += lost(&none);
        m += lost(&all);
    }
    CU_ASSERT_EQUAL(n, 0);
    CU_ASSERT_EQUAL(m, 200000);
    CU_ASSERT(all.ops->mean_loss(&all.c, 64) == 1 && none.ops->mean_loss(&none.c, 64) == 0);
    CU_ASSERT_EQUAL(all.c.rng.counter, 100000);     /* two words a packet, at the ends too */
    CU_ASSERT_EQUAL(none.c.rng.counter, 100000);
}

/* Independence: lengths of loss runs are geometric. */
static void test_runs(void)
{
    static const struct { const char *loss; double p; } rows[] = {
        { "3%", 0.03 }, { "20%", 0.2 }, { "85%", 0.85 },
    };

    for (size_t i = 0; i < GW_ARRAY_LEN(rows); i++) {
        struct stat_runs runs = { 0 };
        double share[STAT_RUNS], chi;
        struct fixture f;
        uint32_t degrees;

        CU_ASSERT_EQUAL(start(&f, rows[i].loss, 3), GW_OK);
        for (uint32_t n = 0; n < MANY; n++)
            stat_run(&runs, lost(&f));
        for (int k = 0; k < STAT_RUNS; k++)
            share[k] = (1 - rows[i].p) * pow(rows[i].p, k);
        chi = stat_runs_chi(&runs, share, &degrees);
        CHECK_ROW(degrees && chi < stat_chi_bound(degrees), "%s: chi square %.2f of %u",
                  rows[i].loss, chi, degrees);
    }
}

/* With one seed, what a small rate loses a larger one loses too, and the same twice. */
static void test_coupled(void)
{
    struct fixture a, b, again;
    uint32_t both = 0, wrong = 0;

    CU_ASSERT_EQUAL(start(&a, "1%", 9), GW_OK);
    CU_ASSERT_EQUAL(start(&again, "1%", 9), GW_OK);
    CU_ASSERT_EQUAL(start(&b, "2%", 9), GW_OK);
    for (int i = 0; i < 100000; i++) {
        bool x = lost(&a), y = lost(&b);

        wrong += x && !y;
        wrong += x != lost(&again);
        both += x && y;
    }
    CU_ASSERT_EQUAL(wrong, 0);
    CU_ASSERT(both > 500);
}

static void test_change(void)
{
    struct fixture f;
    uint64_t conf[4] = { 0 };
    double bad = 1.5;

    CU_ASSERT_EQUAL(start(&f, "100%", 1), GW_OK);
    CU_ASSERT_EQUAL(f.ops->change(&f.c, conf, 0, 0, NULL), GW_OK);
    CU_ASSERT(lost(&f));
    CU_ASSERT_EQUAL(gw_param_set(&gw_channel_bernoulli.params[0], conf, "0%", NULL, NULL), GW_OK);
    CU_ASSERT_EQUAL(f.ops->change(&f.c, conf, 1, 0, NULL), GW_OK);
    CU_ASSERT(!lost(&f));
    memcpy(conf, &bad, sizeof bad);
    CU_ASSERT_EQUAL(f.ops->change(&f.c, conf, 1, 0, NULL), GW_PARAM);
    CU_ASSERT(!lost(&f));
}

static void test_bad(void)
{
    static const char *const rows[] = { "1", "0.5", "101%", "-1%", "", "x" };

    for (size_t i = 0; i < GW_ARRAY_LEN(rows); i++) {
        struct fixture f;

        CHECK_ROW(start(&f, rows[i], 1) == GW_PARAM, "%s was taken", rows[i]);
    }
}

static const struct gw_case cases[] = {
    { "loss rate", test_rate },
    { "0 and 100 % are exact", test_ends },
    { "independent", test_runs },
    { "coupled by the seed", test_coupled },
    { "change", test_change },
    { "refused rates", test_bad },
    { NULL, NULL },
};
const struct gw_suite suite_ch_bernoulli = { "ch_bernoulli", cases };
