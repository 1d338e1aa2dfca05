/*
 * expect - the small language of `expect:`
 *
 *     expectation = sum ( "<" | "<=" | ">" | ">=" | "==" | "!=" ) sum  |  sum "in" sum ".." sum
 *     sum         = product { ( "+" | "-" ) product }
 *     product     = factor { ( "*" | "/" ) factor }
 *     factor      = number | name | "(" sum ")" | "-" factor
 *
 * Numbers are in SI base units, as names are (iterations.mean_s). A name is made of letters, digits
 * and _ . : with two additions for what links and hosts are called: a "-" with no space on either
 * side belongs to it (write a - b to subtract), and a part may stand in double quotes
 * (links."New York-Denver:a".bytes). `in` takes both bounds in. == compares doubles exactly, which
 * is right for counts. Left out: functions, logic (write two expectations instead).
 */
#include "emu/core/expect.h"

#include <math.h>
#include <stdlib.h>

#define NAME_MAX_BYTES 256u
#define DEPTH_MAX      64u

struct parser {
    const char *text, *at;
    gw_expect_lookup lookup;      /* NULL: check the form only                                  */
    bool      (*known)(void *ctx, const char *name); /* may be NULL: is there such a device?    */
    void       *ctx;
    unsigned    depth;
    struct gw_error *err;
    enum gw_status   code;        /* the first failure                                          */
};

static double parse_sum(struct parser *p);

static double fail_at(struct parser *p, const char *at, enum gw_status code, const char *what)
{
    if (p->code == GW_OK) {
        p->code = code;
        gw_fail(p->err, code, "expect: column %zu of `%.200s`: %s", (size_t)(at - p->text) + 1,
                p->text, what);
    }
    return NAN;
}

static void skip_space(struct parser *p)
{
    while (*p->at == ' ' || *p->at == '\t')
        p->at++;
}

static bool take(struct parser *p, char c)
{
    skip_space(p);
    if (*p->at != c)
        return false;
    p->at++;
    return true;
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_name(char c)
{
    return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
           c == ':' || (unsigned char)c >= 0x80;
}

/* The length of the number at @s; "0.9..1.1" holds 0.9 first. */
static size_t number_length(const char *s)
{
    size_t n = 0, e;

    while (is_digit(s[n]))
        n++;
    if (s[n] == '.' && is_digit(s[n + 1])) {
        n++;
        while (is_digit(s[n]))
            n++;
    }
    if (s[n] == 'e' || s[n] == 'E') {
        e = n + 1;
        e += s[e] == '+' || s[e] == '-';
        if (is_digit(s[e])) {
            while (is_digit(s[e]))
                e++;
            n = e;
        }
    }
    return n;
}

static double parse_number(struct parser *p)
{
    const char *start = p->at;
    char buf[64];
    size_t n = number_length(start);

    if (n >= sizeof buf)
        return fail_at(p, start, GW_SYNTAX, "more than 63 characters of number; write it shorter");
    memcpy(buf, start, n);
    buf[n] = 0;
    p->at += n;
    if (is_name(*p->at))
        return fail_at(p, p->at, GW_SYNTAX, "a number has no unit here; names tell theirs (_s, "
                       "_bytes), so write 0.02 for 20 ms");
    return strtod(buf, NULL);
}

/* Whether the name goes on at @s; "." and "-" need something behind them. */
static bool name_goes_on(const char *s)
{
    return is_name(*s) || *s == '"' ||
           ((*s == '.' || *s == '-') && (is_name(s[1]) || s[1] == '"'));
}

static bool quoted_part(struct parser *p, char *buf, size_t *n)
{
    for (p->at++; *p->at && *p->at != '"'; p->at++)
        if (*n + 1 < NAME_MAX_BYTES)
            buf[(*n)++] = *p->at;
    if (!*p->at)
        return false;
    p->at++;
    return true;
}

/* The device of links.DEV.QUANTITY or links.DEV.drops.REASON into @dev. */
static bool device_of(const char *name, char dev[NAME_MAX_BYTES])
{
    const char *dot = strrchr(name, '.'), *begin = name + 6;
    size_t n = dot > begin ? (size_t)(dot - begin) : 0;

    if (n > 6 && !strncmp(dot - 6, ".drops", 6))
        n -= 6;
    memcpy(dev, begin, n);
    dev[n] = 0;
    return n > 0;
}

/* A name without a run: may it have a value at all? */
static double check_name(struct parser *p, const char *start, const char *name)
{
    static const char *const kinds[] = { "iterations.", "flows.", "jobs.", "packets.", "drops." };
    char dev[NAME_MAX_BYTES], what[2 * NAME_MAX_BYTES];

    if (!strncmp(name, "links.", 6)) {
        if (device_of(name, dev) && p->known(p->ctx, dev))
            return 1;
        snprintf(what, sizeof what, "no end of a link is called \"%s\"; write links.DEV.QUANTITY, "
                 "such as links.wan:a.bytes", dev);
        return fail_at(p, start, GW_PARAM, what);
    }
    for (size_t i = 0; i < GW_ARRAY_LEN(kinds); i++)
        if (!strncmp(name, kinds[i], strlen(kinds[i])) && name[strlen(kinds[i])])
            return 1;
    if (!strcmp(name, "sim_s"))
        return 1;
    snprintf(what, sizeof what, "%s is no name that a run answers to; they begin with iterations., "
             "flows., jobs., links., packets. or drops., or are sim_s", name);
    return fail_at(p, start, GW_PARAM, what);
}

static double parse_name(struct parser *p)
{
    const char *start = p->at;
    char buf[NAME_MAX_BYTES], what[NAME_MAX_BYTES + 64];
    size_t n = 0;
    double value = NAN;

    while (name_goes_on(p->at)) {
        if (*p->at == '"') {
            if (!quoted_part(p, buf, &n))
                return fail_at(p, start, GW_SYNTAX, "a quote that is not closed");
            continue;
        }
        if (n + 1 < sizeof buf)
            buf[n++] = *p->at;
        p->at++;
    }
    buf[n] = 0;
    if (n + 1 >= sizeof buf)
        return fail_at(p, start, GW_SYNTAX, "a name of more than 254 bytes");
    if (p->known)
        return check_name(p, start, buf);
    if (!p->lookup)
        return 1;
    if (!p->lookup(p->ctx, buf, &value)) {
        snprintf(what, sizeof what, "%s has no value in this run; emu/core/schema.md lists "
                 "the names", buf);
        return fail_at(p, start, GW_PARAM, what);
    }
    return value;
}

static double parse_factor(struct parser *p)
{
    double v;

    skip_space(p);
    if (++p->depth > DEPTH_MAX)
        return fail_at(p, p->at, GW_SYNTAX, "more than 64 levels of parentheses or signs");
    if (take(p, '-')) {
        v = -parse_factor(p);
    } else if (take(p, '(')) {
        v = parse_sum(p);
        if (p->code == GW_OK && !take(p, ')'))
            v = fail_at(p, p->at, GW_SYNTAX, "\")\" is missing");
    } else if (is_digit(*p->at)) {
        v = parse_number(p);
    } else if (is_name(*p->at) || *p->at == '"') {
        v = parse_name(p);
    } else {
        v = fail_at(p, p->at, GW_SYNTAX, "a number, a name or \"(\" should stand here");
    }
    p->depth--;
    return v;
}

static double parse_product(struct parser *p)
{
    double v = parse_factor(p);

    while (p->code == GW_OK) {
        if (take(p, '*'))
            v *= parse_factor(p);
        else if (take(p, '/'))
            v /= parse_factor(p);
        else
            break;
    }
    return v;
}

static double parse_sum(struct parser *p)
{
    double v = parse_product(p);

    while (p->code == GW_OK) {
        if (take(p, '+'))
            v += parse_product(p);
        else if (take(p, '-'))
            v -= parse_product(p);
        else
            break;
    }
    return v;
}

/* A side of the comparison: a sum that is a number. */
static double parse_side(struct parser *p)
{
    const char *start;
    double v;

    skip_space(p);
    start = p->at;
    v = parse_sum(p);
    if (p->code == GW_OK && p->lookup && !isfinite(v))
        return fail_at(p, start, GW_RANGE, "the result is no number (a division by zero?)");
    return v;
}

enum compare { CMP_LT, CMP_LE, CMP_GT, CMP_GE, CMP_EQ, CMP_NE, CMP_IN, CMP_NONE };

static enum compare parse_compare(struct parser *p)
{
    static const char *const words[] = { [CMP_LT] = "<",  [CMP_LE] = "<=", [CMP_GT] = ">",
                                         [CMP_GE] = ">=", [CMP_EQ] = "==", [CMP_NE] = "!=" };
    enum compare best = CMP_NONE;
    size_t length = 0;

    skip_space(p);
    if (!strncmp(p->at, "in", 2) && !is_name(p->at[2])) {
        p->at += 2;
        return CMP_IN;
    }
    for (int i = CMP_LT; i <= CMP_NE; i++) {
        size_t n = strlen(words[i]);

        if (n > length && !strncmp(p->at, words[i], n)) {
            best = (enum compare)i;
            length = n;
        }
    }
    p->at += length;
    if (best == CMP_NONE)
        fail_at(p, p->at, GW_SYNTAX, "a comparison should stand here: < <= > >= == != or in A..B");
    return best;
}

static bool compare(enum compare how, double a, double b, double c)
{
    switch (how) {
    case CMP_LT: return a < b;
    case CMP_LE: return a <= b;
    case CMP_GT: return a > b;
    case CMP_GE: return a >= b;
    case CMP_EQ: return a == b;
    case CMP_NE: return a != b;
    case CMP_IN: return a >= b && a <= c;
    case CMP_NONE: break;
    }
    return false;
}

/* The upper bound behind "in A". */
static double parse_upper(struct parser *p)
{
    skip_space(p);
    if (p->at[0] != '.' || p->at[1] != '.')
        return fail_at(p, p->at, GW_SYNTAX, "\"..\" and the upper bound should stand here, as in "
                       "0.9..1.1");
    p->at += 2;
    return parse_side(p);
}

static enum gw_status parse(struct parser *p, bool *holds, double *found)
{
    double left, right = NAN, upper = NAN;
    enum compare how = CMP_NONE;

    left = parse_side(p);
    if (p->code == GW_OK)
        how = parse_compare(p);
    if (p->code == GW_OK)
        right = parse_side(p);
    if (p->code == GW_OK && how == CMP_IN)
        upper = parse_upper(p);
    skip_space(p);
    if (p->code == GW_OK && *p->at)
        fail_at(p, p->at, GW_SYNTAX, "the expectation should end here");
    if (p->code == GW_OK && how == CMP_IN && p->lookup && right > upper)
        fail_at(p, p->text, GW_RANGE, "the lower bound is above the upper one");
    *holds = p->code == GW_OK && compare(how, left, right, upper);
    if (found)
        *found = left;
    return p->code;
}

enum gw_status gw_expect_eval(const char *text, gw_expect_lookup lookup, void *ctx, bool *holds,
                              double *found, struct gw_error *err)
{
    struct parser p = { .text = text, .at = text, .lookup = lookup, .ctx = ctx, .err = err };

    return parse(&p, holds, found);
}

enum gw_status gw_expect_names(const char *text, bool (*known)(void *ctx, const char *name),
                               void *ctx, struct gw_error *err)
{
    struct parser p = { .text = text, .at = text, .known = known, .ctx = ctx, .err = err };
    bool holds;

    return parse(&p, &holds, NULL);
}

enum gw_status gw_expect_check(const char *text, struct gw_error *err)
{
    bool holds;

    return gw_expect_eval(text, NULL, NULL, &holds, NULL, err);
}
