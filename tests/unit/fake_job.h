/*
 * fake_job.h - a small host for traffic plugins: records their operations, then plays them
 *
 * A job is made from YAML text over hosts h0, h1 ..; every rank's program is asked for all its
 * iterations; the operations can be looked at, matched, and played by a scheduler of its own: one
 * resource each for compute, reduction and server, one sending NIC per rank that serialises
 * messages first in, first out at a fixed rate, no delay, receivers never the bottleneck.
 */
#ifndef GW_TESTS_FAKE_JOB_H
#define GW_TESTS_FAKE_JOB_H

#include <gradwire/gradwire.h>
#include <stdlib.h>

#include "../../emu/core/doc.h"
#include "../../emu/core/registry.h"
#include "suite.h"

struct fake_op {
    struct gw_op op;
    uint32_t rank;
    gw_op_id *after;
    uint32_t  after_count, waits;    /* waits: of them, not ended                              */
    uint32_t *next;                  /* operations that wait for this one                      */
    uint32_t  next_count, next_cap;
    uint32_t  mate;                  /* the send of a recv and the other way round             */
    uint64_t  ready_ps, end_ps;
    bool      ready, ended;
};

struct fake_rank {
    struct gw_program p;
    uint32_t *op;                    /* by id - 1: index of the operation                      */
    uint32_t  ops, cap;
};

struct fake_job {
    struct gw_job       job;
    struct gw_host      host;
    struct gw_registry *registry;
    struct gw_doc      *doc;
    const struct gw_plugin *plugin;
    uint32_t  hosts, radix;
    uint32_t *node;                  /* of each rank                                           */
    struct fake_rank   *rank;
    struct fake_op     *op;
    uint32_t  ops, cap;
    struct gw_frame_source frames[8];
    uint32_t  frame_count;
    struct gw_error     err;
};

#define FAKE_NODE 10u                /* host i is node FAKE_NODE + i                           */

static struct fake_job *fake_of(struct gw_job *job)
{
    return GW_CONTAINER(job, struct fake_job, job);
}

static gw_op_id fake_op_add(struct gw_program *p, const struct gw_op *op, const gw_op_id *after,
                            uint32_t count)
{
    struct fake_job  *f = fake_of(p->job);
    struct fake_rank *r = &f->rank[p->rank];
    struct fake_op   *o;

    if (f->ops == f->cap) {
        f->cap = f->cap ? 2 * f->cap : 1024;
        f->op  = realloc(f->op, f->cap * sizeof *f->op);
    }
    if (r->ops == r->cap) {
        r->cap = r->cap ? 2 * r->cap : 64;
        r->op  = realloc(r->op, r->cap * sizeof *r->op);
    }
    o  = &f->op[f->ops];
    *o = (struct fake_op){ .op = *op, .rank = p->rank, .mate = GW_NONE };
    o->after = malloc((count + 1) * sizeof *o->after);
    for (uint32_t i = 0; i < count; i++)
        if (after[i])
            o->after[o->after_count++] = after[i];
    r->op[r->ops++] = f->ops++;
    return r->ops;
}

static enum gw_status fake_set_ranks(struct gw_job *job, const uint32_t *node, uint32_t count,
                                     struct gw_error *err)
{
    struct fake_job *f = fake_of(job);

    (void)err;
    free(f->node);
    f->node = malloc(count * sizeof *f->node);
    memcpy(f->node, node, count * sizeof *f->node);
    job->node  = f->node;
    job->ranks = count;
    return GW_OK;
}

static uint32_t fake_node_by_name(struct gw_job *job, const char *name)
{
    unsigned n;
    int      end = 0;

    if (sscanf(name, "h%u%n", &n, &end) != 1 || name[end] || n >= fake_of(job)->hosts)
        return GW_NONE;
    return FAKE_NODE + n;
}

static uint32_t fake_host_count(struct gw_job *job)
{
    return fake_of(job)->hosts;
}

static uint32_t fake_host_node(struct gw_job *job, uint32_t i)
{
    (void)job;
    return FAKE_NODE + i;
}

static uint32_t fake_radix(struct gw_job *job)
{
    return fake_of(job)->radix;
}

static enum gw_status fake_frames(struct gw_program *p, const struct gw_frame_source *s,
                                  struct gw_error *err)
{
    struct fake_job *f = fake_of(p->job);

    if (f->frame_count == GW_ARRAY_LEN(f->frames))
        return gw_fail(err, GW_BUG, "too many sources for the test");
    f->frames[f->frame_count++] = *s;
    return GW_OK;
}

static enum gw_status fake_frame_check(struct gw_job *job, uint32_t from,
                                       const struct gw_frame_source *s, const char *where,
                                       struct gw_error *err)
{
    if (from < job->ranks && s->to < job->ranks)
        return GW_OK;
    return gw_fail(err, GW_BUG, "%s: frames before the ranks were set", where);
}

static void fake_close(struct fake_job *f)
{
    for (uint32_t i = 0; f->rank && i < f->job.ranks; i++) {
        free(f->rank[i].p.priv);
        free(f->rank[i].op);
    }
    if (f->job.priv && f->job.ops->job_fini)
        f->job.ops->job_fini(&f->job);
    for (uint32_t i = 0; i < f->ops; i++) {
        free(f->op[i].after);
        free(f->op[i].next);
    }
    free(f->job.priv);
    free((void *)f->job.conf);
    free(f->rank);
    free(f->op);
    free(f->node);
    if (f->doc)
        gw_doc_free(f->doc);
    if (f->registry)
        gw_registry_free(f->registry);
    free(f);
}

/* Reads options and starts the plugin; f->err says what went wrong. */
static void fake_init(struct fake_job *f)
{
    static const char *const skip[] = { "traffic", "ranks", "iterations", "name", NULL };
    struct gw_value *v = gw_doc_root(f->doc), *it;
    const struct gw_entry *e = gw_registry_find(f->registry, GW_KIND_TRAFFIC,
                                                gw_value_get(v, "traffic")->text, NULL, &f->err);
    uint32_t all[256];

    if (!e)
        return;
    f->plugin         = e->plugin;
    f->job.ops        = e->ops;
    f->job.value      = v;
    f->job.conf       = calloc(1, f->job.ops->conf_bytes + 1);
    f->job.priv       = calloc(1, f->job.ops->job_bytes + 1);
    f->job.iterations = 1;
    if ((it = gw_value_get(v, "iterations")))
        f->job.iterations = (uint32_t)strtoul(it->text, NULL, 10);
    for (uint32_t i = 0; i < f->hosts; i++)
        all[i] = FAKE_NODE + i;
    if (!f->job.ops->sets_ranks || gw_value_get(v, "ranks"))
        fake_set_ranks(&f->job, all, f->hosts, &f->err);
    if (gw_params_read(f->plugin->params, f->plugin->param_count, (void *)f->job.conf, v, skip,
                       "the job", &f->job.given, &f->err) != GW_OK)
        return;
    if (f->job.ops->job_init)
        f->job.ops->job_init(&f->job, &f->err);
}

/* A job of the YAML map @text over @hosts hosts with all its programs; ask f->err. */
static struct fake_job *fake_open(const char *text, uint32_t hosts, uint32_t radix)
{
    struct fake_job *f = calloc(1, sizeof *f);

    f->hosts    = hosts;
    f->radix    = radix;
    f->registry = gw_registry_new(false, &f->err);
    f->doc      = gw_doc_parse(text, strlen(text), "job", &f->err);
    if (!f->registry || !f->doc)
        return f;
    f->host               = *gw_registry_host(f->registry);
    f->host.op_add        = fake_op_add;
    f->host.job_set_ranks = fake_set_ranks;
    f->host.node_by_name  = fake_node_by_name;
    f->host.host_count    = fake_host_count;
    f->host.host_node     = fake_host_node;
    f->host.topo_radix    = fake_radix;
    f->host.frame_source  = fake_frames;
    f->host.frame_check   = fake_frame_check;
    f->job.host = &f->host;
    f->job.name = "test";
    f->job.seed = 1;
    fake_init(f);
    if (f->err.code != GW_OK)
        return f;
    f->rank = calloc(f->job.ranks, sizeof *f->rank);
    for (uint32_t r = 0; r < f->job.ranks; r++) {
        f->rank[r].p = (struct gw_program){ .job = &f->job, .rank = r };
        f->rank[r].p.priv = calloc(1, f->job.ops->rank_bytes + 1);
    }
    for (uint32_t i = 0; i < f->job.iterations; i++)
        for (uint32_t r = 0; r < f->job.ranks && f->err.code == GW_OK; r++)
            f->job.ops->next(&f->rank[r].p, i, &f->err);
    return f;
}

/* Same as fake_open, but a failure is a failed test. */
static struct fake_job *fake_must(const char *text, uint32_t hosts, uint32_t radix)
{
    struct fake_job *f = fake_open(text, hosts, radix);

    CHECK_ROW(f->err.code == GW_OK, "%s: %s", text, f->err.text);
    return f;
}

/* ---- matching ----------------------------------------------------------------------------- */

struct fake_key {
    uint32_t comm, src, dst, tag, index;     /* index: order, per key and kind                 */
};

static int fake_key_cmp(const void *a, const void *b)
{
    const struct fake_key *x = a, *y = b;

    if (x->comm != y->comm)
        return x->comm < y->comm ? -1 : 1;
    if (x->src != y->src)
        return x->src < y->src ? -1 : 1;
    if (x->dst != y->dst)
        return x->dst < y->dst ? -1 : 1;
    if (x->tag != y->tag)
        return x->tag < y->tag ? -1 : 1;
    return x->index < y->index ? -1 : x->index > y->index;
}

/* All operations of @kind, sorted by key, then order. */
static struct fake_key *fake_keys(const struct fake_job *f, enum gw_op_kind kind, uint32_t *count)
{
    struct fake_key *k = malloc((f->ops + 1) * sizeof *k);

    *count = 0;
    for (uint32_t i = 0; i < f->ops; i++) {
        const struct fake_op *o = &f->op[i];
        bool send = kind == GW_OP_SEND;

        if (o->op.kind != kind)
            continue;
        k[(*count)++] = (struct fake_key){ o->op.comm, send ? o->rank : o->op.peer,
                                           send ? o->op.peer : o->rank, o->op.tag, i };
    }
    qsort(k, *count, sizeof *k, fake_key_cmp);
    return k;
}

/* Pairs sends and recvs by (communicator, source, destination, tag, order); false: they differ.
 * Messages of no bytes are the barrier's. */
static bool fake_match(struct fake_job *f)
{
    uint32_t sends, recvs;
    struct fake_key *s = fake_keys(f, GW_OP_SEND, &sends), *r = fake_keys(f, GW_OP_RECV, &recvs);
    bool same = sends == recvs;

    for (uint32_t i = 0; i < sends && same; i++) {
        same = s[i].comm == r[i].comm && s[i].src == r[i].src && s[i].dst == r[i].dst &&
               s[i].tag == r[i].tag && f->op[s[i].index].op.bytes == f->op[r[i].index].op.bytes &&
               (f->op[s[i].index].op.bytes > 0 || s[i].comm == UINT32_MAX) && s[i].src != s[i].dst;
        f->op[s[i].index].mate = r[i].index;
        f->op[r[i].index].mate = s[i].index;
    }
    free(s);
    free(r);
    return same;
}

/* Bytes that rank @src sends to rank @dst in all. */
static uint64_t fake_bytes(const struct fake_job *f, uint32_t src, uint32_t dst)
{
    uint64_t sum = 0;

    for (uint32_t i = 0; i < f->ops; i++)
        if (f->op[i].op.kind == GW_OP_SEND && f->op[i].rank == src && f->op[i].op.peer == dst)
            sum += f->op[i].op.bytes;
    return sum;
}

/* ---- playing ------------------------------------------------------------------------------ */

struct fake_play {
    struct fake_job *f;
    uint32_t *heap, count;           /* ready operations, earliest first                       */
    uint64_t *busy_ps;               /* by rank: resources, then the NIC                       */
    uint64_t  rate_bps;
    uint32_t  ended;
};

static bool fake_before(const struct fake_job *f, uint32_t a, uint32_t b)
{
    if (f->op[a].ready_ps != f->op[b].ready_ps)
        return f->op[a].ready_ps < f->op[b].ready_ps;
    return a < b;
}

static void fake_push(struct fake_play *y, uint32_t x)
{
    uint32_t i = y->count++;

    for (; i && fake_before(y->f, x, y->heap[(i - 1) / 2]); i = (i - 1) / 2)
        y->heap[i] = y->heap[(i - 1) / 2];
    y->heap[i] = x;
}

static uint32_t fake_pop(struct fake_play *y)
{
    uint32_t top = y->heap[0], x = y->heap[--y->count], i = 0;

    for (uint32_t c; (c = 2 * i + 1) < y->count; i = c) {
        if (c + 1 < y->count && fake_before(y->f, y->heap[c + 1], y->heap[c]))
            c++;
        if (!fake_before(y->f, y->heap[c], x))
            break;
        y->heap[i] = y->heap[c];
    }
    y->heap[i] = x;
    return top;
}

static void fake_release(struct fake_play *y, uint32_t x, uint64_t now_ps)
{
    struct fake_op *o = &y->f->op[x];

    if (o->ready_ps < now_ps)
        o->ready_ps = now_ps;
    if (--o->waits == 0)
        fake_push(y, x);
}

static void fake_end(struct fake_play *y, uint32_t x, uint64_t now_ps)
{
    struct fake_op *o = &y->f->op[x];

    o->ended  = true;
    o->end_ps = now_ps;
    y->ended++;
    for (uint32_t i = 0; i < o->next_count; i++)
        fake_release(y, o->next[i], now_ps);
}

/* Starts operation @x, which is ready. A recv has waited for its send as well. */
static void fake_start(struct fake_play *y, uint32_t x)
{
    struct fake_op *o = &y->f->op[x];
    uint64_t *busy, duration_ps = 0, end_ps = o->ready_ps;

    if (o->op.kind == GW_OP_COMPUTE || o->op.kind == GW_OP_SEND) {
        bool send = o->op.kind == GW_OP_SEND;

        busy = &y->busy_ps[o->rank * (GW_RES_COUNT + 1) + (send ? GW_RES_COUNT : o->op.resource)];
        duration_ps = send ? gw_mul_div(o->op.bytes * 8, GW_PS_PER_S, y->rate_bps)
                           : o->op.duration_ps;
        end_ps = *busy = (*busy > end_ps ? *busy : end_ps) + duration_ps;
        if (send)
            fake_release(y, o->mate, end_ps);
    } else if (o->op.kind == GW_OP_DELAY) {
        end_ps += o->op.duration_ps;
    }
    fake_end(y, x, end_ps);
}

static void fake_link(struct fake_job *f)
{
    for (uint32_t i = 0; i < f->ops; i++) {
        struct fake_op *o = &f->op[i];

        o->waits = 1 + (o->op.kind == GW_OP_RECV);       /* released below; recvs by sends      */
        for (uint32_t k = 0; k < o->after_count; k++) {
            struct fake_op *b = &f->op[f->rank[o->rank].op[o->after[k] - 1]];

            if (b->next_count == b->next_cap) {
                b->next_cap = b->next_cap ? 2 * b->next_cap : 4;
                b->next     = realloc(b->next, b->next_cap * sizeof *b->next);
            }
            b->next[b->next_count++] = i;
            o->waits++;
        }
    }
}

/* Plays everything; the time of the last end, or GW_NEVER if something never ends. Once per job. */
static uint64_t fake_play(struct fake_job *f, uint64_t rate_bps)
{
    struct fake_play y = { .f = f, .rate_bps = rate_bps };
    uint64_t last_ps = 0;

    if (!fake_match(f))
        return GW_NEVER;
    y.heap    = malloc((f->ops + 1) * sizeof *y.heap);
    y.busy_ps = calloc((size_t)f->job.ranks * (GW_RES_COUNT + 1), sizeof *y.busy_ps);
    fake_link(f);
    for (uint32_t i = 0; i < f->ops; i++)
        fake_release(&y, i, 0);
    while (y.count)
        fake_start(&y, fake_pop(&y));
    for (uint32_t i = 0; i < f->ops; i++)
        if (f->op[i].end_ps > last_ps)
            last_ps = f->op[i].end_ps;
    free(y.heap);
    free(y.busy_ps);
    return y.ended == f->ops ? last_ps : GW_NEVER;
}

/* End of mark @mark of @iteration (and @collective, if not 0) on @rank, after playing. */
static inline uint64_t fake_mark_ps(const struct fake_job *f, uint32_t rank, enum gw_op_mark mark,
                                    uint32_t iteration, uint32_t collective)
{
    for (uint32_t i = 0; i < f->ops; i++)
        if (f->op[i].op.kind == GW_OP_MARK && f->op[i].rank == rank && f->op[i].op.mark == mark &&
            f->op[i].op.iteration == iteration && f->op[i].op.collective == collective)
            return f->op[i].end_ps;
    return GW_NEVER;
}

/* Number of marks of one kind on @rank. */
static inline uint32_t fake_marks(const struct fake_job *f, uint32_t rank, enum gw_op_mark mark)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < f->ops; i++)
        n += f->op[i].op.kind == GW_OP_MARK && f->op[i].rank == rank && f->op[i].op.mark == mark;
    return n;
}

#endif
