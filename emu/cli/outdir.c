/*
 * outdir - makes the directory that a run writes into, and writes nothing over
 *
 * mkdir() decides who owns a name, so two runs started together get two directories. With --force
 * only names that gradwire itself gives are removed, and only from a directory that holds a record:
 * a wrong -o never costs anybody a file.
 */
#include "emu/cli/outdir.h"

#include <dirent.h>
#include <errno.h>
#include <fnmatch.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

enum { NAME_MAX_BYTES = 64, TRIES = 100000 };

static const char *const own_file[] = {
    "records.sqlite", "records.sqlite-wal", "records.sqlite-shm", "records.sqlite-journal",
    "study.yaml",     "*.pcap",             "packets-*.csv",
};

/* A name for files from a study's: letters, digits, dot and dash, in one word. */
static void plain_name(const char *study, char *buf)
{
    size_t n = 0;

    for (; *study && n < NAME_MAX_BYTES; study++) {
        char c = *study;
        bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                     c == '_' || (c == '.' && n);

        if (plain)
            buf[n++] = c;
        else if (n && buf[n - 1] != '-')
            buf[n++] = '-';
    }
    while (n && (buf[n - 1] == '-' || buf[n - 1] == '.'))
        n--;
    buf[n] = '\0';
    if (!n)
        strcpy(buf, "run");
}

static enum gw_status make_numbered(struct gw_outdir *d, const char *study, struct gw_error *err)
{
    char name[NAME_MAX_BYTES + 1];

    plain_name(study, name);
    for (int i = 1; i <= TRIES; i++) {
        snprintf(d->path, sizeof d->path, "%s-%d", name, i);
        if (mkdir(d->path, 0777) == 0) {
            d->made = true;
            return GW_OK;
        }
        if (errno != EEXIST)
            return gw_fail(err, GW_IO, "%s: %s; name a directory that can be written with -o DIR",
                           d->path, strerror(errno));
    }
    return gw_fail(err, GW_IO, "%s-1 to %s-%d exist already; name a directory with -o DIR", name,
                   name, TRIES);
}

static bool is_own(const char *name)
{
    for (size_t i = 0; i < GW_ARRAY_LEN(own_file); i++)
        if (fnmatch(own_file[i], name, FNM_PERIOD) == 0)
            return true;
    return false;
}

static bool is_dots(const char *name)
{
    return !strcmp(name, ".") || !strcmp(name, "..");
}

/* The first entry of @dir that is no dot entry into @name; false: empty. */
static bool first_entry(DIR *dir, char *name, size_t n)
{
    const struct dirent *e;

    while ((e = readdir(dir))) {
        if (is_dots(e->d_name))
            continue;
        snprintf(name, n, "%s", e->d_name);
        return true;
    }
    return false;
}

static enum gw_status remove_own(const struct gw_outdir *d, DIR *dir, struct gw_error *err)
{
    const struct dirent *e;
    struct stat          sb;

    rewinddir(dir);
    while ((e = readdir(dir))) {
        if (!is_own(e->d_name) ||
            fstatat(dirfd(dir), e->d_name, &sb, AT_SYMLINK_NOFOLLOW) || !S_ISREG(sb.st_mode))
            continue;
        if (unlinkat(dirfd(dir), e->d_name, 0))
            return gw_fail(err, GW_IO, "%s/%s: %s; name another directory with -o DIR", d->path,
                           e->d_name, strerror(errno));
    }
    return GW_OK;
}

/* @dir stands: it must be empty, or an earlier output and @force. */
static enum gw_status take_over(const struct gw_outdir *d, DIR *dir, bool force,
                                struct gw_error *err)
{
    char name[256];

    if (!first_entry(dir, name, sizeof name))
        return GW_OK;
    if (!force)
        return gw_fail(err, GW_IO,
                       "%s: is not empty (it holds %s); name a new directory or add --force",
                       d->path, name);
    if (faccessat(dirfd(dir), "records.sqlite", F_OK, AT_SYMLINK_NOFOLLOW))
        return gw_fail(err, GW_IO,
                       "%s: holds %s but no records.sqlite, so it is no earlier output that "
                       "--force may replace; name a new directory", d->path, name);
    return remove_own(d, dir, err);
}

/* Whether the directory that @path is to be made in is there; such as /proc, which takes none. */
static bool parent_stands(const char *path)
{
    char above[PATH_MAX];
    struct stat sb;
    size_t n = strlen(path);

    while (n && path[n - 1] == '/')
        n--;
    while (n && path[n - 1] != '/')
        n--;
    snprintf(above, sizeof above, "%.*s", n ? (int)n : 1, n ? path : ".");
    return stat(above, &sb) == 0 && S_ISDIR(sb.st_mode);
}

static enum gw_status open_given(struct gw_outdir *d, bool force, struct gw_error *err)
{
    enum gw_status st;
    DIR           *dir;

    if (mkdir(d->path, 0777) == 0) {
        d->made = true;
        return GW_OK;
    }
    if (errno == ENOENT && parent_stands(d->path))
        return gw_fail(err, GW_IO, "%s: a directory cannot be made there; name another", d->path);
    if (errno == ENOENT)
        return gw_fail(err, GW_IO, "%s: the directory above it does not exist; make it first or "
                       "name another", d->path);
    if (errno != EEXIST)
        return gw_fail(err, GW_IO, "%s: %s; name a directory that can be written", d->path,
                       strerror(errno));
    dir = opendir(d->path);
    if (!dir)
        return gw_fail(err, GW_IO, "%s: %s; name a new or empty directory", d->path,
                       strerror(errno));
    if (faccessat(AT_FDCWD, d->path, W_OK | X_OK, AT_EACCESS))
        st = gw_fail(err, GW_IO, "%s: %s; name a directory that can be written", d->path,
                     strerror(errno));
    else
        st = take_over(d, dir, force, err);
    closedir(dir);
    return st;
}

enum gw_status gw_outdir_open(struct gw_outdir *d, const char *given, const char *study,
                              bool force, struct gw_error *err)
{
    memset(d, 0, sizeof *d);
    if (!given)
        return make_numbered(d, study, err);
    if (snprintf(d->path, sizeof d->path, "%s", given) >= (int)sizeof d->path)
        return gw_fail(err, GW_IO, "-o: the name is too long; name another directory");
    return open_given(d, force, err);
}

void gw_outdir_abandon(const struct gw_outdir *d)
{
    if (d->made)
        rmdir(d->path);
}
