/* Memory of one thread's small blocks that come and go: what is freed is kept for reuse, so that a steady stream of
 * work asks the system for none. The connections of a loop share one (their nghttp2 sessions live in it): what a
 * connection's start or a call leaves behind serves the next one. What is kept is bounded. */
#ifndef TC_BASE_HEAP_H
#define TC_BASE_HEAP_H

#include "base/common.h"

struct tc_heap;

struct tc_heap *tc_heap_new(void);
/* All blocks must have come back. NULL is allowed. */
void tc_heap_free(struct tc_heap *p);
/* Aligned for anything; NULL only for sizes beyond SIZE_MAX / 2. */
void *tc_heap_take(struct tc_heap *p, size_t size);
void *tc_heap_take_zeroed(struct tc_heap *p, size_t n, size_t size);
/* Like realloc, but for size 0. */
void *tc_heap_grow(struct tc_heap *p, void *block, size_t size);
/* NULL is allowed. */
void tc_heap_give(struct tc_heap *p, void *block);
/* The same for what may have held secrets: what is given back is overwritten first. */
void *tc_heap_grow_secret(struct tc_heap *p, void *block, size_t size);
void tc_heap_give_secret(struct tc_heap *p, void *block);
/* Free blocks that are kept, in bytes. */
size_t tc_heap_kept(const struct tc_heap *p);
/* Gives back to the system what is kept beyond that. */
void tc_heap_trim(struct tc_heap *p, size_t keep_bytes);

#endif
