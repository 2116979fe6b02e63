#include "io/worker.h"

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>

static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
/* Under the mutex. */
static struct tc_link jobs;
static bool running;

static void before_fork(void)
{
    pthread_mutex_lock(&mutex);
}

static void after_fork(void)
{
    pthread_mutex_unlock(&mutex);
}

/* The thread is the parent's, and so is what it was to do. */
static void after_fork_in_child(void)
{
    tc_list_init(&jobs);
    running = false;
    pthread_mutex_unlock(&mutex);
}

static void init(void)
{
    tc_list_init(&jobs);
    pthread_atfork(before_fork, after_fork, after_fork_in_child);
}

static void *work(void *arg)
{
    struct tc_link *link;
    (void)arg;
    for (;;) {
        pthread_mutex_lock(&mutex);
        link = tc_list_pop(&jobs);
        running = link != NULL;
        pthread_mutex_unlock(&mutex);
        if (!link)
            return NULL;
        struct tc_job *job = TC_CONTAINER_OF(link, struct tc_job, link);
        job->run(job);
    }
}

static bool start_thread(void)
{
    /* Signals are the application's: its own threads take them. */
    sigset_t all, before;
    pthread_attr_t attr;
    pthread_t thread;
    pthread_attr_init(&attr);
    pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int rc = pthread_create(&thread, &attr, work, NULL);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attr);
    return rc == 0;
}

void tc_worker_do(struct tc_job *job)
{
    pthread_once(&once, init);
    tc_list_init(&job->link);
    pthread_mutex_lock(&mutex);
    tc_list_append(&jobs, &job->link);
    if (!running)
        running = start_thread();
    bool here = !running;
    if (here)
        tc_list_remove(&job->link);
    pthread_mutex_unlock(&mutex);
    if (here)
        job->run(job);
}
