/* The identity that a server has shown in a TLS handshake: certificates and names, in memory of Torc's. One thread at a
 * time; tc_tls_identify is for the loop's thread. */
#ifndef TC_TLS_IDENTITY_H
#define TC_TLS_IDENTITY_H

#include "base/rstr.h"
#include "base/vec.h"
#include "tls/san.h"
#include "tls/tls.h"

/* The most subject alternative names of a certificate: a server with more is refused. */
enum { TC_TLS_MAX_NAMES = 4096 };

struct tc_tls_name {
    enum tc_san_kind kind;
    struct tc_rstr *text;
};

struct tc_tls_identity {
    TC_VEC(struct tc_rstr *) certificates; /* DER, the server's own first */
    TC_VEC(struct tc_tls_name) names;      /* of the first certificate */
    char *server_name;                     /* the name that the handshake was for; "": none */
};

/* Fills in *out, which is zeroed, for a byte stream of tc_tls_fn on the client's side: the chain that was verified, or
 * what the server sent if verification is off. Returns false with the reason in `why` (out is still zeroed). */
bool tc_tls_identify(struct tc_bytestream *bs, struct tc_tls_identity *out, struct tc_buf *why);
void tc_tls_identity_fini(struct tc_tls_identity *id);

#endif
