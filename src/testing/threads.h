/* Threads that a world owns, for the handlers of pools, which may block. One thread runs at a time. The thread of the
 * world, which made the world, lets another thread run until that thread waits or ends. So their order is the world's
 * choice, and the data that they share needs no lock. "Any thread of the world" is the thread of the world or one of
 * these threads. */
#ifndef TC_TESTING_THREADS_H
#define TC_TESTING_THREADS_H

#include <stdatomic.h>

#include "base/common.h"

/* Makes a thread that runs fn(arg) when the world lets it. Returns 0, or an errno if the system refuses the thread: fn
 * is not called then. Any thread of the world. */
int tc_world_thread_start(void (*fn)(void *arg), void *arg);
/* Returns true on a thread that tc_world_thread_start made. Any thread. */
bool tc_world_thread_here(void);
/* Waits until *woken is true or the world's time is until_ns (UINT64_MAX: no limit); woken NULL: until the time alone.
 * Lets the thread of the world go on in every case. *woken must live until the return. Only on a thread that
 * tc_world_thread_start made. */
void tc_world_thread_wait(const atomic_bool *woken, uint64_t until_ns);

/* --- for the thread of the world --- */

/* Returns how many threads have not ended. */
size_t tc_world_threads(void);
/* Returns how many threads could run now. */
size_t tc_world_threads_ready(void);
/* Runs one of the tc_world_threads_ready threads until it waits or ends: number `which`, from 0, in the order in which
 * they were made. */
void tc_world_thread_run(size_t which);
/* Returns the earliest time until which a thread waits; 0 if a thread has not begun, UINT64_MAX if there is no thread
 * or each waits without a limit. */
uint64_t tc_world_threads_next_ns(void);

#endif
