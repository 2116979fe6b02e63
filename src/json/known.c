/* A well-known type is recognised by its name. A server with reflection may send another message under that name, so
 * the fields are compared with `shapes`, the fields in protobuf's own files. */
#include "json/known.h"

#define PACKAGE "google.protobuf."

struct shape_field {
    uint8_t number, type;
    bool repeated;
    const char *refers; /* the message type, a name within google.protobuf; NULL: the field is not a message */
};

static const struct shape {
    const char *name;
    enum tc_known known;
    struct shape_field fields[6]; /* by number; if there are fewer than six, number 0 ends them */
} shapes[] = {
    {"Any", TC_KNOWN_ANY, {{1, TC_TYPE_STRING, false, NULL}, {2, TC_TYPE_BYTES, false, NULL}}},
    {"Duration", TC_KNOWN_DURATION, {{1, TC_TYPE_INT64, false, NULL}, {2, TC_TYPE_INT32, false, NULL}}},
    {"Timestamp", TC_KNOWN_TIMESTAMP, {{1, TC_TYPE_INT64, false, NULL}, {2, TC_TYPE_INT32, false, NULL}}},
    {"FieldMask", TC_KNOWN_FIELD_MASK, {{1, TC_TYPE_STRING, true, NULL}}},
    {"Struct", TC_KNOWN_STRUCT, {{1, TC_TYPE_MESSAGE, true, "Struct.FieldsEntry"}}},
    {"Value",
     TC_KNOWN_VALUE,
     {{1, TC_TYPE_ENUM, false, NULL},
      {2, TC_TYPE_DOUBLE, false, NULL},
      {3, TC_TYPE_STRING, false, NULL},
      {4, TC_TYPE_BOOL, false, NULL},
      {5, TC_TYPE_MESSAGE, false, "Struct"},
      {6, TC_TYPE_MESSAGE, false, "ListValue"}}},
    {"ListValue", TC_KNOWN_LIST, {{1, TC_TYPE_MESSAGE, true, "Value"}}},
    {"DoubleValue", TC_KNOWN_WRAPPER, {{1, TC_TYPE_DOUBLE, false, NULL}}},
    {"FloatValue", TC_KNOWN_WRAPPER, {{1, TC_TYPE_FLOAT, false, NULL}}},
    {"Int64Value", TC_KNOWN_WRAPPER, {{1, TC_TYPE_INT64, false, NULL}}},
    {"UInt64Value", TC_KNOWN_WRAPPER, {{1, TC_TYPE_UINT64, false, NULL}}},
    {"Int32Value", TC_KNOWN_WRAPPER, {{1, TC_TYPE_INT32, false, NULL}}},
    {"UInt32Value", TC_KNOWN_WRAPPER, {{1, TC_TYPE_UINT32, false, NULL}}},
    {"BoolValue", TC_KNOWN_WRAPPER, {{1, TC_TYPE_BOOL, false, NULL}}},
    {"StringValue", TC_KNOWN_WRAPPER, {{1, TC_TYPE_STRING, false, NULL}}},
    {"BytesValue", TC_KNOWN_WRAPPER, {{1, TC_TYPE_BYTES, false, NULL}}},
};

static bool field_fits(const struct tc_schema_field *f, const struct shape_field *want)
{
    return f->number == want->number && f->type == want->type && f->repeated == want->repeated && !f->extension &&
           (!want->refers || strcmp(f->message->full_name + strlen(PACKAGE), want->refers) == 0);
}

/* Returns whether the field of a Struct is a map<string, Value>. */
static bool entry_fits(const torc_schema_message *m)
{
    const torc_schema_message *e = m->fields.data[0]->message;
    const struct tc_schema_field *key = tc_schema_field_by_number(e, 1), *value = tc_schema_field_by_number(e, 2);
    return e->map_entry && e->fields.len == 2 && key && key->type == TC_TYPE_STRING && value &&
           value->type == TC_TYPE_MESSAGE && strcmp(value->message->full_name, PACKAGE "Value") == 0;
}

static bool shape_fits(const struct shape *shape, const torc_schema_message *m)
{
    size_t n = 0;
    while (n < TC_ARRAY_LEN(shape->fields) && shape->fields[n].number)
        n++;
    if (m->n_by_number != n)
        return false;
    for (size_t i = 0; i < n; i++) {
        const struct tc_schema_field *f = m->by_number[i];
        if (tc_schema_is_message(f) && strncmp(f->message->full_name, PACKAGE, strlen(PACKAGE)) != 0)
            return false;
        if (!field_fits(f, &shape->fields[i]))
            return false;
    }
    return shape->known != TC_KNOWN_STRUCT || entry_fits(m);
}

bool tc_known_of(const torc_schema_message *m, enum tc_known *out)
{
    *out = TC_KNOWN_NONE;
    if (strncmp(m->full_name, PACKAGE, strlen(PACKAGE)) != 0)
        return true;
    for (size_t i = 0; i < TC_ARRAY_LEN(shapes); i++) {
        if (strcmp(m->full_name + strlen(PACKAGE), shapes[i].name) != 0)
            continue;
        *out = shapes[i].known;
        return shape_fits(&shapes[i], m);
    }
    return true;
}
