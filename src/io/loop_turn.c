/* A turn of the loop, in this order:
 *
 *   1 events      libuv takes in what the descriptors have, after waiting for it if nothing is queued. Callbacks of
 *                 libuv read, write, and queue tasks; they call no handler and no watcher of the application.
 *   2 posts       What other threads posted goes to the end of the serial queue, oldest first.
 *   3 timers      Due timers fire in the order of their times. A timer that becomes due meanwhile waits for the next
 *                 turn.
 *   4 serial      The serial queue runs, at most MAX_TASKS_PER_TURN tasks, including tasks that they queue.
 *                 Watchers and callbacks of the application run here, in 3 or in 6; in 5 only those of work that was
 *                 put off to the turn's end, such as streams that rested (http2/streams.c).
 *   5 turn's end  Each connection that has frames to send writes them once, and work that was put off goes on. A task
 *                 that is queued for the turn's end meanwhile runs at the end of the next turn.
 *   6 serial      If a task ran in 5, the serial queue runs again, until MAX_TASKS_PER_TURN tasks have run in 4 and 6
 *                 together. Otherwise tasks that 5 queued would keep the next turn from waiting for events.
 *
 * Events come before timers, so that after an idle gap no timer fires while the answer it waits for sits unread. The
 * time (tc_loop_now_ns) is read once a turn: when its first event arrives, or after step 1 if none did.
 *
 * tc_loop_turn_posts is the fast path of an RPC whose thread posts it and then drives the loop (runtime/blocking.c):
 * the time is read, then steps 2 and 4 to 6 follow, without a system call before the work is done. It runs only if the
 * last step 1 is at most a millisecond old.
 *
 * A turn that finds the process forked, or exiting, stops between two tasks. One thread at a time is inside of a turn
 * (`turn_thread`). Only tc_loop_in_turn and tc_loop_is_in_a_turn are for any thread. loop_internal.h says which members
 * other threads use; tasks and timers belong to their owners. */
#include <assert.h>

#include "base/exit.h"
#include "base/log.h"
#include "io/loop_internal.h"

enum { MAX_TASKS_PER_TURN = 10000 };
/* tc_loop_turn_posts runs only if the last look for events is at most this old. */
#define EVENTS_STAY_NEW_NS TC_NS_PER_MS

/* --- the steps --- */

/* Runs at most `most` tasks of the serial queue. Returns how many ran. */
static int serial_run(struct tc_loop *loop, int most)
{
    int n = 0;
    struct tc_link *link;
    while (n < most && !tc_loop_is_forked(loop) && (link = tc_list_pop(&loop->serial))) {
        struct tc_task *task = TC_CONTAINER_OF(link, struct tc_task, link);
        task->fn(task);
        n++;
    }
    return n;
}

static bool turn_end_run(struct tc_loop *loop)
{
    tc_list_splice(&loop->running, &loop->turn_end);
    bool any = false;
    struct tc_link *link;
    while (!tc_loop_is_forked(loop) && (link = tc_list_pop(&loop->running))) {
        struct tc_task *task = TC_CONTAINER_OF(link, struct tc_task, link);
        task->fn(task);
        any = true;
    }
    return any;
}

/* Steps 4 to 6. Returns whether a task ran. */
static bool tasks_run(struct tc_loop *loop)
{
    int n = serial_run(loop, MAX_TASKS_PER_TURN);
    if (!turn_end_run(loop))
        return n > 0;
    serial_run(loop, MAX_TASKS_PER_TURN - n);
    return true;
}

static bool timers_fire(struct tc_loop *loop)
{
    tc_timers_advance(&loop->timers, loop->now_ns / TC_NS_PER_MS);
    tc_list_splice(&loop->running, &loop->timers.due);
    bool any = false;
    struct tc_link *link;
    while (!tc_loop_is_forked(loop) && (link = tc_list_pop(&loop->running))) {
        struct tc_timer *timer = TC_CONTAINER_OF(link, struct tc_timer, link);
        timer->fn(timer);
        any = true;
    }
    return any;
}

/* --- waiting --- */

static void wakeup_fired(uv_timer_t *timer)
{
    /* libuv before 1.45 fires due timers before it waits as well as after. If this timer fires before the wait, nothing
     * is left to end the wait. uv_stop makes it a wait of no time, which still takes in events. */
    uv_stop(timer->loop);
    TC_CONTAINER_OF(timer, struct tc_loop, wakeup)->wakeup_for_ms = 0;
}

/* Returns when the next queued work or timer is due; 0: now, UINT64_MAX: never. */
static uint64_t loop_next_ms(const struct tc_loop *loop)
{
    return tc_loop_has_work(loop) || atomic_load(&loop->woken) ? 0 : tc_timers_next(&loop->timers);
}

int tc_loop_wait_ms(const struct tc_loop *loop, uint64_t at_ms)
{
    if (at_ms == 0 || at_ms == UINT64_MAX)
        return at_ms == 0 ? 0 : -1;
    uint64_t now_ns = tc_loop_clock_ns(loop), at_ns = at_ms * TC_NS_PER_MS;
    if (at_ns <= now_ns)
        return 0;
    uint64_t wait_ms = (at_ns - now_ns + TC_NS_PER_MS - 1) / TC_NS_PER_MS;
    return wait_ms > INT_MAX ? INT_MAX : (int)wait_ms;
}

/* Returns true if libuv has descriptors that the kernel does not know yet and that uv_backend_timeout leaves out. From
 * version 1.44 on uv_backend_timeout counts them itself. */
static bool loop_has_untold(const struct tc_loop *loop)
{
#if UV_VERSION_HEX < 0x012c00
    return loop->uv.watcher_queue[0] != (const void *)loop->uv.watcher_queue;
#else
    (void)loop;
    return false;
#endif
}

uint64_t tc_loop_next_ms(const struct tc_loop *loop)
{
    /* uv_backend_timeout returns 0 if libuv has handles to close, or descriptors that the kernel does not know yet. */
    if (!loop->manual && (uv_backend_timeout(&loop->uv) == 0 || loop_has_untold(loop)))
        return 0;
    return loop_next_ms(loop);
}

int tc_loop_timeout_ms(const struct tc_loop *loop)
{
    return tc_loop_wait_ms(loop, tc_loop_next_ms(loop));
}

static void wakeup_stop(struct tc_loop *loop)
{
    if (loop->wakeup_for_ms)
        uv_timer_stop(&loop->wakeup);
    loop->wakeup_for_ms = 0;
}

static void wakeup_start(struct tc_loop *loop, int ms, uint64_t for_ms)
{
    uv_update_time(&loop->uv);
    uv_timer_start(&loop->wakeup, wakeup_fired, (uint64_t)ms, 0);
    loop->wakeup_for_ms = for_ms;
}

/* Waits for an event or the next timer. libuv's timer stays set from one wait to the next, unless it would fire too
 * late: waits between RPCs are frequent, and most are for the same timer. If it fires too early the turn does
 * nothing. */
static void wait_for_any(struct tc_loop *loop)
{
    uint64_t at_ms = tc_timers_next(&loop->timers);
    int ms = -1;
    if (at_ms == UINT64_MAX)
        wakeup_stop(loop);
    else if (!loop->wakeup_for_ms || loop->wakeup_for_ms > at_ms)
        ms = tc_loop_wait_ms(loop, loop_next_ms(loop));
    if (ms > 0)
        wakeup_start(loop, ms, at_ms);
    uv_run(&loop->uv, ms == 0 ? UV_RUN_NOWAIT : UV_RUN_ONCE);
}

static void wait_at_most(struct tc_loop *loop, int timeout_ms)
{
    int ms = tc_loop_wait_ms(loop, loop_next_ms(loop));
    if (ms < 0 || timeout_ms < ms)
        ms = timeout_ms;
    if (ms > 0)
        wakeup_start(loop, ms, 1);
    uv_run(&loop->uv, ms == 0 ? UV_RUN_NOWAIT : UV_RUN_ONCE);
    wakeup_stop(loop);
}

static void events_take(struct tc_loop *loop, int timeout_ms)
{
    bool at_once = timeout_ms == 0 || tc_loop_has_work(loop) || atomic_load(&loop->woken);
    atomic_store(&loop->woken, false);
    loop->fresh = false;
    if (at_once)
        uv_run(&loop->uv, UV_RUN_NOWAIT);
    else if (timeout_ms < 0)
        wait_for_any(loop);
    else
        wait_at_most(loop, timeout_ms);
    tc_loop_refresh_time(loop);
    loop->events_ns = loop->now_ns;
}

/* --- turns --- */

TC_APART static void turn_log_enter(struct tc_loop *loop)
{
    loop->log_entered = true;
    loop->log_before = tc_log_enter(loop->log);
}

TC_APART static void turn_log_leave(struct tc_loop *loop)
{
    loop->log_entered = false;
    tc_log_enter(loop->log_before);
}

TC_APART static void turn_tell_stopped(struct tc_loop *loop)
{
    if (loop->on_stopped)
        loop->on_stopped(loop->on_stopped_arg);
    tc_exit_progress();
}

static inline void turn_leave(struct tc_loop *loop)
{
    if (TC_UNLIKELY(loop->log_entered))
        turn_log_leave(loop);
    /* From here on a post must wake the loop. A post that came before is seen by the next turn, before it waits. */
    atomic_store(&loop->wants_wakeup, true);
    atomic_store(&loop->turn_thread, 0);
    loop->fresh = false;
    if (TC_UNLIKELY(atomic_load(&loop->generation) == TC_LOOP_STOPPED))
        turn_tell_stopped(loop);
}

static inline bool turn_enter(struct tc_loop *loop)
{
    assert(!tc_loop_in_turn(loop) && !tc_posts_closed(&loop->posts));
    atomic_store(&loop->turn_thread, (uintptr_t)pthread_self());
    /* Sequentially consistent on both sides: either an exit sees the turn, or the turn sees the exit. */
    if (atomic_load(&loop->generation) == TC_LOOP_STOPPED) {
        turn_leave(loop);
        return false;
    }
    loop->any_event = false;
    /* A loop without a sink enters too: its turn may be inside a turn of a loop that has one. */
    if (TC_UNLIKELY(atomic_load_explicit(&tc_log_sinks, memory_order_relaxed)))
        turn_log_enter(loop);
    return true;
}

bool tc_loop_turn(struct tc_loop *loop, int timeout_ms)
{
    if (tc_loop_is_forked(loop) || !turn_enter(loop))
        return false;
    if (loop->manual)
        atomic_store(&loop->woken, false);
    else
        events_take(loop, timeout_ms);
    atomic_store(&loop->wants_wakeup, false);
    /* A turn that slept while an exit began takes no posts: the posters may be gone. */
    bool any = (!tc_loop_is_forked(loop) && tc_posts_take(&loop->posts, &loop->serial)) || loop->any_event;
    any |= timers_fire(loop);
    any |= tasks_run(loop);
    turn_leave(loop);
    return any;
}

bool tc_loop_turn_posts(struct tc_loop *loop)
{
    if (loop->manual || tc_loop_is_forked(loop))
        return false;
    uint64_t now_ns = tc_loop_clock_ns(loop);
    if (now_ns - loop->events_ns > EVENTS_STAY_NEW_NS)
        return false;
    if (!turn_enter(loop))
        return false;
    loop->now_ns = now_ns;
    loop->fresh = true;
    atomic_store(&loop->wants_wakeup, false);
    tc_posts_take(&loop->posts, &loop->serial);
    bool any = tasks_run(loop);
    turn_leave(loop);
    return any;
}

bool tc_loop_in_turn(const struct tc_loop *loop)
{
    return atomic_load_explicit(&loop->turn_thread, memory_order_relaxed) == (uintptr_t)pthread_self();
}

bool tc_loop_is_in_a_turn(const struct tc_loop *loop)
{
    return atomic_load_explicit(&loop->turn_thread, memory_order_relaxed) != 0;
}

/* --- driving the loop --- */

int tc_loop_fd(const struct tc_loop *loop)
{
    return loop->manual ? -1 : uv_backend_fd(&loop->uv);
}

struct uv_loop_s *tc_loop_uv(struct tc_loop *loop)
{
    return loop->manual ? NULL : &loop->uv;
}

/* --- manual loops --- */

void tc_loop_drain(struct tc_loop *loop)
{
    assert(loop->manual);
    while (tc_loop_has_work(loop) || !tc_list_empty(&loop->timers.due))
        tc_loop_turn(loop, 0);
}

/* Moves the time to now_ns, but never back: a task may have moved the time further. */
static void manual_move_time(struct tc_loop *loop, uint64_t now_ns)
{
    loop->now_ns = TC_MAX(loop->now_ns, now_ns);
    tc_timers_advance(&loop->timers, loop->now_ns / TC_NS_PER_MS);
}

void tc_loop_advance(struct tc_loop *loop, uint64_t ms)
{
    uint64_t target_ns = tc_loop_now_ns(loop) + ms * TC_NS_PER_MS, at_ms;
    tc_loop_drain(loop);
    while ((at_ms = tc_timers_next(&loop->timers)) <= target_ns / TC_NS_PER_MS) {
        manual_move_time(loop, at_ms * TC_NS_PER_MS);
        tc_loop_drain(loop);
    }
    manual_move_time(loop, target_ns);
}

void tc_loop_set_time(struct tc_loop *loop, uint64_t now_ns)
{
    assert(loop->manual && now_ns >= loop->now_ns);
    loop->now_ns = now_ns;
}
