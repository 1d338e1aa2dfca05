/*
 * truesize.h - memory that Linux counts for a packet
 *
 * Disciplines with a memory limit count not bytes of packets but what their buffers take: a
 * descriptor of 256 bytes, and headroom (64), data and 320 bytes of bookkeeping in one piece whose
 * size is a power of two. Measured on 6.1: frames of 1000 and 1013 bytes take 2304.
 */
#ifndef GRADWIRE_ALG_TRUESIZE_H
#define GRADWIRE_ALG_TRUESIZE_H

#include <gradwire/packet.h>

static inline uint32_t gw_truesize(const struct gw_pkt *p)
{
    uint32_t need = p->len_bytes + 64 + 320, piece = 512;

    while (piece < need && piece < UINT32_C(1) << 30)
        piece <<= 1;
    return piece + 256;
}

#endif
