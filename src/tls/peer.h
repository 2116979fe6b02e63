/* The certificate that a client showed to a server. Immutable, shared; any thread. */
#ifndef TC_TLS_PEER_H
#define TC_TLS_PEER_H

#include "base/ref.h"
#include "base/rstr.h"
#include "base/vec.h"
#include "tls/san.h"

/* A subject alternative name. */
struct tc_tls_peer_name {
    enum tc_san_kind kind;
    char *text; /* names that are empty or have a NUL inside are left out */
};

struct tc_tls_peer {
    struct tc_ref ref;
    struct tc_rstr *der;
    TC_VEC(struct tc_tls_peer_name) names;
};

/* Copies the certificate and its names. Must be called inside a foreign section (base/fork.h). */
struct tc_tls_peer *tc_tls_peer_new(struct x509_st *leaf);
/* NULL stays NULL. */
struct tc_tls_peer *tc_tls_peer_ref(struct tc_tls_peer *peer);
void tc_tls_peer_unref(struct tc_tls_peer *peer);

#endif
