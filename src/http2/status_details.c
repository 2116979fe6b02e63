/* The code inside grpc-status-details-bin, a serialised google.rpc.Status. Only its first field is read: the details
 * belong to the application. */
#include "http2/status_details.h"

enum { CODE_FIELD = 1 };
enum { VARINT = 0, FIXED64 = 1, BYTES = 2, FIXED32 = 5 };

static bool wire_take_varint(struct tc_slice *rest, uint64_t *out)
{
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 64 && rest->len; shift += 7) {
        uint8_t byte = (uint8_t)*rest->data;
        *rest = tc_slice_of(rest->data + 1, rest->len - 1);
        value |= (uint64_t)(byte & 0x7f) << shift;
        if (!(byte & 0x80)) {
            *out = value;
            return true;
        }
    }
    return false;
}

/* Takes the value of a field off the front of `rest`. Stores a varint in *value; other values are skipped. */
static bool wire_take_value(struct tc_slice *rest, unsigned wire_type, uint64_t *value)
{
    uint64_t skip = wire_type == FIXED64 ? 8 : 4;
    if (wire_type == VARINT)
        return wire_take_varint(rest, value);
    if (wire_type == BYTES ? !wire_take_varint(rest, &skip) : wire_type != FIXED64 && wire_type != FIXED32)
        return false;
    if (skip > rest->len)
        return false;
    *rest = tc_slice_of(rest->data + skip, rest->len - (size_t)skip);
    return true;
}

bool tc_h2_details_code(struct tc_slice details, uint64_t *code)
{
    bool found = false;
    while (details.len) {
        uint64_t tag, value = 0;
        if (!wire_take_varint(&details, &tag) || !wire_take_value(&details, (unsigned)(tag & 7), &value))
            return false;
        if (tag == (CODE_FIELD << 3 | VARINT)) {
            *code = (uint32_t)value;
            found = true;
        }
    }
    return found;
}
