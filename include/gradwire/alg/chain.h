/*
 * chain.h - what an iteration waited for last, and the messages behind that
 *
 * For an iteration that all ranks ended: the rank that ended last (the lowest of equals) waited
 * last for some message; that is the iteration's critical message. What made that message be sent
 * at last was the arrival of an earlier one (message.cause_message), and so on until a message
 * whose last cause was local work, or one of another iteration. All messages of this walk are the
 * iteration's chain; they follow each other in time, none begins before the one behind it ended.
 *
 * Both iterations and messages go by in order of job and iteration, one iteration in memory.
 */
#ifndef GRADWIRE_ALG_CHAIN_H
#define GRADWIRE_ALG_CHAIN_H

#include <gradwire/alg/iterations.h>

struct gw_arrival {                  /* a message of the iteration that is being walked         */
    uint64_t message, cause;
    uint32_t src, dst;               /* ranks                                                   */
    int64_t  post_ps, end_ps, cause_wait_ps;
};

struct gw_arrivals {                 /* sorted by message; zeroed: empty; free v                */
    struct gw_arrival *v;
    size_t n, room;
};

/* The messages in the order in which gw_arrivals_read() takes them; step once before the first. */
static inline sqlite3_stmt *gw_arrivals_query(struct sqlite3 *db, struct gw_error *err)
{
    return gw_db_query(db, "SELECT job, iteration, message, src_rank, dst_rank,"
                       " post_ps, end_ps, cause_message, cause_wait_ps FROM message"
                       " WHERE end_ps IS NOT NULL AND job IS NOT NULL AND iteration IS"
                       " NOT NULL ORDER BY job, iteration, message", err);
}

static inline struct gw_arrival *gw_arrivals_add(struct gw_arrivals *m)
{
    if (m->n == m->room) {
        size_t room = m->room ? 2 * m->room : 256;
        struct gw_arrival *more = (struct gw_arrival *)realloc(m->v, room * sizeof *more);

        if (!more)
            return NULL;
        m->v = more;
        m->room = room;
    }
    return &m->v[m->n++];
}

/* Whether the row of @st stands before (-1), in (0) or behind (1) iteration @x. */
static inline int gw_arrival_order(sqlite3_stmt *st, const struct gw_iteration_time *x)
{
    int64_t job = sqlite3_column_int64(st, 0), iteration = sqlite3_column_int64(st, 1);

    if (job != x->job)
        return job < x->job ? -1 : 1;
    return (iteration > x->iteration) - (iteration < x->iteration);
}

/* Takes the rows of iteration @x, skipping those before it. *rc: the last step's answer. */
static inline bool gw_arrivals_read(struct gw_arrivals *m, sqlite3_stmt *st, int *rc,
                                    const struct gw_iteration_time *x)
{
    m->n = 0;
    while (*rc == SQLITE_ROW && gw_arrival_order(st, x) <= 0) {
        struct gw_arrival *r = gw_arrival_order(st, x) == 0 ? gw_arrivals_add(m) : NULL;

        if (!r && gw_arrival_order(st, x) == 0)
            return false;
        if (r) {
            r->message = (uint64_t)sqlite3_column_int64(st, 2);
            r->src = (uint32_t)sqlite3_column_int64(st, 3);
            r->dst = (uint32_t)sqlite3_column_int64(st, 4);
            r->post_ps = sqlite3_column_int64(st, 5);
            r->end_ps = sqlite3_column_int64(st, 6);
            r->cause = (uint64_t)sqlite3_column_int64(st, 7);
            r->cause_wait_ps = sqlite3_column_int64(st, 8);
        }
        *rc = sqlite3_step(st);
    }
    return true;
}

/* NULL: not recorded, or of another iteration. */
static inline const struct gw_arrival *gw_arrival_find(const struct gw_arrivals *m,
                                                       uint64_t message)
{
    size_t low = 0, high = m->n;

    while (low < high) {
        size_t mid = low + (high - low) / 2;

        if (m->v[mid].message < message)
            low = mid + 1;
        else
            high = mid;
    }
    return low < m->n && m->v[low].message == message ? &m->v[low] : NULL;
}

/* The last message that iteration @x waited for; NULL: none, not recorded, or not whole. */
static inline const struct gw_arrival *gw_chain_end(const struct gw_arrivals *m,
                                                    const struct gw_iteration_time *x)
{
    return x->whole ? gw_arrival_find(m, x->last_message) : NULL;
}

/* The message behind @r; a cause that ends after what it caused was posted is none. NULL: no more.
 * No chain is longer than m->n. */
static inline const struct gw_arrival *gw_chain_before(const struct gw_arrivals *m,
                                                       const struct gw_arrival *r)
{
    const struct gw_arrival *before = gw_arrival_find(m, r->cause);

    return before && before->end_ps <= r->post_ps ? before : NULL;
}

#endif
