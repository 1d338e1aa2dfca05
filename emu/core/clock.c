/*
 * clock.c - the machine's clock; no other file reads it
 *
 * The real clock lets an engine run at the pace of CLOCK_MONOTONIC. Its origin is the moment of its
 * first use, so that reading studies and building networks is not counted as lateness. A wait
 * sleeps until a little before the deadline (the kernel wakes a sleeper up to some 50 us late) and
 * polls for the rest. Left out: NTP slewing of CLOCK_MONOTONIC (at most 0.05 %) is followed, not
 * corrected; real input that ends a wait early comes with the packet sockets that need it.
 */
#include "engine.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>

#define CLOCK_POLL_NS 60000u             /* how long before the deadline sleeping ends         */
#define CLOCK_NS_PER_S UINT64_C(1000000000)

struct clock_real {
    struct gw_clock pub;
    uint64_t        origin_ns;           /* machine time of the run's time 0                   */
    bool            begun;               /* origin_ns is set                                   */
};

static uint64_t machine_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * CLOCK_NS_PER_S + (uint64_t)t.tv_nsec;
}

static uint64_t clock_origin(struct clock_real *c)
{
    if (!c->begun) {
        c->origin_ns = machine_ns();
        c->begun = true;
    }
    return c->origin_ns;
}

static uint64_t real_read(struct gw_clock *clock)
{
    struct clock_real *c = GW_CONTAINER(clock, struct clock_real, pub);
    uint64_t origin_ns = clock_origin(c);

    return (machine_ns() - origin_ns) * GW_PS_PER_NS;
}

static void sleep_until(uint64_t at_ns)
{
    struct timespec t = { .tv_sec  = (time_t)(at_ns / CLOCK_NS_PER_S),
                          .tv_nsec = (long)(at_ns % CLOCK_NS_PER_S) };

    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL) == EINTR)
        ;
}

/* Returns at the first nanosecond that is not before @deadline_ps, at once if that has passed. */
static void real_wait(struct gw_clock *clock, uint64_t deadline_ps)
{
    struct clock_real *c = GW_CONTAINER(clock, struct clock_real, pub);
    uint64_t at_ns = clock_origin(c) + deadline_ps / GW_PS_PER_NS + !!(deadline_ps % GW_PS_PER_NS);

    if (machine_ns() + CLOCK_POLL_NS < at_ns)
        sleep_until(at_ns - CLOCK_POLL_NS);
    while (machine_ns() < at_ns)
        ;
}

/* A clock at the pace of real time, NULL: out of memory. Owner: the caller, gw_clock_free(). */
struct gw_clock *gw_clock_real(void)
{
    struct clock_real *c = calloc(1, sizeof *c);

    if (!c)
        return NULL;
    c->pub.read = real_read;
    c->pub.wait = real_wait;
    return &c->pub;
}

void gw_clock_free(struct gw_clock *clock)
{
    if (clock)
        free(GW_CONTAINER(clock, struct clock_real, pub));
}

double gw_clock_wall_s(void)
{
    return (double)machine_ns() / (double)CLOCK_NS_PER_S;
}

double gw_clock_cpu_s(void)
{
    struct rusage u;

    getrusage(RUSAGE_SELF, &u);
    return (double)u.ru_utime.tv_sec + (double)u.ru_stime.tv_sec +
           ((double)u.ru_utime.tv_usec + (double)u.ru_stime.tv_usec) * 1e-6;
}
