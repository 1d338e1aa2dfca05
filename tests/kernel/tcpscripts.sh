#!/usr/bin/env bash
# tcpscripts.sh - packet scripts on a real kernel against gradwire's TCP: see tcpscripts.c
set -uo pipefail
exec "${GW_BUILDDIR:?names the build}/tests/kernel/tcpscripts" \
    -m "${GW_SRCDIR:?names the source}/tests/kernel/tcpscripts-misses.txt" \
    "$GW_SRCDIR/tests/data/tcp/scripts"
