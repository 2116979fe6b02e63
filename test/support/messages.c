#include "support/messages.h"

#include "proto/wire.h"

void message_number(struct tc_buf *b, unsigned field, uint64_t v)
{
    tc_wire_append_varint(b, field << 3);
    tc_wire_append_varint(b, v);
}

void message_bytes(struct tc_buf *b, unsigned field, const void *data, size_t len)
{
    tc_wire_append(b, field, tc_slice_of(data, len));
}

void message_text(struct tc_buf *b, unsigned field, const char *text)
{
    tc_wire_append(b, field, tc_slice_str(text));
}

void message_within(struct tc_buf *b, unsigned field, struct tc_buf *inner)
{
    tc_wire_append(b, field, tc_buf_slice(inner));
    tc_buf_fini(inner);
}
