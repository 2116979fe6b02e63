/* Peak resident memory, CPU time and open descriptors of the process. */
#ifndef TC_SUPPORT_FOOTPRINT_H
#define TC_SUPPORT_FOOTPRINT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "support/sanitizer.h"

/* The figures are meaningless under the address and thread sanitizers, which retain freed memory and slow everything
 * down, and under emulators, which take time of their own. */
#if SANITIZER_ADDRESS || SANITIZER_THREAD || defined(TC_EMULATED)
#define FOOTPRINT_MEASURED false
#else
#define FOOTPRINT_MEASURED true
#endif

/* From footprint_begin: the resident memory, and the CPU time since the process began. From footprint_since: the
 * differences, where kb may be negative if FOOTPRINT_MEASURED is false. */
struct footprint {
    long kb;         /* KiB, the "kB" of /proc */
    uint64_t cpu_ms; /* of all threads, user and system */
};

/* Starts a measurement, and resets the peak of the process if FOOTPRINT_MEASURED: one measurement of memory at a
 * time. */
struct footprint footprint_begin(void);
/* Returns how far the peak since footprint_begin is above the memory that was resident at `begin`, and the CPU time
 * since. Where FOOTPRINT_MEASURED is false, the memory that is resident now stands for the peak. */
struct footprint footprint_since(const struct footprint *begin);
/* Returns the number of open descriptors, plus a constant: for differences. */
size_t footprint_descriptors(void);

#endif
