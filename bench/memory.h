/* What the clients of bench/memory share: `PROGRAM idle|connections|calls PORT N` prints the bytes of resident memory
 * that the process has with one idle channel, or that each of N connections or calls adds. */
#ifndef TORC_BENCH_MEMORY_H
#define TORC_BENCH_MEMORY_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

#define MEMORY_HANG "/torc.test.Backend/Hang" /* a method that answers nothing */

/* Returns the resident bytes: all, or the anonymous ones, which are the process's own. Gives free memory of the heap
 * back first. */
double memory_resident(void);
double memory_own(void);

#ifdef __cplusplus
}
#endif

#endif
