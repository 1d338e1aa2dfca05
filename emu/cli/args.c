/*
 * args - option rows of the command over getopt_long
 *
 * getopt_long keeps its place in globals of the C library, so one parse runs at a time; the
 * program's main() is the only caller. Words that are no options may stand between options, as
 * everywhere in GNU; a bare "--" ends the options.
 */
#include "emu/cli/args.h"

#include <getopt.h>
#include <stdlib.h>

enum { LINE_COLUMNS = 100, HELP_INDENT = 26, CODE_BASE = 0x1000 };

struct arg_ref {                 /* one row of one set                                         */
    const struct gw_arg *row;
    void *conf;
};

struct arg_table {
    struct arg_ref *ref;
    struct option  *option;      /* for getopt_long, ended by zeros                            */
    const char    **name;        /* for did-you-mean, ended by NULL                            */
    char           *letters;     /* optstring                                                  */
    size_t          count;
};

static void *arg_field(const struct arg_ref *r)
{
    return (char *)r->conf + r->row->offset;
}

static void table_free(struct arg_table *t)
{
    free(t->ref);
    free(t->option);
    free(t->name);
    free(t->letters);
}

static enum gw_status table_build(struct arg_table *t, const struct gw_arg_set *sets, bool stop,
                                  struct gw_error *err)
{
    size_t total = 0;
    char  *letter;

    memset(t, 0, sizeof *t);
    for (const struct gw_arg_set *s = sets; s->rows; s++)
        total += s->count;
    t->ref     = calloc(total + 1, sizeof *t->ref);
    t->option  = calloc(total + 1, sizeof *t->option);
    t->name    = calloc(total + 1, sizeof *t->name);
    t->letters = calloc(2 * total + 3, 1);
    if (!t->ref || !t->option || !t->name || !t->letters) {
        table_free(t);
        return gw_fail(err, GW_NOMEM, "out of memory");
    }
    letter    = t->letters;
    *letter++ = stop ? '+' : '-';
    *letter++ = ':';
    for (const struct gw_arg_set *s = sets; s->rows; s++) {
        for (size_t i = 0; i < s->count; i++) {
            const struct gw_arg *row = &s->rows[i];

            t->ref[t->count]    = (struct arg_ref){row, s->conf};
            t->name[t->count]   = row->name;
            t->option[t->count] = (struct option){
                row->name, row->type == GW_ARG_FLAG ? no_argument : required_argument, NULL,
                CODE_BASE + (int)t->count};
            if (row->letter) {
                *letter++ = (char)row->letter;
                if (row->type != GW_ARG_FLAG)
                    *letter++ = ':';
            }
            t->count++;
        }
    }
    return GW_OK;
}

/* The row of getopt's answer @code: an index of a long option or a letter; NULL: none. */
static const struct arg_ref *table_find(const struct arg_table *t, int code)
{
    if (code >= CODE_BASE && (size_t)(code - CODE_BASE) < t->count)
        return &t->ref[code - CODE_BASE];
    for (size_t i = 0; i < t->count; i++)
        if (t->ref[i].row->letter && t->ref[i].row->letter == code)
            return &t->ref[i];
    return NULL;
}

static enum gw_status grow(const char ***list, size_t *count, const char *text,
                           struct gw_error *err)
{
    const char **bigger = realloc(*list, (*count + 2) * sizeof *bigger);

    if (!bigger)
        return gw_fail(err, GW_NOMEM, "out of memory");
    bigger[*count]     = text;
    bigger[*count + 1] = NULL;
    *list              = bigger;
    ++*count;
    return GW_OK;
}

/* Whether @word is one of the words of "a|b|c". */
static bool is_choice(const char *choices, const char *word)
{
    size_t len = strchr(word, '|') ? 0 : strlen(word);

    for (const char *c = choices; len && c; c = strchr(c, '|') ? strchr(c, '|') + 1 : NULL)
        if (!strncmp(c, word, len) && (c[len] == '|' || !c[len]))
            return true;
    return false;
}

static enum gw_status arg_store(const struct arg_ref *r, const char *text, const char *what,
                                struct gw_error *err)
{
    struct gw_arg_count *count;
    struct gw_arg_list  *list;

    switch (r->row->type) {
    case GW_ARG_FLAG:
        *(bool *)arg_field(r) = true;
        return GW_OK;
    case GW_ARG_LIST:
        list = arg_field(r);
        return grow(&list->item, &list->count, text, err);
    case GW_ARG_COUNT:
        count = arg_field(r);
        if (gw_parse_u64(text, &count->n, NULL) != GW_OK)
            return gw_fail(err, GW_PARAM, "%s: --%s %s is not a whole number; write --%s 7", what,
                           r->row->name, text, r->row->name);
        count->given = true;
        return GW_OK;
    case GW_ARG_CHOICE:
        if (!is_choice(r->row->meta, text))
            return gw_fail(err, GW_PARAM, "%s: --%s %s is unknown; one of %s is right", what,
                           r->row->name, text, r->row->meta);
        break;
    case GW_ARG_TEXT:
        break;
    }
    if (!*text)
        return gw_fail(err, GW_PARAM, "%s: --%s is empty; it wants %s", what, r->row->name,
                       r->row->meta);
    *(const char **)arg_field(r) = text;
    return GW_OK;
}

/* The sentence for an option that no row has; @word as the user wrote it. */
static enum gw_status unknown(const struct arg_table *t, const char *word, const char *what,
                              struct gw_error *err)
{
    const char *bare = word + strspn(word, "-");
    char        name[64];
    const char *near;

    snprintf(name, sizeof name, "%.*s", (int)strcspn(bare, "="), bare);
    near = gw_did_you_mean(name, t->name);
    if (near)
        return gw_fail(err, GW_PARAM, "%s: unknown option %s; did you mean --%s?", what, word,
                       near);
    return gw_fail(err, GW_PARAM, "%s: unknown option %s; `%s --help` lists the options", what,
                   word, what);
}

/* What getopt's '?' and ':' mean. */
static enum gw_status arg_refuse(const struct arg_table *t, int code, char **argv,
                                 const char *what, struct gw_error *err)
{
    const struct arg_ref *r = optopt ? table_find(t, optopt) : NULL;
    char letter[3] = {'-', (char)optopt, '\0'};

    if (r && code == ':')
        return gw_fail(err, GW_PARAM, "%s: --%s wants a value; write --%s %s", what, r->row->name,
                       r->row->name, r->row->meta);
    if (r)
        return gw_fail(err, GW_PARAM, "%s: --%s takes no value; write --%s alone", what,
                       r->row->name, r->row->name);
    return unknown(t, optopt ? letter : argv[optind - 1], what, err);
}

enum gw_status gw_args_read(const struct gw_arg_set *sets, const char *what, int argc, char **argv,
                            bool stop, int *next, struct gw_operands *ops, struct gw_error *err)
{
    struct arg_table t;
    enum gw_status   st = table_build(&t, sets, stop, err);
    int code;

    if (st != GW_OK)
        return st;
    optind = 0;                  /* glibc: start anew, for any optstring */
    while (st == GW_OK && (code = getopt_long(argc, argv, t.letters, t.option, NULL)) != -1) {
        const struct arg_ref *r = table_find(&t, code);

        if (code == 1)
            st = grow(&ops->word, &ops->count, optarg, err);
        else if (code == '?' || code == ':' || !r)
            st = arg_refuse(&t, code, argv, what, err);
        else
            st = arg_store(r, optarg, what, err);
    }
    if (next)
        *next = optind;
    for (int i = optind; st == GW_OK && !stop && i < argc; i++)
        st = grow(&ops->word, &ops->count, argv[i], err);
    table_free(&t);
    return st;
}

void gw_args_free(const struct gw_arg_set *sets, struct gw_operands *ops)
{
    for (const struct gw_arg_set *s = sets; s->rows; s++) {
        for (size_t i = 0; s->conf && i < s->count; i++) {
            struct arg_ref      r = {&s->rows[i], s->conf};
            struct gw_arg_list *list = arg_field(&r);

            if (r.row->type != GW_ARG_LIST)
                continue;
            free(list->item);
            *list = (struct gw_arg_list){NULL, 0};
        }
    }
    if (ops) {
        free(ops->word);
        *ops = (struct gw_operands){NULL, 0};
    }
}

void gw_text_wrap(FILE *f, const char *text, int indent)
{
    int column = indent;

    while (*text) {
        int word = (int)strcspn(text, " \n");

        if (column > indent && column + 1 + word > LINE_COLUMNS) {
            fprintf(f, "\n%*s", indent, "");
            column = indent;
        } else if (column > indent) {
            fputc(' ', f);
            column++;
        }
        fprintf(f, "%.*s", word, text);
        column += word;
        text += word;
        if (*text == '\n' && text[1]) {          /* a line end that the author wants */
            fprintf(f, "\n%*s", indent, "");
            column = indent;
        }
        text += *text == '\n';
        text += strspn(text, " ");
    }
    fputc('\n', f);
}

void gw_args_help(const struct gw_arg *rows, size_t count, FILE *f)
{
    for (size_t i = 0; i < count; i++) {
        char head[80], letter[6] = "    ";
        int  width;

        if (rows[i].letter)
            snprintf(letter, sizeof letter, "-%c, ", rows[i].letter);
        width = snprintf(head, sizeof head, "  %s--%s%s%s", letter, rows[i].name,
                         rows[i].meta ? " " : "", rows[i].meta ? rows[i].meta : "");
        if (width < HELP_INDENT)
            fprintf(f, "%-*s", HELP_INDENT, head);
        else
            fprintf(f, "%s\n%*s", head, HELP_INDENT, "");
        gw_text_wrap(f, rows[i].help, HELP_INDENT);
    }
}
