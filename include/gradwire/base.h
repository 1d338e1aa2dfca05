/*
 * base.h - types, units, status codes and the error sentence
 *
 * Everything that a gradwire source file may count on. Times are picoseconds (_ps), rates bits per
 * second (_bps), sizes bytes (_bytes). Nothing here prints, exits or holds state.
 */
#ifndef GRADWIRE_BASE_H
#define GRADWIRE_BASE_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

#define GW_API __attribute__((visibility("default")))
#define GW_ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))
#define GW_PRINTF(f, a) __attribute__((format(printf, f, a)))
#define GW_LIKELY(x) __builtin_expect(!!(x), 1)
#define GW_UNLIKELY(x) __builtin_expect(!!(x), 0)
#define GW_CONTAINER(ptr, type, member) ((type *)((char *)(ptr) - offsetof(type, member)))

#define GW_PS_PER_NS UINT64_C(1000)
#define GW_PS_PER_US UINT64_C(1000000)
#define GW_PS_PER_MS UINT64_C(1000000000)
#define GW_PS_PER_S  UINT64_C(1000000000000)
#define GW_NEVER     UINT64_MAX          /* a time that does not come                         */
#define GW_NONE      UINT32_MAX          /* an index that is not set                          */
#define GW_FRAMING_BYTES 24u             /* Ethernet FCS, preamble and gap: on the wire only  */
#define GW_ETH_BYTES 14u                 /* Ethernet header, counted in len_bytes             */

/* Status: a code for programs; the sentence for people stands in struct gw_error. */
#define GW_STATUS_MAP(X)                                                    \
    X(OK,      "no error")                                                  \
    X(NOMEM,   "out of memory")                                             \
    X(PARAM,   "an option is unknown or out of its range")                  \
    X(SYNTAX,  "a file does not have the form that is expected")            \
    X(IO,      "a file or directory could not be read or written")          \
    X(ABI,     "a plugin was built for another interface")                  \
    X(RANGE,   "a number does not fit")                                     \
    X(ROUTE,   "there is no path")                                          \
    X(STALL,   "work is left and nothing can happen any more")              \
    X(LATE,    "real time was missed by more than allowed")                 \
    X(PRIV,    "a privilege or kernel feature is missing")                  \
    X(CHECK,   "a check failed")                                            \
    X(INCOMPLETE, "a command line ends too early")                          \
    X(BUG,     "an invariant of gradwire itself is broken")

enum gw_status {
#define GW_STATUS_ENUM(name, text) GW_##name,
    GW_STATUS_MAP(GW_STATUS_ENUM)
#undef GW_STATUS_ENUM
    GW_STATUS_COUNT
};

/* The first failure wins: code GW_OK means that nothing went wrong so far. Owner: the caller. */
struct gw_error {
    enum gw_status code;
    char           text[1024];           /* one sentence: "file:line:col: what; what is right" */
};

/*
 * gw_fail() - writes the sentence where the failure happens and hands the code up
 *
 * @err may be NULL. If @err already holds a failure, it is kept. Returns @code.
 */
static inline enum gw_status GW_PRINTF(3, 4)
gw_fail(struct gw_error *err, enum gw_status code, const char *fmt, ...)
{
    va_list ap;

    if (err && err->code == GW_OK) {
        err->code = code;
        va_start(ap, fmt);
        vsnprintf(err->text, sizeof err->text, fmt, ap);
        va_end(ap);
    }
    return code;
}

/* a * b / c with 128 bits inside, rounded down, saturated at UINT64_MAX; c must not be 0. */
static inline uint64_t gw_mul_div(uint64_t a, uint64_t b, uint64_t c)
{
    __extension__ unsigned __int128 q = (unsigned __int128)a * b / c;

    return q > UINT64_MAX ? UINT64_MAX : (uint64_t)q;
}

static inline uint64_t gw_min(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static inline uint64_t gw_max(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* @more_ps after @now_ps; at the very end of time the engine ends the run. */
static inline uint64_t gw_later(uint64_t now_ps, uint64_t more_ps)
{
    return more_ps < GW_NEVER - 1 - now_ps ? now_ps + more_ps : GW_NEVER - 1;
}

/*
 * gw_tx_ps() - time that @size_bytes take on a link of @rate_bps, the remainder carried
 *
 * @carry holds what was left over by the last call (in bit-picoseconds modulo the rate), so that a
 * million packets drift by nothing; set it to 0 when the rate changes or the port idles.
 * @size_bytes must be at most GW_PKT_MAX_BYTES.
 */
static inline uint64_t gw_tx_ps(uint32_t size_bytes, uint64_t rate_bps, uint64_t *carry)
{
    uint64_t bit_ps = (uint64_t)size_bytes * 8 * GW_PS_PER_S + *carry;
    uint64_t ps     = bit_ps / rate_bps;

    *carry = bit_ps - ps * rate_bps;
    return ps;
}

#define GW_PKT_MAX_BYTES UINT32_C(1048576)
_Static_assert((uint64_t)GW_PKT_MAX_BYTES <= UINT64_MAX / (8 * GW_PS_PER_S) - 1,
               "gw_tx_ps() must not overflow for the largest packet");

/* splitmix64's finaliser: a cheap mixing of 64 bits (Steele, Lea, Flood, OOPSLA 2014). */
static inline uint64_t gw_mix64(uint64_t x)
{
    x ^= x >> 30;
    x *= UINT64_C(0xbf58476d1ce4e5b9);
    x ^= x >> 27;
    x *= UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

/* Steps over a UTF-8 byte-order mark at the begin of @f, as editors of Windows put it. */
static inline void gw_skip_bom(FILE *f)
{
    int c = getc(f);

    if (c == 0xef && getc(f) == 0xbb && getc(f) == 0xbf)
        return;
    if (c == 0xef)
        rewind(f);
    else if (c != EOF)
        ungetc(c, f);
}

struct gw_host;          /* what the host offers to plugins: plugin.h */

#ifdef __cplusplus
}
#endif
#endif
