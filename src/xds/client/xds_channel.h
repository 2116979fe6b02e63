/* The life of an xds_channel, the connection to one server. Loop thread only. */
#ifndef TC_XDS_CLIENT_XDS_CHANNEL_H
#define TC_XDS_CLIENT_XDS_CHANNEL_H

#include "xds/client/channel_internal.h"

/* Returns the client's channel to this server, borrowed; made if it does not exist. A47: equal entries have one
 * channel, whichever authority names them. A new channel must get a use (tc_xds_channel_use) or a user of its loads,
 * whose end frees the channel. */
struct tc_xds_channel *tc_xds_channel_get(struct tc_xds_local_client *c, const struct tc_xds_server *server);
/* Counts a use by an authority (`users`), and opens the ADS stream. A channel that was kept for its load reports tries
 * to connect at once: without users its failures were not reported, so a failure that lasts must show itself again. */
void tc_xds_channel_use(struct tc_xds_channel *ch);
/* Gives back one use (`users`). The last one ends the ADS stream, and calls tc_xds_channel_release. */
void tc_xds_channel_put(struct tc_xds_channel *ch);
/* Frees the channel, unless an authority uses it, loads are to be reported on it, or its LRS stream is still open. */
void tc_xds_channel_release(struct tc_xds_channel *ch);
/* Returns the channel's load reports, borrowed; made if they do not exist. */
struct tc_xds_lrs *tc_xds_channel_lrs(struct tc_xds_channel *ch);
/* Ends the channel's load reports without a last one, and frees the channel if no authority uses it. */
void tc_xds_channel_stop_lrs(struct tc_xds_channel *ch);
/* Ends the waits after failures: of the connection, of the ADS stream and of load reports. */
void tc_xds_channel_reset_backoff(struct tc_xds_channel *ch);

#endif
