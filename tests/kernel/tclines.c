/*
 * tclines - tc lines for two judges, a real kernel and gradwire, and the comparison of answers
 *
 *   tclines generate LANGUAGE.json [GROUP ...]          prints a script
 *   tclines compare SCRIPT KERNEL GRADWIRE [partial]    partial: the kernel did not get to the end
 *
 * The script has first the recorded cases of LANGUAGE.json, then LINES lines for each discipline
 * from a generator without dice of its own: words and values from tables, good and bad ones, by a
 * fixed sequence of numbers. Every third line adds to an empty device, the next changes, the next
 * replaces, so that what a change keeps and resets is seen, too. Behind each line stands a `show`.
 * A line `@fresh DEV` asks for a new device without a speed, of 1000 packets' queue length. Groups
 * are disciplines, `recorded`, or `places` (what verbs do where something stands already); none named
 * means all.
 *
 * KERNEL holds, for each line of the script that is not a `@fresh`, what tc printed and then,
 * behind a byte 036, its exit code. GRADWIRE is the output of `gradwire tc --script` of the same
 * lines. Exit codes must be equal; JSON must be equal field by field (numbers within 1e-9 + 1e-6
 * relative, refcnt aside) and text word by word, automatic handles being numbered in the order of
 * their appearance. An error needs a sentence of gradwire.
 *
 * Left out: recorded cases about a device that does not exist (a scratch pad makes it) and of
 * `-j class show` (6.1 prints text, gradwire JSON); disciplines that Debian's user-mode kernel has
 * not (ets, fq_pie, and gradwire's own).
 */
#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#define LINES       100              /* of each discipline                                        */
#define LINE_BYTES   1024
#define SHOWN_MAX   8                /* differences of a group that are printed                   */
#define HANDLES_MAX 256

static void die(const char *what, const char *why)
{
    fprintf(stderr, "tclines: %s: %s\n", what, why);
    exit(99);
}

/* ---- values and words ----------------------------------------------------------------------- */

static const char *const times[] = {
    "10ms", "5us", "100", "1s", "250usec", "0.5ms", "1.5msecs", "20MS", "64us", "3ms", "750us",
    "1e-3s", "2secs", "3x", "7ns",
};
static const char *const ticks[] = { "10ms", "40ms", "100ms", "1s" };    /* the guest's are 10 ms */
static const char *const rates[] = {
    "1mbit", "8mbit", "100kbit", "10mbps", "1gbit", "500kibit", "2tbit", "125kbps", "1500000",
    "1.5mbit", "3Mbit", "64kbit", "10gbit", "1mibps", "1m", "5%", "fast",
};
static const char *const sizes[] = {
    "10k", "1500", "64kb", "1mb", "3kbit", "100", "4096b", "2000", "0.5k", "15kb", "30000", "1x",
};
static const char *const percents[] = {
    "1%", "10%", "0.1%", "50%", "100%", "0%", "25", "0.01%", "33.3%", "5%", "101%", "abc",
};
static const char *const counts[] = {
    "1", "5", "10", "100", "1000", "64", "127", "3", "0x10", "-1", "abc",
};
static const char *const small[] = { "1", "2", "3", "4", "5", "7", "9", "zz" };
static const char *const powers[] = { "16", "64", "256", "1024", "4096", "128" };
static const char *const fractions[] = { "0.1", "0.02", "0.5", "1.0", "0.05", "0.3" };
static const char *const spreads[] = {
    "normal", "pareto", "paretonormal", "experimental", "uniform",
};
static const char *const packets[] = { "1000", "1500", "500", "200" };
static const char *const bursts[] = { "20", "34", "55", "100" };
static const char *const thirty[] = { "30000", "60000", "90000" };
static const char *const tens[] = { "10000", "20000", "15000" };
static const char *const hundreds[] = { "200000", "400000", "1000000" };
static const char *const prios[] = {
    "0 1 2 2 1 2 0 0 1 1 1 1 1 1 1 1", "1 2 2 2 1 2 0 0 1 1 1 1 1 1 1 1",
};
static const char *const slots[] = {
    "5ms 15ms", "10ms", "1ms 2ms packets 3", "2ms bytes 3000", "500us 800us packets 5 bytes 8000",
    "distribution normal 10ms 2ms", "5ms 1ms",
};
static const char *const jitters[] = {
    "10ms", "10ms 2ms", "50ms 10ms 25%", "100ms 20ms distribution normal", "0ms 5ms", "20",
    "10ms 3ms 50% distribution pareto", "1s 100ms", "10ms bogus",
};
static const char *const losses[] = {
    "1%", "10% 25%", "random 5%", "random 2% 50%", "gemodel 1%", "gemodel 1% 10%", "0.5%",
    "gemodel 1% 10% 70% 0.1%", "state 5%", "state 3% 25% 10% 40% 1%", "state 1% 50%", "bogus 1%",
};
static const char *const shares[] = { "10%", "5% 25%", "1%", "50% 50%", "100%" };
static const char *const net_rates[] = {
    "1mbit", "10mbit 20", "1mbit 0 48", "5mbit 14 53 5", "100kbit -4", "1gbit 20 64 8",
};

enum chance { OFTEN, SELDOM, ALWAYS };

struct word {
    const char *text;
    const char *const *value;        /* NULL: the word stands alone                               */
    size_t      values;
    enum chance chance;
};

#define W(text, of, chance)  { text, of, sizeof of / sizeof *of, chance }
#define ALONE(text)          { text, NULL, 0, SELDOM }

static const struct word pfifo_words[] = { W("limit", counts, OFTEN), { 0 } };
static const struct word bfifo_words[] = { W("limit", sizes, OFTEN), { 0 } };
static const struct word no_words[] = { { 0 } };
static const struct word prio_words[] = {
    W("bands", small, OFTEN), W("priomap", prios, SELDOM), { 0 },
};
static const struct word tbf_words[] = {
    W("rate", rates, ALWAYS), W("burst", sizes, ALWAYS), W("latency", times, OFTEN),
    W("limit", sizes, SELDOM), W("peakrate", rates, SELDOM), W("mtu", sizes, SELDOM),
    W("mpu", sizes, SELDOM), W("overhead", counts, SELDOM), { 0 },
};
static const struct word htb_words[] = {
    W("default", counts, OFTEN), W("r2q", small, SELDOM), W("direct_qlen", counts, SELDOM), { 0 },
};
static const struct word htb_class_words[] = {
    W("rate", rates, ALWAYS), W("ceil", rates, OFTEN), W("burst", sizes, SELDOM),
    W("cburst", sizes, SELDOM), W("prio", small, SELDOM), W("quantum", sizes, SELDOM),
    W("mtu", packets, SELDOM), W("overhead", small, SELDOM), W("mpu", packets, SELDOM), { 0 },
};
static const struct word drr_class_words[] = { W("quantum", sizes, OFTEN), { 0 } };
static const struct word sfq_words[] = {
    W("limit", counts, OFTEN), W("perturb", small, OFTEN), W("quantum", packets, SELDOM),
    W("flows", powers, SELDOM), W("divisor", powers, SELDOM), W("depth", small, SELDOM),
    ALONE("headdrop"), { 0 },
};
static const struct word fq_words[] = {
    W("limit", counts, OFTEN), W("flow_limit", counts, SELDOM), W("buckets", powers, SELDOM),
    W("quantum", sizes, SELDOM), W("initial_quantum", sizes, SELDOM), W("maxrate", rates, SELDOM),
    W("low_rate_threshold", rates, SELDOM), W("refill_delay", ticks, SELDOM),
    W("orphan_mask", powers, SELDOM), W("timer_slack", counts, SELDOM), W("horizon", times, SELDOM),
    ALONE("pacing"), ALONE("nopacing"), ALONE("horizon_drop"), ALONE("horizon_cap"),
    W("ce_threshold", times, SELDOM), { 0 },
};
static const struct word red_words[] = {
    W("limit", hundreds, ALWAYS), W("min", tens, OFTEN), W("max", thirty, OFTEN),
    W("avpkt", packets, ALWAYS), W("burst", bursts, OFTEN), W("bandwidth", rates, SELDOM),
    W("probability", fractions, OFTEN), ALONE("ecn"), ALONE("adaptive"), ALONE("harddrop"),
    ALONE("nodrop"), { 0 },
};
static const struct word gred_words[] = {
    W("setup vqs", small, ALWAYS), W("default", small, ALWAYS), ALONE("grio"),
    W("limit", sizes, SELDOM), { 0 },
};
static const struct word choke_words[] = {
    W("limit", powers, ALWAYS), W("min", small, SELDOM), W("max", bursts, SELDOM),
    W("avpkt", packets, SELDOM), W("burst", bursts, SELDOM), W("bandwidth", rates, SELDOM),
    W("probability", fractions, OFTEN), ALONE("ecn"), { 0 },
};
static const struct word codel_words[] = {
    W("limit", counts, OFTEN), W("target", times, OFTEN), W("interval", times, SELDOM),
    ALONE("ecn"), ALONE("noecn"), W("ce_threshold", times, SELDOM), { 0 },
};
static const struct word fq_codel_words[] = {
    W("limit", counts, OFTEN), W("flows", powers, SELDOM), W("target", times, OFTEN),
    W("interval", times, SELDOM), W("quantum", sizes, SELDOM), ALONE("ecn"), ALONE("noecn"),
    W("ce_threshold", times, SELDOM), W("memory_limit", sizes, SELDOM),
    W("drop_batch", powers, SELDOM), { 0 },
};
static const struct word pie_words[] = {
    W("limit", counts, OFTEN), W("target", times, OFTEN), W("tupdate", times, SELDOM),
    W("alpha", small, SELDOM), W("beta", bursts, SELDOM), ALONE("ecn"), ALONE("noecn"),
    ALONE("bytemode"), ALONE("nobytemode"), ALONE("dq_rate_estimator"),
    ALONE("no_dq_rate_estimator"), { 0 },
};
static const struct word cake_words[] = {
    W("bandwidth", rates, OFTEN), ALONE("besteffort"), ALONE("diffserv4"), ALONE("diffserv8"),
    ALONE("precedence"), ALONE("flowblind"), ALONE("srchost"), ALONE("hosts"), ALONE("flows"),
    ALONE("dual-dsthost"), ALONE("triple-isolate"), ALONE("nat"), ALONE("nonat"), ALONE("wash"),
    ALONE("nowash"), ALONE("ingress"), ALONE("egress"), ALONE("ack-filter"),
    ALONE("ack-filter-aggressive"), ALONE("no-ack-filter"), ALONE("no-split-gso"),
    ALONE("split-gso"), W("rtt", times, SELDOM), ALONE("datacentre"), ALONE("lan"), ALONE("metro"),
    ALONE("satellite"), ALONE("internet"), ALONE("raw"), ALONE("conservative"), ALONE("ethernet"),
    ALONE("ether-vlan"), ALONE("docsis"), ALONE("pppoe-vcmux"), ALONE("pppoa-llc"),
    W("overhead", small, SELDOM), W("mpu", powers, SELDOM), ALONE("atm"), ALONE("ptm"),
    ALONE("noatm"), W("memlimit", sizes, SELDOM), W("fwmark", powers, SELDOM),
    ALONE("autorate-ingress"), ALONE("unlimited"), { 0 },
};
static const struct word netem_words[] = {
    W("limit", sizes, SELDOM), W("delay", jitters, OFTEN), W("loss", losses, OFTEN), ALONE("ecn"),
    W("duplicate", shares, SELDOM), W("corrupt", shares, SELDOM), W("reorder", shares, SELDOM),
    W("gap", small, SELDOM), W("rate", net_rates, SELDOM), W("slot", slots, SELDOM),
    W("distribution", spreads, SELDOM), W("drop", percents, SELDOM), { 0 },
};
static const struct word skbprio_words[] = { W("limit", counts, OFTEN), { 0 } };

struct discipline {
    const char        *kind;
    const struct word *word, *class_word;        /* class_word: its classes' words, or NULL       */
};

static const struct discipline disciplines[] = {
    { "pfifo", pfifo_words, NULL },         { "bfifo", bfifo_words, NULL },
    { "pfifo_head_drop", pfifo_words, NULL }, { "pfifo_fast", no_words, NULL },
    { "prio", prio_words, NULL },           { "tbf", tbf_words, NULL },
    { "htb", htb_words, htb_class_words },  { "drr", no_words, drr_class_words },
    { "sfq", sfq_words, NULL },             { "fq", fq_words, NULL },
    { "red", red_words, NULL },             { "gred", gred_words, NULL },
    { "choke", choke_words, NULL },         { "codel", codel_words, NULL },
    { "fq_codel", fq_codel_words, NULL },   { "pie", pie_words, NULL },
    { "cake", cake_words, NULL },           { "netem", netem_words, NULL },
    { "skbprio", skbprio_words, NULL },
};

/* ---- the generator -------------------------------------------------------------------------- */

struct number {
    uint64_t state;
};

static uint32_t below(struct number *n, uint32_t limit)
{
    n->state = n->state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)((n->state >> 33) % limit);
}

/* The last of a table's values may be bad ones: they are taken less often. */
static const char *value_of(struct number *n, const struct word *w)
{
    uint32_t i = below(n, (uint32_t)w->values);

    if (i * 10 > w->values * 7)
        i = below(n, (uint32_t)w->values);
    return w->value[i];
}

static void append(char *line, const char *form, ...)
{
    size_t used = strlen(line);
    va_list a;

    va_start(a, form);
    vsnprintf(line + used, LINE_BYTES - used, form, a);
    va_end(a);
}

static void append_words(struct number *n, char *line, const struct word *w)
{
    size_t many = 0;

    while (w[many].text)
        many++;
    for (size_t i = 0; i < many; i++) {
        uint32_t of100 = w[i].chance == ALWAYS ? 94 : w[i].chance == OFTEN ? 55 :
                         many > 20 ? 6 : 18;

        if (below(n, 100) >= of100)
            continue;
        append(line, " %s", w[i].text);
        if (w[i].value)
            append(line, " %s", value_of(n, &w[i]));
    }
    if (!below(n, 40))
        append(line, " bogus");
    if (many && !below(n, 60))
        append(line, " %s", w[below(n, (uint32_t)many)].text);     /* perhaps without its value */
}

static void print_show(const char *dev, bool classes)
{
    printf("-s -j qdisc show dev %s\n", dev);
    if (classes)
        printf("class show dev %s\n", dev);
}

static void generate_class(struct number *n, const struct discipline *d, const char *dev)
{
    static const char *const verbs[] = { "add", "add", "add", "change", "replace", "del" };
    const char *verb = verbs[below(n, 6)];
    char line[LINE_BYTES] = "";
    uint32_t id = 1 + below(n, 6);

    append(line, "class %s dev %s parent 1:", verb, dev);
    if (id > 3 && !strcmp(d->kind, "htb"))
        append(line, "%u", id - 3);
    append(line, " classid 1:%x %s", id, d->kind);
    if (strcmp(verb, "del"))
        append_words(n, line, d->class_word);
    puts(line);
    print_show(dev, true);
}

static void generate_discipline(const struct discipline *d, uint32_t number)
{
    static const char *const verbs[] = { "add", "change", "replace" };
    struct number n = { .state = number * UINT64_C(0x9e3779b97f4a7c15) + 1 };
    char dev[32];

    snprintf(dev, sizeof dev, "g%u", number);
    printf("@fresh %s\n", dev);
    for (uint32_t i = 0; i < LINES; i++) {
        char line[LINE_BYTES] = "";

        if (d->class_word && i % 10 >= 4) {
            if (i % 10 == 4)
                printf("qdisc del dev %s root\nqdisc add dev %s root handle 1: %s\n", dev, dev,
                       d->kind);
            generate_class(&n, d, dev);
            continue;
        }
        if (i % 3 == 0 || d->class_word)
            printf("qdisc del dev %s root\n", dev);
        append(line, "qdisc %s dev %s root", d->class_word ? "add" : verbs[i % 3], dev);
        if (i % 2)
            append(line, " handle 1:");
        if (!below(&n, 25))
            append(line, " stab overhead 24 mpu 84");
        append(line, " %s", d->kind);
        append_words(&n, line, d->word);
        puts(line);
        print_show(dev, false);
        if (i % 3 == 2)
            printf("-s -d qdisc show dev %s\n", dev);
    }
}

/* A recorded line with @dev for the word DEV. */
static void print_line(const char *line, const char *dev)
{
    const char *at;

    while ((at = strstr(line, "DEV"))) {
        printf("%.*s%s", (int)(at - line), line, dev);
        line = at + 3;
    }
    puts(line);
}

static void generate_recorded(const char *path)
{
    json_error_t why;
    json_t *all = json_load_file(path, 0, &why), *one, *line;
    size_t i, k;

    if (!all)
        die(path, why.text);
    json_array_foreach(json_object_get(all, "cases"), i, one) {
        json_t *setup = json_object_get(one, "setup");
        const char *cmd = json_string_value(json_object_get(one, "cmd"));
        char dev[32];

        if (strstr(cmd, "nosuch") || strstr(cmd, "-j class"))
            continue;
        snprintf(dev, sizeof dev, "r%zu", i);
        printf("@fresh %s\n", dev);
        json_array_foreach(setup, k, line)
            print_line(json_string_value(line), dev);
        print_line(cmd, dev);
        print_show(dev, json_object_get(one, "class_text") != NULL);
        printf("qdisc show dev %s\n", dev);
    }
    json_decref(all);
}

/*
 * Where a pfifo stands, each verb with the same and another kind, with the handle that stands there,
 * another one or none, at the root and below a class; then numbers of classes and of ingress.
 */
static void generate_places(void)
{
    static const char *const verbs[] = { "add", "change", "replace", "link" };
    static const char *const handles[] = { "", " handle 5:", " handle 6:" };
    static const char *const kinds[] = { "pfifo limit 7", "netem delay 1ms" };
    static const char *const rest[] = {
        "qdisc replace dev p0 root handle 1: drr", "class add dev p0 parent 1: classid 1:0 drr",
        "class add dev p0 parent 1: drr quantum 500", "class replace dev p0 parent 1: drr",
        "class change dev p0 parent 1: drr quantum 700", "class show dev p0",
        "class add dev p0 parent 1: classid 1:0 drr", "class del dev p0 classid 1:0",
        "class show dev p0", "qdisc del dev p0 root", "qdisc add dev p0 root handle ffff: pfifo",
        "qdisc add dev p0 ingress", "qdisc replace dev p0 clsact", "qdisc del dev p0 root",
        "qdisc add dev p0 ingress", "qdisc add dev p0 root handle ffff: pfifo",
        "qdisc replace dev p0 root handle ffff: pfifo", "qdisc show dev p0",
    };

    puts("@fresh p0");
    for (uint32_t i = 0; i < 2 * 4 * 2 * 2 * 3; i++) {
        const char *where = i < 48 ? "root" : "parent 1:2";

        if (i == 48)
            puts("qdisc replace dev p0 root handle 1: prio");
        printf("qdisc del dev p0 %s\nqdisc add dev p0 %s%s pfifo\n", where, where,
               handles[i / 6 % 2]);
        printf("qdisc %s dev p0 %s%s %s\n", verbs[i / 12 % 4], where, handles[i % 3],
               kinds[i / 3 % 2]);
        puts("qdisc show dev p0");
    }
    for (size_t i = 0; i < sizeof rest / sizeof *rest; i++)
        puts(rest[i]);
}

/* ---- comparison ----------------------------------------------------------------------------- */

struct reply {
    int   rc;
    char *out;                       /* owner: here                                               */
    bool  said;                      /* there is a sentence                                       */
};

static char *whole_file(const char *path)
{
    FILE *f = fopen(path, "r");
    size_t n = 0, got;
    char *text = NULL;

    if (!f)
        die(path, strerror(errno));
    do {
        text = realloc(text, n + 65537);
        if (!text)
            die(path, "out of memory");
        got = fread(text + n, 1, 65536, f);
        n += got;
    } while (got);
    fclose(f);
    text[n] = 0;
    return text;
}

/* Next answer of the kernel: text up to the byte 036, the exit code behind it. */
static bool kernel_reply(char **at, struct reply *r)
{
    char *end = strchr(*at, 036), *rest;

    if (!end)
        return false;
    *end = 0;
    r->out = strdup(*at);
    r->rc = (int)strtol(end + 1, &rest, 10);
    r->said = true;
    *at = *rest ? rest + 1 : rest;
    return r->out != NULL;
}

static bool gradwire_reply(char **at, struct reply *r)
{
    char *end = strchr(*at, '\n');
    json_t *o = NULL;
    const char *out, *said;

    if (end)
        *end = 0;
    if (**at)
        o = json_loads(*at, 0, NULL);
    if (!o)
        return false;
    out = json_string_value(json_object_get(o, "stdout"));
    said = json_string_value(json_object_get(o, "stderr"));
    r->rc = (int)json_integer_value(json_object_get(o, "rc"));
    r->out = strdup(out ? out : "");
    r->said = said && *said;
    json_decref(o);
    *at = end ? end + 1 : *at + strlen(*at);
    return r->out != NULL;
}

/* Automatic handles, 8000: and up, become aN: in order of appearance; refcnt goes. To be freed. */
static char *plain(const char *s)
{
    static const char hex[] = "0123456789abcdef";
    char seen[HANDLES_MAX][5] = { "" }, *to = malloc(2 * strlen(s) + 1), *at = to;
    size_t known = 0, k;

    if (!to)
        die("memory", "none left");
    while (*s) {
        if (!strncmp(s, "refcnt ", 7)) {
            s += 7 + strspn(s + 7, "0123456789");
            s += *s == ' ';
            continue;
        }
        if (*s != '8' || strspn(s, hex) != 4 || s[4] != ':' ||
            (at > to && isxdigit((unsigned char)at[-1]))) {
            *at++ = *s++;
            continue;
        }
        for (k = 0; k < known && strncmp(seen[k], s, 4); k++)
            ;
        if (k == known && known < HANDLES_MAX)
            memcpy(seen[known++], s, 4);
        at += sprintf(at, "a%zu", k);
        s += 4;
    }
    *at = 0;
    return to;
}

/* Whether equal; else @path says where they part. */
static bool same_json(json_t *a, json_t *b, char *path, size_t n)
{
    size_t used = strlen(path), i;
    const char *key;
    json_t *v;

    if (json_is_number(a) && json_is_number(b)) {
        double x = json_number_value(a), y = json_number_value(b);

        return fabs(x - y) <= 1e-9 + 1e-6 * fabs(y);
    }
    if (json_typeof(a) != json_typeof(b))
        return false;
    if (json_is_array(a)) {
        for (i = 0; i < json_array_size(a) || i < json_array_size(b); i++) {
            snprintf(path + used, n - used, "[%zu]", i);
            if (i >= json_array_size(a) || i >= json_array_size(b) ||
                !same_json(json_array_get(a, i), json_array_get(b, i), path, n))
                return false;
        }
        path[used] = 0;
        return true;
    }
    if (!json_is_object(a))
        return json_equal(a, b);
    json_object_foreach(b, key, v) {
        snprintf(path + used, n - used, ".%s (only the second has it)", key);
        if (strcmp(key, "refcnt") && !json_object_get(a, key))
            return false;
    }
    json_object_foreach(a, key, v) {
        snprintf(path + used, n - used, ".%s", key);
        if (strcmp(key, "refcnt") &&
            (!json_object_get(b, key) || !same_json(v, json_object_get(b, key), path, n)))
            return false;
    }
    path[used] = 0;
    return true;
}

/* Text word by word, so that blanks at the end of a line do not count. */
static bool same_words(const char *a, const char *b)
{
    for (;;) {
        size_t n;

        a += strspn(a, " \t\n");
        b += strspn(b, " \t\n");
        n = strcspn(a, " \t\n");
        if (n != strcspn(b, " \t\n") || strncmp(a, b, n))
            return false;
        if (!n)
            return true;
        a += n;
        b += n;
    }
}

static bool same_output(const struct reply *k, const struct reply *g, char *path, size_t n)
{
    char *a = plain(k->out), *b = plain(g->out);
    json_t *x = json_loads(a, 0, NULL), *y = json_loads(b, 0, NULL);
    bool same;

    *path = 0;
    if (x && y) {
        same = same_json(x, y, path, n);
    } else {
        same = same_words(a, b);
        snprintf(path, n, "the text");
    }
    json_decref(x);
    json_decref(y);
    free(a);
    free(b);
    return same;
}

struct tally {
    char     group[32];              /* a discipline, or the recorded cases                       */
    unsigned lines, codes, outputs, shown;
};

static void compare_line(struct tally *t, const char *line, const char *before,
                         const struct reply *k, const struct reply *g)
{
    char path[256];
    bool code = k->rc == g->rc, output;

    output = !code || same_output(k, g, path, sizeof path);
    t->lines++;
    t->codes += !code;
    t->outputs += !output;
    if (g->rc && !g->said)
        t->codes++;
    if ((code && output) || t->shown++ >= SHOWN_MAX)
        return;
    if (!code)
        printf("FAIL %s: tc %s: exit code of the kernel %d, of gradwire %d\n", t->group, line,
               k->rc, g->rc);
    else
        printf("FAIL %s: tc %s: after tc %s: differs at %s\n  kernel   %s\n  gradwire %s\n",
               t->group, line, before, path, k->out, g->out);
}

/* The group of a device: gN belongs to the Nth discipline. */
static void open_group(struct tally *t, const char *dev)
{
    *t = (struct tally){ .shown = *dev == 'r' ? t->shown : 0 };
    snprintf(t->group, sizeof t->group, "%s",
             *dev == 'g' ? disciplines[strtoul(dev + 1, NULL, 10)].kind :
             *dev == 'p' ? "places" : "recorded");
}

static bool close_group(const struct tally *t, unsigned *passed, unsigned *failed)
{
    if (!t->lines)
        return true;
    if (strcmp(t->group, "recorded"))
        printf("%s %s: %u lines, %u exit codes and %u outputs differ\n",
               t->codes + t->outputs ? "FAIL" : "ok  ", t->group, t->lines, t->codes, t->outputs);
    *passed += t->lines - t->codes - t->outputs;
    *failed += t->codes + t->outputs;
    return !t->codes && !t->outputs;
}

static int compare(const char *script, const char *kernel, const char *gradwire, bool partial)
{
    char *text = whole_file(script), *ktext = whole_file(kernel), *gtext = whole_file(gradwire);
    char *kat = ktext, *gat = gtext, *save = NULL, *line;
    const char *before = "";
    unsigned passed = 0, failed = 0;
    struct tally t = { .shown = 0 };

    for (line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
        struct reply k = { 0 }, g = { 0 };

        if (!strncmp(line, "@fresh ", 7)) {
            close_group(&t, &passed, &failed);
            open_group(&t, line + 7);
            continue;
        }
        if (!kernel_reply(&kat, &k)) {
            if (!partial)
                die(line, "the kernel's answers end here");
            printf("the kernel got to here: tc %s\n", line);
            break;
        }
        if (!gradwire_reply(&gat, &g))
            die(line, "gradwire's answers end here");
        compare_line(&t, line, before, &k, &g);
        if (!strstr(line, " show "))
            before = line;
        free(k.out);
        free(g.out);
    }
    close_group(&t, &passed, &failed);
    printf("%u answers equal, %u not\n", passed, failed);
    free(text);
    free(ktext);
    free(gtext);
    return passed && !failed ? 0 : 1;
}

static bool asked_for(const char *group, char **groups, int n)
{
    for (int i = 0; i < n; i++)
        if (!strcmp(groups[i], group))
            return true;
    return !n;
}

int main(int argc, char **argv)
{
    if (argc >= 3 && !strcmp(argv[1], "generate")) {
        if (asked_for("recorded", argv + 3, argc - 3))
            generate_recorded(argv[2]);
        if (asked_for("places", argv + 3, argc - 3))
            generate_places();
        for (uint32_t i = 0; i < sizeof disciplines / sizeof *disciplines; i++)
            if (asked_for(disciplines[i].kind, argv + 3, argc - 3))
                generate_discipline(&disciplines[i], i);
        return 0;
    }
    if (argc >= 5 && !strcmp(argv[1], "compare"))
        return compare(argv[2], argv[3], argv[4], argc == 6 && !strcmp(argv[5], "partial"));
    die("usage", "generate LANGUAGE.json [GROUP ...] | compare SCRIPT KERNEL GRADWIRE [partial]");
    return 99;
}
