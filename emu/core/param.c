/*
 * param.c - numbers with units, and option rows
 *
 * Numbers are decimal: their digits are kept as an integer and a power of ten, so that "0.1ms" is
 * exactly 100000000 ps and "0.01%" the double nearest to one in ten thousand. What is finer than
 * one picosecond or one bit per second is rounded to the nearest, unless nothing would be left;
 * byte counts and counts must be whole. Units follow section 4 of the design: byte counts, counts
 * and 0 may be bare, times, rates and percentages never. No locale, no octal, no hexadecimal.
 *
 * Option rows keep bounds and defaults as text and go through the same parsers as the user's words,
 * so a unit can't be implied anywhere.
 */
#include <gradwire/param.h>

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "emu/core/text.h"

__extension__ typedef unsigned __int128 u128;

/* ---- decimal numbers ---------------------------------------------------------------------- */

#define MANT_DIGITS 22            /* digits kept: mant * unit stays below 2^128                */
#define EXP_MAX     100000        /* exponents beyond are as good as this                      */

struct decimal {                  /* mant * 10^exp10, plus a little if sticky                  */
    u128        mant;
    int         exp10;
    bool        sticky;           /* digits that did not fit were not all 0                    */
    const char *rest;             /* behind the number, blanks skipped                         */
};

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Takes "12", "1.5", ".5", "3e8"; false if @s does not begin with a number. */
static bool decimal_read(const char *s, struct decimal *d)
{
    int  kept = 0;
    bool any = false, point = false;

    memset(d, 0, sizeof *d);
    for (;; s++) {
        if (*s == '.' && !point) {
            point = true;
            continue;
        }
        if (!is_digit(*s))
            break;
        any = true;
        if (kept < MANT_DIGITS) {
            d->mant = d->mant * 10 + (unsigned)(*s - '0');
            kept += d->mant != 0;
            d->exp10 -= point && d->exp10 > -EXP_MAX;
        } else {
            d->sticky |= *s != '0';
            d->exp10 += !point && d->exp10 < EXP_MAX;
        }
    }
    if (any && (*s == 'e' || *s == 'E') &&
        (is_digit(s[1]) || ((s[1] == '+' || s[1] == '-') && is_digit(s[2])))) {
        bool minus = s[1] == '-';
        int  e = 0;

        for (s += is_digit(s[1]) ? 1 : 2; is_digit(*s); s++)
            e = e < EXP_MAX ? e * 10 + (*s - '0') : e;
        d->exp10 += minus ? -e : e;
    }
    while (*s == ' ')
        s++;
    d->rest = s;
    return any;
}

enum scaled { SCALED_OK, SCALED_INEXACT, SCALED_TOO_BIG };

/* d * unit rounded to the nearest integer, half up; unit < 2^53. */
static enum scaled decimal_scale(const struct decimal *d, uint64_t unit, uint64_t *out)
{
    u128 num = d->mant * unit, den = 1, rem;
    int  e = d->exp10;

    *out = 0;
    if (!num)
        return SCALED_OK;
    for (; e > 0; e--) {
        if (num > UINT64_MAX)
            return SCALED_TOO_BIG;
        num *= 10;
    }
    for (; e < 0 && den <= num; e++)
        den *= 10;                               /* num < 2^127: den stays below 2^128 / 2 */
    if (e < 0)
        return SCALED_INEXACT;                   /* less than a tenth of one */
    rem = num % den;
    num = num / den + (rem >= den - rem);
    if (num > UINT64_MAX)
        return SCALED_TOO_BIG;
    *out = (uint64_t)num;
    return rem || d->sticky ? SCALED_INEXACT : SCALED_OK;
}

/* The double nearest to d * 10^shift; the text has no decimal point, so no locale matters. */
static double decimal_double(const struct decimal *d, int shift)
{
    char digits[MANT_DIGITS + 24], *p = digits + sizeof digits;
    u128 m = d->mant;
    int  e = d->exp10 + shift - d->sticky;

    p -= snprintf(NULL, 0, "e%d", e) + 1;
    snprintf(p, (size_t)(digits + sizeof digits - p), "e%d", e);
    if (d->sticky)
        *--p = '1';
    do {
        *--p = (char)('0' + (int)(m % 10));
        m /= 10;
    } while (m);
    return strtod(p, NULL);
}

/* ---- units -------------------------------------------------------------------------------- */

struct unit {
    const char *name;
    uint64_t    factor;
};

static const struct unit time_units[] = {
    { "ps", 1 }, { "ns", GW_PS_PER_NS }, { "us", GW_PS_PER_US }, { "ms", GW_PS_PER_MS },
    { "s", GW_PS_PER_S }, { "min", 60 * GW_PS_PER_S }, { "h", 3600 * GW_PS_PER_S },
};
static const struct unit rate_units[] = {
    { "bit", 1 }, { "kbit", 1000 }, { "mbit", 1000000 }, { "gbit", 1000000000 },
    { "tbit", UINT64_C(1000000000000) },
    { "Kibit", 1024 }, { "Mibit", 1u << 20 }, { "Gibit", 1u << 30 },
    { "Tibit", UINT64_C(1) << 40 },
};
#define RATE_DECIMAL 5            /* the first rows of rate_units, used for printing           */
static const struct unit byte_units[] = {
    { "B", 1 }, { "kB", 1000 }, { "MB", 1000000 }, { "GB", 1000000000 },
    { "TB", UINT64_C(1000000000000) },
    { "KiB", 1024 }, { "MiB", 1u << 20 }, { "GiB", 1u << 30 }, { "TiB", UINT64_C(1) << 40 },
};

/* What a quantity is called, how it is spelt and how strict it is. */
struct quantity {
    const char        *noun;      /* "a time"                                                  */
    const char        *example;   /* what would be right                                       */
    const struct unit *unit;
    size_t             units;
    bool               bare;      /* a number without unit is taken                            */
    bool               whole;     /* must be whole in the smallest unit                        */
    bool               any_case;  /* of the unit                                               */
    const char        *largest;   /* in sentences                                              */
};

static const struct quantity q_time = {
    "a time", "a number with ps, ns, us, ms, s, min or h, such as 20ms",
    time_units, GW_ARRAY_LEN(time_units), false, false, false, "213 days" };
static const struct quantity q_rate = {
    "a rate", "a number with bit, kbit, mbit, gbit or tbit (or Kibit ..), such as 25gbit",
    rate_units, GW_ARRAY_LEN(rate_units), false, false, true, "18446744tbit" };
static const struct quantity q_bytes = {
    "a size", "a number with B, kB, MB, GB, TB, KiB, MiB, GiB or TiB, such as 64KiB, or bare bytes",
    byte_units, GW_ARRAY_LEN(byte_units), true, true, false, "18446744TB" };
static const struct quantity q_count = {
    "a count", "a whole number without unit, such as 1000",
    NULL, 0, true, true, false, "18446744073709551615" };

static int lower(int c)
{
    return c >= 'A' && c <= 'Z' ? c + 32 : c;
}

static bool same_word(const char *a, const char *b, bool any_case)
{
    if (!any_case)
        return !strcmp(a, b);
    while (*a && lower((unsigned char)*a) == lower((unsigned char)*b))
        a++, b++;
    return !*a && !*b;
}

static const struct unit *unit_find(const struct quantity *q, const char *name)
{
    for (size_t i = 0; i < q->units; i++)
        if (same_word(name, q->unit[i].name, q->any_case))
            return &q->unit[i];
    return NULL;
}

/* An unknown unit: what it might have been. */
static enum gw_status bad_unit(const struct quantity *q, const char *s, const char *unit,
                               struct gw_error *err)
{
    char a[GW_SHOW_BYTES], b[GW_SHOW_BYTES];
    size_t n = strlen(unit);

    if (q == &q_rate && n >= 2 && n <= 5 && same_word(unit + n - 2, "ps", true))
        return gw_fail(err, GW_PARAM,
                       "\"%s\": \"%s\" is bits to some and bytes to others; write %s",
                       gw_show(s, a), gw_show(unit, b), q->example);
    for (size_t i = 0; i < q->units; i++)
        if (same_word(unit, q->unit[i].name, true))
            return gw_fail(err, GW_PARAM, "\"%s\": the unit \"%s\" is spelt %s", gw_show(s, a),
                           gw_show(unit, b), q->unit[i].name);
    return gw_fail(err, GW_PARAM, "\"%s\" is not %s: %s \"%s\"; write %s", gw_show(s, a), q->noun,
                   q->units ? "unknown unit" : "it ends in", gw_show(unit, b), q->example);
}

/* No number where one is wanted: says so, and knows negative ones. */
static enum gw_status no_number(const char *s, const char *noun, const char *example,
                                struct gw_error *err)
{
    char a[GW_SHOW_BYTES];
    struct decimal d;

    if (!s || !*s)
        return gw_fail(err, GW_PARAM, "no value; write %s", example);
    if (*s == '-' && decimal_read(s + 1, &d))
        return gw_fail(err, GW_PARAM, "\"%s\" is negative, %s must be 0 or more; write %s",
                       gw_show(s, a), noun, example);
    return gw_fail(err, GW_PARAM, "\"%s\" is not %s; write %s", gw_show(s, a), noun, example);
}

static enum gw_status parse_quantity(const struct quantity *q, const char *s, uint64_t *out,
                                     struct gw_error *err)
{
    char a[GW_SHOW_BYTES];
    struct decimal d;
    uint64_t factor = 1, v;
    enum scaled how;

    if (!s || !decimal_read(s, &d))
        return no_number(s, q->noun, q->example, err);
    if (*d.rest) {
        const struct unit *u = unit_find(q, d.rest);

        if (!u)
            return bad_unit(q, s, d.rest, err);
        factor = u->factor;
    } else if (!q->bare && d.mant) {
        return gw_fail(err, GW_PARAM, "\"%s\" lacks its unit; write %s", gw_show(s, a), q->example);
    }
    how = decimal_scale(&d, factor, &v);
    if (how == SCALED_TOO_BIG)
        return gw_fail(err, GW_PARAM, "\"%s\" is too large for %s, allowed up to %s",
                       gw_show(s, a), q->noun, q->largest);
    if (how == SCALED_INEXACT && q->whole)
        return gw_fail(err, GW_PARAM, "\"%s\" is not a whole number%s; write %s", gw_show(s, a),
                       q->units ? " of bytes" : "", q->example);
    if (how == SCALED_INEXACT && !v)
        return gw_fail(err, GW_PARAM, "\"%s\" is too small for %s, allowed 0 or at least 1%s",
                       gw_show(s, a), q->noun, q->unit[0].name);
    *out = v;
    return GW_OK;
}

enum gw_status gw_parse_time(const char *s, uint64_t *ps, struct gw_error *err)
{
    return parse_quantity(&q_time, s, ps, err);
}

enum gw_status gw_parse_rate(const char *s, uint64_t *bps, struct gw_error *err)
{
    return parse_quantity(&q_rate, s, bps, err);
}

enum gw_status gw_parse_bytes(const char *s, uint64_t *bytes, struct gw_error *err)
{
    return parse_quantity(&q_bytes, s, bytes, err);
}

enum gw_status gw_parse_u64(const char *s, uint64_t *n, struct gw_error *err)
{
    return parse_quantity(&q_count, s, n, err);
}

#define FRACTION_EXAMPLE "a number with %, such as 0.01%"

enum gw_status gw_parse_fraction(const char *s, double *f, struct gw_error *err)
{
    char a[GW_SHOW_BYTES];
    struct decimal d;
    double v;

    if (!s || !decimal_read(s, &d))
        return no_number(s, "a percentage", FRACTION_EXAMPLE, err);
    if (*d.rest && strcmp(d.rest, "%") != 0)
        return gw_fail(err, GW_PARAM, "\"%s\" is not a percentage; write %s", gw_show(s, a),
                       FRACTION_EXAMPLE);
    if (!*d.rest && d.mant)
        return gw_fail(err, GW_PARAM, "\"%s\" lacks its unit; write %s", gw_show(s, a),
                       FRACTION_EXAMPLE);
    v = decimal_double(&d, -2);
    if (v == 0 && d.mant)
        return gw_fail(err, GW_PARAM, "\"%s\" is too small for a percentage; write 0 or %s",
                       gw_show(s, a), FRACTION_EXAMPLE);
    if (v > 1)
        return gw_fail(err, GW_PARAM, "\"%s\" is too large for a percentage, allowed 0%% to 100%%",
                       gw_show(s, a));
    *f = v;
    return GW_OK;
}

enum gw_status gw_parse_f64(const char *s, double *f, struct gw_error *err)
{
    char a[GW_SHOW_BYTES];
    struct decimal d;
    bool minus = s && *s == '-';
    double v;

    if (!s || !decimal_read(s + minus, &d) || *d.rest)
        return gw_fail(err, GW_PARAM, s && *s ? "\"%s\" is not a number; write one without unit, "
                       "such as 1.5" : "no value%s; write a number without unit, such as 1.5",
                       gw_show(s, a));
    v = decimal_double(&d, 0);
    if (!isfinite(v))
        return gw_fail(err, GW_PARAM, "\"%s\" is too large, allowed up to 1.7e308", gw_show(s, a));
    *f = minus && v != 0 ? -v : v;
    return GW_OK;
}

enum gw_status gw_parse_bool(const char *s, bool *b, struct gw_error *err)
{
    static const char *const yes[] = { "yes", "true", "on" };
    static const char *const no[] = { "no", "false", "off" };
    char a[GW_SHOW_BYTES];

    for (size_t i = 0; s && i < GW_ARRAY_LEN(yes); i++)
        if (same_word(s, yes[i], true) || same_word(s, no[i], true)) {
            *b = same_word(s, yes[i], true);
            return GW_OK;
        }
    return gw_fail(err, GW_PARAM, "%s%s%s; write yes or no", s && *s ? "\"" : "no value",
                   gw_show(s, a), s && *s ? "\" is neither yes nor no" : "");
}

/* ---- printing ----------------------------------------------------------------------------- */

/* n / factor as a decimal with at most 15 places, or false if it has more. */
static bool exact_decimal(uint64_t n, uint64_t factor, char *buf, size_t size)
{
    uint64_t rem = n % factor;
    int len = snprintf(buf, size, "%llu", (unsigned long long)(n / factor));

    if (rem)
        buf[len++] = '.';
    for (int places = 0; rem; places++) {
        u128 r = (u128)rem * 10;

        if (places == 15)
            return false;
        buf[len++] = (char)('0' + (int)(r / factor));
        rem = (uint64_t)(r % factor);
    }
    buf[len] = '\0';
    return true;
}

/* The shortest of all exact spellings of at least one unit; if equal, one without a point. */
static const char *format_quantity(const struct unit *unit, size_t units, uint64_t v, char *buf,
                                   size_t n)
{
    char   best[64], s[64];
    size_t best_len = SIZE_MAX, len;

    for (size_t i = 0; i < units; i++) {
        if (v < unit[i].factor && i)
            continue;
        if (!v && strcmp(unit[i].name, "ps") == 0)
            continue;                                     /* 0 is "0ns" to nobody: take "0s" */
        if (!v && unit[i].factor != 1)
            continue;
        if (!exact_decimal(v, unit[i].factor, s, sizeof s))
            continue;
        len = strlen(s) + strlen(unit[i].name);
        if (len > best_len || (len == best_len && strchr(s, '.')))
            continue;
        best_len = len;
        snprintf(best, sizeof best, "%s%s", s, unit[i].name);
    }
    snprintf(buf, n, "%s", best_len == SIZE_MAX ? "0s" : best);
    return buf;
}

const char *gw_format_time(uint64_t ps, char *buf, size_t n)
{
    return format_quantity(time_units, GW_ARRAY_LEN(time_units), ps, buf, n);
}

const char *gw_format_rate(uint64_t bps, char *buf, size_t n)
{
    return format_quantity(rate_units, RATE_DECIMAL, bps, buf, n);
}

const char *gw_format_bytes(uint64_t bytes, char *buf, size_t n)
{
    return format_quantity(byte_units, GW_ARRAY_LEN(byte_units), bytes, buf, n);
}

/* Digits (no leading or trailing 0) and decimal exponent of a positive double, shortest that reads
 * back: v = 0.DIGITS * 10^result. */
static int shortest_digits(double v, char digits[20])
{
    char s[40];
    int  prec = 0, exp10, len = 0;
    const char *p;

    do
        snprintf(s, sizeof s, "%.*e", prec, v);
    while (strtod(s, NULL) != v && prec++ < 17);
    for (p = s; *p && *p != 'e'; p++)
        if (is_digit(*p) && len < 19)
            digits[len++] = *p;
    exp10 = (int)strtol(p + 1, NULL, 10) + 1;
    while (len > 1 && digits[len - 1] == '0')
        len--;
    digits[len] = '\0';
    return exp10;
}

/* v * 10^shift without exponent where that is readable, else with one; no locale. */
static void format_double(double v, int shift, char *buf, size_t n)
{
    char digits[20];
    const char *sign = v < 0 ? "-" : "";
    int  e, len;

    if (v == 0 || !isfinite(v)) {
        snprintf(buf, n, "0");
        return;
    }
    e = shortest_digits(fabs(v), digits) + shift;
    len = (int)strlen(digits);
    if (e > 21 || e < -9)
        snprintf(buf, n, "%s%c%s%se%d", sign, digits[0], len > 1 ? "." : "", digits + 1, e - 1);
    else if (e <= 0)
        snprintf(buf, n, "%s0.%.*s%s", sign, -e, "0000000000", digits);
    else if (e >= len)
        snprintf(buf, n, "%s%s%.*s", sign, digits, e - len, "000000000000000000000");
    else
        snprintf(buf, n, "%s%.*s.%s", sign, e, digits, digits + e);
}

/* ---- one row ------------------------------------------------------------------------------ */

union field {                     /* a value on its way from text into a conf struct           */
    bool        b;
    uint32_t    u32;
    uint64_t    u64;
    double      f64;
    const char *str;
    const struct gw_value *value;
};

static size_t field_bytes(enum gw_param_type type)
{
    switch (type) {
    case GW_P_BOOL:
        return sizeof(bool);
    case GW_P_U32:
    case GW_P_CHOICE:
        return sizeof(uint32_t);
    case GW_P_F64:
    case GW_P_FRACTION:
        return sizeof(double);
    case GW_P_STRING:
    case GW_P_VALUE:
        return sizeof(void *);
    case GW_P_WORDS:
        return 0;
    default:
        return sizeof(uint64_t);
    }
}

static bool takes_auto(const struct gw_param *row)
{
    return row->max && !strcmp(row->max, "auto") &&
           (row->type == GW_P_U32 || row->type == GW_P_U64 || row->type == GW_P_BYTES);
}

/* Position of @text in the list "a|b|c", or GW_NONE. */
static uint32_t choice_index(const char *choices, const char *text)
{
    size_t n = strlen(text);

    if (!n || strchr(text, '|'))
        return GW_NONE;
    for (uint32_t i = 0;; i++) {
        size_t len = strcspn(choices, "|");

        if (len == n && !memcmp(choices, text, n))
            return i;
        if (!choices[len])
            return GW_NONE;
        choices += len + 1;
    }
}

static enum gw_status parse_choice(const char *choices, const char *text, uint32_t *out,
                                   struct gw_error *err)
{
    char a[GW_SHOW_BYTES], list[512], copy[512];
    const char *names[64], *near = NULL;
    size_t n = 0, at = 0;

    *out = choice_index(choices, text);
    if (*out != GW_NONE)
        return GW_OK;
    snprintf(copy, sizeof copy, "%s", choices);
    list[0] = '\0';
    for (char *save = NULL, *w = strtok_r(copy, "|", &save); w && n < 63;
         w = strtok_r(NULL, "|", &save)) {
        names[n++] = w;
        at += (size_t)snprintf(list + at, sizeof list - at, "%s%s", at ? ", " : "", w);
        if (at >= sizeof list)
            at = sizeof list - 1;
    }
    names[n] = NULL;
    near = gw_did_you_mean(text, names);
    if (near)
        return gw_fail(err, GW_PARAM, "\"%s\": allowed %s; did you mean \"%s\"?",
                       gw_show(text, a), list, near);
    return gw_fail(err, GW_PARAM, "\"%s\": allowed %s", gw_show(text, a), list);
}

static enum gw_status parse_u32(const char *text, uint32_t *out, struct gw_error *err)
{
    char a[GW_SHOW_BYTES];
    uint64_t v;
    enum gw_status st = gw_parse_u64(text, &v, err);

    if (st)
        return st;
    if (v > UINT32_MAX)
        return gw_fail(err, GW_PARAM, "\"%s\" is too large, allowed up to %u", gw_show(text, a),
                       UINT32_MAX);
    *out = (uint32_t)v;
    return GW_OK;
}

/* Text of any type but CHOICE and VALUE, without bounds. */
static enum gw_status parse_type(enum gw_param_type type, const char *text, union field *f,
                                 struct gw_error *err)
{
    switch (type) {
    case GW_P_BOOL:
        return gw_parse_bool(text, &f->b, err);
    case GW_P_U32:
        return parse_u32(text, &f->u32, err);
    case GW_P_U64:
        return gw_parse_u64(text, &f->u64, err);
    case GW_P_F64:
        return gw_parse_f64(text, &f->f64, err);
    case GW_P_TIME:
        return gw_parse_time(text, &f->u64, err);
    case GW_P_RATE:
        return gw_parse_rate(text, &f->u64, err);
    case GW_P_BYTES:
        return gw_parse_bytes(text, &f->u64, err);
    case GW_P_FRACTION:
        return gw_parse_fraction(text, &f->f64, err);
    case GW_P_STRING:
        f->str = text;
        return GW_OK;
    default:
        return gw_fail(err, GW_BUG, "an option of this type has no text of its own");
    }
}

/* -1, 0, 1 as a is below, at or above b. */
static int field_compare(enum gw_param_type type, const union field *a, const union field *b)
{
    switch (type) {
    case GW_P_U32:
        return (a->u32 > b->u32) - (a->u32 < b->u32);
    case GW_P_F64:
    case GW_P_FRACTION:
        return (a->f64 > b->f64) - (a->f64 < b->f64);
    case GW_P_U64:
    case GW_P_TIME:
    case GW_P_RATE:
    case GW_P_BYTES:
        return (a->u64 > b->u64) - (a->u64 < b->u64);
    default:
        return 0;
    }
}

/* Is @f, which stands as @text, within the row's bounds? */
static enum gw_status in_bounds(const struct gw_param *row, const union field *f, const char *text,
                                struct gw_error *err)
{
    const char *max = takes_auto(row) ? NULL : row->max;
    char a[GW_SHOW_BYTES];
    union field bound;
    bool below = row->min && !parse_type(row->type, row->min, &bound, NULL) &&
                 field_compare(row->type, f, &bound) < 0;
    bool above = max && !parse_type(row->type, max, &bound, NULL) &&
                 field_compare(row->type, f, &bound) > 0;

    if (!below && !above)
        return GW_OK;
    if (row->min && max)
        return gw_fail(err, GW_PARAM, "\"%s\": allowed %s to %s", gw_show(text, a), row->min, max);
    return gw_fail(err, GW_PARAM, "\"%s\": allowed %s %s", gw_show(text, a),
                   below ? "at least" : "at most", below ? row->min : max);
}

/* Text of one row into @f, bounds checked; sentences without any name in front. */
static enum gw_status parse_row(const struct gw_param *row, const char *text, union field *f,
                                struct gw_error *err)
{
    enum gw_status st;

    memset(f, 0, sizeof *f);
    if (row->type == GW_P_CHOICE)
        return parse_choice(row->min ? row->min : "", text, &f->u32, err);
    if (takes_auto(row) && !strcmp(text, "auto")) {
        if (row->type == GW_P_U32)
            f->u32 = UINT32_MAX;
        else
            f->u64 = UINT64_MAX;
        return GW_OK;
    }
    st = parse_type(row->type, text, f, err);
    if (st || row->type == GW_P_STRING || row->type == GW_P_BOOL)
        return st;
    return in_bounds(row, f, text, err);
}

static void field_store(const struct gw_param *row, void *conf, const union field *f)
{
    memcpy((char *)conf + row->offset, f, field_bytes(row->type));
}

static void field_load(const struct gw_param *row, const void *conf, union field *f)
{
    memset(f, 0, sizeof *f);
    memcpy(f, (const char *)conf + row->offset, field_bytes(row->type));
}

enum gw_status gw_param_set(const struct gw_param *row, void *conf, const char *text,
                            const char *where, struct gw_error *err)
{
    const char *colon = where && *where ? ": " : "";
    struct gw_error why = { GW_OK, "" };
    union field f;
    enum gw_status st;

    if (!where)
        where = "";
    if (row->type == GW_P_VALUE)
        return gw_fail(err, GW_PARAM, "%s%s%s cannot be given as one word; write it in the study",
                       where, colon, row->name);
    st = parse_row(row, text ? text : "", &f, &why);
    if (st)
        return gw_fail(err, st, "%s%s%s: %s", where, colon, row->name, why.text);
    field_store(row, conf, &f);
    return GW_OK;
}

enum gw_status gw_param_bounds(const struct gw_param *row, const void *conf, const char *text,
                               struct gw_error *err)
{
    union field f;

    field_load(row, conf, &f);
    return in_bounds(row, &f, text, err);
}

enum gw_status gw_value_read(const struct gw_value *v, enum gw_param_type type, void *out,
                             struct gw_error *err)
{
    struct gw_error why = { GW_OK, "" };
    char where[300];
    union field f;
    enum gw_status st;

    memset(&f, 0, sizeof f);
    if (type == GW_P_VALUE) {
        f.value = v;
    } else if (!v || v->kind != GW_V_SCALAR) {
        return gw_fail(err, GW_PARAM, "%s: %s%sa single value is expected here, not a %s",
                       gw_value_where(v, where, sizeof where), v && v->key ? v->key : "",
                       v && v->key ? ": " : "", v && v->kind == GW_V_LIST ? "list" : "map");
    } else {
        st = parse_type(type, v->text, &f, &why);
        if (st)
            return gw_fail(err, st, "%s: %s%s%s", gw_value_where(v, where, sizeof where),
                           v->key ? v->key : "", v->key ? ": " : "", why.text);
    }
    memcpy(out, &f, field_bytes(type));
    return GW_OK;
}

/* Appends to a fixed buffer; @at stops at its end. */
static void GW_PRINTF(4, 5) append(char *buf, size_t n, size_t *at, const char *fmt, ...)
{
    va_list ap;
    int k;

    if (*at >= n)
        return;
    va_start(ap, fmt);
    k = vsnprintf(buf + *at, n - *at, fmt, ap);
    va_end(ap);
    *at = k < 0 || (size_t)k >= n - *at ? n : *at + (size_t)k;
}

/* A tree in flow syntax, cut where the buffer ends. */
static void append_value(char *buf, size_t n, size_t *at, const struct gw_value *v)
{
    bool map = v->kind == GW_V_MAP;

    if (v->kind == GW_V_SCALAR) {
        append(buf, n, at, v->quoted ? "\"%s\"" : "%s", v->text);
        return;
    }
    append(buf, n, at, "%c", map ? '{' : '[');
    for (const struct gw_value *c = v->child; c && *at < n; c = c->next) {
        if (map)
            append(buf, n, at, "%s: ", c->key);
        append_value(buf, n, at, c);
        if (c->next)
            append(buf, n, at, ", ");
    }
    append(buf, n, at, "%c", map ? '}' : ']');
}

const char *gw_param_format(const struct gw_param *row, const void *conf, char *buf, size_t n)
{
    const char *choice = row->min ? row->min : "";
    union field f;
    size_t at = 0;

    field_load(row, conf, &f);
    if (n)
        buf[0] = '\0';
    switch (row->type) {
    case GW_P_BOOL:
        append(buf, n, &at, "%s", f.b ? "yes" : "no");
        break;
    case GW_P_U32:
        if (takes_auto(row) && f.u32 == UINT32_MAX)
            append(buf, n, &at, "auto");
        else
            append(buf, n, &at, "%u", f.u32);
        break;
    case GW_P_U64:
    case GW_P_BYTES:
        if (takes_auto(row) && f.u64 == UINT64_MAX)
            append(buf, n, &at, "auto");
        else if (row->type == GW_P_BYTES)
            gw_format_bytes(f.u64, buf, n);
        else
            append(buf, n, &at, "%llu", (unsigned long long)f.u64);
        break;
    case GW_P_F64:
        format_double(f.f64, 0, buf, n);
        break;
    case GW_P_TIME:
        gw_format_time(f.u64, buf, n);
        break;
    case GW_P_RATE:
        gw_format_rate(f.u64, buf, n);
        break;
    case GW_P_FRACTION:
        format_double(f.f64, 2, buf, n);
        at = strlen(buf);
        append(buf, n, &at, "%%");
        break;
    case GW_P_STRING:
        append(buf, n, &at, "%s", f.str ? f.str : "");
        break;
    case GW_P_CHOICE:
        for (uint32_t i = 0; i < f.u32 && *choice; i++) {
            choice += strcspn(choice, "|");
            choice += *choice == '|';
        }
        append(buf, n, &at, "%.*s", (int)strcspn(choice, "|"), choice);
        break;
    case GW_P_VALUE:
        if (f.value)
            append_value(buf, n, &at, f.value);
        break;
    default:
        break;
    }
    return buf;
}

/* ---- all rows of a reader ----------------------------------------------------------------- */

struct reading {
    const struct gw_param *rows;
    size_t             count;
    void              *conf;
    const char *const *skip;
    const char        *what;
    uint64_t           given;
    struct gw_error   *err;
};

#define PATH_BYTES 256

static enum gw_status value_fail(const struct reading *r, const struct gw_value *v,
                                 const char *path, const char *why)
{
    char where[300], a[GW_SHOW_BYTES];

    return gw_fail(r->err, GW_PARAM, "%s: %s%s%s%s%s", gw_value_where(v, where, sizeof where),
                   r->what ? r->what : "", r->what ? ": " : "", path ? gw_show(path, a) : "",
                   path ? ": " : "", why);
}

static bool in_list(const char *const *list, const char *word)
{
    for (; list && *list; list++)
        if (!strcmp(*list, word))
            return true;
    return false;
}

/* Is there a row "PATH.something"? */
static bool is_prefix(const struct reading *r, const char *path)
{
    size_t n = strlen(path);

    for (size_t i = 0; i < r->count; i++)
        if (!strncmp(r->rows[i].name, path, n) && r->rows[i].name[n] == '.')
            return true;
    return false;
}

/* Adds the part of @name that stands behind @prefix and before the next dot, if it is there. */
static void add_name(char (*pool)[64], const char **names, size_t *n, const char *name,
                     const char *prefix)
{
    size_t plen = strlen(prefix);

    if (*n >= GW_GIVEN_MAX * 2 || strncmp(name, prefix, plen) != 0)
        return;
    snprintf(pool[*n], sizeof pool[*n], "%.*s", (int)strcspn(name + plen, "."), name + plen);
    for (size_t i = 0; i < *n; i++)
        if (!strcmp(names[i], pool[*n]))
            return;
    names[*n] = pool[*n];
    ++*n;
}

/* A key that nobody knows: the nearest known one, or all of them. */
static enum gw_status unknown_key(const struct reading *r, const struct gw_value *v,
                                  const char *path)
{
    char pool[GW_GIVEN_MAX * 2][64], prefix[PATH_BYTES], why[600], a[GW_SHOW_BYTES];
    const char *names[GW_GIVEN_MAX * 2 + 1], *near, *dot = strrchr(path, '.');
    size_t n = 0, at = 0;

    snprintf(prefix, sizeof prefix, "%.*s", dot ? (int)(dot - path) + 1 : 0, path);
    for (size_t i = 0; i < r->count; i++)
        add_name(pool, names, &n, r->rows[i].name, prefix);
    for (const char *const *s = r->skip; s && *s; s++)
        add_name(pool, names, &n, *s, prefix);
    names[n] = NULL;
    near = gw_did_you_mean(v->key, names);
    append(why, sizeof why, &at, "unknown key \"%s\"", gw_show(path, a));
    if (near)
        append(why, sizeof why, &at, "; did you mean \"%s\"?", near);
    else
        append(why, sizeof why, &at, n ? "; known here: " : "; no key is known here");
    for (size_t i = 0; !near && i < n; i++)
        append(why, sizeof why, &at, "%s%s", i ? ", " : "", names[i]);
    return value_fail(r, v, NULL, why);
}

static enum gw_status read_scalar(struct reading *r, size_t i, struct gw_value *v,
                                  const char *path)
{
    const struct gw_param *row = &r->rows[i];
    struct gw_error why = { GW_OK, "" };
    union field f;

    if (r->given >> i & 1)
        return value_fail(r, v, path, "this option is given twice");
    if (row->type == GW_P_VALUE) {
        memset(&f, 0, sizeof f);
        f.value = v;
    } else if (v->kind != GW_V_SCALAR) {
        return value_fail(r, v, path, v->kind == GW_V_LIST
                          ? "a single value is expected here, not a list"
                          : "a single value is expected here, not a map");
    } else if (!v->quoted && !*v->text) {
        return value_fail(r, v, path, "no value stands behind this key");
    } else if (parse_row(row, v->text, &f, &why)) {
        return value_fail(r, v, path, why.text);
    }
    field_store(row, r->conf, &f);
    r->given |= UINT64_C(1) << i;
    return GW_OK;
}

/* The entries of one map; @prefix is "" or "nic.". */
static enum gw_status read_map(struct reading *r, struct gw_value *map, const char *prefix)
{
    char path[PATH_BYTES], below[PATH_BYTES + 1];
    enum gw_status st;
    size_t i;

    for (struct gw_value *v = map->child; v; v = v->next) {
        if ((size_t)snprintf(path, sizeof path, "%s%s", prefix, v->key) >= sizeof path)
            return value_fail(r, v, NULL, "a key is too long, allowed up to 200 bytes");
        if (in_list(r->skip, path))
            continue;
        for (i = 0; i < r->count && strcmp(r->rows[i].name, path) != 0; i++)
            ;
        if (i < r->count && (v->kind != GW_V_MAP || !is_prefix(r, path))) {
            v->used = true;
            st = read_scalar(r, i, v, path);
        } else if (is_prefix(r, path) && !strchr(v->key, '.')) {
            v->used = true;
            if (v->kind != GW_V_MAP)
                return value_fail(r, v, path, "a map of keys is expected here");
            snprintf(below, sizeof below, "%s.", path);
            st = read_map(r, v, below);
        } else {
            return unknown_key(r, v, path);
        }
        if (st)
            return st;
    }
    return GW_OK;
}

/* "hosts must be given, it has no default (number of hosts)" */
static void missing_text(const struct gw_param *row, char *buf, size_t n)
{
    const char *help = row->help ? row->help : "";
    int length = 0;

    while (help[length] && help[length] != ';' &&   /* the first sentence, "..." is none        */
           (help[length] != '.' || help[length + 1] == '.' || (length && help[length - 1] == '.')))
        length++;
    if (length)
        snprintf(buf, n, "%.60s must be given, it has no default (%c%.*s)", row->name,
                 tolower((unsigned char)*help), length > 240 ? 239 : length - 1, help + 1);
    else
        snprintf(buf, n, "%.60s must be given, it has no default", row->name);
}

/* Something else stands where a map belongs; a plugin that is named by a word alone is told how. */
static enum gw_status map_fail(struct reading *r, const struct gw_value *v)
{
    static const char *const kinds[] = { "transport", "topology", "qdisc", "channel" };
    char why[GW_SHOW_BYTES * 2], a[GW_SHOW_BYTES];
    const char *what = r->what ? r->what : "";

    for (size_t i = 0; v->kind == GW_V_SCALAR && i < GW_ARRAY_LEN(kinds); i++) {
        if (strncmp(what, kinds[i], strlen(kinds[i])))
            continue;
        snprintf(why, sizeof why, "a map is expected here; write {kind: %s}", gw_show(v->text, a));
        r->what = kinds[i];
        return value_fail(r, v, NULL, why);
    }
    return value_fail(r, v, NULL, "a map of keys is expected here");
}

/* Rows that the file did not give. */
static enum gw_status read_defaults(struct reading *r, struct gw_value *v)
{
    static const union field none;
    char why[GW_SHOW_BYTES * 3];
    struct gw_error sub = { GW_OK, "" };
    union field f;

    for (size_t i = 0; i < r->count; i++) {
        const struct gw_param *row = &r->rows[i];

        if (r->given >> i & 1)
            continue;
        if (!row->def) {
            missing_text(row, why, sizeof why);
            return value_fail(r, v, NULL, why);
        }
        if (!*row->def) {
            field_store(row, r->conf, &none);
            continue;
        }
        if (parse_row(row, row->def, &f, &sub))
            return value_fail(r, v, row->name, sub.text);
        field_store(row, r->conf, &f);
    }
    return GW_OK;
}

enum gw_status gw_params_read(const struct gw_param *rows, size_t count, void *conf,
                              struct gw_value *v, const char *const *skip, const char *what,
                              uint64_t *given, struct gw_error *err)
{
    struct reading r = { rows, count, conf, skip, what, 0, err };
    enum gw_status st;

    if (count > GW_GIVEN_MAX)
        return gw_fail(err, GW_BUG, "%s: %zu option rows, allowed up to %d", what ? what : "",
                       count, GW_GIVEN_MAX);
    if (v && v->kind != GW_V_MAP)
        return map_fail(&r, v);
    st = v ? read_map(&r, v, "") : GW_OK;
    if (!st)
        st = read_defaults(&r, v);
    if (given)
        *given = r.given;
    return st;
}

/* ---- checking the rows -------------------------------------------------------------------- */

static enum gw_status check_choices(const char *choices)
{
    size_t len;

    if (!choices || !*choices)
        return GW_PARAM;
    for (;; choices += len + 1) {
        len = strcspn(choices, "|");
        if (!len)
            return GW_PARAM;
        if (!choices[len])
            return GW_OK;
    }
}

static enum gw_status check_bounds(const struct gw_param *row, const char *what,
                                   struct gw_error *err)
{
    const char *text[2] = { row->min, takes_auto(row) ? NULL : row->max };
    struct gw_error why = { GW_OK, "" };
    union field f[2];

    for (int i = 0; i < 2; i++) {
        if (!text[i])
            continue;
        if (row->type == GW_P_BOOL || row->type == GW_P_STRING || row->type == GW_P_VALUE)
            return gw_fail(err, GW_PARAM, "%s: %s: this type takes no bounds", what, row->name);
        if (parse_type(row->type, text[i], &f[i], &why))
            return gw_fail(err, GW_PARAM, "%s: %s: bound: %s", what, row->name, why.text);
    }
    if (text[0] && text[1] && field_compare(row->type, &f[0], &f[1]) > 0)
        return gw_fail(err, GW_PARAM, "%s: %s: lower bound %s is above upper bound %s", what,
                       row->name, row->min, row->max);
    return GW_OK;
}

static enum gw_status check_row(const struct gw_param *row, const char *what, struct gw_error *err)
{
    struct gw_error why = { GW_OK, "" };
    enum gw_status st;
    union field f;

    if ((unsigned)row->type >= GW_P_TYPE_COUNT)
        return gw_fail(err, GW_PARAM, "%s: %s: option type %u is unknown, allowed 0 to %d", what,
                       row->name, (unsigned)row->type, GW_P_TYPE_COUNT - 1);
    if (row->type == GW_P_WORDS)           /* for help only: the plugin reads its words itself  */
        return GW_OK;
    if (row->type == GW_P_CHOICE) {
        if (check_choices(row->min))
            return gw_fail(err, GW_PARAM, "%s: %s: choices must be a list such as \"ring|tree\"",
                           what, row->name);
    } else {
        st = check_bounds(row, what, err);
        if (st)
            return st;
    }
    if (!row->def || !*row->def)
        return GW_OK;
    if (row->type == GW_P_VALUE)
        return gw_fail(err, GW_PARAM, "%s: %s: this type takes no default but \"\"", what,
                       row->name);
    st = parse_row(row, row->def, &f, &why);
    if (st)
        return gw_fail(err, GW_PARAM, "%s: %s: default: %s", what, row->name, why.text);
    return GW_OK;
}

enum gw_status gw_params_check(const struct gw_param *rows, size_t count, const char *what,
                               struct gw_error *err)
{
    enum gw_status st;

    if (!what)
        what = "options";
    if (count > GW_GIVEN_MAX)
        return gw_fail(err, GW_PARAM, "%s: %zu option rows, allowed up to %d", what, count,
                       GW_GIVEN_MAX);
    if (count && !rows)
        return gw_fail(err, GW_PARAM, "%s: %zu option rows are announced and none is there", what,
                       count);
    for (size_t i = 0; i < count; i++) {
        if (!rows[i].name || !*rows[i].name || strlen(rows[i].name) > 63)
            return gw_fail(err, GW_PARAM, "%s: option row %zu: its name must have 1 to 63 bytes",
                           what, i);
        for (size_t k = 0; k < i; k++)
            if (!strcmp(rows[i].name, rows[k].name))
                return gw_fail(err, GW_PARAM, "%s: two option rows are called \"%s\"", what,
                               rows[i].name);
        st = check_row(&rows[i], what, err);
        if (st)
            return st;
    }
    return GW_OK;
}

/* ---- values and names --------------------------------------------------------------------- */

struct gw_value *gw_value_get(struct gw_value *v, const char *key)
{
    if (!v || v->kind != GW_V_MAP)
        return NULL;
    for (v = v->child; v; v = v->next)
        if (!strcmp(v->key, key)) {
            v->used = true;
            return v;
        }
    return NULL;
}

const char *gw_value_where(const struct gw_value *v, char *buf, size_t n)
{
    if (!v || !v->file)
        snprintf(buf, n, "defaults");
    else if (!v->line)
        snprintf(buf, n, "%s", v->file);
    else
        snprintf(buf, n, "%s:%u:%u", v->file, v->line, v->col);
    return buf;
}

#define WORD_BYTES 48             /* longer words are no slips of the finger                   */

/* Edit distance where swapping two neighbours counts one (optimal string alignment); any case. */
static unsigned edit_distance(const char *a, size_t na, const char *b, size_t nb)
{
    unsigned row[3][WORD_BYTES + 1], *older = row[0], *old = row[1], *now = row[2], *t;

    for (size_t j = 0; j <= nb; j++)
        old[j] = (unsigned)j;
    memcpy(older, old, sizeof row[0]);
    for (size_t i = 1; i <= na; i++) {
        now[0] = (unsigned)i;
        for (size_t j = 1; j <= nb; j++) {
            int ca = lower((unsigned char)a[i - 1]), cb = lower((unsigned char)b[j - 1]);
            unsigned d = old[j - 1] + (ca != cb);

            if (old[j] + 1 < d)
                d = old[j] + 1;
            if (now[j - 1] + 1 < d)
                d = now[j - 1] + 1;
            if (i > 1 && j > 1 && ca == lower((unsigned char)b[j - 2]) &&
                cb == lower((unsigned char)a[i - 2]) && older[j - 2] + 1 < d)
                d = older[j - 2] + 1;
            now[j] = d;
        }
        t = older, older = old, old = now, now = t;
    }
    return old[nb];
}

const char *gw_did_you_mean(const char *word, const char *const *names)
{
    const char *best = NULL;
    size_t n = word ? strlen(word) : 0;
    unsigned limit, best_d = UINT32_MAX;

    if (!n || n > WORD_BYTES || !names)
        return NULL;
    for (; *names; names++) {
        size_t m = strlen(*names), longer = n > m ? n : m;
        unsigned d;

        if (m > WORD_BYTES)
            continue;
        limit = longer < 3 ? 1 : (unsigned)(longer + 2) / 3;
        d = edit_distance(word, n, *names, m);
        if (d <= limit && d < longer && d < best_d) {
            best = *names;
            best_d = d;
        }
    }
    return best;
}
