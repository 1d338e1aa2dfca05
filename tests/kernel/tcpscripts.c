/*
 * tcpscripts - packet scripts through gradwire's TCP against what Linux's did with them
 *
 * tests/data/tcp/scripts holds scripts (send, drop this one) that ran on Linux 6.1 in virtual time.
 * scripts.csv names some with a trace each, which were recorded elsewhere; own.txt names more, which
 * this project recorded into own.csv (recordscripts.c says what stands there). Each becomes a study
 * with the same network, is played by `gradwire run`, and its log of flows is laid beside the trace.
 *
 * Bar: each segment that is sent again or probes is so on both sides, for the same reason, and at the
 * same time, give or take a quarter of the round trip or, from a timer on, that timer's tick (1 ms,
 * above 63 ms 8 ms, above 511 ms 64 ms). Beyond that, all segments leave in the same order and within
 * the same time. Reasons: `fast`, an ACK told of the loss; `rack`, RACK's timer; `again`, RACK found
 * a retransmission lost; `tlp`, a probe; `rto`, a timeout (of SYN and FIN, too); `loss`, what follows
 * an rto by ACKs. The kernel's reasons in own.csv come from its counters, all others from the state
 * and from whether an ACK came at this instant; bbr's pacing timer hides the latter, so that there
 * `fast` and `rack` are one.
 *
 * A line a script: the reasons in their order (kernel/ours where they differ), the largest difference
 * of a segment's time, and how many segments are exact (the same time within 5 us and 5 us more per
 * round trip since the start, behind a timer relative to it; cwnd within 1, ssthresh the same), up to
 * the first that is not. With -m FILE, a list of known misses (a name a line), only others fail:
 * `miss` is a listed one, `order` one that misses by other segments' order or time alone. -v prints
 * both timelines, a segment a line.
 *
 * Usage: tcpscripts [-m MISSES] [-v] DIRECTORY [NAME ...], with the program under test in GRADWIRE.
 * Exit code 0: good, 1: a script misses, 99: could not be done.
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

#include "tests/kernel/scriptwords.h"

#define SLACK_MS  0.005
#define FIELDS    32

enum type { ACK, DATA, SYN, FIN };

struct row {
    double   t_ms;
    bool     out;
    enum type type;
    long long seq, ack;              /* stream offsets                                            */
    unsigned len, occurrence;
    double   cwnd, ssthresh;         /* behind all that happened at this instant                  */
    double   quiet_ms;               /* since something came in; negative: not known              */
    char     state[12], kind[8];
};

struct trace {
    struct row *row;
    size_t count;
    double end_ms;                   /* the sender's last event                                   */
    bool   ends;                     /* that is when the last message was there                   */
    bool   said;                     /* the kernel has said which rows are probes                 */
    double grain_ms;                 /* what is so close together is one instant                  */
};

struct script {
    char name[64], rules[512];
    struct script_words set;
    long long bytes;
};

struct verdict {
    size_t exact;                    /* segments                                                  */
    double worst_ms, tick_ms;        /* largest difference; of the timers so far                  */
    double shift_ms;                 /* by which timers came at other times                       */
    char   kinds[2][64];             /* kernel's, ours                                            */
    bool   miss, order;              /* a repair, anything else is beyond the bar                 */
    char   why[240], inexact[240];   /* first difference of either kind; empty: none              */
};

static struct {
    char work[64];
    bool verbose;
    const char *misses;
    unsigned played, missed, order, fresh;
} g;

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
    r->ssthresh = *column(t, "ssthresh") ? number(t, "ssthresh") : -1;
    snprintf(r->state, sizeof r->state, "%s", *column(t, "state") ? column(t, "state") : "open");
}

static enum type type_of(const char *flags, unsigned len)
{
    return strchr(flags, 'S') ? SYN : len ? DATA : strchr(flags, 'F') ? FIN : ACK;
}

/* A trace with ACKs; its numbers count from the SYN. */
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
        r->len = (unsigned)number(&t, "len");
        r->type = type_of(column(&t, "flags"), r->len);
        r->seq = r->type == SYN ? 0 : (long long)number(&t, "seq") - 1;
        r->ack = r->type == SYN ? 0 : (long long)number(&t, "ack") - 1;
        r->quiet_ms = -1;
        read_windows(r, &t);
    }
    all.grain_ms = 0.02;
    return all;
}

/* A row of own.csv, which may stand for several segments. */
static void read_own_row(struct trace *all, const struct table *t)
{
    unsigned left = (unsigned)number(t, "bytes");
    long long at = (long long)number(t, "offset");

    do {
        struct row *r = add(all);

        r->t_ms = number(t, "t_us") / 1e3;
        r->out = true;
        r->len = left < MSS ? left : MSS;
        r->type = type_of(column(t, "flags"), r->len);
        r->seq = at;
        r->quiet_ms = number(t, "quiet_us") / 1e3;
        snprintf(r->kind, sizeof r->kind, "%s", column(t, "kind"));
        read_windows(r, t);
        at += r->len;
        left -= r->len;
    } while (left);
}

/* The block of script @name in own.csv. */
static struct trace read_own(const char *path, const char *name)
{
    struct table t = { 0 };
    struct trace all = { 0 };
    char word[64];
    bool here = false;

    table_open(&t, path);
    while (fgets(t.line, sizeof t.line, t.f)) {
        if (sscanf(t.line, "script %63s", word) == 1) {
            here = !strcmp(word, name);
            continue;
        }
        if (!here || sscanf(t.line, "end %lf", &all.end_ms) == 1 ||
            split(t.line, t.field) < t.columns)
            continue;
        read_own_row(&all, &t);
    }
    fclose(t.f);
    all.end_ms /= 1e3;
    all.ends = all.said = true;
    all.grain_ms = 0.001;
    if (!all.count)
        die(name, "is not in own.csv; `make record-tcp-scripts` records it");
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
        r->len = (unsigned)number(&t, "bytes");
        r->type = type_of(column(&t, "flags"), r->len);
        r->seq = (long long)number(&t, "offset");
        r->ack = (long long)number(&t, "ack");
        r->quiet_ms = -1;
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

/* Why @r left, where nobody has said it: of what is sent again. A new segment without an ACK may be
 * a probe or the application's; told apart where the other side says. */
static void find_kind(struct row *r, bool said)
{
    bool timer = r->quiet_ms > 0, loss = !strcmp(r->state, "loss");

    if (*r->kind || (r->occurrence < 2 && (!timer || said)))
        return;
    snprintf(r->kind, sizeof r->kind, "%s",
             r->type == SYN ? "rto"
             : loss ? (timer ? "rto" : "loss")
             : !strcmp(r->state, "recovery") ? (r->occurrence > 2 ? "again" : timer ? "rack" : "fast")
             : timer ? "tlp" : "other");
}

/* The windows of an instant are those behind its last row; then rows in one order on both sides,
 * and the passings of each segment counted. */
static void prepare(struct trace *t)
{
    double last_in = 0;

    for (size_t i = t->count; i-- > 1;)
        if (t->row[i - 1].t_ms == t->row[i].t_ms) {
            t->row[i - 1].cwnd = t->row[i].cwnd;
            t->row[i - 1].ssthresh = t->row[i].ssthresh;
            memcpy(t->row[i - 1].state, t->row[i].state, sizeof t->row[i].state);
        }
    if (t->count)
        qsort(t->row, t->count, sizeof *t->row, by_time);
    for (size_t i = 0; i < t->count; i++) {
        struct row *r = &t->row[i];

        t->end_ms = fmax(t->end_ms, r->t_ms);
        last_in = r->out ? last_in : r->t_ms;
        if (r->quiet_ms < 0)
            r->quiet_ms = r->t_ms - last_in;
        if (r->quiet_ms <= t->grain_ms)
            r->quiet_ms = 0;
        for (size_t k = 0; k <= i; k++)
            r->occurrence += t->row[k].out == r->out && t->row[k].type == r->type &&
                             t->row[k].seq == r->seq;
        if (r->out && r->type != ACK)
            find_kind(r, t->said);
    }
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
            "  - \"qdisc add dev mid:r1 root netem rate %.0fkbit limit %u\"\n"
            "  - \"qdisc add dev mid:r2 root netem delay %.0fus limit 100000\"\n"
            "  - \"qdisc add dev far:r2 root netem delay %.0fus limit 100000\"\n"
            "transport: {kind: tcp, cc: %s, tso: yes",
            s->name, s->rules, s->set.rate_mbit * 1e3, s->set.queue, s->set.rtt_ms * 500, s->set.rtt_ms * 500, s->set.cc);
    if (s->set.ecn)
        fprintf(f, ", ecn: yes");
    if (s->set.nosack)
        fprintf(f, ", sack: no");
    if (s->set.rcvbuf)
        fprintf(f, ", rcvbuf: %u", 2 * s->set.rcvbuf);   /* setsockopt() doubles what it is told     */
    fprintf(f, "}\njobs:\n");
    if (s->set.close)
        fprintf(f, "  - {name: msg, traffic: flows, flows: [{from: s, to: d, bytes: %lld}]}\n",
                s->bytes);
    else
        fprintf(f, "  - {name: msg, traffic: messages, from: s, to: d, bytes: %lld, iterations: %u, "
                "gap: %.0fus}\n", s->bytes, s->set.messages, s->set.gap_ms * 1e3);
    fprintf(f, "log:\n  - {job: msg, kind: flows}\n");
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

static struct trace play(const struct script *s)
{
    char study[160], out[160], log[200], *gw = getenv("GRADWIRE");
    char *const argv[] = { gw, "run", study, "-q", "--force", "-o", out, NULL };

    if (!gw)
        die("GRADWIRE", "does not name the program under test");
    snprintf(study, sizeof study, "%s/study.yaml", g.work);
    snprintf(out, sizeof out, "%s/out", g.work);
    snprintf(log, sizeof log, "%s/flows-msg.csv", out);
    write_study(s, study);
    spawn(argv);
    return read_ours(log);
}

/* ---- comparing ------------------------------------------------------------------------------- */

static const struct row *next(const struct trace *t, size_t *at)
{
    while (*at < t->count) {
        const struct row *r = &t->row[(*at)++];

        if (r->out && r->type != ACK)
            return r;
    }
    return NULL;
}

static size_t count_rows(const struct trace *t)
{
    size_t at = 0, n = 0;

    while (next(t, &at))
        n++;
    return n;
}

/* How coarse a kernel timer of @ms is. */
static double tick_ms(double ms)
{
    return ms < 63 ? 1 : ms < 511 ? 8 : 64;
}

static const char *shown(const struct row *r, char *buf, size_t n)
{
    static const char *const names[] = { "ack", "", "syn", "fin" };

    if (!r)
        return "nothing";
    snprintf(buf, n, "%s%lld.%u at %.3f ms %s %s %g/%g", names[r->type],
             r->type == DATA ? r->seq / MSS : 0, r->occurrence, r->t_ms, r->kind, r->state, r->cwnd,
             r->ssthresh);
    return buf;
}

static void write_once(char *text, size_t n, const char *what, const struct row *want,
                       const struct row *got)
{
    char kernel[100], ours[100];

    if (!*text)
        snprintf(text, n, "%s: %s; kernel %s", what, shown(got, ours, sizeof ours),
                 shown(want, kernel, sizeof kernel));
}

static void differ(struct verdict *v, bool *flag, const char *what, const struct row *want,
                   const struct row *got)
{
    write_once(v->why, sizeof v->why, what, want, got);
    *flag = true;
}

static bool same_segment(const struct row *a, const struct row *b)
{
    return a->type == b->type && a->seq == b->seq && a->len == b->len &&
           a->occurrence == b->occurrence;
}

static bool same_kind(const struct script *s, const char *a, const char *b)
{
    bool paced = !strcmp(s->set.cc, "bbr");

    return !strcmp(a, b) || (paced && (!strcmp(a, "fast") || !strcmp(a, "rack")) &&
                             (!strcmp(b, "fast") || !strcmp(b, "rack")));
}

/* Is @r a repair or a probe? What an application began has a kind by its timer only. */
static bool repairs(const struct row *r)
{
    return r->occurrence > 1;
}

static void add_kind(char *kinds, size_t n, const struct row *r)
{
    const char *last = strrchr(kinds, ' ');
    size_t at = strlen(kinds);

    if (repairs(r) && strcmp(last ? last + 1 : kinds, r->kind))
        snprintf(kinds + at, n - at, "%s%s", at ? " " : "", r->kind);
}

/* Is @got at the time of @want? A timer may move all that follows, by its tick. */
static bool exact(const struct script *s, struct verdict *v, const struct row *want,
                  const struct row *got)
{
    double off = got->t_ms - want->t_ms - v->shift_ms;
    double slack = SLACK_MS * (1 + want->t_ms / s->set.rtt_ms);

    if (fabs(off) > slack && want->quiet_ms > 0 && fabs(off) <= tick_ms(want->quiet_ms)) {
        v->shift_ms += off;
        off = 0;
    }
    return fabs(off) <= slack && (want->type == SYN || (fabs(got->cwnd - want->cwnd) <= 1 &&
                                                        got->ssthresh == want->ssthresh));
}

/* Segment by segment while both send the same ones; one side may go on a little longer. */
static void compare_rows(const struct script *s, struct verdict *v, const struct trace *kernel,
                         const struct trace *ours)
{
    const struct row *want = NULL, *got = NULL;
    size_t a = 0, b = 0, same = 0;
    double bar;

    while ((want = next(kernel, &a)) && (got = next(ours, &b)) && same_segment(want, got)) {
        double off = fabs(got->t_ms - want->t_ms);

        if (want->quiet_ms > 0 && *want->kind)
            v->tick_ms = fmax(v->tick_ms, tick_ms(want->quiet_ms));
        v->worst_ms = fmax(v->worst_ms, off);
        if (off > fmax(s->set.rtt_ms / 4, v->tick_ms))
            differ(v, &v->order, "another time", want, got);
        if (v->exact == same && exact(s, v, want, got))
            v->exact++;
        else
            write_once(v->inexact, sizeof v->inexact, "within, but", want, got);
        same++;
        got = NULL;
    }
    got = want ? got : next(ours, &b);
    bar = fmax(s->set.rtt_ms / 4, v->tick_ms);
    if (want && got)
        differ(v, &v->order, "another segment", want, got);
    else if (want && want->t_ms < ours->end_ms - bar)
        differ(v, &v->order, "not sent", want, NULL);
    else if (got && got->t_ms < kernel->end_ms - bar)
        differ(v, &v->order, "sent for nothing", NULL, got);
    else if (kernel->ends && fabs(kernel->end_ms - ours->end_ms) > bar)
        differ(v, &v->order, "another end", want, got);
}

static const struct row *passing(const struct trace *t, const struct row *of)
{
    for (size_t i = 0; i < t->count; i++)
        if (t->row[i].out && t->row[i].type == of->type && t->row[i].seq == of->seq &&
            t->row[i].occurrence == of->occurrence)
            return &t->row[i];
    return NULL;
}

/* Each repair or probe of the kernel is one here, for the same reason and at its time, and there are
 * no others, but for what comes about when one side has ended. */
static void compare_repairs(const struct script *s, struct verdict *v, const struct trace *kernel,
                            const struct trace *ours)
{
    const struct row *want, *got;
    size_t at = 0;
    double bar = s->set.rtt_ms / 4;

    while ((want = next(kernel, &at))) {
        if (!repairs(want) && strcmp(want->kind, "tlp"))
            continue;
        if (want->quiet_ms > 0)
            bar = fmax(bar, tick_ms(want->quiet_ms));
        got = passing(ours, want);
        if (!got && want->t_ms < ours->end_ms - bar)
            differ(v, &v->miss, "not repaired", want, NULL);
        else if (got && !same_kind(s, want->kind, got->kind))
            differ(v, &v->miss, "another reason", want, got);
        else if (got && fabs(got->t_ms - want->t_ms) > bar)
            differ(v, &v->miss, "another time", want, got);
    }
    at = 0;
    while ((got = next(ours, &at)))
        if (repairs(got) && !passing(kernel, got) && got->t_ms < kernel->end_ms - bar)
            differ(v, &v->miss, "repaired for nothing", NULL, got);
}

static void print_timelines(const struct trace *kernel, const struct trace *ours)
{
    const struct row *want, *got;
    size_t a = 0, b = 0;
    char left[100], right[100];

    do {
        want = next(kernel, &a);
        got = next(ours, &b);
        printf("    %-58s %s\n", want ? shown(want, left, sizeof left) : "",
               got ? shown(got, right, sizeof right) : "");
    } while (want || got);
    printf("    ends at %.3f and %.3f ms\n", kernel->end_ms, ours->end_ms);
}

/* Is @name in the list of known misses? */
static bool known(const char *name)
{
    char line[128];
    bool found = false;
    FILE *f = g.misses ? fopen(g.misses, "r") : NULL;

    if (g.misses && !f)
        die(g.misses, strerror(errno));
    while (f && !found && fgets(line, sizeof line, f)) {
        line[strcspn(line, " \r\n")] = 0;
        found = !strcmp(line, name);
    }
    if (f)
        fclose(f);
    return found;
}

static void print_verdict(const struct script *s, const struct verdict *v, bool listed, size_t rows)
{
    char kinds[130];
    bool off = v->miss || v->order;

    snprintf(kinds, sizeof kinds, strcmp(v->kinds[0], v->kinds[1]) ? "%s/%s" : "%s", v->kinds[0],
             v->kinds[1]);
    printf("%-6s %-22s %-5s %-26s %9.3f %4zu/%-4zu %s%s\n",
           !off ? "ok" : !listed ? "FAIL" : v->miss ? "miss" : "order", s->name, s->set.cc, kinds,
           v->worst_ms, v->exact, rows, !off && listed ? "holds by now " : "",
           off ? v->why : v->inexact);
    g.played++;
    g.missed += v->miss;
    g.order += v->order && !v->miss;
    g.fresh += off && !listed;
}

static void compare(const struct script *s, struct trace kernel)
{
    struct trace ours = play(s);
    struct verdict v = { 0 };
    size_t at = 0;
    bool listed = known(s->name);

    prepare(&kernel);
    prepare(&ours);
    compare_repairs(s, &v, &kernel, &ours);
    compare_rows(s, &v, &kernel, &ours);
    for (const struct row *r; (r = next(&kernel, &at));)
        add_kind(v.kinds[0], sizeof v.kinds[0], r);
    at = 0;
    for (const struct row *r; (r = next(&ours, &at));)
        add_kind(v.kinds[1], sizeof v.kinds[1], r);
    print_verdict(s, &v, listed, count_rows(&kernel));
    if (g.verbose)
        print_timelines(&kernel, &ours);
    free(kernel.row);
    free(ours.row);
}

/* ---- the lists ------------------------------------------------------------------------------- */

static bool asked_for(const char *name, char **names, int count)
{
    for (int i = 0; i < count; i++)
        if (!strcmp(names[i], name))
            return true;
    return count == 0;
}

static const struct script plain = { .set = SCRIPT_PLAIN, .bytes = 100 * MSS };

static void play_given(const char *data, char **names, int count)
{
    struct table t = { 0 };
    char path[512];

    snprintf(path, sizeof path, "%s/scripts.csv", data);
    table_open(&t, path);
    while (table_next(&t)) {
        struct script s = plain;

        s.bytes = (long long)number(&t, "bytes");
        snprintf(s.name, sizeof s.name, "%s", column(&t, "script"));
        snprintf(s.set.cc, sizeof s.set.cc, "%s", column(&t, "cc"));
        snprintf(s.rules, sizeof s.rules, "%s", column(&t, "rules"));
        snprintf(path, sizeof path, "%s/trace_%s.csv", data, s.name);
        if (asked_for(s.name, names, count))
            compare(&s, read_kernel(path));
    }
}

static void read_word(struct script *s, const char *word)
{
    size_t at = strlen(s->rules);

    if (script_word(&s->set, word))
        s->bytes = (long long)s->set.segments * MSS;
    else if (strchr(word, ':'))
        snprintf(s->rules + at, sizeof s->rules - at, "%s%s", at ? " " : "", word);
    else
        die(word, "is no setting");
}

static void play_own(const char *data, char **names, int count)
{
    char path[512], line[1024], *rest, *word;
    FILE *f;

    snprintf(path, sizeof path, "%s/own.txt", data);
    f = fopen(path, "r");
    if (!f)
        die(path, strerror(errno));
    snprintf(path, sizeof path, "%s/own.csv", data);
    while (fgets(line, sizeof line, f)) {
        struct script s = plain;

        word = strtok_r(line, " \n", &rest);
        if (!word || *word == '#' || !asked_for(word, names, count))
            continue;
        snprintf(s.name, sizeof s.name, "%s", word);
        while ((word = strtok_r(NULL, " \n", &rest)))
            read_word(&s, word);
        compare(&s, read_own(path, s.name));
    }
    fclose(f);
}

int main(int argc, char **argv)
{
    char path[512];
    int opt;

    while ((opt = getopt(argc, argv, "m:v")) != -1) {
        if (opt == 'm')
            g.misses = optarg;
        else if (opt == 'v')
            g.verbose = true;
        else
            die("usage", "tcpscripts [-m MISSES] [-v] DIRECTORY [NAME ...]");
    }
    snprintf(g.work, sizeof g.work, "/tmp/gradwire-tcpscripts-XXXXXX");
    if (optind == argc || !mkdtemp(g.work))
        die("usage", "tcpscripts [-m MISSES] [-v] DIRECTORY [NAME ...]");
    printf("       script                 cc    kernel/ours                 apart ms  exact    first "
           "difference\n");
    play_given(argv[optind], argv + optind + 1, argc - optind - 1);
    play_own(argv[optind], argv + optind + 1, argc - optind - 1);
    printf("%u scripts, %u miss, %u more in the order or time of other segments, %u not known\n",
           g.played, g.missed, g.order, g.fresh);
    snprintf(path, sizeof path, "rm -rf %s", g.work);
    if (system(path))
        die(g.work, "cannot be removed");
    return g.fresh ? 1 : !g.played ? 99 : 0;
}
