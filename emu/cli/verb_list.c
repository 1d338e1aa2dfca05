/*
 * verb_list - the plugins that are there, built in and loaded
 */
#include "emu/cli/args.h"

#include <jansson.h>

struct list_conf {
    bool json;
};

static const struct gw_arg list_rows[] = {
    { "json", 0, GW_ARG_FLAG, offsetof(struct list_conf, json), NULL,
      "Prints an array of objects with kind, name, summary, source and origin; of a "
      "transport also whether it is reliable." },
};

enum gw_kind gw_kind_by_word(const char *word, const char *what, struct gw_error *err)
{
    const char *names[GW_KIND_COUNT + 1] = {NULL};
    const char *near;
    char        list[160] = "";

    for (uint32_t k = 0; k < GW_KIND_COUNT; k++) {
        names[k] = gw_kind_name((enum gw_kind)k);
        snprintf(list + strlen(list), sizeof list - strlen(list), "%s %s", k ? "," : "", names[k]);
        if (!strcmp(word, names[k]))
            return (enum gw_kind)k;
    }
    near = gw_did_you_mean(word, names);
    if (near)
        gw_fail(err, GW_PARAM, "%s: unknown kind %s; did you mean %s?", what, word, near);
    else
        gw_fail(err, GW_PARAM, "%s: unknown kind %s; one of%s", what, word, list);
    return GW_KIND_COUNT;
}

static json_t *entry_json(const struct gw_entry *e)
{
    const struct gw_plugin *p = e->plugin;

    json_t *o = json_pack("{s:s, s:s, s:s, s:s?, s:s}", "kind",
                          gw_kind_name((enum gw_kind)p->kind), "name", p->name, "summary",
                          p->summary, "source", p->source, "origin", e->origin);

    if (p->kind == GW_KIND_TRANSPORT) {      /* packets that may be lost, and all bytes arrive */
        const struct gw_transport_ops *t = e->ops;

        json_object_set_new(o, "reliable",
                            json_boolean(t->level == GW_TP_PACKET && !t->tx_message));
    }
    return o;
}

static void entry_text(const struct gw_entry *e, const char **kind, FILE *f)
{
    const struct gw_plugin *p    = e->plugin;
    const char             *name = gw_kind_name((enum gw_kind)p->kind);
    char text[600];

    if (!*kind || strcmp(*kind, name)) {
        fprintf(f, "%s%s\n", *kind ? "\n" : "", name);
        *kind = name;
    }
    fprintf(f, "  %-20s ", p->name);
    snprintf(text, sizeof text, "%s%s%s%s", p->summary,
             strcmp(e->origin, "built in") ? " [" : "",
             strcmp(e->origin, "built in") ? e->origin : "",
             strcmp(e->origin, "built in") ? "]" : "");
    gw_text_wrap(f, text, 23);
}

static int list_run(struct gw_cli *cli)
{
    const struct list_conf *c    = cli->conf;
    enum gw_kind            only = GW_KIND_COUNT;
    struct gw_error         err  = {0};
    const struct gw_entry  *e;
    const char *kind = NULL;
    json_t     *all  = c->json ? json_array() : NULL;

    if (cli->operand_count)
        only = gw_kind_by_word(cli->operand[0], "gradwire list", &err);
    if (err.code != GW_OK) {
        json_decref(all);
        return gw_cli_fail(cli, &err);
    }
    for (size_t i = 0; (e = gw_registry_at(cli->registry, i)); i++) {
        if (only != GW_KIND_COUNT && e->plugin->kind != (uint32_t)only)
            continue;
        if (all)
            json_array_append_new(all, entry_json(e));
        else
            entry_text(e, &kind, cli->out);
    }
    if (all) {
        json_dumpf(all, cli->out, JSON_INDENT(2));
        fputc('\n', cli->out);
        json_decref(all);
    }
    return GW_EXIT_GOOD;
}

const struct gw_verb gw_verb_list = {
    .name = "list", .operands = "[KIND]", .operand_min = 0, .operand_max = 1,
    .summary = "Lists the plugins: qdiscs, channels, transports, topologies, traffic and so on",
    .rows = list_rows, .row_count = GW_ARRAY_LEN(list_rows),
    .conf_bytes = sizeof(struct list_conf), .run = list_run,
};
