/* The ring of A42 alone: a pure leaf that knows keys and weights, usable by itself.
 *
 * Bit-exact with gRPC C-core, Envoy and grpc-go on canonical keys: entry i of a key is XXH64(key + "_" + i, seed 0), i
 * in decimal from 0; entries are allotted in list order with running sums in IEEE doubles; equal hashes are ordered by
 * endpoint index. Immutable and shared once built. */
#ifndef TC_LB_RING_H
#define TC_LB_RING_H

#include "base/ref.h"
#include "base/slice.h"

#define TC_RING_SIZE_MAX 8388608u
#define TC_RING_DEFAULT_MIN 1024u
#define TC_RING_DEFAULT_MAX 4096u
#define TC_RING_DEFAULT_CAP 4096u

struct tc_ring_item {
    struct tc_slice key; /* hash_key, or the first address as text */
    uint64_t weight;     /* 0 counts as 1 */
};

struct tc_ring; /* opaque: entries sorted by hash, with an index over the hashes' top bits */

/* Builds a ring of n items (n may be 0: an empty ring). min and max are clamped to cap, and 1 <= min <= max <= cap <=
 * TC_RING_SIZE_MAX must hold afterwards. The keys are not kept. */
struct tc_ring *tc_ring_new(const struct tc_ring_item *items, size_t n, uint64_t min, uint64_t max, uint64_t cap);
/* The ring of tc_ring_new(items, n, min, max, cap), made of one that differs in a few items: what both have is copied,
 * so it costs the change and one merge. old_items: the items that `old` was built of, in their order; from[i]: the
 * index among them of the item with the key of items[i], TC_RING_ADDED where there is none; no index may come twice.
 * Items that were removed, and changed weights, show by themselves. Builds anew when too much differs. */
#define TC_RING_ADDED UINT32_MAX
struct tc_ring *tc_ring_update(const struct tc_ring *old, const struct tc_ring_item *old_items, const uint32_t *from,
                               const struct tc_ring_item *items, size_t n, uint64_t min, uint64_t max, uint64_t cap);
/* How many entries such a ring has. */
uint32_t tc_ring_entries(const struct tc_ring_item *items, size_t n, uint64_t min, uint64_t max, uint64_t cap);
struct tc_ring *tc_ring_ref(struct tc_ring *r);
void tc_ring_unref(struct tc_ring *r);

/* Number of entries. */
uint32_t tc_ring_size(const struct tc_ring *r);
/* The entry that a request hash belongs to: the first with hash >= h, the first of all beyond the last. The ring must
 * not be empty. O(1) expected. */
uint32_t tc_ring_find(const struct tc_ring *r, uint64_t h);
uint64_t tc_ring_hash_at(const struct tc_ring *r, uint32_t entry);
/* The index in `items` of the entry's endpoint. */
uint32_t tc_ring_item_at(const struct tc_ring *r, uint32_t entry);
/* How many entries an item has (0: the cap left it without one). */
uint32_t tc_ring_count_of(const struct tc_ring *r, uint32_t item);
/* Number of items with no entry. */
uint32_t tc_ring_absent(const struct tc_ring *r);
/* A number that two rings share only if they are the same: over all (hash, item) in order. */
uint64_t tc_ring_fingerprint(const struct tc_ring *r);

#endif
