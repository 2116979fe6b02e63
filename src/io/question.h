/* A question that a loop asks the application, and that any thread answers, at any time, once.
 *
 * A waiter on the loop waits for the answer, and may cancel. The application holds the question until it answers, also
 * when nobody waits any longer, or the loop has ended. Embedded in the object that the application is given. */
#ifndef TC_IO_QUESTION_H
#define TC_IO_QUESTION_H

#include <pthread.h>

#include "base/ref.h"
#include "io/loop.h"

struct tc_question;

struct tc_question_ops {
    /* Called on the loop, from the serial queue, after tc_question_ask: hands the question to the application. */
    void (*ask)(struct tc_question *q);
    /* Called on the loop, from the serial queue, after a cancel that found no answer; `answered`: an answer has come
     * since. Otherwise an answer from another thread waits until withdraw returns. May be NULL. */
    void (*withdraw)(struct tc_question *q, bool answered);
    /* Called on the loop, from the serial queue: the answer has come, and the waiter waits. */
    void (*deliver)(struct tc_question *q, void *waiter);
    /* Frees the object, and the answer if it was not delivered. Any thread. */
    void (*free)(struct tc_question *q);
};

struct tc_question {
    const struct tc_question_ops *ops;
    struct tc_ref ref;     /* one of the application's side, one of the loop's */
    pthread_mutex_t mutex; /* recursive: withdraw may answer */
    struct tc_loop *loop;  /* its memory stays as long as a waiter waits */
    bool unasked;          /* the loop's: `task` is to call ask */
    /* Under the mutex. */
    void *waiter;  /* NULL: nobody waits */
    bool answered; /* the application's side is over */
    bool posted;   /* the loop took the task, which has the loop's reference */
    struct tc_task task;
};

/* *q must be zeroed, and `waiter` not be NULL. */
void tc_question_init(struct tc_question *q, const struct tc_question_ops *ops, struct tc_loop *loop, void *waiter);
/* Asks, later in the loop's turn. Without this call the caller itself hands the question to the application. */
void tc_question_ask(struct tc_question *q);
/* Called once the object holds the answer. Gives up the application's side. Any thread, once. */
void tc_question_answer(struct tc_question *q);
/* Ends the wait: deliver does not follow. Called on the loop, before deliver. Gives up the loop's side, and the
 * application's too if the application has not been asked yet: the object may be freed inside. Returns true if withdraw
 * follows. */
bool tc_question_cancel(struct tc_question *q);

#endif
