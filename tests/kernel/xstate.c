/*
 * xstate - lets user-mode Linux 6.1 run on processors whose register state is larger than it knows
 *
 * It holds 2696 bytes of a process's extended registers, which was all until AMX came (11,008
 * bytes). The host hands out the beginning of its area, but takes back only a whole one: the guest
 * ends before its first line with "ptrace set fp regs failed, errno = 14". This library is loaded
 * before the guest's own (LD_PRELOAD, see guest.sh) and fills up what the guest gives back by what
 * the process has there already. Nothing is lost: what lies beyond is tile registers, which a
 * process must ask for and no guest's does.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <stdarg.h>
#include <string.h>

#include <sys/ptrace.h>
#include <sys/types.h>
#include <sys/uio.h>

#define XSTATE_MOST 65536

typedef long ptrace_fn(int, pid_t, void *, void *);

long ptrace(enum __ptrace_request request, ...)
{
    static _Thread_local char whole[XSTATE_MOST];
    static ptrace_fn *next;
    struct iovec have = { whole, sizeof whole };
    const struct iovec *give;
    va_list rest;
    pid_t pid;
    void *addr, *data;

    va_start(rest, request);
    pid = va_arg(rest, pid_t);
    addr = va_arg(rest, void *);
    data = va_arg(rest, void *);
    va_end(rest);
    if (!next)
        *(void **)&next = dlsym(RTLD_NEXT, "ptrace");
    if (request != PTRACE_SETREGSET || addr != (void *)NT_X86_XSTATE)
        return next(request, pid, addr, data);
    give = data;
    if (next(PTRACE_GETREGSET, pid, addr, &have) < 0)
        return -1;
    if (give->iov_len >= have.iov_len)
        return next(request, pid, addr, data);
    memcpy(whole, give->iov_base, give->iov_len);
    return next(request, pid, addr, &have);
}
