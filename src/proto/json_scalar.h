/* Scalars of proto3 JSON: numbers as numbers or as strings, integers also as reals without a fraction. Internal to
 * src/proto. Pure functions, any thread. */
#ifndef TC_PROTO_JSON_SCALAR_H
#define TC_PROTO_JSON_SCALAR_H

#include <jansson.h>

#include "base/buf.h"

/* Each of the three functions stores the number, or returns false, with `*out` untouched, when the value is not such a
 * number or is out of range. */
bool tc_json_scalar_i64(const json_t *json, int64_t min, int64_t max, int64_t *out);
bool tc_json_scalar_u64(const json_t *json, uint64_t max, uint64_t *out);
/* Accepts the strings "NaN", "Infinity" and "-Infinity", too. */
bool tc_json_scalar_double(const json_t *json, double *out);

/* Appends the bytes of a string of base64: either alphabet, with or without padding. Returns false, with `out` as it
 * was, when the string is not base64. */
bool tc_json_scalar_bytes(const json_t *json, struct tc_buf *out);

#endif
