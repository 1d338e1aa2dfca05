/*
 * test_engine - order of events, lazy timers, the wheel against a sorted list
 *
 * The reference is a plain sort by (time, receiver, draw, sender, count) with the draw written out
 * again here, so that a change of the order shows.
 */
#include "tests/unit/suite.h"

#include <stdlib.h>

#include "emu/core/engine.h"
#include "gradwire/rng.h"

struct seen {
    uint64_t at;
    uint32_t comp;
    const struct gw_pkt *p;
};

struct log {
    struct gw_engine *e;
    struct seen *seen;
    size_t count, cap;
};

static void take(void *ctx, uint32_t comp, struct gw_pkt *p, uint64_t now_ps)
{
    struct log *l = ctx;

    CU_ASSERT_EQUAL(gw_engine_now(l->e), now_ps);
    if (l->count < l->cap)
        l->seen[l->count] = (struct seen){ now_ps, comp, p };
    l->count++;
}

struct key {
    uint64_t at, draw;
    uint32_t recv, send, count;
    size_t   index;
};

static int key_order(const void *x, const void *y)
{
    const struct key *a = x, *b = y;

    if (a->at != b->at)
        return a->at < b->at ? -1 : 1;
    if (a->recv != b->recv)
        return a->recv < b->recv ? -1 : 1;
    if (a->send != b->send) {
        if (a->draw != b->draw)
            return a->draw < b->draw ? -1 : 1;
        return a->send < b->send ? -1 : 1;
    }
    return a->count < b->count ? -1 : 1;
}

static uint64_t reference_draw(uint64_t seed, const struct key *k)
{
    uint64_t s = gw_mix64(seed + UINT64_C(0x9e3779b97f4a7c15));

    return gw_mix64(s ^ gw_mix64(k->at + UINT64_C(0x9e3779b97f4a7c15) * k->recv) ^
                    (uint64_t)k->send * UINT64_C(0xd6e8feb86659fd93));
}

/* Posts @n events with times below @span in a random order; all must come sorted. */
static void random_order(uint64_t span, double density, size_t n)
{
    struct gw_rng r;
    struct key *k = calloc(n, sizeof *k);
    struct gw_pkt *p = calloc(n, sizeof *p);
    struct log l = { .seen = calloc(n, sizeof *l.seen), .cap = n };
    uint32_t count[8] = { 0 };
    struct gw_error err = { 0 };
    size_t wrong = 0;
    bool more = true;

    gw_rng_open(&r, 11, "test/engine");
    l.e = gw_engine_new(5, density, take, &l);
    for (size_t i = 0; i < n; i++) {
        k[i].at = gw_rng_u64(&r) % span;
        k[i].recv = gw_rng_below(&r, 3);
        k[i].send = gw_rng_below(&r, 8);
        k[i].count = count[k[i].send]++;
        k[i].index = i;
        k[i].draw = reference_draw(5, &k[i]);
        gw_engine_post(l.e, k[i].at, k[i].recv, k[i].send, k[i].count, &p[i]);
    }
    CU_ASSERT_EQUAL(gw_engine_run(l.e, GW_NEVER, UINT64_MAX, &more, &err), GW_OK);
    CU_ASSERT_FALSE(more);
    CU_ASSERT_EQUAL(l.count, n);
    qsort(k, n, sizeof *k, key_order);
    for (size_t i = 0; i < n; i++)
        wrong += l.seen[i].p != &p[k[i].index] || l.seen[i].at != k[i].at;
    CHECK_ROW(wrong == 0, "span %llu: %zu of %zu events out of order", (unsigned long long)span,
              wrong, n);
    gw_engine_free(l.e);
    free(k);
    free(p);
    free(l.seen);
}

static void order_against_sort(void)
{
    random_order(1, 1, 3000);                     /* all at one instant                        */
    random_order(20, 1000, 3000);
    random_order(100000, 1000, 20000);
    random_order(UINT64_C(10000000), 1000, 20000); /* past the wheel's horizon                  */
    random_order(UINT64_C(1) << 50, 0.001, 20000);
}

/* Events that are made while events run: a chain of hops with delays from zero to far. */
struct chain {
    struct log    log;
    struct gw_rng r;
    uint64_t      last, left;
    uint32_t      count;
    size_t        backwards;
};

static void hop(void *ctx, uint32_t comp, struct gw_pkt *p, uint64_t now_ps)
{
    static const uint64_t delay[] = { 0, 1, 100, 5000, 1000000, 3000000, 9000000, 50000000000 };
    struct chain *c = ctx;

    c->backwards += now_ps < c->last;
    c->last = now_ps;
    if (!c->left)
        return;
    c->left--;
    gw_engine_post(c->log.e, now_ps + delay[gw_rng_below(&c->r, 8)], (comp + 1) & 7, comp,
                   c->count++, p);
}

static void never_backwards(void)
{
    struct chain c = { .left = 200000 };
    struct gw_pkt p[64];
    struct gw_error err = { 0 };
    bool more;

    gw_rng_open(&c.r, 3, "test/chain");
    c.log.e = gw_engine_new(1, 100, hop, &c);
    for (int i = 0; i < 64; i++)
        gw_engine_post(c.log.e, 0, 0, 0, c.count++, &p[i]);
    CU_ASSERT_EQUAL(gw_engine_run(c.log.e, GW_NEVER, UINT64_MAX, &more, &err), GW_OK);
    CU_ASSERT_EQUAL(c.backwards, 0);
    CU_ASSERT_EQUAL(gw_engine_events(c.log.e), 200064);
    gw_engine_free(c.log.e);
}

struct alarm {
    struct gw_timer t;
    struct gw_engine *e;
    uint64_t fired_at;
    unsigned fired;
};

static void ring(void *owner, uint64_t now_ps)
{
    struct alarm *a = owner;

    a->fired++;
    a->fired_at = now_ps;
}

/* What a timer does after a list of operations: S set, X stop. */
static void timers_are_lazy(void)
{
    static const struct {
        const char *what;
        struct { char op; uint64_t at; } step[4];
        unsigned fired;
        uint64_t at;
    } row[] = {
        { "set once",                  { { 'S', 500 } }, 1, 500 },
        { "later: fires at the later", { { 'S', 500 }, { 'S', 90000000 } }, 1, 90000000 },
        { "earlier: at the earlier",   { { 'S', 90000000 }, { 'S', 500 } }, 1, 500 },
        { "stopped",                   { { 'S', 500 }, { 'X', 0 } }, 0, 0 },
        { "stopped, set later",        { { 'S', 500 }, { 'X', 0 }, { 'S', 700 } }, 1, 700 },
        { "stopped, set earlier",      { { 'S', 500 }, { 'X', 0 }, { 'S', 100 } }, 1, 100 },
        { "earlier, then stopped",     { { 'S', 500 }, { 'S', 100 }, { 'X', 0 } }, 0, 0 },
        { "back and forth",            { { 'S', 500 }, { 'S', 100 }, { 'S', 900 } }, 1, 900 },
    };

    for (size_t i = 0; i < GW_ARRAY_LEN(row); i++) {
        struct log l = { 0 };
        struct alarm a = { 0 };
        struct gw_error err = { 0 };
        bool more;

        l.e = a.e = gw_engine_new(1, 1, take, &l);
        a.t = (struct gw_timer){ .fire = ring, .owner = &a, .comp = 2 };
        for (int k = 0; k < 4 && row[i].step[k].op; k++) {
            if (row[i].step[k].op == 'S')
                gw_engine_timer_set(l.e, &a.t, row[i].step[k].at);
            else
                gw_engine_timer_stop(l.e, &a.t);
        }
        gw_engine_run(l.e, GW_NEVER, UINT64_MAX, &more, &err);
        CHECK_ROW(a.fired == row[i].fired && a.fired_at == row[i].at,
                  "%s: fired %u times, last at %llu; want %u, %llu", row[i].what, a.fired,
                  (unsigned long long)a.fired_at, row[i].fired, (unsigned long long)row[i].at);
        gw_engine_free(l.e);
    }
}

static void stops_at_until(void)
{
    struct log l = { 0 };
    struct gw_pkt p[2];
    struct gw_error err = { 0 };
    bool more = false;

    l.e = gw_engine_new(1, 1, take, &l);
    gw_engine_post(l.e, 100, 0, 0, 0, &p[0]);
    gw_engine_post(l.e, UINT64_C(7000000000), 0, 0, 1, &p[1]);
    gw_engine_run(l.e, 100, UINT64_MAX, &more, &err);
    CU_ASSERT_EQUAL(l.count, 1);
    CU_ASSERT_EQUAL(gw_engine_now(l.e), 100);
    gw_engine_run(l.e, GW_NEVER, UINT64_MAX, &more, &err);
    CU_ASSERT_EQUAL(l.count, 2);
    CU_ASSERT_EQUAL(gw_engine_now(l.e), UINT64_C(7000000000));
    gw_engine_free(l.e);
}

/* Two senders that always tie at one receiver: neither is always first (TRAPS 16). */
static void ties_are_fair(void)
{
    struct seen seen[2000];
    struct log l = { .seen = seen, .cap = 2000 };
    static struct gw_pkt a, b;
    struct gw_error err = { 0 };
    size_t first = 0;
    bool more;

    l.e = gw_engine_new(9, 1, take, &l);
    for (uint32_t i = 0; i < 1000; i++) {
        gw_engine_post(l.e, i * UINT64_C(120000), 7, 1, i, &a);
        gw_engine_post(l.e, i * UINT64_C(120000), 7, 2, i, &b);
    }
    gw_engine_run(l.e, GW_NEVER, UINT64_MAX, &more, &err);
    for (size_t i = 0; i < 2000; i += 2)
        first += seen[i].p == &a;
    CHECK_ROW(first > 435 && first < 565, "sender 1 is first %zu of 1000 times; 4 standard "
              "deviations allow 436 to 564", first);
    gw_engine_free(l.e);
}

static size_t told, told_late, told_else;

static void tell(void *ctx, uint32_t comp, struct gw_pkt *p, uint64_t at_ps)
{
    struct log *l = ctx;

    told++;
    told_late += p->flags || at_ps < gw_engine_now(l->e);
    told_else += p->dst != comp || p->stamp_ps != at_ps;
}

static void mark(void *ctx, uint32_t comp, struct gw_pkt *p, uint64_t now_ps)
{
    p->flags = 1;
    take(ctx, comp, p, now_ps);
}

/* One packet a slot, some with a companion: all are told of once, before they come. */
static void told_ahead(void)
{
    static struct gw_pkt p[1000];
    struct log l = { 0 };
    struct gw_error err = { 0 };
    bool more;

    told = told_late = told_else = 0;
    l.e = gw_engine_new(1, 1, mark, &l);
    gw_engine_set_ahead(l.e, tell);
    for (uint32_t i = 0; i < GW_ARRAY_LEN(p); i++) {
        p[i].dst = i % 3;
        p[i].stamp_ps = (i - i % 5 / 4 + 1) * (gw_engine_horizon_ps(l.e) / 2000);
        gw_engine_post(l.e, p[i].stamp_ps, p[i].dst, 9, i, &p[i]);
    }
    gw_engine_run(l.e, GW_NEVER, UINT64_MAX, &more, &err);
    CU_ASSERT_EQUAL(l.count, GW_ARRAY_LEN(p));
    CHECK_ROW(told == l.count && !told_late && !told_else, "told of %zu packets of %zu, %zu too late, "
              "%zu with other facts", told, l.count, told_late, told_else);
    gw_engine_free(l.e);
}

static const struct gw_case cases[] = {
    { "events come in the order of the key", order_against_sort },
    { "time never goes back", never_backwards },
    { "timers are lazy and never fire twice", timers_are_lazy },
    { "a run stops at its end", stops_at_until },
    { "ties are fair", ties_are_fair },
    { "packets are told of ahead", told_ahead },
    { NULL, NULL }
};
const struct gw_suite suite_engine = { "engine", cases };
