/* An arena: many small allocations that are freed together. A budget limits the bytes of one arena where a peer decides
 * how many are needed. With a budget, memory that the system refuses counts as beyond the budget; without a budget,
 * running out of memory ends the process (base/mem.h). Bytes that are not handed out are poisoned. One thread at a
 * time. */
#ifndef TC_BASE_ARENA_H
#define TC_BASE_ARENA_H

#include "base/poison.h"
#include "base/slice.h"

struct tc_arena_block;

struct tc_arena {
    struct tc_arena_block *blocks;
    char *at, *end;
    size_t used;       /* bytes handed out, each allocation rounded up to a multiple of 16 */
    size_t budget;     /* 0: unlimited */
    size_t block_size; /* of the next block */
};

/* Initializes an empty arena. Its first block has at least `first_block` bytes (0: 1 KiB). `budget` 0: unlimited. */
void tc_arena_init(struct tc_arena *a, size_t first_block, size_t budget);
/* Frees all memory. The arena is empty then and may be used again. */
void tc_arena_fini(struct tc_arena *a);
/* Frees all allocations but keeps one block for reuse: the newest of at most 16 KiB, or the first if all are larger. So
 * an arena that is reset again and again needs no memory from the system while its allocations fit into that block. */
void tc_arena_reset(struct tc_arena *a);
/* The slow path of tc_arena_alloc: checks the budget, and adds a block where needed. */
void *tc_arena_alloc_slowly(struct tc_arena *a, size_t size);
/* Returns memory aligned to 16 bytes, not zeroed. Returns NULL only when the budget is exceeded, or for a size close to
 * SIZE_MAX. */
static inline void *tc_arena_alloc(struct tc_arena *a, size_t size)
{
    size_t room = (size_t)(a->end - a->at), rounded = (size + 15) & ~(size_t)15;
    if (a->budget || size > room || rounded > room)
        return tc_arena_alloc_slowly(a, size);
    void *p = a->at;
    a->at += rounded;
    a->used += rounded;
    tc_unpoison(p, size);
    return p;
}
/* Returns zeroed memory for n elements; NULL as tc_arena_alloc does, or when n * size overflows. */
void *tc_arena_calloc(struct tc_arena *a, size_t n, size_t size);
/* Returns a NUL-terminated copy; NULL only when the budget is exceeded. */
char *tc_arena_dup(struct tc_arena *a, struct tc_slice s);
/* Returns a NUL-terminated copy; NULL data when the budget is exceeded. */
struct tc_slice tc_arena_copy(struct tc_arena *a, struct tc_slice s);

#endif
