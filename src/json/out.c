/* Wire format into JSON.
 *
 * Each message is gathered first (json/gather), so that each field comes once, in the order of field numbers. Then each
 * field is written as its type says. Map entries are sorted by key; of entries with the same key, the last counts.
 *
 * Gathered entries, map entries and keys that are text point into the bytes that the caller gave. The function that
 * gathers a message frees the entries when the message is written, also after an error. The text grows in the caller's
 * buffer. The size of the text is compared with max_bytes before each message and before the value of each field and
 * element; max_depth bounds the recursion.
 *
 * Start at tc_json_out_fields. Well-known types are in json/out_known. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/parse.h"
#include "json/number.h"
#include "json/out_internal.h"

bool tc_json_out_fail(struct tc_json_out *o, int code, const char *fmt, ...)
{
    struct tc_buf text = {0};
    va_list ap;
    if (o->step) {
        tc_buf_append_str(&text, "field ");
        tc_json_append_way(&text, o->step);
        tc_buf_append_str(&text, ": ");
    }
    va_start(ap, fmt);
    tc_buf_vprintf(&text, fmt, ap);
    va_end(ap);
    tc_json_fail_with(o->error, code, tc_buf_cstr(&text));
    tc_buf_fini(&text);
    return false;
}

/* --- scalars --- */

static bool string_out(struct tc_json_out *o, struct tc_slice text)
{
    if (!tc_utf8_valid(text))
        return tc_json_out_fail(o, TORC_EPARSE, "text that is not UTF-8");
    tc_json_writer_string(&o->w, text);
    return true;
}

static void float_out(struct tc_json_out *o, double v, bool is_float)
{
    if (isnan(v))
        tc_json_writer_text(&o->w, "\"NaN\"");
    else if (isinf(v))
        tc_json_writer_text(&o->w, v > 0 ? "\"Infinity\"" : "\"-Infinity\"");
    else if (is_float)
        tc_number_append_float(o->w.out, (float)v);
    else
        tc_number_append_double(o->w.out, v);
}

static void enum_out(struct tc_json_out *o, const torc_schema_enum *e, int32_t number)
{
    const struct tc_schema_value *v = o->options->enum_numbers ? NULL : tc_schema_value_by_number(e, number);
    if (e->null)
        tc_json_writer_text(&o->w, "null");
    else if (v)
        tc_json_writer_string(&o->w, tc_slice_str(v->name));
    else
        tc_buf_printf(o->w.out, "%" PRId32, number);
}

static void bytes_out(struct tc_json_out *o, struct tc_slice bytes)
{
    tc_buf_append_char(o->w.out, '"');
    tc_base64_encode(o->w.out, bytes.data, bytes.len, true);
    tc_buf_append_char(o->w.out, '"');
}

/* Returns the integer of a field. For a type of 32 bits the upper bits are cut: a sender may send more than 32. Of a
 * bool, a float or a double returns the bits as they are, and of text and messages 0. */
static int64_t integer_of(int type, uint64_t v)
{
    switch (type) {
    case TC_TYPE_SINT32:
        v &= UINT32_MAX;
        return (int32_t)(uint32_t)(v >> 1 ^ (0 - (v & 1)));
    case TC_TYPE_SINT64:
        return (int64_t)(v >> 1 ^ (0 - (v & 1)));
    case TC_TYPE_UINT32:
    case TC_TYPE_FIXED32:
        return (int64_t)(uint32_t)v;
    case TC_TYPE_INT32:
    case TC_TYPE_SFIXED32:
    case TC_TYPE_ENUM:
        return (int32_t)(uint32_t)v;
    default:
        return (int64_t)v;
    }
}

static void integer_out(struct tc_json_out *o, int type, uint64_t v, bool quoted)
{
    if (type == TC_TYPE_UINT64 || type == TC_TYPE_FIXED64)
        tc_buf_printf(o->w.out, "\"%" PRIu64 "\"", v);
    else if (quoted || type == TC_TYPE_INT64 || type == TC_TYPE_SINT64 || type == TC_TYPE_SFIXED64)
        tc_buf_printf(o->w.out, "\"%" PRId64 "\"", integer_of(type, v));
    else
        tc_buf_printf(o->w.out, "%" PRId64, integer_of(type, v));
}

static double double_of(int type, uint64_t v)
{
    float f;
    double d;
    uint32_t bits = (uint32_t)v;
    memcpy(&f, &bits, sizeof(f));
    memcpy(&d, &v, sizeof(d));
    return type == TC_TYPE_FLOAT ? (double)f : d;
}

bool tc_json_out_value(struct tc_json_out *o, const struct tc_schema_field *f, const struct tc_item *item,
                       unsigned depth)
{
    switch (f->type) {
    case TC_TYPE_MESSAGE:
    case TC_TYPE_GROUP:
        return tc_json_out_message(o, f->message, &(struct tc_content){.bytes = item->bytes}, depth + 1);
    case TC_TYPE_STRING:
        return string_out(o, item->bytes);
    case TC_TYPE_BYTES:
        bytes_out(o, item->bytes);
        return true;
    case TC_TYPE_BOOL:
        tc_json_writer_text(&o->w, item->value ? "true" : "false");
        return true;
    case TC_TYPE_ENUM:
        enum_out(o, f->enumeration, (int32_t)(uint32_t)item->value);
        return true;
    case TC_TYPE_FLOAT:
    case TC_TYPE_DOUBLE:
        float_out(o, double_of(f->type, item->value), f->type == TC_TYPE_FLOAT);
        return true;
    default:
        integer_out(o, f->type, item->value, false);
        return true;
    }
}

/* --- lists --- */

/* Writes an element of a list and counts it in step->index. Leaves out a value that its closed enum does not have. */
static bool element_out(struct tc_json_out *o, const struct tc_schema_field *f, const struct tc_item *item, bool *first,
                        struct tc_json_step *step, unsigned depth)
{
    if (f->type == TC_TYPE_ENUM && f->enumeration->closed &&
        !tc_schema_value_by_number(f->enumeration, (int32_t)(uint32_t)item->value))
        return true;
    tc_json_writer_next(&o->w, first);
    if (!tc_json_out_fits(o))
        return false;
    o->step = step;
    if (!tc_json_out_value(o, f, item, depth))
        return false;
    o->step = step->up;
    step->index++;
    return true;
}

/* Writes the values of a packed list, which have no tags. */
static bool packed_out(struct tc_json_out *o, const struct tc_schema_field *f, struct tc_slice rest, bool *first,
                       struct tc_json_step *step, unsigned depth)
{
    unsigned wire = tc_schema_wire(f->type);
    while (rest.len) {
        struct tc_item item = {.number = (uint32_t)f->number, .wire = (uint8_t)wire};
        if (!(wire == TC_WIRE_VARINT ? tc_item_take_varint(&rest, &item.value)
                                     : tc_item_take_fixed(&rest, wire == TC_WIRE_32BIT ? 4 : 8, &item.value)))
            return tc_json_out_fail(o, TORC_EPARSE, "a list of numbers that is cut short");
        if (!element_out(o, f, &item, first, step, depth))
            return false;
    }
    return true;
}

bool tc_json_out_list(struct tc_json_out *o, const struct tc_entry *entries, size_t n, unsigned depth)
{
    struct tc_json_step step = {.up = o->step};
    struct tc_item item;
    bool first = true, good = true;
    tc_json_writer_open(&o->w, '[');
    for (size_t i = 0; i < n; i++) {
        const struct tc_schema_field *f = entries[i].field;
        unsigned wire = tc_schema_wire(f->type);
        struct tc_slice rest = tc_slice_of(entries[i].data, entries[i].len);
        while (good && tc_item_next(&rest, &item) > 0)
            good = item.wire == wire ? element_out(o, f, &item, &first, &step, depth)
                                     : packed_out(o, f, item.bytes, &first, &step, depth);
    }
    tc_json_writer_close(&o->w, ']', first);
    return good;
}

/* --- maps --- */

/* A map entry: its bytes, borrowed, and its key, which is a part of the bytes or a number. */
struct pair {
    struct tc_slice bytes;
    union {
        struct tc_slice text;
        uint64_t number;
    } key;
};

/* Compares keys; `key` is their type. */
static int pair_compare(const struct pair *x, const struct pair *y, int key)
{
    if (key == TC_TYPE_STRING)
        return tc_slice_cmp(x->key.text, y->key.text);
    if (key == TC_TYPE_UINT64 || key == TC_TYPE_FIXED64)
        return (x->key.number > y->key.number) - (x->key.number < y->key.number);
    return ((int64_t)x->key.number > (int64_t)y->key.number) - ((int64_t)x->key.number < (int64_t)y->key.number);
}

/* For qsort_r: by key; entries with the same key in the order of the message. `key` points to the type of the keys. */
static int pair_order(const void *a, const void *b, void *key)
{
    const struct pair *x = a, *y = b;
    int c = pair_compare(x, y, *(const int *)key);
    return c ? c : (x->bytes.data > y->bytes.data) - (x->bytes.data < y->bytes.data);
}

static uint64_t key_of(int type, uint64_t v)
{
    return type == TC_TYPE_BOOL ? v != 0 : (uint64_t)integer_of(type, v);
}

/* Finds the key of an entry: 0 or "" if it has none. Returns false for an entry that cannot be read. */
static bool pair_read(int key, struct tc_slice bytes, struct pair *out)
{
    struct tc_slice rest = bytes;
    struct tc_item item, found = {.bytes = tc_slice_of("", 0)};
    int more;
    while ((more = tc_item_next(&rest, &item)) > 0)
        if (item.number == 1 && item.wire == tc_schema_wire(key))
            found = item;
    *out = (struct pair){.bytes = bytes};
    if (key == TC_TYPE_STRING)
        out->key.text = found.bytes;
    else
        out->key.number = key_of(key, found.value);
    return more == 0;
}

/* Returns the key as text, without quotes or escapes: borrowed from the entry, or written into `number`. */
static struct tc_slice key_text(int key, const struct pair *p, char number[24])
{
    if (key == TC_TYPE_STRING)
        return p->key.text;
    if (key == TC_TYPE_BOOL)
        return tc_slice_str(p->key.number ? "true" : "false");
    if (key == TC_TYPE_UINT64 || key == TC_TYPE_FIXED64)
        snprintf(number, 24, "%" PRIu64, p->key.number);
    else
        snprintf(number, 24, "%" PRId64, (int64_t)p->key.number);
    return tc_slice_str(number);
}

/* Writes a map entry. An entry without a value has the default value. */
static bool pair_out(struct tc_json_out *o, const struct tc_schema_field *f, const struct pair *p, bool *first,
                     unsigned depth)
{
    const struct tc_schema_field *value = f->message->by_number[1];
    const struct tc_content content = {.bytes = p->bytes};
    char number[24];
    struct tc_gathered g = {0};
    struct tc_json_step step = {.up = o->step, .key = key_text(f->message->by_number[0]->type, p, number)};
    struct tc_item item = {.bytes = tc_slice_of("", 0)};
    bool good = tc_json_out_begin(o, f->message, depth) && tc_gather(f->message, &content, &g);
    size_t at = 0;
    while (at < g.entries.len && g.entries.data[at].field != value)
        at++;
    if (value->type == TC_TYPE_ENUM)
        item.value = (uint64_t)value->enumeration->values.data[0].number;
    tc_json_writer_next(&o->w, first);
    good = good && string_out(o, step.key);
    tc_json_writer_text(&o->w, o->w.indent ? ": " : ":");
    o->step = &step;
    if (good)
        good = at < g.entries.len ? tc_json_out_single(o, &g.entries.data[at], g.entries.len - at, depth)
                                  : tc_json_out_value(o, value, &item, depth);
    o->step = step.up;
    tc_gathered_fini(&g);
    return good;
}

/* Returns whether the value of an entry is not in its closed enum: the whole entry then counts as an unknown field. */
static bool pair_is_unknown(const struct tc_schema_field *f, const struct pair *p)
{
    const struct tc_schema_field *value = f->message->by_number[1];
    struct tc_slice rest = p->bytes;
    struct tc_item item;
    bool unknown = false;
    if (value->type != TC_TYPE_ENUM || !value->enumeration->closed)
        return false;
    while (tc_item_next(&rest, &item) > 0)
        if (item.number == 2 && item.wire == TC_WIRE_VARINT)
            unknown = !tc_schema_value_by_number(value->enumeration, (int32_t)(uint32_t)item.value);
    return unknown;
}

/* Returns how many map entries the n runs have together. */
static size_t items_of(const struct tc_entry *entries, size_t n)
{
    size_t items = 0;
    for (size_t i = 0; i < n; i++) {
        struct tc_slice rest = tc_slice_of(entries[i].data, entries[i].len);
        for (struct tc_item item; tc_item_next(&rest, &item) > 0;)
            items++;
    }
    return items;
}

bool tc_json_out_map(struct tc_json_out *o, const struct tc_entry *entries, size_t n, unsigned depth)
{
    struct pair *pairs = tc_reallocarray(NULL, items_of(entries, n) + 1, sizeof(*pairs));
    struct tc_item item;
    size_t len = 0;
    bool first = true, good = true;
    const struct tc_schema_field *f = n ? entries->field : NULL;
    int key = f ? f->message->by_number[0]->type : 0;
    for (size_t i = 0; i < n && good; i++) {
        struct tc_slice rest = tc_slice_of(entries[i].data, entries[i].len);
        while (good && tc_item_next(&rest, &item) > 0) {
            good = pair_read(key, item.bytes, &pairs[len]) ||
                   tc_json_out_fail(o, TORC_EPARSE, "an entry that cannot be read");
            len += !pair_is_unknown(f, &pairs[len]);
        }
    }
    qsort_r(pairs, len, sizeof(*pairs), pair_order, &key);
    tc_json_writer_open(&o->w, '{');
    for (size_t i = 0; i < len && good; i++)
        if (i + 1 == len || pair_compare(&pairs[i], &pairs[i + 1], key) != 0)
            good = pair_out(o, f, &pairs[i], &first, depth + 1);
    tc_json_writer_close(&o->w, '}', first);
    tc_free(pairs);
    return good;
}

/* --- messages --- */

bool tc_json_out_begin(struct tc_json_out *o, const torc_schema_message *type, unsigned depth)
{
    if (type->message_set)
        return tc_json_out_fail(o, TORC_EUNSUPPORTED, "a message set, which has no JSON form");
    if ((int64_t)depth > o->options->max_depth)
        return tc_json_out_fail(o, TORC_ELIMIT, "messages within each other are more than max_depth");
    return tc_json_out_fits(o);
}

bool tc_json_out_fits(struct tc_json_out *o)
{
    return (int64_t)o->w.out->len <= o->options->max_bytes ||
           tc_json_out_fail(o, TORC_ELIMIT, "the text is larger than max_bytes");
}

bool tc_json_out_single(struct tc_json_out *o, const struct tc_entry *entries, size_t n, unsigned depth)
{
    const struct tc_schema_field *f = entries->field;
    if (tc_schema_is_message(f))
        return tc_json_out_message(o, f->message, &(struct tc_content){.pieces = entries, .n = n}, depth + 1);
    const struct tc_item item = tc_entry_item(&entries[n - 1]);
    return tc_json_out_value(o, f, &item, depth);
}

static struct tc_slice name_of(const struct tc_json_out *o, const struct tc_schema_field *f)
{
    return tc_slice_str((o->options->proto_names && !f->extension) || f->shadowed ? f->name : f->json_name);
}

static bool member_out(struct tc_json_out *o, const struct tc_schema_field *f, bool *first)
{
    tc_json_writer_member(&o->w, first, name_of(o, f));
    return tc_json_out_fits(o);
}

/* Writes a field that was sent. Without the option emit_defaults a field without presence is left out if its value is
 * the default, or if nothing of its list or map is written. */
static bool field_out(struct tc_json_out *o, const struct tc_entry *entries, size_t n, bool *first, unsigned depth)
{
    const struct tc_schema_field *f = entries->field;
    bool was_first = *first, emits_all = f->has_presence || o->options->emit_defaults;
    size_t before = o->w.out->len;
    if (!f->repeated && !emits_all) {
        struct tc_item item = tc_entry_item(&entries[n - 1]);
        if (!integer_of(f->type, item.value) && !item.bytes.len)
            return true;
    }
    if (!member_out(o, f, first))
        return false;
    size_t value = o->w.out->len;
    bool good = f->map        ? tc_json_out_map(o, entries, n, depth)
                : f->repeated ? tc_json_out_list(o, entries, n, depth)
                              : tc_json_out_single(o, entries, n, depth);
    if (good && f->repeated && !emits_all && o->w.out->len == value + 2) { /* empty */
        o->w.out->len = before;
        *first = was_first;
    }
    return good;
}

/* Writes the default value of a field that was not sent, for emit_defaults. */
static bool absent_out(struct tc_json_out *o, const struct tc_schema_field *f, bool *first)
{
    const struct tc_item item = {.bytes = tc_slice_of("", 0)};
    if (!member_out(o, f, first))
        return false;
    if (!f->repeated)
        return tc_json_out_value(o, f, &item, 0);
    tc_json_writer_text(&o->w, f->map ? "{}" : "[]");
    return true;
}

bool tc_json_out_fields(struct tc_json_out *o, const torc_schema_message *type, const struct tc_content *content,
                        bool *first, unsigned depth)
{
    struct tc_gathered g = {0};
    struct tc_json_step step = {.up = o->step};
    /* Indices in type->implicit: the next field that may have to be written for emit_defaults, and the end. */
    size_t next = 0, end = o->options->emit_defaults ? type->n_implicit : 0;
    bool good = tc_gather(type, content, &g) || tc_json_out_fail(o, TORC_EPARSE, "bytes that are not a message");
    for (size_t i = 0, n; i < g.entries.len && good; i += n) {
        const struct tc_schema_field *f = g.entries.data[i].field;
        for (n = 1; i + n < g.entries.len && g.entries.data[i + n].field == f;)
            n++;
        for (; good && next < end && type->implicit[next]->index < f->index; next++)
            good = absent_out(o, type->implicit[next], first);
        next += next < end && type->implicit[next] == f;
        step.field = f->extension ? f->json_name : f->name;
        o->step = &step;
        good = good && field_out(o, &g.entries.data[i], n, first, depth);
        o->step = step.up;
    }
    for (; good && next < end; next++)
        good = absent_out(o, type->implicit[next], first);
    tc_gathered_fini(&g);
    return good;
}

bool tc_json_out_message(struct tc_json_out *o, const torc_schema_message *type, const struct tc_content *content,
                         unsigned depth)
{
    bool first = true;
    if (!tc_json_out_begin(o, type, depth))
        return false;
    if (type->known)
        return tc_json_out_known(o, type, content, depth);
    tc_json_writer_open(&o->w, '{');
    bool good = tc_json_out_fields(o, type, content, &first, depth);
    tc_json_writer_close(&o->w, '}', first);
    return good;
}

bool tc_json_write(const torc_schema *schema, const torc_schema_message *type, struct tc_slice bytes,
                   const struct torc_json_options *options, struct tc_buf *out, torc_error **error)
{
    struct tc_json_out o = {
        .w = {.out = out, .indent = (unsigned)options->indent}, .schema = schema, .options = options, .error = error};
    return tc_json_out_message(&o, type, &(struct tc_content){.bytes = bytes}, 1) && tc_json_out_fits(&o);
}
