/* The queues of a channel's calls. Entries that run may queue up again, so a queue is emptied into a list of its own
 * before the entries run. */
#include "channel/pick_queue.h"

/* Runs the entries that are queued now, oldest first. */
static void queue_run(struct tc_link *queue)
{
    struct tc_link entries, *link;
    tc_list_init(&entries);
    tc_list_splice(&entries, queue);
    while ((link = tc_list_pop(&entries))) {
        struct tc_queued *q = TC_CONTAINER_OF(link, struct tc_queued, link);
        q->fn(q);
    }
}

static void on_retry(struct tc_task *task)
{
    queue_run(&TC_CONTAINER_OF(task, struct tc_pick_queue, retry)->pick);
}

void tc_pick_queue_init(struct tc_pick_queue *q, struct tc_loop *loop)
{
    q->loop = loop;
    tc_list_init(&q->config);
    tc_list_init(&q->pick);
    tc_task_init(&q->retry, on_retry);
}

void tc_pick_queue_wait(struct tc_link *queue, struct tc_queued *entry, void (*fn)(struct tc_queued *entry))
{
    entry->fn = fn;
    tc_list_append(queue, &entry->link);
}

void tc_pick_queue_wake(struct tc_pick_queue *q)
{
    if (!tc_list_empty(&q->pick))
        tc_loop_defer(q->loop, &q->retry);
}

void tc_pick_queue_resolved(struct tc_pick_queue *q)
{
    queue_run(&q->config);
}
