/* Streams (torc/stream.h): the reports of the loop, and the functions that do not wait.
 *
 * The loop's thread reports the initial metadata, messages, room for a message and the outcome (stream_events). A
 * message goes to on_message if the application has set it, else into the stream, where torc_stream_receive finds it.
 * Messages are dropped after the handle was given up, and while torc_stream_finish drains the stream (without
 * on_message it keeps one for the result). Any other report is stored in the stream, where the functions of
 * stream_wait.c find it, and then passed to its event, if that is set; on_writable is called only after a send returned
 * TORC_EAGAIN. So threads may wait on a stream that has events.
 *
 * The end comes in three steps: `end` is stored, which wakes waiting threads; the last callback is called (on_done, or
 * the function of torc_unary_async or torc_explain_async); `delivered` is set after that callback has returned, or with
 * `end` if there is none to call. torc_stream_close waits for `delivered`. After torc_stream_free or torc_stream_close
 * (`detached`) on_done is the only event, and its stream is NULL. */
#include "api/call.h"
#include "api/metadata.h"
#include "api/result.h"
#include "api/typed.h"
#include "api/wait.h"
#include "base/mem.h"
#include "base/options.h"
#include "base/thread.h"

/* --- events of the loop's call --- */

static void on_headers(void *arg, const struct tc_headers *headers)
{
    torc_stream *s = arg;
    torc_runtime *rt = s->channel->rt;
    torc_metadata *copy = tc_metadata_in_arena(&s->core.arena, headers);
    const char *peer = tc_arena_dup(&s->core.arena, tc_rstr_slice(s->core.attempt.peer));
    tc_runtime_lock(rt);
    s->initial.metadata = copy;
    s->initial.peer = peer;
    tc_wait_wake_all(&s->waits);
    tc_runtime_unlock(rt);
    if (s->heard.on_headers && tc_call_is_heard(s))
        s->heard.on_headers(s, copy, s->arg);
}

/* Keeps a message for torc_stream_receive. Takes over the reference. With the runtime's lock held. */
static void message_keep(torc_stream *s, struct tc_rstr *message)
{
    struct tc_received *r = TC_NEW(struct tc_received);
    r->message = message;
    *s->last_received = r;
    s->last_received = &r->next;
}

static void on_message(void *arg, struct tc_rstr *message)
{
    torc_stream *s = arg;
    torc_runtime *rt = s->channel->rt;
    tc_runtime_lock(rt);
    if (s->reads_pending)
        s->reads_pending--;
    bool dropped = s->draining && (s->first_received || s->heard.on_message);
    bool gone = dropped || atomic_load_explicit(&s->detached, memory_order_acquire);
    bool kept = !gone && !s->heard.on_message;
    if (kept) {
        message_keep(s, message);
        tc_wait_wake_all(&s->waits);
    }
    s->reads_owed += s->draining; /* keep reading: the end comes behind the messages */
    tc_runtime_unlock(rt);
    if (!gone && !kept && tc_call_is_heard(s))
        s->heard.on_message(s, (const torc_message *)message, s->arg);
    if (!kept)
        tc_rstr_unref(message);
    tc_call_read_owed(s);
}

static void on_written(void *arg)
{
    torc_stream *s = arg;
    torc_runtime *rt = s->channel->rt;
    pthread_mutex_lock(&s->mutex);
    bool tell = s->tell_writable;
    s->write_busy = s->tell_writable = false;
    pthread_mutex_unlock(&s->mutex);
    tc_call_count(s, 0);
    tc_runtime_lock(rt);
    tc_wait_wake_all(&s->waits);
    tc_runtime_unlock(rt);
    if (tell && s->heard.on_writable && tc_call_is_heard(s))
        s->heard.on_writable(s, s->arg);
}

void tc_stream_deliver_end(torc_stream *s, torc_result *result)
{
    torc_runtime *rt = s->channel->rt;
    bool calls = (s->heard.on_done || s->fn) && TC_LIKELY(!tc_loop_forked(s->channel->loop));
    tc_runtime_lock(rt);
    struct tc_typed *typed = tc_stream_typed(s);
    if (TC_UNLIKELY(typed && typed->error))
        tc_result_spoil(result, torc_error_ref(typed->error));
    s->end = result;
    s->told = calls;
    s->delivered = !calls;
    tc_wait_wake_all(&s->waits);
    tc_runtime_unlock(rt);
    if (!calls)
        return;
    if (s->fn)
        s->fn(result, s->arg);
    else
        s->heard.on_done(atomic_load_explicit(&s->detached, memory_order_acquire) ? NULL : s, result, s->arg);
    tc_runtime_lock(rt);
    s->delivered = true;
    tc_wait_wake_all(&s->waits);
    tc_runtime_unlock(rt);
}

/* The oldest message that nobody has received is the response of the result, if the status is OK. */
static void on_done(void *arg, const struct tc_call_end *end)
{
    torc_stream *s = arg;
    torc_runtime *rt = s->channel->rt;
    tc_call_over(s);
    tc_runtime_lock(rt);
    struct tc_rstr *oldest =
        s->first_received && end->status.code == TORC_STATUS_OK ? tc_rstr_ref(s->first_received->message) : NULL;
    tc_runtime_unlock(rt);
    torc_result *result = tc_result_make(s, end, oldest);
    tc_rstr_unref(oldest);
    tc_stream_deliver_end(s, result);
}

static const struct tc_call_events stream_events = {
    .on_headers = on_headers,
    .on_message = on_message,
    .on_written = on_written,
    .on_done = on_done,
};

/* --- making one --- */

torc_stream *torc_stream_open(torc_channel *ch, const char *method, const struct torc_call_options *options,
                              torc_error **error)
{
    TC_NO_CANCEL;
    return tc_call_launch_or_drop(tc_call_make(ch, method, options, TC_STREAM, &stream_events, error), error);
}

torc_stream *torc_stream_start(torc_channel *ch, const char *method, const struct torc_call_options *options,
                               const struct torc_stream_events *events, void *arg, torc_error **error)
{
    return tc_stream_start_with(ch, method, options, events, arg, NULL, error);
}

torc_stream *tc_stream_start_with(torc_channel *ch, const char *method, const struct torc_call_options *options,
                                  const struct torc_stream_events *events, void *arg, const struct tc_slice *first,
                                  torc_error **error)
{
    TC_NO_CANCEL;
    struct torc_stream_events heard = {0};
    if (tc_error_pending(error) ||
        (events && !tc_sized_read(&heard, sizeof(heard), events, "events", "torc_stream_events", error)))
        return NULL;
    if (!heard.on_done) {
        tc_error_set(error, TORC_EINVAL, TORC_LAYER_API, "events: on_done is required");
        return NULL;
    }
    torc_stream *s = tc_call_make(ch, method, options, TC_STREAM, &stream_events, error);
    if (s) {
        s->heard = heard;
        s->arg = arg;
    }
    if (!s || !first)
        return tc_call_launch_or_drop(s, error);
    tc_ref_inc(&s->zeroed); /* for tc_stream_try_send: a callback may free the handle before it */
    torc_stream *started = tc_call_launch_or_drop(s, error);
    if (started) /* always has room; if the RPC is over, its result says why */
        tc_stream_try_send(s, *first, TORC_SEND_LAST, false, false);
    tc_call_drop(s);
    return started;
}

/* --- functions that do not wait --- */

/* The public functions take a reference, because they may sleep on a lock while another thread frees the handle.
 * torc_stream_free has the handle's reference instead; the caller of tc_stream_spoil holds one. */

int torc_stream_half_close(torc_stream *s)
{
    if (!s)
        return TORC_EINVAL;
    tc_ref_inc(&s->zeroed);
    int rc = tc_runtime_check(s->channel->rt);
    if (rc == 0)
        rc = s->kind == TC_STREAM ? tc_call_want_end(s, false) : TORC_ESTATE;
    tc_call_drop(s);
    return rc;
}

int torc_stream_want(torc_stream *s, uint32_t n)
{
    if (!s)
        return TORC_EINVAL;
    TC_NO_CANCEL;
    torc_runtime *rt = s->channel->rt;
    tc_ref_inc(&s->zeroed);
    int rc = tc_runtime_check(rt);
    if (rc == 0 && s->kind != TC_STREAM)
        rc = TORC_ESTATE;
    if (rc == 0 && s->heard.on_message) {
        rc = tc_call_want_reads(s, n, false);
    } else if (rc == 0) {
        tc_runtime_lock(rt);
        rc = tc_call_want_reads(s, n, false);
        if (rc == 0)
            s->reads_pending += n;
        tc_runtime_unlock(rt);
    }
    tc_call_drop(s);
    return rc;
}

void torc_stream_cancel(torc_stream *s)
{
    if (!s)
        return;
    tc_ref_inc(&s->zeroed);
    tc_call_want_cancel(s);
    tc_call_drop(s);
}

void tc_stream_hold(torc_stream *s)
{
    tc_ref_inc(&s->zeroed);
}

void tc_stream_drop(torc_stream *s)
{
    tc_call_drop(s);
}

void tc_stream_spoil(torc_stream *s, torc_error *error)
{
    torc_runtime *rt = s->channel->rt;
    tc_runtime_lock(rt);
    if (s->end && !s->told)
        tc_result_spoil(s->end, torc_error_ref(error));
    struct tc_typed *typed = tc_stream_typed(s);
    if (typed->error)
        torc_error_free(error);
    else
        typed->error = error;
    tc_runtime_unlock(rt);
    torc_stream_cancel(s);
}

void torc_stream_free(torc_stream *s)
{
    if (!s || tc_runtime_check(s->channel->rt) == TORC_EFORK)
        return;
    atomic_store_explicit(&s->detached, true, memory_order_release);
    tc_call_want_cancel(s);
    tc_call_drop(s);
}
