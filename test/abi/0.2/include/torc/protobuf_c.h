/* Messages of protobuf-c: packed, unpacked from untrusted bytes, and sent by typed RPCs. SPDX-License-Identifier:
 * Apache-2.0
 *
 * protobuf-c itself recurses to whatever depth the bytes have, cuts strings at a NUL, accepts invalid UTF-8 and keeps
 * unknown fields. torc_protobuf_c_unpack checks the bytes first, as Torc checks the bytes of a control plane.
 *
 *     torc_arena *arena = torc_arena_new(0);
 *     const Shop__Order *order =
 *         (const Shop__Order *)torc_protobuf_c_unpack(&shop__order__descriptor, bytes, n, arena, &error);
 *     if (order)
 *         printf("%s\n", order->item);
 *     else
 *         fprintf(stderr, "%s\n", torc_error_text(error)); // names the field
 *     torc_arena_free(arena); // the order goes with it
 *
 * RPCs of these messages have functions of their own types, which protoc-gen-torc writes (docs/guide/stubs.md) and
 * which call the functions below:
 *
 *     torc_result *result = helloworld__greeter__say_hello__call(channel, &request, NULL);
 *     const Helloworld__HelloReply *reply = helloworld__greeter__say_hello__response(result);
 *
 * This is the only header that includes protobuf-c's; torc/torc.h leaves it out. Functions may be called on any thread.
 * In a library that was built without xDS (TORC_XDS=off) the functions of this header are missing, and without servers
 * (TORC_SERVERS=off) those of servers. */
#ifndef TORC_PROTOBUF_C_H
#define TORC_PROTOBUF_C_H

#include <protobuf-c/protobuf-c.h>

#include <torc/arena.h>
#include <torc/server.h>
#include <torc/stream.h>
#include <torc/stub.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Returns the message of `type` (a NAME__descriptor of generated code) in the bytes, or NULL with an error. The message
 * and everything that it points to are in `arena`; the bytes are not needed afterwards. Do not call its
 * NAME__free_unpacked.
 *
 * Refused with TORC_EPARSE: bytes that are cut short or are not protobuf (an impossible field number, a varint that is
 * too long, malformed packed values), strings with invalid UTF-8 or with a NUL, groups, a required field that is
 * missing, with or without a default (also when a message came in parts, and one of them lacks the field); and one
 * valid form that protobuf-c cannot merge: a message field that comes twice, with the same oneof unset both times.
 * Refused with TORC_ELIMIT: more than 100 messages within each other, more than 4,194,304 values (a message counts as
 * one value, and one more for each 64 fields of its type), more than 4 MiB of fields that the type does not have, and a
 * message that takes more memory than the arena gives, or than 32 times its bytes (at least 1 MiB is allowed, and at
 * most 512 MiB). TORC_EINVAL: an argument is NULL. The text names the field. The layer is TORC_LAYER_CODEC.
 *
 * Fields that the type does not have, or has with another wire type, are dropped. A map is a list of all entries that
 * the bytes have: if several have the same key, the last one counts. An entry's message may be NULL, which stands for
 * an empty message. */
TORC_API const ProtobufCMessage *torc_protobuf_c_unpack(const ProtobufCMessageDescriptor *type, const void *bytes,
                                                        size_t n, torc_arena *arena, torc_error **error);

/* Returns the bytes of a message, in `arena`, and stores their number in *n. For an empty message *n is 0, and the
 * pointer is not NULL. NULL with an error, whose text names the field. TORC_EINVAL: an argument is NULL, the message or
 * one within it was not initialised (NAME__INIT), an element of a repeated field or a required field is NULL, a string
 * is not UTF-8, bytes or a repeated field are NULL and have a length, the case of a oneof is none of its fields, or it
 * is a field whose pointer is NULL. TORC_ELIMIT: the arena's limit would be exceeded, there are more than 100 messages
 * within each other, more than 4,194,304 in all (a message counts one more for each 64 fields of its type), or 4 GiB of
 * strings and bytes. */
TORC_API const void *torc_protobuf_c_pack(const ProtobufCMessage *message, torc_arena *arena, size_t *n,
                                          torc_error **error);

/* Returns the detail of this type among the details of a failure (torc_result_detail), unpacked into `arena`; NULL if
 * the failure has no such detail, and NULL with an error if its bytes are malformed. For the messages of
 * google/rpc/error_details.proto:
 *
 *     const Google__Rpc__RetryInfo *info = (const Google__Rpc__RetryInfo *)torc_protobuf_c_detail(
 *         result, &google__rpc__retry_info__descriptor, arena, NULL);
 */
TORC_API const ProtobufCMessage *torc_protobuf_c_detail(const torc_result *result,
                                                        const ProtobufCMessageDescriptor *type, torc_arena *arena,
                                                        torc_error **error);

/* --- typed RPCs ---
 *
 * The code that protoc-gen-torc generates calls these functions, from functions with each method's own types. A comment
 * that begins with the name of a function means: does what that function does, with messages instead of bytes. A
 * message that torc_protobuf_c_pack would refuse, or of another type, is refused with the same codes. A response whose
 * bytes are malformed, as torc_protobuf_c_unpack says, fails the RPC with INTERNAL, and the error's layer is
 * TORC_LAYER_CODEC.
 *
 * A function that is given a stream or a call of another method returns TORC_EINVAL or NULL, and fails that RPC with
 * INTERNAL and a text that names both methods. A message that cannot be packed fails the RPC of its stream, too, with a
 * text that names the field. */

/* A method, in constant memory. */
struct torc_protobuf_c_method {
    uint64_t size;                              /* sizeof(struct torc_protobuf_c_method), as compiled */
    void (*version)(void);                      /* torc_stub_v1 */
    const char *path;                           /* "/helloworld.Greeter/SayHello" */
    const ProtobufCMessageDescriptor *request;  /* the type of its requests */
    const ProtobufCMessageDescriptor *response; /* the type of its responses */
    int32_t client_streaming;                   /* 0 or 1 */
    int32_t server_streaming;                   /* 0 or 1 */
};

/* torc_unary. The request is packed before the function waits, and only borrowed until then. For a request that cannot
 * be packed the result has TORC_EINVAL or TORC_ELIMIT; it is never NULL. */
TORC_API torc_result *torc_protobuf_c_call(torc_channel *channel, const struct torc_protobuf_c_method *method,
                                           const ProtobufCMessage *request, const struct torc_call_options *options);

/* torc_unary_async. The request is packed before the function returns, so the option lend_request has no effect. */
TORC_API int torc_protobuf_c_async(torc_channel *channel, const struct torc_protobuf_c_method *method,
                                   const ProtobufCMessage *request, const struct torc_call_options *options,
                                   torc_result_fn fn, void *arg, torc_stream **handle, torc_error **error);

/* Returns the response of a unary or client streaming RPC, which lives as long as the result. NULL: there is none
 * (torc_result_error says why), or it was decoded as another type before. Any thread. */
TORC_API const ProtobufCMessage *torc_protobuf_c_response(const torc_result *result,
                                                          const struct torc_protobuf_c_method *method);

/* torc_stream_open. A server streaming RPC sends its request and half-closes; for a client or bidirectional streaming
 * RPC `request` is NULL. Else TORC_EINVAL. */
TORC_API torc_stream *torc_protobuf_c_open(torc_channel *channel, const struct torc_protobuf_c_method *method,
                                           const ProtobufCMessage *request, const struct torc_call_options *options,
                                           torc_error **error);

/* torc_stream_start. A server streaming RPC sends its request and half-closes; for a client or bidirectional streaming
 * RPC `request` is NULL. Else TORC_EINVAL. */
TORC_API torc_stream *torc_protobuf_c_start(torc_channel *channel, const struct torc_protobuf_c_method *method,
                                            const ProtobufCMessage *request, const struct torc_call_options *options,
                                            const struct torc_stream_events *events, void *arg, torc_error **error);

/* torc_stream_send. TORC_EINVAL, TORC_ELIMIT: the stream is of another method, the request is NULL or cannot be packed,
 * or there is no memory. The RPC has failed then, and its result says why. TORC_EINVAL for a bad timeout, bad flags or
 * a NULL stream: nothing has happened. */
TORC_API int torc_protobuf_c_send(torc_stream *stream, const struct torc_protobuf_c_method *method,
                                  const ProtobufCMessage *request, unsigned flags, int64_t timeout_ms);

/* torc_stream_receive: 1 with *message, which lives until the stream's next message, or the stream's free. TORC_EPARSE:
 * the message is malformed; the RPC is cancelled, and its result says what is wrong, unless the application has that
 * result already. TORC_EINVAL also for a stream of another method. */
TORC_API int torc_protobuf_c_receive(torc_stream *stream, const struct torc_protobuf_c_method *method,
                                     int64_t timeout_ms, const ProtobufCMessage **message);

/* For on_message: returns the message, which lives until the stream's next message. NULL: the message is malformed, or
 * the stream is of another method; the RPC is cancelled, and its result says what is wrong. */
TORC_API const ProtobufCMessage *torc_protobuf_c_message(torc_stream *stream,
                                                         const struct torc_protobuf_c_method *method,
                                                         const torc_message *message);

/* --- typed RPCs of a server ---
 *
 * The code that protoc-gen-torc generates calls these functions, too. Where a comment says that the RPC has failed, the
 * client hears of it when the call is finished: it gets INTERNAL and the text of the first fault, whatever code and
 * text the call is finished with. */

/* How generated code calls the handler of a method, in constant memory. Exactly one of `unary` and `stream` is set. */
struct torc_protobuf_c_handler {
    uint64_t size;                               /* sizeof(struct torc_protobuf_c_handler), as compiled */
    const struct torc_protobuf_c_method *method; /* the method that it serves */
    uint64_t offset;                             /* of the handler in the service's struct */

    /* One request: unary and server streaming. Calls the handler in `handlers`, the library's copy of the struct. */
    void (*unary)(torc_server_call *call, const ProtobufCMessage *request, const void *handlers, void *arg);
    /* Client and bidirectional streaming. */
    void (*stream)(torc_server_call *call, const void *handlers, void *arg);
};

/* Flags of torc_protobuf_c_add. */
enum torc_protobuf_c_flags {
    TORC_PROTOBUF_C_STRICT = 1, /* every method must have a handler */
};

/* Registers the handlers of a service, a struct that begins with its size and is copied: torc_server_add_method for
 * each that is not NULL. A method without a handler ends with UNIMPLEMENTED, unless TORC_PROTOBUF_C_STRICT is set: then
 * it is refused with TORC_EINVAL. A request whose bytes are malformed, as torc_protobuf_c_unpack says, ends with
 * INTERNAL, and its handler is not called. `arg` is passed to each handler. 0, or an error; some methods may then have
 * been registered: TORC_EINVAL (an argument is NULL, the struct's size, unknown flags), TORC_EUNSUPPORTED (a handler
 * that the generated code does not have), and those of torc_server_add_method. */
TORC_API int torc_protobuf_c_add(torc_server *server, const struct torc_protobuf_c_handler *methods, uint64_t n,
                                 const void *handlers, void *arg, unsigned flags, torc_error **error);

/* torc_server_call_receive: 1 with *request, which lives until the next request of the call, or until the call is
 * finished. TORC_EPARSE: the request is malformed, and the RPC has failed: finish the call. TORC_EINVAL also for a call
 * of another method. */
TORC_API int torc_protobuf_c_next(torc_server_call *call, const struct torc_protobuf_c_method *method,
                                  int64_t timeout_ms, const ProtobufCMessage **request);

/* For on_message of torc_server_call_events: returns the request that came, which lives until the next request of the
 * call, or until the call is finished. NULL: the request is malformed, or the call is of another method; the RPC has
 * failed: finish the call. */
TORC_API const ProtobufCMessage *torc_protobuf_c_request(torc_server_call *call,
                                                         const struct torc_protobuf_c_method *method,
                                                         const torc_message *message);

/* torc_server_call_reply, which ends the call. TORC_EINVAL: the response is NULL or cannot be packed, or the call is of
 * another method, and the RPC ends with INTERNAL. TORC_ELIMIT: the response exceeds a limit or memory is out, and the
 * RPC ends with RESOURCE_EXHAUSTED. TORC_EPARSE: the RPC had failed before, and the response is not sent. TORC_EINVAL
 * for a NULL call: nothing has happened. */
TORC_API int torc_protobuf_c_reply(torc_server_call *call, const struct torc_protobuf_c_method *method,
                                   const ProtobufCMessage *response);

/* torc_server_call_send. TORC_EINVAL, TORC_ELIMIT: the response is NULL or cannot be packed, the call is of another
 * method, or there is no memory. The RPC has failed then: finish the call. TORC_EINVAL for a bad timeout, bad flags or
 * a NULL call: nothing has happened. */
TORC_API int torc_protobuf_c_respond(torc_server_call *call, const struct torc_protobuf_c_method *method,
                                     const ProtobufCMessage *response, unsigned flags, int64_t timeout_ms);

/* torc_server_call_finish of an RPC that fails, with details that the client reads by torc_protobuf_c_detail: `n`
 * initialised messages, as a rule those of google/rpc/error_details.proto. The details go as a google.rpc.Status with
 * the code and the text (if it is UTF-8) in the trailer grpc-status-details-bin, behind `trailers`. A client says how
 * large trailers may be; gRPC's clients allow 8 KiB by default. With more, or above 1 MiB, the RPC is reset and ends
 * with INTERNAL. There is no such trailer with n 0, with TORC_STATUS_OK, and with a code that is not a status.
 * TORC_EINVAL also when a detail is NULL or cannot be packed: the RPC then ends with the code and the text, without
 * details. */
TORC_API int torc_protobuf_c_finish(torc_server_call *call, int code, const char *text, const torc_metadata *trailers,
                                    const ProtobufCMessage *const *details, size_t n);

#ifdef __cplusplus
}
#endif
#endif
