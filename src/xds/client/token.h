/* ADS flow-control tokens, one for each response. Watchers hold the token while they work on the response; events
 * queued for watchers, a decode job and an incremental answer hold it, too. The next response is read when the last
 * reference has gone, or later after a pause (tc_xds_ads_pause). All functions but the first accept NULL. Loop thread
 * only. */
#ifndef TC_XDS_CLIENT_TOKEN_H
#define TC_XDS_CLIENT_TOKEN_H

struct tc_xds_token;

/* Returns a token with one reference. on_released is called from inside the tc_xds_token_unref that gives up the last
 * reference, unless the token was detached. */
struct tc_xds_token *tc_xds_token_new(void (*on_released)(void *arg), void *arg);
void tc_xds_token_ref(struct tc_xds_token *t);
void tc_xds_token_unref(struct tc_xds_token *t);
/* Called when the stream of the response is gone: on_released will not be called. References stay. */
void tc_xds_token_detach(struct tc_xds_token *t);

#endif
