/*
 * filter.h - `tc filter`: which class a packet belongs to
 */
#ifndef GW_TC_FILTER_H
#define GW_TC_FILTER_H

#include "emu/tc/tree.h"

/* filter add|replace|del|show ...; words behind `dev DEV`. Exit code as gw_tc_run. */
GW_API int gw_filter_cmd(struct gw_tree *t, const char *verb, char *const *word, uint32_t count,
                         struct gw_tc_out *o, struct gw_error *err);
/* Class of @p by the filters that hang at @at, the handle of a discipline or one of its classes, in
 * order of pref and addition; 0: none. No allocation. */
GW_API uint32_t gw_filter_classify(const struct gw_tree *t, uint32_t at, const struct gw_pkt *p);
/* Do filters hang at the discipline @handle or at one of its classes? */
GW_API bool gw_filter_any(const struct gw_tree *t, uint32_t handle);
/* Does a filter at the qdisc @handle or at one of its classes lead to class @classid? */
GW_API bool gw_filter_uses(const struct gw_tree *t, uint32_t handle, uint32_t classid);
struct gw_tc_kept;
/* Hands on all filters for later: see gw_tc_keep(). */
GW_API bool gw_filter_keep(const struct gw_tree *t,
                           void (*put)(void *ctx, const struct gw_tc_kept *k), void *ctx,
                           uint32_t *order);
GW_API void gw_filter_remove_all(struct gw_tree *t, uint32_t parent_handle); /* with the qdisc */
GW_API void gw_filter_free_all(struct gw_tree *t);

#endif
