/* A gRPC server and a client channel to it on one loop, over a real socket: for tests of services. */
#ifndef TC_SUPPORT_SERVER_KIT_H
#define TC_SUPPORT_SERVER_KIT_H

#include "base/vec.h"
#include "channel/call.h"
#include "server/grpc_server.h"

struct server_kit {
    struct tc_loop *loop;
    struct tc_server *server;
    torc_runtime *runtime;
    torc_channel *channel;
};

/* A call that reads all it gets. */
struct server_kit_call {
    struct server_kit *kit;
    struct tc_call *call;              /* NULL after the end */
    TC_VEC(struct tc_rstr *) messages; /* received */
    bool written, done;
    struct tc_status status;
};

void server_kit_init(struct server_kit *k);
/* Calls must have been closed. What serves on the server is freed by the test afterwards. */
void server_kit_fini(struct server_kit *k);

void server_kit_open(struct server_kit *k, struct server_kit_call *c, const char *method);
void server_kit_send(struct server_kit_call *c, struct tc_slice message, bool end);
void server_kit_close(struct server_kit_call *c);

/* One turn of the loop; fails the test when nothing ends the waiting within ten seconds. */
void server_kit_turn(struct server_kit *k, uint64_t since_ns);
#define SERVER_KIT_UNTIL(k, condition)                                                                                 \
    for (uint64_t since_ns_ = tc_loop_clock_ns((k)->loop); !(condition);)                                              \
    server_kit_turn((k), since_ns_)

#endif
