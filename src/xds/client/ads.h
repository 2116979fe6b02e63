/* The ADS stream of one server, in both forms of ADS. Loop thread only. */
#ifndef TC_XDS_CLIENT_ADS_H
#define TC_XDS_CLIENT_ADS_H

#include "xds/client/channel_internal.h"

/* The two forms: state of the world, and incremental. */
extern const struct tc_xds_ads_ops tc_xds_ads_sotw, tc_xds_ads_delta;

/* Initialises ch->ads, which must be zeroed, without a stream. `ops` is one of the two above. */
void tc_xds_ads_init(struct tc_xds_channel *ch, const struct tc_xds_ads_ops *ops);
/* Cancels the stream and frees what ch->ads holds. */
void tc_xds_ads_fini(struct tc_xds_channel *ch);
/* Opens a stream, unless there is one, or a timer, a task or the response that another thread decodes will lead to
 * one. */
void tc_xds_ads_start(struct tc_xds_channel *ch);
/* Resets the backoffs. If the next stream waits for `retry`, a task opens it instead. */
void tc_xds_ads_reset_backoff(struct tc_xds_channel *ch);
/* Called when the server has answered: by a response, or by silence that counts as an answer (`quiet`). Resets the
 * backoff, unless hold_backoff is set. */
void tc_xds_ads_proved(struct tc_xds_channel *ch);
/* Called for a response that was ignored, or of which something was rejected. Delays the next read if the response took
 * much CPU time (took_ns). */
void tc_xds_ads_pause(struct tc_xds_channel *ch, uint64_t took_ns);
/* Called when the stream has ended with this status, borrowed, and no response waits to be applied. The next stream
 * opens by a task or a timer. Calls on_unreachable if the end counts as a failure of the server. */
void tc_xds_ads_ended(struct tc_xds_channel *ch, const struct tc_status *status);

#endif
