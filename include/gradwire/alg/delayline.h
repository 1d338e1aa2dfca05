/*
 * alg/delayline.h - packets ordered by the time at which they are due
 *
 * The order is that of Linux's netem: a packet due no earlier than the last of the list joins the
 * list's end; any other goes to a sorted store, equal times in order of arrival; the list goes
 * first when both heads are due at the same time. Without jitter only the list is used.
 *
 * The list is a ring of 16-byte slots. The sorted store is a calendar: buckets of a power of two of
 * nanoseconds that together cover the span of delays, and a small heap of what is due before the
 * first bucket; so a packet costs a few memory accesses, however many wait. An entry beyond the
 * last bucket makes the buckets wider. Arrays double when full and are never given back before
 * fini, so the packet path allocates only when more wait than ever before.
 */
#ifndef GRADWIRE_ALG_DELAYLINE_H
#define GRADWIRE_ALG_DELAYLINE_H

#include <gradwire/packet.h>

#define GW_LINE_NIL   UINT32_MAX
#define GW_LINE_AHEAD 32u            /* buckets that are fetched ahead; fewer than the fewest  */

struct gw_line_slot {
    int64_t        at_ns;
    struct gw_pkt *pkt;
};

struct gw_line_node {
    int64_t        at_ns;
    struct gw_pkt *pkt;
    uint32_t       seq;              /* arrival, for equal times                               */
    uint32_t       next;             /* in its bucket or the free list                         */
};

struct gw_line_key {
    int64_t  at_ns;
    uint32_t seq, node;
};

struct gw_delayline {
    void *(*resize)(void *p, size_t bytes);
    struct gw_line_slot *slot;       /* the list: a ring of slot_cap, a power of two           */
    uint32_t slot_cap, slot_head, slot_count;
    struct gw_line_node *node;       /* the store's entries                                    */
    struct gw_line_key  *near;       /* heap of those due before near_end_ns                   */
    uint32_t *bucket;                /* first node of each                                     */
    uint64_t *used;                  /* bit per bucket                                         */
    uint32_t node_cap, node_free, seq;
    uint32_t near_count, far_count;  /* far: in buckets                                        */
    uint32_t bucket_cap, cur;        /* cur: the bucket that begins at near_end_ns             */
    uint32_t fetched;                /* buckets before this one are being fetched              */
    uint32_t shift, base_shift;      /* a bucket is 1 << shift ns wide                         */
    int64_t  near_end_ns, span_ns;
};

static inline uint32_t gw_delayline_count(const struct gw_delayline *d)
{
    return d->slot_count + d->near_count + d->far_count;
}

static inline bool gw_line_before(const struct gw_line_key *a, const struct gw_line_key *b)
{
    return a->at_ns != b->at_ns ? a->at_ns < b->at_ns : (int32_t)(a->seq - b->seq) < 0;
}

static inline void gw_line_near_push(struct gw_delayline *d, uint32_t n)
{
    struct gw_line_key key = { d->node[n].at_ns, d->node[n].seq, n };
    uint32_t i = d->near_count++;

    while (i && gw_line_before(&key, &d->near[(i - 1) / 2])) {
        d->near[i] = d->near[(i - 1) / 2];
        i = (i - 1) / 2;
    }
    d->near[i] = key;
}

static inline uint32_t gw_line_near_pop(struct gw_delayline *d)
{
    uint32_t top = d->near[0].node, i = 0, k;
    struct gw_line_key key = d->near[--d->near_count];

    while ((k = 2 * i + 1) < d->near_count) {
        if (k + 1 < d->near_count && gw_line_before(&d->near[k + 1], &d->near[k]))
            k++;
        if (!gw_line_before(&d->near[k], &key))
            break;
        d->near[i] = d->near[k];
        i = k;
    }
    d->near[i] = key;
    return top;
}

/* True if the node found its place; false: the buckets are too narrow. */
static inline bool gw_line_place(struct gw_delayline *d, uint32_t n)
{
    int64_t at = d->node[n].at_ns;
    uint64_t k;
    uint32_t b;

    if (at < d->near_end_ns) {
        gw_line_near_push(d, n);
        return true;
    }
    k = ((uint64_t)at - (uint64_t)d->near_end_ns) >> d->shift;
    if (k >= d->bucket_cap)
        return false;
    b = (d->cur + (uint32_t)k) & (d->bucket_cap - 1);
    d->node[n].next = d->bucket[b];
    d->bucket[b] = n;
    d->used[b / 64] |= UINT64_C(1) << b % 64;
    d->far_count++;
    return true;
}

/* Empties bucket @b into the list that begins with @list. */
static inline uint32_t gw_line_unbucket(struct gw_delayline *d, uint32_t b, uint32_t list)
{
    while (d->bucket[b] != GW_LINE_NIL) {
        uint32_t n = d->bucket[b];

        d->bucket[b] = d->node[n].next;
        d->node[n].next = list;
        list = n;
        d->far_count--;
    }
    d->used[b / 64] &= ~(UINT64_C(1) << b % 64);
    return list;
}

/* Takes all entries out of the store, as one list. */
static inline uint32_t gw_line_unplace(struct gw_delayline *d)
{
    uint32_t list = GW_LINE_NIL;

    for (uint32_t b = 0; d->far_count; b++)
        list = gw_line_unbucket(d, b, list);
    while (d->near_count) {
        uint32_t n = d->near[--d->near_count].node;

        d->node[n].next = list;
        list = n;
    }
    return list;
}

/* Places @list anew; buckets as wide as they must be. */
static inline void gw_line_replace(struct gw_delayline *d, uint32_t list)
{
    int64_t first = INT64_MAX, last = INT64_MIN;

    for (uint32_t n = list; n != GW_LINE_NIL; n = d->node[n].next) {
        first = d->node[n].at_ns < first ? d->node[n].at_ns : first;
        last = d->node[n].at_ns > last ? d->node[n].at_ns : last;
    }
    d->cur = 0;
    d->near_end_ns = first;
    d->shift = d->base_shift;
    while (list != GW_LINE_NIL && ((uint64_t)last - (uint64_t)first) >> d->shift >= d->bucket_cap)
        d->shift++;
    while (list != GW_LINE_NIL) {
        uint32_t n = list;

        list = d->node[n].next;
        gw_line_place(d, n);
    }
}

static inline void gw_line_set_shift(struct gw_delayline *d)
{
    d->base_shift = 0;
    while ((uint64_t)d->span_ns >> d->base_shift >= d->bucket_cap)
        d->base_shift++;
}

/* Doubles the store. False: out of memory, nothing changed that matters. */
static inline bool gw_line_grow(struct gw_delayline *d)
{
    uint32_t cap = d->node_cap ? 2 * d->node_cap : 256, buckets = cap, list;
    void *p;

    if (cap < d->node_cap || !(p = d->resize(d->node, cap * sizeof *d->node)))
        return false;
    d->node = p;
    if (!(p = d->resize(d->near, cap * sizeof *d->near)))
        return false;
    d->near = p;
    if (!(p = d->resize(d->bucket, buckets * sizeof *d->bucket)))
        return false;
    d->bucket = p;
    if (!(p = d->resize(d->used, buckets / 8)))
        return false;
    d->used = p;
    list = gw_line_unplace(d);
    for (uint32_t n = cap; n-- > d->node_cap; d->node_free = n)
        d->node[n].next = d->node_free;
    for (uint32_t b = 0; b < buckets; b++)
        d->bucket[b] = GW_LINE_NIL;
    memset(d->used, 0, buckets / 8);
    d->node_cap = cap;
    d->bucket_cap = buckets;
    gw_line_set_shift(d);
    gw_line_replace(d, list);
    return true;
}

static inline bool gw_line_store(struct gw_delayline *d, int64_t at_ns, struct gw_pkt *p)
{
    uint32_t n;

    if (d->node_free == GW_LINE_NIL && !gw_line_grow(d))
        return false;
    n = d->node_free;
    d->node_free = d->node[n].next;
    if (d->node_free != GW_LINE_NIL)
        __builtin_prefetch(&d->node[d->node_free], 1);
    d->node[n] = (struct gw_line_node){ at_ns, p, d->seq++, GW_LINE_NIL };
    if (!d->near_count && !d->far_count) {
        gw_line_replace(d, n);
    } else if (!gw_line_place(d, n)) {
        uint32_t list = gw_line_unplace(d);

        d->node[n].next = list;
        gw_line_replace(d, n);
    }
    return true;
}

/*
 * Memory is what a line of a million costs: asks early for what the buckets behind @b hold, first the
 * nodes, then, half as far ahead, their packets.
 */
static inline void gw_line_fetch(struct gw_delayline *d, uint32_t b)
{
    const uint32_t mask = d->bucket_cap - 1;

    if (((d->fetched - b) & mask) > GW_LINE_AHEAD)
        d->fetched = (b + 1) & mask;
    for (; ((d->fetched - b) & mask) < GW_LINE_AHEAD; d->fetched = (d->fetched + 1) & mask) {
        uint32_t far = d->bucket[d->fetched];
        uint32_t near = d->bucket[(d->fetched - GW_LINE_AHEAD / 2) & mask];

        if (far != GW_LINE_NIL)
            __builtin_prefetch(&d->node[far]);
        if (near != GW_LINE_NIL)
            __builtin_prefetch(d->node[near].pkt);
    }
}

/* Brings the next bucket into the heap when the heap is empty. */
static inline void gw_line_advance(struct gw_delayline *d)
{
    uint32_t b = d->cur, list;
    uint64_t word;

    if (d->near_count || !d->far_count)
        return;
    word = d->used[b / 64] >> b % 64 << b % 64;
    while (!word) {
        b = (b / 64 * 64 + 64) & (d->bucket_cap - 1);
        word = d->used[b / 64];
    }
    b = b / 64 * 64 + (uint32_t)__builtin_ctzll(word);
    gw_line_fetch(d, b);
    d->near_end_ns += (int64_t)((uint64_t)(((b - d->cur) & (d->bucket_cap - 1)) + 1) << d->shift);
    d->cur = (b + 1) & (d->bucket_cap - 1);
    list = gw_line_unbucket(d, b, GW_LINE_NIL);
    while (list != GW_LINE_NIL) {
        uint32_t n = list;

        list = d->node[n].next;
        gw_line_near_push(d, n);
    }
}

static inline bool gw_line_slots_grow(struct gw_delayline *d)
{
    uint32_t cap = d->slot_cap ? 2 * d->slot_cap : 64;
    struct gw_line_slot *s;

    if (cap < d->slot_cap || !(s = d->resize(d->slot, cap * sizeof *s)))
        return false;
    d->slot = s;
    for (uint32_t i = 0; i < d->slot_head; i++)        /* what was wrapped follows the end     */
        s[d->slot_cap + i] = s[i];
    d->slot_cap = cap;
    return true;
}

/* @span_ns: the longest delay that is usual; @resize as realloc. Allocates nothing. */
static inline void gw_delayline_init(struct gw_delayline *d, int64_t span_ns,
                                     void *(*resize)(void *p, size_t bytes))
{
    memset(d, 0, sizeof *d);
    d->resize = resize;
    d->node_free = GW_LINE_NIL;
    d->span_ns = span_ns;
}

/* Makes room for @slots packets in order, and for @late of the others if @late is not 0. */
static inline bool gw_delayline_reserve(struct gw_delayline *d, uint32_t slots, uint32_t late)
{
    while (d->slot_cap < slots)
        if (!gw_line_slots_grow(d))
            return false;
    while (d->node_cap < late)
        if (!gw_line_grow(d))
            return false;
    return true;
}

/* The usual delays have changed; what waits stays. */
static inline void gw_delayline_respan(struct gw_delayline *d, int64_t span_ns)
{
    d->span_ns = span_ns;
    if (d->node_cap) {
        uint32_t list = gw_line_unplace(d);

        gw_line_set_shift(d);
        gw_line_replace(d, list);
    }
}

static inline void gw_delayline_fini(struct gw_delayline *d, void (*release)(void *p))
{
    if (d->slot)
        release(d->slot);
    if (d->node)
        release(d->node);
    if (d->near)
        release(d->near);
    if (d->bucket)
        release(d->bucket);
    if (d->used)
        release(d->used);
    memset(d, 0, sizeof *d);
    d->node_free = GW_LINE_NIL;
}

/* The latest time that the list's end is due; false: the list is empty, and then so is the store. */
static inline bool gw_delayline_last(const struct gw_delayline *d, int64_t *at_ns)
{
    if (d->slot_count)
        *at_ns = d->slot[(d->slot_head + d->slot_count - 1) & (d->slot_cap - 1)].at_ns;
    return d->slot_count;
}

/* False: out of memory, @p is not held. */
static inline bool gw_delayline_add(struct gw_delayline *d, int64_t at_ns, struct gw_pkt *p)
{
    int64_t last;

    if (gw_delayline_last(d, &last) && at_ns < last)
        return gw_line_store(d, at_ns, p);
    if (d->slot_count == d->slot_cap && !gw_line_slots_grow(d))
        return false;
    d->slot[(d->slot_head + d->slot_count++) & (d->slot_cap - 1)] =
        (struct gw_line_slot){ at_ns, p };
    return true;
}

/* Whether the store holds the first of all; @at_ns: when that is due. INT64_MAX: there is
 * none. */
static inline bool gw_line_store_first(struct gw_delayline *d, int64_t *at_ns)
{
    gw_line_advance(d);
    *at_ns = d->slot_count ? d->slot[d->slot_head].at_ns : INT64_MAX;
    if (!d->near_count || (d->slot_count && d->near[0].at_ns >= *at_ns))
        return false;
    *at_ns = d->near[0].at_ns;
    return true;
}

/* When the first is due; false: none waits. */
static inline bool gw_delayline_first(struct gw_delayline *d, int64_t *at_ns)
{
    gw_line_store_first(d, at_ns);
    return gw_delayline_count(d);
}

/* Takes the first out; NULL: none waits. */
static inline struct gw_pkt *gw_delayline_take(struct gw_delayline *d)
{
    struct gw_pkt *p;
    int64_t at_ns;
    uint32_t n;

    if (!gw_delayline_count(d))
        return NULL;
    if (!gw_line_store_first(d, &at_ns)) {
        p = d->slot[d->slot_head].pkt;
        d->slot_head = (d->slot_head + 1) & (d->slot_cap - 1);
        d->slot_count--;
        return p;
    }
    n = gw_line_near_pop(d);
    p = d->node[n].pkt;
    d->node[n].next = d->node_free;
    d->node_free = n;
    return p;
}

#endif
