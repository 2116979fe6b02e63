/* Loops at the end of the process, and in a forked child.
 *
 * An exit stops every loop but manual ones: it sets `generation` to TC_LOOP_STOPPED, and wakes the loop. It waits, a
 * second at most, until no other thread is inside of a turn (base/exit.h). Then it calls on_stopped of each idle loop.
 * A turn that ends after the stop calls on_stopped itself (turn_leave). In a child the loops of the parent no longer
 * turn either: their generation is an older one.
 *
 * The thread that exits runs the operations in exit_ops. The other functions are declared in loop.h and
 * loop_internal.h; any thread may call them, but for tc_loop_on_stopped. `loops` does not own the loops. */
#include "base/exit.h"
#include "io/loop_internal.h"

/* The loops of this process that are not manual; in a child those of its ancestors too. Guarded by the lock of rank
 * TC_RANK_LOOPS. */
static struct tc_link loops = {&loops, &loops};

/* Returns true if no thread is inside of a turn of the loop. The thread that called exit does not count: it does not
 * return to its turn. */
static bool loop_is_idle(const struct tc_loop *loop)
{
    uintptr_t by = atomic_load(&loop->turn_thread);
    return by == 0 || tc_exit_is_by((pthread_t)by);
}

bool tc_loop_forked(const struct tc_loop *loop)
{
    return tc_loop_is_forked(loop);
}

bool tc_loop_left(const struct tc_loop *loop)
{
    /* Sequentially consistent, as in turn_enter: a thread that enters a turn after this load sees TC_LOOP_STOPPED. */
    unsigned generation = atomic_load(&loop->generation);
    return generation != tc_fork_generation() && (generation != TC_LOOP_STOPPED || loop_is_idle(loop));
}

bool tc_loop_in_any_turn(void)
{
    bool inside = false;
    tc_lock_take(tc_lock_of_process(TC_RANK_LOOPS));
    TC_LIST_FOREACH(it, &loops)
    {
        const struct tc_loop *loop = TC_CONTAINER_OF(it, struct tc_loop, link);
        inside = inside || (!tc_loop_is_forked(loop) && tc_loop_in_turn(loop));
    }
    tc_lock_give(tc_lock_of_process(TC_RANK_LOOPS));
    return inside;
}

static void loops_stop(void)
{
    tc_lock_take(tc_lock_of_process(TC_RANK_LOOPS));
    TC_LIST_FOREACH(it, &loops)
    {
        struct tc_loop *loop = TC_CONTAINER_OF(it, struct tc_loop, link);
        if (tc_loop_is_forked(loop))
            continue;
        atomic_store(&loop->generation, TC_LOOP_STOPPED);
        atomic_store(&loop->woken, true);
        uv_async_send(&loop->async);
    }
    tc_lock_give(tc_lock_of_process(TC_RANK_LOOPS));
}

static bool loops_are_idle(void)
{
    bool idle = true;
    tc_lock_take(tc_lock_of_process(TC_RANK_LOOPS));
    TC_LIST_FOREACH(it, &loops)
    {
        const struct tc_loop *loop = TC_CONTAINER_OF(it, struct tc_loop, link);
        idle = idle && (atomic_load(&loop->generation) != TC_LOOP_STOPPED || loop_is_idle(loop));
    }
    tc_lock_give(tc_lock_of_process(TC_RANK_LOOPS));
    return idle;
}

/* Calls on_stopped of idle loops alone: it wakes threads that wait for a call, and a turn that has not ended may still
 * use memory that these threads lent. turn_leave calls on_stopped when such a turn ends. */
static void loops_tell_stopped(void)
{
    tc_lock_take(tc_lock_of_process(TC_RANK_LOOPS));
    TC_LIST_FOREACH(it, &loops)
    {
        const struct tc_loop *loop = TC_CONTAINER_OF(it, struct tc_loop, link);
        if (loop->on_stopped && atomic_load(&loop->generation) == TC_LOOP_STOPPED && loop_is_idle(loop))
            loop->on_stopped(loop->on_stopped_arg);
    }
    tc_lock_give(tc_lock_of_process(TC_RANK_LOOPS));
}

static const struct tc_exit_ops exit_ops = {.stop = loops_stop, .idle = loops_are_idle, .stopped = loops_tell_stopped};

void tc_loop_exit_add(struct tc_loop *loop)
{
    tc_lock_take(tc_lock_of_process(TC_RANK_LOOPS));
    tc_list_append(&loops, &loop->link);
    tc_lock_give(tc_lock_of_process(TC_RANK_LOOPS));
    tc_exit_register(TC_EXIT_LOOPS, &exit_ops);
}

void tc_loop_exit_remove(struct tc_loop *loop)
{
    tc_lock_take(tc_lock_of_process(TC_RANK_LOOPS));
    tc_list_remove(&loop->link);
    tc_lock_give(tc_lock_of_process(TC_RANK_LOOPS));
}

void tc_loop_on_stopped(struct tc_loop *loop, void (*fn)(void *arg), void *arg)
{
    loop->on_stopped = fn;
    loop->on_stopped_arg = arg;
}
