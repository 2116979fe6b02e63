/* The xDS client of one target where targets share the resources of some authorities, but not of all. It sends each
 * watch to the shared client or to the target's own client, as tc_xds_bootstrap_shares says. Loop thread only. */
#ifndef TC_XDS_CLIENT_FORWARDING_CLIENT_H
#define TC_XDS_CLIENT_FORWARDING_CLIENT_H

#include "xds/client/client.h"

/* Returns a client with one reference. Takes over the caller's reference of `own`; takes a reference of `shared`. Both
 * must have the same bootstrap and the same loop. A dump shows the entries of `own` alone. */
struct tc_xds_client *tc_xds_forwarding_client_new(struct tc_xds_client *own, struct tc_xds_client *shared);

#endif
