#!/usr/bin/env bash
# behaviour.sh - recorded runs of a real kernel's disciplines against gradwire's: see behaviour.c
set -uo pipefail
exec "${GW_BUILDDIR:?names the build}/tests/kernel/behaviour" \
    "${GW_SRCDIR:?names the source}/tests/data/tc"
