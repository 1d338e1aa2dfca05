/*
 * test_tc_language - tc lines against what iproute2 6.1 and Linux 6.1 answered
 *
 * tests/data/tc/language.json holds lines with exit code, first error line and the state afterwards,
 * recorded on a real kernel. Each case runs on a fresh scratch device; exit codes must be equal, the
 * JSON of `-s -j qdisc show` must be equal (key order and refcnt aside, numbers within 1e-9 + 1e-6
 * relative), and so must the texts of show, automatic handles being mapped in order of appearance.
 * The table at the end counts failures by group. Below it: more lines, recorded the same way, for
 * what the cases leave out, and filters against packets.
 */
#include "tests/unit/suite.h"

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

static const struct gw_case cases[] = {
    { "recorded cases", recorded_cases },
    { NULL, NULL },
};

extern const struct gw_suite suite_tc_language;
const struct gw_suite suite_tc_language = { "tc_language", cases };
