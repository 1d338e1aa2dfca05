/*
 * filter.h - the guard in front of libpcap's filter compiler
 */
#ifndef GW_IO_FILTER_H
#define GW_IO_FILTER_H

#include <gradwire/base.h>

/*
 * gw_filter_guard() - refuses words that libpcap would look up by name
 *
 * GW_PARAM with a sentence that begins with @where for any word of @filter that is no keyword of
 * pcap-filter(7), number or address. Grammar is left to libpcap.
 */
GW_API enum gw_status gw_filter_guard(const char *filter, const char *where, struct gw_error *err);

#endif
