/*
 * guestnet - the network of who records TCP in a guest with virtual time (see record-tcp)
 *
 *     s ══ r1 ── r2 ── d         10.0.0.0/24, 10.0.1.0/24, 10.0.2.0/24
 *
 * Four network namespaces with Linux's settings, buffers so large that windows never limit, and no
 * metrics kept between connections. Device e0 of s leads to w1 of r1, e1 to w2, e2 to w3; who
 * includes this makes them. PROGRAM names it in errors; they end it with 99.
 */
#ifndef GW_TESTS_GUESTNET_H
#define GW_TESTS_GUESTNET_H

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const host[4] = { "s", "r1", "r2", "d" };
static int host_ns[4];

static void die(const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    fprintf(stderr, PROGRAM ": ");
    vfprintf(stderr, fmt, ap);
    fprintf(stderr, ": %s\n", strerror(errno));
    va_end(ap);
    exit(99);
}

static void command(const char *fmt, ...)
{
    char line[1024];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(line, sizeof line, fmt, ap);
    va_end(ap);
    if (system(line))
        die("%s", line);
}

static void enter(unsigned i)
{
    if (setns(host_ns[i], CLONE_NEWNET))
        die("setns %s", host[i]);
}

static void make_hosts(void)
{
    static const char *const sysctl[] = {
        "net.ipv4.tcp_no_metrics_save=1", "net.ipv4.ip_forward=1",
        "net.ipv4.tcp_rmem='4096 131072 268435456'", "net.ipv4.tcp_wmem='4096 16384 268435456'",
    };
    char path[64];

    command("busybox sysctl -qw net.core.rmem_max=268435456 net.core.wmem_max=268435456 "
            "2>/dev/null || true");
    for (unsigned i = 0; i < 4; i++) {
        command("ip netns add %s && ip -n %s link set lo up", host[i], host[i]);
        snprintf(path, sizeof path, "/run/netns/%s", host[i]);
        host_ns[i] = open(path, O_RDONLY);
        if (host_ns[i] < 0)
            die("%s", path);
        for (unsigned k = 0; k < 4; k++)
            command("ip netns exec %s busybox sysctl -qw %s", host[i], sysctl[k]);
    }
}

/* A veth pair from host @i to the next one. */
static void make_link(unsigned i)
{
    command("ip link add e%u netns %s type veth peer name w%u netns %s", i, host[i], i + 1,
            host[i + 1]);
    command("ip -n %s addr add 10.0.%u.1/24 dev e%u && ip -n %s link set e%u up", host[i], i, i,
            host[i], i);
    command("ip -n %s addr add 10.0.%u.2/24 dev w%u && ip -n %s link set w%u up", host[i + 1], i,
            i + 1, host[i + 1], i + 1);
}

static void make_routes(void)
{
    command("ip -n s route add default via 10.0.0.2 && ip -n r1 route add 10.0.2.0/24 via 10.0.1.2 && "
            "ip -n r2 route add 10.0.0.0/24 via 10.0.1.1 && ip -n d route add default via 10.0.2.1");
}

/* Half of the round trip either way at r2, @back (words of netem) for what goes to the sender; r1 has
 * no discipline any more. */
static void set_delay(double rtt_ms, const char *back)
{
    command("ip netns exec r1 tc qdisc del dev e1 root 2>/dev/null; "
            "ip netns exec r2 tc qdisc del dev e2 root 2>/dev/null; "
            "ip netns exec r2 tc qdisc del dev w2 root 2>/dev/null; true");
    command("ip netns exec r2 tc qdisc add dev e2 root netem delay %.0fus limit 1000000",
            rtt_ms * 500);
    command("ip netns exec r2 tc qdisc add dev w2 root netem delay %.0fus %s limit 1000000",
            rtt_ms * 500, back);
}

#endif
