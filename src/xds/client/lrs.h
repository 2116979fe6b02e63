/* Load reports (LRS, A27) to one server: a stream that is open while any cluster's loads are to be reported there. The
 * server says which clusters and how often. A stream that breaks is opened again; the counts of a report that was still
 * on its way to the transport, or that the server did not take because it had ended the stream, go into the next
 * report. Other folders use tc_xds_client_load. Loop thread only. */
#ifndef TC_XDS_CLIENT_LRS_H
#define TC_XDS_CLIENT_LRS_H

#include "xds/load/load_store.h"

struct tc_xds_channel;
struct tc_xds_lrs;

/* Returns the load reports of the channel, without a stream. on_idle is called when the store has no user and the
 * stream is gone. It may free the channel, and this object with it. */
struct tc_xds_lrs *tc_xds_lrs_new(struct tc_xds_channel *ch, void (*on_idle)(struct tc_xds_channel *ch));
/* Cancels the stream and frees the object. Load clusters that others hold stay, and are no longer reported. */
void tc_xds_lrs_free(struct tc_xds_lrs *l);
/* Returns the store that the loads are counted in, borrowed. */
struct tc_load_store *tc_xds_lrs_store(struct tc_xds_lrs *l);
/* Returns whether loads are to be reported, or the stream of the last report is still open. */
bool tc_xds_lrs_active(const struct tc_xds_lrs *l);
/* Resets the backoff. If the next stream waits for it, a task opens the stream instead. */
void tc_xds_lrs_reset_backoff(struct tc_xds_lrs *l);

#endif
