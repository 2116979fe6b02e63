/* ADS, incremental. Loop thread only. */
#ifndef TC_XDS_CLIENT_ADS_DELTA_H
#define TC_XDS_CLIENT_ADS_DELTA_H

#include "xds/client/channel_internal.h"

extern const struct tc_xds_ads_ops tc_xds_ads_delta;

#endif
