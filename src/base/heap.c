/* Memory for nghttp2's sessions: one thread, sizes that repeat, thousands of blocks a second.
 *
 * The size classes are the powers of two from 64 to 2048 bytes, and the middle between neighbours. So a block for more
 * than 64 bytes has less than one and a half times the bytes that were asked for. A freed block goes to the front of
 * its class's list and is the next one handed out, while its cache lines are still warm. Larger blocks come from the
 * system and go back to it. A freed block is kept if less than MAX_KEPT_BYTES are kept already. Kept blocks are
 * poisoned (base/poison.h). */
#include "base/heap.h"

#include <string.h>

#include "base/mem.h"
#include "base/poison.h"

enum { CLASSES = 11, OF_SYSTEM = CLASSES, MAX_KEPT_BYTES = 1024 * 1024 };

static const uint16_t class_bytes[CLASSES] = {64, 96, 128, 192, 256, 384, 512, 768, 1024, 1536, 2048};
#define LARGEST 2048u

struct heap_block {
    union {
        struct heap_block *next; /* while free */
        size_t size;             /* usable bytes, while in use */
    };
    unsigned cls; /* OF_SYSTEM: larger than any class */
    _Alignas(16) char data[];
};

struct tc_heap {
    struct heap_block *free[CLASSES];
    size_t kept_bytes, lent_bytes;
};

struct tc_heap *tc_heap_new(void)
{
    return TC_NEW(struct tc_heap);
}

void tc_heap_trim(struct tc_heap *p, size_t keep_bytes)
{
    for (unsigned cls = CLASSES; cls-- > 0;) {
        while (p->free[cls] && p->kept_bytes > keep_bytes) {
            struct heap_block *b = p->free[cls];
            p->free[cls] = b->next;
            p->kept_bytes -= class_bytes[cls];
            tc_unpoison(b->data, class_bytes[cls]);
            tc_free(b);
        }
    }
}

void tc_heap_free(struct tc_heap *p)
{
    if (!p)
        return;
    tc_heap_trim(p, 0);
    tc_free(p);
}

size_t tc_heap_kept(const struct tc_heap *p)
{
    return p->kept_bytes;
}

size_t tc_heap_lent(const struct tc_heap *p)
{
    return p->lent_bytes;
}

static unsigned heap_class_of(size_t size)
{
    if (size <= 64)
        return 0;
    if (size > LARGEST)
        return CLASSES;
    /* Between two powers of two, the bit below the highest set bit of `above` says in which half the size is. */
    unsigned above = (unsigned)size - 1, log2 = 31 - (unsigned)__builtin_clz(above);
    return 2 * (log2 - 6) + 1 + (above >> (log2 - 1) & 1);
}

/* Takes a kept block of the class out of its list. Returns NULL if none is kept. */
static struct heap_block *heap_block_reuse(struct tc_heap *p, unsigned cls)
{
    struct heap_block *b = cls < CLASSES ? p->free[cls] : NULL;
    if (b) {
        p->free[cls] = b->next;
        p->kept_bytes -= class_bytes[cls];
        tc_unpoison(b->data, class_bytes[cls]);
    }
    return b;
}

static void *heap_block_lend(struct tc_heap *p, struct heap_block *b, unsigned cls, size_t size)
{
    p->lent_bytes += size;
    b->size = size;
    b->cls = cls;
    return b->data;
}

void *tc_heap_take(size_t size, void *heap)
{
    if (size > SIZE_MAX / 2)
        return NULL;
    unsigned cls = heap_class_of(size);
    struct heap_block *b = heap_block_reuse(heap, cls);
    if (cls < CLASSES)
        size = class_bytes[cls];
    return heap_block_lend(heap, b ? b : tc_malloc(sizeof(*b) + size), cls, size);
}

void *tc_heap_take_zeroed(size_t n, size_t size, void *heap)
{
    if (__builtin_mul_overflow(n, size, &size) || size > SIZE_MAX / 2)
        return NULL;
    unsigned cls = heap_class_of(size);
    struct heap_block *b = heap_block_reuse(heap, cls);
    size_t usable = cls < CLASSES ? class_bytes[cls] : size;
    if (b)
        memset(b->data, 0, size);
    else /* calloc does not touch fresh pages, which are zero */
        b = tc_calloc(1, sizeof(*b) + usable);
    return heap_block_lend(heap, b, cls, usable);
}

void tc_heap_give(void *data, void *heap)
{
    struct tc_heap *p = heap;
    if (!data)
        return;
    struct heap_block *b = TC_CONTAINER_OF(data, struct heap_block, data);
    p->lent_bytes -= b->size;
    if (b->cls == OF_SYSTEM || p->kept_bytes >= MAX_KEPT_BYTES) {
        tc_free(b);
        return;
    }
    p->kept_bytes += class_bytes[b->cls];
    tc_poison(b->data, class_bytes[b->cls]);
    b->next = p->free[b->cls];
    p->free[b->cls] = b;
}

void tc_heap_give_secret(void *data, void *heap)
{
    if (data)
        explicit_bzero(data, TC_CONTAINER_OF(data, struct heap_block, data)->size);
    tc_heap_give(data, heap);
}

static void *heap_block_grow(void *data, size_t size, void *heap, void (*give)(void *data, void *heap))
{
    if (!data)
        return tc_heap_take(size, heap);
    struct heap_block *b = TC_CONTAINER_OF(data, struct heap_block, data);
    if (size <= b->size)
        return data;
    void *bigger = tc_heap_take(size, heap);
    if (bigger) {
        memcpy(bigger, data, b->size);
        give(data, heap);
    }
    return bigger;
}

void *tc_heap_grow(void *data, size_t size, void *heap)
{
    return heap_block_grow(data, size, heap, tc_heap_give);
}

void *tc_heap_grow_secret(void *data, size_t size, void *heap)
{
    return heap_block_grow(data, size, heap, tc_heap_give_secret);
}
