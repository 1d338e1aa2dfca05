/*
 * verb_convert - layer tables from other tools' formats into ours
 *
 * PipeDream profiles, ASTRA-sim 1.0 text and SimAI text go in, a layer table (CSV) comes out, which
 * a study names as `model:`. The file is written beside its place and renamed, so that a failure
 * leaves nothing half done; an existing one is kept unless --force.
 */
#include "emu/cli/args.h"

#include <errno.h>
#include <fcntl.h>
#include <gradwire/convert.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

struct convert_conf {
    const char *output, *from;
    bool        force;
};

static const struct gw_arg convert_rows[] = {
    { "output", 'o', GW_ARG_TEXT, offsetof(struct convert_conf, output), "FILE",
      "File to write, - for standard output; must be given." },
    { "from", 0, GW_ARG_CHOICE, offsetof(struct convert_conf, from),
      "auto|csv|pipedream|astra|simai", "Format of the input; auto looks at its contents." },
    { "force", 'f', GW_ARG_FLAG, offsetof(struct convert_conf, force), NULL,
      "Writes over an existing file." },
};

static enum gw_layer_format format_by_name(const char *name)
{
    static const struct {
        const char *name;
        enum gw_layer_format format;
    } row[] = {
        { "csv", GW_LAYERS_CSV },     { "pipedream", GW_LAYERS_PIPEDREAM },
        { "astra", GW_LAYERS_ASTRA }, { "simai", GW_LAYERS_SIMAI },
    };

    for (size_t i = 0; name && i < GW_ARRAY_LEN(row); i++)
        if (!strcmp(name, row[i].name))
            return row[i].format;
    return GW_LAYERS_AUTO;
}

static struct gw_layers *read_input(const char *path, const char *from, struct gw_error *err)
{
    struct gw_layers *l;
    FILE             *f = fopen(path, "re");

    if (!f) {
        gw_fail(err, GW_IO, "%s: %s; name a readable file", path, strerror(errno));
        return NULL;
    }
    l = gw_layers_read(f, path, format_by_name(from), err);
    fclose(f);
    return l;
}

/* The first failure of writing @f, which is closed in any case. */
static enum gw_status write_close(const struct gw_layers *l, FILE *f, const char *path,
                                  struct gw_error *err)
{
    enum gw_status st = gw_layers_write(l, f, err);

    if (st == GW_OK && (fflush(f) || ferror(f)))
        st = gw_fail(err, GW_IO, "%s: %s; choose a place with room", path, strerror(errno));
    if (fclose(f) && st == GW_OK)
        st = gw_fail(err, GW_IO, "%s: %s; choose a place with room", path, strerror(errno));
    return st;
}

static enum gw_status place(const char *temp, const char *path, bool force, struct gw_error *err)
{
    if (renameat2(AT_FDCWD, temp, AT_FDCWD, path, force ? 0 : RENAME_NOREPLACE) == 0)
        return GW_OK;
    if (!force && errno == EINVAL && link(temp, path) == 0)   /* a file system without the flag */
        return GW_OK;
    if (errno == EEXIST)
        return gw_fail(err, GW_IO, "%s: exists already; name another file or add --force", path);
    return gw_fail(err, GW_IO, "%s: %s; name another file", path, strerror(errno));
}

/* A device or pipe: written to, never replaced. */
static enum gw_status write_special(const struct gw_layers *l, const char *path,
                                    struct gw_error *err)
{
    FILE *f = fopen(path, "we");

    if (!f)
        return gw_fail(err, GW_IO, "%s: %s; name a file", path, strerror(errno));
    return write_close(l, f, path, err);
}

static enum gw_status write_file(const struct gw_layers *l, const char *path, bool force,
                                 struct gw_error *err)
{
    char           temp[PATH_MAX];
    enum gw_status st = GW_OK;
    struct stat    sb;
    mode_t         mask;
    FILE          *f;
    int            fd;

    if (stat(path, &sb) == 0 && !S_ISREG(sb.st_mode))
        return write_special(l, path, err);
    if (!force && access(path, F_OK) == 0)
        return gw_fail(err, GW_IO, "%s: exists already; name another file or add --force", path);
    if (snprintf(temp, sizeof temp, "%s.XXXXXX", path) >= (int)sizeof temp)
        return gw_fail(err, GW_IO, "%s: the name is too long; name another file", path);
    fd = mkostemp(temp, O_CLOEXEC);
    if (fd < 0)
        return gw_fail(err, GW_IO, "%s: %s; name a file in a directory that can be written", path,
                       strerror(errno));
    mask = umask(0);
    umask(mask);
    f = fchmod(fd, 0666 & ~mask) ? NULL : fdopen(fd, "w");
    if (!f) {
        st = gw_fail(err, GW_IO, "%s: %s; name another file", path, strerror(errno));
        close(fd);
    } else {
        st = write_close(l, f, path, err);
    }
    if (st == GW_OK)
        st = place(temp, path, force, err);
    unlink(temp);                /* after rename() it is gone already */
    return st;
}

static int convert_run(struct gw_cli *cli)
{
    const struct convert_conf *c   = cli->conf;
    struct gw_error            err = {0};
    struct gw_layers          *l;

    if (!c->output) {
        gw_fail(&err, GW_PARAM, "gradwire convert: -o FILE is missing; write -o - for standard "
                "output");
        return gw_cli_fail(cli, &err);
    }
    l = read_input(cli->operand[0], c->from, &err);
    if (l && !strcmp(c->output, "-"))
        gw_layers_write(l, cli->out, &err);
    else if (l)
        write_file(l, c->output, c->force, &err);
    if (l && l->warning && err.code == GW_OK)
        fprintf(cli->err, "warning: %s: %s\n", cli->operand[0], l->warning);
    gw_layers_free(l);
    return err.code == GW_OK ? GW_EXIT_GOOD : gw_cli_fail(cli, &err);
}

const struct gw_verb gw_verb_convert = {
    .name = "convert", .operands = "FILE", .operand_min = 1, .operand_max = 1,
    .summary = "Writes a layer table from a PipeDream profile, ASTRA-sim or SimAI text",
    .rows = convert_rows, .row_count = GW_ARRAY_LEN(convert_rows),
    .conf_bytes = sizeof(struct convert_conf), .run = convert_run,
};
