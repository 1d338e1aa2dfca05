/*
 * keep.h - what tc prints of a device, kept for later
 */
#ifndef GW_TC_KEEP_H
#define GW_TC_KEEP_H

#include "emu/tc/tree.h"

enum { GW_TC_FORM_STATS = 1, GW_TC_FORM_DETAILS = 2, GW_TC_FORM_JSON = 4, GW_TC_FORMS = 8 };
enum { GW_TC_ALL_TEXT = 0x0f, GW_TC_ALL_JSON = 0xf0 };  /* of struct gw_tc_kept.forms          */

/* One discipline, class or filter in some of its forms. */
struct gw_tc_kept {
    const char *object;          /* "qdisc", "class" or "filter"                               */
    const char *kind;
    uint32_t order;              /* place among the device's objects                           */
    uint32_t handle, parent;     /* of a class: its id, and what show names as its parent      */
    uint32_t forms;              /* bit i: the text of form i, an or of GW_TC_FORM_*           */
    const char *text;            /* of a qdisc: what stands behind kind and handle; of a       */
                                 /* filter: pref, protocol (hexadecimal), its options          */
};

/* Prints all disciplines, classes and filters of @t that tc shows, in all forms, and hands each text
 * on once with the forms that it is of. False: out of memory. */
GW_API bool gw_tc_keep(struct gw_tree *t, void (*put)(void *ctx, const struct gw_tc_kept *k),
                       void *ctx);
/* Gives @t, which has no disciplines, a text to show instead of its own. */
GW_API enum gw_status gw_tree_keep(struct gw_tree *t, const struct gw_tc_kept *k,
                                   struct gw_error *err);
GW_API void gw_tree_forget(struct gw_tree *t);           /* frees them                          */

#endif
