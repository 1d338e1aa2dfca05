#!/usr/bin/env bash
# aqm - TCP under pfifo, red, codel, fq_codel, pie, fq and cake: use, wait, drops, marks, fairness
set -uo pipefail
. "$GW_SRCDIR/tests/scenario/lib.sh"
command -v sqlite3 >/dev/null || { echo "skipped: sqlite3 is not installed"; exit 77; }
. "$src/tests/scenario/aqm-lib.sh"

aqm_table 20
aqm_checks within
finish
