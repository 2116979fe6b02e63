/* RPCs. SPDX-License-Identifier: Apache-2.0
 *
 * Messages are bytes: serialise with what you like (protobuf-c, nanopb, ...). A method is "/package.Service/Method";
 * the leading slash may be left out. */
#ifndef TORC_CALL_H
#define TORC_CALL_H

#include <torc/channel.h>
#include <torc/result.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct torc_call torc_call;
/* The handle of an RPC (torc/stream.h). */
typedef struct torc_call torc_stream;

struct torc_call_options {
    uint64_t size;
    int64_t timeout_ms;                 /* the deadline, from now; 0: none; negative: it has passed, nothing is sent and
                                           the call ends with DEADLINE_EXCEEDED. See torc_time_left (torc/time.h) */
    const torc_metadata *metadata;      /* copied; NULL: none */
    torc_call_credentials *credentials; /* besides the channel's; the call takes its own reference; NULL: none */
    int64_t max_receive_message_bytes;  /* 0: the channel's; -1: no limit */
    int32_t wait_for_ready;             /* wait through TRANSIENT_FAILURE instead of failing; 0: off */
    int32_t gzip;                       /* compress request messages; 0: as the channel says */
    int32_t explain;                    /* fill in explain_json of the result; 0: off */
    int32_t lend_request;               /* torc_call_unary_async: the request is not copied; its bytes stay until fn was
                                           called; 0: off */
};

/* The outcome of a call; what it points at is owned by it and freed by torc_result_fini. */
struct torc_result {
    int code;                /* enum torc_status_code */
    char *message;           /* status text, never NULL after a call; a NUL that the server sent is U+FFFD */
    torc_message *response;  /* unary and client streaming: the response when code is OK */
    torc_metadata *headers;  /* initial metadata; NULL when none came */
    torc_metadata *trailers; /* NULL when none came */
    char *peer;              /* address of the backend, "127.0.0.1:10001"; "" when none was reached */
    uint32_t attempts;       /* those that were given to a connection; 0: none was, as of an RPC that a limit on this
                              * side refused (headers, a message, a queue, a circuit breaker), which is not retried */
    char *explain_json;      /* with options.explain: an object as `torc call --explain` prints it; else NULL */
};

TORC_API void torc_result_fini(struct torc_result *result);

/* Makes a unary RPC and waits for its end. Never NULL: an RPC that could not start has a result too, and so has one for
 * which there was no memory. torc_result_error says why: TORC_ESTATUS (the RPC ran), TORC_EINVAL (channel, method,
 * options), TORC_EUNSUPPORTED (options of a newer version), TORC_EDEADLK (inside a callback of the channel's runtime),
 * TORC_EFORK, TORC_ECLOSED. The request is borrowed for the call. The caller frees the result. Any thread. */
TORC_API torc_result *torc_unary(torc_channel *channel, const char *method, const void *request, size_t request_size,
                                 const struct torc_call_options *options);

/* Makes a unary RPC and returns at once. 0: fn is called with the result exactly once, on the thread that drives the
 * loop, never inside this function; at the latest inside torc_runtime_free. Negative, with an error: fn is not called
 * (TORC_EINVAL, TORC_EUNSUPPORTED, TORC_EFORK, TORC_ECLOSED). The request is copied; with options.lend_request it is
 * borrowed until fn is called.
 *
 * handle (NULL: none is made): stores a stream for torc_stream_cancel, torc_stream_finish and torc_stream_close, which
 * the caller frees; torc_stream_free of an RPC that runs cancels it, and fn is called with CANCELLED. Any thread. */
TORC_API int torc_unary_async(torc_channel *channel, const char *method, const void *request, size_t request_size,
                              const struct torc_call_options *options, torc_result_fn fn, void *arg,
                              torc_stream **handle, torc_error **error);

/* Returns where an RPC would go now, without sending it: as torc_unary with options.explain, but it ends at the pick.
 * It waits for the name to be resolved (no longer than timeout_ms), never for a connection. It counts nothing and asks
 * for no connection; an idle channel leaves IDLE by it as by any RPC, and policies that connect by themselves
 * (pick_first, round_robin) then do. The result's status is what an RPC would fail with at once (wait_for_ready
 * counts), else OK; there is no response. torc_result_explain says besides "outcome": "send", "wait" (for a connection,
 * to "endpoint" where a ring says which, else to any of "waits_for", addresses that are being connected), "fail" or
 * "drop", and "channel": what torc_channel_describe gives. An application's own LB policy is asked as for any pick. Any
 * thread. */
TORC_API torc_result *torc_explain(torc_channel *channel, const char *method, const struct torc_call_options *options);

/* torc_explain that returns at once; fn, handle and errors are those of torc_unary_async. */
TORC_API int torc_explain_async(torc_channel *channel, const char *method, const struct torc_call_options *options,
                                torc_result_fn fn, void *arg, torc_stream **handle, torc_error **error);

/* One unary RPC, blocking. 0 when the RPC ran (its outcome is in *result, which the caller ends with torc_result_fini);
 * negative when it could not be started: TORC_EINVAL (method, metadata), TORC_EDEADLK (from inside a callback),
 * TORC_EFORK, TORC_ECLOSED; *result is untouched then. The request bytes are borrowed for the call. Any thread. */
TORC_API int torc_call_unary(torc_channel *channel, const char *method, const void *request, size_t request_size,
                             const struct torc_call_options *options, struct torc_result *result);

/* One unary RPC, asynchronous: fn is called once, on the loop's thread, never from inside this call. The result is
 * owned by Torc and borrowed for the callback; torc_message_ref keeps the response. The request is copied, but with
 * options.lend_request borrowed until fn is called, which it then is in any case, after torc_call_free too. Negative as
 * above, with an error: fn is not called then. *call (may be NULL): a handle for torc_call_cancel, freed with
 * torc_call_free. Any thread. */
typedef void (*torc_unary_fn)(const struct torc_result *result, void *arg);
TORC_API int torc_call_unary_async(torc_channel *channel, const char *method, const void *request, size_t request_size,
                                   const struct torc_call_options *options, torc_unary_fn fn, void *arg,
                                   torc_call **call, torc_error **error);

/* Where a call would go now, without sending it: as torc_call_unary with options.explain, but it ends at the pick. It
 * waits for the name to be resolved (no longer than timeout_ms), never for a connection. It counts nothing and asks for
 * no connection; an idle channel leaves IDLE by it as by any call, and policies that connect by themselves (pick_first,
 * round_robin) then do. The result's code and message are those that a call would fail with at once (wait_for_ready
 * counts), else OK; there is no response. explain_json says besides "outcome": "send", "wait" (for a connection, to
 * "endpoint" where a ring says which, else to any of "waits_for", addresses that are being connected), "fail" or
 * "drop", and "channel": what torc_channel_describe gives. An application's own LB policy is asked as for any pick.
 * Errors as above. Any thread. */
TORC_API int torc_call_explain(torc_channel *channel, const char *method, const struct torc_call_options *options,
                               struct torc_result *result);
TORC_API int torc_call_explain_async(torc_channel *channel, const char *method, const struct torc_call_options *options,
                                     torc_unary_fn fn, void *arg, torc_call **call, torc_error **error);

/* Streaming, asynchronous. All on the loop's thread, never from inside a call of the API; each may be NULL except
 * on_done. */
struct torc_call_events {
    void (*on_headers)(torc_call *call, const torc_metadata *headers, void *arg);
    /* A message after torc_call_read; borrowed, torc_message_ref keeps it. */
    void (*on_message)(torc_call *call, torc_message *message, void *arg);
    /* The last torc_call_write was taken as far as flow control goes: the next may come. */
    void (*on_written)(torc_call *call, void *arg);
    /* The end, exactly once and last. */
    void (*on_done)(torc_call *call, const struct torc_result *result, void *arg);
};

/* Starts a call of any kind (client-, server-, bidirectional streaming). The caller owns the handle and frees it with
 * torc_call_free, from on_done or later. NULL with an error as above. events must outlive the call. Any thread. */
TORC_API torc_call *torc_call_start(torc_channel *channel, const char *method, const struct torc_call_options *options,
                                    const struct torc_call_events *events, void *arg, torc_error **error);
/* Sends one message (copied). `last`: half-close after it. TORC_ESTATE while one is under way (wait for on_written) or
 * after the last one; TORC_ECLOSED after the end. Any thread. */
TORC_API int torc_call_write(torc_call *call, const void *message, size_t size, bool last);
/* Half-closes without a message. */
TORC_API int torc_call_write_done(torc_call *call);
/* Wants one more message; demands add up. Any thread. */
TORC_API int torc_call_read(torc_call *call);
/* Cancels; on_done comes with CANCELLED unless the call was over. Any thread. */
TORC_API void torc_call_cancel(torc_call *call);
/* Releases the handle. A call that still runs is cancelled, and no further callback comes (called off the loop's
 * thread: no callback starts after the loop has seen it), except that of a unary call whose request was lent. NULL is
 * allowed. Any thread. */
TORC_API void torc_call_free(torc_call *call);

/* Streaming, blocking: the same calls for programs that want to wait. Start with torc_call_open; then any order of send
 * and receive, finish at the end. TORC_EDEADLK from inside a callback, TORC_ESTATE for a call of torc_call_start. */
TORC_API torc_call *torc_call_open(torc_channel *channel, const char *method, const struct torc_call_options *options,
                                   torc_error **error);
/* 0 when the message was taken; TORC_ECLOSED when the call is over (torc_call_finish says why). */
TORC_API int torc_call_send(torc_call *call, const void *message, size_t size, bool last);
/* 1 with a message that the caller unrefs; 0 at the end of the stream; negative: TORC_EDEADLK, TORC_EFORK. */
TORC_API int torc_call_receive(torc_call *call, torc_message **message);
/* Half-closes if that is still to do, waits for the end, and gives the outcome. Messages not received are dropped. */
TORC_API int torc_call_finish(torc_call *call, struct torc_result *result);

#ifdef __cplusplus
}
#endif
#endif
