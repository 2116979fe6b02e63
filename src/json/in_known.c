/* Well-known types: their JSON forms into wire format.
 *
 * The functions know the fields of each type by number, which json/known has checked; tc_json_in_known chooses by type.
 * An Any needs its type before its content, and @type may be its last member: so the reader looks ahead for it, then
 * reads the object from its beginning. Looking ahead skips values without looking at their types. So n Anys within one
 * another cost up to n times the text. */
#include "proto/time_text.h"
#include "json/in_internal.h"
#include "json/item.h"
#include "json/names.h"

static bool time_in(struct tc_json_in *in, bool duration)
{
    int64_t seconds;
    int32_t nanos;
    tc_json_reader_peek(&in->r);
    const char *at = in->r.at;
    if (!tc_json_in_string(in))
        return false;
    struct tc_slice text = tc_buf_slice(&in->text);
    if (!(duration ? tc_time_duration_parse(text, &seconds, &nanos) : tc_time_timestamp_parse(text, &seconds, &nanos)))
        return tc_json_reader_fail_at(&in->r, at, TORC_EPARSE, "must be %s",
                                      duration ? "a duration such as \"1.5s\""
                                               : "a time such as \"2026-01-02T03:04:05.006Z\"");
    if (seconds) {
        tc_json_in_tag(in, 1, TC_WIRE_VARINT);
        tc_wire_append_varint(&in->out, (uint64_t)seconds);
    }
    if (nanos) {
        tc_json_in_tag(in, 2, TC_WIRE_VARINT);
        tc_wire_append_varint(&in->out, (uint64_t)(int64_t)nanos);
    }
    return true;
}

static bool mask_in(struct tc_json_in *in)
{
    tc_json_reader_peek(&in->r);
    const char *at = in->r.at;
    if (!tc_json_in_string(in))
        return false;
    struct tc_slice rest = tc_buf_slice(&in->text), part;
    for (bool more = rest.len > 0; more && tc_slice_split(&rest, &more, ',', &part);) {
        tc_json_in_tag(in, 1, TC_WIRE_LENGTH);
        size_t begin = tc_json_in_begin(in);
        if (!part.len || !tc_name_append_snake(&in->out, part))
            return tc_json_reader_fail_at(&in->r, at, TORC_EPARSE, "must be paths in lowerCamelCase");
        tc_json_in_end(in, begin);
    }
    return true;
}

static bool list_in(struct tc_json_in *in, const torc_schema_message *type, unsigned depth)
{
    const struct tc_schema_field *values = type->by_number[0];
    struct tc_json_step step = {.up = in->r.step};
    bool first = true;
    int more;
    if (tc_json_reader_peek(&in->r) != '[')
        return tc_json_reader_want(&in->r, "a list");
    in->r.at++;
    in->r.step = &step;
    for (; (more = tc_json_reader_element(&in->r, &first)) > 0; step.index++)
        if (tc_json_in_value(in, values, true, depth) == TC_READ_FAILED)
            return false;
    in->r.step = step.up;
    return more == 0;
}

/* google.protobuf.Value: the kind of the JSON value decides which field of the oneof is set. */
static bool value_in(struct tc_json_in *in, const torc_schema_message *type, unsigned depth)
{
    double number;
    uint64_t bits;
    switch (tc_json_reader_peek(&in->r)) {
    case 'n':
        if (!tc_json_reader_word(&in->r, "null"))
            return tc_json_reader_want(&in->r, "a value");
        tc_json_in_tag(in, 1, TC_WIRE_VARINT);
        tc_buf_append_char(&in->out, 0);
        return true;
    case '"':
        return tc_json_in_value(in, type->by_number[2], true, depth) == TC_READ_DONE;
    case 't':
    case 'f':
        return tc_json_in_value(in, type->by_number[3], true, depth) == TC_READ_DONE;
    case '{':
        return tc_json_in_value(in, type->by_number[4], true, depth) == TC_READ_DONE;
    case '[':
        return tc_json_in_value(in, type->by_number[5], true, depth) == TC_READ_DONE;
    default:
        if (!tc_json_in_double(in, false, &number))
            return false;
        memcpy(&bits, &number, sizeof(bits));
        tc_json_in_tag(in, 2, TC_WIRE_64BIT);
        tc_json_in_fixed(in, bits, 8);
        return true;
    }
}

/* --- Any --- */

/* Looks ahead for the member `name` of the object at which the reader stands; the reader does not move. Returns 1, with
 * the string of its value in `text`; 0: there is no such member; -1 with an error: its value is not a string, or the
 * object before it cannot be read. Stores in *empty whether the object has no members. */
static int look_ahead(struct tc_json_in *in, const char *name, bool *empty)
{
    const char *begin = in->r.at;
    struct tc_buf key = {0};
    bool first = true;
    int more, found = 0;
    in->r.at++;
    while (!found && (more = tc_json_reader_member(&in->r, &first, &key, NULL)) > 0) {
        if (tc_slice_eq_str(tc_buf_slice(&key), name))
            found = tc_json_in_string(in) ? 1 : -1;
        else if (!tc_json_reader_skip(&in->r))
            found = -1;
    }
    *empty = first;
    tc_buf_fini(&key);
    in->r.at = begin;
    return found ? found : more;
}

/* Marks a member as seen. Returns true, with an error, if it was seen before. */
static bool named_twice(struct tc_json_in *in, const char *name, bool *seen, const char *at)
{
    if (*seen)
        tc_json_reader_fail_at(&in->r, at, TORC_EPARSE, "%s is given twice", name);
    bool was = *seen;
    *seen = true;
    return was;
}

/* Reads an Any whose content is in the member `name`. With a `type`, which has a JSON form of its own, the content is
 * read at `depth` and appended without a tag. With `type` NULL, an unknown type, the content is base64 and is appended
 * as the Any's field 2. */
static bool content_in(struct tc_json_in *in, const torc_schema_message *type, const char *name, unsigned depth)
{
    struct tc_schema_field bytes = {.name = name, .type = TC_TYPE_BYTES, .number = 2};
    struct tc_slice raw;
    bool first = true, typed = false, valued = false;
    int more;
    const char *begin = in->r.at++;
    while ((more = tc_json_reader_member(&in->r, &first, &in->text, &raw)) > 0) {
        const char *at = raw.data - 1;
        if (tc_slice_eq_str(tc_buf_slice(&in->text), "@type")) {
            if (named_twice(in, "@type", &typed, at) || !tc_json_reader_skip(&in->r))
                return false;
        } else if (tc_slice_eq_str(tc_buf_slice(&in->text), name)) {
            if (named_twice(in, name, &valued, at) ||
                !(type ? tc_json_in_message(in, type, depth)
                       : tc_json_in_value(in, &bytes, true, depth) == TC_READ_DONE))
                return false;
        } else if (!in->options->allow_unknown) {
            return tc_json_reader_fail_at(&in->r, at, TORC_EPARSE, "only @type and %s may be here", name);
        } else if (!tc_json_reader_skip(&in->r)) {
            return false;
        }
    }
    return more == 0 && (valued || tc_json_reader_fail_at(&in->r, begin, TORC_EPARSE, "%s is missing", name));
}

static bool any_in(struct tc_json_in *in, unsigned depth)
{
    bool empty;
    if (tc_json_reader_peek(&in->r) != '{')
        return tc_json_reader_want(&in->r, "an object");
    int found = look_ahead(in, "@type", &empty);
    if (found < 0)
        return false;
    if (!found && empty) { /* an Any without type and value */
        in->r.at++;
        return tc_json_reader_take(&in->r, '}');
    }
    if (!found)
        return tc_json_reader_fail_at(&in->r, in->r.at, TORC_EPARSE, "@type is missing");
    const torc_schema_message *type = tc_schema_message_of_url(in->schema, tc_buf_slice(&in->text));
    if (!type && !in->options->unknown_any)
        return tc_json_reader_fail_at(&in->r, in->r.at, TORC_ENOTFOUND, "the type " TC_SHOWN " is not known",
                                      TC_SHOW(tc_buf_cstr(&in->text)));
    tc_wire_append(&in->out, 1, tc_buf_slice(&in->text));
    if (!type)
        return content_in(in, NULL, "@value", depth);
    tc_json_in_tag(in, 2, TC_WIRE_LENGTH);
    size_t begin = tc_json_in_begin(in);
    if (type->known ? !content_in(in, type, "value", depth + 1) : !tc_json_in_content(in, type, depth + 1))
        return false;
    tc_json_in_end(in, begin);
    return true;
}

bool tc_json_in_known(struct tc_json_in *in, const torc_schema_message *type, unsigned depth)
{
    switch (type->known) {
    case TC_KNOWN_ANY:
        return any_in(in, depth);
    case TC_KNOWN_DURATION:
    case TC_KNOWN_TIMESTAMP:
        return time_in(in, type->known == TC_KNOWN_DURATION);
    case TC_KNOWN_FIELD_MASK:
        return mask_in(in);
    case TC_KNOWN_STRUCT:
        return tc_json_in_map(in, type->by_number[0], depth);
    case TC_KNOWN_VALUE:
        return value_in(in, type, depth);
    case TC_KNOWN_LIST:
        return list_in(in, type, depth);
    case TC_KNOWN_WRAPPER:
        return tc_json_in_value(in, type->by_number[0], true, depth) != TC_READ_FAILED;
    case TC_KNOWN_NONE:
        break;
    }
    return false;
}
