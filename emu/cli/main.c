/*
 * main - the gradwire command: finds the verb, reads its options, hands over
 *
 * One file per verb beside this one; gw_verbs below is the only list of them. Plugins named by
 * --plugin are loaded before the verb runs, through the same door as the built-in ones.
 */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include "emu/cli/args.h"

#include <errno.h>
#include <stdlib.h>

#ifndef PACKAGE_VERSION
#define PACKAGE_VERSION "unversioned"
#endif

enum { WHAT_BYTES = 64, SUMMARY_INDENT = 34 };

struct common_conf {             /* options of every verb                                      */
    struct gw_arg_list plugin;
    bool help, reverse_plugins;
};

struct global_conf {             /* options in front of the verb                               */
    struct common_conf common;
    bool version;
};

#define COMMON_ROWS(base)                                                                      \
    { "plugin", 0, GW_ARG_LIST, (base) + offsetof(struct common_conf, plugin), "FILE.so",      \
      "Loads a plugin that was built against the installed headers; may be repeated." },       \
    { "help", 'h', GW_ARG_FLAG, (base) + offsetof(struct common_conf, help), NULL,             \
      "Prints this." },                                                                        \
    { "reverse-plugins", 0, GW_ARG_FLAG, (base) + offsetof(struct common_conf,                 \
      reverse_plugins), NULL,                                                                  \
      "Registers the built-in plugins in reverse order; no result may change by it." }

const struct gw_arg gw_common_rows[] = {
    COMMON_ROWS(0),
};
const size_t gw_common_row_count = GW_ARRAY_LEN(gw_common_rows);

static const struct gw_arg global_rows[] = {
    COMMON_ROWS(offsetof(struct global_conf, common)),
    { "version", 'V', GW_ARG_FLAG, offsetof(struct global_conf, version), NULL,
      "Prints the version." },
};

const struct gw_verb *const gw_verbs[] = {
    &gw_verb_check,  &gw_verb_run,  &gw_verb_explain, &gw_verb_analyze, &gw_verb_convert,
    &gw_verb_digest, &gw_verb_tc,   &gw_verb_list,    &gw_verb_help,    NULL,
};

const char *gw_version(void)
{
    return PACKAGE_VERSION;
}

const struct gw_verb *gw_verb_find(const char *name)
{
    for (const struct gw_verb *const *v = gw_verbs; *v; v++)
        if (!strcmp((*v)->name, name))
            return *v;
    return NULL;
}

const char *gw_verb_hint(const char *name, char *buf, size_t n)
{
    const char *names[GW_ARRAY_LEN(gw_verbs)] = {NULL};
    const char *near;
    size_t      used = 0;

    for (size_t i = 0; gw_verbs[i]; i++)
        names[i] = gw_verbs[i]->name;
    near = gw_did_you_mean(name, names);
    if (near) {
        snprintf(buf, n, "did you mean %s?", near);
        return buf;
    }
    snprintf(buf, n, "one of");
    for (size_t i = 0; names[i] && (used = strlen(buf)) < n; i++)
        snprintf(buf + used, n - used, "%s %s", i ? "," : "", names[i]);
    return buf;
}

void gw_usage(FILE *f)
{
    fputs("gradwire: what does this network do to my training job?\n\n"
          "usage: gradwire [--plugin FILE.so]... VERB ...\n\n", f);
    for (const struct gw_verb *const *v = gw_verbs; *v; v++) {
        fprintf(f, "  %-8s %-22s ", (*v)->name, (*v)->operands);
        gw_text_wrap(f, (*v)->summary, SUMMARY_INDENT);
    }
    fputc('\n', f);
    gw_args_help(global_rows, GW_ARRAY_LEN(global_rows), f);
    fputs("\n`gradwire help VERB` shows a verb's options, `gradwire help KIND NAME` a plugin's.\n"
          "Exit codes: 0 good; 1 a check failed; 2 usage or bad input; 3 unfinished flows or "
          "stall;\n4 privilege or kernel feature missing.\n", f);
}

void gw_verb_usage(const struct gw_verb *v, FILE *f)
{
    fprintf(f, "usage: gradwire %s %s%s[options]\n\n%s.\n\n", v->name, v->operands,
            *v->operands ? " " : "", v->summary);
    gw_args_help(v->rows, v->row_count, f);
    gw_args_help(gw_common_rows, gw_common_row_count, f);
    if (v->text) {
        fputc('\n', f);
        gw_text_wrap(f, v->text, 0);
    }
}

static int exit_code(enum gw_status code)
{
    switch (code) {
    case GW_OK:
        return GW_EXIT_GOOD;
    case GW_CHECK:
    case GW_BUG:                 /* an invariant is a check of our own */
        return GW_EXIT_CHECK;
    case GW_STALL:
    case GW_LATE:
        return GW_EXIT_STALL;
    case GW_PRIV:
        return GW_EXIT_PRIV;
    default:
        return GW_EXIT_USAGE;
    }
}

int gw_cli_fail(const struct gw_cli *cli, const struct gw_error *err)
{
    fprintf(cli->err, "%s\n", err->text);
    return exit_code(err->code);
}

/* Says what is wrong with the number of words behind the verb. */
static enum gw_status check_operands(const struct gw_verb *v, const struct gw_operands *ops,
                                     struct gw_error *err)
{
    if (ops->count < v->operand_min)
        return gw_fail(err, GW_PARAM, "gradwire %s: %s is missing; write gradwire %s %s", v->name,
                       ops->count ? "a word" : v->operands, v->name, v->operands);
    if (ops->count > v->operand_max)
        return gw_fail(err, GW_PARAM, "gradwire %s: %s is one word too many; write gradwire %s%s%s",
                       v->name, ops->word[v->operand_max], v->name, *v->operands ? " " : "",
                       v->operands);
    return GW_OK;
}

static enum gw_status load_plugins(struct gw_registry *r, const struct gw_arg_list *l,
                                   struct gw_error *err)
{
    enum gw_status st = GW_OK;

    for (size_t i = 0; st == GW_OK && i < l->count; i++)
        st = gw_registry_load(r, l->item[i], err);
    return st;
}

/* The verb with all that it needs: registry, plugins of both places, its options. */
static int run_verb(struct gw_cli *cli, const struct global_conf *g, const struct common_conf *c)
{
    struct gw_error err = {0};
    int             rc;

    cli->registry = gw_registry_new(g->common.reverse_plugins || c->reverse_plugins, &err);
    if (!cli->registry || load_plugins(cli->registry, &g->common.plugin, &err) != GW_OK ||
        load_plugins(cli->registry, &c->plugin, &err) != GW_OK)
        rc = gw_cli_fail(cli, &err);
    else
        rc = cli->verb->run(cli);
    if (cli->registry)
        gw_registry_free(cli->registry);
    return rc;
}

static bool takes_value(const struct gw_arg_set *sets, const char *name)
{
    for (const struct gw_arg_set *s = sets; s->rows; s++)
        for (size_t k = 0; k < s->count; k++)
            if (!strcmp(name, s->rows[k].name))
                return s->rows[k].type != GW_ARG_FLAG;
    return false;
}

/* Where the words begin that are all operands: the first without "--" that is no option's value. */
static int own_words(const struct gw_verb *v, const struct gw_arg_set *sets, int argc, char **argv)
{
    int i = 1;

    while (i < argc && (!v->words || (!strncmp(argv[i], "--", 2) && argv[i][2])))
        i += v->words && takes_value(sets, argv[i] + 2) ? 2 : 1;
    return i < argc ? i : argc;
}

static enum gw_status add_operands(struct gw_operands *ops, char **word, int count,
                                   struct gw_error *err)
{
    const char **grown = realloc(ops->word, (ops->count + (size_t)count + 1) * sizeof *grown);

    if (!grown)
        return gw_fail(err, GW_NOMEM, "out of memory");
    ops->word = grown;
    for (int i = 0; i < count; i++)
        grown[ops->count++] = word[i];
    grown[ops->count] = NULL;
    return GW_OK;
}

static int call_verb(const struct gw_verb *v, const struct global_conf *g, int argc, char **argv)
{
    struct common_conf common = {{NULL, 0}, false, false};
    struct gw_operands ops = {NULL, 0};
    struct gw_error    err = {0};
    struct gw_cli      cli = {.verb = v, .out = stdout, .err = stderr};
    void              *conf = calloc(1, v->conf_bytes + 1);
    struct gw_arg_set  sets[] = {{gw_common_rows, gw_common_row_count, &common},
                                 {v->rows, v->row_count, conf},
                                 {NULL, 0, NULL}};
    char what[WHAT_BYTES];
    int  rc = GW_EXIT_GOOD, words = own_words(v, sets, argc, argv);

    snprintf(what, sizeof what, "gradwire %s", v->name);
    cli.conf = conf;
    if (!conf)
        gw_fail(&err, GW_NOMEM, "out of memory");
    else if (gw_args_read(sets, what, words, argv, false, NULL, &ops, &err) == GW_OK &&
             add_operands(&ops, argv + words, argc - words, &err) == GW_OK && !common.help)
        check_operands(v, &ops, &err);
    cli.operand       = ops.word;
    cli.operand_count = ops.count;
    if (err.code != GW_OK)
        rc = gw_cli_fail(&cli, &err);
    else if (common.help)
        gw_verb_usage(v, stdout);
    else
        rc = run_verb(&cli, g, &common);
    gw_args_free(sets, &ops);
    free(conf);
    return rc;
}

/* argv[0] is the program; options in front of the verb, then the verb's own words. */
static int dispatch(int argc, char **argv, struct global_conf *g, const struct gw_arg_set *sets)
{
    struct gw_error      err = {0};
    struct gw_cli        cli = {.out = stdout, .err = stderr};
    const struct gw_verb *v;
    char hint[256];
    int  next = 1;

    if (gw_args_read(sets, "gradwire", argc, argv, true, &next, NULL, &err) != GW_OK)
        return gw_cli_fail(&cli, &err);
    if (g->version) {
        printf("gradwire %s\n", gw_version());
        return GW_EXIT_GOOD;
    }
    if (g->common.help || next >= argc) {
        gw_usage(g->common.help ? stdout : stderr);
        return g->common.help ? GW_EXIT_GOOD : GW_EXIT_USAGE;
    }
    v = gw_verb_find(argv[next]);
    if (!v) {
        gw_fail(&err, GW_PARAM, "gradwire: unknown verb %s; %s", argv[next],
                gw_verb_hint(argv[next], hint, sizeof hint));
        return gw_cli_fail(&cli, &err);
    }
    return call_verb(v, g, argc - next, argv + next);
}

int main(int argc, char **argv)
{
    struct global_conf g = {{{NULL, 0}, false, false}, false};
    struct gw_arg_set  sets[] = {{global_rows, GW_ARRAY_LEN(global_rows), &g}, {NULL, 0, NULL}};
    int rc = dispatch(argc, argv, &g, sets);

    gw_args_free(sets, NULL);
    if (fflush(stdout) != 0 || ferror(stdout)) {
        fprintf(stderr, "standard output: %s; what was printed is not whole\n", strerror(errno));
        return rc ? rc : GW_EXIT_USAGE;
    }
    return rc;
}
