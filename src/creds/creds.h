/* Channel credentials inside the library: how a connected byte stream becomes a trusted one. Immutable, shared. */
#ifndef TC_CREDS_CREDS_H
#define TC_CREDS_CREDS_H

#include <torc/credentials.h>

#include "base/ref.h"
#include "base/rstr.h"
#include "base/status.h"
#include "io/bytestream.h"
#include "io/loop.h"

/* What is known of the peer before the handshake. Borrowed for the call of start. */
struct tc_creds_peer {
    struct tc_slice server_name; /* host part of the channel's authority; under xds credentials the SNI, or empty */
    const struct tc_addr *addr;
    uint64_t timeout_ms;
};

/* Called once from the loop, never from inside start: a byte stream that the callee owns, or NULL and a status. */
typedef void (*tc_creds_fn)(void *arg, struct tc_bytestream *bs, const struct tc_status *error);

struct tc_creds_handshake; /* one that runs; freed with its end or by cancel */

struct tc_creds_ops {
    const char *type; /* "insecure", "tls" */
    /* Takes over the byte stream. */
    struct tc_creds_handshake *(*start)(torc_credentials *c, struct tc_loop *loop, struct tc_bytestream *bs,
                                        const struct tc_creds_peer *peer, tc_creds_fn fn, void *arg);
    void (*cancel)(struct tc_creds_handshake *h);
    /* A number that changes when what handshakes are made with has changed; looks at the files behind it. Any thread.
     * NULL: it never changes. */
    uint64_t (*epoch)(torc_credentials *c);
    void (*free)(torc_credentials *c);
};

/* Implementations embed it first. */
struct torc_credentials {
    struct tc_ref ref;
    const struct tc_creds_ops *ops;
    const char *scheme;  /* ":scheme": "http" or "https" */
    struct tc_rstr *key; /* equal for credentials that make equal connections: part of the subchannel pool's key */
    /* Of a composite; else NULL. */
    torc_credentials *channel;
    torc_call_credentials *call;
    uint64_t refresh_ns; /* how long connections may go on with what has changed since (epoch); 0: for ever */
};

/* What options have before the application sets them: insecure, immortal, and not NULL, which is a mistake. */
torc_credentials *tc_creds_default(void);

/* What options have until the application sets them: insecure, and never freed. NULL there is a mistake, the result of
 * a function that made none, and must not come out as a connection in the clear. */
torc_credentials *tc_creds_default(void);

/* Without call credentials: what connections are made with. Borrowed; itself where there are none. */
torc_credentials *tc_creds_channel(torc_credentials *c);

/* Credentials by a name and JSON config, as the bootstrap's channel_creds have them ("insecure", "tls"). NULL with
 * faults' text in *why (tc_free) when the type is unknown or the config is bad. */
torc_credentials *tc_creds_from_config(const char *type, const char *config_json, char **why);
bool tc_creds_type_supported(const char *type);

#endif
