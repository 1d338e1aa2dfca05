/*
 * sch_prio - bands in strict order
 *
 * A packet goes to the band whose class id (band 0 is class X:1) its priority is, else to the one
 * that the filters choose, else to priomap[priority modulo 16]; a class id of another discipline
 * counts as priority 0 there, and an unknown class as band priomap[0]. The first band that has
 * something is served, also behind a parent that has looked at another one's packet and waits for
 * it (tbf). Every band holds a pfifo unless another discipline is grafted.
 * `change` without words means the defaults, as for `add`; bands that vanish lose their packets.
 * The word multiqueue is taken and means nothing.
 * Follows net/sched/sch_prio.c of Linux 6.1.
 */
#include <gradwire/gradwire.h>
#include <gradwire/alg/bands.h>
#include <gradwire/alg/shaper.h>

struct prio_conf {
    uint32_t bands;
    uint8_t  map[GW_PRIO_MAX + 1];
};

struct prio {
    struct gw_bands b;           /* all strict                                                 */
    uint8_t map[GW_PRIO_MAX + 1];
};

static const struct prio_conf prio_default = {
    3, { 1, 2, 2, 2, 1, 2, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1 }
};

static enum gw_status prio_tune(struct gw_qdisc *q, const struct prio_conf *c, uint64_t now_ps,
                                struct gw_error *err)
{
    struct prio *s = q->priv;

    if (c->bands < 2 || c->bands > GW_BANDS_MAX)
        return gw_fail(err, GW_PARAM, "prio: bands %u: allowed 2 to %u", c->bands, GW_BANDS_MAX);
    for (uint32_t i = 0; i <= GW_PRIO_MAX; i++)
        if (c->map[i] >= c->bands)
            return gw_fail(err, GW_PARAM, "prio: priomap sends priority %u to band %u; the bands "
                           "are 0 to %u", i, c->map[i], c->bands - 1);
    if (gw_bands_set(q, &s->b, "pfifo", c->bands, c->bands, NULL, now_ps, err) != GW_OK)
        return err ? err->code : GW_NOMEM;
    memcpy(s->map, c->map, sizeof s->map);
    return GW_OK;
}

static enum gw_status prio_init(struct gw_qdisc *q, struct gw_error *err)
{
    return prio_tune(q, q->given ? q->conf : &prio_default, 0, err);
}

static void prio_fini(struct gw_qdisc *q)
{
    gw_bands_free(q, &((struct prio *)q->priv)->b);
}

static enum gw_verdict prio_enqueue(struct gw_qdisc *q, struct gw_pkt *p, uint64_t now_ps)
{
    struct prio *s = q->priv;

    return gw_bands_enqueue(q, &s->b, gw_bands_classify(q, &s->b, s->map, p), p, now_ps);
}

static uint32_t prio_class_of(struct gw_qdisc *q, const struct gw_pkt *p)
{
    struct prio *s = q->priv;

    return gw_bands_class(q, gw_bands_classify(q, &s->b, s->map, p));
}

static struct gw_pkt *prio_dequeue(struct gw_qdisc *q, uint64_t now_ps)
{
    return gw_bands_dequeue(q, &((struct prio *)q->priv)->b, now_ps);
}

static struct gw_pkt *prio_peek(struct gw_qdisc *q, uint64_t now_ps)
{
    const struct gw_bands *b = &((struct prio *)q->priv)->b;
    struct gw_pkt *p = NULL;

    for (uint32_t i = 0; i < b->count && !p; i++)
        p = q->host->qdisc_peek(b->band[i].c.child, now_ps);
    return p;
}

static uint64_t prio_next_ps(struct gw_qdisc *q, uint64_t now_ps)
{
    return gw_bands_next_ps(&((struct prio *)q->priv)->b, now_ps);
}

static enum gw_status prio_change(struct gw_qdisc *q, const void *conf, uint64_t given,
                                  uint64_t now_ps, struct gw_error *err)
{
    return prio_tune(q, given ? conf : &prio_default, now_ps, err);
}

static void prio_reset(struct gw_qdisc *q, uint64_t now_ps)
{
    gw_bands_reset(&((struct prio *)q->priv)->b, now_ps);
}

static struct gw_qclass *prio_class_find(struct gw_qdisc *q, uint32_t classid)
{
    return gw_bands_find(q, &((struct prio *)q->priv)->b, classid);
}

static struct gw_qclass *prio_class_walk(struct gw_qdisc *q, struct gw_qclass *after)
{
    return gw_bands_walk(q, &((struct prio *)q->priv)->b, after);
}

static enum gw_status prio_graft(struct gw_qdisc *q, uint32_t classid, struct gw_qdisc *child,
                                 struct gw_qdisc **old, struct gw_error *err)
{
    return gw_bands_graft(q, &((struct prio *)q->priv)->b, classid, child, old, err);
}

static enum gw_status prio_map_word(struct prio_conf *c, uint32_t *at, const char *word,
                                    struct gw_error *err)
{
    uint32_t band;

    if (!gw_tc_count(word, 10, UINT32_MAX, &band))
        return gw_tc_illegal(err, "priomap", word, "a band number such as 1");
    if (band >= c->bands)
        return gw_fail(err, GW_SYNTAX, "\"priomap\" element %u is out of bands: there are %u",
                       band, c->bands);
    if (*at > GW_PRIO_MAX)
        return gw_fail(err, GW_SYNTAX, "\"priomap\" index > TC_PRIO_MAX=%u: %s is one band too "
                       "many", GW_PRIO_MAX, word);
    c->map[(*at)++] = (uint8_t)(band > UINT8_MAX ? UINT8_MAX : band);
    return GW_OK;
}

static enum gw_status prio_tc_parse(const struct gw_tc_args *a, void *conf, uint64_t *given,
                                    struct gw_error *err)
{
    struct prio_conf *c = conf;
    bool in_map = false;
    uint32_t at = 0;

    *c = prio_default;
    *given = 1;
    for (uint32_t i = 0; i < a->count; i++) {
        if (!strcmp(a->word[i], "bands")) {
            if (++i == a->count)
                return gw_tc_incomplete(err, "bands");
            if (!gw_tc_count(a->word[i], 10, INT32_MAX, &c->bands))
                return gw_tc_illegal(err, "bands", a->word[i], "a number from 2 to 16");
        } else if (!strcmp(a->word[i], "priomap")) {
            if (in_map)
                return gw_fail(err, GW_SYNTAX, "duplicate priomap: it may stand once");
            in_map = true;
        } else if (!strcmp(a->word[i], "multiqueue")) {
            continue;
        } else if (!in_map) {
            return gw_tc_what(err, "prio", a->word[i]);
        } else if (prio_map_word(c, &at, a->word[i], err) != GW_OK) {
            return GW_SYNTAX;
        }
    }
    return GW_OK;
}

static void prio_tc_show(const struct gw_qdisc *q, struct gw_tc_out *o)
{
    const struct prio *s = q->priv;

    o->u64(o, "bands", "bands %llu ", s->b.count);
    gw_bands_show_map(o, s->map);
    o->flag(o, "multiqueue", NULL, false);
}

static const struct gw_qdisc_ops prio_ops = {
    .priv_bytes = sizeof(struct prio),
    .conf_bytes = sizeof(struct prio_conf),
    .init       = prio_init,
    .fini       = prio_fini,
    .enqueue    = prio_enqueue,
    .dequeue    = prio_dequeue,
    .peek       = prio_peek,
    .next_ps    = prio_next_ps,
    .change     = prio_change,
    .reset      = prio_reset,
    .class_find = prio_class_find,
    .class_walk = prio_class_walk,
    .graft      = prio_graft,
    .tc_parse   = prio_tc_parse,
    .tc_show    = prio_tc_show,
    .class_of = prio_class_of,
    .in_hindsight = true,
};

static const struct gw_param prio_params[] = {
    { "bands", GW_P_WORDS, 0, "3", NULL, NULL, "Number of bands, 2 to 16." },
    { "priomap", GW_P_WORDS, 0, "1 2 2 2 1 2 0 0 1 1 1 1 1 1 1 1", NULL, NULL,
      "Band of each priority from 0; what is left out keeps its default." },
    { "multiqueue", GW_P_WORDS, 0, "", NULL, NULL, "Taken, and means nothing." },
};

GW_PLUGIN(gw_qdisc_prio) = {
    GW_PLUGIN_HEAD(GW_KIND_QDISC, prio_ops),
    .name    = "prio",
    .summary = "Up to 16 bands in strict order, chosen by priority or filters.",
    .params  = prio_params, .param_count = GW_ARRAY_LEN(prio_params),
    .source  = "Linux 6.1 net/sched/sch_prio.c",
};
