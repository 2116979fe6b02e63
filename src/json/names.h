/* Names: what an identifier is, and lowerCamelCase. Pure functions, any thread. */
#ifndef TC_JSON_NAMES_H
#define TC_JSON_NAMES_H

#include "base/buf.h"

/* Returns whether the text is an identifier of a .proto file; with `dots`, one or several with dots between
 * them. */
bool tc_name_is_good(struct tc_slice name, bool dots);
/* Appends the name of a field, or a path of such names with dots, in lowerCamelCase, as protoc makes json_name:
 * underscores go, and a lower-case letter right behind one is raised. */
void tc_name_append_camel(struct tc_buf *out, struct tc_slice name);
/* Appends the name in snake_case whose lowerCamelCase is `camel`. Returns false, with a part appended, if `camel` has
 * an underscore. */
bool tc_name_append_snake(struct tc_buf *out, struct tc_slice camel);

#endif
