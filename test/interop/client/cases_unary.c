/* The unary cases of gRPC's doc/interop-test-descriptions.md. */
#include "rpc.h"

#define REQUEST_SIZE 271828
#define RESPONSE_SIZE 314159

void case_empty_unary(struct interop *t)
{
    Grpc__Testing__Empty empty = GRPC__TESTING__EMPTY__INIT;
    torc_result *result;
    interop_unary(t->channel, SERVICE "EmptyCall", &empty.base, NULL, &result);
    interop_expect(result, TORC_STATUS_OK, NULL);
    CHECK(torc_message_size(torc_result_response(result)) == 0, "%zu bytes",
          torc_message_size(torc_result_response(result)));
    torc_result_free(result);
}

static Grpc__Testing__SimpleRequest large(Grpc__Testing__Payload *payload)
{
    Grpc__Testing__SimpleRequest request = GRPC__TESTING__SIMPLE_REQUEST__INIT;
    *payload = interop_payload(REQUEST_SIZE);
    request.payload = payload;
    request.response_size = RESPONSE_SIZE;
    return request;
}

void case_large_unary(struct interop *t)
{
    Grpc__Testing__Payload payload;
    Grpc__Testing__SimpleRequest request = large(&payload);
    torc_result *result;
    interop_unary_ok(t->channel, &request, NULL, &result);
    torc_result_free(result);
    free(payload.body.data);
}

void case_client_compressed_unary(struct interop *t)
{
    Grpc__Testing__Payload payload;
    Grpc__Testing__SimpleRequest request = large(&payload);
    Grpc__Testing__BoolValue compressed = GRPC__TESTING__BOOL_VALUE__INIT;
    request.expect_compressed = &compressed;
    struct torc_call_options options = interop_options();
    torc_result *result;

    /* The probe: a server that checks compression rejects an expectation that is wrong. */
    compressed.value = true;
    options.gzip = TORC_OFF;
    interop_unary(t->channel, SERVICE "UnaryCall", &request.base, &options, &result);
    interop_expect(result, TORC_STATUS_INVALID_ARGUMENT, NULL);
    torc_result_free(result);

    options.gzip = 1;
    interop_unary_ok(t->channel, &request, &options, &result);
    torc_result_free(result);

    compressed.value = false;
    options.gzip = TORC_OFF;
    interop_unary_ok(t->channel, &request, &options, &result);
    torc_result_free(result);
    free(payload.body.data);
}

void case_server_compressed_unary(struct interop *t)
{
    Grpc__Testing__Payload payload;
    Grpc__Testing__SimpleRequest request = large(&payload);
    Grpc__Testing__BoolValue compressed = GRPC__TESTING__BOOL_VALUE__INIT;
    request.response_compressed = &compressed;
    for (int i = 0; i < 2; i++) {
        compressed.value = i == 0;
        torc_result *result;
        interop_unary_ok(t->channel, &request, NULL, &result);
        torc_result_free(result);
    }
    free(payload.body.data);
}

static const char INITIAL_NAME[] = "x-grpc-test-echo-initial", INITIAL[] = "test_initial_metadata_value";
static const char TRAILING_NAME[] = "x-grpc-test-echo-trailing-bin", TRAILING[] = "\xab\xab\xab";

static void check_echoed(const torc_result *result)
{
    const char *initial = torc_metadata_find(torc_result_headers(result), INITIAL_NAME, NULL);
    CHECK(initial && strcmp(initial, INITIAL) == 0, "initial metadata \"%s\"", initial ? initial : "(none)");
    size_t len = 0;
    const char *trailing = torc_metadata_find(torc_result_trailers(result), TRAILING_NAME, &len);
    CHECK(trailing && len == 3 && memcmp(trailing, TRAILING, 3) == 0, "trailing metadata of %zu bytes", len);
}

void case_custom_metadata(struct interop *t)
{
    torc_metadata *metadata = torc_metadata_new();
    CHECK(torc_metadata_add_string(metadata, INITIAL_NAME, INITIAL) == 0, "refused");
    CHECK(torc_metadata_add(metadata, TRAILING_NAME, TRAILING, 3) == 0, "refused");
    struct torc_call_options options = interop_options();
    options.metadata = metadata;

    Grpc__Testing__Payload payload;
    Grpc__Testing__SimpleRequest request = large(&payload);
    torc_result *result;
    interop_unary_ok(t->channel, &request, &options, &result);
    check_echoed(result);
    torc_result_free(result);

    Grpc__Testing__ResponseParameters wish = GRPC__TESTING__RESPONSE_PARAMETERS__INIT, *wishes[] = {&wish};
    wish.size = RESPONSE_SIZE;
    Grpc__Testing__StreamingOutputCallRequest streamed = GRPC__TESTING__STREAMING_OUTPUT_CALL_REQUEST__INIT;
    streamed.payload = &payload;
    streamed.response_parameters = wishes;
    streamed.n_response_parameters = 1;
    torc_stream *call = interop_open(t->channel, SERVICE "FullDuplexCall", &options);
    interop_send(call, &streamed.base, true);
    CHECK(interop_receive_size(call) == RESPONSE_SIZE, "wrong size");
    result = torc_stream_finish(call);
    interop_expect(result, TORC_STATUS_OK, NULL);
    check_echoed(result);
    torc_result_free(result);
    torc_stream_free(call);
    torc_metadata_free(metadata);
    free(payload.body.data);
}

static void unary_status(struct interop *t, Grpc__Testing__EchoStatus *status)
{
    Grpc__Testing__SimpleRequest request = GRPC__TESTING__SIMPLE_REQUEST__INIT;
    request.response_status = status;
    torc_result *result;
    interop_unary(t->channel, SERVICE "UnaryCall", &request.base, NULL, &result);
    interop_expect(result, status->code, status->message);
    torc_result_free(result);
}

void case_status_code_and_message(struct interop *t)
{
    char text[] = "test status message";
    Grpc__Testing__EchoStatus status = GRPC__TESTING__ECHO_STATUS__INIT;
    status.code = TORC_STATUS_UNKNOWN;
    status.message = text;
    unary_status(t, &status);

    Grpc__Testing__StreamingOutputCallRequest streamed = GRPC__TESTING__STREAMING_OUTPUT_CALL_REQUEST__INIT;
    streamed.response_status = &status;
    torc_stream *call = interop_open(t->channel, SERVICE "FullDuplexCall", NULL);
    interop_send(call, &streamed.base, true);
    CHECK(interop_receive_size(call) == -1, "a message came");
    torc_result *result;
    result = torc_stream_finish(call);
    interop_expect(result, TORC_STATUS_UNKNOWN, text);
    torc_result_free(result);
    torc_stream_free(call);
}

void case_special_status_message(struct interop *t)
{
    char text[] = "\t\ntest with whitespace\r\nand Unicode BMP \xe2\x98\xba and non-BMP \xf0\x9f\x98\x88\t\n";
    Grpc__Testing__EchoStatus status = GRPC__TESTING__ECHO_STATUS__INIT;
    status.code = TORC_STATUS_UNKNOWN;
    status.message = text;
    unary_status(t, &status);
}

static void unimplemented(struct interop *t, const char *method)
{
    Grpc__Testing__Empty empty = GRPC__TESTING__EMPTY__INIT;
    torc_result *result;
    interop_unary(t->channel, method, &empty.base, NULL, &result);
    interop_expect(result, TORC_STATUS_UNIMPLEMENTED, NULL);
    torc_result_free(result);
}

void case_unimplemented_method(struct interop *t)
{
    unimplemented(t, SERVICE "UnimplementedCall");
}

void case_unimplemented_service(struct interop *t)
{
    unimplemented(t, "grpc.testing.UnimplementedService/UnimplementedCall");
}
