/* A decoded response, or the decoded messages of a stream or of a server's call (src/stub): the codec's struct begins
 * with a struct tc_typed, and the result, stream or call keeps the struct. Results and streams know two things of the
 * struct: how it is freed, and its error: bytes that are malformed, or a message that the application cannot send. With
 * an error the RPC has failed with INTERNAL, whatever the server's status is. Any thread. */
#ifndef TC_API_TYPED_H
#define TC_API_TYPED_H

#include <torc/server.h>
#include <torc/stream.h>

#include "base/slice.h"

/* Begins a codec's own struct. */
struct tc_typed {
    void (*free)(struct tc_typed *decoded);
    const void *type;  /* of a result: the codec's mark of the response's type */
    torc_error *error; /* of a result or a stream: why the RPC failed; NULL: no fault. `free` frees the error */
};

/* Returns what the result keeps, or NULL. */
struct tc_typed *tc_result_typed(const torc_result *result);
/* Makes the result keep `mine`, unless the result keeps a struct already: `mine` is freed then. Returns what the result
 * keeps. */
struct tc_typed *tc_result_keep(const torc_result *result, struct tc_typed *mine);
/* Makes the result a failure with this error, unless the result keeps a struct already. Takes over the error. */
void tc_result_spoil(const torc_result *result, torc_error *error);

/* tc_result_typed and tc_result_keep of a stream; the struct is freed with the stream's last reference. */
struct tc_typed *tc_stream_typed(torc_stream *stream);
struct tc_typed *tc_stream_keep(torc_stream *stream, struct tc_typed *mine);
/* Returns the path that the RPC was begun with, "/package.Service/Method"; the stream's memory. */
const char *tc_stream_method(const torc_stream *stream);
/* Cancels the RPC, and makes its result a failure with this error, unless the application has seen the result. The
 * first error counts. The stream must keep a struct. Takes over the error. Any thread. */
void tc_stream_spoil(torc_stream *stream, torc_error *error);

/* torc_stream_receive in two steps, between which a codec reads the message: the stream stays, also when another thread
 * frees its handle, and no other thread receives. If the first step returns 1, the second follows. The second returns
 * false if the handle was freed meanwhile: nothing of the stream may be given to the application then. */
int tc_stream_receive_begin(torc_stream *stream, int64_t timeout_ms, const torc_message **message);
bool tc_stream_receive_end(torc_stream *stream);

/* Add and give back a reference to a server's call, so that it stays while another thread finishes it. */
void tc_api_call_hold(torc_server_call *call);
void tc_api_call_drop(torc_server_call *call);
/* tc_result_typed and tc_result_keep of a server's call; the struct is freed with the call's last reference. */
struct tc_typed *tc_api_call_typed(torc_server_call *call);
struct tc_typed *tc_api_call_keep(torc_server_call *call, struct tc_typed *mine);
/* Makes the RPC end with INTERNAL and this text, whatever the application finishes it with. The first text counts. */
void tc_api_call_spoil(torc_server_call *call, const char *text);
/* torc_server_call_receive in two steps, as tc_stream_receive_begin and tc_stream_receive_end are. */
int tc_api_call_receive_begin(torc_server_call *call, int64_t timeout_ms, const torc_message **message);
bool tc_api_call_receive_end(torc_server_call *call);

/* torc_stream_start that sends `first` (NULL: nothing) as the only message: a callback may free the handle before a
 * caller could send it. */
torc_stream *tc_stream_start_with(torc_channel *channel, const char *method, const struct torc_call_options *options,
                                  const struct torc_stream_events *events, void *arg, const struct tc_slice *first,
                                  torc_error **error);

#endif
