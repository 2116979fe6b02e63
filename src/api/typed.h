/* The struct that a codec (src/stub) keeps in a result, a stream or a server's call: a decoded response, or the memory
 * of decoded messages. The struct begins with a struct tc_typed. A result whose struct has an error is INTERNAL with
 * this error, whatever the server's status is: received bytes were malformed, the application's message could not be
 * packed, or the application used a stream for another method. The result, stream or call must not be NULL. Any
 * thread. */
#ifndef TC_API_TYPED_H
#define TC_API_TYPED_H

#include <torc/server.h>
#include <torc/stream.h>

#include "base/slice.h"

/* Begins a codec's own struct. */
struct tc_typed {
    void (*free)(struct tc_typed *decoded);
    const void *type;  /* of a decoded response: the codec's mark of its type; else NULL */
    torc_error *error; /* of a result or a stream: why the RPC failed; NULL: no error. `free` frees the error */
};

/* Returns the struct that the result keeps, borrowed, or NULL. */
struct tc_typed *tc_result_typed(const torc_result *result);
/* Stores `mine` in the result, which frees it at its end, and returns `mine`. If the result keeps a struct already,
 * frees `mine` and returns that struct. */
struct tc_typed *tc_result_keep(const torc_result *result, struct tc_typed *mine);
/* Makes the result fail with this error, unless the result keeps a struct already, or is the static one that stands for
 * a result without memory. Takes over the error. */
void tc_result_spoil(const torc_result *result, torc_error *error);

/* Add and release a reference to a stream, so that it stays while another thread frees the handle. */
void tc_stream_hold(torc_stream *stream);
void tc_stream_drop(torc_stream *stream);
/* tc_result_typed and tc_result_keep of a stream; the struct is freed with the stream's last reference. */
struct tc_typed *tc_stream_typed(torc_stream *stream);
struct tc_typed *tc_stream_keep(torc_stream *stream, struct tc_typed *mine);
/* Returns the RPC's path, "/package.Service/Method", borrowed from the stream. */
const char *tc_stream_method(const torc_stream *stream);
/* Cancels the RPC, and makes its result fail with this error, unless the application has seen the result. The first
 * error counts. The stream must keep a struct, and the caller must hold the stream. Takes over the error. */
void tc_stream_spoil(torc_stream *stream, torc_error *error);

/* torc_stream_receive in two steps, between which a codec reads the message. If the first step returns 1, it holds a
 * reference to the stream, no other thread can receive, and the caller must call the second step. The second step
 * returns false if the handle was freed meanwhile: the application must not get memory of the stream then. */
int tc_stream_receive_begin(torc_stream *stream, int64_t timeout_ms, const torc_message **message);
bool tc_stream_receive_end(torc_stream *stream);

/* Add and release a reference to a server's call, so that it stays while another thread finishes it. */
void tc_api_call_hold(torc_server_call *call);
void tc_api_call_drop(torc_server_call *call);
/* tc_result_typed and tc_result_keep of a server's call; the struct is freed with the call's last reference. */
struct tc_typed *tc_api_call_typed(torc_server_call *call);
struct tc_typed *tc_api_call_keep(torc_server_call *call, struct tc_typed *mine);
/* Makes the RPC end with INTERNAL and this text, whatever status the application passes to torc_server_call_finish
 * later. The first text counts. Copies the text. */
void tc_api_call_spoil(torc_server_call *call, const char *text);
/* torc_server_call_receive in two steps, used as tc_stream_receive_begin and tc_stream_receive_end are. The second step
 * returns false if the call was finished meanwhile. */
int tc_api_call_receive_begin(torc_server_call *call, int64_t timeout_ms, const torc_message **message);
bool tc_api_call_receive_end(torc_server_call *call);

/* torc_stream_start that sends a copy of `first` as the only message and half-closes; NULL: sends nothing, and the
 * stream stays open. One function does both because a callback may free the handle as soon as the RPC has started. */
torc_stream *tc_stream_start_with(torc_channel *channel, const char *method, const struct torc_call_options *options,
                                  const struct torc_stream_events *events, void *arg, const struct tc_slice *first,
                                  torc_error **error);

#endif
