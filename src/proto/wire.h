/* The outermost fields of a serialised message, one after another, without unpacking it: to find a name, or what can be
 * made out of a message that is malformed further on. */
#ifndef TC_PROTO_WIRE_H
#define TC_PROTO_WIRE_H

#include "base/buf.h"

struct tc_wire_field {
    uint64_t number;
    bool is_bytes;         /* length-delimited: a string, bytes, a message */
    struct tc_slice value; /* of those: the payload, borrowed */
};

/* Takes the next field off the front of *rest. False: there is none, or none that can be read. */
bool tc_wire_next(struct tc_slice *rest, struct tc_wire_field *out);

/* The last string or message of that number among the outermost fields, as far as they can be read; its data is NULL
 * when there is none. Borrowed, and not checked in any way. */
struct tc_slice tc_wire_find(struct tc_slice message, uint64_t number);

void tc_wire_append_varint(struct tc_buf *out, uint64_t v);
/* A field that is a string, bytes or a message; the head of one, of which `len` bytes are to follow. */
void tc_wire_append(struct tc_buf *out, unsigned number, struct tc_slice value);
void tc_wire_append_head(struct tc_buf *out, unsigned number, size_t len);

#endif
