/* Typed RPCs of a server with messages of protobuf-c (torc/protobuf_c.h): what generated code calls.
 *
 * A service copies the application's struct of handlers once. Each method is registered with a `struct bound` that
 * refers to the copy and to the method's row. The row's function, which is generated code, calls the handler in the
 * copy with the types of its messages, on the loop's thread or on a thread of the method's pool (torc/server.h). The
 * server releases each `struct bound` after its last call of the method (on_release); the last release frees the copy.
 *
 * torc_protobuf_c_next, torc_protobuf_c_respond, torc_protobuf_c_reply and torc_protobuf_c_finish hold the call, which
 * another thread may finish meanwhile. torc_protobuf_c_request is called in on_message, and the loop holds the call
 * until on_message returns.
 *
 * The request of a unary or server streaming RPC is unpacked into the call's arena. The requests of a client's stream
 * share an arena of their own, which the call keeps (api/typed.h): each request lives until the next.
 *
 * The faults are a malformed request, a response that cannot be packed, and a call of another method. A fault in
 * torc_protobuf_c_next, torc_protobuf_c_request or torc_protobuf_c_respond spoils the RPC (tc_api_call_spoil): the
 * RPC ends with INTERNAL and the text of the first fault once the application finishes the call. A fault in
 * torc_protobuf_c_reply, and a malformed request of a unary or server streaming RPC, end the RPC at once.
 *
 * Any thread; one thread at a time takes the requests of a call. */
#include <stdio.h>

#include <torc/protobuf_c.h>

#include "api/typed.h"
#include "base/mem.h"
#include "base/options.h"
#include "base/parse.h"
#include "base/ref.h"
#include "proto/pack.h"
#include "proto/wire.h"
#include "stub/codec.h"

/* The handlers of a service, which its methods share: each `struct bound` has a reference. */
struct typed_service {
    struct tc_ref ref;
    void *arg;
    _Alignas(void *) char handlers[]; /* a copy of the application's struct, with the size at its beginning */
};

/* The `arg` of a method's handler; freed by on_release. */
struct bound {
    const struct torc_protobuf_c_handler *row; /* constant memory of the program */
    struct typed_service *service;             /* a reference */
};

typedef void (*any_fn)(void);

/* Returns the size in bytes of a struct that ends with the last handler of the table. */
static size_t handlers_size(const struct torc_protobuf_c_handler *rows, uint64_t n)
{
    size_t size = sizeof(uint64_t);
    for (uint64_t i = 0; i < n; i++)
        size = TC_MAX(size, (size_t)rows[i].offset + sizeof(any_fn));
    return size;
}

/* Returns whether the handler of the row is not NULL. */
static bool is_set(const struct typed_service *s, const struct torc_protobuf_c_handler *row)
{
    any_fn fn;
    memcpy(&fn, s->handlers + row->offset, sizeof(fn));
    return fn != NULL;
}

static void service_unref(struct typed_service *s)
{
    if (tc_ref_dec(&s->ref))
        tc_free(s);
}

/* Returns a copy of the handlers with one reference. Handlers beyond the end of the application's struct are NULL.
 * Returns NULL with an error if the struct's size is not plausible (TORC_EINVAL), or if the struct has a byte other
 * than 0 behind the last handler of the rows (TORC_EUNSUPPORTED). */
static struct typed_service *service_new(const struct torc_protobuf_c_handler *rows, uint64_t n, const void *handlers,
                                         void *arg, torc_error **error)
{
    uint64_t given;
    size_t size = handlers_size(rows, n);
    memcpy(&given, handlers, sizeof(given));
    if (given < sizeof(given) || given > TC_MAX((size_t)65536, size)) {
        tc_error_set(error, TORC_EINVAL, TORC_LAYER_API, "handlers: size is %llu: set it to sizeof the struct",
                     (unsigned long long)given);
        return NULL;
    }
    for (size_t i = size; i < given; i++)
        if (((const char *)handlers)[i]) {
            tc_error_set(error, TORC_EUNSUPPORTED, TORC_LAYER_API,
                         "handlers: a handler is set that the generated code does not have");
            return NULL;
        }
    struct typed_service *s = tc_calloc(1, sizeof(*s) + size);
    tc_ref_init(&s->ref);
    s->arg = arg;
    memcpy(s->handlers, handlers, TC_MIN(size, (size_t)given));
    return s;
}

/* --- requests --- */

/* A struct that a call keeps: the memory of the request that came last. */
struct requests {
    struct tc_typed base;
    struct tc_arena arena;
};

static void requests_free(struct tc_typed *base)
{
    struct requests *r = TC_CONTAINER_OF(base, struct requests, base);
    tc_arena_fini(&r->arena);
    tc_free(r);
}

/* Makes the RPC end with INTERNAL and this text (tc_api_call_spoil). Frees the text. Returns `code`. */
static int call_refuse(torc_server_call *call, char *why, int code)
{
    tc_api_call_spoil(call, why);
    tc_free(why);
    return code;
}

/* Returns NULL if the call is of this method, else a reason, which the caller frees. */
static char *other_method(const torc_server_call *call, const struct torc_protobuf_c_method *m)
{
    const char *path = torc_server_call_method(call);
    if (TC_LIKELY(strcmp(path, m->path) == 0))
        return NULL;
    return tc_asprintf("a function of %s was given a call of %s", m->path, path);
}

/* Returns what the call keeps for its requests, borrowed; makes it the first time. If the call is of another method,
 * refuses the call and returns NULL. */
static struct requests *call_requests(torc_server_call *call, const struct torc_protobuf_c_method *m)
{
    char *why = other_method(call, m);
    if (why) {
        call_refuse(call, why, TORC_EINVAL);
        return NULL;
    }
    struct tc_typed *kept = tc_api_call_typed(call);
    if (!kept) {
        struct requests *r = TC_NEW(struct requests);
        r->base.free = requests_free;
        tc_arena_init(&r->arena, TC_MESSAGE_BLOCK, 0);
        kept = tc_api_call_keep(call, &r->base);
    }
    return TC_CONTAINER_OF(kept, struct requests, base);
}

static struct tc_slice bytes_of(const torc_message *message)
{
    return tc_slice_of(torc_message_data(message), torc_message_size(message));
}

/* Returns the status text of an RPC whose request is malformed; the caller frees it. Frees `reason`. */
static char *malformed_text(const struct torc_protobuf_c_method *m, torc_error *reason)
{
    char *text = tc_asprintf("%s: malformed message: %s", m->path, torc_error_text(reason));
    torc_error_free(reason);
    return text;
}

/* Unpacks a request into the arena of `r`; the request before goes. Returns the request, which lives until the next. If
 * the bytes are malformed, refuses the call and returns NULL. */
static const ProtobufCMessage *request_decode(torc_server_call *call, struct requests *r,
                                              const struct torc_protobuf_c_method *m, const torc_message *message)
{
    torc_error *reason = NULL;
    tc_arena_reset(&r->arena);
    const ProtobufCMessage *decoded = tc_codec_unpack(m->request, bytes_of(message), &r->arena, &reason);
    if (!decoded)
        call_refuse(call, malformed_text(m, reason), TORC_EPARSE);
    return decoded;
}

/* Does the work of torc_protobuf_c_next. The caller holds a reference to the call, which another thread may finish. */
static int next_receive(torc_server_call *call, const struct torc_protobuf_c_method *m, int64_t timeout_ms,
                        const ProtobufCMessage **request)
{
    const torc_message *bytes;
    struct requests *r = call_requests(call, m);
    if (!r)
        return TORC_EINVAL;
    int rc = tc_api_call_receive_begin(call, timeout_ms, &bytes);
    if (rc != 1)
        return rc;
    const ProtobufCMessage *decoded = request_decode(call, r, m, bytes);
    if (!tc_api_call_receive_end(call))
        return TORC_ESTATE;
    if (decoded)
        *request = decoded;
    return decoded ? 1 : TORC_EPARSE;
}

int torc_protobuf_c_next(torc_server_call *call, const struct torc_protobuf_c_method *m, int64_t timeout_ms,
                         const ProtobufCMessage **request)
{
    if (!call || !m || !request)
        return TORC_EINVAL;
    tc_api_call_hold(call);
    int rc = next_receive(call, m, timeout_ms, request);
    tc_api_call_drop(call);
    return rc;
}

/* Does not hold the call: it is called inside on_message, and the loop holds the call until on_message returns. */
const ProtobufCMessage *torc_protobuf_c_request(torc_server_call *call, const struct torc_protobuf_c_method *m,
                                                const torc_message *message)
{
    struct requests *r = call && m && message ? call_requests(call, m) : NULL;
    return r ? request_decode(call, r, m, message) : NULL;
}

/* --- handlers --- */

static void on_unary(torc_server_call *call, const torc_message *message, void *arg)
{
    const struct bound *b = arg;
    torc_error *error = NULL;
    const ProtobufCMessage *request =
        torc_protobuf_c_unpack(b->row->method->request, torc_message_data(message), torc_message_size(message),
                               torc_server_call_arena(call), &error);
    if (request) {
        b->row->unary(call, request, b->service->handlers, b->service->arg);
        return;
    }
    char *text = malformed_text(b->row->method, error);
    torc_server_call_finish(call, TORC_STATUS_INTERNAL, text, NULL);
    tc_free(text);
}

static void on_stream(torc_server_call *call, void *arg)
{
    const struct bound *b = arg;
    b->row->stream(call, b->service->handlers, b->service->arg);
}

static void on_release(void *arg)
{
    struct bound *b = arg;
    service_unref(b->service);
    tc_free(b);
}

/* Registers the handler of a row, with a reference to the service. Returns 0, or a code with an error. */
static int method_add(torc_server *server, const struct torc_protobuf_c_handler *row, struct typed_service *s,
                      torc_error **error)
{
    struct bound *b = TC_NEW(struct bound);
    struct torc_handler handler = {.size = sizeof(handler),
                                   .unary = row->unary ? on_unary : NULL,
                                   .stream = row->unary ? NULL : on_stream,
                                   .release = on_release,
                                   .arg = b};
    *b = (struct bound){row, s};
    tc_ref_inc(&s->ref);
    int rc = torc_server_add_method(server, row->method->path, &handler, error);
    if (rc != 0)
        on_release(b);
    return rc;
}

int torc_protobuf_c_add(torc_server *server, const struct torc_protobuf_c_handler *rows, uint64_t n,
                        const void *handlers, void *arg, unsigned flags, torc_error **error)
{
    torc_error *reason = NULL, **why = error ? error : &reason;
    int rc = 0;
    if (tc_error_pending(error))
        return torc_error_code(*error);
    if (!server || !rows || !handlers || flags & ~(unsigned)TORC_PROTOBUF_C_STRICT)
        tc_error_set(why, TORC_EINVAL, TORC_LAYER_API,
                     "the server and the handlers must not be NULL, and flags must be known");
    struct typed_service *s = *why ? NULL : service_new(rows, n, handlers, arg, why);
    for (uint64_t i = 0; s && !*why && i < n; i++) {
        if (is_set(s, &rows[i]))
            method_add(server, &rows[i], s, why);
        else if (flags & TORC_PROTOBUF_C_STRICT)
            tc_error_set(why, TORC_EINVAL, TORC_LAYER_API, "%s has no handler", rows[i].method->path);
    }
    if (s)
        service_unref(s);
    rc = *why ? torc_error_code(*why) : 0;
    torc_error_free(reason);
    return rc;
}

/* --- responses --- */

/* Packs a response into *p; the caller then calls tc_packed_fini. Returns 0 with *text NULL, or a code with nothing to
 * free but the reason in *text: the call is of another method, or the response is NULL or cannot be packed. */
static int response_pack(struct tc_packed *p, torc_server_call *call, const struct torc_protobuf_c_method *m,
                         const ProtobufCMessage *response, char **text)
{
    char *why = NULL;
    *text = other_method(call, m);
    int rc = *text ? TORC_EINVAL : tc_packed_init(p, m->response, response, &why);
    if (why)
        *text = tc_asprintf("%s: the response %s", m->path, why);
    tc_free(why);
    return rc;
}

/* The caller holds a reference to the call. */
static int reply_send(torc_server_call *call, const struct torc_protobuf_c_method *m, const ProtobufCMessage *response)
{
    struct tc_packed p;
    char *text = NULL;
    int rc = response_pack(&p, call, m, response, &text);
    if (rc == 0) {
        rc = torc_server_call_reply(call, p.bytes.data, p.bytes.len);
        tc_packed_fini(&p);
        return rc;
    }
    int ended = torc_server_call_finish(call, rc == TORC_EINVAL ? TORC_STATUS_INTERNAL : TORC_STATUS_RESOURCE_EXHAUSTED,
                                        text, NULL);
    tc_free(text);
    return ended == 0 ? rc : ended;
}

int torc_protobuf_c_reply(torc_server_call *call, const struct torc_protobuf_c_method *m,
                          const ProtobufCMessage *response)
{
    if (!call || !m)
        return TORC_EINVAL;
    tc_api_call_hold(call);
    int rc = reply_send(call, m, response);
    tc_api_call_drop(call);
    return rc;
}

/* The caller holds a reference to the call. */
static int response_send(torc_server_call *call, const struct torc_protobuf_c_method *m,
                         const ProtobufCMessage *response, unsigned flags, int64_t timeout_ms)
{
    struct tc_packed p;
    char *text = NULL;
    int rc = response_pack(&p, call, m, response, &text);
    if (rc != 0)
        return call_refuse(call, text, rc);
    rc = torc_server_call_send(call, p.bytes.data, p.bytes.len, flags, timeout_ms);
    tc_packed_fini(&p);
    return rc;
}

int torc_protobuf_c_respond(torc_server_call *call, const struct torc_protobuf_c_method *m,
                            const ProtobufCMessage *response, unsigned flags, int64_t timeout_ms)
{
    if (!call || !m)
        return TORC_EINVAL;
    tc_api_call_hold(call);
    int rc = response_send(call, m, response, flags, timeout_ms);
    tc_api_call_drop(call);
    return rc;
}

/* --- failures with details: google.rpc.Status {code = 1, message = 2, details = 3}, google.protobuf.Any {type_url = 1,
 * value = 2} --- */

enum { STATUS_CODE = 1, STATUS_MESSAGE = 2, STATUS_DETAILS = 3, ANY_TYPE_URL = 1, ANY_VALUE = 2 };

/* Appends a detail to the bytes of a google.rpc.Status, as a google.protobuf.Any. */
static void detail_append(struct tc_buf *status, const ProtobufCMessage *detail)
{
    struct tc_buf url = {0}, value = {0}, any = {0};
    tc_buf_printf(&url, "type.googleapis.com/%s", detail->descriptor->name);
    tc_pack(detail, &value);
    tc_wire_append(&any, ANY_TYPE_URL, tc_buf_slice(&url));
    tc_wire_append(&any, ANY_VALUE, tc_buf_slice(&value));
    tc_wire_append(status, STATUS_DETAILS, tc_buf_slice(&any));
    tc_buf_fini(&url);
    tc_buf_fini(&value);
    tc_buf_fini(&any);
}

/* Returns new metadata: the trailers (NULL: none), and behind them grpc-status-details-bin. The caller frees it. `text`
 * may be NULL. */
static torc_metadata *trailers_with(const torc_metadata *trailers, int code, const char *text,
                                    const ProtobufCMessage *const *details, size_t n)
{
    torc_metadata *all = torc_metadata_new();
    const char *name;
    const void *value;
    size_t len;
    for (size_t i = 0; torc_metadata_at(trailers, i, &name, &value, &len) == 0; i++)
        torc_metadata_add(all, name, value, len);
    struct tc_buf status = {0};
    tc_wire_append_varint(&status, STATUS_CODE << 3 | TC_WIRE_VARINT);
    tc_wire_append_varint(&status, (uint64_t)code);
    if (text && tc_utf8_valid(tc_slice_str(text))) /* a field of type string must be UTF-8 */
        tc_wire_append(&status, STATUS_MESSAGE, tc_slice_str(text));
    for (size_t i = 0; i < n; i++)
        detail_append(&status, details[i]);
    torc_metadata_add(all, "grpc-status-details-bin", status.data, status.len);
    tc_buf_fini(&status);
    return all;
}

/* The caller holds a reference to the call. */
static int failure_send(torc_server_call *call, int code, const char *text, const torc_metadata *trailers,
                        const ProtobufCMessage *const *details, size_t n)
{
    bool bad = n > 0 && !details;
    struct tc_validation_errors errors = {0};
    for (size_t i = 0; !bad && i < n; i++)
        bad = !details[i] || !details[i]->descriptor || tc_codec_check(details[i], &errors) != 0;
    tc_validation_fini(&errors);
    bool sent = !bad && n > 0 && code > TORC_STATUS_OK && code <= TORC_STATUS_UNAUTHENTICATED;
    torc_metadata *all = sent ? trailers_with(trailers, code, text, details, n) : NULL;
    int rc = torc_server_call_finish(call, code, text, all ? all : trailers);
    torc_metadata_free(all);
    return rc == 0 && bad ? TORC_EINVAL : rc;
}

int torc_protobuf_c_finish(torc_server_call *call, int code, const char *text, const torc_metadata *trailers,
                           const ProtobufCMessage *const *details, size_t n)
{
    if (!call)
        return TORC_EINVAL;
    tc_api_call_hold(call);
    int rc = failure_send(call, code, text, trailers, details, n);
    tc_api_call_drop(call);
    return rc;
}
