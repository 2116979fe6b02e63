/* A ring's margin (ring_impl.h): made with the ring, and carried from one ring to the next. Internal to the ring. */
#ifndef TC_LB_RING_MARGIN_H
#define TC_LB_RING_MARGIN_H

#include "lb/ring_impl.h"
#include "lb/ring_merge.h"
#include "lb/ring_sort.h"

/* What becomes of an item's entry in the margin: bits. */
enum {
    TC_RING_TOGGLES = 1, /* it comes to the ring, or goes: */
    TC_RING_GOES = 2,
    TC_RING_REMOVED = 4 /* the item goes; its entries are with the others that go */
};
#define TC_RING_NO_BASE INT32_MAX /* an entry that no item has */

/* True when a margin is worth its memory and time: many items have one entry more than many others, and
 * there are enough for that to matter. *base: which one that is. */
bool tc_ring_margin_base(const uint32_t *counts, uint32_t n, uint32_t size, uint32_t *base);
/* Gives the sort all entries of the ring's items, and writes to hash[i] that of the margin of item i. */
void tc_ring_margin_entries(const struct tc_ring *r, const struct tc_ring_item *items, uint32_t base,
                            struct tc_ring_sort *sort, uint64_t *hash);
/* Gives a finished ring its margin, unless equal hashes forbid one. */
void tc_ring_margin_set(struct tc_ring *r, uint32_t base, const uint64_t *hash);
/* The same, the hashes made for it. */
void tc_ring_margin_make(struct tc_ring *r, const struct tc_ring_item *items, uint32_t base);

/* Completes c's entries that come or go, which has `few`, by those of the old ring's margin (if it has one), and moves
 * the margin to the new ring (if that has room for it, and with `base` as the old one's). state[o]: bits of each old
 * item. Of the few, those with TC_RING_IN_MARGIN are the entries of new items in the margin. */
void tc_ring_margin_walk(struct tc_ring *r, const struct tc_ring *old, struct tc_ring_change *c, const uint8_t *state);

#endif
