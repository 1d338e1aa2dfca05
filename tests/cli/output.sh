# output.sh - output directories, --json, cut-off runs, a full disk; sourced by run.sh

# said: standard error without heartbeats and without the word on a slow build
said() { grep -v -e '^simulated ' -e '^warning: this is a [a-z]* build' err.txt; }

good_study >study.yaml

# A name of our own, the next free number, and nothing written over.
call run study.yaml --quiet
is 'quiet run: exit code' "$rc" 0
is 'quiet run: says nothing' "$(cat out.txt err.txt)" ''
is 'directory is named after the study' "$(ls -d small-one-*)" small-one-1
[ -s small-one-1/records.sqlite ] && [ -s small-one-1/study.yaml ]
is 'records and effective study are there' $? 0
sum=$(cat small-one-1/* | cksum)
call run study.yaml --quiet
is 'second run takes the next number' "$(echo small-one-*)" 'small-one-1 small-one-2'
is 'first run stands as it was' "$(cat small-one-1/* | cksum)" "$sum"
call digest small-one-1
first=$(cat out.txt)
like 'digest' "$first" '^[0-9a-f]{64}$'
call digest small-one-2
is 'same study, same digest' "$(cat out.txt)" "$first"
call run small-one-1/study.yaml --quiet -o again
is 'the effective study runs' "$rc" 0
call run study.yaml --quiet -o again --seed 8
is 'an output that is not empty is refused' "$rc" 2
echo note >again/note.txt
call run study.yaml --quiet -o again --seed 8 --force
is '--force replaces our files' "$rc" 0
is '--force keeps others' "$(cat again/note.txt)" note

# --force takes what the record names and nothing else, and gives it back when the run fails.
cap='capture=[{dev: "h0-s0:h0"}]'
call run study.yaml --quiet -o own --set "$cap"
is 'an output with a capture' "$(ls own | tr '\n' ' ')" 'h0-s0-h0.pcap records.sqlite study.yaml '
echo mine >own/mine.pcap
echo mine >own/packets-mine.csv
ln -s ../study.yaml own/link.pcap
call run study.yaml --quiet -o own --force
is '--force with captures: exit code' "$rc" 0
is '--force takes its own capture, not the neighbours' "$(ls -A own | tr '\n' ' ')" \
    'link.pcap mine.pcap packets-mine.csv records.sqlite study.yaml '
call run study.yaml --quiet -o own --force --set "$cap"
sum=$(cat own/* | cksum)
call run own/study.yaml --quiet -o own --force
is '--force over the study that runs: refused' "$rc" 2
like '--force over the study that runs: sentence' "$(cat err.txt)" 'own/study\.yaml: is the study to run'
echo '# edited' >>own/study.yaml
call run study.yaml --quiet -o own --force
is '--force over an edited study: refused' "$rc" 2
like '--force over an edited study: sentence' "$(cat err.txt)" 'not as the earlier run wrote it'
sed -i '$d' own/study.yaml
call run study.yaml --quiet -o own --force --set 'capture=[{dev: "h0-s0:h0"}, {dev: "h0-s0:s0"}]' \
    --set jobs.p.bytes=1000000TB --set topology.link.rate=1bit --set transport=ideal
is '--force and a run that fails: exit code' "$rc" 2
is '--force and a run that fails: all is as it was' "$(cat own/* | cksum)" "$sum"
is '--force and a run that fails: nothing else' "$(ls -A own | tr '\n' ' ')" \
    'h0-s0-h0.pcap link.pcap mine.pcap packets-mine.csv records.sqlite study.yaml '
mkdir foreign
cp own/study.yaml foreign
echo 'SQLite format 3' >foreign/records.sqlite
call run study.yaml --quiet -o foreign --force
is '--force over a foreign database: refused' "$rc" 2
is '--force over a foreign database: stands' "$(ls foreign | tr '\n' ' ')" \
    'records.sqlite study.yaml '
mkdir linked
ln -s ../own/records.sqlite linked/records.sqlite
call run study.yaml --quiet -o linked --force
is '--force over a link to a record: refused' "$rc" 2
mkdir left
: >left/records.sqlite-journal
call run study.yaml --quiet -o left
is 'what a run left that could not begin is no output' "$rc" 0

# Names that become one file's name.
printf '%s\n' 'schema: 1' 'name: alike' 'topology:' '  graph:' '    nodes: [a, b]' '    links:' \
    '      - {name: "p q", ends: [a, b], rate: 1mbit}' '      - {name: p-q, ends: [a, b], rate: 1mbit}' \
    'jobs: [{name: j, traffic: frames, from: a, to: b, size: 100, interval: 1ms, count: 3}]' \
    'capture: [{dev: "p q:a"}, {dev: "p-q:a"}]' 'log: [{dev: "p q:a"}, {dev: "p-q:a"}]' >alike.yaml
call run alike.yaml --quiet -o alike
is 'devices with names alike: exit code' "$rc" 0
is 'devices with names alike: a file each' "$(ls alike | grep -c '^\(packets-\)\?p.*[pv]$')" 4
rm -r alike alike.yaml

mkdir empty
call run study.yaml --quiet -o empty
is 'an empty directory is taken' "$rc" 0

# One JSON object with just these keys.
call run study.yaml --json -o json
is 'json run: exit code' "$rc" 0
is 'json: one line' "$(wc -l <out.txt)" 1
keys=$(grep -o '"[a-z0-9_]*":' out.txt | tr -d '":' | tr '\n' ' ')
is 'json: keys' "$keys" "iterations count mean_s p50_s p99_s flows count bytes delivered_bytes \
fct_p50_s fct_p99_s packets hops delivered dropped events sim_s wall_s cpu_s setup_s peak_rss_bytes seed \
version output "
like 'json: four flows of 1 MB' "$(cat out.txt)" \
    '"flows":\{"count":4,"bytes":4000000,"delivered_bytes":4000000,'
if grep -q '"fct_p50_s":0\.000[0-9]*,' out.txt; then ok; else fail 'json: median of the FCT'; fi
like 'json: output' "$(cat out.txt)" '"output":"json"'

frames='{name: f, traffic: frames, from: h0, to: h1,'
frames="$frames generators: [{size: 99, interval: 1ms, count: 9}]}"
call run study.yaml --json -o json0 --set "jobs=[$frames]"
like 'json: no iterations, so no mean' "$(cat out.txt)" \
    '"iterations":\{"count":0,"mean_s":null,"p50_s":null,"p99_s":null\}'
like 'json: no flows, so no quantile' "$(cat out.txt)" '"fct_p50_s":null,"fct_p99_s":null'

# Cut off by `until`: what not every rank ended is unfinished; each job has a line of its own.
cat >cut.yaml <<'YAML'
schema: 1
until: 1s
topology: {kind: star, hosts: 4, link: {rate: 1gbit, delay: 10us}}
transport: {kind: tcp}
jobs:
  - name: f
    traffic: flows
    flows: [{from: h0, to: h1, bytes: 1MB}, {from: h2, to: h3, bytes: 1GB}]
  - {name: g, traffic: incast, to: h0, from: [h1], bytes: 1MB, iterations: 2}
YAML
call run cut.yaml -o cut
like 'until: the line of the job that is cut off' "$(cat out.txt)" \
    $'\niteration time  f: 1 unfinished\n'
like 'until: the line of the job that ended' "$(cat out.txt)" \
    $'\niteration time  g: mean [^\n]* of 2 iterations\n'
call analyze cut --csv cut-tables
like 'until: unfinished 1 of 4 ranks' "$(cat cut-tables/iteration.csv)" \
    $'^job,iterations,unfinished,ranks,[^\n]*\nf,0,1,4,'

# Expectations.
call run study.yaml -q --set 'expect=["flows.count == 4", "drops.queue == 0"]' -o e1
is 'expectation that holds' "$rc" 0
call run study.yaml -q --set 'expect=["flows.count == 5"]' -o e2
is 'expectation that fails: exit code' "$rc" 1
like 'expectation that fails: sentence' "$(cat err.txt)" 'flows\.count == 5.*4'

# A capture, named on the command line.
call run study.yaml -o cap --pcap 'h0-s0:h0,tcp'
is 'capture: exit code' "$rc" 0
pcap=$(echo cap/*.pcap)
is 'capture: nanosecond magic' "$(od -An -tx1 -N4 "$pcap" | tr -d ' ')" 4d3cb2a1
like 'capture: its path is told' "$(cat out.txt)" "$pcap"

# kill -9 in the middle: the record opens and says that it is incomplete.
long_study >long.yaml
"$gw" run long.yaml -o killed >/dev/null 2>err.txt </dev/null &
pid=$!
sleep 3
kill -9 $pid
wait $pid 2>/dev/null
call analyze killed
is 'analyze after kill -9: exit code' "$rc" 0
like 'analyze after kill -9: says so' "$(cat err.txt)" '^incomplete: killed: '
call digest killed
like 'digest after kill -9: says so' "$(cat err.txt)" '^incomplete: killed: '

# Ctrl-C: a clean end.
"$gw" run long.yaml -o stopped >out.txt 2>err.txt </dev/null &
pid=$!
sleep 3
kill -TERM $pid
wait $pid
is 'stopped run: exit code' $? 3
like 'stopped run: says so' "$(cat err.txt)" 'stopped at [0-9.e+-]+ s of simulated time'
like 'stopped run: heartbeat came first' "$(grep -m1 '^simulated' err.txt)" 'M events/s'
call analyze stopped
like 'analyze of a stopped run' "$(cat err.txt)" '^incomplete: stopped: '

# A full disk: a small file system in a mount namespace of its own.
mkdir full
if unshare -m sh -c 'mount -t tmpfs -o size=256k tmpfs full' 2>/dev/null; then
    unshare -m sh -c "mount -t tmpfs -o size=256k tmpfs full && exec '$gw' run study.yaml \
        --set jobs.p.bytes=100MB --pcap h0-s0:h0 -o full/out" >out.txt 2>err.txt </dev/null
    is 'disk full: exit code' $? 2
    is 'disk full: one line' "$(said | wc -l)" 1
    like 'disk full: sentence' "$(said)" \
        'full/out.*[Nn]o space|full/out.*full'
else
    skip 'disk full: no mount namespace here'
fi
if [ -c /dev/full ]; then
    "$gw" run study.yaml --json -o devfull >/dev/full 2>err.txt </dev/null
    is 'full standard output: exit code' $? 2
    like 'full standard output: sentence' "$(said)" '^standard output: '
fi
