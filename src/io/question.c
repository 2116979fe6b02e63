/* A question has two references. tc_question_answer gives up the application's. The task gives up the loop's once it
 * has delivered or withdrawn. In three cases there is no such task, and tc_question_cancel gives up the loop's:
 *
 *   - the application was not asked yet (then the application's reference goes too);
 *   - there is no answer, and no `withdraw`;
 *   - there is an answer, but the loop has ended and refused the task.
 *
 * The mutex decides between an answer and a cancel that meet. After tc_question_cancel has returned, the waiter is not
 * called, and an answer does not touch the loop. `task` has one use at a time: it asks; later it delivers, if an answer
 * finds a waiter, or withdraws, if a cancel finds no answer and there is a `withdraw`. */
#include "io/question.h"

#include "base/fork.h"

static void question_unref(struct tc_question *q)
{
    if (!tc_ref_dec(&q->ref))
        return;
    pthread_mutex_destroy(&q->mutex);
    q->ops->free(q);
}

static void question_deliver(struct tc_task *task)
{
    struct tc_question *q = TC_CONTAINER_OF(task, struct tc_question, task);
    pthread_mutex_lock(&q->mutex);
    void *waiter = q->waiter;
    q->waiter = NULL;
    pthread_mutex_unlock(&q->mutex);
    if (waiter)
        q->ops->deliver(q, waiter);
    question_unref(q);
}

static void question_withdraw(struct tc_task *task)
{
    struct tc_question *q = TC_CONTAINER_OF(task, struct tc_question, task);
    /* Held during the callback: so an answer from another thread comes before it or after it. */
    pthread_mutex_lock(&q->mutex);
    q->ops->withdraw(q, q->answered);
    pthread_mutex_unlock(&q->mutex);
    question_unref(q);
}

static void question_ask(struct tc_task *task)
{
    struct tc_question *q = TC_CONTAINER_OF(task, struct tc_question, task);
    q->unasked = false;
    q->ops->ask(q);
}

void tc_question_init(struct tc_question *q, const struct tc_question_ops *ops, struct tc_loop *loop, void *waiter)
{
    pthread_mutexattr_t recursive;
    q->ops = ops;
    tc_ref_init(&q->ref);
    tc_ref_inc(&q->ref);
    q->generation = tc_fork_generation();
    pthread_mutexattr_init(&recursive);
    pthread_mutexattr_settype(&recursive, PTHREAD_MUTEX_RECURSIVE);
    pthread_mutex_init(&q->mutex, &recursive);
    pthread_mutexattr_destroy(&recursive);
    q->loop = loop;
    q->waiter = waiter;
    tc_task_init(&q->task, question_deliver);
}

void tc_question_ask(struct tc_question *q)
{
    q->unasked = true;
    q->task.fn = question_ask;
    tc_loop_defer(q->loop, &q->task);
}

void tc_question_answer(struct tc_question *q)
{
    if (q->generation != tc_fork_generation())
        return; /* a thread that the child does not have may have the mutex */
    pthread_mutex_lock(&q->mutex);
    q->answered = true;
    /* Under the mutex: a waiter keeps the loop's memory until tc_question_cancel has returned, and tc_question_cancel
     * waits for the mutex. */
    if (q->waiter) {
        q->task.fn = question_deliver;
        q->posted = tc_loop_post(q->loop, &q->task);
    }
    pthread_mutex_unlock(&q->mutex);
    question_unref(q);
}

bool tc_question_cancel(struct tc_question *q)
{
    if (q->unasked) { /* the application has not seen it */
        tc_task_cancel(&q->task);
        question_unref(q);
        question_unref(q);
        return false;
    }
    pthread_mutex_lock(&q->mutex);
    q->waiter = NULL;
    bool withdraws = !q->answered && q->ops->withdraw, posted = q->posted;
    if (withdraws) {
        q->task.fn = question_withdraw;
        tc_loop_defer(q->loop, &q->task);
    }
    pthread_mutex_unlock(&q->mutex);
    if (!withdraws && !posted)
        question_unref(q);
    return withdraws;
}
