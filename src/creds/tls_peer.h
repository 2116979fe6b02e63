/* The application's hook that judges TLS peers (torc/tls_peer.h), as a handshake asks it. Loop thread only; the
 * application answers on any thread. */
#ifndef TC_CREDS_TLS_PEER_H
#define TC_CREDS_TLS_PEER_H

#include <torc/credentials.h>
#include <torc/tls_peer.h>

#include <stdatomic.h>

#include "base/status.h"
#include "io/bytestream.h"
#include "io/loop.h"

/* fn NULL: there is no hook. */
struct tc_tls_hook {
    torc_credentials *owner; /* the credentials that have the hook; borrowed, but each peer holds a reference */
    torc_tls_verify_fn fn;
    void (*release)(void *arg); /* called once, when the owner is freed; NULL: none */
    void *arg;                  /* of both */
    atomic_size_t n_peers; /* peers that are not freed: the application has not answered, or the handshake has not taken
                              the answer */
};

/* Called once from the loop, never from inside tc_tls_peer_ask. `refusal` is the reason, borrowed for the call; NULL:
 * the peer was accepted. */
typedef void (*tc_tls_verdict_fn)(void *arg, const char *refusal);

/* Asks the hook, which must live until the verdict or the cancel, about a byte stream that TLS was established on.
 * Returns a handle for tc_tls_peer_cancel, which is valid until the verdict. Returns NULL with the reason in `why` if
 * the peer's identity cannot be read, or 4096 peers of the hook are not freed: the caller must refuse the peer. */
struct torc_tls_peer *tc_tls_peer_ask(struct tc_loop *loop, struct tc_tls_hook *hook, struct tc_bytestream *bs,
                                      tc_tls_verdict_fn fn, void *arg, struct tc_buf *why);
/* Withdraws the question: no verdict follows. Must not be called after the verdict. */
void tc_tls_peer_cancel(struct torc_tls_peer *peer);

#endif
