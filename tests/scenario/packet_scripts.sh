#!/usr/bin/env bash
# packet_scripts - drop this packet, expect that: a table for the transports that are not TCP
#
# A message of 100 packets of 1024 bytes goes over one link of 10 Gbit/s and 100 us each way. A
# packet takes 0.9 us, all are out within 90 us, the first answer is there after 201 us: so whatever
# is lost at first, the sender has nothing left to send when it hears of it, but for fixed-window,
# whose 64 KiB go in two round trips. Without loss the message takes 187 us (fixed-window 332). What
# a loss costs then follows from the transport's own rules:
#
#   go-back-n      a gap: one NAK for it, all from the lost one on again, 200 us. Lost again: no
#                  second NAK before the gap is closed, so the timeout of 67.1 ms. A lost tail: that
#                  timeout. Held back by 20 us: a gap as good as any
#   selective      a gap: that packet again; a tail, or the same packet twice: three idle round trips
#                  of 201 us behind the last answer
#   ndp, uec       only trimmed packets are told at once; one that vanishes is late after 1 ms, seen
#                  by a timer that looks twice as often. Held back: nothing happens
#   fixed-window   a gap of three: that packet again; a tail: 1 ms, looked for twice as often
#   bounded-loss   the poll behind the message brings what is missing: 201 us each time
#   datagram, fec  nothing comes again; parity makes good two of a block of twelve
#
# ACKs are cumulative (or a packet's own): one that is lost costs nothing.
set -uo pipefail
. "$GW_SRCDIR/tests/scenario/lib.sh"
command -v sqlite3 >/dev/null || { echo "skipped: sqlite3 is not installed"; exit 77; }

# script TRANSPORT RULES: packets sent again, lost, timeouts, bytes that came, microseconds
script() {
    cat >s.yaml <<YAML
schema: 1
name: packet scripts
topology:
  graph:
    nodes: [{name: s, kind: host}, {name: d, kind: host}]
    links:
      - {name: l, ends: [s, d], rate: 10gbit, delay: 100us, framing: 0, channel: {kind: script, rules: "$2"}}
transport: {$1}
jobs: [{name: m, traffic: flows, flows: [{from: s, to: d, bytes: 102400}]}]
YAML
    rm -rf s.out
    timeout 60 "$gw" run s.yaml -q -o s.out >s.txt 2>&1 || { cat s.txt >&2; return; }
    sqlite3 -separator ' ' s.out/records.sqlite "select retrans_pkts, dropped_pkts, timeouts,
        delivered_bytes, (end_ps - start_ps) / 1e6 from flow"
}

gbn="kind: rocev2, cc: none, mtu: 1024"
sel="kind: rocev2, cc: none, mtu: 1024, recovery: selective"
ndp="kind: ndp, payload: 1024, window: 200"
uec="kind: uec, payload: 1024"
fix="kind: fixed-window, payload: 1024"
bnd="kind: bounded-loss, payload: 1024, share: 100%"
dgr="kind: datagram, payload: 1024"
fec="kind: fec, payload: 1024, k: 10, n: 12"

# transport | rules | again lost timeouts bytes | us, from and to
while IFS='|' read -r kind rules want time; do
    read -r again lost timeouts bytes us < <(script "${!kind}" "$rules")
    read -r low high <<<"$time"
    same "$kind \"$rules\": again, lost, timeouts, bytes" \
        "${again:-} ${lost:-} ${timeouts:-} ${bytes:-}" "$want"
    within "$kind \"$rules\": us" "${us:-}" "$low" "$high"
done <<'TABLE'
gbn||0 0 0 102400|186 188
gbn|d:10:1|90 1 0 102400|386 390
gbn|D:10:20:1|90 11 0 102400|395 400
gbn|d:99:1|1 1 1 102400|67280 67700
gbn|d:99:1 d:99:2|2 2 2 102400|134380 135200
gbn|d:10:1 d:10:2|180 2 1 102400|67280 67700
gbn|D:0:99:1|100 100 1 102400|67280 67700
gbn|u:10:1|0 0 0 102400|186 188
gbn|a:50:50|0 1 0 102400|186 188
gbn|c:10:1|0 0 0 102400|186 188
sel||0 0 0 102400|186 188
sel|d:10:1|1 1 0 102400|310 313
sel|D:10:20:1|11 11 0 102400|326 331
sel|d:99:1|1 1 1 102400|980 1000
sel|d:10:1 d:10:2|2 2 1 102400|900 930
sel|D:0:99:1|100 100 1 102400|600 2000
sel|r:10:1:20|0 0 0 102400|186 188
sel|a:50:50|0 1 0 102400|186 188
ndp||0 0 0 102400|186 188
ndp|d:10:1|1 1 1 102400|1100 1603
ndp|D:10:20:1|11 11 1 102400|1100 1613
ndp|d:99:1|1 1 1 102400|1100 1603
ndp|r:10:1:20|0 0 0 102400|186 188
ndp|a:50:50|0 1 0 102400|186 188
uec||0 0 0 102400|186 188
uec|d:10:1|1 1 1 102400|1100 1603
uec|D:10:20:1|11 11 1 102400|1100 1613
uec|d:99:1|1 1 1 102400|1100 1603
uec|r:10:1:20|0 0 0 102400|186 188
uec|a:50:50|0 1 0 102400|186 188
fix||0 0 0 102400|330 334
fix|d:10:1|1 1 0 102400|330 336
fix|D:10:20:1|11 11 0 102400|340 352
fix|d:99:1|1 1 1 102400|1100 1603
fix|a:50:50|0 1 0 102400|330 334
bnd||0 0 0 102400|186 188
bnd|d:10:1|1 1 0 102400|386 389
bnd|d:99:1|1 1 0 102400|386 389
bnd|d:99:1 d:99:2|2 2 0 102400|587 590
bnd|D:0:99:1|100 100 0 102400|470 476
bnd|r:10:1:20|0 0 0 102400|186 188
dgr|d:10:1|0 1 0 101376|186 188
dgr|D:10:20:1|0 11 0 91136|186 188
dgr|f:1|0 1 0 102400|186 188
fec|d:10:1|0 1 0 102400|201 205
fec|D:10:11:1|0 2 0 102400|201 205
fec|D:10:12:1|0 3 0 99328|201 205
TABLE

# The log of a device has a row for each packet, of transports too: the 190 of a go-back-n, one lost;
# with TCP all that came, was lost, was copied, each once.
script "$gbn" d:10:1 >/dev/null
sed 's/^jobs/log: [{dev: "l:s", kind: packets}, {dev: "l:d", kind: packets}]\n&/' s.yaml >log.yaml
timeout 60 "$gw" run log.yaml -q -o log.out >/dev/null
count() { awk -F, -v what="$2" -v why="$3" 'NR > 1 && $10 == what && $9 == why { n++ } END { print n + 0 }' "$1"; }
same "log: data that came" "$(count log.out/packets-l-s.csv data '')" 189
same "log: data that was lost" "$(count log.out/packets-l-s.csv data loss)" 1
same "log: the lost one" "$(awk -F, '$9 == "loss" { print $3, $6 }' log.out/packets-l-s.csv)" "10 "
same "log: ACKs" "$(count log.out/packets-l-d.csv ack '')" \
    "$(sqlite3 log.out/records.sqlite "select sent_pkts from link_total join link using(link) where name = 'l:d'")"
cat >late.yaml <<'YAML'
schema: 1
seed: 2
topology: {graph: {nodes: [a, r, b], hosts: [a, b], links: [{name: x, ends: [a, r], rate: 1gbit, delay: 10us}, {name: y, ends: [r, b], rate: 100mbit, delay: 1ms}]}}
tc: ["qdisc add dev x:a root netem delay 5ms 4ms duplicate 50%"]
transport: {kind: rocev2, cc: none}
log: [{dev: "y:r", kind: packets}]
jobs: [{name: m, traffic: flows, flows: [{from: a, to: b, bytes: 20kB}, {from: a, to: b, bytes: 20kB, start: 100ms}]}]
YAML
timeout 60 "$gw" run late.yaml -q -o late.out >/dev/null
same "log: packets of a flow that is over have its job and say what they are" \
    "$(awk -F, 'NR > 1 { print $1, $10 }' late.out/packets-y-r.csv | sort -u)" "0 data"
cat >copies.yaml <<'YAML'
schema: 1
seed: 5
topology: {graph: {nodes: [a, r, b], hosts: [a, b], links: [{name: x, ends: [a, r], rate: 1gbit, delay: 10us}, {name: y, ends: [r, b], rate: 100mbit, delay: 1ms, loss: 1%}]}}
tc: ["qdisc add dev y:r root netem delay 5ms 1ms loss 2% duplicate 5% limit 30"]
transport: {kind: tcp, cc: cubic}
log: [{dev: "y:r", kind: packets}]
jobs: [{name: m, traffic: flows, flows: [{from: a, to: b, bytes: 2MB}, {from: a, to: b, bytes: 2MB}]}]
YAML
timeout 60 "$gw" run copies.yaml -q -o copies.out >/dev/null
read -r sent came lost < <(awk -F, 'NR > 1 { n++; c += $6 != ""; l += $9 != ""; bad += ($6 != "") == ($9 != "") }
    END { print n - bad, c, l }' copies.out/packets-y-r.csv)
same "log with copies: each row came or was lost" "$sent" $((came + lost))
same "log with copies: what came" "$came" \
    "$(sqlite3 copies.out/records.sqlite "select delivered_pkts from link_total join link using(link) where name = 'y:r'")"
same "log with copies: what was lost" "$lost" \
    "$(sqlite3 copies.out/records.sqlite "select sum(pkts) from link_drop join link using(link) where name = 'y:r'")"
finish
