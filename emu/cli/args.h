/*
 * args.h - options of the command: one row = one option, one row = one verb
 *
 * Parser, usage text and `gradwire help VERB` read the same rows. getopt_long does the parsing;
 * what is wrong is said in one sentence, with did-you-mean for names.
 */
#ifndef GW_CLI_ARGS_H
#define GW_CLI_ARGS_H

#include "emu/core/registry.h"

enum gw_arg_type {
    GW_ARG_FLAG,                 /* bool                                                       */
    GW_ARG_TEXT,                 /* const char *; the last one given counts                    */
    GW_ARG_LIST,                 /* struct gw_arg_list: may be given several times             */
    GW_ARG_COUNT,                /* struct gw_arg_count: a whole number                        */
    GW_ARG_CHOICE,               /* const char *: one of the words "a|b|c" of meta             */
};

struct gw_arg_list {
    const char **item;           /* NULL-terminated, or NULL if empty; owner: the conf         */
    size_t count;
};

struct gw_arg_count {
    uint64_t n;
    bool given;
};

struct gw_arg {
    const char *name;            /* without the dashes                                         */
    int letter;                  /* short form, 0: none                                        */
    enum gw_arg_type type;
    size_t offset;               /* of the field in the conf struct                            */
    const char *meta;            /* what stands for the value in usage: "DIR"; flags: NULL     */
    const char *help;            /* one sentence                                               */
};

/* Rows and the struct that they fill; a parse may read several sets (a verb's own, the common). */
struct gw_arg_set {
    const struct gw_arg *rows;
    size_t count;
    void  *conf;
};

/* Parsed words that are no options; point into argv. */
struct gw_operands {
    const char **word;           /* NULL-terminated                                            */
    size_t count;
};

/*
 * gw_args_read() - parses argv[1..] by the rows of @sets (ended by rows NULL)
 *
 * @what begins sentences ("gradwire run"). With @stop the parse ends at the first word that is no
 * option and *next is its index; else all such words go to @ops. Text points into argv. Whatever
 * the answer, gw_args_free() may be called.
 */
enum gw_status gw_args_read(const struct gw_arg_set *sets, const char *what, int argc, char **argv,
                            bool stop, int *next, struct gw_operands *ops, struct gw_error *err);
void gw_args_free(const struct gw_arg_set *sets, struct gw_operands *ops);
/* One paragraph per row: "  -o, --output DIR" and its help, wrapped. */
void gw_args_help(const struct gw_arg *rows, size_t count, FILE *f);
/* @text filled to 100 columns, each line indented by @indent; the first is taken as begun. */
void gw_text_wrap(FILE *f, const char *text, int indent);

/* What the command ends with; DESIGN.md 8. */
enum gw_exit { GW_EXIT_GOOD = 0, GW_EXIT_CHECK = 1, GW_EXIT_USAGE = 2, GW_EXIT_STALL = 3,
               GW_EXIT_PRIV = 4 };

/* One call of the command: what a verb's run() gets. */
struct gw_cli {
    const struct gw_verb *verb;
    struct gw_registry *registry;/* built in and --plugin                                      */
    const void *conf;            /* filled by the verb's rows                                  */
    const char *const *operand;  /* as many as the verb's bounds allow                         */
    size_t operand_count;
    FILE *out, *err;
};

struct gw_verb {
    const char *name;
    const char *operands;        /* "STUDY", as usage shows it                                 */
    size_t operand_min, operand_max;
    bool words;                  /* from the first word without "--" on all are operands, dashes
                                    or not                                                     */
    const char *summary;         /* one line                                                   */
    const char *text;            /* what `gradwire help VERB` says below; may be NULL          */
    const struct gw_arg *rows;
    size_t row_count;
    size_t conf_bytes;
    int (*run)(struct gw_cli *cli);  /* answers an exit code                                   */
};

extern const struct gw_verb gw_verb_check, gw_verb_run, gw_verb_explain, gw_verb_analyze,
    gw_verb_convert, gw_verb_digest, gw_verb_tc, gw_verb_list, gw_verb_help;

/* All verbs, in the order of the usage text, NULL-terminated; and the options of every verb. */
extern const struct gw_verb *const gw_verbs[];
extern const struct gw_arg gw_common_rows[];
extern const size_t gw_common_row_count;

const struct gw_verb *gw_verb_find(const char *name);
/* "; did you mean VERB?" or a list of all, into @buf. */
const char *gw_verb_hint(const char *name, char *buf, size_t n);
void gw_usage(FILE *f);                                  /* the whole command                  */
void gw_verb_usage(const struct gw_verb *v, FILE *f);    /* one verb with its options          */
const char *gw_version(void);
/* The kind that @word names; GW_KIND_COUNT with a sentence that starts with @what: none. */
enum gw_kind gw_kind_by_word(const char *word, const char *what, struct gw_error *err);

/* Prints the sentence of @err to cli->err and answers the exit code that belongs to its code. */
int gw_cli_fail(const struct gw_cli *cli, const struct gw_error *err);

#endif
