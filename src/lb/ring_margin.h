/* A ring's margin (ring_impl.h), made with the ring. Internal to the ring. */
#ifndef TC_LB_RING_MARGIN_H
#define TC_LB_RING_MARGIN_H

#include "lb/ring_impl.h"
#include "lb/ring_sort.h"

#define TC_RING_NO_BASE INT32_MAX /* an entry that no item has */

/* True when a margin is worth its memory and time: many items have one entry more than many others, and
 * there are enough for that to matter. *base: which one that is. */
bool tc_ring_margin_base(const uint32_t *counts, uint32_t n, uint32_t size, uint32_t *base);
/* Gives the sort all entries of the ring's items, and writes to hash[i] that of the margin of item i. */
void tc_ring_margin_entries(const struct tc_ring *r, const struct tc_ring_item *items, uint32_t base,
                            struct tc_ring_sort *sort, uint64_t *hash);
/* Gives a finished ring its margin, unless equal hashes forbid one. wide: as for tc_ring_merge. */
void tc_ring_margin_set(struct tc_ring *r, uint32_t base, const uint64_t *hash, bool wide);
/* The same, the hashes made for it. */
void tc_ring_margin_make(struct tc_ring *r, const struct tc_ring_item *items, uint32_t base, bool wide);

#endif
