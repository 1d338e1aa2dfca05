/*
 * verb_explain - what a study will do before it runs: steps, bytes, the bounding link, bounds
 *
 * The text comes from a dry run of the study's jobs (gw_study_explain); nothing is written.
 */
#include "emu/cli/args.h"
#include "emu/cli/study.h"

struct explain_conf {
    struct gw_arg_list set;
};

static const struct gw_arg explain_rows[] = {
    { "set", 0, GW_ARG_LIST, offsetof(struct explain_conf, set), "PATH=VALUE",
      "Sets a value of the study, e.g. topology.wan.delay=40ms; may be repeated." },
};

static int explain_run(struct gw_cli *cli)
{
    const struct explain_conf *c = cli->conf;
    struct gw_study_conf sc  = {.path = cli->operand[0], .set = c->set.item};
    struct gw_error      err = {0};
    struct gw_study     *s   = gw_study_open(cli->registry, &sc, &err);
    const char *text;
    int         rc = GW_EXIT_GOOD;

    if (!s)
        return gw_cli_fail(cli, &err);
    if ((text = gw_study_problem(s, 0))) {
        fprintf(cli->err, "%s\n", text);
        rc = GW_EXIT_USAGE;
    } else {
        for (size_t i = 0; (text = gw_study_warning(s, i)); i++)
            fprintf(cli->err, "warning: %s\n", text);
        if (gw_study_explain(s, cli->out, &err) != GW_OK)
            rc = gw_cli_fail(cli, &err);
    }
    gw_study_free(s);
    return rc;
}

const struct gw_verb gw_verb_explain = {
    .name = "explain", .operands = "STUDY", .operand_min = 1, .operand_max = 1,
    .summary = "Says steps, bytes, the bounding link, the alpha-beta bound, effective loss",
    .rows = explain_rows, .row_count = GW_ARRAY_LEN(explain_rows),
    .conf_bytes = sizeof(struct explain_conf), .run = explain_run,
};
