/* Streams: RPCs with more than one message, and the handle of any RPC that is under way.
 * SPDX-License-Identifier: Apache-2.0
 *
 * There are two ways to hear of a stream, and one set of functions for both. A thread that waits opens it:
 *
 *     struct torc_call_options o = {TORC_SIZE(torc_call_options), .timeout_ms = 60000};
 *     torc_stream *stream = torc_stream_open(channel, "chat.Chat/Talk", &o, &error);
 *     torc_stream_send(stream, "hello", 5, TORC_SEND_LAST, -1);
 *     const torc_message *message;
 *     while (torc_stream_receive(stream, -1, &message) == 1) // until the end, at the latest the deadline
 *         use(torc_message_data(message), torc_message_size(message));
 *     torc_result *result = torc_stream_finish(stream); // a NULL stream has a result, too
 *     fprintf(stderr, "%s\n", torc_error_text(stream ? torc_result_error(result) : error));
 *     torc_result_free(result);
 *     torc_stream_free(stream);
 *     torc_error_free(error);
 *
 * A program that lives in callbacks starts it with a table of events (torc_stream_start), asks for messages with
 * torc_stream_want, and sends with a timeout of 0. Functions and events may be mixed. A message goes either to
 * on_message or to torc_stream_receive; all else reaches both the events and the functions.
 *
 * timeout_ms: 0 never waits and returns TORC_EAGAIN instead; -1 waits for ever; a positive number is the longest wait
 * in milliseconds, after which the functions return TORC_ETIMEDOUT. Nothing is lost by either error: call again. Other
 * negative numbers are TORC_EINVAL. Inside a callback of the stream's runtime only 0 is allowed, else TORC_EDEADLK.
 * Threads that wait drive the loop of a runtime without a thread (TORC_RUNTIME_CALLER), and cannot be cancelled
 * meanwhile (torc/runtime.h).
 *
 * All functions may be called from any thread, and from callbacks. One thread may send while another receives, and
 * several may send; one thread receives at a time. Functions that return a code return TORC_EINVAL for a stream that is
 * NULL, and TORC_EFORK in a child of the process that made the stream, or while the process exits. A stream may be
 * freed while another thread is inside a function of it, or while a callback of it runs: the function and the callback
 * may use the stream until they return. A handle must not be used after it was freed. */
#ifndef TORC_STREAM_H
#define TORC_STREAM_H

#include <torc/call.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The events of a stream. Called on the thread that drives the loop, one at a time, and never inside the function that
 * caused the event. Each may be NULL except on_done. */
struct torc_stream_events {
    uint64_t size;

    /* The initial metadata of the response came: at most once, before the first message. Borrowed until the stream is
     * freed. */
    void (*on_headers)(torc_stream *stream, const torc_metadata *headers, void *arg);

    /* A message came, one for each that torc_stream_want asked for. Borrowed: torc_message_ref keeps it. If this is
     * NULL, messages wait for torc_stream_receive. */
    void (*on_message)(torc_stream *stream, const torc_message *message, void *arg);

    /* There is room for a message again, after torc_stream_send returned TORC_EAGAIN. Does not come if the RPC ends
     * before. */
    void (*on_writable)(torc_stream *stream, void *arg);

    /* The RPC has ended. Always called, once, as the last event, also after torc_stream_free or torc_stream_close;
     * `stream` is NULL then, because the handle is gone. The end comes behind the messages: if the server ended the RPC
     * before the deadline, on_done waits until the last message was asked for, without a limit of time, and the status
     * is the server's (an interceptor that holds a message up must let it go before the deadline). torc_stream_cancel
     * and torc_stream_free end that wait. When on_done returns, `arg` is the application's again. The result is
     * borrowed: torc_result_ref keeps it. */
    void (*on_done)(torc_stream *stream, const torc_result *result, void *arg);
};

/* Opens a stream of any kind (client, server or bidirectional streaming) for threads that wait. It returns at once, and
 * connecting is a part of the RPC. NULL with an error, when the RPC cannot start: TORC_EINVAL (channel, method,
 * options), TORC_EUNSUPPORTED (options of a newer version), TORC_EFORK, TORC_ECLOSED. The caller frees the stream. */
TORC_API torc_stream *torc_stream_open(torc_channel *channel, const char *method,
                                       const struct torc_call_options *options, torc_error **error);

/* Starts a stream that reports to `events`, which are copied. NULL with an error, and then no callback comes:
 * TORC_EINVAL also for events without on_done or whose size is not set, TORC_EUNSUPPORTED for events of a newer
 * version; else as torc_stream_open. The caller frees the stream, in a callback or later. */
TORC_API torc_stream *torc_stream_start(torc_channel *channel, const char *method,
                                        const struct torc_call_options *options,
                                        const struct torc_stream_events *events, void *arg, torc_error **error);

/* Flags of torc_stream_send. */
enum torc_send_flags {
    TORC_SEND_LAST = 1,     /* half-close after the message */
    TORC_SEND_COMPRESS = 2, /* this message must be compressed; TORC_ESTATE if the RPC's option gzip is off */
    TORC_SEND_PLAIN = 4,    /* this message must not be compressed, whatever the option gzip says */
};

/* Sends a message, which is copied. Returns 0 when the message was taken. One message at a time waits to be written: a
 * message is taken once flow control has let the previous message leave. So a sender goes as fast as the server reads.
 *
 * TORC_EAGAIN (timeout 0) and TORC_ETIMEDOUT: not taken; on_writable follows TORC_EAGAIN. TORC_ESTATE: after the last
 * message or a half-close, or on the handle of torc_unary_async; if another thread half-closes while this one waits for
 * room, the function returns once there is room. TORC_ECLOSED: the RPC is over; torc_stream_finish says why.
 * TORC_EINVAL: a NULL message with a size, flags that are unknown or contradict one another, a bad timeout. A message
 * that is too large is taken, and ends the RPC with RESOURCE_EXHAUSTED. */
TORC_API int torc_stream_send(torc_stream *stream, const void *message, size_t size, unsigned flags,
                              int64_t timeout_ms);

/* Half-closes the stream without a message. TORC_ESTATE after the last message or a half-close, and on the handle
 * of torc_unary_async; TORC_ECLOSED when the RPC is over. Does not wait. */
TORC_API int torc_stream_half_close(torc_stream *stream);

/* Asks for `n` more messages; demands add up. The server may send what flow control allows; a message is delivered only
 * if it was asked for. Without on_message, torc_stream_receive finds the messages ready: it asks for one by itself.
 * TORC_ELIMIT: more than UINT32_MAX are asked for before the loop has taken in the first of them. TORC_ESTATE: a handle
 * of torc_unary_async. TORC_ECLOSED: the RPC is over. Does not wait. */
TORC_API int torc_stream_want(torc_stream *stream, uint32_t n);

/* Receives the next message: 1 with *message. 0: the RPC has ended and all messages have been received; or another
 * thread is in torc_stream_finish, which drops the messages, or has freed the stream. The message is borrowed until the
 * next torc_stream_receive that returns 1, or the stream's free; torc_message_ref keeps it. TORC_EAGAIN,
 * TORC_ETIMEDOUT: none has come. TORC_ESTATE: another thread receives, or the stream has on_message, or is a handle of
 * torc_unary_async. *message is untouched unless 1 is returned. */
TORC_API int torc_stream_receive(torc_stream *stream, int64_t timeout_ms, const torc_message **message);

/* Waits for the initial metadata of the response: 0 with *headers, which live until the stream is freed. They come
 * before the first message, whether or not one is asked for. TORC_EAGAIN, TORC_ETIMEDOUT: they have not come.
 * TORC_ECLOSED: the RPC ended without any; its trailers are in the result. TORC_ESTATE: the stream is a handle of
 * torc_unary_async. */
TORC_API int torc_stream_headers(torc_stream *stream, int64_t timeout_ms, const torc_metadata **headers);

/* Waits for the initial metadata of the response: 0 with *peer, the address of the server that sent them, as
 * torc_result_peer gives it. The text lives until the stream is freed. Errors are those of torc_stream_headers. */
TORC_API int torc_stream_peer(torc_stream *stream, int64_t timeout_ms, const char **peer);

/* Waits for the end of the RPC and returns its result. KEEPS THE HANDLE: the caller still frees the stream, and frees
 * the result too. (torc_server_call_finish, its namesake on servers, gives its handle up.)
 *
 * Half-closes a stream that is not half-closed yet, and drops the messages that come, except the one that
 * torc_result_response returns. Waits without a limit: the deadline and torc_stream_cancel end the wait. Threads that
 * wait in torc_stream_receive return 0, and those in torc_stream_send TORC_ESTATE, before the end of the RPC. Never
 * returns NULL: the result has an error for a NULL stream (TORC_EINVAL), inside a callback before the end
 * (TORC_EDEADLK), and with TORC_EFORK. May be called again, and by several threads: each call returns a reference. Does
 * not wait for on_done or the function of torc_unary_async: free what `arg` points at after torc_stream_close. */
TORC_API torc_result *torc_stream_finish(torc_stream *stream);

/* Ends the RPC with CANCELLED unless it is over. The stream remains, and on_done follows; until then functions of the
 * stream may still return what they returned before. Does not wait. NULL is allowed. */
TORC_API void torc_stream_cancel(torc_stream *stream);

/* Gives up the handle and cancels the RPC if it runs. No callback starts afterwards except on_done, or the function of
 * torc_unary_async; but if the caller is not the loop's thread, a callback that is just starting may still run. Does
 * not wait. NULL is allowed. Does nothing in a child of a fork or while the process exits. */
TORC_API void torc_stream_free(torc_stream *stream);

/* torc_stream_free that waits: when it returns 0, the last callback of the stream has returned. In a callback of the
 * stream's runtime, the stream's own on_done included, the last callback cannot be waited for: TORC_EDEADLK, and the
 * stream is as it was; call torc_stream_free there. TORC_EINVAL for NULL. TORC_EFORK in a child of a fork: nothing has
 * happened. TORC_EFORK while the process exits: the stream is not freed. */
TORC_API int torc_stream_close(torc_stream *stream);

#ifdef __cplusplus
}
#endif
#endif
