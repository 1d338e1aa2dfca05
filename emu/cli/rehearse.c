/*
 * rehearse - the timed tc lines of a study, tried before the run on devices without packets
 *
 * A device that a line names is set up anew as the study sets it up: the map of its link, the
 * entries of `qdisc:`, the lines of `tc:`. Then the timed lines run in their order. What tc and the
 * kernel refuse never depends on the packets that wait, so a line that passes here passes in the
 * run. A refused line changes nothing, and the ones behind it are tried all the same.
 */
#include "emu/cli/rehearse.h"

#include "emu/tc/cmd.h"

#include <stdlib.h>

struct stage {
    const struct rehearse *r;
    struct gw_tree **tree;       /* per device; NULL: not named yet. Owner: here               */
    char   **said;               /* advice that was given, or holds from the start             */
    size_t   said_count;
    uint32_t only;               /* the device being set up, GW_NONE: the lines are the timed  */
    uint32_t dev;                /* that the line named last                                   */
    const struct rehearse_line *line;    /* NULL: what holds from the start                    */
    bool     nomem;
};

static struct gw_tree *stage_tree(struct stage *s, uint32_t dev);

static struct gw_tree *stage_device(void *ctx, const char *name, struct gw_error *err)
{
    struct stage *s = ctx;
    struct gw_tree *t;
    uint32_t dev;

    if (gw_graph_find_dev(s->r->net->graph, name, "", &dev, err) != GW_OK)
        return NULL;
    if (s->only != GW_NONE && dev != s->only) {
        gw_fail(err, GW_PARAM, "not this device");
        return NULL;
    }
    t = stage_tree(s, dev);
    s->dev = dev;
    return t;
}

static struct gw_tree *stage_device_at(void *ctx, size_t i)
{
    const struct stage *s = ctx;

    if (i >= s->r->net->ports)
        return NULL;
    return s->tree[i] ? s->tree[i] : s->r->net->port[i].tree;
}

/* One line; tc's exit code. @shows: it asks only. */
static int stage_line(struct stage *s, const char *line, uint64_t now_ps, bool *shows,
                      struct gw_error *err)
{
    struct gw_tc_ctx c = { .ctx = s, .device = stage_device, .device_at = stage_device_at,
                           .now_ps = now_ps };
    uint32_t count = 0;
    char **word = gw_tc_split(line, &count), **first = word;
    int rc;

    if (!word) {
        s->nomem = true;
        return 2;
    }
    if (count && !strcmp(word[0], "tc")) {
        first++;
        count--;
    }
    *shows = gw_tc_shows(first, count);
    s->dev = GW_NONE;
    rc = gw_tc_run(&c, first, count, err);
    free(word[0]);
    free(word);
    return rc;
}

/* ---- advice ------------------------------------------------------------------------------- */

static void hear(void *ctx, const char *sentence)
{
    struct stage *s = ctx;
    char text[1200], at[64], **more;

    for (size_t i = 0; i < s->said_count; i++)
        if (!strcmp(s->said[i], sentence))
            return;
    more = realloc(s->said, (s->said_count + 1) * sizeof *more);
    if (more) {
        s->said = more;
        more[s->said_count] = strdup(sentence);
    }
    if (!more || !more[s->said_count]) {
        s->nomem = true;
        return;
    }
    s->said_count++;
    if (!s->line)
        return;
    snprintf(text, sizeof text, "%s: from %s on: %s", s->line->where,
             gw_format_time(s->line->at_ps, at, sizeof at), sentence);
    s->r->warning(s->r->ctx, text);
}

/* ---- setting up --------------------------------------------------------------------------- */

static void stage_maps(struct stage *s, struct gw_tree *t, uint32_t dev)
{
    const struct gw_graph *g = s->r->net->graph;
    struct gw_value *map = (struct gw_value *)(uintptr_t)g->link[dev / 2].dir[dev & 1].qdisc;
    struct gw_value *v = s->r->qdisc && s->r->qdisc->kind == GW_V_LIST ? s->r->qdisc->child : NULL;
    struct gw_error quiet = { 0 };

    if (map)
        gw_tree_set_root(t, map, s->r->skip, &quiet);
    for (; v; v = v->next) {
        const struct gw_value *d = v->kind == GW_V_MAP ? gw_value_get(v, "dev") : NULL;

        memset(&quiet, 0, sizeof quiet);
        if (d && d->text && net_dev_names(s->r->net, d->text, dev))
            gw_tree_set_root(t, v, s->r->skip, &quiet);
    }
}

/* The device as the run finds it. What cannot be read has been told by those who read it first. */
static struct gw_tree *stage_tree(struct stage *s, uint32_t dev)
{
    struct gw_value *v = s->r->tc && s->r->tc->kind == GW_V_LIST ? s->r->tc->child : NULL;
    struct gw_tree_conf c = s->r->net->port[dev].tree->conf;
    const struct rehearse_line *line = s->line;
    uint32_t only = s->only;
    struct gw_error quiet = { 0 };
    bool shows;

    if (s->tree[dev])
        return s->tree[dev];
    c.net = NULL;
    c.drop = NULL;
    c.kick = NULL;
    c.fields = NULL;
    s->tree[dev] = gw_tree_new(&c, &quiet);
    if (!s->tree[dev]) {
        s->nomem = true;
        return NULL;
    }
    stage_maps(s, s->tree[dev], dev);
    s->only = dev;
    s->line = NULL;
    for (; v; v = v->next) {
        memset(&quiet, 0, sizeof quiet);
        if (v->kind == GW_V_SCALAR)
            stage_line(s, v->text, 0, &shows, &quiet);
    }
    gw_tree_advise(s->tree[dev], hear, s);
    s->only = only;
    s->line = line;
    return s->tree[dev];
}

/* ---- the lines ---------------------------------------------------------------------------- */

static void stage_event(struct stage *s, const struct rehearse_line *l)
{
    struct gw_error inner = { 0 };
    char text[1400], at[64];
    bool shows = false;
    int rc;

    s->line = l;
    rc = stage_line(s, l->tc, l->at_ps, &shows, &inner);
    if (rc) {
        snprintf(text, sizeof text, "%s: at %s: `%s`: %s (tc's exit code %d)", l->where,
                 gw_format_time(l->at_ps, at, sizeof at), l->tc,
                 inner.code ? inner.text : "refused", rc);
        s->r->problem(s->r->ctx, text);
    } else if (!shows && s->dev != GW_NONE) {
        gw_tree_advise_touched(s->tree[s->dev], hear, s);
    }
}

enum gw_status rehearse_events(const struct rehearse *r, struct gw_error *err)
{
    struct stage s = { .r = r, .only = GW_NONE, .dev = GW_NONE };

    s.tree = calloc(r->net->ports + 1, sizeof *s.tree);
    if (!s.tree)
        return gw_fail(err, GW_NOMEM, "out of memory for a rehearsal of events");
    for (size_t i = 0; i < r->count && !s.nomem; i++)
        stage_event(&s, &r->line[i]);
    for (uint32_t i = 0; i < r->net->ports; i++)
        gw_tree_free(s.tree[i]);
    for (size_t i = 0; i < s.said_count; i++)
        free(s.said[i]);
    free(s.said);
    free(s.tree);
    return s.nomem ? gw_fail(err, GW_NOMEM, "out of memory for a rehearsal of events") : GW_OK;
}
