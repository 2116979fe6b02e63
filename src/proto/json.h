/* proto3 JSON, both ways, over protobuf-c's descriptors, with the special forms of the well-known types (proto/wkt.h).
 * The message in an Any is found by its type URL (proto/types.h). Source: the ProtoJSON page of protobuf.dev. Pure
 * functions, any thread. */
#ifndef TC_PROTO_JSON_H
#define TC_PROTO_JSON_H

#include "base/arena.h"
#include "base/json.h"
#include "proto/types.h"

/* How deep messages may be nested in the outermost one, in either direction. An Any and the message in it are one
 * level, unless that message has a JSON form of its own (proto/wkt.h). Each Struct, ListValue and Value is a level;
 * when reading, so is an entry of a map, which includes the fields of a Struct. */
#define TC_PROTO_JSON_MAX_DEPTH 100

struct tc_proto_json_options {
    bool lower_camel;     /* output: lowerCamelCase names instead of those of the .proto files */
    bool struct_integers; /* output: a number of a Value becomes a JSON integer if whole and below 2^53 in magnitude */
    bool ignore_unknown;  /* input: unknown fields, and unknown names of enum values, are passed over */
};

/* Returns the JSON of a message, a new reference. Fields with their default value are left out, unless they are members
 * of a oneof; enums are names (numbers when unknown), integers of 64 bits are strings. An Any becomes {"@type": URL,
 * "value": BASE64} if its type is unknown, or if its bytes cannot be unpacked or are nested too deep; the member is
 * `@value` if the type has a JSON form of its own (proto/wkt.h) or a field `value`. A Duration or Timestamp out of
 * range becomes an object of its seconds and nanos. Returns NULL if the message is too deep or has a string that is not
 * UTF-8; neither happens with a message from tc_unpack with its default depth. NULL options are zeros. */
json_t *tc_proto_to_json(const ProtobufCMessage *message, const struct tc_proto_json_options *options);

/* Makes a message of `type` in `arena` from JSON. Names of fields may have either form. A field that is null is absent,
 * unless it is a google.protobuf.Value or NullValue and not repeated. Adds an error with its path for each value that
 * is wrong: unknown fields (but see ignore_unknown), wrong types, numbers out of range, two fields of one oneof, a
 * field under both its names, more than TC_PROTO_JSON_MAX_DEPTH levels. Returns 0. Returns TORC_EPARSE when there were
 * errors, or TORC_ELIMIT, also with an error, when the arena's budget is exceeded; `*out` is untouched then. NULL
 * options are zeros.
 *
 * An Any of the forms with BASE64, as tc_proto_to_json writes them, is accepted; the member `@value` for any type.
 * Whether the bytes are a message of the type is not checked. */
int tc_proto_from_json(const ProtobufCMessageDescriptor *type, const json_t *json,
                       const struct tc_proto_json_options *options, struct tc_arena *arena, ProtobufCMessage **out,
                       struct tc_validation_errors *errors);

#endif
