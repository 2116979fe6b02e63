/* Queries on the servers of an authority, in order of preference, and on whether they can be reached (A71). Loop thread
 * only. */
#ifndef TC_XDS_CLIENT_SERVER_ORDER_H
#define TC_XDS_CLIENT_SERVER_ORDER_H

#include "xds/client/local_internal.h"

/* Returns the first place of a channel in the authority's list, or -1. */
int tc_xds_authority_channel_index(const struct tc_xds_authority_state *s, const struct tc_xds_channel *ch);
/* Returns the error of the last server in use if no server in use can be reached; OK if nothing bad is known of at
 * least one. Borrowed. */
const struct tc_status *tc_xds_authority_error_in_use(const struct tc_xds_authority_state *s);
/* Returns why no server of the authority's list can be reached; OK if at least one may be reachable. Borrowed. */
const struct tc_status *tc_xds_authority_error(const struct tc_xds_authority_state *s);
/* Returns whether the entry's value or error is from another server, so that this server is to send the resource
 * again. */
bool tc_xds_entry_is_superseded(const struct tc_xds_entry *e, const struct tc_xds_server *server);
/* Returns whether an authority uses a channel behind this one in its list. */
bool tc_xds_channel_has_fallback(const struct tc_xds_channel *ch);
/* Returns whether this channel's server may declare the entry's resource invalid or absent. */
bool tc_xds_channel_speaks_for(const struct tc_xds_channel *ch, const struct tc_xds_entry *e);

#endif
