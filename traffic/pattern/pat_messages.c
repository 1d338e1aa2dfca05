/*
 * pat_messages - one message after the other from one host to another
 *
 * A request stream seen from its sender: message n + 1 goes out `gap` after the last byte of
 * message n has arrived, or, with `period`, at multiples of the period, as gradients of a training
 * loop do; a message that is still under way at its successor's time holds that one up until it has
 * arrived. The word of its arrival takes no time in the network. All use one connection, which the
 * first message opens, or with `connection: new` each has its own. One message is one iteration.
 *
 * Left out: several messages under way at a time (several jobs, or `flows`), answers.
 */
#include <gradwire/alg/program.h>

struct messages_conf {
    const char *from, *to;
    uint64_t bytes, gap_ps, period_ps;
    uint32_t connection;         /* CONNECTION_*                                               */
    uint32_t priority;
};

enum { CONNECTION_KEPT, CONNECTION_NEW };

struct messages_job {
    struct gw_rankmap map;       /* rank 0 sends, rank 1 receives                              */
};

struct messages_rank {
    gw_op_id  begin, end;        /* of the message before                                      */
    gw_op_id *tick;              /* sender, with a period: when each message is due            */
};

static void messages_job_fini(struct gw_job *job)
{
    struct messages_job *j = job->priv;

    gw_rankmap_free(job->host, &j->map);
}

static enum gw_status messages_host(struct gw_job *job, const char *key, const char *name,
                                    uint32_t rank, struct gw_error *err)
{
    struct messages_job *j = job->priv;
    struct gw_value *v = job->host->value_get(job->value, key);
    char where[300];
    uint32_t got = GW_NONE;
    enum gw_status st;

    job->host->value_where(v ? v : job->value, where, sizeof where);
    st = gw_rankmap_name(job, &j->map, name, where, &got, err);
    if (st == GW_OK && got != rank)
        st = gw_fail(err, GW_PARAM, "%s: `%s` is \"%s\", which is rank %u; two different hosts are "
                     "needed, `from` the first and `to` the second", where, key, name, got);
    return st;
}

static enum gw_status messages_prepare(struct gw_job *job, struct gw_error *err)
{
    const struct messages_conf *conf = job->conf;
    struct messages_job *j = job->priv;
    enum gw_status st = gw_rankmap_open(job, &j->map, err);

    if (st == GW_OK)
        st = messages_host(job, "from", conf->from, 0, err);
    if (st == GW_OK)
        st = messages_host(job, "to", conf->to, 1, err);
    if (st == GW_OK && conf->period_ps && conf->period_ps > GW_NEVER / 2 / (job->iterations + 1))
        st = gw_fail(err, GW_RANGE, "job %s: %u periods are longer than simulated time can be; at "
                     "most 106 days are", job->name, job->iterations);
    if (st == GW_OK && conf->gap_ps && conf->period_ps)
        st = gw_fail(err, GW_PARAM, "job %s: messages follow by a `gap` behind the one before or by "
                     "a `period`; give one of them", job->name);
    return st == GW_OK ? gw_rankmap_close(job, &j->map, err) : st;
}

static enum gw_status messages_job_init(struct gw_job *job, struct gw_error *err)
{
    enum gw_status st = messages_prepare(job, err);

    if (st != GW_OK)
        messages_job_fini(job);
    return st;
}

static struct gw_op messages_op(const struct messages_conf *conf, enum gw_op_kind kind,
                                uint32_t peer, uint32_t iteration)
{
    struct gw_op op = {
        .kind = kind, .cls = GW_CLASS_OTHER, .priority = (uint8_t)conf->priority, .peer = peer,
        .iteration = iteration, .tag = iteration, .bytes = conf->bytes,
    };

    return op;
}

/* @ps after @after; 0: out of memory. */
static gw_op_id messages_delay(struct gw_program *p, uint32_t iteration, uint64_t ps,
                               gw_op_id after)
{
    struct gw_op op = { .kind = GW_OP_DELAY, .iteration = iteration, .duration_ps = ps };

    return p->job->host->op_add(p, &op, &after, 1);
}

/* The first message begins; with it begin the times of all others, so that none depends on how
 * long another one takes. 0: out of memory. */
static gw_op_id messages_first(struct gw_program *p)
{
    const struct messages_conf *conf = p->job->conf;
    struct messages_rank *r = p->priv;
    gw_op_id begin = gw_prog_mark(p, GW_MARK_ITER_BEGIN, 0, NULL, 0);

    if (!conf->period_ps)
        return begin;
    r->tick = p->job->host->alloc((size_t)p->job->iterations * sizeof *r->tick);
    for (uint32_t i = 1; i < p->job->iterations && r->tick && begin; i++) {
        r->tick[i] = messages_delay(p, i, i * conf->period_ps, begin);
        if (!r->tick[i])
            return 0;
    }
    return r->tick ? begin : 0;
}

/* What the sender's next message waits for: the word that the last one is there, and its time. */
static gw_op_id messages_turn(struct gw_program *p, uint32_t iteration)
{
    const struct messages_conf *conf = p->job->conf;
    struct messages_rank *r = p->priv;
    gw_op_id wait[2] = { r->end, r->tick ? r->tick[iteration] : 0 };

    if (conf->gap_ps)
        wait[0] = messages_delay(p, iteration, conf->gap_ps, r->end);
    return wait[0] ? gw_prog_mark(p, GW_MARK_ITER_BEGIN, iteration, wait, r->tick ? 2 : 1) : 0;
}

static enum gw_status messages_next(struct gw_program *p, uint32_t iteration, struct gw_error *err)
{
    const struct messages_conf *conf = p->job->conf;
    struct messages_rank *r = p->priv;
    struct gw_op op = messages_op(conf, p->rank ? GW_OP_RECV : GW_OP_SEND, !p->rank, iteration);
    gw_op_id arrived;

    if (p->rank)
        r->begin = gw_prog_mark(p, GW_MARK_ITER_BEGIN, iteration, &r->end, iteration != 0);
    else
        r->begin = iteration ? messages_turn(p, iteration) : messages_first(p);
    if (!r->begin)
        return gw_prog_nomem(p, err);
    op.flags = conf->connection == CONNECTION_NEW && !p->rank ? GW_OP_NEW_CONN : 0;
    arrived = p->job->host->op_add(p, &op, &r->begin, 1);
    /* The sender's own operation ends with the last ACK; it goes on when the receiver has all. */
    if (arrived)
        arrived = gw_prog_barrier(p, iteration, p->rank ? arrived : r->begin);
    r->end = arrived ? gw_prog_mark(p, GW_MARK_ITER_END, iteration, &arrived, 1) : 0;
    return r->end ? GW_OK : gw_prog_nomem(p, err);
}

static void messages_rank_fini(struct gw_program *p)
{
    struct messages_rank *r = p->priv;

    p->job->host->release(r->tick);
    r->tick = NULL;
}

static const struct gw_traffic_ops messages_ops = {
    .conf_bytes = sizeof(struct messages_conf),
    .job_bytes  = sizeof(struct messages_job),
    .rank_bytes = sizeof(struct messages_rank),
    .job_init   = messages_job_init,
    .job_fini   = messages_job_fini,
    .rank_fini  = messages_rank_fini,
    .next       = messages_next,
    .sets_ranks = true,
};

static const struct gw_param messages_params[] = {
    { "from", GW_P_STRING, offsetof(struct messages_conf, from), NULL, NULL, NULL,
      "Host that sends." },
    { "to", GW_P_STRING, offsetof(struct messages_conf, to), NULL, NULL, NULL,
      "Host that receives." },
    { "bytes", GW_P_BYTES, offsetof(struct messages_conf, bytes), NULL, "1", NULL,
      "Size of a message; `iterations` says how many there are." },
    { "gap", GW_P_TIME, offsetof(struct messages_conf, gap_ps), "0", "0", "1000s",
      "Time between the arrival of a message and the next one's start." },
    { "period", GW_P_TIME, offsetof(struct messages_conf, period_ps), "0", "0", "1000s",
      "A message each period, not before the one before has arrived; 0: by the gap." },
    { "connection", GW_P_CHOICE, offsetof(struct messages_conf, connection), "kept", "kept|new",
      NULL, "kept: all use one connection; new: each has its own." },
    { "priority", GW_P_U32, offsetof(struct messages_conf, priority), "0", "0", "255",
      "Priority of the messages, 0 is most urgent." },
};

GW_PLUGIN(gw_traffic_messages) = {
    GW_PLUGIN_HEAD(GW_KIND_TRAFFIC, messages_ops),
    .name    = "messages",
    .summary = "One message after the other between two hosts, on a kept connection or a new one "
               "each, by a gap or a period.",
    .params  = messages_params, .param_count = GW_ARRAY_LEN(messages_params),
};
