/* The well-known types that have a JSON form of their own; FieldMask is not generated and so not among them. Internal
 * to src/proto. Pure functions, any thread. */
#ifndef TC_PROTO_WKT_H
#define TC_PROTO_WKT_H

#include <protobuf-c/protobuf-c.h>

#include "base/slice.h"

enum tc_wkt {
    TC_WKT_NONE, /* an ordinary message */
    TC_WKT_ANY,
    TC_WKT_DURATION,
    TC_WKT_TIMESTAMP,
    TC_WKT_STRUCT,
    TC_WKT_VALUE,
    TC_WKT_LIST,
    TC_WKT_WRAPPER, /* one field, `value` */
};

/* Returns the well-known type that `type` is, or TC_WKT_NONE. */
enum tc_wkt tc_wkt_of(const ProtobufCMessageDescriptor *type);

/* Enough for the lowerCamelCase form of a name in proto/. */
enum { TC_WKT_NAME_BYTES = 128 };
/* Writes the lowerCamelCase form of a field's name to `out`, at most size - 1 characters and a NUL. */
void tc_wkt_camel(const char *name, char *out, size_t size);
/* Returns the field with this name, of the .proto file or in lowerCamelCase, or NULL. */
const ProtobufCFieldDescriptor *tc_wkt_find_field(const ProtobufCMessageDescriptor *type, const char *name);

/* Returns true if the content of an Any of the type may have a member `value`: the bytes of such an Any are `@value`.
 */
bool tc_wkt_has_value(const ProtobufCMessageDescriptor *type);

#endif
