#!/usr/bin/env bash
# uml.sh - the same tc lines on a real kernel, in user-mode Linux, and in gradwire: equal answers
#
# The lines are those of tests/data/tc/language.json and 100 generated ones for each discipline; see
# tclines.c. Arguments restrict them to some disciplines. The guest sees this machine's files
# read-only and has one directory of its own to write to. Skips with the reason where user-mode
# Linux, its modules or iproute2 6.1 are missing. What the guest has not reached after
# GW_UML_SECONDS (300) is not compared, and said.
set -uo pipefail

# shellcheck source=tests/kernel/guest.sh
. "${GW_SRCDIR:?names the source}/tests/kernel/guest.sh"

gw=${GRADWIRE:?names the program under test}
tclines=${GW_BUILDDIR:?names the build}/tests/kernel/tclines
language=$GW_SRCDIR/tests/data/tc/language.json
seconds=${GW_UML_SECONDS:-300}
PATH=$PATH:/usr/sbin:/sbin

command -v linux.uml >/dev/null || skip "linux.uml is not there; the package is user-mode-linux"
command -v busybox >/dev/null || skip "busybox is not there, which loads the guest's modules"
tc=$(command -v tc) || skip "tc is not there; the package is iproute2"
[[ $(tc -V) == *iproute2-6.1* ]] || skip "tc is not iproute2 6.1 but $(tc -V)"
modules=$(ls -d /usr/lib/uml/modules/*/ 2>/dev/null | tail -n 1)
[[ -f ${modules}kernel/net/sched/sch_netem.ko ]] ||
    skip "user-mode Linux has no modules for disciplines under /usr/lib/uml/modules"

guest_begin
"$tclines" generate "$language" "$@" >"$work/script" || exit 99

# --- the guest: each line's output, a byte 036 and the exit code -------------------------------
guest_init <<GUEST
for m in net/dummy \$(cd ${modules}kernel/net/sched && ls sch_* cls_* em_* act_*); do
    f=${modules}kernel/net/sched/\$m
    [ -f \$f ] || f=${modules}kernel/drivers/\$m.ko
    busybox insmod \$f
done 2>/dev/null
# Once more for those that needed another one first.
for f in ${modules}kernel/net/sched/*.ko; do busybox insmod \$f; done 2>/dev/null
# tc and its libraries in the guest's own memory: a third faster.
mkdir /tmp/bin
cp \$(ldd $tc | grep -o '/[^ ]*') $tc /tmp/bin
export LD_LIBRARY_PATH=/tmp/bin
set -f
exec 3>>/tmp/answers
while read -r line; do
    case \$line in
    @fresh*)
        [ -z "\$dev" ] || ip link del \$dev
        cat /tmp/answers >>/tmp/bound/answers
        : >/tmp/answers
        dev=\${line#@fresh }
        ip link add name \$dev up txqueuelen 1000 type dummy
        continue ;;
    esac
    /tmp/bin/tc \$line >&3 2>/dev/null </dev/null
    printf '\036%d\n' \$? >&3
done </tmp/bound/script
exec 3>&-
cat /tmp/answers >>/tmp/bound/answers
echo done >/tmp/bound/finished
GUEST

guest_boot "$seconds" linux.uml mem=256M &
guest=$!

grep -v '^@fresh' "$work/script" >"$work/lines"
"$gw" tc --script "$work/lines" >"$work/ours"
rc=$?
wait "$guest"
partial=
if [[ ! -s $work/finished ]]; then
    # Hosts that forbid ptrace or executable shared memory end the guest before its first line.
    if [[ ! -s $work/answers ]]; then
        tail -n 5 "$work/console"
        skip "the guest did not come up on this machine within $seconds s"
    fi
    echo "the guest was ended after $seconds s (GW_UML_SECONDS)"
    partial=partial
fi
[[ $rc == 0 ]] || { echo "FAIL gradwire tc --script ended with $rc"; exit 1; }
"$tclines" compare "$work/script" "$work/answers" "$work/ours" $partial
