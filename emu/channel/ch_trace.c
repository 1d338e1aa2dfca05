/*
 * ch_trace - loss and extra delay from a recorded series
 *
 * The file is CSV. Its first line names the columns, in any order: one time (time_s, time_ms), and
 * loss (0..1, or with a % sign), loss_percent, or a delay (delay_s, delay_ms, delay_us), or both. A
 * row's values hold from its time until the next row's; before the first row its values hold.
 * With `repeat` (the default) the last row's time only ends the series, which then goes on with
 * the first row; else the last row holds for ever. Each packet draws its loss by the row in force
 * when its last bit is sent. A row that loses everything may leave its delay empty (or -): what
 * never arrives has no delay, and the delay before it is not touched.
 *
 * Packets keep their order: when the delay falls, a packet waits for those sent before it; with
 * `reorder: yes` it overtakes them. Left out: interpolation between rows.
 */
#include <gradwire/gradwire.h>
#include <gradwire/alg/chance.h>

#define LINE_CHARS 512
#define COLUMNS_MAX 16u

struct trace_conf {
    const struct gw_value *file;
    bool repeat, reorder;
};

struct row {
    uint64_t at_ps;
    uint64_t delay_ps;
    struct gw_chance chance;
    double   loss;
};

struct trace {
    struct row *row;
    size_t   count, room, now;   /* now: row found last                                        */
    uint64_t pass_ps;            /* 0: no repetition                                           */
    bool     reorder;
    uint64_t latest_ps;          /* latest arrival, without the link's own delay               */
};

/* ---- reading ------------------------------------------------------------------------------ */

enum what { TIME, LOSS, DELAY };

static const struct column {
    const char *name;
    enum what   what;
    double      scale;           /* to seconds or to 0..1                                      */
} columns[] = {
    { "time_s", TIME, 1 }, { "time_ms", TIME, 1e-3 }, { "loss", LOSS, 1 },
    { "loss_percent", LOSS, 1e-2 }, { "delay_s", DELAY, 1 }, { "delay_ms", DELAY, 1e-3 },
    { "delay_us", DELAY, 1e-6 },
};

struct reader {
    struct gw_channel *c;
    FILE    *f;
    char     path[512];
    uint32_t line;
    char     text[LINE_CHARS];
    const struct column *column[COLUMNS_MAX];
    uint32_t column_count;
    bool     has[3];
    struct gw_error *err;
};

static enum gw_status bad(struct reader *r, const char *what)
{
    return gw_fail(r->err, GW_SYNTAX, "%s:%u: %s", r->path, r->line, what);
}

/* GW_OK with text[0] == 0: the end. */
static enum gw_status read_line(struct reader *r)
{
    size_t n;

    r->text[0] = 0;
    if (!fgets(r->text, sizeof r->text, r->f))
        return GW_OK;
    r->line++;
    n = strcspn(r->text, "\r\n");
    if (!r->text[n] && !feof(r->f))
        return bad(r, "the line is too long");
    r->text[n] = 0;
    if (!r->text[strspn(r->text, " \t")])
        return bad(r, "the line is empty; every line holds a row");
    return GW_OK;
}

/* Cuts the next cell out of *at, without blanks around it; NULL: there is none. */
static char *next_cell(char **at)
{
    char *cell = *at, *end;

    if (!cell)
        return NULL;
    end = strchr(cell, ',');
    *at = end ? end + 1 : NULL;
    if (!end)
        end = cell + strlen(cell);
    cell += strspn(cell, " \t");
    while (end > cell && (end[-1] == ' ' || end[-1] == '\t'))
        end--;
    *end = 0;
    return cell;
}

static enum gw_status read_names(struct reader *r)
{
    char *at = r->text, *cell;

    while ((cell = next_cell(&at))) {
        const struct column *found = NULL;

        for (size_t i = 0; i < GW_ARRAY_LEN(columns); i++)
            if (!strcmp(cell, columns[i].name))
                found = &columns[i];
        if (!found || r->has[found->what] || r->column_count == COLUMNS_MAX)
            return gw_fail(r->err, GW_SYNTAX, "%s:%u: column \"%s\" is unknown or named twice; one "
                           "of time_s, time_ms and of loss, loss_percent, delay_s, delay_ms, "
                           "delay_us are right", r->path, r->line, cell);
        r->has[found->what] = true;
        r->column[r->column_count++] = found;
    }
    if (!r->has[TIME] || !(r->has[LOSS] || r->has[DELAY]))
        return bad(r, "the first line names the columns: a time, and a loss or a delay or both, "
                      "e.g. time_s,loss,delay_ms");
    return GW_OK;
}

/* One number of a row into @v[what]; an empty delay stays NAN. */
static enum gw_status read_cell(struct reader *r, const struct column *col, const char *cell,
                                double *v)
{
    char *end;
    double x = strtod(cell, &end);

    if (col->what == DELAY && (!*cell || !strcmp(cell, "-")))
        return GW_OK;
    if (end != cell && col->what == LOSS && !strcmp(col->name, "loss") && !strcmp(end, "%")) {
        x /= 100;
        end++;
    }
    x *= col->scale;
    if (end == cell || *end || !(x >= 0) || (col->what == LOSS ? x > 1 : x > 1e7))
        return gw_fail(r->err, GW_SYNTAX, "%s:%u: %s: \"%s\"; %s is right", r->path, r->line,
                       col->name, cell, col->what == LOSS ? "a share from 0 to 1 (or 0% to 100%)" :
                       "a number from 0");
    v[col->what] = x;
    return GW_OK;
}

static enum gw_status add_row(struct reader *r, const double v[3])
{
    struct trace *s = r->c->priv;
    struct row row = { .at_ps = (uint64_t)(v[TIME] * 1e12 + 0.5), .loss = v[LOSS] };

    if (s->count && row.at_ps <= s->row[s->count - 1].at_ps)
        return bad(r, "the time is not after that of the row before; times increase");
    if (!isnan(v[DELAY]))
        row.delay_ps = (uint64_t)(v[DELAY] * 1e12 + 0.5);
    else if (s->count)
        row.delay_ps = s->row[s->count - 1].delay_ps;
    row.chance = gw_chance_of(row.loss);
    if (s->count == s->room) {
        size_t room = s->room ? s->room * 2 : 256;
        struct row *more = r->c->host->resize(s->row, room * sizeof *more);

        if (!more)
            return gw_fail(r->err, GW_NOMEM, "out of memory for %s", r->path);
        s->row = more;
        s->room = room;
    }
    s->row[s->count++] = row;
    return GW_OK;
}

static enum gw_status read_row(struct reader *r)
{
    double v[3] = { 0, 0, NAN };
    char *at = r->text, *cell;
    uint32_t i = 0;

    while ((cell = next_cell(&at))) {
        if (i == r->column_count)
            return bad(r, "the row has more cells than the first line names");
        if (read_cell(r, r->column[i++], cell, v) != GW_OK)
            return GW_SYNTAX;
    }
    if (i < r->column_count)
        return bad(r, "the row has fewer cells than the first line names");
    if (r->has[DELAY] && isnan(v[DELAY]) && v[LOSS] < 1)
        return bad(r, "a delay is missing; only a row that loses everything has none");
    return add_row(r, v);
}

static enum gw_status read_all(struct reader *r)
{
    struct trace *s = r->c->priv;
    enum gw_status st = read_line(r);

    if (st == GW_OK)
        st = read_names(r);
    while (st == GW_OK && (st = read_line(r)) == GW_OK && r->text[0])
        st = read_row(r);
    if (st == GW_OK && !s->count)
        st = gw_fail(r->err, GW_SYNTAX, "%s: the file has no rows under its first line", r->path);
    return st;
}

/* A relative name is looked up beside the file in which the option stands. */
static FILE *open_file(struct reader *r, const struct gw_value *v)
{
    const char *slash = v->file ? strrchr(v->file, '/') : NULL;
    char dir[512] = ".", where[512];
    struct gw_error inner = { GW_OK, "" };
    FILE *f;

    if (slash)
        snprintf(dir, sizeof dir, "%.*s", (int)(slash - v->file) + 1, v->file);
    f = r->c->host->open_data(r->c->host, dir, "traces", v->text, r->path, sizeof r->path, &inner);
    if (!f)
        gw_fail(r->err, inner.code, "%s: %s", r->c->host->value_where(v, where, sizeof where),
                inner.text);
    return f;
}

static void trace_fini(struct gw_channel *c)
{
    struct trace *s = c->priv;

    if (s->row)
        c->host->release(s->row);
    s->row = NULL;
}

static enum gw_status trace_init(struct gw_channel *c, struct gw_error *err)
{
    const struct trace_conf *conf = c->conf;
    struct reader r = { .c = c, .err = err };
    struct trace *s = c->priv;
    char where[512];
    enum gw_status st;

    if (conf->file->kind != GW_V_SCALAR)
        return gw_fail(err, GW_PARAM, "%s: file: the name of a CSV file is right",
                       c->host->value_where(conf->file, where, sizeof where));
    r.f = open_file(&r, conf->file);
    if (!r.f)
        return GW_IO;
    st = read_all(&r);
    fclose(r.f);
    if (st != GW_OK) {
        trace_fini(c);
        return st;
    }
    s->reorder = conf->reorder;
    if (conf->repeat && s->count > 1)
        s->pass_ps = s->row[s->count - 1].at_ps - s->row[0].at_ps;
    return GW_OK;
}

/* ---- packets ------------------------------------------------------------------------------ */

/* Sends go forward in time, so the row is the one found last or a near one, but for a new pass. */
static const struct row *row_at(struct trace *s, uint64_t t)
{
    if (s->pass_ps && t >= s->row[0].at_ps)
        t = s->row[0].at_ps + (t - s->row[0].at_ps) % s->pass_ps;
    if (s->row[s->now].at_ps > t)
        s->now = 0;
    while (s->now + 1 < s->count && s->row[s->now + 1].at_ps <= t)
        s->now++;
    return &s->row[s->now];
}

static uint32_t trace_transit(struct gw_channel *c, struct gw_pkt *p, uint64_t sent_ps,
                              uint64_t *extra_ps)
{
    struct trace *s = c->priv;
    const struct row *row = row_at(s, sent_ps);
    uint64_t arrive = sent_ps + row->delay_ps;

    (void)p;
    if (gw_chance_hit(&row->chance, &c->rng))
        return GW_FATE_LOSS;
    if (!s->reorder && arrive < s->latest_ps)
        arrive = s->latest_ps;
    if (arrive > s->latest_ps)
        s->latest_ps = arrive;
    *extra_ps = arrive - sent_ps;
    return GW_FATE_PASS;
}

static double trace_mean_loss(const struct gw_channel *c, uint32_t len_bytes)
{
    const struct trace *s = c->priv;
    double sum = 0;

    (void)len_bytes;
    if (!s->pass_ps)
        return s->row[s->count - 1].loss;
    for (size_t i = 0; i + 1 < s->count; i++)
        sum += s->row[i].loss * (double)(s->row[i + 1].at_ps - s->row[i].at_ps);
    return sum / (double)s->pass_ps;
}

static double trace_mean_delay(const struct gw_channel *c, uint64_t gap_ps)
{
    const struct trace *s = c->priv;
    double sum = 0;

    (void)gap_ps;
    if (!s->pass_ps)
        return (double)s->row[s->count - 1].delay_ps * 1e-12;
    for (size_t i = 0; i + 1 < s->count; i++)
        sum += (double)s->row[i].delay_ps * (double)(s->row[i + 1].at_ps - s->row[i].at_ps);
    return sum / (double)s->pass_ps * 1e-12;
}

static void trace_advise(const struct gw_channel *c, const struct gw_channel_link *l,
                         void (*say)(void *ctx, const char *sentence), void *ctx)
{
    const struct trace *s = c->priv;
    double from = (double)s->row[0].at_ps * 1e-12;
    double to = (double)s->row[s->count - 1].at_ps * 1e-12;
    char text[320];

    if (s->pass_ps)
        snprintf(text, sizeof text, "%zu rows over %.6g s, then again from the first: mean loss "
                 "%.4g%%, mean delay %.4g ms", s->count - 1, to - from,
                 100 * trace_mean_loss(c, l->frame_bytes), 1e3 * trace_mean_delay(c, GW_NEVER));
    else
        snprintf(text, sizeof text, "%zu rows until %.6g s, from when on %.4g%% are lost and the "
                 "delay is %.4g ms", s->count, to, 100 * trace_mean_loss(c, l->frame_bytes),
                 1e3 * trace_mean_delay(c, GW_NEVER));
    say(ctx, text);
}

static const struct gw_channel_ops trace_ops = {
    .priv_bytes = sizeof(struct trace),
    .conf_bytes = sizeof(struct trace_conf),
    .init       = trace_init,
    .fini       = trace_fini,
    .transit    = trace_transit,
    .mean_loss  = trace_mean_loss,
    .mean_delay = trace_mean_delay,
    .advise     = trace_advise,
    .reorders   = true,          /* order is kept here, by the running maximum                 */
};

static const struct gw_param trace_params[] = {
    { "file", GW_P_VALUE, offsetof(struct trace_conf, file), NULL, NULL, NULL,
      "CSV file, relative to the study; columns time_s or time_ms, loss or loss_percent, delay_s, "
      "delay_ms or delay_us." },
    { "repeat", GW_P_BOOL, offsetof(struct trace_conf, repeat), "yes", NULL, NULL,
      "yes: after the last row's time the first row follows; no: the last row holds." },
    { "reorder", GW_P_BOOL, offsetof(struct trace_conf, reorder), "no", NULL, NULL,
      "yes: packets may overtake when the delay falls; no: they wait for those before." },
};

GW_PLUGIN(gw_channel_trace) = {
    GW_PLUGIN_HEAD(GW_KIND_CHANNEL, trace_ops),
    .name    = "trace",
    .summary = "Loss and extra delay over time from a CSV series.",
    .params  = trace_params, .param_count = GW_ARRAY_LEN(trace_params),
};
