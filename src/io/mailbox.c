#include "io/mailbox.h"

#include <pthread.h>

#include "base/mem.h"
#include "base/ref.h"

struct tc_mailbox {
    struct tc_ref ref; /* a posted task holds one */
    struct tc_loop *loop;
    struct tc_task task;
    struct tc_link taken; /* the loop's: being run */

    pthread_mutex_t mutex;
    /* Under the mutex, which is held while the loop is posted to: it does not end in between. */
    struct tc_link waiting;
    bool posted, closed;
};

static void on_task(struct tc_task *task)
{
    struct tc_mailbox *box = TC_CONTAINER_OF(task, struct tc_mailbox, task);
    struct tc_link *link;
    pthread_mutex_lock(&box->mutex);
    box->posted = false;
    tc_list_splice(&box->taken, &box->waiting);
    pthread_mutex_unlock(&box->mutex);
    /* One of them may close the box: that empties the list. */
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
    tc_task_init(&box->task, on_task);
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

void tc_mailbox_send(struct tc_mailbox *box, struct tc_mail *mail)
{
    tc_list_init(&mail->link);
    pthread_mutex_lock(&box->mutex);
    bool closed = box->closed;
    if (!closed) {
        tc_list_append(&box->waiting, &mail->link);
        if (!box->posted) {
            box->posted = true;
            tc_ref_inc(&box->ref);
            tc_loop_post(box->loop, &box->task);
        }
    }
    pthread_mutex_unlock(&box->mutex);
    if (closed)
        mail->drop(mail);
}

void tc_mailbox_close(struct tc_mailbox *box)
{
    struct tc_link *link;
    pthread_mutex_lock(&box->mutex);
    box->closed = true;
    tc_list_splice(&box->taken, &box->waiting);
    pthread_mutex_unlock(&box->mutex);
    while ((link = tc_list_pop(&box->taken))) {
        struct tc_mail *mail = TC_CONTAINER_OF(link, struct tc_mail, link);
        mail->drop(mail);
    }
}
