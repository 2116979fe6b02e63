/* exit: Torc's threads stop before the exit handlers of the libraries that Torc uses run.
 *
 * An OpenSSL that was initialised before Torc used it frees its state in an exit handler while the threads of the
 * process still run. Torc's handler runs before every handler that was registered by the time Torc made its first loop,
 * or last initialised OpenSSL or libcurl. The handler, which waits one second at most in all:
 *
 *   asks each part (enum tc_exit_part) to stop;
 *   waits until the threads of base/thread have ended and no other thread is inside a turn of a loop;
 *   lets no thread enter a foreign library (base/fork.h), and waits for the threads inside.
 *
 * It frees nothing and runs no callback of the application. The loops that it has stopped count as forked
 * (tc_loop_forked): functions of their runtimes return TORC_EFORK, as in a forked child.
 *
 * quick_exit and _exit run no handlers of atexit, so Torc's handler is not needed there. libtorc.so is never
 * unloaded. */
#ifndef TC_BASE_EXIT_H
#define TC_BASE_EXIT_H

#include <pthread.h>

#include "base/common.h"

/* Parts are asked to stop in this order. */
enum tc_exit_part {
    TC_EXIT_LOOPS,
    TC_EXIT_HTTP,
    TC_EXIT_PARTS,
};

/* Every operation is called on the thread that called exit. */
struct tc_exit_ops {
    void (*stop)(void);    /* lets no work begin, and asks running work to end */
    bool (*idle)(void);    /* returns true when no other thread works; NULL: only the count of threads matters */
    void (*stopped)(void); /* called after the waits, also if they took too long; NULL: nothing to do */
};

/* Registers a part. `ops` must live as long as the process; each later call for the part does nothing. Any thread. */
void tc_exit_register(enum tc_exit_part part, const struct tc_exit_ops *ops);
/* Makes Torc's handler run before the handlers that are registered by now. Called after each initialisation of a
 * library that may have exit handlers. Does nothing once foreign libraries are closed. Any thread. */
void tc_exit_before(void);
/* Returns true from the moment when Torc's handler begins; false in a child forked after that, until the child exits
 * itself. Any thread. */
bool tc_exiting(void);
/* Returns true when Torc's handler has begun on another thread. Any thread. */
bool tc_exiting_elsewhere(void);
/* Returns true when Torc's handler has begun on `thread`, which does not return from exit. Any thread. */
bool tc_exit_is_by(pthread_t thread);
/* Makes an exit that waits check again whether all parts are idle. Called when a turn or a counted thread has ended.
 * Any thread. */
void tc_exit_progress(void);

/* --- for base/thread --- */

/* Counts a thread that is about to start: an exit waits until the count is 0. Called by the thread that starts it. */
void tc_exit_thread_starts(void);
/* Marks the calling thread as counted: if the thread calls exit, the handler does not wait for it. */
void tc_exit_thread_begins(void);
/* Takes a thread off the count: one that is about to end, or could not be started. */
void tc_exit_thread_ended(void);

#endif
