/* The world of a simulation: one virtual time, the loops that live in it, events, and the random numbers.
 *
 * A world has no thread, no socket and no clock of the machine. Its scheduler does one thing after another: it turns a
 * loop that has work, or runs a background job; when there is nothing to do it moves the time to the next event. If
 * several loops or jobs could run, a random number chooses one, and all random numbers follow from the seed. A process
 * has one world, since seams.c and net.c replace functions of src/io for the whole process. */
#ifndef SIM_WORLD_H
#define SIM_WORLD_H

#include "base/random.h"
#include "io/loop.h"

/* An event at a moment of virtual time, embedded in its owner. */
struct sim_event {
    uint64_t at_ns, order;
    size_t place; /* in the heap, from 1; 0: not waiting */
    void (*fn)(struct sim_event *event);
};

/* Sets the time back to its start, and seeds the random numbers. */
void sim_world_begin(uint64_t seed);
/* Runs the remaining background jobs and forgets the world. All loops must have ended. */
void sim_world_end(void);

uint64_t sim_now_ns(void);
static inline uint64_t sim_now_ms(void)
{
    return sim_now_ns() / TC_NS_PER_MS;
}

void sim_event_init(struct sim_event *event, void (*fn)(struct sim_event *event));
/* Sets or moves the event. A moment that has passed counts as now. */
void sim_event_at(struct sim_event *event, uint64_t at_ns);
void sim_event_stop(struct sim_event *event);

/* Chance for the order of turns, for the network, and for seeds of what the world makes: streams that do not disturb
 * one another, so that a step left out changes little of the rest. */
enum sim_chance { SIM_CHANCE_TURNS, SIM_CHANCE_NET, SIM_CHANCE_SEEDS, SIM_CHANCES };
struct tc_rng *sim_chance(enum sim_chance which);
uint64_t sim_below(enum sim_chance which, uint64_t n);
/* Returns true in `per_mille` of 1,000 cases. */
bool sim_happens(enum sim_chance which, unsigned per_mille);

/* The world turns the loop from now on, or no longer. */
void sim_world_adopt(struct tc_loop *loop);
void sim_world_release(struct tc_loop *loop);
/* Returns how many loops are in the world. */
size_t sim_world_loops(void);

/* Runs everything up to the moment, which is then the world's time. */
void sim_world_run_until(uint64_t at_ns);
/* Does the next thing that is due before at_ns: a turn, a job, or moving the time to an event or a timer. Returns
 * false, and has done nothing, if there is none. */
bool sim_world_step(uint64_t at_ns);

#endif
