/* The threads that Torc starts, but for those of a torc_pool (api/server/pool.c). In these threads signals are blocked,
 * since signals are the application's, and cancellation is disabled. An exit waits for the end of these threads, one
 * second at most (base/exit.h). Any thread. */
#ifndef TC_BASE_THREAD_H
#define TC_BASE_THREAD_H

#include "base/cancel.h"
#include "base/common.h"

struct tc_thread;

/* Runs fn(arg) on a new thread. Stores the thread in *thread, for tc_thread_join; with `thread` NULL it is detached.
 * Returns 0, or an errno with *thread untouched. */
int tc_thread_start(struct tc_thread **thread, void (*fn)(void *arg), void *arg);
/* Waits for the end of fn, and of the thread unless the process is exiting, and frees `thread`. */
void tc_thread_join(struct tc_thread *thread);

#endif
