/* Call objects with their arenas, for reuse: a steady stream of calls allocates no call objects, and no arena blocks
 * while each call needs at most 8 KiB. A call belongs to the caller of tc_call_pool_get until tc_call_pool_put. Any
 * thread. */
#ifndef TC_API_CALL_POOL_H
#define TC_API_CALL_POOL_H

#include "runtime/runtime.h"

struct tc_call_pool;
struct torc_stream;

/* Returns an empty pool, which the caller frees; never NULL. */
struct tc_call_pool *tc_call_pool_new(void);
/* Frees the pool and the calls in it. No call of the pool may be in use. */
void tc_call_pool_free(struct tc_call_pool *p);
/* Returns the runtime's pool: made at the first call of this function, freed with the runtime's memory. */
struct tc_call_pool *tc_call_pool_of(torc_runtime *rt);
/* Returns a call that is zeroed but for its arena (which is empty) and its lock. */
struct torc_stream *tc_call_pool_get(struct tc_call_pool *p);
/* Takes back a call that nobody uses any longer. The caller has released what the call held. */
void tc_call_pool_put(struct tc_call_pool *p, struct torc_stream *call);

#endif
