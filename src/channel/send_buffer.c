/* The slow path of the send buffer: dropping messages. send_buffer.h has the rest. */
#include "channel/send_buffer.h"

#include "base/poison.h"

static void message_drop(struct tc_send_buffer *b, struct tc_send_message *m)
{
    b->bytes -= m->bytes.len;
    if (b->channel_bytes)
        *b->channel_bytes -= m->bytes.len;
    tc_rstr_unref(m->owner);
    m->next = b->free;
    b->free = m;
    tc_poison(&m->bytes, sizeof(*m) - offsetof(struct tc_send_message, bytes));
}

void tc_send_buffer_drop_to_next(struct tc_send_buffer *b)
{
    while (b->first && b->first != b->next) {
        struct tc_send_message *m = b->first;
        b->first = m->next;
        message_drop(b, m);
    }
    if (!b->first)
        b->last = NULL;
}
