/*
 * show - what `tc qdisc show` and `tc class show` print
 *
 * The frame around each discipline's own words: kind, handle, place, options, size table (-d),
 * books (-s). Disciplines come in the kernel's order, root first, then by its hash of handles;
 * classes in the order of the discipline's walk. A device without a root shows noqueue. A
 * discipline without its own tc_show shows its option rows in order.
 *
 * A finished run keeps what is printed here, in the forms that -s, -d and -j make; -p is made from
 * the JSON. Such a device shows what was kept.
 */
#include <stdlib.h>

#include "emu/tc/keep.h"
#include "emu/tc/run.h"

struct wanted {                  /* what the words of show ask for                             */
    const char *dev;
    uint32_t    parent, handle, classid;     /* 0: all                                         */
    bool        invisible, root;
};

/* ---- options by rows ------------------------------------------------------------------------ */

static void show_u64(struct gw_tc_out *o, const struct gw_param *row, uint64_t v,
                     uint64_t automatic)
{
    bool word = v == automatic && row->max && !strcmp(row->max, "auto");
    char fmt[80];

    snprintf(fmt, sizeof fmt, word ? "%.60s auto " : "%.60s %%llu ", row->name);
    if (word)
        o->str(o, row->name, o->json ? NULL : fmt, "auto");
    else
        o->u64(o, row->name, fmt, v);
}

static void show_spelled(struct gw_tc_out *o, const struct gw_param *row, const char *text,
                         unsigned long long v)
{
    char fmt[80];

    snprintf(fmt, sizeof fmt, "%.60s %%s ", row->name);
    if (o->json)
        o->u64(o, row->name, NULL, v);
    else
        o->str(o, NULL, fmt, text);
}

static void show_row(const struct gw_qdisc *q, struct gw_tc_out *o, const struct gw_param *row)
{
    const void *at = (const char *)q->conf + row->offset;
    char buf[128], fmt[80];
    uint64_t v = 0;
    double share;

    switch (row->type) {
    case GW_P_BOOL:
        snprintf(fmt, sizeof fmt, "%.60s ", row->name);
        o->flag(o, row->name, fmt, *(const bool *)at);
        return;
    case GW_P_U32:
        show_u64(o, row, *(const uint32_t *)at, UINT32_MAX);
        return;
    case GW_P_U64:
        show_u64(o, row, *(const uint64_t *)at, UINT64_MAX);
        return;
    case GW_P_TIME:
        v = *(const uint64_t *)at / GW_PS_PER_NS;
        show_spelled(o, row, o->time64(o, (int64_t)v, buf), v / 1000);
        return;
    case GW_P_RATE:
        v = *(const uint64_t *)at / 8;
        show_spelled(o, row, o->rate(o, v, buf), v);
        return;
    case GW_P_BYTES:
        v = *(const uint64_t *)at;
        if (v == UINT64_MAX)
            show_u64(o, row, v, v);
        else
            show_spelled(o, row, o->size(o, v, buf), v);
        return;
    case GW_P_F64:
        snprintf(fmt, sizeof fmt, "%.60s %%g ", row->name);
        o->real(o, row->name, fmt, *(const double *)at);
        return;
    case GW_P_FRACTION:
        share = *(const double *)at;
        snprintf(fmt, sizeof fmt, "%.60s %%g%%%% ", row->name);
        o->real(o, o->json ? row->name : NULL, fmt, o->json ? share : share * 100);
        return;
    case GW_P_STRING:
    case GW_P_CHOICE:
        snprintf(fmt, sizeof fmt, "%.60s %%s ", row->name);
        o->str(o, row->name, fmt, gw_param_format(row, q->conf, buf, sizeof buf));
        return;
    case GW_P_VALUE:
    case GW_P_WORDS:
    case GW_P_TYPE_COUNT:
        return;
    }
}

static void show_options(const struct gw_qdisc *q, struct gw_tc_out *o)
{
    if (q->ops->tc_show) {
        q->ops->tc_show(q, o);
        return;
    }
    for (uint32_t i = 0; i < q->row_count; i++)
        show_row(q, o, &q->rows[i]);
}

/* ---- books -------------------------------------------------------------------------------- */

struct books {
    unsigned long long bytes, packets, drops, overlimits, requeues, backlog, qlen;
};

static void add_books(struct books *b, const struct gw_qdisc *q)
{
    b->bytes += q->sent_bytes;
    b->packets += q->sent_pkts;
    b->drops += q->dropped_pkts;
    b->overlimits += q->overlimits;
    b->requeues += q->requeues;
    b->backlog += q->backlog_bytes;
    b->qlen += q->backlog_pkts;
}

static void show_books(struct gw_tc_writer *w, const struct books *b)
{
    struct gw_tc_out *o = &w->out;
    char size[64];

    o->u64(o, "bytes", " Sent %llu bytes ", b->bytes);
    o->u64(o, "packets", "%llu pkt", b->packets);
    o->u64(o, "drops", " (dropped %llu,", b->drops);
    o->u64(o, "overlimits", " overlimits %llu", b->overlimits);
    o->u64(o, "requeues", " requeues %llu) ", b->requeues);
    if (o->json)
        o->u64(o, "backlog", NULL, b->backlog);
    else
        o->str(o, NULL, "\n backlog %s", o->size(o, b->backlog, size));
    o->u64(o, "qlen", " %llup", b->qlen);
    o->u64(o, NULL, " requeues %llu\n", b->requeues);
}

/* The discipline's own counters, behind its books. */
static void show_xstats(struct gw_tc_writer *w, const struct gw_qdisc *q)
{
    struct gw_tc_out *o = &w->out;
    char fmt[80];

    w->wrote = false;
    if (q->ops->tc_show_stats) {
        q->ops->tc_show_stats(q, o);
    } else {
        for (uint32_t i = 0; i < q->ops->stat_count; i++) {
            const struct gw_stat *s = &q->ops->stats[i];
            uint64_t v = *(const uint64_t *)((const char *)q->priv + s->offset);

            snprintf(fmt, sizeof fmt, "%s%.60s %%llu", i ? " " : "  ", s->name);
            o->u64(o, s->name, fmt, v);
        }
    }
    if (w->wrote)
        gw_tc_text(w, "\n");
}

/* ---- disciplines -------------------------------------------------------------------------- */

static void show_place(struct gw_tc_out *o, const struct gw_tree *t, bool all_devs, uint32_t parent)
{
    char id[24];

    if (all_devs)
        o->str(o, "dev", "dev %s ", t->conf.dev);
    if (parent == GW_TC_ROOT) {
        o->flag(o, "root", "root ", true);
        o->u64(o, "refcnt", "refcnt %llu ", 2);
    } else {
        o->str(o, "parent", "parent %s ", gw_tc_id_text(parent, id));
    }
}

/* What is 0 is left out, as tc does. */
static void show_stab(struct gw_tc_writer *w, const struct gw_stab *s)
{
    struct gw_tc_out *o = &w->out;

    o->open(o, "stab", false);
    gw_tc_text(w, " ");
    if (s->atm || s->ethernet)
        o->str(o, "linklayer", "linklayer %s ", s->atm ? "atm" : "ethernet");
    if (s->overhead)
        o->i64(o, "overhead", "overhead %lld ", s->overhead);
    if (s->mpu)
        o->u64(o, "mpu", "mpu %llu ", s->mpu);
    if (s->mtu)
        o->u64(o, "mtu", "mtu %llu ", s->mtu);
    if (s->tsize)
        o->u64(o, "tsize", "tsize %llu ", s->tsize);
    o->close(o, false);
    gw_tc_text(w, "\n");
}

/* @q NULL: the kind alone (noqueue, clsact), which has neither options nor counters. */
static void show_one(struct gw_tc_run *r, const struct gw_tree *t, const struct gw_qdisc *q,
                     const char *kind, uint32_t handle, uint32_t parent, bool all_devs)
{
    struct gw_tc_writer *w = r->w;
    struct gw_tc_out *o = &w->out;
    struct books b = { 0 };
    char text[24];

    o->open(o, NULL, false);
    o->str(o, "kind", "qdisc %s ", kind);
    snprintf(text, sizeof text, "%x:", handle >> 16);
    o->str(o, "handle", "%s ", text);
    show_place(o, t, all_devs, parent);
    o->open(o, "options", false);
    if (q)
        show_options(q, o);
    o->close(o, false);
    if (!q && !strcmp(kind, "ingress"))
        gw_tc_text(w, "---------------- ");
    gw_tc_text(w, "\n");
    if (q && o->details && q == t->root && t->stab.set)
        show_stab(w, &t->stab);
    if (o->stats) {
        if (q)
            add_books(&b, q);
        show_books(w, &b);
        if (q)
            show_xstats(w, q);
    }
    o->close(o, false);
}

/* The kernel's hash of handles: 16 slots by the golden ratio, the newest first in each. */
static uint32_t handle_slot(const struct gw_qdisc *q)
{
    return gw_tc_handle_of(q) * UINT32_C(0x61c88647) >> 28;
}

/* All but the root, in the order of the kernel's dump; to be freed. @n: how many. */
static const struct gw_qdisc **dump_order(const struct gw_tree *t, size_t *n)
{
    const struct gw_qdisc **all, **sorted;
    size_t count = 0, k = 0;

    for (const struct gw_qdisc *q = t->all; q; q = q->sibling)
        count++;
    *n = 0;
    all = calloc(2 * count + 1, sizeof *all);
    if (!all)
        return NULL;
    sorted = all + count;
    for (const struct gw_qdisc *q = t->all; q; q = q->sibling)
        all[k++] = q;
    for (uint32_t slot = 0; slot < 16; slot++)
        for (size_t i = count; i-- > 0;)
            if (all[i] != t->root && handle_slot(all[i]) == slot)
                sorted[(*n)++] = all[i];
    memmove(all, sorted, *n * sizeof *all);
    return all;
}

static bool want_qdisc(const struct wanted *want, uint32_t handle, uint32_t parent)
{
    return (!want->handle || want->handle == handle) && (!want->parent || want->parent == parent);
}

/* ---- what was kept -------------------------------------------------------------------------- */

static uint32_t form_of(const struct gw_tc_out *o)
{
    return (o->stats ? GW_TC_FORM_STATS : 0) | (o->details ? GW_TC_FORM_DETAILS : 0) |
           (o->json ? GW_TC_FORM_JSON : 0);
}

/* In front of the device's name: what the text of a qdisc does not hold. */
static void kept_head(const char *kind, uint32_t handle, bool json, char *buf, size_t n)
{
    if (json)
        snprintf(buf, n, "{\"kind\":\"%s\",\"handle\":\"%x:\"", kind, handle >> 16);
    else
        snprintf(buf, n, "qdisc %s %x: ", kind, handle >> 16);
}

/* @dev NULL: it is not named. */
static void show_kept(struct gw_tc_run *r, const struct gw_tc_kept *k, const char *dev)
{
    bool json = r->w->out.json, qdisc = !strcmp(k->object, "qdisc");
    size_t room = strlen(k->text) + strlen(k->kind) + (dev ? strlen(dev) : 0) + 64;
    char *text = malloc(room), head[96] = "", name[300] = "";

    if (!text)
        return;
    if (qdisc)
        kept_head(k->kind, k->handle, json, head, sizeof head);
    if (qdisc && dev)
        snprintf(name, sizeof name, json ? ",\"dev\":\"%s\"" : "dev %s ", dev);
    snprintf(text, room, "%s%s%s", head, name, k->text);
    if (json)
        gw_tc_json(r->w, text);
    else
        gw_tc_text(r->w, text);
    free(text);
}

/* -raw and -iec spell numbers in other ways, which were not kept. */
static int kept_forms(struct gw_tc_run *r)
{
    if (!r->w->out.raw && !r->w->out.iec)
        return GW_TC_GOOD;
    return GW_TC_NO(r->err, GW_TC_WORDS, "-raw and -iec: a finished run keeps what tc prints without "
                    "them, with -s, -d, -j and -p");
}

static void show_kept_qdiscs(struct gw_tc_run *r, const struct gw_tree *t,
                             const struct wanted *want)
{
    uint32_t form = form_of(&r->w->out);
    bool root = false;

    for (uint32_t i = 0; i < t->kept_count; i++)
        root = root || (t->kept[i].parent == GW_TC_ROOT && !strcmp(t->kept[i].object, "qdisc"));
    if (!root && want_qdisc(want, 0, GW_TC_ROOT))
        show_one(r, t, NULL, "noqueue", 0, GW_TC_ROOT, !want->dev);
    for (uint32_t i = 0; i < t->kept_count; i++) {
        const struct gw_tc_kept *k = &t->kept[i];

        if (k->forms >> form & 1 && !strcmp(k->object, "qdisc") &&
            want_qdisc(want, k->handle, k->parent))
            show_kept(r, k, want->dev ? NULL : t->conf.dev);
    }
}

static void show_kept_classes(struct gw_tc_run *r, const struct gw_tree *t,
                              const struct wanted *want)
{
    uint32_t form = form_of(&r->w->out);

    for (uint32_t i = 0; i < t->kept_count; i++) {
        const struct gw_tc_kept *k = &t->kept[i];
        uint32_t handle = k->handle & 0xffff0000;

        if (k->forms >> form & 1 && !strcmp(k->object, "class") &&
            (!want->handle || want->handle == handle) &&
            (!want->parent || (want->parent & 0xffff0000) == handle) &&
            (!want->classid || want->classid == k->handle))
            show_kept(r, k, NULL);
    }
}

static void show_tree(struct gw_tc_run *r, const struct gw_tree *t, const struct wanted *want)
{
    const struct gw_qdisc *root = gw_tc_handle_of(t->root) ? t->root : NULL, **q;
    bool all_devs = !want->dev;
    size_t n;

    if (t->kept_count) {
        show_kept_qdiscs(r, t, want);
        return;
    }
    if (want_qdisc(want, root ? root->handle : 0, GW_TC_ROOT))
        show_one(r, t, root, root ? root->kind : "noqueue", root ? root->handle : 0, GW_TC_ROOT,
                 all_devs);
    q = dump_order(t, &n);
    for (size_t i = 0; i < n; i++)
        if ((!q[i]->hidden || want->invisible) && q[i]->parent != GW_TC_ROOT &&
            want_qdisc(want, gw_tc_handle_of(q[i]), q[i]->parent))
            show_one(r, t, q[i], q[i]->kind, gw_tc_handle_of(q[i]), q[i]->parent, all_devs);
    free(q);
    if (t->ingress && want_qdisc(want, UINT32_C(0xffff0000), UINT32_C(0xfffffff1)))
        show_one(r, t, NULL, t->ingress, UINT32_C(0xffff0000), UINT32_C(0xfffffff1), all_devs);
}

static void end_list(struct gw_tc_run *r)
{
    struct gw_tc_out *o = &r->w->out;

    o->close(o, true);
    if (r->w->f && o->json)
        fputc('\n', r->w->f);
}

/* ---- the words of show -------------------------------------------------------------------- */

static int wrong(struct gw_tc_run *r, const char *word, const char *why)
{
    return GW_TC_NO(r->err, GW_TC_USAGE, "Error: argument \"%s\" is wrong: %s", word, why);
}

static int want_id(struct gw_tc_run *r, bool handle, uint32_t *id)
{
    const char *v = gw_tc_next(r);

    if (!v)
        return GW_TC_USAGE;
    if (*id)
        return GW_TC_NO(r->err, GW_TC_USAGE, "Error: duplicate id: \"%s\" is the second value",
                            v);
    if (!(handle ? gw_tc_handle(v, id) : gw_tc_id(v, id)))
        return wrong(r, v, handle ? "invalid qdisc ID" : "invalid ID");
    return GW_TC_GOOD;
}

static int want_word(struct gw_tc_run *r, struct wanted *want, const char *object)
{
    const char *word = r->word[r->at];
    bool class = !strcmp(object, "class");

    if (!strcmp(word, "dev")) {
        want->dev = gw_tc_next(r);
        return want->dev ? GW_TC_GOOD : GW_TC_USAGE;
    }
    if (!strcmp(word, "parent"))
        return want_id(r, false, &want->parent);
    if (!strcmp(word, class ? "qdisc" : "handle"))
        return want_id(r, true, &want->handle);
    if (class && !strcmp(word, "classid"))
        return want_id(r, false, &want->classid);
    if (!strcmp(word, "root") ||
        (!class && (!strcmp(word, "ingress") || !strcmp(word, "clsact")))) {
        if (want->parent)
            return GW_TC_NO(r->err, GW_TC_USAGE, "Error: \"%s\" is duplicate parent ID", word);
        want->parent = strcmp(word, "root") ? UINT32_C(0xfffffff1) : GW_TC_ROOT;
        return GW_TC_GOOD;
    }
    if (!class && !strcmp(word, "invisible")) {
        want->invisible = true;
        return GW_TC_GOOD;
    }
    return GW_TC_NO(r->err, GW_TC_USAGE, "What is \"%s\"? Try \"tc %s help\"", word, object);
}

static int read_wanted(struct gw_tc_run *r, struct wanted *want, const char *object)
{
    for (; r->at < r->count; r->at++) {
        int rc = want_word(r, want, object);

        if (rc)
            return rc;
    }
    return GW_TC_GOOD;
}

int gw_tc_qdisc_list(struct gw_tc_run *r)
{
    struct gw_tc_out *o = &r->w->out;
    struct wanted want = { 0 };
    const struct gw_tree *t = NULL;
    int rc = read_wanted(r, &want, "qdisc");

    if (!rc && r->ctx->finished)
        rc = kept_forms(r);
    if (rc)
        return rc;
    if (want.dev && !(t = gw_tc_dev(r, want.dev)))
        return GW_TC_WORDS;
    o->open(o, NULL, true);
    if (t)
        show_tree(r, t, &want);
    else
        for (size_t i = 0; r->ctx->device_at && (t = r->ctx->device_at(r->ctx->ctx, i)); i++)
            show_tree(r, t, &want);
    end_list(r);
    return GW_TC_GOOD;
}

/* ---- classes ------------------------------------------------------------------------------ */

static uint32_t parent_of(const struct gw_qdisc *q, const struct gw_qclass *cl)
{
    if (q->ops->class_parent)
        return q->ops->class_parent(q, cl);
    return q->ops->class_change ? GW_TC_ROOT : q->handle;
}

/* As the kernel: what waits is what its queue holds, all else may be the class's own. */
static void class_books(const struct gw_qclass *cl, struct books *b)
{
    if (cl->child)
        add_books(b, cl->child);
    if (cl->books != GW_BOOKS_OWN)
        return;
    b->bytes = cl->sent_bytes;
    b->packets = cl->sent_pkts;
    b->drops = cl->dropped_pkts;
    b->overlimits = cl->overlimits;
    b->requeues = 0;
}

/* The kernel keeps books of classes only where there can be several. */
static bool has_books(struct gw_qdisc *q)
{
    struct gw_qclass *first = q->ops->class_walk(q, NULL);

    return q->ops->class_change || (first && q->ops->class_walk(q, first));
}

static void show_class_stats(struct gw_tc_run *r, struct gw_qdisc *q, const struct gw_qclass *cl)
{
    struct gw_tc_writer *w = r->w;
    struct gw_tc_out *o = &w->out;
    struct books b = { 0 };

    o->open(o, "stats", false);
    if (has_books(q)) {
        class_books(cl, &b);
        show_books(w, &b);
    }
    o->close(o, false);
    if (!has_books(q))
        gw_tc_text(w, "\n");
    w->wrote = false;
    if (q->ops->tc_show_class_stats)
        q->ops->tc_show_class_stats(q, cl, o);
    if (w->wrote)
        gw_tc_text(w, "\n");
}

static void show_class(struct gw_tc_run *r, struct gw_qdisc *q, const struct gw_qclass *cl)
{
    struct gw_tc_out *o = &r->w->out;
    uint32_t parent = parent_of(q, cl);
    char id[24];

    o->open(o, NULL, false);
    o->str(o, "class", "class %s ", q->kind);
    if (cl->id)                                      /* a class of drr that got no number      */
        o->str(o, "handle", "%s ", gw_tc_id_text(cl->id, id));
    if (parent == GW_TC_ROOT)
        o->flag(o, "root", "root ", true);
    else
        o->str(o, "parent", "parent %s ", gw_tc_id_text(parent, id));
    if (gw_tc_handle_of(cl->child)) {
        snprintf(id, sizeof id, "%x:", cl->child->handle >> 16);
        o->str(o, "leaf", "leaf %s ", id);
    }
    if (q->ops->tc_show_class)
        q->ops->tc_show_class(q, cl, o);
    gw_tc_text(r->w, "\n");
    if (o->stats)
        show_class_stats(r, q, cl);
    o->close(o, false);
}

/* netem's class is there only while something hangs under it. */
static bool class_visible(const struct gw_qdisc *q, const struct gw_qclass *cl,
                          const struct wanted *want)
{
    if (!strcmp(q->kind, "netem") && !gw_tc_handle_of(cl->child))
        return false;
    return !want->classid || want->classid == cl->id;
}

static void show_classes(struct gw_tc_run *r, struct gw_qdisc *q, const struct wanted *want)
{
    if (!gw_tc_handle_of(q) || !q->ops->class_walk || (want->handle && want->handle != q->handle) ||
        (want->parent && (want->parent & 0xffff0000) != q->handle))
        return;
    for (struct gw_qclass *c = q->ops->class_walk(q, NULL); c; c = q->ops->class_walk(q, c))
        if (class_visible(q, c, want))
            show_class(r, q, c);
}

int gw_tc_class_list(struct gw_tc_run *r)
{
    struct gw_tc_out *o = &r->w->out;
    struct wanted want = { 0 };
    struct gw_tree *t = NULL;
    const struct gw_qdisc **q = NULL;
    size_t n = 0;
    int rc = read_wanted(r, &want, "class");

    if (!rc && r->ctx->finished)
        rc = kept_forms(r);
    if (rc)
        return rc;
    if (want.dev && !(t = gw_tc_dev(r, want.dev)))
        return GW_TC_WORDS;
    o->open(o, NULL, true);
    if (t && t->kept_count) {
        show_kept_classes(r, t, &want);
    } else if (t) {
        q = dump_order(t, &n);
        if (t->root)
            show_classes(r, t->root, &want);
    }
    for (size_t i = 0; i < n; i++)
        show_classes(r, (struct gw_qdisc *)(uintptr_t)q[i], &want);
    free(q);
    end_list(r);
    return GW_TC_GOOD;
}

/* ---- keeping ------------------------------------------------------------------------------ */

struct keeper {
    struct gw_tree *t;
    void (*put)(void *ctx, const struct gw_tc_kept *k);
    void *ctx;
    uint32_t order;
    bool nomem;
};

/* The printed text in one form, without its head; to be freed. */
static char *keep_form(struct keeper *k, const struct gw_tc_kept *what, struct gw_qdisc *q,
                       const struct gw_qclass *cl, uint32_t form)
{
    static const struct gw_tc_ctx nothing = { 0 };
    struct gw_tc_writer w = { .out = { .stats = form & GW_TC_FORM_STATS,
        .details = form & GW_TC_FORM_DETAILS, .json = form & GW_TC_FORM_JSON } };
    struct gw_tc_run r = { .ctx = &nothing, .w = &w };
    char *text = NULL, head[96] = "";
    size_t n = 0, skip;
    FILE *f = open_memstream(&text, &n);

    if (!f)
        return NULL;
    gw_tc_writer_init(&w, f);
    if (cl)
        show_class(&r, q, cl);
    else
        show_one(&r, k->t, q, what->kind, what->handle, what->parent, false);
    if (fclose(f) || !text)
        return NULL;
    if (!cl)
        kept_head(what->kind, what->handle, w.out.json, head, sizeof head);
    skip = strlen(head);
    memmove(text, text + skip, n - skip + 1);
    return text;
}

static void keep_one(struct keeper *k, struct gw_tc_kept *what, struct gw_qdisc *q,
                     const struct gw_qclass *cl)
{
    char *text[GW_TC_FORMS] = { NULL };

    for (uint32_t i = 0; i < GW_TC_FORMS; i++) {
        text[i] = keep_form(k, what, q, cl, i);
        k->nomem = k->nomem || !text[i];
    }
    what->order = k->order++;
    for (uint32_t i = 0; i < GW_TC_FORMS && !k->nomem; i++) {
        what->forms = 0;
        for (uint32_t j = 0; j < GW_TC_FORMS; j++)
            if (!strcmp(text[i], text[j]))
                what->forms |= UINT32_C(1) << j;
        what->text = text[i];
        if (!(what->forms & ((UINT32_C(1) << i) - 1)))     /* else it has been handed on       */
            k->put(k->ctx, what);
    }
    for (uint32_t i = 0; i < GW_TC_FORMS; i++)
        free(text[i]);
}

static void keep_classes(struct keeper *k, struct gw_qdisc *q)
{
    const struct wanted all = { 0 };

    if (!gw_tc_handle_of(q) || !q->ops->class_walk)
        return;
    for (struct gw_qclass *c = q->ops->class_walk(q, NULL); c; c = q->ops->class_walk(q, c))
        if (class_visible(q, c, &all))
            keep_one(k, &(struct gw_tc_kept){ .object = "class", .kind = q->kind,
                                              .handle = c->id, .parent = parent_of(q, c) }, q, c);
}

bool gw_tc_keep(struct gw_tree *t, void (*put)(void *ctx, const struct gw_tc_kept *k), void *ctx)
{
    struct keeper k = { t, put, ctx, 0, false };
    size_t n;
    const struct gw_qdisc **all = dump_order(t, &n);

    if (!all)
        return !t->all;
    if (gw_tc_handle_of(t->root))
        keep_one(&k, &(struct gw_tc_kept){ .object = "qdisc", .kind = t->root->kind,
                                           .handle = t->root->handle, .parent = GW_TC_ROOT },
                 t->root, NULL);
    for (size_t i = 0; i < n; i++) {
        struct gw_qdisc *q = (struct gw_qdisc *)(uintptr_t)all[i];

        if (gw_tc_handle_of(q) && q->parent != GW_TC_ROOT)
            keep_one(&k, &(struct gw_tc_kept){ .object = "qdisc", .kind = q->kind,
                                               .handle = q->handle, .parent = q->parent }, q,
                     NULL);
    }
    if (t->ingress)
        keep_one(&k, &(struct gw_tc_kept){ .object = "qdisc", .kind = t->ingress,
                                           .handle = UINT32_C(0xffff0000),
                                           .parent = UINT32_C(0xfffffff1) }, NULL, NULL);
    if (t->root)
        keep_classes(&k, t->root);
    for (size_t i = 0; i < n; i++)
        keep_classes(&k, (struct gw_qdisc *)(uintptr_t)all[i]);
    free(all);
    return gw_filter_keep(t, put, ctx, &k.order) && !k.nomem;
}

enum gw_status gw_tree_keep(struct gw_tree *t, const struct gw_tc_kept *k, struct gw_error *err)
{
    uint32_t n = t->kept_count;
    struct gw_tc_kept *to;

    if (!(n & (n - 1))) {                           /* full at powers of two                   */
        to = realloc(t->kept, (n ? 2 * (size_t)n : 1) * sizeof *to);
        if (!to)
            return gw_fail(err, GW_NOMEM, "%s: out of memory for what tc printed", t->conf.dev);
        t->kept = to;
    }
    to = &t->kept[n];
    *to = *k;
    to->object = !strcmp(k->object, "class") ? "class" :
                 !strcmp(k->object, "filter") ? "filter" : "qdisc";
    to->kind = strdup(k->kind);
    to->text = strdup(k->text);
    t->kept_count++;
    if (!to->kind || !to->text)
        return gw_fail(err, GW_NOMEM, "%s: out of memory for what tc printed", t->conf.dev);
    return GW_OK;
}

void gw_tree_forget(struct gw_tree *t)
{
    for (uint32_t i = 0; i < t->kept_count; i++) {
        free((char *)(uintptr_t)t->kept[i].kind);
        free((char *)(uintptr_t)t->kept[i].text);
    }
    free(t->kept);
    t->kept = NULL;
    t->kept_count = 0;
}
