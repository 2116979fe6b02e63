/* Messages as proto3 JSON.
 *
 * The functions NAME_json write one kind of value each, driven by the descriptor. All but fields_json return a new
 * reference, or NULL when the value is nested too deep or has a string that is not UTF-8; any_content_json has other
 * reasons, too. NULL passes up to the nearest Any around the value, which is then written as base64. Without such an
 * Any, tc_proto_to_json returns NULL. `depth` counts the messages around a value, by the rules of
 * TC_PROTO_JSON_MAX_DEPTH. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/parse.h"
#include "pb/google/protobuf/any.pb-c.h"
#include "pb/google/protobuf/duration.pb-c.h"
#include "pb/google/protobuf/struct.pb-c.h"
#include "pb/google/protobuf/timestamp.pb-c.h"
#include "proto/json.h"
#include "proto/time_text.h"
#include "proto/unpack.h"
#include "proto/wire.h"
#include "proto/wkt.h"

struct output {
    struct tc_proto_json_options options;
};

static json_t *message_json(const struct output *o, const ProtobufCMessage *m, int depth);

static json_t *double_json(double v)
{
    if (isnan(v))
        return json_string("NaN");
    if (isinf(v))
        return json_string(v > 0 ? "Infinity" : "-Infinity");
    return json_real(v);
}

/* Chooses the double with the fewest digits that reads back as the same float; nine are enough for any. */
static json_t *float_json(float v)
{
    char text[32];
    for (int digits = 1; isfinite(v) && digits <= 9; digits++) {
        snprintf(text, sizeof(text), "%.*g", digits, (double)v);
        double shorter = strtod(text, NULL);
        if ((float)shorter == v)
            return json_real(shorter);
    }
    return double_json((double)v);
}

static json_t *bytes_json(ProtobufCBinaryData b)
{
    struct tc_buf text = {0};
    tc_base64_encode(&text, b.data, b.len, true);
    json_t *v = json_string(tc_buf_cstr(&text));
    tc_buf_fini(&text);
    return v;
}

/* A number without a name stays a number, so that a newer peer's value is not lost. */
static json_t *enum_json(const ProtobufCEnumDescriptor *type, int number)
{
    const ProtobufCEnumValue *v = protobuf_c_enum_descriptor_get_value(type, number);
    if (strcmp(type->name, "google.protobuf.NullValue") == 0)
        return json_null();
    return v ? json_string(v->name) : json_integer(number);
}

/* ProtoJSON writes integers of 64 bits as strings: many readers keep numbers as doubles, which are exact to 2^53. */
static json_t *i64_json(int64_t v)
{
    char text[24];
    snprintf(text, sizeof(text), "%" PRId64, v);
    return json_string(text);
}

static json_t *u64_json(uint64_t v)
{
    char text[24];
    snprintf(text, sizeof(text), "%" PRIu64, v);
    return json_string(text);
}

/* Writes one value of a field. `p` points to it, in the message or in the array of a repeated field. */
static json_t *value_json(const struct output *o, const ProtobufCFieldDescriptor *field, const void *p, int depth)
{
    switch (tc_field_types[field->type].kind) {
    case TC_FIELD_I32:
        return json_integer(*(const int32_t *)p);
    case TC_FIELD_U32:
        return json_integer(*(const uint32_t *)p);
    case TC_FIELD_I64:
        return i64_json(*(const int64_t *)p);
    case TC_FIELD_U64:
        return u64_json(*(const uint64_t *)p);
    case TC_FIELD_FLOAT:
        return float_json(*(const float *)p);
    case TC_FIELD_DOUBLE:
        return double_json(*(const double *)p);
    case TC_FIELD_BOOL:
        return json_boolean(*(const protobuf_c_boolean *)p);
    case TC_FIELD_ENUM:
        return enum_json(field->descriptor, *(const int *)p);
    case TC_FIELD_STRING:
        return json_string(*(char *const *)p ? *(char *const *)p : "");
    case TC_FIELD_BYTES:
        return bytes_json(*(const ProtobufCBinaryData *)p);
    case TC_FIELD_MESSAGE:
        return message_json(o, *(ProtobufCMessage *const *)p, depth);
    }
    return NULL;
}

/* Returns true when a field that is not repeated is written. A oneof says which member is set, so that its default
 * value is written too. A message is written if it is there. Other fields are left out if they have their default
 * value. */
static bool field_is_present(const ProtobufCMessage *m, const ProtobufCFieldDescriptor *field)
{
    const char *p = (const char *)m + field->offset;
    if (field->flags & PROTOBUF_C_FIELD_FLAG_ONEOF)
        return *(const uint32_t *)(const void *)((const char *)m + field->quantifier_offset) == field->id;
    switch (field->type) {
    case PROTOBUF_C_TYPE_MESSAGE:
        return *(void *const *)(const void *)p != NULL;
    case PROTOBUF_C_TYPE_STRING: {
        const char *text = *(char *const *)(const void *)p;
        return text && *text;
    }
    case PROTOBUF_C_TYPE_BYTES:
        return ((const ProtobufCBinaryData *)(const void *)p)->len != 0;
    default: {
        static const char zeros[8];
        return memcmp(p, zeros, tc_field_types[field->type].bytes) != 0;
    }
    }
}

/* Returns the name of a map entry, a string: keys of any type are strings in JSON. */
static json_t *entry_name(const struct output *o, const ProtobufCMessage *entry)
{
    const ProtobufCFieldDescriptor *key = &entry->descriptor->fields[0];
    json_t *v = value_json(o, key, (const char *)entry + key->offset, 0), *name = v;
    if (json_is_boolean(v))
        name = json_string(json_is_true(v) ? "true" : "false");
    else if (json_is_integer(v))
        name = i64_json(json_integer_value(v));
    if (name != v)
        json_decref(v);
    return name;
}

/* Writes a message without fields. */
static json_t *empty_json(const struct output *o, const ProtobufCMessageDescriptor *type, int depth)
{
    ProtobufCMessage *m = tc_calloc(1, type->sizeof_message);
    protobuf_c_message_init(type, m);
    json_t *out = message_json(o, m, depth);
    tc_free(m);
    return out;
}

/* Writes the value of a map entry. An entry that was sent without its message stands for an empty message. */
static json_t *entry_json(const struct output *o, const ProtobufCMessage *entry, int depth)
{
    const ProtobufCFieldDescriptor *value = &entry->descriptor->fields[1];
    const void *p = (const char *)entry + value->offset;
    if (value->type == PROTOBUF_C_TYPE_MESSAGE && !*(void *const *)p)
        return empty_json(o, value->descriptor, depth);
    return value_json(o, value, p, depth);
}

/* The last of several entries with one key counts, as protobuf demands: setting a key again replaces it. */
static json_t *map_json(const struct output *o, ProtobufCMessage *const *entries, size_t n, int depth)
{
    json_t *out = json_object();
    for (size_t i = 0; i < n; i++) {
        json_t *name = entry_name(o, entries[i]);
        int rc = json_object_set_new(out, json_string_value(name), entry_json(o, entries[i], depth));
        json_decref(name);
        if (rc != 0) {
            json_decref(out);
            return NULL;
        }
    }
    return out;
}

static json_t *repeated_json(const struct output *o, const ProtobufCMessage *m, const ProtobufCFieldDescriptor *field,
                             size_t n, int depth)
{
    const char *array = *(char *const *)(const void *)((const char *)m + field->offset);
    if (tc_proto_is_map(m->descriptor, field))
        return map_json(o, (ProtobufCMessage *const *)(const void *)array, n, depth);
    json_t *out = json_array();
    for (size_t i = 0; i < n; i++) {
        if (json_array_append_new(out, value_json(o, field, array + i * tc_field_types[field->type].bytes, depth)) !=
            0) {
            json_decref(out);
            return NULL;
        }
    }
    return out;
}

/* Adds the fields of an ordinary message to `out`. Returns false when a field has no JSON. */
static bool fields_json(const struct output *o, const ProtobufCMessage *m, json_t *out, int depth)
{
    for (unsigned i = 0; i < m->descriptor->n_fields; i++) {
        const ProtobufCFieldDescriptor *field = &m->descriptor->fields[i];
        json_t *v;
        if (field->label == PROTOBUF_C_LABEL_REPEATED) {
            size_t n = *(const size_t *)(const void *)((const char *)m + field->quantifier_offset);
            if (n == 0)
                continue;
            v = repeated_json(o, m, field, n, depth);
        } else {
            if (!field_is_present(m, field))
                continue;
            v = value_json(o, field, (const char *)m + field->offset, depth);
        }
        char camel[TC_WKT_NAME_BYTES];
        tc_wkt_camel(field->name, camel, sizeof(camel));
        if (json_object_set_new(out, o->options.lower_camel ? camel : field->name, v) != 0)
            return false;
    }
    return true;
}

/* Returns the JSON of an Any by its type, or NULL if the type is unknown, or if the bytes cannot be unpacked or are
 * nested too deep. */
static json_t *any_content_json(const struct output *o, const Google__Protobuf__Any *any, int depth)
{
    const ProtobufCMessageDescriptor *type = tc_proto_type_of_url(tc_slice_str(any->type_url));
    if (!type)
        return NULL;
    struct tc_arena arena;
    struct tc_validation_errors errors = {0};
    ProtobufCMessage *m;
    json_t *out = NULL;
    tc_arena_init(&arena, 0, tc_unpack_budget(any->value.len));
    if (tc_unpack(type, tc_proto_bytes(any->value), NULL, &arena, &m, &errors) == 0) {
        out = json_object();
        json_object_set_new(out, "@type", json_string(any->type_url));
        bool done = tc_wkt_of(type) == TC_WKT_NONE
                        ? fields_json(o, m, out, depth + 1)
                        : json_object_set_new(out, "value", message_json(o, m, depth + 1)) == 0;
        if (!done) {
            json_decref(out);
            out = NULL;
        }
    }
    tc_validation_fini(&errors);
    tc_arena_fini(&arena);
    return out;
}

static json_t *any_json(const struct output *o, const Google__Protobuf__Any *any, int depth)
{
    if (!*any->type_url && !any->value.len)
        return json_object();
    if (!tc_utf8_valid(tc_slice_str(any->type_url)))
        return NULL;
    json_t *out = any_content_json(o, any, depth);
    if (!out) {
        const ProtobufCMessageDescriptor *type = tc_proto_type_of_url(tc_slice_str(any->type_url));
        out = json_object();
        json_object_set_new(out, "@type", json_string(any->type_url));
        json_object_set_new(out, type && tc_wkt_has_value(type) ? "@value" : "value", bytes_json(any->value));
    }
    return out;
}

static json_t *kind_json(const struct output *o, const Google__Protobuf__Value *v, int depth)
{
    switch (v->kind_case) {
    case GOOGLE__PROTOBUF__VALUE__KIND_NUMBER_VALUE:
        return o->options.struct_integers && fabs(v->number_value) < 0x1p53 && v->number_value == floor(v->number_value)
                   ? json_integer((json_int_t)v->number_value)
                   : double_json(v->number_value);
    case GOOGLE__PROTOBUF__VALUE__KIND_STRING_VALUE:
        return json_string(v->string_value);
    case GOOGLE__PROTOBUF__VALUE__KIND_BOOL_VALUE:
        return json_boolean(v->bool_value);
    case GOOGLE__PROTOBUF__VALUE__KIND_STRUCT_VALUE:
        return message_json(o, &v->struct_value->base, depth);
    case GOOGLE__PROTOBUF__VALUE__KIND_LIST_VALUE:
        return message_json(o, &v->list_value->base, depth);
    default:
        return json_null();
    }
}

static json_t *time_json(const struct output *o, const ProtobufCMessage *m, int64_t seconds, int32_t nanos, int depth)
{
    char text[TC_TIME_TEXT_BYTES];
    bool good = tc_wkt_of(m->descriptor) == TC_WKT_DURATION ? tc_time_duration_text(seconds, nanos, text)
                                                            : tc_time_timestamp_text(seconds, nanos, text);
    if (good)
        return json_string(text);
    json_t *out = json_object();
    fields_json(o, m, out, depth);
    return out;
}

static json_t *message_json(const struct output *o, const ProtobufCMessage *m, int depth)
{
    const ProtobufCMessageDescriptor *type = m->descriptor;
    if (depth > TC_PROTO_JSON_MAX_DEPTH)
        return NULL;
    switch (tc_wkt_of(type)) {
    case TC_WKT_ANY:
        return any_json(o, (const Google__Protobuf__Any *)m, depth);
    case TC_WKT_DURATION: {
        const Google__Protobuf__Duration *d = (const Google__Protobuf__Duration *)m;
        return time_json(o, m, d->seconds, d->nanos, depth);
    }
    case TC_WKT_TIMESTAMP: {
        const Google__Protobuf__Timestamp *t = (const Google__Protobuf__Timestamp *)m;
        return time_json(o, m, t->seconds, t->nanos, depth);
    }
    case TC_WKT_STRUCT: {
        const Google__Protobuf__Struct *s = (const Google__Protobuf__Struct *)m;
        return map_json(o, (ProtobufCMessage *const *)(void *)s->fields, s->n_fields, depth + 1);
    }
    case TC_WKT_VALUE:
        return kind_json(o, (const Google__Protobuf__Value *)m, depth + 1);
    case TC_WKT_LIST: {
        const ProtobufCFieldDescriptor *values = &type->fields[0];
        return repeated_json(o, m, values, ((const Google__Protobuf__ListValue *)m)->n_values, depth + 1);
    }
    case TC_WKT_WRAPPER:
        return value_json(o, &type->fields[0], (const char *)m + type->fields[0].offset, depth + 1);
    default: {
        json_t *out = json_object();
        if (fields_json(o, m, out, depth + 1))
            return out;
        json_decref(out);
        return NULL;
    }
    }
}

json_t *tc_proto_to_json(const ProtobufCMessage *message, const struct tc_proto_json_options *options)
{
    struct output o = {.options = options ? *options : (struct tc_proto_json_options){0}};
    return message_json(&o, message, 0);
}
