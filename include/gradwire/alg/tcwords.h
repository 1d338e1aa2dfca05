/*
 * alg/tcwords.h - words of a tc line into a struct, by a table
 *
 * Most disciplines take `word VALUE` pairs and plain flags in any order. One row of a table names a
 * word, how iproute2 reads its value and where it goes; the loop, the sentences and the "given"
 * bits are the same for all.
 */
#ifndef GRADWIRE_ALG_TCWORDS_H
#define GRADWIRE_ALG_TCWORDS_H

#include <gradwire/plugin.h>

enum gw_tcword_type {
    GW_TCW_U32,          /* uint32_t: a count (get_unsigned, get_u32)                          */
    GW_TCW_I32,          /* int32_t:  may be negative (get_integer)                            */
    GW_TCW_SIZE,         /* uint32_t bytes (get_size)                                          */
    GW_TCW_TIME,         /* uint32_t us (get_time)                                             */
    GW_TCW_NS,           /* uint32_t ns (get_time64, must fit)                                 */
    GW_TCW_RATE,         /* uint32_t bytes/s (get_rate)                                        */
    GW_TCW_RATE_DEV,     /* the same, or a share of the device's speed                         */
    GW_TCW_DOUBLE,       /* double: what a number begins the word with (sscanf %lg)            */
    GW_TCW_SET,          /* a flag without value: uint32_t = value                             */
    GW_TCW_OR,           /* a flag without value: uint32_t |= value                            */
};

struct gw_tcword {
    const char         *name;
    enum gw_tcword_type type;
    size_t              offset;
    uint32_t            value;       /* of a flag                                              */
    uint64_t            given;       /* bits set in *given                                     */
    const char         *right;       /* "a count of packets": what would be right              */
};

static inline bool gw_tcword_rate(const char *s, uint64_t dev_bps, uint32_t *bytes_per_s)
{
    uint64_t bps;

    if (!gw_tc_rate_bps(s, dev_bps, &bps) || bps / 8 > UINT32_MAX)
        return false;
    *bytes_per_s = (uint32_t)(bps / 8);
    return true;
}

static inline bool gw_tcword_i32(const char *s, int32_t *v)
{
    char *end;
    long n = strtol(s, &end, 0);

    if (end == s || *end || n > INT32_MAX || n < INT32_MIN)
        return false;
    *v = (int32_t)n;
    return true;
}

static inline bool gw_tcword_value(const struct gw_tcword *w, const struct gw_tc_args *a,
                                   const char *s, void *at)
{
    const char *rest;
    int64_t ns;

    switch (w->type) {
    case GW_TCW_U32:
        return gw_tc_u32(s, at);
    case GW_TCW_I32:
        return gw_tcword_i32(s, at);
    case GW_TCW_SIZE:
        return gw_tc_size(s, at);
    case GW_TCW_TIME:
        return gw_tc_time(a, w->name, s, at);
    case GW_TCW_RATE:
        return gw_tcword_rate(s, 0, at);
    case GW_TCW_RATE_DEV:
        return gw_tcword_rate(s, a->dev_rate_bps, at);
    case GW_TCW_DOUBLE:
        return gw_tc_number(s, at, &rest);
    case GW_TCW_NS:
        if (!gw_tc_time_ns(s, &ns) || ns < 0 || ns > UINT32_MAX)
            return false;
        *(uint32_t *)at = (uint32_t)ns;
        return true;
    default:
        return false;
    }
}

/*
 * gw_tcwords_read() - reads all words from @first on by the table @w into @base
 *
 * Sets the rows' bits in *@given. A word that no row names is "What is ...?", one without its value
 * ends the line too early, as iproute2 has it.
 */
static inline enum gw_status gw_tcwords_read(const char *kind, const struct gw_tcword *w, size_t n,
                                             const struct gw_tc_args *a, uint32_t first,
                                             void *base, uint64_t *given, struct gw_error *err)
{
    for (uint32_t i = first; i < a->count; i++) {
        const struct gw_tcword *row = w;
        char *at;

        while (row < w + n && strcmp(a->word[i], row->name))
            row++;
        if (row == w + n)
            return gw_tc_what(err, kind, a->word[i]);
        at = (char *)base + row->offset;
        *given |= row->given;
        if (row->type == GW_TCW_SET) {
            *(uint32_t *)at = row->value;
        } else if (row->type == GW_TCW_OR) {
            *(uint32_t *)at |= row->value;
        } else {
            if (++i == a->count)
                return gw_tc_incomplete(err, row->name);
            if (!gw_tcword_value(row, a, a->word[i], at))
                return gw_tc_illegal(err, row->name, a->word[i], row->right);
        }
    }
    return GW_OK;
}

/* A number that tc does not send if it is 0, and its default. */
struct gw_tcword_unsent {
    const char *name;
    size_t      offset;              /* of the uint32_t in the struct that was read            */
    const char *by_default;
};

/* Notes those of the table that the line gives as 0, so that the word changes nothing. */
static inline void gw_tcwords_unsent(const struct gw_tcword_unsent *u, size_t n,
                                     const struct gw_tc_args *a, const void *base)
{
    for (size_t k = 0; k < n; k++)
        for (uint32_t i = 0; !*(const uint32_t *)(const void *)((const char *)base + u[k].offset) &&
                             i + 1 < a->count; i++)
            if (!strcmp(a->word[i], u[k].name))
                gw_tc_unsent(a, u[k].name, a->word[i + 1], u[k].by_default);
}

#endif
