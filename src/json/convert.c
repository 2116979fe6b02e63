/* The public conversions: arguments and options.
 *
 * tc_json_read and tc_json_write convert. What both need is done here: options that are 0 get their defaults, input and
 * output are compared with max_bytes, and an error is made even if the caller wants none, since its code is what the
 * functions return. If *error is set already nothing is converted, and the code of *error is returned.
 *
 * torc_json_split looks only at brackets, at quotes and at what may end a number or a word. */
#include "json/convert.h"

#include "base/sized.h"
#include "json/fail.h"

enum { DEFAULT_DEPTH = 100, MAX_INDENT = 16 };
#define DEFAULT_BYTES ((int64_t)64 << 20)

static bool in_range(const char *name, int64_t value, int64_t most, torc_error **error)
{
    return (value >= 0 && value <= most) ||
           tc_json_fail(error, TORC_EINVAL, "torc_json_options: %s: is %lld, must be in 0..%lld", name,
                        (long long)value, (long long)most);
}

/* Replaces TORC_ON by 1 and TORC_OFF by 0; 0 stays 0. Other values are errors. */
static bool take_switch(const char *name, int32_t *value, torc_error **error)
{
    if (*value < TORC_OFF || *value > TORC_ON)
        return tc_json_fail(error, TORC_EINVAL, "torc_json_options: %s: is %d, must be 0, TORC_ON or TORC_OFF", name,
                            (int)*value);
    *value = *value == TORC_ON;
    return true;
}

/* Stores the options in *o, which is zeroed, with the defaults of max_depth and max_bytes. `given` may be NULL. */
static bool take_options(const struct torc_json_options *given, struct torc_json_options *o, torc_error **error)
{
    int rc = given ? tc_sized_take(o, sizeof(*o), given) : TORC_OK;
    if (rc != TORC_OK)
        return tc_json_fail(error, rc,
                            rc == TORC_EINVAL ? "torc_json_options: initialise the struct with TORC_SIZE"
                                              : "torc_json_options: fields of newer headers are set");
    if (!take_switch("emit_defaults", &o->emit_defaults, error) ||
        !take_switch("allow_unknown", &o->allow_unknown, error) ||
        !take_switch("proto_names", &o->proto_names, error) || !take_switch("enum_numbers", &o->enum_numbers, error) ||
        !take_switch("unknown_any", &o->unknown_any, error) ||
        !take_switch("allow_partial", &o->allow_partial, error) || !in_range("indent", o->indent, MAX_INDENT, error) ||
        !in_range("max_depth", o->max_depth, DEFAULT_DEPTH, error) ||
        !in_range("max_bytes", o->max_bytes, INT32_MAX, error))
        return false;
    o->max_depth = o->max_depth ? o->max_depth : DEFAULT_DEPTH;
    o->max_bytes = o->max_bytes ? o->max_bytes : DEFAULT_BYTES;
    return true;
}

/* Checks the arguments of a conversion, and stores its options, with defaults, in *o. `out` is the caller's output. */
static bool may_convert(const torc_schema *schema, const torc_schema_message *type, const void *data, size_t size,
                        const void *out, const struct torc_json_options *given, struct torc_json_options *o,
                        torc_error **error)
{
    if (!schema || !type || (!data && size) || !out)
        return tc_json_fail(error, TORC_EINVAL, "the schema, the type, the input or the output is NULL");
    if (!tc_schema_is_linked(schema))
        return tc_json_fail(error, TORC_ESTATE, "the schema is not linked");
    return take_options(given, o, error);
}

typedef bool convert_fn(const torc_schema *schema, const torc_schema_message *type, struct tc_slice in,
                        const struct torc_json_options *options, struct tc_buf *out, torc_error **error);

/* Checks the arguments and runs `fn`. Returns TORC_OK, and `out` has the output; or the code of the error, and `out` is
 * empty. `to` is the caller's output; NULL is an error. */
static int convert(const torc_schema *schema, const torc_schema_message *type, struct tc_slice in,
                   const struct torc_json_options *given, convert_fn *fn, const void *to, struct tc_buf *out,
                   torc_error **error)
{
    torc_error *own = NULL, **e = error ? error : &own;
    struct torc_json_options o = {0};
    bool good = !*e && may_convert(schema, type, in.data, in.len, to, given, &o, e);
    if (good && (in.len > (size_t)o.max_bytes))
        good = tc_json_fail(e, TORC_ELIMIT, "the input has %zu bytes, more than max_bytes (%lld)", in.len,
                            (long long)o.max_bytes);
    good = good && fn(schema, type, in.len ? in : tc_slice_of("", 0), &o, out, e);
    if (good && out->len > (size_t)o.max_bytes)
        good = tc_json_fail(e, TORC_ELIMIT, "the output is larger than max_bytes (%lld)", (long long)o.max_bytes);
    int rc = good ? TORC_OK : torc_error_code(*e);
    torc_error_free(own);
    if (!good)
        tc_buf_fini(out);
    return rc;
}

int torc_json_to_bytes(const torc_schema *schema, const torc_schema_message *type, const char *text, size_t text_size,
                       const struct torc_json_options *options, void **bytes, size_t *size, torc_error **error)
{
    struct tc_buf out = {0};
    int rc =
        convert(schema, type, tc_slice_of(text, text_size), options, tc_json_read, size ? bytes : NULL, &out, error);
    if (rc != TORC_OK)
        return rc;
    *size = out.len;
    *bytes = tc_buf_take(&out);
    return TORC_OK;
}

int torc_json_from_bytes(const torc_schema *schema, const torc_schema_message *type, const void *bytes, size_t size,
                         const struct torc_json_options *options, char **text, size_t *text_size, torc_error **error)
{
    struct tc_buf out = {0};
    int rc = convert(schema, type, tc_slice_of(bytes, size), options, tc_json_write, text, &out, error);
    if (rc != TORC_OK)
        return rc;
    if (text_size)
        *text_size = out.len;
    *text = tc_buf_take(&out);
    return TORC_OK;
}

/* --- the end of a value --- */

/* Returns the place behind the string that begins with the quote at `at`; 0 if it does not end. */
static size_t string_end(const char *text, size_t size, size_t at)
{
    for (at++; at < size; at++) {
        if (text[at] == '"')
            return at + 1;
        at += text[at] == '\\';
    }
    return 0;
}

int torc_json_split(const char *text, size_t size, size_t *used)
{
    static const char blanks[] = " \t\r\n";
    size_t at = 0, depth = 0, begin;
    if (!text || !used)
        return TORC_EINVAL;
    while (at < size && text[at] && strchr(blanks, text[at]))
        at++;
    if (at == size)
        return TORC_ENOTFOUND;
    begin = at;
    if (!strchr("{[\"", text[at]) || !text[at]) { /* a number or a word ends where something else begins */
        while (at < size && (!text[at] || !strchr(" \t\r\n{[\",:]}", text[at])))
            at++;
        if (at == size)
            return TORC_EAGAIN;
        *used = TC_MAX(at, begin + 1); /* a comma, a colon or a closing bracket is a value of one byte */
        return TORC_OK;
    }
    do {
        char c = text[at];
        depth += c == '{' || c == '[';
        depth -= c == '}' || c == ']';
        at = c == '"' ? string_end(text, size, at) : at + 1;
        if (at == 0)
            return TORC_EAGAIN;
    } while (depth && at < size);
    if (depth)
        return TORC_EAGAIN;
    *used = at;
    return TORC_OK;
}
