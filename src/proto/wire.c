#include "proto/wire.h"

enum { VARINT, FIXED64, LENGTH, FIXED32 = 5 }; /* wire types */

static bool take_varint(struct tc_slice *at, uint64_t *out)
{
    uint64_t v = 0;
    for (unsigned i = 0; i < 10 && i < at->len; i++) {
        unsigned char c = (unsigned char)at->data[i];
        v |= (uint64_t)(c & 0x7f) << (7 * i);
        if (c < 0x80) {
            *at = tc_slice_of(at->data + i + 1, at->len - i - 1);
            *out = v;
            return true;
        }
    }
    return false;
}

bool tc_wire_next(struct tc_slice *rest, struct tc_wire_field *out)
{
    uint64_t tag, n;
    if (!take_varint(rest, &tag))
        return false;
    *out = (struct tc_wire_field){.number = tag >> 3, .is_bytes = (tag & 7) == LENGTH};
    switch (tag & 7) {
    case VARINT:
        return take_varint(rest, &n);
    case FIXED64:
        n = 8;
        break;
    case FIXED32:
        n = 4;
        break;
    case LENGTH:
        if (!take_varint(rest, &n))
            return false;
        break;
    default:
        return false;
    }
    if (n > rest->len)
        return false;
    if (out->is_bytes)
        out->value = tc_slice_of(rest->data, (size_t)n);
    *rest = tc_slice_of(rest->data + n, rest->len - (size_t)n);
    return true;
}

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
    tc_wire_append_varint(out, number << 3 | LENGTH);
    tc_wire_append_varint(out, len);
}

void tc_wire_append(struct tc_buf *out, unsigned number, struct tc_slice value)
{
    tc_wire_append_head(out, number, value.len);
    tc_buf_append_slice(out, value);
}
