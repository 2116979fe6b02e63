/* on_turn_end fills `left` up, and spends it on the turns that wait, in order. It is queued by each request, and by
 * itself when it has spent parts: an idle channel costs nothing. */
#include "lb/connect_turns.h"

static void connect_turn_run(struct tc_connect_turns *q, struct tc_connect_turn *t)
{
    if (t->run(t, &q->left) && !tc_list_linked(&t->link))
        tc_list_append(&q->waiting, &t->link);
}

/* Queues itself again only if it has spent parts: otherwise the next run would find `left` full. */
static void on_turn_end(struct tc_task *task)
{
    struct tc_connect_turns *q = TC_CONTAINER_OF(task, struct tc_connect_turns, end);
    struct tc_link *link;
    q->left = TC_CONNECT_TURN_PARTS;
    while (q->left && (link = tc_list_pop(&q->waiting)))
        connect_turn_run(q, TC_CONTAINER_OF(link, struct tc_connect_turn, link));
    if (q->left < TC_CONNECT_TURN_PARTS)
        tc_loop_at_turn_end(q->loop, &q->end);
}

void tc_connect_turns_init(struct tc_connect_turns *q, struct tc_loop *loop)
{
    *q = (struct tc_connect_turns){.loop = loop, .left = TC_CONNECT_TURN_PARTS};
    tc_list_init(&q->waiting);
    tc_task_init(&q->end, on_turn_end);
}

void tc_connect_turn_init(struct tc_connect_turn *t, bool (*run)(struct tc_connect_turn *t, uint32_t *left))
{
    t->run = run;
    tc_list_init(&t->link);
}

void tc_connect_turn_request(struct tc_connect_turns *q, struct tc_connect_turn *t)
{
    tc_loop_at_turn_end(q->loop, &q->end);
    if (!tc_list_linked(&t->link))
        connect_turn_run(q, t);
}
