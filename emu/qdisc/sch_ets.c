/*
 * sch_ets - enhanced transmission selection: strict bands above bands that share by quanta
 *
 * The transmission selection of IEEE 802.1Qaz in Linux's form. The first `strict` bands are served
 * in their order while they have anything; the others share what is left by deficit round robin,
 * each with its quantum. Bands beyond those that strict and quanta name have a full frame as
 * quantum. A packet goes to the band whose class id (band 0 is class X:1) its priority is, else to
 * the one that the filters choose, else to priomap[priority modulo 16]; priorities that the map
 * leaves out go to the last band. Every band holds a pfifo unless another discipline is grafted;
 * one that waits for time holds up all sharing bands.
 *
 * Follows the manual page tc-ets(8), the words of iproute2 6.1 and Linux 6.1.192, which keeps
 * quanta within 256 and 1048576 bytes. Debian's user-mode kernel has no ets, the tests' own has
 * (traces.sh). Left out: offload.
 */
#include <gradwire/gradwire.h>
#include <gradwire/alg/bands.h>
#include <gradwire/alg/quantum.h>
#include <gradwire/alg/shaper.h>

struct ets_conf {
    uint32_t bands, strict, quanta;   /* quanta: how many are given                            */
    uint32_t quantum[GW_BANDS_MAX];   /* of the sharing bands, in order                        */
    uint32_t priorities;              /* how many the map names                                */
    uint8_t  map[GW_PRIO_MAX + 1];
};

struct ets_class_conf {
    uint32_t quantum;
};

struct ets {
    struct gw_bands b;
    uint8_t map[GW_PRIO_MAX + 1];
};

/* ---- settings ----------------------------------------------------------------------------- */

static enum gw_status ets_set(struct gw_qdisc *q, const struct ets_conf *c, uint64_t now_ps,
                              struct gw_error *err)
{
    struct ets *e = q->priv;
    uint32_t quantum[GW_BANDS_MAX];

    if (c->bands < 1 || c->bands > GW_BANDS_MAX || c->strict + c->quanta > c->bands)
        return gw_fail(err, GW_PARAM, "ets: %u bands for %u strict and %u sharing ones: allowed 1 "
                       "to %u, enough for both", c->bands, c->strict, c->quanta, GW_BANDS_MAX);
    for (uint32_t i = 0; i < c->bands; i++)
        quantum[i] = i < c->strict ? 0 :
                     gw_quantum_within(i - c->strict < c->quanta ? c->quantum[i - c->strict]
                                                         : q->mtu_bytes);
    if (gw_bands_set(q, &e->b, "pfifo", c->bands, c->strict, quantum, now_ps, err) != GW_OK)
        return err ? err->code : GW_NOMEM;
    for (uint32_t i = 0; i <= GW_PRIO_MAX; i++)
        e->map[i] = i < c->priorities ? c->map[i] : (uint8_t)(c->bands - 1);
    return GW_OK;
}

static enum gw_status ets_init(struct gw_qdisc *q, struct gw_error *err)
{
    return ets_set(q, q->conf, 0, err);
}

static enum gw_status ets_change(struct gw_qdisc *q, const void *conf, uint64_t given,
                                 uint64_t now_ps, struct gw_error *err)
{
    (void)given;
    return ets_set(q, conf, now_ps, err);
}

static void ets_fini(struct gw_qdisc *q)
{
    gw_bands_free(q, &((struct ets *)q->priv)->b);
}

/* ---- packets ------------------------------------------------------------------------------ */

static enum gw_verdict ets_enqueue(struct gw_qdisc *q, struct gw_pkt *p, uint64_t now_ps)
{
    struct ets *e = q->priv;

    return gw_bands_enqueue(q, &e->b, gw_bands_classify(q, &e->b, e->map, p), p, now_ps);
}

static uint32_t ets_class_of(struct gw_qdisc *q, const struct gw_pkt *p)
{
    struct ets *e = q->priv;

    return gw_bands_class(q, gw_bands_classify(q, &e->b, e->map, p));
}

static struct gw_pkt *ets_dequeue(struct gw_qdisc *q, uint64_t now_ps)
{
    return gw_bands_dequeue(q, &((struct ets *)q->priv)->b, now_ps);
}

static uint64_t ets_next_ps(struct gw_qdisc *q, uint64_t now_ps)
{
    return gw_bands_next_ps(&((struct ets *)q->priv)->b, now_ps);
}

static void ets_reset(struct gw_qdisc *q, uint64_t now_ps)
{
    gw_bands_reset(&((struct ets *)q->priv)->b, now_ps);
}

/* ---- classes ------------------------------------------------------------------------------ */

static struct gw_qclass *ets_class_find(struct gw_qdisc *q, uint32_t classid)
{
    return gw_bands_find(q, &((struct ets *)q->priv)->b, classid);
}

static struct gw_qclass *ets_class_walk(struct gw_qdisc *q, struct gw_qclass *after)
{
    return gw_bands_walk(q, &((struct ets *)q->priv)->b, after);
}

static enum gw_status ets_graft(struct gw_qdisc *q, uint32_t classid, struct gw_qdisc *child,
                                struct gw_qdisc **old, struct gw_error *err)
{
    return gw_bands_graft(q, &((struct ets *)q->priv)->b, classid, child, old, err);
}

static void ets_child_empty(struct gw_qdisc *q, struct gw_qclass *c)
{
    gw_bands_unlist(&((struct ets *)q->priv)->b, GW_CONTAINER(c, struct gw_band, c));
}

static enum gw_status ets_class_change(struct gw_qdisc *q, uint32_t classid, uint32_t parent,
                                       const void *conf, uint64_t given, uint64_t now_ps,
                                       struct gw_error *err)
{
    const struct ets_class_conf *c = conf;
    struct ets *e = q->priv;
    struct gw_qclass *found = gw_bands_find(q, &e->b, classid);

    (void)parent;
    (void)now_ps;
    if (!found)
        return gw_fail(err, GW_PARAM, "ets: fine-grained class addition and removal is not "
                       "supported; change the number of bands");
    if (!(given & 1))
        return GW_OK;
    if ((classid & 0xffff) <= e->b.strict)
        return gw_fail(err, GW_PARAM, "ets: strict bands do not have a configurable quantum, and "
                       "%x:%x is one", classid >> 16, classid & 0xffff);
    GW_CONTAINER(found, struct gw_band, c)->quantum = gw_quantum_within(c->quantum);
    return GW_OK;
}

static enum gw_status ets_class_delete(struct gw_qdisc *q, uint32_t classid, uint64_t now_ps,
                                       struct gw_error *err)
{
    (void)q;
    (void)now_ps;
    return gw_fail(err, GW_PARAM, "ets: class %x:%x cannot be deleted; change the number of bands",
                   classid >> 16, classid & 0xffff);
}

/* ---- words -------------------------------------------------------------------------------- */

enum ets_list { ETS_NO_LIST, ETS_QUANTA, ETS_PRIOMAP };

static enum gw_status ets_number(const char *name, const char *v, uint32_t *to,
                                 struct gw_error *err)
{
    if (*to)
        return gw_fail(err, GW_SYNTAX, "Duplicate \"%s\": it may stand once", name);
    if (!gw_tc_count(v, 10, UINT32_MAX, to))
        return gw_tc_illegal(err, name, v, "a number from 1 to 16");
    if (*to > GW_BANDS_MAX)
        return gw_fail(err, GW_SYNTAX, "The number of \"%s\" must be <= %u; %s is too many", name,
                       GW_BANDS_MAX, v);
    return GW_OK;
}

static enum gw_status ets_quantum(const struct gw_tc_args *a, struct ets_conf *c, const char *v,
                                  struct gw_error *err)
{
    if (c->quanta == GW_BANDS_MAX)
        return gw_fail(err, GW_SYNTAX, "Too many \"quanta\": %s is number %u, %u are allowed", v,
                       c->quanta + 1, GW_BANDS_MAX);
    if (!gw_tc_count(v, 10, UINT32_MAX, &c->quantum[c->quanta]))
        return gw_tc_illegal(err, "quanta", v, "a number of bytes such as 1514");
    if (!c->quantum[c->quanta++])
        return gw_fail(err, GW_SYNTAX, "\"quanta\" must be > 0; \"%s\" is not", v);
    gw_quantum_note(a, c->quantum[c->quanta - 1]);
    return GW_OK;
}

static enum gw_status ets_priority(struct ets_conf *c, const char *v, struct gw_error *err)
{
    uint32_t band;

    if (c->priorities > GW_PRIO_MAX)
        return gw_fail(err, GW_SYNTAX, "\"priomap\" index cannot be higher than %u; \"%s\" is one "
                       "too many", GW_PRIO_MAX, v);
    if (!gw_tc_count(v, 10, UINT32_MAX, &band))
        return gw_tc_illegal(err, "priomap", v, "a band number such as 1");
    if (band >= GW_BANDS_MAX)
        return gw_fail(err, GW_SYNTAX, "\"priomap\" element is out of bounds: %s is not a band", v);
    c->map[c->priorities++] = (uint8_t)band;
    return GW_OK;
}

static enum gw_status ets_complete(struct ets_conf *c, struct gw_error *err)
{
    if (!c->bands)
        c->bands = c->quanta + c->strict;
    if (!c->bands)
        return gw_fail(err, GW_SYNTAX, "ets: One of \"bands\", \"quanta\" or \"strict\" needs to "
                       "be specified");
    if (c->strict + c->quanta > c->bands)
        return gw_fail(err, GW_SYNTAX, "Not enough total bands to cover all the strict bands and "
                       "quanta: %u for %u and %u", c->bands, c->strict, c->quanta);
    for (uint32_t i = 0; i < c->priorities; i++)
        if (c->map[i] >= c->bands)
            return gw_fail(err, GW_SYNTAX, "\"priomap\" element is out of bounds: there are %u "
                           "bands, no band %u", c->bands, c->map[i]);
    return GW_OK;
}

static enum gw_status ets_tc_parse(const struct gw_tc_args *a, void *conf, uint64_t *given,
                                   struct gw_error *err)
{
    struct ets_conf *c = conf;
    enum ets_list list = ETS_NO_LIST;
    enum gw_status st = GW_OK;

    *c = (struct ets_conf){ 0 };
    *given = 1;
    for (uint32_t i = 0; i < a->count && st == GW_OK; i++) {
        const char *k = a->word[i], *v = i + 1 < a->count ? a->word[i + 1] : NULL;
        bool bands = !strcmp(k, "bands"), strict = !strcmp(k, "strict");
        bool quanta = !strcmp(k, "quanta"), map = !strcmp(k, "priomap");

        if ((bands || strict || quanta || map) && !v)
            return gw_tc_incomplete(err, k);
        if (bands || strict) {
            st = ets_number(k, v, bands ? &c->bands : &c->strict, err);
            list = ETS_NO_LIST;
            i++;
        } else if (quanta || map) {
            if (quanta ? c->quanta : c->priorities)
                return gw_fail(err, GW_SYNTAX, "Duplicate \"%s\": it may stand once", k);
            list = quanta ? ETS_QUANTA : ETS_PRIOMAP;
        } else if (list == ETS_QUANTA) {
            st = ets_quantum(a, c, k, err);
        } else if (list == ETS_PRIOMAP) {
            st = ets_priority(c, k, err);
        } else {
            return gw_tc_what(err, "ets", k);
        }
    }
    return st == GW_OK ? ets_complete(c, err) : st;
}

static enum gw_status ets_tc_class_parse(const struct gw_tc_args *a, void *conf, uint64_t *given,
                                         struct gw_error *err)
{
    struct ets_class_conf *c = conf;

    for (uint32_t i = 0; i < a->count; i++) {
        if (strcmp(a->word[i], "quantum"))
            return gw_tc_what(err, "ets", a->word[i]);
        if (++i == a->count)
            return gw_tc_incomplete(err, "quantum");
        if (!gw_tc_count(a->word[i], 10, UINT32_MAX, &c->quantum))
            return gw_tc_illegal(err, "quantum", a->word[i], "a number of bytes such as 1514");
        if (!c->quantum)
            return gw_fail(err, GW_SYNTAX, "\"quanta\" must be > 0; \"%s\" is not", a->word[i]);
        *given |= 1;
    }
    return GW_OK;
}

static void ets_tc_show(const struct gw_qdisc *q, struct gw_tc_out *o)
{
    const struct ets *e = q->priv;
    uint32_t quantum[GW_BANDS_MAX], n = 0;

    o->u64(o, "bands", "bands %llu ", e->b.count);
    if (e->b.strict)
        o->u64(o, "strict", "strict %llu ", e->b.strict);
    for (uint32_t i = e->b.strict; i < e->b.count; i++)
        quantum[n++] = e->b.band[i].quantum;
    if (n) {
        gw_bands_show_list(o, "quanta", "quanta", " %llu", quantum, n);
        o->str(o, NULL, "%s", " ");
    }
    gw_bands_show_map(o, e->map);
    o->str(o, NULL, "%s", " ");
}

static void ets_tc_show_class(const struct gw_qdisc *q, const struct gw_qclass *c,
                              struct gw_tc_out *o)
{
    const struct gw_band *x = GW_CONTAINER(c, const struct gw_band, c);

    (void)q;
    if (x->quantum)
        o->u64(o, "quantum", "quantum %llu ", x->quantum);
}

static const struct gw_param ets_class_params[] = {
    { "quantum", GW_P_WORDS, 0, "", NULL, NULL, "Bytes that the band may send in a turn." },
};

static const struct gw_qdisc_ops ets_ops = {
    .priv_bytes = sizeof(struct ets),
    .conf_bytes = sizeof(struct ets_conf),
    .init       = ets_init,
    .fini       = ets_fini,
    .enqueue    = ets_enqueue,
    .dequeue    = ets_dequeue,
    .next_ps    = ets_next_ps,
    .change     = ets_change,
    .reset      = ets_reset,
    .class_conf_bytes  = sizeof(struct ets_class_conf),
    .class_params      = ets_class_params,
    .class_param_count = GW_ARRAY_LEN(ets_class_params),
    .class_change = ets_class_change,
    .class_delete = ets_class_delete,
    .class_find   = ets_class_find,
    .class_walk   = ets_class_walk,
    .graft        = ets_graft,
    .child_empty  = ets_child_empty,
    .tc_parse       = ets_tc_parse,
    .tc_class_parse = ets_tc_class_parse,
    .tc_show        = ets_tc_show,
    .tc_show_class  = ets_tc_show_class,
    .class_of = ets_class_of,
    .in_hindsight = true,
};

static const struct gw_param ets_params[] = {
    { "bands", GW_P_WORDS, 0, "", NULL, NULL,
      "Number of bands, 1 to 16; not given: as many as strict and quanta need." },
    { "strict", GW_P_WORDS, 0, "0", NULL, NULL, "How many bands, from the first, are strict." },
    { "quanta", GW_P_WORDS, 0, "1514", NULL, NULL,
      "Bytes a turn of the sharing bands, in their order; a full frame where not given." },
    { "priomap", GW_P_WORDS, 0, "", NULL, NULL,
      "Band of each priority from 0; what is left out goes to the last band." },
};

GW_PLUGIN(gw_qdisc_ets) = {
    GW_PLUGIN_HEAD(GW_KIND_QDISC, ets_ops),
    .name    = "ets",
    .summary = "Strict bands above bands that share by quanta. By the manual page; not in Debian's "
               "user-mode kernel.",
    .params  = ets_params, .param_count = GW_ARRAY_LEN(ets_params),
    .source  = "tc-ets(8) of iproute2 6.1; Linux 6.1 net/sched/sch_ets.c; IEEE 802.1Qaz",
};
