/* Reads the outermost fields of a serialised message one by one, without unpacking it: for a short message, for a name
 * in it, or for what can be read of a malformed message. Also has the types of fields as protobuf-c stores them, and
 * functions that write a field. Pure functions, any thread. */
#ifndef TC_PROTO_WIRE_H
#define TC_PROTO_WIRE_H

#include <protobuf-c/protobuf-c.h>

#include "base/buf.h"

enum tc_wire { TC_WIRE_VARINT, TC_WIRE_64BIT, TC_WIRE_LENGTH, TC_WIRE_32BIT = 5 };

/* The kind of a field's values: what protobuf-c's structs and JSON distinguish. */
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

/* Indexed by ProtobufCType. */
extern const struct tc_field_type tc_field_types[];

/* Reads the varint at `p` of at most `max` bytes, which must not be more than 10. Returns its width, or 0 with *value
 * untouched when it is cut short or longer. */
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

/* Takes the next field off the front of *rest. Returns false when *rest is empty, and then leaves it so. Returns false
 * too when the field cannot be read: *rest may be empty then as well, so a caller that must tell the two apart checks
 * rest->len before each call. *out is unspecified when false is returned. */
bool tc_wire_next(struct tc_slice *rest, struct tc_wire_field *out);

/* Returns the payload of the last length-delimited field (string, bytes, message) with this number among the outermost
 * fields, as far as they can be read. Its data is NULL when there is no such field. Borrowed; the payload is not
 * checked. */
struct tc_slice tc_wire_find(struct tc_slice message, uint64_t number);

void tc_wire_append_varint(struct tc_buf *out, uint64_t v);
/* Appends a length-delimited field. */
void tc_wire_append(struct tc_buf *out, unsigned number, struct tc_slice value);
/* Appends the tag and the length of a length-delimited field; the caller appends the `len` bytes of its payload. */
void tc_wire_append_head(struct tc_buf *out, unsigned number, size_t len);

#endif
