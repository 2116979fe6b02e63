#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/parse.h"
#include "pb/google/protobuf/any.pb-c.h"
#include "pb/google/protobuf/duration.pb-c.h"
#include "pb/google/protobuf/struct.pb-c.h"
#include "pb/google/protobuf/timestamp.pb-c.h"
#include "proto/json.h"
#include "proto/json_scalar.h"
#include "proto/unpack.h"
#include "proto/wkt.h"

#define NAME_BYTES 128

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

/* The double whose digits are the fewest that still read back as the same float. */
static json_t *float_json(float v)
{
    char text[32];
    for (int digits = 6; isfinite(v) && digits < 9; digits++) {
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

static json_t *enum_json(const ProtobufCEnumDescriptor *type, int number)
{
    const ProtobufCEnumValue *v = protobuf_c_enum_descriptor_get_value(type, number);
    if (strcmp(type->name, "google.protobuf.NullValue") == 0)
        return json_null();
    return v ? json_string(v->name) : json_integer(number);
}

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

/* One value of a field, at `p`. */
static json_t *value_json(const struct output *o, const ProtobufCFieldDescriptor *field, const void *p, int depth)
{
    switch (field->type) {
    case PROTOBUF_C_TYPE_INT32:
    case PROTOBUF_C_TYPE_SINT32:
    case PROTOBUF_C_TYPE_SFIXED32:
        return json_integer(*(const int32_t *)p);
    case PROTOBUF_C_TYPE_UINT32:
    case PROTOBUF_C_TYPE_FIXED32:
        return json_integer(*(const uint32_t *)p);
    case PROTOBUF_C_TYPE_INT64:
    case PROTOBUF_C_TYPE_SINT64:
    case PROTOBUF_C_TYPE_SFIXED64:
        return i64_json(*(const int64_t *)p);
    case PROTOBUF_C_TYPE_UINT64:
    case PROTOBUF_C_TYPE_FIXED64:
        return u64_json(*(const uint64_t *)p);
    case PROTOBUF_C_TYPE_FLOAT:
        return float_json(*(const float *)p);
    case PROTOBUF_C_TYPE_DOUBLE:
        return double_json(*(const double *)p);
    case PROTOBUF_C_TYPE_BOOL:
        return json_boolean(*(const protobuf_c_boolean *)p);
    case PROTOBUF_C_TYPE_ENUM:
        return enum_json(field->descriptor, *(const int *)p);
    case PROTOBUF_C_TYPE_STRING:
        return json_string(*(char *const *)p ? *(char *const *)p : "");
    case PROTOBUF_C_TYPE_BYTES:
        return bytes_json(*(const ProtobufCBinaryData *)p);
    case PROTOBUF_C_TYPE_MESSAGE:
        return message_json(o, *(ProtobufCMessage *const *)p, depth);
    }
    return NULL;
}

/* Whether a field that is not repeated stands in the output. */
static bool present(const ProtobufCMessage *m, const ProtobufCFieldDescriptor *field)
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
        return memcmp(p, zeros, tc_json_scalar_size(field->type)) != 0;
    }
    }
}

static void key_text(const ProtobufCMessage *entry, char out[24])
{
    const ProtobufCFieldDescriptor *key = &entry->descriptor->fields[0];
    const void *p = (const char *)entry + key->offset;
    switch (key->type) {
    case PROTOBUF_C_TYPE_BOOL:
        snprintf(out, 24, "%s", *(const protobuf_c_boolean *)p ? "true" : "false");
        return;
    case PROTOBUF_C_TYPE_UINT64:
    case PROTOBUF_C_TYPE_FIXED64:
        snprintf(out, 24, "%" PRIu64, *(const uint64_t *)p);
        return;
    case PROTOBUF_C_TYPE_UINT32:
    case PROTOBUF_C_TYPE_FIXED32:
        snprintf(out, 24, "%" PRIu32, *(const uint32_t *)p);
        return;
    case PROTOBUF_C_TYPE_INT64:
    case PROTOBUF_C_TYPE_SINT64:
    case PROTOBUF_C_TYPE_SFIXED64:
        snprintf(out, 24, "%" PRId64, *(const int64_t *)p);
        return;
    default:
        snprintf(out, 24, "%" PRId32, *(const int32_t *)p);
    }
}

/* The value of a map entry; one that was sent without a message stands for an empty message. */
static json_t *entry_json(const struct output *o, const ProtobufCMessage *entry, int depth)
{
    const ProtobufCFieldDescriptor *value = &entry->descriptor->fields[1];
    const void *p = (const char *)entry + value->offset;
    if (value->type == PROTOBUF_C_TYPE_MESSAGE && !*(void *const *)p)
        return tc_wkt_of(value->descriptor) == TC_WKT_VALUE ? json_null() : json_object();
    return value_json(o, value, p, depth);
}

/* Last wins: setting a key again replaces it. */
static json_t *map_json(const struct output *o, ProtobufCMessage *const *entries, size_t n, int depth)
{
    json_t *out = json_object();
    for (size_t i = 0; i < n; i++) {
        const ProtobufCFieldDescriptor *key = &entries[i]->descriptor->fields[0];
        char text[24];
        const char *name = text;
        if (key->type == PROTOBUF_C_TYPE_STRING)
            name = *(char *const *)(const void *)((const char *)entries[i] + key->offset);
        else
            key_text(entries[i], text);
        if (json_object_set_new(out, name, entry_json(o, entries[i], depth)) != 0) {
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
        if (json_array_append_new(out, value_json(o, field, array + i * tc_json_scalar_size(field->type), depth)) !=
            0) {
            json_decref(out);
            return NULL;
        }
    }
    return out;
}

/* Adds the fields of an ordinary message to `out`; false when one has no JSON. */
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
            if (!present(m, field))
                continue;
            v = value_json(o, field, (const char *)m + field->offset, depth);
        }
        char camel[NAME_BYTES];
        tc_wkt_camel(field->name, camel, sizeof(camel));
        if (json_object_set_new(out, o->options.lower_camel ? camel : field->name, v) != 0)
            return false;
    }
    return true;
}

/* The content of an Any whose type is known and whose bytes are of that type; NULL otherwise. */
static json_t *any_content_json(const struct output *o, const Google__Protobuf__Any *any, int depth)
{
    const ProtobufCMessageDescriptor *type = tc_proto_type_of_url(tc_slice_str(any->type_url));
    if (!type || depth >= TC_PROTO_JSON_MAX_DEPTH)
        return NULL;
    struct tc_arena arena;
    struct tc_faults faults;
    ProtobufCMessage *m;
    json_t *out = NULL;
    tc_arena_init(&arena, 0, tc_unpack_budget(any->value.len));
    tc_faults_init(&faults);
    if (tc_unpack(type, tc_proto_bytes(any->value), NULL, &arena, &m, &faults) == 0) {
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
    tc_faults_fini(&faults);
    tc_arena_fini(&arena);
    return out;
}

static json_t *any_json(const struct output *o, const Google__Protobuf__Any *any, int depth)
{
    if (!*any->type_url && !any->value.len)
        return json_object();
    json_t *out = any_content_json(o, any, depth);
    if (!out) {
        out = json_object();
        json_object_set_new(out, "@type", json_string(any->type_url));
        json_object_set_new(out, "value", bytes_json(any->value));
    }
    return out;
}

static json_t *kind_json(const struct output *o, const Google__Protobuf__Value *v, int depth)
{
    switch (v->kind_case) {
    case GOOGLE__PROTOBUF__VALUE__KIND_NUMBER_VALUE:
        return double_json(v->number_value);
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
    char text[TC_WKT_TEXT_BYTES];
    bool good = tc_wkt_of(m->descriptor) == TC_WKT_DURATION ? tc_wkt_duration_text(seconds, nanos, text)
                                                            : tc_wkt_timestamp_text(seconds, nanos, text);
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
