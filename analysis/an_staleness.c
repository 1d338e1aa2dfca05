/*
 * an_staleness - how old the workers' copies of parameters are when updates may be lost
 *
 * In training over a transport that leaves holes, an owner sends its shard of new parameters to
 * all workers, and a worker that misses a piece keeps its old one (Weintraub, Banner and Orda,
 * "Distributed Training under Packet Loss", 2025, arXiv 2507.07114). The age of a piece is the
 * number of iterations since the worker last received it: 0, it is up to date. A piece is a grain
 * of a message of class parameter, that is a packet, or the whole message if the transport says so.
 * The record's bitmaps tell for every worker, owner, layer and piece in which iterations it came.
 *
 * With independent losses of a share p the age is geometric: a share p of the copies is stale, the
 * mean age is p / (1 - p), and two workers' copies of a piece differ by 2 p / (1 - p^2) iterations
 * on average, for ever; `gap_independent_steps` is that for the p that was met. Bursts make both
 * greater. The gap is taken over all pairs of workers; the owner's own copy does not count. The
 * first quarter of the iterations, at most 16, is left out: there all copies are young.
 *
 * Needs all messages in the record (`records: {flows: all}`).
 */
#include <gradwire/alg/iterations.h>
#include <gradwire/gradwire.h>

#define SKIP_MAX 16

struct copy {                        /* one worker's copy of the shard                          */
    int64_t   rank;
    uint32_t *age;                   /* per grain                                               */
};

struct shard {
    int64_t job, owner, layer, iteration;
    struct copy *copy;
    size_t copies, room;
    uint32_t grains;                 /* ages that each copy holds; more are 0                   */
};

struct ages {                        /* of a job                                                */
    double copies, stale, age, pairs, gap;
    uint32_t age_max, grains_max;
    size_t workers;
};

static void shard_clear(struct shard *s)
{
    for (size_t i = 0; i < s->copies; i++)
        free(s->copy[i].age);
    s->copies = 0;
    s->grains = 0;
}

static bool shard_grains(struct shard *s, uint32_t grains)
{
    for (size_t i = 0; i < s->copies; i++) {
        uint32_t *v = realloc(s->copy[i].age, grains * sizeof *v);

        if (!v)
            return false;
        memset(v + s->grains, 0, (grains - s->grains) * sizeof *v);
        s->copy[i].age = v;
    }
    s->grains = grains;
    return true;
}

/* The copy of worker @rank; NULL: out of memory. */
static struct copy *shard_copy(struct shard *s, int64_t rank)
{
    struct copy *c;

    for (size_t i = 0; i < s->copies; i++)
        if (s->copy[i].rank == rank)
            return &s->copy[i];
    if (s->copies == s->room) {
        size_t room = s->room ? 2 * s->room : 16;

        c = realloc(s->copy, room * sizeof *c);
        if (!c)
            return NULL;
        s->copy = c;
        s->room = room;
    }
    c = &s->copy[s->copies];
    c->rank = rank;
    c->age = calloc(s->grains ? s->grains : 1, sizeof *c->age);
    if (!c->age)
        return NULL;
    s->copies++;
    return c;
}

/* A message to @rank came with holes: @arrived, @grains bits; or whole, @arrived NULL. */
static bool shard_message(struct shard *s, int64_t rank, uint32_t grains, const uint8_t *arrived,
                          size_t bytes)
{
    struct copy *c = shard_copy(s, rank);

    if (!c || (arrived && grains > s->grains && !shard_grains(s, grains)))
        return false;
    for (uint32_t g = 0; g < s->grains; g++) {
        bool here = !arrived || g / 8 >= bytes || arrived[g / 8] >> (g % 8) & 1;

        c->age[g] = here ? 0 : c->age[g] + 1;
    }
    return true;
}

/* Sum of the differences of all pairs: for each step t, those at most t old times the others. */
static double pair_gaps(const struct shard *s, uint32_t g, uint32_t oldest)
{
    double sum = 0;

    for (uint32_t t = 0; t < oldest; t++) {
        size_t young = 0;

        for (size_t i = 0; i < s->copies; i++)
            young += s->copy[i].age[g] <= t;
        sum += (double)young * (double)(s->copies - young);
    }
    return sum;
}

/* Adds the state behind an iteration. */
static void ages_add(struct ages *a, const struct shard *s)
{
    double n = (double)s->copies, grains = s->grains ? s->grains : 1;

    a->copies += n * grains;
    a->pairs += n * (n - 1) / 2 * grains;
    a->workers = s->copies > a->workers ? s->copies : a->workers;
    a->grains_max = s->grains > a->grains_max ? s->grains : a->grains_max;
    for (uint32_t g = 0; g < s->grains; g++) {
        uint32_t oldest = 0;

        for (size_t i = 0; i < s->copies; i++) {
            uint32_t age = s->copy[i].age[g];

            a->stale += age > 0;
            a->age += age;
            oldest = age > oldest ? age : oldest;
        }
        if (oldest)
            a->gap += pair_gaps(s, g, oldest);
        a->age_max = oldest > a->age_max ? oldest : a->age_max;
    }
}

/* Share of the gradient bytes of @job that did not come. */
static double gradients_missing(struct gw_analysis *a, int64_t job, struct gw_error *err)
{
    sqlite3_stmt *st = gw_db_query(a->db, "SELECT ifnull(sum(missing_bytes), 0) * 1.0 / sum(bytes)"
                                   " FROM message m LEFT JOIN message_loss l USING(message)"
                                   " WHERE m.job = ?1 AND class = 5", err);
    double share = NAN;

    if (!st)
        return share;
    sqlite3_bind_int64(st, 1, job);
    if (sqlite3_step(st) == SQLITE_ROW && sqlite3_column_type(st, 0) != SQLITE_NULL)
        share = sqlite3_column_double(st, 0);
    sqlite3_finalize(st);
    return share;
}

static enum gw_status put_row(struct gw_analysis *a, struct gw_table *t, int64_t job,
                              const char *name, const struct ages *g, struct gw_error *err)
{
    double p = g->copies > 0 ? g->stale / g->copies : (double)NAN;
    struct gw_cell row[] = {
        gw_cell_text(name), gw_cell_int((int64_t)g->workers + 1), gw_cell_int(g->grains_max),
        gw_cell_real(gradients_missing(a, job, err)), gw_cell_real(p),
        gw_cell_real(g->copies > 0 ? g->age / g->copies : (double)NAN), gw_cell_int(g->age_max),
        gw_cell_real(g->pairs > 0 ? g->gap / g->pairs : (double)NAN),
        gw_cell_real(p < 1 ? 2 * p / (1 - p * p) : (double)NAN),
    };

    return a->host->table_row(t, row);
}

/* One job; @st steps through its parameter messages by owner, layer, iteration. */
static enum gw_status one_job(struct gw_analysis *a, struct gw_table *t, int64_t job,
                              const char *name, int64_t iterations, struct gw_error *err)
{
    sqlite3_stmt *st = gw_db_query(a->db, "SELECT src_rank, ifnull(layer, 0), m.iteration,"
                                   " dst_rank, grains, arrived FROM message m LEFT JOIN"
                                   " message_loss l USING(message) WHERE m.job = ?1 AND class = 6"
                                   " AND m.iteration IS NOT NULL ORDER BY 1, 2, 3", err);
    int64_t skip = iterations / 4 < SKIP_MAX ? iterations / 4 : SKIP_MAX;
    struct shard s = { .iteration = -1 };
    struct ages ages = { 0 };
    bool ok = true;
    int rc = SQLITE_DONE;

    if (!st)
        return GW_IO;
    sqlite3_bind_int64(st, 1, job);
    while (ok && (rc = sqlite3_step(st)) == SQLITE_ROW) {
        int64_t owner = sqlite3_column_int64(st, 0), layer = sqlite3_column_int64(st, 1);
        int64_t iteration = sqlite3_column_int64(st, 2), grains = sqlite3_column_int64(st, 4);
        const uint8_t *arrived = sqlite3_column_blob(st, 5);

        if ((iteration != s.iteration || owner != s.owner || layer != s.layer) &&
            s.iteration >= skip)
            ages_add(&ages, &s);
        if (owner != s.owner || layer != s.layer)
            shard_clear(&s);
        s.owner = owner;
        s.layer = layer;
        s.iteration = iteration;
        ok = grains < UINT32_MAX / 4 &&
             shard_message(&s, sqlite3_column_int64(st, 3), (uint32_t)grains, arrived,
                           (size_t)sqlite3_column_bytes(st, 5));
    }
    if (s.copies && s.iteration >= skip)
        ages_add(&ages, &s);
    shard_clear(&s);
    free(s.copy);
    if (!ok)
        gw_fail(err, GW_NOMEM, "analysis staleness: out of memory");
    if (gw_db_done(st, rc, err) != GW_OK || !ok)
        return ok ? GW_IO : GW_NOMEM;
    return ages.copies > 0 ? put_row(a, t, job, name, &ages, err) : GW_OK;
}

/* Jobs with a message that ended with holes; NULL with GW_OK: the record knows no such thing. */
static sqlite3_stmt *lossy_jobs(struct gw_analysis *a, struct gw_error *err)
{
    sqlite3_stmt *st = gw_db_query(a->db, "SELECT 1 FROM sqlite_master WHERE name ="
                                   " 'message_loss'", err);
    bool known = st && sqlite3_step(st) == SQLITE_ROW;

    sqlite3_finalize(st);
    if (!known)
        return NULL;
    return gw_db_query(a->db, "SELECT job, name, iterations FROM job WHERE job IN (SELECT job FROM"
                       " message_loss) ORDER BY job", err);
}

static enum gw_status staleness_run(struct gw_analysis *a, struct gw_error *err)
{
    static const char *const columns[] = {
        "job", "workers", "pieces", "gradient_missing_share", "stale_share", "mean_age_steps",
        "max_age_steps", "age_gap_steps", "gap_independent_steps",
    };
    sqlite3_stmt *jobs = lossy_jobs(a, err);
    struct gw_table *t = NULL;
    enum gw_status code = GW_OK;

    if (!jobs)
        return err && err->code != GW_OK ? err->code : GW_OK;
    while (code == GW_OK && sqlite3_step(jobs) == SQLITE_ROW) {
        if (!t) {
            t = a->host->table_new(a, "staleness", "How old the workers' parameters are", columns,
                                   GW_ARRAY_LEN(columns));
            code = t ? a->host->table_note(t, "age: iterations since the piece last came; gap: "
                                           "difference between two workers' copies of a piece")
                     : gw_fail(err, GW_NOMEM, "analysis staleness: out of memory");
        }
        if (code == GW_OK)
            code = one_job(a, t, sqlite3_column_int64(jobs, 0),
                           (const char *)sqlite3_column_text(jobs, 1),
                           sqlite3_column_int64(jobs, 2), err);
    }
    sqlite3_finalize(jobs);
    return code;
}

static const struct gw_analysis_ops staleness_ops = {
    .run = staleness_run,
};

GW_PLUGIN(gw_analysis_staleness) = {
    GW_PLUGIN_HEAD(GW_KIND_ANALYSIS, staleness_ops),
    .name    = "staleness",
    .summary = "Age of the workers' parameters, and gap between them, under a lossy transport.",
    .source  = "Weintraub, Banner, Orda, 2025 (arXiv 2507.07114)",
};
