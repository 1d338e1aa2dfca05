#!/usr/bin/env bash
# recorded.sh - frames through disciplines of a kernel, as traces.sh recorded them, and the very same
# through gradwire: every frame at the same nanosecond. See ktrace.c.
set -uo pipefail
exec "${GW_BUILDDIR:?names the build}/tests/kernel/ktrace" compare \
    "${GW_SRCDIR:?names the source}/tests/data/tc/ktraces.gz" "$@"
