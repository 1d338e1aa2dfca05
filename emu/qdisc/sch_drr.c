/*
 * sch_drr - deficit round robin over classes that the user adds
 *
 * A packet goes to the class whose id its priority is, else to the one that the filters choose;
 * without either it is dropped, for there is no default class. A class that becomes active joins
 * the end of the round with one quantum. The head of the first class leaves if it fits the deficit,
 * else the class gets a quantum more and goes to the end; so shares are in the ratio of the quanta,
 * whatever the sizes of the packets. The default quantum is a full frame (1514). Linux
 * 6.1.192 raises a quantum below 256 bytes to 256 and cuts one above 1 MiB, 6.1.176 takes any; here
 * any is taken.
 *
 * As in the kernel a child that has packets but lets none go yet holds up the whole round. Follows
 * net/sched/sch_drr.c of Linux 6.1; Shreedhar and Varghese, "Efficient Fair Queuing using Deficit
 * Round Robin", 1996. Left out: filters at classes.
 */
#include <gradwire/gradwire.h>
#include <gradwire/alg/classes.h>
#include <gradwire/alg/shaper.h>

struct drr_class_conf {
    uint32_t quantum;            /* bytes                                                      */
};

struct drr_class {
    struct gw_qclass  c;
    struct drr_class *prev, *next;    /* in the round                                          */
    uint32_t quantum, deficit;        /* bytes                                                 */
    bool     active;                  /* in the round                                          */
};

struct drr {
    struct gw_class_hash hash;
    struct drr_class *first, *last;   /* the round                                             */
};

static struct drr_class *drr_class(struct gw_qclass *c)
{
    return c ? GW_CONTAINER(c, struct drr_class, c) : NULL;
}

static void drr_append(struct drr *d, struct drr_class *x)
{
    x->prev = d->last;
    x->next = NULL;
    if (d->last)
        d->last->next = x;
    else
        d->first = x;
    d->last = x;
    x->active = true;
}

static void drr_unlist(struct drr *d, struct drr_class *x)
{
    if (!x->active)
        return;
    if (x->prev)
        x->prev->next = x->next;
    else
        d->first = x->next;
    if (x->next)
        x->next->prev = x->prev;
    else
        d->last = x->prev;
    x->active = false;
}

static void drr_activate(struct drr *d, struct drr_class *x)
{
    if (x->active)
        return;
    x->deficit = x->quantum;
    drr_append(d, x);
}

static void drr_free_class(struct gw_qdisc *q, struct drr_class *x)
{
    q->host->qdisc_free(x->c.child);
    q->host->release(x);
}

static void drr_fini(struct gw_qdisc *q)
{
    struct drr *d = q->priv;

    for (struct gw_qclass *c = gw_class_walk(&d->hash, NULL), *next; c; c = next) {
        next = gw_class_walk(&d->hash, c);
        drr_free_class(q, drr_class(c));
    }
    q->host->release(d->hash.bucket);
}

/* ---- packets ------------------------------------------------------------------------------ */

static struct drr_class *drr_classify(struct gw_qdisc *q, const struct gw_pkt *p)
{
    struct drr *d = q->priv;
    struct gw_qclass *c = NULL;

    if (q->handle && !((p->priority ^ q->handle) & 0xffff0000))
        c = gw_class_find(&d->hash, p->priority);
    if (!c)
        c = gw_class_find(&d->hash, q->host->classify(q, p));
    return drr_class(c);
}

static enum gw_verdict drr_enqueue(struct gw_qdisc *q, struct gw_pkt *p, uint64_t now_ps)
{
    struct drr_class *x = drr_classify(q, p);
    enum gw_verdict v;

    if (!x) {
        q->drop_reason = GW_DROP_UNCLASSIFIED;
        return GW_Q_DROPPED;
    }
    v = gw_child_enqueue(q, x->c.child, p, now_ps);
    if (v != GW_Q_DROPPED)
        drr_activate(q->priv, x);
    return v;
}

static struct gw_pkt *drr_dequeue(struct gw_qdisc *q, uint64_t now_ps)
{
    struct drr *d = q->priv;
    struct drr_class *x;

    while ((x = d->first)) {
        struct gw_qdisc *child = x->c.child;
        struct gw_pkt *p = q->host->qdisc_peek(child, now_ps);

        if (!p && child->backlog_pkts)
            return NULL;
        if (p && p->sched_bytes > x->deficit) {
            x->deficit += x->quantum;
            drr_unlist(d, x);
            drr_append(d, x);
            continue;
        }
        if (p) {
            x->deficit -= p->sched_bytes;
            p = q->host->qdisc_dequeue(child, now_ps);
        }
        if (!child->backlog_pkts)
            drr_unlist(d, x);
        if (p)
            return p;
    }
    return NULL;
}

static uint64_t drr_next_ps(struct gw_qdisc *q, uint64_t now_ps)
{
    struct drr *d = q->priv;

    return d->first ? gw_child_next_ps(d->first->c.child, now_ps) : GW_NEVER;
}

static void drr_reset(struct gw_qdisc *q, uint64_t now_ps)
{
    struct drr *d = q->priv;

    for (struct gw_qclass *c = gw_class_walk(&d->hash, NULL); c; c = gw_class_walk(&d->hash, c)) {
        gw_child_reset(c->child, now_ps);
        drr_unlist(d, drr_class(c));
    }
}

static void drr_child_empty(struct gw_qdisc *q, struct gw_qclass *c)
{
    drr_unlist(q->priv, drr_class(c));
}

/* There is nothing to change, so a line without words succeeds, as in the kernel. */
static enum gw_status drr_change(struct gw_qdisc *q, const void *conf, uint64_t given,
                                 uint64_t now_ps, struct gw_error *err)
{
    (void)q, (void)conf, (void)given, (void)now_ps, (void)err;
    return GW_OK;
}

/* ---- classes ------------------------------------------------------------------------------ */

static enum gw_status drr_add(struct gw_qdisc *q, uint32_t classid, uint32_t quantum,
                              struct gw_error *err)
{
    struct drr *d = q->priv;
    struct drr_class *x;

    if (!gw_class_hash_room(&d->hash, q->host) || !(x = q->host->alloc(sizeof *x)))
        return gw_fail(err, GW_NOMEM, "drr: no memory for class %x:%x", classid >> 16,
                       classid & 0xffff);
    x->c.id = classid;
    x->quantum = quantum;
    x->c.child = q->host->qdisc_new(q, "pfifo", classid, err);
    if (!x->c.child) {
        q->host->release(x);
        return err ? err->code : GW_NOMEM;
    }
    gw_class_insert(&d->hash, &x->c);
    gw_class_hash_grow(&d->hash, q->host);
    return GW_OK;
}

static enum gw_status drr_class_change(struct gw_qdisc *q, uint32_t classid, uint32_t parent,
                                       const void *conf, uint64_t given, uint64_t now_ps,
                                       struct gw_error *err)
{
    const struct drr_class_conf *c = conf;
    struct drr *d = q->priv;
    struct drr_class *x = classid ? drr_class(gw_class_find(&d->hash, classid)) : NULL;

    (void)parent;
    (void)now_ps;
    if (given & 1 && !c->quantum)
        return gw_fail(err, GW_PARAM, "drr: quantum 0 of class %x:%x: it cannot be zero; 1514 "
                       "gives a full frame a turn", classid >> 16, classid & 0xffff);
    if (!x && classid && (classid ^ q->handle) & 0xffff0000)
        return gw_fail(err, GW_PARAM, "drr: %x:%x cannot be a class of %x:", classid >> 16,
                       classid & 0xffff, q->handle >> 16);
    if (!x)
        return drr_add(q, classid, given & 1 ? c->quantum : q->mtu_bytes, err);
    if (given & 1)
        x->quantum = c->quantum;
    return GW_OK;
}

static enum gw_status drr_class_delete(struct gw_qdisc *q, uint32_t classid, uint64_t now_ps,
                                       struct gw_error *err)
{
    struct drr *d = q->priv;
    struct drr_class *x = drr_class(gw_class_find(&d->hash, classid));

    if (!x)
        return gw_fail(err, GW_PARAM, "drr: there is no class %x:%x", classid >> 16,
                       classid & 0xffff);
    gw_child_reset(x->c.child, now_ps);
    drr_unlist(d, x);
    gw_class_remove(&d->hash, &x->c);
    drr_free_class(q, x);
    return GW_OK;
}

static struct gw_qclass *drr_class_find(struct gw_qdisc *q, uint32_t classid)
{
    return gw_class_find(&((struct drr *)q->priv)->hash, classid);
}

static struct gw_qclass *drr_class_walk(struct gw_qdisc *q, struct gw_qclass *after)
{
    return gw_class_walk(&((struct drr *)q->priv)->hash, after);
}

static enum gw_status drr_graft(struct gw_qdisc *q, uint32_t classid, struct gw_qdisc *child,
                                struct gw_qdisc **old, struct gw_error *err)
{
    struct drr *d = q->priv;
    struct drr_class *x = drr_class(gw_class_find(&d->hash, classid));

    if (!x)
        return gw_fail(err, GW_PARAM, "drr: there is no class %x:%x", classid >> 16,
                       classid & 0xffff);
    drr_unlist(d, x);
    *old = x->c.child;
    x->c.child = child;
    if (child->backlog_pkts)
        drr_activate(d, x);
    return GW_OK;
}

/* ---- words -------------------------------------------------------------------------------- */

static enum gw_status drr_tc_parse(const struct gw_tc_args *a, void *conf, uint64_t *given,
                                   struct gw_error *err)
{
    (void)conf;
    (void)given;
    return a->count ? gw_tc_what(err, "drr", a->word[0]) : GW_OK;
}

static enum gw_status drr_tc_class_parse(const struct gw_tc_args *a, void *conf, uint64_t *given,
                                         struct gw_error *err)
{
    struct drr_class_conf *c = conf;

    for (uint32_t i = 0; i < a->count; i++) {
        if (strcmp(a->word[i], "quantum"))
            return gw_tc_what(err, "drr", a->word[i]);
        if (++i == a->count)
            return gw_tc_incomplete(err, "quantum");
        if (!gw_tc_size(a->word[i], &c->quantum))
            return gw_tc_illegal(err, "quantum", a->word[i], "a size such as 1514");
        *given |= 1;
    }
    return GW_OK;
}

static void drr_tc_show(const struct gw_qdisc *q, struct gw_tc_out *o)
{
    (void)q;
    (void)o;
}

static void drr_tc_show_class(const struct gw_qdisc *q, const struct gw_qclass *c,
                              struct gw_tc_out *o)
{
    const struct drr_class *x = GW_CONTAINER(c, const struct drr_class, c);

    (void)q;
    gw_tc_show_size(o, "quantum", "quantum %s ", x->quantum);
}

static void drr_tc_show_class_stats(const struct gw_qdisc *q, const struct gw_qclass *c,
                                    struct gw_tc_out *o)
{
    const struct drr_class *x = GW_CONTAINER(c, const struct drr_class, c);

    (void)q;
    gw_tc_show_size(o, "deficit", " deficit %s ", x->active ? x->deficit : 0);
}

static uint32_t drr_class_of(struct gw_qdisc *q, const struct gw_pkt *p)
{
    const struct drr_class *x = drr_classify(q, p);

    return x ? x->c.id : 0;
}

static void drr_advise(const struct gw_qdisc *q, void (*say)(void *ctx, const char *sentence),
                       void *ctx)
{
    const struct drr *d = q->priv;

    if (!q->net)                                  /* a scratch device: the line may come yet   */
        return;
    if (!gw_class_walk(&d->hash, NULL))
        say(ctx, "it has no classes, so every frame is dropped (unclassified); add a class and a "
            "filter that leads to it");
    else if (!q->host->has_filters(q))
        say(ctx, "no filter leads to its classes, so every frame whose priority is no class of it "
            "is dropped (unclassified)");
}

static const struct gw_param drr_class_params[] = {
    { "quantum", GW_P_WORDS, 0, "1514", NULL, NULL,
      "Bytes that the class may send in a turn; shares are in the ratio of the quanta." },
};

static const struct gw_qdisc_ops drr_ops = {
    .priv_bytes = sizeof(struct drr),
    .fini       = drr_fini,
    .enqueue    = drr_enqueue,
    .dequeue    = drr_dequeue,
    .next_ps    = drr_next_ps,
    .change     = drr_change,
    .reset      = drr_reset,
    .class_conf_bytes   = sizeof(struct drr_class_conf),
    .class_params       = drr_class_params,
    .class_param_count  = GW_ARRAY_LEN(drr_class_params),
    .class_change = drr_class_change,
    .class_delete = drr_class_delete,
    .class_find   = drr_class_find,
    .class_walk   = drr_class_walk,
    .graft        = drr_graft,
    .child_empty  = drr_child_empty,
    .tc_parse       = drr_tc_parse,
    .tc_class_parse = drr_tc_class_parse,
    .tc_show        = drr_tc_show,
    .tc_show_class  = drr_tc_show_class,
    .tc_show_class_stats = drr_tc_show_class_stats,
    .advise         = drr_advise,
    .class_of       = drr_class_of,
    .in_hindsight = true,
};

GW_PLUGIN(gw_qdisc_drr) = {
    GW_PLUGIN_HEAD(GW_KIND_QDISC, drr_ops),
    .name    = "drr",
    .summary = "Deficit round robin over classes; what no class takes is dropped.",
    .source  = "Linux 6.1 net/sched/sch_drr.c",
};
