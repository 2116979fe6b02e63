/* Well-known types and the names of fields in JSON: see wkt.h. */
#include "proto/wkt.h"

#include <ctype.h>

#include "pb/google/protobuf/any.pb-c.h"
#include "pb/google/protobuf/duration.pb-c.h"
#include "pb/google/protobuf/struct.pb-c.h"
#include "pb/google/protobuf/timestamp.pb-c.h"
#include "pb/google/protobuf/wrappers.pb-c.h"

enum tc_wkt tc_wkt_of(const ProtobufCMessageDescriptor *type)
{
    static const struct {
        const ProtobufCMessageDescriptor *type;
        enum tc_wkt wkt;
    } table[] = {
        {&google__protobuf__any__descriptor, TC_WKT_ANY},
        {&google__protobuf__duration__descriptor, TC_WKT_DURATION},
        {&google__protobuf__timestamp__descriptor, TC_WKT_TIMESTAMP},
        {&google__protobuf__struct__descriptor, TC_WKT_STRUCT},
        {&google__protobuf__value__descriptor, TC_WKT_VALUE},
        {&google__protobuf__list_value__descriptor, TC_WKT_LIST},
        {&google__protobuf__double_value__descriptor, TC_WKT_WRAPPER},
        {&google__protobuf__float_value__descriptor, TC_WKT_WRAPPER},
        {&google__protobuf__int64_value__descriptor, TC_WKT_WRAPPER},
        {&google__protobuf__uint64_value__descriptor, TC_WKT_WRAPPER},
        {&google__protobuf__int32_value__descriptor, TC_WKT_WRAPPER},
        {&google__protobuf__uint32_value__descriptor, TC_WKT_WRAPPER},
        {&google__protobuf__bool_value__descriptor, TC_WKT_WRAPPER},
        {&google__protobuf__string_value__descriptor, TC_WKT_WRAPPER},
        {&google__protobuf__bytes_value__descriptor, TC_WKT_WRAPPER},
    };
    for (size_t i = 0; i < TC_ARRAY_LEN(table); i++)
        if (table[i].type == type)
            return table[i].wkt;
    return TC_WKT_NONE;
}

void tc_wkt_camel(const char *name, char *out, size_t size)
{
    size_t n = 0;
    bool upper = false;
    for (; *name && n + 1 < size; name++) {
        if (*name == '_') {
            upper = true;
            continue;
        }
        out[n++] = upper ? (char)toupper((unsigned char)*name) : *name;
        upper = false;
    }
    out[n] = 0;
}

const ProtobufCFieldDescriptor *tc_wkt_find_field(const ProtobufCMessageDescriptor *type, const char *name)
{
    for (unsigned i = 0; i < type->n_fields; i++) {
        char camel[TC_WKT_NAME_BYTES];
        tc_wkt_camel(type->fields[i].name, camel, sizeof(camel));
        if (strcmp(type->fields[i].name, name) == 0 || strcmp(camel, name) == 0)
            return &type->fields[i];
    }
    return NULL;
}

bool tc_wkt_has_value(const ProtobufCMessageDescriptor *type)
{
    return tc_wkt_of(type) != TC_WKT_NONE || tc_wkt_find_field(type, "value");
}
