/*
 * text.h - small helpers for sentences, private to emu/core
 */
#ifndef GW_CORE_TEXT_H
#define GW_CORE_TEXT_H

#include <stddef.h>
#include <string.h>

#define GW_SHOW_BYTES 72

/* A user's text for a sentence: cut to what fits @buf, control characters as '?'. Returns @buf. */
static inline const char *gw_show(const char *s, char buf[GW_SHOW_BYTES])
{
    size_t i;

    if (!s)
        s = "";
    for (i = 0; s[i] && i < GW_SHOW_BYTES - 4; i++)
        buf[i] = (unsigned char)s[i] < 0x20 || s[i] == 0x7f ? '?' : s[i];
    if (s[i]) {
        while (i && ((unsigned char)s[i] & 0xc0) == 0x80)
            i--;                               /* never half a UTF-8 character */
        memcpy(buf + i, "...", 3);
        i += 3;
    }
    buf[i] = '\0';
    return buf;
}

#endif
