/*
 * sch_step - FIFO that marks above a fixed depth
 *
 * The marking switch of DCTCP: a packet that finds more than mark_bytes waiting gets its CE bit set
 * if it can carry one; a packet that would bring the queue above limit_bytes is dropped. No
 * averaging, no clock, O(1) a packet.
 * Left out: the sharing of one packet memory between the ports of a real switch.
 * Alizadeh et al., "Data Center TCP (DCTCP)", SIGCOMM 2010, section 3.1.
 *
 * Written against the installed headers only: see the Makefile beside this file.
 */
#include <gradwire/gradwire.h>

/* --- Configuration ------------------------------------------------------------------------- */

struct step_conf {
    uint64_t mark_bytes;         /* depth above which packets are marked                       */
    uint64_t limit_bytes;        /* depth above which packets are dropped                      */
};

static const struct gw_param step_params[] = {
    { "mark_bytes", GW_P_BYTES, offsetof(struct step_conf, mark_bytes), "100kB", "0", "1GB",
      "Backlog above which a packet is marked." },
    { "limit_bytes", GW_P_BYTES, offsetof(struct step_conf, limit_bytes), "1MB", "1", "16GB",
      "Backlog above which a packet is dropped." },
};

/* --- State --------------------------------------------------------------------------------- */

struct step_priv {
    struct gw_pktq queue;
    uint64_t       above;        /* packets that found the queue above mark_bytes              */
};

static const struct gw_stat step_stats[] = {
    { "above", offsetof(struct step_priv, above), "Packets that found more than mark_bytes." },
};

/* --- Callbacks ----------------------------------------------------------------------------- */

static enum gw_verdict step_enqueue(struct gw_qdisc *q, struct gw_pkt *p, uint64_t now_ps)
{
    const struct step_conf *conf = q->conf;
    struct step_priv *s = q->priv;

    (void)now_ps;
    if (s->queue.bytes + p->len_bytes > conf->limit_bytes)
        return GW_Q_DROPPED;
    if (s->queue.bytes > conf->mark_bytes) {
        s->above++;
        gw_qdisc_mark(q, p);
    }
    gw_pktq_push(&s->queue, p);
    return GW_Q_QUEUED;
}

static struct gw_pkt *step_dequeue(struct gw_qdisc *q, uint64_t now_ps)
{
    struct step_priv *s = q->priv;

    (void)now_ps;
    return gw_pktq_pop(&s->queue);
}

static enum gw_status step_change(struct gw_qdisc *q, const void *conf, uint64_t given,
                                  uint64_t now_ps, struct gw_error *err)
{
    const struct step_conf *to = conf;
    struct step_conf *own = q->conf;

    (void)now_ps;
    (void)err;
    if (given & 1u)
        own->mark_bytes = to->mark_bytes;
    if (given & 2u)
        own->limit_bytes = to->limit_bytes;
    return GW_OK;
}

static void step_reset(struct gw_qdisc *q, uint64_t now_ps)
{
    struct gw_pkt *p;

    while ((p = step_dequeue(q, now_ps)))
        q->host->qdisc_drop(q, p, GW_DROP_PURGED);
}

/* --- Descriptor ---------------------------------------------------------------------------- */

static const struct gw_qdisc_ops step_ops = {
    .priv_bytes = sizeof(struct step_priv),
    .conf_bytes = sizeof(struct step_conf),
    .enqueue    = step_enqueue,
    .dequeue    = step_dequeue,
    .change     = step_change,
    .reset      = step_reset,
    .stats      = step_stats,
    .stat_count = GW_ARRAY_LEN(step_stats),
};

GW_PLUGIN(gw_qdisc_step) = {
    GW_PLUGIN_HEAD(GW_KIND_QDISC, step_ops),
    .name        = "step",
    .summary     = "FIFO with a fixed ECN marking depth.",
    .params      = step_params,
    .param_count = GW_ARRAY_LEN(step_params),
    .source      = "Alizadeh et al., SIGCOMM 2010",
};
