/*
 * registry.h - the table of plugins, built in and loaded, behind one door
 */
#ifndef GW_CORE_REGISTRY_H
#define GW_CORE_REGISTRY_H

#include <gradwire/gradwire.h>

struct gw_registry;

struct gw_entry {                 /* one registered plugin; lives as long as the registry       */
    const struct gw_plugin *plugin;
    const void *ops;              /* full-length copy, missing optional callbacks filled        */
    const char *origin;           /* "built in" or the path of the shared object                */
};

/* All built-in plugins, in the order of builtin.c; reversed if @reversed (a test needs that). */
GW_API struct gw_registry *gw_registry_new(bool reversed, struct gw_error *err);
GW_API void gw_registry_free(struct gw_registry *r);
/* Checks the descriptor and adds it. A name that stands already is refused with both origins. */
GW_API enum gw_status gw_registry_add(struct gw_registry *r, const struct gw_plugin *p,
                                      const char *origin, struct gw_error *err);
/* Opens the shared object @path and adds its gw_plugin_v1. */
GW_API enum gw_status gw_registry_load(struct gw_registry *r, const char *path,
                                       struct gw_error *err);
/* NULL with a did-you-mean sentence that starts with @where (may be NULL). */
GW_API const struct gw_entry *gw_registry_find(const struct gw_registry *r, enum gw_kind kind,
                                               const char *name, const char *where,
                                               struct gw_error *err);
/* Entries in order of kind, then name; NULL behind the last. */
GW_API const struct gw_entry *gw_registry_at(const struct gw_registry *r, size_t i);
GW_API const char *gw_kind_name(enum gw_kind kind);     /* "qdisc", "channel", ...              */

/* The host table that all plugins of this registry see. Core fills memory, values, rng, find and
 * open_data; the other rooms fill theirs: gw_graph_host(), gw_net_host(), gw_table_host(). */
GW_API struct gw_host *gw_registry_host(struct gw_registry *r);

/* The generated list of built-in descriptors, NULL-terminated (builtin.c). */
extern const struct gw_plugin *const gw_builtin[];

#endif
