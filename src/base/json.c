/* jansson, with errors that name their field.
 *
 * tc_json_get_TYPE returns false both for a member that is absent or null and for a member whose type or value is
 * wrong; only the latter adds a validation error. A caller that must distinguish the two compares the number of errors
 * before and after. */
#include "base/json.h"

#include <stdlib.h>

#include "base/parse.h"
#include "base/random.h"

/* Runs when the library is loaded. Otherwise jansson would seed itself at its first object, and other threads would
 * spin until the seed is there. A child that was forked meanwhile would spin for ever. */
__attribute__((constructor)) static void json_seed_objects(void)
{
    struct tc_rng rng;
    tc_rng_init_system(&rng);
    json_object_seed((size_t)tc_rng_u64(&rng));
}

/* jansson's reason quotes the text and may cut a UTF-8 character in two. */
static void reason_make_ascii(char *text)
{
    for (char *p = text; *p; p++)
        if ((unsigned char)*p >= 0x80)
            *p = '?';
}

/* Returns true if the error is at or behind a NUL byte: jansson takes a NUL for the end of the text, and says so. */
static bool error_is_at_nul(struct tc_slice text, const json_error_t *e)
{
    const char *nul = text.len ? memchr(text.data, '\0', text.len) : NULL;
    return nul && e->position >= nul - text.data;
}

json_t *tc_json_parse(struct tc_slice text, char **why)
{
    json_error_t e;
    json_t *v = json_loadb(text.data ? text.data : "", text.len, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, &e);
    if (!v && why && !tc_utf8_valid(tc_slice_str(e.text)))
        reason_make_ascii(e.text);
    if (!v && why)
        *why = tc_asprintf("line %d, column %d: %s", e.line, e.column,
                           error_is_at_nul(text, &e) ? "a NUL byte is in the text" : e.text);
    return v;
}

/* The seconds of the largest google.protobuf.Duration. */
#define MAX_SECONDS UINT64_C(315576000000)

static int json_append_text(const char *data, size_t len, void *arg)
{
    tc_buf_append(arg, data, len);
    return 0;
}

char *tc_json_text(const json_t *v, bool indent)
{
    struct tc_buf b = {0};
    json_dump_callback(v, json_append_text, &b, JSON_ENCODE_ANY | (indent ? JSON_INDENT(2) : JSON_COMPACT));
    return tc_buf_take(&b);
}

static const char *const type_names[] = {
    [JSON_OBJECT] = "object", [JSON_ARRAY] = "array",  [JSON_STRING] = "string", [JSON_INTEGER] = "number",
    [JSON_REAL] = "number",   [JSON_TRUE] = "boolean", [JSON_FALSE] = "boolean", [JSON_NULL] = "null",
};

static const json_t *json_member(const json_t *obj, const char *key)
{
    const json_t *v = json_object_get(obj, key);
    return v && !json_is_null(v) ? v : NULL;
}

const char *tc_json_key(const json_t *obj, const char *camel, const char *snake)
{
    return json_member(obj, camel) || !json_member(obj, snake) ? camel : snake;
}

static bool json_add_wrong_type(struct tc_validation_errors *e, const char *key, const char *want, const json_t *got)
{
    return tc_validation_add_member(e, key, "must be %s, is %s", want, type_names[json_typeof(got)]);
}

/* Returns the member if it has the type; else NULL, with a validation error if it is neither absent nor null. */
static const json_t *json_typed_member(const json_t *obj, const char *key, json_type type, const char *want,
                                       struct tc_validation_errors *e)
{
    const json_t *v = json_member(obj, key);
    if (!v || json_typeof(v) == type)
        return v;
    json_add_wrong_type(e, key, want, v);
    return NULL;
}

bool tc_json_get_str(const json_t *obj, const char *key, const char **out, struct tc_validation_errors *e)
{
    const json_t *v = json_typed_member(obj, key, JSON_STRING, "a string", e);
    if (v)
        *out = json_string_value(v);
    return v != NULL;
}

bool tc_json_get_obj(const json_t *obj, const char *key, const json_t **out, struct tc_validation_errors *e)
{
    const json_t *v = json_typed_member(obj, key, JSON_OBJECT, "an object", e);
    if (v)
        *out = v;
    return v != NULL;
}

bool tc_json_get_arr(const json_t *obj, const char *key, const json_t **out, struct tc_validation_errors *e)
{
    const json_t *v = json_typed_member(obj, key, JSON_ARRAY, "an array", e);
    if (v)
        *out = v;
    return v != NULL;
}

bool tc_json_get_bool(const json_t *obj, const char *key, bool *out, struct tc_validation_errors *e)
{
    const json_t *v = json_member(obj, key);
    if (v && !json_is_boolean(v))
        return json_add_wrong_type(e, key, "a boolean", v);
    if (v)
        *out = json_is_true(v);
    return v != NULL;
}

bool tc_json_get_u64_in(const json_t *obj, const char *key, uint64_t min, uint64_t max, uint64_t *out,
                        struct tc_validation_errors *e)
{
    const json_t *v = json_member(obj, key);
    uint64_t n = 0;
    bool ok = false;
    if (!v)
        return false;
    if (json_is_integer(v)) {
        ok = json_integer_value(v) >= 0;
        n = (uint64_t)json_integer_value(v);
    } else if (json_is_real(v)) {
        double d = json_real_value(v);
        ok = d >= 0 && d <= 9007199254740992.0 && d == (double)(uint64_t)d;
        n = ok ? (uint64_t)d : 0;
    } else if (json_is_string(v)) {
        ok = tc_parse_u64(tc_slice_of(json_string_value(v), json_string_length(v)), UINT64_MAX, &n) == 0;
    } else {
        return json_add_wrong_type(e, key, "a number", v);
    }
    if (!ok || n < min || n > max)
        return tc_validation_add_member(e, key, "must be a whole number from %llu to %llu", (unsigned long long)min,
                                        (unsigned long long)max);
    *out = n;
    return true;
}

bool tc_json_get_u64(const json_t *obj, const char *key, uint64_t max, uint64_t *out, struct tc_validation_errors *e)
{
    return tc_json_get_u64_in(obj, key, 0, max, out, e);
}

/* Parses proto3 JSON's Duration, but no sign: decimal seconds, at most nine digits behind the point, and "s". Rounds
 * up. Returns 0 or TORC_EPARSE. */
static int json_parse_duration_ms(struct tc_slice text, uint64_t *out)
{
    uint64_t seconds, nanos = 0;
    if (!text.len || text.data[text.len - 1] != 's')
        return TORC_EPARSE;
    text.len--;
    ptrdiff_t point = tc_slice_find(text, tc_slice_str("."));
    if (point >= 0) {
        struct tc_slice fraction = tc_slice_of(text.data + point + 1, text.len - (size_t)point - 1);
        if (fraction.len > 9 || tc_parse_u64(fraction, 999999999, &nanos) != 0)
            return TORC_EPARSE;
        for (size_t i = fraction.len; i < 9; i++)
            nanos *= 10;
        text.len = (size_t)point;
    }
    if (tc_parse_u64(text, MAX_SECONDS, &seconds) != 0 || (seconds == MAX_SECONDS && nanos))
        return TORC_EPARSE;
    *out = seconds * 1000 + (nanos + 999999) / 1000000;
    return 0;
}

bool tc_json_get_duration_ms(const json_t *obj, const char *key, uint64_t *out_ms, struct tc_validation_errors *e)
{
    const char *text = NULL;
    if (!tc_json_get_str(obj, key, &text, e))
        return false;
    if (json_parse_duration_ms(tc_slice_str(text), out_ms) == 0)
        return true;
    return tc_validation_add_member(e, key, "\"%s\" is not a duration in seconds, as \"1.5s\", from 0 s to %llu s",
                                    text, (unsigned long long)MAX_SECONDS);
}
