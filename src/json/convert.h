/* The two conversions; json/convert.c checks their arguments. Any thread. */
#ifndef TC_JSON_CONVERT_H
#define TC_JSON_CONVERT_H

#include "base/buf.h"
#include "json/model.h"

/* Append the one in the form of the other. `options` are complete: a field that is 0 means 0. Return false with an
 * error; `out` then has what was written until then. */
bool tc_json_read(const torc_schema *schema, const torc_schema_message *type, struct tc_slice text,
                  const struct torc_json_options *options, struct tc_buf *out, torc_error **error);
bool tc_json_write(const torc_schema *schema, const torc_schema_message *type, struct tc_slice bytes,
                   const struct torc_json_options *options, struct tc_buf *out, torc_error **error);

#endif
