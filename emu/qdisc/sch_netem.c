/*
 * sch_netem - delay, loss, duplication, corruption, reordering and rate of an emulated network
 *
 * Every word of tc-netem(8) with the behaviour of Linux 6.1, oddities included: the words promise
 * one thing and the kernel does another in several places, and then this does what the kernel does
 * and advise() says so with the effective figure. Per packet the draws are: duplicate, loss,
 * corrupt, reorder, delay; a packet then waits in a line ordered by its time to send
 * (alg/delayline.h), which it leaves at once, or into the child under class X:1 if one was hung
 * there. Arithmetic is the kernel's: whole nanoseconds, 32-bit random numbers, delay and jitter
 * from clock ticks of 64 ns. A copy made by `duplicate` goes into the root of the tree and draws by
 * itself, without being duplicated once more. A frame that `ecn` marks instead of losing it counts
 * in drops, too, as in the kernel.
 *
 * Beyond tc 6.1: `limit auto` (as much as rate and delay need) and `seed` (iproute2 6.6). A table
 * NAME of `distribution` is NAME.dist beside the study, one of the four that iproute2 installs
 * (alg/disttable.h), or NAME.dist where iproute2 keeps them.
 *
 * `corrupt` flips one bit of the frame, uniform over all its bytes, the Ethernet header's too: in
 * captures it is wrong, and a receiver finds it by its check sums, unless it is in the Ethernet
 * source address, which nobody looks at. A super-packet is taken apart for it: its first segment is
 * corrupted, the others draw by themselves.
 *
 * Left out: that a flipped address leads a frame astray (it is thrown away where it was sent to); a
 * negative rate, which tc takes, is refused; an overhead that makes a length negative makes it 0 (the
 * kernel's length wraps).
 * Facts: net/sched/sch_netem.c of Linux 6.1, tc/q_netem.c of iproute2 6.1. Hemminger, "Network
 * emulation with NetEm", LCA 2005; the loss models: Salsano, Ludovici, Ordine, Giannuzzi,
 * "Definition of a general and intuitive loss model for packet networks and its implementation in
 * the Netem module in the Linux kernel", 2012.
 */
#include <gradwire/gradwire.h>
#include <gradwire/alg/crandom.h>
#include <gradwire/alg/delayline.h>
#include <gradwire/alg/disttable.h>

#include <ctype.h>
#include <errno.h>
#include <glob.h>

#define NETEM_TICK_NS      64
#define NETEM_TICKS_PER_US 15.625
#define NETEM_JITTER_MAX   INT32_MAX
#define NETEM_PATH_BYTES   1024
#define NETEM_RESERVE      1024u       /* packets for which there is room from the start        */
#define NETEM_FAST_BPS     1e9         /* a scratch device has no rate: a ceiling above this is
                                          no news                                               */

/* ---- configuration ------------------------------------------------------------------------ */

/* What a line named: only these are touched by a change, everything else is set anew or kept. */
enum netem_given {
    NETEM_WORDS = 1, NETEM_CORR = 2, NETEM_REORDER = 4, NETEM_CORRUPT = 8, NETEM_RATE = 16,
    NETEM_SLOT = 32, NETEM_LOSS = 64, NETEM_ECN = 128, NETEM_DIST = 256, NETEM_SLOT_DIST = 512,
    NETEM_SEED = 1024,
};

enum netem_model { NETEM_RANDOM, NETEM_STATE, NETEM_GEMODEL };

/* Parameters of a loss model. state: p13 p31 p32 p23 p14; gemodel: p r h 1-k. */
enum { P13, P31, P32, P23, P14, GE_P = 0, GE_R, GE_H, GE_K1, NETEM_MODEL_PARAMS = 5 };

struct netem_corr {
    uint32_t delay, loss, duplicate;   /* out of 2^32 - 1, as all shares below                   */
};

struct netem_rate {
    uint64_t bytes_per_s;              /* 0: none                                                */
    int32_t  packet_overhead, cell_overhead;
    uint32_t cell_bytes;
};

struct netem_slot {
    int64_t min_ns, max_ns;
    int64_t dist_ns, dist_jitter_ns;
    int32_t packets, bytes;            /* 0: no bound                                            */
};

/* A distribution: one of the four, or a file. */
struct netem_table_ref {
    enum gw_dist kind;
    char         path[NETEM_PATH_BYTES];
};

struct netem_conf {
    uint32_t limit, gap, loss, duplicate;
    bool     limit_auto;
    int64_t  latency_ns, jitter_ns;
    struct netem_corr corr;
    uint32_t reorder, reorder_corr, corrupt, corrupt_corr;
    enum netem_model model;
    uint32_t p[NETEM_MODEL_PARAMS];
    struct netem_rate rate;
    struct netem_slot slot;
    uint64_t seed;
    struct netem_table_ref dist, slot_dist;
};

/* ---- state -------------------------------------------------------------------------------- */

struct netem_table {
    int16_t *value;                    /* owner: the discipline                                  */
    uint32_t count;
};

struct netem {
    struct gw_qclass cl;               /* X:1; child NULL or hidden: frames go straight out      */
    struct gw_delayline line;
    struct gw_pktq front;              /* reordered ones, last come first                        */
    int64_t front_last_ns;             /* time to send of the last of them                       */
    uint32_t limit, gap, loss, duplicate, reorder, corrupt;
    bool limit_auto, ecn, seeded;
    bool again;                        /* inside qdisc_again: no duplicates of duplicates        */
    bool dup_corr_unsent;              /* the line gave one that tc does not send                */
    int64_t latency_ns, jitter_ns;
    struct gw_crandom delay_rnd, loss_rnd, dup_rnd, reorder_rnd, corrupt_rnd;
    uint32_t counter;                  /* frames delayed since the last reordered one            */
    enum netem_model model;
    uint32_t p[NETEM_MODEL_PARAMS];
    uint32_t state;                    /* of the loss model: 1..4, or 1 good, 2 bad              */
    struct netem_rate rate;
    struct netem_slot slot;
    bool slotted;
    int64_t slot_next_ns;
    int32_t slot_packets, slot_bytes;  /* left in this slot                                      */
    struct netem_table dist, slot_dist;
    uint64_t seed;
    uint64_t lost, marked, duplicated, corrupted, reordered;
    uint32_t first_bit;                /* to be flipped in the first segment of a super-packet   */
};

/* ---- tables ------------------------------------------------------------------------------- */

static void *netem_realloc(const struct gw_host *host, void *p, size_t bytes)
{
    return p ? host->resize(p, bytes) : host->alloc(bytes);
}

/* The values of @r; @t->value is the caller's to release. */
static enum gw_status netem_table_load(const struct gw_host *host, const struct netem_table_ref *r,
                                       struct netem_table *t, struct gw_error *err)
{
    int16_t *v = host->alloc(GW_DIST_MAX * sizeof *v);
    FILE *f;

    if (!v)
        return gw_fail(err, GW_NOMEM, "netem: out of memory for a distribution");
    if (r->kind != GW_DIST_NONE) {
        gw_dist_make(r->kind, v);
        t->count = GW_DIST_MADE;
    } else {
        f = fopen(r->path, "r");
        if (f)
            gw_skip_bom(f);
        t->count = f ? gw_dist_read(f, r->path, v, err) : 0;
        if (!f)
            gw_fail(err, GW_IO, "netem: distribution %s cannot be read: %s", r->path,
                    strerror(errno));
        else
            fclose(f);
    }
    if (!t->count) {
        host->release(v);
        return err ? err->code : GW_SYNTAX;
    }
    t->value = netem_realloc(host, v, t->count * sizeof *v);
    if (!t->value)
        t->value = v;
    return GW_OK;
}

/* NAME.dist in the folder @dir, if it is there. */
static bool netem_table_at(const struct gw_tc_args *a, const char *dir, const char *name,
                           struct netem_table_ref *r)
{
    char file[NETEM_PATH_BYTES];
    FILE *f;

    if ((size_t)snprintf(file, sizeof file, "%s/%s.dist", dir, name) >= sizeof file)
        return false;
    f = a->host->open_data ? a->host->open_data(a->host, NULL, NULL, file, r->path,
                                                sizeof r->path, NULL) : NULL;
    if (f)
        fclose(f);
    return f != NULL;
}

/* Where iproute2 keeps its tables: TC_LIB_DIR, or the system's library folders. */
static bool netem_table_installed(const struct gw_tc_args *a, const char *name,
                                  struct netem_table_ref *r)
{
    const char *dir = getenv("TC_LIB_DIR");
    bool found = false;
    glob_t g;

    if (dir && *dir == '/')
        return netem_table_at(a, dir, name, r);
    if (netem_table_at(a, "/usr/lib/tc", name, r) || netem_table_at(a, "/usr/share/tc", name, r))
        return true;
    if (glob("/usr/lib/*/tc", 0, NULL, &g))
        return false;
    for (size_t i = 0; i < g.gl_pathc && !found; i++)
        found = netem_table_at(a, g.gl_pathv[i], name, r);
    globfree(&g);
    return found;
}

static bool netem_table_beside(const struct gw_tc_args *a, const char *name,
                               struct netem_table_ref *r)
{
    char file[NETEM_PATH_BYTES];
    FILE *f = NULL;

    if ((size_t)snprintf(file, sizeof file, "%s.dist", name) < sizeof file && a->host->open_data)
        f = a->host->open_data(a->host, a->data_dir, "tc", file, r->path, sizeof r->path, NULL);
    if (f)
        fclose(f);
    return f != NULL;
}

/* Finds and checks the table @name; refusals are tc's. */
static enum gw_status netem_table_find(const struct gw_tc_args *a, const char *name,
                                       struct netem_table_ref *r, struct gw_error *err)
{
    struct netem_table t = { 0 };
    struct gw_error inner = { 0 };

    r->kind = GW_DIST_NONE;
    if (!netem_table_beside(a, name, r)) {
        r->kind = gw_dist_named(name);
        if (r->kind == GW_DIST_NONE && !netem_table_installed(a, name, r))
            return gw_fail(err, GW_SYNTAX, "No distribution data for %s: normal, pareto, "
                           "paretonormal, experimental are there, others as %s.dist beside the "
                           "study", name, name);
    }
    if (netem_table_load(a->host, r, &t, &inner) != GW_OK)
        return gw_fail(err, inner.code == GW_NOMEM ? GW_NOMEM : GW_SYNTAX, "%s", inner.text);
    a->host->release(t.value);
    return GW_OK;
}

/* ---- tc's words --------------------------------------------------------------------------- */

struct netem_words {
    const struct gw_tc_args *a;
    uint32_t  i;                       /* the word under the reader                              */
    uint32_t  latency_ticks, jitter_ticks;
    struct netem_conf *c;
    uint64_t *given;
    struct gw_error *err;
};

static const char *netem_word(const struct netem_words *w)
{
    return w->a->word[w->i];
}

/* Goes to the next word; false: there is none (the sentence is written). */
static bool netem_next(struct netem_words *w)
{
    if (w->i + 1 < w->a->count) {
        w->i++;
        return true;
    }
    gw_tc_incomplete(w->err, netem_word(w));
    return false;
}

/* If the next word begins with a digit (or, @sign, a minus), goes there. */
static bool netem_next_number(struct netem_words *w, bool sign)
{
    const char *s = w->i + 1 < w->a->count ? w->a->word[w->i + 1] : "";

    if (!isdigit((unsigned char)*s) && !(sign && *s == '-'))
        return false;
    w->i++;
    return true;
}

static enum gw_status netem_illegal(struct netem_words *w, const char *what, const char *right)
{
    return gw_tc_illegal(w->err, what, netem_word(w), right);
}

static enum gw_status netem_percent(struct netem_words *w, const char *what, uint32_t *share)
{
    double asked;
    const char *rest;

    if (!gw_tc_percent(netem_word(w), share))
        return netem_illegal(w, what, "a share from 0% to 100%");
    if (!*share && gw_tc_number(netem_word(w), &asked, &rest) && asked > 0)
        gw_tc_note(w->a, "%s %s counts as 0: tc keeps shares in steps of 2.3e-8 %%", what,
                   netem_word(w));
    return GW_OK;
}

static bool netem_s32(const char *s, int32_t *v)
{
    char *end;
    long n;

    errno = 0;
    n = strtol(s, &end, 0);
    if (end == s || *end || errno || n < INT32_MIN || n > INT32_MAX)
        return false;
    *v = (int32_t)n;
    return true;
}

static enum gw_status netem_read_limit(struct netem_words *w)
{
    if (!netem_next(w))
        return w->err->code;
    w->c->limit_auto = !strcmp(netem_word(w), "auto");
    if (w->c->limit_auto || gw_tc_size(netem_word(w), &w->c->limit))
        return GW_OK;
    return netem_illegal(w, "limit", "a number of packets (k: 1024) or auto");
}

/* A time as clock ticks; the kernel gets them as nanoseconds. */
static enum gw_status netem_ticks(struct netem_words *w, uint32_t *ticks)
{
    uint32_t us;

    if (!gw_tc_time(w->a, "delay", netem_word(w), &us))
        return netem_illegal(w, "latency", "a time in s, ms or us (none: us), e.g. 10ms");
    if (us * NETEM_TICKS_PER_US >= 4294967296.0)
        return gw_fail(w->err, GW_SYNTAX, "Illegal %u time (too large): \"%s\"; at most 274s is "
                       "right", us, netem_word(w));
    *ticks = (uint32_t)(us * NETEM_TICKS_PER_US);
    return GW_OK;
}

static enum gw_status netem_read_delay(struct netem_words *w)
{
    if (!netem_next(w) || netem_ticks(w, &w->latency_ticks) != GW_OK)
        return w->err->code;
    if (!netem_next_number(w, false))
        return GW_OK;
    if (netem_ticks(w, &w->jitter_ticks) != GW_OK)
        return w->err->code;
    if (!netem_next_number(w, false))
        return GW_OK;
    *w->given |= NETEM_CORR;
    return netem_percent(w, "latency", &w->c->corr.delay);
}

static enum gw_status netem_read_random(struct netem_words *w)
{
    if (netem_percent(w, "loss percent", &w->c->loss) != GW_OK)
        return w->err->code;
    if (!netem_next_number(w, false))
        return GW_OK;
    *w->given |= NETEM_CORR;
    return netem_percent(w, "loss correlation", &w->c->corr.loss);
}

/* The first parameter @p of a model and its complement, tc's default for the second. */
static enum gw_status netem_first_share(struct netem_words *w, const char *what, uint32_t *p,
                                        uint32_t *rest)
{
    double v = strtod(netem_word(w), NULL) / 100;

    if (netem_percent(w, what, p) != GW_OK)
        return w->err->code;
    *rest = (uint32_t)rint((1 - v) * UINT32_MAX);
    return GW_OK;
}

/* `state P13 [P31 [P32 [P23 [P14]]]]` or `gemodel P [R [1-H [1-K]]]`, behind the model's name. */
static enum gw_status netem_read_model(struct netem_words *w, enum netem_model model)
{
    static const char *const state[] = { "loss p13", "loss p31", "loss p32", "loss p23",
                                         "loss p14" };
    static const char *const gemodel[] = { "loss gemodel p", "loss gemodel r", "loss gemodel h",
                                           "loss gemodel k" };
    const char *const *what = model == NETEM_STATE ? state : gemodel;
    uint32_t *p = w->c->p, count = model == NETEM_STATE ? 5 : 4;

    if (!netem_next(w) || netem_first_share(w, what[0], &p[0], &p[1]) != GW_OK)
        return w->err->code;
    w->c->model = model;
    *w->given |= NETEM_LOSS;
    p[2] = p[3] = p[4] = 0;
    if (model == NETEM_STATE)
        p[P23] = UINT32_MAX;
    for (uint32_t i = 1; i < count && netem_next_number(w, false); i++) {
        if (netem_percent(w, what[i], &p[i]) != GW_OK)
            return w->err->code;
        if (model == NETEM_GEMODEL && i == GE_H)
            p[i] = UINT32_MAX - p[i];
    }
    return GW_OK;
}

static enum gw_status netem_read_loss(struct netem_words *w)
{
    if (w->c->loss || w->c->model != NETEM_RANDOM)
        return gw_fail(w->err, GW_SYNTAX, "Illegal \"duplicate loss argument\": a line names one "
                       "loss model, \"%s\" is the second", netem_word(w));
    if (!netem_next(w))
        return w->err->code;
    if (isdigit((unsigned char)*netem_word(w)))
        return netem_read_random(w);
    if (!strcmp(netem_word(w), "random"))
        return netem_next(w) ? netem_read_random(w) : w->err->code;
    if (!strcmp(netem_word(w), "state"))
        return netem_read_model(w, NETEM_STATE);
    if (!strcmp(netem_word(w), "gemodel"))
        return netem_read_model(w, NETEM_GEMODEL);
    return gw_fail(w->err, GW_SYNTAX, "Unknown loss parameter: %s; a share such as 1%%, random, "
                   "state or gemodel is right", netem_word(w));
}

static enum gw_status netem_read_ecn(struct netem_words *w)
{
    *w->given |= NETEM_ECN;
    return GW_OK;
}

/* PERCENT [CORRELATION]; *@corr_given: bits that a correlation gives. */
static enum gw_status netem_read_share(struct netem_words *w, const char *what, uint32_t *p,
                                       uint32_t *corr, uint64_t corr_given)
{
    if (!netem_next(w) || netem_percent(w, what, p) != GW_OK)
        return w->err->code;
    if (!netem_next_number(w, false))
        return GW_OK;
    *w->given |= corr_given;
    return netem_percent(w, what, corr);
}

static enum gw_status netem_read_reorder(struct netem_words *w)
{
    *w->given |= NETEM_REORDER;
    return netem_read_share(w, "reorder", &w->c->reorder, &w->c->reorder_corr, NETEM_CORR);
}

static enum gw_status netem_read_corrupt(struct netem_words *w)
{
    *w->given |= NETEM_CORRUPT;
    return netem_read_share(w, "corrupt", &w->c->corrupt, &w->c->corrupt_corr, NETEM_CORR);
}

/* Its correlation alone does not make tc send correlations. */
static enum gw_status netem_read_duplicate(struct netem_words *w)
{
    return netem_read_share(w, "duplicate", &w->c->duplicate, &w->c->corr.duplicate, 0);
}

static enum gw_status netem_read_gap(struct netem_words *w)
{
    if (!netem_next(w))
        return w->err->code;
    return gw_tc_u32(netem_word(w), &w->c->gap) ? GW_OK :
           netem_illegal(w, "gap", "a number of packets");
}

static enum gw_status netem_read_distribution(struct netem_words *w)
{
    if (!netem_next(w))
        return w->err->code;
    *w->given |= NETEM_DIST;
    return netem_table_find(w->a, netem_word(w), &w->c->dist, w->err);
}

static enum gw_status netem_read_rate(struct netem_words *w)
{
    struct netem_rate *r = &w->c->rate;
    uint64_t bps;

    if (!netem_next(w))
        return w->err->code;
    if (!gw_tc_rate_bps(netem_word(w), w->a->dev_rate_bps, &bps))
        return netem_illegal(w, "rate", "a rate such as 10mbit (bps: bytes per second)");
    *w->given |= NETEM_RATE;
    r->bytes_per_s = bps / 8;
    if (netem_next_number(w, true) && !netem_s32(netem_word(w), &r->packet_overhead))
        return netem_illegal(w, "rate", "the overhead of a packet in bytes");
    if (netem_next_number(w, false) && !gw_tc_u32(netem_word(w), &r->cell_bytes))
        return netem_illegal(w, "rate", "the size of a cell in bytes");
    if (netem_next_number(w, true) && !netem_s32(netem_word(w), &r->cell_overhead))
        return netem_illegal(w, "rate", "the overhead of a cell in bytes");
    return GW_OK;
}

static enum gw_status netem_slot_time(struct netem_words *w, const char *what, int64_t *ns)
{
    return gw_tc_time_ns(netem_word(w), ns) ? GW_OK :
           netem_illegal(w, what, "a time in s, ms, us or ns (none: ns)");
}

static enum gw_status netem_read_slot_times(struct netem_words *w)
{
    struct netem_slot *s = &w->c->slot;

    if (netem_slot_time(w, "slot min_delay", &s->min_ns) != GW_OK)
        return w->err->code;
    if (!netem_next_number(w, false)) {
        s->max_ns = s->min_ns;
        return GW_OK;
    }
    if (netem_slot_time(w, "slot min_delay max_delay", &s->max_ns) != GW_OK)
        return w->err->code;
    return s->max_ns >= s->min_ns ? GW_OK :
           netem_illegal(w, "slot max_delay", "a time not below the least one");
}

static enum gw_status netem_read_slot_table(struct netem_words *w)
{
    struct netem_slot *s = &w->c->slot;

    *w->given |= NETEM_SLOT_DIST;
    if (!netem_next(w) ||
        netem_table_find(w->a, netem_word(w), &w->c->slot_dist, w->err) != GW_OK ||
        !netem_next(w) || netem_slot_time(w, "slot delay", &s->dist_ns) != GW_OK ||
        !netem_next(w) || netem_slot_time(w, "slot jitter", &s->dist_jitter_ns) != GW_OK)
        return w->err->code;
    if (s->dist_jitter_ns <= 0)
        return gw_fail(w->err, GW_SYNTAX, "Non-positive jitter: \"%s\"; a slot's distribution "
                       "needs one above 0", netem_word(w));
    return GW_OK;
}

/* True if the next word is a beginning of @name; goes there and behind it. */
static bool netem_slot_bound(struct netem_words *w, const char *name, const char **value)
{
    if (w->i + 1 >= w->a->count || !gw_tc_matches(w->a->word[w->i + 1], name))
        return false;
    w->i++;
    *value = w->i + 1 < w->a->count ? w->a->word[++w->i] : NULL;
    return true;
}

static enum gw_status netem_read_slot(struct netem_words *w)
{
    struct netem_slot *s = &w->c->slot;
    const char *value;
    uint32_t bytes;

    *w->given |= NETEM_SLOT;
    if (netem_next_number(w, false)) {
        if (netem_read_slot_times(w) != GW_OK)
            return w->err->code;
    } else {
        if (!netem_next(w))
            return w->err->code;
        if (strcmp(netem_word(w), "distribution"))
            return gw_fail(w->err, GW_SYNTAX, "Unknown slot parameter: %s; a time or distribution "
                           "is right", netem_word(w));
        if (netem_read_slot_table(w) != GW_OK)
            return w->err->code;
    }
    if (netem_slot_bound(w, "packets", &value) && (!value || !netem_s32(value, &s->packets)))
        return netem_illegal(w, "slot packets", "a number of packets");
    if (netem_slot_bound(w, "bytes", &value)) {
        if (!value || !gw_tc_size(value, &bytes))
            return netem_illegal(w, "slot bytes", "a number of bytes");
        s->bytes = (int32_t)bytes;
    }
    return GW_OK;
}

static enum gw_status netem_read_seed(struct netem_words *w)
{
    char *end;

    if (!netem_next(w))
        return w->err->code;
    errno = 0;
    w->c->seed = strtoull(netem_word(w), &end, 0);
    if (!isdigit((unsigned char)*netem_word(w)) || *end || errno)
        return netem_illegal(w, "seed", "a number");
    *w->given |= NETEM_SEED;
    return GW_OK;
}

/* In tc's order: the first that begins like the word is meant. */
static const struct netem_keyword {
    const char *name;
    enum gw_status (*read)(struct netem_words *w);
} netem_keywords[] = {
    { "limit", netem_read_limit }, { "latency", netem_read_delay }, { "delay", netem_read_delay },
    { "loss", netem_read_loss }, { "drop", netem_read_loss }, { "ecn", netem_read_ecn },
    { "reorder", netem_read_reorder }, { "corrupt", netem_read_corrupt },
    { "gap", netem_read_gap }, { "duplicate", netem_read_duplicate },
    { "distribution", netem_read_distribution }, { "rate", netem_read_rate },
    { "slot", netem_read_slot }, { "seed", netem_read_seed },
};

static enum gw_status netem_read_word(struct netem_words *w)
{
    for (size_t i = 0; i < GW_ARRAY_LEN(netem_keywords); i++)
        if (gw_tc_matches(netem_word(w), netem_keywords[i].name))
            return netem_keywords[i].read(w);
    if (!strcmp(netem_word(w), "help"))
        return gw_fail(w->err, GW_SYNTAX, "Usage: ... netem [ limit PACKETS ] and what `gradwire "
                       "help qdisc netem` lists");
    return gw_tc_what(w->err, "netem", netem_word(w));
}

/* A distribution of nothing: names the delay and the jitter that the line gave. */
static enum gw_status netem_no_jitter(struct netem_words *w)
{
    static const char what[] = "distribution specified but no latency and jitter values; put `delay "
                               "TIME JITTER` beside distribution";

    for (uint32_t i = w->a->count; i-- > 2 && !w->jitter_ticks;)
        if (gw_tc_matches(w->a->word[i - 2], "delay"))
            return gw_fail(w->err, GW_SYNTAX, "%s: `%s %s %s` gives no jitter", what,
                           w->a->word[i - 2], w->a->word[i - 1], w->a->word[i]);
    return gw_tc_missing(w->err, w->a, "delay", what);
}

/* What tc refuses once the line is read. */
static enum gw_status netem_check_line(struct netem_words *w)
{
    struct netem_conf *c = w->c;

    if (c->reorder && !w->latency_ticks)
        return gw_tc_missing(w->err, w->a, "delay", "reordering not possible without specifying some "
                             "delay; put `delay TIME` beside reorder");
    if (!c->reorder && c->gap)
        return gw_tc_missing(w->err, w->a, "reorder", "gap specified without reorder probability; put "
                             "`reorder PERCENT` beside gap");
    if (c->reorder && !c->gap)
        c->gap = 1;
    if (*w->given & NETEM_ECN && !c->loss && c->model == NETEM_RANDOM)
        return gw_tc_missing(w->err, w->a, "loss", "ecn requested without loss model; put `loss ...` "
                             "beside ecn");
    if (*w->given & NETEM_DIST && (!w->latency_ticks || !w->jitter_ticks))
        return netem_no_jitter(w);
    return GW_OK;
}

static enum gw_status netem_tc_parse(const struct gw_tc_args *a, void *conf, uint64_t *given,
                                     struct gw_error *err)
{
    struct gw_error inner = { 0 };
    struct netem_words w = { .a = a, .c = conf, .given = given, .err = &inner };

    memset(conf, 0, sizeof(struct netem_conf));
    *given = NETEM_WORDS;
    w.c->limit = 1000;
    for (; w.i < a->count && inner.code == GW_OK; w.i++)
        netem_read_word(&w);
    if (inner.code == GW_OK)
        netem_check_line(&w);
    if (inner.code != GW_OK)
        return gw_fail(err, inner.code, "%s", inner.text);
    w.c->latency_ns = (int64_t)w.latency_ticks * NETEM_TICK_NS;
    w.c->jitter_ns = (int64_t)w.jitter_ticks * NETEM_TICK_NS;
    return GW_OK;
}

/* ---- taking a configuration --------------------------------------------------------------- */

/* A netem in the tree under @top, other than @me, that duplicates (or any, if @any). */
static bool netem_clash(const struct gw_qdisc *top, const struct gw_qdisc *me, bool any)
{
    struct gw_qdisc *q = (struct gw_qdisc *)(uintptr_t)top;

    if (top != me && top->ops == me->ops && (any || ((const struct netem *)top->priv)->duplicate))
        return true;
    if (!top->ops->class_walk)
        return false;
    for (struct gw_qclass *c = top->ops->class_walk(q, NULL); c; c = top->ops->class_walk(q, c))
        if (c->child && netem_clash(c->child, me, any))
            return true;
    return false;
}

static enum gw_status netem_check_tree(const struct gw_qdisc *q, uint32_t duplicate,
                                       struct gw_error *err)
{
    const struct gw_qdisc *top = q;

    while (top->up)
        top = top->up;
    if (netem_clash(top, q, duplicate != 0))
        return gw_fail(err, GW_PARAM, "netem: cannot mix duplicating netems with other netems in "
                       "tree; one netem with all words is right");
    return GW_OK;
}

/* The longest delay that is usual, for the line's buckets. */
static int64_t netem_span(const struct netem *n)
{
    return n->latency_ns + (n->dist.value ? 4 : 1) * n->jitter_ns + 1;
}

/* Packets that rate and delay need; without a rate no limit at all. */
static uint32_t netem_auto_limit(const struct gw_qdisc *q, const struct netem *n)
{
    uint64_t rate = n->rate.bytes_per_s ? n->rate.bytes_per_s : q->rate_bps / 8;
    uint64_t bytes, frame = q->mtu_bytes && n->rate.bytes_per_s ? q->mtu_bytes / 2 : 60, pkts;

    if (!rate)
        return UINT32_MAX;
    bytes = gw_mul_div(rate, (uint64_t)n->latency_ns + 4 * (uint64_t)n->jitter_ns, 1000000000);
    pkts = bytes / frame + bytes / frame / 4 + 1000;
    return pkts > UINT32_MAX ? UINT32_MAX : (uint32_t)pkts;
}

static void netem_set_slot(struct netem *n, const struct netem_slot *s, int64_t now_ns)
{
    n->slot = *s;
    if (!n->slot.packets)
        n->slot.packets = INT32_MAX;
    if (!n->slot.bytes)
        n->slot.bytes = INT32_MAX;
    if (n->slot.dist_jitter_ns > NETEM_JITTER_MAX)
        n->slot.dist_jitter_ns = NETEM_JITTER_MAX;
    n->slot_packets = n->slot.packets;
    n->slot_bytes = n->slot.bytes;
    n->slotted = n->slot.min_ns | n->slot.max_ns | n->slot.dist_jitter_ns;
    n->slot_next_ns = now_ns;
}

/* What a line sets whether it names it or not, as struct tc_netem_qopt does. */
static void netem_set_always(struct netem *n, const struct netem_conf *c)
{
    n->limit = c->limit;
    n->limit_auto = c->limit_auto;
    n->latency_ns = c->latency_ns;
    n->jitter_ns = c->jitter_ns > NETEM_JITTER_MAX ? NETEM_JITTER_MAX : c->jitter_ns;
    n->loss = c->loss;
    n->duplicate = c->duplicate;
    n->gap = c->gap;
    n->counter = 0;
    if (n->gap)
        n->reorder = UINT32_MAX;
    n->model = c->model;
    if (c->model != NETEM_RANDOM) {
        memcpy(n->p, c->p, sizeof n->p);
        n->state = 1;
    }
}

static void netem_set(struct gw_qdisc *q, const struct netem_conf *c, uint64_t given,
                      int64_t now_ns)
{
    struct netem *n = q->priv;

    netem_set_always(n, c);
    n->dup_corr_unsent = c->corr.duplicate && !(given & NETEM_CORR);
    if (given & NETEM_SEED) {
        n->seed = c->seed;
        n->seeded = true;
        q->host->rng_open(&q->rng, c->seed, "netem");
    }
    if (given & NETEM_CORR) {
        gw_crandom_init(&n->delay_rnd, c->corr.delay, &q->rng);
        gw_crandom_init(&n->loss_rnd, c->corr.loss, &q->rng);
        gw_crandom_init(&n->dup_rnd, c->corr.duplicate, &q->rng);
    }
    if (given & NETEM_REORDER) {
        n->reorder = c->reorder;
        gw_crandom_init(&n->reorder_rnd, c->reorder_corr, &q->rng);
    }
    if (given & NETEM_CORRUPT) {
        n->corrupt = c->corrupt;
        gw_crandom_init(&n->corrupt_rnd, c->corrupt_corr, &q->rng);
    }
    if (given & NETEM_RATE)
        n->rate = c->rate;
    if (given & NETEM_ECN)
        n->ecn = true;
    if (given & NETEM_SLOT)
        netem_set_slot(n, &c->slot, now_ns);
    if (n->limit_auto)
        n->limit = netem_auto_limit(q, n);
}

/* Puts the tables that a line names in force; on failure nothing has changed. */
static enum gw_status netem_take_tables(struct gw_qdisc *q, const struct netem_conf *c,
                                        uint64_t given, struct gw_error *err)
{
    struct netem_table dist = { 0 }, slot_dist = { 0 };
    struct netem *n = q->priv;

    if (given & NETEM_DIST && netem_table_load(q->host, &c->dist, &dist, err) != GW_OK)
        return err->code;
    if (given & NETEM_SLOT_DIST &&
        netem_table_load(q->host, &c->slot_dist, &slot_dist, err) != GW_OK) {
        if (dist.value)
            q->host->release(dist.value);
        return err->code;
    }
    if (dist.value) {
        if (n->dist.value)
            q->host->release(n->dist.value);
        n->dist = dist;
    }
    if (slot_dist.value) {
        if (n->slot_dist.value)
            q->host->release(n->slot_dist.value);
        n->slot_dist = slot_dist;
    }
    return GW_OK;
}

/* ---- draws -------------------------------------------------------------------------------- */

static bool netem_chance(struct gw_qdisc *q, uint32_t p, struct gw_crandom *rnd)
{
    return p && p >= gw_crandom_next(rnd, &q->rng);
}

/* The four states: 1 good, 2 good within a burst of losses, 3 burst, 4 an isolated loss. */
static bool netem_state_loses(struct netem *n, uint32_t rnd)
{
    const uint32_t *p = n->p;

    switch (n->state) {
    case 1:
        if (rnd < p[P14]) {
            n->state = 4;
            return true;
        }
        if (p[P14] < rnd && rnd < p[P13] + p[P14]) {
            n->state = 3;
            return true;
        }
        return false;
    case 2:
        if (rnd >= p[P23])
            return false;
        n->state = 3;
        return true;
    case 3:
        if (rnd < p[P32])
            n->state = 2;
        else if (p[P32] < rnd && rnd < p[P31] + p[P32])
            n->state = 1;
        else
            return p[P31] + p[P32] < rnd;
        return false;
    default:
        n->state = 1;
        return false;
    }
}

/* Gilbert-Elliott; the loss is drawn in the state before the move. */
static bool netem_gemodel_loses(struct gw_qdisc *q, struct netem *n)
{
    if (n->state == 1) {
        if (gw_rng_u32(&q->rng) < n->p[GE_P])
            n->state = 2;
        return gw_rng_u32(&q->rng) < n->p[GE_K1];
    }
    if (gw_rng_u32(&q->rng) < n->p[GE_R])
        n->state = 1;
    return gw_rng_u32(&q->rng) > n->p[GE_H];
}

static bool netem_loses(struct gw_qdisc *q, struct netem *n)
{
    switch (n->model) {
    case NETEM_STATE:
        return netem_state_loses(n, gw_rng_u32(&q->rng));
    case NETEM_GEMODEL:
        return netem_gemodel_loses(q, n);
    default:
        return netem_chance(q, n->loss, &n->loss_rnd);
    }
}

/* A time around @mu: uniform over +-@sigma, or by the table. */
static int64_t netem_draw_time(struct gw_qdisc *q, int64_t mu, int32_t sigma,
                               struct gw_crandom *rnd, const struct netem_table *t)
{
    int64_t x, entry;
    uint32_t r;

    if (!sigma)
        return mu;
    r = gw_crandom_next(rnd, &q->rng);
    if (!t->value)
        return r % (2 * (uint32_t)sigma) + mu - sigma;
    entry = t->value[r % t->count];
    x = sigma % GW_DIST_SCALE * entry;
    x += x >= 0 ? GW_DIST_SCALE / 2 : -GW_DIST_SCALE / 2;
    return x / GW_DIST_SCALE + sigma / GW_DIST_SCALE * entry + mu;
}

static void netem_next_slot(struct gw_qdisc *q, struct netem *n, int64_t now_ns)
{
    int64_t delay;

    if (n->slot_dist.value)
        delay = netem_draw_time(q, n->slot.dist_ns, (int32_t)n->slot.dist_jitter_ns, NULL,
                                &n->slot_dist);
    else
        delay = n->slot.min_ns + (int64_t)gw_mul_div(gw_rng_u32(&q->rng),
                                 (uint64_t)(n->slot.max_ns - n->slot.min_ns), UINT64_C(1) << 32);
    n->slot_next_ns = now_ns + delay;
    n->slot_packets = n->slot.packets;
    n->slot_bytes = n->slot.bytes;
}

/* ---- the packet path ---------------------------------------------------------------------- */

static struct gw_qdisc *netem_child(const struct netem *n)
{
    return n->cl.child && !n->cl.child->hidden ? n->cl.child : NULL;
}

/* Time that a frame takes at the rate, cut. */
static int64_t netem_tx_ns(const struct netem_rate *r, uint32_t bytes)
{
    int64_t len = (int64_t)bytes + r->packet_overhead;

    if (len < 0)
        len = 0;
    if (r->cell_bytes)
        len = (len + r->cell_bytes - 1) / r->cell_bytes *
              ((int64_t)r->cell_bytes + r->cell_overhead);
    return len < 0 ? 0 : (int64_t)gw_mul_div((uint64_t)len, 1000000000, r->bytes_per_s);
}

/* The latest time to send of all that waits; false: nothing does. */
static bool netem_last(const struct netem *n, int64_t *at_ns)
{
    bool any = gw_delayline_last(&n->line, at_ns);

    if (!n->front.head || (any && *at_ns >= n->front_last_ns))
        return any;
    *at_ns = n->front_last_ns;
    return true;
}

/* @ns is time on purpose and no queueing: it does not count as a wait. The clock is cut to whole
 * nanoseconds here, so the stamp is, too, and stays behind the time to send. */
static void netem_hold(struct gw_qdisc *q, struct gw_pkt *p, int64_t ns)
{
    if (ns <= 0)
        return;
    q->held_ns += (uint64_t)ns;
    p->stamp_ps += (uint64_t)ns * GW_PS_PER_NS - p->stamp_ps % GW_PS_PER_NS;
}

static bool netem_delay(struct gw_qdisc *q, struct netem *n, struct gw_pkt *p, int64_t now_ns)
{
    int64_t last, delay = netem_draw_time(q, n->latency_ns, (int32_t)n->jitter_ns, &n->delay_rnd,
                                          &n->dist);

    /* Behind a rate it is not added to a longer queue, which this delay has made longer. */
    netem_hold(q, p, delay);
    if (n->rate.bytes_per_s) {
        if (netem_last(n, &last)) {
            delay -= last - now_ns;
            delay = delay < 0 ? 0 : delay;
            now_ns = last;
        }
        delay += netem_tx_ns(&n->rate, p->sched_bytes);
    }
    n->counter++;
    return gw_delayline_add(&n->line, now_ns + delay, p);
}

/* Puts a copy into the root. It has the frame's mark, not its flipped bit. */
static void netem_duplicate(struct gw_qdisc *q, struct netem *n, const struct gw_pkt *p,
                            uint64_t now_ps)
{
    struct gw_pkt *copy = q->host->pkt_copy(q->net, p);

    if (!copy)
        return;
    copy->flags |= GW_PKT_COPY;
    n->duplicated++;
    n->again = true;
    q->host->qdisc_again(q, copy, now_ps);
    n->again = false;
}

/* Frames that go on for this one: 0, 1 or 2. */
static uint32_t netem_copies(struct gw_qdisc *q, struct netem *n, struct gw_pkt *p)
{
    uint32_t copies = 1;

    if (!n->again && netem_chance(q, n->duplicate, &n->dup_rnd))
        copies++;
    if (netem_loses(q, n)) {
        if (n->ecn && gw_qdisc_mark(q, p)) {
            n->marked++;
            q->dropped_pkts++;                     /* so says the kernel's book                */
        } else {
            n->lost++;
            copies--;
        }
    }
    return copies;
}

/* The bit that is flipped, GW_NONE: none is. */
static uint32_t netem_flips(struct gw_qdisc *q, struct netem *n, const struct gw_pkt *p)
{
    uint32_t len = p->seg_count > 1 ? p->seg_bytes : p->len_bytes, byte;

    if (!netem_chance(q, n->corrupt, &n->corrupt_rnd))
        return GW_NONE;
    byte = gw_rng_below(&q->rng, len ? len : 1);
    return 8 * byte + gw_rng_below(&q->rng, 8);
}

static void netem_flip(struct gw_qdisc *q, struct netem *n, struct gw_pkt *p, uint32_t bit)
{
    q->host->pkt_flip(q->net, p, bit);
    n->corrupted++;
}

static enum gw_verdict netem_take_in(struct gw_qdisc *q, struct netem *n, struct gw_pkt *p,
                                     uint64_t now_ps)
{
    int64_t now_ns = (int64_t)(now_ps / GW_PS_PER_NS);

    q->drop_reason = GW_DROP_QUEUE_FULL;           /* if there is no memory to hold it         */
    if (!n->gap || n->counter < n->gap - 1 ||
        n->reorder < gw_crandom_next(&n->reorder_rnd, &q->rng))
        return netem_delay(q, n, p, now_ns) ? GW_Q_QUEUED : GW_Q_DROPPED;
    if (!n->front.head)
        n->front_last_ns = now_ns;
    gw_pktq_push_head(&n->front, p);
    n->counter = 0;
    n->reordered++;
    q->requeues++;
    return GW_Q_QUEUED;
}

static enum gw_verdict netem_segment(struct gw_qdisc *q, struct gw_pkt *p, uint32_t i,
                                     uint64_t now_ps);

static enum gw_verdict netem_enqueue(struct gw_qdisc *q, struct gw_pkt *p, uint64_t now_ps)
{
    struct netem *n = q->priv;
    uint32_t copies = netem_copies(q, n, p), bit;

    q->drop_reason = GW_DROP_LOSS;
    if (!copies)
        return GW_Q_DROPPED;
    bit = netem_flips(q, n, p);
    q->drop_reason = GW_DROP_QUEUE_FULL;
    if (q->backlog_pkts >= n->limit)                /* all that it holds, here or in its child  */
        return GW_Q_DROPPED;
    if (copies > 1)
        netem_duplicate(q, n, p, now_ps);
    if (bit != GW_NONE && p->seg_count > 1) {
        n->first_bit = bit;
        return q->host->qdisc_segments(q, p, now_ps, netem_segment);
    }
    if (bit != GW_NONE)
        netem_flip(q, n, p, bit);
    return netem_take_in(q, n, p, now_ps);
}

/* Of a super-packet that is corrupted: the first one is, the others come as if anew. */
static enum gw_verdict netem_segment(struct gw_qdisc *q, struct gw_pkt *p, uint32_t i,
                                     uint64_t now_ps)
{
    struct netem *n = q->priv;

    if (i)
        return netem_enqueue(q, p, now_ps);
    netem_flip(q, n, p, n->first_bit);
    return netem_take_in(q, n, p, now_ps);
}

/* Takes the head out if its time and its slot have come. */
static struct gw_pkt *netem_due(struct gw_qdisc *q, struct netem *n, int64_t now_ns)
{
    struct gw_pkt *p;
    int64_t at;

    if (!gw_delayline_first(&n->line, &at))
        return NULL;
    if (n->slotted && n->slot_next_ns < at)
        netem_next_slot(q, n, now_ns);
    if (at > now_ns || (n->slotted && n->slot_next_ns > now_ns))
        return NULL;
    p = gw_delayline_take(&n->line);
    if (n->slotted) {
        if (at < (int64_t)(p->stamp_ps / GW_PS_PER_NS))    /* a delay below 0: it came later    */
            at = (int64_t)(p->stamp_ps / GW_PS_PER_NS);
        netem_hold(q, p, now_ns - at);
        n->slot_packets--;
        n->slot_bytes -= (int32_t)p->sched_bytes;
        if (n->slot_packets <= 0 || n->slot_bytes <= 0)
            netem_next_slot(q, n, now_ns);
    }
    return p;
}

static struct gw_pkt *netem_dequeue(struct gw_qdisc *q, uint64_t now_ps)
{
    struct netem *n = q->priv;
    struct gw_qdisc *child = netem_child(n);
    struct gw_pkt *p;

    for (;;) {
        if ((p = gw_pktq_pop(&n->front)))
            return p;
        p = netem_due(q, n, (int64_t)(now_ps / GW_PS_PER_NS));
        if (!child)
            return p;
        if (!p)
            return q->host->qdisc_dequeue(child, now_ps);
        p->stamp_ps = now_ps;                      /* the child counts sojourn from here       */
        if (q->host->qdisc_enqueue(child, p, now_ps) == GW_Q_DROPPED)
            q->host->qdisc_drop(q, p, child->drop_reason);
    }
}

static uint64_t netem_next_ps(struct gw_qdisc *q, uint64_t now_ps)
{
    struct netem *n = q->priv;
    struct gw_qdisc *child = netem_child(n);
    uint64_t next = GW_NEVER, below;
    int64_t at;

    if (n->front.head)
        return now_ps;
    if (gw_delayline_first(&n->line, &at)) {
        if (n->slotted && n->slot_next_ns > at)
            at = n->slot_next_ns;
        next = at <= 0 ? 0 : (uint64_t)at * GW_PS_PER_NS;
    }
    if (child && child->backlog_pkts && child->ops->next_ps) {
        below = child->ops->next_ps(child, now_ps);
        next = below < next ? below : next;
    }
    return next < now_ps ? now_ps : next;
}

static void netem_reset(struct gw_qdisc *q, uint64_t now_ps)
{
    struct netem *n = q->priv;
    struct gw_qdisc *child = netem_child(n);
    struct gw_pkt *p;

    while ((p = gw_pktq_pop(&n->front)) || (p = gw_delayline_take(&n->line)))
        q->host->qdisc_drop(q, p, GW_DROP_PURGED);
    if (child && child->ops->reset)
        child->ops->reset(child, now_ps);
}

/* ---- life --------------------------------------------------------------------------------- */

static void netem_fini(struct gw_qdisc *q)
{
    struct netem *n = q->priv;

    gw_delayline_fini(&n->line);
    if (n->dist.value)
        q->host->release(n->dist.value);
    if (n->slot_dist.value)
        q->host->release(n->slot_dist.value);
    n->dist.value = n->slot_dist.value = NULL;
}

static enum gw_status netem_init(struct gw_qdisc *q, struct gw_error *err)
{
    struct netem_conf *c = q->conf;
    struct netem *n = q->priv;
    uint32_t room;

    if (!(q->given & NETEM_WORDS))                 /* made without a line                      */
        c->limit = 1000;
    n->cl.id = q->handle | 1;
    gw_delayline_init(&n->line, 0, q->host->resize, q->host->release);
    if (netem_check_tree(q, c->duplicate, err) != GW_OK ||
        netem_take_tables(q, c, q->given, err) != GW_OK)
        return err->code;
    netem_set(q, c, q->given, -1);                 /* before all time: no slot has begun       */
    n->line.span_ns = netem_span(n);
    room = n->limit < NETEM_RESERVE ? n->limit : NETEM_RESERVE;
    if (q->net && !gw_delayline_reserve(&n->line, room, n->jitter_ns ? room : 0)) {
        netem_fini(q);
        return gw_fail(err, GW_NOMEM, "netem: out of memory for %u packets", room);
    }
    return GW_OK;
}

static enum gw_status netem_change(struct gw_qdisc *q, const void *conf, uint64_t given,
                                   uint64_t now_ps, struct gw_error *err)
{
    const struct netem_conf *c = conf;
    struct netem *n = q->priv;

    if (netem_check_tree(q, c->duplicate, err) != GW_OK ||
        netem_take_tables(q, c, given, err) != GW_OK)
        return err->code;
    netem_set(q, c, given, (int64_t)(now_ps / GW_PS_PER_NS));
    gw_delayline_respan(&n->line, netem_span(n));
    return GW_OK;
}

/* ---- the class ---------------------------------------------------------------------------- */

/* As in the kernel every minor number means the one class. */
static struct gw_qclass *netem_class_find(struct gw_qdisc *q, uint32_t classid)
{
    struct netem *n = q->priv;

    (void)classid;
    n->cl.id = q->handle | 1;
    return &n->cl;
}

/* The class is there to be seen only with a child. */
static struct gw_qclass *netem_class_walk(struct gw_qdisc *q, struct gw_qclass *after)
{
    struct netem *n = q->priv;

    n->cl.id = q->handle | 1;
    return after || !netem_child(n) ? NULL : &n->cl;
}

static enum gw_status netem_graft(struct gw_qdisc *q, uint32_t classid, struct gw_qdisc *child,
                                  struct gw_qdisc **old, struct gw_error *err)
{
    struct netem *n = q->priv;

    (void)classid;
    (void)err;
    *old = n->cl.child;
    n->cl.child = child;
    return GW_OK;
}

/* ---- what tc shows ------------------------------------------------------------------------ */

/* JSON: a number under @key; text: @before and a percentage. */
static void netem_show_share(struct gw_tc_out *o, const char *key, const char *before, uint32_t p)
{
    char text[64];

    if (o->json) {
        o->real(o, key, NULL, p / 4294967295.0);
        return;
    }
    snprintf(text, sizeof text, "%s%g%%", before, 100.0 * p / 4294967295.0);
    o->str(o, NULL, "%s", text);
}

static void netem_show_corr(struct gw_tc_out *o, uint32_t rho, bool text)
{
    if (o->json || (rho && text))
        netem_show_share(o, "correlation", " ", rho);
}

static void netem_show_chance(struct gw_tc_out *o, const char *key, const char *word,
                              const char *before, uint32_t p, uint32_t rho)
{
    if (!p)
        return;
    o->open(o, key, false);
    netem_show_share(o, word, before, p);
    netem_show_corr(o, rho, true);
    o->close(o, false);
}

static uint32_t netem_ns_to_us(int64_t ns)
{
    uint64_t ticks = (uint64_t)ns / NETEM_TICK_NS;

    return (uint32_t)((double)(ticks > UINT32_MAX ? UINT32_MAX : ticks) / NETEM_TICKS_PER_US);
}

static void netem_show_delay(const struct netem *n, struct gw_tc_out *o)
{
    uint32_t us = netem_ns_to_us(n->latency_ns), jitter_us = netem_ns_to_us(n->jitter_ns);
    char buf[64];

    if (n->latency_ns < NETEM_TICK_NS)
        return;
    o->open(o, "delay", false);
    if (o->json) {
        o->real(o, "delay", NULL, us / 1e6);
        o->real(o, "jitter", NULL, jitter_us / 1e6);
    } else {
        o->str(o, NULL, " delay %s", o->time(o, us, buf));
        if (n->jitter_ns)
            o->str(o, NULL, "  %s", o->time(o, jitter_us, buf));
    }
    netem_show_corr(o, n->delay_rnd.rho, n->jitter_ns != 0);
    o->close(o, false);
}

static void netem_show_model(const struct netem *n, struct gw_tc_out *o)
{
    static const char *const names[2][NETEM_MODEL_PARAMS] = {
        { "p13", "p31", "p32", "p23", "p14" }, { "p", "r", "1-h", "1-k" },
    };
    const bool ge = n->model == NETEM_GEMODEL;
    char before[40];

    if (n->model == NETEM_RANDOM)
        return;
    o->open(o, ge ? "loss-gemodel" : "loss-state", false);
    for (uint32_t i = 0; i < NETEM_MODEL_PARAMS && names[ge][i]; i++) {
        uint32_t p = ge && i == GE_H ? UINT32_MAX - n->p[i] : n->p[i];

        snprintf(before, sizeof before, "%s %s ", i ? "" : ge ? " loss gemodel" : " loss state",
                 names[ge][i]);
        netem_show_share(o, names[ge][i], before, p);
    }
    o->close(o, false);
}

/* An integer that text shows only when it is not 0. */
static void netem_show_int(struct gw_tc_out *o, const char *key, const char *fmt, int64_t v)
{
    o->i64(o, key, NULL, v);
    if (v)
        o->i64(o, NULL, fmt, v);
}

static void netem_show_rate(const struct netem *n, struct gw_tc_out *o)
{
    const struct netem_rate *r = &n->rate;
    char buf[64];

    if (!r->bytes_per_s)
        return;
    o->open(o, "rate", false);
    if (o->json)
        o->u64(o, "rate", NULL, r->bytes_per_s);
    else
        o->str(o, NULL, " rate %s", o->rate(o, r->bytes_per_s, buf));
    netem_show_int(o, "packetoverhead", " packetoverhead %lld", r->packet_overhead);
    netem_show_int(o, "cellsize", " cellsize %lld", r->cell_bytes);
    netem_show_int(o, "celloverhead", " celloverhead %lld", r->cell_overhead);
    o->close(o, false);
}

static void netem_show_slot_time(struct gw_tc_out *o, const char *key, const char *fmt, int64_t ns)
{
    char buf[64];

    if (o->json)
        o->real(o, key, NULL, (double)ns / 1e9);
    else
        o->str(o, NULL, fmt, o->time64(o, ns, buf));
}

static void netem_show_slot(const struct netem *n, struct gw_tc_out *o)
{
    const struct netem_slot *s = &n->slot;

    if (!n->slotted)
        return;
    o->open(o, "slot", false);
    if (s->dist_jitter_ns > 0) {
        netem_show_slot_time(o, "distribution", " slot distribution %s", s->dist_ns);
        netem_show_slot_time(o, "jitter", " %s", s->dist_jitter_ns);
    } else {
        netem_show_slot_time(o, "min-delay", " slot %s", s->min_ns);
        netem_show_slot_time(o, "max-delay", " %s", s->max_ns);
    }
    netem_show_int(o, "packets", " packets %lld", s->packets == INT32_MAX ? 0 : s->packets);
    netem_show_int(o, "bytes", " bytes %lld", s->bytes == INT32_MAX ? 0 : s->bytes);
    o->close(o, false);
}

static void netem_tc_show(const struct gw_qdisc *q, struct gw_tc_out *o)
{
    const struct netem *n = q->priv;

    o->u64(o, "limit", NULL, n->limit);
    if (n->limit_auto && n->limit == UINT32_MAX)     /* tc has no word for it                  */
        o->str(o, NULL, "limit %s", "auto");
    else
        o->i64(o, NULL, "limit %lld", (int32_t)n->limit);
    netem_show_delay(n, o);
    netem_show_chance(o, "loss-random", "loss", " loss ", n->loss, n->loss_rnd.rho);
    netem_show_model(n, o);
    netem_show_chance(o, "duplicate", "duplicate", " duplicate ", n->duplicate, n->dup_rnd.rho);
    netem_show_chance(o, "reorder", "reorder", " reorder ", n->reorder, n->reorder_rnd.rho);
    netem_show_chance(o, "corrupt", "corrupt", " corrupt ", n->corrupt, n->corrupt_rnd.rho);
    netem_show_rate(n, o);
    netem_show_slot(n, o);
    o->flag(o, "ecn", NULL, n->ecn);
    o->flag(o, NULL, " ecn ", n->ecn);
    o->u64(o, "gap", NULL, n->gap);
    if (n->gap)
        o->u64(o, NULL, " gap %llu", n->gap);
    if (n->seeded) {
        o->u64(o, "seed", NULL, n->seed);
        o->u64(o, NULL, " seed %llu", n->seed);
    }
}

/* The kernel's netem has no counters of its own. */
static void netem_tc_show_stats(const struct gw_qdisc *q, struct gw_tc_out *o)
{
    (void)q;
    (void)o;
}

/* ---- advice ------------------------------------------------------------------------------- */

struct netem_advice {
    void (*say)(void *ctx, const char *sentence);
    void *ctx;
};

static void GW_PRINTF(2, 3) netem_say(const struct netem_advice *a, const char *fmt, ...)
{
    char text[768];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    a->say(a->ctx, text);
}

static double netem_pct(uint32_t p)
{
    return 100.0 * p / 4294967295.0;
}

/* "100ms", "9.984us": no more digits than needed. */
static const char *netem_time_text(double ns, char *buf, size_t n)
{
    if (ns >= 1e9)
        snprintf(buf, n, "%.10gs", ns / 1e9);
    else if (ns >= 1e6)
        snprintf(buf, n, "%.7gms", ns / 1e6);
    else if (ns >= 1e3)
        snprintf(buf, n, "%.7gus", ns / 1e3);
    else
        snprintf(buf, n, "%.4gns", ns);
    return buf;
}

/* How many frames the limit lets through while each of them waits for the delay. */
static void netem_advise_limit(const struct gw_qdisc *q, const struct netem *n,
                               const struct netem_advice *a)
{
    double pps, bps, rate = n->rate.bytes_per_s ? 8.0 * (double)n->rate.bytes_per_s
                                                : (double)q->rate_bps;
    char delay[32];

    if (!n->latency_ns || n->limit == UINT32_MAX)
        return;
    pps = n->limit / ((double)n->latency_ns / 1e9);
    bps = pps * 1500 * 8;
    if (rate > 0 ? bps >= rate : !q->net && bps >= NETEM_FAST_BPS)
        return;
    netem_say(a, "limit %u with delay %s lets at most %.6g packets/s through (%.6g Mbit/s of "
              "1500-byte packets); what comes beyond is dropped as queue_full, not as loss",
              n->limit, netem_time_text((double)n->latency_ns, delay, sizeof delay), pps,
              bps / 1e6);
}

static void netem_advise_corr(const char *word, uint32_t p, uint32_t rho,
                              const struct netem_advice *a)
{
    if (p && rho == UINT32_MAX)
        netem_say(a, "%s %g%% with correlation 100%%: the first draw decides for all frames", word,
                  netem_pct(p));
    else if (p && rho)
        netem_say(a, "%s %g%% with correlation %g%% happens to %.3g%% of the frames: the kernel's "
                  "correlated numbers are not uniform", word, netem_pct(p), netem_pct(rho),
                  100 * gw_crandom_share(p, rho));
}

/* Long-run share of frames that the loss model takes, and how many of them in a row on average; a
 * burst of 0: none ends. */
struct netem_losses {
    double mean, burst;
};

static struct netem_losses netem_ge_losses(const struct netem *n)
{
    double p = n->p[GE_P] / 4294967296.0, r = n->p[GE_R] / 4294967296.0;
    double lg = n->p[GE_K1] / 4294967296.0, lb = (UINT32_MAX - n->p[GE_H]) / 4294967296.0;
    double bad = p + r > 0 ? p / (p + r) : 0, mean = (1 - bad) * lg + bad * lb, ends;

    ends = (1 - bad) * lg * ((1 - p) * (1 - lg) + p * (1 - lb)) +
           bad * lb * (r * (1 - lg) + (1 - r) * (1 - lb));
    return (struct netem_losses){ mean, ends > 0 ? mean / ends : 0 };
}

/* Probabilities out of a state, as the kernel's 32-bit sums have them. */
struct netem_moves {
    double p13, p31, p32, p23, p14;
    bool   wraps_up, wraps_down;     /* p13 + p14, p31 + p32 exceed 100%                         */
};

static struct netem_moves netem_state_moves(const struct netem *n)
{
    uint32_t up = n->p[P13] + n->p[P14], down = n->p[P31] + n->p[P32];   /* 32 bits: may wrap    */

    return (struct netem_moves){
        .p13 = up > n->p[P14] ? n->p[P13] / 4294967296.0 : 0,
        .p31 = down > n->p[P32] ? n->p[P31] / 4294967296.0 : 0,
        .p32 = n->p[P32] / 4294967296.0, .p23 = n->p[P23] / 4294967296.0,
        .p14 = n->p[P14] / 4294967296.0,
        .wraps_up = up < n->p[P14], .wraps_down = down < n->p[P32],
    };
}

/* From state 3 there is no way back to state 1. */
static bool netem_state_stays(const struct netem_moves *m)
{
    return m->p13 > 0 && (m->p31 <= 0 || (m->p32 > 0 && m->p23 <= 0));
}

/* Stationary shares of the four states follow from what flows between them. */
static struct netem_losses netem_state_losses(const struct netem_moves *m)
{
    double s3 = m->p13 > 0 ? m->p13 / m->p31 : 0, s4 = m->p14;
    double s2 = s3 * m->p32 > 0 ? s3 * m->p32 / m->p23 : 0, all = 1 + s2 + s3 + s4;
    double ends = (s3 * (m->p31 + m->p32) + s4) / all;

    if (netem_state_stays(m)) {                    /* 2 for good, or 2 and 3 in turns            */
        s3 = m->p32 > 0 && m->p23 > 0 ? m->p23 / (m->p23 + m->p32) : m->p32 > 0 ? 0 : 1;
        return (struct netem_losses){ s3, s3 < 1 && s3 > 0 ? 1 / m->p32 : 0 };
    }
    return (struct netem_losses){ (s3 + s4) / all, ends > 0 ? (s3 + s4) / all / ends : 0 };
}

static void netem_advise_ge(const struct netem *n, const struct netem_advice *a)
{
    struct netem_losses l = netem_ge_losses(n);

    if (l.mean <= 0)
        netem_say(a, "loss gemodel with these shares loses nothing");
    else if (l.burst <= 0)
        netem_say(a, "loss gemodel with these shares loses %.4g%% of the frames, in the end all",
                  100 * l.mean);
    else
        netem_say(a, "loss gemodel with these shares loses %.4g%% of the frames in bursts of %.4g "
                  "on average", 100 * l.mean, l.burst);
}

static void netem_advise_state(const struct netem *n, const struct netem_advice *a)
{
    struct netem_moves m = netem_state_moves(n);
    struct netem_losses l = netem_state_losses(&m);

    if (m.wraps_up || m.wraps_down)
        netem_say(a, "loss state: %s exceeds 100%%; the kernel's sum wraps around, so the model "
                  "does not do what its numbers say", m.wraps_up ? "p13 + p14" : "p31 + p32");
    if (netem_state_stays(&m))
        netem_say(a, "loss state with these shares never comes back to state 1: in the end %s",
                  m.p32 > 0 && m.p23 <= 0 ? "nothing is lost" : "it stays within a burst");
    else if (l.mean <= 0)
        netem_say(a, "loss state with these shares loses nothing");
    else
        netem_say(a, "loss state with these shares loses %.4g%% of the frames in bursts of %.4g on "
                  "average", 100 * l.mean, l.burst);
}

/* Moments of a time as it comes out, never below 0, and the share that is 0. @dist: NULL is even. */
static void netem_moments(double mu, double s, const struct netem_table *dist, double *mean,
                          double *sd, double *at_once)
{
    uint32_t count = dist->value ? dist->count : 4096;
    double sum = 0, square = 0, zero = 0;

    for (uint32_t i = 0; i < count; i++) {
        double d = dist->value ? mu + s * dist->value[i] / GW_DIST_SCALE
                               : mu + s * (2 * (i + 0.5) / count - 1);

        zero += d <= 0;
        d = d < 0 ? 0 : d;
        sum += d;
        square += d * d;
    }
    *mean = sum / count;
    *sd = sqrt(fmax(0, square / count - *mean * *mean));
    *at_once = zero / count;
}

static void netem_delay_moments(const struct netem *n, double *mean, double *sd, double *at_once)
{
    netem_moments((double)n->latency_ns, (double)n->jitter_ns, &n->dist, mean, sd, at_once);
}

static void netem_advise_jitter(const struct netem *n, const struct netem_advice *a)
{
    double mean, sd, at_once;
    char m[32], s[32], j[32];

    if (!n->jitter_ns)
        return;
    netem_delay_moments(n, &mean, &sd, &at_once);
    netem_time_text(mean, m, sizeof m);
    netem_time_text(sd, s, sizeof s);
    netem_time_text((double)n->jitter_ns, j, sizeof j);
    if (at_once > 0 || n->dist.value)
        netem_say(a, "the delay has mean %s and standard deviation %s; %.3g%% of the frames are "
                  "not delayed at all", m, s, 100 * at_once);
    if (n->jitter_ns == NETEM_JITTER_MAX)
        netem_say(a, "the kernel cuts jitter at 2.147s");
    if (n->delay_rnd.rho)
        netem_say(a, "the correlation of %g%% leaves no trace in the delays: neighbouring frames "
                  "are delayed independently", netem_pct(n->delay_rnd.rho));
    if (!n->rate.bytes_per_s)
        netem_say(a, "jitter %s reorders frames: of two sent back to back the second arrives first "
                  "half of the time; a `rate` in the same netem keeps the order", j);
}

static void netem_advise_reorder(const struct netem *n, const struct netem_advice *a)
{
    double hit = gw_crandom_share(n->reorder, n->reorder_rnd.rho);

    if (!n->gap)
        return;
    netem_advise_corr("reorder", n->reorder, n->reorder_rnd.rho, a);
    if (hit > 0)
        netem_say(a, "reorder %g%% with gap %u sends %.3g%% of the frames at once, ahead of those "
                  "delayed", netem_pct(n->reorder), n->gap, 100 / (n->gap - 1 + 1 / hit));
}

static void netem_advise_rate(const struct netem *n, const struct netem_advice *a)
{
    char delay[32];

    if (n->rate.bytes_per_s && n->latency_ns)
        netem_say(a, "delay %s is not added behind a queue: a frame that finds others waiting "
                  "gets only what their waiting leaves of it; hang the rate into another "
                  "discipline to have both",
                  netem_time_text((double)n->latency_ns, delay, sizeof delay));
}

static double netem_slot_ns(const struct netem *n)
{
    double mean, sd, at_once;

    if (!n->slot_dist.value)
        return (double)(n->slot.min_ns + n->slot.max_ns) / 2;
    netem_moments((double)n->slot.dist_ns, (double)n->slot.dist_jitter_ns, &n->slot_dist, &mean, &sd,
                  &at_once);
    return mean;
}

/* Frames of @len_bytes that may leave in a second by slots alone; 0: any number. The last one of a
 * slot may reach beyond its bytes. */
static double netem_slot_rate(const struct netem *n, uint32_t len_bytes)
{
    double ns = netem_slot_ns(n), frames = n->slot.packets;
    double by_bytes = ceil((double)n->slot.bytes / len_bytes);

    if (!n->slotted || ns <= 0 || (n->slot.packets == INT32_MAX && n->slot.bytes == INT32_MAX))
        return 0;
    return (by_bytes < frames ? by_bytes : frames) * 1e9 / ns;
}

static void netem_advise_slot(const struct gw_qdisc *q, const struct netem *n,
                              const struct netem_advice *a)
{
    double rate = netem_slot_rate(n, q->mtu_bytes);
    char t[32];

    if (rate > 0)
        netem_say(a, "slots of %s on average let at most %.4g packets/s through (%.4g Mbit/s of "
                  "full packets)", netem_time_text(netem_slot_ns(n), t, sizeof t), rate,
                  rate * q->mtu_bytes * 8e-6);
}

static void netem_advise(const struct gw_qdisc *q, void (*say)(void *ctx, const char *sentence),
                         void *ctx)
{
    const struct netem *n = q->priv;
    const struct netem_advice a = { say, ctx };
    char t[32];

    netem_advise_limit(q, n, &a);
    if (n->latency_ns % 1000)
        netem_say(&a, "the delay is %s: tc counts in ticks of 64 ns",
                  netem_time_text((double)n->latency_ns, t, sizeof t));
    netem_advise_jitter(n, &a);
    netem_advise_rate(n, &a);
    if (n->model == NETEM_RANDOM)
        netem_advise_corr("loss", n->loss, n->loss_rnd.rho, &a);
    else if (n->model == NETEM_GEMODEL)
        netem_advise_ge(n, &a);
    else
        netem_advise_state(n, &a);
    netem_advise_corr("corrupt", n->corrupt, n->corrupt_rnd.rho, &a);
    netem_advise_corr("duplicate", n->duplicate, n->dup_rnd.rho, &a);
    if (n->duplicate && n->dup_corr_unsent)
        netem_say(&a, "duplicate's correlation is not sent by tc unless another correlation is "
                  "given too: duplicates are independent");
    netem_advise_reorder(n, &a);
    netem_advise_slot(q, n, &a);
}

/* Share of the frames of which nothing goes on: a frame that is lost and doubled goes on once. */
static double netem_mean_loss(const struct netem *n)
{
    struct netem_moves m = netem_state_moves(n);
    double p = n->model == NETEM_RANDOM ? gw_crandom_share(n->loss, n->loss_rnd.rho)
               : n->model == NETEM_GEMODEL ? netem_ge_losses(n).mean : netem_state_losses(&m).mean;

    return p * (1 - gw_crandom_share(n->duplicate, n->dup_rnd.rho));
}

/* A frame comes at any time within a slot, so slots add half their length. */
static void netem_outline(const struct gw_qdisc *q, uint32_t classid, uint32_t len_bytes,
                          struct gw_outline *o)
{
    const struct netem *n = q->priv;
    double mean, sd, at_once, slots, hit = gw_crandom_share(n->reorder, n->reorder_rnd.rho);

    (void)classid;
    netem_delay_moments(n, &mean, &sd, &at_once);
    if (n->gap && hit > 0)
        mean *= 1 - 1 / (n->gap - 1 + 1 / hit);
    o->delay_s = mean / 1e9;
    if (n->slotted)
        o->delay_s += netem_slot_ns(n) / 2e9;
    o->loss = 1 - (1 - netem_mean_loss(n)) *
              (1 - gw_crandom_share(n->corrupt, n->corrupt_rnd.rho));   /* the receiver drops it */
    if (!n->limit)
        o->loss = 1;
    if (n->rate.bytes_per_s) {
        int64_t ns = netem_tx_ns(&n->rate, len_bytes);

        o->rate_bps = ns > 0 ? gw_mul_div(len_bytes, UINT64_C(8000000000), (uint64_t)ns)
                             : n->rate.bytes_per_s * 8;
    }
    if (n->latency_ns && n->limit != UINT32_MAX)
        o->pkts_per_s = n->limit / ((double)n->latency_ns / 1e9);
    slots = netem_slot_rate(n, len_bytes);
    if (slots > 0 && (!o->rate_bps || slots * len_bytes * 8 < (double)o->rate_bps))
        o->rate_bps = (uint64_t)(slots * len_bytes * 8 + 0.5);
}

/* ---- the discipline ----------------------------------------------------------------------- */

static const struct gw_stat netem_stats[] = {
    { "lost", offsetof(struct netem, lost), "Frames lost by the loss model." },
    { "ecn_marked", offsetof(struct netem, marked), "Frames marked instead of lost." },
    { "duplicated", offsetof(struct netem, duplicated), "Copies made." },
    { "corrupted", offsetof(struct netem, corrupted), "Frames with a flipped bit." },
    { "reordered", offsetof(struct netem, reordered), "Frames sent at once." },
};

static const struct gw_qdisc_ops netem_ops = {
    .priv_bytes    = sizeof(struct netem),
    .conf_bytes    = sizeof(struct netem_conf),
    .init          = netem_init,
    .fini          = netem_fini,
    .enqueue       = netem_enqueue,
    .dequeue       = netem_dequeue,
    .next_ps       = netem_next_ps,
    .change        = netem_change,
    .reset         = netem_reset,
    .class_find    = netem_class_find,
    .class_walk    = netem_class_walk,
    .graft         = netem_graft,
    .stats         = netem_stats, .stat_count = GW_ARRAY_LEN(netem_stats),
    .tc_parse      = netem_tc_parse,
    .tc_show       = netem_tc_show,
    .tc_show_stats = netem_tc_show_stats,
    .advise        = netem_advise,
    .outline       = netem_outline,
};

static const struct gw_param netem_params[] = {
    { "limit", GW_P_WORDS, 0, "1000", NULL, NULL,
      "PACKETS: frames that are held at most, delayed ones included; auto: what rate and delay "
      "need." },
    { "delay", GW_P_WORDS, 0, "0ms", NULL, NULL,
      "TIME [JITTER [CORRELATION]]: delay, at most 274s, in steps of 64 ns (10us is 9.984us); "
      "uniform jitter unless distribution is given." },
    { "loss", GW_P_WORDS, 0, "0%", NULL, NULL,
      "[random] PERCENT [CORRELATION] | state P13 [P31 [P32 [P23 [P14]]]] | gemodel P [R [1-H "
      "[1-K]]]." },
    { "ecn", GW_P_WORDS, 0, "no", NULL, NULL,
      "Marks ECN-capable frames where the loss model would lose them." },
    { "reorder", GW_P_WORDS, 0, "0%", NULL, NULL,
      "PERCENT [CORRELATION]: share of frames sent at once, before those delayed; needs delay." },
    { "corrupt", GW_P_WORDS, 0, "0%", NULL, NULL,
      "PERCENT [CORRELATION]: share of frames in which a bit is flipped." },
    { "gap", GW_P_WORDS, 0, "0", NULL, NULL,
      "PACKETS: only every N-th frame may be reordered; 1 when reorder is given." },
    { "duplicate", GW_P_WORDS, 0, "0%", NULL, NULL,
      "PERCENT [CORRELATION]: share of frames of which a copy is made; tc sends the correlation "
      "only beside another one." },
    { "distribution", GW_P_WORDS, 0, "uniform", NULL, NULL,
      "normal | pareto | paretonormal | experimental | NAME: shape of the jitter; NAME.dist beside "
      "the study." },
    { "rate", GW_P_WORDS, 0, "0", NULL, NULL,
      "RATE [PACKETOVERHEAD [CELLSIZE [CELLOVERHEAD]]]: frames leave one after the other at this "
      "rate; negative rates, which tc takes, are refused." },
    { "slot", GW_P_WORDS, 0, "0", NULL, NULL,
      "MIN [MAX] | distribution NAME DELAY JITTER, [packets N] [bytes N]: frames leave in slots." },
    { "seed", GW_P_WORDS, 0, "0", NULL, NULL,
      "NUMBER: own random stream, as iproute2 6.6 has it; else from the study's seed." },
};

GW_PLUGIN(gw_qdisc_netem) = {
    GW_PLUGIN_HEAD(GW_KIND_QDISC, netem_ops),
    .name    = "netem",
    .summary = "Emulated network: delay, loss, duplication, corruption, reordering, rate, slots.",
    .params  = netem_params, .param_count = GW_ARRAY_LEN(netem_params),
    .source  = "Linux 6.1 net/sched/sch_netem.c, iproute2 6.1 tc/q_netem.c",
};
