/*
 * events.h - a heap of packets and timers for tests that play a network around one flow
 *
 * Equal times keep the order in which they were put in.
 */
#ifndef GW_TEST_EVENTS_H
#define GW_TEST_EVENTS_H

#include <gradwire/gradwire.h>

struct event {
    uint64_t at, order;
    struct gw_pkt *pkt;                 /* NULL: a timer; neither: the test's own affair        */
    struct gw_timer *timer;
    uint32_t gen;                       /* of the timer when it was set                         */
};

struct events {
    struct event *heap;                 /* of @room; the test's to make and free                */
    uint32_t count, room;
    uint64_t order;
};

static inline bool event_before(const struct event *a, const struct event *b)
{
    return a->at != b->at ? a->at < b->at : a->order < b->order;
}

/* False: the heap is full, nothing changed. */
static inline bool event_push(struct events *q, struct event e)
{
    uint32_t i = q->count;

    if (i == q->room)
        return false;
    q->count++;
    e.order = q->order++;
    while (i && event_before(&e, &q->heap[(i - 1) / 2])) {
        q->heap[i] = q->heap[(i - 1) / 2];
        i = (i - 1) / 2;
    }
    q->heap[i] = e;
    return true;
}

/* The earliest; there must be one. */
static inline struct event event_pop(struct events *q)
{
    struct event top = q->heap[0], e = q->heap[--q->count];
    uint32_t i = 0, c;

    while ((c = 2 * i + 1) < q->count) {
        if (c + 1 < q->count && event_before(&q->heap[c + 1], &q->heap[c]))
            c++;
        if (!event_before(&q->heap[c], &e))
            break;
        q->heap[i] = q->heap[c];
        i = c;
    }
    q->heap[i] = e;
    return top;
}

#endif
