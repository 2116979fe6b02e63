/* The plugin: a CodeGeneratorRequest in, a CodeGeneratorResponse out. */
#ifndef PGT_PLUGIN_H
#define PGT_PLUGIN_H

#include "base/buf.h"

/* Appends the serialised response. Returns false with the reason (tc_free) in *why if the bytes are not a request. All
 * other errors (of options, files, protoc-gen-c) are in the response's `error`, as protoc wants. */
bool pgt_run(struct tc_slice request, struct tc_buf *response, char **why);

#endif
