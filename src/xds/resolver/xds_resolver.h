/* The resolver of "xds:" targets (A27, A31, A74). Loop thread only, except the `authority` of the class. */
#ifndef TC_XDS_RESOLVER_XDS_RESOLVER_H
#define TC_XDS_RESOLVER_XDS_RESOLVER_H

#include "resolver/resolver.h"

/* A result has the LB config (xds_cluster_manager with a cds for each cluster in use), the XdsConfig as attributes, the
 * config selector, and an empty list of endpoints. A result with an error has a status instead of selector and
 * endpoints, and the last good XdsConfig (NULL if there was none). */
extern const struct tc_resolver_class tc_xds_resolver_class;

#endif
