/* Resolves the references between the descriptors of a schema. One thread: the schema is not in use yet. */
#ifndef TC_JSON_LINK_H
#define TC_JSON_LINK_H

#include "json/model.h"

/* Resolves all references of the symbols that are not linked yet. Returns false with an error: nothing that was linked
 * before refers to the new symbols then, and the caller drops their files. On success the caller sets `was_linked` and
 * `linked`. */
bool tc_schema_resolve(torc_schema *schema, torc_error **error);

#endif
