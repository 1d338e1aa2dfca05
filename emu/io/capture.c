/*
 * capture.c - simulated packets as nanosecond classic pcap files with real headers
 *
 * A frame is Ethernet II, IPv4 without options, and what the transport's encode() writes; the
 * payload is zeros, so checksums need the headers only and a packet costs its headers, whatever its
 * length. A test frame (GW_PKT_FRAME, or no transport) is UDP with its number, big-endian, in the
 * first eight payload bytes. MAC addresses 02:00:node and the IPv4 identification, a hash of flow
 * and transport header, do not depend on the hop, so one packet looks the same in all captures.
 *
 * Direction: struct gw_flow_addr is given from the flow's sender's view. Here the IPv4 addresses of
 * packets with GW_PKT_REVERSE are swapped; encode() receives the same struct for both directions
 * and swaps the ports itself.
 *
 * A corrupted packet has its flipped bits in the file, and the checksums and trailer (an ICRC) of
 * what was sent. The filter runs on the whole packet as it is, flipped bits and all, however little
 * of it is kept. Frames too short for their headers are recorded with the headers' length. A
 * super-packet has one header before all its payload, as a capture at a host with segmentation offload
 * shows it; above 64 KiB its IPv4 total length is 0.
 *
 * Left out: FCS, Ethernet padding bytes as such, 802.1Q tags, pcapng (libpcap 1.10 can't write it).
 * Sources: pcap-savefile(5), RFC 791, RFC 1071 (checksums), RFC 768, RFC 9293.
 */
#include "capture.h"

#include "filter.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <pcap/pcap.h>
#include <stdlib.h>
#include <unistd.h>

#define SNAP_MAX 262144u         /* the most that libpcap's and Wireshark's readers take       */
#define STDIO_BYTES (1u << 20)
#define IP_AT GW_ETH_BYTES
#define IP_BYTES 20u
#define L4_AT (IP_AT + IP_BYTES)
#define UDP_BYTES 8u
#define SEQ_BYTES 8u
#define HEAD_MAX (L4_AT + 60u + SEQ_BYTES)   /* bytes that may be other than zero              */
#define PROTO_TCP 6
#define PROTO_UDP 17
#define EPOCH_MAX_S (UINT64_C(0x7fffffff) - 214 * 86400)

struct gw_capture {
    pcap_t        *pcap;
    pcap_dumper_t *dump;
    FILE          *file;         /* owned by dump once that is open                            */
    char          *path;
    char          *stdio_buf;
    struct bpf_program prog;
    bool           filtered;
    uint32_t       snap_bytes;
    uint64_t       epoch_s, last_ns, packets, max_packets;
    int            write_errno;  /* of the first write failure                                 */
    uint8_t       *buf;          /* headers, then zeros up to the longest packet               */
    uint32_t       trailer;      /* bytes at the end of this packet that are not zero          */
};

/* ---- opening and closing ------------------------------------------------------------------ */

static enum gw_status filter_compile(pcap_t *p, struct bpf_program *prog, const char *filter,
                                     const char *where, struct gw_error *err)
{
    enum gw_status st = gw_filter_guard(filter, where, err);

    if (st != GW_OK)
        return st;
    if (pcap_compile(p, prog, filter, 1, PCAP_NETMASK_UNKNOWN) != 0)
        return gw_fail(err, GW_PARAM, "%s: filter \"%.200s\": %s; see pcap-filter(7)", where,
                       filter, pcap_geterr(p));
    return GW_OK;
}

enum gw_status gw_capture_check_filter(const char *filter, const char *where, struct gw_error *err)
{
    struct bpf_program prog;
    enum gw_status st;
    pcap_t *p;

    if (!filter)
        return GW_OK;
    p = pcap_open_dead(DLT_EN10MB, SNAP_MAX);
    if (!p)
        return gw_fail(err, GW_NOMEM, "%s: no memory for a filter", where);
    st = filter_compile(p, &prog, filter, where, err);
    if (st == GW_OK)
        pcap_freecode(&prog);
    pcap_close(p);
    return st;
}

static void capture_free(struct gw_capture *c)
{
    if (c->dump)
        pcap_dump_close(c->dump);
    else if (c->file)
        fclose(c->file);
    if (c->filtered)
        pcap_freecode(&c->prog);
    if (c->pcap)
        pcap_close(c->pcap);
    free(c->stdio_buf);
    free(c->path);
    free(c->buf);
    free(c);
}

static enum gw_status capture_prepare(struct gw_capture *c, const struct gw_capture_conf *conf,
                                      const char *where, struct gw_error *err)
{
    enum gw_status st;

    c->path = strdup(conf->path);
    c->stdio_buf = malloc(STDIO_BYTES);
    c->buf = calloc(1, GW_PKT_MAX_BYTES + HEAD_MAX);
    c->pcap = pcap_open_dead_with_tstamp_precision(DLT_EN10MB, (int)c->snap_bytes,
                                                   PCAP_TSTAMP_PRECISION_NANO);
    if (!c->path || !c->stdio_buf || !c->buf || !c->pcap)
        return gw_fail(err, GW_NOMEM, "%s: no memory for a capture", conf->path);
    if (!conf->filter)
        return GW_OK;
    st = filter_compile(c->pcap, &c->prog, conf->filter, where, err);
    c->filtered = st == GW_OK;
    return st;
}

/* Creates the file; last of all, so that a failure before leaves none. */
static enum gw_status capture_create(struct gw_capture *c, struct gw_error *err)
{
    int fd = open(c->path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);

    if (fd < 0)
        return gw_fail(err, GW_IO, "%s: %s; a capture needs a path that can be created and does "
                       "not exist yet", c->path, strerror(errno));
    c->file = fdopen(fd, "w");
    if (!c->file) {
        close(fd);
        return gw_fail(err, GW_IO, "%s: %s", c->path, strerror(errno));
    }
    setvbuf(c->file, c->stdio_buf, _IOFBF, STDIO_BYTES);
    c->dump = pcap_dump_fopen(c->pcap, c->file);
    if (!c->dump) {
        c->file = NULL;                   /* libpcap has closed it                            */
        return gw_fail(err, GW_IO, "%s: %s", c->path, pcap_geterr(c->pcap));
    }
    return GW_OK;
}

struct gw_capture *gw_capture_open(const struct gw_capture_conf *conf, const char *where,
                                   struct gw_error *err)
{
    struct gw_capture *c;

    if (conf->snap_bytes > SNAP_MAX) {
        gw_fail(err, GW_PARAM, "%s: snap length %u: allowed are 1 to %u bytes", where,
                conf->snap_bytes, SNAP_MAX);
        return NULL;
    }
    if (conf->epoch_s > EPOCH_MAX_S) {
        gw_fail(err, GW_PARAM, "%s: time base %llu s: pcap files hold at most %llu", where,
                (unsigned long long)conf->epoch_s, (unsigned long long)EPOCH_MAX_S);
        return NULL;
    }
    c = calloc(1, sizeof *c);
    if (!c) {
        gw_fail(err, GW_NOMEM, "%s: no memory for a capture", conf->path);
        return NULL;
    }
    c->snap_bytes = conf->snap_bytes ? conf->snap_bytes : SNAP_MAX;
    c->max_packets = conf->max_packets ? conf->max_packets : UINT64_MAX;
    c->epoch_s = conf->epoch_s;
    if (capture_prepare(c, conf, where, err) != GW_OK || capture_create(c, err) != GW_OK) {
        capture_free(c);
        return NULL;
    }
    return c;
}

enum gw_status gw_capture_close(struct gw_capture *c, uint64_t *packets, struct gw_error *err)
{
    enum gw_status st = GW_OK;

    if (packets)
        *packets = c->packets;
    errno = 0;
    if ((pcap_dump_flush(c->dump) != 0 || ferror(c->file)) && !c->write_errno)
        c->write_errno = errno ? errno : EIO;
    if (c->write_errno)
        st = gw_fail(err, GW_IO, "%s: %s; the capture is not complete, make room or choose a "
                     "filter or a smaller snap length", c->path, strerror(c->write_errno));
    capture_free(c);
    return st;
}

/* ---- headers ------------------------------------------------------------------------------ */

static inline void put16(uint8_t *b, uint32_t v)
{
    b[0] = (uint8_t)(v >> 8);
    b[1] = (uint8_t)v;
}

static inline void put32(uint8_t *b, uint32_t v)
{
    put16(b, v >> 16);
    put16(b + 2, v & 0xffff);
}

/* Ones' complement sum of 16-bit words, not folded; an odd last byte is a high one. */
static uint64_t sum16(const uint8_t *b, uint32_t n)
{
    uint64_t sum = 0;
    uint32_t i = 0;

    for (; i + 1 < n; i += 2)
        sum += (uint32_t)b[i] << 8 | b[i + 1];
    return i < n ? sum + ((uint32_t)b[i] << 8) : sum;
}

static uint16_t sum_fold(uint64_t sum)
{
    while (sum >> 16)
        sum = (sum & 0xffff) + (sum >> 16);
    return (uint16_t)~sum;
}

static void put_mac(uint8_t *b, uint32_t node)
{
    put16(b, 0x0200);                     /* locally administered, one host                   */
    put32(b + 2, node);
}

static void put_ethernet(uint8_t *b, const struct gw_pkt *p)
{
    put_mac(b, p->dst);
    put_mac(b + 6, p->src);
    put16(b + 12, 0x0800);
}

/* The same on every hop; numbered for test frames. */
static uint16_t ip_id(const struct gw_pkt *p)
{
    if (p->flags & GW_PKT_FRAME)
        return (uint16_t)p->tp[0];
    return (uint16_t)gw_mix64(p->flow ^ gw_mix64(p->tp[0] ^ gw_mix64(p->tp[1] ^ gw_mix64(
        p->tp[2] ^ gw_mix64(p->tp[3] + p->flags % 2)))));
}

static void put_ip(uint8_t *b, const struct gw_pkt *p, uint32_t src, uint32_t dst, uint8_t proto,
                   uint32_t total)
{
    b[0] = 0x45;
    b[1] = (uint8_t)(p->dscp << 2 | (p->ecn & 3));
    put16(b + 2, total <= 0xffff ? total : 0);
    put16(b + 4, ip_id(p));
    put16(b + 6, 0x4000);                 /* don't fragment                                   */
    b[8] = 64;
    b[9] = proto;
    put16(b + 10, 0);
    put32(b + 12, src);
    put32(b + 16, dst);
    put16(b + 10, sum_fold(sum16(b, IP_BYTES)));
}

/* A numbered test frame. Returns the length of UDP header and number. */
static uint32_t put_test_frame(uint8_t *b, const struct gw_pkt *p, const struct gw_flow_addr *a)
{
    bool back = p->flags & GW_PKT_REVERSE;

    put16(b, back ? a->dst_port : a->src_port);
    put16(b + 2, back ? a->src_port : a->dst_port);
    put16(b + 6, 0);
    put32(b + 8, (uint32_t)(p->tp[0] >> 32));
    put32(b + 12, (uint32_t)p->tp[0]);
    return UDP_BYTES + SEQ_BYTES;
}

/* Fills the checksum of the L4 header at @b: @used bytes of it are written, @len follow the IP
 * header in all, zeros after @used. @ip is the finished IP header. */
static void put_l4_sum(uint8_t *b, const uint8_t *ip, uint8_t proto, uint32_t used, uint32_t len)
{
    uint8_t *at = b + (proto == PROTO_TCP ? 16 : 6);
    uint64_t sum = sum16(ip + 12, 8) + proto + (len >> 16) + (len & 0xffff);
    uint16_t folded;

    put16(at, 0);
    folded = sum_fold(sum + sum16(b, used));
    put16(at, folded || proto == PROTO_TCP ? folded : 0xffff);
}

/* Addresses of a packet that has none: by node, as the network numbers its hosts. */
static void addr_of_nodes(const struct gw_pkt *p, struct gw_flow_addr *a)
{
    bool back = p->flags & GW_PKT_REVERSE;

    a->src_ip = UINT32_C(0x0a000001) + (back ? p->dst : p->src);
    a->dst_ip = UINT32_C(0x0a000001) + (back ? p->src : p->dst);
    a->src_port = (uint16_t)(GW_FRAME_SRC_PORT + p->flow);
    a->dst_port = GW_FRAME_DST_PORT;
}

/* A pause frame (802.1Qbb): class-enable vector and times. Returns the frame's length. */
static uint32_t put_pause(struct gw_capture *c, const struct gw_pkt *p)
{
    static const uint8_t to[6] = { 0x01, 0x80, 0xc2, 0x00, 0x00, 0x01 };
    uint8_t *b = c->buf;

    memset(b, 0, HEAD_MAX);
    memcpy(b, to, sizeof to);
    put_mac(b + 6, p->src);
    put16(b + 12, 0x8808);
    put16(b + 14, 0x0101);
    put16(b + 16, 1u << p->tp[1]);
    put16(b + 18 + 2 * (uint32_t)p->tp[1], (uint32_t)p->tp[0]);
    return p->len_bytes;
}

/* What the transport puts behind the payload; capture_clear() makes zeros of it again. */
static void put_trailer(struct gw_capture *c, const struct gw_pkt *p,
                        const struct gw_transport_ops *ops, uint32_t used, uint32_t len)
{
    uint8_t end[GW_TRAILER_MAX];
    uint32_t n = ops->trailer(p, c->buf, used, len, end);

    assert(n <= sizeof end);
    if (used + n > len)
        return;                           /* a packet cut short has lost it                   */
    memcpy(c->buf + len - n, end, n);
    c->trailer = n;
}

static void capture_clear(struct gw_capture *c, uint32_t len)
{
    memset(c->buf + len - c->trailer, 0, c->trailer);
    c->trailer = 0;
}

/* Writes all headers of @p to the buffer; returns the frame's length. */
static uint32_t put_frame(struct gw_capture *c, const struct gw_pkt *p,
                          const struct gw_transport_ops *ops, const void *ext,
                          const struct gw_flow_addr *a)
{
    bool back = p->flags & GW_PKT_REVERSE;
    uint8_t *l4 = c->buf + L4_AT, proto = PROTO_UDP;
    uint32_t len = p->len_bytes < GW_PKT_MAX_BYTES ? p->len_bytes : GW_PKT_MAX_BYTES;
    uint32_t used, need;

    if (ops && ops->encode && !(p->flags & GW_PKT_FRAME)) {
        used = need = ops->encode(p, ext, a, l4, &proto);
    } else {
        used = put_test_frame(l4, p, a);
        need = UDP_BYTES;
    }
    assert(used <= 60);
    if (p->seg_count > 1)
        len -= (p->seg_count - 1u) * (L4_AT + used);
    if (len < L4_AT + need)
        len = L4_AT + need;
    if (used > len - L4_AT)
        used = len - L4_AT;               /* room for a part of the number only               */
    memset(l4 + used, 0, HEAD_MAX - L4_AT - used);
    put_ethernet(c->buf, p);
    put_ip(c->buf + IP_AT, p, back ? a->dst_ip : a->src_ip, back ? a->src_ip : a->dst_ip, proto,
           len - IP_AT);
    if (proto == PROTO_UDP)
        put16(l4 + 4, len - L4_AT <= 0xffff ? len - L4_AT : 0);
    if (ops && ops->trailer && !(p->flags & GW_PKT_FRAME)) {
        put_trailer(c, p, ops, L4_AT + used, len);
        return len;
    }
    if (proto == PROTO_TCP || proto == PROTO_UDP)
        put_l4_sum(l4, c->buf + IP_AT, proto, used, len - L4_AT);
    return len;
}

/* ---- packets ------------------------------------------------------------------------------ */

static void capture_write(struct gw_capture *c, uint32_t len, uint64_t now_ps)
{
    uint64_t now_ns = now_ps / GW_PS_PER_NS;
    struct pcap_pkthdr h = { .len = len, .caplen = len < c->snap_bytes ? len : c->snap_bytes };

    if (now_ns < c->last_ns)
        now_ns = c->last_ns;
    c->last_ns = now_ns;
    h.ts.tv_sec = (time_t)(c->epoch_s + now_ns / UINT64_C(1000000000));
    h.ts.tv_usec = (suseconds_t)(now_ns % UINT64_C(1000000000));   /* nanoseconds in fact      */
    pcap_dump((u_char *)c->dump, &h, c->buf);
    c->packets++;
    if (GW_UNLIKELY(ferror(c->file)) && !c->write_errno)
        c->write_errno = errno ? errno : EIO;
}

/* Flips the bits of the frame in the buffer; the second time they are as they were. */
static void flip(struct gw_capture *c, const struct gw_flips *x, uint32_t len)
{
    for (uint32_t i = 0; i < x->count; i++)
        if (x->bit[i] / 8 < len)
            c->buf[x->bit[i] / 8] ^= (uint8_t)(1u << x->bit[i] % 8);
}

void gw_capture_packet(struct gw_capture *c, const struct gw_pkt *p,
                       const struct gw_transport_ops *ops, const void *ext,
                       const struct gw_flow_addr *addr, const struct gw_flips *flips,
                       uint64_t now_ps)
{
    struct gw_flow_addr made;
    uint32_t len;

    if (c->write_errno || c->packets >= c->max_packets)
        return;
    if (!addr) {
        addr_of_nodes(p, &made);
        addr = &made;
    }
    len = gw_pkt_is_pause(p) ? put_pause(c, p) : put_frame(c, p, ops, ext, addr);
    if (flips)
        flip(c, flips, len);
    if (!c->filtered || bpf_filter(c->prog.bf_insns, c->buf, len, len))
        capture_write(c, len, now_ps);
    if (flips)
        flip(c, flips, len);
    capture_clear(c, len);
}
