#include "lb/turns.h"

static void run_one(struct tc_lb_turns *q, struct tc_lb_turn *t)
{
    if (t->run(t, &q->left) && !tc_list_linked(&t->link))
        tc_list_append(&q->waiting, &t->link);
}

static void on_end(struct tc_task *task)
{
    struct tc_lb_turns *q = TC_CONTAINER_OF(task, struct tc_lb_turns, end);
    struct tc_link *link;
    q->left = TC_LB_PARTS;
    while (q->left && (link = tc_list_pop(&q->waiting)))
        run_one(q, TC_CONTAINER_OF(link, struct tc_lb_turn, link));
    if (q->left < TC_LB_PARTS)
        tc_loop_at_turn_end(q->loop, &q->end);
}

void tc_lb_turns_init(struct tc_lb_turns *q, struct tc_loop *loop)
{
    *q = (struct tc_lb_turns){.loop = loop, .left = TC_LB_PARTS};
    tc_list_init(&q->waiting);
    tc_task_init(&q->end, on_end);
}

void tc_lb_turns_stop(struct tc_lb_turns *q)
{
    tc_task_cancel(&q->end);
}

void tc_lb_turn_init(struct tc_lb_turn *t, bool (*run)(struct tc_lb_turn *t, uint32_t *left))
{
    t->run = run;
    tc_list_init(&t->link);
}

void tc_lb_turn_want(struct tc_lb_turns *q, struct tc_lb_turn *t)
{
    tc_loop_at_turn_end(q->loop, &q->end);
    if (!tc_list_linked(&t->link))
        run_one(q, t);
}

void tc_lb_turn_cancel(struct tc_lb_turn *t)
{
    tc_list_remove(&t->link);
}
