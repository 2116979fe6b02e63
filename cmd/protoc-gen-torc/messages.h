/* The messages: protoc-gen-c on a request that it understands. */
#ifndef PGT_MESSAGES_H
#define PGT_MESSAGES_H

#include "options.h"
#include "schema.h"

/* Changes the files of the request, which are those of the schema, into files that protoc-gen-c takes: explicit
 * presence by a oneof of one member instead of proto3_optional, no custom options, no services, no imports of which
 * nothing is used, and names of fields that can be members of one struct in C. */
void pgt_messages_prepare(struct pgt_schema *schema, const Google__Protobuf__Compiler__CodeGeneratorRequest *request);

/* Runs the program on the request and appends its serialised response to `response`. Returns false with the reason in
 * *why (tc_free) if it cannot be run, or fails. */
bool pgt_messages_run(struct tc_slice program, const Google__Protobuf__Compiler__CodeGeneratorRequest *request,
                      struct tc_buf *response, char **why);

#endif
