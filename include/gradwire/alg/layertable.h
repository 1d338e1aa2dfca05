/*
 * alg/layertable.h - one row of a layer table, and small tables of numbers, from CSV text
 *
 * The form is that of gradwire/convert.h: a header row name,param_bytes,forward_s,backward_s,
 * activation_bytes, comments behind #, rows in forward order; a field may stand in double quotes
 * (RFC 4180) when it holds commas. Numbers are plain decimals. Used by the converter and by the
 * traffic plugins that play a model, so that both read the same language.
 */
#ifndef GRADWIRE_ALG_LAYERTABLE_H
#define GRADWIRE_ALG_LAYERTABLE_H

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/types.h>

#include <gradwire/base.h>

#define GW_LAYER_HEADER "name,param_bytes,forward_s,backward_s,activation_bytes"
#define GW_LAYER_FIELDS 5
#define GW_LAYER_MAX    1000000u       /* rows of one table                                      */
#define GW_LAYER_S_MAX  1e7            /* seconds of one layer: more than the engine can count   */

/* A row whose name points into the line that was split. */
struct gw_layer_row {
    const char *name;
    uint64_t    param_bytes, activation_bytes;
    double      forward_s, backward_s;
};

/* Cuts line ends and blanks behind the text; returns the first byte that is not blank. */
static inline char *gw_line_trim(char *s)
{
    size_t n = strlen(s);

    while (n && isspace((unsigned char)s[n - 1]))
        s[--n] = '\0';
    while (isspace((unsigned char)*s))
        s++;
    return s;
}

/*
 * gw_text_line() - the next line of @f into *@line by getline(), counted in *@no
 *
 * A byte order mark before the first one is taken off; a zero byte is refused. False: the end, or a
 * failure that *@st tells.
 */
static inline bool gw_text_line(FILE *f, const char *path, char **line, size_t *room, uint32_t *no,
                                enum gw_status *st, struct gw_error *err)
{
    ssize_t n;

    if (*st != GW_OK)
        return false;
    n = getline(line, room, f);
    if (n < 0) {
        if (ferror(f))
            *st = gw_fail(err, GW_IO, "%s: cannot be read", path);
        return false;
    }
    if (*no == UINT32_MAX) {
        *st = gw_fail(err, GW_SYNTAX, "%s: more than 2^32 lines", path);
        return false;
    }
    ++*no;
    if (strlen(*line) != (size_t)n) {
        *st = gw_fail(err, GW_SYNTAX, "%s:%u: there is a zero byte in the line; this is no text",
                      path, *no);
        return false;
    }
    if (*no == 1 && !strncmp(*line, "\xef\xbb\xbf", 3))
        memmove(*line, *line + 3, (size_t)n - 2);
    return true;
}

/* True for a line that holds nothing to read: empty or a comment. */
static inline bool gw_line_blank(const char *s)
{
    while (isspace((unsigned char)*s))
        s++;
    return *s == '\0' || *s == '#';
}

/*
 * gw_csv_split() - splits @s in place at its commas; quotes are taken off
 *
 * Returns the number of fields, at most @max + 1 (then there were more), or 0 if a quote is not
 * closed or text follows it.
 */
static inline uint32_t gw_csv_split(char *s, char **field, uint32_t max)
{
    for (uint32_t n = 0;; s++) {
        bool  more;
        char *end;

        s += strspn(s, " \t");
        if (n == max)
            return max + 1;
        field[n++] = end = s;
        if (*s == '"') {
            for (s++; *s && (*s != '"' || s[1] == '"'); *end++ = *s++)
                if (*s == '"')
                    s++;
            if (!*s++)
                return 0;
            s += strspn(s, " \t");
            if (*s && *s != ',')
                return 0;
        } else {
            s += strcspn(s, ",");
            for (end = s; end > field[n - 1] && (end[-1] == ' ' || end[-1] == '\t'); end--)
                ;
        }
        more = *s == ',';
        *end = '\0';
        if (!more)
            return n;
    }
}

/* A plain decimal number, nothing behind it, finite. */
static inline bool gw_num_f64(const char *s, double *x)
{
    char *end;

    if (!isdigit((unsigned char)*s) && !strchr("+-.", *s))
        return false;
    if (strspn(s, "0123456789+-.eE") != strlen(s))
        return false;
    *x = strtod(s, &end);
    return end != s && !*end && isfinite(*x);
}

/* A whole number of bytes; "205520896.000" is one, too. */
static inline bool gw_num_bytes(const char *s, uint64_t *n)
{
    char  *end;
    double x;

    if (!isdigit((unsigned char)*s))
        return false;
    errno = 0;
    *n    = strtoull(s, &end, 10);
    if (!*end && errno == 0)
        return true;
    if (!gw_num_f64(s, &x) || x < 0 || x >= 0x1p63 || x != floor(x))
        return false;
    *n = (uint64_t)x;
    return true;
}

/*
 * gw_layer_row_read() - one row from the text @line (changed), line @no of @path
 *
 * Returns GW_OK or GW_SYNTAX with a sentence that names the field.
 */
static inline enum gw_status gw_layer_row_read(char *line, const char *path, uint32_t no,
                                               struct gw_layer_row *r, struct gw_error *err)
{
    char    *f[GW_LAYER_FIELDS] = { 0 };
    uint32_t n = gw_csv_split(gw_line_trim(line), f, GW_LAYER_FIELDS);

    if (n != GW_LAYER_FIELDS)
        return gw_fail(err, GW_SYNTAX, "%s:%u: a layer has %d fields, %s", path, no,
                       GW_LAYER_FIELDS, GW_LAYER_HEADER);
    r->name = f[0];
    if (!*r->name)
        return gw_fail(err, GW_SYNTAX, "%s:%u: the layer has no name", path, no);
    if (!gw_num_bytes(f[1], &r->param_bytes) || r->param_bytes > INT64_MAX)
        return gw_fail(err, GW_SYNTAX, "%s:%u: param_bytes is \"%s\"; a whole number of bytes "
                       "from 0 to 2^63-1 is expected", path, no, f[1]);
    if (!gw_num_f64(f[2], &r->forward_s) || r->forward_s < 0 || r->forward_s > GW_LAYER_S_MAX)
        return gw_fail(err, GW_SYNTAX, "%s:%u: forward_s is \"%s\"; seconds from 0 to 1e7 are "
                       "expected", path, no, f[2]);
    if (!gw_num_f64(f[3], &r->backward_s) || r->backward_s < 0 || r->backward_s > GW_LAYER_S_MAX)
        return gw_fail(err, GW_SYNTAX, "%s:%u: backward_s is \"%s\"; seconds from 0 to 1e7 are "
                       "expected", path, no, f[3]);
    if (!gw_num_bytes(f[4], &r->activation_bytes) || r->activation_bytes > INT64_MAX)
        return gw_fail(err, GW_SYNTAX, "%s:%u: activation_bytes is \"%s\"; a whole number of "
                       "bytes from 0 to 2^63-1 is expected", path, no, f[4]);
    return GW_OK;
}

/* True if @line (not changed) is the header row. */
static inline bool gw_layer_header(const char *line)
{
    const char *want = GW_LAYER_HEADER;

    for (; *line; line++) {
        if (isspace((unsigned char)*line) || *line == '"')
            continue;
        if (*line != *want)
            return false;
        want++;
    }
    return !*want;
}

#endif
