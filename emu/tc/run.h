/*
 * run.h - one tc command under way, private to emu/tc
 */
#ifndef GW_TC_RUN_H
#define GW_TC_RUN_H

#include "emu/tc/cmd.h"
#include "emu/tc/filter.h"
#include "emu/tc/out.h"

/* What tc ends with. */
enum gw_tc_exit { GW_TC_GOOD = 0, GW_TC_WORDS = 1, GW_TC_KERNEL = 2, GW_TC_USAGE = 255 };

/* The netlink flags that make the difference between the verbs. */
enum { GW_TC_CREATE = 1, GW_TC_REPLACE = 2, GW_TC_EXCL = 4 };

struct gw_tc_verb {
    const char *name;            /* "add", ... "show", as sentences and filters want it        */
    unsigned    flags;
    bool        remove, show;
};

struct gw_tc_run {
    const struct gw_tc_ctx *ctx;
    char *const *word;           /* NULL-terminated                                            */
    uint32_t count, at;          /* at: the next word                                          */
    struct gw_tc_verb verb;
    struct gw_tc_writer *w;
    struct gw_error *err;
};

/* Writes the sentence and answers the exit code. */
#define GW_TC_NO(err, rc, ...) (gw_fail(err, gw_tc_code(rc), __VA_ARGS__), (int)(rc))

static inline enum gw_status gw_tc_code(int rc)
{
    return rc == GW_TC_WORDS ? GW_SYNTAX : rc == GW_TC_USAGE ? GW_INCOMPLETE : GW_PARAM;
}

/* Exit code of a refusal by words (parse) or by what the kernel would do (init, change, graft). */
static inline int gw_tc_words_exit(enum gw_status st)
{
    return st == GW_OK ? GW_TC_GOOD : st == GW_INCOMPLETE ? GW_TC_USAGE : GW_TC_WORDS;
}

/* get_tc_classid of iproute2: "root", "none", "1:10", ":10", "1:". */
GW_API bool gw_tc_id(const char *s, uint32_t *id);
/* get_qdisc_handle: only the number in front of the colon counts. */
GW_API bool gw_tc_handle(const char *s, uint32_t *handle);
/* "1:10", "1:", "root", "none" into @buf of 24. */
GW_API const char *gw_tc_id_text(uint32_t id, char *buf);
/* The word behind the present one, which it becomes; NULL: the line ends (err says so, 255). */
GW_API const char *gw_tc_next(struct gw_tc_run *r);
/* What the kernel says to a line without a device; @kind: the word that stands for one, or NULL. */
GW_API int gw_tc_no_dev(struct gw_tc_run *r, const char *kind);
/* The device @name or, with a sentence, NULL. */
GW_API struct gw_tree *gw_tc_dev(struct gw_tc_run *r, const char *name);

/* Objects; r->at is behind the verb. Answer the exit code. */
int gw_tc_qdisc(struct gw_tc_run *r);
int gw_tc_class(struct gw_tc_run *r);
int gw_tc_filter(struct gw_tc_run *r);
int gw_tc_qdisc_list(struct gw_tc_run *r);
int gw_tc_class_list(struct gw_tc_run *r);
/* A discipline's handle as the kernel sees it: 0 for hidden ones and for none. */
static inline uint32_t gw_tc_handle_of(const struct gw_qdisc *q)
{
    return q && !q->hidden ? q->handle : 0;
}

#endif
