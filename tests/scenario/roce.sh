#!/usr/bin/env bash
# roce - RoCEv2 over whole networks: exact bytes under loss, captures, flow control, congestion control
#
# tshark and Scapy are asked where they are installed; the ICRC is recomputed by zlib in any case.
command -v sqlite3 >/dev/null || { echo "skipped: sqlite3 is not installed"; exit 77; }
set -uo pipefail
. "$GW_SRCDIR/tests/scenario/lib.sh"
SECONDS=0

# --- loss: every byte, once -----------------------------------------------------------------------
cat >loss.yaml <<'YAML'
schema: 1
name: loss
topology: {kind: two-site, hosts: 2, nic: {rate: 40gbit, delay: 1us}, wan: {rate: 100gbit, delay: 10us, loss: 0.1%}}
transport: {kind: rocev2, cc: none, timeout: 1ms}
jobs:
  - name: bulk
    traffic: flows
    flows: [{from: a0, to: b0, bytes: 40MB}, {from: a1, to: b1, bytes: 40MB}]
YAML
again() { row "$1" fct bulk retrans_pkts; }
for recovery in go-back-n selective; do
    for loss in 0.1% 1%; do
        n=$recovery-$loss
        run "$n" loss.yaml --set transport.recovery=$recovery --set topology.wan.loss=$loss
        same "$n: bytes delivered" "$(json "$n.json" flows delivered_bytes)" 80000000
        same "$n: flows that end" "$(row "$n" fct bulk finished)" 2
        within "$n: packets sent again" "$(again "$n")" 30 10000000
    done
done
within "selective repeat sends less again than go-back-N at 1 %: factor" \
    "$(awk -v a="$(again go-back-n-1%)" \
        -v b="$(again selective-1%)" 'BEGIN { print a / b }')" 5 10000

# --- captures -------------------------------------------------------------------------------------
run cap loss.yaml --set topology.wan.loss=1% --set 'jobs.bulk.flows.0.bytes=400000' \
    --set 'jobs.bulk.flows.1.bytes=400001' --pcap wan
pcap=$(find cap -name '*.pcap' | head -n 1)
python=python3                     # the one that knows Scapy, if there is one
/usr/bin/python3 -c 'import scapy' 2>/dev/null && python=/usr/bin/python3
if command -v "$python" >/dev/null; then
    "$python" "$src/tests/scenario/roce_icrc.py" "$pcap" >icrc
    read -r count wrong by <icrc
    within "frames whose ICRC was recomputed by $by" "$count" 1000 1000000
    same "of these wrong" "$wrong" 0
else
    echo "skip ICRC: python3 is not installed"
fi
if command -v tshark >/dev/null; then
    shark() { tshark -r "$pcap" "$@" 2>/dev/null; }
    all=$(shark | wc -l)
    same "frames that tshark takes for RRoCE" "$(shark -Y 'udp.port == 4791 && infiniband.bth' | wc -l)" "$all"
    same "malformed ones" "$(shark -Y _ws.malformed | wc -l)" 0
    within "first packets of RDMA WRITEs" "$(shark -Y 'infiniband.bth.opcode == 6' | wc -l)" 2 100
    within "ACKs" "$(shark -Y 'infiniband.bth.opcode == 17 && infiniband.aeth.syndrome.opcode == 0' | wc -l)" 500 10000
    within "NAKs: PSN sequence error" "$(shark -Y 'infiniband.aeth.syndrome.opcode == 3' | wc -l)" 1 1000
    same "length of the DMA in RETH" "$(shark -Y 'infiniband.reth' -T fields -e infiniband.reth.dmalen |
        sort -un | tr '\n' ' ')" "400000 400001 "
else
    echo "skip dissection: tshark is not installed"
fi

# --- flow control: nothing is lost -------------------------------------------------------------------
counter() { row_sql "$1" "SELECT ifnull($2, 0) FROM stat WHERE owner = 'pfc' AND name = '$3'"; }
row_sql() { sqlite3 "$1/records.sqlite" "$2"; }
cat >incast.yaml <<'YAML'
schema: 1
name: incast under flow control
topology: {kind: star, hosts: 3, link: {rate: 100gbit, delay: 1us}}
transport: {kind: rocev2, cc: none}
pfc: {priority: 3}
jobs:
  - {name: in, traffic: incast, to: h0, bytes: 1MB}
YAML
for n in 2 4 8 16 32 64; do
    run "in$n" incast.yaml --set topology.hosts=$((n + 1))
    same "incast of $n: bytes" "$(json "in$n.json" flows delivered_bytes)" "${n}000000"
    same "incast of $n: lost" "$(json "in$n.json" packets dropped)" 0
    within "incast of $n: pauses" "$(counter "in$n" 'sum(value)' pauses)" "$n" 100000
    within "incast of $n: most held by a link, of what it may hold" \
        "$(counter "in$n" 'max(value) / 537175.0' held_max_bytes)" 0.9 1
done
# Headroom: two frames, one of them on the wire, and what 100 Gbit/s carry while the pause frame waits
# for a frame (1538 bytes), is sent (84), flies, is obeyed (600 ns), and the last bits fly back.
need=$(awk 'BEGIN { printf "%d", 1514 + 1 + int((1538 + 84) + (1e-6 + 600e-9 + 1e-6) * 100e9 / 8) + 1538 }')
check() { "$gw" check incast.yaml -q --set "pfc.headroom=$1" 2>&1; }
same "headroom of $need bytes is enough" "$(check "$need"; echo $?)" 0
same "one byte less is refused with the number" "$(check $((need - 1)) | sed -nE 's/.*headroom ([0-9]+) is too short.* need at least ([0-9]+)$/\1 \2/p')" \
    "$((need - 1)) $need"
run tight incast.yaml --set topology.hosts=17 --set "pfc.headroom=$need"
same "with exactly that nothing is lost" "$(json tight.json packets dropped)" 0
run lossy incast.yaml --set topology.hosts=9 --set topology.link.loss=1% --set transport.timeout=1ms
same "pause frames that are lost as well cost time, no bytes" "$(json lossy.json flows delivered_bytes)" 8000000
run pause incast.yaml --set topology.hosts=3 --pcap h1-s0:s0
if command -v tshark >/dev/null; then
    same "pause frames in the capture of the paused link: priority 3, longest and none" \
        "$(tshark -r pause/*.pcap -Y 'macc.opcode == 0x0101' -T fields -e macc.cbfc.enbv -e macc.cbfc.pause_time.c3 2>/dev/null | sort -u | tr '\t\n' '  ')" \
        "0x0008 0 0x0008 65535 "
fi

# --- the watchdog -----------------------------------------------------------------------------------
{
    echo 'schema: 1'
    echo 'topology:'
    echo '  graph:'
    echo '    nodes: ['
    for i in 0 1 2 3 4; do echo "      h$i, {name: s$i, kind: switch},"; done
    echo '    ]'
    echo '    links:'
    for i in 0 1 2 3 4; do
        echo "      - {name: e$i, ends: [h$i, s$i], rate: 100gbit, delay: 1us}"
        echo "      - {name: r$i, ends: [s$i, s$(((i + 1) % 5))], rate: 40gbit, delay: 1us}"
    done
    echo 'transport: {kind: rocev2, cc: none}'
    echo 'pfc: {watchdog: 5ms}'
    echo 'jobs:'
    echo '  - name: ring'
    echo '    traffic: flows'
    echo '    flows:'
    for i in 0 1 2 3 4; do echo "      - {from: h$i, to: h$(((i + 2) % 5)), bytes: 100MB}"; done
} >dead.yaml
timeout 60 "$gw" run dead.yaml -q -o dead 2>dead.err
same "a cyclic buffer dependency ends the run with code" $? 3
same "and is told with its five ports" \
    "$(grep -o 'deadlock' dead.err) $(grep -oE 'r[0-4]:s[0-4]' dead.err | sort | tr '\n' ' ')" \
    "deadlock r0:s0 r1:s1 r2:s2 r3:s3 r4:s4 "
same "in the records, too" "$(counter dead 'count(*)' deadlocked)" \
    "$(sqlite3 dead/records.sqlite "SELECT count(*) FROM stat WHERE owner = 'pfc' AND name = 'storms'")"
run storm incast.yaml --set 'links={h0-s0: {rate: 10mbit}}' --set jobs.in.bytes=200000 --set pfc.watchdog=1ms \
    --set pfc.xoff=64000 --set transport.timeout=10s
within "a slow receiver is a pause storm, no deadlock" "$(counter storm 'sum(value)' storms)" 1 1000
same "its bytes" "$(json storm.json flows delivered_bytes)" 400000

# --- congestion control ------------------------------------------------------------------------------
flows() {   # flows N BYTES FROM TO: FROM0 to TO0 and so on; TO without a number: all to it
    local i list=
    for ((i = 0; i < $1; i++)); do list+="{from: $3$((i + ${5:-0})), to: $4, bytes: $2},"; done
    echo "[${list%,}]"
}
fair() {    # fair NAME N CC BYTES UNTIL [SAMPLES]: N flows into one port
    cat >"$1.yaml" <<YAML
schema: 1
name: $1
topology: {kind: star, hosts: $(($2 + 1)), link: {rate: 100gbit, delay: 1us}}
links: {"h0-s0:s0": {qdisc: {kind: ecn_threshold, kmin: 5kB, kmax: 200kB, pmax: 1%}}}
transport: {kind: rocev2, cc: $3}
pfc: {priority: 3}
records: {links: ${6:-0}}
until: $5
jobs:
  - {name: in, traffic: flows, flows: $(flows "$2" "$4" h h0 1)}
YAML
    run "$1" "$1.yaml"
}
jain() {    # of what the senders sent in the second half
    row_sql "$1" "WITH x AS (SELECT sum(sent_bytes) * 1.0 AS b FROM link_sample JOIN link USING (link)
        WHERE at_ps > 1e11 AND name LIKE 'h%-s0:h%' AND name NOT LIKE 'h0-%' GROUP BY link)
        SELECT sum(b) * sum(b) / (count(*) * sum(b * b)) FROM x"
}
gbps() { row_sql "$1" "SELECT sum(delivered_bytes) * 8 / $2 / 1e9 FROM flow"; }
for n in 2 4 16; do
    fair "dcqcn$n" "$n" dcqcn 10GB 200ms 10ms
    within "DCQCN, $n flows: Jain's index" "$(jain "dcqcn$n")" 0.95 1
    within "DCQCN, $n flows: goodput in Gbit/s" "$(gbps "dcqcn$n" 0.2)" 60 95
    same "DCQCN, $n flows: lost" "$(json "dcqcn$n.json" packets dropped)" 0
done
# Round trip 4.3 us, bandwidth-delay product 53 kB; a tenth is 5300 bytes.
for n in 2 8; do
    fair "hpcc$n" "$n" hpcc 5MB 1s 1us
    within "HPCC $n:1, p99 of the queue after ten round trips" "$(row_sql "hpcc$n" "
        WITH s AS (SELECT queue_bytes AS q, row_number() OVER (ORDER BY queue_bytes) AS r, count(*) OVER () AS c
            FROM link_sample WHERE link = (SELECT link FROM link_sample GROUP BY link ORDER BY max(queue_bytes) DESC LIMIT 1)
            AND at_ps > 43e6 AND at_ps < (SELECT min(end_ps) FROM flow))
        SELECT q FROM s WHERE r = CAST(c * 0.99 AS INTEGER)")" 0 5300
    same "HPCC $n:1, bytes" "$(json "hpcc$n.json" flows delivered_bytes)" $((n * 5000000))
done
for cc in timely swift; do
    fair "$cc" 8 $cc 20MB 1s
    same "$cc: bytes" "$(json "$cc.json" flows delivered_bytes)" 160000000
    same "$cc: lost" "$(json "$cc.json" packets dropped)" 0
    within "$cc: all done in s" "$(json "$cc.json" iterations mean_s)" 0.0128 0.1
done
echo "$SECONDS s"
finish
