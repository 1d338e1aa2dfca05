/*
 * alg/reducecost.h - the cost of adding vectors, by name or from a file
 *
 * "none" is free; "a6" is the table that Zhang et al., "Is Network the Bottleneck of Distributed
 * Training?", NetAI 2020, measured on a V100 (PAPERS.md A6); anything else is a CSV file with rows
 * bytes,seconds, ascending, an optional header of these two words and comments behind #.
 */
#ifndef GRADWIRE_ALG_REDUCECOST_H
#define GRADWIRE_ALG_REDUCECOST_H

#include <gradwire/alg/datafile.h>
#include <gradwire/alg/layertable.h>
#include <gradwire/plugin.h>

struct gw_reduce_cost {
    struct gw_cost_table table;
    struct gw_cost_row  *row;    /* read from a file, owned; else NULL                         */
    uint32_t             cap;
};

/* What goes into gw_coll.reduce. */
static inline const struct gw_cost_table *gw_reduce_cost_table(const struct gw_reduce_cost *c)
{
    return c->table.count ? &c->table : NULL;
}

static inline void gw_reduce_cost_free(const struct gw_host *h, struct gw_reduce_cost *c)
{
    h->release(c->row);
    memset(c, 0, sizeof *c);
}

/* Appends the row in @line (changed), line @no of @path; the header row is passed over. */
static inline enum gw_status gw_reduce_cost_line(struct gw_job *job, char *line, const char *path,
                                                 uint32_t no, struct gw_reduce_cost *c,
                                                 struct gw_error *err)
{
    struct gw_cost_row  r, *more;
    char               *f[2] = { 0 };
    uint32_t            n = gw_csv_split(gw_line_trim(line), f, 2);

    if (n == 2 && !c->table.count && !strcmp(f[0], "bytes") && !strcmp(f[1], "seconds"))
        return GW_OK;
    if (n != 2 || !gw_num_f64(f[0], &r.bytes) || !gw_num_f64(f[1], &r.seconds) || r.bytes < 0 ||
        r.seconds < 0 || r.seconds > GW_LAYER_S_MAX)
        return gw_fail(err, GW_SYNTAX, "%s:%u: a row of a cost table is bytes,seconds with plain "
                       "numbers from 0", path, no);
    if (c->table.count && r.bytes <= c->row[c->table.count - 1].bytes)
        return gw_fail(err, GW_SYNTAX, "%s:%u: the bytes of a cost table must ascend, here %s "
                       "follows %g", path, no, f[0], c->row[c->table.count - 1].bytes);
    if (c->table.count == c->cap) {
        c->cap = c->cap ? c->cap * 2 : 16;
        more   = job->host->resize(c->row, (size_t)c->cap * sizeof r);
        if (!more)
            return gw_fail(err, GW_NOMEM, "%s:%u: out of memory", path, no);
        c->table.row = c->row = more;
    }
    c->row[c->table.count++] = r;
    return GW_OK;
}

/*
 * gw_reduce_cost_read() - the table called @name into @c (zeroed)
 *
 * Files are looked up like layer tables. @c is freed with gw_reduce_cost_free, also when this
 * failed.
 */
static inline enum gw_status gw_reduce_cost_read(struct gw_job *job, const char *name,
                                                 struct gw_reduce_cost *c, struct gw_error *err)
{
    static const struct gw_cost_row a6[] = {
        { 1.0e6,  1.0e-5 },  { 1.31e6, 1.07e-5 }, { 2.62e6, 1.82e-5 }, { 5.24e6, 2.89e-5 },
        { 1.05e7, 4.82e-5 }, { 2.10e7, 8.53e-5 }, { 4.19e7, 1.61e-4 }, { 8.39e7, 3.14e-4 },
        { 1.68e8, 6.16e-4 }, { 3.36e8, 1.22e-3 }, { 6.71e8, 2.43e-3 },
    };
    enum gw_status st = GW_OK;
    char     path[4096], *line = NULL;
    size_t   room = 0;
    uint32_t no = 0;
    FILE    *f;

    if (!strcmp(name, "none"))
        return GW_OK;
    if (!strcmp(name, "a6")) {
        c->table = (struct gw_cost_table){ a6, GW_ARRAY_LEN(a6) };
        return GW_OK;
    }
    f = gw_open_option(job->host, job->value, "reduce_cost", job->study_dir, "models", name, path,
                       sizeof path, err);
    if (!f)
        return err && err->code != GW_OK ? err->code : GW_IO;
    while (gw_text_line(f, path, &line, &room, &no, &st, err)) {
        if (!gw_line_blank(line))
            st = gw_reduce_cost_line(job, line, path, no, c, err);
    }
    if (st == GW_OK && !c->table.count)
        st = gw_fail(err, GW_SYNTAX, "%s: the cost table has no rows", path);
    free(line);
    fclose(f);
    return st;
}

#endif
