/* The inside of a ring, for the files that make one: ring.c, maglev.c, update.c, merge.c and cache.c. All other code
 * uses ring.h. One thread makes a ring; then it is constant, for any thread.
 *
 * A search (tc_ring_find) reads `sparse`, `shift`, `size`, `index` and `hash` of a ring, also `inverse` if the ring is
 * sparse; of a table `sparse`, `inverse` and `size`. Then the caller reads `item`. Nothing else of a ring is on the
 * path of a pick whose endpoint is READY. */
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
    bool sparse;      /* the index has large buckets, in which a search guesses the place; true for a table, too */
    bool ties;        /* there may be entries of equal hash */
    uint64_t inverse; /* 0: a ring. A table (maglev.h), which has neither index nor hashes: (2^64 - 1) / size, or 1 if
                         it has no slots */
    uint32_t *index;  /* the first entry of each bucket, and at the end `size` */
    uint64_t *hash;   /* `size` of them, ascending, then UINT64_MAX in the padding */
    uint32_t *item;   /* `size` of them, then 0 in the padding, which a table does not have */
    uint32_t *counts; /* entries of each item */

    /* Set by the cache for a ring that is in it, else NULL. */
    struct tc_ring_cached *cached;
    void (*release)(struct tc_ring *r); /* called by the last unref instead of a free */
};

/* Allocates a ring of that size with one reference. Copies the counts and sets the padding; the caller fills in
 * entries, index and `ties`. The index has as many buckets as that of `like` (may be NULL) if that is about the right
 * number. */
struct tc_ring *tc_ring_alloc(uint32_t size, const uint32_t *counts, size_t n, const struct tc_ring *like);
/* Allocates a table (maglev.h) with that number of slots and one reference. The caller fills in the items of the slots
 * and the counts, which are 0, and then calls tc_ring_count_absent. */
struct tc_ring *tc_ring_alloc_table(uint32_t size, size_t n);
void tc_ring_count_absent(struct tc_ring *r);
/* Sets the padding again, after entries were written past the end. */
void tc_ring_pad(struct tc_ring *r);
/* Fills the index from the hashes, and sets `ties`. */
void tc_ring_index(struct tc_ring *r);

static inline uint32_t tc_ring_buckets(const struct tc_ring *r)
{
    return (uint32_t)1 << (64 - r->shift);
}

/* Returns the first entry with a hash of h or more, or the size if no entry has. The ring must have entries. */
static inline uint32_t tc_ring_position(const struct tc_ring *r, uint64_t h)
{
    uint32_t at = tc_ring_find(r, h);
    return at == 0 && r->hash[0] < h ? r->size : at;
}

#endif
