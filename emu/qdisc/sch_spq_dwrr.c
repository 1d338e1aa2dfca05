/*
 * sch_spq_dwrr - the egress scheduler of a switch port: strict classes above a weighted round robin
 *
 * What data-centre switches put behind their queues: the first `strict` classes are served in their
 * order while they have anything, the others share what is left by deficit round robin in the ratio
 * of their quanta (equal ones unless given). Every class is a queue of its own with `limit` bytes,
 * a bfifo unless another discipline is grafted (ecn_threshold for DCTCP or DCQCN, say).
 *
 * The class comes from the packet's priority, or with `by dscp` from its class selector (dscp / 8):
 * that number modulo 16 is looked up in priomap. Without a map a higher number goes to an earlier
 * class, as with 802.1p: 0 goes to the last class, 1 to the one before, and so on up to the first.
 * A priority that is a class id of this discipline, and filters, decide before that.
 *
 * The round is that of Linux's ets; ets lacks the limits, the choice by DSCP and the map of
 * switches. Left out: shared memory (the switch's own), PFC, shaping of single classes.
 */
#include <gradwire/gradwire.h>
#include <gradwire/alg/bands.h>
#include <gradwire/alg/shaper.h>

#define SPQ_CLASSES 8u               /* without words                                          */

enum { SPQ_LIMIT = 1, SPQ_WORDS = 2 };         /* given                                        */

struct spq_conf {
    uint32_t bands, strict, quanta;  /* quanta: how many are given                             */
    uint32_t quantum[GW_BANDS_MAX];
    uint32_t priorities;             /* how many the map names                                 */
    uint8_t  map[GW_PRIO_MAX + 1];
    uint64_t limit;                  /* bytes; UINT64_MAX: auto                                */
    bool     by_dscp;
};

struct spq {
    struct gw_bands b;
    uint8_t  map[GW_PRIO_MAX + 1];
    uint64_t limit;                  /* UINT64_MAX: auto                                       */
    bool     by_dscp;
};

/* ---- settings ----------------------------------------------------------------------------- */

static enum gw_status spq_limits(struct gw_qdisc *q, uint64_t now_ps, struct gw_error *err)
{
    struct spq *s = q->priv;

    for (uint32_t i = 0; i < s->b.count; i++) {
        struct gw_qdisc *child = s->b.band[i].c.child;

        if (child->hidden && gw_child_limit(child, s->limit, now_ps, err) != GW_OK)
            return err ? err->code : GW_PARAM;
    }
    return GW_OK;
}

static enum gw_status spq_set(struct gw_qdisc *q, const struct spq_conf *c, uint64_t now_ps,
                              struct gw_error *err)
{
    struct spq *s = q->priv;
    uint32_t quantum[GW_BANDS_MAX], n = c->bands;

    if (n < 1 || n > GW_BANDS_MAX || c->strict + c->quanta > n)
        return gw_fail(err, GW_PARAM, "spq_dwrr: %u classes for %u strict and %u sharing ones: "
                       "allowed 1 to %u, enough for both", n, c->strict, c->quanta, GW_BANDS_MAX);
    for (uint32_t i = 0; i < n; i++)
        quantum[i] = i < c->strict ? 0 :
                     i - c->strict < c->quanta ? c->quantum[i - c->strict] : q->mtu_bytes;
    if (gw_bands_set(q, &s->b, "bfifo", n, c->strict, quantum, now_ps, err) != GW_OK)
        return err ? err->code : GW_NOMEM;
    for (uint32_t i = 0; i <= GW_PRIO_MAX; i++)
        s->map[i] = i < c->priorities ? c->map[i] : (uint8_t)(i < n ? n - 1 - i : 0);
    s->limit = c->limit;
    if (s->limit == UINT64_MAX && !q->auto_limit_bytes)
        s->limit = (uint64_t)q->txqueuelen * q->mtu_bytes;
    s->by_dscp = c->by_dscp;
    return spq_limits(q, now_ps, err);
}

static enum gw_status spq_init(struct gw_qdisc *q, struct gw_error *err)
{
    struct spq_conf *c = q->conf;

    if (!(q->given & SPQ_WORDS))
        c->bands = SPQ_CLASSES;
    if (!(q->given & SPQ_LIMIT))
        c->limit = UINT64_MAX;
    return spq_set(q, c, 0, err);
}

/* All options anew, but the limit, which stays unless given. */
static enum gw_status spq_change(struct gw_qdisc *q, const void *conf, uint64_t given,
                                 uint64_t now_ps, struct gw_error *err)
{
    struct spq_conf c = *(const struct spq_conf *)conf;

    if (!(given & SPQ_LIMIT))
        c.limit = ((struct spq *)q->priv)->limit;
    return spq_set(q, &c, now_ps, err);
}

static void spq_fini(struct gw_qdisc *q)
{
    gw_bands_free(q, &((struct spq *)q->priv)->b);
}

/* ---- packets ------------------------------------------------------------------------------ */

static uint32_t spq_classify(struct gw_qdisc *q, const struct gw_pkt *p)
{
    struct spq *s = q->priv;
    uint32_t id = p->priority;

    if (q->handle && (id & 0xffff0000) == q->handle && (id & 0xffff) - 1 < s->b.count)
        return (id & 0xffff) - 1;
    id = q->host->classify(q, p);
    if ((id & 0xffff) - 1 < s->b.count)
        return (id & 0xffff) - 1;
    if (s->by_dscp)
        return s->map[p->dscp >> 3];
    return s->map[p->priority & 0xffff0000 ? 0 : p->priority & GW_PRIO_MAX];
}

static enum gw_verdict spq_enqueue(struct gw_qdisc *q, struct gw_pkt *p, uint64_t now_ps)
{
    return gw_bands_enqueue(q, &((struct spq *)q->priv)->b, spq_classify(q, p), p, now_ps);
}

static uint32_t spq_class_of(struct gw_qdisc *q, const struct gw_pkt *p)
{
    return gw_bands_class(q, spq_classify(q, p));
}

static struct gw_pkt *spq_dequeue(struct gw_qdisc *q, uint64_t now_ps)
{
    return gw_bands_dequeue(q, &((struct spq *)q->priv)->b, now_ps);
}

static uint64_t spq_next_ps(struct gw_qdisc *q, uint64_t now_ps)
{
    return gw_bands_next_ps(&((struct spq *)q->priv)->b, now_ps);
}

static void spq_reset(struct gw_qdisc *q, uint64_t now_ps)
{
    gw_bands_reset(&((struct spq *)q->priv)->b, now_ps);
}

/* ---- classes ------------------------------------------------------------------------------ */

static struct gw_qclass *spq_class_find(struct gw_qdisc *q, uint32_t classid)
{
    return gw_bands_find(q, &((struct spq *)q->priv)->b, classid);
}

static struct gw_qclass *spq_class_walk(struct gw_qdisc *q, struct gw_qclass *after)
{
    return gw_bands_walk(q, &((struct spq *)q->priv)->b, after);
}

static enum gw_status spq_graft(struct gw_qdisc *q, uint32_t classid, struct gw_qdisc *child,
                                struct gw_qdisc **old, struct gw_error *err)
{
    return gw_bands_graft(q, &((struct spq *)q->priv)->b, classid, child, old, err);
}

static void spq_child_empty(struct gw_qdisc *q, struct gw_qclass *c)
{
    gw_bands_unlist(&((struct spq *)q->priv)->b, GW_CONTAINER(c, struct gw_band, c));
}

/* ---- words -------------------------------------------------------------------------------- */

enum spq_list { SPQ_NO_LIST, SPQ_QUANTA, SPQ_PRIOMAP };

static enum gw_status spq_element(struct spq_conf *c, enum spq_list list, const char *v,
                                  struct gw_error *err)
{
    uint32_t n;

    if (list == SPQ_QUANTA) {
        if (c->quanta == GW_BANDS_MAX || !gw_tc_size(v, &n) || !n)
            return gw_tc_illegal(err, "quanta", v, "a list of at most 16 sizes such as 1514");
        c->quantum[c->quanta++] = n;
        return GW_OK;
    }
    if (c->priorities > GW_PRIO_MAX || !gw_tc_count(v, 10, GW_BANDS_MAX - 1, &n))
        return gw_tc_illegal(err, "priomap", v, "a list of at most 16 class numbers from 0");
    c->map[c->priorities++] = (uint8_t)n;
    return GW_OK;
}

static enum gw_status spq_value(struct spq_conf *c, const char *k, const char *v, uint64_t *given,
                                struct gw_error *err)
{
    uint32_t n;

    if (!strcmp(k, "bands") || !strcmp(k, "strict")) {
        if (!gw_tc_count(v, 10, GW_BANDS_MAX, &n))
            return gw_tc_illegal(err, k, v, "a number up to 16");
        *(k[0] == 'b' ? &c->bands : &c->strict) = n;
    } else if (!strcmp(k, "limit")) {
        *given |= SPQ_LIMIT;
        c->limit = UINT64_MAX;
        if (!strcmp(v, "auto"))
            return GW_OK;
        if (!gw_tc_size(v, &n))
            return gw_tc_illegal(err, k, v, "a size such as 100kb, or auto");
        c->limit = n;
    } else {
        c->by_dscp = !strcmp(v, "dscp");
        if (!c->by_dscp && strcmp(v, "priority"))
            return gw_tc_illegal(err, k, v, "priority or dscp");
    }
    return GW_OK;
}

static enum gw_status spq_complete(struct spq_conf *c, struct gw_error *err)
{
    if (!c->bands)
        c->bands = c->strict + c->quanta ? c->strict + c->quanta : SPQ_CLASSES;
    if (c->strict + c->quanta > c->bands)
        return gw_fail(err, GW_SYNTAX, "spq_dwrr: %u classes are not enough for %u strict ones and "
                       "%u quanta", c->bands, c->strict, c->quanta);
    for (uint32_t i = 0; i < c->priorities; i++)
        if (c->map[i] >= c->bands)
            return gw_fail(err, GW_SYNTAX, "spq_dwrr: priomap: there are %u classes, no class %u",
                           c->bands, c->map[i]);
    return GW_OK;
}

static enum gw_status spq_tc_parse(const struct gw_tc_args *a, void *conf, uint64_t *given,
                                   struct gw_error *err)
{
    static const char *const one[] = { "bands", "strict", "limit", "by" };
    struct spq_conf *c = conf;
    enum spq_list list = SPQ_NO_LIST;
    enum gw_status st = GW_OK;

    *c = (struct spq_conf){ 0 };
    *given = SPQ_WORDS;
    for (uint32_t i = 0; i < a->count && st == GW_OK; i++) {
        const char *k = a->word[i];
        bool quanta = !strcmp(k, "quanta"), map = !strcmp(k, "priomap"), single = false;

        for (size_t n = 0; n < GW_ARRAY_LEN(one); n++)
            single |= !strcmp(k, one[n]);
        if ((quanta || map || single) && i + 1 == a->count)
            return gw_tc_incomplete(err, k);
        if (single) {
            st = spq_value(c, k, a->word[++i], given, err);
            list = SPQ_NO_LIST;
        } else if (quanta || map) {
            list = quanta ? SPQ_QUANTA : SPQ_PRIOMAP;
        } else {
            st = list ? spq_element(c, list, k, err) : gw_tc_what(err, "spq_dwrr", k);
        }
    }
    return st == GW_OK ? spq_complete(c, err) : st;
}

static void spq_tc_show(const struct gw_qdisc *q, struct gw_tc_out *o)
{
    const struct spq *s = q->priv;
    uint32_t quantum[GW_BANDS_MAX], n = 0;

    o->u64(o, "bands", "bands %llu ", s->b.count);
    o->u64(o, "strict", "strict %llu ", s->b.strict);
    for (uint32_t i = s->b.strict; i < s->b.count; i++)
        quantum[n++] = s->b.band[i].quantum;
    if (n) {
        gw_bands_show_list(o, "quanta", "quanta", " %llu", quantum, n);
        o->str(o, NULL, "%s", " ");
    }
    if (s->limit == UINT64_MAX)
        o->str(o, "limit", "limit %s ", "auto");
    else
        gw_tc_show_size(o, "limit", "limit %s ", s->limit);
    o->str(o, "by", "by %s ", s->by_dscp ? "dscp" : "priority");
    gw_bands_show_map(o, s->map);
}

static void spq_tc_show_class(const struct gw_qdisc *q, const struct gw_qclass *c,
                              struct gw_tc_out *o)
{
    const struct gw_band *x = GW_CONTAINER(c, const struct gw_band, c);

    (void)q;
    if (x->quantum)
        gw_tc_show_size(o, "quantum", "quantum %s ", x->quantum);
    else
        o->flag(o, "strict", "strict ", true);
}

static const struct gw_qdisc_ops spq_ops = {
    .priv_bytes = sizeof(struct spq),
    .conf_bytes = sizeof(struct spq_conf),
    .init       = spq_init,
    .fini       = spq_fini,
    .enqueue    = spq_enqueue,
    .dequeue    = spq_dequeue,
    .next_ps    = spq_next_ps,
    .change     = spq_change,
    .reset      = spq_reset,
    .class_find = spq_class_find,
    .class_walk = spq_class_walk,
    .graft      = spq_graft,
    .child_empty   = spq_child_empty,
    .tc_parse      = spq_tc_parse,
    .tc_show       = spq_tc_show,
    .tc_show_class = spq_tc_show_class,
    .not_in_kernel = true,
    .class_of = spq_class_of,
    .in_hindsight = true,
};

static const struct gw_param spq_params[] = {
    { "bands", GW_P_WORDS, 0, "8", NULL, NULL,
      "Number of classes, 1 to 16; not given: as many as strict and quanta need." },
    { "strict", GW_P_WORDS, 0, "0", NULL, NULL, "How many classes, from the first, are strict." },
    { "quanta", GW_P_WORDS, 0, "1514", NULL, NULL,
      "Bytes a turn of the sharing classes, in their order; a full frame where not given." },
    { "limit", GW_P_WORDS, 0, "auto", NULL, NULL,
      "Bytes that may wait in a class; auto: from rate x delay, if known, else 1000 frames." },
    { "by", GW_P_WORDS, 0, "priority", NULL, NULL, "What decides: priority, or dscp (dscp / 8)." },
    { "priomap", GW_P_WORDS, 0, "", NULL, NULL,
      "Class of each number from 0; not given: higher numbers go to earlier classes." },
};

GW_PLUGIN(gw_qdisc_spq_dwrr) = {
    GW_PLUGIN_HEAD(GW_KIND_QDISC, spq_ops),
    .name    = "spq_dwrr",
    .summary = "A switch port: strict classes above a deficit-weighted round robin.",
    .params  = spq_params, .param_count = GW_ARRAY_LEN(spq_params),
    .source  = "IEEE 802.1Q-2018, 8.6.8; Shreedhar and Varghese, 1996",
};
