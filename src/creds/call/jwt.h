/* JSON Web Tokens (RFC 7519, RFC 7515): reading the expiry. Pure functions, any thread. */
#ifndef TC_CREDS_CALL_JWT_H
#define TC_CREDS_CALL_JWT_H

#include "base/buf.h"
#include "base/slice.h"

/* Reads when a token expires ("exp"): whole seconds since 1970, cut to the end of the year 9999. No other claim is
 * checked; the server checks the signature (A97). Returns 0, with *why unchanged; or TORC_EPARSE when the token is not
 * a JWT with an "exp" of at least 1: then *why is the reason, a static text that never quotes the token. */
int tc_jwt_expiry(struct tc_slice token, int64_t *exp_s, const char **why);

#endif
