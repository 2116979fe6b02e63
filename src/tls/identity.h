/* The identity that a peer has shown in a TLS handshake: certificates and names, in Torc's own memory. Immutable,
 * counted; any thread, except tc_tls_identify. */
#ifndef TC_TLS_IDENTITY_H
#define TC_TLS_IDENTITY_H

#include "base/ref.h"
#include "base/rstr.h"
#include "base/vec.h"
#include "tls/san.h"
#include "tls/tls.h"

/* The most DNS, URI, email and IP names of a peer's own certificate. With more, tc_tls_identify fails. */
enum { TC_TLS_MAX_NAMES = 4096 };

struct tc_tls_name {
    enum tc_san_kind kind;
    struct tc_rstr *text; /* as tc_san_fn gets it; a reference */
};

struct tc_tls_identity {
    struct tc_ref ref;
    TC_VEC(struct tc_rstr *) certificates; /* DER, the peer's own first; a client may have none */
    TC_VEC(struct tc_tls_name) names;      /* of the first certificate */
    char *server_name;                     /* the name that a client's handshake was for; "": none, or on a server */
};

/* Returns the identity of the peer behind a byte stream of tc_tls_fn, with one reference: the chain that was verified,
 * or what a server sent if verification is off. Returns NULL and appends the reason to `why` if a certificate cannot be
 * read, a server's is missing, the peer's own has more than TC_TLS_MAX_NAMES names, or the process is exiting. Loop
 * thread. */
struct tc_tls_identity *tc_tls_identify(struct tc_bytestream *bs, struct tc_buf *why);
/* Stores certificate `i` in DER, borrowed from the identity. Returns 0, or TORC_ENOTFOUND beyond the last. `der` and
 * `size` may be NULL. */
static inline int tc_tls_identity_certificate(const struct tc_tls_identity *id, size_t i, const void **der,
                                              size_t *size)
{
    if (i >= id->certificates.len)
        return TORC_ENOTFOUND;
    if (der)
        *der = id->certificates.data[i]->data;
    if (size)
        *size = id->certificates.data[i]->len;
    return 0;
}
/* Take and drop a reference. NULL is allowed: tc_tls_identity_ref returns NULL then. */
struct tc_tls_identity *tc_tls_identity_ref(struct tc_tls_identity *id);
void tc_tls_identity_unref(struct tc_tls_identity *id);

#endif
