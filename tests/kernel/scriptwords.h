/*
 * scriptwords - the settings of a packet script, for who records and who compares them
 */
#ifndef GW_TESTS_SCRIPTWORDS_H
#define GW_TESTS_SCRIPTWORDS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MSS 1448u

struct script_words {
    char cc[16];
    double rate_mbit, rtt_ms, gap_ms;
    uint32_t queue, segments, messages, rcvbuf;
    bool ecn, nosack, close;
};

/* What holds where a word is missing. */
#define SCRIPT_PLAIN \
    { .cc = "cubic", .rate_mbit = 100, .rtt_ms = 40, .queue = 1000, .segments = 100, .messages = 1 }

/* Takes @word, name=value or a name; false: it is no setting. */
static inline bool script_word(struct script_words *s, const char *word)
{
    const char *is = strchr(word, '=');
    size_t n = is ? (size_t)(is - word) : strlen(word);
    const struct { const char *name; double *number; uint32_t *count; bool *flag; } row[] = {
        { "rate", &s->rate_mbit, NULL, NULL }, { "rtt", &s->rtt_ms, NULL, NULL },
        { "gap", &s->gap_ms, NULL, NULL }, { "queue", NULL, &s->queue, NULL },
        { "segments", NULL, &s->segments, NULL }, { "messages", NULL, &s->messages, NULL },
        { "rcvbuf", NULL, &s->rcvbuf, NULL }, { "ecn", NULL, NULL, &s->ecn },
        { "nosack", NULL, NULL, &s->nosack }, { "close", NULL, NULL, &s->close },
    };

    if (is && n == 2 && !strncmp(word, "cc", 2)) {
        snprintf(s->cc, sizeof s->cc, "%s", is + 1);
        return true;
    }
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        if (strlen(row[i].name) != n || strncmp(row[i].name, word, n) || !is != !!row[i].flag)
            continue;
        if (row[i].flag)
            *row[i].flag = true;
        else if (row[i].number)
            *row[i].number = strtod(is + 1, NULL);
        else
            *row[i].count = (uint32_t)strtod(is + 1, NULL);
        return true;
    }
    return false;
}

#endif
