/* A thread is ready if it has not begun, if its time has come, or if *woken is true. The thread of the world lets one
 * thread run, and waits until that thread waits or ends: `runs` is true for one thread at most. A struct world_thread
 * is freed by the thread of the world when its thread has ended. */
#include "testing/threads.h"

#include <pthread.h>

#include "base/list.h"
#include "base/mem.h"
#include "testing/world.h"

struct world_thread {
    struct tc_link link;
    pthread_t id;
    void (*fn)(void *arg);
    void *arg;
    const atomic_bool *woken; /* borrowed during a wait; NULL: the thread waits for the time alone */
    uint64_t until_ns;        /* 0: the thread does not wait */
    /* Under the mutex: */
    pthread_cond_t cond;
    bool runs, over;
};

static struct tc_link threads = {&threads, &threads};
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t stopped = PTHREAD_COND_INITIALIZER; /* signalled when the thread that ran waits, or is over */
static _Thread_local struct world_thread *self;

/* On the thread itself, with the mutex. */
static void await_run(struct world_thread *t)
{
    while (!t->runs)
        pthread_cond_wait(&t->cond, &mutex);
}

static void *thread_main(void *arg)
{
    self = arg;
    pthread_mutex_lock(&mutex);
    await_run(self);
    pthread_mutex_unlock(&mutex);
    self->fn(self->arg);
    pthread_mutex_lock(&mutex);
    self->runs = false;
    self->over = true;
    pthread_cond_signal(&stopped);
    pthread_mutex_unlock(&mutex);
    return NULL;
}

int tc_world_thread_start(void (*fn)(void *arg), void *arg)
{
    struct world_thread *t = TC_NEW(struct world_thread);
    t->fn = fn;
    t->arg = arg;
    pthread_cond_init(&t->cond, NULL);
    int rc = pthread_create(&t->id, NULL, thread_main, t);
    if (rc != 0) {
        pthread_cond_destroy(&t->cond);
        tc_free(t);
        return rc;
    }
    tc_list_append(&threads, &t->link);
    return 0;
}

bool tc_world_thread_here(void)
{
    return self != NULL;
}

void tc_world_thread_wait(const atomic_bool *woken, uint64_t until_ns)
{
    self->woken = woken;
    self->until_ns = TC_MAX(until_ns, 1);
    pthread_mutex_lock(&mutex);
    self->runs = false;
    pthread_cond_signal(&stopped);
    await_run(self);
    pthread_mutex_unlock(&mutex);
    self->until_ns = 0;
}

/* --- the thread of the world --- */

size_t tc_world_threads(void)
{
    size_t n = 0;
    TC_LIST_FOREACH(it, &threads)
    n++;
    return n;
}

static bool thread_is_ready(const struct world_thread *t)
{
    return t->until_ns <= tc_world_now_ns() || (t->woken && *t->woken);
}

size_t tc_world_threads_ready(void)
{
    size_t n = 0;
    TC_LIST_FOREACH(it, &threads)
    n += thread_is_ready(TC_CONTAINER_OF(it, struct world_thread, link));
    return n;
}

/* Returns ready thread number `which`, from 0; NULL: there are fewer. */
static struct world_thread *thread_ready(size_t which)
{
    TC_LIST_FOREACH(it, &threads)
    {
        struct world_thread *t = TC_CONTAINER_OF(it, struct world_thread, link);
        if (thread_is_ready(t) && which-- == 0)
            return t;
    }
    return NULL;
}

void tc_world_thread_run(size_t which)
{
    struct world_thread *t = thread_ready(which);
    pthread_mutex_lock(&mutex);
    t->runs = true;
    pthread_cond_signal(&t->cond);
    while (t->runs)
        pthread_cond_wait(&stopped, &mutex);
    bool over = t->over;
    pthread_mutex_unlock(&mutex);
    if (!over)
        return;
    pthread_join(t->id, NULL);
    tc_list_remove(&t->link);
    pthread_cond_destroy(&t->cond);
    tc_free(t);
}

uint64_t tc_world_threads_next_ns(void)
{
    uint64_t next_ns = UINT64_MAX;
    TC_LIST_FOREACH(it, &threads)
    next_ns = TC_MIN(next_ns, TC_CONTAINER_OF(it, struct world_thread, link)->until_ns);
    return next_ns;
}
