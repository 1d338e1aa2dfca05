/*
 * coll_ring - ring collectives
 *
 * All-reduce is a reduce-scatter of N-1 steps, each followed by an addition of the chunk that came,
 * and an all-gather of N-1 steps: every member sends 2 S (N-1)/N bytes, all of them to its right
 * neighbour (Patarasuk and Yuan, "Bandwidth optimal all-reduce algorithms for clusters of
 * workstations", JPDC 2009; the ring of NCCL and Horovod). After the reduce-scatter member i owns
 * chunk i. Broadcast is a chain from member 0 in N pipelined chunks; all-to-all sends S/N bytes
 * directly to each other member, the nearest to the right first.
 *
 * A step's send waits for the data that it forwards, not for the acknowledgement of the step
 * before. An addition waits for the rank's own vector. The result is there when the last chunk has
 * come; only the root of a broadcast waits for its sends instead.
 *
 * Left out: several rings (channels), chunks finer than S/N within a step, hierarchical rings.
 */
#include <gradwire/alg/collective.h>

/* One of the two halves of an all-reduce. */
struct ring_half {
    uint32_t back;               /* chunk sent in step s: me - back - s (mod size)             */
    uint32_t phase;              /* tells the halves' messages apart                           */
    bool     reduces;            /* what comes is added, not just kept                         */
};

static const struct ring_half ring_reduce = { 1, 0, true }, ring_gather = { 0, 1, false };

static uint32_t ring_right(const struct gw_coll *c)
{
    return (c->me + 1) % c->size;
}

static uint32_t ring_left(const struct gw_coll *c)
{
    return (c->me + c->size - 1) % c->size;
}

/*
 * N-1 steps of one half. *have: what must have ended before the first chunk can be sent;
 * afterwards what must have ended for this half's result. A chunk that comes in one step is the one
 * that is sent in the next.
 */
static enum gw_status ring_walk(const struct gw_coll *c, const struct ring_half *half,
                                gw_op_id *have, struct gw_error *err)
{
    uint32_t n = c->size;

    for (uint32_t s = 0; s + 1 < n; s++) {
        uint32_t out     = (c->me + 2 * n - half->back - s) % n;
        uint32_t in      = (out + n - 1) % n;
        uint64_t sent    = gw_coll_chunk(c->bytes, n, out), got = gw_coll_chunk(c->bytes, n, in);
        gw_op_id both[2] = { *have, 0 };

        if (sent && !gw_coll_send(c, ring_right(c), sent, half->phase, GW_CLASS_GRADIENT, have, 1))
            return gw_coll_nomem(c, err);
        if (!got)
            continue;
        both[1] = gw_coll_recv(c, ring_left(c), got, half->phase, GW_CLASS_GRADIENT);
        if (!both[1])
            return gw_coll_nomem(c, err);
        *have = half->reduces ? gw_coll_reduce(c, got, GW_RES_COMM, both, 2)
                              : gw_coll_join(c, both, 2);
        if (!*have)
            return gw_coll_nomem(c, err);
    }
    return GW_OK;
}

/* Chain from member 0 in `size` chunks, each forwarded as it comes. */
static enum gw_status ring_broadcast(const struct gw_coll *c, gw_op_id *done, struct gw_error *err)
{
    bool root = c->me == 0, tail = c->me + 1 == c->size;

    for (uint32_t i = 0; i < c->size; i++) {
        uint64_t bytes   = gw_coll_chunk(c->bytes, c->size, i);
        gw_op_id both[2] = { *done, 0 };

        if (!bytes)
            break;               /* chunks shrink with i: all further ones are empty, too      */
        if (!root) {
            both[1] = gw_coll_recv(c, ring_left(c), bytes, 0, GW_CLASS_PARAMETER);
            *done   = both[1] ? gw_coll_join(c, both, 2) : 0;
            if (!*done)
                return gw_coll_nomem(c, err);
        }
        if (tail)
            continue;
        both[1] = gw_coll_send(c, ring_right(c), bytes, 0, GW_CLASS_PARAMETER,
                               root ? &c->after : done, 1);
        if (both[1] && root)
            both[1] = *done = gw_coll_join(c, both, 2);
        if (!both[1])
            return gw_coll_nomem(c, err);
    }
    return GW_OK;
}

/* S/N bytes to each other member at once, the nearest to the right first. */
static enum gw_status ring_all_to_all(const struct gw_coll *c, gw_op_id *done, struct gw_error *err)
{
    uint64_t mine = gw_coll_chunk(c->bytes, c->size, c->me);

    for (uint32_t d = 1; d < c->size; d++) {
        uint32_t to    = (c->me + d) % c->size, from = (c->me + c->size - d) % c->size;
        uint64_t bytes = gw_coll_chunk(c->bytes, c->size, to);
        gw_op_id both[2] = { *done, 0 };

        if (bytes && !gw_coll_send(c, to, bytes, 0, GW_CLASS_ACTIVATION, &c->after, 1))
            return gw_coll_nomem(c, err);
        if (!mine)
            continue;
        both[1] = gw_coll_recv(c, from, mine, 0, GW_CLASS_ACTIVATION);
        *done   = both[1] ? gw_coll_join(c, both, 2) : 0;
        if (!*done)
            return gw_coll_nomem(c, err);
    }
    return GW_OK;
}

static enum gw_status ring_emit(const struct gw_coll *c, gw_op_id *done, struct gw_error *err)
{
    enum gw_status st;

    *done = gw_coll_join(c, &c->after, 1);
    if (!*done)
        return gw_coll_nomem(c, err);
    if (c->size < 2)
        return GW_OK;
    switch (c->op) {
    case GW_COLL_ALL_REDUCE:
        st = ring_walk(c, &ring_reduce, done, err);
        return st != GW_OK ? st : ring_walk(c, &ring_gather, done, err);
    case GW_COLL_REDUCE_SCATTER:
        return ring_walk(c, &ring_reduce, done, err);
    case GW_COLL_ALL_GATHER:
        return ring_walk(c, &ring_gather, done, err);
    case GW_COLL_BROADCAST:
        return ring_broadcast(c, done, err);
    case GW_COLL_ALL_TO_ALL:
        return ring_all_to_all(c, done, err);
    default:
        return gw_fail(err, GW_PARAM, "collective ring: operation number %d is unknown",
                       (int)c->op);
    }
}

static const struct gw_collective_ops ring_ops = {
    .supports = 1u << GW_COLL_ALL_REDUCE | 1u << GW_COLL_ALL_GATHER |
                1u << GW_COLL_REDUCE_SCATTER | 1u << GW_COLL_BROADCAST | 1u << GW_COLL_ALL_TO_ALL,
    .emit     = ring_emit,
};

GW_PLUGIN(gw_collective_ring) = {
    GW_PLUGIN_HEAD(GW_KIND_COLLECTIVE, ring_ops),
    .name    = "ring",
    .summary = "Ring all-reduce, all-gather, reduce-scatter; chain broadcast; direct all-to-all.",
    .source  = "Patarasuk and Yuan, JPDC 2009",
};
