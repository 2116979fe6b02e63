/* The ration of a loop: how many bytes of costly work (inflating and deflating) all users of the loop together may do
 * in one turn. A few bytes from a peer can cause much of that work, and without a bound many such peers would hold up
 * the loop.
 *
 *   if (tc_ration_used_up(ration))
 *       tc_ration_wait(ration, &task);      the task runs at the end of this or a later turn, within a new ration
 *   else
 *       tc_ration_use(ration, bytes);       and the work is done
 *
 * Tasks wait in a queue. At the end of a turn the ration is renewed, and the tasks run one after the other until it is
 * used up. A task with more to do waits again, behind all others. Between renewals the ration stays used up while tasks
 * wait: no other work overtakes them. One piece of work may exceed what is left of the ration. Loop thread only. */
#ifndef TC_IO_RATION_H
#define TC_IO_RATION_H

#include "io/loop.h"

enum { TC_RATION_BYTES = 1 << 20 };

struct tc_ration {
    struct tc_loop *loop;
    struct tc_link waiting; /* tasks, oldest first */
    size_t used;            /* bytes of work since the last renewal */
    struct tc_task renew;   /* runs at the end of a turn in which something was used */
};

/* The struct must be zeroed. */
void tc_ration_init(struct tc_ration *r, struct tc_loop *loop);
/* Returns the loop's ration. */
struct tc_ration *tc_loop_ration(struct tc_loop *loop);
static inline bool tc_ration_used_up(const struct tc_ration *r)
{
    return r->used >= TC_RATION_BYTES;
}
/* Counts bytes of work; more than the whole ration counts as the whole ration. */
void tc_ration_use(struct tc_ration *r, size_t bytes);
/* Queues the task until a renewed ration has room; a task that is queued already stays where it is. tc_task_cancel
 * takes the task off. The ration must be used up. */
void tc_ration_wait(struct tc_ration *r, struct tc_task *task);

#endif
