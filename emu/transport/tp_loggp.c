/*
 * tp_loggp - messages by the LogGP model: an oracle with four parameters and no packets
 *
 * A message of k bytes keeps its sender's processor busy for o, then enters the network: its bytes
 * leave one every G, the next message of that host not before g after the last of them. L later they
 * arrive; a host takes in one message at a time, again with g between two; then the receiver's
 * processor is busy for o. So a lone message takes o + (k - 1) G + L + o, n in a row from one host
 * n (k - 1) G + (n - 1) g more and less, and an incast waits at the receiver. Alexandrov, Ionescu,
 * Schauser and Scheiman, "LogGP: Incorporating long messages into the LogP model", JPDC 1997.
 *
 * L is the sum of the path's delays and `L`; G is `G`, or where it is 0 what the narrowest link of
 * the path takes for a byte. Links inside the network are never contended for.
 *
 * Left out: the capacity limit ceil(L / g); processors that compute meanwhile (overheads do not slow
 * down a rank's computing); receivers take messages in the order in which they enter the network,
 * which differs from that of their arrival where path delays differ.
 */
#include <gradwire/plugin.h>

struct loggp_conf {
    uint64_t L_ps, o_ps, g_ps, G_ps;
};

struct loggp_flow {
    uint64_t at_ps;              /* of its next step                                            */
    bool     entered;            /* next step: it is over; else: it enters the network          */
};

struct loggp_host {              /* by the directed link that a message leaves or comes by      */
    uint64_t send_free_ps, take_free_ps, cpu_free_ps;
};

struct loggp {
    struct loggp_host *host;
    struct gw_fluid_flow **heap; /* by at_ps; equal times: any order would do, see sift          */
    uint64_t *order;             /* of starting, beside the heap                                */
    uint64_t  count_started;
    uint32_t  count, room;
    struct gw_timer timer;
};

static struct loggp_flow *loggp_flow(const struct gw_fluid_flow *x)
{
    return x->fluid;
}

/* ---- heap ------------------------------------------------------------------------------------ */

static bool loggp_before(const struct loggp *s, uint32_t a, uint32_t b)
{
    uint64_t x = loggp_flow(s->heap[a])->at_ps, y = loggp_flow(s->heap[b])->at_ps;

    return x != y ? x < y : s->order[a] < s->order[b];
}

static void loggp_swap(struct loggp *s, uint32_t a, uint32_t b)
{
    struct gw_fluid_flow *x = s->heap[a];
    uint64_t o = s->order[a];

    s->heap[a] = s->heap[b];
    s->heap[b] = x;
    s->order[a] = s->order[b];
    s->order[b] = o;
}

static void loggp_up(struct loggp *s, uint32_t i)
{
    for (; i && loggp_before(s, i, (i - 1) / 2); i = (i - 1) / 2)
        loggp_swap(s, i, (i - 1) / 2);
}

static void loggp_down(struct loggp *s, uint32_t i)
{
    for (;;) {
        uint32_t least = i, c = 2 * i + 1;

        if (c < s->count && loggp_before(s, c, least))
            least = c;
        if (c + 1 < s->count && loggp_before(s, c + 1, least))
            least = c + 1;
        if (least == i)
            return;
        loggp_swap(s, i, least);
        i = least;
    }
}

static bool loggp_room(const struct gw_host *h, struct loggp *s)
{
    uint32_t room = s->room ? s->room * 2 : 64;
    void *v;

    if (s->count < s->room)
        return true;
    v = h->resize(s->heap, room * sizeof *s->heap);
    if (!v)
        return false;
    s->heap = v;
    v = h->resize(s->order, room * sizeof *s->order);
    if (!v)
        return false;
    s->order = v;
    s->room = room;
    return true;
}

/* ---- messages -------------------------------------------------------------------------------- */

/* Time between the first and the last byte. */
static uint64_t loggp_body(const struct gw_fluid *f, const struct gw_fluid_flow *x)
{
    const struct loggp_conf *c = f->conf;
    uint64_t rate = 0;

    if (c->G_ps)
        return gw_mul_div(x->bytes - 1, c->G_ps, 1);
    for (uint32_t i = 0; i < x->path_len; i++) {
        uint64_t r = f->link_rate_bps[x->path[i]];

        if (r && (!rate || r < rate))
            rate = r;
    }
    return rate ? gw_mul_div(x->bytes - 1, 8 * GW_PS_PER_S, rate) : 0;
}

/* When its sender's processor and its link let the message enter the network. */
static uint64_t loggp_entry(const struct gw_fluid *f, const struct gw_fluid_flow *x, uint64_t now)
{
    const struct loggp_conf *c = f->conf;
    struct loggp *s = f->priv;
    struct loggp_host *h = &s->host[x->path[0]];
    uint64_t at;

    h->cpu_free_ps = gw_later(gw_max(h->cpu_free_ps, now), c->o_ps);
    at = gw_max(h->cpu_free_ps, h->send_free_ps);
    h->send_free_ps = gw_later(gw_later(at, loggp_body(f, x)), c->g_ps);
    return at;
}

/* The message enters now: when will its receiver have it, less the path's latency? */
static uint64_t loggp_end(const struct gw_fluid *f, const struct gw_fluid_flow *x, uint64_t now)
{
    const struct loggp_conf *c = f->conf;
    struct loggp *s = f->priv;
    struct loggp_host *h = &s->host[x->path[x->path_len - 1] ^ 1];
    uint64_t first = gw_later(now, gw_later(x->latency_ps, c->L_ps));
    uint64_t last = gw_later(gw_max(first, h->take_free_ps), loggp_body(f, x));

    h->take_free_ps = gw_later(last, c->g_ps);
    h->cpu_free_ps = gw_later(gw_max(h->cpu_free_ps, last), c->o_ps);
    return h->cpu_free_ps - x->latency_ps;
}

static void loggp_arm(struct gw_fluid *f, struct loggp *s)
{
    if (s->count)
        f->host->timer_set(f->net, &s->timer, loggp_flow(s->heap[0])->at_ps);
}

static void loggp_fire(void *owner, uint64_t now)
{
    struct gw_fluid *f = owner;
    struct loggp *s = f->priv;

    while (s->count && loggp_flow(s->heap[0])->at_ps <= now) {
        struct gw_fluid_flow *x = s->heap[0];
        struct loggp_flow *w = loggp_flow(x);

        if (!w->entered) {
            w->entered = true;
            w->at_ps = loggp_end(f, x, now);
            loggp_down(s, 0);
            continue;
        }
        loggp_swap(s, 0, --s->count);
        loggp_down(s, 0);
        f->host->fluid_done(f, x, now);
    }
    loggp_arm(f, s);
}

/* Out of memory a message is not served; the run then ends as stalled. */
static void loggp_start(struct gw_fluid *f, struct gw_fluid_flow *x, uint64_t now)
{
    struct loggp *s = f->priv;

    if (!x->bytes || !x->path_len || !loggp_room(f->host, s))
        return;
    loggp_flow(x)->at_ps = loggp_entry(f, x, now);
    s->heap[s->count] = x;
    s->order[s->count] = s->count_started++;
    loggp_up(s, s->count++);
    loggp_arm(f, s);
}

static enum gw_status loggp_init(struct gw_fluid *f, struct gw_error *err)
{
    struct loggp *s = f->priv;

    s->host = f->host->alloc((f->link_count + 1) * sizeof *s->host);
    if (!s->host)
        return gw_fail(err, GW_NOMEM, "out of memory for transport loggp");
    s->timer = (struct gw_timer){ .fire = loggp_fire, .owner = f, .comp = f->comp };
    return GW_OK;
}

static void loggp_fini(struct gw_fluid *f)
{
    struct loggp *s = f->priv;

    f->host->release(s->host);
    f->host->release(s->heap);
    f->host->release(s->order);
    memset(s, 0, sizeof *s);
}

static uint64_t loggp_wire_bytes(const void *conf, uint64_t payload, uint32_t mtu_bytes,
                                 uint64_t *frames)
{
    (void)conf;
    (void)mtu_bytes;
    *frames = 0;
    return payload;
}

static const struct gw_transport_ops loggp_ops = {
    .level       = GW_TP_FLUID,
    .conf_bytes  = sizeof(struct loggp_conf),
    .fluid_bytes = sizeof(struct loggp),
    .fluid_flow_bytes = sizeof(struct loggp_flow),
    .wire_bytes  = loggp_wire_bytes,
    .fluid_init  = loggp_init,
    .fluid_fini  = loggp_fini,
    .fluid_start = loggp_start,
};

static const struct gw_param loggp_params[] = {
    { "L", GW_P_TIME, offsetof(struct loggp_conf, L_ps), "0", "0", "1000s",
      "Latency beyond the path's delays." },
    { "o", GW_P_TIME, offsetof(struct loggp_conf, o_ps), "0", "0", "1000s",
      "Overhead of a message at each of its two processors." },
    { "g", GW_P_TIME, offsetof(struct loggp_conf, g_ps), "0", "0", "1000s",
      "Gap between two messages of a host, sent or received." },
    { "G", GW_P_TIME, offsetof(struct loggp_conf, G_ps), "0", "0", "1s",
      "Gap between two bytes of a message; 0: by the narrowest link of its path." },
};

GW_PLUGIN(gw_transport_loggp) = {
    GW_PLUGIN_HEAD(GW_KIND_TRANSPORT, loggp_ops),
    .name    = "loggp",
    .summary = "Whole messages by the LogGP model: overheads o, gaps g and G, latency L.",
    .params  = loggp_params, .param_count = GW_ARRAY_LEN(loggp_params),
    .source  = "Alexandrov, Ionescu, Schauser, Scheiman, JPDC 1997",
};
