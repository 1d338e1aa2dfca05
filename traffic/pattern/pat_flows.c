/*
 * pat_flows - a list of flows: from, to, bytes, start, after
 *
 * The flows stand in the study (`flows:`, a list of maps) or in a CSV file (`file:`), one a row:
 * from,to,bytes,start, with or without that header row; with it, columns may stand in any order and
 * `start` may be missing. Sizes and times have units (`10MB`, `5ms`; bytes may be bare). Hosts go
 * by name and become ranks in the order in which they appear. Every flow is a connection of its own
 * and begins at its start, counted from the begin of the iteration, or, with `after: N`, from the end
 * of the N-th flow of the list (from 1), which has to begin or end at the host that sends. Flows that
 * wait for each other in a circle are refused.
 *
 * Left out: waiting for several flows (write a traffic plugin), arrival processes.
 */
#include <stdlib.h>

#include <gradwire/alg/datafile.h>
#include <gradwire/alg/layertable.h>
#include <gradwire/alg/program.h>

#define FLOWS_FIELDS 5

struct flows_conf {
    const struct gw_value *flows;
    const char *file;
    uint32_t priority;
};

struct flow {
    uint32_t from, to;           /* ranks                                                      */
    uint64_t bytes, start_ps;
    uint32_t after;              /* number of the flow that it waits for, from 1; 0: none      */
    uint32_t line;               /* where it stands, for sentences                             */
};

/* Flows of rank r: of_rank[first[r]] .. of_rank[first[r + 1] - 1], in order of the list. */
struct flows_job {
    struct gw_rankmap map;
    struct flow *flow;
    uint32_t    *first, *of_rank;
    uint32_t     count, cap;
};

struct flows_rank {
    gw_op_id last;
};

/* Column numbers of a CSV file, or the keys of an inline flow. */
enum { COL_FROM, COL_TO, COL_BYTES, COL_START, COL_AFTER };

static const char *const flows_column[FLOWS_FIELDS] = { "from", "to", "bytes", "start",
                                                       "after" };

static void flows_job_fini(struct gw_job *job)
{
    struct flows_job *j = job->priv;

    gw_rankmap_free(job->host, &j->map);
    job->host->release(j->flow);
    job->host->release(j->first);
    job->host->release(j->of_rank);
    memset(j, 0, sizeof *j);
}

static enum gw_status flows_nomem(const struct gw_job *job, struct gw_error *err)
{
    return gw_fail(err, GW_NOMEM, "job %s: out of memory for its flows", job->name);
}

/* Appends a flow from its values; start and after may be NULL. */
static enum gw_status flows_add(struct gw_job *job, struct gw_value *const *cell,
                                struct gw_error *err)
{
    const struct gw_host *h = job->host;
    struct flows_job *j = job->priv;
    struct flow f = { 0 };
    uint32_t   *rank[2] = { &f.from, &f.to };
    char        where[300];
    enum gw_status st;

    for (uint32_t i = COL_FROM; i <= COL_TO; i++) {
        const char *name = NULL;

        st = gw_value_text(h, cell[i], flows_column[i], &name, err);
        if (st != GW_OK)
            return st;
        h->value_where(cell[i], where, sizeof where);
        st = gw_rankmap_name(job, &j->map, name, where, rank[i], err);
        if (st != GW_OK)
            return st;
    }
    if (f.from == f.to)
        return gw_fail(err, GW_PARAM, "%s: a flow from host \"%s\" to itself crosses no network",
                       where, cell[COL_TO]->text);
    st = h->value_read(cell[COL_BYTES], GW_P_BYTES, &f.bytes, err);
    if (st == GW_OK && !f.bytes)
        st = gw_fail(err, GW_PARAM, "%s: bytes is 0; at least 1 is needed",
                     h->value_where(cell[COL_BYTES], where, sizeof where));
    if (st == GW_OK && cell[COL_START])
        st = h->value_read(cell[COL_START], GW_P_TIME, &f.start_ps, err);
    if (st == GW_OK && cell[COL_AFTER])
        st = h->value_read(cell[COL_AFTER], GW_P_U32, &f.after, err);
    f.line = cell[COL_FROM]->line;
    if (st != GW_OK)
        return st;
    if (j->count == j->cap) {
        uint32_t     cap  = j->cap ? j->cap * 2 : 64;
        struct flow *more = cap > j->cap ? h->resize(j->flow, (size_t)cap * sizeof f) : NULL;

        if (!more)
            return flows_nomem(job, err);
        j->flow = more;
        j->cap  = cap;
    }
    j->flow[j->count++] = f;
    return GW_OK;
}

/* One entry of the inline list. */
static enum gw_status flows_entry(struct gw_job *job, struct gw_value *v, struct gw_error *err)
{
    struct gw_value *cell[FLOWS_FIELDS];
    char where[300];

    v->used = true;
    job->host->value_where(v, where, sizeof where);
    if (v->kind != GW_V_MAP)
        return gw_fail(err, GW_PARAM, "%s: a flow is a map {from: a, to: b, bytes: 1MB, start: 0}",
                       where);
    for (uint32_t i = 0; i < FLOWS_FIELDS; i++) {
        cell[i] = job->host->value_get(v, flows_column[i]);
        if (cell[i])
            cell[i]->used = true;
        else if (i < COL_START)
            return gw_fail(err, GW_PARAM, "%s: the flow lacks `%s`; {from: a, to: b, bytes: 1MB, "
                           "start: 0} is a whole one", where, flows_column[i]);
    }
    for (struct gw_value *e = v->child; e; e = e->next)
        if (e != cell[0] && e != cell[1] && e != cell[2] && e != cell[3] && e != cell[4])
            return gw_fail(err, GW_PARAM, "%s: a flow has no key `%s`; from, to, bytes, start and "
                           "after are its keys", job->host->value_where(e, where, sizeof where), e->key);
    return flows_add(job, cell, err);
}

static enum gw_status flows_inline(struct gw_job *job, struct gw_error *err)
{
    struct gw_value *list = job->host->value_get(job->value, "flows");
    enum gw_status st = GW_OK;
    char where[300];

    list->used = true;
    if (list->kind != GW_V_LIST)
        return gw_fail(err, GW_PARAM, "%s: flows is a list of maps {from: a, to: b, bytes: 1MB, "
                       "start: 0}", job->host->value_where(list, where, sizeof where));
    for (struct gw_value *v = list->child; v && st == GW_OK; v = v->next)
        st = flows_entry(job, v, err);
    return st;
}

/* Reads a header row into @column (column of each field, GW_NONE: missing); false: it is none. */
static bool flows_header(char *const *field, uint32_t n, uint32_t column[FLOWS_FIELDS])
{
    uint32_t found = 0;

    for (uint32_t k = 0; k < FLOWS_FIELDS; k++)
        column[k] = GW_NONE;
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t k = 0; k < FLOWS_FIELDS; k++)
            if (column[k] == GW_NONE && !strcmp(field[i], flows_column[k])) {
                column[k] = i;
                found++;
                break;
            }
    return found == n && column[COL_FROM] != GW_NONE && column[COL_TO] != GW_NONE &&
           column[COL_BYTES] != GW_NONE;
}

/* One line of the file. @column: where the fields stand; *rows: lines read so far. */
static enum gw_status flows_line(struct gw_job *job, char *line, const char *path, uint32_t no,
                                 uint32_t column[FLOWS_FIELDS], uint32_t *rows,
                                 struct gw_error *err)
{
    char *field[FLOWS_FIELDS] = { 0 };
    struct gw_value  value[FLOWS_FIELDS] = { 0 }, *cell[FLOWS_FIELDS] = { 0 };
    uint32_t names[FLOWS_FIELDS], n = gw_csv_split(gw_line_trim(line), field, FLOWS_FIELDS);
    bool     whole = n && n <= FLOWS_FIELDS;

    if (whole && !(*rows)++ && flows_header(field, n, names)) {
        memcpy(column, names, sizeof names);
        return GW_OK;
    }
    for (uint32_t k = 0; k < FLOWS_FIELDS && whole; k++) {
        uint32_t i = column[k];

        if (i < n && (*field[i] || k < COL_START)) {
            value[k] = (struct gw_value){ .kind = GW_V_SCALAR, .text = field[i],
                                          .key = flows_column[k], .file = path, .line = no,
                                          .col = (uint32_t)(field[i] - line) + 1 };
            cell[k] = &value[k];
        } else {
            whole = k >= COL_START;
        }
    }
    if (!whole)
        return gw_fail(err, GW_SYNTAX, "%s:%u: a flow is from,to,bytes,start,after, as in "
                       "\"h0,h1,10MB,5ms\" or \"h1,h2,10MB,0,1\"", path, no);
    return flows_add(job, cell, err);
}

static enum gw_status flows_file(struct gw_job *job, const char *name, struct gw_error *err)
{
    uint32_t column[FLOWS_FIELDS] = { COL_FROM, COL_TO, COL_BYTES, COL_START, COL_AFTER };
    uint32_t no = 0, rows = 0;
    enum gw_status st = GW_OK;
    char   path[4096], *line = NULL;
    size_t room = 0;
    FILE  *f = gw_open_option(job->host, job->value, "file", job->study_dir, "models", name, path,
                              sizeof path, err);

    if (!f)
        return err && err->code != GW_OK ? err->code : GW_IO;
    while (st == GW_OK && getline(&line, &room, f) >= 0) {
        no++;
        if (!gw_line_blank(line))
            st = flows_line(job, line, path, no, column, &rows, err);
    }
    if (st == GW_OK && ferror(f))
        st = gw_fail(err, GW_IO, "%s: cannot be read", path);
    free(line);
    fclose(f);
    return st;
}

static const char *flows_where(const struct gw_job *job, const struct flow *f, char *buf, size_t n)
{
    const struct flows_conf *conf = job->conf;

    if (conf->flows)
        snprintf(buf, n, "%s:%u", conf->flows->file, f->line);
    else
        snprintf(buf, n, "%s:%u", conf->file, f->line);
    return buf;
}

/*
 * Order in which every flow stands behind the one that it waits for: `order[k]`. A flow has at most
 * one, so following these links either ends or goes round.
 */
static enum gw_status flows_order(struct gw_job *job, uint32_t *order, struct gw_error *err)
{
    struct flows_job *j = job->priv;
    uint32_t *depth = job->host->alloc(((size_t)j->count + 1) * sizeof *depth), *at;
    char where[512];

    at = depth ? job->host->alloc(((size_t)j->count + 2) * sizeof *at) : NULL;
    if (!at) {
        job->host->release(depth);
        return flows_nomem(job, err);
    }
    for (uint32_t i = 0; i < j->count && (!err || err->code == GW_OK); i++) {
        const struct flow *f = &j->flow[i], *k = f->after ? &j->flow[f->after - 1] : NULL;

        if (f->after > j->count)
            gw_fail(err, GW_PARAM, "%s: after = %u: there are flows 1 to %u",
                    flows_where(job, f, where, sizeof where), f->after, j->count);
        else if (k && k->from != f->from && k->to != f->from)
            gw_fail(err, GW_PARAM, "%s: after = %u: that flow neither begins nor ends at the host "
                    "that sends this one; a host knows only of its own flows",
                    flows_where(job, f, where, sizeof where), f->after);
        while (f->after && f->after <= j->count && depth[i] <= j->count) {
            depth[i]++;
            f = &j->flow[f->after - 1];
        }
        if (depth[i] > j->count)
            gw_fail(err, GW_PARAM, "%s: after = %u: flows %u and %u wait for each other in a loop; "
                    "one flow of the loop has to begin by itself",
                    flows_where(job, &j->flow[i], where, sizeof where), j->flow[i].after, i + 1,
                    j->flow[i].after);
    }
    if (!err || err->code == GW_OK) {                 /* a counting sort by depth               */
        for (uint32_t i = 0; i < j->count; i++)
            at[depth[i] + 1]++;
        for (uint32_t d = 1; d <= j->count; d++)
            at[d] += at[d - 1];
        for (uint32_t i = 0; i < j->count; i++)
            order[at[depth[i]]++] = i;
    }
    job->host->release(depth);
    job->host->release(at);
    return err ? err->code : GW_OK;
}

/* Sorts the flows by the ranks that take part, in an order that dependencies allow. */
static enum gw_status flows_index(struct gw_job *job, struct gw_error *err)
{
    struct flows_job *j = job->priv;
    uint32_t n = j->map.count, *at, *order;

    j->first   = job->host->alloc(((size_t)n + 2) * sizeof *j->first);
    j->of_rank = job->host->alloc((size_t)j->count * 2 * sizeof *j->of_rank);
    if (!j->first || !j->of_rank)
        return flows_nomem(job, err);
    order = job->host->alloc(((size_t)j->count + 1) * sizeof *order);
    if (!order)
        return flows_nomem(job, err);
    if (flows_order(job, order, err) != GW_OK) {
        job->host->release(order);
        return err ? err->code : GW_PARAM;
    }
    at = j->first + 1;           /* shifted by one while filling, so that it ends in place     */
    for (uint32_t i = 0; i < j->count; i++) {
        at[j->flow[i].from + 1]++;
        at[j->flow[i].to + 1]++;
    }
    for (uint32_t r = 1; r <= n; r++)
        at[r] += at[r - 1];
    for (uint32_t k = 0; k < j->count; k++) {
        j->of_rank[at[j->flow[order[k]].from]++] = order[k];
        j->of_rank[at[j->flow[order[k]].to]++]   = order[k];
    }
    job->host->release(order);
    return GW_OK;
}

static enum gw_status flows_prepare(struct gw_job *job, struct gw_error *err)
{
    const struct flows_conf *conf = job->conf;
    struct flows_job *j = job->priv;
    enum gw_status st = gw_rankmap_open(job, &j->map, err);

    if (st != GW_OK)
        return st;
    if (!conf->flows == !(conf->file && *conf->file))
        return gw_fail(err, GW_PARAM, "job %s: flows stand either in the study (flows: [..]) or in "
                       "a CSV file (file: ..), give one of them", job->name);
    st = conf->flows ? flows_inline(job, err) : flows_file(job, conf->file, err);
    if (st != GW_OK)
        return st;
    if (!j->count)
        return gw_fail(err, GW_PARAM, "job %s: the list of flows is empty", job->name);
    if (j->count > UINT32_MAX / 2)
        return gw_fail(err, GW_RANGE, "job %s: more than 2^31 flows", job->name);
    st = gw_rankmap_close(job, &j->map, err);
    return st != GW_OK ? st : flows_index(job, err);
}

static enum gw_status flows_job_init(struct gw_job *job, struct gw_error *err)
{
    enum gw_status st = flows_prepare(job, err);

    if (st != GW_OK)
        flows_job_fini(job);
    return st;
}

static enum gw_status flows_next(struct gw_program *p, uint32_t iteration, struct gw_error *err)
{
    const struct flows_conf *conf = p->job->conf;
    const struct flows_job  *j = p->job->priv;
    const struct gw_host    *h = p->job->host;
    struct flows_rank *rank = p->priv;
    gw_op_id *op = h->alloc(((size_t)j->count + 1) * sizeof *op);    /* by flow, of this rank   */
    struct gw_shot shot;

    if (!op)
        return gw_prog_nomem(p, err);
    gw_shot_begin(&shot, p, iteration, conf->priority, rank->last);
    for (uint32_t k = j->first[p->rank]; k < j->first[p->rank + 1]; k++) {
        uint32_t           i   = j->of_rank[k];
        const struct flow *f   = &j->flow[i];
        uint32_t           tag = iteration * j->count + i;

        if (f->from == p->rank)
            gw_shot_send_after(&shot, f->to, f->bytes, tag, f->start_ps,
                               f->after ? op[f->after - 1] : shot.begin);
        else
            gw_shot_recv(&shot, f->from, f->bytes, tag);
        op[i] = gw_shot_last(&shot);
    }
    h->release(op);
    return gw_shot_end(&shot, &rank->last, err);
}

static const struct gw_traffic_ops flows_ops = {
    .conf_bytes = sizeof(struct flows_conf),
    .job_bytes  = sizeof(struct flows_job),
    .rank_bytes = sizeof(struct flows_rank),
    .job_init   = flows_job_init,
    .job_fini   = flows_job_fini,
    .next       = flows_next,
    .sets_ranks = true,
};

static const struct gw_param flows_params[] = {
    { "flows", GW_P_VALUE, offsetof(struct flows_conf, flows), "", NULL, NULL,
      "List of flows, each a map {from: a, to: b, bytes: 1MB, start: 5ms, after: N}; after: begins "
      "when the N-th flow of the list has ended." },
    { "file", GW_P_STRING, offsetof(struct flows_conf, file), "", NULL, NULL,
      "CSV file with the columns from, to, bytes, start, after instead of the list." },
    { "priority", GW_P_U32, offsetof(struct flows_conf, priority), "0", "0", "255",
      "Priority of the messages, 0 is most urgent." },
};

GW_PLUGIN(gw_traffic_flows) = {
    GW_PLUGIN_HEAD(GW_KIND_TRAFFIC, flows_ops),
    .name    = "flows",
    .summary = "A list of flows between hosts, each with its size and start; iterations begin "
               "together, when all ranks have ended the one before.",
    .params  = flows_params, .param_count = GW_ARRAY_LEN(flows_params),
};
