/*
 * filter - `tc filter` on the trees: u32, fw, flower, basic, matchall
 *
 * Words, output and refusals follow iproute2 6.1 (tc_filter.c, f_u32.c, f_fw.c, f_flower.c,
 * f_basic.c, f_matchall.c) and tc_new_tfilter() of Linux 6.1. Filters of one parent are asked in
 * order of pref, then in the kernel's order inside; the first that matches decides. A class can have
 * filters only where classes form a tree (htb), whose discipline asks those of its inner classes.
 *
 * A packet here has no bytes: every match becomes a comparison of header fields. What the fields
 * cannot say (identification, fragments, TTL, checksum, Ethernet header, bytes behind the ports) is
 * refused by name. The mark of `fw` is the packet's priority. All packets are IPv4. gradwire's own
 * term for the training tags is `tag(layer|class|flow [mask M] eq|lt|gt N)` in `basic match`; flow
 * is the number of the connection, from 0, or that of test frames.
 * Left out: actions, police, chains other than 0, hash tables with more than one bucket, offloads.
 */
#include <stdlib.h>

#include "emu/tc/keep.h"
#include "emu/tc/run.h"

#define PROTO_ALL 0x0003u
#define PROTO_IP  0x0800u
#define PREF_AUTO 0xc000u
#define BRACKETS_MAX 8

enum { KEYS_MAX = 16, TERMS_MAX = 32, TEXT_MAX = 512, KEY_TEXT_MAX = 56 };

/* ---- comparisons -------------------------------------------------------------------------- */

enum field { F_HEAD, F_PROTO, F_SRC, F_DST, F_PORTS, F_PRIORITY, F_LENGTH, F_LAYER, F_CLASS,
             F_FLOW };
enum op { OP_EQ, OP_LT, OP_GT, OP_RANGE };

struct cond {
    uint8_t  field, op, shift;
    uint32_t mask, value, high;  /* (word >> shift & mask) against value; OP_RANGE: to high    */
};

enum relation { REL_END, REL_AND, REL_OR };

struct term {                    /* of `basic`: a comparison or an expression in brackets      */
    struct cond cond;
    bool     invert;
    uint8_t  rel;                /* to the next term                                           */
    int16_t  sub, next;          /* index of the first term inside; -1: none                   */
    uint32_t mask;               /* as it was given, 0: none was                               */
    char     what[32];           /* "cmp(u16 at 2 layer 2"                                     */
};

struct key {                     /* of u32, as shown                                           */
    uint32_t value, mask;
    int32_t  off;
    bool     next_header;
};

enum label_form { LABEL_TEXT, LABEL_PORT, LABEL_PORTS, LABEL_TOS };

struct label {                   /* of flower, as shown                                        */
    const char *name;
    enum label_form form;
    uint32_t value, more;        /* more: last port, or mask                                   */
    char text[KEY_TEXT_MAX];     /* LABEL_TEXT                                                 */
};

struct gw_filter {
    struct gw_filter *next;
    const struct kind *kind;
    uint32_t parent, handle;     /* handle: of u32 table << 20 | node                          */
    uint32_t pref, protocol;
    uint32_t classid, mark_mask;
    bool     has_class, by_class;/* by_class: fw without options, the mark is the class        */
    uint32_t conds, terms, keys, labels;
    struct cond  cond[KEYS_MAX]; /* all must hold                                              */
    struct term  term[TERMS_MAX];
    struct key   key[KEYS_MAX];
    struct label label[KEYS_MAX];
    char     text[TEXT_MAX];     /* basic: the expression                                      */
};

struct view {                    /* a packet's fields, asked for once                          */
    const struct gw_tree *t;
    const struct gw_pkt  *p;
    bool have;
    struct gw_pkt_fields f;
};

static uint32_t field_word(struct view *v, enum field field)
{
    if (field <= F_PORTS && !v->have) {
        v->have = true;
        if (v->t->conf.fields)
            v->t->conf.fields(v->t->conf.ctx, v->p, &v->f);
    }
    switch (field) {
    case F_HEAD:
        return UINT32_C(0x45000000) | (uint32_t)v->f.tos << 16 | v->f.ip_bytes;
    case F_PROTO:
        return (uint32_t)v->f.ip_proto << 16;
    case F_SRC:
        return v->f.src_ip;
    case F_DST:
        return v->f.dst_ip;
    case F_PORTS:
        return (uint32_t)v->f.src_port << 16 | v->f.dst_port;
    case F_PRIORITY:
        return v->p->priority;
    case F_LENGTH:
        return v->p->len_bytes;
    case F_LAYER:
        return v->p->tag >> 8;
    case F_CLASS:
        return v->p->tag & 0xff;
    case F_FLOW:
        return v->p->flow;
    }
    return 0;
}

static bool cond_holds(const struct cond *c, struct view *v)
{
    uint32_t x = field_word(v, c->field) >> c->shift & c->mask;

    switch (c->op) {
    case OP_LT:
        return x < c->value;
    case OP_GT:
        return x > c->value;
    case OP_RANGE:
        return x >= c->value && x <= c->high;
    default:
        return x == c->value;
    }
}

/* Strictly from left to right, ending as soon as an `and` fails or an `or` holds (em_tree). */
static bool terms_hold(const struct gw_filter *f, int at, struct view *v)
{
    bool holds = true;

    for (; at >= 0; at = f->term[at].next) {
        const struct term *t = &f->term[at];

        holds = (t->sub >= 0 ? terms_hold(f, t->sub, v) : cond_holds(&t->cond, v)) != t->invert;
        if (t->rel == REL_END || (t->rel == REL_AND && !holds) || (t->rel == REL_OR && holds))
            break;
    }
    return holds;
}

/* The class that @f gives the packet; false: it does not match. */
static bool filter_takes(const struct gw_filter *f, struct view *v, uint32_t *classid)
{
    *classid = f->classid;
    if (f->protocol != PROTO_ALL && f->protocol != PROTO_IP)
        return false;
    if (f->by_class) {
        uint32_t mark = v->p->priority;

        *classid = mark >> 16 ? mark : f->parent | mark;
        return mark && (!(mark >> 16) || !((mark ^ f->parent) >> 16));
    }
    for (uint32_t i = 0; i < f->conds; i++)
        if (!cond_holds(&f->cond[i], v))
            return false;
    return !f->terms || terms_hold(f, 0, v);
}

uint32_t gw_filter_classify(const struct gw_tree *t, uint32_t at, const struct gw_pkt *p)
{
    struct view v = { .t = t, .p = p };
    uint32_t classid;

    for (const struct gw_filter *f = t->filters; f; f = f->next)
        if (f->parent == at && filter_takes(f, &v, &classid))
            return classid;
    return 0;
}

/* ---- words -------------------------------------------------------------------------------- */

struct reader {
    char *const *word;
    uint32_t count, at;
    uint32_t last_of[KEYS_MAX];  /* of u32: the last word of each key's match                  */
    struct gw_error *err;
};

/* The value behind the present word, which becomes the present one. */
static const char *value(struct reader *r)
{
    if (r->at + 1 < r->count)
        return r->word[++r->at];
    gw_tc_incomplete(r->err, r->word[r->at]);
    return NULL;
}

static const char *peek(const struct reader *r)
{
    return r->at + 1 < r->count ? r->word[r->at + 1] : "";
}

static int illegal(struct reader *r, const char *what, const char *why)
{
    const char *word = r->at < r->count ? r->word[r->at] : r->count ? r->word[r->count - 1] : "";

    return GW_TC_NO(r->err, GW_TC_WORDS, "Illegal \"%s\": \"%s\"; %s", what, word, why);
}

static int what_is(struct reader *r, const char *kind)
{
    const char *word = r->word[r->at];
    bool action = gw_tc_matches(word, "action") || gw_tc_matches(word, "police");

    return GW_TC_NO(r->err, GW_TC_WORDS, "What is \"%s\"? %s %s", word, action ?
                        "Actions are not modelled; a filter leads to a class by" :
                        "It is no word of filter", action ? "classid" : kind);
}

static bool number(const char *s, int base, uint32_t max, uint32_t *v)
{
    char *end;
    unsigned long n;

    if (!*s || *s == '-' || *s == '+')
        return false;
    n = strtoul(s, &end, base);
    if (*end || n > max)
        return false;
    *v = (uint32_t)n;
    return true;
}

/* a.b.c.d[/len], fewer parts with zeroes behind; "any": no bit. */
static bool prefix(const char *s, uint32_t *ip, uint32_t *mask, unsigned *len)
{
    unsigned part = 0;
    char *end;

    *ip = *mask = 0;
    *len = 0;
    if (!strcmp(s, "any") || !strcmp(s, "default") || !strcmp(s, "all"))
        return true;
    for (;;) {
        unsigned long n;

        if (*s < '0' || *s > '9' || part == 4)
            return false;
        n = strtoul(s, &end, 10);
        if (n > 255)
            return false;
        *ip |= (uint32_t)n << (24 - 8 * part++);
        if (*end != '.')
            break;
        s = end + 1;
    }
    *len = 32;
    if (*end == '/') {
        uint32_t n;

        if (!number(end + 1, 10, 32, &n))
            return false;
        *len = n;
    } else if (*end) {
        return false;
    }
    *mask = *len ? UINT32_MAX << (32 - *len) : 0;
    return true;
}

/* classid|flowid ID; *took: this word was it. */
static int read_classid(struct reader *r, struct gw_filter *f, bool *took)
{
    const char *v;

    *took = gw_tc_matches(r->word[r->at], "classid") || gw_tc_matches(r->word[r->at], "flowid");
    if (!*took)
        return GW_TC_GOOD;
    v = value(r);
    if (!v)
        return GW_TC_USAGE;
    if (!gw_tc_id(v, &f->classid))
        return illegal(r, "classid", "write MAJOR:MINOR, both hexadecimal");
    f->has_class = true;
    return GW_TC_GOOD;
}

static bool add_cond(struct gw_filter *f, struct cond c)
{
    if (f->conds == KEYS_MAX)
        return false;
    f->cond[f->conds++] = c;
    return true;
}

/* ---- u32 ---------------------------------------------------------------------------------- */

#define NEXT_HEADER_OFF 20

/* Which field is the header word at @off, and which of its bits are known. */
static bool word_field(int32_t off, enum field *field, uint32_t *known)
{
    static const struct { int32_t off; enum field field; uint32_t known; } words[] = {
        { 0, F_HEAD, UINT32_MAX }, { 8, F_PROTO, UINT32_C(0x00ff0000) }, { 12, F_SRC, UINT32_MAX },
        { 16, F_DST, UINT32_MAX }, { NEXT_HEADER_OFF, F_PORTS, UINT32_MAX },
    };

    for (size_t i = 0; i < GW_ARRAY_LEN(words); i++)
        if (words[i].off == off) {
            *field = words[i].field;
            *known = words[i].known;
            return true;
        }
    return false;
}

/* Keys of one word are joined, as tc joins them; they must not contradict each other. */
static int add_key(struct reader *r, struct gw_filter *f, struct key k)
{
    k.value &= k.mask;
    for (uint32_t i = 0; i < f->keys; i++) {
        struct key *old = &f->key[i];

        if (old->off != k.off || old->next_header != k.next_header)
            continue;
        if ((old->value ^ k.value) & (old->mask & k.mask))
            return illegal(r, "match", "it contradicts a match before it");
        r->last_of[i] = r->at;
        old->value |= k.value;
        old->mask |= k.mask;
        return GW_TC_GOOD;
    }
    if (f->keys == KEYS_MAX)
        return illegal(r, "match", "at most 16 words can be matched");
    r->last_of[f->keys] = r->at;
    f->key[f->keys++] = k;
    return GW_TC_GOOD;
}

/* `at [nexthdr+]OFF` where it may stand. */
static bool read_at(struct reader *r, struct key *k)
{
    const char *s;
    char *end;

    if (strcmp(peek(r), "at"))
        return true;
    r->at++;
    s = value(r);
    if (!s)
        return false;
    if (!strncmp(s, "nexthdr+", 8)) {
        k->next_header = true;
        s += 8;
    }
    k->off = (int32_t)strtol(s, &end, 0);
    return end != s && !*end;
}

/* VALUE MASK of @bytes at k->off; @fixed: no `at` may follow. */
static int read_bits(struct reader *r, struct gw_filter *f, unsigned bytes, struct key k,
                     bool fixed)
{
    uint32_t max = bytes == 4 ? UINT32_MAX : (UINT32_C(1) << 8 * bytes) - 1, shift;
    const char *v = r->at + 1 < r->count ? r->word[++r->at] : "", *m;

    if (!number(v, 0, max, &k.value))
        return illegal(r, "match", "a value that fits is right");
    m = r->at + 1 < r->count ? r->word[++r->at] : "";
    if (!number(m, 16, max, &k.mask))
        return illegal(r, "match", "value and mask (hexadecimal) are right");
    if (!fixed && !read_at(r, &k))
        return illegal(r, "match", "at [nexthdr+]OFFSET is right");
    if (bytes == 4 && k.off & 3)
        return illegal(r, "match", "the offset of a u32 is a multiple of 4");
    shift = bytes == 4 ? 0 : bytes == 2 ? (k.off & 3 ? 0 : 16) : 24 - 8 * (unsigned)(k.off & 3);
    k.value <<= shift;
    k.mask <<= shift;
    k.off -= k.off & 3;
    return add_key(r, f, k);
}

static int read_address(struct reader *r, struct gw_filter *f, int32_t off)
{
    struct key k = { .off = off };
    unsigned len;
    const char *v = r->at + 1 < r->count ? r->word[++r->at] : "";

    if (!prefix(v, &k.value, &k.mask, &len))
        return illegal(r, "match", "an IPv4 address, with /LEN or not, is right");
    if (!read_at(r, &k) || k.off & 3)
        return illegal(r, "match", "at OFFSET, a multiple of 4, is right");
    return add_key(r, f, k);
}

static const struct {
    const char *proto, *name;
    unsigned bytes;
    int32_t off;
    bool next;
} selectors[] = {
    { "ip", "src", 0, 12, false },      { "ip", "dst", 0, 16, false },
    { "ip", "tos", 1, 1, false },       { "ip", "dsfield", 1, 1, false },
    { "ip", "precedence", 1, 1, false },{ "ip", "ihl", 1, 0, false },
    { "ip", "protocol", 1, 9, false },  { "ip", "sport", 2, 20, false },
    { "ip", "dport", 2, 22, false },    { "tcp", "src", 2, 0, true },
    { "tcp", "dst", 2, 2, true },       { "udp", "src", 2, 0, true },
    { "udp", "dst", 2, 2, true },
};

static int read_match(struct reader *r, struct gw_filter *f)
{
    const char *proto = value(r), *name;

    if (!proto)
        return GW_TC_USAGE;
    if (!strcmp(proto, "u32") || !strcmp(proto, "u16") || !strcmp(proto, "u8")) {
        if (r->at + 1 == r->count)
            return value(r) ? GW_TC_GOOD : GW_TC_USAGE;
        return read_bits(r, f, proto[1] == '3' ? 4 : proto[1] == '1' ? 2 : 1, (struct key){ 0 },
                         false);
    }
    if (strcmp(proto, "ip") && strcmp(proto, "tcp") && strcmp(proto, "udp"))
        return illegal(r, "match", "u32, u16, u8, ip, tcp and udp are right");
    name = value(r);
    if (!name)
        return GW_TC_USAGE;
    for (size_t i = 0; i < GW_ARRAY_LEN(selectors); i++)
        if (!strcmp(proto, selectors[i].proto) && !strcmp(name, selectors[i].name))
            return selectors[i].bytes ?
                   read_bits(r, f, selectors[i].bytes, (struct key){ .off = selectors[i].off,
                             .next_header = selectors[i].next }, true) :
                   read_address(r, f, selectors[i].off);
    return illegal(r, "match", "ip takes src, dst, tos, dsfield, protocol, sport and dport; tcp "
                   "and udp take src and dst");
}

/* "TABLE:[BUCKET]:NODE" of hexadecimal numbers. */
static bool u32_handle(const char *s, uint32_t *handle)
{
    uint32_t part[3] = { 0 };
    static const uint32_t max[3] = { 0xfff, 0xff, 0xfff };

    if (!strchr(s, ':'))
        return !strncmp(s, "0x", 2) && number(s, 16, UINT32_MAX, handle);
    for (unsigned i = 0; i < 3; i++) {
        char *end;
        unsigned long n = strtoul(s, &end, 16);

        if (*s == '-' || *s == '+' || *s == ' ' || n > max[i])
            return false;
        part[i] = (uint32_t)n;
        s = end;
        if (!*s)
            break;
        if (*s++ != ':' || i == 2)
            return false;
    }
    *handle = part[0] << 20 | part[1] << 12 | part[2];
    return true;
}

static int u32_finish(struct reader *r, struct gw_filter *f)
{
    for (uint32_t i = 0; i < f->keys; i++) {
        const struct key *k = &f->key[i];
        struct cond c = { .op = OP_EQ, .mask = k->mask, .value = k->value };
        enum field field = F_HEAD;
        uint32_t known = 0;
        bool found = word_field(k->next_header ? k->off + NEXT_HEADER_OFF : k->off, &field, &known);

        if (k->mask & ~(found ? known : 0))
            return GW_TC_NO(r->err, GW_TC_KERNEL, "match %08x/%08x at %s%d, which ends with \"%s\": "
                            "packets here have no such bits; TOS, length, protocol, addresses and "
                            "ports can be matched", k->value, k->mask, k->next_header ?
                            "nexthdr+" : "", k->off, r->word[r->last_of[i]]);
        c.field = (uint8_t)field;
        add_cond(f, c);
    }
    return GW_TC_GOOD;
}

static int u32_parse(struct reader *r, struct gw_filter *f, const char *handle)
{
    bool took;
    int rc;

    if (handle && !u32_handle(handle, &f->handle))
        return GW_TC_NO(r->err, GW_TC_WORDS, "Illegal \"handle\": \"%s\"; write TABLE::NODE",
                            handle);
    for (; r->at < r->count; r->at++) {
        const char *word = r->word[r->at];
        uint32_t table;

        if (gw_tc_matches(word, "match")) {
            rc = read_match(r, f);
        } else if (!strcmp(word, "ht")) {
            const char *v = value(r);

            rc = !v ? GW_TC_USAGE : !u32_handle(v, &table) || table & 0xfffff ?
                 illegal(r, "ht", "a table's number, as show prints it, is right") : GW_TC_GOOD;
            f->handle = f->handle ? f->handle : rc ? 0 : table;
        } else {
            rc = read_classid(r, f, &took);
            if (!rc && !took)
                return what_is(r, "u32");
        }
        if (rc)
            return rc;
    }
    if (!f->keys && !handle)
        return GW_TC_NO(r->err, GW_TC_KERNEL, "Error: cls_u32: Selector not specified");
    return u32_finish(r, f);
}

static void u32_show(const struct gw_filter *f, struct gw_tc_out *o)
{
    char text[40], fmt[64];

    snprintf(text, sizeof text, "%x::%x", f->handle >> 20, f->handle & 0xfff);
    o->str(o, "fh", "fh %s ", text);
    o->u64(o, "order", "order %llu ", f->handle & 0xfff);
    snprintf(text, sizeof text, "%x", f->handle >> 20);
    o->str(o, "key_ht", "key ht %s ", text);
    o->str(o, "bkt", "bkt %s ", "0");
    if (f->has_class)
        o->str(o, "flowid", "*flowid %s ", gw_tc_id_text(f->classid, text));
    o->flag(o, "not_in_hw", "not_in_hw ", true);
    for (uint32_t i = 0; i < f->keys; i++) {
        const struct key *k = &f->key[i];

        if (!o->json) {
            snprintf(fmt, sizeof fmt, "\n  match %08x/%08x at %s%%lld", k->value, k->mask,
                     k->next_header ? "nexthdr+" : "");
            o->i64(o, NULL, fmt, k->off);
            continue;
        }
        o->open(o, "match", false);
        snprintf(text, sizeof text, "%x", k->value);
        o->str(o, "value", NULL, text);
        snprintf(text, sizeof text, "%x", k->mask);
        o->str(o, "mask", NULL, text);
        o->str(o, "offmask", NULL, k->next_header ? "nexthdr+" : "");
        o->i64(o, "off", NULL, k->off);
        o->close(o, false);
    }
}

/* ---- fw ----------------------------------------------------------------------------------- */

static int fw_parse(struct reader *r, struct gw_filter *f, const char *handle)
{
    bool took, any = r->at < r->count;

    f->mark_mask = UINT32_MAX;
    if (handle) {
        const char *slash = strchr(handle, '/');
        char mark[24];
        int len = slash ? (int)(slash - handle) : (int)strlen(handle);

        snprintf(mark, sizeof mark, "%.*s", len < 23 ? len : 23, handle);
        if (!number(mark, 0, UINT32_MAX, &f->handle) ||
            (slash && !number(slash + 1, 0, UINT32_MAX, &f->mark_mask)))
            return GW_TC_NO(r->err, GW_TC_WORDS, "Illegal \"handle\": \"%s\"; write MARK[/MASK]",
                                handle);
    }
    for (; r->at < r->count; r->at++) {
        int rc = read_classid(r, f, &took);

        if (rc || !took)
            return rc ? rc : what_is(r, "fw");
    }
    if (!any && (!handle || !f->handle)) {
        f->by_class = true;
        return GW_TC_GOOD;
    }
    if (!any)
        return GW_TC_NO(r->err, GW_TC_KERNEL, "RTNETLINK answers: Invalid argument: fw with handle "
                        "%s needs a class: classid X:Y", handle);
    if (!handle || !f->handle)
        return GW_TC_NO(r->err, GW_TC_KERNEL, "RTNETLINK answers: Invalid argument: fw needs "
                        "handle MARK%s%s", handle ? ", not " : "", handle ? handle : "");
    add_cond(f, (struct cond){ .field = F_PRIORITY, .op = OP_EQ, .mask = f->mark_mask,
                               .value = f->handle });
    return GW_TC_GOOD;
}

static void fw_show(const struct gw_filter *f, struct gw_tc_out *o)
{
    char text[40];

    if (!f->by_class) {
        o->open(o, "fw", false);
        snprintf(text, sizeof text, "%x", f->handle);
        o->str(o, "mark", f->mark_mask != UINT32_MAX ? "handle 0x%s" : "handle 0x%s ", text);
        snprintf(text, sizeof text, "%x", f->mark_mask);
        o->str(o, "mask", f->mark_mask != UINT32_MAX ? "/0x%s " : NULL, text);
        o->close(o, false);
    }
    if (f->has_class)
        o->str(o, "classid", "classid %s ", gw_tc_id_text(f->classid, text));
}

/* ---- flower ------------------------------------------------------------------------------- */

static int add_flower(struct reader *r, struct gw_filter *f, struct label l, struct cond c)
{
    for (uint32_t i = 0; i < f->labels; i++)
        if (!strcmp(f->label[i].name, l.name))
            return illegal(r, l.name, "it stands here a second time");
    if (f->labels == KEYS_MAX || !add_cond(f, c))
        return illegal(r, l.name, "at most 16 keys can be matched");
    f->label[f->labels++] = l;
    return GW_TC_GOOD;
}

static int flower_proto(struct reader *r, struct gw_filter *f, const char *v, uint32_t *proto)
{
    static const struct { const char *name; uint32_t n; } names[] = {
        { "tcp", 6 }, { "udp", 17 }, { "sctp", 132 }, { "icmp", 1 }, { "icmpv6", 58 },
    };
    struct label l = { .name = "ip_proto" };
    bool known = false;

    if (f->protocol != PROTO_IP)
        return illegal(r, "ip_proto", "it needs `protocol ip` in front of flower");
    for (size_t i = 0; i < GW_ARRAY_LEN(names); i++)
        if (!strcmp(v, names[i].name)) {
            *proto = names[i].n;
            known = true;
        }
    if (!known && !number(v, 16, 255, proto))
        return illegal(r, "ip_proto", "tcp, udp, sctp, icmp or a hexadecimal number is right");
    snprintf(l.text, sizeof l.text, "%02x", *proto);
    for (size_t i = 0; i < GW_ARRAY_LEN(names); i++)
        if (*proto == names[i].n)
            snprintf(l.text, sizeof l.text, "%s", names[i].name);
    return add_flower(r, f, l, (struct cond){ .field = F_PROTO, .shift = 16, .mask = 0xff,
                                              .value = *proto });
}

static int flower_address(struct reader *r, struct gw_filter *f, const char *name, const char *v,
                          enum field field)
{
    struct cond c = { .field = (uint8_t)field };
    struct label l = { .name = name };
    unsigned len;

    if (f->protocol != PROTO_IP || !prefix(v, &c.value, &c.mask, &len))
        return illegal(r, name, f->protocol == PROTO_IP ? "an IPv4 address, with /LEN or not, is "
                       "right" : "it needs `protocol ip` in front of flower");
    c.value &= c.mask;
    snprintf(l.text, sizeof l.text, "%u.%u.%u.%u", c.value >> 24, c.value >> 16 & 255,
             c.value >> 8 & 255, c.value & 255);
    if (len < 32)
        snprintf(l.text + strlen(l.text), sizeof l.text - strlen(l.text), "/%u", len);
    return add_flower(r, f, l, c);
}

static int flower_port(struct reader *r, struct gw_filter *f, const char *name, const char *v,
                       unsigned shift, uint32_t proto)
{
    struct cond c = { .field = F_PORTS, .op = OP_EQ, .shift = (uint8_t)shift, .mask = 0xffff };
    const char *dash = strchr(v, '-');
    char low[24];

    if (proto != 6 && proto != 17 && proto != 132)
        return illegal(r, name, "it needs ip_proto tcp, udp or sctp in front of it");
    snprintf(low, sizeof low, "%.*s", dash && dash - v < 23 ? (int)(dash - v) : 23, v);
    if (!number(low, 10, 65535, &c.value) || (dash && !number(dash + 1, 10, 65535, &c.high)))
        return illegal(r, name, "PORT or FIRST-LAST is right");
    if (dash && c.high <= c.value)
        return illegal(r, name, "the last port must be greater than the first");
    c.op = dash ? OP_RANGE : OP_EQ;
    return add_flower(r, f, (struct label){ .name = name, .form = dash ? LABEL_PORTS : LABEL_PORT,
                                            .value = c.value, .more = c.high }, c);
}

static int flower_tos(struct reader *r, struct gw_filter *f, const char *v)
{
    struct cond c = { .field = F_HEAD, .op = OP_EQ, .shift = 16, .mask = 0xff };
    const char *slash = strchr(v, '/');
    char tos[16];

    snprintf(tos, sizeof tos, "%.*s", slash && slash - v < 15 ? (int)(slash - v) : 15, v);
    if (f->protocol != PROTO_IP || !number(tos, 0, 255, &c.value) ||
        (slash && !number(slash + 1, 16, 255, &c.mask)))
        return illegal(r, "ip_tos", "TOS[/MASK], the mask hexadecimal, behind `protocol ip` is "
                       "right");
    c.value &= c.mask;
    return add_flower(r, f, (struct label){ .name = "ip_tos", .form = LABEL_TOS, .value = c.value,
                                            .more = c.mask }, c);
}

static int flower_word(struct reader *r, struct gw_filter *f, uint32_t *proto)
{
    static const char *const names[] = { "dst_ip", "src_ip", "ip_proto", "dst_port", "src_port",
                                         "ip_tos" };
    const char *word = r->word[r->at], *v;
    size_t i = 0;
    bool took;
    int rc;

    while (i < GW_ARRAY_LEN(names) && strcmp(word, names[i]))
        i++;
    if (i == GW_ARRAY_LEN(names)) {
        rc = read_classid(r, f, &took);
        return rc || took ? rc : what_is(r, "flower");
    }
    v = value(r);
    if (!v)
        return GW_TC_USAGE;
    switch (i) {
    case 0:
        return flower_address(r, f, names[i], v, F_DST);
    case 1:
        return flower_address(r, f, names[i], v, F_SRC);
    case 2:
        return flower_proto(r, f, v, proto);
    case 3:
        return flower_port(r, f, names[i], v, 0, *proto);
    case 4:
        return flower_port(r, f, names[i], v, 16, *proto);
    default:
        return flower_tos(r, f, v);
    }
}

static int read_plain_handle(struct reader *r, struct gw_filter *f, const char *handle)
{
    if (handle && !number(handle, 0, UINT32_MAX, &f->handle))
        return GW_TC_NO(r->err, GW_TC_WORDS, "Illegal \"handle\": \"%s\"; a number is right",
                            handle);
    return GW_TC_GOOD;
}

static int flower_parse(struct reader *r, struct gw_filter *f, const char *handle)
{
    uint32_t proto = 0;
    int rc = read_plain_handle(r, f, handle);

    for (; !rc && r->at < r->count; r->at++)
        rc = flower_word(r, f, &proto);
    return rc;
}

static void label_show(const struct label *l, struct gw_tc_out *o)
{
    char fmt[64], mask[16];

    snprintf(fmt, sizeof fmt, "\n  %.30s %s", l->name, l->form == LABEL_TEXT ? "%s" : "%llu");
    if (l->form == LABEL_TEXT)
        o->str(o, l->name, fmt, l->text);
    if (l->form == LABEL_PORTS) {
        o->open(o, l->name, false);
        o->u64(o, "start", fmt, l->value);
        o->u64(o, "end", "-%llu", l->more);
        o->close(o, false);
    }
    if (l->form == LABEL_PORT || l->form == LABEL_TOS)
        o->u64(o, l->name, fmt, l->value);
    if (l->form == LABEL_TOS && l->more != 0xff) {
        snprintf(mask, sizeof mask, "%x", l->more);
        o->str(o, "ip_tos_mask", "/0x%s", mask);
    }
}

static void flower_show(const struct gw_filter *f, struct gw_tc_out *o)
{
    static const char *const order[] = { "ip_proto", "ip_tos", "dst_ip", "src_ip", "dst_port",
                                         "src_port" };
    char text[40];

    o->u64(o, "handle", "handle 0x%llx ", f->handle);
    if (f->has_class)
        o->str(o, "classid", "classid %s ", gw_tc_id_text(f->classid, text));
    o->open(o, "keys", false);
    if (f->protocol == PROTO_IP)
        o->str(o, "eth_type", "\n  eth_type %s", "ipv4");
    for (size_t k = 0; k < GW_ARRAY_LEN(order); k++)
        for (uint32_t i = 0; i < f->labels; i++)
            if (!strcmp(f->label[i].name, order[k]))
                label_show(&f->label[i], o);
    o->close(o, false);
    o->flag(o, "not_in_hw", "\n  not_in_hw", true);
}

/* ---- basic -------------------------------------------------------------------------------- */

/* An expression over words: brackets stand for themselves, blanks and word ends part the rest. */
struct scan {
    struct reader *r;
    uint32_t word;               /* word and place in it of the next token                     */
    size_t   pos;
    char     token[64];          /* "": the words have ended                                   */
    bool     starts_word;        /* the token begins a word                                    */
};

static void scan_next(struct scan *s)
{
    size_t n = 0;
    const char *w;

    s->token[0] = 0;
    while (s->word < s->r->count) {
        w = s->r->word[s->word];
        while (w[s->pos] == ' ' || w[s->pos] == '\t')
            s->pos++;
        if (w[s->pos])
            break;
        s->word++;
        s->pos = 0;
    }
    if (s->word == s->r->count)
        return;
    w = s->r->word[s->word];
    s->starts_word = s->pos == 0;
    if (strchr("()", w[s->pos])) {
        s->token[n++] = w[s->pos++];
    } else {
        while (w[s->pos] && !strchr("() \t", w[s->pos])) {
            if (n + 1 < sizeof s->token)
                s->token[n++] = w[s->pos];
            s->pos++;
        }
    }
    s->token[n] = 0;
}

static int bad_term(struct scan *s, const char *why)
{
    if (!s->token[0])
        return GW_TC_NO(s->r->err, GW_TC_WORDS, "Illegal \"ematch\": it ends behind \"%s\"; %s",
                        s->r->word[s->r->count - 1], why);
    return GW_TC_NO(s->r->err, GW_TC_WORDS, "Illegal \"ematch\": \"%s\"; %s", s->token, why);
}

static bool scan_is(struct scan *s, const char *token)
{
    if (strcmp(s->token, token))
        return false;
    scan_next(s);
    return true;
}

static bool scan_number(struct scan *s, uint32_t *v)
{
    if (!number(s->token, 0, UINT32_MAX, v))
        return false;
    scan_next(s);
    return true;
}

/* [mask M] eq|gt|lt VALUE ) */
static int read_compare(struct scan *s, struct term *t)
{
    struct cond *c = &t->cond;
    static const struct { const char *name; enum op op; } ops[] = {
        { "eq", OP_EQ }, { "lt", OP_LT }, { "gt", OP_GT },
    };
    size_t i = 0;

    if (scan_is(s, "mask")) {
        if (!scan_number(s, &t->mask))
            return bad_term(s, "a number is right behind mask");
        c->mask &= t->mask;
    }
    while (i < GW_ARRAY_LEN(ops) && strcmp(s->token, ops[i].name))
        i++;
    if (i == GW_ARRAY_LEN(ops))
        return bad_term(s, "eq, lt or gt is right");
    c->op = (uint8_t)ops[i].op;
    scan_next(s);
    if (!scan_number(s, &c->value))
        return bad_term(s, "a number is right behind the comparison");
    return scan_is(s, ")") ? GW_TC_GOOD : bad_term(s, "a closing bracket is right");
}

static int read_named(struct scan *s, bool tag, struct term *t)
{
    static const struct { const char *name; bool tag; enum field field; } names[] = {
        { "priority", false, F_PRIORITY }, { "nf_mark", false, F_PRIORITY },
        { "fwmark", false, F_PRIORITY },   { "pkt_len", false, F_LENGTH },
        { "layer", true, F_LAYER },        { "class", true, F_CLASS },
        { "flow", true, F_FLOW },
    };

    for (size_t i = 0; i < GW_ARRAY_LEN(names); i++)
        if (tag == names[i].tag && !strcmp(s->token, names[i].name)) {
            t->cond = (struct cond){ .field = (uint8_t)names[i].field, .mask = UINT32_MAX };
            snprintf(t->what, sizeof t->what, "%s(%s", tag ? "tag" : "meta",
                     !strcmp(names[i].name, "fwmark") ? "nf_mark" : names[i].name);
            scan_next(s);
            return read_compare(s, t);
        }
    return bad_term(s, tag ? "layer, class and flow are right in tag()" :
                    "priority, nf_mark and pkt_len are right in meta()");
}

/* cmp(u8|u16|u32 at OFF [layer network|transport] [mask M] OP VALUE) */
static int read_cmp(struct scan *s, struct term *t)
{
    struct cond *c = &t->cond;
    uint32_t off = 0, known = 0, layer = 1;
    enum field field = F_HEAD;
    unsigned bytes = !strcmp(s->token, "u8") ? 1 : !strcmp(s->token, "u16") ? 2 :
                     !strcmp(s->token, "u32") ? 4 : 0;
    bool ok;

    if (!bytes)
        return bad_term(s, "u8, u16 or u32 is right in cmp()");
    scan_next(s);
    if (!scan_is(s, "at") || !scan_number(s, &off))
        return bad_term(s, "at OFFSET is right");
    if (scan_is(s, "layer")) {
        layer = !strcmp(s->token, "network") || !strcmp(s->token, "1") ? 1 :
                !strcmp(s->token, "transport") || !strcmp(s->token, "2") ? 2 : 0;
        if (!layer)
            return bad_term(s, "layer network and layer transport are modelled");
        scan_next(s);
    }
    ok = off < 64 && off % bytes == 0 &&
         word_field((int32_t)(off & ~3u) + (layer == 2 ? NEXT_HEADER_OFF : 0), &field, &known);
    *c = (struct cond){ .field = (uint8_t)field, .shift = (uint8_t)(8 * (4 - bytes - (off & 3))),
                        .mask = bytes == 4 ? UINT32_MAX : (UINT32_C(1) << 8 * bytes) - 1 };
    if (!ok || (c->mask << c->shift) & ~known)
        return bad_term(s, "packets here have no such bytes");
    snprintf(t->what, sizeof t->what, "cmp(u%u at %u layer %u", 8 * bytes, off, layer);
    return read_compare(s, t);
}

static int read_terms(struct scan *s, struct gw_filter *f, unsigned depth, int *first);

static int read_term(struct scan *s, struct gw_filter *f, unsigned depth, int *index)
{
    struct term *t;
    int sub = -1, rc;

    if (f->terms == TERMS_MAX || depth > BRACKETS_MAX)
        return bad_term(s, "the expression is too long");
    *index = (int)f->terms++;
    t = &f->term[*index];
    t->next = t->sub = -1;
    while (scan_is(s, "not") || scan_is(s, "NOT"))
        t->invert = !t->invert;
    if (scan_is(s, "(")) {
        rc = read_terms(s, f, depth + 1, &sub);
        t->sub = (int16_t)sub;
        return rc ? rc : scan_is(s, ")") ? GW_TC_GOOD : bad_term(s, "a closing bracket is right");
    }
    if (scan_is(s, "meta"))
        return scan_is(s, "(") ? read_named(s, false, t) : bad_term(s, "write meta(...)");
    if (scan_is(s, "tag"))
        return scan_is(s, "(") ? read_named(s, true, t) : bad_term(s, "write tag(...)");
    if (scan_is(s, "cmp"))
        return scan_is(s, "(") ? read_cmp(s, t) : bad_term(s, "write cmp(...)");
    return bad_term(s, "meta(), cmp(), tag() and brackets are right");
}

static int read_terms(struct scan *s, struct gw_filter *f, unsigned depth, int *first)
{
    int last = -1, rc;

    for (*first = -1;;) {
        int at = -1;

        rc = read_term(s, f, depth, &at);
        if (rc)
            return rc;
        if (last < 0)
            *first = at;
        else
            f->term[last].next = (int16_t)at;
        last = at;
        if (scan_is(s, "and") || scan_is(s, "AND"))
            f->term[at].rel = REL_AND;
        else if (scan_is(s, "or") || scan_is(s, "OR"))
            f->term[at].rel = REL_OR;
        else
            return GW_TC_GOOD;
    }
}

/* The words from @from on, up to where the expression has ended, as they will be shown. */
static void keep_text(struct gw_filter *f, const struct reader *r, uint32_t from, uint32_t to)
{
    size_t n = 0;

    for (uint32_t i = from; i < to && n < TEXT_MAX - 1; i++)
        n += (size_t)snprintf(f->text + n, TEXT_MAX - n, "%s%s", i > from ? " " : "", r->word[i]);
}

static int basic_match(struct reader *r, struct gw_filter *f)
{
    struct scan s = { .r = r };
    uint32_t from = r->at + 1;
    int first, rc;

    if (from == r->count)
        return value(r) ? GW_TC_GOOD : GW_TC_USAGE;
    if (f->terms)
        return illegal(r, "match", "one expression is right; join terms by and, or");
    s.word = from;
    scan_next(&s);
    rc = read_terms(&s, f, 0, &first);
    if (rc)
        return rc;
    if (*s.token && !s.starts_word)
        return bad_term(&s, "and, or, or the end of the expression is right");
    r->at = (*s.token ? s.word : r->count) - 1;
    keep_text(f, r, from, r->at + 1);
    return GW_TC_GOOD;
}

static int basic_parse(struct reader *r, struct gw_filter *f, const char *handle)
{
    int rc = read_plain_handle(r, f, handle);
    bool took;

    for (; !rc && r->at < r->count; r->at++) {
        if (gw_tc_matches(r->word[r->at], "match")) {
            rc = basic_match(r, f);
        } else {
            rc = read_classid(r, f, &took);
            if (!rc && !took)
                return what_is(r, "basic");
        }
    }
    return rc;
}

static void pad(struct gw_tc_out *o, unsigned n)
{
    while (n--)
        o->str(o, NULL, "%s", "  ");
}

/* Terms from @at on, with iproute2's breaks of lines. Text only. */
static void show_terms(const struct gw_filter *f, int at, unsigned depth, struct gw_tc_out *o)
{
    static const char *const ops[] = { [OP_EQ] = "eq", [OP_LT] = "lt", [OP_GT] = "gt" };

    for (; at >= 0; at = f->term[at].next) {
        const struct term *t = &f->term[at];
        char text[96], mask[24] = "";

        o->str(o, NULL, "%s", t->invert ? "NOT " : "");
        if (t->sub >= 0) {
            o->str(o, NULL, "%s", "(\n");
            pad(o, depth + 1);
            show_terms(f, t->sub, depth + 1, o);
            pad(o, depth);
            o->str(o, NULL, "%s", ") ");
        } else {
            if (t->mask)
                snprintf(mask, sizeof mask, *t->what == 'm' ? " mask 0x%08x" : " mask 0x%x",
                         t->mask);
            snprintf(text, sizeof text, "%s%s %s %u)\n", t->what, mask, ops[t->cond.op],
                     t->cond.value);
            o->str(o, NULL, "%s", text);
            pad(o, t->rel == REL_END ? 0 : depth);
        }
        o->str(o, NULL, "%s", t->rel == REL_AND ? "AND " : t->rel == REL_OR ? "OR " : "");
    }
}

static void basic_show(const struct gw_filter *f, struct gw_tc_out *o)
{
    char text[40];

    o->u64(o, "handle", "handle 0x%llx ", f->handle);
    if (f->has_class)
        o->str(o, "flowid", "flowid %s ", gw_tc_id_text(f->classid, text));
    if (!f->terms)
        return;
    o->str(o, "ematch", NULL, f->text);
    o->str(o, NULL, "%s", "\n  ");
    show_terms(f, 0, 1, o);
}

/* ---- matchall ----------------------------------------------------------------------------- */

static int matchall_parse(struct reader *r, struct gw_filter *f, const char *handle)
{
    bool took;
    int rc = read_plain_handle(r, f, handle);

    for (; !rc && r->at < r->count; r->at++) {
        rc = read_classid(r, f, &took);
        if (!rc && !took)
            return what_is(r, "matchall");
    }
    if (!rc && !f->has_class)
        return GW_TC_NO(r->err, GW_TC_KERNEL, "RTNETLINK answers: Invalid argument: matchall needs "
                        "a class: classid X:Y");
    return rc;
}

static void matchall_show(const struct gw_filter *f, struct gw_tc_out *o)
{
    char text[40];

    o->u64(o, "handle", "handle 0x%llx ", f->handle);
    if (f->has_class)
        o->str(o, "flowid", "flowid %s ", gw_tc_id_text(f->classid, text));
    o->flag(o, "not_in_hw", "\n  not_in_hw", true);
}

/* ---- the list ----------------------------------------------------------------------------- */

struct kind {
    const char *name;
    int  (*parse)(struct reader *r, struct gw_filter *f, const char *handle);
    void (*show)(const struct gw_filter *f, struct gw_tc_out *o);
};

static const struct kind kinds[] = {
    { "u32", u32_parse, u32_show },          { "fw", fw_parse, fw_show },
    { "flower", flower_parse, flower_show }, { "basic", basic_parse, basic_show },
    { "matchall", matchall_parse, matchall_show },
};

static bool is_u32(const struct kind *k)
{
    return k == &kinds[0];
}

static bool is_kind(const struct gw_filter *f, const char *name)
{
    return !strcmp(f->kind->name, name);
}

static const struct kind *kind_find(const char *name)
{
    for (size_t i = 0; i < GW_ARRAY_LEN(kinds); i++)
        if (!strcmp(name, kinds[i].name))
            return &kinds[i];
    return NULL;
}

bool gw_filter_any(const struct gw_tree *t, uint32_t handle)
{
    for (const struct gw_filter *f = t->filters; f; f = f->next)
        if (!((f->parent ^ handle) >> 16))
            return true;
    return false;
}

bool gw_filter_uses(const struct gw_tree *t, uint32_t handle, uint32_t classid)
{
    for (const struct gw_filter *f = t->filters; f; f = f->next)
        if ((f->parent & 0xffff0000) == handle && classid &&
            ((f->has_class && f->classid == classid) || f->parent == classid))
            return true;
    return false;
}

void gw_filter_remove_all(struct gw_tree *t, uint32_t parent_handle)
{
    struct gw_filter **at = &t->filters;

    if (!parent_handle)                              /* a hidden discipline has none           */
        return;
    while (*at) {
        struct gw_filter *f = *at;

        if ((f->parent & 0xffff0000) == parent_handle) {
            *at = f->next;
            free(f);
        } else {
            at = &f->next;
        }
    }
}

void gw_filter_free_all(struct gw_tree *t)
{
    while (t->filters) {
        struct gw_filter *f = t->filters;

        t->filters = f->next;
        free(f);
    }
}

/* Do two flower filters look at the same bits? @keys: and for the same values? */
static bool flower_like(const struct gw_filter *a, const struct gw_filter *b, bool keys)
{
    for (uint32_t i = 0; i < a->conds; i++) {
        const struct cond *x = &a->cond[i], *y = b->cond;

        while (y < b->cond + b->conds && (y->field != x->field || y->shift != x->shift ||
               y->op != x->op || y->mask != x->mask ||
               (keys && (y->value != x->value || y->high != x->high))))
            y++;
        if (y == b->cond + b->conds)
            return false;
    }
    return a->conds == b->conds;
}

static bool same_group(const struct gw_filter *a, const struct gw_filter *b)
{
    return a->parent == b->parent && a->pref == b->pref;
}

/* Behind @x as the kernel asks: nodes of u32 by number, basic's latest first, flower's by the first
 * use of their masks, others as they came. */
static bool asked_after(const struct gw_filter *f, const struct gw_filter *x, bool mask_known)
{
    if (x->pref != f->pref)
        return x->pref < f->pref;
    if (!same_group(f, x))
        return !is_kind(f, "basic");
    if (is_u32(f->kind))
        return x->handle < f->handle;
    if (is_kind(f, "flower") && mask_known) {
        while (x && same_group(f, x) && !flower_like(f, x, false))
            x = x->next;
        return x && same_group(f, x);
    }
    return !is_kind(f, "basic");
}

static void insert(struct gw_tree *t, struct gw_filter *f)
{
    struct gw_filter **at = &t->filters;
    bool mask_known = false;

    for (const struct gw_filter *x = t->filters; x; x = x->next)
        mask_known = mask_known || (same_group(f, x) && flower_like(f, x, false));
    while (*at && asked_after(f, *at, mask_known))
        at = &(*at)->next;
    f->next = *at;
    *at = f;
}

/* @f takes the place of @old, which is freed. */
static void exchange(struct gw_tree *t, struct gw_filter *old, struct gw_filter *f)
{
    struct gw_filter **at = &t->filters;

    while (*at != old)
        at = &(*at)->next;
    f->next = old->next;
    *at = f;
    free(old);
}

static void take_out(struct gw_tree *t, struct gw_filter *f)
{
    struct gw_filter **at = &t->filters;

    while (*at && *at != f)
        at = &(*at)->next;
    if (*at) {
        *at = f->next;
        free(f);
    }
}

/* ---- one command -------------------------------------------------------------------------- */

struct frame {
    uint32_t parent, pref, protocol;
    bool     has_protocol;
    const char *handle, *kind;
    const char *parent_word, *pref_word, *protocol_word;   /* as they stand in the line, or NULL */
};

static int wrong(struct reader *r, const char *word, const char *why)
{
    return GW_TC_NO(r->err, GW_TC_USAGE, "Error: argument \"%s\" is wrong: %s", word, why);
}

/* A refusal by the kernel; @word is what it is about, NULL: the whole line. */
static int no(struct reader *r, const char *why, const char *word)
{
    return GW_TC_NO(r->err, GW_TC_KERNEL, "Error: %s%s%s%s", why, word ? ": \"" : "",
                    word ? word : "", word ? "\"" : "");
}

static const struct { const char *name; uint32_t n; } protocols[] = {
    { "all", PROTO_ALL }, { "ip", PROTO_IP }, { "ipv4", PROTO_IP }, { "ipv6", 0x86dd },
    { "arp", 0x0806 }, { "802.1Q", 0x8100 }, { "802.1ad", 0x88a8 }, { "mpls_uc", 0x8847 },
};

static const char *protocol_text(uint32_t n, char *buf)
{
    for (size_t i = 0; i < GW_ARRAY_LEN(protocols); i++)
        if (protocols[i].n == n)
            return protocols[i].name;
    snprintf(buf, 24, "[%u]", n);
    return buf;
}

static bool read_protocol(const char *s, uint32_t *n)
{
    for (size_t i = 0; i < GW_ARRAY_LEN(protocols); i++)
        if (!strcasecmp(s, protocols[i].name)) {
            *n = protocols[i].n;
            return true;
        }
    return number(s, 0, 0xffff, n);
}

enum part { P_ROOT, P_INGRESS, P_PARENT, P_HANDLE, P_PREF, P_PROTOCOL, P_CHAIN, P_ESTIMATOR, P_HELP,
            P_KIND };

static enum part part_of(const char *word)
{
    if (!strcmp(word, "root"))
        return P_ROOT;
    if (!strcmp(word, "ingress") || !strcmp(word, "egress") || !strcmp(word, "clsact") ||
        !strcmp(word, "block"))
        return P_INGRESS;
    if (!strcmp(word, "parent"))
        return P_PARENT;
    if (!strcmp(word, "handle"))
        return P_HANDLE;
    if (gw_tc_matches(word, "preference") || gw_tc_matches(word, "priority"))
        return P_PREF;
    if (gw_tc_matches(word, "protocol"))
        return P_PROTOCOL;
    if (gw_tc_matches(word, "chain"))
        return P_CHAIN;
    if (gw_tc_matches(word, "estimator"))
        return P_ESTIMATOR;
    return gw_tc_matches(word, "help") ? P_HELP : P_KIND;
}

static int twice(struct reader *r, const char *what, const char *v)
{
    return GW_TC_NO(r->err, GW_TC_USAGE, "Error: duplicate \"%s\": \"%s\" is the second value",
                        what, v);
}

static int frame_value(struct reader *r, struct frame *f, enum part part, const char *v)
{
    uint32_t n;

    switch (part) {
    case P_PARENT:
        f->parent_word = v;
        return f->parent ? twice(r, "parent", v) : gw_tc_id(v, &f->parent) ? GW_TC_GOOD :
               wrong(r, v, "Invalid parent ID");
    case P_HANDLE:
        if (f->handle)
            return twice(r, "handle", v);
        f->handle = v;
        return GW_TC_GOOD;
    case P_PREF:
        f->pref_word = v;
        return f->pref ? twice(r, "priority", v) : number(v, 0, 0xffff, &f->pref) ? GW_TC_GOOD :
               wrong(r, v, "invalid priority value");
    case P_PROTOCOL:
        if (f->has_protocol)
            return twice(r, "protocol", v);
        f->has_protocol = true;
        f->protocol_word = v;
        return read_protocol(v, &f->protocol) ? GW_TC_GOOD : wrong(r, v, "invalid protocol");
    default:
        return !number(v, 0, UINT32_MAX, &n) ? wrong(r, v, "invalid chain index value") :
               n ? wrong(r, v, "only chain 0 is modelled") : GW_TC_GOOD;
    }
}

/* Reads one word of the frame, or the kind. */
static int frame_word(struct reader *r, struct frame *f)
{
    const char *word = r->word[r->at], *v;
    enum part part = part_of(word);

    switch (part) {
    case P_ROOT:
        if (f->parent)
            return GW_TC_NO(r->err, GW_TC_USAGE, "Error: \"root\" is duplicate parent ID");
        f->parent = GW_TC_ROOT;
        return GW_TC_GOOD;
    case P_INGRESS:
        return GW_TC_NO(r->err, GW_TC_USAGE, "Error: \"%s\": packets pass filters only on their "
                            "way out here; write parent HANDLE:", word);
    case P_ESTIMATOR:
        return GW_TC_NO(r->err, GW_TC_USAGE, "Error: \"%s\": rate estimators are not modelled; "
                            "leave it out", word);
    case P_HELP:
        return GW_TC_NO(r->err, GW_TC_USAGE, "Usage: tc filter [ add | del | change | replace | "
                            "show ] dev DEV [ pref PRIO ] [ protocol PROTO ] [ root | parent "
                            "CLASSID ] [ handle ID ] [ u32 | fw | flower | basic | matchall ] ...");
    case P_KIND:
        f->kind = word;
        return GW_TC_GOOD;
    default:
        v = value(r);
        return v ? frame_value(r, f, part, v) : GW_TC_USAGE;
    }
}

static int read_frame(struct reader *r, struct frame *f)
{
    for (; r->at < r->count && !f->kind; r->at++) {
        int rc = frame_word(r, f);

        if (rc)
            return rc;
    }
    return GW_TC_GOOD;
}

/* Does the kernel let filters hang here? f->parent 0 becomes the root. */
static int check_parent(struct reader *r, const struct gw_tree *t, struct frame *f)
{
    static const char *const by_flow[] = { "sfq", "fq_codel", "cake" };
    struct gw_qdisc *q;
    struct gw_qclass *first;

    if (!f->parent)
        f->parent = gw_tc_handle_of(t->root);
    q = f->parent && f->parent != GW_TC_ROOT ? gw_tree_owner(t, f->parent) : NULL;
    if (!q)
        return no(r, "Parent Qdisc doesn't exists: there is no discipline by that number", f->parent_word);
    if ((f->parent & 0xffff) && (!q->ops->class_find || !q->ops->class_find(q, f->parent)))
        return no(r, "Specified class doesn't exist", f->parent_word);
    if ((f->parent & 0xffff) && !q->ops->class_parent)   /* no tree of classes                 */
        return no(r, "classid must be zero: filters hang at the discipline, not at its classes",
                  f->parent_word);
    for (size_t i = 0; i < GW_ARRAY_LEN(by_flow); i++)
        if (!strcmp(q->kind, by_flow[i]))
            return GW_TC_GOOD;
    if (!q->ops->class_find || !q->ops->class_walk)
        return no(r, "Qdisc not classful: it takes no filters", f->parent_word);
    first = q->ops->class_walk(q, NULL);
    if (!q->ops->class_change && !(first && first->child && q->ops->class_walk(q, first)))
        return no(r, "Class doesn't support blocks: the discipline takes no filters", f->parent_word);
    return GW_TC_GOOD;
}

static struct gw_filter *first_of(const struct gw_tree *t, const struct frame *f)
{
    struct gw_filter *x = t->filters;

    while (x && (x->parent != f->parent || x->pref != f->pref))
        x = x->next;
    return x;
}

static struct gw_filter *by_handle(struct gw_filter *first, const struct frame *f, uint32_t handle)
{
    struct gw_filter *x = first;

    while (x && (x->parent != f->parent || x->pref != f->pref || x->handle != handle))
        x = x->next;
    return x;
}

/* The kernel counts down from 0xc000 below the first pref that was given so. */
static uint32_t auto_pref(const struct gw_tree *t, uint32_t parent)
{
    for (const struct gw_filter *x = t->filters; x; x = x->next)
        if (x->parent == parent && x->pref >= 0x8000)
            return x->pref - 1;
    return PREF_AUTO;
}

static uint32_t u32_table(const struct gw_tree *t, const struct gw_filter *f)
{
    uint32_t table = 0x800;

    for (const struct gw_filter *x = t->filters; x; x = x->next) {
        if (!is_u32(x->kind) || x->parent != f->parent)
            continue;
        if (x->pref == f->pref)
            return x->handle >> 20;
        if (x->handle >> 20 >= table)
            table = (x->handle >> 20) + 1;
    }
    return table;
}

/* Moves f->handle on to the first number that no other of the group has. */
static void first_free(const struct gw_tree *t, struct gw_filter *f)
{
    uint32_t first = f->handle, count = 0, n = 0;
    bool *taken;

    for (const struct gw_filter *x = t->filters; x; x = x->next)
        count += same_group(f, x);
    taken = calloc((size_t)count + 1, sizeof *taken);
    if (!taken)
        return;                                     /* it may have a double; nothing breaks    */
    for (const struct gw_filter *x = t->filters; x; x = x->next)
        if (same_group(f, x) && x->handle >= first && x->handle - first < count)
            taken[x->handle - first] = true;
    while (taken[n])
        n++;
    f->handle = first + n;
    free(taken);
}

/* The first free number: u32 nodes from 800, the others from 1. */
static void number_filter(const struct gw_tree *t, struct gw_filter *f)
{
    uint32_t base = 0, n = 1;

    if (f->by_class)
        return;
    if (is_u32(f->kind)) {
        base = u32_table(t, f) << 20;
        f->handle = (f->handle & 0xfff) | base;
        n = 0x800;
        if (f->handle & 0xfff)
            return;
    } else if (f->handle) {
        return;
    }
    f->handle = base | n;
    first_free(t, f);
}

static int check_group(struct reader *r, const struct frame *f, const struct gw_filter *first,
                       const struct kind *kind)
{
    if (!first)
        return GW_TC_GOOD;
    if (f->has_protocol && first->protocol != f->protocol)
        return no(r, "Protocol mismatch for filter with specified priority", f->protocol_word);
    if (kind && first->kind != kind)
        return no(r, "Specified filter kind does not match existing one", f->kind);
    return GW_TC_GOOD;
}

/* Is there one beside @old that matches what @x matches? */
static bool doubled(const struct gw_filter *first, const struct gw_filter *x,
                    const struct gw_filter *old)
{
    for (const struct gw_filter *y = first; y; y = y->next)
        if (y != old && same_group(x, y) && flower_like(x, y, true))
            return true;
    return false;
}

/* @x has been read; it belongs to the tree, or is freed, afterwards. */
static int add_filter(struct reader *r, struct gw_tree *t, struct frame *f, unsigned flags,
                      struct gw_filter *x)
{
    struct gw_filter *first, *old = NULL;
    int rc = check_parent(r, t, f);

    if (rc)
        return rc;
    x->parent = f->parent;
    x->pref = f->pref = f->pref ? f->pref : auto_pref(t, f->parent);
    first = first_of(t, f);
    rc = check_group(r, f, first, x->kind);
    if (rc)
        return rc;
    if (f->handle || x->by_class || is_kind(x, "matchall"))
        number_filter(t, x);
    if (x->handle || x->by_class)
        old = by_handle(first, f, x->handle);
    if (!old && !(flags & GW_TC_CREATE))
        return no(r, "Need both RTM_NEWTFILTER and NLM_F_CREATE to create a new filter", f->handle ? f->handle : f->pref_word);
    if (old && (flags & GW_TC_EXCL))
        return no(r, "Filter already exists", f->handle ? f->handle : f->pref_word);
    if (first && !old && is_kind(x, "matchall"))
        return no(r, "File exists: matchall stands alone in its pref",
                  f->pref_word);
    if (is_kind(x, "flower") && doubled(first, x, old))
        return no(r, "File exists: another filter of this pref matches the same",
                  f->pref_word);
    if (old && is_kind(x, "flower") && !flower_like(old, x, false))
        return no(r, "Invalid argument: a flower filter keeps its kinds of keys",
                  f->handle);
    if (first && is_kind(x, "fw") && !x->by_class && !first->by_class &&
        first->mark_mask != x->mark_mask)
        return no(r, "Invalid argument: all of one pref have one mask",
                  f->handle);
    number_filter(t, x);
    if (old)
        exchange(t, old, x);
    else
        insert(t, x);
    t->touched = gw_tree_owner(t, x->parent);
    return GW_TC_GOOD;
}

static int add(struct reader *r, struct gw_tree *t, struct frame *f, unsigned flags)
{
    const struct kind *kind = f->kind ? kind_find(f->kind) : NULL;
    struct gw_filter *x;
    int rc;

    if (!f->kind && f->handle)
        return GW_TC_NO(r->err, GW_TC_USAGE, "Must specify filter type when using \"handle\" %s",
                        f->handle);
    if (!f->kind)
        return no(r, "Filter kind and protocol must be specified; neither stands behind",
                  r->count ? r->word[r->count - 1] : "add");
    if (!kind && r->at < r->count)
        return GW_TC_NO(r->err, GW_TC_WORDS, "Unknown filter \"%s\", hence option \"%s\" is "
                            "unparsable; u32, fw, flower, basic and matchall are right", f->kind,
                            r->word[r->at]);
    if (!kind)
        return GW_TC_NO(r->err, GW_TC_KERNEL, "Error: TC classifier not found: \"%s\"; u32, fw, "
                            "flower, basic and matchall are right", f->kind);
    x = calloc(1, sizeof *x);
    if (!x)
        return no(r, "out of memory for a filter", NULL);
    x->kind = kind;
    x->protocol = f->has_protocol ? f->protocol : PROTO_ALL;
    f->protocol = x->protocol;
    rc = kind->parse(r, x, f->handle);
    if (!rc)
        rc = add_filter(r, t, f, flags, x);
    if (rc)
        free(x);
    return rc;
}

static int del(struct reader *r, struct gw_tree *t, struct frame *f)
{
    const struct kind *kind = f->kind ? kind_find(f->kind) : NULL;
    struct gw_filter *first, *x, want = { .kind = kind };
    int rc;

    if (f->kind && !kind)
        return GW_TC_NO(r->err, GW_TC_KERNEL, "Error: TC classifier not found: \"%s\"", f->kind);
    if (f->handle && !kind)
        return GW_TC_NO(r->err, GW_TC_USAGE, "Must specify filter type when using \"handle\" %s",
                        f->handle);
    if (!f->parent)
        f->parent = gw_tc_handle_of(t->root);
    if (f->parent == GW_TC_ROOT || !f->parent || !gw_tree_owner(t, f->parent))
        return no(r, "Parent Qdisc doesn't exists: there is no discipline by that number", f->parent_word);
    if (!f->pref && (f->has_protocol || kind))
        return no(r, "Cannot flush filters with protocol, handle or kind set", f->kind ? f->kind : f->protocol_word);
    if (f->handle && is_u32(kind) ? !u32_handle(f->handle, &want.handle) :
        f->handle && !number(f->handle, 0, UINT32_MAX, &want.handle))
        return GW_TC_NO(r->err, GW_TC_WORDS, "Illegal \"handle\": \"%s\"", f->handle);
    first = f->pref ? first_of(t, f) : NULL;
    if (f->pref && !first)
        return no(r, "Filter with specified priority/protocol not found", f->pref_word);
    rc = check_group(r, f, first, kind);
    if (rc)
        return rc;
    t->touched = gw_tree_owner(t, f->parent);
    if (f->handle) {
        if (is_u32(kind) && !(want.handle >> 20))
            want.handle |= first->handle & 0xfff00000;
        x = by_handle(first, f, want.handle);
        if (!x)
            return no(r, "Specified filter handle not found", f->handle);
        take_out(t, x);
        return GW_TC_GOOD;
    }
    for (x = t->filters; x;) {
        struct gw_filter *next = x->next;

        if (x->parent == f->parent && (!f->pref || x->pref == f->pref))
            take_out(t, x);
        x = next;
    }
    return GW_TC_GOOD;
}

/* ---- show --------------------------------------------------------------------------------- */

static void show_head(const struct gw_filter *x, const struct frame *asked, struct gw_tc_out *o)
{
    char text[40];

    o->open(o, NULL, false);
    o->str(o, NULL, "%s ", "filter");
    if (!asked->parent)
        o->str(o, "parent", "parent %s ", gw_tc_id_text(x->parent, text));
    if (!asked->has_protocol)
        o->str(o, "protocol", "protocol %s ", protocol_text(x->protocol, text));
    if (!asked->pref)
        o->u64(o, "pref", "pref %llu ", x->pref);
    o->str(o, "kind", "%s ", x->kind->name);
    o->u64(o, "chain", "chain %llu ", 0);
}

/* The lines that stand for the group: the kernel's tcf_proto, and the table of u32. */
static void show_group(const struct gw_filter *x, const struct frame *asked, struct gw_tc_out *o)
{
    char text[40];

    show_head(x, asked, o);
    o->str(o, NULL, "%s", "\n");
    o->close(o, false);
    if (!is_u32(x->kind))
        return;
    show_head(x, asked, o);
    o->open(o, "options", false);
    snprintf(text, sizeof text, "%x:", x->handle >> 20);
    o->str(o, "fh", "fh %s ", text);
    o->u64(o, "ht_divisor", "ht divisor %llu ", 1);
    o->close(o, false);
    o->str(o, NULL, "%s", "\n");
    o->close(o, false);
}

/* The filter that is shown behind @x, NULL: the first. Flower's are shown by their handles. */
static const struct gw_filter *shown_after(const struct gw_tree *t, const struct gw_filter *x)
{
    const struct gw_filter *y = x ? x->next : t->filters, *least = NULL;

    if (x && is_kind(x, "flower")) {
        for (y = t->filters; y; y = y->next)
            if (same_group(x, y) && y->handle > x->handle && (!least || y->handle < least->handle))
                least = y;
        if (least)
            return least;
        for (y = t->filters; y; y = y->next)       /* behind the last of the group             */
            least = same_group(x, y) ? y : least;
        y = least->next;
    }
    if (!y || !is_kind(y, "flower"))
        return y;
    least = y;
    for (const struct gw_filter *z = y; z; z = z->next)
        if (same_group(y, z) && z->handle < least->handle)
            least = z;
    return least;
}

static bool asked_for(const struct gw_filter *x, const struct frame *f)
{
    return x->parent == f->parent && (!f->pref || x->pref == f->pref) &&
           (!f->has_protocol || x->protocol == f->protocol);
}

/* Of a finished run: filters whose options are text that was kept, see keep.h. */
static void show_kept(const struct gw_tree *t, const struct frame *f, const struct frame *asked,
                      struct gw_tc_out *o)
{
    const uint32_t form = o->json ? GW_TC_FORM_JSON : 0;
    uint32_t pref = 0;

    for (uint32_t i = 0; i < t->kept_count; i++) {
        const struct gw_tc_kept *k = &t->kept[i];
        struct gw_filter x = { .parent = k->parent, .handle = k->handle };
        int body = 0;

        x.kind = kind_find(k->kind);
        if (strcmp(k->object, "filter") || !(k->forms >> form & 1) || !x.kind ||
            sscanf(k->text, "%u %x %n", &x.pref, &x.protocol, &body) < 2 ||
            !asked_for(&x, f))
            continue;
        if (x.pref != pref)
            show_group(&x, asked, o);
        pref = x.pref;
        show_head(&x, asked, o);
        gw_tc_json(o->priv, k->text + body);
        gw_tc_text(o->priv, k->text + body);
        o->str(o, NULL, "%s", "\n");
        o->close(o, false);
    }
}

static uint32_t root_handle(const struct gw_tree *t)
{
    for (uint32_t i = 0; i < t->kept_count; i++)
        if (t->kept[i].parent == GW_TC_ROOT && !strcmp(t->kept[i].object, "qdisc"))
            return t->kept[i].handle;
    return gw_tc_handle_of(t->root);
}

static int show(struct reader *r, const struct gw_tree *t, struct frame *f, struct gw_tc_out *o)
{
    const struct frame asked = *f;
    uint32_t pref = 0;
    bool any = false;

    if (f->kind)
        return GW_TC_NO(r->err, GW_TC_USAGE, "What is \"%s\"? Try \"tc filter help\"", f->kind);
    if (!f->parent)
        f->parent = root_handle(t);
    o->open(o, NULL, true);
    show_kept(t, f, &asked, o);
    for (const struct gw_filter *x = shown_after(t, NULL); x; x = shown_after(t, x)) {
        if (!asked_for(x, f))
            continue;
        if (!any || x->pref != pref)
            show_group(x, &asked, o);
        any = true;
        pref = x->pref;
        show_head(x, &asked, o);
        o->open(o, "options", false);
        x->kind->show(x, o);
        o->close(o, false);
        o->str(o, NULL, "%s", "\n");
        o->close(o, false);
    }
    o->close(o, true);
    return GW_TC_GOOD;
}

/* Its options as show prints them, behind pref and protocol; to be freed. */
static char *shown_text(const struct gw_filter *x, bool json)
{
    struct gw_tc_writer w = { .out = { .json = json } };
    char *text = NULL;
    size_t n = 0;
    FILE *f = open_memstream(&text, &n);

    if (!f)
        return NULL;
    fprintf(f, "%u %x ", x->pref, x->protocol);
    gw_tc_writer_init(&w, f);
    w.out.open(&w.out, "options", false);
    x->kind->show(x, &w.out);
    w.out.close(&w.out, false);
    return fclose(f) ? NULL : text;
}

bool gw_filter_keep(const struct gw_tree *t, void (*put)(void *ctx, const struct gw_tc_kept *k),
                    void *ctx, uint32_t *order)
{
    bool good = true;

    for (const struct gw_filter *x = shown_after(t, NULL); x; x = shown_after(t, x), (*order)++)
        for (int json = 0; json < 2; json++) {
            char *text = shown_text(x, json);

            good = good && text;
            if (text)
                put(ctx, &(struct gw_tc_kept){ .object = "filter", .kind = x->kind->name,
                    .order = *order, .handle = x->handle, .parent = x->parent,
                    .forms = json ? GW_TC_ALL_JSON : GW_TC_ALL_TEXT, .text = text });
            free(text);
        }
    return good;
}

int gw_filter_cmd(struct gw_tree *t, const char *verb, char *const *word, uint32_t count,
                  struct gw_tc_out *o, struct gw_error *err)
{
    struct reader r = { .word = word, .count = count, .err = err };
    struct frame f = { 0 };
    int rc = read_frame(&r, &f);

    if (rc)
        return rc;
    if (!strcmp(verb, "show"))
        return show(&r, t, &f, o);
    if (!strcmp(verb, "delete"))
        return del(&r, t, &f);
    return add(&r, t, &f, !strcmp(verb, "add") ? GW_TC_CREATE | GW_TC_EXCL :
                          !strcmp(verb, "replace") ? GW_TC_CREATE : 0);
}

/* ---- the frame in cmd.c's words ----------------------------------------------------------- */

/* Takes `dev DEV` out of the words; the rest is for gw_filter_cmd(). @kind: the word that ends the
 * frame, if there is one. */
static int without_dev(struct gw_tc_run *r, char **rest, uint32_t *count, const char **dev,
                       const char **kind)
{
    bool frame = true;

    for (*count = 0; r->at < r->count; r->at++) {
        const char *word = r->word[r->at];
        enum part part;

        if (frame && !strcmp(word, "dev")) {
            const char *v = gw_tc_next(r);

            if (v && *dev)
                return GW_TC_NO(r->err, GW_TC_USAGE, "Error: duplicate \"dev\": \"%s\" is the "
                                    "second value", v);
            *dev = v;
            if (!v)
                return GW_TC_USAGE;
            continue;
        }
        rest[(*count)++] = r->word[r->at];
        part = part_of(word);
        if (frame && part == P_KIND) {
            *kind = word;
            frame = false;
        }
        if (frame && part >= P_PARENT && part <= P_CHAIN && r->at + 1 < r->count)
            rest[(*count)++] = r->word[++r->at];
    }
    return GW_TC_GOOD;
}

int gw_tc_filter(struct gw_tc_run *r)
{
    struct gw_tc_out *o = &r->w->out;
    char **rest = calloc((size_t)r->count + 1, sizeof *rest);
    const char *dev = NULL, *kind = NULL;
    struct gw_tree *t = NULL;
    uint32_t count = 0;
    int rc;

    if (!rest)
        return GW_TC_NO(r->err, GW_TC_KERNEL, "out of memory for a tc line");
    rc = without_dev(r, rest, &count, &dev, &kind);
    if (!rc && dev && !(t = gw_tc_dev(r, dev)))
        rc = GW_TC_WORDS;
    if (!rc && !dev && !r->verb.show)
        rc = gw_tc_no_dev(r, kind);
    if (!rc && t) {
        rc = gw_filter_cmd(t, r->verb.name, rest, count, o, r->err);
    } else if (!rc) {
        o->open(o, NULL, true);
        o->close(o, true);
    }
    if (!rc && r->verb.show && o->json && r->w->f)
        fputc('\n', r->w->f);
    free(rest);
    return rc;
}
