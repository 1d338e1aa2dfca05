/*
 * test_pktwin - windows of numbered packets against plain arrays, and the queue that trims
 */
#include "suite.h"

#include <gradwire/alg/pktwin.h>
#include <gradwire/plugin.h>
#include <gradwire/rng.h>

#include <stdlib.h>

extern const struct gw_plugin gw_qdisc_ndp;

#define PKTS 4000u

/* The sender: counters and the list of lost packets against states kept beside. */
static void sender(void)
{
    for (uint32_t seed = 0; seed < 20; seed++) {
        uint8_t state[PKTS] = { 0 };              /* 0 new, 1 out, 2 lost, 3 acked                */
        uint32_t len[PKTS], order[4 * PKTS], head = 0, tail = 0, n = 0, una = 0;
        struct gw_pw_tx w = { 0 };
        struct gw_rng r;

        gw_rng_open(&r, seed, "pktwin/tx");
        for (uint32_t step = 0; step < 20000 && una < PKTS; step++) {
            uint32_t dice = gw_rng_below(&r, 10), out = 0, lost = 0;
            uint64_t number, pick = una + gw_rng_below(&r, n - una + 1);

            if (dice < 4 && n < PKTS && n - una < 300 + 100 * (seed % 5)) {
                CU_ASSERT_FATAL(gw_pw_reserve(&w, realloc));
                len[n] = 1 + gw_rng_below(&r, 1500);
                gw_pw_new(&w, len[n], step);
                state[n++] = 1;
            } else if (dice < 6) {
                bool was = pick < n && state[pick] == 1;

                CHECK_ROW(gw_pw_lose(&w, pick) == was, "seed %u: packet %llu lost", seed,
                          (unsigned long long)pick);
                if (was) {
                    state[pick] = 2;
                    order[tail++ % GW_ARRAY_LEN(order)] = (uint32_t)pick;
                }
            } else if (dice < 7) {
                struct gw_pw_pkt *k = gw_pw_again(&w, step, &number);

                while (head < tail && state[order[head % GW_ARRAY_LEN(order)]] != 2)
                    head++;
                CHECK_ROW((k != NULL) == (head < tail), "seed %u: something is lost", seed);
                if (k) {
                    CU_ASSERT_EQUAL(number, order[head % GW_ARRAY_LEN(order)]);
                    state[order[head++ % GW_ARRAY_LEN(order)]] = 1;
                }
            } else {
                uint32_t want = pick < n && state[pick] != 3 ? len[pick] : 0;

                CU_ASSERT_EQUAL(gw_pw_ack(&w, pick), want);
                if (pick < n)
                    state[pick] = 3;
            }
            while (una < n && state[una] == 3)
                una++;
            for (uint32_t i = una; i < n; i++) {
                out += state[i] == 1;
                lost += state[i] == 2;
            }
            if (w.una != una || w.nxt != n || w.out_pkts != out || w.lost_pkts != lost) {
                CHECK_ROW(false, "seed %u step %u: una %llu nxt %llu out %u lost %u, want %u %u %u %u",
                          seed, step, (unsigned long long)w.una, (unsigned long long)w.nxt,
                          w.out_pkts, w.lost_pkts, una, n, out, lost);
                break;
            }
        }
        CHECK_ROW(una > 500, "seed %u: only %u packets were acknowledged", seed, una);
        free(w.ring);
    }
}

/* The receiver: packets in any order, twice or thrice. */
static void receiver(void)
{
    for (uint32_t seed = 0; seed < 20; seed++) {
        uint8_t seen[PKTS] = { 0 };
        uint32_t cum = 0, span = 1 + 40 * seed;
        uint64_t bytes = 0;
        struct gw_pw_rx w = { 0 };
        struct gw_rng r;

        gw_rng_open(&r, seed, "pktwin/rx");
        while (cum < PKTS) {
            uint32_t i = (cum > 3 ? cum - 3 : 0) + gw_rng_below(&r, span + 3);

            if (i >= PKTS)
                i = cum;
            CU_ASSERT_EQUAL(gw_pw_rx_take(&w, i, 1 + i % 7, realloc), !seen[i]);
            seen[i] = 1;
            for (; cum < PKTS && seen[cum]; cum++)
                bytes += 1 + cum % 7;
            if (w.cum != cum || w.bytes != bytes) {
                CHECK_ROW(false, "seed %u: cum %llu bytes %llu, want %u %llu", seed,
                          (unsigned long long)w.cum, (unsigned long long)w.bytes, cum,
                          (unsigned long long)bytes);
                break;
            }
        }
        free(w.ring);
    }
}

static void numbers(void)
{
    static const struct {
        uint64_t near;
        uint32_t low;
        uint64_t want;
    } row[] = {
        { 0, 5, 5 },
        { 0x100000000, 0, 0x100000000 },
        { 0x100000000, 0xffffffff, 0xffffffff },
        { 0xfffffff0, 3, 0x100000003 },
        { 0x500000000, 7, 0x500000007 },
    };

    for (size_t i = 0; i < GW_ARRAY_LEN(row); i++)
        CHECK_ROW(gw_pw_number(row[i].near, row[i].low) == row[i].want, "row %zu: got %llx", i,
                  (unsigned long long)gw_pw_number(row[i].near, row[i].low));
}

/* ---- the queue -------------------------------------------------------------------------------- */

struct ndp_conf {                /* as sch_ndp.c reads it: filled from its rows                  */
    uint64_t word[16];
};

static struct gw_pkt *packet(struct gw_pkt *store, uint32_t i, uint32_t bytes, bool trimmable)
{
    struct gw_pkt *p = &store[i];

    *p = (struct gw_pkt){ .len_bytes = bytes, .sched_bytes = bytes, .flow = i,
                          .flags = trimmable ? GW_PKT_TRIMMABLE : 0 };
    return p;
}

/* A discipline with the options of @text, pairs of name and value, else the defaults. */
static void ndp_open(struct gw_qdisc *q, struct ndp_conf *conf, const char *const *text)
{
    const struct gw_qdisc_ops *ops = gw_qdisc_ndp.ops;
    struct gw_error err = { 0 };

    CU_ASSERT_FATAL(sizeof *conf >= ops->conf_bytes);
    for (uint32_t i = 0; i < gw_qdisc_ndp.param_count; i++) {
        const struct gw_param *row = &gw_qdisc_ndp.params[i];
        const char *value = row->def;

        for (const char *const *t = text; *t; t += 2)
            if (!strcmp(*t, row->name))
                value = t[1];
        CU_ASSERT_EQUAL(gw_param_set(row, conf, value, "test", &err), GW_OK);
    }
    *q = (struct gw_qdisc){ .ops = ops, .mtu_bytes = 1514, .conf = conf,
                            .priv = calloc(1, ops->priv_bytes) };
    CU_ASSERT_PTR_NOT_NULL_FATAL(q->priv);
    gw_rng_open(&q->rng, 1, "ndp");
    CU_ASSERT_EQUAL(ops->init(q, &err), GW_OK);
}

/* Eight wait, more are trimmed; headers go first, ten to one; no packet is lost or doubled. */
static void trimming(void)
{
    const struct gw_qdisc_ops *ops = gw_qdisc_ndp.ops;
    struct gw_qdisc q;
    struct ndp_conf conf;
    struct gw_pkt store[64], *p;
    uint32_t full = 0, headers = 0, run = 0, seen[64] = { 0 }, swapped = 0;

    ndp_open(&q, &conf, (const char *const[]){ NULL });
    for (uint32_t i = 0; i < 40; i++) {
        enum gw_verdict v = ops->enqueue(&q, packet(store, i, 1500, true), 0);

        CHECK_ROW(v == (i < 8 ? GW_Q_QUEUED : GW_Q_TRIMMED), "packet %u: verdict %d", i, (int)v);
    }
    CU_ASSERT_EQUAL(ops->enqueue(&q, packet(store, 40, 1500, false), 0), GW_Q_DROPPED);
    CU_ASSERT_EQUAL(ops->enqueue(&q, packet(store, 41, 64, false), 0), GW_Q_QUEUED);
    while ((p = ops->dequeue(&q, 0))) {
        seen[p->flow]++;
        if (p->len_bytes == 64) {
            CU_ASSERT(p->flow == 41 || (p->flags & GW_PKT_TRIMMED && p->orig_len_bytes == 1500));
            swapped += p->flow < 8;
            headers++;
            run++;
            CHECK_ROW(run <= 10 || full == 8, "%u short packets in a row, %u full", run, full);
        } else {
            CHECK_ROW(headers == 33 || run == 10, "a full packet after %u short ones", run);
            full++;
            run = 0;
        }
    }
    CHECK_ROW(full == 8 && headers == 33, "%u full and %u short packets, want 8 and 33", full,
              headers);
    CHECK_ROW(swapped > 0, "the coin never chose a packet that waited");
    for (uint32_t i = 0; i < 42; i++)
        CHECK_ROW(seen[i] == (i != 40), "packet %u left %u times", i, seen[i]);
    free(q.priv);
}

/* Headers beyond the room for them go back; with `return: no`, and what is no such header, are lost. */
static void giving_back(void)
{
    static const struct {
        const char *give_back;
        uint32_t bytes;
        uint8_t  flags;
        enum gw_drop_reason want;
    } row[] = {
        { "yes", 1500, GW_PKT_TRIMMABLE, GW_DROP_RETURNED },
        { "yes", 64, GW_PKT_TRIMMABLE | GW_PKT_TRIMMED, GW_DROP_RETURNED },
        { "yes", 64, GW_PKT_TRIMMABLE | GW_PKT_TRIMMED | GW_PKT_REVERSE, GW_DROP_QUEUE_FULL },
        { "yes", 64, GW_PKT_REVERSE, GW_DROP_QUEUE_FULL },
        { "yes", 64, 0, GW_DROP_QUEUE_FULL },
        { "yes", 1500, 0, GW_DROP_QUEUE_FULL },
        { "no", 1500, GW_PKT_TRIMMABLE, GW_DROP_QUEUE_FULL },
        { "no", 64, GW_PKT_TRIMMABLE | GW_PKT_TRIMMED, GW_DROP_QUEUE_FULL },
    };

    for (size_t i = 0; i < GW_ARRAY_LEN(row); i++) {
        struct gw_pkt store[16];
        struct ndp_conf conf;
        struct gw_qdisc q = { 0 };
        enum gw_verdict v;

        ndp_open(&q, &conf, (const char *const[]){ "headers", "256", "return", row[i].give_back, NULL });
        for (uint32_t k = 0; k < 12; k++)               /* eight, and four headers              */
            q.ops->enqueue(&q, packet(store, k, 1500, true), 0);
        *packet(store, 12, row[i].bytes, false) =
            (struct gw_pkt){ .len_bytes = row[i].bytes, .sched_bytes = row[i].bytes, .flow = 12,
                             .flags = row[i].flags };
        v = q.ops->enqueue(&q, &store[12], 0);
        CHECK_ROW(v == GW_Q_DROPPED && q.drop_reason == row[i].want,
                  "row %zu: verdict %d, reason %d, want %d", i, (int)v, (int)q.drop_reason,
                  (int)row[i].want);
        free(q.priv);
    }
}

static const struct gw_case cases[] = {
    { "packets out, lost and acknowledged", sender },
    { "packets that come in any order", receiver },
    { "numbers from their low halves", numbers },
    { "eight packets wait, the rest is trimmed", trimming },
    { "headers without room go back", giving_back },
    { NULL, NULL },
};

const struct gw_suite suite_pktwin = { "pktwin", cases };
