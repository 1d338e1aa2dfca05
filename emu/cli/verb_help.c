/*
 * verb_help - options of a verb, a kind's plugins, a plugin's option rows, a part of the study file
 *
 * `gradwire help qdisc codel` and `gradwire help job` print the rows that the parser and the range
 * check read.
 */
#include "emu/cli/args.h"
#include "emu/cli/study.h"

#include <gradwire/qdisc.h>
#include <gradwire/topology.h>

static const char *type_name(enum gw_param_type t)
{
    static const char *const name[GW_P_TYPE_COUNT] = {
        [GW_P_BOOL] = "yes or no",          [GW_P_U32] = "count",
        [GW_P_U64] = "count",               [GW_P_F64] = "number",
        [GW_P_TIME] = "time with unit",     [GW_P_RATE] = "rate with unit",
        [GW_P_BYTES] = "bytes",             [GW_P_FRACTION] = "percentage",
        [GW_P_STRING] = "text",             [GW_P_CHOICE] = "choice",
        [GW_P_VALUE] = "see text",          [GW_P_WORDS] = "words of tc",
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

static void rows_help(const struct gw_param *rows, size_t count, FILE *f)
{
    char facts[512];

    for (size_t i = 0; i < count; i++) {
        fprintf(f, "  %s: ", rows[i].name);
        gw_text_wrap(f, row_facts(&rows[i], facts, sizeof facts), 6);
        fputs("      ", f);
        gw_text_wrap(f, rows[i].help ? rows[i].help : "", 6);
    }
}

/* The words behind a class's `classid X:Y KIND`. */
static void class_help(const struct gw_plugin *p, FILE *f)
{
    const struct gw_qdisc_ops *ops = p->ops;

    if (p->kind != GW_KIND_QDISC || !ops->class_param_count)
        return;
    fputs("\noptions of a class:\n", f);
    rows_help(ops->class_params, ops->class_param_count, f);
}

static void plugin_help(const struct gw_entry *e, FILE *f)
{
    const struct gw_plugin *p = e->plugin;

    fprintf(f, "%s %s (%s)\n\n", gw_kind_name((enum gw_kind)p->kind), p->name, e->origin);
    gw_text_wrap(f, p->summary, 0);
    if (p->source) {
        fputs("After: ", f);
        gw_text_wrap(f, p->source, 7);
    }
    fputs(p->param_count ? "\noptions:\n" : "\nIt has no options.\n", f);
    rows_help(p->params, p->param_count, f);
    class_help(p, f);
}

/* ---- parts of the study file -------------------------------------------------------------- */

struct link_entry {                  /* what stands behind a link's name under `links:`         */
    struct gw_link_conf link;
};

static const struct gw_param link_rows[] = {
    GW_LINK_PARAMS("", link_entry, link, "", ""),
};

static const struct part {
    const char *name, *text;
} parts[] = {
    { "study",
      "The keys of a study file (YAML). Lists and maps have their own page: `gradwire help job`, "
      "links, route, buffer, pfc, capture, log, event, records, expect; topology, transport and qdisc have one a "
      "kind, as in `gradwire help topology two-site`." },
    { "job",
      "The keys of an entry of `jobs:`, for every traffic; `gradwire help traffic NAME` shows "
      "those of one." },
    { "links",
      "`links:` is a map of link names to what is special about them, as in\n"
      "links: {wan: {rate: 10gbit, delay: 20ms, loss: 0.01%}}\n"
      "The name of a link means both directions, that of one end (wan:a) what leaves there. What "
      "is left out stays as the topology says. The links table of a run shows the names. `mtu`, "
      "`framing` and `weight` of a whole link may stand here, too; the keys below are also those "
      "of `link:`, `nic:`, `wan:` in a topology.\n"
      "A switch port without a qdisc is a FIFO of bytes (bfifo) that holds the largest of 150 "
      "kB, rate x 80 us and 2 x rate x the link's delay; a host's port pushes back on its "
      "transports instead, and drops nothing." },
    { "route",
      "`route:` is one word, the mode, or a map of these." },
    { "event",
      "`events:` is a list of timed changes by tc(8) lines, as in\n"
      "events: [{at: 5s, tc: \"qdisc change dev wan:a root netem loss 1%\"}]\n"
      "`check` tries all of them in order of time, says what tc and the kernel would refuse, and "
      "what a line brings other than its words promise. At one instant the order of the list "
      "decides. `show` lines are welcome: each line and what it printed stand in tc-events.jsonl "
      "of the run, an object a line: at_s, cmd, rc, stdout, stderr. A port that loses its root gets "
      "its own queue back; packets that a line throws out count as `purged`." },
    { "events",
      "The list of timed changes is described under `gradwire help event`; its keys:" },
    { "frames",
      "Numbered frames at fixed times, for looking at one link. `gradwire help traffic frames` has "
      "all options:\n"
      "jobs: [{name: p, traffic: frames, from: a, to: b, size: 1000, interval: 4ms, count: 100}]\n"
      "Several streams at once: generators: [{flow: 0, size: 1000, interval: 4ms, count: 100, ecn: "
      "1, priority: 0, dscp: 0, burst: 1}, ...]. `size` is the Ethernet frame without FCS. "
      "`topology: {kind: pair, rate: 0}` has a device v:a without a rate of its own, so that a "
      "queue discipline stands alone; log it, and compare when each frame left: `gradwire help "
      "packets`." },
    { "packets",
      "`log: [{dev: \"v:a\", kind: packets}]` writes DIR/packets-v-a.csv, a row for each packet "
      "that came to the device, but pause frames: job, flow, seq, size_bytes; sent_ps: it came to "
      "the device, in picoseconds of simulated time; received_ps: it was at the other end, empty if "
      "it never was; ce: with a congestion mark; flips: its flipped bits; lost: why it never came, "
      "as in the table link_drop of the records, empty if it came or is still on its way; what: "
      "frame, data, ack, open, close or other. A copy has a row of its own, also one that is lost. "
      "Of a test frame (`gradwire help frames`) flow and seq are the study's; of a transport's "
      "packet flow is the conn of the records, seq the packet's number, with tcp the first byte of "
      "the stream that it carries or, of an ACK, wants. Real headers are in a capture: `gradwire "
      "help capture`." },
    { "buffer",
      "`buffer:` gives switches a packet memory that their ports share with dynamic thresholds." },
    { "pfc",
      "`pfc:` makes one priority lossless by pause frames (802.1Qbb), as in\n"
      "pfc: {priority: 3}\n"
      "A switch pauses the link whose packets fill it. On ports that can be paused the discipline "
      "is that of the lossless priority; the other priorities share a tail-drop FIFO and take "
      "turns with it. The records keep pauses, the most that was held, paused time, storms." },
    { "capture",
      "The keys of an entry of `capture:`; one file a device, DIR/LINK-END.pcap.\n"
      "Node 0 of the study has the address 10.0.0.1, node i the one i above it, in captures and in "
      "filters (u32, flower) alike; the records' table `node` has the numbers, and a capture filter "
      "takes names, too: host h3." },
    { "log",
      "The keys of an entry of `log:`, a CSV of every packet at a device." },
    { "records",
      "The keys of `records:`, what is kept of the run." },
    { "expect",
      "`expect:` is a list of conditions that are looked up in the record when the run is over; "
      "if one does not hold, the exit code is 1. A condition compares two sums or quotients of "
      "names and numbers (==, !=, <, <=, >, >=), or says in which range one lies (in "
      "LOW..HIGH):\n"
      "\"iterations.count == 20\"\n"
      "\"iterations.mean_s in 10..18\"\n"
      "\"links.wan:a.drops.loss / links.wan:a.sent_pkts < 0.0002\"\n"
      "Names: iterations.X: count, mean_s, min_s, p50_s, p95_s, p99_s, max_s, of the jobs that "
      "run collectives (if none does, of all jobs); jobs.JOB.X: the same of one job, also ranks, "
      "flows, bytes, delivered_bytes, fct_mean_s, fct_max_s; flows.X: count, finished, bytes, "
      "delivered_bytes, retrans_pkts, timeouts, fct_mean_s, fct_p50_s, fct_p95_s, fct_p99_s, "
      "fct_max_s; flows.JOB.HOST.X: fct_s, ideal_s, bytes of the first flow from that host; "
      "packets.X: hops, delivered, dropped, marked; drops.X: queue, loss, other; links.DEV.X: "
      "sent_bytes, wire_bytes, sent_pkts, utilisation, mean_wait_s, max_wait_s, queue_max_bytes, "
      "marked, drops, drops.REASON; sim_s." },
};

/* Paragraphs end with a newline. */
static void paragraphs(const char *text, FILE *f)
{
    char line[1600];

    while (*text) {
        size_t n = strcspn(text, "\n");

        snprintf(line, sizeof line, "%.*s", (int)n, text);
        gw_text_wrap(f, line, 0);
        text += n + (text[n] == '\n');
    }
}

static const struct part *find_part(const char *word)
{
    for (size_t i = 0; i < GW_ARRAY_LEN(parts); i++)
        if (!strcmp(parts[i].name, word))
            return &parts[i];
    return NULL;
}

/* The section of the study whose keys stand under the page @name. */
static const char *rows_of(const char *name)
{
    return !strcmp(name, "events") ? "event" : !strcmp(name, "packets") ? "log" : name;
}

static void part_help(const struct part *p, FILE *f)
{
    size_t count = 0;
    const struct gw_param *rows = strcmp(p->name, "links")
                                  ? gw_study_rows(rows_of(p->name), &count) : link_rows;

    if (rows == link_rows)
        count = GW_ARRAY_LEN(link_rows);
    paragraphs(p->text, f);
    if (rows && count)
        fputs("\nkeys:\n", f);
    rows_help(rows, count, f);
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

/* One word: a verb, a kind, a part of the study file, or the name of a plugin. */
static int help_word(struct gw_cli *cli, const char *word)
{
    const struct gw_verb *v   = gw_verb_find(word);
    const struct part    *p   = find_part(word);
    const struct gw_entry *e;
    struct gw_error       err = {0};
    char hint[256];
    int found = 0;

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
    if (p) {
        part_help(p, cli->out);
        return GW_EXIT_GOOD;
    }
    for (size_t i = 0; (e = gw_registry_at(cli->registry, i)); i++)
        if (!strcmp(word, e->plugin->name)) {
            fputs(found++ ? "\n" : "", cli->out);
            plugin_help(e, cli->out);
        }
    if (found)
        return GW_EXIT_GOOD;
    gw_fail(&err, GW_PARAM, "gradwire help: %s is no verb, kind or part of a study; %s", word,
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
        fputs("\nParts of a study file, `gradwire help PART`:\n ", cli->out);
        for (size_t i = 0; i < GW_ARRAY_LEN(parts); i++)
            fprintf(cli->out, " %s", parts[i].name);
        fputs("\n\nKinds of plugins, `gradwire help KIND [NAME]`:\n ", cli->out);
        for (uint32_t k = 0; k < GW_KIND_COUNT; k++)
            fprintf(cli->out, " %s", gw_kind_name((enum gw_kind)k));
        fputc('\n', cli->out);
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
    .name = "help", .operands = "[VERB | KIND [NAME] | NAME | PART]", .operand_min = 0, .operand_max = 2,
    .summary = "Shows the options of a verb, of a plugin, or of a part of the study file",
    .run = help_run,
};
