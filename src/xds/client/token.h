/* ADS flow-control tokens: watchers hold a response's token while they work on the response, and so do its decode job
 * and its incremental answer. The next response is read when the last reference is gone. A token may be NULL, which
 * needs no release. Loop thread only. */
#ifndef TC_XDS_CLIENT_TOKEN_H
#define TC_XDS_CLIENT_TOKEN_H

struct tc_xds_token;

/* Returns a token with one reference. Calls on_released when the last reference goes, unless the token was detached. */
struct tc_xds_token *tc_xds_token_new(void (*on_released)(void *arg), void *arg);
void tc_xds_token_ref(struct tc_xds_token *t);
void tc_xds_token_unref(struct tc_xds_token *t);
/* The stream of the response is gone: on_released will not be called. References stay. */
void tc_xds_token_detach(struct tc_xds_token *t);

#endif
