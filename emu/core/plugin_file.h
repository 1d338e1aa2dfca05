/*
 * plugin_file.h - is this file a shared object that can be opened, and its symbol a descriptor?
 */
#ifndef GW_CORE_PLUGIN_FILE_H
#define GW_CORE_PLUGIN_FILE_H

#include <gradwire/plugin.h>

/* A regular, whole ELF file; nothing of it runs. */
enum gw_status gw_plugin_file_check(const char *path, struct gw_error *err);
/* Is @p, the address of gw_plugin_v1, an object as large as a descriptor and where one may lie? */
enum gw_status gw_plugin_symbol_check(const void *p, const char *path, struct gw_error *err);

#endif
