/* Which message types have a JSON form of their own. Pure functions, any thread. */
#ifndef TC_JSON_KNOWN_H
#define TC_JSON_KNOWN_H

#include "json/model.h"

/* Stores which well-known type a message is by its name, or TC_KNOWN_NONE. The fields must have their types, and
 * all messages their tables. Returns false if the name is that of a well-known type but the fields are not: the readers
 * and writers of its JSON rely on the fields. */
bool tc_known_of(const torc_schema_message *m, enum tc_known *out);

#endif
