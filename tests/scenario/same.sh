#!/usr/bin/env bash
# same - what must not depend on anything: digests; ports by arithmetic, or whose turns are found in
# hindsight, against queued ports
set -uo pipefail
. "$GW_SRCDIR/tests/scenario/lib.sh"

cat >lossy.yaml <<'YAML'
schema: 1
name: lossy
seed: 3
topology: {kind: two-site, hosts: 3, nic: {rate: 10gbit, delay: 1us}, wan: {rate: 1gbit, delay: 2ms, loss: 0.1%}}
transport: {kind: tcp, cc: cubic, streams: 2}
jobs:
  - {name: train, traffic: data-parallel, model: resnet18, ranks: all, collective: ring, iterations: 2, jitter: 5%}
  - {name: probe, traffic: frames, from: a0, to: b0, arrivals: poisson, size: 400, interval: 1ms, count: 500}
until: 800ms
YAML
run one lossy.yaml
run two lossy.yaml
digest=$("$gw" digest one)
same "the same study twice" "$("$gw" digest two)" "$digest"
run reversed lossy.yaml --reverse-plugins
same "plugins registered in reverse" "$("$gw" digest reversed)" "$digest"
run again one/study.yaml
same "the study that the run saved" "$("$gw" digest again)" "$digest"
run real lossy.yaml --clock real
same "real clock against virtual" "$("$gw" digest real)" "$digest"
run other lossy.yaml --seed 4
[[ $("$gw" digest other) != "$digest" ]]
same "another seed differs" $? 0

# A capture makes its port run queued; what happens on the link must not change. Frames at irregular
# times through a short FIFO, twice.
cat >fifo.yaml <<'YAML'
schema: 1
name: fifo
topology: {graph: {nodes: [a, s, b], hosts: [a, b], links: [{name: in, ends: [a, s], rate: 0, delay: 3us}, {name: out, ends: [s, b], rate: 30mbit, delay: 1ms}]}}
qdisc: [{dev: "out:s", kind: KIND, limit: LIMIT}]
transport: {kind: ideal}
jobs:
  - {name: p, traffic: frames, from: a, to: b, arrivals: poisson, generators: [
      {flow: 0, size: 1514, interval: 700us, start: 0s, count: 4000},
      {flow: 1, size: 60, interval: 100us, start: 1ms, count: 20000, burst: 3},
      {flow: 2, size: 900, interval: 1100us, start: 2ms, count: 2000}]}
log: [{dev: "out:s", kind: packets}]
YAML
for q in pfifo:7 pfifo:1 bfifo:4000; do
    sed "s/KIND/${q%:*}/; s/LIMIT/${q#*:}/" fifo.yaml >f.yaml
    rm -rf a b c
    run a f.yaml
    run b f.yaml --pcap out:s
    run c a/study.yaml
    same "$q of the saved study" "$("$gw" digest c)" "$("$gw" digest a)"
    same "$q by arithmetic and queued" "$(cksum <a/packets-out-s.csv)" "$(cksum <b/packets-out-s.csv)"
    within "$q drops something" "$(json a.json packets dropped)" 1 25000
done

# Nor does anything change where a port finds turns in hindsight: packets of one size in step on a
# fabric, so that many of its events fall on one instant, cut off in the middle, with samples. Ports
# that a timed event will change use a timer.
at_switches() {   # KEY ENTRY: the run b of turns.yaml with that list for the ports of switches, @ in it
    {
        cat turns.yaml
        echo "$1:"
        sqlite3 a/records.sqlite "SELECT l.name FROM link l JOIN node ON node = from_node
            WHERE NOT is_host" | while read -r dev; do
            echo "  - ${2//@/$dev}"
        done
    } >more.yaml
    rm -rf b
    run b more.yaml
}
hindsight() {   # NAME TRANSPORT QDISC
    printf '%s\n' 'schema: 1' 'name: turns' 'seed: 3' 'until: 300us' 'route: {mode: spray}' \
        'topology: {kind: fat-tree, k: 4, link: {rate: 100gbit, delay: 1us}, mtu: 1500}' \
        'records: {links: 10us}' "transport: {$2}" "qdisc: [{dev: switches, $3}]" 'jobs:' \
        '  - {name: perm, traffic: permutation, bytes: 3MB}' \
        '  - {name: in, traffic: incast, to: h2, from: [h0, h1, h5, h9, h12], bytes: 500kB}' >turns.yaml
    rm -rf a
    run a turns.yaml
    at_switches events '{at: 1ms, tc: "qdisc del dev @ root"}'
    for d in a b; do
        for t in flow link_total link_sample stat path; do
            sqlite3 "$d/records.sqlite" "SELECT * FROM $t"
        done >"$d.rows"
    done
    same "$1: turns in hindsight and by a timer" "$(cksum <a.rows)" "$(cksum <b.rows)"
    within "$1: events a packet-hop" \
        "$(sqlite3 a/records.sqlite "SELECT 1.0 * (SELECT value FROM run WHERE key = 'events') /
            (SELECT value FROM run WHERE key = 'hops')")" 1 1.1
    within "$1: events a packet-hop with a timer" \
        "$(sqlite3 b/records.sqlite "SELECT 1.0 * (SELECT value FROM run WHERE key = 'events') /
            (SELECT value FROM run WHERE key = 'hops')")" 1.2 2
}
dctcp='kind: tcp, cc: dctcp'
hindsight ndp 'kind: ndp' 'kind: ndp'
hindsight ecn_threshold "$dctcp" 'kind: ecn_threshold, kmin: 5kB, kmax: 80kB, pmax: 50%'
hindsight red "$dctcp" 'kind: red, limit: 400000, min: 30000, max: 90000, avpkt: 1000, ecn: true'
hindsight spq_dwrr "$dctcp" 'kind: spq_dwrr'
hindsight pfifo_head_drop "$dctcp" 'kind: pfifo_head_drop, limit: 20'
hindsight skbprio "$dctcp" 'kind: skbprio'
hindsight ets "$dctcp" 'kind: ets, bands: 3'

# Nor does a capture, which remembers flows that are over: late packets of theirs still find nobody.
at_switches capture '{dev: "@", filter: "udp port 1"}'
same "with captures and without" "$(sqlite3 b/records.sqlite 'SELECT * FROM flow' | cksum)" \
    "$(sqlite3 a/records.sqlite 'SELECT * FROM flow' | cksum)"
finish
