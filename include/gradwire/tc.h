/*
 * tc.h - tc(8)'s words: reading units as iproute2 6.1 does, printing text and JSON as it does
 *
 * The readers are inline and small, so that plugins need nothing but headers. Facts: iproute2 6.1 as
 * observed (times in microseconds without a unit, sizes powers of 1024, rates in bits with bps =
 * bytes per second, percentages out of 2^32 - 1).
 */
#ifndef GRADWIRE_TC_H
#define GRADWIRE_TC_H

#include <gradwire/qdisc.h>
#include <stdlib.h>
#include <strings.h>

/* Number and the rest; false: there is no number. Takes what strtod takes (hex, exponents). */
static inline bool gw_tc_number(const char *s, double *v, const char **rest)
{
    char *end;

    *v = strtod(s, &end);
    *rest = end;
    return end != s;
}

struct gw_tc_unit {
    const char *name;
    double      factor;
};

static inline bool gw_tc_unit_of(const char *s, const struct gw_tc_unit *u, size_t n, double *f)
{
    for (size_t i = 0; i < n; i++)
        if (!strcasecmp(s, u[i].name)) {
            *f = u[i].factor;
            return true;
        }
    return false;
}

/* Cut to an integer as the machine does it: what does not fit becomes -2^63. */
static inline int64_t gw_tc_integer(double v)
{
    return v > -9223372036854775808.0 && v < 9223372036854775808.0 ? (int64_t)v : INT64_MIN;
}

/* A sentence for check, explain and tc about a word that is taken and means something else. */
static inline void GW_PRINTF(2, 3) gw_tc_note(const struct gw_tc_args *a, const char *fmt, ...)
{
    size_t used = a->note ? strlen(a->note) : 0;
    va_list ap;

    if (!a->note || used + 2 >= a->note_bytes)
        return;
    if (used)
        a->note[used++] = '\n';
    va_start(ap, fmt);
    vsnprintf(a->note + used, a->note_bytes - used, fmt, ap);
    va_end(ap);
}

/* tc leaves the attribute out of its message when the value is 0. */
static inline void gw_tc_unsent(const struct gw_tc_args *a, const char *name, const char *word,
                                const char *by_default)
{
    gw_tc_note(a, "`%s %s` is not sent by tc: %s on a new qdisc, and what was set before on an old "
               "one", name, word, by_default);
}

/* A time as it was written, in microseconds; may be negative, infinite, no number. */
static inline bool gw_tc_asked_us(const char *s, double *us)
{
    static const struct gw_tc_unit u[] = { { "s", 1e6 }, { "sec", 1e6 }, { "secs", 1e6 },
        { "ms", 1e3 }, { "msec", 1e3 }, { "msecs", 1e3 }, { "us", 1 }, { "usec", 1 },
        { "usecs", 1 } };
    const char *rest;
    double v, f = 1;

    if (!gw_tc_number(s, &v, &rest) || (*rest && !gw_tc_unit_of(rest, u, GW_ARRAY_LEN(u), &f)))
        return false;
    *us = v * f;
    return true;
}

/* Time in microseconds, cut to an integer (get_time); no unit: microseconds. */
static inline bool gw_tc_time_us(const char *s, uint32_t *us)
{
    double v;

    if (!gw_tc_asked_us(s, &v))
        return false;
    *us = (uint32_t)gw_tc_integer(v);
    return true;
}

/* The same for the option @name of a line; a time that is another one than was written is noted. */
static inline bool gw_tc_time(const struct gw_tc_args *a, const char *name, const char *s,
                              uint32_t *us)
{
    double v;

    if (!gw_tc_time_us(s, us) || !gw_tc_asked_us(s, &v))
        return false;
    if (!(v >= 0 && v - *us < 1e-3 * (v > 1 ? v : 1)))
        gw_tc_note(a, "`%s %s` counts as %.7gms: tc keeps whole microseconds in 32 bits", name, s,
                   *us / 1e3);
    return true;
}

/* Time in nanoseconds (get_time64); no unit: nanoseconds. */
static inline bool gw_tc_time_ns(const char *s, int64_t *ns)
{
    static const struct gw_tc_unit u[] = { { "s", 1e9 }, { "sec", 1e9 }, { "secs", 1e9 },
        { "ms", 1e6 }, { "msec", 1e6 }, { "msecs", 1e6 }, { "us", 1e3 }, { "usec", 1e3 },
        { "usecs", 1e3 }, { "ns", 1 }, { "nsec", 1 }, { "nsecs", 1 } };
    const char *rest;
    double v, f = 1;

    if (!gw_tc_number(s, &v, &rest) || (*rest && !gw_tc_unit_of(rest, u, GW_ARRAY_LEN(u), &f)))
        return false;
    *ns = gw_tc_integer(v * f);
    return true;
}

/* Rate in bit/s; bps and friends are bytes per second; "N%" of @dev_bps (0: refused). */
static inline bool gw_tc_rate_bps(const char *s, uint64_t dev_bps, uint64_t *bps)
{
    static const struct gw_tc_unit u[] = { { "bit", 1 }, { "Kibit", 1024 }, { "kbit", 1e3 },
        { "Mibit", 1048576.0 }, { "mbit", 1e6 }, { "Gibit", 1073741824.0 }, { "gbit", 1e9 },
        { "Tibit", 1099511627776.0 }, { "tbit", 1e12 }, { "Bps", 8 }, { "KiBps", 8192 },
        { "KBps", 8e3 }, { "MiBps", 8388608.0 }, { "MBps", 8e6 }, { "GiBps", 8589934592.0 },
        { "GBps", 8e9 }, { "TiBps", 8796093022208.0 }, { "TBps", 8e12 } };
    const char *rest;
    double v, f = 1;

    if (!gw_tc_number(s, &v, &rest))
        return false;
    if (!strcmp(rest, "%")) {
        if (!dev_bps || !(v >= 0 && v <= 100))
            return false;
        *bps = (uint64_t)(v / 100 * (double)dev_bps);
        return true;
    }
    if (*rest && !gw_tc_unit_of(rest, u, GW_ARRAY_LEN(u), &f))
        return false;
    v *= f;
    if (!(v >= 0 && v < 18446744073709551615.0))
        return false;
    *bps = (uint64_t)v & ~UINT64_C(7);               /* tc sends whole bytes per second        */
    return true;
}

/* Size in bytes (get_size): b k kb m mb g gb, powers of 1024; kbit mbit gbit likewise / 8. */
static inline bool gw_tc_size(const char *s, uint32_t *bytes)
{
    static const struct gw_tc_unit u[] = { { "b", 1 }, { "k", 1024 }, { "kb", 1024 },
        { "m", 1048576 }, { "mb", 1048576 }, { "g", 1073741824 }, { "gb", 1073741824 },
        { "kbit", 128 }, { "mbit", 131072 }, { "gbit", 134217728 } };
    const char *rest;
    double v, f = 1;

    if (!gw_tc_number(s, &v, &rest) || (*rest && !gw_tc_unit_of(rest, u, GW_ARRAY_LEN(u), &f)))
        return false;
    v *= f;
    if (!(v >= 0 && v < 4294967296.0))
        return false;
    *bytes = (uint32_t)v;
    return true;
}

/* Percentage as a share of 2^32 - 1 (get_percent); "%" optional; 0..100 only. */
static inline bool gw_tc_percent(const char *s, uint32_t *share)
{
    const char *rest;
    double v;

    if (!gw_tc_number(s, &v, &rest) || (*rest && strcmp(rest, "%")))
        return false;
    v /= 100;
    if (!(v >= 0 && v <= 1))
        return false;
    *share = (uint32_t)rint(v * 4294967295.0);
    return true;
}

static inline bool gw_tc_u32(const char *s, uint32_t *v)
{
    char *end;
    unsigned long n = strtoul(s, &end, 0);

    if (end == s || *end || *s == '-' || n > UINT32_MAX)
        return false;
    *v = (uint32_t)n;
    return true;
}

/* "1:10", "1:", "root"-less class ids in hex: major << 16 | minor (get_tc_classid). */
static inline bool gw_tc_classid(const char *s, uint32_t *id)
{
    char *end;
    unsigned long major, minor = 0;

    major = strtoul(s, &end, 16);
    if (*end == ':') {
        const char *m = end + 1;

        if (major > 0xffff)
            return false;
        if (*m) {
            minor = strtoul(m, &end, 16);
            if (*end || minor > 0xffff)
                return false;
        }
        *id = (uint32_t)(major << 16 | minor);
        return true;
    }
    if (*end || end == s)
        return false;
    *id = (uint32_t)major;
    return true;
}

/* iproute2's matches(): @word is a beginning of @full (and not empty). */
static inline bool gw_tc_matches(const char *word, const char *full)
{
    size_t n = strlen(word);

    return n && !strncmp(word, full, n);
}

/*
 * Output: every call writes text or JSON, as the command was asked for. @key NULL: text only;
 * @fmt NULL: JSON only. A format takes the one value that the call's name says.
 */
struct gw_tc_out {
    bool json, stats, details, pretty, iec, raw;
    void (*u64)(struct gw_tc_out *o, const char *key, const char *fmt, unsigned long long v);
    void (*i64)(struct gw_tc_out *o, const char *key, const char *fmt, long long v);
    void (*real)(struct gw_tc_out *o, const char *key, const char *fmt, double v);
    void (*str)(struct gw_tc_out *o, const char *key, const char *fmt, const char *v);
    /* JSON: true/false; text: @fmt (without a value) if @v. */
    void (*flag)(struct gw_tc_out *o, const char *key, const char *fmt, bool v);
    void (*null)(struct gw_tc_out *o, const char *key, const char *fmt);   /* JSON: null       */
    void (*open)(struct gw_tc_out *o, const char *key, bool array);
    void (*close)(struct gw_tc_out *o, bool array);
    void (*newline)(struct gw_tc_out *o);             /* text only: next line with two blanks  */
    /* iproute2's spellings: "10Mbit", "5ms", "32Mb". @buf of 64. */
    const char *(*rate)(const struct gw_tc_out *o, uint64_t bytes_per_s, char *buf);
    const char *(*time)(const struct gw_tc_out *o, uint32_t us, char *buf);
    const char *(*time64)(const struct gw_tc_out *o, int64_t ns, char *buf);
    const char *(*size)(const struct gw_tc_out *o, uint64_t bytes, char *buf);
    void *priv;
};

/* A sentence for a word that tc does not take in this place. */
static inline enum gw_status gw_tc_what(struct gw_error *err, const char *kind, const char *word)
{
    return gw_fail(err, GW_SYNTAX, "What is \"%s\"? `gradwire help qdisc %s` lists the words that "
                   "belong here", word, kind);
}

static inline enum gw_status gw_tc_illegal(struct gw_error *err, const char *what,
                                           const char *word, const char *right)
{
    return gw_fail(err, GW_SYNTAX, "Illegal \"%s\": \"%s\"; %s is right", what, word, right);
}

/* The sentence @what, and if the line has @name with a value, then that this value says none. */
static inline enum gw_status gw_tc_missing(struct gw_error *err, const struct gw_tc_args *a,
                                           const char *name, const char *what)
{
    for (uint32_t i = a->count; i-- > 1;)
        if (gw_tc_matches(a->word[i - 1], name))
            return gw_fail(err, GW_SYNTAX, "%s: `%s %s` gives none", what, a->word[i - 1],
                           a->word[i]);
    return gw_fail(err, GW_SYNTAX, "%s", what);
}

static inline enum gw_status gw_tc_incomplete(struct gw_error *err, const char *word)
{
    return gw_fail(err, GW_INCOMPLETE, "Command line is not complete: \"%s\" needs a value", word);
}

#endif
