#!/usr/bin/env bash
# cases - reports of other tools' users as tests: collectives beyond 4 GiB, captures in causal order
set -uo pipefail
. "$GW_SRCDIR/tests/scenario/lib.sh"

# --- S6: 4 GPUs on 2 hosts, tensor group inside, data group across ------------------------------
cat >s6.gml <<'GML'
graph [
  node [ id 0 label "h0g0" kind "host" ]
  node [ id 1 label "h0g1" kind "host" ]
  node [ id 2 label "h1g0" kind "host" ]
  node [ id 3 label "h1g1" kind "host" ]
  node [ id 4 label "s" kind "switch" ]
  edge [ source 0 target 1 rate "2880gbit" delay "100ns" ]
  edge [ source 2 target 3 rate "2880gbit" delay "100ns" ]
  edge [ source 0 target 4 rate "100gbit" delay "1us" ]
  edge [ source 1 target 4 rate "100gbit" delay "1us" ]
  edge [ source 2 target 4 rate "100gbit" delay "1us" ]
  edge [ source 3 target 4 rate "100gbit" delay "1us" ]
]
GML
cat >s6.yaml <<'YAML'
schema: 1
name: s6
topology: {file: s6.gml}
transport: {kind: tcp, cc: cubic}
jobs:
  - name: c
    traffic: collective
    run:
      - {op: all-gather, bytes: 6467616768, groups: [[h0g0, h1g0], [h0g1, h1g1]]}
      - {op: reduce-scatter, bytes: 12935233536, groups: [[h0g0, h1g0], [h0g1, h1g1]]}
YAML
run s6 s6.yaml
sql() { sqlite3 "$1/records.sqlite" "$2"; }
same "S6: bytes of every rank, all-gather" \
    "$(sql s6 "select group_concat(b) from (select sum(bytes) b from message where collective in (1, 2) group by src_rank)")" \
    3233808384,3233808384,3233808384,3233808384
same "S6: bytes of every rank, reduce-scatter" \
    "$(sql s6 "select group_concat(b) from (select sum(bytes) b from message where collective in (3, 4) group by src_rank)")" \
    6467616768,6467616768,6467616768,6467616768
same "S6: delivered" "$(json s6.json flows delivered_bytes)" 38805700608
# Header overhead: 1538 on the wire for 1448, and 45 bytes of ACKs a segment on the same link.
for row in all-gather:0.2587 reduce-scatter:0.5174; do
    t=${row#*:}
    within "S6: time of the ${row%:*}, seconds" \
        "$(sql s6 "select max(end_ps - start_ps) / 1e12 from collective where name like '${row%:*}%'")" \
        "$t" "$(awk -v t="$t" 'BEGIN { print t * 1583 / 1448 * 1.05 }')"
done
rm -rf s6

# --- S2: three clients, 500 ms one way, capture at every host ------------------------------------
cat >s2.yaml <<'YAML'
schema: 1
name: s2
topology: {kind: star, hosts: 4, link: {rate: 100mbit, delay: 250ms}}
transport: {kind: tcp, cc: cubic}
jobs:
  - {name: c, traffic: incast, to: h0, from: [h1, h2, h3], bytes: 1MB, start: 5s}
capture: [{dev: "h0-s0:h0"}, {dev: "h1-s0:h1"}, {dev: "h2-s0:h2"}, {dev: "h3-s0:h3"}]
YAML
run s2 s2.yaml
run s2b s2.yaml
for f in s2/*.pcap; do
    cmp -s "$f" "s2b/${f#s2/}"
    same "S2: ${f#s2/}: two runs, identical bytes" $? 0
done
same "S2: captures" "$(ls s2/*.pcap | wc -l)" 4
if command -v tshark >/dev/null; then
    shark() { timeout 60 tshark -r "$1" -o ip.check_checksum:TRUE -o tcp.check_checksum:TRUE -o tcp.relative_sequence_numbers:TRUE "${@:2}" 2>/dev/null; }
    for f in s2/*.pcap; do
        n=${f#s2/}
        same "S2: $n: malformed packets, bad checksums" \
            "$(shark "$f" -Y '_ws.malformed || ip.checksum.status == 0 || tcp.checksum.status == 0' | wc -l)" 0
        # 4194304 = note, 6291456 = warning, 8388608 = error
        same "S2: $n: expert warnings and errors" \
            "$(shark "$f" -Y '_ws.expert.severity >= 6291456' | wc -l)" 0
        same "S2: $n: stamps never go back" \
            "$(shark "$f" -T fields -e frame.time_epoch | awk '$1 + 0 < last { n++ } { last = $1 + 0 } END { print n + 0 }')" 0
        same "S2: $n: first stamp is simulated time" \
            "$(shark "$f" -c 1 -T fields -e frame.time_epoch | cut -d. -f1)" 5
    done
    # The SYN that arrives stands before the SYN/ACK that it causes, at the same stamp.
    same "S2: server: SYN before its SYN/ACK" "$(shark s2/h0-s0-h0.pcap -Y 'tcp.flags.syn == 1' \
        -T fields -e tcp.stream -e tcp.flags.ack -e frame.time_epoch |
        awk '!$2 && !($1 in t) { t[$1] = $3 } $2 && !($1 in a) { a[$1] = 1; if (!($1 in t) || t[$1] != $3) bad++ } END { print bad + 0, length(a) }')" "0 3"
    within "S2: client: SYN to SYN/ACK, seconds" "$(shark s2/h1-s0-h1.pcap -Y 'tcp.flags.syn == 1' \
        -T fields -e tcp.flags.ack -e frame.time_epoch | awk '!$1 && !s { s = $2 } $1 && !a { a = $2 } END { printf "%.9f", a - s }')" 1 1.0001
else
    echo "skip: tshark is not installed, the captures' contents were not looked at"
fi
# --- shared buffer: with alpha 1, one full port holds half of the memory, two a third each ---------
cat >buffer.yaml <<'YAML'
schema: 1
name: buffer
topology: {kind: star, hosts: 6, link: {rate: 10gbit, delay: 1us}}
buffer: {size: 900kB, alpha: 1}
transport: {kind: ideal}
jobs:
  - {name: a, traffic: frames, from: h1, to: h0, size: 1000, rate: 8gbit, count: 20000}
  - {name: b, traffic: frames, from: h2, to: h0, size: 1000, rate: 8gbit, count: 20000}
  - {name: c, traffic: frames, from: h3, to: h5, size: 1000, rate: 8gbit, count: 20000, start: 30ms}
  - {name: d, traffic: frames, from: h4, to: h5, size: 1000, rate: 8gbit, count: 20000, start: 30ms}
YAML
run alone buffer.yaml
run both buffer.yaml --set jobs.c.start=0 --set jobs.d.start=0
run small buffer.yaml --set buffer.alpha=0.5
within "buffer: one port, alpha 1, bytes" "$(row alone links h0-s0:s0 queue_max_bytes)" 448000 450000
within "buffer: two ports, alpha 1, first alone for a moment, bytes" "$(row both links h5-s0:s0 queue_max_bytes)" 298000 301500
within "buffer: one port, alpha 0.5, bytes" "$(row small links h0-s0:s0 queue_max_bytes)" 298000 300000
same "buffer: drops have their own reason" "$(sql alone "select group_concat(distinct reason) from link_drop")" shared_buffer

finish
