/*
 * filter.c - words of a capture filter that must not reach libpcap
 *
 * libpcap looks up every word that is no keyword, number or address: `host NAME` goes to DNS,
 * `net NAME` to /etc/networks, `port NAME` to /etc/services. A study must mean the same on every
 * machine and send nothing to the network, so such words are refused here. Words are cut as
 * libpcap's scanner cuts them ("len-14" is one word there), so what passes is not taken apart
 * otherwise behind our back.
 *
 * Left out: keywords for link layers that our captures never have (ATM, SS7, 802.11 frame types,
 * pf logs) are refused like any other word. "\tcp" is let through only right behind `proto`.
 */
#include "filter.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <stdlib.h>

#define WORD_MAX 80

static const char *const filter_words[] = {
    "dst", "src", "link", "ether", "ip", "ip6", "arp", "rarp", "tcp", "udp", "sctp", "icmp",
    "icmp6", "igmp", "igrp", "pim", "vrrp", "carp", "ah", "esp", "atalk", "aarp", "decnet", "lat",
    "sca", "moprc", "mopdl", "iso", "stp", "ipx", "netbeui", "host", "net", "mask", "port",
    "portrange", "proto", "protochain", "gateway", "less", "greater", "broadcast", "multicast",
    "and", "or", "not", "len", "length", "inbound", "outbound", "vlan", "mpls", "pppoed", "pppoes",
    "geneve", "icmptype", "icmpcode", "icmp-echoreply", "icmp-unreach", "icmp-sourcequench",
    "icmp-redirect", "icmp-echo", "icmp-routeradvert", "icmp-routersolicit", "icmp-timxceed",
    "icmp-paramprob", "icmp-tstamp", "icmp-tstampreply", "icmp-ireq", "icmp-ireqreply",
    "icmp-maskreq", "icmp-maskreply", "tcpflags", "tcp-fin", "tcp-syn", "tcp-rst", "tcp-push",
    "tcp-ack", "tcp-urg", "tcp-ece", "tcp-cwr", NULL
};

/* Names that may follow "proto \": protocol numbers are the same everywhere. */
static const char *const filter_protos[] = { "ip", "ip6", "arp", "rarp", "tcp", "udp", "sctp",
                                             "icmp", "igmp", "ah", "esp", "pim", NULL };

static bool is_among(const char *word, const char *const *list)
{
    for (; *list; list++)
        if (!strcmp(word, *list))
            return true;
    return false;
}

static bool all_in(const char *s, size_t n, int (*is)(int))
{
    for (size_t i = 0; i < n; i++)
        if (!is((unsigned char)s[i]))
            return false;
    return n > 0;
}

/* 17, 0x11: at most ten digits, libpcap has no longer numbers. */
static bool is_number(const char *s, size_t n)
{
    if (n > 2 && s[0] == '0' && (s[1] == 'x' || s[1] == 'X'))
        return n <= 10 && all_in(s + 2, n - 2, isxdigit);
    return n <= 10 && all_in(s, n, isdigit);
}

/* Up to four decimal numbers below 256 with dots between. */
static bool is_ipv4(const char *s)
{
    for (unsigned parts = 1; parts <= 4; parts++) {
        size_t n = strcspn(s, ".");

        if (n > 3 || !all_in(s, n, isdigit) || strtoul(s, NULL, 10) > 255)
            return false;
        if (!s[n])
            return true;
        s += n + 1;
    }
    return false;
}

/* Six hexadecimal bytes with colons between. */
static bool is_mac(const char *s)
{
    for (unsigned parts = 1; parts <= 6; parts++) {
        size_t n = strcspn(s, ":");

        if (n > 2 || !all_in(s, n, isxdigit))
            return false;
        if (!s[n])
            return parts == 6;
        s += n + 1;
    }
    return false;
}

static bool is_ipv6(const char *s)
{
    struct in6_addr a;

    return !strchr(s, '.') && inet_pton(AF_INET6, s, &a) == 1;
}

/* "0:2", as in tcp[0:2]; "tcpflags:1" */
static bool is_slice(const char *s)
{
    size_t n = strcspn(s, ":");
    char left[WORD_MAX];

    memcpy(left, s, n);
    left[n] = '\0';
    return (n == 0 || is_number(s, n) || is_among(left, filter_words)) && s[n] == ':' &&
           (!s[n + 1] || is_number(s + n + 1, strlen(s + n + 1)));
}

/* "7000-7009" */
static bool is_range(const char *s)
{
    size_t n = strcspn(s, "-");

    return all_in(s, n, isdigit) && n <= 5 && s[n] == '-' && strlen(s + n + 1) <= 5 &&
           all_in(s + n + 1, strlen(s + n + 1), isdigit);
}

static bool word_passes(const char *word, const char *before)
{
    if (strchr(word, ':'))
        return is_slice(word) || is_mac(word) || is_ipv6(word);
    if (is_range(word))
        return !strcmp(before, "portrange");
    return is_among(word, filter_words) || is_number(word, strlen(word)) || is_ipv4(word);
}

static bool is_word_char(int c)
{
    return isalnum(c) || c == '.' || c == '_' || c == '-' || c == ':';
}

/* Copies the word at @s to @word, its end cut as libpcap does. Returns its length, 0: too long. */
static size_t word_cut(const char *s, char *word)
{
    size_t n = 0;

    while (is_word_char((unsigned char)s[n]))
        n++;
    while (n > 1 && (s[n - 1] == '-' || s[n - 1] == '_'))
        n--;
    if (n >= WORD_MAX)
        return 0;
    memcpy(word, s, n);
    word[n] = '\0';
    return n;
}

/* What would be right, by what stands before the word. */
static const char *word_advice(const char *before)
{
    if (!strcmp(before, "port") || !strcmp(before, "portrange"))
        return "give a port as a number";
    return "give addresses as numbers (10.0.0.1) and put spaces around operators";
}

/* @at: the word begins here. *before: the keyword before it, which the word then replaces. */
static enum gw_status word_check(const char *filter, const char **at, char *before,
                                 const char *where, struct gw_error *err)
{
    bool escaped = **at == '\\';
    char word[WORD_MAX];
    size_t n = word_cut(*at + escaped, word);

    if (!n)
        return gw_fail(err, GW_PARAM, "%s: filter \"%.200s\": a word is empty or longer than %d "
                       "characters; it must be a filter keyword, a number or an address", where,
                       filter, WORD_MAX - 1);
    if (escaped ? strcmp(before, "proto") || !is_among(word, filter_protos)
                : !word_passes(word, before))
        return gw_fail(err, GW_PARAM, "%s: filter \"%.200s\": \"%s%s\" is no filter keyword, "
                       "number or address, and names are not looked up; %s", where, filter,
                       escaped ? "\\" : "", word, word_advice(before));
    strcpy(before, word);
    *at += escaped + n;
    return GW_OK;
}

/* See filter.h. */
enum gw_status gw_filter_guard(const char *filter, const char *where, struct gw_error *err)
{
    char before[WORD_MAX] = "";
    const char *s = filter;

    while (*s) {
        unsigned char c = (unsigned char)*s;

        if (isalnum(c) || c == '\\' || c == '_' || c == '.' || (c == ':' && s[1] == ':')) {
            if (word_check(filter, &s, before, where, err) != GW_OK)
                return GW_PARAM;
        } else if (strchr(" \t\r\n()[]!<>=&|+-*/%^:", c)) {
            s++;
        } else {
            return gw_fail(err, GW_PARAM, "%s: filter \"%.200s\": character %u of it (code %u) has "
                           "no meaning in a filter; use the words of pcap-filter(7)", where, filter,
                           (unsigned)(s - filter) + 1, c);
        }
    }
    return GW_OK;
}
