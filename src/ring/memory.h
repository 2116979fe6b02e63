/* Large blocks of memory, for rings and for what they are built with. Internal to the ring. Any thread. */
#ifndef TC_RING_MEMORY_H
#define TC_RING_MEMORY_H

#include "base/common.h"

/* Returns the size to ask for instead of `bytes`. Sizes of large blocks are 16 KiB steps apart: an updated ring is
 * built while its predecessor is in use, and then fits the space that the ring before those two left free. */
size_t tc_ring_block_size(size_t bytes);
/* Advises the system to back a large block with large pages: a search in millions of entries misses the cache anyway,
 * and should not miss the TLB as well. */
void tc_ring_block_advise(void *block, size_t bytes);

#endif
