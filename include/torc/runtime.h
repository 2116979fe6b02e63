/* The runtime: one event loop that runs channels, policies and connections. SPDX-License-Identifier: Apache-2.0
 *
 * Three ways to run one, on one code path:
 *  - TORC_RUNTIME_THREAD (default): a thread of its own.
 *  - TORC_RUNTIME_CALLER: none; the application calls torc_runtime_poll, or waits for the descriptor of torc_runtime_fd
 *    with the timeout of torc_runtime_timeout_ms in an event loop of its own and then polls with timeout 0.
 *  - blocking calls (torc_call_unary and the like) on a TORC_RUNTIME_CALLER runtime drive the loop themselves, so that
 * a simple program pays no thread hop. A second thread that blocks meanwhile waits and takes over the loop from the
 *    first.
 * Callbacks run on the thread that drives the loop. A blocking call from inside a callback is refused with
 * TORC_EDEADLK.
 *
 * After fork a child must not use its parent's runtime: every function returns TORC_EFORK (or NULL) and nothing is
 * written to the parent's sockets; the child makes a runtime of its own. */
#ifndef TORC_RUNTIME_H
#define TORC_RUNTIME_H

#include <stddef.h>
#include <stdint.h>

#include <torc/error.h>
#include <torc/export.h>
#include <torc/xds_domain.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct torc_runtime torc_runtime;

enum torc_runtime_mode {
    TORC_RUNTIME_THREAD = 0,
    TORC_RUNTIME_CALLER = 1,
};

struct torc_runtime_options {
    size_t size; /* sizeof(struct torc_runtime_options), set by torc_runtime_options_init */
    enum torc_runtime_mode mode;
    uint64_t idle_connection_ms;   /* how long the pool keeps a connection that no policy holds; 30000 */
    uint32_t max_idle_connections; /* how many of those; 1000 */
    torc_xds_domain *xds_domain;   /* shared with other runtimes, see torc/xds_domain.h; NULL: not shared (default). The
                                      runtime holds it until it ends. Not in a child of the process that made it:
                                      torc_runtime_new then fails with EINVAL */
};

/* Fills in the defaults. */
TORC_API void torc_runtime_options_init(struct torc_runtime_options *options);

/* NULL options: defaults. NULL with errno set when the system refuses a loop or a thread. Any thread. */
TORC_API torc_runtime *torc_runtime_new(const struct torc_runtime_options *options);

/* The process's shared runtime with its own thread, made on first use; what torc_channel_new uses for a NULL runtime.
 * It lives until the process ends. Any thread. */
TORC_API torc_runtime *torc_runtime_default(void);

/* One turn: takes in events and runs what is due, waiting at most timeout_ms (-1: until something happens). Returns 1
 * when it did anything, 0 when not. TORC_ESTATE for a runtime with a thread, TORC_EDEADLK from inside a callback,
 * TORC_EFORK. While another thread drives the loop, it waits for that one's turn to end (at most timeout_ms). */
TORC_API int torc_runtime_poll(torc_runtime *runtime, int timeout_ms);

/* A descriptor that is readable when the runtime has events to take in; it belongs to the runtime. TORC_ESTATE for one
 * with a thread. */
TORC_API int torc_runtime_fd(const torc_runtime *runtime);

/* How long until the next timer: what to wait at most; -1: none; 0: poll now. */
TORC_API int torc_runtime_timeout_ms(const torc_runtime *runtime);

/* Runs fn on the thread that drives the loop, from any thread; in order of the posts of one thread. */
TORC_API int torc_runtime_post(torc_runtime *runtime, void (*fn)(void *arg), void *arg);

/* Shuts down: channels that are still there are shut down, calls end with UNAVAILABLE, the thread is joined, memory
 * goes. TORC_EDEADLK from inside a callback. Any thread. NULL is allowed. */
TORC_API int torc_runtime_free(torc_runtime *runtime);

#ifdef __cplusplus
}
#endif
#endif
