/* A thread is counted (base/exit.h) from before its start until it has run fn and freed OpenSSL's state of the thread
 * (base/fork.h). When an exit has closed foreign libraries meanwhile, the thread must not end by itself: OpenSSL would
 * free that state while its exit handler runs. Such a thread tells its joiner that fn is over, and pauses for good. */
#include "base/thread.h"

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <unistd.h>

#include "base/exit.h"
#include "base/fork.h"
#include "base/mem.h"
#include "base/ref.h"

struct tc_thread {
    struct tc_ref ref; /* one of the thread itself, one of the thread that joins it */
    pthread_t id;
    sem_t over;
    bool stays; /* the thread does not end before the process does */
    void (*fn)(void *arg);
    void *arg;
};

static void thread_unref(struct tc_thread *t)
{
    if (!tc_ref_dec(&t->ref))
        return;
    sem_destroy(&t->over);
    tc_free(t);
}

static void *thread_main(void *arg)
{
    struct tc_thread *t = arg;
    tc_exit_thread_begins();
    tc_cancel_disable();
    t->fn(t->arg);
    bool stays = !tc_foreign_thread_ends();
    if (!stays)
        tc_exit_thread_ended();
    t->stays = stays;
    sem_post(&t->over);
    thread_unref(t);
    if (stays)
        for (;;)
            pause();
    return NULL;
}

int tc_thread_start(struct tc_thread **thread, void (*fn)(void *arg), void *arg)
{
    sigset_t all, before;
    pthread_attr_t attr;
    struct tc_thread *t = TC_NEW(struct tc_thread);
    tc_ref_init(&t->ref); /* the caller's */
    tc_ref_inc(&t->ref);
    sem_init(&t->over, 0, 0);
    t->fn = fn;
    t->arg = arg;
    pthread_attr_init(&attr);
    pthread_attr_setdetachstate(&attr, thread ? PTHREAD_CREATE_JOINABLE : PTHREAD_CREATE_DETACHED);
    sigfillset(&all);
    tc_exit_thread_starts();
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int rc = pthread_create(&t->id, &attr, thread_main, t);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attr);
    if (rc != 0) {
        tc_exit_thread_ended();
        thread_unref(t);
    }
    if (rc == 0 && thread)
        *thread = t;
    else
        thread_unref(t);
    return rc;
}

void tc_thread_join(struct tc_thread *t)
{
    while (sem_wait(&t->over) != 0 && errno == EINTR)
        ;
    if (!t->stays)
        pthread_join(t->id, NULL);
    thread_unref(t);
}
