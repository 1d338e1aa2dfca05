/*
 * class - what `tc class add|change|replace|delete` does to a tree
 *
 * Reads the frame as tc_class.c of iproute2 6.1 does and finds discipline and class as
 * tc_ctl_tclass() of Linux 6.1 does: majors of class and parent must agree, a missing one is taken
 * from the root. Left out: estimators.
 */
#include <stdlib.h>

#include "emu/tc/run.h"

struct frame {
    const char *dev, *kind;
    uint32_t    classid, parent;
    const char *classid_word, *parent_word;    /* as they stand in the line; NULL: not given   */
};

static int read_id(struct gw_tc_run *r, const char *what, uint32_t *id, const char **as)
{
    const char *v = gw_tc_next(r);

    if (!v)
        return GW_TC_USAGE;
    *as = v;
    if (*id)
        return GW_TC_NO(r->err, GW_TC_USAGE, "Error: duplicate \"%s\": \"%s\" is the second "
                            "value", what, v);
    if (!gw_tc_id(v, id))
        return GW_TC_NO(r->err, GW_TC_USAGE, "Error: argument \"%s\" is wrong: invalid %s ID", v,
                            strcmp(what, "parent") ? "class" : what);
    return GW_TC_GOOD;
}

static int read_word(struct gw_tc_run *r, struct frame *f)
{
    const char *word = r->word[r->at], *v;

    if (!strcmp(word, "dev")) {
        v = gw_tc_next(r);
        if (v && f->dev)
            return GW_TC_NO(r->err, GW_TC_USAGE, "Error: duplicate \"dev\": \"%s\" is the second "
                                "value", v);
        f->dev = v;
        return v ? GW_TC_GOOD : GW_TC_USAGE;
    }
    if (!strcmp(word, "classid"))
        return read_id(r, word, &f->classid, &f->classid_word);
    if (!strcmp(word, "parent"))
        return read_id(r, word, &f->parent, &f->parent_word);
    if (!strcmp(word, "handle"))
        return GW_TC_NO(r->err, GW_TC_USAGE, "Error: try \"classid\" instead of \"handle\"");
    if (!strcmp(word, "root")) {
        if (f->parent)
            return GW_TC_NO(r->err, GW_TC_USAGE, "Error: \"root\" is duplicate parent ID");
        f->parent = GW_TC_ROOT;
        f->parent_word = word;
        return GW_TC_GOOD;
    }
    if (gw_tc_matches(word, "estimator"))
        return GW_TC_NO(r->err, GW_TC_USAGE, "Error: \"%s\": rate estimators are not modelled; "
                            "leave it out", word);
    if (gw_tc_matches(word, "help"))
        return GW_TC_NO(r->err, GW_TC_USAGE, "Usage: tc class [ add | del | change | replace ] "
                            "dev DEV [ classid CLASSID ] [ root | parent CLASSID ] KIND ...");
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

/* ---- what the kernel does ------------------------------------------------------------------- */

static int answers(struct gw_tc_run *r, const struct frame *f, const char *why)
{
    const char *word = f->classid_word ? f->classid_word : f->parent_word;

    return GW_TC_NO(r->err, GW_TC_KERNEL, "RTNETLINK answers: %s (class %s)", why,
                    word ? word : "none");
}

/* Completes the ids from each other; false: they contradict each other. */
static bool complete(const struct gw_tree *t, struct frame *f, uint32_t *major)
{
    uint32_t up = f->parent == GW_TC_ROOT ? 0 : f->parent & 0xffff0000;

    *major = f->classid & 0xffff0000;
    if (*major && up && *major != up)
        return false;
    if (!*major)
        *major = up ? up : gw_tc_handle_of(t->root);
    if (f->parent && f->parent != GW_TC_ROOT)
        f->parent = *major | (f->parent & 0xffff);
    if (f->classid)
        f->classid = *major | (f->classid & 0xffff);
    else if (f->parent == GW_TC_ROOT)
        f->classid = *major;
    return true;
}

static int do_change(struct gw_tc_run *r, struct gw_tree *t, struct gw_qdisc *q,
                     const struct frame *f, const struct gw_tc_args *a)
{
    const struct gw_qdisc_ops *ops = q->ops;
    void *conf = calloc(1, ops->class_conf_bytes + 1);
    uint64_t given = 0;
    int rc = GW_TC_GOOD;

    if (!conf)
        return GW_TC_NO(r->err, GW_TC_KERNEL, "out of memory for a class");
    if (!ops->tc_class_parse)
        gw_params_read(ops->class_params, ops->class_param_count, conf, NULL, NULL, q->kind, NULL,
                       r->err);
    if (r->err->code == GW_OK && gw_tree_parse(q, a, conf, &given, r->err) == GW_OK &&
        ops->class_change(q, f->classid, f->parent, conf, given, r->ctx->now_ps, r->err) != GW_OK)
        rc = answers(r, f, "Invalid argument");
    else if (r->err->code != GW_OK)
        rc = gw_tc_words_exit(r->err->code);
    else
        t->touched = q;
    free(conf);
    return rc;
}

static int do_delete(struct gw_tc_run *r, struct gw_tree *t, struct gw_qdisc *q,
                     const struct frame *f)
{
    enum gw_status st;

    if (!q->ops->class_delete)
        return answers(r, f, "Operation not supported");
    if (gw_filter_uses(t, q->handle, f->classid))
        return answers(r, f, "Device or resource busy: a filter leads to it");
    t->purging = true;             /* what waits there is thrown out, no loss of the link    */
    st = q->ops->class_delete(q, f->classid, r->ctx->now_ps, r->err);
    t->purging = false;
    if (st != GW_OK)
        return answers(r, f, "Invalid argument");
    t->touched = q;
    return GW_TC_GOOD;
}

/* All that comes behind the words; @a was parsed already for a kind that is not this qdisc's. */
static int act(struct gw_tc_run *r, struct gw_tree *t, struct frame *f, struct gw_tc_args *a)
{
    struct gw_qdisc *q;
    struct gw_qclass *cl;
    uint32_t major;

    if (!complete(t, f, &major))
        return answers(r, f, "Invalid argument: its number and its parent's begin differently");
    q = gw_tree_find(t, major);
    if (!q)
        return answers(r, f, "No such file or directory: there is no such qdisc");
    if (!q->ops->class_find)
        return answers(r, f, "Invalid argument: the qdisc is classless");
    cl = f->classid ? q->ops->class_find(q, f->classid) : NULL;
    if (!cl && !(r->verb.flags & GW_TC_CREATE))
        return answers(r, f, "No such file or directory");
    if (r->verb.remove)
        return do_delete(r, t, q, f);
    if (cl && (r->verb.flags & GW_TC_EXCL))
        return answers(r, f, "File exists");
    if (!q->ops->class_change)
        return answers(r, f, "Operation not supported");
    if (!f->kind)
        return GW_TC_NO(r->err, GW_TC_KERNEL, "RTNETLINK answers: Invalid argument: no kind of class "
                        "stands behind \"%s\"", r->word[r->count - 1]);
    if (strcmp(f->kind, q->kind))
        return GW_TC_NO(r->err, GW_TC_KERNEL, "RTNETLINK answers: Invalid argument: \"%s\": the qdisc "
                        "is of another kind, %s", f->kind, q->kind);
    a->change = cl != NULL;
    return do_change(r, t, q, f, a);
}

/* Reads the words for their own sake, so that tc's refusals come before the kernel's. */
static int read_kind(struct gw_tc_run *r, struct gw_tree *t, const struct frame *f,
                     const struct gw_tc_args *a)
{
    struct gw_error inner = { 0 };
    struct gw_qdisc *q = gw_tree_make(t, f->kind, NULL, &inner);
    void *conf = q ? calloc(1, q->ops->class_conf_bytes + 1) : NULL;
    uint64_t given = 0;
    int rc;

    if (!q || !conf || !q->ops->class_change ||
        (!q->ops->tc_class_parse && !q->ops->class_param_count))
        rc = GW_TC_NO(r->err, GW_TC_WORDS, "Error: Qdisc \"%s\" is classless%s%s", f->kind,
                          q ? "" : ": ", q ? "" : inner.text);
    else
        rc = gw_tc_words_exit(gw_tree_parse(q, a, conf, &given, r->err));
    free(conf);
    if (q)
        t->host->qdisc_free(q);
    return rc;
}

int gw_tc_class(struct gw_tc_run *r)
{
    struct frame f = { 0 };
    struct gw_tc_args a = { .is_class = true };
    struct gw_tree *t;
    int rc = read_frame(r, &f);

    if (rc)
        return rc;
    if (!f.dev)
        return gw_tc_no_dev(r, f.kind);
    t = gw_tc_dev(r, f.dev);
    if (!t)
        return GW_TC_WORDS;
    a.word = r->word + r->at;
    a.count = r->count - r->at;
    a.dev_rate_bps = t->conf.rate_bps;
    a.host = t->host;
    a.data_dir = t->conf.data_dir;
    rc = f.kind ? read_kind(r, t, &f, &a) : GW_TC_GOOD;
    return rc ? rc : act(r, t, &f, &a);
}
