/* Reading jansson values, with the field path of every validation error. Any thread, on values that no thread
 * changes. */
#ifndef TC_BASE_JSON_H
#define TC_BASE_JSON_H

#include <jansson.h>

#include "base/validation_errors.h"

/* Parses a whole text. Returns a new reference; NULL with a reason ("line 3, column 7: ...", UTF-8) in `*why` (tc_free;
 * `why` may be NULL) when it is not JSON. Depth is limited to jansson's 2048; duplicates of a key are refused. */
json_t *tc_json_parse(struct tc_slice text, char **why);
/* Returns the text of a value, compact or indented by two; freed with tc_free. */
char *tc_json_text(const json_t *v, bool indent);

/* Each function below reads member `key` of object `obj` into *out. A member that is absent or null leaves *out
 * untouched and returns false; a member of the wrong type, or whose value is out of range or malformed, adds a
 * validation error at .key too. Strings are borrowed from the value. */
bool tc_json_get_str(const json_t *obj, const char *key, const char **out, struct tc_validation_errors *e);
bool tc_json_get_bool(const json_t *obj, const char *key, bool *out, struct tc_validation_errors *e);
/* Numbers or strings of digits (proto3 JSON), in [0, max]. */
bool tc_json_get_u64(const json_t *obj, const char *key, uint64_t max, uint64_t *out, struct tc_validation_errors *e);
/* Reads proto3 JSON's Duration, not negative ("1.5s"), in milliseconds, rounded up. */
bool tc_json_get_duration_ms(const json_t *obj, const char *key, uint64_t *out_ms, struct tc_validation_errors *e);
bool tc_json_get_obj(const json_t *obj, const char *key, const json_t **out, struct tc_validation_errors *e);
bool tc_json_get_arr(const json_t *obj, const char *key, const json_t **out, struct tc_validation_errors *e);

#endif
