/* JSON into wire format: what json/in and json/in_known share. For one thread at a time. */
#ifndef TC_JSON_IN_INTERNAL_H
#define TC_JSON_IN_INTERNAL_H

#include "json/convert.h"
#include "json/reader.h"

struct tc_json_in {
    struct tc_json_reader r;
    const torc_schema *schema;
    const struct torc_json_options *options;
    struct tc_buf out;  /* wire format */
    struct tc_buf text; /* scratch: the last string or key that was read */
};

/* The fate of a value. Passed over: the enum does not have it and allow_unknown is set; nothing was written. */
enum tc_json_read { TC_READ_FAILED, TC_READ_DONE, TC_READ_PASSED_OVER };

/* Each function takes one value off the text and, unless said otherwise, appends its wire format without a tag to
 * `out`; `depth` is that of the message which is read, or of the message in which a value is. A function returns false
 * (TC_READ_FAILED is 0) with an error. */

bool tc_json_in_message(struct tc_json_in *in, const torc_schema_message *type, unsigned depth);
/* A message that has no form of its own, within an Any: @type is not a field of it. */
bool tc_json_in_content(struct tc_json_in *in, const torc_schema_message *type, unsigned depth);
/* A value of a field, not a list. `tagged`: with its tag, and nothing for the default value of a field without
 * presence, unless the field is repeated. */
enum tc_json_read tc_json_in_value(struct tc_json_in *in, const struct tc_schema_field *f, bool tagged, unsigned depth);
/* An object whose members are the entries of a map; each entry is appended with its tag. */
bool tc_json_in_map(struct tc_json_in *in, const struct tc_schema_field *f, unsigned depth);
/* A string, into `text`; nothing is appended to `out`. */
bool tc_json_in_string(struct tc_json_in *in);
/* A message with a form of its own (json/in_known). */
bool tc_json_in_known(struct tc_json_in *in, const torc_schema_message *type, unsigned depth);
/* Reads a double, and writes nothing. `special`: the strings "NaN", "Infinity" and "-Infinity" are allowed. */
bool tc_json_in_double(struct tc_json_in *in, bool special, double *out);

void tc_json_in_tag(struct tc_json_in *in, int32_t number, unsigned wire);
void tc_json_in_fixed(struct tc_json_in *in, uint64_t v, size_t width);
/* Begin and end content that has its length in front. Begin returns the value for `begin`; end writes the length, and
 * returns where in `out` the content begins. */
size_t tc_json_in_begin(struct tc_json_in *in);
size_t tc_json_in_end(struct tc_json_in *in, size_t begin);

#endif
