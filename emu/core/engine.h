/*
 * engine.h - the event loop: one engine, two clocks
 *
 * Equal times run by (time, receiving component, draw, sending component, sender's own count); the
 * draw is a hash of (seed, time, receiver, sender). No global counter, so the order does not depend
 * on registration or threads. Near events lie in a timing wheel whose next slots are prefetched, far
 * ones in a 4-ary heap.
 */
#ifndef GW_CORE_ENGINE_H
#define GW_CORE_ENGINE_H

#include <gradwire/engine.h>
#include <gradwire/packet.h>

struct gw_clock {                 /* answers read and wait; the virtual one is NULL            */
    uint64_t (*read)(struct gw_clock *c);                        /* ps since the run began     */
    void (*wait)(struct gw_clock *c, uint64_t deadline_ps);
    uint64_t late_max_ps, late_sum_ps, waits;                    /* lateness, by the engine    */
};

GW_API struct gw_clock *gw_clock_real(void);                     /* emu/core/clock.c           */
GW_API void gw_clock_free(struct gw_clock *c);
GW_API double gw_clock_wall_s(void);     /* monotonic seconds, for progress and host facts     */
GW_API double gw_clock_cpu_s(void);      /* user + system CPU seconds of this process          */

typedef void (*gw_deliver_fn)(void *ctx, uint32_t comp, struct gw_pkt *p, uint64_t now_ps);

/* @events_per_us: expected density, sets the slot width. NULL: out of memory. */
GW_API struct gw_engine *gw_engine_new(uint64_t seed, double events_per_us, gw_deliver_fn deliver,
                                       void *ctx);
GW_API void gw_engine_free(struct gw_engine *e);
GW_API void gw_engine_set_clock(struct gw_engine *e, struct gw_clock *c);
/* @ahead is told of most packets shortly before they are delivered, with the same arguments: it may
 * prefetch what that will touch, and changes nothing. */
GW_API void gw_engine_set_ahead(struct gw_engine *e, gw_deliver_fn ahead);
GW_API uint64_t gw_engine_now(const struct gw_engine *e);
/* Span of the wheel: events later than this lie in the heap. */
GW_API uint64_t gw_engine_horizon_ps(const struct gw_engine *e);
GW_API uint64_t gw_engine_events(const struct gw_engine *e);
/* A packet reaches component @recv at @at_ps; @count is the sender's own. False: out of memory
 * (sticky, gw_engine_run then returns GW_NOMEM). */
GW_API void gw_engine_post(struct gw_engine *e, uint64_t at_ps, uint32_t recv, uint32_t send,
                           uint32_t count, struct gw_pkt *p);
GW_API void gw_engine_timer_set(struct gw_engine *e, struct gw_timer *t, uint64_t at_ps);
GW_API void gw_engine_timer_stop(struct gw_engine *e, struct gw_timer *t);
/* Runs until no event is left, time passes @until_ps, @max_events more are done or stop is asked.
 * Returns GW_OK; *more says whether events are left. */
GW_API enum gw_status gw_engine_run(struct gw_engine *e, uint64_t until_ps, uint64_t max_events,
                                    bool *more, struct gw_error *err);
/* The clock goes on to @at_ps, until when nothing may be left to run. */
GW_API void gw_engine_advance(struct gw_engine *e, uint64_t at_ps);
/* Would a timer of @comp that was due at @at_ps have fired before the event that runs now? */
GW_API bool gw_engine_over(const struct gw_engine *e, uint64_t at_ps, uint32_t comp);
GW_API void gw_engine_stop(struct gw_engine *e);

#endif
