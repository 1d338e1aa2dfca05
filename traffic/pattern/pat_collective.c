/*
 * pat_collective - plain collectives, one after the other, in groups of hosts
 *
 * `run:` lists steps {op, bytes, groups}; a single step may stand in the job itself. All groups of
 * a step run their own instance of the collective at the same time; a rank goes on to its next step
 * when it has its result, and a rank that is in no group of a step passes over it: subgroups may
 * differ from step to step, each set of members has a communicator of its own. Bytes are the full
 * vector: of an all-gather the result, of a reduce-scatter the input, of an all-to-all what a
 * member holds before (and after). An iteration begins when all ranks have ended the one before.
 * Hosts go by name; without `groups` the step is for all ranks.
 *
 * Left out: compute between the steps; several ranks on one host.
 */
#include <gradwire/alg/collective.h>
#include <gradwire/alg/program.h>
#include <gradwire/alg/reducecost.h>

struct pc_conf {
    const struct gw_value *run, *groups, *op_value;
    const char *algorithm, *reduce_cost;
    uint64_t bytes;
    double   compression;
    uint64_t message_overhead_ps;
    uint32_t priority;
};

struct pc_group {
    uint32_t first, size;        /* members: member[first] .. in ring order                    */
    uint32_t comm;
    uint32_t step;
};

struct pc_step {
    enum gw_coll_op op;
    uint64_t bytes;
    const char *mark;            /* "all-gather ring"                                          */
    uint32_t first, groups;      /* its groups                                                 */
};

struct pc_job {
    struct gw_rankmap map;
    const struct gw_collective_ops *coll;
    struct gw_reduce_cost cost;
    struct pc_step  *step;
    struct pc_group *group;
    uint32_t        *member;     /* ranks                                                      */
    char            *mark[GW_COLL_OP_COUNT];
    uint32_t steps, groups, members, comms;
    bool     whole;              /* some step is for all ranks                                 */
};

struct pc_rank {
    gw_op_id last;
};

static void pc_job_fini(struct gw_job *job)
{
    struct pc_job *j = job->priv;

    gw_rankmap_free(job->host, &j->map);
    gw_reduce_cost_free(job->host, &j->cost);
    job->host->release(j->step);
    job->host->release(j->group);
    job->host->release(j->member);
    for (uint32_t i = 0; i < GW_COLL_OP_COUNT; i++)
        job->host->release(j->mark[i]);
    memset(j, 0, sizeof *j);
}

static enum gw_status pc_nomem(const struct gw_job *job, struct gw_error *err)
{
    return gw_fail(err, GW_NOMEM, "job %s: out of memory for its collectives", job->name);
}

static enum gw_status pc_add_member(struct gw_job *job, struct pc_group *g, uint32_t rank,
                                    struct gw_error *err)
{
    struct pc_job *j = job->priv;

    if (!gw_array_room(job->host, &j->member, j->members, sizeof *j->member))
        return pc_nomem(job, err);
    j->member[j->members++] = rank;
    g->size++;
    return GW_OK;
}

/* Appends a group of step @step; its members follow. */
static enum gw_status pc_add_group(struct gw_job *job, uint32_t step, struct pc_group **group,
                                   struct gw_error *err)
{
    struct pc_job *j = job->priv;

    if (!gw_array_room(job->host, &j->group, j->groups, sizeof *j->group))
        return pc_nomem(job, err);
    *group  = &j->group[j->groups++];
    **group = (struct pc_group){ .first = j->members, .step = step };
    j->step[step].groups++;
    return GW_OK;
}

/* One inner list of host names. */
static enum gw_status pc_read_group(struct gw_job *job, uint32_t step, struct gw_value *v,
                                    struct gw_error *err)
{
    struct pc_job   *j = job->priv;
    struct pc_group *g;
    enum gw_status   st = pc_add_group(job, step, &g, err);
    char where[300];

    v->used = true;
    if (st == GW_OK && v->kind != GW_V_LIST)
        st = gw_fail(err, GW_PARAM, "%s: a group is a list of hosts, and `groups` a list of such "
                     "lists: [[h0, h2], [h1, h3]]", job->host->value_where(v, where, sizeof where));
    for (struct gw_value *m = v->child; m && st == GW_OK; m = m->next) {
        const char *name = NULL;
        uint32_t    rank = GW_NONE;

        st = gw_value_text(job->host, m, "a host of a group", &name, err);
        job->host->value_where(m, where, sizeof where);
        if (st == GW_OK)
            st = gw_rankmap_name(job, &j->map, name, where, &rank, err);
        for (uint32_t i = j->step[step].first; i < j->groups && st == GW_OK; i++)
            for (uint32_t k = 0; k < j->group[i].size; k++)
                if (j->member[j->group[i].first + k] == rank)
                    st = gw_fail(err, GW_PARAM, "%s: host \"%s\" stands twice in the groups of "
                                 "one step", where, name);
        if (st == GW_OK)
            st = pc_add_member(job, g, rank, err);
    }
    if (st == GW_OK && g->size < 2)
        st = gw_fail(err, GW_PARAM, "%s: a group needs at least 2 hosts, this one has %u",
                     job->host->value_where(v, where, sizeof where), g->size);
    return st;
}

static enum gw_status pc_read_groups(struct gw_job *job, uint32_t step, struct gw_value *v,
                                     struct gw_error *err)
{
    struct pc_job *j = job->priv;
    enum gw_status st = GW_OK;
    char where[300];

    j->step[step].first = j->groups;
    if (v)
        v->used = true;
    if (!v || (v->kind == GW_V_SCALAR && v->text && !strcmp(v->text, "all"))) {
        j->whole = true;         /* filled in when all ranks are known                         */
        return GW_OK;
    }
    if (v->kind != GW_V_LIST || !v->child)
        return gw_fail(err, GW_PARAM, "%s: `groups` is `all` or a list of lists of hosts: "
                       "[[h0, h2], [h1, h3]]", job->host->value_where(v, where, sizeof where));
    for (struct gw_value *g = v->child; g && st == GW_OK; g = g->next)
        st = pc_read_group(job, step, g, err);
    return st;
}

/* The operation that @v names. */
static enum gw_status pc_read_op(struct gw_job *job, struct gw_value *v, enum gw_coll_op *op,
                                 struct gw_error *err)
{
    const struct pc_conf *conf = job->conf;
    const struct pc_job  *j = job->priv;
    const char *name = NULL;
    char where[300];
    enum gw_status st = gw_value_text(job->host, v, "op", &name, err);
    uint32_t i;

    if (st != GW_OK)
        return st;
    job->host->value_where(v, where, sizeof where);
    for (i = 0; i < GW_COLL_OP_COUNT && strcmp(name, gw_coll_op_name((enum gw_coll_op)i)); i++)
        ;
    if (i == GW_COLL_OP_COUNT)
        return gw_fail(err, GW_PARAM, "%s: there is no operation \"%s\"; all-reduce, all-gather, "
                       "reduce-scatter, broadcast and all-to-all are known", where, name);
    if (!(j->coll->supports & 1u << i))
        return gw_fail(err, GW_PARAM, "%s: algorithm %s has no %s", where, conf->algorithm, name);
    *op = (enum gw_coll_op)i;
    return GW_OK;
}

/* "all-gather ring", made once for each operation. */
static enum gw_status pc_mark_name(struct gw_job *job, struct pc_step *s, struct gw_error *err)
{
    const struct pc_conf *conf = job->conf;
    struct pc_job *j = job->priv;
    size_t room = strlen(gw_coll_op_name(s->op)) + strlen(conf->algorithm) + 2;

    if (!j->mark[s->op]) {
        j->mark[s->op] = job->host->alloc(room);
        if (!j->mark[s->op])
            return pc_nomem(job, err);
        snprintf(j->mark[s->op], room, "%s %s", gw_coll_op_name(s->op), conf->algorithm);
    }
    s->mark = j->mark[s->op];
    return GW_OK;
}

/* One step from its three values; @where: position of the step. */
static enum gw_status pc_add_step(struct gw_job *job, struct gw_value *op, uint64_t bytes,
                                  struct gw_value *groups, const char *where, struct gw_error *err)
{
    struct pc_job *j = job->priv;
    struct pc_step s = { .bytes = bytes };
    enum gw_status st;

    if (!op || !bytes)
        return gw_fail(err, GW_PARAM, "%s: a collective needs op and bytes, as in "
                       "{op: all-gather, bytes: 1GiB}", where);
    if ((st = pc_read_op(job, op, &s.op, err)) != GW_OK ||
        (st = pc_mark_name(job, &s, err)) != GW_OK)
        return st;
    if (!gw_array_room(job->host, &j->step, j->steps, sizeof s))
        return pc_nomem(job, err);
    j->step[j->steps++] = s;
    return pc_read_groups(job, j->steps - 1, groups, err);
}

struct pc_entry {
    const struct gw_value *op, *groups;
    uint64_t bytes;
};

static const struct gw_param pc_entry_params[] = {
    { "op", GW_P_VALUE, offsetof(struct pc_entry, op), "", NULL, NULL, "The operation." },
    { "bytes", GW_P_BYTES, offsetof(struct pc_entry, bytes), "0", NULL, NULL, "The full vector." },
    { "groups", GW_P_VALUE, offsetof(struct pc_entry, groups), "", NULL, NULL, "Who takes part." },
};

/* The steps of `run:`. */
static enum gw_status pc_read_run(struct gw_job *job, struct gw_value *run, struct gw_error *err)
{
    const struct gw_host *h = job->host;
    enum gw_status st = GW_OK;
    char where[300];

    run->used = true;
    if (run->kind != GW_V_LIST || !run->child)
        return gw_fail(err, GW_PARAM, "%s: run is a list of steps {op: all-gather, bytes: 1GiB, "
                       "groups: [[h0, h1]]}", h->value_where(run, where, sizeof where));
    for (struct gw_value *v = run->child; v && st == GW_OK; v = v->next) {
        struct pc_entry e = { 0 };

        v->used = true;
        h->value_where(v, where, sizeof where);
        if (v->kind != GW_V_MAP)
            return gw_fail(err, GW_PARAM, "%s: a step is a map {op: all-gather, bytes: 1GiB}",
                           where);
        st = h->params_read(pc_entry_params, GW_ARRAY_LEN(pc_entry_params), &e, v, NULL,
                            "a step of `run`", NULL, err);
        if (st == GW_OK)
            st = pc_add_step(job, e.op ? h->value_get(v, "op") : NULL, e.bytes,
                             e.groups ? h->value_get(v, "groups") : NULL, where, err);
    }
    return st;
}

static enum gw_status pc_read_steps(struct gw_job *job, struct gw_error *err)
{
    const struct pc_conf *conf = job->conf;
    const struct gw_host *h = job->host;
    char where[300];

    h->value_where(job->value, where, sizeof where);
    if (!conf->run)
        return pc_add_step(job, conf->op_value ? h->value_get(job->value, "op") : NULL,
                           conf->bytes,
                           conf->groups ? h->value_get(job->value, "groups") : NULL, where, err);
    if (conf->op_value || conf->bytes || conf->groups)
        return gw_fail(err, GW_PARAM, "%s: op, bytes and groups stand in the steps of `run` or "
                       "beside it, not both", where);
    return pc_read_run(job, h->value_get(job->value, "run"), err);
}

/* A step without groups is for all ranks: with `ranks:` these, else every host. */
static enum gw_status pc_whole(struct gw_job *job, struct gw_error *err)
{
    const struct gw_host *h = job->host;
    struct pc_job *j = job->priv;
    enum gw_status st = GW_OK;

    for (uint32_t i = 0; !j->map.fixed && i < h->host_count(job); i++)
        if (gw_rankmap_add(h, &j->map, h->host_node(job, i)) == GW_NONE)
            return pc_nomem(job, err);
    if (j->map.count < 2)
        return gw_fail(err, GW_PARAM, "job %s: a collective needs at least 2 ranks, here is %u",
                       job->name, j->map.count);
    for (uint32_t s = 0; s < j->steps && st == GW_OK; s++) {
        struct pc_group *g;

        if (j->step[s].groups)
            continue;
        j->step[s].first = j->groups;
        st = pc_add_group(job, s, &g, err);
        for (uint32_t r = 0; r < j->map.count && st == GW_OK; r++)
            st = pc_add_member(job, g, r, err);
    }
    return st;
}

/* Equal member lists share a communicator. */
static void pc_communicators(struct pc_job *j)
{
    for (uint32_t i = 0; i < j->groups; i++) {
        struct pc_group *g = &j->group[i];

        for (uint32_t k = 0; k < i && !g->comm; k++)
            if (j->group[k].size == g->size &&
                !memcmp(&j->member[j->group[k].first], &j->member[g->first],
                        g->size * sizeof *j->member))
                g->comm = j->group[k].comm;
        if (!g->comm)
            g->comm = ++j->comms;
    }
}

static enum gw_status pc_prepare(struct gw_job *job, struct gw_error *err)
{
    const struct pc_conf *conf = job->conf;
    const struct gw_host *h = job->host;
    struct pc_job   *j = job->priv;
    struct gw_value *v = h->value_get(job->value, "algorithm");
    char where[300];
    enum gw_status st;

    h->value_where(v ? v : job->value, where, sizeof where);
    j->coll = h->find(h, GW_KIND_COLLECTIVE, conf->algorithm, where, err);
    if (!j->coll)
        return err && err->code != GW_OK ? err->code : GW_PARAM;
    if ((st = gw_reduce_cost_read(job, conf->reduce_cost, &j->cost, err)) != GW_OK ||
        (st = gw_rankmap_open(job, &j->map, err)) != GW_OK ||
        (st = pc_read_steps(job, err)) != GW_OK)
        return st;
    if (j->whole && (st = pc_whole(job, err)) != GW_OK)
        return st;
    pc_communicators(j);
    if ((uint64_t)j->groups * job->iterations > UINT32_MAX - 1)
        return gw_fail(err, GW_RANGE, "job %s: %u iterations of %u collectives are more than 2^32",
                       job->name, job->iterations, j->groups);
    return gw_rankmap_close(job, &j->map, err);
}

static enum gw_status pc_job_init(struct gw_job *job, struct gw_error *err)
{
    enum gw_status st = pc_prepare(job, err);

    if (st != GW_OK)
        pc_job_fini(job);
    return st;
}

/* This rank's part of group @i between its marks; *last: the step before, then this one. */
static enum gw_status pc_instance(struct gw_program *p, uint32_t iteration, uint32_t i,
                                  uint32_t me, gw_op_id *last, struct gw_error *err)
{
    const struct pc_conf  *conf = p->job->conf;
    const struct pc_job   *j = p->job->priv;
    const struct pc_group *g = &j->group[i];
    const struct pc_step  *s = &j->step[g->step];
    gw_op_id     done = 0;
    struct gw_op mark = {
        .kind = GW_OP_MARK, .mark = GW_MARK_COLL_BEGIN, .priority = (uint8_t)conf->priority,
        .iteration = iteration, .collective = 1 + iteration * j->groups + i, .comm = g->comm,
        .bytes = s->bytes, .name = s->mark,
    };
    struct gw_coll coll = {
        .program = p, .op = s->op, .member = &j->member[g->first], .size = g->size, .me = me,
        .comm = g->comm, .collective = mark.collective, .iteration = iteration,
        .priority = mark.priority, .bytes = s->bytes, .compression = conf->compression,
        .reduce = gw_reduce_cost_table(&j->cost),
        .message_overhead_ps = conf->message_overhead_ps,
    };
    enum gw_status st;

    coll.after = p->job->host->op_add(p, &mark, last, 1);
    if (!coll.after)
        return gw_prog_nomem(p, err);
    st = j->coll->emit(&coll, &done, err);
    if (st != GW_OK)
        return st;
    mark.mark = GW_MARK_COLL_END;
    *last     = p->job->host->op_add(p, &mark, &done, 1);
    return *last ? GW_OK : gw_prog_nomem(p, err);
}

static enum gw_status pc_next(struct gw_program *p, uint32_t iteration, struct gw_error *err)
{
    const struct pc_job *j = p->job->priv;
    struct pc_rank *rank = p->priv;
    gw_op_id last = gw_prog_begin(p, iteration, rank->last);
    enum gw_status st = last ? GW_OK : gw_prog_nomem(p, err);

    for (uint32_t i = 0; i < j->groups && st == GW_OK; i++) {
        const struct pc_group *g = &j->group[i];

        for (uint32_t k = 0; k < g->size; k++)
            if (j->member[g->first + k] == p->rank) {
                st = pc_instance(p, iteration, i, k, &last, err);
                break;
            }
    }
    if (st != GW_OK)
        return st;
    rank->last = gw_prog_mark(p, GW_MARK_ITER_END, iteration, &last, 1);
    return rank->last ? GW_OK : gw_prog_nomem(p, err);
}

static const struct gw_traffic_ops pc_ops = {
    .conf_bytes = sizeof(struct pc_conf),
    .job_bytes  = sizeof(struct pc_job),
    .rank_bytes = sizeof(struct pc_rank),
    .job_init   = pc_job_init,
    .job_fini   = pc_job_fini,
    .next       = pc_next,
    .sets_ranks = true,
};

static const struct gw_param pc_params[] = {
    { "run", GW_P_VALUE, offsetof(struct pc_conf, run), "", NULL, NULL,
      "List of steps {op, bytes, groups}, run one after the other." },
    { "op", GW_P_VALUE, offsetof(struct pc_conf, op_value), "", NULL, NULL,
      "Without run: all-reduce, all-gather, reduce-scatter, broadcast or all-to-all." },
    { "bytes", GW_P_BYTES, offsetof(struct pc_conf, bytes), "0", NULL, NULL,
      "Without run: size of the full vector." },
    { "groups", GW_P_VALUE, offsetof(struct pc_conf, groups), "", NULL, NULL,
      "Without run: lists of hosts that run it at the same time; all (the default): one group." },
    { "algorithm", GW_P_STRING, offsetof(struct pc_conf, algorithm), "ring", NULL, NULL,
      "Collective plugin that plays the operations." },
    { "compression", GW_P_F64, offsetof(struct pc_conf, compression), "1", "1", "1000000",
      "Bytes on the wire are the vector's bytes divided by this." },
    { "message_overhead", GW_P_TIME, offsetof(struct pc_conf, message_overhead_ps), "0", NULL,
      "1h", "Work of the communication engine before each message." },
    { "reduce_cost", GW_P_STRING, offsetof(struct pc_conf, reduce_cost), "none", NULL, NULL,
      "Cost of adding a vector: none, a6 (measured on a V100), or a CSV file bytes,seconds." },
    { "priority", GW_P_U32, offsetof(struct pc_conf, priority), "0", "0", "255",
      "Priority of the messages, 0 is most urgent." },
};

GW_PLUGIN(gw_traffic_collective) = {
    GW_PLUGIN_HEAD(GW_KIND_TRAFFIC, pc_ops),
    .name    = "collective",
    .summary = "Collectives in groups of hosts, one after the other, without compute; iterations "
               "begin together.",
    .params  = pc_params, .param_count = GW_ARRAY_LEN(pc_params),
};
