/* Waiting in a world: functions that block turn the world. */
#ifndef TC_TESTING_BLOCKING_H
#define TC_TESTING_BLOCKING_H

#include <stdbool.h>

/* The calling thread is the world's from now on, until another thread calls this function. */
void tc_blocking_begin(void);
/* Returns true on the world's thread. Any thread. */
bool tc_blocking_is_here(void);
/* Returns true on the world's thread, and on a thread of a pool. Any thread. */
bool tc_blocking_is_in(void);
/* Has the world do the next thing. Called on the world's thread; ends the process on another. Also ends the process if
 * nothing is due within an hour of the world's time. The hour counts from now, or from the earliest limit of a pool
 * thread's wait if that limit is later. */
void tc_blocking_step(void);

#endif
