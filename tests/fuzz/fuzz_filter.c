/*
 * fuzz_filter.c - no filter that the guard lets through makes libpcap look a name up
 *
 * The program's own getaddrinfo() and friends take the place of the C library's: any question for
 * a name, not a number, is a crash. What the guard refuses must come with a sentence.
 */
#include "../../emu/io/filter.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/ether.h>
#include <pcap/pcap.h>
#include <stdlib.h>

#define TEXT_MAX 300

int getaddrinfo(const char *node, const char *service, const struct addrinfo *hints,
                struct addrinfo **res)
{
    (void)node;
    (void)service;
    (void)hints;
    (void)res;
    if (node && strchr(node, ':')) {
        struct in6_addr a;

        if (inet_pton(AF_INET6, node, &a) == 1)
            return EAI_NONAME;              /* a number: the C library asks nobody             */
    }
    abort();
}

struct netent *getnetbyname(const char *name)
{
    (void)name;
    abort();
}

int ether_hostton(const char *hostname, struct ether_addr *addr)
{
    (void)hostname;
    (void)addr;
    abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct gw_error err = { 0 };
    struct bpf_program prog;
    char text[TEXT_MAX + 1];
    pcap_t *p;

    if (size > TEXT_MAX)
        return 0;
    memcpy(text, data, size);
    text[size] = '\0';
    if (gw_filter_guard(text, "fuzz", &err) != GW_OK) {
        if (strncmp(err.text, "fuzz: filter \"", 14))
            abort();
        return 0;
    }
    p = pcap_open_dead(DLT_EN10MB, 262144);
    if (!p)
        return 0;
    if (pcap_compile(p, &prog, text, 0, PCAP_NETMASK_UNKNOWN) == 0)
        pcap_freecode(&prog);
    pcap_close(p);
    return 0;
}
