/*
 * ch_outage - windows of time in which everything is lost
 *
 * A packet whose last bit is sent inside a window is lost; a window holds its begin and not its
 * end. Windows come from a list (`windows: [{at: 5s, for: 200ms}, ...]`, in any order, overlaps
 * allowed), or again and again: from `start` on, for the first `for` of every `every`. Both may be
 * given. No dice. mean_loss is the share of the repeated windows; a list that ends has none.
 */
#include <gradwire/gradwire.h>

struct outage_conf {
    const struct gw_value *windows;
    uint64_t every_ps, for_ps, start_ps;
};

struct window {
    uint64_t from_ps, to_ps;
};

struct outage {
    struct window *window;       /* ordered, apart                                             */
    size_t   count;
    uint64_t every_ps, for_ps, start_ps;
};

struct window_conf {
    uint64_t at_ps, for_ps;
};

static const struct gw_param window_rows[] = {
    { "at", GW_P_TIME, offsetof(struct window_conf, at_ps), NULL, "0", NULL, "Begin." },
    { "for", GW_P_TIME, offsetof(struct window_conf, for_ps), NULL, "1ps", NULL, "Length." },
};

static int by_begin(const void *a, const void *b)
{
    const struct window *x = a, *y = b;

    return x->from_ps < y->from_ps ? -1 : x->from_ps > y->from_ps;
}

/* Puts windows in order and joins those that touch. */
static void tidy(struct outage *s)
{
    size_t n = 0;

    qsort(s->window, s->count, sizeof *s->window, by_begin);
    for (size_t i = 0; i < s->count; i++) {
        if (n && s->window[i].from_ps <= s->window[n - 1].to_ps) {
            if (s->window[i].to_ps > s->window[n - 1].to_ps)
                s->window[n - 1].to_ps = s->window[i].to_ps;
        } else {
            s->window[n++] = s->window[i];
        }
    }
    s->count = n;
}

static enum gw_status read_windows(struct gw_channel *c, const struct gw_value *list,
                                   struct gw_error *err)
{
    struct outage *s = c->priv;
    char where[512];
    size_t n = 0;

    if (list->kind != GW_V_LIST)
        return gw_fail(err, GW_PARAM, "%s: windows: a list such as [{at: 5s, for: 200ms}] is "
                       "right", c->host->value_where(list, where, sizeof where));
    for (const struct gw_value *v = list->child; v; v = v->next)
        n++;
    s->window = c->host->alloc((n + 1) * sizeof *s->window);
    if (!s->window)
        return gw_fail(err, GW_NOMEM, "out of memory for outages");
    for (struct gw_value *v = list->child; v; v = v->next) {
        struct window_conf w = { 0, 0 };

        v->used = true;
        if (v->kind != GW_V_MAP)
            return gw_fail(err, GW_PARAM, "%s: a window is a map such as {at: 5s, for: 200ms}",
                           c->host->value_where(v, where, sizeof where));
        if (c->host->params_read(window_rows, GW_ARRAY_LEN(window_rows), &w, v, NULL,
                                 "outage window", NULL, err) != GW_OK)
            return GW_PARAM;
        s->window[s->count++] = (struct window){ w.at_ps, w.for_ps > GW_NEVER - w.at_ps ?
                                                 GW_NEVER : w.at_ps + w.for_ps };
    }
    tidy(s);
    return GW_OK;
}

static enum gw_status outage_set(struct outage *s, const struct outage_conf *c, bool list,
                                 struct gw_error *err)
{
    if (!c->every_ps != !c->for_ps)
        return gw_fail(err, GW_PARAM, "outage: every and for belong together, e.g. every: 10s, "
                       "for: 100ms");
    if (c->every_ps && c->for_ps >= c->every_ps)
        return gw_fail(err, GW_PARAM, "outage: for must be shorter than every, else nothing ever "
                       "arrives");
    if (!c->every_ps && !list)
        return gw_fail(err, GW_PARAM, "outage: give windows: [{at: 5s, for: 200ms}], or every and "
                       "for");
    s->every_ps = c->every_ps;
    s->for_ps = c->for_ps;
    s->start_ps = c->start_ps;
    return GW_OK;
}

static void outage_fini(struct gw_channel *c)
{
    struct outage *s = c->priv;

    if (s->window)
        c->host->release(s->window);
    s->window = NULL;
    s->count = 0;
}

static enum gw_status outage_init(struct gw_channel *c, struct gw_error *err)
{
    const struct outage_conf *conf = c->conf;

    enum gw_status st = outage_set(c->priv, conf, conf->windows != NULL, err);

    if (st == GW_OK && conf->windows)
        st = read_windows(c, conf->windows, err);
    if (st != GW_OK)
        outage_fini(c);
    return st;
}

static bool in_list(const struct outage *s, uint64_t t)
{
    size_t low = 0, high = s->count;

    while (low < high) {                             /* the first that ends after t            */
        size_t mid = (low + high) / 2;

        if (s->window[mid].to_ps > t)
            high = mid;
        else
            low = mid + 1;
    }
    return low < s->count && s->window[low].from_ps <= t;
}

static uint32_t outage_transit(struct gw_channel *c, struct gw_pkt *p, uint64_t sent_ps,
                               uint64_t *extra_ps)
{
    const struct outage *s = c->priv;

    (void)p;
    (void)extra_ps;
    if (s->every_ps && sent_ps >= s->start_ps &&
        (sent_ps - s->start_ps) % s->every_ps < s->for_ps)
        return GW_FATE_LOSS;
    return in_list(s, sent_ps) ? GW_FATE_LOSS : GW_FATE_PASS;
}

static double outage_mean_loss(const struct gw_channel *c, uint32_t len_bytes)
{
    const struct outage *s = c->priv;

    (void)len_bytes;
    return s->every_ps ? (double)s->for_ps / (double)s->every_ps : 0;
}

static void outage_advise(const struct gw_channel *c, const struct gw_channel_link *l,
                          void (*say)(void *ctx, const char *sentence), void *ctx)
{
    const struct outage *s = c->priv;
    double sum = 0;
    char text[256];

    (void)l;
    if (s->every_ps) {
        snprintf(text, sizeof text, "the repeated outages take %.4g%% of the time",
                 100 * (double)s->for_ps / (double)s->every_ps);
        say(ctx, text);
    }
    for (size_t i = 0; i < s->count; i++)
        sum += (double)(s->window[i].to_ps - s->window[i].from_ps) * 1e-12;
    if (!s->count)
        return;
    snprintf(text, sizeof text, "%zu outage%s, %.6g s in all, the last until %.6g s; they are in no "
             "long-run loss", s->count, s->count == 1 ? "" : "s", sum,
             (double)s->window[s->count - 1].to_ps * 1e-12);
    say(ctx, text);
}

static const struct gw_channel_ops outage_ops = {
    .priv_bytes = sizeof(struct outage),
    .conf_bytes = sizeof(struct outage_conf),
    .init       = outage_init,
    .fini       = outage_fini,
    .transit    = outage_transit,
    .mean_loss  = outage_mean_loss,
    .advise     = outage_advise,
};

static const struct gw_param outage_params[] = {
    { "windows", GW_P_VALUE, offsetof(struct outage_conf, windows), "", NULL, NULL,
      "Single outages: [{at: 5s, for: 200ms}, ...]." },
    { "every", GW_P_TIME, offsetof(struct outage_conf, every_ps), "0", "0", NULL,
      "Repeated outages: one in each of these times; 0: none." },
    { "for", GW_P_TIME, offsetof(struct outage_conf, for_ps), "0", "0", NULL,
      "Length of a repeated outage." },
    { "start", GW_P_TIME, offsetof(struct outage_conf, start_ps), "0", "0", NULL,
      "When the first repeated outage begins." },
};

GW_PLUGIN(gw_channel_outage) = {
    GW_PLUGIN_HEAD(GW_KIND_CHANNEL, outage_ops),
    .name    = "outage",
    .summary = "Windows of time in which everything is lost: listed or repeated.",
    .params  = outage_params, .param_count = GW_ARRAY_LEN(outage_params),
};
