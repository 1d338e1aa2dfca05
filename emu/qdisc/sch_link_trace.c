/*
 * sch_link_trace - a link whose deliveries or rate follow a recording
 *
 * Format `mahimahi`: each line is a time in whole milliseconds, not less than the one before, at
 * which the link can deliver 1500 bytes of network packets (frames without their 14 bytes of
 * Ethernet header). A line carries several packets or parts of them; a packet has arrived when its
 * last byte has been carried. What a line does not carry is lost: opportunities are not saved up.
 * A packet that comes at the very time of a line may still use it. After the last line the file
 * repeats, its first time counted from the last. Mean rate = lines x 12000 bit / last time.
 *
 * Format `series`: lines of time in seconds and rate in Mbit/s, between them commas, tabs or
 * blanks; a first line may name the columns (time_s and rate_bps, rate_kbps or rate_mbps). Times
 * increase; a rate holds until the next line's time; the last line's time ends the series, which
 * then repeats from its first line. The first line's time, whatever it is, is the begin of the run.
 * A frame's bytes (without FCS) are sent at that rate, one frame after the other, and the frame
 * leaves with its last byte.
 *
 * Over `limit` packets the one that comes is dropped. Mahimahi's times count from the begin of the
 * run. The link under it should have rate 0 (no rate of its own); else it may be busy when a line
 * comes.
 * After the trace format of mahimahi's mm-link (Netravali et al., USENIX ATC 2015). Left out: its
 * 4 bytes of tunnel header in a packet's length.
 */
#include <gradwire/gradwire.h>

#define LINE_BYTES 1500u
#define LINE_MAX_CHARS 256
#define PATH_CHARS 512

enum format { MAHIMAHI, SERIES };
enum { G_FILE = 1, G_FORMAT = 2, G_LIMIT = 4 };

struct link_trace_conf {
    char     path[PATH_CHARS];
    uint32_t format, limit;
};

/* Both formats as points: `at_ps` from the begin of a pass, and for series the rate from there. */
struct point {
    uint64_t at_ps, rate_bps;
};

struct link_trace {
    struct gw_pktq queue;
    struct point  *point;
    size_t   count, room;
    uint64_t pass_ps;            /* length of a pass                                           */
    uint32_t format;
    uint64_t limit;
    uint64_t head_left;          /* bytes (mahimahi) or bit-ps (series) of the head to be sent */
    /* mahimahi: the line that is next or is being used */
    uint64_t pass_at_ps;         /* begin of its pass                                          */
    size_t   line;
    uint32_t line_left;
    uint64_t free_ps;            /* series: when the head was or will be complete              */
    uint64_t lines_used, lines_lost;
    char     path[PATH_CHARS];
};

/* ---- reading ------------------------------------------------------------------------------ */

struct reader {
    struct gw_qdisc *q;
    FILE    *f;
    const char *path;
    uint32_t line;
    char     text[LINE_MAX_CHARS];
    double   scale;              /* series: bit/s of one unit of the rate column               */
    uint64_t first_ps;           /* series: time of the first line                             */
    struct gw_error *err;
};

static enum gw_status bad(struct reader *r, const char *what)
{
    return gw_fail(r->err, GW_SYNTAX, "%s:%u: %s", r->path, r->line, what);
}

/* The next line without its end; false: no more, or r->err is set. */
static bool read_line(struct reader *r)
{
    size_t n;

    if (!fgets(r->text, sizeof r->text, r->f))
        return false;
    r->line++;
    n = strlen(r->text);
    if (n && r->text[n - 1] == '\n') {
        r->text[--n] = 0;
    } else if (!feof(r->f)) {
        bad(r, "the line is too long; a number in a line is right");
        return false;
    }
    if (n && r->text[n - 1] == '\r')
        r->text[--n] = 0;
    if (r->text[strspn(r->text, " \t")])
        return true;
    bad(r, "the line is empty; every line holds a time");
    return false;
}

static enum gw_status add_point(struct reader *r, struct point p)
{
    struct link_trace *s = r->q->priv;

    if (s->count == s->room) {
        size_t room = s->room ? s->room * 2 : 1024;
        struct point *more = r->q->host->resize(s->point, room * sizeof *more);

        if (!more)
            return gw_fail(r->err, GW_NOMEM, "out of memory for %s", r->path);
        s->point = more;
        s->room = room;
    }
    s->point[s->count++] = p;
    return GW_OK;
}

static enum gw_status mahimahi_line(struct reader *r)
{
    const struct link_trace *s = r->q->priv;
    const char *c = r->text + strspn(r->text, " \t");
    char *end;
    unsigned long long ms = strtoull(c, &end, 10);

    end += strspn(end, " \t");
    if (*c < '0' || *c > '9' || *end || ms > UINT64_C(1000000000))
        return bad(r, "a whole number of milliseconds is right, one a line");
    if (s->count && ms * GW_PS_PER_MS < s->point[s->count - 1].at_ps)
        return bad(r, "the time is less than in the line before; times may not decrease");
    return add_point(r, (struct point){ .at_ps = ms * GW_PS_PER_MS });
}

/* A first line of names; says what a rate of 1 means. */
static bool series_names(struct reader *r)
{
    static const struct { const char *name; double scale; } unit[] = {
        { "rate_bps", 1 }, { "rate_kbps", 1e3 }, { "rate_mbps", 1e6 } };
    char *save = NULL, text[LINE_MAX_CHARS], *time, *rate;

    snprintf(text, sizeof text, "%s", r->text);
    time = strtok_r(text, ", \t", &save);
    rate = strtok_r(NULL, ", \t", &save);
    if (!time || !rate || strcmp(time, "time_s"))
        return false;
    for (size_t i = 0; i < GW_ARRAY_LEN(unit); i++)
        if (!strcmp(rate, unit[i].name)) {
            r->scale = unit[i].scale;
            return true;
        }
    return false;
}

static enum gw_status series_line(struct reader *r)
{
    struct link_trace *s = r->q->priv;
    char *end, *start;
    double time = strtod(r->text, &end), rate;
    struct point p;

    if (end == r->text)
        return r->line == 1 && series_names(r) ? GW_OK :
               bad(r, "a time in seconds and a rate in Mbit/s are right, or first a line of names: "
                      "time_s,rate_mbps");
    start = end + strspn(end, ", \t");
    rate = strtod(start, &end);
    if (end == start || start == r->text || end[strspn(end, " \t")])
        return bad(r, "a time in seconds and a rate in Mbit/s are right, with a comma or blank "
                      "between them");
    if (!(time >= 0 && time <= 1e7) || !(rate >= 0 && rate * r->scale <= 1e13))
        return bad(r, "a time from 0 to 1e7 s and a rate from 0 to 10 Tbit/s are right");
    if (!s->count)
        r->first_ps = (uint64_t)(time * 1e12 + 0.5);
    p = (struct point){ (uint64_t)(time * 1e12 + 0.5) - r->first_ps,
                        (uint64_t)(rate * r->scale + 0.5) };
    if (s->count && (int64_t)(p.at_ps - s->point[s->count - 1].at_ps) <= 0)
        return bad(r, "the time is not after that of the line before; times increase");
    return add_point(r, p);
}

/* What a pass carries. */
static double series_bits(const struct link_trace *s)
{
    double bit_ps = 0;

    for (size_t i = 0; i + 1 < s->count; i++)
        bit_ps += (double)s->point[i].rate_bps *
                  (double)(s->point[i + 1].at_ps - s->point[i].at_ps);
    return bit_ps / GW_PS_PER_S;
}

static enum gw_status read_all(struct reader *r)
{
    struct link_trace *s = r->q->priv;

    while (read_line(r))
        if ((s->format == SERIES ? series_line(r) : mahimahi_line(r)) != GW_OK)
            return r->err->code;
    if (r->err->code != GW_OK)
        return r->err->code;
    s->pass_ps = s->count ? s->point[s->count - 1].at_ps : 0;
    if (!s->count)
        return gw_fail(r->err, GW_SYNTAX, "%s: the file is empty; a line for each delivery is "
                       "right", r->path);
    if (!s->pass_ps)
        return bad(r, s->format == SERIES ?
                   "a series needs two lines at least, for a rate holds until the next one" :
                   "the last time is 0, so the rate would have no bound; the last line needs a "
                   "time above 0");
    if (s->format != SERIES || series_bits(s) >= 1)
        return GW_OK;
    if (series_bits(s) > 0)
        return gw_fail(r->err, GW_SYNTAX, "%s:%u: the whole series carries %.3g bits, so a packet would "
                       "take thousands of passes; longer times or higher rates, of one bit at least, "
                       "are right", r->path, r->line, series_bits(s));
    return bad(r, "no rate is above 0 before the last line, so nothing would ever arrive");
}

static enum gw_status link_trace_init(struct gw_qdisc *q, struct gw_error *err)
{
    const struct link_trace_conf *c = q->conf;
    struct link_trace *s = q->priv;
    struct reader r = { .q = q, .scale = 1e6, .err = err };

    if (!(q->given & G_FILE))
        return gw_fail(err, GW_PARAM, "link_trace: `file` must be given, e.g. file lte.down");
    s->format = q->given & G_FORMAT ? c->format : MAHIMAHI;
    s->limit = q->given & G_LIMIT ? c->limit : 1000;
    s->line_left = LINE_BYTES;
    r.f = q->host->open_data(q->host, NULL, "traces", c->path, s->path, sizeof s->path, err);
    r.path = s->path;
    if (!r.f)
        return err->code;
    read_all(&r);
    fclose(r.f);
    if (err->code != GW_OK && s->point) {
        q->host->release(s->point);
        s->point = NULL;
    }
    return err->code;
}

static void link_trace_fini(struct gw_qdisc *q)
{
    struct link_trace *s = q->priv;

    if (s->point)
        q->host->release(s->point);
}

/* ---- mahimahi ----------------------------------------------------------------------------- */

static uint64_t line_ps(const struct link_trace *s)
{
    return s->pass_at_ps + s->point[s->line].at_ps;
}

static void next_line(struct link_trace *s)
{
    s->line_left = LINE_BYTES;
    if (++s->line == s->count) {
        s->line = 0;
        s->pass_at_ps += s->pass_ps;
    }
}

/* Lines before @now_ps are over; whole passes are stepped over at once. */
static void skip_lines(struct link_trace *s, uint64_t now_ps)
{
    if (s->pass_at_ps + s->pass_ps < now_ps) {
        uint64_t passes = (now_ps - s->pass_at_ps - 1) / s->pass_ps;

        s->lines_lost += passes * s->count - s->line;
        s->pass_at_ps += passes * s->pass_ps;
        s->line = 0;
        s->line_left = LINE_BYTES;
    }
    while (line_ps(s) < now_ps) {
        s->lines_lost += s->line_left == LINE_BYTES;
        next_line(s);
    }
}

static uint32_t network_bytes(const struct gw_pkt *p)
{
    return p->sched_bytes > GW_ETH_BYTES ? p->sched_bytes - GW_ETH_BYTES : 1;
}

static struct gw_pkt *carry(struct link_trace *s, uint64_t now_ps)
{
    skip_lines(s, now_ps);
    while (s->queue.head && line_ps(s) == now_ps) {
        uint32_t n = s->head_left < s->line_left ? (uint32_t)s->head_left : s->line_left;

        s->lines_used += s->line_left == LINE_BYTES;
        s->head_left -= n;
        s->line_left -= n;
        if (!s->line_left)
            next_line(s);
        if (!s->head_left) {
            struct gw_pkt *p = gw_pktq_pop(&s->queue);

            if (s->queue.head)
                s->head_left = network_bytes(s->queue.head);
            return p;
        }
    }
    return NULL;
}

/* ---- series ------------------------------------------------------------------------------- */

/* Time at which @bit_ps bits x 10^12 are sent that begin at @from_ps. */
static uint64_t sent_at(const struct link_trace *s, uint64_t from_ps, uint64_t bit_ps)
{
    uint64_t pass = from_ps / s->pass_ps * s->pass_ps, at = from_ps - pass;
    size_t low = 0, high = s->count - 1;

    while (high - low > 1) {
        size_t mid = (low + high) / 2;

        if (s->point[mid].at_ps <= at)
            low = mid;
        else
            high = mid;
    }
    for (;;) {
        uint64_t rate = s->point[low].rate_bps, room = s->point[low + 1].at_ps - at;
        uint64_t need = rate ? bit_ps / rate + (bit_ps % rate != 0) : UINT64_MAX;

        if (need <= room)
            return pass + at + need;
        bit_ps -= rate * room;                       /* less than bit_ps: no overflow          */
        at = s->point[++low].at_ps;
        if (low + 1 == s->count) {
            low = 0;
            at = 0;
            pass += s->pass_ps;
        }
    }
}

static void begin_head(struct link_trace *s, uint64_t now_ps)
{
    if (s->format == MAHIMAHI)
        s->head_left = network_bytes(s->queue.head);
    else
        s->free_ps = sent_at(s, now_ps, s->queue.head->sched_bytes * UINT64_C(8) * GW_PS_PER_S);
}

static struct gw_pkt *send_series(struct link_trace *s, uint64_t now_ps)
{
    uint64_t done = s->free_ps;
    struct gw_pkt *p;

    if (!s->queue.head || done > now_ps)
        return NULL;
    p = gw_pktq_pop(&s->queue);
    if (s->queue.head)
        begin_head(s, done);
    return p;
}

/* ---- the discipline ----------------------------------------------------------------------- */

static enum gw_verdict link_trace_enqueue(struct gw_qdisc *q, struct gw_pkt *p, uint64_t now_ps)
{
    struct link_trace *s = q->priv;

    if (s->queue.count >= s->limit) {
        q->drop_reason = GW_DROP_QUEUE_FULL;
        return GW_Q_DROPPED;
    }
    gw_pktq_push(&s->queue, p);
    if (s->queue.count == 1)
        begin_head(s, now_ps);
    return GW_Q_QUEUED;
}

static struct gw_pkt *link_trace_dequeue(struct gw_qdisc *q, uint64_t now_ps)
{
    struct link_trace *s = q->priv;

    return s->format == MAHIMAHI ? carry(s, now_ps) : send_series(s, now_ps);
}

static uint64_t link_trace_next_ps(struct gw_qdisc *q, uint64_t now_ps)
{
    struct link_trace *s = q->priv;

    if (!s->queue.head)
        return GW_NEVER;
    if (s->format == SERIES)
        return s->free_ps;
    skip_lines(s, now_ps);
    return line_ps(s);
}

static enum gw_status link_trace_change(struct gw_qdisc *q, const void *conf, uint64_t given,
                                        uint64_t now_ps, struct gw_error *err)
{
    const struct link_trace_conf *c = conf;
    struct link_trace *s = q->priv;

    (void)now_ps;
    if (given & (G_FILE | G_FORMAT))
        return gw_fail(err, GW_PARAM, "link_trace: the file cannot be changed while it runs; only "
                       "`limit` can");
    if (given & G_LIMIT)
        s->limit = c->limit;
    return GW_OK;
}

static void link_trace_reset(struct gw_qdisc *q, uint64_t now_ps)
{
    struct link_trace *s = q->priv;
    struct gw_pkt *p;

    (void)now_ps;
    while ((p = gw_pktq_pop(&s->queue)))
        q->host->qdisc_drop(q, p, GW_DROP_PURGED);
}

/* ---- words -------------------------------------------------------------------------------- */

static enum gw_status take_file(const struct gw_tc_args *a, const char *v,
                                struct link_trace_conf *c, uint64_t *given, struct gw_error *err)
{
    FILE *f = a->host->open_data(a->host, a->data_dir, "traces", v, c->path, sizeof c->path, err);

    if (!f)
        return err->code;
    fclose(f);
    *given |= G_FILE;
    return GW_OK;
}

static enum gw_status link_trace_parse(const struct gw_tc_args *a, void *conf, uint64_t *given,
                                       struct gw_error *err)
{
    struct link_trace_conf *c = conf;

    for (uint32_t i = 0; i < a->count; i++) {
        const char *w = a->word[i], *v = a->word[i + 1];

        if (strcmp(w, "file") && strcmp(w, "format") && strcmp(w, "limit"))
            return gw_tc_what(err, "link_trace", w);
        if (++i == a->count)
            return gw_tc_incomplete(err, w);
        if (!strcmp(w, "file")) {
            if (take_file(a, v, c, given, err) != GW_OK)
                return err->code;
        } else if (!strcmp(w, "limit")) {
            if (!gw_tc_u32(v, &c->limit))
                return gw_tc_illegal(err, w, v, "a whole number of packets");
            *given |= G_LIMIT;
        } else {
            if (strcmp(v, "mahimahi") && strcmp(v, "series"))
                return gw_tc_illegal(err, w, v, "mahimahi or series");
            c->format = strcmp(v, "series") ? MAHIMAHI : SERIES;
            *given |= G_FORMAT;
        }
    }
    return GW_OK;
}

/* Bits per second over a pass. */
static double mean_rate(const struct link_trace *s)
{
    double bits = s->format == SERIES ? series_bits(s) : (double)s->count * 12000;

    return bits / ((double)s->pass_ps / (double)GW_PS_PER_S);
}

static void link_trace_show(const struct gw_qdisc *q, struct gw_tc_out *o)
{
    const struct link_trace *s = q->priv;

    o->str(o, "file", "file %s ", s->path);
    o->str(o, "format", "format %s ", s->format == SERIES ? "series" : "mahimahi");
    o->u64(o, "limit", "limit %llup ", s->limit);
    o->u64(o, "mean_rate_bps", "mean_rate %llubit ", (unsigned long long)(mean_rate(s) + 0.5));
}

static void link_trace_advise(const struct gw_qdisc *q,
                              void (*say)(void *ctx, const char *sentence), void *ctx)
{
    const struct link_trace *s = q->priv;
    char text[PATH_CHARS + 256];

    if (s->format == SERIES)
        snprintf(text, sizeof text, "%s: %zu rates over %.3f s, mean rate %.6g Mbit/s, then again "
                 "from the first", s->path, s->count - 1, (double)s->pass_ps / 1e12,
                 mean_rate(s) / 1e6);
    else
        snprintf(text, sizeof text, "%s: %zu lines of 1500 bytes in %.0f ms, mean rate %.6g "
                 "Mbit/s, then again from the first", s->path, s->count,
                 (double)s->pass_ps / 1e9, mean_rate(s) / 1e6);
    say(ctx, text);
    if (q->rate_bps)
        say(ctx, "the link has a rate of its own, so deliveries are missed while it sends; give it "
            "rate 0");
}

static void link_trace_outline(const struct gw_qdisc *q, uint32_t classid, uint32_t len_bytes,
                               struct gw_outline *o)
{
    (void)classid;
    (void)len_bytes;
    o->rate_bps = (uint64_t)(mean_rate(q->priv) + 0.5);
}

static const struct gw_stat link_trace_stats[] = {
    { "lines_used", offsetof(struct link_trace, lines_used), "Opportunities that carried bytes." },
    { "lines_lost", offsetof(struct link_trace, lines_lost),
      "Opportunities that passed with nothing to carry, up to the last packet." },
};

static const struct gw_qdisc_ops link_trace_ops = {
    .priv_bytes    = sizeof(struct link_trace),
    .conf_bytes    = sizeof(struct link_trace_conf),
    .init          = link_trace_init,
    .fini          = link_trace_fini,
    .enqueue       = link_trace_enqueue,
    .dequeue       = link_trace_dequeue,
    .next_ps       = link_trace_next_ps,
    .change        = link_trace_change,
    .reset         = link_trace_reset,
    .stats         = link_trace_stats,
    .stat_count    = GW_ARRAY_LEN(link_trace_stats),
    .tc_parse      = link_trace_parse,
    .tc_show       = link_trace_show,
    .advise        = link_trace_advise,
    .outline       = link_trace_outline,
    .not_in_kernel = true,
};

static const struct gw_param link_trace_params[] = {
    { "file", GW_P_WORDS, 0, NULL, NULL, NULL,
      "The recording, relative to the study; its name holds no blanks." },
    { "format", GW_P_WORDS, 0, "mahimahi", NULL, NULL,
      "mahimahi: a line for each 1500 bytes, its time in ms; series: time in s and rate in Mbit/s, "
      "or with names (time_s, rate_bps, rate_kbps, rate_mbps) in the first line." },
    { "limit", GW_P_WORDS, 0, "1000", NULL, NULL, "Packets that may wait." },
};

GW_PLUGIN(gw_qdisc_link_trace) = {
    GW_PLUGIN_HEAD(GW_KIND_QDISC, link_trace_ops),
    .name    = "link_trace",
    .summary = "Deliveries or rate from a recording: a Mahimahi file or a series of rates.",
    .params  = link_trace_params, .param_count = GW_ARRAY_LEN(link_trace_params),
    .source  = "mahimahi's mm-link (USENIX ATC 2015)",
};
