/* The loop: one thread runs everything of a runtime. A turn is: take in events (sockets, posts), fire due timers, drain
 * the serial queue (bounded), run the tasks of the turn's end (each connection flushes once). Events are taken in
 * before timers fire, so that after an idle gap no timer fires while its answer sits unread.
 *
 * All functions are for the loop thread unless they say otherwise. In manual mode (tests) there is no operating system
 * underneath: time stands still until tc_loop_advance moves it. */
#ifndef TC_IO_LOOP_H
#define TC_IO_LOOP_H

#include "base/blocks.h"
#include "base/clock.h"
#include "base/heap.h"
#include "base/list.h"
#include "base/random.h"

struct tc_loop;

struct tc_loop_opts {
    bool manual; /* virtual time, no sockets */
    bool seeded; /* use `seed` for the loop's random numbers */
    uint64_t seed;
};

/* NULL opts: a real loop. NULL with errno set when the system refuses (descriptors exhausted). Any thread. */
struct tc_loop *tc_loop_new(const struct tc_loop_opts *opts);
/* Ends a loop on which nothing is left: turns until its handles are closed, then frees it. Asserts (in debug builds)
 * that no timer or task remains. */
void tc_loop_free(struct tc_loop *loop);

/* A unit of deferred work, embedded in its owner; fn finds the owner by TC_CONTAINER_OF. */
struct tc_task {
    struct tc_link link;
    void (*fn)(struct tc_task *task);
};

void tc_task_init(struct tc_task *task, void (*fn)(struct tc_task *task));
static inline bool tc_task_pending(const struct tc_task *task)
{
    return tc_list_linked(&task->link);
}
/* Appends to the serial queue; a task that is queued already stays where it is. */
void tc_loop_defer(struct tc_loop *loop, struct tc_task *task);
/* Runs the task once at the end of this turn (connections flush so); a queued one stays. */
void tc_loop_at_turn_end(struct tc_loop *loop, struct tc_task *task);
/* Takes a task off the queue that it is on; harmless when it is on none. Not for posted tasks. */
void tc_task_cancel(struct tc_task *task);
/* From any thread: appends to the queue of posts and wakes the loop if it sleeps. The task must stay alive until it
 * ran; each post of a task runs it once, and it must not be posted again before it ran. */
void tc_loop_post(struct tc_loop *loop, struct tc_task *task);

/* The same without waking the loop: for a thread that is about to turn it itself, or else wakes it (tc_loop_wake). */
void tc_loop_post_quietly(struct tc_loop *loop, struct tc_task *task);

/* Time of the present turn: monotonic, and cached once a turn. Between turns: the clock. */
uint64_t tc_loop_now_ms(const struct tc_loop *loop);
uint64_t tc_loop_now_ns(const struct tc_loop *loop);
/* The clock itself, now. */
uint64_t tc_loop_clock_ns(const struct tc_loop *loop);
int64_t tc_loop_realtime_ns(const struct tc_loop *loop);
struct tc_rng *tc_loop_rng(struct tc_loop *loop);
/* What the loop's thread lends to others. */
struct tc_blocks *tc_loop_blocks(const struct tc_loop *loop);
/* The memory of what comes and goes on the loop's thread alone: HTTP/2 sessions. */
struct tc_heap *tc_loop_heap(const struct tc_loop *loop);
/* Where bytes are read to that are worked off before anything else is read: TC_LOOP_READ_BYTES, one room for all. Taken
 * from the system once, and of its pages only what reads fill. */
uint8_t *tc_loop_read_room(struct tc_loop *loop);

#define TC_LOOP_READ_BYTES (128u * 1024u)

/* A timer, embedded in its owner. Start and stop are O(1). Resolution 1 ms; never early. */
struct tc_timer {
    struct tc_link link;
    struct tc_loop *loop;
    void (*fn)(struct tc_timer *timer);
    uint64_t due_ms;
};

void tc_timer_init(struct tc_timer *timer, struct tc_loop *loop, void (*fn)(struct tc_timer *timer));
/* Fires once after delay_ms; a running timer is restarted. fn may start it again. */
void tc_timer_start(struct tc_timer *timer, uint64_t delay_ms);
void tc_timer_stop(struct tc_timer *timer);
static inline bool tc_timer_active(const struct tc_timer *timer)
{
    return tc_list_linked(&timer->link);
}

/* One turn; waits for events at most timeout_ms (-1: until something happens, 0: not at all). True when it did
 * anything. Not re-entrant. */
bool tc_loop_turn(struct tc_loop *loop, int timeout_ms);
/* A turn for what was posted alone: no events, no timers, and so no call of the system before its work is done. Only
 * where events were taken in within the last millisecond, so that nobody acts on what was true before an idle gap; else
 * false, and nothing was done. */
bool tc_loop_turn_posts(struct tc_loop *loop);
/* Wakes a loop that waits in tc_loop_turn. Any thread. */
void tc_loop_wake(struct tc_loop *loop);
/* For applications that drive the loop: a descriptor that becomes readable when there are events, and how long to wait
 * for the next timer (-1: no timer; 0: work is queued). */
int tc_loop_fd(const struct tc_loop *loop);
int tc_loop_timeout_ms(const struct tc_loop *loop);
/* True while inside tc_loop_turn on the calling thread. Any thread. */
bool tc_loop_in_turn(const struct tc_loop *loop);
/* True when the process has forked since the loop was made, and this is the child. Any thread. */
bool tc_loop_forked(const struct tc_loop *loop);

/* Manual mode: runs what is queued without moving time; then moves time by ms, firing each timer in its order and
 * running what it queued. */
void tc_loop_drain(struct tc_loop *loop);
void tc_loop_advance(struct tc_loop *loop, uint64_t ms);

/* The libuv loop underneath (NULL in manual mode), for src/io itself. */
struct uv_loop_s *tc_loop_uv(struct tc_loop *loop);
/* For src/io itself, first thing in a callback of libuv: the time of the turn is that of its events. */
void tc_loop_refresh(struct tc_loop *loop);

#endif
