/*
 * test_sch_netem - netem on a tree: words, what a change keeps, times to the nanosecond, statistics
 *
 * Frames go through a real tree whose port has no rate of its own: it asks again at once after each
 * frame and at the time that next_ps names. Each random row is two million frames, fails beyond the
 * 0.001 level, and has a fixed seed. Expected shares are closed forms, or were computed by a program
 * of its own from the characteristic function of netem's correlated numbers; bursts are held to
 * chains, or to a recurrence of their own with other dice.
 */
#include "tests/unit/stat.h"
#include "tests/unit/suite.h"

#include "emu/core/registry.h"
#include "emu/tc/cmd.h"

#include <gradwire/alg/crandom.h>
#include <gradwire/alg/delayline.h>
#include <gradwire/alg/disttable.h>

#include <stdlib.h>
#include <unistd.h>

#define US GW_PS_PER_US
#define MS GW_PS_PER_MS
#define Z_MAX STAT_Z

extern const struct gw_plugin gw_qdisc_netem;

/* ---- a device without a rate -------------------------------------------------------------- */

struct dev {
    struct gw_registry *r;
    struct gw_tree *t;
    struct gw_pkt  *pool;              /* free ones                                              */
    uint64_t drops[GW_DROP_COUNT];
    uint64_t now_ps, wake_ps;
    uint32_t live;
    /* What comes out; user's. */
    void (*out)(struct dev *d, const struct gw_pkt *p);
    void *ctx;
};

static struct gw_pkt *dev_alloc(void *net)
{
    struct dev *d = net;
    struct gw_pkt *p = d->pool;

    if (p)
        d->pool = p->next;
    else
        p = malloc(sizeof *p);
    memset(p, 0, sizeof *p);
    p->ext = GW_NONE;
    d->live++;
    return p;
}

static void dev_free(void *net, struct gw_pkt *p)
{
    struct dev *d = net;

    p->next = d->pool;
    d->pool = p;
    d->live--;
}

static struct gw_pkt *dev_copy(void *net, const struct gw_pkt *p)
{
    struct gw_pkt *c = dev_alloc(net);

    *c = *p;
    c->next = NULL;
    return c;
}

/* The test needs the last flip only. */
static void dev_flip(void *net, struct gw_pkt *p, uint32_t bit)
{
    (void)net;
    p->flags |= GW_PKT_CORRUPT;
    p->tp[3] = bit;
}

static void dev_drop(void *ctx, struct gw_pkt *p, enum gw_drop_reason why)
{
    struct dev *d = ctx;

    d->drops[why]++;
    dev_free(d, p);
}

static struct gw_tree *dev_named(void *ctx, const char *name, struct gw_error *err)
{
    (void)name, (void)err;
    return ((struct dev *)ctx)->t;
}

/* Runs a tc line; what it shows goes to @text (may be NULL). Returns tc's exit code. */
static int tc_text(struct dev *d, const char *line, char **text)
{
    struct gw_error err = { 0 };
    size_t n = 0;
    FILE *f = text ? open_memstream(text, &n) : NULL;
    struct gw_tc_ctx c = { .ctx = d, .device = dev_named, .now_ps = d->now_ps, .out = f };
    uint32_t count;
    char **word = gw_tc_split(line, &count);
    int rc = gw_tc_run(&c, word, count, &err);

    if (f)
        fclose(f);
    if (rc && !*err.text)
        rc = -1;                                   /* refused without a sentence               */
    if (word) {
        free(word[0]);
        free(word);
    }
    return rc;
}

static int tc(struct dev *d, const char *line)
{
    return tc_text(d, line, NULL);
}

static struct dev *dev_open(uint64_t seed, const char *netem)
{
    struct dev *d = calloc(1, sizeof *d);
    struct gw_error err = { 0 };
    char line[512];

    d->r = gw_registry_new(false, &err);
    CU_ASSERT_PTR_NOT_NULL_FATAL(d->r);
    d->t = gw_tree_new(&(struct gw_tree_conf){ .registry = d->r, .dev = "v", .net = d,
                       .mtu_bytes = 1514, .txqueuelen = 1000, .seed = seed,
                       .data_dir = GW_TEST_SRCDIR "/tests/data/tc", .ctx = d, .drop = dev_drop },
                       &err);
    CU_ASSERT_PTR_NOT_NULL_FATAL(d->t);
    gw_registry_host(d->r)->pkt_alloc = dev_alloc;
    gw_registry_host(d->r)->pkt_free = dev_free;
    gw_registry_host(d->r)->pkt_copy = dev_copy;
    gw_registry_host(d->r)->pkt_flip = dev_flip;
    d->wake_ps = GW_NEVER;
    if (netem) {
        snprintf(line, sizeof line, "qdisc add dev v root handle 1: netem %s", netem);
        CHECK_ROW(tc(d, line) == 0, "%s is refused", line);
    }
    return d;
}

static void dev_close(struct dev *d)
{
    struct gw_pkt *p;

    if (d->t->root)
        tc(d, "qdisc del dev v root");
    CU_ASSERT_EQUAL(d->live, 0);
    gw_tree_free(d->t);
    gw_registry_free(d->r);
    while ((p = d->pool)) {
        d->pool = p->next;
        free(p);
    }
    free(d);
}

static void dev_pull(struct dev *d)
{
    struct gw_pkt *p;

    while ((p = gw_tree_dequeue(d->t, d->now_ps))) {
        if (d->out)
            d->out(d, p);
        dev_free(d, p);
    }
    d->wake_ps = gw_tree_next_ps(d->t, d->now_ps);
    if (d->wake_ps <= d->now_ps)                   /* so often that CUnit should not count     */
        CU_FAIL("a wake-up that is not in the future");
}

/* Lets time pass to @until_ps (GW_NEVER: until nothing is held). */
static void dev_run(struct dev *d, uint64_t until_ps)
{
    while (d->wake_ps != GW_NEVER && d->wake_ps <= until_ps) {
        d->now_ps = d->wake_ps;
        dev_pull(d);
    }
    if (until_ps != GW_NEVER)
        d->now_ps = until_ps;
}

static bool dev_send(struct dev *d, uint64_t seq, uint32_t bytes, uint8_t ecn)
{
    struct gw_pkt *p = dev_alloc(d);

    p->len_bytes = bytes;
    p->ecn = ecn;
    p->tp[0] = seq;
    p->tp[1] = d->now_ps;
    if (gw_tree_enqueue(d->t, p, d->now_ps) == GW_Q_DROPPED) {
        d->drops[d->t->root->drop_reason]++;
        dev_free(d, p);
        d->wake_ps = gw_tree_next_ps(d->t, d->now_ps);
        return false;
    }
    dev_pull(d);
    return true;
}

/* ---- words -------------------------------------------------------------------------------- */

static void test_words(void)
{
    static const struct { const char *words; int rc; const char *shown; } rows[] = {
        { "", 0, "limit 1000" },
        { "limit 1k", 0, "limit 1024" },
        { "limit 4294967295", 0, "limit -1" },
        { "limit auto", 0, "limit auto" },
        { "limit x", 1, "" }, { "limit", 255, "" }, { "limit -1", 1, "" },
        { "delay 10ms", 0, "limit 1000 delay 10ms" },
        { "delay 10us", 0, "limit 1000 delay 9us" },
        { "delay 0.1us", 0, "limit 1000" },
        { "latency 0x10ms 1e-3s", 0, "limit 1000 delay 16ms  1ms" },
        { "de 10Ms 1US", 0, "limit 1000 delay 10ms  0us" },
        { "d 7ms", 0, "limit 1000 delay 7ms" }, { "l 12", 0, "limit 12" },
        { "la 7ms", 0, "limit 1000 delay 7ms" }, { "dr 2%", 0, "limit 1000 loss 2%" },
        { "delay 10ns", 1, "" }, { "delay 1min", 1, "" }, { "delay 1m", 1, "" },
        { "delay 275s", 1, "" }, { "delay 274s", 0, "limit 1000 delay 274s" },
        { "delay -5ms", 1, "" }, { "delay", 255, "" }, { "delay 5ms x", 1, "" },
        { "delay 1s 274s", 0, "limit 1000 delay 1s  2.15s" },
        { "delay 100ms 10ms 25", 0, "limit 1000 delay 100ms  10ms 25%" },
        { "delay 1ms 1ms -1%", 1, "" }, { "delay 1ms 1ms 101%", 1, "" },
        { "delay 10ms 1ms 25% 5", 1, "" },
        { "delay 100ms 10ms distribution normal", 0, "limit 1000 delay 100ms  10ms" },
        { "delay 100ms distribution normal", 1, "" }, { "distribution pareto", 1, "" },
        { "delay 100ms 1ms distribution uniform", 1, "" },
        { "delay 100ms 1ms distribution ../tc/steps", 0, "limit 1000 delay 100ms  1ms" },
        { "delay 100ms 1ms distribution steps", 0, "limit 1000 delay 100ms  1ms" },
        { "delay 100ms 1ms distribution broken", 1, "" },
        { "delay 100ms 1ms distribution", 255, "" },
        { "loss 0.5", 0, "limit 1000 loss 0.5%" }, { "loss .5%", 1, "" }, { "loss -1%", 1, "" },
        { "loss 101%", 1, "" }, { "loss 100%", 0, "limit 1000 loss 100%" },
        { "loss 0% 25%", 0, "limit 1000" }, { "loss 0% loss 3% 20%", 0, "limit 1000 loss 3% 20%" },
        { "loss random 5% 10%", 0, "limit 1000 loss 5% 10%" },
        { "loss random 5% 10% 15%", 1, "" }, { "loss random", 255, "" }, { "loss bogus", 1, "" },
        { "loss 1% loss 2%", 1, "" }, { "loss 2% loss gemodel 1%", 1, "" },
        { "loss state 1% 10%", 0,
          "limit 1000 loss state p13 1% p31 10% p32 0% p23 100% p14 0%" },
        { "loss state 3%", 0, "limit 1000 loss state p13 3% p31 97% p32 0% p23 100% p14 0%" },
        { "loss state 1% 10% 20% 30% 5% ecn", 0,
          "limit 1000 loss state p13 1% p31 10% p32 20% p23 30% p14 5% ecn " },
        { "loss state", 255, "" }, { "loss state x", 1, "" }, { "loss state 1% 10% x", 1, "" },
        { "loss gemodel 1% 10% 70% 0.1%", 0,
          "limit 1000 loss gemodel p 1% r 10% 1-h 70% 1-k 0.1%" },
        { "loss gemodel 0%", 0, "limit 1000 loss gemodel p 0% r 100% 1-h 100% 1-k 0%" },
        { "loss gemodel 200%", 1, "" }, { "loss gemodel 1% 2% 3% 4% 5%", 1, "" },
        { "loss 1% e", 0, "limit 1000 loss 1% ecn " }, { "delay 10ms ecn", 1, "" },
        { "duplicate 1% 25%", 0, "limit 1000 duplicate 1%" },
        { "du 1% 25% loss 1% 0%", 0, "limit 1000 loss 1% duplicate 1% 25%" },
        { "c 1% 5%", 0, "limit 1000 corrupt 1% 5%" }, { "corrupt", 255, "" },
        { "reorder 25% 50% delay 10ms", 0, "limit 1000 delay 10ms reorder 25% 50% gap 1" },
        { "gap 2 reorder 10% delay 1ms", 0, "limit 1000 delay 1ms reorder 10% gap 2" },
        { "reorder 10%", 1, "" }, { "delay 10ms gap 5", 1, "" }, { "gap -3", 1, "" },
        { "rate 1.5mbit", 0, "limit 1000 rate 1500Kbit" },
        { "rate 1kibit", 0, "limit 1000 rate 1024bit" },
        { "rate 1MBPS", 0, "limit 1000 rate 8Mbit" }, { "rate 1mb", 1, "" },
        { "rate 50%", 1, "" }, { "rate", 255, "" },
        { "rate 5kbit 20 100 5", 0,
          "limit 1000 rate 5Kbit packetoverhead 20 cellsize 100 celloverhead 5" },
        { "rate 1mbit -4 53 -1", 0,
          "limit 1000 rate 1Mbit packetoverhead -4 cellsize 53 celloverhead -1" },
        { "rate 1mbit 0 0 0", 0, "limit 1000 rate 1Mbit" }, { "rate 1mbit 99999999999", 1, "" },
        { "slot 800us 1000us packets 32 bytes 64k", 0,
          "limit 1000 slot 800us 1ms packets 32 bytes 65536" },
        { "s 1ms", 0, "limit 1000 slot 1ms 1ms" }, { "slot 3ms 1ms", 1, "" },
        { "slot 2000000", 0, "limit 1000 slot 2ms 2ms" },
        { "slot distribution pareto 1ms 0.1ms", 0, "limit 1000 slot distribution 1ms 100us" },
        { "slot distribution pareto 1ms", 255, "" }, { "slot distribution none 1ms 1ms", 1, "" },
        { "slot distribution normal 1ms 0", 1, "" }, { "slot", 255, "" }, { "slot x", 1, "" },
        { "slot 1ms packets", 1, "" }, { "slot 1ms packets x", 1, "" },
        { "slot 1ms 2ms bytes -1", 1, "" }, { "slot 1ms bytes", 1, "" },
        { "seed 7", 0, "limit 1000 seed 7" }, { "seed -7", 1, "" }, { "seed", 255, "" },
        { "help", 1, "" }, { "bogus", 1, "" }, { "delay 1ms bogus 3", 1, "" },
        { "limit 500 rate 10mbit 14 gap 3 reorder 5% 50% corrupt 0.5% 5% duplicate 2% 10% loss 1% "
          "25% delay 10ms 2ms 25% distribution normal", 0,
          "limit 500 delay 10ms  2ms 25% loss 1% 25% duplicate 2% 10% reorder 5% 50% corrupt 0.5% "
          "5% rate 10Mbit packetoverhead 14 gap 3" },
    };

    for (size_t i = 0; i < GW_ARRAY_LEN(rows); i++) {
        struct dev *d = dev_open(1, NULL);
        char line[512], *text = NULL, *at;
        int rc;

        snprintf(line, sizeof line, "qdisc add dev v root handle 1: netem %s", rows[i].words);
        rc = tc(d, line);
        CHECK_ROW(rc == rows[i].rc, "netem %s: exit %d want %d", rows[i].words, rc, rows[i].rc);
        if (!rows[i].rc) {
            tc_text(d, "qdisc show dev v", &text);
            at = text ? strstr(text, "refcnt 2 ") : NULL;
            if (at)
                at[strcspn(at, "\n")] = 0;
            CHECK_ROW(at && !strcmp(at + 9, rows[i].shown), "netem %s: shows \"%s\" want \"%s\"",
                      rows[i].words, at ? at + 9 : "", rows[i].shown);
            free(text);
        }
        dev_close(d);
    }
}

static void test_json(void)
{
    static const struct { const char *words, *json; } rows[] = {
        { "delay 10ms 2ms 25% loss 1% 25% duplicate 2% corrupt 0.5% reorder 5% 50% gap 3 rate "
          "10mbit 14 48 5 limit 500",
          "{\"limit\":500,\"delay\":{\"delay\":0.01,\"jitter\":0.002,\"correlation\":0.25},"
          "\"loss-random\":{\"loss\":0.01,\"correlation\":0.25},\"duplicate\":{\"duplicate\":0.02,"
          "\"correlation\":0},\"reorder\":{\"reorder\":0.05,\"correlation\":0.5},\"corrupt\":"
          "{\"corrupt\":0.005,\"correlation\":0},\"rate\":{\"rate\":1250000,\"packetoverhead\":14,"
          "\"cellsize\":48,\"celloverhead\":5},\"ecn\":false,\"gap\":3}" },
        { "loss gemodel 1% ecn",
          "{\"limit\":1000,\"loss-gemodel\":{\"p\":0.01,\"r\":0.99,\"1-h\":1,\"1-k\":0},"
          "\"ecn\":true,\"gap\":0}" },
        { "slot 800us 1ms packets 5",
          "{\"limit\":1000,\"slot\":{\"min-delay\":0.0008,\"max-delay\":0.001,\"packets\":5,"
          "\"bytes\":0},\"ecn\":false,\"gap\":0}" },
        { "slot distribution pareto 1ms 0.1ms",
          "{\"limit\":1000,\"slot\":{\"distribution\":0.001,\"jitter\":0.0001,\"packets\":0,"
          "\"bytes\":0},\"ecn\":false,\"gap\":0}" },
    };

    for (size_t i = 0; i < GW_ARRAY_LEN(rows); i++) {
        struct dev *d = dev_open(1, rows[i].words);
        char *text = NULL;

        tc_text(d, "-j qdisc show dev v", &text);
        CHECK_ROW(text && strstr(text, rows[i].json), "netem %s: shows %s", rows[i].words, text);
        free(text);
        dev_close(d);
    }
}

/* What a change sets anew and what it keeps. */
static void test_change(void)
{
    static const char full[] = "delay 10ms 2ms 25% loss 1% 25% duplicate 2% corrupt 0.5% reorder "
                               "5% 50% gap 3 rate 10mbit 14 48 5 limit 500";
    static const struct { const char *add, *change; int rc; const char *shown; } rows[] = {
        { full, "", 0, "limit 1000 reorder 5% 50% corrupt 0.5% rate 10Mbit packetoverhead 14 "
          "cellsize 48 celloverhead 5" },
        { full, "rate 5mbit", 0, "limit 1000 reorder 5% 50% corrupt 0.5% rate 5Mbit" },
        { full, "rate 0", 0, "limit 1000 reorder 5% 50% corrupt 0.5%" },
        { full, "delay 1ms 1ms", 0, "limit 1000 delay 1ms  1ms 25% reorder 5% 50% corrupt 0.5% "
          "rate 10Mbit packetoverhead 14 cellsize 48 celloverhead 5" },
        { full, "delay 1ms 1ms loss 2% 30% rate 0", 0, "limit 1000 delay 1ms  1ms loss 2% 30% "
          "reorder 5% 50% corrupt 0.5%" },
        { full, "corrupt 0% reorder 0% rate 0", 0, "limit 1000" },
        { full, "delay 5ms loss bogus", 1, "limit 500 delay 10ms  2ms 25% loss 1% 25% duplicate 2% "
          "reorder 5% 50% corrupt 0.5% rate 10Mbit packetoverhead 14 cellsize 48 celloverhead 5 "
          "gap 3" },
        { "loss gemodel 1% 10%", "delay 5ms", 0, "limit 1000 delay 5ms" },
        { "loss 1% ecn", "loss 2%", 0, "limit 1000 loss 2% ecn " },
        { "slot 1ms", "delay 5ms", 0, "limit 1000 delay 5ms slot 1ms 1ms" },
        { "slot 1ms packets 4", "slot 2ms", 0, "limit 1000 slot 2ms 2ms" },
    };

    for (size_t i = 0; i < GW_ARRAY_LEN(rows); i++) {
        struct dev *d = dev_open(1, rows[i].add);
        char line[512], *text = NULL, *at;
        int rc;

        snprintf(line, sizeof line, "qdisc change dev v root handle 1: netem %s", rows[i].change);
        rc = tc(d, line);
        tc_text(d, "qdisc show dev v", &text);
        at = text ? strstr(text, "refcnt 2 ") : NULL;
        if (at)
            at[strcspn(at, "\n")] = 0;
        CHECK_ROW(rc == rows[i].rc && at && !strcmp(at + 9, rows[i].shown),
                  "change %s: exit %d, shows \"%s\" want \"%s\"", rows[i].change, rc,
                  at ? at + 9 : "", rows[i].shown);
        free(text);
        dev_close(d);
    }
}

/* ---- tables ------------------------------------------------------------------------------- */

static void table_moments(const int16_t *v, uint32_t n, double *mean, double *sd)
{
    double sum = 0, square = 0;

    for (uint32_t i = 0; i < n; i++) {
        sum += v[i];
        square += (double)v[i] * v[i];
    }
    *mean = sum / n;
    *sd = sqrt(square / n - *mean * *mean);
}

/* Known facts about iproute2's tables; where it is installed, its files are compared by value. */
static void test_tables(void)
{
    static const struct { const char *name; int min, max; double mean, sd; int off; } rows[] = {
        { "normal", -32768, 28858, -6.4, 8192, 0 }, { "pareto", -5461, 32767, -274.4, 6715, 0 },
        { "paretonormal", -12305, 31789, -207.3, 6832, 0 },
        { "experimental", -10576, 32767, -87.3, 7204, 60 },
    };
    static int16_t v[GW_DIST_MADE], ref[GW_DIST_MAX];

    for (size_t i = 0; i < GW_ARRAY_LEN(rows); i++) {
        double mean, sd;
        char path[128];
        struct gw_error err = { 0 };
        FILE *f = NULL;
        const char *dirs[] = { "/usr/lib/tc", "/usr/lib/x86_64-linux-gnu/tc", "/usr/share/tc" };

        CU_ASSERT_EQUAL(gw_dist_named(rows[i].name), (enum gw_dist)i);
        gw_dist_make((enum gw_dist)i, v);
        table_moments(v, GW_DIST_MADE, &mean, &sd);
        CHECK_ROW(v[0] == rows[i].min && v[GW_DIST_MADE - 1] == rows[i].max,
                  "%s: from %d to %d", rows[i].name, v[0], v[GW_DIST_MADE - 1]);
        CHECK_ROW(fabs(mean - rows[i].mean) < 0.06 + rows[i].off / 15.0 &&
                  fabs(sd - rows[i].sd) < 3, "%s: mean %.2f sd %.1f", rows[i].name, mean, sd);
        for (uint32_t k = 1; k < GW_DIST_MADE; k++)
            if (v[k] < v[k - 1])
                CHECK_ROW(false, "%s: falls at %u", rows[i].name, k);
        for (size_t k = 0; k < GW_ARRAY_LEN(dirs) && !f; k++) {
            snprintf(path, sizeof path, "%s/%s.dist", dirs[k], rows[i].name);
            f = fopen(path, "r");
        }
        if (!f)
            continue;
        CU_ASSERT_EQUAL(gw_dist_read(f, path, ref, &err), GW_DIST_MADE);
        for (uint32_t k = 0; k < GW_DIST_MADE; k++)
            if (abs(v[k] - ref[k]) > rows[i].off)
                CHECK_ROW(false, "%s: entry %u is %d, iproute2 has %d", rows[i].name, k, v[k],
                          ref[k]);
        fclose(f);
    }
}

static void test_table_text(void)
{
    static const struct { const char *text; uint32_t count; } rows[] = {
        { "1 2 3\n", 3 }, { "# a\n\n -32768\t32767\n", 2 }, { "0x10 -7", 2 }, { "", 0 },
        { "# only\n", 0 }, { "1 x 2\n", 0 }, { "1.5\n", 0 }, { "32768\n", 0 },
        { "99999999999\n", 0 },
    };
    static int16_t v[GW_DIST_MAX];

    for (size_t i = 0; i < GW_ARRAY_LEN(rows); i++) {
        FILE *f = *rows[i].text ? fmemopen((char *)(uintptr_t)rows[i].text, strlen(rows[i].text),
                                           "r") : fopen("/dev/null", "r");
        struct gw_error err = { 0 };
        uint32_t n = gw_dist_read(f, "t", v, &err);

        CHECK_ROW(n == rows[i].count && !n == (err.code != GW_OK), "row %zu: %u entries", i, n);
        fclose(f);
    }
}

/* ---- the line ----------------------------------------------------------------------------- */

struct due {
    int64_t  at;
    uint32_t order;
    bool     list;
};

static int due_first(const void *a, const void *b)
{
    const struct due *x = a, *y = b;

    if (x->at != y->at)
        return x->at < y->at ? -1 : 1;
    if (x->list != y->list)
        return x->list ? -1 : 1;
    return x->order < y->order ? -1 : 1;
}

/* Random adds and takes against a sorted array that follows the rule in words. */
static void test_line(void)
{
    enum { ROUNDS = 20000, MAX = 3000 };
    static const struct { int64_t span, delay; uint32_t step; } rows[] = {
        { 1000000, 1000000, 500 }, { 1000, 5000000, 3 }, { 0, 300, 1 }, { INT64_C(1) << 40, 9, 1 },
    };
    static struct gw_pkt pkt[ROUNDS];
    static struct due ref[MAX];

    for (size_t r = 0; r < GW_ARRAY_LEN(rows); r++) {
        struct gw_delayline line;
        struct gw_rng rng;
        uint32_t held = 0, order = 0, wrong = 0;
        int64_t now = 0, tail = INT64_MIN, at;
        bool any = false;

        gw_rng_open(&rng, r, "line");
        gw_delayline_init(&line, rows[r].span, realloc, free);
        for (uint32_t i = 0; i < ROUNDS; i++) {
            uint32_t filling = i / 2000 % 2 ? 35 : 65;

            now += gw_rng_below(&rng, rows[r].step + 1);
            if (held < MAX && (!held || gw_rng_below(&rng, 100) < filling)) {
                at = now - 50 + (int64_t)(gw_rng_unit(&rng) * (double)rows[r].delay);
                any = false;
                for (uint32_t k = 0; k < held; k++)
                    any |= ref[k].list;
                ref[held] = (struct due){ at, order, !any || at >= tail };
                tail = ref[held].list ? at : tail;
                pkt[order].flow = order;
                held++;
                if (!gw_delayline_add(&line, at, &pkt[order++]))
                    wrong++;
                qsort(ref, held, sizeof *ref, due_first);
            } else {
                struct gw_pkt *p;

                wrong += !gw_delayline_first(&line, &at) || at != ref[0].at;
                p = gw_delayline_take(&line);
                wrong += !p || p->flow != ref[0].order;
                memmove(ref, ref + 1, --held * sizeof *ref);
            }
            wrong += gw_delayline_count(&line) != held;
            if (i % 5000 == 4999)
                gw_delayline_respan(&line, rows[r].span / 3);
        }
        CHECK_ROW(!wrong, "row %zu: %u times another than the first", r, wrong);
        gw_delayline_fini(&line);
    }
}

/* ---- times -------------------------------------------------------------------------------- */

struct arrivals {
    uint64_t at_ps[4096];
    uint32_t seq[4096];
    uint32_t count;
};

static void note_arrival(struct dev *d, const struct gw_pkt *p)
{
    struct arrivals *a = d->ctx;

    if (a->count < GW_ARRAY_LEN(a->at_ps)) {
        a->at_ps[a->count] = d->now_ps;
        a->seq[a->count] = (uint32_t)p->tp[0];
    }
    a->count++;
}

static void trace_check(const char *name, const char *netem)
{
    static struct arrivals a;
    struct dev *d = dev_open(1, netem);
    uint64_t want[256];
    uint32_t n = 0;
    char path[512], line[128];
    FILE *f;

    snprintf(path, sizeof path, "%s/tests/data/tc/netem_%s.csv", GW_TEST_SRCDIR, name);
    f = fopen(path, "r");
    CU_ASSERT_PTR_NOT_NULL_FATAL(f);
    memset(&a, 0, sizeof a);
    d->out = note_arrival;
    d->ctx = &a;
    while (fgets(line, sizeof line, f)) {
        unsigned long long sent, received;
        unsigned size;

        if (sscanf(line, "%u,%llu,%llu", &size, &sent, &received) != 3 || n == 256)
            continue;
        dev_run(d, sent * 1000);
        CU_ASSERT(dev_send(d, n, size, 0));
        want[n++] = received * 1000;
    }
    fclose(f);
    dev_run(d, GW_NEVER);
    CHECK_ROW(n && a.count == n, "%s: %u of %u came", name, a.count, n);
    for (uint32_t i = 0; i < n; i++)
        CHECK_ROW(a.seq[i] == i && llabs((long long)(a.at_ps[i] - want[i])) <= (long long)US,
                  "%s: frame %u came at %llu ps, the kernel's at %llu", name, i,
                  (unsigned long long)a.at_ps[i], (unsigned long long)want[i]);
    dev_close(d);
}

static void test_traces(void)
{
    trace_check("rate_1m_o20", "limit 1000 rate 1mbit 20");
    trace_check("rate_1m_c48", "limit 1000 rate 1mbit 0 48");
    trace_check("rate_1m_dly100", "limit 1000 rate 1mbit delay 100ms");
    trace_check("rate_gap_bonus", "limit 1000 rate 1mbit delay 20ms");
}

/* Bursts at one instant: when each frame leaves, by hand. */
static void test_instants(void)
{
    static const struct { const char *netem; uint32_t bytes; uint64_t at_ns[5]; } rows[] = {
        { "delay 1ms", 100, { 1000000, 1000000, 1000000, 1000000, 1000000 } },
        { "delay 10us", 100, { 9984, 9984, 9984, 9984, 9984 } },
        { "rate 8mbit", 1000, { 1000000, 2000000, 3000000, 4000000, 5000000 } },
        { "rate 8mbit delay 1500us", 1000, { 2499968, 3499968, 4499968, 5499968, 6499968 } },
        { "rate 3mbit", 100, { 266666, 533332, 799998, 1066664, 1333330 } },
        { "rate 8mbit -100", 60, { 0, 0, 0, 0, 0 } },
        { "rate 8mbit 10 50 3", 100, { 159000, 318000, 477000, 636000, 795000 } },
        { "reorder 100% gap 1 delay 9ms", 100, { 0, 0, 0, 0, 0 } },
        { "reorder 100% gap 5 delay 9ms", 100, { 0, 9000000, 9000000, 9000000, 9000000 } },
        { "slot 3ms packets 2", 100, { 3000000, 3000000, 6000000, 6000000, 9000000 } },
        { "slot 3ms bytes 250", 100, { 3000000, 3000000, 3000000, 6000000, 6000000 } },
        { "slot 3ms rate 8mbit", 500, { 3000000, 3000000, 3000000, 3000000, 3000000 } },
        { "delay 274s", 100, { 274000000000, 274000000000, 274000000000, 274000000000,
                               274000000000 } },
    };
    static struct arrivals a;

    for (size_t i = 0; i < GW_ARRAY_LEN(rows); i++) {
        struct dev *d = dev_open(1, rows[i].netem);

        memset(&a, 0, sizeof a);
        d->out = note_arrival;
        d->ctx = &a;
        dev_run(d, 7 * US);
        for (uint32_t k = 0; k < 5; k++)
            CU_ASSERT(dev_send(d, k, rows[i].bytes, 0));
        dev_run(d, GW_NEVER);
        CU_ASSERT_EQUAL(a.count, 5);
        for (uint32_t k = 0; k < 5; k++)
            CHECK_ROW(a.at_ps[k] == 7 * US + rows[i].at_ns[k] * 1000, "%s: frame %u after %llu ps",
                      rows[i].netem, k, (unsigned long long)(a.at_ps[k] - 7 * US));
        dev_close(d);
    }
}

/* Case S1: 100 ms, limit 1000, 20,000 frames a second for 10 s. */
static void test_s1(void)
{
    static struct arrivals a;
    struct dev *d = dev_open(1, "delay 100ms");
    uint64_t gaps = 0;

    memset(&a, 0, sizeof a);
    d->out = note_arrival;
    d->ctx = &a;
    for (uint32_t i = 0; i < 200000; i++) {
        dev_run(d, i * 50 * US);
        dev_send(d, i, 1500, 0);
    }
    dev_run(d, GW_NEVER);
    CU_ASSERT_EQUAL(a.count, 100000);
    CU_ASSERT_EQUAL(d->drops[GW_DROP_QUEUE_FULL], 100000);
    CU_ASSERT_EQUAL(d->drops[GW_DROP_LOSS], 0);
    for (uint32_t i = 1; i < 4096; i++)
        gaps += a.at_ps[i] - a.at_ps[i - 1] > 50 * MS;
    CU_ASSERT_EQUAL(gaps, 4);                      /* bursts of 1000 with a pause between      */
    CU_ASSERT_EQUAL(d->live, 0);
    dev_close(d);
    d = dev_open(1, "delay 100ms limit auto");
    for (uint32_t i = 0; i < 20000; i++) {
        dev_run(d, i * 50 * US);
        CU_ASSERT(dev_send(d, i, 1500, 0));
    }
    dev_close(d);
}

/* A frame that is held keeps its time through a change; later ones follow the new words. */
static void test_change_while_held(void)
{
    static struct arrivals a;
    struct dev *d = dev_open(1, "delay 50ms 10ms");
    uint64_t before = 0;

    memset(&a, 0, sizeof a);
    d->out = note_arrival;
    d->ctx = &a;
    for (uint32_t i = 0; i < 600; i++)
        dev_send(d, i, 100, 0);
    CU_ASSERT_EQUAL(tc(d, "qdisc change dev v root netem delay 1ms"), 0);
    for (uint32_t i = 600; i < 1000; i++)
        dev_send(d, i, 100, 0);
    CU_ASSERT_FALSE(dev_send(d, 1000, 100, 0));
    dev_run(d, GW_NEVER);
    CU_ASSERT_EQUAL(a.count, 1000);
    for (uint32_t i = 0; i < 1000; i++) {
        bool late = a.seq[i] < 600;

        CHECK_ROW(late ? a.at_ps[i] >= 40 * MS && a.at_ps[i] < 60 * MS : a.at_ps[i] == MS,
                  "frame %u at %llu ps", a.seq[i], (unsigned long long)a.at_ps[i]);
        CHECK_ROW(a.at_ps[i] >= before, "frame %u: back in time", a.seq[i]);
        before = a.at_ps[i];
    }
    dev_close(d);
}

/* reset: everything is thrown out, the books are empty. */
static void test_reset(void)
{
    struct dev *d = dev_open(1, "delay 50ms 10ms reorder 50% gap 2");

    for (uint32_t i = 0; i < 500; i++)
        dev_send(d, i, 100, 0);
    CU_ASSERT(d->live > 100);
    CU_ASSERT_EQUAL(tc(d, "qdisc del dev v root"), 0);
    CU_ASSERT_EQUAL(d->live, 0);
    dev_close(d);
}

/* ---- shares ------------------------------------------------------------------------------- */

enum { DRAWS = 2000000, LEN = 144 };

struct counts {
    uint64_t came, flipped, copies, at_once, marked;
    uint64_t bit[8 * LEN];
    uint64_t pair[16][16];             /* of sixteenths of the frame: a flip's and the one before  */
    uint32_t sixteenth;
};

static void note_counts(struct dev *d, const struct gw_pkt *p)
{
    struct counts *c = d->ctx;

    c->came++;
    c->copies += !!(p->flags & GW_PKT_COPY);
    c->at_once += p->tp[1] == d->now_ps;
    c->marked += p->ecn == GW_ECN_CE;
    if (p->flags & GW_PKT_CORRUPT) {
        uint32_t part = (uint32_t)p->tp[3] * 16 / (8 * LEN);

        c->flipped++;
        c->bit[p->tp[3] % (8 * LEN)]++;
        c->pair[c->sixteenth][part % 16]++;
        c->sixteenth = part % 16;
    }
}

static struct dev *counts_open(struct counts *c, uint64_t seed, const char *netem)
{
    struct dev *d = dev_open(seed, netem);

    memset(c, 0, sizeof *c);
    d->out = note_counts;
    d->ctx = c;
    return d;
}

/* Says what is wrong with the share @m of an event, if it should be @p. */
static void check_share(const char *netem, const char *what, const struct stat_mean *m, double p)
{
    double rest = p - floor(p), z = stat_z(m, p, rest * (1 - rest) / 4);

    CHECK_ROW(fabs(z) < Z_MAX, "%s: %.6f %s, want %.6f, z %.2f", netem, m->sum / (double)m->n, what,
              p, z);
}

/* Sends DRAWS frames; the fates go to @runs, their share is held to @share. */
static void lose_frames(uint64_t seed, const char *netem, double share, struct stat_runs *runs)
{
    static struct counts c;
    struct dev *d = counts_open(&c, seed, netem);
    struct stat_mean m = { 0 };

    memset(runs, 0, sizeof *runs);
    for (uint32_t k = 0; k < DRAWS; k++) {
        bool lost = !dev_send(d, k, 100, 0);

        stat_add(&m, lost);
        stat_run(runs, lost);
    }
    check_share(netem, "lost", &m, share);
    CU_ASSERT_EQUAL(d->drops[GW_DROP_LOSS], runs->events);
    CU_ASSERT_EQUAL(d->t->root->dropped_pkts, runs->events);
    CU_ASSERT_EQUAL(c.came, DRAWS - runs->events);
    dev_close(d);
}

/* p r h k: leaves good with p, bad with r; loses in good with k, in bad with h. */
static struct stat_chain gemodel(double p, double r, double h, double k)
{
    return (struct stat_chain){ 2, { { 1 - p, p }, { r, 1 - r } }, { { k, k }, { h, h } } };
}

/* States 1 to 4; what goes into 3 or 4, or stays in 3, is lost. */
static struct stat_chain four_states(double p13, double p31, double p32, double p23, double p14)
{
    return (struct stat_chain){ 4, { { 1 - p13 - p14, 0, p13, p14 }, { 0, 1 - p23, p23, 0 },
                                     { p31, p32, 1 - p31 - p32, 0 }, { 1, 0, 0, 0 } },
                                { { 0, 0, 1, 1 }, { 0, 0, 1, 0 }, { 0, 0, 1, 0 }, { 0 } } };
}

/* Models whose bursts are those of a chain: share and mean burst by closed form (0: not asked), the
 * whole distribution of bursts by the chain. */
static void test_loss(void)
{
    const struct { const char *netem; double share, burst; struct stat_chain c; } rows[] = {
        { "loss 0.3%", 0.003, 1 / 0.997, gemodel(0, 1, 0, 0.003) },
        { "loss 7%", 0.07, 1 / 0.93, gemodel(0, 1, 0, 0.07) },
        { "loss 33%", 0.33, 1 / 0.67, gemodel(0, 1, 0, 0.33) },
        { "loss 99%", 0.99, 100, gemodel(0, 1, 0, 0.99) },
        /* pi = p/(p+r); share = (1-pi)(1-k) + pi(1-h); burst = share / P(lost, next not lost) */
        { "loss gemodel 3% 30% 90% 0.5%", 0.0863636363636, 2.49962176776,
          gemodel(0.03, 0.3, 0.9, 0.005) },
        { "loss gemodel 0.5% 15%", 0.0322580645161, 6.66666666667, gemodel(0.005, 0.15, 1, 0) },
        { "loss gemodel 10% 60% 50% 2%", 0.0885714285714, 1.22568401075,
          gemodel(0.1, 0.6, 0.5, 0.02) },
        { "loss gemodel 2%", 0.02, 1.02040816327, gemodel(0.02, 0.98, 1, 0) },
        { "loss gemodel 1.3% 22%", 0.013 / 0.233, 1 / 0.22, gemodel(0.013, 0.22, 1, 0) },
        /* shares of the states from what flows between them; lost are 3 and 4 */
        { "loss state 4% 55%", 0.0677966101695, 1.81818181818, four_states(0.04, 0.55, 0, 1, 0) },
        { "loss state 2% 40% 20% 35% 0.7%", 0.0525069088038, 1.54054054054,
          four_states(0.02, 0.4, 0.2, 0.35, 0.007) },
        { "loss state 1%", 0.01, 1.0101010101, four_states(0.01, 0.99, 0, 1, 0) },
        { "loss state 0.6% 7% 25% 60% 3%", 0, 0, four_states(0.006, 0.07, 0.25, 0.6, 0.03) },
    };

    for (size_t i = 0; i < GW_ARRAY_LEN(rows); i++) {
        double shares[STAT_RUNS], burst, got, z, chi;
        double share = stat_chain_runs(&rows[i].c, shares, &burst);
        struct stat_runs runs;
        uint32_t degrees;

        CHECK_ROW(rows[i].share <= 0 || (fabs(share / rows[i].share - 1) < 1e-9 &&
                                         fabs(burst / rows[i].burst - 1) < 1e-9),
                  "%s: the chain loses %.12f in bursts of %.12f", rows[i].netem, share, burst);
        lose_frames(1 + i, rows[i].netem, share, &runs);
        z = stat_run_z(&runs, burst, &got);
        CHECK_ROW(fabs(z) < Z_MAX, "%s: bursts of %.4f want %.4f, z %.2f", rows[i].netem, got,
                  burst, z);
        chi = stat_runs_chi(&runs, shares, &degrees);
        CHECK_ROW(degrees && chi < stat_chi_bound(degrees), "%s: bursts: chi square %.1f of %u",
                  rows[i].netem, chi, degrees);
    }
}

static void test_loss_ends(void)
{
    struct stat_runs runs;

    lose_frames(1, "loss 100%", 1, &runs);
    lose_frames(1, "loss 0%", 0, &runs);
    lose_frames(1, "loss 5% 90%", 0, &runs);
}

/* The kernel's recurrence in real numbers and with other dice: what it loses at p with rho. */
static void recurrence(uint64_t seed, double p, double rho, struct stat_runs *runs)
{
    uint64_t state = seed;
    double x = 0.5;

    memset(runs, 0, sizeof *runs);
    for (uint32_t k = 0; k < DRAWS; k++) {
        state += UINT64_C(0x9e3779b97f4a7c15);
        x = rho * x + (1 - rho) * (double)(gw_mix64(state) >> 11) * 0x1p-53;
        stat_run(runs, x <= p);
    }
}

/* Correlated loss: the share, and bursts as those of the recurrence. */
static void test_correlated_loss(void)
{
    static const struct { const char *netem; double p, rho, share; } rows[] = {
        { "loss 20% 30%", 0.2, 0.3, 0.0829540 }, { "loss 30% 60%", 0.3, 0.6, 0.0890572 },
        { "loss 70% 40%", 0.7, 0.4, 0.8291826 }, { "loss 12% 15%", 0.12, 0.15, 0.0547070 },
        { "loss 45% 80%", 0.45, 0.8, 0.3077655 },
    };

    for (size_t i = 0; i < GW_ARRAY_LEN(rows); i++) {
        struct stat_runs runs, want;
        uint32_t degrees;
        double chi;

        lose_frames(110 + i, rows[i].netem, rows[i].share, &runs);
        recurrence(1 + i, rows[i].p, rows[i].rho, &want);
        chi = stat_runs_same(&runs, &want, &degrees);
        CHECK_ROW(degrees > 2 && chi < stat_chi_bound(degrees), "%s: bursts: chi square %.1f of %u",
                  rows[i].netem, chi, degrees);
    }
}

static void test_ecn(void)
{
    static const struct { const char *netem; double p; } rows[] = {
        { "loss 12% ecn", 0.12 }, { "loss gemodel 1% 9% ecn", 0.1 },
    };
    static struct counts c;

    for (size_t i = 0; i < GW_ARRAY_LEN(rows); i++) {
        struct dev *d = counts_open(&c, 3 + i, rows[i].netem);
        struct stat_mean lost = { 0 }, marked = { 0 };

        for (uint32_t k = 0; k < DRAWS; k++) {
            uint64_t before = c.marked;

            stat_add(&lost, !dev_send(d, k, 100, k & 1 ? GW_ECN_ECT0 : GW_ECN_NOT_ECT));
            stat_add(&marked, (double)(c.marked - before));
        }
        check_share(rows[i].netem, "lost", &lost, rows[i].p / 2);
        check_share(rows[i].netem, "marked", &marked, rows[i].p / 2);
        CU_ASSERT_EQUAL(d->t->root->dropped_pkts, c.marked + d->drops[GW_DROP_LOSS]);
        CU_ASSERT_EQUAL(c.came, DRAWS - d->drops[GW_DROP_LOSS]);
        dev_close(d);
    }
}

/* Copies and flips: frames that come per frame sent, copies per frame sent, flipped per frame. */
static void test_copies(void)
{
    static const struct { const char *netem; double came, copies, flipped; } rows[] = {
        { "duplicate 7%", 1.07, 0.07, 0 }, { "duplicate 100%", 2, 1, 0 },
        /* d(1-l)(1-l) copies; originals: all but (1-d)l */
        { "duplicate 30% loss 25%", 0.99375, 0.16875, 0 },
        { "duplicate 100% loss 100%", 1, 0, 0 },
        { "duplicate 9% 60%", 1.09, 0.09, 0 },     /* the correlation is not sent              */
        { "duplicate 20% 30% loss 0% 1%", 1.0829540, 0.0829540, 0 },
        { "corrupt 3%", 1, 0, 0.03 }, { "corrupt 100%", 1, 0, 1 },
        { "corrupt 20% 30%", 1, 0, 0.0829540 }, { "corrupt 5% 90%", 1, 0, 0 },
        { "duplicate 10% corrupt 20%", 1.1, 0.1, 0.22 },
        { "duplicate 4% loss 6% corrupt 17%", 0.977744, 0.035344, 0.16621648 },
    };
    static struct counts c;

    for (size_t i = 0; i < GW_ARRAY_LEN(rows); i++) {
        struct dev *d = counts_open(&c, 20 + i, rows[i].netem);
        struct stat_mean came = { 0 }, copies = { 0 }, flipped = { 0 };

        for (uint32_t k = 0; k < DRAWS; k++) {
            uint64_t x = c.came, y = c.copies, z = c.flipped;

            dev_send(d, k, LEN, 0);
            stat_add(&came, (double)(c.came - x));
            stat_add(&copies, (double)(c.copies - y));
            stat_add(&flipped, (double)(c.flipped - z));
        }
        check_share(rows[i].netem, "came", &came, rows[i].came);
        check_share(rows[i].netem, "copies", &copies, rows[i].copies);
        check_share(rows[i].netem, "flipped", &flipped, rows[i].flipped);
        CU_ASSERT_EQUAL(d->live, 0);
        dev_close(d);
    }
}

/* A flip falls on any bit of the frame alike, wherever the one before it fell. */
static void test_flip_places(void)
{
    static const char *const rows[] = { "corrupt 61%", "corrupt 35% 45%" };
    static struct counts c;

    for (size_t i = 0; i < GW_ARRAY_LEN(rows); i++) {
        struct dev *d = counts_open(&c, 130 + i, rows[i]);
        uint64_t byte[LEN] = { 0 };

        for (uint32_t k = 0; k < DRAWS; k++)
            dev_send(d, k, LEN, 0);
        for (uint32_t k = 0; k < 8 * LEN; k++)
            byte[k / 8] += c.bit[k];
        CHECK_ROW(c.flipped > DRAWS / 10 && stat_chi_equal(c.bit, 8 * LEN) <
                  stat_chi_bound(8 * LEN - 1), "%s: bits: chi square %.1f", rows[i],
                  stat_chi_equal(c.bit, 8 * LEN));
        CHECK_ROW(stat_chi_equal(byte, LEN) < stat_chi_bound(LEN - 1), "%s: bytes: chi square %.1f",
                  rows[i], stat_chi_equal(byte, LEN));
        CHECK_ROW(stat_chi_equal(c.pair[0], 256) < stat_chi_bound(255), "%s: pairs: chi square %.1f",
                  rows[i], stat_chi_equal(c.pair[0], 256));
        dev_close(d);
    }
}

/* A copy leaves before its original, and over the limit there is neither. */
static void test_copy_order(void)
{
    static struct arrivals a;
    struct dev *d = dev_open(1, "duplicate 100% delay 1ms limit 3");

    memset(&a, 0, sizeof a);
    d->out = note_arrival;
    d->ctx = &a;
    for (uint32_t i = 0; i < 4; i++)
        dev_send(d, i, 100, 0);
    dev_run(d, GW_NEVER);
    CU_ASSERT_EQUAL(a.count, 4);                   /* 2, then 2 over a limit that was not reached */
    CU_ASSERT_EQUAL(d->drops[GW_DROP_QUEUE_FULL], 2);
    CU_ASSERT(a.seq[0] == 0 && a.seq[1] == 0 && a.seq[2] == 1 && a.seq[3] == 1);
    dev_close(d);
}

static void test_reorder(void)
{
    static const struct { const char *netem; double at_once; } rows[] = {
        { "delay 1ms reorder 30% gap 4", 1 / (3 + 1 / 0.3) }, { "delay 1ms reorder 15%", 0.15 },
        { "delay 3ms reorder 64% gap 7", 1 / (6 + 1 / 0.64) },
        { "delay 1ms reorder 20% 30%", 0.0829540 },
        { "delay 1ms reorder 35% 35% gap 3", 1 / (2 + 1 / 0.2692308) },
    };
    static struct counts c;

    for (size_t i = 0; i < GW_ARRAY_LEN(rows); i++) {
        struct dev *d = counts_open(&c, 40 + i, rows[i].netem);
        struct stat_mean m = { 0 };

        for (uint32_t k = 0; k < DRAWS; k++) {
            uint64_t before = c.at_once;

            dev_run(d, (uint64_t)k * 10 * US);
            dev_send(d, k, 100, 0);
            stat_add(&m, (double)(c.at_once - before));
        }
        check_share(rows[i].netem, "at once", &m, rows[i].at_once);
        CU_ASSERT_EQUAL(d->t->root->requeues, c.at_once);
        dev_close(d);
    }
}

/* ---- delays ------------------------------------------------------------------------------- */

static uint32_t delay_ns[DRAWS];
static uint32_t delay_count;

static int by_value(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

    return (x > y) - (x < y);
}

static void note_delay(struct dev *d, const struct gw_pkt *p)
{
    if (delay_count < DRAWS)
        delay_ns[p->tp[0]] = (uint32_t)((d->now_ps - p->tp[1]) / 1000);
    delay_count++;
}

/* What the kernel makes of each random number modulo the period of @mu, @sigma: the values of a
 * table in order, or none for uniform delays. */
static void delay_values(int64_t mu_ns, int64_t sigma_ns, const int16_t *table, uint32_t n,
                         int64_t *value)
{
    for (uint32_t i = 0; i < n; i++) {
        int64_t part = sigma_ns % 8192 * table[i];

        part += part < 0 ? -4096 : 4096;
        value[i] = mu_ns + sigma_ns / 8192 * table[i] + part / 8192;
        if (value[i] < 0)
            value[i] = 0;
    }
    qsort(value, n, sizeof *value, by_value);
}

/* Chi square of DRAWS delays over cells of @value between @cells quantiles; NULL: over cells of the
 * uniform distribution from @low to @high. */
static double delay_chi(const int64_t *value, uint32_t n, double low, double high, uint32_t *degrees)
{
    enum { CELLS = 100 };
    static int64_t edge[CELLS];
    static uint64_t got[CELLS + 1];
    double below = 0, chi = 0, share[CELLS + 1];
    uint32_t cells = 0;

    for (uint32_t k = 1; k < CELLS; k++) {
        uint32_t at = k * n / CELLS;

        if (!value) {
            edge[cells] = (int64_t)(low + (high - low) * k / CELLS);
            share[cells++] = 1.0 / CELLS;
            continue;
        }
        while (at + 1 < n && value[at + 1] == value[at])
            at++;
        if (at + 1 < n && (!cells || value[at] > edge[cells - 1])) {
            edge[cells] = value[at];
            share[cells++] = (at + 1.0) / n - below;
            below = (at + 1.0) / n;
        }
    }
    share[cells] = value ? 1 - below : 1.0 / CELLS;
    memset(got, 0, sizeof got);
    for (uint32_t j = 0; j < DRAWS; j++) {
        uint32_t first = 0, last = cells;          /* the first edge that is not below         */

        while (first < last) {
            uint32_t mid = (first + last) / 2;

            if (edge[mid] < (int64_t)delay_ns[j])
                first = mid + 1;
            else
                last = mid;
        }
        got[first]++;
    }
    for (uint32_t k = 0; k <= cells; k++)
        chi += pow((double)got[k] - share[k] * DRAWS, 2) / (share[k] * DRAWS);
    *degrees = cells;
    return chi;
}

/* Sends DRAWS frames; their delays are in delay_ns then. */
static void delay_frames(uint64_t seed, const char *netem)
{
    struct dev *d = dev_open(seed, netem);

    delay_count = 0;
    d->out = note_delay;
    for (uint32_t k = 0; k < DRAWS; k++) {
        dev_run(d, (uint64_t)k * 10 * US);
        dev_send(d, k, 100, 0);
    }
    dev_run(d, GW_NEVER);
    CU_ASSERT_EQUAL(delay_count, DRAWS);
    dev_close(d);
}

/* Neighbours' delays are not correlated, whatever the words say. */
static void check_no_lag(const char *netem)
{
    double lag = 0, mean = 0, var = 0;

    for (uint32_t j = 0; j < DRAWS; j++)
        mean += delay_ns[j] / (double)DRAWS;
    for (uint32_t j = 0; j < DRAWS; j++) {
        var += (delay_ns[j] - mean) * (delay_ns[j] - mean);
        lag += j ? (delay_ns[j] - mean) * (delay_ns[j - 1] - mean) : 0;
    }
    CHECK_ROW(fabs(lag / var) < Z_MAX / sqrt(DRAWS), "%s: lag-1 correlation %.4f", netem, lag / var);
}

/* Quantiles of all delays, against the kernel's arithmetic over a table, or uniform ones. */
static void test_delays(void)
{
    static const struct { const char *netem, *table; int64_t mu_us, sigma_us; } rows[] = {
        { "limit 100000 delay 31ms 7ms 60%", NULL, 31000, 7000 },
        { "limit 100000 delay 40960us 8192us distribution normal", "normal", 40960, 8192 },
        { "limit 100000 delay 73ms 13ms 45% distribution normal", "normal", 73000, 13000 },
        { "limit 100000 delay 9ms 6ms distribution normal", "normal", 9000, 6000 },
        { "limit 100000 delay 40960us 8192us 30% distribution pareto", "pareto", 40960, 8192 },
        { "limit 100000 delay 17ms 3ms distribution pareto", "pareto", 17000, 3000 },
        { "limit 100000 delay 26ms 5ms distribution paretonormal", "paretonormal", 26000, 5000 },
        { "limit 100000 delay 38ms 11ms distribution experimental", "experimental", 38000, 11000 },
    };
    static int16_t table[GW_DIST_MADE];
    static int64_t value[GW_DIST_MADE];

    for (size_t i = 0; i < GW_ARRAY_LEN(rows); i++) {
        int64_t mu = rows[i].mu_us * 1000, sigma = rows[i].sigma_us * 1000;
        uint32_t degrees;
        double chi;

        if (rows[i].table) {
            gw_dist_make(gw_dist_named(rows[i].table), table);
            delay_values(mu, sigma, table, GW_DIST_MADE, value);
        }
        delay_frames(60 + i, rows[i].netem);
        chi = delay_chi(rows[i].table ? value : NULL, GW_DIST_MADE, (double)(mu - sigma),
                        (double)(mu + sigma), &degrees);
        CHECK_ROW(degrees > 20 && chi < stat_chi_bound(degrees), "%s: chi square %.1f of %u",
                  rows[i].netem, chi, degrees);
        check_no_lag(rows[i].netem);
    }
}

/* Delays below 0 are none; a table of one's own has the values that it lists and no others. */
static void test_odd_delays(void)
{
    uint64_t zero = 0, bad = 0, at[3] = { 0 };

    delay_frames(8, "limit 100000 delay 5ms 10ms");
    for (uint32_t k = 0; k < DRAWS; k++)
        zero += !delay_ns[k];
    CHECK_ROW(fabs((double)zero - 0.25 * DRAWS) < Z_MAX * sqrt(0.1875 * DRAWS), "%llu at once",
              (unsigned long long)zero);
    delay_frames(8, "limit 100000 delay 8192us 4096us distribution steps");
    for (uint32_t k = 0; k < DRAWS; k++) {         /* entries -8192, 0, 8192, 8192             */
        if (delay_ns[k] % 4096000 || delay_ns[k] < 4096000 || delay_ns[k] > 3 * 4096000)
            bad++;
        else
            at[delay_ns[k] / 4096000 - 1]++;
    }
    CU_ASSERT_EQUAL(bad, 0);
    for (uint32_t k = 0; k < 3; k++) {
        double p = k < 2 ? 0.25 : 0.5;

        CHECK_ROW(fabs((double)at[k] - p * DRAWS) < Z_MAX * sqrt(p * (1 - p) * DRAWS),
                  "value %u: %llu times", k, (unsigned long long)at[k]);
    }
}

/* With a rate jitter cannot reorder. */
static void test_rate_keeps_order(void)
{
    static struct arrivals a;
    struct dev *d = dev_open(2, "limit 10000 delay 10ms 9ms rate 10mbit");
    uint32_t back = 0;

    memset(&a, 0, sizeof a);
    d->out = note_arrival;
    d->ctx = &a;
    for (uint32_t k = 0; k < 4000; k++) {
        dev_run(d, (uint64_t)k * 300 * US);
        dev_send(d, k, 200, 0);
    }
    dev_run(d, GW_NEVER);
    CU_ASSERT_EQUAL(a.count, 4000);
    for (uint32_t k = 0; k < 4000; k++)
        back += a.seq[k] != k;
    CU_ASSERT_EQUAL(back, 0);
    dev_close(d);
}

/* ---- slots -------------------------------------------------------------------------------- */

struct slots {
    uint64_t last_ps, count, frames, most;
    double   sum, square;
};

static void note_slot(struct dev *d, const struct gw_pkt *p)
{
    struct slots *s = d->ctx;

    (void)p;
    if (d->now_ps != s->last_ps) {
        if (s->count) {
            double gap = (double)(d->now_ps - s->last_ps) / 1e9;

            s->sum += gap;
            s->square += gap * gap;
        }
        s->count++;
        s->last_ps = d->now_ps;
        s->frames = 0;
    }
    s->frames++;
    if (s->frames > s->most)
        s->most = s->frames;
}

/*
 * Frames every millisecond. A slot is drawn when a frame finds the last one past, so from the first
 * arrival behind a slot: the interval is the drawn length plus, on average, half a millisecond.
 */
static void test_slots(void)
{
    static const struct { const char *netem; double mean, sd; uint64_t most; } rows[] = {
        { "limit 10000 slot 5ms 15ms", 10.5, 2.90115, 16 },
        { "limit 10000 slot 6500us 6500us", 7, 0, 7 },
        { "limit 10000 slot distribution normal 10ms 2ms", 10.5, 2.02073, 19 },
    };
    static struct slots s;

    for (size_t i = 0; i < GW_ARRAY_LEN(rows); i++) {
        struct dev *d = dev_open(70 + i, rows[i].netem);
        double n, mean, sd;

        memset(&s, 0, sizeof s);
        d->out = note_slot;
        d->ctx = &s;
        for (uint32_t k = 0; k < DRAWS; k++) {
            dev_run(d, (uint64_t)k * MS + 1);
            dev_send(d, k, 500, 0);
        }
        dev_run(d, GW_NEVER);
        n = (double)s.count - 1;
        mean = s.sum / n;
        sd = sqrt(fmax(0, s.square / n - mean * mean));
        CHECK_ROW(fabs(mean - rows[i].mean) < Z_MAX * rows[i].sd / sqrt(n) + 0.008 &&
                  fabs(sd - rows[i].sd) < 0.03 * rows[i].sd + 0.01 && s.most <= rows[i].most,
                  "%s: every %.4f ms, sd %.4f, at most %llu", rows[i].netem, mean, sd,
                  (unsigned long long)s.most);
        dev_close(d);
    }
}

/* slot 20ms rate 1mbit, 500 bytes every ms: as the kernel, 800 slots of 5 frames, 20 ms apart. */
static void test_slot_rate(void)
{
    static struct arrivals a;
    struct dev *d = dev_open(1, "limit 10000 slot 20ms rate 1mbit");
    uint32_t bad = 0;

    memset(&a, 0, sizeof a);
    d->out = note_arrival;
    d->ctx = &a;
    for (uint32_t k = 0; k < 4000; k++) {
        dev_run(d, (uint64_t)k * MS + 256000);
        dev_send(d, k, 500, 0);
    }
    dev_run(d, GW_NEVER);
    for (uint32_t k = 0; k < 4000; k++)
        bad += a.at_ps[k] != (k / 5 + 1) * 20 * MS + 256000;
    CHECK_ROW(a.count == 4000 && !bad, "%u came, %u not in their slot", a.count, bad);
    dev_close(d);
}

/* ---- trees -------------------------------------------------------------------------------- */

/* A child gets frames when they are due; the limit counts both; what the child drops is gone. */
static void test_child(void)
{
    static struct arrivals a;
    struct dev *d = dev_open(1, "delay 10ms limit 50");
    char *text = NULL;

    CU_ASSERT_EQUAL(tc(d, "qdisc add dev v parent 1:1 handle 10: pfifo limit 4"), 0);
    tc_text(d, "class show dev v", &text);
    CHECK_ROW(text && strstr(text, "class netem 1:1 parent 1: leaf 10:"), "shows %s", text);
    free(text);
    memset(&a, 0, sizeof a);
    d->out = note_arrival;
    d->ctx = &a;
    for (uint32_t i = 0; i < 60; i++)
        dev_send(d, i, 100, 0);
    CU_ASSERT_EQUAL(d->drops[GW_DROP_QUEUE_FULL], 10);
    CU_ASSERT_EQUAL(d->t->root->backlog_pkts, 50);
    dev_run(d, GW_NEVER);
    CU_ASSERT_EQUAL(a.count, 4);                   /* 50 become due at once, 4 fit             */
    CU_ASSERT_EQUAL(d->drops[GW_DROP_QUEUE_FULL], 56);
    CU_ASSERT_EQUAL(d->t->root->backlog_pkts, 0);
    CU_ASSERT_EQUAL(d->t->root->backlog_bytes, 0);
    CU_ASSERT_EQUAL(d->t->root->dropped_pkts, 56);
    CU_ASSERT_EQUAL(d->live, 0);
    for (uint32_t i = 0; i < 3; i++) {
        dev_run(d, d->now_ps + 20 * MS);
        dev_send(d, i, 100, 0);
    }
    CU_ASSERT_EQUAL(tc(d, "qdisc del dev v parent 1:1 handle 10:"), 0);
    dev_run(d, GW_NEVER);
    CU_ASSERT_EQUAL(d->t->root->backlog_pkts, 0);
    for (uint32_t i = 0; i < 40; i++)
        dev_send(d, i, 100, 0);
    a.count = 0;
    dev_run(d, GW_NEVER);
    CU_ASSERT_EQUAL(a.count, 40);                  /* straight out again                       */
    dev_close(d);
}

static void test_no_two_with_duplicates(void)
{
    struct dev *d = dev_open(1, "delay 1ms");

    CU_ASSERT_EQUAL(tc(d, "qdisc add dev v parent 1:1 handle 10: netem duplicate 5%"), 2);
    CU_ASSERT_EQUAL(tc(d, "qdisc add dev v parent 1:1 handle 10: netem delay 5ms"), 0);
    CU_ASSERT_EQUAL(tc(d, "qdisc change dev v root handle 1: netem duplicate 5%"), 2);
    CU_ASSERT_EQUAL(tc(d, "qdisc change dev v parent 1:1 handle 10: netem duplicate 5%"), 2);
    CU_ASSERT_EQUAL(tc(d, "qdisc change dev v root handle 1: netem delay 2ms"), 0);
    dev_close(d);
}

/* ---- advice ------------------------------------------------------------------------------- */

static void hear(void *ctx, const char *sentence)
{
    char *all = ctx;

    snprintf(all + strlen(all), 4096 - strlen(all), "%s\n", sentence);
}

static void test_advice(void)
{
    static const struct { const char *netem, *said; } rows[] = {
        { "delay 100ms", "at most 10000 packets/s through (120 Mbit/s" },
        { "loss 10% 25%", "1.75%" }, { "loss 10% 50%", "0.108%" }, { "corrupt 20% 30%", "8.3%" },
        { "delay 1ms reorder 25% 50%", "6.94%" }, { "delay 1ms reorder 100% gap 5", "20%" },
        { "loss gemodel 1% 10% 70% 0.1%", "6.455% of the frames in bursts of 2.641" },
        { "loss state 5% 30%", "14.29% of the frames in bursts of 3.333" },
        { "loss state 1% 10% 95%", "wraps" },
        { "duplicate 10% 50%", "not sent" }, { "delay 10us", "9.984us" },
        { "delay 10ms 5ms", "reorders" }, { "delay 5ms 10ms", "25% of the frames are not delayed" },
        { "delay 10ms 2ms 25%", "no trace" }, { "delay 10ms rate 1mbit", "not added behind" },
        { "delay 50ms 10ms distribution pareto", "mean 49.6" },
    };

    for (size_t i = 0; i < GW_ARRAY_LEN(rows); i++) {
        struct dev *d = dev_open(1, rows[i].netem);
        char all[4096] = "";

        gw_tree_advise(d->t, hear, all);
        CHECK_ROW(strstr(all, rows[i].said), "netem %s: no \"%s\" in\n%s", rows[i].netem,
                  rows[i].said, all);
        dev_close(d);
    }
}

/* Nothing to say about plain words. */
static void test_no_advice(void)
{
    static const char *const rows[] = { "", "loss 1%", "delay 1ms limit 4294967295", "rate 1mbit",
                                        "corrupt 1%", "duplicate 1%", "slot 1ms" };

    for (size_t i = 0; i < GW_ARRAY_LEN(rows); i++) {
        struct dev *d = dev_open(1, rows[i]);
        char all[4096] = "";

        gw_tree_advise(d->t, hear, all);
        CHECK_ROW(!*all, "netem %s: %s", rows[i], all);
        dev_close(d);
    }
}

static void test_share_function(void)
{
    static const struct { double p, rho, share; } rows[] = {
        { 0.1, 0.25, 0.0175 }, { 0.1, 0.5, 0.0010834 }, { 0.5, 0.5, 0.5 }, { 0.2, 0.3, 0.0829540 },
        { 0.3, 0.6, 0.0890571 }, { 0.7, 0.4, 0.8291826 }, { 0.12, 0.15, 0.0547070 },
        { 0.45, 0.8, 0.3077655 }, { 0.4, 0.95, 0.0148790 }, { 0.08, 0.2, 0.0144097 },
        { 0.48, 0.985, 0.2131438 }, { 0, 0.5, 0 }, { 1, 0.5, 1 }, { 0.3, 0, 0.3 },
        { 0.25, 1, 0.25 },
    };

    for (size_t i = 0; i < GW_ARRAY_LEN(rows); i++) {
        double got = gw_crandom_share((uint32_t)rint(rows[i].p * UINT32_MAX),
                                      (uint32_t)rint(rows[i].rho * UINT32_MAX));

        CHECK_ROW(fabs(got - rows[i].share) <= 0.003 * rows[i].share + 1e-9,
                  "%g with %g: %.7f want %.7f", rows[i].p, rows[i].rho, got, rows[i].share);
    }
}

static const struct gw_case cases[] = {
    { "words, exit codes, text", test_words },
    { "JSON", test_json },
    { "what a change keeps", test_change },
    { "the four tables", test_tables },
    { "tables as text", test_table_text },
    { "the delay line's order", test_line },
    { "the kernel's traces", test_traces },
    { "instants", test_instants },
    { "case S1", test_s1 },
    { "a change with frames held", test_change_while_held },
    { "reset", test_reset },
    { "loss shares and bursts", test_loss },
    { "loss of none and all", test_loss_ends },
    { "correlated loss", test_correlated_loss },
    { "ecn", test_ecn },
    { "duplicates and flips", test_copies },
    { "places of flips", test_flip_places },
    { "a copy goes first", test_copy_order },
    { "reorder shares", test_reorder },
    { "delay quantiles", test_delays },
    { "odd delays", test_odd_delays },
    { "a rate keeps the order", test_rate_keeps_order },
    { "slots", test_slots },
    { "slots with a rate", test_slot_rate },
    { "a child", test_child },
    { "no duplicates beside another netem", test_no_two_with_duplicates },
    { "advice", test_advice },
    { "no advice", test_no_advice },
    { "long-run shares", test_share_function },
    { NULL, NULL },
};

extern const struct gw_suite suite_sch_netem;
const struct gw_suite suite_sch_netem = { "sch_netem", cases };
