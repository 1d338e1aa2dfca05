/*
 * tp_ideal - fluid max-min fair transport without headers, the oracle of the others
 *
 * Every message is a fluid that flows over its path at its max-min fair rate from the moment it is
 * given to the transport until its last bit is sent; the host adds the path's latency. Rates change
 * only when messages start or end, so the cost is per message, not per packet.
 *
 * Max-min by water-filling (Bertsekas, Gallager, "Data Networks", 1992, section 6.5.2), done again
 * only for what a change can reach. A flow is held by one bottleneck link. When flows start or end,
 * a sweep from slow to fast looks at the links they touch: a link whose share at its old level no
 * longer comes out the same *questions* the flows that it holds; a link that fills up below the
 * rate of some of its flows questions these; questioned flows are frozen again at the first link
 * that fills. Flows slower than all that changed are never looked at: the bottleneck structure of
 * Ros-Giralt et al., "On the Bottleneck Structure of Congestion-Controlled Networks", SIGMETRICS
 * 2020. A message alone on its links needs no sweep at all. All starts and ends of one instant are
 * one sweep, done by a timer at that instant, behind all other components.
 *
 * Numbers are integers: rates in 2^-17 bit/s, what is left of a message in 2^-17 bit/s x ps (128
 * bits), so nothing drifts however often a rate changes; ends are rounded to the nearest
 * picosecond. Rates are rounded down, and levels that differ by no more than rounding count as
 * equal, so that equal flows end at the same picosecond.
 *
 * Cost: about 0.1 us a message alone on its links; a sweep costs some 0.2 us for each flow whose
 * rate changes, so 16,256 flows of one size all-to-all on a fat tree take hundredths of a second,
 * but seconds if every one of them ends at an instant of its own.
 *
 * Left out: headers, losses, queues, convergence time, changes of link rates while running; rates
 * above 100 Tbit/s, which no option allows. A message whose end lies beyond 213 days, the most that
 * 64 bits of picoseconds hold, ends at their very end, where the engine stops the run with an
 * error. When memory runs out a new message is not served; the run
 * then ends as stalled, because the contract has no error at that place.
 */
#include <gradwire/plugin.h>

#include <assert.h>

#define IDEAL_UNIT_BITS 17                        /* rates: 2^-17 bit/s                        */
#define IDEAL_RATE_MAX_BPS UINT64_C(100000000000000)
#define IDEAL_LAST_PS (GW_NEVER - 1)              /* the end of time                           */
#define IDEAL_NEAR_BITS 44                        /* levels closer than 2^-44 are one          */
#define IDEAL_PPB UINT64_C(1000000000)

__extension__ typedef unsigned __int128 ideal_u128;

_Static_assert(IDEAL_RATE_MAX_BPS < UINT64_MAX >> IDEAL_UNIT_BITS, "a rate fits 64 bits");

struct ideal_conf {
    double efficiency;           /* fraction of a link's rate that messages may use            */
};

struct ideal_member {            /* a flow as its link sees it                                 */
    uint32_t slot;
    uint32_t hop;                /* which of the flow's hops this is                           */
};

struct ideal_link {
    uint64_t cap;                /* units; 0: infinitely fast, never looked at                 */
    uint64_t fixed;              /* sum of the rates of flows that are not in question         */
    uint64_t held_sum;           /* the part of it that this link holds                        */
    uint64_t level;              /* rate of the flows that it holds, valid if held             */
    uint64_t top;                /* no fixed flow here is faster; an upper bound               */
    uint64_t key;                /* in the heap: not later than its next event's level         */
    uint64_t told_bps;           /* what the host was told last                                */
    uint32_t held;               /* flows that this link is the bottleneck of                  */
    uint32_t open;               /* flows in question                                          */
    uint32_t count, room;        /* of members                                                 */
    uint32_t sweep;              /* last sweep that touched it                                 */
    uint32_t heap_at;            /* GW_NONE: not in the heap                                   */
    bool     checked;            /* this sweep has looked whether its level holds              */
    bool     pending;            /* its key must be worked out                                 */
    bool     dirty;              /* the next sweep begins with it                              */
    bool     tell;               /* stands in the list of links to report                      */
    struct ideal_member *member;
};

struct ideal_rate {              /* the part of a flow that scans of a link read               */
    uint64_t rate;               /* units; in question: the rate so far                        */
    uint32_t holder;             /* its bottleneck link, GW_NONE: in question                  */
    uint32_t sweep;              /* last sweep that froze it                                   */
};

struct ideal_flow {              /* the rest; a slot is free if x is NULL                      */
    ideal_u128 left;             /* at since_ps, unit x ps                                     */
    uint64_t since_ps;
    uint64_t end_ps;             /* when its last bit is sent at the present rate              */
    struct gw_fluid_flow *x;
    uint32_t hops;               /* links of finite rate on its path                           */
    uint32_t heap_at;            /* GW_NONE: not in the heap                                   */
};

struct ideal_hop {
    uint32_t link;
    uint32_t at;                 /* index in the link's members                                */
};

struct ideal_list {              /* of indices                                                 */
    uint32_t *v;
    uint32_t  count, room;
};

struct ideal {
    struct ideal_link *link;
    struct ideal_rate *rate;     /* by slot, as are flow and hop                               */
    struct ideal_flow *flow;
    struct ideal_hop  *hop;      /* stride of each slot                                        */
    uint32_t  slots, stride;
    struct ideal_list idle;      /* free slots                                                 */
    struct ideal_list ends;      /* heap of slots by end_ps                                    */
    struct ideal_list heap;      /* heap of links by key, during a sweep                       */
    struct ideal_list dirty, pending, tell;
    struct gw_fluid_flow **instant;          /* messages without bytes or links                */
    uint32_t  instants, instant_room;
    uint32_t  sweep;             /* number of the present sweep                                */
    uint64_t  now_ps;
    uint64_t  armed_ps;          /* when the timer will come, GW_NEVER: not armed              */
    struct gw_timer timer;
};

/* ---- memory ------------------------------------------------------------------------------- */

/* Makes room for @want entries of @bytes; doubles. False: out of memory, nothing has changed. */
static bool ideal_grow(const struct gw_host *h, void **v, uint32_t *room, uint32_t want,
                       size_t bytes)
{
    uint64_t more = *room ? *room : 4;
    void *p;

    if (want <= *room)
        return true;
    while (more < want)
        more *= 2;
    if (more >= GW_NONE || !(p = h->resize(*v, (size_t)more * bytes)))
        return false;
    *v = p;
    *room = (uint32_t)more;
    return true;
}

static bool list_reserve(const struct gw_host *h, struct ideal_list *l, uint32_t want)
{
    void *v = l->v;
    bool ok = ideal_grow(h, &v, &l->room, want, sizeof *l->v);

    l->v = v;
    return ok;
}

static inline void list_push(struct ideal_list *l, uint32_t i)
{
    assert(l->count < l->room);
    l->v[l->count++] = i;
}

/* More slots. All lists that hold slots get the room here, so that nothing can fail later. */
static bool slots_grow(const struct gw_host *h, struct ideal *s)
{
    uint32_t room = s->slots, same = s->slots, old = s->slots;
    uint32_t want = old ? old * 2 : 64;
    void *p;

    if (want >= GW_NONE / 2 || !list_reserve(h, &s->idle, want) ||
        !list_reserve(h, &s->ends, want))
        return false;
    p = s->rate;
    if (!ideal_grow(h, &p, &room, want, sizeof *s->rate))
        return false;
    s->rate = p;
    p = s->flow;
    room = same;
    if (!ideal_grow(h, &p, &room, want, sizeof *s->flow))
        return false;
    s->flow = p;
    p = h->resize(s->hop, (size_t)want * s->stride * sizeof *s->hop);
    if (!p)
        return false;
    s->hop = p;
    s->slots = want;
    while (want-- > old) {
        s->flow[want].x = NULL;
        list_push(&s->idle, want);
    }
    return true;
}

/* A longer path than any before: the hop table gets wider rows. */
static bool stride_grow(const struct gw_host *h, struct ideal *s, uint32_t want)
{
    uint32_t wide = (want + 3) & ~3u;
    struct ideal_hop *p = h->resize(s->hop, (size_t)(s->slots ? s->slots : 1) * wide * sizeof *p);

    if (!p)
        return false;
    for (uint32_t i = s->slots; i-- > 0;)
        memmove(p + (size_t)i * wide, p + (size_t)i * s->stride, s->stride * sizeof *p);
    s->hop = p;
    s->stride = wide;
    return true;
}

static inline struct ideal_hop *hops_of(const struct ideal *s, uint32_t slot)
{
    return s->hop + (size_t)slot * s->stride;
}

/* ---- the heap of ends: 4-ary, by (end_ps, slot) ------------------------------------------- */

static inline bool ends_before(const struct ideal *s, uint32_t a, uint32_t b)
{
    uint64_t ta = s->flow[a].end_ps, tb = s->flow[b].end_ps;

    return ta != tb ? ta < tb : a < b;
}

static void ends_place(struct ideal *s, uint32_t at, uint32_t slot)
{
    s->ends.v[at] = slot;
    s->flow[slot].heap_at = at;
}

static void ends_up(struct ideal *s, uint32_t at, uint32_t slot)
{
    while (at && ends_before(s, slot, s->ends.v[(at - 1) / 4])) {
        ends_place(s, at, s->ends.v[(at - 1) / 4]);
        at = (at - 1) / 4;
    }
    ends_place(s, at, slot);
}

static void ends_down(struct ideal *s, uint32_t at, uint32_t slot)
{
    for (;;) {
        uint64_t first = (uint64_t)at * 4 + 1;
        uint32_t best = slot, best_at = at;

        for (uint64_t c = first; c < first + 4 && c < s->ends.count; c++)
            if (ends_before(s, s->ends.v[c], best)) {
                best = s->ends.v[c];
                best_at = (uint32_t)c;
            }
        if (best == slot)
            break;
        ends_place(s, at, best);
        at = best_at;
    }
    ends_place(s, at, slot);
}

/* The flow's end_ps is new: finds its place. */
static void ends_fix(struct ideal *s, uint32_t slot)
{
    uint32_t at = s->flow[slot].heap_at;

    if (at == GW_NONE)
        ends_up(s, s->ends.count++, slot);
    else if (at && ends_before(s, slot, s->ends.v[(at - 1) / 4]))
        ends_up(s, at, slot);
    else
        ends_down(s, at, slot);
}

static uint32_t ends_pop(struct ideal *s)
{
    uint32_t slot = s->ends.v[0];
    uint32_t last = s->ends.v[--s->ends.count];

    s->flow[slot].heap_at = GW_NONE;
    if (s->ends.count)
        ends_down(s, 0, last);
    return slot;
}

/* ---- the heap of links: binary, by (key, link) -------------------------------------------- */

static inline bool link_before(const struct ideal *s, uint32_t a, uint32_t b)
{
    uint64_t ka = s->link[a].key, kb = s->link[b].key;

    return ka != kb ? ka < kb : a < b;
}

static void heap_place(struct ideal *s, uint32_t at, uint32_t l)
{
    s->heap.v[at] = l;
    s->link[l].heap_at = at;
}

static void heap_up(struct ideal *s, uint32_t at, uint32_t l)
{
    while (at && link_before(s, l, s->heap.v[(at - 1) / 2])) {
        heap_place(s, at, s->heap.v[(at - 1) / 2]);
        at = (at - 1) / 2;
    }
    heap_place(s, at, l);
}

static void heap_down(struct ideal *s, uint32_t at, uint32_t l)
{
    for (;;) {
        uint32_t c = 2 * at + 1;

        if (c >= s->heap.count)
            break;
        if (c + 1 < s->heap.count && link_before(s, s->heap.v[c + 1], s->heap.v[c]))
            c++;
        if (!link_before(s, s->heap.v[c], l))
            break;
        heap_place(s, at, s->heap.v[c]);
        at = c;
    }
    heap_place(s, at, l);
}

static void heap_remove(struct ideal *s, uint32_t l)
{
    uint32_t at = s->link[l].heap_at;
    uint32_t last = s->heap.v[--s->heap.count];

    s->link[l].heap_at = GW_NONE;
    if (last == l)
        return;
    if (at && link_before(s, last, s->heap.v[(at - 1) / 2]))
        heap_up(s, at, last);
    else
        heap_down(s, at, last);
}

/* Puts @l at @key, wherever it was; GW_NEVER takes it out. */
static void heap_set(struct ideal *s, uint32_t l, uint64_t key)
{
    uint32_t at = s->link[l].heap_at;

    if (key == GW_NEVER) {
        if (at != GW_NONE)
            heap_remove(s, l);
        return;
    }
    s->link[l].key = key;
    if (at == GW_NONE)
        heap_up(s, s->heap.count++, l);
    else if (at && link_before(s, l, s->heap.v[(at - 1) / 2]))
        heap_up(s, at, l);
    else
        heap_down(s, at, l);
}

/* ---- flows on links ----------------------------------------------------------------------- */

static void link_tell(struct ideal *s, uint32_t l)
{
    if (!s->tell.v || s->link[l].tell)
        return;
    s->link[l].tell = true;
    list_push(&s->tell, l);
}

static void link_dirty(struct ideal *s, uint32_t l)
{
    if (s->link[l].dirty)
        return;
    s->link[l].dirty = true;
    list_push(&s->dirty, l);
}

static void link_join(struct ideal *s, uint32_t slot, uint32_t hop)
{
    struct ideal_hop *h = hops_of(s, slot) + hop;
    struct ideal_link *l = &s->link[h->link];

    assert(l->count < l->room);
    h->at = l->count++;
    l->member[h->at] = (struct ideal_member){ slot, hop };
}

static void link_part(struct ideal *s, uint32_t slot, uint32_t hop)
{
    struct ideal_hop *h = hops_of(s, slot) + hop;
    struct ideal_link *l = &s->link[h->link];
    struct ideal_member last = l->member[--l->count];

    l->member[h->at] = last;
    hops_of(s, last.slot)[last.hop].at = h->at;
}

/* Levels that differ by no more than rounding: every member may be short of one unit. */
static inline uint64_t link_near(const struct ideal_link *l, uint64_t level)
{
    return (level >> IDEAL_NEAR_BITS) + l->count;
}

/* Did more than rounding drive two levels of a link apart? */
static inline bool levels_apart(const struct ideal_link *l, uint64_t a, uint64_t b)
{
    return (a > b ? a - b : b - a) > link_near(l, a);
}

static inline uint64_t sat_sub(uint64_t a, uint64_t b)
{
    return a > b ? a - b : 0;
}

/* The flow goes at @rate from now on: settles what it has sent and finds its new end. */
static void flow_set_rate(struct ideal *s, uint32_t slot, uint64_t rate)
{
    struct ideal_flow *f = &s->flow[slot];
    struct ideal_rate *r = &s->rate[slot];
    ideal_u128 sent, dt;

    if (r->rate == rate && f->heap_at != GW_NONE)
        return;
    assert(rate > 0 && s->now_ps >= f->since_ps);
    sent = (ideal_u128)r->rate * (s->now_ps - f->since_ps);
    f->left = f->left > sent ? f->left - sent : 0;
    f->since_ps = s->now_ps;
    r->rate = rate;
    dt = (f->left + rate / 2) / rate;
    f->end_ps = dt < IDEAL_LAST_PS - s->now_ps ? s->now_ps + (uint64_t)dt : IDEAL_LAST_PS;
    ends_fix(s, slot);
}

/* ---- the sweep ---------------------------------------------------------------------------- */

/* The link's key must be worked out before the sweep goes on. */
static void link_touch(struct ideal *s, uint32_t i)
{
    struct ideal_link *l = &s->link[i];

    if (l->pending)
        return;
    l->pending = true;
    list_push(&s->pending, i);
    if (l->sweep != s->sweep) {
        l->sweep = s->sweep;
        l->checked = false;
        link_tell(s, i);
    }
}

/* The level at which this link next has something to say. */
static uint64_t link_next(const struct ideal_link *l)
{
    uint64_t key = l->open ? sat_sub(l->cap, l->fixed) / l->open : GW_NEVER;

    return l->held && !l->checked && l->level < key ? l->level : key;
}

static void pending_flush(struct ideal *s)
{
    while (s->pending.count) {
        uint32_t i = s->pending.v[--s->pending.count];

        s->link[i].pending = false;
        heap_set(s, i, link_next(&s->link[i]));
    }
}

/*
 * Takes a fixed flow's rate off its links: it will be frozen anew in this sweep. The share of a
 * link is now a mean of its old one and this rate, so an old key that is below both still holds
 * as a lower bound and is left.
 */
static void flow_question(struct ideal *s, uint32_t slot)
{
    struct ideal_rate *r = &s->rate[slot];
    const struct ideal_hop *h = hops_of(s, slot);

    for (uint32_t i = 0; i < s->flow[slot].hops; i++) {
        struct ideal_link *l = &s->link[h[i].link];

        assert(l->fixed >= r->rate);
        l->fixed -= r->rate;
        l->open++;
        if (l->heap_at == GW_NONE || l->key > r->rate)
            link_touch(s, h[i].link);
    }
    s->link[r->holder].held--;
    s->link[r->holder].held_sum -= r->rate;
    r->holder = GW_NONE;
}

/* Questions all flows that link @i holds, as far as this sweep has not frozen them. */
static bool link_question_held(struct ideal *s, uint32_t i)
{
    struct ideal_link *l = &s->link[i];
    bool any = false;

    for (uint32_t m = 0; m < l->count && l->held; m++) {
        const struct ideal_rate *r = &s->rate[l->member[m].slot];

        if (r->holder == i && r->sweep != s->sweep) {
            flow_question(s, l->member[m].slot);
            any = true;
        }
    }
    return any;
}

/* Questions the flows of link @i that go faster than @level, and a rounding more. */
static bool link_question_faster(struct ideal *s, uint32_t i, uint64_t level)
{
    struct ideal_link *l = &s->link[i];
    uint64_t above = level + link_near(l, level);
    bool any = false;

    if (l->top <= above)
        return false;
    for (uint32_t m = 0; m < l->count; m++) {
        const struct ideal_rate *r = &s->rate[l->member[m].slot];

        if (r->holder != GW_NONE && r->rate > above && r->sweep != s->sweep) {
            flow_question(s, l->member[m].slot);
            any = true;
        }
    }
    l->top = above;
    return any;
}

static void flow_freeze(struct ideal *s, uint32_t slot, uint32_t holder, uint64_t rate)
{
    struct ideal_rate *r = &s->rate[slot];
    const struct ideal_hop *h = hops_of(s, slot);

    for (uint32_t i = 0; i < s->flow[slot].hops; i++) {
        struct ideal_link *l = &s->link[h[i].link];

        l->fixed += rate;
        l->open--;
        if (l->top < rate)
            l->top = rate;
    }
    s->link[holder].held++;
    s->link[holder].held_sum += rate;
    r->holder = holder;
    r->sweep = s->sweep;
    flow_set_rate(s, slot, rate);
}

/* Link @i is full at @level: its open flows get no more. Keys of other links in the heap can only
 * rise by that, so they are left and looked at again when they come up. */
static void link_freeze(struct ideal *s, uint32_t i, uint64_t level)
{
    struct ideal_link *l = &s->link[i];

    if (!level)
        level = 1;
    if (l->held && !levels_apart(l, level, l->level))
        level = l->level;
    l->level = level;
    l->checked = true;
    for (uint32_t m = 0; m < l->count && l->open; m++)
        if (s->rate[l->member[m].slot].holder == GW_NONE)
            flow_freeze(s, l->member[m].slot, i, level);
}

/* Does the level at which link @i holds its flows still come out of what the others leave? */
static bool link_level_holds(const struct ideal_link *l)
{
    uint64_t share = sat_sub(l->cap, l->fixed - l->held_sum) / (l->held + l->open);

    return !levels_apart(l, share, l->level);
}

/* Link @i came up at @level, which no open flow is below. */
static void link_event(struct ideal *s, uint32_t i, uint64_t level)
{
    struct ideal_link *l = &s->link[i];
    uint64_t reach = level + link_near(l, level);

    if (l->held && !l->checked && l->level <= reach) {
        l->checked = true;
        if (!link_level_holds(l) && link_question_held(s, i))
            return;
    }
    if (l->open && sat_sub(l->cap, l->fixed) / l->open <= reach) {
        if (link_question_faster(s, i, level))
            return;
        if (l->held && levels_apart(l, level, l->level) && link_question_held(s, i))
            return;
        link_freeze(s, i, level);
    }
    link_touch(s, i);
}

/* Water-filling over all that the dirty links can reach. */
static void ideal_sweep(struct ideal *s)
{
    uint64_t level = 0;

    s->sweep++;
    while (s->dirty.count) {
        uint32_t i = s->dirty.v[--s->dirty.count];

        s->link[i].dirty = false;
        link_touch(s, i);
    }
    pending_flush(s);
    while (s->heap.count) {
        uint32_t i = s->heap.v[0];
        uint64_t next = link_next(&s->link[i]);

        if (next > s->link[i].key) {           /* the key was only a lower bound              */
            heap_set(s, i, next);
            continue;
        }
        if (level + link_near(&s->link[i], level) < next)
            level = next;
        heap_remove(s, i);
        link_event(s, i, level);
        pending_flush(s);
    }
}

/* ---- starts and ends ---------------------------------------------------------------------- */

/* Tells the host what fluid takes of the links whose sum has changed. */
static void ideal_tell(struct gw_fluid *f, struct ideal *s)
{
    while (s->tell.count) {
        uint32_t i = s->tell.v[--s->tell.count];
        struct ideal_link *l = &s->link[i];
        uint64_t bps = l->fixed >> IDEAL_UNIT_BITS;

        l->tell = false;
        if (bps == l->told_bps)
            continue;
        l->told_bps = bps;
        f->host->fluid_rate(f, i, bps);
    }
}

/* The timer comes next when there is something to do: now, or at the next end. */
static void ideal_arm(struct gw_fluid *f, struct ideal *s)
{
    uint64_t at_ps = s->ends.count ? s->flow[s->ends.v[0]].end_ps : GW_NEVER;

    if (s->dirty.count || s->instants)
        at_ps = s->now_ps;
    if (at_ps == s->armed_ps)
        return;
    s->armed_ps = at_ps;
    if (at_ps == GW_NEVER)
        f->host->timer_stop(f->net, &s->timer);
    else
        f->host->timer_set(f->net, &s->timer, at_ps);
}

/* Reserves all that a flow over @x's path can ever need, and notes its hops. */
static uint32_t flow_new(struct gw_fluid *f, struct ideal *s, struct gw_fluid_flow *x)
{
    const struct gw_host *h = f->host;
    uint32_t slot, n = 0;

    if (x->path_len > s->stride && !stride_grow(h, s, x->path_len))
        return GW_NONE;
    if (!s->idle.count && !slots_grow(h, s))
        return GW_NONE;
    slot = s->idle.v[s->idle.count - 1];
    for (uint32_t i = 0; i < x->path_len; i++) {
        struct ideal_link *l = &s->link[x->path[i]];
        void *v = l->member;

        if (!l->cap)
            continue;
        if (!ideal_grow(h, &v, &l->room, l->count + x->path_len, sizeof *l->member))
            return GW_NONE;
        l->member = v;
        hops_of(s, slot)[n++].link = x->path[i];
    }
    s->idle.count--;
    s->flow[slot] = (struct ideal_flow){ .x = x, .since_ps = s->now_ps, .hops = n,
                                         .heap_at = GW_NONE };
    s->flow[slot].left = (ideal_u128)x->bytes * 8 * GW_PS_PER_S << IDEAL_UNIT_BITS;
    s->rate[slot] = (struct ideal_rate){ .holder = GW_NONE };
    return slot;
}

/* Alone on all its links: the narrowest one is its bottleneck, nobody else is concerned. */
static bool flow_start_alone(struct ideal *s, uint32_t slot)
{
    const struct ideal_hop *h = hops_of(s, slot);
    uint32_t n = s->flow[slot].hops, holder = h[0].link;
    uint64_t rate;

    for (uint32_t i = 0; i < n; i++) {
        if (s->link[h[i].link].count != 1)
            return false;
        if (s->link[h[i].link].cap < s->link[holder].cap)
            holder = h[i].link;
    }
    rate = s->link[holder].cap;
    for (uint32_t i = 0; i < n; i++) {
        struct ideal_link *l = &s->link[h[i].link];

        l->fixed = l->top = rate;
        link_tell(s, h[i].link);
    }
    s->link[holder].held = 1;
    s->link[holder].held_sum = s->link[holder].level = rate;
    s->rate[slot].holder = holder;
    flow_set_rate(s, slot, rate);
    return true;
}

static void flow_start(struct ideal *s, uint32_t slot)
{
    const struct ideal_hop *h = hops_of(s, slot);

    for (uint32_t i = 0; i < s->flow[slot].hops; i++)
        link_join(s, slot, i);
    if (flow_start_alone(s, slot))
        return;
    for (uint32_t i = 0; i < s->flow[slot].hops; i++) {
        s->link[h[i].link].open++;
        link_dirty(s, h[i].link);
    }
}

static void flow_end(struct ideal *s, uint32_t slot)
{
    const struct ideal_hop *h = hops_of(s, slot);
    struct ideal_rate *r = &s->rate[slot];

    assert(r->holder != GW_NONE);
    s->link[r->holder].held--;
    s->link[r->holder].held_sum -= r->rate;
    for (uint32_t i = 0; i < s->flow[slot].hops; i++) {
        struct ideal_link *l = &s->link[h[i].link];

        l->fixed -= r->rate;
        link_part(s, slot, i);
        link_tell(s, h[i].link);
        if (l->held)
            link_dirty(s, h[i].link);
    }
    s->flow[slot].x = NULL;
    list_push(&s->idle, slot);
}

/* Hands back all messages that are due. Returns whether there was any. */
static bool ideal_end_due(struct gw_fluid *f, struct ideal *s)
{
    bool any = false;

    while (s->instants) {
        struct gw_fluid_flow *x = s->instant[--s->instants];

        f->host->fluid_done(f, x, s->now_ps);
        any = true;
    }
    while (s->ends.count && s->flow[s->ends.v[0]].end_ps <= s->now_ps) {
        uint32_t slot = ends_pop(s);
        struct gw_fluid_flow *x = s->flow[slot].x;

        flow_end(s, slot);
        f->host->fluid_done(f, x, s->now_ps);
        any = true;
    }
    return any;
}

/*
 * Ends come first; what they start in other components at this same instant runs before the timer
 * comes again, so that one sweep serves both.
 */
static void ideal_fire(void *owner, uint64_t now_ps)
{
    struct gw_fluid *f = owner;
    struct ideal *s = f->priv;

    s->now_ps = now_ps;
    s->armed_ps = GW_NEVER;
    if (ideal_end_due(f, s) && s->dirty.count) {
        ideal_arm(f, s);
        return;
    }
    if (s->dirty.count)
        ideal_sweep(s);
    ideal_tell(f, s);
    ideal_arm(f, s);
}

static void ideal_start(struct gw_fluid *f, struct gw_fluid_flow *x, uint64_t now_ps)
{
    struct ideal *s = f->priv;
    uint32_t finite = 0, slot;

    s->now_ps = now_ps;
    for (uint32_t i = 0; i < x->path_len; i++) {
        assert(x->path[i] < f->link_count);
        finite += s->link[x->path[i]].cap != 0;
    }
    if (!x->bytes || !finite) {
        void *v = s->instant;
        bool ok = ideal_grow(f->host, &v, &s->instant_room, s->instants + 1, sizeof *s->instant);

        s->instant = v;
        if (ok)
            s->instant[s->instants++] = x;
    } else if ((slot = flow_new(f, s, x)) != GW_NONE) {
        flow_start(s, slot);
        if (!s->dirty.count)
            ideal_tell(f, s);
    }
    ideal_arm(f, s);
}

static void ideal_fini(struct gw_fluid *f)
{
    struct ideal *s = f->priv;
    const struct gw_host *h = f->host;

    for (uint32_t i = 0; s->link && i < f->link_count; i++)
        h->release(s->link[i].member);
    h->release(s->link);
    h->release(s->rate);
    h->release(s->flow);
    h->release(s->hop);
    h->release(s->idle.v);
    h->release(s->ends.v);
    h->release(s->heap.v);
    h->release(s->dirty.v);
    h->release(s->pending.v);
    h->release(s->tell.v);
    h->release(s->instant);
    memset(s, 0, sizeof *s);
}

static uint64_t ideal_cap(uint64_t rate_bps, double efficiency)
{
    uint64_t bps = rate_bps < IDEAL_RATE_MAX_BPS ? rate_bps : IDEAL_RATE_MAX_BPS;
    uint64_t ppb = (uint64_t)(efficiency * (double)IDEAL_PPB + 0.5);

    return gw_mul_div(bps << IDEAL_UNIT_BITS, ppb, IDEAL_PPB);
}

static enum gw_status ideal_init(struct gw_fluid *f, struct gw_error *err)
{
    const struct ideal_conf *c = f->conf;
    const struct gw_host *h = f->host;
    struct ideal *s = f->priv;
    uint32_t n = f->link_count ? f->link_count : 1;

    s->stride = 8;
    s->armed_ps = GW_NEVER;
    s->timer = (struct gw_timer){ .fire = ideal_fire, .owner = f, .comp = f->comp };
    s->link = h->alloc((size_t)n * sizeof *s->link);
    if (!s->link || !list_reserve(h, &s->heap, n) || !list_reserve(h, &s->dirty, n) ||
        !list_reserve(h, &s->pending, n) || (h->fluid_rate && !list_reserve(h, &s->tell, n))) {
        ideal_fini(f);
        return gw_fail(err, GW_NOMEM, "transport ideal: no memory for %u links", f->link_count);
    }
    for (uint32_t i = 0; i < f->link_count; i++) {
        s->link[i].cap = ideal_cap(f->link_rate_bps[i], c->efficiency);
        s->link[i].heap_at = GW_NONE;
    }
    return GW_OK;
}

/* Messages travel without headers. */
static uint64_t ideal_wire_bytes(const void *conf, uint64_t payload, uint32_t mtu_bytes,
                                 uint64_t *frames)
{
    (void)conf;
    (void)mtu_bytes;
    *frames = 0;
    return payload;
}

static const struct gw_transport_ops ideal_ops = {
    .level       = GW_TP_FLUID,
    .conf_bytes  = sizeof(struct ideal_conf),
    .fluid_bytes = sizeof(struct ideal),
    .wire_bytes  = ideal_wire_bytes,
    .fluid_init  = ideal_init,
    .fluid_fini  = ideal_fini,
    .fluid_start = ideal_start,
};

static const struct gw_param ideal_params[] = {
    { "efficiency", GW_P_FRACTION, offsetof(struct ideal_conf, efficiency), "100%", "1%", "100%",
      "Fraction of every link's rate that messages may use." },
};

GW_PLUGIN(gw_transport_ideal) = {
    GW_PLUGIN_HEAD(GW_KIND_TRANSPORT, ideal_ops),
    .name    = "ideal",
    .summary = "Fluid max-min fair sharing without headers, losses or delay of convergence.",
    .params  = ideal_params, .param_count = GW_ARRAY_LEN(ideal_params),
    .source  = "Bertsekas, Gallager, Data Networks, 1992, section 6.5.2",
};
