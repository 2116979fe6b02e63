/* The outcome of an RPC. SPDX-License-Identifier: Apache-2.0
 *
 * Each RPC ends with one result, also an RPC that could not start, so that there is one thing to look at and to free:
 *
 *     torc_result *result = torc_unary(channel, "helloworld.Greeter/SayHello", request, request_size, NULL);
 *     const torc_message *reply = torc_result_response(result);
 *     if (reply)
 *         use(torc_message_data(reply), torc_message_size(reply));
 *     else
 *         fprintf(stderr, "%s\n", torc_error_text(torc_result_error(result)));
 *     torc_result_free(result);
 *
 * A result that the application has been given never changes, except that a response whose bytes
 * torc_protobuf_c_response finds malformed makes it INTERNAL, for all who hold it. It is counted, and depends on
 * nothing: it may be kept after the channel and the runtime were freed, and read by any thread. The pointers that its
 * functions return are borrowed from it. Each function accepts NULL, and then returns NULL, "", 0, or
 * TORC_STATUS_UNKNOWN; torc_result_detail returns TORC_EINVAL. */
#ifndef TORC_RESULT_H
#define TORC_RESULT_H

#include <stddef.h>
#include <stdint.h>

#include <torc/error.h>
#include <torc/message.h>
#include <torc/metadata.h>
#include <torc/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The outcome of one RPC. */
typedef struct torc_result torc_result;

/* Called at the end of an RPC, on the thread that drives the loop. The result is borrowed: torc_result_ref keeps it. */
typedef void (*torc_result_fn)(const torc_result *result, void *arg);

/* Returns the status: an enum torc_status_code. For an RPC that could not start, the status that goes with the error
 * (torc_error_status). */
TORC_API int torc_result_code(const torc_result *result);

/* Returns the status message as it came, or as Torc made it; "" if there is none. A NUL that the server sent is U+FFFD.
 * It may hold any other bytes: escape it before it goes to a terminal. */
TORC_API const char *torc_result_text(const torc_result *result);

/* Returns why the RPC failed; NULL if the status is OK. Also NULL for a NULL result, which does not mean success
 * (torc_result_code tells the two apart). torc_error_ref keeps it.
 *
 * The code is TORC_ESTATUS if the RPC ran. If it could not start, the code says what prevented it: TORC_EINVAL
 * (channel, method, request, options), TORC_EUNSUPPORTED (options of a newer version), TORC_EDEADLK (a wait inside a
 * callback), TORC_EFORK, TORC_ECLOSED (the runtime was freed), TORC_ELIMIT (no memory). TORC_ELIMIT is also the code if
 * an RPC ran and there was no memory for its result: the result does not tell the RPC's status then.
 *
 * The layer is the part that failed: TORC_LAYER_PEER for a status that the server sent, else the part of Torc that made
 * it (TORC_LAYER_CONNECT, _TLS, _LB, _RESOLVER, _XDS, _DEADLINE, _LIMIT, _HTTP2, ...). The text is the status message,
 * or a sentence with the name of the status if there is no message. torc_error_status gives the status itself. */
TORC_API const torc_error *torc_result_error(const torc_result *result);

/* Returns the response if the status is OK. For a stream without on_message that is the oldest message that nobody had
 * received when the RPC ended, such as the response of a client streaming RPC. NULL if there is none. */
TORC_API const torc_message *torc_result_response(const torc_result *result);

/* Return the initial metadata and the trailers of the response; NULL if none came. A response that is an error often
 * has trailers alone. */
TORC_API const torc_metadata *torc_result_headers(const torc_result *result);
TORC_API const torc_metadata *torc_result_trailers(const torc_result *result);

/* Returns the address of the last backend ("127.0.0.1:10001"); "" if none was reached. */
TORC_API const char *torc_result_peer(const torc_result *result);

/* Returns how many attempts were given to a connection. 0 if a limit on this side refused the RPC (headers, a message,
 * a queue, a circuit breaker), for instance; such an RPC is not retried. */
TORC_API uint32_t torc_result_attempts(const torc_result *result);

/* Returns where the RPC went and why, as one JSON object (`torc call --explain` prints it); NULL without the option
 * `explain`. The result of torc_explain says where an RPC would go. */
TORC_API const char *torc_result_explain(const torc_result *result);

/* Stores detail `i` of the failure, counted from 0. The details are the google.protobuf.Any messages of the
 * google.rpc.Status in the trailer grpc-status-details-bin. *type_url is NUL-terminated
 * ("type.googleapis.com/google.rpc.RetryInfo"), *bytes are the `*size` serialised bytes of that type, which nobody has
 * checked. Each output may be NULL. Returns 0, or TORC_ENOTFOUND beyond the last detail. There is no detail when the
 * RPC succeeded, the trailer is absent or comes more than once, or its bytes are malformed. */
TORC_API int torc_result_detail(const torc_result *result, size_t i, const char **type_url, const void **bytes,
                                size_t *size);

/* Adds a reference, which torc_result_free gives back. Returns `result`. */
TORC_API torc_result *torc_result_ref(const torc_result *result);

/* Gives back one reference. The last one frees the result with everything that was borrowed from it. NULL is allowed.
 */
TORC_API void torc_result_free(torc_result *result);

#ifdef __cplusplus
}
#endif
#endif
