#!/usr/bin/env bash
# any_loss - every reliable transport survives any loss: 1,200 random small networks
#
# Each network is a - s - b with rates, delays, queues and losses of its own, 0 to 30 % forward and
# in reverse, random or in bursts, on links or in netem, with trimming switches or without; one to
# three messages of 1 byte to 1 MB cross it. All must end with all their bytes, within 30,000 s of
# simulated time: 250 timeouts of TCP at their longest, two minutes, which an echo of an old timestamp
# brings about in Linux, too, when all ACKs of the original are lost. The transports are those that the registry calls reliable, tcp with each
# congestion control that it takes, and bounded-loss with a share of 100 %; on 200 networks, tcp with
# super-packets and with receivers that merge.
set -uo pipefail
. "$GW_SRCDIR/tests/scenario/lib.sh"
per_study=50 studies=24

# --- who takes part ------------------------------------------------------------------------------
cat >try.yaml <<'YAML'
schema: 1
name: try
topology: {kind: pair, rate: 1gbit}
jobs: [{name: f, traffic: flows, flows: [{from: a, to: b, bytes: 1kB}]}]
YAML
who=('kind: bounded-loss, share: 100%')
for t in $("$gw" list transport --json | awk -F'"' '$2 == "name" { name = $4 } /"reliable": true/ { print name }'); do
    more=
    [[ $t == tcp ]] && more=', retries: 0, syn_retries: 0'
    if grep -q '^  cc:' < <("$gw" help transport "$t"); then
        for c in $("$gw" list cc --json | awk -F'"' '$2 == "name" { print $4 }'); do
            "$gw" check try.yaml --set "transport={kind: $t, cc: $c$more}" >/dev/null 2>&1 &&
                who+=("kind: $t, cc: $c$more")
        done
    else
        who+=("kind: $t$more")
    fi
done
printf '%s\n' "${who[@]}" >who
for cc in cubic bbr reno dctcp; do
    echo "kind: tcp, cc: $cc, offload: yes, retries: 0, syn_retries: 0"
    echo "kind: tcp, cc: $cc, gro: yes, gro_flush_timeout: 200us, retries: 0, syn_retries: 0"
    echo "kind: tcp, cc: $cc, offload: yes, gro: yes, sack: off, retries: 0, syn_retries: 0"
done >who-offload
within "transports that take part" "${#who[@]}" 4 1000

# --- 1,200 networks ------------------------------------------------------------------------------
make_study() {      # make_study SEED WHO: per_study networks side by side
    awk -v seed="$1" -v n=$per_study '
    function pick(list,    w, k) { k = split(list, w, " "); return w[1 + int(rand() * k)] }
    function percent(max,    r) { r = rand(); return r < 0.2 ? "0%" : sprintf("%.3f%%", max * rand()) }
    function netem(dev,    r) {
        r = rand()
        tc = tc sprintf("  - \"qdisc add dev %s root netem limit 100000 loss %s\"\n", dev, \
            r < 0.3 ? sprintf("gemodel %.2f%% %.0f%%", 5 * rand(), 20 + 60 * rand()) : percent(30))
    }
    { who[NR] = $0 }
    END {
        srand(seed)
        for (i = 0; i < n; i++) {
            w = who[1 + (seed * n + i) % NR]
            rate = pick("10mbit 100mbit 1gbit 10gbit 100gbit"); delay = pick("0 1us 10us 100us 1ms 5ms")
            style = rand(); la = lb = "0%"; queue = ""
            if (style < 0.5) { la = rand() < 0.5 ? "0%" : percent(15); lb = percent(la == "0%" ? 30 : 15) }
            else { netem("y" i ":s" i); if (rand() < 0.7) netem("x" i ":s" i) }
            nodes = nodes sprintf("%sa%d, {name: s%d, kind: switch}, b%d", i ? ", " : "", i, i, i)
            if (style < 0.5 && rand() < 0.5)
                queue = rand() < 0.6 ? sprintf(", qdisc: {kind: ndp, limit: %d}", 1 + rand() * 8) \
                                     : sprintf(", qdisc: {kind: pfifo, limit: %d}", 3 + rand() * 20)
            links = links sprintf("      - {name: x%d, ends: [a%d, s%d], rate: %s, delay: %s, loss: %s}\n", \
                i, i, i, rate, delay, la)
            links = links sprintf("      - {name: y%d, ends: [s%d, b%d], rate: %s, delay: %s, loss: %s%s}\n", \
                i, i, i, pick("10mbit 100mbit 1gbit 10gbit"), delay, lb, queue)
            flows = ""; m = 1 + int(rand() * 3)
            for (k = 0; k < m; k++) {
                bytes = int(exp(rand() * log(1000000))); total += bytes; count++
                flows = flows sprintf("%s{from: a%d, to: b%d, bytes: %d, start: %dus}", k ? ", " : "", i, i, \
                    bytes, rand() < 0.5 ? 0 : 5000 * rand())
            }
            jobs = jobs sprintf("  - {name: j%d, transport: {%s}, traffic: flows, flows: [%s]}\n", i, w, flows)
        }
        printf "schema: 1\nname: any loss %d\nseed: %d\ntopology:\n  graph:\n    nodes: [%s]\n    links:\n%s", \
            seed, seed, nodes, links
        if (tc) printf "tc:\n%s", tc
        printf "jobs:\n%sexpect:\n  - \"flows.count == %d\"\n  - \"flows.finished == %d\"\n", jobs, count, count
        printf "  - \"flows.delivered_bytes == %d\"\n  - \"flows.fct_max_s in 0..30000\"\n", total
    }' "$2" >"s$1.yaml"
}
played=0
for ((s = 1; s <= studies; s++)); do
    make_study "$s" "$( ((s > 20)) && echo who-offload || echo who)"
    if timeout 300 "$gw" run "s$s.yaml" -o "s$s" -q >"s$s.log" 2>&1; then
        played=$((played + per_study))
    else
        echo "FAIL study $s (exit $?):"
        head -n 20 "s$s.log"
        cp "s$s.yaml" "${TMPDIR:-/tmp}/any_loss-$s.yaml" && echo "kept as ${TMPDIR:-/tmp}/any_loss-$s.yaml"
        failed=$((failed + 1))
    fi
    rm -rf "s$s"
done
same "networks in which every byte arrived" "$played" $((studies * per_study))
finish
