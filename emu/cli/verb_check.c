/*
 * verb_check - reads a study and everything that it names, says everything that is wrong or
 * suspicious, runs nothing
 *
 * Problems and warnings go to standard error, one sentence a line, as a compiler's would.
 */
#include "emu/cli/args.h"
#include "emu/cli/study.h"

#include <stdlib.h>

struct check_conf {
    struct gw_arg_list  set;
    struct gw_arg_count seed;
    bool quiet;
};

static const struct gw_arg check_rows[] = {
    { "set", 0, GW_ARG_LIST, offsetof(struct check_conf, set), "PATH=VALUE",
      "Sets a value of the study, e.g. topology.wan.delay=40ms; may be repeated." },
    { "seed", 0, GW_ARG_COUNT, offsetof(struct check_conf, seed), "N",
      "Takes this seed instead of the study's." },
    { "quiet", 'q', GW_ARG_FLAG, offsetof(struct check_conf, quiet), NULL,
      "Says problems only." },
};

static int check_run(struct gw_cli *cli)
{
    const struct check_conf *c = cli->conf;
    struct gw_study_conf     sc = {.path = cli->operand[0],
                                   .set = c->set.item,
                                   .seed = c->seed.n,
                                   .seed_given = c->seed.given};
    struct gw_error  err = {0};
    struct gw_study *s   = gw_study_open(cli->registry, &sc, &err);
    size_t problems = 0, warnings = 0;
    const char *text;

    if (!s)
        return gw_cli_fail(cli, &err);
    gw_study_doubts(s);
    for (; (text = gw_study_problem(s, problems)); problems++)
        fprintf(cli->err, "%s\n", text);
    for (; (text = gw_study_warning(s, warnings)); warnings++)
        if (!c->quiet)
            fprintf(cli->err, "warning: %s\n", text);
    if (!problems && !c->quiet)
        fprintf(cli->out, "ok: %s: study \"%s\", %zu warning%s\n", sc.path, gw_study_name(s),
                warnings, warnings == 1 ? "" : "s");
    gw_study_free(s);
    return problems ? GW_EXIT_USAGE : GW_EXIT_GOOD;
}

const struct gw_verb gw_verb_check = {
    .name = "check", .operands = "STUDY", .operand_min = 1, .operand_max = 1,
    .summary = "Reads a study, says everything that is wrong or suspicious, runs nothing",
    .rows = check_rows, .row_count = GW_ARRAY_LEN(check_rows),
    .conf_bytes = sizeof(struct check_conf), .run = check_run,
};
