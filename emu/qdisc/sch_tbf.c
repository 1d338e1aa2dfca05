/*
 * sch_tbf - token bucket: a rate, a burst, and at wish a peak rate
 *
 * Tokens are nanoseconds of sending at the rate. The bucket holds the time that `burst` bytes take
 * and starts full; a frame leaves in the instant in which the tokens suffice for all of it, and
 * pays them. With `peakrate` a second bucket of `mtu` bytes must suffice, too. There is no
 * serialisation: a burst leaves at once. Frames longer than `burst` (or `mtu`, with a peak rate)
 * can never leave and are dropped on arrival, all others wait in a bfifo of `limit` bytes, unless
 * another discipline is grafted under class X:1. `latency` stands for a limit of rate x latency +
 * burst. `overhead`, `mpu` and `linklayer` count for the tokens, not for the inner limit.
 *
 * Every change sets all options anew, fills the bucket and keeps what waits; it also sets the limit
 * of the inner queue if that is some FIFO, whatever it counts in. A frame that waits and is longer
 * than a new burst stays for ever, as in the kernel, whose timer goes on for nothing; here there is
 * no timer then, and overlimits grows only when a frame comes.
 *
 * Follows net/sched/sch_tbf.c of Linux 6.1 to the nanosecond, and q_tbf.c of iproute2 6.1 for the
 * words. A super-packet longer than that is taken apart if its segments are not. Left out: deleting
 * the child of class X:1 leaves a pfifo, not a discipline that drops everything; a negative rate is
 * refused.
 */
#include <gradwire/gradwire.h>
#include <gradwire/alg/classes.h>
#include <gradwire/alg/shaper.h>

struct tbf_conf {
    uint64_t rate, peakrate;     /* bytes per second; peakrate 0: none                         */
    uint32_t burst, mtu, limit;  /* bytes                                                      */
    uint16_t overhead, mpu;
    bool     atm;
};

struct tbf {
    struct gw_qclass c;          /* the one class                                              */
    struct gw_ratecfg rate, peak;
    bool     has_peak;
    uint32_t limit, max_bytes;
    int64_t  buffer, mtu;        /* depth of the buckets, ns                                   */
    int64_t  tokens, ptokens;    /* ns                                                         */
    int64_t  at_ns;              /* when they were last counted                                */
    int64_t  wake_ns;            /* when the head may leave; INT64_MAX: it is not known        */
    bool     stuck;              /* the head costs more than a bucket holds: it never leaves   */
};

/* ---- settings ----------------------------------------------------------------------------- */

static enum gw_status tbf_check(const struct tbf_conf *c, struct gw_error *err)
{
    if (!c->rate || !c->burst)
        return gw_fail(err, GW_PARAM, "tbf: it needs a rate and a burst, e.g. {kind: tbf, rate: "
                       "1mbit, burst: 10kb, latency: 50ms}");
    if (c->peakrate && c->peakrate <= c->rate)
        return gw_fail(err, GW_PARAM, "tbf: peakrate %llu bytes/s is not above the rate of %llu "
                       "bytes/s", (unsigned long long)c->peakrate, (unsigned long long)c->rate);
    if (c->peakrate && !c->mtu)
        return gw_fail(err, GW_PARAM, "tbf: a peakrate needs an mtu of at least 1 byte");
    return GW_OK;
}

/* The kernel's fifo_set_limit goes by the name, too. */
static enum gw_status tbf_child_limit(struct gw_qdisc *child, uint32_t limit, uint64_t now_ps,
                                      struct gw_error *err)
{
    if (strncmp(child->kind + 1, "fifo", 4))
        return GW_OK;
    return gw_child_limit(child, limit, now_ps, err);
}

static void tbf_load(struct tbf *t, const struct tbf_conf *c)
{
    gw_ratecfg_set(&t->rate, c->rate, c->overhead, c->mpu, c->atm);
    gw_ratecfg_set(&t->peak, c->peakrate, c->overhead, c->mpu, c->atm);
    t->has_peak = c->peakrate != 0;
    t->limit = c->limit;
    t->buffer = gw_ratecfg_ns(&t->rate, c->burst);
    t->mtu = t->has_peak ? gw_ratecfg_ns(&t->peak, c->mtu) : 0;
    t->max_bytes = t->has_peak && c->mtu < c->burst ? c->mtu : c->burst;
    t->tokens = t->buffer;
    t->ptokens = t->mtu;
    t->wake_ns = INT64_MAX;
    t->stuck = false;
}

static enum gw_status tbf_init(struct gw_qdisc *q, struct gw_error *err)
{
    const struct tbf_conf *c = q->conf;
    struct tbf *t = q->priv;

    if (tbf_check(c, err) != GW_OK)
        return err ? err->code : GW_PARAM;
    t->c.id = (q->handle & 0xffff0000) | 1;
    t->c.books = GW_BOOKS_NONE;
    t->c.child = q->host->qdisc_new(q, "bfifo", t->c.id, err);
    if (!t->c.child)
        return err ? err->code : GW_NOMEM;
    if (tbf_child_limit(t->c.child, c->limit, 0, err) != GW_OK) {
        q->host->qdisc_free(t->c.child);
        return err ? err->code : GW_PARAM;
    }
    tbf_load(t, c);
    return GW_OK;
}

static void tbf_fini(struct gw_qdisc *q)
{
    q->host->qdisc_free(((struct tbf *)q->priv)->c.child);
}

static enum gw_status tbf_change(struct gw_qdisc *q, const void *conf, uint64_t given,
                                 uint64_t now_ps, struct gw_error *err)
{
    const struct tbf_conf *c = conf;
    struct tbf *t = q->priv;

    (void)given;
    if (tbf_check(c, err) != GW_OK || tbf_child_limit(t->c.child, c->limit, now_ps, err) != GW_OK)
        return err ? err->code : GW_PARAM;
    tbf_load(t, c);
    return GW_OK;
}

/* ---- packets ------------------------------------------------------------------------------ */

static enum gw_verdict tbf_segment(struct gw_qdisc *q, struct gw_pkt *p, uint32_t i,
                                   uint64_t now_ps)
{
    (void)i;
    return gw_child_enqueue(q, ((struct tbf *)q->priv)->c.child, p, now_ps);
}

static enum gw_verdict tbf_enqueue(struct gw_qdisc *q, struct gw_pkt *p, uint64_t now_ps)
{
    struct tbf *t = q->priv;

    if (p->sched_bytes > t->max_bytes) {
        if (p->seg_count > 1 && p->seg_bytes <= t->max_bytes)
            return q->host->qdisc_segments(q, p, now_ps, tbf_segment);
        q->drop_reason = GW_DROP_TOO_BIG;
        return GW_Q_DROPPED;
    }
    return gw_child_enqueue(q, t->c.child, p, now_ps);
}

/* Tokens at @now_ns after a frame of @len bytes; the head may leave if both are 0 or more. */
static void tbf_tokens(const struct tbf *t, int64_t now_ns, uint32_t len, int64_t *toks,
                       int64_t *ptoks)
{
    int64_t gained = now_ns - t->at_ns;

    if (gained > t->buffer)
        gained = t->buffer;
    *ptoks = 0;
    if (t->has_peak) {
        *ptoks = gained + t->ptokens;
        if (*ptoks > t->mtu)
            *ptoks = t->mtu;
        *ptoks -= gw_ratecfg_ns(&t->peak, len);
    }
    *toks = gained + t->tokens;
    if (*toks > t->buffer)
        *toks = t->buffer;
    *toks -= gw_ratecfg_ns(&t->rate, len);
}

/* A frame that was let in before the burst, or the mtu of a peak rate, was made smaller. */
static bool tbf_never(const struct tbf *t, uint32_t len)
{
    return gw_ratecfg_ns(&t->rate, len) > t->buffer ||
           (t->has_peak && gw_ratecfg_ns(&t->peak, len) > t->mtu);
}

static struct gw_pkt *tbf_dequeue(struct gw_qdisc *q, uint64_t now_ps)
{
    struct tbf *t = q->priv;
    struct gw_pkt *p = q->host->qdisc_peek(t->c.child, now_ps);
    int64_t now_ns = (int64_t)(now_ps / GW_PS_PER_NS), toks, ptoks;

    t->wake_ns = INT64_MAX;
    t->stuck = false;
    if (!p)
        return NULL;
    tbf_tokens(t, now_ns, p->sched_bytes, &toks, &ptoks);
    if (toks < 0 || ptoks < 0) {
        t->stuck = tbf_never(t, p->sched_bytes);
        t->wake_ns = t->stuck ? INT64_MAX : now_ns - (toks < ptoks ? toks : ptoks);
        q->overlimits++;
        return NULL;
    }
    t->at_ns = now_ns;
    t->tokens = toks;
    t->ptokens = ptoks;
    return q->host->qdisc_dequeue(t->c.child, now_ps);
}

static uint64_t tbf_next_ps(struct gw_qdisc *q, uint64_t now_ps)
{
    struct tbf *t = q->priv;

    if (t->stuck)
        return GW_NEVER;
    if (t->wake_ns != INT64_MAX)
        return (uint64_t)t->wake_ns * GW_PS_PER_NS;
    return gw_child_next_ps(t->c.child, now_ps);
}

static void tbf_reset(struct gw_qdisc *q, uint64_t now_ps)
{
    struct tbf *t = q->priv;

    gw_child_reset(t->c.child, now_ps);
    t->at_ns = (int64_t)(now_ps / GW_PS_PER_NS);
    t->tokens = t->buffer;
    t->ptokens = t->mtu;
    t->wake_ns = INT64_MAX;
    t->stuck = false;
}

/* ---- the class ---------------------------------------------------------------------------- */

static struct gw_qclass *tbf_class_find(struct gw_qdisc *q, uint32_t classid)
{
    struct tbf *t = q->priv;

    t->c.id = (q->handle & 0xffff0000) | 1;
    return (classid & 0xffff) == 1 ? &t->c : NULL;
}

static struct gw_qclass *tbf_class_walk(struct gw_qdisc *q, struct gw_qclass *after)
{
    return after ? NULL : tbf_class_find(q, 1);
}

static enum gw_status tbf_graft(struct gw_qdisc *q, uint32_t classid, struct gw_qdisc *child,
                                struct gw_qdisc **old, struct gw_error *err)
{
    struct gw_qclass *c = tbf_class_find(q, classid);

    if (!c)
        return gw_fail(err, GW_PARAM, "tbf: there is no class %x:%x; its only class is %x:1",
                       classid >> 16, classid & 0xffff, q->handle >> 16);
    *old = c->child;
    c->child = child;
    return GW_OK;
}

/* ---- words -------------------------------------------------------------------------------- */

struct tbf_words {
    struct tbf_conf *c;
    uint32_t latency_us;
    const struct gw_tc_args *a;
    struct gw_error *err;
};

static enum gw_status tbf_twice(struct tbf_words *w, const char *what)
{
    return gw_fail(w->err, GW_SYNTAX, "tbf: duplicate \"%s\" specification: it may stand once",
                   what);
}

static enum gw_status tbf_illegal(struct tbf_words *w, const char *what, const char *v,
                                  const char *right)
{
    return gw_fail(w->err, GW_SYNTAX, "tbf: illegal value for \"%s\": \"%s\"; %s is right", what, v,
                   right);
}

static enum gw_status tbf_size(struct tbf_words *w, const char *name, const char *v,
                               const char *group, uint32_t *to)
{
    if (*to)
        return tbf_twice(w, group);
    return gw_tc_size_cell(v, to) ? GW_OK : tbf_illegal(w, name, v, "a size such as 10kb");
}

static enum gw_status tbf_rate(struct tbf_words *w, const char *name, const char *v, uint64_t *to)
{
    if (*to)
        return tbf_twice(w, name);
    return gw_tc_rate_bytes(w->a, v, to) ? GW_OK : tbf_illegal(w, name, v,
                                                              "a rate such as 10mbit");
}

static enum gw_status tbf_limit(struct tbf_words *w, const char *v)
{
    if (w->c->limit)
        return tbf_twice(w, "limit");
    if (w->latency_us)
        return gw_fail(w->err, GW_SYNTAX, "tbf: specifying both \"latency\" and \"limit\" is not "
                       "allowed: one follows from the other");
    return gw_tc_size(v, &w->c->limit) ? GW_OK : tbf_illegal(w, "limit", v,
                                                             "a size such as 20kb");
}

static enum gw_status tbf_latency(struct tbf_words *w, const char *v)
{
    if (w->latency_us)
        return tbf_twice(w, "latency");
    if (w->c->limit)
        return gw_fail(w->err, GW_SYNTAX, "tbf: specifying both \"limit\" and \"/latency\" is not "
                       "allowed: one follows from the other");
    return gw_tc_time(w->a, "latency", v, &w->latency_us) ? GW_OK : tbf_illegal(w, "latency", v,
                                                                  "a time such as 50ms");
}

static enum gw_status tbf_short(struct tbf_words *w, const char *name, const char *v, uint16_t *to)
{
    uint32_t n = 0;
    bool mpu = !strcmp(name, "mpu");

    if (*to)
        return tbf_twice(w, name);
    if (!(mpu ? gw_tc_size(v, &n) : gw_tc_count(v, 10, UINT16_MAX, &n)))
        return tbf_illegal(w, name, v, "a number of bytes such as 24");
    *to = (uint16_t)n;                   /* as tc: an mpu above 65535 is cut                   */
    return GW_OK;
}

static enum gw_status tbf_word(struct tbf_words *w, const char *k, const char *v)
{
    struct tbf_conf *c = w->c;

    if (gw_tc_matches(k, "limit"))
        return tbf_limit(w, v);
    if (gw_tc_matches(k, "latency"))
        return tbf_latency(w, v);
    if (gw_tc_matches(k, "burst") || !strcmp(k, "buffer") || !strcmp(k, "maxburst"))
        return tbf_size(w, k, v, "buffer/burst/maxburst", &c->burst);
    if (!strcmp(k, "mtu") || !strcmp(k, "minburst"))
        return tbf_size(w, k, v, "mtu/minburst", &c->mtu);
    if (!strcmp(k, "mpu"))
        return tbf_short(w, "mpu", v, &c->mpu);
    if (!strcmp(k, "rate"))
        return tbf_rate(w, "rate", v, &c->rate);
    if (gw_tc_matches(k, "peakrate"))
        return tbf_rate(w, "peakrate", v, &c->peakrate);
    if (gw_tc_matches(k, "overhead"))
        return tbf_short(w, "overhead", v, &c->overhead);
    return gw_tc_linklayer(v, &c->atm) ? GW_OK : tbf_illegal(w, "linklayer", v,
                                                             "ethernet, atm or adsl");
}

static bool tbf_knows(const char *k)
{
    static const char *const full[] = { "buffer", "maxburst", "mtu", "minburst", "mpu", "rate" };
    static const char *const begin[] = { "limit", "latency", "burst", "peakrate", "overhead",
                                         "linklayer" };

    for (size_t i = 0; i < GW_ARRAY_LEN(full); i++)
        if (!strcmp(k, full[i]))
            return true;
    for (size_t i = 0; i < GW_ARRAY_LEN(begin); i++)
        if (gw_tc_matches(k, begin[i]))
            return true;
    return false;
}

static enum gw_status tbf_complete(struct tbf_words *w)
{
    struct tbf_conf *c = w->c;
    double lim, lim2;

    if (!c->rate)
        return gw_tc_missing(w->err, w->a, "rate", "tbf: the \"rate\" parameter is mandatory");
    if (!c->burst)
        return gw_tc_missing(w->err, w->a, "burst", "tbf: the \"burst\" parameter is mandatory");
    if (c->peakrate && !c->mtu)
        return gw_tc_missing(w->err, w->a, "mtu", "tbf: when \"peakrate\" is specified, \"mtu\" must "
                             "also be specified");
    if (!c->limit && !w->latency_us)
        return gw_tc_missing(w->err, w->a, "latency",
                             "tbf: either \"limit\" or \"latency\" is required");
    if (c->limit)
        return GW_OK;
    lim = (double)c->rate * w->latency_us / 1e6 + c->burst;
    lim2 = (double)c->peakrate * w->latency_us / 1e6 + c->mtu;
    c->limit = gw_tc_cut(c->peakrate && lim2 < lim ? lim2 : lim);
    return GW_OK;
}

static enum gw_status tbf_tc_parse(const struct gw_tc_args *a, void *conf, uint64_t *given,
                                   struct gw_error *err)
{
    struct tbf_words w = { .c = conf, .a = a, .err = err };

    *w.c = (struct tbf_conf){ 0 };
    *given = 1;
    for (uint32_t i = 0; i < a->count; i += 2) {
        if (!tbf_knows(a->word[i]))
            return gw_fail(err, GW_SYNTAX, "tbf: unknown parameter \"%s\"; `gradwire help qdisc "
                           "tbf` lists the words that belong here", a->word[i]);
        if (i + 1 == a->count)
            return gw_tc_incomplete(err, a->word[i]);
        if (tbf_word(&w, a->word[i], a->word[i + 1]) != GW_OK)
            return GW_SYNTAX;
    }
    return tbf_complete(&w);
}

/* A bucket as tc sees it: ticks that were cut to 32 bits, turned back into bytes. */
static void tbf_show_bucket(struct gw_tc_out *o, const char *word, const char *plain,
                            uint64_t bytes_s, uint32_t ticks, uint16_t mpu)
{
    uint32_t bytes = gw_tc_ticks_bytes(bytes_s, ticks);
    char size[64], text[80], fmt[32];

    if (o->details) {
        snprintf(text, sizeof text, "%s/1", o->size(o, bytes, size));
        snprintf(fmt, sizeof fmt, "%s %%s ", word);
        o->str(o, word, fmt, text);
        gw_tc_show_size(o, "mpu", "mpu %s ", mpu);
    } else {
        snprintf(fmt, sizeof fmt, "%s %%s ", plain);
        gw_tc_show_size(o, plain, fmt, bytes);
    }
    if (o->raw) {
        snprintf(fmt, sizeof fmt, "%s_raw", word);
        o->u64(o, fmt, "[%08llx] ", ticks);
    }
}

static void tbf_tc_show(const struct gw_qdisc *q, struct gw_tc_out *o)
{
    const struct tbf *t = q->priv;
    uint32_t ticks = (uint32_t)(t->buffer >> GW_TICK_SHIFT);
    uint32_t pticks = (uint32_t)(t->mtu >> GW_TICK_SHIFT);
    double lat = 1e6 * (t->limit / (double)t->rate.rate_bytes_s) - gw_tc_ticks_us(ticks), lat2;
    char buf[64];

    gw_tc_show_rate(o, "rate", "rate %s ", t->rate.rate_bytes_s);
    tbf_show_bucket(o, "burst", "burst", t->rate.rate_bytes_s, ticks, t->rate.mpu);
    if (t->has_peak) {
        gw_tc_show_rate(o, NULL, "peakrate %s ", t->peak.rate_bytes_s);
        if (pticks || t->peak.mpu)
            tbf_show_bucket(o, "mtu", "minburst", t->peak.rate_bytes_s, pticks, t->peak.mpu);
        lat2 = 1e6 * (t->limit / (double)t->peak.rate_bytes_s) - gw_tc_ticks_us(pticks);
        lat = lat2 > lat ? lat2 : lat;
    }
    if (lat >= 0) {
        o->u64(o, "lat", NULL, (unsigned long long)lat);
        o->str(o, NULL, "lat %s ", o->time(o, gw_tc_cut(lat), buf));
    }
    if (o->raw || lat < 0)
        gw_tc_show_size(o, "limit", "limit %s ", t->limit);
    if (t->rate.overhead)
        o->u64(o, "overhead", "overhead %llu ", t->rate.overhead);
    if (t->rate.atm || o->details)
        o->str(o, "linklayer", "linklayer %s ", t->rate.atm ? "atm" : "ethernet");
}

static void tbf_advise(const struct gw_qdisc *q, void (*say)(void *ctx, const char *sentence),
                       void *ctx)
{
    const struct tbf *t = q->priv;
    char text[256];

    if (t->limit && t->limit < q->mtu_bytes) {
        snprintf(text, sizeof text, "frames above %u bytes are dropped, because no more may wait; a "
                 "limit of a full frame, %u bytes, is the least", t->limit, q->mtu_bytes);
        say(ctx, text);
    }
    if (t->max_bytes >= q->mtu_bytes)
        return;
    snprintf(text, sizeof text, "frames above %u bytes are dropped, because the %s is below a full "
             "frame of %u bytes; those that a change finds waiting stay, and all behind them",
             t->max_bytes, t->has_peak ? "burst or mtu" : "burst",
             q->mtu_bytes);
    say(ctx, text);
}

static void tbf_outline(const struct gw_qdisc *q, uint32_t classid, uint32_t len_bytes,
                        struct gw_outline *o)
{
    const struct tbf *t = q->priv;

    (void)classid;
    o->rate_bps = gw_ratecfg_bps(&t->rate, len_bytes);
    o->loss = len_bytes > t->max_bytes;
}

static const struct gw_qdisc_ops tbf_ops = {
    .priv_bytes = sizeof(struct tbf),
    .conf_bytes = sizeof(struct tbf_conf),
    .init       = tbf_init,
    .fini       = tbf_fini,
    .enqueue    = tbf_enqueue,
    .dequeue    = tbf_dequeue,
    .next_ps    = tbf_next_ps,
    .change     = tbf_change,
    .reset      = tbf_reset,
    .class_find = tbf_class_find,
    .class_walk = tbf_class_walk,
    .graft      = tbf_graft,
    .tc_parse   = tbf_tc_parse,
    .tc_show    = tbf_tc_show,
    .advise     = tbf_advise,
    .outline    = tbf_outline,
};

static const struct gw_param tbf_params[] = {
    { "rate", GW_P_WORDS, 0, "", NULL, NULL, "Rate, e.g. 10mbit; must be given." },
    { "burst", GW_P_WORDS, 0, "", NULL, NULL,
      "Bytes that may leave at once, also buffer or maxburst; must be given." },
    { "limit", GW_P_WORDS, 0, "", NULL, NULL, "Bytes that may wait; this or latency." },
    { "latency", GW_P_WORDS, 0, "", NULL, NULL, "Longest wait: limit = rate x latency + burst." },
    { "peakrate", GW_P_WORDS, 0, "", NULL, NULL, "Rate of a second bucket of mtu bytes." },
    { "mtu", GW_P_WORDS, 0, "", NULL, NULL,
      "Bytes that may leave at once at the peak rate, also minburst." },
    { "mpu", GW_P_WORDS, 0, "0", NULL, NULL, "Shorter frames cost as much as this many bytes." },
    { "overhead", GW_P_WORDS, 0, "0", NULL, NULL, "Bytes that each frame costs in addition." },
    { "linklayer", GW_P_WORDS, 0, "ethernet", NULL, NULL,
      "ethernet, or atm (adsl): cells of 53 bytes for 48." },
};

GW_PLUGIN(gw_qdisc_tbf) = {
    GW_PLUGIN_HEAD(GW_KIND_QDISC, tbf_ops),
    .name    = "tbf",
    .summary = "Token bucket: shapes to a rate with a burst, at wish with a peak rate.",
    .params  = tbf_params, .param_count = GW_ARRAY_LEN(tbf_params),
    .source  = "Linux 6.1 net/sched/sch_tbf.c",
};
