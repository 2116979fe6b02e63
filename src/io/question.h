/* A question that a loop asks the application. Any thread answers it, once, at any time.
 *
 * A waiter on the loop waits for the answer, and may cancel. The application holds the question until it answers, even
 * if the waiter has cancelled or the loop has ended. Embedded in the object that the application is given. */
#ifndef TC_IO_QUESTION_H
#define TC_IO_QUESTION_H

#include <pthread.h>

#include "base/ref.h"
#include "io/loop.h"

struct tc_question;

struct tc_question_ops {
    /* Called on the loop, from the serial queue, after tc_question_ask: hands the question to the application. NULL if
     * tc_question_ask is not called. */
    void (*ask)(struct tc_question *q);
    /* Called on the loop, from the serial queue, after a cancel that found no answer. `answered` says whether an answer
     * has come since. An answer from another thread waits until withdraw returns. May be NULL. */
    void (*withdraw)(struct tc_question *q, bool answered);
    /* Called on the loop, from the serial queue, after an answer, unless the waiter has cancelled. */
    void (*deliver)(struct tc_question *q, void *waiter);
    /* Called when both references are gone: frees the object, with what `deliver` has not taken of the answer. Any
     * thread. */
    void (*free)(struct tc_question *q);
};

struct tc_question {
    const struct tc_question_ops *ops;
    struct tc_ref ref;     /* one of the application, one of the loop */
    pthread_mutex_t mutex; /* recursive: withdraw may answer */
    struct tc_loop *loop;  /* the waiter keeps its memory while it waits */
    unsigned generation;   /* tc_fork_generation at tc_question_init */
    bool unasked;          /* used by the loop alone: `task` has yet to call ask */
    /* Under the mutex. */
    void *waiter;  /* NULL: nobody waits */
    bool answered; /* tc_question_answer was called */
    bool posted;   /* `task` is to deliver, and holds the loop's reference */
    struct tc_task task;
};

/* *q must be zeroed. `waiter` must not be NULL. */
void tc_question_init(struct tc_question *q, const struct tc_question_ops *ops, struct tc_loop *loop, void *waiter);
/* Queues `ask` on the serial queue. Without this call the caller itself hands the question to the application. Called
 * on the loop. */
void tc_question_ask(struct tc_question *q);
/* Called once, after the answer was stored in the object. Gives up the application's reference. In a child of a fork
 * does nothing: the waiter is the parent's. Any thread. */
void tc_question_answer(struct tc_question *q);
/* Ends the wait: deliver does not follow. Called on the loop, before deliver. Gives up the loop's reference, unless a
 * task still holds it, and the application's too if the application has not been asked yet: *q may be freed inside.
 * Returns true if withdraw follows. */
bool tc_question_cancel(struct tc_question *q);

#endif
