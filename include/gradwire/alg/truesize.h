/*
 * truesize.h - memory that Linux counts for a packet
 *
 * Disciplines with a memory limit count not bytes of packets but what their buffers take: a
 * descriptor of 256 bytes, and data and 320 bytes of bookkeeping in one piece whose size is a power
 * of two. Room for data is the frame, 2 bytes that align its headers, and 15 to spare, in steps of
 * 64. So it is for a datagram that a socket sends, exactly as in 6.1; segments of TCP, whose data
 * lie in pages, take other amounts there.
 */
#ifndef GRADWIRE_ALG_TRUESIZE_H
#define GRADWIRE_ALG_TRUESIZE_H

#include <gradwire/packet.h>

static inline uint32_t gw_truesize(const struct gw_pkt *p)
{
    uint32_t need = ((p->len_bytes + 17 + 63) & ~UINT32_C(63)) + 320, piece = 512;

    while (piece < need && piece < UINT32_C(1) << 30)
        piece <<= 1;
    return piece + 256;
}

#endif
