/* Stateful sessions (A55, A60, A61): an RPC's cookie names the cluster and the endpoint of its session. The response
 * sets the cookie if the request had none, or if the value has changed. The value is, in base64,
 * "1.1.1.1:80[,2.2.2.2:80...];cluster:NAME": the picked endpoint's addresses, the one in use first, and the cluster.
 * RPCs: loop thread only; the parsing of settings: any thread. */
#ifndef TC_XDS_FILTER_SESSION_FILTER_H
#define TC_XDS_FILTER_SESSION_FILTER_H

#include "xds/filter/filter_chain.h"

extern const struct tc_http_filter_type tc_http_filter_session;

/* Returns whether the listener has the filter, even if disabled: an override may enable it. cds then turns the sessions
 * of xds_override_host on. Returns false for NULL. */
bool tc_listener_has_sessions(const struct tc_listener *listener);

#endif
