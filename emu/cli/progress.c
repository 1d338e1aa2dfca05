/*
 * progress - a status line on a terminal, a heartbeat line elsewhere
 *
 * Both give simulated time, event rate and time left. The line of a terminal is rewritten five
 * times a second; the heartbeat comes after two seconds and then every ten, so that a log of a run
 * of days stays readable and a hung one is seen.
 */
#include "emu/cli/progress.h"

#include <unistd.h>

static const double LINE_EVERY_S = 0.2, BEAT_FIRST_S = 2, BEAT_EVERY_S = 10;
static const double SPAN_MAX_S = 1e9;

void gw_progress_begin(struct gw_progress_view *v, FILE *out, bool quiet,
                       const volatile sig_atomic_t *stop)
{
    memset(v, 0, sizeof *v);
    v->out      = out;
    v->quiet    = quiet;
    v->stop     = stop;
    v->terminal = isatty(fileno(out)) == 1;
    v->next_s   = v->terminal ? LINE_EVERY_S : BEAT_FIRST_S;
}

/* "12.3 s", "4 min 05 s", "2 h 03 min" */
static const char *span(double s, char *buf, size_t n)
{
    if (s > SPAN_MAX_S)
        snprintf(buf, n, "years");
    else if (s < 60)
        snprintf(buf, n, "%.*f s", s < 10 ? 1 : 0, s);
    else if (s < 3600)
        snprintf(buf, n, "%d min %02d s", (int)(s / 60), (int)s % 60);
    else
        snprintf(buf, n, "%lld h %02d min", (long long)(s / 3600), (int)((long long)s / 60 % 60));
    return buf;
}

/* Share that is done, from whatever is known; < 0: nothing is. */
static double share(const struct gw_progress *p)
{
    double by_time = p->until_s > 0 ? p->sim_s / p->until_s : -1;

    return p->done > by_time ? p->done : by_time;
}

static void line(const struct gw_progress *p, char *buf, size_t n)
{
    char   left[48];
    double done = share(p);
    int    used = snprintf(buf, n, "simulated %.6g s", p->sim_s);

    if (p->until_s > 0)
        used += snprintf(buf + used, n - (size_t)used, " of %.6g s", p->until_s);
    used += snprintf(buf + used, n - (size_t)used, ", %.2f M events/s", p->event_rate / 1e6);
    if (done > 0 && done <= 1)
        snprintf(buf + used, n - (size_t)used, ", %.0f %% done, about %s left", 100 * done,
                 span(p->wall_s * (1 - done) / done, left, sizeof left));
    else
        snprintf(buf + used, n - (size_t)used, ", running for %s",
                 span(p->wall_s, left, sizeof left));
}

bool gw_progress_show(void *ctx, const struct gw_progress *p)
{
    struct gw_progress_view *v = ctx;
    char text[256];

    v->sim_s = p->sim_s;
    if (!v->quiet && p->wall_s >= v->next_s) {
        v->next_s = p->wall_s + (v->terminal ? LINE_EVERY_S : BEAT_EVERY_S);
        line(p, text, sizeof text);
        if (v->terminal)
            fprintf(v->out, "\r\033[K%s", text);
        else
            fprintf(v->out, "%s\n", text);
        fflush(v->out);
        v->line_open = v->terminal;
    }
    return !*v->stop;
}

void gw_progress_end(struct gw_progress_view *v)
{
    if (v->line_open) {
        fputs("\r\033[K", v->out);
        fflush(v->out);
    }
    v->line_open = false;
}
