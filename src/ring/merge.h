/* The last step of an update: makes the new ring of the old one and the entries that only one of the two has. Internal
 * to the ring. Pure functions, any thread. */
#ifndef TC_RING_MERGE_H
#define TC_RING_MERGE_H

#include "ring/ring_internal.h"

/* In the item of a changed entry: only the old ring has the entry, and the other bits are the item's old index. */
#define TC_RING_REMOVED ((uint32_t)1 << 31)

/* The entries that are added or removed. */
struct tc_ring_entries {
    uint32_t n;
    uint64_t *hash; /* ascending; removed ones come before added ones of equal hash */
    uint32_t *item; /* the item's new index; with TC_RING_REMOVED its old index */
    uint32_t *at;   /* the entry of the old ring that is removed, or before which one is added (the old ring's size: at
                       the end); ascending */
};

/* How the new ring differs from the old one. tc_ring_update owns the arrays. */
struct tc_ring_change {
    uint32_t *old_to_new;  /* the new index of each old item, UINT32_MAX for a removed one; NULL if `shifted` */
    bool shifted;          /* the index of old items from `first` on changes by `shift`, that of other items does not */
    uint32_t first, shift; /* shift: modulo 2^32 */
    struct tc_ring_entries entries;
    bool ties; /* the new ring may have entries of equal hash */
};

/* Fills in the entries, the index and `ties` of `r`, which tc_ring_alloc made with the new ring's size and counts, and
 * with `old` as `like`. */
void tc_ring_merge(struct tc_ring *r, const struct tc_ring *old, const struct tc_ring_change *c);

#endif
