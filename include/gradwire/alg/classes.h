/*
 * alg/classes.h - what classful disciplines share: looking at children, and the hash of classes
 *
 * The hash is the kernel's (qdisc_class_hash of Linux 6.1), with its growth and its order, because
 * `tc class show` lists classes in this order. Buckets are chained through gw_qclass.next.
 */
#ifndef GRADWIRE_ALG_CLASSES_H
#define GRADWIRE_ALG_CLASSES_H

#include <gradwire/plugin.h>

/* When @child, which has just answered NULL, should be asked again. */
static inline uint64_t gw_child_next_ps(struct gw_qdisc *child, uint64_t now_ps)
{
    if (!child || !child->backlog_pkts || !child->ops->next_ps)
        return GW_NEVER;
    return child->ops->next_ps(child, now_ps);
}

/* Throws out everything that @child holds. */
static inline void gw_child_reset(struct gw_qdisc *child, uint64_t now_ps)
{
    struct gw_pkt *p;

    if (!child)
        return;
    p = child->peeked;
    child->peeked = NULL;
    if (p)
        child->host->qdisc_drop(child, p, GW_DROP_PURGED);
    if (child->ops->reset)
        child->ops->reset(child, now_ps);
}

/* Gives @p to @child, a child of @q; a drop's reason is handed up. */
static inline enum gw_verdict gw_child_enqueue(struct gw_qdisc *q, struct gw_qdisc *child,
                                               struct gw_pkt *p, uint64_t now_ps)
{
    enum gw_verdict v = q->host->qdisc_enqueue(child, p, now_ps);

    if (v == GW_Q_DROPPED)
        q->drop_reason = child->drop_reason;
    return v;
}

/*
 * Sets the row `limit` of @child, if it has one and can be changed; UINT64_MAX: auto, where the row
 * knows it. @limit is in whatever the child counts.
 */
static inline enum gw_status gw_child_limit(struct gw_qdisc *child, uint64_t limit, uint64_t now_ps,
                                            struct gw_error *err)
{
    uint64_t conf[8] = { 0 };
    uint32_t narrow = limit > UINT32_MAX ? UINT32_MAX : (uint32_t)limit;

    if (!child->ops->change || child->ops->conf_bytes > sizeof conf)
        return GW_OK;
    for (uint32_t i = 0; i < child->row_count; i++) {
        const struct gw_param *r = &child->rows[i];

        if (strcmp(r->name, "limit"))
            continue;
        if (r->type == GW_P_U32)
            memcpy((char *)conf + r->offset, &narrow, sizeof narrow);
        else
            memcpy((char *)conf + r->offset, &limit, sizeof limit);
        return child->ops->change(child, conf, UINT64_C(1) << i, now_ps, err);
    }
    return GW_OK;
}

struct gw_class_hash {
    struct gw_qclass **bucket;   /* a power of two of them; NULL: empty hash                   */
    uint32_t size, count;
};

static inline uint32_t gw_class_hash_of(uint32_t id, uint32_t size)
{
    id ^= id >> 8;
    id ^= id >> 4;
    return id & (size - 1);
}

static inline struct gw_qclass *gw_class_find(const struct gw_class_hash *h, uint32_t id)
{
    struct gw_qclass *c = h->bucket ? h->bucket[gw_class_hash_of(id, h->size)] : NULL;

    while (c && c->id != id)
        c = c->next;
    return c;
}

/* Makes room for one more class; false: out of memory. */
static inline bool gw_class_hash_room(struct gw_class_hash *h, const struct gw_host *host)
{
    if (!h->bucket) {
        h->bucket = host->alloc(4 * sizeof(*h->bucket));
        h->size = 4;
    }
    return h->bucket != NULL;
}

static inline void gw_class_insert(struct gw_class_hash *h, struct gw_qclass *c)
{
    struct gw_qclass **b = &h->bucket[gw_class_hash_of(c->id, h->size)];

    c->next = *b;
    *b = c;
    h->count++;
}

/* After an insertion: doubles above a load of 3/4; stays as it is when memory lacks. */
static inline void gw_class_hash_grow(struct gw_class_hash *h, const struct gw_host *host)
{
    struct gw_class_hash n = { .size = h->size * 2 };

    if (h->count * 4 <= h->size * 3 || !(n.bucket = host->alloc(n.size * sizeof(*n.bucket))))
        return;
    for (uint32_t i = 0; i < h->size; i++)
        for (struct gw_qclass *c = h->bucket[i], *next; c; c = next) {
            next = c->next;
            gw_class_insert(&n, c);
        }
    host->release(h->bucket);
    *h = n;
}

static inline void gw_class_remove(struct gw_class_hash *h, struct gw_qclass *c)
{
    struct gw_qclass **b = &h->bucket[gw_class_hash_of(c->id, h->size)];

    while (*b != c)
        b = &(*b)->next;
    *b = c->next;
    h->count--;
}

/* The class behind @after, NULL: the first one. */
static inline struct gw_qclass *gw_class_walk(const struct gw_class_hash *h,
                                              const struct gw_qclass *after)
{
    uint32_t i = 0;

    if (after && after->next)
        return after->next;
    if (after)
        i = gw_class_hash_of(after->id, h->size) + 1;
    for (; h->bucket && i < h->size; i++)
        if (h->bucket[i])
            return h->bucket[i];
    return NULL;
}

#endif
