/*
 * pat_permutation - every rank sends one message to the rank a fixed step further
 *
 * Rank i sends to rank (i + step) mod n. Without `step`, step is n/2, and on a fat tree of radix k
 * n/2 + k/2, so that every message crosses the core and no two ranks of an edge switch send to the
 * same edge switch of another: the load on which an ideal ECMP has no collision. Each message has a
 * connection of its own.
 *
 * Left out: random permutations and derangements.
 */
#include <gradwire/alg/program.h>

struct perm_conf {
    uint64_t bytes;
    uint32_t step;
    uint32_t priority;
};

struct perm_job {
    uint32_t step;
};

struct perm_rank {
    gw_op_id last;
};

static enum gw_status perm_job_init(struct gw_job *job, struct gw_error *err)
{
    const struct perm_conf *conf = job->conf;
    struct perm_job *j = job->priv;
    uint32_t n = job->ranks, half;

    if (n < 2)
        return gw_fail(err, GW_PARAM, "job %s: a permutation needs at least 2 ranks, here is %u",
                       job->name, n);
    if (conf->step) {
        if (conf->step % n == 0)
            return gw_fail(err, GW_PARAM, "job %s: step is %u, with %u ranks everybody would send "
                           "to itself; 1 to %u is right", job->name, conf->step, n, n - 1);
        j->step = conf->step % n;
        return GW_OK;
    }
    half    = job->host->topo_radix(job) / 2;
    j->step = (n / 2 + half % n) % n;
    if (!j->step)                /* the fat tree of radix 2 has two hosts                      */
        j->step = n / 2;
    return GW_OK;
}

static enum gw_status perm_next(struct gw_program *p, uint32_t iteration, struct gw_error *err)
{
    const struct perm_conf *conf = p->job->conf;
    const struct perm_job  *j = p->job->priv;
    struct perm_rank *rank = p->priv;
    uint32_t n = p->job->ranks;
    struct gw_shot shot;

    gw_shot_begin(&shot, p, iteration, conf->priority, rank->last);
    gw_shot_send(&shot, (p->rank + j->step) % n, conf->bytes, iteration, 0);
    gw_shot_recv(&shot, (p->rank + n - j->step) % n, conf->bytes, iteration);
    return gw_shot_end(&shot, &rank->last, err);
}

static const struct gw_traffic_ops perm_ops = {
    .conf_bytes = sizeof(struct perm_conf),
    .job_bytes  = sizeof(struct perm_job),
    .rank_bytes = sizeof(struct perm_rank),
    .job_init   = perm_job_init,
    .next       = perm_next,
};

static const struct gw_param perm_params[] = {
    { "bytes", GW_P_BYTES, offsetof(struct perm_conf, bytes), NULL, "1", NULL,
      "Size of each message." },
    { "step", GW_P_U32, offsetof(struct perm_conf, step), "0", NULL, NULL,
      "Rank i sends to rank i + step; 0: n/2, on a fat tree n/2 + k/2." },
    { "priority", GW_P_U32, offsetof(struct perm_conf, priority), "0", "0", "255",
      "Priority of the messages, 0 is most urgent." },
};

GW_PLUGIN(gw_traffic_permutation) = {
    GW_PLUGIN_HEAD(GW_KIND_TRAFFIC, perm_ops),
    .name    = "permutation",
    .summary = "Each rank sends one message to the rank half a network away; iterations begin "
               "together, when all ranks have ended the one before.",
    .params  = perm_params, .param_count = GW_ARRAY_LEN(perm_params),
};
