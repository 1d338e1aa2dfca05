/*
 * ch_script - what shall happen to which packet, by its number
 *
 * A list of rules for tests of transports: drop this segment at its first passing, hold that one
 * back, mark a third. No dice. Packets are told apart by what their transport says of them
 * (gw_host.pkt_facts). Segment N of a transport that numbers its packets is packet N of the flow,
 * trimmed or not; of tcp, which counts bytes, it is what begins at byte N x `segment`. An ACK is all
 * that says what has come: NACKs, pulls, reports too. With several flows on the link each has its
 * own counts; other packets (CNPs, parity, pause frames) pass.
 *
 *     d:SEG:OCC     the OCC-th passing of segment SEG (from 0) is dropped; OCC 0: each
 *     D:A:B:OCC     so is that of segments A to B
 *     r:SEG:OCC:US  held back by US microseconds, the others overtake it
 *     c:SEG:OCC     marked as congestion experienced
 *     u:SEG:OCC     arrives twice
 *     a:N:M         the N-th to M-th pure ACK (from 1) of the receiver is dropped; A:N:M: of the
 *                   sender
 *     h:N:M:US      the N-th to M-th pure ACK of the receiver is held back
 *     y:N           the N-th SYN, Y:N the N-th SYN/ACK
 *     f:N           the N-th FIN without data of the sender, or fence of a datagram; F:N of the receiver
 *
 * The same rules may stand on both directions of a link: each names packets of one. A rule that
 * nothing meets is no error. Left out: anything by time (`outage`).
 */
#include <gradwire/gradwire.h>

#define SCRIPT_NUMBERED (UINT64_C(1) << 39)  /* keys of numbered packets, above all segments   */
#define SCRIPT_FLOWS 64u              /* slots of the table of flows at first; a power of two   */

enum rule_kind {                      /* of numbered packets: reverse is the odd one            */
    RULE_DROP, RULE_HOLD, RULE_MARK, RULE_TWICE,
    RULE_ACK, RULE_ACK_BACK, RULE_OPEN, RULE_OPEN_BACK, RULE_CLOSE, RULE_CLOSE_BACK,
    RULE_HOLD_BACK
};

struct script_conf {
    const struct gw_value *rules;
    uint64_t segment_bytes;
};

struct rule {
    uint8_t  kind;
    uint64_t first, last;             /* segments, or numbers of packets                        */
    uint64_t occurrence;              /* of the segment; 0: each                                */
    uint64_t hold_ps;
};

struct passing {                      /* how often a segment of a flow came by                  */
    uint64_t key;                     /* flow << 40 | segment, plus 1; 0: free                  */
    uint64_t count;
};

struct script {
    struct rule *rule;
    uint32_t count, cap;
    uint64_t segment_bytes;
    struct passing *slot;             /* hash table                                             */
    uint64_t slots, used;
    uint64_t hits;
};

/* ---- reading ---- */

static const struct {
    char letter;
    uint8_t kind, numbers;
} forms[] = {
    { 'd', RULE_DROP, 2 }, { 'D', RULE_DROP, 3 }, { 'r', RULE_HOLD, 3 }, { 'c', RULE_MARK, 2 },
    { 'u', RULE_TWICE, 2 }, { 'A', RULE_ACK, 2 }, { 'a', RULE_ACK_BACK, 2 },
    { 'y', RULE_OPEN, 1 }, { 'Y', RULE_OPEN_BACK, 1 }, { 'f', RULE_CLOSE, 1 },
    { 'F', RULE_CLOSE_BACK, 1 }, { 'h', RULE_HOLD_BACK, 3 },
};

/* Numbers behind colons; how many there were, or -1 if something else stands there. */
static int read_numbers(const char *s, const char *end, uint64_t *v, int max)
{
    int n = 0;

    while (s < end) {
        uint64_t x = 0;
        const char *digit = s + 1;

        if (*s != ':' || n == max || digit == end)
            return -1;
        for (s = digit; s < end && *s >= '0' && *s <= '9'; s++)
            if (s - digit > 17)
                return -1;
            else
                x = x * 10 + (uint64_t)(*s - '0');
        if (s == digit)
            return -1;
        v[n++] = x;
    }
    return n;
}

static bool read_rule(const char *s, const char *end, struct rule *r)
{
    uint64_t v[3] = { 0 };
    uint32_t f = 0;

    while (f < GW_ARRAY_LEN(forms) && forms[f].letter != *s)
        f++;
    if (f == GW_ARRAY_LEN(forms) || read_numbers(s + 1, end, v, 3) != forms[f].numbers)
        return false;
    *r = (struct rule){ .kind = forms[f].kind, .first = v[0], .last = v[0] };
    if (*s == 'D' || *s == 'a' || *s == 'A' || *s == 'h')
        r->last = v[1];
    if (r->kind <= RULE_TWICE)
        r->occurrence = *s == 'D' ? v[2] : v[1];
    if (r->kind == RULE_HOLD || r->kind == RULE_HOLD_BACK) {
        if (v[2] > GW_NEVER / GW_PS_PER_US / 4)
            return false;
        r->hold_ps = v[2] * GW_PS_PER_US;
    }
    return r->last >= r->first;
}

static enum gw_status add_rule(struct gw_channel *c, const struct rule *r, struct gw_error *err)
{
    struct script *s = c->priv;

    if (s->count == s->cap) {
        uint32_t cap = s->cap ? s->cap * 2 : 8;
        struct rule *v = c->host->resize(s->rule, cap * sizeof *v);

        if (!v)
            return gw_fail(err, GW_NOMEM, "out of memory for rules of a script");
        s->rule = v;
        s->cap = cap;
    }
    s->rule[s->count++] = *r;
    return GW_OK;
}

/* Rules of one text, with blanks between. */
static enum gw_status read_text(struct gw_channel *c, const struct gw_value *v,
                                struct gw_error *err)
{
    const char *s = v->text ? v->text : "", *end;
    char where[512];
    struct rule r;

    for (; *s; s = end) {
        s += strspn(s, " ");
        end = s + strcspn(s, " ");
        if (s == end)
            continue;
        if (!read_rule(s, end, &r))
            return gw_fail(err, GW_PARAM, "%s: rules: \"%.*s\" is no rule; d:SEG:OCC, D:A:B:OCC, "
                           "r:SEG:OCC:US, c:SEG:OCC, u:SEG:OCC, a:N:M, A:N:M, h:N:M:US, y:N, Y:N, "
                           "f:N or F:N is right",
                           c->host->value_where(v, where, sizeof where), (int)(end - s), s);
        if (add_rule(c, &r, err) != GW_OK)
            return err->code;
    }
    return GW_OK;
}

static void script_fini(struct gw_channel *c)
{
    struct script *s = c->priv;

    if (s->rule)
        c->host->release(s->rule);
    if (s->slot)
        c->host->release(s->slot);
    s->rule = NULL;
    s->slot = NULL;
}

static enum gw_status script_init(struct gw_channel *c, struct gw_error *err)
{
    const struct script_conf *conf = c->conf;
    struct script *s = c->priv;
    enum gw_status st = GW_OK;
    char where[512];

    s->segment_bytes = conf->segment_bytes;
    s->slots = SCRIPT_FLOWS;
    s->slot = c->host->alloc(s->slots * sizeof *s->slot);
    if (!s->slot)
        return gw_fail(err, GW_NOMEM, "out of memory for a script");
    if (conf->rules->kind == GW_V_MAP)
        st = gw_fail(err, GW_PARAM, "%s: rules: a text such as \"d:5:1 a:6:15\" or a list of such "
                     "texts is right", c->host->value_where(conf->rules, where, sizeof where));
    else if (conf->rules->kind != GW_V_LIST)
        st = read_text(c, conf->rules, err);
    for (struct gw_value *v = conf->rules->kind == GW_V_LIST ? conf->rules->child : NULL;
         v && st == GW_OK; v = v->next) {
        v->used = true;
        st = read_text(c, v, err);
    }
    if (st != GW_OK)
        script_fini(c);
    return st;
}

/* ---- packets ---- */

static struct passing *find_slot(struct passing *slot, uint64_t slots, uint64_t key)
{
    uint64_t i = gw_mix64(key) & (slots - 1);

    while (slot[i].key && slot[i].key != key)
        i = (i + 1) & (slots - 1);
    return &slot[i];
}

/* Doubles the table; if there is no memory, counts stop being added. */
static bool grow(struct gw_channel *c)
{
    struct script *s = c->priv;
    struct passing *v = c->host->alloc(2 * s->slots * sizeof *v);

    if (!v)
        return false;
    for (uint64_t i = 0; i < s->slots; i++)
        if (s->slot[i].key)
            *find_slot(v, 2 * s->slots, s->slot[i].key) = s->slot[i];
    c->host->release(s->slot);
    s->slot = v;
    s->slots *= 2;
    return true;
}

/* How often what @key names has come by, this time included. */
static uint64_t count_passing(struct gw_channel *c, uint64_t key)
{
    struct script *s = c->priv;
    struct passing *p;

    if (4 * s->used >= 3 * s->slots && !grow(c))
        return 0;
    p = find_slot(s->slot, s->slots, key + 1);
    if (!p->key) {
        p->key = key + 1;
        s->used++;
    }
    return ++p->count;
}

static uint64_t key_of(uint32_t flow, uint64_t segment)
{
    return (uint64_t)flow << 40 | (segment & ((UINT64_C(1) << 40) - 1));
}

static bool watched(const struct script *s, uint64_t segment)
{
    for (uint32_t i = 0; i < s->count; i++)
        if (s->rule[i].kind <= RULE_TWICE && s->rule[i].first <= segment &&
            s->rule[i].last >= segment)
            return true;
    return false;
}

/* Applies the rules for segment number @segment at its @nth passing. */
static uint32_t data_fate(const struct script *s, struct gw_pkt *p, uint64_t segment, uint64_t nth,
                          uint64_t *extra_ps)
{
    uint32_t fate = GW_FATE_PASS;

    for (uint32_t i = 0; i < s->count; i++) {
        const struct rule *r = &s->rule[i];

        if (r->kind > RULE_TWICE || r->first > segment || r->last < segment ||
            (r->occurrence && r->occurrence != nth))
            continue;
        if (r->kind == RULE_DROP)
            fate |= GW_FATE_LOSS;
        else if (r->kind == RULE_TWICE)
            fate |= GW_FATE_DUPLICATE;
        else if (r->kind == RULE_HOLD)
            *extra_ps += r->hold_ps;
        else if (p->ecn != GW_ECN_NOT_ECT)
            p->ecn = GW_ECN_CE;
    }
    return fate;
}

/* The fate of the next packet of its kind that is told by its number alone. */
static uint32_t number_fate(struct gw_channel *c, const struct gw_pkt *p, uint32_t kind,
                            uint64_t *extra_ps)
{
    const struct script *s = c->priv;
    uint64_t nth;

    kind += (p->flags & GW_PKT_REVERSE) != 0;
    nth = count_passing(c, key_of(p->flow, SCRIPT_NUMBERED + kind));
    for (uint32_t i = 0; i < s->count; i++) {
        const struct rule *r = &s->rule[i];

        if (r->first > nth || r->last < nth)
            continue;
        if (r->kind == kind)
            return GW_FATE_LOSS;
        if (r->kind == RULE_HOLD_BACK && kind == RULE_ACK_BACK)
            *extra_ps += r->hold_ps;
    }
    return GW_FATE_PASS;
}

static uint32_t script_transit(struct gw_channel *c, struct gw_pkt *p, uint64_t sent_ps,
                               uint64_t *extra_ps)
{
    struct script *s = c->priv;
    struct gw_pkt_facts f;
    uint32_t fate = GW_FATE_PASS;

    (void)sent_ps;
    if (!c->host->pkt_facts(c->net, p, &f))
        return GW_FATE_PASS;
    if (f.what & GW_WHAT_DATA) {
        uint64_t segment = f.number != UINT64_MAX ? f.number : f.offset / s->segment_bytes;

        if (watched(s, segment))
            fate |= data_fate(s, p, segment, count_passing(c, key_of(p->flow, segment)), extra_ps);
    }
    if (f.what & GW_WHAT_OPEN)
        fate |= number_fate(c, p, RULE_OPEN, extra_ps);
    else if (f.what & GW_WHAT_CLOSE && !(f.what & GW_WHAT_DATA))
        fate |= number_fate(c, p, RULE_CLOSE, extra_ps);
    else if (f.what & GW_WHAT_ACK)
        fate |= number_fate(c, p, RULE_ACK, extra_ps);
    s->hits += fate != GW_FATE_PASS || *extra_ps;
    return fate;
}

static double script_mean_loss(const struct gw_channel *c, uint32_t len_bytes)
{
    (void)c;
    (void)len_bytes;
    return 0;
}

static const struct gw_stat script_stats[] = {
    { "hits", offsetof(struct script, hits), "Packets that met a rule." },
};

static const struct gw_channel_ops script_ops = {
    .priv_bytes = sizeof(struct script),
    .conf_bytes = sizeof(struct script_conf),
    .init       = script_init,
    .fini       = script_fini,
    .transit    = script_transit,
    .mean_loss  = script_mean_loss,
    .reorders   = true,
    .stats      = script_stats,
    .stat_count = GW_ARRAY_LEN(script_stats),
};

static const struct gw_param script_params[] = {
    { "rules", GW_P_VALUE, offsetof(struct script_conf, rules), NULL, NULL, NULL,
      "What happens to which packet: \"d:5:1 a:6:15\", or a list of such texts. d:SEG:OCC drops "
      "the OCC-th passing of segment SEG (from 0; OCC 0: each), D:A:B:OCC of segments A to B, "
      "r:SEG:OCC:US holds it back, c:SEG:OCC marks it, u:SEG:OCC doubles it; a:N:M drops the N-th "
      "to M-th pure ACK of the receiver, A:N:M of the sender, h:N:M:US holds it back; y:N drops the "
      "N-th SYN, Y:N SYN/ACK, f:N FIN without data of the sender, F:N of the receiver." },
    { "segment", GW_P_BYTES, offsetof(struct script_conf, segment_bytes), "1448", "1", "64KiB",
      "Bytes of the stream that count as one segment of tcp; other transports number their packets." },
};

GW_PLUGIN(gw_channel_script) = {
    GW_PLUGIN_HEAD(GW_KIND_CHANNEL, script_ops),
    .name    = "script",
    .summary = "Drops, holds back, marks or doubles chosen packets by their number, for tests.",
    .params  = script_params, .param_count = GW_ARRAY_LEN(script_params),
};
