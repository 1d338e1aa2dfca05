#!/usr/bin/env python3
"""roce_icrc.py PCAP - recomputes the invariant CRC of every RoCEv2 frame of a capture

By Scapy's RoCE layer if python3-scapy is installed, and by a few lines of its own with zlib's CRC
in any case. Prints "FRAMES WRONG BY", and exits 1 if one is wrong.
"""
import struct
import sys
import zlib

try:
    import logging
    logging.getLogger("scapy").setLevel(logging.ERROR)
    from scapy.contrib.roce import BTH
    from scapy.layers.l2 import Ether
except ImportError:
    BTH = None


def frames(path):
    with open(path, "rb") as f:
        magic = struct.unpack("<I", f.read(4))[0]
        assert magic == 0xa1b23c4d, "not a nanosecond pcap file of this machine's byte order"
        f.read(20)
        while True:
            head = f.read(16)
            if len(head) < 16:
                return
            caplen, length = struct.unpack("<IIII", head)[2:]
            data = f.read(caplen)
            if caplen == length:
                yield data


def own(frame):
    b = bytearray(frame[14:-4])
    for at in (1, 8, 10, 11, 26, 27, 32):
        b[at] = 0xff
    return struct.pack("<I", zlib.crc32(b"\xff" * 8 + bytes(b)))


def scapy(frame):
    packet = Ether(frame)
    return packet[BTH].compute_icrc(bytes(packet[BTH]))


def main():
    count = wrong = 0
    for frame in frames(sys.argv[1]):
        if frame[12:14] != b"\x08\x00" or frame[23] != 17 or frame[36:38] != b"\x12\xb7":
            continue
        count += 1
        good = own(frame) == frame[-4:]
        if BTH is not None:
            good = good and scapy(frame) == frame[-4:]
        wrong += not good
    print(count, wrong, "scapy" if BTH is not None else "zlib")
    return 1 if wrong or not count else 0


if __name__ == "__main__":
    sys.exit(main())
