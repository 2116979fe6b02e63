/* ADS flow-control tokens: a response's watchers hold its token while they work on it, and the next
 * response is read when the last hold is gone. Loop thread only. */
#ifndef TC_XDS_CLIENT_TOKEN_H
#define TC_XDS_CLIENT_TOKEN_H

struct tc_xds_token;

/* One reference. on_released is called when the last one goes, unless the token was detached. */
struct tc_xds_token *tc_xds_token_new(void (*on_released)(void *arg), void *arg);
/* NULL is allowed, here and below. */
void tc_xds_token_ref(struct tc_xds_token *t);
void tc_xds_token_unref(struct tc_xds_token *t);
/* The stream of the response is gone: on_released will not be called. */
void tc_xds_token_detach(struct tc_xds_token *t);

#endif
