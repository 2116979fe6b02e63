/* The life of a loop, its tasks, the posts of other threads, its time, and its timers. io/loop_turn.c describes a turn.
 *
 * Invariant: a post is either run on the loop or refused, unless the process forks or exits. tc_loop_free turns the
 * loop until nothing is queued and then closes the posts in one atomic step, so that no post falls between. If the loop
 * still has work after MAX_CLOSING_TURNS turns, its owner is at fault: debug builds assert, others drop the work. The
 * memory of the loop stays as long as a thread that may post holds a reference.
 *
 * Waking: a post sends a wake-up (an eventfd of libuv) only if `wants_wakeup` is set, and clears the flag, so that one
 * wake-up serves all posts until the loop turns. The loop sets the flag when a turn ends, before it looks at the posts
 * again.
 *
 * Functions are for the loop's thread unless loop.h says otherwise. loop_internal.h says which members other threads
 * use. */
#include "io/loop.h"

#include <assert.h>
#include <errno.h>
#include <sched.h>

#include "base/cancel.h"
#include "base/log.h"
#include "base/mem.h"
#include "io/loop_internal.h"
#include "io/uv_loop.h"

enum { MAX_CLOSING_TURNS = 1000 };

/* --- life --- */

static void async_fired(uv_async_t *async TC_UNUSED) {}

static int loop_open_uv(struct tc_loop *loop)
{
    int rc = tc_uv_loop_init(&loop->uv);
    if (rc < 0)
        return rc;
    rc = uv_async_init(&loop->uv, &loop->async, async_fired);
    if (rc < 0)
        uv_loop_close(&loop->uv);
    else
        uv_timer_init(&loop->uv, &loop->wakeup);
    return rc;
}

struct tc_loop *tc_loop_new(const struct tc_loop_opts *opts)
{
    struct tc_loop *loop = TC_NEW(struct tc_loop);
    tc_ref_init(&loop->ref);
    loop->manual = opts && opts->manual;
    if (!loop->manual) {
        int rc = loop_open_uv(loop);
        if (rc < 0) {
            tc_free(loop);
            errno = -rc;
            return NULL;
        }
    }
    loop->now_ns = loop->manual ? TC_NS_PER_S : tc_system_clock.monotonic_ns(NULL);
    tc_timers_init(&loop->timers, loop->now_ns / TC_NS_PER_MS);
    tc_list_init(&loop->serial);
    tc_list_init(&loop->turn_end);
    tc_list_init(&loop->running);
    tc_ration_init(&loop->ration, loop);
    if (opts && opts->seeded)
        tc_rng_init_seed(&loop->rng, opts->seed);
    else
        tc_rng_init_system(&loop->rng);
    loop->blocks = tc_blocks_new();
    loop->heap = tc_heap_new();
    atomic_store(&loop->generation, tc_fork_generation());
    atomic_store(&loop->wants_wakeup, true);
    tc_list_init(&loop->link);
    if (!loop->manual)
        tc_loop_exit_add(loop);
    return loop;
}

void tc_loop_set_log(struct tc_loop *loop, struct tc_log_sink *sink)
{
    loop->log = sink;
}

struct tc_loop *tc_loop_ref(struct tc_loop *loop)
{
    tc_ref_inc(&loop->ref);
    return loop;
}

void tc_loop_unref(struct tc_loop *loop)
{
    if (tc_ref_dec(&loop->ref))
        tc_free(loop);
}

/* Turns until no task and no post is left, MAX_CLOSING_TURNS times at most, then closes the posts. */
static void loop_run_to_end(struct tc_loop *loop)
{
    for (int i = 0; i < MAX_CLOSING_TURNS; i++) {
        if (loop->manual)
            tc_loop_drain(loop);
        if (!tc_loop_has_work(loop) && tc_posts_close(&loop->posts))
            return;
        tc_loop_turn(loop, 0);
    }
    assert(false && "a loop was freed while it had work");
    atomic_store(&loop->posts.top, tc_posts_closed_mark(&loop->posts));
}

/* Closes the handles of the loop and the libuv loop. Returns false if descriptors are still watched. */
static bool loop_close_uv(struct tc_loop *loop)
{
    /* A thread that calls wakeup_send later sees that the posts are closed. */
    while (atomic_load(&loop->wakers) > 0)
        sched_yield();
    uv_close((uv_handle_t *)&loop->async, NULL);
    uv_close((uv_handle_t *)&loop->wakeup, NULL);
    int rc = UV_EBUSY;
    for (int i = 0; i < MAX_CLOSING_TURNS && rc == UV_EBUSY; i++) {
        uv_run(&loop->uv, UV_RUN_NOWAIT);
        rc = uv_loop_close(&loop->uv);
    }
    assert(rc == 0);
    return rc == 0;
}

void tc_loop_free(struct tc_loop *loop)
{
    if (!loop)
        return;
    /* From here on an exit of the process does not touch the loop. */
    if (!loop->manual)
        tc_loop_exit_remove(loop);
    if (tc_loop_is_forked(loop))
        return; /* the parent shares the libuv loop; in an exiting process another thread may be inside of its turn */
    loop_run_to_end(loop);
    assert(tc_timers_empty(&loop->timers));
    if (!loop->manual && !loop_close_uv(loop)) {
        TC_LOG(TC_LOG_IO, TORC_LOG_ERROR, "a loop was freed while descriptors were still watched");
        return;
    }
    tc_blocks_end(loop->blocks);
    tc_heap_free(loop->heap);
    tc_free(loop->read_room);
    tc_loop_unref(loop);
}

/* --- tasks --- */

void tc_loop_defer(struct tc_loop *loop, struct tc_task *task)
{
    if (!tc_task_pending(task))
        tc_list_append(&loop->serial, &task->link);
}

void tc_loop_at_turn_end(struct tc_loop *loop, struct tc_task *task)
{
    if (!tc_task_pending(task))
        tc_list_append(&loop->turn_end, &task->link);
}

/* --- posts --- */

static void wakeup_send(struct tc_loop *loop)
{
    /* A forked child shares the eventfd with its parent. */
    if (loop->manual || tc_loop_is_forked(loop))
        return;
    TC_NO_CANCEL; /* the poster may hold a lock, and uv_async_send writes */
    /* No lock, since signal handlers wake too. Sequentially consistent on both sides: either this thread sees the posts
     * closed, or loop_close_uv, which looks at the count after they were closed, sees this thread. */
    atomic_fetch_add(&loop->wakers, 1);
    if (!tc_posts_closed(&loop->posts))
        uv_async_send(&loop->async);
    atomic_fetch_sub(&loop->wakers, 1);
}

bool tc_loop_post_quietly(struct tc_loop *loop, struct tc_task *task)
{
    return tc_posts_push(&loop->posts, &task->link);
}

bool tc_loop_post(struct tc_loop *loop, struct tc_task *task)
{
    if (!tc_loop_post_quietly(loop, task))
        return false;
    /* Sequentially consistent on both sides: either this thread sees the flag, or the loop, which sets the flag before
     * it looks at the posts, sees the post. */
    if (atomic_load(&loop->wants_wakeup) && atomic_exchange(&loop->wants_wakeup, false))
        wakeup_send(loop);
    return true;
}

void tc_loop_wake(struct tc_loop *loop)
{
    atomic_store(&loop->woken, true);
    if (atomic_exchange(&loop->wants_wakeup, false))
        wakeup_send(loop);
}

/* --- time --- */

uint64_t tc_loop_clock_ns(const struct tc_loop *loop)
{
    return loop->manual ? loop->now_ns : tc_system_clock.monotonic_ns(NULL);
}

int64_t tc_loop_realtime_ns(const struct tc_loop *loop)
{
    /* The calendar of a manual loop starts on a day of 2023 and moves with the loop's time. */
    const int64_t manual_epoch_ns = INT64_C(1700000000) * (int64_t)TC_NS_PER_S;
    return loop->manual ? manual_epoch_ns + (int64_t)loop->now_ns : tc_system_clock.realtime_ns(NULL);
}

uint64_t tc_loop_now_ns(const struct tc_loop *loop)
{
    /* Between turns the cached time may be as old as the application was idle. */
    return loop->fresh ? loop->now_ns : tc_loop_clock_ns(loop);
}

uint64_t tc_loop_now_ms(const struct tc_loop *loop)
{
    return tc_loop_now_ns(loop) / TC_NS_PER_MS;
}

/* --- parts that the loop lends --- */

struct tc_rng *tc_loop_rng(struct tc_loop *loop)
{
    return &loop->rng;
}

struct tc_blocks *tc_loop_blocks(const struct tc_loop *loop)
{
    return loop->blocks;
}

struct tc_heap *tc_loop_heap(const struct tc_loop *loop)
{
    return loop->heap;
}

uint8_t *tc_loop_read_room(struct tc_loop *loop)
{
    if (!loop->read_room)
        loop->read_room = tc_malloc(TC_LOOP_READ_BYTES);
    return loop->read_room;
}

void tc_loop_refresh(struct tc_loop *loop)
{
    tc_loop_refresh_time(loop);
    loop->any_event = true;
}

/* --- timers --- */

void tc_timer_init(struct tc_timer *timer, struct tc_loop *loop, void (*fn)(struct tc_timer *timer))
{
    tc_list_init(&timer->link);
    timer->loop = loop;
    timer->fn = fn;
    timer->due_ms = 0;
}

void tc_timer_start(struct tc_timer *timer, uint64_t delay_ms)
{
    struct tc_loop *loop = timer->loop;
    tc_timer_stop(timer);
    uint64_t now_ns = tc_loop_now_ns(loop), now_ms = now_ns / TC_NS_PER_MS;
    if (delay_ms > 0 && now_ns % TC_NS_PER_MS != 0)
        now_ms++; /* never early */
    timer->due_ms = now_ms + TC_MIN(delay_ms, TC_TIMERS_MAX_DELAY_MS);
    tc_timers_add(&loop->timers, timer);
}

void tc_timer_stop(struct tc_timer *timer)
{
    if (tc_timer_active(timer))
        tc_timers_remove(&timer->loop->timers, timer);
}
