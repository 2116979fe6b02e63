/* The rings of a process: whoever needs a ring of the same items and sizes gets the same one, as long as anybody holds
 * it. Any thread. */
#ifndef TC_LB_RING_CACHE_H
#define TC_LB_RING_CACHE_H

#include "lb/ring.h"

/* Stands for all that a ring is made of: 128 bits of a hash with a secret of the process's own. */
struct tc_ring_id {
    uint64_t low, high;
};

struct tc_ring_id tc_ring_id(const struct tc_ring_item *items, size_t n, uint64_t min, uint64_t max, uint64_t cap);
/* A reference, or NULL: nobody holds one. */
struct tc_ring *tc_ring_cache_find(const struct tc_ring_id *id);
/* Takes over a new ring; a reference to it, or to one that came before. */
struct tc_ring *tc_ring_cache_add(const struct tc_ring_id *id, struct tc_ring *ring);

#endif
