/* The application's own check of TLS peers. SPDX-License-Identifier: Apache-2.0
 *
 * Channels: a hook in struct torc_tls_options or torc_tls_files is asked for each connection, after Torc's checks: the
 * chain up to a trusted root, and the server's name. Nothing of HTTP/2 is sent before the hook has accepted the server;
 * the handshake waits, within connect_timeout_ms. If the hook refuses, or does not answer in time, the connection has
 * failed: RPCs fail with UNAVAILABLE and the reason, and the next attempt follows with backoff. A hook is not asked
 * about a server that Torc's checks refused. With these checks off (skip_verify), only the hook decides.
 *
 *     static void verify(torc_tls_peer *peer, void *arg)
 *     {
 *         const void *der;
 *         size_t size;
 *         if (torc_tls_peer_certificate(peer, 0, &der, &size) == 0 && is_pinned(arg, der, size))
 *             torc_tls_peer_accept(peer);
 *         else
 *             torc_tls_peer_refuse(peer, "the certificate is not the pinned one");
 *     }
 *
 * When the hook is asked, the server has already seen the client's certificate, if there is one.
 *
 * Servers: a hook in struct torc_server_tls_options or torc_server_tls_files is asked for each connection, after Torc's
 * check of the client's chain, and before any byte of HTTP/2 is read or sent. It has the time that is left of
 * handshake_timeout_ms. If the hook refuses, or does not answer in time, the connection is closed, and the log has the
 * reason; the client is not told. */
#ifndef TORC_TLS_PEER_H
#define TORC_TLS_PEER_H

#include <stddef.h>
#include <stdint.h>

#include <torc/export.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A server, or a client of a server, that waits to be accepted. It does not depend on the connection, the channel, the
 * server or the runtime: all of these may have ended. Its functions may be called from any thread until it is accepted
 * or refused, which frees it; what they return is borrowed until then. */
typedef struct torc_tls_peer torc_tls_peer;

/* Called on the thread that drives the connection's loop; must not block. Connections of several runtimes call it on
 * several threads at once. Each peer must be accepted or refused once, from inside or later, from any thread, also when
 * its connection has ended: the object stays until then. At most 4096 peers of one credentials object may wait for an
 * answer; further connections are refused meanwhile, without a call. */
typedef void (*torc_tls_verify_fn)(torc_tls_peer *peer, void *arg);

/* Returns the server's name: the host of the channel's authority, without port and brackets; "" if there is none, and
 * for clients. The certificate is valid for that name, unless skip_verify or skip_name is on. NULL for NULL. */
TORC_API const char *torc_tls_peer_server_name(const torc_tls_peer *peer);

/* Returns the address of the connection ("127.0.0.1:443"), which is the proxy's if there is one. NULL for NULL. */
TORC_API const char *torc_tls_peer_address(const torc_tls_peer *peer);

/* Stores certificate `i` of the peer in DER; 0 is the peer's own. The certificates are the chain that was checked, up
 * to its trusted root, without what else the peer sent. With skip_verify they are what the server sent: it has proved
 * that it has the key of the first, and nothing vouches for the others. Returns 0, TORC_ENOTFOUND beyond the last (so
 * for every `i` if a client showed none, where none is required), TORC_EINVAL for NULL. Outputs may be NULL. */
TORC_API int torc_tls_peer_certificate(const torc_tls_peer *peer, size_t i, const void **der, size_t *size);

/* The kinds of subject alternative names. Later versions add numbers: skip those that are not known. */
enum torc_tls_name_kind {
    TORC_TLS_NAME_DNS = 0,   /* "orders.example", "*.example" */
    TORC_TLS_NAME_URI = 1,   /* "spiffe://domain/path" */
    TORC_TLS_NAME_EMAIL = 2, /* "who@example" */
    TORC_TLS_NAME_IP = 3,    /* as text: "127.0.0.1", "::1" */
};

/* Stores subject alternative name `i` of the peer's certificate, counted from 0: an enum torc_tls_name_kind, and the
 * name with a NUL behind it. A name may have NULs inside and any other bytes: compare all `*size` of them. Returns 0,
 * TORC_ENOTFOUND beyond the last, TORC_EINVAL for NULL. Outputs may be NULL. */
TORC_API int torc_tls_peer_name(const torc_tls_peer *peer, size_t i, int32_t *kind, const char **name, size_t *size);

/* Lets the connection go on, and frees the peer. Only frees it when the connection no longer waits: the time is up, the
 * LB policy does not need it, or the channel or server has ended. Does not wait. NULL is allowed. */
TORC_API void torc_tls_peer_accept(torc_tls_peer *peer);

/* Ends the connection, and frees the peer. reason: copied, for the status of RPCs, and for a server's log; NULL: none.
 * Does not wait. A NULL peer is allowed. */
TORC_API void torc_tls_peer_refuse(torc_tls_peer *peer, const char *reason);

#ifdef __cplusplus
}
#endif
#endif
