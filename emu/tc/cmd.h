/*
 * cmd.h - one tc command on trees: parse, do, show
 */
#ifndef GW_TC_CMD_H
#define GW_TC_CMD_H

#include "emu/tc/tree.h"

/* Finds the device @name; a scratch pad makes it. NULL: there is none (err says so, exit 1). */
typedef struct gw_tree *(*gw_tc_device)(void *ctx, const char *name, struct gw_error *err);
/* i-th device for `show` without dev, NULL behind the last. */
typedef struct gw_tree *(*gw_tc_device_at)(void *ctx, size_t i);

struct gw_tc_ctx {
    void *ctx;
    gw_tc_device    device;
    gw_tc_device_at device_at;
    uint64_t now_ps;
    FILE *out;                   /* what `show` prints                                         */
    const char *finished;        /* a sentence: nothing can be changed; NULL: all can          */
};

/* Do the words (without `tc`) hold no command, at most options? */
GW_API bool gw_tc_empty(char *const *word, uint32_t count);
/* Do they only ask: show, list, help? */
GW_API bool gw_tc_shows(char *const *word, uint32_t count);

/*
 * gw_tc_run() - one command, without the word tc: options (-s -j -p -d -iec ...), object, verb, words
 *
 * Returns tc's exit code: 0; 1 tc's own refusal; 2 the kernel's; 255 incomplete line, unknown object
 * or verb, bad handle. @err gets the sentence, in kind as tc's first error line.
 */
GW_API int gw_tc_run(const struct gw_tc_ctx *c, char *const *word, uint32_t count,
                     struct gw_error *err);
/* Splits a line into words (blanks, quotes; a word that begins with # begins a comment, as in a
 * shell); freed with free(word[0]) and free(word). */
GW_API char **gw_tc_split(const char *line, uint32_t *count);
/* A tree that a scratch pad would make: txqueuelen 1000, no rate. */
GW_API struct gw_tree *gw_tc_scratch(struct gw_registry *r, const char *dev, struct gw_error *err);

#endif
