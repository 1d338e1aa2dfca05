/*
 * table - what analyses answer, and how it is printed
 *
 * A table has a name (its key in JSON, its file in CSV), a title, columns and rows. Column names
 * end in their unit; machines get SI base units as they are, people get a unit that fits the value:
 *
 *   _s seconds   _bytes   _bps bits per second   _ratio, utilisation, _share per cent
 *
 * People see the first TEXT_ROWS rows; an analysis puts what matters most in front. Under the table
 * they see its note, if it has one. A table without rows is not shown to people. A link's rate_bps
 * of 0 is "unlimited" for them.
 *
 * A NULL cell is empty in CSV, null in JSON, "-" in text. A number that is not finite is NULL, for
 * JSON has no other word for it.
 */
#include "emu/core/table.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define CELL_TEXT 64u           /* bytes of a printed number                                   */
#define TEXT_ROWS 20u           /* people see this many of a table and how many more there are */

struct gw_table {
    struct gw_table *next;
    char   *name, *title, *note;
    char  **column;
    uint32_t columns;
    struct gw_cell *cell;       /* rows * columns; texts are owned                             */
    size_t  rows, room;
};

struct gw_tables {
    struct gw_table *first, **last;
};

/* ---- building ----------------------------------------------------------------------------- */

static void table_free(struct gw_table *t)
{
    for (size_t i = 0; i < t->rows * t->columns; i++)
        free((char *)t->cell[i].t);
    for (uint32_t c = 0; t->column && c < t->columns; c++)
        free(t->column[c]);
    free(t->column);
    free(t->cell);
    free(t->name);
    free(t->title);
    free(t->note);
    free(t);
}

struct gw_tables *gw_tables_new(void)
{
    struct gw_tables *t = calloc(1, sizeof *t);

    if (t)
        t->last = &t->first;
    return t;
}

void gw_tables_free(struct gw_tables *t)
{
    struct gw_table *next;

    for (struct gw_table *x = t ? t->first : NULL; x; x = next) {
        next = x->next;
        table_free(x);
    }
    free(t);
}

static struct gw_table *table_new(struct gw_analysis *a, const char *name, const char *title,
                                  const char *const *columns, uint32_t count)
{
    struct gw_tables *all = a->out;
    struct gw_table *t = calloc(1, sizeof *t);
    bool ok;

    if (!t)
        return NULL;
    t->name = strdup(name);
    t->title = strdup(title ? title : name);
    t->column = calloc(count ? count : 1, sizeof *t->column);
    t->columns = count;
    ok = t->name && t->title && t->column;
    for (uint32_t c = 0; ok && c < count; c++)
        ok = (t->column[c] = strdup(columns[c])) != NULL;
    if (!ok) {
        table_free(t);
        return NULL;
    }
    *all->last = t;
    all->last = &t->next;
    return t;
}

static enum gw_status table_row(struct gw_table *t, const struct gw_cell *cells)
{
    struct gw_cell *row;

    if (t->rows == t->room) {
        size_t room = t->room ? 2 * t->room : 16;
        struct gw_cell *more = realloc(t->cell, room * t->columns * sizeof *more);

        if (!more)
            return GW_NOMEM;
        t->cell = more;
        t->room = room;
    }
    row = &t->cell[t->rows * t->columns];
    for (uint32_t c = 0; c < t->columns; c++) {
        row[c] = cells[c];
        row[c].t = NULL;
        if (cells[c].kind == GW_CELL_REAL && !isfinite(cells[c].r))
            row[c].kind = GW_CELL_NULL;
        if (cells[c].kind == GW_CELL_TEXT && !(row[c].t = strdup(cells[c].t ? cells[c].t : ""))) {
            while (c)
                free((char *)row[--c].t);
            return GW_NOMEM;
        }
    }
    t->rows++;
    return GW_OK;
}

static enum gw_status table_note(struct gw_table *t, const char *text)
{
    char *note = strdup(text);

    if (!note)
        return GW_NOMEM;
    free(t->note);
    t->note = note;
    return GW_OK;
}

void gw_table_host(struct gw_host *h)
{
    h->table_new  = table_new;
    h->table_row  = table_row;
    h->table_note = table_note;
}

const struct gw_cell *gw_tables_cell(const struct gw_tables *t, const char *table, size_t row,
                                     const char *column)
{
    for (const struct gw_table *x = t->first; x; x = x->next)
        for (uint32_t c = 0; row < x->rows && !strcmp(x->name, table) && c < x->columns; c++)
            if (!strcmp(x->column[c], column))
                return &x->cell[row * x->columns + c];
    return NULL;
}

/* ---- text --------------------------------------------------------------------------------- */

enum unit { UNIT_NONE, UNIT_S, UNIT_BYTES, UNIT_BPS, UNIT_RATE, UNIT_PART };

static bool ends_with(const char *s, const char *end)
{
    size_t n = strlen(s), m = strlen(end);

    return n >= m && !strcmp(s + n - m, end);
}

/* The unit at the end of a column's name; *stem: how much of the name people need to see. */
static enum unit column_unit(const char *name, size_t *stem)
{
    static const struct { const char *end; enum unit unit; bool cut; } row[] = {
        { "_s", UNIT_S, true },        { "_bytes", UNIT_BYTES, true },
        { "_bps", UNIT_BPS, true },    { "_share", UNIT_PART, false },
        { "_ratio", UNIT_PART, true }, { "utilisation", UNIT_PART, false },
    };

    *stem = strlen(name);
    for (size_t i = 0; i < GW_ARRAY_LEN(row); i++) {
        if (!ends_with(name, row[i].end))
            continue;
        if (row[i].cut)
            *stem -= strlen(row[i].end);
        return row[i].unit == UNIT_BPS && !strcmp(name, "rate_bps") ? UNIT_RATE : row[i].unit;
    }
    return UNIT_NONE;
}

/* @v with the largest of @names whose step (1000 apart from the first) it reaches. */
static const char *scaled(double v, double first, const char *const *names, size_t count,
                          char *buf, size_t n)
{
    double step = first;
    size_t i = 0;

    while (i + 1 < count && fabs(v) >= 999.95 * step) {
        step *= 1000;
        i++;
    }
    snprintf(buf, n, "%.4g %s", v / step, names[i]);
    return buf;
}

const char *gw_text_bytes(double bytes, char *buf, size_t n)
{
    static const char *const names[] = { "B", "kB", "MB", "GB", "TB", "PB" };

    return scaled(bytes, 1, names, GW_ARRAY_LEN(names), buf, n);
}

const char *gw_text_rate(double bps, char *buf, size_t n)
{
    static const char *const names[] = { "bit/s", "kbit/s", "Mbit/s", "Gbit/s", "Tbit/s" };

    return scaled(bps, 1, names, GW_ARRAY_LEN(names), buf, n);
}

static void number_text(double v, enum unit unit, char *buf)
{
    static const char *const times[] = { "ps", "ns", "us", "ms", "s" };

    if (unit == UNIT_RATE && v == 0)
        snprintf(buf, CELL_TEXT, "unlimited");
    else if (unit == UNIT_S && v != 0)
        scaled(v, 1e-12, times, GW_ARRAY_LEN(times), buf, CELL_TEXT);
    else if (unit == UNIT_BYTES)
        gw_text_bytes(v, buf, CELL_TEXT);
    else if (unit == UNIT_BPS || unit == UNIT_RATE)
        gw_text_rate(v, buf, CELL_TEXT);
    else if (unit == UNIT_PART)
        snprintf(buf, CELL_TEXT, "%.4g %%", 100 * v);
    else
        snprintf(buf, CELL_TEXT, "%.4g%s", v, unit == UNIT_S ? " s" : "");
}

/* What stands in a cell of the text form; @buf of CELL_TEXT is used for numbers. */
static const char *cell_text(const struct gw_cell *c, enum unit unit, char *buf)
{
    switch (c->kind) {
    case GW_CELL_TEXT:
        return c->t;
    case GW_CELL_REAL:
        number_text(c->r, unit, buf);
        return buf;
    case GW_CELL_INT:
        if (unit != UNIT_NONE)
            number_text((double)c->i, unit, buf);
        else
            snprintf(buf, CELL_TEXT, "%lld", (long long)c->i);
        return buf;
    case GW_CELL_NULL:
        break;
    }
    return "-";
}

/* Characters, not bytes, of UTF-8. */
static size_t text_width(const char *s)
{
    size_t n = 0;

    for (; *s; s++)
        n += ((unsigned char)*s & 0xc0) != 0x80;
    return n;
}

static void pad(FILE *f, size_t n)
{
    while (n--)
        fputc(' ', f);
}

static size_t shown_rows(const struct gw_table *t)
{
    return t->rows > TEXT_ROWS + 1 ? TEXT_ROWS : t->rows;
}

/* Numbers stand right, text left; a column is text if any of its cells is. */
static bool column_is_text(const struct gw_table *t, uint32_t c)
{
    for (size_t r = 0; r < t->rows; r++)
        if (t->cell[r * t->columns + c].kind == GW_CELL_TEXT)
            return true;
    return false;
}

/* A column without any value, such as the reason why something is missing, is left out. */
static bool column_is_empty(const struct gw_table *t, uint32_t c)
{
    for (size_t r = 0; r < t->rows; r++)
        if (t->cell[r * t->columns + c].kind != GW_CELL_NULL)
            return false;
    return t->rows > 0;
}

static void column_head(const char *name, char *buf, size_t n)
{
    size_t stem;

    column_unit(name, &stem);
    snprintf(buf, n, "%.*s", (int)stem, name);
    for (char *p = buf; *p; p++)
        if (*p == '_')
            *p = ' ';
}

static size_t column_width(const struct gw_table *t, uint32_t c)
{
    char buf[CELL_TEXT];
    size_t stem, width;
    enum unit unit = column_unit(t->column[c], &stem);

    width = stem;
    for (size_t r = 0; r < shown_rows(t); r++) {
        size_t w = text_width(cell_text(&t->cell[r * t->columns + c], unit, buf));

        width = w > width ? w : width;
    }
    return width;
}

static void text_put(FILE *f, const char *s, size_t width, bool left, bool last)
{
    size_t w = text_width(s);
    size_t gap = width > w ? width - w : 0;

    fputs("  ", f);
    if (!left)
        pad(f, gap);
    fputs(s, f);
    if (left && !last)
        pad(f, gap);
}

/* Row @r, or the head for SIZE_MAX. Columns of width 0 are left out. */
static void text_row(const struct gw_table *t, size_t r, const size_t *width, FILE *f)
{
    char buf[CELL_TEXT], head[CELL_TEXT];
    uint32_t last = t->columns;
    size_t stem;

    while (last && !width[last - 1])
        last--;
    for (uint32_t c = 0; c < t->columns; c++) {
        enum unit unit = column_unit(t->column[c], &stem);

        if (!width[c])
            continue;
        column_head(t->column[c], head, sizeof head);
        text_put(f, r == SIZE_MAX ? head : cell_text(&t->cell[r * t->columns + c], unit, buf),
                 width[c], column_is_text(t, c), c + 1 == last);
    }
    fputc('\n', f);
}

static enum gw_status table_text(const struct gw_table *t, FILE *f)
{
    size_t *width = calloc(t->columns ? t->columns : 1, sizeof *width);

    if (!width)
        return GW_NOMEM;
    for (uint32_t c = 0; c < t->columns; c++)
        width[c] = column_is_empty(t, c) ? 0 : column_width(t, c);
    fprintf(f, "%s\n", t->title);
    text_row(t, SIZE_MAX, width, f);
    for (size_t r = 0; r < shown_rows(t); r++)
        text_row(t, r, width, f);
    if (t->rows > shown_rows(t))
        fprintf(f, "  ... %zu more rows; --json and --csv give all\n", t->rows - shown_rows(t));
    if (t->note)
        fprintf(f, "  %s\n", t->note);
    free(width);
    return ferror(f) ? GW_IO : GW_OK;
}

enum gw_status gw_tables_text(const struct gw_tables *t, FILE *f)
{
    enum gw_status code = GW_OK;
    bool any = false;

    for (const struct gw_table *x = t->first; x && code == GW_OK; x = x->next) {
        if (!x->rows)
            continue;
        if (any)
            fputc('\n', f);
        any  = true;
        code = table_text(x, f);
    }
    if (!any)
        fputs("(nothing recorded)\n", f);
    return code;
}

/* ---- JSON --------------------------------------------------------------------------------- */

static json_t *cell_json(const struct gw_cell *c)
{
    switch (c->kind) {
    case GW_CELL_INT:
        return json_integer(c->i);
    case GW_CELL_REAL:
        return json_real(c->r);
    case GW_CELL_TEXT: {
        json_t *s = json_string(c->t);

        return s ? s : json_string("(not UTF-8)");
    }
    case GW_CELL_NULL:
        break;
    }
    return json_null();
}

static json_t *table_json(const struct gw_table *t)
{
    json_t *rows = json_array();
    bool ok = rows != NULL;

    for (size_t r = 0; ok && r < t->rows; r++) {
        json_t *row = json_object();

        for (uint32_t c = 0; row && ok && c < t->columns; c++)
            ok = !json_object_set_new(row, t->column[c], cell_json(&t->cell[r * t->columns + c]));
        ok = !json_array_append_new(rows, row) && ok;
    }
    if (!ok) {
        json_decref(rows);
        return NULL;
    }
    return rows;
}

enum gw_status gw_tables_json(const struct gw_tables *t, FILE *f)
{
    json_t *all = json_object();
    enum gw_status code = all ? GW_OK : GW_NOMEM;

    for (const struct gw_table *x = t->first; x && code == GW_OK; x = x->next)
        if (json_object_set_new(all, x->name, table_json(x)))
            code = GW_NOMEM;
    if (code == GW_OK && (json_dumpf(all, f, JSON_INDENT(2) | JSON_REAL_PRECISION(17)) ||
                          fputc('\n', f) == EOF || ferror(f)))
        code = GW_IO;
    json_decref(all);
    return code;
}

/* ---- CSV (RFC 4180, lines end in LF) ------------------------------------------------------- */

static void csv_text(FILE *f, const char *s)
{
    if (!strpbrk(s, ",\"\r\n")) {
        fputs(s, f);
        return;
    }
    fputc('"', f);
    for (; *s; s++) {
        if (*s == '"')
            fputc('"', f);
        fputc(*s, f);
    }
    fputc('"', f);
}

/* The shortest of 15 to 17 digits that reads back as the same number. */
static void csv_real(FILE *f, double v)
{
    char buf[40];

    for (int digits = 15; digits <= 17; digits++) {
        snprintf(buf, sizeof buf, "%.*g", digits, v);
        if (strtod(buf, NULL) == v)
            break;
    }
    fputs(buf, f);
}

static void csv_cell(FILE *f, const struct gw_cell *c)
{
    if (c->kind == GW_CELL_INT)
        fprintf(f, "%lld", (long long)c->i);
    else if (c->kind == GW_CELL_REAL)
        csv_real(f, c->r);
    else if (c->kind == GW_CELL_TEXT)
        csv_text(f, c->t);
}

static void table_csv(const struct gw_table *t, FILE *f)
{
    for (uint32_t c = 0; c < t->columns; c++) {
        fputs(c ? "," : "", f);
        csv_text(f, t->column[c]);
    }
    fputc('\n', f);
    for (size_t r = 0; r < t->rows; r++) {
        for (uint32_t c = 0; c < t->columns; c++) {
            fputs(c ? "," : "", f);
            csv_cell(f, &t->cell[r * t->columns + c]);
        }
        fputc('\n', f);
    }
}

static enum gw_status csv_file(const struct gw_table *t, const char *path, bool force,
                               struct gw_error *err)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC | (force ? O_TRUNC : O_EXCL), 0666);
    FILE *f = fd < 0 ? NULL : fdopen(fd, "w");
    bool bad;

    if (!f && errno == EEXIST)
        return gw_fail(err, GW_IO, "%s: exists already; choose another directory or give --force",
                       path);
    if (!f) {
        int why = errno;

        if (fd >= 0)
            close(fd);
        return gw_fail(err, GW_IO, "%s: cannot be created: %s", path, strerror(why));
    }
    table_csv(t, f);
    bad = ferror(f);
    errno = 0;
    bad |= fclose(f) != 0;
    if (bad)
        return gw_fail(err, GW_IO, "%s: cannot be written: %s", path,
                       errno ? strerror(errno) : "write error");
    return GW_OK;
}

/* Says before anything is written whether some file stands already. */
static enum gw_status csv_free_names(const struct gw_tables *t, const char *dir, char *path,
                                     size_t n, struct gw_error *err)
{
    for (const struct gw_table *x = t->first; x; x = x->next) {
        snprintf(path, n, "%s/%.255s.csv", dir, x->name);
        if (!access(path, F_OK))
            return gw_fail(err, GW_IO, "%s: exists already; choose another directory or give "
                           "--force", path);
    }
    return GW_OK;
}

enum gw_status gw_tables_csv(const struct gw_tables *t, const char *dir, bool force,
                             struct gw_error *err)
{
    size_t n = strlen(dir) + 300;
    char *path = malloc(n);
    enum gw_status code = GW_OK;

    if (!path)
        return gw_fail(err, GW_NOMEM, "%s: out of memory", dir);
    if (mkdir(dir, 0777) && errno != EEXIST)
        code = gw_fail(err, GW_IO, "%s: cannot be created: %s", dir, strerror(errno));
    if (code == GW_OK && !force)
        code = csv_free_names(t, dir, path, n, err);
    for (const struct gw_table *x = t->first; x && code == GW_OK; x = x->next) {
        snprintf(path, n, "%s/%.255s.csv", dir, x->name);
        code = csv_file(x, path, force, err);
    }
    free(path);
    return code;
}
