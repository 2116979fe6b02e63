/* Runs the protoc of PATH: on .proto files, and to convert messages to and from protobuf's text format. Blocks until
 * protoc has ended. */
#ifndef TORC_SCHEMA_PROTOC_H
#define TORC_SCHEMA_PROTOC_H

#include "base/buf.h"
#include "proto/descriptor_index.h"
#include "schema/options.h"

/* Appends the google.protobuf.FileDescriptorSet of the files of --proto with all that they import. Returns 0, or
 * CLI_FAILED with the errors printed and *out unchanged. */
int protoc_run(const char *command, const struct schema_args *a, struct tc_buf *out);

/* Convert a message of this type, and append the result to *out: protoc_encode from text format to wire format,
 * protoc_decode back. `set`: a google.protobuf.FileDescriptorSet with the type's file and all that it imports. `files`:
 * an index of the same files. Return 0; or -1 with *out unchanged and the reason in *why, which must be empty before.
 */
int protoc_encode(const struct tc_descriptor_index *files, struct tc_slice set, const char *type, struct tc_slice text,
                  struct tc_buf *out, struct tc_buf *why);
int protoc_decode(const struct tc_descriptor_index *files, struct tc_slice set, const char *type,
                  struct tc_slice message, struct tc_buf *out, struct tc_buf *why);

#endif
