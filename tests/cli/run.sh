#!/bin/bash
# run.sh - the command from outside: bad studies, output directories, cut-off runs, JSON, verbs
#
# Every bad study must end with exit code 2, one sentence on standard error that says where, and
# nothing written. Needs GRADWIRE, the program; runs in a directory of its own.
set -u

gw=${GRADWIRE:?names the program under test}
dir=$(mktemp -d) || exit 99
trap 'rm -rf "$dir"' EXIT
cd "$dir" || exit 99
export LC_ALL=C

passed=0 failed=0 skipped=0

ok()   { passed=$((passed + 1)); }
fail() { failed=$((failed + 1)); printf 'FAIL %s\n' "$*"; }
skip() { skipped=$((skipped + 1)); printf 'skip %s\n' "$*"; }

# is WHAT GOT WANT
is() { if [ "$2" = "$3" ]; then ok; else fail "$1: got \"$2\", want \"$3\""; fi; }

# like WHAT TEXT REGEX
like() { if [[ $2 =~ $3 ]]; then ok; else fail "$1: \"$2\" does not match \"$3\""; fi; }

# call ARGS...: the program with its streams in files; $rc is its exit code
call() {
    "$gw" "$@" >out.txt 2>err.txt </dev/null
    rc=$?
}

# listing: all that stands here but our own two stream files
listing() { find . -mindepth 1 ! -name out.txt ! -name err.txt | LC_ALL=C sort; }

# refused NAME REGEX ARGS...: exit code 2, one line on stderr that matches, nothing written
refused() {
    local name=$1 regex=$2 before after
    shift 2
    before=$(listing)
    call "$@"
    after=$(listing)
    is "$name: exit code" "$rc" 2
    is "$name: lines on standard error" "$(wc -l <err.txt)" 1
    is "$name: bytes on standard output" "$(wc -c <out.txt)" 0
    like "$name: sentence" "$(cat err.txt)" "$regex"
    is "$name: files" "$after" "$before"
}

# bad NAME REGEX: study.yaml is refused, with the place in the file
bad() {
    local name=$1 regex=$2
    refused "$name" "^study\.yaml:[0-9]+:[0-9]+: .*$regex" run study.yaml
    call check study.yaml
    is "$name: check" "$rc" 2
    is "$name: check says one thing" "$(grep -vc "^warning: " err.txt)" 1
    rm study.yaml
}

good_study() {
    cat <<'YAML'
schema: 1
name: small one
topology: {kind: star, hosts: 4, link: {rate: 10gbit, delay: 1us}}
transport: {kind: tcp, cc: cubic}
jobs:
  - {name: p, traffic: permutation, bytes: 1MB}
YAML
}

# long_study: minutes of work, to be cut off
long_study() { good_study | sed 's/bytes: 1MB/bytes: 500GB/'; }

tests=$(dirname "$(readlink -f "$GW_SRCDIR/tests/cli/run.sh")")
. "$tests/bad_studies.sh"
. "$tests/output.sh"
. "$tests/verbs.sh"
. "$tests/tc.sh"

printf '%d checks passed, %d failed, %d skipped\n' $passed $failed $skipped
[ $failed -eq 0 ]
