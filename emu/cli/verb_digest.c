/*
 * verb_digest - a hash of a run's results alone
 *
 * SHA-256 over all tables but `host`, in key order: equal digests mean identical results, whatever
 * the machine, the clock or the time of day.
 */
#include "emu/cli/args.h"
#include "emu/core/record.h"

#include <sqlite3.h>

static int digest_run(struct gw_cli *cli)
{
    struct gw_error err = {0};
    bool            complete = false;
    struct sqlite3 *db = gw_record_open(cli->operand[0], &complete, &err);
    enum gw_status  st;
    char hex[65];

    if (!db)
        return gw_cli_fail(cli, &err);
    st = gw_record_digest(db, hex, &err);
    sqlite3_close(db);
    if (st != GW_OK)
        return gw_cli_fail(cli, &err);
    if (!complete)
        fprintf(cli->err, "incomplete: %s: the run was cut off; the digest covers what is there\n",
                cli->operand[0]);
    fprintf(cli->out, "%s\n", hex);
    return GW_EXIT_GOOD;
}

const struct gw_verb gw_verb_digest = {
    .name = "digest", .operands = "DIR", .operand_min = 1, .operand_max = 1,
    .summary = "Prints a hash of a run's results alone, to see whether two runs are identical",
    .run = digest_run,
};
