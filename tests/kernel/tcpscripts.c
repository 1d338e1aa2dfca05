/*
 * tcpscripts - packet scripts through gradwire's TCP against what Linux's did with them
 *
 * tests/data/tcp holds scripts (send, drop this one) that ran on Linux 6.1 in virtual time, each
 * with a trace of every packet at the sender and the sender's TCP_INFO behind it. Each becomes a
 * study with the same network, is played by `gradwire run`, and its log of flows is laid beside
 * the trace: the same segments in the same order, at the same times, with the same windows.
 *
 * Good is a script whose repairs are the kernel's: the same segments again at the same passing, in
 * the same state, within a quarter of the round trip or a tick of the kernel's timers (1 ms, above
 * 63 ms 8 ms, above 511 ms 64 ms; the phase of its ticks is not recorded), and no others; and at
 * least three in ten rows are exact. The table shows how many are: the same order of segments, times
 * within 5 us and 5 us more per round trip since the start (the kernel's own events are some 256 ns
 * apart; behind a timer relative to it), cwnd within 1, ssthresh the same; and ACKs from the start.
 * Behind some 24 SACKs the receiver holds ACKs back by a timer whose slack is not in the recording.
 *
 * Usage: tcpscripts DIRECTORY-OF-DATA [NAME ...], with the program under test in GRADWIRE. Exit
 * code 0: all good, 1: a script differs, 99: could not be done.
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

#define MSS       1448
#define RTT_MS    40.0
#define SLACK_MS  0.005
#define FIELDS    32

struct row {
    double   t_ms;
    bool     out, syn;
    long long seq, ack;              /* stream offsets                                            */
    unsigned len, occurrence;
    double   cwnd, ssthresh;         /* behind all that happened at this instant                  */
    char     state[12];
};

struct trace {
    struct row *row;
    size_t count;
};

struct script {
    char name[64], cc[16], rules[256];
    long long bytes;
    unsigned retrans;
};

struct verdict {
    size_t repairs, repairs_good, data, data_good, acks, acks_good;
    double shift_ms;                 /* by which timers came at other times                       */
    char   why[200];                 /* first difference; empty: none                             */
};

static void die(const char *what, const char *why)
{
    fprintf(stderr, "tcpscripts: %s: %s\n", what, why);
    exit(99);
}

static void *need(void *p)
{
    if (!p)
        die("memory", "none left");
    return p;
}

/* ---- reading tables -------------------------------------------------------------------------- */

/* Cuts @line at its commas. */
static size_t split(char *line, char *field[FIELDS])
{
    size_t n = 0;
    char *s = line;

    line[strcspn(line, "\r\n")] = 0;
    while (n < FIELDS && s)
        field[n++] = strsep(&s, ",");
    return n;
}

struct table {
    FILE *f;
    char  head[1024], line[2048];
    char *name[FIELDS], *field[FIELDS];
    size_t columns;
};

static void table_open(struct table *t, const char *path)
{
    t->f = fopen(path, "r");
    if (!t->f || !fgets(t->head, sizeof t->head, t->f))
        die(path, t->f ? "is empty" : strerror(errno));
    t->columns = split(t->head, t->name);
}

static bool table_next(struct table *t)
{
    if (fgets(t->line, sizeof t->line, t->f))
        return split(t->line, t->field) >= t->columns;
    fclose(t->f);
    return false;
}

static const char *column(const struct table *t, const char *name)
{
    for (size_t i = 0; i < t->columns; i++)
        if (!strcmp(t->name[i], name))
            return t->field[i];
    die(name, "is no column");
    return NULL;
}

static double number(const struct table *t, const char *name)
{
    return strtod(column(t, name), NULL);
}

static struct row *add(struct trace *t)
{
    if (!(t->count & (t->count - 1)))
        t->row = need(realloc(t->row, (t->count ? 2 * t->count : 1) * sizeof *t->row));
    memset(&t->row[t->count], 0, sizeof *t->row);
    return &t->row[t->count++];
}

static void read_windows(struct row *r, const struct table *t)
{
    r->cwnd = number(t, "cwnd");
    r->ssthresh = number(t, "ssthresh");
    snprintf(r->state, sizeof r->state, "%s", column(t, "state"));
}

/* The kernel's trace; its numbers count from the SYN. */
static struct trace read_kernel(const char *path)
{
    struct table t = { 0 };
    struct trace all = { 0 };

    table_open(&t, path);
    while (table_next(&t)) {
        struct row *r;

        if (!strcmp(column(&t, "dir"), "in") && !strcmp(column(&t, "fate"), "DROP"))
            continue;                                /* the sender never saw it                 */
        r = add(&all);
        r->t_ms = number(&t, "t_ms");
        r->out = !strcmp(column(&t, "dir"), "out");
        r->syn = strchr(column(&t, "flags"), 'S') != NULL;
        r->len = (unsigned)number(&t, "len");
        r->seq = r->syn ? 0 : (long long)number(&t, "seq") - 1;
        r->ack = r->syn ? 0 : (long long)number(&t, "ack") - 1;
        read_windows(r, &t);
    }
    return all;
}

static struct trace read_ours(const char *path)
{
    struct table t = { 0 };
    struct trace all = { 0 };

    table_open(&t, path);
    while (table_next(&t)) {
        struct row *r = add(&all);

        r->t_ms = number(&t, "at_ps") / 1e9;
        r->out = !strcmp(column(&t, "dir"), "out");
        r->syn = strchr(column(&t, "flags"), 'S') != NULL;
        r->len = (unsigned)number(&t, "bytes");
        r->seq = (long long)number(&t, "offset");
        r->ack = (long long)number(&t, "ack");
        read_windows(r, &t);
    }
    return all;
}

static int by_time(const void *a, const void *b)
{
    const struct row *x = a, *y = b;

    if (x->t_ms != y->t_ms)
        return x->t_ms < y->t_ms ? -1 : 1;
    if (x->out != y->out)
        return x->out ? 1 : -1;
    if (x->out)
        return x->seq < y->seq ? -1 : x->seq > y->seq;
    return x->ack < y->ack ? -1 : x->ack > y->ack;
}

/* The windows of an instant are those behind its last row; then rows in one order on both sides,
 * and the passings of each segment counted. */
static void prepare(struct trace *t)
{
    for (size_t i = t->count; i-- > 1;)
        if (t->row[i - 1].t_ms == t->row[i].t_ms) {
            t->row[i - 1].cwnd = t->row[i].cwnd;
            t->row[i - 1].ssthresh = t->row[i].ssthresh;
        }
    qsort(t->row, t->count, sizeof *t->row, by_time);
    for (size_t i = 0; i < t->count; i++)
        for (size_t k = 0; k <= i; k++)
            t->row[i].occurrence += t->row[k].out == t->row[i].out &&
                                    t->row[k].syn == t->row[i].syn && !t->row[k].len == t->row[i].syn &&
                                    t->row[k].seq == t->row[i].seq;
}

/* ---- playing --------------------------------------------------------------------------------- */

static void write_study(const struct script *s, const char *path)
{
    FILE *f = need(fopen(path, "w"));

    fprintf(f,
            "schema: 1\nname: %s\ntopology:\n  graph:\n"
            "    nodes: [{name: s, kind: host}, r1, r2, {name: d, kind: host}]\n"
            "    links:\n"
            "      - {name: near, ends: [s, r1], rate: 0, framing: 0, channel: {kind: script, "
            "rules: \"%s\"}}\n"
            "      - {name: mid, ends: [r1, r2], rate: 0, framing: 0}\n"
            "      - {name: far, ends: [r2, d], rate: 0, framing: 0}\n"
            "tc:\n"
            "  - \"qdisc add dev mid:r1 root netem rate 100mbit limit 1000\"\n"
            "  - \"qdisc add dev mid:r2 root netem delay 20ms limit 10000\"\n"
            "  - \"qdisc add dev far:r2 root netem delay 20ms limit 10000\"\n"
            "transport: {kind: tcp, cc: %s, tso: yes}\n"
            "jobs:\n"
            "  - {name: msg, traffic: collective, op: broadcast, groups: [[s, d]], bytes: %lld}\n"
            "log:\n  - {job: msg, kind: flows}\n",
            s->name, s->rules, s->cc, s->bytes);
    if (fclose(f))
        die(path, "cannot be written");
}

/* Runs @argv; what it says of the study is thrown away. */
static void spawn(char *const argv[])
{
    pid_t child;
    int status = 0;

    fflush(stdout);
    child = fork();
    if (!child) {
        if (!freopen("/dev/null", "w", stdout) || !freopen("/dev/null", "w", stderr))
            _exit(126);
        execvp(argv[0], argv);
        _exit(127);
    }
    if (child < 0 || waitpid(child, &status, 0) < 0)
        die(argv[0], strerror(errno));
    if (!WIFEXITED(status) || WEXITSTATUS(status))
        die(argv[2], "the study did not run to its end");
}

static struct trace play(const struct script *s, const char *work)
{
    char study[160], out[160], log[200], *gw = getenv("GRADWIRE");
    char *const argv[] = { gw, "run", study, "-q", "--force", "-o", out, NULL };

    if (!gw)
        die("GRADWIRE", "does not name the program under test");
    snprintf(study, sizeof study, "%s/study.yaml", work);
    snprintf(out, sizeof out, "%s/out", work);
    snprintf(log, sizeof log, "%s/flows-msg.csv", out);
    write_study(s, study);
    spawn(argv);
    return read_ours(log);
}

/* ---- comparing ------------------------------------------------------------------------------- */

static const struct row *next(const struct trace *t, size_t *at, bool out)
{
    while (*at < t->count) {
        const struct row *r = &t->row[(*at)++];

        if (r->out == out && (out ? r->len || r->syn : !r->syn))
            return r;
    }
    return NULL;
}

static size_t count_rows(const struct trace *t, bool out)
{
    size_t at = 0, n = 0;

    while (next(t, &at, out))
        n++;
    return n;
}

/* How long before @r nothing had come in; it was then sent by a timer. */
static double quiet_ms(const struct trace *t, const struct row *r)
{
    double last = 0;

    for (size_t i = 0; i < t->count && t->row[i].t_ms <= r->t_ms; i++)
        if (!t->row[i].out)
            last = t->row[i].t_ms;
    return r->t_ms - last;
}

/* How coarse a kernel timer of @ms is. */
static double tick_ms(double ms)
{
    return ms < 63 ? 1 : ms < 511 ? 8 : 64;
}

static void say(struct verdict *v, const char *what, const struct row *want, const struct row *got)
{
    if (*v->why)
        return;
    snprintf(v->why, sizeof v->why, "%s: %lld.%u at %.3f ms %s cwnd %g/%g; kernel %lld.%u at %.3f "
             "ms %s %g/%g", what, got->out ? got->seq / MSS : got->ack, got->occurrence, got->t_ms,
             got->state, got->cwnd, got->ssthresh, want->out ? want->seq / MSS : want->ack,
             want->occurrence, want->t_ms, want->state, want->cwnd, want->ssthresh);
}

/* Is @got at the time of @want? A timer may move all that follows. */
static bool on_time(struct verdict *v, const struct trace *kernel, const struct row *want,
                    const struct row *got)
{
    double off = got->t_ms - want->t_ms - v->shift_ms, quiet;
    double slack = SLACK_MS * (1 + want->t_ms / RTT_MS);

    if (want->out && fabs(off) > slack) {
        quiet = quiet_ms(kernel, want);
        if (quiet > 0.05 && fabs(off) <= tick_ms(quiet)) {
            v->shift_ms += off;
            off = 0;
        }
    }
    return fabs(off) <= slack;
}

/* Row by row, while both send the same segments; what follows on a difference is not compared. */
static void compare_rows(struct verdict *v, const struct trace *kernel, const struct trace *ours)
{
    const struct row *want, *got;
    size_t a = 0, b = 0;

    v->data = count_rows(kernel, true);
    while ((want = next(kernel, &a, true)) && (got = next(ours, &b, true))) {
        if (got->seq != want->seq || got->len != want->len || got->syn != want->syn) {
            say(v, "another segment", want, got);
            return;
        }
        if (!on_time(v, kernel, want, got))
            say(v, "another time", want, got);
        else if (!want->syn && (fabs(got->cwnd - want->cwnd) > 1 ||
                                got->ssthresh != want->ssthresh))
            say(v, "another window", want, got);
        else
            v->data_good++;
    }
}

static const struct row *passing(const struct trace *t, const struct row *of)
{
    for (size_t i = 0; i < t->count; i++)
        if (t->row[i].out && t->row[i].syn == of->syn && t->row[i].seq == of->seq &&
            t->row[i].occurrence == of->occurrence && !t->row[i].len == !of->len)
            return &t->row[i];
    return NULL;
}

/* Each retransmission of the kernel is one here: in the same state, a quarter of a round trip or a
 * tick apart, and there are no others. */
static void compare_repairs(struct verdict *v, const struct trace *kernel, const struct trace *ours)
{
    for (size_t i = 0; i < kernel->count; i++) {
        const struct row *want = &kernel->row[i], *got;

        if (!want->out || !(want->len || want->syn) || want->occurrence < 2)
            continue;
        v->repairs++;
        got = passing(ours, want);
        if (got && fabs(got->t_ms - want->t_ms) <= fmax(RTT_MS / 4, tick_ms(quiet_ms(kernel, want)))
            && (want->syn || !strcmp(got->state, want->state)))
            v->repairs_good++;
        else
            say(v, got ? "another repair" : "not repaired", want, got ? got : want);
    }
    for (size_t i = 0; i < ours->count; i++)
        if (ours->row[i].out && ours->row[i].len && ours->row[i].occurrence > 1 &&
            !passing(kernel, &ours->row[i])) {
            v->repairs++;
            say(v, "repaired for nothing", &ours->row[i], &ours->row[i]);
        }
}

/* ACKs, as far as they are the same; the timers' shift is known from the data only at its end. */
static void compare_acks(struct verdict *v, const struct trace *kernel, const struct trace *ours)
{
    const struct row *want, *got;
    size_t a = 0, b = 0;

    v->acks = count_rows(kernel, false);
    while ((want = next(kernel, &a, false)) && (got = next(ours, &b, false)) &&
           got->ack == want->ack)
        v->acks_good++;
}

static bool compare(const struct script *s, const char *data, const char *work)
{
    struct trace kernel, ours;
    struct verdict v = { 0 };
    char path[512];
    bool good;

    snprintf(path, sizeof path, "%s/trace_%s.csv", data, s->name);
    kernel = read_kernel(path);
    ours = play(s, work);
    prepare(&kernel);
    prepare(&ours);
    compare_repairs(&v, &kernel, &ours);
    compare_rows(&v, &kernel, &ours);
    compare_acks(&v, &kernel, &ours);
    good = v.repairs_good == v.repairs && 10 * v.data_good >= 3 * v.data;
    printf("%-4s %-16s %-6s %3zu/%-3zu %4zu/%-4zu %4zu/%-4zu %9.3f  %s\n", good ? "ok" : "FAIL",
           s->name, s->cc, v.repairs_good, v.repairs, v.data_good, v.data, v.acks_good, v.acks,
           v.shift_ms, v.why);
    free(kernel.row);
    free(ours.row);
    return good;
}

static bool asked_for(const char *name, char **names, int count)
{
    for (int i = 0; i < count; i++)
        if (!strcmp(names[i], name))
            return true;
    return count == 0;
}

int main(int argc, char **argv)
{
    char work[] = "/tmp/gradwire-tcpscripts-XXXXXX", path[512];
    struct table t = { 0 };
    unsigned failed = 0, played = 0;

    if (argc < 2 || !mkdtemp(work))
        die("usage", "tcpscripts DIRECTORY-OF-DATA [NAME ...]");
    snprintf(path, sizeof path, "%s/scripts.csv", argv[1]);
    table_open(&t, path);
    printf("     script           cc     repairs segments  ACKs     timers ms  first difference\n");
    while (table_next(&t)) {
        struct script s = { .bytes = (long long)number(&t, "bytes") };

        snprintf(s.name, sizeof s.name, "%s", column(&t, "script"));
        snprintf(s.cc, sizeof s.cc, "%s", column(&t, "cc"));
        snprintf(s.rules, sizeof s.rules, "%s", column(&t, "rules"));
        if (!asked_for(s.name, argv + 2, argc - 2))
            continue;
        failed += !compare(&s, argv[1], work);
        played++;
    }
    printf("%u scripts, %u differ\n", played, failed);
    snprintf(path, sizeof path, "rm -rf %s", work);
    if (system(path))
        die(work, "cannot be removed");
    return failed ? 1 : !played ? 99 : 0;
}
