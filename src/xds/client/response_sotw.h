/* A DiscoveryResponse, state of the world. Loop thread only. */
#ifndef TC_XDS_CLIENT_RESPONSE_SOTW_H
#define TC_XDS_CLIENT_RESPONSE_SOTW_H

#include "xds/client/response_context.h"

extern const struct tc_xds_response_variant tc_xds_response_sotw;

#endif
