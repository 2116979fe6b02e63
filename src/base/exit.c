/* The exit handler: stops Torc's threads before the handlers of foreign libraries run, when the application calls exit
 * or returns from main.
 *
 *   1 stop       each registered part lets no work begin and asks running work to end
 *   2 wait       until the parts are idle and the counted threads have ended
 *   3 close      no thread enters a foreign library any longer; waits for the threads that are inside
 *   4 stopped    each part tells the threads that wait for it
 *
 * Steps 2 and 3 together wait one second at most. All steps are one atexit handler. It is registered again after
 * OpenSSL or libcurl was initialised, so that it runs before that library's own handlers; the second and later runs
 * return at once. */
#include "base/exit.h"

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

#include "base/clock.h"
#include "base/fork.h"
#include "base/wait.h"

/* The longest time that an exit waits for Torc. Torc's threads end within about a millisecond, unless one is in a
 * callback of the application, in a job of the background thread, or in an old libcurl that waits for its resolver. */
#define MAX_WAIT_NS TC_NS_PER_S

static _Atomic(const struct tc_exit_ops *) parts[TC_EXIT_PARTS];
static atomic_bool exiting;
static pthread_t exiting_thread;
static sem_t progress;

/* How many threads of base/thread there are, and whether the calling thread is one of them. */
static atomic_uint threads;
static TC_THREAD_LOCAL bool is_counted;

static bool parts_are_idle(void)
{
    for (int i = 0; i < TC_EXIT_PARTS; i++) {
        const struct tc_exit_ops *ops = atomic_load(&parts[i]);
        if (ops && ops->idle && !ops->idle())
            return false;
    }
    return atomic_load(&threads) == (unsigned)is_counted;
}

static void wait_until_idle(uint64_t until_ns)
{
    struct timespec until = tc_wait_until(until_ns);
    while (!parts_are_idle() && (tc_wait_semaphore(&progress, &until) == 0 || errno == EINTR)) {
    }
}

static void on_exit_of_process(void)
{
    if (atomic_load(&exiting))
        return;
    exiting_thread = pthread_self();
    sem_init(&progress, 0, 0);
    atomic_store(&exiting, true);
    uint64_t until_ns = tc_system_clock.monotonic_ns(NULL) + MAX_WAIT_NS;
    for (int i = 0; i < TC_EXIT_PARTS; i++) {
        const struct tc_exit_ops *ops = atomic_load(&parts[i]);
        if (ops)
            ops->stop();
    }
    wait_until_idle(until_ns);
    tc_foreign_close(until_ns);
    for (int i = 0; i < TC_EXIT_PARTS; i++) {
        const struct tc_exit_ops *ops = atomic_load(&parts[i]);
        if (ops && ops->stopped)
            ops->stopped();
    }
}

void tc_exit_register(enum tc_exit_part part, const struct tc_exit_ops *ops)
{
    if (!atomic_load_explicit(&parts[part], memory_order_relaxed) && !atomic_exchange(&parts[part], ops))
        tc_exit_before();
}

void tc_exit_before(void)
{
    /* The C library has a lock for its list of handlers, which it does not reset in a child. */
    if (!tc_foreign_enter())
        return;
    atexit(on_exit_of_process);
    tc_foreign_leave();
}

bool tc_exiting(void)
{
    return atomic_load(&exiting);
}

bool tc_exiting_elsewhere(void)
{
    return tc_exiting() && !pthread_equal(exiting_thread, pthread_self());
}

bool tc_exit_is_by(pthread_t thread)
{
    return tc_exiting() && pthread_equal(exiting_thread, thread);
}

void tc_exit_progress(void)
{
    if (tc_exiting())
        sem_post(&progress);
}

void tc_exit_thread_starts(void)
{
    atomic_fetch_add(&threads, 1);
}

void tc_exit_thread_begins(void)
{
    is_counted = true;
}

void tc_exit_thread_ended(void)
{
    atomic_fetch_sub(&threads, 1);
    tc_exit_progress();
}

/* A forked child has one thread, and counts as not exiting. */
static void exit_in_child(void)
{
    atomic_store(&threads, is_counted);
    atomic_store(&exiting, false);
}

__attribute__((constructor)) static void exit_watch_forks(void)
{
    pthread_atfork(NULL, NULL, exit_in_child);
}
