/* The unary cases of gRPC's doc/interop-test-descriptions.md. custom_metadata and status_code_and_message make a
 * FullDuplexCall too, as gRPC describes them.
 *
 * A case runs on the main thread, which waits for each RPC, at most until the deadline of interop_options. A case frees
 * the results, the streams and the metadata that it makes. Payloads are the shared zero bytes of interop_payload. A
 * check that fails ends the program (CHECK in rpc.h). */
#include "rpc.h"

#define REQUEST_SIZE 271828
#define RESPONSE_SIZE 314159

void case_empty_unary(struct interop *t)
{
    Grpc__Testing__Empty empty = GRPC__TESTING__EMPTY__INIT;
    torc_result *result = grpc__testing__test_service__empty_call__call(t->channel, &empty, &interop_options);
    interop_expect(result, TORC_STATUS_OK, NULL);
    CHECK(grpc__testing__test_service__empty_call__response(result), "no response");
    CHECK(torc_message_size(torc_result_response(result)) == 0, "%zu bytes",
          torc_message_size(torc_result_response(result)));
    torc_result_free(result);
}

/* Returns the request of the large cases. Stores its payload in *payload, which the request points to. */
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
    torc_result_free(interop_unary(t->channel, &request, &interop_options));
}

void case_client_compressed_unary(struct interop *t)
{
    Grpc__Testing__Payload payload;
    Grpc__Testing__SimpleRequest request = large(&payload);
    Grpc__Testing__BoolValue compressed = GRPC__TESTING__BOOL_VALUE__INIT;
    request.expect_compressed = &compressed;
    struct torc_call_options options = interop_options;

    /* The probe: a server that checks compression rejects an expectation that is wrong. */
    compressed.value = true;
    options.gzip = TORC_OFF;
    interop_end(grpc__testing__test_service__unary_call__call(t->channel, &request, &options),
                TORC_STATUS_INVALID_ARGUMENT, NULL);

    options.gzip = 1;
    torc_result_free(interop_unary(t->channel, &request, &options));

    compressed.value = false;
    options.gzip = TORC_OFF;
    torc_result_free(interop_unary(t->channel, &request, &options));
}

void case_server_compressed_unary(struct interop *t)
{
    Grpc__Testing__Payload payload;
    Grpc__Testing__SimpleRequest request = large(&payload);
    Grpc__Testing__BoolValue compressed = GRPC__TESTING__BOOL_VALUE__INIT;
    request.response_compressed = &compressed;
    for (int i = 0; i < 2; i++) {
        compressed.value = i == 0;
        torc_result_free(interop_unary(t->channel, &request, &interop_options));
    }
}

static const char INITIAL_NAME[] = "x-grpc-test-echo-initial", INITIAL[] = "test_initial_metadata_value";
static const char TRAILING_NAME[] = "x-grpc-test-echo-trailing-bin", TRAILING[] = "\xab\xab\xab";

/* Asserts that the RPC ended with OK and that the server echoed both entries of metadata. Frees the result. */
static void check_echoed(torc_result *result)
{
    interop_expect(result, TORC_STATUS_OK, NULL);
    const char *initial = torc_metadata_find(torc_result_headers(result), INITIAL_NAME, NULL);
    CHECK(initial && strcmp(initial, INITIAL) == 0, "initial metadata \"%s\"", initial ? initial : "(none)");
    size_t len = 0;
    const char *trailing = torc_metadata_find(torc_result_trailers(result), TRAILING_NAME, &len);
    CHECK(trailing && len == 3 && memcmp(trailing, TRAILING, 3) == 0, "trailing metadata of %zu bytes", len);
    torc_result_free(result);
}

void case_custom_metadata(struct interop *t)
{
    torc_metadata *metadata = torc_metadata_new();
    CHECK(torc_metadata_add_string(metadata, INITIAL_NAME, INITIAL) == 0, "refused");
    CHECK(torc_metadata_add(metadata, TRAILING_NAME, TRAILING, 3) == 0, "refused");
    struct torc_call_options options = interop_options;
    options.metadata = metadata;

    Grpc__Testing__Payload payload;
    Grpc__Testing__SimpleRequest request = large(&payload);
    check_echoed(interop_unary(t->channel, &request, &options));

    Grpc__Testing__ResponseParameters wish = GRPC__TESTING__RESPONSE_PARAMETERS__INIT, *wishes[] = {&wish};
    wish.size = RESPONSE_SIZE;
    Grpc__Testing__StreamingOutputCallRequest streamed = GRPC__TESTING__STREAMING_OUTPUT_CALL_REQUEST__INIT;
    streamed.payload = &payload;
    streamed.response_parameters = wishes;
    streamed.n_response_parameters = 1;
    torc_stream *stream = interop_duplex(t->channel, &options);
    interop_sent(grpc__testing__test_service__full_duplex_call__send(stream, &streamed, TORC_SEND_LAST, -1));
    CHECK(interop_receive_size(stream) == RESPONSE_SIZE, "wrong size");
    check_echoed(torc_stream_finish(stream));
    torc_stream_free(stream);
    torc_metadata_free(metadata);
}

/* Makes a UnaryCall that asks for this status and must end with it. */
static void unary_status(struct interop *t, Grpc__Testing__EchoStatus *status)
{
    Grpc__Testing__SimpleRequest request = GRPC__TESTING__SIMPLE_REQUEST__INIT;
    request.response_status = status;
    interop_end(grpc__testing__test_service__unary_call__call(t->channel, &request, &interop_options), status->code,
                status->message);
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
    torc_stream *stream = interop_duplex(t->channel, &interop_options);
    interop_sent(grpc__testing__test_service__full_duplex_call__send(stream, &streamed, TORC_SEND_LAST, -1));
    CHECK(interop_receive_size(stream) == -1, "a message came");
    interop_end(torc_stream_finish(stream), TORC_STATUS_UNKNOWN, text);
    torc_stream_free(stream);
}

void case_special_status_message(struct interop *t)
{
    char text[] = "\t\ntest with whitespace\r\nand Unicode BMP \xe2\x98\xba and non-BMP \xf0\x9f\x98\x88\t\n";
    Grpc__Testing__EchoStatus status = GRPC__TESTING__ECHO_STATUS__INIT;
    status.code = TORC_STATUS_UNKNOWN;
    status.message = text;
    unary_status(t, &status);
}

void case_unimplemented_method(struct interop *t)
{
    Grpc__Testing__Empty empty = GRPC__TESTING__EMPTY__INIT;
    interop_end(grpc__testing__test_service__unimplemented_call__call(t->channel, &empty, &interop_options),
                TORC_STATUS_UNIMPLEMENTED, NULL);
}

void case_unimplemented_service(struct interop *t)
{
    Grpc__Testing__Empty empty = GRPC__TESTING__EMPTY__INIT;
    interop_end(grpc__testing__unimplemented_service__unimplemented_call__call(t->channel, &empty, &interop_options),
                TORC_STATUS_UNIMPLEMENTED, NULL);
}
