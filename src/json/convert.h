/* The two conversions. json/convert.c checks their arguments, and the size of the output. Any thread. */
#ifndef TC_JSON_CONVERT_H
#define TC_JSON_CONVERT_H

#include "base/buf.h"
#include "json/model.h"

/* tc_json_read appends a message in wire format, made from JSON text; tc_json_write appends JSON text, made from wire
 * format. The schema must be linked. In `options` switches are 0 or 1, and max_depth and max_bytes are not 0. Return
 * false with an error; `out` then has a part of the output. */
bool tc_json_read(const torc_schema *schema, const torc_schema_message *type, struct tc_slice text,
                  const struct torc_json_options *options, struct tc_buf *out, torc_error **error);
bool tc_json_write(const torc_schema *schema, const torc_schema_message *type, struct tc_slice bytes,
                   const struct torc_json_options *options, struct tc_buf *out, torc_error **error);

#endif
