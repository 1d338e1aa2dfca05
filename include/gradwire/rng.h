/*
 * rng.h - named, counter-based random streams
 *
 * A stream is keyed by (seed, name): adding a component never changes another component's dice, and
 * the order of creation does not matter. The generator is Philox4x32-10 (Salmon et al., "Parallel
 * random numbers: as easy as 1, 2, 3", SC 2011), taken from Random123 and not exposed here.
 */
#ifndef GRADWIRE_RNG_H
#define GRADWIRE_RNG_H

#include <gradwire/base.h>
#include <math.h>

struct gw_rng {
    void   (*refill)(struct gw_rng *r);   /* makes the next four words                         */
    uint32_t key[2];                      /* from seed and name                                */
    uint64_t counter;                     /* blocks drawn                                      */
    uint32_t word[4];
    uint32_t left;                        /* words not used yet                                */
};

/* Opens the stream @name under @seed. Never fails; holds no memory. */
GW_API void gw_rng_open(struct gw_rng *r, uint64_t seed, const char *name);

static inline uint32_t gw_rng_u32(struct gw_rng *r)
{
    if (!r->left)
        r->refill(r);
    return r->word[--r->left];
}

static inline uint64_t gw_rng_u64(struct gw_rng *r)
{
    uint64_t hi = gw_rng_u32(r);

    return hi << 32 | gw_rng_u32(r);
}

/* Uniform in [0, 1), 53 bits. */
static inline double gw_rng_unit(struct gw_rng *r)
{
    return (double)(gw_rng_u64(r) >> 11) * 0x1p-53;
}

/* Uniform in 0..n-1, unbiased (Lemire 2019); n > 0. */
static inline uint32_t gw_rng_below(struct gw_rng *r, uint32_t n)
{
    uint64_t m = (uint64_t)gw_rng_u32(r) * n;

    if ((uint32_t)m < n) {
        uint32_t t = -n % n;

        while ((uint32_t)m < t)
            m = (uint64_t)gw_rng_u32(r) * n;
    }
    return (uint32_t)(m >> 32);
}

/* Exponential with mean 1. */
static inline double gw_rng_exp(struct gw_rng *r)
{
    return -log1p(-gw_rng_unit(r));
}

/* Standard normal (Box-Muller, one of the pair). */
static inline double gw_rng_normal(struct gw_rng *r)
{
    double u = 1.0 - gw_rng_unit(r), v = gw_rng_unit(r);

    return sqrt(-2.0 * log(u)) * cos(6.283185307179586 * v);
}

#endif
