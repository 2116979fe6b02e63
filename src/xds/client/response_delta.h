/* A DeltaDiscoveryResponse, incremental. Loop thread only. */
#ifndef TC_XDS_CLIENT_RESPONSE_DELTA_H
#define TC_XDS_CLIENT_RESPONSE_DELTA_H

#include "xds/client/response_context.h"

extern const struct tc_xds_response_variant tc_xds_response_delta;

#endif
