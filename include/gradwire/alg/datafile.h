/*
 * datafile.h - opens the data file that an option names, and says where the option stands
 */
#ifndef GRADWIRE_ALG_DATAFILE_H
#define GRADWIRE_ALG_DATAFILE_H

#include <gradwire/plugin.h>

/* As gw_host.open_data; a sentence begins with the position of @key in @map. */
static inline FILE *gw_open_option(const struct gw_host *h, struct gw_value *map, const char *key,
                                   const char *study_dir, const char *shelf, const char *name,
                                   char *path, size_t path_bytes, struct gw_error *err)
{
    struct gw_error inner = { 0 };
    struct gw_value *v    = map ? h->value_get(map, key) : NULL;
    FILE *f = h->open_data(h, study_dir, shelf, name, path, path_bytes, &inner);
    char where[512];

    if (!f && v)
        gw_fail(err, inner.code, "%s: %s", h->value_where(v, where, sizeof where), inner.text);
    else if (!f)
        gw_fail(err, inner.code, "%s", inner.text);
    return f;
}

#endif
