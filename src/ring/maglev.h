/* The look-up table of Maglev, as Envoy builds it: a struct tc_ring whose entries are the slots of the table. A hash
 * belongs to the slot `hash % size`, without a search. maglev.c has an example.
 *
 * Bit for bit Envoy's table on the same keys and weights, unless the keys were chosen to make a build slow (maglev.c).
 * Any thread. */
#ifndef TC_RING_MAGLEV_H
#define TC_RING_MAGLEV_H

#include "ring/cache.h"

#define TC_MAGLEV_SIZE_DEFAULT 65537u
#define TC_MAGLEV_SIZE_MAX 5000011u
#define TC_MAGLEV_SIZE_REFUSED "The table size of maglev must be prime number" /* Envoy's text */

/* Returns true if a table may have this size: a prime up to TC_MAGLEV_SIZE_MAX. */
bool tc_maglev_size_valid(uint64_t size);
/* Builds the table of n items (0: a table without slots), with one reference. weights[i] is the weight of items[i] and
 * must be positive and finite; items[i].weight is not read. The size must be valid (tc_maglev_size_valid). Items of
 * equal key claim slots in their order in `items`. Does not keep the keys. */
struct tc_ring *tc_maglev_new(const struct tc_ring_item *items, const double *weights, size_t n, uint32_t size);
/* Identifies the table of tc_maglev_new in the cache (ring/cache.h). */
struct tc_ring_id tc_maglev_id(const struct tc_ring_item *items, const double *weights, size_t n, uint32_t size);

#endif
