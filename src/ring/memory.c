#include "ring/memory.h"

#include <sys/mman.h>

enum {
    STEP = 16 << 10,           /* bytes */
    STEPS_FROM = 8 * STEP,     /* bytes from which sizes are rounded up */
    LARGE_PAGE = 2 << 20,      /* bytes */
    LARGE_PAGES_FROM = 4 << 20 /* bytes */
};

size_t tc_ring_block_size(size_t bytes)
{
    const size_t step = STEP;
    return bytes < STEPS_FROM || bytes > SIZE_MAX - step ? bytes : (bytes + step - 1) & ~(step - 1);
}

void tc_ring_block_advise(void *block, size_t bytes)
{
    if (bytes < LARGE_PAGES_FROM)
        return;
    uintptr_t start = ((uintptr_t)block + LARGE_PAGE - 1) & ~(uintptr_t)(LARGE_PAGE - 1);
    uintptr_t end = ((uintptr_t)block + bytes) & ~(uintptr_t)(LARGE_PAGE - 1);
    /* A system without large pages refuses, which does no harm. */
    if (end > start)
        (void)madvise((void *)start, end - start, MADV_HUGEPAGE);
}
