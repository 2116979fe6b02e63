/* Waiting in a world. Where production sleeps until another thread or the system has something, the thread of the
 * world turns the world.
 *
 * tc_runtime_wait is the wait of every function that blocks; tc_loop_turn is called by torc_runtime_poll, and by the
 * world itself (tc_world_turns), which wants a turn of one loop alone. A wait may begin inside the turn of another
 * loop: the world leaves out loops that are in a turn. A thread of a pool waits by letting the thread of the world go
 * on. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "runtime/blocking.h"
#include "testing/blocking.h"
#include "testing/threads.h"
#include "testing/world.h"

/* A wait without a limit of its own. */
#define MOST_WAIT_NS (3600 * TC_NS_PER_S)

int __wrap_tc_runtime_wait(torc_runtime *rt, struct tc_wait *w, uint64_t until_ns);
bool __wrap_tc_loop_turn(struct tc_loop *loop, int timeout_ms);
bool __real_tc_loop_turn(struct tc_loop *loop, int timeout_ms);

static pthread_t thread;

void tc_blocking_begin(void)
{
    thread = pthread_self();
}

bool tc_blocking_is_here(void)
{
    return pthread_equal(thread, pthread_self());
}

bool tc_blocking_is_in(void)
{
    return tc_world_thread_here() || tc_blocking_is_here();
}

static void wait_fail(const char *why)
{
    fprintf(stderr, "libtorc-testing: %s (at %llu ms of the world's time; see torc/testing.h)\n", why,
            (unsigned long long)tc_world_now_ms());
    abort();
}

/* Does the next thing that is due before until_ns. Without one, time moves there. */
static void wait_step(uint64_t until_ns, uint64_t most_ns)
{
    if (!tc_blocking_is_here())
        wait_fail("a function blocks on a thread that did not make the world");
    if (tc_world_step(TC_MIN(until_ns, most_ns)))
        return;
    if (until_ns > most_ns)
        wait_fail("a function blocks for more than an hour without a limit of its own");
    tc_world_run_until(until_ns);
}

void tc_blocking_step(void)
{
    wait_step(UINT64_MAX, tc_world_now_ns() + MOST_WAIT_NS);
}

/* tc_runtime_wait on a thread of a pool. */
static int wait_in_pool(torc_runtime *rt, struct tc_wait *w, uint64_t until_ns)
{
    tc_runtime_unlock(rt);
    tc_world_thread_wait(&w->woken, until_ns);
    tc_runtime_lock(rt);
    int rc = w->woken ? 0 : TORC_ETIMEDOUT;
    w->woken = false;
    return rc;
}

int __wrap_tc_runtime_wait(torc_runtime *rt, struct tc_wait *w, uint64_t until_ns)
{
    if (tc_world_thread_here())
        return wait_in_pool(rt, w, until_ns);
    uint64_t most_ns = tc_world_now_ns() + MOST_WAIT_NS;
    int rc = 0;
    while (!w->woken && rc == 0) {
        if (tc_world_now_ns() >= until_ns) {
            rc = TORC_ETIMEDOUT;
        } else {
            tc_runtime_unlock(rt);
            wait_step(until_ns, most_ns);
            tc_runtime_lock(rt);
        }
    }
    w->woken = false;
    return rc;
}

bool __wrap_tc_loop_turn(struct tc_loop *loop, int timeout_ms)
{
    if (__real_tc_loop_turn(loop, 0))
        return true;
    if (tc_world_turns(loop) || !tc_world_has(loop))
        return false;
    uint64_t now_ns = tc_world_now_ns();
    uint64_t until_ns = timeout_ms < 0 ? UINT64_MAX : now_ns + (uint64_t)timeout_ms * TC_NS_PER_MS;
    if (tc_world_thread_here())
        tc_world_thread_wait(NULL, TC_MIN(until_ns, now_ns + TC_NS_PER_MS));
    else if (timeout_ms == 0)
        tc_world_step(now_ns);
    else
        wait_step(until_ns, now_ns + MOST_WAIT_NS);
    return true;
}
