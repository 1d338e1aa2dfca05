/*
 * engine.h - time and timers as plugins see them
 *
 * Time is handed in: a callback gets now_ps and reads no clock. A timer belongs to one component
 * (a host, a port); re-arming it to a later time costs one store, because the queued event looks at
 * due_ps when it comes up (lazy re-arm).
 */
#ifndef GRADWIRE_ENGINE_H
#define GRADWIRE_ENGINE_H

#include <gradwire/base.h>

struct gw_engine;

/* Owner: whoever embeds it; zero-initialise, then set fire, owner and comp. */
struct gw_timer {
    void   (*fire)(void *owner, uint64_t now_ps);
    void    *owner;
    uint64_t due_ps;       /* when to fire; GW_NEVER or 0-initialised and !queued: not armed   */
    uint64_t queued_ps;    /* time of the queued event, valid if queued                        */
    uint32_t comp;         /* component whose timer it is                                      */
    uint32_t gen;          /* which queued event is the valid one                              */
    bool     queued;
    bool     armed;
};

#endif
