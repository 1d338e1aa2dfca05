/*
 * expect.h - the expressions of `expect:`, and the names that a record answers to
 *
 *     iterations.mean_s in 0.9..1.1
 *     flows.in.h0.fct_s / flows.in.h1.fct_s in 0.98..1.02
 *     drops.queue == 0
 */
#ifndef GW_CORE_EXPECT_H
#define GW_CORE_EXPECT_H

#include <gradwire/base.h>

struct sqlite3;

/* The value of @name; false: there is none of this name. */
typedef bool (*gw_expect_lookup)(void *ctx, const char *name, double *value);

/*
 * gw_expect_eval() - evaluates one expression
 *
 * *holds says whether it is true. @found (may be NULL) gets what stood on the left, so that a
 * failed one can be told: "iterations.mean_s in 0.9..1.1: it is 1.3". GW_SYNTAX: the expression has
 * no right form, GW_PARAM: a name has no value, GW_RANGE: a side is no number (division by zero).
 * Sentences start with "expect: column N of `...`".
 */
GW_API enum gw_status gw_expect_eval(const char *text, gw_expect_lookup lookup, void *ctx,
                                     bool *holds, double *found, struct gw_error *err);
/* Checks the form alone, for `check`: no name is looked up. */
GW_API enum gw_status gw_expect_check(const char *text, struct gw_error *err);

/*
 * gw_expect_names() - are the names of @text such as a run can answer?
 *
 * @known is asked for every DEV of links.DEV.QUANTITY whether the network has a device of this name
 * ("wan:a"). GW_PARAM: a device that is not there, or a name of no kind that records know. Jobs,
 * hosts and quantities are left to the run.
 */
GW_API enum gw_status gw_expect_names(const char *text, bool (*known)(void *ctx, const char *name),
                                      void *ctx, struct gw_error *err);

/* The value of @name out of the record @db; false: no such name, or no value (no flow ended).
 * The names stand in emu/core/schema.md. */
GW_API bool gw_record_lookup(struct sqlite3 *db, const char *name, double *value);

#endif
