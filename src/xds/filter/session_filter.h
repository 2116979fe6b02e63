/* Stateful sessions (A55, A60, A61): an RPC's cookie names the cluster and the endpoint of its session; a response sets
 * the cookie if there was none, or if its value is another now. The value is, in base64,
 * "1.1.1.1:80[,2.2.2.2:80...];cluster:NAME": the picked endpoint's addresses, the one in use first, and the cluster.
 * RPCs: loop thread only; the parsing of settings: any thread. */
#ifndef TC_XDS_FILTER_SESSION_FILTER_H
#define TC_XDS_FILTER_SESSION_FILTER_H

#include "xds/filter/filter_chain.h"

extern const struct tc_http_filter_type tc_http_filter_session;

/* Returns whether RPCs of the listener may have sessions: then xds_override_host has work to do. NULL: no listener. */
bool tc_listener_has_sessions(const struct tc_listener *listener);

#endif
