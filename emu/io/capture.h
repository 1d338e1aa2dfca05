/*
 * capture.h - simulated packets as nanosecond classic pcap files with real headers
 *
 * One capture is one device (one end of a link) and one file. Packets get Ethernet, IPv4 and L4
 * headers with right checksums; payload bytes are zero. The BPF filter is compiled by libpcap and
 * run on the full packet. io knows packets, not the network: who calls says which device.
 */
#ifndef GW_IO_CAPTURE_H
#define GW_IO_CAPTURE_H

#include <gradwire/gradwire.h>

struct gw_capture;

struct gw_capture_conf {
    const char *path;            /* must not exist                                             */
    const char *filter;          /* NULL: all                                                  */
    uint32_t    snap_bytes;      /* 0: 262144                                                  */
    uint64_t    epoch_s;         /* time base added to simulated time, default 0               */
    uint64_t    max_packets;     /* 0: no end; else the file ends behind that many             */
};

/* @where ("file:line:col" or "--pcap") goes in front of sentences about the filter. Host names in
 * filters never go to DNS: a word that is not an address is refused. */
GW_API struct gw_capture *gw_capture_open(const struct gw_capture_conf *c, const char *where,
                                          struct gw_error *err);
/* Would gw_capture_open() take this filter? Opens no file. @filter NULL: yes. */
GW_API enum gw_status gw_capture_check_filter(const char *filter, const char *where,
                                              struct gw_error *err);
/* One packet at @now_ps, seen leaving or entering the device. @ops encodes the L4 header (NULL:
 * a UDP test frame), @ext its extension. @addr as the flow's sender sees it; packets with
 * GW_PKT_REVERSE get its addresses swapped. NULL: addresses are made from the node numbers, as MAC
 * addresses always are. @flips of a corrupted packet (NULL: none) are wrong in the file, too. Write
 * failures are kept for gw_capture_close(). */
GW_API void gw_capture_packet(struct gw_capture *c, const struct gw_pkt *p,
                              const struct gw_transport_ops *ops, const void *ext,
                              const struct gw_flow_addr *addr, const struct gw_flips *flips,
                              uint64_t now_ps);
/* Flushes and closes; tells the first write failure. */
GW_API enum gw_status gw_capture_close(struct gw_capture *c, uint64_t *packets,
                                       struct gw_error *err);

#endif
