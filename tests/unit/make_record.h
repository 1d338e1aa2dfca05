/*
 * make_record.h - small records for tests: a scratch directory and rows in one line each
 */
#ifndef GW_TESTS_MAKE_RECORD_H
#define GW_TESTS_MAKE_RECORD_H

#include "emu/core/record.h"
#include "tests/unit/suite.h"

#include <gradwire/qdisc.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <unistd.h>

struct scratch {
    char dir[64];
    struct gw_sink *sink;
    struct gw_error err;
};

/* A new directory with an empty record in it. */
static inline void scratch_begin(struct scratch *s, enum gw_flow_records flows)
{
    struct gw_record_conf conf = { .flows = flows };

    memset(s, 0, sizeof *s);
    snprintf(s->dir, sizeof s->dir, "/tmp/gradwire-test-XXXXXX");
    if (!mkdtemp(s->dir))
        abort();
    s->sink = gw_record_create(s->dir, &conf, &s->err);
    CHECK_ROW(s->sink != NULL, "%s", s->err.text);
    if (!s->sink)
        abort();
}

/* Finishes the record and opens it. */
static inline struct sqlite3 *scratch_open(struct scratch *s, bool complete)
{
    struct sqlite3 *db;
    bool done = !complete;
    enum gw_status code = s->sink->ops->finish(s->sink, complete, &s->err);

    CHECK_ROW(code == GW_OK, "finish: %s", s->err.text);
    db = gw_record_open(s->dir, &done, &s->err);
    CHECK_ROW(db != NULL, "open: %s", s->err.text);
    CHECK_ROW(done == complete, "complete is %d", done);
    return db;
}

static inline void scratch_end(struct scratch *s, struct sqlite3 *db)
{
    static const char *const files[] = { "records.sqlite", "records.sqlite-journal" };
    char path[128];

    CU_ASSERT(sqlite3_close(db) == SQLITE_OK);
    for (size_t i = 0; i < GW_ARRAY_LEN(files); i++) {
        snprintf(path, sizeof path, "%.63s/%s", s->dir, files[i]);
        unlink(path);
    }
    CHECK_ROW(rmdir(s->dir) == 0, "%s is not empty", s->dir);
}

/* One number out of @db; -1e300: none. */
static inline double number_of(struct sqlite3 *db, const char *sql)
{
    sqlite3_stmt *st = NULL;
    double v = -1e300;

    if (sqlite3_prepare_v2(db, sql, -1, &st, NULL) == SQLITE_OK &&
        sqlite3_step(st) == SQLITE_ROW && sqlite3_column_type(st, 0) != SQLITE_NULL)
        v = sqlite3_column_double(st, 0);
    sqlite3_finalize(st);
    return v;
}

static inline void add_node(struct scratch *s, uint32_t node, const char *name, bool is_host)
{
    struct gw_rec_node r = { node, name, is_host };

    CU_ASSERT(s->sink->ops->node(s->sink, &r) == GW_OK);
}

static inline void add_link(struct scratch *s, uint32_t link, const char *name, uint32_t from,
                            uint32_t to, uint64_t rate_bps)
{
    struct gw_rec_link r = { .link = link, .name = name, .direction = name, .from_node = from,
                             .to_node = to, .rate_bps = rate_bps, .delay_ps = 1000 };

    CU_ASSERT(s->sink->ops->link(s->sink, &r) == GW_OK);
}

static inline void add_job(struct scratch *s, uint32_t job, const char *name, uint32_t ranks)
{
    struct gw_rec_job r = { job, name, "test", ranks, 1 };

    CU_ASSERT(s->sink->ops->job(s->sink, &r) == GW_OK);
    for (uint32_t i = 0; i < ranks; i++) {
        struct gw_rec_rank k = { job, i, i };

        CU_ASSERT(s->sink->ops->rank(s->sink, &k) == GW_OK);
    }
}

static inline void add_path(struct scratch *s, uint32_t conn, uint32_t hop, uint32_t link)
{
    struct gw_rec_path r = { conn, hop, link };

    CU_ASSERT(s->sink->ops->path(s->sink, &r) == GW_OK);
}

/* Times in ms. */
static inline void add_iteration(struct scratch *s, uint32_t iteration, uint32_t rank,
                                 double start_ms, double end_ms, uint64_t last_message)
{
    uint64_t start = (uint64_t)(start_ms * 1e9), end = (uint64_t)(end_ms * 1e9);
    struct gw_rec_iteration r = {
        .iteration = iteration, .rank = rank, .start_ps = start, .end_ps = end,
        .compute_ps = (end - start) / 2, .exposed_ps = (end - start) / 4,
        .wait_ps = (end - start) / 4, .last_message = last_message,
    };

    CU_ASSERT(s->sink->ops->iteration(s->sink, &r) == GW_OK);
}

/* A flow of job 0 with start and end in ms; end < 0: never. */
static inline struct gw_rec_flow flow_row(uint64_t flow, uint64_t message, uint32_t iteration,
                                          double start_ms, double end_ms)
{
    struct gw_rec_flow r = {
        .flow = flow, .conn = (uint32_t)flow, .message = message, .iteration = iteration,
        .dst_rank = 1, .dst_node = 1, .bytes = 1000, .delivered_bytes = end_ms < 0 ? 400 : 1000,
        .start_ps = (uint64_t)(start_ms * 1e9),
        .end_ps = end_ms < 0 ? GW_NEVER : (uint64_t)(end_ms * 1e9), .ideal_ps = 1000000000,
    };

    return r;
}

static inline void add_flow(struct scratch *s, const struct gw_rec_flow *r)
{
    CU_ASSERT(s->sink->ops->flow(s->sink, r) == GW_OK);
}

/* A message of job 0; times in ms; posted @wait_ms after its cause arrived. */
static inline void add_message(struct scratch *s, uint64_t message, uint32_t iteration,
                               uint32_t src, uint32_t dst, double post_ms, double end_ms,
                               uint64_t cause, double wait_ms)
{
    struct gw_rec_message r = {
        .message = message, .iteration = iteration, .src_rank = src, .dst_rank = dst,
        .bytes = 1000, .post_ps = (uint64_t)(post_ms * 1e9), .start_ps = (uint64_t)(post_ms * 1e9),
        .end_ps = (uint64_t)(end_ms * 1e9), .cause_message = cause,
        .cause_wait_ps = (uint64_t)(wait_ms * 1e9),
    };

    CU_ASSERT(s->sink->ops->message(s->sink, &r) == GW_OK);
}

static inline bool near(double got, double want, double relative)
{
    double d = got > want ? got - want : want - got, scale = want < 0 ? -want : want;

    return d <= relative * (scale > 0 ? scale : 1);
}

#endif
