/* The HTTP/2 negative cases of gRPC's doc/http2-interop-test-descriptions.md. The server checks what only a server can
 * see. If the client is wrong, the server ends the RPC with an error; a PING that the client does not answer leaves the
 * RPC without an end, until its deadline. */
#include <semaphore.h>

#include "rpc.h"

#define RESPONSE_SIZE 4000
#define PARALLEL 10

/* Makes a UnaryCall that must end with this status code after one attempt. */
static void unary_ends_with(torc_channel *channel, int code)
{
    Grpc__Testing__Payload payload = interop_payload(1000);
    Grpc__Testing__SimpleRequest request = GRPC__TESTING__SIMPLE_REQUEST__INIT;
    request.payload = &payload;
    request.response_size = RESPONSE_SIZE;
    torc_result *result = grpc__testing__test_service__unary_call__call(channel, &request, &interop_options);
    CHECK(torc_result_attempts(result) == 1, "%u attempts", torc_result_attempts(result));
    interop_end(result, code, NULL);
}

void case_goaway(struct interop *t)
{
    unary_ends_with(t->channel, TORC_STATUS_OK);
    enum torc_connectivity state = TORC_CONNECTIVITY_READY;
    if (torc_channel_state(t->channel, false) == TORC_CONNECTIVITY_READY)
        CHECK(torc_channel_wait_state(t->channel, TORC_CONNECTIVITY_READY, 20000, &state) == 0,
              "READY in spite of GOAWAY");
    unary_ends_with(t->channel, TORC_STATUS_OK);
}

/* In the three RST_STREAM cases the server sends NO_ERROR, which without trailers is INTERNAL (PROTOCOL-HTTP2.md,
 * "Errors"). */
void case_rst_after_header(struct interop *t)
{
    unary_ends_with(t->channel, TORC_STATUS_INTERNAL);
}

void case_rst_during_data(struct interop *t)
{
    unary_ends_with(t->channel, TORC_STATUS_INTERNAL);
}

void case_rst_after_data(struct interop *t)
{
    unary_ends_with(t->channel, TORC_STATUS_INTERNAL);
}

void case_ping(struct interop *t)
{
    for (int i = 0; i < 3; i++)
        unary_ends_with(t->channel, TORC_STATUS_OK);
}

struct parallel {
    sem_t done; /* posted by each call that ends */
    int ok;     /* calls that ended with OK */
};

/* Called on the runtime's thread. */
static void on_unary(const torc_result *result, void *arg)
{
    struct parallel *p = arg;
    if (torc_result_code(result) == TORC_STATUS_OK)
        p->ok++;
    else
        fprintf(stderr, "%s: %s\n", torc_status_code_name(torc_result_code(result)), torc_result_text(result));
    sem_post(&p->done);
}

void case_max_streams(struct interop *t)
{
    unary_ends_with(t->channel, TORC_STATUS_OK);
    struct parallel p = {.ok = 0};
    CHECK(sem_init(&p.done, 0, 0) == 0, "no semaphore");
    Grpc__Testing__SimpleRequest request = GRPC__TESTING__SIMPLE_REQUEST__INIT;
    request.response_size = RESPONSE_SIZE;
    for (int i = 0; i < PARALLEL; i++)
        CHECK(grpc__testing__test_service__unary_call__async(t->channel, &request, &interop_options, on_unary, &p, NULL,
                                                             NULL) == 0,
              "call %d", i);
    for (int i = 0; i < PARALLEL; i++)
        while (sem_wait(&p.done) != 0)
            continue;
    CHECK(p.ok == PARALLEL, "%d of %d", p.ok, PARALLEL);
    sem_destroy(&p.done);
}
