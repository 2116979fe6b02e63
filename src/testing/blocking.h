/* Waiting in a world: functions that block turn it. */
#ifndef TC_TESTING_BLOCKING_H
#define TC_TESTING_BLOCKING_H

#include <stdbool.h>

/* The calling thread is the world's from now on. */
void tc_blocking_begin(void);
/* Returns true on the world's thread. */
bool tc_blocking_is_here(void);
/* Returns true on the world's thread, and on a thread of a pool. */
bool tc_blocking_is_in(void);
/* Has the world do the next thing. Called on the world's thread; ends the process on another. Also ends the process if
 * nothing is due within an hour of the world's time. The hour counts from the earliest time until which a thread of a
 * pool waits, if that is later than now. */
void tc_blocking_step(void);

#endif
