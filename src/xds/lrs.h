/* Load reports (LRS, A27) to one server: a stream that is open while any cluster's loads are to be reported there. The
 * server says which clusters and how often; a stream that breaks is opened again without losing counts that were not
 * handed over. Inside src/xds; the door for others is tc_xds_client_load. */
#ifndef TC_XDS_LRS_H
#define TC_XDS_LRS_H

#include "xds/load_store.h"

struct tc_xds_channel;
struct tc_xds_lrs;

struct tc_xds_lrs *tc_xds_lrs_new(struct tc_xds_channel *ch);
/* Cancels its stream. Loads that are held outside stay, for nothing. */
void tc_xds_lrs_free(struct tc_xds_lrs *l);
struct tc_load_store *tc_xds_lrs_store(struct tc_xds_lrs *l);
/* Is there anything to report, or a last report under way? */
bool tc_xds_lrs_active(const struct tc_xds_lrs *l);
void tc_xds_lrs_reset_backoff(struct tc_xds_lrs *l);

#endif
