/*
 * study.h - the study: the one place where topology, transport, jobs, captures and records join
 */
#ifndef GW_CLI_STUDY_H
#define GW_CLI_STUDY_H

#include "emu/core/registry.h"

struct gw_study;

struct gw_study_conf {
    const char *path;
    const char *const *set;      /* --set path=value, NULL-terminated, may be NULL             */
    const char *const *pcap;     /* --pcap DEV[,FILTER], NULL-terminated, may be NULL          */
    uint64_t seed;               /* used if seed_given                                         */
    bool     seed_given;
    bool     real_clock;
};

struct gw_study_result {
    struct { uint64_t count; double mean_s, p50_s, p99_s; } iterations;
    struct { uint64_t count, bytes, delivered_bytes; double fct_p50_s, fct_p99_s; } flows;
    struct { uint64_t hops, delivered, dropped; } packets;
    struct { uint64_t queue, loss, other; } drops;
    uint64_t events;
    double   sim_s, wall_s, cpu_s, setup_s;
    uint64_t peak_rss_bytes, seed;
    bool     unfinished;         /* stall: exit code 3                                         */
    bool     until_reached;
};

/* What a progress callback sees; returns false to stop the run. */
struct gw_progress {
    double   sim_s, until_s;     /* until_s 0: unknown                                         */
    double   wall_s, event_rate; /* events per wall second                                     */
    double   done;               /* share of bytes or iterations done, 0..1; <0 unknown        */
};
typedef bool (*gw_progress_fn)(void *ctx, const struct gw_progress *p);

/* Reads and checks everything; builds the network, runs nothing, writes nothing. All sentences:
 * gw_study_problem(). NULL only if the file cannot be read at all (then err says why). */
GW_API struct gw_study *gw_study_open(struct gw_registry *r, const struct gw_study_conf *c,
                                      struct gw_error *err);
GW_API void gw_study_free(struct gw_study *s);
/* i-th error, then NULL; a study with errors cannot run. */
GW_API const char *gw_study_problem(const struct gw_study *s, size_t i);
/* i-th thing that is suspicious but allowed. */
GW_API const char *gw_study_warning(const struct gw_study *s, size_t i);
GW_API const char *gw_study_name(const struct gw_study *s);
/* Plays the study into the existing, empty directory @dir: records.sqlite, captures, logs,
 * study.yaml (the effective one). */
GW_API enum gw_status gw_study_run(struct gw_study *s, const char *dir, gw_progress_fn progress,
                                   void *ctx, struct gw_study_result *res, struct gw_error *err);
/* The `expect:` list; i-th expression or NULL. */
GW_API const char *gw_study_expect(const struct gw_study *s, size_t i);
/* Files written besides the records, i-th path or NULL: captures, logs. */
GW_API const char *gw_study_output(const struct gw_study *s, size_t i);
/* The disciplines at a device ("wan:a"), and at the i-th device or NULL, for `gradwire tc`. */
struct gw_tree;
GW_API struct gw_tree *gw_study_tree(struct gw_study *s, const char *dev, struct gw_error *err);
GW_API struct gw_tree *gw_study_tree_at(struct gw_study *s, size_t i);
/* Option rows of a part of the study file (study, job, route, records, capture, log), for help;
 * NULL: no such part. */
struct gw_param;
GW_API const struct gw_param *gw_study_rows(const char *section, size_t *count);
/* check: adds problems and warnings that a dry run shows; nothing runs after it. */
GW_API void gw_study_doubts(struct gw_study *s);
/* explain: text about steps, bytes, the bounding link, bounds, effective loss; dry run. */
GW_API enum gw_status gw_study_explain(struct gw_study *s, FILE *out, struct gw_error *err);

#endif
