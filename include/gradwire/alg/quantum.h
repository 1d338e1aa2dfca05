/*
 * alg/quantum.h - the bounds of a quantum, the bytes that a flow or band sends in its turn
 *
 * Linux 6.1 refuses more than 1 MiB where a quantum is set (fq, fq_codel, fq_pie) and takes 256 bytes
 * for less, because each turn costs time; ets (6.1.192) takes the nearest of both.
 */
#ifndef GRADWIRE_ALG_QUANTUM_H
#define GRADWIRE_ALG_QUANTUM_H

#include <gradwire/tc.h>

#define GW_QUANTUM_MIN UINT32_C(256)
#define GW_QUANTUM_MAX (UINT32_C(1) << 20)

static inline uint32_t gw_quantum_within(uint32_t bytes)
{
    return bytes < GW_QUANTUM_MIN ? GW_QUANTUM_MIN : bytes > GW_QUANTUM_MAX ? GW_QUANTUM_MAX : bytes;
}

/* Says what holds instead, if that is not what was given. */
static inline void gw_quantum_note(const struct gw_tc_args *a, uint32_t bytes)
{
    if (gw_quantum_within(bytes) != bytes)
        gw_tc_note(a, "a quantum of %u bytes counts as %u, the %s", bytes, gw_quantum_within(bytes),
                   bytes < GW_QUANTUM_MIN ? "least" : "most");
}

#endif
