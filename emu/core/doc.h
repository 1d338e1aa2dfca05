/*
 * doc.h - a YAML file as a tree of positioned values
 *
 * libyaml parses; repeated keys, anchors that expand beyond bounds and more than one document are
 * refused. An unquoted tc line that YAML took apart (a map where the list `tc:` wants a scalar) is
 * reported with the line shown quoted.
 */
#ifndef GW_CORE_DOC_H
#define GW_CORE_DOC_H

#include <gradwire/param.h>

struct gw_doc;

GW_API struct gw_doc *gw_doc_load(const char *path, struct gw_error *err);
/* From memory; @name stands for the file in sentences. */
GW_API struct gw_doc *gw_doc_parse(const char *text, size_t len, const char *name,
                                   struct gw_error *err);
GW_API void gw_doc_free(struct gw_doc *d);
GW_API struct gw_value *gw_doc_root(struct gw_doc *d);      /* a map; owner: the doc            */
/* "path=value": topology.wan.delay=40ms, jobs.train.iterations=5 (a list entry by its `name` or
 * by number), tc.0=qdisc add ...; missing map keys on the way are made; the value may be YAML flow
 * syntax ({..} or [..]). */
GW_API enum gw_status gw_doc_set(struct gw_doc *d, const char *assignment, struct gw_error *err);
/* The first entry anywhere that nobody marked used, as GW_PARAM with did-you-mean from @known
 * (NULL: none); GW_OK if all were used. */
GW_API enum gw_status gw_doc_unused(struct gw_value *v, const char *const *known,
                                    struct gw_error *err);
/* The tree as YAML text that loads to the same tree. Caller frees. */
GW_API char *gw_doc_dump(const struct gw_value *v);
/* New nodes in the document's arena, for effective configurations. */
GW_API struct gw_value *gw_doc_scalar(struct gw_doc *d, struct gw_value *map, const char *key,
                                      const char *text);

#endif
