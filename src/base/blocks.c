#include "base/blocks.h"

#include <stdatomic.h>

#include "base/mem.h"
#include "base/ref.h"

/* Classes of 128, 256, ... bytes, and one of large blocks. */
#define SMALLEST 128u
enum { LARGE = 5, CLASSES };
/* Of each class: 1,024 of the smallest, that many calls at a time. */
enum { KEPT_BYTES = 128 * 1024, KEPT_LARGE = 4 };

struct block {
    struct tc_blocks *home; /* NULL: the system */
    struct block *next;     /* while kept */
    unsigned cls;
    _Alignas(16) char data[];
};

/* One size. Blocks that come back are a stack that the taker takes whole: so nothing is ever popped from it. */
struct shelf {
    struct block *mine; /* the taker's */
    _Atomic(struct block *) back;
    atomic_uint n_back;
};

struct tc_blocks {
    struct tc_ref ref; /* one for the owner and for each block that there is, kept or lent */
    struct shelf shelves[CLASSES];
};

/* In the place of a stack that ended. */
static struct block ended;

struct tc_blocks *tc_blocks_new(void)
{
    struct tc_blocks *b = TC_NEW(struct tc_blocks);
    tc_ref_init(&b->ref);
    return b;
}

static void unref(struct tc_blocks *b)
{
    if (tc_ref_dec(&b->ref))
        tc_free(b);
}

static void drop(struct tc_blocks *b, struct block *list)
{
    while (list) {
        struct block *next = list->next;
        tc_free(list);
        unref(b);
        list = next;
    }
}

void tc_blocks_end(struct tc_blocks *b)
{
    if (!b)
        return;
    for (unsigned cls = 0; cls < CLASSES; cls++) {
        drop(b, b->shelves[cls].mine);
        drop(b, atomic_exchange_explicit(&b->shelves[cls].back, &ended, memory_order_acq_rel));
    }
    unref(b);
}

/* CLASSES: none. */
static unsigned class_of(size_t size)
{
    unsigned cls = 0;
    if (size > TC_BLOCKS_LARGEST)
        return size > TC_BLOCKS_LARGE_OVER && size <= TC_BLOCKS_LARGE ? LARGE : CLASSES;
    while (((size_t)SMALLEST << cls) < size)
        cls++;
    return cls;
}

static size_t bytes_of(unsigned cls)
{
    return cls == LARGE ? TC_BLOCKS_LARGE : (size_t)SMALLEST << cls;
}

static unsigned kept_of(unsigned cls)
{
    return cls == LARGE ? KEPT_LARGE : (unsigned)KEPT_BYTES / (SMALLEST << cls);
}

static void take_back(struct shelf *s)
{
    unsigned n = 0;
    s->mine = atomic_exchange_explicit(&s->back, NULL, memory_order_acquire);
    for (const struct block *it = s->mine; it; it = it->next)
        n++;
    if (n)
        atomic_fetch_sub_explicit(&s->n_back, n, memory_order_relaxed);
}

void *tc_blocks_try_take(struct tc_blocks *b, size_t size)
{
    struct block *it;
    unsigned cls = b ? class_of(size) : CLASSES;
    if (cls == CLASSES) {
        it = tc_try_realloc(NULL, sizeof(*it) + size);
        if (!it)
            return NULL;
        it->home = NULL;
        return it->data;
    }
    struct shelf *s = &b->shelves[cls];
    if (!s->mine && atomic_load_explicit(&s->back, memory_order_relaxed))
        take_back(s);
    it = s->mine;
    if (it) {
        s->mine = it->next;
        return it->data;
    }
    it = tc_try_realloc(NULL, sizeof(*it) + bytes_of(cls));
    if (!it)
        return NULL;
    it->home = b;
    it->cls = cls;
    tc_ref_inc(&b->ref);
    return it->data;
}

void *tc_blocks_take(struct tc_blocks *b, size_t size)
{
    void *data = tc_blocks_try_take(b, size);
    if (data)
        return data;
    struct block *it = tc_malloc(sizeof(*it) + size); /* where the lack of memory is said */
    it->home = NULL;
    return it->data;
}

void tc_blocks_give(void *data)
{
    struct block *it = TC_CONTAINER_OF(data, struct block, data);
    struct tc_blocks *b = it->home;
    if (!b) {
        tc_free(it);
        return;
    }
    struct shelf *s = &b->shelves[it->cls];
    if (atomic_fetch_add_explicit(&s->n_back, 1, memory_order_relaxed) >= kept_of(it->cls)) {
        atomic_fetch_sub_explicit(&s->n_back, 1, memory_order_relaxed);
        it->next = NULL;
        drop(b, it);
        return;
    }
    it->next = atomic_load_explicit(&s->back, memory_order_relaxed);
    do {
        if (it->next == &ended) {
            it->next = NULL;
            drop(b, it);
            return;
        }
    } while (
        !atomic_compare_exchange_weak_explicit(&s->back, &it->next, it, memory_order_release, memory_order_relaxed));
    /* From here on the block, and with it the rest, may be gone. */
}
