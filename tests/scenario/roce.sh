#!/usr/bin/env bash
# roce - RoCEv2 over whole networks: exact bytes under loss, captures that others understand
#
# tshark and Scapy are asked where they are installed; the ICRC is recomputed by zlib in any case.
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
echo "$SECONDS s"
finish
