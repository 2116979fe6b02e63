/* A queue of messages of a server's call: to be sent, or to be received by the application. Without a lock: its owner
 * has one, or is the loop's. */
#ifndef TC_API_SERVER_MESSAGE_QUEUE_H
#define TC_API_SERVER_MESSAGE_QUEUE_H

#include "base/rstr.h"

struct tc_queued_message {
    struct tc_queued_message *next;
    struct tc_rstr *bytes; /* a reference */
    bool plain;            /* must not be compressed */
};

struct tc_message_queue {
    struct tc_queued_message *first, **last;
};

static inline void tc_message_queue_init(struct tc_message_queue *m)
{
    m->first = NULL;
    m->last = &m->first;
}
/* Takes over the reference to `bytes`. */
void tc_message_queue_add(struct tc_message_queue *m, struct tc_rstr *bytes, bool plain);
/* Returns the oldest message's bytes with their reference, and stores its `plain`. Returns NULL if there is none. */
struct tc_rstr *tc_message_queue_take(struct tc_message_queue *m, bool *plain);
/* Releases all messages. */
void tc_message_queue_drop(struct tc_message_queue *m);
/* Moves all messages to `to`, whose old content does not count. */
void tc_message_queue_move(struct tc_message_queue *to, struct tc_message_queue *from);

#endif
