/*
 * an_critical - which flow held up which iteration, and which links and rank pairs do it most
 *
 * An iteration's critical message is the last one that it waited for, its critical flow the one of
 * the message's flows (one per stream) that ended last. The messages that led to it, one caused by
 * the arrival of the one before, are the iteration's chain (gradwire/alg/chain.h). The last flow
 * alone says little where many equal steps follow each other, as in a ring; so links and pairs are
 * ranked by the time that messages of chains took on them, from being ready to their last byte's
 * arrival. A message counts for one link, the critical one of its last flow.
 *
 * A flow's critical link is the link of its path with the lowest rate; among equals the one with
 * the highest utilisation, then the longest mean wait, then the lowest number.
 *
 * Left out: slack, the second-longest chain (what would come next if this flow were faster).
 * Where messages were not kept (records: {flows: sample} or summary) the cells are empty.
 */
#include <gradwire/alg/chain.h>
#include <gradwire/gradwire.h>

struct hop {                         /* a message on some iteration's chain                     */
    uint64_t message;
    size_t   iteration;              /* index in times.v                                        */
    uint32_t job, src, dst;          /* ranks                                                   */
    bool     critical;               /* the last of its chain                                   */
    bool     has_flow;
    uint32_t conn, link;             /* link: GW_NONE if not known                              */
    int64_t  post_ps, end_ps, cause_wait_ps;
    uint64_t flow;
    int64_t  flow_start_ps, flow_end_ps, ideal_ps;
};

struct critical {
    struct gw_analysis *a;
    struct gw_iteration_times times;
    struct hop *hop;                 /* chains in the order of times.v, each from its end       */
    size_t hops, room;
    size_t *first;                   /* of iteration i; hops if it has none; count + 1 entries  */
    sqlite3_stmt *link, *node, *job;
};

/* ---- walking back ------------------------------------------------------------------------- */

static struct hop *hop_add(struct critical *c)
{
    if (c->hops == c->room) {
        size_t room = c->room ? 2 * c->room : 256;
        struct hop *more = realloc(c->hop, room * sizeof *more);

        if (!more)
            return NULL;
        c->hop = more;
        c->room = room;
    }
    memset(&c->hop[c->hops], 0, sizeof *c->hop);
    return &c->hop[c->hops++];
}

/* Adds the chain of iteration @i; false: out of memory. */
static bool chain_add(struct critical *c, size_t i, const struct gw_arrivals *m)
{
    const struct gw_iteration_time *x = &c->times.v[i];
    const struct gw_arrival *r = gw_chain_end(m, x);

    for (size_t n = 0; r && n < m->n; n++, r = gw_chain_before(m, r)) {
        struct hop *h = hop_add(c);

        if (!h)
            return false;
        h->message = r->message;
        h->iteration = i;
        h->job = x->job;
        h->critical = n == 0;
        h->link = GW_NONE;
        h->src = r->src;
        h->dst = r->dst;
        h->post_ps = r->post_ps;
        h->end_ps = r->end_ps;
        h->cause_wait_ps = r->cause_wait_ps;
    }
    return true;
}

static enum gw_status chains_read(struct critical *c, struct gw_error *err)
{
    sqlite3_stmt *st = gw_arrivals_query(c->a->db, err);
    struct gw_arrivals m = { 0 };
    int rc = st ? sqlite3_step(st) : SQLITE_ERROR;
    bool ok = (c->first = calloc(c->times.n + 1, sizeof *c->first)) != NULL;

    for (size_t i = 0; ok && st && i < c->times.n; i++) {
        c->first[i] = c->hops;
        ok = gw_arrivals_read(&m, st, &rc, &c->times.v[i]) && chain_add(c, i, &m);
    }
    free(m.v);
    if (ok)
        c->first[c->times.n] = c->hops;
    else
        gw_fail(err, GW_NOMEM, "analysis critical: out of memory");
    if (st && gw_db_done(st, rc, err) == GW_OK && ok)
        return GW_OK;
    return ok ? GW_IO : GW_NOMEM;
}

/* ---- flows and links of the chains -------------------------------------------------------- */

static int by_message(const void *a, const void *b)
{
    const struct hop *x = *(struct hop *const *)a, *y = *(struct hop *const *)b;

    return (x->message > y->message) - (x->message < y->message);
}

static struct hop *find_hop(struct hop **sorted, size_t n, uint64_t message)
{
    size_t low = 0, high = n;

    while (low < high) {
        size_t mid = low + (high - low) / 2;

        if (sorted[mid]->message < message)
            low = mid + 1;
        else
            high = mid;
    }
    return low < n && sorted[low]->message == message ? sorted[low] : NULL;
}

/* One pass over all flows: flows have no index by message, which would cost every run. */
static enum gw_status flows_scan(struct critical *c, struct hop **sorted, struct gw_error *err)
{
    sqlite3_stmt *st = gw_db_query(c->a->db, "SELECT message, flow, conn, start_ps, end_ps,"
                                   " ideal_ps FROM flow WHERE end_ps IS NOT NULL", err);
    int rc;

    if (!st)
        return GW_IO;
    while ((rc = sqlite3_step(st)) == SQLITE_ROW) {
        struct hop *h = find_hop(sorted, c->hops, (uint64_t)sqlite3_column_int64(st, 0));
        int64_t end = sqlite3_column_int64(st, 4);

        if (!h || (h->has_flow && end <= h->flow_end_ps))
            continue;
        h->has_flow = true;
        h->flow = (uint64_t)sqlite3_column_int64(st, 1);
        h->conn = (uint32_t)sqlite3_column_int64(st, 2);
        h->flow_start_ps = sqlite3_column_int64(st, 3);
        h->flow_end_ps = end;
        h->ideal_ps = sqlite3_column_int64(st, 5);
    }
    return gw_db_done(st, rc, err);
}

/* A message may end several chains of one record only once, so each id stands in one hop. */
static enum gw_status flows_read(struct critical *c, struct gw_error *err)
{
    struct hop **sorted = malloc((c->hops + 1) * sizeof *sorted);
    enum gw_status code;

    if (!sorted)
        return gw_fail(err, GW_NOMEM, "analysis critical: out of memory");
    for (size_t i = 0; i < c->hops; i++)
        sorted[i] = &c->hop[i];
    if (c->hops)
        qsort(sorted, c->hops, sizeof *sorted, by_message);
    code = c->hops ? flows_scan(c, sorted, err) : GW_OK;
    free(sorted);
    for (size_t i = 0; code == GW_OK && i < c->hops; i++) {
        struct hop *h = &c->hop[i];

        sqlite3_reset(c->link);
        sqlite3_bind_int64(c->link, 1, h->conn);
        if (h->has_flow && sqlite3_step(c->link) == SQLITE_ROW)
            h->link = (uint32_t)sqlite3_column_int64(c->link, 0);
    }
    return code;
}

/* ---- names -------------------------------------------------------------------------------- */

/* A text by one or two keys; lives until the next call with the same statement. */
static const char *name_of(sqlite3_stmt *st, int64_t key, int64_t second)
{
    sqlite3_reset(st);
    sqlite3_bind_int64(st, 1, key);
    if (sqlite3_bind_parameter_count(st) > 1)
        sqlite3_bind_int64(st, 2, second);
    return sqlite3_step(st) == SQLITE_ROW ? (const char *)sqlite3_column_text(st, 0) : NULL;
}

/* "host (rank 3)" without the host where ranks are not recorded. */
static struct gw_cell rank_cell(struct critical *c, uint32_t job, uint32_t rank, char *buf,
                                size_t n)
{
    const char *name = name_of(c->node, job, rank);

    if (name)
        snprintf(buf, n, "%u %s", rank, name);
    else
        snprintf(buf, n, "%u", rank);
    return gw_cell_text(buf);
}

/* ---- the table of iterations -------------------------------------------------------------- */

/* Five cells: message, flow, link, completion time, slowdown. */
static void flow_cells(const struct hop *h, sqlite3_stmt *names, struct gw_cell *row)
{
    row[0] = h ? gw_cell_int((int64_t)h->message) : gw_cell_null();
    row[1] = h && h->has_flow ? gw_cell_int((int64_t)h->flow) : gw_cell_null();
    row[2] = gw_cell_text(h && h->link != GW_NONE ? name_of(names, h->link, 0) : NULL);
    row[3] = row[4] = gw_cell_null();
    if (!h || !h->has_flow)
        return;
    row[3] = gw_cell_real(gw_ps_to_s(h->flow_end_ps - h->flow_start_ps));
    if (h->ideal_ps)
        row[4] = gw_cell_real((double)(h->flow_end_ps - h->flow_start_ps) / (double)h->ideal_ps);
}

static enum gw_status iteration_row(struct critical *c, struct gw_table *t, sqlite3_stmt *names,
                                    size_t i)
{
    const struct gw_iteration_time *x = &c->times.v[i];
    const struct hop *h = c->first[i] < c->first[i + 1] ? &c->hop[c->first[i]] : NULL;
    char last[256], src[256], dst[256];
    struct gw_cell row[11];

    row[0] = gw_cell_text(name_of(c->job, x->job, 0));
    row[1] = gw_cell_int(x->iteration);
    row[2] = gw_cell_real(gw_ps_to_s(x->time_ps));
    row[3] = rank_cell(c, x->job, x->last_rank, last, sizeof last);
    row[4] = h ? rank_cell(c, h->job, h->src, src, sizeof src) : gw_cell_null();
    row[5] = h ? rank_cell(c, h->job, h->dst, dst, sizeof dst) : gw_cell_null();
    flow_cells(h, names, row + 6);
    return c->a->host->table_row(t, row);
}

static enum gw_status iteration_table(struct critical *c, sqlite3_stmt *names)
{
    static const char *const columns[] = {
        "job", "iteration", "time_s", "last_rank", "from_rank", "to_rank", "message", "flow",
        "link", "fct_s", "slowdown",
    };
    struct gw_table *t = c->a->host->table_new(c->a, "critical", "Critical flow of each iteration: "
                                               "the last one it waited for", columns,
                                               GW_ARRAY_LEN(columns));
    enum gw_status code = t ? GW_OK : GW_NOMEM;

    for (size_t i = 0; i < c->times.n && code == GW_OK; i++)
        if (c->times.v[i].whole)
            code = iteration_row(c, t, names, i);
    return code;
}

/* ---- the table of chains ------------------------------------------------------------------ */

static int by_pair(const void *a, const void *b)
{
    const struct hop *x = a, *y = b;

    if (x->job != y->job)
        return x->job < y->job ? -1 : 1;
    if (x->src != y->src)
        return x->src < y->src ? -1 : 1;
    return (x->dst > y->dst) - (x->dst < y->dst);
}

static int by_link(const void *a, const void *b)
{
    const struct hop *x = a, *y = b;

    return (x->link > y->link) - (x->link < y->link);
}

/* Sorts the @n hops by @order; the first of those equal ones that took most time together, and that
 * time in *most_ps. */
static const struct hop *most_of(struct hop *hop, size_t n,
                                 int (*order)(const void *, const void *), int64_t *most_ps)
{
    const struct hop *most = hop;
    int64_t sum = 0;
    size_t first = 0;

    *most_ps = -1;
    qsort(hop, n, sizeof *hop, order);
    for (size_t i = 0; i < n; i++) {
        if (order(&hop[i], &hop[first])) {
            first = i;
            sum = 0;
        }
        sum += hop[i].end_ps - hop[i].post_ps;
        if (sum > *most_ps) {
            *most_ps = sum;
            most = &hop[first];
        }
    }
    return most;
}

/* @hop: a copy of the chain's @n > 0 hops, which is sorted. */
static enum gw_status chain_row(struct critical *c, struct gw_table *t, sqlite3_stmt *names,
                                const struct gw_iteration_time *x, struct hop *hop, size_t n)
{
    int64_t message_ps = 0, local_ps = 0, most_ps;
    const struct hop *h;
    char src[256], dst[256];
    struct gw_cell row[11];

    for (size_t k = 0; k < n; k++) {
        message_ps += hop[k].end_ps - hop[k].post_ps;
        local_ps += hop[k].cause_wait_ps;
    }
    row[0] = gw_cell_text(name_of(c->job, x->job, 0));
    row[1] = gw_cell_int(x->iteration);
    row[2] = gw_cell_int((int64_t)n);
    row[3] = gw_cell_real(gw_ps_to_s(message_ps));
    row[4] = gw_cell_real(gw_ps_to_s(local_ps));
    h = most_of(hop, n, by_link, &most_ps);
    row[5] = gw_cell_text(h->link == GW_NONE ? NULL : name_of(names, h->link, 0));
    row[6] = gw_cell_real(gw_ps_to_s(most_ps));
    row[7] = gw_cell_real(x->time_ps ? (double)most_ps / (double)x->time_ps : (double)NAN);
    h = most_of(hop, n, by_pair, &most_ps);
    row[8] = rank_cell(c, h->job, h->src, src, sizeof src);
    row[9] = rank_cell(c, h->job, h->dst, dst, sizeof dst);
    row[10] = gw_cell_real(gw_ps_to_s(most_ps));
    return c->a->host->table_row(t, row);
}

static enum gw_status chain_table(struct critical *c, sqlite3_stmt *names)
{
    static const char *const columns[] = {
        "job", "iteration", "messages", "transfer_s", "local_s", "link", "on_link_s",
        "on_link_share", "from_rank", "to_rank", "on_pair_s",
    };
    struct gw_table *t = c->a->host->table_new(c->a, "critical_chains", "Messages that led to each "
                                               "critical flow, and the link and pair of ranks with "
                                               "most of their time", columns,
                                               GW_ARRAY_LEN(columns));
    enum gw_status code = t ? GW_OK : GW_NOMEM;
    struct hop *copy = malloc((c->hops + 1) * sizeof *copy);

    if (!copy)
        code = GW_NOMEM;
    for (size_t i = 0; i < c->times.n && code == GW_OK; i++) {
        size_t n = c->first[i + 1] - c->first[i];

        if (!n)
            continue;
        memcpy(copy, &c->hop[c->first[i]], n * sizeof *copy);
        code = chain_row(c, t, names, &c->times.v[i], copy, n);
    }
    free(copy);
    return code;
}

/* ---- how often ---------------------------------------------------------------------------- */

struct tally {                       /* one link, or one pair of ranks of a job                */
    uint64_t critical, chain;        /* iterations it was critical in; messages on chains      */
    int64_t  message_ps;             /* time of these messages                                 */
};

struct group {                       /* hops that count together: @n from hop @first           */
    size_t first, n;
    struct tally t;
};

static int by_weight(const void *a, const void *b)
{
    const struct group *x = a, *y = b;

    if (x->t.message_ps != y->t.message_ps)
        return x->t.message_ps > y->t.message_ps ? -1 : 1;
    if (x->t.critical != y->t.critical)
        return x->t.critical > y->t.critical ? -1 : 1;
    return (x->first > y->first) - (x->first < y->first);
}

/* Sorts the hops by @order and sums equal ones; free the answer. NULL: out of memory. */
static struct group *group_hops(struct critical *c, int (*order)(const void *, const void *),
                                size_t *count)
{
    struct group *g = malloc((c->hops + 1) * sizeof *g), *now = NULL;

    *count = 0;
    if (!g)
        return NULL;
    if (c->hops)
        qsort(c->hop, c->hops, sizeof *c->hop, order);
    for (size_t i = 0; i < c->hops; i++) {
        const struct hop *h = &c->hop[i];

        if (!now || order(h, &c->hop[now->first])) {
            now = &g[(*count)++];
            memset(now, 0, sizeof *now);
            now->first = i;
        }
        now->n++;
        now->t.critical += h->critical;
        now->t.chain++;
        now->t.message_ps += h->end_ps - h->post_ps;
    }
    if (*count)
        qsort(g, *count, sizeof *g, by_weight);
    return g;
}

struct whole {                       /* what shares are of: one job, or all                    */
    uint64_t iterations;             /* with a critical message                                 */
    int64_t  time_ps;                /* how long these took                                     */
};

static void tally_cells(const struct tally *t, const struct whole *of, struct gw_cell *row)
{
    row[0] = gw_cell_int((int64_t)t->chain);
    row[1] = gw_cell_real(gw_ps_to_s(t->message_ps));
    row[2] = gw_cell_real(of->time_ps ? (double)t->message_ps / (double)of->time_ps : (double)NAN);
    row[3] = gw_cell_int((int64_t)t->critical);
    row[4] = gw_cell_real(of->iterations ? (double)t->critical / (double)of->iterations
                                         : (double)NAN);
}

/* By job, and for all of them behind the last; free the answer. NULL: out of memory. */
static struct whole *wholes(const struct critical *c, size_t *jobs)
{
    struct whole *w;

    *jobs = c->times.n ? (size_t)c->times.v[c->times.n - 1].job + 1 : 0;
    w = calloc(*jobs + 1, sizeof *w);
    for (size_t i = 0; w && i < c->times.n; i++) {
        if (c->first[i] == c->first[i + 1])
            continue;
        w[c->times.v[i].job].iterations++;
        w[c->times.v[i].job].time_ps += c->times.v[i].time_ps;
        w[*jobs].iterations++;
        w[*jobs].time_ps += c->times.v[i].time_ps;
    }
    return w;
}

static enum gw_status link_table(struct critical *c, sqlite3_stmt *names, sqlite3_stmt *directions)
{
    static const char *const columns[] = {
        "link", "direction", "chain_messages", "chain_transfer_s", "time_share", "iterations",
        "iterations_share",
    };
    struct gw_table *t = c->a->host->table_new(c->a, "critical_links", "Links by the time that "
                                               "chains spent on them; iterations in which "
                                               "they held the critical flow", columns,
                                               GW_ARRAY_LEN(columns));
    size_t n, jobs;
    struct group *g = group_hops(c, by_link, &n);
    struct whole *of = wholes(c, &jobs);
    enum gw_status code = t && g && of ? GW_OK : GW_NOMEM;

    for (size_t i = 0; i < n && code == GW_OK; i++) {
        uint32_t link = c->hop[g[i].first].link;
        struct gw_cell row[7];

        row[0] = gw_cell_text(link == GW_NONE ? NULL : name_of(names, link, 0));
        row[1] = gw_cell_text(link == GW_NONE ? NULL : name_of(directions, link, 0));
        tally_cells(&g[i].t, &of[jobs], row + 2);
        code = c->a->host->table_row(t, row);
    }
    free(of);
    free(g);
    return code;
}

static enum gw_status pair_table(struct critical *c)
{
    static const char *const columns[] = {
        "job", "from_rank", "to_rank", "chain_messages", "chain_transfer_s", "time_share",
        "iterations", "iterations_share",
    };
    struct gw_table *t = c->a->host->table_new(c->a, "critical_pairs", "Pairs of ranks by the "
                                               "time that chains spent between them; "
                                               "iterations in which they had the critical "
                                               "flow", columns,
                                               GW_ARRAY_LEN(columns));
    size_t n, jobs;
    struct group *g = group_hops(c, by_pair, &n);
    struct whole *of = wholes(c, &jobs);
    enum gw_status code = t && g && of ? GW_OK : GW_NOMEM;
    char src[256], dst[256];

    for (size_t i = 0; i < n && code == GW_OK; i++) {
        const struct hop *h = &c->hop[g[i].first];
        struct gw_cell row[8];

        row[0] = gw_cell_text(name_of(c->job, h->job, 0));
        row[1] = rank_cell(c, h->job, h->src, src, sizeof src);
        row[2] = rank_cell(c, h->job, h->dst, dst, sizeof dst);
        tally_cells(&g[i].t, &of[h->job], row + 3);
        code = c->a->host->table_row(t, row);
    }
    free(of);
    free(g);
    return code;
}

/* ---- callbacks ---------------------------------------------------------------------------- */

static bool prepare(struct critical *c, struct gw_error *err)
{
    struct sqlite3 *db = c->a->db;

    c->link = gw_db_query(db, "SELECT p.link FROM path p JOIN link l USING(link)"
                          " LEFT JOIN link_total t USING(link) WHERE p.conn = ? ORDER BY"
                          " CASE WHEN rate_bps > 0 THEN rate_bps ELSE 9223372036854775807 END,"
                          " t.wire_bytes + t.fluid_bytes DESC, t.mean_wait_ps DESC, p.link LIMIT 1",
                          err);
    c->node = gw_db_query(db, "SELECT n.name FROM rank r JOIN node n USING(node)"
                          " WHERE r.job = ? AND r.rank = ?", err);
    c->job = gw_db_query(db, "SELECT name FROM job WHERE job = ?", err);
    return c->link && c->node && c->job;
}

static enum gw_status tables(struct critical *c, struct gw_error *err)
{
    sqlite3_stmt *names = gw_db_query(c->a->db, "SELECT name FROM link WHERE link = ?", err);
    sqlite3_stmt *directions = gw_db_query(c->a->db, "SELECT direction FROM link WHERE link = ?",
                                           err);
    enum gw_status code = GW_IO;

    if (names && directions) {
        code = iteration_table(c, names);      /* before those that sort the hops */
        if (code == GW_OK)
            code = chain_table(c, names);
        if (code == GW_OK)
            code = link_table(c, names, directions);
        if (code == GW_OK)
            code = pair_table(c);
        if (code != GW_OK)
            gw_fail(err, code, "analysis critical: out of memory");
    }
    sqlite3_finalize(names);
    sqlite3_finalize(directions);
    return code;
}

static enum gw_status critical_run(struct gw_analysis *a, struct gw_error *err)
{
    struct critical c = { .a = a };
    enum gw_status code = gw_iteration_times_read(a->db, &c.times, err);

    if (code == GW_OK && !prepare(&c, err))
        code = GW_IO;
    if (code == GW_OK)
        code = chains_read(&c, err);
    if (code == GW_OK)
        code = flows_read(&c, err);
    if (code == GW_OK)
        code = tables(&c, err);
    sqlite3_finalize(c.link);
    sqlite3_finalize(c.node);
    sqlite3_finalize(c.job);
    free(c.times.v);
    free(c.first);
    free(c.hop);
    return code;
}

static const struct gw_analysis_ops critical_ops = {
    .run = critical_run,
};

GW_PLUGIN(gw_analysis_critical) = {
    GW_PLUGIN_HEAD(GW_KIND_ANALYSIS, critical_ops),
    .name    = "critical",
    .summary = "Critical flow of each iteration; time of the chains behind by link and rank pair.",
    .flags   = GW_ANALYSIS_PLACE(3),
};
