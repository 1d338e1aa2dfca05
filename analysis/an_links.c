/*
 * an_links - what each direction of each link carried, and what it lost
 *
 * Utilisation is the share of the run for which the link was serialising: bits on the wire, framing
 * and fluid traffic included, over rate times the run's length; a link of unlimited rate has none.
 * Waits are queueing without service; what netem holds back on purpose (delay, slots) stands in a
 * column of its own. Busiest first.
 *
 * A run that was cut off has no totals. Then bytes, drops and marks are summed over the samples as
 * far as they go; without samples bytes are what finished flows delivered over the link, headers
 * and repetitions not counted. Column `from` says which of the three it is.
 */
#include <gradwire/alg/iterations.h>
#include <gradwire/gradwire.h>

/* The three sources, best first. All answer: link, direction, rate, bytes, wire bytes or NULL, mean
 * wait, max wait, queue bytes, queue packets, dropped, marked. */
struct source {
    const char *name;
    const char *test;               /* whether the record has it                               */
    const char *rows;
};

static const struct source sources[] = {
    { "totals", "SELECT 1 FROM link_total LIMIT 1",
      "SELECT l.link, l.name, l.direction, l.rate_bps, t.sent_bytes + t.fluid_bytes,"
      " t.wire_bytes + t.fluid_bytes, t.mean_wait_ps, t.max_wait_ps, t.queue_max_bytes,"
      " t.queue_max_pkts, (SELECT ifnull(sum(pkts), 0) FROM link_drop d WHERE d.link = l.link),"
      " t.marked_pkts, t.mean_held_ps FROM link l JOIN link_total t USING(link)" },
    { "samples", "SELECT 1 FROM link_sample LIMIT 1",
      "SELECT l.link, l.name, l.direction, l.rate_bps, ifnull(sum(s.sent_bytes), 0),"
      " sum(s.sent_bytes), NULL, NULL, max(s.queue_bytes), max(s.queue_pkts),"
      " ifnull(sum(s.dropped_pkts), 0), ifnull(sum(s.marked_pkts), 0), NULL"
      " FROM link l LEFT JOIN link_sample s USING(link) GROUP BY l.link" },
    { "flows", "SELECT 1",
      "SELECT l.link, l.name, l.direction, l.rate_bps, ifnull(sum(c.bytes), 0), sum(c.bytes), NULL,"
      " NULL, NULL, NULL, NULL, NULL, NULL FROM link l LEFT JOIN"
      " (SELECT p.link AS link, f.bytes AS bytes FROM (SELECT conn, sum(delivered_bytes) AS bytes"
      " FROM flow GROUP BY conn) f JOIN path p USING(conn)) c USING(link) GROUP BY l.link" },
};

/* ---- state -------------------------------------------------------------------------------- */

static bool has(struct gw_analysis *a, const char *sql)
{
    sqlite3_stmt *st = gw_db_query(a->db, sql, NULL);
    bool found = st && sqlite3_step(st) == SQLITE_ROW;

    sqlite3_finalize(st);
    return found;
}

static struct gw_cell int_cell(sqlite3_stmt *st, int c)
{
    return sqlite3_column_type(st, c) == SQLITE_NULL ? gw_cell_null()
                                                     : gw_cell_int(sqlite3_column_int64(st, c));
}

static struct gw_cell seconds_cell(sqlite3_stmt *st, int c)
{
    return gw_cell_real(sqlite3_column_type(st, c) == SQLITE_NULL
                        ? (double)NAN : sqlite3_column_double(st, c) / 1e12);
}

static enum gw_status link_rows(struct gw_analysis *a, struct gw_table *t, sqlite3_stmt *st,
                                const char *from)
{
    struct gw_cell row[14];
    enum gw_status code = GW_OK;

    while (code == GW_OK && sqlite3_step(st) == SQLITE_ROW) {
        row[0] = gw_cell_text((const char *)sqlite3_column_text(st, 1));
        row[1] = gw_cell_text((const char *)sqlite3_column_text(st, 2));
        row[2] = int_cell(st, 3);
        row[3] = int_cell(st, 4);
        row[4] = int_cell(st, 5);
        row[5] = gw_cell_real(sqlite3_column_type(st, 13) == SQLITE_NULL
                              ? (double)NAN : sqlite3_column_double(st, 13));
        row[6] = seconds_cell(st, 6);
        row[7] = seconds_cell(st, 7);
        row[8] = int_cell(st, 8);
        row[9] = int_cell(st, 9);
        row[10] = int_cell(st, 10);
        row[11] = int_cell(st, 11);
        row[12] = seconds_cell(st, 12);
        row[13] = gw_cell_text(from);
        code = a->host->table_row(t, row);
    }
    return code;
}

/* The rows with their utilisation behind them, in order. NULL: failed. */
static sqlite3_stmt *link_query(struct gw_analysis *a, const struct source *s,
                                struct gw_error *err)
{
    static const char form[] =
        "SELECT *, CASE WHEN rate_bps > 0 THEN wire * 8.0 / (rate_bps * ("
        GW_SQL_DURATION_PS " / 1e12)) END AS utilisation FROM (SELECT * FROM (WITH x(link, name,"
        " direction, rate_bps, bytes, wire, mean_wait, max_wait, queue_bytes, queue_pkts, dropped,"
        " marked, held) AS (%s) SELECT * FROM x)) ORDER BY utilisation DESC, bytes DESC, link";
    char *sql = sqlite3_mprintf(form, s->rows);
    sqlite3_stmt *st = NULL;

    if (sql)
        st = gw_db_query(a->db, sql, err);
    else
        gw_fail(err, GW_NOMEM, "analysis links: out of memory");
    sqlite3_free(sql);
    return st;
}

/* ---- callbacks ---------------------------------------------------------------------------- */

static enum gw_status links_table(struct gw_analysis *a, struct gw_error *err)
{
    static const char *const columns[] = {
        "link", "direction", "rate_bps", "sent_bytes", "wire_bytes", "utilisation", "mean_wait_s",
        "max_wait_s", "queue_max_bytes", "queue_max_pkts", "dropped_pkts", "marked_pkts",
        "mean_held_s", "from",
    };
    struct gw_table *t = a->host->table_new(a, "links", "Links, each direction, busiest first",
                                            columns, GW_ARRAY_LEN(columns));
    const struct source *s = sources;
    sqlite3_stmt *st;
    enum gw_status code;

    if (!t)
        return gw_fail(err, GW_NOMEM, "analysis links: out of memory");
    while (!has(a, s->test))
        s++;
    st = link_query(a, s, err);
    if (!st)
        return GW_IO;
    code = a->host->table_note(t, "utilisation is of the wire: framing (FCS, preamble, gap) is in "
                               "`wire`, not in `sent`; waits are queueing, what netem holds back on "
                               "purpose is `mean held`");
    if (code == GW_OK)
        code = link_rows(a, t, st, s->name);
    if (code != GW_OK)
        gw_fail(err, code, "analysis links: out of memory");
    sqlite3_finalize(st);
    return code;
}

static enum gw_status drops_table(struct gw_analysis *a, struct gw_error *err)
{
    static const char *const columns[] = { "link", "direction", "reason", "pkts", "pkts_share" };
    struct gw_table *t = a->host->table_new(a, "drops", "Lost packets by reason, as part of what "
                                            "came to the device", columns, GW_ARRAY_LEN(columns));
    sqlite3_stmt *st = t ? gw_db_query(a->db, "SELECT l.name, l.direction, d.reason, d.pkts,"
                                       " CAST(d.pkts AS REAL) / nullif(t.arrived_pkts, 0)"
                                       " FROM link_drop d JOIN link l USING(link)"
                                       " LEFT JOIN link_total t USING(link)"
                                       " ORDER BY d.pkts DESC, d.link, d.reason", err) : NULL;
    enum gw_status code = GW_OK;
    struct gw_cell row[5];

    if (!t)
        return gw_fail(err, GW_NOMEM, "analysis links: out of memory");
    if (!st)
        return GW_IO;
    while (code == GW_OK && sqlite3_step(st) == SQLITE_ROW) {
        for (int c = 0; c < 3; c++)
            row[c] = gw_cell_text((const char *)sqlite3_column_text(st, c));
        row[3] = int_cell(st, 3);
        row[4] = gw_cell_real(sqlite3_column_type(st, 4) == SQLITE_NULL
                              ? (double)NAN : sqlite3_column_double(st, 4));
        code = a->host->table_row(t, row);
    }
    sqlite3_finalize(st);
    return code == GW_OK ? GW_OK : gw_fail(err, code, "analysis links: out of memory");
}

static enum gw_status links_run(struct gw_analysis *a, struct gw_error *err)
{
    enum gw_status code = links_table(a, err);

    return code == GW_OK ? drops_table(a, err) : code;
}

static const struct gw_analysis_ops links_ops = {
    .run = links_run,
};

GW_PLUGIN(gw_analysis_links) = {
    GW_PLUGIN_HEAD(GW_KIND_ANALYSIS, links_ops),
    .name    = "links",
    .summary = "Bytes, utilisation, waits, queue depth, marks and drops by reason of each link.",
    .flags   = GW_ANALYSIS_PLACE(5),
};
