/*
 * ktrace - frames through a discipline of a real kernel, and the very same through gradwire's
 *
 * `plan` makes traces from seeds: for each setting of the table below, flows with sizes, gaps and
 * bursts drawn at random, in phases of light and heavy load. `send` plays a plan inside a guest
 * whose clock is virtual (see build-kernel): it sets the discipline on v0, one end of a veth pair,
 * sends each frame through a UDP socket of its flow and notes when it went into the discipline and
 * when it came out at v1. `compare` plays what was noted through `gradwire run` and wants the same:
 * which frames came, when to the ns, in which order, with which mark. There is no tolerance.
 *
 * Why the ns can be asked for: the guest's clock stands still while a frame is handled. A frame is
 * sent right behind a reading of the clock, and one more reading behind it shows that nothing moved
 * the clock in between; v1 stamps in the instant of the departure, which a discipline of nothing
 * (`none`) proves at the beginning of each run. Frames that the plan sends at one instant go out
 * without a reading between them.
 *
 * Flows are classes by SO_PRIORITY, also where a discipline would hash them: a hash with a secret
 * is not repeatable. The origin of a trace is a multiple of 2^30 ns, because CoDel cuts the clock
 * to units of 1024 ns.
 *
 * A file, plan or record, is text, also gzipped:
 *     case NAME SEED
 *     tc LINE                     what is done to v0
 *     flow PRIORITY ECN           numbered from 0
 *     GAP FLOW SIZE               ns since the frame before (or since the origin); of a plan
 *     GAP FLOW SIZE DELAY [CE [TURN]]    of a record; DELAY - means that it never came, TURN is its
 *                                 place among those that came at its instant
 *
 * Usage: ktrace plan SEED [NAME ...] | send FILE | compare FILE [NAME ...]
 * `send` writes the record to its standard output; `compare` finds the program under test in
 * GRADWIRE. Exit code 0: all the same, 1: not, 99: could not be done.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <arpa/inet.h>
#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <netinet/ip.h>
#include <sched.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <zlib.h>

#define FLOWS_MAX   8
#define LINES_MAX   12
#define FRAMES_MAX  20000
#define ORIGIN_NS   (INT64_C(1) << 30)
#define NS_PER_S    INT64_C(1000000000)
#define HEADERS     42u              /* Ethernet, IPv4, UDP                                       */
#define SIZE_LEAST  60u
#define SIZE_MOST   1514u
#define NEVER       INT64_MAX
#define SHOWN_MAX   8u               /* differences that are shown of a case                      */
#define REST_S      20               /* until the last frame has come out of any queue            */
#define SOCKET_BYTES (256 << 20)

struct flow {
    uint32_t priority, ecn;
};

struct frame {
    int64_t  sent_ns, recv_ns;       /* since the origin; recv_ns NEVER: did not come             */
    uint32_t flow, size, turn;
    bool     ce;
};

struct trace {
    char     name[48];
    uint64_t seed;
    char    *tc[LINES_MAX];
    uint32_t tcs;
    struct flow flow[FLOWS_MAX];
    uint32_t flows;
    struct frame *frame;
    uint32_t frames;
    bool     recorded;
};

static void die(const char *what, const char *why)
{
    fprintf(stderr, "ktrace: %s: %s\n", what, why);
    exit(99);
}

static void *need(void *p)
{
    if (!p)
        die("memory", "none left");
    return p;
}

/* ---- the settings ---------------------------------------------------------------------------- */

/* A bottleneck of @rate above discipline 2:. */
#define UNDER(rate) "qdisc add dev v0 root handle 1: tbf rate " rate " burst 1600 limit 1000000"
#define INNER "qdisc add dev v0 parent 1:1 handle 2: "
#define DRR(minor, quantum) "class add dev v0 parent 2: classid 2:" minor " drr quantum " quantum
#define HTB(parent, id, words) "class add dev v0 parent 1:" parent " classid 1:" id " htb " words
#define CLASS(major, minor) ((uint32_t)(major) << 16 | (minor))

static const struct setting {
    const char *name;
    uint64_t    rate_bps;            /* about what the discipline lets through                    */
    uint32_t    frames;
    uint32_t    load;                /* percent of it that is offered all the time; 0: in phases  */
    struct flow flow[FLOWS_MAX];     /* ends with one of ecn END                                  */
    const char *tc[LINES_MAX];
} settings[] = {
#define END 9
#define RED "red limit 60000 min 9000 max 9001 avpkt 1000 burst 12 "
#define ONE { { 0, 0 }, { 0, END } }
    { "none", 10000000, 40, 0, ONE, { NULL } },

    { "tbf-1m", 1000000, 300, 0, ONE,
      { "qdisc add dev v0 root tbf rate 1mbit burst 2000 limit 30000" } },
    { "tbf-odd", 33333333, 300, 0, ONE,
      { "qdisc add dev v0 root tbf rate 33333333bit burst 7777 latency 11ms" } },
    { "tbf-deep", 800000, 300, 0, ONE,
      { "qdisc add dev v0 root tbf rate 800kbit burst 15k limit 20000" } },
    { "tbf-1g", 1000000000, 300, 0, ONE,
      { "qdisc add dev v0 root tbf rate 1gbit burst 10000 limit 50000" } },
    { "tbf-toobig", 1000000, 300, 0, ONE,
      { "qdisc add dev v0 root tbf rate 1mbit burst 1000 limit 30000" } },
    { "tbf-peak", 10000000, 300, 0, ONE,
      { "qdisc add dev v0 root tbf rate 10mbit burst 20k latency 30ms peakrate 12mbit mtu 1540" } },
    { "tbf-peak-3000", 3000000, 300, 0, ONE,
      { "qdisc add dev v0 root tbf rate 3mbit burst 20k limit 60000 peakrate 9mbit mtu 3000" } },
    { "tbf-atm", 2000000, 300, 0, ONE,
      { "qdisc add dev v0 root tbf rate 2mbit burst 1900 limit 50000 overhead 24 linklayer atm" } },
    { "tbf-mpu", 2000000, 300, 0, ONE,
      { "qdisc add dev v0 root tbf rate 2mbit burst 3000 limit 50000 mpu 300 overhead 38" } },

    { "tbf-stab", 2000000, 300, 0, ONE,
      { "qdisc add dev v0 root stab overhead 24 mpu 100 linklayer atm mtu 2048 tsize 128 "
        "tbf rate 2mbit burst 2500 limit 30000" } },

    { "htb-one", 2000000, 300, 0, { { CLASS(1, 1), 0 }, { 0, END } },
      { "qdisc add dev v0 root handle 1: htb", HTB("", "1", "rate 2mbit") } },
    { "htb-burst", 5000000, 300, 0, { { CLASS(1, 1), 0 }, { 0, END } },
      { "qdisc add dev v0 root handle 1: htb",
        HTB("", "1", "rate 5mbit burst 15k ceil 20mbit cburst 3000") } },
    { "htb-borrow", 6000000, 400, 0, { { CLASS(1, 0x10), 0 }, { CLASS(1, 0x20), 0 }, { 0, END } },
      { "qdisc add dev v0 root handle 1: htb", HTB("", "1", "rate 6mbit ceil 6mbit"),
        HTB("1", "10", "rate 1mbit ceil 6mbit"), HTB("1", "20", "rate 2mbit ceil 4mbit") } },
    { "htb-prio", 8000000, 400, 0,
      { { CLASS(1, 0x10), 0 }, { CLASS(1, 0x20), 0 }, { CLASS(1, 0x30), 0 }, { 0, END } },
      { "qdisc add dev v0 root handle 1: htb", HTB("", "1", "rate 8mbit burst 4k cburst 4k"),
        HTB("1", "10", "rate 1mbit ceil 8mbit prio 0 burst 2k"),
        HTB("1", "20", "rate 2mbit ceil 8mbit prio 1"),
        HTB("1", "30", "rate 3mbit ceil 5mbit prio 2 cburst 10k") } },
    { "htb-quantum", 10000000, 400, 0,
      { { CLASS(1, 0x10), 0 }, { CLASS(1, 0x20), 0 }, { CLASS(1, 0x30), 0 }, { 0, END } },
      { "qdisc add dev v0 root handle 1: htb", HTB("", "1", "rate 10mbit"),
        HTB("1", "10", "rate 1mbit ceil 10mbit quantum 1500"),
        HTB("1", "20", "rate 1mbit ceil 10mbit quantum 4500"),
        HTB("1", "30", "rate 1mbit ceil 10mbit quantum 9000") } },
    { "htb-levels", 9000000, 400, 0,
      { { CLASS(1, 0x10), 0 }, { CLASS(1, 0x20), 0 }, { CLASS(1, 0x30), 0 }, { 0, END } },
      { "qdisc add dev v0 root handle 1: htb", HTB("", "1", "rate 9mbit"),
        HTB("1", "2", "rate 4mbit ceil 7mbit"), HTB("2", "10", "rate 1mbit ceil 6mbit"),
        HTB("2", "20", "rate 3mbit ceil 7mbit"), HTB("1", "30", "rate 5mbit ceil 9mbit") } },
    { "htb-default", 4000000, 300, 0, { { 0, 0 }, { CLASS(1, 0x10), 0 }, { 0, END } },
      { "qdisc add dev v0 root handle 1: htb default 20", HTB("", "1", "rate 4mbit"),
        HTB("1", "10", "rate 1mbit ceil 3mbit"), HTB("1", "20", "rate 3mbit ceil 4mbit") } },
    { "htb-direct", 3000000, 300, 0, { { 0, 0 }, { CLASS(1, 0x10), 0 }, { 0, END } },
      { "qdisc add dev v0 root handle 1: htb", HTB("", "10", "rate 3mbit") } },
    { "htb-overbooked", 5000000, 400, 0,
      { { CLASS(1, 0x10), 0 }, { CLASS(1, 0x20), 0 }, { CLASS(1, 0x30), 0 }, { 0, END } },
      { "qdisc add dev v0 root handle 1: htb r2q 50", HTB("", "1", "rate 5mbit ceil 5mbit"),
        HTB("1", "10", "rate 4mbit burst 3k prio 1"), HTB("1", "20", "rate 4mbit ceil 9mbit"),
        HTB("1", "30", "rate 64kbit ceil 2mbit prio 1 quantum 1000") } },
    { "htb-deep", 8000000, 400, 0,
      { { CLASS(1, 0x10), 0 }, { CLASS(1, 0x20), 0 }, { CLASS(1, 0x30), 0 },
        { CLASS(1, 0x40), 0 }, { 0, END } },
      { "qdisc add dev v0 root handle 1: htb", HTB("", "1", "rate 8mbit"),
        HTB("1", "2", "rate 5mbit ceil 6mbit burst 4k"), HTB("2", "3", "rate 3mbit ceil 5mbit"),
        HTB("3", "10", "rate 1mbit ceil 4mbit prio 3"), HTB("3", "20", "rate 1mbit ceil 5mbit"),
        HTB("2", "30", "rate 2mbit ceil 6mbit prio 3"), HTB("1", "40", "rate 500kbit ceil 8mbit"),
        "qdisc add dev v0 parent 1:10 handle 9: pfifo limit 6" } },
    { "htb-atm", 2000000, 300, 0, { { CLASS(1, 1), 0 }, { 0, END } },
      { "qdisc add dev v0 root handle 1: htb",
        HTB("", "1", "rate 2mbit overhead 10 mpu 128 linklayer atm") } },

    { "drr-2", 10000000, 400, 0, { { CLASS(2, 1), 0 }, { CLASS(2, 2), 0 }, { 0, END } },
      { UNDER("10mbit"), INNER "drr", DRR("1", "1514"), DRR("2", "3028") } },
    { "drr-3", 20000000, 400, 0,
      { { CLASS(2, 1), 0 }, { CLASS(2, 2), 0 }, { CLASS(2, 3), 0 }, { 0, END } },
      { UNDER("20mbit"), INNER "drr", DRR("1", "500"), DRR("2", "1000"), DRR("3", "9000") } },
    { "drr-4", 10000000, 400, 0,
      { { CLASS(2, 1), 0 }, { CLASS(2, 2), 0 }, { CLASS(2, 3), 0 }, { CLASS(2, 4), 0 },
        { 0, END } },
      { UNDER("10mbit"), INNER "drr", DRR("1", "600"), DRR("2", "1514"), DRR("3", "2000"),
        DRR("4", "300"), "qdisc add dev v0 parent 2:4 handle 4: pfifo limit 5" } },
    { "drr-unclassified", 10000000, 300, 0, { { CLASS(2, 1), 0 }, { 0, 0 }, { 0, END } },
      { UNDER("10mbit"), INNER "drr", DRR("1", "1514") } },

    { "codel-105", 8000000, 1600, 105, ONE, { UNDER("8mbit"), INNER "codel" } },
    { "codel-140", 8000000, 1200, 140, ONE, { UNDER("8mbit"), INNER "codel" } },
    { "codel-phases", 10000000, 1200, 0, ONE,
      { UNDER("10mbit"), INNER "codel target 2ms interval 20ms" } },
    { "codel-200", 20000000, 1200, 200, ONE,
      { UNDER("20mbit"), INNER "codel limit 100 target 1ms interval 10ms" } },
    { "codel-ecn", 10000000, 1200, 130, { { 0, 2 }, { 0, 0 }, { 0, END } },
      { UNDER("10mbit"), INNER "codel target 3ms interval 30ms ecn" } },
    { "codel-ce", 10000000, 600, 0, { { 0, 1 }, { 0, END } },
      { UNDER("10mbit"), INNER "codel target 200ms interval 300ms ce_threshold 2ms" } },

    /* The average crosses both thresholds at once, so that no dice decide. */
    { "red-tbf", 10000000, 600, 0, { { 0, 2 }, { 0, 0 }, { 0, END } },
      { UNDER("10mbit"), INNER RED "bandwidth 10mbit ecn" } },
    { "red-htb", 10000000, 600, 0, { { CLASS(1, 1), 0 }, { 0, END } },
      { "qdisc add dev v0 root handle 1: htb", HTB("", "1", "rate 10mbit"),
        "qdisc add dev v0 parent 1:1 handle 2: " RED "bandwidth 10mbit" } },
    { "red-prio", 10000000, 600, 0, { { CLASS(2, 1), 0 }, { CLASS(2, 2), 0 }, { 0, END } },
      { UNDER("10mbit"), INNER "prio", "qdisc add dev v0 parent 2:2 handle 3: " RED } },

    { "netem-delay", 10000000, 300, 0, ONE, { "qdisc add dev v0 root netem delay 7ms" } },
    { "netem-delay-us", 10000000, 300, 0, ONE, { "qdisc add dev v0 root netem delay 1234us" } },
    { "netem-limit", 10000000, 300, 0, ONE,
      { "qdisc add dev v0 root netem delay 20ms limit 17" } },
    { "netem-rate", 5000000, 300, 0, ONE, { "qdisc add dev v0 root netem rate 5mbit limit 30" } },
    { "netem-rate-overhead", 5000000, 300, 0, ONE,
      { "qdisc add dev v0 root netem rate 5mbit 24 limit 40" } },
    { "netem-rate-cells", 5000000, 300, 0, ONE,
      { "qdisc add dev v0 root netem rate 5mbit 8 48 5 limit 50" } },
    { "netem-rate-less", 5000000, 300, 0, ONE,
      { "qdisc add dev v0 root netem rate 5mbit -14 limit 50" } },
    { "netem-rate-delay", 7777777, 300, 0, ONE,
      { "qdisc add dev v0 root netem rate 7777777bit delay 12ms limit 60" } },
    { "netem-slot", 5000000, 300, 0, ONE,
      { "qdisc add dev v0 root netem delay 1ms slot 5ms 5ms packets 4 bytes 3000 limit 40" } },
    { "netem-reorder", 5000000, 300, 0, ONE,
      { "qdisc add dev v0 root netem delay 10ms reorder 100% gap 5 limit 50" } },
    { "netem-child", 5000000, 300, 0, ONE,
      { "qdisc add dev v0 root handle 1: netem delay 9ms limit 100",
        "qdisc add dev v0 parent 1:1 handle 2: tbf rate 5mbit burst 2000 limit 20000" } },

    { "tbf-netem", 5000000, 300, 0, ONE,
      { "qdisc add dev v0 root handle 1: tbf rate 5mbit burst 3000 limit 1000",
        INNER "netem delay 3ms rate 8mbit limit 40" } },
    { "tbf-tbf", 5000000, 300, 0, ONE,
      { "qdisc add dev v0 root handle 1: tbf rate 6mbit burst 2000 limit 20000",
        INNER "tbf rate 5mbit burst 9000 limit 25000" } },
    { "htb-netem", 5000000, 300, 0, { { CLASS(1, 0x10), 0 }, { CLASS(1, 0x20), 0 }, { 0, END } },
      { "qdisc add dev v0 root handle 1: htb", HTB("", "10", "rate 3mbit"),
        HTB("", "20", "rate 4mbit ceil 9mbit"),
        "qdisc add dev v0 parent 1:10 handle 2: netem delay 4ms limit 50" } },
    { "drr-tbf", 8000000, 300, 0, { { CLASS(1, 1), 0 }, { CLASS(1, 2), 0 }, { 0, END } },
      { "qdisc add dev v0 root handle 1: drr",
        "class add dev v0 parent 1: classid 1:1 drr quantum 1514",
        "class add dev v0 parent 1: classid 1:2 drr quantum 600",
        "qdisc add dev v0 parent 1:1 handle 2: tbf rate 3mbit burst 2000 limit 20000",
        "qdisc add dev v0 parent 1:2 handle 3: tbf rate 5mbit burst 1600 limit 9000" } },
    { "prio-codel", 10000000, 1200, 120, { { CLASS(2, 1), 0 }, { CLASS(2, 2), 2 }, { 0, END } },
      { UNDER("10mbit"), INNER "prio",
        "qdisc add dev v0 parent 2:1 handle 3: codel target 2ms interval 20ms",
        "qdisc add dev v0 parent 2:2 handle 4: codel target 4ms interval 30ms ecn" } },

    { "pfifo", 10000000, 300, 0, ONE, { UNDER("10mbit"), INNER "pfifo limit 9" } },
    { "bfifo", 10000000, 300, 0, ONE, { UNDER("10mbit"), INNER "bfifo limit 9000" } },
    { "pfifo_head_drop", 10000000, 300, 0, ONE,
      { UNDER("10mbit"), INNER "pfifo_head_drop limit 9" } },
    { "pfifo_fast", 10000000, 300, 0, { { 0, 0 }, { 2, 0 }, { 6, 0 }, { 0, END } },
      { UNDER("10mbit"), INNER "pfifo_fast" } },
    { "prio", 10000000, 300, 0,
      { { CLASS(2, 1), 0 }, { CLASS(2, 2), 0 }, { 6, 0 }, { 2, 0 }, { 0, END } },
      { UNDER("10mbit"), INNER "prio bands 4", "qdisc add dev v0 parent 2:2 pfifo limit 12" } },
    { "ets", 10000000, 400, 0,
      { { CLASS(2, 1), 0 }, { CLASS(2, 2), 0 }, { CLASS(2, 3), 0 }, { 0, END } },
      { UNDER("10mbit"), INNER "ets bands 3 strict 1 quanta 1500 4000" } },
    { "skbprio", 10000000, 300, 0, { { 0, 0 }, { 3, 0 }, { 9, 0 }, { 0, END } },
      { UNDER("10mbit"), INNER "skbprio limit 12" } },
    { "sfq", 10000000, 400, 0,
      { { CLASS(2, 1), 0 }, { CLASS(2, 2), 0 }, { CLASS(2, 3), 0 }, { 0, END } },
      { UNDER("10mbit"), INNER "sfq limit 30 quantum 1600" } },
    { "sfq-headdrop", 10000000, 400, 0,
      { { CLASS(2, 1), 0 }, { CLASS(2, 2), 0 }, { CLASS(2, 3), 0 }, { 0, END } },
      { UNDER("10mbit"), INNER "sfq limit 20 quantum 3000 headdrop" } },
    { "fq_codel", 10000000, 1200, 150,
      { { CLASS(2, 1), 0 }, { CLASS(2, 2), 2 }, { CLASS(2, 3), 0 }, { 0, END } },
      { UNDER("10mbit"), INNER "fq_codel target 3ms interval 30ms" } },
    { "fq_codel-limit", 10000000, 1200, 0,
      { { CLASS(2, 1), 0 }, { CLASS(2, 2), 0 }, { CLASS(2, 3), 2 }, { 0, END } },
      { UNDER("10mbit"), INNER "fq_codel limit 40 quantum 300 drop_batch 7 noecn" } },
    { "fq_codel-ce", 10000000, 600, 0, { { CLASS(2, 1), 2 }, { CLASS(2, 2), 1 }, { 0, END } },
      { UNDER("10mbit"),
        INNER "fq_codel flows 64 quantum 900 ce_threshold 1ms memory_limit 60000" } },
    /* Far below its target PIE draws no dice. */
    { "fq_pie", 10000000, 600, 0,
      { { CLASS(2, 1), 0 }, { CLASS(2, 2), 0 }, { CLASS(2, 3), 0 }, { 0, END } },
      { UNDER("10mbit"), INNER "fq_pie limit 40 quantum 300 target 2s" } },
    { "fq_pie-quantum", 10000000, 600, 0, { { CLASS(2, 1), 0 }, { CLASS(2, 2), 0 }, { 0, END } },
      { UNDER("10mbit"), INNER "fq_pie limit 1000 quantum 100 target 2s flows 64" } },
    { "ets-quanta", 10000000, 600, 0,
      { { CLASS(2, 1), 0 }, { CLASS(2, 2), 0 }, { CLASS(2, 3), 0 }, { 0, END } },
      { UNDER("10mbit"), INNER "ets strict 1 quanta 100 700" } },
    { "gred", 10000000, 600, 0, { { 0, 0 }, { 1, 0 }, { 0, END } },
      { UNDER("10mbit"), INNER "gred setup DPs 2 default 0",
        "qdisc change dev v0 parent 1:1 handle 2: gred limit 60000 min 9000 max 9001 avpkt 1000 "
        "burst 12 DP 0 probability 0.02" } },
    { "cake", 10000000, 1000, 115, { { 0, 0 }, { 0, 2 }, { 0, END } },
      { "qdisc add dev v0 root cake bandwidth 10mbit besteffort flowblind raw rtt 30ms" } },
    { "cake-atm", 6000000, 600, 0, ONE,
      { "qdisc add dev v0 root cake bandwidth 6mbit besteffort flowblind overhead 18 mpu 64 "
        "atm" } },
    /* The timer of fq may ring timer_slack late, with whatever rings until then: hence 0. */
    { "fq-maxrate", 10000000, 400, 0, { { 0, 0 }, { 0, 0 }, { 0, END } },
      { "qdisc add dev v0 root fq maxrate 4mbit flow_limit 40 timer_slack 0" } },
    { "fq-quantum", 10000000, 400, 0, { { 0, 0 }, { 0, 0 }, { 0, 0 }, { 0, END } },
      { UNDER("10mbit"), INNER "fq quantum 2000 initial_quantum 5000 flow_limit 20 limit 45" } },
};

/* ---- drawing a trace ------------------------------------------------------------------------- */

static uint64_t draw(uint64_t *state)
{
    uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);

    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

static uint64_t draw_below(uint64_t *state, uint64_t n)
{
    return draw(state) % n;
}

static uint64_t seed_of(const char *name, uint64_t seed)
{
    uint64_t h = seed;

    for (; *name; name++)
        h = (h ^ (uint8_t)*name) * UINT64_C(0x100000001b3);
    return h;
}

static uint32_t draw_size(uint64_t *dice)
{
    static const uint32_t usual[] = { 60, 66, 590, 1514 };
    uint64_t k = draw_below(dice, 8);

    return k < 4 ? usual[k] : k < 5 ? SIZE_MOST :
           SIZE_LEAST + (uint32_t)draw_below(dice, SIZE_MOST - SIZE_LEAST + 1);
}

/* Gaps up to twice the mean; one arrival in six is a burst of one instant. */
static void print_frames(const struct setting *s, uint64_t seed)
{
    static const uint32_t loads[] = { 20, 60, 90, 110, 150, 300, 700 };
    uint64_t dice = seed_of(s->name, seed), owed_ns = 0;
    uint32_t flows = 0, phase = 0, load = s->load, burst = 0, only = 0;

    while (s->flow[flows].ecn != END)
        flows++;
    for (uint32_t i = 0; i < s->frames; i++) {
        uint32_t size = draw_size(&dice), flow = (uint32_t)draw_below(&dice, flows);
        uint64_t gap = 0;

        if (!phase--) {
            phase = 15 + (uint32_t)draw_below(&dice, 60);
            if (!s->load)
                load = loads[draw_below(&dice, sizeof loads / sizeof *loads)];
            only = (uint32_t)draw_below(&dice, 2 * flows);     /* often all, at times one alone */
        }
        if (only < flows && draw_below(&dice, 4))
            flow = only;
        if (!burst || !i) {
            gap = 20 + draw_below(&dice, 2 * owed_ns + 1);
            owed_ns = 0;
            burst = draw_below(&dice, 6) ? 0 : 1 + (uint32_t)draw_below(&dice, 9);
        } else {
            burst--;
        }
        owed_ns += (uint64_t)size * 8 * NS_PER_S / s->rate_bps * 100 / load;
        printf("%" PRIu64 " %u %u\n", gap, flow, size);
    }
}

static bool asked_for(const char *name, char **names, int n)
{
    for (int i = 0; i < n; i++)
        if (!strncmp(names[i], name, strlen(names[i])))
            return true;
    return !n;
}

static int plan(uint64_t seed, char **names, int n)
{
    bool any = false;

    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++) {
        const struct setting *s = &settings[i];

        if (!asked_for(s->name, names, n))
            continue;
        any = true;
        printf("case %s %" PRIu64 "\n", s->name, seed);
        for (size_t k = 0; k < LINES_MAX && s->tc[k]; k++)
            printf("tc %s\n", s->tc[k]);
        for (size_t k = 0; s->flow[k].ecn != END; k++)
            printf("flow %u %u\n", s->flow[k].priority, s->flow[k].ecn);
        print_frames(s, seed);
    }
    return any ? 0 : 99;
}

/* ---- reading --------------------------------------------------------------------------------- */

static void forget(struct trace *t)
{
    for (uint32_t i = 0; i < t->tcs; i++)
        free(t->tc[i]);
    free(t->frame);
    *t = (struct trace){ 0 };
}

static void read_frame(struct trace *t, const char *line)
{
    struct frame *f = &t->frame[t->frames];
    int64_t gap_ns, before_ns = t->frames ? f[-1].sent_ns : 0;
    char delay[24];
    int ce = 0, n;

    if (t->frames == FRAMES_MAX)
        die(t->name, "more frames than this program takes");
    *f = (struct frame){ .recv_ns = NEVER };
    n = sscanf(line, "%" SCNd64 " %u %u %23s %d %u", &gap_ns, &f->flow, &f->size, delay, &ce,
               &f->turn);
    if (n < 3 || f->flow >= t->flows || f->size < SIZE_LEAST || f->size > SIZE_MOST || gap_ns < 0)
        die(t->name, line);
    f->sent_ns = before_ns + gap_ns;
    if (n > 3) {
        t->recorded = true;
        if (delay[0] != '-')
            f->recv_ns = f->sent_ns + strtoll(delay, NULL, 10);
    }
    f->ce = ce;
    t->frames++;
}

static void read_line(struct trace *t, char *line)
{
    line[strcspn(line, "\n")] = 0;
    if (!strncmp(line, "tc ", 3)) {
        if (t->tcs == LINES_MAX)
            die(t->name, "more tc lines than this program takes");
        t->tc[t->tcs++] = need(strdup(line + 3));
    } else if (!strncmp(line, "flow ", 5)) {
        if (t->flows == FLOWS_MAX || sscanf(line + 5, "%u %u", &t->flow[t->flows].priority,
                                            &t->flow[t->flows].ecn) != 2)
            die(t->name, line);
        t->flows++;
    } else {
        read_frame(t, line);
    }
}

/* The next case of the file; @head keeps its first line from call to call. */
static bool read_trace(gzFile in, char *head, struct trace *t)
{
    char line[256];

    if (!*head && !gzgets(in, head, sizeof line))
        return false;
    *t = (struct trace){ .frame = need(calloc(FRAMES_MAX, sizeof *t->frame)) };
    if (sscanf(head, "case %47s %" SCNu64, t->name, &t->seed) != 2)
        die("no case begins here", head);
    *head = 0;
    while (gzgets(in, line, sizeof line)) {
        if (!strncmp(line, "case ", 5)) {
            memcpy(head, line, sizeof line);
            break;
        }
        read_line(t, line);
    }
    return true;
}

static gzFile open_file(const char *path)
{
    gzFile in = gzopen(path, "r");

    if (!in)
        die(path, strerror(errno));
    return in;
}

static const struct frame *sorting;

static int by_arrival(const void *a, const void *b)
{
    uint32_t i = *(const uint32_t *)a, k = *(const uint32_t *)b;
    const struct frame *x = &sorting[i], *y = &sorting[k];

    if (x->recv_ns != y->recv_ns)
        return x->recv_ns < y->recv_ns ? -1 : 1;
    if (x->turn != y->turn)
        return x->turn < y->turn ? -1 : 1;
    return (i > k) - (i < k);
}

/* Numbers of the frames that came, in the order of arrival. */
static uint32_t *arrivals(const struct trace *t, uint32_t *count)
{
    uint32_t *order = need(malloc((t->frames + 1) * sizeof *order));

    for (uint32_t i = 0; i < t->frames; i++)
        order[i] = i;
    sorting = t->frame;
    qsort(order, t->frames, sizeof *order, by_arrival);
    *count = 0;
    while (*count < t->frames && t->frame[order[*count]].recv_ns != NEVER)
        ++*count;
    return order;
}

/* ---- in the guest ---------------------------------------------------------------------------- */

struct guest {
    int     tap;                     /* what comes out of v1                                      */
    int64_t epoch_ns;                /* CLOCK_REALTIME less CLOCK_MONOTONIC                       */
    int64_t origin_ns;               /* CLOCK_MONOTONIC at the beginning of the trace             */
    int     sock[FLOWS_MAX];
};

static int64_t read_ns(clockid_t clock)
{
    struct timespec t;

    clock_gettime(clock, &t);
    return t.tv_sec * NS_PER_S + t.tv_nsec;
}

static void sleep_until(int64_t ns)
{
    struct timespec t = { ns / NS_PER_S, ns % NS_PER_S };

    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL) == EINTR)
        ;
}

static void set(int sock, int level, int option, int value, const char *what)
{
    if (setsockopt(sock, level, option, &value, sizeof value))
        die(what, strerror(errno));
}

static void open_tap(struct guest *g)
{
    struct sockaddr_ll at = { .sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_IP) };
    int64_t before, real, after;

    g->tap = socket(AF_PACKET, SOCK_RAW | SOCK_NONBLOCK, htons(ETH_P_IP));
    at.sll_ifindex = (int)if_nametoindex("v1");
    if (g->tap < 0 || bind(g->tap, (struct sockaddr *)&at, sizeof at))
        die("v1", strerror(errno));
    set(g->tap, SOL_SOCKET, SO_RCVBUFFORCE, SOCKET_BYTES, "SO_RCVBUFFORCE");
    set(g->tap, SOL_SOCKET, SO_TIMESTAMPNS, 1, "SO_TIMESTAMPNS");
    before = read_ns(CLOCK_MONOTONIC);
    real = read_ns(CLOCK_REALTIME);
    after = read_ns(CLOCK_MONOTONIC);
    if (after - before != 2)
        die("clock", "a reading does not cost 1 ns: build-kernel makes a kernel where it does");
    g->epoch_ns = real - before - 1;
}

static int open_flow(const struct flow *f, uint32_t number)
{
    struct sockaddr_in from = { .sin_family = AF_INET }, to = from;
    int sock = socket(AF_INET, SOCK_DGRAM, 0);

    from.sin_port = htons((uint16_t)(10000 + number));
    to.sin_port = htons(9);
    inet_pton(AF_INET, "10.0.0.1", &from.sin_addr);
    inet_pton(AF_INET, "10.0.0.2", &to.sin_addr);
    if (sock < 0 || bind(sock, (struct sockaddr *)&from, sizeof from) ||
        connect(sock, (struct sockaddr *)&to, sizeof to))
        die("flow", strerror(errno));
    set(sock, SOL_SOCKET, SO_SNDBUFFORCE, SOCKET_BYTES, "SO_SNDBUFFORCE");
    set(sock, IPPROTO_IP, IP_TOS, (int)f->ecn, "IP_TOS");
    set(sock, SOL_SOCKET, SO_PRIORITY, (int)f->priority, "SO_PRIORITY");
    return sock;
}

/* v0 without a discipline, then what the case's lines put there. */
static void set_discipline(const struct trace *t)
{
    FILE *tc;

    if (system("tc qdisc del dev v0 root 2>/dev/null") == -1)
        die("tc", strerror(errno));
    if (!t->tcs)
        return;
    tc = need(popen("tc -batch -", "w"));
    for (uint32_t i = 0; i < t->tcs; i++)
        fprintf(tc, "%s\n", t->tc[i]);
    if (pclose(tc))
        die(t->name, "tc refuses its lines");
}

/* Sends the frames of one instant, from @first on, notes when, and returns how many. */
static uint32_t send_instant(const struct guest *g, struct trace *t, uint32_t first)
{
    int64_t planned_ns = t->frame[first].sent_ns, now_ns = read_ns(CLOCK_MONOTONIC);
    uint8_t payload[SIZE_MOST] = { 0 };
    uint32_t n = first;

    for (; n < t->frames && t->frame[n].sent_ns == planned_ns; n++) {
        struct frame *f = &t->frame[n];

        memcpy(payload, &n, sizeof n);
        if (send(g->sock[f->flow], payload, f->size - HEADERS, 0) < 0 && errno != ENOBUFS)
            die("send", strerror(errno));
        f->sent_ns = now_ns - g->origin_ns;
    }
    if (read_ns(CLOCK_MONOTONIC) != now_ns + 1)
        die(t->name, "the clock moved while a frame was sent");
    return n - first;
}

static int64_t stamp_ns(struct msghdr *m)
{
    struct timespec ts = { 0 };

    for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c; c = CMSG_NXTHDR(m, c))
        if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SO_TIMESTAMPNS)
            memcpy(&ts, CMSG_DATA(c), sizeof ts);
    return ts.tv_sec * NS_PER_S + ts.tv_nsec;
}

/* Takes the next frame that came out; @place is its place among all. */
static bool receive(const struct guest *g, struct trace *t, uint32_t place)
{
    uint8_t frame[SIZE_MOST];
    char control[128];
    struct iovec part = { frame, sizeof frame };
    struct msghdr m = { .msg_iov = &part, .msg_iovlen = 1, .msg_control = control,
                        .msg_controllen = sizeof control };
    uint32_t number;
    struct frame *f;

    if (recvmsg(g->tap, &m, 0) < 0) {
        if (errno != EAGAIN)
            die("v1", strerror(errno));
        return false;
    }
    memcpy(&number, frame + HEADERS, sizeof number);
    if (number >= t->frames || t->frame[number].recv_ns != NEVER)
        die(t->name, "a frame came that was not sent, or came twice");
    f = &t->frame[number];
    f->recv_ns = stamp_ns(&m) - g->epoch_ns - g->origin_ns;
    f->ce = (frame[sizeof(struct ether_header) + 1] & 3) == 3;
    f->turn = place;
    return true;
}

/* Turns are needed only where frames of one instant did not come as they were sent. */
static void shorten_turns(struct trace *t)
{
    uint32_t count, *order = arrivals(t, &count);

    for (uint32_t i = 0, n; i < count; i += n) {
        bool as_sent = true;

        for (n = 1; i + n < count &&
                    t->frame[order[i + n]].recv_ns == t->frame[order[i]].recv_ns; n++)
            as_sent = as_sent && order[i + n] > order[i + n - 1];
        for (uint32_t k = 0; k < n; k++)
            t->frame[order[i + k]].turn = as_sent ? 0 : k + 1;
    }
    free(order);
}

static void write_record(const struct trace *t)
{
    int64_t before_ns = 0;

    printf("case %s %" PRIu64 "\n", t->name, t->seed);
    for (uint32_t i = 0; i < t->tcs; i++)
        printf("tc %s\n", t->tc[i]);
    for (uint32_t i = 0; i < t->flows; i++)
        printf("flow %u %u\n", t->flow[i].priority, t->flow[i].ecn);
    for (uint32_t i = 0; i < t->frames; i++) {
        const struct frame *f = &t->frame[i];

        printf("%" PRId64 " %u %u ", f->sent_ns - before_ns, f->flow, f->size);
        if (f->recv_ns == NEVER)
            printf("-");
        else
            printf("%" PRId64, f->recv_ns - f->sent_ns);
        if (f->ce || f->turn)
            printf(" %d", f->ce);
        if (f->turn)
            printf(" %u", f->turn);
        printf("\n");
        before_ns = f->sent_ns;
    }
    fflush(stdout);
}

static void play_in_guest(struct guest *g, struct trace *t)
{
    uint32_t place = 0;

    set_discipline(t);
    for (uint32_t i = 0; i < t->flows; i++)
        g->sock[i] = open_flow(&t->flow[i], i);
    g->origin_ns = (read_ns(CLOCK_MONOTONIC) / ORIGIN_NS + 2) * ORIGIN_NS;
    for (uint32_t i = 0; i < t->frames;) {
        sleep_until(g->origin_ns + t->frame[i].sent_ns);
        i += send_instant(g, t, i);
    }
    sleep_until(read_ns(CLOCK_MONOTONIC) + REST_S * NS_PER_S);
    while (receive(g, t, place))
        place++;
    for (uint32_t i = 0; i < t->flows; i++)
        close(g->sock[i]);
    shorten_turns(t);
    write_record(t);
}

static int send_all(const char *path)
{
    struct sched_param first = { .sched_priority = 1 };  /* no timer slack                        */
    char head[256] = "";
    struct guest g;
    struct trace t;
    gzFile in = open_file(path);

    if (sched_setscheduler(0, SCHED_FIFO, &first))
        die("SCHED_FIFO", strerror(errno));
    open_tap(&g);
    sleep_until(read_ns(CLOCK_MONOTONIC) + NS_PER_S);    /* until stamps are on                   */
    while (read_trace(in, head, &t)) {
        play_in_guest(&g, &t);
        forget(&t);
    }
    gzclose(in);
    return 0;
}

/* ---- in gradwire ----------------------------------------------------------------------------- */

/* tc's line, its device being ours, in double quotes. */
static void write_line(FILE *f, const char *line)
{
    const char *dev = strstr(line, "dev v0");

    if (!dev)
        die(line, "has no `dev v0`");
    fprintf(f, "  - \"%.*sdev v:a%s\"\n", (int)(dev - line), line, dev + strlen("dev v0"));
}

static void write_study(const struct trace *t, const char *path)
{
    FILE *f = need(fopen(path, "w"));

    fprintf(f, "schema: 1\nname: %s\ntopology: {kind: pair, rate: 0}\n%s", t->name,
            t->tcs ? "tc:\n" : "");
    for (uint32_t i = 0; i < t->tcs; i++)
        write_line(f, t->tc[i]);
    fprintf(f, "jobs:\n  - name: g\n    traffic: frames\n    from: a\n    to: b\n"
            "    generators:\n");
    for (uint32_t i = 0; i < t->frames; i++) {
        const struct frame *x = &t->frame[i];
        const struct flow *w = &t->flow[x->flow];

        fprintf(f, "      - {flow: %u, size: %u, interval: 1ns, count: 1, start: %" PRId64
                "ns, priority: %u, ecn: %u}\n", x->flow, x->size, x->sent_ns, w->priority, w->ecn);
    }
    fprintf(f, "log:\n  - {dev: \"v:a\", kind: packets}\n"
            "capture:\n  - {dev: \"v:a\", snap: 60}\n");
    if (fclose(f))
        die(path, "cannot be written");
}

/* Runs the study; output other than errors is thrown away. */
static bool run_study(const char *study, const char *out)
{
    char *gw = getenv("GRADWIRE");
    char *const argv[] = { gw, "run", (char *)study, "-q", "--force", "-o", (char *)out, NULL };
    pid_t child;
    int status = 0;

    if (!gw)
        die("GRADWIRE", "does not name the program under test");
    fflush(stdout);
    child = fork();
    if (!child) {
        if (!freopen("/dev/null", "w", stdout))
            _exit(126);
        execvp(gw, argv);
        _exit(127);
    }
    if (child < 0 || waitpid(child, &status, 0) < 0)
        die(gw, strerror(errno));
    return WIFEXITED(status) && !WEXITSTATUS(status);
}

/* Rows of the packet log stand in the order of sending, as the frames of the trace. */
static void read_log(const struct trace *t, const char *path, struct frame *got)
{
    FILE *in = fopen(path, "r");
    char line[256];
    uint32_t n = 0;

    if (!in || !fgets(line, sizeof line, in))
        die(path, "cannot be read");
    while (fgets(line, sizeof line, in)) {
        uint64_t sent_ps, recv_ps;
        uint32_t flow, size, ce;
        int fields = sscanf(line, "%*u,%u,%*u,%u,%" SCNu64 ",%" SCNu64 ",%u", &flow, &size,
                            &sent_ps, &recv_ps, &ce);

        if (fields < 3 || n == t->frames || flow != t->frame[n].flow ||
            size != t->frame[n].size || sent_ps != (uint64_t)t->frame[n].sent_ns * 1000)
            die("a row of the packet log is of another frame", line);
        got[n] = t->frame[n];
        got[n].recv_ns = fields < 4 ? NEVER : (int64_t)(recv_ps / 1000);
        got[n].ce = fields == 5 && ce;
        if (fields >= 4 && recv_ps % 1000)
            got[n].recv_ns = -1;                     /* the kernel knows no part of a ns          */
        n++;
    }
    fclose(in);
    if (n != t->frames)
        die(t->name, "not all frames were sent");
}

/* Flows of the frames that left, in order, from the capture at the sender. */
static uint32_t read_order(const struct trace *t, const char *path, uint8_t *flow)
{
    FILE *in = fopen(path, "r");
    uint32_t head[6], record[4], n = 0;
    uint8_t frame[SIZE_MOST];

    if (!in || fread(head, sizeof head, 1, in) != 1)
        die(path, "cannot be read");
    while (fread(record, sizeof record, 1, in) == 1) {
        if (record[2] > sizeof frame || fread(frame, record[2], 1, in) != 1 || n == t->frames)
            die(path, "is not a capture of this trace");
        flow[n++] = (uint8_t)((frame[34] << 8 | frame[35]) - 10000);
    }
    fclose(in);
    return n;
}

/* ---- comparing ------------------------------------------------------------------------------- */

static void show_time(int64_t ns, bool ce)
{
    if (ns == NEVER)
        printf("never");
    else
        printf("%" PRId64 "%s", ns, ce ? " CE" : "");
}

static uint32_t differing_frames(const struct trace *t, const struct frame *got)
{
    uint32_t off = 0;

    for (uint32_t i = 0; i < t->frames; i++) {
        const struct frame *w = &t->frame[i], *g = &got[i];

        if (w->recv_ns == g->recv_ns && w->ce == g->ce)
            continue;
        if (off++ >= SHOWN_MAX)
            continue;
        printf("  frame %u flow %u size %u sent %" PRId64 ": got ", i, w->flow, w->size,
               w->sent_ns);
        show_time(g->recv_ns, g->ce);
        printf(" want ");
        show_time(w->recv_ns, w->ce);
        printf("\n");
    }
    return off;
}

/* The same frames at the same times: then only those of one instant can be in another order. */
static uint32_t differing_order(const struct trace *t, const uint8_t *flow, uint32_t n)
{
    uint32_t count, *order = arrivals(t, &count), off = count != n;

    for (uint32_t i = 0; i < count && i < n; i++) {
        const struct frame *w = &t->frame[order[i]];

        if (w->flow == flow[i])
            continue;
        if (off++ < SHOWN_MAX)
            printf("  place %u at %" PRId64 ": got a frame of flow %u want one of %u\n", i,
                   w->recv_ns, flow[i], w->flow);
    }
    free(order);
    return off;
}

static bool compare_one(const struct trace *t, const char *work)
{
    struct frame *got = need(calloc(t->frames + 1, sizeof *got));
    uint8_t *flow = need(calloc(t->frames + 1, 1));
    char study[160], out[160], path[200];
    uint32_t off, lost = 0;

    snprintf(study, sizeof study, "%s/study.yaml", work);
    snprintf(out, sizeof out, "%s/out", work);
    write_study(t, study);
    off = !run_study(study, out);
    if (!off) {
        snprintf(path, sizeof path, "%s/packets-v-a.csv", out);
        read_log(t, path, got);
        snprintf(path, sizeof path, "%s/v-a.pcap", out);
        off = differing_frames(t, got);
        off += differing_order(t, flow, read_order(t, path, flow));
    }
    for (uint32_t i = 0; i < t->frames; i++)
        lost += t->frame[i].recv_ns == NEVER;
    printf("%s %s seed %" PRIu64 ": %u frames, %u lost, %u differ\n", off ? "FAIL" : "ok  ",
           t->name, t->seed, t->frames, lost, off);
    free(got);
    free(flow);
    return !off;
}

static int compare(const char *path, char **names, int n)
{
    const char *tmp = getenv("TMPDIR");
    unsigned good = 0, bad = 0;
    char work[64], clear[96], head[256] = "";
    struct trace t;
    gzFile in = open_file(path);

    snprintf(work, sizeof work, "%.40s/gw-ktrace-XXXXXX", tmp ? tmp : "/tmp");
    if (!mkdtemp(work))
        die(work, strerror(errno));
    while (read_trace(in, head, &t)) {
        if (asked_for(t.name, names, n)) {
            if (!t.recorded)
                die(t.name, "is a plan and no record");
            if (compare_one(&t, work))
                good++;
            else
                bad++;
        }
        forget(&t);
    }
    gzclose(in);
    snprintf(clear, sizeof clear, "rm -rf '%s'", work);
    if (system(clear))
        die(work, "cannot be removed");
    printf("%u traces: %u the same, %u not\n", good + bad, good, bad);
    return good && !bad ? 0 : 1;
}

int main(int argc, char **argv)
{
    if (argc >= 3 && !strcmp(argv[1], "plan"))
        return plan(strtoull(argv[2], NULL, 10), argv + 3, argc - 3);
    if (argc == 3 && !strcmp(argv[1], "send"))
        return send_all(argv[2]);
    if (argc >= 3 && !strcmp(argv[1], "compare"))
        return compare(argv[2], argv + 3, argc - 3);
    die("usage", "ktrace plan SEED [NAME ...] | send FILE | compare FILE [NAME ...]");
}
