/* Serialises a protobuf message. protobuf-c does not check what it packs, so the message must be of Torc's own making,
 * come from tc_unpack, or have passed stub/check.c. Any thread. */
#ifndef TC_PROTO_PACK_H
#define TC_PROTO_PACK_H

#include <protobuf-c/protobuf-c.h>

#include "base/buf.h"

/* Appends the bytes of the message. */
static inline void tc_pack(const ProtobufCMessage *message, struct tc_buf *out)
{
    size_t size = protobuf_c_message_get_packed_size(message);
    protobuf_c_message_pack(message, (uint8_t *)tc_buf_reserve(out, size));
    out->len += size;
}

#endif
