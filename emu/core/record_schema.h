/*
 * record_schema.h - the tables of a record, as the sink creates them; schema.md explains them
 */
#ifndef GW_CORE_RECORD_SCHEMA_H
#define GW_CORE_RECORD_SCHEMA_H

#define GW_RECORD_FILE   "records.sqlite"
#define GW_RECORD_SCHEMA 1           /* PRAGMA user_version                                    */
#define GW_RECORD_MAGIC  1735873362  /* PRAGMA application_id: "gwSR"                          */

/*
 * Keys of one column are SQLite row ids; keys of several are clustered (WITHOUT ROWID), so that the
 * key order of the digest is the order on disk. `flow` and `message` are numbered by rank, so rows
 * come from everywhere in the order of numbers; without a key they are appended, which takes half
 * the time, and the digest sorts. `stat` has no key: two disciplines of one kind on one link may
 * count under the same name.
 */
static const char gw_record_schema[] =
    "CREATE TABLE run(key TEXT PRIMARY KEY, value TEXT) WITHOUT ROWID;"
    "CREATE TABLE host(key TEXT PRIMARY KEY, value TEXT) WITHOUT ROWID;"
    "CREATE TABLE node(node INTEGER PRIMARY KEY, name TEXT, is_host INTEGER);"
    "CREATE TABLE link(link INTEGER PRIMARY KEY, name TEXT, direction TEXT, from_node INTEGER,"
    " to_node INTEGER, rate_bps INTEGER, delay_ps INTEGER);"
    "CREATE TABLE link_total(link INTEGER PRIMARY KEY, sent_pkts INTEGER, sent_bytes INTEGER,"
    " wire_bytes INTEGER, delivered_pkts INTEGER, delivered_bytes INTEGER, in_flight_pkts INTEGER,"
    " busy_ps INTEGER, mean_wait_ps REAL, max_wait_ps INTEGER, queue_max_bytes INTEGER,"
    " queue_max_pkts INTEGER, marked_pkts INTEGER, fluid_bytes INTEGER, arrived_pkts INTEGER,"
    " mean_held_ps REAL);"
    "CREATE TABLE link_drop(link INTEGER, reason TEXT, pkts INTEGER, PRIMARY KEY(link, reason))"
    " WITHOUT ROWID;"
    "CREATE TABLE link_sample(at_ps INTEGER, link INTEGER, sent_bytes INTEGER,"
    " dropped_pkts INTEGER, marked_pkts INTEGER, queue_bytes INTEGER, queue_pkts INTEGER,"
    " PRIMARY KEY(at_ps, link)) WITHOUT ROWID;"
    "CREATE TABLE job(job INTEGER PRIMARY KEY, name TEXT, traffic TEXT, ranks INTEGER,"
    " iterations INTEGER);"
    "CREATE TABLE rank(job INTEGER, rank INTEGER, node INTEGER, PRIMARY KEY(job, rank))"
    " WITHOUT ROWID;"
    "CREATE TABLE flow(flow INTEGER, conn INTEGER, message INTEGER, job INTEGER,"
    " iteration INTEGER, collective INTEGER, src_rank INTEGER, dst_rank INTEGER, src_node INTEGER,"
    " dst_node INTEGER, bytes INTEGER, delivered_bytes INTEGER, start_ps INTEGER, end_ps INTEGER,"
    " ideal_ps INTEGER, retrans_bytes INTEGER, retrans_pkts INTEGER, dropped_pkts INTEGER,"
    " timeouts INTEGER);"
    "CREATE TABLE path(conn INTEGER, hop INTEGER, link INTEGER, PRIMARY KEY(conn, hop))"
    " WITHOUT ROWID;"
    "CREATE TABLE message(message INTEGER, job INTEGER, iteration INTEGER,"
    " collective INTEGER, comm INTEGER, tag INTEGER, layer INTEGER, class INTEGER,"
    " src_rank INTEGER, dst_rank INTEGER, bytes INTEGER, post_ps INTEGER, start_ps INTEGER,"
    " end_ps INTEGER, cause_message INTEGER, cause_wait_ps INTEGER);"
    "CREATE TABLE message_loss(message INTEGER, job INTEGER, iteration INTEGER,"
    " missing_bytes INTEGER, grains INTEGER, missing_grains INTEGER, grain_bytes INTEGER,"
    " arrived BLOB);"
    "CREATE TABLE collective(job INTEGER, collective INTEGER, rank INTEGER, iteration INTEGER,"
    " layer INTEGER, name TEXT, bytes INTEGER, start_ps INTEGER, end_ps INTEGER,"
    " PRIMARY KEY(job, collective, rank)) WITHOUT ROWID;"
    "CREATE TABLE iteration(job INTEGER, iteration INTEGER, rank INTEGER, start_ps INTEGER,"
    " end_ps INTEGER, compute_ps INTEGER, exposed_ps INTEGER, wait_ps INTEGER,"
    " last_message INTEGER, PRIMARY KEY(job, iteration, rank)) WITHOUT ROWID;"
    "CREATE TABLE stat(link INTEGER, owner TEXT, name TEXT, value INTEGER);"
    "CREATE TABLE tc(link INTEGER, object TEXT, place INTEGER, forms INTEGER, kind TEXT,"
    " handle INTEGER, parent INTEGER, text TEXT, PRIMARY KEY(link, object, place, forms))"
    " WITHOUT ROWID;"
    "CREATE TABLE note(note INTEGER PRIMARY KEY, text TEXT);"
    "CREATE TABLE flow_summary(job INTEGER PRIMARY KEY, flows INTEGER, finished INTEGER,"
    " bytes INTEGER, delivered_bytes INTEGER, fct_mean_ps REAL, fct_min_ps INTEGER,"
    " fct_max_ps INTEGER, retrans_bytes INTEGER, retrans_pkts INTEGER, dropped_pkts INTEGER,"
    " timeouts INTEGER);"
    "CREATE TABLE flow_sketch(job INTEGER, metric TEXT, low INTEGER, high INTEGER, flows INTEGER,"
    " PRIMARY KEY(job, metric, low)) WITHOUT ROWID;";

#endif
