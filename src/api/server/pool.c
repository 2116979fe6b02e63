/* Pools of threads for handlers.
 *
 * The queue may have max_jobs jobs, and one more for each idle thread, since that thread is about to take it. Threads
 * take jobs in the order in which they came. A job leaves the queue at once when its RPC ends (tc_pool_cancel), so that
 * a client that opens and resets RPCs does not fill the queue. A pool that was freed takes no more jobs. Its threads
 * end when the queue is empty.
 *
 * Torc's exit handler does not wait for these threads: their handlers are the application's. While the process exits,
 * functions of a call other than getters return TORC_EFORK to these handlers. torc_pool is reference-counted: the
 * application and the servers that use the pool hold it. The mutex is not held while a job runs. */
#include "api/server/pool.h"

#include <signal.h>

#include "base/fork.h"
#include "base/mem.h"
#include "base/ref.h"
#include "base/status.h"
#include "base/thread.h"
#include "io/loop.h"

enum { MAX_THREADS = 4096, MAX_QUEUE = 1048576 };

struct torc_pool {
    struct tc_ref ref;
    unsigned generation; /* tc_fork_generation when the pool was made */
    pthread_mutex_t mutex;
    pthread_cond_t cond;
    size_t n_threads;   /* that were started; 0 once pool_stop has joined them */
    pthread_t *threads; /* owned */
    /* Under the mutex: */
    struct tc_link jobs;
    size_t n_jobs, max_jobs; /* max_jobs is constant */
    size_t n_running;        /* threads that run a job; the others are idle */
    bool closed;             /* pool_stop has begun */
};

torc_pool *tc_pool_ref(torc_pool *pool)
{
    if (pool)
        tc_ref_inc(&pool->ref);
    return pool;
}

void tc_pool_unref(torc_pool *pool)
{
    if (!pool || !tc_ref_dec(&pool->ref))
        return;
    pthread_cond_destroy(&pool->cond);
    pthread_mutex_destroy(&pool->mutex);
    tc_free(pool->threads);
    tc_free(pool);
}

bool tc_pool_is_of_parent(const torc_pool *pool)
{
    return pool && pool->generation != tc_fork_generation();
}

bool tc_pool_run(torc_pool *pool, struct tc_pool_job *job)
{
    if (tc_pool_is_of_parent(pool))
        return false;
    pthread_mutex_lock(&pool->mutex);
    bool taken = !pool->closed && pool->n_jobs < pool->max_jobs + (pool->n_threads - pool->n_running);
    if (taken) {
        tc_list_append(&pool->jobs, &job->link);
        pool->n_jobs++;
        pthread_cond_signal(&pool->cond);
    }
    pthread_mutex_unlock(&pool->mutex);
    return taken;
}

bool tc_pool_cancel(torc_pool *pool, struct tc_pool_job *job)
{
    if (tc_pool_is_of_parent(pool))
        return false;
    pthread_mutex_lock(&pool->mutex);
    bool waits = tc_list_linked(&job->link);
    if (waits) {
        tc_list_remove(&job->link);
        pool->n_jobs--;
    }
    pthread_mutex_unlock(&pool->mutex);
    return waits;
}

static void *pool_main(void *arg)
{
    torc_pool *pool = arg;
    tc_cancel_disable();
    pthread_mutex_lock(&pool->mutex);
    for (;;) {
        struct tc_link *link = tc_list_pop(&pool->jobs);
        if (link) {
            pool->n_jobs--;
            pool->n_running++;
            pthread_mutex_unlock(&pool->mutex);
            struct tc_pool_job *job = TC_CONTAINER_OF(link, struct tc_pool_job, link);
            job->run(job);
            if (tc_pool_is_of_parent(pool)) /* the handler forked; the mutex is as the parent's threads left it */
                return NULL;
            pthread_mutex_lock(&pool->mutex);
            pool->n_running--;
        } else if (pool->closed) {
            break;
        } else {
            pthread_cond_wait(&pool->cond, &pool->mutex);
        }
    }
    pthread_mutex_unlock(&pool->mutex);
    return NULL;
}

/* Ends the threads when they have run all jobs of the queue, and waits for them. */
static void pool_stop(torc_pool *pool)
{
    pthread_mutex_lock(&pool->mutex);
    pool->closed = true;
    pthread_cond_broadcast(&pool->cond);
    pthread_mutex_unlock(&pool->mutex);
    for (size_t i = 0; i < pool->n_threads; i++)
        pthread_join(pool->threads[i], NULL);
    pool->n_threads = 0;
}

/* Starts the threads, with all signals blocked. Returns 0; or an errno, when some may have been started. */
static int pool_start(torc_pool *pool, size_t threads)
{
    sigset_t all, before;
    int rc = 0;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    while (rc == 0 && pool->n_threads < threads) {
        rc = pthread_create(&pool->threads[pool->n_threads], NULL, pool_main, pool);
        pool->n_threads += rc == 0;
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return rc;
}

torc_pool *torc_pool_new(int64_t threads, int64_t queue, torc_error **error)
{
    TC_NO_CANCEL;
    if (tc_error_pending(error))
        return NULL;
    if (threads < 1 || threads > MAX_THREADS || queue < 1 || queue > MAX_QUEUE) {
        bool bad_threads = threads < 1 || threads > MAX_THREADS;
        tc_error_set(error, TORC_EINVAL, TORC_LAYER_API, "%s: is %lld, must be in 1..%d",
                     bad_threads ? "threads" : "queue", (long long)(bad_threads ? threads : queue),
                     bad_threads ? MAX_THREADS : MAX_QUEUE);
        return NULL;
    }
    torc_pool *pool = TC_NEW(torc_pool);
    tc_ref_init(&pool->ref);
    pool->generation = tc_fork_generation();
    pthread_mutex_init(&pool->mutex, NULL);
    pthread_cond_init(&pool->cond, NULL);
    tc_list_init(&pool->jobs);
    pool->max_jobs = (size_t)queue;
    pool->threads = tc_calloc((size_t)threads, sizeof(*pool->threads));
    int rc = pool_start(pool, (size_t)threads);
    if (rc == 0)
        return pool;
    tc_error_set(error, TORC_EIO, TORC_LAYER_API, "cannot start a thread: %s", strerror(rc));
    pool_stop(pool);
    tc_pool_unref(pool);
    return NULL;
}

int torc_pool_free(torc_pool *pool)
{
    TC_NO_CANCEL;
    if (!pool)
        return 0;
    if (tc_pool_is_of_parent(pool))
        return TORC_EFORK;
    for (size_t i = 0; i < pool->n_threads; i++)
        if (pthread_equal(pool->threads[i], pthread_self()))
            return TORC_EDEADLK;
    if (tc_loop_in_any_turn())
        return TORC_EDEADLK;
    pool_stop(pool);
    tc_pool_unref(pool);
    return 0;
}
