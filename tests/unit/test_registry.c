/*
 * test_registry - the door: refusals by number, short structs, filled gaps, order, data files
 *
 * The descriptors here count every call of their code, to show that a refused plugin never runs.
 */
#include "tests/unit/suite.h"

#include "emu/core/registry.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static unsigned calls;           /* of plugin code                                             */
static unsigned drops;           /* told by the host's qdisc_drop                              */

static enum gw_verdict t_enqueue(struct gw_qdisc *q, struct gw_pkt *p, uint64_t now_ps)
{
    (void)now_ps;
    calls++;
    gw_pktq_push(q->priv, p);
    return GW_Q_QUEUED;
}

static struct gw_pkt *t_dequeue(struct gw_qdisc *q, uint64_t now_ps)
{
    (void)now_ps;
    calls++;
    return gw_pktq_pop(q->priv);
}

static uint32_t t_transit(struct gw_channel *c, struct gw_pkt *p, uint64_t sent_ps,
                          uint64_t *extra_ps)
{
    (void)c, (void)p, (void)sent_ps, (void)extra_ps;
    calls++;
    return GW_FATE_PASS;
}

static void t_drop(struct gw_qdisc *q, struct gw_pkt *p, enum gw_drop_reason why)
{
    (void)q, (void)p, (void)why;
    drops++;
}

struct t_conf {
    uint32_t limit;
};

static const struct gw_qdisc_ops t_ops = {
    .priv_bytes = sizeof(struct gw_pktq), .conf_bytes = sizeof(struct t_conf),
    .enqueue = t_enqueue, .dequeue = t_dequeue,
};
static const struct gw_channel_ops t_channel_ops = { .transit = t_transit };
static const struct gw_param t_rows[] = {
    { "limit", GW_P_U32, offsetof(struct t_conf, limit), "5", "1", "9", "Limit." },
};
static const struct gw_plugin t_good = {
    GW_PLUGIN_HEAD(GW_KIND_QDISC, t_ops), .name = "t-good", .summary = "A test.",
    .params = t_rows, .param_count = 1,
};

static struct gw_registry *fresh(bool reversed)
{
    struct gw_error err = { GW_OK, "" };
    struct gw_registry *r = gw_registry_new(reversed, &err);

    CHECK_ROW(r != NULL, "%s", err.text);
    CU_ASSERT_PTR_NOT_NULL_FATAL(r);
    return r;
}

static void test_refused(void)
{
    static const struct gw_param outside = { "x", GW_P_U64, 0, "", NULL, NULL, "h" };
    static const struct gw_param bad_default = { "x", GW_P_U32, 0, "7", "0", "5", "h" };
    static const struct gw_stat bad_stat = { "n", sizeof(struct gw_pktq) - 4, "h" };
    struct gw_qdisc_ops lacks = t_ops, half = t_ops, stat = t_ops;
    struct gw_channel_ops no_transit = { .priv_bytes = 0 };
    struct { const char *why; struct gw_plugin p; const char *says; } rows[] = {
        { "magic", t_good, "magic 0x12345678, expected 0x67775031" },
        { "major above", t_good, "built for interface 3.0, this is 2.0" },
        { "major below", t_good, "built for interface 1.0, this is 2.0" },
        { "minor above", t_good, "built for interface 2.1, this is 2.0" },
        { "short descriptor", t_good, "its descriptor has 16 bytes" },
        { "kind", t_good, "plugin of kind 99, allowed 0 to 7" },
        { "no ops", t_good, "no operations" },
        { "no ops bytes", t_good, "no operations" },
        { "name", t_good, "a plugin's name" },
        { "summary", t_good, "has no summary" },
        { "dequeue missing", t_good, "t-good lacks enqueue or dequeue" },
        { "ops too short for dequeue", t_good, "lacks enqueue or dequeue" },
        { "half classful", t_good, "lacks class_find" },
        { "row outside", t_good, "option x lies outside its configuration of 4 bytes" },
        { "default outside", t_good, "default: \"7\": allowed 0 to 5" },
        { "rows announced", t_good, "none is there" },
        { "counter outside", t_good, "counter n lies outside" },
        { "channel", t_good, "lacks transit" },
    };
    struct gw_registry *r = fresh(false);

    lacks.dequeue = NULL;
    half.graft = (void *)(uintptr_t)1;
    stat.stats = &bad_stat;
    stat.stat_count = 1;
    rows[0].p.magic = 0x12345678;
    rows[1].p.abi_major = GW_ABI_MAJOR + 1;
    rows[2].p.abi_major = GW_ABI_MAJOR - 1;
    rows[3].p.abi_minor = GW_ABI_MINOR + 1;
    rows[4].p.plugin_bytes = 16;
    rows[5].p.kind = 99;
    rows[6].p.ops = NULL;
    rows[7].p.ops_bytes = 0;
    rows[8].p.name = "No Good";
    rows[9].p.summary = NULL;
    rows[10].p.ops = &lacks;
    rows[11].p.ops_bytes = offsetof(struct gw_qdisc_ops, dequeue);
    rows[12].p.ops = &half;
    rows[13].p.params = &outside;
    rows[14].p.params = &bad_default;
    rows[15].p.params = NULL;
    rows[16].p.ops = &stat;
    rows[17].p.kind = GW_KIND_CHANNEL;
    rows[17].p.ops = &no_transit;
    rows[17].p.ops_bytes = sizeof no_transit;
    calls = 0;
    for (size_t i = 0; i < GW_ARRAY_LEN(rows); i++) {
        struct gw_error err = { GW_OK, "" };
        enum gw_status st = gw_registry_add(r, &rows[i].p, "./x.so", &err);

        CHECK_ROW(st != GW_OK && !strncmp(err.text, "./x.so: ", 8) &&
                  strstr(err.text, rows[i].says),
                  "%s: got %d \"%s\" want \"%s\"", rows[i].why, st, err.text, rows[i].says);
        if (i < 13)
            CHECK_ROW(st == GW_ABI, "%s: status %d", rows[i].why, st);
    }
    CU_ASSERT_EQUAL(calls, 0);
    CU_ASSERT_PTR_NULL(gw_registry_find(r, GW_KIND_QDISC, "t-good", NULL, NULL));
    gw_registry_free(r);
}

/* What a foreign interface number hides is never looked at: ops and name point nowhere. */
static void test_abi_first(void)
{
    struct gw_plugin p = t_good;
    struct gw_error err = { GW_OK, "" };
    struct gw_registry *r = fresh(false);

    p.abi_major = 7;
    p.ops = (const void *)(uintptr_t)8;
    p.name = (const char *)(uintptr_t)8;
    p.params = (const struct gw_param *)(uintptr_t)8;
    CU_ASSERT_EQUAL(gw_registry_add(r, &p, "x", &err), GW_ABI);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "7.0"));
    gw_registry_free(r);
}

/* An older plugin: both structs end earlier, followed by memory that must not be read. */
static void test_short(void)
{
    size_t ops_bytes = offsetof(struct gw_qdisc_ops, next_ps);
    size_t head = offsetof(struct gw_plugin, source);
    void *ops = malloc(ops_bytes);
    struct gw_plugin *p = malloc(head), full = t_good;
    struct gw_registry *r = fresh(false);
    struct gw_error err = { GW_OK, "" };
    const struct gw_entry *e;
    const struct gw_qdisc_ops *o;

    CU_ASSERT_FATAL(ops && p);
    memcpy(ops, &t_ops, ops_bytes);
    full.ops = ops;
    full.ops_bytes = (uint32_t)ops_bytes;
    full.plugin_bytes = (uint32_t)head;
    memcpy(p, &full, head);
    CHECK_ROW(gw_registry_add(r, p, "old.so", &err) == GW_OK, "%s", err.text);
    e = gw_registry_find(r, GW_KIND_QDISC, "t-good", NULL, &err);
    CU_ASSERT_PTR_NOT_NULL_FATAL(e);
    o = e->ops;
    CU_ASSERT_PTR_NULL(e->plugin->source);
    CU_ASSERT_STRING_EQUAL(e->origin, "old.so");
    CU_ASSERT(o->enqueue == t_enqueue && o->dequeue == t_dequeue);
    CU_ASSERT_PTR_NULL(o->class_find);
    CU_ASSERT_PTR_NULL(o->stats);
    CU_ASSERT_EQUAL(o->next_ps(NULL, 5), GW_NEVER);
    gw_registry_free(r);
    free(ops);
    free(p);
}

/* A newer plugin's longer structs: the rest is cut. */
static void test_long(void)
{
    struct { struct gw_qdisc_ops ops; uint64_t more[8]; } big = { t_ops, { 1, 2, 3 } };
    struct { struct gw_plugin p; uint64_t more[8]; } longer = { t_good, { 4 } };
    struct gw_registry *r = fresh(false);

    longer.p.ops = &big;
    longer.p.ops_bytes = sizeof big;
    longer.p.plugin_bytes = sizeof longer;
    CU_ASSERT_EQUAL(gw_registry_add(r, &longer.p, "new.so", NULL), GW_OK);
    CU_ASSERT_PTR_NOT_NULL(gw_registry_find(r, GW_KIND_QDISC, "t-good", NULL, NULL));
    gw_registry_free(r);
}

static void test_filled_qdisc(void)
{
    struct gw_host host = { .qdisc_drop = t_drop };
    struct gw_registry *r = fresh(false);
    struct gw_error err = { GW_OK, "" };
    struct gw_pktq queue = { NULL, NULL, 0, 0 };
    struct gw_pkt pkt[3] = { { .len_bytes = 1 } };
    struct gw_qdisc q = { .priv = &queue, .host = &host };
    uint64_t a, b;

    CU_ASSERT_EQUAL(gw_registry_add(r, &t_good, "x", &err), GW_OK);
    q.ops = gw_registry_find(r, GW_KIND_QDISC, "t-good", NULL, &err)->ops;
    CU_ASSERT_EQUAL(q.ops->init(&q, &err), GW_OK);
    CU_ASSERT_EQUAL(q.ops->next_ps(&q, 0), GW_NEVER);
    CU_ASSERT(!q.ops->fifo_limits(&q, &a, &b));
    CU_ASSERT_EQUAL(q.ops->change(&q, NULL, 0, 0, &err), GW_PARAM);
    for (int i = 0; i < 3; i++)
        q.ops->enqueue(&q, &pkt[i], 0);
    drops = 0;
    q.ops->reset(&q, 0);
    CU_ASSERT_EQUAL(drops, 3);
    CU_ASSERT_EQUAL(queue.count, 0);
    q.ops->fini(&q);
    gw_registry_free(r);
}

static enum gw_status t_build(struct gw_topology *t, struct gw_error *err)
{
    (void)t, (void)err;
    return GW_OK;
}

static enum gw_status t_next(struct gw_program *p, uint32_t iteration, struct gw_error *err)
{
    (void)p, (void)iteration, (void)err;
    return GW_OK;
}

static void t_fluid_start(struct gw_fluid *f, struct gw_fluid_flow *x, uint64_t now_ps)
{
    (void)f, (void)x, (void)now_ps;
}

static void t_cc(struct gw_cc *cc, uint64_t now_ps)
{
    (void)cc, (void)now_ps;
}

static void t_cc_ack(struct gw_cc *cc, const struct gw_cc_ack *ack)
{
    (void)cc, (void)ack;
}

static void t_cc_loss(struct gw_cc *cc, const struct gw_cc_ack *ack, bool is_ecn)
{
    (void)cc, (void)ack, (void)is_ecn;
}

/* The other kinds: what was missing can be called. */
static void test_filled_others(void)
{
    static const struct gw_topology_ops topo = { .build = t_build };
    static const struct gw_traffic_ops traffic = { .next = t_next };
    static const struct gw_transport_ops fluid = { .level = GW_TP_FLUID,
                                                   .fluid_start = t_fluid_start };
    static const struct gw_cc_ops cc = { .init = t_cc, .on_ack = t_cc_ack, .on_loss = t_cc_loss,
                                         .on_timeout = t_cc_ack };
    static const struct gw_plugin plugins[] = {
        { GW_PLUGIN_HEAD(GW_KIND_CHANNEL, t_channel_ops), .name = "t-x", .summary = "x" },
        { GW_PLUGIN_HEAD(GW_KIND_TOPOLOGY, topo), .name = "t-x", .summary = "x" },
        { GW_PLUGIN_HEAD(GW_KIND_TRAFFIC, traffic), .name = "t-x", .summary = "x" },
        { GW_PLUGIN_HEAD(GW_KIND_TRANSPORT, fluid), .name = "t-x", .summary = "x" },
        { GW_PLUGIN_HEAD(GW_KIND_CC, cc), .name = "t-x", .summary = "x" },
    };
    struct gw_registry *r = fresh(false);
    struct gw_host *h = gw_registry_host(r);
    const struct gw_channel_ops *c;
    const struct gw_topology_ops *t;
    const struct gw_traffic_ops *p;
    const struct gw_transport_ops *f;
    const struct gw_cc_ops *k;
    struct gw_error err = { GW_OK, "" };
    uint64_t frames = 9;

    for (size_t i = 0; i < GW_ARRAY_LEN(plugins); i++)
        CHECK_ROW(gw_registry_add(r, &plugins[i], "x", &err) == GW_OK, "%s", err.text);
    c = h->find(h, GW_KIND_CHANNEL, "t-x", NULL, &err);
    CU_ASSERT_FATAL(c && c->init(NULL, &err) == GW_OK && c->mean_loss(NULL, 1500) == 0);
    CU_ASSERT_EQUAL(c->change(NULL, NULL, 0, 0, NULL), GW_PARAM);
    c->fini(NULL);
    t = h->find(h, GW_KIND_TOPOLOGY, "t-x", NULL, &err);
    CU_ASSERT_FATAL(t && t->fini && !t->next_ports);
    t->fini(NULL);
    p = h->find(h, GW_KIND_TRAFFIC, "t-x", NULL, &err);
    CU_ASSERT_FATAL(p && p->job_init(NULL, &err) == GW_OK && p->rank_init(NULL, &err) == GW_OK);
    p->on_complete(NULL, 1, 0);
    p->rank_fini(NULL);
    p->job_fini(NULL);
    f = h->find(h, GW_KIND_TRANSPORT, "t-x", NULL, &err);
    CU_ASSERT_FATAL(f && f->fluid_init(NULL, &err) == GW_OK && !f->freeze(NULL));
    CU_ASSERT_EQUAL(f->wire_bytes(NULL, 1000, 1500, &frames), 1000);
    CU_ASSERT_EQUAL(frames, 0);
    k = h->find(h, GW_KIND_CC, "t-x", NULL, &err);
    CU_ASSERT_FATAL(k && k->on_undo);
    k->on_undo(NULL, 0);
    k->on_idle_restart(NULL, 0, 0);
    gw_registry_free(r);
}

/* Forwards or backwards, the table is the same: by kind, then name, each once. */
static void test_order(void)
{
    struct gw_registry *a = fresh(false), *b = fresh(true);
    const struct gw_entry *x, *y, *last = NULL;
    size_t n = 0;

    for (;; n++) {
        x = gw_registry_at(a, n);
        y = gw_registry_at(b, n);
        CU_ASSERT_FATAL(!x == !y);
        if (!x)
            break;
        CHECK_ROW(!strcmp(x->plugin->name, y->plugin->name) && x->plugin->kind == y->plugin->kind,
                  "entry %zu: %s and %s", n, x->plugin->name, y->plugin->name);
        CU_ASSERT_STRING_EQUAL(x->origin, "built in");
        CHECK_ROW(!last || last->plugin->kind < x->plugin->kind ||
                  (last->plugin->kind == x->plugin->kind &&
                   strcmp(last->plugin->name, x->plugin->name) < 0), "%s is out of order",
                  x->plugin->name);
        last = x;
    }
    CU_ASSERT(n >= 3);
    gw_registry_free(a);
    gw_registry_free(b);
}

static void test_find(void)
{
    struct gw_registry *r = fresh(false);
    struct gw_error err = { GW_OK, "" };

    CU_ASSERT_PTR_NOT_NULL(gw_registry_find(r, GW_KIND_QDISC, "pfifo", NULL, &err));
    CU_ASSERT_PTR_NULL(gw_registry_find(r, GW_KIND_CHANNEL, "pfifo", NULL, NULL));
    CU_ASSERT_PTR_NULL(gw_registry_find(r, GW_KIND_QDISC, "pfifi", "s.yaml:3:1", &err));
    CU_ASSERT_STRING_EQUAL(err.text,
                           "s.yaml:3:1: no qdisc is called \"pfifi\"; did you mean \"pfifo\"?");
    err.code = GW_OK;
    CU_ASSERT_PTR_NULL(gw_registry_find(r, GW_KIND_QDISC, "zzzzzzzzzz", NULL, &err));
    CHECK_ROW(strstr(err.text, "known are ") && strstr(err.text, "bfifo"), "got \"%s\"", err.text);
    gw_registry_free(r);
}

static void test_twice(void)
{
    struct gw_registry *r = fresh(false);
    struct gw_error err = { GW_OK, "" };

    CU_ASSERT_EQUAL(gw_registry_add(r, &t_good, "one.so", &err), GW_OK);
    CU_ASSERT_EQUAL(gw_registry_add(r, &t_good, "two.so", &err), GW_ABI);
    CU_ASSERT_STRING_EQUAL(err.text, "two.so: a qdisc called t-good stands already (one.so)");
    gw_registry_free(r);
}

static void test_load(void)
{
    struct gw_registry *r = fresh(false);
    struct gw_error err = { GW_OK, "" };

    CU_ASSERT_EQUAL(gw_registry_load(r, "/nowhere/x.so", &err), GW_IO);
    CHECK_ROW(strstr(err.text, "/nowhere/x.so: the plugin cannot be read") != NULL, "got \"%s\"",
              err.text);
    err.code = GW_OK;
    CU_ASSERT_EQUAL(gw_registry_load(r, "/etc/passwd", &err), GW_ABI);
    CHECK_ROW(strstr(err.text, "cannot be loaded") != NULL, "got \"%s\"", err.text);
#ifdef GW_TEST_BUILDDIR
    /* a built-in discipline as a shared object: opened, found, refused as the second of its name */
    err.code = GW_OK;
    CU_ASSERT_EQUAL(gw_registry_load(r, GW_TEST_BUILDDIR "/emu/qdisc/sch_pfifo.so", &err), GW_ABI);
    CHECK_ROW(strstr(err.text, "sch_pfifo.so: a qdisc called pfifo stands already (built in)") !=
              NULL, "got \"%s\"", err.text);
#endif
    gw_registry_free(r);
}

/* A shared object cut off anywhere is refused before the linker maps it; a pipe does not block. */
static void test_bad_files(void)
{
    char dir[] = "/tmp/gw-test-so-XXXXXX", path[64];
    struct gw_registry *r = fresh(false);
    struct gw_error err = { GW_OK, "" };
    FILE *f;

    CU_ASSERT_FATAL(mkdtemp(dir) != NULL);
    CU_ASSERT_EQUAL(gw_registry_load(r, dir, &err), GW_IO);
    CHECK_ROW(strstr(err.text, "this is no file but a directory") != NULL, "got \"%s\"", err.text);
    snprintf(path, sizeof path, "%s/x.so", dir);
    CU_ASSERT_FATAL(mkfifo(path, 0600) == 0);
    err.code = GW_OK;
    CU_ASSERT_EQUAL(gw_registry_load(r, path, &err), GW_IO);
    CHECK_ROW(strstr(err.text, "this is no file but a pipe") != NULL, "got \"%s\"", err.text);
    unlink(path);
#ifdef GW_TEST_BUILDDIR
    static char bytes[1 << 20];
    size_t n;

    f = fopen(GW_TEST_BUILDDIR "/emu/qdisc/sch_pfifo.so", "rb");
    CU_ASSERT_PTR_NOT_NULL_FATAL(f);
    n = fread(bytes, 1, sizeof bytes, f);
    fclose(f);
    CU_ASSERT_FATAL(n > 4096 && n < sizeof bytes);
    for (size_t cut = 0; cut < n; cut += cut < 64 ? 1 : n / 50) {
        f = fopen(path, "wb");
        CU_ASSERT_PTR_NOT_NULL_FATAL(f);
        CU_ASSERT_EQUAL(fwrite(bytes, 1, cut, f), cut);
        fclose(f);
        err.code = GW_OK;
        CHECK_ROW(gw_registry_load(r, path, &err) == GW_ABI &&
                      strstr(err.text, cut < 64 ? "no shared object" : "the file is cut off"),
                  "cut at %zu of %zu: \"%s\"", cut, n, err.text);
    }
    unlink(path);
#else
    (void)f;
#endif
    rmdir(dir);
    gw_registry_free(r);
}

static void write_file(const char *path, const char *text)
{
    FILE *f = fopen(path, "w");

    CU_ASSERT_PTR_NOT_NULL_FATAL(f);
    fputs(text, f);
    fclose(f);
}

/* Study folder first, then the shelf; with and without .csv; never a directory. */
static void test_open_data(void)
{
    static const struct { const char *name; int want; } rows[] = {
        { "here.csv", 'h' }, { "here", 'h' }, { "both", 's' }, { "shelved", 'd' },
        { "shelved.csv", 'd' }, { "folder", 'f' }, { "missing", 0 }, { "", 0 },
        { "marked", 'm' }, { "half", 0xef }, { "empty", EOF },   /* byte-order marks           */
    };
    char dir[] = "/tmp/gw-test-reg-XXXXXX", path[512], taken[512], old[512];
    const char *env = getenv("GRADWIRE_DATA");
    struct gw_registry *r = fresh(false);
    struct gw_host *h = gw_registry_host(r);

    snprintf(old, sizeof old, "%s", env ? env : "");
    CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(dir));
    setenv("GRADWIRE_DATA", dir, 1);
#define IN_DIR(name) (snprintf(path, sizeof path, "%s/%s", dir, name), path)
    CU_ASSERT_EQUAL(mkdir(IN_DIR("study"), 0700) | mkdir(IN_DIR("models"), 0700) |
                    mkdir(IN_DIR("study/folder"), 0700), 0);
    write_file(IN_DIR("study/here.csv"), "h");
    write_file(IN_DIR("study/both.csv"), "s");
    write_file(IN_DIR("study/marked.csv"), "\xef\xbb\xbfm");
    write_file(IN_DIR("study/half.csv"), "\xef\xbbm");
    write_file(IN_DIR("study/empty.csv"), "");
    write_file(IN_DIR("models/both.csv"), "d");
    write_file(IN_DIR("models/shelved.csv"), "d");
    write_file(IN_DIR("models/folder.csv"), "f");
    IN_DIR("study");
    for (size_t i = 0; i < GW_ARRAY_LEN(rows); i++) {
        struct gw_error err = { GW_OK, "" };
        FILE *f = h->open_data(h, path, "models", rows[i].name, taken, sizeof taken, &err);

        CHECK_ROW(!f == !rows[i].want && (!f || fgetc(f) == rows[i].want), "%s: wrong file %s (%s)",
                  rows[i].name, f ? taken : "-", err.text);
        if (f)
            fclose(f);
        else
            CHECK_ROW(err.code == GW_IO, "%s: no sentence", rows[i].name);
        if (!strcmp(rows[i].name, "missing"))
            CHECK_ROW(strstr(err.text, "/study/missing, ") &&
                      strstr(err.text, "/models/missing.csv"), "got \"%s\"", err.text);
    }
    static const char *const files[] = { "study/here.csv", "study/both.csv", "models/both.csv",
                                         "models/shelved.csv", "models/folder.csv" };
    for (size_t i = 0; i < GW_ARRAY_LEN(files); i++)
        unlink(IN_DIR(files[i]));
    rmdir(IN_DIR("study/folder"));
    rmdir(IN_DIR("study"));
    rmdir(IN_DIR("models"));
    rmdir(dir);
    if (env)
        setenv("GRADWIRE_DATA", old, 1);
    else
        unsetenv("GRADWIRE_DATA");
    gw_registry_free(r);
}

static void test_host(void)
{
    struct gw_registry *r = fresh(false);
    struct gw_host *h = gw_registry_host(r);
    struct gw_rng a, b;
    char *p;

    CU_ASSERT_EQUAL(h->host_bytes, sizeof(struct gw_host));
    CU_ASSERT(h->abi_major == GW_ABI_MAJOR && h->abi_minor == GW_ABI_MINOR);
    p = h->alloc(100);
    CU_ASSERT_FATAL(p && p[0] == 0 && p[99] == 0);
    p = h->resize(p, 1000);
    CU_ASSERT_PTR_NOT_NULL(p);
    h->release(p);
    h->rng_open(&a, 5, "x");
    gw_rng_open(&b, 5, "x");
    CU_ASSERT_EQUAL(gw_rng_u64(&a), gw_rng_u64(&b));
    CU_ASSERT_PTR_EQUAL(h->registry, r);
    CU_ASSERT_PTR_NOT_NULL(h->find(h, GW_KIND_CHANNEL, "bernoulli", NULL, NULL));
    CU_ASSERT_PTR_NULL(h->find(h, GW_KIND_CHANNEL, "nothing", NULL, NULL));
    CU_ASSERT_STRING_EQUAL(gw_kind_name(GW_KIND_QDISC), "qdisc");
    CU_ASSERT_STRING_EQUAL(gw_kind_name(GW_KIND_ANALYSIS), "analysis");
    gw_registry_free(r);
}

static const struct gw_case cases[] = {
    { "refused descriptors", test_refused },
    { "interface numbers come first", test_abi_first },
    { "shorter structs load", test_short },
    { "longer structs load", test_long },
    { "gaps filled: qdisc", test_filled_qdisc },
    { "gaps filled: other kinds", test_filled_others },
    { "order of registration", test_order },
    { "find", test_find },
    { "the same name twice", test_twice },
    { "shared objects", test_load },
    { "files that are no plugins", test_bad_files },
    { "data files", test_open_data },
    { "host table", test_host },
    { NULL, NULL },
};
const struct gw_suite suite_registry = { "registry", cases };
