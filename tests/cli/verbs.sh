# verbs.sh - dispatch, help, list, convert; sourced by run.sh

refused 'unknown verb' 'unknown verb rnu; did you mean run\?' rnu
refused 'verb of later' 'unknown verb emulate' emulate study.yaml
refused 'operand missing' 'STUDY is missing' run
refused 'operand too many' 'second\.yaml is one word too many' run study.yaml second.yaml
refused 'option without its value' '--output wants a value' run study.yaml -o
refused 'flag with a value' '--json takes no value' run study.yaml --json=yes
refused 'unknown global option' 'unknown option --verison; did you mean --version\?' --verison
refused 'plugin missing' 'nowhere\.so' --plugin ./nowhere.so list
refused 'unknown kind' 'unknown kind qdsic; did you mean qdisc\?' list qdsic
refused 'unknown plugin' 'codell|pfifoo' help qdisc pfifoo
refused 'analyze of nothing' 'nowhere' analyze nowhere
refused 'analyze of no record' 'study\.yaml' analyze study.yaml
refused 'digest of nothing' 'nowhere' digest nowhere

call --version
like 'version' "$(cat out.txt)" '^gradwire [0-9]'
call --help
is 'help: exit code' "$rc" 0
for verb in check run explain analyze convert digest tc list help; do
    like "help names $verb" "$(cat out.txt)" "  $verb "
    "$gw" help $verb >verb.txt 2>&1 && grep -q "^usage: gradwire $verb" verb.txt
    is "help $verb" $? 0
    "$gw" $verb --help | cmp -s - verb.txt
    is "$verb --help says the same" $? 0
done
call
is 'no verb: exit code' "$rc" 2

call list
for kind in qdisc channel transport cc topology traffic collective analysis; do
    like "list has $kind" "$(cat out.txt)" "$kind"
done
call list topology --json
like 'list --json' "$(cat out.txt)" '"name": "star"'
if grep -q '"kind": "qdisc"' out.txt; then fail 'list topology shows qdiscs'; else ok; fi
call help qdisc pfifo
like 'help qdisc pfifo: option' "$(cat out.txt)" 'limit: count'
call help topology star
like 'help topology star: unit and default' "$(cat out.txt)" 'rate: rate with unit'

# Parts of the study file: listed, and each with the keys that the reader knows.
call help
is 'help without words: exit code' "$rc" 0
for part in study job links route event events frames packets capture log records expect; do
    like "help lists $part" "$(tail -n 6 out.txt)" " $part"
    "$gw" help $part >part.txt 2>&1
    is "help $part: exit code" $? 0
done
for row in study:until job:stragglers links:loss events:at packets:dev route:hash capture:filter log:dev records:flows; do
    "$gw" help ${row%:*} >part.txt 2>&1
    like "help ${row%:*} knows ${row#*:}" "$(cat part.txt)" "  ${row#*:}: "
done
call help links
like 'help links: the queue of a port that has none' "$(tr '\n' ' ' <out.txt)" 'rate x 80 us'
call help traffic incast
like 'help incast: iterations begin together' "$(tr '\n' ' ' <out.txt)" 'begin *together'
rm part.txt
refused 'help of no part' 'recrods is no verb, kind or part' help recrods

call check study.yaml
is 'check: exit code' "$rc" 0
like 'check: ok' "$(cat out.txt)" '^ok: study\.yaml: '
call explain study.yaml
is 'explain: exit code' "$rc" 0

call analyze small-one-1 --json
is 'analyze --json: exit code' "$rc" 0
like 'analyze --json' "$(cat out.txt)" '^[{[]'
call analyze small-one-1 --csv tables
is 'analyze --csv: exit code' "$rc" 0
like 'analyze --csv: a header row with units' "$(cat tables/*.csv)" '_s'
call analyze small-one-1 --csv tables
is 'analyze --csv writes nothing over' "$rc" 2
call analyze small-one-1 --csv tables --force
is 'analyze --csv --force does' "$rc" 0

# convert: a table of ours goes in and out unchanged in value.
printf '%s\n' '# two layers' 'name,param_bytes,forward_s,backward_s,activation_bytes' \
    'conv1,37632,0.001,0.002,3211264' 'fc,8192000,0.0005,0.001,4000' >layers.csv
call convert layers.csv -o copy.csv
is 'convert: exit code' "$rc" 0
is 'convert: values' "$(grep -v '^#' copy.csv)" "$(grep -v '^#' layers.csv)"
sum=$(cksum <copy.csv)
refused 'convert over a file' 'copy\.csv: exists' convert layers.csv -o copy.csv
is 'convert leaves it' "$(cksum <copy.csv)" "$sum"
call convert layers.csv -o copy.csv --force
is 'convert --force' "$rc" 0
call convert layers.csv -o -
is 'convert to standard output' "$(grep -v '^#' out.txt)" "$(grep -v '^#' layers.csv)"
refused 'convert without output' '-o FILE is missing' convert layers.csv
refused 'convert from an unknown format' 'from.*pipdream' convert layers.csv -o x --from pipdream
refused 'convert of something else' 'study\.yaml: the file is no layer table' \
    convert study.yaml -o x
printf '%s\n' 'MODEL' 1 'g -1 0 ALLREDUCE 10 0 NONE 0 0 NONE 0 0' >nothing.txt
refused 'convert of nothing that works' 'gradients of all its layers are 0' \
    convert nothing.txt -o x
printf '%s\n' 'MODEL' 1 'g -1 5 ALLREDUCE 10 5 ALLREDUCE 20 5 ALLREDUCE 40 5' >tensor.txt
call convert tensor.txt -o tensor.csv
is 'convert of tensor parallelism: exit code' "$rc" 0
is 'convert of tensor parallelism: warning' "$(cat err.txt)" "warning: tensor.txt: 2 collectives of \
an iteration, 30 bytes together, are not in the table, which holds gradients alone"
refused 'convert of nothing' 'nowhere\.csv' convert nowhere.csv -o x
