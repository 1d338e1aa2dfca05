/*
 * alg/bands.h - up to 16 bands, each with a child: strict ones first, then a deficit round robin
 *
 * What prio, ets and the switch scheduler spq_dwrr share. Strict bands are served in their order
 * while they hold anything; the others share what is left by quanta (Shreedhar and Varghese,
 * "Efficient Fair Queuing using Deficit Round Robin", 1996, in the form of Linux's drr and ets: a
 * band that becomes active starts with one quantum at the end of the round, and a band whose head
 * does not fit its deficit gets a quantum more and goes to the end). Class i + 1 is band i.
 */
#ifndef GRADWIRE_ALG_BANDS_H
#define GRADWIRE_ALG_BANDS_H

#include <gradwire/alg/classes.h>

#define GW_BANDS_MAX 16u
#define GW_PRIO_MAX 15u

struct gw_band {
    struct gw_qclass c;
    struct gw_band  *prev, *next;     /* in the round                                          */
    uint32_t quantum, deficit;        /* bytes                                                 */
    bool     listed;                  /* in the round                                          */
};

struct gw_bands {
    struct gw_band  band[GW_BANDS_MAX];
    struct gw_band *first, *last;     /* the round                                             */
    uint32_t count, strict;
};

static inline void gw_bands_append(struct gw_bands *b, struct gw_band *x)
{
    x->prev = b->last;
    x->next = NULL;
    if (b->last)
        b->last->next = x;
    else
        b->first = x;
    b->last = x;
    x->listed = true;
}

static inline void gw_bands_unlist(struct gw_bands *b, struct gw_band *x)
{
    if (!x->listed)
        return;
    if (x->prev)
        x->prev->next = x->next;
    else
        b->first = x->next;
    if (x->next)
        x->next->prev = x->prev;
    else
        b->last = x->prev;
    x->listed = false;
}

/* Takes part in the round from now on, if it is not there and not strict. */
static inline void gw_bands_activate(struct gw_bands *b, struct gw_band *x)
{
    if (x->listed || (uint32_t)(x - b->band) < b->strict)
        return;
    x->deficit = x->quantum;
    gw_bands_append(b, x);
}

static inline enum gw_verdict gw_bands_enqueue(struct gw_qdisc *q, struct gw_bands *b, uint32_t i,
                                               struct gw_pkt *p, uint64_t now_ps)
{
    struct gw_band *x = &b->band[i];
    enum gw_verdict v = gw_child_enqueue(q, x->c.child, p, now_ps);

    if (v != GW_Q_DROPPED)
        gw_bands_activate(b, x);
    return v;
}

static inline struct gw_pkt *gw_bands_round(struct gw_qdisc *q, struct gw_bands *b,
                                            uint64_t now_ps)
{
    struct gw_band *x;

    while ((x = b->first)) {
        struct gw_qdisc *child = x->c.child;
        struct gw_pkt *p = q->host->qdisc_peek(child, now_ps);

        if (!p && child->backlog_pkts)
            return NULL;              /* not due yet: as in the kernel the round waits for it  */
        if (p && p->sched_bytes > x->deficit) {
            x->deficit += x->quantum;
            gw_bands_unlist(b, x);
            gw_bands_append(b, x);
            continue;
        }
        if (p) {
            x->deficit -= p->sched_bytes;
            p = q->host->qdisc_dequeue(child, now_ps);
        }
        if (!child->backlog_pkts)
            gw_bands_unlist(b, x);
        if (p)
            return p;
    }
    return NULL;
}

static inline struct gw_pkt *gw_bands_dequeue(struct gw_qdisc *q, struct gw_bands *b,
                                              uint64_t now_ps)
{
    for (uint32_t i = 0; i < b->strict; i++) {
        struct gw_qdisc *child = b->band[i].c.child;
        struct gw_pkt *p = child->backlog_pkts ? q->host->qdisc_dequeue(child, now_ps) : NULL;

        if (p)
            return p;
    }
    return gw_bands_round(q, b, now_ps);
}

static inline uint64_t gw_bands_next_ps(struct gw_bands *b, uint64_t now_ps)
{
    uint64_t at = b->first ? gw_child_next_ps(b->first->c.child, now_ps) : GW_NEVER;

    for (uint32_t i = 0; i < b->strict; i++) {
        uint64_t t = gw_child_next_ps(b->band[i].c.child, now_ps);

        at = t < at ? t : at;
    }
    return at;
}

static inline struct gw_qclass *gw_bands_at(const struct gw_qdisc *q, struct gw_bands *b,
                                            uint32_t i)
{
    if (i >= b->count)
        return NULL;
    b->band[i].c.id = (q->handle & 0xffff0000) | (i + 1);
    return &b->band[i].c;
}

static inline struct gw_qclass *gw_bands_find(const struct gw_qdisc *q, struct gw_bands *b,
                                              uint32_t classid)
{
    return gw_bands_at(q, b, (classid & 0xffff) - 1);
}

static inline struct gw_qclass *gw_bands_walk(const struct gw_qdisc *q, struct gw_bands *b,
                                              const struct gw_qclass *after)
{
    return gw_bands_at(q, b, after ? (after->id & 0xffff) : 0);
}

static inline enum gw_status gw_bands_graft(struct gw_qdisc *q, struct gw_bands *b,
                                            uint32_t classid, struct gw_qdisc *child,
                                            struct gw_qdisc **old, struct gw_error *err)
{
    struct gw_qclass *c = gw_bands_find(q, b, classid);
    struct gw_band *x;

    if (!c)
        return gw_fail(err, GW_PARAM, "%s: there is no class %x:%x; its classes are 1 to %x",
                       q->kind, classid >> 16, classid & 0xffff, b->count);
    x = GW_CONTAINER(c, struct gw_band, c);
    gw_bands_unlist(b, x);
    *old = c->child;
    c->child = child;
    if (child->backlog_pkts)
        gw_bands_activate(b, x);
    return GW_OK;
}

static inline void gw_bands_reset(struct gw_bands *b, uint64_t now_ps)
{
    for (uint32_t i = 0; i < b->count; i++) {
        gw_child_reset(b->band[i].c.child, now_ps);
        gw_bands_unlist(b, &b->band[i]);
        b->band[i].deficit = 0;
    }
}

static inline void gw_bands_free(struct gw_qdisc *q, struct gw_bands *b)
{
    for (uint32_t i = 0; i < b->count; i++)
        q->host->qdisc_free(b->band[i].c.child);
    b->count = 0;
}

static inline enum gw_status gw_bands_children(struct gw_qdisc *q, const char *kind,
                                               struct gw_qdisc **child, uint32_t from, uint32_t to,
                                               struct gw_error *err)
{
    for (uint32_t i = from; i < to; i++) {
        child[i] = q->host->qdisc_new(q, kind, (q->handle & 0xffff0000) | (i + 1), err);
        if (child[i])
            continue;
        while (i-- > from)
            q->host->qdisc_free(child[i]);
        return gw_fail(err, GW_NOMEM, "%s: no memory for its bands", q->kind);
    }
    return GW_OK;
}

/*
 * gw_bands_set() - @count bands, @strict of them strict, the rest with @quantum (one for each band)
 *
 * New bands get a hidden child of @kind; bands that vanish are emptied. On failure nothing has
 * changed.
 */
static inline enum gw_status gw_bands_set(struct gw_qdisc *q, struct gw_bands *b, const char *kind,
                                          uint32_t count, uint32_t strict, const uint32_t *quantum,
                                          uint64_t now_ps, struct gw_error *err)
{
    struct gw_qdisc *child[GW_BANDS_MAX] = { NULL };
    uint32_t old = b->count;

    if (gw_bands_children(q, kind, child, old, count, err) != GW_OK)
        return err ? err->code : GW_NOMEM;
    for (uint32_t i = count; i < old; i++) {
        gw_child_reset(b->band[i].c.child, now_ps);
        gw_bands_unlist(b, &b->band[i]);
        q->host->qdisc_free(b->band[i].c.child);
        b->band[i].c.child = NULL;
    }
    for (uint32_t i = old; i < count; i++)
        b->band[i] = (struct gw_band){ .c.child = child[i] };
    b->count = count;
    b->strict = strict;
    for (uint32_t i = 0; i < count; i++) {
        b->band[i].quantum = quantum ? quantum[i] : 0;
        if (i < strict)
            gw_bands_unlist(b, &b->band[i]);
        else if (b->band[i].c.child->backlog_pkts)
            gw_bands_activate(b, &b->band[i]);
    }
    return GW_OK;
}

/*
 * Band of @p as prio and ets choose it: a priority that is a class id of this discipline, else its
 * filters, else @map by the priority (class ids of others count as 0).
 */
static inline uint32_t gw_bands_classify(struct gw_qdisc *q, const struct gw_bands *b,
                                         const uint8_t map[GW_PRIO_MAX + 1],
                                         const struct gw_pkt *p)
{
    uint32_t id = p->priority;

    if (!q->handle || (id & 0xffff0000) != q->handle) {
        uint32_t res = q->host->classify(q, p);

        if (!res)
            return map[id & 0xffff0000 ? 0 : id & GW_PRIO_MAX];
        id = res;
    }
    id = (id & 0xffff) - 1;
    return id < b->count ? id : map[0];
}

/* The class of that band, for the op class_of. */
static inline uint32_t gw_bands_class(const struct gw_qdisc *q, uint32_t band)
{
    return (q->handle & 0xffff0000) | (band + 1);
}

/* "priomap 1 2 2 .." in text, an array in JSON; no blank before or behind. */
static inline void gw_bands_show_list(struct gw_tc_out *o, const char *key, const char *head,
                                      const char *each, const uint32_t *v, uint32_t n)
{
    if (o->json)
        o->open(o, key, true);
    else
        o->str(o, NULL, "%s", head);
    for (uint32_t i = 0; i < n; i++)
        o->u64(o, o->json ? "" : NULL, o->json ? NULL : each, v[i]);
    if (o->json)
        o->close(o, true);
}

static inline void gw_bands_show_map(struct gw_tc_out *o, const uint8_t map[GW_PRIO_MAX + 1])
{
    uint32_t v[GW_PRIO_MAX + 1];

    for (uint32_t i = 0; i <= GW_PRIO_MAX; i++)
        v[i] = map[i];
    gw_bands_show_list(o, "priomap", "priomap", " %llu", v, GW_PRIO_MAX + 1);
}

#endif
