/* The plugin: a CodeGeneratorRequest in, a CodeGeneratorResponse out. */
#ifndef PGT_PLUGIN_H
#define PGT_PLUGIN_H

#include "base/buf.h"

/* Appends the serialised response. Returns false with the reason (tc_free) in *why, and appends nothing, if the bytes
 * are not a request, or exceed the default depth or number of values of proto/scan.h. All other errors (of options,
 * files, protoc-gen-c) are in the response's `error`, as protoc wants, and the response then has no files. One thread
 * at a time. */
bool pgt_run(struct tc_slice request, struct tc_buf *response, char **why);

#endif
