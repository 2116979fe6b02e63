/* Compression of single messages (gRPC's grpc-encoding): identity and gzip. Any thread; a packer is used by one thread
 * at a time, and a struct tc_blocks only by the thread that takes from it (base/blocks.h). */
#ifndef TC_HTTP2_ENCODING_H
#define TC_HTTP2_ENCODING_H

#include "base/blocks.h"
#include "base/rstr.h"

enum tc_h2_encoding { TC_H2_IDENTITY = 0, TC_H2_GZIP = 1 };

/* Compresses `data`. Returns a gzip member, which the caller owns. Returns NULL if zlib fails, there is not enough
 * memory, or `data` has more than UINT_MAX / 2 bytes. */
struct tc_rstr *tc_h2_gzip(struct tc_slice data);

/* A message that is compressed in pieces. */
struct tc_h2_packer;
/* Makes a packer, which borrows the bytes until tc_h2_packer_free. Returns NULL if zlib fails, there is not enough
 * memory for zlib, or `data` has more than UINT_MAX / 2 bytes. */
struct tc_h2_packer *tc_h2_packer_new(struct tc_slice data);
/* Compresses at most `bytes` more. Stores the gzip member in *out once it is whole, and leaves *out alone before; the
 * caller owns it. Returns 0, or TORC_EAGAIN if zlib fails or there is not enough memory. After TORC_EAGAIN, and once
 * *out was stored, the packer can only be freed. */
int tc_h2_packer_work(struct tc_h2_packer *p, size_t bytes, struct tc_rstr **out);
/* NULL is allowed. */
void tc_h2_packer_free(struct tc_h2_packer *p);
/* Stores the content of a gzip member, at most max_bytes, in *out; the caller owns it. Its memory is counted in
 * `blocks` (may be NULL). Returns 0, TORC_ELIMIT if the content is larger, TORC_EPROTO if `data` is not one gzip member
 * or longer than UINT_MAX, or TORC_EAGAIN if there is not enough memory. */
int tc_h2_gunzip(struct tc_blocks *blocks, struct tc_slice data, size_t max_bytes, struct tc_rstr **out);

#endif
