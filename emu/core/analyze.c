/*
 * analyze - runs every registered analysis over one record, in a fixed order
 */
#include "emu/core/analyze.h"

#include <stdlib.h>

/* Place of an analysis in the report; those that give none stand last. */
static uint32_t place_of(const struct gw_entry *e)
{
    uint32_t place = GW_ANALYSIS_PLACE_OF(e->plugin->flags);

    return place ? place : UINT32_MAX;
}

static int by_place(const void *a, const void *b)
{
    const struct gw_entry *x = *(const struct gw_entry *const *)a;
    const struct gw_entry *y = *(const struct gw_entry *const *)b;

    if (place_of(x) != place_of(y))
        return place_of(x) < place_of(y) ? -1 : 1;
    return strcmp(x->plugin->name, y->plugin->name);
}

static enum gw_status run_one(const struct gw_entry *e, struct gw_analysis *a,
                              struct gw_error *err)
{
    const struct gw_analysis_ops *ops = e->ops;
    void *conf = calloc(1, ops->conf_bytes ? ops->conf_bytes : 1);
    enum gw_status code;

    if (!conf)
        return gw_fail(err, GW_NOMEM, "analysis %s: out of memory", e->plugin->name);
    code = gw_params_read(e->plugin->params, e->plugin->param_count, conf, NULL, NULL,
                          e->plugin->name, NULL, err);
    a->conf = conf;
    if (code == GW_OK)
        code = ops->run(a, err);
    free(conf);
    return code;
}

enum gw_status gw_analyze(struct gw_registry *r, struct sqlite3 *db, bool complete,
                          struct gw_tables *out, struct gw_error *err)
{
    struct gw_host *host = gw_registry_host(r);
    struct gw_analysis a = { .host = host, .db = db, .complete = complete, .out = out };
    const struct gw_entry **list, *e;
    enum gw_status code = GW_OK;
    size_t n = 0, count = 0;

    gw_table_host(host);
    while (gw_registry_at(r, n))
        n++;
    list = calloc(n ? n : 1, sizeof *list);
    if (!list)
        return gw_fail(err, GW_NOMEM, "out of memory for the list of analyses");
    for (size_t i = 0; i < n; i++)
        if ((e = gw_registry_at(r, i))->plugin->kind == GW_KIND_ANALYSIS)
            list[count++] = e;
    qsort(list, count, sizeof *list, by_place);
    for (size_t i = 0; i < count && code == GW_OK; i++)
        code = run_one(list[i], &a, err);
    free(list);
    return code;
}
