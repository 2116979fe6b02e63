/* Makes a ring of an old one. Any thread. */
#ifndef TC_RING_UPDATE_H
#define TC_RING_UPDATE_H

#include "ring/ring.h"

/* In `from`: the old ring does not have the item. */
#define TC_RING_ADDED UINT32_MAX

/* Returns a ring equal to that of tc_ring_new(items, n, min, max, cap), with one reference. Copies the entries that
 * both rings have; builds the whole ring if the added and removed entries are more than a quarter of the old ring's.
 * Does not keep the arguments.
 *
 * old: a ring, not a table (maglev.h). old_items: the items that `old` was built of, in their order. from[i]: the index
 * in old_items of the item with the key of items[i], or TC_RING_ADDED; no index may come twice. Removed items and
 * changed weights need no mark. */
struct tc_ring *tc_ring_update(const struct tc_ring *old, const struct tc_ring_item *old_items, const uint32_t *from,
                               const struct tc_ring_item *items, size_t n, uint64_t min, uint64_t max, uint64_t cap);

#endif
