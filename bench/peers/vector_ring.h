/* The ring as gRPC C-core stores it, written from its description: a vector of (hash, item). An entry's hash is that of
 * the item's key, "_" and the entry's number among the item's entries, from 0, as text. The vector is sorted by
 * comparison. A binary search finds the first entry whose hash is at least the request's, or the first of all if there
 * is none. */
#ifndef TORC_BENCH_VECTOR_RING_H
#define TORC_BENCH_VECTOR_RING_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct vector_ring_item {
    const char *key;
    size_t key_len;
    uint64_t weight; /* above 0 */
};

struct vector_ring;

/* Makes a ring of n items; n must be above 0. The ring has as many entries as that of tc_ring_new with the same min and
 * max; unlike there, 1 <= min <= max must hold. Keeps neither the items nor their keys. The caller frees the ring,
 * which is never NULL. */
struct vector_ring *vector_ring_new(const struct vector_ring_item *items, size_t n, uint64_t min, uint64_t max);
/* NULL is allowed. */
void vector_ring_free(struct vector_ring *r);
/* Returns the number of entries. */
size_t vector_ring_size(const struct vector_ring *r);
/* Returns the index of the item that a request's hash belongs to. */
size_t vector_ring_pick(const struct vector_ring *r, uint64_t h);
/* Return the hash of an entry, and the index of its item. entry: less than vector_ring_size. */
uint64_t vector_ring_hash_at(const struct vector_ring *r, size_t entry);
size_t vector_ring_item_at(const struct vector_ring *r, size_t entry);

#ifdef __cplusplus
}
#endif
#endif
