/*
 * recordscripts - packet scripts (send, drop this one) on the TCP of the kernel that this runs on
 *
 * Made for a guest with virtual time, see record-tcp, which boots it. The sender's network namespace
 * ends in a tun device; this program carries its packets to the first router, which makes it both the
 * network's scissors and its eyes: it applies the rules, and it notes each packet at the instant at
 * which the sender sent it, with the sender's TCP_INFO and what its counters say of the reason. From
 * the router on veth pairs lead to the receiver: r1 has rate and queue, r2 the delays (netem).
 *
 *     s ══ this program ══ r1 ── r2 ── d
 *
 * Scripts come on standard input, a line each: a name, settings (cc=cubic rate=100 rtt=40 queue=1000
 * segments=100 messages=1 gap=0 ecn nosack close rcvbuf=BYTES; the values here hold where one is missing)
 * and rules as `gradwire help channel script` has them. A segment is 1448 bytes. gap is in
 * milliseconds from the arrival of a message; `close` ends the connection behind the last byte.
 * connect() is at 0, which is a microsecond behind a tick of the kernel's whose number is a multiple
 * of 4096, so that timers and timestamps have the phase of a clock that began at 0.
 *
 * Output, a header and a block a script, lines that begin with its name behind "script ":
 *     t_us        since connect()
 *     flags       S and F
 *     offset      of the first byte in the stream
 *     bytes       payload; several segments that leave at one instant for the first time are one row
 *     fate        drop, hold, mark, twice, or nothing
 *     kind        of what is sent again or probes: fast (an ACK told of the loss), rack (its timer),
 *                 again (a retransmission that RACK found lost), tlp, rto, loss (behind an rto, by
 *                 an ACK), other; by the counters of /proc/net/netstat
 *     quiet_us    since the last packet came in; nothing: one came at this instant
 *     cwnd, ssthresh, state    behind this instant's events so far; nothing: infinite, open
 * and behind them `end` with the time of the sender's last packet before the last message was there.
 * With -a what comes in has rows, too: flags with a < before them, offset is the ACK.
 *
 * Usage: recordscripts [-a] <SCRIPTS
 */
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>
#include <unistd.h>

#include <arpa/inet.h>
#include <linux/if_tun.h>
#include <linux/tcp.h>
#include <net/if.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>

#define PROGRAM "recordscripts"
#include "tests/kernel/guestnet.h"
#include "tests/kernel/scriptwords.h"

#define PORT 5001
#define RULES_MAX 32
#define HELD_MAX 512
#define PASSED_MAX 65536
#define NS INT64_C(1000000000)
#define INSTANT 500                      /* ns: each look at the clock takes one                  */

enum what { W_DATA, W_ACK, W_SYN, W_FIN, WHATS };

struct rule {
    char letter;
    uint32_t first, last, occurrence, hold_us;
};

struct script {
    char name[64];
    struct script_words set;
    uint32_t rules;
    struct rule rule[RULES_MAX];
};

struct packet {
    uint8_t  ip[2048];
    size_t   len;
    int64_t  due;                        /* held back until then                                  */
    bool     back;                       /* towards the sender                                    */
    uint8_t *tcp;
    uint32_t seq, ack, payload;
    enum what what;
};

struct line {                            /* of the output, kept until the next                     */
    int64_t t, quiet;
    uint32_t offset, bytes, cwnd, ssthresh;       /* bytes UINT32_MAX: none                       */
    unsigned state;
    bool first;                          /* has not been sent before                              */
    char flags[8];
    const char *fate, *kind;
};

struct counters {
    long timeouts, probes, fast, slow;
};

static struct {
    int tun_s, tun_r, listener, fd;
    bool acks, silent;
    const struct script *s;
    int64_t t0, last_in, last, kind_at;
    uint32_t isn, seen[2][WHATS];        /* packets that are told by their number                 */
    uint16_t passed[PASSED_MAX];         /* passings of each segment                              */
    struct counters was;
    struct line line;
    const char *kind;
    struct packet held[HELD_MAX];
    unsigned holding;
    volatile bool stop, opened;
    char *zeros;
} g;

static int64_t now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * NS + t.tv_nsec;
}

static void sleep_until(int64_t ns)
{
    struct timespec t = { ns / NS, ns % NS };

    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL) == EINTR)
        ;
}

/* ---- the network --------------------------------------------------------------------------- */

/* A tun device in namespace @i, with room for any burst. */
static int tun(unsigned i, const char *dev, const char *address)
{
    struct ifreq r = { .ifr_flags = IFF_TUN | IFF_NO_PI };
    int fd;

    enter(i);
    fd = open("/dev/net/tun", O_RDWR | O_NONBLOCK);
    if (fd < 0) {
        command("mkdir -p /run/dev && mknod /run/dev/tun c 10 200");
        fd = open("/run/dev/tun", O_RDWR | O_NONBLOCK);
    }
    strcpy(r.ifr_name, dev);
    if (fd < 0 || ioctl(fd, TUNSETIFF, &r))
        die("tun %s", dev);
    command("ip addr add %s dev %s && ip link set %s txqueuelen 20000 up", address, dev, dev);
    return fd;
}

static void build(void)
{
    make_hosts();
    g.tun_s = tun(0, "e0", "10.0.0.1/24");
    g.tun_r = tun(1, "w1", "10.0.0.2/24");
    for (unsigned i = 1; i < 3; i++) {
        make_link(i);
        for (unsigned k = 0; k < 2; k++)         /* who has been found once is not asked again    */
            command("ip netns exec %s busybox sysctl -qw net.ipv4.neigh.%c%u.base_reachable_time_ms="
                    "2000000000", host[i + k], "ew"[k], i + k);
    }
    make_routes();
}

static void network(const struct script *s)
{
    set_delay(s->set.rtt_ms, "");
    command("ip netns exec r1 tc qdisc add dev e1 root netem rate %.0fkbit limit %u",
            s->set.rate_mbit * 1e3, s->set.queue);
    for (unsigned i = 0; i < 4; i += 3)
        command("ip netns exec %s busybox sysctl -qw net.ipv4.tcp_ecn=%u net.ipv4.tcp_sack=%u",
                host[i], s->set.ecn ? 1 : 2, !s->set.nosack);
}

/* ---- packets ------------------------------------------------------------------------------- */

static uint32_t get32(const uint8_t *p)
{
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static bool dissect(struct packet *p)
{
    unsigned head = (p->ip[0] & 15u) * 4, flags;

    if (p->len < 40 || p->ip[0] >> 4 != 4 || p->ip[9] != IPPROTO_TCP)
        return false;
    p->tcp = p->ip + head;
    p->payload = (uint32_t)((unsigned)p->ip[2] << 8 | p->ip[3]) - head - (p->tcp[12] >> 4) * 4u;
    p->seq = get32(p->tcp + 4);
    p->ack = get32(p->tcp + 8);
    flags = p->tcp[13];
    p->what = flags & 2 ? W_SYN : p->payload ? W_DATA : flags & 1 ? W_FIN : W_ACK;
    if (p->what == W_SYN && !p->back)
        g.isn = p->seq + 1;
    return true;
}

/* Marks as congestion experienced what is capable of it; the header's sum follows. */
static bool mark(struct packet *p)
{
    uint32_t sum = 0;

    if (!(p->ip[1] & 3))
        return false;
    p->ip[1] |= 3;
    p->ip[10] = p->ip[11] = 0;
    for (unsigned i = 0; i < 20; i += 2)
        sum += (uint32_t)p->ip[i] << 8 | p->ip[i + 1];
    sum = (sum & 0xffff) + (sum >> 16);
    sum += sum >> 16;
    p->ip[10] = (uint8_t)(~sum >> 8);
    p->ip[11] = (uint8_t)~sum;
    return true;
}

static const char letters[2][WHATS] = { { 'd', 'A', 'y', 'f' }, { 0, 'a', 'Y', 'F' } };

/* Does @r strike a packet of number or segment @n at its @nth passing? */
static bool strikes(const struct rule *r, const struct packet *p, uint32_t n, uint32_t nth)
{
    bool data = p->what == W_DATA && !p->back;

    if (n < r->first || n > r->last)
        return false;
    if (data)
        return strchr("dDrcu", r->letter) && (!r->occurrence || r->occurrence == nth);
    return r->letter == letters[p->back][p->what] ||
           (r->letter == 'h' && p->back && p->what == W_ACK);
}

static const char *fate(struct packet *p, uint32_t *nth)
{
    uint32_t n = p->what == W_DATA && !p->back ? (p->seq - g.isn) / MSS : ++g.seen[p->back][p->what];
    const char *what = "";

    *nth = n;
    if (p->what == W_DATA && !p->back)
        *nth = ++g.passed[n % PASSED_MAX];
    for (unsigned i = 0; i < g.s->rules; i++) {
        const struct rule *r = &g.s->rule[i];

        if (!strikes(r, p, n, *nth))
            continue;
        if (r->letter == 'r' || r->letter == 'h') {
            p->due = now_ns() + r->hold_us * INT64_C(1000);
            what = "hold";
        } else if (r->letter == 'c') {
            what = mark(p) ? "mark" : what;
        } else {
            return r->letter == 'u' ? "twice" : "drop";
        }
    }
    return what;
}

static void pass(const struct packet *p)
{
    if (write(p->back ? g.tun_s : g.tun_r, p->ip, p->len) != (ssize_t)p->len)
        die("a packet could not be passed on");
}

/* ---- why ----------------------------------------------------------------------------------- */

static long counter(const char *names, const char *values, const char *name)
{
    size_t n = strlen(name);

    while (names && values) {
        if (!strncmp(names, name, n) && strchr(" \n", names[n]))
            return strtol(values, NULL, 10);
        names = strchr(names, ' ');
        values = strchr(values, ' ');
        names += names != NULL;
        values += values != NULL;
    }
    return 0;
}

static struct counters read_counters(void)
{
    char names[8192], values[8192];
    struct counters c = { 0 };
    FILE *f = fopen("/proc/thread-self/net/netstat", "r");

    if (!f || !fgets(names, sizeof names, f) || !fgets(values, sizeof values, f))
        die("netstat");
    fclose(f);
    c.timeouts = counter(names, values, "TCPTimeouts");
    c.probes = counter(names, values, "TCPLossProbes");
    c.fast = counter(names, values, "TCPFastRetrans");
    c.slow = counter(names, values, "TCPSlowStartRetrans");
    return c;
}

/* Why the sender sends at this instant, as far as counters say. */
static const char *why(int64_t t, uint32_t nth)
{
    struct counters is, was = g.was;

    if (t - g.kind_at > INSTANT || !*g.kind) {
        is = g.was = read_counters();
        g.kind_at = t;
        g.kind = is.timeouts > was.timeouts ? "rto" : is.probes > was.probes ? "tlp"
                 : is.fast > was.fast ? "fast" : is.slow > was.slow ? "loss" : "";
    }
    return strcmp(g.kind, "fast") ? g.kind : nth > 2 ? "again"
           : t - g.last_in > INSTANT ? "rack" : "fast";
}

static void flush_row(void)
{
    static const char *const states[] = { "", "disorder", "cwr", "recovery", "loss" };
    const struct line *l = &g.line;
    char quiet[32] = "", ssthresh[16] = "";

    if (l->bytes != UINT32_MAX && !g.silent) {
        if (l->quiet > INSTANT)
            snprintf(quiet, sizeof quiet, "%.1f", (double)l->quiet / 1e3);
        if (l->ssthresh < 0x7fffffff)
            snprintf(ssthresh, sizeof ssthresh, "%u", l->ssthresh);
        printf("%.1f,%s,%u,%u,%s,%s,%s,%u,%s,%s\n", (double)(l->t - g.t0) / 1e3, l->flags, l->offset,
               l->bytes, l->fate, l->kind, quiet, l->cwnd, ssthresh, states[l->state < 5 ? l->state : 0]);
    }
    g.line.bytes = UINT32_MAX;
}

/* Is @l the next segment behind the last row, and all else the same? */
static bool continues(const struct line *l)
{
    const struct line *was = &g.line;

    return was->bytes && l->bytes && was->bytes != UINT32_MAX && was->offset + was->bytes == l->offset &&
           l->t - was->t <= INSTANT && !*l->flags && !*was->flags && !*l->fate && !*was->fate &&
           !*l->kind && !*was->kind && l->first && was->first && was->bytes % MSS == 0 &&
           l->cwnd == was->cwnd && l->ssthresh == was->ssthresh && l->state == was->state;
}

static void print_row(const struct packet *p, int64_t t, const char *dir, uint32_t offset,
                      const char *fate, const char *kind, bool first)
{
    unsigned flags = p->tcp[13];
    struct tcp_info i = { 0 };
    socklen_t n = sizeof i;
    struct line l = { .t = t, .quiet = t - g.last_in, .offset = offset, .bytes = p->payload,
                      .first = first, .fate = fate, .kind = kind };

    if (getsockopt(g.fd, IPPROTO_TCP, TCP_INFO, &i, &n))
        die("TCP_INFO");
    snprintf(l.flags, sizeof l.flags, "%s%s%s", dir, flags & 2 ? "S" : "", flags & 1 ? "F" : "");
    l.cwnd = i.tcpi_snd_cwnd;
    l.ssthresh = i.tcpi_snd_ssthresh;
    l.state = i.tcpi_ca_state;
    if (continues(&l)) {
        g.line.bytes += l.bytes;
        return;
    }
    flush_row();
    g.line = l;
}

/* What a packet of the sender gets, and its row. */
static void outbound(struct packet *p)
{
    int64_t t = now_ns();
    uint32_t nth;
    const char *what = fate(p, &nth), *kind = why(t, nth);
    bool again = p->what != W_ACK && nth > 1;

    g.last = t;
    if (again && !*kind)
        kind = "other";
    if (p->what != W_ACK || g.acks)
        print_row(p, t, "", p->what == W_SYN ? 0 : p->seq - g.isn, what,
                  again || !strcmp(kind, "tlp") ? kind : "", !again);
    if (!strcmp(what, "hold") && g.holding < HELD_MAX)
        g.held[g.holding++] = *p;
    else if (strcmp(what, "drop"))
        pass(p);
    if (!strcmp(what, "twice"))
        pass(p);
}

static void arrive(const struct packet *p)
{
    g.last = g.last_in = now_ns();
    pass(p);
    if (g.acks)
        print_row(p, g.last_in, "<", p->what == W_SYN ? 0 : p->ack - g.isn, "", "", false);
}

static void inbound(struct packet *p)
{
    uint32_t nth;
    const char *what = fate(p, &nth);

    if (!strcmp(what, "hold") && g.holding < HELD_MAX)
        g.held[g.holding++] = *p;
    else if (strcmp(what, "drop"))
        arrive(p);
}

static void take(int fd, bool back)
{
    struct packet p = { .back = back };
    ssize_t n = read(fd, p.ip, sizeof p.ip);

    if (n <= 0)
        return;
    p.len = (size_t)n;
    if (!g.s || !dissect(&p)) {
        pass(&p);
        return;
    }
    if (back)
        inbound(&p);
    else
        outbound(&p);
}

/* Lets go what was held back long enough; until when the next is held. */
static int64_t release(void)
{
    int64_t next = INT64_MAX;

    for (unsigned i = 0; i < g.holding;) {
        struct packet p = g.held[i];

        if (p.due > now_ns()) {
            next = p.due < next ? p.due : next;
            i++;
            continue;
        }
        g.holding--;
        memmove(&g.held[i], &g.held[i + 1], (g.holding - i) * sizeof *g.held);
        if (p.back)
            arrive(&p);
        else
            pass(&p);
    }
    return next;
}

static void *carrier_main(void *arg)
{
    (void)arg;
    enter(0);
    for (;;) {
        int64_t next = release(), left = next - now_ns();
        struct pollfd p[2] = { { g.tun_s, POLLIN, 0 }, { g.tun_r, POLLIN, 0 } };
        struct timespec t = { left > 0 ? left / NS : 0, left > 0 ? left % NS : 0 };

        if (ppoll(p, 2, next == INT64_MAX ? NULL : &t, NULL) < 0)
            die("poll");
        if (p[0].revents)
            take(g.tun_s, false);
        else if (p[1].revents)
            take(g.tun_r, true);
    }
    return NULL;
}

/* ---- one script ---------------------------------------------------------------------------- */

static sem_t go;

static int tcp_socket(unsigned at, const char *cc)
{
    int fd, one = 1;

    enter(at);
    fd = socket(AF_INET, SOCK_STREAM, 0);
    if (fd < 0 || setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, cc, (socklen_t)strlen(cc)) ||
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one) ||
        setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one))
        die("socket with %s", cc);
    return fd;
}

static struct sockaddr_in address(const char *ip)
{
    return (struct sockaddr_in){ .sin_family = AF_INET, .sin_port = htons(PORT),
                                 .sin_addr.s_addr = inet_addr(ip) };
}

/* Connects at 0, writes a message whenever told to, and closes if the script does. */
static void *sender_main(void *arg)
{
    const struct script *s = arg;
    struct sockaddr_in to = address("10.0.2.2");

    for (uint32_t i = 0; i < s->set.messages; i++) {
        size_t left = (size_t)s->set.segments * MSS;

        sem_wait(&go);
        if (i == 0 && connect(g.fd, (void *)&to, sizeof to))
            die("connect");
        while (left) {
            ssize_t n = send(g.fd, g.zeros, left, MSG_NOSIGNAL);

            if (n < 0)
                die("send");
            left -= (size_t)n;
        }
    }
    if (s->set.close)
        shutdown(g.fd, SHUT_WR);
    return NULL;
}

static void read_message(int fd, size_t left)
{
    static char buf[1 << 20];

    while (left) {
        ssize_t n = recv(fd, buf, left < sizeof buf ? left : sizeof buf, 0);

        if (n <= 0)
            die("a message did not come");
        left -= (size_t)n;
    }
}

/* The next tick whose number is a multiple of 4096. Ticks come at whole milliseconds. */
static int64_t next_phase(void)
{
    unsigned long long jiffies = 0, now = 0;
    char line[256];
    FILE *f;

    sleep_until(now_ns() + 2000000);         /* so that the tick is not asleep                    */
    f = fopen("/proc/timer_list", "r");
    while (f && fgets(line, sizeof line, f) && !jiffies) {
        sscanf(line, "now at %llu", &now);
        sscanf(line, "jiffies: %llu", &jiffies);
    }
    if (!f || !jiffies)
        die("/proc/timer_list");
    fclose(f);
    return (int64_t)(now / 1000000 + 4096 - jiffies % 4096) * 1000000;
}

static void run(const struct script *s)
{
    struct sockaddr_in any = address("0.0.0.0");
    pthread_t sender;
    int fd;

    network(s);
    g.listener = tcp_socket(3, s->set.cc);
    if (s->set.rcvbuf && setsockopt(g.listener, SOL_SOCKET, SO_RCVBUF, &s->set.rcvbuf, sizeof s->set.rcvbuf))
        die("SO_RCVBUF");
    if (bind(g.listener, (void *)&any, sizeof any) || listen(g.listener, 4))
        die("listen");
    g.fd = tcp_socket(0, s->set.cc);
    if (pthread_create(&sender, NULL, sender_main, (void *)s))
        die("thread");
    g.t0 = next_phase() + 1000;
    sleep_until(g.t0);
    if (!g.silent)
        printf("script %s\n", s->name);
    g.t0 = g.last_in = g.kind_at = now_ns();
    g.kind = "";
    g.line.bytes = UINT32_MAX;
    memset(g.seen, 0, sizeof g.seen);
    memset(g.passed, 0, sizeof g.passed);
    enter(0);
    g.was = read_counters();
    g.s = s;
    sem_post(&go);
    fd = accept(g.listener, NULL, NULL);
    for (uint32_t i = 0; i < s->set.messages; i++) {
        if (i) {
            sleep_until(now_ns() + (int64_t)(s->set.gap_ms * 1e6));
            sem_post(&go);
        }
        read_message(fd, (size_t)s->set.segments * MSS);
    }
    if (s->set.close) {
        read(fd, &any, 1);
        close(fd);
        sleep_until(now_ns() + 20 * NS);
    }
    g.s = NULL;
    flush_row();
    if (!g.silent)
        printf("end %.3f\n", (double)(g.last - g.t0) / 1e3);
    g.holding = 0;
    pthread_join(sender, NULL);
    close(g.fd);
    if (!s->set.close)
        close(fd);
    close(g.listener);
    sleep_until(now_ns() + 10 * NS);
}

/* ---- reading ------------------------------------------------------------------------------- */

static void read_rule(struct script *s, const char *word)
{
    struct rule *r = &s->rule[s->rules++];
    unsigned v[4] = { 0 };
    int n = sscanf(word + 1, ":%u:%u:%u:%u", &v[0], &v[1], &v[2], &v[3]);

    if (s->rules >= RULES_MAX)
        die("too many rules: %s", s->name);
    *r = (struct rule){ .letter = *word, .first = v[0], .last = v[0], .occurrence = v[1] };
    if (strchr("DaAh", *word)) {
        r->last = v[1];
        r->occurrence = v[2];
    }
    if (*word == 'r' || *word == 'h')
        r->hold_us = v[2];
    if (n != (strchr("yYfF", *word) ? 1 : strchr("dcuaA", *word) ? 2 : 3))
        die("no rule: %s", word);
}

int main(int argc, char **argv)
{
    char line[1024], *word, *rest;
    pthread_t carrier;

    g.acks = argc > 1 && !strcmp(argv[1], "-a");
    g.zeros = calloc(1, 64u << 20);
    if (!g.zeros || sem_init(&go, 0, 0))
        die("memory");
    prctl(PR_SET_TIMERSLACK, 1);
    build();
    if (pthread_create(&carrier, NULL, carrier_main, NULL))
        die("thread");
    g.silent = true;                         /* once unseen, so that none waits for ARP           */
    run(&(struct script){ .set = SCRIPT_PLAIN });
    g.silent = false;
    puts("t_us,flags,offset,bytes,fate,kind,quiet_us,cwnd,ssthresh,state");
    while (fgets(line, sizeof line, stdin)) {
        struct script s = { .set = SCRIPT_PLAIN };

        word = strtok_r(line, " \n", &rest);
        if (!word || *word == '#')
            continue;
        snprintf(s.name, sizeof s.name, "%s", word);
        while ((word = strtok_r(NULL, " \n", &rest)))
            if (!script_word(&s.set, word))
                read_rule(&s, word);
        run(&s);
        fflush(stdout);
    }
    return 0;
}
