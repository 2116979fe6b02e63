/* Runs protoc, found in PATH: on .proto files, and on messages in protobuf's text format. */
#ifndef TORC_SCHEMA_PROTOC_H
#define TORC_SCHEMA_PROTOC_H

#include "base/buf.h"
#include "proto/descriptor_index.h"
#include "schema/options.h"

/* Appends the google.protobuf.FileDescriptorSet of the files of --proto with all that they import. Returns 0, or
 * CLI_FAILED with protoc's errors printed. */
int protoc_run(const char *command, const struct schema_args *a, struct tc_buf *out);

/* Append a message of a type to *out: encode in wire format from text format, decode the other way. `set`: the
 * descriptors; `files`: the same, which say what file defines the type. Return 0, or -1 with the reason in *why. */
int protoc_encode(const struct tc_descriptor_index *files, struct tc_slice set, const char *type, struct tc_slice text,
                  struct tc_buf *out, struct tc_buf *why);
int protoc_decode(const struct tc_descriptor_index *files, struct tc_slice set, const char *type,
                  struct tc_slice message, struct tc_buf *out, struct tc_buf *why);

#endif
