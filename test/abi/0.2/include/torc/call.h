/* Unary RPCs, and the options of every RPC (streams: torc/stream.h). SPDX-License-Identifier: Apache-2.0
 *
 * Messages are bytes, serialised with any library (protobuf-c, nanopb, ...; torc/protobuf_c.h has typed calls). A
 * method is "/package.Service/Method"; the leading slash may be left out. Every RPC ends with one torc_result, which
 * the caller owns (torc_unary) or borrows inside a callback (torc_unary_async). All functions may be called on any
 * thread; only those that wait are refused inside a callback.
 *
 *     struct torc_call_options o = {TORC_SIZE(torc_call_options), .timeout_ms = 5000};
 *     torc_result *result = torc_unary(channel, "helloworld.Greeter/SayHello", request, size, &o);
 *     if (!torc_result_error(result))
 *         use(torc_result_response(result));
 *     torc_result_free(result);
 *
 * The same without a thread that waits:
 *
 *     static void on_result(const torc_result *result, void *arg)
 *     {
 *         ... // the result is borrowed; torc_result_ref keeps it
 *     }
 *
 *     if (torc_unary_async(channel, method, request, size, &o, on_result, arg, NULL, &error) != 0)
 *         ... // on_result is never called
 */
#ifndef TORC_CALL_H
#define TORC_CALL_H

#include <torc/channel.h>
#include <torc/result.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The handle of an RPC (torc/stream.h). */
typedef struct torc_stream torc_stream;

/* Options of one RPC. */
struct torc_call_options {
    uint64_t size;
    int64_t timeout_ms;                 /* the deadline, from now; 0: none but the service config's or the route's;
                                           negative: it has passed, nothing is sent and the call ends with
                                           DEADLINE_EXCEEDED. See torc_time_left (torc/time.h) */
    const torc_metadata *metadata;      /* copied; NULL: none */
    torc_call_credentials *credentials; /* besides the channel's; the call takes its own reference; NULL: none */
    int64_t max_receive_message_bytes;  /* 0: the channel's; -1: no limit; a smaller one of the service config counts */
    int32_t wait_for_ready;             /* wait through TRANSIENT_FAILURE instead of failing; 0: as the service config
                                           says, else off */
    int32_t gzip;                       /* compress request messages; 0: as the channel says */
    int32_t explain;                    /* fill in torc_result_explain of the result; 0: off */
    int32_t lend_request;               /* torc_unary_async: the request is not copied; its bytes must stay until fn is
                                           called; 0: off */
};

/* Makes a unary RPC and waits for its end. Returns the result, which the caller frees. Never NULL: an RPC that could
 * not start has a result too. If the RPC failed, torc_result_error says why: TORC_ESTATUS (the RPC ran), TORC_EINVAL
 * (channel, method, request, options), TORC_EUNSUPPORTED (options of a newer version), TORC_EDEADLK (inside a callback
 * of the channel's runtime), TORC_EFORK, TORC_ECLOSED, TORC_ELIMIT (no memory). The request is borrowed for the call.
 * Any thread. */
TORC_API torc_result *torc_unary(torc_channel *channel, const char *method, const void *request, size_t request_size,
                                 const struct torc_call_options *options);

/* Makes a unary RPC and returns at once. 0: fn is called with the result exactly once, on the thread that drives the
 * loop, never inside this function; at the latest inside torc_runtime_free. Negative, with an error: fn is not called
 * (TORC_EINVAL, TORC_EUNSUPPORTED, TORC_EFORK, TORC_ECLOSED). The request is copied; with options.lend_request it is
 * borrowed until fn is called.
 *
 * handle: with 0, stores a stream, for torc_stream_cancel, torc_stream_finish and torc_stream_close. The caller frees
 * it; torc_stream_free cancels an RPC that still runs, and fn is called with CANCELLED. NULL: the RPC gets no handle.
 * Any thread. */
TORC_API int torc_unary_async(torc_channel *channel, const char *method, const void *request, size_t request_size,
                              const struct torc_call_options *options, torc_result_fn fn, void *arg,
                              torc_stream **handle, torc_error **error);

/* Returns where an RPC would go now, without sending it. The RPC is made as torc_unary makes it with options.explain,
 * with these differences: it passes no interceptors (so metadata that on_start would add is missing, and no hook
 * refuses the RPC), HTTP filters do not delay it, and it ends at the pick. It waits for the name to be resolved, no
 * longer than timeout_ms, but never for a connection. It counts nothing and asks for no connection. An idle channel
 * leaves IDLE as for any RPC, and policies that connect by themselves (pick_first, round_robin) then do so. An
 * application's own LB policy is asked as for any pick.
 *
 * The result is the caller's, with errors as torc_unary has them. Its status is what an RPC would fail with at once
 * (wait_for_ready counts), else OK; the response is NULL. torc_result_explain has more members: "outcome" is "send",
 * "wait", "fail" or "drop", and "channel" is what torc_channel_describe gives. An RPC that would wait for a connection
 * waits for "endpoint" where a ring says which, else for any of "waits_for", the addresses that are being connected.
 * Any thread. */
TORC_API torc_result *torc_explain(torc_channel *channel, const char *method, const struct torc_call_options *options);

/* torc_explain that returns at once; fn, handle and errors are those of torc_unary_async. Any thread. */
TORC_API int torc_explain_async(torc_channel *channel, const char *method, const struct torc_call_options *options,
                                torc_result_fn fn, void *arg, torc_stream **handle, torc_error **error);

#ifdef __cplusplus
}
#endif
#endif
