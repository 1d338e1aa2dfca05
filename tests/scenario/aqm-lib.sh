# aqm-lib.sh - TCP through one bottleneck under a queue discipline: the study and what came of it
#
# A dumbbell whose bottleneck has 100 Mbit/s and 20 ms each way (round trip 40 ms, bandwidth x delay
# 500 kB = 330 frames), hosts with 1 Gbit/s. Needs gw (the program) and sqlite3.

bdp=330

# aqm_study FLOWS SECONDS STAGGER_S WORDS TRANSPORT_OPTIONS: endless flows, one after the other
aqm_study() {
    printf 'schema: 1\nname: aqm\nseed: 1\nuntil: %ss\nrecords: {links: 1ms}\n' "$2"
    printf 'topology: {kind: dumbbell, hosts: %d, link: {rate: 1gbit, delay: 1us}, ' "$1"
    printf 'bottleneck: {rate: 100mbit, delay: 20ms}}\n'
    printf 'tc: ["qdisc add dev bottleneck:a root %s"]\n' "$4"
    printf 'transport: {kind: tcp, %s}\n' "${5:-cc: cubic}"
    printf 'jobs:\n  - name: bulk\n    traffic: flows\n    flows:\n'
    awk -v n="$1" -v s="$3" 'BEGIN { for (i = 0; i < n; i++)
        printf "      - {from: l%d, to: r%d, bytes: 100GB, start: %dms}\n", i, i, 1000 * s * i }'
}

# aqm_run FLOWS SECONDS WORDS [TRANSPORT_OPTIONS]: utilisation, mean and max wait in ms, drops,
# marks, Jain's index of the flows' goodput
aqm_run() {
    aqm_study "$1" "$2" 0.1 "$3" "${4:-}" >aqm.yaml
    rm -rf aqm.out
    "$gw" run aqm.yaml -q -o aqm.out >/dev/null || return
    sqlite3 -separator ' ' aqm.out/records.sqlite "
        select round(busy_ps / (1e12 * $2), 4), round(mean_wait_ps / 1e9, 2),
               round(max_wait_ps / 1e9, 1), ifnull((select sum(pkts) from link_drop d
               where d.link = t.link), 0), marked_pkts,
               (select round(pow(sum(delivered_bytes * 1.0), 2) / (count(*) *
                sum(delivered_bytes * 1.0 * delivered_bytes)), 3) from flow)
        from link_total t join link using (link) where name = 'bottleneck:a'"
}

# aqm_wait FROM_S: mean wait in ms from then on, by Little's law from samples of the queue
aqm_wait() {
    sqlite3 aqm.out/records.sqlite "
        select avg(queue_pkts) / avg(sent_bytes / 1514.0) from link_sample join link using (link)
        where name = 'bottleneck:a' and at_ps > 1e12 * $1"
}

# 16 flows of CUBIC drive fq to its limit for a flow, 100 packets: fq paces hosts, it is no AQM.
declare -A aqm_words=(
    [pfifo]="pfifo limit $bdp"
    [red]="red limit 1500000 min 60000 max 180000 avpkt 1514 burst 67 bandwidth 100mbit"
    [codel]="codel" [fq_codel]="fq_codel" [pie]="pie" [fq]="fq" [cake]="cake bandwidth 95mbit")
aqm_order="pfifo red codel fq_codel pie fq cake"

# aqm_table SECONDS: the table on stdout; its numbers to aqm[DISCIPLINE FLOWS COLUMN]
declare -A aqm
aqm_table() {
    local q n util mean max drops marks jain
    printf '%-14s %5s %11s %9s %9s %7s %7s %6s\n' discipline flows utilisation 'mean ms' 'max ms' \
        drops marks Jain
    for q in $aqm_order fq_codel+ecn; do
        for n in 1 4 16; do
            read -r util mean max drops marks jain < <(aqm_run "$n" "$1" "${aqm_words[${q%+ecn}]}" \
                "$([[ $q == *+ecn ]] && echo 'cc: cubic, ecn: yes')")
            printf '%-14s %5d %11s %9s %9s %7s %7s %6s\n' "$q" "$n" "$util" "$mean" "$max" \
                "$drops" "$marks" "$jain"
            aqm[$q $n util]=$util aqm[$q $n mean]=$mean aqm[$q $n max]=$max
            aqm[$q $n drops]=$drops aqm[$q $n marks]=$marks aqm[$q $n jain]=$jain
        done
    done
}

# One flow fills the link slowly after the first drop of slow start, which comes early where queues are
# held short. With red a second drop soon after it, in 2 of 18 seeds, costs another tenth of the time.
# aqm_checks WITHIN: what the table must show; WITHIN is called as `WITHIN WHAT GOT LOW HIGH`
aqm_checks() {
    local q n
    for n in 1 4 16; do
        for q in $aqm_order fq_codel+ecn; do
            "$1" "$q, $n flows: utilisation" "${aqm[$q $n util]}" \
                "$([[ $n == 1 ]] && echo 0.75 || echo 0.9)" 1
        done
        "$1" "pfifo, $n flows: longest wait is 330 frames" "${aqm[pfifo $n max]}" 40 40.7
        for q in red codel fq_codel cake; do
            "$1" "$q, $n flows: mean wait, ms, below a third of pfifo's" "${aqm[$q $n mean]}" 0.05 \
                "$(awk -v p="${aqm[pfifo $n mean]}" 'BEGIN { print p / 3 }')"
        done
        for q in $aqm_order; do
            "$1" "$q, $n flows: marks without ECN" "${aqm[$q $n marks]}" 0 0
            "$1" "$q, $n flows: drops" "${aqm[$q $n drops]}" 1 10000
        done
        "$1" "fq_codel+ecn, $n flows: marks" "${aqm[fq_codel+ecn $n marks]}" 1 10000
        "$1" "fq_codel+ecn, $n flows: drops" "${aqm[fq_codel+ecn $n drops]}" 0 0
    done
    for n in 4 16; do
        "$1" "pie, $n flows: mean wait, ms, near its target of 15" "${aqm[pie $n mean]}" 11 19
        for q in fq_codel fq cake; do
            "$1" "$q, $n flows: Jain's index" "${aqm[$q $n jain]}" 0.98 1
        done
    done
}
