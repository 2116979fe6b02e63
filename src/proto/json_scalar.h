/* Scalars of proto3 JSON: numbers as numbers or as strings, integers also as reals without a fraction. Internal to
 * src/proto.
 */
#ifndef TC_PROTO_JSON_SCALAR_H
#define TC_PROTO_JSON_SCALAR_H

#include <jansson.h>
#include <protobuf-c/protobuf-c.h>

#include "base/buf.h"

/* Each returns false, with `*out` untouched, when the value is no such number or out of range. */
bool tc_json_scalar_i64(const json_t *json, int64_t min, int64_t max, int64_t *out);
bool tc_json_scalar_u64(const json_t *json, uint64_t max, uint64_t *out);
/* "NaN", "Infinity" and "-Infinity" too. */
bool tc_json_scalar_double(const json_t *json, double *out);

/* Appends what a string of base64 stands for: either alphabet, with or without padding. False, with `out` as it was,
 * when it is none. */
bool tc_json_scalar_bytes(const json_t *json, struct tc_buf *out);

/* The size of one element of a repeated field in protobuf-c's structs. */
size_t tc_json_scalar_size(ProtobufCType type);

#endif
