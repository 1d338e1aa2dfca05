/*
 * record_lookup - the names that expectations may use, answered out of a record
 *
 * A name is a few words and a quantity, joined by dots: iterations.mean_s, links.wan:a.bytes,
 * flows.in.h0.fct_s. The names of jobs, hosts and links may hold dots themselves; so the quantity
 * is what stands behind the last dot, and job and host are compared joined. schema.md lists all.
 */
#include "emu/core/expect.h"

#include <gradwire/alg/iterations.h>

/* The number that @sql gives with ?1 = @text and ?2 = @more; false: no row, or NULL. */
static bool query(struct sqlite3 *db, const char *sql, const char *text, const char *more,
                  double *value)
{
    sqlite3_stmt *st = NULL;
    bool found;

    if (sqlite3_prepare_v2(db, sql, -1, &st, NULL) != SQLITE_OK)
        return false;
    if (text)
        sqlite3_bind_text(st, 1, text, -1, SQLITE_STATIC);
    if (more)
        sqlite3_bind_text(st, 2, more, -1, SQLITE_STATIC);
    found = sqlite3_step(st) == SQLITE_ROW && sqlite3_column_type(st, 0) != SQLITE_NULL;
    if (found)
        *value = sqlite3_column_double(st, 0);
    sqlite3_finalize(st);
    return found;
}

/* A row: the quantity and the query that answers it. */
struct quantity {
    const char *name, *sql;
};

static const char *find_sql(const struct quantity *row, size_t count, const char *name)
{
    for (size_t i = 0; i < count; i++)
        if (!strcmp(row[i].name, name))
            return row[i].sql;
    return NULL;
}

/* ---- iterations and jobs ------------------------------------------------------------------ */

/* count, mean_s, p50_s, p99_s ... of sorted samples. */
static bool sample_quantity(const struct gw_samples *s, const char *name, double *value)
{
    static const struct { const char *name; double f; } row[] = {
        { "min_s", 0 }, { "p50_s", 0.5 }, { "p95_s", 0.95 }, { "p99_s", 0.99 }, { "max_s", 1 },
    };

    if (!strcmp(name, "count")) {
        *value = (double)s->n;
        return true;
    }
    if (!s->n)
        return false;
    if (!strcmp(name, "mean_s")) {
        *value = gw_samples_mean(s);
        return true;
    }
    for (size_t i = 0; i < GW_ARRAY_LEN(row); i++) {
        if (strcmp(name, row[i].name))
            continue;
        *value = gw_samples_quantile(s, row[i].f);
        return true;
    }
    return false;
}

/*
 * Whether the iterations of @job belong to the headline `iterations.X`: those of the jobs that run
 * collectives (training), or if none does, of all jobs.
 */
static bool in_headline(struct sqlite3 *db, uint32_t job)
{
    static const char sql[] = "SELECT EXISTS (SELECT 1 FROM collective WHERE job = CAST(?1 AS"
                              " INTEGER)) OR NOT EXISTS (SELECT 1 FROM collective)";
    char text[16];
    double in = 0;

    snprintf(text, sizeof text, "%u", job);
    return query(db, sql, text, NULL, &in) && in != 0;
}

/* Times of whole iterations; of job @job, or of the headline's jobs if it is GW_NONE. */
static bool iteration_quantity(struct sqlite3 *db, uint32_t job, const char *name, double *value)
{
    struct gw_iteration_times t = { 0 };
    struct gw_samples s = { 0 };
    bool ok = gw_iteration_times_read(db, &t, NULL) == GW_OK, in = false;

    for (size_t i = 0; ok && i < t.n; i++) {
        if (!i || t.v[i].job != t.v[i - 1].job)
            in = job == GW_NONE ? in_headline(db, t.v[i].job) : t.v[i].job == job;
        if (in && t.v[i].whole)
            ok = gw_samples_add(&s, gw_ps_to_s(t.v[i].time_ps));
    }
    gw_samples_sort(&s);
    ok = ok && sample_quantity(&s, name, value);
    free(t.v);
    free(s.v);
    return ok;
}

/* ---- flows -------------------------------------------------------------------------------- */

static bool fct_exact(struct sqlite3 *db, double f, double *value)
{
    sqlite3_stmt *st = gw_db_query(db, "SELECT end_ps - start_ps FROM flow"
                                   " WHERE end_ps IS NOT NULL AND start_ps IS NOT NULL", NULL);
    struct gw_samples s = { 0 };
    bool ok = st != NULL;

    while (ok && sqlite3_step(st) == SQLITE_ROW)
        ok = gw_samples_add(&s, gw_ps_to_s(sqlite3_column_int64(st, 0)));
    sqlite3_finalize(st);
    gw_samples_sort(&s);
    ok = ok && s.n;
    if (ok)
        *value = gw_samples_quantile(&s, f);
    free(s.v);
    return ok;
}

/* The middle of the bucket in which quantile @f of the sketches of all jobs lies. */
static bool fct_sketch(struct sqlite3 *db, double f, double *value)
{
    sqlite3_stmt *st = gw_db_query(db, "SELECT low, high, sum(flows) FROM flow_sketch"
                                   " WHERE metric = 'fct_ps' GROUP BY low, high ORDER BY low",
                                   NULL);
    double all, seen = 0;
    bool ok = st && query(db, "SELECT sum(flows) FROM flow_sketch WHERE metric = 'fct_ps'", NULL,
                          NULL, &all);

    while (ok && sqlite3_step(st) == SQLITE_ROW) {
        seen += sqlite3_column_double(st, 2);
        *value = (sqlite3_column_double(st, 0) + sqlite3_column_double(st, 1)) / 2e12;
        if (seen > (all - 1) * f)
            break;
    }
    sqlite3_finalize(st);
    return ok && seen > 0;
}

static bool fct_quantile(struct sqlite3 *db, double f, double *value)
{
    double rows;

    if (query(db, "SELECT 1 FROM run WHERE key = 'records.flows' AND value = 'all'", NULL, NULL,
              &rows))
        return fct_exact(db, f, value);
    return fct_sketch(db, f, value);
}

static bool flows_quantity(struct sqlite3 *db, const char *name, double *value)
{
    static const struct quantity row[] = {
        { "count", "SELECT ifnull(sum(flows), 0) FROM flow_summary" },
        { "finished", "SELECT ifnull(sum(finished), 0) FROM flow_summary" },
        { "bytes", "SELECT ifnull(sum(bytes), 0) FROM flow_summary" },
        { "delivered_bytes", "SELECT ifnull(sum(delivered_bytes), 0) FROM flow_summary" },
        { "retrans_bytes", "SELECT ifnull(sum(retrans_bytes), 0) FROM flow_summary" },
        { "retrans_pkts", "SELECT ifnull(sum(retrans_pkts), 0) FROM flow_summary" },
        { "dropped_pkts", "SELECT ifnull(sum(dropped_pkts), 0) FROM flow_summary" },
        { "timeouts", "SELECT ifnull(sum(timeouts), 0) FROM flow_summary" },
        { "missing_bytes", "SELECT ifnull(sum(missing_bytes), 0) FROM message_loss" },
        { "missing_grains", "SELECT ifnull(sum(missing_grains), 0) FROM message_loss" },
        { "holes", "SELECT count(*) FROM message_loss" },
        { "fct_max_s", "SELECT max(fct_max_ps) / 1e12 FROM flow_summary" },
        { "fct_mean_s", "SELECT sum(fct_mean_ps * finished) / sum(finished) / 1e12"
                        " FROM flow_summary WHERE finished > 0" },
    };
    static const struct quantity of_host[] = {
#define FIRST_FLOW(what)                                                                \
    "SELECT " what " FROM flow JOIN job USING(job) JOIN node ON node.node = flow.src_node"  \
    " WHERE job.name || '.' || node.name = ?1 ORDER BY flow LIMIT 1"
        { "fct_s", FIRST_FLOW("(end_ps - start_ps) / 1e12") },
        { "ideal_s", FIRST_FLOW("ideal_ps / 1e12") },
        { "bytes", FIRST_FLOW("flow.bytes") },
        { "delivered_bytes", FIRST_FLOW("flow.delivered_bytes") },
        { "retrans_pkts", FIRST_FLOW("flow.retrans_pkts") },
        { "dropped_pkts", FIRST_FLOW("flow.dropped_pkts") },
        { "timeouts", FIRST_FLOW("flow.timeouts") },
#undef FIRST_FLOW
    };
    const char *sql = find_sql(row, GW_ARRAY_LEN(row), name), *dot = strrchr(name, '.');
    char whose[256];

    if (sql)
        return query(db, sql, NULL, NULL, value);
    if (!strcmp(name, "fct_p50_s"))
        return fct_quantile(db, 0.5, value);
    if (!strcmp(name, "fct_p95_s"))
        return fct_quantile(db, 0.95, value);
    if (!strcmp(name, "fct_p99_s"))
        return fct_quantile(db, 0.99, value);
    if (!dot || !(sql = find_sql(of_host, GW_ARRAY_LEN(of_host), dot + 1)))
        return false;
    snprintf(whose, sizeof whose, "%.*s", (int)(dot - name), name);
    return query(db, sql, whose, NULL, value);
}

/* ---- jobs, links, packets ----------------------------------------------------------------- */

static bool jobs_quantity(struct sqlite3 *db, const char *name, double *value)
{
    static const struct quantity row[] = {
#define OF_JOB(what)                                                                    \
    "SELECT " what " FROM job LEFT JOIN flow_summary USING(job) WHERE job.name = ?1"
        { "ranks", OF_JOB("ranks") },
        { "flows", OF_JOB("ifnull(flows, 0)") },
        { "bytes", OF_JOB("ifnull(bytes, 0)") },
        { "delivered_bytes", OF_JOB("ifnull(delivered_bytes, 0)") },
        { "fct_mean_s", OF_JOB("fct_mean_ps / 1e12") },
        { "fct_max_s", OF_JOB("fct_max_ps / 1e12") },
#undef OF_JOB
    };
    const char *dot = strrchr(name, '.'), *sql;
    char job[256];
    double index;

    if (!dot)
        return false;
    snprintf(job, sizeof job, "%.*s", (int)(dot - name), name);
    sql = find_sql(row, GW_ARRAY_LEN(row), dot + 1);
    if (sql)
        return query(db, sql, job, NULL, value);
    if (!query(db, "SELECT job FROM job WHERE name = ?1", job, NULL, &index))
        return false;
    return iteration_quantity(db, (uint32_t)index, dot + 1, value);
}

static bool links_quantity(struct sqlite3 *db, const char *name, double *value)
{
    static const struct quantity row[] = {
#define OF_LINK(what)                                                                   \
    "SELECT " what " FROM link JOIN link_total USING(link) WHERE link.name = ?1"
        { "bytes", OF_LINK("sent_bytes + fluid_bytes") },
        { "sent_bytes", OF_LINK("sent_bytes") },
        { "wire_bytes", OF_LINK("wire_bytes") },
        { "delivered_bytes", OF_LINK("delivered_bytes") },
        { "sent_pkts", OF_LINK("sent_pkts") },
        { "delivered_pkts", OF_LINK("delivered_pkts") },
        { "in_flight_pkts", OF_LINK("in_flight_pkts") },
        { "mean_wait_s", OF_LINK("mean_wait_ps / 1e12") },
        { "max_wait_s", OF_LINK("max_wait_ps / 1e12") },
        { "mean_held_s", OF_LINK("mean_held_ps / 1e12") },
        { "arrived_pkts", OF_LINK("arrived_pkts") },
        { "queue_max_bytes", OF_LINK("queue_max_bytes") },
        { "queue_max_pkts", OF_LINK("queue_max_pkts") },
        { "marked", OF_LINK("marked_pkts") },
        { "utilisation", OF_LINK("CASE WHEN rate_bps > 0 THEN (wire_bytes + fluid_bytes) * 8.0 /"
                                 " (rate_bps * (" GW_SQL_DURATION_PS " / 1e12)) END") },
        { "drops", OF_LINK("ifnull((SELECT sum(pkts) FROM link_drop"
                           " WHERE link_drop.link = link.link), 0)") },
#undef OF_LINK
    };
    static const char reason[] = "SELECT ifnull((SELECT pkts FROM link_drop WHERE link_drop.link ="
                                 " link.link AND reason = ?2), 0) FROM link WHERE name = ?1";
    const char *dot = strrchr(name, '.'), *sql;
    char dev[256];
    size_t n;

    if (!dot)
        return false;
    sql = find_sql(row, GW_ARRAY_LEN(row), dot + 1);
    n = (size_t)(dot - name);
    /* links.DEV.drops.REASON */
    if (!sql && n > 6 && n < sizeof dev && !strncmp(dot - 6, ".drops", 6)) {
        snprintf(dev, sizeof dev, "%.*s", (int)(n - 6), name);
        return query(db, reason, dev, dot + 1, value);
    }
    snprintf(dev, sizeof dev, "%.*s", (int)n, name);
    return sql && query(db, sql, dev, NULL, value);
}

static bool plain_quantity(struct sqlite3 *db, const char *name, double *value)
{
    static const struct quantity row[] = {
        { "packets.hops", "SELECT ifnull(sum(delivered_pkts), 0) FROM link_total" },
        { "packets.delivered", "SELECT ifnull(sum(delivered_pkts), 0) FROM link_total JOIN link"
                               " USING(link) JOIN node ON node = to_node WHERE is_host" },
        { "packets.dropped", "SELECT ifnull(sum(pkts), 0) FROM link_drop" },
        { "packets.marked", "SELECT ifnull(sum(marked_pkts), 0) FROM link_total" },
        { "drops.queue", "SELECT ifnull(sum(pkts), 0) FROM link_drop WHERE reason IN"
                         " ('queue_full', 'aqm', 'flow_limit', 'too_big', 'shared_buffer')" },
        { "drops.loss", "SELECT ifnull(sum(pkts), 0) FROM link_drop WHERE reason IN"
                        " ('loss', 'corrupt')" },
        { "drops.other", "SELECT ifnull(sum(pkts), 0) FROM link_drop WHERE reason IN"
                         " ('unclassified', 'link_down', 'no_route', 'purged')" },
        { "sim_s", "SELECT " GW_SQL_DURATION_PS " / 1e12" },
    };
    const char *sql = find_sql(row, GW_ARRAY_LEN(row), name);

    return sql && query(db, sql, NULL, NULL, value);
}

bool gw_record_lookup(struct sqlite3 *db, const char *name, double *value)
{
    if (!strncmp(name, "iterations.", 11))
        return iteration_quantity(db, GW_NONE, name + 11, value);
    if (!strncmp(name, "flows.", 6))
        return flows_quantity(db, name + 6, value);
    if (!strncmp(name, "jobs.", 5))
        return jobs_quantity(db, name + 5, value);
    if (!strncmp(name, "links.", 6))
        return links_quantity(db, name + 6, value);
    return plain_quantity(db, name, value);
}
