/*
 * alg/crandom.h - netem's correlated random numbers, and what they do to a probability
 *
 * Linux's netem makes 32-bit numbers x' = (1 - rho) U + rho x from fresh uniform ones. They are
 * correlated, but no longer uniform: squeezed around the middle, so that an event "x <= p" does
 * not happen with probability p. gw_crandom_share() says how often it does.
 * Follows get_crandom() as Linux 6.1 behaves.
 */
#ifndef GRADWIRE_ALG_CRANDOM_H
#define GRADWIRE_ALG_CRANDOM_H

#include <gradwire/rng.h>

struct gw_crandom {
    uint32_t rho;                    /* out of 2^32 - 1; 0: plain uniform numbers              */
    uint32_t last;
};

static inline void gw_crandom_init(struct gw_crandom *c, uint32_t rho, struct gw_rng *rng)
{
    c->rho = rho;
    c->last = gw_rng_u32(rng);
}

/* The next number; @c may be NULL: uniform. */
static inline uint32_t gw_crandom_next(struct gw_crandom *c, struct gw_rng *rng)
{
    uint64_t value = gw_rng_u32(rng), rho;

    if (!c || !c->rho)
        return (uint32_t)value;
    rho = (uint64_t)c->rho + 1;
    value = (value * ((UINT64_C(1) << 32) - rho) + c->last * rho) >> 32;
    c->last = (uint32_t)value;
    return c->last;
}

#define GW_CRANDOM_GRID 2048

/* Integral from 0 to @y of the distribution function that stands in @f, its integral in @g. */
static inline double gw_crandom_area(const double *f, const double *g, double y)
{
    double at, part;
    int i;

    if (y <= 0)
        return 0;
    if (y >= 1)
        return g[GW_CRANDOM_GRID] + (y - 1);
    at = y * GW_CRANDOM_GRID;
    i = (int)at;
    part = at - i;
    return g[i] + (f[i] * part + (f[i + 1] - f[i]) * part * part / 2) / GW_CRANDOM_GRID;
}

/*
 * gw_crandom_share() - long-run share of numbers with x <= @p under correlation @rho (both out of
 * 2^32 - 1), as netem tests them: never for @p 0
 *
 * The stationary distribution function F solves F(x) = rho/(1-rho) * (integral of F from
 * (x-(1-rho))/rho to x/rho). Iterated on a grid from the normal distribution of equal variance,
 * (1-rho)/(1+rho)/12; above 0.98 that normal distribution itself is the answer. With full
 * correlation the first number stays: the share is that of first numbers. Not for the packet path.
 */
static inline double gw_crandom_share(uint32_t p, uint32_t rho)
{
    const double x = ((double)p + 1) / 4294967296.0, r = ((double)rho + 1) / 4294967296.0;
    double f[GW_CRANDOM_GRID + 1], g[GW_CRANDOM_GRID + 1], sd;
    int rounds;

    if (!p)
        return 0;
    if (!rho || p == UINT32_MAX || rho == UINT32_MAX)
        return x;
    sd = sqrt((1 - r) / (1 + r) / 12);
    if (r > 0.98)
        return sd > 0 ? erfc((0.5 - x) / sd / sqrt(2)) / 2 : x >= 0.5;
    rounds = 8 + (int)(log(1e-9) / log(r));
    for (int i = 0; i <= GW_CRANDOM_GRID; i++)
        f[i] = i == GW_CRANDOM_GRID ? 1
               : i ? erfc((0.5 - (double)i / GW_CRANDOM_GRID) / sd / sqrt(2)) / 2 : 0;
    for (int n = 0; n <= rounds; n++) {
        g[0] = 0;
        for (int i = 1; i <= GW_CRANDOM_GRID; i++)
            g[i] = g[i - 1] + (f[i] + f[i - 1]) / 2 / GW_CRANDOM_GRID;
        if (n == rounds)
            break;
        for (int i = 1; i < GW_CRANDOM_GRID; i++) {
            double y = (double)i / GW_CRANDOM_GRID;

            f[i] = r / (1 - r) * (gw_crandom_area(f, g, y / r) -
                                  gw_crandom_area(f, g, (y - (1 - r)) / r));
        }
    }
    return r / (1 - r) * (gw_crandom_area(f, g, x / r) - gw_crandom_area(f, g, (x - (1 - r)) / r));
}

#endif
