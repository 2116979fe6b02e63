/* Reading jansson values, with the field path of every validation error. Any thread, on values that no thread
 * changes. */
#ifndef TC_BASE_JSON_H
#define TC_BASE_JSON_H

#include <jansson.h>

#include "base/validation_errors.h"

/* Parses a text that is one JSON value of any type. Returns a new reference. Returns NULL if the text is not JSON, or
 * if it has what jansson refuses: a depth above 2048, a key twice in an object, "\u0000" in a string, an integer beyond
 * int64_t, or a number beyond double. Then *why is a reason ("line 3, column 7: ...", UTF-8), which the caller frees
 * with tc_free. `why` may be NULL. */
json_t *tc_json_parse(struct tc_slice text, char **why);
/* Returns the text of a value, compact or indented by two spaces. The caller frees it with tc_free. */
char *tc_json_text(const json_t *v, bool indent);

/* Returns the key of the member that `obj` has, `camel` or `snake`; `camel` if it has both or none. A member that is
 * null does not count. */
const char *tc_json_key(const json_t *obj, const char *camel, const char *snake);

/* Each function below reads member `key` of object `obj` into *out and returns true. For a member that is absent or
 * null, it returns false and leaves *out unchanged. For a member of the wrong type, or whose value is out of range or
 * malformed, it also adds a validation error at .key. What it stores is borrowed from `obj`. */
bool tc_json_get_str(const json_t *obj, const char *key, const char **out, struct tc_validation_errors *e);
bool tc_json_get_bool(const json_t *obj, const char *key, bool *out, struct tc_validation_errors *e);
/* Reads a whole number in [0, max], or a string of its digits (proto3 JSON). Above 2^53 a number must have neither a
 * point nor an exponent, and a number above INT64_MAX must be a string. */
bool tc_json_get_u64(const json_t *obj, const char *key, uint64_t max, uint64_t *out, struct tc_validation_errors *e);
/* tc_json_get_u64 for a whole number in [min, max]. */
bool tc_json_get_u64_in(const json_t *obj, const char *key, uint64_t min, uint64_t max, uint64_t *out,
                        struct tc_validation_errors *e);
/* Reads proto3 JSON's Duration ("1.5s"), which must not be negative, as milliseconds, rounded up. */
bool tc_json_get_duration_ms(const json_t *obj, const char *key, uint64_t *out_ms, struct tc_validation_errors *e);
bool tc_json_get_obj(const json_t *obj, const char *key, const json_t **out, struct tc_validation_errors *e);
bool tc_json_get_arr(const json_t *obj, const char *key, const json_t **out, struct tc_validation_errors *e);

#endif
