/*
 * test_sch_skbprio - which packets skbprio keeps and in which order they leave
 *
 * By hand from net/sched/sch_skbprio.c of Linux 6.1: programs of arrivals with priorities, then all
 * leave. A packet's name is its place in the program.
 */
#include "tests/unit/suite.h"

#include "emu/tc/cmd.h"

#include <stdlib.h>

enum { PKTS = 16 };

static const struct {
    const char *name;
    const char *limit;           /* words behind skbprio                                       */
    uint32_t prio[PKTS];         /* of the arrivals                                            */
    uint32_t count;
    const char *leave, *drop;    /* their places, one letter each: a first                     */
} programs[] = {
    { "highest first, in order inside", "", { 0, 5, 5, 63, 1 }, 5, "dbcea", "" },
    { "above 63 counts as 63", "", { 62, 64, 1000, 63 }, 4, "bcda", "" },
    { "full of equals: the new one goes", "limit 2", { 3, 3, 3 }, 3, "ab", "c" },
    { "full of higher ones: the new one goes", "limit 2", { 4, 5, 3 }, 3, "ba", "c" },
    { "the lowest queue pays with its last", "limit 3", { 1, 1, 2, 9 }, 4, "dca", "b" },
    { "and again, up to the next queue", "limit 3", { 1, 1, 2, 9, 9, 9, 9 }, 7, "def", "bacg" },
    { "limit 0: nothing is kept", "limit 0", { 7, 8 }, 2, "", "ab" },
};

struct told {
    struct gw_pkt *first;        /* the program's packets                                      */
    char text[PKTS + 1];         /* dropped later, through the host                            */
};

static void tell_drop(void *ctx, struct gw_pkt *p, enum gw_drop_reason why)
{
    struct told *t = ctx;

    CU_ASSERT_EQUAL(why, GW_DROP_QUEUE_FULL);
    t->text[strlen(t->text)] = (char)('a' + (p - t->first));
}

static struct gw_tree *tree_;

static struct gw_tree *device(void *ctx, const char *name, struct gw_error *err)
{
    (void)ctx, (void)name, (void)err;
    return tree_;
}

static int tc(const char *line)
{
    struct gw_tc_ctx c = { .device = device };
    struct gw_error err = { 0 };
    uint32_t count;
    char **word = gw_tc_split(line, &count);
    int rc = gw_tc_run(&c, word, count, &err);

    free(word[0]);
    free(word);
    return rc;
}

static void program(struct gw_registry *reg, size_t i)
{
    struct gw_pkt pkt[PKTS] = { 0 }, *p;
    struct told told = { .first = pkt };
    struct gw_error err = { 0 };
    char line[80], left[PKTS + 1] = "";

    tree_ = gw_tc_scratch(reg, "d", &err);
    CU_ASSERT_PTR_NOT_NULL_FATAL(tree_);
    tree_->conf.ctx = &told;
    tree_->conf.drop = tell_drop;
    snprintf(line, sizeof line, "qdisc add dev d root skbprio %s", programs[i].limit);
    CU_ASSERT_EQUAL_FATAL(tc(line), 0);
    for (uint32_t k = 0; k < programs[i].count; k++) {
        pkt[k].len_bytes = 100 + k;
        pkt[k].priority = programs[i].prio[k];
        if (gw_tree_enqueue(tree_, &pkt[k], k) == GW_Q_DROPPED)
            told.text[strlen(told.text)] = (char)('a' + k);
    }
    CU_ASSERT_EQUAL(tree_->root->backlog_pkts, strlen(programs[i].leave));
    CU_ASSERT_EQUAL(tree_->root->dropped_pkts, strlen(programs[i].drop));
    while ((p = gw_tree_dequeue(tree_, PKTS)))
        left[strlen(left)] = (char)('a' + (p - pkt));
    CHECK_ROW(!strcmp(left, programs[i].leave), "%s: left %s, want %s", programs[i].name, left,
              programs[i].leave);
    CHECK_ROW(!strcmp(told.text, programs[i].drop), "%s: dropped %s, want %s", programs[i].name,
              told.text, programs[i].drop);
    CU_ASSERT_EQUAL(tree_->root->backlog_bytes, 0);
    gw_tree_free(tree_);
}

static void keeps_and_order(void)
{
    struct gw_error err = { 0 };
    struct gw_registry *reg = gw_registry_new(false, &err);

    CU_ASSERT_PTR_NOT_NULL_FATAL(reg);
    for (size_t i = 0; i < GW_ARRAY_LEN(programs); i++)
        program(reg, i);
    gw_registry_free(reg);
}

static void words(void)
{
    struct gw_error err = { 0 };
    struct gw_registry *reg = gw_registry_new(false, &err);

    CU_ASSERT_PTR_NOT_NULL_FATAL(reg);
    tree_ = gw_tc_scratch(reg, "d", &err);
    CU_ASSERT_EQUAL(tc("qdisc add dev d root skbprio limit"), 255);
    CU_ASSERT_EQUAL(tc("qdisc add dev d root skbprio limit x"), 1);
    CU_ASSERT_EQUAL(tc("qdisc add dev d root skbprio bogus"), 1);
    CU_ASSERT_EQUAL(tc("qdisc add dev d root handle 1: skbprio"), 0);
    CU_ASSERT_EQUAL(tc("qdisc change dev d root skbprio limit 9"), 0);
    CU_ASSERT_EQUAL(tc("qdisc add dev d parent 1:1 pfifo"), 2);
    gw_tree_free(tree_);
    gw_registry_free(reg);
}

static const struct gw_case cases[] = {
    { "what is kept, and in which order it leaves", keeps_and_order },
    { "words", words },
    { NULL, NULL },
};

extern const struct gw_suite suite_sch_skbprio;
const struct gw_suite suite_sch_skbprio = { "sch_skbprio", cases };
