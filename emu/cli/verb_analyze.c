/*
 * verb_analyze - iteration times, completion times, critical flows and correlation of a finished,
 * or cut-off, run
 *
 * Sees the record only, so it works on every run that left one.
 */
#include "emu/cli/args.h"
#include "emu/cli/report.h"

struct analyze_conf {
    const char *csv;
    bool        json, force;
};

static const struct gw_arg analyze_rows[] = {
    { "json", 0, GW_ARG_FLAG, offsetof(struct analyze_conf, json), NULL,
      "Prints one JSON object instead of text." },
    { "csv", 0, GW_ARG_TEXT, offsetof(struct analyze_conf, csv), "DIR",
      "Writes each table into this directory as a CSV file with a header row." },
    { "force", 'f', GW_ARG_FLAG, offsetof(struct analyze_conf, force), NULL,
      "Lets --csv write over files of the same name." },
};

static enum gw_status print_json(const struct gw_report *r, FILE *f, struct gw_error *err)
{
    return gw_tables_json(r->tables, f) == GW_OK
               ? GW_OK
               : gw_fail(err, GW_IO, "standard output: cannot be written; what was printed is not "
                         "whole");
}

static int analyze_run(struct gw_cli *cli)
{
    const struct analyze_conf *c   = cli->conf;
    struct gw_error            err = {0};
    struct gw_report           r;

    if (gw_report_read(&r, cli->registry, cli->operand[0], &err) != GW_OK)
        return gw_cli_fail(cli, &err);
    if (!r.complete)
        fprintf(cli->err, "incomplete: %s: the run was cut off; this is what it left\n",
                cli->operand[0]);
    if (c->csv)
        gw_tables_csv(r.tables, c->csv, c->force, &err);
    if (err.code == GW_OK && c->json)
        print_json(&r, cli->out, &err);
    else if (err.code == GW_OK && !c->csv)
        gw_report_text(&r, cli->out, &err);
    gw_report_free(&r);
    return err.code == GW_OK ? GW_EXIT_GOOD : gw_cli_fail(cli, &err);
}

const struct gw_verb gw_verb_analyze = {
    .name = "analyze", .operands = "DIR", .operand_min = 1, .operand_max = 1,
    .summary = "Iteration times, completion times, critical flows and correlation of a run",
    .rows = analyze_rows, .row_count = GW_ARRAY_LEN(analyze_rows),
    .conf_bytes = sizeof(struct analyze_conf), .run = analyze_run,
};
