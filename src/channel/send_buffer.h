/* The request messages of a call: messages to be written, and written messages that are kept because another attempt
 * may have to write them again (A6). Loop thread only. */
#ifndef TC_CHANNEL_SEND_BUFFER_H
#define TC_CHANNEL_SEND_BUFFER_H

#include "base/arena.h"
#include "base/poison.h"
#include "base/rstr.h"

struct tc_send_message {
    struct tc_send_message *next;
    struct tc_slice bytes;
    struct tc_rstr *owner; /* a reference that keeps the bytes; NULL: the bytes live as long as the call */
    bool plain;            /* is not compressed */
};

/* first ... next ... last: messages before `next` were written in the present attempt. In a call that hedges, they were
 * given to the attempt that won, and `next` is the first message while no attempt has won. */
struct tc_send_buffer {
    struct tc_send_message *first, *last;
    struct tc_send_message *next; /* the message to write; NULL: all were written */
    struct tc_send_message *free; /* for reuse */
    size_t bytes;                 /* of all messages, written ones included */
    uint64_t *channel_bytes; /* the channel's sum, which includes `bytes`; NULL: the buffer of a hedged attempt, whose
                                messages the parent's buffer counts */
};

/* Appends a message, whose struct lives in the call's arena. Takes over the owner, which may be NULL. The result
 * is valid until the message is dropped. */
static inline struct tc_send_message *tc_send_buffer_push(struct tc_send_buffer *b, struct tc_arena *arena,
                                                          struct tc_slice bytes, struct tc_rstr *owner)
{
    struct tc_send_message *m = b->free;
    if (m)
        b->free = m->next;
    else
        m = tc_arena_alloc(arena, sizeof(*m));
    tc_unpoison(m, sizeof(*m));
    *m = (struct tc_send_message){.bytes = bytes, .owner = owner};
    if (b->last)
        b->last->next = m;
    else
        b->first = m;
    b->last = m;
    if (!b->next)
        b->next = m;
    b->bytes += bytes.len;
    if (b->channel_bytes)
        *b->channel_bytes += bytes.len;
    return m;
}

/* The slow path of tc_send_buffer_drop_written. */
void tc_send_buffer_drop_to_next(struct tc_send_buffer *b);

/* Drops the messages before `next`. */
static inline void tc_send_buffer_drop_written(struct tc_send_buffer *b)
{
    if (b->first != b->next)
        tc_send_buffer_drop_to_next(b);
}

/* Drops all messages. */
static inline void tc_send_buffer_clear(struct tc_send_buffer *b)
{
    b->next = NULL;
    tc_send_buffer_drop_written(b);
}

#endif
