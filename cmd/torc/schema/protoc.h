/* Runs protoc, found in PATH, on .proto files. */
#ifndef TORC_SCHEMA_PROTOC_H
#define TORC_SCHEMA_PROTOC_H

#include "base/buf.h"
#include "schema/options.h"

/* Appends the google.protobuf.FileDescriptorSet of the files of --proto with all that they import. Returns 0, or
 * CLI_FAILED with protoc's errors printed. */
int protoc_run(const char *command, const struct schema_args *a, struct tc_buf *out);

#endif
