/* Public calls for src/api: making a torc_stream, and carrying the requests of threads to the loop. Calls are counted;
 * each caller holds a reference. Any thread, unless a comment says otherwise. */
#ifndef TC_API_CALL_H
#define TC_API_CALL_H

#include "api/call_object.h"
#include "channel/messages.h"

/* Makes a call with the options, checked; the reference is the caller's. `events`: of the loop's call. Returns NULL
 * with an error. */
torc_stream *tc_call_make(torc_channel *ch, const char *method, const struct torc_call_options *options,
                          enum tc_call_kind kind, const struct tc_call_events *events, torc_error **error);
/* Stores the outcome, of which the stream takes the reference, wakes the threads that wait for it, and calls back. Loop
 * thread. */
void tc_stream_deliver_end(torc_stream *s, torc_result *result);
/* Takes the messages that the stream has received and the application has not. Under the runtime's lock, or by the last
 * owner. */
struct tc_received *tc_call_take_received(torc_stream *call);
/* Frees the list. Not under a lock: a server may have sent many messages. */
void tc_received_free(struct tc_received *messages);
/* Gives a reference back. */
void tc_call_drop(torc_stream *call);

/* Starts the call; the references of the loop and of the task are added. `quietly`: without waking the loop, for a
 * thread that then drives the loop or wakes it. Returns TORC_ECLOSED if the loop has ended; the call has not begun
 * then. */
int tc_call_launch(torc_stream *call, bool quietly);
/* Launches the call that tc_call_make returned, or gives it up and stores an error. NULL, when tc_call_make has failed,
 * stays NULL. */
torc_stream *tc_call_launch_or_drop(torc_stream *call, torc_error **error);

/* torc_stream_half_close, torc_stream_want and torc_stream_cancel. `quietly`: without waking the loop, for a thread
 * that then drives the loop or wakes it. The first two return 0, what tc_runtime_check returns, or TORC_ECLOSED once
 * the call has ended; tc_call_want_end also TORC_ESTATE if the stream is half-closed, tc_call_want_reads also
 * TORC_ELIMIT if the loop has yet to take too many reads. tc_call_want_reads does not count reads_pending: without
 * on_message, the caller holds the runtime's lock and adds n on success, unless the stream drains. */
int tc_call_want_end(torc_stream *call, bool quietly);
int tc_call_want_reads(torc_stream *call, uint32_t n, bool quietly);
void tc_call_want_cancel(torc_stream *call);
/* torc_stream_send that does not wait. Copies the message. `tell`: on_writable follows TORC_EAGAIN. */
int tc_stream_try_send(torc_stream *s, struct tc_slice message, unsigned flags, bool tell, bool quietly);
/* Returns false after torc_stream_free or torc_stream_close, in the child of a callback that forked (the parent has the
 * callbacks), and when the process is exiting. */
bool tc_call_is_heard(const torc_stream *call);

/* Asks the loop's call for messages that are owed, until 16 are asked for and have not come; more are asked for as
 * messages come. Loop thread. */
static inline void tc_call_read_owed(torc_stream *call)
{
    enum { AT_ONCE = 16 };
    struct tc_call *c = &call->core;
    for (; call->reads_owed && c->messages.reads < AT_ONCE && c->stage != TC_CALL_DONE; call->reads_owed--)
        tc_call_read(c, 1);
}

/* Under a memory limit, counts the call itself and `message_bytes` of a request on its way. Loop thread. */
void tc_call_count(torc_stream *call, size_t message_bytes);

/* The loop's call has ended: requests of threads are refused, and the call no longer counts as memory. Loop thread. */
static inline void tc_call_over(torc_stream *call)
{
    /* A unary call without a handle: no other thread looks at `over`. */
    if (call->kind != TC_CALL_UNARY_BLOCKING && call->kind != TC_CALL_UNARY_ALONE) {
        pthread_mutex_lock(&call->mutex);
        call->over = true;
        pthread_mutex_unlock(&call->mutex);
    }
    if (call->counted)
        tc_runtime_count_memory(call->channel->rt, &call->counted, 0);
}

#endif
