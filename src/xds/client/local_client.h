/* The xDS client that asks servers itself: ADS streams, a cache, A71's fallback, and load reports. Shared by the
 * channels of one target, or of several (xds/domain/client_pool.h). Loop thread only. */
#ifndef TC_XDS_CLIENT_LOCAL_CLIENT_H
#define TC_XDS_CLIENT_LOCAL_CLIENT_H

#include "xds/client/client.h"
#include "xds/client/transport.h"

/* Stores the defaults. */
void tc_xds_client_opts_init(struct tc_xds_client_opts *opts);

/* Returns a client with one reference. Takes a reference of the bootstrap. Copies the options and the target's name,
 * but borrows opts->registries. NULL options are the defaults. Loop and factory must outlive the client. */
struct tc_xds_client *tc_xds_local_client_new(struct tc_loop *loop, struct tc_xds_bootstrap *bootstrap,
                                              struct tc_xds_transport_factory *factory,
                                              const struct tc_xds_client_opts *opts);

#endif
