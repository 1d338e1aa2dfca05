/*
 * pat_frames - numbered test frames at a chosen rate, for looking at one link
 *
 * Host `from` sends UDP-like frames to host `to`, without a transport: `count` frames of `size`
 * bytes (Ethernet without FCS), one arrival each `interval`, or each exponential time of that mean
 * (`arrivals: poisson`); an arrival is `burst` frames at one instant. Instead of an interval a rate
 * may be given: interval = 8 size burst / (rate load). Several generators run side by side, each
 * with a flow number for the packet log. The host makes the frames and keeps their log.
 *
 * With Poisson arrivals and a fixed size one queue is M/D/1: the mean wait is rho / (2 (1 - rho))
 * service times, a permanent test.
 *
 * Left out: sizes drawn from a distribution, on/off sources.
 */
#include <gradwire/alg/program.h>

enum { FRAMES_CONSTANT, FRAMES_POISSON };

struct gen_conf {
    uint64_t size_bytes, interval_ps, rate_bps, start_ps, count;
    double   load;
    uint32_t flow, burst, ecn, priority, dscp, arrivals;
};

struct frames_conf {
    const char *from, *to;
    const struct gw_value *generators;
    struct gen_conf one;
};

struct frames_job {
    struct gw_rankmap map;
    struct gw_frame_source *source;
    uint32_t count, from, to;
};

/*
 * The options of a generator, at offset @base of the conf; `arrivals` is the last. All but that one
 * have no default to write out, so that the study that a run saves holds one way to say it, too.
 */
#define FRAMES_GEN_PARAMS(base)                                                                    \
    { "flow", GW_P_U32, (base) + offsetof(struct gen_conf, flow), "", NULL, NULL,                  \
      "Number of the flow in the packet log, 0 unless given." },                                   \
    { "size", GW_P_BYTES, (base) + offsetof(struct gen_conf, size_bytes), "", NULL, "65549",       \
      "Ethernet frame without FCS; at least 42 for the headers." },                                \
    { "interval", GW_P_TIME, (base) + offsetof(struct gen_conf, interval_ps), "", NULL, NULL,      \
      "Time between arrivals, or its mean." },                                                     \
    { "rate", GW_P_RATE, (base) + offsetof(struct gen_conf, rate_bps), "", NULL, NULL,             \
      "Instead of interval: bits of frames (without FCS) per second." },                           \
    { "load", GW_P_FRACTION, (base) + offsetof(struct gen_conf, load), "", NULL, NULL,             \
      "Share of `rate` that is sent, 100% unless given; not beside an interval." },                \
    { "start", GW_P_TIME, (base) + offsetof(struct gen_conf, start_ps), "", NULL, NULL,            \
      "First arrival; in `generators` counted from the `start` beside them." },                             \
    { "count", GW_P_U64, (base) + offsetof(struct gen_conf, count), "", NULL, NULL,                \
      "Number of frames." },                                                                       \
    { "ecn", GW_P_U32, (base) + offsetof(struct gen_conf, ecn), "", "0", "3",                      \
      "ECN field: 0 not capable (unless given), 1 ECT(1), 2 ECT(0), 3 CE." },                      \
    { "priority", GW_P_U32, (base) + offsetof(struct gen_conf, priority), "", NULL, NULL,          \
      "Priority of the frames as of a socket: 0 to 15, 0 unless given, or a class, 65552 for "     \
      "1:10." },                                                                                   \
    { "dscp", GW_P_U32, (base) + offsetof(struct gen_conf, dscp), "", "0", "63",                   \
      "DSCP field, 0 unless given." },                                                             \
    { "burst", GW_P_U32, (base) + offsetof(struct gen_conf, burst), "", "1", "1000000",            \
      "Frames of one arrival, 1 unless given." },                                                  \
    { "arrivals", GW_P_CHOICE, (base) + offsetof(struct gen_conf, arrivals), "constant",           \
      "constant|poisson", NULL, "Constant intervals, or exponential ones." }

static const struct gw_param frames_gen_params[] = { FRAMES_GEN_PARAMS(0) };

#define FRAMES_GEN_ROWS   GW_ARRAY_LEN(frames_gen_params)
#define FRAMES_INTERVAL   2u                         /* rows of a generator, by number         */
#define FRAMES_RATE       3u
#define FRAMES_LOAD       4u
#define FRAMES_START      5u
#define FRAMES_ARRIVALS   (FRAMES_GEN_ROWS - 1)
#define FRAMES_OWN_ROWS   3u                         /* from, to, generators come first        */
#define FRAMES_MIN_BYTES  42u                        /* Ethernet, IPv4 and UDP headers         */

static void frames_job_fini(struct gw_job *job)
{
    struct frames_job *j = job->priv;

    gw_rankmap_free(job->host, &j->map);
    job->host->release(j->source);
    memset(j, 0, sizeof *j);
}

static uint32_t frames_burst(const struct gen_conf *g)
{
    return g->burst ? g->burst : 1;
}

/* Interval of @g, from its rate if need be; 0 with a sentence. @given has a bit for each row. */
static uint64_t frames_interval(const struct gen_conf *g, uint64_t given, const char *where,
                                struct gw_error *err)
{
    bool interval = given >> FRAMES_INTERVAL & 1, rate = given >> FRAMES_RATE & 1;
    bool load = given >> FRAMES_LOAD & 1;
    double ps;

    if (interval && (rate || load)) {
        gw_fail(err, GW_PARAM, "%s: `interval` and `%s` both say how often a frame is sent; give "
                "`interval` alone, or `rate` and, if it is less than 100 %%, `load`", where,
                rate ? "rate" : "load");
        return 0;
    }
    if (!g->interval_ps && !g->rate_bps) {
        gw_fail(err, GW_PARAM, "%s: frames need `interval`, the time between two, or `rate`, and "
                "more than 0 of it", where);
        return 0;
    }
    if (g->interval_ps)
        return g->interval_ps;
    ps = (double)g->size_bytes * frames_burst(g) * 8e12 /
         ((double)g->rate_bps * (load ? g->load : 1));
    if (!(ps >= 1 && ps < 0x1p63)) {
        gw_fail(err, GW_PARAM, "%s: rate times load makes an interval of %g s, which cannot be "
                "played; 1 ps to 106 days is the range", where, ps * 1e-12);
        return 0;
    }
    return (uint64_t)(ps + 0.5);
}

/* Appends a source for @g; @given has a bit for each row of it, @where is its position. */
static enum gw_status frames_add(struct gw_job *job, const struct gen_conf *g, uint64_t given,
                                 const char *where, struct gw_error *err)
{
    struct frames_job *j = job->priv;
    struct gw_frame_source *more;
    uint64_t interval_ps;

    if (g->size_bytes < FRAMES_MIN_BYTES)
        return gw_fail(err, GW_PARAM, "%s: the frame's size is %u bytes; at least %u are needed",
                       where, (unsigned)g->size_bytes, FRAMES_MIN_BYTES);
    if (!g->count)
        return gw_fail(err, GW_PARAM, "%s: count is 0; say how many frames are sent", where);
    interval_ps = frames_interval(g, given, where, err);
    if (!interval_ps)
        return GW_PARAM;
    more = job->host->resize(j->source, ((size_t)j->count + 1) * sizeof *more);
    if (!more)
        return gw_fail(err, GW_NOMEM, "%s: out of memory for generators", where);
    j->source = more;
    more[j->count] = (struct gw_frame_source){
        .to = j->to, .flow = g->flow, .size_bytes = (uint32_t)g->size_bytes,
        .interval_ps = interval_ps, .start_ps = g->start_ps, .count = g->count,
        .burst = frames_burst(g), .ecn = (uint8_t)g->ecn, .priority = g->priority,
        .dscp = (uint8_t)g->dscp, .poisson = g->arrivals == FRAMES_POISSON,
    };
    return job->host->frame_check(job, j->from, &more[j->count++], where, err);
}

/* The entries of `generators:`; `arrivals` beside the list is their default, and `start` is when
 * their time begins. */
static enum gw_status frames_list(struct gw_job *job, struct gw_value *list, struct gw_error *err)
{
    const struct frames_conf *conf = job->conf;
    const struct gw_host *h = job->host;
    uint64_t single = (((uint64_t)1 << FRAMES_ARRIVALS) - 1) & ~((uint64_t)1 << FRAMES_START);
    enum gw_status st = GW_OK;
    char where[300];

    list->used = true;
    h->value_where(list, where, sizeof where);
    if (list->kind != GW_V_LIST || !list->child)
        return gw_fail(err, GW_PARAM, "%s: generators is a list of maps {size: 1000, "
                       "interval: 4ms, count: 100}", where);
    if (job->given >> FRAMES_OWN_ROWS & single)
        return gw_fail(err, GW_PARAM, "%s: size, interval and their like stand either in "
                       "generators or beside it, not both", where);
    for (struct gw_value *v = list->child; v && st == GW_OK; v = v->next) {
        struct gen_conf g = { 0 };
        uint64_t given = 0;

        v->used = true;
        h->value_where(v, where, sizeof where);
        if (v->kind != GW_V_MAP)
            return gw_fail(err, GW_PARAM, "%s: a generator is a map {size: 1000, interval: 4ms, "
                           "count: 100}", where);
        st = h->params_read(frames_gen_params, FRAMES_GEN_ROWS, &g, v, NULL, "a generator", &given,
                            err);
        if (!(given >> FRAMES_ARRIVALS & 1))
            g.arrivals = conf->one.arrivals;
        g.start_ps = g.start_ps < GW_NEVER - conf->one.start_ps ? g.start_ps + conf->one.start_ps
                                                                : GW_NEVER - 1;
        if (st == GW_OK)
            st = frames_add(job, &g, given, where, err);
    }
    return st;
}

static enum gw_status frames_prepare(struct gw_job *job, struct gw_error *err)
{
    const struct frames_conf *conf = job->conf;
    const struct gw_host *h = job->host;
    struct frames_job *j = job->priv;
    const char *name[2] = { conf->from, conf->to }, *const key[2] = { "from", "to" };
    uint32_t   *rank[2] = { &j->from, &j->to };
    char where[300];
    enum gw_status st = gw_rankmap_open(job, &j->map, err);

    for (uint32_t i = 0; i < 2 && st == GW_OK; i++) {
        struct gw_value *v = h->value_get(job->value, key[i]);

        h->value_where(v ? v : job->value, where, sizeof where);
        st = gw_rankmap_name(job, &j->map, name[i], where, rank[i], err);
    }
    if (st == GW_OK && j->from == j->to)
        st = gw_fail(err, GW_PARAM, "%s: frames from host \"%s\" to itself cross no network",
                     where, conf->to);
    if (st != GW_OK)
        return st;
    h->value_where(job->value, where, sizeof where);
    if (job->iterations > 1)
        return gw_fail(err, GW_PARAM, "%s: frames know no iterations, here are %u; `count` says "
                       "how long they last", where, job->iterations);
    if (gw_rankmap_close(job, &j->map, err) != GW_OK)
        return err->code;
    return conf->generators ? frames_list(job, h->value_get(job->value, "generators"), err)
                            : frames_add(job, &conf->one, job->given >> FRAMES_OWN_ROWS, where, err);
}

static enum gw_status frames_job_init(struct gw_job *job, struct gw_error *err)
{
    enum gw_status st = frames_prepare(job, err);

    if (st != GW_OK)
        frames_job_fini(job);
    return st;
}

static enum gw_status frames_next(struct gw_program *p, uint32_t iteration, struct gw_error *err)
{
    const struct frames_job *j = p->job->priv;
    enum gw_status st = GW_OK;

    if (p->rank != j->from || iteration)
        return GW_OK;
    for (uint32_t i = 0; i < j->count && st == GW_OK; i++)
        st = p->job->host->frame_source(p, &j->source[i], err);
    return st;
}

static const struct gw_traffic_ops frames_ops = {
    .conf_bytes = sizeof(struct frames_conf),
    .job_bytes  = sizeof(struct frames_job),
    .job_init   = frames_job_init,
    .job_fini   = frames_job_fini,
    .next       = frames_next,
    .sets_ranks = true,
};

static const struct gw_param frames_params[] = {
    { "from", GW_P_STRING, offsetof(struct frames_conf, from), NULL, NULL, NULL,
      "Host that sends." },
    { "to", GW_P_STRING, offsetof(struct frames_conf, to), NULL, NULL, NULL,
      "Host that receives." },
    { "generators", GW_P_VALUE, offsetof(struct frames_conf, generators), "", NULL, NULL,
      "List of maps with the keys below, one for each stream of frames." },
    FRAMES_GEN_PARAMS(offsetof(struct frames_conf, one)),
};

GW_PLUGIN(gw_traffic_frames) = {
    GW_PLUGIN_HEAD(GW_KIND_TRAFFIC, frames_ops),
    .name    = "frames",
    .summary = "Numbered test frames at constant or Poisson intervals between two hosts.",
    .params  = frames_params, .param_count = GW_ARRAY_LEN(frames_params),
};
