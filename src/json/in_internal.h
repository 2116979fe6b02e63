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
    struct tc_buf text; /* scratch: the string or key that was read last */
};

/* The fate of a value. TC_READ_PASSED_OVER: the enum does not have the value and allow_unknown is set; nothing was
 * written. */
enum tc_json_read { TC_READ_FAILED, TC_READ_DONE, TC_READ_PASSED_OVER };

/* Each function takes one value off the text. Unless said otherwise it appends the wire format of the value, without a
 * tag, to `out`. `depth` is the depth of the message that is read, or of the message in which the value is; the
 * outermost message has depth 1. A function returns false (TC_READ_FAILED is 0) with an error. */

bool tc_json_in_message(struct tc_json_in *in, const torc_schema_message *type, unsigned depth);
/* A message without a JSON form of its own, within an Any: the member "@type" is skipped. */
bool tc_json_in_content(struct tc_json_in *in, const torc_schema_message *type, unsigned depth);
/* A value of a field, or one element of a list. `tagged`: the tag comes first, and the default value of a field without
 * presence that is not repeated is left out. */
enum tc_json_read tc_json_in_value(struct tc_json_in *in, const struct tc_schema_field *f, bool tagged, unsigned depth);
/* An object whose members are the entries of a map; each entry is appended with its tag. */
bool tc_json_in_map(struct tc_json_in *in, const struct tc_schema_field *f, unsigned depth);
/* A string, into `text`; nothing is appended to `out`. */
bool tc_json_in_string(struct tc_json_in *in);
/* A message with a form of its own (json/in_known). */
bool tc_json_in_known(struct tc_json_in *in, const torc_schema_message *type, unsigned depth);
/* Reads a double, from a number or a string with a number, and writes nothing. `special`: also from the strings "NaN",
 * "Infinity" and "-Infinity". */
bool tc_json_in_double(struct tc_json_in *in, bool special, double *out);

/* Append a tag, and the low `width` bytes of v, lowest first. */
void tc_json_in_tag(struct tc_json_in *in, int32_t number, unsigned wire);
void tc_json_in_fixed(struct tc_json_in *in, uint64_t v, size_t width);
/* Begin and end content that has its length in front. Begin returns what end takes as `begin`. End writes the length,
 * and returns where in `out` the content now begins. */
size_t tc_json_in_begin(struct tc_json_in *in);
size_t tc_json_in_end(struct tc_json_in *in, size_t begin);

#endif
