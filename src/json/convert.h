/* The two conversions; json/convert.c checks their arguments. Any thread. */
#ifndef TC_JSON_CONVERT_H
#define TC_JSON_CONVERT_H

#include "base/buf.h"
#include "json/model.h"

/* tc_json_read appends the wire format of a JSON text, tc_json_write the JSON text of bytes in wire format. `options`
 * are complete: a field that is 0 means 0. Return false with an error; `out` then has what was written before. */
bool tc_json_read(const torc_schema *schema, const torc_schema_message *type, struct tc_slice text,
                  const struct torc_json_options *options, struct tc_buf *out, torc_error **error);
bool tc_json_write(const torc_schema *schema, const torc_schema_message *type, struct tc_slice bytes,
                   const struct torc_json_options *options, struct tc_buf *out, torc_error **error);

#endif
