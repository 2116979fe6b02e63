/* The background thread: one for the process, which runs jobs that would hold up a loop, one after another. The thread
 * exists while there are jobs. A forked child starts with none. */
#ifndef TC_IO_BACKGROUND_THREAD_H
#define TC_IO_BACKGROUND_THREAD_H

#include "base/list.h"

/* A job, embedded in its owner, which must keep it until `run` is called. `run` is called once, on the background
 * thread, or from inside of tc_background_run when the system refuses a thread. `run` may free the job. A job that has
 * not begun when the process exits does not run. A job that waits while the process forks runs in the parent alone. */
struct tc_job {
    struct tc_link link;
    void (*run)(struct tc_job *job);
};

/* Queues a job whose `run` is set. The caller must hold no lock that `run` takes. Any thread. */
void tc_background_run(struct tc_job *job);

#endif
