/* Blocks that one thread lends and any thread gives back.
 *
 * A shelf holds the free blocks of one size class in two stacks: `mine` belongs to the taker, `back` is atomic. A block
 * comes back by a push onto `back`; the taker takes all of `back` at once when `mine` is empty. So no thread ever pops
 * a single block from the atomic stack, and the ABA problem does not arise. The bound of a class counts `back` alone:
 * `mine` may hold as many blocks again. After tc_blocks_end `back` holds the mark `ended`, and each block is freed as
 * it comes back.
 *
 * A struct tc_blocks is reference-counted: its owner holds a reference until tc_blocks_end. Each of its blocks, kept
 * or lent, holds one until the block is freed. */
#include "base/blocks.h"

#include <stdatomic.h>

#include "base/mem.h"
#include "base/poison.h"
#include "base/ref.h"

/* Classes of 128, 256, ... bytes, and one of large blocks. */
#define SMALLEST 128u
enum { LARGE = 5, CLASSES };
/* The bound of `back`: KEPT_BYTES for each small class (1,024 blocks of the smallest), KEPT_LARGE large blocks. */
enum { KEPT_BYTES = 128 * 1024, KEPT_LARGE = 4 };

struct block {
    struct tc_blocks *home; /* NULL: the system */
    union {
        struct block *next; /* while kept */
        size_t bytes;       /* while lent */
    };
    unsigned cls; /* CLASSES: never reused */
    _Alignas(16) char data[];
};

/* The free blocks of one size class. */
struct shelf {
    struct block *mine; /* the taker's */
    _Atomic(struct block *) back;
    atomic_uint n_back;
};

struct tc_blocks {
    struct tc_ref ref; /* the owner's, and one of each block, kept or lent */
    /* Totals since the start; their difference is the bytes lent. Only the taker writes taken_bytes, so that no locked
     * instruction is needed. */
    atomic_size_t taken_bytes, given_bytes;
    struct shelf shelves[CLASSES];
};

/* The mark in `back` of each shelf after tc_blocks_end. */
static struct block ended;

static size_t class_bytes(unsigned cls)
{
    return cls == LARGE ? TC_BLOCKS_LARGE : (size_t)SMALLEST << cls;
}

struct tc_blocks *tc_blocks_new(void)
{
    struct tc_blocks *b = TC_NEW(struct tc_blocks);
    tc_ref_init(&b->ref);
    return b;
}

static void blocks_unref(struct tc_blocks *b)
{
    if (tc_ref_dec(&b->ref))
        tc_free(b);
}

/* Frees the blocks of a list with their references to `b`, which may be freed too. */
static void block_list_drop(struct tc_blocks *b, struct block *list)
{
    while (list) {
        struct block *next = list->next;
        if (list->cls != CLASSES)
            tc_unpoison(list->data, class_bytes(list->cls));
        tc_free(list);
        blocks_unref(b);
        list = next;
    }
}

void tc_blocks_end(struct tc_blocks *b)
{
    if (!b)
        return;
    for (unsigned cls = 0; cls < CLASSES; cls++) {
        block_list_drop(b, b->shelves[cls].mine);
        block_list_drop(b, atomic_exchange_explicit(&b->shelves[cls].back, &ended, memory_order_acq_rel));
    }
    blocks_unref(b);
}

/* Returns the size class for `size`, or CLASSES when blocks of that size are not reused. */
static unsigned blocks_class_of(size_t size)
{
    if (size > TC_BLOCKS_LARGEST)
        return size > TC_BLOCKS_LARGE_OVER && size <= TC_BLOCKS_LARGE ? LARGE : CLASSES;
    return size <= SMALLEST ? 0 : (unsigned)(64 - __builtin_clzll((size - 1) / SMALLEST));
}

static unsigned class_kept(unsigned cls)
{
    return cls == LARGE ? KEPT_LARGE : (unsigned)KEPT_BYTES / (SMALLEST << cls);
}

TC_APART static void shelf_refill(struct shelf *s)
{
    unsigned n = 0;
    s->mine = atomic_exchange_explicit(&s->back, NULL, memory_order_acquire);
    for (const struct block *it = s->mine; it; it = it->next)
        n++;
    if (n)
        atomic_fetch_sub_explicit(&s->n_back, n, memory_order_relaxed);
}

/* Returns whether `mine` has a free block. Takes over `back` first if `mine` is empty. */
static inline bool shelf_has(struct shelf *s)
{
    if (!s->mine && atomic_load_explicit(&s->back, memory_order_relaxed))
        shelf_refill(s);
    return s->mine != NULL;
}

bool tc_blocks_reuses(size_t size)
{
    return blocks_class_of(size) != CLASSES;
}

bool tc_blocks_keeps(struct tc_blocks *b, size_t size)
{
    return b && tc_blocks_reuses(size) && shelf_has(&b->shelves[blocks_class_of(size)]);
}

/* Wraps, so that the negative difference of a block that shrinks is added too. */
static void blocks_count_taken(struct tc_blocks *b, size_t bytes)
{
    size_t before = atomic_load_explicit(&b->taken_bytes, memory_order_relaxed);
    atomic_store_explicit(&b->taken_bytes, before + bytes, memory_order_relaxed);
}

static void *block_lend(struct block *it, size_t bytes)
{
    it->bytes = bytes;
    blocks_count_taken(it->home, bytes);
    return it->data;
}

size_t tc_blocks_lent(const struct tc_blocks *b)
{
    return atomic_load_explicit(&b->taken_bytes, memory_order_relaxed) -
           atomic_load_explicit(&b->given_bytes, memory_order_relaxed);
}

void *tc_blocks_try_resize(struct tc_blocks *b, void *data, size_t size)
{
    struct block *it = data ? TC_CONTAINER_OF(data, struct block, data) : NULL;
    size_t before = it ? it->bytes : 0;
    it = tc_try_realloc(it, sizeof(*it) + size);
    if (!it)
        return NULL;
    if (!data) {
        it->home = b;
        it->cls = CLASSES;
        if (b)
            tc_ref_inc(&b->ref);
    }
    it->bytes = size;
    if (b)
        blocks_count_taken(b, size - before);
    return it->data;
}

void *tc_blocks_try_take(struct tc_blocks *b, size_t size)
{
    struct block *it;
    unsigned cls = b ? blocks_class_of(size) : CLASSES;
    if (cls == CLASSES)
        return tc_blocks_try_resize(b, NULL, size);
    struct shelf *s = &b->shelves[cls];
    if (shelf_has(s)) {
        it = s->mine;
        s->mine = it->next;
        tc_unpoison(it->data, size);
        return block_lend(it, class_bytes(cls));
    }
    it = tc_try_realloc(NULL, sizeof(*it) + class_bytes(cls));
    if (!it)
        return NULL;
    it->home = b;
    it->cls = cls;
    tc_ref_inc(&b->ref);
    tc_poison(it->data, class_bytes(cls));
    tc_unpoison(it->data, size);
    return block_lend(it, class_bytes(cls));
}

void tc_blocks_give(void *data)
{
    struct block *it = TC_CONTAINER_OF(data, struct block, data);
    struct tc_blocks *b = it->home;
    if (!b) {
        tc_free(it);
        return;
    }
    atomic_fetch_add_explicit(&b->given_bytes, it->bytes, memory_order_relaxed);
    if (it->cls == CLASSES) {
        it->next = NULL;
        block_list_drop(b, it);
        return;
    }
    struct shelf *s = &b->shelves[it->cls];
    tc_poison(it->data, class_bytes(it->cls));
    if (atomic_fetch_add_explicit(&s->n_back, 1, memory_order_relaxed) >= class_kept(it->cls)) {
        atomic_fetch_sub_explicit(&s->n_back, 1, memory_order_relaxed);
        it->next = NULL;
        block_list_drop(b, it);
        return;
    }
    it->next = atomic_load_explicit(&s->back, memory_order_relaxed);
    do {
        if (it->next == &ended) {
            it->next = NULL;
            block_list_drop(b, it);
            return;
        }
    } while (
        !atomic_compare_exchange_weak_explicit(&s->back, &it->next, it, memory_order_release, memory_order_relaxed));
    /* From here on another thread may free the block and *b. */
}
