/* Load reports (LRS, A27) to one server. A stream is kept open while any cluster's loads are to be reported to the
 * server. The server says which clusters and how often. If the stream ends before a report was handed to the transport,
 * the counts of the report go into the next one. Other folders use tc_xds_client_load. Loop thread only. */
#ifndef TC_XDS_CLIENT_LRS_H
#define TC_XDS_CLIENT_LRS_H

#include "xds/load/load_store.h"

struct tc_xds_channel;
struct tc_xds_lrs;

/* Returns the load reports of the channel, without a stream. on_idle is called by the loop when the store has no user
 * and the stream is gone. on_idle may free the channel, and this object with it. */
struct tc_xds_lrs *tc_xds_lrs_new(struct tc_xds_channel *ch, void (*on_idle)(struct tc_xds_channel *ch));
/* Cancels the stream, and frees the object and its store. Load clusters with references stay, and are no longer
 * reported. NULL is allowed. */
void tc_xds_lrs_free(struct tc_xds_lrs *l);
/* Returns the store that the loads are counted in, borrowed. */
struct tc_load_store *tc_xds_lrs_store(struct tc_xds_lrs *l);
/* Returns whether loads are to be reported, or a stream is still open. */
bool tc_xds_lrs_active(const struct tc_xds_lrs *l);
/* Resets the backoff. If the next stream waits for the backoff, a task opens it instead. */
void tc_xds_lrs_reset_backoff(struct tc_xds_lrs *l);

#endif
