/* The text of NAME.torc.h and NAME.torc.c. */
#ifndef PGT_EMIT_H
#define PGT_EMIT_H

#include "options.h"
#include "schema.h"

/* Appends both texts for a file of the schema. Returns false with the reason (tc_free) in *why if a name is not an
 * identifier, a type is not in the request, or two services or methods have one name in C. The texts are incomplete
 * then. */
bool pgt_emit(const struct pgt_schema *schema, const struct pgt_options *options, const pgt_file *file,
              struct tc_buf *header, struct tc_buf *source, char **why);

#endif
