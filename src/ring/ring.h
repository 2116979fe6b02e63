/* The ring of A42. A ring depends only on the list of keys and weights, and on the bounds of the ring's size.
 *
 * Bit for bit the ring of gRPC C-core and Envoy on the same list, and of grpc-go on a list sorted by key, as grpc-go
 * sorts it: entry i of a key is XXH64(key + "_" + i, seed 0) with i in decimal from 0; items get their entries in list
 * order, by running sums in IEEE doubles. Entries of equal hash are ordered by item. Immutable once built, and counted.
 * Any thread. ring.c has an example. */
#ifndef TC_RING_RING_H
#define TC_RING_RING_H

#include "base/ref.h"
#include "ring/item.h"

struct tc_ring;

/* Builds a ring of n items (0: an empty ring), with one reference. min and max are clamped to cap, and all three to
 * 1 <= min <= max <= cap <= TC_RING_SIZE_MAX. Does not keep the keys. */
struct tc_ring *tc_ring_new(const struct tc_ring_item *items, size_t n, uint64_t min, uint64_t max, uint64_t cap);
/* Returns how many entries the ring of tc_ring_new(items, n, min, max, cap) has. */
uint32_t tc_ring_entries(const struct tc_ring_item *items, size_t n, uint64_t min, uint64_t max, uint64_t cap);
/* NULL is allowed in tc_ring_ref and tc_ring_unref. */
struct tc_ring *tc_ring_ref(struct tc_ring *r);
void tc_ring_unref(struct tc_ring *r);

/* Returns the number of entries. */
uint32_t tc_ring_size(const struct tc_ring *r);
/* Returns the entry that a request's hash h belongs to: the first entry whose hash is at least h, or entry 0 if there
 * is none; in a table (maglev.h) the slot h % size. The ring must not be empty. O(1) expected. */
uint32_t tc_ring_find(const struct tc_ring *r, uint64_t h);
/* Returns the hash of the entry. For a table: the least hash that belongs to the slot, which is the slot's index. */
uint64_t tc_ring_hash_at(const struct tc_ring *r, uint32_t entry);
/* Returns the index in `items` of the entry's item. */
uint32_t tc_ring_item_at(const struct tc_ring *r, uint32_t entry);
/* Returns how many entries an item has: 0 if the ring is too small to give it one. */
uint32_t tc_ring_count_of(const struct tc_ring *r, uint32_t item);
/* Returns the number of items without an entry. */
uint32_t tc_ring_absent(const struct tc_ring *r);
/* Returns whether the ring is a table (maglev.h). */
bool tc_ring_is_table(const struct tc_ring *r);
/* A walk is the order in which endpoints are tried from the entry `first` on. Returns the item of one step, 0 <= step <
 * tc_ring_walk_steps. The walk of a ring passes all entries (A61). The walk of a table passes 4,096 slots (all slots of
 * a smaller table), then the items in their order, from the item of `first` on; an item without a slot is replaced by
 * the item of `first`. Every item that has an entry is walked at least once. The ring must not be empty. */
uint32_t tc_ring_walk(const struct tc_ring *r, uint32_t first, uint32_t step);
uint32_t tc_ring_walk_steps(const struct tc_ring *r);
/* Returns a hash over all (hash, item) in order: equal rings have equal fingerprints. */
uint64_t tc_ring_fingerprint(const struct tc_ring *r);

#endif
