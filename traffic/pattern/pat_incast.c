/*
 * pat_incast - many hosts send to one at the same instant
 *
 * Each host in `from` (default: all others) sends one message to host `to`, each on a connection of
 * its own: the barrier-synchronised many-to-one of parameter servers and storage (Phanishayee et
 * al., "Measurement and analysis of TCP throughput collapse", FAST 2008). Rank 0 is the receiver,
 * the senders follow in the order in which they are named.
 *
 * Iterations begin together: the next one when all ranks have ended the one before, so that each of
 * them is an incast.
 *
 * Left out: requests from the receiver; all senders start by themselves.
 */
#include <gradwire/alg/program.h>

struct incast_conf {
    const char *to;
    const struct gw_value *from;
    uint64_t bytes;
    uint32_t priority;
};

struct incast_job {
    struct gw_rankmap map;
    bool    *sends;              /* by rank                                                    */
    uint32_t receiver;
};

struct incast_rank {
    gw_op_id last;
};

static void incast_job_fini(struct gw_job *job)
{
    struct incast_job *j = job->priv;

    gw_rankmap_free(job->host, &j->map);
    job->host->release(j->sends);
    j->sends = NULL;
}

/* All other hosts, or with `ranks:` all other ranks. */
static enum gw_status incast_everybody(struct gw_job *job, struct gw_error *err)
{
    struct incast_job *j = job->priv;

    for (uint32_t i = 0; !j->map.fixed && i < job->host->host_count(job); i++)
        if (gw_rankmap_add(job->host, &j->map, job->host->host_node(job, i)) == GW_NONE)
            return gw_fail(err, GW_NOMEM, "job %s: out of memory for its ranks", job->name);
    j->sends = job->host->alloc((size_t)j->map.count * sizeof *j->sends);
    if (!j->sends)
        return gw_fail(err, GW_NOMEM, "job %s: out of memory for its ranks", job->name);
    for (uint32_t r = 0; r < j->map.count; r++)
        j->sends[r] = r != j->receiver;
    return GW_OK;
}

/* Marks one sender by its host's name in @v. */
static enum gw_status incast_sender(struct gw_job *job, struct gw_value *v, struct gw_error *err)
{
    struct incast_job *j = job->priv;
    const char *name = NULL;
    char     where[300];
    uint32_t rank, before = j->map.count;
    bool    *more;
    enum gw_status st = gw_value_text(job->host, v, "a host in `from`", &name, err);

    if (st != GW_OK)
        return st;
    job->host->value_where(v, where, sizeof where);
    st = gw_rankmap_name(job, &j->map, name, where, &rank, err);
    if (st != GW_OK)
        return st;
    if (rank == j->receiver)
        return gw_fail(err, GW_PARAM, "%s: host \"%s\" is the receiver itself", where, name);
    more = job->host->resize(j->sends, (size_t)j->map.count * sizeof *more);
    if (!more)
        return gw_fail(err, GW_NOMEM, "%s: out of memory for ranks", where);
    j->sends = more;
    if (j->map.count > before)
        more[rank] = false;
    if (more[rank])
        return gw_fail(err, GW_PARAM, "%s: host \"%s\" stands twice in `from`", where, name);
    more[rank] = true;
    return GW_OK;
}

static enum gw_status incast_named(struct gw_job *job, struct gw_value *from, struct gw_error *err)
{
    struct incast_job *j = job->priv;
    enum gw_status st = GW_OK;

    from->used = true;
    j->sends   = job->host->alloc((size_t)j->map.count * sizeof *j->sends);
    if (!j->sends)
        return gw_fail(err, GW_NOMEM, "job %s: out of memory for its ranks", job->name);
    if (from->kind == GW_V_SCALAR)
        return incast_sender(job, from, err);
    for (struct gw_value *v = from->child; v && st == GW_OK; v = v->next)
        st = incast_sender(job, v, err);
    return st;
}

static enum gw_status incast_prepare(struct gw_job *job, struct gw_error *err)
{
    const struct incast_conf *conf = job->conf;
    const struct gw_host *h = job->host;
    struct incast_job *j = job->priv;
    struct gw_value *to = h->value_get(job->value, "to"), *from = NULL;
    char     where[300];
    uint32_t senders = 0;
    enum gw_status st = gw_rankmap_open(job, &j->map, err);

    h->value_where(to ? to : job->value, where, sizeof where);
    if (st == GW_OK)
        st = gw_rankmap_name(job, &j->map, conf->to, where, &j->receiver, err);
    if (st != GW_OK)
        return st;
    if (conf->from)
        from = h->value_get(job->value, "from");
    if (!from || (from->kind == GW_V_SCALAR && from->text && !strcmp(from->text, "all")))
        st = incast_everybody(job, err);
    else
        st = incast_named(job, from, err);
    if (st != GW_OK)
        return st;
    for (uint32_t r = 0; r < j->map.count; r++)
        senders += j->sends[r];
    if (!senders)
        return gw_fail(err, GW_PARAM, "%s: nobody sends to host \"%s\"; `from` needs at least one "
                       "other host", where, conf->to);
    return gw_rankmap_close(job, &j->map, err);
}

static enum gw_status incast_job_init(struct gw_job *job, struct gw_error *err)
{
    enum gw_status st = incast_prepare(job, err);

    if (st != GW_OK)
        incast_job_fini(job);
    return st;
}

static enum gw_status incast_next(struct gw_program *p, uint32_t iteration, struct gw_error *err)
{
    const struct incast_conf *conf = p->job->conf;
    const struct incast_job  *j = p->job->priv;
    struct incast_rank *rank = p->priv;
    struct gw_shot shot;

    gw_shot_begin(&shot, p, iteration, conf->priority, rank->last);
    if (p->rank == j->receiver) {
        for (uint32_t r = 0; r < j->map.count; r++)
            if (j->sends[r])
                gw_shot_recv(&shot, r, conf->bytes, iteration);
    } else if (j->sends[p->rank]) {
        gw_shot_send(&shot, j->receiver, conf->bytes, iteration, 0);
    }
    return gw_shot_end(&shot, &rank->last, err);
}

static const struct gw_traffic_ops incast_ops = {
    .conf_bytes = sizeof(struct incast_conf),
    .job_bytes  = sizeof(struct incast_job),
    .rank_bytes = sizeof(struct incast_rank),
    .job_init   = incast_job_init,
    .job_fini   = incast_job_fini,
    .next       = incast_next,
    .sets_ranks = true,
};

static const struct gw_param incast_params[] = {
    { "to", GW_P_STRING, offsetof(struct incast_conf, to), NULL, NULL, NULL,
      "Host that receives." },
    { "from", GW_P_VALUE, offsetof(struct incast_conf, from), "", NULL, NULL,
      "List of hosts that send; all (the default): every other host." },
    { "bytes", GW_P_BYTES, offsetof(struct incast_conf, bytes), NULL, "1", NULL,
      "Size of the message from each sender." },
    { "priority", GW_P_U32, offsetof(struct incast_conf, priority), "0", "0", "255",
      "Priority of the messages, 0 is most urgent." },
};

GW_PLUGIN(gw_traffic_incast) = {
    GW_PLUGIN_HEAD(GW_KIND_TRAFFIC, incast_ops),
    .name    = "incast",
    .summary = "Many hosts send one message each to the same host at the same time; iterations "
               "begin together, when all ranks have ended the one before.",
    .params  = incast_params, .param_count = GW_ARRAY_LEN(incast_params),
    .source  = "Phanishayee et al., FAST 2008",
};
