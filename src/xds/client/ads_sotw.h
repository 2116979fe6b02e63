/* ADS, state of the world. Loop thread only. */
#ifndef TC_XDS_CLIENT_ADS_SOTW_H
#define TC_XDS_CLIENT_ADS_SOTW_H

#include "xds/client/channel_internal.h"

extern const struct tc_xds_ads_ops tc_xds_ads_sotw;

#endif
