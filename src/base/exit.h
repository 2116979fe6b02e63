/* exit: Torc's threads stop before the exit handlers of the libraries that Torc uses run.
 *
 * An OpenSSL that was initialised before Torc used it frees its state in an exit handler while the threads of the
 * process still run. Torc's handler runs before every handler that was registered by the time Torc made its first loop,
 * or last initialised OpenSSL or libcurl. The handler asks each part (enum tc_exit_part) to stop, waits until Torc's
 * threads have ended and no other thread is inside a turn of a loop, then lets no thread enter a foreign library and
 * waits for those inside; one second in all. It frees nothing and runs no callback of the application. After it the
 * runtimes of the process answer TORC_EFORK, as in a forked child.
 *
 * quick_exit and _exit run no handlers of libraries, so Torc's handler is not needed there. libtorc.so is never
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
    bool (*idle)(void);    /* returns true when no other thread works; NULL: only counted threads matter */
    void (*stopped)(void); /* called after the wait; NULL: nothing to do */
};

/* Registers a part; `ops` must be constant. Any thread, any number of times. */
void tc_exit_register(enum tc_exit_part part, const struct tc_exit_ops *ops);
/* Makes Torc's handler run before the handlers that are registered by now. Called after each initialisation of a
 * library that may have exit handlers. Any thread; no effect once foreign libraries are closed. */
void tc_exit_before(void);
/* Returns true from the moment when Torc's handler begins. Any thread. */
bool tc_exiting(void);
/* Returns true when Torc's handler has begun on another thread. Any thread. */
bool tc_exiting_elsewhere(void);
/* Returns true when Torc's handler has begun on `thread`, which does not return from exit. Any thread. */
bool tc_exit_is_by(pthread_t thread);
/* Makes an exit check again whether all parts are idle. Called after a turn, or a counted thread, has ended. Any
 * thread. */
void tc_exit_progress(void);

/* --- for base/thread --- */

/* Counts a thread that is about to start: an exit waits until the count is 0. Called by the thread that starts it. */
void tc_exit_thread_starts(void);
/* Marks the calling thread as one that is counted: an exit that it calls itself does not wait for it. */
void tc_exit_thread_begins(void);
/* Takes a thread that has ended, or could not be started, off the count. */
void tc_exit_thread_ended(void);

#endif
