/* Metadata between gRPC's form and the fields of a header block. Loop thread only. */
#ifndef TC_HTTP2_METADATA_H
#define TC_HTTP2_METADATA_H

#include <nghttp2/nghttp2.h>

#include "base/buf.h"
#include "base/headers.h"

/* The header block that is being received. */
struct tc_h2_header_block {
    struct tc_headers *headers; /* where its metadata goes: a list of the stream */
    size_t bytes, max_bytes;    /* RFC 9113 6.5.2 accounting */
    bool over;                  /* the block exceeds max_bytes or the arena; the rest is decoded and dropped */
};

/* Adds a copy of a received field to the block. A binary value is decoded; if commas join several values, each becomes
 * a field of its own. The caller has counted one field in block->bytes: this function counts the others. `scratch` is
 * overwritten. Returns 0, TORC_EPARSE for bad base64, or TORC_ELIMIT beyond the block's limit or the arena's. */
int tc_h2_metadata_add(struct tc_h2_header_block *block, struct tc_buf *scratch, struct tc_slice name,
                       struct tc_slice value);
/* Stores metadata (NULL: none) as name-value pairs at `nva`, which has room for h->len. Leaves out names that only the
 * library may send, and names that gRPC never sends ("connection" and "host", for example). Appends binary values
 * in base64 to `scratch`, which must have room for them (tc_h2_metadata_scratch). The pairs borrow from `h` and
 * `scratch`: neither may change until the pairs are submitted. Returns how many pairs. */
size_t tc_h2_metadata_encode(struct tc_buf *scratch, const struct tc_headers *h, nghttp2_nv *nva);
/* Returns how much room in scratch the binary values of `h` need, at most. `h` may be NULL. */
size_t tc_h2_metadata_scratch(const struct tc_headers *h);
/* Returns true for "application/grpc" in any case of letters, alone or followed by '+' or ';'. */
bool tc_h2_is_grpc_content_type(struct tc_slice type);

/* Returns a pair that borrows both texts. */
static inline nghttp2_nv tc_h2_nv(struct tc_slice name, struct tc_slice value, uint8_t flags)
{
    /* nghttp2 only reads them. */
    return (nghttp2_nv){(uint8_t *)(uintptr_t)name.data, (uint8_t *)(uintptr_t)value.data, name.len, value.len, flags};
}

#endif
