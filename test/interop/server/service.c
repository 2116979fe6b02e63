/* grpc.testing.TestService, on generated code.
 *
 * EmptyCall, UnaryCall and StreamingInputCall run on the loop's thread. StreamingInputCall uses events, whose messages
 * say whether they came compressed. StreamingOutputCall and FullDuplexCall run on threads of a pool, where they wait
 * for their client. UnimplementedCall has no handler and UnimplementedService is not added, as the suite wants it.
 *
 * A call belongs to its handler until it is finished (`finish`, or the reply of a call with one response), and is not
 * used afterwards. Payloads are in the call's arena, and so is the packed response of a UnaryCall. */
#include "service.h"

#include <poll.h>
#include <stdlib.h>

#define ECHO_INITIAL "x-grpc-test-echo-initial"
#define ECHO_TRAILING "x-grpc-test-echo-trailing-bin"

/* The largest payload of a response. A client accepts less by default (4 MiB). */
enum { MAX_BODY = 64 << 20 };

/* Sends the response's headers with the client's ECHO_INITIAL, if the request has it. */
static void echo_initial(torc_server_call *call)
{
    size_t n;
    const char *value = torc_metadata_find(torc_server_call_metadata(call), ECHO_INITIAL, &n);
    if (!value)
        return;
    torc_metadata *metadata = torc_metadata_new();
    torc_metadata_add(metadata, ECHO_INITIAL, value, n);
    torc_server_call_send_headers(call, metadata);
    torc_metadata_free(metadata);
}

/* Finishes the call, with the client's ECHO_TRAILING if the request has it. */
static void finish(torc_server_call *call, int code, const char *text)
{
    size_t n;
    const char *value = torc_metadata_find(torc_server_call_metadata(call), ECHO_TRAILING, &n);
    torc_metadata *trailers = value ? torc_metadata_new() : NULL;
    if (value)
        torc_metadata_add(trailers, ECHO_TRAILING, value, n);
    torc_server_call_finish(call, code, text, trailers);
    torc_metadata_free(trailers);
}

/* Returns true if the message came compressed or uncompressed as the client says, or the client does not say. Otherwise
 * finishes the call. */
static bool compressed_as_expected(torc_server_call *call, const torc_message *message,
                                   const Grpc__Testing__BoolValue *expected)
{
    if (!expected || torc_message_compressed(message) == expected->value)
        return true;
    finish(call, TORC_STATUS_INVALID_ARGUMENT,
           expected->value ? "the message came uncompressed" : "the message came compressed");
    return false;
}

static unsigned flags_of(const Grpc__Testing__BoolValue *compressed)
{
    return compressed && compressed->value ? TORC_SEND_COMPRESS : TORC_SEND_PLAIN;
}

/* Makes a payload of zero bytes in the call's arena. Returns false, with the call finished, if the size is out of
 * range. */
static bool payload_make(Grpc__Testing__Payload *payload, torc_server_call *call, int32_t size)
{
    grpc__testing__payload__init(payload);
    if (size < 0 || size > MAX_BODY) {
        finish(call, TORC_STATUS_INVALID_ARGUMENT, "a payload has 0 to 67108864 bytes");
        return false;
    }
    payload->body.len = (size_t)size;
    payload->body.data = torc_arena_alloc(torc_server_call_arena(call), (size_t)size + 1);
    memset(payload->body.data, 0, (size_t)size);
    return true;
}

/* Finishes the call with the status that the client asked for. Returns false, with nothing done, if it asked for none
 * or for OK. */
static bool ended_as_asked(torc_server_call *call, const Grpc__Testing__EchoStatus *status)
{
    if (!status || status->code == TORC_STATUS_OK)
        return false;
    finish(call, status->code, status->message);
    return true;
}

/* --- load --- */

/* Records a value of the server's load, or with `orca` NULL of the call's. */
static void load_set(torc_orca *orca, torc_server_call *call, int metric, const char *name, double value)
{
    if (orca)
        torc_orca_set(orca, metric, name, value);
    else
        torc_orca_record(call, metric, name, value);
}

/* Records the values of the client's report as the server's load, or with `orca` NULL as the call's. The report may be
 * NULL. */
static void load_take(torc_orca *orca, torc_server_call *call, const Grpc__Testing__TestOrcaReport *report)
{
    if (!report)
        return;
    load_set(orca, call, TORC_ORCA_CPU, NULL, report->cpu_utilization);
    load_set(orca, call, TORC_ORCA_MEMORY, NULL, report->memory_utilization);
    for (size_t i = 0; i < report->n_request_cost; i++)
        load_set(orca, call, TORC_ORCA_REQUEST_COST, report->request_cost[i]->key, report->request_cost[i]->value);
    for (size_t i = 0; i < report->n_utilization; i++)
        load_set(orca, call, TORC_ORCA_UTILIZATION, report->utilization[i]->key, report->utilization[i]->value);
}

/* --- methods of one request and one response --- */

static void empty_call(torc_server_call *call, const Grpc__Testing__Empty *request, void *arg)
{
    (void)request, (void)arg;
    echo_initial(call);
    grpc__testing__test_service__empty_call__reply(call, &(Grpc__Testing__Empty)GRPC__TESTING__EMPTY__INIT);
}

static void unary_call(torc_server_call *call, const Grpc__Testing__SimpleRequest *request, void *arg)
{
    Grpc__Testing__SimpleResponse response = GRPC__TESTING__SIMPLE_RESPONSE__INIT;
    Grpc__Testing__Payload payload;
    (void)arg;
    if (!compressed_as_expected(call, torc_server_call_request(call), request->expect_compressed))
        return;
    echo_initial(call);
    load_take(NULL, call, request->orca_per_query_report);
    if (ended_as_asked(call, request->response_status) || !payload_make(&payload, call, request->response_size))
        return;
    response.payload = &payload;
    size_t n;
    const void *bytes = torc_protobuf_c_pack(&response.base, torc_server_call_arena(call), &n, NULL);
    torc_server_call_send(call, bytes, n, flags_of(request->response_compressed), 0);
    finish(call, TORC_STATUS_OK, NULL);
}

/* --- the requests of a stream --- */

/* The state of a StreamingInputCall. `release` of the events frees it. */
struct input {
    int32_t total; /* bytes of the payloads that have come */
};

static void on_input(torc_server_call *call, const torc_message *message, void *arg)
{
    struct input *input = arg;
    const Grpc__Testing__StreamingInputCallRequest *request =
        grpc__testing__test_service__streaming_input_call__request(call, message);
    if (!request)
        finish(call, TORC_STATUS_INTERNAL, "malformed StreamingInputCallRequest");
    if (!request || !compressed_as_expected(call, message, request->expect_compressed))
        return;
    input->total += request->payload ? (int32_t)request->payload->body.len : 0;
    torc_server_call_want(call, 1);
}

static void on_last_input(torc_server_call *call, void *arg)
{
    Grpc__Testing__StreamingInputCallResponse response = GRPC__TESTING__STREAMING_INPUT_CALL_RESPONSE__INIT;
    response.aggregated_payload_size = ((struct input *)arg)->total;
    grpc__testing__test_service__streaming_input_call__reply(call, &response);
}

static void on_input_cancelled(torc_server_call *call, void *arg)
{
    (void)arg;
    finish(call, TORC_STATUS_CANCELLED, NULL);
}

static void streaming_input_call(torc_server_call *call, void *arg)
{
    static const struct torc_server_call_events events = {TORC_SIZE(torc_server_call_events), .on_message = on_input,
                                                          .on_half_close = on_last_input,
                                                          .on_cancel = on_input_cancelled, .release = free};
    struct input *input = calloc(1, sizeof(*input));
    (void)arg;
    echo_initial(call);
    if (input && torc_server_call_set_events(call, &events, input) == 0) {
        torc_server_call_want(call, 1);
        return;
    }
    free(input);
    finish(call, TORC_STATUS_CANCELLED, NULL);
}

/* --- the answers of a stream --- */

typedef int (*reply_fn)(torc_server_call *call, const Grpc__Testing__StreamingOutputCallResponse *response,
                        unsigned flags, int64_t timeout_ms);

/* Sends the responses that a request asks for; waits for the client. Returns false if the call was finished. */
static bool answer(torc_server_call *call, const Grpc__Testing__StreamingOutputCallRequest *request, reply_fn reply)
{
    if (ended_as_asked(call, request->response_status))
        return false;
    for (size_t i = 0; i < request->n_response_parameters; i++) {
        const Grpc__Testing__ResponseParameters *wish = request->response_parameters[i];
        Grpc__Testing__StreamingOutputCallResponse response = GRPC__TESTING__STREAMING_OUTPUT_CALL_RESPONSE__INIT;
        Grpc__Testing__Payload payload;
        if (wish->interval_us > 0) /* the suite wants this pause */
            poll(NULL, 0, wish->interval_us / 1000);
        if (!payload_make(&payload, call, wish->size))
            return false;
        response.payload = &payload;
        if (wish->fill_peer_socket_address && wish->fill_peer_socket_address->value)
            response.peer_socket_address = (char *)(uintptr_t)torc_server_call_peer(call);
        if (reply(call, &response, flags_of(wish->compressed), -1) != 0) {
            finish(call, TORC_STATUS_CANCELLED, NULL);
            return false;
        }
    }
    return true;
}

static void streaming_output_call(torc_server_call *call, const Grpc__Testing__StreamingOutputCallRequest *request,
                                  void *arg)
{
    (void)arg;
    echo_initial(call);
    if (answer(call, request, grpc__testing__test_service__streaming_output_call__reply))
        finish(call, TORC_STATUS_OK, NULL);
}

static void full_duplex_call(torc_server_call *call, void *arg)
{
    const Grpc__Testing__StreamingOutputCallRequest *request;
    int rc;
    echo_initial(call);
    while ((rc = grpc__testing__test_service__full_duplex_call__next(call, -1, &request)) == 1) {
        load_take(arg, call, request->orca_oob_report);
        if (!answer(call, request, grpc__testing__test_service__full_duplex_call__reply))
            return;
    }
    finish(call, rc == 0 ? TORC_STATUS_OK : TORC_STATUS_INTERNAL, rc == 0 ? NULL : torc_strerror(rc));
}

void interop_service_add(torc_server *server, torc_pool *pool, torc_orca *orca, torc_error **error)
{
    static const struct grpc__testing__test_service__handlers handlers = {
        TORC_SIZE(grpc__testing__test_service__handlers),
        .empty_call = empty_call,
        .unary_call = unary_call,
        .streaming_output_call = streaming_output_call,
        .streaming_input_call = streaming_input_call,
        .full_duplex_call = full_duplex_call,
    };
    static const char *const waiting[] = {"grpc.testing.TestService/StreamingOutputCall",
                                          "grpc.testing.TestService/FullDuplexCall"};
    struct torc_method_options options = {TORC_SIZE(torc_method_options), .pool = pool};
    grpc__testing__test_service__add(server, &handlers, orca, error);
    for (size_t i = 0; i < sizeof(waiting) / sizeof(waiting[0]); i++)
        torc_server_limit(server, waiting[i], &options, error);
}
