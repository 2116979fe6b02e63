/* A ring out of an old one and the entries that one of the two lacks. Internal to the ring. */
#ifndef TC_LB_RING_MERGE_H
#define TC_LB_RING_MERGE_H

#include "lb/ring_impl.h"

/* In the item of an entry: it is one of the old ring that the new one lacks, and the item an old one. */
#define TC_RING_GONE ((uint32_t)1 << 31)
/* It is none of the ring's but one of the margin's. */
#define TC_RING_IN_MARGIN ((uint32_t)1 << 30)

struct tc_ring_entries {
    uint32_t n;
    uint64_t *hash; /* ascending; of equal ones those that go first */
    uint32_t *item; /* the new index of its item; with TC_RING_GONE the old one */
    uint32_t *at;   /* which entry of the old ring goes, or where one comes; ascending */
};

/* Where both rings differ. */
struct tc_ring_change {
    uint32_t *item_to;              /* of each old item its new index, TC_RING_ADDED when it went; NULL if `shifted` */
    bool shifted;                   /* old items from `first` on move by `shift`, the others stay, some may go */
    uint32_t first, shift;          /* modulo 2^32 */
    struct tc_ring_entries few;     /* hashed; without `at` */
    struct tc_ring_entries entries; /* all that come or go */
    bool ties;                      /* there may be entries of equal hash in the new ring */
};

/* The new index of an old item that stays. */
static inline uint32_t tc_ring_item_to(const struct tc_ring_change *c, uint32_t item)
{
    return c->shifted ? item + (item >= c->first ? c->shift : 0) : c->item_to[item];
}

/* Fills a ring that was allocated with the new one's size. wide: by vectors of 512 bits; only where
 * tc_ring_keys_can_wide. */
void tc_ring_merge(struct tc_ring *r, const struct tc_ring *old, const struct tc_ring_change *c, bool wide);

#endif
