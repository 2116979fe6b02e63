/* Numbers and bytes of proto3 JSON. An integer may be written in digits alone, or as a real without a fraction (1e3),
 * and either may be in a string. A real names every integer only up to 2^53, so larger reals are refused. Base64 may be
 * in either alphabet, with or without padding, as the ProtoJSON page demands of parsers. */
#include "proto/json_scalar.h"

#include <math.h>

#include "base/parse.h"

#define EXACT 9007199254740992.0 /* 2^53, up to which a double names every integer */

/* Stores the integer that a real stands for, as in 1e3. Returns false if the real is not an integer, or is beyond
 * 2^53. */
static bool real_integer(double v, int64_t *out)
{
    if (!(v >= -EXACT && v <= EXACT) || v != trunc(v))
        return false;
    *out = (int64_t)v;
    return true;
}

static struct tc_slice string_slice(const json_t *json)
{
    return tc_slice_of(json_string_value(json), json_string_length(json));
}

bool tc_json_scalar_i64(const json_t *json, int64_t min, int64_t max, int64_t *out)
{
    int64_t v;
    double d;
    if (json_is_integer(json))
        v = json_integer_value(json);
    else if (json_is_real(json) && real_integer(json_real_value(json), &v))
        ;
    else if (json_is_string(json) && tc_parse_i64(string_slice(json), &v) == 0)
        ;
    else if (!json_is_string(json) || tc_parse_double(string_slice(json), &d) != 0 || !real_integer(d, &v))
        return false;
    if (v < min || v > max)
        return false;
    *out = v;
    return true;
}

/* jansson's integers are signed: a number above INT64_MAX can only come as a string. */
bool tc_json_scalar_u64(const json_t *json, uint64_t max, uint64_t *out)
{
    int64_t v;
    uint64_t u;
    if (json_is_string(json) && tc_parse_u64(string_slice(json), UINT64_MAX, &u) == 0) {
        if (u > max)
            return false;
        *out = u;
        return true;
    }
    if (!tc_json_scalar_i64(json, 0, INT64_MAX, &v) || (uint64_t)v > max)
        return false;
    *out = (uint64_t)v;
    return true;
}

bool tc_json_scalar_double(const json_t *json, double *out)
{
    double v;
    if (json_is_number(json)) {
        *out = json_number_value(json);
        return true;
    }
    if (!json_is_string(json))
        return false;
    struct tc_slice text = string_slice(json);
    if (tc_slice_eq_str(text, "NaN"))
        v = (double)NAN;
    else if (tc_slice_eq_str(text, "Infinity"))
        v = (double)INFINITY;
    else if (tc_slice_eq_str(text, "-Infinity"))
        v = (double)-INFINITY;
    else if (tc_parse_double(text, &v) != 0 || !isfinite(v))
        return false;
    *out = v;
    return true;
}

bool tc_json_scalar_bytes(const json_t *json, struct tc_buf *out)
{
    if (!json_is_string(json))
        return false;
    struct tc_buf text = {0};
    size_t before = out->len;
    tc_buf_append_slice(&text, string_slice(json));
    for (size_t i = 0; i < text.len; i++)
        text.data[i] = (char)(text.data[i] == '-' ? '+' : text.data[i] == '_' ? '/' : text.data[i]);
    bool good = tc_base64_decode(out, tc_buf_slice(&text)) == 0;
    if (!good)
        out->len = before;
    tc_buf_fini(&text);
    return good;
}
