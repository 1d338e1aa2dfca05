/*
 * test_qdisc_properties - every registered queue discipline under random programs of operations
 *
 * A program at a fixed seed mixes frames of random size, flow, priority, DSCP and ECN with
 * departures, waiting, changes by tc words, resets, grafts, deletions and new roots, on a real tree
 * with a real engine behind its timers. The test keeps its own account of the frames that the tree
 * holds (each is an allocation of its own, so a sanitizer sees any use after the end) and compares:
 *
 *   conservation   offered + copied = left + lost + held, in packets and bytes, at every step
 *   books          sent, dropped, drops by reason; a parent's backlog is its children's and its own
 *   limits         a queue never grows beyond what its words allow
 *   order          no frame overtakes one of the same flow, priority and DSCP (fifos: any frame)
 *   work           who promises it sends whenever something is held
 *   wake-ups       next_ps lies ahead, is not too late, and waiting for it makes progress
 *   hindsight      who may be asked late loses nothing when it is asked, and waits for no time
 *
 * A discipline that is registered without a row here runs with a default one.
 */
#include "tests/unit/suite.h"

#include "emu/core/engine.h"
#include "emu/tc/cmd.h"

#include <stdlib.h>
#include <unistd.h>

#define US GW_PS_PER_US
#define MS GW_PS_PER_MS

enum {
    HELD_MAX = 4096, FLOWS = 6, PRIOS = 8, DSCPS = 4, KEYS = FLOWS * PRIOS * DSCPS,
    STEPS = 10000, SEEDS = 3, TXQUEUELEN = 20, CHANGES = 8,
};

/* What a row promises. */
enum {
    WORK  = 1,               /* sends whenever it holds something                                 */
    FIFO  = 2,               /* keeps the order of all frames                                     */
    LOOSE = 4,               /* promises no order at all                                          */
    LATE  = 8,               /* wakes later than it could, as the kernel's timer does             */
    COPIES = 16,             /* makes frames of its own; the limit is looked at before            */
    TRIMS = 32,              /* a change to a lower limit throws out what is above it             */
};

/* Of a change. */
enum {
    REMAP = 1,               /* flows may stand in other queues afterwards                        */
    MAY   = 2,               /* may be refused: it depends on what came before                    */
};

struct change {
    const char *line;        /* an @ stands for `dev v`                                           */
    uint32_t pkts, bytes;    /* limits from then on, 0: none that this test knows                 */
    unsigned flags;
};

struct subject {
    const char *kind, *setup[10];
    unsigned    promise;
    uint32_t    pkts, bytes; /* limits                                                            */
    struct change change[CHANGES];
    uint32_t    priority[PRIOS];   /* of the frames; all 0: 0 to 7                                */
};

static const struct subject subjects[] = {
    { "pfifo", { "qdisc add @ root handle 1: pfifo limit 30" }, WORK | FIFO, 30, 0,
      { { "qdisc change @ root handle 1: pfifo limit 5", 5, 0, 0 },
        { "qdisc change @ root handle 1: pfifo limit 60", 60, 0, 0 },
        { "qdisc change @ root pfifo limit 1", 1, 0, 0 } }, { 0 } },
    { "pfifo", { "qdisc add @ root handle 1: stab overhead 20 mpu 64 linklayer atm pfifo limit 9" },
      WORK | FIFO, 9, 0, { { 0 } }, { 0 } },
    { "bfifo", { "qdisc add @ root handle 1: bfifo limit 20000" }, WORK | FIFO, 0, 20000,
      { { "qdisc change @ root bfifo limit 3000", 0, 3000, 0 },
        { "qdisc change @ root bfifo limit 60000", 0, 60000, 0 } }, { 0 } },
    { "pfifo_head_drop", { "qdisc add @ root handle 1: pfifo_head_drop limit 30" }, WORK | FIFO,
      30, 0, { { "qdisc change @ root pfifo_head_drop limit 5", 5, 0, 0 },
               { "qdisc change @ root pfifo_head_drop limit 50", 50, 0, 0 } }, { 0 } },
    { "pfifo_fast", { "qdisc add @ root handle 1: pfifo_fast" }, WORK, 3 * TXQUEUELEN, 0,
      { { 0 } }, { 0 } },
    { "skbprio", { "qdisc add @ root handle 1: skbprio limit 30" }, WORK, 30, 0,
      { { "qdisc change @ root skbprio limit 8", 8, 0, 0 },
        { "qdisc change @ root skbprio limit 40", 40, 0, 0 } }, { 0, 1, 2, 7, 63, 64, 99, 3 } },
    { "ecn_threshold", { "qdisc add @ root handle 1: ecn_threshold kmin 3000 kmax 9000 pmax 50% "
                         "limit 30000" }, WORK | FIFO, 0, 30000,
      { { "qdisc change @ root ecn_threshold kmin 9000 kmax 9000", 0, 30000, 0 },
        { "qdisc change @ root ecn_threshold limit 6000", 0, 6000, 0 } }, { 0 } },
    { "ndp", { "qdisc add @ root handle 1: ndp limit 6 headers 2000" }, WORK | LOOSE, 0, 0, { { 0 } },
      { 0 } },
    { "red", { "qdisc add @ root handle 1: red limit 30000 min 3000 max 9000 avpkt 1000 burst 5 "
               "bandwidth 100mbit" }, WORK | FIFO, 0, 30000,
      { { "qdisc change @ root red limit 30000 min 3000 max 9000 avpkt 1000 burst 5 ecn", 0,
          30000, 0 },
        { "qdisc change @ root red limit 20000 min 3000 max 9000 avpkt 1000 burst 5 ecn nodrop", 0,
          20000, 0 },
        { "qdisc change @ root red limit 40000 min 3000 max 9000 avpkt 1000 burst 5 adaptive "
          "harddrop ecn", 0, 40000, 0 } }, { 0 } },
    { "gred", { "qdisc add @ root handle 1: gred setup vqs 4 default 2 grio",
                "qdisc change @ root gred vq 2 prio 2 limit 20000 min 2000 max 9000 avpkt 1000 "
                "burst 5 bandwidth 100mbit probability 0.1",
                "qdisc change @ root gred vq 1 prio 1 limit 9000 min 2000 max 6000 avpkt 1000 "
                "burst 4 bandwidth 100mbit probability 0.5 ecn" }, WORK | FIFO, 0, 0,
      { { "qdisc change @ root gred vq 3 prio 2 limit 9000 min 2000 max 6000 avpkt 1000 burst 4 "
          "bandwidth 100mbit probability 0.5", 0, 0, MAY },
        { "qdisc change @ root gred vq 0 prio 3 limit 30000 min 2000 max 9000 avpkt 1000 burst 5 "
          "bandwidth 100mbit", 0, 0, 0 },
        { "qdisc change @ root gred setup vqs 3 default 1", 0, 0, 0 } }, { 0 } },
    { "choke", { "qdisc add @ root handle 1: choke limit 40 min 3 max 12 avpkt 1000 burst 6 "
                 "bandwidth 100mbit" }, WORK | FIFO, 40, 0,
      { { "qdisc change @ root choke limit 20 min 3 max 10 avpkt 1000 burst 6 bandwidth 100mbit "
          "ecn", 20, 0, 0 },
        { "qdisc change @ root choke limit 130 min 20 max 60 avpkt 1000 burst 40 bandwidth "
          "100mbit", 130, 0, 0 } }, { 0 } },
    { "codel", { "qdisc add @ root handle 1: codel limit 40 target 1ms interval 10ms" },
      WORK | FIFO | TRIMS, 40, 0,
      { { "qdisc change @ root codel limit 10 ecn", 10, 0, 0 },
        { "qdisc change @ root codel limit 60 noecn target 100us interval 1ms", 60, 0, 0 },
        { "qdisc change @ root codel limit 60 ce_threshold 500us", 60, 0, 0 } }, { 0 } },
    { "fq_codel", { "qdisc add @ root handle 1: fq_codel limit 60 flows 8 quantum 300 target 1ms "
                    "interval 10ms drop_batch 4 noecn" }, WORK | TRIMS, 60, 0,
      { { "qdisc change @ root fq_codel limit 20 ecn", 20, 0, 0 },
        { "qdisc change @ root fq_codel limit 50 quantum 3000 drop_batch 64 noecn", 50, 0, 0 },
        { "qdisc change @ root fq_codel limit 50 memory_limit 20kb", 50, 0, 0 },
        { "qdisc change @ root fq_codel limit 99 memory_limit 1mb ce_threshold 1ms", 99, 0, 0 } },
      { 0 } },
    { "pie", { "qdisc add @ root handle 1: pie limit 50 target 1ms tupdate 2ms" },
      WORK | FIFO | TRIMS, 50, 0,
      { { "qdisc change @ root pie limit 20 ecn", 20, 0, 0 },
        { "qdisc change @ root pie limit 60 bytemode noecn tupdate 10ms", 60, 0, 0 },
        { "qdisc change @ root pie limit 60 dq_rate_estimator alpha 30 beta 30", 60, 0, 0 } },
      { 0 } },
    { "fq_pie", { "qdisc add @ root handle 1: fq_pie limit 60 flows 8 target 1ms tupdate 2ms "
                  "quantum 300" }, WORK | TRIMS, 60, 0,
      { { "qdisc change @ root fq_pie limit 20 ecn", 20, 0, 0 },
        { "qdisc change @ root fq_pie limit 50 quantum 3000 bytemode", 50, 0, 0 },
        { "qdisc change @ root fq_pie limit 80 memory_limit 40kb noecn", 80, 0, 0 } }, { 0 } },
    { "fq", { "qdisc add @ root handle 1: fq limit 60 flow_limit 15 buckets 8" },
      WORK | TRIMS, 60, 0,
      { { "qdisc change @ root fq limit 30 quantum 500 initial_quantum 1000", 30, 0, 0 },
        { "qdisc change @ root fq limit 70 buckets 64 flow_limit 30", 70, 0, 0 },
        { "qdisc change @ root fq limit 70 buckets 2 nopacing", 70, 0, 0 } }, { 0 } },
    { "fq", { "qdisc add @ root handle 1: fq limit 90 maxrate 4mbit initial_quantum 2000 quantum "
              "1600" }, LATE, 90, 0,
      { { "qdisc change @ root fq limit 40 maxrate 20mbit", 40, 0, 0 },
        { "qdisc change @ root fq limit 90 maxrate 400kbit low_rate_threshold 550kbit", 90, 0, 0 },
        { "qdisc change @ root fq limit 90 nopacing", 90, 0, 0 },
        { "qdisc change @ root fq limit 90 pacing refill_delay 1ms", 90, 0, 0 } }, { 0 } },
    { "sfq", { "qdisc add @ root handle 1: sfq limit 40 flows 16 depth 10 quantum 600" }, WORK,
      40, 0, { { 0 } }, { 0 } },
    { "sfq", { "qdisc add @ root handle 1: sfq limit 60 flows 3 depth 30 headdrop divisor 4" },
      WORK, 60, 0, { { 0 } }, { 0 } },
    { "sfq", { "qdisc add @ root handle 1: sfq limit 60 flows 8 depth 40 redflowlimit 40000 min "
               "3000 max 9000 avpkt 1000 burst 5 ecn probability 0.1" }, WORK, 60, 0,
      { { 0 } }, { 0 } },
    { "sfq", { "qdisc add @ root handle 1: sfq limit 60 flows 8 depth 40 perturb 1" },
      WORK | LOOSE, 60, 0, { { 0 } }, { 0 } },
    { "cake", { "qdisc add @ root handle 1: cake memlimit 100kb" }, WORK, 0, 0,
      { { "qdisc change @ root cake diffserv8", 0, 0, REMAP },
        { "qdisc change @ root cake besteffort flowblind", 0, 0, REMAP },
        { "qdisc change @ root cake diffserv4 flows memlimit 30kb", 0, 0, REMAP },
        { "qdisc change @ root cake precedence dual-srchost wash rtt 1ms", 0, 0, REMAP } }, { 0 } },
    { "cake", { "qdisc add @ root handle 1: cake bandwidth 20mbit memlimit 60kb rtt 5ms" }, 0,
      0, 0, { { "qdisc change @ root cake bandwidth 100mbit", 0, 0, 0 },
           { "qdisc change @ root cake bandwidth 5mbit atm overhead 20", 0, 0, 0 },
           { "qdisc change @ root cake bandwidth 9mbit ingress diffserv4", 0, 0, REMAP },
           { "qdisc change @ root cake unlimited", 0, 0, 0 } },
      { 0, 1, 0x10001, 0x10002, 0x10003, 5, 6, 7 } },
    { "netem", { "qdisc add @ root handle 1: netem limit 40 delay 3ms 2ms 25% loss 5% duplicate "
                 "5% corrupt 3% reorder 20%" }, LOOSE | COPIES, 40, 0,
      { { "qdisc change @ root netem limit 20 delay 1ms loss gemodel 5% 20%", 20, 0, 0 },
        { "qdisc change @ root netem limit 60 delay 5ms 5ms distribution normal duplicate 30%", 60,
          0, 0 },
        { "qdisc change @ root netem limit 50 loss 20% ecn rate 50mbit", 50, 0, 0 },
        { "qdisc change @ root netem limit 50 slot 800us 2ms packets 3 bytes 4000", 50, 0, 0 } },
      { 0 } },
    { "netem", { "qdisc add @ root handle 1: netem limit 40 rate 20mbit delay 2ms 1ms" },
      FIFO, 40, 0,
      { { "qdisc change @ root netem limit 10 rate 5mbit 20 48 5", 10, 0, 0 },
        { "qdisc change @ root netem limit 40 rate 80mbit delay 1ms", 40, 0, 0 } }, { 0 } },
    { "netem", { "qdisc add @ root handle 1: netem limit 40 delay 2ms slot 1ms 1ms packets 4" },
      FIFO, 40, 0, { { 0 } }, { 0 } },
    { "netem", { "qdisc add @ root handle 1: netem limit 50 delay 1ms 500us duplicate 10%",
                 "qdisc add @ parent 1:1 handle 10: tbf rate 20mbit burst 3000 limit 20000" },
      LOOSE | COPIES, 50, 0,
      { { "qdisc change @ root netem limit 20 delay 2ms duplicate 10%", 20, 0, 0 },
        { "qdisc change @ parent 1:1 handle 10: tbf rate 5mbit burst 2000 limit 9000", 0, 0,
          MAY } },
      { 0 } },
    { "tbf", { "qdisc add @ root handle 1: tbf rate 16mbit burst 4000 limit 20000" }, FIFO, 0,
      20000, { { "qdisc change @ root tbf rate 80mbit burst 3000 limit 9000", 0, 9000, 0 },
               { "qdisc change @ root tbf rate 40mbit burst 9000 limit 30000 peakrate 50mbit mtu "
                 "1600", 0, 30000, 0 },
               { "qdisc change @ root tbf rate 1gbit burst 9000 limit 10000 overhead 24 mpu 84", 0,
                 10000, 0 } }, { 0 } },
    { "htb", { "qdisc add @ root handle 1: htb default 30 direct_qlen 9",
               "class add @ parent 1: classid 1:1 htb rate 80mbit burst 3000 cburst 3000",
               "class add @ parent 1:1 classid 1:10 htb rate 30mbit ceil 80mbit prio 1",
               "class add @ parent 1:1 classid 1:20 htb rate 10mbit ceil 60mbit quantum 500",
               "class add @ parent 1:1 classid 1:30 htb rate 5mbit ceil 80mbit prio 2",
               "filter add @ parent 1: protocol ip pref 1 u32 match ip dport 5001 0xffff flowid "
               "1:10", "filter add @ parent 1: protocol ip pref 2 u32 match ip dport 5002 0xffff "
               "flowid 1:20" }, 0, 0, 0,
      { { "class change @ parent 1:1 classid 1:10 htb rate 1mbit ceil 2mbit prio 0", 0, 0, 0 },
        { "class add @ parent 1:30 classid 1:40 htb rate 5mbit ceil 80mbit", 0, 0, REMAP },
        { "class del @ classid 1:40", 0, 0, REMAP },
        { "class del @ classid 1:30", 0, 0, REMAP },
        { "class add @ parent 1:1 classid 1:30 htb rate 20mbit prio 7", 0, 0, REMAP },
        { "class change @ parent 1:1 classid 1:20 htb rate 1gbit quantum 9000 prio 3", 0, 0, 0 } },
      { 0, 0x10010, 0x10020, 0x10030, 0x10040, 0x10000, 7, 0x10001 } },
    { "drr", { "qdisc add @ root handle 1: drr",
               "class add @ parent 1: classid 1:1 drr quantum 700",
               "class add @ parent 1: classid 1:2 drr quantum 1514",
               "class add @ parent 1: classid 1:3 drr quantum 60",
               "filter add @ parent 1: protocol ip pref 1 u32 match ip dport 5001 0xffff flowid "
               "1:1", "filter add @ parent 1: protocol ip pref 2 u32 match ip dport 5002 0xffff "
               "flowid 1:2", "filter add @ parent 1: protocol all pref 9 matchall flowid 1:3" },
      WORK, 0, 0,
      { { "class add @ parent 1: classid 1:4 drr quantum 3000", 0, 0, REMAP },
        { "class del @ classid 1:4", 0, 0, REMAP },
        { "class change @ parent 1: classid 1:1 drr quantum 100", 0, 0, 0 },
        { "filter del @ parent 1: pref 9", 0, 0, REMAP },
        { "filter add @ parent 1: protocol all pref 9 matchall flowid 1:4", 0, 0, REMAP } },
      { 0, 1, 0x10001, 0x10002, 0x10003, 0x10004, 0x10005, 7 } },
    { "prio", { "qdisc add @ root handle 1: prio" }, WORK, 0, 0,
      { { "qdisc change @ root prio bands 5 priomap 0 1 2 3 4 0 1 2 0 0 0 0 0 0 0 0", 0, 0, REMAP },
        { "qdisc change @ root prio bands 2 priomap 0 1 0 1 0 1 0 1 0 0 0 0 0 0 0 0", 0, 0, REMAP },
        { "filter replace @ parent 1: protocol ip pref 1 u32 match ip dport 5001 0xffff flowid 1:2",
          0, 0, REMAP } }, { 0, 1, 2, 6, 7, 0x10001, 0x10002, 0x10003 } },
    { "ets", { "qdisc add @ root handle 1: ets strict 1 quanta 700 2000 1514" }, WORK, 0, 0,
      { { "qdisc change @ root ets strict 2 quanta 900", 0, 0, REMAP },
        { "qdisc change @ root ets bands 6 quanta 100 200", 0, 0, REMAP },
        { "class change @ classid 1:2 ets quantum 60", 0, 0, 0 } },
      { 0, 1, 2, 6, 7, 0x10001, 0x10002, 0x10003 } },
    { "spq_dwrr", { "qdisc add @ root handle 1: spq_dwrr strict 1 quanta 700 1500 limit 9kb" },
      WORK, 0, 0,
      { { "qdisc change @ root spq_dwrr bands 3 limit 3kb", 0, 0, REMAP },
        { "qdisc change @ root spq_dwrr strict 2 quanta 900 by dscp", 0, 0, REMAP } },
      { 0, 1, 2, 6, 7, 0x10001, 0x10002, 0x10003 } },
    { "link_trace", { "qdisc add @ root handle 1: link_trace file % limit 30" }, FIFO, 30, 0,
      { { "qdisc change @ root link_trace limit 5", 5, 0, 0 },
        { "qdisc change @ root link_trace limit 40", 40, 0, 0 } }, { 0 } },
};

/* What may keep a frame back; a tree of the others sends whenever it holds something. */
static const char *const shapers[] = { "tbf", "htb", "netem", "cake", "fq", "link_trace" };

/* What is grafted under classes: 8 that conserve work, then three that shape. */
static const char *const children[] = {
    "pfifo limit 5", "bfifo limit 5000", "codel limit 9 target 100us interval 1ms",
    "fq_codel limit 20 flows 4 target 100us interval 1ms drop_batch 2", "sfq limit 10 flows 4",
    "prio", "pie limit 9 target 1ms tupdate 2ms", "pfifo_head_drop limit 4",
    "tbf rate 20mbit burst 3000 limit 9000", "netem delay 500us limit 20", "cake bandwidth 30mbit",
};

/* ---- a device and its account -------------------------------------------------------------- */

struct dev {
    const struct subject *s;
    uint64_t seed, step, state;
    struct gw_registry *r;
    struct gw_engine *e;
    struct gw_tree *t;
    struct gw_pkt *held[HELD_MAX]; /* alive, in any order; tp[3] is the place                    */
    uint32_t alive;
    uint64_t offered, copied, left, left_segs, left_bytes, lost, lost_bytes;
    uint64_t base_left_segs, base_left_bytes, base_lost, base_lost_bytes;    /* when the root came    */
    uint64_t closed;               /* lost in tins of cake that a change closed: in no book      */
    uint64_t seq, epoch;           /* of frames; of what may stand in other queues               */
    uint64_t last[KEYS], last_any; /* highest number that left, plus 1                           */
    uint32_t pkts, bytes;          /* limits that hold; bytes: until a child is grafted          */
    uint64_t next_ps;              /* what the tree said when it gave nothing; 0: not asked      */
    uint32_t idle;                 /* wake-ups in a row that gave nothing                        */
    bool     grafted, bad;
    bool     shrunk;               /* a tbf changed while frames waited: they may be too long now */
    struct gw_error err;
    char     file[40];             /* of link_trace                                              */
};

#define HOLD(d, cond, ...)                                                                       \
    do {                                                                                         \
        if (!(cond) && !(d)->bad) {                                                              \
            (d)->bad = true;                                                                     \
            fprintf(stderr, "%s, seed %llu, step %llu, %llu ps: ", (d)->s->setup[0],             \
                    (unsigned long long)(d)->seed, (unsigned long long)(d)->step,                \
                    (unsigned long long)gw_engine_now((d)->e));                                  \
            CHECK_ROW(cond, __VA_ARGS__);                                                        \
        }                                                                                        \
    } while (0)

#define ULL(x) ((unsigned long long)(x))

static uint32_t dice(struct dev *d, uint32_t n)
{
    d->state = d->state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(d->state >> 33) % n;
}

static struct gw_pkt *dev_alloc(void *net)
{
    struct dev *d = net;
    struct gw_pkt *p = calloc(1, sizeof *p);

    if (!p || d->alive == HELD_MAX)
        abort();
    p->ext = GW_NONE;
    p->tp[3] = d->alive;
    d->held[d->alive++] = p;
    return p;
}

static void dev_free(void *net, struct gw_pkt *p)
{
    struct dev *d = net;
    uint64_t at = p->tp[3];

    if (at >= d->alive || d->held[at] != p)
        abort();                                     /* not alive: freed twice                   */
    d->held[at] = d->held[--d->alive];
    d->held[at]->tp[3] = at;
    free(p);
}

static struct gw_pkt *dev_copy(void *net, const struct gw_pkt *p)
{
    struct gw_pkt *c = dev_alloc(net);
    uint64_t at = c->tp[3];

    *c = *p;
    c->next = NULL;
    c->tp[3] = at;
    ((struct dev *)net)->copied++;
    return c;
}

static struct gw_pkt *dev_segment(void *net, struct gw_pkt *p, uint32_t i)
{
    uint32_t last = p->seg_count - 1u, rest = p->len_bytes - last * p->seg_bytes;
    struct gw_pkt *s = i == last ? p : dev_copy(net, p);

    HOLD((struct dev *)net, p->seg_count > 1 && i <= last, "segment %u of %u", i, p->seg_count);
    s->len_bytes = s->sched_bytes = i == last ? rest : p->seg_bytes;
    s->seg_bytes = s->seg_count = 0;
    return s;
}

static void dev_flip(void *net, struct gw_pkt *p, uint32_t bit)
{
    struct dev *d = net;

    HOLD(d, bit < 8 * p->len_bytes, "bit %u of a frame of %u bytes was flipped", bit, p->len_bytes);
    p->flags |= GW_PKT_CORRUPT;
}

static void lose(struct dev *d, struct gw_pkt *p)
{
    d->lost++;
    d->lost_bytes += p->sched_bytes;
    dev_free(d, p);
}

static void dev_drop(void *ctx, struct gw_pkt *p, enum gw_drop_reason why)
{
    (void)why;
    lose(ctx, p);
}

static void dev_kick(void *ctx, uint64_t now_ps)
{
    struct dev *d = ctx;

    d->next_ps = 0;
    HOLD(d, now_ps == gw_engine_now(d->e), "a kick at %llu", ULL(now_ps));
}

static void dev_fields(void *ctx, const struct gw_pkt *p, struct gw_pkt_fields *f)
{
    (void)ctx;
    f->src_ip = 0x0a000001 + p->src;
    f->dst_ip = 0x0a000101 + p->dst;
    f->src_port = 4000;
    f->dst_port = (uint16_t)(5000 + p->flow);
    f->ip_bytes = (uint16_t)(p->len_bytes - 14);
    f->ip_proto = 6;
    f->tos = (uint8_t)(p->dscp << 2 | p->ecn);
}

static void timer_set(void *net, struct gw_timer *t, uint64_t at_ps)
{
    gw_engine_timer_set(((struct dev *)net)->e, t, at_ps);
}

static void timer_stop(void *net, struct gw_timer *t)
{
    gw_engine_timer_stop(((struct dev *)net)->e, t);
}

static struct gw_tree *dev_named(void *ctx, const char *name, struct gw_error *err)
{
    (void)name, (void)err;
    return ((struct dev *)ctx)->t;
}

/* A tc line in which @ is `dev v` and % the file of link_trace; its exit code. */
static int tc(struct dev *d, const char *line)
{
    struct gw_tc_ctx c = { .ctx = d, .device = dev_named, .now_ps = gw_engine_now(d->e) };
    char text[512] = "", one[2] = "";
    uint32_t count;
    char **word;
    int rc;

    for (const char *s = line; *s; s++) {
        one[0] = *s;
        strcat(text, *s == '@' ? "dev v" : *s == '%' && s[-1] == ' ' ? d->file : one);
    }
    word = gw_tc_split(text, &count);
    memset(&d->err, 0, sizeof d->err);
    rc = gw_tc_run(&c, word, count, &d->err);
    HOLD(d, !rc == !d->err.text[0], "tc %s: exit code %d, sentence \"%s\"", text, rc, d->err.text);
    free(word[0]);
    free(word);
    d->next_ps = 0;
    return rc;
}

/* ---- what must hold ------------------------------------------------------------------------ */

static uint64_t reasons(const struct gw_qdisc *q)
{
    uint64_t n = 0;

    for (int i = 0; i < GW_DROP_COUNT; i++)
        n += q->drops[i];
    return n;
}

/* A parent holds what its children hold; only some hold more. */
static void check_family(struct dev *d, const struct gw_qdisc *q)
{
    uint64_t pkts = 0, bytes = 0, peeked = q->peeked != NULL;
    uint32_t kids = 0;
    bool own = !strcmp(q->kind, "netem") || !strcmp(q->kind, "htb");

    for (const struct gw_qdisc *x = d->t->all; x; x = x->sibling)
        if (x->up == q) {
            pkts += x->backlog_pkts;
            bytes += x->backlog_bytes;
            kids++;
        }
    HOLD(d, peeked <= q->backlog_pkts, "%s: peeked at a frame that it does not hold", q->kind);
    if (!kids) {
        HOLD(d, reasons(q) + (own ? q->marked_pkts : 0) ==
             q->dropped_pkts + (q == d->t->root ? d->closed : 0),
             "%s: %llu drops, by reason %llu", q->kind, ULL(q->dropped_pkts), ULL(reasons(q)));
        return;
    }
    HOLD(d, pkts + peeked <= q->backlog_pkts && bytes <= q->backlog_bytes && (own ||
         (pkts + peeked == q->backlog_pkts && bytes + (peeked ? q->peeked->sched_bytes : 0) ==
          q->backlog_bytes)), "%s %x: holds %llu packets, %llu bytes; its children %llu, %llu",
         q->kind, q->handle, ULL(q->backlog_pkts), ULL(q->backlog_bytes), ULL(pkts), ULL(bytes));
    HOLD(d, reasons(q) <= q->dropped_pkts, "%s: %llu drops, by reason %llu", q->kind,
         ULL(q->dropped_pkts), ULL(reasons(q)));
}

static void check_books(struct dev *d)
{
    const struct gw_qdisc *q = d->t->root;
    uint64_t bytes = 0, marked = !q || strcmp(q->kind, "netem") ? 0 : q->marked_pkts;

    for (uint32_t i = 0; i < d->alive; i++)
        bytes += d->held[i]->sched_bytes;
    HOLD(d, d->offered + d->copied == d->left + d->lost + d->alive,
         "%llu + %llu came, %llu left, %llu lost, %u held", ULL(d->offered), ULL(d->copied),
         ULL(d->left), ULL(d->lost), d->alive);
    if (!q) {
        HOLD(d, !d->alive, "%u frames held without a discipline", d->alive);
        return;
    }
    HOLD(d, q->backlog_pkts == d->alive && q->backlog_bytes == bytes,
         "backlog %llu packets, %llu bytes; held %u, %llu", ULL(q->backlog_pkts),
         ULL(q->backlog_bytes), d->alive, ULL(bytes));
    HOLD(d, q->sent_pkts == d->left_segs - d->base_left_segs &&
         q->sent_bytes == d->left_bytes - d->base_left_bytes,
         "sent %llu packets, %llu bytes; left %llu, %llu", ULL(q->sent_pkts), ULL(q->sent_bytes),
         ULL(d->left_segs - d->base_left_segs), ULL(d->left_bytes - d->base_left_bytes));
    HOLD(d, q->dropped_pkts - marked + d->closed == d->lost - d->base_lost,
         "dropped %llu packets, lost %llu", ULL(q->dropped_pkts - marked),
         ULL(d->lost - d->base_lost));
    for (q = d->t->all; q && !d->bad; q = q->sibling)
        check_family(d, q);
}

static bool conserving(const struct dev *d)
{
    for (const struct gw_qdisc *q = d->t->all; q; q = q->sibling)
        for (size_t i = 0; i < GW_ARRAY_LEN(shapers); i++)
            if (!strcmp(q->kind, shapers[i]) && (q != d->t->root || !(d->s->promise & WORK)))
                return false;
    return true;
}

/* May all that hang there be asked late? */
static bool in_hindsight(const struct dev *d)
{
    for (const struct gw_qdisc *q = d->t->all; q; q = q->sibling)
        if (!q->ops->in_hindsight)
            return false;
    return true;
}

static void check_order(struct dev *d, const struct gw_pkt *p)
{
    uint64_t key = p->tp[1], *last = &d->last[key];

    if (d->s->promise & LOOSE || p->tp[2] != d->epoch)
        return;
    HOLD(d, p->tp[0] + 1 >= *last, "frame %llu of flow %u, priority %x left behind %llu",
         ULL(p->tp[0]), p->flow, p->priority, ULL(*last - 1));
    HOLD(d, !(d->s->promise & FIFO) || d->grafted || p->tp[0] + 1 >= d->last_any,
         "frame %llu left behind %llu", ULL(p->tp[0]), ULL(d->last_any - 1));
    *last = p->tp[0] + 1;
    if (d->last_any < p->tp[0] + 1)
        d->last_any = p->tp[0] + 1;
}

/* ---- operations ---------------------------------------------------------------------------- */

static void new_root(struct dev *d)
{
    d->base_left_segs = d->left_segs;
    d->base_left_bytes = d->left_bytes;
    d->base_lost = d->lost;
    d->base_lost_bytes = d->lost_bytes;
    d->closed = 0;
    d->epoch++;
    memset(d->last, 0, sizeof d->last);
    d->last_any = 0;
    d->grafted = false;
    d->pkts = d->s->pkts;
    d->bytes = d->s->bytes;
    d->next_ps = 0;
}

static uint32_t random_size(struct dev *d)
{
    switch (dice(d, 8)) {
    case 0:
        return 60;
    case 1: case 2:
        return 1514;
    case 3:
        return dice(d, 8) ? 590 : 2900;
    default:
        return 60 + dice(d, 1455);
    }
}

static void op_offer(struct dev *d)
{
    static const uint8_t dscps[DSCPS] = { 0, 8, 46, 56 };
    struct gw_pkt *p = dev_alloc(d);
    uint32_t f = dice(d, FLOWS), k = dice(d, PRIOS), c = dice(d, 3) ? 0 : dice(d, DSCPS);
    uint64_t pkts = d->t->root->backlog_pkts, bytes = d->t->root->backlog_bytes;

    p->len_bytes = random_size(d);
    if (!dice(d, 8)) {                               /* a super-packet                           */
        p->seg_count = (uint8_t)(2 + dice(d, 4));
        p->seg_bytes = (uint16_t)(p->len_bytes + dice(d, 900));
        p->len_bytes += (uint32_t)p->seg_bytes * (p->seg_count - 1u);
    }
    p->flow = f;
    p->hash = f * 2654435761u;
    p->src = f / 2;
    p->dst = f % 3;
    p->priority = d->s->priority[1] ? d->s->priority[k] : k;
    p->dscp = dscps[c];
    p->ecn = (uint8_t)dice(d, 4);
    p->tp[0] = d->seq++;
    p->tp[1] = (f * PRIOS + k) * DSCPS + c;
    p->tp[2] = d->epoch;
    d->offered++;
    if (gw_tree_enqueue(d->t, p, gw_engine_now(d->e)) == GW_Q_DROPPED)
        lose(d, p);
    d->next_ps = 0;
    pkts = d->pkts > pkts ? d->pkts : pkts;
    bytes = d->bytes > bytes ? d->bytes : bytes;
    HOLD(d, !d->pkts || d->t->root->backlog_pkts <= pkts + !!(d->s->promise & COPIES),
         "%llu packets held, limit %u", ULL(d->t->root->backlog_pkts), d->pkts);
    HOLD(d, !d->bytes || d->grafted || d->t->root->backlog_bytes <= bytes,
         "%llu bytes held, limit %u", ULL(d->t->root->backlog_bytes), d->bytes);
}

/* True: a frame left. */
static bool op_take(struct dev *d)
{
    uint64_t now = gw_engine_now(d->e), held = d->t->root->backlog_pkts, lost = d->lost;
    struct gw_pkt *p = gw_tree_dequeue(d->t, now);

    HOLD(d, d->lost == lost || !in_hindsight(d), "%llu packets lost when asked", ULL(d->lost - lost));
    if (p) {
        d->left++;
        d->left_segs += p->seg_count > 1 ? p->seg_count : 1;
        d->left_bytes += p->sched_bytes;
        check_order(d, p);
        HOLD(d, p->stamp_ps <= now, "frame %llu came at %llu", ULL(p->tp[0]), ULL(p->stamp_ps));
        dev_free(d, p);
        d->next_ps = 0;
        return true;
    }
    d->next_ps = gw_tree_next_ps(d->t, now);
    HOLD(d, d->next_ps > now, "next_ps %llu does not lie ahead", ULL(d->next_ps));
    d->shrunk = d->shrunk && d->t->root->backlog_pkts;
    HOLD(d, d->next_ps != GW_NEVER || !d->t->root->backlog_pkts || d->shrunk,
         "%llu of %llu packets are held for ever", ULL(d->t->root->backlog_pkts), ULL(held));
    HOLD(d, d->next_ps == GW_NEVER || !in_hindsight(d), "waits until %llu", ULL(d->next_ps));
    HOLD(d, !conserving(d) || !d->t->root->backlog_pkts, "idle with %llu packets",
         ULL(d->t->root->backlog_pkts));
    return false;
}

static void wait_until(struct dev *d, uint64_t at_ps)
{
    struct gw_error err = { 0 };
    bool more;

    gw_engine_run(d->e, at_ps, UINT64_MAX, &more, &err);
    gw_engine_advance(d->e, at_ps);
}

static void op_wait(struct dev *d)
{
    uint32_t k = dice(d, 100);
    uint64_t us = k < 80 ? dice(d, 200) : k < 99 ? dice(d, 20000) : dice(d, 3000000);

    wait_until(d, gw_engine_now(d->e) + us * US + dice(d, 1000000));
}

/* Sleeps until the tree wants to be asked, and looks in between whether that is too late. */
static void op_wake(struct dev *d)
{
    uint64_t now = gw_engine_now(d->e), next = d->next_ps;

    if (!next || next == GW_NEVER)
        return;
    if (next > now + 1 && !(d->s->promise & LATE) && !d->grafted && dice(d, 2)) {
        wait_until(d, now + 1 + (uint64_t)dice(d, 1 << 30) * (next - now - 1) / (1 << 30));
        if (d->next_ps) {                            /* no kick meanwhile                        */
            HOLD(d, !op_take(d), "a frame could leave %llu ps before next_ps",
                 ULL(next - gw_engine_now(d->e)));
            next = d->next_ps;
        }
        if (!next || next == GW_NEVER)
            return;
    }
    wait_until(d, next);
    d->idle = op_take(d) ? 0 : d->idle + 1;
    HOLD(d, d->idle < 1000, "woke %u times for nothing", d->idle);
}

static void op_change(struct dev *d)
{
    const struct change *c = &d->s->change[dice(d, CHANGES)];
    const struct gw_qdisc *q = d->t->root;
    uint64_t lost = d->lost, dropped = q->dropped_pkts;
    int rc;

    if (!c->line)
        return;
    rc = tc(d, c->line);
    if (!strcmp(q->kind, "cake"))
        d->closed += d->lost - lost - (q->dropped_pkts - dropped);
    d->shrunk = d->shrunk || strstr(c->line, "tbf");
    HOLD(d, rc == 0 || rc == 2, "tc %s: exit code %d: %s", c->line, rc, d->err.text);
    HOLD(d, rc == 0 || c->flags & MAY || (c->line[0] != 'q' && q->ops->class_find), "tc %s: %s",
         c->line, d->err.text);
    if (rc)
        return;
    if (!strncmp(c->line, "qdisc", 5) && strstr(c->line, "root")) {
        d->pkts = c->pkts;
        d->bytes = c->bytes;
        HOLD(d, !(d->s->promise & TRIMS) || q->backlog_pkts <= c->pkts,
             "tc %s: %llu packets are held", c->line, ULL(q->backlog_pkts));
    }
    if (c->flags & REMAP) {
        d->epoch++;
        memset(d->last, 0, sizeof d->last);
    }
}

static uint32_t random_class(struct dev *d)
{
    struct gw_qdisc *q = d->t->root;
    struct gw_qclass *c = NULL;
    uint32_t n = 0, id = 0;

    if (!q->ops->class_walk)
        return 0;
    while ((c = q->ops->class_walk(q, c)))
        if (!dice(d, ++n))
            id = c->id;
    return id;
}

/* Puts another discipline under a class, or takes one away. */
static void op_graft(struct dev *d)
{
    uint32_t id = random_class(d), n = GW_ARRAY_LEN(children);
    char line[256];
    int rc;

    if (!id)
        return;
    if (dice(d, 3))
        snprintf(line, sizeof line, "qdisc replace @ parent %x:%x handle %x: %s", id >> 16,
                 id & 0xffff, 0x100 + dice(d, 64), children[dice(d, dice(d, 2) ? 8 : n)]);
    else
        snprintf(line, sizeof line, "qdisc del @ parent %x:%x", id >> 16, id & 0xffff);
    rc = tc(d, line);
    HOLD(d, rc == 0 || rc == 2, "tc %s: exit code %d: %s", line, rc, d->err.text);
    d->grafted = d->grafted || !rc;
    d->shrunk = d->shrunk || strstr(line, "tbf");
    d->epoch += !rc;                                 /* the new child does not know the old order */
    memset(d->last, 0, sizeof d->last);
}

static bool below(const struct gw_qdisc *q, const struct gw_qdisc *top)
{
    while (q && q != top)
        q = q->up;
    return q != NULL;
}

/* As when a link goes down: leaves first. Left out while a parent has peeked at a frame. */
static void op_reset(struct dev *d)
{
    for (const struct gw_qdisc *q = d->t->all; q; q = q->sibling)
        if (q->peeked || !q->ops->reset)
            return;
    for (;;) {
        struct gw_qdisc *leaf = NULL;

        for (struct gw_qdisc *q = d->t->all; q; q = q->sibling)
            if (q->backlog_pkts && (!leaf || below(q, leaf)))
                leaf = q;
        if (!leaf)
            break;
        leaf->ops->reset(leaf, gw_engine_now(d->e));
        HOLD(d, !leaf->backlog_pkts, "%s: %llu packets are left by a reset", leaf->kind,
             ULL(leaf->backlog_pkts));
        if (d->bad)
            return;
    }
    d->next_ps = 0;
}

static void set_up(struct dev *d)
{
    for (size_t i = 0; i < GW_ARRAY_LEN(d->s->setup) && d->s->setup[i]; i++)
        HOLD(d, tc(d, d->s->setup[i]) == 0, "tc %s: %s", d->s->setup[i], d->err.text);
    new_root(d);
}

/* Another root, deleted or replaced while frames wait. */
static void op_new_root(struct dev *d)
{
    if (dice(d, 2)) {
        HOLD(d, tc(d, "qdisc del @ root") == 0, "%s", d->err.text);
        HOLD(d, !d->alive, "%u frames are left by a deletion", d->alive);
    } else {
        HOLD(d, tc(d, "qdisc replace @ root handle 99: pfifo_head_drop limit 3") == 0, "%s",
             d->err.text);
        HOLD(d, !d->alive, "%u frames are left by a replacement", d->alive);
        new_root(d);
        op_offer(d);
        HOLD(d, tc(d, "qdisc del @ root") == 0, "%s", d->err.text);
    }
    set_up(d);
}

static void step(struct dev *d, uint32_t arrivals)
{
    uint32_t k = dice(d, 1000);

    if (k < 900) {
        if (dice(d, 100) < arrivals)
            op_offer(d);
        else if (!op_take(d) && dice(d, 2))
            op_wake(d);
    } else if (k < 950) {
        op_wait(d);
    } else if (k < 970) {
        op_wake(d);
    } else if (k < 985) {
        op_change(d);
    } else if (k < 995) {
        op_graft(d);
    } else if (k < 998) {
        op_reset(d);
    } else {
        op_new_root(d);
    }
}

/* Ends when nothing is held; every wait must bring that nearer. */
static void drain(struct dev *d)
{
    for (uint32_t i = 0; i < 100000 && d->t->root->backlog_pkts && !d->bad; i++)
        if (!op_take(d) && d->next_ps != GW_NEVER)
            op_wake(d);
    HOLD(d, !d->alive, "%u frames never leave", d->alive);
    check_books(d);
}

static void make_trace(struct dev *d)
{
    int fd;
    FILE *f;

    strcpy(d->file, "/tmp/gradwire-trace-XXXXXX");
    fd = mkstemp(d->file);
    f = fd < 0 ? NULL : fdopen(fd, "w");
    CU_ASSERT_PTR_NOT_NULL_FATAL(f);
    for (int i = 0; i < 40; i++)
        fprintf(f, "%d\n", 1 + i / 3 + i / 20);
    fclose(f);
}

static void run_program(const struct subject *s, uint64_t seed)
{
    struct dev *d = calloc(1, sizeof *d);
    uint32_t arrivals = 60;
    struct gw_host *h;

    CU_ASSERT_PTR_NOT_NULL_FATAL(d);
    d->s = s;
    d->seed = seed;
    d->state = seed * UINT64_C(0x9e3779b97f4a7c15);
    d->r = gw_registry_new(false, &d->err);
    d->e = gw_engine_new(seed, 1, NULL, d);
    CU_ASSERT_FATAL(d->r && d->e);
    d->t = gw_tree_new(&(struct gw_tree_conf){ .registry = d->r, .dev = "v", .net = d,
                       .mtu_bytes = 1514, .txqueuelen = TXQUEUELEN, .seed = seed, .ctx = d,
                       .auto_limit_bytes = 30000, .drop = dev_drop, .kick = dev_kick,
                       .fields = dev_fields }, &d->err);
    CU_ASSERT_PTR_NOT_NULL_FATAL(d->t);
    h = gw_registry_host(d->r);
    h->pkt_alloc = dev_alloc;
    h->pkt_free = dev_free;
    h->pkt_copy = dev_copy;
    h->pkt_segment = dev_segment;
    h->pkt_flip = dev_flip;
    h->timer_set = timer_set;
    h->timer_stop = timer_stop;
    make_trace(d);
    set_up(d);
    for (d->step = 0; d->step < STEPS && !d->bad; d->step++) {
        if (!dice(d, 100))
            arrivals = dice(d, 3) ? 20 + dice(d, 70) : dice(d, 100);
        step(d, arrivals);
        check_books(d);
    }
    drain(d);
    HOLD(d, d->left > STEPS / 20, "only %llu frames left: nothing was tested", ULL(d->left));
    if (d->t->root)
        tc(d, "qdisc del @ root");
    HOLD(d, !d->alive, "%u frames are left", d->alive);
    gw_tree_free(d->t);
    gw_engine_free(d->e);
    gw_registry_free(d->r);
    unlink(d->file);
    while (d->alive)
        dev_free(d, d->held[0]);
    free(d);
}

/* ---- cases --------------------------------------------------------------------------------- */

static bool has_row(const char *kind)
{
    for (size_t i = 0; i < GW_ARRAY_LEN(subjects); i++)
        if (!strcmp(subjects[i].kind, kind))
            return true;
    return false;
}

static void test_rows(void)
{
    for (size_t i = 0; i < GW_ARRAY_LEN(subjects); i++)
        for (uint64_t seed = 1; seed <= SEEDS; seed++)
            run_program(&subjects[i], 1000 * i + seed);
}

/* What is registered and has no row above: with its defaults, and no promise but the books. */
static void test_others(void)
{
    struct gw_error err = { 0 };
    struct gw_registry *r = gw_registry_new(false, &err);
    const struct gw_entry *e;
    uint32_t seen = 0;

    CU_ASSERT_PTR_NOT_NULL_FATAL(r);
    for (size_t i = 0; (e = gw_registry_at(r, i)); i++) {
        char line[128];
        struct subject s = { .kind = e->plugin->name, .setup = { line }, .promise = LOOSE | LATE };

        if (e->plugin->kind != GW_KIND_QDISC)
            continue;
        seen++;
        snprintf(line, sizeof line, "qdisc add @ root handle 1: %s", s.kind);
        if (!has_row(s.kind))
            run_program(&s, 7);
    }
    CU_ASSERT(seen >= 20);
    gw_registry_free(r);
}

static const struct gw_case cases[] = {
    { "random programs", test_rows },
    { "disciplines without a row", test_others },
    { NULL, NULL },
};
const struct gw_suite suite_qdisc_properties = { "qdisc_properties", cases };
