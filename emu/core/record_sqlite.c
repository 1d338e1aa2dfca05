/*
 * record_sqlite - the sink that writes one run's rows into one SQLite file
 *
 * Prepared statements, one transaction for every COMMIT_ROWS rows, the first ones shorter (counted,
 * never timed, so that the file's history does not depend on the machine). Three settings make a
 * killed run readable:
 *
 *   cache_spill off    dirty pages stay in memory until the commit, so a kill between two commits
 *                      finds the file exactly as the last commit left it;
 *   journal truncate   a kill within a commit leaves a hot rollback journal, which the reader
 *                      rolls back (record_read.c); a write-ahead log would need its -shm file;
 *   synchronous off    the kernel outlives the process, so nothing is flushed; a power cut is not
 *                      covered.
 *
 * The file is locked for the run (a reader cannot make a commit fail). Until finish(complete) the
 * run table says complete = no.
 *
 * Flows are most of the rows of a large run. They are gathered in an array and read from there by
 * one INSERT ... SELECT through a virtual table: that takes half the time of a statement executed
 * for each (about 0.55 us a row against 1.06 on the machine it was written on).
 *
 * Volume: with `all` every flow and message is a row; with `sample` one message in 100, by a hash
 * of its id, with its flows; with `summary` none. In all three a summary for each job is kept in
 * constant memory: counts, and two quantile sketches (completion time, and slowdown in millionths).
 * A sketch is log-linear with 64 steps an octave, in integers alone, so that it is the same on
 * every machine: a bucket's middle is within 1/128 = 0.8 % of what fell into it. After G. Tene's
 * HdrHistogram; its guarantee is that of DDSketch (Masson, Rim, Lee, VLDB 2019).
 */
#include "emu/core/record.h"
#include "emu/core/record_schema.h"

#include <errno.h>
#include <fcntl.h>
#include <gradwire/qdisc.h>
#include <limits.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define COMMIT_ROWS   50000u
#define FLOW_ROWS     4096u                     /* flows gathered before they are written      */
#define SAMPLE_ONE_IN 100u
#define SUB_BITS      6u
#define SUB_COUNT     (1u << SUB_BITS)          /* buckets an octave                            */
#define OCTAVES       (64u - SUB_BITS + 1u)

_Static_assert(sizeof(sqlite3_int64) == sizeof(int64_t), "SQLite integers hold 64 bits");

enum statement {
    ST_RUN, ST_HOST, ST_NODE, ST_LINK, ST_LINK_TOTAL, ST_LINK_DROP, ST_LINK_SAMPLE, ST_JOB, ST_RANK,
    ST_FLOW, ST_PATH, ST_MESSAGE, ST_LOSS, ST_COLLECTIVE, ST_ITERATION, ST_STAT, ST_TC, ST_NOTE,
    ST_SUMMARY, ST_SKETCH, ST_COUNT
};

static const struct {
    const char *verb;
    const char *table;
    int         columns;                        /* parameters; 0: rows come from gw_flows      */
} statements[ST_COUNT] = {
    [ST_RUN]         = { "INSERT OR REPLACE", "run", 2 },
    [ST_HOST]        = { "INSERT OR REPLACE", "host", 2 },
    [ST_NODE]        = { "INSERT", "node", 3 },
    [ST_LINK]        = { "INSERT", "link", 7 },
    [ST_LINK_TOTAL]  = { "INSERT", "link_total", 16 },
    [ST_LINK_DROP]   = { "INSERT", "link_drop", 3 },
    [ST_LINK_SAMPLE] = { "INSERT", "link_sample", 7 },
    [ST_JOB]         = { "INSERT", "job", 5 },
    [ST_RANK]        = { "INSERT", "rank", 3 },
    [ST_FLOW]        = { "INSERT", "flow", 0 },
    [ST_PATH]        = { "INSERT", "path", 3 },
    [ST_MESSAGE]     = { "INSERT", "message", 16 },
    [ST_LOSS]        = { "INSERT", "message_loss", 8 },
    [ST_COLLECTIVE]  = { "INSERT", "collective", 9 },
    [ST_ITERATION]   = { "INSERT", "iteration", 9 },
    [ST_STAT]        = { "INSERT", "stat", 4 },
    [ST_TC]          = { "INSERT", "tc", 8 },
    [ST_NOTE]        = { "INSERT", "note", 2 },
    [ST_SUMMARY]     = { "INSERT OR REPLACE", "flow_summary", 12 },
    [ST_SKETCH]      = { "INSERT OR REPLACE", "flow_sketch", 5 },
};

struct sketch {
    uint64_t *octave[OCTAVES];      /* SUB_COUNT counters each, allocated when first hit       */
};

struct summary {                    /* flows of one job                                        */
    uint64_t flows, finished, bytes, delivered_bytes;
    __extension__ unsigned __int128 fct_sum_ps;
    uint64_t fct_min_ps, fct_max_ps;
    uint64_t retrans_bytes, retrans_pkts, dropped_pkts, timeouts;
    struct sketch fct_ps, slowdown_ppm;
    bool dirty;                     /* changed since the last commit                           */
};

struct sqlite_sink {
    struct gw_sink  sink;
    sqlite3        *db;
    sqlite3_stmt   *st[ST_COUNT];
    char           *path;
    struct gw_record_conf conf;
    uint64_t        rows;           /* handed in                                               */
    uint64_t        facts;          /* of these: facts before any other row                    */
    struct gw_rec_flow *flow;       /* FLOW_ROWS, gathered                                     */
    uint32_t        flows;
    struct summary *summary;        /* by job                                                  */
    uint32_t        summaries;
    uint32_t        notes;          /* written                                                 */
    struct gw_error first;          /* the first failure, told again by finish()               */
};

/* A row being bound: the next column and what has gone wrong. */
struct row {
    struct sqlite_sink *k;
    sqlite3_stmt *st;
    enum statement which;
    int  col;
    int      big_col;               /* of a value that does not fit into 63 bits, 0: none      */
    uint64_t big;
};

static struct sqlite_sink *sink_of(struct gw_sink *s)
{
    return GW_CONTAINER(s, struct sqlite_sink, sink);
}

/* Remembers SQLite's complaint as one sentence. */
static enum gw_status sink_fail(struct sqlite_sink *k, int rc)
{
    /* SQLite does not carry the system's number out of a commit; errno still holds it. */
    int sys = sqlite3_system_errno(k->db) ? sqlite3_system_errno(k->db) : errno;
    int primary = rc & 0xff;

    if (primary == SQLITE_FULL || (primary == SQLITE_IOERR && (sys == ENOSPC || sys == EDQUOT ||
                                                               sys == EFBIG)))
        return gw_fail(&k->first, GW_IO, "%s: no room left for records (%s); free some space, or "
                       "keep fewer rows with records: {flows: summary}", k->path,
                       sys && primary != SQLITE_FULL ? strerror(sys) : sqlite3_errmsg(k->db));
    if (primary == SQLITE_NOMEM)
        return gw_fail(&k->first, GW_NOMEM, "%s: out of memory while writing records", k->path);
    if (primary == SQLITE_CONSTRAINT)
        return gw_fail(&k->first, GW_BUG, "%s: a record was handed in twice (%s); each key may "
                       "come once", k->path, sqlite3_errmsg(k->db));
    if (sys && (primary == SQLITE_IOERR || primary == SQLITE_CANTOPEN))
        return gw_fail(&k->first, GW_IO, "%s: cannot write records: %s (%s); the directory must "
                       "be writable", k->path, sqlite3_errmsg(k->db), strerror(sys));
    return gw_fail(&k->first, GW_IO, "%s: cannot write records: %s", k->path,
                   sqlite3_errmsg(k->db));
}

static enum gw_status sink_exec(struct sqlite_sink *k, const char *sql)
{
    int rc;

    errno = 0;
    rc = sqlite3_exec(k->db, sql, NULL, NULL, NULL);
    return rc == SQLITE_OK ? GW_OK : sink_fail(k, rc);
}

/* ---- rows --------------------------------------------------------------------------------- */

static struct row row_begin(struct sqlite_sink *k, enum statement which)
{
    struct row w = { .k = k, .st = k->st[which], .which = which };

    return w;
}

static void put_u64(struct row *w, uint64_t v)
{
    sqlite3_bind_int64(w->st, ++w->col, (sqlite3_int64)v);
    if (v > INT64_MAX && !w->big_col) {
        w->big_col = w->col;
        w->big = v;
    }
}

/* GW_NEVER is NULL. */
static void put_time(struct row *w, uint64_t v)
{
    if (v == GW_NEVER)
        sqlite3_bind_null(w->st, ++w->col);
    else
        put_u64(w, v);
}

/* GW_NONE is NULL. */
static void put_index(struct row *w, uint32_t v)
{
    if (v == GW_NONE)
        sqlite3_bind_null(w->st, ++w->col);
    else
        sqlite3_bind_int64(w->st, ++w->col, v);
}

/* 0, "none" of a key that counts from 1, is NULL. */
static void put_key(struct row *w, uint64_t v)
{
    if (v)
        put_u64(w, v);
    else
        sqlite3_bind_null(w->st, ++w->col);
}

static void put_text(struct row *w, const char *v)
{
    if (v)
        sqlite3_bind_text(w->st, ++w->col, v, -1, SQLITE_TRANSIENT);
    else
        sqlite3_bind_null(w->st, ++w->col);
}

/* sum / n, in integers as far as they go; NULL if n is 0. */
static void put_mean(struct row *w, uint64_t hi, uint64_t lo, uint64_t n)
{
    __extension__ unsigned __int128 sum = (unsigned __int128)hi << 64 | lo;

    if (n)
        sqlite3_bind_double(w->st, ++w->col,
                            (double)(sum / n) + (double)(uint64_t)(sum % n) / (double)n);
    else
        sqlite3_bind_null(w->st, ++w->col);
}

#define BEYOND "above 2^63 - 1 (of picoseconds: 106 days), the most that a record can hold; use " \
               "`until:`, earlier starts or fewer bytes"

/* Says which column of the row holds too much. */
static enum gw_status row_beyond(const struct row *w)
{
    struct sqlite_sink *k = w->k;
    const char *table = statements[w->which].table, *name = NULL;
    sqlite3_stmt *st = NULL;
    char sql[64];

    snprintf(sql, sizeof sql, "SELECT * FROM %s", table);
    if (sqlite3_prepare_v2(k->db, sql, -1, &st, NULL) == SQLITE_OK)
        name = sqlite3_column_name(st, w->big_col - 1);
    gw_fail(&k->first, GW_RANGE, "%s: %s of a row for table %s is %llu, " BEYOND, k->path,
            name ? name : "a value", table, (unsigned long long)w->big);
    sqlite3_finalize(st);
    return k->first.code;
}

static enum gw_status row_step(struct row *w)
{
    struct sqlite_sink *k = w->k;
    int rc;

    if (w->col != statements[w->which].columns)
        return gw_fail(&k->first, GW_BUG, "%s: %d columns for table %s, which has %d", k->path,
                       w->col, statements[w->which].table, statements[w->which].columns);
    if (w->big_col)
        return row_beyond(w);
    rc = sqlite3_step(w->st);
    if (rc != SQLITE_DONE) {
        sink_fail(k, rc);
        sqlite3_reset(w->st);
        return k->first.code;
    }
    sqlite3_reset(w->st);
    return GW_OK;
}

/* ---- summaries ---------------------------------------------------------------------------- */

/* The bucket of @v: octave and step; values below SUB_COUNT have buckets of their own. */
static void sketch_bucket(uint64_t v, uint32_t *octave, uint32_t *step)
{
    uint32_t shift;

    if (v < SUB_COUNT) {
        *octave = 0;
        *step = (uint32_t)v;
        return;
    }
    shift = 63u - (uint32_t)__builtin_clzll(v) - SUB_BITS;
    *octave = shift + 1;
    *step = (uint32_t)(v >> shift) - SUB_COUNT;
}

/* First value of a bucket, and the last one in *high. */
static uint64_t sketch_low(uint32_t octave, uint32_t step, uint64_t *high)
{
    uint32_t shift = octave ? octave - 1 : 0;
    uint64_t low = octave ? (uint64_t)(SUB_COUNT + step) << shift : step;

    *high = low + ((UINT64_C(1) << shift) - 1);
    return low;
}

static bool sketch_add(struct sketch *h, uint64_t v)
{
    uint32_t octave, step;

    sketch_bucket(v, &octave, &step);
    if (!h->octave[octave]) {
        h->octave[octave] = calloc(SUB_COUNT, sizeof *h->octave[octave]);
        if (!h->octave[octave])
            return false;
    }
    h->octave[octave][step]++;
    return true;
}

static void sketch_free(struct sketch *h)
{
    for (uint32_t o = 0; o < OCTAVES; o++)
        free(h->octave[o]);
}

static enum gw_status sketch_write(struct sqlite_sink *k, uint32_t job, const char *metric,
                                   const struct sketch *h)
{
    for (uint32_t o = 0; o < OCTAVES; o++) {
        for (uint32_t i = 0; h->octave[o] && i < SUB_COUNT; i++) {
            struct row w = row_begin(k, ST_SKETCH);
            uint64_t low, high;

            if (!h->octave[o][i])
                continue;
            low = sketch_low(o, i, &high);
            put_u64(&w, job);
            put_text(&w, metric);
            put_u64(&w, low);
            put_u64(&w, high > INT64_MAX ? INT64_MAX : high);
            put_u64(&w, h->octave[o][i]);
            if (row_step(&w) != GW_OK)
                return k->first.code;
        }
    }
    return GW_OK;
}

static enum gw_status summary_write(struct sqlite_sink *k, uint32_t job)
{
    struct summary *s = &k->summary[job];
    struct row w = row_begin(k, ST_SUMMARY);

    if (!s->dirty)
        return GW_OK;
    put_u64(&w, job);
    put_u64(&w, s->flows);
    put_u64(&w, s->finished);
    put_u64(&w, s->bytes);
    put_u64(&w, s->delivered_bytes);
    put_mean(&w, (uint64_t)(s->fct_sum_ps >> 64), (uint64_t)s->fct_sum_ps, s->finished);
    put_time(&w, s->finished ? s->fct_min_ps : GW_NEVER);
    put_time(&w, s->finished ? s->fct_max_ps : GW_NEVER);
    put_u64(&w, s->retrans_bytes);
    put_u64(&w, s->retrans_pkts);
    put_u64(&w, s->dropped_pkts);
    put_u64(&w, s->timeouts);
    s->dirty = false;
    if (row_step(&w) != GW_OK)
        return k->first.code;
    if (sketch_write(k, job, "fct_ps", &s->fct_ps) != GW_OK)
        return k->first.code;
    return sketch_write(k, job, "slowdown_ppm", &s->slowdown_ppm);
}

static struct summary *summary_of(struct sqlite_sink *k, uint32_t job)
{
    struct summary *more;

    if (job < k->summaries)
        return &k->summary[job];
    if (job >= UINT32_MAX / 2)
        return NULL;
    more = realloc(k->summary, ((size_t)job + 1) * sizeof *more);
    if (!more)
        return NULL;
    memset(more + k->summaries, 0, (job + 1 - k->summaries) * sizeof *more);
    k->summary = more;
    k->summaries = job + 1;
    return &more[job];
}

static enum gw_status summary_flow(struct sqlite_sink *k, const struct gw_rec_flow *r)
{
    struct summary *s = summary_of(k, r->job);
    uint64_t fct, slowdown;

    if (!s)
        return gw_fail(&k->first, GW_NOMEM, "%s: no memory for the summary of job %u", k->path,
                       r->job);
    s->dirty = true;
    s->flows++;
    s->bytes += r->bytes;
    s->delivered_bytes += r->delivered_bytes;
    s->retrans_bytes += r->retrans_bytes;
    s->retrans_pkts += r->retrans_pkts;
    s->dropped_pkts += r->dropped_pkts;
    s->timeouts += r->timeouts;
    if (r->end_ps == GW_NEVER || r->end_ps < r->start_ps)
        return GW_OK;
    fct = r->end_ps - r->start_ps;
    slowdown = r->ideal_ps ? gw_mul_div(fct, 1000000, r->ideal_ps) : 0;
    s->fct_min_ps = s->finished == 0 || fct < s->fct_min_ps ? fct : s->fct_min_ps;
    s->fct_max_ps = fct > s->fct_max_ps ? fct : s->fct_max_ps;
    s->finished++;
    s->fct_sum_ps += fct;
    if (!sketch_add(&s->fct_ps, fct) ||
        (r->ideal_ps && r->ideal_ps != GW_NEVER &&
         !sketch_add(&s->slowdown_ppm, slowdown > INT64_MAX ? INT64_MAX : slowdown)))
        return gw_fail(&k->first, GW_NOMEM, "%s: no memory for the summary of job %u", k->path,
                       r->job);
    return GW_OK;
}

/* ---- gathered flows, as a virtual table --------------------------------------------------- */

struct flow_table {
    sqlite3_vtab base;
    struct sqlite_sink *sink;
};

struct flow_cursor {
    sqlite3_vtab_cursor base;
    uint32_t at;                    /* in sink->flow                                           */
};

static int flows_connect(sqlite3 *db, void *sink, int argc, const char *const *argv,
                         sqlite3_vtab **table, char **err)
{
    struct flow_table *t;
    int rc = sqlite3_declare_vtab(db, "CREATE TABLE x(flow, conn, message, job, iteration,"
                                  " collective, src_rank, dst_rank, src_node, dst_node, bytes,"
                                  " delivered_bytes, start_ps, end_ps, ideal_ps, retrans_bytes,"
                                  " retrans_pkts, dropped_pkts, timeouts)");

    (void)argc;
    (void)argv;
    (void)err;
    if (rc != SQLITE_OK)
        return rc;
    t = calloc(1, sizeof *t);
    if (!t)
        return SQLITE_NOMEM;
    t->sink = sink;
    *table = &t->base;
    return SQLITE_OK;
}

static int flows_disconnect(sqlite3_vtab *table)
{
    free(table);
    return SQLITE_OK;
}

static int flows_best_index(sqlite3_vtab *table, sqlite3_index_info *info)
{
    (void)table;
    info->estimatedCost = FLOW_ROWS;
    return SQLITE_OK;
}

static int flows_open(sqlite3_vtab *table, sqlite3_vtab_cursor **cursor)
{
    struct flow_cursor *c = calloc(1, sizeof *c);

    (void)table;
    *cursor = c ? &c->base : NULL;
    return c ? SQLITE_OK : SQLITE_NOMEM;
}

static int flows_close(sqlite3_vtab_cursor *cursor)
{
    free(cursor);
    return SQLITE_OK;
}

static int flows_filter(sqlite3_vtab_cursor *cursor, int number, const char *text, int argc,
                        sqlite3_value **argv)
{
    (void)number;
    (void)text;
    (void)argc;
    (void)argv;
    ((struct flow_cursor *)cursor)->at = 0;
    return SQLITE_OK;
}

static int flows_next(sqlite3_vtab_cursor *cursor)
{
    ((struct flow_cursor *)cursor)->at++;
    return SQLITE_OK;
}

static int flows_eof(sqlite3_vtab_cursor *cursor)
{
    return ((struct flow_cursor *)cursor)->at >= ((struct flow_table *)cursor->pVtab)->sink->flows;
}

static int flows_rowid(sqlite3_vtab_cursor *cursor, sqlite3_int64 *rowid)
{
    *rowid = ((struct flow_cursor *)cursor)->at;
    return SQLITE_OK;
}

/* @none stands for NULL; a column that gets no result is NULL. */
static void give(sqlite3_context *out, uint64_t v, uint64_t none)
{
    if (v != none)
        sqlite3_result_int64(out, (sqlite3_int64)v);
}

static int flows_column(sqlite3_vtab_cursor *cursor, sqlite3_context *out, int column)
{
    const struct sqlite_sink *k = ((struct flow_table *)cursor->pVtab)->sink;
    const struct gw_rec_flow *r = &k->flow[((struct flow_cursor *)cursor)->at];

    switch (column) {
    case 0: sqlite3_result_int64(out, (sqlite3_int64)r->flow); break;
    case 1: give(out, r->conn, GW_NONE); break;
    case 2: give(out, r->message, 0); break;
    case 3: give(out, r->job, GW_NONE); break;
    case 4: give(out, r->iteration, GW_NONE); break;
    case 5: give(out, r->collective, 0); break;
    case 6: give(out, r->src_rank, GW_NONE); break;
    case 7: give(out, r->dst_rank, GW_NONE); break;
    case 8: give(out, r->src_node, GW_NONE); break;
    case 9: give(out, r->dst_node, GW_NONE); break;
    case 10: sqlite3_result_int64(out, (sqlite3_int64)r->bytes); break;
    case 11: sqlite3_result_int64(out, (sqlite3_int64)r->delivered_bytes); break;
    case 12: give(out, r->start_ps, GW_NEVER); break;
    case 13: give(out, r->end_ps, GW_NEVER); break;
    case 14: give(out, r->ideal_ps, GW_NEVER); break;
    case 15: sqlite3_result_int64(out, (sqlite3_int64)r->retrans_bytes); break;
    case 16: sqlite3_result_int64(out, (sqlite3_int64)r->retrans_pkts); break;
    case 17: sqlite3_result_int64(out, (sqlite3_int64)r->dropped_pkts); break;
    case 18: sqlite3_result_int64(out, (sqlite3_int64)r->timeouts); break;
    }
    return SQLITE_OK;
}

static const sqlite3_module flows_module = {
    .xConnect = flows_connect, .xBestIndex = flows_best_index, .xDisconnect = flows_disconnect,
    .xOpen = flows_open, .xClose = flows_close, .xFilter = flows_filter, .xNext = flows_next,
    .xEof = flows_eof, .xColumn = flows_column, .xRowid = flows_rowid,
};

static enum gw_status flows_write(struct sqlite_sink *k)
{
    sqlite3_stmt *st = k->st[ST_FLOW];
    int rc;

    errno = 0;
    rc = k->flows ? sqlite3_step(st) : SQLITE_DONE;
    if (rc != SQLITE_DONE)
        sink_fail(k, rc);
    sqlite3_reset(st);
    k->flows = 0;
    return k->first.code;
}

/* GW_NEVER is no time at all. */
static bool too_late(uint64_t v)
{
    return v != GW_NEVER && v > INT64_MAX;
}

static enum gw_status flow_beyond(struct sqlite_sink *k, const struct gw_rec_flow *r)
{
    const struct { const char *name; uint64_t v; } row[] = {
        { "bytes", r->bytes }, { "delivered_bytes", r->delivered_bytes },
        { "start_ps", r->start_ps }, { "end_ps", r->end_ps }, { "ideal_ps", r->ideal_ps },
        { "retrans_bytes", r->retrans_bytes }, { "retrans_pkts", r->retrans_pkts },
        { "dropped_pkts", r->dropped_pkts }, { "timeouts", r->timeouts },
        { "message", r->message }, { "flow", r->flow },
    };
    size_t i = 0;

    while (i + 1 < GW_ARRAY_LEN(row) && !too_late(row[i].v))
        i++;
    return gw_fail(&k->first, GW_RANGE, "%s: flow %llu of job %d: %s is %llu, " BEYOND, k->path,
                   (unsigned long long)r->flow, r->job == GW_NONE ? -1 : (int)r->job, row[i].name,
                   (unsigned long long)row[i].v);
}

static enum gw_status flows_add(struct sqlite_sink *k, const struct gw_rec_flow *r)
{
    if ((r->flow | r->message | r->bytes | r->delivered_bytes | r->retrans_bytes |
         r->retrans_pkts | r->dropped_pkts | r->timeouts) > INT64_MAX ||
        too_late(r->start_ps) || too_late(r->end_ps) || too_late(r->ideal_ps))
        return flow_beyond(k, r);
    k->flow[k->flows++] = *r;
    return k->flows < FLOW_ROWS ? GW_OK : flows_write(k);
}

/* ---- commits ------------------------------------------------------------------------------ */

static enum gw_status sink_commit(struct sqlite_sink *k)
{
    if (flows_write(k) != GW_OK)
        return k->first.code;
    for (uint32_t j = 0; j < k->summaries; j++)
        if (summary_write(k, j) != GW_OK)
            return k->first.code;
    return sink_exec(k, "COMMIT");
}

/* Early and then less often, so that a short run that is killed leaves something, too. */
static bool commit_is_due(uint64_t rows)
{
    return rows == 100 || rows == 1000 || rows == 10000 || rows % COMMIT_ROWS == 0;
}

/* Counts a row and commits when it is time to; @w may be NULL for flows, gathered or summed. */
static enum gw_status row_end(struct sqlite_sink *k, struct row *w)
{
    if (w && row_step(w) != GW_OK)
        return k->first.code;
    if (!commit_is_due(++k->rows))
        return GW_OK;
    if (sink_commit(k) != GW_OK)
        return k->first.code;
    return sink_exec(k, "BEGIN");
}

/* ---- the contract's calls ----------------------------------------------------------------- */

static enum gw_status sqlite_node(struct gw_sink *s, const struct gw_rec_node *r)
{
    struct sqlite_sink *k = sink_of(s);
    struct row w = row_begin(k, ST_NODE);

    if (k->first.code)
        return k->first.code;
    put_u64(&w, r->node);
    put_text(&w, r->name);
    put_u64(&w, r->is_host);
    return row_end(k, &w);
}

static enum gw_status sqlite_link(struct gw_sink *s, const struct gw_rec_link *r)
{
    struct sqlite_sink *k = sink_of(s);
    struct row w = row_begin(k, ST_LINK);

    if (k->first.code)
        return k->first.code;
    put_u64(&w, r->link);
    put_text(&w, r->name);
    put_text(&w, r->direction);
    put_index(&w, r->from_node);
    put_index(&w, r->to_node);
    put_u64(&w, r->rate_bps);
    put_u64(&w, r->delay_ps);
    return row_end(k, &w);
}

static enum gw_status link_drops(struct sqlite_sink *k, const struct gw_rec_link_total *r)
{
    static const char *const reason[GW_DROP_COUNT] = {
#define REASON(name, key, text) key,
        GW_DROP_MAP(REASON)
#undef REASON
    };

    for (uint32_t i = 0; r->drops && i < GW_DROP_COUNT; i++) {
        struct row w = row_begin(k, ST_LINK_DROP);

        if (!r->drops[i])
            continue;
        put_u64(&w, r->link);
        put_text(&w, reason[i]);
        put_u64(&w, r->drops[i]);
        if (row_end(k, &w) != GW_OK)
            return k->first.code;
    }
    return GW_OK;
}

static enum gw_status sqlite_link_total(struct gw_sink *s, const struct gw_rec_link_total *r)
{
    struct sqlite_sink *k = sink_of(s);
    struct row w = row_begin(k, ST_LINK_TOTAL);
    __extension__ unsigned __int128 held;

    if (k->first.code)
        return k->first.code;
    put_u64(&w, r->link);
    put_u64(&w, r->sent_pkts);
    put_u64(&w, r->sent_bytes);
    put_u64(&w, r->wire_bytes);
    put_u64(&w, r->delivered_pkts);
    put_u64(&w, r->delivered_bytes);
    put_u64(&w, r->in_flight_pkts);
    put_u64(&w, r->busy_ps);
    put_mean(&w, r->wait_sum_ps_hi, r->wait_sum_ps, r->sent_pkts);
    put_u64(&w, r->wait_max_ps);
    put_u64(&w, r->queue_max_bytes);
    put_u64(&w, r->queue_max_pkts);
    put_u64(&w, r->marked_pkts);
    put_u64(&w, r->fluid_bytes);
    put_u64(&w, r->arrived_pkts);
    held = (unsigned __int128)r->held_ns * GW_PS_PER_NS;
    put_mean(&w, (uint64_t)(held >> 64), (uint64_t)held, r->sent_pkts);
    if (row_end(k, &w) != GW_OK)
        return k->first.code;
    return link_drops(k, r);
}

static enum gw_status sqlite_link_sample(struct gw_sink *s, const struct gw_rec_link_sample *r)
{
    struct sqlite_sink *k = sink_of(s);
    struct row w = row_begin(k, ST_LINK_SAMPLE);

    if (k->first.code)
        return k->first.code;
    put_u64(&w, r->at_ps);
    put_u64(&w, r->link);
    put_u64(&w, r->sent_bytes);
    put_u64(&w, r->drops);
    put_u64(&w, r->marked_pkts);
    put_u64(&w, r->queue_bytes);
    put_u64(&w, r->queue_pkts);
    return row_end(k, &w);
}

static enum gw_status sqlite_job(struct gw_sink *s, const struct gw_rec_job *r)
{
    struct sqlite_sink *k = sink_of(s);
    struct row w = row_begin(k, ST_JOB);

    if (k->first.code)
        return k->first.code;
    put_u64(&w, r->job);
    put_text(&w, r->name);
    put_text(&w, r->traffic);
    put_u64(&w, r->ranks);
    put_u64(&w, r->iterations);
    return row_end(k, &w);
}

static enum gw_status sqlite_rank(struct gw_sink *s, const struct gw_rec_rank *r)
{
    struct sqlite_sink *k = sink_of(s);
    struct row w = row_begin(k, ST_RANK);

    if (k->first.code)
        return k->first.code;
    put_u64(&w, r->job);
    put_u64(&w, r->rank);
    put_index(&w, r->node);
    return row_end(k, &w);
}

/* Whether the rows of message @message are kept. */
static bool kept(const struct sqlite_sink *k, uint64_t message)
{
    if (k->conf.flows == GW_REC_ALL)
        return true;
    if (k->conf.flows == GW_REC_SUMMARY)
        return false;
    return gw_mix64(gw_mix64(message) ^ k->conf.sample_seed) % SAMPLE_ONE_IN == 0;
}

static enum gw_status sqlite_flow(struct gw_sink *s, const struct gw_rec_flow *r)
{
    struct sqlite_sink *k = sink_of(s);

    if (k->first.code)
        return k->first.code;
    if (r->job != GW_NONE && summary_flow(k, r) != GW_OK)
        return k->first.code;
    if (kept(k, r->message) && flows_add(k, r) != GW_OK)
        return k->first.code;
    return row_end(k, NULL);
}

static enum gw_status sqlite_path(struct gw_sink *s, const struct gw_rec_path *r)
{
    struct sqlite_sink *k = sink_of(s);
    struct row w = row_begin(k, ST_PATH);

    if (k->first.code)
        return k->first.code;
    if (k->conf.flows == GW_REC_SUMMARY)
        return GW_OK;
    put_u64(&w, r->conn);
    put_u64(&w, r->hop);
    put_u64(&w, r->link);
    return row_end(k, &w);
}

static enum gw_status sqlite_message(struct gw_sink *s, const struct gw_rec_message *r)
{
    struct sqlite_sink *k = sink_of(s);
    struct row w = row_begin(k, ST_MESSAGE);

    if (k->first.code)
        return k->first.code;
    if (!kept(k, r->message))
        return GW_OK;
    put_u64(&w, r->message);
    put_index(&w, r->job);
    put_index(&w, r->iteration);
    put_key(&w, r->collective);
    put_index(&w, r->comm);
    put_u64(&w, r->tag);
    put_index(&w, r->layer);
    put_u64(&w, r->cls);
    put_index(&w, r->src_rank);
    put_index(&w, r->dst_rank);
    put_u64(&w, r->bytes);
    put_time(&w, r->post_ps);
    put_time(&w, r->start_ps);
    put_time(&w, r->end_ps);
    put_key(&w, r->cause_message);
    put_time(&w, r->cause_wait_ps);
    return row_end(k, &w);
}

/* The bitmap as bytes, grain 0 in the lowest bit of the first. */
static void put_bitmap(struct row *w, const struct gw_received *a)
{
    size_t n = ((size_t)a->grains + 7) / 8;
    uint8_t *b;

    sqlite3_bind_null(w->st, ++w->col);
    if (!a->bitmap || !n)
        return;
    b = malloc(n);
    if (!b) {
        gw_fail(&w->k->first, GW_NOMEM, "%s: no memory for a message with holes", w->k->path);
        return;
    }
    for (size_t i = 0; i < n; i++)
        b[i] = (uint8_t)(a->bitmap[i / 8] >> (8 * (i % 8)));
    sqlite3_bind_blob(w->st, w->col, b, (int)n, free);
}

static enum gw_status sqlite_loss(struct gw_sink *s, const struct gw_rec_loss *r)
{
    struct sqlite_sink *k = sink_of(s);
    struct row w = row_begin(k, ST_LOSS);

    if (k->first.code)
        return k->first.code;
    if (!kept(k, r->message))
        return GW_OK;
    put_u64(&w, r->message);
    put_index(&w, r->job);
    put_index(&w, r->iteration);
    put_u64(&w, r->arrival.missing_bytes);
    put_u64(&w, r->arrival.grains);
    put_u64(&w, r->arrival.missing_grains);
    put_u64(&w, r->arrival.grain_bytes);
    put_bitmap(&w, &r->arrival);
    return row_end(k, &w);
}

static enum gw_status sqlite_collective(struct gw_sink *s, const struct gw_rec_collective *r)
{
    struct sqlite_sink *k = sink_of(s);
    struct row w = row_begin(k, ST_COLLECTIVE);

    if (k->first.code)
        return k->first.code;
    put_u64(&w, r->job);
    put_u64(&w, r->collective);
    put_u64(&w, r->rank);
    put_index(&w, r->iteration);
    put_index(&w, r->layer);
    put_text(&w, r->name);
    put_u64(&w, r->bytes);
    put_time(&w, r->start_ps);
    put_time(&w, r->end_ps);
    return row_end(k, &w);
}

static enum gw_status sqlite_iteration(struct gw_sink *s, const struct gw_rec_iteration *r)
{
    struct sqlite_sink *k = sink_of(s);
    struct row w = row_begin(k, ST_ITERATION);

    if (k->first.code)
        return k->first.code;
    put_u64(&w, r->job);
    put_u64(&w, r->iteration);
    put_u64(&w, r->rank);
    put_time(&w, r->start_ps);
    put_time(&w, r->end_ps);
    put_u64(&w, r->compute_ps);
    put_u64(&w, r->exposed_ps);
    put_u64(&w, r->wait_ps);
    put_key(&w, r->last_message);
    return row_end(k, &w);
}

static enum gw_status sqlite_stat(struct gw_sink *s, const struct gw_rec_stat *r)
{
    struct sqlite_sink *k = sink_of(s);
    struct row w = row_begin(k, ST_STAT);

    if (k->first.code)
        return k->first.code;
    put_index(&w, r->link);
    put_text(&w, r->owner);
    put_text(&w, r->name);
    put_u64(&w, r->value);
    return row_end(k, &w);
}

static enum gw_status sqlite_meta(struct gw_sink *s, const char *key, const char *value,
                                  bool machine)
{
    struct sqlite_sink *k = sink_of(s);
    struct row w = row_begin(k, machine ? ST_HOST : ST_RUN);

    if (k->first.code)
        return k->first.code;
    put_text(&w, key);
    put_text(&w, value);
    if (k->rows != k->facts)
        return row_end(k, &w);
    if (row_end(k, &w) != GW_OK || sink_commit(k) != GW_OK)
        return k->first.code;
    k->facts++;                  /* what the run is, and which files are its own: kept at once */
    return sink_exec(k, "BEGIN");
}

static enum gw_status sqlite_tc(struct gw_sink *s, const struct gw_rec_tc *r)
{
    struct sqlite_sink *k = sink_of(s);
    struct row w = row_begin(k, ST_TC);

    if (k->first.code)
        return k->first.code;
    put_u64(&w, r->link);
    put_text(&w, r->object);
    put_u64(&w, r->order);
    put_u64(&w, r->forms);
    put_text(&w, r->kind);
    put_u64(&w, r->handle);
    put_u64(&w, r->parent);
    put_text(&w, r->text);
    return row_end(k, &w);
}

static enum gw_status sqlite_note(struct gw_sink *s, const char *text)
{
    struct sqlite_sink *k = sink_of(s);
    struct row w = row_begin(k, ST_NOTE);

    if (k->first.code)
        return k->first.code;
    put_u64(&w, k->notes++);
    put_text(&w, text);
    return row_end(k, &w);
}

/* ---- opening and closing ------------------------------------------------------------------ */

static void sink_free(struct sqlite_sink *k)
{
    for (int i = 0; i < ST_COUNT; i++)
        sqlite3_finalize(k->st[i]);
    sqlite3_close(k->db);
    for (uint32_t j = 0; j < k->summaries; j++) {
        sketch_free(&k->summary[j].fct_ps);
        sketch_free(&k->summary[j].slowdown_ppm);
    }
    free(k->summary);
    free(k->flow);
    free(k->path);
    free(k);
}

static enum gw_status sqlite_finish(struct gw_sink *s, bool complete, struct gw_error *err)
{
    struct sqlite_sink *k = sink_of(s);
    enum gw_status code;

    if (!k->first.code && complete)
        sqlite_meta(s, "complete", "yes", false);
    if (!k->first.code)
        sink_commit(k);
    /* Lets go of the lock, then removes the empty journal; neither can harm what is committed. */
    if (!k->first.code)
        sqlite3_exec(k->db, "PRAGMA locking_mode = NORMAL; SELECT count(*) FROM run;"
                     "PRAGMA journal_mode = DELETE", NULL, NULL, NULL);
    code = k->first.code;
    if (code)
        gw_fail(err, code, "%s", k->first.text);
    sink_free(k);
    return code;
}

static const struct gw_sink_ops sqlite_ops = {
    .node        = sqlite_node,
    .link        = sqlite_link,
    .link_total  = sqlite_link_total,
    .link_sample = sqlite_link_sample,
    .job         = sqlite_job,
    .rank        = sqlite_rank,
    .flow        = sqlite_flow,
    .path        = sqlite_path,
    .message     = sqlite_message,
    .loss        = sqlite_loss,
    .collective  = sqlite_collective,
    .iteration   = sqlite_iteration,
    .stat        = sqlite_stat,
    .meta        = sqlite_meta,
    .finish      = sqlite_finish,
    .note        = sqlite_note,
    .tc          = sqlite_tc,
};

static enum gw_status sink_prepare(struct sqlite_sink *k)
{
    for (int i = 0; i < ST_COUNT; i++) {
        char sql[160];
        int n = snprintf(sql, sizeof sql, "%s INTO %s", statements[i].verb,
                         statements[i].table), rc;

        for (int c = 0; c < statements[i].columns; c++)
            n += snprintf(sql + n, sizeof sql - (size_t)n, c ? ",?" : " VALUES(?");
        snprintf(sql + n, sizeof sql - (size_t)n,
                 statements[i].columns ? ")" : " SELECT * FROM gw_flows");
        rc = sqlite3_prepare_v3(k->db, sql, -1, SQLITE_PREPARE_PERSISTENT, &k->st[i], NULL);
        if (rc != SQLITE_OK)
            return sink_fail(k, rc);
    }
    return GW_OK;
}

/* The file's settings, its tables and the first facts; then the first transaction is open. */
static enum gw_status sink_start(struct sqlite_sink *k)
{
    static const char *const modes[] = { "all", "sample", "summary" };
    char pragma[128];

    if (sink_exec(k, "PRAGMA page_size = 8192; PRAGMA journal_mode = TRUNCATE;"
                  "PRAGMA synchronous = OFF; PRAGMA locking_mode = EXCLUSIVE;"
                  "PRAGMA cache_spill = OFF; PRAGMA temp_store = MEMORY;"
                  "PRAGMA cache_size = -16384; BEGIN") != GW_OK)
        return k->first.code;
    snprintf(pragma, sizeof pragma, "PRAGMA application_id = %d; PRAGMA user_version = %d",
             GW_RECORD_MAGIC, GW_RECORD_SCHEMA);
    if (sink_exec(k, pragma) != GW_OK || sink_exec(k, gw_record_schema) != GW_OK ||
        sink_prepare(k) != GW_OK ||
        sqlite_meta(&k->sink, "complete", "no", false) != GW_OK ||
        sqlite_meta(&k->sink, "records.flows", modes[k->conf.flows], false) != GW_OK)
        return k->first.code;
    return GW_OK;
}

/* Makes the file; refuses one that stands already. */
static enum gw_status sink_file(struct sqlite_sink *k, const char *path)
{
    struct stat st;
    bool dir = stat(path, &st) == 0 && S_ISDIR(st.st_mode);
    size_t n = strlen(path) + sizeof "/" GW_RECORD_FILE;
    int fd;

    k->path = malloc(n);
    if (!k->path)
        return gw_fail(&k->first, GW_NOMEM, "%s: out of memory for records", path);
    snprintf(k->path, n, dir ? "%s/" GW_RECORD_FILE : "%s", path);
    fd = open(k->path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd < 0 && errno == EEXIST)
        return gw_fail(&k->first, GW_IO, "%s: exists already; records are never written over",
                       k->path);
    if (fd < 0)
        return gw_fail(&k->first, GW_IO, "%s: cannot be created: %s; name a directory that "
                       "exists and is writable", k->path, strerror(errno));
    close(fd);
    return GW_OK;
}

/* Takes the file away that could not be begun. */
static void sink_remove(const struct sqlite_sink *k)
{
    char journal[PATH_MAX];

    unlink(k->path);
    if ((size_t)snprintf(journal, sizeof journal, "%s-journal", k->path) < sizeof journal)
        unlink(journal);
}

struct gw_sink *gw_record_create(const char *path, const struct gw_record_conf *conf,
                                 struct gw_error *err)
{
    struct sqlite_sink *k = calloc(1, sizeof *k);
    int rc;

    if (!k) {
        gw_fail(err, GW_NOMEM, "%s: out of memory for records", path);
        return NULL;
    }
    k->sink.ops = &sqlite_ops;
    if (conf)
        k->conf = *conf;
    if (sink_file(k, path) != GW_OK)
        goto out_free;
    rc = sqlite3_open_v2(k->path, &k->db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, NULL);
    if (rc != SQLITE_OK) {
        sink_fail(k, rc);
        goto out_free;
    }
    sqlite3_extended_result_codes(k->db, 1);
    rc = sqlite3_create_module(k->db, "gw_flows", &flows_module, k);
    k->flow = malloc(FLOW_ROWS * sizeof *k->flow);
    if (rc != SQLITE_OK || !k->flow)
        sink_fail(k, k->flow ? rc : SQLITE_NOMEM);
    else if (sink_start(k) == GW_OK)
        return &k->sink;
    sink_remove(k);

out_free:
    gw_fail(err, k->first.code, "%s", k->first.text);
    sink_free(k);
    return NULL;
}

/* ---- the sink that drops everything ------------------------------------------------------- */

#define NULL_CALL(call, type)                                                           \
    static enum gw_status null_##call(struct gw_sink *s, const struct type *r)          \
    {                                                                                   \
        (void)s;                                                                        \
        (void)r;                                                                        \
        return GW_OK;                                                                   \
    }

NULL_CALL(node, gw_rec_node)
NULL_CALL(link, gw_rec_link)
NULL_CALL(link_total, gw_rec_link_total)
NULL_CALL(link_sample, gw_rec_link_sample)
NULL_CALL(job, gw_rec_job)
NULL_CALL(rank, gw_rec_rank)
NULL_CALL(flow, gw_rec_flow)
NULL_CALL(path, gw_rec_path)
NULL_CALL(message, gw_rec_message)
NULL_CALL(loss, gw_rec_loss)
NULL_CALL(collective, gw_rec_collective)
NULL_CALL(iteration, gw_rec_iteration)
NULL_CALL(stat, gw_rec_stat)
NULL_CALL(tc, gw_rec_tc)

static enum gw_status null_meta(struct gw_sink *s, const char *key, const char *value,
                                bool machine)
{
    (void)s;
    (void)key;
    (void)value;
    (void)machine;
    return GW_OK;
}

static enum gw_status null_note(struct gw_sink *s, const char *text)
{
    (void)s;
    (void)text;
    return GW_OK;
}

static enum gw_status null_finish(struct gw_sink *s, bool complete, struct gw_error *err)
{
    (void)complete;
    (void)err;
    free(s);
    return GW_OK;
}

static const struct gw_sink_ops null_ops = {
    .node = null_node, .link = null_link, .link_total = null_link_total,
    .link_sample = null_link_sample, .job = null_job, .rank = null_rank, .flow = null_flow,
    .path = null_path, .message = null_message, .loss = null_loss, .collective = null_collective,
    .iteration = null_iteration, .stat = null_stat, .meta = null_meta, .finish = null_finish,
    .note = null_note, .tc = null_tc,
};

struct gw_sink *gw_record_null(void)
{
    struct gw_sink *s = calloc(1, sizeof *s);

    if (s)
        s->ops = &null_ops;
    return s;
}
