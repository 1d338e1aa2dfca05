/*
 * test_tc_language - tc lines against what iproute2 6.1 and Linux 6.1 answered
 *
 * tests/data/tc/language.json holds lines with exit code, first error line and the state
 * afterwards, recorded on a real kernel. Each case runs on a fresh scratch device; exit codes must
 * be equal, the JSON of `-s -j qdisc show` must be equal (key order and refcnt aside, numbers
 * within 1e-9 + 1e-6 relative), and so must the texts of show, automatic handles being mapped in
 * order of appearance. The table at the end counts failures by group. Below it: more lines,
 * recorded the same way, for what the cases leave out, and filters against packets.
 */
#include "tests/unit/suite.h"

#include "emu/tc/keep.h"

#include "emu/tc/cmd.h"
#include "emu/tc/filter.h"

#include <ctype.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>

enum { GROUPS_MAX = 40, OUT_MAX = 1 << 20 };

struct desk {                    /* one scratch device by the name DEV                         */
    struct gw_registry *reg;
    struct gw_tree     *tree;
    char  *out;                  /* what the last command printed; owner: here                 */
    struct gw_error     err;     /* and its sentence                                           */
};

static struct gw_tree *desk_device(void *ctx, const char *name, struct gw_error *err)
{
    struct desk *d = ctx;

    if (!strcmp(name, "DEV"))
        return d->tree;
    gw_fail(err, GW_PARAM, "the only device is DEV");
    return NULL;
}

static struct gw_tree *desk_device_at(void *ctx, size_t i)
{
    struct desk *d = ctx;

    return i ? NULL : d->tree;
}

static void desk_open(struct desk *d)
{
    memset(d, 0, sizeof *d);
    d->reg = gw_registry_new(false, &d->err);
    CHECK_ROW(d->reg, "registry: %s", d->err.text);
    CU_ASSERT_PTR_NOT_NULL_FATAL(d->reg);
    d->tree = gw_tc_scratch(d->reg, "DEV", &d->err);
    CU_ASSERT_PTR_NOT_NULL_FATAL(d->tree);
}

/* A fresh device for the next case. */
static void desk_clear(struct desk *d)
{
    memset(&d->err, 0, sizeof d->err);
    gw_tree_free(d->tree);
    d->tree = gw_tc_scratch(d->reg, "DEV", &d->err);
    CU_ASSERT_PTR_NOT_NULL_FATAL(d->tree);
}

static void desk_close(struct desk *d)
{
    free(d->out);
    gw_tree_free(d->tree);
    gw_registry_free(d->reg);
}

static int run(struct desk *d, const char *line)
{
    struct gw_tc_ctx c = { .ctx = d, .device = desk_device, .device_at = desk_device_at };
    uint32_t count = 0;
    char **word = gw_tc_split(line, &count);
    size_t n = 0;
    int rc;

    free(d->out);
    d->out = NULL;
    c.out = open_memstream(&d->out, &n);
    CU_ASSERT_FATAL(word && c.out);
    memset(&d->err, 0, sizeof d->err);
    rc = gw_tc_run(&c, word, count, &d->err);
    fclose(c.out);
    free(word[0]);
    free(word);
    return rc;
}

/* ---- comparing ---------------------------------------------------------------------------- */

/* Automatic handles (8000: and up) become "autoN:" in order of appearance. To be freed. */
static char *mapped(const char *s)
{
    char seen[64][8], *to = malloc(2 * strlen(s) + 1), *at = to;
    size_t count = 0;

    CU_ASSERT_PTR_NOT_NULL_FATAL(to);
    for (; *s; s++) {
        bool start = *s == '8' && (at == to || !isxdigit((unsigned char)at[-1]));
        size_t k = 0;

        for (int i = 1; start && i < 4; i++)
            start = s[i] && strchr("0123456789abcdef", s[i]);
        if (!start || s[4] != ':') {
            *at++ = *s;
            continue;
        }
        while (k < count && strncmp(seen[k], s, 4))
            k++;
        if (k == count && count < 64)
            memcpy(seen[count++], s, 4);
        at += sprintf(at, "a%zu", k);
        s += 3;
    }
    *at = 0;
    return to;
}

static json_t *mapped_json(const json_t *v)
{
    char *text = json_dumps(v, JSON_ENCODE_ANY), *plain = text ? mapped(text) : NULL;
    json_t *out = plain ? json_loads(plain, JSON_DECODE_ANY, NULL) : NULL;

    free(text);
    free(plain);
    return out;
}

/* NULL: equal; else where they differ, in @path. */
static bool same_json(const json_t *a, const json_t *b, char *path, size_t n)
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
        if (json_array_size(a) != json_array_size(b))
            return false;
        json_array_foreach(a, i, v) {
            snprintf(path + used, n - used, "[%zu]", i);
            if (!same_json(v, json_array_get(b, i), path, n))
                return false;
        }
        path[used] = 0;
        return true;
    }
    if (!json_is_object(a))
        return json_equal((json_t *)(uintptr_t)a, (json_t *)(uintptr_t)b);
    json_object_foreach((json_t *)(uintptr_t)b, key, v)
        if (strcmp(key, "refcnt") && !json_object_get(a, key)) {
            snprintf(path + used, n - used, ".%s (missing)", key);
            return false;
        }
    json_object_foreach((json_t *)(uintptr_t)a, key, v) {
        const json_t *w = json_object_get(b, key);

        if (!strcmp(key, "refcnt"))
            continue;
        snprintf(path + used, n - used, ".%s%s", key, w ? "" : " (not there)");
        if (!w || !same_json(v, w, path, n))
            return false;
    }
    path[used] = 0;
    return true;
}

/* The lines of @want, one behind the other. To be freed. */
static char *join_lines(const json_t *want)
{
    char *text = calloc(1, OUT_MAX);
    size_t i, n = 0;
    json_t *v;

    CU_ASSERT_PTR_NOT_NULL_FATAL(text);
    json_array_foreach(want, i, v)
        n += (size_t)snprintf(text + n, OUT_MAX - n, "%s\n", json_string_value(v));
    return text;
}

static bool same_text(const char *got, const char *want)
{
    char *a = mapped(got ? got : ""), *b = mapped(want);
    bool same = !strcmp(a, b);

    free(a);
    free(b);
    return same;
}

/* ---- the recorded cases ------------------------------------------------------------------- */

struct tally {
    char     group[32];
    unsigned cases, code, json, text;
};

static struct tally *tally_of(struct tally *t, const char *group)
{
    while (*t->group && strcmp(t->group, group))
        t++;
    snprintf(t->group, sizeof t->group, "%s", group);
    return t;
}

static const char *text_of(const json_t *c, const char *key)
{
    const char *s = json_string_value(json_object_get(c, key));

    return s ? s : "";
}

static void check_state(struct desk *d, const json_t *c, struct tally *t)
{
    json_t *got, *want = mapped_json(json_object_get(c, "qdisc_json")), *plain;
    char path[256] = "";
    bool same;

    CU_ASSERT_EQUAL(run(d, "-s -j qdisc show dev DEV"), 0);
    plain = json_loads(d->out ? d->out : "", 0, NULL);
    got = plain ? mapped_json(plain) : NULL;
    same = got && want && same_json(got, want, path, sizeof path);
    t->json += !same;
    CHECK_ROW(same, "%s: tc %s: JSON differs at %s: got %s", text_of(c, "id"), text_of(c, "cmd"),
              path, d->out ? d->out : "nothing");
    json_decref(plain);
    json_decref(got);
    json_decref(want);
}

static void check_text(struct desk *d, const json_t *c, const char *key, const char *line,
                       struct tally *t)
{
    const json_t *want = json_object_get(c, key);
    char *lines;
    bool same;

    if (!want)
        return;
    lines = join_lines(want);
    CU_ASSERT_EQUAL(run(d, line), 0);
    same = same_text(d->out, lines);
    t->text += !same;
    CHECK_ROW(same, "%s: tc %s: %s differs\n  got  %s  want %s", text_of(c, "id"),
              text_of(c, "cmd"), key, d->out ? d->out : "", lines);
    free(lines);
}

static void check_case(struct desk *d, const json_t *c, struct tally *t)
{
    const json_t *setup = json_object_get(c, "setup"), *codes = json_object_get(c, "setup_rc"),
                 *stdout_ = json_object_get(c, "stdout");
    int want = (int)json_integer_value(json_object_get(c, "rc")), rc;
    size_t i;
    json_t *line;
    bool same;

    desk_clear(d);
    t->cases++;
    json_array_foreach(setup, i, line) {
        rc = run(d, json_string_value(line));
        CHECK_ROW(rc == json_integer_value(json_array_get(codes, i)), "%s: setup `%s`: exit code "
                  "%d (%s)", text_of(c, "id"), json_string_value(line), rc, d->err.text);
    }
    rc = run(d, text_of(c, "cmd"));
    t->code += rc != want;
    CHECK_ROW(rc == want, "%s: tc %s: exit code got %d (%s), want %d (%s)", text_of(c, "id"),
              text_of(c, "cmd"), rc, d->err.text, want, text_of(c, "stderr_first_line"));
    CHECK_ROW((rc != 0) == (*d->err.text != 0), "%s: tc %s: exit code %d with sentence \"%s\"",
              text_of(c, "id"), text_of(c, "cmd"), rc, d->err.text);
    if (stdout_) {
        same = same_text(d->out, json_string_value(stdout_));
        t->text += !same;
        CHECK_ROW(same, "%s: tc %s: output\n  got  %s\n  want %s", text_of(c, "id"),
                  text_of(c, "cmd"), d->out ? d->out : "", json_string_value(stdout_));
    }
    check_state(d, c, t);
    check_text(d, c, "qdisc_text", "qdisc show dev DEV", t);
    check_text(d, c, "class_text", "class show dev DEV", t);
    check_text(d, c, "filter_text", "filter show dev DEV parent 1:", t);
}

static void recorded_cases(void)
{
    json_t *all = json_load_file(GW_TEST_SRCDIR "/tests/data/tc/language.json", 0, NULL), *c;
    struct tally tally[GROUPS_MAX + 1] = { 0 };
    struct desk d;
    size_t i;

    CU_ASSERT_PTR_NOT_NULL_FATAL(all);
    desk_open(&d);
    json_array_foreach(json_object_get(all, "cases"), i, c)
        check_case(&d, c, tally_of(tally, text_of(c, "group")));
    CU_ASSERT_TRUE(i > 200);
    fprintf(stderr, "%-12s %6s %10s %6s %6s\n", "group", "cases", "exit code", "JSON", "text");
    for (struct tally *t = tally; *t->group; t++)
        fprintf(stderr, "%-12s %6u %10u %6u %6u\n", t->group, t->cases, t->code, t->json, t->text);
    desk_close(&d);
    json_decref(all);
}

/* ---- more lines --------------------------------------------------------------------------- */

struct line {
    const char *line;
    int rc;
    const char *out;             /* what it prints; NULL: not looked at                        */
    const char *says;            /* what its sentence begins with; NULL: not looked at         */
};

/* Recorded from iproute2 6.1 on a kernel with htb, tbf, pfifo and bfifo (refcnt aside). */
static const struct line lines[] = {
    { "", 0, NULL, NULL },
    { "foo", 255, "", "Object \"foo\" is unknown" },
    { "-x qdisc", 255, "", "Option \"-x\" is unknown" },
    { "qdisc add dev DEV root foo", 2, "", "Error: Specified qdisc kind is unknown" },
    { "qdisc add dev DEV root", 2, "", "Error: Specified qdisc kind is unknown" },
    { "qdisc add root pfifo", 2, "", "RTNETLINK answers: No such device" },
    { "qdisc add dev", 255, "", "Command line is not complete" },
    { "qdisc add dev DEV root root pfifo", 255, "", "Error: \"root\" is duplicate parent ID" },
    { "qdisc add dev DEV dev DEV root pfifo", 255, "", "Error: duplicate \"dev\"" },
    { "qdisc replace dev DEV root handle 10000: pfifo", 255, "",
      "Error: argument \"10000:\" is wrong" },
    { "qdisc add dev DEV root stab bogus pfifo", 255, "", NULL },
    { "qdisc add dev DEV root stab overhead 2147483648 pfifo", 255, "", "Error: argument" },
    { "qdisc add dev DEV root stab overhead 4294967295 pfifo", 255, "", "Error: argument" },
    { "qdisc add dev DEV root stab mtu pfifo", 255, "", "Error: argument" },
    { "qdisc add dev DEV root stab mtu 4096 pfifo", 255, "", "Error: \"stab\" needs" },
    { "qdisc add dev DEV root stab linklayer atm linklayer atm pfifo", 255, "",
      "Error: duplicate \"linklayer\"" },
    { "qdisc add dev DEV root handle 9: stab overhead 24 pfifo", 0, "", NULL },
    { "-d -j qdisc show dev DEV", 0, "[{\"kind\":\"pfifo\",\"handle\":\"9:\",\"root\":true,"
      "\"refcnt\":2,\"options\":{\"limit\":1000},\"stab\":{\"overhead\":24}}]\n", NULL },
    { "qdisc del dev DEV root", 0, "", NULL },
    { "qdisc add dev DEV root handle 1: stab overhead 24 mpu 64 linklayer atm tbf rate 1mbit "
      "burst 10kb latency 50ms", 0, "", NULL },
    { "-d -s qdisc show dev DEV", 0,
      "qdisc tbf 1: root refcnt 2 rate 1Mbit burst 10Kb/1 mpu 0b lat 50ms linklayer ethernet \n"
      " linklayer atm overhead 24 mpu 64 mtu 2047 tsize 512 \n"
      " Sent 0 bytes 0 pkt (dropped 0, overlimits 0 requeues 0) \n backlog 0b 0p requeues 0\n",
      NULL },
    { "-iec qdisc show dev DEV", 0,
      "qdisc tbf 1: root refcnt 2 rate 1000000bit burst 10Kb lat 50ms \n", NULL },
    { "qdisc show dev DEV invisible", 0,
      "qdisc tbf 1: root refcnt 2 rate 1Mbit burst 10Kb lat 50ms \n"
      "qdisc bfifo 0: parent 1:1 limit 16490b\n", NULL },
    { "qdisc", 0, "qdisc tbf 1: dev DEV root refcnt 2 rate 1Mbit burst 10Kb lat 50ms \n", NULL },
    { "qdisc show dev DEV handle 2:", 0, "", NULL },
    { "-s class show dev DEV", 0, "class tbf 1:1 parent 1: \n\n", NULL },
    { "class", 0, "", NULL },
    { "qdisc del dev DEV parent 1:1", 2, "", "Error: Cannot delete qdisc with handle of zero" },
    { "qdisc del dev DEV handle 1:", 2, "", "Error: Classid cannot be zero" },
    { "qdisc del dev DEV", 2, "", "Error: Failed to find qdisc with specified handle" },
    { "qdisc replace dev DEV root handle 1: pfifo", 2, "", "Error: Invalid qdisc name" },
    { "qdisc add dev DEV parent 1:1 pfifo", 0, "", NULL },
    { "qdisc add dev DEV root handle 2: pfifo", 2, "", "Error: NLM_F_REPLACE needed to override" },
    { "qdisc replace dev DEV root handle 2: pfifo", 0, "", NULL },
    { "qdisc add dev DEV parent 2:1 pfifo", 2, "", "Error: Parent qdisc is not classful" },
    { "qdisc link dev DEV root bfifo", 2, "", "Error: Invalid qdisc name" },
    { "qdisc replace dev DEV root htb", 0, "", NULL },
    { "qdisc replace dev DEV root handle 1: htb", 0, "", NULL },
    { "class add dev DEV parent 1: htb rate 1mbit", 2, "", NULL },
    { "class add dev DEV classid 1:5 htb rate 1mbit", 0, "", NULL },
    { "class add dev DEV classid 1:5 htb rate 1mbit", 2, "", "RTNETLINK answers: File exists" },
    { "class change dev DEV classid 1:6 htb rate 1mbit", 2, "", "RTNETLINK answers: No such file" },
    { "class add dev DEV parent 1: classid 1:6 prio rate 1mbit", 1, "",
      "Error: Qdisc \"prio\" is classless" },
    { "class add dev DEV parent 1: classid 1:6 foo bar", 1, "",
      "Error: Qdisc \"foo\" is classless" },
    { "class add dev DEV handle 1: classid 1:6 htb rate 1", 255, "", "Error: try \"classid\"" },
    { "class add dev DEV parent 1: classid 1:6", 2, "", "RTNETLINK answers: Invalid argument" },
    { "class add dev DEV parent 1:5 classid 1:10 htb rate 500kbit prio 3", 0, "", NULL },
    { "qdisc add dev DEV parent 1:10 handle 10: pfifo limit 7", 0, "", NULL },
    { "qdisc add dev DEV parent 1:10 pfifo limit 7", 2, "", "Error: Exclusivity flag on" },
    { "qdisc replace dev DEV parent 1:10 pfifo limit 8", 0, "", NULL },
    { "qdisc add dev DEV parent 1:5 handle 11: pfifo limit 7", 2, "", NULL },
    { "class show dev DEV root", 0, "", NULL },
    { "-s -d class show dev DEV parent 1:5", 0,
      "class htb 1:10 parent 1:5 leaf 10: prio 3 quantum 6250 rate 500Kbit ceil 500Kbit linklayer "
      "ethernet burst 1600b/1 mpu 0b cburst 1600b/1 mpu 0b level 0 \n"
      " Sent 0 bytes 0 pkt (dropped 0, overlimits 0 requeues 0) \n backlog 0b 0p requeues 0\n"
      " lended: 0 borrowed: 0 giants: 0\n tokens: 400000 ctokens: 400000\n\n"
      "class htb 1:5 root rate 1Mbit ceil 1Mbit linklayer ethernet burst 1600b/1 mpu 0b cburst "
      "1600b/1 mpu 0b level 7 \n"
      " Sent 0 bytes 0 pkt (dropped 0, overlimits 0 requeues 0) \n backlog 0b 0p requeues 0\n"
      " lended: 0 borrowed: 0 giants: 0\n tokens: 200000 ctokens: 200000\n\n", NULL },
    { "class del dev DEV classid 1:5", 2, "", NULL },
    { "class del dev DEV classid 1:10", 0, "", NULL },
    { "class del dev DEV", 2, "", "RTNETLINK answers: No such file" },
    { "qdisc del dev DEV root", 0, "", NULL },
    { "qdisc del dev DEV root", 2, "", "Error: Cannot delete qdisc with handle of zero" },
    { "qdisc add dev DEV ingress", 0, "", NULL },
    { "qdisc add dev DEV clsact", 2, "", "Error: Exclusivity flag on" },
    { "qdisc show dev DEV", 0,
      "qdisc noqueue 0: root refcnt 2 \nqdisc ingress ffff: parent ffff:fff1 ---------------- \n",
      NULL },
    { "qdisc del dev DEV ingress", 0, "", NULL },
    { "qdisc del dev DEV ingress", 2, "", "Error: Invalid handle" },
    { NULL, 0, NULL, NULL },
};

/* As above, on a device with `htb 1:` and its classes 1:1 and 1:2, as iproute2 6.1 and Linux 6.1.192
 * answer. */
#define F "filter add dev DEV parent 1: "
static const struct line filters[] = {
    { "qdisc add dev DEV root handle 1: htb", 0, "", NULL },
    { "class add dev DEV parent 1: classid 1:1 htb rate 1mbit", 0, "", NULL },
    { "class add dev DEV parent 1: classid 1:2 htb rate 1mbit", 0, "", NULL },
    { F "protocol ip prio 1 u32 match ip dport 80 0xffff match ip protocol 17 0xff flowid 1:1", 0,
      "", NULL },
    { F "protocol ip prio 1 u32 match ip src 10/8 match ip dst 10.1.2.3 flowid 1:2", 0, "", NULL },
    { F "protocol ip prio 1 u32 match u8 0x10 0xfc at 1 classid 1:2", 0, "", NULL },
    { F "protocol ip u32 match u32 0 0 flowid 1:2", 0, "", NULL },
    { F "protocol ip prio 7 u32 match tcp dst 5 0xffff match udp src 6 0xffff flowid 1:2", 0, "",
      NULL },
    { "filter show dev DEV", 0,
      "filter parent 1: protocol ip pref 1 u32 chain 0 \n"
      "filter parent 1: protocol ip pref 1 u32 chain 0 fh 800: ht divisor 1 \n"
      "filter parent 1: protocol ip pref 1 u32 chain 0 fh 800::800 order 2048 key ht 800 bkt 0 "
      "*flowid 1:1 not_in_hw \n  match 00000050/0000ffff at 20\n  match 00110000/00ff0000 at 8\n"
      "filter parent 1: protocol ip pref 1 u32 chain 0 fh 800::801 order 2049 key ht 800 bkt 0 "
      "*flowid 1:2 not_in_hw \n  match 0a000000/ff000000 at 12\n  match 0a010203/ffffffff at 16\n"
      "filter parent 1: protocol ip pref 1 u32 chain 0 fh 800::802 order 2050 key ht 800 bkt 0 "
      "*flowid 1:2 not_in_hw \n  match 00100000/00fc0000 at 0\n"
      "filter parent 1: protocol ip pref 7 u32 chain 0 \n"
      "filter parent 1: protocol ip pref 7 u32 chain 0 fh 802: ht divisor 1 \n"
      "filter parent 1: protocol ip pref 7 u32 chain 0 fh 802::800 order 2048 key ht 802 bkt 0 "
      "*flowid 1:2 not_in_hw \n  match 00060005/ffffffff at nexthdr+0\n"
      "filter parent 1: protocol ip pref 49152 u32 chain 0 \n"
      "filter parent 1: protocol ip pref 49152 u32 chain 0 fh 801: ht divisor 1 \n"
      "filter parent 1: protocol ip pref 49152 u32 chain 0 fh 801::800 order 2048 key ht 801 bkt 0 "
      "*flowid 1:2 not_in_hw \n  match 00000000/00000000 at 0\n", NULL },
    { "-j filter show dev DEV prio 7", 0,
      "[{\"parent\":\"1:\",\"protocol\":\"ip\",\"kind\":\"u32\",\"chain\":0},"
      "{\"parent\":\"1:\",\"protocol\":\"ip\",\"kind\":\"u32\",\"chain\":0,\"options\":"
      "{\"fh\":\"802:\",\"ht_divisor\":1}},"
      "{\"parent\":\"1:\",\"protocol\":\"ip\",\"kind\":\"u32\",\"chain\":0,\"options\":"
      "{\"fh\":\"802::800\",\"order\":2048,\"key_ht\":\"802\",\"bkt\":\"0\",\"flowid\":\"1:2\","
      "\"not_in_hw\":true,\"match\":{\"value\":\"60005\",\"mask\":\"ffffffff\",\"offmask\":"
      "\"nexthdr+\",\"off\":0}}}]\n", NULL },
    { F "protocol ip prio 1 u32 match ip dport 80 flowid 1:1", 1, "", "Illegal \"match\"" },
    { F "protocol ip prio 1 u32 match ip foo 80 0xffff", 1, "", "Illegal \"match\"" },
    { F "protocol ip prio 1 u32 match u32 5 ff at 2", 1, "", "Illegal \"match\"" },
    { F "protocol ip prio 1 u32 match ip dport 80 fffff", 1, "", "Illegal \"match\"" },
    { F "protocol ip prio 1 u32 match ip dport 80 ffff match ip dport 81 ffff", 1, "",
      "Illegal \"match\"" },
    { F "protocol ip prio 1 u32 match ip dport 80 ffff flowid zz", 1, "", "Illegal \"classid\"" },
    { F "protocol ip prio 1 u32 match ip dport 80 ffff bogus", 1, "", "What is \"bogus\"?" },
    { F "protocol ip prio 1 u32 match", 255, "", "Command line is not complete" },
    { F "protocol ip prio 1 u32 match ip", 255, "", "Command line is not complete" },
    { F "protocol ip prio 1 u32 flowid 1:1", 2, "", "Error: cls_u32: Selector not specified" },
    { F "protocol ip prio 1 u32 match ip ttl 5 ff flowid 1:1", 1, "", "Illegal \"match\"" },
    { F "protocol ip prio 1 u32 match u8 5 ff at 8 flowid 1:1", 2, "", "match 05000000/ff000000" },
    { F "protocol all prio 1 u32 match ip protocol 6 ff flowid 1:1", 2, "",
      "Error: Protocol mismatch" },
    { F "protocol ip prio 1 fw classid 1:1", 2, "", NULL },
    { F "protocol bogus prio 9", 255, "", "Error: argument \"bogus\" is wrong: invalid protocol" },
    { F "prio 1 prio 2 basic", 255, "", "Error: duplicate \"priority\"" },
    { F "protocol all prio zz basic", 255, "", "Error: argument \"zz\" is wrong" },
    { F "prio 9 bogus", 2, "", "Error: TC classifier not found" },
    { F "prio 9 bogus x", 1, "", "Unknown filter \"bogus\"" },
    { F "prio 9 handle 5", 255, "", "Must specify filter type" },
    { "filter add dev DEV parent 3: prio 9 basic classid 1:3", 2, "", "Error: Parent Qdisc" },
    { "filter add dev nodev parent 3: prio 9 basic", 1, "", "Cannot find device \"nodev\"" },
    { "filter add dev DEV parent 1:9 prio 9 basic", 2, "", "Error: Specified class doesn't exist" },
    { "filter add", 2, "", "RTNETLINK answers: No such device" },
    { "filter bogus", 255, "", "Command \"bogus\" is unknown" },
    { "filter show dev DEV bogus", 255, "", "What is \"bogus\"?" },
    { "filter replace dev DEV parent 1: protocol ip prio 1 handle 800::801 u32 match ip protocol 7 "
      "ff flowid 1:1", 0, "", NULL },
    { F "protocol ip prio 1 handle 800::801 u32 match ip protocol 7 ff flowid 1:1", 2, "",
      "Error: Filter already exists" },
    { "class del dev DEV classid 1:2", 2, "", NULL },
    { "filter del dev DEV parent 1: protocol ip prio 1 handle 800::900 u32", 2, "",
      "Error: Specified filter handle not found" },
    { "filter del dev DEV parent 1: protocol ip prio 1 handle 800::800 u32", 0, "", NULL },
    { "filter del dev DEV parent 1: prio 7", 0, "", NULL },
    { "filter del dev DEV parent 1: prio 7", 2, "",
      "Error: Filter with specified priority/protocol not found" },
    { "filter del dev DEV parent 1:", 0, "", NULL },
    { "filter show dev DEV", 0, "", NULL },
    { "-j filter show dev DEV", 0, "[]\n", NULL },
    { F "prio 5 handle 1 fw classid 1:1", 0, "", NULL },
    { F "prio 5 handle 1 fw classid 1:1", 2, "", "Error: Filter already exists" },
    { F "prio 5 handle 2/0xff fw flowid 1:2", 2, "", "Error: Invalid argument" },
    { F "prio 5 handle 2 fw flowid 1:2", 0, "", NULL },
    { F "prio 5 handle 3 fw", 2, "", "RTNETLINK answers: Invalid argument" },
    { F "prio 6 matchall", 2, "", "RTNETLINK answers: Invalid argument" },
    { F "prio 6 handle 5 u32 match u32 0 0 flowid 1:1", 1, "", "Illegal \"handle\"" },
    { "filter add dev DEV root prio 6 matchall flowid 1:1", 2, "", "Error: Parent Qdisc" },
    { F "prio 5 fw flowid 1:2", 2, "", NULL },
    { F "prio 5 handle 7 fw bogus", 1, "", "What is \"bogus\"?" },
    { "filter show dev DEV parent 1:", 0,
      "filter protocol all pref 5 fw chain 0 \n"
      "filter protocol all pref 5 fw chain 0 handle 0x1 classid 1:1 \n"
      "filter protocol all pref 5 fw chain 0 handle 0x2 classid 1:2 \n", NULL },
    { "filter change dev DEV parent 1: protocol all prio 5 handle 9 fw classid 1:2", 2, "",
      "Error: Need both RTM_NEWTFILTER and NLM_F_CREATE" },
    { F "protocol all prio 3 flower dst_ip 10.0.0.1", 1, "", "Illegal \"dst_ip\"" },
    { F "protocol ip prio 3 flower dst_port 80", 1, "", "Illegal \"dst_port\"" },
    { F "protocol ip prio 3 flower ip_proto tcp dst_port 80-70", 1, "", "Illegal \"dst_port\"" },
    { F "protocol ip prio 3 flower ip_proto 300", 1, "", "Illegal \"ip_proto\"" },
    { F "protocol ip prio 3 flower ip_tos zz", 1, "", "Illegal \"ip_tos\"" },
    { F "protocol ip prio 3 flower dst_ip", 255, "", "Command line is not complete" },
    { F "protocol ip prio 3 flower dst_ip 10.0.0.1 src_ip 10.0.0.0/8 ip_proto tcp dst_port 80 "
      "src_port 5-10 ip_tos 0x10/0xfc classid 1:1", 0, "", NULL },
    { F "protocol ip prio 3 flower src_ip 10.9.9.9/8 dst_ip 10.0.0.1 ip_proto tcp dst_port 80 "
      "src_port 5-10 ip_tos 17/0xfc classid 1:2", 2, "", "Error: File exists" },
    { F "protocol ip prio 3 flower dst_ip 10.0.0.2 classid 1:1", 0, "", NULL },
    { "filter replace dev DEV parent 1: protocol ip prio 3 handle 2 flower src_ip 10.0.0.2 classid "
      "1:1", 2, "", "Error: Invalid argument" },
    { F "protocol ip prio 3 flower dst_ip 10.0.0.7 src_ip 11.0.0.0/8 ip_proto tcp dst_port 0x50 "
      "src_port 5-10 ip_tos 16/0xfc classid 1:2", 1, "", "Illegal \"dst_port\"" },
    { F "protocol ip prio 3 flower dst_ip 10.0.0.7 src_ip 11.0.0.0/8 ip_proto tcp dst_port 81 "
      "src_port 5-10 ip_tos 16/0xfc classid 1:2", 0, "", NULL },
    { "filter show dev DEV prio 3", 0, "filter parent 1: protocol ip flower chain 0 \n"
      "filter parent 1: protocol ip flower chain 0 handle 0x1 classid 1:1 \n  eth_type ipv4\n"
      "  ip_proto tcp\n  ip_tos 16/0xfc\n  dst_ip 10.0.0.1\n  src_ip 10.0.0.0/8\n  dst_port 80\n"
      "  src_port 5-10\n  not_in_hw\n"
      "filter parent 1: protocol ip flower chain 0 handle 0x2 classid 1:1 \n  eth_type ipv4\n"
      "  dst_ip 10.0.0.2\n  not_in_hw\n"
      "filter parent 1: protocol ip flower chain 0 handle 0x3 classid 1:2 \n  eth_type ipv4\n"
      "  ip_proto tcp\n  ip_tos 16/0xfc\n  dst_ip 10.0.0.7\n  src_ip 11.0.0.0/8\n  dst_port 81\n"
      "  src_port 5-10\n  not_in_hw\n", NULL },
    { F "prio 8 basic match meta(priority eq 3) classid 1:1", 0, "", NULL },
    { F "prio 8 basic match not cmp(u8 at 9 layer 1 mask 0xf gt 0x11) and (meta(nf_mark mask 7 eq 1) "
      "or tag(layer lt 9)) classid 1:2", 0, "", NULL },
    { "filter show dev DEV prio 8", 0, "filter parent 1: protocol all basic chain 0 \n"
      "filter parent 1: protocol all basic chain 0 handle 0x2 flowid 1:2 \n"
      "  NOT cmp(u8 at 9 layer 1 mask 0xf gt 17)\n  AND (\n    meta(nf_mark mask 0x00000007 eq 1)\n"
      "    OR tag(layer lt 9)\n  ) \n"
      "filter parent 1: protocol all basic chain 0 handle 0x1 flowid 1:1 \n  meta(priority eq 3)\n"
      "\n", NULL },
    { "-j filter show dev DEV prio 3 protocol 5", 0, "[]\n", NULL },
    { F "prio 9 basic match foo(x)", 1, "", "Illegal \"ematch\"" },
    { F "prio 9 basic match 'meta(priority foo 6)'", 1, "", "Illegal \"ematch\"" },
    { F "prio 9 basic match 'meta(bogus eq 6)'", 1, "", "Illegal \"ematch\"" },
    { F "prio 9 basic match 'meta(priority eq 6'", 1, "", "Illegal \"ematch\"" },
    { F "prio 9 basic match 'meta(priority eq 6) or' classid 1:1", 1, "", "Illegal \"ematch\"" },
    { F "prio 9 basic match", 255, "", "Command line is not complete" },
    { F "prio 9 matchall bogus", 1, "", "What is \"bogus\"?" },
    { F "prio 9 matchall classid 1:1 action drop", 1, "", "What is \"action\"?" },
    { "filter del dev DEV", 0, "", NULL },
    { NULL, 0, NULL, NULL },
};

static void run_lines(const struct line *l)
{
    struct desk d;

    desk_open(&d);
    for (; l->line; l++) {
        int rc = run(&d, l->line);

        CHECK_ROW(rc == l->rc, "tc %s: exit code got %d (%s), want %d", l->line, rc, d.err.text,
                  l->rc);
        CHECK_ROW((rc != 0) == (*d.err.text != 0), "tc %s: exit code %d, sentence \"%s\"", l->line,
                  rc, d.err.text);
        CHECK_ROW(!l->out || same_text(d.out, l->out), "tc %s:\n  got  %s\n  want %s", l->line,
                  d.out, l->out);
        CHECK_ROW(!l->says || !strncmp(d.err.text, l->says, strlen(l->says)),
                  "tc %s: got \"%s\", want \"%s...\"", l->line, d.err.text, l->says);
    }
    desk_close(&d);
}

static void frames_of_commands(void)
{
    run_lines(lines);
}

static void filter_commands(void)
{
    run_lines(filters);
}

/* ---- filters against packets -------------------------------------------------------------- */

static void fake_fields(void *ctx, const struct gw_pkt *p, struct gw_pkt_fields *f)
{
    (void)p;
    *f = *(const struct gw_pkt_fields *)ctx;
}

/* Of one packet: 10.0.0.1:5000 -> 10.1.2.3:80 by TCP, TOS 0x28, 1500 bytes of IP; priority 6, layer
 * 3, class 5, flow 42. */
static const struct {
    const char *filter;          /* behind `filter add dev DEV parent 1:`; leads to 1:1        */
    bool takes;
} matches[] = {
    { "prio 1 matchall", true },
    { "protocol ip prio 1 u32 match u32 0 0", true },
    { "protocol ipv6 prio 1 u32 match u32 0 0", false },
    { "protocol ip prio 1 u32 match ip dport 80 0xffff", true },
    { "protocol ip prio 1 u32 match ip dport 81 0xffff", false },
    { "protocol ip prio 1 u32 match ip dport 81 0xfffe", true },
    { "protocol ip prio 1 u32 match ip sport 5000 0xffff match ip dport 80 0xffff", true },
    { "protocol ip prio 1 u32 match ip sport 5000 0xffff match ip dport 79 0xffff", false },
    { "protocol ip prio 1 u32 match tcp dst 80 0xffff match tcp src 5000 ffff", true },
    { "protocol ip prio 1 u32 match ip src 10.0.0.1/32", true },
    { "protocol ip prio 1 u32 match ip src 10.0.0.2", false },
    { "protocol ip prio 1 u32 match ip dst 10.1.0.0/16", true },
    { "protocol ip prio 1 u32 match ip dst 10.2.0.0/16", false },
    { "protocol ip prio 1 u32 match ip protocol 6 0xff", true },
    { "protocol ip prio 1 u32 match ip protocol 17 0xff", false },
    { "protocol ip prio 1 u32 match ip dsfield 0x28 0xfc", true },
    { "protocol ip prio 1 u32 match ip tos 0x10 0xfc", false },
    { "protocol ip prio 1 u32 match u16 1500 0xffff at 2", true },
    { "protocol ip prio 1 u32 match u16 0x0a01 0xffff at 16", true },
    { "protocol ip prio 1 u32 match u8 3 0xff at 19", true },
    { "protocol ip prio 1 u32 match ip ihl 5 0xf", true },
    { "prio 1 handle 6 fw", true },
    { "prio 1 handle 5 fw", false },
    { "prio 1 handle 2/0x2 fw", true },
    { "protocol ip prio 1 flower ip_proto tcp dst_port 80", true },
    { "protocol ip prio 1 flower ip_proto udp dst_port 80", false },
    { "protocol ip prio 1 flower ip_proto tcp dst_port 70-80 src_port 5000-5001", true },
    { "protocol ip prio 1 flower ip_proto tcp dst_port 81-90", false },
    { "protocol ip prio 1 flower dst_ip 10.1.2.3 src_ip 10.0.0.0/8", true },
    { "protocol ip prio 1 flower dst_ip 10.1.2.4", false },
    { "protocol ip prio 1 flower ip_tos 0x28/0xfc", true },
    { "protocol ip prio 1 flower ip_tos 0x2c/0xfc", false },
    { "prio 1 basic match 'meta(priority eq 6)'", true },
    { "prio 1 basic match 'meta(priority gt 6)'", false },
    { "prio 1 basic match 'meta(priority mask 4 eq 4)'", true },
    { "prio 1 basic match 'meta(pkt_len gt 1513)'", true },
    { "prio 1 basic match 'tag(layer eq 3)'", true },
    { "prio 1 basic match 'tag(layer lt 3)'", false },
    { "prio 1 basic match 'tag(class eq 5) and tag(flow eq 42)'", true },
    { "prio 1 basic match 'not tag(flow eq 42)'", false },
    { "prio 1 basic match 'tag(flow eq 1) or not ( tag(layer eq 4) )'", true },
    { "prio 1 basic match 'tag(flow eq 1) and tag(layer eq 3) or tag(class eq 5)'", false },
    { "prio 1 basic match '(tag(flow eq 1) and tag(layer eq 3)) or tag(class eq 5)'", true },
    { "prio 1 basic match tag(layer eq 3) and meta(priority lt 7)", true },
    { "prio 1 basic match 'cmp(u8 at 9 layer network eq 6)'", true },
    { "prio 1 basic match 'cmp(u16 at 2 layer transport gt 79)'", true },
    { "prio 1 basic match 'cmp(u16 at 0 layer transport lt 5000)'", false },
    { "prio 1 basic match 'cmp(u8 at 1 layer 1 mask 0xfc eq 0x28)'", true },
};

static void filters_choose(void)
{
    struct gw_pkt_fields fields = { 0x0a000001, 0x0a010203, 5000, 80, 1500, 6, 0x28 };
    struct gw_pkt p = { .len_bytes = 1514, .priority = 6, .tag = 3 << 8 | 5, .flow = 42 };
    struct desk d;
    char line[512];

    desk_open(&d);
    for (size_t i = 0; i < GW_ARRAY_LEN(matches); i++) {
        uint32_t got, want = matches[i].takes ? 0x10001 : 0x10002;
        int rc;

        desk_clear(&d);
        d.tree->conf.fields = fake_fields;
        d.tree->conf.ctx = &fields;
        CU_ASSERT_EQUAL(run(&d, "qdisc add dev DEV root handle 1: prio"), 0);
        CU_ASSERT_EQUAL(run(&d, F "prio 2 matchall classid 1:2"), 0);
        snprintf(line, sizeof line, F "%s classid 1:1", matches[i].filter);
        rc = run(&d, line);
        CHECK_ROW(!rc, "%s: exit code %d: %s", line, rc, d.err.text);
        got = gw_filter_classify(d.tree, 0x10000, &p);
        CHECK_ROW(got == want, "%s: class got %x, want %x", line, got, want);
    }
    desk_close(&d);
}

/* Where htb sends a packet: set up below. */
static const struct { uint32_t priority, layer, classid; } leads[] = {
    { 3, 1, 0x10010 },               /* to 1:1, whose filters go on; those of a leaf do not     */
    { 3, 2, 0x10011 },
    { 0x10001, 1, 0x10010 },         /* the priority names the inner class                      */
    { 0x10001, 2, 0x10011 },
    { 0x10010, 2, 0x10010 },         /* or a leaf                                               */
    { 0x10000, 1, 0 },               /* X:0 is the direct queue                                 */
    { 0x20010, 1, 0 },               /* no class of this discipline, no default                 */
    { 5, 1, 0 },
};

/* Classes that form no tree take no filters of their own. */
static void filters_need_a_tree(void)
{
    static const struct { const char *line; int rc; } row[] = {
        { "qdisc add dev DEV root handle 1: drr", 0 },
        { "class add dev DEV parent 1: classid 1:1 drr", 0 },
        { "filter add dev DEV parent 1: matchall classid 1:1", 0 },
        { "filter add dev DEV parent 1:1 matchall classid 1:1", 2 },
        { "qdisc replace dev DEV root handle 2: ets bands 3", 0 },
        { "filter add dev DEV parent 2: matchall classid 2:1", 0 },
        { "filter add dev DEV parent 2:1 matchall classid 2:2", 2 },
        { "qdisc replace dev DEV root handle 3: htb", 0 },
        { "class add dev DEV parent 3: classid 3:1 htb rate 1mbit", 0 },
        { "filter add dev DEV parent 3:1 matchall classid 3:1", 0 },
    };
    struct desk d;

    desk_open(&d);
    for (size_t i = 0; i < GW_ARRAY_LEN(row); i++) {
        int rc = run(&d, row[i].line);

        CHECK_ROW(rc == row[i].rc, "%s: exit code %d, want %d", row[i].line, rc, row[i].rc);
    }
    desk_close(&d);
}

/* The mark as a class, inner classes with filters of their own, and what goes with a discipline. */
static void filters_lead_on(void)
{
    static const char *const setup[] = {
        "qdisc add dev DEV root handle 1: htb",
        "class add dev DEV parent 1: classid 1:1 htb rate 10mbit",
        "class add dev DEV parent 1:1 classid 1:10 htb rate 5mbit",
        "class add dev DEV parent 1:1 classid 1:11 htb rate 5mbit",
        "filter add dev DEV parent 1: prio 1 handle 3 fw classid 1:1",
        "filter add dev DEV parent 1:1 prio 1 basic match tag(layer eq 1) classid 1:10",
        "filter add dev DEV parent 1:1 prio 2 matchall classid 1:11",
        "filter add dev DEV parent 1: prio 7 fw",
        "filter add dev DEV parent 1:10 prio 1 matchall classid 1:11",
    };
    struct desk d;

    desk_open(&d);
    for (size_t i = 0; i < GW_ARRAY_LEN(setup); i++) {
        int rc = run(&d, setup[i]);

        CHECK_ROW(!rc, "%s: %d: %s", setup[i], rc, d.err.text);
    }
    for (size_t i = 0; i < GW_ARRAY_LEN(leads); i++) {
        struct gw_pkt p = { .len_bytes = 100, .priority = leads[i].priority,
                            .tag = leads[i].layer << 8 };
        uint32_t got = d.tree->root->ops->class_of(d.tree->root, &p);

        CHECK_ROW(got == leads[i].classid, "priority %x, layer %u: class got %x, want %x",
                  p.priority, leads[i].layer, got, leads[i].classid);
    }
    CU_ASSERT_EQUAL(run(&d, "qdisc replace dev DEV root pfifo"), 0);
    CU_ASSERT_PTR_NULL(d.tree->filters);
    desk_close(&d);
}

/* ---- a finished run ------------------------------------------------------------------------- */

static void take(void *ctx, const struct gw_tc_kept *k)
{
    struct desk *d = ctx;

    CU_ASSERT(gw_tree_keep(d->tree, k, &d->err) == GW_OK);
}

static const char *const kept_setups[][6] = {
    { "qdisc add dev DEV root handle 1: tbf rate 1mbit burst 10kb latency 50ms peakrate 2mbit mtu "
      "2000", "qdisc add dev DEV parent 1:1 handle 2: netem delay 10ms loss gemodel 1% 20%" },
    { "qdisc add dev DEV root handle 1: htb default 10",
      "class add dev DEV parent 1: classid 1:1 htb rate 10mbit",
      "class add dev DEV parent 1:1 classid 1:10 htb rate 5mbit prio 2",
      "qdisc add dev DEV parent 1:10 handle 10: fq_codel", "qdisc add dev DEV clsact" },
    { "qdisc add dev DEV root handle 1: prio", "qdisc add dev DEV parent 1:2 handle 2: cake",
      "filter add dev DEV parent 1: protocol ip pref 3 u32 match ip dport 80 0xffff flowid 1:2",
      "filter add dev DEV parent 1: protocol ip pref 3 u32 match ip tos 0x10 0xfc flowid 1:3",
      "filter add dev DEV parent 1: pref 9 basic match 'meta(priority eq 3)' classid 1:1" },
    { "qdisc add dev DEV root stab overhead 4 linklayer atm red limit 100kb avpkt 1000" },
    { "qdisc add dev DEV root pfifo limit 7", "qdisc del dev DEV root" },
};

/* What is kept of a device is shown as the device itself would, in all forms. */
static void kept_shows(void)
{
    static const char *const forms[] = { "", "-s", "-d", "-s -d", "-j", "-s -j", "-d -j",
                                         "-s -d -j", "-p -j", "-s -p -j", "-s -d -p -j" };
    static const char *const asks[] = { "qdisc show dev DEV", "qdisc show", "class show dev DEV",
        "qdisc show dev DEV root", "qdisc show dev DEV parent 1:10", "qdisc show dev DEV handle 1:",
        "class show dev DEV classid 1:10", "class show dev DEV parent 1:", "qdisc show dev DEV clsact",
        "filter show dev DEV", "filter show dev DEV parent 1:", "filter show dev DEV pref 3",
        "filter show dev DEV parent 1: protocol ip", "filter show dev DEV parent 2:" };
    struct desk live, kept;
    char line[200];

    desk_open(&live);
    desk_open(&kept);
    for (size_t i = 0; i < GW_ARRAY_LEN(kept_setups); i++) {
        desk_clear(&live);
        desk_clear(&kept);
        for (size_t k = 0; k < GW_ARRAY_LEN(kept_setups[i]) && kept_setups[i][k]; k++)
            CHECK_ROW(!run(&live, kept_setups[i][k]), "%s: %s", kept_setups[i][k], live.err.text);
        CU_ASSERT(gw_tc_keep(live.tree, take, &kept));
        for (size_t f = 0; f < GW_ARRAY_LEN(forms); f++)
            for (size_t a = 0; a < GW_ARRAY_LEN(asks); a++) {
                snprintf(line, sizeof line, "%s %s", forms[f], asks[a]);
                CU_ASSERT(!run(&live, line) && !run(&kept, line));
                CHECK_ROW(!strcmp(live.out, kept.out), "%s: %s: kept\n%s\nlive\n%s",
                          kept_setups[i][0], line, kept.out, live.out);
            }
    }
    desk_close(&live);
    desk_close(&kept);
}

static void shows(void)
{
    static const struct { const char *line; bool shows; } row[] = {
        { "qdisc show dev x", true },      { "-s -j qdisc", true },       { "q ls", true },
        { "qdisc add dev x root pfifo", false },   { "class del dev x classid 1:1", false },
        { "filter list dev x", true },     { "class replace dev x", false }, { "", true },
        { "bogus show", false },           { "help", true },
    };
    static const struct { const char *line; bool empty; } nothing[] = {
        { "", true },   { " \t", true },   { "# qdisc", true },   { "-s -j", true },
        { "''", false }, { "qdisc", false }, { "-s qdisc # all", false },
    };

    for (size_t i = 0; i < GW_ARRAY_LEN(row); i++) {
        uint32_t n = 0;
        char **word = gw_tc_split(row[i].line, &n);

        CHECK_ROW(gw_tc_shows(word, n) == row[i].shows, "%s", row[i].line);
        free(word[0]);
        free(word);
    }
    for (size_t i = 0; i < GW_ARRAY_LEN(nothing); i++) {
        uint32_t n = 0;
        char **word = gw_tc_split(nothing[i].line, &n);

        CHECK_ROW(gw_tc_empty(word, n) == nothing[i].empty, "%s", nothing[i].line);
        free(word[0]);
        free(word);
    }
}

/* ---- splitting ---------------------------------------------------------------------------- */

static const struct {
    const char *line;
    uint32_t count;
    const char *joined;          /* the words with | between them                              */
} splits[] = {
    { "", 0, "" },
    { "  \t ", 0, "" },
    { "a", 1, "a" },
    { " a  b ", 2, "a|b" },
    { "a 'b c' d", 3, "a|b c|d" },
    { "a\"b c\"d", 1, "ab cd" },
    { "'' x", 2, "|x" },
    { "'open end", 1, "open end" },
    { "it\"'\"s", 1, "it's" },
    { "# a", 0, "" },
    { " a b# #c d", 2, "a|b#" },
    { "'#a' b", 2, "#a|b" },
};

static void words_of_lines(void)
{
    for (size_t i = 0; i < GW_ARRAY_LEN(splits); i++) {
        uint32_t count = 99;
        char **word = gw_tc_split(splits[i].line, &count), joined[64] = "";

        CU_ASSERT_PTR_NOT_NULL_FATAL(word);
        CHECK_ROW(count == splits[i].count, "split(%s): got %u words", splits[i].line, count);
        for (uint32_t k = 0; k < count; k++) {
            strcat(joined, k ? "|" : "");
            strcat(joined, word[k]);
        }
        CHECK_ROW(!strcmp(joined, splits[i].joined), "split(%s): got %s", splits[i].line, joined);
        free(word[0]);
        free(word);
    }
}

static const struct gw_case cases[] = {
    { "recorded cases", recorded_cases },
    { "frames of commands", frames_of_commands },
    { "filter commands", filter_commands },
    { "filters choose classes", filters_choose },
    { "filters lead on to inner classes", filters_lead_on },
    { "filters of classes", filters_need_a_tree },
    { "a finished run shows the same", kept_shows },
    { "lines that only ask", shows },
    { "words of lines", words_of_lines },
    { NULL, NULL },
};

extern const struct gw_suite suite_tc_language;
const struct gw_suite suite_tc_language = { "tc_language", cases };
