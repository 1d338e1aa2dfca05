/*
 * tree - queue disciplines at one device: making, grafting, removing, and the books
 *
 * The books are kept here from the verdicts, so no discipline can get them wrong: backlog, sent,
 * dropped by reason, for the discipline and, where the kernel does so too, for all above it
 * (qdisc_tree_reduce_backlog). A packet that a discipline throws out while it is being enqueued
 * lowers counters that are raised a moment later; the sums are right when the call returns.
 *
 * `stab` follows tc_calc_size_table of iproute2 6.1 and __qdisc_calculate_pkt_len of Linux 6.1: with
 * a link layer or an mpu, lengths go through a table of 2^cell_log-byte steps; otherwise only the
 * overhead is added. Other than there no length is above GW_PKT_MAX_BYTES.
 */
#include <stdlib.h>

#include "emu/tc/filter.h"
#include "emu/tc/keep.h"
#include "emu/tc/tree.h"

#define AUTO_HANDLE_FIRST UINT32_C(0x80010000)
#define STAB_MTU 2047u
#define STAB_TSIZE 512u
#define WORDS_MAX 256u
#define DEPTH_MAX 64u

/* ---- lengths ------------------------------------------------------------------------------ */

static uint64_t stab_adjust(const struct gw_stab *s, uint64_t size)
{
    if (size < s->mpu)
        size = s->mpu;
    return s->atm ? (size + 47) / 48 * 53 : size;
}

static uint64_t stab_table(const struct gw_stab *s, uint32_t len)
{
    uint32_t mtu = s->mtu ? s->mtu : STAB_MTU, tsize = s->tsize ? s->tsize : STAB_TSIZE;
    int64_t size = (int64_t)len + s->overhead;
    uint32_t log = 0, slot;

    if (!s->atm && !s->mpu)
        return size < 1 ? 1 : (uint32_t)size;
    while (log < 31 && mtu >> log > tsize - 1)
        log++;
    slot = size < 1 ? 0 : (uint32_t)(size - 1) >> log;
    if (slot < tsize)
        return stab_adjust(s, (uint64_t)(slot + 1) << log);
    return stab_adjust(s, (uint64_t)tsize << log) * (slot / tsize) +
           stab_adjust(s, (uint64_t)(slot % tsize + 1) << log);
}

/* At most what a packet may be: a discipline that serves by quanta goes round for each of them. */
static uint32_t stab_length(const struct gw_stab *s, uint32_t len)
{
    uint64_t n = stab_table(s, len);

    return n < GW_PKT_MAX_BYTES ? (uint32_t)n : GW_PKT_MAX_BYTES;
}

uint32_t gw_tree_length(const struct gw_tree *t, uint32_t len_bytes)
{
    return t->stab.set ? stab_length(&t->stab, len_bytes) : len_bytes;
}

/* ---- books -------------------------------------------------------------------------------- */

static enum gw_verdict qdisc_enqueue(struct gw_qdisc *q, struct gw_pkt *p, uint64_t now_ps)
{
    uint32_t len = p->sched_bytes;
    bool busy = q->busy;
    enum gw_verdict v;

    q->drop_reason = GW_DROP_QUEUE_FULL;
    q->busy = true;
    v = q->ops->enqueue(q, p, now_ps);
    q->busy = busy;
    if (v == GW_Q_DROPPED) {
        if (q->drop_reason >= GW_DROP_COUNT)
            q->drop_reason = GW_DROP_QUEUE_FULL;    /* a loaded plugin may say anything        */
        q->dropped_pkts++;
        q->dropped_bytes += len;
        q->drops[q->drop_reason]++;
        if (q->up)
            q->up->drop_reason = q->drop_reason;
        return v;
    }
    q->backlog_bytes += v == GW_Q_TRIMMED ? p->sched_bytes : len;
    q->backlog_pkts++;
    return v;
}

static struct gw_pkt *qdisc_take(struct gw_qdisc *q, uint64_t now_ps)
{
    struct gw_pkt *p = q->peeked;
    bool busy = q->busy;

    if (p) {
        q->peeked = NULL;
        return p;
    }
    q->busy = true;
    p = q->ops->dequeue(q, now_ps);
    q->busy = busy;
    return p;
}

static struct gw_pkt *qdisc_dequeue(struct gw_qdisc *q, uint64_t now_ps)
{
    struct gw_pkt *p = qdisc_take(q, now_ps);

    if (p) {
        q->backlog_bytes -= p->sched_bytes;
        q->backlog_pkts--;
        q->sent_bytes += p->sched_bytes;
        q->sent_pkts += GW_UNLIKELY(p->seg_count > 1) ? p->seg_count : 1;   /* bstats_update() */
    }
    return p;
}

static struct gw_pkt *qdisc_peek(struct gw_qdisc *q, uint64_t now_ps)
{
    if (q->ops->peek)
        return q->ops->peek(q, now_ps);
    if (!q->peeked)
        q->peeked = qdisc_take(q, now_ps);
    return q->peeked;
}

static void qdisc_drop(struct gw_qdisc *q, struct gw_pkt *p, enum gw_drop_reason why)
{
    struct gw_tree *t = q->tree;

    if (why >= GW_DROP_COUNT)
        why = GW_DROP_QUEUE_FULL;
    if (t->purging)
        why = GW_DROP_PURGED;
    q->dropped_bytes += p->sched_bytes;
    q->drops[why]++;
    for (struct gw_qdisc *u = q; u; u = u->up) {
        u->backlog_bytes -= p->sched_bytes;
        u->backlog_pkts--;
        u->dropped_pkts++;
        if (u->up && !u->backlog_pkts && !u->busy && u->up->ops->child_empty) {
            struct gw_qclass *c = u->up->ops->class_find(u->up, u->parent);

            if (c)
                u->up->ops->child_empty(u->up, c);
        }
    }
    if (t->conf.drop)
        t->conf.drop(t->conf.ctx, p, why);
}

static void qdisc_again(struct gw_qdisc *q, struct gw_pkt *p, uint64_t now_ps)
{
    struct gw_tree *t = q->tree;

    if (gw_tree_enqueue(t, p, now_ps) == GW_Q_DROPPED && t->conf.drop)
        t->conf.drop(t->conf.ctx, p, t->root->drop_reason);
}

/* A segment that found no room while others did: the super-packet is not lost as a whole. */
static void segment_lost(struct gw_qdisc *q, struct gw_pkt *p)
{
    struct gw_tree *t = q->tree;

    q->dropped_bytes += p->sched_bytes;
    q->drops[q->drop_reason]++;
    for (struct gw_qdisc *u = q; u; u = u->up)
        u->dropped_pkts++;
    if (t->conf.drop)
        t->conf.drop(t->conf.ctx, p, q->drop_reason);
}

/* What has called enqueue() counts the super-packet when it hears that it is held; here that is
 * corrected to what is held of it (qdisc_tree_reduce_backlog). */
static enum gw_verdict qdisc_segments(struct gw_qdisc *q, struct gw_pkt *p, uint64_t now_ps,
                                      enum gw_verdict (*each)(struct gw_qdisc *q, struct gw_pkt *p,
                                                              uint32_t i, uint64_t now_ps))
{
    uint64_t whole = p->sched_bytes, held = 0;
    uint32_t count = p->seg_count, len;

    for (uint32_t i = 0; i < count; i++) {
        struct gw_pkt *s = q->host->pkt_segment(q->net, p, i);

        if (!s)
            continue;                               /* out of memory: that segment is lost     */
        s->stamp_ps = now_ps;
        len = s->sched_bytes = s->len_bytes;
        q->drop_reason = GW_DROP_QUEUE_FULL;
        if (each(q, s, i, now_ps) != GW_Q_DROPPED) {
            held++;
            for (struct gw_qdisc *u = q; u; u = u->up) {
                u->backlog_pkts++;
                u->backlog_bytes += len;
            }
        } else if (s == p && !held) {
            p->sched_bytes = (uint32_t)whole;       /* as what it is counted by now            */
            return GW_Q_DROPPED;
        } else {
            segment_lost(q, s);
        }
    }
    for (struct gw_qdisc *u = q; u; u = u->up) {
        u->backlog_pkts--;
        u->backlog_bytes -= whole;
    }
    return GW_Q_QUEUED;
}

static uint32_t classify(struct gw_qdisc *q, const struct gw_pkt *p)
{
    return gw_filter_classify(q->tree, q->handle, p);
}

static uint32_t classify_at(struct gw_qdisc *q, uint32_t at, const struct gw_pkt *p)
{
    return gw_filter_classify(q->tree, at, p);
}

static bool has_filters(const struct gw_qdisc *q)
{
    return gw_filter_any(q->tree, q->handle);
}

static void qdisc_kick(struct gw_qdisc *q, uint64_t now_ps)
{
    struct gw_tree *t = q->tree;

    if (t->conf.kick)
        t->conf.kick(t->conf.ctx, now_ps);
}

/* ---- making and freeing ------------------------------------------------------------------- */

static struct gw_qdisc **slot_of(const struct gw_tree *t, uint32_t handle)
{
    return &t->slot[(uint32_t)gw_mix64(handle) & (t->slots - 1)];
}

static bool hash_room(struct gw_tree *t)
{
    uint32_t old = t->slots, slots = old ? 2 * old : 16;
    struct gw_qdisc **from = t->slot, **to;

    if (t->hashed < old)
        return true;
    to = calloc(slots, sizeof *to);
    if (!to)
        return old != 0;                            /* longer chains                           */
    t->slot = to;
    t->slots = slots;
    for (uint32_t i = 0; i < old; i++)
        for (struct gw_qdisc *q = from[i], *next; q; q = next) {
            struct gw_qdisc **at = slot_of(t, q->handle);

            next = q->same_slot;
            q->same_slot = *at;
            *at = q;
        }
    free(from);
    return true;
}

static void unlist(struct gw_tree *t, struct gw_qdisc *q)
{
    struct gw_qdisc **at = t->slot ? slot_of(t, q->handle) : NULL;

    while (at && *at && *at != q)
        at = &(*at)->same_slot;
    if (at && *at) {
        *at = q->same_slot;
        t->hashed--;
    }
    if (q->before)
        q->before->sibling = q->sibling;
    else
        t->all = q->sibling;
    if (q->sibling)
        q->sibling->before = q->before;
    else
        t->newest = q->before;
    if (q->up)
        q->up->below--;
    q->listed = false;
    if (t->touched == q)
        t->touched = q->up && q->up->listed ? q->up : NULL;
}

static bool list(struct gw_tree *t, struct gw_qdisc *q)
{
    struct gw_qdisc **at;

    if (!q->hidden && !hash_room(t))
        return false;
    if (!q->hidden) {
        at = slot_of(t, q->handle);
        q->same_slot = *at;
        *at = q;
        t->hashed++;
    }
    q->sibling = NULL;
    q->before = t->newest;
    if (t->newest)
        t->newest->sibling = q;
    else
        t->all = q;
    t->newest = q;
    if (q->up)
        q->up->below++;
    q->listed = true;
    return true;
}

static void set_up(struct gw_qdisc *q, struct gw_qdisc *up)
{
    if (q->listed && q->up)
        q->up->below--;
    q->up = up;
    if (q->listed && up)
        up->below++;
}

static void bury(struct gw_qdisc *q)
{
    free(q->note);
    free(q->priv);
    free(q->conf);
    free(q);
}

static void qdisc_free(struct gw_qdisc *q);

/* What hangs under @q and was not freed by it. */
static void free_below(struct gw_tree *t, const struct gw_qdisc *q)
{
    struct gw_qdisc *x = t->all;

    while (q->below && x) {
        if (x->up == q) {
            qdisc_free(x);
            x = t->all;
        } else {
            x = x->sibling;
        }
    }
}

static void qdisc_free(struct gw_qdisc *q)
{
    struct gw_tree *t;

    if (!q)
        return;
    t = q->tree;
    if (q->listed) {
        unlist(t, q);
        gw_filter_remove_all(t, q->handle);
        if (q->ops->fini)
            q->ops->fini(q);
    }
    free_below(t, q);
    if (q->net) {                          /* the engine may hold events of its timers         */
        q->sibling = t->dead;
        t->dead = q;
        return;
    }
    bury(q);
}

struct gw_qdisc *gw_tree_make(struct gw_tree *t, const char *kind, const char *where,
                              struct gw_error *err)
{
    const struct gw_entry *e = gw_registry_find(t->conf.registry, GW_KIND_QDISC, kind, where, err);
    const struct gw_qdisc_ops *ops = e ? e->ops : NULL;
    struct gw_qdisc *q = e ? calloc(1, sizeof *q) : NULL;

    if (!e)
        return NULL;
    if (q) {
        q->priv = calloc(1, ops->priv_bytes + 1);
        q->conf = calloc(1, ops->conf_bytes + 1);
    }
    if (!q || !q->priv || !q->conf) {
        gw_fail(err, GW_NOMEM, "out of memory for a queue discipline");
        goto bad;
    }
    q->ops = ops;
    q->host = t->host;
    q->kind = e->plugin->name;
    q->rows = e->plugin->params;
    q->row_count = e->plugin->param_count;
    q->net = t->conf.net;
    q->tree = t;
    q->parent = GW_TC_ROOT;
    q->comp = t->conf.comp;
    q->txqueuelen = t->conf.txqueuelen;
    q->mtu_bytes = t->conf.mtu_bytes;
    q->rate_bps = t->conf.rate_bps;
    q->auto_limit_bytes = t->conf.auto_limit_bytes;
    if (!ops->tc_parse && gw_params_read(q->rows, q->row_count, q->conf, NULL, NULL, kind, NULL,
                                         err) != GW_OK)
        goto bad;
    return q;
bad:
    if (q) {
        free(q->priv);
        free(q->conf);
    }
    free(q);
    return NULL;
}

/* The stream's name says where the discipline stands, not when it was made. */
static void open_stream(struct gw_tree *t, struct gw_qdisc *q)
{
    char name[512];

    if (q->parent == GW_TC_ROOT)
        snprintf(name, sizeof name, "link/%s/qdisc", t->conf.dev);
    else
        snprintf(name, sizeof name, "link/%s/qdisc/%x:%x", t->conf.dev, q->parent >> 16,
                 q->parent & 0xffff);
    gw_rng_open(&q->rng, t->conf.seed, name);
}

enum gw_status gw_tree_init(struct gw_tree *t, struct gw_qdisc *q, struct gw_error *err)
{
    open_stream(t, q);
    if (q->ops->init && q->ops->init(q, err) != GW_OK) {
        qdisc_free(q);
        return err->code;
    }
    if (!list(t, q)) {
        if (q->ops->fini)
            q->ops->fini(q);
        qdisc_free(q);
        return gw_fail(err, GW_NOMEM, "out of memory for a queue discipline");
    }
    return GW_OK;
}

static struct gw_qdisc *qdisc_new(struct gw_qdisc *up, const char *kind, uint32_t classid,
                                  struct gw_error *err)
{
    struct gw_tree *t = up->tree;
    struct gw_qdisc *q = gw_tree_make(t, kind, NULL, err);

    if (!q)
        return NULL;
    q->up = up;
    q->parent = classid;
    q->hidden = true;
    return gw_tree_init(t, q, err) == GW_OK ? q : NULL;
}

static bool below(const struct gw_qdisc *q, const struct gw_qdisc *top)
{
    while (q && q != top)
        q = q->up;
    return q != NULL;
}

static void put_back_peeked(struct gw_qdisc *q)
{
    struct gw_pkt *p = q->peeked;

    q->peeked = NULL;
    if (p)
        qdisc_drop(q, p, GW_DROP_PURGED);
}

/* Empties @q and all below it, leaves first. */
static void empty(struct gw_tree *t, struct gw_qdisc *top, uint64_t now_ps)
{
    t->purging = true;
    for (;;) {
        struct gw_qdisc *deepest = NULL;

        if (!top->below && top->backlog_pkts)
            deepest = top;
        for (struct gw_qdisc *q = top->below ? t->all : NULL; q; q = q->sibling)
            if (q->backlog_pkts && below(q, top) && (!deepest || below(q, deepest)))
                deepest = q;
        if (!deepest)
            break;
        put_back_peeked(deepest);
        if (deepest->backlog_pkts && deepest->ops->reset)
            deepest->ops->reset(deepest, now_ps);
        if (deepest->backlog_pkts)
            break;                                  /* it keeps what nobody can count          */
    }
    t->purging = false;
}

struct gw_tree *gw_tree_new(const struct gw_tree_conf *c, struct gw_error *err)
{
    struct gw_tree *t = calloc(1, sizeof *t);

    if (!t) {
        gw_fail(err, GW_NOMEM, "out of memory for a tree of disciplines");
        return NULL;
    }
    t->conf = *c;
    t->conf.dev = strdup(c->dev);
    t->host = gw_registry_host(c->registry);
    t->next_handle = AUTO_HANDLE_FIRST;
    if (!t->conf.dev) {
        free(t);
        gw_fail(err, GW_NOMEM, "out of memory for a tree of disciplines");
        return NULL;
    }
    gw_tree_host(t->host);
    return t;
}

void gw_tree_free(struct gw_tree *t)
{
    if (!t)
        return;
    t->conf.drop = NULL;
    if (t->root)
        qdisc_free(t->root);
    while (t->all)
        qdisc_free(t->all);
    while (t->dead) {
        struct gw_qdisc *q = t->dead;

        t->dead = q->sibling;
        bury(q);
    }
    gw_filter_free_all(t);
    gw_tree_forget(t);
    free(t->slot);
    free((char *)(uintptr_t)t->conf.dev);
    free(t);
}

void gw_tree_host(struct gw_host *h)
{
    h->qdisc_drop = qdisc_drop;
    h->qdisc_enqueue = qdisc_enqueue;
    h->qdisc_dequeue = qdisc_dequeue;
    h->qdisc_peek = qdisc_peek;
    h->qdisc_again = qdisc_again;
    h->qdisc_new = qdisc_new;
    h->qdisc_free = qdisc_free;
    h->classify = classify;
    h->classify_at = classify_at;
    h->has_filters = has_filters;
    h->qdisc_kick = qdisc_kick;
    h->qdisc_segments = qdisc_segments;
}

/* ---- places ------------------------------------------------------------------------------- */

struct gw_qdisc *gw_tree_find(const struct gw_tree *t, uint32_t handle)
{
    struct gw_qdisc *q = t->slot ? *slot_of(t, handle) : NULL;

    while (q && (q->hidden || q->handle != handle))
        q = q->same_slot;
    return q;
}

struct gw_qdisc *gw_tree_owner(const struct gw_tree *t, uint32_t classid)
{
    return gw_tree_find(t, classid & 0xffff0000);
}

struct gw_qdisc *gw_tree_child(const struct gw_qdisc *owner, uint32_t classid)
{
    struct gw_qclass *c = owner->ops->class_find ?
                          owner->ops->class_find((struct gw_qdisc *)(uintptr_t)owner, classid)
                          : NULL;

    return c ? c->child : NULL;
}

uint32_t gw_tree_auto_handle(struct gw_tree *t)
{
    for (uint32_t i = 0; i < 0x8000; i++) {
        uint32_t h = t->next_handle;

        t->next_handle = h + 0x10000 ? h + 0x10000 : 0x80000000;
        if (!gw_tree_find(t, h))
            return h;
    }
    return 0;
}

static uint32_t depth_of(const struct gw_qdisc *q)
{
    uint32_t n = 0;

    for (; q; q = q->up)
        n++;
    return n;
}

enum gw_status gw_tree_graft(struct gw_tree *t, struct gw_qdisc *q, uint32_t parent,
                             uint64_t now_ps, struct gw_error *err)
{
    struct gw_qdisc *old = NULL, *owner;

    if (parent == GW_TC_ROOT) {
        old = t->root;
        t->root = q;
        set_up(q, NULL);
    } else {
        owner = gw_tree_owner(t, parent);
        if (!owner || !owner->ops->graft)
            return gw_fail(err, GW_PARAM, "%s: there is no class %x:%x to hang a discipline under",
                           t->conf.dev, parent >> 16, parent & 0xffff);
        if (depth_of(owner) >= DEPTH_MAX)
            return gw_fail(err, GW_PARAM, "%s: more than %u disciplines below each other; a tree "
                           "that deep is refused", t->conf.dev, DEPTH_MAX);
        set_up(q, owner);
        old = gw_tree_child(owner, parent);
        if (old)
            empty(t, old, now_ps);
        old = NULL;
        if (owner->ops->graft(owner, parent, q, &old, err) != GW_OK) {
            set_up(q, NULL);
            return err->code;
        }
    }
    q->parent = parent;
    if (old) {
        empty(t, old, now_ps);
        qdisc_free(old);
    }
    return GW_OK;
}

void gw_tree_remove(struct gw_tree *t, struct gw_qdisc *q, uint64_t now_ps)
{
    struct gw_error err = { 0 };
    struct gw_qdisc *put, *old = NULL;

    empty(t, q, now_ps);
    if (!q->up) {
        t->root = NULL;
        memset(&t->stab, 0, sizeof t->stab);
        qdisc_free(q);
        return;
    }
    put = qdisc_new(q->up, "pfifo", q->parent, &err);
    if (!put || q->up->ops->graft(q->up, q->parent, put, &old, &err) != GW_OK)
        return;
    qdisc_free(old);
}

/* ---- words -------------------------------------------------------------------------------- */

static const struct gw_param *row_named(const struct gw_param *rows, uint32_t count,
                                        const char *word, bool *no, uint32_t *index)
{
    for (uint32_t i = 0; i < count; i++) {
        *no = rows[i].type == GW_P_BOOL && !strncmp(word, "no", 2) &&
              !strcmp(word + 2, rows[i].name);
        *index = i;
        if (*no || !strcmp(word, rows[i].name))
            return &rows[i];
    }
    return NULL;
}

/* The word `auto` for a row that takes it (param.h). */
static bool row_auto(const struct gw_param *r, const char *w, void *at)
{
    if (!r->max || strcmp(r->max, "auto") || strcmp(w, "auto"))
        return false;
    if (r->type == GW_P_U32)
        *(uint32_t *)at = UINT32_MAX;
    else
        *(uint64_t *)at = UINT64_MAX;
    return true;
}

/* A number in tc's spelling into the row's field; NULL: done, else what would be right. */
static const char *row_number(const struct gw_param *r, const struct gw_tc_args *a, const char *w,
                              void *at)
{
    uint32_t u;

    switch (r->type) {
    case GW_P_U32:
        return gw_tc_u32(w, at) ? NULL : "a whole number";
    case GW_P_U64:
    case GW_P_BYTES:
        if (!(r->type == GW_P_U64 ? gw_tc_u32(w, &u) : gw_tc_size(w, &u)))
            return r->type == GW_P_U64 ? "a whole number" : "a size such as 64kb";
        *(uint64_t *)at = u;
        return NULL;
    case GW_P_TIME:
        if (!gw_tc_time(a, r->name, w, &u))
            return "a time such as 10ms";
        *(uint64_t *)at = u * GW_PS_PER_US;
        return NULL;
    case GW_P_RATE:
        return gw_tc_rate_bps(w, a->dev_rate_bps, at) ? NULL : "a rate such as 10mbit";
    default:
        if (!gw_tc_percent(w, &u))
            return "a share such as 5%";
        *(double *)at = u / 4294967295.0;
        return NULL;
    }
}

static enum gw_status row_word(const struct gw_param *r, const struct gw_tc_args *a, void *conf,
                               const char *w, struct gw_error *err)
{
    void *at = (char *)conf + r->offset;
    struct gw_error inner = { 0 };
    const char *right;

    if (r->type != GW_P_U32 && r->type != GW_P_U64 && r->type != GW_P_BYTES &&
        r->type != GW_P_TIME && r->type != GW_P_RATE && r->type != GW_P_FRACTION)
        return gw_param_set(r, conf, w, "tc", err);
    if (row_auto(r, w, at))
        return GW_OK;
    right = row_number(r, a, w, at);
    if (right)
        return gw_tc_illegal(err, r->name, w, right);
    return gw_param_bounds(r, conf, w, &inner) == GW_OK ? GW_OK :
           gw_fail(err, GW_SYNTAX, "Illegal \"%s\": %s", r->name, inner.text);
}

static enum gw_status parse_words(const struct gw_qdisc *q, const struct gw_tc_args *a, void *conf,
                             uint64_t *given, struct gw_error *err)
{
    const struct gw_param *rows = a->is_class ? q->ops->class_params : q->rows;
    uint32_t count = a->is_class ? q->ops->class_param_count : q->row_count;

    if (a->is_class && q->ops->tc_class_parse)
        return q->ops->tc_class_parse(a, conf, given, err);
    if (!a->is_class && q->ops->tc_parse)
        return q->ops->tc_parse(a, conf, given, err);
    for (uint32_t i = 0; i < a->count; i++) {
        bool no;
        uint32_t row;
        const struct gw_param *r = row_named(rows, count, a->word[i], &no, &row);

        if (!r)
            return gw_tc_what(err, q->kind, a->word[i]);
        *given |= UINT64_C(1) << row;
        if (r->type == GW_P_BOOL) {
            *(bool *)((char *)conf + r->offset) = !no;
            continue;
        }
        if (++i == a->count)
            return gw_tc_incomplete(err, a->word[i - 1]);
        if (row_word(r, a, conf, a->word[i], err) != GW_OK)
            return err->code;
    }
    return GW_OK;
}

enum gw_status gw_tree_parse(struct gw_qdisc *q, const struct gw_tc_args *a, void *conf,
                             uint64_t *given, struct gw_error *err)
{
    struct gw_tc_args with = *a;
    char note[640] = "";

    if (a->is_class)
        return parse_words(q, a, conf, given, err);
    with.note = note;
    with.note_bytes = sizeof note;
    if (parse_words(q, &with, conf, given, err) != GW_OK)
        return err->code;
    free(q->note);
    q->note = *note ? strdup(note) : NULL;
    return GW_OK;
}

/* ---- from a study ------------------------------------------------------------------------- */

struct words {
    char    *word[WORDS_MAX + 1];
    uint32_t count;
    char    *text;                 /* holds all of them                                        */
    size_t   used, room;
};

static bool words_add(struct words *w, const char *s, size_t n)
{
    if (w->count == WORDS_MAX || w->used + n + 1 > w->room)
        return false;
    w->word[w->count++] = w->text + w->used;
    memcpy(w->text + w->used, s, n);
    w->used += n;
    w->text[w->used++] = 0;
    return true;
}

static bool words_split(struct words *w, const char *s)
{
    bool ok = true;

    while (ok && *(s += strspn(s, " \t"))) {
        size_t n = strcspn(s, " \t");

        ok = words_add(w, s, n);
        s += n;
    }
    return ok;
}

static bool one_of(const char *s, const char *const *list)
{
    for (; list && *list; list++)
        if (!strcmp(s, *list))
            return true;
    return false;
}

static bool on_by_default(const struct gw_qdisc *q, const char *key)
{
    for (uint32_t i = 0; i < q->row_count; i++)
        if (!strcmp(q->rows[i].name, key))
            return q->rows[i].def && !strcmp(q->rows[i].def, "yes");
    return false;
}

/* `{delay: 10ms 2ms, ecn: yes, loss: [..]}` becomes delay 10ms 2ms ecn loss .. ; `ecn: no` becomes
 * noecn where the word is on by default, else nothing. */
static bool map_words(const struct gw_qdisc *q, struct words *w, struct gw_value *map,
                      const char *const *skip)
{
    static const char *const yes[] = { "yes", "true", "on", NULL };
    static const char *const no[] = { "no", "false", "off", NULL };
    char off[64];
    bool ok = true;

    for (struct gw_value *v = map->child; v && ok; v = v->next) {
        if (one_of(v->key, skip))
            continue;
        v->used = true;
        if (v->kind == GW_V_SCALAR && !v->quoted && one_of(v->text, no)) {
            if (on_by_default(q, v->key)) {
                snprintf(off, sizeof off, "no%s", v->key);
                ok = words_add(w, off, strlen(off));
            }
            continue;
        }
        ok = words_add(w, v->key, strlen(v->key));
        if (v->kind == GW_V_SCALAR && (v->quoted || !one_of(v->text, yes)))
            ok = ok && words_split(w, v->text);
        for (struct gw_value *e = v->child; e && ok; e = e->next) {
            e->used = true;
            ok = e->kind == GW_V_SCALAR && words_split(w, e->text);
        }
    }
    return ok;
}

static size_t text_room(const struct gw_value *v)
{
    size_t n = (v->text ? strlen(v->text) : 0) + (v->key ? strlen(v->key) : 0) + 4;

    for (const struct gw_value *c = v->child; c; c = c->next)
        n += text_room(c);
    return n + 64;
}

static enum gw_status read_words(struct gw_tree *t, struct gw_qdisc *q, struct gw_value *map,
                                 const char *const *skip, struct gw_error *err)
{
    struct words *w = calloc(1, sizeof *w);
    struct gw_tc_args a = { .dev_rate_bps = t->conf.rate_bps, .host = t->host,
                            .data_dir = t->conf.data_dir };
    struct gw_error inner = { 0 };
    char where[512];

    gw_value_where(map, where, sizeof where);
    if (w) {
        w->room = 2 * text_room(map);
        w->text = malloc(w->room);
    }
    if (!w || !w->text) {
        free(w);
        return gw_fail(err, GW_NOMEM, "out of memory for a queue discipline");
    }
    if (!map_words(q, w, map, skip)) {
        gw_fail(err, GW_SYNTAX, "%s: qdisc %s: its options are words of tc, single values or lists "
                "of them", where, q->kind);
    } else {
        a.word = w->word;
        a.count = w->count;
        if (gw_tree_parse(q, &a, q->conf, &q->given, &inner) != GW_OK)
            gw_fail(err, inner.code, "%s: %s", where, inner.text);
    }
    free(w->text);
    free(w);
    return err->code;
}

/* Keys that would build a tree are no options of one discipline. */
static enum gw_status no_tree(const struct gw_value *map, struct gw_error *err)
{
    static const char *const key[] = { "parent", "handle", "root", "classid", "class", "classes",
                                       "child", "children", "leaf", "qdisc", "filter", "filters",
                                       NULL };
    char where[512];

    for (const struct gw_value *v = map->child; v; v = v->next)
        if (v->key && one_of(v->key, key))
            return gw_fail(err, GW_PARAM, "%s: `%s`: a map is one discipline at the root of its "
                           "device; trees are built by lines under `tc:`, as in \"qdisc add dev "
                           "wan:a root handle 1: htb default 10\"",
                           gw_value_where(v, where, sizeof where), v->key);
    return GW_OK;
}

enum gw_status gw_tree_set_root(struct gw_tree *t, struct gw_value *map, const char *const *skip,
                                struct gw_error *err)
{
    struct gw_value *kind = gw_value_get(map, "kind");
    struct gw_error inner = { 0 };
    struct gw_qdisc *q;
    char where[512], what[300];

    if (no_tree(map, err) != GW_OK)
        return err->code;
    gw_value_where(kind ? kind : map, where, sizeof where);
    if (!kind || !kind->text)
        return gw_fail(err, GW_PARAM, "%s: a queue discipline needs `kind:`, e.g. {kind: pfifo, "
                       "limit: 100}", where);
    q = gw_tree_make(t, kind->text, where, err);
    if (!q)
        return err->code;
    snprintf(what, sizeof what, "qdisc %s", q->kind);
    if ((q->ops->tc_parse ? read_words(t, q, map, skip, err) :
         gw_params_read(q->rows, q->row_count, q->conf, map, skip, what, &q->given, err)) != GW_OK) {
        qdisc_free(q);
        return err->code;
    }
    q->handle = gw_tree_auto_handle(t);
    if (gw_tree_init(t, q, &inner) != GW_OK)
        return gw_fail(err, inner.code, "%s: %s", where, inner.text);
    return gw_tree_graft(t, q, GW_TC_ROOT, 0, err);
}

/* ---- the packet path ---------------------------------------------------------------------- */

enum gw_verdict gw_tree_enqueue(struct gw_tree *t, struct gw_pkt *p, uint64_t now_ps)
{
    p->stamp_ps = now_ps;
    p->sched_bytes = gw_tree_length(t, p->len_bytes);
    return qdisc_enqueue(t->root, p, now_ps);
}

struct gw_pkt *gw_tree_dequeue(struct gw_tree *t, uint64_t now_ps)
{
    return qdisc_dequeue(t->root, now_ps);
}

uint64_t gw_tree_next_ps(struct gw_tree *t, uint64_t now_ps)
{
    return t->root->backlog_pkts ? t->root->ops->next_ps(t->root, now_ps) : GW_NEVER;
}

/* ---- advice ------------------------------------------------------------------------------- */

struct advice {
    const struct gw_tree *t;
    const struct gw_qdisc *q;
    void (*say)(void *ctx, const char *sentence);
    void *ctx;
};

static void advise_one(void *ctx, const char *sentence)
{
    struct advice *a = ctx;
    char text[1024], place[32] = "";

    if (a->q->parent != GW_TC_ROOT)
        snprintf(place, sizeof place, " at %x:%x", a->q->parent >> 16, a->q->parent & 0xffff);
    snprintf(text, sizeof text, "%s: %s%s: %s", a->t->conf.dev, a->q->kind, place, sentence);
    a->say(a->ctx, text);
}

static void advise_qdisc(const struct gw_tree *t, const struct gw_qdisc *q,
                         void (*say)(void *ctx, const char *sentence), void *ctx)
{
    struct advice a = { t, q, say, ctx };
    char line[400];

    if (q->hidden)                                  /* its parent's doing, and that one says it */
        return;
    for (const char *s = q->note; s && *s; s += strcspn(s, "\n"), s += *s == '\n') {
        snprintf(line, sizeof line, "%.*s", (int)strcspn(s, "\n"), s);
        advise_one(&a, line);
    }
    if (q->ops->advise)
        q->ops->advise(q, advise_one, &a);
}

/* What no single discipline can say. */
static void advise_device(const struct gw_tree *t, void (*say)(void *ctx, const char *sentence),
                          void *ctx)
{
    uint64_t full = t->stab.set ? stab_table(&t->stab, t->conf.mtu_bytes) : 0;
    char text[320];

    if (full > GW_PKT_MAX_BYTES) {
        snprintf(text, sizeof text, "%s: stab: a frame of %u bytes would count as %llu; no frame "
                 "counts as more than %u", t->conf.dev, t->conf.mtu_bytes,
                 (unsigned long long)full, GW_PKT_MAX_BYTES);
        say(ctx, text);
    }
    if (t->ingress) {
        snprintf(text, sizeof text, "%s: %s: it is taken and shown, but no packet passes it; "
                 "impair what comes in at the other end of the link, where it goes out",
                 t->conf.dev, t->ingress);
        say(ctx, text);
    }
}

void gw_tree_advise(const struct gw_tree *t, void (*say)(void *ctx, const char *sentence),
                    void *ctx)
{
    for (const struct gw_qdisc *q = t->all; q; q = q->sibling)
        advise_qdisc(t, q, say, ctx);
    advise_device(t, say, ctx);
}

void gw_tree_advise_touched(const struct gw_tree *t,
                            void (*say)(void *ctx, const char *sentence), void *ctx)
{
    for (const struct gw_qdisc *q = t->touched; q; q = q->up)
        advise_qdisc(t, q, say, ctx);
    advise_device(t, say, ctx);
}
