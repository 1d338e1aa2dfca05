/*
 * cmd - one tc command: global options, object, verb; lines into words; scratch devices
 *
 * The frame of iproute2 6.1's tc/tc.c, tc_qdisc.c and tc_class.c: the same abbreviations, in the
 * same order of preference, and the same exit codes: 1 for what tc itself refuses, 2 for what the
 * kernel refuses, 255 for lines that end too early, unknown objects and verbs and bad handles.
 * What a command means for the tree is in qdisc.c and class.c, what `show` prints in show.c,
 * filters in filter.c. Left out: chains, actions, monitor, exec, batch files and network
 * namespaces, which are refused by name; -graph, colours and time stamps, which are taken and
 * change nothing. Other than tc 6.1, `-j class show` prints JSON (tc 6.1 prints text there).
 */
#include <stdlib.h>

#include "emu/tc/run.h"

/* ---- words -------------------------------------------------------------------------------- */

bool gw_tc_id(const char *s, uint32_t *id)
{
    if (!strcmp(s, "root"))
        *id = GW_TC_ROOT;
    else if (!strcmp(s, "none"))
        *id = 0;
    else
        return *s != '-' && *s != '+' && *s != ' ' && gw_tc_classid(s, id);
    return true;
}

bool gw_tc_handle(const char *s, uint32_t *handle)
{
    char *end;
    unsigned long n;

    *handle = 0;
    if (!strcmp(s, "none"))
        return true;
    n = strtoul(s, &end, 16);
    if (end == s || n > 0xffff || (*end && *end != ':'))
        return false;
    *handle = (uint32_t)n << 16;
    return true;
}

const char *gw_tc_id_text(uint32_t id, char *buf)
{
    if (id == GW_TC_ROOT)
        snprintf(buf, 24, "root");
    else if (!id)
        snprintf(buf, 24, "none");
    else if (!(id >> 16))
        snprintf(buf, 24, ":%x", id & 0xffff);
    else if (!(id & 0xffff))
        snprintf(buf, 24, "%x:", id >> 16);
    else
        snprintf(buf, 24, "%x:%x", id >> 16, id & 0xffff);
    return buf;
}

const char *gw_tc_next(struct gw_tc_run *r)
{
    if (r->at + 1 < r->count)
        return r->word[++r->at];
    gw_tc_incomplete(r->err, r->at < r->count ? r->word[r->at] : "tc");
    return NULL;
}

struct gw_tree *gw_tc_dev(struct gw_tc_run *r, const char *name)
{
    struct gw_error inner = { 0 };
    struct gw_tree *t = r->ctx->device(r->ctx->ctx, name, &inner);

    if (!t)
        gw_fail(r->err, GW_SYNTAX, "Cannot find device \"%s\"%s%s", name, *inner.text ? ": " : "",
                inner.text);
    else
        t->touched = NULL;
    return t;
}

int gw_tc_no_dev(struct gw_tc_run *r, const char *kind)
{
    return GW_TC_NO(r->err, GW_TC_KERNEL, "RTNETLINK answers: No such device; write dev DEV %s \"%s\"",
                    kind ? "in front of" : "behind", kind ? kind : r->word[r->count - 1]);
}

/* Reads the next word from @s into @to; not @found: only blanks or a comment are left. Quotes may
 * stand anywhere. */
static const char *split_one(const char *s, char *to, bool *found)
{
    char quote = 0;

    s += strspn(s, " \t\r\n");
    *found = *s && *s != '#';
    if (!*found)
        return s;
    for (; *s && (quote || !strchr(" \t\r\n", *s)); s++) {
        if (quote ? *s == quote : *s == '"' || *s == '\'')
            quote = quote ? 0 : *s;
        else
            *to++ = *s;
    }
    *to = 0;
    return s;
}

char **gw_tc_split(const char *line, uint32_t *count)
{
    size_t n = strlen(line), words = n / 2 + 2;
    char *text = malloc(2 * n + 2), **word = calloc(words, sizeof *word), *to = text;
    bool found = true;

    *count = 0;
    if (!text || !word) {
        free(text);
        free(word);
        return NULL;
    }
    word[0] = text;                        /* what the caller frees, even if there is no word  */
    for (const char *s = line; found;) {
        s = split_one(s, to, &found);
        if (found) {
            word[(*count)++] = to;
            to += strlen(to) + 1;
        }
    }
    if (*count)
        word[*count] = NULL;
    return word;
}

/* ---- options, objects, verbs ---------------------------------------------------------------- */

enum option { OPT_STATS, OPT_DETAILS, OPT_RAW, OPT_PRETTY, OPT_IEC, OPT_JSON, OPT_HELP, OPT_NONE,
              OPT_NONE_ARG, OPT_NETNS, OPT_BATCH, OPT_VERSION };

/* In tc's order: the first that matches counts. */
static const struct { const char *name; enum option what; bool whole; } options[] = {
    { "-stats", OPT_STATS, false },       { "-statistics", OPT_STATS, false },
    { "-details", OPT_DETAILS, false },   { "-raw", OPT_RAW, false },
    { "-pretty", OPT_PRETTY, false },     { "-graph", OPT_NONE, false },
    { "-iec", OPT_IEC, true },            { "-help", OPT_HELP, false },
    { "-Version", OPT_VERSION, false },   { "-force", OPT_NONE, false },
    { "-batch", OPT_BATCH, false },       { "-netns", OPT_NETNS, false },
    { "-Numeric", OPT_NONE, false },      { "-names", OPT_NONE, false },
    { "-nm", OPT_NONE, false },           { "-cf", OPT_NONE_ARG, false },
    { "-conf", OPT_NONE_ARG, false },     { "-color", OPT_NONE, false },
    { "-timestamp", OPT_NONE, false },    { "-tshort", OPT_NONE, false },
    { "-json", OPT_JSON, false },         { "-oneline", OPT_NONE, false },
    { "-brief", OPT_NONE, false },
};

static const char usage[] =
    "Usage: tc [ OPTIONS ] OBJECT { COMMAND | help }; OBJECT := { qdisc | class | filter }, "
    "OPTIONS := { -s[tatistics] | -d[etails] | -r[aw] | -iec | -j[son] | -p[retty] }";

static int option_find(const char *word, enum option *what)
{
    for (size_t i = 0; i < GW_ARRAY_LEN(options); i++)
        if (options[i].whole ? !strcmp(word, options[i].name) :
            word[1] && gw_tc_matches(word, options[i].name)) {
            *what = options[i].what;
            return 1;
        }
    return 0;
}

static int read_option(struct gw_tc_run *r, const char *word, bool *ended)
{
    struct gw_tc_out *o = &r->w->out;
    enum option what;
    const char *name;

    if (!option_find(word, &what))
        return GW_TC_NO(r->err, GW_TC_USAGE, "Option \"%s\" is unknown, try \"tc -help\"", word);
    switch (what) {
    case OPT_STATS:
        o->stats = true;
        break;
    case OPT_DETAILS:
        o->details = true;
        break;
    case OPT_RAW:
        o->raw = true;
        break;
    case OPT_PRETTY:
        o->pretty = true;
        break;
    case OPT_IEC:
        o->iec = true;
        break;
    case OPT_JSON:
        o->json = true;
        break;
    case OPT_HELP:
    case OPT_VERSION:
        if (r->ctx->out)
            fprintf(r->ctx->out, "%s\n", what == OPT_HELP ? usage :
                    "gradwire tc, in the words of iproute2 6.1");
        *ended = true;
        break;
    case OPT_NETNS:
        name = gw_tc_next(r);
        return name ? GW_TC_NO(r->err, GW_TC_USAGE, "Cannot open network namespace \"%s\": the "
                                   "devices here belong to no namespace", name) : GW_TC_USAGE;
    case OPT_BATCH:
        return GW_TC_NO(r->err, GW_TC_USAGE, "Option \"%s\": there are no batch files here; "
                            "use gradwire tc --script FILE", word);
    case OPT_NONE_ARG:
        return gw_tc_next(r) ? GW_TC_GOOD : GW_TC_USAGE;
    case OPT_NONE:
        break;
    }
    return GW_TC_GOOD;
}

/* Verbs in tc's order; `link` is a qdisc's only. */
static const struct { const char *name; struct gw_tc_verb verb; } verbs[] = {
    { "add",     { "add", GW_TC_CREATE | GW_TC_EXCL, false, false } },
    { "change",  { "change", 0, false, false } },
    { "replace", { "replace", GW_TC_CREATE | GW_TC_REPLACE, false, false } },
    { "link",    { "link", GW_TC_REPLACE, false, false } },
    { "delete",  { "delete", 0, true, false } },
    { "list",    { "show", 0, false, true } },
    { "show",    { "show", 0, false, true } },
    { "lst",     { "show", 0, false, true } },
};

static bool verb_find(struct gw_tc_run *r, const char *word, const char *object)
{
    for (size_t i = 0; i < GW_ARRAY_LEN(verbs); i++)
        if (gw_tc_matches(word, verbs[i].name) &&
            (strcmp(verbs[i].name, "link") || !strcmp(object, "qdisc"))) {
            r->verb = verbs[i].verb;
            return true;
        }
    return false;
}

static const struct {
    const char *name;
    int (*run)(struct gw_tc_run *r);
    int (*list)(struct gw_tc_run *r);
} objects[] = {
    { "qdisc",  gw_tc_qdisc,  gw_tc_qdisc_list },
    { "class",  gw_tc_class,  gw_tc_class_list },
    { "filter", gw_tc_filter, gw_tc_filter },
    { "chain",  NULL, NULL }, { "actions", NULL, NULL }, { "monitor", NULL, NULL },
    { "exec",   NULL, NULL },
};

static int run_object(struct gw_tc_run *r, size_t i)
{
    const char *object = objects[i].name, *verb;

    if (!objects[i].run)
        return GW_TC_NO(r->err, GW_TC_USAGE, "Object \"%s\" is not modelled; qdisc, class and "
                            "filter are", object);
    r->at++;
    r->verb = (struct gw_tc_verb){ "show", 0, false, true };
    if (r->at == r->count)
        return objects[i].list(r);
    verb = r->word[r->at++];
    if (verb_find(r, verb, object) && !r->verb.show && r->ctx->finished)
        return GW_TC_NO(r->err, GW_TC_WORDS, "%s", r->ctx->finished);
    if (verb_find(r, verb, object))
        return r->verb.show ? objects[i].list(r) : objects[i].run(r);
    if (gw_tc_matches(verb, "help"))
        return GW_TC_NO(r->err, GW_TC_USAGE, "Usage: tc %s [ add | change | replace | %sdelete "
                            "| show ] dev DEV ...; `gradwire help tc` says more", object,
                            strcmp(object, "qdisc") ? "" : "link | ");
    return GW_TC_NO(r->err, GW_TC_USAGE, "Command \"%s\" is unknown, try \"tc %s help\"", verb,
                        object);
}

static int run_words(struct gw_tc_run *r)
{
    bool ended = false;

    while (r->at < r->count && r->word[r->at][0] == '-') {
        int rc = read_option(r, r->word[r->at], &ended);

        if (rc || ended)
            return rc;
        r->at++;
    }
    if (r->at == r->count) {
        if (r->ctx->out)
            fprintf(r->ctx->out, "%s\n", usage);
        return GW_TC_GOOD;
    }
    for (size_t i = 0; i < GW_ARRAY_LEN(objects); i++)
        if (gw_tc_matches(r->word[r->at], objects[i].name))
            return run_object(r, i);
    if (gw_tc_matches(r->word[r->at], "help")) {
        if (r->ctx->out)
            fprintf(r->ctx->out, "%s\n", usage);
        return GW_TC_GOOD;
    }
    return GW_TC_NO(r->err, GW_TC_USAGE, "Object \"%s\" is unknown, try \"tc help\"",
                        r->word[r->at]);
}

static uint32_t skip_options(char *const *word, uint32_t count)
{
    uint32_t at = 0;

    while (at < count && word[at][0] == '-')
        at++;
    return at;
}

bool gw_tc_empty(char *const *word, uint32_t count)
{
    return skip_options(word, count) == count;
}

bool gw_tc_shows(char *const *word, uint32_t count)
{
    struct gw_tc_run r = { .word = word, .count = count };
    uint32_t at = skip_options(word, count);

    for (size_t i = 0; at < count && i < GW_ARRAY_LEN(objects); i++)
        if (gw_tc_matches(word[at], objects[i].name))
            return at + 1 == count ||
                   (verb_find(&r, word[at + 1], objects[i].name) && r.verb.show);
    return at == count || gw_tc_matches(word[at], "help");
}

int gw_tc_run(const struct gw_tc_ctx *c, char *const *word, uint32_t count, struct gw_error *err)
{
    struct gw_error own = { 0 };
    struct gw_tc_writer w = { 0 };
    char **copy = calloc((size_t)count + 1, sizeof *copy);
    struct gw_tc_run r = { .ctx = c, .word = copy, .count = count, .w = &w,
                           .err = err ? err : &own };
    int rc;

    if (!copy)
        return GW_TC_NO(r.err, GW_TC_USAGE, "out of memory for a tc line");
    if (count)
        memcpy(copy, word, count * sizeof *copy);
    gw_tc_writer_init(&w, c->out);
    rc = run_words(&r);
    free(copy);
    return rc;
}

/* ---- scratch ------------------------------------------------------------------------------ */

struct gw_tree *gw_tc_scratch(struct gw_registry *r, const char *dev, struct gw_error *err)
{
    struct gw_tree_conf c = { .registry = r, .dev = dev, .mtu_bytes = 1514, .txqueuelen = 1000,
                              .seed = 1 };

    return gw_tree_new(&c, err);
}
