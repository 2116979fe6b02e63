/* The wire format by hand, for the outermost level of a message only.
 *
 * Reading allocates nothing, and checks nothing but the bounds of the bytes, so that a message which protobuf-c would
 * reject can still give its name. The walk ends at a group, and at anything else that cannot be read; a caller may use
 * the fields before it. */
#include "proto/wire.h"

const struct tc_field_type tc_field_types[] = {
    [PROTOBUF_C_TYPE_INT32] = {TC_FIELD_I32, TC_WIRE_VARINT, 4},
    [PROTOBUF_C_TYPE_SINT32] = {TC_FIELD_I32, TC_WIRE_VARINT, 4},
    [PROTOBUF_C_TYPE_SFIXED32] = {TC_FIELD_I32, TC_WIRE_32BIT, 4},
    [PROTOBUF_C_TYPE_INT64] = {TC_FIELD_I64, TC_WIRE_VARINT, 8},
    [PROTOBUF_C_TYPE_SINT64] = {TC_FIELD_I64, TC_WIRE_VARINT, 8},
    [PROTOBUF_C_TYPE_SFIXED64] = {TC_FIELD_I64, TC_WIRE_64BIT, 8},
    [PROTOBUF_C_TYPE_UINT32] = {TC_FIELD_U32, TC_WIRE_VARINT, 4},
    [PROTOBUF_C_TYPE_FIXED32] = {TC_FIELD_U32, TC_WIRE_32BIT, 4},
    [PROTOBUF_C_TYPE_UINT64] = {TC_FIELD_U64, TC_WIRE_VARINT, 8},
    [PROTOBUF_C_TYPE_FIXED64] = {TC_FIELD_U64, TC_WIRE_64BIT, 8},
    [PROTOBUF_C_TYPE_FLOAT] = {TC_FIELD_FLOAT, TC_WIRE_32BIT, 4},
    [PROTOBUF_C_TYPE_DOUBLE] = {TC_FIELD_DOUBLE, TC_WIRE_64BIT, 8},
    [PROTOBUF_C_TYPE_BOOL] = {TC_FIELD_BOOL, TC_WIRE_VARINT, sizeof(protobuf_c_boolean)},
    [PROTOBUF_C_TYPE_ENUM] = {TC_FIELD_ENUM, TC_WIRE_VARINT, sizeof(int)},
    [PROTOBUF_C_TYPE_STRING] = {TC_FIELD_STRING, TC_WIRE_LENGTH, sizeof(char *)},
    [PROTOBUF_C_TYPE_BYTES] = {TC_FIELD_BYTES, TC_WIRE_LENGTH, sizeof(ProtobufCBinaryData)},
    [PROTOBUF_C_TYPE_MESSAGE] = {TC_FIELD_MESSAGE, TC_WIRE_LENGTH, sizeof(ProtobufCMessage *)},
};

static bool slice_take_varint(struct tc_slice *at, uint64_t *out)
{
    /* The data of an empty slice may be NULL. */
    size_t width = at->len ? tc_wire_varint(at->data, at->data + at->len, 10, out) : 0;
    if (!width)
        return false;
    *at = tc_slice_of(at->data + width, at->len - width);
    return true;
}

bool tc_wire_next(struct tc_slice *rest, struct tc_wire_field *out)
{
    uint64_t tag, n;
    if (!slice_take_varint(rest, &tag))
        return false;
    *out = (struct tc_wire_field){.number = tag >> 3,
                                  .is_bytes = (tag & 7) == TC_WIRE_LENGTH,
                                  .is_varint = (tag & 7) == TC_WIRE_VARINT,
                                  .is_64bit = (tag & 7) == TC_WIRE_64BIT};
    switch (tag & 7) {
    case TC_WIRE_VARINT:
        return slice_take_varint(rest, &out->varint);
    case TC_WIRE_64BIT:
        n = 8;
        break;
    case TC_WIRE_32BIT:
        n = 4;
        break;
    case TC_WIRE_LENGTH:
        if (!slice_take_varint(rest, &n))
            return false;
        break;
    default:
        return false;
    }
    if (n > rest->len)
        return false;
    if (out->is_bytes || out->is_64bit)
        out->value = tc_slice_of(rest->data, (size_t)n);
    *rest = tc_slice_of(rest->data + n, rest->len - (size_t)n);
    return true;
}

/* Reads to the end: protobuf takes the last occurrence of a singular field. */
struct tc_slice tc_wire_find(struct tc_slice message, uint64_t number)
{
    struct tc_slice found = {0};
    struct tc_wire_field f;
    while (tc_wire_next(&message, &f))
        if (f.is_bytes && f.number == number)
            found = f.value;
    return found;
}

void tc_wire_append_varint(struct tc_buf *out, uint64_t v)
{
    for (; v > 0x7f; v >>= 7)
        tc_buf_append_char(out, (char)(v | 0x80));
    tc_buf_append_char(out, (char)v);
}

void tc_wire_append_head(struct tc_buf *out, unsigned number, size_t len)
{
    tc_wire_append_varint(out, number << 3 | TC_WIRE_LENGTH);
    tc_wire_append_varint(out, len);
}

void tc_wire_append(struct tc_buf *out, unsigned number, struct tc_slice value)
{
    tc_wire_append_head(out, number, value.len);
    tc_buf_append_slice(out, value);
}
