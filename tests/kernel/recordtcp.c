/*
 * recordtcp - TCP of the kernel that this runs on, measured: rows as tests/data/tcp has them
 *
 * Made for a guest with virtual time, see record-tcp, which boots it. Four network namespaces in a
 * row, joined by veth pairs without offloads: s, r1, r2, d (`offload on` in front of lines: with
 * TSO and GSO, so that super-packets cross them whole; `gro US`: d merges what it receives, its
 * gro_flush_timeout is US microseconds; `gro off`). netem at r1 has rate, queue and loss,
 * netem at r2 the delays and the loss of ACKs; hosts have Linux's defaults but buffers that never
 * limit, and keep no metrics between connections. Dice are netem's own and have no seed.
 *
 * The grid comes on standard input, a cell a line, words separated by blanks:
 *     bulk CC RATE_MBIT RTT_MS LOSS_PCT ACKLOSS_PCT QUEUE RUNS SECONDS
 *     msg PATTERN CC RATE_MBIT RTT_MS LOSS_PCT QUEUE BYTES GAP_MS MESSAGES [RUNS]
 *     parallel CC STREAMS RATE_MBIT RTT_MS LOSS_PCT QUEUE BYTES RUNS
 *     variant NAME [COMMAND]
 * PATTERN is fresh (a connection a message), warm (one connection; GAP_MS after the arrival of the
 * last), period (every GAP_MS) or period0 (without slow start after idle), all of it RUNS times.
 * `trace MS` before a line prints the sender's TCP_INFO every MS milliseconds to standard error;
 * `packets` prints what passes the sender's interface from then on: time, direction, sequence
 * number, payload bytes, ACK, window, flags and SACK blocks, relative to the SYNs. Connections of
 * warm and parallel open before loss is switched on. COMMAND of a variant, a shell's, runs behind
 * each set-up of the network of the lines below (`ip netns exec s tc qdisc replace dev e0 root fq`
 * paces); NAME is bulk rows' variant.
 * Writes go in one blocking call per message, without Nagle's delay; the reader is prompt.
 *
 * Usage: recordtcp goodput|fct|parallel, which says the table; lines of other tables are skipped.
 */
#include <math.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>
#include <unistd.h>

#include <arpa/inet.h>
#include <linux/ethtool.h>
#include <linux/if_packet.h>
#include <linux/sockios.h>
#include <linux/tcp.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#define PROGRAM "recordtcp"
#include "tests/kernel/guestnet.h"

#define STREAMS_MAX 16
#define RUNS_MAX 20000
#define CHUNK (1u << 20)
#define PORT 5001

struct cell {
    char   kind[16], pattern[16], cc[16];
    double rate_mbit, rtt_ms, loss_pct, ackloss_pct, gap_ms, seconds;
    unsigned queue, runs, streams, messages;
    uint64_t bytes;
};

struct sender {
    pthread_t thread;
    sem_t     go;
    int       fd;
    uint64_t  bytes;                     /* to write when told to; 0: without end                 */
    const struct cell *cell;
    bool      opens;                     /* connects by itself when told to                       */
    volatile bool stop;
};

static struct {
    int      listener;
    char    *zeros;
    double   trace_ms;
    char     variant[24], variant_command[800];
    volatile int traced_fd;
    double   value[RUNS_MAX], late[RUNS_MAX];
    uint64_t retrans;
} g;

static double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + t.tv_nsec * 1e-9;
}

static void sleep_s(double s)
{
    struct timespec t = { (time_t)s, (long)((s - floor(s)) * 1e9) };

    if (s > 0)
        nanosleep(&t, NULL);
}

/* ---- the network --------------------------------------------------------------------------- */

static void set_feature(const char *dev, unsigned what, bool on)
{
    struct ethtool_value v = { .cmd = what, .data = on };
    struct ifreq r = { .ifr_data = (void *)&v };
    int fd = socket(AF_INET, SOCK_DGRAM, 0);

    strcpy(r.ifr_name, dev);
    if (ioctl(fd, SIOCETHTOOL, &r))
        die("ethtool %s", dev);
    close(fd);
}

/* Of both ends of every link; what it merges is nobody's but d's. */
static void set_offloads(bool on)
{
    char dev[2][16];

    for (unsigned i = 0; i < 3; i++) {
        snprintf(dev[0], sizeof dev[0], "e%u", i);
        snprintf(dev[1], sizeof dev[1], "w%u", i + 1);
        for (unsigned k = 0; k < 2; k++) {
            enter(i + k);
            set_feature(dev[k], ETHTOOL_STSO, on);
            set_feature(dev[k], ETHTOOL_SGSO, on);
            set_feature(dev[k], ETHTOOL_SGRO, false);
        }
    }
}

/* veth merges what comes from a device without TSO. */
static void set_gro(const char *us)
{
    bool on = strcmp(us, "off");

    enter(3);
    set_feature("w3", ETHTOOL_SGRO, on);
    command("ip netns exec d sh -c 'echo %.0f >/sys/class/net/w3/gro_flush_timeout'",
            on ? strtod(us, NULL) * 1e3 : 0);
}

static void build(void)
{
    command("busybox sysctl -qw net.ipv4.tcp_mem='9999999 9999999 9999999'");
    make_hosts();
    for (unsigned i = 0; i < 3; i++)
        make_link(i);
    set_offloads(false);
    make_routes();
}

static void bottleneck(const struct cell *c, bool lossy)
{
    char loss[64] = "";

    if (lossy && c->loss_pct > 0)
        snprintf(loss, sizeof loss, "loss %.9g%%", c->loss_pct);
    command("ip netns exec r1 tc qdisc replace dev e1 root netem %s rate %.0fkbit limit %u", loss,
            c->rate_mbit * 1e3, c->queue);
}

static void network(const struct cell *c, bool lossy)
{
    char loss[64] = "";

    if (c->ackloss_pct > 0)
        snprintf(loss, sizeof loss, "loss %.9g%%", c->ackloss_pct);
    set_delay(c->rtt_ms, loss);
    bottleneck(c, lossy);
    if (*g.variant_command)
        command("%s", g.variant_command);
}

/* ---- sockets ------------------------------------------------------------------------------- */

static int tcp_socket(unsigned at, const char *cc)
{
    int fd, one = 1;

    enter(at);
    fd = socket(AF_INET, SOCK_STREAM, 0);
    if (fd < 0 || setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, cc, (socklen_t)strlen(cc)) ||
        setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one) ||
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one))
        die("socket with %s", cc);
    return fd;
}

static void listen_at(const char *cc)
{
    struct sockaddr_in a = { .sin_family = AF_INET, .sin_port = htons(PORT) };

    g.listener = tcp_socket(3, cc);
    if (bind(g.listener, (void *)&a, sizeof a) || listen(g.listener, 64))
        die("listen");
}

static void connect_to(int fd)
{
    struct sockaddr_in a = { .sin_family = AF_INET, .sin_port = htons(PORT) };

    a.sin_addr.s_addr = inet_addr("10.0.2.2");
    if (connect(fd, (void *)&a, sizeof a))
        die("connect");
}

static void write_all(struct sender *s)
{
    uint64_t left = s->bytes;

    while (!s->stop && (left || !s->bytes)) {
        size_t  n = s->bytes && left < CHUNK * 64u ? left : CHUNK * 64u;
        ssize_t got = send(s->fd, g.zeros, n, MSG_NOSIGNAL);

        if (got < 0)
            return;                      /* the reader has closed: bulk is over                   */
        left -= s->bytes ? (uint64_t)got : 0;
    }
}

static void *sender_main(void *arg)
{
    struct sender *s = arg;

    while (sem_wait(&s->go) == 0 && !s->stop) {
        if (s->opens) {
            s->fd = tcp_socket(0, s->cell->cc);
            g.traced_fd = s->fd;
            connect_to(s->fd);
        }
        write_all(s);
    }
    return NULL;
}

static void sender_start(struct sender *s, const struct cell *c, bool opens)
{
    memset(s, 0, sizeof *s);
    sem_init(&s->go, 0, 0);
    s->cell = c;
    s->opens = opens;
    s->bytes = c->bytes;
    if (!opens) {
        s->fd = tcp_socket(0, c->cc);
        connect_to(s->fd);
        g.traced_fd = s->fd;
    }
    if (pthread_create(&s->thread, NULL, sender_main, s))
        die("thread");
}

static void sender_retrans(const struct sender *s)
{
    struct tcp_info i;
    socklen_t n = sizeof i;

    if (!getsockopt(s->fd, IPPROTO_TCP, TCP_INFO, &i, &n))
        g.retrans += i.tcpi_total_retrans;
}

static void sender_stop(struct sender *s)
{
    s->stop = true;
    sem_post(&s->go);
    pthread_join(s->thread, NULL);
    g.traced_fd = -1;
    close(s->fd);
}

/* Reads @bytes or until the time is @until; what came. */
static uint64_t read_until(int fd, uint64_t bytes, double until)
{
    static char buf[CHUNK];
    uint64_t all = 0;

    while (all < bytes) {
        struct pollfd p = { .fd = fd, .events = POLLIN };
        double   left = until - now();
        struct timespec t = { (time_t)left, (long)((left - floor(left)) * 1e9) };
        ssize_t  n;

        if (left <= 0 || ppoll(&p, 1, &t, NULL) == 0)
            break;
        n = recv(fd, buf, sizeof buf, 0);
        if (n <= 0)
            break;
        all += (uint64_t)n;
    }
    return all;
}

/* Reads what is there of @bytes. The clock is not asked: each time costs it a nanosecond. */
static uint64_t read_there(int fd, uint64_t bytes)
{
    static char buf[CHUNK];
    uint64_t all = 0;
    ssize_t  n = 1;

    for (; all < bytes && n > 0; all += n > 0 ? (uint64_t)n : 0)
        n = recv(fd, buf, sizeof buf, MSG_DONTWAIT);
    return all;
}

static void *tracer_main(void *arg)
{
    (void)arg;
    for (;;) {
        struct tcp_info i;
        socklen_t n = sizeof i;
        int fd = g.traced_fd;

        if (fd > 0 && !getsockopt(fd, IPPROTO_TCP, TCP_INFO, &i, &n))
            fprintf(stderr, "trace %.6f cwnd %u ssthresh %d unacked %u sacked %u lost %u retrans %u "
                    "state %u rtt %u minrtt %u acked %llu\n", now(), i.tcpi_snd_cwnd,
                    (int)i.tcpi_snd_ssthresh, i.tcpi_unacked, i.tcpi_sacked, i.tcpi_lost,
                    i.tcpi_total_retrans, i.tcpi_ca_state, i.tcpi_rtt, i.tcpi_min_rtt,
                    (unsigned long long)i.tcpi_bytes_acked);
        sleep_s(g.trace_ms / 1e3);
    }
    return NULL;
}

static uint32_t get32(const uint8_t *b)
{
    return (uint32_t)b[0] << 24 | (uint32_t)b[1] << 16 | (uint32_t)b[2] << 8 | b[3];
}

/* One IPv4 packet of a connection that this side opens; @base: both sides' initial numbers. */
static void print_packet(const uint8_t *b, ssize_t n, bool out, double at, uint32_t base[2])
{
    const uint8_t *t = b + 4 * (b[0] & 15), *end = t + 4 * (t[12] >> 4), *o = t + 20;
    uint32_t seq = get32(t + 4), ack = get32(t + 8), bytes;

    if (n < 40 || b[9] != IPPROTO_TCP || end > b + n)
        return;
    bytes = (uint32_t)(b[2] << 8 | b[3]) - (uint32_t)(end - b);
    if (t[13] & 2)
        base[!out] = seq + 1;
    fprintf(stderr, "pkt %.6f %s %d %u ack %d win %d flags %02x", at, out ? "out" : "in",
            (int)(seq - base[!out]), bytes, (int)(ack - base[out]), t[14] << 8 | t[15], t[13]);
    while (o < end && *o) {
        if (*o == 5)
            for (int i = 2; i + 8 <= o[1]; i += 8)
                fprintf(stderr, " %d-%d", (int)(get32(o + i) - base[out]),
                        (int)(get32(o + i + 4) - base[out]));
        o += *o == 1 || !o[1] ? 1 : o[1];
    }
    fputc('\n', stderr);
}

static void *sniffer_main(void *arg)
{
    static uint8_t buf[2048];
    uint32_t base[2] = { 0 };
    int fd, big = 1 << 28, yes = 1;

    (void)arg;
    enter(0);
    fd = socket(AF_PACKET, SOCK_DGRAM, htons(0x0003));
    setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &big, sizeof big);
    if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_TIMESTAMPNS, &yes, sizeof yes))
        die("packet socket");
    for (;;) {
        struct sockaddr_ll from;
        char   room[128];
        struct iovec v = { buf, sizeof buf };
        struct msghdr m = { .msg_name = &from, .msg_namelen = sizeof from, .msg_iov = &v,
                            .msg_iovlen = 1, .msg_control = room, .msg_controllen = sizeof room };
        ssize_t n = recvmsg(fd, &m, 0);
        struct cmsghdr *c = CMSG_FIRSTHDR(&m);
        struct timespec at = { 0 };

        if (c && c->cmsg_type == SCM_TIMESTAMPNS)
            memcpy(&at, CMSG_DATA(c), sizeof at);
        if (n > 0 && ntohs(from.sll_protocol) == 0x0800)
            print_packet(buf, n, from.sll_pkttype == PACKET_OUTGOING,
                         (double)(at.tv_sec % 100000) + (double)at.tv_nsec * 1e-9, base);
    }
    return NULL;
}

/* A connection before all others, so that none of them waits for ARP. */
static void warm_up(void)
{
    struct cell c = { .cc = "reno" };
    struct sender s;
    int fd;

    listen_at(c.cc);
    sender_start(&s, &c, false);
    fd = accept(g.listener, NULL, NULL);
    close(fd);
    close(g.listener);
    sender_stop(&s);
}

/* ---- cells --------------------------------------------------------------------------------- */

static double mean(const double *v, unsigned n)
{
    double sum = 0;

    for (unsigned i = 0; i < n; i++)
        sum += v[i];
    return n ? sum / n : 0;
}

static double deviation(const double *v, unsigned n)
{
    double m = mean(v, n), sum = 0;

    for (unsigned i = 0; i < n; i++)
        sum += (v[i] - m) * (v[i] - m);
    return n > 1 ? sqrt(sum / (n - 1)) : 0;
}

/* V, or V*N where the same comes N times. */
static void print_values(const double *v, unsigned n)
{
    char text[32], was[32] = "";
    unsigned times = 0;

    for (unsigned i = 0; i <= n; i++) {
        snprintf(text, sizeof text, "%.5g", i < n ? v[i] : -1);
        if (i && strcmp(text, was)) {
            printf(times > 1 ? "%s%s*%u" : "%s%s", i > times ? " " : "", was, times);
            times = 0;
        }
        strcpy(was, text);
        times++;
    }
}

/* netem keeps what it has sent and dropped; the queue is sampled as the grid's own rows were. */
static double queue_now(void)
{
    char   line[256];
    double pkts = 0;
    FILE  *f = popen("ip netns exec r1 tc -s qdisc show dev e1", "r");

    while (f && fgets(line, sizeof line, f)) {
        const char *at = strstr(line, "backlog ");

        if (at && (at = strchr(at + 8, ' ')))
            pkts = strtod(at, NULL);
    }
    if (f)
        pclose(f);
    return pkts;
}

static void bulk(const struct cell *c)
{
    double queue = 0;
    unsigned samples = 0;

    g.retrans = 0;
    for (unsigned i = 0; i < c->runs; i++) {
        struct sender s;
        double   begin, end;
        uint64_t got = 0, third = 0;
        int      fd;

        network(c, true);
        listen_at(c->cc);
        sender_start(&s, c, true);
        begin = now();
        end = begin + c->seconds;
        sem_post(&s.go);
        fd = accept(g.listener, NULL, NULL);
        got = third = read_until(fd, UINT64_MAX, begin + c->seconds / 3);
        for (double at = now(); at < end; samples++) {
            at = at + 0.0197 < end ? at + 0.0197 : end;
            got += read_until(fd, UINT64_MAX, at);
            queue += samples % 10 ? 0 : queue_now();    /* each costs a process: one in ten      */
        }
        sender_retrans(&s);
        g.value[i] = got * 8 / c->seconds / 1e6;
        g.late[i] = (got - third) * 8 / (c->seconds * 2 / 3) / 1e6;
        close(fd);
        close(g.listener);
        sender_stop(&s);
        sleep_s(1);
    }
    printf("%s,%s,%g,%g,%g,%g,%u,%u,%g,%.6g,%.6g,%.6g,%.6g,%.6g,%.6g,", g.variant, c->cc,
           c->rate_mbit, c->rtt_ms, c->loss_pct, c->ackloss_pct, c->queue, c->runs, c->seconds,
           mean(g.value, c->runs), deviation(g.value, c->runs), mean(g.late, c->runs),
           deviation(g.late, c->runs), samples ? queue / ((samples + 9) / 10) : 0,
           c->runs * c->seconds * mean(g.value, c->runs) / c->runs * 1e6 / 8 / 1448);
    printf("%.6g,", g.retrans * 1.0 / c->runs);
    print_values(g.value, c->runs);
    putchar('\n');
}

/* One connection's messages, or as many connections; their times. */
static void message_run(const struct cell *c, double *value)
{
    bool     fresh = !strcmp(c->pattern, "fresh"), period = !strncmp(c->pattern, "period", 6);
    struct sender s;
    double   begin, next;
    int      fd = -1;

    network(c, fresh);
    listen_at(c->cc);
    sender_start(&s, c, fresh);
    if (!fresh) {
        fd = accept(g.listener, NULL, NULL);
        bottleneck(c, true);
    }
    next = now();
    for (unsigned i = 0; i < c->messages; i++) {
        sleep_s(next - now());
        begin = now();
        sem_post(&s.go);
        if (fresh)
            fd = accept(g.listener, NULL, NULL);
        if (read_until(fd, c->bytes, begin + 1000) != c->bytes)
            die("a message of %llu bytes", (unsigned long long)c->bytes);
        value[i] = now() - begin;
        next = period ? next + c->gap_ms / 1e3 : now() + c->gap_ms / 1e3;
        if (fresh) {
            sender_retrans(&s);
            close(fd);
            close(s.fd);
        }
    }
    if (!fresh) {
        sender_retrans(&s);
        close(fd);
    }
    close(g.listener);
    sender_stop(&s);
}

static void messages(const struct cell *c)
{
    bool     restart = strcmp(c->pattern, "period0");
    const char *pattern = !restart ? "period_restart0"
                          : !strcmp(c->pattern, "period") ? "period_restart1" : c->pattern;
    unsigned all = c->messages * c->runs;

    command("ip netns exec s busybox sysctl -qw net.ipv4.tcp_slow_start_after_idle=%d", restart);
    g.retrans = 0;
    for (unsigned i = 0; i < c->runs; i++) {
        message_run(c, g.value + i * c->messages);
        sleep_s(1);
    }
    printf("%s%s,%s,%g,%g,%g,%u,%llu,%g,%u,%.6g,%.6g,%.6g,", pattern,
           !strcmp(c->pattern, "warm") ? c->gap_ms == 1000 ? "_gap1000" : "_gap20" : "", c->cc,
           c->rate_mbit, c->rtt_ms, c->loss_pct, c->queue, (unsigned long long)c->bytes, c->gap_ms,
           c->messages, mean(g.value, all), deviation(g.value, all), g.retrans * 1.0 / all);
    print_values(g.value, all);
    putchar('\n');
}

static void parallel(const struct cell *c)
{
    struct cell part = *c;

    part.bytes = c->bytes / c->streams;
    g.retrans = 0;
    for (unsigned i = 0; i < c->runs; i++) {
        struct sender s[STREAMS_MAX];
        uint64_t left[STREAMS_MAX];
        struct pollfd p[STREAMS_MAX];
        unsigned open = c->streams;
        double   begin;

        network(c, false);
        listen_at(c->cc);
        for (unsigned k = 0; k < c->streams; k++) {
            sender_start(&s[k], &part, false);
            p[k] = (struct pollfd){ .fd = accept(g.listener, NULL, NULL), .events = POLLIN };
            left[k] = part.bytes;
        }
        bottleneck(c, true);
        begin = now();
        for (unsigned k = 0; k < c->streams; k++)
            sem_post(&s[k].go);
        while (open && poll(p, c->streams, -1) > 0)
            for (unsigned k = 0; k < c->streams; k++)
                if (p[k].revents && left[k]) {
                    left[k] -= read_there(p[k].fd, left[k]);
                    if (!left[k]) {
                        open--;
                        p[k].fd = -1 - p[k].fd;
                    }
                }
        g.value[i] = now() - begin;
        for (unsigned k = 0; k < c->streams; k++) {
            sender_retrans(&s[k]);
            close(-1 - p[k].fd);
            sender_stop(&s[k]);
        }
        close(g.listener);
        sleep_s(1);
    }
    printf("%s,%u,%g,%g,%g,%u,%llu,%u,%.6g,%.6g,%.6g,", c->cc, c->streams, c->rate_mbit, c->rtt_ms,
           c->loss_pct, c->queue, (unsigned long long)c->bytes, c->runs, mean(g.value, c->runs),
           deviation(g.value, c->runs), g.retrans * 1.0 / c->runs);
    print_values(g.value, c->runs);
    putchar('\n');
}

static const char *const bulk_head =
    "variant,cc,rate_mbit,rtt_ms,loss_pct,ackloss_pct,queue_limit,runs,dur_s,goodput_mbit_mean,"
    "goodput_mbit_sd,late_goodput_mbit_mean,late_goodput_mbit_sd,q_mean_pkts,sent_pkts_mean,"
    "retrans_mean,runs_goodput_mbit";
static const char *const message_head =
    "pattern,cc,rate_mbit,rtt_ms,loss_pct,queue_limit,bytes,gap_or_period_ms,messages,fct_s_mean,"
    "fct_s_sd,retrans_mean,fct_s_all";
static const char *const parallel_head =
    "cc,streams,rate_mbit,rtt_ms,loss_pct,queue_limit,bytes,runs,completion_s_mean,"
    "completion_s_sd,retrans_mean,completion_s_all";

/* Plays one line if it belongs to @table. */
static void play(char *line, const char *table)
{
    struct cell c = { .streams = 1, .runs = 1 };
    unsigned long long bytes = 0;
    char word[24];
    pthread_t tracer;

    if (!strcmp(line, "packets\n")) {
        if (pthread_create(&tracer, NULL, sniffer_main, NULL))
            die("thread");
    } else if (sscanf(line, "variant %23s %799[^\n]", g.variant, g.variant_command) >= 1) {
        ;
    } else if (sscanf(line, "offload %23s", word) == 1) {
        set_offloads(!strcmp(word, "on"));
    } else if (sscanf(line, "gro %23s", word) == 1) {
        set_gro(word);
    } else if (sscanf(line, "trace %lf", &g.trace_ms) == 1) {
        if (pthread_create(&tracer, NULL, tracer_main, NULL))
            die("thread");
    } else if (sscanf(line, "bulk %15s %lf %lf %lf %lf %u %u %lf", c.cc, &c.rate_mbit, &c.rtt_ms,
                      &c.loss_pct, &c.ackloss_pct, &c.queue, &c.runs, &c.seconds) == 8) {
        if (!strcmp(table, "goodput") && c.runs <= RUNS_MAX)
            bulk(&c);
    } else if (sscanf(line, "msg %15s %15s %lf %lf %lf %u %llu %lf %u %u", c.pattern, c.cc,
                      &c.rate_mbit, &c.rtt_ms, &c.loss_pct, &c.queue, &bytes, &c.gap_ms,
                      &c.messages, &c.runs) >= 9) {
        c.bytes = bytes;
        if (!strcmp(table, "fct") && (uint64_t)c.messages * c.runs <= RUNS_MAX)
            messages(&c);
    } else if (sscanf(line, "parallel %15s %u %lf %lf %lf %u %llu %u", c.cc, &c.streams,
                      &c.rate_mbit, &c.rtt_ms, &c.loss_pct, &c.queue, &bytes, &c.runs) == 8) {
        c.bytes = bytes;
        if (!strcmp(table, "parallel") && c.streams <= STREAMS_MAX && c.runs <= RUNS_MAX)
            parallel(&c);
    } else if (*line != '#' && *line != '\n') {
        fprintf(stderr, "recordtcp: not understood: %s", line);
        exit(2);
    }
    fflush(stdout);
}

int main(int argc, char **argv)
{
    char line[1024];

    if (argc != 2) {
        fprintf(stderr, "usage: recordtcp goodput|fct|parallel <GRID\n");
        return 2;
    }
    g.zeros = calloc(1, CHUNK * 64u);
    g.traced_fd = -1;
    strcpy(g.variant, "main");
    if (!g.zeros)
        die("memory");
    build();
    warm_up();
    puts(!strcmp(argv[1], "goodput") ? bulk_head : !strcmp(argv[1], "fct") ? message_head
         : parallel_head);
    while (fgets(line, sizeof line, stdin))
        play(line, argv[1]);
    return 0;
}
