/*
 * alg/icrc.h - the invariant CRC of RoCE frames
 *
 * The last four bytes of a RoCE packet: Ethernet's CRC-32 over eight bytes of ones, the network
 * header, the UDP header and the InfiniBand headers with all that routers may change set to ones
 * (traffic class, flow label, hop limit or TTL, IPv4 and UDP checksum, and the byte behind the
 * partition key, where FECN and BECN stand), and the payload. It stands on the wire with its least
 * significant byte first. InfiniBand Architecture Specification 1.3, section 7.8.1 and annexes A16
 * (RoCE) and A17 (RoCEv2).
 *
 * Simulated payload is zeros, so a CRC can be carried over any number of them by one multiplication
 * in GF(2)[x] modulo the generator: a packet costs its headers, whatever its length.
 */
#ifndef GRADWIRE_ALG_ICRC_H
#define GRADWIRE_ALG_ICRC_H

#include <gradwire/base.h>

#define GW_CRC32_POLY UINT32_C(0xedb88320)       /* bit 31 is the constant term              */
#define GW_ICRC_BYTES 4u
#define GW_ICRC_HEAD_MAX 80u

static inline uint32_t gw_crc32(uint32_t crc, const uint8_t *b, size_t n)
{
    static const uint32_t nibble[16] = {
        0x00000000, 0x1db71064, 0x3b6e20c8, 0x26d930ac, 0x76dc4190, 0x6b6b51f4, 0x4db26158,
        0x5005713c, 0xedb88320, 0xf00f9344, 0xd6d6a3e8, 0xcb61b38c, 0x9b64c2b0, 0x86d3d2d4,
        0xa00ae278, 0xbdbdf21c
    };

    for (size_t i = 0; i < n; i++) {
        crc ^= b[i];
        crc = crc >> 4 ^ nibble[crc & 15];
        crc = crc >> 4 ^ nibble[crc & 15];
    }
    return crc;
}

static inline uint32_t gw_crc32_mul(uint32_t a, uint32_t b)
{
    uint32_t product = 0;

    for (int i = 31; i >= 0; i--) {
        if (a >> i & 1)
            product ^= b;
        b = b & 1 ? b >> 1 ^ GW_CRC32_POLY : b >> 1;
    }
    return product;
}

/* @crc after @n more bytes of zero: times x^(8 n). */
static inline uint32_t gw_crc32_zeros(uint32_t crc, uint64_t n)
{
    uint32_t power = UINT32_C(1) << 31, base = UINT32_C(1) << 23;

    for (; n; n >>= 1) {
        if (n & 1)
            power = gw_crc32_mul(power, base);
        base = gw_crc32_mul(base, base);
    }
    return gw_crc32_mul(crc, power);
}

/* Copies the headers of @frame from the network layer to the end of BTH, masked. Returns how many
 * bytes; 0: no RoCE frame that is known here (IPv4 without options, IPv6, or GRH). */
static inline uint32_t gw_icrc_head(const uint8_t *frame, uint32_t len, uint8_t *head)
{
    uint32_t type = len >= 14 ? (uint32_t)frame[12] << 8 | frame[13] : 0;
    bool v4 = type == 0x0800, v1 = type == 0x8915;
    uint32_t l3 = v4 ? 20 : 40, udp = v1 ? 0 : 8, n = l3 + udp + 12;

    if ((!v4 && !v1 && type != 0x86dd) || len < 14 + n)
        return 0;
    memcpy(head, frame + 14, n);
    if (v4) {
        head[1] = head[8] = head[10] = head[11] = 0xff;
    } else {
        head[0] |= 0x0f;
        head[1] = head[2] = head[3] = head[7] = 0xff;
    }
    if (udp)
        head[l3 + 6] = head[l3 + 7] = 0xff;
    head[l3 + udp + 4] = 0xff;
    return n;
}

/*
 * gw_icrc() - of the frame of @len bytes from the Ethernet header to the end of the ICRC
 *
 * @used bytes of it are given, the rest up to the ICRC is zeros. @out gets the four bytes as they
 * stand on the wire. False: no RoCE frame.
 */
static inline bool gw_icrc(const uint8_t *frame, uint32_t used, uint32_t len, uint8_t *out)
{
    static const uint8_t ones[8] = { 255, 255, 255, 255, 255, 255, 255, 255 };
    uint8_t head[GW_ICRC_HEAD_MAX];
    uint32_t n = gw_icrc_head(frame, used, head), end = len - GW_ICRC_BYTES, crc;

    if (!n || len < 14 + n + GW_ICRC_BYTES)
        return false;
    if (used > end)
        used = end;
    crc = gw_crc32(gw_crc32(UINT32_MAX, ones, sizeof ones), head, n);
    crc = gw_crc32(crc, frame + 14 + n, used - 14 - n);
    crc = ~gw_crc32_zeros(crc, end - used);
    for (int i = 0; i < 4; i++)
        out[i] = (uint8_t)(crc >> 8 * i);
    return true;
}

#endif
