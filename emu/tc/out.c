/*
 * out - text and JSON of tc's answers, spelled as iproute2 6.1 spells them
 *
 * JSON is written in the order of the calls, on one line or, with -p, indented by four blanks, with
 * the same breaks as lib/json_writer.c. Rates step down a unit when cutting would lose much, sizes
 * stay in bytes unless they are near a whole number of KB or MB, times have three digits. Left out:
 * colours, -oneline.
 */
#include <math.h>

#include "emu/tc/out.h"

static struct gw_tc_writer *writer(struct gw_tc_out *o)
{
    return o->priv;
}

/* ---- JSON --------------------------------------------------------------------------------- */

static void json_line(struct gw_tc_writer *w)
{
    if (!w->out.pretty)
        return;
    fputc('\n', w->f);
    for (uint32_t i = 0; i < w->depth; i++)
        fputs("    ", w->f);
}

static void json_sep(struct gw_tc_writer *w)
{
    if (w->sep)
        fputc(w->sep, w->f);
    w->sep = ',';
}

static void json_string(struct gw_tc_writer *w, const char *s)
{
    fputc('"', w->f);
    for (; *s; s++) {
        unsigned char c = (unsigned char)*s;

        if (c == '"' || c == '\\')
            fprintf(w->f, "\\%c", c);
        else if (c < 0x20)
            fprintf(w->f, "\\u%04x", c);
        else
            fputc(c, w->f);
    }
    fputc('"', w->f);
}

/* "key": or, inside an array (key ""), only the comma. */
static void json_key(struct gw_tc_writer *w, const char *key)
{
    json_sep(w);
    if (!*key)
        return;
    json_line(w);
    json_string(w, key);
    fputs(w->out.pretty ? ": " : ":", w->f);
}

static bool json_wants(const struct gw_tc_writer *w, const char *key)
{
    return w->f && w->out.json && key;
}

static void out_open(struct gw_tc_out *o, const char *key, bool array)
{
    struct gw_tc_writer *w = writer(o);

    if (!w->f || !o->json)
        return;
    json_key(w, key ? key : "");
    fputc(array ? '[' : '{', w->f);
    w->depth++;
    w->sep = 0;
    if (array && o->pretty)
        fputc(' ', w->f);
}

static void out_close(struct gw_tc_out *o, bool array)
{
    struct gw_tc_writer *w = writer(o);

    if (!w->f || !o->json || !w->depth)
        return;
    w->depth--;
    if (array && o->pretty && w->sep)
        fputc(' ', w->f);
    else if (!array && w->sep)
        json_line(w);
    fputc(array ? ']' : '}', w->f);
    w->sep = ',';
}

/* Copies the string that begins at @s; answers what is behind it. */
static const char *copy_string(FILE *f, const char *s)
{
    do {
        if (*s == '\\' && s[1])
            fputc(*s++, f);
        fputc(*s++, f);
    } while (*s && *s != '"');
    if (*s)
        fputc(*s++, f);
    return s;
}

void gw_tc_json(struct gw_tc_writer *w, const char *json)
{
    /* Bit i: at depth i it is an object, not an array; a text that begins with a key is in one. */
    uint64_t object = (uint64_t)(*json == '"') << (w->depth & 63);
    char before = 0;

    if (!w->f || !w->out.json)
        return;
    json_sep(w);
    for (const char *s = json; *s; before = s[-1]) {
        bool in_object = object >> (w->depth & 63) & 1;

        if (*s == '"') {
            if (in_object && before != ':')
                json_line(w);
            s = copy_string(w->f, s);
            continue;
        }
        if (*s == '{' || *s == '[') {
            w->depth++;
            object &= ~(UINT64_C(1) << (w->depth & 63));
            object |= (uint64_t)(*s == '{') << (w->depth & 63);
        } else if (*s == '}' || *s == ']') {
            w->depth--;
            if (before != '{' && before != '[' && *s == '}')
                json_line(w);
            else if (before != '[' && *s == ']' && w->out.pretty)
                fputc(' ', w->f);
        }
        fputc(*s, w->f);
        if (w->out.pretty && (*s == ':' || *s == '['))
            fputc(' ', w->f);
        s++;
    }
}

/* ---- text --------------------------------------------------------------------------------- */

static bool text_wants(struct gw_tc_writer *w, const char *fmt)
{
    if (!w->f || w->out.json || !fmt || !*fmt)
        return false;
    w->at_line_start = fmt[strlen(fmt) - 1] == '\n';
    w->wrote = true;
    return true;
}

void gw_tc_text(struct gw_tc_writer *w, const char *text)
{
    if (text_wants(w, text))
        fputs(text, w->f);
}

static void out_newline(struct gw_tc_out *o)
{
    struct gw_tc_writer *w = writer(o);

    if (!w->f || o->json)
        return;
    fputs(w->at_line_start ? "  " : "\n  ", w->f);
    w->at_line_start = false;
    w->wrote = true;
}

/* ---- values ------------------------------------------------------------------------------- */

static void out_u64(struct gw_tc_out *o, const char *key, const char *fmt, unsigned long long v)
{
    struct gw_tc_writer *w = writer(o);

    if (json_wants(w, key)) {
        json_key(w, key);
        fprintf(w->f, "%llu", v);
    } else if (text_wants(w, fmt)) {
        fprintf(w->f, fmt, v);
    }
}

static void out_i64(struct gw_tc_out *o, const char *key, const char *fmt, long long v)
{
    struct gw_tc_writer *w = writer(o);

    if (json_wants(w, key)) {
        json_key(w, key);
        fprintf(w->f, "%lld", v);
    } else if (text_wants(w, fmt)) {
        fprintf(w->f, fmt, v);
    }
}

static void out_real(struct gw_tc_out *o, const char *key, const char *fmt, double v)
{
    struct gw_tc_writer *w = writer(o);

    if (json_wants(w, key)) {
        json_key(w, key);
        fprintf(w->f, "%.6g", isfinite(v) ? v : 0);
    } else if (text_wants(w, fmt)) {
        fprintf(w->f, fmt, v);
    }
}

static void out_str(struct gw_tc_out *o, const char *key, const char *fmt, const char *v)
{
    struct gw_tc_writer *w = writer(o);

    if (!v)
        v = "";
    if (json_wants(w, key)) {
        json_key(w, key);
        json_string(w, v);
    } else if (text_wants(w, fmt)) {
        fprintf(w->f, fmt, v);
    }
}

static void out_flag(struct gw_tc_out *o, const char *key, const char *fmt, bool v)
{
    struct gw_tc_writer *w = writer(o);

    if (json_wants(w, key)) {
        json_key(w, key);
        fputs(v ? "true" : "false", w->f);
    } else if (v && text_wants(w, fmt)) {
        fputs(fmt, w->f);
    }
}

static void out_null(struct gw_tc_out *o, const char *key, const char *fmt)
{
    struct gw_tc_writer *w = writer(o);

    if (json_wants(w, key)) {
        json_key(w, key);
        fputs("null", w->f);
    } else if (text_wants(w, fmt)) {
        fputs(fmt, w->f);
    }
}

/* ---- spellings ---------------------------------------------------------------------------- */

static const char *out_rate(const struct gw_tc_out *o, uint64_t bytes_per_s, char *buf)
{
    static const char *const unit[] = { "", "K", "M", "G", "T" };
    uint64_t kilo = o->iec ? 1024 : 1000, rate = bytes_per_s << 3;
    size_t i = 0;

    while (i + 1 < GW_ARRAY_LEN(unit) && rate >= kilo && !(rate % kilo && rate < 1000 * kilo)) {
        rate /= kilo;
        i++;
    }
    snprintf(buf, 64, "%llu%s%sbit", (unsigned long long)rate, unit[i], i && o->iec ? "i" : "");
    return buf;
}

static const char *out_time(const struct gw_tc_out *o, uint32_t us, char *buf)
{
    (void)o;
    if (us >= 1000000)
        snprintf(buf, 64, "%.3gs", us / 1e6);
    else if (us >= 1000)
        snprintf(buf, 64, "%.3gms", us / 1e3);
    else
        snprintf(buf, 64, "%uus", us);
    return buf;
}

static const char *out_time64(const struct gw_tc_out *o, int64_t ns, char *buf)
{
    (void)o;
    if (ns >= 1000000000)
        snprintf(buf, 64, "%.3gs", (double)ns / 1e9);
    else if (ns >= 1000000)
        snprintf(buf, 64, "%.3gms", (double)ns / 1e6);
    else if (ns >= 1000)
        snprintf(buf, 64, "%.3gus", (double)ns / 1e3);
    else
        snprintf(buf, 64, "%lldns", (long long)ns);
    return buf;
}

static const char *out_size(const struct gw_tc_out *o, uint64_t bytes, char *buf)
{
    double v = (double)bytes, mb = rint(v / 1048576), kb = rint(v / 1024);

    (void)o;
    if (bytes >= 1048576 && fabs(1048576 * mb - v) < 1024)
        snprintf(buf, 64, "%gMb", mb);
    else if (bytes >= 1024 && fabs(1024 * kb - v) < 16)
        snprintf(buf, 64, "%gKb", kb);
    else
        snprintf(buf, 64, "%llub", (unsigned long long)bytes);
    return buf;
}

void gw_tc_writer_init(struct gw_tc_writer *w, FILE *f)
{
    struct gw_tc_out *o = &w->out;

    w->f = f;
    w->depth = 0;
    w->sep = 0;
    w->at_line_start = true;
    w->wrote = false;
    o->priv = w;
    o->u64 = out_u64;
    o->i64 = out_i64;
    o->real = out_real;
    o->str = out_str;
    o->flag = out_flag;
    o->null = out_null;
    o->open = out_open;
    o->close = out_close;
    o->newline = out_newline;
    o->rate = out_rate;
    o->time = out_time;
    o->time64 = out_time64;
    o->size = out_size;
}
