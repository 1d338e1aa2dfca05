# lib.sh - what the scripts beside it share: counting, runs, single numbers out of them
# Needs GRADWIRE and GW_SRCDIR; works in a directory of its own that goes away at the end.
gw=${GRADWIRE:?names the program under test}
src=$(readlink -f "${GW_SRCDIR:?names the source}")
dir=$(mktemp -d) || exit 99
trap 'rm -rf "$dir"' EXIT
cd "$dir" || exit 99
export LC_ALL=C
passed=0 failed=0 runs=0

# within WHAT GOT LOW HIGH
within() {
    if awk -v g="$2" -v a="$3" -v b="$4" 'BEGIN { exit !(g != "" && g >= a && g <= b) }'; then
        passed=$((passed + 1))
        printf 'ok   %s: %s in %s..%s\n' "$@"
    else
        failed=$((failed + 1))
        printf 'FAIL %s: got %s, want %s..%s\n' "$@"
    fi
}

# same WHAT GOT WANT
same() {
    if [[ $2 == "$3" && -n $2 ]]; then
        passed=$((passed + 1))
        printf 'ok   %s: %s\n' "$1" "$2"
    else
        failed=$((failed + 1))
        printf 'FAIL %s: got "%s", want "%s"\n' "$@"
    fi
}

# run NAME STUDY ARGS...: plays into the new directory NAME, JSON goes to NAME.json
run() {
    local name=$1
    shift
    timeout 300 "$gw" run "$@" -q --json -o "$name" >"$name.json" || echo "exit code $? of run $*"
}

# json FILE OBJECT KEY: the number
json() { sed 's/.*"'"$2"'":{[^}]*"'"$3"'":\([^,}]*\).*/\1/' "$1"; }

# row DIR TABLE FIRST COLUMN: the cell of `analyze --csv` in the row whose first column is FIRST
row() {
    [[ -d $1.csv ]] || "$gw" analyze "$1" --csv "$1.csv" >/dev/null
    awk -F, -v first="$3" -v col="$4" 'NR == 1 { for (i = 1; i <= NF; i++) if ($i == col) c = i }
        NR > 1 && $1 == first { print $c; exit }' "$1.csv/$2.csv"
}

finish() {
    printf '%d passed, %d failed\n' "$passed" "$failed"
    [[ $failed == 0 && $passed -gt 0 ]]
    exit
}
