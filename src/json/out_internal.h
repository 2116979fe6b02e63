/* Wire format into JSON: what json/out and json/out_known share. For one thread at a time. */
#ifndef TC_JSON_OUT_INTERNAL_H
#define TC_JSON_OUT_INTERNAL_H

#include "json/convert.h"
#include "json/fail.h"
#include "json/gather.h"
#include "json/writer.h"

struct tc_json_out {
    struct tc_json_writer w; /* w.out is the caller's buffer */
    const torc_schema *schema;
    const struct torc_json_options *options;
    const struct tc_json_step *step; /* the way to the value that is written, for errors; NULL: the message itself */
    torc_error **error;
};

/* On failure all functions return false with an error; the text is then incomplete. `depth` is the depth of the message
 * that is written, or of the message that has the field; the outermost message has depth 1. */

bool tc_json_out_message(struct tc_json_out *o, const torc_schema_message *type, const struct tc_content *content,
                         unsigned depth);
/* Writes the members of a message that has no form of its own, without braces; *first as for tc_json_writer_next. */
bool tc_json_out_fields(struct tc_json_out *o, const torc_schema_message *type, const struct tc_content *content,
                        bool *first, unsigned depth);
/* Writes one value of a field: the value or the bytes of the item, whose number and wire type are not read. */
bool tc_json_out_value(struct tc_json_out *o, const struct tc_schema_field *f, const struct tc_item *item,
                       unsigned depth);
/* Write a whole list or map: n entries of one field; n may be 0. */
bool tc_json_out_list(struct tc_json_out *o, const struct tc_entry *entries, size_t n, unsigned depth);
bool tc_json_out_map(struct tc_json_out *o, const struct tc_entry *entries, size_t n, unsigned depth);
/* Writes a field that is not repeated, of n >= 1 entries: the last value, or the message that the entries are pieces
 * of. */
bool tc_json_out_single(struct tc_json_out *o, const struct tc_entry *entries, size_t n, unsigned depth);
/* Writes a message with a form of its own (json/out_known). */
bool tc_json_out_known(struct tc_json_out *o, const torc_schema_message *type, const struct tc_content *content,
                       unsigned depth);
/* Checks that a message may be written: its type, its depth, and the size of the output. */
bool tc_json_out_begin(struct tc_json_out *o, const torc_schema_message *type, unsigned depth);
/* Checks that the output is not larger than max_bytes. */
bool tc_json_out_fits(struct tc_json_out *o);
/* Stores an error that names the field of `step`. Returns false. */
bool tc_json_out_fail(struct tc_json_out *o, int code, const char *fmt, ...) TC_PRINTF(3, 4);

#endif
