/*
 * convert.h - layer tables: reading other tools' formats, writing ours
 *
 * Ours is CSV with a header row: name,param_bytes,forward_s,backward_s,activation_bytes ; lines that
 * begin with # are comments; rows in forward order.
 */
#ifndef GRADWIRE_CONVERT_H
#define GRADWIRE_CONVERT_H

#include <gradwire/base.h>

struct gw_layer {
    char    *name;
    uint64_t param_bytes;        /* gradient bytes as sent                                     */
    double   forward_s, backward_s;
    uint64_t activation_bytes;   /* output, per mini-batch                                     */
};

struct gw_layers {
    struct gw_layer *layer;
    uint32_t count;
    char    *source;             /* one line for the comment                                   */
    char    *warning;            /* what of the file is not in the table; NULL: all is         */
};

enum gw_layer_format { GW_LAYERS_AUTO, GW_LAYERS_CSV, GW_LAYERS_PIPEDREAM, GW_LAYERS_ASTRA,
                       GW_LAYERS_SIMAI };

/* Reads @f (named @path in sentences). Caller frees with gw_layers_free. */
GW_API struct gw_layers *gw_layers_read(FILE *f, const char *path, enum gw_layer_format format,
                                        struct gw_error *err);
GW_API enum gw_status gw_layers_write(const struct gw_layers *l, FILE *f, struct gw_error *err);
GW_API void gw_layers_free(struct gw_layers *l);

#endif
