/* The inside of a ring, for ring.c, maglev.c, update.c, merge.c and cache.c. The rest of the library uses ring.h; some
 * tests and benchmarks look inside. One thread makes a ring; after that the ring is constant, and any thread may read
 * it.
 *
 * A search (tc_ring_find) reads `sparse`, `shift`, `size`, `index` and `hash` of a ring, also `inverse` if the ring is
 * sparse, and prefetches from `item`; of a table it reads `sparse`, `inverse` and `size`. Then the caller reads `item`.
 * The fast path of a pick (lb/ring_hash/picker.c) reads nothing else of a ring. */
#ifndef TC_RING_RING_INTERNAL_H
#define TC_RING_RING_INTERNAL_H

#include "ring/ring.h"

/* Both paddings may be written to while a ring is made, so that copies go in whole blocks. */
enum {
    TC_RING_PADDING = 16,      /* entries past the last one; a search reads them, too */
    TC_RING_INDEX_PADDING = 16 /* buckets past the last one */
};

/* One allocation, with its arrays behind it. */
struct tc_ring {
    struct tc_ref ref;
    uint32_t size; /* entries */
    uint32_t n_items;
    uint32_t absent;  /* items without an entry */
    unsigned shift;   /* a hash's bucket: hash >> shift */
    bool sparse;      /* the buckets are large, and a search guesses the place in a bucket; true for a table, too */
    bool ties;        /* there may be entries of equal hash */
    uint64_t inverse; /* 0: a ring. A table (maglev.h), which has neither index nor hashes: (2^64 - 1) / size, or 1 if
                         it has no slots */
    uint32_t *index;  /* the first entry in each bucket or a later bucket, and at the end `size` */
    uint64_t *hash;   /* `size` of them, ascending, then UINT64_MAX in the padding */
    uint32_t *item;   /* `size` of them, then 0 in the padding, which a table does not have */
    uint32_t *counts; /* entries of each item */

    /* Set by the cache for a ring that is in it, else NULL. */
    struct tc_ring_cached *cached;
    void (*release)(struct tc_ring *r); /* called by the last unref instead of tc_free; frees `cached` and the ring */
};

/* Allocates a ring of `size` entries and n items with one reference. Copies the counts and sets the padding; the caller
 * fills in entries, index and `ties`. The index gets as many buckets as that of `like` (may be NULL) if that is about
 * the right number. */
struct tc_ring *tc_ring_alloc(uint32_t size, const uint32_t *counts, size_t n, const struct tc_ring *like);
/* Allocates a table (maglev.h) of `size` slots and n items with one reference. The caller fills in the items of the
 * slots and the counts, which are 0, and then calls tc_ring_count_absent. */
struct tc_ring *tc_ring_alloc_table(uint32_t size, size_t n);
/* Sets `absent` from the counts. */
void tc_ring_count_absent(struct tc_ring *r);
/* Sets the padding of the entries, also after something was written there. */
void tc_ring_pad(struct tc_ring *r);
/* Fills the index from the hashes, and sets `ties`. */
void tc_ring_index(struct tc_ring *r);

static inline uint32_t tc_ring_buckets(const struct tc_ring *r)
{
    return (uint32_t)1 << (64 - r->shift);
}

/* Returns the first entry whose hash is at least h, or the size if there is none. The ring must have entries, and must
 * not be a table. */
static inline uint32_t tc_ring_position(const struct tc_ring *r, uint64_t h)
{
    uint32_t at = tc_ring_find(r, h);
    return at == 0 && r->hash[0] < h ? r->size : at;
}

#endif
