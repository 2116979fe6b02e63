/* The inside of a loop, for loop.c (its life, tasks, time), loop_turn.c (turns), loop_exit.c (the end of the process)
 * and ration.c. Only the loop's thread uses a member, except: `ref`; `manual`, and on_stopped with its argument, which
 * are constant; `link`, under the lock of rank TC_RANK_LOOPS; `generation`, which an exit sets; the members under
 * "Shared with other threads"; and `async`, by which other threads wake the loop. */
#ifndef TC_IO_LOOP_INTERNAL_H
#define TC_IO_LOOP_INTERNAL_H

#include <limits.h>
#include <stdatomic.h>
#include <uv.h>

#include "base/fork.h"
#include "base/ref.h"
#include "io/loop.h"
#include "io/posts.h"
#include "io/ration.h"

#define TC_LOOP_STOPPED UINT_MAX

struct tc_loop {
    struct tc_ref ref; /* one of the owner (tc_loop_free), and those of tc_loop_ref */
    bool manual;
    bool fresh;     /* now_ns is the time of the present turn; false between turns */
    bool any_event; /* this turn took in an event of a descriptor */
    uint64_t now_ns;
    uint64_t events_ns; /* the time of the last tc_loop_turn, which looked for events */
    struct tc_timers timers;
    struct tc_link serial;   /* tasks of the serial queue */
    struct tc_link turn_end; /* tasks that run at the end of the turn */
    struct tc_link running;  /* the due timers, or the tasks of the turn's end, that this turn has yet to run */
    struct tc_ration ration;
    struct tc_rng rng;
    struct tc_blocks *blocks;
    struct tc_heap *heap;
    uint8_t *read_room;
    struct tc_link link; /* among the loops of the process; manual loops are not in the list */
    /* The generation (tc_fork_generation) of the process that made the loop; TC_LOOP_STOPPED: the process is exiting,
     * and the loop no longer turns. */
    atomic_uint generation;
    void (*on_stopped)(void *arg);
    void *on_stopped_arg;
    struct tc_log_sink *log;        /* the sink of lines of a turn; NULL: the process's */
    struct tc_log_sink *log_before; /* the thread's sink before the present turn */
    bool log_entered;               /* the present turn has changed the thread's sink */

    /* Shared with other threads. */
    struct tc_posts posts; /* closed: the loop has ended */
    atomic_uint wakers;    /* threads in wakeup_send: loop_close_uv waits for them */
    /* Set while a post must send a wake-up: from the end of a turn until step 1 of the next has ended. A poster clears
     * it, so that one wake-up serves many posts. */
    atomic_bool wants_wakeup;
    atomic_bool woken;            /* by tc_loop_wake or an exit: the next wait returns at once */
    atomic_uintptr_t turn_thread; /* the thread (pthread_self) inside of a turn; 0: none */

    uv_loop_t uv;
    uv_async_t async;
    uv_timer_t wakeup;      /* only ends libuv's wait; Torc's timers fire in step 3 */
    uint64_t wakeup_for_ms; /* the time, of tc_timers_next, that `wakeup` is set for; 1: the end of a bounded wait; 0:
                               `wakeup` is not set */
};

static inline bool tc_loop_is_forked(const struct tc_loop *loop)
{
    return atomic_load_explicit(&loop->generation, memory_order_relaxed) != tc_fork_generation();
}

static inline bool tc_loop_has_work(const struct tc_loop *loop)
{
    return !tc_list_empty(&loop->serial) || !tc_list_empty(&loop->turn_end) || !tc_posts_empty(&loop->posts);
}

/* Sets the time of the turn, unless it is set already. */
static inline void tc_loop_refresh_time(struct tc_loop *loop)
{
    if (loop->fresh)
        return;
    loop->fresh = true;
    if (!loop->manual)
        loop->now_ns = tc_system_clock.monotonic_ns(NULL);
}

/* Add the loop to those that an exit of the process stops, and take it off them. Not for manual loops. */
void tc_loop_exit_add(struct tc_loop *loop);
void tc_loop_exit_remove(struct tc_loop *loop);

#endif
