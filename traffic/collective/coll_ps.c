/*
 * coll_ps - all-reduce through a synchronous parameter server
 *
 * `ps` is the sharded form: every member is worker and server, member i owns shard i (1/N of the
 * vector). Each worker pushes its other shards to their owners; an owner adds every push to its own
 * shard, one after the other on the server resource, and when all N-1 are in, it sends the sum back
 * to everybody (Li et al., "Scaling distributed machine learning with the parameter server", OSDI
 * 2014; BytePS co-located). Every member sends 2 S (N-1)/N bytes, as in a ring, but in two bursts.
 * `ps-single` has one server, co-located with member 0, that owns the whole vector: it receives and
 * sends S (N-1) bytes, the incast of the textbook.
 *
 * Left out: servers on hosts of their own, asynchronous and bounded-delay updates.
 */
#include <gradwire/alg/collective.h>

/* Bytes that member @i owns as a server. */
static uint64_t ps_shard(const struct gw_coll *c, bool single, uint32_t i)
{
    if (single)
        return i == 0 ? c->bytes : 0;
    return gw_coll_chunk(c->bytes, c->size, i);
}

/* The worker's half: pushes to the owners, sums back from them; *done grows by what comes. */
static enum gw_status ps_worker(const struct gw_coll *c, bool single, gw_op_id *done,
                                struct gw_error *err)
{
    for (uint32_t d = 1; d < c->size; d++) {
        uint32_t owner   = (c->me + d) % c->size;
        uint64_t bytes   = ps_shard(c, single, owner);
        gw_op_id both[2] = { *done, 0 };

        if (!bytes)
            continue;
        if (!gw_coll_send(c, owner, bytes, 0, GW_CLASS_GRADIENT, &c->after, 1))
            return gw_coll_nomem(c, err);
        both[1] = gw_coll_recv(c, owner, bytes, 1, GW_CLASS_PARAMETER);
        *done   = both[1] ? gw_coll_join(c, both, 2) : 0;
        if (!*done)
            return gw_coll_nomem(c, err);
    }
    return GW_OK;
}

/* The server's half: adds what was pushed, then answers everybody; *done grows by the sum. */
static enum gw_status ps_server(const struct gw_coll *c, bool single, gw_op_id *done,
                                struct gw_error *err)
{
    uint64_t bytes = ps_shard(c, single, c->me);
    gw_op_id sum = c->after, both[2];

    if (!bytes)
        return GW_OK;
    for (uint32_t d = 1; d < c->size; d++) {
        uint32_t worker = (c->me + c->size - d) % c->size;
        gw_op_id deps[2] = { c->after, gw_coll_recv(c, worker, bytes, 0, GW_CLASS_GRADIENT) };
        gw_op_id added   = deps[1] ? gw_coll_reduce(c, bytes, GW_RES_SERVER, deps, 2) : 0;

        both[0] = sum;
        both[1] = added;
        sum     = added ? gw_coll_join(c, both, 2) : 0;
        if (!sum)
            return gw_coll_nomem(c, err);
    }
    for (uint32_t d = 1; d < c->size; d++)
        if (!gw_coll_send(c, (c->me + d) % c->size, bytes, 1, GW_CLASS_PARAMETER, &sum, 1))
            return gw_coll_nomem(c, err);
    both[0] = *done;
    both[1] = sum;
    *done   = gw_coll_join(c, both, 2);
    return *done ? GW_OK : gw_coll_nomem(c, err);
}

static enum gw_status ps_emit_form(const struct gw_coll *c, bool single, gw_op_id *done,
                                   struct gw_error *err)
{
    enum gw_status st;

    if (c->op != GW_COLL_ALL_REDUCE)
        return gw_fail(err, GW_PARAM, "collective %s knows all-reduce only, not %s",
                       single ? "ps-single" : "ps", gw_coll_op_name(c->op));
    *done = gw_coll_join(c, &c->after, 1);
    if (!*done)
        return gw_coll_nomem(c, err);
    st = ps_worker(c, single, done, err);
    return st != GW_OK ? st : ps_server(c, single, done, err);
}

static enum gw_status ps_emit(const struct gw_coll *c, gw_op_id *done, struct gw_error *err)
{
    return ps_emit_form(c, false, done, err);
}

static const struct gw_collective_ops ps_ops = {
    .supports = 1u << GW_COLL_ALL_REDUCE,
    .emit     = ps_emit,
};

GW_PLUGIN(gw_collective_ps) = {
    GW_PLUGIN_HEAD(GW_KIND_COLLECTIVE, ps_ops),
    .name    = "ps",
    .summary = "All-reduce through a synchronous parameter server, one shard on each member.",
    .source  = "Li et al., OSDI 2014",
};

#ifndef GW_PLUGIN_SHARED             /* a shared object holds one plugin: the first */

static enum gw_status ps_emit_single(const struct gw_coll *c, gw_op_id *done, struct gw_error *err)
{
    return ps_emit_form(c, true, done, err);
}

static const struct gw_collective_ops ps_single_ops = {
    .supports = 1u << GW_COLL_ALL_REDUCE,
    .emit     = ps_emit_single,
};

GW_PLUGIN(gw_collective_ps_single) = {
    GW_PLUGIN_HEAD(GW_KIND_COLLECTIVE, ps_single_ops),
    .name    = "ps-single",
    .summary = "All-reduce through one synchronous parameter server on the first member.",
    .source  = "Li et al., OSDI 2014",
};
#endif
