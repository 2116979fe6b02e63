/* Threads that run handlers which wait (torc/server.h). Any thread. */
#ifndef TC_API_SERVER_POOL_H
#define TC_API_SERVER_POOL_H

#include <torc/server.h>

#include "base/list.h"

/* A handler that is to run, embedded in its owner, which initialises `link`; `run` may free it. */
struct tc_pool_job {
    struct tc_link link;
    void (*run)(struct tc_pool_job *job);
};

/* Returns false, and the job is still the caller's, when the queue is full or the pool was freed. */
bool tc_pool_run(torc_pool *pool, struct tc_pool_job *job);
/* Takes a job that was given to tc_pool_run out of the queue, in O(1). Returns false if it is not there: a thread runs
 * or has run it, it was never taken, or this is a child of a fork. */
bool tc_pool_cancel(torc_pool *pool, struct tc_pool_job *job);
torc_pool *tc_pool_ref(torc_pool *pool);
void tc_pool_unref(torc_pool *pool); /* NULL is allowed */

#endif
