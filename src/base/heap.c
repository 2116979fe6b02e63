#include "base/heap.h"

#include <string.h>

#include "base/mem.h"
#include "base/twin.h"

enum { CLASSES = 11, OF_SYSTEM = CLASSES, TWIN_SMALL, TWIN_LARGE, MAX_KEPT_BYTES = 1024 * 1024 };

/* Sanitizers see what is wrong with single blocks only. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define TWINS false
#elif defined(__has_feature)
#define TWINS (!__has_feature(address_sanitizer) && !__has_feature(thread_sanitizer))
#else
#define TWINS true
#endif

/* Two classes for each power of two, so that a block is at most half as large again as asked for; larger ones come from
 * the system and go back to it. */
static const uint16_t class_bytes[CLASSES] = {64, 96, 128, 192, 256, 384, 512, 768, 1024, 1536, 2048};
#define LARGEST 2048u

struct block {
    union {
        struct block *next; /* while free */
        size_t size;        /* usable bytes, while in use */
    };
    unsigned cls; /* or where else it is from */
    _Alignas(16) char data[];
};

struct tc_heap {
    struct block *free[CLASSES];
    size_t kept_bytes;
    struct tc_twins twins;
};

struct tc_heap *tc_heap_new(void)
{
    return TC_NEW(struct tc_heap);
}

void tc_heap_trim(struct tc_heap *p, size_t keep_bytes)
{
    for (unsigned cls = CLASSES; cls-- > 0;) {
        while (p->free[cls] && p->kept_bytes > keep_bytes) {
            struct block *b = p->free[cls];
            p->free[cls] = b->next;
            p->kept_bytes -= class_bytes[cls];
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

static unsigned class_of(size_t size)
{
    if (size <= 64)
        return 0;
    if (size > LARGEST)
        return CLASSES;
    /* The power of two below, and which half of the way to the next. */
    unsigned above = (unsigned)size - 1, log2 = 31 - (unsigned)__builtin_clz(above);
    return 2 * (log2 - 6) + 1 + (above >> (log2 - 1) & 1);
}

static struct block *reuse(struct tc_heap *p, unsigned cls)
{
    struct block *b = cls < CLASSES ? p->free[cls] : NULL;
    if (b) {
        p->free[cls] = b->next;
        p->kept_bytes -= class_bytes[cls];
    }
    return b;
}

static void *hand_out(struct block *b, unsigned cls, size_t size)
{
    b->size = size;
    b->cls = cls;
    return b->data;
}

void *tc_heap_take(struct tc_heap *p, size_t size)
{
    if (size > SIZE_MAX / 2)
        return NULL;
    unsigned cls = class_of(size);
    struct block *b = reuse(p, cls);
    if (cls < CLASSES)
        size = class_bytes[cls];
    else if (TWINS && size >= TC_TWIN_LARGE_LEAST && size <= TC_TWIN_LARGE - sizeof(*b) &&
             (b = tc_twin_take_large(&p->twins)))
        cls = TWIN_LARGE;
    return hand_out(b ? b : tc_malloc(sizeof(*b) + size), cls, size);
}

void *tc_heap_take_zeroed(struct tc_heap *p, size_t n, size_t size)
{
    if (__builtin_mul_overflow(n, size, &size) || size > SIZE_MAX / 2)
        return NULL;
    unsigned cls = class_of(size);
    struct block *b = reuse(p, cls);
    size_t usable = cls < CLASSES ? class_bytes[cls] : size;
    if (b)
        memset(b->data, 0, size);
    else if (TWINS && size >= TC_TWIN_SMALL_LEAST && size <= TC_TWIN_SMALL - sizeof(*b) &&
             (b = tc_twin_take_small(&p->twins)))
        cls = TWIN_SMALL;
    else /* fresh pages are zero already, and stay untouched */
        b = tc_calloc(1, sizeof(*b) + usable);
    return hand_out(b, cls, usable);
}

void tc_heap_give(struct tc_heap *p, void *data)
{
    if (!data)
        return;
    struct block *b = TC_CONTAINER_OF(data, struct block, data);
    if (b->cls == TWIN_SMALL) {
        tc_twin_give_small(&p->twins, b);
        return;
    }
    if (b->cls == TWIN_LARGE) {
        tc_twin_give_large(&p->twins, b);
        return;
    }
    if (b->cls == OF_SYSTEM || p->kept_bytes >= MAX_KEPT_BYTES) {
        tc_free(b);
        return;
    }
    p->kept_bytes += class_bytes[b->cls];
    b->next = p->free[b->cls];
    p->free[b->cls] = b;
}

void tc_heap_give_secret(struct tc_heap *p, void *data)
{
    if (data)
        explicit_bzero(data, TC_CONTAINER_OF(data, struct block, data)->size);
    tc_heap_give(p, data);
}

static void *grow(struct tc_heap *p, void *data, size_t size, void (*give)(struct tc_heap *p, void *data))
{
    if (!data)
        return tc_heap_take(p, size);
    struct block *b = TC_CONTAINER_OF(data, struct block, data);
    if (size <= b->size)
        return data;
    void *bigger = tc_heap_take(p, size);
    if (bigger) {
        memcpy(bigger, data, b->size);
        give(p, data);
    }
    return bigger;
}

void *tc_heap_grow(struct tc_heap *p, void *data, size_t size)
{
    return grow(p, data, size, tc_heap_give);
}

void *tc_heap_grow_secret(struct tc_heap *p, void *data, size_t size)
{
    return grow(p, data, size, tc_heap_give_secret);
}
