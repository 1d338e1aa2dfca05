/*
 * test_tc_refusals - good tc lines made wrong, one word at a time
 *
 * For every discipline, class and filter there is a good line. Each of its words is made wrong in
 * several ways: misspelt, replaced by a value of another kind, out of all bounds or negative, given
 * without what belongs behind it. A line that is accepted still (a name may be abbreviated, a
 * number may be large) does not count; every other one must be refused with one sentence that names
 * the word. What was refused leaves no trace: `show` says the same before and after.
 */
#include "tests/unit/suite.h"

#include "emu/core/registry.h"
#include "emu/tc/cmd.h"

#include <stdlib.h>
#include <unistd.h>

#define LINES_FILE "tc-refusals-lines"           /* a recording for link_trace, made by the test   */

enum { WORDS_MAX = 64, WORD_BYTES = 256 };

struct good {
    const char *set_up[4];       /* lines before it                                            */
    const char *line;
};

#define Q(words) { { NULL }, "qdisc add dev d root handle 1: " words }
#define C(root, line)  { { "qdisc add dev d root handle 1: " root }, line }

static const struct good goods[] = {
    Q("pfifo limit 100"),
    Q("bfifo limit 30k"),
    Q("pfifo_head_drop limit 100"),
    Q("pfifo_fast"),
    Q("prio bands 4 priomap 1 2 2 2 1 2 0 0 1 1 1 1 1 1 1 1"),
    Q("skbprio limit 64"),
    Q("tbf rate 10mbit burst 32k latency 50ms peakrate 20mbit mtu 2000 mpu 64 overhead 14"),
    Q("htb default 10 r2q 10 direct_qlen 50"),
    Q("drr"),
    Q("ets bands 5 strict 2 quanta 4500 3000 2500 priomap 0 1 1 1 2 3 4"),
    Q("sfq limit 120 perturb 10 quantum 1514 flows 128 divisor 512 depth 100 headdrop"),
    Q("sfq redflowlimit 30000 min 8000 max 20000 burst 14 probability 0.1 ecn harddrop"),
    Q("fq limit 9000 flow_limit 90 quantum 3028 initial_quantum 15140 maxrate 5mbit buckets 512 "
      "orphan_mask 1023 low_rate_threshold 500kbit refill_delay 40ms pacing ce_threshold 5ms "
      "timer_slack 10us horizon 5s horizon_drop"),
    Q("red limit 400000 min 30000 max 90000 avpkt 1000 burst 55 probability 0.1 bandwidth 10mbit "
      "ecn harddrop adaptive"),
    Q("gred setup vqs 4 default 1 grio limit 60kb"),
    C("gred setup vqs 4 default 1 grio", "qdisc change dev d root handle 1: gred limit 60KB min "
      "15K max 25K burst 20 avpkt 1000 bandwidth 10Mbit vq 2 prio 2 probability 0.1"),
    Q("choke limit 1000 bandwidth 10mbit min 83 max 250 burst 90 probability 0.1 ecn"),
    Q("codel limit 1000 target 5ms interval 100ms ce_threshold 4ms ecn"),
    Q("fq_codel limit 10240 flows 512 target 4ms interval 90ms quantum 1514 ce_threshold 3ms "
      "ce_threshold_selector 0x1/0x3 memory_limit 16mb drop_batch 32 ecn"),
    Q("pie limit 900 target 14ms tupdate 30ms alpha 3 beta 25 ecn bytemode "
      "dq_rate_estimator"),
    Q("fq_pie limit 9000 flows 512 target 14ms tupdate 30ms alpha 3 beta 25 quantum 1514 "
      "memory_limit 16mb ecn_prob 10 ecn bytemode dq_rate_estimator"),
    Q("cake bandwidth 20mbit diffserv4 dual-srchost nat wash ack-filter rtt 50ms overhead 18 "
      "mpu 64 atm memlimit 4mb split-gso fwmark 0xff"),
    Q("netem limit 800 delay 10ms 3ms 25% distribution normal loss 1% 20% duplicate 2% 10% corrupt "
      "0.5% 5% reorder 20% 30% gap 4 rate 8mbit 20 53 5"),
    Q("netem loss gemodel 1% 10% 70% 0.1% ecn slot 2ms 5ms packets 4 bytes 5000"),
    Q("netem loss state 1% 30% 20% 80% 2% slot distribution pareto 2ms 1ms"),
    Q("netem seed 7 limit auto"),
    Q("ecn_threshold kmin 30k kmax 90k pmax 20% limit 400k"),
    Q("ndp limit 8 headers 64k ratio 10 trim 64 small 128 mark_min 4 mark_max 8"),
    Q("spq_dwrr bands 5 strict 2 quanta 4500 3000 1514 limit 90k by priority priomap 0 1 2 3 4"),
    Q("link_trace file " LINES_FILE " format mahimahi limit 500"),
    { { NULL }, "qdisc replace dev d root handle 1: stab mtu 2048 tsize 256 mpu 64 overhead 20 "
      "linklayer atm pfifo limit 10" },
    C("prio", "qdisc add dev d parent 1:2 handle 20: codel limit 50"),
    C("prio", "qdisc del dev d root handle 1: prio"),
    C("pfifo", "-s -j -p qdisc show dev d"),
    C("drr", "class add dev d parent 1: classid 1:1 drr quantum 2k"),
    C("htb", "class add dev d parent 1: classid 1:1 htb rate 5mbit ceil 8mbit burst 16k cburst 8k "
      "prio 2 quantum 3000 mtu 1600 mpu 64 overhead 18 linklayer atm"),
    C("ets bands 3 quanta 3000 2000 1000", "class change dev d classid 1:2 ets quantum 5000"),
    { { "qdisc add dev d root handle 1: drr", "class add dev d parent 1: classid 1:1 drr" },
      "class del dev d classid 1:1" },
    C("drr", "class show dev d root"),
    C("prio", "filter add dev d parent 1: protocol ip pref 3 handle 800::5 u32 match ip dport 80 "
      "0xffff match ip src 10.0.0.0/8 flowid 1:1"),
    C("prio", "filter add dev d parent 1: protocol ip prio 4 u32 match u16 1500 0xffff at 2 match "
      "ip dsfield 0x28 0xfc classid 1:2"),
    C("prio", "filter add dev d parent 1: protocol all prio 5 handle 6/0xff fw classid 1:3"),
    C("prio", "filter add dev d parent 1: protocol ip prio 6 flower ip_proto tcp dst_port 80-90 "
      "src_ip 10.0.0.0/8 dst_ip 10.1.2.3 ip_tos 0x28/0xfc classid 1:1"),
    C("prio", "filter add dev d parent 1: prio 7 basic match meta ( priority eq 6 ) and "
      "not tag ( layer gt 3 ) or cmp ( u16 at 2 layer transport mask 0xfff lt 80 ) classid 1:1"),
    C("prio", "filter add dev d parent 1: prio 8 matchall classid 1:2"),
};

/* ---- a device ----------------------------------------------------------------------------- */

struct desk {
    struct gw_registry *reg;
    struct gw_tree     *tree;
    struct gw_error     err;
};

static struct gw_tree *desk_device(void *ctx, const char *name, struct gw_error *err)
{
    struct desk *d = ctx;

    if (!strcmp(name, "d"))
        return d->tree;
    gw_fail(err, GW_PARAM, "the only device is d");
    return NULL;
}

static struct gw_tree *desk_device_at(void *ctx, size_t i)
{
    return i ? NULL : ((struct desk *)ctx)->tree;
}

static void desk_clear(struct desk *d)
{
    gw_tree_free(d->tree);
    memset(&d->err, 0, sizeof d->err);
    d->tree = gw_tc_scratch(d->reg, "d", &d->err);
    CU_ASSERT_PTR_NOT_NULL_FATAL(d->tree);
}

static int run_words(struct desk *d, char *const *word, uint32_t count)
{
    struct gw_tc_ctx c = { .ctx = d, .device = desk_device, .device_at = desk_device_at };
    char *text = NULL;
    size_t n = 0;
    int rc;

    c.out = open_memstream(&text, &n);
    CU_ASSERT_PTR_NOT_NULL_FATAL(c.out);
    memset(&d->err, 0, sizeof d->err);
    rc = gw_tc_run(&c, word, count, &d->err);
    fclose(c.out);
    free(text);
    return rc;
}

static int run_line(struct desk *d, const char *line)
{
    uint32_t count = 0;
    char **word = gw_tc_split(line, &count);
    int rc;

    CU_ASSERT_PTR_NOT_NULL_FATAL(word);
    rc = run_words(d, word, count);
    free(word[0]);
    free(word);
    return rc;
}

static void set_up(struct desk *d, const struct good *g)
{
    desk_clear(d);
    for (size_t i = 0; i < GW_ARRAY_LEN(g->set_up) && g->set_up[i]; i++) {
        int rc = run_line(d, g->set_up[i]);

        CHECK_ROW(!rc, "%s: %d %s", g->set_up[i], rc, d->err.text);
    }
}

/* ---- mutations ---------------------------------------------------------------------------- */

/* How @word may be made wrong; NULL: there are no more ways. */
static const char *wrong_word(const char *word, uint32_t way, char *buf)
{
    static const char *const other[] = { "bogus", "-7", "99999999999999999999", "1.5x", "", "0",
                                         "nan", "1e400", "%" };
    size_t n = strlen(word);

    if (way < GW_ARRAY_LEN(other))
        return other[way];
    snprintf(buf, WORD_BYTES, "%s", word);
    if (*word == '(' || *word == ')')        /* a bracket is a word by itself                  */
        return way < GW_ARRAY_LEN(other) + 1 ? buf : NULL;
    switch (way - GW_ARRAY_LEN(other)) {
    case 0:
        snprintf(buf, WORD_BYTES, "%sz", word);
        return buf;
    case 1:
        snprintf(buf, WORD_BYTES, "-%s", word);
        return buf;
    case 2:
        if (n > 2 && !strpbrk(word, "0123456789")) {      /* with digits: another good number   */
            buf[n / 2] = word[n / 2 - 1];
            buf[n / 2 - 1] = word[n / 2];
        }
        return buf;
    default:
        return NULL;
    }
}

/* A good value for its place that makes the next word a wrong one, which is named then. */
static bool moves_on(const char *was, const char *sentence)
{
    static const struct { const char *was, *named; } rows[] = {
        { "53", "\"5\"" },               /* netem's cell size below 0 is read as the overhead  */
        { "distribution", "\"pareto\"" },        /* a time for a slot, what follows is no more */
        { "ip", "\"tcp\"" },             /* protocol 0 has no ports                            */
    };

    for (size_t i = 0; i < GW_ARRAY_LEN(rows); i++)
        if (!strcmp(was, rows[i].was) && strstr(sentence, rows[i].named))
            return true;
    return false;
}

struct tally {
    struct desk d;
    uint32_t refused, accepted;
    char    *before;             /* what `show` says after the set-up                          */
};

/* All that can be shown; to be freed. */
static char *shown(struct desk *d)
{
    static const char *const line[] = { "-s -j -d qdisc show dev d invisible",
                                        "-s -j -d class show dev d", "-s filter show dev d",
                                        "-s filter show dev d parent 1:" };
    struct gw_tc_ctx c = { .ctx = d, .device = desk_device, .device_at = desk_device_at };
    char *text = NULL;
    size_t n = 0;

    c.out = open_memstream(&text, &n);
    CU_ASSERT_PTR_NOT_NULL_FATAL(c.out);
    for (size_t i = 0; i < GW_ARRAY_LEN(line); i++) {
        uint32_t count = 0;
        char **word = gw_tc_split(line[i], &count);

        CU_ASSERT_PTR_NOT_NULL_FATAL(word);
        gw_tc_run(&c, word, count, NULL);
        free(word[0]);
        free(word);
    }
    fclose(c.out);
    return text;
}

/* Runs a line that should be wrong; what was refused has left the device as it was. */
static bool refused(struct tally *t, const struct good *g, char *const *word, uint32_t count)
{
    struct desk *d = &t->d;
    int rc = run_words(d, word, count);
    const char *say = d->err.text;
    char *after;

    if (!rc) {
        t->accepted++;
        set_up(d, g);
        return false;
    }
    t->refused++;
    CHECK_ROW((rc == 1 || rc == 2 || rc == 255) && *say && !strchr(say, '\n') &&
              strlen(say) < 400, "%s: exit code %d, \"%s\"", g->line, rc, say);
    after = shown(d);
    CHECK_ROW(!strcmp(t->before, after), "%s: \"%s\", but the device has changed:\n%s\n%s", g->line,
              say, t->before, after);
    free(after);
    return true;
}

/* Each word of @g made wrong, and the line ended in front of it. */
static void mutate(struct tally *t, const struct good *g)
{
    uint32_t count = 0;
    char **word = gw_tc_split(g->line, &count), buf[WORD_BYTES];
    const char *bad, *say = t->d.err.text;
    int rc;

    CU_ASSERT_PTR_NOT_NULL_FATAL(word);
    set_up(&t->d, g);
    rc = run_words(&t->d, word, count);
    CHECK_ROW(!rc, "%s: %d %s", g->line, rc, say);
    set_up(&t->d, g);
    t->before = shown(&t->d);
    for (uint32_t k = 0; k < count; k++) {
        char *was = word[k];
        bool named = false;

        for (uint32_t way = 0; (bad = wrong_word(was, way, buf)); way++) {
            word[k] = (char *)(uintptr_t)bad;
            if (strcmp(bad, was) && refused(t, g, word, count))
                CHECK_ROW(strstr(say, bad) || moves_on(was, say), "\"%s\" for %s in %s: %s", bad,
                          was, g->line, say);
        }
        word[k] = was;
        if (!k || !refused(t, g, word, k))
            continue;
        named = strstr(say, word[k - 1]) != NULL;
        for (uint32_t i = k; i < count; i++)                    /* or a word that is missing    */
            named |= strstr(say, word[i]) != NULL;
        CHECK_ROW(named, "nothing behind %s in %s: %s", word[k - 1], g->line, say);
    }
    free(t->before);
    free(word[0]);
    free(word);
}

static void test_mutants(void)
{
    struct tally t = { 0 };
    FILE *f = fopen(LINES_FILE, "w");

    CU_ASSERT_PTR_NOT_NULL_FATAL(f);
    fputs("1\n2\n5\n", f);
    fclose(f);
    t.d.reg = gw_registry_new(false, &t.d.err);
    CU_ASSERT_PTR_NOT_NULL_FATAL(t.d.reg);
    for (size_t i = 0; i < GW_ARRAY_LEN(goods); i++)
        mutate(&t, &goods[i]);
    CHECK_ROW(t.refused > 9000 && t.accepted > 500, "%u refused, %u accepted", t.refused,
              t.accepted);
    gw_tree_free(t.d.tree);
    gw_registry_free(t.d.reg);
    unlink(LINES_FILE);
}

/* There is a line for each discipline. */
static void test_none_forgotten(void)
{
    struct gw_error err = { 0 };
    struct gw_registry *r = gw_registry_new(false, &err);
    const struct gw_entry *e;

    CU_ASSERT_PTR_NOT_NULL_FATAL(r);
    for (size_t i = 0; (e = gw_registry_at(r, i)); i++) {
        char begin[80];
        bool found = e->plugin->kind != GW_KIND_QDISC;

        snprintf(begin, sizeof begin, "qdisc add dev d root handle 1: %s", e->plugin->name);
        for (size_t k = 0; k < GW_ARRAY_LEN(goods) && !found; k++)
            found = !strncmp(goods[k].line, begin, strlen(begin)) &&
                    strchr(" ", goods[k].line[strlen(begin)]);
        CHECK_ROW(found, "%s has no line here", e->plugin->name);
    }
    gw_registry_free(r);
}

static const struct gw_case cases[] = {
    { "mutants of good lines", test_mutants },
    { "no discipline is forgotten", test_none_forgotten },
    { NULL, NULL },
};
const struct gw_suite suite_tc_refusals = { "tc_refusals", cases };
