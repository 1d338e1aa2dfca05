/*
 * out.h - where a command's output goes: text or JSON, as iproute2 6.1 writes them
 */
#ifndef GW_TC_OUT_H
#define GW_TC_OUT_H

#include <gradwire/tc.h>

struct gw_tc_writer {
    struct gw_tc_out out;        /* what disciplines see; out.priv is this                     */
    FILE    *f;
    uint32_t depth;              /* JSON: open objects and arrays                              */
    char     sep;                /* JSON: what stands in front of the next value, 0: nothing   */
    bool     at_line_start;      /* text                                                       */
    bool     wrote;              /* text: something since this was last cleared                */
};

/* @f NULL: nothing is written. The caller sets the flags of w->out (json, stats ...) first. */
GW_API void gw_tc_writer_init(struct gw_tc_writer *w, FILE *f);
/* A value of JSON, written without -p, as the next element; with -p it is set out as the writer would. */
GW_API void gw_tc_json(struct gw_tc_writer *w, const char *json);
/* Text only, as it stands; no conversions. */
GW_API void gw_tc_text(struct gw_tc_writer *w, const char *text);

#endif
