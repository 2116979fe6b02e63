/* The queues of a channel's calls: one for calls that wait for a usable result of the resolver, one for calls that wait
 * to pick again. Loop thread only, except tc_pick_queue_init. */
#ifndef TC_CHANNEL_PICK_QUEUE_H
#define TC_CHANNEL_PICK_QUEUE_H

#include "io/loop.h"

/* Embedded in the call. Leaves the queue with tc_list_remove(&q->link). */
struct tc_queued {
    struct tc_link link;
    void (*fn)(struct tc_queued *q); /* called when the wait is over; the entry is off the queue */
};

/* Embedded in the channel. */
struct tc_pick_queue {
    struct tc_loop *loop;
    struct tc_link config; /* waits for a resolver's result */
    struct tc_link pick;   /* waits for another picker, or for the end of a connection */
    struct tc_task retry;  /* tries `pick` again; the channel cancels it at its end */
};

/* `loop` is borrowed. Any thread, before the queue is used. */
void tc_pick_queue_init(struct tc_pick_queue *q, struct tc_loop *loop);

/* Puts the entry, which is on no queue, at the end of `config` or `pick`. */
void tc_pick_queue_wait(struct tc_link *queue, struct tc_queued *entry, void (*fn)(struct tc_queued *entry));
/* Has the calls of `pick` try again, by the serial queue: there is a new picker, or a connection under the picker has
 * ended. Repeated calls before that try count as one. */
void tc_pick_queue_wake(struct tc_pick_queue *q);
/* A result came, or resolution failed: calls fn of the entries of `config` from inside. */
void tc_pick_queue_resolved(struct tc_pick_queue *q);

#endif
