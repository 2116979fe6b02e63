/* Checks the bytes of a protobuf message before they are unpacked: protobuf-c 1.4.1 recurses without a limit, cuts
 * strings at a NUL, accepts invalid UTF-8 and keeps unknown fields. The walk is iterative and follows the descriptor;
 * it allocates nothing for most messages, at most two arrays for messages that are deep or whose types have many
 * fields, and a copy of the kept bytes only when something is stripped. Pure functions, any thread. */
#ifndef TC_PROTO_SCAN_H
#define TC_PROTO_SCAN_H

#include <protobuf-c/protobuf-c.h>

#include "base/validation_errors.h"

/* Limits of a received message; stub/check.c applies them to a message to be packed, and counts only the messages in
 * it as values. A message counts as one value, and as one more for each TC_FIELDS_PER_VALUE fields of its type. */
enum { TC_MESSAGE_DEPTH = 100, TC_MESSAGE_VALUES = 4194304, TC_FIELDS_PER_VALUE = 64 };

/* Zero in any member takes the default. */
struct tc_scan_options {
    size_t max_depth;         /* messages within messages, the outermost not counted; 100 */
    size_t max_repeated;      /* occurrences of one field in one message, packed elements too; 65,536 */
    size_t max_elements;      /* values in the whole message: occurrences of known fields, packed elements too, and one
                                 more for each TC_FIELDS_PER_VALUE fields of a message's type; 4,194,304 */
    size_t max_string_bytes;  /* of one string field; 1 MiB */
    size_t max_unknown_bytes; /* of fields that are stripped, in all; 4 MiB */
};

/* Walks `bytes` as a message of `type`, and returns 0 if it is accepted. Then `*out` is `bytes` itself when every field
 * is known. Else `*out` is a copy without the unknown fields, in `clean`, an initialised buffer whose old content is
 * dropped. A field whose wire type does not fit its declaration is unknown, as parsers have it. The content of a
 * google.protobuf.Any is not looked into: tc_unpack of the content scans it. NULL options are the defaults.
 *
 * A refused message adds a validation error and leaves `*out` untouched. The error is at the field's path, or at the
 * path of the message around it if the field could not be read or stripped. Returns TORC_EPARSE for a message that is
 * cut short, groups, impossible field numbers and wire types, varints that are too long, malformed packed values,
 * strings with invalid UTF-8 or a NUL, and a required field of proto2 that is missing, with or without a default.
 * Returns TORC_ELIMIT if a limit is exceeded, or if there is no memory for the copy. */
int tc_scan(const ProtobufCMessageDescriptor *type, struct tc_slice bytes, const struct tc_scan_options *options,
            struct tc_buf *clean, struct tc_slice *out, struct tc_validation_errors *errors);

/* Pushes a field of a message on the path of errors, with the index if it is repeated; SIZE_MAX: the whole field. The
 * caller pops it. */
static inline void tc_scan_push(struct tc_validation_errors *errors, const ProtobufCFieldDescriptor *field,
                                size_t index)
{
    if (field->label == PROTOBUF_C_LABEL_REPEATED && index != SIZE_MAX)
        tc_validation_push(errors, ".%s[%zu]", field->name, index);
    else
        tc_validation_push(errors, ".%s", field->name);
}

#endif
