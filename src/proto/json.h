/* proto3 JSON, both ways, over the descriptors: any message of proto/, with the special forms of the well-known types.
 * Messages within an Any are found by their type URL (proto/types.h). Source: the ProtoJSON page of protobuf.dev. Pure
 * functions, any thread. */
#ifndef TC_PROTO_JSON_H
#define TC_PROTO_JSON_H

#include "base/arena.h"
#include "base/json.h"
#include "proto/types.h"

/* The most messages within the outermost one, each within the one before, in either direction. An Any and the message
 * in it count as one, unless that message has a JSON form of its own (proto/wkt). Objects, lists and values of a
 * google.protobuf.Struct are messages; when reading, so is each entry of a map field. */
#define TC_PROTO_JSON_MAX_DEPTH 100

struct tc_proto_json_options {
    bool lower_camel;     /* output: lowerCamelCase names instead of those of the .proto files */
    bool struct_integers; /* output: numbers of a Struct that are integers below 2^53 become JSON integers */
    bool ignore_unknown;  /* input: unknown fields and names of enum values are passed over */
};

/* Returns the JSON of a message, a new reference. Fields with their default value are left out, unless they are members
 * of a oneof; enums are names (numbers when unknown), integers of 64 bits are strings. An Any of unknown type, or whose
 * bytes are not of their type or too deep, becomes {"@type": URL, "value": BASE64}; a Duration or Timestamp out of
 * range shows its seconds and nanos. Returns NULL if the message is too deep or has a string that is not UTF-8; a
 * message from tc_unpack has neither fault. NULL options are zeros. */
json_t *tc_proto_to_json(const ProtobufCMessage *message, const struct tc_proto_json_options *options);

/* Makes a message of `type` in `arena` from JSON. Names of fields may have either form; null is an absent field, unless
 * the field is a google.protobuf.Value or NullValue. Adds an error with its path for each value that is wrong: unknown
 * fields (but see ignore_unknown), wrong types, numbers out of range, two fields of one oneof, a field under both its
 * names. An Any of unknown type is accepted as tc_proto_to_json writes it. Returns 0, TORC_EPARSE when there were
 * errors, or TORC_ELIMIT when the arena's budget is exceeded (with an error); `*out` is untouched then. */
int tc_proto_from_json(const ProtobufCMessageDescriptor *type, const json_t *json,
                       const struct tc_proto_json_options *options, struct tc_arena *arena, ProtobufCMessage **out,
                       struct tc_validation_errors *errors);

#endif
