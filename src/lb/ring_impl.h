/* A ring's inside, for the files that build one. Internal to the ring. */
#ifndef TC_LB_RING_IMPL_H
#define TC_LB_RING_IMPL_H

#include "lb/ring.h"

enum {
    TC_RING_PADDING = 16,      /* entries beyond the last that are looked at, and written to while a ring is made */
    TC_RING_INDEX_PADDING = 16 /* buckets beyond the last that may be written to */
};

/* Where a bound decides a ring's size, one item more or less moves the shares of all, and of about half of the items an
 * entry comes or goes: mostly the one of the same number, their last or the one after. The margin knows this entry of
 * each item, in the ring or not, so that an update need not hash and look for it. A memo: nothing depends on its
 * number being well chosen. */
struct tc_ring_margin {
    uint32_t n;     /* the ring's items; 0: no margin */
    uint32_t base;  /* which of an item's entries; in the ring are those of the items that have more than that */
    uint64_t *hash; /* ascending, all different, and no other entry of the ring has one of them */
    uint32_t *item;
    uint32_t *at; /* entries of the ring below it: where it is, or would be */
};

/* How rings are made: the same whatever it says. */
struct tc_ring_how {
    uint32_t margin_from; /* entries from which a ring may have a margin; TC_RING_NO_MARGIN: none has */
    bool plain;           /* as a processor does it that has no vectors of 512 bits */
};
#define TC_RING_NO_MARGIN UINT32_MAX
#define TC_RING_USUAL ((struct tc_ring_how){8192, false}) /* smaller ones are quickly built */

/* Its arrays follow it in one allocation. */
struct tc_ring {
    struct tc_ref ref;
    uint32_t size;
    uint32_t n_items;
    uint32_t absent;
    unsigned shift;   /* of a hash to its index bucket */
    bool sparse;      /* the index has few buckets: a search guesses where to begin in one */
    bool ties;        /* there may be entries of equal hash */
    uint32_t *index;  /* first entry of each bucket of top bits, and the size at the end */
    uint64_t *hash;   /* size, ascending; then TC_RING_PADDING times the largest number, which no hash is above */
    uint32_t *item;   /* size; then padding of no meaning */
    uint32_t *counts; /* entries of each item */
    struct tc_ring_margin margin;

    /* Of a ring in the cache (ring_cache.h), else NULL. */
    struct tc_ring_cached *cached;
    void (*release)(struct tc_ring *r);
};

/* As tc_ring_new says. */
static inline void tc_ring_clamp(uint64_t *min, uint64_t *max, uint64_t *cap)
{
    *cap = TC_MAX(TC_MIN(*cap, TC_RING_SIZE_MAX), 1);
    *max = TC_MAX(TC_MIN(*max, *cap), 1);
    *min = TC_MAX(TC_MIN(*min, *max), 1);
}

/* Is a ring of that size as large as it may be? */
static inline bool tc_ring_at_max(uint32_t size, uint64_t min, uint64_t max, uint64_t cap)
{
    tc_ring_clamp(&min, &max, &cap);
    return size >= max;
}

/* How many entries each item gets (A42), into counts[0..n); their sum. The bounds are clamped as tc_ring_new says. */
uint32_t tc_ring_allot(const struct tc_ring_item *items, size_t n, uint64_t min, uint64_t max, uint64_t cap,
                       uint32_t *counts);
/* How many items have more entries than that. */
uint32_t tc_ring_count_above(const uint32_t *counts, size_t n, uint32_t than);
/* A ring of that size with a reference, its counts taken over by copying and its padding set; entries and index are the
 * caller's to fill. The index has as many buckets as that of `like` (NULL: none), if that is about the right number.
 * With room for a margin if asked for, of which it has none yet. */
struct tc_ring *tc_ring_alloc(uint32_t size, const uint32_t *counts, size_t n, const struct tc_ring *like, bool margin);
/* tc_ring_new and tc_ring_update. */
struct tc_ring *tc_ring_build(const struct tc_ring_item *items, size_t n, uint64_t min, uint64_t max, uint64_t cap,
                              struct tc_ring_how how);
struct tc_ring *tc_ring_rebuild(const struct tc_ring *old, const struct tc_ring_item *old_items, const uint32_t *from,
                                const struct tc_ring_item *items, size_t n, uint64_t min, uint64_t max, uint64_t cap,
                                struct tc_ring_how how);
/* Sets the padding. */
void tc_ring_pad(struct tc_ring *r);
/* Fills the index from the hashes, and finds out about ties. */
void tc_ring_index(struct tc_ring *r);
/* Index buckets. */
static inline uint32_t tc_ring_buckets(const struct tc_ring *r)
{
    return (uint32_t)1 << (64 - r->shift);
}

/* The first entry of the ring that is not below h; its size beyond the last. */
static inline uint32_t tc_ring_position(const struct tc_ring *r, uint64_t h)
{
    uint32_t at = tc_ring_find(r, h);
    return at == 0 && r->hash[0] < h ? r->size : at;
}

/* The size to ask for in place of `bytes`: large blocks have sizes that are steps apart. */
static inline size_t tc_ring_steps(size_t bytes)
{
    const size_t step = (size_t)16 << 10, from = 8 * step;
    return bytes < from || bytes > SIZE_MAX - step ? bytes : (bytes + step - 1) & ~(step - 1);
}

/* Advises the system to back a large allocation with large pages: a search in millions of entries misses the cache
 * anyway, and should not miss the page tables as well. */
void tc_ring_advise(void *block, size_t bytes);

#endif
