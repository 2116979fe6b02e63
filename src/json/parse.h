/* Descriptors in wire format into the structs of json/model.h. */
#ifndef TC_JSON_PARSE_H
#define TC_JSON_PARSE_H

#include "json/model.h"

/* Adds a file and its symbols, unlinked, to the schema, whose arena has `bytes`. Returns false with an error; the
 * schema may then have symbols of the file, which the caller takes off. */
bool tc_schema_parse(torc_schema *schema, struct tc_slice bytes, torc_error **error);

#endif
