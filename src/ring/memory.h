/* Large blocks of memory, for rings and the scratch memory of their construction. Internal to the ring. Any thread. */
#ifndef TC_RING_MEMORY_H
#define TC_RING_MEMORY_H

#include "base/common.h"

/* Returns the size to allocate for `bytes`: 128 KiB and more are rounded up to a multiple of 16 KiB, since a ring
 * changes a little in size with each update. While ring 3 is built, ring 2 is in use; ring 3 then fits the space that
 * ring 1 left free. */
size_t tc_ring_block_size(size_t bytes);
/* Advises the system to back a block with large pages: a search in millions of entries misses the cache anyway, and
 * should not miss the TLB as well. Does nothing below 4 MiB. */
void tc_ring_block_advise(void *block, size_t bytes);

#endif
