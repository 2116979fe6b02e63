/* The messages of a call, both ways. Loop thread only, except tc_call_messages_init. */
#ifndef TC_CHANNEL_MESSAGES_H
#define TC_CHANNEL_MESSAGES_H

#include "channel/call_internal.h"

/* Sends one message. Takes over the reference, also on failure. `end`: half-closes after the message. Returns 0, or
 * TORC_ESTATE while a message is under way (until on_written) or after a half-close; TORC_ECLOSED after the call's end;
 * TORC_ELIMIT, and ends the call, for a message that is too long for gRPC's length prefix. For a message beyond the
 * call's limit returns 0: the call ends when a stream is given the message, possibly from inside. */
int tc_call_send(struct tc_call *c, struct tc_rstr *message, bool end);
/* Sends a message as tc_call_send does, but never compressed, whatever the call's option says. */
int tc_call_send_plain(struct tc_call *c, struct tc_rstr *message, bool end);
/* Sends a message as tc_call_send does. The bytes are borrowed as long as the call lives. */
int tc_call_send_borrowed(struct tc_call *c, struct tc_slice message, bool end);
/* Half-closes without a message, behind the message that is under way. Returns 0, TORC_ESTATE after a half-close, or
 * TORC_ECLOSED after the call's end. */
int tc_call_send_end(struct tc_call *c);
/* Asks for n more messages; demands add up. Does nothing after the call's end, or if the sum exceeds UINT32_MAX. */
void tc_call_read(struct tc_call *c, uint32_t n);

/* Ends the call with RESOURCE_EXHAUSTED, because a message of this size cannot be sent. */
void tc_call_too_large(struct tc_call *c, size_t bytes);

/* --- for src/channel --- */

/* Takes the message of rpc->sent, if there is one, past on_message, and sends it. c->rpc must not be NULL. Called when
 * the request has passed on_start, and for each later message. */
void tc_call_send_held(struct tc_call *c);
/* A message came from the stream, or from the attempt that won. Takes over the reference. */
void tc_call_deliver(struct tc_call *c, struct tc_rstr *message);
/* Returns whether the next message may be read: interceptors with on_message get one message at a time. */
static inline bool tc_call_may_read(const struct tc_call *c)
{
    return TC_LIKELY(!c->rpc) || !tc_rpc_has(c->rpc, TC_HOOK_MESSAGE) ||
           (!c->rpc->received.message && c->messages.reads_given == 0);
}

/* Prepares the messages of a zeroed call whose channel and parent are set. Any thread, as tc_call_init. */
void tc_call_messages_init(struct tc_call *c);
/* Gives the stream the next message, or the half-close, if it can take one. May end the call (tc_call_too_large). */
void tc_call_flush(struct tc_call *c);
/* Asks the stream, if there is one, for the messages that are wanted. */
void tc_call_flush_reads(struct tc_call *c);
/* Events of the stream; `arg` is the call. tc_call_on_message takes over the reference. */
void tc_call_on_written(void *arg);
void tc_call_on_message(void *arg, struct tc_rstr *message);
/* Commits the call: no other attempt sends the request again, and written messages are dropped. */
void tc_call_commit(struct tc_call *c);
/* Returns true if the send buffer of the call, or those of all calls of the channel together, hold more bytes than they
 * may (retry_buffer_bytes, channel_retry_buffer_bytes). */
bool tc_call_over_buffer(const struct tc_call *c);
/* Has the next attempt write from the first message, and ask again for the messages that were not received. */
void tc_call_messages_rewind(struct tc_call *c);

#endif
