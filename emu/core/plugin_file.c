/*
 * plugin_file.c - looks at a plugin's file before the dynamic linker does
 *
 * dlopen() maps what the headers of an ELF file promise and trusts them: a file that was cut off
 * while it was copied ends the program by SIGBUS, and a FIFO makes it wait for ever. So the headers
 * are read here first: a regular file, an ELF object for this machine, and all segments and the
 * section table within it. What the dynamic linker checks itself (machine, needed libraries) is
 * left to it, and a file whose contents lie is beyond help: its code runs.
 *
 * A symbol says what it stands for: a function that happens to be called gw_plugin_v1 is told from
 * a descriptor by its ELF type, before a byte of it is read.
 */
#include "emu/core/plugin_file.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stdalign.h>
#include <sys/stat.h>
#include <unistd.h>

struct elf {
    const char *path;
    int         fd;
    uint64_t    bytes;            /* of the file                                               */
    ElfW(Ehdr)  head;
};

/* All of [at, at + n); false: the file ends before or can't be read. */
static bool read_at(const struct elf *e, void *buf, size_t n, uint64_t at)
{
    if (at > e->bytes || n > e->bytes - at)
        return false;
    return pread(e->fd, buf, n, (off_t)at) == (ssize_t)n;
}

static enum gw_status no_elf(const struct elf *e, struct gw_error *err)
{
    return gw_fail(err, GW_ABI, "%s: the plugin cannot be loaded: it is no shared object (ELF) for "
                   "this machine; compile it with -shared -fPIC", e->path);
}

static enum gw_status cut_off(const struct elf *e, uint64_t at, uint64_t n, struct gw_error *err)
{
    return gw_fail(err, GW_ABI, "%s: the plugin cannot be loaded: the file is cut off, it has %llu "
                   "bytes and its headers speak of byte %llu; build or copy it again", e->path,
                   (unsigned long long)e->bytes, (unsigned long long)(at + n));
}

/* Is [at, at + n) within the file? */
static enum gw_status within(const struct elf *e, uint64_t at, uint64_t n, struct gw_error *err)
{
    if (at <= e->bytes && n <= e->bytes - at)
        return GW_OK;
    return cut_off(e, at, n, err);
}

static enum gw_status check_head(struct elf *e, struct gw_error *err)
{
    static const unsigned one = 1;
    unsigned char data = *(const unsigned char *)&one ? ELFDATA2LSB : ELFDATA2MSB;
    unsigned char class = sizeof(void *) == 8 ? ELFCLASS64 : ELFCLASS32;

    if (!read_at(e, &e->head, sizeof e->head, 0) ||
        memcmp(e->head.e_ident, ELFMAG, SELFMAG) != 0 || e->head.e_ident[EI_CLASS] != class ||
        e->head.e_ident[EI_DATA] != data || e->head.e_type != ET_DYN || !e->head.e_phnum ||
        e->head.e_phentsize != sizeof(ElfW(Phdr)))
        return no_elf(e, err);
    return GW_OK;
}

static enum gw_status check_segments(const struct elf *e, struct gw_error *err)
{
    enum gw_status st = within(e, e->head.e_phoff, (uint64_t)e->head.e_phnum * sizeof(ElfW(Phdr)),
                               err);
    ElfW(Phdr) p;

    for (unsigned i = 0; !st && i < e->head.e_phnum; i++) {
        if (!read_at(e, &p, sizeof p, e->head.e_phoff + (uint64_t)i * sizeof p))
            return no_elf(e, err);
        if (p.p_type == PT_LOAD && p.p_memsz < p.p_filesz)
            return no_elf(e, err);
        st = within(e, p.p_offset, p.p_filesz, err);
    }
    return st;
}

enum gw_status gw_plugin_file_check(const char *path, struct gw_error *err)
{
    struct elf e = { .path = path, .fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK) };
    enum gw_status st;
    struct stat info;

    if (e.fd < 0 || fstat(e.fd, &info)) {
        st = gw_fail(err, GW_IO, "%s: the plugin cannot be read: %s", path, strerror(errno));
    } else if (!S_ISREG(info.st_mode)) {
        st = gw_fail(err, GW_IO, "%s: the plugin cannot be loaded: this is no file but %s", path,
                     S_ISDIR(info.st_mode) ? "a directory" : S_ISFIFO(info.st_mode) ? "a pipe"
                     : "a device or socket");
    } else {
        e.bytes = (uint64_t)info.st_size;
        st = check_head(&e, err);
        if (!st)
            st = check_segments(&e, err);
        if (!st)                                    /* stripped files may have none */
            st = within(&e, e.head.e_shoff, (uint64_t)e.head.e_shnum * e.head.e_shentsize, err);
    }
    if (e.fd >= 0)
        close(e.fd);
    return st;
}

enum gw_status gw_plugin_symbol_check(const void *p, const char *path, struct gw_error *err)
{
    const ElfW(Sym) *sym = NULL;
    void *found = NULL;
    struct gw_plugin head;
    Dl_info info;

    if (!dladdr1(p, &info, &found, RTLD_DL_SYMENT) || info.dli_saddr != p || !(sym = found) ||
        ELF64_ST_TYPE(sym->st_info) != STT_OBJECT)
        return gw_fail(err, GW_ABI, "%s: its gw_plugin_v1 is no object but a function or something "
                       "else; write GW_PLUGIN(...) = {...}", path);
    if ((uintptr_t)p % alignof(struct gw_plugin) ||
        sym->st_size < offsetof(struct gw_plugin, source))
        return gw_fail(err, GW_ABI, "%s: its gw_plugin_v1 has %llu bytes at an address ending in "
                       "0x%x, which is no struct gw_plugin; write GW_PLUGIN(...) = {...}", path,
                       (unsigned long long)sym->st_size, (unsigned)((uintptr_t)p & 0xf));
    memcpy(&head, p, offsetof(struct gw_plugin, source));
    if (head.magic == GW_PLUGIN_MAGIC && head.plugin_bytes > sym->st_size)
        return gw_fail(err, GW_ABI, "%s: its descriptor says that it has %u bytes and has %llu; "
                       "build it again with this gradwire's headers", path, head.plugin_bytes,
                       (unsigned long long)sym->st_size);
    return GW_OK;
}
