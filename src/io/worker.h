/* Work that would hold up a loop: done one job after another on a thread of the process that exists while there is any.
 * A child of the process starts with none. */
#ifndef TC_IO_WORKER_H
#define TC_IO_WORKER_H

#include "base/list.h"

/* Embedded in its owner; run once, on the worker's thread (or, when the system refuses a thread, from inside
 * tc_worker_do). It may free itself. */
struct tc_job {
    struct tc_link link;
    void (*run)(struct tc_job *job);
};

/* Any thread. */
void tc_worker_do(struct tc_job *job);

#endif
