/*
 * test_roce.c - RoCEv2 queue pairs over a wire of their own
 *
 * A sender's card of a given rate, a wire of half a round trip each way, losses by dice or by
 * number. Packets are watched from outside, through encode(): the packet numbers, opcodes and
 * acknowledgements of the real headers decide what the test believes.
 */
#include "suite.h"
#include "events.h"

#include <gradwire/gradwire.h>
#include <gradwire/alg/icrc.h>

#include <stdlib.h>

extern const struct gw_plugin gw_transport_rocev2, gw_cc_none, gw_cc_dcqcn;

#define US GW_PS_PER_US
#define MS GW_PS_PER_MS
#define EVENTS_MAX (1u << 17)
#define EVENTS_IN_ALL (1u << 23)
#define NIC_BYTES 16384u

struct setup {
    const struct gw_plugin *cc;
    uint64_t rate_bps, rtt_ps;
    double   loss, ack_loss, marks;
    uint64_t message[8];                /* bytes of each, written one after the other           */
    uint32_t seed, mtu;
    uint32_t drop[8];                   /* data packets lost, by order of sending from 1        */
    uint32_t drop_back[8];              /* answers lost                                         */
    const char *set[8][2];
};

struct net {
    struct setup s;
    struct gw_host host;
    struct gw_tx tx;
    struct gw_rx rx;
    struct gw_rng rng;
    struct events events;
    uint64_t now, busy_until, carry;
    uint64_t bytes, delivered, acked, done_ps, live;
    uint64_t data, answers, naks, cnps, asks, last_cnp_ps, least_cnp_gap_ps;
    uint32_t psn0;
    uint64_t next_new;                  /* number of the next packet never sent so far          */
    uint8_t  cnp[80];                   /* the first CNP's headers                              */
    uint32_t cnp_bytes;
    struct gw_pkt cnp_pkt;
    bool     closed, waiting, wrong;
    char     why[160];
};

static void complain(struct net *n, const char *what, uint64_t a, uint64_t b)
{
    if (!n->wrong)
        snprintf(n->why, sizeof n->why, "%s: %llu, %llu", what, (unsigned long long)a,
                 (unsigned long long)b);
    n->wrong = true;
}

/* ---- events ---- */

static void push(struct net *n, struct event e)
{
    if (!event_push(&n->events, e))
        complain(n, "too many events", n->events.count, 0);
}

/* ---- the host's functions ---- */

static void *t_alloc(size_t bytes)
{
    return calloc(1, bytes);
}

static struct gw_pkt *t_pkt_alloc(void *net)
{
    struct gw_pkt *p = calloc(1, sizeof *p);

    p->ext = GW_NONE;
    ((struct net *)net)->live++;
    return p;
}

static void t_pkt_free(void *net, struct gw_pkt *p)
{
    ((struct net *)net)->live--;
    free(p);
}

static void t_timer_set(void *net, struct gw_timer *t, uint64_t at)
{
    struct net *n = net;

    if (at < n->now)
        complain(n, "a timer in the past", at, n->now);
    t->gen++;
    t->armed = true;
    t->due_ps = at;
    push(n, (struct event){ .at = at, .timer = t, .gen = t->gen });
}

static void t_timer_stop(void *net, struct gw_timer *t)
{
    (void)net;
    t->gen++;
    t->armed = false;
}

static uint64_t nic_full_ps(const struct net *n)
{
    return gw_mul_div(NIC_BYTES, 8 * GW_PS_PER_S, n->s.rate_bps);
}

static uint64_t t_nic_room(struct gw_tx *tx, uint64_t now)
{
    struct net *n = tx->net;

    if (n->busy_until < now + nic_full_ps(n))
        return tx->mtu_bytes;
    if (!n->waiting)
        push(n, (struct event){ .at = n->busy_until - nic_full_ps(n) / 2 });
    n->waiting = true;
    return 0;
}

static uint32_t get24(const uint8_t *b)
{
    return (uint32_t)b[0] << 16 | (uint32_t)b[1] << 8 | b[2];
}

static bool listed(const uint32_t *list, uint64_t number)
{
    for (uint32_t i = 0; i < 8; i++)
        if (list[i] && list[i] == number)
            return true;
    return false;
}

static bool coin(struct net *n, double p)
{
    return p > 0 && gw_rng_unit(&n->rng) < p;
}

/* The packet number that the wire shows, from its low 24 bits. */
static uint64_t number_of(const struct net *n, const uint8_t *udp)
{
    uint32_t low = (get24(udp + 17) - n->psn0) & 0xffffff;
    uint64_t base = n->next_new & ~UINT64_C(0xffffff), x = base | low;

    return x > n->next_new + 0x800000 && x >= 0x1000000 ? x - 0x1000000 : x;
}

static void look_data(struct net *n, const struct gw_pkt *p)
{
    static const struct gw_flow_addr addr = { 1, 2, 3, 4 };
    uint8_t b[80], proto = 0;
    uint32_t len = n->tx.ops->encode(p, NULL, &addr, b, &proto), payload;
    uint64_t number;

    if (!n->data)
        n->psn0 = get24(b + 17);
    number = number_of(n, b);
    payload = p->len_bytes - 34 - len - 4;
    if (proto != 17 || len > 60 || (b[2] << 8 | b[3]) != 4791 || b[0] < 0xc0 || payload % 4 ||
        get24(b + 13) != 0x119 || b[8] > 11)
        complain(n, "data header", len, b[8]);
    if (number > n->next_new)
        complain(n, "a packet is skipped", number, n->next_new);
    if ((number < n->next_new) != !!(p->flags & GW_PKT_RETRANS))
        complain(n, "told as a retransmission or not", number, n->next_new);
    if (number == n->next_new)
        n->next_new++;
    n->asks += b[16] >> 7;
}

static void t_emit_tx(struct gw_tx *tx, struct gw_pkt *p, uint64_t now)
{
    struct net *n = tx->net;

    p->flow = tx->flow;
    look_data(n, p);
    n->data++;
    if (n->busy_until < now) {
        n->busy_until = now;
        n->carry = 0;
    }
    n->busy_until += gw_tx_ps(p->len_bytes + GW_FRAMING_BYTES, n->s.rate_bps, &n->carry);
    if (coin(n, n->s.loss) || listed(n->s.drop, n->data)) {
        t_pkt_free(n, p);
        return;
    }
    if (p->ecn == GW_ECN_ECT0 && coin(n, n->s.marks))
        p->ecn = GW_ECN_CE;
    push(n, (struct event){ .at = n->busy_until + n->s.rtt_ps / 2, .pkt = p });
}

static void look_answer(struct net *n, const struct gw_pkt *p, uint64_t now)
{
    static const struct gw_flow_addr addr = { 1, 2, 3, 4 };
    uint8_t b[80], proto = 0;
    uint32_t len = n->tx.ops->encode(p, NULL, &addr, b, &proto);

    if (proto != 17 || get24(b + 13) != 0x118 || p->len_bytes != 34 + len + 4)
        complain(n, "answer's header", len, p->len_bytes);
    if (b[8] == 0x81) {
        uint64_t gap = now - n->last_cnp_ps;

        if (n->cnps && gap < n->least_cnp_gap_ps)
            n->least_cnp_gap_ps = gap;
        n->last_cnp_ps = now;
        if (!n->cnps++) {
            memcpy(n->cnp, b, len);
            n->cnp_bytes = len;
            n->cnp_pkt = *p;
        }
        return;
    }
    if (b[8] != 0x11 || (b[20] != 0x1f && b[20] != 0x60))
        complain(n, "neither ACK nor NAK", b[8], b[20]);
    n->naks += b[20] == 0x60;
    n->answers++;
}

static void t_emit_rx(struct gw_rx *rx, struct gw_pkt *p, uint64_t now)
{
    struct net *n = rx->net;

    p->flow = rx->flow;
    look_answer(n, p, now);
    if (coin(n, n->s.ack_loss) || listed(n->s.drop_back, n->answers)) {
        t_pkt_free(n, p);
        return;
    }
    push(n, (struct event){ .at = now + n->s.rtt_ps / 2, .pkt = p });
}

static void t_rx_deliver(struct gw_rx *rx, uint64_t total, uint64_t now)
{
    struct net *n = rx->net;

    if (total <= n->delivered || total > n->tx.written_bytes)
        complain(n, "delivery", total, n->delivered);
    n->delivered = total;
    if (total == n->bytes)
        n->done_ps = now;
}

static void t_tx_acked(struct gw_tx *tx, uint64_t total, uint64_t now)
{
    struct net *n = tx->net;

    (void)now;
    if (total <= n->acked || total > n->delivered)
        complain(n, "acked", total, n->delivered);
    n->acked = total;
}

static void t_tx_closed(struct gw_tx *tx, uint64_t now)
{
    struct net *n = tx->net;

    if (n->closed || n->acked != n->bytes)
        complain(n, "closed", now, n->acked);
    n->closed = true;
}

/* ---- running ---- */

static bool set_option(const struct gw_plugin *p, void *conf, const char *name, const char *value)
{
    struct gw_error err = { 0 };

    for (uint32_t i = 0; i < p->param_count; i++)
        if (!strcmp(p->params[i].name, name))
            return gw_param_set(&p->params[i], conf, value, "test", &err) == GW_OK;
    return false;
}

static void defaults(const struct gw_plugin *p, void *conf)
{
    struct gw_error err = { 0 };

    gw_params_read(p->params, p->param_count, conf, NULL, NULL, "test", NULL, &err);
    CHECK_ROW(err.code == GW_OK, "%s", err.text);
}

static void ignore(struct gw_cc *cc, uint64_t now)
{
    (void)cc;
    (void)now;
}

static void ignore_sent(struct gw_cc *cc, uint64_t a, uint64_t b, bool c, uint64_t d)
{
    (void)cc;
    (void)a;
    (void)b;
    (void)c;
    (void)d;
}

static void ignore_fini(struct gw_cc *cc)
{
    (void)cc;
}

/* Runs one study; the result stays in @n. */
static void run(struct net *n, const struct setup *s)
{
    const struct gw_transport_ops *ops = gw_transport_rocev2.ops;
    struct gw_cc_ops cc = *(const struct gw_cc_ops *)s->cc->ops;
    struct gw_error err = { 0 };
    uint64_t limit = 0;

    memset(n, 0, sizeof *n);
    n->s = *s;
    n->events.heap = malloc(EVENTS_MAX * sizeof *n->events.heap);
    n->events.room = EVENTS_MAX;
    n->least_cnp_gap_ps = GW_NEVER;
    gw_rng_open(&n->rng, s->seed, "test");
    n->host = (struct gw_host){
        .alloc = t_alloc, .resize = realloc, .release = free, .pkt_alloc = t_pkt_alloc,
        .pkt_free = t_pkt_free, .timer_set = t_timer_set, .timer_stop = t_timer_stop,
        .nic_room = t_nic_room, .emit_tx = t_emit_tx, .emit_rx = t_emit_rx,
        .rx_deliver = t_rx_deliver, .tx_acked = t_tx_acked, .tx_closed = t_tx_closed,
    };
    cc.on_cnp = cc.on_cnp ? cc.on_cnp : ignore;
    cc.on_nack = cc.on_nack ? cc.on_nack : ignore;
    cc.on_sent = cc.on_sent ? cc.on_sent : ignore_sent;
    cc.fini = cc.fini ? cc.fini : ignore_fini;
    n->tx = (struct gw_tx){ .ops = ops, .host = &n->host, .net = n, .mtu_bytes = s->mtu };
    n->rx = (struct gw_rx){ .ops = ops, .host = &n->host, .net = n, .mtu_bytes = s->mtu };
    n->tx.conf = n->rx.conf = calloc(1, ops->conf_bytes);
    n->tx.priv = calloc(1, ops->tx_bytes);
    n->rx.priv = calloc(1, ops->rx_bytes);
    n->tx.cc = (struct gw_cc){ .ops = &cc, .priv = calloc(1, cc.priv_bytes + 1),
                               .conf = calloc(1, cc.conf_bytes + 1), .host = &n->host, .net = n,
                               .nic_rate_bps = s->rate_bps, .base_rtt_ps = s->rtt_ps,
                               .tx = &n->tx };
    defaults(&gw_transport_rocev2, (void *)(uintptr_t)n->tx.conf);
    defaults(s->cc, n->tx.cc.conf);
    for (uint32_t i = 0; i < 8 && s->set[i][0]; i++)
        CHECK_ROW(set_option(&gw_transport_rocev2, (void *)(uintptr_t)n->tx.conf, s->set[i][0],
                             s->set[i][1]) ||
                      set_option(s->cc, n->tx.cc.conf, s->set[i][0], s->set[i][1]),
                  "option %s", s->set[i][0]);
    ops->tx_init(&n->tx, 0, &err);
    ops->rx_init(&n->rx, 0, &err);
    CHECK_ROW(err.code == GW_OK, "%s", err.text);
    for (uint32_t i = 0; i < 8; i++)
        n->bytes += s->message[i];
    for (uint32_t i = 0; i < 8 && s->message[i]; i++) {
        n->tx.written_bytes += s->message[i];
        n->tx.closing = i == 7 || !s->message[i + 1];
        ops->tx_write(&n->tx, 0);
    }
    while (n->events.count && limit++ < EVENTS_IN_ALL) {
        struct event e = event_pop(&n->events);

        n->now = e.at;
        if (e.timer && e.timer->armed && e.timer->gen == e.gen) {
            e.timer->armed = false;
            e.timer->fire(e.timer->owner, e.at);
        } else if (!e.timer && !e.pkt) {
            n->waiting = false;
            ops->tx_room(&n->tx, e.at);
        } else if (e.pkt && e.pkt->flags & GW_PKT_REVERSE) {
            ops->tx_packet(&n->tx, e.pkt, e.at);
        } else if (e.pkt) {
            ops->rx_packet(&n->rx, e.pkt, e.at);
        }
    }
    while (n->events.count) {                             /* after a fault only                       */
        struct event e = event_pop(&n->events);

        if (e.pkt)
            t_pkt_free(n, e.pkt);
    }
    cc.fini(&n->tx.cc);
    ops->tx_fini(&n->tx);
    ops->rx_fini(&n->rx);
    if (n->live)
        complain(n, "packets left over", n->live, 0);
    free((void *)(uintptr_t)n->tx.conf);
    free(n->tx.priv);
    free(n->rx.priv);
    free(n->tx.cc.priv);
    free(n->tx.cc.conf);
    free(n->events.heap);
    n->tx.ops = ops;
}

/* ---- scripts of loss ---- */

static void test_scripts(void)
{
    /* 100 Gbit/s, 10 us; 1024 bytes a packet, 87 ns each; 100 packets take 8.76 us. */
    static const struct {
        const char *name;
        struct setup s;
        uint64_t timeouts, recoveries, retrans, naks;
        double from_us, to_us;
    } row[] = {
        { "no loss", { 0 }, 0, 0, 0, 0, 13.7, 13.9 },
        { "one packet: everything behind it again, within a round trip",
          { .drop = { 10 } }, 0, 1, 91, 1, 23, 25 },
        { "the last packet: a timeout", { .drop = { 100 } }, 1, 0, 1, 0, 67100, 67200 },
        { "the NAK as well: a timeout", { .drop = { 10 }, .drop_back = { 10 } },
          1, 0, 91, 1, 67100, 67200 },
        { "the first packet again after its NAK: a timeout, for a gap is told once",
          { .drop = { 10, 101 } }, 1, 1, 182, 1, 67100, 67200 },
        { "an ACK in the middle: nothing", { .drop_back = { 20 } }, 0, 0, 0, 0, 13.7, 13.9 },
        { "the last ACK: the message is done, one packet is asked for again",
          { .drop_back = { 100 } }, 1, 0, 1, 0, 13.7, 13.9 },
        { "selective: one packet costs itself",
          { .drop = { 10 }, .set = { { "recovery", "selective" }, { "window", "1MB" } } },
          0, 1, 1, 90, 16, 16.2 },
        { "selective: three packets, one episode",
          { .drop = { 10, 20, 30 }, .set = { { "recovery", "selective" }, { "window", "1MB" } } },
          0, 1, 3, 88, 17.7, 17.9 },
        { "selective: a packet and its repetition: a timeout",
          { .drop = { 10, 101 }, .set = { { "recovery", "selective" }, { "window", "1MB" } } },
          1, 1, 2, 90, 100, 350 },
        { "selective: the last three: one timeout",
          { .drop = { 98, 99, 100 },
            .set = { { "recovery", "selective" }, { "window", "1MB" } } },
          1, 0, 3, 0, 100, 140 },
        { "selective: window of 10 packets: ten a round trip",
          { .set = { { "recovery", "selective" }, { "window", "10240" } } },
          0, 0, 0, 0, 90, 115 },
        { "an ACK every 16 packets", { .set = { { "ack_every", "16" } } }, 0, 0, 0, 0, 13.7, 13.9 },
        { "a short timeout is taken as it is",
          { .drop = { 100 }, .set = { { "timeout", "131072ns" } } }, 1, 0, 1, 0, 130, 160 },
    };
    struct net n;

    for (size_t i = 0; i < GW_ARRAY_LEN(row); i++) {
        struct setup s = row[i].s;
        double us;

        s.cc = &gw_cc_none;
        s.rate_bps = UINT64_C(100000000000);
        s.rtt_ps = 10 * US;
        s.mtu = 1500;
        s.message[0] = 100 * 1024;
        run(&n, &s);
        us = (double)n.done_ps / (double)US;
        CHECK_ROW(!n.wrong && n.closed, "%s: %s", row[i].name, n.why);
        CHECK_ROW(n.tx.stats.timeouts == row[i].timeouts, "%s: %llu timeouts, want %llu",
                  row[i].name, (unsigned long long)n.tx.stats.timeouts,
                  (unsigned long long)row[i].timeouts);
        CHECK_ROW(n.tx.stats.recoveries == row[i].recoveries, "%s: %llu recoveries, want %llu",
                  row[i].name, (unsigned long long)n.tx.stats.recoveries,
                  (unsigned long long)row[i].recoveries);
        CHECK_ROW(n.tx.stats.retrans_pkts == row[i].retrans, "%s: %llu again, want %llu",
                  row[i].name, (unsigned long long)n.tx.stats.retrans_pkts,
                  (unsigned long long)row[i].retrans);
        CHECK_ROW(n.naks == row[i].naks, "%s: %llu NAKs, want %llu", row[i].name,
                  (unsigned long long)n.naks, (unsigned long long)row[i].naks);
        CHECK_ROW(us >= row[i].from_us && us <= row[i].to_us, "%s: %g us, want %g to %g",
                  row[i].name, us, row[i].from_us, row[i].to_us);
    }
}

static void test_ack_requests(void)
{
    static const struct { const char *every; uint64_t asks; } row[] = {
        { "1", 100 }, { "2", 50 }, { "16", 8 }, { "1000", 2 },
    };

    for (size_t i = 0; i < GW_ARRAY_LEN(row); i++) {
        struct setup s = { .cc = &gw_cc_none, .rate_bps = UINT64_C(100000000000),
                           .rtt_ps = 10 * US, .mtu = 1500, .message = { 100 * 1024 },
                           .set = { { "ack_every", row[i].every } } };
        struct net n;

        run(&n, &s);
        /* The first packet of a burst asks, and the last; every n-th from there. */
        CHECK_ROW(!n.wrong && n.asks >= row[i].asks - 1 && n.asks <= row[i].asks + 1 &&
                      n.answers == n.asks,
                  "every %s: %llu requests, %llu answers, want about %llu: %s", row[i].every,
                  (unsigned long long)n.asks, (unsigned long long)n.answers,
                  (unsigned long long)row[i].asks, n.why);
    }
}

/* A queue pair whose retries are used up breaks: the run ends, the flow does not. */
static void test_retries(void)
{
    struct setup s = { .cc = &gw_cc_none, .rate_bps = UINT64_C(100000000000), .rtt_ps = 10 * US,
                       .mtu = 1500, .message = { 102400 }, .loss = 1,
                       .set = { { "retries", "7" }, { "timeout", "100us" } } };
    struct net n;

    run(&n, &s);
    CHECK_ROW(!n.wrong && !n.closed && n.tx.stats.timeouts == 8 && n.now <= 810 * US,
              "%llu timeouts, %llu us: %s", (unsigned long long)n.tx.stats.timeouts,
              (unsigned long long)(n.now / US), n.why);
}

/* Whatever is lost: all bytes, once and in order, in bounded time. */
static void test_any_loss(void)
{
    static const char *const recovery[] = { "go-back-n", "selective" };
    static const char *const every[] = { "1", "4", "64" }, *const window[] = { "0", "4KiB", "1MB" };
    static const char *const verb[] = { "write", "write-imm", "send" };
    struct gw_rng rng;

    gw_rng_open(&rng, 4, "roce");
    for (uint32_t i = 0; i < 600; i++) {
        struct setup s = { .cc = i % 3 ? &gw_cc_none : &gw_cc_dcqcn,
                           .rate_bps = UINT64_C(1000000000) << gw_rng_u32(&rng) % 8,
                           .rtt_ps = US << gw_rng_u32(&rng) % 14, .seed = i,
                           .mtu = 300 + gw_rng_u32(&rng) % 5000 };
        double limit;
        struct net n;

        s.loss = i % 4 ? gw_rng_unit(&rng) * 0.3 : 0.3;
        s.ack_loss = i % 5 ? gw_rng_unit(&rng) * 0.3 : 0.3;
        s.marks = i % 7 ? 0 : 0.5;
        for (uint32_t k = 0, m = 1 + gw_rng_u32(&rng) % 4; k < m; k++)
            s.message[k] = 1 + gw_rng_u32(&rng) % (1u << gw_rng_u32(&rng) % 18);
        s.set[0][0] = "recovery";
        s.set[0][1] = recovery[i % 2];
        s.set[1][0] = "ack_every";
        s.set[1][1] = every[gw_rng_u32(&rng) % 3];
        s.set[2][0] = "window";
        s.set[2][1] = window[gw_rng_u32(&rng) % 3];
        s.set[3][0] = "verb";
        s.set[3][1] = verb[gw_rng_u32(&rng) % 3];
        s.set[4][0] = "timeout";
        s.set[4][1] = i % 6 ? "0" : "20us";        /* shorter than many round trips             */
        run(&n, &s);
        /* Every packet may cost a few timeouts; rates may fall to DCQCN's least. */
        limit = (double)(n.data + 20) * 0.25 + (double)n.bytes * 8 * 100 / 1e7;
        CHECK_ROW(!n.wrong && n.closed && n.delivered == n.bytes && n.acked == n.bytes &&
                      (double)n.now / 1e12 < limit,
                  "study %u (loss %g, %g, rtt %llu us, mtu %u): %llu of %llu bytes, %g s: %s", i,
                  s.loss, s.ack_loss, (unsigned long long)(s.rtt_ps / US), s.mtu,
                  (unsigned long long)n.delivered, (unsigned long long)n.bytes,
                  (double)n.now / 1e12, n.why);
    }
}

/* Packet numbers have 24 bits on the wire; go-back-n across the wrap. */
static void test_many_packets(void)
{
    struct setup s = { .cc = &gw_cc_none, .rate_bps = UINT64_C(400000000000), .rtt_ps = 2 * US,
                       .mtu = 320, .loss = 1e-5, .seed = 9,
                       .message = { 257 * 300000, 1, 256 * 300000 } };
    struct net n;

    run(&n, &s);
    CHECK_ROW(!n.wrong && n.closed && n.next_new == 300000 * 257 / 256 + 1 + 1 + 300000,
              "%llu packets: %s", (unsigned long long)n.next_new, n.why);
}

/* ---- congestion notification ---- */

static void test_cnp(void)
{
    struct setup s = { .cc = &gw_cc_none, .rate_bps = UINT64_C(10000000000), .rtt_ps = 10 * US,
                       .mtu = 1500, .marks = 1, .message = { 1000000 } };
    struct net n;

    run(&n, &s);
    /* 1 MB at 10 Gbit/s takes 0.9 ms: one each 50 us and no more. */
    CHECK_ROW(!n.wrong && n.cnps >= 16 && n.cnps <= 18 && n.least_cnp_gap_ps >= 50 * US,
              "%llu CNPs, %llu ns apart: %s", (unsigned long long)n.cnps,
              (unsigned long long)(n.least_cnp_gap_ps / 1000), n.why);
    s.set[0][0] = "ecn";
    s.set[0][1] = "no";
    run(&n, &s);
    CHECK_ROW(n.cnps == 0, "%llu CNPs without ECN", (unsigned long long)n.cnps);
    /* DCQCN: the first cut is to a half, alpha being 1; with a CNP each 50 us alpha stays there. */
    s.set[0][0] = NULL;
    s.cc = &gw_cc_dcqcn;
    run(&n, &s);
    CHECK_ROW(n.done_ps > 5 * MS && n.cnps > 50, "%llu us, %llu CNPs",
              (unsigned long long)(n.done_ps / US), (unsigned long long)n.cnps);
}

/* ---- bytes on the wire ---- */

/* Scapy's unit tests, test/contrib/roce.uts (GPL-2.0): packets of real cards. */
static const uint8_t cnp_frame[74] = {
    0xe4, 0x1d, 0x2d, 0xab, 0x2b, 0xc2, 0x7c, 0xfe, 0x90, 0x64, 0x3b, 0x32, 0x08, 0x00, 0x45, 0xc2,
    0x00, 0x3c, 0x71, 0x8c, 0x40, 0x00, 0x40, 0x11, 0x91, 0x61, 0x0a, 0x00, 0x11, 0x01, 0x0a, 0x00,
    0x12, 0x01, 0x00, 0x00, 0x12, 0xb7, 0x00, 0x28, 0x00, 0x00, 0x81, 0x00, 0xff, 0xff, 0x40, 0x00,
    0x01, 0x18, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
    0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x82, 0xfd, 0x00, 0x2a
};
static const uint8_t write_frame[94] = {
    0x7c, 0xfe, 0x90, 0x75, 0x3c, 0xd8, 0x7c, 0xfe, 0x90, 0x75, 0x3c, 0xd8, 0x89, 0x15, 0x60, 0x20,
    0x00, 0x00, 0x00, 0x28, 0x1b, 0x40, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
    0xff, 0xff, 0x0f, 0x00, 0x00, 0x02, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
    0xff, 0xff, 0x0f, 0x00, 0x00, 0x02, 0x0a, 0x70, 0xff, 0xff, 0x00, 0x00, 0x01, 0x0a, 0x80, 0xa7,
    0x88, 0xbc, 0x00, 0x00, 0x55, 0xd4, 0xc0, 0x72, 0x60, 0x00, 0x00, 0x00, 0x47, 0xb3, 0x00, 0x00,
    0x00, 0x05, 0x00, 0x00, 0x00, 0x00, 0x01, 0x00, 0x00, 0x00, 0xe3, 0xd8, 0x56, 0xbb
};

static void test_icrc(void)
{
    static const struct { const char *name; const uint8_t *b; uint32_t n; } row[] = {
        { "RoCEv2 CNP", cnp_frame, sizeof cnp_frame },
        { "RoCEv1 RDMA WRITE ONLY", write_frame, sizeof write_frame },
    };
    /* What a router may change: TOS, TTL, IP and UDP checksum, FECN and BECN; not so the rest. */
    static const uint8_t may_change[] = { 15, 22, 24, 25, 40, 41, 46 };
    uint8_t f[128], out[4];

    for (size_t i = 0; i < GW_ARRAY_LEN(row); i++) {
        uint32_t n = row[i].n;

        CHECK_ROW(gw_icrc(row[i].b, n - 4, n, out) && !memcmp(out, row[i].b + n - 4, 4),
                  "%s: %02x%02x%02x%02x", row[i].name, out[0], out[1], out[2], out[3]);
    }
    for (uint32_t at = 0; at < 70; at++) {
        bool may = at < 14;

        for (size_t k = 0; k < GW_ARRAY_LEN(may_change); k++)
            may |= at == may_change[k];
        if (at == 12 || at == 13)
            continue;                               /* EtherType: another protocol               */
        memcpy(f, cnp_frame, sizeof cnp_frame);
        f[at] ^= 0x10;
        CHECK_ROW(gw_icrc(f, 70, 74, out) && may == !memcmp(out, cnp_frame + 70, 4),
                  "byte %u changed: %02x%02x%02x%02x", at, out[0], out[1], out[2], out[3]);
    }
    /* Zeros that are not given are the same as zeros that are. */
    CHECK_ROW(gw_icrc(cnp_frame, 54, 74, out) && !memcmp(out, cnp_frame + 70, 4), "zeros left out");
}

/* A receiver's CNP in the published packet's envelope is the published packet. */
static void test_published_cnp(void)
{
    struct setup s = { .cc = &gw_cc_none, .rate_bps = UINT64_C(10000000000), .rtt_ps = 10 * US,
                       .mtu = 1500, .marks = 1, .message = { 1000 } };
    uint8_t f[80], end[GW_TRAILER_MAX];
    struct net n;
    uint32_t k;

    run(&n, &s);
    CU_ASSERT_EQUAL_FATAL(n.cnp_bytes, 36);
    memcpy(f, cnp_frame, 34);
    memcpy(f + 34, n.cnp, 36);
    f[34] = f[35] = 0;                              /* the card's source port                    */
    f[39] = 0x28;                                   /* UDP length: the capture's                 */
    k = n.tx.ops->trailer(&n.cnp_pkt, f, 70, 74, end);
    memcpy(f + 70, end, 4);
    CHECK_ROW(k == 4 && n.cnp_pkt.len_bytes == 74 && !memcmp(f, cnp_frame, 74),
              "trailer of %u bytes, packet of %u", k, n.cnp_pkt.len_bytes);
    CHECK_ROW((n.cnp_pkt.dscp << 2 | n.cnp_pkt.ecn) == 0xc2, "type of service %x",
              n.cnp_pkt.dscp << 2 | n.cnp_pkt.ecn);
}

static void test_wire_bytes(void)
{
    static const struct {
        uint32_t mtu;
        uint64_t payload, frames, bytes;
    } row[] = {
        { 1500, 1, 1, 58 + 16 + 1 },                /* Ethernet 14, IP 20, UDP 8, BTH 12, ICRC 4 */
        { 1500, 1024, 1, 58 + 16 + 1024 },
        { 1500, 1025, 2, 2 * 58 + 16 + 1025 },
        { 4000, 4096, 2, 2 * 58 + 16 + 4096 },
        { 4200, 4096, 1, 58 + 16 + 4096 },
        { 9000, 8193, 3, 3 * 58 + 16 + 8193 },
    };
    const struct gw_transport_ops *ops = gw_transport_rocev2.ops;
    void *conf = calloc(1, ops->conf_bytes);

    defaults(&gw_transport_rocev2, conf);
    for (size_t i = 0; i < GW_ARRAY_LEN(row); i++) {
        uint64_t frames = 0, bytes = ops->wire_bytes(conf, row[i].payload, row[i].mtu, &frames);

        CHECK_ROW(frames == row[i].frames && bytes == row[i].bytes, "MTU %u, %llu: %llu in %llu",
                  row[i].mtu, (unsigned long long)row[i].payload, (unsigned long long)bytes,
                  (unsigned long long)frames);
    }
    free(conf);
}

static const struct gw_case cases[] = {
    { "scripts of loss", test_scripts },
    { "requests for ACKs", test_ack_requests },
    { "retries used up", test_retries },
    { "any loss", test_any_loss },
    { "many packets", test_many_packets },
    { "congestion notification", test_cnp },
    { "ICRC", test_icrc },
    { "a published CNP", test_published_cnp },
    { "bytes on the wire", test_wire_bytes },
    { NULL, NULL },
};

const struct gw_suite suite_roce = { "roce", cases };
