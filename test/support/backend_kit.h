/* Echo backends on a thread of their own, for tests of clients on real sockets. */
#ifndef TC_SUPPORT_BACKEND_KIT_H
#define TC_SUPPORT_BACKEND_KIT_H

#include <torc/channel.h>
#include <torc/runtime.h>

#include "server/backend.h"
#include "server/grpc_server.h"

#define TC_KIT_MAX 8

struct tc_kit;

/* n echo servers "b0", "b1", ... on 127.0.0.1 and ports of the system's choice; opts NULL: defaults. */
struct tc_kit *tc_kit_new(size_t n, const struct tc_server_opts *opts);
void tc_kit_free(struct tc_kit *kit);
/* "127.0.0.1:PORT"; borrowed. */
const char *tc_kit_address(const struct tc_kit *kit, size_t i);
/* "ipv4:A,B,C" of all; borrowed. */
const char *tc_kit_target(struct tc_kit *kit);
/* The server listens on every address of the machine too; at which port. */
uint16_t tc_kit_listen_everywhere(struct tc_kit *kit, size_t i);
/* Runs fn on the servers' thread and waits for it. */
void tc_kit_do(struct tc_kit *kit, void (*fn)(struct tc_server *server, void *arg), size_t i, void *arg);
/* Ends the server (its connections are cut); makes it again on its port. */
void tc_kit_stop(struct tc_kit *kit, size_t i);
void tc_kit_restart(struct tc_kit *kit, size_t i);
void tc_kit_goaway(struct tc_kit *kit, size_t i);
struct tc_server_counts tc_kit_counts(struct tc_kit *kit, size_t i);

/* One call with a byte as its request: its code must be as said, and its text have `part` in it. How many ms it took.
 */
uint64_t tc_kit_expect(torc_channel *ch, bool wait_for_ready, int64_t timeout_ms, int code, const char *part);

/* For the tests of a group, as cmocka's setup and teardown: one echo server. */
extern struct tc_kit *tc_kit_one;
int tc_kit_one_setup(void **state);
int tc_kit_one_teardown(void **state);

/* A client's runtime; the test fails when there is none. */
torc_runtime *tc_kit_runtime(enum torc_runtime_mode mode);

#endif
