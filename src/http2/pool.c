#include "http2/pool.h"

#include <string.h>

#include "base/mem.h"

/* Classes of 64, 128, ... 2048 bytes; larger blocks go to the system. */
#define SMALLEST 64u
#define MAX_KEPT_BYTES (1024u * 1024u)
#define IDLE_BYTES 1024u
#define NO_CLASS TC_H2_POOL_CLASSES

struct tc_h2_pool_block {
    union {
        struct tc_h2_pool_block *next; /* while free */
        struct {
            size_t size; /* usable bytes, while in use */
        };
    };
    unsigned cls;
    _Alignas(16) char data[];
};

void tc_h2_pool_init(struct tc_h2_pool *p)
{
    *p = (struct tc_h2_pool){0};
}

static void drop_beyond(struct tc_h2_pool *p, size_t keep_bytes)
{
    for (unsigned cls = TC_H2_POOL_CLASSES; cls-- > 0;) {
        while (p->free[cls] && p->kept_bytes > keep_bytes) {
            struct tc_h2_pool_block *b = p->free[cls];
            p->free[cls] = b->next;
            p->kept_bytes -= (size_t)SMALLEST << cls;
            tc_free(b);
        }
    }
}

void tc_h2_pool_fini(struct tc_h2_pool *p)
{
    drop_beyond(p, 0);
}

void tc_h2_pool_trim(struct tc_h2_pool *p)
{
    if (p->kept_bytes > IDLE_BYTES)
        drop_beyond(p, IDLE_BYTES);
}

static unsigned class_of(size_t size)
{
    unsigned cls = 0;
    while (cls < NO_CLASS && ((size_t)SMALLEST << cls) < size)
        cls++;
    return cls;
}

static void *pool_malloc(size_t size, void *user_data)
{
    struct tc_h2_pool *p = user_data;
    if (size > SIZE_MAX / 2)
        return NULL;
    unsigned cls = class_of(size);
    struct tc_h2_pool_block *b;
    if (cls < NO_CLASS) {
        size = (size_t)SMALLEST << cls;
        b = p->free[cls];
        if (b) {
            p->free[cls] = b->next;
            p->kept_bytes -= size;
        } else {
            b = tc_malloc(sizeof(*b) + size);
        }
    } else {
        b = tc_malloc(sizeof(*b) + size);
    }
    b->size = size;
    b->cls = cls;
    return b->data;
}

static void pool_free(void *ptr, void *user_data)
{
    struct tc_h2_pool *p = user_data;
    if (!ptr)
        return;
    struct tc_h2_pool_block *b = TC_CONTAINER_OF(ptr, struct tc_h2_pool_block, data);
    if (b->cls == NO_CLASS || p->kept_bytes >= MAX_KEPT_BYTES) {
        tc_free(b);
        return;
    }
    p->kept_bytes += (size_t)SMALLEST << b->cls;
    b->next = p->free[b->cls];
    p->free[b->cls] = b;
}

static void *pool_calloc(size_t n, size_t size, void *user_data)
{
    size_t total;
    if (__builtin_mul_overflow(n, size, &total))
        return NULL;
    void *ptr = pool_malloc(total, user_data);
    if (ptr)
        memset(ptr, 0, total);
    return ptr;
}

static void *pool_realloc(void *ptr, size_t size, void *user_data)
{
    if (!ptr)
        return pool_malloc(size, user_data);
    struct tc_h2_pool_block *b = TC_CONTAINER_OF(ptr, struct tc_h2_pool_block, data);
    if (size <= b->size)
        return ptr;
    void *bigger = pool_malloc(size, user_data);
    if (bigger) {
        memcpy(bigger, ptr, b->size);
        pool_free(ptr, user_data);
    }
    return bigger;
}

nghttp2_mem tc_h2_pool_mem(struct tc_h2_pool *p)
{
    return (nghttp2_mem){
        .mem_user_data = p, .malloc = pool_malloc, .free = pool_free, .calloc = pool_calloc, .realloc = pool_realloc};
}
