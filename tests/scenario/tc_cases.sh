#!/usr/bin/env bash
# tc_cases - reports of tc's and mahimahi's users as tests: delay with the default limit (S1),
# bandwidth traces (S4)
set -uo pipefail
. "$GW_SRCDIR/tests/scenario/lib.sh"

# study NAME FRAMES LINE [MORE...]: NAME.yaml, frames through the discipline of tc line LINE
study() {
    local name=$1
    {
        printf 'schema: 1\nname: %s\ntopology: {kind: pair, rate: 0}\n' "$name"
        printf 'tc:\n  - "qdisc add dev v:a root handle 1: %s"\n' "$3"
        printf 'jobs:\n  - {name: p, traffic: frames, from: a, to: b, generators: [%s]}\n' "$2"
        printf 'log:\n  - {dev: "v:a", kind: packets}\n'
        printf '%s\n' "${@:4}"
    } >"$name.yaml"
}
sql() { sqlite3 "$1/records.sqlite" "$2"; }
# came NAME: frames that arrived; per_ms NAME: their number in each millisecond of arrival
came() { awk -F, 'NR > 1 && $6 != ""' "$1/packets-v-a.csv" | wc -l; }
per_ms() {
    awk -F, 'NR > 1 && $6 != "" { t = int($6 / 1e9); n[t]++; if (t > m) m = t }
        END { for (t = 0; t <= m; t++) printf "%s%d", t ? " " : "", n[t] }' "$1/packets-v-a.csv"
}
# warning NAME: what check says beforehand
warning() { "$gw" check "$1.yaml" 2>&1 >/dev/null; }

# --- S1: delay 100 ms, limit 1000, 20 000 packets/s for 10 s ------------------------------------
frames='{size: 1500, interval: 50us, count: 200000}'
study s1 "$frames" "netem delay 100ms" 'records: {links: 10ms}'
case $(warning s1) in
*"10000 packets/s"*"120 Mbit/s"*) said=yes ;;
*) said=$(warning s1) ;;
esac
same "S1: check warns of the ceiling, 10000 packets/s or 120 Mbit/s" "$said" yes
run s1 s1.yaml
within "S1: delivered of 200000" "$(came s1)" 99000 101000
same "S1: drops by reason" "$(sql s1 "select reason, pkts from link_drop")" \
    "queue_full|$((200000 - $(came s1)))"
same "S1: netem's own losses" "$(sql s1 "select value from stat where name = 'lost'")" 0
# In each full period of 100 ms: 1000 packets, in 50 ms; one at the edge falls on either side.
same "S1: packets of each period, within one" "$(awk -F, 'NR > 1 && $6 != "" { n[int($6 / 1e11)]++ }
    END { for (k = 1; k < 100; k++) bad += n[k] < 999 || n[k] > 1001; print bad }' \
    s1/packets-v-a.csv)" 0
same "S1: periods without a pause of 50 ms" "$(awk -F, 'NR > 1 && $6 != "" {
        gap = $6 - last
        if (last && gap > 1e9) { pauses++; bad += gap < 49.9e9 || gap > 50.1e9 }
        last = $6 } END { print bad + (pauses < 99) }' s1/packets-v-a.csv)" 0
# The series of samples shows it: 5 of 10 samples with 200 packets each 10 ms, 5 with none.
series=$(sql s1 "select group_concat(case when sent_bytes >= 298500 then 'B' when sent_bytes <= 1500
    then '.' else '?' end, '') from (select sent_bytes from link_sample where link = 0 and
    at_ps > 100000000000 and at_ps <= 500000000000 order by at_ps)")
same "S1: bursts in the throughput series" "$series" BBBBB.....BBBBB.....BBBBB.....BBBBB.....

study s1auto "$frames" "netem delay 100ms limit auto"
run s1auto s1auto.yaml
same "S1: delivered with an automatic limit" "$(came s1auto)" 200000
same "S1: check has nothing to say then" "$(warning s1auto)x" x

# --- S4: Mahimahi files ---------------------------------------------------------------------------
seq 12 >a.trace
for ((i = 1; i <= 100; i++)); do yes $i | head -n 30; done >b.trace
printf '0\n0\n0\n' >c.trace
for s in 0:4 1:5 2:2 3:3 7:4 8:2 131:3; do yes "${s%:*}" | head -n "${s#*:}"; done >d.trace
printf '1\n5\n3\n' >e.trace
printf '1\n\n3\n' >f.trace
for t in a b c d e f; do
    study "s4$t" '{size: 1514, interval: 20us, count: 700000}' \
        "link_trace file $t.trace limit 1000000" 'until: 13100ms'
done
for want in "a:12 Mbit/s" "b:360 Mbit/s" "d:2.10687 Mbit/s"; do
    [[ $(warning "s4${want%%:*}") == *"mean rate ${want#*:}"* ]] && said=yes || said=no
    same "S4: (${want%%:*}) check gives ${want#*:}" "$said" yes
done
for want in c:3 e:3 f:2; do
    t=${want%:*}
    text=$("$gw" check "s4$t.yaml" 2>&1 >/dev/null)
    same "S4: ($t) exit code" $? 2
    [[ $text == *"$t.trace:${want#*:}: "* ]] && said=yes || said=$text
    same "S4: ($t) refused at line ${want#*:}" "$said" yes
done
run s4a s4a.yaml
within "S4: (a) Mbit/s" "$(awk -v n="$(came s4a)" 'BEGIN { print n * 12000 / 13.1e6 }')" 11.97 12.01
run s4b s4b.yaml
within "S4: (b) Mbit/s" "$(awk -v n="$(came s4b)" 'BEGIN { print n * 12000 / 13.1e6 }')" 358 360.1
run s4d s4d.yaml
within "S4: (d) Mbit/s over a hundred passes" \
    "$(awk -v n="$(came s4d)" 'BEGIN { print n * 12000 / 13.1e6 }')" 2.085 2.111
same "S4: (d) arrivals in each of 131 ms after the first pass" \
    "$(per_ms s4d | cut -d ' ' -f 132-262)" \
    "$(awk '{ n[$1 % 131]++ } END { for (t = 0; t < 131; t++) printf "%s%d", t ? " " : "", n[t] }' \
        d.trace)"

# Three packets of 500 bytes go with one line; lines with nothing to carry are lost.
study s4p '{size: 514, interval: 1us, count: 9, start: 3500us}' "link_trace file a.trace"
run s4p s4p.yaml
same "S4: packets of 500 bytes, from 3.5 ms on" "$(per_ms s4p)" "0 0 0 0 3 3 3"
# A frame that was dropped has no time of arrival, hence no delay.
study s4q '{size: 1514, interval: 1us, count: 30, start: 500us}' "link_trace file a.trace limit 10"
run s4q s4q.yaml
same "S4: drops are not delays" "$(awk -F, 'NR > 1 {
        n++; if ($6 == "") drops++; else bad += $6 - $5 > 10.51e9 }
    END { print n, drops + 0, bad + 0 }' s4q/packets-v-a.csv)" "30 20 0"

# --- copies: each frame and each copy has a row, with its arrival or the reason of its loss -------
cat >copies.yaml <<'YAML'
schema: 1
name: copies
seed: 5
topology: {graph: {nodes: [a, s, b], hosts: [a, b], links: [{name: in, ends: [a, s], rate: 0, delay: 3us}, {name: out, ends: [s, b], rate: 30mbit, delay: 1ms}]}}
links: {"in:a": {loss: 5%}}
tc:
  - "qdisc add dev in:a root netem duplicate 40% loss 30% delay 1ms 1ms"
  - "qdisc add dev out:s root netem duplicate 40% loss 30% limit 4"
jobs:
  - {name: p, traffic: frames, from: a, to: b, size: 1000, interval: 300us, count: 20000}
log: [{dev: "in:a"}, {dev: "out:s"}]
YAML
run copies copies.yaml
sent=20000
for dev in "in:a" "out:s"; do
    log=copies/packets-${dev/:/-}.csv
    same "copies: $dev: rows are frames and copies" "$(($(wc -l <"$log") - 1))" \
        "$((sent + $(sql copies "select value from stat join link using(link) where link.name = '$dev' and
            stat.name = 'duplicated'")))"
    same "copies: $dev: rows with neither or both of arrival and reason" \
        "$(awk -F, 'NR > 1 && ($6 != "") == ($9 != "")' "$log" | wc -l)" 0
    same "copies: $dev: reasons" "$(awk -F, 'NR > 1 && $9 { n[$9]++ } END { for (r in n) print r "|" n[r] }' "$log" |
        sort)" "$(sql copies "select reason, pkts from link_drop join link using(link) where name = '$dev'
            order by reason")"
    sent=$(awk -F, 'NR > 1 && $6 != ""' "$log" | wc -l)
done
same "copies: the copies of a second link are no rows of the first" "$sent" \
    "$(sql copies "select delivered_pkts from link_total join link using(link) where name = 'out:s'")"
same "copies: a queue that was full is among the reasons" "$(grep -c ',queue_full,' "$log" | sed 's/[1-9].*/some/')" some

# --- training tags: bytes of the layers that a filter names, for every transport ----------------
# Class 2 takes layers 100 to 165, no ACKs (their tags are 0); frames have headers of 4 to 10 %.
for transport in '{kind: tcp}' '{kind: tcp, cc: bbr, streams: 3}' '{kind: rocev2, cc: dcqcn}' \
    '{kind: ndp}' '{kind: uec}' '{kind: datagram, rate: 400mbit}' '{kind: bounded-loss}' \
    '{kind: fec, rate: 400mbit, k: 20, n: 21}' \
    '{kind: fixed-window, window: 1MB}'; do
    name=tags-$((runs++))
    cat >"$name.yaml" <<YAML
schema: 1
name: $name
topology:
  {kind: two-site, hosts: 2, nic: {rate: 25gbit, delay: 1us}, wan: {rate: 1gbit, delay: 2ms}}
transport: $transport
jobs:
  - {name: t, traffic: data-parallel, model: resnet50, ranks: all, collective: ring, iterations: 1}
tc:
  - "qdisc add dev wan:a root handle 1: prio bands 3"
  - "filter add dev wan:a parent 1: prio 1 basic match tag(layer lt 100) flowid 1:1"
  - "filter add dev wan:a parent 1: prio 2 basic match tag(layer lt 166) flowid 1:2"
  - "filter add dev wan:a parent 1: prio 4 matchall flowid 1:3"
YAML
    run "$name" "$name.yaml"
    sent=$(sql "$name" "select value from stat where owner = 'class:prio:1:2' and name = 'sent_bytes'")
    want=$(sql "$name" "select sum(bytes) from message where layer between 100 and 165 and
        src_rank < 2 and dst_rank > 1")
    within "tags of $transport: bytes of class 2 over those of its layers" \
        "$(awk -v a="$sent" -v b="$want" 'BEGIN { print a / b }')" 1.02 1.2
done

finish
