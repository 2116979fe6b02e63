/* Access tokens of OAuth 2.0: what an endpoint answers (RFC 6749, section 5), and the two that hand out Google's. */
#ifndef TC_CREDS_OAUTH_H
#define TC_CREDS_OAUTH_H

#include "base/slice.h"
#include "creds/token.h"

/* What an answer leads to. A83: a status that means UNAVAILABLE in gRPC stays so, all else is UNAUTHENTICATED. `who`
 * names the endpoint in messages; `now_ns` is realtime. */
void tc_oauth_token(const char *who, int http_status, struct tc_slice body, int64_t now_ns, struct tc_token *out);

/* What an endpoint has for its answer, from the look-up of its name on. */
#define TC_TOKEN_FETCH_MS 30000

/* Tokens of the metadata server on host[:port], which has timeout_ms for an answer. Strings are copied. */
torc_call_credentials *tc_metadata_server_creds(const char *host, uint64_t timeout_ms);

/* An authorized user's refresh token (RFC 6749, section 6). Strings are copied. */
struct tc_refresh_opts {
    const char *token_uri;
    const char *client_id, *client_secret, *refresh_token;
    const char *roots_file; /* NULL: the system's */
};
torc_call_credentials *tc_refresh_token_creds(const struct tc_refresh_opts *opts);

#endif
