/* The texts of google.protobuf.Duration ("1.5s") and Timestamp (RFC 3339) in JSON. Pure functions, any thread. */
#ifndef TC_PROTO_TIME_TEXT_H
#define TC_PROTO_TIME_TEXT_H

#include "base/slice.h"

#define TC_TIME_TEXT_BYTES 48

/* Write "1.5s" and "2026-01-02T03:04:05.006Z", with no, 3, 6 or 9 digits of a second. Return false when the value is
 * out of range. */
bool tc_time_duration_text(int64_t seconds, int32_t nanos, char out[TC_TIME_TEXT_BYTES]);
bool tc_time_timestamp_text(int64_t seconds, int32_t nanos, char out[TC_TIME_TEXT_BYTES]);
/* Read the texts of a duration and of a timestamp, which may have a fraction of up to nine digits; a timestamp may have
 * an offset from UTC. Return false, with the outputs untouched, when the text is malformed or out of range. */
bool tc_time_duration_parse(struct tc_slice s, int64_t *seconds, int32_t *nanos);
bool tc_time_timestamp_parse(struct tc_slice s, int64_t *seconds, int32_t *nanos);

#endif
