/* Typed RPCs with messages of protobuf-c (torc/protobuf_c.h): what generated code calls.
 *
 * The calling thread packs a request; the packed bytes end with the function.
 *
 * A result keeps one unpacked response and its arena, and frees both. The response of a unary RPC is unpacked by the
 * thread that waits, or before the callback; the response of a client streaming RPC by the first
 * torc_protobuf_c_response. A stream keeps one arena for all of its messages: each message lives until the next.
 *
 * torc_protobuf_c_send and torc_protobuf_c_receive hold the stream, which another thread may free meanwhile.
 * torc_protobuf_c_message is called in on_message, and the loop holds the stream until on_message returns.
 *
 * Malformed bytes fail the RPC with INTERNAL, as a response that gRPC itself cannot read does. The error is stored in
 * the result, and a stream is cancelled (tc_stream_spoil). A stream's RPC fails in the same way if
 * torc_protobuf_c_send cannot pack the request, or if a function is given a stream of another method.
 *
 * Any thread, but one thread at a time unpacks the messages of a stream. api/typed.h says what a result and a stream
 * keep. */
#include <torc/protobuf_c.h>

#include "api/arena.h"
#include "api/result.h"
#include "api/typed.h"
#include "base/mem.h"
#include "base/options.h"
#include "stub/codec.h"

/* --- requests --- */

/* Packs a request into *p; the caller then calls tc_packed_fini. Returns false, with nothing to free, if an error is
 * pending; or with an error if `m` or `message` is NULL or the message cannot be packed. */
static bool request_pack(struct tc_packed *p, const struct torc_protobuf_c_method *m, const ProtobufCMessage *message,
                         torc_error **error)
{
    if (tc_error_pending(error))
        return false;
    if (!m)
        return tc_error_set(error, TORC_EINVAL, TORC_LAYER_CODEC, "the method must not be NULL");
    char *why = NULL;
    int rc = tc_packed_init(p, m->request, message, &why);
    if (rc != 0)
        tc_error_set(error, (enum torc_code)rc, TORC_LAYER_CODEC, "%s: the request %s", m->path, why);
    tc_free(why);
    return rc == 0;
}

/* --- results --- */

/* A struct that a result or a stream keeps. */
struct decoded {
    struct tc_typed base; /* type: of a result, the response's descriptor; of a stream, NULL */
    struct tc_arena arena;
    const ProtobufCMessage *message; /* of a result, in `arena`; NULL: the bytes are malformed, or this is a stream's */
};

static void decoded_free(struct tc_typed *base)
{
    struct decoded *d = TC_CONTAINER_OF(base, struct decoded, base);
    torc_error_free(d->base.error);
    tc_arena_fini(&d->arena);
    tc_free(d);
}

/* Returns a struct without a message, which the caller gives to a result or a stream. */
static struct decoded *decoded_new(const void *type)
{
    struct decoded *d = TC_NEW(struct decoded);
    d->base.free = decoded_free;
    d->base.type = type;
    tc_arena_init(&d->arena, TC_MESSAGE_BLOCK, 0);
    return d;
}

/* Returns a new error: INTERNAL, for an RPC whose message is malformed. Frees `reason`. */
static torc_error *malformed(const struct torc_protobuf_c_method *m, torc_error *reason)
{
    struct tc_status status = tc_status_make(TORC_STATUS_INTERNAL, TORC_LAYER_CODEC, "%s: malformed message: %s",
                                             m->path, torc_error_text(reason));
    torc_error *error = tc_error_of_status(&status);
    tc_status_fini(&status);
    torc_error_free(reason);
    return error;
}

static struct tc_slice bytes_of(const torc_message *message)
{
    return tc_slice_of(torc_message_data(message), torc_message_size(message));
}

/* Unpacks the response, which must not be NULL, and stores it in the result. Returns what the result keeps, borrowed:
 * another thread may have been first. */
static struct tc_typed *result_decode(const torc_result *result, const struct torc_protobuf_c_method *m)
{
    struct decoded *d = decoded_new(m->response);
    torc_error *reason = NULL;
    d->message = tc_codec_unpack(m->response, bytes_of(torc_result_response(result)), &d->arena, &reason);
    if (!d->message)
        d->base.error = malformed(m, reason);
    return tc_result_keep(result, &d->base);
}

const ProtobufCMessage *torc_protobuf_c_response(const torc_result *result, const struct torc_protobuf_c_method *m)
{
    if (!m || !torc_result_response(result))
        return NULL;
    struct tc_typed *d = tc_result_typed(result);
    if (!d)
        d = result_decode(result, m);
    return d->type == m->response && !d->error ? TC_CONTAINER_OF(d, struct decoded, base)->message : NULL;
}

torc_result *torc_protobuf_c_call(torc_channel *channel, const struct torc_protobuf_c_method *m,
                                  const ProtobufCMessage *request, const struct torc_call_options *options)
{
    struct tc_packed p;
    torc_error *error = NULL;
    if (!request_pack(&p, m, request, &error))
        return tc_result_refused(error);
    torc_result *result = torc_unary(channel, m->path, p.bytes.data, p.bytes.len, options);
    tc_packed_fini(&p);
    torc_protobuf_c_response(result, m); /* before anybody asks the result for its status */
    return result;
}

/* A callback of the application. on_result frees the struct; torc_protobuf_c_async does if the RPC cannot start. */
struct async {
    const struct torc_protobuf_c_method *method;
    torc_result_fn fn;
    void *arg;
};

static void on_result(const torc_result *result, void *arg)
{
    struct async *a = arg;
    torc_protobuf_c_response(result, a->method);
    a->fn(result, a->arg);
    tc_free(a);
}

int torc_protobuf_c_async(torc_channel *channel, const struct torc_protobuf_c_method *m,
                          const ProtobufCMessage *request, const struct torc_call_options *options, torc_result_fn fn,
                          void *arg, torc_stream **handle, torc_error **error)
{
    struct tc_packed p;
    struct torc_call_options copying;
    torc_error *reason = NULL, **why = error ? error : &reason;
    if (tc_error_pending(error) || !tc_options_take(TC_OPTIONS_CALL, &copying, options, why)) {
        int refused = torc_error_code(*why);
        torc_error_free(reason);
        return refused;
    }
    copying.lend_request = 0; /* the packed bytes are not the caller's: they end with this function */
    if (!fn)
        tc_error_set(why, TORC_EINVAL, TORC_LAYER_API, "fn must not be NULL");
    int rc = TORC_EINVAL;
    if (request_pack(&p, m, request, why)) {
        struct async *a = TC_NEW(struct async);
        *a = (struct async){m, fn, arg};
        rc = torc_unary_async(channel, m->path, p.bytes.data, p.bytes.len, &copying, on_result, a, handle, why);
        if (rc != 0)
            tc_free(a);
        tc_packed_fini(&p);
    }
    if (rc != 0)
        rc = torc_error_code(*why);
    torc_error_free(reason);
    return rc;
}

const ProtobufCMessage *torc_protobuf_c_detail(const torc_result *result, const ProtobufCMessageDescriptor *type,
                                               torc_arena *arena, torc_error **error)
{
    const char *url;
    const void *bytes;
    size_t n;
    if (!type || !arena || tc_error_pending(error))
        return NULL;
    for (size_t i = 0; torc_result_detail(result, i, &url, &bytes, &n) == 0; i++) {
        const char *slash = strrchr(url, '/');
        if (slash && strcmp(slash + 1, type->name) == 0)
            return tc_codec_unpack(type, tc_slice_of(bytes, n), &arena->arena, error);
    }
    return NULL;
}

/* --- streams --- */

/* Returns what the stream keeps, borrowed; makes it the first time. */
static struct decoded *stream_keep(torc_stream *stream)
{
    struct tc_typed *d = tc_stream_typed(stream);
    return TC_CONTAINER_OF(d ? d : tc_stream_keep(stream, &decoded_new(NULL)->base), struct decoded, base);
}

/* Fails the RPC with INTERNAL and the text `why`, for a fault of the application. Frees `why`. */
static void stream_refuse(torc_stream *stream, char *why)
{
    struct tc_status status = tc_status_make(TORC_STATUS_INTERNAL, TORC_LAYER_CODEC, "%s", why);
    stream_keep(stream);
    tc_stream_spoil(stream, tc_error_of_status(&status));
    tc_status_fini(&status);
    tc_free(why);
}

/* Returns what the stream keeps, borrowed. If the stream is of another method, fails its RPC and returns NULL. */
static struct decoded *stream_decoded(torc_stream *stream, const struct torc_protobuf_c_method *m)
{
    const char *path = tc_stream_method(stream);
    if (TC_LIKELY(strcmp(path, m->path) == 0))
        return stream_keep(stream);
    stream_refuse(stream, tc_asprintf("a function of %s was given a stream of %s", m->path, path));
    return NULL;
}

/* Returns false with an error if `m` is NULL, if a client streaming or bidirectional RPC is given a request, or if
 * another RPC is given none. Returns false, too, if an error is pending. */
static bool begin_check(const struct torc_protobuf_c_method *m, const ProtobufCMessage *request, torc_error **error)
{
    if (tc_error_pending(error))
        return false;
    if (m && !m->client_streaming == (request != NULL))
        return true;
    return tc_error_set(error, TORC_EINVAL, TORC_LAYER_CODEC,
                        "%s: a server streaming RPC begins with one request, others "
                        "begin with none",
                        m ? m->path : "NULL");
}

torc_stream *torc_protobuf_c_open(torc_channel *channel, const struct torc_protobuf_c_method *m,
                                  const ProtobufCMessage *request, const struct torc_call_options *options,
                                  torc_error **error)
{
    struct tc_packed p = {0};
    if (!begin_check(m, request, error) || (request && !request_pack(&p, m, request, error)))
        return NULL;
    torc_stream *stream = torc_stream_open(channel, m->path, options, error);
    if (stream && request) /* the first message has room; if the RPC is over already, its result says why */
        torc_stream_send(stream, p.bytes.data, p.bytes.len, TORC_SEND_LAST, 0);
    tc_packed_fini(&p);
    return stream;
}

torc_stream *torc_protobuf_c_start(torc_channel *channel, const struct torc_protobuf_c_method *m,
                                   const ProtobufCMessage *request, const struct torc_call_options *options,
                                   const struct torc_stream_events *events, void *arg, torc_error **error)
{
    struct tc_packed p = {0};
    if (!begin_check(m, request, error) || (request && !request_pack(&p, m, request, error)))
        return NULL;
    torc_stream *stream =
        tc_stream_start_with(channel, m->path, options, events, arg, request ? &p.bytes : NULL, error);
    tc_packed_fini(&p);
    return stream;
}

/* The caller holds a reference to the stream. */
static int message_send(torc_stream *stream, const struct torc_protobuf_c_method *m, const ProtobufCMessage *request,
                        unsigned flags, int64_t timeout_ms)
{
    struct tc_packed p;
    if (!stream_decoded(stream, m))
        return TORC_EINVAL;
    char *why = NULL;
    int rc = tc_packed_init(&p, m->request, request, &why);
    if (rc != 0) {
        stream_refuse(stream, tc_asprintf("%s: the request %s", m->path, why));
        tc_free(why);
        return rc;
    }
    rc = torc_stream_send(stream, p.bytes.data, p.bytes.len, flags, timeout_ms);
    tc_packed_fini(&p);
    return rc;
}

int torc_protobuf_c_send(torc_stream *stream, const struct torc_protobuf_c_method *m, const ProtobufCMessage *request,
                         unsigned flags, int64_t timeout_ms)
{
    if (!stream || !m)
        return TORC_EINVAL;
    tc_stream_hold(stream);
    int rc = message_send(stream, m, request, flags, timeout_ms);
    tc_stream_drop(stream);
    return rc;
}

/* Unpacks a message into the arena of `d`, which the stream keeps; the message before goes. Returns the message, which
 * lives until the next. If the bytes are malformed, fails the RPC and returns NULL. */
static const ProtobufCMessage *message_decode(torc_stream *stream, const struct torc_protobuf_c_method *m,
                                              struct decoded *d, const torc_message *message)
{
    torc_error *reason = NULL;
    tc_arena_reset(&d->arena);
    const ProtobufCMessage *decoded = tc_codec_unpack(m->response, bytes_of(message), &d->arena, &reason);
    if (!decoded)
        tc_stream_spoil(stream, malformed(m, reason));
    return decoded;
}

/* The caller holds a reference to the stream. */
static int message_receive(torc_stream *stream, const struct torc_protobuf_c_method *m, int64_t timeout_ms,
                           const ProtobufCMessage **message)
{
    struct decoded *d = stream_decoded(stream, m);
    const torc_message *bytes;
    if (!d)
        return TORC_EINVAL;
    int rc = tc_stream_receive_begin(stream, timeout_ms, &bytes);
    if (rc != 1)
        return rc;
    const ProtobufCMessage *decoded = message_decode(stream, m, d, bytes);
    if (!tc_stream_receive_end(stream))
        return 0;
    if (decoded)
        *message = decoded;
    return decoded ? 1 : TORC_EPARSE;
}

int torc_protobuf_c_receive(torc_stream *stream, const struct torc_protobuf_c_method *m, int64_t timeout_ms,
                            const ProtobufCMessage **message)
{
    if (!stream || !m || !message)
        return TORC_EINVAL;
    tc_stream_hold(stream);
    int rc = message_receive(stream, m, timeout_ms, message);
    tc_stream_drop(stream);
    return rc;
}

/* Does not hold the stream: it is called inside on_message, and the loop holds the stream until on_message returns. */
const ProtobufCMessage *torc_protobuf_c_message(torc_stream *stream, const struct torc_protobuf_c_method *m,
                                                const torc_message *message)
{
    struct decoded *d = stream && m && message ? stream_decoded(stream, m) : NULL;
    return d ? message_decode(stream, m, d, message) : NULL;
}
