# guest.sh - sourced by scripts that run a kernel in user mode: a directory, a janitor, the boot
#
# The guest sees this machine's files read-only and has the directory $work to write to, which it
# mounts at /tmp/bound. Left behind after a kill: nothing. A janitor outlives the script, ends the
# guest and removes the directory.
# shellcheck shell=bash

skip() { echo "skip: $*"; exit 77; }

# The guest makes a session of its own; its first process is in the file pid.
guest_clear_away() {
    [[ ! -s $work/uml/pid ]] || kill -KILL -- "-$(<"$work/uml/pid")" 2>/dev/null
    rm -rf "$work"
}

# Makes $work.
guest_begin() {
    local me=$$
    work=$(mktemp -d) || exit 99
    if [[ $work == *[[:space:],]* ]]; then
        rm -rf "$work"
        skip "the guest cannot bind a directory named $work"
    fi
    trap guest_clear_away EXIT
    trap 'exit 99' INT TERM HUP
    (
        trap '' INT TERM HUP
        exec </dev/null >/dev/null 2>&1
        while kill -0 "$me" 2>/dev/null && [[ -d $work ]]; do sleep 1; done
        [[ -d $work ]] && guest_clear_away
    ) &
}

# guest_init: writes $work/init, what the guest does, from standard input; what every guest needs
# stands before it.
guest_init() {
    cat >"$work/init" <<GUEST
#!$(command -v busybox) sh
export PATH=/usr/sbin:/usr/bin:/sbin:/bin
mount -t proc none /proc
mount -t sysfs none /sys
mount -t tmpfs none /tmp
mount -t tmpfs none /run
mkdir /tmp/bound
mount -t hostfs none /tmp/bound -o $work
GUEST
    cat >>"$work/init"
    echo "busybox halt -f" >>"$work/init"
    chmod +x "$work/init"
}

# guest_boot SECONDS KERNEL [ARGUMENT ...]: runs until the guest halts, at most so long.
guest_boot() {
    timeout -k 5 "$1" env LD_PRELOAD="$GW_BUILDDIR/tests/kernel/xstate.so" "$2" root=/dev/root \
        rootfstype=hostfs rootflags=/ ro quiet init="$work/init" con=null con0=null,fd:1 \
        uml_dir="$work/" umid=uml "${@:3}" </dev/null >"$work/console" 2>&1
}
