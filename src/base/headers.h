/* A list of header fields (request metadata, response metadata, trailers) that keeps their order and duplicates. The
 * entries live in the owner's arena, and so do the bytes of fields that were copied. Names are lower case. Values of
 * "-bin" names are raw bytes here; base64 exists on the wire only. One thread at a time. */
#ifndef TC_BASE_HEADERS_H
#define TC_BASE_HEADERS_H

#include "base/arena.h"
#include "base/buf.h"

struct tc_header {
    struct tc_slice name;
    struct tc_slice value;
};

struct tc_headers {
    struct tc_header *data;
    size_t len, cap;
    struct tc_arena *arena; /* for `data` and copies; borrowed */
};

static inline void tc_headers_init(struct tc_headers *h, struct tc_arena *arena)
{
    *h = (struct tc_headers){.arena = arena};
}

/* Adds a field whose bytes are borrowed and must live as long as the list. Returns 0, or TORC_ELIMIT when the arena's
 * budget is exceeded. */
int tc_headers_add(struct tc_headers *h, struct tc_slice name, struct tc_slice value);
/* Adds a field with copies of its bytes in the arena. Returns 0 or TORC_ELIMIT. */
int tc_headers_add_copy(struct tc_headers *h, struct tc_slice name, struct tc_slice value);
/* Returns the first field of that name, or NULL. The field is valid until one is added. */
const struct tc_header *tc_headers_find(const struct tc_headers *h, struct tc_slice name);
/* Stores in *value the values of all fields of that name, joined by ','. Returns false, with *value unchanged, if no
 * field has the name. *value is borrowed from the list if one field has the name, else from `scratch`. Matchers call
 * tc_route_header_value instead, which has the rules for "-bin" names and content-type. */
bool tc_headers_joined(const struct tc_headers *h, struct tc_slice name, struct tc_buf *scratch,
                       struct tc_slice *value);
/* Returns true for a name that gRPC allows in metadata: one or more of "0-9a-z_-.". */
bool tc_header_name_valid(struct tc_slice name);
/* Returns true for an ASCII value that gRPC allows: bytes 0x20 to 0x7e. */
bool tc_header_value_valid(struct tc_slice value);
static inline bool tc_header_is_binary(struct tc_slice name)
{
    return tc_slice_ends(name, tc_slice_of("-bin", 4));
}

#endif
