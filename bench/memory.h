/* Shared declarations of bench/memory's clients. `PROGRAM idle|connections|calls PORT N` prints the resident bytes of a
 * process with one idle channel, or the bytes that each of N connections or calls adds. */
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
