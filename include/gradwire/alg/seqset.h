/*
 * alg/seqset.h - a sorted set of ranges of a byte stream, for reassembly and scoreboards
 *
 * Ranges are nodes of one doubly linked list in stream order, kept in an array that grows by
 * doubling and is reused, so that the packet path allocates only when a flow has more holes than
 * ever before. Searching starts at the nearest of a few fingers (head, tail and the last places
 * touched): arrivals come in runs - retransmissions at the low end, new data at the high end - so
 * a step or two suffices where a tree would pay for its depth. The worst case, jumps all over a
 * large set, walks; it stays correct.
 *
 * Each node also carries links of one queue at a time (struct gw_seq_queue), by which a sender
 * orders its holes, its lost ranges and its retransmissions by time.
 */
#ifndef GRADWIRE_ALG_SEQSET_H
#define GRADWIRE_ALG_SEQSET_H

#include <gradwire/base.h>

#define GW_SEQ_NIL UINT32_MAX
#define GW_SEQ_FINGERS 3u

struct gw_seq_node {
    uint64_t start, end;             /* [start, end), never empty                              */
    uint64_t stamp_ps;               /* the user's: when it was sent                           */
    uint32_t prev, next;             /* in stream order                                        */
    uint32_t qprev, qnext;           /* in the queue that holds it                             */
    uint8_t  state;                  /* the user's                                             */
    bool     resent;                 /* the user's: was retransmitted at least once            */
};

struct gw_seqset {
    struct gw_seq_node *node;        /* owner: the set; freed by gw_seqset_fini                */
    uint32_t cap, free;              /* free: first unused node, chained by next               */
    uint32_t head, tail, count;
    uint32_t finger[GW_SEQ_FINGERS]; /* places touched lately, or GW_SEQ_NIL                   */
    uint32_t turn;                   /* finger to be replaced next                             */
};

struct gw_seq_queue {
    uint32_t head, tail;
};

static inline void gw_seqset_init(struct gw_seqset *s)
{
    memset(s, 0, sizeof *s);
    s->free = s->head = s->tail = GW_SEQ_NIL;
    for (uint32_t i = 0; i < GW_SEQ_FINGERS; i++)
        s->finger[i] = GW_SEQ_NIL;
}

static inline void gw_seqset_fini(struct gw_seqset *s, void (*release)(void *p))
{
    if (s->node)
        release(s->node);
    gw_seqset_init(s);
}

/* Makes room for @n more nodes by @resize (as realloc). False when out of memory: set unchanged. */
static inline bool gw_seqset_reserve(struct gw_seqset *s, uint32_t n,
                                     void *(*resize)(void *p, size_t bytes))
{
    struct gw_seq_node *node;
    uint32_t cap;

    if (GW_LIKELY(s->cap - s->count >= n))
        return true;
    cap = s->cap ? s->cap * 2 : 16;
    while (cap - s->count < n)
        cap *= 2;
    node = resize(s->node, cap * sizeof *node);
    if (!node)
        return false;
    for (uint32_t i = cap; i-- > s->cap;) {
        memset(&node[i], 0, sizeof node[i]);
        node[i].next = s->free;
        s->free = i;
    }
    s->node = node;
    s->cap = cap;
    return true;
}

/* A new node [start, end) behind node @at (GW_SEQ_NIL: in front of all). Room must be reserved. */
static inline uint32_t gw_seqset_insert(struct gw_seqset *s, uint32_t at, uint64_t start,
                                        uint64_t end)
{
    uint32_t i = s->free, next = at == GW_SEQ_NIL ? s->head : s->node[at].next;
    struct gw_seq_node *n = &s->node[i];

    s->free = n->next;
    *n = (struct gw_seq_node){ .start = start, .end = end, .prev = at, .next = next,
                               .qprev = GW_SEQ_NIL, .qnext = GW_SEQ_NIL };
    if (at == GW_SEQ_NIL)
        s->head = i;
    else
        s->node[at].next = i;
    if (next == GW_SEQ_NIL)
        s->tail = i;
    else
        s->node[next].prev = i;
    s->count++;
    return i;
}

/* Takes node @i out; it must be in no queue. */
static inline void gw_seqset_remove(struct gw_seqset *s, uint32_t i)
{
    struct gw_seq_node *n = &s->node[i];
    uint32_t prev = n->prev, next = n->next;

    if (prev == GW_SEQ_NIL)
        s->head = next;
    else
        s->node[prev].next = next;
    if (next == GW_SEQ_NIL)
        s->tail = prev;
    else
        s->node[next].prev = prev;
    for (uint32_t f = 0; f < GW_SEQ_FINGERS; f++)
        if (s->finger[f] == i)
            s->finger[f] = next != GW_SEQ_NIL ? next : prev;
    n->next = s->free;
    s->free = i;
    s->count--;
}

/* Cuts node @i at @x (inside it): @i keeps [start, x), the answer is a copy with [x, end) that is
 * in no queue. Room must be reserved. */
static inline uint32_t gw_seqset_split(struct gw_seqset *s, uint32_t i, uint64_t x)
{
    uint32_t j = gw_seqset_insert(s, i, x, s->node[i].end);

    s->node[j].stamp_ps = s->node[i].stamp_ps;
    s->node[j].state = s->node[i].state;
    s->node[j].resent = s->node[i].resent;
    s->node[i].end = x;
    return j;
}

/* The first node that ends behind @x, or GW_SEQ_NIL. */
static inline uint32_t gw_seqset_find(struct gw_seqset *s, uint64_t x)
{
    uint32_t best = s->head, cand[GW_SEQ_FINGERS + 1];
    uint64_t far;

    if (best == GW_SEQ_NIL || s->node[s->tail].end <= x)
        return GW_SEQ_NIL;
    far = x > s->node[best].start ? x - s->node[best].start : 0;
    cand[0] = s->tail;
    memcpy(cand + 1, s->finger, sizeof s->finger);
    for (uint32_t f = 0; f < GW_ARRAY_LEN(cand); f++) {
        uint64_t at, d;

        if (cand[f] == GW_SEQ_NIL)
            continue;
        at = s->node[cand[f]].start;
        d = at > x ? at - x : x - at;
        if (d < far) {
            far = d;
            best = cand[f];
        }
    }
    while (s->node[best].end <= x)
        best = s->node[best].next;
    while (s->node[best].prev != GW_SEQ_NIL && s->node[s->node[best].prev].end > x)
        best = s->node[best].prev;
    return best;
}

/* Remembers node @i as a place to start searching from. */
static inline void gw_seqset_touch(struct gw_seqset *s, uint32_t i)
{
    for (uint32_t f = 0; f < GW_SEQ_FINGERS; f++)
        if (s->finger[f] == i)
            return;
    s->finger[s->turn] = i;
    s->turn = (s->turn + 1) % GW_SEQ_FINGERS;
}

/* Adds [start, end) to a set of plain ranges, joining what touches. Returns the node that now holds
 * it. Room for one must be reserved. */
static inline uint32_t gw_seqset_add(struct gw_seqset *s, uint64_t start, uint64_t end)
{
    uint32_t i = gw_seqset_find(s, start ? start - 1 : 0), j;
    struct gw_seq_node *n;

    if (i == GW_SEQ_NIL || s->node[i].start > end) {
        i = gw_seqset_insert(s, i == GW_SEQ_NIL ? s->tail : s->node[i].prev, start, end);
        gw_seqset_touch(s, i);
        return i;
    }
    n = &s->node[i];
    if (start < n->start)
        n->start = start;
    if (end > n->end)
        n->end = end;
    while ((j = n->next) != GW_SEQ_NIL && s->node[j].start <= n->end) {
        if (s->node[j].end > n->end)
            n->end = s->node[j].end;
        gw_seqset_remove(s, j);
    }
    gw_seqset_touch(s, i);
    return i;
}

/* ---- queues of nodes: each node is in at most one ------------------------------------------- */

static inline void gw_seq_queue_init(struct gw_seq_queue *q)
{
    q->head = q->tail = GW_SEQ_NIL;
}

/* Puts node @i behind @at; GW_SEQ_NIL: at the head. */
static inline void gw_seq_queue_insert(struct gw_seqset *s, struct gw_seq_queue *q, uint32_t at,
                                       uint32_t i)
{
    uint32_t next = at == GW_SEQ_NIL ? q->head : s->node[at].qnext;

    s->node[i].qprev = at;
    s->node[i].qnext = next;
    if (at == GW_SEQ_NIL)
        q->head = i;
    else
        s->node[at].qnext = i;
    if (next == GW_SEQ_NIL)
        q->tail = i;
    else
        s->node[next].qprev = i;
}

static inline void gw_seq_queue_remove(struct gw_seqset *s, struct gw_seq_queue *q, uint32_t i)
{
    uint32_t prev = s->node[i].qprev, next = s->node[i].qnext;

    if (prev == GW_SEQ_NIL)
        q->head = next;
    else
        s->node[prev].qnext = next;
    if (next == GW_SEQ_NIL)
        q->tail = prev;
    else
        s->node[next].qprev = prev;
    s->node[i].qprev = s->node[i].qnext = GW_SEQ_NIL;
}

#endif
