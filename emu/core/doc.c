/*
 * doc.c - a YAML file as a tree of positioned values
 *
 * libyaml's parser hands over events; they become nodes in an arena that is freed as a whole. What
 * YAML allows and a study must not hold is refused with its position: a second document, repeated
 * keys, keys that are no plain words, foreign tags, merge keys, aliases that expand without bounds,
 * nesting without end. Scalars stay text; readers give them their types.
 *
 * A tc line such as "qdisc add dev a root handle 1: netem" holds ": ", which makes YAML take it for
 * a map. Where that happens under a key `tc`, the line is shown as it should have been quoted.
 */
#include "emu/core/doc.h"

#include <errno.h>
#include <stdlib.h>
#include <yaml.h>

#include "emu/core/text.h"

#define DEPTH_MAX   64                  /* nesting of a file, and of one --set                 */
#define KEY_MAX     200                 /* bytes; libyaml's own bound on simple keys is 1024   */
#define FILE_MAX    (64u << 20)         /* bytes                                               */
#define COPIES_MAX  100000u             /* nodes that aliases may add                          */
#define CHUNK_BYTES 65536u
#define SHOWN_BYTES 160                 /* of a source line in a sentence                      */

struct chunk {
    struct chunk *next;
    size_t        used, size;
    max_align_t   bytes[];
};

struct anchor {
    struct anchor   *next;
    const char      *name;
    struct gw_value *value;             /* NULL until its end is reached                       */
};

struct gw_doc {
    struct chunk    *chunk;
    struct gw_value *root;
    const char      *file;              /* in the arena                                        */
};

/* ---- arena -------------------------------------------------------------------------------- */

static void *arena_alloc(struct gw_doc *d, size_t n)
{
    struct chunk *c = d->chunk;
    void *p;

    n = (n + sizeof(max_align_t) - 1) / sizeof(max_align_t) * sizeof(max_align_t);
    if (!c || c->size - c->used < n) {
        size_t size = n > CHUNK_BYTES ? n : CHUNK_BYTES;

        c = malloc(sizeof *c + size);
        if (!c)
            return NULL;
        c->used = 0;
        c->size = size;
        c->next = d->chunk;
        d->chunk = c;
    }
    p = (char *)c->bytes + c->used;
    c->used += n;
    return memset(p, 0, n);
}

static const char *arena_text(struct gw_doc *d, const char *s, size_t n)
{
    char *p = arena_alloc(d, n + 1);

    if (p && n)
        memcpy(p, s, n);
    return p;
}

/* ---- the tree ----------------------------------------------------------------------------- */

static struct gw_value *find_key(const struct gw_value *map, const char *key, size_t n)
{
    for (struct gw_value *v = map->child; v; v = v->next)
        if (!strncmp(v->key, key, n) && !v->key[n])
            return v;
    return NULL;
}

static void attach(struct gw_value *parent, struct gw_value *v)
{
    struct gw_value **at = &parent->child;

    while (*at)
        at = &(*at)->next;
    *at = v;
    v->parent = parent;
    v->next = NULL;
}

/* A map, or a list with one in it: nothing that may stand under `tc`. */
static bool holds_map(const struct gw_value *v)
{
    if (v->kind == GW_V_MAP)
        return true;
    for (const struct gw_value *c = v->child; c; c = c->next)
        if (holds_map(c))
            return true;
    return false;
}

/* ---- building from events ----------------------------------------------------------------- */

struct build {
    struct gw_doc   *doc;
    const char      *text;              /* the whole source                                    */
    size_t           len;
    const char      *file;              /* in the arena                                        */
    bool             positions;         /* false: line 0, the text has no lines of its own     */
    yaml_parser_t    parser;
    yaml_event_t     event;             /* the current one, freed by next_event()              */
    bool             have_event;
    struct anchor   *anchors;
    uint32_t         copies;
    struct gw_error *err;
};

static enum gw_status build_node(struct build *b, unsigned depth, bool in_tc,
                                 struct gw_value **out);

/* A sentence at a mark of libyaml's (0-based). */
static enum gw_status GW_PRINTF(4, 5)
fail_at(const struct build *b, size_t line, size_t col, const char *fmt, ...)
{
    char why[768];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(why, sizeof why, fmt, ap);
    va_end(ap);
    if (!b->positions)
        return gw_fail(b->err, GW_SYNTAX, "%s: %s", b->file, why);
    return gw_fail(b->err, GW_SYNTAX, "%s:%zu:%zu: %s", b->file, line + 1, col + 1, why);
}

static enum gw_status no_memory(struct build *b)
{
    return gw_fail(b->err, GW_NOMEM, "%s: out of memory", b->file);
}

/* The source line @line (0-based) without indentation and "- ", as it would stand in quotes. */
static bool quoted_line(const struct build *b, size_t line, char out[SHOWN_BYTES + 8])
{
    const char *s = b->text, *end = b->text + b->len, *eol, *tc;
    size_t n = 0;

    while (line-- && s < end) {
        s = memchr(s, '\n', (size_t)(end - s));
        s = s ? s + 1 : end;
    }
    eol = memchr(s, '\n', (size_t)(end - s));
    if (!eol)
        eol = end;
    tc = memmem(s, (size_t)(eol - s), "tc:", 3);
    if (tc)
        s = tc + 3;
    while (s < eol && (*s == ' ' || *s == '\t' || *s == '-' || *s == '['))
        s++;
    while (eol > s && strchr(" \t\r}],", eol[-1]))
        eol--;
    out[n++] = '"';
    for (; s < eol && n < SHOWN_BYTES; s++)
        if (*s != '"' && (unsigned char)*s >= 0x20)
            out[n++] = *s;
    if (s < eol) {
        memcpy(out + n, "...", 3);
        n += 3;
    }
    out[n++] = '"';
    out[n] = '\0';
    return n > 2;
}

/* Does the source line @line look like a tc line that is not quoted? */
static bool looks_like_tc(const char shown[SHOWN_BYTES + 8])
{
    static const char *const words[] = { "qdisc ", "class ", "filter ", "q ", "c ", "tc " };

    for (size_t i = 0; i < GW_ARRAY_LEN(words); i++)
        if (!strncmp(shown + 1, words[i], strlen(words[i])))
            return strstr(shown, " dev ") != NULL;
    return false;
}

static enum gw_status fail_tc(const struct build *b, size_t line, size_t col)
{
    char shown[SHOWN_BYTES + 8];

    if (!quoted_line(b, line, shown))
        snprintf(shown, sizeof shown, "\"qdisc add dev wan:a root ...\"");
    return fail_at(b, line, col, "YAML took this tc line apart; put it in quotes: %s", shown);
}

/* Line and column (0-based, in characters) of a byte offset. */
static void locate(const struct build *b, size_t offset, size_t *line, size_t *col)
{
    *line = *col = 0;
    for (size_t i = 0; i < offset && i < b->len; i++) {
        if (b->text[i] == '\n') {
            ++*line;
            *col = 0;
        } else if (((unsigned char)b->text[i] & 0xc0) != 0x80) {
            ++*col;
        }
    }
}

/* Do only blanks stand behind this place? */
static bool nothing_behind(const struct build *b, size_t line, size_t col)
{
    size_t i = 0;

    for (; line && i < b->len; i++)
        line -= b->text[i] == '\n';
    for (; i < b->len; i++) {
        bool begins = ((unsigned char)b->text[i] & 0xc0) != 0x80;     /* a character */

        if (begins && !col && !strchr(" \t\r\n", b->text[i]))
            return false;
        col -= begins && col;
    }
    return true;
}

static enum gw_status parser_failed(struct build *b)
{
    const yaml_parser_t *p = &b->parser;
    const char *problem = p->problem ? p->problem : "the text has no form that is known";
    size_t line = p->problem_mark.line, col = p->problem_mark.column;
    char shown[SHOWN_BYTES + 8];

    if (p->error == YAML_MEMORY_ERROR)
        return no_memory(b);
    if (p->error == YAML_READER_ERROR) {
        locate(b, p->problem_offset, &line, &col);
        return fail_at(b, line, col, "this is no text file (%s, 0x%02x); a YAML file in UTF-8 is "
                       "expected", problem, (unsigned)p->problem_value);
    }
    for (int i = 0; i < 2; i++) {             /* the line itself, and where its scalar began */
        size_t at = i ? p->context_mark.line : line;

        if ((!i || p->context) && quoted_line(b, at, shown) && looks_like_tc(shown))
            return fail_tc(b, at, i ? p->context_mark.column : col);
    }
    if (nothing_behind(b, line, col))
        return fail_at(b, line, col, "the file ends too early: %s%s%s", problem,
                       p->context ? " " : "", p->context ? p->context : "");
    return fail_at(b, line, col, "%s%s%s; check indentation, colons and quotes here", problem,
                   p->context ? " " : "", p->context ? p->context : "");
}

static enum gw_status next_event(struct build *b)
{
    if (b->have_event)
        yaml_event_delete(&b->event);
    b->have_event = false;
    if (!yaml_parser_parse(&b->parser, &b->event))
        return parser_failed(b);
    b->have_event = true;
    return GW_OK;
}

/* The current event's own place. */
static enum gw_status fail_here(const struct build *b, const char *why)
{
    return fail_at(b, b->event.start_mark.line, b->event.start_mark.column, "%s", why);
}

static struct gw_value *new_value(struct build *b, enum gw_value_kind kind)
{
    struct gw_value *v = arena_alloc(b->doc, sizeof *v);

    if (!v)
        return NULL;
    v->kind = kind;
    v->file = b->file;
    if (b->positions) {
        v->line = (uint32_t)b->event.start_mark.line + 1;
        v->col = (uint32_t)b->event.start_mark.column + 1;
    }
    return v;
}

/* A copy of @v and what is under it, with the positions of the original. */
static struct gw_value *copy_value(struct build *b, const struct gw_value *v)
{
    struct gw_value *c, **at;

    if (b->copies++ >= COPIES_MAX)
        return NULL;
    c = arena_alloc(b->doc, sizeof *c);
    if (!c)
        return NULL;
    *c = *v;
    c->parent = c->next = c->child = NULL;
    at = &c->child;
    for (const struct gw_value *x = v->child; x; x = x->next) {
        *at = copy_value(b, x);
        if (!*at)
            return NULL;
        (*at)->parent = c;
        at = &(*at)->next;
    }
    return c;
}

static unsigned tree_depth(const struct gw_value *v)
{
    unsigned most = 0, d;

    for (const struct gw_value *c = v->child; c; c = c->next) {
        d = tree_depth(c);
        if (d > most)
            most = d;
    }
    return most + 1;
}

static enum gw_status build_alias(struct build *b, unsigned depth, struct gw_value **out)
{
    const char *name = (const char *)b->event.data.alias.anchor;
    const struct anchor *a = b->anchors;
    char shown[GW_SHOW_BYTES], why[256];

    while (a && strcmp(a->name, name) != 0)
        a = a->next;
    if (!a || !a->value) {
        snprintf(why, sizeof why, a ? "the alias *%s stands inside what it names; a value can't "
                 "hold itself" : "no anchor &%s stands before this alias", gw_show(name, shown));
        return fail_here(b, why);
    }
    if (depth + tree_depth(a->value) > DEPTH_MAX)
        return fail_here(b, "aliases nest too deep, allowed up to 64 levels");
    *out = copy_value(b, a->value);
    if (!*out)
        return b->copies > COPIES_MAX
               ? fail_here(b, "aliases expand too far, allowed up to 100000 values")
               : no_memory(b);
    (*out)->key = NULL;                       /* that of the anchor is not the alias's */
    return GW_OK;
}

/* The node begins: remembers its anchor, for aliases behind it. */
static enum gw_status add_anchor(struct build *b, const yaml_char_t *name, struct anchor **out)
{
    struct anchor *a;

    *out = NULL;
    if (!name)
        return GW_OK;
    a = arena_alloc(b->doc, sizeof *a);
    if (!a)
        return no_memory(b);
    a->name = arena_text(b->doc, (const char *)name, strlen((const char *)name));
    if (!a->name)
        return no_memory(b);
    a->next = b->anchors;
    b->anchors = a;
    *out = a;
    return GW_OK;
}

static enum gw_status check_tag(struct build *b, const yaml_char_t *tag)
{
    static const char core[] = "tag:yaml.org,2002:";
    static const char *const names[] = { "str", "int", "float", "bool", "null", "seq", "map" };
    char shown[GW_SHOW_BYTES], why[160];

    if (!tag || !strcmp((const char *)tag, "!"))
        return GW_OK;
    for (size_t i = 0; i < GW_ARRAY_LEN(names); i++)
        if (!strncmp((const char *)tag, core, sizeof core - 1) &&
            !strcmp((const char *)tag + sizeof core - 1, names[i]))
            return GW_OK;
    snprintf(why, sizeof why, "the tag %s has no meaning here; leave it out",
             gw_show((const char *)tag, shown));
    return fail_here(b, why);
}

static enum gw_status build_scalar(struct build *b, struct gw_value **out)
{
    const char *text = (const char *)b->event.data.scalar.value;
    size_t n = b->event.data.scalar.length;
    struct gw_value *v;

    if (memchr(text, '\0', n))
        return fail_here(b, "the text holds a zero byte, which no value may");
    v = new_value(b, GW_V_SCALAR);
    if (!v)
        return no_memory(b);
    v->quoted = b->event.data.scalar.style != YAML_PLAIN_SCALAR_STYLE;
    v->text = arena_text(b->doc, text, n);
    if (!v->text)
        return no_memory(b);
    *out = v;
    return GW_OK;
}

static enum gw_status build_list(struct build *b, unsigned depth, bool in_tc,
                                 struct gw_value *list)
{
    struct gw_value **at = &list->child, *v;
    enum gw_status st;

    for (;;) {
        st = next_event(b);
        if (st)
            return st;
        if (b->event.type == YAML_SEQUENCE_END_EVENT)
            return GW_OK;
        st = build_node(b, depth + 1, in_tc, &v);
        if (st)
            return st;
        v->parent = list;
        *at = v;
        at = &v->next;
    }
}

/* The current event as a key. */
static enum gw_status build_key(struct build *b, const char **key)
{
    const char *text;
    size_t n;

    if (b->event.type != YAML_SCALAR_EVENT)
        return fail_here(b, "a key must be a plain word, not a list, map or alias");
    text = (const char *)b->event.data.scalar.value;
    n = b->event.data.scalar.length;
    if (!n || n > KEY_MAX || memchr(text, '\0', n) || memchr(text, '\n', n))
        return fail_here(b, "a key must be one line of 1 to 200 bytes");
    if (!strcmp(text, "<<") && b->event.data.scalar.style == YAML_PLAIN_SCALAR_STYLE)
        return fail_here(b, "merge keys (<<) are not read; write the keys out");
    *key = arena_text(b->doc, text, n);
    return *key ? check_tag(b, b->event.data.scalar.tag) : no_memory(b);
}

struct key_place {                        /* for finding repeated keys                         */
    const char *key;
    size_t      order, line, col;
};

static int key_order(const void *x, const void *y)
{
    const struct key_place *a = x, *b = y;
    int c = strcmp(a->key, b->key);

    return c ? c : (a->order > b->order) - (a->order < b->order);
}

/* The first key that stands a second time. */
static enum gw_status check_repeats(struct build *b, struct key_place *k, size_t n)
{
    const struct key_place *second = NULL, *first = NULL;
    char shown[GW_SHOW_BYTES];

    if (n < 2)
        return GW_OK;
    qsort(k, n, sizeof *k, key_order);
    for (size_t i = 1; i < n; i++)
        if (!strcmp(k[i - 1].key, k[i].key) && (!second || k[i].order < second->order)) {
            second = &k[i];
            first = &k[i - 1];
        }
    if (!second)
        return GW_OK;
    return fail_at(b, second->line, second->col, "the key \"%s\" stands already in line %zu; "
                   "keep one of them", gw_show(second->key, shown), first->line + 1);
}

static enum gw_status build_entries(struct build *b, unsigned depth, struct gw_value *map,
                                    struct key_place **keys, size_t *count)
{
    struct gw_value **at = &map->child, *v;
    enum gw_status st;

    for (size_t cap = 0;; ++*count) {
        const char *key = NULL;

        st = next_event(b);
        if (st)
            return st;
        if (b->event.type == YAML_MAPPING_END_EVENT)
            return GW_OK;
        if (*count == cap) {
            size_t more = cap ? 2 * cap : 16;
            struct key_place *grown = realloc(*keys, more * sizeof *grown);

            if (!grown)
                return no_memory(b);
            *keys = grown;
            cap = more;
        }
        st = build_key(b, &key);
        if (st)
            return st;
        (*keys)[*count] = (struct key_place){ key, *count, b->event.start_mark.line,
                                              b->event.start_mark.column };
        st = next_event(b);
        if (!st)
            st = build_node(b, depth + 1, !strcmp(key, "tc"), &v);
        if (st)
            return st;
        v->key = key;
        if (b->positions) {               /* an entry of a map stands where its key stands */
            v->line = (uint32_t)(*keys)[*count].line + 1;
            v->col = (uint32_t)(*keys)[*count].col + 1;
        }
        v->parent = map;
        *at = v;
        at = &v->next;
    }
}

static enum gw_status build_map(struct build *b, unsigned depth, struct gw_value *map)
{
    struct key_place *keys = NULL;
    size_t count = 0;
    enum gw_status st = build_entries(b, depth, map, &keys, &count);

    if (!st)
        st = check_repeats(b, keys, count);
    free(keys);
    return st;
}

/* The node that begins with the current event. @in_tc: the key above it is `tc`. */
static enum gw_status build_node(struct build *b, unsigned depth, bool in_tc,
                                 struct gw_value **out)
{
    bool map = b->event.type == YAML_MAPPING_START_EVENT;
    struct anchor *anchor;
    struct gw_value *v;
    enum gw_status st;

    if (depth > DEPTH_MAX)
        return fail_here(b, "lists and maps nest too deep, allowed up to 64 levels");
    if (map && in_tc)
        return fail_tc(b, b->event.start_mark.line, b->event.start_mark.column);
    switch (b->event.type) {
    case YAML_ALIAS_EVENT:
        st = build_alias(b, depth, out);
        return !st && in_tc && holds_map(*out)
               ? fail_here(b, "a tc line is one text, not a map") : st;
    case YAML_SCALAR_EVENT:
        st = check_tag(b, b->event.data.scalar.tag);
        if (!st)
            st = add_anchor(b, b->event.data.scalar.anchor, &anchor);
        if (!st)
            st = build_scalar(b, out);
        if (!st && anchor)
            anchor->value = *out;
        return st;
    case YAML_SEQUENCE_START_EVENT:
    case YAML_MAPPING_START_EVENT:
        st = check_tag(b, map ? b->event.data.mapping_start.tag
                              : b->event.data.sequence_start.tag);
        if (!st)
            st = add_anchor(b, map ? b->event.data.mapping_start.anchor
                                   : b->event.data.sequence_start.anchor, &anchor);
        if (st)
            return st;
        *out = v = new_value(b, map ? GW_V_MAP : GW_V_LIST);
        if (!v)
            return no_memory(b);
        st = map ? build_map(b, depth, v) : build_list(b, depth, in_tc, v);
        if (!st && anchor)
            anchor->value = v;
        return st;
    default:
        return fail_here(b, "a value is expected here");
    }
}

/* Stream and document around the one node. */
static enum gw_status build_document(struct build *b, struct gw_value **out)
{
    enum gw_status st = next_event(b);               /* stream start */

    if (!st)
        st = next_event(b);
    if (st)
        return st;
    if (b->event.type != YAML_DOCUMENT_START_EVENT)
        return fail_at(b, 0, 0, "the file is empty; a map of keys is expected");
    st = next_event(b);
    if (!st)
        st = build_node(b, 1, false, out);
    if (!st)
        st = next_event(b);                          /* document end */
    if (!st)
        st = next_event(b);
    if (!st && b->event.type != YAML_STREAM_END_EVENT)
        return fail_here(b, "a second document begins here; a file holds one");
    return st;
}

/* Parses @text into nodes of @d's arena. @file: in the arena too. */
static enum gw_status build_tree(struct gw_doc *d, const char *text, size_t len, const char *file,
                                 bool positions, struct gw_value **out, struct gw_error *err)
{
    struct build b = { .doc = d, .text = text, .len = len, .file = file, .positions = positions,
                       .err = err };
    enum gw_status st;

    if (!yaml_parser_initialize(&b.parser))
        return no_memory(&b);
    yaml_parser_set_encoding(&b.parser, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&b.parser, (const unsigned char *)text, len);
    st = build_document(&b, out);
    if (b.have_event)
        yaml_event_delete(&b.event);
    yaml_parser_delete(&b.parser);
    return st;
}

/* ---- loading ------------------------------------------------------------------------------ */

struct gw_doc *gw_doc_parse(const char *text, size_t len, const char *name, struct gw_error *err)
{
    static const char bom[] = "\xef\xbb\xbf";       /* as editors of Windows put before UTF-8 */
    struct gw_doc *d = calloc(1, sizeof *d);
    char where[300];

    if (!d)
        goto no_mem;
    if (len >= 3 && !memcmp(text, bom, 3)) {
        text += 3;
        len -= 3;
    }
    d->file = arena_text(d, name, strlen(name));
    if (!d->file)
        goto no_mem;
    if (len > FILE_MAX) {
        gw_fail(err, GW_SYNTAX, "%s: the file has %zu bytes, allowed up to 64 MiB", name, len);
        goto out_free;
    }
    if (build_tree(d, text, len, d->file, true, &d->root, err))
        goto out_free;
    if (d->root->kind != GW_V_MAP) {
        gw_fail(err, GW_SYNTAX, "%s: %s; a map of keys is expected",
                gw_value_where(d->root, where, sizeof where),
                d->root->kind == GW_V_LIST ? "the file holds a list"
                : *d->root->text ? "the file holds a single value" : "the file is empty");
        goto out_free;
    }
    return d;

no_mem:
    gw_fail(err, GW_NOMEM, "%s: out of memory", name);
out_free:
    gw_doc_free(d);
    return NULL;
}

/* The whole of @f, at most a little more than FILE_MAX. Caller frees. */
static char *read_all(FILE *f, size_t *len)
{
    size_t cap = 65536, n = 0;
    char *buf = malloc(cap);

    while (buf) {
        size_t got = fread(buf + n, 1, cap - n, f);
        char *grown;

        n += got;
        if (!got || n > FILE_MAX)
            break;
        if (n < cap)
            continue;
        grown = realloc(buf, cap *= 2);
        if (!grown)
            free(buf);
        buf = grown;
    }
    *len = n;
    return buf;
}

struct gw_doc *gw_doc_load(const char *path, struct gw_error *err)
{
    struct gw_doc *d = NULL;
    char *text;
    size_t len;
    FILE *f = fopen(path, "rb");

    if (!f) {
        gw_fail(err, GW_IO, "%s: cannot be read: %s", path, strerror(errno));
        return NULL;
    }
    errno = 0;
    text = read_all(f, &len);
    if (!text)
        gw_fail(err, GW_NOMEM, "%s: out of memory", path);
    else if (ferror(f))
        gw_fail(err, GW_IO, "%s: cannot be read: %s", path, strerror(errno ? errno : EIO));
    else
        d = gw_doc_parse(text, len, path, err);
    free(text);
    fclose(f);
    return d;
}

void gw_doc_free(struct gw_doc *d)
{
    struct chunk *next;

    if (!d)
        return;
    for (struct chunk *c = d->chunk; c; c = next) {
        next = c->next;
        free(c);
    }
    free(d);
}

struct gw_value *gw_doc_root(struct gw_doc *d)
{
    return d->root;
}

/* ---- setting by path ---------------------------------------------------------------------- */

/* One code point of UTF-8 at @s into @cp; its length, or 0 if it is none. */
static size_t utf8_read(const char *s, uint32_t *cp)
{
    static const uint32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 };
    const unsigned char *u = (const unsigned char *)s;
    size_t n = u[0] < 0x80 ? 1 : u[0] < 0xc0 ? 0 : u[0] < 0xe0 ? 2 : u[0] < 0xf0 ? 3
               : u[0] < 0xf8 ? 4 : 0;

    if (n <= 1) {
        *cp = u[0];
        return n;
    }
    *cp = u[0] & (0x7fu >> n);
    for (size_t i = 1; i < n; i++) {
        if ((u[i] & 0xc0) != 0x80)
            return 0;
        *cp = *cp << 6 | (u[i] & 0x3fu);
    }
    if (*cp < least[n] || *cp > 0x10ffff || (*cp >= 0xd800 && *cp < 0xe000))
        return 0;
    return n;
}

static bool is_utf8(const char *s)
{
    uint32_t cp;
    size_t n;

    for (; *s; s += n) {
        n = utf8_read(s, &cp);
        if (!n)
            return false;
    }
    return true;
}

static struct gw_value *set_value_new(struct gw_doc *d, enum gw_value_kind kind)
{
    struct gw_value *v = arena_alloc(d, sizeof *v);

    if (v) {
        v->kind = kind;
        v->file = "--set";
    }
    return v;
}

/* The text behind "=": flow syntax and quotes are YAML, all else stands for itself. */
static enum gw_status set_parse(struct gw_doc *d, const char *text, struct gw_value **out,
                                struct gw_error *err)
{
    size_t n;

    while (*text == ' ')
        text++;
    n = strlen(text);
    while (n && text[n - 1] == ' ')
        n--;
    if (*text && strchr("{[\"'", *text))
        return build_tree(d, text, n, "--set", false, out, err);
    *out = set_value_new(d, GW_V_SCALAR);
    if (!*out || !((*out)->text = arena_text(d, text, n)))
        return gw_fail(err, GW_NOMEM, "out of memory");
    return GW_OK;
}

/* Is the list entry @v the one that [s, s+n) names: by its `name`, or as entry number @i? */
static bool is_entry(const struct gw_value *v, size_t i, const char *s, size_t n, bool by_name)
{
    const struct gw_value *name;
    char number[24];

    if (by_name) {
        name = v->kind == GW_V_MAP ? find_key(v, "name", 4) : NULL;
        return name && name->kind == GW_V_SCALAR && strlen(name->text) == n &&
               !memcmp(name->text, s, n);
    }
    snprintf(number, sizeof number, "%zu", i);
    return strlen(number) == n && !memcmp(number, s, n);
}

static struct gw_value *find_entry(const struct gw_value *list, const char *s, size_t n,
                                   bool by_name, size_t *count)
{
    size_t i = 0;

    for (struct gw_value *v = list->child; v; v = v->next, i++)
        if (is_entry(v, i, s, n, by_name))
            return v;
    *count = i;
    return NULL;
}

struct step {                             /* one step of a path                                */
    const char *s;
    size_t      n;
    const char *rest;                     /* behind the dot; NULL: that was the last           */
};

/*
 * Keys and names may hold dots themselves: the longest piece that stands in the tree is taken, else
 * the piece up to the next dot.
 */
static struct gw_value *take_step(const struct gw_value *v, const char *path, struct step *step,
                                  size_t *count)
{
    struct gw_value *found = NULL;
    size_t n = strlen(path);

    while (!found) {
        if (v->kind == GW_V_MAP)
            found = find_key(v, path, n);
        else if (v->kind == GW_V_LIST && !(found = find_entry(v, path, n, true, count)))
            found = find_entry(v, path, n, false, count);
        if (found)
            break;
        while (n && path[n - 1] != '.')
            n--;
        if (!n)
            break;
        n--;
    }
    if (!found)
        n = strcspn(path, ".");
    *step = (struct step){ path, n, path[n] ? path + n + 1 : NULL };
    return found;
}

static bool is_number(const char *s, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (s[i] < '0' || s[i] > '9')
            return false;
    return n > 0;
}

/* A new entry under @v for @step: a key of a map, or the next of a list. */
static enum gw_status make_step(struct gw_doc *d, struct gw_value *v, const struct step *step,
                                size_t count, const char *path, struct gw_value **out,
                                struct gw_error *err)
{
    char number[24], shown[GW_SHOW_BYTES];

    if (v->kind == GW_V_SCALAR && !*v->text && !v->quoted)      /* "key:" without a value */
        v->kind = is_number(step->s, step->n) ? GW_V_LIST : GW_V_MAP;
    snprintf(number, sizeof number, "%zu", count);
    if (v->kind == GW_V_SCALAR)
        return gw_fail(err, GW_PARAM, "--set %s: \"%.*s\" would stand under a single value; name "
                       "an entry of a map or list", path, (int)step->n, step->s);
    if (v->kind == GW_V_LIST && !(step->n == strlen(number) && !memcmp(step->s, number, step->n)))
        return gw_fail(err, GW_PARAM, "--set %s: the list has no entry called \"%.*s\"; give a "
                       "`name` that stands in it, or a number from 0 to %zu (adds one)", path,
                       (int)step->n, step->s, count);
    if (!step->n || step->n > KEY_MAX)
        return gw_fail(err, GW_PARAM, "--set %s: each part of the path must have 1 to %d bytes",
                       gw_show(path, shown), KEY_MAX);
    *out = set_value_new(d, GW_V_SCALAR);
    if (!*out || !((*out)->text = arena_text(d, "", 0)))
        return gw_fail(err, GW_NOMEM, "out of memory");
    if (v->kind == GW_V_MAP && !((*out)->key = arena_text(d, step->s, step->n)))
        return gw_fail(err, GW_NOMEM, "out of memory");
    attach(v, *out);
    v->text = NULL;
    return GW_OK;
}

static enum gw_status set_at(struct gw_doc *d, const char *path, const char *text,
                             struct gw_error *err)
{
    struct gw_value *v = d->root, *found, *value;
    struct step step = { NULL, 0, path };
    size_t count = 0;
    bool in_tc = false;
    unsigned levels;
    enum gw_status st = set_parse(d, text, &value, err);

    if (st)
        return st;
    levels = tree_depth(value);
    for (unsigned depth = 0; step.rest; depth++) {
        if (depth + levels >= DEPTH_MAX)
            return gw_fail(err, GW_PARAM, "--set: path and value nest deeper than %d levels",
                           DEPTH_MAX);
        count = 0;
        found = take_step(v, step.rest, &step, &count);
        if (!found) {
            st = make_step(d, v, &step, count, path, &found, err);
            if (st)
                return st;
        }
        if (in_tc && v->kind == GW_V_MAP)
            break;
        v = found;
        in_tc = v->key ? !strcmp(v->key, "tc") : in_tc;
    }
    if (in_tc && (holds_map(value) || v->kind == GW_V_MAP))
        return gw_fail(err, GW_PARAM, "--set %s: a tc line is one text, not a map", path);
    v->kind = value->kind;
    v->quoted = value->quoted;
    v->text = value->text;
    v->file = "--set";
    v->line = v->col = 0;
    v->child = value->child;
    for (struct gw_value *c = v->child; c; c = c->next)
        c->parent = v;
    return GW_OK;
}

enum gw_status gw_doc_set(struct gw_doc *d, const char *assignment, struct gw_error *err)
{
    const char *eq = strchr(assignment, '=');
    char path[1024], shown[GW_SHOW_BYTES];

    if (!eq || eq == assignment)
        return gw_fail(err, GW_PARAM, "--set %s: write path=value, such as "
                       "topology.wan.delay=40ms", gw_show(assignment, shown));
    if ((size_t)(eq - assignment) >= sizeof path)
        return gw_fail(err, GW_PARAM, "--set: the path has %zu bytes, allowed up to %zu",
                       (size_t)(eq - assignment), sizeof path - 1);
    snprintf(path, sizeof path, "%.*s", (int)(eq - assignment), assignment);
    if (strchr(path, '\n'))
        return gw_fail(err, GW_PARAM, "--set %s: the path holds a line break",
                       gw_show(path, shown));
    if (!is_utf8(assignment))
        return gw_fail(err, GW_PARAM, "--set %s: the text is not UTF-8", gw_show(path, shown));
    return set_at(d, path, eq + 1, err);
}

/* ---- unused keys -------------------------------------------------------------------------- */

enum gw_status gw_doc_unused(struct gw_value *v, const char *const *known, struct gw_error *err)
{
    char where[300], shown[GW_SHOW_BYTES];
    enum gw_status st;
    const char *near;

    for (struct gw_value *c = v ? v->child : NULL; c; c = c->next) {
        if (c->key && !c->used) {
            near = gw_did_you_mean(c->key, known);
            return gw_fail(err, GW_PARAM, near ? "%s: unknown key \"%s\"; did you mean \"%s\"?"
                           : "%s: unknown key \"%s\"; nothing reads it, leave it out",
                           gw_value_where(c, where, sizeof where), gw_show(c->key, shown), near);
        }
        st = gw_doc_unused(c, known, err);
        if (st)
            return st;
    }
    return GW_OK;
}

/* ---- writing ------------------------------------------------------------------------------ */

struct out {
    char  *buf;
    size_t len, cap;
    bool   failed;
};

static void put(struct out *o, const char *s, size_t n)
{
    if (o->failed)
        return;
    if (o->cap - o->len <= n) {
        size_t cap = (o->cap + n + 1) * 2;
        char *grown = realloc(o->buf, cap);

        if (!grown) {
            o->failed = true;
            return;
        }
        o->buf = grown;
        o->cap = cap;
    }
    memcpy(o->buf + o->len, s, n);
    o->len += n;
    o->buf[o->len] = '\0';
}

static void put_text(struct out *o, const char *s)
{
    put(o, s, strlen(s));
}

static bool needs_escape(uint32_t cp)
{
    return cp < 0x20 || (cp >= 0x7f && cp <= 0xa0) || cp == 0x2028 || cp == 0x2029 ||
           cp == 0xfeff || (cp & 0xfffe) == 0xfffe;
}

/* May @s stand without quotes, in a block map or list, and be read back as the same text? */
static bool is_plain(const char *s)
{
    uint32_t cp;
    size_t n;

    if (!*s || *s == ' ' || strchr(",[]{}#&*!|>'\"%@`", *s) || s[strlen(s) - 1] == ' ' ||
        s[strlen(s) - 1] == ':')
        return false;
    if (strchr("-?:", *s) && (s[1] == ' ' || !s[1] || !strncmp(s, "---", 3)))
        return false;
    if (!strncmp(s, "...", 3) || !strcmp(s, "<<"))
        return false;
    for (; *s; s += n) {
        n = utf8_read(s, &cp);
        if (!n || needs_escape(cp) || (*s == ':' && s[1] == ' ') || (*s == ' ' && s[1] == '#'))
            return false;
    }
    return true;
}

static void put_quoted(struct out *o, const char *s)
{
    char esc[16];
    uint32_t cp;
    size_t n;

    put_text(o, "\"");
    for (; *s; s += n) {
        n = utf8_read(s, &cp);
        if (!n) {                                    /* no UTF-8: byte by byte */
            cp = (unsigned char)*s;
            n = 1;
        } else if (*s != '"' && *s != '\\' && !needs_escape(cp)) {
            put(o, s, n);
            continue;
        }
        snprintf(esc, sizeof esc, cp < 0x80 && cp >= 0x20 && cp != 0x7f ? "\\%c" : cp <= 0xff
                 ? "\\x%02x" : cp <= 0xffff ? "\\u%04x" : "\\U%08x", (unsigned)cp);
        put_text(o, esc);
    }
    put_text(o, "\"");
}

static void put_scalar(struct out *o, const struct gw_value *v)
{
    if (!v->quoted && !*v->text)
        return;
    if (!v->quoted && is_plain(v->text))
        put_text(o, v->text);
    else
        put_quoted(o, v->text);
}

static void put_indent(struct out *o, unsigned indent)
{
    while (indent--)
        put_text(o, "  ");
}

/* A node that stands at @indent; @inline_first: its first line follows "- " already. */
static void put_value(struct out *o, const struct gw_value *v, unsigned indent, bool inline_first)
{
    for (const struct gw_value *c = v->child; c; c = c->next) {
        bool leaf = c->kind == GW_V_SCALAR || !c->child;

        if (c != v->child || !inline_first)
            put_indent(o, indent);
        if (v->kind == GW_V_LIST) {
            put_text(o, "-");
        } else {
            if (is_plain(c->key))
                put_text(o, c->key);
            else
                put_quoted(o, c->key);
            put_text(o, ":");
        }
        if (leaf) {
            if (c->kind != GW_V_SCALAR || c->quoted || *c->text)
                put_text(o, " ");
            if (c->kind == GW_V_SCALAR)
                put_scalar(o, c);
            else
                put_text(o, c->kind == GW_V_MAP ? "{}" : "[]");
            put_text(o, "\n");
        } else if (v->kind == GW_V_LIST) {
            put_text(o, " ");
            put_value(o, c, indent + 1, true);
        } else {
            put_text(o, "\n");
            put_value(o, c, indent + 1, false);
        }
    }
}

char *gw_doc_dump(const struct gw_value *v)
{
    struct out o = { NULL, 0, 0, false };

    put_text(&o, "");
    if (v->kind == GW_V_SCALAR) {
        put_scalar(&o, v);
        put_text(&o, "\n");
    } else if (!v->child) {
        put_text(&o, v->kind == GW_V_MAP ? "{}\n" : "[]\n");
    } else {
        put_value(&o, v, 0, false);
    }
    if (!o.failed)
        return o.buf;
    free(o.buf);
    return NULL;
}

struct gw_value *gw_doc_scalar(struct gw_doc *d, struct gw_value *map, const char *key,
                               const char *text)
{
    struct gw_value *v = key && map ? find_key(map, key, strlen(key)) : NULL;
    bool fresh = !v;

    if (fresh)
        v = arena_alloc(d, sizeof *v);
    if (!v)
        return NULL;
    if (fresh && key && !(v->key = arena_text(d, key, strlen(key))))
        return NULL;
    if (text && !(text = arena_text(d, text, strlen(text))))
        return NULL;
    v->kind = text ? GW_V_SCALAR : GW_V_MAP;
    v->text = text;
    v->quoted = text && !is_plain(text);
    v->child = NULL;
    v->used = true;
    if (fresh) {
        v->file = d->file;
        if (map)
            attach(map, v);
    }
    return v;
}
