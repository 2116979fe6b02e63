/* A world: one virtual time, the loops that live in it, events, and the random numbers. Three programs have one: the
 * search of test/sim, a test that is linked with libtorc-testing, and `torc simulate`, whose world has loops and events
 * alone (cmd/torc/simulate).
 *
 * A world has no socket and no clock of the machine. It has threads only for the handlers of pools, and one of them
 * runs at a time. Its scheduler does one thing after another: it turns a loop that has work, runs a background job, or
 * lets a thread of a pool run. If several could run, a random number chooses one; all random numbers follow from the
 * seed. When there is nothing to do, the time moves to the next event or timer, or to the end of a thread's wait.
 *
 * A process has one world at a time, since seams.c and net.c replace functions for the whole process. The thread of the
 * world begins and ends it and takes its steps (tc_world_step, tc_world_run_until, tc_world_run_until_idle). The other
 * functions are for any thread of the world (threads.h). */
#ifndef TC_TESTING_WORLD_H
#define TC_TESTING_WORLD_H

#include "base/random.h"
#include "io/loop.h"

/* An event at a moment of virtual time, embedded in its owner. While the event waits the owner must keep it. */
struct tc_world_event {
    uint64_t at_ns, order; /* its moment; events of one moment run in the order in which they were set */
    size_t place;          /* in the heap, from 1; 0: not waiting */
    void (*fn)(struct tc_world_event *event); /* on the thread of the world */
};

/* Sets the time to its start, one second, and seeds the random numbers. */
void tc_world_begin(uint64_t seed);
/* Runs the remaining background jobs and forgets the world. All loops must have ended. */
void tc_world_end(void);
/* Returns true from tc_world_begin until tc_world_end begins. */
bool tc_world_begun(void);

/* Return the world's time. */
uint64_t tc_world_now_ns(void);
static inline uint64_t tc_world_now_ms(void)
{
    return tc_world_now_ns() / TC_NS_PER_MS;
}

/* Prepares an event, which does not wait yet. */
void tc_world_event_init(struct tc_world_event *event, void (*fn)(struct tc_world_event *event));
/* Sets or moves the event. `fn` is called once, in a step of the world, and may set the event again or free its owner.
 * A moment that has passed counts as now. */
void tc_world_event_at(struct tc_world_event *event, uint64_t at_ns);
/* The event no longer waits; it may be set again. Does nothing to an event that does not wait. */
void tc_world_event_stop(struct tc_world_event *event);

/* Streams of random numbers: for the order of turns, the delays of jobs and the cost of CPU time; for the network and
 * the look-ups of names; and for the seeds that loops and the library get. The streams are independent, so that a
 * change of a test changes little of the rest. */
enum tc_chance { TC_CHANCE_TURNS, TC_CHANCE_NET, TC_CHANCE_SEEDS, TC_CHANCES };
/* Returns a stream, which belongs to the world. */
struct tc_rng *tc_world_chance(enum tc_chance which);
/* Returns a number below n, which must not be 0. */
uint64_t tc_world_below(enum tc_chance which, uint64_t n);
/* Returns true in `per_mille` of 1,000 cases. */
bool tc_world_happens(enum tc_chance which, unsigned per_mille);

/* The world turns the loop from now on, or no longer. The loop must be a manual one, and is borrowed in between.
 * tc_world_release does nothing to a loop that is not in the world. */
void tc_world_adopt(struct tc_loop *loop);
void tc_world_release(struct tc_loop *loop);
/* Returns true between tc_world_adopt and tc_world_release. */
bool tc_world_has(const struct tc_loop *loop);
/* Returns true while the scheduler turns this loop. If a step inside that turn turns another loop, or runs a job or a
 * thread, returns false meanwhile. */
bool tc_world_turns(const struct tc_loop *loop);
/* Returns how many loops are in the world. */
size_t tc_world_loops(void);

/* Does everything that is due up to the moment, which is then the world's time unless that is later already. */
void tc_world_run_until(uint64_t at_ns);
/* Does the next thing that is due at at_ns or before: a turn, a job, a thread of a pool, or moving the time. Does what
 * is due now even if at_ns has passed. Returns false, and has done nothing, if there is none.
 *
 * A loop that gives itself work without end does not stop the time: after 100,000 steps at one moment, or 100 turns
 * that left work, the time moves on all the same. It moves to what is due next, but by no more than a millisecond, then
 * two, then four, and so on up to a second, until the world comes to rest. Returns false if that is beyond at_ns,
 * although work is left. */
bool tc_world_step(uint64_t at_ns);
/* Does all that is due now. No time passes, unless a callback or an event's function takes steps of its own, as a
 * function that blocks does. Returns false if there is no end to the work (see tc_world_step). */
bool tc_world_run_until_idle(void);
/* Returns true inside tc_world_step, also on a thread of a pool that the step runs. */
bool tc_world_in_step(void);
/* Returns true if the calling thread is inside a turn of a loop of the world: in a callback. */
bool tc_world_in_turn(void);

#endif
