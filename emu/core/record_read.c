/*
 * record_read - opens records, and hashes them and files
 *
 * A record of a killed run opens too: what was committed is there. If the kill fell into a commit,
 * the file's rollback journal is hot, and SQLite must write once to undo the half commit; where
 * that is not permitted the sentence says so, for reading past a hot journal would show torn pages.
 *
 * The digest is SHA-256 (FIPS 180-4, by libmd) over every table but `host`: tables by name, rows by
 * key, each value with its type and length in front, integers and doubles as 8 bytes, most
 * significant first. The order in which rows were inserted, page sizes and SQLite's version do not
 * enter it.
 */
#include "emu/core/record.h"
#include "emu/core/record_schema.h"

#include <errno.h>
#include <sha256.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <sys/stat.h>

/* ---- opening ------------------------------------------------------------------------------ */

/* The file of record @dir (a directory, or the file itself); NULL: out of memory. */
static char *record_path(const char *dir)
{
    struct stat st;
    bool is_dir = stat(dir, &st) == 0 && S_ISDIR(st.st_mode);
    size_t n = strlen(dir) + sizeof "/" GW_RECORD_FILE;
    char *path = malloc(n);

    if (path)
        snprintf(path, n, is_dir ? "%s/" GW_RECORD_FILE : "%s", dir);
    return path;
}

/* One number out of @sql; false with SQLite's code in *rc. */
static bool read_number(sqlite3 *db, const char *sql, int64_t *value, int *rc)
{
    sqlite3_stmt *st = NULL;

    *rc = sqlite3_prepare_v2(db, sql, -1, &st, NULL);
    if (*rc == SQLITE_OK)
        *rc = sqlite3_step(st);
    if (*rc == SQLITE_ROW)
        *value = sqlite3_column_int64(st, 0);
    sqlite3_finalize(st);
    return *rc == SQLITE_ROW;
}

/* Opens @path; @db is closed again on failure. Returns SQLite's code. */
static int try_open(const char *path, int flags, sqlite3 **db)
{
    int64_t tables;
    int rc = sqlite3_open_v2(path, db, flags | SQLITE_OPEN_NOMUTEX, NULL);

    if (rc == SQLITE_OK) {
        sqlite3_extended_result_codes(*db, 1);
        if (read_number(*db, "SELECT count(*) FROM sqlite_master", &tables, &rc))
            return SQLITE_OK;
    }
    sqlite3_close(*db);
    *db = NULL;
    return rc;
}

/* Undoes the half-made commit of a killed run; needs to write. */
static int recover(const char *path)
{
    sqlite3 *db = NULL;
    int rc = try_open(path, SQLITE_OPEN_READWRITE, &db);

    sqlite3_close(db);
    return rc;
}

static void open_fail(const char *path, int rc, bool hot, struct gw_error *err)
{
    if (hot)
        gw_fail(err, GW_IO, "%s: the run was killed in the middle of a commit, which must be undone"
                " first, and that needs to write: %s; copy it with its -journal to where you may "
                "write", path, sqlite3_errstr(rc));
    else if ((rc & 0xff) == SQLITE_BUSY)
        gw_fail(err, GW_IO, "%s: a run is still writing it; wait for its end", path);
    else if ((rc & 0xff) == SQLITE_NOTADB || (rc & 0xff) == SQLITE_CORRUPT)
        gw_fail(err, GW_SYNTAX, "%s: no record (%s); name a directory that `gradwire run` wrote",
                path, sqlite3_errstr(rc));
    else
        gw_fail(err, GW_IO, "%s: cannot be read: %s", path, sqlite3_errstr(rc));
}

/* Whether the file is a record that this version knows, and whether the run reached its end. */
static enum gw_status check_record(sqlite3 *db, const char *path, bool *complete,
                                   struct gw_error *err)
{
    int64_t magic = 0, schema = 0, done = 0;
    int rc;

    if (!read_number(db, "PRAGMA application_id", &magic, &rc) || magic != GW_RECORD_MAGIC)
        return gw_fail(err, GW_SYNTAX, "%s: no record of gradwire, or its run was cut off before "
                       "the first commit", path);
    if (!read_number(db, "PRAGMA user_version", &schema, &rc) || schema != GW_RECORD_SCHEMA)
        return gw_fail(err, GW_SYNTAX, "%s: record of schema %lld; this gradwire reads schema %d",
                       path, (long long)schema, GW_RECORD_SCHEMA);
    if (!read_number(db, "SELECT count(*) FROM run WHERE key = 'complete' AND value = 'yes'",
                     &done, &rc))
        return gw_fail(err, GW_SYNTAX, "%s: record without its run table: %s", path,
                       sqlite3_errmsg(db));
    *complete = done == 1;
    return GW_OK;
}

struct sqlite3 *gw_record_open(const char *dir, bool *complete, struct gw_error *err)
{
    char *path = record_path(dir);
    struct stat st;
    sqlite3 *db = NULL;
    bool hot = false;
    int rc;

    if (!path) {
        gw_fail(err, GW_NOMEM, "%s: out of memory", dir);
        return NULL;
    }
    if (stat(path, &st)) {
        gw_fail(err, GW_IO, "%s: %s; name a directory that `gradwire run` wrote", path,
                strerror(errno));
        goto out;
    }
    rc = try_open(path, SQLITE_OPEN_READONLY, &db);
    hot = rc == SQLITE_READONLY_ROLLBACK || rc == SQLITE_READONLY_RECOVERY ||
          rc == SQLITE_READONLY_CANTLOCK;
    if (hot) {
        rc = recover(path);
        if (rc == SQLITE_OK)
            rc = try_open(path, SQLITE_OPEN_READONLY, &db);
    }
    if (!db) {
        open_fail(path, rc, hot, err);
        goto out;
    }
    if (check_record(db, path, complete, err) != GW_OK) {
        sqlite3_close(db);
        db = NULL;
    }
out:
    free(path);
    return db;
}

/* ---- digests ------------------------------------------------------------------------------ */

static void hash_u64(SHA2_CTX *h, uint64_t v)
{
    uint8_t b[8];

    for (int i = 0; i < 8; i++)
        b[i] = (uint8_t)(v >> (56 - 8 * i));
    SHA256Update(h, b, sizeof b);
}

static void hash_text(SHA2_CTX *h, const void *text, size_t n)
{
    hash_u64(h, n);
    SHA256Update(h, text, n);
}

static void hash_cell(SHA2_CTX *h, sqlite3_stmt *st, int col)
{
    int type = sqlite3_column_type(st, col);
    uint8_t tag = (uint8_t)type;

    SHA256Update(h, &tag, 1);
    if (type == SQLITE_INTEGER) {
        hash_u64(h, (uint64_t)sqlite3_column_int64(st, col));
    } else if (type == SQLITE_FLOAT) {
        double d = sqlite3_column_double(st, col);
        uint64_t bits;

        memcpy(&bits, &d, sizeof bits);
        hash_u64(h, bits);
    } else if (type != SQLITE_NULL) {
        const void *p = sqlite3_column_blob(st, col);

        hash_text(h, p ? p : "", (size_t)sqlite3_column_bytes(st, col));
    }
}

static void hash_hex(SHA2_CTX *h, char hex[65])
{
    static const char digit[] = "0123456789abcdef";
    uint8_t sum[SHA256_DIGEST_LENGTH];

    SHA256Final(sum, h);
    for (size_t i = 0; i < sizeof sum; i++) {
        hex[2 * i] = digit[sum[i] >> 4];
        hex[2 * i + 1] = digit[sum[i] & 15];
    }
    hex[64] = 0;
}

static enum gw_status db_fail(sqlite3 *db, struct gw_error *err)
{
    const char *file = sqlite3_db_filename(db, "main");

    return gw_fail(err, GW_IO, "%s: cannot be read: %s", file && *file ? file : "record",
                   sqlite3_errmsg(db));
}

/* "SELECT * FROM t ORDER BY its key columns", or all columns where there is no key. Free with
 * sqlite3_free; NULL: failed. */
static char *ordered_query(sqlite3 *db, const char *table)
{
    sqlite3_str *sql = sqlite3_str_new(db);
    sqlite3_stmt *st = NULL;
    const char *between = " ORDER BY ";

    sqlite3_str_appendf(sql, "SELECT * FROM \"%w\"", table);
    if (sqlite3_prepare_v2(db, "SELECT name FROM pragma_table_info(?1) WHERE pk > 0 OR NOT EXISTS"
                           "(SELECT 1 FROM pragma_table_info(?1) WHERE pk > 0)"
                           " ORDER BY pk, cid", -1, &st, NULL) == SQLITE_OK) {
        sqlite3_bind_text(st, 1, table, -1, SQLITE_STATIC);
        while (sqlite3_step(st) == SQLITE_ROW) {
            sqlite3_str_appendf(sql, "%s\"%w\"", between, sqlite3_column_text(st, 0));
            between = ", ";
        }
    }
    sqlite3_finalize(st);
    return sqlite3_str_finish(sql);
}

static enum gw_status hash_table(sqlite3 *db, const char *table, SHA2_CTX *h, struct gw_error *err)
{
    char *sql = ordered_query(db, table);
    sqlite3_stmt *st = NULL;
    int rc = sql ? sqlite3_prepare_v2(db, sql, -1, &st, NULL) : SQLITE_NOMEM, columns;

    sqlite3_free(sql);
    if (rc != SQLITE_OK)
        return db_fail(db, err);
    columns = sqlite3_column_count(st);
    hash_text(h, table, strlen(table));
    hash_u64(h, (uint64_t)columns);
    for (int c = 0; c < columns; c++)
        hash_text(h, sqlite3_column_name(st, c), strlen(sqlite3_column_name(st, c)));
    while ((rc = sqlite3_step(st)) == SQLITE_ROW)
        for (int c = 0; c < columns; c++)
            hash_cell(h, st, c);
    sqlite3_finalize(st);
    return rc == SQLITE_DONE ? GW_OK : db_fail(db, err);
}

enum gw_status gw_record_digest(struct sqlite3 *db, char hex[65], struct gw_error *err)
{
    sqlite3_stmt *st = NULL;
    enum gw_status code = GW_OK;
    SHA2_CTX h;
    int rc;

    SHA256Init(&h);
    rc = sqlite3_prepare_v2(db, "SELECT name FROM sqlite_master WHERE type = 'table'"
                            " AND name <> 'host' AND name NOT LIKE 'sqlite_%'"
                            " ORDER BY name", -1, &st, NULL);
    if (rc != SQLITE_OK)
        return db_fail(db, err);
    while (code == GW_OK && (rc = sqlite3_step(st)) == SQLITE_ROW)
        code = hash_table(db, (const char *)sqlite3_column_text(st, 0), &h, err);
    if (code == GW_OK && rc != SQLITE_DONE)
        code = db_fail(db, err);
    sqlite3_finalize(st);
    hash_hex(&h, hex);
    return code;
}

enum gw_status gw_file_digest(const char *path, char hex[65], struct gw_error *err)
{
    enum gw_status code = GW_OK;
    uint8_t buf[65536];
    SHA2_CTX h;
    size_t n;
    FILE *f = fopen(path, "rbe");

    if (!f)
        return gw_fail(err, GW_IO, "%s: cannot be opened: %s", path, strerror(errno));
    SHA256Init(&h);
    while ((n = fread(buf, 1, sizeof buf, f)) > 0)
        SHA256Update(&h, buf, n);
    if (ferror(f))
        code = gw_fail(err, GW_IO, "%s: cannot be read: %s", path, strerror(errno));
    fclose(f);
    hash_hex(&h, hex);
    return code;
}
