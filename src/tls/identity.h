/* The identity that a peer has shown in a TLS handshake: certificates and names, in memory of Torc's. Immutable,
 * counted; any thread, except the functions that make one. */
#ifndef TC_TLS_IDENTITY_H
#define TC_TLS_IDENTITY_H

#include "base/ref.h"
#include "base/rstr.h"
#include "base/vec.h"
#include "tls/san.h"
#include "tls/tls.h"

/* The most subject alternative names of a server's certificate: a server with more is refused. */
enum { TC_TLS_MAX_NAMES = 4096 };

struct tc_tls_name {
    enum tc_san_kind kind;
    struct tc_rstr *text;
};

struct tc_tls_identity {
    struct tc_ref ref;
    TC_VEC(struct tc_rstr *) certificates; /* DER, the peer's own first; of a client its own alone */
    TC_VEC(struct tc_tls_name) names;      /* of the first certificate; of a client none that is empty or has a NUL */
    char *server_name;                     /* of a server: the name that the handshake was for; "": none */
};

/* Returns the identity of the server behind a byte stream of tc_tls_fn on the client's side: the chain that was
 * verified, or what the server sent if verification is off. Returns NULL with the reason in `why`. Loop thread. */
struct tc_tls_identity *tc_tls_identify(struct tc_bytestream *bs, struct tc_buf *why);
/* Returns the identity of a client that showed this certificate. Must be called inside a foreign section
 * (base/fork.h). */
struct tc_tls_identity *tc_tls_identity_of_client(struct x509_st *leaf);
/* NULL stays NULL. */
struct tc_tls_identity *tc_tls_identity_ref(struct tc_tls_identity *id);
void tc_tls_identity_unref(struct tc_tls_identity *id);

#endif
