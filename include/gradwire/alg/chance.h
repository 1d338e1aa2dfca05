/*
 * chance.h - a probability as an integer threshold for 64-bit draws; 0 and 1 are exact
 *
 * A draw is made whatever the probability is, so that changing it does not shift the dice.
 */
#ifndef GRADWIRE_ALG_CHANCE_H
#define GRADWIRE_ALG_CHANCE_H

#include <gradwire/rng.h>

struct gw_chance {
    uint64_t below;              /* draws below it are hits                                    */
    bool     always;             /* probability 1: the threshold would be 2^64                 */
};

static inline struct gw_chance gw_chance_of(double p)
{
    struct gw_chance c = { 0, p >= 1 };

    if (p > 0 && p < 1)
        c.below = (uint64_t)(p * 0x1p64);
    return c;
}

static inline bool gw_chance_hit(const struct gw_chance *c, struct gw_rng *r)
{
    return gw_rng_u64(r) < c->below || c->always;
}

#endif
