/*
 * sch_cake - shaper, overhead compensation, tins, fair flows and hosts, and COBALT in one
 *
 * What Linux's cake does. The shaper works by virtual time: a frame leaves when time_next has come
 * and moves time_next on by its adjusted length at the rate; a frame that finds the shaper idle
 * leaves at once. Packets are sorted into tins by DSCP (or by a priority that names class
 * 1..tins of this discipline); below its threshold rate a tin has strict priority, above it the
 * earliest schedule wins; without a bandwidth tins share by deficit. In a tin 1024 queues, found by
 * 8-way set-associative hashing, are served by DRR++ (new flows first, then bulk ones), each
 * queue's quantum divided by the number of busy flows of its source or destination host. Each
 * queue has COBALT: CoDel with an exact first inverse square root and a schedule that decays, and
 * BLUE for what does not respond. Over the memory limit the longest queue loses its head.
 *
 * Kept as they are: the first drop comes one packet after the target is passed (the inverse root
 * starts at 0), intervals above 4.29 s wrap (rtt interplanetary), the heap of longest queues sifts
 * down one level only. Times are nanoseconds inside.
 *
 * Differs: hosts are the end nodes of a packet; hashes come from the study's seed. Taken and shown
 * without effect: nat (there is none), fwmark (packets carry no mark), ack-filter (a packet's
 * transport header belongs to its transport). The memory limit is enforced behind each segment of a
 * super-packet that is taken apart, not behind all. Overhead is computed when a packet leaves, so a change of it also
 * meets packets that wait.
 * Follows net/sched/sch_cake.c of Linux 6.1 and q_cake.c of iproute2 6.1; DSCP tables as recorded.
 */
#include <gradwire/gradwire.h>
#include <gradwire/alg/truesize.h>

#define QUEUES 1024u
#define WAYS 8u
#define TINS 8u
#define HEAP (QUEUES * TINS)
#define PACKET_LIMIT 10240u
#define ROOT_CACHE 16u

enum { DIFFSERV3, DIFFSERV4, DIFFSERV8, BESTEFFORT, PRECEDENCE, DIFFSERV_COUNT };
enum { FLOW_NONE = 0, FLOW_SRC = 1, FLOW_DST = 2, FLOW_HOSTS = 3, FLOW_FLOWS = 4,
       FLOW_DUAL_SRC = 5, FLOW_DUAL_DST = 6, FLOW_TRIPLE = 7 };
enum { ATM_NONE, ATM_ATM, ATM_PTM };
enum { ACK_NONE, ACK_FILTER, ACK_AGGRESSIVE };
enum { G_RATE = 1, G_DIFFSERV = 2, G_FLOW = 4, G_ATM = 8, G_OVERHEAD = 16, G_RAW = 32, G_MPU = 64,
       G_RTT = 128, G_TARGET = 256, G_AUTORATE = 512, G_MEMORY = 1024, G_NAT = 2048,
       G_WASH = 4096, G_SPLIT = 8192, G_INGRESS = 16384, G_ACK = 32768, G_FWMARK = 65536 };

struct cake_conf {
    uint64_t rate;               /* bytes per second, 0: unlimited                             */
    uint32_t diffserv, flow, atm, mpu, rtt_us, target_us, memory, ack, fwmark;
    int32_t  overhead;
    bool     autorate, nat, wash, split, ingress, raw;
};

enum set { SET_NONE, SET_SPARSE, SET_SPARSE_WAIT, SET_BULK, SET_DECAYING };

struct ring {
    struct ring *next, *prev;
};

struct cobalt {
    int64_t  drop_next, blue_timer;
    uint32_t count, inv_sqrt, p_drop;
    bool     dropping, marked;
};

struct flow {
    struct ring    chain;
    struct gw_pktq queue;
    struct cobalt  cobalt;
    int32_t        deficit;
    uint32_t       tag;          /* hash that holds the queue                                  */
    uint16_t       src, dst;     /* places in the host table                                   */
    uint16_t       heap_at;
    uint8_t        set;
};

struct host_entry {
    uint32_t src_tag, dst_tag;
    uint16_t src_bulk, dst_bulk; /* busy flows                                                 */
};

struct tin {
    struct flow       flow[QUEUES];
    struct host_entry hosts[QUEUES];
    struct ring new_flows, old_flows, decaying;
    uint64_t target, interval, mtu_time;             /* COBALT's, ns                           */
    uint64_t rate, rate_ns;
    uint32_t rate_shift, flow_quantum, quantum_band;
    int64_t  time_next;
    int64_t  deficit;
    uint32_t sparse_count, bulk_count, decaying_count, unresponsive_count;
    uint64_t backlog_bytes, packets, bytes, dropped, marks;
    uint64_t average_delay, peak_delay, base_delay;
    uint64_t way_hits, way_misses, way_collisions;
    uint32_t max_len;
};

struct cake {
    struct cake_conf c;
    struct tin *tin;
    uint32_t tins;
    uint32_t cur_tin;
    const uint8_t *by_dscp, *order;
    uint16_t heap[HEAP];         /* tin << 10 | queue                                          */
    uint32_t heap_life;          /* dequeues until it is built anew; 0: not kept               */
    uint32_t root[ROOT_CACHE];
    uint64_t rate_ns;
    uint32_t rate_shift;
    int64_t  time_next, failsafe_next;
    uint64_t memory_used, memory_max, memory_limit;
    uint64_t packets;
    uint32_t mtu, salt;
    /* autorate and lengths seen */
    int64_t  last_packet, window_begin, last_reconfig;
    uint64_t interval_average, window_bytes, peak_rate;
    uint32_t net_offset;
    uint16_t min_net, max_net, min_adjusted, max_adjusted;
    struct gw_pkt *arriving;     /* the packet that is being enqueued                          */
    bool     arriving_lost;
    uint32_t arriving_bytes;     /* of it, or of the super-packet whose segment it is          */
};

/* ---- rings -------------------------------------------------------------------------------- */

static void ring_init(struct ring *r)
{
    r->next = r->prev = r;
}

static bool ring_empty(const struct ring *r)
{
    return r->next == r;
}

static void ring_remove(struct ring *r)
{
    r->prev->next = r->next;
    r->next->prev = r->prev;
    ring_init(r);
}

static void ring_to_tail(struct ring *r, struct ring *head)
{
    ring_remove(r);
    r->prev = head->prev;
    r->next = head;
    head->prev->next = r;
    head->prev = r;
}

/* ---- COBALT ------------------------------------------------------------------------------- */

/* One step of Newton's method towards 2^32 / sqrt(count). */
static void root_step(struct cobalt *v)
{
    uint32_t square = (uint32_t)((uint64_t)v->inv_sqrt * v->inv_sqrt >> 32);
    uint64_t val = (UINT64_C(3) << 32) - (uint64_t)v->count * square;

    v->inv_sqrt = (uint32_t)((val >> 2) * v->inv_sqrt >> 31);
}

static void root_fill(struct cake *s)
{
    struct cobalt v = { .inv_sqrt = UINT32_MAX };

    s->root[0] = UINT32_MAX;
    for (v.count = 1; v.count < ROOT_CACHE; v.count++) {
        for (int i = 0; i < 4; i++)
            root_step(&v);
        s->root[v.count] = v.inv_sqrt;
    }
}

static void root_of(const struct cake *s, struct cobalt *v)
{
    if (v->count < ROOT_CACHE)
        v->inv_sqrt = s->root[v->count];
    else
        root_step(v);
}

static int64_t control(const struct tin *b, const struct cobalt *v, int64_t t)
{
    return t + (int64_t)((uint64_t)(uint32_t)b->interval * v->inv_sqrt >> 32);
}

/* The queue lost a packet to the memory limit. */
static void cobalt_full(struct tin *b, struct cobalt *v, int64_t now)
{
    const uint32_t up = UINT32_C(1) << 24;

    if (now - v->blue_timer > (int64_t)b->target) {
        if (!v->p_drop)
            b->unresponsive_count++;
        v->p_drop = v->p_drop + up < up ? UINT32_MAX : v->p_drop + up;
        v->blue_timer = now;
    }
    v->dropping = true;
    v->drop_next = now;
    if (!v->count)
        v->count = 1;
}

/* The queue was served and found empty. */
static void cobalt_empty(const struct cake *s, struct tin *b, struct cobalt *v, int64_t now)
{
    const uint32_t down = UINT32_C(1) << 20;

    if (v->p_drop && now - v->blue_timer > (int64_t)b->target) {
        v->p_drop = v->p_drop < down ? 0 : v->p_drop - down;
        v->blue_timer = now;
        if (!v->p_drop)
            b->unresponsive_count--;
    }
    v->dropping = false;
    if (v->count && now >= v->drop_next) {
        v->count--;
        root_of(s, v);
        v->drop_next = control(b, v, v->drop_next);
    }
}

static bool cobalt_over_target(const struct tin *b, uint64_t sojourn, uint32_t bulk)
{
    return sojourn > b->target && sojourn > b->mtu_time * bulk * 2 && sojourn > b->mtu_time * 4;
}

/* Whether the packet that is about to leave is to be dropped; marks instead where it can. */
static bool cobalt_drop(struct gw_qdisc *q, struct tin *b, struct cobalt *v, struct gw_pkt *p,
                        int64_t now, uint32_t bulk)
{
    struct cake *s = q->priv;
    int64_t schedule = now - v->drop_next;
    bool due = v->count && schedule >= 0, drop = false;

    v->marked = false;
    if (cobalt_over_target(b, (uint64_t)(now - (int64_t)(p->stamp_ps / 1000)), bulk)) {
        if (!v->dropping)
            v->drop_next = control(b, v, now);
        v->dropping = true;
        if (!v->count)
            v->count = 1;
    } else {
        v->dropping = false;
    }
    if (due && v->dropping) {
        v->marked = gw_qdisc_mark(q, p);
        drop = !v->marked;
        v->count += v->count != UINT32_MAX;
        root_of(s, v);
        v->drop_next = control(b, v, v->drop_next);
        schedule = now - v->drop_next;
    } else {
        while (due) {
            v->count--;
            root_of(s, v);
            v->drop_next = control(b, v, v->drop_next);
            schedule = now - v->drop_next;
            due = v->count && schedule >= 0;
        }
    }
    if (v->p_drop && gw_rng_u32(&q->rng) < v->p_drop)
        drop = true;
    if (!v->count)
        v->drop_next = now + (int64_t)b->interval;
    else if (schedule > 0 && !drop)
        v->drop_next = now;
    return drop;
}

/* ---- the heap of longest queues ----------------------------------------------------------- */

static struct flow *heap_flow(struct cake *s, uint32_t i)
{
    return &s->tin[s->heap[i] >> 10].flow[s->heap[i] & (QUEUES - 1)];
}

static void heap_swap(struct cake *s, uint32_t i, uint32_t j)
{
    uint16_t e = s->heap[i];

    s->heap[i] = s->heap[j];
    s->heap[j] = e;
    heap_flow(s, i)->heap_at = (uint16_t)i;
    heap_flow(s, j)->heap_at = (uint16_t)j;
}

/* The value compared against is not refreshed after a swap, so it sinks one level only. */
static void heap_down(struct cake *s, uint32_t i)
{
    uint64_t most = heap_flow(s, i)->queue.bytes;
    uint32_t m = i;

    for (;;) {
        uint32_t left = 2 * m + 1, right = left + 1;

        if (left < HEAP && heap_flow(s, left)->queue.bytes > most) {
            most = heap_flow(s, left)->queue.bytes;
            m = left;
        }
        if (right < HEAP && heap_flow(s, right)->queue.bytes > most) {
            most = heap_flow(s, right)->queue.bytes;
            m = right;
        }
        if (m == i)
            return;
        heap_swap(s, i, m);
        i = m;
    }
}

static void heap_up(struct cake *s, uint32_t i)
{
    while (i > 0) {
        uint32_t up = (i - 1) / 2;

        if (heap_flow(s, i)->queue.bytes <= heap_flow(s, up)->queue.bytes)
            return;
        heap_swap(s, i, up);
        i = up;
    }
}

/* ---- lengths and the shaper --------------------------------------------------------------- */

static void ewma(uint64_t *average, uint64_t sample, uint32_t shift)
{
    *average -= *average >> shift;
    *average += sample >> shift;
}

static uint32_t adjust(const struct cake_conf *c, uint32_t len)
{
    int64_t n = (int64_t)len - (c->raw ? 0 : (int64_t)GW_ETH_BYTES) + c->overhead;

    if (n < (int64_t)c->mpu)
        n = c->mpu;
    if (n < 0)
        n = 0;
    if (c->atm == ATM_ATM)
        n = (n + 47) / 48 * 53;
    else if (c->atm == ATM_PTM)
        n += (n + 63) / 64;
    return (uint32_t)n;
}

static uint32_t adjusted(const struct cake *s, const struct gw_pkt *p)
{
    uint32_t rest;

    if (p->seg_count < 2)
        return adjust(&s->c, p->sched_bytes);
    rest = p->len_bytes - (uint32_t)p->seg_bytes * (p->seg_count - 1u);
    return adjust(&s->c, p->seg_bytes) * (p->seg_count - 1u) + adjust(&s->c, rest);
}

static void note_length(struct cake *s, uint32_t len)
{
    uint32_t net = s->c.raw ? len : len - GW_ETH_BYTES, adj = adjust(&s->c, len);

    if (net > s->max_net)
        s->max_net = (uint16_t)net;
    if (net < s->min_net)
        s->min_net = (uint16_t)net;
    if (adj > s->max_adjusted)
        s->max_adjusted = (uint16_t)adj;
    if (adj < s->min_adjusted)
        s->min_adjusted = (uint16_t)adj;
}

static void note_lengths(struct cake *s, const struct gw_pkt *p)
{
    uint64_t offset = s->net_offset;

    ewma(&offset, (uint64_t)GW_ETH_BYTES << 16, 8);
    s->net_offset = (uint32_t)offset;
    note_length(s, p->seg_count < 2 ? p->sched_bytes : p->seg_bytes);
}

/* Charges the packet to its tin and to the whole; returns its adjusted length. */
static uint32_t charge(struct cake *s, struct tin *b, const struct gw_pkt *p, int64_t now,
                       bool dropped)
{
    uint32_t len = adjusted(s, p);
    int64_t tin_ns, all_ns;

    if (!s->rate_ns)
        return len;
    tin_ns = (int64_t)(len * b->rate_ns >> b->rate_shift);
    all_ns = (int64_t)(len * s->rate_ns >> s->rate_shift);
    if (b->time_next < now)
        b->time_next += tin_ns;
    else if (b->time_next < now + tin_ns)
        b->time_next = now + tin_ns;
    s->time_next += all_ns;
    if (!dropped)
        s->failsafe_next += all_ns + (all_ns >> 1);
    return len;
}

static bool shaper_waits(const struct cake *s, int64_t now)
{
    return s->time_next > now && s->failsafe_next > now;
}

/* ---- configuration ------------------------------------------------------------------------ */

static const uint8_t dscp_precedence[64] = {
    0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 2, 2, 2, 3, 3, 3, 3, 3, 3, 3, 3,
    4, 4, 4, 4, 4, 4, 4, 4, 5, 5, 5, 5, 5, 5, 5, 5, 6, 6, 6, 6, 6, 6, 6, 6, 7, 7, 7, 7, 7, 7, 7, 7,
};
static const uint8_t dscp_diffserv8[64] = {
    2, 0, 1, 2, 4, 2, 2, 2, 1, 2, 1, 2, 1, 2, 1, 2, 5, 2, 4, 2, 4, 2, 4, 2, 3, 2, 3, 2, 3, 2, 3, 2,
    6, 2, 3, 2, 3, 2, 3, 2, 6, 2, 2, 2, 6, 2, 6, 2, 7, 2, 2, 2, 2, 2, 2, 2, 7, 2, 2, 2, 2, 2, 2, 2,
};
static const uint8_t dscp_diffserv4[64] = {
    0, 1, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 2, 0, 2, 0, 2, 0, 2, 0, 2, 0, 2, 0, 2, 0, 2, 0,
    3, 0, 2, 0, 2, 0, 2, 0, 3, 0, 0, 0, 3, 0, 3, 0, 3, 0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0,
};
static const uint8_t dscp_diffserv3[64] = {
    0, 1, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
    0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 0, 2, 0, 2, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0,
};
static const uint8_t dscp_besteffort[64] = { 0 };

/* Tins in the order in which they are shown and named by class. */
static const uint8_t order_plain[TINS] = { 0, 1, 2, 3, 4, 5, 6, 7 };
static const uint8_t order_bulk[TINS] = { 1, 0, 2, 3 };

/* A tin's share of the rate is rate >> shift; its weight without a bandwidth is 1024 >> shift. */
static const struct diffserv {
    const char    *name;
    uint32_t       tins;
    const uint8_t *by_dscp, *order;
    uint8_t        shift[4];     /* 3 and 4 tins only                                          */
} diffserv[DIFFSERV_COUNT] = {
    [DIFFSERV3]  = { "diffserv3", 3, dscp_diffserv3, order_bulk, { 0, 4, 2 } },
    [DIFFSERV4]  = { "diffserv4", 4, dscp_diffserv4, order_bulk, { 0, 4, 1, 2 } },
    [DIFFSERV8]  = { "diffserv8", 8, dscp_diffserv8, order_plain, { 0 } },
    [BESTEFFORT] = { "besteffort", 1, dscp_besteffort, order_plain, { 0 } },
    [PRECEDENCE] = { "precedence", 8, dscp_precedence, order_plain, { 0 } },
};

static void tin_rate(const struct cake *s, struct tin *b, uint64_t rate)
{
    uint64_t target = s->c.target_us * UINT64_C(1000), rtt = s->c.rtt_us * UINT64_C(1000);
    uint64_t ns = 0;
    uint32_t shift = 0;

    b->flow_quantum = 1514;
    if (rate) {
        uint64_t quantum = rate >> 12;

        b->flow_quantum = (uint32_t)(quantum > 1514 ? 1514 : quantum < 300 ? 300 : quantum);
        shift = 34;
        ns = (UINT64_C(1000000000) << 34) / (rate < 64 ? 64 : rate);
        for (; ns >> 34; shift--)
            ns >>= 1;
    }
    b->rate = rate;
    b->rate_ns = ns;
    b->rate_shift = shift;
    b->mtu_time = s->mtu * ns >> shift;
    b->target = b->mtu_time * 3 / 2 > target ? b->mtu_time * 3 / 2 : target;
    b->interval = rtt + b->target - target;
    if (b->interval < b->target * 2)
        b->interval = b->target * 2;
}

static void forget_packet(struct cake *s, struct tin *b, const struct gw_pkt *p)
{
    b->backlog_bytes -= p->sched_bytes;
    s->memory_used -= gw_truesize(p);
    s->packets--;
}

/* Throws out what waits in a tin. */
static void clear_tin(struct gw_qdisc *q, struct tin *b)
{
    struct cake *s = q->priv;
    struct gw_pkt *p;

    for (uint32_t i = 0; i < QUEUES && b->backlog_bytes; i++)
        while ((p = gw_pktq_pop(&b->flow[i].queue))) {
            forget_packet(s, b, p);
            if (s->heap_life)
                heap_down(s, b->flow[i].heap_at);
            q->host->qdisc_drop(q, p, GW_DROP_PURGED);
        }
}

/*
 * A tin that is no longer used. The kernel's books know nothing of what is thrown out there, those
 * of the disciplines above neither (cake_clear_tin of Linux 6.1); the records of the link do.
 */
static void close_tin(struct gw_qdisc *q, struct tin *b)
{
    const struct cake *s = q->priv;
    uint64_t before = s->packets;

    clear_tin(q, b);
    for (struct gw_qdisc *u = q; u; u = u->up)
        u->dropped_pkts -= before - s->packets;
}

static uint64_t memory_limit(const struct cake *s)
{
    uint64_t limit = UINT32_MAX, most = (uint64_t)PACKET_LIMIT * s->mtu;

    if (s->c.memory) {
        limit = s->c.memory;
    } else if (s->c.rate) {
        limit = (uint32_t)(s->c.rate * s->c.rtt_us / 250000);
        if (limit < UINT32_C(4) << 20)
            limit = UINT32_C(4) << 20;
    }
    if (most < s->c.memory)
        most = s->c.memory;
    return limit < most ? limit : most;
}

static void reconfigure(struct gw_qdisc *q)
{
    struct cake *s = q->priv;
    const struct diffserv *d = &diffserv[s->c.diffserv];
    uint64_t rate = s->c.rate;
    uint32_t weight = 256;

    s->tins = d->tins;
    s->by_dscp = d->by_dscp;
    s->order = d->order;
    for (uint32_t i = 0; i < d->tins; i++) {
        struct tin *b = &s->tin[i];

        if (d->tins < 8) {
            tin_rate(s, b, s->c.rate >> d->shift[i]);
            b->quantum_band = d->tins == 1 ? 65535 : 1024u >> d->shift[i];
            continue;
        }
        tin_rate(s, b, rate);
        b->quantum_band = weight ? weight : 1;
        rate = rate * 7 >> 3;
        weight = weight * 7 >> 3;
    }
    for (uint32_t i = d->tins; i < TINS; i++) {
        close_tin(q, &s->tin[i]);
        s->tin[i].mtu_time = s->tin[0].mtu_time;
    }
    if (s->cur_tin >= s->tins)
        s->cur_tin = 0;
    s->rate_ns = s->tin[0].rate_ns;
    s->rate_shift = s->tin[0].rate_shift;
    s->memory_limit = memory_limit(s);
}

static void forget_lengths(struct cake *s)
{
    s->max_net = s->max_adjusted = 0;
    s->min_net = s->min_adjusted = UINT16_MAX;
}

/* What a line named goes from @n into the settings. */
static void take_conf(struct cake *s, const struct cake_conf *n, uint64_t given)
{
    struct cake_conf *c = &s->c;

#define TAKE(bit, field) do { if (given & (bit)) c->field = n->field; } while (0)
    TAKE(G_RATE, rate);
    TAKE(G_DIFFSERV, diffserv);
    TAKE(G_FLOW, flow);
    TAKE(G_ATM, atm);
    TAKE(G_OVERHEAD, overhead);
    TAKE(G_MPU, mpu);
    TAKE(G_RTT, rtt_us);
    TAKE(G_TARGET, target_us);
    TAKE(G_AUTORATE, autorate);
    TAKE(G_MEMORY, memory);
    TAKE(G_NAT, nat);
    TAKE(G_WASH, wash);
    TAKE(G_SPLIT, split);
    TAKE(G_INGRESS, ingress);
    TAKE(G_ACK, ack);
    TAKE(G_FWMARK, fwmark);
#undef TAKE
    if (given & G_OVERHEAD)
        c->raw = false;
    if (given & G_RAW)
        c->raw = true;
    if (given & (G_OVERHEAD | G_RAW))
        forget_lengths(s);
}

static enum gw_status cake_init(struct gw_qdisc *q, struct gw_error *err)
{
    struct cake *s = q->priv;

    s->c = (struct cake_conf){ .diffserv = DIFFSERV3, .flow = FLOW_TRIPLE, .rtt_us = 100000,
                               .target_us = 5000, .split = true, .raw = true };
    s->mtu = q->mtu_bytes ? q->mtu_bytes : 1514;
    s->salt = q->rng.refill ? gw_rng_u32(&q->rng) : 0;
    take_conf(s, q->conf, q->given);
    s->tin = q->host->alloc(TINS * sizeof *s->tin);
    if (!s->tin)
        return gw_fail(err, GW_NOMEM, "out of memory for the queues of cake");
    for (uint32_t t = 0; t < TINS; t++) {
        struct tin *b = &s->tin[t];

        ring_init(&b->new_flows);
        ring_init(&b->old_flows);
        ring_init(&b->decaying);
        for (uint32_t i = 0; i < QUEUES; i++) {
            ring_init(&b->flow[i].chain);
            b->flow[i].heap_at = (uint16_t)(i * TINS + t);
            s->heap[i * TINS + t] = (uint16_t)(t << 10 | i);
        }
    }
    root_fill(s);
    reconfigure(q);
    forget_lengths(s);
    s->peak_rate = s->c.rate;
    return GW_OK;
}

static void cake_fini(struct gw_qdisc *q)
{
    struct cake *s = q->priv;

    if (s->tin)
        q->host->release(s->tin);
}

/* ---- which queue -------------------------------------------------------------------------- */

static bool by_src(const struct cake *s)
{
    return (s->c.flow & FLOW_DUAL_SRC) == FLOW_DUAL_SRC;
}

static bool by_dst(const struct cake *s)
{
    return (s->c.flow & FLOW_DUAL_DST) == FLOW_DUAL_DST;
}

/* A flow begins (@by 1) or ceases (-1) to count as busy for its hosts. */
static void hosts_count(const struct cake *s, struct tin *b, const struct flow *f, int by)
{
    uint16_t *src = &b->hosts[f->src].src_bulk, *dst = &b->hosts[f->dst].dst_bulk;

    if (by_src(s) && (by > 0 ? *src < QUEUES : *src > 0))
        *src = (uint16_t)(*src + by);
    if (by_dst(s) && (by > 0 ? *dst < QUEUES : *dst > 0))
        *dst = (uint16_t)(*dst + by);
}

static struct tin *tin_of(const struct gw_qdisc *q, struct cake *s, struct gw_pkt *p)
{
    uint32_t minor = p->priority & 0xffff, dscp = p->dscp & 63, t;

    if (s->c.wash)
        p->dscp = 0;
    if (s->c.diffserv == BESTEFFORT)
        return &s->tin[0];
    if ((p->priority & 0xffff0000) == q->handle && minor && minor <= s->tins)
        return &s->tin[s->order[minor - 1]];
    t = s->by_dscp[dscp];
    return &s->tin[t < s->tins ? t : 0];
}

/* The place of a host in its set of 8: its own, else one without busy flows, else the first. */
static uint16_t host_place(struct tin *b, uint32_t hash, bool src)
{
    uint32_t first = hash % QUEUES / WAYS * WAYS, way = hash % WAYS, k = way;
    struct host_entry *h;

    for (uint32_t i = 0; i < WAYS; i++, k = (k + 1) % WAYS) {
        h = &b->hosts[first + k];
        if ((src ? h->src_tag : h->dst_tag) == hash)
            return (uint16_t)(first + k);
    }
    for (uint32_t i = 0; i < WAYS; i++, k = (k + 1) % WAYS) {
        h = &b->hosts[first + k];
        if (!(src ? h->src_bulk : h->dst_bulk))
            break;
    }
    h = &b->hosts[first + k];
    if (src)
        h->src_tag = hash;
    else
        h->dst_tag = hash;
    return (uint16_t)(first + k);
}

/* The queue in the set of 8 that holds @hash or may; @fresh: its hosts are to be looked up. */
static struct flow *flow_place(const struct cake *s, struct tin *b, uint32_t hash, bool *fresh)
{
    uint32_t first = hash % QUEUES / WAYS * WAYS, k = hash % WAYS;

    *fresh = false;
    for (uint32_t i = 0; i < WAYS; i++, k = (k + 1) % WAYS) {
        struct flow *f = &b->flow[first + k];

        if (f->tag == hash) {
            b->way_hits += i > 0;
            *fresh = f->set == SET_NONE;
            return f;
        }
    }
    *fresh = true;
    for (uint32_t i = 0; i < WAYS; i++, k = (k + 1) % WAYS)
        if (b->flow[first + k].set == SET_NONE) {
            b->way_misses++;
            return &b->flow[first + k];
        }
    b->way_collisions++;
    if (b->flow[first + k].set == SET_BULK)
        hosts_count(s, b, &b->flow[first + k], -1);
    return &b->flow[first + k];
}

static struct flow *flow_of(struct gw_qdisc *q, struct tin *b, const struct gw_pkt *p)
{
    struct cake *s = q->priv;
    uint32_t id, hash, src, dst;
    bool fresh = false;
    struct flow *f;

    if (s->c.flow == FLOW_NONE)
        return &b->flow[0];
    id = q->host->classify ? q->host->classify(q, p) : 0;
    hash = (uint32_t)gw_mix64((uint64_t)s->salt << 32 | p->hash);
    src = (uint32_t)gw_mix64((uint64_t)s->salt << 32 | (p->src ^ UINT32_C(0x5bd1e995)));
    dst = (uint32_t)gw_mix64((uint64_t)s->salt << 32 | (p->dst ^ UINT32_C(0x9e3779b9)));
    if (id & 0xffff && (id & 0xffff) <= QUEUES)
        hash = (id & 0xffff) - 1;
    if (id >> 16 && id >> 16 <= QUEUES)
        src = dst = (id >> 16) - 1;
    if (!(s->c.flow & FLOW_FLOWS))
        hash = (s->c.flow & FLOW_SRC ? src : 0) ^ (s->c.flow & FLOW_DST ? dst : 0);
    f = &b->flow[hash % QUEUES];
    if (f->tag == hash && f->set != SET_NONE)
        return f;
    f = flow_place(s, b, hash, &fresh);
    f->tag = hash;
    if (fresh && by_src(s))
        f->src = host_place(b, src, true);
    if (fresh && by_dst(s))
        f->dst = host_place(b, dst, false);
    if (fresh && f->set == SET_BULK)
        hosts_count(s, b, f, 1);
    return f;
}

/* Bytes of a round, divided by the busy flows of the busier host, dithered to lose no remainder. */
static int32_t quantum_of(struct gw_qdisc *q, const struct tin *b, const struct flow *f)
{
    const struct cake *s = q->priv;
    uint32_t load = 1;

    if (by_src(s) && b->hosts[f->src].src_bulk > load)
        load = b->hosts[f->src].src_bulk;
    if (by_dst(s) && b->hosts[f->dst].dst_bulk > load)
        load = b->hosts[f->dst].dst_bulk;
    return (int32_t)((b->flow_quantum * (65535 / load) + (gw_rng_u32(&q->rng) >> 16)) >> 16);
}

/* ---- enqueue ------------------------------------------------------------------------------ */

/* Drops the head of the longest queue. */
static void drop_longest(struct gw_qdisc *q, int64_t now)
{
    struct cake *s = q->priv;
    struct flow *f;
    struct tin *b;
    struct gw_pkt *p;

    if (!s->heap_life)
        for (uint32_t i = HEAP / 2 + 1; i-- > 0; )
            heap_down(s, i);
    s->heap_life = 65535;
    f = heap_flow(s, 0);
    b = &s->tin[s->heap[0] >> 10];
    p = gw_pktq_pop(&f->queue);
    if (!p) {
        s->heap_life = 0;
        return;
    }
    cobalt_full(b, &f->cobalt, now);
    forget_packet(s, b, p);
    b->dropped++;
    if (s->c.ingress)
        charge(s, b, p, now, true);
    if (p == s->arriving)
        s->arriving_lost = true;
    else
        q->host->qdisc_drop(q, p, GW_DROP_QUEUE_FULL);
    heap_down(s, 0);
}

/* The rate of what arrives, measured over windows between short-term bursts. */
static void estimate(struct gw_qdisc *q, int64_t now)
{
    struct cake *s = q->priv;
    uint64_t gap = (uint64_t)(now - s->last_packet), rate;

    if (gap > 1000000000)
        gap = 1000000000;
    ewma(&s->interval_average, gap, gap > s->interval_average ? 2 : 8);
    s->last_packet = now;
    if (gap <= s->interval_average || now == s->window_begin)
        return;
    rate = gw_mul_div(s->window_bytes, 1000000000, (uint64_t)(now - s->window_begin));
    ewma(&s->peak_rate, rate, rate > s->peak_rate ? 2 : 8);
    s->window_bytes = 0;
    s->window_begin = now;
    if (now > s->last_reconfig + 250000000) {
        s->c.rate = s->peak_rate * 15 >> 4;
        reconfigure(q);
    }
}

/* A shaper that has idled starts from now. */
static void wake_shaper(struct gw_qdisc *q, struct tin *b, int64_t now)
{
    struct cake *s = q->priv;

    if (b->backlog_bytes)
        return;
    if (b->time_next < now)
        b->time_next = now;
    if (s->packets)
        return;
    if (s->time_next < now)
        s->time_next = s->failsafe_next = now;
    else if (shaper_waits(s, now))
        q->overlimits++;
}

/* The queue has a packet: into the round, or from waiting to busy. */
static void activate(struct gw_qdisc *q, struct tin *b, struct flow *f)
{
    struct cake *s = q->priv;

    if (f->set == SET_NONE || f->set == SET_DECAYING) {
        if (f->set == SET_DECAYING)
            b->decaying_count--;
        ring_to_tail(&f->chain, &b->new_flows);
        f->set = SET_SPARSE;
        b->sparse_count++;
        f->deficit = quantum_of(q, b, f);
    } else if (f->set == SET_SPARSE_WAIT) {
        f->set = SET_BULK;
        b->sparse_count--;
        b->bulk_count++;
        hosts_count(s, b, f, 1);
    }
}

static enum gw_verdict cake_take_in(struct gw_qdisc *q, struct gw_pkt *p, uint64_t now_ps)
{
    int64_t now = (int64_t)(now_ps / 1000);
    struct cake *s = q->priv;
    struct tin *b = tin_of(q, s, p);
    struct flow *f = flow_of(q, b, p);

    wake_shaper(q, b, now);
    if (s->arriving_bytes > b->max_len)
        b->max_len = s->arriving_bytes;
    note_lengths(s, p);
    gw_pktq_push(&f->queue, p);
    s->packets++;
    s->memory_used += gw_truesize(p);
    b->packets++;
    b->bytes += p->sched_bytes;
    b->backlog_bytes += p->sched_bytes;
    s->window_bytes += p->sched_bytes;
    if (s->heap_life)
        heap_up(s, f->heap_at);
    if (s->c.autorate) {
        estimate(q, now);
    } else {
        s->window_bytes = 0;
        s->last_packet = now;
    }
    activate(q, b, f);
    if (s->memory_used > s->memory_max)
        s->memory_max = s->memory_used;
    s->arriving = p;
    s->arriving_lost = false;
    while (s->memory_used > s->memory_limit)
        drop_longest(q, now);
    s->arriving = NULL;
    if (s->arriving_lost)
        return GW_Q_DROPPED;                         /* the host says: queue full              */
    return GW_Q_QUEUED;
}

static enum gw_verdict cake_segment(struct gw_qdisc *q, struct gw_pkt *p, uint32_t i,
                                    uint64_t now_ps)
{
    (void)i;
    return cake_take_in(q, p, now_ps);
}

static enum gw_verdict cake_enqueue(struct gw_qdisc *q, struct gw_pkt *p, uint64_t now_ps)
{
    struct cake *s = q->priv;
    bool apart = GW_UNLIKELY(p->seg_count > 1) && s->c.split;

    s->arriving_bytes = p->sched_bytes;
    return apart ? q->host->qdisc_segments(q, p, now_ps, cake_segment) : cake_take_in(q, p, now_ps);
}

/* ---- dequeue ------------------------------------------------------------------------------ */

static bool tin_busy(const struct tin *b)
{
    return b->sparse_count + b->bulk_count > 0;
}

/* Without a bandwidth: tins in turn, each by its deficit. */
static struct tin *tin_in_turn(struct cake *s)
{
    struct tin *b = &s->tin[s->cur_tin];
    bool wrapped = false, empty = true;

    while (b->deficit < 0 || !tin_busy(b)) {
        if (b->deficit <= 0)
            b->deficit += b->quantum_band;
        if (tin_busy(b))
            empty = false;
        if (++s->cur_tin >= s->tins) {
            s->cur_tin = 0;
            if (wrapped && empty)
                return NULL;
            wrapped = true;
        }
        b = &s->tin[s->cur_tin];
    }
    return b;
}

/* With a bandwidth: the last tin that is on schedule, else the one whose time comes first. */
static struct tin *tin_on_time(struct cake *s, int64_t now)
{
    int64_t best = INT64_MAX;
    struct tin *found = NULL;

    for (uint32_t t = 0; t < s->tins; t++) {
        struct tin *b = &s->tin[t];
        int64_t wait = b->time_next - now;

        if (tin_busy(b) && (wait <= 0 || wait <= best)) {
            best = wait;
            found = b;
            s->cur_tin = t;
        }
    }
    return found;
}

static struct flow *first_flow(struct tin *b, bool decaying_first)
{
    struct ring *lists[] = { &b->new_flows, &b->old_flows, &b->decaying };
    struct ring *r = NULL;

    if (decaying_first && !ring_empty(&b->decaying))
        r = b->decaying.next;
    for (size_t i = 0; i < GW_ARRAY_LEN(lists) && !r; i++)
        if (!ring_empty(lists[i]))
            r = lists[i]->next;
    return r ? GW_CONTAINER(r, struct flow, chain) : NULL;
}

/* Its deficit is used up: a quantum more, and to the end of the round. */
static void next_round(struct gw_qdisc *q, struct tin *b, struct flow *f)
{
    struct cake *s = q->priv;

    if (f->set == SET_SPARSE && f->queue.head) {
        b->sparse_count--;
        b->bulk_count++;
        hosts_count(s, b, f, 1);
        f->set = SET_BULK;
    } else if (f->set == SET_SPARSE) {
        f->set = SET_SPARSE_WAIT;
    }
    f->deficit += quantum_of(q, b, f);
    ring_to_tail(&f->chain, &b->old_flows);
}

/* An empty queue stays in sight until its COBALT has come to rest. */
static void retire(struct cake *s, struct tin *b, struct flow *f, int64_t now)
{
    struct cobalt *v = &f->cobalt;
    bool decays;

    cobalt_empty(s, b, v, now);
    decays = v->p_drop || v->count || now < v->drop_next;
    if (f->set == SET_BULK) {
        b->bulk_count--;
        hosts_count(s, b, f, -1);
    } else if (f->set == SET_SPARSE || f->set == SET_SPARSE_WAIT) {
        b->sparse_count--;
    } else {
        b->decaying_count--;
    }
    if (decays) {
        ring_to_tail(&f->chain, &b->decaying);
        b->decaying_count++;
        f->set = SET_DECAYING;
    } else {
        ring_remove(&f->chain);
        f->set = SET_NONE;
    }
}

static struct gw_pkt *take_head(struct cake *s, struct tin *b, struct flow *f)
{
    struct gw_pkt *p = gw_pktq_pop(&f->queue);

    if (!p)
        return NULL;
    forget_packet(s, b, p);
    if (s->heap_life)
        heap_down(s, f->heap_at);
    return p;
}

/* A packet of @b through the AQM; NULL: all queues that were looked at are empty. */
static struct gw_pkt *serve(struct gw_qdisc *q, struct tin *b, int64_t now, bool *first,
                            struct flow **from)
{
    struct cake *s = q->priv;
    struct flow *f;
    struct gw_pkt *p;

    while ((f = first_flow(b, *first))) {
        *first = false;
        *from = f;
        if (f->deficit <= 0) {
            next_round(q, b, f);
            continue;
        }
        for (;;) {
            p = take_head(s, b, f);
            if (!p) {
                retire(s, b, f, now);
                return NULL;
            }
            if (!cobalt_drop(q, b, &f->cobalt, p, now, s->c.ingress ? b->bulk_count : 0) ||
                !f->queue.head)
                return p;
            b->dropped++;
            if (s->c.ingress) {
                uint32_t len = charge(s, b, p, now, true);

                f->deficit -= (int32_t)len;
                b->deficit -= len;
            }
            q->host->qdisc_drop(q, p, GW_DROP_AQM);
            if (s->c.ingress)
                break;
        }
    }
    return NULL;
}

static void note_departure(struct cake *s, struct tin *b, struct flow *f, const struct gw_pkt *p,
                           int64_t now)
{
    uint64_t delay = (uint64_t)(now - (int64_t)(p->stamp_ps / 1000));
    uint32_t len;

    b->marks += f->cobalt.marked;
    ewma(&b->average_delay, delay, 8);
    ewma(&b->peak_delay, delay, delay > b->peak_delay ? 2 : 8);
    ewma(&b->base_delay, delay, delay < b->base_delay ? 2 : 8);
    len = charge(s, b, p, now, false);
    f->deficit -= (int32_t)len;
    b->deficit -= len;
    if (s->heap_life)
        s->heap_life--;
}

static struct gw_pkt *cake_dequeue(struct gw_qdisc *q, uint64_t now_ps)
{
    int64_t now = (int64_t)(now_ps / 1000);
    struct cake *s = q->priv;
    bool first = true;

    while (s->packets) {
        struct flow *f = NULL;
        struct tin *b;
        struct gw_pkt *p;

        if (shaper_waits(s, now)) {
            q->overlimits++;
            return NULL;
        }
        b = s->rate_ns ? tin_on_time(s, now) : tin_in_turn(s);
        if (!b)
            return NULL;
        p = serve(q, b, now, &first, &f);
        if (p) {
            note_departure(s, b, f, p, now);
            return p;
        }
    }
    return NULL;
}

static uint64_t cake_next_ps(struct gw_qdisc *q, uint64_t now_ps)
{
    const struct cake *s = q->priv;

    if (!s->packets || !shaper_waits(s, (int64_t)(now_ps / 1000)))
        return GW_NEVER;
    return 1000 * (uint64_t)(s->time_next < s->failsafe_next ? s->time_next : s->failsafe_next);
}

static enum gw_status cake_change(struct gw_qdisc *q, const void *conf, uint64_t given,
                                  uint64_t now_ps, struct gw_error *err)
{
    (void)now_ps;
    (void)err;
    take_conf(q->priv, conf, given);
    reconfigure(q);
    return GW_OK;
}

static void cake_reset(struct gw_qdisc *q, uint64_t now_ps)
{
    struct cake *s = q->priv;

    (void)now_ps;
    for (uint32_t t = 0; t < TINS; t++)
        clear_tin(q, &s->tin[t]);
}

/* ---- words -------------------------------------------------------------------------------- */

struct parse {
    struct cake_conf *c;
    uint64_t *given;
    const char *preset;          /* the one that was named                                     */
    bool     unlimited;
};

enum field { F_DIFFSERV, F_FLOW, F_ATM, F_ACK, F_NAT, F_WASH, F_SPLIT, F_INGRESS, F_NOTHING };

static const struct {
    const char *word;
    uint8_t     field, value;
} words[] = {
    { "besteffort", F_DIFFSERV, BESTEFFORT }, { "precedence", F_DIFFSERV, PRECEDENCE },
    { "diffserv8", F_DIFFSERV, DIFFSERV8 },   { "diffserv4", F_DIFFSERV, DIFFSERV4 },
    { "diffserv", F_DIFFSERV, DIFFSERV4 },    { "diffserv3", F_DIFFSERV, DIFFSERV3 },
    { "flowblind", F_FLOW, FLOW_NONE },       { "srchost", F_FLOW, FLOW_SRC },
    { "dsthost", F_FLOW, FLOW_DST },          { "hosts", F_FLOW, FLOW_HOSTS },
    { "flows", F_FLOW, FLOW_FLOWS },          { "dual-srchost", F_FLOW, FLOW_DUAL_SRC },
    { "dual-dsthost", F_FLOW, FLOW_DUAL_DST }, { "triple-isolate", F_FLOW, FLOW_TRIPLE },
    { "ptm", F_ATM, ATM_PTM }, { "atm", F_ATM, ATM_ATM }, { "noatm", F_ATM, ATM_NONE },
    { "no-ack-filter", F_ACK, ACK_NONE },     { "ack-filter", F_ACK, ACK_FILTER },
    { "ack-filter-aggressive", F_ACK, ACK_AGGRESSIVE },
    { "nat", F_NAT, 1 }, { "nonat", F_NAT, 0 }, { "wash", F_WASH, 1 }, { "nowash", F_WASH, 0 },
    { "split-gso", F_SPLIT, 1 }, { "no-split-gso", F_SPLIT, 0 },
    { "ingress", F_INGRESS, 1 }, { "egress", F_INGRESS, 0 }, { "via-ethernet", F_NOTHING, 0 },
};

static const struct {
    const char *word;
    uint32_t    target_us, rtt_us;
} presets[] = {
    { "datacentre", 5, 100 }, { "lan", 50, 1000 }, { "metro", 500, 10000 },
    { "regional", 1500, 30000 }, { "internet", 5000, 100000 }, { "oceanic", 15000, 300000 },
    { "satellite", 50000, 1000000 }, { "interplanetary", 50000000, 1000000000 },
};

/* Framing by name: atm -1 leaves it; overheads add up, but `conservative` and `raw` set. */
static const struct {
    const char *word;
    int8_t      atm;
    int16_t     overhead;
    uint16_t    mpu;
} framings[] = {
    { "ipoa-vcmux", ATM_ATM, 8, 0 },      { "ipoa-llcsnap", ATM_ATM, 16, 0 },
    { "bridged-vcmux", ATM_ATM, 24, 0 },  { "bridged-llcsnap", ATM_ATM, 32, 0 },
    { "pppoa-vcmux", ATM_ATM, 10, 0 },    { "pppoa-llc", ATM_ATM, 14, 0 },
    { "pppoe-vcmux", ATM_ATM, 32, 0 },    { "pppoe-llcsnap", ATM_ATM, 40, 0 },
    { "pppoe-ptm", ATM_PTM, 30, 0 },      { "bridged-ptm", ATM_PTM, 22, 0 },
    { "ethernet", -1, 38, 84 },           { "ether-vlan", -1, 4, 0 },
    { "docsis", ATM_NONE, 18, 64 },
};

static void set_word(struct parse *x, uint8_t field, uint8_t value)
{
    struct cake_conf *c = x->c;

    switch (field) {
    case F_DIFFSERV: c->diffserv = value; *x->given |= G_DIFFSERV; break;
    case F_FLOW:     c->flow = value;     *x->given |= G_FLOW;     break;
    case F_ATM:      c->atm = value;      *x->given |= G_ATM;      break;
    case F_ACK:      c->ack = value;      *x->given |= G_ACK;      break;
    case F_NAT:      c->nat = value;      *x->given |= G_NAT;      break;
    case F_WASH:     c->wash = value;     *x->given |= G_WASH;     break;
    case F_SPLIT:    c->split = value;    *x->given |= G_SPLIT;    break;
    case F_INGRESS:  c->ingress = value;  *x->given |= G_INGRESS;  break;
    default:         break;
    }
}

static bool plain_word(struct parse *x, const char *w)
{
    for (size_t i = 0; i < GW_ARRAY_LEN(words); i++)
        if (!strcmp(w, words[i].word)) {
            set_word(x, words[i].field, words[i].value);
            return true;
        }
    return false;
}

static bool framing_word(struct parse *x, const char *w)
{
    struct cake_conf *c = x->c;
    bool raw = !strcmp(w, "raw");

    if (raw || !strcmp(w, "conservative")) {
        c->atm = raw ? ATM_NONE : ATM_ATM;
        c->overhead = raw ? 0 : 48;
        *x->given |= G_ATM | G_OVERHEAD | (raw ? G_RAW : 0);
        return true;
    }
    for (size_t i = 0; i < GW_ARRAY_LEN(framings); i++) {
        if (strcmp(w, framings[i].word))
            continue;
        if (framings[i].atm >= 0) {
            c->atm = (uint32_t)framings[i].atm;
            *x->given |= G_ATM;
        }
        if (framings[i].mpu) {
            c->mpu = framings[i].mpu;
            *x->given |= G_MPU;
        }
        c->overhead += framings[i].overhead;
        *x->given |= G_OVERHEAD;
        return true;
    }
    return false;
}

static enum gw_status preset_word(struct parse *x, const char *w, bool *taken,
                                  struct gw_error *err)
{
    *taken = false;
    for (size_t i = 0; i < GW_ARRAY_LEN(presets); i++) {
        if (strcmp(w, presets[i].word))
            continue;
        if (x->preset)
            return gw_fail(err, GW_INCOMPLETE, "duplicate \"%s\": \"%s\" has set the round trip "
                           "already; one of them is right", w, x->preset);
        x->preset = w;
        x->c->rtt_us = presets[i].rtt_us;
        x->c->target_us = presets[i].target_us;
        *x->given |= G_RTT | G_TARGET;
        *taken = true;
    }
    return GW_OK;
}

static void set_rate(struct parse *x, uint64_t rate, bool unlimited)
{
    x->c->rate = rate;
    x->c->autorate = false;
    *x->given |= G_AUTORATE;
    *x->given &= ~(uint64_t)G_RATE;
    if (rate || unlimited)
        *x->given |= G_RATE;
}

static void set_rtt(struct parse *x, uint32_t us)
{
    x->c->rtt_us = us;
    x->c->target_us = us / 20 ? us / 20 : 1;
    *x->given |= G_TARGET;
    *x->given &= ~(uint64_t)G_RTT;
    if (us)
        *x->given |= G_RTT;
}

static bool whole_number(const char *s, long least, long most, long *v)
{
    char *end;

    *v = strtol(s, &end, 10);
    return end != s && !*end && *v >= least && *v <= most;
}

static enum gw_status overhead_word(struct parse *x, const char *w, const char *v,
                                    struct gw_error *err)
{
    bool mpu = !strcmp(w, "mpu");
    long n;

    if (!whole_number(v, mpu ? 0 : -64, 256, &n))
        return gw_tc_illegal(err, w, v, mpu ? "0 to 256" : "-64 to 256");
    if (mpu) {
        x->c->mpu = (uint32_t)n;
        *x->given = n ? *x->given | G_MPU : *x->given & ~(uint64_t)G_MPU;
    } else {
        x->c->overhead = (int32_t)n;
        *x->given |= G_OVERHEAD;
    }
    return GW_OK;
}

/* Words that take a value. */
static enum gw_status value_word(struct parse *x, const struct gw_tc_args *a, uint32_t *i,
                                 bool *taken, struct gw_error *err)
{
    static const char *const known[] = { "bandwidth", "rtt", "overhead", "mpu", "memlimit",
                                         "fwmark" };
    const char *w = a->word[*i], *v;
    uint64_t bps;
    uint32_t n;

    *taken = false;
    for (size_t k = 0; k < GW_ARRAY_LEN(known); k++)
        *taken = *taken || !strcmp(w, known[k]);
    if (!*taken)
        return GW_OK;
    if (++*i == a->count)
        return gw_tc_incomplete(err, w);
    v = a->word[*i];
    if (!strcmp(w, "bandwidth")) {
        if (!gw_tc_rate_bps(v, a->dev_rate_bps, &bps))
            return gw_tc_illegal(err, w, v, "a rate such as 100mbit");
        set_rate(x, bps / 8, false);
    } else if (!strcmp(w, "rtt")) {
        if (!gw_tc_time(a, w, v, &n))
            return gw_tc_illegal(err, w, v, "a time such as 100ms");
        set_rtt(x, n);
    } else if (!strcmp(w, "memlimit")) {
        if (!gw_tc_size(v, &x->c->memory))
            return gw_tc_illegal(err, w, v, "a size such as 8mb");
        *x->given = x->c->memory ? *x->given | G_MEMORY : *x->given & ~(uint64_t)G_MEMORY;
    } else if (!strcmp(w, "fwmark")) {
        if (!gw_tc_u32(v, &x->c->fwmark))
            return gw_tc_illegal(err, w, v, "a mask such as 0xf0");
        *x->given = x->c->fwmark ? *x->given | G_FWMARK : *x->given & ~(uint64_t)G_FWMARK;
    } else {
        return overhead_word(x, w, v, err);
    }
    return GW_OK;
}

static enum gw_status cake_parse(const struct gw_tc_args *a, void *conf, uint64_t *given,
                                 struct gw_error *err)
{
    struct parse x = { .c = conf, .given = given };

    x.c->overhead = 0;
    for (uint32_t i = 0; i < a->count; i++) {
        const char *w = a->word[i];
        bool taken;

        if (value_word(&x, a, &i, &taken, err) != GW_OK)
            return err->code;
        if (!taken && preset_word(&x, w, &taken, err) != GW_OK)
            return err->code;
        if (taken)
            continue;
        if (!strcmp(w, "unlimited")) {
            set_rate(&x, 0, true);
        } else if (!strcmp(w, "autorate-ingress")) {
            x.c->autorate = true;
            *given |= G_AUTORATE;
        } else if (!plain_word(&x, w) && !framing_word(&x, w)) {
            return gw_tc_what(err, "cake", w);
        }
    }
    return GW_OK;
}

/* ---- show --------------------------------------------------------------------------------- */

static const char *const flow_names[8] = { "flowblind", "srchost", "dsthost", "hosts", "flows",
                                           "dual-srchost", "dual-dsthost", "triple-isolate" };

static void show_switch(struct gw_tc_out *o, const char *key, const char *yes, const char *no,
                        bool v)
{
    o->flag(o, key, NULL, v);
    if (*(v ? yes : no))
        o->str(o, NULL, "%s ", v ? yes : no);
}

static void show_framing(const struct cake_conf *c, struct gw_tc_out *o)
{
    show_switch(o, "raw", "raw", "", c->raw);
    if (c->atm != ATM_NONE)
        o->str(o, "atm", "%s ", c->atm == ATM_ATM ? "atm" : "ptm");
    else if (!c->raw)
        o->str(o, "atm", "%s ", "noatm");
    o->i64(o, "overhead", "overhead %lld ", c->overhead);
    if (c->mpu)
        o->u64(o, "mpu", "mpu %llu ", c->mpu);
}

static void cake_show(const struct gw_qdisc *q, struct gw_tc_out *o)
{
    const struct cake *s = q->priv;
    const struct cake_conf *c = &s->c;
    char buf[64];

    if (c->rate) {
        o->u64(o, "bandwidth", NULL, c->rate);
        o->str(o, NULL, "bandwidth %s ", o->rate(o, c->rate, buf));
    } else {
        o->str(o, "bandwidth", "bandwidth %s ", "unlimited");
    }
    if (c->autorate)
        o->str(o, "autorate", "%s ", "autorate-ingress");
    o->str(o, "diffserv", "%s ", diffserv[c->diffserv].name);
    o->str(o, "flowmode", "%s ", flow_names[c->flow]);
    show_switch(o, "nat", "nat", "nonat", c->nat);
    show_switch(o, "wash", "wash", "nowash", c->wash);
    show_switch(o, "ingress", "ingress", "", c->ingress);
    o->str(o, "ack-filter", NULL, c->ack == ACK_AGGRESSIVE ? "aggressive" :
           c->ack == ACK_FILTER ? "enabled" : "disabled");
    o->str(o, NULL, "%s ", c->ack == ACK_AGGRESSIVE ? "ack-filter-aggressive" :
           c->ack == ACK_FILTER ? "ack-filter" : "no-ack-filter");
    show_switch(o, "split_gso", "split-gso", "no-split-gso", c->split);
    o->u64(o, "rtt", NULL, c->rtt_us);
    if (c->rtt_us)
        o->str(o, NULL, "rtt %s ", o->time(o, c->rtt_us, buf));
    show_framing(c, o);
    if (c->memory) {
        o->u64(o, "memlimit", NULL, c->memory);
        o->str(o, NULL, "memlimit %s ", o->size(o, c->memory, buf));
    }
    snprintf(buf, sizeof buf, "%#x", c->fwmark);
    o->str(o, "fwmark", c->fwmark ? "fwmark %s " : NULL, buf);
}

/* The figures of a tin, in the order of JSON. */
enum figure_kind { RATE, TIME_NS, SIZE, COUNT };

struct figure {
    const char *key, *text;
    uint8_t     kind;
    uint8_t     place;           /* of the line in text                                        */
    uint64_t  (*get)(const struct tin *b);
};

#define FIGURE(name, value) static uint64_t get_##name(const struct tin *b) { return value; }
FIGURE(rate, b->rate)
FIGURE(bytes, b->bytes)
FIGURE(backlog, b->backlog_bytes)
FIGURE(target, b->target)
FIGURE(interval, b->interval)
FIGURE(peak, b->peak_delay)
FIGURE(average, b->average_delay)
FIGURE(base, b->base_delay)
FIGURE(packets, b->packets)
FIGURE(hits, b->way_hits)
FIGURE(misses, b->way_misses)
FIGURE(collisions, b->way_collisions)
FIGURE(drops, b->dropped)
FIGURE(marks, b->marks)
FIGURE(sparse, b->sparse_count + b->decaying_count)
FIGURE(bulk, b->bulk_count)
FIGURE(unresponsive, b->unresponsive_count)
FIGURE(max_len, b->max_len)
FIGURE(quantum, b->flow_quantum)
#undef FIGURE

static uint64_t get_no_acks(const struct tin *b)
{
    (void)b;
    return 0;
}

static const struct figure figures[] = {
    { "threshold_rate", "  thresh  ", RATE, 0, get_rate },
    { "sent_bytes", "  bytes   ", COUNT, 8, get_bytes },
    { "backlog_bytes", "  backlog ", SIZE, 6, get_backlog },
    { "target_us", "  target  ", TIME_NS, 1, get_target },
    { "interval_us", "  interval", TIME_NS, 2, get_interval },
    { "peak_delay_us", "  pk_delay", TIME_NS, 3, get_peak },
    { "avg_delay_us", "  av_delay", TIME_NS, 4, get_average },
    { "base_delay_us", "  sp_delay", TIME_NS, 5, get_base },
    { "sent_packets", "  pkts    ", COUNT, 7, get_packets },
    { "way_indirect_hits", "  way_inds", COUNT, 9, get_hits },
    { "way_misses", "  way_miss", COUNT, 10, get_misses },
    { "way_collisions", "  way_cols", COUNT, 11, get_collisions },
    { "drops", "  drops   ", COUNT, 12, get_drops },
    { "ecn_mark", "  marks   ", COUNT, 13, get_marks },
    { "ack_drops", "  ack_drop", COUNT, 14, get_no_acks },
    { "sparse_flows", "  sp_flows", COUNT, 15, get_sparse },
    { "bulk_flows", "  bk_flows", COUNT, 16, get_bulk },
    { "unresponsive_flows", "  un_flows", COUNT, 17, get_unresponsive },
    { "max_pkt_len", "  max_len ", COUNT, 18, get_max_len },
    { "flow_quantum", "  quantum ", COUNT, 19, get_quantum },
};

static uint64_t figure_value(const struct figure *g, const struct tin *b)
{
    return g->kind == TIME_NS ? (uint32_t)(g->get(b) / 1000) : g->get(b);
}

static void figure_text(const struct cake *s, const struct figure *g, struct gw_tc_out *o)
{
    char buf[64];

    o->str(o, NULL, "\n%s", g->text);
    for (uint32_t t = 0; t < s->tins; t++) {
        uint64_t v = figure_value(g, &s->tin[s->order[t]]);

        if (g->kind == RATE)
            o->str(o, NULL, " %12s", o->rate(o, v, buf));
        else if (g->kind == TIME_NS)
            o->str(o, NULL, " %12s", o->time(o, (uint32_t)v, buf));
        else if (g->kind == SIZE)
            o->str(o, NULL, " %12s", o->size(o, v, buf));
        else
            o->u64(o, NULL, " %12llu", v);
    }
}

static void tins_text(const struct cake *s, struct gw_tc_out *o)
{
    static const char *const names3[] = { "Bulk", "Best Effort", "Voice" };
    static const char *const names4[] = { "Bulk", "Best Effort", "Video", "Voice" };
    char name[16];

    o->str(o, NULL, "%s", "          ");
    for (uint32_t t = 0; t < s->tins; t++) {
        snprintf(name, sizeof name, "Tin %u", t);
        o->str(o, NULL, " %12s", s->tins == 3 ? names3[t] : s->tins == 4 ? names4[t] : name);
    }
    for (uint8_t line = 0; line < GW_ARRAY_LEN(figures); line++)
        for (size_t i = 0; i < GW_ARRAY_LEN(figures); i++)
            if (figures[i].place == line)
                figure_text(s, &figures[i], o);
    o->str(o, NULL, "%s", "\n");
}

static void tins_json(const struct cake *s, struct gw_tc_out *o)
{
    o->open(o, "tins", true);
    for (uint32_t t = 0; t < s->tins; t++) {
        o->open(o, NULL, false);
        for (size_t i = 0; i < GW_ARRAY_LEN(figures); i++)
            o->u64(o, figures[i].key, NULL, figure_value(&figures[i], &s->tin[s->order[t]]));
        o->close(o, false);
    }
    o->close(o, true);
}

static void cake_show_stats(const struct gw_qdisc *q, struct gw_tc_out *o)
{
    const struct cake *s = q->priv;
    char buf[64];

    o->str(o, NULL, " memory used: %s", o->size(o, s->memory_max, buf));
    o->str(o, NULL, " of %s\n", o->size(o, s->memory_limit, buf));
    o->u64(o, "memory_used", NULL, s->memory_max);
    o->u64(o, "memory_limit", NULL, s->memory_limit);
    o->str(o, NULL, " capacity estimate: %s\n", o->rate(o, s->peak_rate, buf));
    o->u64(o, "capacity_estimate", NULL, s->peak_rate);
    o->u64(o, "min_network_size", " min/max network layer size: %12llu", s->min_net);
    o->u64(o, "max_network_size", " /%8llu\n", s->max_net);
    o->u64(o, "min_adj_size", " min/max overhead-adjusted size: %8llu", s->min_adjusted);
    o->u64(o, "max_adj_size", " /%8llu\n", s->max_adjusted);
    o->u64(o, "avg_hdr_offset", " average network hdr offset: %12llu\n\n",
           (s->net_offset + 0x8000) >> 16);
    if (o->json)
        tins_json(s, o);
    else
        tins_text(s, o);
}

static void cake_advise(const struct gw_qdisc *q, void (*say)(void *ctx, const char *sentence),
                        void *ctx)
{
    const struct cake *s = q->priv;

    if (s->c.ack != ACK_NONE)
        say(ctx, "ack-filter is taken and shown, but no ACK is filtered here");
    if (s->c.nat)
        say(ctx, "nat is taken and shown, but there is no address translation here");
    if (s->c.fwmark)
        say(ctx, "fwmark is taken and shown, but packets carry no firewall mark here; a filter or "
            "priority can choose the tin");
    if (s->c.rtt_us > 4294967)
        say(ctx, "an rtt above 4.29 s wraps in the drop schedule, as it does in the kernel");
    if (q->net && !s->c.rate && !s->c.autorate && !q->rate_bps)
        say(ctx, "without a bandwidth, on a link without a rate, no queue forms and nothing is "
            "done to packets");
}

static void cake_outline(const struct gw_qdisc *q, uint32_t classid, uint32_t len_bytes,
                         struct gw_outline *o)
{
    const struct cake *s = q->priv;
    uint32_t cost = adjust(&s->c, len_bytes);

    (void)classid;
    o->rate_bps = gw_mul_div(s->c.rate * 8, len_bytes, cost ? cost : 1);
}

static const struct gw_qdisc_ops cake_ops = {
    .priv_bytes    = sizeof(struct cake),
    .conf_bytes    = sizeof(struct cake_conf),
    .init          = cake_init,
    .fini          = cake_fini,
    .enqueue       = cake_enqueue,
    .dequeue       = cake_dequeue,
    .next_ps       = cake_next_ps,
    .change        = cake_change,
    .reset         = cake_reset,
    .tc_parse      = cake_parse,
    .tc_show       = cake_show,
    .tc_show_stats = cake_show_stats,
    .advise        = cake_advise,
    .outline       = cake_outline,
};

static const struct gw_param cake_params[] = {
    { "bandwidth", GW_P_WORDS, 0, "unlimited", NULL, NULL,
      "Rate of the shaper; `unlimited`: none; `autorate-ingress`: from what arrives." },
    { "rtt", GW_P_WORDS, 0, "100ms", NULL, NULL,
      "Round trip that COBALT assumes (target a twentieth); or datacentre 100us, lan 1ms, metro "
      "10ms, regional 30ms, internet 100ms, oceanic 300ms, satellite 1s, interplanetary 1000s." },
    { "diffserv3", GW_P_WORDS, 0, "diffserv3", NULL, NULL,
      "Tins by DSCP: besteffort, precedence, diffserv8, diffserv4 (diffserv), diffserv3." },
    { "triple-isolate", GW_P_WORDS, 0, "triple-isolate", NULL, NULL,
      "What is a flow and who gets a fair share: flowblind, srchost, dsthost, hosts, flows, "
      "dual-srchost, dual-dsthost, triple-isolate; hosts are the end nodes of a packet." },
    { "nat", GW_P_WORDS, 0, "nonat", NULL, NULL, "Taken and shown; there is no NAT here." },
    { "wash", GW_P_WORDS, 0, "nowash", NULL, NULL, "Sets the DSCP to 0 once the tin is chosen." },
    { "ingress", GW_P_WORDS, 0, "egress", NULL, NULL,
      "Charges dropped packets too and drops less per flow, for use behind the bottleneck." },
    { "ack-filter", GW_P_WORDS, 0, "no-ack-filter", NULL, NULL,
      "ack-filter, ack-filter-aggressive: taken and shown; no ACK is filtered here." },
    { "split-gso", GW_P_WORDS, 0, "split-gso", NULL, NULL,
      "Take super-packets apart (no-split-gso: whole, with each segment's overhead charged)." },
    { "overhead", GW_P_WORDS, 0, "raw", NULL, NULL,
      "Bytes added to the network packet, -64 to 256; raw: the frame as it is; conservative (48 "
      "atm), ethernet (38 mpu 84), ether-vlan (+4), docsis (18 mpu 64), pppoa-vcmux, pppoa-llc, "
      "pppoe-vcmux, pppoe-llcsnap, bridged-vcmux, bridged-llcsnap, ipoa-vcmux, ipoa-llcsnap, "
      "pppoe-ptm, bridged-ptm, via-ethernet (nothing)." },
    { "mpu", GW_P_WORDS, 0, "0", NULL, NULL,
      "Least length after the overhead, 0 to 256; 0 keeps." },
    { "atm", GW_P_WORDS, 0, "noatm", NULL, NULL,
      "Cells: atm (53 for 48), ptm (one more per 64), noatm." },
    { "memlimit", GW_P_WORDS, 0, "", NULL, NULL,
      "Memory of all packets; without it 4 x bandwidth x rtt, at least 4 MiB, at most 10240 "
      "frames." },
    { "fwmark", GW_P_WORDS, 0, "0", NULL, NULL,
      "Taken and shown; packets carry no firewall mark here." },
};

GW_PLUGIN(gw_qdisc_cake) = {
    GW_PLUGIN_HEAD(GW_KIND_QDISC, cake_ops),
    .name    = "cake",
    .summary = "Shaper with overhead compensation, tins, fair flows and hosts, and COBALT.",
    .params  = cake_params, .param_count = GW_ARRAY_LEN(cake_params),
    .source  = "Linux 6.1 net/sched/sch_cake.c",
};
