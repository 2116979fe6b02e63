/* The rings and tables (maglev.h) of the process: channels that need a ring of the same items and sizes share one, as
 * long as anybody holds a reference. Any thread. */
#ifndef TC_RING_CACHE_H
#define TC_RING_CACHE_H

#include "ring/ring.h"

/* Identifies a ring by everything that it is made of: 128 bits of a hash with a secret of the process. */
struct tc_ring_id {
    uint64_t low, high;
};

/* Identifies the ring of tc_ring_new(items, n, min, max, cap). */
struct tc_ring_id tc_ring_id(const struct tc_ring_item *items, size_t n, uint64_t min, uint64_t max, uint64_t cap);
/* Identifies a table (maglev.h) by its items and two numbers, which are not clamped: tc_maglev_id passes the table's
 * size as `min`, and 0 as `max`. */
struct tc_ring_id tc_ring_id_of_sizes(const struct tc_ring_item *items, size_t n, uint64_t min, uint64_t max);
/* Returns a reference to the ring or table with this id, or NULL if nobody holds one. */
struct tc_ring *tc_ring_cache_find(const struct tc_ring_id *id);
/* Adds a new ring, and takes over the caller's reference. Returns a reference for the caller: to the ring, or to an
 * equal ring that another thread added first; the new ring is freed then. */
struct tc_ring *tc_ring_cache_add(const struct tc_ring_id *id, struct tc_ring *ring);

#endif
