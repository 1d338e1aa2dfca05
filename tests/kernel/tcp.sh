#!/usr/bin/env bash
# tcp.sh - the cheaper cells of a real kernel's TCP against gradwire's: see tcp.c
#
# `make tcp-grid` plays all of them, with more seeds.
set -uo pipefail
exec "${GW_BUILDDIR:?names the build}/tests/kernel/tcp" -c 100000 -s 5 \
    -m "${GW_SRCDIR:?names the source}/tests/kernel/tcp-misses.txt" "$GW_SRCDIR/tests/data/tcp"
