#!/usr/bin/env bash
# closed_forms - the product against arithmetic: A6's scaling factors, ring all-reduce, M/D/1
#
# The formulas stand here and in a6.awk, never in the product, which plays every message.
set -uo pipefail
. "$GW_SRCDIR/tests/scenario/lib.sh"
SECONDS=0

# --- A6: ideal transport, star, fused flushes ---------------------------------------------------
# The figures in front are PAPERS.md A6's own, the rest come from a6.awk; 0.002 absolute.
cat >a6.yaml <<'YAML'
schema: 1
name: a6
topology: {kind: star, hosts: 16, link: {rate: 10gbit, delay: 0}}
transport: {kind: ideal}
jobs:
  - {name: train, traffic: data-parallel, model: resnet50-v100-a6, ranks: all, collective: ring, fuse: off, iterations: 1}
YAML
declare -A step=([resnet50]=0.1281 [resnet101]=0.1920 [vgg16]=0.1945)
a6() {      # a6 MODEL N GBIT COMPRESSION [PUBLISHED]
    local name=a6-$1-$2-$3-$4 got want
    run "$name" a6.yaml --set topology.hosts="$2" --set "topology.link.rate=$3gbit" \
        --set "jobs.train.model=$1-v100-a6" --set jobs.train.compression="$4"
    got=$(awk -v t="${step[$1]}" -v m="$(json "$name.json" iterations mean_s)" 'BEGIN { printf "%.6f", t / m }')
    want=${5:-$(awk -v N="$2" -v gbit="$3" -v c="$4" -f "$src/tests/a6.awk" "$src/traffic/models/$1-v100-a6.csv")}
    within "A6 $1, $2 ranks, $3 Gbit/s, compression $4" "$got" \
        "$(awk -v w="$want" 'BEGIN { print w - 0.002 }')" "$(awk -v w="$want" 'BEGIN { print w + 0.002 }')"
    rm -rf "$name"
}
table() {   # table MODEL N COMPRESSION RATE:FACTOR...
    local model=$1 n=$2 c=$3
    shift 3
    for pair; do a6 "$model" "$n" "${pair%:*}" "$c" "${pair#*:}"; done
}
table resnet50 16 1 1:.080 2.5:.187 5:.339 10:.572 25:.970 40:.998 50:.998 100:.999
table resnet50 64 1 1:.076 2.5:.178 5:.322 10:.540 25:.910 40:.994 50:.994 100:.995
table vgg16 16 1 1:.023 2.5:.057 5:.111 10:.212 25:.463 40:.659 50:.767 100:.999
table vgg16 64 1 1:.022 2.5:.054 5:.106 10:.201 25:.439 40:.622 50:.723 100:.993
table resnet50 64 2 1:.145 2.5:.322 5:.540 10:.817 25:.994
table resnet50 64 5 1:.322 2.5:.624 5:.910 10:.994 25:.995
table resnet50 64 10 1:.540 2.5:.910 5:.994 10:.995 25:.995
table vgg16 64 2 1:.044 2.5:.106 5:.201 10:.367 25:.723
for n in 2 7 24; do
    for model in resnet50 resnet101 vgg16; do
        a6 "$model" "$n" 3 1
        a6 "$model" "$n" 17 3
    done
done

# A straggler puts the ranks out of step; messages between two ranks still go one after the other,
# so the fluid oracle stays at what packets need, less headers.
for tp in ideal tcp; do
    run "slow-$tp" a6.yaml --set topology.hosts=8 --set transport.kind=$tp --set topology.link.delay=1us \
        --set 'jobs.train.stragglers={0: 3}'
done
within "A6 with a straggler: ideal against tcp, seconds" "$(json slow-ideal.json iterations mean_s)" \
    0.3845 "$(json slow-tcp.json iterations mean_s)"

# --- ring all-reduce of 1 GiB by packets --------------------------------------------------------
# 14 steps of 1 GiB / 8; a segment of 1448 bytes takes 1538 on the wire. A host's link also carries
# the ACKs of the data that it receives, 90 bytes for two segments. A step adds two links' delay
# and one segment's store-and-forward.
cat >ring.yaml <<'YAML'
schema: 1
name: ring
topology: {kind: star, hosts: 8, link: {rate: 10gbit, delay: 1us}}
transport: {kind: tcp, cc: cubic}
jobs:
  - {name: r, traffic: collective, op: all-reduce, bytes: 1GiB, algorithm: ring}
YAML
for gbit in 10 100 400; do
    run "ring$gbit" ring.yaml --set "topology.link.rate=${gbit}gbit"
    want=$(awk -v r="$gbit" 'BEGIN { c = 2 ^ 30 / 8; s = int((c + 1447) / 1448)
        printf "%.9f", 14 * ((c + 90 * s + 45 * s) * 8 / (r * 1e9) + 2e-6 + 1538 * 8 / (r * 1e9)) }')
    within "ring all-reduce of 1 GiB, 8 ranks, $gbit Gbit/s, seconds" \
        "$(json "ring$gbit.json" iterations mean_s)" "$want" "$(awk -v w="$want" 'BEGIN { print w * 1.05 }')"
    rm -rf "ring$gbit"
done

# --- M/D/1 --------------------------------------------------------------------------------------
# Mean wait without service: rho / (2 (1 - rho)) service times, here of 8 us.
cat >md1.yaml <<'YAML'
schema: 1
name: md1
topology: {kind: pair, rate: 1gbit}
transport: {kind: ideal}
jobs:
  - {name: p, traffic: frames, from: a, to: b, arrivals: poisson, size: 1000, interval: 10us, count: 3000000}
YAML
for row in 0.5:16us:3000000 0.8:10us:8000000 0.95:8.4210526us:30000000; do
    IFS=: read -r rho interval count <<<"$row"
    run "md1-$rho" md1.yaml --set jobs.p.interval="$interval" --set jobs.p.count="$count"
    want=$(awk -v r="$rho" 'BEGIN { print r / (2 * (1 - r)) * 8e-6 }')
    within "M/D/1 mean wait at load $rho, seconds" "$(row "md1-$rho" links v:a mean_wait_s)" \
        "$(awk -v w="$want" 'BEGIN { print 0.98 * w }')" "$(awk -v w="$want" 'BEGIN { print 1.02 * w }')"
    rm -rf "md1-$rho"
done
echo "$SECONDS s"
finish
