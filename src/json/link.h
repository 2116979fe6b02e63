/* Resolves the references between the descriptors of a schema. No other thread may use the schema meanwhile. */
#ifndef TC_JSON_LINK_H
#define TC_JSON_LINK_H

#include "json/model.h"

/* Resolves all references of the symbols that are not linked yet. On success the caller sets `was_linked` and `linked`.
 * Returns false with an error if one fails: the symbols that were linked before are then as they were, and the caller
 * drops the files of the new ones. */
bool tc_schema_resolve(torc_schema *schema, torc_error **error);

#endif
