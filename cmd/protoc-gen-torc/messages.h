/* The option `messages`: runs protoc-gen-c on a request that it can process. */
#ifndef PGT_MESSAGES_H
#define PGT_MESSAGES_H

#include "options.h"
#include "schema.h"

/* Changes the files of the request for protoc-gen-c: clears proto3_optional; removes services, extensions of options
 * and imports that are neither public nor used; and renames fields that could not be members of the message's struct.
 * `schema` was made from this request; new names live in its arena. */
void pgt_messages_prepare(struct pgt_schema *schema, const Google__Protobuf__Compiler__CodeGeneratorRequest *request);

/* Runs `program` (NULL data: protoc-gen-c), found by PATH, on the request and appends its serialised response to
 * `response`. Returns false with the reason in *why (tc_free) if the program cannot be run, or fails. */
bool pgt_messages_run(struct tc_slice program, const Google__Protobuf__Compiler__CodeGeneratorRequest *request,
                      struct tc_buf *response, char **why);

#endif
