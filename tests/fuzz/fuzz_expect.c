/*
 * fuzz_expect - any bytes as an expression of `expect:`
 *
 * Besides not falling over: what the form check refuses must be refused by the evaluation, too, and
 * with the same sentence; what is accepted must answer the same twice.
 */
#include "emu/core/expect.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Some names have values; which, depends on their length alone. */
static bool lookup(void *ctx, const char *name, double *value)
{
    (void)ctx;
    *value = (double)strlen(name) - 3;
    return strlen(name) % 7 != 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1);
    struct gw_error form = { 0 }, first = { 0 }, second = { 0 };
    bool holds[2];
    enum gw_status checked, code;

    if (!text)
        return 0;
    memcpy(text, data, size);
    text[size] = 0;
    checked = gw_expect_check(text, &form);
    code = gw_expect_eval(text, lookup, NULL, &holds[0], NULL, &first);
    if (code != gw_expect_eval(text, lookup, NULL, &holds[1], NULL, &second) ||
        holds[0] != holds[1] || strcmp(first.text, second.text))
        abort();
    if ((code == GW_OK && checked != GW_OK) || (code != GW_OK) != (first.text[0] != 0))
        abort();
    free(text);
    return 0;
}
