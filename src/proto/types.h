/* The message types that a google.protobuf.Any or a file of resources may name: the top-level messages of the code
 * generated from proto/, except those whose package begins with "grpc.". Any thread. */
#ifndef TC_PROTO_TYPES_H
#define TC_PROTO_TYPES_H

#include <protobuf-c/protobuf-c.h>

#include "base/slice.h"

/* Returns the type of a full name ("envoy.config.cluster.v3.Cluster"); NULL when unknown. */
const ProtobufCMessageDescriptor *tc_proto_type(struct tc_slice full_name);
/* Returns the type that a type URL ("type.googleapis.com/NAME") names after its last slash; NULL when the name is
 * unknown or the URL has no slash. */
const ProtobufCMessageDescriptor *tc_proto_type_of_url(struct tc_slice url);
/* Returns type i in the order of names; NULL beyond the last. */
const ProtobufCMessageDescriptor *tc_proto_type_at(size_t i);

#endif
