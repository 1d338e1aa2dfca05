#!/usr/bin/env bash
# oracles - fixed windows and LogGP against their formulas
set -uo pipefail
. "$GW_SRCDIR/tests/scenario/lib.sh"
calc() { awk "BEGIN { printf \"%.12g\", $1 }"; }
near() { within "$1" "$2" "$(calc "($3) * (1 - $4)")" "$(calc "($3) * (1 + $4)")"; }    # WHAT GOT WANT SHARE
fct() { json "$1.json" flows fct_p50_s; }

# --- fixed window: one link of 10 Gbit/s, 5 ms each way, packets of 1000 bytes (1054 on the wire) --
cat >one.yaml <<'YAML'
schema: 1
name: one
seed: 3
topology:
  graph:
    nodes: [a, b]
    links: [{name: v, ends: [a, b], rate: 10gbit, delay: 5ms, framing: 0}]
transport: {kind: fixed-window, payload: 1000}
jobs: [{name: f, traffic: flows, flows: [{from: a, to: b, bytes: 10MB}]}]
YAML
# Below the bandwidth-delay product, W a round trip: 10 MB / W rounds of 10 ms and what a packet and
# its ACK take; the last round needs half a round trip only.
for w in 10000 100000 1000000; do
    run "w$w" one.yaml --set "transport.window=$w"
    near "window $w: window / RTT" "$(fct "w$w")" \
        "(1e7 / $w - 1) * (0.01 + (1054 + 54) * 8e-10) + 0.005 + $w / 1000 * 1054 * 8e-10" 0.002
done
run wide one.yaml --set transport.window=100MB
near "window above BDP: the link's rate" "$(fct wide)" "1e4 * 1054 * 8e-10 + 0.005" 0.001
# A loss halves nothing: the window goes on, and what is lost comes one round trip later.
run lossy one.yaml --set transport.window=100000 --set 'links={v: {loss: 5%}}'
near "window 100000, 5 % loss each way: 1 / (1 - p) more" "$(fct lossy)" "1e7 / 1e5 * 0.01 / 0.95" 0.08
same "its bytes" "$(json lossy.json flows delivered_bytes)" 10000000

# --- LogGP: o 3 us, g 2 us, G 1 ns a byte, delays of 5 us a link ----------------------------------
cat >star.yaml <<'YAML'
schema: 1
name: star
topology: {kind: star, hosts: 9, link: {rate: 100gbit, delay: 5us}}
transport: {kind: loggp, o: 3us, g: 2us, G: 1ns}
jobs: []
YAML
star() {    # star NAME JOBS ARGS...
    sed "s/^jobs:.*/jobs: [$2]/" star.yaml >"$1.yaml"
    run "$1" "$1.yaml" "${@:3}"
}
flow='traffic: flows, flows'
star lone "{name: f, $flow: [{from: h0, to: h1, bytes: 10001}]}"
near "LogGP, a lone message: 2o + (k-1)G + L" "$(fct lone)" "2 * 3e-6 + 10000e-9 + 10e-6" 1e-9
# Eight at once from one host: each enters (k-1)G + g behind the one before.
list=$(for i in 1 2 3 4 5 6 7 8; do printf '{from: h0, to: h%d, bytes: 10001}, ' $i; done)
star many "{name: f, $flow: [${list%, }]}"
near "LogGP, eight from one host: last" "$(json many.json flows fct_p99_s)" \
    "3e-6 + 7 * (10e-6 + 2e-6) + 10e-6 + 10e-6 + 3e-6" 0.01
# Eight to one host: they wait for its link.
star incast "{name: f, traffic: incast, to: h0, bytes: 10001}"
near "LogGP, eight to one host: last" "$(json incast.json iterations mean_s)" \
    "3e-6 + 10e-6 + 8 * 10e-6 + 7 * 2e-6 + 3e-6" 1e-9
# Short messages: the gap rules, then the overhead.
list=$(for i in 1 2 3 4 5 6 7 8; do printf '{from: h0, to: h%d, bytes: 1}, ' $i; done)
star gaps "{name: f, $flow: [${list%, }]}" --set transport.g=4us
near "LogGP, eight of one byte, g above o: last" "$(json gaps.json iterations mean_s)" "3e-6 + 7 * 4e-6 + 10e-6 + 3e-6" 1e-9
star overheads "{name: f, $flow: [${list%, }]}"
near "LogGP, eight of one byte, o above g: last" "$(json overheads.json iterations mean_s)" \
    "8 * 3e-6 + 10e-6 + 3e-6" 1e-9
# Without G the narrowest link tells: 80 ps a byte. L adds to the delays.
star link "{name: f, $flow: [{from: h0, to: h1, bytes: 1000001}]}" --set transport.G=0 --set transport.L=7us
near "LogGP, G of the link, L beyond the delays" "$(fct link)" "2 * 3e-6 + 1e6 * 80e-12 + 10e-6 + 7e-6" 1e-9
# A ring all-reduce of eight hosts, 8 MB: 14 steps of 1 MB, each as long as a lone message.
cat >ring.yaml <<'YAML'
schema: 1
name: ring
topology: {kind: star, hosts: 8, link: {rate: 100gbit, delay: 5us}}
transport: {kind: loggp, o: 3us, g: 2us, G: 1ns}
jobs: [{name: r, traffic: collective, op: all-reduce, algorithm: ring, bytes: 8000000, ranks: all, reduce_cost: none}]
YAML
"$gw" help traffic collective >help
grep -q '^  algorithm:' help || sed -i 's/algorithm: ring/collective: ring/' ring.yaml
run ring ring.yaml
near "LogGP, ring all-reduce: 14 (2o + (k-1)G + L)" "$(json ring.json iterations mean_s)" \
    "14 * (6e-6 + 999999e-9 + 10e-6)" 0.001
finish
