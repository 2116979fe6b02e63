/* Connections that the application opens. SPDX-License-Identifier: Apache-2.0
 *
 * A channel with a dialer (struct torc_channel_options) asks it for each connection, instead of opening a socket: for
 * another network namespace, a SOCKS proxy, a tunnel, sockets with options of their own, or socketpairs in tests. Torc
 * runs TLS, as the channel's credentials say, and HTTP/2 on the descriptor; names are resolved and backends are chosen
 * as without a dialer.
 *
 *     static void dial(torc_dial *dial, const char *address, void *arg)
 *     {
 *         int fd = connect_through_tunnel(arg, address);
 *         torc_error *error = fd < 0 ? torc_error_new(TORC_EIO, TORC_LAYER_CONNECT, strerror(errno)) : NULL;
 *         torc_dial_done(dial, fd, error);
 *         torc_error_free(error);
 *     }
 *
 *     struct torc_dialer dialer = {TORC_SIZE(torc_dialer), .dial = dial, .arg = tunnel};
 *     struct torc_channel_options o = {TORC_SIZE(torc_channel_options), .credentials = tls, .dialer = &dialer};
 *
 * Connections to control planes do not use the dialer, and connections of channels with dialers are not shared. */
#ifndef TORC_DIALER_H
#define TORC_DIALER_H

#include <torc/error.h>
#include <torc/export.h>
#include <torc/size.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A connection that Torc waits for, at most connect_timeout_ms. The object lives until torc_dial_done, which frees it;
 * the channel and the runtime may end before. */
typedef struct torc_dial torc_dial;

/* How the connections of a channel are opened. */
struct torc_dialer {
    uint64_t size;
    /* Required. Opens a connection to the address ("127.0.0.1:443", "[::1]:443", "unix:/path", "vsock:2:1024"; a
     * proxy's if there is one), which is borrowed for the call. Called on the loop's thread; must not block. Each dial
     * is ended by torc_dial_done once, from inside or later, also after cancel. */
    void (*dial)(torc_dial *dial, const char *address, void *arg);
    /* Torc has given the connection up: the time has run out, the LB policy no longer needs it, or the channel has
     * ended. torc_dial_done is still to be called, from inside or later. Called on the loop's thread, at most once, and
     * never after torc_dial_done. A torc_dial_done on another thread waits until cancel has returned, so do not call it
     * under a lock that cancel takes. NULL: none. */
    void (*cancel)(torc_dial *dial, void *arg);
    /* The last callback: `arg` is the application's again. Called when the channel has ended, on the loop's thread, at
     * the latest inside torc_runtime_free. For a channel that was never used and whose runtime was freed before it,
     * inside torc_channel_free. Not called if torc_channel_new fails, nor in a child of a fork. NULL: none. */
    void (*release)(void *arg);
    void *arg; /* handed to the functions; may be NULL */
};

/* Ends a dial, and frees it. fd: a connected stream socket, which Torc takes over and closes, also when it no longer
 * waits for the connection; or -1 with an error. The error is borrowed; its text becomes part of the RPCs' status. A
 * descriptor that is not a connected stream socket, or that comes with an error, is closed, and the attempt fails; the
 * next attempt follows with backoff. A NULL dial: fd is closed. Any thread. */
TORC_API void torc_dial_done(torc_dial *dial, int fd, const torc_error *error);

/* Attaches a pointer of the application to a dial, for cancel to find. Any thread, until torc_dial_done. */
TORC_API void torc_dial_set_data(torc_dial *dial, void *data);

/* Returns the pointer that was attached, NULL if none was, and for NULL. Any thread, until torc_dial_done. */
TORC_API void *torc_dial_data(const torc_dial *dial);

#ifdef __cplusplus
}
#endif
#endif
