/*
 * alg/collective.h - what collective algorithms share: chunks, wire bytes, additions, messages
 *
 * A vector of S bytes is split into N chunks whose sizes differ by at most one byte and add up to S
 * exactly; a chunk of no bytes is neither sent nor received, and both ends know that by the same
 * arithmetic. Compression divides what goes over the wire (rounded up), never what is added.
 */
#ifndef GRADWIRE_ALG_COLLECTIVE_H
#define GRADWIRE_ALG_COLLECTIVE_H

#include <gradwire/plugin.h>

/* Bytes of chunk @i when @bytes are split over @n. */
static inline uint64_t gw_coll_chunk(uint64_t bytes, uint32_t n, uint32_t i)
{
    return bytes / n + (i < bytes % n);
}

/* Bytes on the wire for @bytes of payload: bytes / compression, rounded up. */
static inline uint64_t gw_coll_wire(const struct gw_coll *c, uint64_t bytes)
{
    long double x;
    uint64_t    n;

    if (!(c->compression > 1.0))
        return bytes;
    x = (long double)bytes / (long double)c->compression;
    n = (uint64_t)x;
    return n < x ? n + 1 : n;
}

/*
 * gw_cost_ps() - time to add a vector of @bytes, in ps
 *
 * Linear between rows, flat below the first row, the slope of the last two rows beyond the last.
 * NULL or an empty table cost nothing. Rows ascend by bytes.
 */
static inline uint64_t gw_cost_ps(const struct gw_cost_table *t, uint64_t bytes)
{
    const struct gw_cost_row *lo, *hi;
    double s;
    uint32_t i = 1;

    if (!t || !t->count || !bytes)
        return 0;
    if (t->count == 1 || (double)bytes <= t->row[0].bytes)
        return (uint64_t)(t->row[0].seconds * 1e12 + 0.5);
    while (i + 1 < t->count && (double)bytes > t->row[i].bytes)
        i++;
    lo = &t->row[i - 1];
    hi = &t->row[i];
    s  = lo->seconds +
        ((double)bytes - lo->bytes) * (hi->seconds - lo->seconds) / (hi->bytes - lo->bytes);
    return s > 0 ? (uint64_t)(s * 1e12 + 0.5) : 0;
}

/* Fields that all operations of an instance have. */
static inline struct gw_op gw_coll_op(const struct gw_coll *c, enum gw_op_kind kind,
                                      enum gw_op_class cls)
{
    struct gw_op op = {
        .kind = kind, .cls = (uint8_t)cls, .priority = c->priority, .layer = c->layer,
        .iteration = c->iteration, .collective = c->collective, .comm = c->comm,
    };

    return op;
}

/* Tag of a message of phase 0 or 1; both ends compute the same. */
static inline uint32_t gw_coll_tag(const struct gw_coll *c, uint32_t phase)
{
    return c->collective * 2 + phase;
}

/* Sends @bytes of payload (not 0) to member @to when @after has ended; 0: out of memory. */
static inline gw_op_id gw_coll_send(const struct gw_coll *c, uint32_t to, uint64_t bytes,
                                    uint32_t phase, enum gw_op_class cls, const gw_op_id *after,
                                    uint32_t count)
{
    const struct gw_host *h  = c->program->job->host;
    struct gw_op          op = gw_coll_op(c, GW_OP_SEND, cls);
    gw_op_id              overhead;

    if (c->message_overhead_ps) {
        struct gw_op cost = gw_coll_op(c, GW_OP_COMPUTE, cls);

        cost.resource    = GW_RES_COMM;
        cost.duration_ps = c->message_overhead_ps;
        overhead = h->op_add(c->program, &cost, after, count);
        if (!overhead)
            return 0;
        after = &overhead;
        count = 1;
    }
    op.peer  = c->member[to];
    op.tag   = gw_coll_tag(c, phase);
    op.bytes = gw_coll_wire(c, bytes);
    return h->op_add(c->program, &op, after, count);
}

/* Receives @bytes of payload (not 0) from member @from; 0: out of memory. */
static inline gw_op_id gw_coll_recv(const struct gw_coll *c, uint32_t from, uint64_t bytes,
                                    uint32_t phase, enum gw_op_class cls)
{
    struct gw_op op = gw_coll_op(c, GW_OP_RECV, cls);

    op.peer  = c->member[from];
    op.tag   = gw_coll_tag(c, phase);
    op.bytes = gw_coll_wire(c, bytes);
    return c->program->job->host->op_add(c->program, &op, NULL, 0);
}

/* Adds a vector of @bytes on @resource when @after has ended; a mark if that costs nothing. */
static inline gw_op_id gw_coll_reduce(const struct gw_coll *c, uint64_t bytes,
                                      enum gw_op_resource resource, const gw_op_id *after,
                                      uint32_t count)
{
    struct gw_op op = gw_coll_op(c, GW_OP_COMPUTE, GW_CLASS_REDUCE);

    op.resource    = (uint8_t)resource;
    op.duration_ps = gw_cost_ps(c->reduce, bytes);
    if (!op.duration_ps)
        op.kind = GW_OP_MARK;
    return c->program->job->host->op_add(c->program, &op, after, count);
}

/* An operation that ends when @after have; takes no time. */
static inline gw_op_id gw_coll_join(const struct gw_coll *c, const gw_op_id *after, uint32_t count)
{
    struct gw_op op = gw_coll_op(c, GW_OP_MARK, GW_CLASS_OTHER);

    return c->program->job->host->op_add(c->program, &op, after, count);
}

/* The sentence for an operation that an algorithm does not know, and for lack of memory. */
static inline enum gw_status gw_coll_nomem(const struct gw_coll *c, struct gw_error *err)
{
    return gw_fail(err, GW_NOMEM, "job %s: out of memory for collective %u of rank %u",
                   c->program->job->name, c->collective, c->program->rank);
}

static inline const char *gw_coll_op_name(enum gw_coll_op op)
{
    static const char *const name[GW_COLL_OP_COUNT] = {
        [GW_COLL_ALL_REDUCE]     = "all-reduce",
        [GW_COLL_ALL_GATHER]     = "all-gather",
        [GW_COLL_REDUCE_SCATTER] = "reduce-scatter",
        [GW_COLL_BROADCAST]      = "broadcast",
        [GW_COLL_ALL_TO_ALL]     = "all-to-all",
    };

    return (unsigned)op < GW_COLL_OP_COUNT ? name[op] : "?";
}

#endif
