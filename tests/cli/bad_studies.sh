# bad_studies.sh - studies that must be refused, each in one sentence; sourced by run.sh

top='topology: {kind: star, hosts: 4, link: {rate: 10gbit, delay: 1us}}'
tcp='transport: {kind: tcp, cc: cubic}'
job='jobs: [{name: p, traffic: permutation, bytes: 1MB}]'

# study [LINE...]: writes study.yaml, these lines behind its head; bad NAME REGEX tests it
study() { printf '%s\n' 'schema: 1' 'name: bad' "$@" >study.yaml; }

study "$top" "$tcp" 'jobz: []' "$job"
bad 'unknown key' 'jobz.*jobs'
study "$top" 'transport: {kind: tcp, cc: cubic, streems: 4}' "$job"
bad 'unknown key of a plugin' 'streems.*streams'
study 'topology: {kind: star, hosts: 4, link: {rate: 10, delay: 1us}}' "$tcp" "$job"
bad 'unit missing' '10.*unit'
study 'topology: {kind: star, hosts: 4, link: {rate: 10gbit, delay: 5}}' "$tcp" "$job"
bad 'unit missing on a time' '5.*unit'
study 'topology: {kind: star, hosts: 4, link: {rate: -10gbit, delay: 1us}}' "$tcp" "$job"
bad 'negative rate' '-10gbit'
study 'topology: {kind: star, hosts: 0, link: {rate: 10gbit, delay: 1us}}' "$tcp" "$job"
bad 'no hosts' '0'
study 'topology: {kind: sttar, hosts: 4, link: {rate: 10gbit, delay: 1us}}' "$tcp" "$job"
bad 'unknown topology' 'sttar.*star'
study "$top" 'transport: {kind: tpc}' "$job"
bad 'unknown transport' 'tpc.*tcp'
study "$top" 'transport: {kind: tcp, cc: cubicc}' "$job"
bad 'unknown congestion control' 'cubicc.*cubic'
study "$top" "$tcp" 'jobs: [{name: p, traffic: permutatoin, bytes: 1MB}]'
bad 'unknown traffic' 'permutatoin.*permutation'
study "$top" "$tcp" 'jobs:' \
    '  - {name: t, traffic: data-parallel, model: resnet5, ranks: all, iterations: 1}'
bad 'unknown model' 'resnet5: no such file; tried \./resnet5, \./resnet5\.csv; the models .*resnet50'
study "$top" "$tcp" 'jobs:' \
    '  - {name: t, traffic: data-parallel, model: ./no/such.csv, ranks: all, iterations: 1}'
bad 'model file missing' 'no/such\.csv'
study 'topology: {file: nowhere.graphml}' "$tcp" "$job"
bad 'graph file missing' 'nowhere\.graphml: no such file; tried \./nowhere\.graphml(; the graphs .*)?$'
study "$top" "$tcp" 'jobs:' '  - {name: i, traffic: incast, to: h9, bytes: 1MB}'
bad 'rank that is no host' 'h9'
study "$top" "$tcp" 'jobs:' \
    '  - {name: t, traffic: data-parallel, model: resnet50, ranks: [h0, h1, h7], iterations: 1}'
bad 'rank out of range' 'h7'
study 'topology: {kind: star, hosts: 4, link: {rate: 10gbit, delay: 1us, loss: 150%}}' "$tcp" \
    "$job"
bad 'bad percentage' '150%'
study 'topology: {kind: star, hosts: 4, link: {rate: 10gbit, delay: 1us, loss: 0.5}}' "$tcp" \
    "$job"
bad 'percentage without sign' '0\.5'
study "$top" "$tcp" "$tcp" "$job"
bad 'key twice' 'transport'
study "$top" 'transport: [{kind: tcp}, {kind: ideal}]' "$job"
bad 'two transports' 'transport'
for log in '{}' '{job: p}' '{kind: packets}'; do
    study "$top" "$tcp" "$job" "log: [$log]"
    bad "log $log" 'needs `dev:`'
done
study "$top" "$tcp" "$job" 'log: [{kind: flows}]'
bad 'log of no job' 'needs `job:`'
study "$top" "$tcp" "$job" 'links: {h0-s0: {loss: 1%, channel: {kind: ber, ber: 1e-9}}}'
bad 'loss beside a channel' 'loss: 0.*beside the channel'
study 'topology: {kind: pair, rate: 1gbit}' "$tcp" 'jobs:' \
    '  - {name: p, traffic: frames, from: a, to: b, size: 9000, interval: 1ms, count: 3}'
bad 'frames beyond the mtu' 'frames of 9000 bytes do not fit link v, whose mtu is 1500'
study 'topology: {kind: pair, rate: 1gbit}' "$tcp" 'jobs:' '  - {name: p, traffic: frames, from: a, to: b, generators: [' \
    '    {size: 900, interval: 1ms, count: 3},' '    {size: 1515, interval: 1ms, count: 3}]}'
refused 'the generator whose frames are beyond the mtu' '^study\.yaml:8:5: frames of 1515 bytes' run study.yaml
study 'topology: {kind: pair, rate: 1gbit}' "$tcp" 'jobs:' \
    '  - {name: p, traffic: frames, from: a, to: b, size: 900, interval: 1000s, count: 18448}'
bad 'frames beyond the end of time' 'the last of 18448 frames would come 214 days after the first'
for tp in 'tcp, cc: ""|`cc` is empty' 'rocev2, cc: ""|`cc` is empty; say none' \
    'fec, k: 10, n: 5|n = 5 with k = 10; n = 11 to 42' \
    'rocev2, cc: hpcc|an IP MTU of 68 bytes leaves no room for payload; allowed are 112'; do
    study 'topology: {kind: pair, rate: 1gbit, mtu: 68}' "transport: {kind: ${tp%|*}}" \
        'jobs: [{name: f, traffic: flows, flows: [{from: a, to: b, bytes: 9kB}]}]'
    bad "transport ${tp%|*}" "transport ${tp%%,*}: ${tp#*|}"
done
# What only shows while the study is played leaves nothing either, whoever made the directory.
study 'topology: {graph: {nodes: [a, s, b], hosts: [a, b], links: [' \
    '  {name: in, ends: [a, s], rate: 1gbit, mtu: 68}, {name: out, ends: [s, b], rate: 1gbit}]}}' \
    'transport: {kind: rocev2, cc: hpcc}' 'capture: [{dev: "in:a"}]' \
    'jobs: [{name: f, traffic: flows, flows: [{from: a, to: b, bytes: 9kB}]}]'
mkdir empty
for out in new empty; do
    refused "an mtu on the way, into $out" '^flow 0 from a to b: transport rocev2: .* 68 bytes' \
        run study.yaml -q -o $out
done
refused 'an mtu on the way: check' '^link in: transport rocev2: .* 68 bytes' check study.yaml
rmdir empty
for gen in 'interval: 1ms, load: 80%, ' 'interval: 1ms, rate: 1mbit, '; do
    study 'topology: {kind: pair, rate: 1gbit}' "$tcp" 'jobs:' \
        "  - {name: p, traffic: frames, from: a, to: b, size: 900, ${gen}count: 3}"
    bad "frames with $gen" '`interval` and `(load|rate)` both say how often'
done
for channel in '{kind: outage}' '{kind: outage, every: 1s, for: 2s}' '{kind: trace, file: no.csv}'; do
    study "$top" "$tcp" "$job" "links: {h0-s0: {channel: $channel}}"
    bad "channel $channel" '(outage|no\.csv): '
done
study 'topology: {kind: pair, rate: 1gbit}' "$tcp" "$job" 'qdisc: [{dev: switches, kind: pfifo}]'
bad 'switches without one' 'no switch.*v:a'
study "$top" "$tcp" 'jobs:' '  - {name: p, traffic: permutation, bytes: [1MB, 2MB]}'
bad 'list for a scalar' 'bytes'
study "$top" "$tcp" 'jobs:' '  - {name: p, traffic: permutation, bytes: 99999999999999999999999}'
bad 'huge number' '99999999999999999999999'
study "$top" "$tcp" 'jobs:' '  - {name: p, traffic: permutation, bytes: 1MB}' \
    '  - {name: p, traffic: permutation, bytes: 1MB}'
bad 'two jobs of one name' 'p'
study "$top" "$tcp" "$job" 'capture: [{dev: "h0-s0:h0", filter: "tcp prt 80"}]'
bad 'bad filter' 'tcp prt 80'
study "$top" "$tcp" "$job" 'capture: [{dev: "nolink:a"}]'
bad 'unknown device' 'nolink'
study "$top" "$tcp" "$job" 'expect: ["iterations.mean_s in 0.9.."]'
bad 'bad expectation' 'iterations\.mean_s'
study "$top" "$tcp" "$job" 'until: 5'
bad 'until without unit' '5.*unit'
study "$top" "$tcp" 'jobs: [{name: p, traffic: permutation, bytes: 1MB'
bad 'truncated YAML' ''
printf 'schema: 1\nname: "never closed\n' >study.yaml
bad 'open quote' ''
: >study.yaml
bad 'empty file' ''
printf '\n# nothing but a comment\n' >study.yaml
bad 'only a comment' ''
printf -- '- 1\n- 2\n' >study.yaml
bad 'a list as a study' ''
study "$top" "$tcp"
bad 'no jobs' 'jobs must be given, it has no default'
study "$top" "$tcp" 'jobs: [{name: p, traffic: permutation, bytes: 1MB, transport: ideal}]'
bad 'a transport by its word alone' 'a map is expected here; write \{kind: ideal\}'
printf 'schema: 99\nname: x\n%s\n%s\n%s\n' "$top" "$tcp" "$job" >study.yaml
bad 'schema of the future' '99'
study 'topology:' '  graph:' '    nodes: [a, b, s, c, d, t]' '    links:' \
    '      - {ends: [a, s], rate: 1gbit, delay: 1us}' \
    '      - {ends: [b, s], rate: 1gbit, delay: 1us}' \
    '      - {ends: [c, t], rate: 1gbit, delay: 1us}' \
    '      - {ends: [d, t], rate: 1gbit, delay: 1us}' "$tcp" \
    'jobs:' '  - {name: f, traffic: flows, flows: [{from: a, to: c, bytes: 1MB}]}'
bad 'pair without a path' 'a.*c'

good_study | sed '/^jobs/,$d' >study.yaml
cat >>study.yaml <<'YAML'
jobs:
  - name: f
    traffic: flows
    flows:
      - {from: h0, to: h1, bytes: 1MB, after: 3}
      - {from: h1, to: h2, bytes: 1MB, after: 1}
      - {from: h2, to: h0, bytes: 1MB, after: 2}
YAML
cp study.yaml loop.yaml
refused 'loop in dependencies' '^loop\.yaml:[0-9]+:.* wait for each other in a loop' run loop.yaml
rm study.yaml loop.yaml

good_study >study.yaml
echo 'qdisc: [{dev: "h0-s0:h0", parent: "1:", kind: netem, delay: 1ms}]' >>study.yaml
bad 'a tree in a map' '`parent`: .*`tc:`'
good_study >study.yaml
echo 'qdisc: [{dev: "h0-s0:h0", kind: pfifo}, {dev: "h0-s0:h0", kind: netem}]' >>study.yaml
bad 'two entries for one device' 'has its discipline at study\.yaml:[0-9]+:'

# Places outside the file.
good_study >study.yaml
refused 'study missing' '^nowhere\.yaml: ' run nowhere.yaml
refused 'study is a directory' '^\.: ' run .
refused '--set on an unknown path' 'hostz.*hosts' run study.yaml --set topology.hostz=3
refused '--set without a value' 'topology\.hosts' run study.yaml --set topology.hosts
refused '--pcap on a bad device' 'nolink' run study.yaml --pcap nolink:a
refused '--seed that is no number' 'seed.*12x' run study.yaml --seed 12x
refused '--threads beyond one' 'threads 4' run study.yaml --threads 4
refused 'unknown option' '--jsno.*--json' run study.yaml --jsno
refused 'output below a file' 'study\.yaml/out: ' run study.yaml -o study.yaml/out
refused 'output below nothing' 'no/such/place: ' run study.yaml -o no/such/place
refused 'output where no directory can be' '/proc/x: a directory cannot be made there' \
    run study.yaml -o /proc/x
refused 'output is a file' 'study\.yaml: ' run study.yaml -o study.yaml
mkdir taken && echo mine >taken/thesis.txt
refused 'output not empty' 'taken: .*thesis\.txt' run study.yaml -o taken
refused 'output not ours, even with --force' 'taken: .*thesis\.txt' \
    run study.yaml -o taken --force
is 'a stranger in the output survives' "$(cat taken/thesis.txt)" mine
rm -r taken
if [ "$(id -u)" = 0 ]; then
    skip 'directory without write permission: root may write everywhere'
else
    mkdir closed && chmod 555 closed
    refused 'directory not writable' 'closed/out: ' run study.yaml -o closed/out
    refused 'output not writable' 'closed: ' run study.yaml -o closed
    chmod 755 closed && rmdir closed
fi

study "$top" "$tcp" "$job" 'records: {links: 1ps}'
bad 'link samples without end' 'links = 1ps: at least 1us'
