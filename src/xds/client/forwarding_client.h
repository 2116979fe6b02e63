/* The xDS client of one target in a runtime where targets share the resources of some authorities (A71): it sends each
 * watch to the client that all targets share or to the target's own, as tc_xds_bootstrap_shares says. Loop thread
 * only. */
#ifndef TC_XDS_CLIENT_FORWARDING_CLIENT_H
#define TC_XDS_CLIENT_FORWARDING_CLIENT_H

#include "xds/client/client.h"

/* Returns a client with one reference. Takes over the reference of `own` and takes one of `shared`. Both are made with
 * the same bootstrap on the same loop. A dump shows the entries of `own`. */
struct tc_xds_client *tc_xds_forwarding_client_new(struct tc_xds_client *own, struct tc_xds_client *shared);

#endif
