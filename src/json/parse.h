/* Descriptors in wire format into the structs of json/model.h. No other thread may use the schema meanwhile. */
#ifndef TC_JSON_PARSE_H
#define TC_JSON_PARSE_H

#include "json/model.h"

/* Adds a file with a copy of the bytes to the schema, and its symbols, unlinked, to `added`. Counts items and memory
 * in schema->size; the caller counts files, symbols and bytes. Returns false with an error: the caller then drops the
 * file and its symbols and restores schema->size. */
bool tc_schema_parse(torc_schema *schema, struct tc_slice bytes, torc_error **error);

#endif
