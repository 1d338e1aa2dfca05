/*
 * outdir - makes the directory that a run writes into, and writes nothing over
 *
 * mkdir() decides who owns a name, so two runs started together get two directories.
 *
 * --force replaces an earlier output, and a wrong -o never costs anybody a file: the directory must
 * hold a record of gradwire's own; only the record, the study that it tells word for word, and the
 * captures and logs that it names are taken, and only if they are regular files. They wait in
 * DIR/.previous-XXXXXX until the new run has ended; if it fails, they come back. What a failed run
 * has left behind is told from other files by the names that stood here before it.
 */
#include "emu/cli/outdir.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "emu/core/record.h"

enum { NAME_MAX_BYTES = 64, TRIES = 100000 };

#define RECORD  "records.sqlite"
#define JOURNAL RECORD "-journal"
#define STUDY   "study.yaml"
#define EVENTS  "tc-events.jsonl"

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

static bool is_dots(const char *name)
{
    return !strcmp(name, ".") || !strcmp(name, "..");
}

/* Does @name end in @end, with something before it? */
static bool ends_in(const char *name, const char *end)
{
    size_t n = strlen(name), k = strlen(end);

    return n > k && !strcmp(name + n - k, end);
}

/* A name that runs give to captures and logs, and no path. */
static bool is_capture(const char *name)
{
    return !strchr(name, '/') && *name != '.' &&
           (!strcmp(name, EVENTS) || ends_in(name, ".pcap") || (ends_in(name, ".csv") && (!strncmp(name, "packets-", 8) ||
                                                               !strncmp(name, "flows-", 6))));
}

static bool is_own(const char *name)
{
    return !strcmp(name, EVENTS) || !strcmp(name, RECORD) || !strcmp(name, JOURNAL) || !strcmp(name, STUDY) ||
           is_capture(name);
}

/* A regular file of @dir; never what a symbolic link points to. */
static bool is_file(int dir, const char *name, struct stat *sb)
{
    return fstatat(dir, name, sb, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(sb->st_mode);
}

/* The first entry of @dir that is no dot entry into @name; false: empty. */
static bool first_entry(DIR *dir, char *name, size_t n)
{
    const struct dirent *e;

    rewinddir(dir);
    while ((e = readdir(dir))) {
        if (is_dots(e->d_name))
            continue;
        snprintf(name, n, "%s", e->d_name);
        return true;
    }
    return false;
}

/* ---- what stands there -------------------------------------------------------------------- */

/* Nothing but what a run left that could not even begin: a journal, an empty record. */
static bool only_leftovers(DIR *dir)
{
    const struct dirent *e;
    struct stat          sb;
    bool                 record = is_file(dirfd(dir), RECORD, &sb) && sb.st_size;

    rewinddir(dir);
    while ((e = readdir(dir)))
        if (!is_dots(e->d_name) &&
            (record || (strcmp(e->d_name, RECORD) && strcmp(e->d_name, JOURNAL)) ||
             !is_file(dirfd(dir), e->d_name, &sb)))
            return false;
    return true;
}

static void remove_leftovers(DIR *dir)
{
    unlinkat(dirfd(dir), JOURNAL, 0);
    unlinkat(dirfd(dir), RECORD, 0);
}

/* Is DIR/study.yaml word for word the @text that the record tells? */
static bool same_study(const struct gw_outdir *d, const char *text)
{
    char    path[PATH_MAX + sizeof STUDY + 1];
    size_t  n = strlen(text), got = 0;
    char   *buf = malloc(n + 2);
    FILE   *f;

    snprintf(path, sizeof path, "%s/" STUDY, d->path);
    f = fopen(path, "rb");
    if (f && buf)
        got = fread(buf, 1, n + 1, f);
    n = f && buf && got == n && !memcmp(buf, text, n);
    if (f)
        fclose(f);
    free(buf);
    return n;
}

/* May the study that stands there go? */
static enum gw_status check_study(const struct gw_outdir *d, int dir, sqlite3 *db,
                                  const char *study_path, struct gw_error *err)
{
    struct stat   there, run;
    sqlite3_stmt *st = NULL;
    bool          same = false;

    if (!is_file(dir, STUDY, &there))
        return GW_OK;
    if (study_path && !stat(study_path, &run) && run.st_dev == there.st_dev &&
        run.st_ino == there.st_ino)
        return gw_fail(err, GW_IO, "%s/" STUDY ": is the study to run, which --force would "
                       "replace; name another directory with -o DIR", d->path);
    if (sqlite3_prepare_v2(db, "SELECT value FROM run WHERE key = 'study'", -1, &st, NULL) ==
            SQLITE_OK && sqlite3_step(st) == SQLITE_ROW && sqlite3_column_text(st, 0))
        same = same_study(d, (const char *)sqlite3_column_text(st, 0));
    sqlite3_finalize(st);
    if (same)
        return GW_OK;
    return gw_fail(err, GW_IO, "%s/" STUDY ": is not as the earlier run wrote it, so --force does "
                   "not replace it; move it away or name a new directory", d->path);
}

/* ---- moving away and back ----------------------------------------------------------------- */

/* One file into DIR/.previous-XXXXXX; what is not there or no file stays. */
static enum gw_status move_away(const struct gw_outdir *d, int dir, const char *name,
                                struct gw_error *err)
{
    char        to[PATH_MAX + NAME_MAX + 2];
    struct stat sb;

    if (!is_file(dir, name, &sb))
        return GW_OK;
    snprintf(to, sizeof to, "%s/%s", d->previous, name);
    if (renameat(dir, name, AT_FDCWD, to))
        return gw_fail(err, GW_IO, "%s/%s: %s; name another directory with -o DIR", d->path, name,
                       strerror(errno));
    return GW_OK;
}

/* All files that the record @db stands for. */
static enum gw_status move_output(const struct gw_outdir *d, int dir, sqlite3 *db,
                                  struct gw_error *err)
{
    sqlite3_stmt  *st = NULL;
    enum gw_status code = move_away(d, dir, STUDY, err);

    if (!code && sqlite3_prepare_v2(db, "SELECT value FROM run WHERE key GLOB 'output.[0-9]*'", -1,
                                    &st, NULL) == SQLITE_OK)
        while (!code && sqlite3_step(st) == SQLITE_ROW) {
            const char *name = (const char *)sqlite3_column_text(st, 0);

            if (name && is_capture(name))
                code = move_away(d, dir, name, err);
        }
    sqlite3_finalize(st);
    return code;
}

/* The names that are left, which belong to others. */
static enum gw_status note_others(struct gw_outdir *d, DIR *dir, struct gw_error *err)
{
    const struct dirent *e;

    rewinddir(dir);
    while ((e = readdir(dir))) {
        char **grown = realloc(d->other, (d->others + 1) * sizeof *grown);

        if (grown)
            d->other = grown;
        if (!grown || !(d->other[d->others] = strdup(e->d_name)))
            return gw_fail(err, GW_NOMEM, "out of memory");
        d->others++;
    }
    return GW_OK;
}

static void forget_others(struct gw_outdir *d)
{
    while (d->others)
        free(d->other[--d->others]);
    free(d->other);
    d->other = NULL;
}

static bool is_other(const struct gw_outdir *d, const char *name)
{
    for (size_t i = 0; i < d->others; i++)
        if (!strcmp(d->other[i], name))
            return true;
    return false;
}

/* Empties DIR/.previous-XXXXXX: back into DIR, or for ever. */
static void empty_previous(struct gw_outdir *d, bool back)
{
    const struct dirent *e;
    DIR  *from = opendir(d->previous), *to = opendir(d->path);
    struct stat sb;

    while (from && to && (e = readdir(from))) {
        if (is_dots(e->d_name))
            continue;
        if (!back)
            unlinkat(dirfd(from), e->d_name, 0);
        else if (fstatat(dirfd(to), e->d_name, &sb, AT_SYMLINK_NOFOLLOW))
            renameat(dirfd(from), e->d_name, dirfd(to), e->d_name);
    }
    if (from)
        closedir(from);
    if (to)
        closedir(to);
    rmdir(d->previous);                       /* stays if something could not go back */
    d->previous[0] = '\0';
}

/* Takes away what the failed run has written. */
static void remove_new(const struct gw_outdir *d)
{
    DIR *dir = opendir(d->path);
    const struct dirent *e;
    struct stat sb;

    while (dir && (e = readdir(dir)))
        if (is_own(e->d_name) && !is_other(d, e->d_name) && is_file(dirfd(dir), e->d_name, &sb))
            unlinkat(dirfd(dir), e->d_name, 0);
    if (dir)
        closedir(dir);
}

static enum gw_status replace(struct gw_outdir *d, DIR *dir, const char *study_path,
                              struct gw_error *err)
{
    struct gw_error why = { 0 };
    bool            complete;
    sqlite3        *db = gw_record_open(d->path, &complete, &why);
    enum gw_status  st;

    if (!db)
        return gw_fail(err, GW_IO, "%s; this is no earlier output that --force may replace",
                       why.text);
    st = check_study(d, dirfd(dir), db, study_path, err);
    if (!st && (snprintf(d->previous, sizeof d->previous, "%s/.previous-XXXXXX", d->path) >=
                (int)sizeof d->previous || !mkdtemp(d->previous))) {
        d->previous[0] = '\0';
        st = gw_fail(err, GW_IO, "%s: the earlier output cannot be put aside: %s", d->path,
                     strerror(errno));
    }
    if (!st)
        st = move_output(d, dirfd(dir), db, err);
    sqlite3_close(db);
    if (!st)
        st = move_away(d, dirfd(dir), JOURNAL, err);
    if (!st)
        st = move_away(d, dirfd(dir), RECORD, err);
    if (!st)
        st = note_others(d, dir, err);
    if (st && d->previous[0])
        empty_previous(d, true);
    if (st)
        forget_others(d);
    return st;
}

/* @dir stands: it must be empty, or an earlier output and @force. */
static enum gw_status take_over(struct gw_outdir *d, DIR *dir, const char *study_path, bool force,
                                struct gw_error *err)
{
    char        name[256];
    struct stat sb;

    if (!first_entry(dir, name, sizeof name))
        return GW_OK;
    if (only_leftovers(dir)) {
        remove_leftovers(dir);
        return GW_OK;
    }
    if (!force)
        return gw_fail(err, GW_IO,
                       "%s: is not empty (it holds %s); name a new directory or add --force",
                       d->path, name);
    if (!is_file(dirfd(dir), RECORD, &sb))
        return gw_fail(err, GW_IO,
                       "%s: holds %s but no " RECORD ", so it is no earlier output that "
                       "--force may replace; name a new directory", d->path, name);
    return replace(d, dir, study_path, err);
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

static enum gw_status open_given(struct gw_outdir *d, const char *study_path, bool force,
                                 struct gw_error *err)
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
        st = take_over(d, dir, study_path, force, err);
    closedir(dir);
    return st;
}

enum gw_status gw_outdir_open(struct gw_outdir *d, const char *given, const char *study,
                              const char *study_path, bool force, struct gw_error *err)
{
    memset(d, 0, sizeof *d);
    if (!given)
        return make_numbered(d, study, err);
    if (snprintf(d->path, sizeof d->path, "%s", given) >= (int)sizeof d->path)
        return gw_fail(err, GW_IO, "-o: the name is too long; name another directory");
    return open_given(d, study_path, force, err);
}

void gw_outdir_keep(struct gw_outdir *d)
{
    if (d->previous[0])
        empty_previous(d, false);
    forget_others(d);
}

void gw_outdir_abandon(struct gw_outdir *d, bool refused)
{
    if (refused || d->previous[0])
        remove_new(d);
    if (d->previous[0])
        empty_previous(d, true);
    if (d->made)
        rmdir(d->path);
    forget_others(d);
}
