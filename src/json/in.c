/* JSON into wire format.
 *
 * One pass over the text, driven by the types, except for an Any (json/in_known). What is read is appended to the
 * output at once. The length of a message within another is not known before its end: one byte is left free for it, and
 * a content of 128 bytes or more is moved, since its length needs more bytes. A value that turns out to be absent (the
 * default of a field without presence, an unknown enum value that is passed over) is cut off the output again.
 *
 * The caller's buffer is in struct tc_json_in, which lies on the stack of tc_json_read, until tc_json_read ends. An
 * error ends all reading: the way for errors (r.step) may then lead to stack frames that are gone.
 *
 * Start at fields_in. Well-known types are in json/in_known. */
#include <float.h>
#include <math.h>
#include <stdlib.h>

#include "base/parse.h"
#include "json/in_internal.h"
#include "json/item.h"
#include "json/number.h"

/* Stores the error that the next value must be `what`. Returns false. */
static bool want(struct tc_json_in *in, const char *what)
{
    return tc_json_reader_want(&in->r, what);
}

/* --- wire format --- */

void tc_json_in_tag(struct tc_json_in *in, int32_t number, unsigned wire)
{
    tc_wire_append_varint(&in->out, (uint64_t)number << 3 | wire);
}

void tc_json_in_fixed(struct tc_json_in *in, uint64_t v, size_t width)
{
    for (size_t i = 0; i < width; i++)
        tc_buf_append_char(&in->out, (char)(v >> (8 * i)));
}

size_t tc_json_in_begin(struct tc_json_in *in)
{
    tc_buf_append_char(&in->out, 0);
    return in->out.len;
}

size_t tc_json_in_end(struct tc_json_in *in, size_t begin)
{
    size_t n = in->out.len - begin, width = 1;
    for (size_t v = n >> 7; v; v >>= 7)
        width++;
    if (width > 1) {
        tc_buf_reserve(&in->out, width - 1);
        memmove(in->out.data + begin + width - 1, in->out.data + begin, n);
        in->out.len += width - 1;
    }
    char *at = in->out.data + begin - 1;
    for (size_t i = 0, v = n; i < width; i++, v >>= 7)
        at[i] = (char)((v & 0x7f) | (i + 1 < width ? 0x80 : 0));
    return begin - 1 + width;
}

/* --- scalars --- */

bool tc_json_in_string(struct tc_json_in *in)
{
    tc_buf_clear(&in->text);
    return tc_json_reader_string(&in->r, &in->text, NULL);
}

/* Takes a number, or any string: the caller checks the text of *out, which is borrowed from the JSON text or from
 * in->text. `what` is for the error. */
static bool number(struct tc_json_in *in, const char *what, struct tc_slice *out)
{
    char c = tc_json_reader_peek(&in->r);
    if (c != '"')
        return c && strchr("-0123456789", c) ? tc_json_reader_number(&in->r, out) : want(in, what);
    if (!tc_json_in_string(in))
        return false;
    *out = tc_buf_slice(&in->text);
    return true;
}

/* Returns whether the whole slice is a number, which a string need not be. */
static bool is_number(struct tc_slice s)
{
    return s.len && tc_number_length(s) == s.len;
}

bool tc_json_in_double(struct tc_json_in *in, bool special, double *out)
{
    struct tc_slice s;
    tc_json_reader_peek(&in->r);
    const char *at = in->r.at;
    if (!number(in, "a number", &s))
        return false;
    if (special && *at == '"') {
        static const char *const names[] = {"NaN", "Infinity", "-Infinity"};
        const double values[] = {(double)NAN, (double)INFINITY, (double)-INFINITY};
        for (size_t i = 0; i < TC_ARRAY_LEN(names); i++) {
            if (tc_slice_eq_str(s, names[i])) {
                *out = values[i];
                return true;
            }
        }
    }
    if (!is_number(s))
        return tc_json_reader_fail_at(&in->r, at, TORC_EPARSE, "must be a number");
    return tc_number_double(s, out) || tc_json_reader_fail_at(&in->r, at, TORC_EPARSE, "must be a number of 64 bits");
}

static bool float_in(struct tc_json_in *in)
{
    double v;
    tc_json_reader_peek(&in->r);
    const char *at = in->r.at;
    if (!tc_json_in_double(in, true, &v))
        return false;
    float f = (float)v;
    if (isinf(f) && !isinf(v))
        return tc_json_reader_fail_at(&in->r, at, TORC_EPARSE, "must be a number in the range of a float");
    uint32_t bits;
    memcpy(&bits, &f, sizeof(bits));
    tc_json_in_fixed(in, bits, 4);
    return true;
}

static bool double_in(struct tc_json_in *in)
{
    double v;
    uint64_t bits;
    if (!tc_json_in_double(in, true, &v))
        return false;
    memcpy(&bits, &v, sizeof(bits));
    tc_json_in_fixed(in, bits, 8);
    return true;
}

/* The integer types: their range, and their form on the wire. */
static const struct integer {
    const char *what;
    bool is_signed, zigzag;
    uint8_t bits, fixed; /* fixed: bytes on the wire; 0: a varint */
} integers[TC_TYPE_SINT64 + 1] = {
    [TC_TYPE_INT32] = {"an integer of 32 bits", true, false, 32, 0},
    [TC_TYPE_SINT32] = {"an integer of 32 bits", true, true, 32, 0},
    [TC_TYPE_SFIXED32] = {"an integer of 32 bits", true, false, 32, 4},
    [TC_TYPE_INT64] = {"an integer of 64 bits", true, false, 64, 0},
    [TC_TYPE_SINT64] = {"an integer of 64 bits", true, true, 64, 0},
    [TC_TYPE_SFIXED64] = {"an integer of 64 bits", true, false, 64, 8},
    [TC_TYPE_UINT32] = {"an unsigned integer of 32 bits", false, false, 32, 0},
    [TC_TYPE_FIXED32] = {"an unsigned integer of 32 bits", false, false, 32, 4},
    [TC_TYPE_UINT64] = {"an unsigned integer of 64 bits", false, false, 64, 0},
    [TC_TYPE_FIXED64] = {"an unsigned integer of 64 bits", false, false, 64, 8},
};

static void append_integer(struct tc_json_in *in, const struct integer *kind, uint64_t v)
{
    if (kind->zigzag)
        v = v << 1 ^ (uint64_t)((int64_t)v >> 63);
    if (kind->fixed)
        tc_json_in_fixed(in, v, kind->fixed);
    else
        tc_wire_append_varint(&in->out, v);
}

static bool integer_in(struct tc_json_in *in, const struct integer *kind)
{
    struct tc_slice s;
    uint64_t u = 0;
    int64_t i = 0;
    tc_json_reader_peek(&in->r);
    const char *at = in->r.at;
    if (!number(in, kind->what, &s))
        return false;
    bool good = is_number(s);
    if (kind->is_signed)
        good = good &&
               tc_number_i64(s, kind->bits == 32 ? INT32_MIN : INT64_MIN, kind->bits == 32 ? INT32_MAX : INT64_MAX, &i);
    else
        good = good && tc_number_u64(s, kind->bits == 32 ? UINT32_MAX : UINT64_MAX, &u);
    if (!good)
        return tc_json_reader_fail_at(&in->r, at, TORC_EPARSE, "must be %s", kind->what);
    append_integer(in, kind, kind->is_signed ? (uint64_t)i : u);
    return true;
}

static enum tc_json_read enum_in(struct tc_json_in *in, const torc_schema_enum *e)
{
    const struct tc_schema_value *v = NULL;
    struct tc_slice s;
    int64_t n = 0;
    char c = tc_json_reader_peek(&in->r);
    const char *at = in->r.at;
    if (e->null && tc_json_reader_word(&in->r, "null")) {
        tc_buf_append_char(&in->out, 0);
        return TC_READ_DONE;
    }
    if (c == '"') {
        if (!tc_json_in_string(in))
            return TC_READ_FAILED;
        v = tc_schema_value_by_name(e, tc_buf_slice(&in->text));
        if (!v && in->options->allow_unknown)
            return TC_READ_PASSED_OVER;
        if (!v)
            return tc_json_reader_fail_at(&in->r, at, TORC_EPARSE, "unknown value " TC_SHOWN " of enum %s",
                                          TC_SHOW(tc_buf_cstr(&in->text)), e->full_name);
        n = v->number;
    } else {
        if (!number(in, "the name or number of an enum value", &s))
            return TC_READ_FAILED;
        if (!tc_number_i64(s, INT32_MIN, INT32_MAX, &n))
            return tc_json_reader_fail_at(&in->r, at, TORC_EPARSE, "must be the name or number of an enum value");
        if (e->closed && !tc_schema_value_by_number(e, (int32_t)n)) {
            if (in->options->allow_unknown)
                return TC_READ_PASSED_OVER;
            return tc_json_reader_fail_at(&in->r, at, TORC_EPARSE, "unknown value %lld of enum %s, which is closed",
                                          (long long)n, e->full_name);
        }
    }
    tc_wire_append_varint(&in->out, (uint64_t)n);
    return TC_READ_DONE;
}

static void append_bytes(struct tc_json_in *in, struct tc_slice bytes)
{
    tc_wire_append_varint(&in->out, bytes.len);
    tc_buf_append_slice(&in->out, bytes);
}

static bool bytes_in(struct tc_json_in *in)
{
    tc_json_reader_peek(&in->r);
    const char *at = in->r.at;
    if (!tc_json_in_string(in))
        return false;
    for (size_t i = 0; i < in->text.len; i++) {
        char c = in->text.data[i];
        in->text.data[i] = c == '-' ? '+' : c == '_' ? '/' : c;
    }
    size_t begin = tc_json_in_begin(in);
    if (tc_base64_decode(&in->out, tc_buf_slice(&in->text)) != 0)
        return tc_json_reader_fail_at(&in->r, at, TORC_EPARSE, "must be a string of base64");
    tc_json_in_end(in, begin);
    return true;
}

static bool bool_in(struct tc_json_in *in)
{
    bool yes = tc_json_reader_word(&in->r, "true");
    if (!yes && !tc_json_reader_word(&in->r, "false"))
        return want(in, "true or false");
    tc_buf_append_char(&in->out, yes);
    return true;
}

static enum tc_json_read scalar_in(struct tc_json_in *in, const struct tc_schema_field *f)
{
    switch (f->type) {
    case TC_TYPE_DOUBLE:
        return double_in(in);
    case TC_TYPE_FLOAT:
        return float_in(in);
    case TC_TYPE_BOOL:
        return bool_in(in);
    case TC_TYPE_ENUM:
        return enum_in(in, f->enumeration);
    case TC_TYPE_BYTES:
        return bytes_in(in);
    case TC_TYPE_STRING:
        if (!tc_json_in_string(in))
            return TC_READ_FAILED;
        append_bytes(in, tc_buf_slice(&in->text));
        return TC_READ_DONE;
    default:
        return integer_in(in, &integers[f->type]);
    }
}

/* --- fields --- */

static bool message_begin(struct tc_json_in *in, const torc_schema_message *type, unsigned depth)
{
    if (type->message_set)
        return tc_json_reader_fail_at(&in->r, in->r.at, TORC_EUNSUPPORTED,
                                      "%s is a message set, which has no JSON form", type->full_name);
    if ((int64_t)depth > in->options->max_depth)
        return tc_json_reader_fail_at(&in->r, in->r.at, TORC_ELIMIT, "messages within each other are more than %lld",
                                      (long long)in->options->max_depth);
    return true;
}

static bool fields_in(struct tc_json_in *in, const torc_schema_message *type, bool within_any, unsigned depth);

bool tc_json_in_message(struct tc_json_in *in, const torc_schema_message *type, unsigned depth)
{
    if (type->known)
        return message_begin(in, type, depth) && tc_json_in_known(in, type, depth);
    return message_begin(in, type, depth) && fields_in(in, type, false, depth);
}

bool tc_json_in_content(struct tc_json_in *in, const torc_schema_message *type, unsigned depth)
{
    return message_begin(in, type, depth) && fields_in(in, type, true, depth);
}

enum tc_json_read tc_json_in_value(struct tc_json_in *in, const struct tc_schema_field *f, bool tagged, unsigned depth)
{
    size_t before = in->out.len, payload;
    unsigned wire = tc_schema_wire(f->type);
    if ((int64_t)before > in->options->max_bytes)
        return tc_json_reader_fail_at(&in->r, in->r.at, TORC_ELIMIT, "the output is larger than max_bytes (%lld)",
                                      (long long)in->options->max_bytes);
    if (tagged)
        tc_json_in_tag(in, f->number, wire);
    payload = in->out.len;
    if (tc_schema_is_message(f)) {
        bool group = f->type == TC_TYPE_GROUP;
        size_t begin = group ? 0 : tc_json_in_begin(in);
        if (!tc_json_in_message(in, f->message, depth + 1))
            return TC_READ_FAILED;
        if (group)
            tc_json_in_tag(in, f->number, TC_ITEM_GROUP_END);
        else
            tc_json_in_end(in, begin);
        return TC_READ_DONE;
    }
    enum tc_json_read rc = scalar_in(in, f);
    bool zero = !f->has_presence && !f->repeated;
    for (size_t i = payload; zero && i < in->out.len; i++)
        zero = in->out.data[i] == 0;
    if (rc == TC_READ_PASSED_OVER || (rc == TC_READ_DONE && zero && tagged))
        in->out.len = before;
    return rc;
}

static bool list_in(struct tc_json_in *in, const struct tc_schema_field *f, unsigned depth)
{
    size_t before = in->out.len, begin = 0, index = 0;
    bool first = true;
    int more;
    if (tc_json_reader_peek(&in->r) != '[')
        return want(in, "a list");
    in->r.at++;
    if (f->packed) {
        tc_json_in_tag(in, f->number, TC_WIRE_LENGTH);
        begin = tc_json_in_begin(in);
    }
    for (; (more = tc_json_reader_element(&in->r, &first)) > 0; index++) {
        struct tc_json_step step = {.up = in->r.step, .index = index};
        in->r.step = &step;
        if (tc_json_reader_peek(&in->r) == 'n' && !tc_schema_takes_null(f))
            return want(in, "a value, not null");
        if (!tc_json_in_value(in, f, !f->packed, depth))
            return false;
        in->r.step = step.up;
    }
    if (f->packed && in->out.len == begin)
        in->out.len = before;
    else if (f->packed)
        tc_json_in_end(in, begin);
    return more == 0;
}

/* --- maps --- */

/* Writes the key of a map entry with its tag; the decoded string of the key is in `text`. `at` is the place of the key,
 * for errors. */
static bool key_in(struct tc_json_in *in, const struct tc_schema_field *key, const char *at)
{
    struct tc_slice s = tc_buf_slice(&in->text);
    const struct integer *kind = &integers[key->type];
    uint64_t u = 0;
    int64_t i = 0;
    tc_json_in_tag(in, 1, tc_schema_wire(key->type));
    if (key->type == TC_TYPE_STRING) {
        append_bytes(in, s);
    } else if (key->type == TC_TYPE_BOOL) {
        bool yes = tc_slice_eq_str(s, "true");
        if (!yes && !tc_slice_eq_str(s, "false"))
            return tc_json_reader_fail_at(&in->r, at, TORC_EPARSE, "must have a key that is true or false");
        tc_buf_append_char(&in->out, yes);
    } else {
        bool good =
            is_number(s) && (kind->is_signed ? tc_number_i64(s, kind->bits == 32 ? INT32_MIN : INT64_MIN,
                                                             kind->bits == 32 ? INT32_MAX : INT64_MAX, &i)
                                             : tc_number_u64(s, kind->bits == 32 ? UINT32_MAX : UINT64_MAX, &u));
        if (!good)
            return tc_json_reader_fail_at(&in->r, at, TORC_EPARSE, "must have a key that is %s", kind->what);
        append_integer(in, kind, kind->is_signed ? (uint64_t)i : u);
    }
    return true;
}

/* The key of a map entry that was written. */
struct key {
    size_t at, size;  /* its tag and bytes in `out` */
    const char *text; /* where it is in the JSON text */
};

static int key_compare(const void *a, const void *b, void *out)
{
    const struct key *x = a, *y = b;
    const char *data = ((const struct tc_buf *)out)->data;
    return tc_slice_cmp(tc_slice_of(data + x->at, x->size), tc_slice_of(data + y->at, y->size));
}

/* Sorts the keys. Returns false with an error if two are equal. */
static bool keys_differ(struct tc_json_in *in, struct key *keys, size_t n)
{
    if (n)
        qsort_r(keys, n, sizeof(*keys), key_compare, &in->out);
    for (size_t i = 1; i < n; i++)
        if (key_compare(&keys[i - 1], &keys[i], &in->out) == 0)
            return tc_json_reader_fail_at(&in->r, TC_MAX(keys[i].text, keys[i - 1].text), TORC_EPARSE,
                                          "a key is given twice");
    return true;
}

/* Reads one entry, whose key is in `text`; `raw` is the key in the JSON text. Stores *key on TC_READ_DONE. */
static enum tc_json_read entry_in(struct tc_json_in *in, const struct tc_schema_field *f, struct tc_slice raw,
                                  unsigned depth, struct key *key)
{
    const struct tc_schema_field *k = f->message->by_number[0], *v = f->message->by_number[1];
    struct tc_json_step step = {.up = in->r.step, .key = raw};
    size_t before = in->out.len;
    in->r.step = &step;
    tc_json_in_tag(in, f->number, TC_WIRE_LENGTH);
    size_t begin = tc_json_in_begin(in);
    if (!message_begin(in, f->message, depth + 1) || !key_in(in, k, raw.data - 1))
        return TC_READ_FAILED;
    size_t size = in->out.len - begin;
    if (tc_json_reader_peek(&in->r) == 'n' && !tc_schema_takes_null(v))
        return want(in, "a value, not null");
    enum tc_json_read rc = tc_json_in_value(in, v, true, depth + 1);
    if (rc == TC_READ_DONE)
        *key = (struct key){tc_json_in_end(in, begin), size, raw.data - 1};
    else if (rc == TC_READ_PASSED_OVER)
        in->out.len = before;
    in->r.step = step.up;
    return rc;
}

bool tc_json_in_map(struct tc_json_in *in, const struct tc_schema_field *f, unsigned depth)
{
    TC_VEC(struct key) keys = {0};
    struct tc_slice raw;
    struct key key;
    bool first = true, good = true;
    int more;
    if (tc_json_reader_peek(&in->r) != '{')
        return want(in, "an object");
    in->r.at++;
    while ((more = tc_json_reader_member(&in->r, &first, &in->text, &raw)) > 0) {
        enum tc_json_read rc = entry_in(in, f, raw, depth, &key);
        if (rc == TC_READ_DONE)
            *tc_vec_push(&keys) = key;
        if (!(good = rc != TC_READ_FAILED))
            break;
    }
    good = good && more == 0 && keys_differ(in, keys.data, keys.len);
    tc_vec_fini(&keys);
    return good;
}

/* --- messages --- */

enum { PAGE_WORDS = 64, PAGE_BITS = 64 * PAGE_WORDS, MOST_PAGES = 2 * TC_SCHEMA_MAX_FIELDS / PAGE_BITS };

/* The fields and oneofs of a message that were read, one bit each. A type with up to 64 of them uses `few`. A larger
 * type uses pages, allocated on first use, so that a message costs what it has and not what its type might have. */
struct seen {
    uint64_t few, *pages[MOST_PAGES];
    size_t required; /* how many required fields were read */
};

/* Sets bit i; `bits` is how many fields and oneofs the type has. Returns whether the bit was set before. */
static bool seen_set(struct seen *s, size_t bits, size_t i)
{
    uint64_t **page = &s->pages[i / PAGE_BITS], *word = &s->few, bit = UINT64_C(1) << (i % 64);
    if (bits > 64) {
        if (!*page)
            *page = tc_calloc(PAGE_WORDS, sizeof(**page));
        word = &(*page)[i % PAGE_BITS / 64];
    }
    bool was = *word & bit;
    *word |= bit;
    return was;
}

static void seen_fini(struct seen *s)
{
    for (size_t i = 0; i < MOST_PAGES; i++)
        tc_free(s->pages[i]);
}

/* Reads the value of a field, after its name; `at` is the place of the name. */
static bool field_in(struct tc_json_in *in, const torc_schema_message *type, const struct tc_schema_field *f,
                     struct seen *seen, const char *at, unsigned depth)
{
    size_t bits = type->n_by_number + type->oneofs.len;
    if (seen_set(seen, bits, f->index))
        return tc_json_reader_fail_at(&in->r, at, TORC_EPARSE, "is given twice");
    if (!tc_schema_takes_null(f) && tc_json_reader_word(&in->r, "null"))
        return !f->required || in->options->allow_partial ||
               tc_json_reader_fail_at(&in->r, at, TORC_EPARSE, "is required");
    if (f->repeated && tc_json_reader_word(&in->r, "null"))
        return true;
    if (f->oneof && seen_set(seen, bits, type->n_by_number + f->oneof->index))
        return tc_json_reader_fail_at(&in->r, at, TORC_EPARSE, "another field of the oneof %s is set", f->oneof->name);
    if (f->repeated)
        return f->map ? tc_json_in_map(in, f, depth) : list_in(in, f, depth);
    enum tc_json_read rc = tc_json_in_value(in, f, true, depth);
    seen->required += f->required;
    if (rc == TC_READ_PASSED_OVER && f->required && !in->options->allow_partial)
        return tc_json_reader_fail_at(&in->r, at, TORC_EPARSE, "is required, and its value is unknown");
    return rc != TC_READ_FAILED;
}

/* Checks that no required field is missing. `at` is the place of the message. May set bits of `seen`. */
static bool fields_are_there(struct tc_json_in *in, const torc_schema_message *type, struct seen *seen, const char *at)
{
    if (seen->required == type->n_required || in->options->allow_partial)
        return true;
    size_t i = 0, bits = type->n_by_number + type->oneofs.len;
    while (!type->by_number[i]->required || seen_set(seen, bits, i))
        i++;
    return tc_json_reader_fail_at(&in->r, at, TORC_EPARSE, "the required field %s is missing",
                                  type->by_number[i]->name);
}

/* Reads a member of an object, after its name, which is in `text`; `raw` is the name in the JSON text. */
static bool member_in(struct tc_json_in *in, const torc_schema_message *type, struct tc_slice raw, struct seen *seen,
                      unsigned depth)
{
    const struct tc_schema_field *f = tc_schema_field_by_name(type, tc_buf_slice(&in->text));
    const char *at = raw.data - 1;
    if (!f && in->options->allow_unknown)
        return tc_json_reader_skip(&in->r);
    if (!f)
        return tc_json_reader_fail_at(&in->r, at, TORC_EPARSE, "%s has no field " TC_SHOWN, type->full_name,
                                      TC_SHOW(tc_buf_cstr(&in->text)));
    struct tc_json_step step = {.up = in->r.step, .field = f->extension ? f->json_name : f->name};
    in->r.step = &step;
    if (!field_in(in, type, f, seen, at, depth))
        return false;
    in->r.step = step.up;
    return true;
}

/* Reads a message without a JSON form of its own; within an Any the member "@type" is skipped. */
static bool fields_in(struct tc_json_in *in, const torc_schema_message *type, bool within_any, unsigned depth)
{
    struct seen seen = {0};
    struct tc_slice raw;
    bool first = true, good = true, typed = false, valued = false;
    int more = 0;
    if (tc_json_reader_peek(&in->r) != '{')
        return want(in, "an object");
    const char *at = in->r.at++;
    while (good && (more = tc_json_reader_member(&in->r, &first, &in->text, &raw)) > 0) {
        struct tc_slice name = tc_buf_slice(&in->text);
        bool *given = !within_any                      ? NULL
                      : tc_slice_eq_str(name, "@type") ? &typed
                      : tc_slice_eq_str(name, "value") && strcmp(type->full_name, "google.protobuf.Empty") == 0
                          ? &valued /* some writers give an Empty within an Any as "value": {} */
                          : NULL;
        if (!given)
            good = member_in(in, type, raw, &seen, depth);
        else if (*given)
            good =
                tc_json_reader_fail_at(&in->r, raw.data - 1, TORC_EPARSE, "%s is given twice", tc_buf_cstr(&in->text));
        else
            good = *given = given == &typed ? tc_json_reader_skip(&in->r) : fields_in(in, type, false, depth);
    }
    good = good && more == 0 && fields_are_there(in, type, &seen, at);
    seen_fini(&seen);
    return good;
}

bool tc_json_read(const torc_schema *schema, const torc_schema_message *type, struct tc_slice text,
                  const struct torc_json_options *options, struct tc_buf *out, torc_error **error)
{
    struct tc_json_in in = {.r = {.begin = text.data, .at = text.data, .end = text.data + text.len, .error = error},
                            .schema = schema,
                            .options = options,
                            .out = *out};
    bool good = tc_json_in_message(&in, type, 1);
    if (good && (tc_json_reader_peek(&in.r) || in.r.at < in.r.end))
        good = tc_json_reader_fail_at(&in.r, in.r.at, TORC_EPARSE, "text behind the message");
    *out = in.out;
    tc_buf_fini(&in.text);
    return good;
}
