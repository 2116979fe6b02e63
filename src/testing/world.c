/* The scheduler. Events wait in a binary heap, by moment and then by the order in which they were set. A step is one
 * of:
 *
 *   turn     of a loop that has work or a due timer
 *   job      a background job whose moment has come (seams.c has tc_background_run)
 *   thread   of a pool, which runs until it waits or ends (threads.c)
 *   time     moves to the next event, timer or end of a thread's wait, and runs the events that are due then
 *
 * While turns, jobs or threads can run, a random number chooses one of them; otherwise the time moves. The time also
 * moves when the work of one moment has no end (tc_world_step). The world sets the time of every loop.
 *
 * Steps may nest: a callback, or an event's function, that blocks takes steps of its own. These steps leave out the
 * loops that are in a turn, whether the thread of the world turns them or a thread of a pool that waits. Events and
 * loops belong to their owners, who take them out of the heap and the list before freeing them. world.h says which
 * thread calls which function; threads run one at a time, so no lock guards the world. */
#include "testing/world.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/vec.h"
#include "testing/seams.h"
#include "testing/threads.h"

static struct {
    bool begun;
    uint64_t now_ns, order;
    struct tc_loop *turns; /* the loop in whose turn the scheduler is; NULL: it is in none */
    unsigned depth;        /* how many steps are under way, one inside another */
    unsigned runs;         /* steps since the time moved, or tc_world_run_until_idle began; a turn that leaves work
                              counts as RUNS_OF_BUSY_TURN more */
    uint64_t jump_ns;      /* from MOST_RUNS on: the most by which the time moves next */
    struct tc_rng chance[TC_CHANCES];
    TC_VEC(struct tc_loop *) loops;
    TC_VEC(struct tc_world_event *) heap;
} world;

/* The loops begin at one second (io/loop.c). */
#define BEGIN_NS TC_NS_PER_S
enum { MOST_RUNS = 100000, RUNS_OF_BUSY_TURN = 1000 };

void tc_world_begin(uint64_t seed)
{
    world.begun = true;
    world.now_ns = BEGIN_NS;
    world.order = 0;
    world.runs = 0;
    world.jump_ns = TC_NS_PER_MS;
    for (int i = 0; i < TC_CHANCES; i++)
        tc_rng_init_seed(&world.chance[i], seed * TC_CHANCES + (uint64_t)i);
}

void tc_world_end(void)
{
    world.begun = false;
    while (tc_world_job_run()) {
    }
    tc_vec_fini(&world.loops);
    tc_vec_fini(&world.heap);
}

bool tc_world_begun(void)
{
    return world.begun;
}

uint64_t tc_world_now_ns(void)
{
    return world.now_ns;
}

struct tc_rng *tc_world_chance(enum tc_chance which)
{
    return &world.chance[which];
}

uint64_t tc_world_below(enum tc_chance which, uint64_t n)
{
    return tc_rng_below(&world.chance[which], n);
}

bool tc_world_happens(enum tc_chance which, unsigned per_mille)
{
    return per_mille > 0 && tc_world_below(which, 1000) < per_mille;
}

/* --- events --- */

static bool event_before(const struct tc_world_event *a, const struct tc_world_event *b)
{
    return a->at_ns != b->at_ns ? a->at_ns < b->at_ns : a->order < b->order;
}

static void heap_put(size_t place, struct tc_world_event *event)
{
    world.heap.data[place - 1] = event;
    event->place = place;
}

static void heap_up(struct tc_world_event *event)
{
    size_t place = event->place;
    while (place > 1 && event_before(event, world.heap.data[place / 2 - 1])) {
        heap_put(place, world.heap.data[place / 2 - 1]);
        place /= 2;
    }
    heap_put(place, event);
}

static void heap_down(struct tc_world_event *event)
{
    size_t place = event->place, child;
    while ((child = place * 2) <= world.heap.len) {
        if (child < world.heap.len && event_before(world.heap.data[child], world.heap.data[child - 1]))
            child++;
        if (!event_before(world.heap.data[child - 1], event))
            break;
        heap_put(place, world.heap.data[child - 1]);
        place = child;
    }
    heap_put(place, event);
}

void tc_world_event_init(struct tc_world_event *event, void (*fn)(struct tc_world_event *event))
{
    *event = (struct tc_world_event){.fn = fn};
}

void tc_world_event_stop(struct tc_world_event *event)
{
    size_t place = event->place;
    if (place == 0)
        return;
    struct tc_world_event *last = world.heap.data[--world.heap.len];
    event->place = 0;
    if (last == event)
        return;
    heap_put(place, last);
    heap_up(last);
    heap_down(last);
}

void tc_world_event_at(struct tc_world_event *event, uint64_t at_ns)
{
    tc_world_event_stop(event);
    event->at_ns = TC_MAX(at_ns, world.now_ns);
    event->order = world.order++;
    *tc_vec_push(&world.heap) = event;
    event->place = world.heap.len;
    heap_up(event);
}

/* --- loops --- */

void tc_world_adopt(struct tc_loop *loop)
{
    tc_loop_set_time(loop, world.now_ns);
    *tc_vec_push(&world.loops) = loop;
}

void tc_world_release(struct tc_loop *loop)
{
    for (size_t i = 0; i < world.loops.len; i++)
        if (world.loops.data[i] == loop) {
            tc_vec_remove(&world.loops, i);
            return;
        }
}

size_t tc_world_loops(void)
{
    return world.loops.len;
}

bool tc_world_has(const struct tc_loop *loop)
{
    for (size_t i = 0; i < world.loops.len; i++)
        if (world.loops.data[i] == loop)
            return true;
    return false;
}

bool tc_world_turns(const struct tc_loop *loop)
{
    return world.turns == loop;
}

/* --- steps --- */

/* Turns one of the loops that have work (of the first 32 of them), or runs a job or a thread. Returns false if there is
 * none. */
static bool world_run_one(void)
{
    uint64_t now_ms = world.now_ns / TC_NS_PER_MS;
    struct tc_loop *ready[32];
    size_t n = 0, jobs = tc_world_job_ready() ? 1 : 0;
    for (size_t i = 0; i < world.loops.len && n < TC_ARRAY_LEN(ready); i++)
        if (!tc_loop_is_in_a_turn(world.loops.data[i]) && tc_loop_next_ms(world.loops.data[i]) <= now_ms)
            ready[n++] = world.loops.data[i];
    size_t threads = tc_world_threads_ready(), all = n + jobs + threads;
    if (all == 0)
        return false;
    size_t which = all == 1 ? 0 : (size_t)tc_world_below(TC_CHANCE_TURNS, all);
    struct tc_loop *outer = world.turns;
    world.turns = which < n ? ready[which] : NULL;
    if (which < n) {
        tc_loop_turn(ready[which], 0);
        world.runs += tc_loop_next_ms(ready[which]) <= now_ms ? RUNS_OF_BUSY_TURN : 0;
    } else if (which < n + jobs) {
        tc_world_job_run();
    } else {
        tc_world_thread_run(which - n - jobs);
    }
    world.turns = outer;
    return true;
}

/* Returns when the next event, timer or thread is due; UINT64_MAX: never. Timers that are due before from_ns are left
 * out, and so are all events if the first is due before, and all threads if one is. */
static uint64_t world_next_ns(uint64_t from_ns)
{
    uint64_t next_ns =
        world.heap.len > 0 && world.heap.data[0]->at_ns >= from_ns ? world.heap.data[0]->at_ns : UINT64_MAX;
    for (size_t i = 0; i < world.loops.len; i++) {
        if (tc_loop_is_in_a_turn(world.loops.data[i]))
            continue;
        uint64_t ms = tc_loop_next_ms(world.loops.data[i]);
        if (ms < UINT64_MAX / TC_NS_PER_MS && ms * TC_NS_PER_MS >= from_ns)
            next_ns = TC_MIN(next_ns, ms * TC_NS_PER_MS);
    }
    uint64_t threads_ns = tc_world_threads_next_ns();
    return threads_ns >= from_ns ? TC_MIN(next_ns, threads_ns) : next_ns;
}

/* Moves the time of the world and of its loops, never back. */
static void world_set_time(uint64_t now_ns)
{
    world.runs = now_ns > world.now_ns ? 0 : world.runs;
    world.now_ns = TC_MAX(world.now_ns, now_ns);
    for (size_t i = 0; i < world.loops.len; i++)
        tc_loop_set_time(world.loops.data[i], world.now_ns);
}

/* Runs the events that are due. */
static void world_run_due(void)
{
    uint64_t end = world.order; /* events that are set in this step for the same moment run in the next step */
    while (world.heap.len > 0 && world.heap.data[0]->at_ns <= world.now_ns && world.heap.data[0]->order < end) {
        struct tc_world_event *event = world.heap.data[0];
        tc_world_event_stop(event);
        event->fn(event);
    }
}

bool tc_world_step(uint64_t at_ns)
{
    world.depth++;
    bool did = world.runs < MOST_RUNS && world_run_one();
    uint64_t next_ns = UINT64_MAX;
    if (!did && world.runs < MOST_RUNS) {
        next_ns = world_next_ns(0);
        world.jump_ns = TC_NS_PER_MS;
    } else if (!did) {
        next_ns = TC_MIN(world_next_ns(world.now_ns + 1), world.now_ns + world.jump_ns);
        world.jump_ns = TC_MIN(world.jump_ns * 2, TC_NS_PER_S);
    }
    if (next_ns <= at_ns) {
        world_set_time(next_ns);
        world_run_due();
        did = true;
    }
    world.runs += did;
    world.depth--;
    return did;
}

bool tc_world_run_until_idle(void)
{
    world.runs = 0;
    while (tc_world_step(world.now_ns)) {
    }
    return world.runs < MOST_RUNS;
}

bool tc_world_in_step(void)
{
    return world.depth > 0;
}

bool tc_world_in_turn(void)
{
    for (size_t i = 0; i < world.loops.len; i++)
        if (tc_loop_in_turn(world.loops.data[i]))
            return true;
    return false;
}

void tc_world_run_until(uint64_t at_ns)
{
    while (tc_world_step(at_ns)) {
    }
    world_set_time(at_ns);
}
