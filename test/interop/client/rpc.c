/* The kit of gRPC's interop cases. A check that fails ends the program. */
#include "rpc.h"

const struct torc_call_options interop_options = {TORC_SIZE(torc_call_options), .timeout_ms = 20000};

torc_channel *interop_channel(struct interop *t)
{
    torc_error *error = NULL;
    torc_channel *channel = torc_channel_new(t->runtime, t->target, &t->options, &error);
    CHECK(channel, "%s: %s", t->target, torc_error_text(error));
    return channel;
}

Grpc__Testing__Payload interop_payload(size_t n)
{
    static uint8_t zeros[300000];
    Grpc__Testing__Payload payload = GRPC__TESTING__PAYLOAD__INIT;
    CHECK(n <= sizeof(zeros), "%zu bytes", n);
    payload.body = (ProtobufCBinaryData){n, zeros};
    return payload;
}

/* Returns the number of bytes, each of which must be 0; a payload that is NULL has none. */
static size_t zeros_of(const Grpc__Testing__Payload *payload)
{
    size_t n = payload ? payload->body.len : 0;
    for (size_t i = 0; i < n; i++)
        CHECK(payload->body.data[i] == 0, "byte %zu", i);
    return n;
}

void interop_expect(const torc_result *result, int code, const char *text)
{
    int rc = torc_error_code(torc_result_error(result));
    CHECK(rc == 0 || rc == TORC_ESTATUS, "could not be started: %s", torc_result_text(result));
    CHECK(torc_result_code(result) == code, "%s (%s), wanted %s", torc_status_code_name(torc_result_code(result)),
          torc_result_text(result), torc_status_code_name(code));
    CHECK(!text || strcmp(torc_result_text(result), text) == 0, "message \"%s\", wanted \"%s\"",
          torc_result_text(result), text);
}

void interop_end(torc_result *result, int code, const char *text)
{
    interop_expect(result, code, text);
    torc_result_free(result);
}

torc_result *interop_unary(torc_channel *channel, const Grpc__Testing__SimpleRequest *request,
                           const struct torc_call_options *options)
{
    torc_result *result = grpc__testing__test_service__unary_call__call(channel, request, options);
    interop_expect(result, TORC_STATUS_OK, NULL);
    size_t n = zeros_of(grpc__testing__test_service__unary_call__response(result)->payload);
    CHECK(n == (size_t)request->response_size, "payload of %zu bytes", n);
    return result;
}

void interop_sent(int rc)
{
    CHECK(rc == 0 || rc == TORC_ECLOSED, "%s", torc_strerror(rc));
}

torc_stream *interop_duplex(torc_channel *channel, const struct torc_call_options *options)
{
    torc_error *error = NULL;
    torc_stream *stream = grpc__testing__test_service__full_duplex_call__open(channel, options, &error);
    CHECK(stream, "%s", torc_error_text(error));
    return stream;
}

long interop_payload_size(const Grpc__Testing__StreamingOutputCallResponse *response)
{
    return (long)zeros_of(response->payload);
}

long interop_receive_size(torc_stream *stream)
{
    const Grpc__Testing__StreamingOutputCallResponse *response = NULL;
    int rc = grpc__testing__test_service__full_duplex_call__receive(stream, -1, &response);
    CHECK(rc >= 0, "%s", torc_strerror(rc));
    return rc ? interop_payload_size(response) : -1;
}

void interop_finish(torc_stream *stream, int code)
{
    interop_end(torc_stream_finish(stream), code, NULL);
    torc_stream_free(stream);
}
