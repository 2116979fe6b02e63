/* Messages to a loop from any thread.
 *
 *   open     A sender appends to `waiting`, and posts the task unless it is posted already. The task moves all messages
 *            to `taken` and runs them in order.
 *   closed   No message runs. The thread that closes drops the messages of both lists. A later message is dropped by
 *            its sender, or by a thread that is dropping already.
 *
 * Messages run, or are dropped, one at a time and in the order in which they were sent: a message may free what an
 * earlier one needs. */
#include "io/mailbox.h"

#include <pthread.h>

#include "base/mem.h"
#include "base/ref.h"

struct tc_mailbox {
    struct tc_ref ref; /* a posted task holds one */
    struct tc_loop *loop;
    struct tc_task task;
    struct tc_link taken; /* the loop's: messages that the task has yet to run */

    pthread_mutex_t mutex;
    /* Under the mutex. tc_mailbox_send holds it until tc_loop_post has returned: between its look at `closed` and the
     * post the box is not closed, and so the loop does not end. */
    struct tc_link waiting;
    bool posted, closed;
    bool dropping; /* a thread is in mailbox_drop_all */
};

static void mailbox_on_task(struct tc_task *task)
{
    struct tc_mailbox *box = TC_CONTAINER_OF(task, struct tc_mailbox, task);
    struct tc_link *link;
    pthread_mutex_lock(&box->mutex);
    box->posted = false;
    if (!box->closed) /* else the dropping thread has the messages that wait */
        tc_list_splice(&box->taken, &box->waiting);
    pthread_mutex_unlock(&box->mutex);
    /* A message may close the box, which empties the list. */
    while ((link = tc_list_pop(&box->taken))) {
        struct tc_mail *mail = TC_CONTAINER_OF(link, struct tc_mail, link);
        mail->run(mail);
    }
    tc_mailbox_unref(box);
}

struct tc_mailbox *tc_mailbox_new(struct tc_loop *loop)
{
    struct tc_mailbox *box = TC_NEW(struct tc_mailbox);
    tc_ref_init(&box->ref);
    box->loop = loop;
    tc_task_init(&box->task, mailbox_on_task);
    tc_list_init(&box->taken);
    tc_list_init(&box->waiting);
    pthread_mutex_init(&box->mutex, NULL);
    return box;
}

struct tc_mailbox *tc_mailbox_ref(struct tc_mailbox *box)
{
    tc_ref_inc(&box->ref);
    return box;
}

void tc_mailbox_unref(struct tc_mailbox *box)
{
    if (!box || !tc_ref_dec(&box->ref))
        return;
    pthread_mutex_destroy(&box->mutex);
    tc_free(box);
}

/* Drops messages of a closed box until none waits. Called with the mutex held; releases it around each drop. */
static void mailbox_drop_all(struct tc_mailbox *box)
{
    struct tc_link *link;
    box->dropping = true;
    while ((link = tc_list_pop(&box->waiting))) {
        struct tc_mail *mail = TC_CONTAINER_OF(link, struct tc_mail, link);
        pthread_mutex_unlock(&box->mutex);
        if (mail->drop)
            mail->drop(mail);
        pthread_mutex_lock(&box->mutex);
    }
    box->dropping = false;
}

void tc_mailbox_send(struct tc_mailbox *box, struct tc_mail *mail)
{
    tc_list_init(&mail->link);
    tc_ref_inc(&box->ref); /* a message may give up the last other reference */
    pthread_mutex_lock(&box->mutex);
    tc_list_append(&box->waiting, &mail->link);
    if (box->closed) {
        if (!box->dropping)
            mailbox_drop_all(box);
    } else if (!box->posted) {
        box->posted = true;
        tc_ref_inc(&box->ref);
        tc_loop_post(box->loop, &box->task);
    }
    pthread_mutex_unlock(&box->mutex);
    tc_mailbox_unref(box);
}

void tc_mailbox_close(struct tc_mailbox *box)
{
    pthread_mutex_lock(&box->mutex);
    box->closed = true;
    /* The messages in `taken` were sent before those in `waiting`. */
    tc_list_splice(&box->taken, &box->waiting);
    tc_list_splice(&box->waiting, &box->taken);
    mailbox_drop_all(box);
    pthread_mutex_unlock(&box->mutex);
}
