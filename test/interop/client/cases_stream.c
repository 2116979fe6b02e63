/* The streaming cases of gRPC's doc/interop-test-descriptions.md, and a case of connection scaling (A105), which needs
 * streams that stay open.
 *
 * A case runs on the main thread, which waits for messages and statuses. A stream that a function returns is the
 * caller's, who ends it with interop_finish or finish_input: both wait for the RPC's end, check it and free the
 * stream. Where a request asks for payloads, a response must have as many bytes as were asked for, all of them 0. A
 * check that fails ends the program (CHECK in rpc.h). */
#include "rpc.h"

static const size_t request_sizes[] = {27182, 8, 1828, 45904};
static const int32_t response_sizes[] = {31415, 9, 2653, 58979};
enum { STEPS = 4 };

/* Begins a StreamingInputCall. */
static torc_stream *open_input(torc_channel *channel, const struct torc_call_options *options)
{
    torc_error *error = NULL;
    torc_stream *stream = grpc__testing__test_service__streaming_input_call__open(channel, options, &error);
    CHECK(stream, "%s", torc_error_text(error));
    return stream;
}

/* Sends a request with a payload of `size` bytes. `compressed`: whether the request says that it comes compressed;
 * NULL: the request does not say. `flags`: enum torc_send_flags. */
static void send_input(torc_stream *stream, size_t size, const bool *compressed, unsigned flags)
{
    Grpc__Testing__Payload payload = interop_payload(size);
    Grpc__Testing__BoolValue expect = GRPC__TESTING__BOOL_VALUE__INIT;
    Grpc__Testing__StreamingInputCallRequest request = GRPC__TESTING__STREAMING_INPUT_CALL_REQUEST__INIT;
    request.payload = &payload;
    if (compressed) {
        expect.value = *compressed;
        request.expect_compressed = &expect;
    }
    interop_sent(grpc__testing__test_service__streaming_input_call__send(stream, &request, flags, -1));
}

/* Waits for the end, which must be OK with a response that counts `total` bytes of payloads. Frees the stream. */
static void finish_input(torc_stream *stream, int32_t total)
{
    torc_result *result = torc_stream_finish(stream);
    interop_expect(result, TORC_STATUS_OK, NULL);
    const Grpc__Testing__StreamingInputCallResponse *response =
        grpc__testing__test_service__streaming_input_call__response(result);
    CHECK(response->aggregated_payload_size == total, "%d, wanted %d", response->aggregated_payload_size, total);
    torc_result_free(result);
    torc_stream_free(stream);
}

void case_client_streaming(struct interop *t)
{
    torc_stream *stream = open_input(t->channel, &interop_options);
    for (int i = 0; i < STEPS; i++)
        send_input(stream, request_sizes[i], NULL, i == STEPS - 1 ? TORC_SEND_LAST : 0);
    finish_input(stream, 74922);
}

/* The probe, a message that does not come compressed as it says, has a stream of its own. The compressed message and
 * the uncompressed one share the other stream. */
void case_client_compressed_streaming(struct interop *t)
{
    const bool yes = true, no = false;
    struct torc_call_options options = interop_options;
    options.gzip = TORC_OFF;
    torc_stream *stream = open_input(t->channel, &options);
    send_input(stream, 27182, &yes, TORC_SEND_LAST);
    interop_finish(stream, TORC_STATUS_INVALID_ARGUMENT);

    options.gzip = 1;
    stream = open_input(t->channel, &options);
    send_input(stream, 27182, &yes, 0);
    send_input(stream, 45904, &no, TORC_SEND_PLAIN | TORC_SEND_LAST);
    finish_input(stream, 73086);
}

/* Makes a StreamingOutputCall for n responses of these sizes, at most STEPS, which must come in this order, and no
 * others. `compressed`: for each response, whether it is asked for compressed; NULL: the request does not say. Whether
 * a response came compressed is not checked. */
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
    torc_error *error = NULL;
    torc_stream *stream =
        grpc__testing__test_service__streaming_output_call__open(channel, &request, &interop_options, &error);
    CHECK(stream, "%s", torc_error_text(error));
    const Grpc__Testing__StreamingOutputCallResponse *response;
    for (size_t i = 0; i < n; i++) {
        CHECK(grpc__testing__test_service__streaming_output_call__receive(stream, -1, &response) == 1, "no message");
        long size = interop_payload_size(response);
        CHECK(size == sizes[i], "message %zu: %ld bytes, wanted %d", i, size, sizes[i]);
    }
    CHECK(grpc__testing__test_service__streaming_output_call__receive(stream, -1, &response) == 0, "too many");
    interop_finish(stream, TORC_STATUS_OK);
}

void case_server_streaming(struct interop *t)
{
    output_call(t->channel, response_sizes, NULL, STEPS);
}

void case_server_compressed_streaming(struct interop *t)
{
    output_call(t->channel, (const int32_t[]){31415, 92653}, (const bool[]){true, false}, 2);
}

/* Sends a request with a payload of payload_size bytes, which asks for one response of `size` bytes. */
static void send_output(torc_stream *stream, size_t payload_size, int32_t size)
{
    Grpc__Testing__Payload payload = interop_payload(payload_size);
    Grpc__Testing__ResponseParameters wish = GRPC__TESTING__RESPONSE_PARAMETERS__INIT, *wishes[] = {&wish};
    wish.size = size;
    Grpc__Testing__StreamingOutputCallRequest request = GRPC__TESTING__STREAMING_OUTPUT_CALL_REQUEST__INIT;
    request.payload = &payload;
    request.response_parameters = wishes;
    request.n_response_parameters = 1;
    interop_sent(grpc__testing__test_service__full_duplex_call__send(stream, &request, 0, -1));
}

void case_ping_pong(struct interop *t)
{
    torc_stream *stream = interop_duplex(t->channel, &interop_options);
    for (int i = 0; i < STEPS; i++) {
        send_output(stream, request_sizes[i], response_sizes[i]);
        long size = interop_receive_size(stream);
        CHECK(size == response_sizes[i], "message %d: %ld bytes", i, size);
    }
    CHECK(torc_stream_half_close(stream) == 0, "half-close");
    CHECK(interop_receive_size(stream) == -1, "a message too many");
    interop_finish(stream, TORC_STATUS_OK);
}

void case_empty_stream(struct interop *t)
{
    torc_stream *stream = interop_duplex(t->channel, &interop_options);
    CHECK(torc_stream_half_close(stream) == 0, "half-close");
    CHECK(interop_receive_size(stream) == -1, "a message came");
    interop_finish(stream, TORC_STATUS_OK);
}

void case_cancel_after_begin(struct interop *t)
{
    torc_stream *stream = open_input(t->channel, &interop_options);
    torc_stream_cancel(stream);
    interop_finish(stream, TORC_STATUS_CANCELLED);
}

void case_cancel_after_first_response(struct interop *t)
{
    torc_stream *stream = interop_duplex(t->channel, &interop_options);
    send_output(stream, 27182, 31415);
    CHECK(interop_receive_size(stream) == 31415, "wrong size");
    torc_stream_cancel(stream);
    interop_finish(stream, TORC_STATUS_CANCELLED);
}

void case_timeout_on_sleeping_server(struct interop *t)
{
    /* Makes the connection first, so that the timeout of 1 ms is not spent on connecting. */
    case_empty_unary(t);
    struct torc_call_options options = interop_options;
    options.timeout_ms = 1;
    torc_stream *stream = interop_duplex(t->channel, &options);
    Grpc__Testing__Payload payload = interop_payload(27182);
    Grpc__Testing__StreamingOutputCallRequest request = GRPC__TESTING__STREAMING_OUTPUT_CALL_REQUEST__INIT;
    request.payload = &payload;
    interop_sent(grpc__testing__test_service__full_duplex_call__send(stream, &request, 0, -1));
    CHECK(interop_receive_size(stream) == -1, "a message came");
    interop_finish(stream, TORC_STATUS_DEADLINE_EXCEEDED);
}

enum { PEER_MAX = 128 };

/* Opens a stream and stores in `peer` the client's address as the server sees it. Streams on one connection have the
 * same address. */
static torc_stream *open_scaled(torc_channel *channel, char peer[PEER_MAX])
{
    torc_stream *stream = interop_duplex(channel, &interop_options);
    Grpc__Testing__BoolValue yes = GRPC__TESTING__BOOL_VALUE__INIT;
    Grpc__Testing__ResponseParameters wish = GRPC__TESTING__RESPONSE_PARAMETERS__INIT, *wishes[] = {&wish};
    Grpc__Testing__StreamingOutputCallRequest request = GRPC__TESTING__STREAMING_OUTPUT_CALL_REQUEST__INIT;
    const Grpc__Testing__StreamingOutputCallResponse *response;
    yes.value = true;
    wish.fill_peer_socket_address = &yes;
    request.response_parameters = wishes;
    request.n_response_parameters = 1;
    interop_sent(grpc__testing__test_service__full_duplex_call__send(stream, &request, 0, -1));
    CHECK(grpc__testing__test_service__full_duplex_call__receive(stream, -1, &response) == 1, "no message");
    CHECK(response->peer_socket_address && response->peer_socket_address[0], "no peer_socket_address");
    snprintf(peer, PEER_MAX, "%s", response->peer_socket_address);
    return stream;
}

/* A105, against a server that allows 2 streams on a connection: the third stream goes on a second connection. */
void case_connection_scaling(struct interop *t)
{
    char peers[3][PEER_MAX];
    torc_stream *streams[3];
    t->options.service_config_json = "{\"connectionScaling\": {\"maxConnectionsPerSubchannel\": 2}}";
    torc_channel *channel = interop_channel(t);
    for (int i = 0; i < 3; i++)
        streams[i] = open_scaled(channel, peers[i]);
    CHECK(strcmp(peers[0], peers[1]) == 0, "%s, %s", peers[0], peers[1]);
    CHECK(strcmp(peers[0], peers[2]) != 0, "%s three times", peers[0]);
    for (int i = 0; i < 3; i++) {
        CHECK(torc_stream_half_close(streams[i]) == 0, "half-close");
        interop_finish(streams[i], TORC_STATUS_OK);
    }
    torc_channel_free(channel);
}
