/*
 * topo_file - a graph from a GML or GraphML file, read by igraph
 *
 * Takes the files that people have: the Internet Topology Zoo (Knight et al., IEEE JSAC 29(9),
 * 2011), TopoHub and SNDlib conversions, Shadow's GML, and graphs written for gradwire.
 *
 *   rate    LinkSpeedRaw (bit/s); LinkSpeed with LinkSpeedUnits (K, M, G, T); what LinkType and
 *           then LinkLabel say (OC-192, STM-64x2, DS-3, 1GE, "10 Gbps", of a range its upper end);
 *           `rate` or `bandwidth` with a unit; the smaller of Shadow's host_bandwidth_up and _down
 *           at the two ends; else the option rate
 *   delay   `delay` or `latency` with a unit; `dist` or `length_km` in km, or the great circle
 *           between the ends if both have coordinates (Latitude, Longitude or lat, lon), at
 *           km_per_ms; else the option delay
 *   others  `loss` ("0.1%"), `packet_loss` (0 to 1), `mtu`, `framing` (bytes), `weight`
 *   kind    `kind` or `type` of a node: host, gpu, server; switch, router. `transit`: 0 or 1
 *
 * In these files b is a bit and "Mbps" a million bits a second; B/s is bytes. What fell back to an
 * option is listed in the notes. Parallel edges stay apart, repeated labels get "#2"; edges from a
 * node to itself are left out, and said so. A link is named by its `name` or `label`, else A-B,
 * first the node that stands first in the file. In a directed graph an edge and an opposite one
 * make the two directions of one link. A hyperedge node is a switch: the point where a shared
 * segment meets. A graph in several parts loads.
 *
 * Hosts: `hosts:` names them, or `all`; else nodes with a kind of host; else every node that is no
 * switch. A node whose file says host does not forward for others; any other host does, because it
 * stands for a site with a router.
 *
 * igraph's faults that are worked around: its GraphML reader refuses the attribute type "integer";
 * its GML reader recurses into nested lists and passes over a second graph; GraphML nodes that only
 * edges name would come into being. These are refused. Left out: jitter (as Shadow does), GraphML
 * hyperedge elements and ports. igraph keeps handlers per process: they are set and restored
 * around the one call, and two threads must not read graphs at once.
 */
#include <gradwire/alg/datafile.h>
#include <gradwire/gradwire.h>

#include <igraph/igraph.h>
#include <math.h>

#define FILE_BYTES_MAX (64u << 20)
#define GML_DEPTH_MAX  32
#define RATE_MAX_BPS   1e14              /* GW_RATE_MAX                                        */
#define DELAY_MAX_S    1e3               /* GW_DELAY_MAX                                       */
#define EARTH_KM       6371.0088         /* mean radius, IUGG                                  */
#define PI             3.14159265358979323846

struct file_conf {
    const char *file;
    const struct gw_value *hosts;
    struct gw_link_conf link;            /* what a link has of which the file says nothing     */
    double   km_per_ms;
    uint64_t mtu_bytes, framing_bytes;
};

/* ---- attributes --------------------------------------------------------------------------- */

enum node_attr {
    NA_LABEL, NA_NAME, NA_ID, NA_LATITUDE, NA_LONGITUDE, NA_LAT, NA_LON, NA_KIND, NA_TYPE,
    NA_HYPEREDGE, NA_TRANSIT, NA_UP, NA_DOWN, NA_COUNT
};
static const char *const node_attr_name[NA_COUNT] = {
    "label", "name", "id", "Latitude", "Longitude", "lat", "lon", "kind", "type", "hyperedge",
    "transit", "host_bandwidth_up", "host_bandwidth_down",
};

enum edge_attr {
    EA_NAME, EA_LABEL, EA_SPEED_RAW, EA_SPEED, EA_UNITS, EA_TYPE, EA_LINK_LABEL, EA_RATE,
    EA_BANDWIDTH, EA_DELAY, EA_LATENCY, EA_DIST, EA_LENGTH, EA_LOSS, EA_PACKET_LOSS, EA_MTU,
    EA_FRAMING, EA_WEIGHT, EA_JITTER, EA_COUNT
};
static const char *const edge_attr_name[EA_COUNT] = {
    "name", "label", "LinkSpeedRaw", "LinkSpeed", "LinkSpeedUnits", "LinkType", "LinkLabel",
    "rate", "bandwidth", "delay", "latency", "dist", "length_km", "loss", "packet_loss", "mtu",
    "framing", "weight", "jitter",
};

struct attr {
    bool there;
    igraph_attribute_type_t type;
};

struct text {                    /* grows; for notes                                           */
    char  *s;
    size_t len, cap;
};

/* One file on its way into the graph. */
struct loader {
    struct gw_topology *t;
    const struct gw_host *host;
    const struct file_conf *c;
    const char *path;                    /* for sentences                                      */
    igraph_t    ig;
    struct attr node_attr[NA_COUNT], edge_attr[EA_COUNT];
    uint8_t    *said;                    /* by node: SAID_*                                    */
    uint32_t   *open;                    /* directed: by node, last unpaired link out, or NONE */
    uint32_t   *open_next;               /* by link                                            */
    uint32_t    loops, paired, single, repeated, defaults_rate, defaults_delay;
    uint32_t    graphs, declared;        /* elements <graph> and <node> of the text            */
    bool        directed, jitter;
};

enum { SAID_NOTHING, SAID_HOST, SAID_SWITCH };

/* ---- text and numbers --------------------------------------------------------------------- */

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_alpha(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c + ('a' - 'A')) : c;
}

/* True if @s begins with @word, letters alike in both cases. */
static bool begins(const char *s, const char *word)
{
    while (*word && lower(*s) == lower(*word)) {
        s++;
        word++;
    }
    return !*word;
}

static const char *skip_blank(const char *s)
{
    while (*s == ' ' || *s == '\t' || *s == '\n' || *s == '\r')
        s++;
    return s;
}

/*
 * A plain decimal number at *@s, which moves behind it. Not strtod: that follows the locale, and
 * takes "infinity" and hexadecimal.
 */
static bool take_number(const char **s, double *out)
{
    const char *p = *s;
    double v = 0, scale = 1;
    int exponent = 0, sign = 1;

    if (!is_digit(*p) && !(*p == '.' && is_digit(p[1])))
        return false;
    for (; is_digit(*p); p++)
        v = v * 10 + (*p - '0');
    if (*p == '.') {
        for (p++; is_digit(*p); p++) {
            v = v * 10 + (*p - '0');
            scale *= 10;
        }
    }
    if ((*p == 'e' || *p == 'E') && (is_digit(p[1]) || ((p[1] == '-' || p[1] == '+') &&
                                                        is_digit(p[2])))) {
        sign = p[1] == '-' ? -1 : 1;
        for (p += is_digit(p[1]) ? 1 : 2; is_digit(*p); p++) {
            if (exponent < 1000)
                exponent = exponent * 10 + (*p - '0');
        }
    }
    *out = v / scale * pow(10, sign * exponent);
    *s   = p;
    return true;
}

/* A number and nothing else. */
static bool read_number(const char *s, double *out)
{
    const char *p = skip_blank(s);
    double sign = 1;

    if (*p == '-' || *p == '+')
        sign = *p++ == '-' ? -1 : 1;
    if (!take_number(&p, out) || *skip_blank(p))
        return false;
    *out *= sign;
    return isfinite(*out);
}

struct unit {
    const char *word;            /* what may follow a prefix                                   */
    double      bits;
};

/* "G", "Mbit/s", "Kibit", "GB/s" ... at *@s: bits per second of 1. @bare: the prefix may be all. */
static bool take_rate_unit(const char **s, bool bare, double *out)
{
    static const struct unit unit[] = {
        { "bits/sec", 1 }, { "bit/sec", 1 }, { "bits/s", 1 }, { "bit/s", 1 }, { "bits", 1 },
        { "bit", 1 }, { "b/s", 1 }, { "bps", 1 }, { "B/s", 8 }, { "Bps", 8 }, { "b", 1 },
    };
    static const char prefix[] = "kmgt";
    const char *p = skip_blank(*s), *at = *p ? strchr(prefix, lower(*p)) : NULL;
    double scale = 1;
    size_t i;

    if (at) {
        bool binary = p[1] == 'i' && (p[2] == 'b' || p[2] == 'B');

        scale = pow(binary ? 1024 : 1000, (double)(at - prefix + 1));
        p += binary ? 2 : 1;
    }
    for (i = 0; i < GW_ARRAY_LEN(unit); i++) {
        size_t n = strlen(unit[i].word);

        if (!strncmp(p, unit[i].word, n) && !is_alpha(p[n])) {
            *out = scale * unit[i].bits;
            *s   = p + n;
            return true;
        }
    }
    if (!at || !bare || is_alpha(*p) || is_digit(*p))
        return false;
    *out = scale;
    *s   = p;
    return true;
}

/* "100 Mbit", "10Gbps", "0": a rate and nothing else. */
static bool read_rate(const char *s, double *bps)
{
    const char *p = skip_blank(s);
    double unit = 1;

    if (!take_number(&p, bps))
        return false;
    if (!*skip_blank(p))
        return *bps == 0;
    if (!take_rate_unit(&p, false, &unit) || *skip_blank(p))
        return false;
    *bps *= unit;
    return isfinite(*bps);
}

/* "10 ms", "0.5us", "0": a time in seconds and nothing else. */
static bool read_time(const char *s, double *seconds)
{
    static const struct { const char *word; double s; } unit[] = {
        { "ps", 1e-12 }, { "ns", 1e-9 }, { "us", 1e-6 }, { "ms", 1e-3 }, { "sec", 1 },
        { "seconds", 1 }, { "s", 1 },
    };
    const char *p = skip_blank(s);
    size_t i;

    if (!take_number(&p, seconds))
        return false;
    p = skip_blank(p);
    if (!*p)
        return *seconds == 0;
    for (i = 0; i < GW_ARRAY_LEN(unit); i++) {
        size_t n = strlen(unit[i].word);

        if (!strncmp(p, unit[i].word, n) && !*skip_blank(p + n)) {
            *seconds *= unit[i].s;
            return isfinite(*seconds);
        }
    }
    return false;
}

/* A carrier's name for a rate at *@s: OC-48, STM-16, DS-3, T1, E3; bits per second of it. */
static bool take_carrier(const char *s, double *bps)
{
    static const struct { const char *word; double bps; bool times; } kind[] = {
        { "OC", 51.84e6, true },    { "STM", 155.52e6, true },  /* ITU-T G.707, SONET        */
        { "DS1", 1.544e6, false },  { "DS-1", 1.544e6, false }, { "T1", 1.544e6, false },
        { "DS3", 44.736e6, false }, { "DS-3", 44.736e6, false }, { "T3", 44.736e6, false },
        { "E1", 2.048e6, false },   { "E3", 34.368e6, false },
    };
    size_t i;

    for (i = 0; i < GW_ARRAY_LEN(kind); i++) {
        const char *p = s + strlen(kind[i].word);
        double n = 1, lanes;

        if (!begins(s, kind[i].word))
            continue;
        if (kind[i].times) {
            p += *p == '-' || *p == ' ';
            if (!take_number(&p, &n))
                continue;
        } else if (is_digit(*p) || is_alpha(*p)) {
            continue;
        }
        *bps = kind[i].bps * n;
        if (kind[i].times && lower(*p) == 'x' && (p++, take_number(&p, &lanes)))
            *bps *= lanes;
        return *bps > 0 && isfinite(*bps);
    }
    return false;
}

/* "10 Gbps", "1GE": a number with a unit as in labels; *@s moves behind the number. */
static bool take_label_number(const char **s, double *bps)
{
    double unit;
    const char *p;

    if (!take_number(s, bps))
        return false;
    p = skip_blank(*s);
    if (begins(p, "GE") || begins(p, "GbE") || begins(p, "GigE") || begins(p, "Gig")) {
        *bps *= 1e9;
        return *bps > 0;
    }
    if (!take_rate_unit(&p, true, &unit))
        return false;
    *bps *= unit;
    return *bps > 0 && isfinite(*bps);
}

/* The first rate that the free text @s names; of "1-20Gbps" 20, the number with the unit. */
static bool label_rate(const char *s, double *bps)
{
    char before = ' ';

    while (*s) {
        const char *p = s;

        if (!is_alpha(before) && !is_digit(before)) {
            if (take_carrier(s, bps) || take_label_number(&p, bps))
                return true;
        }
        s      = p > s ? p : s + 1;
        before = s[-1];
    }
    return false;
}

/* ---- notes -------------------------------------------------------------------------------- */

/* Appends; what finds no memory or no room (64 KiB) is left out. */
static void GW_PRINTF(3, 4) say(const struct loader *x, struct text *b, const char *fmt, ...)
{
    char piece[512];
    va_list ap;
    size_t n;

    va_start(ap, fmt);
    vsnprintf(piece, sizeof piece, fmt, ap);
    va_end(ap);
    n = strlen(piece);
    if (b->len + n + 1 > b->cap) {
        size_t cap = (b->cap + n) * 2;
        char *s = b->len < 65536 ? x->host->resize(b->s, cap) : NULL;

        if (!s)
            return;
        b->s   = s;
        b->cap = cap;
    }
    memcpy(b->s + b->len, piece, n + 1);
    b->len += n;
}

static void note(const struct loader *x, struct text *b)
{
    if (b->s)
        x->host->graph_note(x->t->graph, b->s);
    x->host->release(b->s);
    memset(b, 0, sizeof *b);
}

static void say_rate(const struct loader *x, struct text *b, uint64_t bps)
{
    if (!bps)
        say(x, b, "no limit");
    else
        say(x, b, bps >= 1000000000 ? "%.6ggbit" : "%.6gmbit",
            (double)bps / (bps >= 1000000000 ? 1e9 : 1e6));
}

/* Lists the links of which @which is true. */
static void say_links(const struct loader *x, struct text *b, bool rate)
{
    const struct gw_graph *g = x->t->graph;
    const char *sep = ": ";
    uint32_t i;

    for (i = 0; i < g->link_count; i++) {
        if (rate ? g->link[i].rate_is_default : g->link[i].delay_is_default) {
            say(x, b, "%s%s", sep, g->link[i].name);
            sep = ", ";
        }
    }
}

static void make_notes(const struct loader *x)
{
    const struct gw_graph *g = x->t->graph;
    struct text b = { 0 };
    igraph_integer_t parts = 1;

    if (x->defaults_rate) {
        say(x, &b, "%s: %u of %u links have no speed and take rate: ", x->path, x->defaults_rate,
            g->link_count);
        say_rate(x, &b, x->c->link.rate_bps);
        say_links(x, &b, true);
        note(x, &b);
    }
    if (x->defaults_delay) {
        say(x, &b, "%s: %u of %u links have neither delay nor length and take delay: %.6gms",
            x->path, x->defaults_delay, g->link_count, (double)x->c->link.delay_ps / 1e9);
        say_links(x, &b, false);
        note(x, &b);
    }
    if (x->repeated) {
        say(x, &b, "%s: nodes whose label stands before: %u; they are told apart by #2, #3 ...",
            x->path, x->repeated);
        note(x, &b);
    }
    if (x->loops) {
        say(x, &b, "%s: edges that join a node with itself: %u; they are left out", x->path,
            x->loops);
        note(x, &b);
    }
    if (x->directed) {
        say(x, &b, "%s: the graph is directed; pairs of opposite edges that became one link each: "
            "%u; edges without a partner, links in both directions: %u", x->path, x->paired,
            x->single);
        note(x, &b);
    }
    if (x->graphs > 1) {
        say(x, &b, "%s: the file holds %u graphs; only the first is read", x->path, x->graphs);
        note(x, &b);
    }
    if (x->jitter) {
        say(x, &b, "%s: jitter of edges is left out; `channel:` under `links:` can model it",
            x->path);
        note(x, &b);
    }
    if (igraph_connected_components(&x->ig, NULL, NULL, &parts, IGRAPH_WEAK) == IGRAPH_SUCCESS &&
        parts > 1) {
        say(x, &b, "%s: the graph is in %u parts that no link joins", x->path, (unsigned)parts);
        note(x, &b);
    }
}

/* ---- reading attributes ------------------------------------------------------------------- */

static enum gw_status find_attrs(struct loader *x)
{
    igraph_strvector_t names[3];
    igraph_vector_int_t types[3];
    bool failed;
    int i;
    igraph_integer_t j, k;

    failed = igraph_strvector_init(&names[0], 0) || igraph_strvector_init(&names[1], 0) ||
             igraph_strvector_init(&names[2], 0) || igraph_vector_int_init(&types[0], 0) ||
             igraph_vector_int_init(&types[1], 0) || igraph_vector_int_init(&types[2], 0) ||
             igraph_cattribute_list(&x->ig, &names[0], &types[0], &names[1], &types[1],
                                    &names[2], &types[2]);
    if (failed)
        return GW_NOMEM;                 /* of a few bytes: nothing can be saved any more      */
    for (i = 1; i < 3; i++) {
        const char *const *known = i == 1 ? node_attr_name : edge_attr_name;
        struct attr *attr = i == 1 ? x->node_attr : x->edge_attr;

        for (j = 0; j < igraph_strvector_size(&names[i]); j++) {
            for (k = 0; k < (i == 1 ? (int)NA_COUNT : (int)EA_COUNT); k++) {
                if (!strcmp(igraph_strvector_get(&names[i], j), known[k]))
                    attr[k] = (struct attr){ true, (igraph_attribute_type_t)VECTOR(types[i])[j] };
            }
        }
    }
    for (i = 0; i < 3; i++) {
        igraph_strvector_destroy(&names[i]);
        igraph_vector_int_destroy(&types[i]);
    }
    return GW_OK;
}

/* Text of a number or of a string, in @buf or in igraph's memory; NULL: not there or empty. */
static const char *number_text(double v, char *buf, size_t n)
{
    if (isnan(v))
        return NULL;
    snprintf(buf, n, fabs(v) < 1e15 && v == floor(v) ? "%.0f" : "%.17g", v);
    return buf;
}

static const char *node_text(const struct loader *x, enum node_attr a, uint32_t v, char *buf,
                             size_t n)
{
    const struct attr *at = &x->node_attr[a];
    const char *s;

    if (!at->there)
        return NULL;
    switch (at->type) {
    case IGRAPH_ATTRIBUTE_NUMERIC:
        return number_text(igraph_cattribute_VAN(&x->ig, node_attr_name[a], v), buf, n);
    case IGRAPH_ATTRIBUTE_STRING:
        s = igraph_cattribute_VAS(&x->ig, node_attr_name[a], v);
        return s && *skip_blank(s) ? s : NULL;
    case IGRAPH_ATTRIBUTE_BOOLEAN:
        return igraph_cattribute_VAB(&x->ig, node_attr_name[a], v) ? "1" : "0";
    default:
        return NULL;
    }
}

static const char *edge_text(const struct loader *x, enum edge_attr a, uint32_t e, char *buf,
                             size_t n)
{
    const struct attr *at = &x->edge_attr[a];
    const char *s;

    if (!at->there)
        return NULL;
    switch (at->type) {
    case IGRAPH_ATTRIBUTE_NUMERIC:
        return number_text(igraph_cattribute_EAN(&x->ig, edge_attr_name[a], e), buf, n);
    case IGRAPH_ATTRIBUTE_STRING:
        s = igraph_cattribute_EAS(&x->ig, edge_attr_name[a], e);
        return s && *skip_blank(s) ? s : NULL;
    case IGRAPH_ATTRIBUTE_BOOLEAN:
        return igraph_cattribute_EAB(&x->ig, edge_attr_name[a], e) ? "1" : "0";
    default:
        return NULL;
    }
}

/* ---- names -------------------------------------------------------------------------------- */

/* Length of the valid UTF-8 sequence at @s, 0: none. Control characters are not valid here. */
static size_t utf8_len(const unsigned char *s)
{
    size_t n = s[0] < 0x80 ? 1 : s[0] >= 0xc2 && s[0] < 0xe0 ? 2
             : s[0] >= 0xe0 && s[0] < 0xf0 ? 3 : s[0] >= 0xf0 && s[0] < 0xf5 ? 4 : 0, i;

    if (n == 1)
        return s[0] >= 0x20 && s[0] != 0x7f;
    for (i = 1; i < n; i++) {
        if ((s[i] & 0xc0) != 0x80)
            return 0;
    }
    if ((s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xed && s[1] >= 0xa0) ||
        (s[0] == 0xf0 && s[1] < 0x90) || (s[0] == 0xf4 && s[1] >= 0x90))
        return 0;
    return n;
}

static size_t utf8_put(char *out, uint32_t c)
{
    if (c < 0x80) {
        out[0] = (char)c;
        return 1;
    }
    if (c < 0x800) {
        out[0] = (char)(0xc0 | c >> 6);
        out[1] = (char)(0x80 | (c & 0x3f));
        return 2;
    }
    if (c < 0x10000) {
        out[0] = (char)(0xe0 | c >> 12);
        out[1] = (char)(0x80 | (c >> 6 & 0x3f));
        out[2] = (char)(0x80 | (c & 0x3f));
        return 3;
    }
    out[0] = (char)(0xf0 | c >> 18);
    out[1] = (char)(0x80 | (c >> 12 & 0x3f));
    out[2] = (char)(0x80 | (c >> 6 & 0x3f));
    out[3] = (char)(0x80 | (c & 0x3f));
    return 4;
}

/* "&#233;" at *@s, as GML writes what is not ASCII: the character, or 0. */
static uint32_t take_entity(const char **s)
{
    const char *p = *s + 2;
    uint32_t c = 0;

    if ((*s)[0] != '&' || (*s)[1] != '#' || !is_digit(*p))
        return 0;
    for (; is_digit(*p) && c < 0x110000; p++)
        c = c * 10 + (uint32_t)(*p - '0');
    if (*p != ';' || c < 0x20 || c == 0x7f || c > 0x10ffff || (c >= 0xd800 && c < 0xe000))
        return 0;
    *s = p + 1;
    return c;
}

/* A name in valid UTF-8 without control characters or outer blanks; what is neither becomes '?'. */
static void clean_name(const char *s, char *out, size_t n)
{
    size_t at = 0, len;
    uint32_t c;

    for (s = skip_blank(s); *s && at + 5 < n;) {
        c = take_entity(&s);
        if (c) {
            at += utf8_put(out + at, c);
            continue;
        }
        len = utf8_len((const unsigned char *)s);
        if (len)
            memcpy(out + at, s, len);
        else
            out[at] = '?';
        at += len ? len : 1;
        s  += len ? len : 1;
    }
    while (at && out[at - 1] == ' ')
        at--;
    out[at] = '\0';
}

/* ---- nodes -------------------------------------------------------------------------------- */

static double coordinate(const struct loader *x, enum node_attr a, enum node_attr b, uint32_t v,
                         double limit)
{
    char buf[40];
    const char *s = node_text(x, a, v, buf, sizeof buf);
    double deg;

    if (!s)
        s = node_text(x, b, v, buf, sizeof buf);
    return s && read_number(s, &deg) && fabs(deg) <= limit ? deg : NAN;
}

static int said_kind(const struct loader *x, uint32_t v)
{
    char buf[40];
    const char *s = node_text(x, NA_HYPEREDGE, v, buf, sizeof buf);

    if (s && strcmp(s, "0"))
        return SAID_SWITCH;
    s = node_text(x, NA_KIND, v, buf, sizeof buf);
    if (!s)
        s = node_text(x, NA_TYPE, v, buf, sizeof buf);
    if (!s)
        return SAID_NOTHING;
    if (!strcmp(s, "host") || !strcmp(s, "gpu") || !strcmp(s, "server"))
        return SAID_HOST;
    return !strcmp(s, "switch") || !strcmp(s, "router") ? SAID_SWITCH : SAID_NOTHING;
}

static enum gw_status add_node(struct loader *x, uint32_t v, struct gw_error *err)
{
    struct gw_graph *g = x->t->graph;
    char buf[40], name[512] = "";
    const char *s = node_text(x, NA_LABEL, v, buf, sizeof buf);

    if (!s)
        s = node_text(x, NA_NAME, v, buf, sizeof buf);
    if (s)
        clean_name(s, name, sizeof name);
    s = node_text(x, NA_ID, v, buf, sizeof buf);
    if (!*name && s) {
        name[0] = 'n';
        clean_name(s, name + (is_digit(*s) || *s == '-'), sizeof name - 1);
    }
    if (x->host->graph_node(g, name, GW_NODE_SWITCH, GW_NONE) != v)
        return gw_fail(err, GW_NOMEM, "%s: out of memory for node %u", x->path, v);
    g->node[v].lat_deg = coordinate(x, NA_LATITUDE, NA_LAT, v, 90);
    g->node[v].lon_deg = coordinate(x, NA_LONGITUDE, NA_LON, v, 360);
    x->repeated       += strcmp(g->node[v].name, g->node[v].label) != 0;
    x->said[v]         = (uint8_t)said_kind(x, v);
    return GW_OK;
}

static void make_host(struct gw_graph_node *n, bool transit)
{
    n->kind    = GW_NODE_HOST;
    n->transit = transit;
}

static enum gw_status listed_host(struct loader *x, struct gw_value *v, struct gw_error *err)
{
    struct gw_graph *g = x->t->graph;
    char where[512];
    uint32_t i;

    v->used = true;
    x->host->value_where(v, where, sizeof where);
    if (v->kind != GW_V_SCALAR)
        return gw_fail(err, GW_PARAM, "%s: hosts wants names of nodes", where);
    for (i = 0; i < g->node_count && strcmp(g->node[i].name, v->text); i++)
        ;
    if (i == g->node_count)
        return gw_fail(err, GW_PARAM, "%s: %s has no node \"%.60s\"; its nodes are called such as "
                       "%.60s, %.60s", where, x->path, v->text,
                       g->node_count ? g->node[0].name : "nothing",
                       g->node_count > 1 ? g->node[1].name : "nothing else");
    make_host(&g->node[i], x->said[i] != SAID_HOST);
    return GW_OK;
}

/* The rule of the essay: `hosts:`, else kinds, else all but switches. */
static enum gw_status choose_hosts(struct loader *x, struct gw_error *err)
{
    struct gw_graph *g = x->t->graph;
    const struct gw_value *hosts = x->c->hosts;
    bool all = hosts && hosts->kind == GW_V_SCALAR && !strcmp(hosts->text, "all");
    enum gw_status st = GW_OK;
    char where[512], buf[40];
    const char *s;
    struct gw_value *v;
    uint32_t i, said = 0;

    if (hosts && !all && hosts->kind != GW_V_LIST)
        return gw_fail(err, GW_PARAM, "%s: hosts wants `all` or a list of nodes",
                       x->host->value_where(hosts, where, sizeof where));
    for (i = 0; i < g->node_count; i++)
        said += x->said[i] == SAID_HOST;
    for (i = 0; i < g->node_count && (!hosts || all); i++) {
        if (x->said[i] == SAID_HOST || (x->said[i] == SAID_NOTHING && (all || !said)))
            make_host(&g->node[i], x->said[i] != SAID_HOST);
    }
    for (v = hosts && !all ? hosts->child : NULL; st == GW_OK && v; v = v->next)
        st = listed_host(x, v, err);
    for (i = 0; i < g->node_count; i++) {
        s = node_text(x, NA_TRANSIT, i, buf, sizeof buf);
        if (s)
            g->node[i].transit = strcmp(s, "0") && strcmp(s, "no") && strcmp(s, "false");
    }
    return st;
}

/* ---- links -------------------------------------------------------------------------------- */

struct edge {                    /* an edge as it will be a link                               */
    uint32_t number, a, b;
    double   rate_bps, delay_s, loss;    /* rate, delay < 0: not said                          */
    double   mtu, framing, weight;
    bool     from_hosts;                 /* the rate is that of the hosts at its ends          */
};

static enum gw_status bad_edge(const struct loader *x, const struct edge *e, enum edge_attr a,
                               const char *text, const char *right, struct gw_error *err)
{
    const struct gw_graph *g = x->t->graph;

    return gw_fail(err, GW_SYNTAX, "%s: edge %u (%.60s to %.60s): %s is \"%.60s\"; %s is right",
                   x->path, e->number + 1, g->node[e->a].name, g->node[e->b].name,
                   edge_attr_name[a], text, right);
}

/* The Topology Zoo's four ways; true if one says something. */
static bool zoo_rate(const struct loader *x, const struct edge *e, double *bps)
{
    char buf[40], units[40];
    const char *s = edge_text(x, EA_SPEED_RAW, e->number, buf, sizeof buf), *u, *p;
    double unit;

    if (s && read_number(s, bps) && *bps > 0)
        return true;
    s = edge_text(x, EA_SPEED, e->number, buf, sizeof buf);
    u = edge_text(x, EA_UNITS, e->number, units, sizeof units);
    p = u;
    if (s && u && read_number(s, bps) && *bps > 0 && take_rate_unit(&p, true, &unit)) {
        *bps *= unit;
        return true;
    }
    s = edge_text(x, EA_TYPE, e->number, buf, sizeof buf);
    if (s && label_rate(s, bps))
        return true;
    s = edge_text(x, EA_LINK_LABEL, e->number, buf, sizeof buf);
    return s && label_rate(s, bps);
}

/* What Shadow's hosts at both ends let through from @from to @to, < 0: nothing said. */
static double shadow_rate(const struct loader *x, uint32_t from, uint32_t to)
{
    char buf[40];
    const char *s = node_text(x, NA_UP, from, buf, sizeof buf);
    double up, down;

    up   = s && read_rate(s, &up) ? up : -1;
    s    = node_text(x, NA_DOWN, to, buf, sizeof buf);
    down = s && read_rate(s, &down) ? down : -1;
    if (up < 0 || down < 0)
        return up < 0 ? down : up;
    return up < down ? up : down;
}

static enum gw_status edge_rate(const struct loader *x, struct edge *e, struct gw_error *err)
{
    static const enum edge_attr own[] = { EA_RATE, EA_BANDWIDTH };
    char buf[40];
    const char *s;
    size_t i;

    e->rate_bps = -1;
    if (!zoo_rate(x, e, &e->rate_bps))
        e->rate_bps = -1;
    for (i = 0; e->rate_bps < 0 && i < GW_ARRAY_LEN(own); i++) {
        s = edge_text(x, own[i], e->number, buf, sizeof buf);
        if (s && !read_rate(s, &e->rate_bps))
            return bad_edge(x, e, own[i], s, "a number with a unit, such as \"10 Gbit\",", err);
    }
    if (e->rate_bps < 0) {
        e->rate_bps   = shadow_rate(x, e->a, e->b);
        e->from_hosts = e->rate_bps >= 0;
    }
    if (e->rate_bps > RATE_MAX_BPS || (e->rate_bps > 0 && e->rate_bps < 1)) {
        snprintf(buf, sizeof buf, "%g bit/s", e->rate_bps);
        return bad_edge(x, e, EA_RATE, buf, "1 bit/s to " GW_RATE_MAX, err);
    }
    return GW_OK;
}

/* Great-circle distance in km by the haversine form; NAN if an end has no coordinates. */
static double ends_km(const struct gw_graph_node *a, const struct gw_graph_node *b)
{
    double la = a->lat_deg * PI / 180, lb = b->lat_deg * PI / 180;
    double dx = sin((lb - la) / 2), dy = sin((b->lon_deg - a->lon_deg) * PI / 360);
    double h  = dx * dx + cos(la) * cos(lb) * dy * dy;

    return 2 * EARTH_KM * asin(h < 1 ? sqrt(h) : h >= 1 ? 1 : NAN);
}

static enum gw_status edge_delay(const struct loader *x, struct edge *e, struct gw_error *err)
{
    static const enum edge_attr time[] = { EA_DELAY, EA_LATENCY };
    static const enum edge_attr length[] = { EA_DIST, EA_LENGTH };
    const struct gw_graph_node *node = x->t->graph->node;
    double km = NAN;
    char buf[40];
    const char *s;
    size_t i;

    e->delay_s = -1;
    for (i = 0; e->delay_s < 0 && i < GW_ARRAY_LEN(time); i++) {
        s = edge_text(x, time[i], e->number, buf, sizeof buf);
        if (s && (!read_time(s, &e->delay_s) || e->delay_s > DELAY_MAX_S))
            return bad_edge(x, e, time[i], s, "a number with a unit, such as \"10 ms\", at most "
                            GW_DELAY_MAX ",", err);
    }
    for (i = 0; e->delay_s < 0 && isnan(km) && i < GW_ARRAY_LEN(length); i++) {
        s = edge_text(x, length[i], e->number, buf, sizeof buf);
        if (s && (!read_number(s, &km) || km < 0 || km > DELAY_MAX_S * 1e3 * x->c->km_per_ms))
            return bad_edge(x, e, length[i], s, "a length in km", err);
    }
    if (e->delay_s < 0 && isnan(km))
        km = ends_km(&node[e->a], &node[e->b]);
    if (e->delay_s < 0 && !isnan(km))
        e->delay_s = km / x->c->km_per_ms * 1e-3;
    return GW_OK;
}

static enum gw_status edge_loss(const struct loader *x, struct edge *e, struct gw_error *err)
{
    char buf[40];
    const char *s = edge_text(x, EA_LOSS, e->number, buf, sizeof buf), *p;

    e->loss = x->c->link.loss;
    if (s) {
        p = skip_blank(s);
        if (!take_number(&p, &e->loss) || (*skip_blank(p) != '%' && e->loss != 0) ||
            e->loss > 100)
            return bad_edge(x, e, EA_LOSS, s, "0% to 100%", err);
        e->loss /= 100;
        return GW_OK;
    }
    s = edge_text(x, EA_PACKET_LOSS, e->number, buf, sizeof buf);
    if (s && (!read_number(s, &e->loss) || e->loss < 0 || e->loss > 1))
        return bad_edge(x, e, EA_PACKET_LOSS, s, "a share from 0 to 1", err);
    return GW_OK;
}

/* A plain number in [@lo, @hi], @def if not there. */
static enum gw_status edge_number(const struct loader *x, const struct edge *e, enum edge_attr a,
                                  double lo, double hi, double def, double *out,
                                  struct gw_error *err)
{
    char buf[40], right[64];
    const char *s = edge_text(x, a, e->number, buf, sizeof buf);

    *out = def;
    if (!s || (read_number(s, out) && *out >= lo && *out <= hi))
        return GW_OK;
    snprintf(right, sizeof right, "a number from %g to %g", lo, hi);
    return bad_edge(x, e, a, s, right, err);
}

static enum gw_status read_edge(const struct loader *x, struct edge *e, struct gw_error *err)
{
    enum gw_status st = edge_rate(x, e, err);

    if (st == GW_OK)
        st = edge_delay(x, e, err);
    if (st == GW_OK)
        st = edge_loss(x, e, err);
    if (st == GW_OK)
        st = edge_number(x, e, EA_MTU, 68, 65535, (double)x->c->mtu_bytes, &e->mtu, err);
    if (st == GW_OK)
        st = edge_number(x, e, EA_FRAMING, 0, 1024, (double)x->c->framing_bytes, &e->framing,
                         err);
    if (st == GW_OK)
        st = edge_number(x, e, EA_WEIGHT, 1e-6, 1e9, 1, &e->weight, err);
    return st;
}

static void edge_dir(const struct loader *x, const struct edge *e, struct gw_graph_dir *d)
{
    d->rate_bps = e->rate_bps < 0 ? x->c->link.rate_bps : (uint64_t)llround(e->rate_bps);
    d->delay_ps = e->delay_s < 0 ? x->c->link.delay_ps : (uint64_t)llround(e->delay_s * 1e12);
    d->loss     = e->loss;
    d->channel  = x->c->link.channel;
    d->qdisc    = x->c->link.qdisc;
}

/* Directed graphs: an unpaired link from e->b to e->a takes @e as its other direction. */
static bool pair_edge(struct loader *x, const struct edge *e)
{
    struct gw_graph *g = x->t->graph;
    uint32_t *at = &x->open[e->b];

    while (*at != GW_NONE && g->link[*at].b != e->a)
        at = &x->open_next[*at];
    if (*at == GW_NONE)
        return false;
    edge_dir(x, e, &g->link[*at].dir[1]);
    g->link[*at].rate_is_default  |= e->rate_bps < 0;
    g->link[*at].delay_is_default |= e->delay_s < 0;
    *at = x->open_next[*at];
    x->paired++;
    x->single--;
    return true;
}

/* igraph forgets which end an undirected edge named first: it is the node that stands first. */
static void edge_ends(const struct loader *x, struct edge *e)
{
    e->a = (uint32_t)IGRAPH_FROM(&x->ig, e->number);
    e->b = (uint32_t)IGRAPH_TO(&x->ig, e->number);
    if (!x->directed && e->a > e->b) {
        uint32_t swap = e->a;

        e->a = e->b;
        e->b = swap;
    }
}

static enum gw_status add_edge(struct loader *x, uint32_t number, struct gw_error *err)
{
    struct gw_graph *g = x->t->graph;
    struct edge e = { .number = number };
    struct gw_link_spec spec = { 0 };
    struct gw_graph_dir d;
    char buf[40], name[512] = "";
    const char *s;
    uint32_t link;
    enum gw_status st;

    edge_ends(x, &e);
    st = read_edge(x, &e, err);
    if (st != GW_OK)
        return st;
    if (e.a == e.b) {
        x->loops++;
        return GW_OK;
    }
    x->jitter = x->jitter || edge_text(x, EA_JITTER, number, buf, sizeof buf);
    if (x->directed && pair_edge(x, &e))
        return GW_OK;
    s = edge_text(x, EA_NAME, number, buf, sizeof buf);
    if (!s)
        s = edge_text(x, EA_LABEL, number, buf, sizeof buf);
    if (s && strcmp(s, "None"))          /* Python's None, as the Zoo has it                   */
        clean_name(s, name, sizeof name);
    edge_dir(x, &e, &d);
    spec = (struct gw_link_spec){
        .name = name, .rate_bps = d.rate_bps, .delay_ps = d.delay_ps, .loss = d.loss,
        .channel = d.channel, .qdisc = d.qdisc, .mtu_bytes = (uint32_t)e.mtu,
        .framing_bytes = (uint32_t)e.framing, .framing_set = true, .weight = e.weight,
    };
    link = x->host->graph_link(g, e.a, e.b, &spec);
    if (link == GW_NONE)
        return gw_fail(err, GW_NOMEM, "%s: out of memory for edge %u", x->path, number + 1);
    g->link[link].rate_is_default  = e.rate_bps < 0;
    g->link[link].delay_is_default = e.delay_s < 0;
    if (!x->directed && e.from_hosts) {  /* both ends speak if one does                        */
        e.rate_bps = shadow_rate(x, e.b, e.a);
        edge_dir(x, &e, &g->link[link].dir[1]);
    }
    if (x->directed) {
        x->open_next[link] = x->open[e.a];
        x->open[e.a]       = link;
        x->single++;
    }
    return GW_OK;
}

static void count_defaults(struct loader *x)
{
    const struct gw_graph *g = x->t->graph;
    uint32_t i;

    for (i = 0; i < g->link_count; i++) {
        x->defaults_rate  += g->link[i].rate_is_default;
        x->defaults_delay += g->link[i].delay_is_default;
    }
}

static enum gw_status take_graph(struct loader *x, struct gw_error *err)
{
    uint32_t nodes = (uint32_t)igraph_vcount(&x->ig), edges = (uint32_t)igraph_ecount(&x->ig), i;
    enum gw_status st = find_attrs(x);

    if (st == GW_OK && !nodes)
        return gw_fail(err, GW_SYNTAX, "%s: the graph has no nodes", x->path);
    if (x->graphs && x->declared < nodes)        /* XML: igraph makes nodes out of edges' ends */
        return gw_fail(err, GW_SYNTAX, "%s: edges end at %u nodes and the file has %u <node> "
                       "elements; a <node> for each end of an edge is right", x->path, nodes,
                       x->declared);
    x->directed  = igraph_is_directed(&x->ig);
    x->said      = x->host->alloc(nodes + 1);
    x->open      = x->host->alloc(((size_t)nodes + 1) * sizeof *x->open);
    x->open_next = x->host->alloc(((size_t)edges + 1) * sizeof *x->open_next);
    if (st != GW_OK || !x->said || !x->open || !x->open_next)
        return gw_fail(err, GW_NOMEM, "%s: out of memory for %u nodes", x->path, nodes);
    for (i = 0; i < nodes; i++)
        x->open[i] = GW_NONE;
    for (i = 0; st == GW_OK && i < nodes; i++)
        st = add_node(x, i, err);
    for (i = 0; st == GW_OK && i < edges; i++)
        st = add_edge(x, i, err);
    if (st == GW_OK)
        st = choose_hosts(x, err);
    if (st != GW_OK)
        return st;
    count_defaults(x);
    make_notes(x);
    return GW_OK;
}

/* ---- the file ----------------------------------------------------------------------------- */

/* Is the word that ends before @s, but for blanks, `graph`? */
static bool opens_graph(const char *text, const char *s)
{
    while (s > text && strchr(" \t\r\n", s[-1]))
        s--;
    return s - text >= 5 && !strncmp(s - 5, "graph", 5) &&
           (s - text == 5 || strchr(" \t\r\n]", s[-6]));
}

/*
 * Refuses what igraph's GML reader would choke on: lists nested deeply, brackets that do not close
 * (a file cut off), with the line; and a second graph, which it would leave out.
 */
static enum gw_status check_gml(const char *s, const char *path, struct gw_error *err)
{
    uint32_t line = 1, depth = 0, graph_line = 0, open_line[GML_DEPTH_MAX + 1] = { 0 };
    bool quoted = false, line_start = true;
    const char *text = s;

    for (; *s; s++) {
        if (!quoted && line_start && *s == '#')
            s += strcspn(s, "\n");
        if (!*s)
            break;
        if (*s == '"') {
            quoted = !quoted;
            open_line[GML_DEPTH_MAX] = line;
        } else if (!quoted && *s == '[') {
            if (depth == GML_DEPTH_MAX)
                return gw_fail(err, GW_SYNTAX, "%s:%u: lists are nested more than %d deep; that "
                               "is no graph", path, line, GML_DEPTH_MAX);
            if (!depth && opens_graph(text, s)) {
                if (graph_line)
                    return gw_fail(err, GW_SYNTAX, "%s:%u: a second graph begins here, the first "
                                   "in line %u; one graph in a file is right", path, line,
                                   graph_line);
                graph_line = line;
            }
            open_line[depth++] = line;
        } else if (!quoted && *s == ']') {
            if (!depth)
                return gw_fail(err, GW_SYNTAX, "%s:%u: a ] without its [", path, line);
            depth--;
        }
        line_start = *s == '\n';
        line += *s == '\n';
    }
    if (quoted)
        return gw_fail(err, GW_SYNTAX, "%s:%u: the file ends inside the string that begins here",
                       path, open_line[GML_DEPTH_MAX]);
    if (depth)
        return gw_fail(err, GW_SYNTAX, "%s:%u: the file ends inside the list that begins here",
                       path, open_line[depth - 1]);
    return GW_OK;
}

/* Behind the comment, CDATA section or processing instruction at @s; NULL: it is none. */
static const char *skip_markup(const char *s)
{
    static const char *const pair[][2] = {
        { "<!--", "-->" }, { "<![CDATA[", "]]>" }, { "<?", "?>" },
    };

    for (size_t i = 0; i < GW_ARRAY_LEN(pair); i++) {
        const char *end;

        if (strncmp(s, pair[i][0], strlen(pair[i][0])))
            continue;
        end = strstr(s, pair[i][1]);
        return end ? end + strlen(pair[i][1]) : s + strlen(s);
    }
    return NULL;
}

/* The name of the element that @s opens, without its prefix, is @name. */
static bool is_element(const char *s, const char *name)
{
    size_t n = strcspn(++s, " \t\r\n/>:");

    if (s[n] == ':') {
        s += n + 1;
        n = strcspn(s, " \t\r\n/>");
    }
    return n == strlen(name) && !strncmp(s, name, n);
}

/* Counts what igraph would silently add or leave out; refuses hyperedges. */
static enum gw_status count_graphml(struct loader *x, const char *text, struct gw_error *err)
{
    uint32_t line = 1;
    const char *s, *behind, *at = text;

    for (s = strchr(text, '<'); s; s = strchr(behind ? behind : s + 1, '<')) {
        behind = skip_markup(s);
        x->declared += !behind && is_element(s, "node");
        x->graphs   += !behind && is_element(s, "graph");
        if (behind || !is_element(s, "hyperedge"))
            continue;
        for (; at < s; at++)
            line += *at == '\n';
        return gw_fail(err, GW_SYNTAX, "%s:%u: a <hyperedge>, which cannot be read; a node of kind "
                       "switch with an edge to each of its nodes is right", x->path, line);
    }
    return GW_OK;
}

/* attr.type="integer" becomes "int", in place; entity declarations are refused. */
static enum gw_status fix_graphml(char *s, const char *path, struct gw_error *err)
{
    static const char key[] = "attr.type=";
    char *p = s;

    if (!strstr(s, "graphml"))
        return gw_fail(err, GW_SYNTAX, "%s: XML without a <graphml> element; GML or GraphML is "
                       "right", path);
    if (strstr(s, "<!ENTITY"))
        return gw_fail(err, GW_SYNTAX, "%s: the file declares XML entities, which are not "
                       "expanded; the text in their place is right", path);
    while ((p = strstr(p, key))) {
        char quote = p[sizeof key - 1];

        p += sizeof key - 1;
        if ((quote == '"' || quote == '\'') && begins(p + 1, "integer") && p[8] == quote) {
            memcpy(p + 1, "int", 3);
            p[4] = quote;
            memset(p + 5, ' ', 4);
        }
    }
    return GW_OK;
}

/*
 * igraph's handler has no argument, so the place for its sentence is the one variable of this
 * file; it points somewhere only during the call of igraph, per thread.
 */
static _Thread_local char *igraph_said;
#define SAID_BYTES 400u

static void hear_igraph(const char *reason, const char *file, int line, igraph_error_t code)
{
    (void)file;
    (void)line;
    if (igraph_said && !igraph_said[0])
        snprintf(igraph_said, SAID_BYTES, "%s", reason && *reason ? reason
                                                                  : igraph_strerror(code));
    IGRAPH_FINALLY_FREE();
}

/* The sentence of igraph in one line, without an end stop. */
static void tidy(char *s)
{
    size_t n;

    for (n = 0; s[n]; n++) {
        if ((unsigned char)s[n] < 0x20)
            s[n] = ' ';
    }
    while (n && (s[n - 1] == ' ' || s[n - 1] == '.'))
        s[--n] = '\0';
}

static enum gw_status read_igraph(struct loader *x, char *text, size_t len, bool xml,
                                  struct gw_error *err)
{
    char said[SAID_BYTES] = "";
    FILE *f = fmemopen(text, len, "r");
    igraph_error_t e;

    if (!f)
        return gw_fail(err, GW_NOMEM, "%s: out of memory", x->path);
    igraph_said = said;
    e = xml ? igraph_read_graph_graphml(&x->ig, f, 0) : igraph_read_graph_gml(&x->ig, f);
    igraph_said = NULL;
    fclose(f);
    if (e == IGRAPH_SUCCESS)
        return GW_OK;
    tidy(said);
    if (e == IGRAPH_ENOMEM)
        return gw_fail(err, GW_NOMEM, "%s: out of memory", x->path);
    return gw_fail(err, GW_SYNTAX, "%s: no %s that igraph can read: %s", x->path,
                   xml ? "GraphML" : "GML", *said ? said : igraph_strerror(e));
}

/* From text to graph. @text is changed and ends in a NUL at @len. */
static enum gw_status load_text(struct gw_topology *t, char *text, size_t len, const char *path,
                                struct gw_error *err)
{
    struct loader x = { .t = t, .host = t->host, .c = t->conf, .path = path };
    const igraph_attribute_table_t *table;
    igraph_warning_handler_t *warn;
    igraph_error_handler_t *error;
    enum gw_status st;
    bool xml;

    if (strlen(text) != len)
        return gw_fail(err, GW_SYNTAX, "%s: a zero byte at offset %zu; this is no text, so neither "
                       "GML nor GraphML", path, strlen(text));
    if (!strncmp(text, "\xef\xbb\xbf", 3))
        text += 3;
    if (!*skip_blank(text))
        return gw_fail(err, GW_SYNTAX, "%s: the file is empty; GML or GraphML is right", path);
    xml = *skip_blank(text) == '<';
    if (xml)                             /* nothing may stand before an XML declaration        */
        text += skip_blank(text) - text;
    st = xml ? fix_graphml(text, path, err) : check_gml(text, path, err);
    if (st == GW_OK && xml)
        st = count_graphml(&x, text, err);
    if (st != GW_OK)
        return st;
    table = igraph_set_attribute_table(&igraph_cattribute_table);
    warn  = igraph_set_warning_handler(igraph_warning_handler_ignore);
    error = igraph_set_error_handler(hear_igraph);
    st = read_igraph(&x, text, strlen(text), xml, err);
    if (st == GW_OK) {
        st = take_graph(&x, err);
        igraph_destroy(&x.ig);
    }
    igraph_set_error_handler(error);
    igraph_set_warning_handler(warn);
    igraph_set_attribute_table(table);
    x.host->release(x.said);
    x.host->release(x.open);
    x.host->release(x.open_next);
    return st;
}

/* The whole file with a NUL behind it. Caller releases. */
static char *read_all(const struct gw_host *h, FILE *f, const char *path, size_t *len,
                      struct gw_error *err)
{
    size_t cap = 65536, n = 0, got;
    char *s = h->alloc(cap), *bigger;

    while (s && (got = fread(s + n, 1, cap - n - 1, f)) > 0) {
        n += got;
        if (n > FILE_BYTES_MAX) {
            gw_fail(err, GW_RANGE, "%s: more than %u MiB; a smaller graph is right", path,
                    FILE_BYTES_MAX >> 20);
            h->release(s);
            return NULL;
        }
        if (cap - n > 1)
            continue;
        bigger = h->resize(s, cap * 2);
        if (!bigger)
            h->release(s);
        s    = bigger;
        cap *= 2;
    }
    if (!s) {
        gw_fail(err, GW_NOMEM, "%s: out of memory", path);
        return NULL;
    }
    if (ferror(f)) {
        gw_fail(err, GW_IO, "%s: could not be read", path);
        h->release(s);
        return NULL;
    }
    s[n] = '\0';
    *len = n;
    return s;
}

static enum gw_status file_build(struct gw_topology *t, struct gw_error *err)
{
    const struct file_conf *c = t->conf;
    enum gw_status st = GW_IO;
    char path[1024] = "";
    size_t len = 0;
    char *text;
    FILE *f;

    f = gw_open_option(t->host, t->value, "file", t->study_dir, "graphs", c->file, path,
                       sizeof path, err);
    if (!f)
        return err && err->code != GW_OK ? err->code : GW_IO;
    text = read_all(t->host, f, path, &len, err);
    fclose(f);
    if (!text)
        return err && err->code != GW_OK ? err->code : st;
    st = load_text(t, text, len, path, err);
    t->host->release(text);
    return st;
}

static const struct gw_topology_ops file_ops = {
    .conf_bytes = sizeof(struct file_conf),
    .build      = file_build,
};

static const struct gw_param file_params[] = {
    { "file", GW_P_STRING, offsetof(struct file_conf, file), NULL, NULL, NULL,
      "GML or GraphML file, beside the study or one of the installed graphs." },
    { "hosts", GW_P_VALUE, offsetof(struct file_conf, hosts), "", NULL, NULL,
      "Nodes that are hosts: a list, or all; else the file's kinds, else every node." },
    GW_LINK_PARAMS("", file_conf, link, "10gbit", "1ms"),
    { "km_per_ms", GW_P_F64, offsetof(struct file_conf, km_per_ms), "200", "1", "300",
      "Kilometres that light travels in a millisecond, from lengths to delays." },
    GW_FRAME_PARAMS(file_conf, "24"),
};

GW_PLUGIN(gw_topology_file) = {
    GW_PLUGIN_HEAD(GW_KIND_TOPOLOGY, file_ops),
    .name    = "file",
    .summary = "A graph from a GML or GraphML file; rate and delay are for links of which the "
               "file says nothing.",
    .params  = file_params, .param_count = GW_ARRAY_LEN(file_params),
    .source  = "GML (Himsolt 1996), GraphML 1.0; igraph 0.10",
};
