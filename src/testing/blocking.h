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
/* Has the world do what it does next. Ends the process on any thread but the world's, and if nothing is due in the
 * next hour of the world's time and no thread of a pool waits until a later time. */
void tc_blocking_step(void);

#endif
