/* The runtime: one event loop that runs channels, policies and connections. SPDX-License-Identifier: Apache-2.0
 *
 * Three ways to run one, on one code path:
 *  - TORC_RUNTIME_THREAD (default): a thread of its own.
 *  - TORC_RUNTIME_CALLER: no thread; the application calls torc_runtime_poll, or waits in an event loop of its own for
 *    the descriptor of torc_runtime_fd, at most torc_runtime_timeout_ms, and then polls with timeout 0.
 *  - blocking calls (torc_unary and the like) on a TORC_RUNTIME_CALLER runtime drive the loop themselves, so that
 *    a simple program pays no thread hop. A second thread that blocks meanwhile sleeps, and drives the loop once the
 *    call of the first thread is complete.
 * Callbacks run on the thread that drives the loop (handlers of a method with a pool: on the pool's threads). A
 * blocking call on a runtime from inside one of its own callbacks is refused with TORC_EDEADLK, unless the function
 * says otherwise.
 *
 * In an epoll loop of the application's own:
 *
 *     struct torc_runtime_options o = {TORC_SIZE(torc_runtime_options), .mode = TORC_RUNTIME_CALLER};
 *     torc_runtime *runtime = torc_runtime_new(&o, &error);
 *     struct epoll_event event = {.events = EPOLLIN};
 *     epoll_ctl(epoll, EPOLL_CTL_ADD, torc_runtime_fd(runtime), &event);
 *     while (!done) {
 *         epoll_wait(epoll, &event, 1, torc_runtime_timeout_ms(runtime));
 *         torc_runtime_poll(runtime, 0); // calls back
 *     }
 *     torc_runtime_free(runtime);
 *
 * After fork a child must not use its parent's runtime: every function that needs the loop returns TORC_EFORK (or NULL,
 * or -1 from torc_runtime_timeout_ms; torc_channel_state still tells what the parent saw last) and nothing is written
 * to the parent's sockets; the child makes a runtime of its own. Credentials are different: a child may go on using
 * those of its parent. fork waits until no thread is changing credentials, nor inside OpenSSL or libcurl for Torc.
 *
 * exit, and the return of main: runtimes need not be freed. When the first loop is made, and again when OpenSSL or
 * libcurl is loaded, Torc registers an exit handler, which stops the threads of all runtimes, fetches of tokens and
 * background work. The handler waits for callbacks that run, for one second at most, and makes no callback itself.
 * Blocking calls of other threads, torc_runtime_free among them, return TORC_EFORK when the callback that runs has
 * ended; so does every function that is then called with such a runtime. Exit handlers run in reverse order of
 * registration: those registered after Torc's last registration run while Torc still works, the others after it
 * stopped. exit may be called from a callback. Torc does nothing in quick_exit and _exit. OpenSSL is told not to free
 * its own state at exit; libtorc.so is never unloaded.
 *
 * pthread_cancel: no function of Torc is cancelled in the middle. A thread that is cancelled inside a function of Torc
 * returns from it as usual, and ends at its next cancellation point; to end a call that waits, use torc_stream_cancel
 * or a deadline. Threads that call Torc must not have asynchronous cancellation (PTHREAD_CANCEL_ASYNCHRONOUS). */
#ifndef TORC_RUNTIME_H
#define TORC_RUNTIME_H

#include <stddef.h>
#include <stdint.h>

#include <torc/error.h>
#include <torc/export.h>
#include <torc/log.h>
#include <torc/size.h>
#include <torc/xds_domain.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A loop, and everything that it drives. */
typedef struct torc_runtime torc_runtime;

/* The threads that drive a loop. */
enum torc_runtime_mode {
    TORC_RUNTIME_THREAD = 0, /* a thread of the runtime's own */
    TORC_RUNTIME_CALLER = 1, /* threads that wait or poll */
};

/* Options of a runtime. */
struct torc_runtime_options {
    uint64_t size;
    int64_t mode;                 /* enum torc_runtime_mode; 0: TORC_RUNTIME_THREAD */
    int64_t idle_connection_ms;   /* how long the pool keeps a connection that no policy holds; 0: 30000; -1: it keeps
                                     none */
    int64_t max_idle_connections; /* the most idle connections that the pool keeps, 1 to 4294967295; 0: 1000; -1: no
                                     limit */
    int64_t csds_answer_bytes;    /* of each torc_csds_serve and torc_csds_add: about the most bytes of answers that the
                                     clients, all together, have not taken yet. At the limit the next answer waits; an
                                     answer that is larger by itself ends with RESOURCE_EXHAUSTED. 0: 33554432; -1: no
                                     limit */
    int64_t memory_limit_bytes;   /* a soft limit: while the runtime holds more, new RPCs of its channels fail at once
                                     with RESOURCE_EXHAUSTED, and those that have begun go on; RPCs that its servers
                                     receive are not refused by it (unread_bytes, unsent_bytes). 0 and -1: no limit. The
                                     memory that counts: 4096 bytes and the requests on their way for each RPC of a
                                     channel, the state of HTTP/2 connections, metadata, and received messages from
                                     their first bytes until the application frees them, also before it asks for them.
                                     Each item counts as the memory block that holds it: at most twice its bytes and 128
                                     more. A message that arrives may count more: up to 64 KiB although less has come,
                                     and 1 MiB if it has 513 KiB to 1 MiB and arrives in a reused block. The unread
                                     bytes of a stream count up to four times the most that waited there, until all are
                                     read. Configuration does not count (xDS resources, endpoints, rings, TLS) */
    torc_xds_domain *xds_domain;  /* shared with other runtimes, see torc/xds_domain.h; NULL: not shared. The runtime
                                     holds the domain until the runtime ends. A domain of the parent process is refused
                                     with TORC_EFORK */
    const struct torc_log_sink *log_sink; /* where the lines of this runtime's log go (torc/log.h); copied; NULL: to the
                                             process's sink */
};

/* Makes a runtime, which the caller frees. NULL options: defaults. Returns NULL with an error when options or their log
 * sink are malformed (TORC_EINVAL) or of a newer version (TORC_EUNSUPPORTED), their xDS domain is the parent process's
 * (TORC_EFORK), or the system refuses a loop or a thread (TORC_EIO). Any thread. */
TORC_API torc_runtime *torc_runtime_new(const struct torc_runtime_options *options, torc_error **error);

/* Returns the process's shared runtime with its own thread, made on first use; torc_channel_new uses it for a NULL
 * runtime. It lives until torc_runtime_default_free or the end of the process: torc_runtime_free refuses it. A child of
 * a fork gets another runtime, made there on first use. So does a caller after the exit handler has stopped the
 * runtime; the handler does not stop that new one. NULL: none could be made. Any thread. */
TORC_API torc_runtime *torc_runtime_default(void);

/* Frees the default runtime as torc_runtime_free would: for the end of main, so that a leak checker such as valgrind
 * finds nothing of Torc, and before a dlclose. For the program only, not for a library in it: everything that uses the
 * default runtime ends, and no other thread may be inside this function, torc_runtime_default, or a function that is
 * given a NULL runtime. The next torc_runtime_default makes another runtime. Returns 0, also when there is no default
 * runtime; TORC_EDEADLK inside a callback of it; TORC_EFORK (the runtime is the parent process's, or the process is
 * exiting). After an error nothing has happened, unless the exit began while the function waited. */
TORC_API int torc_runtime_default_free(void);

/* Runs one turn of the loop: takes in events and runs what is due, waiting at most timeout_ms (-1: until something
 * happens). Returns 1 when it did anything, 0 when not. TORC_EINVAL for other negative times, TORC_ESTATE for a runtime
 * with a thread, TORC_EDEADLK inside a callback of the runtime, TORC_EFORK, TORC_ECLOSED. While another thread drives
 * the loop, the function waits until that thread's turn ends (at most timeout_ms) and returns 0 without a turn of its
 * own. Any thread. */
TORC_API int torc_runtime_poll(torc_runtime *runtime, int timeout_ms);

/* Returns a descriptor that is readable when the runtime has events to take in; it belongs to the runtime. It also
 * becomes readable when a thread that drove the loop in a blocking call stops, and the loop has work before the wait
 * that torc_runtime_timeout_ms last returned is over. TORC_ESTATE for a runtime with a thread, TORC_EFORK,
 * TORC_ECLOSED. Any thread. */
TORC_API int torc_runtime_fd(const torc_runtime *runtime);

/* Returns for how many milliseconds to wait for the descriptor at most, because of the next timer. 0: poll now. -1: no
 * limit (no timer is set, another thread drives the loop just now, the runtime has a thread, is NULL, was freed or
 * belongs to the parent process, or the process is exiting). Call it before each wait. Any thread. */
TORC_API int torc_runtime_timeout_ms(const torc_runtime *runtime);

/* Runs fn later on the thread that drives the loop; functions that one thread posts run in their order. If 0 is
 * returned, fn runs once, at the latest inside torc_runtime_free. TORC_EINVAL, TORC_EFORK, TORC_ECLOSED: fn will not
 * run. Any thread. */
TORC_API int torc_runtime_post(torc_runtime *runtime, void (*fn)(void *arg), void *arg);

/* Ends the runtime, and returns 0: its channels and servers are shut down, calls end with UNAVAILABLE, the thread is
 * joined, memory is freed. TORC_EDEADLK inside a callback of the runtime, TORC_EFORK, TORC_ESTATE for the default
 * runtime, which others may use, TORC_ECLOSED when another thread frees it: nothing has happened then, unless the exit
 * of the process began while the function waited. Any thread. NULL is allowed. In a callback of another runtime it
 * waits: two runtimes whose callbacks free each other wait for ever.
 *
 * Other threads may be inside any function of the runtime's channels, servers, calls of both and resolver listeners, or
 * enter it later: a function that is called later returns TORC_ECLOSED. The handles of channels, servers, calls and
 * listeners stay valid until each is given up. The handle of the runtime stays valid as long as one of these is held,
 * and its functions return TORC_ECLOSED (torc_runtime_timeout_ms: -1). A thread without such a handle must not use the
 * runtime any longer. The handle that torc_csds_serve returns is an exception (torc/admin.h). */
TORC_API int torc_runtime_free(torc_runtime *runtime);

#ifdef __cplusplus
}
#endif
#endif
