/* Checks a message of the application before protobuf-c packs it.
 *
 * protobuf-c follows the pointers of strings and nested messages unchecked: NULL in a list, or a message that was not
 * initialised, crashes the process. It packs a required field that is NULL as an empty field, and a string that is not
 * UTF-8 as it is. It leaves out a oneof whose case is none of its fields. Receivers reject such a message, or miss a
 * field, far from the fault.
 *
 * The walk recurses as protobuf-c's does. It has the limits of a received message on depth and number of messages
 * (proto/scan.h), which also end the walk of a message that contains itself. It stops at the first error, changes and
 * keeps nothing, and allocates memory for the error alone. Any thread, while no thread changes the message.
 *
 * To read: message_check, then value_check. */
#include "base/parse.h"
#include "proto/scan.h"
#include "stub/codec.h"

/* A message that the walk is inside of. */
struct place {
    const struct place *above;             /* NULL: the outermost */
    const ProtobufCFieldDescriptor *field; /* of the message above; NULL for the outermost */
    size_t index;                          /* of the element, if the field is repeated */
};

/* How far the walk is. `depth` is that of the message that is checked; the outermost message has 0. `values` counts the
 * messages so far as proto/scan.h counts values, without the outermost. */
struct pack_check {
    size_t depth, values;
    uint64_t bytes; /* of strings and bytes so far */
    struct tc_validation_errors *errors;
};

/* Pushes the fields that lead to the message at `place` on the path of errors. Returns how many they are. */
static size_t places_push(struct tc_validation_errors *errors, const struct place *place)
{
    if (!place->above)
        return 0;
    size_t n = places_push(errors, place->above);
    tc_scan_push(errors, place->field, place->index);
    return n + 1;
}

/* Adds an error at a field of the message at `place`, and returns `code`. `index` counts for a repeated field alone;
 * SIZE_MAX: the whole field. */
static TC_PRINTF(6, 7) int fail(struct pack_check *c, const struct place *place, const ProtobufCFieldDescriptor *field,
                                size_t index, int code, const char *fmt, ...)
{
    struct tc_buf text = {0};
    va_list ap;
    va_start(ap, fmt);
    tc_buf_vprintf(&text, fmt, ap);
    va_end(ap);
    size_t n = places_push(c->errors, place);
    tc_scan_push(c->errors, field, index);
    tc_validation_add(c->errors, "%s", tc_buf_cstr(&text));
    for (n++; n; n--)
        tc_validation_pop(c->errors);
    tc_buf_fini(&text);
    return code;
}

/* Checks the fields of the message at `place`. Returns 0, or the code of the first error, which it adds. */
static int message_check(struct pack_check *c, const struct place *place, const ProtobufCMessage *message);

/* Checks a message in a field of the message at `place`. `message` must not be NULL. */
static int nested_check(struct pack_check *c, const struct place *place, const ProtobufCFieldDescriptor *field,
                        size_t index, const ProtobufCMessage *message)
{
    const ProtobufCMessageDescriptor *wanted = field->descriptor, *type = message->descriptor;
    if (!type || (type != wanted && strcmp(type->name, wanted->name) != 0))
        return fail(c, place, field, index, TORC_EINVAL, "is not an initialised %s", wanted->name);
    if (c->depth == TC_MESSAGE_DEPTH)
        return fail(c, place, field, index, TORC_ELIMIT, "more than %d messages within each other", TC_MESSAGE_DEPTH);
    c->values += 1 + type->n_fields / TC_FIELDS_PER_VALUE;
    if (c->values > TC_MESSAGE_VALUES)
        return fail(c, place, field, index, TORC_ELIMIT, "the message has more than %d messages", TC_MESSAGE_VALUES);
    c->depth++;
    int rv = message_check(c, &(struct place){place, field, index}, message);
    c->depth--;
    return rv;
}

/* Checks one value of a type that has a pointer: `value` is the address of a ProtobufCBinaryData, of a string's pointer
 * or of a message's pointer, which may be NULL. */
static int value_check(struct pack_check *c, const struct place *place, const ProtobufCFieldDescriptor *field,
                       size_t index, const void *value)
{
    struct tc_slice bytes;
    if (field->type == PROTOBUF_C_TYPE_BYTES) {
        const ProtobufCBinaryData *data = value;
        bytes = tc_slice_of((const char *)data->data, data->len);
        if (!bytes.data && bytes.len)
            return fail(c, place, field, index, TORC_EINVAL, "is NULL, and has %zu bytes", bytes.len);
    } else {
        const void *pointer = *(const void *const *)value;
        if (!pointer && field->label == PROTOBUF_C_LABEL_REQUIRED)
            return fail(c, place, field, index, TORC_EINVAL, "is required, and missing");
        if (!pointer && (field->label == PROTOBUF_C_LABEL_REPEATED || field->flags & PROTOBUF_C_FIELD_FLAG_ONEOF))
            return fail(c, place, field, index, TORC_EINVAL, "is NULL");
        if (!pointer)
            return 0;
        if (field->type == PROTOBUF_C_TYPE_MESSAGE)
            return nested_check(c, place, field, index, pointer);
        bytes = tc_slice_str(pointer);
        if (!tc_utf8_valid(bytes))
            return fail(c, place, field, index, TORC_EINVAL, "is not valid UTF-8");
    }
    c->bytes += bytes.len;
    return c->bytes <= UINT32_MAX
               ? 0
               : fail(c, place, field, index, TORC_ELIMIT, "the message has more than 4 GiB of text");
}

/* Checks a repeated field whose values take `step` bytes each. `step` 0: the type has no pointer, and the values are
 * not looked at. */
static int repeated_check(struct pack_check *c, const struct place *place, const ProtobufCMessage *message,
                          const ProtobufCFieldDescriptor *field, size_t step)
{
    size_t n = *(const size_t *)((const char *)message + field->quantifier_offset);
    const char *values = *(const char *const *)((const char *)message + field->offset);
    if (n && !values)
        return fail(c, place, field, SIZE_MAX, TORC_EINVAL, "is NULL, and has %zu values", n);
    int rv = 0;
    for (size_t i = 0; step && i < n && rv == 0; i++)
        rv = value_check(c, place, field, i, values + i * step);
    return rv;
}

/* Returns the number of the field that is set in the oneof of `field`; 0: none. */
static uint32_t case_of(const ProtobufCMessage *message, const ProtobufCFieldDescriptor *field)
{
    return *(const uint32_t *)((const char *)message + field->quantifier_offset);
}

/* Checks the case of the oneof that `field` is in. */
static int oneof_check(struct pack_check *c, const struct place *place, const ProtobufCMessage *message,
                       const ProtobufCFieldDescriptor *field)
{
    uint32_t number = case_of(message, field);
    const ProtobufCFieldDescriptor *chosen =
        number ? protobuf_c_message_descriptor_get_field(message->descriptor, number) : field;
    if (chosen && chosen->flags & PROTOBUF_C_FIELD_FLAG_ONEOF && chosen->quantifier_offset == field->quantifier_offset)
        return 0;
    return fail(c, place, field, SIZE_MAX, TORC_EINVAL, "is in a oneof whose case is %u, which is none of its fields",
                number);
}

static int message_check(struct pack_check *c, const struct place *place, const ProtobufCMessage *message)
{
    static const uint8_t steps[] = {[PROTOBUF_C_TYPE_STRING] = sizeof(char *),
                                    [PROTOBUF_C_TYPE_BYTES] = sizeof(ProtobufCBinaryData),
                                    [PROTOBUF_C_TYPE_MESSAGE] = sizeof(void *)};
    unsigned oneof = 0; /* the last oneof that was checked, by its case's offset */
    int rv = 0;
    for (unsigned i = 0; i < message->descriptor->n_fields && rv == 0; i++) {
        const ProtobufCFieldDescriptor *field = &message->descriptor->fields[i];
        size_t step = field->type < TC_ARRAY_LEN(steps) ? steps[field->type] : 0; /* 0: has no pointer */
        if (field->label == PROTOBUF_C_LABEL_REPEATED) {
            rv = repeated_check(c, place, message, field, step);
            continue;
        }
        if (field->flags & PROTOBUF_C_FIELD_FLAG_ONEOF) {
            if (field->quantifier_offset != oneof && (rv = oneof_check(c, place, message, field)) != 0)
                break;
            oneof = field->quantifier_offset;
            if (case_of(message, field) != field->id)
                continue;
        }
        if (step)
            rv = value_check(c, place, field, 0, (const char *)message + field->offset);
    }
    return rv;
}

int tc_codec_check(const ProtobufCMessage *message, struct tc_validation_errors *errors)
{
    struct pack_check check = {.errors = errors};
    return message_check(&check, &(struct place){0}, message);
}
