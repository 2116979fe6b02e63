/* Waiting in a world. Where production sleeps until another thread or the system has something, the thread of the
 * world turns the world.
 *
 * Functions that block wait in tc_runtime_wait or in tc_blocking_step. torc_runtime_poll alone waits in tc_loop_turn,
 * even where production waits in tc_runtime_await_driver for another thread that drives the loop. tc_runtime_turn calls
 * tc_loop_turn with a timeout of 0. The world's scheduler and tc_loop_free call it, too, and want a turn of that loop
 * and nothing else.
 *
 * A wait may begin inside the turn of another loop: the world leaves out loops that are in a turn. A thread of a pool
 * waits by letting the thread of the world go on. A wait on any other thread ends the process. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#if defined(__has_include)
#if __has_include(<execinfo.h>)
#define HAS_BACKTRACE
#include <execinfo.h>
#endif
#endif

#include "runtime/blocking.h"
#include "testing/blocking.h"
#include "testing/threads.h"
#include "testing/world.h"

/* How long a wait without a limit of its own may last: an hour of the world's time. */
#define MOST_WAIT_NS (3600 * TC_NS_PER_S)

int __wrap_tc_runtime_wait(torc_runtime *rt, struct tc_wait *w, uint64_t until_ns);
void __wrap_tc_runtime_await_driver(torc_runtime *rt, int timeout_ms);
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

/* Ends the process, with a trace that shows which function of the program waits. */
static void wait_fail(const char *why)
{
    fprintf(stderr, "libtorc-testing: %s (at %llu ms of the world's time; see torc/testing.h)\n", why,
            (unsigned long long)tc_world_now_ms());
#ifdef HAS_BACKTRACE
    void *frames[32];
    fflush(stderr);
    backtrace_symbols_fd(frames, backtrace(frames, TC_ARRAY_LEN(frames)), STDERR_FILENO);
#endif
    abort();
}

/* Ends the process, since a function blocks on a thread that is neither the world's nor a pool's. */
static void wait_fail_here(void)
{
    wait_fail("a function blocks on a thread that did not make the world");
}

/* Does the next thing that is due by until_ns. If nothing is, time moves to until_ns. With until_ns UINT64_MAX the
 * limit is most_ns, and the process ends if nothing is due by then. The process also ends on any thread but the
 * world's. */
static void wait_step(uint64_t until_ns, uint64_t most_ns)
{
    bool limited = until_ns != UINT64_MAX;
    if (!tc_blocking_is_here())
        wait_fail_here();
    if (tc_world_step(limited ? until_ns : most_ns))
        return;
    if (!limited)
        wait_fail("a function blocks for more than an hour without a limit of its own");
    tc_world_run_until(until_ns);
}

/* Returns until when a wait without a limit of its own may last: MOST_WAIT_NS after its beginning, or after ends_ns if
 * that is later. ends_ns: the latest end of what the wait is for; UINT64_MAX: unknown. */
static uint64_t wait_most_ns(uint64_t begun_ns, uint64_t ends_ns)
{
    return (ends_ns < UINT64_MAX - MOST_WAIT_NS ? TC_MAX(begun_ns, ends_ns) : begun_ns) + MOST_WAIT_NS;
}

void tc_blocking_step(void)
{
    wait_step(UINT64_MAX, wait_most_ns(tc_world_now_ns(), tc_world_threads_next_ns()));
}

/* tc_runtime_wait on a thread of a pool. A wait without a limit may last longer than MOST_WAIT_NS. */
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
    uint64_t begun_ns = tc_world_now_ns();
    int rc = 0;
    while (!w->woken && rc == 0) {
        if (tc_world_now_ns() >= until_ns) {
            rc = TORC_ETIMEDOUT;
        } else {
            tc_runtime_unlock(rt);
            wait_step(until_ns, wait_most_ns(begun_ns, w->ends_ns ? *w->ends_ns : UINT64_MAX));
            tc_runtime_lock(rt);
        }
    }
    w->woken = false;
    return rc;
}

/* A torc_runtime_poll that waits until its loop has done something; the world turns the loop. On the stack of the
 * world's thread. */
struct poll {
    struct poll *outer; /* the poll inside whose wait this one began; NULL: none */
    const struct tc_loop *loop;
    bool did; /* the loop has done something since the wait began */
};

static struct poll *polls; /* the innermost; NULL: none */

/* Marks the polls of a loop that did something. */
static void polls_tell(const struct tc_loop *loop)
{
    for (struct poll *p = polls; p; p = p->outer)
        p->did |= p->loop == loop;
}

/* Turns the world until the loop did something, or until the time has come and one more step was taken for what is due
 * then. Returns whether the loop did something. Ends the process where wait_step does. */
static bool poll_world(struct tc_loop *loop, uint64_t until_ns)
{
    struct poll p = {.outer = polls, .loop = loop};
    uint64_t begun_ns = tc_world_now_ns();
    polls = &p;
    bool more = true;
    while (!p.did && more) {
        more = tc_world_now_ns() < until_ns;
        if (more)
            wait_step(until_ns, wait_most_ns(begun_ns, UINT64_MAX));
        else
            tc_world_step(until_ns);
    }
    polls = p.outer;
    return p.did;
}

/* Turns the loop, without a wait. Does nothing, and returns false, while a callback of the loop waits: on another
 * thread, or further out on this one. */
static bool turn_now(struct tc_loop *loop)
{
    bool did = !tc_loop_is_in_a_turn(loop) && __real_tc_loop_turn(loop, 0);
    if (did)
        polls_tell(loop);
    return did;
}

/* Turns the loop. If the loop does nothing, waits until it does, at most timeout_ms (-1: no limit); but the world's
 * scheduler (tc_world_turns) and tc_loop_free (the loop has left the world) get no wait. On a thread of a pool the wait
 * lasts a millisecond at most, whatever timeout_ms is: the waits of these threads are not in `polls`, so nothing would
 * end a wait when the world turns the loop. */
bool __wrap_tc_loop_turn(struct tc_loop *loop, int timeout_ms)
{
    if (!tc_blocking_is_in() && tc_world_has(loop))
        wait_fail_here();
    bool did = turn_now(loop);
    if (did || tc_world_turns(loop) || !tc_world_has(loop))
        return did;
    uint64_t now_ns = tc_world_now_ns();
    uint64_t until_ns = timeout_ms < 0 ? UINT64_MAX : now_ns + (uint64_t)timeout_ms * TC_NS_PER_MS;
    if (!tc_world_thread_here())
        return poll_world(loop, until_ns);
    tc_world_thread_wait(NULL, TC_MIN(until_ns, now_ns + TC_NS_PER_MS));
    return turn_now(loop);
}

/* A torc_runtime_poll while the runtime is driven already: further out on this thread, or on another thread of the
 * world. A driver further out cannot end before this function returns, so the function waits for the loop instead. */
void __wrap_tc_runtime_await_driver(torc_runtime *rt, int timeout_ms)
{
    tc_runtime_unlock(rt);
    __wrap_tc_loop_turn(tc_runtime_loop(rt), timeout_ms);
    tc_runtime_lock(rt);
}
