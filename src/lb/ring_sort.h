/* Sorts ring entries by hash; those of equal hash keep their order. Internal to the ring. */
#ifndef TC_LB_RING_SORT_H
#define TC_LB_RING_SORT_H

#include <stddef.h>
#include <stdint.h>

/* Sorts the n entries (hash[i], item[i]) into out_hash and out_item; `hash` and `item` are scratch afterwards. Expected
 * linear time on uniform hashes, n log n at worst: hashes come of keys that a control plane chooses. */
void tc_ring_sort(uint64_t *hash, uint32_t *item, uint64_t *out_hash, uint32_t *out_item, size_t n);

#endif
