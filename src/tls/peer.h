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
    char *text; /* not empty, and as long as the certificate says: names with a NUL are left out */
};

struct tc_tls_peer {
    struct tc_ref ref;
    struct tc_rstr *der;
    TC_VEC(struct tc_tls_peer_name) names;
};

/* Inside of a foreign section (base/fork.h). */
struct tc_tls_peer *tc_tls_peer_new(struct x509_st *leaf);
/* NULL stays NULL. */
struct tc_tls_peer *tc_tls_peer_ref(struct tc_tls_peer *peer);
void tc_tls_peer_unref(struct tc_tls_peer *peer);

#endif
