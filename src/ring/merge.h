/* The last step of an update: the new ring out of the old one and the entries that only one of the two has. Internal to
 * the ring. Pure functions, any thread. */
#ifndef TC_RING_MERGE_H
#define TC_RING_MERGE_H

#include "ring/ring_internal.h"

/* In the item of a changed entry: the old ring has the entry and the new ring does not. The item is an old index then.
 */
#define TC_RING_REMOVED ((uint32_t)1 << 31)

/* The entries that are added or removed. */
struct tc_ring_entries {
    uint32_t n;
    uint64_t *hash; /* ascending; removed ones come before added ones of equal hash */
    uint32_t *item; /* the item's new index; with TC_RING_REMOVED its old index */
    uint32_t *at;   /* the entry of the old ring that is removed, or before which one is added; ascending */
};

/* How the new ring differs from the old one. */
struct tc_ring_change {
    uint32_t *old_to_new;  /* the new index of each old item, TC_RING_ADDED for a removed one; NULL if `shifted` */
    bool shifted;          /* old items from `first` on move by `shift`, the others keep their index */
    uint32_t first, shift; /* shift: modulo 2^32 */
    struct tc_ring_entries entries;
    bool ties; /* the new ring may have entries of equal hash */
};

/* Fills in the entries, the index and `ties` of `r`, which tc_ring_alloc made with the size and the counts of the new
 * ring and like `old`. */
void tc_ring_merge(struct tc_ring *r, const struct tc_ring *old, const struct tc_ring_change *c);

#endif
