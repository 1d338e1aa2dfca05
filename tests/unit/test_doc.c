/*
 * test_doc - trees and positions, refusals, --set, unused keys, writing
 */
#include "tests/unit/suite.h"

#include "emu/core/doc.h"

#include <stdlib.h>
#include <unistd.h>

static struct gw_doc *parse(const char *text, struct gw_error *err)
{
    err->code = GW_OK;
    err->text[0] = '\0';
    return gw_doc_parse(text, strlen(text), "s.yaml", err);
}

/* Follows "a.1.b" without marking anything. */
static struct gw_value *at(struct gw_value *v, const char *path)
{
    char copy[200], *save = NULL;

    snprintf(copy, sizeof copy, "%s", path);
    for (char *w = strtok_r(copy, ".", &save); w && v; w = strtok_r(NULL, ".", &save)) {
        struct gw_value *c = v->child;

        if (v->kind == GW_V_LIST)
            for (int i = atoi(w); c && i; i--)
                c = c->next;
        else
            while (c && strcmp(c->key, w) != 0)
                c = c->next;
        v = c;
    }
    return v;
}

static const char study[] =
    "schema: 1\n"
    "name: two sites, one lossy link\n"
    "topology:\n"
    "  kind: two-site                # a generator\n"
    "  nic: {rate: 25gbit, delay: 1us}\n"
    "tc:\n"
    "  - \"qdisc add dev wan:a root handle 1: netem loss 1%\"\n"
    "  - qdisc add dev wan:b root pfifo limit 5\n"
    "jobs:\n"
    "  - name: train\n"
    "    ranks: [a0, b0]\n"
    "    model: ''\n"
    "    empty:\n"
    "  - {name: probe, from: a0}\n"
    "note: |\n"
    "  two\n"
    "  lines\n";

static void test_tree(void)
{
    static const struct { const char *path; enum gw_value_kind kind; const char *text;
                          bool quoted; uint32_t line, col; } rows[] = {
        { "schema", GW_V_SCALAR, "1", false, 1, 1 },
        { "name", GW_V_SCALAR, "two sites, one lossy link", false, 2, 1 },
        { "topology", GW_V_MAP, NULL, false, 3, 1 },
        { "topology.kind", GW_V_SCALAR, "two-site", false, 4, 3 },
        { "topology.nic.delay", GW_V_SCALAR, "1us", false, 5, 23 },
        { "tc", GW_V_LIST, NULL, false, 6, 1 },
        { "tc.0", GW_V_SCALAR, "qdisc add dev wan:a root handle 1: netem loss 1%", true, 7, 5 },
        { "tc.1", GW_V_SCALAR, "qdisc add dev wan:b root pfifo limit 5", false, 8, 5 },
        { "jobs.0.ranks.1", GW_V_SCALAR, "b0", false, 11, 17 },
        { "jobs.0.model", GW_V_SCALAR, "", true, 12, 5 },
        { "jobs.0.empty", GW_V_SCALAR, "", false, 13, 5 },
        { "jobs.1", GW_V_MAP, NULL, false, 14, 5 },
        { "jobs.1.from", GW_V_SCALAR, "a0", false, 14, 19 },
        { "note", GW_V_SCALAR, "two\nlines\n", true, 15, 1 },
    };
    struct gw_error err;
    struct gw_doc *d = parse(study, &err);

    CHECK_ROW(d != NULL, "%s", err.text);
    for (size_t i = 0; d && i < GW_ARRAY_LEN(rows); i++) {
        struct gw_value *v = at(gw_doc_root(d), rows[i].path);

        CHECK_ROW(v && v->kind == rows[i].kind, "%s: missing or of another kind", rows[i].path);
        if (!v)
            continue;
        CHECK_ROW(rows[i].text ? v->text && !strcmp(v->text, rows[i].text) : !v->text,
                  "%s: got \"%s\"", rows[i].path, v->text ? v->text : "(null)");
        CHECK_ROW(v->quoted == rows[i].quoted, "%s: quoted %d", rows[i].path, v->quoted);
        CHECK_ROW(v->line == rows[i].line && v->col == rows[i].col && !strcmp(v->file, "s.yaml"),
                  "%s: at %s:%u:%u", rows[i].path, v->file, v->line, v->col);
        CHECK_ROW(v->parent && !v->used, "%s: parent or used", rows[i].path);
    }
    gw_doc_free(d);
}

static void test_refused(void)
{
    static const struct { const char *text, *says; } rows[] = {
        { "", "s.yaml:1:1: the file is empty" },
        { "# only a comment\n", "s.yaml:1:1: the file is empty" },
        { "---\n", "the file is empty" },
        { "- a\n- b\n", "s.yaml:1:1: the file holds a list; a map of keys is expected" },
        { "word\n", "s.yaml:1:1: the file holds a single value" },
        { "a: 1\nb: 2\na: 3\n", "s.yaml:3:1: the key \"a\" stands already in line 1" },
        { "x: {a: 1, b: 2, b: 3}\n", "s.yaml:1:17: the key \"b\" stands already in line 1" },
        { "a: 1\n\"a\": 2\n", "s.yaml:2:1: the key \"a\" stands already" },
        { "z: 1\ny: 1\nz: 1\ny: 1\n", "s.yaml:3:1: the key \"z\"" },
        { "a: 1\n---\nb: 2\n", "s.yaml:2:1: a second document" },
        { "a: {b: 1,\n", "the file ends too early" },
        { "a: [1, 2\n", "the file ends too early" },
        { "a: \"text\n", "the file ends too early" },
        { "a:\n  b: 1\n c: 2\n", "s.yaml:3:" },
        { "a: b: c\n", "s.yaml:1:5: mapping values are not allowed" },
        { "a:\n\t- x\n", "s.yaml:2:1: " },
        { "a: *none\n", "s.yaml:1:4: no anchor &none stands before" },
        { "a: &x {b: *x}\n", "s.yaml:1:11: the alias *x stands inside what it names" },
        { "a: &x {b: 1}\nc: {<<: *x}\n", "s.yaml:2:5: merge keys" },
        { "a: &x {b: 1}\ntc: [*x]\n", "s.yaml:2:6: a tc line is one text" },
        { "a: !!python/object:os.system x\n", "s.yaml:1:4: the tag" },
        { "a: !mine 5\n", "s.yaml:1:4: the tag !mine has no meaning" },
        { "? [a, b]\n: 1\n", "s.yaml:1:3: a key must be a plain word" },
        { "? {a: 1}\n: 1\n", "a key must be a plain word" },
        { "?\n: 1\n", "a key must be one line" },
        { "a: \"x\\0y\"\n", "s.yaml:1:4: the text holds a zero byte" },
        { "a: 1\nb: \x01\n", "s.yaml:2:4: this is no text file" },
        { "a: 1\nb: \xff\n", "s.yaml:2:4: this is no text file" },
        { "\x7f" "ELF\x02\x01\x01", "this is no text file" },
        { "a: [", "the file ends too early" },
        { "%YAML 9.9\n---\na: 1\n", "s.yaml:1:1: " },
    };

    for (size_t i = 0; i < GW_ARRAY_LEN(rows); i++) {
        struct gw_error err;
        struct gw_doc *d = parse(rows[i].text, &err);

        CHECK_ROW(!d && err.code == GW_SYNTAX && strstr(err.text, rows[i].says),
                  "row %zu \"%s\": got \"%s\" want \"%s\"", i, rows[i].text, err.text,
                  rows[i].says);
        gw_doc_free(d);
    }
}

/* A zero byte in the file itself, and text of a known length that no zero byte ends. */
static void test_binary(void)
{
    static const char zero[] = "a: 1\nb: x\0y\n", cut[] = { 'a', ':', ' ', '1', '2' };
    struct gw_error err = { GW_OK, "" };
    struct gw_doc *d = gw_doc_parse(zero, sizeof zero - 1, "s.yaml", &err);

    CHECK_ROW(!d && strstr(err.text, "s.yaml:2:5: this is no text file"), "got \"%s\"", err.text);
    err.code = GW_OK;
    d = gw_doc_parse(cut, 4, "s.yaml", &err);
    CU_ASSERT_PTR_NOT_NULL_FATAL(d);
    CU_ASSERT_STRING_EQUAL(at(gw_doc_root(d), "a")->text, "1");
    gw_doc_free(d);
}

static void test_tc_lines(void)
{
    static const char line[] = "\"qdisc add dev wan:a root handle 1: netem loss 1%\"";
    static const struct { const char *text; int at_line; } rows[] = {
        { "tc:\n  - qdisc add dev wan:a root handle 1: netem loss 1%\n", 2 },
        { "a: 1\ntc:\n- qdisc add dev wan:b root pfifo\n"
          "- qdisc add dev wan:a root handle 1: netem loss 1%\n", 4 },
        { "tc: [qdisc add dev wan:a root handle 1: netem loss 1%]\n", 1 },
        { "tc:\n  qdisc add dev wan:a root handle 1: netem loss 1%\n", 2 },
        { "events:\n  - at: 5s\n    tc: qdisc add dev wan:a root handle 1: netem loss 1%\n", 3 },
        { "events:\n  - {at: 5s, tc: qdisc add dev wan:a root handle 1: netem loss 1%}\n", 2 },
        { "tc:\n  - \"qdisc add dev wan:a root handle 1: netem\" loss 1%\n", 2 },
    };
    struct gw_error err;
    struct gw_doc *d;
    char where[32];

    for (size_t i = 0; i < GW_ARRAY_LEN(rows); i++) {
        d = parse(rows[i].text, &err);
        snprintf(where, sizeof where, "s.yaml:%d:", rows[i].at_line);
        CHECK_ROW(!d && !strncmp(err.text, where, strlen(where)) && strstr(err.text, line),
                  "row %zu: got \"%s\"", i, err.text);
        gw_doc_free(d);
    }
    d = parse("tc:\n  - qdisc add dev wan:a root handle 1:\n", &err);
    CHECK_ROW(!d && strstr(err.text, "\"qdisc add dev wan:a root handle 1:\""), "got \"%s\"",
              err.text);
    gw_doc_free(d);
}

/* Ten levels of ten aliases each would be 10^10 values. */
static void test_bombs(void)
{
    char text[4096], *p = text;
    struct gw_error err;
    struct gw_doc *d;

    p += sprintf(p, "a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n");
    for (int i = 1; i < 10; i++) {
        p += sprintf(p, "a%d: &a%d [", i, i);
        for (int k = 0; k < 10; k++)
            p += sprintf(p, "%s*a%d", k ? "," : "", i - 1);
        p += sprintf(p, "]\n");
    }
    d = parse(text, &err);
    CHECK_ROW(!d && strstr(err.text, "aliases expand too far"), "got \"%s\"", err.text);

    memset(text, '[', 200);
    memcpy(text, "a: ", 3);
    text[200] = '\0';
    d = parse(text, &err);
    CHECK_ROW(!d && strstr(err.text, "nest too deep"), "got \"%s\"", err.text);

    p = text + sprintf(text, "b0: &b0 [[[[[[[[[[x]]]]]]]]]]\n");
    for (int i = 1; i < 9; i++)
        p += sprintf(p, "b%d: &b%d [[[[[[[[[*b%d]]]]]]]]]\n", i, i, i - 1);
    d = parse(text, &err);
    CHECK_ROW(!d && strstr(err.text, "nest too deep"), "got \"%s\"", err.text);

    d = parse("a: &x {b: [1, 2]}\nc: *x\nd: [*x, &y z, *y]\n", &err);
    CU_ASSERT_PTR_NOT_NULL_FATAL(d);
    CU_ASSERT_STRING_EQUAL(at(gw_doc_root(d), "c.b.1")->text, "2");
    CU_ASSERT_STRING_EQUAL(at(gw_doc_root(d), "d.2")->text, "z");
    CU_ASSERT_PTR_NOT_EQUAL(at(gw_doc_root(d), "c.b"), at(gw_doc_root(d), "a.b"));
    CU_ASSERT_STRING_EQUAL(at(gw_doc_root(d), "c")->key, "c");
    CU_ASSERT_PTR_NULL(at(gw_doc_root(d), "d.0")->key);
    gw_doc_free(d);
}

/* Editors of Windows begin a file in UTF-8 with a byte order mark. */
static void test_byte_order_mark(void)
{
    struct gw_error err;
    struct gw_doc *d = parse("\xef\xbb\xbf" "a: 1\nb: x\n", &err);

    CU_ASSERT_PTR_NOT_NULL_FATAL(d);
    CU_ASSERT_STRING_EQUAL(at(gw_doc_root(d), "a")->text, "1");
    CHECK_ROW(at(gw_doc_root(d), "a")->line == 1 && at(gw_doc_root(d), "a")->col == 1, "%u:%u",
              at(gw_doc_root(d), "a")->line, at(gw_doc_root(d), "a")->col);
    gw_doc_free(d);
    d = parse("\xef\xbb\xbf", &err);
    CHECK_ROW(!d && strstr(err.text, "the file is empty"), "got \"%s\"", err.text);
}

static void test_load(void)
{
    char path[] = "/tmp/gw-test-doc-XXXXXX";
    int fd = mkstemp(path);
    struct gw_error err = { GW_OK, "" };
    struct gw_doc *d;

    CU_ASSERT_FATAL(fd >= 0);
    CU_ASSERT_EQUAL(write(fd, study, sizeof study - 1), (ssize_t)(sizeof study - 1));
    close(fd);
    d = gw_doc_load(path, &err);
    CHECK_ROW(d != NULL, "%s", err.text);
    if (d)
        CU_ASSERT_STRING_EQUAL(gw_doc_root(d)->file, path);
    gw_doc_free(d);
    unlink(path);
    CU_ASSERT_PTR_NULL(gw_doc_load(path, &err));
    CHECK_ROW(err.code == GW_IO && strstr(err.text, "No such file"), "got \"%s\"", err.text);
    err.code = GW_OK;
    CU_ASSERT_PTR_NULL(gw_doc_load("/", &err));
    CHECK_ROW(err.code == GW_IO, "got \"%s\"", err.text);
}

static void test_set(void)
{
    static const struct { const char *set, *path, *want; } rows[] = {
        { "topology.nic.rate=100gbit", "topology.nic.rate", "100gbit" },
        { "topology.wan.delay=40ms", "topology.wan.delay", "40ms" },
        { "topology.a.b.c.d=1", "topology.a.b.c.d", "1" },
        { "jobs.train.iterations=5", "jobs.0.iterations", "5" },
        { "jobs.probe.from=b0", "jobs.1.from", "b0" },
        { "jobs.1.to=b1", "jobs.1.to", "b1" },
        { "jobs.2.name=new", "jobs.2.name", "new" },
        { "tc.0=qdisc add dev wan:a root handle 1: netem loss 2%", "tc.0",
          "qdisc add dev wan:a root handle 1: netem loss 2%" },
        { "tc.2=qdisc del dev wan:a root", "tc.2", "qdisc del dev wan:a root" },
        { "jobs.train.ranks=[b0, a0]", "jobs.0.ranks.0", "b0" },
        { "topology.nic={rate: 1gbit, mtu: 9000}", "topology.nic.mtu", "9000" },
        { "topology.kind=star", "topology.kind", "star" },
        { "name=a=b", "name", "a=b" },
        { "name=\"quoted: text\"", "name", "quoted: text" },
        { "name=", "name", "" },
        { "jobs.train.empty.sub=1", "jobs.0.empty.sub", "1" },
        { "events.0.at=5s", "events.0.at", "5s" },
        { "name=  spaces  ", "name", "spaces" },
        { "name=Z\xc3\xbcrich", "name", "Z\xc3\xbcrich" },
    };
    struct gw_error err;

    for (size_t i = 0; i < GW_ARRAY_LEN(rows); i++) {
        struct gw_doc *d = parse(study, &err);
        enum gw_status st;
        struct gw_value *v;

        CU_ASSERT_PTR_NOT_NULL_FATAL(d);
        st = gw_doc_set(d, rows[i].set, &err);
        v = at(gw_doc_root(d), rows[i].path);
        CHECK_ROW(!st && v && v->text && !strcmp(v->text, rows[i].want),
                  "%s: got %d \"%s\" (%s)", rows[i].set, st, v && v->text ? v->text : "-",
                  err.text);
        if (v)
            CU_ASSERT_STRING_EQUAL(v->file, "--set");
        gw_doc_free(d);
    }
}

/* Keys that hold dots are found whole. */
static void test_set_dots(void)
{
    struct gw_error err;
    struct gw_doc *d = parse("links: {geant.de-fr: {rate: 1gbit}, geant: {x: 1}}\n", &err);

    CU_ASSERT_PTR_NOT_NULL_FATAL(d);
    CU_ASSERT_EQUAL(gw_doc_set(d, "links.geant.de-fr.rate=5gbit", &err), GW_OK);
    CU_ASSERT_STRING_EQUAL(gw_doc_root(d)->child->child->child->text, "5gbit");
    CU_ASSERT_EQUAL(gw_doc_set(d, "links.geant.x=2", &err), GW_OK);
    CU_ASSERT_STRING_EQUAL(gw_doc_root(d)->child->child->next->child->text, "2");
    gw_doc_free(d);
}

static void test_set_refused(void)
{
    static const struct { const char *set, *says; } rows[] = {
        { "noequals", "write path=value" },
        { "=5", "write path=value" },
        { "name.sub=5", "would stand under a single value" },
        { "jobs.nobody.x=5", "no entry called \"nobody\"" },
        { "jobs.7.x=5", "a number from 0 to 2" },
        { "tc.5=x", "a number from 0 to 2" },
        { "topology..x=5", "each part of the path" },
        { "topology.nic={rate: 1gbit", "--set: the file ends too early" },
        { "topology.nic={a: 1, a: 2}", "the key \"a\" stands already" },
        { "tc.0={qdisc add dev x handle 1: netem}", "a tc line is one text" },
        { "na\nme=1", "a line break" },
        { "tc=[x, [y, {qdisc: 1}]]", "a tc line is one text" },
        { "events.0.tc.x=1", "a tc line is one text" },
        { "a.b.c.d.e.f.g.h.i.j.k.l.m.n.o.p.q.r.s.t.u.v.w.x.y.z.a.b.c.d.e.f.g.h.i.j.k.l.m.n.o.p.q."
          "r.s.t.u.v.w.x.y.z.a.b.c.d.e.f.g.h.i.j.k.l=1", "nest deeper than 64" },
        { "name=\xff\xfe", "not UTF-8" },
        { "name=\xc0\x80", "not UTF-8" },
    };
    struct gw_error err;

    for (size_t i = 0; i < GW_ARRAY_LEN(rows); i++) {
        struct gw_doc *d = parse(study, &err);

        CU_ASSERT_PTR_NOT_NULL_FATAL(d);
        CHECK_ROW(gw_doc_set(d, rows[i].set, &err) != GW_OK && strstr(err.text, rows[i].says),
                  "%s: got \"%s\" want \"%s\"", rows[i].set, err.text, rows[i].says);
        gw_doc_free(d);
    }
}

static void mark_all(struct gw_value *v)
{
    v->used = true;
    for (struct gw_value *c = v->child; c; c = c->next)
        mark_all(c);
}

static void test_unused(void)
{
    static const char *const known[] = { "topology", "jobs", "schema", NULL };
    struct gw_error err;
    struct gw_doc *d = parse("schema: 1\ntoplogy: {kind: star}\njobs:\n  - {name: x, odd: 1}\n",
                             &err);
    struct gw_value *r;

    CU_ASSERT_PTR_NOT_NULL_FATAL(d);
    r = gw_doc_root(d);
    CU_ASSERT_PTR_NOT_NULL(gw_value_get(r, "schema"));
    CU_ASSERT_PTR_NULL(gw_value_get(r, "nothing"));
    CU_ASSERT_PTR_NULL(gw_value_get(NULL, "schema"));
    CU_ASSERT_EQUAL(gw_doc_unused(r, known, &err), GW_PARAM);
    CU_ASSERT_STRING_EQUAL(err.text,
                           "s.yaml:2:1: unknown key \"toplogy\"; did you mean \"topology\"?");
    mark_all(r);
    CU_ASSERT_EQUAL(gw_doc_unused(r, known, &err), GW_OK);
    at(r, "jobs.0.odd")->used = false;
    err.code = GW_OK;
    CU_ASSERT_EQUAL(gw_doc_unused(r, known, &err), GW_PARAM);
    CHECK_ROW(strstr(err.text, "s.yaml:4:15: unknown key \"odd\"") != NULL, "got \"%s\"",
              err.text);
    gw_doc_free(d);
}

static bool same(const struct gw_value *a, const struct gw_value *b)
{
    if (a->kind != b->kind || !a->key != !b->key || (a->key && strcmp(a->key, b->key)) ||
        !a->text != !b->text || (a->text && strcmp(a->text, b->text)))
        return false;
    if (a->kind == GW_V_SCALAR && !*a->text && a->quoted != b->quoted)
        return false;
    for (a = a->child, b = b->child; a && b; a = a->next, b = b->next)
        if (!same(a, b))
            return false;
    return !a && !b;
}

static void test_dump(void)
{
    static const char *const rows[] = {
        study,
        "a: 1\n", "a: {}\nb: []\n", "{}\n", "a: [[1, [2, 3]], {x: [y]}, [], {}]\n",
        "a: [{b: {c: d}, e: [f, {g: h}]}, k]\n",
        "a: ''\nb:\nc: ~\nd: 'null'\ne: \"it's\"\nf: 'say \"hi\"'\n",
        "'key: odd': 1\n'#k': 2\n'-': 3\n'? x': 4\n'': 5\n",
        "'key: odd': 1\n'#k': 2\n'-': 3\n'? x': 4\n' lead': 5\n'trail ': 6\n",
        "a: \"tab\\there\"\nb: \"line\\nbreak\\n\"\nc: \"bell\\a esc\\e back\\\\slash\"\n",
        "a: |\n  literal\n    more\n\n  end\nb: >\n  folded\n  text\n",
        "a: Z\xc3\xbcrich\nb: \"\\u00a0\\u2028\\ufeff\\U0001f600\"\nc: \xe6\x9d\xb1\xe4\xba\xac\n",
        "a: -5\nb: - 5\n", "a: -5\nb: ?x\nc: :y\nd: x:y\ne: 'x: y'\nf: 'x #y'\ng: x#y\n",
        "a: ---x\nb: ...\nc: '--- x'\n", "a: \"%\"\nb: '@x'\nc: '`x'\nd: 5%\n",
        "a: &x {b: [1]}\nk: [*x, ~, *x]\nl: *x\n",
        "a: [\"x\", ' ', '']\n", "'<<': 1\n", "a: 'yes'\nb: 012\n",
    };
    struct gw_error err;

    for (size_t i = 0; i < GW_ARRAY_LEN(rows); i++) {
        struct gw_doc *d = parse(rows[i], &err), *back;
        char *text;

        if (!d) {                       /* rows 7 and 12 are refused by themselves */
            CHECK_ROW(i == 7 || i == 12, "row %zu: %s", i, err.text);
            continue;
        }
        text = gw_doc_dump(gw_doc_root(d));
        CU_ASSERT_PTR_NOT_NULL_FATAL(text);
        back = parse(text, &err);
        CHECK_ROW(back && same(gw_doc_root(d), gw_doc_root(back)), "row %zu: wrote\n%s(%s)", i,
                  text, err.text);
        free(text);
        gw_doc_free(back);
        gw_doc_free(d);
    }
}

static void test_dump_form(void)
{
    struct gw_error err;
    struct gw_doc *d = parse("topology: {kind: star, nic: {rate: 1gbit}}\n"
                             "jobs: [{name: a, ranks: [x, y]}, {name: 'b: c'}]\n", &err);
    char *text;

    CU_ASSERT_PTR_NOT_NULL_FATAL(d);
    CU_ASSERT_PTR_NOT_NULL(gw_doc_scalar(d, gw_doc_root(d), "seed", "7"));
    CU_ASSERT_PTR_NOT_NULL(gw_doc_scalar(d, at(gw_doc_root(d), "topology"), "kind", "pair"));
    CU_ASSERT_PTR_NOT_NULL(gw_doc_scalar(d, gw_doc_root(d), "note", "x: y"));
    text = gw_doc_dump(gw_doc_root(d));
    CU_ASSERT_PTR_NOT_NULL_FATAL(text);
    CHECK_ROW(!strcmp(text, "topology:\n  kind: pair\n  nic:\n    rate: 1gbit\n"
                            "jobs:\n  - name: a\n    ranks:\n      - x\n      - y\n"
                            "  - name: \"b: c\"\nseed: 7\nnote: \"x: y\"\n"), "got\n%s", text);
    free(text);
    gw_doc_free(d);
}

static const struct gw_case cases[] = {
    { "tree and positions", test_tree },
    { "refused files", test_refused },
    { "binary files", test_binary },
    { "tc lines that YAML took apart", test_tc_lines },
    { "aliases and depth are bounded", test_bombs },
    { "byte order mark", test_byte_order_mark },
    { "files", test_load },
    { "set", test_set },
    { "set: keys with dots", test_set_dots },
    { "set: refused", test_set_refused },
    { "unused keys", test_unused },
    { "written and read back", test_dump },
    { "written form", test_dump_form },
    { NULL, NULL },
};
const struct gw_suite suite_doc = { "doc", cases };
