#!/usr/bin/env bash
# loss_tolerant - datagrams, bounded loss and forward error correction against arithmetic
#
# The formulas stand here; the product plays every packet.
set -uo pipefail
. "$GW_SRCDIR/tests/scenario/lib.sh"
example=$src/examples/lossy-training/study.yaml
calc() { awk "BEGIN { printf \"%.9g\", $1 }"; }
near() { within "$1" "$2" "$(calc "($3) * (1 - $4)")" "$(calc "($3) * (1 + $4)")"; }    # WHAT GOT WANT SHARE

# --- ages of parameters (arXiv 2507.07114): stale p, age p/(1-p), gap 2p/(1-p^2), within 2 % ------
train() {   # train NAME P ARGS...: the example with a loss of P % end to end
    local name=$1 q
    q=$(calc "100 * (1 - sqrt(1 - $2 / 100))")
    shift 2
    run "$name" "$example" --set "topology.link.loss=$q%" --set 'expect=["iterations.count > 0"]' "$@"
}
train p0 0
for p in 1:100 5:32 10:24 20:20 30:20; do
    n=${p#*:} p=${p%:*}
    train "p$p" "$p" --set jobs.train.iterations="$n"
    near "A9, p $p %: stale share" "$(row "p$p" staleness train stale_share)" "$p / 100" 0.02
    near "A9, p $p %: mean age" "$(row "p$p" staleness train mean_age_steps)" "$p / (100 - $p)" 0.02
    near "A9, p $p %: age gap" "$(row "p$p" staleness train age_gap_steps)" "2 * $p / 100 / (1 - ($p / 100)^2)" 0.02
    near "A9, p $p %: gradients missing" "$(row "p$p" staleness train gradient_missing_share)" "$p / 100" 0.02
    near "A9, p $p %: iteration time, datagram" "$(json "p$p.json" iterations mean_s)" \
        "$(json p0.json iterations mean_s)" 0.01
    rm -rf "p$p" "p$p.csv"
done
# The whole message is lost with any of its packets: no parameter of 687 packets ever comes whole.
train whole 10 --set transport.grain=message --set jobs.train.iterations=8
near "grain message: stale share" "$(row whole staleness train stale_share)" 1 0.001
for tp in tcp rocev2; do
    last=0
    for p in 0 1 5; do
        train "$tp$p" $p --set "transport={kind: $tp}" --set jobs.train.iterations=3
        got=$(json "$tp$p.json" iterations mean_s)
        within "A9, p $p %: iteration time, $tp, grows" "$got" "$(calc "$last * 2")" 1000
        last=$got
    done
done

# --- one link each: deadline, fence, quiet, bounded loss, codes -----------------------------------
# 10 MB in packets of 1000 bytes at 1 Gbit/s: 10,000 frames of 1058, framing 0: 84.64 ms and 5 ms.
cat >links.yaml <<'YAML'
schema: 1
name: links
seed: 5
topology:
  graph:
    nodes: [a, b]
    links: [{name: v, ends: [a, b], rate: 1gbit, delay: 5ms, framing: 0}]
jobs: [{name: f, traffic: flows, flows: [{from: a, to: b, bytes: 10MB}]}]
YAML
link() {    # link NAME LOSS TRANSPORT ARGS...
    local name=$1
    run "$name" links.yaml --set "links={v: {loss: $2}}" --set "transport={$3}" "${@:4}"
}
fct() { json "$1.json" flows fct_p50_s; }
share() { calc "$(json "$1.json" flows delivered_bytes) / 1e7"; }
link plain 0% 'kind: datagram, payload: 1000'
near "datagram, no loss: time" "$(fct plain)" 0.08964 0.0001
same "datagram, no loss: bytes" "$(json plain.json flows delivered_bytes)" 10000000
link paced 0% 'kind: datagram, payload: 1000, rate: 100mbit'
near "datagram at 100 Mbit/s: time" "$(fct paced)" 0.8514 0.001
link late 0% 'kind: datagram, payload: 1000, deadline: 50ms'
near "deadline: ends then" "$(fct late)" 0.05 1e-6
near "deadline: what has come" "$(share late)" "0.045 / 0.08464" 0.001
link all 100% 'kind: datagram, fence: 0, quiet: 30ms'
near "nothing comes: over after the quiet" "$(fct all)" 0.035 1e-6
same "nothing comes: no bytes" "$(json all.json flows delivered_bytes)" 0
link quiet 10% 'kind: datagram, payload: 1000, fence: 0, quiet: 30ms'
near "no fence: over after the last packet and the quiet" "$(fct quiet)" 0.11964 0.001
near "loss 10 %: share that came" "$(share quiet)" 0.9 0.02
link enough 5% 'kind: bounded-loss, payload: 1000, share: 90%'
near "bounded loss, 90 % of 95: no repair needed" "$(fct enough)" "0.08464 * 0.9 / 0.95 + 0.005" 0.01
near "bounded loss: ends with the share" "$(share enough)" 0.9 0.0002
link most 20% 'kind: bounded-loss, payload: 1000, share: 99.9%'
near "bounded loss, 99.9 % of 80" "$(share most)" 0.999 0.0002
link exact 30% 'kind: bounded-loss, payload: 1000, share: 100%'
same "bounded loss, 100 %: all bytes" "$(json exact.json flows delivered_bytes)" 10000000
link cut 30% 'kind: bounded-loss, payload: 1000, share: 100%, deadline: 120ms'
near "bounded loss, deadline" "$(fct cut)" 0.12 1e-6
# Reed-Solomon, 12 of 10: a lost packet stays lost if two or more of the other eleven are, too.
more=(--set 'jobs.f.flows=[{from: a, to: b, bytes: 100MB}]')
link rs 10% 'kind: fec, payload: 1000, k: 10, n: 12, fence: 8' "${more[@]}"
near "fec rs 12 of 10, 10 %: missing" "$(calc "1 - $(share rs) / 10")" "0.1 * (1 - 0.9^11 - 11 * 0.1 * 0.9^10)" 0.06
# XOR, 12 of 10: groups of five packets and one parity; lost for good if another of the six is.
link xor 10% 'kind: fec, code: xor, payload: 1000, k: 10, n: 12, fence: 8' "${more[@]}"
near "fec xor 12 of 10, 10 %: missing" "$(calc "1 - $(share xor) / 10")" "0.1 * (1 - 0.9^5)" 0.06
link code 0% 'kind: fec, payload: 1000, k: 10, n: 12, coding: 0'
near "fec 12 of 10, free coding: time of the data" "$(fct code)" "0.08464 * 1.2 - 2 * 8.464e-6 + 0.005" 0.0005
# 20 passes of 1000 bytes a block at 1 Gbit/s: 160 us, more than its 12 frames take (102 us).
link slow 0% 'kind: fec, payload: 1000, k: 10, n: 12, coding: 1gbit'
near "fec 12 of 10, slow coder: time" "$(fct slow)" "999 * 160e-6 + 12 * 8.464e-6 + 0.005" 0.002
finish
