/* What the process holds and spends: the peak of its resident memory, and CPU time. */
#ifndef TC_SUPPORT_FOOTPRINT_H
#define TC_SUPPORT_FOOTPRINT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Sanitizers keep what was freed and slow everything down: under them the figures mean nothing. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define FOOTPRINT_MEASURED false
#else
#define FOOTPRINT_MEASURED true
#endif

struct footprint {
    long kb;
    uint64_t cpu_ms;
};

/* From here on; the peak is counted anew. */
struct footprint footprint_begin(void);
/* The peak over what was resident then, and the CPU time since. */
struct footprint footprint_since(const struct footprint *begin);
/* How many descriptors are open, and a constant. */
size_t footprint_descriptors(void);

#endif
