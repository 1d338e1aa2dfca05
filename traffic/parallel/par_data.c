/*
 * par_data - data-parallel training with fused, overlapped gradient collectives
 *
 * Every rank holds the whole model (a layer table) and repeats: forward pass, backward pass, and
 * during it one all-reduce per fused buffer of gradients; the next iteration begins when the
 * backward pass, all collectives and the update have ended on this rank. There is no barrier beyond
 * what the collectives are.
 *
 * Fusion is that of the authors' simulator in Zhang et al., "Is Network the Bottleneck of
 * Distributed Training?", NetAI 2020 (PAPERS.md A6), after Horovod: gradients appear in backward
 * order, each with the time since the one before; they are accumulated, and flushed when the
 * accumulated time reaches `fuse.wait` or the accumulated bytes reach `fuse.bytes`; the accumulator
 * resets at each flush, and a layer larger than the limit goes whole. What is left when the last
 * gradient appears is flushed then. Flushes queue first in, first out to one all-reduce engine: a
 * collective begins on a rank when its flush is ready and the collective before has ended there.
 * The times that fusion sees are those of the table times compute_scale, without jitter, so that
 * all ranks fuse alike. The default cost of adding vectors is the V100 table of the same paper.
 *
 * Left out: slowing of compute by overlapping communication, negotiation between ranks before a
 * collective, gradient accumulation over several mini-batches, sharded optimizer states.
 */
#include <stdlib.h>

#include <gradwire/alg/datafile.h>
#include <gradwire/alg/collective.h>
#include <gradwire/alg/layertable.h>
#include <gradwire/alg/program.h>
#include <gradwire/alg/reducecost.h>

struct dp_conf {
    const char *model;
    const char *collective;
    const char *reduce_cost;
    double      compression;
    double      compute_scale;
    uint64_t    message_overhead_ps;
    uint64_t    update_ps;
    uint64_t    fuse_bytes;
    uint64_t    fuse_wait_ps;
    uint32_t    priority;
    bool        fuse;
    bool        overlap;
};

struct dp_flush {
    uint64_t bytes;
    uint64_t ready_ps;           /* after the begin of the backward pass                       */
    uint16_t layer;              /* row of the layer whose gradient completed it               */
};

struct dp_job {
    const struct gw_collective_ops *coll;
    struct gw_reduce_cost cost;
    struct gw_layer_row  *layer;         /* only while job_init runs                           */
    struct dp_flush      *flush;
    uint32_t             *member;        /* 0, 1, .. ranks - 1                                 */
    char                 *mark;          /* "all-reduce ring"                                  */
    uint64_t              forward_ps, backward_ps;
    uint32_t              layers, flushes;
};

struct dp_rank {
    gw_op_id last;               /* end of the iteration before                                */
};

/* ---- reading ------------------------------------------------------------------------------ */

static enum gw_status dp_nomem(const struct gw_job *job, struct gw_error *err)
{
    return gw_fail(err, GW_NOMEM, "job %s: out of memory for its model", job->name);
}

/* Appends the layer row in @line; the first row that is not blank must be the header. */
static enum gw_status dp_layer_line(struct gw_job *job, char *line, const char *path, uint32_t no,
                                    bool *header, struct gw_error *err)
{
    struct dp_job       *j = job->priv;
    struct gw_layer_row  row;
    enum gw_status       st;

    if (!*header) {
        *header = gw_layer_header(line);
        if (*header)
            return GW_OK;
        return gw_fail(err, GW_SYNTAX, "%s:%u: this is no layer table, which begins with %s; "
                       "`gradwire convert` makes one from a profile", path, no, GW_LAYER_HEADER);
    }
    st = gw_layer_row_read(line, path, no, &row, err);
    if (st != GW_OK)
        return st;
    if (j->layers == GW_LAYER_MAX)
        return gw_fail(err, GW_SYNTAX, "%s:%u: more than %u layers", path, no, GW_LAYER_MAX);
    if (!gw_array_room(job->host, &j->layer, j->layers, sizeof row))
        return dp_nomem(job, err);
    row.name = NULL;             /* the line is reused; names are not needed                   */
    j->layer[j->layers++] = row;
    return GW_OK;
}

static enum gw_status dp_read_model(struct gw_job *job, struct gw_error *err)
{
    const struct dp_conf *conf = job->conf;
    struct dp_job *j = job->priv;
    enum gw_status st = GW_OK;
    char     path[4096], *line = NULL;
    size_t   room   = 0;
    uint32_t no     = 0;
    bool     header = false;
    FILE    *f = gw_open_option(job->host, job->value, "model", job->study_dir, "models",
                                conf->model, path, sizeof path, err);

    if (!f)
        return err && err->code != GW_OK ? err->code : GW_IO;
    while (gw_text_line(f, path, &line, &room, &no, &st, err)) {
        if (!gw_line_blank(line))
            st = dp_layer_line(job, line, path, no, &header, err);
    }
    if (st == GW_OK && !j->layers)
        st = gw_fail(err, GW_SYNTAX, "%s: the layer table has no rows", path);
    free(line);
    fclose(f);
    return st;
}

/* ---- fusion ------------------------------------------------------------------------------- */

/* Walks the gradients in backward order and notes the flushes. */
static enum gw_status dp_fuse_layers(struct gw_job *job, struct gw_error *err)
{
    const struct dp_conf *conf = job->conf;
    struct dp_job *j = job->priv;
    uint64_t enough   = conf->fuse ? conf->fuse_bytes : 1;
    double   now_s = 0;
    uint64_t bytes = 0, since_ps = 0;    /* in the buffer; when the buffer began               */
    struct dp_flush last = { 0 };

    for (uint32_t i = j->layers; i-- > 0;) {
        const struct gw_layer_row *l = &j->layer[i];

        now_s += l->backward_s * conf->compute_scale;
        if (!l->param_bytes)
            continue;
        if (bytes > INT64_MAX - l->param_bytes)
            return gw_fail(err, GW_RANGE, "job %s: the gradients of model %s add up to more than "
                           "2^63 bytes", job->name, conf->model);
        bytes += l->param_bytes;
        last = (struct dp_flush){ bytes, (uint64_t)(now_s * 1e12 + 0.5),
                                  (uint16_t)(i < UINT16_MAX ? i : UINT16_MAX) };
        if (last.ready_ps - since_ps < conf->fuse_wait_ps && bytes < enough)
            continue;
        if (!gw_array_room(job->host, &j->flush, j->flushes, sizeof last))
            return dp_nomem(job, err);
        j->flush[j->flushes++] = last;
        since_ps = last.ready_ps;
        bytes    = 0;
    }
    if (bytes) {
        if (!gw_array_room(job->host, &j->flush, j->flushes, sizeof last))
            return dp_nomem(job, err);
        j->flush[j->flushes++] = last;
    }
    j->backward_ps = (uint64_t)(now_s * 1e12 + 0.5);
    return GW_OK;
}

/* Both passes in ps; refuses what the engine cannot count. */
static enum gw_status dp_times(struct gw_job *job, struct gw_error *err)
{
    const struct dp_conf *conf = job->conf;
    struct dp_job *j = job->priv;
    double forward_s = 0, backward_s = 0;

    for (uint32_t i = 0; i < j->layers; i++) {
        forward_s  += j->layer[i].forward_s * conf->compute_scale;
        backward_s += j->layer[i].backward_s * conf->compute_scale;
    }
    if (forward_s + backward_s > GW_LAYER_S_MAX)
        return gw_fail(err, GW_RANGE, "job %s: one iteration of model %s computes for %g s; at "
                       "most 1e7 s can be counted", job->name, conf->model,
                       forward_s + backward_s);
    j->forward_ps = (uint64_t)(forward_s * 1e12 + 0.5);
    return dp_fuse_layers(job, err);
}

/* ---- callbacks ---------------------------------------------------------------------------- */

static void dp_job_fini(struct gw_job *job)
{
    const struct gw_host *h = job->host;
    struct dp_job *j = job->priv;

    h->release(j->layer);
    h->release(j->flush);
    h->release(j->member);
    gw_reduce_cost_free(h, &j->cost);
    h->release(j->mark);
    memset(j, 0, sizeof *j);
}

/* The algorithm by name, with the position of the key in its sentence. */
static enum gw_status dp_find(struct gw_job *job, struct gw_error *err)
{
    const struct dp_conf *conf = job->conf;
    const struct gw_host *h = job->host;
    struct dp_job   *j = job->priv;
    struct gw_value *v = h->value_get(job->value, "collective");
    char   where[300];
    size_t room = strlen(conf->collective) + sizeof "all-reduce ";

    h->value_where(v ? v : job->value, where, sizeof where);
    j->coll = h->find(h, GW_KIND_COLLECTIVE, conf->collective, where, err);
    if (!j->coll)
        return err && err->code != GW_OK ? err->code : GW_PARAM;
    if (!(j->coll->supports & 1u << GW_COLL_ALL_REDUCE))
        return gw_fail(err, GW_PARAM, "%s: collective %s has no all-reduce", where,
                       conf->collective);
    j->mark = h->alloc(room);
    if (!j->mark)
        return dp_nomem(job, err);
    snprintf(j->mark, room, "all-reduce %s", conf->collective);
    return GW_OK;
}

static enum gw_status dp_prepare(struct gw_job *job, struct gw_error *err)
{
    const struct dp_conf *conf = job->conf;
    struct dp_job *j = job->priv;
    enum gw_status st;

    if ((st = dp_find(job, err)) != GW_OK || (st = dp_read_model(job, err)) != GW_OK ||
        (st = gw_reduce_cost_read(job, conf->reduce_cost, &j->cost, err)) != GW_OK ||
        (st = dp_times(job, err)) != GW_OK)
        return st;
    job->host->release(j->layer);
    j->layer = NULL;
    if ((uint64_t)j->flushes * job->iterations > UINT32_MAX - 1)
        return gw_fail(err, GW_RANGE, "job %s: %u iterations of %u collectives are more than 2^32; "
                       "fewer iterations or larger buffers are needed", job->name,
                       job->iterations, j->flushes);
    j->member = job->host->alloc((size_t)(job->ranks ? job->ranks : 1) * sizeof *j->member);
    if (!j->member)
        return dp_nomem(job, err);
    for (uint32_t r = 0; r < job->ranks; r++)
        j->member[r] = r;
    return GW_OK;
}

static enum gw_status dp_job_init(struct gw_job *job, struct gw_error *err)
{
    enum gw_status st = dp_prepare(job, err);

    if (st != GW_OK)
        dp_job_fini(job);
    return st;
}

/* Computes for @duration_ps behind @after; nothing to do: @after itself. */
static gw_op_id dp_compute(struct gw_program *p, uint32_t iteration, enum gw_op_class cls,
                           uint64_t duration_ps, const gw_op_id *after, uint32_t count)
{
    struct gw_op op = {
        .kind = GW_OP_COMPUTE, .resource = GW_RES_COMPUTE, .cls = (uint8_t)cls,
        .flags = GW_OP_JITTER, .iteration = iteration, .duration_ps = duration_ps,
    };

    if (!duration_ps && count == 1)
        return *after;
    return p->job->host->op_add(p, &op, after, count);
}

/* One all-reduce of flush @k between its two marks; *engine: the one before, then this one. */
static enum gw_status dp_collective(struct gw_program *p, uint32_t iteration, uint32_t k,
                                    gw_op_id ready, gw_op_id *engine, struct gw_error *err)
{
    const struct dp_conf  *conf  = p->job->conf;
    const struct dp_job   *j     = p->job->priv;
    const struct dp_flush *flush = &j->flush[k];
    gw_op_id     after[2] = { ready, *engine }, done = 0;
    struct gw_op mark = {
        .kind = GW_OP_MARK, .mark = GW_MARK_COLL_BEGIN, .cls = GW_CLASS_GRADIENT,
        .priority = (uint8_t)conf->priority, .layer = flush->layer, .iteration = iteration,
        .collective = 1 + iteration * j->flushes + k, .bytes = flush->bytes, .name = j->mark,
    };
    struct gw_coll coll = {
        .program = p, .op = GW_COLL_ALL_REDUCE, .member = j->member, .size = p->job->ranks,
        .me = p->rank, .collective = mark.collective, .iteration = iteration,
        .layer = flush->layer, .priority = mark.priority, .bytes = flush->bytes,
        .compression = conf->compression, .reduce = gw_reduce_cost_table(&j->cost),
        .message_overhead_ps = conf->message_overhead_ps,
    };
    enum gw_status st;

    coll.after = p->job->host->op_add(p, &mark, after, 2);
    if (!coll.after)
        return gw_prog_nomem(p, err);
    st = j->coll->emit(&coll, &done, err);
    if (st != GW_OK)
        return st;
    mark.mark = GW_MARK_COLL_END;
    *engine   = p->job->host->op_add(p, &mark, &done, 1);
    return *engine ? GW_OK : gw_prog_nomem(p, err);
}

/* Backward pass and collectives; @tail[0]: end of the pass, @tail[1]: of the last collective. */
static enum gw_status dp_backward(struct gw_program *p, uint32_t iteration, gw_op_id begin,
                                  gw_op_id tail[2], struct gw_error *err)
{
    const struct dp_conf *conf = p->job->conf;
    const struct dp_job  *j = p->job->priv;
    gw_op_id *ready = p->job->host->alloc(((size_t)j->flushes + 1) * sizeof *ready);
    gw_op_id  now   = begin;
    uint64_t  at_ps = 0;
    enum gw_status st = GW_OK;

    if (!ready)
        return gw_prog_nomem(p, err);
    for (uint32_t k = 0; k <= j->flushes && now; k++) {
        uint64_t end_ps = k < j->flushes ? j->flush[k].ready_ps : j->backward_ps;

        ready[k] = now = dp_compute(p, iteration, GW_CLASS_BACKWARD, end_ps - at_ps, &now, 1);
        at_ps    = end_ps;
    }
    if (!now)
        st = gw_prog_nomem(p, err);
    tail[0] = now;
    tail[1] = 0;
    for (uint32_t k = 0; k < j->flushes && st == GW_OK; k++)
        st = dp_collective(p, iteration, k, conf->overlap ? ready[k] : now, &tail[1], err);
    p->job->host->release(ready);
    return st;
}

static enum gw_status dp_next(struct gw_program *p, uint32_t iteration, struct gw_error *err)
{
    const struct dp_conf *conf = p->job->conf;
    const struct dp_job  *j = p->job->priv;
    struct dp_rank *rank = p->priv;
    gw_op_id begin = gw_prog_mark(p, GW_MARK_ITER_BEGIN, iteration, &rank->last, 1);
    gw_op_id tail[2];
    uint32_t tails = 2;
    enum gw_status st;

    if (begin)
        begin = dp_compute(p, iteration, GW_CLASS_FORWARD, j->forward_ps, &begin, 1);
    if (!begin)
        return gw_prog_nomem(p, err);
    st = dp_backward(p, iteration, begin, tail, err);
    if (st != GW_OK)
        return st;
    if (conf->update_ps) {
        tail[0] = dp_compute(p, iteration, GW_CLASS_UPDATE, conf->update_ps, tail, 2);
        tails   = 1;
    }
    if (tail[0])
        rank->last = gw_prog_mark(p, GW_MARK_ITER_END, iteration, tail, tails);
    return tail[0] && rank->last ? GW_OK : gw_prog_nomem(p, err);
}

static const struct gw_traffic_ops dp_ops = {
    .conf_bytes = sizeof(struct dp_conf),
    .job_bytes  = sizeof(struct dp_job),
    .rank_bytes = sizeof(struct dp_rank),
    .job_init   = dp_job_init,
    .job_fini   = dp_job_fini,
    .next       = dp_next,
};

static const struct gw_param dp_params[] = {
    { "model", GW_P_STRING, offsetof(struct dp_conf, model), NULL, NULL, NULL,
      "Layer table: a name of the installed models (resnet50, vgg16 ...) or a CSV file." },
    { "collective", GW_P_STRING, offsetof(struct dp_conf, collective), "ring", NULL, NULL,
      "Algorithm of the all-reduce: ring, ps, ps-single or another collective plugin." },
    { "fuse", GW_P_BOOL, offsetof(struct dp_conf, fuse), "yes", NULL, NULL,
      "Bucket fusion: a map {bytes: 64MiB, wait: 5ms}; off: one all-reduce for each gradient." },
    { "fuse.bytes", GW_P_BYTES, offsetof(struct dp_conf, fuse_bytes), "64MiB", "1", NULL,
      "A buffer is flushed when it holds this much." },
    { "fuse.wait", GW_P_TIME, offsetof(struct dp_conf, fuse_wait_ps), "5ms", NULL, NULL,
      "A buffer is flushed when gradients have come for this long." },
    { "overlap", GW_P_BOOL, offsetof(struct dp_conf, overlap), "yes", NULL, NULL,
      "All-reduces begin during the backward pass; no: only when it has ended." },
    { "compression", GW_P_F64, offsetof(struct dp_conf, compression), "1", "1", "1000000",
      "Bytes on the wire are gradient bytes divided by this; additions stay as they are." },
    { "compute_scale", GW_P_F64, offsetof(struct dp_conf, compute_scale), "1", "0", "1000000",
      "Factor on the forward and backward times of the model." },
    { "message_overhead", GW_P_TIME, offsetof(struct dp_conf, message_overhead_ps), "0", NULL,
      "1h", "Work of the communication engine before each message." },
    { "reduce_cost", GW_P_STRING, offsetof(struct dp_conf, reduce_cost), "a6", NULL, NULL,
      "Cost of adding a vector: a6 (measured on a V100), none, or a CSV file bytes,seconds." },
    { "update", GW_P_TIME, offsetof(struct dp_conf, update_ps), "0", NULL, "1h",
      "Time of the optimizer's step behind the last collective." },
    { "priority", GW_P_U32, offsetof(struct dp_conf, priority), "0", "0", "255",
      "Priority of the gradient messages, 0 is most urgent." },
};

GW_PLUGIN(gw_traffic_data_parallel) = {
    GW_PLUGIN_HEAD(GW_KIND_TRAFFIC, dp_ops),
    .name    = "data-parallel",
    .summary = "Data-parallel training: backward pass with fused all-reduces, then the next step.",
    .params  = dp_params, .param_count = GW_ARRAY_LEN(dp_params),
    .source  = "Zhang et al., NetAI 2020 (arXiv 2006.10103)",
};
