#!/usr/bin/env bash
# traces.sh - frames through disciplines of a running kernel and through gradwire: see ktrace.c
#
# The traces are made from GW_TRACE_SEED (default 2; recorded.sh has those of seed 1); arguments
# restrict them to settings whose names begin so. Skips with the reason where there is no kernel
# with virtual time (see build-kernel) or no tc; takes at most GW_TRACE_SECONDS (300).
#
# With --record FILE the kernel's answers are kept there and nothing is compared.
set -uo pipefail

# shellcheck source=tests/kernel/guest.sh
. "${GW_SRCDIR:?names the source}/tests/kernel/guest.sh"

ktrace=${GW_BUILDDIR:?names the build}/tests/kernel/ktrace
record=
if [[ ${1:-} == --record ]]; then
    record=${2:?names the file to write}
    shift 2
fi
PATH=$PATH:/usr/sbin:/sbin

kernel=$("$GW_SRCDIR/tests/kernel/build-kernel" --have 2>&1) || skip "$kernel"
command -v busybox >/dev/null || skip "busybox is not there, which is the guest's shell"
command -v tc >/dev/null || skip "tc is not there; the package is iproute2"

guest_begin
cp "$ktrace" "$work/ktrace"
"$ktrace" plan "${GW_TRACE_SEED:-2}" "$@" >"$work/plan" || exit 99

# --- the guest: a veth pair, whose end v1 hears what v0 sends and answers nothing ---------------
guest_init <<'GUEST'
echo 100000 >/proc/sys/net/core/netdev_max_backlog
ip link add v0 txqueuelen 1000 type veth peer name v1
ip link set v0 arp off
ip link set v1 arp off
ip addr add 10.0.0.1/24 dev v0
ip link set v1 up
ip link set v0 up
/tmp/bound/ktrace send /tmp/bound/plan >/tmp/bound/record 2>/tmp/bound/errors &&
    echo done >/tmp/bound/finished
GUEST

guest_boot "${GW_TRACE_SECONDS:-300}" "$kernel" mem=512M time-travel=inf-cpu
if [[ ! -s $work/finished ]]; then
    # Hosts that forbid ptrace or executable shared memory end the guest before its first line.
    if [[ ! -e $work/errors ]]; then
        tail -n 5 "$work/console"
        skip "the guest did not come up on this machine"
    fi
    cat "$work/errors"
    echo "FAIL the guest did not end well"
    exit 1
fi
if [[ -n $record ]]; then
    gzip -9n <"$work/record" >"$record"
    exit
fi
"$ktrace" compare "$work/record"
