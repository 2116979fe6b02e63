#include "base/json.h"

#include <stdlib.h>

#include "base/parse.h"

/* jansson's reason quotes the text and may cut a character in two. */
static void make_ascii(char *text)
{
    for (char *p = text; *p; p++)
        if ((unsigned char)*p >= 0x80)
            *p = '?';
}

/* To jansson one after the text is the text's end, where it expects just that. */
static bool is_at_nul(struct tc_slice text, const json_error_t *e)
{
    const char *nul = text.len ? memchr(text.data, '\0', text.len) : NULL;
    return nul && e->position >= nul - text.data;
}

json_t *tc_json_parse(struct tc_slice text, char **why)
{
    json_error_t e;
    json_t *v = json_loadb(text.data ? text.data : "", text.len, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, &e);
    if (!v && why && !tc_utf8_valid(tc_slice_str(e.text)))
        make_ascii(e.text);
    if (!v && why)
        *why = tc_asprintf("line %d, column %d: %s", e.line, e.column,
                           is_at_nul(text, &e) ? "a NUL byte is in the text" : e.text);
    return v;
}

/* google.protobuf.Duration's bound. */
#define MAX_SECONDS UINT64_C(315576000000)

static int append_text(const char *data, size_t len, void *arg)
{
    tc_buf_append(arg, data, len);
    return 0;
}

char *tc_json_text(const json_t *v, bool indent)
{
    struct tc_buf b = {0};
    json_dump_callback(v, append_text, &b, JSON_ENCODE_ANY | (indent ? JSON_INDENT(2) : JSON_COMPACT));
    return tc_buf_take(&b);
}

static const char *type_name(const json_t *v)
{
    switch (json_typeof(v)) {
    case JSON_OBJECT:
        return "object";
    case JSON_ARRAY:
        return "array";
    case JSON_STRING:
        return "string";
    case JSON_INTEGER:
    case JSON_REAL:
        return "number";
    case JSON_TRUE:
    case JSON_FALSE:
        return "boolean";
    default:
        return "null";
    }
}

static const json_t *member(const json_t *obj, const char *key)
{
    const json_t *v = json_object_get(obj, key);
    return v && !json_is_null(v) ? v : NULL;
}

static void wrong_type(struct tc_faults *f, const char *key, const char *want, const json_t *got)
{
    tc_faults_push(f, ".%s", key);
    tc_faults_add(f, "must be %s, is %s", want, type_name(got));
    tc_faults_pop(f);
}

bool tc_json_get_str(const json_t *obj, const char *key, const char **out, struct tc_faults *f)
{
    const json_t *v = member(obj, key);
    if (!v)
        return false;
    if (!json_is_string(v)) {
        wrong_type(f, key, "a string", v);
        return false;
    }
    *out = json_string_value(v);
    return true;
}

bool tc_json_get_bool(const json_t *obj, const char *key, bool *out, struct tc_faults *f)
{
    const json_t *v = member(obj, key);
    if (!v)
        return false;
    if (!json_is_boolean(v)) {
        wrong_type(f, key, "a boolean", v);
        return false;
    }
    *out = json_is_true(v);
    return true;
}

bool tc_json_get_u64(const json_t *obj, const char *key, uint64_t max, uint64_t *out, struct tc_faults *f)
{
    const json_t *v = member(obj, key);
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
        wrong_type(f, key, "a number", v);
        return false;
    }
    if (!ok || n > max) {
        tc_faults_push(f, ".%s", key);
        tc_faults_add(f, "must be a whole number from 0 to %llu", (unsigned long long)max);
        tc_faults_pop(f);
        return false;
    }
    *out = n;
    return true;
}

static bool get_typed(const json_t *obj, const char *key, json_type type, const char *want, const json_t **out,
                      struct tc_faults *f)
{
    const json_t *v = member(obj, key);
    if (!v)
        return false;
    if (json_typeof(v) != type) {
        wrong_type(f, key, want, v);
        return false;
    }
    *out = v;
    return true;
}

bool tc_json_get_obj(const json_t *obj, const char *key, const json_t **out, struct tc_faults *f)
{
    return get_typed(obj, key, JSON_OBJECT, "an object", out, f);
}

bool tc_json_get_arr(const json_t *obj, const char *key, const json_t **out, struct tc_faults *f)
{
    return get_typed(obj, key, JSON_ARRAY, "an array", out, f);
}

/* proto3 JSON's Duration, not negative: decimal seconds, at most nine digits behind the point, and an "s". Parts of a
 * millisecond count as one. */
static int parse_duration_ms(struct tc_slice text, uint64_t *out)
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

bool tc_json_get_duration_ms(const json_t *obj, const char *key, uint64_t *out_ms, struct tc_faults *f)
{
    const char *text = NULL;
    if (!tc_json_get_str(obj, key, &text, f))
        return false;
    if (parse_duration_ms(tc_slice_str(text), out_ms) == 0)
        return true;
    tc_faults_push(f, ".%s", key);
    tc_faults_add(f, "\"%s\" is no duration in seconds, as \"1.5s\", from 0 s to %llu s", text,
                  (unsigned long long)MAX_SECONDS);
    tc_faults_pop(f);
    return false;
}
