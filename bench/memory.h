/* Shared declarations of bench/memory's clients. `PROGRAM idle|connections|calls PORT N` connects, completes an RPC, so
 * that what a process needs once is there, and prints a number of bytes:
 *
 *     idle          resident memory of the process after that, with the connection open and no RPC (N is not used, but
 *                   must not be 0)
 *     connections   what each of N idle connections adds to the process's own memory
 *     calls         what each of N calls without an answer adds to the process's own memory */
#ifndef TORC_BENCH_MEMORY_H
#define TORC_BENCH_MEMORY_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

#define MEMORY_HANG "/torc.test.Backend/Hang" /* a method that never answers */

/* Return the resident bytes of the process: memory_resident all of them, memory_own the anonymous ones alone (RssAnon),
 * which are the process's own memory. Both functions give free memory of the heap back to the system first, and return
 * 0 if /proc/self/status cannot be read. Any thread. */
double memory_resident(void);
double memory_own(void);

#ifdef __cplusplus
}
#endif

#endif
