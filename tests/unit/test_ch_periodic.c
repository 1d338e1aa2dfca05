/* test_ch_periodic - which packets are lost, counted one by one */
#include "tests/unit/suite.h"

#include <gradwire/gradwire.h>

extern const struct gw_plugin gw_channel_periodic;

/* @lost: numbers of the first lost packets among 40, from 1; every third packet is an ACK. */
static const struct {
    const char *name, *every, *first, *acks;
    uint32_t lost[4];
} rows[] = {
    { "every packet",          "1", "0", "yes", { 1, 2, 3, 4 } },
    { "every 10th, all",       "10", "0", "yes", { 10, 20, 30, 40 } },
    { "the third first",       "10", "3", "yes", { 3, 13, 23, 33 } },
    { "every 10th of data",    "10", "0", "no", { 14, 29, 0, 0 } },
    { "the second first",      "10", "2", "no", { 2, 17, 32, 0 } },
    { "longer than the trial", "100", "0", "no", { 0, 0, 0, 0 } },
};

static void test_periodic(void)
{
    const struct gw_channel_ops *ops = gw_channel_periodic.ops;

    for (size_t i = 0; i < GW_ARRAY_LEN(rows); i++) {
        const char *value[] = { rows[i].every, rows[i].first, rows[i].acks };
        uint64_t conf[8] = { 0 }, priv[8] = { 0 };
        struct gw_channel c = { .ops = ops, .conf = conf, .priv = priv };
        struct gw_error err = { GW_OK, "" };
        uint32_t found = 0;

        CU_ASSERT_FATAL(ops->conf_bytes <= sizeof conf && ops->priv_bytes <= sizeof priv);
        for (uint32_t k = 0; k < 3; k++)
            CU_ASSERT_EQUAL(gw_param_set(&gw_channel_periodic.params[k], conf, value[k], NULL, &err),
                            GW_OK);
        CU_ASSERT_EQUAL(ops->init(&c, &err), GW_OK);
        for (uint32_t k = 1; k <= 40; k++) {
            struct gw_pkt p = { .flags = k % 3 ? 0 : GW_PKT_REVERSE };
            uint64_t extra = 0;
            uint32_t fate = ops->transit(&c, &p, 0, &extra);

            CU_ASSERT_EQUAL(extra, 0);
            if (fate == GW_FATE_PASS)
                continue;
            CHECK_ROW(found < 4 ? k == rows[i].lost[found] : rows[i].lost[3] != 0,
                      "%s: packet %u is lost", rows[i].name, k);
            found++;
        }
        CHECK_ROW(found >= 4 || !rows[i].lost[found], "%s: %u packets lost", rows[i].name, found);
    }
}

static const struct gw_case cases[] = {
    { "every n-th packet", test_periodic },
    { NULL, NULL },
};
const struct gw_suite suite_ch_periodic = { "ch_periodic", cases };
