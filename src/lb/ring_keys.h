/* The hashes of a ring's entries. Internal to the ring. */
#ifndef TC_LB_RING_KEYS_H
#define TC_LB_RING_KEYS_H

#include "base/slice.h"

/* XXH64 (seed 0) of key + "_" + i in decimal, for i = first .. first + n - 1, into out[0..n). */
void tc_ring_keys(struct tc_slice key, uint32_t first, uint32_t n, uint64_t *out);

#endif
