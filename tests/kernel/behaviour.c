/*
 * behaviour - frames through a discipline of gradwire against what a real kernel did with them
 *
 * tests/data/tc/behaviour.json holds runs recorded from Linux 6.1 in virtual time: tc's commands
 * on a device without a rate of its own, the frames that were sent and what became of them, as
 * measures by kind of run and, where the discipline draws no dice, as a trace of every frame. Each
 * becomes a study with a pair of hosts, is played by `gradwire run`, and the packet log is
 * measured in the same way.
 *
 * Tolerances, as stated with the recordings: fates and times of traces within 1 us (CoDel's law:
 * at most 0.2 % of the fates differ and the first 200 drops are the same); shares of random events
 * z < 4, with the variance p(1-p)/n (1+r)/(1-r), r = P(again) - p; mean bursts and delays within 4
 * standard errors; deviations within 3 %; fair shares within 1 %, sfq 2 %; AQM: the long-run rate
 * within 0.5 points, the mean delay within 5 % (RED) or 10 %. Both sides are samples, so a
 * standard error is that of the difference; of series whose values hang together it is taken from
 * the means of batches.
 *
 * The recorder sent 256 to 760 ns behind its timetable, each frame at a time of its own. Where a
 * trace says when, the study sends at those very times; else generators send LATE_NS behind each
 * other, so that a frame due at the instant of a departure that an earlier one set off comes after
 * it, as there.
 *
 * Left out: where corrupt's bit fell (tests/scenario/corrupt.sh looks at that in captures).
 *
 * Usage: behaviour DIRECTORY-OF-DATA [NAME ...], with the program under test in GRADWIRE. Names
 * restrict the runs. Exit code 0: all good, 1: a measure is off, 99: could not be done.
 */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <gsl/gsl_cdf.h>
#include <jansson.h>
#include <sqlite3.h>
#include <zlib.h>

#define GENS_MAX    16
#define NEVER       INT64_MAX
#define US          1000             /* ns: how well times are known                              */
#define Z           4.0              /* standard errors                                           */
#define SEEDS       8u
#define BATCHES     40u
#define RECORDED_MAX 40              /* distances were counted up to here                         */
#define LATE_NS     250              /* how late the recorder sent                                */
#define SLOT_NS     100000           /* arrivals closer than this left in one slot                */

struct gen {                         /* -g flow:size:interval:start:count:ecn:prio:burst:dscp     */
    uint64_t flow, size, interval_ns, start_ns, count, ecn, priority, burst, dscp;
};

struct frame {
    uint32_t gen;
    uint32_t copies;                 /* how often it came                                         */
    int64_t  sent_ns, recv_ns;       /* of the first copy; NEVER: did not come                    */
    int64_t  copy_ns;                /* when the second copy came                                 */
    bool     ce;
    uint32_t flips, copy_flips;      /* bits that were flipped in each                            */
};

struct trace_row {
    uint32_t gen, size;
    int64_t  sent_ns, recv_ns;       /* recv_ns < 0: never came                                   */
    bool     ce;
};

struct run {
    const char *data;                /* directory of the recordings                               */
    char        work[64];            /* scratch directory                                         */
    json_t     *want;                /* the recording                                             */
    const char *name;
    uint32_t    seed;
    struct gen  gen[GENS_MAX];
    uint32_t    gens;
    struct frame *frame;             /* in the order of sending                                   */
    uint64_t    frames;
    uint64_t   *index[GENS_MAX];     /* frame number of a generator's k-th frame                  */
    struct trace_row *trace;         /* by frame number; NULL: none was recorded                  */
    sqlite3    *db;
    unsigned    passed, failed;
};

/* ---- saying what is right and what is not ---------------------------------------------------- */

static void die(const char *what, const char *why)
{
    fprintf(stderr, "behaviour: %s: %s\n", what, why);
    exit(99);
}

static void *need(void *p)
{
    if (!p)
        die("memory", "none left");
    return p;
}

static bool within(struct run *r, const char *what, double got, double low, double high)
{
    bool good = got >= low && got <= high;

    if (good)
        r->passed++;
    else
        r->failed++;
    printf("%s %s: %s: %.9g in %.9g..%.9g\n", good ? "ok  " : "FAIL", r->name, what, got, low,
           high);
    return good;
}

static bool about(struct run *r, const char *what, double got, double want, double off)
{
    return within(r, what, got, want - off, want + off);
}

static double number(const json_t *o, const char *key)
{
    const json_t *v = json_object_get(o, key);

    if (!json_is_number(v))
        die(key, "not in the recording");
    return json_number_value(v);
}

static double want(const struct run *r, const char *key)
{
    return number(r->want, key);
}

/* ---- the study ------------------------------------------------------------------------------- */

static void read_generators(struct run *r)
{
    const char *p = json_string_value(json_object_get(r->want, "pk"));

    r->gens = 0;
    while (p && (p = strstr(p, "-g "))) {
        struct gen *g = &r->gen[r->gens++];
        uint64_t *field[] = { &g->flow, &g->size, &g->interval_ns, &g->start_ns, &g->count, &g->ecn,
                              &g->priority, &g->burst, &g->dscp };
        char *end;

        if (r->gens == GENS_MAX)
            die(r->name, "more generators than this program knows");
        *g = (struct gen){ .burst = 1 };
        p += 3;
        for (size_t i = 0; i < sizeof field / sizeof *field; i++) {
            *field[i] = strtoull(p, &end, 10);
            p = end;
            if (*p != ':')
                break;
            p++;
        }
        if (!g->interval_ns)
            g->interval_ns = 1000;           /* as fast as possible                        */
        r->frames += g->count;
    }
    if (!r->gens)
        die(r->name, "has no generators");
}

static gzFile open_trace(const struct run *r)
{
    static const char *const form[] = { "%s/%s.csv", "%s/%s.csv.gz" };
    gzFile in = NULL;
    char path[512];

    for (size_t i = 0; i < 2 && !in; i++) {
        snprintf(path, sizeof path, form[i], r->data, r->name);
        in = gzopen(path, "r");
    }
    return in;
}

/* Rows stand in the file as the frames came out; here by number. */
static void read_trace(struct run *r)
{
    gzFile in = open_trace(r);
    uint64_t rows = 0;
    char line[128];

    if (!in)
        return;
    r->trace = need(calloc(r->frames, sizeof *r->trace));
    while (gzgets(in, line, sizeof line)) {
        struct trace_row t;
        uint64_t seq;
        int ce;

        if (sscanf(line, "%" SCNu64 ",%u,%u,%" SCNd64 ",%" SCNd64 ",%d", &seq, &t.gen, &t.size,
                   &t.sent_ns, &t.recv_ns, &ce) != 6)
            continue;
        if (seq >= r->frames || t.gen >= r->gens || t.size != r->gen[t.gen].size)
            die(r->name, "the trace has a frame that was not to be sent");
        t.ce = ce;
        r->trace[seq] = t;
        rows++;
    }
    gzclose(in);
    if (rows != r->frames)
        die(r->name, "the trace has not a row for each frame");
}

/* tc's line, its device being ours, in double quotes. */
static void write_line(FILE *f, const char *line)
{
    const char *dev = strstr(line, "dev v0");

    if (!dev)
        die(line, "has no `dev v0`");
    fprintf(f, "  - \"%.*sdev v:a%s\"\n", (int)(dev - line), line, dev + strlen("dev v0"));
}

static void write_generator(FILE *f, const struct gen *g, int64_t start_ns, uint64_t count,
                            uint64_t burst)
{
    fprintf(f, "      - {flow: %" PRIu64 ", size: %" PRIu64 ", interval: %" PRIu64 "ns, start: %"
            PRId64 "ns, count: %" PRIu64 ", ecn: %" PRIu64 ", priority: %" PRIu64 ", burst: %"
            PRIu64 ", dscp: %" PRIu64 "}\n", g->flow, g->size, g->interval_ns, start_ns, count,
            g->ecn, g->priority, burst, g->dscp);
}

static void write_job(FILE *f, uint32_t number)
{
    fprintf(f, "  - name: g%u\n    traffic: frames\n    from: a\n    to: b\n    generators:\n",
            number);
}

/* One job for each generator; by a trace a single job with an entry for each frame. */
static void write_jobs(const struct run *r, FILE *f)
{
    fprintf(f, "jobs:\n");
    for (uint32_t i = 0; i < r->gens && !r->trace; i++) {
        const struct gen *g = &r->gen[i];

        write_job(f, i);
        write_generator(f, g, (int64_t)g->start_ns + LATE_NS * (i + 1), g->count, g->burst);
    }
    if (!r->trace)
        return;
    write_job(f, 0);
    for (uint64_t i = 0, n; i < r->frames; i += n) {
        const struct trace_row *t = &r->trace[i];

        for (n = 1; i + n < r->frames && t[n].sent_ns == t->sent_ns && t[n].gen == t->gen; n++)
            ;
        write_generator(f, &r->gen[t->gen], t->sent_ns, n, n);
    }
}

static void write_study(const struct run *r, const char *path)
{
    FILE *f = need(fopen(path, "w"));
    size_t i;
    json_t *line;

    fprintf(f, "schema: 1\nname: %s\nseed: %u\ntopology: {kind: pair, rate: 0}\ntc:\n", r->name,
            r->seed);
    json_array_foreach(json_object_get(r->want, "tc"), i, line)
        write_line(f, json_string_value(line));
    write_jobs(r, f);
    fprintf(f, "log:\n  - {dev: \"v:a\", kind: packets}\n");
    if (fclose(f))
        die(path, "cannot be written");
}

/* Runs @argv; output other than errors is thrown away. */
static int spawn(char *const argv[])
{
    pid_t child = fork();
    int status = 0;

    if (!child) {
        if (!freopen("/dev/null", "w", stdout))
            _exit(126);
        execvp(argv[0], argv);
        _exit(127);
    }
    if (child < 0 || waitpid(child, &status, 0) < 0)
        die(argv[0], strerror(errno));
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static bool play(struct run *r)
{
    char study[128], out[128], database[192], *gw = getenv("GRADWIRE");
    char *const argv[] = { gw, "run", study, "-q", "--force", "-o", out, NULL };
    int rc;

    if (!gw)
        die("GRADWIRE", "does not name the program under test");
    snprintf(study, sizeof study, "%s/study.yaml", r->work);
    snprintf(out, sizeof out, "%s/out", r->work);
    write_study(r, study);
    fflush(stdout);
    rc = spawn(argv);
    if (!within(r, "exit code of the run", rc, 0, 0))
        return false;
    snprintf(database, sizeof database, "%s/records.sqlite", out);
    if (sqlite3_open_v2(database, &r->db, SQLITE_OPEN_READONLY, NULL) != SQLITE_OK)
        die(database, sqlite3_errmsg(r->db));
    return true;
}

/* ---- what became of the frames --------------------------------------------------------------- */

static int64_t ns_of(uint64_t ps)
{
    return (int64_t)(ps / 1000);
}

/* The frame of a row; a frame is known by its first row, which stands in the order of sending. */
static struct frame *frame_of(struct run *r, uint32_t job, uint64_t seq, uint64_t *sent)
{
    uint64_t *index;

    if (r->trace) {                                  /* a job of single frames: no copies come */
        if (*sent == r->frames)
            die(r->name, "more frames in the log than were sent");
        r->frame[*sent].gen = r->trace[*sent].gen;
        return &r->frame[(*sent)++];
    }
    if (job >= r->gens || seq >= r->gen[job].count)
        die(r->name, "a frame in the log was not sent");
    index = &r->index[job][seq];
    if (*index == UINT64_MAX) {
        *index = (*sent)++;
        r->frame[*index].gen = job;
    }
    return &r->frame[*index];
}

static void log_row(struct run *r, const char *line, uint64_t *sent)
{
    uint64_t seq, size, sent_ps, recv_ps = UINT64_MAX;
    uint32_t job, flow, ce, flips;
    struct frame *f;
    int n;

    if (sscanf(line, "%u,%u,%" SCNu64 ",%" SCNu64 ",%" SCNu64 ",%n", &job, &flow, &seq, &size,
               &sent_ps, &n) != 5)
        die("a row of the packet log is not understood", line);
    f = frame_of(r, job, seq, sent);
    f->sent_ns = ns_of(sent_ps);
    if (size != r->gen[f->gen].size || flow != r->gen[f->gen].flow)
        die("a row of the packet log is of another frame", line);
    if (line[n] == ',')
        return;
    if (sscanf(line + n, "%" SCNu64 ",%u,%u", &recv_ps, &ce, &flips) != 3)
        die("a row of the packet log is not understood", line);
    if (!f->copies++) {
        f->recv_ns = ns_of(recv_ps);
        f->ce = ce;
        f->flips = flips;
    } else {
        f->copy_ns = ns_of(recv_ps);
        f->copy_flips = flips;
    }
}

static void read_log(struct run *r)
{
    char path[192], line[256];
    uint64_t sent = 0;
    FILE *in;

    r->frame = need(malloc(r->frames * sizeof *r->frame));
    for (uint64_t i = 0; i < r->frames; i++)
        r->frame[i] = (struct frame){ .recv_ns = NEVER, .copy_ns = NEVER };
    for (uint32_t i = 0; i < r->gens; i++) {
        r->index[i] = need(malloc(r->gen[i].count * sizeof **r->index));
        memset(r->index[i], 0xff, r->gen[i].count * sizeof **r->index);
    }
    snprintf(path, sizeof path, "%s/out/packets-v-a.csv", r->work);
    in = fopen(path, "r");
    if (!in || !fgets(line, sizeof line, in))
        die(path, "cannot be read");
    while (fgets(line, sizeof line, in))
        log_row(r, line, &sent);
    fclose(in);
    if (sent != r->frames)
        die(r->name, "not all frames were sent");
}

static void forget_frames(struct run *r)
{
    for (uint32_t i = 0; i < r->gens; i++) {
        free(r->index[i]);
        r->index[i] = NULL;
    }
    free(r->frame);
    r->frame = NULL;
    sqlite3_close(r->db);
    r->db = NULL;
}

static uint64_t count_lost(const struct run *r)
{
    uint64_t n = 0;

    for (uint64_t i = 0; i < r->frames; i++)
        n += !r->frame[i].copies;
    return n;
}

/* Sum of an SQL query, -1 when it has no rows. */
static double query(const struct run *r, const char *sql, const char *name)
{
    sqlite3_stmt *s;
    double v = -1;

    if (sqlite3_prepare_v2(r->db, sql, -1, &s, NULL) != SQLITE_OK)
        die(sql, sqlite3_errmsg(r->db));
    if (name)
        sqlite3_bind_text(s, 1, name, -1, SQLITE_STATIC);
    if (sqlite3_step(s) == SQLITE_ROW && sqlite3_column_type(s, 0) != SQLITE_NULL)
        v = sqlite3_column_double(s, 0);
    sqlite3_finalize(s);
    return v;
}

/* ---- statistics ------------------------------------------------------------------------------ */

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

struct series {
    double  *x;
    uint64_t n;
    double   mean, sd, lag1;
    double   error;                  /* standard error of the mean, of batches if that is more    */
};

static double batch_error(const struct series *s)
{
    uint64_t len = s->n / BATCHES;
    double sum = 0, square = 0;

    if (len < 2)
        return 0;
    for (uint64_t b = 0; b < BATCHES; b++) {
        double m = 0;

        for (uint64_t i = 0; i < len; i++)
            m += s->x[b * len + i] - s->mean;
        m /= (double)len;
        sum += m;
        square += m * m;
    }
    square -= sum * sum / BATCHES;
    return sqrt(square / (BATCHES - 1) / BATCHES);
}

static void measure(struct series *s)
{
    double sum = 0, square = 0, pair = 0, e;

    for (uint64_t i = 0; i < s->n; i++)
        sum += s->x[i];
    s->mean = s->n ? sum / (double)s->n : 0;
    for (uint64_t i = 0; i < s->n; i++) {
        double d = s->x[i] - s->mean;

        square += d * d;
        if (i)
            pair += d * (s->x[i - 1] - s->mean);
    }
    s->sd = s->n > 1 ? sqrt(square / (double)(s->n - 1)) : 0;
    s->lag1 = square > 0 ? pair / square : 0;
    s->error = s->n ? s->sd / sqrt((double)s->n) : 0;
    e = batch_error(s);
    if (e > s->error)
        s->error = e;
}

/* Mean against @ref, where both are samples of the same size. */
static void same_mean(struct run *r, const char *what, const struct series *s, double ref,
                      double exact)
{
    about(r, what, s->mean, ref, Z * M_SQRT2 * s->error + exact);
}

/* P(event | event before) of a series of 0 and 1; -1 if there was none. */
static double repeat(const struct series *s)
{
    uint64_t events = 0, again = 0;

    for (uint64_t i = 1; i < s->n; i++)
        if (s->x[i - 1] > 0) {
            events++;
            again += s->x[i] > 0;
        }
    return events ? (double)again / (double)events : -1;
}

static double share_variance(double p, double again, double n)
{
    double rho = again < 0 ? 0 : again - p;

    return p * (1 - p) / n * (1 + rho) / (1 - rho);
}

/* Share of events and their tie to the event before, against the recorded ones. */
static void same_share(struct run *r, const char *what, const struct series *s, double p,
                       const json_t *again)
{
    double a = json_is_number(again) ? json_number_value(again) : -1;
    double b = repeat(s), n = (double)s->n;
    char text[96];

    about(r, what, s->mean, p, Z * sqrt(share_variance(p, a, n) + share_variance(s->mean, b, n)));
    if (a < 0 || b < 0 || p <= 0 || s->mean <= 0)
        return;
    snprintf(text, sizeof text, "%s, given that the one before was", what);
    about(r, text, b, a, Z * sqrt(a * (1 - a) / (p * n) + b * (1 - b) / (s->mean * n) + 1e-12));
}

struct histogram {
    uint64_t *count;
    uint64_t  values;                /* counts of 0 to values - 1                                 */
    double    total, mean, sd;
};

static void tally(struct histogram *h, uint64_t value)
{
    if (value >= h->values) {
        h->count = need(realloc(h->count, (value + 1) * sizeof *h->count));
        memset(h->count + h->values, 0, (value + 1 - h->values) * sizeof *h->count);
        h->values = value + 1;
    }
    h->count[value]++;
}

static void histogram_close(struct histogram *h)
{
    double square = 0;

    for (uint64_t i = 0; i < h->values; i++) {
        h->total += (double)h->count[i];
        h->mean += (double)h->count[i] * (double)i;
        square += (double)h->count[i] * (double)i * (double)i;
    }
    if (!h->total)
        return;
    h->mean /= h->total;
    h->sd = sqrt(fmax(0, square / h->total - h->mean * h->mean));
}

static struct histogram recorded(const struct run *r, const char *key)
{
    struct histogram h = { 0 };
    const char *value;
    json_t *n;

    json_object_foreach(json_object_get(r->want, key), value, n) {
        uint64_t v = strtoull(value, NULL, 10);

        tally(&h, v);
        h.count[v] = (uint64_t)json_integer_value(n);
    }
    histogram_close(&h);
    return h;
}

/* Chi-square of two samples of one distribution; neighbours are joined until they hold 20. */
static void same_distribution(struct run *r, const char *what, const struct histogram *a,
                              const struct histogram *b)
{
    double chi = 0, x = 0, y = 0, left = a->total + b->total, ka, kb;
    uint64_t values = a->values > b->values ? a->values : b->values, bins = 0;
    char text[96];

    if (!a->total || !b->total) {
        about(r, what, a->total, b->total, 0);
        return;
    }
    ka = sqrt(b->total / a->total);
    kb = 1 / ka;
    for (uint64_t i = 0; i < values; i++) {
        x += i < a->values ? (double)a->count[i] : 0;
        y += i < b->values ? (double)b->count[i] : 0;
        if (i + 1 < values && (x + y < 20 || left - x - y < 20))
            continue;
        if (x + y > 0) {
            chi += (x * ka - y * kb) * (x * ka - y * kb) / (x + y);
            bins++;
        }
        left -= x + y;
        x = y = 0;
    }
    if (bins < 2)
        return;
    snprintf(text, sizeof text, "%s: chi-square over %u values", what, (unsigned)bins);
    within(r, text, chi, 0, gsl_cdf_chisq_Qinv(6e-5, (double)(bins - 1)));
}

static void same_histogram(struct run *r, const char *what, const struct histogram *h,
                           const char *key)
{
    struct histogram b = recorded(r, key), part = *h, *a = &part;
    char text[96];

    if (b.values == RECORDED_MAX + 1 && part.values > b.values) {    /* it was cut off there   */
        part = (struct histogram){ .count = h->count, .values = b.values };
        histogram_close(&part);
    }

    if (a->total && b.total) {
        snprintf(text, sizeof text, "%s: mean", what);
        about(r, text, a->mean, b.mean,
              Z * sqrt(a->sd * a->sd / a->total + b.sd * b.sd / b.total) + 1e-5 * b.mean);
    }
    same_distribution(r, what, a, &b);
    free(b.count);
}

/* A value for each frame. */
static struct series series_of(const struct run *r, double (*value)(const struct run *, uint64_t))
{
    struct series s = { .x = need(malloc((r->frames + 1) * sizeof *s.x)) };

    for (uint64_t i = 0; i < r->frames; i++) {
        double v = value(r, i);

        if (!isnan(v))
            s.x[s.n++] = v;
    }
    measure(&s);
    return s;
}

static double is_lost(const struct run *r, uint64_t i)
{
    return !r->frame[i].copies;
}

static double is_doubled(const struct run *r, uint64_t i)
{
    return r->frame[i].copies > 1;
}

static double is_corrupt(const struct run *r, uint64_t i)
{
    return r->frame[i].flips || r->frame[i].copy_flips;
}

static double delay_of(const struct run *r, uint64_t i)
{
    const struct frame *f = &r->frame[i];

    return f->copies ? (double)(f->recv_ns - f->sent_ns) : NAN;
}

static double is_at_once(const struct run *r, uint64_t i)
{
    return delay_of(r, i) < US;
}

/* ---- kinds: loss, duplicates, corruption ----------------------------------------------------- */

static struct histogram runs_of(const struct series *s)
{
    struct histogram h = { 0 };
    uint64_t run = 0;

    for (uint64_t i = 0; i <= s->n; i++) {
        if (i < s->n && s->x[i] > 0)
            run++;
        else if (run)
            tally(&h, run), run = 0;
    }
    histogram_close(&h);
    return h;
}

static void check_loss(struct run *r)
{
    struct series s = series_of(r, is_lost);
    struct histogram bursts = runs_of(&s);
    uint64_t ce = 0;

    same_share(r, "lost", &s, want(r, "loss_rate"),
               json_object_get(r->want, "p_loss_given_previous_lost"));
    same_histogram(r, "bursts of losses", &bursts, "loss_burst_length_counts");
    for (uint64_t i = 0; i < r->frames; i++)
        ce += r->frame[i].ce;
    about(r, "marked", (double)ce, want(r, "ce_marked"), 0);
    about(r, "drops that the records call loss",
          query(r, "SELECT SUM(pkts) FROM link_drop WHERE link = 0 AND reason = 'loss'", NULL),
          (double)count_lost(r), 0);
    about(r, "drops of other reasons",
          query(r, "SELECT COUNT(*) FROM link_drop WHERE link = 0 AND reason <> 'loss'", NULL), 0,
          0);
    free(bursts.count);
    free(s.x);
}

static void check_dupcorrupt(struct run *r)
{
    struct series lost = series_of(r, is_lost), twice = series_of(r, is_doubled);
    struct series bad = series_of(r, is_corrupt);
    uint64_t more = 0, apart = 0, bits = 0;

    same_share(r, "lost", &lost, want(r, "loss_rate"),
               json_object_get(r->want, "p_loss_given_previous_lost"));
    same_share(r, "duplicated", &twice, want(r, "duplicated_rate"),
               json_object_get(r->want, "p_dup_given_previous_dup"));
    same_share(r, "corrupted", &bad, want(r, "corrupted_rate_of_frames"),
               json_object_get(r->want, "p_corrupt_given_previous_corrupt"));
    for (uint64_t i = 0; i < r->frames; i++) {
        more += r->frame[i].copies > 2;
        apart += r->frame[i].copies == 2 && r->frame[i].copy_ns != r->frame[i].recv_ns;
        bits += r->frame[i].flips > 1 || r->frame[i].copy_flips > 1;
    }
    about(r, "frames that came more than twice", (double)more, 0, 0);
    about(r, "pairs that came apart", (double)apart, 0, 0);
    about(r, "frames with more than one flipped bit", (double)bits, 0, 0);
    free(lost.x);
    free(twice.x);
    free(bad.x);
}

/* ---- kinds: delay, reorder, slot ------------------------------------------------------------- */

static int by_arrival(const void *a, const void *b)
{
    const int64_t *x = a, *y = b;

    if (x[0] != y[0])
        return x[0] < y[0] ? -1 : 1;
    return (x[1] > y[1]) - (x[1] < y[1]);
}

/* Pairs of arrival and number, in the order of arrival. */
static int64_t (*arrivals(const struct run *r, uint64_t *n))[2]
{
    int64_t (*a)[2] = need(malloc((r->frames + 1) * sizeof *a));

    *n = 0;
    for (uint64_t i = 0; i < r->frames; i++)
        if (r->frame[i].copies) {
            a[*n][0] = r->frame[i].recv_ns;
            a[(*n)++][1] = (int64_t)i;
        }
    qsort(a, *n, sizeof *a, by_arrival);
    return a;
}

/* Whether the kth arrival comes behind one that was sent later. */
static struct series late_frames(const struct run *r)
{
    struct series s = { .x = need(malloc((r->frames + 1) * sizeof *s.x)) };
    int64_t (*a)[2] = arrivals(r, &s.n), seen = -1;

    for (uint64_t k = 0; k < s.n; k++) {
        s.x[k] = a[k][1] < seen;
        if (a[k][1] > seen)
            seen = a[k][1];
    }
    measure(&s);
    free(a);
    return s;
}

/* Share of @sorted up to @x. */
static double below(const double *sorted, uint64_t n, double x)
{
    uint64_t low = 0, high = n;

    while (low < high) {
        uint64_t mid = low + (high - low) / 2;

        if (sorted[mid] <= x)
            low = mid + 1;
        else
            high = mid;
    }
    return (double)low / (double)n;
}

/* The distribution function at the recorded quantiles, which are known to a microsecond. */
static void check_quantiles(struct run *r, const struct series *d)
{
    json_t *q = json_object_get(json_object_get(r->want, "delay_ns"), "percentiles"), *v;
    double *x = need(malloc((d->n + 1) * sizeof *x)), tied;
    const char *percent;

    memcpy(x, d->x, d->n * sizeof *x);
    qsort(x, d->n, sizeof *x, by_value);
    /* Values that hang together count for fewer. */
    tied = d->sd > 0 ? d->error / (d->sd / sqrt((double)d->n)) : 1;
    json_object_foreach(q, percent, v) {
        double p = strtod(percent, NULL) / 100, at = json_number_value(v);
        double off = Z * M_SQRT2 * tied * sqrt(p * (1 - p) / (double)d->n) + 1.5 / (double)d->n;
        double low = below(x, d->n, at - US), high = below(x, d->n, at + US);
        char text[96];

        snprintf(text, sizeof text, "share of delays up to the recorded %s %% quantile", percent);
        within(r, text, p < low ? low : p > high ? high : p, p - off, p + off);
    }
    free(x);
}

static bool has_range(const struct run *r)
{
    const char *line = json_string_value(json_array_get(json_object_get(r->want, "tc"), 0));

    return !strstr(line, "slot") && !strstr(line, "rate");
}

static void check_delay(struct run *r)
{
    json_t *ref = json_object_get(r->want, "delay_ns");
    struct series d = series_of(r, delay_of), late = late_frames(r);
    double least = INFINITY, most = 0;

    for (uint64_t i = 0; i < d.n; i++) {
        least = fmin(least, d.x[i]);
        most = fmax(most, d.x[i]);
    }
    about(r, "lost", (double)count_lost(r), want(r, "lost"), 0);
    same_mean(r, "delay, ns: mean", &d, number(ref, "mean"), US);
    about(r, "delay, ns: standard deviation", d.sd, number(ref, "sd"),
          (has_range(r) ? 0.03 : 0.1) * number(ref, "sd") + US);
    if (has_range(r)) {
        within(r, "delay, ns: least", least, number(ref, "min") - 20 * US, INFINITY);
        within(r, "delay, ns: most", most, 0, number(ref, "max") + 20 * US);
    }
    if (d.sd > US)
        about(r, "delay: correlation with the frame before", d.lag1,
              want(r, "delay_lag1_autocorrelation_in_send_order"),
              Z * M_SQRT2 * fmax(1 / sqrt((double)d.n), d.error / d.sd * (1 - d.lag1 * d.lag1)));
    check_quantiles(r, &d);
    same_mean(r, "late", &late, want(r, "late_fraction_seq_below_max_seen"), 1e-9);
    free(d.x);
    free(late.x);
}

static void check_reorder(struct run *r)
{
    struct series s = series_of(r, is_at_once);
    struct histogram h = { 0 };
    uint64_t last = UINT64_MAX;

    check_delay(r);
    same_mean(r, "sent at once", &s, want(r, "sent_at_once_fraction"), 1e-9);
    for (uint64_t i = 0; i < s.n; i++)
        if (s.x[i] > 0) {
            if (last != UINT64_MAX)
                tally(&h, i - last);
            last = i;
        }
    histogram_close(&h);
    same_histogram(r, "distance between frames sent at once", &h,
                   "distance_between_sent_at_once_counts");
    free(h.count);
    free(s.x);
}

static void check_slot(struct run *r)
{
    json_t *ref = json_object_get(r->want, "slot_interval_ns");
    struct histogram size = { 0 };
    struct series gap;
    uint64_t n, run = 0, slots = 0;
    int64_t (*a)[2] = arrivals(r, &n), begin = 0;

    gap.x = need(malloc((n + 1) * sizeof *gap.x));
    gap.n = 0;
    for (uint64_t k = 0; k <= n; k++) {
        if (k && (k == n || a[k][0] - a[k - 1][0] > SLOT_NS)) {
            tally(&size, run);
            slots++;
            if (k < n)
                gap.x[gap.n++] = (double)(a[k][0] - begin);
            run = 0;
        }
        if (k < n && !run++)
            begin = a[k][0];
    }
    measure(&gap);
    histogram_close(&size);
    check_delay(r);
    about(r, "slots", (double)slots, want(r, "slots"),
          Z * M_SQRT2 * gap.sd / gap.mean * sqrt((double)slots));
    same_mean(r, "time between slots, ns", &gap, number(ref, "mean"), US);
    about(r, "time between slots, ns: standard deviation", gap.sd, number(ref, "sd"),
          Z * M_SQRT2 * number(ref, "sd") / sqrt(2.0 * (double)slots) + US);
    same_histogram(r, "frames of a slot", &size, "packets_per_slot_counts");
    free(size.count);
    free(gap.x);
    free(a);
}

/* ---- kinds: traces --------------------------------------------------------------------------- */

static bool codels_law(const struct run *r)
{
    return strstr(r->name, "codel") || strstr(r->name, "cake");
}

/* How many of the first 200 drops are the same, one by one. */
static uint64_t same_drops(const struct run *r, uint64_t *of)
{
    uint64_t ours = 0, theirs = 0, same = 0;

    for (*of = 0; *of < 200; (*of)++) {
        while (ours < r->frames && r->frame[ours].copies)
            ours++;
        while (theirs < r->frames && r->trace[theirs].recv_ns >= 0)
            theirs++;
        if (ours == r->frames && theirs == r->frames)
            break;
        same += ours == theirs;
        ours += ours < r->frames;
        theirs += theirs < r->frames;
    }
    return same;
}

/* Whether a frame left within a microsecond of @at_ns: which of both came first is not known. */
static bool tie(const struct run *r, int64_t at_ns)
{
    for (uint64_t i = 0; i < r->frames; i++)
        if (r->trace[i].recv_ns > r->trace[i].sent_ns && llabs(r->trace[i].recv_ns - at_ns) <= US)
            return true;
    return false;
}

/*
 * Frames whose fate is another, and times that are off. A frame that came at the instant of a
 * departure may find the place taken or free: then it and the next one may have changed their
 * fates.
 */
static void check_fates(struct run *r)
{
    uint64_t fates = 0, times = 0, ties = 0, drops, of;
    double some = codels_law(r) ? 0.002 * (double)r->frames : 0;
    bool swapped = false;

    for (uint64_t i = 0; i < r->frames; i++) {
        const struct frame *f = &r->frame[i];
        const struct trace_row *t = &r->trace[i];

        if ((t->recv_ns < 0) != !f->copies || (f->copies && f->ce != t->ce)) {
            if (swapped) {
                swapped = false;
            } else if (tie(r, t->sent_ns)) {
                swapped = true;
                ties++;
            } else {
                fates++;
            }
        } else if (f->copies) {
            times += llabs(f->recv_ns - t->recv_ns) > US;
        }
    }
    within(r, "fates that differ", (double)fates, 0, some);
    within(r, "fates that hang on a tie", (double)ties, 0, 0.002 * (double)r->frames);
    within(r, "times that differ by more than 1 us", (double)times, 0, some);
    if (!codels_law(r))
        return;
    drops = same_drops(r, &of);
    about(r, "first drops that are the same", (double)drops, (double)of, 0);
}

static void check_trace(struct run *r)
{
    if (!r->trace)
        die(r->name, "its trace is missing");
    check_fates(r);
    about(r, "lost", (double)count_lost(r), want(r, "lost"), 0);
}

/* ---- kinds: shares of several flows, active queue management --------------------------------- */

struct gen_result {
    uint64_t sent, received, ce;
    double   mbit, delay_ms;         /* rate in 10..100 % of the sending time, mean delay         */
    double   q99_ms, q50_ms;
};

static int64_t last_sent(const struct run *r)
{
    return r->frames ? r->frame[r->frames - 1].sent_ns : 0;
}

static struct gen_result result_of(const struct run *r, uint32_t g)
{
    struct gen_result o = { 0 };
    double *d = need(malloc((r->gen[g].count + 1) * sizeof *d)), bits = 0;
    int64_t end = last_sent(r), begin = end / 10;

    for (uint64_t i = 0; i < r->frames; i++) {
        const struct frame *f = &r->frame[i];

        if (f->gen != g)
            continue;
        o.sent++;
        if (!f->copies)
            continue;
        d[o.received] = (double)(f->recv_ns - f->sent_ns) / 1e6;
        o.delay_ms += d[o.received++];
        o.ce += f->ce;
        if (f->recv_ns >= begin && f->recv_ns < end)
            bits += 8.0 * (double)r->gen[g].size;
    }
    if (end > begin)
        o.mbit = bits / (double)(end - begin) * 1e3;
    if (o.received) {
        o.delay_ms /= (double)o.received;
        qsort(d, o.received, sizeof *d, by_value);
        o.q50_ms = d[o.received / 2];
        o.q99_ms = d[o.received - 1 - o.received / 100];
    }
    free(d);
    return o;
}

/* Each generator's rate and frames within the part @off of the recorded, its delay @delay_off. */
static void check_shares_within(struct run *r, double off, double delay_off)
{
    json_t *all = json_object_get(r->want, "generators"), *g;
    double total = 0;
    const char *key;

    json_object_foreach(all, key, g)
        total += number(g, "mbit_per_s_between_10_and_100_percent_of_send_time");
    json_object_foreach(all, key, g) {
        struct gen_result o = result_of(r, (uint32_t)strtoul(key, NULL, 10));
        double mbit = number(g, "mbit_per_s_between_10_and_100_percent_of_send_time");
        double frame_ms = total > 0 ? 1514 * 8 / total / 1e3 : 0;
        json_t *d = json_object_get(g, "delay_ms");
        char text[96];

        snprintf(text, sizeof text, "flow %s: Mbit/s", key);
        about(r, text, o.mbit, mbit, off * (mbit > 0.1 * total ? mbit : total));
        if (isinf(delay_off))                        /* rates alone                        */
            continue;
        snprintf(text, sizeof text, "flow %s: frames that came", key);
        about(r, text, (double)o.received, number(g, "received"),
              fmax(off, delay_off / 2) * number(g, "received") + 2);
        snprintf(text, sizeof text, "flow %s: mean delay, ms", key);
        about(r, text, o.delay_ms, number(d, "mean"),
              delay_off * number(d, "mean") + 0.1 * frame_ms);
        snprintf(text, sizeof text, "flow %s: median delay, ms", key);
        about(r, text, o.q50_ms, number(d, "50"), delay_off * number(d, "50") + frame_ms);
        snprintf(text, sizeof text, "flow %s: 99 %% delay, ms", key);
        about(r, text, o.q99_ms, number(d, "99"), 2 * delay_off * number(d, "99") + frame_ms);
    }
}

/* Whether @ref may be one more of the values in @s, whose spread is all that is known. */
static void one_of(struct run *r, const char *what, struct series *s, double ref)
{
    measure(s);
    about(r, what, ref, s->mean, Z * s->sd * sqrt(1 + 1 / (double)s->n));
}

/*
 * Against senders that never yield cake draws dice: frames that came and their delays differ by a
 * tenth from seed to seed. The recorded ones must be of the same spread.
 */
static void check_spread(struct run *r)
{
    json_t *all = json_object_get(r->want, "generators"), *g;
    double delay[GENS_MAX][SEEDS], came[GENS_MAX][SEEDS];
    const char *key;

    for (uint32_t k = 0; k < SEEDS; k++) {
        forget_frames(r);
        r->seed = k + 1;
        if (!play(r))
            return;
        read_log(r);
        for (uint32_t i = 0; i < r->gens; i++) {
            struct gen_result o = result_of(r, i);

            delay[i][k] = o.delay_ms;
            came[i][k] = (double)o.received;
        }
    }
    json_object_foreach(all, key, g) {
        uint32_t i = (uint32_t)strtoul(key, NULL, 10);
        struct series d = { .x = delay[i], .n = SEEDS }, c = { .x = came[i], .n = SEEDS };
        char text[96];

        snprintf(text, sizeof text, "flow %s: recorded frames that came, of the seeds' spread",
                 key);
        one_of(r, text, &c, number(g, "received"));
        snprintf(text, sizeof text, "flow %s: recorded mean delay, of the seeds' spread", key);
        one_of(r, text, &d, number(json_object_get(g, "delay_ms"), "mean"));
    }
}

static void check_shares(struct run *r)
{
    bool sfq = strstr(r->name, "sfq") != NULL, cake = strstr(r->name, "cake") != NULL;

    check_shares_within(r, sfq ? 0.02 : 0.01, cake ? INFINITY : sfq ? 0.05 : 0.02);
    if (cake)
        check_spread(r);
}

/* Rate of drops, or of marks if none was lost, in the second half; and the mean delay then. */
static void long_run(const struct run *r, double *rate, double *delay_ms)
{
    uint64_t hit = 0, n = 0, half = r->frames / 2;
    bool marks = !count_lost(r);
    double sum = 0;

    for (uint64_t i = half; i < r->frames; i++) {
        const struct frame *f = &r->frame[i];

        hit += marks ? f->ce : !f->copies;
        if (f->copies) {
            sum += (double)(f->recv_ns - f->sent_ns) / 1e6;
            n++;
        }
    }
    *rate = (double)hit / (double)(r->frames - half);
    *delay_ms = n ? sum / (double)n : 0;
}

static double recorded_delay(const struct run *r)
{
    json_t *a = json_object_get(r->want, "delay_ms_mean_by_second_sent");
    size_t n = json_array_size(a), from = (n + 1) / 2;
    double sum = 0;

    for (size_t i = from; i < n; i++)
        sum += json_number_value(json_array_get(a, i));
    return n > from ? sum / (double)(n - from) : 0;
}

static void check_aqm(struct run *r)
{
    double rate, delay_ms, ref = recorded_delay(r);

    if (r->trace)
        check_fates(r);
    if (strstr(r->name, "fq_codel")) {
        check_shares_within(r, 0.01, 0.02);
        return;
    }
    long_run(r, &rate, &delay_ms);
    about(r, "long run: dropped or marked", rate, want(r, "second_half_drop_or_mark_rate"), 0.005);
    about(r, "long run: mean delay, ms", delay_ms, ref,
          (strstr(r->name, "red") ? 0.05 : 0.1) * ref);
}

/* ---- books ----------------------------------------------------------------------------------- */

/*
 * Frames that did not come are the records' drops. The discipline's own counters that `tc -s`
 * showed are the same where no dice are drawn.
 */
static void check_books(struct run *r)
{
    static const char *const counter[] = {
        "maxpacket", "ecn_mark", "ce_mark", "drop_overlimit", "new_flow_count",
        "flows_plimit", "throttled", "marked", "pdrop",
    };
    json_t *q, *v;
    char text[96];
    size_t i;

    about(r, "drops in the records",
          fmax(0, query(r, "SELECT SUM(pkts) FROM link_drop WHERE link = 0", NULL)),
          (double)count_lost(r), 0);
    if (!r->trace)
        return;
    json_array_foreach(json_object_get(r->want, "tc_show_after"), i, q)
        for (size_t k = 0; k < sizeof counter / sizeof *counter; k++) {
            double got;

            v = json_object_get(q, counter[k]);
            if (!json_is_number(v))
                continue;
            got = query(r, "SELECT SUM(value) FROM stat WHERE link = 0 AND name = ?", counter[k]);
            snprintf(text, sizeof text, "counter %s", counter[k]);
            about(r, text, got, json_number_value(v), 0.002 * json_number_value(v));
        }
}

/* ---- all of them ----------------------------------------------------------------------------- */

static void check_one(struct run *r)
{
    static const struct { const char *kind; void (*check)(struct run *); } kinds[] = {
        { "loss", check_loss },       { "dupcorrupt", check_dupcorrupt }, { "delay", check_delay },
        { "reorder", check_reorder }, { "slot", check_slot },             { "trace", check_trace },
        { "shares", check_shares },   { "aqm", check_aqm },
    };
    const char *kind = json_string_value(json_object_get(r->want, "kind"));

    r->seed = 11;
    read_generators(r);
    read_trace(r);
    if (!play(r))
        return;
    read_log(r);
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (!strcmp(kinds[i].kind, kind)) {
            kinds[i].check(r);
            kind = NULL;
            break;
        }
    if (kind)
        die(kind, "a kind of recording that this program does not know");
    if (!strstr(r->name, "dup"))
        check_books(r);
}

static void forget(struct run *r)
{
    forget_frames(r);
    free(r->trace);
    r->trace = NULL;
    r->frames = 0;
}

static bool asked_for(const char *name, char **names, int n)
{
    for (int i = 0; i < n; i++)
        if (!strcmp(names[i], name))
            return true;
    return !n;
}

int main(int argc, char **argv)
{
    const char *tmp = getenv("TMPDIR");
    struct run r = { 0 };
    unsigned runs = 0;
    json_error_t je;
    json_t *all, *one;
    char path[512];
    size_t i;

    if (argc < 2)
        die("usage", "behaviour DIRECTORY-OF-DATA [NAME ...]");
    r.data = argv[1];
    snprintf(path, sizeof path, "%s/behaviour.json", r.data);
    all = json_load_file(path, 0, &je);
    if (!all)
        die(path, je.text);
    snprintf(r.work, sizeof r.work, "%.40s/gw-behaviour-XXXXXX", tmp ? tmp : "/tmp");
    if (!mkdtemp(r.work))
        die(r.work, strerror(errno));
    json_array_foreach(json_object_get(all, "results"), i, one) {
        r.want = one;
        r.name = json_string_value(json_object_get(one, "name"));
        if (!asked_for(r.name, argv + 2, argc - 2))
            continue;
        check_one(&r);
        forget(&r);
        runs++;
    }
    {
        char *const argv_rm[] = { "rm", "-rf", r.work, NULL };

        spawn(argv_rm);
    }
    json_decref(all);
    printf("%u recordings: %u passed, %u failed\n", runs, r.passed, r.failed);
    return runs && r.passed && !r.failed ? 0 : 1;
}
