/* The loop: one thread at a time runs the work of a runtime, turn by turn. A turn is:
 *
 *   1 events, 2 posts of other threads, 3 due timers, 4 the serial queue (bounded), 5 the end of the turn,
 *   6 the serial queue again
 *
 * io/loop_turn.c says why in this order. "The loop's thread" is the thread inside of a turn, or the thread that drives
 * the loop while there is none. Functions are for the loop's thread unless they say otherwise. A manual loop (tests)
 * has no libuv underneath: only tc_loop_advance and tc_loop_set_time move its time. */
#ifndef TC_IO_LOOP_H
#define TC_IO_LOOP_H

#include "base/blocks.h"
#include "base/clock.h"
#include "base/heap.h"
#include "base/list.h"
#include "base/random.h"
#include "io/timers.h"

struct tc_loop;
struct tc_log_sink;

struct tc_loop_opts {
    bool manual; /* virtual time, no sockets */
    bool seeded; /* use `seed` for the loop's random numbers */
    uint64_t seed;
};

/* Returns a loop with one reference. With opts NULL the loop runs on real time. Returns NULL with errno set when the
 * system refuses descriptors or memory for them. Any thread. */
struct tc_loop *tc_loop_new(const struct tc_loop_opts *opts);
/* Ends a loop that has no users: turns until all posts have run, refuses posts from then on, closes the loop's handles,
 * and drops the caller's reference. Asserts (in debug builds) that no timer or task remains. Does nothing to a loop
 * that no longer turns (tc_loop_forked): its memory is not freed. NULL is ignored. */
void tc_loop_free(struct tc_loop *loop);
/* Take and drop a reference, for a thread that may post to the loop, or wake it, after the loop's end. The memory of
 * the loop stays until the last reference is dropped. Any thread. */
struct tc_loop *tc_loop_ref(struct tc_loop *loop);
void tc_loop_unref(struct tc_loop *loop);

/* A unit of deferred work, embedded in its owner; fn finds the owner by TC_CONTAINER_OF. */
struct tc_task {
    struct tc_link link;
    void (*fn)(struct tc_task *task);
};

static inline void tc_task_init(struct tc_task *task, void (*fn)(struct tc_task *task))
{
    tc_list_init(&task->link);
    task->fn = fn;
}
static inline bool tc_task_pending(const struct tc_task *task)
{
    return tc_list_linked(&task->link);
}
/* Appends the task to the serial queue; a task that is queued already stays where it is. */
void tc_loop_defer(struct tc_loop *loop, struct tc_task *task);
/* Runs the task at the end of this turn, where connections write their frames; once step 5 has begun, at the end of the
 * next turn. A task that is queued already stays where it is. */
void tc_loop_at_turn_end(struct tc_loop *loop, struct tc_task *task);
/* Takes the task off its queue; does nothing to a task that is on no queue. Not for posted tasks. */
static inline void tc_task_cancel(struct tc_task *task)
{
    tc_list_remove(&task->link);
}
/* Posts a task: step 2 moves it to the serial queue. Wakes the loop if it sleeps. The task must stay alive, and must
 * not be posted again, until fn is called. Returns false if the loop has ended: the task is still the caller's. A loop
 * that a fork or an exit has stopped (tc_loop_forked) takes the task and never runs it, unless the loop had ended
 * before. The caller must hold a reference to the loop, or know that the loop has not ended. Any thread. */
bool tc_loop_post(struct tc_loop *loop, struct tc_task *task);

/* tc_loop_post without waking the loop, for a thread that then turns the loop itself or calls tc_loop_wake. */
bool tc_loop_post_quietly(struct tc_loop *loop, struct tc_task *task);

/* Return the time of the present turn: monotonic, read once a turn. Between turns: the clock. */
uint64_t tc_loop_now_ms(const struct tc_loop *loop);
uint64_t tc_loop_now_ns(const struct tc_loop *loop);
/* Read the clock: the monotonic clock, and the calendar (since 1970). Any thread. A manual loop has clocks of its own,
 * which only the loop's thread may read. */
uint64_t tc_loop_clock_ns(const struct tc_loop *loop);
int64_t tc_loop_realtime_ns(const struct tc_loop *loop);
struct tc_rng *tc_loop_rng(struct tc_loop *loop);
/* Returns the blocks that the loop's thread lends to the application. */
struct tc_blocks *tc_loop_blocks(const struct tc_loop *loop);
/* Returns the heap for memory that is allocated and freed on the loop's thread alone: HTTP/2 sessions. */
struct tc_heap *tc_loop_heap(const struct tc_loop *loop);
/* Returns a buffer of TC_LOOP_READ_BYTES, the only one of the loop: its bytes are good until the next read. The system
 * gives only the pages that reads fill. */
uint8_t *tc_loop_read_room(struct tc_loop *loop);

#define TC_LOOP_READ_BYTES (128u * 1024u)

/* Timers (io/timers.h). Start and stop are O(1). The resolution is 1 ms; a timer never fires early. */
void tc_timer_init(struct tc_timer *timer, struct tc_loop *loop, void (*fn)(struct tc_timer *timer));
/* Fires once after delay_ms; a running timer is restarted. fn may start it again, or free its owner. */
void tc_timer_start(struct tc_timer *timer, uint64_t delay_ms);
void tc_timer_stop(struct tc_timer *timer);

/* Runs one turn; waits for events at most timeout_ms (-1: until something happens, 0: not at all). Does not wait if
 * work is queued, or on a manual loop. Returns true if an event, a post, a timer or a task ran; false for a loop that
 * no longer turns (tc_loop_forked). Not re-entrant. */
bool tc_loop_turn(struct tc_loop *loop, int timeout_ms);
/* Runs a turn for posts alone: no events, no timers, and no system call before the work of the posts is done. Returns
 * true if it ran a task. Does nothing if the last tc_loop_turn looked for events more than a millisecond ago, so that
 * no task acts on a state from before an idle gap. Does nothing either on a manual loop, or on a loop that no longer
 * turns. */
bool tc_loop_turn_posts(struct tc_loop *loop);
/* Ends the wait of tc_loop_turn; if the loop does not wait now, its next wait. Any thread, and signal handlers. */
void tc_loop_wake(struct tc_loop *loop);
/* For applications that drive the loop. Return a descriptor that becomes readable when there are events (-1: a manual
 * loop), and the time in ms to wait for it (-1: for ever; 0: there is work). */
int tc_loop_fd(const struct tc_loop *loop);
int tc_loop_timeout_ms(const struct tc_loop *loop);
/* Returns when the loop next has work if no event and no post comes before, in the time of tc_loop_now_ms (0: now;
 * UINT64_MAX: never). The time may be earlier than the next timer, but never later. */
uint64_t tc_loop_next_ms(const struct tc_loop *loop);
/* Turns a time of tc_loop_next_ms into the time in ms to wait for it, as tc_loop_timeout_ms returns it. */
int tc_loop_wait_ms(const struct tc_loop *loop, uint64_t next_ms);
/* Returns true if the calling thread is inside of a turn of this loop. Any thread. */
bool tc_loop_in_turn(const struct tc_loop *loop);
/* Returns true if any thread is inside of a turn of this loop. Any thread. */
bool tc_loop_is_in_a_turn(const struct tc_loop *loop);
/* Returns true if the calling thread is inside of a turn of any loop that still turns, manual loops excepted. Looks at
 * all loops under a lock: for functions that are called rarely. Any thread. */
bool tc_loop_in_any_turn(void);
/* Returns true if the loop no longer turns: this is a child that was forked after the loop was made, or an exit of the
 * process has stopped the loop (base/exit.h), as it stops every loop but manual ones. Any thread. */
bool tc_loop_forked(const struct tc_loop *loop);
/* Returns true if the loop no longer turns, and no thread is inside of its turn but the one that called fork or exit:
 * no other thread touches memory that was lent to the loop. Any thread. */
bool tc_loop_left(const struct tc_loop *loop);
/* Sets the sink of lines that are logged in turns of the loop, borrowed; NULL: the process's. Called between turns. */
void tc_loop_set_log(struct tc_loop *loop, struct tc_log_sink *sink);
/* Sets fn(arg), which is called when the process is exiting and no thread is inside of a turn of this loop but the one
 * that called exit. fn runs on the thread that called exit, with the lock of rank TC_RANK_LOOPS held, or on another
 * thread at the end of a turn, or instead of a turn, without the lock. It may run more than once. Set before the first
 * turn. */
void tc_loop_on_stopped(struct tc_loop *loop, void (*fn)(void *arg), void *arg);

/* Manual mode. tc_loop_drain turns until no task is queued and no timer waits to fire, without moving time.
 * tc_loop_advance drains, then moves time by `ms`, from timer to timer, and drains after each. */
void tc_loop_drain(struct tc_loop *loop);
void tc_loop_advance(struct tc_loop *loop, uint64_t ms);
/* Manual mode: sets the time without running anything; due timers fire in the next turn, and tc_loop_drain makes no
 * turn for them alone. For a scheduler of several loops (testing/world.c). `now_ns` must not be earlier than the loop's
 * time. */
void tc_loop_set_time(struct tc_loop *loop, uint64_t now_ns);

/* Returns the libuv loop underneath (NULL in manual mode), for src/io itself. */
struct uv_loop_s *tc_loop_uv(struct tc_loop *loop);
/* For src/io itself: called first in a callback of libuv that tells an event of a descriptor. Marks that the turn took
 * in an event; the first call of a turn sets the time of the turn. */
void tc_loop_refresh(struct tc_loop *loop);

#endif
