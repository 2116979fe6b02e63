#include "base/blocks.h"

#include <stdatomic.h>

#include "base/mem.h"
#include "base/ref.h"

/* Classes of 128, 256, ... bytes. */
#define SMALLEST 128u
enum { CLASSES = 5, KEPT_BYTES = CLASSES * 128 * 1024 }; /* 1,024 of the smallest: that many calls at a time */

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

static unsigned class_of(size_t size)
{
    unsigned cls = 0;
    while (((size_t)SMALLEST << cls) < size)
        cls++;
    return cls;
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

void *tc_blocks_take(struct tc_blocks *b, size_t size)
{
    struct block *it;
    if (!b || size > TC_BLOCKS_LARGEST) {
        it = tc_malloc(sizeof(*it) + size);
        it->home = NULL;
        return it->data;
    }
    unsigned cls = class_of(size);
    struct shelf *s = &b->shelves[cls];
    if (!s->mine && atomic_load_explicit(&s->back, memory_order_relaxed))
        take_back(s);
    it = s->mine;
    if (it) {
        s->mine = it->next;
        return it->data;
    }
    it = tc_malloc(sizeof(*it) + ((size_t)SMALLEST << cls));
    it->home = b;
    it->cls = cls;
    tc_ref_inc(&b->ref);
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
    const unsigned most = (unsigned)KEPT_BYTES / CLASSES / (SMALLEST << it->cls);
    if (atomic_fetch_add_explicit(&s->n_back, 1, memory_order_relaxed) >= most) {
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
