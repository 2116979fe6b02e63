/* The streaming cases of gRPC's doc/interop-test-descriptions.md. */
#include "rpc.h"

static const size_t request_sizes[] = {27182, 8, 1828, 45904};
static const int32_t response_sizes[] = {31415, 9, 2653, 58979};
enum { STEPS = 4 };

static void send_input(torc_stream *call, size_t size, const bool *compressed, bool last)
{
    Grpc__Testing__Payload payload = interop_payload(size);
    Grpc__Testing__BoolValue expect = GRPC__TESTING__BOOL_VALUE__INIT;
    Grpc__Testing__StreamingInputCallRequest request = GRPC__TESTING__STREAMING_INPUT_CALL_REQUEST__INIT;
    request.payload = &payload;
    if (compressed) {
        expect.value = *compressed;
        request.expect_compressed = &expect;
    }
    interop_send(call, &request.base, last);
    free(payload.body.data);
}

static void finish_input(torc_stream *call, int32_t total)
{
    torc_result *result;
    result = torc_stream_finish(call);
    interop_expect(result, TORC_STATUS_OK, NULL);
    CHECK(torc_result_response(result), "no response");
    Grpc__Testing__StreamingInputCallResponse *response =
        interop_unpack(&grpc__testing__streaming_input_call_response__descriptor, torc_result_response(result));
    CHECK(response->aggregated_payload_size == total, "%d, wanted %d", response->aggregated_payload_size, total);
    protobuf_c_message_free_unpacked(&response->base, NULL);
    torc_result_free(result);
    torc_stream_free(call);
}

void case_client_streaming(struct interop *t)
{
    torc_stream *call = interop_open(t->channel, SERVICE "StreamingInputCall", NULL);
    for (int i = 0; i < STEPS; i++)
        send_input(call, request_sizes[i], NULL, i == STEPS - 1);
    finish_input(call, 74922);
}

/* Torc compresses by call, not by message: the description switches within one stream; here are two streams. */
void case_client_compressed_streaming(struct interop *t)
{
    const bool yes = true, no = false;
    struct torc_call_options options = interop_options();
    options.gzip = TORC_OFF;
    torc_stream *call = interop_open(t->channel, SERVICE "StreamingInputCall", &options);
    send_input(call, 27182, &yes, true);
    interop_finish(call, TORC_STATUS_INVALID_ARGUMENT);

    options.gzip = 1;
    call = interop_open(t->channel, SERVICE "StreamingInputCall", &options);
    send_input(call, 27182, &yes, false);
    send_input(call, 45904, &yes, true);
    finish_input(call, 73086);

    options.gzip = TORC_OFF;
    call = interop_open(t->channel, SERVICE "StreamingInputCall", &options);
    send_input(call, 45904, &no, true);
    finish_input(call, 45904);
}

static void output_call(torc_channel *channel, const int32_t *sizes, const bool *compressed, size_t n)
{
    Grpc__Testing__ResponseParameters wishes[STEPS], *list[STEPS];
    Grpc__Testing__BoolValue flags[STEPS];
    for (size_t i = 0; i < n; i++) {
        grpc__testing__response_parameters__init(&wishes[i]);
        grpc__testing__bool_value__init(&flags[i]);
        wishes[i].size = sizes[i];
        if (compressed) {
            flags[i].value = compressed[i];
            wishes[i].compressed = &flags[i];
        }
        list[i] = &wishes[i];
    }
    Grpc__Testing__StreamingOutputCallRequest request = GRPC__TESTING__STREAMING_OUTPUT_CALL_REQUEST__INIT;
    request.response_parameters = list;
    request.n_response_parameters = n;
    torc_stream *call = interop_open(channel, SERVICE "StreamingOutputCall", NULL);
    interop_send(call, &request.base, true);
    for (size_t i = 0; i < n; i++) {
        long size = interop_receive_size(call);
        CHECK(size == sizes[i], "message %zu: %ld bytes, wanted %d", i, size, sizes[i]);
    }
    CHECK(interop_receive_size(call) == -1, "a message too many");
    interop_finish(call, TORC_STATUS_OK);
}

void case_server_streaming(struct interop *t)
{
    output_call(t->channel, response_sizes, NULL, STEPS);
}

void case_server_compressed_streaming(struct interop *t)
{
    output_call(t->channel, (const int32_t[]){31415, 92653}, (const bool[]){true, false}, 2);
}

static void send_output(torc_stream *call, size_t payload_size, int32_t size, int32_t interval_us, bool last)
{
    Grpc__Testing__Payload payload = interop_payload(payload_size);
    Grpc__Testing__ResponseParameters wish = GRPC__TESTING__RESPONSE_PARAMETERS__INIT, *wishes[] = {&wish};
    wish.size = size;
    wish.interval_us = interval_us;
    Grpc__Testing__StreamingOutputCallRequest request = GRPC__TESTING__STREAMING_OUTPUT_CALL_REQUEST__INIT;
    request.payload = &payload;
    request.response_parameters = wishes;
    request.n_response_parameters = 1;
    interop_send(call, &request.base, last);
    free(payload.body.data);
}

void case_ping_pong(struct interop *t)
{
    torc_stream *call = interop_open(t->channel, SERVICE "FullDuplexCall", NULL);
    for (int i = 0; i < STEPS; i++) {
        send_output(call, request_sizes[i], response_sizes[i], 0, false);
        long size = interop_receive_size(call);
        CHECK(size == response_sizes[i], "message %d: %ld bytes", i, size);
    }
    CHECK(torc_stream_half_close(call) == 0, "half-close");
    CHECK(interop_receive_size(call) == -1, "a message too many");
    interop_finish(call, TORC_STATUS_OK);
}

void case_empty_stream(struct interop *t)
{
    torc_stream *call = interop_open(t->channel, SERVICE "FullDuplexCall", NULL);
    CHECK(torc_stream_half_close(call) == 0, "half-close");
    CHECK(interop_receive_size(call) == -1, "a message came");
    interop_finish(call, TORC_STATUS_OK);
}

void case_cancel_after_begin(struct interop *t)
{
    torc_stream *call = interop_open(t->channel, SERVICE "StreamingInputCall", NULL);
    torc_stream_cancel(call);
    interop_finish(call, TORC_STATUS_CANCELLED);
}

void case_cancel_after_first_response(struct interop *t)
{
    torc_stream *call = interop_open(t->channel, SERVICE "FullDuplexCall", NULL);
    send_output(call, 27182, 31415, 0, false);
    CHECK(interop_receive_size(call) == 31415, "wrong size");
    torc_stream_cancel(call);
    interop_finish(call, TORC_STATUS_CANCELLED);
}

void case_timeout_on_sleeping_server(struct interop *t)
{
    /* A connection is made first: the deadline must pass at the server, not on the way. */
    case_empty_unary(t);
    struct torc_call_options options = interop_options();
    options.timeout_ms = 1;
    torc_stream *call = interop_open(t->channel, SERVICE "FullDuplexCall", &options);
    Grpc__Testing__Payload payload = interop_payload(27182);
    Grpc__Testing__StreamingOutputCallRequest request = GRPC__TESTING__STREAMING_OUTPUT_CALL_REQUEST__INIT;
    request.payload = &payload;
    interop_send(call, &request.base, false);
    free(payload.body.data);
    CHECK(interop_receive_size(call) == -1, "a message came");
    interop_finish(call, TORC_STATUS_DEADLINE_EXCEEDED);
}
