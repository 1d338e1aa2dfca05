/*
 * rng.c - named random streams on Philox4x32-10
 *
 * The key is made from the seed and an FNV-1a hash of the stream's name, so that a stream depends
 * on nothing else; the counter counts blocks of four words. For one seed the step from the name's
 * hash to the key is a bijection: two streams coincide only if two names collide in 64 bits.
 * Words leave in the order in which Philox puts them out.
 *
 * Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC 2011; the
 * generator is taken from Random123.
 */
#include <gradwire/rng.h>

#include <Random123/philox.h>

static void philox_refill(struct gw_rng *r)
{
    philox4x32_ctr_t ctr = { { (uint32_t)r->counter, (uint32_t)(r->counter >> 32), 0, 0 } };
    philox4x32_key_t key = { { r->key[0], r->key[1] } };
    philox4x32_ctr_t out = philox4x32_R(10, ctr, key);

    r->counter++;
    for (uint32_t i = 0; i < 4; i++)
        r->word[3 - i] = out.v[i];         /* gw_rng_u32() takes them from the end */
    r->left = 4;
}

static uint64_t fnv1a(const char *s)
{
    uint64_t h = UINT64_C(0xcbf29ce484222325);

    for (; *s; s++) {
        h ^= (unsigned char)*s;
        h *= UINT64_C(0x100000001b3);
    }
    return h;
}

void gw_rng_open(struct gw_rng *r, uint64_t seed, const char *name)
{
    uint64_t key = gw_mix64(gw_mix64(seed + UINT64_C(0x9e3779b97f4a7c15)) ^ fnv1a(name));

    memset(r, 0, sizeof *r);
    r->refill = philox_refill;
    r->key[0] = (uint32_t)key;
    r->key[1] = (uint32_t)(key >> 32);
}
