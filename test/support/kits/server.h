/* A gRPC server and a client channel to it on one loop, over a real socket, for tests of services. */
#ifndef TC_SUPPORT_KITS_SERVER_H
#define TC_SUPPORT_KITS_SERVER_H

#include "base/vec.h"
#include "channel/call_start.h"
#include "server/call.h"
#include "server/server.h"

struct kit_server {
    struct tc_loop *loop; /* the runtime's */
    struct tc_server *server;
    torc_runtime *runtime;
    torc_channel *channel;
};

/* A call that reads all messages. */
struct kit_server_call {
    struct kit_server *kit;            /* borrowed */
    struct tc_call *call;              /* NULL after the end */
    TC_VEC(struct tc_rstr *) messages; /* received; owned */
    bool written, done;                /* the message of the last kit_server_send was written; the call has ended */
    struct tc_status status;           /* of the call, once it has ended; owned */
};

/* Makes a server on 127.0.0.1, without methods, and a channel to it. */
void kit_server_init(struct kit_server *k);
/* Frees channel, server and runtime. All calls must have been closed. The test frees its services afterwards. */
void kit_server_fini(struct kit_server *k);

/* Starts a call of `method` ("/package.Service/Method") that waits for ready. *c must stay in place until
 * kit_server_close, which ends the call. */
void kit_server_open(struct kit_server *k, struct kit_server_call *c, const char *method);
/* Sends a message (copied) and turns the loop until the message is written or the call has ended, for 60 seconds at
 * most. end: the message is the last one. The call must not have ended before. */
void kit_server_send(struct kit_server_call *c, struct tc_slice message, bool end);
/* Cancels the call if it has not ended, and frees what it received. */
void kit_server_close(struct kit_server_call *c);

/* Runs one turn of the loop, which waits 1 s at most. Fails the test 60 seconds after `since_ns`, a time of the loop's
 * clock. KIT_SERVER_UNTIL turns the loop until the condition holds, for 60 seconds at most. */
void kit_server_turn(struct kit_server *k, uint64_t since_ns);
#define KIT_SERVER_UNTIL(k, condition)                                                                                 \
    for (uint64_t since_ns_ = tc_loop_clock_ns((k)->loop); !(condition);)                                              \
    kit_server_turn((k), since_ns_)

#endif
