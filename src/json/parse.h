/* Descriptors in wire format into the structs of json/model.h. */
#ifndef TC_JSON_PARSE_H
#define TC_JSON_PARSE_H

#include "json/model.h"

/* Adds a file with a copy of the bytes, and its symbols, unlinked, to the schema. Returns false with an error; the
 * caller then takes the file and its symbols off again. */
bool tc_schema_parse(torc_schema *schema, struct tc_slice bytes, torc_error **error);

#endif
