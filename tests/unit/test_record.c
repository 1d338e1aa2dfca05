/*
 * test_record - the SQLite sink, records of killed runs, full disks, digests
 */
#include "tests/unit/make_record.h"

#include <gradwire/alg/iterations.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

/* ---- what stands in the tables ------------------------------------------------------------ */

static void test_rows(void)
{
    static const struct { const char *sql; double want; } rows[] = {
        { "SELECT count(*) FROM flow", 2 },
        { "SELECT count(*) FROM flow WHERE end_ps IS NULL", 1 },
        { "SELECT end_ps FROM flow WHERE flow = 1", 3e9 },
        { "SELECT count(*) FROM flow WHERE iteration IS NULL AND collective IS NULL", 1 },
        { "SELECT finished FROM flow_summary WHERE job = 0", 1 },
        { "SELECT delivered_bytes FROM flow_summary WHERE job = 0", 1400 },
        { "SELECT fct_mean_ps FROM flow_summary WHERE job = 0", 2e9 },
        { "SELECT count(*) FROM message WHERE cause_message IS NULL", 1 },
        { "SELECT value = 'yes' FROM run WHERE key = 'complete'", 1 },
        { "SELECT value = '7' FROM run WHERE key = 'seed'", 1 },
        { "SELECT value = 'x' FROM host WHERE key = 'cpu'", 1 },
        { "SELECT count(*) FROM link_drop", 2 },
        { "SELECT pkts FROM link_drop WHERE reason = 'loss'", 3 },
        { "SELECT pkts FROM link_drop WHERE reason = 'queue_full'", 9 },
        /* (2^64 + 2^63) / 4 */
        { "SELECT mean_wait_ps FROM link_total WHERE link = 0", 6917529027641081856.0 },
        { "SELECT mean_wait_ps IS NULL FROM link_total WHERE link = 1", 1 },
    };
    uint64_t drops[GW_DROP_COUNT] = { [GW_DROP_QUEUE_FULL] = 9, [GW_DROP_LOSS] = 3 };
    struct gw_rec_link_total total = { .link = 0, .sent_pkts = 4, .wait_sum_ps_hi = 1,
                                       .wait_sum_ps = UINT64_C(1) << 63, .drops = drops };
    struct gw_rec_link_total idle = { .link = 1 };
    struct scratch s;
    struct sqlite3 *db;
    struct gw_rec_flow f;

    scratch_begin(&s, GW_REC_ALL);
    f = flow_row(1, 1, 0, 1, 3);
    add_flow(&s, &f);
    f = flow_row(2, 0, GW_NONE, 1, -1);
    add_flow(&s, &f);
    add_message(&s, 1, 0, 0, 1, 1, 3, 0, 0);
    CU_ASSERT(s.sink->ops->link_total(s.sink, &total) == GW_OK);
    CU_ASSERT(s.sink->ops->link_total(s.sink, &idle) == GW_OK);
    CU_ASSERT(s.sink->ops->meta(s.sink, "seed", "7", false) == GW_OK);
    CU_ASSERT(s.sink->ops->meta(s.sink, "cpu", "x", true) == GW_OK);
    db = scratch_open(&s, true);
    for (size_t i = 0; i < GW_ARRAY_LEN(rows); i++) {
        double got = number_of(db, rows[i].sql);

        CHECK_ROW(got == rows[i].want, "%s: got %g, want %g", rows[i].sql, got, rows[i].want);
    }
    scratch_end(&s, db);
}

static void test_refused(void)
{
    struct scratch s;
    struct gw_error err = { 0 };
    struct gw_rec_node twice = { 5, "a", true };
    struct gw_rec_rank big = { 0, 0, 0 };
    struct gw_rec_link_sample late = { .at_ps = UINT64_C(1) << 63 };
    struct gw_rec_flow far = flow_row(7, 7, 0, 0, 1);
    bool complete;

    scratch_begin(&s, GW_REC_ALL);
    CU_ASSERT(gw_record_create(s.dir, NULL, &err) == NULL);
    CHECK_ROW(err.code == GW_IO && strstr(err.text, "exists already"), "%s", err.text);
    CU_ASSERT(s.sink->ops->rank(s.sink, &big) == GW_OK);
    CU_ASSERT(s.sink->ops->node(s.sink, &twice) == GW_OK);
    CU_ASSERT(s.sink->ops->node(s.sink, &twice) == GW_BUG);
    /* the first failure sticks */
    CU_ASSERT(s.sink->ops->link_sample(s.sink, &late) == GW_BUG);
    CU_ASSERT(s.sink->ops->finish(s.sink, true, &s.err) == GW_BUG);
    CHECK_ROW(strstr(s.err.text, "twice") != NULL, "%s", s.err.text);
    scratch_end(&s, gw_record_open(s.dir, &complete, &s.err));
    CHECK_ROW(!complete, "complete is %d", complete);

    scratch_begin(&s, GW_REC_ALL);
    CU_ASSERT(s.sink->ops->link_sample(s.sink, &late) == GW_RANGE);
    CU_ASSERT(s.sink->ops->finish(s.sink, true, &s.err) == GW_RANGE);
    CHECK_ROW(strstr(s.err.text, "at_ps of a row for table link_sample is 9223372036854775808, "
                     "above 2^63 - 1 (of picoseconds: 106 days)") != NULL, "%s", s.err.text);
    scratch_end(&s, gw_record_open(s.dir, &complete, &s.err));

    scratch_begin(&s, GW_REC_ALL);
    far.start_ps = UINT64_C(10000000000000000000);
    CU_ASSERT(s.sink->ops->flow(s.sink, &far) == GW_RANGE);
    CU_ASSERT(s.sink->ops->finish(s.sink, true, &s.err) == GW_RANGE);
    CHECK_ROW(strstr(s.err.text, "flow 7 of job 0: start_ps is 10000000000000000000, above") !=
              NULL, "%s", s.err.text);
    scratch_end(&s, gw_record_open(s.dir, &complete, &s.err));

    memset(&err, 0, sizeof err);
    CU_ASSERT(gw_record_create("/nonexistent/x.sqlite", NULL, &err) == NULL);
    CHECK_ROW(err.code == GW_IO && strstr(err.text, "No such file"), "%s", err.text);
    memset(&err, 0, sizeof err);
    CU_ASSERT(gw_record_open("/nonexistent", &complete, &err) == NULL);
    CHECK_ROW(err.code == GW_IO && strstr(err.text, "/nonexistent"), "%s", err.text);
    memset(&err, 0, sizeof err);
    CU_ASSERT(gw_record_open("/proc/self/status", &complete, &err) == NULL);
    CHECK_ROW(err.code != GW_OK && err.text[0], "%s", err.text);
}

/* ---- volume ------------------------------------------------------------------------------- */

static void write_flows(struct scratch *s, uint64_t from, uint64_t to)
{
    for (uint64_t i = from; i < to; i++) {
        struct gw_rec_flow f = flow_row(i + 1, i + 1, 0, 0, 1);

        f.end_ps = i + 1;            /* completion times 1 ... n ps */
        f.ideal_ps = 1;
        if (s->sink->ops->flow(s->sink, &f) != GW_OK)
            return;
    }
}

static void test_volume(void)
{
    static const struct { enum gw_flow_records mode; double low, high; } rows[] = {
        { GW_REC_ALL, 60000, 60000 }, { GW_REC_SAMPLE, 500, 700 }, { GW_REC_SUMMARY, 0, 0 },
    };

    for (size_t i = 0; i < GW_ARRAY_LEN(rows); i++) {
        struct scratch s;
        struct sqlite3 *db;
        double got, worst;

        scratch_begin(&s, rows[i].mode);
        write_flows(&s, 0, 60000);
        add_message(&s, 1, 0, 0, 1, 0, 1, 0, 0);
        db = scratch_open(&s, true);
        got = number_of(db, "SELECT count(*) FROM flow");
        CHECK_ROW(got >= rows[i].low && got <= rows[i].high, "mode %u: %g flows", rows[i].mode,
                  got);
        got = number_of(db, "SELECT sum(flows) FROM flow_sketch WHERE metric = 'fct_ps'");
        CHECK_ROW(got == 60000, "mode %u: sketch of %g", rows[i].mode, got);
        got = number_of(db, "SELECT fct_mean_ps FROM flow_summary");
        CHECK_ROW(got == 30000.5, "mode %u: mean %g", rows[i].mode, got);
        /* every bucket holds exactly the values between its bounds, and is narrow */
        got = number_of(db, "SELECT count(*) FROM flow_sketch WHERE metric = 'fct_ps' AND flows <>"
                        " min(high, 60000) - max(low, 1) + 1");
        CHECK_ROW(got == 0, "mode %u: %g wrong buckets", rows[i].mode, got);
        worst = number_of(db, "SELECT max((high - low) / 2.0 / low) FROM flow_sketch"
                          " WHERE low > 0");
        CHECK_ROW(worst <= 1 / 128.0, "mode %u: error %g", rows[i].mode, worst);
        scratch_end(&s, db);
    }
}

/* ---- killed and full ---------------------------------------------------------------------- */

static void wait_for(pid_t child, int *status)
{
    CU_ASSERT(waitpid(child, status, 0) == child);
}

/* A run that is killed after @written flows leaves between @low and @high. */
static void killed_after(uint64_t written, double low, double high)
{
    struct scratch s;
    struct sqlite3 *db;
    bool complete = true;
    int status = 0;
    char hex[65];
    double flows;
    pid_t child;

    snprintf(s.dir, sizeof s.dir, "/tmp/gradwire-test-XXXXXX");
    CU_ASSERT_FATAL(mkdtemp(s.dir) != NULL);
    memset(&s.err, 0, sizeof s.err);
    child = fork();
    if (child == 0) {
        s.sink = gw_record_create(s.dir, NULL, &s.err);
        if (s.sink)
            write_flows(&s, 0, written);
        raise(SIGKILL);
    }
    wait_for(child, &status);
    CU_ASSERT(WIFSIGNALED(status));
    db = gw_record_open(s.dir, &complete, &s.err);
    CHECK_ROW(db != NULL && !complete, "%s, complete %d", s.err.text, complete);
    flows = number_of(db, "SELECT count(*) FROM flow");
    CHECK_ROW(flows >= low && flows <= high, "%g of %g flows survived", flows, (double)written);
    CHECK_ROW(number_of(db, "SELECT total(flows) FROM flow_summary") == flows,
              "summary and %g rows differ", flows);
    CU_ASSERT(gw_record_digest(db, hex, &s.err) == GW_OK);
    CHECK_ROW(strlen(hex) == 64, "%s", hex);
    scratch_end(&s, db);
}

static void test_killed(void)
{
    killed_after(50, 0, 0);
    killed_after(300, 90, 100);
    killed_after(9000, 990, 1000);
    killed_after(30000, 9990, 10000);
    killed_after(120000, 99990, 100000);
}

/* Dies in a commit: half of it is in the file, and the journal that undoes it is beside it. */
static void die_in_commit(const char *dir)
{
    char path[128];
    sqlite3 *db;

    snprintf(path, sizeof path, "%s/records.sqlite", dir);
    if (sqlite3_open(path, &db) == SQLITE_OK)
        sqlite3_exec(db, "PRAGMA synchronous = OFF; PRAGMA cache_size = 5; PRAGMA cache_spill = 5;"
                     "BEGIN; UPDATE flow SET bytes = 1", NULL, NULL, NULL);
    raise(SIGKILL);
}

static void test_killed_in_commit(void)
{
    struct scratch s;
    struct sqlite3 *db;
    struct stat st;
    char path[128];
    bool complete = true;
    int status = 0;
    pid_t child;

    scratch_begin(&s, GW_REC_ALL);
    write_flows(&s, 0, 20000);
    db = scratch_open(&s, false);
    sqlite3_close(db);
    child = fork();
    if (child == 0)
        die_in_commit(s.dir);
    wait_for(child, &status);
    snprintf(path, sizeof path, "%s/records.sqlite-journal", s.dir);
    CHECK_ROW(stat(path, &st) == 0 && st.st_size > 0, "no hot journal %s: nothing tested", path);
    db = gw_record_open(s.dir, &complete, &s.err);
    CHECK_ROW(db != NULL && !complete, "%s", s.err.text);
    CHECK_ROW(number_of(db, "SELECT sum(bytes) FROM flow") == 20000 * 1000.0, "torn rows: %g",
              number_of(db, "SELECT sum(bytes) FROM flow"));
    scratch_end(&s, db);
}

/* A reader must not disturb a run, and is told why it has to wait. */
static void test_still_running(void)
{
    struct scratch s;
    struct sqlite3 *db;
    struct gw_error err = { 0 };
    bool complete;
    int status = 0;
    pid_t child;

    scratch_begin(&s, GW_REC_ALL);
    child = fork();              /* locks of one process do not keep itself out */
    if (child == 0) {
        db = gw_record_open(s.dir, &complete, &err);
        if (!db && strstr(err.text, "still writing"))
            raise(SIGKILL);      /* "yes", with no leak check over the parent's memory */
        _exit(1);
    }
    wait_for(child, &status);
    CHECK_ROW(WIFSIGNALED(status), "status %x", (unsigned)status);
    write_flows(&s, 0, 10);
    scratch_end(&s, scratch_open(&s, true));
}

static void fill_disk(struct scratch *s, int report)
{
    struct rlimit limit = { 1 << 20, 1 << 20 };
    enum gw_status code;

    signal(SIGXFSZ, SIG_IGN);
    setrlimit(RLIMIT_FSIZE, &limit);
    s->sink = gw_record_create(s->dir, NULL, &s->err);
    if (!s->sink)
        _exit(3);
    write_flows(s, 0, 200000);
    code = s->sink->ops->finish(s->sink, true, &s->err);
    if (write(report, s->err.text, strlen(s->err.text) + 1) < 0)
        _exit(4);
    _exit(code == GW_IO ? 0 : 5);
}

static void test_disk_full(void)
{
    struct scratch s;
    char text[1024] = "";
    bool complete = true;
    int status = 0, report[2];
    pid_t child;

    memset(&s, 0, sizeof s);
    snprintf(s.dir, sizeof s.dir, "/tmp/gradwire-test-XXXXXX");
    CU_ASSERT_FATAL(mkdtemp(s.dir) != NULL && pipe(report) == 0);
    child = fork();
    if (child == 0)
        fill_disk(&s, report[1]);
    wait_for(child, &status);
    CHECK_ROW(WIFEXITED(status) && WEXITSTATUS(status) == 0, "status %x", (unsigned)status);
    close(report[1]);
    CHECK_ROW(read(report[0], text, sizeof text - 1) > 0, "nothing reported");
    CHECK_ROW(strstr(text, "no room left") && strstr(text, s.dir), "%s", text);
    close(report[0]);
    scratch_end(&s, gw_record_open(s.dir, &complete, &s.err));
    CHECK_ROW(!complete && s.err.code == GW_OK, "%s", s.err.text);
}

/* ---- digests ------------------------------------------------------------------------------ */

/* Rows in ascending or descending order; @odd changes one value, @host one machine fact. */
static void digest_of(bool reversed, uint64_t odd, const char *host, char hex[65])
{
    struct scratch s;
    struct sqlite3 *db;

    scratch_begin(&s, GW_REC_ALL);
    for (uint64_t i = 0; i < 100; i++) {
        uint64_t k = reversed ? 99 - i : i;
        struct gw_rec_flow f = flow_row(k + 1, k + 1, (uint32_t)k % 5, (double)k, (double)k + 2);
        struct gw_rec_stat t = { (uint32_t)k, "qdisc:x", "count", k };

        f.retrans_pkts = k == 50 ? odd : 0;
        add_flow(&s, &f);
        add_iteration(&s, (uint32_t)k / 10, (uint32_t)k % 10, 0, 1, 0);
        CU_ASSERT(s.sink->ops->stat(s.sink, &t) == GW_OK);
    }
    CU_ASSERT(s.sink->ops->meta(s.sink, "cpu", host, true) == GW_OK);
    db = scratch_open(&s, true);
    CU_ASSERT(gw_record_digest(db, hex, &s.err) == GW_OK);
    scratch_end(&s, db);
}

static void test_digest(void)
{
    char a[65], b[65];

    digest_of(false, 0, "one", a);
    digest_of(false, 0, "one", b);
    CHECK_ROW(!strcmp(a, b), "same rows: %s and %s", a, b);
    digest_of(true, 0, "two", b);
    CHECK_ROW(!strcmp(a, b), "other order, other machine: %s and %s", a, b);
    digest_of(false, 1, "one", b);
    CHECK_ROW(strcmp(a, b), "one value differs: %s", a);
}

static void test_file_digest(void)
{
    static const struct { const char *text, *want; } rows[] = {
        { "", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855" },
        { "abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad" },
    };
    char path[] = "/tmp/gradwire-test-XXXXXX", hex[65] = "";
    struct gw_error err = { 0 };
    int fd = mkstemp(path);

    for (size_t i = 0; i < GW_ARRAY_LEN(rows); i++) {
        CU_ASSERT(write(fd, rows[i].text, strlen(rows[i].text)) == (ssize_t)strlen(rows[i].text));
        CU_ASSERT(gw_file_digest(path, hex, &err) == GW_OK);
        CHECK_ROW(!strcmp(hex, rows[i].want), "'%s': %s", rows[i].text, hex);
    }
    close(fd);
    unlink(path);
    CU_ASSERT(gw_file_digest(path, hex, &err) == GW_IO);
    CHECK_ROW(strstr(err.text, path) != NULL, "%s", err.text);
}

/* Times that somebody wrote into a record stop at the ends of 64 bits. */
static void test_tampered(void)
{
    struct gw_iteration_times t = { 0 };
    struct gw_error err = { 0 };
    sqlite3 *db;

    CU_ASSERT_FATAL(sqlite3_open(":memory:", &db) == SQLITE_OK);
    CU_ASSERT(sqlite3_exec(db, "CREATE TABLE job(job, ranks); INSERT INTO job VALUES(0, 2);"
                           "CREATE TABLE iteration(job, iteration, rank, start_ps, end_ps,"
                           " compute_ps, exposed_ps, wait_ps, last_message);"
                           "INSERT INTO iteration VALUES(0, 0, 0, -9223372036854775808,"
                           " 9223372036854775807, 9223372036854775807, -9223372036854775808, 1, 1);"
                           "INSERT INTO iteration VALUES(0, 0, 1, 5, 7,"
                           " 9223372036854775807, -9223372036854775808, 2, 2)", NULL, NULL, NULL) ==
              SQLITE_OK);
    CHECK_ROW(gw_iteration_times_read(db, &t, &err) == GW_OK && t.n == 1, "%s", err.text);
    CU_ASSERT_FATAL(t.n == 1);
    CU_ASSERT(t.v[0].time_ps == INT64_MAX && t.v[0].rank_ps == INT64_MAX);
    CU_ASSERT(t.v[0].compute_ps == INT64_MAX && t.v[0].exposed_ps == INT64_MIN);
    CU_ASSERT(t.v[0].wait_ps == 3 && gw_ps_sub(-5, 7) == -12 && gw_ps_add(INT64_MIN, 1) < 0);
    free(t.v);
    sqlite3_close(db);
}

static void test_null_sink(void)
{
    struct gw_sink *s = gw_record_null();
    struct gw_rec_flow f = flow_row(1, 1, 0, 0, 1);

    CU_ASSERT_FATAL(s != NULL);
    CU_ASSERT(s->ops->flow(s, &f) == GW_OK);
    CU_ASSERT(s->ops->meta(s, "a", "b", false) == GW_OK);
    CU_ASSERT(s->ops->finish(s, true, NULL) == GW_OK);
}

static const struct gw_case cases[] = {
    { "rows and NULLs", test_rows },
    { "what is refused", test_refused },
    { "all, sample, summary", test_volume },
    { "a killed run", test_killed },
    { "killed in a commit", test_killed_in_commit },
    { "a run that still runs", test_still_running },
    { "disk full", test_disk_full },
    { "digest", test_digest },
    { "digest of a file", test_file_digest },
    { "changed by hand", test_tampered },
    { "null sink", test_null_sink },
    { NULL, NULL },
};

extern const struct gw_suite suite_record;
const struct gw_suite suite_record = { "record", cases };
