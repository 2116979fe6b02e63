/* ADS, incremental. */
#ifndef TC_XDS_CLIENT_ADS_DELTA_H
#define TC_XDS_CLIENT_ADS_DELTA_H

#include "xds/client/channel_internal.h"

extern const struct tc_xds_ads_ops tc_xds_ads_delta;

/* A response came from this control plane. */
void tc_xds_ads_control_plane(struct tc_xds_channel *ch, struct tc_slice identifier);

#endif
