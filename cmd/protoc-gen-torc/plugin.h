/* The plugin: a CodeGeneratorRequest in, a CodeGeneratorResponse out. */
#ifndef PGT_PLUGIN_H
#define PGT_PLUGIN_H

#include "base/buf.h"

/* Appends the serialised response. Faults of the files or the options are reported within the response, as protoc
 * wants. Returns false with the reason (tc_free) in *why if the bytes are not a request. */
bool pgt_run(struct tc_slice request, struct tc_buf *response, char **why);

#endif
