/*
 * alg/program.h - small helpers that programs of ranks share
 *
 * Marks, lists of operations to wait for, and the map from host names to the ranks of a job whose
 * ranks come from its own keys (from, to, groups). All inline; everything goes through gw_host.
 */
#ifndef GRADWIRE_ALG_PROGRAM_H
#define GRADWIRE_ALG_PROGRAM_H

#include <gradwire/plugin.h>

/* Room for one more element of @size behind @count in the array *@at, in powers of two. */
static inline bool gw_array_room(const struct gw_host *h, void *at, uint32_t count, size_t size)
{
    void **array = at, *more;

    if (count & (count - 1))
        return true;
    more = h->resize(*array, (size_t)(count ? count * 2 : 1) * size);
    if (more)
        *array = more;
    return more != NULL;
}

/* Operations that something waits for. Zero-initialise; gw_oplist_free ends it. */
struct gw_oplist {
    gw_op_id *id;
    uint32_t  count, cap;
    bool      failed;            /* out of memory, or an operation could not be added          */
};

/* Appends @id; 0 means that op_add ran out of memory and is remembered in ->failed. */
static inline void gw_oplist_add(const struct gw_host *h, struct gw_oplist *l, gw_op_id id)
{
    if (!id || l->failed) {
        l->failed = true;
        return;
    }
    if (l->count == l->cap) {
        uint32_t  cap  = l->cap ? l->cap * 2 : 16;
        gw_op_id *more = h->resize(l->id, (size_t)cap * sizeof *more);

        if (!more) {
            l->failed = true;
            return;
        }
        l->id  = more;
        l->cap = cap;
    }
    l->id[l->count++] = id;
}

static inline void gw_oplist_free(const struct gw_host *h, struct gw_oplist *l)
{
    h->release(l->id);
    memset(l, 0, sizeof *l);
}

/* A mark of @iteration that waits for @after; 0 when out of memory. */
static inline gw_op_id gw_prog_mark(struct gw_program *p, enum gw_op_mark mark, uint32_t iteration,
                                    const gw_op_id *after, uint32_t count)
{
    struct gw_op op = { .kind = GW_OP_MARK, .mark = (uint8_t)mark, .iteration = iteration };

    return p->job->host->op_add(p, &op, after, count);
}

static inline enum gw_status gw_prog_nomem(const struct gw_program *p, struct gw_error *err)
{
    return gw_fail(err, GW_NOMEM, "job %s: out of memory for the operations of rank %u",
                   p->job->name, p->rank);
}

#define GW_BARRIER_COMM UINT32_MAX   /* communicator of the barrier's messages */

/*
 * gw_prog_barrier() - an operation that ends when all ranks have come to @iteration's barrier
 *
 * This rank comes to it when @after has ended. Rank 0 gathers a message of no bytes from every
 * other and then sends one to each; such messages take no time in the network, so that the barrier
 * orders the ranks and costs nothing. 0: out of memory.
 */
static inline gw_op_id gw_prog_barrier(struct gw_program *p, uint32_t iteration, gw_op_id after)
{
    const struct gw_host *h    = p->job->host;
    struct gw_op          send = { .kind = GW_OP_SEND, .iteration = iteration, .tag = iteration,
                                   .comm = GW_BARRIER_COMM };
    struct gw_op          recv = send;
    struct gw_oplist      all  = { 0 };
    gw_op_id              pass;

    recv.kind = GW_OP_RECV;
    if (p->rank)
        return h->op_add(p, &send, &after, 1) ? h->op_add(p, &recv, &after, 1) : 0;
    gw_oplist_add(h, &all, after);
    for (uint32_t r = 1; r < p->job->ranks; r++) {
        recv.peer = r;
        gw_oplist_add(h, &all, h->op_add(p, &recv, &after, 1));
    }
    pass = all.failed ? 0 : gw_prog_mark(p, GW_MARK_NONE, iteration, all.id, all.count);
    gw_oplist_free(h, &all);
    for (uint32_t r = 1; r < p->job->ranks && pass; r++) {
        send.peer = r;
        if (!h->op_add(p, &send, &pass, 1))
            return 0;
    }
    return pass;
}

/*
 * The begin of @iteration of a plain pattern: when @last, the end of the one before on this rank,
 * has ended on every rank. 0: out of memory.
 */
static inline gw_op_id gw_prog_begin(struct gw_program *p, uint32_t iteration, gw_op_id last)
{
    if (iteration) {
        last = gw_prog_barrier(p, iteration - 1, last);
        if (!last)
            return 0;
    }
    return gw_prog_mark(p, GW_MARK_ITER_BEGIN, iteration, &last, 1);
}

/*
 * One repetition of a plain pattern on one rank: everything begins at the iteration's begin, which
 * is when all ranks have ended the one before, and the iteration ends when all of the rank's
 * messages have. Every send has a connection of its own.
 */
struct gw_shot {
    struct gw_program *p;
    uint32_t         iteration;
    uint8_t          priority;
    gw_op_id         begin;
    struct gw_oplist wait;
};

static inline void gw_shot_begin(struct gw_shot *s, struct gw_program *p, uint32_t iteration,
                                 uint32_t priority, gw_op_id last)
{
    memset(s, 0, sizeof *s);
    s->p         = p;
    s->iteration = iteration;
    s->priority  = (uint8_t)priority;
    s->begin     = gw_prog_begin(p, iteration, last);
    gw_oplist_add(p->job->host, &s->wait, s->begin);
}

static inline struct gw_op gw_shot_op(const struct gw_shot *s, enum gw_op_kind kind, uint32_t peer,
                                      uint64_t bytes, uint32_t tag)
{
    struct gw_op op = {
        .kind = kind, .cls = GW_CLASS_OTHER, .priority = s->priority, .iteration = s->iteration,
        .peer = peer, .tag = tag, .bytes = bytes,
    };

    return op;
}

/* Sends @bytes to rank @to, @start_ps after @after has ended, on a fresh connection. */
static inline void gw_shot_send_after(struct gw_shot *s, uint32_t to, uint64_t bytes, uint32_t tag,
                                      uint64_t start_ps, gw_op_id after)
{
    const struct gw_host *h  = s->p->job->host;
    struct gw_op          op = gw_shot_op(s, GW_OP_SEND, to, bytes, tag);

    if (start_ps) {
        struct gw_op delay = gw_shot_op(s, GW_OP_DELAY, 0, 0, 0);

        delay.duration_ps = start_ps;
        after = h->op_add(s->p, &delay, &after, 1);
        if (!after)
            s->wait.failed = true;
    }
    op.flags = GW_OP_NEW_CONN;
    gw_oplist_add(h, &s->wait, s->wait.failed ? 0 : h->op_add(s->p, &op, &after, 1));
}

/* The same, @start_ps after the iteration's begin. */
static inline void gw_shot_send(struct gw_shot *s, uint32_t to, uint64_t bytes, uint32_t tag,
                                uint64_t start_ps)
{
    gw_shot_send_after(s, to, bytes, tag, start_ps, s->begin);
}

/* The operation that was added last, 0: it failed. */
static inline gw_op_id gw_shot_last(const struct gw_shot *s)
{
    return s->wait.failed || !s->wait.count ? 0 : s->wait.id[s->wait.count - 1];
}

static inline void gw_shot_recv(struct gw_shot *s, uint32_t from, uint64_t bytes, uint32_t tag)
{
    const struct gw_host *h  = s->p->job->host;
    struct gw_op          op = gw_shot_op(s, GW_OP_RECV, from, bytes, tag);

    gw_oplist_add(h, &s->wait, s->wait.failed ? 0 : h->op_add(s->p, &op, &s->begin, 1));
}

/* Ends the repetition; *last is its end mark, which the next one waits for. */
static inline enum gw_status gw_shot_end(struct gw_shot *s, gw_op_id *last, struct gw_error *err)
{
    struct gw_program *p = s->p;

    *last = s->wait.failed ? 0 : gw_prog_mark(p, GW_MARK_ITER_END, s->iteration, s->wait.id,
                                              s->wait.count);
    gw_oplist_free(p->job->host, &s->wait);
    return *last ? GW_OK : gw_prog_nomem(p, err);
}

/* Ranks by the names of their hosts. Zero-initialise, then gw_rankmap_open. */
struct gw_rankmap {
    uint32_t *rank_of_node;      /* by node index, GW_NONE: no rank there                      */
    uint32_t  nodes;             /* length of rank_of_node                                     */
    uint32_t *node;              /* by rank                                                    */
    uint32_t  count, cap;
    bool      fixed;             /* the user gave `ranks:`, no rank may be added               */
};

static inline void gw_rankmap_free(const struct gw_host *h, struct gw_rankmap *m)
{
    h->release(m->rank_of_node);
    h->release(m->node);
    memset(m, 0, sizeof *m);
}

/* Rank on node index @node, added if there is none; GW_NONE: out of memory. */
static inline uint32_t gw_rankmap_add(const struct gw_host *h, struct gw_rankmap *m, uint32_t node)
{
    if (node >= m->nodes) {
        uint32_t  n    = node < 32 ? 64 : node * 2;
        uint32_t *more = h->resize(m->rank_of_node, (size_t)n * sizeof *more);

        if (!more)
            return GW_NONE;
        for (uint32_t i = m->nodes; i < n; i++)
            more[i] = GW_NONE;
        m->rank_of_node = more;
        m->nodes        = n;
    }
    if (m->rank_of_node[node] != GW_NONE)
        return m->rank_of_node[node];
    if (m->count == m->cap) {
        uint32_t  cap  = m->cap ? m->cap * 2 : 16;
        uint32_t *more = h->resize(m->node, (size_t)cap * sizeof *more);

        if (!more)
            return GW_NONE;
        m->node = more;
        m->cap  = cap;
    }
    m->node[m->count] = node;
    return m->rank_of_node[node] = m->count++;
}

/* Takes over the ranks that the user gave with `ranks:`, if he did. */
static inline enum gw_status gw_rankmap_open(struct gw_job *job, struct gw_rankmap *m,
                                             struct gw_error *err)
{
    m->fixed = job->host->value_get(job->value, "ranks") != NULL;
    for (uint32_t r = 0; m->fixed && r < job->ranks; r++) {
        uint32_t rank = gw_rankmap_add(job->host, m, job->node[r]);

        if (rank == GW_NONE)
            return gw_fail(err, GW_NOMEM, "job %s: out of memory for its ranks", job->name);
        if (rank != r)
            return gw_fail(err, GW_PARAM, "job %s: ranks %u and %u are on the same host; %s",
                           job->name, rank, r, "this traffic names ranks by host, so give each "
                           "host once");
    }
    return GW_OK;
}

/*
 * gw_rankmap_name() - the rank of the host called @name; @where is the position in the sentence
 *
 * Without `ranks:` hosts become ranks in the order in which they are named.
 */
static inline enum gw_status gw_rankmap_name(struct gw_job *job, struct gw_rankmap *m,
                                             const char *name, const char *where, uint32_t *rank,
                                             struct gw_error *err)
{
    uint32_t node = job->host->node_by_name(job, name);

    if (node == GW_NONE)
        return gw_fail(err, GW_PARAM, "%s: the topology has no host called \"%s\"", where, name);
    if (m->fixed && (node >= m->nodes || m->rank_of_node[node] == GW_NONE))
        return gw_fail(err, GW_PARAM, "%s: host \"%s\" is not among the job's ranks", where, name);
    *rank = gw_rankmap_add(job->host, m, node);
    if (*rank == GW_NONE)
        return gw_fail(err, GW_NOMEM, "%s: out of memory for ranks", where);
    return GW_OK;
}

/* Tells the host the ranks, unless they came from it. The map keeps its memory. */
static inline enum gw_status gw_rankmap_close(struct gw_job *job, struct gw_rankmap *m,
                                              struct gw_error *err)
{
    if (m->fixed)
        return GW_OK;
    return job->host->job_set_ranks(job, m->node, m->count, err);
}

/* The text of scalar @v, marked used; a sentence if it is a list, a map or empty. */
static inline enum gw_status gw_value_text(const struct gw_host *h, struct gw_value *v,
                                           const char *what, const char **text,
                                           struct gw_error *err)
{
    char where[300];

    v->used = true;
    if (v->kind != GW_V_SCALAR || !v->text || !*v->text)
        return gw_fail(err, GW_PARAM, "%s: %s must be one word here",
                       h->value_where(v, where, sizeof where), what);
    *text = v->text;
    return GW_OK;
}

#endif
