/* Channel credentials inside the library: how a connected byte stream becomes a trusted one. Counted and shared; any
 * thread, but handshakes are the loop's. */
#ifndef TC_CREDS_CREDS_H
#define TC_CREDS_CREDS_H

#include <torc/credentials.h>

#include "base/ref.h"
#include "base/rstr.h"
#include "base/status.h"
#include "io/bytestream.h"
#include "io/loop.h"

/* The peer, as it is known before the handshake. Borrowed for the duration of start. */
struct tc_creds_peer {
    struct tc_slice server_name; /* host part of the channel's authority; for a cluster that the control plane secures
                                    the SNI, or empty; on servers empty */
    uint64_t timeout_ms;         /* for TLS alone, not for the wait for a hook's verdict; 0: none */
};

/* Called once from the loop unless cancelled, never from inside of start: with a byte stream that the callee owns, or
 * with NULL and a borrowed status. */
typedef void (*tc_creds_fn)(void *arg, struct tc_bytestream *bs, const struct tc_status *error);

struct tc_creds_handshake; /* a handshake that runs; freed before fn is called, or by cancel */

/* A composite has `type` and `free` alone: handshakes are made with tc_creds_channel. */
struct tc_creds_ops {
    const char *type; /* "insecure", "tls" */
    /* Starts a handshake, which takes over the byte stream. Loop thread. */
    struct tc_creds_handshake *(*start)(torc_credentials *c, struct tc_loop *loop, struct tc_bytestream *bs,
                                        const struct tc_creds_peer *peer, tc_creds_fn fn, void *arg);
    /* Ends the handshake and closes the byte stream: fn is not called. Must not be called after fn. Loop thread. */
    void (*cancel)(struct tc_creds_handshake *h);
    /* Returns a number that changes with certificates, keys or roots, after reading their files again if that is due.
     * Any thread; may log, so no lock must be held. NULL: they never change. */
    uint64_t (*epoch)(torc_credentials *c);
    void (*free)(torc_credentials *c); /* NULL: static, and references are not counted */
};

/* Implementations embed it first. */
struct torc_credentials {
    struct tc_ref ref;
    const struct tc_creds_ops *ops;
    const char *scheme;  /* ":scheme": "http" or "https" */
    struct tc_rstr *key; /* part of the subchannel pool's key: equal only for credentials that make equal connections */
    /* The parts of a composite, with a reference to each; NULL otherwise. */
    torc_credentials *channel;
    torc_call_credentials *call;
    bool for_servers;    /* for a server's listeners, not for channels */
    uint64_t refresh_ns; /* a connection looks at the epoch again before this time is over; 0: never */
};

/* Returns the credentials that connections are made with, without call credentials: the channel's part of a composite,
 * else `c` itself. Borrowed. */
torc_credentials *tc_creds_channel(torc_credentials *c);

#endif
