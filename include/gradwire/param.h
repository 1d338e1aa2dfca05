/*
 * param.h - values from files, and option rows
 *
 * One row = one option: name, type with unit, default, range, help. Parser, range check, help page,
 * manual and the saved effective configuration all read the same row. Defaults and bounds are
 * written as a user writes them ("10gbit", "5ms", "64KiB", "0.01%"), so that a unit is never
 * implied; registration refuses a row whose default is outside its own range.
 */
#ifndef GRADWIRE_PARAM_H
#define GRADWIRE_PARAM_H

#include <gradwire/base.h>

/* A value as it stands in a file: a tree of scalars, lists and maps, each with its position. */
enum gw_value_kind { GW_V_SCALAR, GW_V_LIST, GW_V_MAP };

struct gw_value {
    enum gw_value_kind kind;
    bool               quoted;      /* scalar stood in quotes                                  */
    const char        *text;        /* scalar: its text; else NULL                             */
    const char        *key;         /* entry of a map: its key; else NULL                      */
    const char        *file;        /* file it stands in, or "--set"                           */
    uint32_t           line, col;   /* 1-based                                                 */
    struct gw_value   *child;       /* first entry                                             */
    struct gw_value   *next;        /* next entry of the same list or map                      */
    struct gw_value   *parent;
    bool               used;        /* some reader asked for it; unused keys are errors        */
};

enum gw_param_type {
    GW_P_BOOL,          /* bool:      yes no true false on off                                 */
    GW_P_U32,           /* uint32_t:  a count, bare                                            */
    GW_P_U64,           /* uint64_t:  a count, bare                                            */
    GW_P_F64,           /* double:    a number without unit                                    */
    GW_P_TIME,          /* uint64_t _ps:    ps ns us ms s min h; 0 may be bare                 */
    GW_P_RATE,          /* uint64_t _bps:   bit kbit mbit gbit tbit (also Kibit ..); 0 bare    */
    GW_P_BYTES,         /* uint64_t _bytes: B kB MB GB TB KiB MiB GiB TiB; may be bare         */
    GW_P_FRACTION,      /* double 0..1:     a number with %; 0 may be bare                     */
    GW_P_STRING,        /* const char *                                                        */
    GW_P_CHOICE,        /* uint32_t: index in choices, a "a|b|c" list                          */
    GW_P_VALUE,         /* const struct gw_value *: read by the plugin itself; NULL: not given */
    GW_P_WORDS,         /* words that the plugin's own tc_parse reads; the row is for help     */
    GW_P_TYPE_COUNT
};

struct gw_param {
    const char        *name;        /* "limit", or "nic.rate" for a key inside a map           */
    enum gw_param_type type;
    size_t             offset;      /* of the field in the plugin's conf struct                */
    const char        *def;         /* default as a user writes it; NULL: must be given;
                                       "" : may be missing, the field is then 0 / NULL         */
    const char        *min, *max;   /* bounds as a user writes them; NULL: the type's own.
                                       GW_P_CHOICE: min holds the choices "ring|tree".
                                       U32, U64, BYTES: max "auto" means no upper bound, and
                                       the word auto is taken, stored as the type's largest    */
    const char        *help;        /* one sentence                                            */
};

#define GW_GIVEN_MAX 64             /* rows of one plugin at most: one bit each                */

/*
 * Scalars. All return GW_OK or GW_PARAM with a sentence that says what would be right; the text
 * need not come from a file. No locale, no octal.
 */
GW_API enum gw_status gw_parse_time(const char *s, uint64_t *ps, struct gw_error *err);
GW_API enum gw_status gw_parse_rate(const char *s, uint64_t *bps, struct gw_error *err);
GW_API enum gw_status gw_parse_bytes(const char *s, uint64_t *bytes, struct gw_error *err);
GW_API enum gw_status gw_parse_fraction(const char *s, double *f, struct gw_error *err);
GW_API enum gw_status gw_parse_u64(const char *s, uint64_t *n, struct gw_error *err);
GW_API enum gw_status gw_parse_f64(const char *s, double *f, struct gw_error *err);
GW_API enum gw_status gw_parse_bool(const char *s, bool *b, struct gw_error *err);

/* The shortest exact spelling with a unit that needs no leading "0.", e.g. "20ms", "25gbit",
 * "64KiB"; the parsers read it back to the same number. @buf of 48 is enough. */
GW_API const char *gw_format_time(uint64_t ps, char *buf, size_t n);
GW_API const char *gw_format_rate(uint64_t bps, char *buf, size_t n);
GW_API const char *gw_format_bytes(uint64_t bytes, char *buf, size_t n);

/*
 * gw_params_read() - fills @conf from the map @v by @rows
 *
 * Keys that some row names are marked used; a key that none names is an error unless it stands in
 * @skip (NULL-terminated list of keys that the caller reads itself, may be NULL). @v may be NULL:
 * then all defaults. Rows named "a.b" are looked up in the map under key a. @what names the reader
 * in sentences ("topology star"). @given gets bit i for row i if the file gave it; may be NULL.
 * Strings in @conf point into @v or into the rows and live as long as these.
 */
GW_API enum gw_status gw_params_read(const struct gw_param *rows, size_t count, void *conf,
                                     struct gw_value *v, const char *const *skip, const char *what,
                                     uint64_t *given, struct gw_error *err);

/* Sets one row from text, as a tc word or --set would; @where goes in front of a sentence. */
GW_API enum gw_status gw_param_set(const struct gw_param *row, void *conf, const char *text,
                                   const char *where, struct gw_error *err);

/* Is the number in @conf, which the user wrote as @text, within the row's bounds? The sentence is
 * without the row's name. */
GW_API enum gw_status gw_param_bounds(const struct gw_param *row, const void *conf,
                                      const char *text, struct gw_error *err);

/* Writes the row's value in @conf as a user would write it. Returns @buf. */
GW_API const char *gw_param_format(const struct gw_param *row, const void *conf, char *buf,
                                   size_t n);

/* Checks the rows themselves: defaults inside bounds, bounds that parse, at most GW_GIVEN_MAX. */
GW_API enum gw_status gw_params_check(const struct gw_param *rows, size_t count, const char *what,
                                      struct gw_error *err);

/* The entry @key of map @v, marked used; NULL if there is none or @v is NULL or no map. */
GW_API struct gw_value *gw_value_get(struct gw_value *v, const char *key);

/*
 * Text of the scalar @v as @type, into @out as a row's field would be (GW_P_STRING: the text
 * itself, GW_P_VALUE: @v; GW_P_CHOICE is refused, it needs a row). The sentence begins with the
 * position.
 */
GW_API enum gw_status gw_value_read(const struct gw_value *v, enum gw_param_type type, void *out,
                                    struct gw_error *err);

/* "FILE:LINE:COL" of @v (or just FILE) into @buf; returns @buf. */
GW_API const char *gw_value_where(const struct gw_value *v, char *buf, size_t n);

/* The nearest of @names (NULL-terminated) to @word by edit distance, or NULL if none is near. */
GW_API const char *gw_did_you_mean(const char *word, const char *const *names);

#endif
