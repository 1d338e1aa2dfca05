# tc.sh - gradwire tc on scratch devices and on a study's links; sourced by run.sh

refused 'tc without a place' '--study STUDY.*--script' tc qdisc show
refused 'tc with script and command' 'behind --script' tc --script - qdisc show
refused 'tc --set without a study' 'give --study' tc --script - --set seed=1
refused 'tc with a script that is not there' '^nowhere\.tc: ' tc --script nowhere.tc

script() { "$gw" tc --script - <<<"$1" 2>err.txt; }

is 'script: one object a line' "$(script '# comment

tc qdisc add dev x root pfifo limit 7
-j qdisc show dev x
qdisc add dev y root handle 1: pfifo limit
qdisc bogus')" '{"cmd":"tc qdisc add dev x root pfifo limit 7","rc":0,"stdout":"","stderr":""}
{"cmd":"-j qdisc show dev x","rc":0,"stdout":"[{\"kind\":\"pfifo\",\"handle\":\"8001:\",\"root\":true,\"refcnt\":2,\"options\":{\"limit\":7}}]\n","stderr":""}
{"cmd":"qdisc add dev y root handle 1: pfifo limit","rc":255,"stdout":"","stderr":"Command line is not complete: \"limit\" needs a value"}
{"cmd":"qdisc bogus","rc":255,"stdout":"","stderr":"Command \"bogus\" is unknown, try \"tc qdisc help\""}'
is 'script: nothing on standard error' "$(wc -c <err.txt)" 0
like 'script: advice with the effective figure' \
    "$(script 'qdisc add dev x root netem loss 10% 50%')" '"notes":\[".*0\.108%'

is 'script: skipped lines, comments and joined lines, as in a shell' "$(script $'\n \t\n  # one\\\nqdisc add dev x \\\n root pfifo limit 7 # two\n-j qdisc show dev x')" \
    '{"cmd":"qdisc add dev x  root pfifo limit 7 # two","rc":0,"stdout":"","stderr":""}
{"cmd":"-j qdisc show dev x","rc":0,"stdout":"[{\"kind\":\"pfifo\",\"handle\":\"8001:\",\"root\":true,\"refcnt\":2,\"options\":{\"limit\":7}}]\n","stderr":""}'

good_study >study.yaml
cp study.yaml before.yaml
call tc --study study.yaml qdisc show
is 'study: exit code' "$rc" 0
like 'study: devices' "$(cat out.txt)" 'qdisc noqueue 0: dev [^ ]+:[^ ]+ root refcnt 2'
dev=$(awk 'NR == 1 {print $5}' out.txt)
call tc --study study.yaml qdisc add dev "$dev" root netem loss 1%
is 'study: add' "$rc" 0
call tc --study study.yaml qdisc add dev "$dev" root netem loss
is 'study: incomplete line' "$rc" 255
call tc --study study.yaml qdisc add dev "$dev" root netem bogus
is 'study: refused by tc' "$rc" 1
call tc --study study.yaml -s qdisc del dev "$dev" root
is 'study: refused by the kernel' "$rc" 2
is 'study: a sentence' "$(wc -l <err.txt)" 1
call tc --study study.yaml qdisc show dev nowhere
is 'study: no such device' "$rc" 1
cmp -s study.yaml before.yaml
is 'study: the file stays as it is' $? 0
call tc --study study.yaml qdisc add dev nowhere root netem
like 'study: the device is named once, the place not at all' "$(cat err.txt)" \
    '^Cannot find device "nowhere": there is no device "nowhere"; '

printf '\357\273\277qdisc add dev x root pfifo limit 7\n' >marked.tc
call tc --script marked.tc
is 'script: a byte-order mark in front' "$(cat out.txt)" \
    '{"cmd":"qdisc add dev x root pfifo limit 7","rc":0,"stdout":"","stderr":""}'
like 'script: a row takes auto' "$(script 'qdisc add dev x root bfifo limit auto')" '"rc":0'
like 'script: what would be right of a row' "$(script 'qdisc add dev x root ecn_threshold kmin 3x')" \
    'Illegal \\"kmin\\": \\"3x\\"; a size such as 64kb is right"'
like 'script: lengths by a size table end somewhere' \
    "$(script 'qdisc add dev x root stab mpu 2147483647 fq')" 'no frame counts as more than 1048576'
printf 'time_s,rate_mbps\n0,0.5\n1e-6,0\n' >short.csv
like 'script: a series of less than a bit' \
    "$(script 'qdisc add dev x root link_trace file short.csv format series')" \
    'the whole series carries 0\.5 bits'

printf '%s\n' 'schema: 1' 'name: twice' 'topology: {kind: pair, rate: 10mbit, delay: 1ms}' 'tc:' \
    '  - "qdisc add dev v:a root handle 1: prio"' \
    '  - "qdisc add dev v:a parent 1:1 netem delay 10ms 5ms"' \
    '  - "qdisc add dev v:a parent 1:2 netem delay 10ms 5ms"' \
    'jobs: [{name: j, traffic: frames, from: a, to: b, size: 100, interval: 1ms, count: 1}]' >study.yaml
call check study.yaml
is 'study: advice names the place' "$(grep -o 'netem at 1:[12]' err.txt | sort | tr '\n' ' ')" \
    'netem at 1:1 netem at 1:2 '
sed -i 's/dev v:a root/dev v root/' study.yaml
call check study.yaml
is 'study: the line of a wrong device is said once' "$(grep -o 'study.yaml:5:5' err.txt | wc -l)" 1
rm study.yaml before.yaml marked.tc short.csv

# What check says of trees, and that it stands in the record.
pair() {
    printf '%s\n' 'schema: 1' 'name: pair' 'topology: {kind: pair, rate: 100mbit, delay: 1ms}' \
        'transport: {kind: ideal}' 'jobs:' \
        '  - {name: p, traffic: frames, from: a, to: b, size: 1000, interval: 1ms, count: 20}' "$@"
}
pair 'tc:' '  - "qdisc add dev v:a root handle 1: drr"' '  - "qdisc add dev v:b clsact"' >pair.yaml
call check pair.yaml
is 'check of drr: exit code' "$rc" 0
like 'drr without classes' "$(cat err.txt)" '^warning: v:a: drr: it has no classes'
like 'clsact' "$(cat err.txt)" 'warning: v:b: clsact: .* no packet passes it'
mkdir deep && cp pair.yaml deep/pair.yaml
pair 'tc:' '  - "qdisc add dev v:a root handle 1: drr"' \
    '  - "class add dev v:a parent 1: classid 1:1 drr"' >pair.yaml
call check pair.yaml
like 'drr without filters' "$(cat err.txt)" 'no filter leads to its classes'
pair 'tc:' '  - "qdisc add dev v:a root handle 1: drr"' \
    '  - "class add dev v:a parent 1: classid 1:1 drr"' \
    '  - "filter add dev v:a parent 1: matchall classid 1:1"' >pair.yaml
call check pair.yaml
is 'drr with a filter' "$(cat err.txt)" ''
pair 'tc:' '  - "qdisc add dev v:a root handle 1: htb"' >pair.yaml
call check pair.yaml
like 'htb without a default' "$(cat err.txt)" 'default 0 is no leaf class: .* pass unshaped'
call run deep/pair.yaml -o noted
is 'run: exit code' "$rc" 0
is 'warnings are notes of the record' "$(sqlite3 noted/records.sqlite 'SELECT text FROM note')" \
    "$(sed -n '/sanitize build/d; s/^warning: //p' err.txt)"
rm -r noted deep pair.yaml
is 'scratch: a fast ceiling is no news' \
    "$(script 'qdisc add dev x root netem delay 10ms')" \
    '{"cmd":"qdisc add dev x root netem delay 10ms","rc":0,"stdout":"","stderr":""}'
like 'scratch: a slow one is' "$(script 'qdisc add dev x root netem delay 100ms')" 'at most 10000'
is 'scratch: a tree may grow' "$(script 'qdisc add dev x root handle 1: drr')" \
    '{"cmd":"qdisc add dev x root handle 1: drr","rc":0,"stdout":"","stderr":""}'

pair >fast.yaml
call check fast.yaml --set jobs.0.interval=10us
like 'check: more frames than the link takes' "$(cat err.txt)" \
    'v:a: test frames offer 800 Mbit/s, 800 % of the link'
rm fast.yaml

# A line without a command is refused, under `tc:` and under `events:`; one that only shows has no reader.
for line in '' '  ' '# netem' 'tc' 'tc -s # all'; do
    pair "tc: ['qdisc add dev v:a root pfifo', '$line']" >nothing.yaml
    refused "tc: [\"$line\"]" "^nothing\.yaml:7:38: tc: \"$line\" holds no command; write one, such as \"qdisc add dev v:a " \
        check nothing.yaml
    pair "events: [{at: 1ms, tc: '$line'}]" >nothing.yaml
    refused "events: \"$line\"" "^nothing\.yaml:7:10: tc: \"$line\" holds no command; " check nothing.yaml
done
pair 'tc: ["qdisc show"]' >nothing.yaml
call check nothing.yaml
like 'tc: what it shows' "$(cat err.txt)" '^warning: nothing.yaml:7:6: `qdisc show` changes nothing'
pair 'events: [{at: 1ms, tc: qdisc add root pfifo}]' >nothing.yaml
refused 'events: no device' '^nothing.yaml:7:10: at 1ms: .*No such device; write dev DEV in front of "pfifo"' \
    check nothing.yaml
is 'events: no device is told once' "$(wc -l <err.txt)" 1
rm nothing.yaml

# Timed lines are tried before the run.
pair 'tc:' '  - "qdisc add dev v:a root handle 1: tbf rate 8mbit burst 5kb latency 50ms"' \
    '  - "qdisc add dev v:a parent 1:1 handle 2: netem delay 10ms loss 1%"' \
    'events:' '  - {at: 9ms, tc: "qdisc change dev v:a root handle 2: htb"}' \
    '  - {at: 3ms, tc: "qdisc change dev v:a parent 1:1 handle 2: netem loss 10% 25%"}' \
    '  - {at: 5ms, tc: "qdisc add dev v:b root pfifo limit"}' >events.yaml
call check events.yaml
is 'events: exit code of check' "$rc" 2
like 'events: refused by tc, with its time' "$(cat err.txt)" \
    'events.yaml:13:5: at 5ms: .*not complete.*exit code 255'
like 'events: refused by the kernel' "$(cat err.txt)" 'events.yaml:11:5: at 9ms: .*exit code 2'
is 'events: nothing else' "$(grep -c 'exit code' err.txt)" 2
like 'events: effective figure, with its time' "$(cat err.txt)" \
    'warning: events.yaml:12:5: from 3ms on: v:a: netem at 1:1: loss 10% .* 1.75%'
refused 'events: run refuses, too' 'at 5ms' run events.yaml -o never
sed -i '/at: 9ms/d; /at: 5ms/d' events.yaml
printf '%s\n' '  - {at: 8ms, tc: "-s -j qdisc show dev v:a"}' '  - {at: 8s, tc: "qdisc show"}' \
    'until: 1s' >>events.yaml
call check events.yaml
is 'events: good ones' "$rc" 0
like 'events: behind the end' "$(cat err.txt)" 'run ends at 1s .until. and never comes to .* 8s'

# explain sees the tree.
call explain events.yaml
like 'explain: rate' "$(cat out.txt)" 'effective rate  v:a: 8 Mbit/s by tbf 1:, on a link of 100 Mbit/s'
like 'explain: delay' "$(cat out.txt)" 'effective delay v:a: 10 ms on average, and 1 ms of the link'
like 'explain: loss' "$(cat out.txt)" 'effective loss  v:a: 1 % of full packets'
like 'explain: events' "$(cat out.txt)" 'timed changes   3 from 0.003 s on'
like 'explain: frames' "$(cat out.txt)" 'offered 8 Mbit/s, 100 % of what passes tbf 1:'

# The entry that names all switches is part of what the lines find.
printf '%s\n' 'schema: 1' 'topology: {kind: star, hosts: 2, link: {rate: 1gbit, delay: 1us}}' \
    'qdisc: [{dev: switches, kind: tbf, rate: 100mbit, burst: 20kB, limit: 1MB}]' \
    'jobs: [{traffic: flows, flows: [{from: h0, to: h1, bytes: 1MB}]}]' 'events:' \
    '  - {at: 5ms, tc: "qdisc change dev h1-s0:s0 root tbf rate 50mbit burst 20kb limit 1mb"}' >all.yaml
call check all.yaml
is 'events: of a device that `switches` names' "$rc" 0
sed -i 's/h1-s0:s0/h1-s0:h1/' all.yaml
refused 'events: of a host, which it does not name' 'Qdisc not found' check all.yaml
rm all.yaml

# What the run leaves.
call run events.yaml -o timed
is 'events: run' "$rc" 0
is 'events: lines of the log' "$(wc -l <timed/tc-events.jsonl)" 2
like 'events: what show printed' "$(tail -n 1 timed/tc-events.jsonl)" \
    '^\{"at_s":0.008,"cmd":"-s -j qdisc show dev v:a","rc":0,"stdout":"\[\{.*"drops'
call tc --run timed -s qdisc show dev v:a
is 'tc --run: exit code' "$rc" 0
like 'tc --run: counters' "$(cat out.txt)" 'qdisc tbf 1: root .*Sent [0-9]+ bytes .*qdisc netem 2: parent 1:1'
like 'tc --run: with the change' "$(cat out.txt)" 'loss 10% 25%'
call tc --run timed filter show dev v:a
is 'tc --run: filters' "$rc $(cat out.txt)" '0 '
call tc --run timed -j qdisc show
like 'tc --run: devices' "$(cat out.txt)" '"kind":"tbf","handle":"1:","dev":"v:a".*"kind":"noqueue"'
call tc --run timed qdisc del dev v:a root
is 'tc --run: nothing changes' "$rc" 1
like 'tc --run: a sentence' "$(cat err.txt)" 'the run is over'
call tc --run timed qdisc show dev v:c
like 'tc --run: no such device' "$(cat err.txt)" 'Cannot find device "v:c"'
refused 'tc on nothing' 'nowhere' tc --run nowhere qdisc show
refused 'tc on two things' '--study and --run' tc --run timed --study events.yaml qdisc show
call run events.yaml -o timed --force
is 'events: --force replaces the log' "$rc" 0
rm -r timed events.yaml

# Classes: the way of the traffic is the bound. 1 MB at 5 Mbit/s (1514 bytes in 2422400 ns) is 1.6 s.
printf '%s\n' 'schema: 1' 'name: tree' 'topology: {kind: pair, rate: 1gbit, delay: 1ms}' 'tc:' \
    '  - "qdisc add dev v:a root handle 1: htb default 20"' \
    '  - "class add dev v:a parent 1: classid 1:1 htb rate 50mbit"' \
    '  - "class add dev v:a parent 1:1 classid 1:10 htb rate 5mbit"' \
    '  - "class add dev v:a parent 1:1 classid 1:20 htb rate 40mbit ceil 50mbit"' \
    '  - "filter add dev v:a parent 1: basic match '"'"'cmp(u16 at 2 layer transport eq 29500)'"'"' classid 1:10"' \
    '  - "qdisc add dev v:a parent 1:10 netem delay 10ms limit 10000"' \
    'links: {"v:b": {channel: {kind: gilbert, loss: 1%, burst: 4}}}' 'transport: {kind: tcp}' \
    'jobs:' '  - {name: f, traffic: flows, flows: [{from: a, to: b, bytes: 1MB}]}' >tree.yaml
call explain tree.yaml
like 'explain: the class bounds' "$(cat out.txt)" \
    'bounding link   v:a, shaped by htb 1: class 1:10, carries 1 MB of payload an iteration: 1.6'
like 'explain: alpha-beta with its delay' "$(cat out.txt)" 'alpha-beta      1.611'
like 'explain: loss of a channel' "$(cat out.txt)" 'effective loss  v:b: 1 % of full packets'
rm tree.yaml

# Filters see each transport's own protocol and port, in the run and before it.
printf '%s\n' 'schema: 1' 'name: protocols' 'topology: {kind: pair, rate: 100mbit, delay: 1ms}' 'tc:' \
    '  - "qdisc add dev v:a root handle 1: htb"' \
    '  - "class add dev v:a parent 1: classid 1:6 htb rate 6mbit"' \
    '  - "class add dev v:a parent 1: classid 1:17 htb rate 17mbit"' \
    '  - "class add dev v:a parent 1: classid 1:4791 htb rate 47mbit"' \
    '  - "filter add dev v:a parent 1: protocol ip pref 1 u32 match ip protocol 17 0xff match ip dport 4791 0xffff classid 1:4791"' \
    '  - "filter add dev v:a parent 1: protocol ip pref 2 flower ip_proto udp classid 1:17"' \
    '  - "filter add dev v:a parent 1: protocol ip pref 3 flower ip_proto tcp dst_port 29500 classid 1:6"' \
    'jobs:' '  - {name: f, traffic: flows, flows: [{from: a, to: b, bytes: 20kB}]}' >proto.yaml
for row in tcp:6 fixed-window:17 datagram:17 ndp:17 uec:17 fec:17 rocev2:4791; do
    call explain proto.yaml --set "transport.kind=${row%:*}"
    like "filters before the run: ${row%:*}" "$(cat out.txt)" "by htb 1: class 1:${row#*:}, on a link"
    call run proto.yaml --set "transport.kind=${row%:*}" -q --force -o proto
    call tc --run proto -s class show dev v:a
    is "filters in the run: ${row%:*}" "$(awk '/^class/ {c = $3} /Sent/ && $2 + 0 {print c}' out.txt)" \
        "1:${row#*:}"
done
call tc --run proto filter show dev v:a
cp out.txt shown.txt
call tc --study proto.yaml filter show dev v:a
like 'tc --run: the filters' "$(cat shown.txt)" 'match 000012b7/0000ffff at 20'
is 'tc --run: the filters as they were' "$(cat shown.txt)" "$(cat out.txt)"
rm -r proto proto.yaml shown.txt

# Whatever bounds the rate is seen before the run: limits, slots, the pace of each flow.
printf '%s\n' 'schema: 1' 'topology: {kind: pair, rate: 100mbit, delay: 1ms}' 'transport: {kind: tcp}' \
    'tc: ["qdisc add dev v:a root pfifo"]' \
    'jobs: [{traffic: flows, flows: [{from: a, to: b, bytes: 1MB}]}]' >bound.yaml
while IFS='|' read -r words line; do
    call explain bound.yaml --set transport.streams=2 --set "tc.0=qdisc add dev v:a root $words"
    like "explain: $words" "$(cat out.txt)" "$line"
done <<'ROWS'
netem delay 100ms limit 10|effective rate  v:a: 1.211 Mbit/s by netem
netem slot 10ms 20ms packets 5|shaped by netem 8001:, carries 1 MB of payload an iteration: 1.98
netem slot 10ms 20ms bytes 5000|effective rate  v:a: 3.23 Mbit/s by netem
netem rate 5mbit 20 48 5|effective rate  v:a: 4.463 Mbit/s by netem
stab overhead 20 linklayer atm tbf rate 4mbit burst 5k latency 50ms|at 3.571 Mbit/s
netem slot distribution normal 10ms 20ms packets 5|effective rate  v:a: 4.342 Mbit/s by netem
netem corrupt 2%|effective loss  v:a: 2 % of full packets
netem limit 0|loss bound      never
bfifo limit 100|loss bound      never
tbf rate 4mbit burst 1k latency 50ms|loss bound      never
cake bandwidth 20mbit overhead 44 atm|effective rate  v:a: 17.31 Mbit/s by cake
fq maxrate 2mbit|alpha-beta      2.001 s .*effective rate  v:a: 2 Mbit/s a flow by fq 8001:
ROWS
call check bound.yaml --set 'tc.0=qdisc add dev v:a root pfifo limit 0'
like 'check: a queue that holds nothing' "$(cat err.txt)" 'v:a: every full packet is lost there'
rm bound.yaml

# A table of one's own, on one line or many; the mean of -2, -1, 0, 1 quarters of a sigma is -1 ms here.
printf '%s\n' 'schema: 1' 'topology: {kind: pair, rate: 0}' \
    'tc: ["qdisc add dev v:a root netem delay 10ms 8ms distribution own"]' \
    'jobs: [{traffic: frames, from: a, to: b, generators: [{flow: 0, size: 100, interval: 1ms, count: 9}]}]' >own.yaml
{ printf '# quarters\n'; for ((i = 0; i < 1024; i++)); do printf ' -4096 -2048 0 2048'; done; } >own.dist
call explain own.yaml
like 'a table on one long line' "$(cat out.txt)" 'effective delay v:a: 9 ms on average'
while IFS='|' read -r text sentence; do
    printf "$text" >own.dist
    refused "a table: $text" "$sentence" check own.yaml
done <<'ROWS'
#1 2\n|own.dist: no entries
1\n2x\n|own.dist:2: "2x" is no entry
1 \0002|own.dist:1: "\?2" is no entry
32768|own.dist:1: "32768" is no entry
ROWS
rm own.yaml own.dist
# What a class held when it was deleted was thrown out; the link was never down.
pair 'tc:' '  - "qdisc add dev v:a root handle 1: htb default 5"' \
    '  - "class add dev v:a parent 1: classid 1:5 htb rate 100kbit"' \
    'events: [{at: 9ms, tc: "class del dev v:a classid 1:5"}]' >class.yaml
call run class.yaml -o class
is 'class del: packets that it held' \
    "$(sqlite3 class/records.sqlite 'select distinct reason from link_drop')" purged
rm -r class class.yaml

# The words of a class are in the help.
call help qdisc htb
like 'help: words of a class' "$(cat out.txt)" 'options of a class:.*ceil: words of tc'


# An inner class keeps books of its own, as in the kernel: what left it, no drops of its leaves, also
# when these are gone.
pair 'tc:' '  - "qdisc add dev v:a root handle 1: htb default 10"' \
    '  - "class add dev v:a parent 1: classid 1:1 htb rate 4mbit"' \
    '  - "class add dev v:a parent 1:1 classid 1:10 htb rate 4mbit"' \
    '  - "class add dev v:a parent 1:1 classid 1:11 htb rate 4mbit"' \
    '  - "qdisc add dev v:a parent 1:10 handle 10: pfifo limit 5"' \
    'events: [{at: 1s, tc: "-s class show dev v:a"}, {at: 2s, tc: "class del dev v:a classid 1:10"}]' \
    'until: 3s' >books.yaml
call run books.yaml --set jobs.0.count=100 -o books
shown=$(head -n 1 books/tc-events.jsonl | sed 's/\\n/\n/g')
sent() { awk -v c="$1" '/class htb/ { at = index($0, "class htb " c " ") } /Sent/ && at { print $2, $4, $7; exit }'; }
like 'htb: a leaf with drops' "$(sent 1:10 <<<"$shown")" '^[1-9][0-9]*000 [1-9][0-9]* [1-9][0-9]*,$'
is 'htb: leaf and drops are all' "$(sent 1:10 <<<"$shown" | awk '{print $2 + $3}')" 100
is 'htb: its parent sent as much and dropped nothing' "$(sent 1:1 <<<"$shown")" \
    "$(sent 1:10 <<<"$shown" | sed 's/[0-9]*,$/0,/')"
call tc --run books -s class show dev v:a
is 'htb: nor does that change with the leaf gone' "$(sent 1:1 <out.txt)" "$(sent 1:1 <<<"$shown")"
rm -r books books.yaml

# 9,000 classes: setting up, showing and ending a run take time in proportion (0.3 s; it was 90 s).
{
    echo 'qdisc add dev x root handle 1: htb default 10'
    for ((i = 16; i < 9016; i++)); do printf 'class add dev x parent 1: classid 1:%x htb rate 10kbit\n' $i; done
    echo '-s class show dev x'
} >many.tc
{
    printf '%s\n' 'schema: 1' 'topology: {kind: pair, rate: 100mbit}' 'tc:'
    sed 's/dev x/dev v:a/; s/.*/  - "&"/; /class show/d' many.tc
    echo 'jobs: [{traffic: frames, from: a, to: b, size: 1000, interval: 1ms, count: 20}]'
} >many.yaml
for what in 'tc --script many.tc' 'run many.yaml -o many' 'tc --run many -s class show dev v:a'; do
    (ulimit -t 20; exec "$gw" $what >out.txt 2>err.txt)
    is "9,000 classes: $what" $? 0
    case $what in *script*) is '9,000 classes: told of all' "$(grep -c 'quantum of class' out.txt)" 9000 ;; esac
done
is '9,000 classes: shown' "$(grep -c Sent out.txt)" 9000
call check many.yaml
is '9,000 classes: check speaks once of their quanta' "$(grep -c 'quantum of class .*; there is something to say of 8999 other classes' err.txt)" 1
rm -r many.tc many.yaml many

# Words that tc takes and that mean something else, or nothing: a sentence with what is in force.
while IFS='|' read -r words said; do
    like "note: $words" "$(script "qdisc add dev x root $words")" "\"rc\":0,.*\"notes\":\\[\"x: [^\"]*$said"
done <<'ROWS'
netem delay nan|netem: `delay nan` counts as 0ms: tc keeps whole microseconds
netem delay 0.5us|`delay 0.5us` counts as 0ms
netem delay 10ms 1.9us|`delay 1.9us` counts as 0.001ms
netem loss 0.00000001%|loss percent 0.00000001% counts as 0
tbf rate 1mbit burst 10k latency -5ms|tbf: `latency -5ms` counts as 4294962ms
tbf rate 1mbit burst 10k limit 1000|frames above 1000 bytes are dropped, because no more may wait
codel target 5000s|codel: `target 5000s` counts as 705032.7ms
codel limit 0|`limit 0` is not sent by tc: 1000 on a new qdisc
fq_codel interval 0|`interval 0` is not sent by tc: 100ms on a new qdisc
fq_codel quantum 10|a quantum of 10 bytes counts as 256, the least
fq_pie quantum 10|a quantum of 10 bytes counts as 256, the least
ets bands 3 quanta 2000000 1514 1514|a quantum of 2000000 bytes counts as 1048576, the most
pie target 0|`target 0` is not sent by tc: 15ms on a new qdisc
fq maxrate 100mbit nopacing|maxrate 100 Mbit/s has no effect with nopacing
pfifo limit 0|limit 0: every frame is dropped
bfifo limit 100|no full frame of 1514 bytes ever gets in
ROWS
for words in 'netem delay 10us' 'codel target 5ms interval 100ms' 'fq_codel quantum 300' 'tbf rate 1mbit burst 10k latency 50ms' \
    'pfifo limit 1' 'bfifo limit 1514' 'pie target 1ms' 'netem delay 0 loss 0%'; do
    is "no such note: $words" "$(script "qdisc add dev x root $words" | grep -c 'counts as\|not sent\|dropped\|gets in')" 0
done
like 'note: a ceil below the rate' "$(script 'qdisc add dev x root handle 1: htb
class add dev x parent 1: classid 1:1 htb rate 10mbit ceil 4mbit')" \
    'htb: ceil of class 1:1 is below its rate: it sends at most 4 Mbit/s, its ceil, and not 10'
is 'note: a change with good words takes it back' "$(script 'qdisc add dev x root codel target nan
qdisc change dev x root codel target 5ms' | grep -c notes)" 1
pair 'tc: ["qdisc add dev v:a root codel target nan"]' 'qdisc: [{dev: "v:b", kind: netem, delay: nan}]' >note.yaml
for verb in check explain; do
    call $verb note.yaml
    like "note: $verb" "$(cat err.txt)" 'v:a: codel: `target nan` is not sent by tc: 5ms'
    like "note: $verb, of a map" "$(cat err.txt)" 'v:b: netem: `delay nan` counts as 0ms'
done
rm note.yaml

# A burst below what waits: nothing can leave, as in the kernel; the run says so instead of going on
# for ever. A burst that suffices again lets all go. Also below htb, above netem, and for a peak rate.
stuck_at() {
    printf '%s\n' 'schema: 1' 'topology: {kind: pair, rate: 10mbit}' 'jobs:' \
        '  - {name: p, traffic: frames, from: a, to: b, size: 1500, interval: 100us, count: 300}' 'tc:'
    printf '  - "%s"\n' "${@:3}"
    printf 'events:\n  - {at: 10ms, tc: "qdisc change dev v:a %s tbf rate 1mbit %s limit 1mb"}\n' "$1" "$2"
}
tbf='handle 2: tbf rate 1mbit burst 2k limit 1mb'
while IFS='|' read -r place new tree; do
    IFS=';' read -ra lines <<<"$tree"
    stuck_at "$place" "$new" "${lines[@]}" >stuck.yaml
    call check stuck.yaml
    like "stuck: $tree: check" "$(cat err.txt)" 'frames above [0-9]+ bytes are dropped, because .*; those that a change finds waiting stay, and all behind them'
    timeout 60 "$gw" run stuck.yaml --force -o stuck >out.txt 2>err.txt
    is "stuck: $tree: exit code" $? 3
    like "stuck: $tree: it says so" "$(cat err.txt)" 'nothing can happen any more at simulated 0\.029900 s'
    printf '  - {at: 1s, tc: "qdisc change dev v:a %s tbf rate 1mbit burst 2k limit 1mb"}\n' "$place" >>stuck.yaml
    timeout 60 "$gw" run stuck.yaml --force -o stuck >out.txt 2>err.txt
    is "stuck: $tree: goes on" $? 0
    like "stuck: $tree: all leave" "$(cat out.txt)" '101 packets delivered, 199 dropped'
done <<ROWS
root handle 2:|burst 2|qdisc add dev v:a root $tbf
root handle 2:|burst 2k peakrate 2mbit mtu 2|qdisc add dev v:a root $tbf
parent 1:1 handle 2:|burst 2|qdisc add dev v:a root handle 1: htb default 1;class add dev v:a parent 1: classid 1:1 htb rate 5mbit;qdisc add dev v:a parent 1:1 $tbf
root handle 2:|burst 2|qdisc add dev v:a root $tbf;qdisc add dev v:a parent 2:1 handle 3: netem delay 1ms
ROWS
rm -r stuck stuck.yaml

# What a change throws out is purged; no link was down.
while IFS='|' read -r lost line tree; do
    IFS=';' read -ra lines <<<"$tree"
    stuck_at root 'burst 2k' "${lines[@]}" | sed "s/tc: \"qdisc change.*/tc: \"$line\"}/" >purge.yaml
    call run purge.yaml --force -o purge
    is "purged by $line: exit code" "$rc" 0
    is "purged by $line" "$(sqlite3 purge/records.sqlite 'select reason, sum(pkts) from link_drop group by 1')" "purged|$lost"
done <<'ROWS'
92|qdisc change dev v:a root handle 1: ets bands 1|qdisc add dev v:a root handle 1: ets bands 3;filter add dev v:a parent 1: matchall classid 1:3
99|class add dev v:a parent 1:1 classid 1:2 htb rate 1mbit|qdisc add dev v:a root handle 1: htb default 1;class add dev v:a parent 1: classid 1:1 htb rate 1mbit;qdisc add dev v:a parent 1:1 handle 2: netem delay 1ms
ROWS
rm -r purge purge.yaml

# A zero byte is a matter of its line alone.
is 'script: a zero byte' "$(printf 'qdisc add dev x root pfifo\n# \nqdisc add dev y ro\0ot pfifo \\\n limit 3\n-j qdisc show dev x\n' | "$gw" tc --script -)" \
    '{"cmd":"qdisc add dev x root pfifo","rc":0,"stdout":"","stderr":""}
{"cmd":"qdisc add dev y ro?ot pfifo  limit 3","rc":1,"stdout":"","stderr":"line 3 holds a zero byte; a script is text"}
{"cmd":"-j qdisc show dev x","rc":0,"stdout":"[{\"kind\":\"pfifo\",\"handle\":\"8001:\",\"root\":true,\"refcnt\":2,\"options\":{\"limit\":1000}}]\n","stderr":""}'
# What netem shows of `limit auto` can be typed back; tc shows the number itself as -1.
is 'netem: limit auto' "$(script 'qdisc add dev x root netem limit auto delay 1ms
qdisc add dev y root netem limit 4294967295
qdisc show' | grep -o 'limit [^ ]*' | tail -n 2 | tr '\n' ' ')" 'limit auto limit -1\n","stderr":""} '

# Without a handle, add and change of another kind hang up the new one; `link` does not.
is 'another kind, no handle' "$(script 'qdisc add dev x root pfifo
qdisc add dev x root netem delay 1ms
qdisc change dev x root sfq
qdisc link dev x root tbf rate 1mbit burst 10k latency 1s
qdisc add dev x root sfq
qdisc add dev x root handle 7: pfifo
qdisc replace dev x root handle 1: prio
qdisc add dev x parent 1:1 pfifo
qdisc change dev x parent 1:1 netem
qdisc change dev x parent 1:2 netem
qdisc show dev x' | sed 's/.*"rc":\([0-9]*\),"stdout":"\(.*\)","stderr.*/\1 \2/; s/ *\\n/;/g')" '0 
0 
0 
2 
2 
2 
0 
0 
0 
2 
0 qdisc prio 1: root refcnt 2 bands 3 priomap 1 2 2 2 1 2 0 0 1 1 1 1 1 1 1 1;qdisc netem 8005: parent 1:1 limit 1000;'
is 'ffff: is one place' "$(script 'qdisc add dev x root handle ffff: pfifo
qdisc add dev x ingress
qdisc add dev y clsact
qdisc add dev y root handle ffff: pfifo
qdisc replace dev y root handle ffff: pfifo' | grep -o '"rc":.' | tr -d '\n')" '"rc":0"rc":2"rc":0"rc":2"rc":2'
is 'classes of drr without a number' "$(script 'qdisc add dev x root handle 1: drr
class add dev x parent 1: classid 1:0 drr
class add dev x parent 1: drr quantum 500
class add dev x parent 1: drr quantum 600
class replace dev x parent 1: drr quantum 700
class change dev x parent 1: drr quantum 700
class change dev x parent 1: classid 1: drr quantum 800
class add dev x parent 1: classid 1:5 drr
class show dev x' | sed 's/.*"rc":\([0-9]*\),"stdout":"\(.*\)","stderr.*/\1 \2/; s/ *\\n/;/g')" '0 
0 
0 
0 
0 
2 
0 
0 
0 class drr 1: root quantum 800b;class drr root quantum 500b;class drr root quantum 600b;class drr root quantum 700b;class drr 1:5 root quantum 1514b;'

# tag(flow ...) is the number of the connection, from 0: the first one is never above 0.
printf '%s\n' 'schema: 1' 'topology: {kind: star, hosts: 4, link: {rate: 1gbit, delay: 10us}}' 'transport: {kind: tcp}' \
    'jobs: [{traffic: flows, flows: [{from: h0, to: h1, bytes: 10kB}, {from: h2, to: h3, bytes: 10kB, start: 1ms}]}]' \
    'tc:' >flow.yaml
for h in 0 2; do
    printf '  - "%s"\n' "qdisc add dev h$h-s0:h$h root handle 1: prio" \
        "filter add dev h$h-s0:h$h parent 1: pref 1 basic match 'tag(flow gt 0)' classid 1:1" \
        "filter add dev h$h-s0:h$h parent 1: pref 2 matchall classid 1:3" >>flow.yaml
done
for seed in 1 2; do
    call run flow.yaml --seed $seed --force -o flow
    is "tag(flow): what passed, seed $seed" "$(sqlite3 flow/records.sqlite "select link.name, owner, conn from stat
        join link using(link) join flow on flow.src_node = link.from_node where owner like 'class:%' and
        stat.name = 'sent_pkts' and value > 9 order by 1" | tr '\n' ' ')" \
        'h0-s0:h0|class:prio:1:3|0 h2-s0:h2|class:prio:1:1|1 '
done
rm -r flow flow.yaml
