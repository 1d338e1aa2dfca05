/*
 * alg/delayline.h - packets ordered by the time at which they are due
 *
 * The order is that of Linux's netem: a packet due no earlier than the last of the list joins the
 * list's end; any other goes to a sorted store, equal times in order of arrival; the list goes
 * first when both heads are due at the same time. Without jitter only the list is used.
 *
 * The list is a ring of 16-byte slots. The sorted store is a calendar: buckets of a power of two of
 * nanoseconds that together cover the span of delays, each a chain of 512-byte chunks in order of
 * arrival, about 32 entries; and a small heap of what is due before the first bucket, into which
 * the buckets are emptied one by one. So an entry is written once, read once in a row with its
 * neighbours, and sorted within the cache, however many wait; packets are fetched ahead when their
 * bucket is emptied. An entry beyond the last bucket makes the buckets wider. Arrays double when
 * full and are never given back before fini, so the packet path allocates only when more wait than
 * ever before.
 */
#ifndef GRADWIRE_ALG_DELAYLINE_H
#define GRADWIRE_ALG_DELAYLINE_H

#include <gradwire/packet.h>

#define GW_LINE_NIL    UINT32_MAX
#define GW_LINE_CHUNK  31u           /* entries of a chunk                                     */
#define GW_LINE_BUCKET 32u           /* entries that a bucket should have                      */

struct gw_line_slot {
    int64_t        at_ns;
    struct gw_pkt *pkt;
};

struct gw_line_chunk {
    uint32_t next;                   /* the older, full chunk of a bucket; or the free list    */
    uint32_t count;                  /* written when the bucket is emptied                     */
    uint64_t spare;
    struct gw_line_slot slot[GW_LINE_CHUNK];
};

struct gw_line_bucket {
    uint32_t chunk;                  /* the newest, GW_LINE_NIL: empty                         */
    uint32_t count;                  /* entries of the newest; not in it, to keep it untouched */
};

_Static_assert(sizeof(struct gw_line_chunk) == 512, "a chunk is eight cache lines");

struct gw_line_key {
    int64_t        at_ns;
    struct gw_pkt *pkt;
    uint32_t       seq;              /* arrival, for equal times                               */
};

/* The store. near_cap is room for all its entries, so that emptying a bucket never fails. */
struct gw_line_store {
    struct gw_line_chunk *chunk;
    uint32_t chunk_cap, chunk_free;
    struct gw_line_key *near;        /* heap of those due before near_end_ns                   */
    uint32_t near_cap, near_count;
    struct gw_line_bucket *bucket;
    uint64_t *used;                  /* bit per bucket                                         */
    uint32_t bucket_cap, cur;        /* cur: the bucket that begins at near_end_ns             */
    uint32_t far_count, seq;         /* far: in buckets                                        */
    uint32_t shift;                  /* a bucket is 1 << shift ns wide                         */
    int64_t  near_end_ns;
};

struct gw_delayline {
    void *(*resize)(void *p, size_t bytes);
    void  (*release)(void *p);
    struct gw_line_slot *slot;       /* the list: a ring of slot_cap, a power of two           */
    uint32_t slot_cap, slot_head, slot_count;
    struct gw_line_store store;
    int64_t  span_ns;
};

static inline uint32_t gw_line_stored(const struct gw_line_store *s)
{
    return s->near_count + s->far_count;
}

static inline uint32_t gw_delayline_count(const struct gw_delayline *d)
{
    return d->slot_count + gw_line_stored(&d->store);
}

static inline bool gw_line_before(const struct gw_line_key *a, const struct gw_line_key *b)
{
    return a->at_ns != b->at_ns ? a->at_ns < b->at_ns : (int32_t)(a->seq - b->seq) < 0;
}

static inline void gw_line_near_push(struct gw_line_store *s, struct gw_line_key key)
{
    uint32_t i = s->near_count++;

    while (i && gw_line_before(&key, &s->near[(i - 1) / 2])) {
        s->near[i] = s->near[(i - 1) / 2];
        i = (i - 1) / 2;
    }
    s->near[i] = key;
}

static inline struct gw_line_key gw_line_near_pop(struct gw_line_store *s)
{
    struct gw_line_key top = s->near[0], key = s->near[--s->near_count];
    uint32_t i = 0, k;

    while ((k = 2 * i + 1) < s->near_count) {
        if (k + 1 < s->near_count && gw_line_before(&s->near[k + 1], &s->near[k]))
            k++;
        if (!gw_line_before(&s->near[k], &key))
            break;
        s->near[i] = s->near[k];
        i = k;
    }
    s->near[i] = key;
    return top;
}

/* Appends to bucket @b; a free chunk must be there. */
static inline void gw_line_put(struct gw_line_store *s, uint32_t b, int64_t at_ns,
                               struct gw_pkt *p)
{
    struct gw_line_bucket *k = &s->bucket[b];

    if (k->chunk == GW_LINE_NIL || k->count == GW_LINE_CHUNK) {
        uint32_t c = s->chunk_free;

        s->chunk_free = s->chunk[c].next;
        s->chunk[c].next = k->chunk;
        *k = (struct gw_line_bucket){ c, 0 };
        s->used[b / 64] |= UINT64_C(1) << b % 64;
    }
    s->chunk[k->chunk].slot[k->count++] = (struct gw_line_slot){ at_ns, p };
    s->far_count++;
}

/* False: the buckets do not reach to @at_ns. */
static inline bool gw_line_place(struct gw_line_store *s, int64_t at_ns, struct gw_pkt *p)
{
    uint64_t k;

    if (at_ns < s->near_end_ns) {
        gw_line_near_push(s, (struct gw_line_key){ at_ns, p, s->seq++ });
        return true;
    }
    k = ((uint64_t)at_ns - (uint64_t)s->near_end_ns) >> s->shift;
    if (k >= s->bucket_cap)
        return false;
    gw_line_put(s, (s->cur + (uint32_t)k) & (s->bucket_cap - 1), at_ns, p);
    return true;
}

/* Takes the chunks of bucket @b out, oldest first; returns the first. */
static inline uint32_t gw_line_unchain(struct gw_line_store *s, uint32_t b)
{
    uint32_t c = s->bucket[b].chunk, count = s->bucket[b].count, older, newer = GW_LINE_NIL;

    s->bucket[b].chunk = GW_LINE_NIL;
    s->used[b / 64] &= ~(UINT64_C(1) << b % 64);
    for (; c != GW_LINE_NIL; c = older) {
        older = s->chunk[c].next;
        s->chunk[c].next = newer;
        s->chunk[c].count = count;
        s->far_count -= count;
        count = GW_LINE_CHUNK;
        newer = c;
    }
    return newer;
}

/* Brings the next bucket into the heap when the heap is empty. */
static inline void gw_line_advance(struct gw_line_store *s)
{
    const uint32_t mask = s->bucket_cap - 1;
    uint32_t b = s->cur, c;
    uint64_t word;

    if (s->near_count || !s->far_count)
        return;
    word = s->used[b / 64] >> b % 64 << b % 64;
    while (!word) {
        b = (b / 64 * 64 + 64) & mask;
        word = s->used[b / 64];
    }
    b = b / 64 * 64 + (uint32_t)__builtin_ctzll(word);
    s->near_end_ns += (int64_t)((uint64_t)(((b - s->cur) & mask) + 1) << s->shift);
    s->cur = (b + 1) & mask;
    if (s->bucket[s->cur].chunk != GW_LINE_NIL)
        __builtin_prefetch(&s->chunk[s->bucket[s->cur].chunk]);
    for (c = gw_line_unchain(s, b); c != GW_LINE_NIL;) {
        struct gw_line_chunk *k = &s->chunk[c];
        uint32_t next = k->next;

        for (uint32_t i = 0; i < k->count; i++) {
            __builtin_prefetch(k->slot[i].pkt);
            gw_line_near_push(s, (struct gw_line_key){ k->slot[i].at_ns, k->slot[i].pkt,
                                                       s->seq++ });
        }
        k->next = s->chunk_free;
        s->chunk_free = c;
        c = next;
    }
}

static inline void gw_line_range(int64_t at_ns, int64_t *first, int64_t *last)
{
    *first = at_ns < *first ? at_ns : *first;
    *last = at_ns > *last ? at_ns : *last;
}

/* Puts all that @from holds, and no more, into the empty store @to. */
static inline void gw_line_move(struct gw_line_store *to, struct gw_line_store *from)
{
    while (from->near_count) {
        struct gw_line_key key = gw_line_near_pop(from);

        gw_line_place(to, key.at_ns, key.pkt);
    }
    for (uint32_t b = 0; b < from->bucket_cap; b++)
        for (uint32_t c = gw_line_unchain(from, b); c != GW_LINE_NIL; c = from->chunk[c].next)
            for (uint32_t i = 0; i < from->chunk[c].count; i++)
                gw_line_place(to, from->chunk[c].slot[i].at_ns, from->chunk[c].slot[i].pkt);
}

static inline void gw_line_chain_free(struct gw_line_store *s, uint32_t from)
{
    for (uint32_t c = s->chunk_cap; c-- > from; s->chunk_free = c)
        s->chunk[c].next = s->chunk_free;
}

static inline void gw_line_store_fini(struct gw_line_store *s, void (*release)(void *p))
{
    if (s->chunk)
        release(s->chunk);
    if (s->near)
        release(s->near);
    if (s->bucket)
        release(s->bucket);
    if (s->used)
        release(s->used);
}

/* An empty store for @count entries from @first on, buckets that reach @last and the usual span. */
static inline bool gw_line_store_init(const struct gw_delayline *d, struct gw_line_store *s,
                                      uint32_t count, int64_t first, int64_t last)
{
    uint64_t reach = (uint64_t)last - (uint64_t)first;

    memset(s, 0, sizeof *s);
    s->bucket_cap = 64;
    while (s->bucket_cap < count / GW_LINE_BUCKET)
        s->bucket_cap *= 2;
    s->near_cap = count < 64 ? 64 : count;
    s->chunk_cap = count / GW_LINE_CHUNK + s->bucket_cap + 1;
    s->chunk = d->resize(NULL, s->chunk_cap * sizeof *s->chunk);
    s->near = d->resize(NULL, s->near_cap * sizeof *s->near);
    s->bucket = d->resize(NULL, s->bucket_cap * sizeof *s->bucket);
    s->used = d->resize(NULL, s->bucket_cap / 8);
    if (!s->chunk || !s->near || !s->bucket || !s->used) {
        gw_line_store_fini(s, d->release);
        return false;
    }
    s->chunk_free = GW_LINE_NIL;
    gw_line_chain_free(s, 0);
    for (uint32_t b = 0; b < s->bucket_cap; b++)
        s->bucket[b] = (struct gw_line_bucket){ GW_LINE_NIL, 0 };
    memset(s->used, 0, s->bucket_cap / 8);
    s->near_end_ns = first;
    reach = reach > (uint64_t)d->span_ns ? reach : (uint64_t)d->span_ns;
    while (reach >> s->shift >= s->bucket_cap)
        s->shift++;
    return true;
}

/* A new store with room for @count entries that also reaches @at_ns. False: all is as it was. */
static inline bool gw_line_rebuild(struct gw_delayline *d, uint32_t count, int64_t at_ns)
{
    struct gw_line_store *s = &d->store, to;
    int64_t first = at_ns, last = at_ns;

    for (uint32_t i = 0; i < s->near_count; i++)
        gw_line_range(s->near[i].at_ns, &first, &last);
    for (uint32_t b = 0; b < s->bucket_cap; b++) {
        uint32_t held = s->bucket[b].count;

        for (uint32_t c = s->bucket[b].chunk; c != GW_LINE_NIL; c = s->chunk[c].next) {
            for (uint32_t i = 0; i < held; i++)
                gw_line_range(s->chunk[c].slot[i].at_ns, &first, &last);
            held = GW_LINE_CHUNK;
        }
    }
    if (!gw_line_store_init(d, &to, count, first, last))
        return false;
    gw_line_move(&to, s);
    gw_line_store_fini(s, d->release);
    *s = to;
    return true;
}

/* Room for one more entry, wherever it goes. */
static inline bool gw_line_make_room(struct gw_delayline *d, int64_t at_ns)
{
    struct gw_line_store *s = &d->store;
    uint32_t cap = s->chunk_cap;
    void *p;

    if (gw_line_stored(s) == s->near_cap)
        return s->near_cap <= UINT32_MAX / 2 &&
               gw_line_rebuild(d, s->near_cap ? 2 * s->near_cap : 256, at_ns);
    if (s->chunk_free != GW_LINE_NIL)
        return true;
    p = d->resize(s->chunk, 2 * (size_t)cap * sizeof *s->chunk);
    if (!p)
        return false;
    s->chunk = p;
    s->chunk_cap = 2 * cap;
    gw_line_chain_free(s, cap);
    return true;
}

static inline bool gw_line_add(struct gw_delayline *d, int64_t at_ns, struct gw_pkt *p)
{
    struct gw_line_store *s = &d->store;

    if (!gw_line_make_room(d, at_ns))
        return false;
    if (!gw_line_stored(s))
        s->near_end_ns = at_ns;
    return gw_line_place(s, at_ns, p) ||
           (gw_line_rebuild(d, s->near_cap, at_ns) && gw_line_place(s, at_ns, p));
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
                                     void *(*resize)(void *p, size_t bytes),
                                     void (*release)(void *p))
{
    memset(d, 0, sizeof *d);
    d->resize = resize;
    d->release = release;
    d->span_ns = span_ns;
}

/* Makes room for @slots packets in order, and for @late of the others if @late is not 0. */
static inline bool gw_delayline_reserve(struct gw_delayline *d, uint32_t slots, uint32_t late)
{
    while (d->slot_cap < slots)
        if (!gw_line_slots_grow(d))
            return false;
    return late <= d->store.near_cap || gw_line_rebuild(d, late, 0);
}

/* The usual delays have changed; what waits stays. Out of memory: the old buckets do. */
static inline void gw_delayline_respan(struct gw_delayline *d, int64_t span_ns)
{
    bool other = d->span_ns != span_ns;

    d->span_ns = span_ns;
    if (other && d->store.bucket_cap)
        gw_line_rebuild(d, d->store.near_cap, d->store.near_end_ns);
}

static inline void gw_delayline_fini(struct gw_delayline *d)
{
    if (d->slot)
        d->release(d->slot);
    if (d->store.bucket_cap)
        gw_line_store_fini(&d->store, d->release);
    gw_delayline_init(d, 0, d->resize, d->release);
}

/* When the list's end is due, the last of all; false: the list is empty, and so is the store. */
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
        return gw_line_add(d, at_ns, p);
    if (d->slot_count == d->slot_cap && !gw_line_slots_grow(d))
        return false;
    d->slot[(d->slot_head + d->slot_count++) & (d->slot_cap - 1)] =
        (struct gw_line_slot){ at_ns, p };
    return true;
}

/* Whether the store holds the first of all; @at_ns: when that is due, INT64_MAX: there is none. */
static inline bool gw_line_store_first(struct gw_delayline *d, int64_t *at_ns)
{
    struct gw_line_store *s = &d->store;

    gw_line_advance(s);
    *at_ns = d->slot_count ? d->slot[d->slot_head].at_ns : INT64_MAX;
    if (!s->near_count || (d->slot_count && s->near[0].at_ns >= *at_ns))
        return false;
    *at_ns = s->near[0].at_ns;
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

    if (!gw_delayline_count(d))
        return NULL;
    if (gw_line_store_first(d, &at_ns))
        return gw_line_near_pop(&d->store).pkt;
    p = d->slot[d->slot_head].pkt;
    d->slot_head = (d->slot_head + 1) & (d->slot_cap - 1);
    d->slot_count--;
    return p;
}

#endif
