/* The handshakes that credentials are made of: nothing but a turn of the queue, a failure known beforehand, TLS. */
#ifndef TC_CREDS_HANDSHAKE_H
#define TC_CREDS_HANDSHAKE_H

#include "creds/creds.h"
#include "creds/tls_source.h"

/* Hands the byte stream on as it is. */
struct tc_creds_handshake *tc_creds_handshake_none(struct tc_loop *loop, struct tc_bytestream *bs, tc_creds_fn fn,
                                                   void *arg);
/* Closes the byte stream and fails with UNAVAILABLE and this text. */
struct tc_creds_handshake *tc_creds_handshake_fail(struct tc_loop *loop, struct tc_bytestream *bs, const char *why,
                                                   tc_creds_fn fn, void *arg);
struct tc_creds_handshake *tc_creds_handshake_tls(struct tc_loop *loop, struct tc_tls_context *context,
                                                  struct tc_bytestream *bs, const struct tc_creds_peer *peer,
                                                  tc_creds_fn fn, void *arg);
/* TLS with what the source has now; without it, a failure with the reason, `about` before it when not NULL. */
struct tc_creds_handshake *tc_creds_handshake_source(struct tc_loop *loop, struct tc_tls_source *source,
                                                     const char *about, struct tc_bytestream *bs,
                                                     const struct tc_creds_peer *peer, tc_creds_fn fn, void *arg);
/* Of any of them: the cancel of struct tc_creds_ops. */
void tc_creds_handshake_cancel(struct tc_creds_handshake *h);

#endif
