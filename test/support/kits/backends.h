/* Echo backends on a thread of their own, for tests of clients over real sockets. The functions are called by
 * the test's threads, never from inside a function that kit_backends_do runs. */
#ifndef TC_SUPPORT_KITS_BACKENDS_H
#define TC_SUPPORT_KITS_BACKENDS_H

#include <torc/channel.h>
#include <torc/runtime.h>

#include "server/call.h"
#include "server/server.h"
#include "support/kits/echo.h"

#define KIT_BACKENDS_MAX 8

struct kit_backends;

/* Makes n echo servers (KIT_BACKENDS_MAX at most) "b0", "b1", ... on 127.0.0.1 and ports that the system chooses. opts:
 * copied; what its pointers refer to must outlive the kit; NULL: the defaults. Ends the process (abort) if a server
 * cannot listen, as kit_backends_restart does. */
struct kit_backends *kit_backends_new(size_t n, const struct tc_server_opts *opts);
/* Cuts the connections, and frees the servers and the kit. */
void kit_backends_free(struct kit_backends *kit);
/* Returns "127.0.0.1:PORT"; valid until kit_backends_free. */
const char *kit_backends_address(const struct kit_backends *kit, size_t i);
/* Returns "ipv4:A,B,C" with every backend's address; valid until kit_backends_free. */
const char *kit_backends_target(struct kit_backends *kit);
/* Makes server i, which must not be stopped, also listen on every IPv4 address of the machine, until
 * kit_backends_stop. Returns the port of this listener, in host byte order. */
uint16_t kit_backends_listen_everywhere(struct kit_backends *kit, size_t i);
/* Runs fn with server i, which must not be stopped, on the servers' thread and waits until it returns. */
void kit_backends_do(struct kit_backends *kit, void (*fn)(struct tc_server *server, void *arg), size_t i, void *arg);
/* kit_backends_stop frees the server and cuts its connections; does nothing to a stopped server. kit_backends_restart
 * makes the stopped server again on its port; its counts start from 0. kit_backends_goaway sends GOAWAY on all
 * connections; the server goes on listening. kit_backends_goaway and kit_backends_counts are not for a stopped
 * server. */
void kit_backends_stop(struct kit_backends *kit, size_t i);
void kit_backends_restart(struct kit_backends *kit, size_t i);
void kit_backends_goaway(struct kit_backends *kit, size_t i);
struct tc_server_counts kit_backends_counts(struct kit_backends *kit, size_t i);

/* Makes one call with a byte as its request. Asserts the status code, and that the status text contains `part`. Returns
 * the call's duration in ms. */
uint64_t kit_backends_expect(torc_channel *ch, bool wait_for_ready, int64_t timeout_ms, int code, const char *part);

/* A group's setup and teardown for cmocka: kit_backends_one is a kit of one echo server between them, otherwise
 * NULL. */
extern struct kit_backends *kit_backends_one;
int kit_backends_one_setup(void **state);
int kit_backends_one_teardown(void **state);

/* Returns a channel to all backends with these options (NULL: insecure credentials, otherwise the defaults) and this
 * service config (JSON; NULL: the one in the options). The caller frees it. Fails the test if the channel cannot be
 * made. */
torc_channel *kit_backends_channel(struct kit_backends *kit, torc_runtime *rt,
                                   const struct torc_channel_options *options, const char *service_config);
/* Returns a client's runtime, which the caller frees; the test fails if it cannot be made. */
torc_runtime *kit_backends_runtime(enum torc_runtime_mode mode);

/* Makes one echo server, a runtime in this mode, and a channel to the server. */
struct kit_backends *kit_backends_open(enum torc_runtime_mode mode, torc_runtime **rt, torc_channel **ch);
/* Frees the three. Returns torc_runtime_free's result. */
int kit_backends_close(struct kit_backends *kit, torc_runtime *rt, torc_channel *ch);

#endif
