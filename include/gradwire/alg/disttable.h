/*
 * alg/disttable.h - delay distributions as tables, as netem uses them
 *
 * A table is the inverse of a distribution function at even steps: 16-bit values, 8192 to one
 * standard deviation; a draw picks one entry. iproute2 installs four of 4096 entries. Three are
 * made here from their definitions and equal iproute2's value by value: normal; pareto, shape 3,
 * shifted and scaled towards mean 0 and deviation 1, cut at 4; paretonormal, a quarter of the first
 * plus three quarters of the second. The fourth, experimental, stems from round trips that NIST Net
 * (public domain) measured: here 57 of its quantiles with straight lines between them, at most
 * 0.007 deviations from iproute2's. Tables of one's own are text: integers; a line that begins with
 * # is a comment.
 */
#ifndef GRADWIRE_ALG_DISTTABLE_H
#define GRADWIRE_ALG_DISTTABLE_H

#include <gradwire/base.h>
#include <math.h>
#include <stdlib.h>

#define GW_DIST_SCALE  8192          /* one standard deviation                                 */
#define GW_DIST_MADE   4096u         /* entries of the four                                    */
#define GW_DIST_MAX    16384u        /* entries of a table at most                             */

enum gw_dist { GW_DIST_NORMAL, GW_DIST_PARETO, GW_DIST_PARETONORMAL, GW_DIST_EXPERIMENTAL,
               GW_DIST_NONE };

static inline enum gw_dist gw_dist_named(const char *name)
{
    static const char *const names[] = { "normal", "pareto", "paretonormal", "experimental" };

    for (size_t i = 0; i < GW_ARRAY_LEN(names); i++)
        if (!strcmp(name, names[i]))
            return (enum gw_dist)i;
    return GW_DIST_NONE;
}

/*
 * Quantile @i of 16384 of the standard normal distribution as the published table has it: the last
 * of the abscissas -10, -9.99995, ... whose share rounds to i. @from: a point to search from.
 */
static inline double gw_dist_normal_quantile(uint32_t i, double from)
{
    const double want = (i + 0.5) / 16384, density = 0.3989422804014327;

    for (int n = 0; n < 60; n++) {
        double step = (want - erfc(-from / sqrt(2)) / 2) / (density * exp(-from * from / 2));

        step = step > 0.25 ? 0.25 : step < -0.25 ? -0.25 : step;
        from += step;
        if (fabs(step) < 1e-13)
            break;
    }
    return floor((from + 10) / 5e-5 + 1e-6) * 5e-5 - 10;
}

static inline double gw_dist_pareto_quantile(uint32_t i)
{
    double v = (pow(1 - i / 16384.0, -1.0 / 3) - 1.5) * 4 / 3 * GW_DIST_SCALE;

    return rint(v > 32767 ? 32767 : v);
}

/* NIST Net's experimental distribution: entry and value; straight lines between. */
static inline int32_t gw_dist_experimental(uint32_t i)
{
    static const struct { uint16_t at; int16_t value; } q[] = {
        { 0, -10576 }, { 1, -10197 }, { 7, -9819 }, { 27, -9378 }, { 37, -9252 }, { 108, -8748 },
        { 195, -8369 }, { 347, -7802 }, { 1099, -5596 }, { 1504, -4272 }, { 1901, -2755 },
        { 2308, -868 }, { 2604, 960 }, { 2934, 3418 }, { 3120, 4931 }, { 3392, 7326 },
        { 3606, 9395 }, { 3790, 11486 }, { 3885, 12999 }, { 3903, 13441 }, { 3913, 13567 },
        { 3923, 13882 }, { 3944, 14323 }, { 3973, 15205 }, { 3980, 15332 }, { 4005, 16277 },
        { 4016, 17034 }, { 4022, 17286 }, { 4023, 17412 }, { 4029, 17727 }, { 4031, 18042 },
        { 4037, 18357 }, { 4038, 18546 }, { 4040, 18609 }, { 4043, 18925 }, { 4045, 18988 },
        { 4057, 19933 }, { 4060, 20564 }, { 4063, 21068 }, { 4064, 21509 }, { 4065, 21761 },
        { 4067, 22455 }, { 4068, 22644 }, { 4069, 23148 }, { 4071, 23652 }, { 4072, 24030 },
        { 4073, 24913 }, { 4074, 25985 }, { 4075, 26174 }, { 4076, 26993 }, { 4077, 28128 },
        { 4078, 28947 }, { 4079, 29136 }, { 4080, 30082 }, { 4081, 30712 }, { 4082, 32767 },
        { 4095, 32767 },
    };
    size_t k = 0;

    while (q[k + 1].at < i)
        k++;
    return q[k].value + (q[k + 1].value - q[k].value) * (int32_t)(i - q[k].at) /
                        (q[k + 1].at - q[k].at);
}

/* Fills @out with the GW_DIST_MADE entries of @kind (not GW_DIST_NONE). */
static inline void gw_dist_make(enum gw_dist kind, int16_t *out)
{
    double x = -4;

    for (uint32_t n = 0; n < GW_DIST_MADE; n++) {
        double v = 0;

        if (kind == GW_DIST_NORMAL || kind == GW_DIST_PARETONORMAL) {
            x = gw_dist_normal_quantile(4 * n, x);
            v = rint(x * GW_DIST_SCALE);
        }
        if (kind == GW_DIST_PARETO)
            v = gw_dist_pareto_quantile(4 * n);
        else if (kind == GW_DIST_PARETONORMAL)
            v = trunc((v + 3 * gw_dist_pareto_quantile(4 * n)) / 4);
        else if (kind == GW_DIST_EXPERIMENTAL)
            v = gw_dist_experimental(n);
        out[n] = (int16_t)(v < INT16_MIN ? INT16_MIN : v > INT16_MAX ? INT16_MAX : v);
    }
}

/* One word of a table into out[*n]. */
static inline bool gw_dist_word(const char *word, const char *name, uint32_t row, int16_t *out,
                                uint32_t *n, struct gw_error *err)
{
    char *end;
    long v = strtol(word, &end, 0);

    if (end == word || *end || v < INT16_MIN || v > INT16_MAX) {
        gw_fail(err, GW_SYNTAX, "%s:%u: \"%s\" is no entry of a distribution; integers from -32768 "
                "to 32767 are right", name, row, word);
        return false;
    }
    if (*n == GW_DIST_MAX) {
        gw_fail(err, GW_SYNTAX, "%s:%u: too much data; a distribution has at most %u entries",
                name, row, GW_DIST_MAX);
        return false;
    }
    out[(*n)++] = (int16_t)v;
    return true;
}

/*
 * gw_dist_read() - reads a table's text from @f (named @name) into @out, room for GW_DIST_MAX
 *
 * Words are parted by blanks and line ends, a line that begins with # is left out. Returns the
 * number of entries, 0 with a sentence in @err when the text is no table.
 */
static inline uint32_t gw_dist_read(FILE *f, const char *name, int16_t *out, struct gw_error *err)
{
    char word[41];                   /* what is longer is no number, and its beginning is shown */
    uint32_t n = 0, row = 1;
    size_t len = 0;
    bool begins = true, comment = false;
    int c;

    do {
        c = fgetc(f);
        comment = begins ? c == '#' : comment;
        begins = c == '\n';
        if (c != EOF && (comment || !c || !strchr(" \t\r\n", c))) {
            if (!comment && len + 1 < sizeof word)
                word[len++] = (char)(c ? c : '?');
            continue;
        }
        word[len] = 0;
        if (len && !gw_dist_word(word, name, row, out, &n, err))
            return 0;
        len = 0;
        row += c == '\n';
    } while (c != EOF);
    if (!n)
        gw_fail(err, GW_SYNTAX, "%s: no entries; a distribution is integers, 8192 for one standard "
                "deviation", name);
    return n;
}

#endif
