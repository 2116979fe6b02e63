/* The kit of gRPC's interop cases: a channel of the public API, calls with protobuf-c messages, and checks that end the
 * case. */
#ifndef INTEROP_RPC_H
#define INTEROP_RPC_H

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <grpc/testing/empty.pb-c.h>
#include <grpc/testing/messages.pb-c.h>
#include <torc/torc.h>

struct interop {
    torc_runtime *runtime;
    torc_channel *channel;
    const char *target;
    struct torc_channel_options options; /* for further channels */
    int soak_iterations;
};

/* A case: returns on success, ends the program through CHECK otherwise. */
typedef void (*interop_case_fn)(struct interop *t);

#define CHECK(cond, ...)                                                                                               \
    do {                                                                                                               \
        if (!(cond)) {                                                                                                 \
            fprintf(stderr, "%s:%d: %s: ", __FILE__, __LINE__, #cond);                                                 \
            fprintf(stderr, __VA_ARGS__);                                                                              \
            fputc('\n', stderr);                                                                                       \
            exit(1);                                                                                                   \
        }                                                                                                              \
    } while (0)

#define SERVICE "grpc.testing.TestService/"

/* Makes a channel with the options; the caller frees it. */
torc_channel *interop_channel(struct interop *t);
/* Options of a call with a deadline that a healthy server meets. */
struct torc_call_options interop_options(void);

/* Makes one unary call; the caller frees *result. */
void interop_unary(torc_channel *channel, const char *method, const ProtobufCMessage *request,
                   const struct torc_call_options *options, torc_result **result);
/* Unpacks a message; the caller frees it with protobuf_c_message_free_unpacked. Ends the program if it is malformed. */
void *interop_unpack(const ProtobufCMessageDescriptor *type, const torc_message *message);
/* Makes a UnaryCall that must be OK with a payload of request->response_size zero bytes. */
void interop_unary_ok(torc_channel *channel, const Grpc__Testing__SimpleRequest *request,
                      const struct torc_call_options *options, torc_result **result);

torc_stream *interop_open(torc_channel *channel, const char *method, const struct torc_call_options *options);
void interop_send(torc_stream *call, const ProtobufCMessage *message, bool last);
/* The payload size of the next StreamingOutputCallResponse, whose bytes must be 0; -1 at the end. */
long interop_receive_size(torc_stream *call);
/* Ends the call, whose code is asserted. */
void interop_finish(torc_stream *call, int code);
/* Asserts a result's code and, unless NULL, its message. */
void interop_expect(const torc_result *result, int code, const char *message);

/* n zero bytes as a payload; the caller frees body.data. */
Grpc__Testing__Payload interop_payload(size_t n);

void case_empty_unary(struct interop *t);
void case_large_unary(struct interop *t);
void case_client_compressed_unary(struct interop *t);
void case_server_compressed_unary(struct interop *t);
void case_custom_metadata(struct interop *t);
void case_status_code_and_message(struct interop *t);
void case_special_status_message(struct interop *t);
void case_unimplemented_method(struct interop *t);
void case_unimplemented_service(struct interop *t);

void case_client_streaming(struct interop *t);
void case_client_compressed_streaming(struct interop *t);
void case_server_streaming(struct interop *t);
void case_server_compressed_streaming(struct interop *t);
void case_ping_pong(struct interop *t);
void case_empty_stream(struct interop *t);
void case_cancel_after_begin(struct interop *t);
void case_cancel_after_first_response(struct interop *t);
void case_timeout_on_sleeping_server(struct interop *t);

void case_rpc_soak(struct interop *t);
void case_channel_soak(struct interop *t);

void case_goaway(struct interop *t);
void case_rst_after_header(struct interop *t);
void case_rst_during_data(struct interop *t);
void case_rst_after_data(struct interop *t);
void case_ping(struct interop *t);
void case_max_streams(struct interop *t);

#endif
