/* Tests without threads, sockets and sleeps. SPDX-License-Identifier: Apache-2.0
 *
 * A test is linked with libtorc-testing instead of libtorc (pkg-config torc-testing, CMake target torc::testing). It
 * is the same library over a simulated machine: time is virtual, connections carry bytes through memory, names are
 * what the test says, and the environment is empty. HTTP/2, TLS, the xDS client, policies and servers are those of
 * production. Code under test needs no change: torc_runtime_default and every runtime live in the world.
 *
 *     torc_testing *world = torc_testing_new(1, NULL);
 *     torc_server *server = shop_server_new("10.0.0.1:443"); // the code under test, as it is
 *     torc_testing_xds_put(world, resources, NULL);          // text of `torc serve-xds`: orders is 10.0.0.1:443
 *     torc_channel *channel = torc_channel_new(NULL, "xds:///orders", &options, NULL);
 *     torc_result *result = torc_unary(channel, "shop.Orders/Get", "7", 1, NULL); // turns the world until it ends
 *     assert(torc_result_code(result) == TORC_STATUS_OK);
 *     torc_result_free(result);
 *
 *     torc_testing_set_host(world, "10.0.0.1:443", TORC_TESTING_SILENT);
 *     struct torc_call_options o = {TORC_SIZE(torc_call_options), .timeout_ms = 30000};
 *     result = torc_unary(channel, "shop.Orders/Get", "7", 1, &o); // takes microseconds
 *     assert(torc_result_code(result) == TORC_STATUS_DEADLINE_EXCEEDED);
 *     torc_result_free(result);
 *
 *     torc_channel_free(channel);
 *     torc_server_free(server);
 *     assert(torc_testing_free(world) == 0);
 *
 * Time passes in three ways: torc_testing_advance and torc_testing_run_until, and by functions that block (torc_unary,
 * torc_stream_receive, torc_server_stop, torc_runtime_poll and the like), which turn the world until they have what
 * they wait for. Between two events time jumps. If there is no end to what happens at one moment, because a function
 * that torc_runtime_post runs posts itself again, time moves on by up to a second. Between calls of the test time
 * stands still: a loop that retries after nanosleep(), until torc_time_ms has reached a moment, never ends. Give such
 * code a function to sleep with, which in the test calls torc_testing_advance. Times in milliseconds are at most 2^42
 * (TORC_EINVAL above).
 *
 * The same test with the same seed does the same things in the same order, every time.
 *
 * The thread of a world is the one that made it, so make it on the thread that runs the test. Callbacks, events, and
 * handlers without a pool run on this thread, inside a function that turns the world. Handlers on a torc_pool run on
 * threads of the pool, but one thread at a time runs in a world, in an order that is the seed's. A handler on a pool
 * may block in functions of Torc. It must not wait for a lock, a condition variable, a semaphore or the end of a thread
 * that only the test or another handler provides: neither can run meanwhile, so the test hangs without a message. A
 * handler that is to take time calls torc_testing_advance, or answers from a function of torc_testing_after.
 *
 * Functions of libtorc that do not block work on other threads, too, but time does not wait for threads that the
 * program made: join them before time passes. If such a thread calls a function that blocks, or if a function waits for
 * more than an hour of virtual time without a limit of its own or a deadline of its RPC, nothing could end the wait
 * well: the process prints the reason and, with glibc, a trace of the waiting function, and aborts. A call that blocks
 * inside a callback is refused with TORC_EDEADLK, as in production.
 *
 * Real sockets are out of reach: channels to fd: targets and dialers that hand over descriptors fail, as do call
 * credentials that are fetched over HTTP. torc_runtime_fd has no descriptor (TORC_EINVAL): code with an event loop is
 * driven by torc_runtime_poll. Watched files are read once.
 *
 * All functions are for the thread of the world and for handlers on pools; they return TORC_EINVAL if the world is
 * NULL, and TORC_ESTATE on another thread. "In a callback" means on a pool's threads too. An address is what a client
 * connects to: "10.0.0.1:443", "[fd00::1]:443", "unix:/path". A server that listens on a wildcard ("0.0.0.0:443")
 * answers at every address, and a fault names the address that the client dials. */
#ifndef TORC_TESTING_H
#define TORC_TESTING_H

#include <stdint.h>

#include <torc/error.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Stands before each function that libtorc-testing has and libtorc has not. */
#if defined(__GNUC__)
#define TORC_TESTING_API __attribute__((visibility("default")))
#else
#define TORC_TESTING_API
#endif

/* A world: its time, its network, its names and its control plane. A process has one at a time. */
typedef struct torc_testing torc_testing;

/* Makes a world, whose time begins at one second (torc_time_ms). Where several things may happen next, the seed chooses
 * their order; another seed gives another order. Before there is a world no runtime can be made, and so no channels and
 * servers (TORC_ESTATE). Returns NULL with an error: TORC_ESTATE (there is a world already, or the process is linked
 * with libtorc before libtorc-testing).
 *
 * The environment is empty for Torc, so TORC_LOG is not read: torc_log_set_levels sets what is logged. */
TORC_TESTING_API torc_testing *torc_testing_new(uint64_t seed, torc_error **error);

/* Ends the world, and returns 0. Functions of torc_testing_after that still wait are called; the default runtime is
 * freed, as by torc_runtime_free: channels and servers that are left on it end, and their handles stay valid until each
 * is given up. TORC_ESTATE if a runtime or an xDS domain of the test is left, which must be freed first; TORC_EDEADLK
 * in a callback, and in a function of torc_testing_after: nothing has happened then. NULL is allowed: 0.
 *
 * Channels, servers and calls that the test never frees do not change the result: LeakSanitizer or valgrind finds them.
 * LeakSanitizer needs ASAN_OPTIONS=fast_unwind_on_malloc=0 to name the caller. */
TORC_TESTING_API int torc_testing_free(torc_testing *world);

/* --- time --- */

/* Does all that is due in the next `ms` milliseconds, in order. Afterwards `ms` milliseconds have passed, or more if a
 * function of torc_testing_after blocks beyond the end. With 0 it does what is due now.
 *
 * A channel without calls for idle_timeout_ms (30 minutes) becomes idle, also when time jumps there, and drops its xDS
 * resources: it asks for them again at the next call. Set idle_timeout_ms to -1 or make calls between the jumps if a
 * test is about resources that stay.
 *
 * On a thread of a pool it sleeps, while the world goes on.
 *
 * 0; TORC_EINVAL for negative times, TORC_EDEADLK in a callback on the world's thread. */
TORC_TESTING_API int torc_testing_advance(torc_testing *world, int64_t ms);

/* Does all that is due now, and what follows from it without time passing. Connections without a delay (see
 * torc_testing_set_delay) are quiet then: each RPC is answered, or waits for a handler or a timer. 0; TORC_EDEADLK in
 * a callback; TORC_ELIMIT when there is no end to it. */
TORC_TESTING_API int torc_testing_run_until_idle(torc_testing *world);

/* Turns the world until done(arg) returns a value other than 0. `done` is asked first, and after each step; it must not
 * turn the world: functions of this header that turn or end it return TORC_EDEADLK there. 0 when it is done;
 * TORC_ETIMEDOUT when limit_ms of virtual time pass first; TORC_EINVAL for negative times and a NULL `done`;
 * TORC_EDEADLK in a callback. */
TORC_TESTING_API int torc_testing_run_until(torc_testing *world, int (*done)(void *arg), void *arg, int64_t limit_ms);

/* Has fn(arg) called once, `ms` milliseconds from now: for handlers that answer late, and for what a test wants to
 * happen in the middle of a call. fn runs outside of callbacks, so it may block. fn is called inside torc_testing_free
 * at the latest. 0; TORC_EINVAL for negative times and a NULL fn, TORC_ECLOSED inside torc_testing_free. May be
 * called in callbacks. */
TORC_TESTING_API int torc_testing_after(torc_testing *world, int64_t ms, void (*fn)(void *arg), void *arg);

/* --- the network --- */

/* The states of a host. */
enum torc_testing_host {
    TORC_TESTING_UP = 0,      /* connections reach the server that listens there; without one they are refused */
    TORC_TESTING_REFUSES = 1, /* new connections are refused; existing ones stay */
    TORC_TESTING_SILENT = 2,  /* nothing comes back: attempts to connect run into their timeout, and on connections
                                 nothing arrives any longer in either direction, also when the host is up again */
};

/* Sets the state of an address, whether or not a server listens there.
 *
 * After REFUSES, a host that is UP again is tried when the backoff is over (1 s, up to 20 % off, after the first
 * refusal): until then calls without wait_for_ready fail. torc_testing_advance by 2000 ms is enough after one refusal.
 * Channels with equal options to one address share the connection and its backoff.
 *
 * A connection that SILENT has made silent lives until an end gives it up: with keepalive, or when bytes that were sent
 * stay unacknowledged for 15 minutes (for keepalive_timeout_ms, 20 s by default, at an end with keepalive; a server has
 * keepalive unless it is turned off). For unacknowledged bytes the end fails with "Connection timed out". The other end
 * hears nothing of it in either case.
 *
 * 0; TORC_EINVAL for a text that is not an address, for a wildcard, and for an unknown state. May be called in
 * callbacks. */
TORC_TESTING_API int torc_testing_set_host(torc_testing *world, const char *address, int state);

/* Ends the connections to an address with a reset, as a server that dies does; silent connections, too. Returns how
 * many connections there were; TORC_EINVAL for a text that is not an address, and for a wildcard. May be called in
 * callbacks. */
TORC_TESTING_API int torc_testing_cut(torc_testing *world, const char *address);

/* Holds up the bytes on connections to an address for `ms` milliseconds, in both directions; then they arrive. Of two
 * stalls the later end counts. Returns how many connections there were, also silent ones, although their bytes never
 * arrive. TORC_EINVAL for a text that is not an address, for a wildcard, and for negative times. May be called in
 * callbacks. */
TORC_TESTING_API int torc_testing_stall(torc_testing *world, const char *address, int64_t ms);

/* Sets how long bytes take from one end to the other, in microseconds, on connections that are made from now on; 0 at
 * first. Connecting costs a round trip, too. 0; TORC_EINVAL for times that are negative or above a minute. May be
 * called in callbacks. */
TORC_TESTING_API int torc_testing_set_delay(torc_testing *world, int64_t delay_us);

/* Gives a DNS name its addresses: up to 64 IP addresses, with commas between them, without blanks and brackets
 * ("10.0.0.1,fd00::1"). NULL: the name is no longer found. Names that nobody has set are not found, except localhost,
 * which is 127.0.0.1. A look-up that is under way, and a call made right after, may still go by the old addresses:
 * torc_testing_run_until_idle first. 0; TORC_EINVAL for an empty name, and for what is not a list of addresses, which
 * changes nothing. May be called in callbacks. */
TORC_TESTING_API int torc_testing_set_name(torc_testing *world, const char *name, const char *addresses);

/* --- the control plane --- */

/* Adds resources to the control plane of the world. text: in the form of `torc serve-xds` (YAML or JSON: {"resources":
 * [{"@type": ...}]}, a list, or one resource); copied. A resource replaces an earlier one of its type and name. Clients
 * hear of the change when the world turns next, so a call made right after may still go by the old resources:
 * torc_testing_run_until_idle first. Targets such as xds:///orders find the control plane by themselves: the bootstrap
 * of the world names it, with the node id "torc-testing". A channel with a bootstrap of its own (xds_bootstrap_json)
 * finds it at torc_testing_xds_address, without TLS.
 *
 * 0 means that the text was read, not that clients accept it: torc_log_set_levels("xds=info") shows what they refuse.
 *
 * 0, or an error: TORC_EPARSE (the text names what is wrong where; nothing has changed), TORC_EINVAL (`text` is NULL).
 * May be called in callbacks. */
TORC_TESTING_API int torc_testing_xds_put(torc_testing *world, const char *text, torc_error **error);

/* Removes a resource ("type.googleapis.com/envoy.config.cluster.v3.Cluster", "orders"). A call made right after may
 * still go by the resource: torc_testing_run_until_idle first. Clients that have a Listener or Cluster keep it in use
 * (A88), unless their bootstrap has fail_on_data_errors. 0; TORC_ENOTFOUND when there is none; TORC_EINVAL for NULL.
 * May be called in callbacks. */
TORC_TESTING_API int torc_testing_xds_remove(torc_testing *world, const char *type_url, const char *name);

/* Returns the address of the control plane, for torc_testing_set_host, torc_testing_cut and torc_testing_stall: a
 * control plane that fails. A text that is never freed; NULL for a world that is NULL, and on another thread. */
TORC_TESTING_API const char *torc_testing_xds_address(const torc_testing *world);

#ifdef __cplusplus
}
#endif
#endif
