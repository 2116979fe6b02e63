/* Functions of streams that may wait, for any thread.
 *
 * The loop's reports (stream.c) are stored in the stream, and wake the threads on `waits`. Reports are under the
 * runtime's lock, except for room for a message, which is under the stream's mutex (`write_busy`). wait_begin takes the
 * lock and a reference, and wait_end releases both. Every wake-up wakes all threads of the stream, and each looks
 * whether what it waits for has come. So any number of threads may wait for different things of one stream; only
 * torc_stream_receive takes one thread at a time. The lock is taken before the stream's mutex.
 *
 * A sender waits for room, not until its own message is sent. In a runtime without a thread, a sender with a timeout
 * other than 0 turns the loop once after its message was taken, or wakes the thread that drives the loop: otherwise the
 * message might stay in the stream until some thread waits again. */
#include "api/call.h"
#include "api/result.h"
#include "api/wait.h"
#include "base/mem.h"
#include "base/thread.h"

/* A thread that waits on a stream. Holds a reference: another thread may free the handle meanwhile. */
struct stream_wait {
    torc_stream *s;
    struct tc_timed_wait in;
};

/* Returns 0 if the function may go on, else the code for the function to return. */
static int stream_check(const torc_stream *s, int64_t timeout_ms)
{
    return s ? tc_wait_check(s->channel->rt, timeout_ms) : TORC_EINVAL;
}

static void wait_begin(struct stream_wait *w, torc_stream *s, int64_t timeout_ms)
{
    tc_ref_inc(&s->zeroed);
    w->s = s;
    tc_timed_wait_begin(&w->in, s->channel->rt, &s->waits, timeout_ms);
    w->in.wait.ends_ns = &s->core.deadline.at_ns;
}

static void wait_end(struct stream_wait *w)
{
    tc_timed_wait_end(&w->in);
    tc_call_drop(w->s);
}

int torc_stream_send(torc_stream *s, const void *message, size_t size, unsigned flags, int64_t timeout_ms)
{
    const unsigned compress = TORC_SEND_COMPRESS | TORC_SEND_PLAIN;
    int rc = stream_check(s, timeout_ms);
    if (rc != 0)
        return rc;
    if ((!message && size) || flags & ~(TORC_SEND_LAST | compress) || (flags & compress) == compress)
        return TORC_EINVAL;
    TC_NO_CANCEL;
    if (timeout_ms == 0) {
        tc_ref_inc(&s->zeroed);
        rc = tc_stream_try_send(s, tc_slice_of(message, size), flags, true, false);
        tc_call_drop(s);
        return rc;
    }
    struct stream_wait w;
    wait_begin(&w, s, timeout_ms);
    while (rc == 0 &&
           (rc = tc_stream_try_send(s, tc_slice_of(message, size), flags, false, w.in.quietly)) == TORC_EAGAIN)
        rc = tc_timed_wait_once(&w.in);
    if (rc == 0 && w.in.quietly)
        tc_runtime_turn(s->channel->rt, &w.in.wait);
    wait_end(&w);
    return rc;
}

/* Asks for one more message, unless one that was asked for has yet to come. */
static void wait_want_message(struct stream_wait *w)
{
    if (w->s->reads_pending)
        return;
    if (tc_call_want_reads(w->s, 1, w->in.quietly) == 0) {
        w->s->reads_pending++;
        tc_timed_wait_posted(&w->in);
    }
}

/* Lends the oldest message, which there must be, to the application, and releases the message lent before. With the
 * runtime's lock held. */
static const torc_message *message_lend(torc_stream *s)
{
    struct tc_received *r = s->first_received;
    s->first_received = r->next;
    if (!r->next)
        s->last_received = &s->first_received;
    tc_rstr_unref(s->lent_message.bytes);
    s->lent_message.bytes = r->message;
    tc_free(r);
    return (const torc_message *)s->lent_message.bytes;
}

/* Does the work of torc_stream_receive. With `hold`, a return of 1 leaves a reference to the stream with the caller,
 * and no other thread can receive until tc_stream_receive_end. */
static int receive(torc_stream *s, int64_t timeout_ms, const torc_message **message, bool hold)
{
    int rc = message ? stream_check(s, timeout_ms) : TORC_EINVAL;
    if (rc == 0 && (s->kind != TC_STREAM || s->heard.on_message))
        rc = TORC_ESTATE;
    if (rc != 0)
        return rc;
    TC_NO_CANCEL;
    struct stream_wait w;
    wait_begin(&w, s, timeout_ms);
    if (s->receiving) {
        wait_end(&w);
        return TORC_ESTATE;
    }
    s->receiving = true;
    while (rc == 0 && !s->first_received && !s->end && !s->draining) {
        wait_want_message(&w);
        rc = tc_timed_wait_once(&w.in);
    }
    bool gone = s->draining || atomic_load_explicit(&s->detached, memory_order_acquire);
    if (rc == 0 && s->first_received && !gone) {
        *message = message_lend(s);
        rc = 1;
    }
    s->receiving = hold && rc == 1;
    if (s->receiving)
        tc_ref_inc(&s->zeroed);
    wait_end(&w);
    return rc;
}

int torc_stream_receive(torc_stream *s, int64_t timeout_ms, const torc_message **message)
{
    return receive(s, timeout_ms, message, false);
}

int tc_stream_receive_begin(torc_stream *s, int64_t timeout_ms, const torc_message **message)
{
    return receive(s, timeout_ms, message, true);
}

bool tc_stream_receive_end(torc_stream *s)
{
    torc_runtime *rt = s->channel->rt;
    tc_runtime_lock(rt);
    s->receiving = false;
    tc_runtime_unlock(rt);
    bool kept = !atomic_load_explicit(&s->detached, memory_order_acquire);
    tc_call_drop(s);
    return kept;
}

/* Waits for the initial metadata of the response. One of the outputs may be NULL. */
static int headers_wait(torc_stream *s, int64_t timeout_ms, const torc_metadata **headers, const char **peer)
{
    int rc = headers || peer ? stream_check(s, timeout_ms) : TORC_EINVAL;
    if (rc == 0 && s->kind != TC_STREAM)
        rc = TORC_ESTATE;
    if (rc != 0)
        return rc;
    TC_NO_CANCEL;
    struct stream_wait w;
    wait_begin(&w, s, timeout_ms);
    while (rc == 0 && !s->initial.metadata && !s->end)
        rc = tc_timed_wait_once(&w.in);
    if (rc == 0 && !s->initial.metadata)
        rc = TORC_ECLOSED;
    if (rc == 0 && headers)
        *headers = s->initial.metadata;
    if (rc == 0 && peer)
        *peer = s->initial.peer;
    wait_end(&w);
    return rc;
}

int torc_stream_headers(torc_stream *s, int64_t timeout_ms, const torc_metadata **headers)
{
    return headers_wait(s, timeout_ms, headers, NULL);
}

int torc_stream_peer(torc_stream *s, int64_t timeout_ms, const char **peer)
{
    return headers_wait(s, timeout_ms, NULL, peer);
}

/* Half-closes the stream, unless it is half-closed or over, and sets `draining`: all further messages are dropped, but
 * without on_message the oldest undelivered one is kept for the result. Asks for one message; with each that comes,
 * on_message of stream.c asks for the next. Wakes the waiting threads: torc_stream_receive returns 0 in them, and
 * torc_stream_send TORC_ESTATE. */
static void wait_drain(struct stream_wait *w)
{
    torc_stream *s = w->s;
    s->draining = true;
    tc_wait_wake_all(&s->waits);
    tc_call_want_end(s, w->in.quietly);
    tc_call_want_reads(s, 1, w->in.quietly);
    tc_timed_wait_posted(&w->in);
}

torc_result *torc_stream_finish(torc_stream *s)
{
    int rc = stream_check(s, -1);
    bool tries = rc == TORC_EDEADLK; /* in a callback: only returns an end that has come */
    if (rc != 0 && !tries)
        return tc_result_refused_code(rc, "stream");
    TC_NO_CANCEL;
    torc_result *result = NULL;
    struct tc_received *rest = NULL;
    struct stream_wait w;
    wait_begin(&w, s, tries ? 0 : -1);
    if (!s->end && !tries && s->kind == TC_STREAM)
        wait_drain(&w);
    while (!s->end && !tries && (rc = tc_timed_wait_once(&w.in)) == 0) {
    }
    if (s->end) {
        result = torc_result_ref(s->end);
        s->told = true;
        rest = tc_call_take_received(s); /* later calls of torc_stream_receive see the end */
    }
    wait_end(&w);
    tc_received_free(rest);
    return result ? result : tc_result_refused_code(rc, "stream");
}

int torc_stream_close(torc_stream *s)
{
    int rc = stream_check(s, -1);
    if (rc != 0)
        return rc;
    TC_NO_CANCEL;
    atomic_store_explicit(&s->detached, true, memory_order_release);
    tc_call_want_cancel(s);
    struct stream_wait w;
    wait_begin(&w, s, -1);
    while (rc == 0 && !s->delivered)
        rc = tc_timed_wait_once(&w.in);
    wait_end(&w);
    if (rc == 0)
        tc_call_drop(s);
    return rc;
}
