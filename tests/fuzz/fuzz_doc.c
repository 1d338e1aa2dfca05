/*
 * fuzz_doc - any bytes as a study file, then as --set, then written and read back
 *
 * The bytes up to the first zero byte are the file, the rest is an assignment. Whatever loads must
 * be written in a form that loads to the same tree.
 */
#include "emu/core/doc.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool same(const struct gw_value *a, const struct gw_value *b)
{
    if (a->kind != b->kind || !a->key != !b->key || (a->key && strcmp(a->key, b->key)) ||
        !a->text != !b->text || (a->text && strcmp(a->text, b->text)))
        return false;
    for (a = a->child, b = b->child; a && b; a = a->next, b = b->next)
        if (!same(a, b))
            return false;
    return !a && !b;
}

static void check_round_trip(struct gw_doc *d)
{
    struct gw_error err = { GW_OK, "" };
    char *text = gw_doc_dump(gw_doc_root(d));
    struct gw_doc *back;

    if (!text)
        return;
    back = gw_doc_parse(text, strlen(text), "again", &err);
    if (!back || !same(gw_doc_root(d), gw_doc_root(back))) {
        fprintf(stderr, "not the same tree: %s\n%s", err.text, text);
        abort();
    }
    gw_doc_free(back);
    free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const uint8_t *zero = size ? memchr(data, 0, size) : NULL;
    size_t len = zero ? (size_t)(zero - data) : size;
    struct gw_error err = { GW_OK, "" };
    struct gw_doc *d = gw_doc_parse((const char *)data, len, "fuzz", &err);

    if (!d) {
        if (err.code == GW_OK || !err.text[0])
            abort();                             /* a refusal without a sentence */
        return 0;
    }
    check_round_trip(d);
    if (zero) {
        size_t n = size - len - 1;
        char *set = malloc(n + 1);

        if (set) {
            memcpy(set, zero + 1, n);
            set[n] = '\0';
            if (gw_doc_set(d, set, &err) == GW_OK)
                check_round_trip(d);
            free(set);
        }
    }
    gw_doc_unused(gw_doc_root(d), NULL, NULL);
    gw_doc_free(d);
    return 0;
}
