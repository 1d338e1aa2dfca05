/*
 * ch_periodic - every n-th packet is lost, and nothing else
 *
 * The loss of textbooks: the response functions of congestion controls (Mathis et al. 1997; RFC
 * 9438, section 5.1) are exact for it, because no dice put two losses into one window. Packets on
 * the way back from receivers (ACKs) pass uncounted unless `acks` says otherwise. A retransmission
 * is a packet like any other.
 * Left out: periods in time (`outage`), chosen packets (`script`).
 */
#include <gradwire/gradwire.h>

struct periodic_conf {
    uint64_t every, first;
    bool     acks;
};

struct periodic {
    uint64_t left;               /* packets that pass before the next loss                     */
};

static enum gw_status periodic_init(struct gw_channel *c, struct gw_error *err)
{
    const struct periodic_conf *conf = c->conf;
    struct periodic *p = c->priv;

    (void)err;
    p->left = (conf->first ? conf->first : conf->every) - 1;
    return GW_OK;
}

static uint32_t periodic_transit(struct gw_channel *c, struct gw_pkt *pkt, uint64_t sent_ps,
                                 uint64_t *extra_ps)
{
    const struct periodic_conf *conf = c->conf;
    struct periodic *p = c->priv;

    (void)sent_ps;
    (void)extra_ps;
    if (pkt->flags & GW_PKT_REVERSE && !conf->acks)
        return GW_FATE_PASS;
    if (p->left) {
        p->left--;
        return GW_FATE_PASS;
    }
    p->left = conf->every - 1;
    return GW_FATE_LOSS;
}

static double periodic_mean_loss(const struct gw_channel *c, uint32_t len_bytes)
{
    const struct periodic_conf *conf = c->conf;

    (void)len_bytes;
    return 1.0 / (double)conf->every;
}

static const struct gw_channel_ops periodic_ops = {
    .priv_bytes = sizeof(struct periodic),
    .conf_bytes = sizeof(struct periodic_conf),
    .init       = periodic_init,
    .transit    = periodic_transit,
    .mean_loss  = periodic_mean_loss,
};

static const struct gw_param periodic_params[] = {
    { "every", GW_P_U64, offsetof(struct periodic_conf, every), NULL, "1", "1000000000000000",
      "Of so many packets the last one is lost." },
    { "first", GW_P_U64, offsetof(struct periodic_conf, first), "0", "0", "1000000000000000",
      "The first loss is this packet, counted from 1; 0: as `every` has it." },
    { "acks", GW_P_BOOL, offsetof(struct periodic_conf, acks), "no", NULL, NULL,
      "Packets from receivers to senders are counted and lost too." },
};

GW_PLUGIN(gw_channel_periodic) = {
    GW_PLUGIN_HEAD(GW_KIND_CHANNEL, periodic_ops),
    .name    = "periodic",
    .summary = "Every n-th packet is lost, without dice.",
    .params  = periodic_params, .param_count = GW_ARRAY_LEN(periodic_params),
};
