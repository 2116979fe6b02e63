/* The well-known types that have a JSON form of their own, and the texts of two of them. Internal to src/proto. Pure
 * functions, any thread. */
#ifndef TC_PROTO_WKT_H
#define TC_PROTO_WKT_H

#include <protobuf-c/protobuf-c.h>

#include "base/slice.h"

enum tc_wkt {
    TC_WKT_NONE, /* an ordinary message */
    TC_WKT_ANY,
    TC_WKT_DURATION,
    TC_WKT_TIMESTAMP,
    TC_WKT_STRUCT,
    TC_WKT_VALUE,
    TC_WKT_LIST,
    TC_WKT_WRAPPER, /* one field, `value` */
};

enum tc_wkt tc_wkt_of(const ProtobufCMessageDescriptor *type);

#define TC_WKT_TEXT_BYTES 48

/* Write "1.5s" and "2026-01-02T03:04:05.006Z", with no, 3, 6 or 9 digits of a second. Return false when the value is
 * out of range. */
bool tc_wkt_duration_text(int64_t seconds, int32_t nanos, char out[TC_WKT_TEXT_BYTES]);
bool tc_wkt_timestamp_text(int64_t seconds, int32_t nanos, char out[TC_WKT_TEXT_BYTES]);
/* Read the texts of a duration and of a timestamp, with one to nine digits of a second; a timestamp may have an offset
 * from UTC. Return false, with the outputs untouched, when the text is malformed or out of range. */
bool tc_wkt_duration_parse(struct tc_slice s, int64_t *seconds, int32_t *nanos);
bool tc_wkt_timestamp_parse(struct tc_slice s, int64_t *seconds, int32_t *nanos);

/* Writes the lowerCamelCase form of a field's name to `out`, cut at its size. */
void tc_wkt_camel(const char *name, char *out, size_t size);

#endif
