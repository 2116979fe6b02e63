/* The handshakes of credentials, of channels and of servers. Each takes over the byte stream, reports its outcome by a
 * callback from the loop, and is freed with the outcome or by its cancel. Loop thread only. */
#ifndef TC_CREDS_HANDSHAKE_H
#define TC_CREDS_HANDSHAKE_H

#include "creds/creds.h"
#include "creds/tls_peer.h"
#include "creds/tls_source.h"

/* Hands the byte stream on unchanged. */
struct tc_creds_handshake *tc_creds_handshake_none(struct tc_loop *loop, struct tc_bytestream *bs, tc_creds_fn fn,
                                                   void *arg);
/* TLS, and then the hook's verdict on the peer. Takes its own reference to the context. There is no hook if `hook` or
 * its fn is NULL; a hook must live until the end of the handshake. peer->timeout_ms bounds TLS alone: the caller bounds
 * the wait for the verdict, by a cancel. */
struct tc_creds_handshake *tc_creds_handshake_tls(struct tc_loop *loop, struct tc_tls_context *context,
                                                  struct tc_tls_hook *hook, struct tc_bytestream *bs,
                                                  const struct tc_creds_peer *peer, tc_creds_fn fn, void *arg);
/* tc_creds_handshake_tls with the present context of the source. If the source gives no context, the handshake fails
 * with the text "ABOUT: REASON" (`about` NULL: the reason alone). */
struct tc_creds_handshake *tc_creds_handshake_source(struct tc_loop *loop, struct tc_tls_source *source,
                                                     struct tc_tls_hook *hook, const char *about,
                                                     struct tc_bytestream *bs, const struct tc_creds_peer *peer,
                                                     tc_creds_fn fn, void *arg);
/* Returns what the handshake waits for, as a static text for messages. */
const char *tc_creds_handshake_stage(const struct tc_creds_handshake *h);
/* `cancel` of struct tc_creds_ops for each of these handshakes. */
void tc_creds_handshake_cancel(struct tc_creds_handshake *h);

#endif
