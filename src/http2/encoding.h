/* Compression of single messages (gRPC's grpc-encoding): identity and gzip. Pure functions, any thread. */
#ifndef TC_HTTP2_ENCODING_H
#define TC_HTTP2_ENCODING_H

#include "base/blocks.h"
#include "base/rstr.h"

enum tc_h2_encoding { TC_H2_IDENTITY = 0, TC_H2_GZIP = 1 };

/* Returns a gzip member with the bytes, or NULL if zlib fails. */
struct tc_rstr *tc_h2_gzip(struct tc_slice data);
/* Stores the content of a gzip member, at most max_bytes, in *out, counted in `blocks` (may be NULL). Returns
 * TORC_ELIMIT if there is more, TORC_EPROTO if `data` is not gzip, TORC_EAGAIN if there is not enough memory. */
int tc_h2_gunzip(struct tc_blocks *blocks, struct tc_slice data, size_t max_bytes, struct tc_rstr **out);

#endif
