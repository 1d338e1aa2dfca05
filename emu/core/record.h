/*
 * record.h - the SQLite sink, the digest and the reader of records
 */
#ifndef GW_CORE_RECORD_H
#define GW_CORE_RECORD_H

#include <gradwire/record.h>

struct sqlite3;

enum gw_flow_records { GW_REC_ALL, GW_REC_SAMPLE, GW_REC_SUMMARY };

struct gw_record_conf {
    enum gw_flow_records flows;
    uint64_t sample_seed;         /* sample: which flows (1 of 100 by hash) are kept           */
};

/* Creates DIR/records.sqlite; the file must not exist. Commits by row count, never by clock; until
 * finish(complete) the record says that it is incomplete. */
GW_API struct gw_sink *gw_record_create(const char *path, const struct gw_record_conf *conf,
                                        struct gw_error *err);
/* A sink that drops everything (dry runs, benchmarks). */
GW_API struct gw_sink *gw_record_null(void);
/* Opens DIR/records.sqlite (or the file itself) read-only; *complete says whether it was finished.
 * A database that a killed run left opens too. */
GW_API struct sqlite3 *gw_record_open(const char *dir, bool *complete, struct gw_error *err);
/* SHA-256 over all tables but host, in key order, as 64 hex digits and NUL. */
GW_API enum gw_status gw_record_digest(struct sqlite3 *db, char hex[65], struct gw_error *err);
/* SHA-256 of a file's bytes, for input hashes. */
GW_API enum gw_status gw_file_digest(const char *path, char hex[65], struct gw_error *err);

#endif
