/*
 * verb_tc - tc(8)'s words on scratch devices and on the links of a study
 *
 * `--script` runs one command a line and answers one JSON object a line, so that a tc script can
 * be tried or checked without touching a machine. Without `--study` devices spring into being when
 * they are named: txqueuelen 1000, no rate, nothing hanging at them. With it the devices are the
 * ends of the study's links, after its own `tc:` lines; the file itself is never changed. What a
 * discipline does other than its words promise is said in notes, with the effective figure.
 */
#include "emu/cli/args.h"
#include "emu/cli/study.h"
#include "emu/tc/cmd.h"

#include <errno.h>
#include <jansson.h>
#include <stdlib.h>

struct tc_conf {
    const char *script, *study;
    struct gw_arg_list set;
};

static const struct gw_arg tc_rows[] = {
    { "script", 0, GW_ARG_TEXT, offsetof(struct tc_conf, script), "FILE",
      "Runs one command a line (- is standard input; # begins a comment) and prints one JSON "
      "object a line: cmd, rc, stdout, stderr, and notes if there are any." },
    { "study", 0, GW_ARG_TEXT, offsetof(struct tc_conf, study), "STUDY",
      "Works on the links of this study, a device being one end (wan:a); the file stays as it "
      "is." },
    { "set", 0, GW_ARG_LIST, offsetof(struct tc_conf, set), "PATH=VALUE",
      "Sets a value of the study, e.g. topology.wan.delay=40ms; may be repeated." },
};

/* ---- devices ------------------------------------------------------------------------------ */

struct bench {
    struct gw_registry *registry;
    struct gw_study *study;      /* NULL: scratch devices                                      */
    struct gw_tree **tree;       /* scratch devices in order of their first naming; owner: here*/
    size_t count;
    struct gw_tree *last;        /* the device that the command named                          */
    json_t *said;                /* advice that was given, as keys: each is given once         */
};

static struct gw_tree *scratch(struct bench *b, const char *name, struct gw_error *err)
{
    struct gw_tree **grown;

    for (size_t i = 0; i < b->count; i++)
        if (!strcmp(b->tree[i]->conf.dev, name))
            return b->tree[i];
    if (!*name || strlen(name) > 63 || strchr(name, '/')) {
        gw_fail(err, GW_PARAM, "a device's name has 1 to 63 bytes and no slash");
        return NULL;
    }
    grown = realloc(b->tree, (b->count + 1) * sizeof *grown);
    if (!grown) {
        gw_fail(err, GW_NOMEM, "out of memory for a device");
        return NULL;
    }
    b->tree = grown;
    grown[b->count] = gw_tc_scratch(b->registry, name, err);
    return grown[b->count] ? grown[b->count++] : NULL;
}

static struct gw_tree *device(void *ctx, const char *name, struct gw_error *err)
{
    struct bench *b = ctx;

    b->last = b->study ? gw_study_tree(b->study, name, err) : scratch(b, name, err);
    return b->last;
}

static struct gw_tree *device_at(void *ctx, size_t i)
{
    struct bench *b = ctx;

    if (b->study)
        return gw_study_tree_at(b->study, i);
    return i < b->count ? b->tree[i] : NULL;
}

static void bench_close(struct bench *b)
{
    for (size_t i = 0; i < b->count; i++)
        gw_tree_free(b->tree[i]);
    free(b->tree);
    json_decref(b->said);
    gw_study_free(b->study);
}

/* ---- commands ----------------------------------------------------------------------------- */

struct advice {
    struct bench *b;
    json_t *notes;
};

static void note(void *ctx, const char *sentence)
{
    struct advice *a = ctx;

    if (json_object_get(a->b->said, sentence))
        return;
    json_object_set_new(a->b->said, sentence, json_true());
    json_array_append_new(a->notes, json_string(sentence));
}

/* Runs the words; new advice goes to @notes if the command may have changed a discipline. */
static int command(struct bench *b, char *const *word, uint32_t count, FILE *out, json_t *notes,
                   struct gw_error *err)
{
    struct advice a = { b, notes };
    struct gw_tc_ctx c = { .ctx = b, .device = device, .device_at = device_at, .out = out };
    int rc;

    if (count && !strcmp(word[0], "tc")) {
        word++;
        count--;
    }
    b->last = NULL;
    rc = gw_tc_run(&c, word, count, err);
    if (!rc && b->last && ftell(out) <= 0)
        gw_tree_advise(b->last, note, &a);
    return rc;
}

/* A string of JSON; bytes that are no UTF-8 become question marks. */
static json_t *text_json(const char *s)
{
    json_t *v = json_string(s);
    char *plain = v ? NULL : strdup(s);

    if (!plain)
        return v;
    for (char *p = plain; *p; p++)
        if ((unsigned char)*p >= 0x80)
            *p = '?';
    v = json_string(plain);
    free(plain);
    return v;
}

static enum gw_status script_line(struct bench *b, const char *line, FILE *to, struct gw_error *err)
{
    struct gw_error own = { 0 };
    char *text = NULL, **word;
    size_t n = 0;
    uint32_t count;
    json_t *answer, *notes = json_array();
    FILE *out = open_memstream(&text, &n);
    int rc;

    word = gw_tc_split(line, &count);
    if (!out || !word || !notes) {
        json_decref(notes);
        if (out)
            fclose(out);
        free(text);
        return gw_fail(err, GW_NOMEM, "out of memory for a line of tc");
    }
    rc = command(b, word, count, out, notes, &own);
    fclose(out);
    answer = json_pack("{s:o, s:i, s:o, s:o}", "cmd", text_json(line), "rc", rc, "stdout",
                       text_json(text ? text : ""), "stderr", text_json(own.text));
    if (json_array_size(notes))
        json_object_set(answer, "notes", notes);
    json_dumpf(answer, to, JSON_COMPACT);
    fputc('\n', to);
    json_decref(answer);
    json_decref(notes);
    free(text);
    free(word[0]);
    free(word);
    return GW_OK;
}

static enum gw_status script(struct bench *b, const char *path, FILE *to, struct gw_error *err)
{
    FILE *f = strcmp(path, "-") ? fopen(path, "r") : stdin;
    char *line = NULL;
    size_t room = 0;
    ssize_t n;

    if (!f)
        return gw_fail(err, GW_IO, "%s: %s", path, strerror(errno));
    gw_skip_bom(f);
    while (err->code == GW_OK && (n = getline(&line, &room, f)) >= 0) {
        const char *start = line + strspn(line, " \t");

        while (n > 0 && (line[n - 1] == '\r' || line[n - 1] == '\n'))
            line[--n] = 0;
        if (strlen(line) != (size_t)n) {
            gw_fail(err, GW_SYNTAX, "%s: a line holds a zero byte; a script is text", path);
            break;
        }
        if (*start && *start != '#')
            script_line(b, start, to, err);
    }
    if (ferror(f))
        gw_fail(err, GW_IO, "%s: %s", path, strerror(errno));
    free(line);
    if (f != stdin)
        fclose(f);
    return err->code;
}

/* One command from the words behind the options; its exit code is tc's. */
static int one_command(struct bench *b, struct gw_cli *cli)
{
    struct gw_error err = { 0 };
    char *text = NULL;
    size_t n = 0;
    FILE *out = open_memstream(&text, &n);
    json_t *notes = json_array();
    int rc;

    if (!out || !notes) {
        gw_fail(&err, GW_NOMEM, "out of memory for tc's output");
        return gw_cli_fail(cli, &err);
    }
    rc = command(b, (char *const *)(uintptr_t)cli->operand, (uint32_t)cli->operand_count, out,
                 notes, &err);
    fclose(out);
    fputs(text ? text : "", cli->out);
    for (size_t i = 0; i < json_array_size(notes); i++)
        fprintf(cli->err, "note: %s\n", json_string_value(json_array_get(notes, i)));
    if (rc)
        fprintf(cli->err, "%s\n", err.text);
    json_decref(notes);
    free(text);
    return rc;
}

/* The study with its problems said; false: it cannot be worked on, *rc is the exit code. */
static bool open_study(struct bench *b, struct gw_cli *cli, int *rc)
{
    const struct tc_conf *c = cli->conf;
    struct gw_study_conf sc = { .path = c->study, .set = c->set.item };
    struct gw_error err = { 0 };
    const char *text;

    b->study = gw_study_open(cli->registry, &sc, &err);
    if (!b->study) {
        *rc = gw_cli_fail(cli, &err);
        return false;
    }
    text = gw_study_problem(b->study, 0);
    if (text) {
        fprintf(cli->err, "%s\n", text);
        *rc = GW_EXIT_USAGE;
    }
    return !text;
}

static int tc_run(struct gw_cli *cli)
{
    const struct tc_conf *c = cli->conf;
    struct bench b = { .registry = cli->registry };
    struct gw_error err = { 0 };
    int rc = GW_EXIT_GOOD;

    if (c->script && cli->operand_count)
        gw_fail(&err, GW_PARAM, "gradwire tc: %s stands behind --script; give one of them, a "
                "command or a script", cli->operand[0]);
    else if (!c->script && !c->study)
        gw_fail(&err, GW_PARAM, "gradwire tc: say on what: --study STUDY, for its links, or "
                "--script FILE, for scratch devices");
    else if (!c->study && c->set.count)
        gw_fail(&err, GW_PARAM, "gradwire tc: --set sets values of a study; give --study, too");
    if (err.code != GW_OK)
        return gw_cli_fail(cli, &err);
    b.said = json_object();
    if (!c->study || open_study(&b, cli, &rc)) {
        if (!c->script)
            rc = one_command(&b, cli);
        else if (script(&b, c->script, cli->out, &err) != GW_OK)
            rc = gw_cli_fail(cli, &err);
    }
    bench_close(&b);
    return rc;
}

const struct gw_verb gw_verb_tc = {
    .name = "tc", .operands = "[WORD...]", .operand_min = 0, .operand_max = SIZE_MAX, .words = true,
    .summary = "Speaks tc(8)'s words to the links of a study, or to scratch devices",
    .text = "gradwire tc --study wan.yaml -s -j qdisc show dev wan:a\n"
            "gradwire tc --script setup.tc\n"
            "The words are those of iproute2 6.1: qdisc, class and filter with add, change, "
            "replace, link, delete and show, the options -s -d -j -p -r -iec, and its "
            "abbreviations. Exit codes of one command are tc's: 1 refused by tc, 2 refused by the "
            "kernel, 255 incomplete line, unknown object or verb, bad handle. Other than tc 6.1: a "
            "negative rate is refused; -j class show prints JSON; chains, actions, estimators, "
            "shared blocks and a size table below the root are refused; a filter matches TOS, "
            "length, protocol, addresses, ports, the priority (fw, meta) and, in basic, the "
            "training tags: tag(layer eq 3), tag(class eq 5), tag(flow eq 0).",
    .rows = tc_rows, .row_count = GW_ARRAY_LEN(tc_rows), .conf_bytes = sizeof(struct tc_conf),
    .run = tc_run,
};
