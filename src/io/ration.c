/* The ration of a loop (ration.h). Each use queues `renew` for the end of the turn; a use inside of `renew` queues it
 * for the end of the next turn. */
#include "io/ration.h"

#include <assert.h>

#include "io/loop_internal.h"

static void ration_renew(struct tc_task *renew)
{
    struct tc_ration *r = TC_CONTAINER_OF(renew, struct tc_ration, renew);
    struct tc_link *link;
    r->used = 0;
    while (!tc_ration_used_up(r) && !tc_loop_is_forked(r->loop) && (link = tc_list_pop(&r->waiting))) {
        struct tc_task *task = TC_CONTAINER_OF(link, struct tc_task, link);
        task->fn(task);
    }
}

void tc_ration_init(struct tc_ration *r, struct tc_loop *loop)
{
    r->loop = loop;
    tc_list_init(&r->waiting);
    tc_task_init(&r->renew, ration_renew);
}

struct tc_ration *tc_loop_ration(struct tc_loop *loop)
{
    return &loop->ration;
}

void tc_ration_use(struct tc_ration *r, size_t bytes)
{
    r->used += TC_MIN(bytes, (size_t)TC_RATION_BYTES);
    tc_loop_at_turn_end(r->loop, &r->renew);
}

void tc_ration_wait(struct tc_ration *r, struct tc_task *task)
{
    assert(tc_ration_used_up(r));
    if (!tc_task_pending(task))
        tc_list_append(&r->waiting, &task->link);
}
