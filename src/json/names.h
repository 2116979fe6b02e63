/* Identifiers, lowerCamelCase and snake_case. Pure functions, any thread. */
#ifndef TC_JSON_NAMES_H
#define TC_JSON_NAMES_H

#include "base/buf.h"

/* Returns whether the text is an identifier of a .proto file, or, if `dots` is set, one or more identifiers joined by
 * dots. */
bool tc_name_is_good(struct tc_slice name, bool dots);
/* Appends a field's name, or a path of such names joined by dots, in lowerCamelCase, as protoc makes json_name: drops
 * each underscore and makes a lower-case letter after it upper case. */
void tc_name_append_camel(struct tc_buf *out, struct tc_slice name);
/* Appends a name or path in snake_case: each upper-case letter becomes an underscore and the lower-case letter. Returns
 * false, with a part appended, if `camel` has an underscore. */
bool tc_name_append_snake(struct tc_buf *out, struct tc_slice camel);

#endif
