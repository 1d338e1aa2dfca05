#!/usr/bin/env bash
# Corruption down to the bit: what netem's `corrupt` and the channel `ber` flip is wrong in captures,
# counted in packet logs, uniform over the frame, and found by receivers' (and tshark's) check sums.
# shellcheck source=tests/scenario/lib.sh
. "${GW_SRCDIR:?names the source}/tests/scenario/lib.sh"
sql() { sqlite3 "$1/records.sqlite" "$2"; }

# flips GOOD BAD SIZE: of two captures of the same frames: bits that differ, bytes that differ in more
# than one bit, frames with 1, 2 and 3 such bytes, first and last byte, chi square over SIZE - 1
# degrees. Behind 24 bytes of the file's head, a record has 16 and SIZE bytes.
flips() {
    cmp -l "$1" "$2" | awk -v size="$3" '
        function octal(s) { return 64 * int(s / 100) + 8 * (int(s / 10) % 10) + s % 10 }
        { a = octal($2); b = octal($3)
          for (bits = 0; a + b; b = int(b / 2)) { bits += a % 2 != b % 2; a = int(a / 2) }
          at = ($1 - 25) % (16 + size) - 16; frame[int(($1 - 25) / (16 + size))]++
          n += bits; more += bits > 1; seen[at]++ }
        END { for (f in frame) many[frame[f]]++
              for (first = 0; !seen[first]; first++); for (last = size - 1; !seen[last]; last--);
              for (i = 0; i < size; i++) chi += (seen[i] - NR / size) ^ 2 * size / NR
              print n + 0, more + 0, many[1] + 0, many[2] + 0, many[3] + 0, first, last, chi }'
}
# logged LOG: bits, frames with 1, 2 and 3 of them
logged() { awk -F, 'NR > 1 { n += $8; c[$8]++ } END { print n, c[1] + 0, c[2] + 0, c[3] + 0 }' "$1"; }

# ---- frames over two links, netem on each -------------------------------------------------------
cat >bits.yaml <<'YAML'
schema: 1
name: bits
seed: 3
topology:
  graph:
    nodes: [a, b, c]
    links:
      - {name: first, ends: [a, b], rate: 0, framing: 0}
      - {name: second, ends: [b, c], rate: 0, framing: 0}
tc:
  - "qdisc add dev first:a root netem corrupt 35%"
  - "qdisc add dev second:b root netem corrupt 20%"
jobs:
  - {name: j, traffic: frames, from: a, to: c, size: 96, interval: 1us, count: 60000}
capture: [{dev: "first:a"}, {dev: "first:b"}, {dev: "second:c"}]
log: [{dev: "first:a", kind: packets}, {dev: "second:b", kind: packets}]
YAML
run bad bits.yaml
run good bits.yaml --set "tc.0=qdisc add dev first:a root netem corrupt 0%" \
    --set "tc.1=qdisc add dev second:b root netem corrupt 0%"
read -r bits more one two three first last chi <<<"$(flips good/first-b.pcap bad/first-b.pcap 96)"
within "first link: flipped frames of 60000" "$bits" 20615 21385            # z = 3.29
same "first link: bytes with more than one bit, frames with more than one" "$more $two $three" "0 0 0"
same "first link: first and last byte" "$first $last" "0 95"
within "first link: places, chi square of 95" "$chi" 50 142.6
same "first link: the log counts the same" "$(logged bad/packets-first-a.csv)" "$bits $one 0 0"
cmp -s bad/first-a.pcap bad/first-b.pcap
same "first link: both ends see the same" $? 0
read -r bits more one two three first last chi <<<"$(flips good/second-c.pcap bad/second-c.pcap 96)"
within "second link: flipped bits" "$bits" 32470 33530
within "second link: frames with two" "$((two + more))" 3980 4420
same "second link: the log counts the same" "$(logged bad/packets-second-b.csv)" \
    "$bits $((one - more)) $((two + more)) $three"
run other bits.yaml --seed 4
same "another seed: other bits" "$(cmp -s bad/first-b.pcap other/first-b.pcap; echo $?)" 1
run again bits.yaml
same "the same seed: the same bits" "$(cmp -s bad/second-c.pcap again/second-c.pcap; echo $?)" 0

# ---- frames through a channel of bit errors: several bits of a frame ----------------------------
cat >ber.yaml <<'YAML'
schema: 1
name: ber
topology:
  graph:
    nodes: [a, b]
    links: [{name: l, ends: [a, b], rate: 0, framing: 0, channel: {kind: ber, ber: 1e-3, overhead: 0, deliver: yes}}]
jobs: [{name: j, traffic: frames, from: a, to: b, size: 96, interval: 1us, count: 30000}]
capture: [{dev: "l:b"}]
log: [{dev: "l:a", kind: packets}]
YAML
run bits ber.yaml
run none ber.yaml --set topology.graph.links.0.channel.ber=0
read -r bits more one two three first last chi <<<"$(flips none/l-b.pcap bits/l-b.pcap 96)"
within "ber: flipped bits of 23.04 million" "$bits" 22540 23540
within "ber: places, chi square of 95" "$chi" 50 142.6
same "ber: the log counts the same" "$(logged bits/packets-l-a.csv | cut -d' ' -f1)" "$bits"

# ---- TCP: what is flipped is thrown away and sent again, unless nobody can see it -----------------
cat >tcp.yaml <<'YAML'
schema: 1
name: tcp
seed: 5
topology: {kind: pair, rate: 100mbit, delay: 1ms, framing: 24}
tc:
  - "qdisc add dev v:a root netem limit 1000 corrupt 3%"
  - "qdisc add dev v:b root netem limit 1000 corrupt 30%"
jobs: [{name: j, traffic: flows, flows: [{from: a, to: b, bytes: 12MB}]}]
capture: [{dev: "v:a"}, {dev: "v:b"}]
YAML
run tcp tcp.yaml
same "tcp: the flow ends whole" "$(sql tcp 'select bytes, end_ps is not null from flow')" "12000000|1"
dropped=$(sql tcp "select sum(pkts) from link_drop where reason = 'corrupt'")
within "tcp: thrown away" "$dropped" 1000 3000
same "tcp: nothing else is lost" "$(sql tcp "select count(*) from link_drop where reason <> 'corrupt'")" 0
if command -v tshark >/dev/null; then
    # Good for its receiver: IPv4 with right sums, to the right MAC address; whoever it says it is from.
    read -r good bad odd <<<"$(timeout 100 tshark -n -r tcp/v-b.pcap -o ip.check_checksum:TRUE \
        -o tcp.check_checksum:TRUE -T fields -E separator=, -e eth.type -e ip.checksum.status \
        -e tcp.checksum.status -e ip.src -e eth.dst -e eth.src 2>/dev/null | awk -F, '
        BEGIN { a = "02:00:00:00:00:00"; b = "02:00:00:00:00:01" }
        $1 == "0x0800" && $2 == 1 && $3 == 1 && $5 == ($4 == "10.0.0.1" ? b : a) {
            good++; odd += $6 != ($4 == "10.0.0.1" ? a : b); next }
        { bad++ } END { print good + 0, bad + 0, odd + 0 }')"
    within "tcp: what tshark finds wrong of $((good + bad)) is what was thrown away" "$bad" \
        "$dropped" $((dropped + 2))
    within "tcp: taken with a wrong source address" "$odd" 50 300
else
    echo "skip: tshark is not installed, TCP's captures were not looked at"
fi
finish
