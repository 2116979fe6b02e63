/* Pools of a world, instead of src/api/server/pool.c: handlers run on threads of the world (testing/threads.h). A
 * thread runs jobs until none is left, and ends; it holds a reference to its pool. Each job starts one more thread
 * while fewer than n_threads run. Any thread of the world: no lock guards a pool. */
#include "api/server/pool.h"

#include "base/fork.h"
#include "base/mem.h"
#include "base/ref.h"
#include "base/status.h"
#include "testing/blocking.h"
#include "testing/threads.h"
#include "testing/world.h"

enum { MAX_THREADS = 4096, MAX_QUEUE = 1048576 };

struct torc_pool {
    struct tc_ref ref;
    struct tc_link jobs;         /* that wait: struct tc_pool_job, oldest first */
    size_t n_jobs, max_jobs;     /* in `jobs`; the most of them, with one more for each thread that can still start */
    size_t n_running, n_threads; /* threads that have not ended; the most of them */
    bool closed;                 /* torc_pool_free has begun */
    unsigned generation;         /* tc_fork_generation at torc_pool_new */
};

torc_pool *tc_pool_ref(torc_pool *pool)
{
    if (pool)
        tc_ref_inc(&pool->ref);
    return pool;
}

void tc_pool_unref(torc_pool *pool)
{
    if (pool && tc_ref_dec(&pool->ref))
        tc_free(pool);
}

static void pool_main(void *arg)
{
    torc_pool *pool = arg;
    struct tc_link *link;
    while (!tc_pool_is_of_parent(pool) && (link = tc_list_pop(&pool->jobs))) {
        struct tc_pool_job *job = TC_CONTAINER_OF(link, struct tc_pool_job, link);
        pool->n_jobs--;
        job->run(job);
    }
    pool->n_running--;
    tc_pool_unref(pool);
}

bool tc_pool_is_of_parent(const torc_pool *pool)
{
    return pool && pool->generation != tc_fork_generation();
}

bool tc_pool_run(torc_pool *pool, struct tc_pool_job *job)
{
    size_t n_free = pool->n_threads - pool->n_running;
    if (pool->closed || tc_pool_is_of_parent(pool) || pool->n_jobs >= pool->max_jobs + n_free)
        return false;
    if (n_free > 0 && tc_world_thread_start(pool_main, pool) == 0) {
        tc_pool_ref(pool);
        pool->n_running++;
    } else if (pool->n_running == 0) {
        return false; /* the system has no thread left */
    }
    tc_list_append(&pool->jobs, &job->link);
    pool->n_jobs++;
    return true;
}

bool tc_pool_cancel(torc_pool *pool, struct tc_pool_job *job)
{
    bool waits = !tc_pool_is_of_parent(pool) && tc_list_linked(&job->link);
    if (waits) {
        tc_list_remove(&job->link);
        pool->n_jobs--;
    }
    return waits;
}

torc_pool *torc_pool_new(int64_t threads, int64_t queue, torc_error **error)
{
    if (tc_error_pending(error))
        return NULL;
    bool bad_threads = threads < 1 || threads > MAX_THREADS;
    if (bad_threads || queue < 1 || queue > MAX_QUEUE) {
        tc_error_set(error, TORC_EINVAL, TORC_LAYER_API, "%s: is %lld, must be in 1..%d",
                     bad_threads ? "threads" : "queue", (long long)(bad_threads ? threads : queue),
                     bad_threads ? MAX_THREADS : MAX_QUEUE);
        return NULL;
    }
    torc_pool *pool = TC_NEW(torc_pool);
    tc_ref_init(&pool->ref);
    tc_list_init(&pool->jobs);
    pool->generation = tc_fork_generation();
    pool->n_threads = (size_t)threads;
    pool->max_jobs = (size_t)queue;
    return pool;
}

int torc_pool_free(torc_pool *pool)
{
    if (!pool)
        return 0;
    if (tc_world_in_turn() || tc_world_thread_here())
        return TORC_EDEADLK;
    pool->closed = true;
    while (pool->n_running > 0)
        tc_blocking_step();
    tc_pool_unref(pool);
    return 0;
}
