/* Memory of one connection's nghttp2 session: small blocks are kept for reuse, so that a steady stream of calls asks
 * the system for none. What is kept while the connection is idle is bounded. */
#ifndef TC_HTTP2_POOL_H
#define TC_HTTP2_POOL_H

#include <nghttp2/nghttp2.h>

#include "base/common.h"

#define TC_H2_POOL_CLASSES 6

struct tc_h2_pool_block;

struct tc_h2_pool {
    struct tc_h2_pool_block *free[TC_H2_POOL_CLASSES];
    size_t kept_bytes;
};

void tc_h2_pool_init(struct tc_h2_pool *p);
/* Frees what is kept; all blocks must have come back. */
void tc_h2_pool_fini(struct tc_h2_pool *p);
/* The allocator for nghttp2; it borrows the pool. */
nghttp2_mem tc_h2_pool_mem(struct tc_h2_pool *p);
/* Gives back to the system what an idle connection need not keep. */
void tc_h2_pool_trim(struct tc_h2_pool *p);

#endif
