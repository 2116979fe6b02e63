/* Large blocks of memory, for rings and for what they are built with. Internal to the ring. Any thread. */
#ifndef TC_RING_MEMORY_H
#define TC_RING_MEMORY_H

#include "base/common.h"

/* Returns the size to ask for instead of `bytes`. Sizes of large blocks are 16 KiB steps apart, so that the block of an
 * updated ring fits where the ring before its predecessor was. */
size_t tc_ring_block_size(size_t bytes);
/* Advises the system to back a large block with large pages: a search in millions of entries misses the cache anyway,
 * and should not miss the page tables as well. */
void tc_ring_block_advise(void *block, size_t bytes);

#endif
