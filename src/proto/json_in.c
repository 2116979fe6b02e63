/* proto3 JSON into messages.
 *
 * The functions NAME_in read one kind of value each, driven by the descriptor, into memory of the arena: message_in
 * calls fields_in, which calls field_in, and so on down to scalars (proto/json_scalar.h). `depth` counts the messages
 * and entries of maps around a value, by the rules of TC_PROTO_JSON_MAX_DEPTH. A value that is wrong adds a validation
 * error at its path, and reading goes on after it, so that one call can report many errors; only an arena that is used
 * up (`exceeded`) ends the call early.
 *
 * Well-known types have forms of their own (proto/wkt.h). The content of an Any is read as the type that its URL names;
 * an Any of unknown type is accepted in the form that tc_proto_to_json writes. */
#include <float.h>
#include <math.h>

#include "base/parse.h"
#include "pb/google/protobuf/any.pb-c.h"
#include "pb/google/protobuf/duration.pb-c.h"
#include "pb/google/protobuf/struct.pb-c.h"
#include "pb/google/protobuf/timestamp.pb-c.h"
#include "proto/json.h"
#include "proto/json_scalar.h"
#include "proto/time_text.h"
#include "proto/unpack.h"
#include "proto/wire.h"
#include "proto/wkt.h"

struct input {
    struct tc_proto_json_options options;
    struct tc_arena *arena;
    struct tc_validation_errors *errors;
    bool exceeded;
};

/* This function, and each NAME_in below, returns false when it has added a validation error or the arena is used up. */
static bool message_in(struct input *in, const ProtobufCMessageDescriptor *type, const json_t *json, int depth,
                       ProtobufCMessage **out);

static void *input_alloc(struct input *in, size_t n, size_t size)
{
    void *p = tc_arena_calloc(in->arena, n, size);
    if (!p)
        in->exceeded = true;
    return p;
}

static bool input_wrong_type(struct input *in, const char *want)
{
    tc_validation_add(in->errors, "must be %s", want);
    return false;
}

static ProtobufCMessage *message_new(struct input *in, const ProtobufCMessageDescriptor *type)
{
    ProtobufCMessage *m = input_alloc(in, 1, type->sizeof_message);
    if (m)
        protobuf_c_message_init(type, m);
    return m;
}

static bool string_in(struct input *in, const json_t *json, char **out)
{
    if (!json_is_string(json))
        return input_wrong_type(in, "a string");
    struct tc_slice text = tc_slice_of(json_string_value(json), json_string_length(json));
    if (memchr(text.data, 0, text.len) || !tc_utf8_valid(text))
        return input_wrong_type(in, "UTF-8 without NUL");
    char *copy = tc_arena_dup(in->arena, text);
    if (!copy) {
        in->exceeded = true;
        return false;
    }
    *out = copy;
    return true;
}

static bool bytes_in(struct input *in, const json_t *json, ProtobufCBinaryData *out)
{
    struct tc_buf data = {0};
    bool good = tc_json_scalar_bytes(json, &data);
    if (!good)
        input_wrong_type(in, "a base64 string");
    if (good && data.len) {
        out->data = input_alloc(in, 1, data.len);
        good = out->data != NULL;
        if (good)
            memcpy(out->data, data.data, out->len = data.len);
    }
    tc_buf_fini(&data);
    return good;
}

/* `*skip` is set for an unknown name that the options pass over. */
static bool enum_in(struct input *in, const ProtobufCEnumDescriptor *type, const json_t *json, int *out, bool *skip)
{
    int64_t number;
    if (json_is_null(json)) { /* only google.protobuf.NullValue comes here with null */
        *out = 0;
        return true;
    }
    if (json_is_string(json)) {
        const ProtobufCEnumValue *v = protobuf_c_enum_descriptor_get_value_by_name(type, json_string_value(json));
        if (v) {
            *out = v->value;
            return true;
        }
        *skip = in->options.ignore_unknown;
        if (!*skip)
            tc_validation_add(in->errors, "unknown value %s of enum %s", json_string_value(json), type->name);
        return *skip;
    }
    if (!json_is_number(json) || !tc_json_scalar_i64(json, INT32_MIN, INT32_MAX, &number))
        return input_wrong_type(in, "the name or number of an enum value");
    *out = (int)number;
    return true;
}

/* A double beyond the range of a float is an error: the cast would make it infinite. */
static bool float_in(struct input *in, const json_t *json, bool is_float, void *out)
{
    double v;
    if (!tc_json_scalar_double(json, &v))
        return input_wrong_type(in, "a number");
    if (!is_float) {
        *(double *)out = v;
        return true;
    }
    if (isfinite(v) && fabs(v) > (double)FLT_MAX)
        return input_wrong_type(in, "a number in the range of a float");
    *(float *)out = (float)v;
    return true;
}

/* Reads one value of a field into `out`. */
static bool value_in(struct input *in, const ProtobufCFieldDescriptor *field, const json_t *json, int depth, void *out,
                     bool *skip)
{
    int64_t i64;
    uint64_t u64;
    switch (tc_field_types[field->type].kind) {
    case TC_FIELD_I32:
        if (!tc_json_scalar_i64(json, INT32_MIN, INT32_MAX, &i64))
            return input_wrong_type(in, "an integer of 32 bits");
        *(int32_t *)out = (int32_t)i64;
        return true;
    case TC_FIELD_U32:
        if (!tc_json_scalar_u64(json, UINT32_MAX, &u64))
            return input_wrong_type(in, "an unsigned integer of 32 bits");
        *(uint32_t *)out = (uint32_t)u64;
        return true;
    case TC_FIELD_I64:
        if (!tc_json_scalar_i64(json, INT64_MIN, INT64_MAX, out))
            return input_wrong_type(in, "an integer of 64 bits");
        return true;
    case TC_FIELD_U64:
        if (!tc_json_scalar_u64(json, UINT64_MAX, out))
            return input_wrong_type(in, "an unsigned integer of 64 bits");
        return true;
    case TC_FIELD_FLOAT:
    case TC_FIELD_DOUBLE:
        return float_in(in, json, field->type == PROTOBUF_C_TYPE_FLOAT, out);
    case TC_FIELD_BOOL:
        if (!json_is_boolean(json))
            return input_wrong_type(in, "true or false");
        *(protobuf_c_boolean *)out = json_is_true(json);
        return true;
    case TC_FIELD_ENUM:
        return enum_in(in, field->descriptor, json, out, skip);
    case TC_FIELD_STRING:
        return string_in(in, json, out);
    case TC_FIELD_BYTES:
        return bytes_in(in, json, out);
    case TC_FIELD_MESSAGE:
        return message_in(in, field->descriptor, json, depth, out);
    }
    return false;
}

/* Returns true when null is a value of this field, and not its absence. */
static bool null_counts(const ProtobufCFieldDescriptor *field)
{
    if (field->type == PROTOBUF_C_TYPE_MESSAGE)
        return tc_wkt_of(field->descriptor) == TC_WKT_VALUE;
    return field->type == PROTOBUF_C_TYPE_ENUM &&
           strcmp(((const ProtobufCEnumDescriptor *)field->descriptor)->name, "google.protobuf.NullValue") == 0;
}

static void message_set_repeated(ProtobufCMessage *m, const ProtobufCFieldDescriptor *field, void *array, size_t n)
{
    *(void **)(void *)((char *)m + field->offset) = array;
    *(size_t *)(void *)((char *)m + field->quantifier_offset) = n;
}

/* `used` counts the values that are kept: an unknown enum name that the options pass over leaves no gap. A list with an
 * error has no values, since its message is dropped anyway. */
static bool list_in(struct input *in, ProtobufCMessage *m, const ProtobufCFieldDescriptor *field, const json_t *json,
                    int depth)
{
    if (!json_is_array(json))
        return input_wrong_type(in, "a list");
    size_t n = json_array_size(json), size = tc_field_types[field->type].bytes, used = 0;
    if (n == 0)
        return true;
    char *array = input_alloc(in, n, size);
    if (!array)
        return false;
    bool good = true;
    for (size_t i = 0; i < n && !in->exceeded; i++) {
        const json_t *item = json_array_get(json, i);
        bool skip = false;
        tc_validation_push(in->errors, "[%zu]", i);
        if (json_is_null(item) && !null_counts(field))
            good = input_wrong_type(in, "a value, not null");
        else if (!value_in(in, field, item, depth, array + used * size, &skip))
            good = false;
        else if (!skip)
            used++;
        tc_validation_pop(in->errors);
    }
    message_set_repeated(m, field, array, good ? used : 0);
    return good && !in->exceeded;
}

/* Keys in JSON are strings: an integer key is read as an integer in a string. */
static bool key_in(struct input *in, const ProtobufCFieldDescriptor *key, const char *name, void *out)
{
    json_t *text = json_string(name);
    bool skip = false, good;
    if (key->type == PROTOBUF_C_TYPE_BOOL) {
        good = strcmp(name, "true") == 0 || strcmp(name, "false") == 0;
        *(protobuf_c_boolean *)out = strcmp(name, "true") == 0;
        if (!good)
            input_wrong_type(in, "a key that is true or false");
    } else {
        good = value_in(in, key, text, 0, out, &skip);
    }
    json_decref(text);
    return good;
}

/* An entry is a message too, and so one level of depth. */
static bool map_in(struct input *in, ProtobufCMessage *m, const ProtobufCFieldDescriptor *field, const json_t *json,
                   int depth)
{
    const ProtobufCMessageDescriptor *type = field->descriptor;
    if (!json_is_object(json))
        return input_wrong_type(in, "an object");
    size_t used = 0;
    if (json_object_size(json) == 0)
        return true;
    ProtobufCMessage **entries = input_alloc(in, json_object_size(json), sizeof(*entries));
    if (!entries)
        return false;
    bool good = true;
    const char *name;
    json_t *item;
    json_object_foreach((json_t *)json, name, item)
    {
        const ProtobufCFieldDescriptor *key = &type->fields[0], *value = &type->fields[1];
        ProtobufCMessage *entry = message_new(in, type);
        bool skip = false;
        if (!entry)
            return false;
        tc_validation_push_key(in->errors, "", name);
        if (!key_in(in, key, name, (char *)entry + key->offset))
            good = false;
        else if (json_is_null(item) && !null_counts(value))
            good = input_wrong_type(in, "a value, not null");
        else if (!value_in(in, value, item, depth + 1, (char *)entry + value->offset, &skip))
            good = false;
        else if (!skip)
            entries[used++] = entry;
        tc_validation_pop(in->errors);
    }
    message_set_repeated(m, field, entries, good ? used : 0);
    return good && !in->exceeded;
}

/* Two members of one oneof are an error, as protobuf's conformance tests demand: an object has no order, so neither
 * member is the last one. */
static bool field_in(struct input *in, ProtobufCMessage *m, const ProtobufCFieldDescriptor *field, const json_t *json,
                     int depth)
{
    if (field->label == PROTOBUF_C_LABEL_REPEATED)
        return tc_proto_is_map(m->descriptor, field) ? map_in(in, m, field, json, depth)
                                                     : list_in(in, m, field, json, depth);
    bool skip = false;
    if (!(field->flags & PROTOBUF_C_FIELD_FLAG_ONEOF))
        return value_in(in, field, json, depth, (char *)m + field->offset, &skip);
    uint32_t *which = (uint32_t *)(void *)((char *)m + field->quantifier_offset);
    if (*which) {
        const ProtobufCFieldDescriptor *other = protobuf_c_message_descriptor_get_field(m->descriptor, *which);
        tc_validation_add(in->errors, "cannot be set together with %s", other->name);
        return false;
    }
    *which = field->id;
    bool good = value_in(in, field, json, depth, (char *)m + field->offset, &skip);
    if (skip)
        *which = 0;
    return good;
}

/* Reads the fields of an ordinary message. Member `except` of the object (NULL: none) is not a field. `seen` finds a
 * field that is given under both its names, the one of the .proto file and its lowerCamelCase. */
static bool fields_in(struct input *in, ProtobufCMessage *m, const json_t *json, const char *except, int depth)
{
    if (!json_is_object(json))
        return input_wrong_type(in, "an object");
    bool good = true;
    const ProtobufCMessageDescriptor *type = m->descriptor;
    bool *seen = input_alloc(in, type->n_fields + 1, sizeof(*seen));
    if (!seen)
        return false;
    const char *name;
    json_t *item;
    json_object_foreach((json_t *)json, name, item)
    {
        if (in->exceeded)
            return false;
        if (except && strcmp(name, except) == 0)
            continue;
        const ProtobufCFieldDescriptor *field = tc_wkt_find_field(type, name);
        if (!field && in->options.ignore_unknown)
            continue;
        tc_validation_push(in->errors, ".%s", name);
        if (!field) {
            tc_validation_add(in->errors, "unknown field of %s", type->name);
            good = false;
        } else if (seen[field - type->fields]) {
            tc_validation_add(in->errors, "is given twice");
            good = false;
        } else if (!json_is_null(item) || (null_counts(field) && field->label != PROTOBUF_C_LABEL_REPEATED)) {
            good = field_in(in, m, field, item, depth) && good;
        }
        if (field)
            seen[field - type->fields] = true;
        tc_validation_pop(in->errors);
    }
    return good;
}

/* Returns the name of the member that has the bytes of an Any, as tc_proto_to_json writes them; NULL: there is none.
 * `type` is NULL if it is unknown. */
static const char *opaque_member(const ProtobufCMessageDescriptor *type, const json_t *json)
{
    if (json_object_size(json) != 2)
        return NULL;
    if (json_is_string(json_object_get(json, "@value")))
        return "@value";
    bool plain = json_is_string(json_object_get(json, "value")) && (!type || !tc_wkt_has_value(type));
    return plain ? "value" : NULL;
}

static bool opaque_any_in(struct input *in, const json_t *json, const char *member, Google__Protobuf__Any *any)
{
    tc_validation_push(in->errors, ".%s", member);
    bool good = bytes_in(in, json_object_get(json, member), &any->value);
    tc_validation_pop(in->errors);
    return good;
}

/* Reads the content by its type, then packs it: an Any holds bytes. */
static bool any_in(struct input *in, const json_t *json, int depth, Google__Protobuf__Any *any)
{
    if (!json_is_object(json))
        return input_wrong_type(in, "an object");
    if (json_object_size(json) == 0)
        return true;
    const json_t *url = json_object_get(json, "@type");
    if (!json_is_string(url)) {
        tc_validation_add_at(in->errors, ".@type", "must be a type URL");
        return false;
    }
    if (!string_in(in, url, &any->type_url))
        return false;
    const ProtobufCMessageDescriptor *type = tc_proto_type_of_url(tc_slice_str(any->type_url));
    const char *opaque = opaque_member(type, json);
    if (opaque)
        return opaque_any_in(in, json, opaque, any);
    if (!type) {
        tc_validation_add_at(in->errors, ".@type", "unknown type %s", any->type_url);
        return false;
    }
    ProtobufCMessage *m = NULL;
    if (tc_wkt_of(type) == TC_WKT_NONE) {
        m = message_new(in, type);
        if (!m || !fields_in(in, m, json, "@type", depth))
            return false;
    } else {
        const json_t *value = json_object_get(json, "value");
        if (!value || json_object_size(json) != 2)
            return input_wrong_type(in, "an object of @type and value");
        tc_validation_push(in->errors, ".value");
        bool good = message_in(in, type, value, depth, &m);
        tc_validation_pop(in->errors);
        if (!good)
            return false;
    }
    any->value.len = protobuf_c_message_get_packed_size(m);
    if (any->value.len == 0)
        return true;
    any->value.data = input_alloc(in, 1, any->value.len);
    if (any->value.data)
        protobuf_c_message_pack(m, any->value.data);
    return any->value.data != NULL;
}

static bool kind_in(struct input *in, const json_t *json, int depth, Google__Protobuf__Value *v)
{
    switch (json_typeof(json)) {
    case JSON_NULL:
        v->kind_case = GOOGLE__PROTOBUF__VALUE__KIND_NULL_VALUE;
        return true;
    case JSON_TRUE:
    case JSON_FALSE:
        v->kind_case = GOOGLE__PROTOBUF__VALUE__KIND_BOOL_VALUE;
        v->bool_value = json_is_true(json);
        return true;
    case JSON_STRING:
        v->kind_case = GOOGLE__PROTOBUF__VALUE__KIND_STRING_VALUE;
        return string_in(in, json, &v->string_value);
    case JSON_INTEGER:
    case JSON_REAL:
        v->kind_case = GOOGLE__PROTOBUF__VALUE__KIND_NUMBER_VALUE;
        v->number_value = json_number_value(json);
        return true;
    case JSON_OBJECT:
        v->kind_case = GOOGLE__PROTOBUF__VALUE__KIND_STRUCT_VALUE;
        return message_in(in, &google__protobuf__struct__descriptor, json, depth,
                          (ProtobufCMessage **)&v->struct_value);
    default:
        v->kind_case = GOOGLE__PROTOBUF__VALUE__KIND_LIST_VALUE;
        return message_in(in, &google__protobuf__list_value__descriptor, json, depth,
                          (ProtobufCMessage **)&v->list_value);
    }
}

static bool time_in(struct input *in, const json_t *json, bool duration, int64_t *seconds, int32_t *nanos)
{
    struct tc_slice text = tc_slice_of(json_string_value(json), json_string_length(json));
    if (json_is_string(json) &&
        (duration ? tc_time_duration_parse(text, seconds, nanos) : tc_time_timestamp_parse(text, seconds, nanos)))
        return true;
    return input_wrong_type(in, duration ? "a duration such as \"1.5s\"" : "a time such as \"2026-01-02T03:04:05Z\"");
}

static bool message_in(struct input *in, const ProtobufCMessageDescriptor *type, const json_t *json, int depth,
                       ProtobufCMessage **out)
{
    if (depth > TC_PROTO_JSON_MAX_DEPTH) {
        tc_validation_add(in->errors, "more than %d messages within each other", TC_PROTO_JSON_MAX_DEPTH);
        return false;
    }
    ProtobufCMessage *m = message_new(in, type);
    bool good = false, skip = false;
    if (!m)
        return false;
    switch (tc_wkt_of(type)) {
    case TC_WKT_ANY:
        good = any_in(in, json, depth + 1, (Google__Protobuf__Any *)m);
        break;
    case TC_WKT_DURATION: {
        Google__Protobuf__Duration *d = (Google__Protobuf__Duration *)m;
        good = time_in(in, json, true, &d->seconds, &d->nanos);
        break;
    }
    case TC_WKT_TIMESTAMP: {
        Google__Protobuf__Timestamp *t = (Google__Protobuf__Timestamp *)m;
        good = time_in(in, json, false, &t->seconds, &t->nanos);
        break;
    }
    case TC_WKT_STRUCT:
        good = map_in(in, m, &type->fields[0], json, depth + 1);
        break;
    case TC_WKT_VALUE:
        good = kind_in(in, json, depth + 1, (Google__Protobuf__Value *)m);
        break;
    case TC_WKT_LIST:
        good = list_in(in, m, &type->fields[0], json, depth + 1);
        break;
    case TC_WKT_WRAPPER:
        good = value_in(in, &type->fields[0], json, depth + 1, (char *)m + type->fields[0].offset, &skip);
        break;
    case TC_WKT_NONE:
        good = fields_in(in, m, json, NULL, depth + 1);
        break;
    }
    if (good)
        *out = m;
    return good;
}

int tc_proto_from_json(const ProtobufCMessageDescriptor *type, const json_t *json,
                       const struct tc_proto_json_options *options, struct tc_arena *arena, ProtobufCMessage **out,
                       struct tc_validation_errors *errors)
{
    struct input in = {
        .options = options ? *options : (struct tc_proto_json_options){0}, .arena = arena, .errors = errors};
    ProtobufCMessage *m = NULL;
    bool good = message_in(&in, type, json, 0, &m);
    if (in.exceeded) {
        tc_validation_add(errors, "a %s from JSON needs more than %zu bytes of memory", type->name, arena->budget);
        return TORC_ELIMIT;
    }
    if (!good)
        return TORC_EPARSE;
    *out = m;
    return 0;
}
