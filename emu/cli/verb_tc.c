/*
 * verb_tc - tc(8)'s words on scratch devices and on the links of a study
 *
 * `--script` runs one command a line and answers one JSON object a line, so that a tc script can
 * be tried or checked without touching a machine. Without `--study` devices spring into being when
 * they are named: txqueuelen 1000, no rate, nothing hanging at them. With it the devices are the
 * ends of the study's links, after its own `tc:` lines; the file itself is never changed. With
 * `--run` they are those of a finished run, as it left them; its record holds what tc prints of
 * them. What a discipline does other than its words promise is said in notes, with the effective
 * figure.
 */
#include "emu/cli/args.h"
#include "emu/cli/study.h"
#include "emu/core/record.h"
#include "emu/tc/cmd.h"
#include "emu/tc/keep.h"

#include <errno.h>
#include <jansson.h>
#include <sqlite3.h>
#include <stdlib.h>

struct tc_conf {
    const char *script, *study, *run;
    struct gw_arg_list set;
};

static const struct gw_arg tc_rows[] = {
    { "script", 0, GW_ARG_TEXT, offsetof(struct tc_conf, script), "FILE",
      "Runs one command a line (- is standard input; # begins a comment, a backslash at the end joins "
      "the next line) and prints one JSON object a line: cmd, rc, stdout, stderr, and notes if there "
      "are any." },
    { "study", 0, GW_ARG_TEXT, offsetof(struct tc_conf, study), "STUDY",
      "Works on the links of this study, a device being one end (wan:a); the file stays as it "
      "is." },
    { "run", 0, GW_ARG_TEXT, offsetof(struct tc_conf, run), "DIR",
      "Shows the disciplines of a finished run as it left them, counters included; nothing can be "
      "changed." },
    { "set", 0, GW_ARG_LIST, offsetof(struct tc_conf, set), "PATH=VALUE",
      "Sets a value of the study, e.g. topology.wan.delay=40ms; may be repeated." },
};

/* ---- devices ------------------------------------------------------------------------------ */

struct bench {
    struct gw_registry *registry;
    struct gw_study *study;      /* NULL: scratch devices                                      */
    struct gw_tree **tree;       /* scratch devices in order of their first naming; owner: here*/
    size_t count;
    bool finished;               /* `tree` is of a run that is over                            */
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

/* ---- a finished run ------------------------------------------------------------------------ */

static struct gw_tree *kept_device(struct bench *b, const char *name, struct gw_error *err)
{
    for (size_t i = 0; i < b->count; i++)
        if (!strcmp(b->tree[i]->conf.dev, name))
            return b->tree[i];
    gw_fail(err, GW_PARAM, "the run has %zu devices%s%s", b->count, b->count ? ", the first is " : "",
            b->count ? b->tree[0]->conf.dev : "");
    return NULL;
}

static enum gw_status add_device(struct bench *b, const char *name, struct gw_error *err)
{
    struct gw_tree **grown = realloc(b->tree, (b->count + 1) * sizeof *grown);

    if (!grown)
        return gw_fail(err, GW_NOMEM, "out of memory for a device");
    b->tree = grown;
    grown[b->count] = gw_tc_scratch(b->registry, name, err);
    if (grown[b->count])
        b->count++;
    return err->code;
}

static const char *column(sqlite3_stmt *st, int c)
{
    const char *text = (const char *)sqlite3_column_text(st, c);

    return text ? text : "";
}

/* A row for each device, or for each text that is kept of one: link, name, object, kind, place,
 * handle, parent, forms, text. */
static enum gw_status read_kept(struct bench *b, struct sqlite3 *db, const char *dir,
                                struct gw_error *err)
{
    sqlite3_stmt *st = NULL;
    sqlite3_int64 link = -1;

    if (sqlite3_prepare_v2(db, "SELECT l.link, l.name, t.object, t.kind, t.place, t.handle,"
                           " t.parent, t.forms, t.text FROM link l LEFT JOIN tc t USING(link)"
                           " ORDER BY l.link, t.place, t.forms", -1, &st, NULL) != SQLITE_OK)
        return gw_fail(err, GW_SYNTAX, "%s: the record keeps nothing of tc; runs of gradwire 0.3 "
                       "and later do", dir);
    while (err->code == GW_OK && sqlite3_step(st) == SQLITE_ROW) {
        struct gw_tc_kept k = { .object = column(st, 2), .kind = column(st, 3),
            .order = (uint32_t)sqlite3_column_int64(st, 4),
            .handle = (uint32_t)sqlite3_column_int64(st, 5),
            .parent = (uint32_t)sqlite3_column_int64(st, 6),
            .forms = (uint32_t)sqlite3_column_int64(st, 7), .text = column(st, 8) };

        if (sqlite3_column_int64(st, 0) != link)
            add_device(b, column(st, 1), err);
        link = sqlite3_column_int64(st, 0);
        if (err->code == GW_OK && *k.object)
            gw_tree_keep(b->tree[b->count - 1], &k, err);
    }
    sqlite3_finalize(st);
    return err->code;
}

/* What a run left; false: it cannot be read, *rc is the exit code. */
static bool open_run(struct bench *b, struct gw_cli *cli, int *rc)
{
    const struct tc_conf *c = cli->conf;
    struct gw_error err = { 0 };
    bool complete = false;
    struct sqlite3 *db = gw_record_open(c->run, &complete, &err);

    b->finished = true;
    if (db && !complete)
        gw_fail(&err, GW_SYNTAX, "%s: the run was cut off, and its counters were lost with it; run "
                "the study again", c->run);
    else if (db)
        read_kept(b, db, c->run, &err);
    sqlite3_close(db);
    if (err.code != GW_OK)
        *rc = gw_cli_fail(cli, &err);
    return err.code == GW_OK;
}

static struct gw_tree *device(void *ctx, const char *name, struct gw_error *err)
{
    struct bench *b = ctx;

    if (b->finished)
        return kept_device(b, name, err);
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
    struct gw_tc_ctx c = { .ctx = b, .device = device, .device_at = device_at, .out = out,
        .finished = b->finished ? "the run is over: its devices can be shown (qdisc show, class "
                                  "show) and not changed" : NULL };
    int rc;

    if (count && !strcmp(word[0], "tc")) {
        word++;
        count--;
    }
    b->last = NULL;
    rc = gw_tc_run(&c, word, count, err);
    if (!rc && b->last && ftell(out) <= 0)
        gw_tree_advise_touched(b->last, note, &a);
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

/* @zero_at: the line in the script holds a zero byte and is refused; 0: it is text. */
static enum gw_status script_line(struct bench *b, const char *line, unsigned zero_at, FILE *to,
                                  struct gw_error *err)
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
    if (zero_at)
        gw_fail(&own, GW_SYNTAX, "line %u holds a zero byte; a script is text", zero_at);
    rc = zero_at ? 1 : command(b, word, count, out, notes, &own);
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

struct place {                   /* in a script                                                */
    unsigned line;               /* that was read last, from 1                                 */
    unsigned zero_at;            /* the first one of this command with a zero byte; 0: none    */
};

/*
 * Reads the file's next line behind the @used bytes of *line, without its end and with question
 * marks for zero bytes. False: the file has ended.
 */
static bool script_read(FILE *f, char **line, size_t *used, struct place *at, struct gw_error *err)
{
    char *part = NULL, *grown;
    size_t room = 0;
    ssize_t n = getline(&part, &room, f);

    while (n > 0 && (part[n - 1] == '\r' || part[n - 1] == '\n'))
        part[--n] = 0;
    at->line++;
    for (char *zero; n >= 0 && (zero = memchr(part, 0, (size_t)n)); *zero = '?')
        at->zero_at = at->zero_at ? at->zero_at : at->line;
    grown = n >= 0 ? realloc(*line, *used + (size_t)n + 1) : NULL;
    if (grown) {
        memcpy(grown + *used, part, (size_t)n + 1);
        *used += (size_t)n;
        *line = grown;
    } else if (n >= 0) {
        gw_fail(err, GW_NOMEM, "out of memory for a line of tc");
    }
    free(part);
    return grown != NULL;
}

/* Runs the lines; as in a shell, a backslash at the end joins the next one, and lines without words
 * and comments are skipped. */
static enum gw_status script(struct bench *b, const char *path, FILE *to, struct gw_error *err)
{
    FILE *f = strcmp(path, "-") ? fopen(path, "r") : stdin;
    struct place at = { 0 };
    char *line = NULL;
    size_t n = 0;

    if (!f)
        return gw_fail(err, GW_IO, "%s: %s", path, strerror(errno));
    gw_skip_bom(f);
    for (; err->code == GW_OK && script_read(f, &line, &n, &at, err);
         n = at.zero_at = 0) {
        const char *start = line + strspn(line, " \t");

        while (*start != '#' && n && line[n - 1] == '\\') {
            line[--n] = 0;
            if (!script_read(f, &line, &n, &at, err))
                break;
            start = line + strspn(line, " \t");
        }
        if (err->code == GW_OK && *start && *start != '#')
            script_line(b, start, at.zero_at, to, err);
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
    else if (c->study && c->run)
        gw_fail(&err, GW_PARAM, "gradwire tc: --study and --run: give one of them, what is set up "
                "or what a run has left");
    else if (!c->script && !c->study && !c->run)
        gw_fail(&err, GW_PARAM, "gradwire tc: say on what: --study STUDY, for its links, --run DIR, "
                "for those of a finished run, or --script FILE, for scratch devices");
    else if (!c->study && c->set.count)
        gw_fail(&err, GW_PARAM, "gradwire tc: --set sets values of a study; give --study, too");
    if (err.code != GW_OK)
        return gw_cli_fail(cli, &err);
    b.said = json_object();
    if (c->run ? open_run(&b, cli, &rc) : !c->study || open_study(&b, cli, &rc)) {
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
    .summary = "Speaks tc(8)'s words to the links of a study, a finished run, or scratch devices",
    .text = "gradwire tc --study wan.yaml -j qdisc show dev wan:a\n"
            "gradwire tc --run wan-1 -s -j qdisc show dev wan:a\n"
            "gradwire tc --script setup.tc\n"
            "--study shows what a study sets up, --run what is there at the end of a run, timed "
            "events included, with all counters: qdisc, class and filter, with -s -d -j -p.\n"
            "The words are those of iproute2 6.1: qdisc, class and filter with add, change, "
            "replace, link, delete and show, the options -s -d -j -p -r -iec, and its "
            "abbreviations. Exit codes of one command are tc's: 1 refused by tc, 2 refused by the "
            "kernel, 255 incomplete line, unknown object or verb, bad handle. Other than tc 6.1: a "
            "negative rate is refused; -j prints JSON of classes and of fw and basic filters, too; "
            "chains, actions, estimators, shared blocks and a size table below the root are "
            "refused; a filter matches TOS, length, protocol, addresses, ports, the priority (fw, "
            "meta) and, in basic, the "
            "training tags: tag(layer eq 3), tag(class eq 5), tag(flow eq 0); flow is the connection's "
            "number, `conn` of the records, from 0 in the order of their opening, or the `flow` of "
            "test frames.",
    .rows = tc_rows, .row_count = GW_ARRAY_LEN(tc_rows), .conf_bytes = sizeof(struct tc_conf),
    .run = tc_run,
};
