/* Peak resident memory, CPU time and open descriptors of the process. */
#ifndef TC_SUPPORT_FOOTPRINT_H
#define TC_SUPPORT_FOOTPRINT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Sanitizers retain freed memory and slow everything down, and emulators take time of their own: there the figures are
 * meaningless. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || defined(TC_EMULATED)
#define FOOTPRINT_MEASURED false
#else
#define FOOTPRINT_MEASURED true
#endif

/* Of footprint_begin: the resident memory, and the CPU time since the process began. Of footprint_since: the growth. */
struct footprint {
    long kb;
    uint64_t cpu_ms;
};

/* Starts a measurement and resets the peak. Where FOOTPRINT_MEASURED is false, present memory stands for the peak. */
struct footprint footprint_begin(void);
/* Returns the peak above the memory that was resident at `begin`, and the CPU time since. */
struct footprint footprint_since(const struct footprint *begin);
/* Returns the number of open descriptors, plus a constant. */
size_t footprint_descriptors(void);

#endif
