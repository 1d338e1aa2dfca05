/*
 * verb_run - plays a study in virtual or real time and says what came out
 *
 * Order: the whole study is checked, then the output directory is made, then the run starts; so a
 * study with a problem leaves nothing behind, nor does one that turns out wrong while it runs. Ctrl-C ends the run at the next progress call and
 * leaves a record that says it is incomplete; a second one kills. Standard output holds the answer
 * only (tables, or with --json one object); everything else goes to standard error.
 */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include "emu/cli/args.h"
#include "emu/cli/outdir.h"
#include "emu/cli/progress.h"
#include "emu/cli/report.h"
#include "emu/cli/study.h"
#include "emu/core/expect.h"
#include "emu/core/record.h"

#include <jansson.h>
#include <math.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdlib.h>

#ifndef GW_BUILD_OPTIMISED
#define GW_BUILD_OPTIMISED 1
#define GW_BUILD_PROFILE "unknown"
#endif

enum { JSON_DIGITS = 17 };

struct run_conf {
    const char         *output, *clock;
    struct gw_arg_list  set, pcap;
    struct gw_arg_count seed, threads;
    bool json, force, quiet;
};

static const struct gw_arg run_rows[] = {
    { "output", 'o', GW_ARG_TEXT, offsetof(struct run_conf, output), "DIR",
      "Directory for records and captures, new or empty; default: a new one in the working "
      "directory, named after the study." },
    { "set", 0, GW_ARG_LIST, offsetof(struct run_conf, set), "PATH=VALUE",
      "Sets a value of the study, e.g. topology.wan.delay=40ms; may be repeated." },
    { "seed", 0, GW_ARG_COUNT, offsetof(struct run_conf, seed), "N",
      "Takes this seed instead of the study's." },
    { "threads", 0, GW_ARG_COUNT, offsetof(struct run_conf, threads), "N",
      "Threads to run on; this version knows 1." },
    { "pcap", 0, GW_ARG_LIST, offsetof(struct run_conf, pcap), "DEV[,FILTER]",
      "Captures at a device (wan:a) or both ends of a link (wan), with a pcap filter; may be "
      "repeated." },
    { "clock", 0, GW_ARG_CHOICE, offsetof(struct run_conf, clock), "virtual|real",
      "Clock that the run follows; virtual is as fast as the machine." },
    { "json", 0, GW_ARG_FLAG, offsetof(struct run_conf, json), NULL,
      "Prints one JSON object instead of the tables; its `iterations` are those of the jobs that "
      "run collectives, or if none does, of all jobs." },
    { "force", 'f', GW_ARG_FLAG, offsetof(struct run_conf, force), NULL,
      "Lets -o DIR replace the files of an earlier run." },
    { "quiet", 'q', GW_ARG_FLAG, offsetof(struct run_conf, quiet), NULL,
      "Prints no tables, no progress and no warnings." },
};

struct run {                     /* one call of the verb                                       */
    struct gw_cli           *cli;
    const struct run_conf   *conf;
    struct gw_study         *study;
    struct gw_outdir         dir;
    struct gw_progress_view  progress;
    struct gw_study_result   result;
    bool                     stopped;
};

static volatile sig_atomic_t stop_asked;     /* a signal handler has no other place */

static void on_signal(int number)
{
    (void)number;
    stop_asked = 1;
}

static void catch_signals(void)
{
    struct sigaction a;

    memset(&a, 0, sizeof a);
    a.sa_handler = on_signal;
    a.sa_flags   = (int)SA_RESETHAND;        /* the second one kills */
    sigemptyset(&a.sa_mask);
    sigaction(SIGINT, &a, NULL);
    sigaction(SIGTERM, &a, NULL);
}

static enum gw_status check_threads(const struct run_conf *c, struct gw_error *err)
{
    if (!c->threads.given || c->threads.n == 1)
        return GW_OK;
    return gw_fail(err, GW_PARAM, "gradwire run: --threads %llu: this version runs a study on one "
                   "thread, more come later; write --threads 1 or leave it out",
                   (unsigned long long)c->threads.n);
}

/* Reads and checks the study; NULL with the first problem in @err. */
static struct gw_study *open_study(const struct run *r, struct gw_error *err)
{
    const struct run_conf *c = r->conf;
    struct gw_study_conf   sc = {
        .path = r->cli->operand[0],
        .set = c->set.item,
        .pcap = c->pcap.item,
        .seed = c->seed.n,
        .seed_given = c->seed.given,
        .real_clock = c->clock && !strcmp(c->clock, "real"),
    };
    struct gw_study *s = gw_study_open(r->cli->registry, &sc, err);
    const char      *text;

    if (s && (text = gw_study_problem(s, 0))) {
        gw_fail(err, GW_PARAM, "%s", text);
        gw_study_free(s);
        return NULL;
    }
    return s;
}

static void print_warnings(const struct run *r)
{
    const char *text;

    for (size_t i = 0; (text = gw_study_warning(r->study, i)); i++)
        fprintf(r->cli->err, "warning: %s\n", text);
    if (!GW_BUILD_OPTIMISED)
        fprintf(r->cli->err, "warning: this is a %s build, many times slower than the default one\n",
                GW_BUILD_PROFILE);
}

/* JSON knows no NaN and no infinity: null stands for "there is none". */
static json_t *real(double x)
{
    return isfinite(x) ? json_real(x) : json_null();
}

/* Integers beyond 63 bits (a seed may be one) become reals: never a negative count. */
static json_t *count(uint64_t n)
{
    return n <= INT64_MAX ? json_integer((json_int_t)n) : json_real((double)n);
}

static json_t *result_json(const struct run *r)
{
    const struct gw_study_result *x = &r->result;

    return json_pack("{s:{s:o,s:o,s:o,s:o}, s:{s:o,s:o,s:o,s:o,s:o}, s:{s:o,s:o,s:o},"
                     " s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:s,s:s}",
                     "iterations", "count", count(x->iterations.count),
                     "mean_s", real(x->iterations.mean_s), "p50_s", real(x->iterations.p50_s),
                     "p99_s", real(x->iterations.p99_s),
                     "flows", "count", count(x->flows.count), "bytes", count(x->flows.bytes),
                     "delivered_bytes", count(x->flows.delivered_bytes),
                     "fct_p50_s", real(x->flows.fct_p50_s), "fct_p99_s", real(x->flows.fct_p99_s),
                     "packets", "hops", count(x->packets.hops),
                     "delivered", count(x->packets.delivered),
                     "dropped", count(x->packets.dropped),
                     "events", count(x->events), "sim_s", real(x->sim_s),
                     "wall_s", real(x->wall_s), "cpu_s", real(x->cpu_s),
                     "setup_s", real(x->setup_s),
                     "peak_rss_bytes", count(x->peak_rss_bytes), "seed", count(x->seed),
                     "version", gw_version(), "output", r->dir.path);
}

static enum gw_status print_json(const struct run *r, struct gw_error *err)
{
    json_t *o = result_json(r);

    if (!o)
        return gw_fail(err, GW_NOMEM, "out of memory, or the output's name %s is not UTF-8",
                       r->dir.path);
    json_dumpf(o, r->cli->out, JSON_COMPACT | JSON_REAL_PRECISION(JSON_DIGITS));
    fputc('\n', r->cli->out);
    json_decref(o);
    return GW_OK;
}

/* Seconds with a unit that fits, four digits. */
static const char *seconds(double s, char buf[32])
{
    static const struct { double least, scale; const char *unit; } row[] = {
        { 1, 1, "s" }, { 1e-3, 1e3, "ms" }, { 1e-6, 1e6, "us" }, { 0, 1e9, "ns" },
    };
    size_t i = 0;

    while (s < row[i].least)
        i++;
    if (isfinite(s))
        snprintf(buf, 32, "%.4g %s", s * row[i].scale, row[i].unit);
    else
        snprintf(buf, 32, "-");
    return buf;
}

/* The last lines of the text: what most people came for, and where the rest lies. */
static void print_closing(const struct run *r, const struct gw_report *report)
{
    const struct gw_study_result *x = &r->result;
    FILE       *f = r->cli->out;
    const char *path;
    char        a[32], b[32];

    fputc('\n', f);
    gw_report_short(report, f);
    fprintf(f, "simulated       %s in %s: %llu events, %llu packet hops, %llu packets delivered, "
            "%llu dropped; seed %llu\n", seconds(x->sim_s, a), seconds(x->wall_s, b),
            (unsigned long long)x->events, (unsigned long long)x->packets.hops,
            (unsigned long long)x->packets.delivered, (unsigned long long)x->packets.dropped,
            (unsigned long long)x->seed);
    for (size_t i = 0; (path = gw_study_output(r->study, i)); i++)
        fprintf(f, "written         %s\n", path);
    fprintf(f, "output          %s\n", r->dir.path);
}

static enum gw_status print_text(const struct run *r, struct gw_error *err)
{
    struct gw_report report;
    enum gw_status   st = gw_report_read(&report, r->cli->registry, r->dir.path, err);

    if (st != GW_OK)
        return st;
    st = gw_report_text(&report, r->cli->out, err);
    print_closing(r, &report);
    gw_report_free(&report);
    return st;
}

static bool look_up(void *ctx, const char *name, double *value)
{
    return gw_record_lookup(ctx, name, value);
}

/* Counts and quantiles come from the record, so that run, analyze and `expect:` never differ. */
static void complete_result(struct run *r)
{
    struct gw_study_result *x = &r->result;
    struct { const char *name; double *value; } row[] = {
        { "iterations.mean_s", &x->iterations.mean_s },
        { "iterations.p50_s", &x->iterations.p50_s },
        { "iterations.p99_s", &x->iterations.p99_s },
        { "flows.fct_p50_s", &x->flows.fct_p50_s },
        { "flows.fct_p99_s", &x->flows.fct_p99_s },
    };
    bool            complete = false;
    struct sqlite3 *db = gw_record_open(r->dir.path, &complete, NULL);
    double          n;

    for (size_t i = 0; i < GW_ARRAY_LEN(row); i++)
        if (!db || !gw_record_lookup(db, row[i].name, row[i].value))
            *row[i].value = NAN;
    x->iterations.count = db && gw_record_lookup(db, "iterations.count", &n) ? (uint64_t)n : 0;
    sqlite3_close(db);
}

/* Plays the study into the directory; what is left to say about the way it ended. */
static enum gw_status play(struct run *r, struct gw_error *err)
{
    enum gw_status st;

    catch_signals();
    gw_progress_begin(&r->progress, r->cli->err, r->conf->quiet, &stop_asked);
    st = gw_study_run(r->study, r->dir.path, gw_progress_show, &r->progress, &r->result, err);
    gw_progress_end(&r->progress);
    r->stopped = stop_asked && (st != GW_OK || r->result.unfinished);
    return st;
}

/* One expectation; what cannot be evaluated does not hold. */
static bool expectation_holds(const struct run *r, struct sqlite3 *db, const char *text)
{
    struct gw_error err   = {0};
    bool            holds = false;
    double          found = NAN;

    fflush(r->cli->out);                    /* its table stands before the sentence            */
    if (gw_expect_eval(text, look_up, db, &holds, &found, &err) != GW_OK)
        fprintf(r->cli->err, "expect failed: %s\n", err.text);
    else if (!holds)
        fprintf(r->cli->err, "expect failed: %s: it is %.9g\n", text, found);
    return err.code == GW_OK && holds;
}

/* Every expectation over the record; the exit code. */
static int check_expectations(const struct run *r)
{
    struct gw_error err      = {0};
    bool            complete = false;
    int             rc       = GW_EXIT_GOOD;
    struct sqlite3 *db;
    const char     *text;

    if (!gw_study_expect(r->study, 0))
        return rc;
    db = gw_record_open(r->dir.path, &complete, &err);
    if (!db)
        return gw_cli_fail(r->cli, &err);
    for (size_t i = 0; (text = gw_study_expect(r->study, i)); i++)
        if (!expectation_holds(r, db, text))
            rc = GW_EXIT_CHECK;
    sqlite3_close(db);
    return rc;
}

static int worse(int a, int b)
{
    return a > b ? a : b;
}

/* Is it the study that is wrong, and not the machine or gradwire? */
static bool is_refusal(enum gw_status st)
{
    return st == GW_PARAM || st == GW_SYNTAX || st == GW_RANGE || st == GW_ROUTE || st == GW_ABI;
}

static int finish(struct run *r, enum gw_status st, struct gw_error *err)
{
    struct gw_error print_err = {0};
    int             rc = GW_EXIT_GOOD;

    if (st != GW_OK && st != GW_STALL && !r->stopped) {
        gw_outdir_abandon(&r->dir, is_refusal(st));
        return gw_cli_fail(r->cli, err);
    }
    gw_outdir_keep(&r->dir);
    if (r->stopped) {
        fprintf(r->cli->err, "stopped at %.6g s of simulated time; the record in %s is "
                "incomplete\n", r->progress.sim_s, r->dir.path);
        rc = GW_EXIT_STALL;
    } else if (st == GW_STALL) {
        rc = gw_cli_fail(r->cli, err);
    } else if (r->result.unfinished) {
        fprintf(r->cli->err, "unfinished: work is left at %.6g s of simulated time; see %s\n",
                r->result.sim_s, r->dir.path);
        rc = GW_EXIT_STALL;
    }
    complete_result(r);
    if (r->conf->json)
        print_json(r, &print_err);
    else if (!r->conf->quiet)
        print_text(r, &print_err);
    if (print_err.code != GW_OK)
        rc = worse(rc, gw_cli_fail(r->cli, &print_err));
    return r->stopped ? rc : worse(rc, check_expectations(r));
}

static int run_run(struct gw_cli *cli)
{
    struct run      r   = {.cli = cli, .conf = cli->conf};
    struct gw_error err = {0};
    int             rc;

    if (check_threads(r.conf, &err) != GW_OK)
        return gw_cli_fail(cli, &err);
    r.study = open_study(&r, &err);
    if (!r.study)
        return gw_cli_fail(cli, &err);
    if (gw_outdir_open(&r.dir, r.conf->output, gw_study_name(r.study), cli->operand[0],
                       r.conf->force, &err) != GW_OK) {
        rc = gw_cli_fail(cli, &err);
    } else {
        if (!r.conf->quiet)
            print_warnings(&r);
        rc = finish(&r, play(&r, &err), &err);
    }
    gw_study_free(r.study);
    return rc;
}

const struct gw_verb gw_verb_run = {
    .name = "run", .operands = "STUDY", .operand_min = 1, .operand_max = 1,
    .summary = "Plays a study, writes its records, prints iteration times and what held them up",
    .rows = run_rows, .row_count = GW_ARRAY_LEN(run_rows),
    .conf_bytes = sizeof(struct run_conf), .run = run_run,
};
