/*
 * registry.c - every plugin, built in or loaded, comes in by gw_registry_add()
 *
 * The order of the checks is the point: magic and interface numbers first, then sizes, then names
 * and option rows, then callbacks; all of it is data, so a plugin that was built for another
 * interface never runs. Descriptor and ops are copied by the smaller size into zeroed full-length
 * structs, so that an older, shorter plugin loads; a missing optional callback becomes a harmless
 * one here, once, and is never asked for on the packet path. What has a meaning when it is missing
 * (classes of a qdisc, routes by arithmetic of a topology) stays NULL.
 *
 * Entries are kept in order of kind and name, so nothing depends on the order of registration.
 */
#include "emu/core/registry.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "emu/core/plugin_file.h"
#include "emu/core/text.h"

union ops {                       /* full-length copy of any kind's ops                        */
    struct gw_qdisc_ops      qdisc;
    struct gw_channel_ops    channel;
    struct gw_transport_ops  transport;
    struct gw_cc_ops         cc;
    struct gw_topology_ops   topology;
    struct gw_traffic_ops    traffic;
    struct gw_collective_ops collective;
    struct gw_analysis_ops   analysis;
};

struct slot {
    struct gw_entry  entry;       /* what callers see; points into this slot                   */
    struct gw_plugin plugin;
    union ops        ops;
    char            *origin;
};

struct gw_registry {
    struct slot **slot;           /* in order of kind, then name                               */
    size_t        count, cap;
    void        **handle;         /* of loaded shared objects                                  */
    size_t        handles;
    struct gw_host host;
};

/* ---- harmless callbacks ------------------------------------------------------------------- */

static enum gw_status qdisc_init(struct gw_qdisc *q, struct gw_error *err)
{
    (void)q, (void)err;
    return GW_OK;
}

static void qdisc_fini(struct gw_qdisc *q)
{
    (void)q;
}

/* A work-conserving discipline never waits for time. */
static uint64_t qdisc_never(struct gw_qdisc *q, uint64_t now_ps)
{
    (void)q, (void)now_ps;
    return GW_NEVER;
}

static enum gw_status qdisc_no_change(struct gw_qdisc *q, const void *conf, uint64_t given,
                                      uint64_t now_ps, struct gw_error *err)
{
    (void)q, (void)conf, (void)given, (void)now_ps;
    return gw_fail(err, GW_PARAM, "this queue discipline cannot be changed; delete it and add it "
                   "anew");
}

/* Empties a discipline by its own dequeue, in its own time. */
static void qdisc_reset(struct gw_qdisc *q, uint64_t now_ps)
{
    struct gw_pkt *p;
    uint64_t next;

    for (;;) {
        while ((p = q->ops->dequeue(q, now_ps)))
            q->host->qdisc_drop(q, p, GW_DROP_PURGED);
        next = q->ops->next_ps(q, now_ps);
        if (next == GW_NEVER || next <= now_ps)
            return;
        now_ps = next;
    }
}

static bool qdisc_no_fifo(const struct gw_qdisc *q, uint64_t *pkts, uint64_t *bytes)
{
    (void)q, (void)pkts, (void)bytes;
    return false;
}

static enum gw_status channel_init(struct gw_channel *c, struct gw_error *err)
{
    (void)c, (void)err;
    return GW_OK;
}

static void channel_fini(struct gw_channel *c)
{
    (void)c;
}

static double channel_no_loss(const struct gw_channel *c, uint32_t len_bytes)
{
    (void)c, (void)len_bytes;
    return 0;
}

static enum gw_status channel_no_change(struct gw_channel *c, const void *conf, uint64_t given,
                                        uint64_t now_ps, struct gw_error *err)
{
    (void)c, (void)conf, (void)given, (void)now_ps;
    return gw_fail(err, GW_PARAM, "this channel cannot be changed while running");
}

static enum gw_status tx_init(struct gw_tx *tx, uint64_t now_ps, struct gw_error *err)
{
    (void)tx, (void)now_ps, (void)err;
    return GW_OK;
}

static enum gw_status rx_init(struct gw_rx *rx, uint64_t now_ps, struct gw_error *err)
{
    (void)rx, (void)now_ps, (void)err;
    return GW_OK;
}

static void tx_fini(struct gw_tx *tx)
{
    (void)tx;
}

static void rx_fini(struct gw_rx *rx)
{
    (void)rx;
}

static void tx_room(struct gw_tx *tx, uint64_t now_ps)
{
    (void)tx, (void)now_ps;
}

/* No header of its own: RFC 3692's experimental protocol number. */
static uint32_t encode_nothing(const struct gw_pkt *p, const void *ext,
                               const struct gw_flow_addr *a, uint8_t *buf, uint8_t *ip_proto)
{
    (void)p, (void)ext, (void)a, (void)buf;
    *ip_proto = 253;
    return 0;
}

/* Fluid transports have no headers and no frames. */
static uint64_t wire_payload(const void *conf, uint64_t payload, uint32_t mtu_bytes,
                             uint64_t *frames)
{
    (void)conf, (void)mtu_bytes;
    if (frames)
        *frames = 0;
    return payload;
}

static enum gw_status fluid_init(struct gw_fluid *f, struct gw_error *err)
{
    (void)f, (void)err;
    return GW_OK;
}

static void fluid_fini(struct gw_fluid *f)
{
    (void)f;
}

static bool never_freeze(void *half)
{
    (void)half;
    return false;
}

static void skip_nothing(void *half, uint64_t until_ps)
{
    (void)half, (void)until_ps;
}

static void cc_ignore(struct gw_cc *cc, uint64_t now_ps)
{
    (void)cc, (void)now_ps;
}

static void cc_ignore_sent(struct gw_cc *cc, uint64_t bytes, uint64_t in_flight_bytes,
                           bool app_limited, uint64_t now_ps)
{
    (void)cc;
    (void)bytes;
    (void)in_flight_bytes;
    (void)app_limited;
    (void)now_ps;
}

static void cc_ignore_fini(struct gw_cc *cc)
{
    (void)cc;
}

static void cc_ignore_idle(struct gw_cc *cc, uint64_t idle_ps, uint64_t rto_ps)
{
    (void)cc, (void)idle_ps, (void)rto_ps;
}

static void topology_fini(struct gw_topology *t)
{
    (void)t;
}

static enum gw_status job_init(struct gw_job *job, struct gw_error *err)
{
    (void)job, (void)err;
    return GW_OK;
}

static void job_fini(struct gw_job *job)
{
    (void)job;
}

static enum gw_status rank_init(struct gw_program *p, struct gw_error *err)
{
    (void)p, (void)err;
    return GW_OK;
}

static void rank_fini(struct gw_program *p)
{
    (void)p;
}

static void ignore_complete(struct gw_program *p, gw_op_id op, uint64_t now_ps)
{
    (void)p, (void)op, (void)now_ps;
}

/* ---- kinds: compulsory callbacks, filled ones --------------------------------------------- */

#define FILL(field, fn) \
    do {                \
        if (!(field))   \
            (field) = (fn); \
    } while (0)

/* Each answers what is missing or wrong, or NULL. */
static const char *finish_qdisc(union ops *o)
{
    struct gw_qdisc_ops *q = &o->qdisc;

    if (!q->enqueue || !q->dequeue)
        return "enqueue or dequeue";
    if ((q->class_find || q->class_walk || q->graft) &&
        !(q->class_find && q->class_walk && q->graft))
        return "class_find, class_walk or graft, though it has classes";
    FILL(q->init, qdisc_init);
    FILL(q->fini, qdisc_fini);
    FILL(q->next_ps, qdisc_never);
    FILL(q->change, qdisc_no_change);
    FILL(q->reset, qdisc_reset);
    FILL(q->fifo_limits, qdisc_no_fifo);
    return NULL;
}

static const char *finish_channel(union ops *o)
{
    struct gw_channel_ops *c = &o->channel;

    if (!c->transit)
        return "transit";
    FILL(c->init, channel_init);
    FILL(c->fini, channel_fini);
    FILL(c->mean_loss, channel_no_loss);
    FILL(c->change, channel_no_change);
    return NULL;
}

static const char *finish_transport(union ops *o)
{
    struct gw_transport_ops *t = &o->transport;

    if (t->level == GW_TP_PACKET && (!t->tx_write || !t->tx_packet || !t->rx_packet))
        return "tx_write, tx_packet or rx_packet";
    if (t->level == GW_TP_PACKET && !t->wire_bytes)
        return "wire_bytes";
    if (t->level == GW_TP_FLUID && !t->fluid_start)
        return "fluid_start";
    if (t->level != GW_TP_PACKET && t->level != GW_TP_FLUID)
        return "a level that is known";
    FILL(t->tx_init, tx_init);
    FILL(t->rx_init, rx_init);
    FILL(t->tx_fini, tx_fini);
    FILL(t->rx_fini, rx_fini);
    FILL(t->tx_room, tx_room);
    FILL(t->encode, encode_nothing);
    FILL(t->wire_bytes, wire_payload);
    FILL(t->fluid_init, fluid_init);
    FILL(t->fluid_fini, fluid_fini);
    FILL(t->freeze, never_freeze);
    FILL(t->skip, skip_nothing);
    return NULL;
}

static const char *finish_cc(union ops *o)
{
    struct gw_cc_ops *c = &o->cc;

    if (!c->init || !c->on_ack || !c->on_loss || !c->on_timeout)
        return "init, on_ack, on_loss or on_timeout";
    FILL(c->on_exit_recovery, cc_ignore);
    FILL(c->on_idle_restart, cc_ignore_idle);
    FILL(c->on_undo, cc_ignore);
    FILL(c->on_cnp, cc_ignore);
    FILL(c->on_nack, cc_ignore);
    FILL(c->on_sent, cc_ignore_sent);
    FILL(c->fini, cc_ignore_fini);
    return NULL;
}

static const char *finish_topology(union ops *o)
{
    if (!o->topology.build)
        return "build";
    FILL(o->topology.fini, topology_fini);
    return NULL;
}

static const char *finish_traffic(union ops *o)
{
    struct gw_traffic_ops *t = &o->traffic;

    if (!t->next)
        return "next";
    FILL(t->job_init, job_init);
    FILL(t->job_fini, job_fini);
    FILL(t->rank_init, rank_init);
    FILL(t->rank_fini, rank_fini);
    FILL(t->on_complete, ignore_complete);
    return NULL;
}

static const char *finish_collective(union ops *o)
{
    if (!o->collective.emit)
        return "emit";
    return o->collective.supports ? NULL : "any operation in supports";
}

static const char *finish_analysis(union ops *o)
{
    return o->analysis.run ? NULL : "run";
}

#define NO_CONF SIZE_MAX
static const struct {
    const char *name;
    size_t      ops_bytes;
    size_t      conf_at;          /* where conf_bytes stands in the ops, NO_CONF: nowhere      */
    const char *(*finish)(union ops *o);
} kinds[GW_KIND_COUNT] = {
    [GW_KIND_QDISC] = { "qdisc", sizeof(struct gw_qdisc_ops),
                        offsetof(struct gw_qdisc_ops, conf_bytes), finish_qdisc },
    [GW_KIND_CHANNEL] = { "channel", sizeof(struct gw_channel_ops),
                          offsetof(struct gw_channel_ops, conf_bytes), finish_channel },
    [GW_KIND_TRANSPORT] = { "transport", sizeof(struct gw_transport_ops),
                            offsetof(struct gw_transport_ops, conf_bytes), finish_transport },
    [GW_KIND_CC] = { "cc", sizeof(struct gw_cc_ops), offsetof(struct gw_cc_ops, conf_bytes),
                     finish_cc },
    [GW_KIND_TOPOLOGY] = { "topology", sizeof(struct gw_topology_ops),
                           offsetof(struct gw_topology_ops, conf_bytes), finish_topology },
    [GW_KIND_TRAFFIC] = { "traffic", sizeof(struct gw_traffic_ops),
                          offsetof(struct gw_traffic_ops, conf_bytes), finish_traffic },
    [GW_KIND_COLLECTIVE] = { "collective", sizeof(struct gw_collective_ops), NO_CONF,
                             finish_collective },
    [GW_KIND_ANALYSIS] = { "analysis", sizeof(struct gw_analysis_ops),
                           offsetof(struct gw_analysis_ops, conf_bytes), finish_analysis },
};

const char *gw_kind_name(enum gw_kind kind)
{
    return (unsigned)kind < GW_KIND_COUNT ? kinds[kind].name : "unknown kind";
}

/* ---- checks ------------------------------------------------------------------------------- */

/* Magic, numbers and sizes; touches nothing behind the fields that are already known good. */
static enum gw_status check_abi(const struct gw_plugin *p, const char *origin,
                                struct gw_error *err)
{
    if (p->magic != GW_PLUGIN_MAGIC)
        return gw_fail(err, GW_ABI, "%s: not a gradwire plugin: magic 0x%08x, expected 0x%08x",
                       origin, p->magic, GW_PLUGIN_MAGIC);
    if (p->abi_major != GW_ABI_MAJOR || p->abi_minor > GW_ABI_MINOR)
        return gw_fail(err, GW_ABI, "%s: built for interface %u.%u, this is %u.%u; build it again "
                       "with this gradwire's headers", origin, p->abi_major, p->abi_minor,
                       GW_ABI_MAJOR, GW_ABI_MINOR);
    if (p->plugin_bytes < offsetof(struct gw_plugin, source))
        return gw_fail(err, GW_ABI, "%s: its descriptor has %u bytes, at least %zu are needed",
                       origin, p->plugin_bytes, offsetof(struct gw_plugin, source));
    if (p->kind >= GW_KIND_COUNT)
        return gw_fail(err, GW_ABI, "%s: plugin of kind %u, allowed 0 to %d", origin, p->kind,
                       GW_KIND_COUNT - 1);
    if (!p->ops || !p->ops_bytes)
        return gw_fail(err, GW_ABI, "%s: the plugin has no operations", origin);
    return GW_OK;
}

static bool good_name(const char *s)
{
    if (!s || !*s || strlen(s) > 31 || *s == '-' || *s == '_')
        return false;
    for (; *s; s++)
        if (!((*s >= 'a' && *s <= 'z') || (*s >= '0' && *s <= '9') || *s == '-' || *s == '_'))
            return false;
    return true;
}

/* Each row's field must lie inside the conf struct that the host allocates. */
static enum gw_status check_fields(const struct gw_param *rows, size_t count, size_t conf_bytes,
                                   const char *what, struct gw_error *err)
{
    for (size_t i = 0; i < count; i++) {
        size_t n = rows[i].type == GW_P_BOOL ? sizeof(bool)
                   : rows[i].type == GW_P_U32 || rows[i].type == GW_P_CHOICE ? 4 : 8;

        if (rows[i].type == GW_P_WORDS)                /* no field: the plugin reads the words */
            continue;
        if (conf_bytes < n || rows[i].offset > conf_bytes - n)
            return gw_fail(err, GW_ABI, "%s: option %s lies outside its configuration of %zu bytes",
                           what, rows[i].name, conf_bytes);
    }
    return GW_OK;
}

static enum gw_status check_stats(const struct gw_stat *stats, uint32_t count, size_t priv_bytes,
                                  const char *what, struct gw_error *err)
{
    if (count && !stats)
        return gw_fail(err, GW_ABI, "%s: %u counters are announced and none is there", what, count);
    for (uint32_t i = 0; i < count; i++)
        if (!stats[i].name || priv_bytes < 8 || stats[i].offset > priv_bytes - 8)
            return gw_fail(err, GW_ABI, "%s: counter %s lies outside its state of %zu bytes", what,
                           stats[i].name ? stats[i].name : "?", priv_bytes);
    return GW_OK;
}

static enum gw_status check_rows(const struct slot *s, const char *what, struct gw_error *err)
{
    const struct gw_plugin *p = &s->plugin;
    size_t at = kinds[p->kind].conf_at, conf_bytes = 0;
    enum gw_status st = gw_params_check(p->params, p->param_count, what, err);

    if (st)
        return st;
    if (at != NO_CONF)
        memcpy(&conf_bytes, (const char *)&s->ops + at, sizeof conf_bytes);
    st = check_fields(p->params, p->param_count, conf_bytes, what, err);
    if (!st && p->kind == GW_KIND_CHANNEL)
        st = check_stats(s->ops.channel.stats, s->ops.channel.stat_count,
                         s->ops.channel.priv_bytes, what, err);
    if (st || p->kind != GW_KIND_QDISC)
        return st;
    st = gw_params_check(s->ops.qdisc.class_params, s->ops.qdisc.class_param_count, what, err);
    if (!st)
        st = check_fields(s->ops.qdisc.class_params, s->ops.qdisc.class_param_count,
                          s->ops.qdisc.class_conf_bytes, what, err);
    if (!st)
        st = check_stats(s->ops.qdisc.stats, s->ops.qdisc.stat_count, s->ops.qdisc.priv_bytes,
                         what, err);
    return st;
}

/* Copies @p into the zeroed @s and checks all that lies behind the interface numbers. */
static enum gw_status load_slot(struct slot *s, const struct gw_plugin *p, const char *origin,
                                struct gw_error *err)
{
    size_t n = p->plugin_bytes < sizeof s->plugin ? p->plugin_bytes : sizeof s->plugin;
    size_t full = kinds[p->kind].ops_bytes;
    const char *lacks;
    char what[400];

    memcpy(&s->plugin, p, n);
    memcpy(&s->ops, p->ops, p->ops_bytes < full ? p->ops_bytes : full);
    if (!good_name(s->plugin.name))
        return gw_fail(err, GW_ABI, "%s: a plugin's name has 1 to 31 of a-z, 0-9, - and _", origin);
    if (!s->plugin.summary || !*s->plugin.summary)
        return gw_fail(err, GW_ABI, "%s: %s has no summary", origin, s->plugin.name);
    snprintf(what, sizeof what, "%.256s: %s %s", origin, kinds[p->kind].name, s->plugin.name);
    lacks = kinds[p->kind].finish(&s->ops);
    if (lacks)
        return gw_fail(err, GW_ABI, "%s lacks %s", what, lacks);
    return check_rows(s, what, err);
}

/* ---- the table ---------------------------------------------------------------------------- */

static int compare(enum gw_kind kind, const char *name, const struct slot *s)
{
    if ((uint32_t)kind != s->plugin.kind)
        return (uint32_t)kind < s->plugin.kind ? -1 : 1;
    return strcmp(name, s->plugin.name);
}

/* Where (kind, name) stands or would stand; *found says which. */
static size_t search(const struct gw_registry *r, enum gw_kind kind, const char *name,
                     bool *found)
{
    size_t lo = 0, hi = r->count;

    *found = false;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        int c = compare(kind, name, r->slot[mid]);

        if (!c) {
            *found = true;
            return mid;
        }
        if (c < 0)
            hi = mid;
        else
            lo = mid + 1;
    }
    return lo;
}

static enum gw_status insert(struct gw_registry *r, struct slot *s, struct gw_error *err)
{
    bool found;
    size_t at = search(r, (enum gw_kind)s->plugin.kind, s->plugin.name, &found);

    if (found)
        return gw_fail(err, GW_ABI, "%s: a %s called %s stands already (%s)", s->origin,
                       kinds[s->plugin.kind].name, s->plugin.name, r->slot[at]->origin);
    if (r->count == r->cap) {
        size_t cap = r->cap ? 2 * r->cap : 32;
        struct slot **grown = realloc(r->slot, cap * sizeof *grown);

        if (!grown)
            return gw_fail(err, GW_NOMEM, "out of memory for plugins");
        r->slot = grown;
        r->cap = cap;
    }
    memmove(r->slot + at + 1, r->slot + at, (r->count - at) * sizeof *r->slot);
    r->slot[at] = s;
    r->count++;
    return GW_OK;
}

static void slot_free(struct slot *s)
{
    if (s)
        free(s->origin);
    free(s);
}

enum gw_status gw_registry_add(struct gw_registry *r, const struct gw_plugin *p,
                               const char *origin, struct gw_error *err)
{
    enum gw_status st = check_abi(p, origin, err);
    struct slot *s;

    if (st)
        return st;
    s = calloc(1, sizeof *s);
    if (!s)
        return gw_fail(err, GW_NOMEM, "out of memory for plugins");
    s->origin = strdup(origin);
    st = s->origin ? load_slot(s, p, origin, err)
                   : gw_fail(err, GW_NOMEM, "out of memory for plugins");
    if (!st)
        st = insert(r, s, err);
    if (st) {
        slot_free(s);
        return st;
    }
    s->entry = (struct gw_entry){ &s->plugin, &s->ops, s->origin };
    return GW_OK;
}

/* Keeps the handle of a shared object; false: out of memory. */
static bool keep_handle(struct gw_registry *r, void *handle)
{
    void **grown = realloc(r->handle, (r->handles + 1) * sizeof *grown);

    if (!grown)
        return false;
    r->handle = grown;
    r->handle[r->handles++] = handle;
    return true;
}

enum gw_status gw_registry_load(struct gw_registry *r, const char *path, struct gw_error *err)
{
    const struct gw_plugin *p;
    enum gw_status st;
    char file[4096];
    void *handle;

    /* a bare name would be looked up among the system's libraries */
    if ((size_t)snprintf(file, sizeof file, "%s%s", strchr(path, '/') ? "" : "./", path) >=
        sizeof file)
        return gw_fail(err, GW_IO, "%.80s...: the path is too long", path);
    st = gw_plugin_file_check(path, err);
    if (st)
        return st;
    handle = dlopen(file, RTLD_NOW | RTLD_LOCAL);
    if (!handle)
        return gw_fail(err, GW_ABI, "%s: the plugin cannot be loaded: %s", path, dlerror());
    p = dlsym(handle, "gw_plugin_v1");
    if (!p)
        st = gw_fail(err, GW_ABI, "%s: no symbol gw_plugin_v1 in it; compile the plugin with "
                     "-DGW_PLUGIN_SHARED", path);
    else
        st = gw_plugin_symbol_check(p, path, err);
    if (!st)
        st = gw_registry_add(r, p, path, err);
    if (st) {
        dlclose(handle);
        return st;
    }
    if (!keep_handle(r, handle))        /* stays open: its entry is in use */
        return gw_fail(err, GW_NOMEM, "out of memory for plugins");
    return GW_OK;
}

const struct gw_entry *gw_registry_find(const struct gw_registry *r, enum gw_kind kind,
                                        const char *name, const char *where, struct gw_error *err)
{
    const char *colon = where && *where ? ": " : "", *near;
    char shown[GW_SHOW_BYTES], list[512] = "";
    const char **names;
    size_t n = 0, at = 0;
    bool found;

    if (!name)
        name = "";
    at = search(r, kind, name, &found);
    if (found)
        return &r->slot[at]->entry;
    names = calloc(r->count + 1, sizeof *names);
    if (!names) {
        gw_fail(err, GW_NOMEM, "out of memory for plugins");
        return NULL;
    }
    at = 0;
    for (size_t i = 0; i < r->count; i++)
        if (r->slot[i]->plugin.kind == (uint32_t)kind) {
            names[n++] = r->slot[i]->plugin.name;
            if (at < sizeof list)
                at += (size_t)snprintf(list + at, sizeof list - at, "%s%s", at ? ", " : "",
                                       r->slot[i]->plugin.name);
        }
    near = gw_did_you_mean(name, names);
    if (!where)
        where = "";
    if (near)
        gw_fail(err, GW_PARAM, "%s%sno %s is called \"%s\"; did you mean \"%s\"?", where, colon,
                gw_kind_name(kind), gw_show(name, shown), near);
    else
        gw_fail(err, GW_PARAM, "%s%sno %s is called \"%s\"; known are %s", where, colon,
                gw_kind_name(kind), gw_show(name, shown), n ? list : "none");
    free(names);
    return NULL;
}

const struct gw_entry *gw_registry_at(const struct gw_registry *r, size_t i)
{
    return i < r->count ? &r->slot[i]->entry : NULL;
}

/* ---- the host table ----------------------------------------------------------------------- */

static void *host_alloc(size_t bytes)
{
    return calloc(1, bytes ? bytes : 1);
}

static void *host_resize(void *p, size_t bytes)
{
    return realloc(p, bytes ? bytes : 1);
}

static const void *host_find(const struct gw_host *h, enum gw_kind kind, const char *name,
                             const char *where, struct gw_error *err)
{
    const struct gw_entry *e = gw_registry_find(h->registry, kind, name, where, err);

    return e ? e->ops : NULL;
}

struct data_search {
    const char *name;
    char       *path;             /* the caller's buffer                                       */
    size_t      path_bytes;
    char        tried[600];
    size_t      at;
    bool        tell;             /* note the paths in `tried`                                 */
    char        names[400];       /* on the shelf                                              */
    size_t      shelved;          /* their length                                              */
    int         error;            /* of the first file that is there and can't be read         */
    char        error_path[256];
};

/* Opens DIR/SHELF/NAME and, unless @plain, DIR/SHELF/NAME.csv; regular files and pipes, never
 * directories. */
static FILE *try_folder(struct data_search *d, const char *dir, const char *shelf, bool plain)
{
    static const char *const ends[] = { "", ".csv" };
    size_t n = strlen(d->name);

    for (size_t i = 0; i < (plain ? 1 : GW_ARRAY_LEN(ends)); i++) {
        struct stat info;
        FILE *f;

        if (i && n > 4 && !strcmp(d->name + n - 4, ".csv"))
            continue;
        if ((size_t)snprintf(d->path, d->path_bytes, "%s%s%s%s%s%s", dir, *dir ? "/" : "", shelf,
                             *shelf ? "/" : "", d->name, ends[i]) >= d->path_bytes)
            continue;
        if (d->tell && d->at < sizeof d->tried)
            d->at += (size_t)snprintf(d->tried + d->at, sizeof d->tried - d->at, "%s%s",
                                      d->at ? ", " : "", d->path);
        if (stat(d->path, &info) || S_ISDIR(info.st_mode))
            continue;
        f = S_ISFIFO(info.st_mode) && strncmp(d->path, "/dev/", 5) ? NULL : fopen(d->path, "r");
        if (f) {
            gw_skip_bom(f);
            return f;
        }
        if (!d->error) {
            d->error = S_ISFIFO(info.st_mode) ? ESPIPE : errno;
            snprintf(d->error_path, sizeof d->error_path, "%s", d->path);
        }
    }
    return NULL;
}

static int is_data(const struct dirent *e)
{
    const char *dot = strrchr(e->d_name, '.');

    return *e->d_name != '.' && dot && strcmp(dot, ".md");
}

/* Adds what stands on the shelf @dir/@shelf to the sentence, without ".csv". */
static void tell_shelf(struct data_search *d, const char *dir, const char *shelf)
{
    struct dirent **e;
    char path[4096];
    int n;

    if ((size_t)snprintf(path, sizeof path, "%s/%s", dir, shelf) >= sizeof path)
        return;
    n = scandir(path, &e, is_data, alphasort);
    for (int i = 0; i < n; i++) {
        size_t length = strlen(e[i]->d_name);

        if (length > 4 && !strcmp(e[i]->d_name + length - 4, ".csv"))
            length -= 4;
        if (d->shelved + length + 8 < sizeof d->names)
            d->shelved += (size_t)snprintf(d->names + d->shelved, sizeof d->names - d->shelved,
                                           "%s%.*s", d->shelved ? ", " : "", (int)length,
                                           e[i]->d_name);
        free(e[i]);
    }
    if (n >= 0)
        free(e);
}

static FILE *host_open_data(const struct gw_host *h, const char *study_dir, const char *shelf,
                            const char *name, char *path, size_t path_bytes, struct gw_error *err)
{
    const char *folders[] = {
        getenv("GRADWIRE_DATA"),
#ifdef GW_DATADIR
        GW_DATADIR,
#endif
#ifdef GW_SOURCE_DATADIR                  /* not installed: the shelves stand in their rooms */
        GW_SOURCE_DATADIR, GW_SOURCE_DATADIR "/traffic", GW_SOURCE_DATADIR "/topologies",
#endif
    };
    struct data_search d = { .name = name, .path = path, .path_bytes = path_bytes, .tell = true };
    bool plain = shelf && !strcmp(shelf, "graphs");
    FILE *f;

    (void)h;
    if (!name || !*name) {
        gw_fail(err, GW_IO, "a file name is empty; give the name of one of the %s or a path",
                shelf ? shelf : "data files");
        return NULL;
    }
    f = try_folder(&d, *name == '/' || !study_dir ? "" : study_dir, "", plain);
    for (size_t i = 0; !f && *name != '/' && shelf && i < GW_ARRAY_LEN(folders); i++) {
        d.tell = i == 0;                  /* the user's own folder; ours say what they hold    */
        if (folders[i] && *folders[i])
            f = try_folder(&d, folders[i], shelf, plain);
    }
    if (f)
        return f;
    for (size_t i = 1; *name != '/' && shelf && i < GW_ARRAY_LEN(folders) && !d.shelved; i++)
        tell_shelf(&d, folders[i], shelf);
    if (d.error)
        gw_fail(err, GW_IO, "%s cannot be read: %s", d.error_path, strerror(d.error));
    else
        gw_fail(err, GW_IO, "%s: no such file; tried %s%s%s%s%s", name, d.tried,
                d.shelved ? "; the " : "", d.shelved ? shelf : "",
                d.shelved ? " that come with gradwire are " : "", d.names);
    return NULL;
}

struct gw_host *gw_registry_host(struct gw_registry *r)
{
    return &r->host;
}

static void fill_host(struct gw_registry *r)
{
    r->host = (struct gw_host){
        .host_bytes  = sizeof(struct gw_host),
        .abi_major   = GW_ABI_MAJOR,
        .abi_minor   = GW_ABI_MINOR,
        .alloc       = host_alloc,
        .resize      = host_resize,
        .release     = free,
        .rng_open    = gw_rng_open,
        .value_get   = gw_value_get,
        .value_where = gw_value_where,
        .params_read = gw_params_read,
        .value_read  = gw_value_read,
        .find        = host_find,
        .registry    = r,
        .open_data   = host_open_data,
    };
}

struct gw_registry *gw_registry_new(bool reversed, struct gw_error *err)
{
    struct gw_registry *r = calloc(1, sizeof *r);
    size_t n = 0;

    if (!r) {
        gw_fail(err, GW_NOMEM, "out of memory for plugins");
        return NULL;
    }
    fill_host(r);
    while (gw_builtin[n])
        n++;
    for (size_t i = 0; i < n; i++)
        if (gw_registry_add(r, gw_builtin[reversed ? n - 1 - i : i], "built in", err)) {
            gw_registry_free(r);
            return NULL;
        }
    return r;
}

void gw_registry_free(struct gw_registry *r)
{
    if (!r)
        return;
    for (size_t i = 0; i < r->count; i++)
        slot_free(r->slot[i]);
    for (size_t i = 0; i < r->handles; i++)
        dlclose(r->handle[i]);
    free(r->slot);
    free(r->handle);
    free(r);
}
