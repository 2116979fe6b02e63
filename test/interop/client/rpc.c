/* Calls with protobuf-c messages over the public API; a check that fails ends the program. */
#include "rpc.h"

#define DEADLINE_MS 20000

torc_channel *interop_channel(struct interop *t)
{
    torc_error *error = NULL;
    torc_channel *channel = torc_channel_new(t->runtime, t->target, &t->options, &error);
    CHECK(channel, "%s: %s", t->target, torc_error_text(error));
    return channel;
}

struct torc_call_options interop_options(void)
{
    struct torc_call_options options = {TORC_SIZE(torc_call_options), .timeout_ms = DEADLINE_MS};
    return options;
}

static uint8_t *pack(const ProtobufCMessage *message, size_t *size)
{
    *size = protobuf_c_message_get_packed_size(message);
    uint8_t *bytes = malloc(*size + 1);
    CHECK(bytes, "no memory for %zu bytes", *size);
    protobuf_c_message_pack(message, bytes);
    return bytes;
}

void interop_unary(torc_channel *channel, const char *method, const ProtobufCMessage *request,
                   const struct torc_call_options *options, torc_result **result)
{
    struct torc_call_options plain = interop_options();
    size_t size;
    uint8_t *bytes = pack(request, &size);
    *result = torc_unary(channel, method, bytes, size, options ? options : &plain);
    free(bytes);
    int rc = torc_error_code(torc_result_error(*result));
    CHECK(rc == 0 || rc == TORC_ESTATUS, "%s could not be started: %s", method, torc_result_text(*result));
}

void *interop_unpack(const ProtobufCMessageDescriptor *type, const torc_message *message)
{
    void *unpacked =
        protobuf_c_message_unpack(type, NULL, torc_message_size(message), (const uint8_t *)torc_message_data(message));
    CHECK(unpacked, "malformed %s of %zu bytes", type->name, torc_message_size(message));
    return unpacked;
}

static bool all_zero(ProtobufCBinaryData bytes)
{
    for (size_t i = 0; i < bytes.len; i++)
        if (bytes.data[i] != 0)
            return false;
    return true;
}

void interop_expect(const torc_result *result, int code, const char *message)
{
    CHECK(torc_result_code(result) == code, "%s (%s), wanted %s", torc_status_code_name(torc_result_code(result)),
          torc_result_text(result), torc_status_code_name(code));
    CHECK(!message || strcmp(torc_result_text(result), message) == 0, "message \"%s\", wanted \"%s\"",
          torc_result_text(result), message);
}

void interop_unary_ok(torc_channel *channel, const Grpc__Testing__SimpleRequest *request,
                      const struct torc_call_options *options, torc_result **result)
{
    interop_unary(channel, SERVICE "UnaryCall", &request->base, options, result);
    interop_expect(*result, TORC_STATUS_OK, NULL);
    Grpc__Testing__SimpleResponse *response =
        interop_unpack(&grpc__testing__simple_response__descriptor, torc_result_response(*result));
    size_t got = response->payload ? response->payload->body.len : 0;
    CHECK(got == (size_t)request->response_size, "payload of %zu bytes", got);
    CHECK(got == 0 || all_zero(response->payload->body), "bytes that are not zero");
    protobuf_c_message_free_unpacked(&response->base, NULL);
}

torc_stream *interop_open(torc_channel *channel, const char *method, const struct torc_call_options *options)
{
    struct torc_call_options plain = interop_options();
    torc_error *error = NULL;
    torc_stream *call = torc_stream_open(channel, method, options ? options : &plain, &error);
    CHECK(call, "%s could not be started: %s", method, torc_error_text(error));
    return call;
}

void interop_send(torc_stream *call, const ProtobufCMessage *message, bool last)
{
    size_t size;
    uint8_t *bytes = pack(message, &size);
    int rc = torc_stream_send(call, bytes, size, last ? TORC_SEND_LAST : 0, -1);
    free(bytes);
    /* The server may have sent its last message already; torc_stream_finish has the status. */
    CHECK(rc == 0 || rc == TORC_ECLOSED, "%s", torc_strerror(rc));
}

long interop_receive_size(torc_stream *call)
{
    const torc_message *message = NULL;
    int rc = torc_stream_receive(call, -1, &message);
    CHECK(rc >= 0, "%s", torc_strerror(rc));
    if (rc == 0)
        return -1;
    Grpc__Testing__StreamingOutputCallResponse *response =
        interop_unpack(&grpc__testing__streaming_output_call_response__descriptor, message);
    long size = response->payload ? (long)response->payload->body.len : 0;
    CHECK(size == 0 || all_zero(response->payload->body), "bytes that are not zero");
    protobuf_c_message_free_unpacked(&response->base, NULL);
    return size;
}

void interop_finish(torc_stream *call, int code)
{
    torc_result *result = torc_stream_finish(call);
    interop_expect(result, code, NULL);
    torc_result_free(result);
    torc_stream_free(call);
}

Grpc__Testing__Payload interop_payload(size_t n)
{
    Grpc__Testing__Payload payload = GRPC__TESTING__PAYLOAD__INIT;
    payload.body.data = calloc(1, n + 1);
    CHECK(payload.body.data, "no memory for %zu bytes", n);
    payload.body.len = n;
    return payload;
}
