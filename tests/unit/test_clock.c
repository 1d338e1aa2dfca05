/*
 * test_clock.c - the real clock: origin, order of waits, no early return
 *
 * Upper bounds are loose, because a busy machine may wake us late; "never early" is exact.
 */
#include "suite.h"

#include "../../emu/core/engine.h"

static void origin_is_first_use(void)
{
    struct gw_clock *c = gw_clock_real();
    double before = gw_clock_wall_s();

    CU_ASSERT_FATAL(c != NULL);
    while (gw_clock_wall_s() < before + 0.002)
        ;
    uint64_t first_ps = c->read(c);

    CHECK_ROW(first_ps < GW_PS_PER_MS, "first read: got %llu ps, want under 1 ms",
              (unsigned long long)first_ps);
    gw_clock_free(c);
}

static void waits_are_never_early(void)
{
    static const uint64_t deadline_ps[] = { 0, 1, 999, 1001, 50 * GW_PS_PER_US, 61 * GW_PS_PER_US,
                                            3 * GW_PS_PER_MS + 1, 1 * GW_PS_PER_MS };
    struct gw_clock *c = gw_clock_real();
    uint64_t last_ps = 0;

    CU_ASSERT_FATAL(c != NULL);
    for (size_t i = 0; i < GW_ARRAY_LEN(deadline_ps); i++) {
        c->wait(c, deadline_ps[i]);
        uint64_t now_ps = c->read(c);

        CHECK_ROW(now_ps >= deadline_ps[i], "wait %zu: back at %llu ps, want not before %llu", i,
                  (unsigned long long)now_ps, (unsigned long long)deadline_ps[i]);
        CHECK_ROW(now_ps >= last_ps, "wait %zu: time went back", i);
        last_ps = now_ps;
    }
    CHECK_ROW(last_ps < 2 * GW_PS_PER_S, "waits of 3 ms took %llu ps", (unsigned long long)last_ps);
    gw_clock_free(c);
}

static void sleeping_costs_no_cpu(void)
{
    struct gw_clock *c = gw_clock_real();
    double cpu_s = gw_clock_cpu_s(), wall_s = gw_clock_wall_s();

    CU_ASSERT_FATAL(c != NULL);
    c->wait(c, 100 * GW_PS_PER_MS);
    cpu_s = gw_clock_cpu_s() - cpu_s;
    wall_s = gw_clock_wall_s() - wall_s;
    CHECK_ROW(wall_s >= 0.1, "wall: got %g s, want at least 0.1", wall_s);
    CHECK_ROW(cpu_s >= 0 && cpu_s < 0.05, "CPU: got %g s, want under 0.05", cpu_s);
    gw_clock_free(c);
}

static const struct gw_case cases[] = {
    { "the origin is the first use", origin_is_first_use },
    { "a wait is never early",       waits_are_never_early },
    { "sleeping costs no CPU",       sleeping_costs_no_cpu },
    { NULL, NULL },
};

extern const struct gw_suite suite_clock;
const struct gw_suite suite_clock = { "clock", cases };
