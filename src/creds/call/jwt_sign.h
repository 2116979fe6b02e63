/* Signing of JSON Web Tokens (RFC 7515). Any thread. */
#ifndef TC_CREDS_CALL_JWT_SIGN_H
#define TC_CREDS_CALL_JWT_SIGN_H

#include "base/buf.h"
#include "tls/openssl.h"

/* The strings are borrowed for the call. */
struct tc_jwt_claims {
    const char *key_id;          /* "kid" of the header; NULL: none */
    const char *issuer;          /* "iss" and "sub" */
    const char *audience;        /* "aud" */
    int64_t issued_s, expires_s; /* "iat" and "exp": seconds since 1970 */
};

/* Appends a token signed with an RSA key (RS256). The strings must be valid UTF-8. Returns 0; or TORC_EIO, with `out`
 * unchanged, when OpenSSL cannot sign with the key, or the process is exiting. The token is a secret: the caller wipes
 * `out`. */
int tc_jwt_sign(struct tc_buf *out, EVP_PKEY *key, const struct tc_jwt_claims *claims);

#endif
