/*
 * test_ideal.c - the fluid transport against textbooks and against a naive twin
 *
 * A fake host plays starts and the one timer in order of time, as the engine does: at equal times
 * starts come first. The source is included, so that tests can read the rates.
 */
#include "suite.h"

#include "../../emu/core/engine.h"

#define gw_transport_ideal ideal_under_test
#include "../../emu/transport/tp_ideal.c"

#include <math.h>
#include <stdlib.h>

#define MBIT UINT64_C(1000000)
#define GBIT UINT64_C(1000000000)
#define HOP_MAX 8

/* ---- fake host ---------------------------------------------------------------------------- */

struct tflow {
    uint64_t start_ps, bytes;
    uint32_t path_len, path[HOP_MAX];
    uint64_t end_ps;                   /* written by the run; GW_NEVER: not ended              */
    struct gw_fluid_flow x;
};

struct fake {
    struct gw_host host;
    struct gw_fluid f;
    struct ideal_conf conf;
    struct ideal *s;
    struct gw_timer *timer;            /* armed or NULL                                        */
    uint64_t now_ps, fires;
    struct tflow *flow;
    uint32_t flows, done;
    uint64_t *load_bps;                /* by fluid_rate                                        */
    void (*after_done)(struct fake *k, struct tflow *t);
    uint64_t check_ps;                 /* look at the rates at this time                       */
    void (*look)(struct fake *k);
};

static void *fake_alloc(size_t bytes) { return calloc(1, bytes); }
static void *fake_resize(void *p, size_t bytes) { return realloc(p, bytes); }

static void fake_timer_set(void *net, struct gw_timer *t, uint64_t at_ps)
{
    struct fake *k = net;

    CHECK_ROW(at_ps >= k->now_ps, "timer set in the past");
    t->due_ps = at_ps;
    k->timer = t;
}

static void fake_timer_stop(void *net, struct gw_timer *t)
{
    (void)t;
    ((struct fake *)net)->timer = NULL;
}

static void fake_done(struct gw_fluid *f, struct gw_fluid_flow *x, uint64_t now_ps)
{
    struct fake *k = f->net;
    struct tflow *t = GW_CONTAINER(x, struct tflow, x);

    if (t->end_ps != GW_NEVER)
        CU_FAIL("a message ended twice");
    t->end_ps = now_ps;
    k->done++;
    if (k->after_done)
        k->after_done(k, t);
}

static void fake_rate(struct gw_fluid *f, uint32_t dirlink, uint64_t rate_bps)
{
    ((struct fake *)f->net)->load_bps[dirlink] = rate_bps;
}

static void fake_open(struct fake *k, const uint64_t *rate_bps, uint32_t links)
{
    struct gw_error err = { 0 };

    memset(k, 0, sizeof *k);
    k->host = (struct gw_host){ .alloc = fake_alloc, .resize = fake_resize, .release = free,
                                .timer_set = fake_timer_set, .timer_stop = fake_timer_stop,
                                .fluid_done = fake_done, .fluid_rate = fake_rate };
    k->conf.efficiency = 1.0;
    k->s = calloc(1, sizeof *k->s);
    k->load_bps = calloc(links, sizeof *k->load_bps);
    k->f = (struct gw_fluid){ .ops = &ideal_ops, .host = &k->host, .net = k, .conf = &k->conf,
                              .priv = k->s, .link_count = links, .link_rate_bps = rate_bps,
                              .comp = 7 };
    k->check_ps = GW_NEVER;
    CU_ASSERT_FATAL(ideal_init(&k->f, &err) == GW_OK);
}

static void fake_close(struct fake *k)
{
    ideal_fini(&k->f);
    free(k->s);
    free(k->load_bps);
}

static void fake_begin(struct fake *k, struct tflow *t)
{
    t->x = (struct gw_fluid_flow){ .bytes = t->bytes, .path_len = t->path_len, .path = t->path };
    t->end_ps = GW_NEVER;
    ideal_start(&k->f, &t->x, k->now_ps);
}

/* Plays @flow, sorted by start, until nothing is left. */
static void fake_run(struct fake *k, struct tflow *flow, uint32_t n)
{
    uint32_t next = 0;

    k->flow = flow;
    k->flows = n;
    for (;;) {
        uint64_t start_ps = next < n ? flow[next].start_ps : GW_NEVER;
        uint64_t due_ps = k->timer ? k->timer->due_ps : GW_NEVER;
        uint64_t at_ps = start_ps <= due_ps ? start_ps : due_ps;

        if (k->check_ps <= at_ps && k->check_ps != GW_NEVER && at_ps > k->check_ps) {
            k->check_ps = GW_NEVER;
            k->look(k);
        }
        if (at_ps == GW_NEVER)
            break;
        k->now_ps = at_ps;
        if (start_ps <= due_ps) {
            fake_begin(k, &flow[next++]);
        } else {
            struct gw_timer *t = k->timer;

            k->timer = NULL;
            k->fires++;
            t->fire(t->owner, at_ps);
        }
    }
}

/* ---- textbook ----------------------------------------------------------------------------- */

#define TEXT_FLOWS 6
#define US GW_PS_PER_US

static const struct text_row {
    const char *what;
    uint64_t rate_bps[5];
    uint32_t flows;
    struct { uint64_t start_ps, bytes; uint32_t path_len, path[4]; uint64_t end_ps; }
        f[TEXT_FLOWS];
} text_rows[] = {
    { "one flow: 1 MB at 10 Gbit/s", { 10 * GBIT }, 1,
      { { 0, 1000000, 1, { 0 }, 800 * US } } },
    { "the narrowest link counts", { 10 * GBIT, GBIT, 40 * GBIT }, 1,
      { { 5, 1000, 3, { 0, 1, 2 }, 8 * US + 5 } } },
    { "a fraction of a picosecond: the nearest", { 3 * GBIT }, 1,
      { { 0, 1, 1, { 0 }, 2667 } } },
    { "three bytes at 3 bit/s", { 3 }, 1, { { 0, 3, 1, { 0 }, 8 * GW_PS_PER_S } } },
    { "4 GiB + 1 at 400 Gbit/s", { 400 * GBIT }, 1,
      { { 0, 4294967297, 1, { 0 }, UINT64_C(85899345940) } } },
    { "1 GB at 100 Tbit/s, the fastest link there is", { 100000 * GBIT }, 1,
      { { 0, 1000000000, 1, { 0 }, 80 * US } } },
    { "three share 100 Tbit/s", { 100000 * GBIT, 99999 * GBIT }, 3,
      { { 0, 1000000000, 1, { 0 }, 240 * US }, { 0, 1000000000, 2, { 0, 1 }, 240 * US },
        { 0, 1000000000, 1, { 0 }, 240 * US } } },
    { "10^18 bytes at 100 Tbit/s", { 100000 * GBIT }, 1,
      { { 7, UINT64_C(1000000000000000000), 1, { 0 }, 80000 * GW_PS_PER_S + 7 } } },
    { "more than 213 days: the end of time", { 1 }, 1,
      { { 9, 10000000, 1, { 0 }, GW_NEVER - 1 } } },
    { "as many bytes as there can be", { 1 }, 2,
      { { 9, UINT64_MAX, 1, { 0 }, GW_NEVER - 1 }, { 10, 1, 1, { 0 }, 16 * GW_PS_PER_S + 10 } } },
    { "infinitely fast links do not count", { 0, GBIT, 0 }, 1,
      { { 0, 1000, 3, { 0, 1, 2 }, 8 * US } } },
    { "no bytes, no links, no finite link: at once", { 0, GBIT }, 3,
      { { 3, 0, 1, { 1 }, 3 }, { 4, 1000, 0, { 0 }, 4 }, { 5, 1000, 1, { 0 }, 5 } } },
    { "two equal flows share", { 10 * GBIT }, 2,
      { { 0, 1000000, 1, { 0 }, 1600 * US }, { 0, 1000000, 1, { 0 }, 1600 * US } } },
    { "three equal flows: thirds end exactly", { 10 * GBIT }, 3,
      { { 0, 1000000, 1, { 0 }, 2400 * US }, { 0, 1000000, 1, { 0 }, 2400 * US },
        { 0, 1000000, 1, { 0 }, 2400 * US } } },
    /* The first sends 5 us alone, then both share: 1250 - 625 = 625 B at half rate is 10 us; the
     * second then has 625 B left and takes 5 us alone. */
    { "arrival in the middle", { GBIT }, 2,
      { { 0, 1250, 1, { 0 }, 15 * US }, { 5 * US, 1250, 1, { 0 }, 20 * US } } },
    { "the second starts when the first ends", { GBIT }, 2,
      { { 0, 1250, 1, { 0 }, 10 * US }, { 10 * US, 1250, 1, { 0 }, 20 * US } } },
    { "opposite directions do not meet", { GBIT, GBIT }, 2,
      { { 0, 1250, 1, { 0 }, 10 * US }, { 0, 1250, 1, { 1 }, 10 * US } } },
    /* Parking lot: the long flow and each short one get 1/2 until all end together. */
    { "parking lot, three links", { GBIT, GBIT, GBIT }, 4,
      { { 0, 1250, 3, { 0, 1, 2 }, 20 * US }, { 0, 1250, 1, { 0 }, 20 * US },
        { 0, 1250, 1, { 1 }, 20 * US }, { 0, 1250, 1, { 2 }, 20 * US } } },
    /* Bertsekas/Gallager: link 0 (3 flows) gives 1/3, so link 1 leaves 2/3 to its other flow.
     * Flow 3: 2500 B at 2/3 G is 30 us. The rest: 1250 B at 1/3 G is 30 us. */
    { "two levels", { GBIT, GBIT }, 4,
      { { 0, 1250, 1, { 0 }, 30 * US }, { 0, 1250, 1, { 0 }, 30 * US },
        { 0, 1250, 2, { 0, 1 }, 30 * US }, { 0, 2500, 1, { 1 }, 30 * US } } },
    /* Link 0 is 1 G with flows a, b; link 1 is 10 G with b, c. b: 0.5, c: 9.5. c ends first
     * (11875 B: 10 us), which does not help b. */
    { "three links, a narrow one between", { GBIT, 10 * GBIT, 4 * GBIT }, 3,
      { { 0, 1250, 1, { 0 }, 20 * US }, { 0, 1250, 3, { 0, 1, 2 }, 20 * US },
        { 0, 11875, 1, { 1 }, 10 * US } } },
    /* The end of b lets a rise from 0.5 to 0.9, held by link 2, not by link 0. */
    { "a new bottleneck after an end", { GBIT, GBIT, 900 * MBIT }, 2,
      { { 0, 1250 + 2250, 2, { 0, 2 }, 40 * US }, { 0, 1250, 2, { 0, 1 }, 20 * US } } },
    { "incast of four", { GBIT, 10 * GBIT, 10 * GBIT, 10 * GBIT, 10 * GBIT }, 4,
      { { 0, 1250, 2, { 1, 0 }, 40 * US }, { 0, 1250, 2, { 2, 0 }, 40 * US },
        { 0, 1250, 2, { 3, 0 }, 40 * US }, { 0, 1250, 2, { 4, 0 }, 40 * US } } },
    { "a path that takes a link twice pays twice", { GBIT, GBIT }, 1,
      { { 0, 1250, 3, { 0, 1, 0 }, 20 * US } } },
};

static void textbook(void)
{
    for (size_t i = 0; i < GW_ARRAY_LEN(text_rows); i++) {
        const struct text_row *r = &text_rows[i];
        struct tflow t[TEXT_FLOWS];
        struct fake k;

        fake_open(&k, r->rate_bps, GW_ARRAY_LEN(r->rate_bps));
        for (uint32_t j = 0; j < r->flows; j++) {
            t[j] = (struct tflow){ .start_ps = r->f[j].start_ps, .bytes = r->f[j].bytes,
                                   .path_len = r->f[j].path_len };
            memcpy(t[j].path, r->f[j].path, sizeof r->f[j].path);
        }
        fake_run(&k, t, r->flows);
        for (uint32_t j = 0; j < r->flows; j++)
            CHECK_ROW(t[j].end_ps == r->f[j].end_ps, "%s: flow %u ended at %llu, want %llu",
                      r->what, j, (unsigned long long)t[j].end_ps,
                      (unsigned long long)r->f[j].end_ps);
        for (uint32_t l = 0; l < GW_ARRAY_LEN(r->rate_bps); l++)
            CHECK_ROW(k.load_bps[l] == 0, "%s: link %u keeps %llu bit/s", r->what, l,
                      (unsigned long long)k.load_bps[l]);
        fake_close(&k);
    }
}

static void efficiency_scales(void)
{
    static const uint64_t rate_bps[] = { 10 * GBIT };
    struct tflow t = { .bytes = 1000000, .path_len = 1 };
    struct fake k;

    fake_open(&k, rate_bps, 1);
    ideal_fini(&k.f);
    k.conf.efficiency = 0.8;
    CU_ASSERT_FATAL(ideal_init(&k.f, NULL) == GW_OK);
    fake_run(&k, &t, 1);
    CHECK_ROW(t.end_ps == 1000 * US, "80 %% of 10 Gbit/s: ended at %llu, want 1 ms",
              (unsigned long long)t.end_ps);
    fake_close(&k);
}

/* A reply that is started from inside fluid_done, as hosts may do. */
static struct tflow reply;

static void start_reply(struct fake *k, struct tflow *t)
{
    if (t != &reply)
        fake_begin(k, &reply);
}

static void done_may_start(void)
{
    static const uint64_t rate_bps[] = { GBIT };
    struct tflow t = { .bytes = 1250, .path_len = 1 };
    struct fake k;

    reply = (struct tflow){ .bytes = 2500, .path_len = 1 };
    fake_open(&k, rate_bps, 1);
    k.after_done = start_reply;
    fake_run(&k, &t, 1);
    CHECK_ROW(reply.end_ps == 30 * US, "reply ended at %llu, want 30 us",
              (unsigned long long)reply.end_ps);
    fake_close(&k);
}

static void *no_memory(void *p, size_t bytes)
{
    (void)p;
    (void)bytes;
    return NULL;
}

static void out_of_memory(void)
{
    static const uint64_t rate_bps[] = { GBIT };
    struct tflow t[2] = { { .bytes = 1250, .path_len = 1 }, { .bytes = 1250, .path_len = 0 } };
    struct gw_error err = { 0 };
    struct fake k;

    fake_open(&k, rate_bps, 1);
    k.host.resize = no_memory;
    fake_run(&k, t, 2);
    CU_ASSERT(t[0].end_ps == GW_NEVER);
    ideal_fini(&k.f);
    CU_ASSERT(ideal_init(&k.f, &err) == GW_NOMEM && err.code == GW_NOMEM);
    fake_close(&k);
}

/* ---- the naive twin ----------------------------------------------------------------------- */

static uint64_t dice_state;

static uint32_t dice(uint32_t below)
{
    dice_state += UINT64_C(0x9e3779b97f4a7c15);
    return (uint32_t)(gw_mix64(dice_state) % below);
}

/* Progressive filling over all flows with rest > 0: raise all, freeze those on a full link. */
static void naive_rates(const struct tflow *t, const bool *on, uint32_t n, const uint64_t *cap_bps,
                        uint32_t links, double *rate)
{
    double *room = malloc(links * sizeof *room);
    uint32_t *open = malloc(links * sizeof *open), left = 0;
    bool *fixed = calloc(n, sizeof *fixed);

    for (uint32_t l = 0; l < links; l++)
        room[l] = (double)cap_bps[l];
    for (uint32_t i = 0; i < n; i++) {
        rate[i] = 0;
        fixed[i] = !on[i];
        left += on[i];
    }
    while (left) {
        double step = INFINITY;

        memset(open, 0, links * sizeof *open);
        for (uint32_t i = 0; i < n; i++)
            for (uint32_t h = 0; !fixed[i] && h < t[i].path_len; h++)
                open[t[i].path[h]]++;
        for (uint32_t l = 0; l < links; l++)
            if (cap_bps[l] && open[l] && room[l] / open[l] < step)
                step = room[l] / open[l];
        for (uint32_t l = 0; l < links; l++)
            room[l] -= step * open[l];
        for (uint32_t i = 0; i < n; i++) {
            bool full = false;

            if (fixed[i])
                continue;
            rate[i] += step;
            for (uint32_t h = 0; h < t[i].path_len; h++)
                full |= cap_bps[t[i].path[h]] &&
                        room[t[i].path[h]] <= 1e-11 * (double)cap_bps[t[i].path[h]];
            if (full) {
                fixed[i] = true;
                left--;
            }
        }
    }
    free(room);
    free(open);
    free(fixed);
}

/* Ends of all flows by the naive twin, in ps. */
static void naive_run(const struct tflow *t, uint32_t n, const uint64_t *cap_bps, uint32_t links,
                      double *end_ps)
{
    double *rest = malloc(n * sizeof *rest), *rate = malloc(n * sizeof *rate), now = 0;
    bool *on = calloc(n, sizeof *on);
    uint32_t next = 0, live = 0;

    for (;;) {
        double at = INFINITY;

        naive_rates(t, on, n, cap_bps, links, rate);
        for (uint32_t i = 0; i < n; i++)
            if (on[i] && now + rest[i] / rate[i] < at)
                at = now + rest[i] / rate[i];
        if (next < n && (double)t[next].start_ps <= at)
            at = (double)t[next].start_ps;
        if (at == INFINITY)
            break;
        for (uint32_t i = 0; i < n; i++) {
            if (!on[i])
                continue;
            rest[i] -= rate[i] * (at - now);
            if (rest[i] / rate[i] <= 1e-3) {          /* less than a thousandth of a ps       */
                on[i] = false;
                end_ps[i] = at;
                live--;
            }
        }
        now = at;
        while (next < n && (double)t[next].start_ps <= now) {
            rest[next] = (double)t[next].bytes * 8e12;
            on[next++] = true;
            live++;
        }
    }
    CU_ASSERT(live == 0);
    free(rest);
    free(rate);
    free(on);
}

/* ---- properties of random networks -------------------------------------------------------- */

#define NET_LINKS 24
#define NET_FLOWS 60

static void random_path(struct tflow *t, uint32_t links)
{
    uint32_t want = 1 + dice(4);

    t->path_len = 0;
    while (t->path_len < want) {
        uint32_t l = dice(links);
        bool have = false;

        for (uint32_t h = 0; h < t->path_len; h++)
            have |= t->path[h] == l;
        if (!have)
            t->path[t->path_len++] = l;
    }
}

static int by_start(const void *a, const void *b)
{
    const struct tflow *x = a, *y = b;

    return x->start_ps < y->start_ps ? -1 : x->start_ps > y->start_ps;
}

/* At each instant after a sweep: no link is overfull, and each flow has a full link on its path on
 * which nobody is faster - the definition of max-min fairness. */
static void look_max_min(struct fake *k)
{
    struct ideal *s = k->s;

    for (uint32_t l = 0; l < k->f.link_count; l++) {
        double sum = 0;

        for (uint32_t m = 0; m < s->link[l].count; m++)
            sum += (double)s->rate[s->link[l].member[m].slot].rate;
        CHECK_ROW(sum <= (double)s->link[l].cap * (1 + 1e-12), "link %u is overfull", l);
        CHECK_ROW(fabs(sum - (double)s->link[l].fixed) <= sum * 1e-12, "link %u: wrong sum", l);
        CHECK_ROW(s->link[l].open == 0, "link %u has flows in question", l);
    }
    for (uint32_t i = 0; i < s->slots; i++) {
        bool fair = false;

        if (!s->flow[i].x)
            continue;
        for (uint32_t h = 0; h < s->flow[i].hops; h++) {
            struct ideal_link *l = &s->link[hops_of(s, i)[h].link];
            uint64_t top = 0;

            for (uint32_t m = 0; m < l->count; m++)
                if (s->rate[l->member[m].slot].rate > top)
                    top = s->rate[l->member[m].slot].rate;
            fair |= (double)l->fixed >= (double)l->cap * (1 - 1e-9) &&
                    (double)top <= (double)s->rate[i].rate * (1 + 1e-9);
        }
        CHECK_ROW(fair, "flow in slot %u is not held by any link", i);
    }
}

static void random_networks(void)
{
    static const uint64_t rates[] = { 100 * MBIT, 333 * MBIT, GBIT, 10 * GBIT, 777777777 };

    dice_state = 1;
    for (uint32_t net = 0; net < 300; net++) {
        uint64_t cap_bps[NET_LINKS];
        struct tflow t[NET_FLOWS];
        double want[NET_FLOWS], worst = 0;
        uint32_t links = 1 + dice(NET_LINKS), n = 1 + dice(NET_FLOWS);
        bool alike = dice(3) == 0;
        struct fake k;

        if (links < 4)
            links = 4;
        for (uint32_t l = 0; l < links; l++)
            cap_bps[l] = alike ? GBIT : rates[dice(GW_ARRAY_LEN(rates))];
        for (uint32_t i = 0; i < n; i++) {
            t[i] = (struct tflow){ .start_ps = dice(4) ? dice(20) * 100 * US : dice(2000) * US,
                                   .bytes = alike ? 100000 : 1 + dice(200000) };
            random_path(&t[i], links);
        }
        qsort(t, n, sizeof *t, by_start);
        fake_open(&k, cap_bps, links);
        k.look = look_max_min;
        k.check_ps = dice(4000) * US;
        fake_run(&k, t, n);
        naive_run(t, n, cap_bps, links, want);
        for (uint32_t i = 0; i < n; i++)
            if (fabs((double)t[i].end_ps - want[i]) > worst)
                worst = fabs((double)t[i].end_ps - want[i]);
        CHECK_ROW(k.done == n, "net %u: %u of %u ended", net, k.done, n);
        CHECK_ROW(worst < 1000, "net %u: an end is off by %g ps, want under 1 ns", net, worst);
        fake_close(&k);
    }
}

/* Rates after one sweep over flows that all start at once, against the twin. */
static void rates_match(void)
{
    dice_state = 2;
    for (uint32_t net = 0; net < 200; net++) {
        enum { LINKS = 40, FLOWS = 200 };
        uint64_t cap_bps[LINKS];
        struct tflow *t = calloc(FLOWS, sizeof *t);
        double want[FLOWS];
        bool on[FLOWS];
        struct fake k;

        for (uint32_t l = 0; l < LINKS; l++)
            cap_bps[l] = net % 2 ? GBIT * (1 + dice(400)) : GBIT * (1 + dice(2));
        fake_open(&k, cap_bps, LINKS);
        for (uint32_t i = 0; i < FLOWS; i++) {
            t[i].bytes = UINT64_C(1) << 40;
            random_path(&t[i], LINKS);
            on[i] = true;
            fake_begin(&k, &t[i]);
        }
        ideal_fire(&k.f, 0);
        naive_rates(t, on, FLOWS, cap_bps, LINKS, want);
        for (uint32_t i = 0; i < FLOWS; i++) {
            double got = 0;

            for (uint32_t j = 0; j < k.s->slots; j++)
                if (k.s->flow[j].x == &t[i].x)
                    got = (double)k.s->rate[j].rate / (1 << IDEAL_UNIT_BITS);
            CHECK_ROW(fabs(got - want[i]) <= want[i] * 1e-9,
                      "net %u flow %u: %.3f bit/s, want %.3f", net, i, got, want[i]);
        }
        look_max_min(&k);
        fake_close(&k);
        free(t);
    }
}

/* One flow whose rate changes 20,000 times still ends within 1 ns of the exact sum: it shares a
 * link with short flows, one after the other, so all bytes of the link are sent without a gap. */
static void many_changes(void)
{
    enum { SHORT = 10000 };
    static const uint64_t rate_bps[] = { 3 * GBIT + 1, 40 * GBIT };
    struct tflow *t = calloc(SHORT + 1, sizeof *t);
    uint64_t bytes = 0, want_ps;
    struct fake k;

    t[0] = (struct tflow){ .bytes = 40000000, .path_len = 2, .path = { 0, 1 } };
    for (uint32_t i = 1; i <= SHORT; i++)
        t[i] = (struct tflow){ .start_ps = i * 10 * US, .bytes = 1000 + i % 7, .path_len = 1 };
    for (uint32_t i = 0; i <= SHORT; i++)
        bytes += t[i].bytes;
    want_ps = gw_mul_div(bytes * 8, GW_PS_PER_S, rate_bps[0]);
    fake_open(&k, rate_bps, 2);
    fake_run(&k, t, SHORT + 1);
    CHECK_ROW(t[0].end_ps + 1000 > want_ps && t[0].end_ps < want_ps + 1000,
              "ended at %llu ps, want %llu within 1 ns", (unsigned long long)t[0].end_ps,
              (unsigned long long)want_ps);
    fake_close(&k);
    free(t);
}

/* ---- size and speed ----------------------------------------------------------------------- */

/* Fat tree of k=8: 128 hosts, 6-link paths, a hash picks the upper switches. Directed links:
 * host up, host down, edge-aggregation up, down, aggregation-core up, down. */
enum { FT_K = 8, FT_HALF = 4, FT_HOSTS = 128, FT_LINKS = 6 * FT_HOSTS };

static void fat_tree_path(struct tflow *t, uint32_t a, uint32_t b)
{
    uint32_t agg = dice(FT_HALF), core = dice(FT_HALF), n = 0;
    uint32_t ea = a / FT_HALF, eb = b / FT_HALF, pa = ea / FT_HALF, pb = eb / FT_HALF;

    t->path[n++] = a;
    if (ea != eb) {
        t->path[n++] = 2 * FT_HOSTS + ea * FT_HALF + agg;
        if (pa != pb) {
            t->path[n++] = 4 * FT_HOSTS + (pa * FT_HALF + agg) * FT_HALF + core;
            t->path[n++] = 5 * FT_HOSTS + (pb * FT_HALF + agg) * FT_HALF + core;
        }
        t->path[n++] = 3 * FT_HOSTS + eb * FT_HALF + agg;
    }
    t->path[n++] = FT_HOSTS + b;
    t->path_len = n;
}

/* All 16,256 pairs with one size; or a quarter of them with sizes that all differ, so that there is
 * a sweep for each end. */
static void all_to_all(bool one_size)
{
    uint32_t n = 0, sizes = FT_HOSTS * (FT_HOSTS - 1);
    struct tflow *t = calloc(sizes, sizeof *t);
    uint64_t cap_bps[FT_LINKS], in_bytes = 0, last_ps = 0;
    double took_s;
    struct fake k;

    dice_state = 3;
    for (uint32_t l = 0; l < FT_LINKS; l++)
        cap_bps[l] = 100 * GBIT;
    for (uint32_t a = 0; a < FT_HOSTS; a++)
        for (uint32_t b = 0; b < FT_HOSTS; b++) {
            if (a == b || (!one_size && (a + b) % 4))
                continue;
            t[n].bytes = one_size ? 1000000 : 500000 + dice(1000000);
            in_bytes += b == 0 ? t[n].bytes : 0;
            fat_tree_path(&t[n++], a, b);
        }
    CU_ASSERT_FATAL(n == (one_size ? sizes : 4032));
    fake_open(&k, cap_bps, FT_LINKS);
    took_s = gw_clock_cpu_s();
    fake_run(&k, t, n);
    took_s = gw_clock_cpu_s() - took_s;
    for (uint32_t i = 0; i < n; i++)
        if (t[i].end_ps > last_ps)
            last_ps = t[i].end_ps;
    CHECK_ROW(k.done == n, "%u of %u ended", k.done, n);
    CHECK_ROW(last_ps >= gw_mul_div(in_bytes * 8, GW_PS_PER_S, 100 * GBIT), "the cut is beaten");
    CHECK_ROW(took_s < 5, "all-to-all of %u flows took %.2f s, want under 5", n, took_s);
    printf(" [%u flows, %llu timers, %u sweeps, %.2f s] ", n, (unsigned long long)k.fires,
           k.s->sweep, took_s);
    fake_close(&k);
    free(t);
}

static void all_to_all_equal(void) { all_to_all(true); }
static void all_to_all_mixed(void) { all_to_all(false); }

/* A star without collisions: all 16,256 flows have one rate and end in one instant. */
static void all_to_all_star(void)
{
    uint32_t n = 0;
    struct tflow *t = calloc(FT_HOSTS * (FT_HOSTS - 1), sizeof *t);
    uint64_t cap_bps[2 * FT_HOSTS];
    struct fake k;

    for (uint32_t l = 0; l < 2 * FT_HOSTS; l++)
        cap_bps[l] = 100 * GBIT;
    for (uint32_t a = 0; a < FT_HOSTS; a++)
        for (uint32_t b = 0; b < FT_HOSTS; b++)
            if (a != b)
                t[n++] = (struct tflow){ .bytes = 1000000, .path_len = 2,
                                         .path = { a, FT_HOSTS + b } };
    fake_open(&k, cap_bps, 2 * FT_HOSTS);
    fake_run(&k, t, n);
    for (uint32_t i = 0; i < n; i++)
        CHECK_ROW(t[i].end_ps == 127 * 80 * US, "flow %u ended at %llu, want %llu", i,
                  (unsigned long long)t[i].end_ps, (unsigned long long)(127 * 80 * US));
    CHECK_ROW(k.fires <= 4, "%llu timers for two instants", (unsigned long long)k.fires);
    fake_close(&k);
    free(t);
}

/* 64 ranks in a ring, each message starts the next: 1.28 million messages without one sweep. */
enum { RING = 64, RING_STEPS = 20000 };

static void ring_next(struct fake *k, struct tflow *t)
{
    if (++t->start_ps < RING_STEPS)                 /* used as the step count here            */
        fake_begin(k, t);
}

static void ring(void)
{
    uint64_t cap_bps[2 * RING];
    struct tflow t[RING];
    double took_s = gw_clock_cpu_s();
    struct fake k;

    for (uint32_t i = 0; i < 2 * RING; i++)
        cap_bps[i] = 100 * GBIT;
    for (uint32_t i = 0; i < RING; i++)
        t[i] = (struct tflow){ .bytes = 125000, .path_len = 2,
                               .path = { i, RING + (i + 1) % RING } };
    fake_open(&k, cap_bps, 2 * RING);
    k.after_done = ring_next;
    fake_run(&k, t, RING);
    took_s = gw_clock_cpu_s() - took_s;
    for (uint32_t i = 0; i < RING; i++)
        CHECK_ROW(t[i].end_ps == RING_STEPS * 10 * US, "rank %u ended at %llu", i,
                  (unsigned long long)t[i].end_ps);
    CHECK_ROW(k.s->sweep == 0, "%u sweeps, want none", k.s->sweep);
    CHECK_ROW(took_s < 4, "ring took %.2f s", took_s);
    printf(" [%.0f ns a message] ", took_s * 1e9 / ((double)RING * RING_STEPS));
    fake_close(&k);
}

static const struct gw_case cases[] = {
    { "textbook examples",                     textbook },
    { "efficiency scales the links",           efficiency_scales },
    { "a message may start from fluid_done",   done_may_start },
    { "out of memory",                         out_of_memory },
    { "rates match progressive filling",       rates_match },
    { "random networks match the naive twin",  random_networks },
    { "20,000 rate changes stay within 1 ns",  many_changes },
    { "all-to-all on a star ends at once",     all_to_all_star },
    { "all-to-all on a fat tree, one size",    all_to_all_equal },
    { "all-to-all on a fat tree, mixed sizes", all_to_all_mixed },
    { "a ring needs no sweep",                 ring },
    { NULL, NULL },
};

extern const struct gw_suite suite_ideal;
const struct gw_suite suite_ideal = { "ideal", cases };
