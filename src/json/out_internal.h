/* Wire format into JSON: what json/out and json/out_known share. For one thread at a time. */
#ifndef TC_JSON_OUT_INTERNAL_H
#define TC_JSON_OUT_INTERNAL_H

#include "json/convert.h"
#include "json/fail.h"
#include "json/gather.h"
#include "json/writer.h"

struct tc_json_out {
    struct tc_json_writer w;
    const torc_schema *schema;
    const struct torc_json_options *options;
    const struct tc_json_step *step; /* the value that is written, for errors; NULL: the message itself */
    torc_error **error;
};

/* Each function writes one value; `depth` is that of the message which is written, or in which the value is. They
 * return false with an error; the text is then incomplete. */

bool tc_json_out_message(struct tc_json_out *o, const torc_schema_message *type, const struct tc_content *content,
                         unsigned depth);
/* The members of a message that has no form of its own; *first as for tc_json_writer_next. */
bool tc_json_out_fields(struct tc_json_out *o, const torc_schema_message *type, const struct tc_content *content,
                        bool *first, unsigned depth);
/* A value of a field: an item's value or bytes. */
bool tc_json_out_value(struct tc_json_out *o, const struct tc_schema_field *f, const struct tc_item *item,
                       unsigned depth);
/* A whole list or map: n entries of one field. */
bool tc_json_out_list(struct tc_json_out *o, const struct tc_entry *entries, size_t n, unsigned depth);
bool tc_json_out_map(struct tc_json_out *o, const struct tc_entry *entries, size_t n, unsigned depth);
/* The value of a field that is not repeated: the last one, or a message of n pieces. */
bool tc_json_out_single(struct tc_json_out *o, const struct tc_entry *entries, size_t n, unsigned depth);
/* A message with a form of its own (json/out_known). */
bool tc_json_out_known(struct tc_json_out *o, const torc_schema_message *type, const struct tc_content *content,
                       unsigned depth);
/* Checks the type and the depth of a message, and the size of the output; `fits` checks the size alone. */
bool tc_json_out_begin(struct tc_json_out *o, const torc_schema_message *type, unsigned depth);
bool tc_json_out_fits(struct tc_json_out *o);
bool tc_json_out_fail(struct tc_json_out *o, int code, const char *fmt, ...) TC_PRINTF(3, 4);

#endif
