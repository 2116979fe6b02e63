/* bench/rpc's client on Torc: unary RPCs (rpc_torc.c) and streams (rpc_torc_stream.c). The client's code runs on the
 * main thread, callbacks included. */
#ifndef TORC_BENCH_RPC_TORC_H
#define TORC_BENCH_RPC_TORC_H

#include <torc/torc.h>

#include "client.h"

struct run {
    struct client c;
    torc_runtime *runtime;
    torc_channel *channel;
    struct torc_call_options lending; /* of asynchronous unary RPCs: requests are lent, not copied */
    unsigned under_way;               /* asynchronous RPCs or streams that have not ended */
    bool failed;                      /* no further RPC starts then, no message is sent, and the exit status is 1 */
};

/* Runs streams as the arguments say until client_over. Sets `failed` if one fails. */
void run_streams(struct run *r);
/* Sets `failed` and prints the reason on stderr. code: the status code of the RPC that failed; 0 if the failure is not
 * a status. */
void run_failed(struct run *r, int code, const char *message);

#endif
