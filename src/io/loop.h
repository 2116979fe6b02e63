/* The loop: one thread runs everything of a runtime, turn by turn. A turn is:
 *
 *   1 events, 2 posts of other threads, 3 due timers, 4 the serial queue (bounded), 5 the end of the turn,
 *   6 the serial queue again
 *
 * io/loop_turn.c says why in this order. Functions are for the loop's thread unless they say otherwise. A manual loop
 * (tests) has no operating system underneath: tc_loop_advance and tc_loop_set_time alone move its time. */
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

/* Returns a loop with one reference; opts NULL: a loop on real time. Returns NULL with errno set when the system
 * refuses (descriptors exhausted). Any thread. */
struct tc_loop *tc_loop_new(const struct tc_loop_opts *opts);
/* Ends a loop without users: turns until all posts have run and its handles are closed, then drops the caller's
 * reference. Asserts (in debug builds) that no timer or task remains. From then on posts are refused. A loop that no
 * longer turns (tc_loop_forked) is left as it is, and its memory is not freed. NULL is allowed. */
void tc_loop_free(struct tc_loop *loop);
/* Takes a reference for a thread that may post to the loop, or wake it, after the loop's end: the memory stays, and a
 * post is refused. Any thread. */
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
/* Appends to the serial queue; a task that is queued already stays where it is. */
void tc_loop_defer(struct tc_loop *loop, struct tc_task *task);
/* Runs the task once at the end of this turn, where connections write their frames, or of the next turn if the end of
 * this turn has begun; a task that is queued already stays where it is. */
void tc_loop_at_turn_end(struct tc_loop *loop, struct tc_task *task);
/* Takes a task off the queue that it is on; does nothing to a task that is on no queue. Not for posted tasks. */
static inline void tc_task_cancel(struct tc_task *task)
{
    tc_list_remove(&task->link);
}
/* Posts a task: the loop runs it in its next turn, and is woken if it sleeps. The task must stay alive until it has
 * run, and must not be posted again before. Returns false when the loop has ended: the task is still the caller's. A
 * loop that no longer turns (tc_loop_forked) and was not freed takes the task and never runs it. The caller's own
 * reference must keep the memory of the loop until this returns. Any thread. */
bool tc_loop_post(struct tc_loop *loop, struct tc_task *task);

/* tc_loop_post without waking the loop, for a thread that is about to turn the loop itself or calls tc_loop_wake. */
bool tc_loop_post_quietly(struct tc_loop *loop, struct tc_task *task);

/* Returns the time of the present turn: monotonic, read once a turn. Between turns: the clock. */
uint64_t tc_loop_now_ms(const struct tc_loop *loop);
uint64_t tc_loop_now_ns(const struct tc_loop *loop);
/* Reads the clock. */
uint64_t tc_loop_clock_ns(const struct tc_loop *loop);
int64_t tc_loop_realtime_ns(const struct tc_loop *loop);
struct tc_rng *tc_loop_rng(struct tc_loop *loop);
/* Returns the blocks that the loop's thread lends to others. */
struct tc_blocks *tc_loop_blocks(const struct tc_loop *loop);
/* Returns the heap for memory that comes and goes on the loop's thread alone: HTTP/2 sessions. */
struct tc_heap *tc_loop_heap(const struct tc_loop *loop);
/* Returns TC_LOOP_READ_BYTES of room for a read whose bytes are used up before any other read. One room serves the
 * whole loop; the system gives only the pages that reads fill. */
uint8_t *tc_loop_read_room(struct tc_loop *loop);

#define TC_LOOP_READ_BYTES (128u * 1024u)

/* Timers (io/timers.h). Start and stop are O(1). The resolution is 1 ms; a timer never fires early. */
void tc_timer_init(struct tc_timer *timer, struct tc_loop *loop, void (*fn)(struct tc_timer *timer));
/* Fires once after delay_ms; a running timer is restarted. fn may start it again. */
void tc_timer_start(struct tc_timer *timer, uint64_t delay_ms);
void tc_timer_stop(struct tc_timer *timer);

/* Runs one turn; waits for events at most timeout_ms (-1: until something happens, 0: not at all). Returns true when it
 * did anything; false also for a loop that no longer turns (tc_loop_forked). Not re-entrant. */
bool tc_loop_turn(struct tc_loop *loop, int timeout_ms);
/* Runs a turn for posts alone: no events, no timers, and so no system call before their work is done. Returns true when
 * it ran a task. Does nothing unless events were taken in within the last millisecond: no task acts on a state from
 * before an idle gap. */
bool tc_loop_turn_posts(struct tc_loop *loop);
/* Ends the wait of tc_loop_turn, or the next wait if the loop does not wait now. Any thread, and signal handlers. */
void tc_loop_wake(struct tc_loop *loop);
/* For applications that drive the loop. Return a descriptor that becomes readable when there are events (-1: a manual
 * loop), and the time to wait for the next timer (-1: no timer; 0: work is queued). */
int tc_loop_fd(const struct tc_loop *loop);
int tc_loop_timeout_ms(const struct tc_loop *loop);
/* Returns when the loop has work of its own, in the time of tc_loop_now_ms (0: now; UINT64_MAX: no timer is set); and
 * how long to wait until then, as tc_loop_timeout_ms returns it. */
uint64_t tc_loop_next_ms(const struct tc_loop *loop);
int tc_loop_wait_ms(const struct tc_loop *loop, uint64_t next_ms);
/* Returns true inside of a turn of this loop on the calling thread. Any thread. */
bool tc_loop_in_turn(const struct tc_loop *loop);
/* Returns true inside of a turn of any loop of the process, manual loops excepted, on the calling thread. Looks at all
 * loops under a lock: for functions that are called rarely. Any thread. */
bool tc_loop_in_any_turn(void);
/* Returns true when the loop no longer turns: this is a child that was forked after the loop was made, or the process
 * is exiting (base/exit.h). Any thread. */
bool tc_loop_forked(const struct tc_loop *loop);
/* Returns true when the loop no longer turns and no thread is inside of a turn: the loop does not touch borrowed memory
 * again. Any thread. */
bool tc_loop_left(const struct tc_loop *loop);
/* Sets where lines go that are logged in the loop's turns; NULL: to the process's sink. Set between turns. */
void tc_loop_set_log(struct tc_loop *loop, struct tc_log_sink *sink);
/* Sets fn(arg), called when the process is exiting and no thread but the one that exits is inside of a turn of this
 * loop any longer: on the thread that exits the process, with the lock of rank TC_RANK_LOOPS held, or on a thread that
 * ends the loop's last turn or may not begin another. fn may be called more than once. Set before the first turn. */
void tc_loop_on_stopped(struct tc_loop *loop, void (*fn)(void *arg), void *arg);

/* Manual mode. tc_loop_drain turns until no task and no due timer is left, without moving time. tc_loop_advance drains,
 * then moves time by ms, firing each timer in its order and running the tasks that the timer queued. */
void tc_loop_drain(struct tc_loop *loop);
void tc_loop_advance(struct tc_loop *loop, uint64_t ms);
/* Manual mode: sets the time without running anything; due timers fire in the next turn. For a scheduler that turns
 * several loops at one time (testing/world.c). `now_ns` must not be earlier than the loop's time. */
void tc_loop_set_time(struct tc_loop *loop, uint64_t now_ns);

/* Returns the libuv loop underneath (NULL in manual mode), for src/io itself. */
struct uv_loop_s *tc_loop_uv(struct tc_loop *loop);
/* For src/io itself: called first in a callback of libuv, so that the time of the turn is that of its first event. */
void tc_loop_refresh(struct tc_loop *loop);

#endif
