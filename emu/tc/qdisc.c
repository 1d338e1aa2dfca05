/*
 * qdisc - what `tc qdisc add|change|replace|link|delete` does to a tree
 *
 * The words in front of the kind are read as tc_qdisc.c of iproute2 6.1 reads them; the decision
 * between a new discipline, a change and a refusal is tc_modify_qdisc() of Linux 6.1, flag by flag,
 * with its sentences. As in tc, the words behind the kind are read first, so that a word that tc
 * does not know is tc's refusal (exit 1) even where the kernel would refuse as well.
 *
 * Other than the kernel: a size table is kept for the root only; `root noqueue` takes the root away
 * instead of hanging up a discipline by that name; ingress and clsact can be added and are shown,
 * but no packet passes them; estimators and blocks are refused.
 */
#include <stdlib.h>

#include "emu/tc/run.h"

#define INGRESS_PARENT UINT32_C(0xfffffff1)
#define INGRESS_HANDLE UINT32_C(0xffff0000)

struct frame {                   /* what stands in front of the kind's own words               */
    const char *dev, *kind;      /* NULL: not given                                            */
    uint32_t    handle, parent;  /* 0: not given                                               */
    const char *handle_word, *parent_word;     /* as they stand in the line; NULL: not given   */
    bool        ingress, block;
    struct gw_stab stab;
};

enum deed { MAKE, MAKE_ANYWAY, CHANGE };     /* ANYWAY: the verb need not be one that creates */

struct plan {
    enum deed   deed;
    struct gw_qdisc *q;          /* CHANGE: which                                              */
};

/* ---- reading ------------------------------------------------------------------------------ */

static int twice(struct gw_tc_run *r, const char *what, const char *word)
{
    return GW_TC_NO(r->err, GW_TC_USAGE, "Error: duplicate \"%s\": \"%s\" is the second value",
                        what, word);
}

static int wrong(struct gw_tc_run *r, const char *word, const char *why)
{
    return GW_TC_NO(r->err, GW_TC_USAGE, "Error: argument \"%s\" is wrong: %s", word, why);
}

/* stab [ mtu N ] [ tsize N ] [ mpu N ] [ overhead N ] [ linklayer ethernet|atm|adsl ] */
static int read_stab(struct gw_tc_run *r, struct gw_stab *s)
{
    static const char *const key[] = { "mtu", "mpu", "overhead", "tsize", "linklayer" };
    const uint32_t first = r->at + 1;

    while (r->at + 1 < r->count) {
        const char *word = r->word[r->at + 1], *v;
        size_t k = 0;
        char *end;
        bool ok;

        while (k < GW_ARRAY_LEN(key) && !gw_tc_matches(word, key[k]))
            k++;
        if (k == GW_ARRAY_LEN(key))
            break;
        r->at++;
        v = gw_tc_next(r);
        if (!v)
            return GW_TC_USAGE;
        if (k == 0 ? s->mtu : k == 1 ? s->mpu : k == 2 ? s->overhead != 0 : k == 3 ? s->tsize :
            s->atm || s->ethernet)
            return twice(r, key[k], v);
        if (k == 2) {
            long n = strtol(v, &end, 0);

            s->overhead = (int32_t)n;
            ok = end != v && !*end && n == s->overhead;
        } else if (k == 4) {
            s->atm = !strcmp(v, "atm") || !strcmp(v, "adsl");
            s->ethernet = !strcmp(v, "ethernet");
            ok = s->atm || s->ethernet;
        } else {
            ok = gw_tc_u32(v, k == 0 ? &s->mtu : k == 1 ? &s->mpu : &s->tsize);
        }
        if (!ok)
            return GW_TC_NO(r->err, GW_TC_USAGE, "Error: argument \"%s\" is wrong: invalid %s; "
                            "%s is right", v, key[k], k == 4 ? "ethernet, atm or adsl" :
                            "a whole number");
        s->set = true;
    }
    if (r->at + 1 == first || !(s->atm || s->ethernet || s->mpu || s->overhead)) {
        bool more = r->at + 1 < r->count;

        return GW_TC_NO(r->err, GW_TC_USAGE, "Error: \"stab\" needs mpu, overhead or linklayer "
                            "behind it%s\"%s\"", more ? ", not " : ", where the line ends with ",
                            more ? r->word[r->at + 1] : r->word[r->at]);
    }
    if (!s->atm && !s->mpu) {                        /* no table: only the overhead is added   */
        s->mtu = s->tsize = 0;
        return GW_TC_GOOD;
    }
    s->mtu = s->mtu ? s->mtu : 2047;
    s->tsize = s->tsize ? s->tsize : 512;
    return s->tsize <= 65536 ? GW_TC_GOOD : wrong(r, "tsize", "more than 65536 entries");
}

static int read_parent(struct gw_tc_run *r, struct frame *f, const char *word)
{
    if (!strcmp(word, "parent")) {
        const char *v = gw_tc_next(r);

        if (!v)
            return GW_TC_USAGE;
        if (f->parent)
            return twice(r, "parent", v);
        f->parent_word = v;
        return gw_tc_id(v, &f->parent) ? GW_TC_GOOD : wrong(r, v, "invalid parent ID");
    }
    if (f->parent)
        return GW_TC_NO(r->err, GW_TC_USAGE, "Error: \"%s\" is duplicate parent ID", word);
    f->parent = strcmp(word, "root") ? INGRESS_PARENT : GW_TC_ROOT;
    f->parent_word = word;
    if (f->parent == GW_TC_ROOT)
        return GW_TC_GOOD;
    f->ingress = true;
    f->handle = INGRESS_HANDLE;
    f->kind = word;
    return GW_TC_GOOD;
}

/* One word of the frame, with its value; f->kind is set when the frame has ended. */
static int read_word(struct gw_tc_run *r, struct frame *f)
{
    const char *word = r->word[r->at], *v;

    if (!strcmp(word, "dev")) {
        v = gw_tc_next(r);
        if (v && f->dev)
            return twice(r, "dev", v);
        f->dev = v;
        return v ? GW_TC_GOOD : GW_TC_USAGE;
    }
    if (!strcmp(word, "handle")) {
        v = gw_tc_next(r);
        if (v && f->handle)
            return twice(r, "handle", v);
        f->handle_word = v;
        return !v ? GW_TC_USAGE : gw_tc_handle(v, &f->handle) ? GW_TC_GOOD :
               wrong(r, v, "invalid qdisc ID");
    }
    if (!strcmp(word, "root") || !strcmp(word, "ingress") || !strcmp(word, "clsact") ||
        !strcmp(word, "parent"))
        return read_parent(r, f, word);
    if (gw_tc_matches(word, "estimator"))
        return GW_TC_NO(r->err, GW_TC_USAGE, "Error: \"%s\": rate estimators are not modelled; "
                            "leave it out", word);
    if (gw_tc_matches(word, "stab"))
        return read_stab(r, &f->stab);
    if (!strcmp(word, "ingress_block") || !strcmp(word, "egress_block")) {
        uint32_t n;

        v = gw_tc_next(r);
        f->block = true;
        return !v ? GW_TC_USAGE : gw_tc_u32(v, &n) ? GW_TC_GOOD :
               wrong(r, v, "invalid block index value");
    }
    if (gw_tc_matches(word, "help"))
        return GW_TC_NO(r->err, GW_TC_USAGE, "Usage: tc qdisc [ add | del | replace | change | "
                            "link ] dev DEV [ handle QHANDLE ] [ root | ingress | clsact | parent "
                            "CLASSID ] [ stab ... ] KIND ...");
    f->kind = word;
    return GW_TC_GOOD;
}

static int read_frame(struct gw_tc_run *r, struct frame *f)
{
    for (; r->at < r->count && !f->kind; r->at++) {
        int rc = read_word(r, f);

        if (rc)
            return rc;
    }
    return GW_TC_GOOD;
}

/* ---- what the kernel decides ---------------------------------------------------------------- */

/* A refusal by the kernel; @word is what it is about, NULL: the whole line. */
static int kernel_no(struct gw_error *err, const struct gw_tree *t, const char *why,
                     const char *word)
{
    return GW_TC_NO(err, GW_TC_KERNEL, "Error: %s%s%s%s (device %s)", why, word ? ": \"" : "",
                    word ? word : "", word ? "\"" : "", t->conf.dev);
}

/* The discipline at the place that the frame names; false: the place itself does not exist. */
static bool at_place(const struct gw_tree *t, const struct frame *f, struct gw_qdisc **q)
{
    struct gw_qdisc *owner;

    *q = t->root;
    if (f->parent == GW_TC_ROOT)
        return true;
    owner = gw_tree_owner(t, f->parent);
    *q = owner ? gw_tree_child(owner, f->parent) : NULL;
    return owner != NULL;
}

/*
 * The line names no handle, and another kind than the one that stands there: `add`, `replace` and
 * `change` hang up the new one, as Linux from 6.6 on and the stable 6.1 do; `link` does not.
 */
static enum deed other_kind(unsigned flags)
{
    if ((flags & GW_TC_CREATE) && (flags & (GW_TC_REPLACE | GW_TC_EXCL)))
        return MAKE;
    return flags ? CHANGE : MAKE_ANYWAY;
}

/* A new one or a change? The order of the questions is the kernel's. */
static int decide_where(const struct gw_tree *t, const struct frame *f, unsigned flags,
                        struct plan *p, struct gw_error *err)
{
    struct gw_qdisc *q, *other;

    p->deed = CHANGE;
    if (!f->parent) {
        if (!f->handle)
            return kernel_no(err, t, "Handle cannot be zero", f->handle_word);
        p->q = gw_tree_find(t, f->handle);
        return p->q ? GW_TC_GOOD : kernel_no(err, t, "Specified qdisc not found", f->handle_word);
    }
    if (!at_place(t, f, &q))
        return kernel_no(err, t, "Failed to find specified qdisc", f->parent_word);
    p->q = q = gw_tc_handle_of(q) ? q : NULL;
    if (q && f->handle == q->handle)
        return GW_TC_GOOD;
    if (!f->handle) {
        if (!q)
            p->deed = MAKE;
        else if (f->kind && strcmp(f->kind, q->kind))
            p->deed = other_kind(flags);
        return GW_TC_GOOD;
    }
    if (q && !(flags & GW_TC_REPLACE))
        return kernel_no(err, t, "NLM_F_REPLACE needed to override", f->parent_word);
    other = gw_tree_find(t, f->handle);
    if (t->ingress && f->handle == INGRESS_HANDLE)
        return kernel_no(err, t, flags & GW_TC_EXCL ? "Exclusivity flag on, cannot override" :
                         "Invalid qdisc name: must match existing qdisc", f->handle_word);
    if (other)
        return kernel_no(err, t, "Cannot move an existing qdisc to a different parent", f->handle_word);
    p->deed = MAKE;
    return GW_TC_GOOD;
}

static int decide_make(const struct gw_tree *t, const struct frame *f, bool may,
                       struct gw_error *err)
{
    struct gw_qdisc *owner = f->parent == GW_TC_ROOT ? NULL : gw_tree_owner(t, f->parent);

    if (!may)
        return kernel_no(err, t, "Qdisc not found. To create specify NLM_F_CREATE flag", f->parent_word);
    if (f->block)
        return kernel_no(err, t, "Ingress block sharing is not supported", f->parent_word);
    if (f->parent == GW_TC_ROOT)
        return GW_TC_GOOD;
    if (!owner->ops->graft || !owner->ops->class_find)
        return kernel_no(err, t, "Parent qdisc is not classful", f->parent_word);
    if (!owner->ops->class_find(owner, f->parent))
        return kernel_no(err, t, "Specified class not found", f->parent_word);
    if (f->stab.set)
        return kernel_no(err, t, "a size table (stab) is modelled at the root only", f->parent_word);
    return GW_TC_GOOD;
}

static int decide(const struct gw_tree *t, const struct frame *f, unsigned flags, struct plan *p,
                  struct gw_error *err)
{
    int rc = decide_where(t, f, flags, p, err);

    if (rc)
        return rc;
    if (p->deed != CHANGE)
        return decide_make(t, f, p->deed == MAKE_ANYWAY || flags & GW_TC_CREATE, err);
    if (flags & GW_TC_EXCL)
        return kernel_no(err, t, "Exclusivity flag on, cannot modify", f->parent_word);
    if (f->kind && strcmp(f->kind, p->q->kind))
        return kernel_no(err, t, "Invalid qdisc name: must match existing qdisc", f->kind);
    if (f->block)
        return kernel_no(err, t, "Change of blocks is not supported", f->parent_word);
    if (f->stab.set && p->q != t->root)
        return kernel_no(err, t, "a size table (stab) is modelled at the root only", f->parent_word);
    return GW_TC_GOOD;
}

/* ---- doing -------------------------------------------------------------------------------- */

/* What init, change or graft refused, in the kernel's name. */
static int refused(struct gw_error *err, const char *what)
{
    return GW_TC_NO(err, GW_TC_KERNEL, "RTNETLINK answers: Invalid argument (%s)", what);
}

static size_t row_size(const struct gw_param *row)
{
    switch (row->type) {
    case GW_P_BOOL:
        return sizeof(bool);
    case GW_P_U32:
    case GW_P_CHOICE:
        return sizeof(uint32_t);
    case GW_P_STRING:
        return sizeof(const char *);
    case GW_P_VALUE:
    case GW_P_WORDS:
    case GW_P_TYPE_COUNT:
        return 0;
    default:
        return sizeof(uint64_t);
    }
}

/* Options by rows: what the line named is in force now. A discipline with its own parser has kept
 * in conf what its change() keeps. */
static void keep_rows(struct gw_qdisc *q, const void *conf, uint64_t given)
{
    if (q->ops->tc_parse)
        return;
    for (uint32_t i = 0; i < q->row_count; i++)
        if (given >> i & 1)
            memcpy((char *)q->conf + q->rows[i].offset, (const char *)conf + q->rows[i].offset,
                   row_size(&q->rows[i]));
    q->given |= given;
}

static int do_change(struct gw_tc_run *r, struct gw_tree *t, struct gw_qdisc *q,
                     struct gw_qdisc *words, const struct frame *f)
{
    if (f->kind && !q->ops->change && q->row_count)
        return kernel_no(r->err, t, "Change operation not supported by specified qdisc", f->kind);
    if (f->kind && q->ops->change) {
        if (q->ops->change(q, words->conf, words->given, r->ctx->now_ps, r->err) != GW_OK)
            return refused(r->err, q->kind);
        keep_rows(q, words->conf, words->given);
        free(q->note);
        q->note = words->note;
        words->note = NULL;
    }
    t->touched = q;
    if (q == t->root)
        t->stab = f->stab;                           /* a line without `stab` takes it away    */
    return GW_TC_GOOD;
}

/* @q has its words already; it is the tree's, or freed, afterwards. Its init() sees the tree that
 * stands, also one that it will replace: the kernel's does too. */
static int do_make(struct gw_tc_run *r, struct gw_tree *t, struct gw_qdisc *q,
                   const struct frame *f)
{
    const char *kind = q->kind;

    q->handle = f->handle ? f->handle : gw_tree_auto_handle(t);
    q->parent = f->parent;
    q->up = f->parent == GW_TC_ROOT ? t->root : gw_tree_owner(t, f->parent);
    if (!q->handle) {
        t->host->qdisc_free(q);
        return GW_TC_NO(r->err, GW_TC_KERNEL, "RTNETLINK answers: No space left on device for "
                            "a handle");
    }
    if (gw_tree_init(t, q, r->err) != GW_OK)
        return refused(r->err, kind);
    if (gw_tree_graft(t, q, f->parent, r->ctx->now_ps, r->err) != GW_OK) {
        t->host->qdisc_free(q);
        return refused(r->err, kind);
    }
    if (f->parent == GW_TC_ROOT)
        t->stab = f->stab;
    t->touched = q;
    return GW_TC_GOOD;
}

static int do_remove(struct gw_tc_run *r, struct gw_tree *t, const struct frame *f)
{
    struct gw_qdisc *q;

    if (!f->parent) {
        q = f->handle ? gw_tree_find(t, f->handle) : NULL;
        if (!q)
            return kernel_no(r->err, t, "Failed to find qdisc with specified handle", f->handle_word);
        return kernel_no(r->err, t, "Classid cannot be zero", f->parent_word);
    }
    if (!at_place(t, f, &q))
        return kernel_no(r->err, t, "Failed to find qdisc with specified classid", f->parent_word);
    if (!q && f->parent != GW_TC_ROOT)
        return kernel_no(r->err, t, "Cannot find specified qdisc on specified device", f->parent_word);
    if (f->handle && gw_tc_handle_of(q) != f->handle)
        return kernel_no(r->err, t, "Invalid handle", f->handle_word);
    if (f->kind && strcmp(f->kind, gw_tc_handle_of(q) ? q->kind : "noqueue"))
        return kernel_no(r->err, t, "Invalid qdisc name", f->kind);
    if (!gw_tc_handle_of(q))
        return kernel_no(r->err, t, "Cannot delete qdisc with handle of zero", f->parent_word);
    t->touched = q->up;
    gw_tree_remove(t, q, r->ctx->now_ps);
    return GW_TC_GOOD;
}

/* ---- kinds that are no disciplines of packets ----------------------------------------------- */

static int do_ingress(struct gw_tc_run *r, struct gw_tree *t, const struct frame *f)
{
    const char *kind = strcmp(f->kind, "clsact") ? "ingress" : "clsact";

    if (r->at < r->count)
        return GW_TC_NO(r->err, GW_TC_WORDS, "What is \"%s\"? qdisc %s has no options",
                            r->word[r->at], kind);
    if (r->verb.remove) {
        if (!t->ingress)
            return kernel_no(r->err, t, "Invalid handle", f->handle_word);
        if (strcmp(t->ingress, kind))
            return kernel_no(r->err, t, "Invalid qdisc name", f->kind);
        t->ingress = NULL;
        return GW_TC_GOOD;
    }
    if (!t->ingress && gw_tree_find(t, INGRESS_HANDLE))
        return kernel_no(r->err, t, r->verb.flags & GW_TC_EXCL ?
                         "Exclusivity flag on, cannot override" :
                         "Invalid qdisc name: must match existing qdisc", f->parent_word);
    if (!t->ingress && !(r->verb.flags & GW_TC_CREATE))
        return kernel_no(r->err, t, "Qdisc not found. To create specify NLM_F_CREATE flag", f->parent_word);
    if (t->ingress && (r->verb.flags & GW_TC_EXCL))
        return kernel_no(r->err, t, "Exclusivity flag on, cannot modify", f->parent_word);
    if (t->ingress && strcmp(t->ingress, kind))
        return kernel_no(r->err, t, "Invalid qdisc name: must match existing qdisc", f->kind);
    if (f->block)
        return kernel_no(r->err, t, "shared blocks are not modelled", f->parent_word);
    t->ingress = kind;
    return GW_TC_GOOD;
}

static int do_noqueue(struct gw_tc_run *r, struct gw_tree *t, const struct frame *f)
{
    struct plan p = { 0 };
    int rc;

    if (r->verb.remove)
        return do_remove(r, t, f);
    rc = decide(t, f, r->verb.flags, &p, r->err);
    if (rc)
        return rc;
    if (f->parent != GW_TC_ROOT)
        return kernel_no(r->err, t, "Cannot assign noqueue to a class", f->parent_word);
    if (gw_tc_handle_of(t->root))
        gw_tree_remove(t, t->root, r->ctx->now_ps);
    return GW_TC_GOOD;
}

/* ---- one command -------------------------------------------------------------------------- */

/* The kind's own words into a discipline that is not in the tree; NULL: @rc says why. */
static struct gw_qdisc *read_kind(struct gw_tc_run *r, struct gw_tree *t, const struct frame *f,
                                  bool change, bool *create, int *rc)
{
    struct gw_tc_args a = { .word = r->word + r->at, .count = r->count - r->at, .change = change,
                            .dev_rate_bps = t->conf.rate_bps, .host = t->host,
                            .data_dir = t->conf.data_dir, .create = create };
    struct gw_error inner = { 0 };
    struct gw_qdisc *q = gw_tree_make(t, f->kind, NULL, &inner);

    if (!q && inner.code == GW_NOMEM) {
        *rc = GW_TC_NO(r->err, GW_TC_KERNEL, "%s", inner.text);
    } else if (!q && a.count) {
        *rc = GW_TC_NO(r->err, GW_TC_WORDS, "Unknown qdisc \"%s\", hence option \"%s\" is "
                           "unparsable: %s", f->kind, a.word[0], inner.text);
    } else if (!q) {
        *rc = GW_TC_NO(r->err, GW_TC_KERNEL, "Error: Specified qdisc kind is unknown: %s",
                           inner.text);
    } else {
        *rc = gw_tc_words_exit(gw_tree_parse(q, &a, q->conf, &q->given, r->err));
        if (*rc) {
            gw_fail(r->err, GW_SYNTAX, "qdisc %s: bad option", f->kind);
            t->host->qdisc_free(q);
            q = NULL;
        }
    }
    return q;
}

static int with_kind(struct gw_tc_run *r, struct gw_tree *t, const struct frame *f)
{
    struct gw_error kernel = { 0 };
    struct plan p = { 0 };
    struct gw_qdisc *q;
    int no = r->verb.remove ? 0 : decide(t, f, r->verb.flags, &p, &kernel), rc;
    bool create = false;

    q = read_kind(r, t, f, p.deed == CHANGE, &create, &rc);
    if (!q)
        return rc;
    if (create && no) {                              /* the words ask for more than the verb   */
        memset(&kernel, 0, sizeof kernel);
        no = decide(t, f, r->verb.flags | GW_TC_CREATE, &p, &kernel);
    }
    if (!no && !r->verb.remove && p.deed != CHANGE)
        return do_make(r, t, q, f);
    if (no)
        rc = GW_TC_NO(r->err, no, "%s", kernel.text);
    else if (r->verb.remove)
        rc = do_remove(r, t, f);
    else
        rc = do_change(r, t, p.q, q, f);
    t->host->qdisc_free(q);
    return rc;
}

static int without_kind(struct gw_tc_run *r, struct gw_tree *t, const struct frame *f)
{
    struct plan p = { 0 };
    int rc;

    if (r->verb.remove)
        return do_remove(r, t, f);
    rc = decide(t, f, r->verb.flags, &p, r->err);
    if (!rc && p.deed != CHANGE)
        return GW_TC_NO(r->err, GW_TC_KERNEL, "Error: Specified qdisc kind is unknown: none stands "
                        "behind \"%s\"", r->word[r->count - 1]);
    return rc ? rc : do_change(r, t, p.q, NULL, f);
}

int gw_tc_qdisc(struct gw_tc_run *r)
{
    struct frame f = { 0 };
    struct gw_tree *t;
    int rc = read_frame(r, &f);

    if (rc)
        return rc;
    if (!f.dev)
        return gw_tc_no_dev(r, f.kind);
    t = gw_tc_dev(r, f.dev);
    if (!t)
        return GW_TC_WORDS;
    if (f.ingress)
        return do_ingress(r, t, &f);
    if (f.kind && !strcmp(f.kind, "noqueue") && r->at == r->count)
        return do_noqueue(r, t, &f);
    return f.kind ? with_kind(r, t, &f) : without_kind(r, t, &f);
}
