/* What bench/rpc's client on Torc consists of: unary RPCs (rpc_torc.c) and streams (rpc_torc_stream.c). */
#ifndef TORC_BENCH_RPC_TORC_H
#define TORC_BENCH_RPC_TORC_H

#include <torc/torc.h>

#include "client.h"

struct run {
    struct client c;
    torc_runtime *runtime;
    torc_channel *channel;
    struct torc_call_options lending; /* requests are lent, as the other clients do by counting references */
    unsigned under_way;
    bool failed;
};

/* Streams as the arguments say, until the time is over; `failed` with a message on stderr. */
void run_streams(struct run *r);
/* Notes a call that could not be started or did not end as it should. */
void run_failed(struct run *r, int code, const char *message);

#endif
