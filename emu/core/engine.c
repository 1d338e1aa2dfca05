/*
 * engine - the event loop
 *
 * Near events lie in a timing wheel (slots of a power of two picoseconds, about two events a slot);
 * later ones, and those that come too late for their slot, in a 4-ary heap. A slot is sorted when it
 * is reached, and the packets of the slot are prefetched while it is collected; the next slot's
 * first entries with it. Who asked for it is told of a slot's first packets, so as to prefetch what
 * belongs to them. Taking an event compares the head of the sorted slot with the head of the heap, so
 * neither structure has to be moved into the other.
 *
 * The order of equal times needs no global counter: (time, receiver, draw, sender, sender's count),
 * draw = hash(seed, time, receiver, sender). It is computed only when two entries tie in time and
 * receiver and come from different senders.
 *
 * A timer's event refers to a slot record that points back to the timer; a timer that was re-armed
 * earlier leaves a dud behind. A timer must stay readable memory while one of its events is queued:
 * whoever frees flows recycles their memory by size and does not return it (see net/conn.c).
 */
#include <stdlib.h>

#include "emu/core/engine.h"

#define NIL UINT32_MAX
#define SLOT_EVENTS 2.0                    /* events a slot is meant to hold                   */
#define SHIFT_MIN 3
#define SHIFT_MAX 22
#define HORIZON_PS (UINT64_C(1) << 22)     /* about 4.2 us at least                            */
#define SLOTS_MIN 4096u
#define AHEAD 8u                           /* packets of a slot that are told of ahead         */
#define INSERT_MAX 24u                     /* longest move inside the sorted slot              */

struct ev {                                /* 32 bytes                                         */
    uint64_t at;
    uint32_t recv, send, count;
    uint32_t next;                         /* chain of a wheel slot, or of free nodes          */
    uintptr_t what;                        /* packet, or timer record << 1 | 1                 */
};
_Static_assert(sizeof(struct ev) == 32, "two queue entries a cache line");

struct sort_key {
    uint64_t key;
    uint32_t index;
};

struct timer_ref {
    struct gw_timer *t;
    uint32_t next_free;
};

struct gw_engine {
    uint64_t now, seed;
    uint32_t run_recv, run_send;           /* of the event that runs, or ran last: its time is now */
    uint64_t events;
    gw_deliver_fn deliver, ahead;          /* ahead may be NULL                                */
    void    *ctx;
    struct ev *sorted;                     /* current slot, from si to sn                      */
    uint32_t si, sn, scap;
    struct sort_key *key;                  /* two halves of key_cap / 2, for long slots        */
    struct ev *spare;
    uint32_t key_cap;
    uint32_t shift, slots;                 /* slot width, number of slots (power of two)       */
    uint64_t cur;                          /* index of the current slot                        */
    uint32_t *head;                        /* per slot: first node                             */
    uint64_t *occ;                         /* bitmap of occupied slots                         */
    struct ev *node;                       /* wheel nodes                                      */
    uint32_t node_free, node_count, node_cap;
    uint32_t in_wheel;
    struct ev *heap;
    uint32_t hn, hcap;
    struct timer_ref *ref;
    uint32_t ref_free, ref_count, ref_cap;
    uint32_t *timer_count;                 /* per component: timers armed so far               */
    uint32_t timer_comps;
    struct gw_clock *clock;
    bool     nomem, stop, overflow;
};

static inline uint64_t draw(uint64_t seed, uint64_t at, uint32_t recv, uint32_t send)
{
    return gw_mix64(seed ^ gw_mix64(at + UINT64_C(0x9e3779b97f4a7c15) * recv) ^
                    (uint64_t)send * UINT64_C(0xd6e8feb86659fd93));
}

static bool tie_before(const struct gw_engine *e, const struct ev *a, const struct ev *b)
{
    uint64_t da, db;

    if (a->recv != b->recv)
        return a->recv < b->recv;
    if (a->send == b->send)
        return (int32_t)(a->count - b->count) < 0;
    da = draw(e->seed, a->at, a->recv, a->send);
    db = draw(e->seed, b->at, b->recv, b->send);
    return da != db ? da < db : a->send < b->send;
}

static inline bool before(const struct gw_engine *e, const struct ev *a, const struct ev *b)
{
    if (GW_LIKELY(a->at != b->at))
        return a->at < b->at;
    return tie_before(e, a, b);
}

/* ---- heap --------------------------------------------------------------------------------- */

static bool grow(void **p, uint32_t *cap, size_t size)
{
    uint32_t n = *cap ? *cap * 2 : 1024;
    void *q = realloc(*p, n * size);

    if (!q)
        return false;
    *p = q;
    *cap = n;
    return true;
}

static void heap_push(struct gw_engine *e, const struct ev *x)
{
    uint32_t i = e->hn;

    if (i == e->hcap && !grow((void **)&e->heap, &e->hcap, sizeof *e->heap)) {
        e->nomem = true;
        return;
    }
    e->hn++;
    while (i) {
        uint32_t p = (i - 1) / 4;

        if (!before(e, x, &e->heap[p]))
            break;
        e->heap[i] = e->heap[p];
        i = p;
    }
    e->heap[i] = *x;
}

static void heap_pop(struct gw_engine *e)
{
    struct ev x = e->heap[--e->hn];
    uint32_t i = 0;

    for (;;) {
        uint32_t c = i * 4 + 1, end = c + 4, m = c;

        if (c >= e->hn)
            break;
        if (end > e->hn)
            end = e->hn;
        for (uint32_t j = c + 1; j < end; j++)
            if (before(e, &e->heap[j], &e->heap[m]))
                m = j;
        if (!before(e, &e->heap[m], &x))
            break;
        e->heap[i] = e->heap[m];
        i = m;
    }
    if (e->hn)
        e->heap[i] = x;
}

/* ---- wheel -------------------------------------------------------------------------------- */

static int compare_ev(const void *a, const void *b, void *e)
{
    return before(e, a, b) ? -1 : 1;
}

static void insertion_sort(const struct gw_engine *e, struct ev *s, uint32_t n)
{
    for (uint32_t i = 1; i < n; i++) {
        struct ev x = s[i];
        uint32_t j = i;

        for (; j && before(e, &x, &s[j - 1]); j--)
            s[j] = s[j - 1];
        s[j] = x;
    }
}

/* Entries of one time and receiver that stand together are put in order. */
static void sort_ties(struct gw_engine *e, struct ev *s, uint32_t n)
{
    for (uint32_t i = 0, j; i < n; i = j) {
        for (j = i + 1; j < n && s[j].at == s[i].at && s[j].recv == s[i].recv; j++)
            ;
        if (j - i > 32)
            qsort_r(s + i, j - i, sizeof *s, compare_ev, e);
        else if (j - i > 1)
            insertion_sort(e, s + i, j - i);
    }
}

/*
 * Long slots (many flows in step put hundreds of events at one instant) by radix: the key is time
 * within the slot and receiver, 8 bits a pass, lowest first.
 */
static void radix_sort(struct gw_engine *e)
{
    uint32_t n = e->sn, top = 0, bits = 0;
    struct sort_key *k = e->key, *to = e->key + e->key_cap / 2;
    uint64_t start = e->cur << e->shift;

    for (uint32_t i = 0; i < n; i++)
        top |= e->sorted[i].recv;
    while (bits < 32 && top >> bits)
        bits++;
    for (uint32_t i = 0; i < n; i++)
        k[i] = (struct sort_key){ (e->sorted[i].at - start) << bits | e->sorted[i].recv, i };
    for (uint32_t d = 0; d < bits + e->shift; d += 8) {
        uint32_t at[257] = { 0 };
        struct sort_key *swap = k;

        for (uint32_t i = 0; i < n; i++)
            at[(k[i].key >> d & 255) + 1]++;
        for (uint32_t i = 0; i < 256; i++)
            at[i + 1] += at[i];
        for (uint32_t i = 0; i < n; i++)
            to[at[k[i].key >> d & 255]++] = k[i];
        k = to;
        to = swap;
    }
    for (uint32_t i = 0; i < n; i++)
        e->spare[i] = e->sorted[k[i].index];
    memcpy(e->sorted, e->spare, n * sizeof *e->sorted);
    sort_ties(e, e->sorted, n);
}

/* Room for radix_sort; without it the slot is sorted another way. */
static bool radix_room(struct gw_engine *e)
{
    if (e->key_cap < 2 * e->scap) {
        struct sort_key *k = realloc(e->key, 2 * (size_t)e->scap * sizeof *k);
        struct ev *s = realloc(e->spare, e->scap * sizeof *s);

        if (k)
            e->key = k;
        if (s)
            e->spare = s;
        if (!k || !s)
            return false;
        e->key_cap = 2 * e->scap;
    }
    return true;
}

static void sort_slot(struct gw_engine *e)
{
    if (e->sn <= 24)
        insertion_sort(e, e->sorted, e->sn);
    else if (radix_room(e))
        radix_sort(e);
    else
        qsort_r(e->sorted, e->sn, sizeof *e->sorted, compare_ev, e);
}

/* The event belongs to the slot that is being run: into the sorted rest, or into the heap. */
static void put_current(struct gw_engine *e, const struct ev *x)
{
    uint32_t j = e->sn, low = e->sn - e->si > INSERT_MAX ? e->sn - INSERT_MAX : e->si;

    if (e->sn == e->scap && !grow((void **)&e->sorted, &e->scap, sizeof *e->sorted)) {
        e->nomem = true;
        return;
    }
    while (j > low && before(e, x, &e->sorted[j - 1]))
        j--;
    if (j == low && low > e->si && before(e, x, &e->sorted[j - 1])) {
        heap_push(e, x);
        return;
    }
    memmove(&e->sorted[j + 1], &e->sorted[j], (e->sn - j) * sizeof *e->sorted);
    e->sorted[j] = *x;
    e->sn++;
}

/* 213 days are all that 64 bits of picoseconds hold: an event at their very end is an error. */
static bool past_the_end(struct gw_engine *e, uint64_t at)
{
    if (GW_LIKELY(at < GW_NEVER - 1))
        return false;
    e->overflow = true;
    return true;
}

static inline void put(struct gw_engine *e, uint64_t at, uint32_t recv, uint32_t send,
                       uint32_t count, uintptr_t what)
{
    struct ev x = { at, recv, send, count, NIL, what };
    uint64_t s = at >> e->shift;
    uint32_t i, b;

    if (s - e->cur - 1 >= e->slots - 1) {          /* not in cur + 1 .. cur + slots - 1        */
        if (s <= e->cur)
            put_current(e, &x);
        else
            heap_push(e, &x);
        return;
    }
    i = e->node_free;
    if (i != NIL) {
        e->node_free = e->node[i].next;
    } else {
        if (e->node_count == e->node_cap &&
            !grow((void **)&e->node, &e->node_cap, sizeof *e->node)) {
            e->nomem = true;
            return;
        }
        i = e->node_count++;
    }
    b = (uint32_t)s & (e->slots - 1);
    x.next = e->head[b];
    e->node[i] = x;
    e->head[b] = i;
    e->occ[b >> 6] |= UINT64_C(1) << (b & 63);
    e->in_wheel++;
}

/* Distance from slot cur + 1 to the next occupied one; only called when the wheel is not empty. */
static uint32_t next_occupied(const struct gw_engine *e)
{
    uint32_t b = (uint32_t)(e->cur + 1) & (e->slots - 1), n = 0;

    for (;;) {
        uint64_t w = e->occ[b >> 6] >> (b & 63);

        if (w)
            return n + (uint32_t)__builtin_ctzll(w);
        w = 64 - (b & 63);
        n += (uint32_t)w;
        b = (b + (uint32_t)w) & (e->slots - 1);
    }
}

static inline void prefetch_packet(uintptr_t what)
{
    if (!(what & 1)) {
        __builtin_prefetch((void *)what, 1);
        __builtin_prefetch((char *)what + 64, 1);
    }
}

static void tell_ahead(const struct gw_engine *e)
{
    for (uint32_t k = 0; k < e->sn && k < AHEAD; k++)
        if (!(e->sorted[k].what & 1))
            e->ahead(e->ctx, e->sorted[k].recv, (struct gw_pkt *)e->sorted[k].what,
                     e->sorted[k].at);
}

/* Loads the next occupied slot into the sorted array. */
static void load_slot(struct gw_engine *e)
{
    uint32_t b, i;

    e->cur += 1 + next_occupied(e);
    b = (uint32_t)e->cur & (e->slots - 1);
    i = e->head[b];
    e->head[b] = NIL;
    e->occ[b >> 6] &= ~(UINT64_C(1) << (b & 63));
    e->si = e->sn = 0;
    while (i != NIL) {
        struct ev *n = &e->node[i];
        uint32_t next = n->next;

        if (e->sn == e->scap && !grow((void **)&e->sorted, &e->scap, sizeof *e->sorted)) {
            e->nomem = true;
            return;
        }
        prefetch_packet(n->what);
        e->sorted[e->sn++] = *n;
        n->next = e->node_free;
        e->node_free = i;
        e->in_wheel--;
        i = next;
    }
    sort_slot(e);
    if (e->in_wheel) {                       /* the first packets of the slot after this one   */
        i = e->head[(uint32_t)(e->cur + 1 + next_occupied(e)) & (e->slots - 1)];
        for (uint32_t k = e->ahead ? AHEAD : 1; k-- && i != NIL; i = e->node[i].next)
            prefetch_packet(e->node[i].what);
    }
    if (e->ahead)
        tell_ahead(e);
}

/* Takes the next event; false: none is left. */
static inline bool take(struct gw_engine *e, uint64_t until, struct ev *x)
{
    if (e->si == e->sn && e->in_wheel) {
        uint64_t s = e->cur + 1 + next_occupied(e);

        if (!e->hn || e->heap[0].at >> e->shift >= s)
            load_slot(e);
    }
    if (e->si < e->sn && (!e->hn || before(e, &e->sorted[e->si], &e->heap[0]))) {
        if (e->sorted[e->si].at > until)
            return false;
        *x = e->sorted[e->si++];
        return true;
    }
    if (!e->hn || e->heap[0].at > until)
        return false;
    *x = e->heap[0];
    heap_pop(e);
    if (e->si == e->sn && x->at >> e->shift > e->cur)
        e->cur = x->at >> e->shift;
    return true;
}

/* ---- timers ------------------------------------------------------------------------------- */

static uint32_t *count_of(struct gw_engine *e, uint32_t comp)
{
    if (comp >= e->timer_comps) {
        uint32_t n = e->timer_comps ? e->timer_comps : 64;
        uint32_t *p;

        while (n <= comp)
            n *= 2;
        p = realloc(e->timer_count, n * sizeof *p);
        if (!p) {
            e->nomem = true;
            return NULL;
        }
        memset(p + e->timer_comps, 0, (n - e->timer_comps) * sizeof *p);
        e->timer_count = p;
        e->timer_comps = n;
    }
    return &e->timer_count[comp];
}

static void timer_queue(struct gw_engine *e, struct gw_timer *t)
{
    uint32_t i = e->ref_free, *count = count_of(e, t->comp);

    if (!count)
        return;
    if (i != NIL) {
        e->ref_free = e->ref[i].next_free;
    } else {
        if (e->ref_count == e->ref_cap && !grow((void **)&e->ref, &e->ref_cap, sizeof *e->ref)) {
            e->nomem = true;
            return;
        }
        i = e->ref_count++;
    }
    e->ref[i].t = t;
    t->gen = i;
    t->queued = true;
    t->queued_ps = t->due_ps;
    put(e, t->due_ps, t->comp, t->comp, (*count)++, (uintptr_t)i << 1 | 1);
}

void gw_engine_timer_set(struct gw_engine *e, struct gw_timer *t, uint64_t at_ps)
{
    if (at_ps < e->now)
        at_ps = e->now;
    t->armed = true;
    t->due_ps = at_ps;
    if (t->queued && t->queued_ps <= at_ps)
        return;                                      /* the queued event will see due_ps       */
    if (t->queued)
        e->ref[t->gen].t = NULL;                     /* a dud stays behind                     */
    timer_queue(e, t);
}

void gw_engine_timer_stop(struct gw_engine *e, struct gw_timer *t)
{
    (void)e;
    t->armed = false;
}

static void timer_event(struct gw_engine *e, uint32_t i)
{
    struct gw_timer *t = e->ref[i].t;

    e->ref[i].t = NULL;
    e->ref[i].next_free = e->ref_free;
    e->ref_free = i;
    if (!t || !t->queued || t->gen != i)
        return;
    t->queued = false;
    if (!t->armed)
        return;
    if (t->due_ps > e->now) {
        timer_queue(e, t);
        return;
    }
    t->armed = false;
    e->events++;
    t->fire(t->owner, e->now);
}

/* ---- life --------------------------------------------------------------------------------- */

struct gw_engine *gw_engine_new(uint64_t seed, double events_per_us, gw_deliver_fn deliver,
                                void *ctx)
{
    struct gw_engine *e = calloc(1, sizeof *e);

    if (!e)
        return NULL;
    e->seed = gw_mix64(seed + UINT64_C(0x9e3779b97f4a7c15));
    e->deliver = deliver;
    e->ctx = ctx;
    e->node_free = e->ref_free = NIL;
    e->shift = SHIFT_MIN;
    while (e->shift < SHIFT_MAX &&
           events_per_us * 1e-6 * (double)(UINT64_C(1) << (e->shift + 1)) < SLOT_EVENTS)
        e->shift++;
    e->slots = SLOTS_MIN;
    while ((uint64_t)e->slots << e->shift < HORIZON_PS)
        e->slots *= 2;
    e->head = malloc(e->slots * sizeof *e->head);
    e->occ = calloc(e->slots / 64, sizeof *e->occ);
    if (!e->head || !e->occ) {
        gw_engine_free(e);
        return NULL;
    }
    memset(e->head, 0xff, e->slots * sizeof *e->head);
    return e;
}

void gw_engine_free(struct gw_engine *e)
{
    if (!e)
        return;
    free(e->head);
    free(e->occ);
    free(e->node);
    free(e->heap);
    free(e->sorted);
    free(e->key);
    free(e->spare);
    free(e->ref);
    free(e->timer_count);
    free(e);
}

void gw_engine_set_clock(struct gw_engine *e, struct gw_clock *c)
{
    e->clock = c;
}

uint64_t gw_engine_now(const struct gw_engine *e)
{
    return e->now;
}

uint64_t gw_engine_events(const struct gw_engine *e)
{
    return e->events;
}

uint64_t gw_engine_horizon_ps(const struct gw_engine *e)
{
    return (uint64_t)e->slots << e->shift;
}

void gw_engine_set_ahead(struct gw_engine *e, gw_deliver_fn ahead)
{
    e->ahead = ahead;
}

void gw_engine_post(struct gw_engine *e, uint64_t at_ps, uint32_t recv, uint32_t send,
                    uint32_t count, struct gw_pkt *p)
{
    put(e, at_ps, recv, send, count, (uintptr_t)p);
}

void gw_engine_advance(struct gw_engine *e, uint64_t at_ps)
{
    if (at_ps > e->now)
        e->now = at_ps;
    e->run_recv = UINT32_MAX;
}

bool gw_engine_over(const struct gw_engine *e, uint64_t at_ps, uint32_t comp)
{
    struct ev x = { .at = at_ps, .recv = comp, .send = comp };
    struct ev run = { .at = e->now, .recv = e->run_recv, .send = e->run_send };

    return before(e, &x, &run);
}

void gw_engine_stop(struct gw_engine *e)
{
    e->stop = true;
}

/* Waits for the clock; keeps the books on lateness. */
static void wait_for(struct gw_engine *e, uint64_t at)
{
    uint64_t t;

    e->clock->wait(e->clock, at);
    t = e->clock->read(e->clock);
    if (t > at) {
        e->clock->late_sum_ps += t - at;
        if (t - at > e->clock->late_max_ps)
            e->clock->late_max_ps = t - at;
    }
    e->clock->waits++;
}

enum gw_status gw_engine_run(struct gw_engine *e, uint64_t until_ps, uint64_t max_events,
                             bool *more, struct gw_error *err)
{
    struct ev x;
    bool any = true;

    e->stop = false;
    while (max_events-- && !e->stop && !e->nomem && (any = take(e, until_ps, &x))) {
        if (past_the_end(e, x.at))
            break;
        if (e->clock && x.at > e->now)
            wait_for(e, x.at);
        e->now = x.at;
        e->run_recv = x.recv;
        e->run_send = x.send;
        if (GW_LIKELY(!(x.what & 1))) {
            e->events++;
            e->deliver(e->ctx, x.recv, (struct gw_pkt *)x.what, x.at);
        } else {
            timer_event(e, (uint32_t)(x.what >> 1));
        }
    }
    *more = any;
    if (e->overflow)
        return gw_fail(err, GW_RANGE, "simulated time passes 213 days, which is all that picoseconds "
                       "in 64 bits hold; use `until:`, higher rates or fewer bytes");
    if (e->nomem)
        return gw_fail(err, GW_NOMEM, "out of memory in the event queue at simulated %.9f s; use "
                       "fewer flows or `records: {flows: summary}`", (double)e->now * 1e-12);
    return GW_OK;
}
