/*
 * fuzz_tc - any bytes as lines of tc on one scratch device
 *
 * Besides not falling over: an exit code is one of tc's, a refusal comes with one sentence on one
 * line and an accepted line with none, and what `show` prints as JSON is JSON.
 */
#include "emu/tc/cmd.h"

#include <jansson.h>
#include <stdlib.h>

enum { TEXT_MAX = 8192, LINES_MAX = 40 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct gw_tree *device(void *ctx, const char *name, struct gw_error *err)
{
    (void)name;
    (void)err;
    return ctx;
}

static struct gw_tree *device_at(void *ctx, size_t i)
{
    return i ? NULL : ctx;
}

static int run(struct gw_tree *t, const char *line, char **out)
{
    struct gw_tc_ctx c = { .ctx = t, .device = device, .device_at = device_at };
    struct gw_error err = { 0 };
    uint32_t count = 0;
    char **word = gw_tc_split(line, &count);
    size_t n;
    int rc;

    *out = NULL;
    c.out = open_memstream(out, &n);
    if (!word || !c.out)
        exit(2);
    rc = gw_tc_run(&c, word, count, &err);
    fclose(c.out);
    if (rc != 0 && rc != 1 && rc != 2 && rc != 255)
        abort();
    if ((rc != 0) != (err.text[0] != 0) || strchr(err.text, '\n'))
        abort();
    free(word[0]);
    free(word);
    return rc;
}

static void must_be_json(struct gw_tree *t, const char *line)
{
    char *out;
    json_t *v;

    if (run(t, line, &out))
        abort();
    v = json_loads(out, 0, NULL);
    if (!v)
        abort();
    json_decref(v);
    free(out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct gw_registry *registry;
    struct gw_error err = { 0 };
    struct gw_tree *t;
    char *text, *out, *rest, *line;
    int lines = 0;

    if (size > TEXT_MAX || memchr(data, 0, size))
        return 0;
    if (!registry && !(registry = gw_registry_new(false, &err)))
        abort();
    t = gw_tc_scratch(registry, "d0", &err);
    text = malloc(size + 1);
    if (!t || !text)
        exit(2);
    memcpy(text, data, size);
    text[size] = 0;
    for (rest = text; (line = strsep(&rest, "\n")) && lines < LINES_MAX; lines++) {
        run(t, line, &out);
        free(out);
    }
    for (size_t i = 0; i < size; i++)          /* words of a user may be shown again: ASCII only */
        if (data[i] >= 0x80)
            lines = -1;
    if (lines >= 0) {
        must_be_json(t, "-s -j -d qdisc show dev d0 invisible");
        must_be_json(t, "-s -j -d class show dev d0");
        must_be_json(t, "-j filter show dev d0");
    }
    run(t, "-s -d qdisc show", &out);
    free(out);
    gw_tree_free(t);
    free(text);
    return 0;
}
