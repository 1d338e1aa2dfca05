/*
 * test_capture.c - captures written, read back through libpcap and checked byte by byte
 *
 * Checksums are verified over the whole frames by a plain loop that shares nothing with the writer.
 * Files go to a new directory below the current one, which is removed afterwards.
 */
#include "suite.h"

#include "../../emu/core/engine.h"
#include "../../emu/io/capture.h"
#include "../../emu/io/filter.h"

#include <pcap/pcap.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

static char dir[64], path[96];

static void dir_open(void)
{
    strcpy(dir, "capture-test-XXXXXX");
    CU_ASSERT_FATAL(mkdtemp(dir) != NULL);
    snprintf(path, sizeof path, "%s/x.pcap", dir);
}

static void dir_close(void)
{
    int rc;

    unlink(path);
    rc = rmdir(dir);
    CHECK_ROW(rc == 0, "%s: something was left in it", dir);
}

/* A TCP of the test: tp[0] sequence number, tp[1] acknowledged, tp[2] flags, tp[3] bytes of
 * options. Swaps ports itself for packets of the other direction. */
static uint32_t test_encode(const struct gw_pkt *p, const void *ext, const struct gw_flow_addr *a,
                            uint8_t *b, uint8_t *ip_proto)
{
    uint16_t from = p->flags & GW_PKT_REVERSE ? a->dst_port : a->src_port;
    uint16_t to = p->flags & GW_PKT_REVERSE ? a->src_port : a->dst_port;
    uint32_t len = 20 + (uint32_t)p->tp[3];

    (void)ext;
    memset(b, 1, len);                                   /* options: all NOP                   */
    b[0] = (uint8_t)(from >> 8);
    b[1] = (uint8_t)from;
    b[2] = (uint8_t)(to >> 8);
    b[3] = (uint8_t)to;
    for (unsigned i = 0; i < 4; i++) {
        b[4 + i] = (uint8_t)(p->tp[0] >> (24 - 8 * i));
        b[8 + i] = (uint8_t)(p->tp[1] >> (24 - 8 * i));
    }
    b[12] = (uint8_t)(len / 4 << 4);
    b[13] = (uint8_t)p->tp[2];
    b[14] = 0xff;
    b[15] = 0xff;
    memset(b + 16, 0, 4);
    *ip_proto = 6;
    return len;
}

static const struct gw_transport_ops test_ops = { .encode = test_encode };
static const struct gw_flow_addr test_addr = { 0x0a000001, 0x0a000203, 40000, 29500 };

static struct gw_pkt tcp_pkt(uint32_t len_bytes, uint64_t seq, uint64_t options)
{
    return (struct gw_pkt){ .len_bytes = len_bytes, .src = 0, .dst = 0x202, .flow = 5,
                            .ext = GW_NONE, .ecn = GW_ECN_ECT0, .dscp = 46,
                            .tp = { seq, 77, 0x10, options } };
}

static struct gw_capture *open_or_die(const char *filter, uint32_t snap_bytes, uint64_t epoch_s)
{
    struct gw_capture_conf conf = { .path = path, .filter = filter,
                                    .snap_bytes = snap_bytes, .epoch_s = epoch_s };
    struct gw_error err = { 0 };
    struct gw_capture *c = gw_capture_open(&conf, "--pcap", &err);

    CHECK_ROW(c != NULL, "open: %s", err.text);
    CU_ASSERT_FATAL(c != NULL);
    return c;
}

static uint64_t close_or_die(struct gw_capture *c)
{
    struct gw_error err = { 0 };
    uint64_t n = 0;
    enum gw_status st = gw_capture_close(c, &n, &err);

    CHECK_ROW(st == GW_OK, "close: %s", err.text);
    return n;
}

/* ---- reading back ------------------------------------------------------------------------- */

static uint32_t be16(const uint8_t *b) { return (uint32_t)b[0] << 8 | b[1]; }
static uint32_t be32(const uint8_t *b) { return be16(b) << 16 | be16(b + 2); }

/* RFC 1071: the sum over everything, the checksum included, is all ones. */
static bool sum_is_good(const uint8_t *head, uint32_t head_len, const uint8_t *b, uint32_t n)
{
    uint32_t sum = 0;

    for (uint32_t i = 0; i < head_len; i++)
        sum += i % 2 ? head[i] : (uint32_t)head[i] << 8;
    for (uint32_t i = 0; i < n; i++) {
        sum += i % 2 ? b[i] : (uint32_t)b[i] << 8;
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum = (sum & 0xffff) + (sum >> 16);
    return sum == 0xffff;
}

static bool l4_sum_is_good(const uint8_t *frame, uint32_t len)
{
    uint8_t pseudo[12];

    memcpy(pseudo, frame + 26, 8);
    pseudo[8] = 0;
    pseudo[9] = frame[23];
    pseudo[10] = (uint8_t)((len - 34) >> 8);
    pseudo[11] = (uint8_t)(len - 34);
    return sum_is_good(pseudo, sizeof pseudo, frame + 34, len - 34);
}

struct reader {
    pcap_t *p;
    struct pcap_pkthdr *h;
    const u_char *b;
};

static void reader_open(struct reader *r)
{
    char text[PCAP_ERRBUF_SIZE];

    r->p = pcap_open_offline_with_tstamp_precision(path, PCAP_TSTAMP_PRECISION_NANO, text);
    CHECK_ROW(r->p != NULL, "libpcap: %s", text);
    CU_ASSERT_FATAL(r->p != NULL);
}

static bool reader_next(struct reader *r)
{
    return pcap_next_ex(r->p, &r->h, &r->b) == 1;
}

/* ---- the file ----------------------------------------------------------------------------- */

static void file_head(void)
{
    uint8_t b[24];
    uint32_t magic, snap, link;
    FILE *f;

    dir_open();
    CU_ASSERT(close_or_die(open_or_die(NULL, 128, 0)) == 0);
    f = fopen(path, "r");
    CU_ASSERT_FATAL(f != NULL);
    CU_ASSERT(fread(b, 1, 24, f) == 24 && fgetc(f) == EOF);
    fclose(f);
    memcpy(&magic, b, 4);
    memcpy(&snap, b + 16, 4);
    memcpy(&link, b + 20, 4);
    CHECK_ROW(magic == 0xa1b23c4d, "magic: got %08x, want a1b23c4d", magic);
    CHECK_ROW(snap == 128, "snap length: got %u, want 128", snap);
    CHECK_ROW(link == 1, "link type: got %u, want 1", link);
    dir_close();
}

static void stamps(void)
{
    static const struct { uint64_t at_ps; long want_s, want_ns; } row[] = {
        { 0, 1000, 0 },
        { 999, 1000, 0 },
        { 1000, 1000, 1 },
        { 1999999, 1000, 1999 },
        { GW_PS_PER_S - 1, 1000, 999999999 },
        { GW_PS_PER_S, 1001, 0 },
        { GW_PS_PER_S - 5000, 1001, 0 },                 /* never back                         */
        { 213 * 86400 * GW_PS_PER_S, 1000 + 213 * 86400, 0 },
    };
    struct gw_pkt p = tcp_pkt(100, 1, 0);
    struct gw_capture *c;
    struct reader r;

    dir_open();
    c = open_or_die(NULL, 0, 1000);
    for (size_t i = 0; i < GW_ARRAY_LEN(row); i++)
        gw_capture_packet(c, &p, &test_ops, NULL, &test_addr, NULL, row[i].at_ps);
    CU_ASSERT(close_or_die(c) == GW_ARRAY_LEN(row));
    reader_open(&r);
    for (size_t i = 0; i < GW_ARRAY_LEN(row); i++) {
        CU_ASSERT_FATAL(reader_next(&r));
        CHECK_ROW(r.h->ts.tv_sec == row[i].want_s && r.h->ts.tv_usec == row[i].want_ns,
                  "row %zu: got %ld.%09ld, want %ld.%09ld", i, (long)r.h->ts.tv_sec,
                  (long)r.h->ts.tv_usec, row[i].want_s, row[i].want_ns);
    }
    pcap_close(r.p);
    dir_close();
}

/* ---- headers ------------------------------------------------------------------------------ */

static void tcp_headers(void)
{
    static const uint8_t fwd[14] = { 2, 0, 0, 0, 2, 2, 2, 0, 0, 0, 0, 0, 8, 0 };
    struct gw_pkt p = tcp_pkt(1514, 0xfedcba98, 12);
    struct gw_capture *c;
    struct reader r;

    dir_open();
    c = open_or_die(NULL, 0, 0);
    gw_capture_packet(c, &p, &test_ops, NULL, &test_addr, NULL, 0);
    p.src = 0x202;
    p.dst = 0;
    p.len_bytes = 54;
    p.tp[3] = 0;
    p.flags = GW_PKT_REVERSE;
    p.ecn = GW_ECN_CE;
    p.dscp = 0;
    gw_capture_packet(c, &p, &test_ops, NULL, &test_addr, NULL, 0);
    close_or_die(c);
    reader_open(&r);

    CU_ASSERT_FATAL(reader_next(&r));
    CU_ASSERT(r.h->len == 1514 && r.h->caplen == 1514);
    CU_ASSERT(!memcmp(r.b, fwd, 14));
    CHECK_ROW(r.b[14] == 0x45 && r.b[15] == (46 << 2 | 2), "tos: got %02x, want ba", r.b[15]);
    CHECK_ROW(be16(r.b + 16) == 1500, "total length: got %u, want 1500", be16(r.b + 16));
    CU_ASSERT(be16(r.b + 20) == 0x4000 && r.b[22] == 64 && r.b[23] == 6);
    CU_ASSERT(be32(r.b + 26) == 0x0a000001 && be32(r.b + 30) == 0x0a000203);
    CU_ASSERT(be16(r.b + 34) == 40000 && be16(r.b + 36) == 29500);
    CU_ASSERT(be32(r.b + 38) == 0xfedcba98 && be32(r.b + 42) == 77 && r.b[46] == 0x80);
    CU_ASSERT(sum_is_good(NULL, 0, r.b + 14, 20) && l4_sum_is_good(r.b, 1514));

    CU_ASSERT_FATAL(reader_next(&r));
    CU_ASSERT(r.h->len == 54 && be16(r.b + 16) == 40 && r.b[15] == 3);
    CU_ASSERT(be32(r.b + 26) == 0x0a000203 && be32(r.b + 30) == 0x0a000001);
    CU_ASSERT(be16(r.b + 34) == 29500 && be16(r.b + 36) == 40000);
    CU_ASSERT(be32(r.b + 2) == 0 && be32(r.b + 8) == 0x202);
    CU_ASSERT(sum_is_good(NULL, 0, r.b + 14, 20) && l4_sum_is_good(r.b, 54));
    CU_ASSERT(!reader_next(&r));
    pcap_close(r.p);
    dir_close();
}

/* Frames of every length, with and without options, odd ones too: every checksum is right, what
 * follows a long header is zero again after it, and only the snap length is kept. */
static void all_lengths(void)
{
    struct gw_capture *c;
    struct reader r;
    uint32_t bad = 0, n = 0;

    dir_open();
    c = open_or_die(NULL, 2048, 0);
    for (uint32_t len = 54; len < 1600; len++) {
        struct gw_pkt p = tcp_pkt(len, len * 7919u, len % 3 && len > 100 ? 40 : 0);

        p.flags = len % 2 ? GW_PKT_REVERSE : 0;
        gw_capture_packet(c, &p, &test_ops, NULL, &test_addr, NULL, len);
        p.flags = GW_PKT_FRAME;
        gw_capture_packet(c, &p, NULL, NULL, NULL, NULL, len);
    }
    close_or_die(c);
    reader_open(&r);
    for (; reader_next(&r); n++) {
        bool good = r.h->len == 54 + n / 2 && r.h->caplen == r.h->len &&
                    be16(r.b + 16) == r.h->len - 14 && sum_is_good(NULL, 0, r.b + 14, 20) &&
                    l4_sum_is_good(r.b, r.h->len);
        uint32_t head = n % 2 ? 50 : 34 + (uint32_t)(r.b[46] >> 4) * 4;

        for (uint32_t i = head; i < r.h->len; i++)
            good &= r.b[i] == 0;
        bad += !good;
    }
    CHECK_ROW(n == 2 * (1600 - 54), "read %u frames", n);
    CHECK_ROW(bad == 0, "%u frames are wrong", bad);
    pcap_close(r.p);
    dir_close();
}

static void test_frames(void)
{
    static const struct { uint32_t len; uint64_t seq; uint32_t want_len; } row[] = {
        { 1000, 0, 1000 }, { 60, UINT64_C(0x0102030405060708), 60 }, { 50, 9, 50 },
        { 46, UINT64_C(0x0102030405060708), 46 }, { 42, 3, 42 }, { 20, 3, 42 }, { 0, 3, 42 },
    };
    struct gw_capture *c;
    struct reader r;

    dir_open();
    c = open_or_die(NULL, 0, 0);
    for (size_t i = 0; i < GW_ARRAY_LEN(row); i++) {
        struct gw_pkt p = { .len_bytes = row[i].len, .src = 1, .dst = 2, .flow = 3,
                            .flags = GW_PKT_FRAME, .ext = GW_NONE, .tp = { row[i].seq } };

        gw_capture_packet(c, &p, NULL, NULL, NULL, NULL, 0);
    }
    close_or_die(c);
    reader_open(&r);
    for (size_t i = 0; i < GW_ARRAY_LEN(row); i++) {
        CU_ASSERT_FATAL(reader_next(&r));
        CHECK_ROW(r.h->len == row[i].want_len, "row %zu: %u bytes, want %u", i, r.h->len,
                  row[i].want_len);
        CU_ASSERT(r.b[23] == 17 && be16(r.b + 38) == row[i].want_len - 34);
        CU_ASSERT(be32(r.b + 26) == 0x0a000002 && be32(r.b + 30) == 0x0a000003);
        CU_ASSERT(sum_is_good(NULL, 0, r.b + 14, 20) && l4_sum_is_good(r.b, r.h->len));
        CU_ASSERT(be16(r.b + 40) != 0);
        if (r.h->len >= 50)
            CHECK_ROW(((uint64_t)be32(r.b + 42) << 32 | be32(r.b + 46)) == row[i].seq,
                      "row %zu: wrong number", i);
        else if (r.h->len == 46)
            CU_ASSERT(be32(r.b + 42) == 0x01020304);
    }
    pcap_close(r.p);
    dir_close();
}

static void snap_length(void)
{
    static const struct { uint32_t snap, len, caplen; } row[] = {
        { 1, 1514, 1 }, { 54, 1514, 54 }, { 128, 100, 100 }, { 128, 128, 128 }, { 0, 9014, 9014 },
        { 0, 60000, 60000 }, { 200, GW_PKT_MAX_BYTES, 200 }, { 0, GW_PKT_MAX_BYTES, 262144 },
    };

    for (size_t i = 0; i < GW_ARRAY_LEN(row); i++) {
        struct gw_pkt p = tcp_pkt(row[i].len, 1, 0);
        struct gw_capture *c;
        struct reader r;

        dir_open();
        c = open_or_die(NULL, row[i].snap, 0);
        gw_capture_packet(c, &p, &test_ops, NULL, &test_addr, NULL, 0);
        close_or_die(c);
        reader_open(&r);
        CU_ASSERT_FATAL(reader_next(&r));
        CHECK_ROW(r.h->len == row[i].len && r.h->caplen == row[i].caplen,
                  "row %zu: kept %u of %u, want %u of %u", i, r.h->caplen, r.h->len, row[i].caplen,
                  row[i].len);
        if (row[i].len > 65549)
            CU_ASSERT(r.h->caplen < 18 || be16(r.b + 16) == 0);
        pcap_close(r.p);
        dir_close();
    }
}

/* The bits that were flipped, and no others, differ from the frame that was sent; every check sum
 * over one of them is wrong; the next frame is whole again. */
static void corrupt_packets_have_flipped_bits(void)
{
    static const struct { struct gw_flips x; bool ip, l4; } row[] = {
        { { 1, { 8 * 16 } }, false, true },          /* IP: total length                       */
        { { 1, { 8 * 26 + 7 } }, false, false },     /* IP: source, in the pseudo header, too  */
        { { 1, { 8 * 40 + 3 } }, true, false },      /* TCP: sequence number                   */
        { { 1, { 8 * 99 + 7 } }, true, false },      /* the last bit of the payload            */
        { { 3, { 8 * 9 + 1, 8 * 60, 8 * 61 } }, true, false },
        { { 1, { 8 * 9 + 1 } }, true, true },        /* Ethernet: source                       */
        { { 2, { 8 * 100, 8 * 103 + 4 } }, true, true },     /* the check sum behind the frame */
    };

    for (size_t i = 0; i < GW_ARRAY_LEN(row); i++) {
        struct gw_pkt p = tcp_pkt(100, 1, 0);
        uint8_t sent[100], seen[100];
        struct gw_capture *c;
        struct reader r;

        dir_open();
        c = open_or_die(NULL, 0, 0);
        gw_capture_packet(c, &p, &test_ops, NULL, &test_addr, NULL, 0);
        p.flags = GW_PKT_CORRUPT;
        gw_capture_packet(c, &p, &test_ops, NULL, &test_addr, &row[i].x, 0);
        p.flags = 0;
        gw_capture_packet(c, &p, &test_ops, NULL, &test_addr, NULL, 0);
        close_or_die(c);
        reader_open(&r);
        CU_ASSERT_FATAL(reader_next(&r) && r.h->caplen == 100);
        memcpy(sent, r.b, 100);
        CU_ASSERT_FATAL(reader_next(&r) && r.h->caplen == 100);
        memcpy(seen, r.b, 100);
        CHECK_ROW(sum_is_good(NULL, 0, seen + 14, 20) == row[i].ip &&
                  l4_sum_is_good(seen, 100) == row[i].l4, "row %zu: check sums", i);
        for (uint32_t k = 0; k < row[i].x.count; k++)
            if (row[i].x.bit[k] < 800)
                seen[row[i].x.bit[k] / 8] ^= (uint8_t)(1 << row[i].x.bit[k] % 8);
        CHECK_ROW(!memcmp(sent, seen, 100), "row %zu: other bits are flipped", i);
        CU_ASSERT_FATAL(reader_next(&r));
        CHECK_ROW(!memcmp(sent, r.b, 100), "row %zu: the next frame is damaged", i);
        pcap_close(r.p);
        dir_close();
    }
}

/* A filter sees the packet as it is on the wire: an address that was flipped is another one. */
static void filters_see_flipped_bits(void)
{
    static const struct gw_flips address = { 1, { 8 * 29 } };    /* 10.0.0.1 becomes 10.0.0.0  */
    struct gw_pkt p = tcp_pkt(100, 1, 0);
    struct gw_capture *c;

    dir_open();
    c = open_or_die("src host 10.0.0.1", 0, 0);
    for (int i = 0; i < 5; i++)
        gw_capture_packet(c, &p, &test_ops, NULL, &test_addr, i % 2 ? &address : NULL, 0);
    CU_ASSERT_EQUAL(close_or_die(c), 3);
    dir_close();
}

/* ---- filters ------------------------------------------------------------------------------ */

/* Played: TCP data of 1514, its ACK of 54, a test frame of 200 bytes, in this order. */
static void filters_select(void)
{
    static const struct { const char *filter; unsigned want; } row[] = {
        { NULL, 7 }, { "", 7 }, { "tcp", 3 }, { "udp", 4 }, { "tcp port 29500", 3 },
        { "tcp dst port 29500", 1 }, { "src host 10.0.0.1", 5 }, { "host 10.0.2.3", 3 },
        { "net 10.0.2.0/24", 3 }, { "greater 1514", 1 }, { "less 60", 2 }, { "len = 200", 4 },
        { "tcp[tcpflags] & (tcp-syn|tcp-ack) == tcp-ack", 3 }, { "not tcp", 4 },
        { "ether src 02:00:00:00:00:00", 5 }, { "ip[1] & 3 == 3", 2 }, { "tcp[4:4] = 5", 3 },
        { "portrange 29500-29501", 3 }, { "ip proto \\tcp", 3 }, { "udp[8:4] = 0", 4 },
        { "ip[1200] = 0", 1 },                    /* far behind the snap length                */
        { "vlan", 0 }, { "ip6", 0 }, { "arp or udp", 4 },
    };

    for (size_t i = 0; i < GW_ARRAY_LEN(row); i++) {
        struct gw_pkt p = tcp_pkt(1514, 5, 0);
        struct gw_capture *c;
        struct reader r;
        unsigned got = 0;

        dir_open();
        c = open_or_die(row[i].filter, 60, 0);
        gw_capture_packet(c, &p, &test_ops, NULL, &test_addr, NULL, 1000);
        p = tcp_pkt(54, 5, 0);
        p.flags = GW_PKT_REVERSE;
        p.src = 0x202;
        p.dst = 0;
        p.ecn = GW_ECN_CE;
        gw_capture_packet(c, &p, &test_ops, NULL, &test_addr, NULL, 2000);
        p = (struct gw_pkt){ .len_bytes = 200, .src = 0, .dst = 1, .flags = GW_PKT_FRAME };
        gw_capture_packet(c, &p, NULL, NULL, NULL, NULL, 3000);
        close_or_die(c);
        reader_open(&r);
        while (reader_next(&r))
            got |= 1u << r.h->ts.tv_usec >> 1;
        CHECK_ROW(got == row[i].want, "filter %s: packets %x, want %x",
                  row[i].filter ? row[i].filter : "none", got, row[i].want);
        pcap_close(r.p);
        dir_close();
    }
}

static void filters_are_refused(void)
{
    static const struct { const char *filter, *say; } row[] = {
        { "host gradwire", "\"gradwire\"" },
        { "host h0", "\"h0\"" },
        { "src or dst spine1-leaf2", "\"spine1-leaf2\"" },
        { "net mynet", "\"mynet\"" },
        { "gateway gw", "\"gw\"" },
        { "port http", "as a number" },
        { "tcp port ssh", "as a number" },
        { "host 1.2.3.4.5", "\"1.2.3.4.5\"" },
        { "host 256.1.1.1", "\"256.1.1.1\"" },
        { "host 7000-7009", "\"7000-7009\"" },
        { "host beef:2", "\"beef:2\"" },
        { "host 0x", "\"0x\"" },
        { "host \\tcp", "\"\\tcp\"" },
        { "proto \\tcp or \\nobody", "\"\\nobody\"" },
        { "len-14 > 5", "spaces around operators" },
        { "tcp. ", "\"tcp.\"" },
        { "TCP", "\"TCP\"" },
        { "tcp port", "syntax" },
        { "tcp port 29500 and", "syntax" },
        { "host 1.2.3.4 and (", "syntax" },
        { "port 99999", "99999" },
        { "tcp & \"x\"", "character 7" },
        { "tcp \x01", "character 5" },
        { "ip host \xc3\xa9", "character 9" },
        { "proto \\ tcp", "empty" },
        { "ip broadcast", "netmask" },
        { "host aaaaaaaaaabbbbbbbbbbccccccccccddddddddddeeeeeeeeeeffffffffffgggggggggg"
          "hhhhhhhhhhiiii", "longer" },
    };

    dir_open();
    for (size_t i = 0; i < GW_ARRAY_LEN(row); i++) {
        struct gw_capture_conf conf = { .path = path, .filter = row[i].filter };
        struct gw_error err = { 0 };
        struct gw_capture *c = gw_capture_open(&conf, "s.yaml:3:5", &err);

        CHECK_ROW(c == NULL, "%s: was taken", row[i].filter);
        CHECK_ROW(err.code == GW_PARAM && !strncmp(err.text, "s.yaml:3:5: filter \"", 20) &&
                  strstr(err.text, row[i].say), "%s: says \"%s\", want it to name %s",
                  row[i].filter, err.text, row[i].say);
        CHECK_ROW(access(path, F_OK) != 0, "%s: left a file", row[i].filter);
        CU_ASSERT(gw_capture_check_filter(row[i].filter, "w", NULL) == GW_PARAM);
    }
    CU_ASSERT(gw_capture_check_filter("tcp and host 10.0.0.1", "w", NULL) == GW_OK);
    CU_ASSERT(gw_capture_check_filter(NULL, "w", NULL) == GW_OK);
    dir_close();
}

/* ---- files that cannot be written --------------------------------------------------------- */

static void opening_fails(void)
{
    struct gw_capture_conf conf = { .path = path };
    struct gw_error err = { 0 };
    char text[8] = "";
    FILE *f;

    dir_open();
    f = fopen(path, "w");
    CU_ASSERT_FATAL(f != NULL);
    fputs("mine", f);
    fclose(f);
    CU_ASSERT(gw_capture_open(&conf, "--pcap", &err) == NULL && err.code == GW_IO);
    CHECK_ROW(strstr(err.text, path) && strstr(err.text, "exist"), "says \"%s\"", err.text);
    f = fopen(path, "r");
    CU_ASSERT_FATAL(f != NULL);
    CU_ASSERT(fgets(text, sizeof text, f) && !strcmp(text, "mine"));
    fclose(f);

    conf.path = "no-such-directory/x.pcap";
    err = (struct gw_error){ 0 };
    CU_ASSERT(gw_capture_open(&conf, "--pcap", &err) == NULL && err.code == GW_IO);
    conf.path = path;
    conf.snap_bytes = 262145;
    err = (struct gw_error){ 0 };
    CU_ASSERT(gw_capture_open(&conf, "--pcap", &err) == NULL && err.code == GW_PARAM);
    CU_ASSERT(strstr(err.text, "262144") != NULL);
    conf.snap_bytes = 0;
    conf.epoch_s = UINT64_C(1) << 31;
    err = (struct gw_error){ 0 };
    CU_ASSERT(gw_capture_open(&conf, "--pcap", &err) == NULL && err.code == GW_PARAM);
    dir_close();
}

/* A file size limit stands for the full disk: once met while writing, once only at the close. */
static void disk_full(void)
{
    static const uint32_t packets[] = { 4000, 200 };
    struct rlimit was, tight;
    void (*xfsz)(int) = signal(SIGXFSZ, SIG_IGN);

    CU_ASSERT_FATAL(getrlimit(RLIMIT_FSIZE, &was) == 0);
    for (size_t i = 0; i < GW_ARRAY_LEN(packets); i++) {
        struct gw_pkt p = tcp_pkt(1514, 1, 0);
        struct gw_error err = { 0 };
        struct gw_capture *c;

        dir_open();
        c = open_or_die(NULL, 0, 0);
        tight = (struct rlimit){ 100000, was.rlim_max };
        CU_ASSERT_FATAL(setrlimit(RLIMIT_FSIZE, &tight) == 0);
        for (uint32_t n = 0; n < packets[i]; n++)
            gw_capture_packet(c, &p, &test_ops, NULL, &test_addr, NULL, 0);
        CU_ASSERT(gw_capture_close(c, NULL, &err) == GW_IO);
        CHECK_ROW(strstr(err.text, path) && strstr(err.text, "not complete"), "%u packets: \"%s\"",
                  packets[i], err.text);
        setrlimit(RLIMIT_FSIZE, &was);
        dir_close();
    }
    signal(SIGXFSZ, xfsz);
}

/* ---- speed, and another reader ------------------------------------------------------------ */

static void speed(void)
{
    enum { N = 500000 };
    struct gw_pkt p = tcp_pkt(1514, 0, 12);
    double took_s;
    struct gw_capture *c;

    dir_open();
    c = open_or_die("tcp port 29500", 96, 0);
    took_s = gw_clock_cpu_s();
    for (uint32_t i = 0; i < N; i++) {
        p.tp[0] += 1448;
        gw_capture_packet(c, &p, &test_ops, NULL, &test_addr, NULL, i * UINT64_C(123456));
    }
    took_s = gw_clock_cpu_s() - took_s;
    close_or_die(c);
    printf(" [%.0f ns a packet] ", took_s * 1e9 / N);
    CHECK_ROW(took_s < N * 5e-6, "a packet took %.0f ns", took_s * 1e9 / N);
    dir_close();
}

/* A short conversation in tshark's eyes: no malformed packet, no bad checksum. */
static void tshark_agrees(void)
{
    static const char *const filters[] = { "", "-Y '_ws.malformed || ip.checksum.status == 0 || "
                                               "tcp.checksum.status == 0 || "
                                               "udp.checksum.status == 0'" };
    static const uint32_t want[] = { 41, 0 };
    struct gw_capture *c;

    if (system("command -v tshark >/dev/null 2>&1") != 0) {
        printf(" [skipped: no tshark] ");
        return;
    }
    dir_open();
    c = open_or_die(NULL, 0, 1700000000);
    for (uint32_t i = 0; i < 20; i++) {
        struct gw_pkt p = tcp_pkt(1514 - i, 1 + i * 1000, i % 2 ? 12 : 0);

        gw_capture_packet(c, &p, &test_ops, NULL, &test_addr, NULL, i * GW_PS_PER_US);
        p.flags = GW_PKT_FRAME;
        gw_capture_packet(c, &p, NULL, NULL, NULL, NULL, i * GW_PS_PER_US);
    }
    struct gw_pkt p = tcp_pkt(54, 77, 0);

    p.flags = GW_PKT_REVERSE;
    gw_capture_packet(c, &p, &test_ops, NULL, &test_addr, NULL, 21 * GW_PS_PER_US);
    close_or_die(c);
    for (size_t i = 0; i < GW_ARRAY_LEN(filters); i++) {
        char command[512], line[512];
        uint32_t lines = 0;
        int rc;
        FILE *f;

        snprintf(command, sizeof command, "timeout 100 tshark -n -o ip.check_checksum:TRUE "
                 "-o tcp.check_checksum:TRUE -o udp.check_checksum:TRUE -r %s %s 2>/dev/null", path,
                 filters[i]);
        f = popen(command, "r");
        CU_ASSERT_FATAL(f != NULL);
        while (fgets(line, sizeof line, f))
            lines++;
        rc = pclose(f);
        CHECK_ROW(rc == 0, "tshark: exit status %d", rc);
        CHECK_ROW(lines == want[i], "tshark %s: %u lines, want %u", filters[i], lines, want[i]);
    }
    dir_close();
}

static const struct gw_case cases[] = {
    { "magic, snap length and link type",    file_head },
    { "stamps round down and never go back", stamps },
    { "TCP headers of both directions",      tcp_headers },
    { "every length has right checksums",    all_lengths },
    { "test frames carry their number",      test_frames },
    { "snap length",                         snap_length },
    { "corrupt packets have flipped bits",   corrupt_packets_have_flipped_bits },
    { "filters see flipped bits",            filters_see_flipped_bits },
    { "filters select",                      filters_select },
    { "filters are refused",                 filters_are_refused },
    { "files that cannot be opened",         opening_fails },
    { "a full disk is told",                 disk_full },
    { "speed",                               speed },
    { "tshark agrees",                       tshark_agrees },
    { NULL, NULL },
};

extern const struct gw_suite suite_capture;
const struct gw_suite suite_capture = { "capture", cases };
