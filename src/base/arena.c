/* Arenas: lists of blocks, the newest first. The fast path of an allocation, for an arena without a budget whose newest
 * block has room, is inline in arena.h. Each allocation starts at a multiple of 16 bytes. The bytes between the end of
 * an allocation and the next such multiple stay poisoned. */
#include "base/arena.h"

#include "base/mem.h"

struct tc_arena_block {
    struct tc_arena_block *next;
    size_t size;
    _Alignas(16) char data[];
};

/* The planned size (block_size) doubles with each block, up to MAX_BLOCK. A block is larger than planned if an
 * allocation needs that. */
enum { DEFAULT_BLOCK = 1024, MAX_BLOCK = 256 * 1024, MAX_KEPT_BLOCK = 16 * 1024 };

/* `at` and `end` of an arena without blocks, so that an allocation of 0 bytes is not NULL. */
static _Alignas(16) char nowhere[16];

void tc_arena_init(struct tc_arena *a, size_t first_block, size_t budget)
{
    *a = (struct tc_arena){
        .at = nowhere, .end = nowhere, .budget = budget, .block_size = first_block ? first_block : DEFAULT_BLOCK};
}

static void arena_block_free(struct tc_arena_block *b)
{
    tc_unpoison(b->data, b->size);
    tc_free(b);
}

void tc_arena_fini(struct tc_arena *a)
{
    while (a->blocks) {
        struct tc_arena_block *next = a->blocks->next;
        arena_block_free(a->blocks);
        a->blocks = next;
    }
    a->at = a->end = nowhere;
    a->used = 0;
}

/* Returns the newest block of at most MAX_KEPT_BLOCK bytes, or the first block if all are larger. */
static struct tc_arena_block *arena_block_to_keep(const struct tc_arena *a)
{
    struct tc_arena_block *b = a->blocks;
    while (b->next && b->size > MAX_KEPT_BLOCK)
        b = b->next;
    return b;
}

void tc_arena_reset(struct tc_arena *a)
{
    a->used = 0;
    if (!a->blocks)
        return;
    struct tc_arena_block *keep = arena_block_to_keep(a);
    while (a->blocks) {
        struct tc_arena_block *next = a->blocks->next;
        if (a->blocks != keep)
            arena_block_free(a->blocks);
        a->blocks = next;
    }
    keep->next = NULL;
    a->blocks = keep;
    a->block_size = TC_MIN(keep->size, (size_t)(MAX_BLOCK / 2)) * 2;
    a->at = keep->data;
    a->end = keep->data + keep->size;
    tc_poison(keep->data, keep->size);
}

void *tc_arena_alloc_slowly(struct tc_arena *a, size_t size)
{
    if (size > SIZE_MAX - 64)
        return NULL;
    size_t asked = size;
    size = (size + 15) & ~(size_t)15;
    if (a->budget && (size > a->budget || a->used > a->budget - size))
        return NULL;
    if (size > (size_t)(a->end - a->at)) {
        size_t want = TC_MAX(size, a->block_size);
        struct tc_arena_block *b = a->budget ? tc_try_realloc(NULL, sizeof(*b) + want) : tc_malloc(sizeof(*b) + want);
        if (!b)
            return NULL;
        b->size = want;
        b->next = a->blocks;
        a->blocks = b;
        a->at = b->data;
        a->end = b->data + want;
        a->block_size = TC_MIN(a->block_size * 2, (size_t)MAX_BLOCK);
        tc_poison(b->data, want);
    }
    void *p = a->at;
    a->at += size;
    a->used += size;
    tc_unpoison(p, asked);
    return p;
}

void *tc_arena_calloc(struct tc_arena *a, size_t n, size_t size)
{
    size_t total;
    if (__builtin_mul_overflow(n, size, &total))
        return NULL;
    void *p = tc_arena_alloc(a, total);
    if (p)
        memset(p, 0, total);
    return p;
}

char *tc_arena_dup(struct tc_arena *a, struct tc_slice s)
{
    char *p = tc_arena_alloc(a, s.len + 1);
    if (!p)
        return NULL;
    if (s.len)
        memcpy(p, s.data, s.len);
    p[s.len] = '\0';
    return p;
}

struct tc_slice tc_arena_copy(struct tc_arena *a, struct tc_slice s)
{
    char *p = tc_arena_dup(a, s);
    return tc_slice_of(p, p ? s.len : 0);
}
