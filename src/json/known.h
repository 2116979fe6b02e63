/* Which message types have a JSON form of their own. Pure functions, any thread. */
#ifndef TC_JSON_KNOWN_H
#define TC_JSON_KNOWN_H

#include "json/model.h"

/* Stores what the name of a message stands for; its fields and tables are linked. Returns false if the name is that of
 * a well-known type and the fields are not: the readers and writers of its form rely on them. */
bool tc_known_of(const torc_schema_message *m, enum tc_known *out);

#endif
