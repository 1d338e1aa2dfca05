/*
 * verb_help - a verb's options, a kind's plugins, or a plugin's option rows
 *
 * `gradwire help qdisc codel` prints the rows that the parser and the range check read.
 */
#include "emu/cli/args.h"

static const char *type_name(enum gw_param_type t)
{
    static const char *const name[GW_P_TYPE_COUNT] = {
        [GW_P_BOOL] = "yes or no",          [GW_P_U32] = "count",
        [GW_P_U64] = "count",               [GW_P_F64] = "number",
        [GW_P_TIME] = "time with unit",     [GW_P_RATE] = "rate with unit",
        [GW_P_BYTES] = "bytes",             [GW_P_FRACTION] = "percentage",
        [GW_P_STRING] = "text",             [GW_P_CHOICE] = "choice",
        [GW_P_VALUE] = "see text",
    };

    return (unsigned)t < GW_P_TYPE_COUNT ? name[t] : "?";
}

/* "time with unit, default 5ms, 0 to 1h" */
static const char *row_facts(const struct gw_param *row, char *buf, size_t n)
{
    size_t used = (size_t)snprintf(buf, n, "%s", type_name(row->type));

    if (row->type == GW_P_CHOICE && used < n)
        used += (size_t)snprintf(buf + used, n - used, " %s", row->min);
    if (used < n && !row->def)
        used += (size_t)snprintf(buf + used, n - used, ", must be given");
    else if (used < n && *row->def)
        used += (size_t)snprintf(buf + used, n - used, ", default %s", row->def);
    else if (used < n)
        used += (size_t)snprintf(buf + used, n - used, ", may be left out");
    if (row->type == GW_P_CHOICE || used >= n)
        return buf;
    if (row->max && !strcmp(row->max, "auto"))
        snprintf(buf + used, n - used, ", %s or more, or auto", row->min ? row->min : "0");
    else if (row->min && row->max)
        snprintf(buf + used, n - used, ", %s to %s", row->min, row->max);
    else if (row->min)
        snprintf(buf + used, n - used, ", %s or more", row->min);
    else if (row->max)
        snprintf(buf + used, n - used, ", at most %s", row->max);
    return buf;
}

static void plugin_help(const struct gw_entry *e, FILE *f)
{
    const struct gw_plugin *p = e->plugin;
    char facts[512];

    fprintf(f, "%s %s (%s)\n\n", gw_kind_name((enum gw_kind)p->kind), p->name, e->origin);
    gw_text_wrap(f, p->summary, 0);
    if (p->source) {
        fputs("After: ", f);
        gw_text_wrap(f, p->source, 7);
    }
    fputs(p->param_count ? "\noptions:\n" : "\nIt has no options.\n", f);
    for (uint32_t i = 0; i < p->param_count; i++) {
        fprintf(f, "  %s: ", p->params[i].name);
        gw_text_wrap(f, row_facts(&p->params[i], facts, sizeof facts), 6);
        fprintf(f, "      ");
        gw_text_wrap(f, p->params[i].help ? p->params[i].help : "", 6);
    }
}

static void kind_help(const struct gw_registry *r, enum gw_kind kind, FILE *f)
{
    const struct gw_entry *e;

    fprintf(f, "%s: `gradwire help %s NAME` shows the options of\n", gw_kind_name(kind),
            gw_kind_name(kind));
    for (size_t i = 0; (e = gw_registry_at(r, i)); i++) {
        if (e->plugin->kind != (uint32_t)kind)
            continue;
        fprintf(f, "  %-20s ", e->plugin->name);
        gw_text_wrap(f, e->plugin->summary, 23);
    }
}

/* One word: a verb or a kind. */
static int help_word(struct gw_cli *cli, const char *word)
{
    const struct gw_verb *v   = gw_verb_find(word);
    struct gw_error       err = {0};
    char hint[256];

    if (v) {
        gw_verb_usage(v, cli->out);
        return GW_EXIT_GOOD;
    }
    for (uint32_t k = 0; k < GW_KIND_COUNT; k++) {
        if (!strcmp(word, gw_kind_name((enum gw_kind)k))) {
            kind_help(cli->registry, (enum gw_kind)k, cli->out);
            return GW_EXIT_GOOD;
        }
    }
    gw_fail(&err, GW_PARAM, "gradwire help: %s is no verb and no kind; %s", word,
            gw_verb_hint(word, hint, sizeof hint));
    return gw_cli_fail(cli, &err);
}

static int help_run(struct gw_cli *cli)
{
    struct gw_error        err = {0};
    const struct gw_entry *e;
    enum gw_kind           kind;

    if (cli->operand_count == 0) {
        gw_usage(cli->out);
        return GW_EXIT_GOOD;
    }
    if (cli->operand_count == 1)
        return help_word(cli, cli->operand[0]);
    kind = gw_kind_by_word(cli->operand[0], "gradwire help", &err);
    if (kind == GW_KIND_COUNT)
        return gw_cli_fail(cli, &err);
    e = gw_registry_find(cli->registry, kind, cli->operand[1], "gradwire help", &err);
    if (!e)
        return gw_cli_fail(cli, &err);
    plugin_help(e, cli->out);
    return GW_EXIT_GOOD;
}

const struct gw_verb gw_verb_help = {
    .name = "help", .operands = "[VERB | KIND [NAME]]", .operand_min = 0, .operand_max = 2,
    .summary = "Shows a verb's options, or a plugin's options with unit, default and range",
    .run = help_run,
};
