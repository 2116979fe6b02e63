/* Well-known types: wire format into JSON of their own.
 *
 * The fields of each type are known here by their numbers, which json/known has checked; form_out chooses by type.
 * Values without a JSON form are errors, as the ProtoJSON page demands: times out of range, paths of a FieldMask that
 * would not survive the way to JSON and back, NaN and infinities in a Value.
 *
 * tc_json_out_known gathers the fields and frees them afterwards; all other functions borrow the fields. */
#include <math.h>

#include "base/mem.h"
#include "base/parse.h"
#include "proto/time_text.h"
#include "json/names.h"
#include "json/out_internal.h"

enum { MOST_FIELDS = 7 }; /* a Value has the fields 1 to 6 */

/* Stores the last item of each field at the index of the field's number; the item of an absent field is all zero.
 * Leaves out repeated fields and messages. */
static void take(const struct tc_gathered *g, struct tc_item items[MOST_FIELDS])
{
    memset(items, 0, MOST_FIELDS * sizeof(items[0]));
    for (size_t i = 0; i < g->entries.len; i++) {
        const struct tc_entry *e = &g->entries.data[i];
        if (!e->field->repeated && !tc_schema_is_message(e->field))
            items[e->field->number] = tc_entry_item(e);
    }
}

static bool time_out(struct tc_json_out *o, const struct tc_item *items, bool duration)
{
    char text[TC_TIME_TEXT_BYTES];
    int64_t seconds = (int64_t)items[1].value;
    int32_t nanos = (int32_t)(uint32_t)items[2].value;
    if (!(duration ? tc_time_duration_text(seconds, nanos, text) : tc_time_timestamp_text(seconds, nanos, text)))
        return tc_json_out_fail(o, TORC_EPARSE, duration ? "a Duration out of range" : "a Timestamp out of range");
    tc_json_writer_string(&o->w, tc_slice_str(text));
    return true;
}

/* Appends a path to `text` in lowerCamelCase. A path is an error if it is empty, has a comma, is not UTF-8, or is not
 * the same after the way back. */
static bool path_out(struct tc_json_out *o, struct tc_slice path, struct tc_buf *text)
{
    struct tc_buf camel = {0}, back = {0};
    tc_name_append_camel(&camel, path);
    bool good = path.len && !memchr(path.data, ',', path.len) && tc_utf8_valid(path) &&
                tc_name_append_snake(&back, tc_buf_slice(&camel)) && tc_slice_eq(tc_buf_slice(&back), path);
    tc_buf_append_slice(text, tc_buf_slice(&camel));
    tc_buf_fini(&camel);
    tc_buf_fini(&back);
    return good || tc_json_out_fail(o, TORC_EPARSE, "a path that is empty, has a comma, or has no lowerCamelCase");
}

static bool mask_out(struct tc_json_out *o, const struct tc_gathered *g)
{
    struct tc_buf text = {0};
    struct tc_item item;
    bool good = true, first = true;
    for (size_t i = 0; i < g->entries.len; i++) {
        struct tc_slice rest = tc_slice_of(g->entries.data[i].data, g->entries.data[i].len);
        for (; good && tc_item_next(&rest, &item) > 0; first = false) {
            tc_buf_append_str(&text, first ? "" : ",");
            good = path_out(o, item.bytes, &text);
        }
    }
    if (good)
        tc_json_writer_string(&o->w, tc_buf_slice(&text));
    tc_buf_fini(&text);
    return good;
}

/* --- Any --- */

/* Writes the member "@value" of an Any of unknown type if the option unknown_any is set, else fails. */
static bool unknown_any_out(struct tc_json_out *o, struct tc_slice url, struct tc_slice value)
{
    bool first = false;
    if (!o->options->unknown_any) {
        char *name = tc_strndup(url.len ? url.data : "", url.len);
        tc_json_out_fail(o, TORC_ENOTFOUND, "the type " TC_SHOWN " of a google.protobuf.Any is not known",
                         TC_SHOW(name));
        tc_free(name);
        return false;
    }
    tc_json_writer_member(&o->w, &first, tc_slice_str("@value"));
    tc_buf_append_char(o->w.out, '"');
    tc_base64_encode(o->w.out, value.data, value.len, true);
    tc_buf_append_char(o->w.out, '"');
    return true;
}

static bool any_out(struct tc_json_out *o, const struct tc_item *items, unsigned depth)
{
    struct tc_slice url = items[1].bytes, value = items[2].bytes;
    const struct tc_content content = {.bytes = value};
    bool first = true, good = true;
    tc_json_writer_open(&o->w, '{');
    if (url.len || value.len) {
        if (!tc_utf8_valid(url))
            return tc_json_out_fail(o, TORC_EPARSE, "a type URL that is not UTF-8");
        const torc_schema_message *type = tc_schema_message_of_url(o->schema, url);
        tc_json_writer_member(&o->w, &first, tc_slice_str("@type"));
        tc_json_writer_string(&o->w, url);
        if (!type) {
            good = unknown_any_out(o, url, value);
        } else if (type->known) {
            tc_json_writer_member(&o->w, &first, tc_slice_str("value"));
            good = tc_json_out_message(o, type, &content, depth + 1);
        } else {
            good = tc_json_out_begin(o, type, depth + 1) && tc_json_out_fields(o, type, &content, &first, depth + 1);
        }
    }
    tc_json_writer_close(&o->w, '}', first);
    return good;
}

/* --- Value --- */

static bool value_out(struct tc_json_out *o, const struct tc_gathered *g, unsigned depth)
{
    const struct tc_entry *kind = g->entries.len ? &g->entries.data[g->entries.len - 1] : NULL;
    const struct tc_schema_field *f = kind ? kind->field : NULL;
    size_t n = 1;
    double number;
    if (!f || f->number == 1) {
        tc_json_writer_text(&o->w, "null");
        return true;
    }
    while (n < g->entries.len && g->entries.data[g->entries.len - n - 1].field == f)
        n++;
    const struct tc_item item = tc_entry_item(kind);
    memcpy(&number, &item.value, sizeof(number));
    return f->number != 2 || isfinite(number)
               ? tc_json_out_single(o, kind - (n - 1), n, depth)
               : tc_json_out_fail(o, TORC_EPARSE, "a number that google.protobuf.Value cannot have in JSON");
}

static bool form_out(struct tc_json_out *o, const torc_schema_message *type, const struct tc_gathered *g,
                     unsigned depth)
{
    struct tc_item items[MOST_FIELDS];
    take(g, items);
    switch (type->known) {
    case TC_KNOWN_ANY:
        return any_out(o, items, depth);
    case TC_KNOWN_DURATION:
    case TC_KNOWN_TIMESTAMP:
        return time_out(o, items, type->known == TC_KNOWN_DURATION);
    case TC_KNOWN_FIELD_MASK:
        return mask_out(o, g);
    case TC_KNOWN_STRUCT:
        return tc_json_out_map(o, g->entries.data, g->entries.len, depth);
    case TC_KNOWN_VALUE:
        return value_out(o, g, depth);
    case TC_KNOWN_LIST:
        return tc_json_out_list(o, g->entries.data, g->entries.len, depth);
    case TC_KNOWN_WRAPPER:
        if (!items[1].bytes.data)
            items[1].bytes = tc_slice_of("", 0);
        return tc_json_out_value(o, type->by_number[0], &items[1], depth);
    case TC_KNOWN_NONE:
        break;
    }
    return false;
}

bool tc_json_out_known(struct tc_json_out *o, const torc_schema_message *type, const struct tc_content *content,
                       unsigned depth)
{
    struct tc_gathered g = {0};
    bool good = tc_gather(type, content, &g) ? form_out(o, type, &g, depth)
                                             : tc_json_out_fail(o, TORC_EPARSE, "bytes that are not a message");
    tc_gathered_fini(&g);
    return good;
}
