/* The kit of gRPC's interop cases: a channel, what several cases send and check with the generated calls, and CHECK. */
#ifndef INTEROP_RPC_H
#define INTEROP_RPC_H

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <torc/torc.h>

#include "services.torc.h"

/* The input of a case. main owns it. */
struct interop {
    torc_runtime *runtime;
    torc_channel *channel; /* to the target, made by interop_channel */
    const char *target;
    struct torc_channel_options options; /* of the channels that interop_channel makes */
    int soak_iterations;                 /* calls of a soak case */
};

/* A case. Returns if it passed; a check that fails ends the program (CHECK). */
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

/* Makes a channel to t->target with t->options; the caller frees it. */
torc_channel *interop_channel(struct interop *t);
/* Options of a call with a deadline that a healthy server meets: 20 seconds. */
extern const struct torc_call_options interop_options;
/* Returns a payload of n zero bytes, at most 300000, in static memory that all payloads share. */
Grpc__Testing__Payload interop_payload(size_t n);

/* Asserts that the RPC was started and ended with this status code and, unless `text` is NULL, this status message. */
void interop_expect(const torc_result *result, int code, const char *text);
/* Calls interop_expect and frees the result. */
void interop_end(torc_result *result, int code, const char *text);
/* Makes a UnaryCall that must be OK with request->response_size zero bytes. The caller frees the result. */
torc_result *interop_unary(torc_channel *channel, const Grpc__Testing__SimpleRequest *request,
                           const struct torc_call_options *options);

/* Asserts that a send returned 0, or TORC_ECLOSED: the RPC is over, and its result says why. */
void interop_sent(int rc);
/* Begins a FullDuplexCall. The caller owns the stream; interop_finish frees it. */
torc_stream *interop_duplex(torc_channel *channel, const struct torc_call_options *options);
/* Waits for the next response of a FullDuplexCall, asserts that the bytes of its payload are 0 and returns their
 * number. Returns -1 when the RPC has ended, with whatever status. */
long interop_receive_size(torc_stream *stream);
/* Asserts that the payload's bytes are 0 and returns their number. */
long interop_payload_size(const Grpc__Testing__StreamingOutputCallResponse *response);
/* Waits for the RPC's end, asserts its status code, and frees the stream. */
void interop_finish(torc_stream *stream, int code);

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
void case_connection_scaling(struct interop *t);

void case_rpc_soak(struct interop *t);
void case_channel_soak(struct interop *t);

void case_goaway(struct interop *t);
void case_rst_after_header(struct interop *t);
void case_rst_during_data(struct interop *t);
void case_rst_after_data(struct interop *t);
void case_ping(struct interop *t);
void case_max_streams(struct interop *t);

#endif
