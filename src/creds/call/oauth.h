/* Access tokens of OAuth 2.0 (RFC 6749, section 5): reading an endpoint's answer, and the credentials of two kinds of
 * endpoint. A function that makes credentials returns one reference, never NULL. Any thread. */
#ifndef TC_CREDS_CALL_OAUTH_H
#define TC_CREDS_CALL_OAUTH_H

#include "base/slice.h"
#include "creds/call/token.h"

/* Stores in *out, which must be zero, the token of an endpoint's answer, or a failure. A83: an HTTP status that gRPC
 * maps to UNAVAILABLE (429, 502, 503, 504) is UNAVAILABLE; every other failure is UNAUTHENTICATED. `who` names the
 * endpoint in texts; `now_ns` is realtime, in nanoseconds since 1970. A token that has expired is stored too:
 * tc_token_refuse_expired judges it. */
void tc_oauth_token(const char *who, int http_status, struct tc_slice body, int64_t now_ns, struct tc_token *out);

/* The time limit of a fetch, the look-up of the endpoint's name included. */
#define TC_TOKEN_FETCH_MS 30000

/* Makes credentials with tokens of the metadata server at host[:port]. The host is copied. A fetch takes at most
 * timeout_ms. */
torc_call_credentials *tc_metadata_server_creds(const char *host, uint64_t timeout_ms);

/* An authorized user's refresh token (RFC 6749, section 6). Strings are copied. */
struct tc_refresh_opts {
    const char *token_uri; /* the token endpoint */
    const char *client_id, *client_secret, *refresh_token;
    const char *roots_file; /* NULL: the system's */
};
/* Makes credentials with the tokens that the endpoint gives for the refresh token. A fetch takes at most
 * TC_TOKEN_FETCH_MS. */
torc_call_credentials *tc_refresh_token_creds(const struct tc_refresh_opts *opts);

#endif
