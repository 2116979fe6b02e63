/* The calls of a channel that wait: for the resolver's first result, and for a picker that can place them. */
#include "channel/call_struct.h"

static void on_retry(struct tc_task *task)
{
    torc_channel *ch = TC_CONTAINER_OF(task, torc_channel, retry);
    struct tc_link waiting;
    tc_list_init(&waiting);
    tc_list_splice(&waiting, &ch->waiting_pick);
    struct tc_link *link;
    /* In the order in which they came; those that still find nothing queue up again. */
    while ((link = tc_list_pop(&waiting)))
        tc_call_pick(TC_CONTAINER_OF(link, struct tc_call, queue));
}

void tc_pick_queue_init(torc_channel *ch)
{
    tc_list_init(&ch->waiting_config);
    tc_list_init(&ch->waiting_pick);
    tc_task_init(&ch->retry, on_retry);
}

void tc_pick_queue_wake(torc_channel *ch)
{
    if (!tc_list_empty(&ch->waiting_pick) && !ch->ended)
        tc_loop_defer(ch->loop, &ch->retry);
}

void tc_pick_queue_resolved(torc_channel *ch)
{
    struct tc_link waiting;
    tc_list_init(&waiting);
    tc_list_splice(&waiting, &ch->waiting_config);
    struct tc_link *link;
    while ((link = tc_list_pop(&waiting)))
        tc_call_resolved(TC_CONTAINER_OF(link, struct tc_call, queue));
}
