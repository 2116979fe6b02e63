/* The items of a ring, and the limits of its size (A42). Plain data. */
#ifndef TC_RING_ITEM_H
#define TC_RING_ITEM_H

#include "base/slice.h"

#define TC_RING_SIZE_MAX 8388608u /* the largest size that a config may ask for */
#define TC_RING_DEFAULT_MIN 1024u /* A42's default of minRingSize */
#define TC_RING_DEFAULT_MAX 4096u /* A42's default of maxRingSize */
/* The channel's limit on every ring, unless its option or GRPC_RING_HASH_CAP sets another. */
#define TC_RING_DEFAULT_CAP 4096u

struct tc_ring_item {
    struct tc_slice key; /* the hash_key; else the hostname, if the config asks for it; else the first address */
    uint64_t weight;     /* 0 counts as 1 */
};

#endif
