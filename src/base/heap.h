/* Memory for the short-lived small blocks of one thread. Freed blocks are kept for reuse, up to a bound, so that a
 * steady stream of work asks the system for no memory. The connections of a loop share one heap for their nghttp2
 * sessions: the functions that allocate, grow and free have the types of nghttp2_mem. `heap` is a struct tc_heap. */
#ifndef TC_BASE_HEAP_H
#define TC_BASE_HEAP_H

#include "base/common.h"

struct tc_heap;

/* Never NULL. The caller frees the heap with tc_heap_free. If memory runs out, this function and those that allocate
 * end the process (base/mem.h). */
struct tc_heap *tc_heap_new(void);
/* All blocks must have been freed. NULL is allowed. */
void tc_heap_free(struct tc_heap *p);
/* Return memory aligned for any type; NULL only if the size (n * size) is above SIZE_MAX / 2. */
void *tc_heap_take(size_t size, void *heap);
void *tc_heap_take_zeroed(size_t n, size_t size, void *heap);
/* Works as realloc does, except that size 0 frees nothing and that a block never becomes smaller. Returns NULL only if
 * the size is above SIZE_MAX / 2. */
void *tc_heap_grow(void *block, size_t size, void *heap);
/* Frees a block. NULL is allowed. */
void tc_heap_give(void *block, void *heap);
/* tc_heap_grow and tc_heap_give for blocks that may hold secrets: memory is overwritten before it is freed. */
void *tc_heap_grow_secret(void *block, size_t size, void *heap);
void tc_heap_give_secret(void *block, void *heap);
/* Returns the bytes of free blocks that are kept. */
size_t tc_heap_kept(const struct tc_heap *p);
/* Returns the usable bytes of the blocks that are in use; at least the bytes that were asked for. */
size_t tc_heap_lent(const struct tc_heap *p);
/* Gives free blocks back to the system, the largest first, until at most `keep_bytes` are kept. */
void tc_heap_trim(struct tc_heap *p, size_t keep_bytes);

#endif
