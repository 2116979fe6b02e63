/* The ring as gRPC C-core stores it, written from its description: a vector of (hash, item). An entry's hash is that of
 * the item's key, "_" and the entry's number as text. The vector is sorted by comparison. A binary search finds the
 * first entry whose hash is at least the request's, or the first of all if there is none. */
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
    uint64_t weight;
};

struct vector_ring;

/* Makes a ring of n items, above 0, with min to max entries as in tc_ring_new. Does not keep the items. */
struct vector_ring *vector_ring_new(const struct vector_ring_item *items, size_t n, uint64_t min, uint64_t max);
void vector_ring_free(struct vector_ring *r);
size_t vector_ring_size(const struct vector_ring *r);
/* Returns the index of the item that a request's hash belongs to. */
size_t vector_ring_pick(const struct vector_ring *r, uint64_t h);
uint64_t vector_ring_hash_at(const struct vector_ring *r, size_t entry);
size_t vector_ring_item_at(const struct vector_ring *r, size_t entry);

#ifdef __cplusplus
}
#endif
#endif
