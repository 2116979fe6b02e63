/* Reads a serialised message field by field. Knows groups, which proto/wire.h does not. Pure functions, any thread. */
#ifndef TC_JSON_ITEM_H
#define TC_JSON_ITEM_H

#include "proto/wire.h"

enum { TC_ITEM_GROUP = 3, TC_ITEM_GROUP_END = 4, TC_ITEM_MAX_DEPTH = 100 };

struct tc_item {
    uint32_t number;
    uint8_t wire;          /* enum tc_wire, or TC_ITEM_GROUP */
    uint64_t value;        /* of a varint, or of 32 or 64 bits; else 0 */
    struct tc_slice bytes; /* of a length-delimited field, or of a group without its tags; borrowed; else empty */
};

/* Takes the next field off the front of *rest. Returns 1; 0 at the end; or -1, with *rest and *out undefined, if the
 * field cannot be read: a value that is cut short, a varint of more than 10 bytes, a tag of more than 32 bits, field
 * number 0, an unknown wire type, the end of a group that did not begin, a group that does not end, or groups nested
 * deeper than TC_ITEM_MAX_DEPTH. */
int tc_item_next(struct tc_slice *rest, struct tc_item *out);

/* Take a varint of at most 10 bytes, or a little-endian value of `width` (at most 8) bytes, off the front of *rest.
 * Return false if the value is cut short or the varint is longer; *rest and *out are then unchanged. */
bool tc_item_take_varint(struct tc_slice *rest, uint64_t *out);
bool tc_item_take_fixed(struct tc_slice *rest, size_t width, uint64_t *out);

#endif
