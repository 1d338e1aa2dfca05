#!/usr/bin/env bash
# Segmentation and receive offload: super-packets in captures, in disciplines that take them apart and in
# those that do not, in books and on wires; merged segments; what check says of both.
# shellcheck source=tests/scenario/lib.sh
. "${GW_SRCDIR:?names the source}/tests/scenario/lib.sh"
cat >net.yaml <<'YAML'
schema: 1
name: offload
seed: 5
topology:
  graph:
    nodes: [s, {name: r, kind: switch}, d]
    links:
      - {name: x, ends: [s, r], rate: 0}
      - {name: y, ends: [r, d], rate: 1gbit, delay: 2ms}
transport: {kind: tcp, cc: cubic, offload: yes}
jobs: [{name: f, traffic: flows, flows: [{from: s, to: d, bytes: 4MB}]}]
expect: ["flows.finished == 1", "flows.delivered_bytes == 4000000"]
YAML
{ cat net.yaml; echo 'capture: [{dev: "y:d"}]'; } >seen.yaml
with() { sed "s/^jobs:/tc: [\"qdisc add dev y:r root $1\"]\njobs:/" "$2"; }

# frames FILE: the longest one, and how many are longer than the MTU allows
frames() {
    tshark -r "$1" -Y 'tcp.len > 0' -T fields -e frame.len |
        awk '{ if ($1 > most) most = $1; n += $1 > 1514 } END { print most + 0, n + 0 }'
}

# ---- disciplines ---------------------------------------------------------------------------------
i=0
while IFS='|' read -r qdisc low high long_low long_high; do
    i=$((i + 1))
    with "$qdisc" seen.yaml >q$i.yaml
    run q$i q$i.yaml
    read -r most long <<<"$(frames q$i/y-d.pcap)"
    within "$qdisc: longest frame" "$most" "$low" "$high"
    within "$qdisc: super-packets" "$long" "$long_low" "$long_high"
done <<'ROWS'
pfifo limit 1000|5000|65226|50|2000
fq|5000|65226|50|2000
fq_codel|5000|65226|50|2000
netem delay 1ms|5000|65226|50|2000
htb|5000|65226|50|2000
tbf rate 500mbit burst 100kb limit 10mb|5000|65226|50|2000
tbf rate 500mbit burst 1600 limit 10mb|1514|1514|0|0
cake bandwidth 500mbit|1514|1514|0|0
cake bandwidth 500mbit no-split-gso|5000|65226|50|2000
ROWS
with "netem corrupt 20%" seen.yaml >bad.yaml
run bad bad.yaml
read -r most damaged <<<"$(tshark -r bad/y-d.pcap -o ip.check_checksum:TRUE -o tcp.check_checksum:TRUE \
    -Y 'ip.checksum.status == 0 || tcp.checksum.status == 0' -T fields -e frame.len |
    awk '{ if ($1 > most) most = $1 } END { print most + 0, NR }')"
within "netem corrupt 20%: longest damaged frame" "$most" 1000 1514
within "netem corrupt 20%: damaged frames" "$damaged" 20 2000
read -r most long <<<"$(frames bad/y-d.pcap)"
within "netem corrupt 20%: super-packets" "$long" 5 2000

# ---- captures ------------------------------------------------------------------------------------
run plain seen.yaml
same "IPv4 total length of all" "$(tshark -r plain/y-d.pcap -T fields -e frame.len -e ip.len |
    awk '$1 != $2 + 14' | wc -l)" 0
same "bad check sums" "$(tshark -r plain/y-d.pcap -o ip.check_checksum:TRUE -o tcp.check_checksum:TRUE \
    -Y 'ip.checksum.status == 0 || tcp.checksum.status == 0' | wc -l)" 0
same "payload of all" "$(tshark -r plain/y-d.pcap -T fields -e tcp.len |
    awk '{ n += $1 } END { print n }')" 4000000

# ---- books and times -----------------------------------------------------------------------------
with "pfifo limit 10000" net.yaml >whole.yaml
sed 's/, offload: yes//' whole.yaml >cut.yaml
run whole whole.yaml
run again whole.yaml
run cut cut.yaml
same "twice the same" "$("$gw" digest whole)" "$("$gw" digest again)"
sent() { "$gw" tc --run "$1" -s qdisc show dev y:r | awk '/Sent/ { print $2, $4 }'; }
read -r bytes pkts <<<"$(sent whole)"
read -r cut_bytes cut_pkts <<<"$(sent cut)"
within "tc -s: segments, as if cut" "$pkts" $((cut_pkts - 20)) $((cut_pkts + 20))
within "tc -s: bytes of their frames" "$bytes" $((cut_bytes - 1500)) $((cut_bytes + 1500))
fct() { sqlite3 "$1/records.sqlite" "select (max(end_ps) - min(start_ps)) / 1000000000.0 from flow"; }
within "time of the message, over that of single segments" \
    "$(awk "BEGIN { print $(fct whole) / $(fct cut) }")" 0.97 1.03
link() { sqlite3 "$1/records.sqlite" "select $3 from link_total join link using (link) where name = '$2'"; }
within "packets on the link, per packet of single segments" \
    "$(awk "BEGIN { print $(link whole y:r sent_pkts) / $(link cut y:r sent_pkts) }")" 0.02 0.3
within "bytes on its wire, over those of single segments" \
    "$(awk "BEGIN { print $(link whole y:r wire_bytes) / $(link cut y:r wire_bytes) }")" 0.999 1.001

# ---- merging -------------------------------------------------------------------------------------
sed 's/, offload: yes/, gro: yes, gro_flush_timeout: 20us/' whole.yaml >merged.yaml
run merged merged.yaml
within "ACKs with gro, of those without" \
    "$(awk "BEGIN { print $(link merged y:d sent_pkts) / $(link cut y:d sent_pkts) }")" 0.02 0.3

# ---- what check says -----------------------------------------------------------------------------
warned() { "$gw" check "$1" 2>&1 | grep -c "$2"; }
same "warned of what a loss takes" "$(warned whole.yaml 'one loss is dozens of segments')" 1
same "not warned without a discipline" "$(warned net.yaml 'dozens of segments')" 0
sed 's/, offload: yes/, gro: yes/' whole.yaml >instant.yaml
sed -i 's/rate: 0}/rate: 1gbit}/' instant.yaml
same "warned of gro that merges nothing" "$(warned instant.yaml 'merges nothing')" 1
same "not warned with a timeout" "$(warned merged.yaml 'merges nothing')" 0
sed 's/offload: yes/offload: yes, tso: no/' net.yaml >no-tso.yaml
same "refused without tso" "$(warned no-tso.yaml 'needs super-segments')" 1
{ sed 's/rate: 0}/rate: 1gbit}/' net.yaml; echo 'pfc: {priority: 3}'; } >pfc.yaml
same "refused with pfc" "$(warned pfc.yaml 'its headroom is for frames')" 1
finish
