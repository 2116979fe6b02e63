/* Queues of messages: see message_queue.h. */
#include "api/server/message_queue.h"

#include "base/mem.h"

void tc_message_queue_add(struct tc_message_queue *m, struct tc_rstr *bytes, bool plain)
{
    struct tc_queued_message *message = TC_NEW(struct tc_queued_message);
    message->bytes = bytes;
    message->plain = plain;
    *m->last = message;
    m->last = &message->next;
}

struct tc_rstr *tc_message_queue_take(struct tc_message_queue *m, bool *plain)
{
    struct tc_queued_message *message = m->first;
    if (!message)
        return NULL;
    struct tc_rstr *bytes = message->bytes;
    *plain = message->plain;
    m->first = message->next;
    if (!m->first)
        m->last = &m->first;
    tc_free(message);
    return bytes;
}

void tc_message_queue_drop(struct tc_message_queue *m)
{
    struct tc_rstr *bytes;
    bool plain;
    while ((bytes = tc_message_queue_take(m, &plain)))
        tc_rstr_unref(bytes);
}

void tc_message_queue_move(struct tc_message_queue *to, struct tc_message_queue *from)
{
    to->first = from->first;
    to->last = from->first ? from->last : &to->first;
    tc_message_queue_init(from);
}
