/* torc_stream for the files of src/api: makes one, and carries the requests of threads to the loop. A torc_stream is
 * reference-counted; a caller holds a reference during the call. Any thread, unless a comment says otherwise. */
#ifndef TC_API_CALL_H
#define TC_API_CALL_H

#include "api/call_object.h"
#include "channel/messages.h"

/* Checks the arguments (options NULL: the defaults) and makes a call, with one reference for the caller. Borrows
 * `events`, which the loop's call reports to. Returns NULL with an error; also, with *error as it is, if *error is set
 * already. */
torc_stream *tc_call_make(torc_channel *ch, const char *method, const struct torc_call_options *options,
                          enum tc_call_kind kind, const struct tc_call_events *events, torc_error **error);
/* Stores the outcome, wakes the threads that wait, and then calls on_done or the function of torc_unary_async. Takes
 * over the reference to the result. Loop thread. */
void tc_stream_deliver_end(torc_stream *s, torc_result *result);
/* Takes the messages that wait for torc_stream_receive; for tc_received_free. With the runtime's lock held, or by the
 * last owner. */
struct tc_received *tc_call_take_received(torc_stream *call);
/* Frees the list. Not under a lock: a server may have sent many messages. */
void tc_received_free(struct tc_received *messages);
/* Gives a reference back. The last one frees what the call holds and returns the call to its pool. */
void tc_call_drop(torc_stream *call);

/* Posts the start of the call, and adds the references of the loop and of the task. `quietly`: without waking the loop,
 * for a thread that then drives the loop or wakes it. Returns 0; or TORC_ECLOSED, without these references, if the loop
 * has ended. */
int tc_call_launch(torc_stream *call, bool quietly);
/* Launches the call and returns it. Drops the call, stores an error and returns NULL if that fails. Returns NULL for
 * NULL, and leaves *error as it is. */
torc_stream *tc_call_launch_or_drop(torc_stream *call, torc_error **error);

/* torc_stream_half_close, torc_stream_want and torc_stream_cancel, for a call that is a stream (the last one for any).
 * `quietly` as in tc_call_launch. The first two return 0, an error of tc_runtime_check, or TORC_ECLOSED if the call or
 * the loop has ended. tc_call_want_end returns TORC_ESTATE if the stream is half-closed. tc_call_want_reads returns
 * TORC_ELIMIT if the loop would have more than UINT32_MAX reads to take. tc_call_want_reads leaves reads_pending alone:
 * without on_message, the caller holds the runtime's lock and adds n on success, unless the stream drains. */
int tc_call_want_end(torc_stream *call, bool quietly);
int tc_call_want_reads(torc_stream *call, uint32_t n, bool quietly);
void tc_call_want_cancel(torc_stream *call);
/* torc_stream_send that does not wait, with its errors; the flags must be valid. Copies the message. `tell`:
 * on_writable follows TORC_EAGAIN. */
int tc_stream_try_send(torc_stream *s, struct tc_slice message, unsigned flags, bool tell, bool quietly);
/* Returns whether callbacks other than the last one may be called. Returns false after torc_stream_free or
 * torc_stream_close, in the child of a callback that forked, and when the process is exiting. */
bool tc_call_is_heard(const torc_stream *call);

/* Asks the loop's call for owed messages (reads_owed), so that at most 16 are outstanding. Called again when a message
 * has come. Loop thread. */
static inline void tc_call_read_owed(torc_stream *call)
{
    enum { AT_ONCE = 16 };
    struct tc_call *c = &call->core;
    for (; call->reads_owed && c->messages.reads < AT_ONCE && c->stage != TC_CALL_DONE; call->reads_owed--)
        tc_call_read(c, 1);
}

/* Counts the call itself and `message_bytes` of a request on its way against the runtime's memory limit, if there is a
 * limit and the call has not ended. Loop thread. */
void tc_call_count(torc_stream *call, size_t message_bytes);

/* The loop's call has ended: requests of threads are refused, and the call no longer counts as memory. Loop thread. */
static inline void tc_call_over(torc_stream *call)
{
    /* No other thread looks at `over` of a unary call without a handle. */
    if (call->kind != TC_CALL_UNARY_BLOCKING && call->kind != TC_CALL_UNARY_ALONE) {
        pthread_mutex_lock(&call->mutex);
        call->over = true;
        pthread_mutex_unlock(&call->mutex);
    }
    if (call->counted)
        tc_runtime_count_memory(call->channel->rt, &call->counted, 0);
}

#endif
