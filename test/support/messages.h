/* Protobuf messages, field by field: each function appends the field with the number `field` to `b`. */
#ifndef TC_SUPPORT_MESSAGES_H
#define TC_SUPPORT_MESSAGES_H

#include "base/buf.h"

/* Appends a varint. */
void message_number(struct tc_buf *b, unsigned field, uint64_t v);
void message_bytes(struct tc_buf *b, unsigned field, const void *data, size_t len);
void message_text(struct tc_buf *b, unsigned field, const char *text);
/* Appends the message `inner` as a field of `b`, and frees the memory of `inner`. */
void message_within(struct tc_buf *b, unsigned field, struct tc_buf *inner);

#endif
