/* The outermost fields of a serialised message, one after another, without unpacking it: to read a short message, to
 * find a name, or to find what can be read of a message that is malformed further on. Also the types of fields as
 * protobuf-c has them, and functions that write a field. Pure functions, any thread. */
#ifndef TC_PROTO_WIRE_H
#define TC_PROTO_WIRE_H

#include <protobuf-c/protobuf-c.h>

#include "base/buf.h"

enum tc_wire { TC_WIRE_VARINT, TC_WIRE_64BIT, TC_WIRE_LENGTH, TC_WIRE_32BIT = 5 };

/* The kind of a field's values: protobuf-c's structs and JSON tell these kinds apart. */
enum tc_field_kind {
    TC_FIELD_I32,
    TC_FIELD_U32,
    TC_FIELD_I64,
    TC_FIELD_U64,
    TC_FIELD_FLOAT,
    TC_FIELD_DOUBLE,
    TC_FIELD_BOOL,
    TC_FIELD_ENUM,
    TC_FIELD_STRING,
    TC_FIELD_BYTES,
    TC_FIELD_MESSAGE,
};

/* How the values of a field are kept and sent. */
struct tc_field_type {
    enum tc_field_kind kind;
    enum tc_wire wire;
    size_t bytes; /* of one value in protobuf-c's structs */
};

/* By ProtobufCType. */
extern const struct tc_field_type tc_field_types[];

/* Reads the varint at `p` of at most `max` bytes. Returns its width; 0 when it is cut short or longer. */
static inline size_t tc_wire_varint(const char *p, const char *end, size_t max, uint64_t *value)
{
    uint64_t v = 0;
    for (size_t i = 0; i < max && p + i < end; i++) {
        uint8_t byte = (uint8_t)p[i];
        v |= (uint64_t)(byte & 0x7f) << (7 * i);
        if (byte < 0x80) {
            *value = v;
            return i + 1;
        }
    }
    return 0;
}

struct tc_wire_field {
    uint64_t number;
    bool is_bytes; /* length-delimited: a string, bytes, a message */
    bool is_varint;
    bool is_64bit;         /* a double, or 64 bits of fixed width */
    struct tc_slice value; /* the payload when is_bytes or is_64bit, borrowed */
    uint64_t varint;       /* the value when is_varint, else 0 */
};

/* Takes the next field off the front of *rest. Returns false when there is no further field that can be read; *rest and
 * *out are undefined then. */
bool tc_wire_next(struct tc_slice *rest, struct tc_wire_field *out);

/* Returns the last string or message of that number among the outermost fields, as far as they can be read; its data is
 * NULL when there is no such field. Borrowed, and not checked in any way. */
struct tc_slice tc_wire_find(struct tc_slice message, uint64_t number);

void tc_wire_append_varint(struct tc_buf *out, uint64_t v);
/* Appends a field that is a string, bytes or a message; or only its head, after which `len` bytes must follow. */
void tc_wire_append(struct tc_buf *out, unsigned number, struct tc_slice value);
void tc_wire_append_head(struct tc_buf *out, unsigned number, size_t len);

#endif
