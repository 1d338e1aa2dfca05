/*
 * fuzz_layers - the readers of layer tables: any bytes, each format, no crash, and what was read is
 * written and read again alike
 */
#include <gradwire/convert.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct gw_layers *read_bytes_as(const void *data, size_t size, enum gw_layer_format format)
{
    struct gw_error   err = { GW_OK, "" };
    struct gw_layers *l;
    FILE *f = fmemopen((void *)data, size, "r");

    if (!f)
        return NULL;
    l = gw_layers_read(f, "fuzz", format, &err);
    fclose(f);
    if (!l != (err.code != GW_OK))       /* a failure has a sentence, success has none         */
        abort();
    return l;
}

static void write_and_compare(const struct gw_layers *l)
{
    char  *text = NULL;
    size_t n    = 0;
    FILE  *f    = open_memstream(&text, &n);
    struct gw_layers *again;

    if (!f || gw_layers_write(l, f, NULL) != GW_OK)
        abort();
    fclose(f);
    again = read_bytes_as(text, n, GW_LAYERS_CSV);
    if (!again || again->count != l->count)
        abort();
    for (uint32_t i = 0; i < l->count; i++)
        if (strcmp(again->layer[i].name, l->layer[i].name) ||
            again->layer[i].param_bytes != l->layer[i].param_bytes ||
            again->layer[i].forward_s != l->layer[i].forward_s ||
            again->layer[i].backward_s != l->layer[i].backward_s)
            abort();
    gw_layers_free(again);
    free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (!size || size > 1 << 16)
        return 0;
    for (int format = GW_LAYERS_AUTO; format <= GW_LAYERS_SIMAI; format++) {
        struct gw_layers *l = read_bytes_as(data, size, (enum gw_layer_format)format);

        if (l)
            write_and_compare(l);
        gw_layers_free(l);
    }
    return 0;
}
