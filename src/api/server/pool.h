/* Pools of threads, on which handlers may wait (torc/server.h). Any thread. */
#ifndef TC_API_SERVER_POOL_H
#define TC_API_SERVER_POOL_H

#include <torc/server.h>

#include "base/list.h"

/* A call of a handler on a pool. Embedded in its owner, which sets `run` and initialises `link`, and keeps the job
 * until `run` is called or tc_pool_cancel returns true. */
struct tc_pool_job {
    struct tc_link link;                  /* under the pool's mutex */
    void (*run)(struct tc_pool_job *job); /* on a thread of the pool, without the mutex; may free the job */
};

/* Returns true if the pool was made before a fork, and this is the child: the child has none of the pool's threads, and
 * one of them may have locked the mutex. NULL: false. */
bool tc_pool_is_of_parent(const torc_pool *pool);
/* Queues a job for the pool's threads. Returns false, and the job is still the caller's, if the queue is full,
 * torc_pool_free has begun, or the pool is of the parent (tc_pool_is_of_parent). */
bool tc_pool_run(torc_pool *pool, struct tc_pool_job *job);
/* Takes a job that was given to tc_pool_run out of the queue, in O(1). Returns false if the job is not in the queue (a
 * thread has taken it, or tc_pool_run returned false), or the pool is of the parent. */
bool tc_pool_cancel(torc_pool *pool, struct tc_pool_job *job);
/* Add and release a reference. The last must not go before the threads have ended. NULL is allowed. */
torc_pool *tc_pool_ref(torc_pool *pool);
void tc_pool_unref(torc_pool *pool);

#endif
