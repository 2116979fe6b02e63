/* The texts of google.protobuf.Duration ("1.5s") and Timestamp (RFC 3339) in JSON. Pure functions, any thread. */
#ifndef TC_PROTO_TIME_TEXT_H
#define TC_PROTO_TIME_TEXT_H

#include "base/slice.h"

#define TC_TIME_TEXT_BYTES 48 /* enough for either text and its NUL */

/* Write a text such as "1.500s" or "2026-01-02T03:04:05.006Z", with 0, 3, 6 or 9 digits of a fraction. Return false,
 * with `out` unspecified, when the value is out of range. A duration has up to 315,576,000,000 `seconds` and up to
 * 999,999,999 `nanos` either way, not of opposite signs. A timestamp has 0 to 999,999,999 `nanos` and is in the years
 * 1 to 9999. */
bool tc_time_duration_text(int64_t seconds, int32_t nanos, char out[TC_TIME_TEXT_BYTES]);
bool tc_time_timestamp_text(int64_t seconds, int32_t nanos, char out[TC_TIME_TEXT_BYTES]);
/* Read the texts of a duration and of a timestamp, which may have a fraction of up to nine digits. A timestamp ends in
 * "Z" or in its offset from UTC ("+01:00"). Return false, with the outputs untouched, when the text is malformed or out
 * of range. */
bool tc_time_duration_parse(struct tc_slice s, int64_t *seconds, int32_t *nanos);
bool tc_time_timestamp_parse(struct tc_slice s, int64_t *seconds, int32_t *nanos);

#endif
