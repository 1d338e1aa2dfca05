#!/usr/bin/env bash
# tcp_formulas - TCP against the formulas of its papers
#
# One flow over a link of 40 Gbit/s, so that nothing but loss or the window holds it back. Goodput is
# taken over the second half of a run, as a window in segments of 1448 bytes.
#
#   Reno     1.31 MSS / (RTT sqrt(p)) with independent loss, 1.22 with every n-th packet lost (Mathis
#            et al. 1997); at p small enough that timeouts do not count
#   CUBIC    RFC 9438, section 5.1: W = (C (3 + beta) / (4 (1 - beta)))^(1/4) (RTT / p)^(3/4) with
#            every n-th packet lost, where its own function is ahead of AIMD's. Windows are whole
#            segments: around K there are two or three seconds in which the function stands still,
#            and strictly periodic loss may settle anywhere in them. So only windows from a thousand
#            segments on come within 10 %; at 200 segments it is 20 %, in the kernel's arithmetic too
#   window   goodput = window / RTT
#   a loss   found by duplicate ACKs, ends its recovery within one round trip of the retransmission
set -uo pipefail
. "$GW_SRCDIR/tests/scenario/lib.sh"
command -v sqlite3 >/dev/null || { echo "skipped: sqlite3 is not installed"; exit 77; }
SECONDS=0

# study CC DELAY_MS UNTIL_S LOSS [OPTIONS]: LOSS is a rate, or periodic:N
study() {
    local loss="loss: 0%"
    case $4 in
    periodic:*) loss="channel: {kind: periodic, every: ${4#*:}, first: 2000}" ;;
    0) ;;
    *) loss="channel: {kind: bernoulli, loss: $4%}" ;;
    esac
    # Loss on the first link, which ACKs do not suffer: they come back by the second one.
    cat <<YAML
schema: 1
seed: 5
until: $3s
topology:
  graph:
    nodes: [s, r, d]
    links:
      - {name: a, ends: [s, r], rate: 0, delay: 0, $loss}
      - {name: b, ends: [r, d], rate: 40gbit, delay: $2ms}
qdisc: [{dev: "b:r", kind: pfifo, limit: 1000000}]
transport: {kind: tcp, cc: $1${5:+, $5}}
jobs: [{name: f, traffic: flows, flows: [{from: s, to: d, bytes: 100TB}]}]
YAML
}

# segments_per_rtt STUDY...: goodput as a window, in segments; the first half is a run of its own
segments_per_rtt() {
    local part
    study "$@" >s.yaml
    for part in 0.5 1; do
        rm -rf s.out
        timeout 300 "$gw" run s.yaml --set "until=$(awk -v s="$3" -v p=$part 'BEGIN { print s * p }')s" \
            -q -o s.out >/dev/null
        sqlite3 s.out/records.sqlite "select delivered_bytes from flow"
    done | awk -v s="$3" -v d="$2" '{ a = b; b = $1 } END { print (b - a) / 1448 / (s / 2) * d * 2e-3 }'
}

ratio() { awk -v g="$1" -v w="$2" 'BEGIN { printf "%.4f", g / w }'; }

for row in "0.1 10 400" "0.03 10 1000" "0.2 40 1200"; do
    read -r p delay s <<<"$row"
    want=$(awk -v p="$p" 'BEGIN { print 1.31 / sqrt(p / 100) }')
    within "reno, independent loss of $p %: to 1.31 / sqrt(p)" \
        "$(ratio "$(segments_per_rtt reno "$delay" "$s" "$p")" "$want")" 0.9 1.1
done
for row in "1000 10 100" "3000 10 200" "500 40 200"; do
    read -r n delay s <<<"$row"
    want=$(awk -v n="$n" 'BEGIN { print 1.22 * sqrt(n) }')
    within "reno, every ${n}th packet lost: to 1.22 / sqrt(p)" \
        "$(ratio "$(segments_per_rtt reno "$delay" "$s" "periodic:$n")" "$want")" 0.9 1.1
done
for row in "100000 100 900" "30000 200 1200"; do
    read -r n delay s <<<"$row"
    want=$(awk -v n="$n" -v r="$delay" 'BEGIN { print (0.4 * 3.7 / 1.2) ^ 0.25 * (2e-3 * r * n) ^ 0.75 }')
    within "cubic, every ${n}th packet lost, $((2 * delay)) ms: to RFC 9438's response function" \
        "$(ratio "$(segments_per_rtt cubic "$delay" "$s" "periodic:$n" "hystart: no")" "$want")" 0.9 1.1
done
for row in "20 5" "100 25" "1000 50"; do
    read -r segs delay <<<"$row"
    within "window of $segs segments, $((2 * delay)) ms: goodput to window / RTT" \
        "$(ratio "$(segments_per_rtt reno "$delay" 40 0 "window: $((segs * 1448))")" "$segs")" \
        0.99 1.01
done

# The sender's log: from the retransmission to the ACK that ends recovery.
for cc in reno cubic; do
    study "$cc" 20 3 0 "window: 72400" |
        sed 's/rate: 40gbit/rate: 1gbit/; s/loss: 0%/channel: {kind: script, rules: "d:1000:1"}/' >one.yaml
    echo 'log: [{job: f, kind: flows}]' >>one.yaml
    rm -rf one.out
    "$gw" run one.yaml -q -o one.out >/dev/null
    within "$cc, one loss: round trips from the retransmission to the end of recovery" "$(awk -F, '
        NR == 1 { for (i = 1; i <= NF; i++) c[$i] = i; next }
        $c["dir"] == "out" && $c["offset"] == 1000 * 1448 { n++; if (n == 2) sent = $1 }
        n == 2 && $c["state"] == "open" && !end { end = $1 }
        END { if (end) printf "%.4f", (end - sent) / 40e9 }' one.out/flows-f.csv)" 0.99 1.01
    same "$cc, one loss: retransmissions and timeouts" \
        "$(sqlite3 one.out/records.sqlite 'select retrans_pkts, timeouts from flow')" "1|0"
done
echo "$SECONDS s"
finish
