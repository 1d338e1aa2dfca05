/*
 * channel.h - the contract of loss and delay models
 *
 * A channel sits behind serialisation and propagation of one link direction and decides the fate of
 * each packet. It never holds packets: it answers with a verdict and an extra delay; the port does
 * the rest. A model that keeps order says so, then the port never lets packets overtake.
 */
#ifndef GRADWIRE_CHANNEL_H
#define GRADWIRE_CHANNEL_H

#include <gradwire/packet.h>
#include <gradwire/engine.h>
#include <gradwire/rng.h>
#include <gradwire/param.h>

enum gw_fate {
    GW_FATE_PASS      = 0,
    GW_FATE_LOSS      = 1,    /* configured loss; counted as GW_DROP_LOSS                      */
    GW_FATE_CORRUPT   = 2,    /* arrives with flipped bits: those that transit() flipped through
                                 gw_host.pkt_flip; on a good packet that has none the host flips
                                 one at random                                                 */
    GW_FATE_DUPLICATE = 4,    /* arrives twice                                                 */
};

struct gw_channel;

/* The link direction that a channel stands behind. */
struct gw_channel_link {
    uint64_t rate_bps;        /* 0: infinitely fast                                            */
    uint64_t delay_ps;
    uint32_t frame_bytes;     /* the largest frame, without FCS                                */
    uint32_t framing_bytes;   /* what each frame takes on the wire beyond its length           */
};

struct gw_channel_ops {
    size_t priv_bytes, conf_bytes;
    enum gw_status (*init)(struct gw_channel *c, struct gw_error *err);
    void (*fini)(struct gw_channel *c);
    /* @sent_ps: the last bit has left the port. *extra_ps (0 on entry): delay to add. Returns an
     * or of enum gw_fate. May write p->ecn and flip bits; must not free or keep p. */
    uint32_t (*transit)(struct gw_channel *c, struct gw_pkt *p, uint64_t sent_ps,
                        uint64_t *extra_ps);
    /* Long-run share of packets of @len_bytes that are lost, in 0..1, for explain and check. */
    double (*mean_loss)(const struct gw_channel *c, uint32_t len_bytes);
    /* Change at run time, as for qdiscs; NULL: refused. */
    enum gw_status (*change)(struct gw_channel *c, const void *conf, uint64_t given,
                             uint64_t now_ps, struct gw_error *err);
    bool reorders;            /* extra delays may let packets overtake                         */
    const struct gw_stat *stats;
    uint32_t stat_count;
    /* Optional: long-run mean in seconds of the delay added to packets that are sent every @gap_ps,
     * GW_NEVER: far apart. NULL: none is added. */
    double (*mean_delay)(const struct gw_channel *c, uint64_t gap_ps);
    /* Optional: what differs from what the words promise, or is not said by them, one sentence each,
     * with the effective figure; for check, explain and run. */
    void (*advise)(const struct gw_channel *c, const struct gw_channel_link *l,
                   void (*say)(void *ctx, const char *sentence), void *ctx);
    void (*spare[6])(void);
};

struct gw_channel {
    const struct gw_channel_ops *ops;
    const struct gw_host *host;
    void    *priv, *conf;
    uint64_t given;
    struct gw_rng rng;        /* "link/NAME:END/channel"                                       */
    uint64_t seen_pkts, lost_pkts, corrupt_pkts, duplicated_pkts;   /* host writes             */
    void    *net;             /* opaque: first argument of packet calls                        */
};

#endif
