/*
 * pat_all_to_all - every rank sends one message to every other
 *
 * n (n-1) messages of the same size, all at once, each on a connection of its own. Rank i begins
 * with rank i+1 and goes round, so that no receiver is everybody's first.
 *
 * Left out: sizes that differ per pair (use `flows`), limits on how many are under way at once.
 */
#include <gradwire/alg/program.h>

struct a2a_conf {
    uint64_t bytes;
    uint32_t priority;
};

struct a2a_rank {
    gw_op_id last;
};

static enum gw_status a2a_job_init(struct gw_job *job, struct gw_error *err)
{
    if (job->ranks < 2)
        return gw_fail(err, GW_PARAM, "job %s: all-to-all needs at least 2 ranks, here is %u",
                       job->name, job->ranks);
    return GW_OK;
}

static enum gw_status a2a_next(struct gw_program *p, uint32_t iteration, struct gw_error *err)
{
    const struct a2a_conf *conf = p->job->conf;
    struct a2a_rank *rank = p->priv;
    uint32_t n = p->job->ranks;
    struct gw_shot shot;

    gw_shot_begin(&shot, p, iteration, conf->priority, rank->last);
    for (uint32_t d = 1; d < n; d++) {
        gw_shot_send(&shot, (p->rank + d) % n, conf->bytes, iteration, 0);
        gw_shot_recv(&shot, (p->rank + n - d) % n, conf->bytes, iteration);
    }
    return gw_shot_end(&shot, &rank->last, err);
}

static const struct gw_traffic_ops a2a_ops = {
    .conf_bytes = sizeof(struct a2a_conf),
    .rank_bytes = sizeof(struct a2a_rank),
    .job_init   = a2a_job_init,
    .next       = a2a_next,
};

static const struct gw_param a2a_params[] = {
    { "bytes", GW_P_BYTES, offsetof(struct a2a_conf, bytes), NULL, "1", NULL,
      "Size of the message from each rank to each other." },
    { "priority", GW_P_U32, offsetof(struct a2a_conf, priority), "0", "0", "255",
      "Priority of the messages, 0 is most urgent." },
};

GW_PLUGIN(gw_traffic_all_to_all) = {
    GW_PLUGIN_HEAD(GW_KIND_TRAFFIC, a2a_ops),
    .name    = "all-to-all",
    .summary = "Each rank sends one message to every other, all at once; iterations begin "
               "together, when all ranks have ended the one before.",
    .params  = a2a_params, .param_count = GW_ARRAY_LEN(a2a_params),
};
