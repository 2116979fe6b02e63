/* The soak cases: soak_iterations large unary calls, one after the other, on one channel or each on its own. */
#include "rpc.h"

static void soak(struct interop *t, bool channel_per_call)
{
    Grpc__Testing__Payload payload = interop_payload(271828);
    Grpc__Testing__SimpleRequest request = GRPC__TESTING__SIMPLE_REQUEST__INIT;
    request.payload = &payload;
    request.response_size = 314159;
    for (int i = 0; i < t->soak_iterations; i++) {
        torc_channel *channel = channel_per_call ? interop_channel(t) : t->channel;
        torc_result_free(interop_unary(channel, &request, &interop_options));
        if (channel_per_call)
            torc_channel_free(channel);
    }
}

void case_rpc_soak(struct interop *t)
{
    soak(t, false);
}

void case_channel_soak(struct interop *t)
{
    soak(t, true);
}
